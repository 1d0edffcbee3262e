"""Feeding expat: comments and tags have a limit, since long ones take it forever.

Versions before 2.6 scan a token from its start with every megabyte of it that comes.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Feeder", "TokenTooLong"]

_LIMIT = 1 << 25  # bytes of one token
_PORTION = 1 << 20  # bytes; what pyexpat takes at a time


class TokenTooLong(ValueError):
    """A comment, a tag or the like is longer than any that means something."""


class Feeder:
    """Gives a parser its bytes, in large portions while a token is open."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self._held: list[bytes] = []
        self._size = self._fed = self._open = 0

    def __call__(self, data: bytes, final: bool = False) -> None:
        """Take the next bytes; the parser may get them later."""
        self._held.append(data)
        self._size += len(data)
        if self._size < min(self._open, _PORTION) and not final:
            return
        whole = memoryview(b"".join(self._held))
        self._held, self._size = [], 0
        for start in range(0, len(whole), _PORTION):
            self._parse(whole[start : start + _PORTION])
        if final:
            self._parser.Parse(b"", True)

    def _parse(self, portion: memoryview) -> None:
        self._parser.Parse(portion, False)
        self._fed += len(portion)
        self._open = self._fed - self._parser.CurrentByteIndex
        if self._open > _LIMIT:
            raise TokenTooLong(f"a comment or a tag of more than {_LIMIT >> 20} MiB")
