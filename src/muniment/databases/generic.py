"""Any database that SQLAlchemy has a dialect for, as a source: ``sqlalchemy+DIALECT://…``.

Definitions come from SQLAlchemy's inspector, rows from the driver's cursor, in one transaction. The
names of Oracle and Db2 are those of SQLAlchemy: lower case where the database folds case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from muniment.databases.cursor_source import CursorSource
from muniment.databases.generic_types import sql_type
from muniment.errors import DatabaseError, UnknownType, UsageError
from muniment.sql.model import (
    CheckConstraint,
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
from muniment.sql.selection import Selection, view_words
from muniment.sql.types import PredefinedType

__all__ = ["GenericSource", "connect", "open_source", "translated"]

# The level at which one transaction sees one state of the database.
_SNAPSHOT = {
    "postgresql": "REPEATABLE READ",
    "mysql": "REPEATABLE READ",
    "mariadb": "REPEATABLE READ",
    "oracle": "SERIALIZABLE",
    "mssql": "SNAPSHOT",
    "ibm_db_sa": "RR",
}
_SYSTEM = {
    "information_schema", "performance_schema", "mysql", "sys", "guest", "pg_catalog", "pg_toast",
    "db_owner", "db_accessadmin", "db_securityadmin", "db_ddladmin", "db_backupoperator",
    "db_datareader", "db_datawriter", "db_denydatareader", "db_denydatawriter",
}  # fmt: skip
_OWN_SCHEMA_ONLY = {"oracle", "ibm_db_sa", "mysql", "mariadb"}  # the others are other databases
_PREFIX = "sqlalchemy+"


@contextmanager
def connect(url: str, **options: Any) -> Iterator[sa.Connection]:
    """Open a connection; errors are sentences without a password."""
    try:
        parsed = sa.make_url(url.removeprefix(_PREFIX))
        if parsed.username and parsed.password is None and "MUNIMENT_PASSWORD" in os.environ:
            parsed = parsed.set(password=os.environ["MUNIMENT_PASSWORD"])
        engine = sa.create_engine(parsed, poolclass=sa.NullPool, **options)
    except ModuleNotFoundError as error:
        raise DatabaseError(
            f"the driver {error.name} is not installed; install it with pip, or name another one "
            "in the URL, as in sqlalchemy+oracle+oracledb://…"
        ) from error
    except (SQLAlchemyError, ValueError, TypeError) as error:
        raise UsageError(f"SQLAlchemy does not understand the URL: {_first_line(error)}") from error
    try:
        with translated(parsed.render_as_string(hide_password=True)), engine.connect() as found:
            yield found
    finally:
        engine.dispose()


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn SQLAlchemy's errors into ours."""
    try:
        yield
    except SQLAlchemyError as error:
        raise DatabaseError(f"{doing}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    return (str(cause).strip() or type(cause).__name__).partition("\n")[0]


@contextmanager
def open_source(
    url: str, selection: Selection, *, inline_limit: int = 4000
) -> Iterator[GenericSource]:
    """Open a database for reading."""
    if selection.queries:
        raise UsageError("--query is not for databases that are read through SQLAlchemy")
    with connect(url) as connection:
        source = GenericSource(connection, selection, inline_limit)
        try:
            yield source
        finally:
            source.close()


class GenericSource(CursorSource):
    """A database behind SQLAlchemy as a source."""

    def __init__(self, connection: sa.Connection, selection: Selection, limit: int) -> None:
        super().__init__(selection, limit)
        self._connection = connection
        self._dialect = connection.dialect.name
        self._begin()
        with translated("reading the definitions"):
            self._database = self._described()

    def size(self) -> int:
        """Nobody knows; enough that workers would be worth it if there could be any."""
        return 1

    def _begin(self) -> None:
        """Let all statements see one state, if the database can do that."""
        level = _SNAPSHOT.get(self._dialect)
        try:
            if level:
                self._connection.execution_options(isolation_level=level)
            if self._dialect == "sqlite":
                self._connection.exec_driver_sql("BEGIN")
            self._connection.execute(sa.text("SELECT 1" + self._nowhere()))
        except SQLAlchemyError:
            level = None
            self._connection.rollback()
        if level is None and self._dialect != "sqlite":
            self.notes.append(
                "the tables were read one after the other, and may be of different states of the "
                "database: no isolation level for one state is known or allowed here"
            )

    def _nowhere(self) -> str:
        return {"oracle": " FROM dual", "ibm_db_sa": " FROM sysibm.sysdummy1"}.get(
            self._dialect, ""
        )

    # Definitions

    def _described(self) -> Database:
        inspector = sa.inspect(self._connection)
        self._left: list[tuple[str, str]] = []  # tables that are not wanted
        names = [name for name in self._schema_names(inspector) if self._takes(name)]
        built = [self._schema(inspector, number, name) for number, name in enumerate(names)]
        views = [(s.name, v.name) for s in built for v in s.views]
        version = ".".join(map(str, self._connection.dialect.server_version_info or ()))
        url = self._connection.engine.url
        whole = Database(
            url.database or self._dialect,
            database_product=f"{self._product()} {version}".strip(),
            connection=url.set(password=None).render_as_string(),
            database_user=url.username,
            schemas=tuple(built),
        )
        self._selection.check(whole, views, self._left)
        whole = self._with_views(inspector, whole)
        return self._selection.with_text(self._selection.prune(whole))

    def _product(self) -> str:
        names = {"postgresql": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB",
                 "sqlite": "SQLite", "oracle": "Oracle", "mssql": "Microsoft SQL Server",
                 "ibm_db_sa": "Db2"}  # fmt: skip
        if getattr(self._connection.dialect, "is_mariadb", False):
            return "MariaDB"
        return names.get(self._dialect, self._dialect)

    def _schema_names(self, inspector: Any) -> list[str]:
        own = inspector.default_schema_name
        if self._dialect in _OWN_SCHEMA_ONLY and not self._selection.schemas:
            return [own]
        found = [name for name in inspector.get_schema_names() if name is not None]
        kept = [n for n in found if n.lower() not in _SYSTEM and not n.startswith("pg_")]
        return kept or [own or "main"]

    def _takes(self, schema: str) -> bool:
        return self._selection.takes_schema(schema)

    def _schema(self, inspector: Any, number: int, name: str) -> Schema:
        place = self._place(name)
        found = sorted(inspector.get_table_names(schema=place))
        wanted = [table for table in found if self._selection.takes(name, table)]
        self._left += ((name, table) for table in set(found).difference(wanted))
        tables = [self._table(inspector, place, name, k, t) for k, t in enumerate(wanted)]
        views = [self._view(inspector, place, view)
                 for view in sorted(inspector.get_view_names(schema=place))]  # fmt: skip
        return Schema(name, f"schema{number}", tables=tuple(tables), views=tuple(views))

    def _place(self, schema: str) -> str | None:
        """What SQLAlchemy calls a schema: nothing at all where there is but one."""
        return None if self._dialect == "sqlite" else schema

    def _table(self, inspector: Any, place: str | None, schema: str, k: int, name: str) -> Table:
        columns = self._columns(inspector, place, schema, name)
        primary = inspector.get_pk_constraint(name, schema=place)
        pk = primary.get("constrained_columns") or ()
        described = Table(
            name,
            f"table{k}",
            columns,
            description=self._comment(inspector, place, name),
            primary_key=UniqueKey(primary.get("name") or f"{name}_pk", tuple(pk)) if pk else None,
            foreign_keys=tuple(self._foreign_keys(inspector, place, schema, name)),
            candidate_keys=tuple(self._candidates(inspector, place, name)),
            check_constraints=tuple(self._checks(inspector, place, name)),
        )
        indexes = tuple(self._indexes(inspector, place, name, described))
        if not indexes:
            return described
        text = join_original(described.description, Original(self._product(), indexes))
        return replace(described, description=text)

    def _columns(
        self, inspector: Any, place: str | None, schema: str, name: str
    ) -> tuple[Column, ...]:
        found = []
        for column in inspector.get_columns(name, schema=place):
            type_ = column["type"]
            known = sql_type(type_)
            if known is None and not self._selection.wants_text(schema, name, column["name"]):
                raise UnknownType(f"{schema}.{name}.{column['name']}", repr(type_))
            found.append(
                Column(
                    column["name"],
                    known or PredefinedType("CLOB"),
                    self._spelt(type_),
                    nullable=bool(column.get("nullable", True)),
                    default_value=column.get("default"),
                    description=column.get("comment"),
                )
            )
        return tuple(found)

    def _spelt(self, type_: Any) -> str | None:
        try:
            return str(type_.compile(dialect=self._connection.dialect))
        except (SQLAlchemyError, AttributeError):
            return repr(type_)

    def _comment(self, inspector: Any, place: str | None, name: str) -> str | None:
        try:
            text: str | None = inspector.get_table_comment(name, schema=place).get("text")
        except NotImplementedError:
            return None
        return text

    def _foreign_keys(
        self, inspector: Any, place: str | None, schema: str, name: str
    ) -> Iterator[ForeignKey]:
        for number, key in enumerate(inspector.get_foreign_keys(name, schema=place)):
            pairs = zip(key["constrained_columns"], key["referred_columns"], strict=True)
            options = key.get("options") or {}
            yield ForeignKey(
                key.get("name") or f"{name}_fk{number}",
                key.get("referred_schema") or schema,
                key["referred_table"],
                tuple(Reference(a, b) for a, b in pairs),
                delete_action=(options.get("ondelete") or "NO ACTION").upper(),
                update_action=(options.get("onupdate") or "NO ACTION").upper(),
            )

    def _candidates(self, inspector: Any, place: str | None, name: str) -> Iterator[UniqueKey]:
        try:
            found = inspector.get_unique_constraints(name, schema=place)
        except NotImplementedError:
            found = [
                {"name": i["name"], "column_names": i["column_names"]}
                for i in inspector.get_indexes(name, schema=place)
                if i["unique"]
            ]
        for number, key in enumerate(found):
            yield UniqueKey(key.get("name") or f"{name}_uq{number}", tuple(key["column_names"]))

    def _checks(self, inspector: Any, place: str | None, name: str) -> Iterator[CheckConstraint]:
        try:
            found = inspector.get_check_constraints(name, schema=place)
        except NotImplementedError:
            note = "check constraints could not be read: the driver does not tell them"
            self.notes += [] if note in self.notes else [note]
            return
        for number, check in enumerate(found):
            yield CheckConstraint(check.get("name") or f"{name}_ck{number}", check["sqltext"])

    def _indexes(self, inspector: Any, place: str | None, name: str, table: Table) -> Iterator[str]:
        """Yield the indexes that are no keys, for people to read."""
        keys = {key.name for key in table.candidate_keys}
        quote = self._connection.dialect.identifier_preparer.quote
        for index in inspector.get_indexes(name, schema=place):
            columns = index.get("expressions") or index["column_names"]
            if index.get("duplicates_constraint") or index["name"] in keys or None in columns:
                continue
            unique = "UNIQUE " if index["unique"] else ""
            listed = ", ".join(quote(str(column)) for column in columns)
            head = f"CREATE {unique}INDEX {quote(str(index['name']))}"
            yield f"{head} ON {quote(name)} ({listed})"

    def _view(self, inspector: Any, place: str | None, name: str) -> View:
        query: str | None = None
        try:
            query = inspector.get_view_definition(name, schema=place)
        except (NotImplementedError, SQLAlchemyError):
            self.notes.append(f"the text of the view {name} could not be read")
        columns = tuple(
            Column(
                column["name"],
                sql_type(column["type"]) or PredefinedType("CLOB"),
                self._spelt(column["type"]),
                nullable=True,
            )
            for column in inspector.get_columns(name, schema=place)
        )
        return View(name, columns, query_original=query)

    def _with_views(self, inspector: Any, database: Database) -> Database:
        """Add the views whose rows are wanted as tables."""
        schemas = []
        for schema in database.schemas:
            wanted = [v for v in schema.views if self._selection.takes_view(schema.name, v.name)]
            start, place = len(schema.tables), self._place(schema.name)
            more = tuple(
                Table(
                    v.name,
                    f"table{n}",
                    self._columns(inspector, place, schema.name, v.name),
                    description=view_words(v),
                )
                for n, v in enumerate(wanted, start)
            )
            others = self._selection.other_views(schema)
            schemas.append(replace(schema, tables=(*schema.tables, *more), views=others))
        chosen = replace(self._selection, tables=(), exclude=())
        self._selection = chosen  # what is not wanted is not among the tables any more
        return replace(database, schemas=tuple(schemas))

    # Rows

    def _rows(self, schema: Schema, table: Table) -> Iterator[Sequence[Any]]:
        quote = self._connection.dialect.identifier_preparer.quote
        columns = ", ".join(quote(column.name) for column in table.columns)
        place = quote(table.name)
        if (home := self._place(schema.name)) is not None:
            place = f"{quote(home)}.{place}"
        sql = f"SELECT {columns} FROM {place}"
        if condition := self._selection.where_of(schema.name, table.name):
            sql += f" WHERE {condition}"
        order = self._selection.order_of(schema.name, table.name)
        if order is None and table.primary_key:
            order = ", ".join(quote(name) for name in table.primary_key.columns)
        if order:
            sql += f" ORDER BY {order}"
        with translated(f"{schema.name}.{table.name}"):
            # Without parameters no driver takes a percent sign for the start of one.
            options = {"stream_results": True, "yield_per": 500, "no_parameters": True}
            for row in self._connection.exec_driver_sql(sql, execution_options=options):
                yield tuple(row)
