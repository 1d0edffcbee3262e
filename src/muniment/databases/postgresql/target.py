"""PostgreSQL as a target: one transaction, so that all of an archive is there or nothing.

Types, sequences, routines and tables come first, then the rows by COPY, then keys, indexes, views,
triggers and comments. An archive of PostgreSQL brings its own definitions along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

from muniment.databases.naming import refuse_long_names
from muniment.databases.postgresql.builder import Builder, Item
from muniment.databases.postgresql.completion import Completion
from muniment.databases.postgresql.connection import (
    Connection,
    connect,
    connection_options,
    copy_in,
    execute,
    is_missing_database,
    quote,
    rows,
)
from muniment.databases.postgresql.occupants import drop_occupants, occupants
from muniment.databases.postgresql.pieces import (
    PostgresqlEncoder,
    PostgresqlPiece,
    copy_chunks,
    cut_rows,
)
from muniment.databases.postgresql.roles import make_roles
from muniment.databases.postgresql.statements import (
    final_stage,
    is_database_setting,
    is_early,
    kind_and_name,
    moved,
    own_row_count,
)
from muniment.databases.postgresql.tables import (
    LONGEST_NAME,
    byte_length,
    column_type,
    create_table_sql,
    create_types,
    names_sql,
)
from muniment.databases.postgresql.types import UNWRITABLE
from muniment.errors import DatabaseError, MunimentError, UsageError
from muniment.finished import DATABASE, appearing
from muniment.sql.batch import CELL, NULL, REF, ROW, Batch, cells_of
from muniment.sql.model import Column, Database, Leaf, Schema, Table, shape_of
from muniment.sql.original import split_original
from muniment.sql.stores import OpenLob
from muniment.sql.types import Kind, PredefinedType

__all__ = ["PostgresqlTarget", "create_target"]

_SETTINGS = {"search_path": "", "check_function_bodies": "off", "client_min_messages": "error"}
_PIECE = 1 << 20
_NUMBER = Leaf(PredefinedType("BIGINT"))


@contextmanager
def create_target(
    url: str, *, replace: bool = False, roles: bool = False
) -> Iterator[PostgresqlTarget]:
    """Open a database for a restore; what is written appears only if the block succeeds.

    A database that does not exist is created, and removed again if the block fails.
    """
    options = connection_options(url)
    made = False
    try:
        connection = connect(options, _SETTINGS)
    except DatabaseError as error:
        if not is_missing_database(error):
            raise
        _administer(options, "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'", error)
        connection, made = connect(options, _SETTINGS), True
    target = PostgresqlTarget(connection, replace, roles)
    if made:
        target.notes.append(f"the database {options['dbname']} did not exist and was created.")
    try:
        execute(connection, "BEGIN")
        yield target
        if target.finished:
            with appearing(DATABASE):
                execute(connection, "COMMIT", "to complete the restore")
                made = False
    finally:
        connection.close()  # which ends a transaction that was not committed
        if made:
            with suppress(MunimentError):
                _administer(options, "DROP DATABASE {name}", None)


def _administer(options: dict[str, Any], sql: str, missing: DatabaseError | None) -> None:
    """Run a statement about the database from another one of the server."""
    name = options.get("dbname", "")
    try:
        connection = connect({**options, "dbname": "postgres"})
        try:
            execute(connection, sql.format(name=quote(name)), f"to make the database {name}")
        finally:
            connection.close()
    except DatabaseError as error:
        raise DatabaseError(
            f"there is no database {name}, and it cannot be created: {error}"
        ) from (missing or error)


class PostgresqlTarget:
    """A PostgreSQL database that takes an archive."""

    def __init__(self, connection: Connection, replace: bool, roles: bool = False) -> None:
        self._connection, self._replace, self._roles = connection, replace, roles
        self._builder = Builder(connection)
        self.notes, self.left_out = self._builder.notes, self._builder.left_out
        self.finished = False
        self._later: list[Item] = []
        self._computed: dict[tuple[str, str], tuple[int, ...]] = {}
        self._objects: dict[tuple[str, str], tuple[int, ...]] = {}
        self._own: dict[tuple[str, str], int] = {}

    def define(self, database: Database) -> None:
        """Make schemas, types, sequences, routines and tables."""
        self._database = database
        self._same = (database.database_product or "").startswith("PostgreSQL")
        self._trusted = (database.producer_application or "").startswith("Muniment ")
        self._builder.names = dict(_schema_names(database)) if self._same else {}
        # The server would cut them in silence, and two of them might become one.
        refuse_long_names(database, "PostgreSQL", LONGEST_NAME, byte_length, "bytes")
        self._make_room(database)
        for schema in database.schemas:
            place = quote(schema.name)
            self._builder.run(f"CREATE SCHEMA IF NOT EXISTS {place}", f"schema {schema.name}")
        if self._same and self._roles:
            make_roles(self._builder, database)
        if self._same:
            for sql in _statements(database.description):
                if sql.startswith("CREATE EXTENSION "):
                    self._builder.make(Item("extension", sql.rpartition(" EXISTS ")[2], (sql,)))
        items = [*self._types_and_routines(database), *self._table_items(database)]
        failed = self._builder.settle(items)
        if any(item.kind == "type" for item, _ in failed):
            failed = self._make_types_otherwise(database, failed)
        for item, reason in failed:
            self._make_otherwise(database, item, reason)
        self._look_at_tables(database)

    def _make_types_otherwise(
        self, database: Database, failed: list[tuple[Item, str]]
    ) -> list[tuple[Item, str]]:
        """Make types from the model whose own definition does not work here; return the rest."""
        nearest = {thing: sql for schema in database.schemas for thing, sql in create_types(schema)}
        waiting = []
        for item, reason in failed:
            sql = nearest.get(item.name) if item.kind == "type" else None
            if sql is None or self._builder.attempt(sql):
                waiting.append(item)
            else:
                self._builder.notes.append(
                    f"type {item.name} was made by SQL:2008 types: {reason.rstrip('.')}."
                )
        return self._builder.settle(waiting)

    def _make_room(self, database: Database) -> None:
        """Refuse to touch what is there, unless all of it is replaced."""
        there = occupants(self._connection)
        coming, brought = set(), set()
        for schema in database.schemas:
            coming |= {f"{schema.name}.{table.name}" for table in schema.tables}
            coming |= {f"{schema.name}.{view.name}" for view in schema.views}
            brought |= {f"{schema.name}.{made.name}" for made in schema.types}
            brought |= {f"{schema.name}.{routine.name}" for routine in schema.routines}
        brought |= coming
        if self._replace:
            lost = sorted(name for kind, name in there if kind in "rvpmf" and name not in coming)
            if lost:
                shown = ", ".join(lost[:8]) + (" …" if len(lost) > 8 else "")
                raise UsageError(
                    f"the database also holds {shown}, which would be lost; restore into another"
                )
            drop_occupants(self._connection, there, coming)
            return
        taken = sorted({name for _, name in there if name in brought})
        if taken:
            shown = ", ".join(taken[:8]) + (" …" if len(taken) > 8 else "")
            raise UsageError(
                f"the database has {shown} already; restore into an empty one, choose another"
                " schema with --schema-map, or add --replace"
            )

    def _types_and_routines(self, database: Database) -> Iterator[Item]:
        for sql in _statements(database.description) if self._same else ():
            later = final_stage(sql) or is_database_setting(sql)
            if not later and not sql.startswith("CREATE EXTENSION "):
                yield _special_item(sql, "of the database")
        for schema in database.schemas:
            if not self._same:
                for thing, sql in create_types(schema):
                    yield Item("type", thing, (sql,), foreign=False)
                continue
            for sql in _statements(schema.description)[1:]:
                yield _special_item(sql, f"of schema {schema.name}")
            brought = {t.name: _statements(t.description) for t in schema.types}
            plain = dict(create_types(schema))
            for name, statements in brought.items():
                thing = f"{schema.name}.{name}"
                if statements:
                    yield Item("type", thing, statements)
                elif thing in plain:
                    yield Item("type", thing, (plain[thing],), foreign=False)
            for routine in schema.routines:
                if routine.source:
                    name = f"{schema.name}.{routine.specific_name}"
                    yield Item("routine", name, (routine.source,))

    def _table_items(self, database: Database) -> Iterator[Item]:
        for schema, table in database.tables():
            name = f"{schema.name}.{table.name}"
            block = _statements(table.description) if self._same else ()
            for sql in block:
                if (count := own_row_count(sql)) is not None:
                    self._own[schema.name, table.name] = count
            early = tuple(sql for sql in block if is_early(sql))
            unwritable = [c for c in table.columns if c.type_original in UNWRITABLE]
            if self._same and unwritable:
                reason = f"PostgreSQL takes no values of type {unwritable[0].type_original}"
                self._make_otherwise(database, Item("table", name, early), reason)
            elif early and early[0].startswith("CREATE"):
                yield Item("table", name, early)
            else:
                sql = create_table_sql(schema, table, self._same)
                yield Item("table", name, (sql,), foreign=False)

    def _make_otherwise(self, database: Database, item: Item, reason: str) -> None:
        """Make a table by its SQL:2008 types, if its own definition does not work here."""
        if item.kind != "table":
            self._later.append(item)
            return
        schema, table = next(
            (s, t) for s, t in database.tables() if item.name == f"{s.name}.{t.name}"
        )
        usable = {c.name for c in table.columns if self._same and self._is_known_type(schema, c)}
        nearest = create_table_sql(schema, table, usable)
        others = ", ".join(c.name for c in table.columns if c.name not in usable)
        by_types = f"{others} by SQL:2008 types" if others else "from its columns alone"
        by_types = by_types if usable else "by its SQL:2008 types"
        self._builder.notes.append(
            f"{schema.name}.{table.name} was made {by_types}: {reason.rstrip('.')}."
        )
        self._builder.remade.add(item.name)
        self._builder.run(nearest, f"table {schema.name}.{table.name}")

    def _is_known_type(self, schema: Schema, column: Column) -> bool:
        """Whether the server has the type that a column had."""
        own = column_type(column, schema.name, True)
        return (
            own not in UNWRITABLE
            and self._builder.attempt(f"SELECT NULL::{moved(own, self._builder.names)}") is None
        )

    def _look_at_tables(self, database: Database) -> None:
        """Ask the server which columns it computes, and which hold numbers of large objects."""
        found = rows(self._connection, _COLUMNS)
        facts = {(r["schema"], r["table"], r["name"]): r for r in found}
        for schema, table in database.tables():
            computed, objects = [], []
            for k, column in enumerate(table.columns):
                fact = facts.get((schema.name, table.name, column.name))
                shape = shape_of(database, schema.name, column)
                binary = isinstance(shape, Leaf) and shape.type.kind is Kind.BINARY
                if fact and fact["computed"]:
                    computed.append(k)
                elif fact and fact["number"] and binary:
                    objects.append(k)
                elif isinstance(shape, Leaf) and not self._same:
                    self._note_text(schema, table, k)
            self._computed[schema.name, table.name] = tuple(computed)
            self._objects[schema.name, table.name] = tuple(objects)

    def _note_text(self, schema: Schema, table: Table, k: int) -> None:
        column = table.columns[k]
        shape = shape_of(self._database, schema.name, column)
        assert isinstance(shape, Leaf)
        if shape.type.kind is not Kind.TEXT and column_type(column, "", False) == "text":
            self.notes.append(
                f"{schema.name}.{table.name}.{column.name} became text: no type of PostgreSQL"
                f" holds {shape.type}."
            )

    @property
    def suits_threads(self) -> bool:
        """Whether nearly all rows go to the server as they are."""
        cells = plain = 0
        for schema, table in self._database.tables():
            count = table.rows * len(table.columns)
            cells += count
            plain += count if self.encoder(schema, table).plain else 0
        return 8 * plain >= 7 * cells

    def encoder(self, schema: Schema, table: Table) -> PostgresqlEncoder:
        """Return what turns batches into COPY text."""
        name = schema.name, table.name
        return PostgresqlEncoder(
            f"{schema.name}.{table.name}",
            tuple(column.name for column in table.columns),
            tuple(shape_of(self._database, schema.name, column) for column in table.columns),
            self._computed[name],
            self._trusted,
            bool(self._objects[name]),
        )

    def write(
        self, schema: Schema, table: Table, pieces: Iterable[PostgresqlPiece], open_lob: OpenLob
    ) -> int:
        """Load a table's rows."""
        name = schema.name, table.name
        where = f"{schema.name}.{table.name}"
        counted = _Counted(pieces)
        wanted: Iterable[PostgresqlPiece] = counted
        limit = self._own.get(name)
        if limit is not None and self._has_heirs(schema, table):
            wanted = cut_rows(counted, limit)
        else:
            limit = None
        encoder = self.encoder(schema, table)
        open_one = partial(open_lob, schema, table)
        kept = [c.name for k, c in enumerate(table.columns) if k not in encoder.dropped]
        sql = f"COPY {quote(*name)} ({names_sql(kept)}) FROM STDIN"
        doing = f"the rows of {where}"
        if self._objects[name]:
            taken = 0
            for piece in wanted:
                stored = self._with_objects(piece, encoder, self._objects[name], open_one)
                taken += copy_in(
                    self._connection, sql, copy_chunks(stored[0], [stored[1]], open_one), doing
                )
        else:
            taken = copy_in(self._connection, sql, copy_chunks(encoder, wanted, open_one), doing)
        expected = counted.rows if limit is None else min(limit, counted.rows)
        if taken != expected:
            raise DatabaseError(f"PostgreSQL took {taken} of the {expected} rows of {where}")
        return counted.rows

    def _has_heirs(self, schema: Schema, table: Table) -> bool:
        found = rows(
            self._connection,
            "SELECT 1 FROM pg_inherits i WHERE i.inhparent = %s::regclass",
            quote(schema.name, table.name),
        )
        return bool(found)

    def _with_objects(
        self,
        piece: PostgresqlPiece,
        encoder: PostgresqlEncoder,
        columns: tuple[int, ...],
        open_one: Any,
    ) -> tuple[PostgresqlEncoder, PostgresqlPiece]:
        """Store large objects, and put their numbers where their content was."""
        numbers = tuple(
            _NUMBER if k in columns else shape for k, shape in enumerate(encoder.shapes)
        )
        plain = PostgresqlEncoder(encoder.where, encoder.columns, numbers, encoder.dropped)
        items = []
        for item in piece.items:
            assert isinstance(item, Batch)
            cells, width = cells_of(item), len(encoder.shapes)
            for k in columns:
                for at in range(k, len(cells), width):
                    if cells[at] != NULL:
                        cells[at] = self._store(cells[at], open_one)
            lines = zip(*[iter(cells)] * width, strict=True)
            items.append(Batch(b"".join([CELL.join(line) + ROW for line in lines]), item.rows))
        return plain, PostgresqlPiece(tuple(items), piece.rows)

    def _store(self, cell: bytes, open_one: Any) -> bytes:
        (row,) = rows(self._connection, "SELECT lo_create(0) AS number")
        number, start = row["number"], 0
        if cell.startswith(REF):
            stream: BinaryIO = open_one(cell[1:])
            with stream:
                while chunk := stream.read(_PIECE):
                    rows(self._connection, _PUT, number, start, chunk)
                    start += len(chunk)
        elif cell:
            rows(self._connection, _PUT, number, 0, bytes.fromhex(cell.decode()))
        return str(number).encode()

    def finish(self, database: Database) -> None:
        """Add keys, indexes, views, triggers, comments and rights."""
        Completion(self._builder, database, self._same).run(self._later)
        self.finished = True


class _Counted:
    """Pieces that are counted as they pass."""

    def __init__(self, pieces: Iterable[PostgresqlPiece]) -> None:
        self._pieces, self.rows = pieces, 0

    def __iter__(self) -> Iterator[PostgresqlPiece]:
        for piece in self._pieces:
            self.rows += piece.rows
            yield piece


_PUT = "SELECT lo_put(%s::oid, %s, %s::bytea)"
_COLUMNS = """
SELECT n.nspname AS schema, c.relname AS table, a.attname AS name,
    a.attgenerated <> '' AS computed,
    t.typname = 'oid' OR (t.typname = 'lo' AND t.typtype = 'd') AS number
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p')
    AND (a.attgenerated <> '' OR t.typname IN ('oid', 'lo'))
"""


def _special_item(sql: str, where: str) -> Item:
    """Something that PostgreSQL alone has."""
    return Item(*(kind_and_name(sql) or ("definition", where)), (sql,))


def _statements(description: str | None) -> tuple[str, ...]:
    """The statements behind a description, if they are PostgreSQL's."""
    _, original = split_original(description)
    return original.statements if original and original.product == "PostgreSQL" else ()


def _schema_names(database: Database) -> Iterator[tuple[str, str]]:
    """Yield each schema's name in the archive and its name here."""
    for schema in database.schemas:
        for sql in _statements(schema.description)[:1]:
            head, _, name = sql.partition("CREATE SCHEMA ")
            if not head and name.startswith('"'):
                yield name[1:-1].replace('""', '"'), schema.name
