"""Table files of our own making, read by several processes at once.

``SiardTarget`` compresses rows in blocks that know nothing of one another, each of whole rows and
each ended by a flush of the compressor. So every process can inflate its own stretch of the file,
and rows need not travel between processes. What a block may contain is proven where it is used: it
must start and end with a row, and the checksums of all blocks together must be the file's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from isal import isal_zlib

__all__ = ["Blocks", "Sum", "find_blocks", "inflate", "inflated", "inflated_size"]

_MARK = b"\x00\x00\xff\xff"  # what a flush leaves behind; chance may write it as well
_GAP = 1 << 20  # compressed bytes from one cut to the next, at most
_LEAST_GAP = 1 << 12
_STRETCH = 1 << 22  # uncompressed bytes from one cut to the next, about
_PEEK = 1 << 12
_AT_ONCE = 1 << 25  # uncompressed bytes of a stretch; it has a few megabytes, unless rows are alike
_MOST = 1 << 28  # of one block, which ends with the row that fills a megabyte
_ERROR: Any = isal_zlib.error

Read = Callable[[int, int], bytes]  # bytes of the compressed member, by offset and size


@dataclass(frozen=True, slots=True)
class Blocks:
    """A stretch of compressed rows: where it lies in the member, and whether it is the last."""

    number: int
    start: int
    end: int
    last: bool = False


@dataclass(frozen=True, slots=True)
class Sum:
    """The checksum of some bytes, and how many they are."""

    crc: int = 0
    size: int = 0

    def __add__(self, other: Sum) -> Sum:
        crc = isal_zlib.crc32_combine(self.crc, other.crc, other.size)
        return Sum(crc, self.size + other.size)

    @classmethod
    def of(cls, data: bytes) -> Sum:
        return cls(isal_zlib.crc32(data), len(data))


def find_blocks(
    read: Read, size: int, inflated: int = 0
) -> tuple[bytes, Iterator[Blocks], bytes] | None:
    """Return the bytes before the rows, the stretches of rows, and the bytes after them.

    None if the member was not written in blocks, or holds no rows. The better it is compressed
    (``inflated`` is its size then), the shorter are the stretches: what becomes of one is held.
    """
    first = _next_cut(read, 1, size)
    tail = _tail(read, size)
    if first is None or tail is None or first >= tail:
        return None
    head = inflate(read(0, first))
    end = inflate(read(tail, size - tail))
    if head is None or end is None:
        return None
    gap = max(_LEAST_GAP, min(_GAP, _STRETCH * size // max(inflated, 1)))
    return head, _stretches(read, first, tail, gap), end


def inflate(packed: bytes, most: int | None = None) -> bytes | None:
    """Return the bytes of whole blocks; None if they are none, or far more than ours have."""
    inflater = isal_zlib.decompressobj(-15)
    try:
        data: bytes = inflater.decompress(packed, most or _MOST)
    except _ERROR:
        return None
    return None if inflater.unconsumed_tail else data


def inflated(read: Read, blocks: Blocks) -> Iterator[tuple[int, bytes | None]]:
    """Yield the rows of a stretch, each time with their place, as much as memory should hold.

    Rows that are all alike take a thousandth of their size; such a stretch comes block by block.
    """
    data = inflate(read(blocks.start, blocks.end - blocks.start), _AT_ONCE)
    if data is not None:
        yield blocks.start, data
        return
    start = blocks.start
    while start < blocks.end:
        end = _next_cut(read, start + 1, blocks.end) or blocks.end
        yield start, inflate(read(start, end - start))
        start = end


def inflated_size(read: Read, end: int) -> int:
    """Return how many bytes a member holds before a place in its compressed data."""
    inflater = isal_zlib.decompressobj(-15)
    size = at = 0
    while at < end:
        packed = read(at, min(_GAP, end - at))
        at += len(packed) or end
        while packed:
            size += len(inflater.decompress(packed, _GAP))
            packed = inflater.unconsumed_tail
    return size


def _stretches(read: Read, start: int, tail: int, gap: int) -> Iterator[Blocks]:
    number = 0
    while start < tail:
        end = _next_cut(read, start + gap, tail) or tail
        yield Blocks(number, start, end, end == tail)
        start, number = end, number + 1


def _next_cut(read: Read, at: int, end: int) -> int | None:
    """Return where the next block begins that holds rows."""
    while at < end:
        window = read(at, min(1 << 16, end - at))
        found = window.find(_MARK)
        while found >= 0:
            cut = at + found + len(_MARK)
            if _starts(read(cut, _PEEK), b"<row>"):
                return cut
            found = window.find(_MARK, found + 1)
        if len(window) <= len(_MARK):
            return None
        at += len(window) - len(_MARK) + 1  # a mark may lie across two windows
    return None


def _tail(read: Read, size: int) -> int | None:
    """Return where the last block begins: the end of the table, and nothing else."""
    begin = max(0, size - 256)
    window = read(begin, size - begin)
    found = window.rfind(_MARK)
    while found >= 0:
        cut = begin + found + len(_MARK)
        if _starts(window[found + len(_MARK) :], b"</table>"):
            return cut
        found = window.rfind(_MARK, 0, found)
    return None


def _starts(packed: bytes, text: bytes) -> bool:
    try:
        data: bytes = isal_zlib.decompressobj(-15).decompress(packed, len(text))
    except _ERROR:
        return False
    return data == text
