"""The definitions in an SQLite file: its own catalogue, and what only its SQL text tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apsw

from muniment.databases.sqlite_types import declared_type, type_of_classes
from muniment.errors import UsageError
from muniment.sql.classes import Classes, with_classes
from muniment.sql.model import (
    UNKNOWN_COLUMNS,
    CheckConstraint,
    Column,
    Database,
    ForeignKey,
    Reference,
    Schema,
    Table,
    Trigger,
    UniqueKey,
    View,
)  # fmt: skip
from muniment.sql.names import LONGEST, quoted
from muniment.sql.original import Original, join_original
from muniment.sql.selection import Selection, broken_view, query_words, view_words
from muniment.sql.types import Kind, PredefinedType

__all__ = ["Catalogue", "Relation", "read_catalogue"]

_TEXT = PredefinedType("CLOB")


@dataclass(frozen=True, slots=True)
class Relation:
    """Where the rows of an archived table come from."""

    sql: str
    base: str | None = None  # the table's name if it is one, None for views and queries
    has_rowid: bool = False
    rowid: str = "rowid"
    where: str | None = None
    alias: str | None = None  # the column that is the rowid
    private: bool = False  # in a temporary table, which only this connection sees


@dataclass
class Catalogue:
    """What the catalogue says, and how to read the rows."""

    database: Database = field(default_factory=lambda: Database(""))
    relations: dict[str, Relation] = field(default_factory=dict)
    # Columns that are archived as text, by table and name.
    classes: dict[tuple[str, str], Classes] = field(default_factory=dict)
    # Foreign keys by table that lead nowhere, each with the reason.
    dangling: dict[str, list[tuple[ForeignKey, str]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_catalogue(db: apsw.Connection, path: Path, selection: Selection) -> Catalogue:
    """Return the definitions of the file, reduced to what was selected.

    The rows of views, queries and reordered tables are put into temporary tables, since a query may
    give other rows or another order each time it is asked.
    """
    return _CatalogueReader(db, path, selection).read()


class _CatalogueReader:
    def __init__(self, db: apsw.Connection, path: Path, selection: Selection) -> None:
        self._db: Any = db  # rows of the catalogue have known types that apsw cannot tell
        self._path, self._selection = path, selection
        self._result = Catalogue()
        self._sql = {
            (kind, name): (table, sql)
            for kind, name, table, sql in db.execute(
                "SELECT type, name, tbl_name, sql FROM sqlite_schema"
            )
        }
        self._kinds = self._table_list()
        self._spellings = {name.lower(): name for name in reversed(self._kinds)}
        self._attached = self._indexes_and_triggers()
        self._columns_of = {
            name: [row[1] for row in self._info(name)]
            for name, (kind, _) in self._kinds.items()
            if kind != "view"
        }

    def read(self) -> Catalogue:
        tables = [self._table(name) for name in self._table_names()]
        views = [view for name in self._views() if (view := self._view(name)) is not None]
        schema = Schema("main", "schema0", tables=tuple(tables), views=tuple(views))
        database = Database(
            dbname=self._path.stem,
            database_product=f"SQLite {apsw.sqlite_lib_version()}",
            connection=f"sqlite:///{self._path.name}",
            schemas=(schema,),
        )
        selection = self._selection
        unreadable = [("main", name) for name, columns in self._columns_of.items() if not columns]
        selection.check(database, [("main", v.name) for v in views], unreadable)
        database = selection.prune(database)
        if not database.schemas:
            raise UsageError("an SQLite file has one schema, main")
        self._result.database = self._with_extra_tables(database, views)
        return self._result

    def _table_list(self) -> dict[str, tuple[str, bool]]:
        """Every table and view of the file: its kind, and whether it lacks a rowid."""
        rows = self._db.execute("PRAGMA main.table_list").fetchall()
        return {
            name: (kind, bool(without))
            for schema, name, kind, _, without, _ in rows
            if schema == "main" and not name.startswith("sqlite_")
        }

    def _indexes_and_triggers(self) -> dict[str, list[tuple[str, str, str | None]]]:
        """Kind, name and SQL of what belongs to each table, by the table's name in small letters.

        Collected once: files of many tables would be searched as a whole for each of them.
        """
        found: dict[str, list[tuple[str, str, str | None]]] = {}
        for (kind, name), (owner, sql) in self._sql.items():
            if kind in ("index", "trigger"):
                found.setdefault(owner.lower(), []).append((kind, name, sql))
        return found

    def _table_names(self) -> Iterator[str]:
        for (kind, name), _ in self._sql.items():
            if kind != "table" or name not in self._kinds:
                continue
            if self._kinds[name][0] == "shadow":
                continue  # the virtual table above it shows the same data
            if self._kinds[name][0] == "virtual" and self._columns_of.get(name):
                self._result.notes.append(
                    f"{name} is a virtual table; its rows were archived as those of an ordinary one"
                )
            if not self._columns_of.get(name):
                self._result.notes.append(
                    f"the virtual table {name} cannot be read here: its module is missing"
                )
                continue
            yield name

    def _views(self) -> list[str]:
        return [name for (kind, name) in self._sql if kind == "view"]

    def _info(self, name: str) -> list[tuple[int, str, str, int, str | None, int, int]]:
        try:
            return list(self._db.execute(f"PRAGMA table_xinfo({quoted(name)})"))
        except apsw.SQLError:
            return []

    def _table(self, name: str) -> Table:
        kind, without_rowid = self._kinds[name]
        info = self._info(name)
        relation = self._relation(name, info, kind == "table" and not without_rowid)
        self._result.relations[name] = relation
        keys = sorted((pk, column) for _, column, _, _, _, pk, _ in info if pk)
        rowid_alias = (
            len(keys) == 1 and relation.has_rowid and self._is_rowid(name, keys[0][1], info)
        )
        if rowid_alias and not relation.private:
            self._result.relations[name] = replace(relation, alias=keys[0][1])
        never_null = {column for _, column in keys} if without_rowid or rowid_alias else set()
        columns = tuple(self._columns(name, info, never_null, relation))
        table = Table(
            name=name,
            folder=f"table{len(self._result.relations) - 1}",
            columns=columns,
            rows=self._estimate(relation),
            primary_key=_primary_key(name, [c for _, c in keys]),
            foreign_keys=tuple(self._foreign_keys(name)),
            candidate_keys=tuple(self._candidate_keys(name)),
            check_constraints=tuple(_checks(self._sql["table", name][1] or "", name)),
            triggers=tuple(self._triggers(name)),
        )
        if self._selection.columns_of("main", name) is None:
            plain = [_ordinary(table)] if kind == "virtual" else []
            statements = (*plain, *self._original(name))
        else:  # triggers may need the columns that are left out
            statements = tuple(self._belonging(name, "index"))
        if statements:
            described = join_original(None, Original("SQLite", statements))
            table = replace(table, description=described)
        return table

    def _relation(
        self,
        name: str,
        info: list[tuple[int, str, str, int, str | None, int, int]],
        has_rowid: bool,
    ) -> Relation:
        names = {row[1].lower() for row in info}
        rowid = next((word for word in ("rowid", "_rowid_", "oid") if word not in names), None)
        relation = Relation(
            sql=f"main.{quoted(name)}",
            base=name,
            has_rowid=has_rowid and rowid is not None,
            rowid=rowid or "rowid",
            where=self._selection.where_of("main", name),
        )
        if self._selection.order_of("main", name) and self._selection.takes("main", name):
            return self._filled(name, relation.sql)
        return relation

    def _filled(self, name: str, origin: str) -> Relation:
        """Put rows into a temporary table, in their order."""
        table = quoted(f"rows of {name}")
        where = self._selection.where_of("main", name)
        order = self._selection.order_of("main", name)
        rows = f"SELECT * FROM {origin}"
        rows += f" WHERE ({where})" if where else ""
        rows += f" ORDER BY {order}" if order else ""
        self._db.execute(f"CREATE TEMP TABLE {table} AS {rows}")
        names = {row[1].lower() for row in self._db.execute(f"PRAGMA temp.table_info({table})")}
        rowid = next((word for word in ("rowid", "_rowid_", "oid") if word not in names), None)
        return Relation(
            f"temp.{table}", has_rowid=rowid is not None, rowid=rowid or "rowid", private=True
        )

    def _is_rowid(
        self, name: str, key: str, info: list[tuple[int, str, str, int, str | None, int, int]]
    ) -> bool:
        """INTEGER PRIMARY KEY, to the letter, is the rowid itself; it has no index of its own."""
        declared = next(row[2] for row in info if row[1] == key)
        indexes = self._db.execute(f"PRAGMA index_list({quoted(name)})").fetchall()
        return declared.upper() == "INTEGER" and not any(
            origin == "pk" for _, _, _, origin, _ in indexes
        )

    def _columns(
        self,
        table: str,
        info: list[tuple[int, str, str, int, str | None, int, int]],
        never_null: set[str],
        relation: Relation,
    ) -> Iterator[Column]:
        for _, name, declared, not_null, default, _, hidden in info:
            if hidden == 1:
                continue  # the hidden columns of virtual tables are arguments, not data
            column = Column(
                name=name,
                type=declared_type(declared) or _TEXT,
                type_original=declared or None,
                nullable=not (not_null or name in never_null),
                default_value=default,
            )
            if relation.base and not self._wants(table, name):
                yield column  # nobody asks what it holds
            elif self._selection.wants_text("main", table, name):
                yield self._as_text(table, column, self._classes(name, relation), relation)
            elif declared_type(declared):
                yield self._with_room(table, column, relation)
            else:
                yield self._by_content(table, column, relation)

    def _wants(self, table: str, column: str) -> bool:
        chosen = self._selection.columns_of("main", table)
        return self._selection.takes("main", table) and (chosen is None or column in chosen)

    def _with_room(self, table: str, column: Column, relation: Relation) -> Column:
        """Return a column with room for its longest bytes: SQLite keeps to no declared length."""
        type_, name = column.type, quoted(column.name)
        if not isinstance(type_, PredefinedType) or type_.kind is not Kind.BINARY:
            return column
        if type_.length is None:
            return column
        blobs = _where(relation, f"typeof({name})='blob'")
        sql = f"SELECT max(octet_length({name})) FROM {relation.sql}{blobs}"
        ((longest,),) = self._db.execute(sql).fetchall()
        if (longest or 0) <= type_.length:
            return column
        wider = replace(type_, length=longest)
        self._result.notes.append(
            f"main.{table}.{column.name} is declared {column.type_original} and holds more; "
            f"it was archived as {wider}"
        )
        return replace(column, type=wider)

    def _by_content(self, table: str, column: Column, relation: Relation) -> Column:
        """Return a column whose declaration tells no type, with the type that its values have."""
        classes = self._classes(column.name, relation)
        if len(classes) < 2:
            return replace(column, type=type_of_classes(classes))
        column = self._as_text(table, column, classes, relation)
        declared = column.type_original
        shown = f"is declared {declared}" if declared else "has no declared type"
        told = self._result.classes[table, column.name]
        marks = ", with its texts in quotation marks" if told.quoted else ""
        self._result.notes.append(
            f"main.{table}.{column.name} {shown} and holds {told} values; "
            f"it was archived as text{marks}"
        )
        return column

    def _as_text(self, table: str, column: Column, classes: set[str], relation: Relation) -> Column:
        """Return a column with a note on the classes that its values have."""
        name, told = quoted(column.name), Classes(frozenset(classes))
        if "text" in classes:
            is_text = f"typeof({name})='text'"
            texts = self._db.execute(
                f"SELECT CAST({name} AS BLOB) FROM {relation.sql}{_where(relation, is_text)}"
            )
            ((encoding,),) = self._db.execute("PRAGMA encoding").fetchall()
            told = told.among((text for (text,) in texts), encoding)
        self._result.classes[table, column.name] = told
        return replace(column, type=_TEXT, description=with_classes(None, told))

    def _classes(self, column: str, relation: Relation) -> set[str]:
        """What SQLite calls the values of a column: integer, real, text, blob."""
        name = quoted(column)
        there = _where(relation, f"{name} IS NOT NULL")
        rows = self._db.execute(f"SELECT DISTINCT typeof({name}) FROM {relation.sql}{there}")
        return {class_ for (class_,) in rows}

    def _estimate(self, relation: Relation) -> int:
        if not relation.has_rowid:
            return 0
        # Two statements, so that each finds its end of the index without reading what is between.
        ((low,),), ((high,),) = (
            self._db.execute(f"SELECT {edge}({relation.rowid}) FROM {relation.sql}").fetchall()
            for edge in ("min", "max")
        )
        return 0 if high is None else high - low + 1

    def _foreign_keys(self, table: str) -> Iterator[ForeignKey]:
        rows = self._db.execute(f"PRAGMA foreign_key_list({quoted(table)})").fetchall()
        for number in sorted({row[0] for row in rows}, reverse=True):
            parts = sorted(row for row in rows if row[0] == number)
            _, _, parent, _, _, on_update, on_delete, _ = parts[0]
            parent = self._spellings.get(parent.lower(), parent)
            targets = [row[4] for row in parts]
            if None in targets:  # REFERENCES parent, without columns, means its primary key
                keys = sorted(
                    (pk, column) for _, column, _, _, _, pk, _ in self._info(parent) if pk
                )
                targets = [column for _, column in keys]
            pairs = zip(parts, [*targets, *[""] * len(parts)], strict=False)
            key = ForeignKey(
                name=_generated("fk", table, max(row[0] for row in rows) - number + 1),
                referenced_schema="main",
                referenced_table=parent,
                references=tuple(
                    Reference(
                        self._spelling(row[3], self._columns_of.get(table, [])),
                        self._spelling(target, self._columns_of.get(parent, [])),
                    )
                    for row, target in pairs
                ),
                delete_action=on_delete,
                update_action=on_update,
            )
            if reason := self._leads_nowhere(key, len(targets)):
                self._result.dangling.setdefault(table, []).append((key, reason))
            else:
                yield key

    def _leads_nowhere(self, key: ForeignKey, wanted: int) -> str | None:
        """Say what a foreign key lacks at its other end, if anything."""
        parent = key.referenced_table
        if parent not in self._columns_of or self._kinds[parent][0] == "shadow":
            return f"there is no table {parent}"
        if wanted != len(key.references):
            return f"{parent} has no key for it"
        there = self._columns_of[parent]
        missing = [r.referenced for r in key.references if r.referenced not in there]
        return f"{parent} has no column {missing[0]}" if missing else None

    @staticmethod
    def _spelling(name: str, known: list[str]) -> str:
        """SQLite compares names without case; the archive keeps the spelling of the definition."""
        return next((k for k in known if k.lower() == name.lower()), name)

    def _candidate_keys(self, table: str) -> Iterator[UniqueKey]:
        indexes = self._db.execute(f"PRAGMA index_list({quoted(table)})").fetchall()
        number = 0
        for _, name, unique, origin, partial in reversed(indexes):
            columns = [row[2] for row in self._db.execute(f"PRAGMA index_info({quoted(name)})")]
            if not unique or partial or origin == "pk" or None in columns:
                continue
            number += 1
            shown = name if origin == "c" else _generated("uq", table, number)
            yield UniqueKey(shown, tuple(columns))

    def _triggers(self, table: str) -> Iterator[Trigger]:
        for kind, name, sql in self._attached.get(table.lower(), ()):
            if kind == "trigger":
                match = _TRIGGER.search(sql or "")
                if match is None:
                    self._result.notes.append(
                        f"the trigger {name} could not be understood and was left out"
                    )
                    continue
                yield Trigger(
                    name=name,
                    action_time=" ".join((match["time"] or "BEFORE").upper().split()),
                    trigger_event=" ".join(match["event"].split()),
                    triggered_action=match["action"].strip(),
                )

    def _original(self, table: str) -> Iterator[str]:
        """Yield the SQL of a table with its indexes, triggers and how far its numbers have come."""
        yield self._sql["table", table][1]
        yield from self._belonging(table)
        if ("table", "sqlite_sequence") in self._sql:
            find = "SELECT max(seq) FROM sqlite_sequence WHERE name=?"
            ((last,),) = self._db.execute(find, (table,)).fetchall()
            if isinstance(last, int) and last != self._edge_of(table):
                name = table.replace("'", "''")
                yield f"UPDATE sqlite_sequence SET seq = {last} WHERE name = '{name}'"

    def _belonging(self, owner: str, *kinds: str) -> Iterator[str]:
        """Yield the indexes and triggers of a table or view, or those of one kind."""
        for kind, _, sql in self._attached.get(owner.lower(), ()):
            if sql and kind in (kinds or ("index", "trigger")):
                yield sql

    def _edge_of(self, table: str) -> int | None:
        """The number that SQLite goes on from where the rows that are archived come back."""
        relation = self._result.relations[table]
        where = self._selection.where_of("main", table)
        condition = f" WHERE ({where})" if where else ""
        sql = f"SELECT max({relation.rowid}) FROM main.{quoted(table)}{condition}"
        ((last,),) = self._db.execute(sql).fetchall()
        return last if isinstance(last, int) else None

    def _view(self, name: str) -> View | None:
        info = self._info(name)
        if not info:
            self._result.notes.append(broken_view(name))
        match = _VIEW.match(self._sql["view", name][1])
        columns = tuple(
            Column(column, declared_type(declared) or _TEXT, declared or None, True)
            for _, column, declared, _, _, _, _ in info
        )
        query = self._sql["view", name][1][match.end() :] if match else self._sql["view", name][1]
        view = View(name, columns or UNKNOWN_COLUMNS, query_original=query.strip())
        if triggers := tuple(self._belonging(name)):
            view = replace(view, description=join_original(None, Original("SQLite", triggers)))
        return view

    def _with_extra_tables(self, database: Database, views: list[View]) -> Database:
        """Add the tables that are made from views and queries."""
        extra = []
        for view in views:
            if self._selection.takes_view("main", view.name):
                place = f"main.{quoted(view.name)}"
                extra.append(self._made(view.name, place, view_words(view)))
        for name, sql in self._selection.queries.items():
            # Between parentheses a second statement is a mistake, not something to run.
            self._db.execute(f"CREATE TEMP VIEW {quoted(name)} AS SELECT * FROM (\n{sql}\n)")
            extra.append(self._made(name, f"temp.{quoted(name)}", query_words(sql)))
        if not extra:
            return self._numbered(database)
        schema = database.schemas[0]
        others = self._selection.other_views(schema)
        names = {table.name.casefold() for table in schema.tables}
        names |= {view.name.casefold() for view in others}
        for table in extra:
            if table.name.casefold() in names:
                raise UsageError(
                    f"there is a table or view {table.name} already; give the query another name"
                )
            names.add(table.name.casefold())
        schema = replace(schema, tables=(*schema.tables, *extra), views=others)
        return self._numbered(replace(database, schemas=(schema,)))

    def _made(self, name: str, sql: str, description: str) -> Table:
        schema, _, view = sql.partition(".")
        info = list(self._db.execute(f"PRAGMA {schema}.table_xinfo({view})"))
        relation = self._filled(name, sql)
        self._result.relations[name] = relation
        # SQLite calls a column of a view BLOB that has no type, too.
        untyped = {"", "BLOB"}
        info = [
            (*row[:2], "", *row[3:])
            if row[2] in untyped and self._classes(row[1], relation) not in ({"blob"}, set())
            else row
            for row in info
        ]
        columns = tuple(self._columns(name, info, set(), relation))
        return Table(name, "", columns, description=description)

    @staticmethod
    def _numbered(database: Database) -> Database:
        """Give the tables that are left their folders, without gaps."""
        schemas = tuple(
            replace(s, tables=tuple(replace(t, folder=f"table{n}") for n, t in enumerate(s.tables)))
            for s in database.schemas
        )
        return replace(database, schemas=schemas)


_TRIGGER = re.compile(
    r"""\bTRIGGER\b .*? \b(?:(?P<time>BEFORE|AFTER|INSTEAD\s+OF)\s+)?
        (?P<event>DELETE|INSERT|UPDATE(?:\s+OF\s+.+?)?)\s+ON\s+
        (?:"(?:[^"]|"")+"|\[[^]]+\]|`[^`]+`|\w+)\s*(?P<action>.*)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_VIEW = re.compile(
    r"""\s*CREATE\s+(?:TEMP\s+|TEMPORARY\s+)?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?
        (?:"(?:[^"]|"")+"|\[[^]]+\]|`[^`]+`|'[^']+'|\w+)\s*(?:\([^)]*\)\s*)?AS\b""",
    re.IGNORECASE | re.VERBOSE,
)
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^]]*\]|--[^\n]*|/\*.*?\*/|\w+|\S""", re.DOTALL
)


def _checks(sql: str, table: str) -> Iterator[CheckConstraint]:
    """Yield the CHECK constraints in the text of a CREATE TABLE statement."""
    tokens = [t for t in _TOKEN.finditer(sql) if not t[0].startswith(("--", "/*"))]
    number = 0
    for position, token in enumerate(tokens):
        if (
            token[0].upper() != "CHECK"
            or position + 1 >= len(tokens)
            or tokens[position + 1][0] != "("
        ):
            continue
        depth, end = 0, position + 1
        for end in range(position + 1, len(tokens)):
            depth += {"(": 1, ")": -1}.get(tokens[end][0], 0)
            if depth == 0:
                break
        number += 1
        named = position >= 2 and tokens[position - 2][0].upper() == "CONSTRAINT"
        name = _unquote(tokens[position - 1][0]) if named else _generated("ck", table, number)
        yield CheckConstraint(name, sql[tokens[position + 1].end() : tokens[end].start()].strip())


def _where(relation: Relation, condition: str) -> str:
    own = f"({relation.where}) AND " if relation.where else ""
    return f" WHERE {own}{condition}"


def _ordinary(table: Table) -> str:
    """The statement for an ordinary table that takes the rows of a virtual one."""
    columns = (f"{quoted(c.name)} {c.type_original or ''}".strip() for c in table.columns)
    return f"CREATE TABLE {quoted(table.name)} ({', '.join(columns)})"


def _primary_key(table: str, columns: list[str]) -> UniqueKey | None:
    return UniqueKey(_generated("pk", table), tuple(columns)) if columns else None


def _generated(kind: str, table: str, number: int | None = None) -> str:
    """A name for what SQLite gives none, no longer than SQL has room for."""
    start, end = f"{kind}_", f"_{number}" if number else ""
    return f"{start}{table[: LONGEST - len(start) - len(end)]}{end}"


def _unquote(name: str) -> str:
    return name[1:-1].replace('""', '"') if name[0] in '"`[' else name
