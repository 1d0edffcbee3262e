"""What a DuckDB file defines, read from DuckDB's catalogue functions into the model.

The catalogue comes first, then the selection, and only then, for the tables that are left, the
questions that need a look at the rows: how long lists get and what intervals consist of.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from muniment.databases.duckdb.connection import Connection, rows, translated
from muniment.databases.duckdb.fitting import fit_schema
from muniment.databases.duckdb.macros import macros, sequences
from muniment.databases.duckdb.types import (
    Enumeration,
    Scalar,
    parse_duck_type,
    predefined_type,
    quote,
    quote_text,
)
from muniment.errors import Unfit, UsageError
from muniment.sql.clauses import read_clauses
from muniment.sql.model import (
    CheckConstraint,
    Column,
    Database,
    ForeignKey,
    Reference,
    Routine,
    Schema,
    Table,
    Trigger,
    UniqueKey,
    UserType,
    View,
)
from muniment.sql.original import Original, join_original
from muniment.sql.selection import Selection, query_words, view_words
from muniment.sql.types import PredefinedType

__all__ = ["read_database"]

_TEXT = PredefinedType("CLOB")
_IDENTIFIER = r"""(?:"(?:[^"]|"")*"|[^\s".,()]+)"""
_NULL = re.compile(r'"NULL"(?=[\[,)]|\Z)')  # a type; the name of a field has its type behind it
_VIEW = re.compile(
    rf"""CREATE\s+VIEW\s+ {_IDENTIFIER}(?:\.{_IDENTIFIER})* \s*
        (?:\(\s*{_IDENTIFIER}(?:\s*,\s*{_IDENTIFIER})*\s*\)\s*)? AS\s+ (?P<query>.*?) ;?\s*""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_TRIGGER = re.compile(
    rf"""CREATE\s+TRIGGER\s .*? \sON\s+ {_IDENTIFIER}(?:\.{_IDENTIFIER})* \s+
        (?P<action>.*?) ;?\s*""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def read_database(connection: Connection, dbname: str, selection: Selection) -> Database:
    """Return the definitions of what was selected, with SIARD types for every column."""
    catalogue = _Catalogue(connection)
    whole = Database(dbname, schemas=tuple(catalogue.schemas()))
    views = [(schema.name, view.name) for schema in whole.schemas for view in schema.views]
    selection.check(whole, views)
    database = _with_view_tables(selection.prune(whole), whole, selection)
    database = _with_queries(connection, database, selection)
    unfit: list[str] = []
    schemas = [
        fit_schema(connection, selection, replace(schema, folder=f"schema{number}"), unfit)
        for number, schema in enumerate(database.schemas)
    ]
    if unfit:
        # A NULL is a missing element, so an archive cannot say that it was the last one.
        what, wanted = "a list that ends with NULL", "an array SIARD can hold"
        raise Unfit(unfit[0], None, what, wanted, tuple(unfit[1:]))
    return replace(database, schemas=tuple(schemas))


class _Catalogue:
    """DuckDB's catalogue functions, each asked once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._columns = self._by_table("duckdb_columns()", "column_index")
        self._constraints = self._by_table("duckdb_constraints()", "constraint_index")
        self._indexes = self._by_table("duckdb_indexes()", "index_name")
        self._triggers = self._by_table("duckdb_triggers()", "trigger_oid")

    def _ask(self, function: str, order: str, condition: str = "true") -> list[dict[str, Any]]:
        return rows(
            self._connection,
            f"SELECT * FROM {function} WHERE database_name = current_database() AND {condition}"
            f" ORDER BY {order}",
        )

    def _by_table(self, function: str, order: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
        found = defaultdict(list)
        for row in self._ask(function, order):
            found[row["schema_name"], row["table_name"]].append(row)
        return found

    def schemas(self) -> Iterator[Schema]:
        """Yield all schemas, "main" first, the others by name."""
        tables = self._ask("duckdb_tables()", "lower(table_name), table_name", "NOT temporary")
        views = self._ask(
            "duckdb_views()", "lower(view_name), view_name", "NOT internal AND NOT temporary"
        )
        types = self._ask("duckdb_types()", "type_name", "NOT internal")
        routines = list(self._routines())
        for row in self._ask(
            "duckdb_schemas()",
            "schema_name <> 'main', schema_name",
            "(NOT internal OR schema_name = 'main')",
        ):
            name = row["schema_name"]
            yield Schema(
                name,
                "",
                description=row["comment"],
                types=tuple(self._type(t) for t in types if t["schema_name"] == name),
                tables=tuple(self._table(t) for t in tables if t["schema_name"] == name),
                views=tuple(self._view(v) for v in views if v["schema_name"] == name),
                routines=tuple(r for home, r in routines if home == name),
            )

    def _table(self, row: dict[str, Any]) -> Table:
        place = row["schema_name"], row["table_name"]
        constraints = self._constraints[place]
        primary = [_key(c) for c in constraints if c["constraint_type"] == "PRIMARY KEY"]
        unique = [_key(c) for c in constraints if c["constraint_type"] == "UNIQUE"]
        columns = self._table_columns(place, _clauses(row["sql"]))
        generated = {c["column_name"] for c in self._columns[place] if c["is_generated"]}
        # No key of DuckDB may hold a generated column, but an index may.
        names = [column.name for column in columns if column.name not in generated]
        described = row["comment"]
        indexes = []
        for index in self._indexes[place]:
            if index["is_unique"] and (key := _index_key(index, names)):
                unique.append(key)
                continue
            indexes.append(index["sql"].rstrip(";"))
            if index["comment"]:
                named = f"{quote(index['schema_name'])}.{quote(index['index_name'])}"
                indexes.append(f"COMMENT ON INDEX {named} IS {quote_text(index['comment'])}")
        if indexes:
            described = join_original(described, Original("DuckDB", tuple(indexes)))
        return Table(
            row["table_name"],
            "",
            columns,
            rows=row["estimated_size"] or 0,
            description=described,
            primary_key=primary[0] if primary else None,
            candidate_keys=tuple(unique),
            foreign_keys=tuple(
                _foreign_key(c) for c in constraints if c["constraint_type"] == "FOREIGN KEY"
            ),
            check_constraints=tuple(
                CheckConstraint(c["constraint_name"], c["expression"])
                for c in constraints
                if c["constraint_type"] == "CHECK"
            ),
            triggers=tuple(map(_trigger, self._triggers[place])),
        )

    def _table_columns(
        self, place: tuple[str, str], clauses: Mapping[str, str]
    ) -> tuple[Column, ...]:
        found = self._columns[place]
        return tuple(_column(row, clauses.get(row["column_name"])) for row in found)

    def _type(self, row: dict[str, Any]) -> UserType:
        """An enumeration, or another name for a type: the columns that have it do not tell."""
        place = f"{quote(row['schema_name'])}.{quote(row['type_name'])}"
        with translated(f"the type {row['type_name']}"):
            (found,) = rows(self._connection, f"SELECT typeof(CAST(NULL AS {place})) AS text")
        duck, description = parse_duck_type(found["text"]), str(found["text"])
        if row["comment"]:
            description = join_original(row["comment"], Original("DuckDB", (description,)))
        base = predefined_type(duck) if isinstance(duck, Scalar | Enumeration) else _TEXT
        return UserType(row["type_name"], "distinct", base=base, description=description)

    def _view(self, row: dict[str, Any]) -> View:
        match = _VIEW.fullmatch(row["sql"])
        return View(
            row["view_name"],
            tuple(
                replace(column, type=_flat_type(column), nullable=None)
                for column in self._table_columns((row["schema_name"], row["view_name"]), {})
            ),
            query_original=match["query"] if match else row["sql"],
            description=row["comment"],
        )

    def _routines(self) -> Iterator[tuple[str, Routine]]:
        """Macros, and sequences, which have no better place in SIARD (defaults may need them)."""
        yield from sequences(self._ask("duckdb_sequences()", "sequence_name", "NOT temporary"))
        wanted = "NOT internal AND function_type IN ('macro', 'table_macro')"
        found = self._ask("duckdb_functions()", "function_name, function_oid", wanted)
        yield from macros(self._connection, found)


def _column(row: dict[str, Any], clause: str | None) -> Column:
    description = row["comment"]
    if clause is not None:
        description = join_original(description, Original("DuckDB", (clause,)))
    return Column(
        row["column_name"],
        _TEXT,  # fit_schema replaces it
        type_original=row["data_type"],
        nullable=row["is_nullable"],
        default_value=None if row.get("is_generated") else row["column_default"],
        description=description,
    )


def _clauses(sql: str) -> dict[str, str]:
    """What a table's statement says of its columns that DuckDB's catalogue functions do not."""
    if "GENERATED ALWAYS AS" not in sql and "COLLATE" not in sql:
        return {}
    found = {}
    for column in read_clauses(sql, "DuckDB").columns:
        if column.generated is not None:
            found[column.name] = f"GENERATED ALWAYS AS ({column.generated})"
        elif column.collation is not None:
            found[column.name] = f"COLLATE {column.collation}"
    return found


def _trigger(row: dict[str, Any]) -> Trigger:
    match = _TRIGGER.fullmatch(row["sql"])
    event = row["event_manipulation"]
    if row["columns"]:
        event += f" OF {', '.join(map(quote, row['columns']))}"
    action = match["action"] if match else row["sql"]
    timing = row["action_timing"]
    return Trigger(row["trigger_name"], timing, event, action, description=row["comment"])


def _key(row: dict[str, Any]) -> UniqueKey:
    return UniqueKey(row["constraint_name"], tuple(row["constraint_column_names"]))


def _index_key(row: dict[str, Any], columns: list[str]) -> UniqueKey | None:
    """A unique index on plain columns says the same as a UNIQUE constraint."""
    listed = row["expressions"].strip("[]").split(", ")
    named = tuple(n for text in listed for n in columns if text in (n, quote(n), f"'{quote(n)}'"))
    return UniqueKey(row["index_name"], named) if len(named) == len(listed) else None


def _foreign_key(row: dict[str, Any]) -> ForeignKey:
    pairs = zip(row["constraint_column_names"], row["referenced_column_names"], strict=True)
    return ForeignKey(
        row["constraint_name"],
        row["schema_name"],
        row["referenced_table"],
        tuple(Reference(column, referenced) for column, referenced in pairs),
    )


def _flat_type(column: Column) -> PredefinedType:
    """The type of a view's column, whose rows nobody looks at: nested ones count as text."""
    duck = parse_duck_type(column.type_original or "")
    return predefined_type(duck) if isinstance(duck, Scalar | Enumeration) else _TEXT


def _of_a_table(column: Column) -> Column:
    """A column of a view or query as a table can have it: no table has one of the type NULL."""
    return replace(column, type_original=_NULL.sub("VARCHAR", column.type_original or ""))


def _with_view_tables(database: Database, whole: Database, selection: Selection) -> Database:
    """Add the selected views as tables, and take them out of the views."""
    as_tables = tuple(
        replace(
            schema,
            tables=tuple(
                Table(
                    view.name,
                    "",
                    tuple(map(_of_a_table, view.columns)),
                    description=view_words(view),
                )
                for view in schema.views
                if selection.takes_view(schema.name, view.name)
            ),
        )
        for schema in whole.schemas
    )
    # --table and --exclude speak of base tables: they do not undo the choice of a view.
    chosen = replace(selection, tables=(), exclude=()).prune(replace(whole, schemas=as_tables))
    return replace(
        database,
        schemas=tuple(
            replace(
                schema,
                tables=schema.tables + extra.tables,
                views=selection.other_views(schema),
            )
            for schema, extra in zip(database.schemas, chosen.schemas, strict=True)
        ),
    )


def _with_queries(connection: Connection, database: Database, selection: Selection) -> Database:
    """Add the named queries as tables of the first schema."""
    if not selection.queries:
        return database
    if not database.schemas:
        raise UsageError("no schema is selected that the rows of a query could go to")
    first, *others = database.schemas
    taken = {table.name for table in first.tables} | {view.name for view in first.views}
    tables = []
    for name, query in selection.queries.items():
        if name in taken:
            raise UsageError(f"{first.name}.{name} exists already; give the query another name")
        with translated(f"the query {name}"):
            described = rows(connection, f"DESCRIBE {query.rstrip().rstrip(';')}")
        columns = tuple(
            _of_a_table(Column(row["column_name"], _TEXT, type_original=row["column_type"]))
            for row in described
        )
        tables.append(Table(name, "", columns, description=query_words(query)))
    first = replace(first, tables=first.tables + tuple(tables))
    return replace(database, schemas=(first, *others))
