"""Values that lie elsewhere, put back into the complex values that they belong to."""

from __future__ import annotations

from collections.abc import Callable

from muniment.sql.batch import CLOSE, ITEM, OPEN, REF, parts_of
from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind

__all__ = ["part_shape", "with_values"]


def part_shape(shape: Shape, number: int) -> Shape:
    """Return the shape of a part of a complex value; parts are counted from 0."""
    if isinstance(shape, Array):
        return shape.element
    assert isinstance(shape, Struct)
    return shape.parts[number]


def with_values(cell: bytes, shape: Shape, read: Callable[[bytes], bytes]) -> bytes:
    """Return a cell with the value in place of each reference: text as it is, others as hex."""
    if cell.startswith(REF):
        content = read(cell[1:])
        text = isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT
        return content if text else content.hex().upper().encode()
    if not cell.startswith(OPEN) or REF not in cell:
        return cell
    parts = enumerate(parts_of(cell))
    filled = (with_values(part, part_shape(shape, n), read) + ITEM for n, part in parts)
    return OPEN + b"".join(filled) + CLOSE
