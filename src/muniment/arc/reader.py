"""Reading ARC and WARC files, plain or gzip per record, of any writer.

The version block of an ARC file states its length in three ways (one byte less, exact, one more);
the next line that is a header decides. Files are read in place: data is stepped over, not loaded.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from isal import isal_zlib

from muniment.arc.records import ArcLine, ArcRecord, hex_digest, parse_arc_line, parse_warc_header
from muniment.errors import ArcError

__all__ = ["member_stream", "read_arc_file"]

_CHUNK = 1 << 18
_LONGEST_LINE = 1 << 16
_MOST_LINES = 1000
_SLACK = 4  # bytes by which the length of an ARC file's version block may be wrong
_GZIP = b"\x1f\x8b"
_INFLATE_ERROR: Any = isal_zlib.error


def read_arc_file(stream: BinaryIO, name: str, start: int = 0) -> Iterator[ArcRecord]:
    """Yield every record, the file's own first one included; the stream must seek.

    ``start`` is where a record begins. An ArcError says at which byte the file breaks its format.
    """
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    magic = stream.read(16)
    stream.seek(start)
    if magic[:2] == _GZIP:
        yield from _members(stream, name, start, size)
    elif magic[:5] == b"WARC/" or magic[:9] == b"filedesc:":
        yield from _plain_records(stream, name, start, size)
    else:
        raise ArcError(name, 0, "this is neither an ARC nor a WARC file")


def _plain_records(stream: BinaryIO, name: str, start: int, size: int) -> Iterator[ArcRecord]:
    buffered = cast(BinaryIO, io.BufferedReader(cast(Any, _Raw(stream)), _CHUNK))
    buffered.seek(start)
    position = start
    while (position := _skip_line_ends(buffered, position)) < size:
        record = _record(buffered, name, position, size)
        yield record
        position += record.length
        buffered.seek(position)


def _record(stream: BinaryIO, name: str, position: int, size: int) -> ArcRecord:
    """Read the header at ``position``, and step over the data and what separates it."""
    first = stream.readline(_LONGEST_LINE)
    if first.startswith(b"WARC/"):
        record, lines = _warc(stream, first, name, position), 0
    else:
        record, lines = _arc(first, name, position), 1
    data = position + record.block
    if data + record.size > size + (_SLACK if record.kind == "filedesc" else 0):
        raise ArcError(
            name, position, f"the file ends within the record {record.identifier or record.kind}"
        )
    if record.kind == "filedesc":
        return record._replace(length=_resynchronised(stream, name, data + record.size) - position)
    stream.seek(data + record.size)
    separator = stream.readline(3) if lines else stream.read(4)
    if not lines and separator != b"\r\n\r\n":
        separator = separator[: len(separator) - len(separator.lstrip(b"\r\n"))]
        if not separator and data + record.size < size:
            raise ArcError(name, data + record.size, "a record does not end where its length says")
    elif lines and separator.strip(b"\r\n"):
        raise ArcError(name, data + record.size, "a record does not end where its length says")
    return record._replace(length=record.block + record.size + len(separator))


def _warc(stream: BinaryIO, first: bytes, name: str, position: int) -> ArcRecord:
    lines: list[bytes] = []
    block = len(first)
    while True:
        line = stream.readline(_LONGEST_LINE)
        block += len(line)
        if line in (b"\r\n", b"\n"):
            break
        if not line.endswith(b"\n") or len(lines) > _MOST_LINES:
            raise ArcError(name, position, "the header of a record has no end")
        lines.append(line)
    fields = parse_warc_header(lines, name, position)
    length = fields.get("content-length", "")
    if not (length.isdecimal() and length.isascii() and len(length) < 19):
        raise ArcError(name, position, "a record has no Content-Length")
    digest = fields.get("warc-block-digest", "")
    kind = fields.get("warc-type", "").lower()
    if "warc-segment-number" in fields and kind != "continuation":
        kind = "segment"  # the beginning of something larger is not to be taken for the whole
    return ArcRecord(
        fields.get("warc-target-uri", "").strip("<>"),
        kind,
        fields.get("warc-date", ""),
        fields.get("content-type", ""),
        hex_digest(digest),
        position,
        0,
        block,
        int(length),
        digest,
    )


def _arc(first: bytes, name: str, position: int) -> ArcRecord:
    line = parse_arc_line(first) if first.endswith(b"\n") else None
    if line is None:
        raise ArcError(name, position, "neither the header of an ARC nor of a WARC record")
    return _arc_record(line, position, len(first))


def _arc_record(line: ArcLine, position: int, header: int) -> ArcRecord:
    kind = "filedesc" if line.url.startswith("filedesc:") else "response"
    if kind == "response" and not line.url.startswith(("http:", "https:")):
        kind = "resource"
    return ArcRecord(
        line.url, kind, line.date, line.media_type, "", position, 0, header, line.length
    )


def _resynchronised(stream: BinaryIO, name: str, stated: int) -> int:
    """Return where the first record behind a version block begins, near the stated place."""
    earliest = max(stated - _SLACK, 0)
    stream.seek(earliest)
    window = stream.read(2 * _SLACK + _LONGEST_LINE)
    for skip in range(min(2 * _SLACK + 1, len(window)) + 1):
        rest = window[skip:]
        if not rest.strip(b"\r\n") and len(window) < 2 * _SLACK + _LONGEST_LINE:
            return earliest + len(window)
        if skip and window[skip - 1 : skip] == b"\n" and parse_arc_line(rest.split(b"\n", 1)[0]):
            return earliest + skip
    raise ArcError(name, stated, "no record follows the file's first block")


def _skip_line_ends(stream: BinaryIO, position: int) -> int:
    """Step over empty lines, which some writers leave between records."""
    while (byte := stream.read(1)) in (b"\n", b"\r"):
        position += 1
    stream.seek(position)
    return position if byte else max(position, stream.seek(0, io.SEEK_END))


class _Raw(io.RawIOBase):
    """Any binary file as the raw side of a buffer."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


# gzip: a member per record, or one around many


def _members(stream: BinaryIO, name: str, start: int, size: int) -> Iterator[ArcRecord]:
    position = start
    while position < size:
        member = _Member(stream, name, position)
        yield from _in_member(member, stream, name, position)
        position = member.end


def _in_member(member: _Member, stream: BinaryIO, name: str, position: int) -> Iterator[ArcRecord]:
    """Yield the records of a member; how far each is from its beginning is in ``block``."""
    inflated = cast(BinaryIO, io.BufferedReader(cast(Any, member), _CHUNK))
    at, end = 0, -1  # inflated bytes so far; where the member ends
    line = inflated.readline(_LONGEST_LINE)
    while line:
        if line.startswith(b"WARC/"):
            record = _warc(inflated, line, name, position)
        else:
            record = _arc(line, name, position)
        record = record._replace(block=at + record.block)
        at = _step_over(inflated, record, name)
        line, skipped = _next_header(inflated, record, name)
        at += skipped
        if line and end < 0:  # many records: each is found by inflating from the beginning
            end = _end_of_member(stream, name, position)
        yield record._replace(length=(end if line or end >= 0 else member.end) - position)


def _step_over(inflated: BinaryIO, record: ArcRecord, name: str) -> int:
    """Read over the data of a record; return the inflated bytes that lie before."""
    size = max(record.size - _SLACK, 0) if record.kind == "filedesc" else record.size
    left = size
    while left > 0:
        chunk = inflated.read(min(left, _CHUNK))
        if not chunk:
            raise ArcError(name, record.offset, f"the record {record.identifier} is cut short")
        left -= len(chunk)
    return record.block + size


def _next_header(inflated: BinaryIO, record: ArcRecord, name: str) -> tuple[bytes, int]:
    """Return the line that the next record begins with, b"" if none follows, and how far it is."""
    skipped, first = 0, record.kind == "filedesc"
    while line := inflated.readline(_LONGEST_LINE):
        if line.strip(b"\r\n"):
            if not first or parse_arc_line(line):
                break
            if skipped > 2 * _SLACK:
                raise ArcError(name, record.offset, "no record follows the file's first block")
        skipped += len(line)
    if line and not (line.startswith(b"WARC/") or parse_arc_line(line)):
        raise ArcError(name, record.offset, "a record does not end where its length says")
    return line, skipped


def _end_of_member(stream: BinaryIO, name: str, position: int) -> int:
    member = _Member(stream, name, position)
    while member.read(_CHUNK):
        pass
    return member.end


class _Member(io.RawIOBase):
    """The content of one gzip member; ``end`` is where it ends in the file."""

    def __init__(self, stream: BinaryIO, name: str, position: int) -> None:
        self._stream, self._name, self._start = stream, name, position
        self._inflater = isal_zlib.decompressobj(31)
        self._read = 0
        self._pending = b""

    @property
    def end(self) -> int:
        """Where the next member begins; known once everything is read."""
        return self._start + self._read - len(self._inflater.unused_data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._inflated(len(buffer))
        except _INFLATE_ERROR as error:
            raise ArcError(self._name, self._start, f"damaged gzip data: {error}") from None
        buffer[: len(data)] = data
        return len(data)

    def _inflated(self, wanted: int) -> bytes:
        while not self._inflater.eof:
            packed = self._inflater.unconsumed_tail
            if not packed:
                self._stream.seek(self._start + self._read)  # others may read the same file
                packed = self._stream.read(1 << 16)
                self._read += len(packed)
            data: bytes = self._inflater.decompress(packed, wanted)
            if data:
                return data
            if not packed and not self._inflater.eof:
                raise ArcError(self._name, self._start, "the file ends within a gzip member")
        return b""


def member_stream(stream: BinaryIO, name: str, position: int) -> io.BufferedReader:
    """Open the content of the gzip member at a byte."""
    return io.BufferedReader(cast(Any, _Member(stream, name, position)), _CHUNK)
