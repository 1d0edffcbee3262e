"""The columns of primary, candidate and foreign keys, taken out of the rows by workers.

Values are brought to one spelling, so that 1 and 1.0, or a text with and without escapes, are one
key. ``keystore`` keeps them, and judges the keys when all rows are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pyarrow as pa

from muniment.kernels import picking_kernel, worth_while
from muniment.normal import FORMS
from muniment.siard.cells import unescape_cells
from muniment.sql.batch import CELL
from muniment.sql.model import Database, Leaf, Schema, Shape, Table
from muniment.sql.types import Kind

__all__ = ["KeyColumns", "key_columns", "referenced_columns"]

_MOST_PICKED = 255
_FORM = {
    Kind.DECIMAL: "number",
    Kind.FLOAT: "float",  # and then "number": 5.0 refers to 5
    Kind.TIME: "fraction",
    Kind.TIMESTAMP: "fraction",
    Kind.BOOLEAN: "boolean",
}


References = dict[tuple[str, str], set[str]]


def referenced_columns(database: Database) -> References:
    """Return for each table the columns that foreign keys of any table refer to."""
    found: References = {}
    for _, table in database.tables():
        for key in table.foreign_keys:
            goal = found.setdefault((key.referenced_schema, key.referenced_table), set())
            goal.update(reference.referenced for reference in key.references)
    return found


def key_columns(referenced: References, schema: Schema, table: Table) -> list[int]:
    """Return the columns of a table that any key needs, counted from 1."""
    names = set(referenced.get((schema.name, table.name), ()))
    for key in (table.primary_key, *table.candidate_keys):
        names.update(key.columns if key else ())
    for foreign in table.foreign_keys:
        names.update(reference.column for reference in foreign.references)
    return [n for n, column in enumerate(table.columns, 1) if column.name in names]


class KeyColumns:
    """Takes the key columns out of the rows of one table."""

    def __init__(self, numbers: list[int], shapes: tuple[Shape | None, ...]) -> None:
        # Complex values and large objects are no keys that anybody could compare.
        self.numbers = [
            n for n in numbers if isinstance(shape := shapes[n - 1], Leaf) and not shape.type.large
        ]
        self._kinds = [shapes[n - 1].type for n in self.numbers]  # type: ignore[union-attr]
        self._width = len(shapes)

    @cached_property
    def _row(self) -> re.Pattern[bytes]:
        """Finds the key cells of a row that is known to be valid; NULL is told from empty."""
        cells, skipped = [], b""
        for n in range(1, self._width + 1):
            if n in self.numbers:
                cells.append(skipped + rb"(<c%d>[^<]*+)?+(?:</c%d>\s*+)?+" % (n, n))
                skipped = b""
            else:
                skipped += rb"(?:<c%d>[^<]*+</c%d>\s*+)?+" % (n, n)
        return re.compile(rb"<row>\s*+" + b"".join(cells) + (b"()" if len(cells) == 1 else b""))

    def gather(self) -> _Gathered:
        """Start a run."""
        return _Gathered(self)

    def plain(self, xml: bytes) -> list[list[bytes | None]]:
        """Return the key cells of proven rows, by column."""
        rows = self._row.findall(xml)
        columns: list[list[bytes | None]] = []
        for place, n in enumerate(self.numbers):
            tag = len(b"<c%d>" % n)
            columns.append([row[place][tag:] if row[place] else None for row in rows])
        return columns

    def picked(self, xml: bytes) -> list[pa.Array] | None:
        """Return the same as arrays, if machine code can do it."""
        if len(self.numbers) > _MOST_PICKED or not worth_while(len(xml) // 2):
            return None
        found = picking_kernel()(xml, self.numbers, self._width)
        return found and [self._spelt(place, cells) for place, cells in enumerate(found)]

    def _spelt(self, place: int, cells: pa.Array) -> pa.Array:
        if self._kinds[place].kind is Kind.INTEGER:
            try:
                return cells.cast(pa.large_string()).cast(pa.int64())
            except pa.ArrowInvalid:
                pass
        return self.array(place, cells.to_pylist())

    def array(self, place: int, cells: list[bytes | None]) -> pa.Array:
        """Return a key column in one spelling: numbers for integers, bytes for the rest."""
        type_ = self._kinds[place]
        if type_.kind is Kind.INTEGER:
            try:
                return pa.array(cells, pa.binary()).cast(pa.string()).cast(pa.int64())
            except pa.ArrowInvalid:
                return pa.array([_integer(cell) for cell in cells], pa.int64())
        return pa.array(_normal(cells, type_.kind, type_.name), pa.binary())

    def schema(self) -> list[tuple[str, str]]:
        """Return the columns as DuckDB declares them."""
        return [
            (f"c{n}", "BIGINT" if type_.kind is Kind.INTEGER else "BLOB")
            for n, type_ in zip(self.numbers, self._kinds, strict=True)
        ]


class _Gathered:
    """The key cells of one run."""

    def __init__(self, columns: KeyColumns) -> None:
        self._columns = columns
        self._chunks: list[list[pa.Array]] = [[] for _ in columns.numbers]
        self._waiting: list[list[bytes | None]] = [[] for _ in columns.numbers]
        self._plain: list[bytes] = []

    def take_plain(self, xml: bytes) -> None:
        """Take the cells of proven rows."""
        if self._columns.numbers:
            self._plain.append(xml)

    def take_cells(self, row: dict[int, Any]) -> None:
        """Take the cells of one row that was read into elements."""
        self._take_out()
        for waiting, n in zip(self._waiting, self._columns.numbers, strict=True):
            waiting.append(_raw(row.get(n)))

    def skip(self, rows: int) -> None:
        """Leave out rows that could not be read."""
        self._take_out()
        for waiting in self._waiting:
            waiting += [None] * rows

    def _take_out(self) -> None:
        """Take the cells out of the proven rows that have come together."""
        pieces, self._plain = self._plain, []
        if not pieces:
            return
        if (picked := self._columns.picked(b"".join(pieces))) is not None:
            self._flush()
            for chunks, cells in zip(self._chunks, picked, strict=True):
                chunks.append(cells)
            return
        for xml in pieces:  # pieces stay in the processor's cache
            for waiting, column in zip(self._waiting, self._columns.plain(xml), strict=True):
                waiting += column

    def _flush(self) -> None:
        if self._waiting[0]:
            self._put(self._waiting)
            self._waiting = [[] for _ in self._columns.numbers]

    def _put(self, columns: list[list[bytes | None]]) -> None:
        for place, cells in enumerate(columns):
            self._chunks[place].append(self._columns.array(place, cells))

    def finish(self) -> bytes:
        """Return all of them as an Arrow stream."""
        if not self._columns.numbers:
            return b""
        self._take_out()
        self._flush()
        if not any(map(len, self._chunks[0])):
            return b""
        names = [f"c{n}" for n in self._columns.numbers]
        table = pa.table(
            [pa.chunked_array(chunks).combine_chunks() for chunks in self._chunks], names
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data: bytes = sink.getvalue().to_pybytes()
        return data


def _raw(cell: Any) -> bytes | None:
    """A cell's text as it would stand in the file, so that both roads meet."""
    if cell is None or "file" in cell.attrib:
        return None
    text = (cell.text or "").encode("utf-8", "surrogatepass")
    return text.replace(b"&", b"&amp;").replace(b"<", b"&lt;")


def _integer(cell: bytes | None) -> int | None:
    try:
        value = int(cell) if cell is not None else None
    except ValueError:
        return None
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


def _normal(cells: list[bytes | None], kind: Kind, name: str) -> list[bytes | None]:
    """One spelling for equal values; malformed ones stay as they are."""
    if kind is Kind.TEXT:
        joined = CELL.join(cell for cell in cells if cell is not None)
        if b"&" in joined or b"\\" in joined:
            cells = [_unescaped(cell) for cell in cells]
        if name in ("CHAR", "NCHAR"):
            return [cell and cell.rstrip(b" ") for cell in cells]
        return cells
    if kind is Kind.BINARY:
        return [cell and cell.strip().upper() for cell in cells]
    form: Callable[[bytes], bytes] = FORMS.get(_FORM.get(kind, ""), bytes)
    if kind is Kind.FLOAT:
        return [None if cell is None else FORMS["number"](form(cell.strip())) for cell in cells]
    return [None if cell is None else form(cell.strip().removesuffix(b"Z")) for cell in cells]


def _unescaped(cell: bytes | None) -> bytes | None:
    if cell is None:
        return None
    try:
        return unescape_cells(cell)
    except ValueError:
        return cell
