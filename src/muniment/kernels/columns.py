"""Batches to Arrow columns in machine code."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muniment.kernels.machine import gather_columns, split_columns

__all__ = ["split"]

_BYTES = pa.large_binary()


def split(data: bytes, rows: int, width: int) -> list[pa.Array] | None:
    """Return the columns of a batch's data, or None if it is not so many rows and columns."""
    octets, columns = np.frombuffer(data, np.uint8), np.uint64(width)
    sizes, lengths = np.zeros(width, np.uint64), np.empty(rows * width, np.int64)
    if not split_columns(octets, np.uint64(rows), columns, sizes, lengths):
        return None
    ends = np.cumsum(sizes)
    starts = ends - sizes
    texts = np.empty(int(ends[-1]), np.uint8)
    offsets, valid = np.empty((width, rows + 1), np.uint64), np.zeros((width, -(-rows // 8)), "u1")
    offsets[:, 0] = starts
    gather_columns(octets, np.uint64(rows), columns, lengths, starts, texts, offsets, valid)
    content = pa.py_buffer(texts)
    return [
        pa.Array.from_buffers(_BYTES, rows, [*map(pa.py_buffer, (known, bounds)), content])
        for known, bounds in zip(valid, offsets, strict=True)
    ]
