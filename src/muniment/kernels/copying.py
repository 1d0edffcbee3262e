"""COPY text to batches in machine code: what ``databases.postgresql.copytext`` does."""

from __future__ import annotations

import numpy as np

from muniment.kernels.machine import BAD, LARGEST, copy_to_batch
from muniment.kernels.wide import SIZE

__all__ = ["decode"]

_PLAIN = np.arange(256, dtype=np.uint8)
_PLAIN[[9, 10]] = 0xFF, 0xFD  # the ends of cells and rows
_ESCAPED = np.zeros(256, np.uint8)
for _letter, _byte in zip("ntrbfv\\N", (10, 9, 13, 8, 12, 11, 92, 0xFE), strict=True):
    _ESCAPED[ord(_letter)] = _byte


def decode(copied: bytes) -> bytes | None:
    """Return rows of COPY text as the data of a batch; None leaves it to Python."""
    if len(copied) > LARGEST:
        return None
    out = np.empty(len(copied) + SIZE, np.uint8)
    size = copy_to_batch(np.frombuffer(copied, np.uint8), out, _PLAIN, _ESCAPED)
    return None if size == BAD else out[: int(size)].tobytes()
