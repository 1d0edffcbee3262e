"""Streams that prove at their end that every byte is the one that was archived."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from typing import Any

from muniment.errors import DigestMismatch, LobError
from muniment.siard.lobs.folders import Piece
from muniment.siard.lobs.location import ALGORITHMS, Location

__all__ = ["Measure", "Verified", "is_of_last", "proven"]

_HASHES: dict[str, Any] = {name: getattr(hashlib, known) for name, known in ALGORITHMS.items()}
_CONTINUING = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that do not start a character
_BELOW_4 = bytes(range(0xF0))


class Measure:
    """The lengths and the digest of an object, chunk by chunk."""

    def __init__(self, text: bool, digest_type: str) -> None:
        self.bytes = self.characters = self.utf16 = 0
        self._text = text
        start = _HASHES.get(digest_type)
        self._digest = start(usedforsecurity=False) if start else None

    def update(self, chunk: bytes) -> None:
        self.bytes += len(chunk)
        if self._digest is not None:
            self._digest.update(chunk)
        if self._text and chunk.isascii():
            self.characters += len(chunk)
            self.utf16 += len(chunk)
        elif self._text:
            starts = chunk.translate(None, _CONTINUING)
            self.characters += len(starts)
            self.utf16 += len(starts) + len(starts.translate(None, _BELOW_4))

    @property
    def length(self) -> int:
        """The length as 6.2 wants it: characters of text, bytes of anything else."""
        return self.characters if self._text else self.bytes

    def hexdigest(self) -> str:
        return self._digest.hexdigest() if self._digest else ""

    def unit(self, length: int) -> str | None:
        """What a stated length counts: other writers count bytes or UTF-16 units of text."""
        if length == self.length:
            return "characters" if self._text else "bytes"
        if self._text and length in (self.utf16, self.bytes):
            return "UTF-16 units" if length == self.utf16 else "bytes"
        return None


class Verified(io.RawIOBase):
    """Chunks as a stream that raises at its end unless length and digest are as the cell says."""

    def __init__(
        self,
        chunks: Iterator[bytes],
        name: str,
        where: Callable[[], str],
        location: Location,
        text: bool,
        last: Piece | None = None,
    ) -> None:
        """``last`` is the last part of several."""
        self._last = last
        self._chunks, self._name, self._where, self._location = chunks, name, where, location
        self._measure = Measure(text, location.digest_type)
        self._rest = memoryview(b"")
        self._done = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = memoryview(self._next())
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def _next(self) -> bytes:
        for chunk in self._chunks:
            if chunk:
                self._measure.update(chunk)
                return chunk
        if not self._done:
            self._done = True
            _check(self._measure, self._name, self._where, self._location, self._last)
        return b""


def proven(
    data: bytes,
    name: str,
    where: Callable[[], str],
    location: Location,
    text: bool,
    last: Piece | None = None,
) -> bytes:
    """Return a whole object, or raise unless length and digest are as the cell says."""
    measure = Measure(text, location.digest_type)
    measure.update(data)
    _check(measure, name, where, location, last)
    return data


def _check(
    measure: Measure, name: str, where: Callable[[], str], location: Location, last: Piece | None
) -> None:
    if location.length is not None and measure.unit(location.length) is None:
        raise LobError(
            location.file,
            f"its length should be {location.length} and is {measure.length}",
            "T_6.2-1",
            where(),
        )
    found = measure.hexdigest()
    if found and found != location.digest and not is_of_last(location, last):
        raise DigestMismatch(f"{where()}: {name}", location.digest_type, location.digest, found)


def is_of_last(location: Location, last: Piece | None) -> bool:
    """Whether a stated digest is that of the last part alone, which is what DBPTK writes."""
    if last is None:
        return False
    measure = Measure(False, location.digest_type)
    for chunk in last.chunks():
        measure.update(chunk)
    return measure.hexdigest() == location.digest
