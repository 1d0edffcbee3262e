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
    return ArcRecord(
        fields.get("warc-target-uri", "").strip("<>"),
        fields.get("warc-type", ""),
        fields.get("warc-date", ""),
        fields.get("content-type", ""),
        hex_digest(digest),
        position,
        0,
        block,
        int(length),
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


# One gzip member per record


def _members(stream: BinaryIO, name: str, start: int, size: int) -> Iterator[ArcRecord]:
    position = start
    while position < size:
        member = _Member(stream, name, position)
        buffered = io.BufferedReader(cast(Any, member), _CHUNK)
        first = buffered.readline(_LONGEST_LINE)
        if first.startswith(b"WARC/"):
            record = _warc(cast(BinaryIO, buffered), first, name, position)
        else:
            record = _arc(first, name, position)
        _finish_member(buffered, record, name, position)
        yield record._replace(length=member.end - position)
        position = member.end


def _finish_member(stream: io.BufferedReader, record: ArcRecord, name: str, position: int) -> None:
    left = record.size - (_SLACK if record.kind == "filedesc" else 0)
    while left > 0:
        chunk = stream.read(min(left, _CHUNK))
        if not chunk:
            raise ArcError(name, position, f"the record {record.identifier} is cut short")
        left -= len(chunk)
    rest = stream.read(_CHUNK)
    more = rest if record.kind == "filedesc" else rest.strip(b"\r\n")
    if len(more) > 2 * _SLACK:
        raise ArcError(
            name, position, "the file is compressed as a whole, not record by record; "
            "decompress it and import the plain file",
        )  # fmt: skip


class _Member(io.RawIOBase):
    """The content of one gzip member; ``end`` is where it ends in the file."""

    def __init__(self, stream: BinaryIO, name: str, position: int) -> None:
        stream.seek(position)
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
            packed = self._inflater.unconsumed_tail or self._stream.read(1 << 16)
            if not self._inflater.unconsumed_tail:
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
