"""What targets share whose rows go through a driver, value by value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from muniment.databases.pyvalues import value_of
from muniment.errors import DatabaseError
from muniment.sql.batch import REF, Batch, Cell, cell_value, cells_of
from muniment.sql.model import Array, Leaf, Schema, Shape, Struct, Table
from muniment.sql.stores import OpenLob
from muniment.sql.types import Kind

__all__ = ["Kept", "RowLoader", "read_lob"]


class Kept:
    """The batches of a part, as they are."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self.batches = tuple(batches)
        self.rows = sum(batch.rows for batch in self.batches)


class RowLoader:
    """Turns batches into rows of Python values."""

    def __init__(
        self,
        where: str,
        table: Table,
        shapes: list[Shape],
        read: Callable[[bytes], bytes],
        *,
        lists: bool = False,  # whether the driver takes arrays
    ) -> None:
        self._where, self._read, self._lists = where, read, lists
        self._columns = list(zip(table.columns, shapes, strict=True))

    def __call__(self, batch: Batch, first: int) -> list[tuple[Any, ...]]:
        cells, width = cells_of(batch), len(self._columns)
        rows = (cells[start : start + width] for start in range(0, len(cells), width))
        return [
            tuple(self._value(k, cell, number) for k, cell in enumerate(row))
            for number, row in enumerate(rows, first)
        ]

    def _value(self, k: int, cell: bytes, number: int) -> Any:
        column, shape = self._columns[k]
        if cell.startswith(REF):
            content = self._read(cell[1:])
            binary = isinstance(shape, Leaf) and shape.type.kind is Kind.BINARY
            return content if binary else content.decode("utf-8", "surrogatepass")
        text = cell_value(cell, lambda reference: self._read(reference).decode())
        if text is None:
            return None
        if self._lists and isinstance(shape, Array) and isinstance(shape.element, Leaf):
            assert isinstance(text, list)
            return [value_of(shape.element.type, part) for part in text if isinstance(part, str)]
        if not isinstance(shape, Leaf):
            return json.dumps(_plain(text, shape), ensure_ascii=False)
        assert isinstance(text, str)
        value = value_of(shape.type, text)
        if value is None:
            raise DatabaseError(
                f"{self._where}.{column.name}, row {number}: {text[:60]!r} has no value in Python "
                "that is exact; restore it to another product"
            )
        return value


def _plain(value: Cell, shape: Shape) -> Any:
    if not isinstance(value, list):
        return value
    if isinstance(shape, Array):
        return [_plain(part, shape.element) for part in value]
    assert isinstance(shape, Struct)
    return {n: _plain(v, s) for n, v, s in zip(shape.names, value, shape.parts, strict=True)}


def read_lob(open_lob: OpenLob, schema: Schema, table: Table, reference: bytes) -> bytes:
    with open_lob(schema, table, reference) as stream:
        return stream.read()
