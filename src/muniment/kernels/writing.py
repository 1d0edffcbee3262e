"""Batches to row XML in machine code: what ``siard.rows`` does, for all that is usual.

The kernel knows columns of plain values, and gives up at anything that it is not sure of: a value
that does not fit its column, a reference to a large object, text that is not UTF-8. The caller then
takes the other road, which knows every case and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muniment.kernels import machine
from muniment.kernels.machine import BAD, LARGEST, write_rows
from muniment.kernels.wide import SIZE
from muniment.sql.model import Leaf, Shape
from muniment.sql.types import Kind

__all__ = ["WritingKernel"]

_CHECKS = {
    Kind.INTEGER: machine.VERBATIM,
    Kind.FLOAT: machine.VERBATIM,
    Kind.BOOLEAN: machine.VERBATIM,
    Kind.TEXT: machine.TEXT,
    Kind.DATALINK: machine.TEXT,
    Kind.DATE: machine.DATE,
    Kind.TIME: machine.TIME,
    Kind.TIMESTAMP: machine.TIMESTAMP,
    Kind.DECIMAL: machine.DECIMAL,
    Kind.BINARY: machine.BINARY,
}
_ANY_DIGITS = 1 << 30
_LONGEST = 6  # what an escape makes of one byte


class WritingKernel:
    """Writes the rows of one table."""

    def __init__(
        self,
        shapes: Sequence[Shape],
        opens: Sequence[bytes],
        closes: Sequence[bytes],
        nullable: Sequence[bool],
    ) -> None:
        checks = [_check_of(shape) for shape in shapes]
        self.usable = None not in checks
        if not self.usable:
            return
        limits = [_digits(shape) for shape in shapes]
        pairs = zip(opens, closes, strict=True)
        tags = [b"<row>", *(tag for pair in pairs for tag in pair), b"</row>\n"]
        self._columns = (
            np.array(checks, np.uint8),
            np.array([whole for whole, _ in limits], np.uint64),
            np.array([fraction for _, fraction in limits], np.uint64),
            np.array(nullable, np.bool_),
            np.frombuffer(b"".join(tags) + bytes(SIZE), np.uint8),
            np.cumsum([0, *map(len, tags)]).astype(np.uint64),
        )
        self._row_size = sum(map(len, tags))
        self._out = np.empty(0, np.uint8)

    def __call__(self, data: bytes, rows: int, checked: bool) -> bytes | None:
        """Return the XML of a batch's data, or None if it holds anything unusual."""
        if len(data) > LARGEST:
            return None
        room = _LONGEST * len(data) + rows * self._row_size + SIZE
        if len(self._out) < room:
            self._out = np.empty(room, np.uint8)
        size = write_rows(np.frombuffer(data, np.uint8), self._out, rows, checked, *self._columns)
        return None if size == BAD else self._out[:size].tobytes()


def _check_of(shape: Shape) -> int | None:
    return _CHECKS.get(shape.type.kind) if isinstance(shape, Leaf) else None


def _digits(shape: Shape) -> tuple[int, int]:
    """How many digits stand before and after the point at most."""
    assert isinstance(shape, Leaf)
    type_ = shape.type
    if type_.kind is not Kind.DECIMAL or type_.length is None:
        return _ANY_DIGITS, _ANY_DIGITS
    return type_.length - (type_.scale or 0), type_.scale or 0
