"""Batches and plain row XML to Arrow columns in machine code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from muniment.kernels.machine import (
    count_rows,
    find_cells,
    gather_cells,
    gather_columns,
    split_columns,
)
from muniment.kernels.wide import SIZE

__all__ = ["pick", "split"]

_BYTES = pa.large_binary()


def split(data: bytes, rows: int, width: int) -> list[pa.Array] | None:
    """Return the columns of a batch's data, or None if it is not so many rows and columns."""
    octets, columns = np.frombuffer(data, np.uint8), np.uint64(width)
    sizes, lengths = np.zeros(width, np.uint64), np.empty(rows * width, np.int64)
    if not split_columns(octets, np.uint64(rows), columns, sizes, lengths):
        return None
    rooms = sizes + np.uint64(SIZE)
    ends = np.cumsum(rooms)
    starts = ends - rooms
    texts = np.empty(int(ends[-1]), np.uint8)
    offsets, valid = np.empty((width, rows + 1), np.uint64), np.zeros((width, -(-rows // 8)), "u1")
    offsets[:, 0] = starts
    gather_columns(octets, np.uint64(rows), columns, lengths, starts, texts, offsets, valid)
    return [_array(rows, *parts, texts) for parts in zip(valid, offsets, strict=True)]


def pick(xml: bytes, numbers: Sequence[int], width: int) -> list[pa.Array]:
    """Return the cells of some columns of rows that are known to be plain, as they are spelt."""
    octets = np.frombuffer(xml, np.uint8)
    rows = int(count_rows(octets))
    places = np.full(width + 1, 255, np.uint8)
    places[list(numbers)] = range(len(numbers))
    starts, ends = (np.zeros((len(numbers), rows), np.uint64) for _ in range(2))
    find_cells(octets, places, starts, ends)
    return [_picked(octets, *bounds) for bounds in zip(starts, ends, strict=True)]


def _picked(octets: Any, starts: Any, ends: Any) -> pa.Array:
    rows = len(starts)
    texts = np.empty(int((ends - starts).sum()) + SIZE, np.uint8)
    offsets, valid = np.zeros(rows + 1, np.uint64), np.zeros(-(-rows // 8), np.uint8)
    gather_cells(octets, starts, ends, texts, offsets, valid)
    return _array(rows, valid, offsets, texts)


def _array(rows: int, *parts: Any) -> pa.Array:
    return pa.Array.from_buffers(_BYTES, rows, [pa.py_buffer(part) for part in parts])
