"""Reading a DuckDB file: DuckDB makes the text, Arrow's kernels join it into batches.

Of large tables DuckDB gives the values, and machine code makes the text of those that are usual.
No Python code runs per cell. A table is cut into ranges of rowid, which DuckDB prunes by row group.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from muniment.databases.duckdb.connection import (
    Connection,
    asked,
    connect,
    forget,
    room,
    rows,
    translated,
)
from muniment.databases.duckdb.definitions import read_database
from muniment.databases.duckdb.fitting import relation_sql
from muniment.databases.duckdb.lobs import LongValues
from muniment.databases.duckdb.misfits import misfit_sql
from muniment.databases.duckdb.types import parse_duck_type, quote
from muniment.databases.duckdb.values import cell_sql, is_spelt_plainly
from muniment.databases.duckdb.widths import (
    Run,
    WideColumn,
    joined,
    runs_of,
    too_wide_for_many,
    weight_sql,
)
from muniment.errors import Unfit
from muniment.kernels import joining_kernel, worth_while
from muniment.sql.batch import CELL, CLOSE, ITEM, NULL, OPEN, REF, ROW, Batch
from muniment.sql.model import Column, Database, Leaf, Schema, Table, shape_of
from muniment.sql.selection import Selection
from muniment.sql.types import Kind

__all__ = ["DuckdbOpener", "DuckdbSource", "open_source"]

_FETCH_UNBOUNDED_ROWS = 256  # where cells of any size stay in the batch
_BATCH_BYTES = 1 << 16
_JOINED_BYTES = 1 << 22  # of values that become batches together
_TRIES = 4  # to read rows although there is too little memory

Part: TypeAlias = Run | None  # None is everything
_CellSql = Callable[[Schema, Column, int, bool], str]


class _Unusual(Exception):
    """Rows hold something that machine code does not spell."""


@contextmanager
def open_source(
    path: Path, selection: Selection | None = None, inline_limit: int = 4000
) -> Iterator[DuckdbSource]:
    """Open a DuckDB file for reading; others may read it too, and nobody can change it meanwhile.

    Text of more characters, and binary values of more bytes, than ``inline_limit`` come as REF.
    """
    connection = connect(path, read_only=True)
    try:
        connection.execute("SET arrow_large_buffer_size = true")
        source = DuckdbSource(connection, path, selection or Selection(), inline_limit)
        with closing(source):
            yield source
    finally:
        connection.close()


@dataclass(frozen=True)
class DuckdbOpener:
    """Opens the same file, with the same selection, in another process."""

    path: Path
    selection: Selection
    inline_limit: int

    def __call__(self) -> Any:
        return open_source(self.path, self.selection, self.inline_limit)


class DuckdbSource:
    """The tables of a DuckDB file; make it with ``open_source``."""

    def __init__(
        self, connection: Connection, path: Path, selection: Selection, inline_limit: int
    ) -> None:
        self._connection = connection
        self._path = path
        self._selection = selection
        self._inline_limit = inline_limit
        self._database: Database | None = None
        self._long = LongValues(self._fetched)
        self._weighed: dict[tuple[str, str], list[Run]] = {}  # tables that ``batches`` is to read

    def close(self) -> None:
        """Forget the long values that wait to be opened."""
        self._long.close()

    def describe(self) -> Database:
        """Return the definitions. Lists and intervals cost one look at the rows of their table."""
        if self._database is None:
            (version,) = rows(self._connection, "SELECT version() AS version")
            self._database = replace(
                read_database(self._connection, self._path.stem, self._selection),
                database_product=f"DuckDB {version['version'].removeprefix('v')}",
                connection=f"duckdb:///{self._path.name}",
            )
        return self._database

    def size(self) -> int:
        """Return roughly the bytes of text: DuckDB's files are a third of that."""
        return 3 * self._path.stat().st_size

    @property
    def suits_threads(self) -> bool:
        """Whether DuckDB, Arrow and machine code do it all: not for complex values."""
        return all(_is_plain(schema, table) for schema, table in self.describe().tables())

    def parts(self, schema: Schema, table: Table) -> Iterator[Part]:
        """Yield runs of rows of bounded weight; None for those that cannot be read side by side.

        These are views, queries, ordered tables, and tables with rows too wide for two readers.
        """
        if self._selection.order_of(schema.name, table.name) or not self._has_rowid(schema, table):
            yield None
            return
        runs = self._runs(schema, table)
        if too_wide_for_many(runs):
            self._weighed[schema.name, table.name] = runs
            yield None
        else:
            yield from runs

    def batches(self, schema: Schema, table: Table, part: Part) -> Iterator[Batch]:
        """Yield the rows of a part, about 64 KB at a time."""
        if part is not None or not self._has_rowid(schema, table):
            yield from self._batches_of(schema, table, part)
            return
        # Those that ``parts`` weighed are not weighed again: that takes as long as to read them.
        runs = self._weighed.pop((schema.name, table.name), None) or self._runs(schema, table)
        if runs and self._selection.order_of(schema.name, table.name):
            runs = [joined(runs)]
        for run in runs:
            if not run.has_long:
                yield from self._batches_of(schema, table, run)
            elif run.is_short:
                # Long values are opened while batches are used: DuckDB should keep nothing more.
                with room(self._connection):
                    found = self._read_apart(schema, table, run)
                yield from _batches(found)
            else:
                with room(self._connection):
                    yield from self._batches_of(schema, table, run)

    def _read_apart(self, schema: Schema, table: Table, run: Run) -> pa.RecordBatch:
        """Return rows with long values, of which DuckDB holds one column after the other."""
        columns = []
        with translated(f"to read {schema.name}.{table.name}"):
            for number, column in enumerate(table.columns):
                some = replace(table, columns=(column,))
                sql = self._query(schema, some, run, self._cell_sql, number)
                found = [rows.column(0) for rows in self._fetched(sql, run.fetch)]
                columns.append(pa.concat_arrays(found) if found else pa.array([], _BYTES))
        return pa.record_batch(columns, [f"c{number}" for number in range(len(columns))])

    def _runs(self, schema: Schema, table: Table) -> list[Run]:
        columns = []
        for column in table.columns:
            duck = parse_duck_type(column.type_original or "")
            if weight := weight_sql(duck, quote(column.name)):
                shape = _shape(schema, column)
                referred = isinstance(shape, Leaf) and shape.type.large
                limit = 4 * self._inline_limit if referred else None
                columns.append(WideColumn(column.name, weight, limit))
        place = f"{quote(schema.name)}.{quote(table.name)}"
        with translated(f"to read {schema.name}.{table.name}"):
            runs = list(runs_of(self._connection, place, columns))
        forget(self._connection)
        return runs

    def _batches_of(self, schema: Schema, table: Table, run: Run | None) -> Iterator[Batch]:
        size = _FETCH_UNBOUNDED_ROWS if run is None else run.fetch
        roads = [(self._read, self._query(schema, table, run, self._cell_sql))]
        if run and not run.has_long and _is_plain(schema, table) and worth_while(0):
            values = self._query(schema, table, run, self._plain_sql)
            roads.insert(0, (self._read_values, values))
        done = 0
        with translated(f"to read {schema.name}.{table.name}"):
            for read, sql in [*roads, *_TRIES * [roads[-1]]]:
                try:
                    for batch in read(sql, size, done):
                        yield batch
                        done += batch.rows
                    return
                except _Unusual:
                    pass  # the other road knows every case; it goes on from where this one stopped
                except duckdb.OutOfMemoryException:
                    # A value larger than the small cache: once more, with room. Who opens a long
                    # value meanwhile may take that away again.
                    self._connection.execute("RESET memory_limit")

    def _query(
        self, schema: Schema, table: Table, part: Part, cell_of: _CellSql, first: int = 0
    ) -> str:
        has_rowid = self._has_rowid(schema, table)
        cells = [
            cell_of(schema, column, number, has_rowid)
            for number, column in enumerate(table.columns, first)
        ]
        # Without names of our own: ORDER BY would take them before those of columns.
        sql = f"SELECT {', '.join(cells)} FROM {self._relation(schema, table, part)}"
        if order := self._selection.order_of(schema.name, table.name):
            sql += f" ORDER BY {order}{', rowid' if has_rowid else ''}"
        return sql

    def _read(self, sql: str, size: int, done: int) -> Iterator[Batch]:
        """Yield rows of which DuckDB made text; so many were yielded already."""
        for record_batch in self._fetched(sql, size, done):
            few = max(1, record_batch.num_rows * _JOINED_BYTES // max(record_batch.nbytes, 1))
            for first in range(0, record_batch.num_rows, few):
                yield from _batches(record_batch.slice(first, few))

    def _read_values(self, sql: str, size: int, done: int) -> Iterator[Batch]:
        """Yield rows of which machine code makes text, as long as nothing is unusual."""
        join = joining_kernel()
        for record_batch in self._fetched(sql, size, done):
            batches = join(record_batch.columns, self._inline_limit)
            if batches is None:
                raise _Unusual
            yield from batches

    def _fetched(self, sql: str, size: int, done: int = 0) -> Iterator[pa.RecordBatch]:
        cursor = self._connection.cursor()  # of its own: several tables may be read at once
        for record_batch in cursor.sql(sql).to_arrow_reader(size):
            passed = min(done, record_batch.num_rows)
            done -= passed
            if passed < record_batch.num_rows:
                yield record_batch.slice(passed)

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        """Open the value behind a REF cell: raw bytes, or text in UTF-8."""
        rowid, _, number = reference.partition(b":")
        column = table.columns[int(number)]
        value = f"encode({self._value_sql(schema, column)})"
        if _is_binary(schema, column):
            value = quote(column.name)
        relation = self._relation(schema, table, None)
        with translated(f"to read {schema.name}.{table.name}.{column.name}"):
            wanted = relation, value, self._is_long_sql(schema, column), int(rowid)
            try:
                return self._long.open(*wanted)
            except duckdb.OutOfMemoryException:
                with room(self._connection):
                    return self._long.open(*wanted)

    def misfits(self) -> list[Unfit]:
        """Find all columns that hold values without a place in SIARD: one look at each of them."""
        found = []
        for schema, table in self.describe().tables():
            for column in table.columns:
                if self._selection.wants_text(schema.name, table.name, column.name):
                    continue
                duck = parse_duck_type(column.type_original or "")
                condition = misfit_sql(duck, quote(column.name))
                if condition and self._has_any(schema, table, condition):
                    where = f"{schema.name}.{table.name}.{column.name}"
                    found.append(Unfit(where, None, "a value", f"a value of {column.type}"))
        return found

    def _has_any(self, schema: Schema, table: Table, condition: str) -> bool:
        relation = self._relation(schema, table, None)
        with translated(f"to read {schema.name}.{table.name}"):
            sql = f"SELECT 1 FROM {relation} AND ({condition}) LIMIT 1"
            return bool(asked(self._connection, sql).fetchall())

    def opener(self) -> DuckdbOpener:
        return DuckdbOpener(self._path, self._selection, self._inline_limit)

    def _has_rowid(self, schema: Schema, table: Table) -> bool:
        return (schema.name, table.name) in self._with_rowid

    @cached_property
    def _with_rowid(self) -> set[tuple[str, str]]:
        """The tables, but no views, in which rowid is no column: asked once, since DuckDB looks
        at all of them. A column that is not archived hides it, too."""
        home = "database_name = current_database()"
        columns = f"FROM duckdb_columns() WHERE {home} AND lower(column_name) = 'rowid'"
        sql = (
            f"SELECT schema_name, table_name FROM duckdb_tables() WHERE {home}"
            f" EXCEPT SELECT schema_name, table_name {columns}"
        )
        found = rows(self._connection, sql)
        return {(row["schema_name"], row["table_name"]) for row in found}

    def _relation(self, schema: Schema, table: Table, part: Part) -> str:
        relation = relation_sql(self._connection, self._selection, schema.name, table.name)
        if part is None:
            return relation
        return f"{relation} AND rowid BETWEEN {part.first} AND {part.last}"

    def _value_sql(self, schema: Schema, column: Column) -> str:
        duck = parse_duck_type(column.type_original or "")
        return cell_sql(duck, _shape(schema, column), quote(column.name))

    def _plain_sql(self, schema: Schema, column: Column, _number: int, _rowid: bool) -> str:
        """A column's own values where machine code can spell them, else their text."""
        duck, shape = parse_duck_type(column.type_original or ""), _shape(schema, column)
        return (
            quote(column.name) if is_spelt_plainly(duck, shape) else self._value_sql(schema, column)
        )

    def _cell_sql(self, schema: Schema, column: Column, number: int, has_rowid: bool) -> str:
        """The text of a column's cells, or a REF if it is longer than the limit."""
        text, shape = self._value_sql(schema, column), _shape(schema, column)
        if not isinstance(shape, Leaf) or not shape.type.large or not has_rowid:
            return text
        reference = rf"'\x{REF.hex()}'::BLOB || encode(concat(rowid, ':{number}'))"
        is_long = self._is_long_sql(schema, column)
        return f"CASE WHEN {is_long} THEN {reference} ELSE encode({text}) END"

    def _is_long_sql(self, schema: Schema, column: Column) -> str:
        """The condition that a value is too long for a batch."""
        limit = self._inline_limit
        if _is_binary(schema, column):
            return f"octet_length({quote(column.name)}) > {limit}"
        text = self._value_sql(schema, column)
        # strlen, in bytes, costs nothing; length counts the characters of the few that are left.
        return f"strlen({text}) > {limit} AND length({text}) > {limit}"


def _shape(schema: Schema, column: Column) -> Any:
    return shape_of(Database("", schemas=(schema,)), schema.name, column)


def _is_plain(schema: Schema, table: Table) -> bool:
    return all(isinstance(_shape(schema, column), Leaf) for column in table.columns)


def _is_binary(schema: Schema, column: Column) -> bool:
    shape = _shape(schema, column)
    return isinstance(shape, Leaf) and shape.type.kind is Kind.BINARY


# From Arrow to batches. All arrays have 64-bit offsets: a few long cells overflow 32.

_BYTES = pa.large_binary()


def _batches(record_batch: pa.RecordBatch) -> Iterator[Batch]:
    """Join the columns to rows and the rows to batches."""
    lines = _join([_cells(column) for column in record_batch.columns], CELL)
    ends = memoryview(lines.buffers()[1]).cast("q")
    starts = [0]
    while starts[-1] < len(lines):
        full = bisect_right(ends, ends[starts[-1]] + _BATCH_BYTES, lo=0, hi=len(lines) + 1) - 1
        starts.append(max(full, starts[-1] + 1))
    runs = pa.LargeListArray.from_arrays(pa.array(starts, pa.int64()), lines)
    joined = pc.binary_join(runs, pa.scalar(ROW, _BYTES))
    for first, after, run in zip(starts, starts[1:], joined, strict=False):
        yield Batch(run.as_py() + ROW, after - first)


def _cells(array: pa.Array) -> pa.Array:
    """Return an array of cells; at the lowest level NULL is still Arrow's."""
    if pa.types.is_large_list(array.type):
        return _list_cells(array)
    if pa.types.is_struct(array.type):
        parts = [part for child in array.flatten() for part in (_cells(child), _scalar(ITEM))]
        return _complex(array, _join([_scalar(OPEN), *parts, _scalar(CLOSE)], b""))
    return array.cast(_BYTES)


def _list_cells(array: pa.Array) -> pa.Array:
    ended = _join([_cells(array.flatten()), _scalar(b"")], ITEM)
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
    inner = pc.binary_join(pa.LargeListArray.from_arrays(offsets, ended), _scalar(b""))
    return _complex(array, _join([_scalar(OPEN), inner, _scalar(CLOSE)], b""))


def _complex(array: pa.Array, cells: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), cells, pa.scalar(None, _BYTES))


def _join(arrays: list[pa.Array], separator: bytes) -> pa.Array:
    return pc.binary_join_element_wise(
        *arrays, _scalar(separator), null_handling="replace", null_replacement=NULL
    )


def _scalar(value: bytes) -> pa.Scalar:
    return pa.scalar(value, _BYTES)
