"""Batches on their way into DuckDB: Arrow tables of text, cut into chunks that fit in memory.

Plain columns become strings without Python code per cell. Columns that may hold large objects stay
bytes until the one process that writes has fetched the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from muniment.databases.duckdb.spelling import first_half_byte, first_misspelt, is_usual
from muniment.errors import DatabaseError
from muniment.kernels import splitting_kernel, worth_while
from muniment.sql.batch import CELL, CLOSE, ITEM, NULL, OPEN, REF, ROW, Batch, Cell, cell_value
from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind, PredefinedType
from muniment.sql.values import with_values

__all__ = [
    "ADVICE", "CHUNK_BYTES", "DuckdbEncoder", "DuckdbPiece", "Misfit", "arrow_tables", "as_values",
    "gathered", "nested_type", "nested_value", "piece_of", "shown",
]  # fmt: skip

CHUNK_BYTES = 1 << 22  # of wide rows, which are held several times on their way
_SPLIT_BYTES = 1 << 20  # what is split at once
_GROUP_ROWS = 122_880  # DuckDB's row group
_GROUP_BYTES = 1 << 25  # of that many rows: if they have more, they are wide
pa.set_memory_pool(pa.system_memory_pool())  # gives memory back where the others keep it
_BYTES, _TEXT = pa.large_binary(), pa.large_string()
ADVICE = "muniment validate shows what is wrong with the archive"


@dataclass(frozen=True, slots=True)
class Misfit:
    """A cell that is not spelt as values of its column are: the row counts from the piece's 1."""

    row: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class DuckdbPiece:
    """A part on its way into a file: tables with the columns c0, c1, …"""

    tables: tuple[pa.Table, ...]
    rows: int
    misfit: Misfit | None = None

    def __reduce__(self) -> Any:
        """Travel to another process as Arrow IPC streams, which hold what is there and no more."""
        return _arrived, (tuple(map(_streamed, self.tables)), self.rows, self.misfit)


def _streamed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _arrived(chunks: tuple[bytes, ...], rows: int, misfit: Misfit | None) -> DuckdbPiece:
    tables = tuple(pa.ipc.open_stream(chunk).read_all() for chunk in chunks)
    return DuckdbPiece(tables, rows, misfit)


@dataclass(frozen=True)
class DuckdbEncoder:
    """Turns the batches of a part into Arrow."""

    where: str
    columns: tuple[str, ...]
    shapes: tuple[Shape, ...]
    texts: frozenset[int] = frozenset()  # columns that keep every cell as the text that it is

    def place(self, number: int) -> str:
        """Return the full name of a column."""
        return f"{self.where}.{self.columns[number]}"

    def __call__(self, batches: Iterable[Batch]) -> DuckdbPiece:
        tables: list[pa.Table] = []
        for columns in _columns(batches, len(self.columns)):
            try:
                tables.append(self._table(columns))
            except _Misspelt as found:
                before = sum(table.num_rows for table in tables)
                return DuckdbPiece((), 0, replace(found.misfit, row=before + found.misfit.row))
        return DuckdbPiece(tuple(tables), sum(table.num_rows for table in tables))

    def _table(self, columns: list[pa.ChunkedArray]) -> pa.Table:
        names = [f"c{number}" for number in range(len(columns))]
        arrays = [
            self._array(number, shape, cells)
            for number, (shape, cells) in enumerate(zip(self.shapes, columns, strict=True))
        ]
        return pa.table(dict(zip(names, arrays, strict=True)))

    def _array(self, number: int, shape: Shape, cells: pa.ChunkedArray) -> Any:
        if not isinstance(shape, Leaf):
            if pc.any(pc.match_substring(cells, REF)).as_py():
                return cells  # the values are put in where they can be read
            return self.nested(number, cells)
        if shape.type.kind is Kind.BINARY:
            self._refuse_half_bytes(number, cells)
        if shape.type.kind in (Kind.TEXT, Kind.BINARY, Kind.DATALINK):
            return cells
        return as_values(cells, shape.type, lambda: self._text(number, cells))

    def nested(self, number: int, cells: pa.ChunkedArray) -> pa.Array:
        """Return a column of complex values, each of which is spelt as it should be."""
        found = _nested_array(cells, self.shapes[number])
        if (row := first_misspelt(found, self.shapes[number])) is not None:
            raise _Misspelt(Misfit(row + 1, number, str(found[row].as_py())))
        return found

    def filled(self, number: int, cells: pa.ChunkedArray) -> pa.Array:
        """The same of values that large objects were put into: nobody knows their rows any more."""
        try:
            return self.nested(number, cells)
        except _Misspelt as found:
            text = shown(found.misfit.text)
            raise DatabaseError(
                f"{self.place(number)}: {text} is not of its type; {ADVICE}"
            ) from found

    def _text(self, number: int, cells: pa.ChunkedArray) -> Any:
        found = _as_text(cells, self.place(number))
        if number in self.texts:
            return found
        if (row := first_misspelt(found, self.shapes[number])) is not None:
            raise _Misspelt(Misfit(row + 1, number, found[row].as_py()))
        return found

    @staticmethod
    def _refuse_half_bytes(number: int, cells: pa.ChunkedArray) -> None:
        row = first_half_byte(cells)
        if row is not None and not pc.any(pc.match_substring(cells, REF)).as_py():
            text = cells[row].as_py().decode("utf-8", "backslashreplace")
            raise _Misspelt(Misfit(row + 1, number, text))


def shown(text: str) -> str:
    """A cell for a message, which may be long."""
    return repr(text if len(text) <= 60 else f"{text[:40]}…")


class _Misspelt(Exception):
    """A table in the making has a cell that DuckDB may take for another value."""

    def __init__(self, misfit: Misfit) -> None:
        super().__init__(misfit)
        self.misfit = misfit


def piece_of(
    batches: Iterable[Batch], width: int, table_of: Callable[[list[pa.ChunkedArray]], pa.Table]
) -> DuckdbPiece:
    """Return batches as tables of bounded size, given what makes a table of columns of cells."""
    tables = tuple(map(table_of, _columns(batches, width)))
    return DuckdbPiece(tables, sum(table.num_rows for table in tables))


def _columns(batches: Iterable[Batch], width: int) -> Iterator[list[pa.ChunkedArray]]:
    split = _Splitter(width)
    rows = size = 0
    for batch in batches:
        split.add(batch)
        rows += batch.rows
        size += len(batch.data)
        if _is_much(rows, size):
            yield split.columns()
            rows = size = 0
    if rows:
        yield split.columns()


class _Splitter:
    """Collects batches and gives back their columns."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._held: list[bytes] = []
        self._size = self._rows = 0
        self._columns: list[list[pa.Array]] = [[] for _ in range(width)]

    def add(self, batch: Batch) -> None:
        self._held.append(batch.data)
        self._size += len(batch.data)
        self._rows += batch.rows
        if self._size >= _SPLIT_BYTES:
            self._split()

    def columns(self) -> list[pa.ChunkedArray]:
        """Return what was added since the last time, NULLs as Arrow's."""
        self._split()
        columns = [pa.chunked_array(chunks, _BYTES) for chunks in self._columns]
        self._columns = [[] for _ in range(self._width)]
        return columns

    def _split(self) -> None:
        if not self._held:
            return
        data, rows = b"".join(self._held), self._rows
        self._held, self._size, self._rows = [], 0, 0
        columns = splitting_kernel()(data, rows, self._width) if worth_while(len(data)) else None
        for column, cells in zip(self._columns, columns or self._cells(data), strict=True):
            column.append(cells)

    def _cells(self, data: bytes) -> Iterator[pa.Array]:
        cells = pc.split_pattern(
            pa.array([data.replace(ROW, CELL)[:-1]], _BYTES), pattern=CELL
        ).flatten()
        rows, null = len(cells) // self._width, pa.scalar(NULL, _BYTES)
        for stride in _strides(self._width, 1 << rows.bit_length()):
            column = cells.take(stride.slice(0, rows))
            yield pc.if_else(pc.equal(column, null), pa.scalar(None, _BYTES), column)


@lru_cache(maxsize=8)
def _strides(width: int, rows: int) -> list[pa.Array]:
    """The positions of each column's cells among all cells."""
    first = pa.array(range(0, rows * width, width), pa.int64())
    return [pc.add(first, number) for number in range(width)]


def arrow_tables(
    encoder: DuckdbEncoder, pieces: Iterable[DuckdbPiece], open_lob: Callable[[bytes], BinaryIO]
) -> Iterator[pa.Table]:
    """Yield the rows of all pieces in order, with the large objects in place of their REFs.

    Columns of text hold the text of cells; all others hold values.
    """
    yield from gathered(
        t for p in pieces for c in p.tables for t in _resolved(encoder, c, open_lob)
    )


def gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Cut rows into row groups, unless large values fill the memory earlier.

    DuckDB writes a whole row group at once; what is inserted of another it writes again and again.
    """
    held: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        if held and held[0].schema != table.schema:
            yield _built_anew(pa.concat_tables(held))
            held, rows, size = [], 0, 0
        held.append(table)
        rows += table.num_rows
        size += table.nbytes
        while _is_much(rows, size):
            group = pa.concat_tables(held)
            yield _built_anew(group.slice(0, _GROUP_ROWS))
            rest = group.slice(_GROUP_ROWS)
            held, rows, size = [rest], rest.num_rows, rest.nbytes
    if rows:
        yield _built_anew(pa.concat_tables(held))


def _built_anew(table: pa.Table) -> pa.Table:
    """Return rows whose complex values begin where their arrays do: DuckDB refuses others.

    Each column is in one piece: one that is not would have the others cut at its joints.
    """
    nested = [n for n, field in enumerate(table.schema) if pa.types.is_nested(field.type)]
    if not nested:
        return table
    every = pa.array(range(table.num_rows), pa.int64())
    for number in nested:
        table = table.set_column(number, table.field(number), table.column(number).take(every))
    return table.combine_chunks()


def _is_much(rows: int, size: int) -> bool:
    """Whether rows fill a row group, or more memory than wide rows should."""
    is_wide = size * _GROUP_ROWS >= rows * _GROUP_BYTES
    return rows >= _GROUP_ROWS or (is_wide and size >= CHUNK_BYTES)


def _resolved(
    encoder: DuckdbEncoder, table: pa.Table, open_lob: Callable[[bytes], BinaryIO]
) -> Iterator[pa.Table]:
    """Cut a table where its large objects have filled the memory meant for them."""
    holders = {
        number: column.to_pylist()
        for number, column in enumerate(table.columns)
        if column.type == _BYTES and pc.any(pc.match_substring(column, REF)).as_py()
    }

    def read(reference: bytes) -> bytes:
        with open_lob(reference) as lob:
            return lob.read()

    start = size = 0
    for row in range(table.num_rows if holders else 0):
        for number, cells in holders.items():
            cell, shape = cells[row], encoder.shapes[number]
            if cell is not None and REF in cell:
                is_leaf = isinstance(shape, Leaf)
                value = _Lob(read(cell[1:])) if is_leaf else with_values(cell, shape, read)
                cells[row] = value
                size += len(value)
        if size >= CHUNK_BYTES:
            yield _table(encoder, table, holders, start, row + 1)
            start, size = row + 1, 0
    if start < table.num_rows:
        yield _table(encoder, table, holders, start, table.num_rows)


class _Lob(bytes):
    """The value of a large object, where others have the text of a cell."""


def _table(
    encoder: DuckdbEncoder, table: pa.Table, holders: dict[int, list[Any]], start: int, end: int
) -> pa.Table:
    """Return some rows of a chunk as DuckDB is to see them."""
    columns: dict[str, Any] = {}
    for number, (column, shape) in enumerate(zip(table.columns, encoder.shapes, strict=True)):
        cells = column.slice(start, end - start)
        if number in holders:
            cells = _filled(holders[number][start:end], shape)
            holders[number][start:end] = [None] * (end - start)
        if cells.type == _BYTES and not isinstance(shape, Leaf):
            cells = encoder.filled(number, cells)
        elif cells.type == _BYTES and not _is_raw(number in holders, shape):
            cells = _as_text(cells, encoder.place(number))
        columns[f"c{number}"] = cells
    return pa.table(columns)


def _filled(values: list[Any], shape: Shape) -> pa.ChunkedArray:
    """Cells among which large objects have come, as an array."""
    if _is_raw(True, shape):
        values = [_raw(value) for value in values]
    return pa.chunked_array([pa.array(values, _BYTES)])


def _is_raw(filled: bool, shape: Shape) -> bool:
    """Whether cells are bytes as they are: where large objects came, those of binary columns."""
    return filled and isinstance(shape, Leaf) and shape.type.kind is not Kind.TEXT


def _raw(cell: bytes | None) -> bytes | None:
    return cell if cell is None or isinstance(cell, _Lob) else bytes.fromhex(cell.decode())


def _as_text(cells: Any, place: str) -> Any:
    try:
        return cells.cast(_TEXT)
    except pa.ArrowInvalid as error:
        raise DatabaseError(
            f"{place} holds text with half of a surrogate pair, which DuckDB cannot store; "
            "leave the column out or restore into another product"
        ) from error


def as_values(cells: pa.ChunkedArray, type_: PredefinedType, as_text: Callable[[], Any]) -> Any:
    """Return values, which save DuckDB work, or the text where Arrow cannot hold it exactly."""
    arrow = _value_type(type_)
    if arrow is None:
        return as_text()
    try:
        values = pc.cast(_unproven(cells), arrow)
    except pa.ArrowInvalid:
        return as_text()
    return values if is_usual(cells, values, type_) else as_text()


def _unproven(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells as text that may not be UTF-8: no value of another kind comes out of that."""
    return pa.chunked_array([chunk.view(_TEXT) for chunk in cells.chunks], _TEXT)


def _value_type(type_: PredefinedType) -> pa.DataType | None:
    """The Arrow type that DuckDB takes over without any doubt about rounding or time zones."""
    match type_.kind:
        case Kind.INTEGER:
            return pa.int64()
        case Kind.DECIMAL if type_.length is not None and type_.length <= 38:
            return pa.decimal128(type_.length, type_.scale or 0)
        case Kind.FLOAT if type_.name != "REAL":
            return pa.float64()
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.DATE:
            return pa.date32()
        case Kind.TIMESTAMP if type_.name == "TIMESTAMP" and type_.length in (None, 6):
            return pa.timestamp("us")
    return None


def nested_type(shape: Shape) -> pa.DataType:
    match shape:
        case Leaf():
            return _TEXT
        case Array(element):
            return pa.large_list(nested_type(element))
        case Struct(parts):
            return pa.struct([(f"u{n}", nested_type(part)) for n, part in enumerate(parts, 1)])


def _nested_array(cells: pa.ChunkedArray, shape: Shape) -> pa.Array:
    with suppress(pa.ArrowInvalid, pa.ArrowIndexError):  # the slow way says what is wrong
        if (found := _split_cells(cells, shape)) is not None:
            return found
    values = [
        cell if cell is None else nested_value(cell_value(cell), shape)
        for cell in cells.to_pylist()
    ]
    return pa.array(values, nested_type(shape))


def _split_cells(cells: pa.ChunkedArray, shape: Shape) -> pa.Array | None:
    """The same in bulk, for complex values without others inside; None if they are not for it."""
    cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], _BYTES)
    if isinstance(shape, Array) and isinstance(shape.element, Leaf):
        return _split_arrays(cells)
    if isinstance(shape, Struct) and all(isinstance(part, Leaf) for part in shape.parts):
        return _split_structs(cells, len(shape.parts))
    return None


def _split_arrays(cells: pa.Array) -> pa.Array | None:
    if pc.any(pc.match_substring(cells, NULL)).as_py():
        return None
    inner = pc.binary_slice(pc.replace_substring(cells, ITEM + CLOSE, CLOSE), 1, -1)
    items = pc.split_pattern(inner, pattern=ITEM)
    # Without a single element there is no text between two others either, but one comes out.
    nothing = pa.scalar([], items.type)
    items = pc.if_else(pc.equal(cells, pa.scalar(OPEN + CLOSE, _BYTES)), nothing, items)
    return items.cast(pa.large_list(_TEXT))


def _split_structs(cells: pa.Array, width: int) -> pa.Array:
    parts = pc.split_pattern(pc.binary_slice(cells, 1, -1), pattern=ITEM)
    null = pa.scalar(NULL, _BYTES)
    columns = []
    for number in range(width):
        part = pc.list_element(parts, number)
        known = pc.if_else(pc.equal(part, null), pa.scalar(None, _BYTES), part)
        columns.append(known.cast(_TEXT))
    names = [f"u{number}" for number in range(1, width + 1)]
    return pa.StructArray.from_arrays(columns, names, mask=pc.is_null(cells))


def nested_value(cell: Cell, shape: Shape) -> Any:
    """Return a complex value as pa.array takes it; parts that are missing at the end are NULL."""
    if not isinstance(cell, list):
        return cell
    match shape:
        case Array(element):
            return [nested_value(part, element) for part in cell]
        case Struct(parts):
            return {
                f"u{number}": nested_value(part, kind)
                for number, (part, kind) in enumerate(zip(cell, parts, strict=False), 1)
            }
    return None
