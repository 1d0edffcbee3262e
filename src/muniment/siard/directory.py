"""The central directory of a ZIP file, in 8 bytes of memory per entry.

An archive may hold millions of large objects, and Python's ``zipfile`` keeps half a kilobyte for
each. Here an entry is a number: some bits of its name's checksum, and where its record stands in
the file. Records are read again when they are asked for.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from muniment.errors import SiardError
from muniment.siard.volumes import Volumes

__all__ = ["Directory", "Entry", "NotZip"]

_END, _END64, _LOCATOR, _RECORD = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x01\x02"
_FIXED = struct.Struct("<4s6H3L5H2L")  # a record without its name, extra field and comment
_CHUNK = 1 << 20
_OFFSET_BITS = 40
_OFFSET = (1 << _OFFSET_BITS) - 1
_MOST_ALIKE = 64  # names of one checksum; more are an attack
_LIMIT32 = 0xFFFFFFFF


class NotZip(Exception):
    """There is no central directory, or it makes no sense."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the directory says about one entry."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int  # of its local header


class Directory:
    """Finds entries by their name."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes
        start, size, self._count, self._shift = _locate(volumes)
        self._start, self._end = start, start + size
        numbers = [_bits(name) << _OFFSET_BITS | at - start for at, name in self._names()]
        if len(numbers) != self._count:
            raise NotZip
        numbers.sort()
        self._numbers = array("Q", numbers)
        self._refuse_twins()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def names(self) -> Iterator[str]:
        """Yield all names in the order of the directory."""
        return (name for _, name in self._names())

    @property
    def start(self) -> int:
        """Where the directory begins."""
        return self._start

    @property
    def is_shifted(self) -> bool:
        """Whether something stands before the archive, so that its offsets are off."""
        return self._shift != 0

    def records(self) -> Iterator[tuple[Entry, bytes]]:
        """Yield all entries in the order of the directory, with their records as they stand."""
        for at, _ in self._names():
            record = self._volumes.read(at, 46 + 3 * 0xFFFF)
            yield self._entry(at - self._start), record[: 46 + _lengths(record, 0)]

    def find(self, name: str) -> Entry | None:
        """Return the entry of that name."""
        bits = _bits(name)
        place = bisect_left(self._numbers, bits << _OFFSET_BITS)
        while place < len(self._numbers) and self._numbers[place] >> _OFFSET_BITS == bits:
            entry = self._entry(self._numbers[place] & _OFFSET)
            if entry.name == name:
                return entry
            place += 1
        return None

    def _entry(self, at: int) -> Entry:
        record = self._volumes.read(self._start + at, 512)
        names, extras = struct.unpack_from("<2H", record, 28)
        if len(record) < 46 + names + extras:
            record = self._volumes.read(self._start + at, 46 + names + extras)
        fixed = _FIXED.unpack_from(record)
        flags, method, crc, packed, size, offset = *fixed[3:5], *fixed[7:10], fixed[16]
        extra = record[46 + names : 46 + names + extras]
        size, packed, offset = _wide(extra, size, packed, offset)
        name = _decoded(record[46 : 46 + names], flags)
        return Entry(name, flags, method, crc, packed, size, offset + self._shift)

    def _names(self) -> Iterator[tuple[int, str]]:
        """Yield where each record stands, and its name."""
        at, held, begin = self._start, b"", self._start
        while at < self._end:
            if at + 46 > begin + len(held) or at + 46 + _lengths(held, at - begin) > begin + len(
                held
            ):
                held, begin = self._volumes.read(at, min(_CHUNK, self._end - at)), at
                if len(held) < 46 or len(held) < 46 + _lengths(held, 0):
                    raise NotZip
            within = at - begin
            if held[within : within + 4] != _RECORD:
                raise NotZip
            names, extras, comments = struct.unpack_from("<3H", held, within + 28)
            flags = held[within + 8] | held[within + 9] << 8
            yield at, _decoded(held[within + 46 : within + 46 + names], flags)
            at += 46 + names + extras + comments
        if at != self._end:
            raise NotZip

    def _refuse_twins(self) -> None:
        """Nobody can say which of two entries of one name counts."""
        numbers, alike = self._numbers, _MOST_ALIKE + (self._count >> 18)
        place = 0
        while place + 1 < len(numbers):
            end = place + 1
            bits = numbers[place] >> _OFFSET_BITS
            while end < len(numbers) and numbers[end] >> _OFFSET_BITS == bits:
                end += 1
            if end - place > 1:
                names = {self._entry(n & _OFFSET).name for n in numbers[place:end]}
                if len(names) < end - place or end - place > alike:
                    raise SiardError(
                        f"{self._volumes.path} has two entries of one name; "
                        "nobody can say which one counts"
                    )
            place = end


def _locate(volumes: Volumes) -> tuple[int, int, int, int]:
    """Return where the directory begins, its size, its entries, and how far offsets are shifted."""
    tail_at = max(0, volumes.size - 66_000)
    tail = volumes.read(tail_at, 66_000)
    found = tail.rfind(_END)
    if found < 0 or len(tail) < found + 22:
        raise NotZip
    count, size, offset = struct.unpack_from("<HLL", tail, found + 10)
    end = tail_at + found
    if found >= 20 and tail[found - 20 : found - 16] == _LOCATOR:
        (at,) = struct.unpack_from("<Q", tail, found - 12)
        record = volumes.read(at, 56)
        if record[:4] != _END64:  # something stands before the archive
            at = end - 20 - 56
            record = volumes.read(at, 56)
        if len(record) < 56 or record[:4] != _END64:
            raise NotZip
        (_, count, size, offset) = struct.unpack_from("<4Q", record, 24)
        end = at
    start = end - size
    if start < 0 or size >= 1 << _OFFSET_BITS or offset > start:
        raise NotZip
    return start, size, count, start - offset


def _bits(name: str) -> int:
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) & 0xFFFFFF


def _lengths(held: bytes, at: int) -> int:
    return sum(struct.unpack_from("<3H", held, at + 28))


def _decoded(name: bytes, flags: int) -> str:
    try:
        return name.decode() if flags & 0x0800 else name.decode("cp437")
    except UnicodeDecodeError:
        raise NotZip from None


def _wide(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Take numbers that do not fit into 32 bits from the ZIP64 extra field."""
    if _LIMIT32 not in (size, packed, offset):
        return size, packed, offset
    values = [size, packed, offset]
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            field = extra[at + 4 : at + 4 + length]
            for number, value in enumerate(values):
                if value == _LIMIT32:
                    if len(field) < 8:
                        raise NotZip
                    values[number] = int.from_bytes(field[:8], "little")
                    field = field[8:]
            break
        at += 4 + length
    return values[0], values[1], values[2]
