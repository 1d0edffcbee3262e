"""Whether a batch holds a value that is too long for something."""

from __future__ import annotations

from muniment.kernels import measuring_kernel
from muniment.sql.batch import Batch, rows_of

__all__ = ["may_exceed"]


def may_exceed(batch: Batch, limit: int) -> bool:
    """Whether a row, and so maybe a value of it, has more bytes than that."""
    if len(batch.data) <= limit:
        return False
    if (longest := measuring_kernel()) is not None:
        return longest(batch.data) > limit
    return any(len(row) > limit for row in rows_of(batch))
