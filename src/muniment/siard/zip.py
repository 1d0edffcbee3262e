"""ZIP64 with deflate, written as a stream (G_4.1) and read in place.

Writing never seeks back: the digests of 5.1 are computed over the bytes as they leave, and blocks
that other processes compressed can be joined into one member. Reading inflates members with isal,
in bounded memory whatever they claim to hold.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any

from isal import isal_zlib

from muniment.errors import SiardError, UsageError
from muniment.siard.deflating import Block, deflate
from muniment.siard.directory import Directory, Entry, NotZip
from muniment.siard.volumes import Sink, Volumes, first_volume

__all__ = ["ZipReader", "ZipWriter"]

_UTF8, _DESCRIPTOR, _VERSION = 0x0800, 0x0008, 45
_LIMIT32 = 0xFFFFFFFF
_END_OF_STREAM = b"\x03\x00"


@dataclass(slots=True)
class _Entry:
    name: bytes
    offset: int
    crc: int = 0
    packed: int = 0
    size: int = 0
    flags: int = _UTF8
    method: int = zlib.DEFLATED


class ZipWriter:
    """Writes a ZIP64 file from front to back."""

    def __init__(self, stream: Sink, day: date, compression: str, digests: tuple[str, ...]):
        self._stream = stream
        self._compression = compression
        year = min(max(day.year, 1980), 2107)  # what a ZIP file can say
        self._stamp = (year - 1980) << 9 | day.month << 5 | day.day
        self._digests = {
            name: hashlib.new(_hash_name(name), usedforsecurity=False) for name in digests
        }
        self.digest_types = digests
        self._directory = _Records()
        self._is_open = False
        self.position = 0
        self.on_entry: Callable[[bytes], None] = _ignore  # is given each record of the directory

    def folder(self, name: str) -> None:
        """Add an empty entry for a folder; the name ends with a slash."""
        entry = _Entry(name.encode(), self.position, method=0)
        self.open_entry(entry)
        self.close_entry(entry)

    def file(self, name: str, data: bytes) -> None:
        """Add a small file."""
        block = deflate(data, self._compression)
        self.joined(name, [block.data], len(block.data), block.crc, block.size)

    def joined(self, name: str, blocks: Iterable[bytes], packed: int, crc: int, size: int) -> None:
        """Add a file whose blocks, checksum and sizes (packed and plain) are known."""
        entry = _Entry(name.encode(), self.position, crc, packed + len(_END_OF_STREAM), size)
        self.open_entry(entry)
        for block in blocks:
            self.write(block)
        self.write(_END_OF_STREAM)
        self.close_entry(entry)

    def stream(self, name: str) -> _Member:
        """Add a file of unknown size: a context manager with ``write(block)``."""
        return _Member(self, name.encode())

    def digests(self) -> dict[str, str]:
        """The digests over all bytes so far, in lower-case hex."""
        return {name: digest.hexdigest() for name, digest in self._digests.items()}

    def stop_digests(self) -> None:
        """Leave the bytes that follow out of the digests."""
        self._digests = {}

    def mark(self) -> Any:
        """Remember this point, to come back to it."""
        digests = {name: digest.copy() for name, digest in self._digests.items()}
        return self.position, self._directory.mark(), digests

    def roll_back(self, mark: Any) -> None:
        """Forget everything since ``mark``."""
        self.position, records, digests = mark
        self._is_open = False
        self._digests = {name: digest.copy() for name, digest in digests.items()}
        self._directory.roll_back(records)
        self._stream.seek(self.position)
        self._stream.truncate()

    def go_on(self, position: int, records: Iterable[bytes]) -> None:
        """Cut the file at ``position`` and go on there, after the entries of these records."""
        self._stream.seek(0)
        while self.position < position:
            chunk = self._stream.read(min(position - self.position, 1 << 20))
            if not chunk:
                raise SiardError("the file of the earlier run is shorter than it should be")
            self.position += len(chunk)
            for digest in self._digests.values():
                digest.update(chunk)
        self._stream.seek(position)
        self._stream.truncate()
        for record in records:
            self._directory.add(record)

    def take_over(self, records: Iterable[bytes], position: int) -> None:
        """Go on behind bytes that were copied from another ZIP file, with their records."""
        for record in records:
            self._directory.add(record)
        self.position = position

    def close(self) -> None:
        """Write the central directory."""
        start, count = self.position, self._directory.count
        for records in self._directory.chunks():
            self.write(records)
        size, end = self.position - start, self.position
        self.write(
            struct.pack(
                "<4sQ2H2L4Q", b"PK\x06\x06", 44, _VERSION, _VERSION, 0, 0, count, count, size, start
            )
        )
        self.write(struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1))
        few = min(count, 0xFFFF)
        self.write(
            struct.pack(
                "<4s4H2LH",
                b"PK\x05\x06",
                0,
                0,
                few,
                few,
                min(size, _LIMIT32),
                min(start, _LIMIT32),
                0,
            )
        )

    def write(self, data: bytes) -> None:
        """Append raw bytes."""
        self._stream.write(data)
        self.position += len(data)
        for digest in self._digests.values():
            digest.update(data)

    def open_entry(self, entry: _Entry) -> None:
        """Write the local header of an entry; the one before must be complete."""
        assert not self._is_open, "two members of a ZIP file cannot be written at once"
        self._is_open = True
        self.write(self._local_header(entry))

    def close_entry(self, entry: _Entry) -> None:
        """Note an entry for the central directory."""
        self._is_open = False
        record = self._central_record(entry)
        self._directory.add(record)
        self.on_entry(record)

    def _local_header(self, entry: _Entry) -> bytes:
        streamed = bool(entry.flags & _DESCRIPTOR)
        large = streamed or max(entry.size, entry.packed) >= _LIMIT32
        extra = struct.pack("<2H2Q", 1, 16, entry.size, entry.packed) if large else b""
        packed, size = (_LIMIT32, _LIMIT32) if large else (entry.packed, entry.size)
        header = struct.pack(
            "<4s5H3L2H", b"PK\x03\x04", _VERSION, entry.flags, entry.method, 0, self._stamp,
            entry.crc, packed, size, len(entry.name), len(extra),
        )  # fmt: skip
        return header + entry.name + extra

    def _central_record(self, entry: _Entry) -> bytes:
        wide = [v for v in (entry.size, entry.packed, entry.offset) if v >= _LIMIT32]
        extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        attributes = 0x10 if entry.name.endswith(b"/") else 0
        record = struct.pack(
            "<4s6H3L5H2L", b"PK\x01\x02", _VERSION, _VERSION, entry.flags, entry.method, 0,
            self._stamp, entry.crc, min(entry.packed, _LIMIT32), min(entry.size, _LIMIT32),
            len(entry.name), len(extra), 0, 0, 0, attributes, min(entry.offset, _LIMIT32),
        )  # fmt: skip
        return record + entry.name + extra


def _ignore(_: bytes) -> None:
    return


def _hash_name(digest_type: str) -> str:
    names = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256"}
    if digest_type not in names:
        raise UsageError(f"{digest_type} is not a digest of SIARD; choose MD5, SHA-1 or SHA-256")
    return names[digest_type]


class _Records:
    """The records of the central directory until its turn comes.

    There may be millions; they repeat themselves, so all but the last ones are kept compressed.
    """

    def __init__(self) -> None:
        self.count = 0
        self._packed: list[bytes] = []
        self._last: list[bytes] = []

    def add(self, record: bytes) -> None:
        self.count += 1
        self._last.append(record)
        if len(self._last) == _RECORDS:
            self._packed.append(zlib.compress(b"".join(self._last), 1))
            self._last = []

    def chunks(self) -> Iterator[bytes]:
        yield from map(zlib.decompress, self._packed)
        yield b"".join(self._last)

    def mark(self) -> tuple[int, int, list[bytes]]:
        return self.count, len(self._packed), self._last.copy()

    def roll_back(self, mark: tuple[int, int, list[bytes]]) -> None:
        self.count, packed, last = mark
        del self._packed[packed:]
        self._last = last.copy()


_RECORDS = 4096


class _Member:
    """A file that is being written; its size follows it in a data descriptor."""

    def __init__(self, writer: ZipWriter, name: bytes) -> None:
        self._writer = writer
        self._entry = _Entry(name, writer.position, flags=_UTF8 | _DESCRIPTOR)

    def __enter__(self) -> _Member:
        self._writer.open_entry(self._entry)
        return self

    def write(self, block: Block) -> None:
        entry = self._entry
        entry.crc = isal_zlib.crc32_combine(entry.crc, block.crc, block.size)
        entry.size += block.size
        entry.packed += len(block.data)
        self._writer.write(block.data)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        entry = self._entry
        entry.packed += len(_END_OF_STREAM)
        self._writer.write(_END_OF_STREAM)
        self._writer.write(
            struct.pack("<4sLQQ", b"PK\x07\x08", entry.crc, entry.packed, entry.size)
        )
        self._writer.close_entry(entry)


_CHUNK = 1 << 18
_INFLATE_ERROR: Any = isal_zlib.error


class ZipReader:
    """Reads the members of a ZIP file, which may be split into parts."""

    def __init__(self, path: Path, *, twins: bool = False) -> None:
        """Open a file; with ``twins`` also one in which several entries have one name."""
        self.path = path
        first = first_volume(path)
        if first.exists() and not first.is_file():
            raise SiardError(f"{path} is not a file")
        self._volumes = Volumes(path)
        try:
            self._directory = Directory(self._volumes, twins=twins)
        except (NotZip, struct.error) as error:
            raise SiardError(_not_zip(path, self._volumes)) from error

    def close(self) -> None:
        """Close the file; this happens by itself, but later."""
        self._volumes.close()

    @property
    def parts(self) -> tuple[Path, ...]:
        """The files that the archive lies in."""
        return self._volumes.paths

    @property
    def volumes(self) -> Volumes:
        """The bytes of the file."""
        return self._volumes

    @property
    def directory(self) -> Directory:
        """The central directory."""
        return self._directory

    def names(self) -> Iterator[str]:
        """Yield the names of all entries, in the order of the central directory."""
        return self._directory.names()

    def find(self, name: str) -> Entry | None:
        """Return the entry of that name."""
        return self._directory.find(name)

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def size(self, name: str) -> int:
        """The size a member claims to have."""
        return self._member(name).size

    def packed(self, name: str) -> int:
        """The size of a member as it lies in the file."""
        return self._member(name).packed

    def offset(self, name: str) -> int:
        """Where the local header of an entry begins."""
        return self._member(name).offset

    def read(self, name: str, limit: int = 1 << 28) -> bytes:
        """Return a whole member, at most ``limit`` bytes of it."""
        chunks, size = [], 0
        for chunk in self.chunks(name):
            size += len(chunk)
            if size > limit:
                raise SiardError(f"{self.path}: {name} is larger than {limit} bytes")
            chunks.append(chunk)
        return b"".join(chunks)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield a member's bytes; the checksum is verified at the end."""
        return self.chunks_of(self._member(name))

    def chunks_of(self, entry: Entry) -> Iterator[bytes]:
        """Yield the bytes of an entry; the checksum is verified at the end."""
        crc = size = 0
        for chunk in self._inflate(entry):
            crc = isal_zlib.crc32(chunk, crc)
            size += len(chunk)
            yield chunk
        if crc != entry.crc or size != entry.size:
            raise SiardError(f"{self.path}: {entry.name} is damaged: its checksum does not match")

    def whole(self, entry: Entry) -> bytes:
        """Return a small entry at once; the checksum is verified."""
        pieces, size = [], 0
        for chunk in self._inflate(entry):
            pieces.append(chunk)
            size += len(chunk)
            if size > entry.size:
                break
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if len(data) != entry.size or isal_zlib.crc32(data) != entry.crc:
            raise SiardError(f"{self.path}: {entry.name} is damaged: its checksum does not match")
        return data

    def compressed(self, name: str) -> tuple[Callable[[int, int], bytes], Entry]:
        """Return how to read a deflated member as it lies in the file, and what it should be."""
        entry = self._member(name)
        begin = self._begin(entry)

        def read(at: int, size: int) -> bytes:
            return self._volumes.read(begin + at, max(0, min(size, entry.packed - at)))

        return read, entry

    def digest(self, algorithm: str, end: int) -> str:
        """The digest over the first ``end`` bytes of the file (5.1)."""
        digest = hashlib.new(_hash_name(algorithm), usedforsecurity=False)
        at = 0
        while at < end and (chunk := self._volumes.read(at, min(end - at, 1 << 20))):
            digest.update(chunk)
            at += len(chunk)
        return digest.hexdigest()

    def _member(self, name: str) -> Entry:
        entry = self.find(name)
        if entry is None:
            raise SiardError(f"{self.path} has no {name}")
        return entry

    def _inflate(self, entry: Entry) -> Iterator[bytes]:
        if entry.flags & 1:
            raise SiardError(f"{self.path}: {entry.name} is encrypted, which SIARD forbids")
        packed = self._raw(entry)
        if entry.method == 0:
            yield from packed
        elif entry.method == zlib.DEFLATED:
            try:
                yield from _inflated(packed)
            except _INFLATE_ERROR as error:
                raise SiardError(f"{self.path}: {entry.name} is damaged: {error}") from error
        else:
            raise SiardError(f"{self.path}: {entry.name} is compressed in a way that SIARD forbids")

    def _begin(self, entry: Entry) -> int:
        """Where the data of an entry begins."""
        header = self._volumes.read(entry.offset, 30)
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            raise SiardError(f"{self.path}: no entry at byte {entry.offset}; the file is damaged")
        names, extra = struct.unpack_from("<2H", header, 26)
        return entry.offset + 30 + int(names) + int(extra)

    def _raw(self, entry: Entry) -> Iterator[bytes]:
        # A small member comes with its header in one go.
        header = self._volumes.read(entry.offset, 256 + min(entry.packed, _CHUNK))
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            raise SiardError(f"{self.path}: no entry at byte {entry.offset}; the file is damaged")
        names, extra = struct.unpack_from("<2H", header, 26)
        begin = 30 + names + extra
        chunk = header[begin : begin + entry.packed]
        at, left = entry.offset + begin, entry.packed
        while left > 0:
            chunk = chunk or self._volumes.read(at, min(left, _CHUNK))
            if not chunk:
                raise SiardError(f"{self.path} is truncated in {entry.name}")
            yield chunk
            at, left = at + len(chunk), left - len(chunk)
            chunk = b""


def _inflated(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Inflate in steps of bounded size, so that a bomb only takes time, and the caller decides."""
    inflater = isal_zlib.decompressobj(-15)
    for chunk in packed:
        while chunk and not inflater.eof:
            data = inflater.decompress(chunk, _CHUNK)
            if data:
                yield data
            chunk = inflater.unconsumed_tail
    while not inflater.eof and (data := inflater.decompress(inflater.unconsumed_tail, _CHUNK)):
        yield data


def _not_zip(path: Path, volumes: Volumes) -> str:
    if volumes.read(0, 4) != b"PK\x03\x04":
        return f"{path} is not a SIARD file: it is not a ZIP file"
    if len(volumes.paths) > 1:
        return (
            f"{path} is truncated or damaged: its directory, at the end of the last part, cannot "
            f"be read. There are {len(volumes.paths)} parts here; are there more?"
        )
    return (
        f"{path} is a truncated or damaged ZIP file: its directory, at the end, cannot be "
        "read. Fetch it again from where it came"
    )
