"""Row XML to batches in machine code: what ``siard.parse`` does, for the usual spelling.

Usual is what this program writes: rows one after another, their columns in order, no attributes,
no references but the five that XML names. At anything else the kernel gives up, and the caller
takes the road that reads all of XML.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muniment.kernels.machine import BAD, LARGEST, OCTETS, PLAIN, UTC, read_rows
from muniment.kernels.wide import SIZE
from muniment.sql.batch import Batch
from muniment.sql.model import Leaf, Shape
from muniment.sql.types import Kind

__all__ = ["ReadingKernel"]

_SHORTEST = len(b"<row></row>")
_UTC_KINDS = {Kind.DATE, Kind.TIME, Kind.TIMESTAMP}


class ReadingKernel:
    """Reads the rows of one table."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.usable = all(isinstance(shape, Leaf) for shape in shapes)
        if not self.usable:
            return
        pairs = ((b"<c%d>" % k, b"</c%d>" % k) for k in range(1, len(shapes) + 1))
        tags = [b"<row>", *(tag for pair in pairs for tag in pair), b"</row>"]
        self._columns = (
            np.array([_form_of(shape) for shape in shapes], np.uint8),
            np.frombuffer(b"".join(tags) + bytes(SIZE), np.uint8),
            np.cumsum([0, *map(len, tags)]).astype(np.uint64),
        )
        self._width = len(shapes)
        self._out = np.empty(0, np.uint8)

    def __call__(self, xml: bytes) -> Batch | None:
        """Return the batch of whole rows, or None if anything is unusual."""
        if len(xml) > LARGEST:
            return None
        # A separator and a NULL per cell; counting the rows would take a third of the time.
        room = len(xml) + 2 * self._width * (len(xml) // _SHORTEST) + SIZE
        if len(self._out) < room:
            self._out = np.empty(room, np.uint8)
        rows, size = read_rows(np.frombuffer(xml, np.uint8), self._out, *self._columns)
        return None if size == BAD else Batch(self._out[:size].tobytes(), int(rows))


def _form_of(shape: Shape) -> int:
    assert isinstance(shape, Leaf)
    if shape.type.kind is Kind.BINARY:
        return OCTETS
    return UTC if shape.type.kind in _UTC_KINDS else PLAIN
