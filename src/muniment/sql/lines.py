"""Rows that a database joined to one text each, proved to be what they look like.

The database puts CELL between the cells. NULL and REF carry a nonce, and a value that has no exact
text carries the odd mark, so that bytes of structure inside a value (text that is not UTF-8) are
found by counting.
"""

from __future__ import annotations

import os

from muniment.sql.batch import CELL, NULL, REF, ROW, Batch

__all__ = ["ODD", "LineCheck"]

ODD = b"\xf8"
_ASCII = bytes(range(128))
_STRUCTURE = CELL + ROW + NULL + REF
_AS_SPACES = bytes.maketrans(_STRUCTURE, b" " * len(_STRUCTURE))


class LineCheck:
    """Turns such lines, each ended by ROW, into a batch.

    ``null`` and ``ref`` are the marks to put into the query.
    """

    def __init__(self) -> None:
        nonce = os.urandom(8).hex().encode()  # no byte of structure in it
        self.null, self.ref = NULL + nonce, REF + nonce

    def __call__(self, data: bytes, rows: int, width: int) -> Batch | None:
        """Return the batch if each byte of structure in it is one that the query made."""
        rest = data.translate(None, _ASCII)  # little is left: the structure, and text beyond ASCII
        if ODD in rest or rest.count(CELL) != rows * (width - 1) or rest.count(ROW) != rows:
            return None
        for mark, plain in ((self.null, NULL), (self.ref, REF)):
            if plain in rest:
                marked, data = len(data), data.replace(mark, plain)
                if rest.count(plain) * (len(mark) - 1) != marked - len(data):
                    return None
        if rest.translate(None, _STRUCTURE) and not _is_text(data):
            return None
        return Batch(data, rows)


def _is_text(data: bytes) -> bool:
    """Whether all cells are Unicode; what has surrogates takes a closer look."""
    try:
        data.translate(_AS_SPACES).decode()
    except UnicodeDecodeError:
        return False
    return True
