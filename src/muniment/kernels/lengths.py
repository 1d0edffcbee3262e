"""How long the rows of a batch are, in machine code."""

from __future__ import annotations

import numpy as np

from muniment.kernels.machine import longest_row

__all__ = ["longest"]


def longest(data: bytes) -> int:
    """Return the size of the longest row, its end not counted."""
    return int(longest_row(np.frombuffer(data, np.uint8)))
