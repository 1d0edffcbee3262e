"""Blocks of deflated data that can be joined; the same data always become the same bytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isal import isal_zlib
from zlib_ng import zlib_ng

__all__ = ["COMPRESSIONS", "Block", "Deflater", "deflate"]

_STEP = 1 << 16  # bytes; not less than the window of deflate and a match


def _fast(start: bytes) -> Any:
    """Return a compressor for data that starts so.

    At the first byte ISA-L hashes the address of its own stream for want of data, and sometimes
    takes another match because of it. Where there is a dictionary it does not. So it is given one
    that no match can begin in: a byte behind which the data never go on as they start.
    """
    for number in range(255, -1, -1):  # text in UTF-8 never has the first
        byte = bytes((number,))
        if byte + start[:2] not in start:
            return isal_zlib.compressobj(1, zlib.DEFLATED, -15, zdict=byte)
    return zlib.compressobj(1, zlib.DEFLATED, -15)


# name -> a new raw-deflate compressor, given how the data start; "none" still makes deflate blocks,
# stored ones
COMPRESSIONS: dict[str, Callable[[bytes], Any]] = {
    "fast": _fast,
    "strong": lambda _: zlib_ng.compressobj(5, zlib.DEFLATED, -15),
    "none": lambda _: zlib.compressobj(0, zlib.DEFLATED, -15),
}


@dataclass(frozen=True, slots=True)
class Block:
    """Deflated data that ends at a byte, so that blocks can be joined."""

    data: bytes
    crc: int
    size: int
    rows: int = 0


def deflate(data: bytes, compression: str, rows: int = 0) -> Block:
    """Return a block; blocks are independent of one another."""
    deflater = Deflater(compression)
    deflater.add(data, rows)
    return deflater.block()


class Deflater:
    """Makes one block of data that comes in pieces, compressed while they are in the cache.

    Compressors see pieces of one size: what they make of others depends on where those end.
    """

    def __init__(self, compression: str) -> None:
        self._compression = compression
        self._compressor: Any = None
        self._packed: list[bytes] = []
        self._rest = b""
        self._crc = self.size = self._rows = 0

    def add(self, data: bytes, rows: int = 0) -> None:
        """Add a piece with so many rows."""
        held = memoryview(self._rest + data)
        whole = len(held) - len(held) % _STEP
        for at in range(0, whole, _STEP):
            self._compress(held[at : at + _STEP])
        self._rest = bytes(held[whole:])
        self._crc = isal_zlib.crc32(data, self._crc)
        self.size += len(data)
        self._rows += rows

    def block(self) -> Block:
        """Return the block; nothing can be added any more."""
        compressor = self._compress(memoryview(self._rest))
        self._packed.append(compressor.flush(zlib.Z_SYNC_FLUSH))
        return Block(b"".join(self._packed), self._crc, self.size, self._rows)

    def _compress(self, piece: memoryview) -> Any:
        if self._compressor is None:
            self._compressor = COMPRESSIONS[self._compression](bytes(piece))
        self._packed.append(self._compressor.compress(piece))
        return self._compressor
