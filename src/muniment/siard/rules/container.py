"""Chapter 4.1: the ZIP file itself, entry by entry, and that every byte is the one written."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from muniment.errors import SiardError
from muniment.findings import Severity
from muniment.siard.directory import Directory, Entry
from muniment.siard.rules.archive import Archive, Marks, Report
from muniment.siard.rules.registry import Rule
from muniment.siard.volumes import Volumes
from muniment.siard.zip import ZipReader

__all__ = ["RULES", "Damaged", "check_directory", "check_name", "check_rest", "sound_chunks"]

RULES = (
    Rule(
        "G_4.1-1", "M",
        "The archive is one ZIP file as PKWARE's specification has it.",
        "The central directory; each local header against it; that no two entries share a name or "
        "bytes; the size and checksum (CRC-32) of every entry, by reading it. Bytes before or "
        "after the ZIP file are a warning, since readers skip them.",
        "Pack the archive again with a standard tool, or fetch it again from where it came.",
    ),
    Rule(
        "G_4.1-2", "M",
        "Entries are stored or deflated.",
        "The compression method of every entry.",
        "Pack the archive again with deflate.",
    ),
    Rule(
        "G_4.1-3", "M",
        "Nothing is encrypted or protected by a password.",
        "The encryption flags and the method of every entry.",
        "Pack the archive again without a password.",
    ),
    Rule(
        "G_4.1-4", "M",
        "ZIP32 and ZIP64 are both permitted.",
        "",
        unchecked="It permits, and nothing can break it. Sizes that do not fit into the fields of "
        "ZIP32 and are not given in those of ZIP64 break G_4.1-1.",
    ),
    Rule(
        "G_4.1-5", "M",
        "The file's name ends with .siard.",
        "The name, without the suffix of a part.",
        "Rename the file.",
    ),
)  # fmt: skip

_LOCAL = struct.Struct("<4s5H3L2H")
_NEWEST = 63  # the version of ZIP that is needed to read an entry; there is none above 6.3
_ENCRYPTED = 0x2041  # encrypted, strongly encrypted, masked headers
_MANY = 1 << 30  # bytes
_FARTHEST = (1 << 64) - 1
_RATIO = 200  # a larger one is suspicious in an entry of many bytes


class Damaged(Exception):
    """An entry cannot be read; the text says why."""


def check_name(report: Report, path: Path) -> None:
    """G_4.1-5."""
    report.look("G_4.1-5")
    name = path.name.rpartition("_part")[0] or path.name
    if not name.lower().endswith(".siard"):
        report("G_4.1-5", path.name, "the name does not end with .siard")


def check_directory(report: Report, archive: ZipReader) -> bool:
    """Check all that can be seen without reading content; return whether entries can be told."""
    report.look("G_4.1-1", "G_4.1-2", "G_4.1-3")
    directory, twins = archive.directory, False
    for name, count in directory.twins():
        twins = True
        report(
            "G_4.1-1", name,
            f"{count} entries have this name; nobody can say which one counts",
            kind="twins",
        )  # fmt: skip
    for count, place in ((directory.before, "before"), (directory.after, "after")):
        if count:
            report(
                "G_4.1-1", archive.path.name,
                f"{abs(count)} bytes that belong to nothing stand {place} the archive"
                if count > 0 else f"{-count} bytes are missing at its end",
                Severity.WARNING, kind=place,
            )  # fmt: skip
    order = _Order()
    for entry, record in directory.records():
        order.add(entry)
        _check_version(report, entry, record)
        _check_method(report, entry)
        _check_local(report, archive.volumes, entry)
    for number, before in order.overlaps(directory):
        report(
            "G_4.1-1", directory.entry(number).name,
            f"its bytes overlap those of {directory.entry(before).name}",
            kind="overlap",
        )  # fmt: skip
    return not twins


class _Order:
    """Whether entries lie one behind the other: bytes of two are how files swell to bombs."""

    def __init__(self) -> None:
        self._end = 0
        self._sound = True

    def add(self, entry: Entry) -> None:
        self._sound &= self._end <= entry.offset
        self._end = _end(entry)

    def overlaps(self, directory: Directory) -> Iterator[tuple[int, int]]:
        """Yield the number of each entry that begins before another ends, and the other's."""
        if self._sound:
            return
        starts, ends, numbers = array("Q"), array("Q"), array("Q")
        for entry in directory.entries():
            starts.append(min(max(entry.offset, 0), _FARTHEST))
            ends.append(min(max(_end(entry), 0), _FARTHEST))
            numbers.append(entry.number)
        import pyarrow as pa
        import pyarrow.compute as pc

        column = pa.Array.from_buffers(pa.uint64(), len(starts), [None, pa.py_buffer(starts)])
        order = array("Q", pc.sort_indices(column).buffers()[1].to_pybytes())
        for before, number in pairwise(order):
            if ends[before] > starts[number]:
                yield numbers[number], numbers[before]


def _end(entry: Entry) -> int:
    return entry.offset + 30 + len(entry.name) + entry.packed


def _check_version(report: Report, entry: Entry, record: bytes) -> None:
    if record[6] > _NEWEST:
        report(
            "G_4.1-1", entry.name,
            f"it asks for version {record[6] / 10} of ZIP, so that other tools refuse it",
        )  # fmt: skip


def _check_method(report: Report, entry: Entry) -> None:
    if entry.flags & _ENCRYPTED or entry.method == 99:
        report("G_4.1-3", entry.name, "it is encrypted")
    elif entry.method not in (0, 8):
        report(
            "G_4.1-2", entry.name,
            f"it is compressed with method {entry.method}, neither stored nor deflated",
        )  # fmt: skip


def _check_local(report: Report, volumes: Volumes, entry: Entry) -> None:
    """A reader that streams believes the local header, others the directory: they must agree."""
    header = volumes.read(entry.offset, 512) if entry.offset >= 0 else b""
    if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
        report("G_4.1-1", entry.name, "the directory points to bytes that are not an entry")
        return
    _, _, flags, method, _, _, crc, packed, size, length, _ = _LOCAL.unpack_from(header)
    name = header[_LOCAL.size : _LOCAL.size + length]
    if len(name) < length:
        name = volumes.read(entry.offset + _LOCAL.size, length)
    if method != entry.method or (flags ^ entry.flags) & 1:
        report("G_4.1-1", entry.name, "its local header and the directory say different things")
        return
    if name.decode("utf-8" if flags & 0x800 else "cp437", "replace") != entry.name:
        report("G_4.1-1", entry.name, f"its local header calls it {name!r}", kind="other name")
    streamed = flags & 8
    stated = {size, packed} - {0xFFFFFFFF}
    # Some writers leave the checksum to the directory alone, and 0 in its place.
    if not streamed and (crc not in (0, entry.crc) or not stated <= {entry.size, entry.packed}):
        report("G_4.1-1", entry.name, "its local header and the directory say different sizes")


def sound_chunks(archive: ZipReader, name: str) -> Iterator[bytes]:
    """Yield an entry's bytes; raises Damaged where they stop being those that were written."""
    entry = archive.find(name)
    if entry is None:
        raise Damaged("it is missing")
    yield from sound_chunks_of(archive, entry)


def sound_chunks_of(archive: ZipReader, entry: Entry) -> Iterator[bytes]:
    """Yield an entry's bytes; raises Damaged where they stop being those that were written."""
    claimed, size = entry.size, 0
    try:
        for chunk in archive.chunks_of(entry):
            size += len(chunk)
            if size > claimed:
                raise Damaged(f"it unpacks to more than the {claimed} bytes that it claims")
            yield chunk
    except SiardError as error:
        raise Damaged(_short(error, archive, entry.name)) from error


def _short(error: SiardError, archive: ZipReader, name: str) -> str:
    """The reason without the names that the finding gives anyway."""
    text = str(error).removeprefix(f"{archive.path}: ").removeprefix(f"{archive.path} ")
    return text.removeprefix(f"{name} is ").removeprefix(f"{name}: ")


def check_rest(archive: Archive, seen: Marks) -> Iterator[str]:
    """Read the entries that no other check has read; yield each name before."""
    for entry in archive.whole.directory.entries(but=seen):
        name = entry.name
        if name in archive.damaged or entry.method not in (0, 8) or entry.flags & _ENCRYPTED:
            continue
        yield name
        if entry.size > _MANY and entry.size > _RATIO * max(entry.packed, 1):
            archive.report(
                "G_4.1-1", name,
                f"it claims to unpack {entry.packed} bytes to {entry.size}, which "
                "looks like an attack; it was not read",
                Severity.ERROR if entry.size > 1 << 40 else Severity.WARNING,
                kind="bomb",
            )  # fmt: skip
            continue
        try:
            for _ in sound_chunks_of(archive.whole, entry):
                pass
        except Damaged as error:
            archive.report("G_4.1-1", name, f"it is damaged: {error}", kind="damaged")
