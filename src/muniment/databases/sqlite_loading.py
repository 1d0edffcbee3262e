"""Batches as rows of values that SQLite stores as they were."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import apsw

from muniment.databases.sqlite_types import NAN
from muniment.sql.batch import CELL, NULL, REF, ROW, Batch, cell_value
from muniment.sql.model import Leaf, Shape
from muniment.sql.nested import nested_value
from muniment.sql.types import Kind
from muniment.sql.values import with_values

__all__ = ["PIECE", "Loader", "converter"]

PIECE = 1 << 20  # bytes of a large object that are held

# Control characters that stand for the bytes of structure while a batch is text.
_TO_TEXT = bytes.maketrans(CELL + ROW + NULL, b"\x1f\x1f\x1e")
_CELL, _NULL = "\x1f", "\x1e"


class Loader:
    """Turns batches into rows of values that SQLite stores as they were."""

    def __init__(
        self,
        shapes: list[Shape],
        converters: list[Callable[[Any], Any] | None],
        kept: list[int],
        open_lob: Callable[[bytes], BinaryIO],
        fillable: frozenset[int],
    ) -> None:
        self._width = len(shapes)
        self._kept = kept if len(kept) < len(shapes) else None
        self.open, self._fillable = open_lob, fillable
        self._shapes = shapes
        self._convert = [
            (k, convert) for k, convert in enumerate(converters) if convert is not None
        ]

    def __call__(self, batch: Batch) -> Iterator[tuple[Any, ...]]:
        cells = self._cells(batch)
        for k, convert in self._convert:
            column = cells[k :: self._width]
            cells[k :: self._width] = [
                None if c is None else c if type(c) is bytes else convert(c) for c in column
            ]
        rows = zip(*[iter(cells)] * self._width, strict=True)
        if self._kept is None:
            return rows
        return (tuple(row[k] for k in self._kept or ()) for row in rows)

    def with_objects(
        self, batch: Batch
    ) -> Iterator[tuple[tuple[Any, ...], list[tuple[int, bytes]]]]:
        """Yield rows, and the columns in which large objects are yet to be written."""
        for row in batch.data.split(ROW)[:-1]:
            objects: list[tuple[int, bytes]] = []
            cells: list[Any] = []
            for k, cell in enumerate(row.split(CELL)):
                value = self._object(k, cell) if cell.startswith(REF) else self._value(k, cell)
                if isinstance(value, apsw.zeroblob):
                    objects.append((k, cell[1:]))
                cells.append(value)
            yield self._row(cells), objects

    def whole(self, batch: Batch) -> Iterator[tuple[Any, ...]]:
        """Yield rows with their large objects, one row at a time."""
        for row in batch.data.split(ROW)[:-1]:
            yield self._row([self._value(k, cell) for k, cell in enumerate(row.split(CELL))])

    def filled(self, row: tuple[Any, ...], objects: list[tuple[int, bytes]]) -> tuple[Any, ...]:
        """Return a row with its large objects in memory."""
        values = list(row)
        for k, reference in objects:
            values[self._kept.index(k) if self._kept else k] = self._read(reference)
        return tuple(values)

    def _row(self, cells: list[Any]) -> tuple[Any, ...]:
        for k, convert in self._convert:
            if cells[k] is not None and not isinstance(cells[k], (bytes, apsw.zeroblob)):
                cells[k] = convert(cells[k])
        return tuple(cells) if self._kept is None else tuple(cells[k] for k in self._kept)

    def _object(self, k: int, cell: bytes) -> Any:
        """Return an object, or room for it if it is too large to be held."""
        shape = self._shapes[k]
        if k not in self._fillable or (isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT):
            return self._value(k, cell)  # SQLite fills only bytes
        with self.open(cell[1:]) as stream:
            size: int | None = getattr(stream, "size", None)
            return stream.read() if size is None or size <= PIECE else apsw.zeroblob(size)

    def _read(self, reference: bytes) -> bytes:
        with self.open(reference) as stream:
            return stream.read()

    def _cells(self, batch: Batch) -> list[Any]:
        data = batch.data
        if REF in data or b"\x1e" in data or b"\x1f" in data or b"\xfa" in data:
            return self._careful(batch)
        try:
            cells: list[Any] = data.translate(_TO_TEXT).decode().split(_CELL)
        except UnicodeDecodeError:
            return self._careful(batch)
        cells.pop()
        position = -1
        for _ in range(data.count(NULL)):
            position = cells.index(_NULL, position + 1)
            cells[position] = None
        return cells

    def _careful(self, batch: Batch) -> list[Any]:
        """Cell by cell: for large objects, complex values, surrogates and control characters."""
        cells = batch.data.replace(ROW, CELL).split(CELL)
        cells.pop()
        return [self._value(position % self._width, cell) for position, cell in enumerate(cells)]

    def _value(self, k: int, cell: bytes) -> Any:
        shape = self._shapes[k]
        if cell.startswith(REF):
            content = self._read(cell[1:])
            if isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT:
                return content.decode("utf-8", "surrogatepass")
            return content
        value = cell_value(with_values(cell, shape, self._read))
        if isinstance(value, list):
            return json.dumps(nested_value(value, shape), ensure_ascii=False)
        return value


def converter(shape: Shape, declared: str) -> Callable[[Any], Any] | None:
    """Return what makes a stored value of a text; None where SQLite does that itself.

    A column of a numeric declaration turns text into numbers, exactly; others would keep the text.
    """
    if not isinstance(shape, Leaf):
        return None
    kind = shape.type.kind
    if kind in _NUMBERS and (not declared or "BLOB" in declared.upper()):
        return _NUMBERS[kind]
    return _CONVERTERS.get(kind)


def _float(text: str) -> Any:
    """SQLite has infinities but no spelling of them that it would read back, and no NaN at all."""
    return float(text) if text in ("INF", "-INF") else text


_NUMBERS: dict[Kind, Callable[[str], Any]] = {
    Kind.INTEGER: int,
    Kind.FLOAT: lambda text: text if text == NAN else float(text.replace("INF", "inf")),
    Kind.DECIMAL: lambda text: int(text) if text.lstrip("+-").isdecimal() else text,
}
_CONVERTERS: dict[Kind, Callable[[str], Any]] = {
    Kind.BOOLEAN: lambda text: 1 if text in ("true", "1") else 0,
    Kind.BINARY: bytes.fromhex,
    Kind.TIMESTAMP: lambda text: text.replace("T", " ", 1),
    Kind.FLOAT: _float,
}
