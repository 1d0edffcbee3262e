"""Chapter 4.1: the ZIP file itself, entry by entry, and that every byte is the one written."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipInfo

from muniment.errors import SiardError
from muniment.findings import Severity
from muniment.siard.rules.archive import Archive, Report
from muniment.siard.rules.registry import Rule
from muniment.siard.zip import ZipReader

__all__ = ["RULES", "Damaged", "check_directory", "check_name", "check_rest", "sound_chunks"]

RULES = (
    Rule(
        "G_4.1-1", "M",
        "The archive is one ZIP file as PKWARE's specification has it.",
        "The central directory; each local header against it; that no two entries share a name or "
        "bytes; the size and checksum (CRC-32) of every entry, by reading it.",
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
_ENCRYPTED = 0x2041  # encrypted, strongly encrypted, masked headers
_MANY = 1 << 30  # bytes
_RATIO = 200  # a larger one is suspicious in an entry of many bytes


class Damaged(Exception):
    """An entry cannot be read; the text says why."""


def check_name(report: Report, path: Path) -> None:
    """G_4.1-5."""
    report.look("G_4.1-5")
    name = path.name.rpartition("_part")[0] or path.name
    if not name.lower().endswith(".siard"):
        report("G_4.1-5", path.name, "the name does not end with .siard")


def check_directory(report: Report, stream: BinaryIO, entries: list[ZipInfo]) -> bool:
    """Check all that can be seen without reading content; return whether entries can be told."""
    report.look("G_4.1-1", "G_4.1-2", "G_4.1-3")
    _check_twins(report, entries)
    _check_overlaps(report, entries)
    for entry in entries:
        _check_method(report, entry)
        _check_local(report, stream, entry)
    return len({entry.filename for entry in entries}) == len(entries)


def _check_twins(report: Report, entries: list[ZipInfo]) -> None:
    seen = Counter(entry.filename for entry in entries)
    for name, count in seen.items():
        if count > 1:
            report(
                "G_4.1-1", name,
                f"{count} entries have this name; nobody can say which one counts",
                kind="twins",
            )  # fmt: skip


def _check_overlaps(report: Report, entries: list[ZipInfo]) -> None:
    """Bytes that belong to two entries are how small files swell to enormous ones."""
    placed = sorted(entries, key=lambda entry: entry.header_offset)
    for entry, following in pairwise(placed):
        end = entry.header_offset + 30 + len(entry.orig_filename) + entry.compress_size
        if end > following.header_offset:
            report(
                "G_4.1-1", following.filename,
                f"its bytes overlap those of {entry.filename}",
                kind="overlap",
            )  # fmt: skip


def _check_method(report: Report, entry: ZipInfo) -> None:
    if entry.flag_bits & _ENCRYPTED or entry.compress_type == 99:
        report("G_4.1-3", entry.filename, "it is encrypted")
    elif entry.compress_type not in (0, 8):
        report(
            "G_4.1-2", entry.filename,
            f"it is compressed with method {entry.compress_type}, neither stored nor deflated",
        )  # fmt: skip


def _check_local(report: Report, stream: BinaryIO, entry: ZipInfo) -> None:
    """A reader that streams believes the local header, others the directory: they must agree."""
    header = b""
    if entry.header_offset >= 0:  # else something is missing from the start of the file
        stream.seek(entry.header_offset)
        header = stream.read(_LOCAL.size)
    if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
        report("G_4.1-1", entry.filename, "the directory points to bytes that are not an entry")
        return
    _, _, flags, method, _, _, crc, packed, size, length, _ = _LOCAL.unpack(header)
    name = stream.read(length)
    if method != entry.compress_type or (flags ^ entry.flag_bits) & 1:
        report("G_4.1-1", entry.filename, "its local header and the directory say different things")
        return
    if name.decode("utf-8" if flags & 0x800 else "cp437", "replace") != entry.orig_filename:
        report("G_4.1-1", entry.filename, f"its local header calls it {name!r}", kind="other name")
    streamed = flags & 8
    stated = {size, packed} - {0xFFFFFFFF}
    # Some writers leave the checksum to the directory alone, and 0 in its place.
    if not streamed and (
        crc not in (0, entry.CRC) or not stated <= {entry.file_size, entry.compress_size}
    ):
        report("G_4.1-1", entry.filename, "its local header and the directory say different sizes")


def sound_chunks(archive: ZipReader, name: str) -> Iterator[bytes]:
    """Yield an entry's bytes; raises Damaged where they stop being those that were written."""
    claimed, size = archive.size(name), 0
    try:
        for chunk in archive.chunks(name):
            size += len(chunk)
            if size > claimed:
                raise Damaged(f"it unpacks to more than the {claimed} bytes that it claims")
            yield chunk
    except SiardError as error:
        raise Damaged(_short(error, archive, name)) from error


def _short(error: SiardError, archive: ZipReader, name: str) -> str:
    """The reason without the names that the finding gives anyway."""
    text = str(error).removeprefix(f"{archive.path}: ").removeprefix(f"{archive.path} ")
    return text.removeprefix(f"{name} is ").removeprefix(f"{name}: ")


def check_rest(archive: Archive, seen: set[str]) -> Iterator[str]:
    """Read the entries that no other check has read; yield each name before."""
    seen = seen | archive.damaged
    for entry in archive.entries:
        name = entry.filename
        if name in seen or entry.compress_type not in (0, 8) or entry.flag_bits & _ENCRYPTED:
            continue
        yield name
        if entry.file_size > _MANY and entry.file_size > _RATIO * max(entry.compress_size, 1):
            archive.report(
                "G_4.1-1", name,
                f"it claims to unpack {entry.compress_size} bytes to {entry.file_size}, which "
                "looks like an attack; it was not read",
                Severity.ERROR if entry.file_size > 1 << 40 else Severity.WARNING,
                kind="bomb",
            )  # fmt: skip
            continue
        try:
            for _ in sound_chunks(archive.whole, name):
                pass
        except Damaged as error:
            archive.report("G_4.1-1", name, f"it is damaged: {error}", kind="damaged")
