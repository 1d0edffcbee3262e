"""What an Access file defines, as mdbtools tells it: tables, keys, relationships, queries."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from muniment.databases.access_values import sql_type
from muniment.errors import DatabaseError
from muniment.sql.model import (
    UNKNOWN_COLUMNS,
    Column,
    Database,
    ForeignKey,
    Reference,
    Schema,
    Table,
    UniqueKey,
    View,
)
from muniment.sql.original import Original, join_original

__all__ = ["AccessColumn", "AccessTable", "Catalogue", "read_catalogue"]

Tool = Callable[..., str]
_SCHEMA = "main"
_TABLE = re.compile(r"^CREATE TABLE \[(?P<name>[^\]]+)\]\n \(\n(?P<body>.*?)\n\);$", re.M | re.S)
_COLUMN = re.compile(
    r"^\t\[(?P<name>[^\]]+)\]\t\t\t(?P<type>.+?)(?P<required> NOT NULL)?"
    r"(?: DEFAULT (?P<default>.*?))?(?:, ?)?$"
)
_KEY = re.compile(
    r"^ALTER TABLE `(?P<table>[^`]+)` ADD (?P<kind>PRIMARY KEY|UNIQUE INDEX|INDEX) "
    r"?(?:`(?P<name>[^`]+)` )?\((?P<columns>.*)\);$",
    re.M,
)
_COMMENT = re.compile(
    r'^COMMENT ON (?:TABLE|COLUMN) "(?P<table>[^"]+)"(?:\."(?P<column>[^"]+)")? IS '
    r"'(?P<text>(?:[^']|'')*)';$",
    re.M,
)
_NOT_ENFORCED, _UPDATE_CASCADE, _DELETE_CASCADE = 0x2, 0x100, 0x1000


@dataclass(frozen=True, slots=True)
class AccessColumn:
    """A column as it is in the file."""

    name: str
    original: str


@dataclass(frozen=True, slots=True)
class AccessTable:
    """A table as it is in the file; ``rows`` is what its header says."""

    name: str
    columns: tuple[AccessColumn, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The definitions of a file."""

    database: Database
    tables: dict[str, AccessTable]
    notes: tuple[str, ...]


def read_catalogue(path: Path, tool: Tool) -> Catalogue:
    """Read the definitions of the file at ``path``."""
    version = tool("mdb-ver", str(path)).strip()
    names = _lines(tool("mdb-tables", "-1", "-t", "table", str(path)))
    tables = {name: _table(path, name, tool) for name in names}
    models = [_model(number, table) for number, (table, _) in enumerate(tables.values())]
    filled = _with_defaults(models, {name: found for name, (_, found) in tables.items()})
    filled = _with_keys(filled, tool("mdb-schema", "--no-relations", str(path), "mysql"))
    filled = _with_relationships(filled, tool, path)
    filled = _with_comments(filled, tool("mdb-schema", "--no-relations", str(path), "postgres"))
    views = tuple(_views(path, tool))
    schema = Schema(_SCHEMA, "schema0", tables=tuple(filled), views=views)
    database = Database(
        path.stem,
        database_product=f"Microsoft Access {version}",
        connection=f"access:///{path}",
        schemas=(schema,),
    )
    raw = {name: table for name, (table, _) in tables.items()}
    return Catalogue(database, raw, tuple(_notes(path, tool, raw.values(), views)))


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def _table(path: Path, name: str, tool: Tool) -> tuple[AccessTable, dict[str, re.Match[str]]]:
    options = ("--default-values", "--not-null", "--no-indexes", "--no-relations")
    text = tool("mdb-schema", "-T", name, *options, str(path), "access")
    match = _TABLE.search(text)
    if match is None or match["name"] != name:
        raise DatabaseError(f"{path}: mdbtools does not say what the table {name} looks like")
    found = {}
    for line in match["body"].split("\n"):
        column = _COLUMN.match(line)
        if column is None:
            raise DatabaseError(f"{path}, {name}: mdbtools describes a column as {line.strip()!r}")
        found[column["name"]] = column
    columns = tuple(AccessColumn(c["name"], c["type"].strip()) for c in found.values())
    rows = int(tool("mdb-count", str(path), name).strip() or 0)
    return AccessTable(name, columns, rows), found


def _model(number: int, table: AccessTable) -> Table:
    columns = []
    for column in table.columns:
        type_ = sql_type(column.original)
        if type_ is None:
            raise DatabaseError(
                f"{table.name}.{column.name} is {column.original}, which mdbtools does not "
                f"read; leave it out: --columns '{table.name}=…'"
            )
        columns.append(Column(column.name, type_, column.original, nullable=True))
    return Table(table.name, f"table{number}", tuple(columns), rows=table.rows)


def _with_defaults(
    tables: Iterable[Table], found: dict[str, dict[str, re.Match[str]]]
) -> list[Table]:
    def filled(table: Table, column: Column) -> Column:
        match = found[table.name][column.name]
        default = (match["default"] or "").strip()
        return replace(
            column,
            nullable=not match["required"],
            default_value=default.removeprefix("=") or None,
        )

    return [replace(t, columns=tuple(filled(t, c) for c in t.columns)) for t in tables]


def _with_keys(tables: list[Table], text: str) -> list[Table]:
    """Add primary keys, unique indexes as candidate keys, other indexes for people to read."""
    keys: dict[str, list[re.Match[str]]] = {}
    for match in _KEY.finditer(text):
        keys.setdefault(match["table"], []).append(match)
    return [_with_table_keys(table, keys.get(table.name, [])) for table in tables]


def _with_table_keys(table: Table, found: list[re.Match[str]]) -> Table:
    names = {column.name for column in table.columns}
    candidates, others = [], []
    for match in found:
        columns = tuple(re.findall(r"`([^`]+)`", match["columns"]))
        if not names.issuperset(columns):
            continue
        if match["kind"] == "PRIMARY KEY":
            table = replace(table, primary_key=UniqueKey(f"{table.name}_pk", columns))
            required = tuple(
                replace(c, nullable=False) if c.name in columns else c for c in table.columns
            )
            table = replace(table, columns=required)
        elif match["kind"] == "UNIQUE INDEX":
            candidates.append(UniqueKey(match["name"], columns))
        else:
            listed = ", ".join(f"[{c}]" for c in columns)
            others.append(f"CREATE INDEX [{match['name']}] ON [{table.name}] ({listed})")
    table = replace(table, candidate_keys=tuple(candidates))
    if others:
        original = Original("Microsoft Access", tuple(others))
        table = replace(table, description=join_original(table.description, original))
    return table


def _with_relationships(tables: list[Table], tool: Tool, path: Path) -> list[Table]:
    """Add the relationships that the file enforces."""
    text = tool("mdb-export", str(path), "MSysRelationships")
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in csv.DictReader(StringIO(text)):
        if not int(row["grbit"]) & _NOT_ENFORCED:
            found.setdefault((row["szObject"], row["szRelationship"]), []).append(row)
    columns = {t.name: {c.name for c in t.columns} for t in tables}
    return [_with_foreign_keys(table, found, columns) for table in tables]


def _with_foreign_keys(
    table: Table,
    found: dict[tuple[str, str], list[dict[str, str]]],
    columns: dict[str, set[str]],
) -> Table:
    keys = []
    for (child, name), rows in found.items():
        parent, bits = rows[0]["szReferencedObject"], int(rows[0]["grbit"])
        ordered = sorted(rows, key=lambda row: int(row["icolumn"]))
        references = tuple(Reference(r["szColumn"], r["szReferencedColumn"]) for r in ordered)
        here, there = {r.column for r in references}, {r.referenced for r in references}
        if child != table.name or parent not in columns:
            continue
        if columns[child].issuperset(here) and columns[parent].issuperset(there):
            keys.append(
                ForeignKey(
                    name,
                    _SCHEMA,
                    parent,
                    references,
                    delete_action="CASCADE" if bits & _DELETE_CASCADE else "NO ACTION",
                    update_action="CASCADE" if bits & _UPDATE_CASCADE else "NO ACTION",
                )
            )
    return replace(table, foreign_keys=tuple(keys))


def _with_comments(tables: list[Table], text: str) -> list[Table]:
    """Add descriptions; mdbtools prints them with names in lower case."""
    comments = {
        (m["table"].lower(), (m["column"] or "").lower()): m["text"].replace("''", "'")
        for m in _COMMENT.finditer(text)
    }

    def described(table: Table) -> Table:
        name = table.name.lower()
        columns = tuple(
            replace(c, description=comments.get((name, c.name.lower()))) for c in table.columns
        )
        words, indexes = comments.get((name, "")), table.description
        both = "\n\n".join(filter(None, (words, indexes))) or None
        return replace(table, columns=columns, description=both)

    return [described(table) for table in tables]


def _views(path: Path, tool: Tool) -> Iterator[View]:
    """Yield the stored queries, as far as mdbtools can read them."""
    for name in _lines(tool("mdb-queries", "-L", "-1", str(path))):
        if not name.startswith("~"):  # those belong to forms and reports
            query = tool("mdb-queries", str(path), name).strip()
            # Not as the view's own query: joins, groups and aliases are missing, so that it may
            # run and say something else.
            words = f"What mdbtools reads of the stored query, which is not all of it:\n{query}"
            yield View(name, UNKNOWN_COLUMNS, description=words)


def _notes(
    path: Path, tool: Tool, tables: Iterable[AccessTable], views: tuple[View, ...]
) -> Iterator[str]:
    for kind, words in (
        ("Double", "come with the sixteen digits that mdbtools prints"),
        ("DateTime", "come in whole seconds"),
    ):
        columns = [f"{t.name}.{c.name}" for t in tables for c in t.columns if c.original == kind]
        if columns:
            yield f"columns of type {kind} {words}: {', '.join(columns)}"
    if views:
        yield (
            "mdbtools reads stored queries only in part; what it reads is in the descriptions of "
            f"{', '.join(view.name for view in views)}"
        )
    linked = _lines(tool("mdb-tables", "-1", "-t", "linkedtable", str(path)))
    if linked:
        yield f"tables that are links to other files were not archived: {', '.join(linked)}"
