"""Rows on their way from a source to a target: exact text, in bulk.

A batch is one byte string of a few hundred rows, small enough to stay in the processor's cache.
Cells are UTF-8 in SIARD's lexical form before any escaping (lone surrogates as three bytes, as
Python's ``surrogatepass`` spells them). The bytes F8 to FF never occur in such text, so they carry
the structure and nothing has to be quoted:

    FF  between two cells                 FA  opens a complex value (UDT or array)
    FE  a cell that is NULL               FB  ends each of its parts
    FD  after the last cell of a row      FC  closes it
    F9  a cell whose value lies elsewhere: what follows tells the source where

Lexical forms: numbers as XML Schema writes them, booleans ``true`` and ``false``, dates and times
ISO 8601 in UTC *without* the final Z (SIARD's files add it), binary values as upper-case hex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = [
    "CELL", "CLOSE", "ITEM", "NULL", "OPEN", "REF", "ROW", "Batch", "Cell", "batch_of",
    "cell_bytes", "cell_value", "cells_of", "null_positions", "parts_of", "rows_of",
]  # fmt: skip

CELL, NULL, ROW = b"\xff", b"\xfe", b"\xfd"
CLOSE, ITEM, OPEN = b"\xfc", b"\xfb", b"\xfa"
REF = b"\xf9"

Cell = str | None | list["Cell"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of one table, each ended by ROW."""

    data: bytes
    rows: int


def cells_of(batch: Batch) -> list[bytes]:
    """Return all cells of a batch, row after row; NULL is the one byte NULL."""
    cells = batch.data.replace(ROW, CELL).split(CELL)
    cells.pop()
    return cells


def rows_of(batch: Batch) -> list[bytes]:
    """Return the rows of a batch without their ends."""
    rows = batch.data.split(ROW)
    rows.pop()
    return rows


def null_positions(batch: Batch, width: int) -> Iterator[int]:
    """Yield the positions of NULL among all cells, without looking at the others.

    For rows of plain cells only: complex values hold NULLs of their own.
    """
    data = batch.data
    row = seen = 0
    at = data.find(NULL)
    while at >= 0:
        row += data.count(ROW, seen, at)
        start = data.rfind(ROW, 0, at) + 1
        yield row * width + data.count(CELL, start, at)
        seen = at
        at = data.find(NULL, at + 1)


def batch_of(rows: Iterable[Sequence[Cell]]) -> Batch:
    """Build a batch from Python values: for small data and for rows off the fast path.

    >>> batch_of([["1", None, ["a", None]]]).data
    b'1\\xff\\xfe\\xff\\xfaa\\xfb\\xfe\\xfb\\xfc\\xfd'
    """
    lines = [CELL.join(map(cell_bytes, row)) + ROW for row in rows]
    return Batch(b"".join(lines), len(lines))


def cell_bytes(cell: Cell) -> bytes:
    """Return a cell as a batch holds it."""
    if cell is None:
        return NULL
    if isinstance(cell, str):
        return cell.encode("utf-8", "surrogatepass")
    return OPEN + b"".join(cell_bytes(part) + ITEM for part in cell) + CLOSE


def cell_value(cell: bytes, resolve: Callable[[bytes], str] | None = None) -> Cell:
    """Return a cell as text, None or, for complex values, a list: the inverse of ``cell_bytes``.

    ``resolve`` is given what follows the REF byte of a value that lies elsewhere.
    """
    if cell == NULL:
        return None
    if cell.startswith(OPEN):
        return [cell_value(part, resolve) for part in parts_of(cell)]
    if cell.startswith(REF) and resolve is not None:
        return resolve(cell[1:])
    return cell.decode("utf-8", "surrogatepass")


def parts_of(cell: bytes) -> Iterator[bytes]:
    """Yield the parts of a complex value as cells."""
    inner = cell[1:-1]
    if OPEN not in inner:
        yield from inner.split(ITEM)[:-1]
        return
    start = depth = 0
    for position, byte in enumerate(inner):
        if byte == 0xFA:
            depth += 1
        elif byte == 0xFC:
            depth -= 1
        elif byte == 0xFB and depth == 0:
            yield inner[start:position]
            start = position + 1
