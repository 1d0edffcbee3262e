"""Batches as typed Arrow columns, for those who compute with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muniment.sql.batch import NULL, REF, Batch, Cell, cell_value, cells_of
from muniment.sql.model import Array, Column, Leaf, Shape
from muniment.sql.types import Kind, PredefinedType
from muniment.sql.values import with_values

__all__ = ["arrow_type", "text_column", "typed_batch"]

_MAX_DIGITS = 76  # of Arrow's widest decimals; longer ones stay text


def typed_batch(
    batch: Batch,
    columns: Sequence[Column],
    shapes: Sequence[Shape],
    read: Callable[[bytes], bytes] | None = None,
) -> pa.RecordBatch:
    """Return the rows of a batch as typed columns; ``read`` fetches values that lie elsewhere.

    Values that Arrow's type cannot hold exactly raise ``pyarrow.ArrowInvalid``.
    """
    cells, width = cells_of(batch), len(shapes)
    arrays = [_array(cells[k::width], shape, read) for k, shape in enumerate(shapes)]
    return pa.record_batch(arrays, names=[column.name for column in columns])


def arrow_type(shape: Shape) -> pa.DataType:
    """Return the Arrow type that holds cells of a shape exactly."""
    if isinstance(shape, Array):
        return pa.list_(arrow_type(shape.element))
    if not isinstance(shape, Leaf):
        names = shape.names or [f"u{n}" for n in range(1, len(shape.parts) + 1)]
        return pa.struct(list(zip(names, map(arrow_type, shape.parts), strict=True)))
    return _leaf_type(shape.type)


def _leaf_type(type_: PredefinedType) -> pa.DataType:
    match type_.kind:
        case Kind.INTEGER:
            return {"SMALLINT": pa.int16(), "INTEGER": pa.int32()}.get(type_.name, pa.int64())
        case Kind.DECIMAL if type_.length is not None and type_.length <= _MAX_DIGITS:
            scale = type_.scale or 0
            wide = type_.length > 38
            return (
                pa.decimal256(type_.length, scale) if wide else pa.decimal128(type_.length, scale)
            )
        case Kind.FLOAT:
            return pa.float32() if type_.name == "REAL" else pa.float64()
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.BINARY | Kind.DATALINK:
            return pa.binary()
        case Kind.DATE:
            return pa.date32()
        case Kind.TIME:
            return pa.time64("us" if (type_.length or 6) <= 6 else "ns")
        case Kind.TIMESTAMP:
            zone = "UTC" if type_.name.endswith("ZONE") else None
            return pa.timestamp("us" if (type_.length or 6) <= 6 else "ns", zone)
    return pa.string()


def text_column(cells: list[bytes]) -> pa.Array:
    """Return cells as text, in bulk; NULL as null."""
    array = pa.array(cells, pa.binary())
    if NULL in cells:
        array = pc.if_else(pc.equal(array, NULL), pa.scalar(None, pa.binary()), array)
    return array.cast(pa.string())


def _array(cells: list[bytes], shape: Shape, read: Callable[[bytes], bytes] | None) -> pa.Array:
    type_ = arrow_type(shape)
    if not isinstance(shape, Leaf):
        if read is not None:
            cells = [with_values(cell, shape, read) for cell in cells]
        return pa.array([_nested(cell_value(cell), shape) for cell in cells], type_)
    kind = shape.type.kind
    if any(cell.startswith(REF) for cell in cells) or kind in (Kind.BINARY, Kind.DATALINK):
        return pa.array([_octets(cell, kind, read) for cell in cells], pa.binary()).cast(type_)
    text = text_column(cells)
    if kind is Kind.TIME:  # Arrow has no cast from text to times of day
        return (
            pa.array([None if t is None else _nanoseconds(t) for t in text.to_pylist()])
            .cast(pa.time64("ns"))
            .cast(type_)
        )
    if kind is Kind.TIMESTAMP:
        # Parsed as UTC, which it is; the zone then comes off where the column has none.
        return pc.assume_timezone(text.cast(pa.timestamp(type_.unit)), "UTC").cast(type_)
    if kind is Kind.FLOAT:
        text = pc.replace_substring(text, "INF", "inf")
    return text.cast(type_)


def _octets(cell: bytes, kind: Kind, read: Callable[[bytes], bytes] | None) -> bytes | None:
    if cell == NULL:
        return None
    if cell.startswith(REF):
        if read is None:
            raise ValueError("a value lies elsewhere, and nothing was given to read it with")
        return read(cell[1:])
    return bytes.fromhex(cell.decode()) if kind in (Kind.BINARY, Kind.DATALINK) else cell


def _nested(value: Cell, shape: Shape) -> Any:
    """Complex values cell by cell: they are rare, and Arrow builds them from Python values."""
    if value is None:
        return None
    if isinstance(shape, Array):
        return [_nested(part, shape.element) for part in value]
    if not isinstance(shape, Leaf):
        names = shape.names or [f"u{n}" for n in range(1, len(shape.parts) + 1)]
        return {n: _nested(v, s) for n, v, s in zip(names, value, shape.parts, strict=True)}
    assert isinstance(value, str)
    one = Batch(value.encode("utf-8", "surrogatepass") + b"\xfd", 1)
    return _array(cells_of(one), shape, None)[0].as_py()


def _nanoseconds(text: str) -> int:
    whole, _, fraction = text.partition(".")
    clock = time.fromisoformat(whole)
    seconds = clock.hour * 3600 + clock.minute * 60 + clock.second
    return seconds * 1_000_000_000 + int(fraction.ljust(9, "0")[:9] or 0)
