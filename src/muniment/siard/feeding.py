"""Feeding expat: long comments and tags take time in proportion to their length, and have a limit.

Versions before 2.6 scan a token from its start whenever more of it comes.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Feeder", "TokenTooLong"]

_LIMIT = 1 << 28  # bytes of one token


class TokenTooLong(ValueError):
    """A comment, a tag or the like is longer than any that means something."""


class Feeder:
    """Gives a parser its bytes; while a token is open, in portions that double."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self._held: list[bytes] = []
        self._size = self._fed = self._open = 0

    def __call__(self, data: bytes, final: bool = False) -> None:
        """Take the next bytes; the parser may get them later."""
        self._held.append(data)
        self._size += len(data)
        if self._open + self._size > _LIMIT + (1 << 25):
            raise TokenTooLong(f"a comment or a tag of more than {_LIMIT >> 20} MiB")
        if self._size < self._open and not final:
            return
        portion, self._held = b"".join(self._held), []
        self._fed, self._size = self._fed + len(portion), 0
        self._parser.Parse(portion, final)
        self._open = self._fed - self._parser.CurrentByteIndex
