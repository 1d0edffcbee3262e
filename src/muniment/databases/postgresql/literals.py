"""PostgreSQL's text of arrays and composite values, read and written part by part.

{1,NULL,"two words"}      an array: NULL is a bare word, backslash escapes inside quotes
(1,,"a ""quoted"" word")  a composite value: NULL is nothing at all, quotes are doubled
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["array_parts", "array_text", "record_parts", "record_text"]

_ARRAY_PART = re.compile(rb'"((?:[^"\\]|\\.)*+)"|([^",{}\\]++)', re.DOTALL)
_RECORD_PART = re.compile(rb'(?:"((?:[^"\\]|\\.|"")*+)"|([^",()\\]*+))(?=[,)])', re.DOTALL)
_ESCAPED = re.compile(rb'\\(.)|"(")', re.DOTALL)
_BARE = re.compile(rb"[A-Za-z0-9_.:+-]++")


def array_parts(text: bytes) -> Iterator[bytes | None]:
    """Yield the elements of a one-dimensional array; None is NULL.

    >>> list(array_parts(b'{1,NULL,"NULL","a \\\\"b"}'))
    [b'1', None, b'NULL', b'a "b']
    """
    if text == b"{}":
        return
    position, last = 1, len(text) - 1
    if text[:1] != b"{" or text[-1:] != b"}":
        raise ValueError(f"not an array of one dimension: {text[:80]!r}")
    while True:
        match = _ARRAY_PART.match(text, position, last)
        if match is None:
            raise ValueError(f"not an array of one dimension: {text[:80]!r}")
        if match[1] is not None:
            yield _unescape(match[1])
        else:
            yield None if match[2].upper() == b"NULL" else match[2]
        position = match.end()
        if position == last:
            return
        if text[position : position + 1] != b",":
            raise ValueError(f"not an array of one dimension: {text[:80]!r}")
        position += 1


def record_parts(text: bytes) -> Iterator[bytes | None]:
    """Yield the attributes of a composite value; None is NULL.

    >>> list(record_parts(b'(1,,"","a ""b"" c")'))
    [b'1', None, b'', b'a "b" c']
    """
    position, end = 1, len(text)
    if text[:1] != b"(" or text[-1:] != b")":
        raise ValueError(f"not a composite value: {text[:80]!r}")
    while position < end:
        match = _RECORD_PART.match(text, position)
        if match is None:
            raise ValueError(f"not a composite value: {text[:80]!r}")
        if match[1] is not None:
            yield _unescape(match[1])
        else:
            yield match[2] or None
        position = match.end() + 1


def _unescape(text: bytes) -> bytes:
    if b"\\" not in text and b'"' not in text:
        return text
    return _ESCAPED.sub(lambda match: match[1] or match[2], text)


def array_text(parts: Iterable[bytes | None]) -> bytes:
    """Return an array's text: the inverse of ``array_parts``."""
    return b"{" + b",".join(b"NULL" if part is None else _item(part) for part in parts) + b"}"


def record_text(parts: Iterable[bytes | None]) -> bytes:
    """Return a composite value's text: the inverse of ``record_parts``."""
    return b"(" + b",".join(b"" if part is None else _quoted(part) for part in parts) + b")"


def _item(part: bytes) -> bytes:
    return part if _BARE.fullmatch(part) and part.upper() != b"NULL" else _quoted(part)


def _quoted(part: bytes) -> bytes:
    return b'"' + part.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
