"""The header of an archive, written anew around content that stays as it is.

The bytes of the content, their places in the file, and so the digest over them (5.1) do not change.
Where the header stands behind the content, as 5.1 recommends, it is replaced. In archives of other
makers that mix the two, the new metadata.xml is added at the end; the directory names only that.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipInfo

from muniment.errors import SiardError
from muniment.files import settle
from muniment.siard.zip import ZipReader, ZipWriter, directory_records

__all__ = ["METADATA", "replace_metadata"]

METADATA = "header/metadata.xml"
_CHUNK = 1 << 20


def replace_metadata(path: Path, metadata: bytes, out: Path | None = None) -> None:
    """Give an archive another metadata.xml, in place or as a new file; all or nothing."""
    target = out or path
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    before = path.stat()
    try:
        with path.open("rb") as source, partial.open("xb") as stream:
            _rewrite(path, source, stream, metadata)
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


def _rewrite(path: Path, source: BinaryIO, stream: BinaryIO, metadata: bytes) -> None:
    start, records = directory_records(path)
    header = [entry for entry, _ in records if _is_header(entry)]
    content = [(entry, record) for entry, record in records if not _is_header(entry)]
    cut = min((entry.header_offset for entry in header), default=start)
    writer = ZipWriter(stream, _day(header), "fast", ())
    if all(entry.header_offset < cut for entry, _ in content):
        _copy(source, stream, cut)
        writer.take_over((record for _, record in content), cut)
        reader = ZipReader(path)
        for entry in header:
            if entry.filename.endswith("/"):
                writer.folder(entry.filename)
            elif entry.filename != METADATA:
                writer.file(entry.filename, reader.read(entry.filename))
            else:
                writer.file(METADATA, metadata)
    else:
        _copy(source, stream, start)
        others = (record for entry, record in records if entry.filename != METADATA)
        writer.take_over(others, start)
        writer.file(METADATA, metadata)
    writer.close()


def _is_header(entry: ZipInfo) -> bool:
    return entry.filename.startswith("header/")


def _day(header: list[ZipInfo]) -> date:
    """The day that the header bore before: the same change gives the same bytes."""
    for entry in header:
        try:
            return date(*entry.date_time[:3])
        except ValueError:
            continue
    return date(1980, 1, 1)


def _copy(source: BinaryIO, stream: BinaryIO, size: int) -> None:
    while size > 0:
        chunk = source.read(min(size, _CHUNK))
        if not chunk:
            raise SiardError("the archive is shorter than its directory says")
        stream.write(chunk)
        size -= len(chunk)
