"""Machine code for the loops that every row goes through, made by Numba where it is installed.

Each kernel does what its counterpart in pure Python does, or gives up and leaves it to that.
Loading them takes half a second, so they come in when a process has handled some data: small
archives never pay for them. ``MUNIMENT_KERNELS=never`` keeps them out, ``always`` brings them in
at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from muniment.sql.batch import Batch
from muniment.sql.model import Shape

__all__ = [
    "Copying", "Fetching", "Joining", "Measuring", "Picking", "Reading", "Splitting", "Stepping",
    "Summing", "Writing", "at_once", "copying_kernel", "digest_kernel", "expect",
    "fetching_kernel", "joining_kernel", "measuring_kernel", "picking_kernel", "reading_kernel",
    "splitting_kernel", "stepping_kernel", "worth_while", "writing_kernel",
]  # fmt: skip

# A batch's data, the number of its rows and whether to check values, to XML; rows of XML to a
# batch; a batch's data, the numbers of its rows and columns, to Arrow arrays; plain rows of XML,
# the wanted columns and the number of all, to Arrow arrays. None says: not for machine code.
Writing = Callable[[bytes, int, bool], bytes | None]
Reading = Callable[[bytes], Batch | None]
Splitting = Callable[[bytes, int, int], list[Any] | None]
Picking = Callable[[bytes, Sequence[int], int], list[Any] | None]

# COPY text of PostgreSQL to a batch's data; None says: not for machine code.
Copying = Callable[[bytes], bytes | None]

# A libpq connection in the middle of a COPY, to its rows, some at a time.
Fetching = Callable[[Any], Generator[bytes, None, bytes]]

# A batch's data, to the sum of its rows' digests, and to the size of its longest row.
Summing = Callable[[bytes], int]
Measuring = Callable[[bytes], int]

# An SQLite connection, a query, the types of its columns and the longest value that is given whole,
# to batches and the keys of rows that take a closer look.
Stepping = Callable[[Any, str, Sequence[Any], int], Generator[Batch | int, None, None]]

# Arrow columns of a database's own values, and the longest text among them that is not unusual, to
# batches.
Joining = Callable[[Sequence[Any], int], Iterator[Batch] | None]

_ENOUGH = 24 << 20  # bytes of batches; about 60 MB of XML
_MUCH = 128 << 20  # bytes of a database: kernels pay from the first row
_NEVER = 1 << 62
_missing = {"always": 0, "never": _NEVER}.get(os.environ.get("MUNIMENT_KERNELS", ""), _ENOUGH)


def worth_while(size: int) -> bool:
    """Whether kernels are to do the next bytes: so many were handled in this process."""
    global _missing
    if _missing > 0:
        _missing -= size if _missing < _NEVER else 0
        return False
    return True


def expect(size: int) -> None:
    """Bring kernels in at once where so many bytes are to come that this pays."""
    global _missing
    if size >= _MUCH and _missing < _NEVER:
        _missing = 0


def at_once() -> bool:
    """Bring kernels in now, for work that needs them; False if they cannot be had."""
    global _missing
    if _missing >= _NEVER or _loaded("machine", "BAD") is None:
        return False
    _missing = 0
    return True


def writing_kernel(
    shapes: Sequence[Shape],
    opens: Sequence[bytes],
    closes: Sequence[bytes],
    nullable: Sequence[bool],
) -> Writing:
    """Return what writes the rows of a table."""
    make = _loaded("writing", "WritingKernel")
    kernel = make and make(shapes, opens, closes, nullable)
    return kernel if kernel is not None and kernel.usable else _give_up


def reading_kernel(shapes: Sequence[Shape]) -> Reading:
    """Return what reads the rows of a table."""
    make = _loaded("reading", "ReadingKernel")
    kernel = make and make(shapes)
    return kernel if kernel is not None and kernel.usable else _give_up


def splitting_kernel() -> Splitting:
    """Return what takes batches apart into columns."""
    return _loaded("columns", "split") or _give_up


def joining_kernel() -> Joining:
    """Return what joins columns to batches."""
    return _loaded("joining", "joined") or _give_up


def picking_kernel() -> Picking:
    """Return what takes single columns out of plain rows."""
    return _loaded("columns", "pick") or _give_up


def digest_kernel() -> Summing | None:
    """Return what sums up the digests of rows."""
    kernel: Summing | None = _loaded("digests", "sum_of_rows") if worth_while(0) else None
    return kernel


def measuring_kernel() -> Measuring | None:
    """Return what looks for the longest row."""
    kernel: Measuring | None = _loaded("lengths", "longest") if worth_while(0) else None
    return kernel


def copying_kernel() -> Copying | None:
    """Return what turns COPY text into the data of batches."""
    kernel: Copying | None = _loaded("copying", "decode") if worth_while(0) else None
    return kernel


def fetching_kernel() -> Fetching | None:
    """Return what takes the rows of a COPY in bulk."""
    kernel: Fetching | None = _loaded("postgresql", "fetch") if worth_while(0) else None
    return kernel


def stepping_kernel() -> Stepping | None:
    """Return what reads rows out of SQLite."""
    kernel: Stepping | None = _loaded("sqlite", "step") if worth_while(0) else None
    return kernel


@cache
def _loaded(module: str, name: str) -> Any:
    """Return a part of this package, or None for good if what it needs cannot be had.

    Numba is not installed then or has no place to keep its code, or a library hides its functions:
    all works, only slower.
    """
    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except (ImportError, OSError, RuntimeError):
        return None


def _give_up(*_: object) -> None:
    return None
