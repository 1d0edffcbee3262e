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
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass

from muniment.errors import SiardError
from muniment.siard.volumes import Volumes

__all__ = ["Directory", "Entry", "NotZip"]

_END, _END64, _LOCATOR, _RECORD = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x01\x02"
_FIXED = struct.Struct("<4s6H3L5H2L")  # a record without its name, extra field and comment
_LENGTHS = struct.Struct("<4s24x3H")  # its signature, and the lengths of those three
_CHUNK = 1 << 20
_NAME_BITS, _OFFSET_BITS, _GROUP_BITS = 24, 40, 8
_OFFSET = (1 << _OFFSET_BITS) - 1
_MOST_ALIKE = 64  # names of one checksum; more are an attack
_LIMIT32 = 0xFFFFFFFF
_WINDOW, _MOST_OF_ONE = 1 << 14, 512  # bytes of records held, and of one but for rare ones


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
    number: int  # which of all entries it is, from 0, in an order of its own


class Directory:
    """Finds entries by their name; two of one name are refused, unless ``twins`` are let in."""

    def __init__(self, volumes: Volumes, *, twins: bool = False) -> None:
        self._volumes = volumes
        start, size, self._count, self._shift, self.after = _locate(volumes)
        self._start, self._end = start, start + size
        self._numbers = self._sorted_numbers()
        if len(self._numbers) != self._count:
            raise NotZip
        self._window = 0, b""
        if not twins:
            self.refuse_twins()

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
    def before(self) -> int:
        """How many bytes stand before the archive, and so not in its offsets."""
        return self._shift

    @property
    def is_shifted(self) -> bool:
        """Whether something stands before the archive, so that its offsets are off."""
        return self._shift != 0

    def records(self) -> Iterator[tuple[Entry, bytes]]:
        """Yield all entries in the order of the directory, with their records as they stand."""
        for at, record in self._records():
            yield self._entry(record, self._number(at, record)), record

    def entries(self, but: Container[int] = ()) -> Iterator[Entry]:
        """Yield all entries in the order of the directory, ``but`` for those of some numbers."""
        for at, record in self._records():
            number = self._number(at, record)
            if number not in but:
                yield self._entry(record, number)

    def entry(self, number: int) -> Entry:
        """Return the entry of that number."""
        return self._entry(self._record(self._numbers[number] & _OFFSET), number)

    def find(self, name: str) -> Entry | None:
        """Return the entry of that name."""
        bits, numbers = _bits(name), self._numbers
        place = bisect_left(numbers, bits << _OFFSET_BITS)
        while place < len(numbers) and numbers[place] >> _OFFSET_BITS == bits:
            entry = self.entry(place)
            if entry.name == name:
                return entry
            place += 1
        return None

    def twins(self) -> Iterator[tuple[str, int]]:
        """Yield each name that several entries have, and how many; an attack is not counted."""
        for group in self._alike():
            if len(group) > self._most_alike:
                continue
            seen = Counter(self.entry(number).name for number in group)
            yield from ((name, count) for name, count in seen.items() if count > 1)

    def refuse_twins(self) -> None:
        """Nobody can say which of two entries of one name counts."""
        for group in self._alike():
            if len(group) > self._most_alike or self._are_twins(group):
                raise SiardError(
                    f"{self._volumes.path} has two entries of one name; "
                    "nobody can say which one counts"
                )

    @property
    def _most_alike(self) -> int:
        return _MOST_ALIKE + (self._count >> 18)

    def _are_twins(self, group: range) -> bool:
        return len({self.entry(number).name for number in group}) < len(group)

    def _record(self, at: int) -> bytes:
        """Return the bytes from a record on; who asks for one asks for its neighbours next."""
        begin, held = self._window
        within = at - begin
        if not 0 <= within <= len(held) - _MOST_OF_ONE:
            held, within = self._volumes.read(self._start + at, _WINDOW), 0
            self._window = at, held
        record = held[within : within + _MOST_OF_ONE]
        if len(record) < (size := 46 + _lengths(record)):
            record = self._volumes.read(self._start + at, size)
        return record

    def _number(self, at: int, record: bytes) -> int:
        names, flags = struct.unpack_from("<H", record, 28)[0], record[8] | record[9] << 8
        bits = _bits(_decoded(record[46 : 46 + names], flags))
        return bisect_left(self._numbers, bits << _OFFSET_BITS | at - self._start)

    def _entry(self, record: bytes, number: int) -> Entry:
        fixed = _FIXED.unpack_from(record)
        flags, method, crc, packed, size, names, extras, offset = (
            *fixed[3:5], *fixed[7:12], fixed[16],
        )  # fmt: skip
        if _LIMIT32 in (size, packed, offset):
            extra = record[46 + names : 46 + names + extras]
            size, packed, offset = _wide(extra, size, packed, offset)
        name = _decoded(record[46 : 46 + names], flags)
        return Entry(name, flags, method, crc, packed, size, offset + self._shift, number)

    def _sorted_numbers(self) -> array[int]:
        """Return the numbers of all entries in order; few at a time are Python's own numbers."""
        groups = [array("Q") for _ in range(1 << _GROUP_BITS)]
        for at, name in self._names():
            bits = _bits(name)
            groups[bits >> _NAME_BITS - _GROUP_BITS].append(bits << _OFFSET_BITS | at - self._start)
        numbers = array("Q")
        groups.reverse()
        while groups:
            numbers.extend(sorted(groups.pop()))
        return numbers

    def _names(self) -> Iterator[tuple[int, str]]:
        """Yield where each record stands, and its name."""
        for at, record in self._records():
            names = record[28] | record[29] << 8
            yield at, _decoded(record[46 : 46 + names], record[8] | record[9] << 8)

    def _records(self) -> Iterator[tuple[int, bytes]]:
        """Yield where each record stands, and the record."""
        at = self._start
        while at < self._end:
            held, within = self._volumes.read(at, min(_CHUNK, self._end - at)), 0
            while within + 46 <= len(held):
                signature, names, extras, comments = _LENGTHS.unpack_from(held, within)
                if signature != _RECORD:
                    raise NotZip
                after = within + 46 + names + extras + comments
                if after > len(held):
                    break
                yield at + within, held[within:after]
                within = after
            if within == 0:
                raise NotZip
            at += within

    def _alike(self) -> Iterator[range]:
        """Yield the numbers of entries whose names may be the same, by their checksums."""
        numbers, place = self._numbers, 0
        while place + 1 < len(numbers):
            end = place + 1
            bits = numbers[place] >> _OFFSET_BITS
            while end < len(numbers) and numbers[end] >> _OFFSET_BITS == bits:
                end += 1
            if end - place > 1:
                yield range(place, end)
            place = end


def _locate(volumes: Volumes) -> tuple[int, int, int, int, int]:
    """Return where the directory begins, its size, its entries, and the bytes before and after."""
    tail_at = max(0, volumes.size - 66_000)
    tail = volumes.read(tail_at, 66_000)
    found = tail.rfind(_END)
    if found < 0 or len(tail) < found + 22:
        raise NotZip
    count, size, offset, comment = struct.unpack_from("<HLLH", tail, found + 10)
    end = tail_at + found
    after = volumes.size - (end + 22 + comment)
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
    return start, size, count, start - offset, after


def _bits(name: str) -> int:
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) & (1 << _NAME_BITS) - 1


def _lengths(record: bytes) -> int:
    _, names, extras, comments = _LENGTHS.unpack_from(record)
    return int(names + extras + comments)


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
