"""What a server's catalogue says about tables: columns, keys, checks, and how rows are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pymysql import err

from muniment.databases.mariadb.connection import Session, quote, sentence, translated
from muniment.databases.mariadb.programs import (
    read_schema,
    read_triggers,
    read_views,
    without_schema,
)
from muniment.databases.mariadb.queries import query_columns
from muniment.databases.mariadb.rights import read_rights
from muniment.databases.mariadb.types import SPATIAL, NativeType, archived_type, parse_native
from muniment.errors import DatabaseError, TableGone, UsageError
from muniment.sql.model import (
    CheckConstraint,
    Column,
    Database,
    ForeignKey,
    Reference,
    Schema,
    Table,
    UniqueKey,
)
from muniment.sql.original import Original, join_original
from muniment.sql.selection import Selection, query_words, view_words
from muniment.sql.types import PredefinedType

__all__ = ["Catalogue", "ColumnFacts", "Relation", "read_catalogue"]

_SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
_SNAPSHOTS = {"InnoDB", "ROCKSDB", "TokuDB", "MyRocks"}
_DENIED = (1142, 1143, 1227, 1370)
_NO_SUCH_TABLE = 1146
_CLOB = PredefinedType("CLOB")


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What reading a column needs beyond its definition."""

    native: NativeType | None
    charset: str | None


@dataclass(frozen=True, slots=True)
class Relation:
    """How the rows of a table are read."""

    sql: str  # what stands after FROM
    facts: dict[str, ColumnFacts]
    where: str = ""
    order: str = ""
    key: tuple[str, ...] = ()  # columns that find a row again
    range: str = ""  # the one integer column of the primary key, in whose order rows come
    bytes: int = 0


@dataclass
class Catalogue:
    """The definitions, and how to read the rows."""

    database: Database
    relations: dict[tuple[str, str], Relation]
    notes: list[str] = field(default_factory=list)
    one_state: bool = True  # whether InnoDB's log says all that is stored


def read_catalogue(session: Session, selection: Selection) -> Catalogue:
    """Read everything the user may see of the databases that are taken."""
    with translated(session.address.url):
        return _Reader(session, selection).read()


class _Reader:
    def __init__(self, session: Session, selection: Selection) -> None:
        self._session, self._selection = session, selection
        self.notes: list[str] = []
        self._relations: dict[tuple[str, str], Relation] = {}
        self._names = self._schemas()
        self._among = ",".join(["%s"] * len(self._names))

    def read(self) -> Catalogue:
        session, address = self._session, self._session.address
        self._engines: dict[str, list[str]] = defaultdict(list)
        kinds = ("BASE TABLE", "SYSTEM VERSIONED")
        found = [row for row in self._rows(_TABLES) if row[2] in kinds]
        listed = [row for row in found if self._selection.takes(row[0], row[1])]
        readable = [row for row in listed if self._is_readable((row[0], row[1]))]
        here = {(row[0], row[1]) for row in readable}
        self._left = [(row[0], row[1]) for row in found if (row[0], row[1]) not in here]
        columns = self._known = self._columns()
        keys, foreign, checks = self._keys(), self._foreign(), self._checks()
        triggers, self._triggers_notes = read_triggers(session, self._names)
        self.notes += self._triggers_notes
        tables: dict[str, list[Table]] = {name: [] for name in self._names}
        for row in readable:
            key = (row[0], row[1])
            table = self._table(row, columns.get(key, []), keys.get(key, {}), checks.get(key, []))
            tables[key[0]].append(
                replace(
                    table,
                    foreign_keys=tuple(foreign.get(key, ())),
                    triggers=tuple(triggers.get(key, ())),
                )
            )
        views, notes = read_views(session, self._names, self._view_columns(columns))
        self.notes += notes
        schemas = []
        for number, name in enumerate(self._names):
            schema, notes = read_schema(session, name)
            self.notes += notes
            schemas.append(
                replace(
                    schema,
                    folder=f"schema{number}",
                    tables=tuple(tables[name]),
                    views=tuple(views.get(name, ())),
                )
            )
        users, roles, privileges, notes = read_rights(session, self._names)
        self.notes += notes
        whole = Database(
            address.database or address.host,
            schemas=tuple(schemas),
            database_product=f"{session.product.name} {session.version}",
            connection=address.url,
            database_user=str(session.value("SELECT CURRENT_USER()")),
            users=users,
            roles=roles,
            privileges=privileges,
        )
        self._warn_engines()
        one_state = set(self._engines) <= {"InnoDB"}
        return Catalogue(self._chosen(whole), self._relations, self.notes, one_state)

    # What there is

    def _schemas(self) -> list[str]:
        session = self._session
        if session.address.database:
            return [session.address.database]
        found = [
            row[0]
            for row in session.rows(
                "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1"
            )
            if row[0].lower() not in _SYSTEM and self._selection.takes_schema(row[0])
        ]
        if not found:
            raise UsageError(f"{session.address.url} has no database that is taken")
        return found

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._session.rows(sql.format(among=self._among), *self._names)

    def _is_readable(self, key: tuple[str, str]) -> bool:
        """Look at a table; from now on nobody alters it before its rows are read."""
        try:
            self._session.rows(f"SELECT 1 FROM {quote(*key)} LIMIT 0")
        except err.MySQLError as error:
            if error.args[0] == _NO_SUCH_TABLE:
                raise TableGone(".".join(key)) from error
            if error.args[0] not in _DENIED:
                raise
            if self._selection.tables:
                raise DatabaseError(f"{'.'.join(key)}: {sentence(error)}") from error
            self.notes.append(f"{'.'.join(key)} was not archived: the user may not read it")
            return False
        return True

    # Tables

    def _table(
        self,
        row: tuple[Any, ...],
        columns: list[_ColumnRow],
        keys: dict[str, _KeyRow],
        checks: list[CheckConstraint],
    ) -> Table:
        schema, name, kind, engine, comment, estimate, size, *_ = row
        flags = {c.name: check for c in columns if (check := self._flag(c, checks)) is not None}
        facts = {c.name: ColumnFacts(c.native, c.charset) for c in columns}
        primary = keys.get("PRIMARY")
        candidates = [k for k in keys.values() if k.name != "PRIMARY" and k.whole]
        made = tuple(self._column(schema, name, c, c.name in flags) for c in columns)
        self._relations[schema, name] = self._relation(
            (schema, name),
            engine,
            facts,
            [*([primary] if primary else []), *candidates],
            columns,
            size,
        )
        self._engines[engine or "no engine"].append(f"{schema}.{name}")
        if kind == "SYSTEM VERSIONED":
            self._note_history(schema, name)
        definition = self._session.rows(f"SHOW CREATE TABLE {quote(schema, name)}")[0][1]
        definition = without_schema(definition, schema)  # it may go to another one
        return Table(
            name,
            "",
            made,
            rows=int(estimate or 0),
            description=join_original(
                comment or None, Original(self._session.product.name, (definition,))
            ),
            primary_key=UniqueKey("PRIMARY", primary.columns)
            if primary and primary.whole
            else None,
            candidate_keys=tuple(UniqueKey(k.name, k.columns) for k in candidates),
            check_constraints=tuple(c for c in checks if c not in flags.values()),
        )

    def _flag(
        self, column: _ColumnRow, checks: Iterable[CheckConstraint]
    ) -> CheckConstraint | None:
        """The check by which a column says that it holds nothing but 0 and 1."""
        if column.type != "tinyint(1)":
            return None
        condition = f"{quote(column.name)} in (0,1)"
        if not self._session.product.checks_by_table:  # nor names them after columns
            return next((c for c in checks if c.condition == f"({condition})"), None)
        return next((c for c in checks if (c.name, c.condition) == (column.name, condition)), None)

    def _column(self, schema: str, table: str, row: _ColumnRow, flag: bool) -> Column:
        type_ = PredefinedType("BOOLEAN") if flag else archived_type(row.native)
        if self._selection.wants_text(schema, table, row.name):
            type_ = _CLOB
        return Column(
            row.name,
            type_,
            type_original=row.type,
            nullable=row.nullable,
            default_value=row.default,
            description=row.comment or None,
        )

    def _relation(
        self,
        key: tuple[str, str],
        engine: str | None,
        facts: dict[str, ColumnFacts],
        keys: list[_KeyRow],
        columns: list[_ColumnRow],
        size: int | None,
    ) -> Relation:
        nullable = {c.name for c in columns if c.nullable}
        usable = [
            k.columns
            for k in keys
            if k.whole
            and not nullable.intersection(k.columns)
            and all(name in facts and _finds(facts[name]) for name in k.columns)
        ]
        primary = keys[0] if keys and keys[0].name == "PRIMARY" and keys[0].whole else None
        order = self._selection.order_of(*key) or ""
        ranged = ""
        if not order and primary is not None and engine in _SNAPSHOTS:
            # Rows lie in the order of the primary key, so asking for that order costs nothing.
            order = ", ".join(quote(name) for name in primary.columns)
            first = facts.get(primary.columns[0])
            if len(primary.columns) == 1 and first and first.native and _is_integer(first.native):
                ranged = primary.columns[0]
        return Relation(
            quote(*key),
            facts,
            self._selection.where_of(*key) or "",
            order,
            usable[0] if usable else (),
            ranged,
            int(size or 0),
        )

    def _columns(self) -> dict[tuple[str, str], list[_ColumnRow]]:
        found: dict[tuple[str, str], list[_ColumnRow]] = defaultdict(list)
        for schema, table, name, default, nullable, type_, charset, extra, comment in self._rows(
            _COLUMNS
        ):
            found[schema, table].append(
                _ColumnRow(
                    name,
                    type_,
                    parse_native(type_),
                    charset,
                    nullable == "YES",
                    _default(
                        without_schema(default, schema) if default else None,
                        extra or "",
                        self._session.product.quoted_defaults,
                    ),
                    comment,
                )
            )
        return found

    def _keys(self) -> dict[tuple[str, str], dict[str, _KeyRow]]:
        found: dict[tuple[str, str], dict[str, _KeyRow]] = defaultdict(dict)
        for schema, table, name, column, part in self._rows(_INDEXES):
            known = found[schema, table].get(name, _KeyRow(name, (), True))
            found[schema, table][name] = _KeyRow(
                name, (*known.columns, column or ""), known.whole and part is None and bool(column)
            )
        return found

    def _foreign(self) -> dict[tuple[str, str], list[ForeignKey]]:
        found: dict[tuple[str, str], dict[str, ForeignKey]] = defaultdict(dict)
        for row in self._rows(_FOREIGN):
            schema, table, name, column, *there, update, delete = row
            known = found[schema, table].get(name) or ForeignKey(
                name, there[0], there[1], (), "SIMPLE", delete, update
            )
            pair = Reference(column, there[2])
            found[schema, table][name] = replace(known, references=(*known.references, pair))
        return {key: list(keys.values()) for key, keys in found.items()}

    def _checks(self) -> dict[tuple[str, str], list[CheckConstraint]]:
        sql = _CHECKS if self._session.product.checks_by_table else _MYSQL_CHECKS
        found: dict[tuple[str, str], list[CheckConstraint]] = defaultdict(list)
        for schema, table, name, condition in self._rows(sql):
            found[schema, table].append(CheckConstraint(name, condition))
        return found

    def _view_columns(
        self, columns: dict[tuple[str, str], list[_ColumnRow]]
    ) -> dict[tuple[str, str], tuple[Column, ...]]:
        return {
            key: tuple(self._column(*key, row, flag=False) for row in rows)
            for key, rows in columns.items()
        }

    def _note_history(self, schema: str, name: str) -> None:
        place = quote(schema, name)
        (ever, now), *_ = self._session.rows(
            f"SELECT (SELECT COUNT(*) FROM {place} FOR SYSTEM_TIME ALL),"
            f" (SELECT COUNT(*) FROM {place})"
        )
        if ever > now:
            self.notes.append(
                f"{schema}.{name} keeps a history: its {now} rows of today were archived, the "
                f"{ever - now} of the past were not; to have them as well, add: --query "
                f"'{name}_history=SELECT * FROM {place} FOR SYSTEM_TIME ALL'"
            )

    def _warn_engines(self) -> None:
        for engine, names in self._engines.items():
            if engine not in _SNAPSHOTS:
                shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
                self.notes.append(
                    f"{engine} has no snapshots: if others wrote to {shown} meanwhile, the archive "
                    "may hold some of that and not the rest"
                )

    # What is taken

    def _chosen(self, whole: Database) -> Database:
        selection = self._selection
        views = [(s.name, v.name) for s in whole.schemas for v in s.views]
        selection.check(whole, views, self._left)
        pruned = selection.prune(whole)
        schemas = [
            replace(
                schema,
                tables=(*schema.tables, *self._view_tables(schema)),
                views=selection.other_views(schema),
            )
            for schema in pruned.schemas
        ]
        if selection.queries:
            schemas[0] = self._with_queries(schemas[0])
        return replace(pruned, schemas=tuple(_numbered(n, s) for n, s in enumerate(schemas)))

    def _view_tables(self, schema: Schema) -> Iterator[Table]:
        for view in schema.views:
            if self._selection.takes_view(schema.name, view.name):
                key = schema.name, view.name
                facts = {c.name: ColumnFacts(c.native, c.charset) for c in self._known[key]}
                where, order = self._selection.where_of(*key), self._selection.order_of(*key)
                self._relations[key] = Relation(quote(*key), facts, where or "", order or "")
                columns = tuple(map(_of_a_new_table, view.columns))
                yield Table(view.name, "", columns, description=view_words(view))

    def _with_queries(self, schema: Schema) -> Schema:
        taken = {t.name for t in schema.tables} | {v.name for v in schema.views}
        tables = list(schema.tables)
        for name, query in self._selection.queries.items():
            if name in taken:
                raise UsageError(
                    f"{schema.name}.{name} exists already; give the query another name"
                )
            text = query.rstrip().rstrip(";")
            with translated(f"the query {name}"):
                columns, facts = self._result_facts(text)
            as_text = tuple(
                replace(c, type=_CLOB)
                if self._selection.wants_text(schema.name, name, c.name)
                else c
                for c in columns
            )
            self._relations[schema.name, name] = Relation(f"({text}) AS q", facts)
            tables.append(Table(name, "", as_text, description=query_words(query)))
        return replace(schema, tables=tuple(tables))

    def _result_facts(self, query: str) -> tuple[tuple[Column, ...], dict[str, ColumnFacts]]:
        found = query_columns(self._session, query)
        facts = {name: ColumnFacts(native, charset) for name, native, charset in found}
        columns = tuple(
            Column(name, archived_type(native), type_original=str(native), nullable=True)
            for name, native, _ in found
        )
        return columns, facts


def _of_a_new_table(column: Column) -> Column:
    """A view's column as a table has it: the server marks times that it computes as old ones."""
    original = (column.type_original or "").removesuffix(" /* mariadb-5.3 */")
    return replace(column, type_original=original or None)


@dataclass(frozen=True, slots=True)
class _ColumnRow:
    name: str
    type: str
    native: NativeType | None
    charset: str | None
    nullable: bool
    default: str | None
    comment: str | None


@dataclass(frozen=True, slots=True)
class _KeyRow:
    name: str
    columns: tuple[str, ...]
    whole: bool  # not of the first characters of a column, nor of an expression


def _numbered(number: int, schema: Schema) -> Schema:
    tables = tuple(replace(t, folder=f"table{n}") for n, t in enumerate(schema.tables))
    return replace(schema, folder=f"schema{number}", tables=tables)


def _default(text: str | None, extra: str, quoted: bool) -> str | None:
    """The default as SQL writes it."""
    if text is None or (quoted and text == "NULL"):
        return None
    if quoted or "DEFAULT_GENERATED" in extra or text.startswith("CURRENT_TIMESTAMP"):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _is_integer(native: NativeType) -> bool:
    return native.name in ("tinyint", "smallint", "mediumint", "int", "bigint")


def _finds(facts: ColumnFacts) -> bool:
    """Whether a value of this type, written as a literal, finds its row by an index."""
    native = facts.native
    if native is None or native.name in SPATIAL | {"float", "double", "bit", "enum", "set", "year"}:
        return False
    return facts.charset in (None, "utf8mb4", "utf8mb3", "utf8", "ascii", "latin1")


_TABLES = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COMMENT, TABLE_ROWS, DATA_LENGTH
FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({among}) ORDER BY TABLE_SCHEMA, TABLE_NAME
"""
_COLUMNS = """
SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE,
CHARACTER_SET_NAME, EXTRA, COLUMN_COMMENT
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA IN ({among})
ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
"""
_INDEXES = """
SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART
FROM information_schema.STATISTICS WHERE NON_UNIQUE=0 AND TABLE_SCHEMA IN ({among})
ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME<>'PRIMARY', INDEX_NAME, SEQ_IN_INDEX
"""
_FOREIGN = """
SELECT k.TABLE_SCHEMA, k.TABLE_NAME, k.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_SCHEMA,
k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME, r.UPDATE_RULE, r.DELETE_RULE
FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r
ON r.CONSTRAINT_SCHEMA=k.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME=k.CONSTRAINT_NAME
AND r.TABLE_NAME=k.TABLE_NAME
WHERE k.REFERENCED_TABLE_NAME IS NOT NULL AND k.TABLE_SCHEMA IN ({among})
ORDER BY k.TABLE_SCHEMA, k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION
"""
_CHECKS = """
SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, CHECK_CLAUSE
FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA IN ({among}) ORDER BY 1, 2, 3
"""
_MYSQL_CHECKS = """
SELECT t.TABLE_SCHEMA, t.TABLE_NAME, c.CONSTRAINT_NAME, c.CHECK_CLAUSE
FROM information_schema.CHECK_CONSTRAINTS c JOIN information_schema.TABLE_CONSTRAINTS t
ON t.CONSTRAINT_SCHEMA=c.CONSTRAINT_SCHEMA AND t.CONSTRAINT_NAME=c.CONSTRAINT_NAME
WHERE t.CONSTRAINT_TYPE='CHECK' AND t.ENFORCED='YES' AND t.TABLE_SCHEMA IN ({among})
ORDER BY 1, 2, 3
"""
