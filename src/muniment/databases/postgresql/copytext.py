"""PostgreSQL's COPY text to batches and back: operations on whole byte strings, no I/O.

COPY ends cells with a tab, rows with a line feed, writes NULL as ``\\N`` and escapes a few control
characters and the backslash. Batches use bytes that text never contains, and need no escapes.
"""

from __future__ import annotations

from muniment.kernels import copying_kernel
from muniment.sql.batch import CELL, NULL, ROW

__all__ = ["decode_rows", "encode_rows", "encode_text"]

_STRUCTURE = bytes.maketrans(b"\t\n", CELL + ROW)
_BACK = bytes.maketrans(CELL + ROW, b"\t\n")
_BACKSLASH = b"\xf7"  # stands for an escaped backslash while the other escapes are undone
_ESCAPES = (
    (b"\\n", b"\n"),
    (b"\\t", b"\t"),
    (b"\\r", b"\r"),
    (b"\\b", b"\b"),
    (b"\\f", b"\f"),
    (b"\\v", b"\v"),
)


def decode_rows(copied: bytes) -> bytes:
    """Return rows of COPY text as the data of a batch.

    >>> decode_rows(b"1\\t\\\\N\\ta\\\\\\\\N\\\\tb\\n")
    b'1\\xff\\xfe\\xffa\\\\N\\tb\\xfd'
    """
    kernel = copying_kernel()
    if kernel is not None and (quick := kernel(copied)) is not None:
        return quick
    data = copied.translate(_STRUCTURE)
    if b"\\" not in data:
        return data
    if b"\\\\" in data:
        # Pairs first, from the left: what is left of a run of backslashes starts an escape.
        data = data.replace(b"\\\\", _BACKSLASH)
    data = data.replace(b"\\N", NULL)
    if b"\\" in data:
        for escape, character in _ESCAPES:
            if escape in data:
                data = data.replace(escape, character)
    return data.replace(_BACKSLASH, b"\\") if _BACKSLASH in data else data


def encode_rows(data: bytes) -> bytes:
    """Return the data of a batch as COPY text: the inverse of ``decode_rows``."""
    data = encode_text(data).translate(_BACK)
    return data.replace(NULL, b"\\N") if NULL in data else data


def encode_text(text: bytes) -> bytes:
    """Return text with those characters escaped that mean something to COPY."""
    if b"\\" in text:
        text = text.replace(b"\\", b"\\\\")
    for escape, character in _ESCAPES[:3]:
        if character in text:
            text = text.replace(character, escape)
    return text
