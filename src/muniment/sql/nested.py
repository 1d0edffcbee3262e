"""Complex values for products that have none: as JSON."""

from __future__ import annotations

from typing import Any

from muniment.sql.batch import Cell
from muniment.sql.model import Array, Shape, Struct

__all__ = ["nested_value"]


def nested_value(value: Cell, shape: Shape) -> Any:
    """Return a cell as what JSON writes: objects by the names of attributes, arrays as lists."""
    if not isinstance(value, list):
        return value
    if isinstance(shape, Array):
        return [nested_value(part, shape.element) for part in value]
    assert isinstance(shape, Struct)
    return {n: nested_value(v, s) for n, v, s in zip(shape.names, value, shape.parts, strict=True)}
