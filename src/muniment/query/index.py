"""Building the index of an archive: a DuckDB file in the cache, and what it says about itself.

Rows lie in tables r.t0, r.t1, … with columns c1, c2, … in the order of the archive, so the row with
the number n has the rowid n - 1. What they are called stands in the table r.about, as JSON.
A large object is not copied: ``cN_ref`` says where it lies, ``cN_size`` and ``cN_type`` what it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from muniment.databases.duckdb.connection import Connection, connect, first_line, translated
from muniment.databases.duckdb.pieces import DuckdbPiece, gathered
from muniment.databases.duckdb.tables import nearest_type
from muniment.databases.duckdb.types import DuckType, Scalar
from muniment.databases.duckdb.values import value_sql
from muniment.files import sync_folder
from muniment.query.cache import digest_of, index_path, locked
from muniment.query.encode import IndexEncoder, is_large
from muniment.query.names import unique_names
from muniment.query.objects import Objects
from muniment.query.views import translated_views
from muniment.siard import SiardSource, open_siard
from muniment.siard.lobs.folders import Root
from muniment.sql.model import Database, Leaf, Schema, Shape, Table, shape_of
from muniment.sql.types import Kind
from muniment.workers import Beside, default_jobs, start_workers

__all__ = [
    "About", "IndexColumn", "IndexTable", "IndexView", "Watch", "build", "quiet", "read_about",
]  # fmt: skip

_WORTH_WORKERS = 24 << 20  # bytes of XML; below that, starting processes takes longer
_RESERVED = ("information_schema", "pg_catalog")  # schemas that DuckDB keeps for itself

Watch = Callable[[str, int, int], None]  # the table in hand, rows so far, rows in all


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """A column in the index: its name in SQL, its DuckDB type, and how large values are kept."""

    name: str
    type: str
    large: str = ""  # "text" or "binary"
    distinct: int | None = None  # about so many different values
    nulls: int = 0


@dataclass(frozen=True, slots=True)
class IndexTable:
    """A table in the index; ``schema`` and ``name`` are what SQL calls it."""

    schema: str
    name: str
    place: str
    rows: int
    columns: tuple[IndexColumn, ...]


@dataclass(frozen=True, slots=True)
class IndexView:
    """An archived view: its SQL for DuckDB, or why there is none."""

    schema: str
    name: str
    columns: tuple[str, ...]
    sql: str
    reason: str


@dataclass(frozen=True, slots=True)
class About:
    """What an index says about itself."""

    digest: str
    schemas: tuple[str, ...]
    tables: tuple[IndexTable, ...]
    views: tuple[IndexView, ...]
    notes: tuple[str, ...]


def quiet(_table: str, _rows: int, _total: int) -> None:
    """Watch nothing."""
    return


def build(path: Path, progress: Watch = quiet, jobs: int = 0, roots: Sequence[Root] = ()) -> Path:
    """Return the index of an archive, built now unless it is there."""
    digest = digest_of(path)
    with open_siard(path, roots) as source:
        index = index_path(digest, roots, source.lobs.outside())
    if index.exists():
        return index
    with locked(index):
        if not index.exists():  # another process may have been quicker
            _build(path, index, digest, progress, jobs, roots)
    return index


def read_about(connection: Connection, catalog: str = "") -> About:
    """Return what an open index says about itself."""
    prefix = f"{catalog}." if catalog else ""
    (text,) = connection.execute(f"SELECT json FROM {prefix}r.about").fetchone()
    found = json.loads(text)
    tables = (
        IndexTable(**{**table, "columns": tuple(IndexColumn(**c) for c in table["columns"])})
        for table in found["tables"]
    )
    views = (IndexView(**{**view, "columns": tuple(view["columns"])}) for view in found["views"])
    return About(
        found["digest"], tuple(found["schemas"]), tuple(tables), tuple(views), tuple(found["notes"])
    )


def _build(
    path: Path, index: Path, digest: str, progress: Watch, jobs: int, roots: Sequence[Root]
) -> None:
    partial = index.with_name(f".{index.name}.{os.getpid()}.partial")
    log = partial.with_name(f"{partial.name}.wal")
    for stale in index.parent.glob(f".{index.name}.*.partial*"):  # of a process that was ended
        stale.unlink(missing_ok=True)
    try:
        with (
            open_siard(path, roots) as source,
            closing(connect(partial, read_only=False)) as connection,
        ):
            _Builder(source, connection, digest, progress, jobs).run()
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.rename(index)
        sync_folder(index.parent)
    finally:
        partial.unlink(missing_ok=True)
        log.unlink(missing_ok=True)


class _Builder:
    """The building of one index."""

    def __init__(
        self, source: SiardSource, connection: Connection, digest: str, progress: Watch, jobs: int
    ) -> None:  # fmt: skip
        self._source, self._connection, self._digest = source, connection, digest
        self._progress, self._jobs = progress, jobs
        self._database: Database = source.describe()
        self._notes: list[str] = []
        self._done = 0
        self._total = sum(table.rows for _, table in self._database.tables())

    def run(self) -> None:
        self._connection.execute("CREATE SCHEMA r")
        self._connection.execute("SET enable_external_access = false")
        # Texts packed tightly would take half of the time; an index may be larger than that.
        self._connection.execute("SET disabled_compression_methods = 'dict_fsst'")
        schemas = unique_names((s.name for s in self._database.schemas), taken=_RESERVED)
        jobs = self._jobs or default_jobs()
        if self._source.size() < _WORTH_WORKERS:
            jobs = 1
        tables: list[IndexTable] = []
        with start_workers(self._source, jobs, lambda: True, threads=True) as workers:
            for schema, sql_name in zip(self._database.schemas, schemas, strict=True):
                names = unique_names(t.name for t in schema.tables)
                self._note_renamed(schema, names)
                for table, name in zip(schema.tables, names, strict=True):
                    filled = _Filled(self, schema, table, f"r.t{len(tables)}")
                    filled.fill(workers)
                    tables.append(filled.described(sql_name, name))
        names_in_sql = [[t.name for t in tables if t.schema == name] for name in schemas]
        views = tuple(
            IndexView(*found) for found in translated_views(self._database, schemas, names_in_sql)
        )
        about = About(self._digest, tuple(schemas), tuple(tables), views, tuple(self._notes))
        self._connection.execute("CREATE TABLE r.about (json VARCHAR)")
        self._connection.execute("INSERT INTO r.about VALUES (?)", [json.dumps(asdict(about))])
        self._connection.execute("CHECKPOINT")

    def _note_renamed(self, schema: Schema, names: list[str]) -> None:
        for table, name in zip(schema.tables, names, strict=True):
            if table.name != name:
                self.note(f"table {schema.name}.{table.name[:80]} is called {name[:80]} in SQL")

    # What the filling of a table needs

    @property
    def source(self) -> SiardSource:
        return self._source

    @property
    def database(self) -> Database:
        return self._database

    @property
    def connection(self) -> Connection:
        return self._connection

    def note(self, sentence: str) -> None:
        if len(self._notes) < 1000:
            self._notes.append(sentence)

    def counted(self, sql: str) -> tuple[Any, ...]:
        """Return the one row of a query that all cores work on: only what is inserted has order."""
        connection = self._connection
        connection.execute(f"SET threads = {self._jobs or default_jobs()}")
        row: tuple[Any, ...] = connection.execute(sql).fetchone()
        connection.execute("SET threads = 1")
        return row

    def count(self, table: str, rows: int) -> None:
        self._done += rows
        self._progress(table, self._done, max(self._total, self._done))


class _Filled:
    """One table of the index in the making."""

    def __init__(self, builder: _Builder, schema: Schema, table: Table, place: str) -> None:
        self._builder, self._schema, self._table, self._place = builder, schema, table, place
        self._where, self._rows = f"{schema.name}.{table.name}", 0
        self._shapes: tuple[Shape, ...] = tuple(
            shape_of(builder.database, schema.name, column) for column in table.columns
        )
        self._ducks: list[DuckType] = [
            Scalar("VARCHAR")
            if _is_text(shape)
            else nearest_type(builder.database, schema.name, column, shape)
            for column, shape in zip(table.columns, self._shapes, strict=True)
        ]
        self._objects = Objects(
            self._shapes, lambda ref: builder.source.open_lob(schema, table, ref), builder.note
        )

    def fill(self, workers: Any) -> None:
        """Make the table and insert all rows."""
        self._create()
        encoder = IndexEncoder(self._shapes)
        parts = self._builder.source.parts(self._schema, self._table)
        pieces = workers.run((self._schema, self._table, part, encoder) for part in parts)
        with Beside(1) as beside:  # while DuckDB takes rows in, those that follow are read
            for rows in gathered(self._resolved(pieces)):
                beside(self._insert, rows)
        rows = self._rows
        if rows != self._table.rows:
            self._builder.note(
                f"{self._where} has {rows} rows, and its metadata says {self._table.rows}"
            )

    def _resolved(self, pieces: Iterable[DuckdbPiece]) -> Iterator[pa.Table]:
        for piece in pieces:
            for chunk in piece.tables:
                yield from self._objects.resolved(chunk)
            self._rows += piece.rows
            self._builder.count(self._where, piece.rows)

    def described(self, schema: str, name: str) -> IndexTable:
        """Return what the index says about this table."""
        names = unique_names(column.name for column in self._table.columns)
        counts = self._counts()
        columns = tuple(
            IndexColumn(column, str(duck), _largeness(shape), *counts[number])
            for number, (column, duck, shape) in enumerate(
                zip(names, self._ducks, self._shapes, strict=True)
            )
        )
        return IndexTable(schema, name, self._place, self._rows, columns)

    def _create(self) -> None:
        for number in range(len(self._ducks)):
            # Field names that differ by case alone, or more parts than DuckDB takes: text then.
            if not isinstance(self._ducks[number], Scalar):
                try:
                    self._builder.connection.execute(f"SELECT CAST(NULL AS {self._ducks[number]})")
                except duckdb.Error as error:
                    self._widen(number, first_line(error), exists=False)
        with translated(f"table {self._where}"):
            self._builder.connection.execute(
                f"CREATE TABLE {self._place} ({', '.join(self._columns_sql())})"
            )

    def _columns_sql(self) -> Iterator[str]:
        for number, (duck, shape) in enumerate(zip(self._ducks, self._shapes, strict=True), 1):
            yield f"c{number} {duck}"
            if is_large(shape):
                yield f"c{number}_ref BLOB"
            if _largeness(shape) == "binary":
                yield f"c{number}_size BIGINT"
                yield f"c{number}_type VARCHAR"

    def _insert(self, rows: pa.Table) -> None:
        connection = self._builder.connection
        connection.register("piece", rows)
        try:
            connection.execute(self._insert_sql(rows))
        except duckdb.Error:
            for number in range(len(self._ducks)):
                value = self._value_sql(rows, number)
                try:
                    connection.execute(f"SELECT count({value}) FROM piece").fetchall()
                except duckdb.Error as error:
                    self._widen(number, first_line(error), exists=True)
            with translated(f"the rows of {self._where}"):
                connection.execute(self._insert_sql(rows))
        finally:
            connection.unregister("piece")

    def _insert_sql(self, rows: pa.Table) -> str:
        values = []
        for number, shape in enumerate(self._shapes):
            values.append(self._value_sql(rows, number))
            if is_large(shape):
                reference = f"c{number + 1}_ref"
                values.append(reference if reference in rows.column_names else "NULL")
            if _largeness(shape) == "binary":
                values += [f"c{number + 1}_size", f"c{number + 1}_type"]
        return f"INSERT INTO {self._place} SELECT {', '.join(values)} FROM piece"

    def _value_sql(self, rows: pa.Table, number: int) -> str:
        cell, duck, shape = f"c{number + 1}", self._ducks[number], self._shapes[number]
        arrow = rows.schema.field(cell).type
        if is_large(shape):
            return cell
        nested = pa.types.is_nested(arrow)
        if nested and isinstance(duck, Scalar):
            return f"CAST({cell} AS VARCHAR)"
        if nested or (pa.types.is_large_string(arrow) and duck != Scalar("VARCHAR")):
            return value_sql(duck, shape, cell, f"{self._where}.{cell}")
        return f"CAST({cell} AS {duck})"

    def _widen(self, number: int, reason: str, exists: bool) -> None:
        """Keep a column as text: a value does not fit its type, and none is lost."""
        column = self._table.columns[number].name[:80]
        self._builder.note(f"{self._where}.{column} is text here: {reason[:200]}")
        self._ducks[number] = Scalar("VARCHAR")
        if exists:
            self._builder.connection.execute(
                f"ALTER TABLE {self._place} ALTER COLUMN c{number + 1} TYPE VARCHAR"
            )

    def _counts(self) -> list[tuple[int | None, int]]:
        """About how many different values each column has, and how many NULLs."""
        wanted = []
        for number, shape in enumerate(self._shapes, 1):
            value = f"coalesce(c{number}, c{number}_ref)" if is_large(shape) else f"c{number}"
            if _largeness(shape) == "text":
                value = f"c{number}"
            plain = isinstance(shape, Leaf) and not is_large(shape)
            wanted.append(f"approx_count_distinct(c{number})" if plain else "NULL")
            wanted.append(f"count(*) - count({value})")
        if not wanted:
            return []
        row = self._builder.counted(f"SELECT {', '.join(wanted)} FROM {self._place}")
        return [(row[k], row[k + 1]) for k in range(0, len(row), 2)]


def _is_text(shape: Shape) -> bool:
    return isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT


def _largeness(shape: Shape) -> str:
    if not is_large(shape):
        return ""
    return "text" if _is_text(shape) else "binary"
