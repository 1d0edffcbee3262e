"""Batches of an archive's rows as Arrow columns for the index; runs in worker processes.

Plain cells become values or text here, in bulk. Cells of large objects stay as they are: the one
process that writes the index opens the objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muniment.databases.duckdb.pieces import (
    DuckdbPiece,
    as_values,
    nested_type,
    nested_value,
    piece_of,
)
from muniment.sql.batch import REF, Batch, Cell, cell_value
from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind

__all__ = ["IndexEncoder", "as_text", "has_references", "holds_objects", "is_large"]

_TEXT = pa.large_string()


@dataclass(frozen=True)
class IndexEncoder:
    """Turns the batches of a part into tables with the columns c1, c2, …"""

    shapes: tuple[Shape, ...]

    def __call__(self, batches: Iterable[Batch]) -> DuckdbPiece:
        return piece_of(batches, len(self.shapes), self._table)

    def _table(self, columns: list[pa.ChunkedArray]) -> pa.Table:
        arrays = map(_array, self.shapes, columns)
        return pa.table({f"c{number}": array for number, array in enumerate(arrays, 1)})


def _array(shape: Shape, cells: pa.ChunkedArray) -> Any:
    if isinstance(shape, Leaf):
        # Some writers put values of any type into files of their own.
        if _refers(cells) or (shape.type.large and shape.type.kind is not Kind.TEXT):
            return cells
        return as_values(cells, shape.type, lambda: as_text(cells))
    if holds_objects(shape) or has_references(cells):
        return cells
    values = [None if c is None else nested_value(cell_value(c), shape) for c in cells.to_pylist()]
    return pa.array(_spelt(values), nested_type(shape))


def _spelt(value: Any) -> Any:
    """Complex values with every text as DuckDB can hold it."""
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, list):
        return [_spelt(part) for part in value]
    return {n: _spelt(v) for n, v in value.items()} if isinstance(value, dict) else value


def _whole(text: Cell) -> Any:
    r"""Text whose lone surrogates, which UTF-8 does not have, are escaped: \ud800."""
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text


def as_text(cells: Any) -> Any:
    """Return cells as text, in bulk; only text with half a surrogate pair is looked at singly."""
    try:
        return cells.cast(_TEXT)
    except pa.ArrowInvalid:
        texts = (
            None if c is None else _whole(c.decode("utf-8", "surrogatepass"))
            for c in cells.to_pylist()
        )
        return pa.array(list(texts), _TEXT)


def _refers(cells: Any) -> bool:
    """Whether one of these plain cells lies in a file of its own."""
    return bool(pc.any(pc.starts_with(cells, pattern=REF)).as_py())


def has_references(cells: Any) -> bool:
    """Whether one of the cells lies in a file of its own."""
    return bool(pc.any(pc.match_substring(cells, pattern=REF)).as_py())


def is_large(shape: Shape) -> bool:
    """Whether a column's cells may be large objects themselves."""
    return isinstance(shape, Leaf) and shape.type.large


def holds_objects(shape: Shape) -> bool:
    """Whether a large object may lie somewhere in a cell of this shape."""
    match shape:
        case Leaf(type=archived):
            return archived.large
        case Array(element):
            return holds_objects(element)
        case Struct(parts):
            return any(map(holds_objects, parts))
