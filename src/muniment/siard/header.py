"""The header of an archive, written anew around content that stays as it is.

The bytes of the content, their places in the file, and so the digest over them (5.1) do not change.
Where the header stands behind the content, as 5.1 recommends, it is replaced. In archives of other
makers that mix the two, the new metadata.xml is added at the end; the directory names only that.
"""

from __future__ import annotations

import os
import struct
from datetime import date
from pathlib import Path
from typing import BinaryIO

from muniment.errors import SiardError, UsageError
from muniment.files import settle
from muniment.siard.directory import Entry
from muniment.siard.zip import ZipReader, ZipWriter

__all__ = ["METADATA", "read_metadata", "replace_metadata"]

METADATA = "header/metadata.xml"
_CHUNK = 1 << 20


def read_metadata(path: Path) -> bytes:
    """Return an archive's metadata.xml, if it lies where it can be written anew."""
    archive = ZipReader(path)
    try:
        if METADATA not in archive:
            raise UsageError(
                f"{path} has no {METADATA} at its root, so that its header cannot be written anew; "
                "make a sound archive of it with muniment convert first"
            )
        return archive.read(METADATA)
    finally:
        archive.close()


def replace_metadata(path: Path, metadata: bytes, out: Path | None = None) -> None:
    """Give an archive another metadata.xml, in place or as a new file; all or nothing."""
    target = out or path
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    reader = ZipReader(path)
    if len(reader.parts) > 1:
        raise UsageError(f"{path} lies in parts; join them first: muniment convert")
    if reader.directory.is_shifted:
        raise SiardError(f"{path} has something before its first entry; it is left as it is")
    before = path.stat()
    try:
        with path.open("rb") as source, partial.open("xb") as stream:
            _rewrite(reader, source, stream, metadata)
            stream.flush()
            os.fsync(stream.fileno())
        if ZipReader(partial).read(METADATA) != metadata:
            raise SiardError(f"{path} could not be rewritten; it was left as it is")
        partial.chmod(before.st_mode & 0o7777)
        after = path.stat()
        if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise SiardError(f"{path} was changed meanwhile by somebody else; nothing was written")
        settle(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _rewrite(reader: ZipReader, source: BinaryIO, stream: BinaryIO, metadata: bytes) -> None:
    start = reader.directory.start
    cut, last, day = _layout(reader)
    writer = ZipWriter(stream, day, "fast", ())
    if last < cut:
        _copy(source, stream, cut)
        writer.take_over((r for e, r in reader.directory.records() if not _is_header(e)), cut)
        for entry, _ in reader.directory.records():
            if _is_header(entry):
                _write_again(writer, reader, entry.name, metadata)
    else:
        _copy(source, stream, start)
        others = (record for e, record in reader.directory.records() if e.name != METADATA)
        writer.take_over(others, start)
        writer.file(METADATA, metadata)
    writer.close()


def _write_again(writer: ZipWriter, reader: ZipReader, name: str, metadata: bytes) -> None:
    if name.endswith("/"):
        writer.folder(name)
    else:
        writer.file(name, metadata if name == METADATA else reader.read(name))


def _layout(reader: ZipReader) -> tuple[int, int, date]:
    """Where the header begins, where the last entry of the content does, and the header's day."""
    cut, last, day = reader.directory.start, -1, date(1980, 1, 1)
    for entry, record in reader.directory.records():
        if _is_header(entry):
            cut = min(cut, entry.offset)
            day = _day(record) or day  # the same change gives the same bytes
        else:
            last = max(last, entry.offset)
    return cut, last, day


def _is_header(entry: Entry) -> bool:
    return entry.name.startswith("header/")


def _day(record: bytes) -> date | None:
    (stamp,) = struct.unpack_from("<H", record, 14)
    try:
        return date(1980 + (stamp >> 9), stamp >> 5 & 15, stamp & 31)
    except ValueError:
        return None


def _copy(source: BinaryIO, stream: BinaryIO, size: int) -> None:
    while size > 0:
        chunk = source.read(min(size, _CHUNK))
        if not chunk:
            raise SiardError("the archive is shorter than its directory says")
        stream.write(chunk)
        size -= len(chunk)
