"""Any database that SQLAlchemy has a dialect for, as a target.

Tables, rows, keys, then views: in one transaction where the product can undo definitions, else the
tables that were made are removed again if the work fails. Existing tables are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import AddConstraint, CreateSchema, CreateTable

from muniment.databases.generic import connect, translated
from muniment.databases.generic_types import column_type
from muniment.databases.loading import Kept, RowLoader, read_lob
from muniment.errors import DatabaseError, UsageError
from muniment.finished import DATABASE, appearing
from muniment.sql.batch import Batch
from muniment.sql.flat import FlatNames, flat_names, flat_notes, has_several_schemas
from muniment.sql.leftout import (
    LeftOut,
    left_out_rights,
    left_out_routine,
    left_out_trigger,
    left_out_view,
)
from muniment.sql.model import (
    Database,
    ForeignKey,
    Leaf,
    Schema,
    Table,
    View,
    shape_of,
)
from muniment.sql.original import split_original
from muniment.sql.stores import OpenLob
from muniment.sql.translate import (
    NotTranslatable,
    make_in_turn,
    translated_expression,
    translated_view,
    translation_note,
)
from muniment.sql.types import PredefinedType

__all__ = ["GenericTarget", "create_target"]

_WITH_SCHEMAS = {"postgresql", "mssql"}  # where CREATE SCHEMA makes a place within the database
_UNDOES_DEFINITIONS = {"postgresql", "mssql", "sqlite"}
# sqlglot's names for the languages of dialects
_LANGUAGES = {"postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql", "sqlite": "sqlite",
              "oracle": "oracle", "mssql": "tsql"}  # fmt: skip


@contextmanager
def create_target(url: str, *, replace: bool = False) -> Iterator[GenericTarget]:
    """Open a database for writing; it keeps the work only if the block succeeds."""
    if replace:
        raise UsageError(
            "--replace is not for databases that are reached through SQLAlchemy; remove the "
            "tables first, or name another database"
        )
    with connect(url) as connection:
        target = GenericTarget(connection)
        try:
            yield target
        except BaseException:
            target.undo()
            raise


class GenericTarget:
    """A database behind SQLAlchemy as a target."""

    runs_originals = False  # only keys are made again, whatever the product

    def __init__(self, connection: sa.Connection) -> None:
        self.notes: list[str] = []
        self.left_out: list[LeftOut] = []
        self._connection = connection
        self._dialect = connection.dialect.name
        self._language = _LANGUAGES.get(self._dialect)
        self._made: list[sa.Table] = []
        self._tables: dict[tuple[str, str], sa.Table] = {}
        self._meta = sa.MetaData()
        if self._dialect == "sqlite":  # its driver would commit before each definition
            connection.exec_driver_sql("BEGIN")

    def define(self, database: Database) -> None:
        """Create the tables with their primary and candidate keys."""
        self._database = database
        self._flat = self._dialect not in _WITH_SCHEMAS
        self._prefixed = self._flat and has_several_schemas(database)
        self._names: FlatNames = flat_names(database) if self._flat else {}
        if self._flat:
            self.notes += flat_notes(database, self._names)
        self._refuse_existing(database)
        if not self._flat:
            self._make_schemas(database)
        for schema, table in database.tables():
            self._create(schema, table)

    def encoder(self, schema: Schema, table: Table) -> Callable[[Iterable[Batch]], Kept]:
        """Return what a worker does with batches: nothing."""
        return Kept

    def write(self, schema: Schema, table: Table, pieces: Iterable[Kept], open_lob: OpenLob) -> int:
        """Insert the rows, each batch in one go."""
        made = self._tables[schema.name, table.name]
        where = f"{schema.name}.{table.name}"
        shapes = [shape_of(self._database, schema.name, column) for column in table.columns]
        names = [f"p{k}" for k in range(len(table.columns))]
        marks: dict[str, Any] = {
            c.name: sa.bindparam(n) for c, n in zip(made.columns, names, strict=True)
        }
        insert = made.insert().values(marks)
        load = RowLoader(where, table, shapes, partial(read_lob, open_lob, schema, table))
        rows = 0
        with translated(where):
            for piece in pieces:
                for batch in piece.batches:
                    found = load(batch, rows + 1)
                    self._connection.execute(
                        insert, [dict(zip(names, row, strict=True)) for row in found]
                    )
                    rows += batch.rows
            count = sa.select(sa.func.count()).select_from(made)
            stored = self._connection.execute(count).scalar_one()
        if stored != rows:
            raise DatabaseError(f"{where} has {rows} rows, but the database kept {stored}")
        return rows

    def finish(self, database: Database) -> None:
        """Add what needs the rows, then keep it all."""
        for schema, table in database.tables():
            for key in table.foreign_keys:
                self._add_foreign_key(schema, table, key)
            self._add_checks(schema, table)
            for trigger in table.triggers:
                reason = "triggers are not made through SQLAlchemy"
                self.left_out.append(left_out_trigger(schema, table, trigger, reason))
        self._make_views(database)
        for schema in database.schemas:
            for routine in schema.routines:
                reason = "routines are not made through SQLAlchemy"
                self.left_out.append(left_out_routine(schema, routine, reason))
        self.left_out += left_out_rights(database, "rights are not made through SQLAlchemy")
        with translated("keeping the work"), appearing(DATABASE):
            self._connection.commit()
            self._made = []

    def undo(self) -> None:
        """Leave the database as it was."""
        with suppress(SQLAlchemyError):
            self._connection.rollback()
        if self._dialect in _UNDOES_DEFINITIONS:
            return
        for table in reversed(self._made):
            with suppress(SQLAlchemyError):
                table.drop(self._connection)
        with suppress(SQLAlchemyError):
            self._connection.commit()

    # Definitions

    def _refuse_existing(self, database: Database) -> None:
        inspector = sa.inspect(self._connection)
        places = {self._place(s, "")[0] for s in database.schemas}
        known = set(inspector.get_schema_names()) | {None}
        there = {
            (place, name)
            for place in places
            if place in known
            for name in (*inspector.get_table_names(place), *inspector.get_view_names(place))
        }
        coming = {
            self._place(s, name)
            for s in database.schemas
            for name in (*(t.name for t in s.tables), *(v.name for v in s.views))
        }
        if clash := sorted(name for place, name in there & coming):
            raise UsageError(
                f"the database has {', '.join(clash[:8])} already; name another database"
            )

    def _make_schemas(self, database: Database) -> None:
        there = set(sa.inspect(self._connection).get_schema_names())
        for schema in database.schemas:
            if schema.name not in there:
                with translated(f"schema {schema.name}"):
                    self._connection.execute(CreateSchema(schema.name))

    def _place(self, schema: Schema | str, name: str) -> tuple[str | None, str]:
        home = schema if isinstance(schema, str) else schema.name
        if not self._flat:
            return home, name
        unknown = f"{home}_{name}" if self._prefixed else name
        return None, self._names.get((home, name), unknown)

    def _create(self, schema: Schema, table: Table) -> None:
        where = f"{schema.name}.{table.name}"
        columns = [self._column(schema, table, column.name) for column in table.columns]
        place, name = self._place(schema, table.name)
        keys: list[Any] = []
        if table.primary_key:
            key = table.primary_key
            keys.append(sa.PrimaryKeyConstraint(*key.columns, name=self._key_name(key.name)))
        for candidate in table.candidate_keys:
            label = self._key_name(candidate.name)
            keys.append(sa.UniqueConstraint(*candidate.columns, name=label))
        if self._dialect == "sqlite":  # which has no ALTER TABLE ADD CONSTRAINT
            keys += [self._foreign_key(schema, key) for key in table.foreign_keys]
        words, _ = split_original(table.description)
        made = sa.Table(name, self._meta, *columns, *keys, schema=place, comment=words, quote=True)
        with translated(where):
            self._connection.execute(CreateTable(made))
            if self._connection.dialect.supports_comments and not (
                self._connection.dialect.inline_comments
            ):
                self._comment(made)
        self._made.append(made)
        self._tables[schema.name, table.name] = made

    def _comment(self, made: sa.Table) -> None:
        if made.comment:
            self._connection.execute(sa.schema.SetTableComment(made))
        for column in made.columns:
            if column.comment:
                self._connection.execute(sa.schema.SetColumnComment(column))

    def _key_name(self, name: str) -> Any:
        return sa.sql.quoted_name(name, True)

    def _column(self, schema: Schema, table: Table, name: str) -> sa.Column[Any]:
        column = next(c for c in table.columns if c.name == name)
        shape = shape_of(self._database, schema.name, column)
        type_ = shape.type if isinstance(shape, Leaf) else PredefinedType("CLOB")
        if column.default_value:
            # Its syntax differs most between products, and nothing says what it would do.
            where = f"of {schema.name}.{table.name}.{name}"
            reason = "defaults are not made through SQLAlchemy"
            sql = f"DEFAULT {column.default_value}"
            self.left_out.append(LeftOut("default", where, reason, sql))
        return sa.Column(
            name,
            column_type(type_),
            nullable=column.nullable is not False,
            autoincrement=False,
            comment=column.description,
            quote=True,
        )

    def _foreign_key(self, schema: Schema, key: ForeignKey) -> sa.ForeignKeyConstraint:
        place, parent = self._place(key.referenced_schema, key.referenced_table)
        columns = [r.column for r in key.references]
        # The table referred to is known by now, or named in words: quoted names need the object.
        target = self._stub(place, parent, key)
        actions = ("CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT")
        return sa.ForeignKeyConstraint(
            columns,
            [target.columns[r.referenced] for r in key.references],
            name=self._key_name(key.name),
            ondelete=key.delete_action if key.delete_action in actions else None,
            onupdate=key.update_action if key.update_action in actions else None,
        )

    def _stub(self, place: str | None, name: str, key: ForeignKey) -> sa.Table:
        columns = [sa.Column(r.referenced, sa.Integer, quote=True) for r in key.references]
        return sa.Table(name, sa.MetaData(), *columns, schema=place, quote=True)

    def _add_foreign_key(self, schema: Schema, table: Table, key: ForeignKey) -> None:
        if self._dialect == "sqlite":
            return  # it came with the table
        made = self._tables[schema.name, table.name]
        constraint = self._foreign_key(schema, key)
        made.append_constraint(constraint)
        statement = AddConstraint(constraint)
        self._try("foreign key", f"{key.name} of {schema.name}.{table.name}", statement)

    def _add_checks(self, schema: Schema, table: Table) -> None:
        made = self._tables[schema.name, table.name]
        for check in table.check_constraints:
            name = f"{check.name} of {schema.name}.{table.name}"
            sql = f"CHECK ({check.condition})"
            try:
                if self._language is None or self._dialect == "sqlite":
                    raise NotTranslatable("no check can be added to a table of this product")
                condition = translated_expression(
                    self._database, schema, check.condition, self._language
                )
            except NotTranslatable as error:
                self.left_out.append(LeftOut("check constraint", name, str(error), sql))
                continue
            rule = sa.CheckConstraint(sa.text(condition), name=self._key_name(check.name))
            made.append_constraint(rule)
            self._try("check constraint", name, AddConstraint(rule), sql)

    def _make_views(self, database: Database) -> None:
        views = {(s.name, v.name): (s, v) for s in database.schemas for v in s.views}
        queries: dict[tuple[str, str], list[str]] = {}
        reasons: dict[tuple[str, str], str] = {}
        for key, (schema, view) in views.items():
            try:
                queries[key] = [self._view_sql(database, schema, view)]
            except NotTranslatable as error:
                reasons[key] = str(error)
        reasons |= make_in_turn(queries, lambda _, sql: self._refusal(sa.text(_literal(sql))))
        for key, reason in reasons.items():
            self.left_out.append(left_out_view(*views[key], reason))
        made = [".".join(key) for key in views if key not in reasons]
        if made:
            self.notes.append(translation_note(database, self._dialect, made))

    def _view_sql(self, database: Database, schema: Schema, view: View) -> str:
        if self._language is None:
            raise NotTranslatable("views cannot be translated into the SQL of this product")

        def move(home: str, name: str) -> tuple[str, str]:
            place, moved = self._place(home, name)
            return place or "", moved

        query = translated_view(database, schema, view, self._language, move)
        quote = self._connection.dialect.identifier_preparer.quote_identifier
        place, name = self._place(schema, view.name)
        full = f"{quote(place)}.{quote(name)}" if place else quote(name)
        columns = ", ".join(quote(column.name) for column in view.columns)
        return f"CREATE VIEW {full} {f'({columns})' if columns else ''} AS {query}"

    def _try(self, kind: str, name: str, statement: Any, sql: str | None = None) -> None:
        reason = self._refusal(statement)
        if reason is not None:
            text = sql or str(statement.compile(dialect=self._connection.dialect)).strip()
            self.left_out.append(LeftOut(kind, name, reason, text))

    def _refusal(self, statement: Any) -> str | None:
        """Run a definition; return why that fails, with nothing of it left."""
        try:
            if self._dialect in _UNDOES_DEFINITIONS:
                with self._connection.begin_nested():
                    self._connection.execute(statement)
            else:
                self._connection.execute(statement)
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            return str(cause).strip().partition("\n")[0]
        return None


def _literal(sql: str) -> str:
    """A colon starts no parameter."""
    return sql.replace(":", r"\:")
