"""Finding every record of a tape at the speed of the disk, without parsing the records.

The tape's own tags are matched by one expression that allows whatever XML allows there: any
prefix, white space, attributes, comments. Inside a record only four things can look like its end
tag or hide it: comments, CDATA sections, processing instructions and elements of the same name;
searches for their few bytes stop at these alone. A record that fits neither goes through expat, by
itself, and scanning resumes behind it. UTF-16 is scanned as UTF-8 and measured as UTF-16.

The tape is taken to be well-formed: ``exact.read_exactly`` proves that, before a foreign tape is
let in and whenever a store is verified.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from muniment.errors import TapeError
from muniment.tape.exact import TapeParser, read_exactly, read_head
from muniment.tape.records import TAPE, Namespaces, TapeHead, TapeRecord

__all__ = ["scan", "scan_from", "scan_records"]

_CHUNK = 1 << 17  # what fits the cache, and is no new memory each time, is scanned fastest
_LONGEST_ADMIN = 1 << 20
_ASCII_LIKE = {"utf-8": "utf-8", "us-ascii": "ascii", "ascii": "ascii", "iso-8859-1": "latin-1"}
_PREDEFINED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|#x([0-9A-Fa-f]{1,6})|([^\s&;#]+));|&")
_DECLARATION = re.compile(rb"""\sxmlns(?::([^\s=]+))?\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class _Awkward(Exception):
    """The quick expressions do not cover this record."""


class _NeedMore(Exception):
    """The record goes on behind the end of the buffer."""


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The expressions for one tape; they depend on its prefix."""

    opening: re.Pattern[bytes]
    nested: re.Pattern[bytes]
    closing: re.Pattern[bytes]
    end: re.Pattern[bytes]

    @classmethod
    def of(cls, prefix: bytes) -> _Patterns:
        p = re.escape(prefix)
        name = p + b"record"
        admin = _start(p, b"recordAdmin") + _foreign(p) + _stop(p, b"recordAdmin")
        opening = [
            b"",
            _start(p, b"tapeRecord", b"outer"),
            _start(p, b"tapeRecordAdmin", b"admins"),
            _start(p, b"identifier") + rb"(?P<identifier>[^<]*+)" + _stop(p, b"identifier"),
            _start(p, b"date") + rb"(?P<date>[^<]*+)" + _stop(p, b"date"),
            b"(?P<admin>(?:" + admin + _BETWEEN + b")*+)" + _stop(p, b"tapeRecordAdmin"),
            _start(p, b"record", b"inner"),
            rb"(?=<[^!?/])",
        ]
        return cls(
            re.compile(_BETWEEN.join(opening)),
            re.compile(b"<" + name + _attributes(b"x") + _S + b"(?P<empty>/?)>"),
            re.compile(_stop(p, b"record") + _BETWEEN + _stop(p, b"tapeRecord")),
            re.compile(_BETWEEN + _stop(p, b"tape") + _BETWEEN + rb"\Z"),
        )


_ENDS_NAME = (b">", b" ", b"\t", b"\r", b"\n")
_ENDS_START = (b"/", *_ENDS_NAME)
_ENDS_TAG = frozenset(bytes([byte]) + b">" for byte in range(256) if byte not in b"]?-")
_MISSES = 16

_S = rb"[ \t\r\n]*+"
_COMMENT = rb"<!--[^-]*+(?:-[^-]++)*+-->"
_INSTRUCTION = rb"<\?[^?]*+(?:\?(?!>)[^?]*+)*+\?>"
_BETWEEN = rb"(?:[ \t\r\n]++|" + _COMMENT + b"|" + _INSTRUCTION + b")*+"


def _attributes(group: bytes) -> bytes:
    value = rb"""(?:"[^"<]*+"|'[^'<]*+')"""
    one = rb"""[ \t\r\n]++[^\s=<>/"']++""" + _S + b"=" + _S + value
    return b"(?P<" + group + b">(?:" + one + b")*+)" if group else b"(?:" + one + b")*+"


def _start(prefix: bytes, name: bytes, group: bytes = b"") -> bytes:
    return b"<" + prefix + name + _attributes(group) + _S + b">"


def _stop(prefix: bytes, name: bytes) -> bytes:
    return b"</" + prefix + name + _S + b">"


def _foreign(prefix: bytes) -> bytes:
    """What recordAdmin holds, if nothing in it can hide its end."""
    return rb"[^<]*+(?:<(?![!?]|/?" + prefix + rb"recordAdmin[ \t\r\n/>])[^<]*+)*+"


def scan(stream: BinaryIO, name: str) -> tuple[TapeHead, Iterator[TapeRecord]]:
    """Return the head of a tape, and its records as they are found; the stream must seek."""
    head = read_head(stream, name)
    return head, scan_from(stream, name, head, head.start)


def scan_records(stream: BinaryIO, name: str) -> Iterator[TapeRecord]:
    """Yield the records of a tape."""
    yield from scan(stream, name)[1]


def scan_from(stream: BinaryIO, name: str, head: TapeHead, start: int) -> Iterator[TapeRecord]:
    """Yield the records from byte ``start`` on, where one begins (or the tape ends)."""
    if head.encoding not in _ASCII_LIKE and not head.encoding.startswith("utf-16"):
        stream.seek(0)
        return (record for record in read_exactly(stream, name) if record.start >= start)
    stream.seek(start)
    return iter(_Scanner(stream, name, head, start))


class _Scanner:
    """Walks through a tape, record by record, in a buffer of bounded size."""

    def __init__(self, stream: BinaryIO, name: str, head: TapeHead, start: int) -> None:
        self._stream, self._name, self._head = stream, name, head
        self._wide = _wide_codec(head)
        self._decoder = codecs.getincrementaldecoder(self._wide)() if self._wide else None
        self._codec = "utf-8" if self._wide else _ASCII_LIKE[head.encoding]
        prefix = (f"{head.prefix}:" if head.prefix else "").encode(self._codec)
        self._patterns, self._tag = _Patterns.of(prefix), len(prefix) + len("<tapeRecord")
        self._record, self._usual_end = prefix + b"record", _usual_end(prefix)
        self._buffer, self._position, self._eof = b"", 0, False
        self._mark, self._mark_offset = 0, start  # a place in the buffer, and in the file

    def __iter__(self) -> Iterator[TapeRecord]:
        while True:
            try:
                record = self._next()
            except _NeedMore:
                self._refill()
            except _Awkward:
                yield self._exactly()
            else:
                if record is None:
                    return
                yield record

    def _next(self) -> TapeRecord | None:
        """Return the next record, None at the end of the tape."""
        buffer = self._buffer
        opening = self._patterns.opening.match(buffer, self._position)
        if opening is None:
            self._check_end()
            return None
        outer, admins, identifier, date, admin, inner = opening.groups()
        payload = opening.end()
        stop = self._find_end(payload)
        if buffer.startswith(self._usual_end, stop):
            end = stop + len(self._usual_end)
        else:
            end = self._closed(stop)
        last = stop if buffer[stop - 2 : stop] in _ENDS_TAG else _trimmed(buffer, stop)
        name, moment = self._text(identifier), self._text(date)
        namespaces = self._declared(outer, admins, inner) if outer or admins or inner else ()
        start, self._position = opening.start(1) - self._tag, end
        if self._wide:
            start, payload, last, end = map(self._offset, (start, payload, last, end))
        else:
            shift = self._mark_offset - self._mark
            start, payload, last, end = start + shift, payload + shift, last + shift, end + shift
        return TapeRecord(name, moment, payload, last - payload, start, end, admin, namespaces)

    def _closed(self, stop: int) -> int:
        """Return where a record ends whose end tags are spelt in an unusual way."""
        closing = self._patterns.closing.match(self._buffer, stop)
        if closing is None:
            near_end = len(self._buffer) - stop <= _LONGEST_ADMIN
            raise _NeedMore if near_end and not self._eof else _Awkward
        return closing.end()

    def _check_end(self) -> None:
        """Return if this is the end of the tape; otherwise the record cannot be matched yet."""
        if self._eof:
            if self._patterns.end.match(self._buffer, self._position):
                return
            raise _Awkward
        if len(self._buffer) - self._position > _LONGEST_ADMIN:
            raise _Awkward
        raise _NeedMore

    def _find_end(self, position: int) -> int:
        """Return where the end tag of the record begins."""
        buffer, depth = self._buffer, 1
        tag = bang = query = -1  # the next tag of a record's name, and the next <! and <?
        while True:
            if tag < position:
                tag = self._own_tag(position)
            if bang < position:
                bang = _next_markup(buffer, b"!", position, tag)
            if query < position:
                query = _next_markup(buffer, b"?", position, tag)
            if bang < tag or query < tag:
                position = self._skip(min(bang, query))
            elif buffer[tag + 1] == 0x2F:  # </
                depth -= 1
                if not depth:
                    return tag
                position = tag + 2 + len(self._record)
            else:
                position, opened = self._nested(tag)
                depth += opened

    def _own_tag(self, position: int) -> int:
        """Return where the next start or end tag of a record's name begins, hidden or not."""
        buffer, name = self._buffer, self._record
        while (position := buffer.find(name, position)) >= 0:
            before, behind = buffer[position - 2 : position], position + len(name)
            if before == b"</" and buffer[behind : behind + 1] in _ENDS_NAME:
                return position - 2
            if before[1:] == b"<" and buffer[behind : behind + 1] in _ENDS_START:
                return position - 1
            position = behind
        raise _Awkward if self._eof else _NeedMore

    def _skip(self, position: int) -> int:
        buffer = self._buffer
        if buffer.startswith(b"<![CDATA[", position):
            end = buffer.find(b"]]>", position + 9)
        elif buffer.startswith(b"<!--", position):
            end = buffer.find(b"-->", position + 4)
        elif buffer.startswith(b"<?", position):
            end = buffer.find(b"?>", position + 2) - 1
            end = end if end > 0 else -1
        elif len(buffer) - position < 9 and not self._eof:
            raise _NeedMore
        else:
            raise _Awkward
        if end < 0:
            raise _Awkward if self._eof else _NeedMore
        return end + 3

    def _nested(self, position: int) -> tuple[int, int]:
        """An element of the record's own name, in whatever namespace: step over its start tag."""
        found = self._patterns.nested.match(self._buffer, position)
        if found is None:
            near_end = len(self._buffer) - position < _LONGEST_ADMIN
            raise _NeedMore if near_end and not self._eof else _Awkward
        return found.end(), 0 if found["empty"] else 1

    def _text(self, raw: bytes) -> str:
        if b"\r" in raw:
            raise _Awkward
        try:
            text = raw.decode(self._codec).strip(" \t\n")
        except UnicodeDecodeError:
            raise _Awkward from None
        if "&" in text:
            text = _REFERENCE.sub(self._reference, text)
        if not text:
            raise _Awkward
        return text

    def _reference(self, match: re.Match[str]) -> str:
        decimal, hexadecimal, name = match.groups()
        if decimal or hexadecimal:
            code = int(decimal) if decimal else int(hexadecimal, 16)
            if code < 0x110000:
                return chr(code)
        elif name in _PREDEFINED:
            return _PREDEFINED[name]
        raise _Awkward  # an entity of the tape's own, or none at all

    def _declared(self, outer: bytes, admins: bytes, inner: bytes) -> Namespaces:
        """Return the namespaces that the tags around a record declare."""
        if b"xmlns" in admins:
            raise _Awkward
        found = []
        for prefix, double, single in _DECLARATION.findall(outer + inner):
            uri = (double or single).decode(self._codec)
            if "&" in uri or (prefix.decode(self._codec) == self._head.prefix and uri != TAPE):
                raise _Awkward
            found.append((prefix.decode(self._codec), uri))
        return tuple(found)

    def _exactly(self) -> TapeRecord:
        """Read one record with expat, as if it followed the root's start tag."""
        prologue, start = self._head.prologue, self._offset(self._position)
        parser = TapeParser(self._name, base=start - len(prologue), limit=1)
        parser.feed(prologue)
        records = parser.feed(self._encoded(self._buffer[self._position :]))
        while not records:
            if parser.done:
                raise TapeError(self._name, start, "a record was expected here")
            chunk = self._stream.read(_CHUNK)
            records = parser.feed(chunk, final=not chunk)
        record = records[0]
        self._stream.seek(record.end)
        self._buffer, self._position, self._eof = b"", 0, False
        self._mark, self._mark_offset = 0, record.end
        if self._wide:
            self._decoder = codecs.getincrementaldecoder(self._wide)()
        return record

    def _refill(self) -> None:
        """Forget what is done, and read on: more, if the last buffer held not one record."""
        self._offset(self._position)
        rest = self._buffer[self._position :]
        chunk = self._stream.read(max(_CHUNK, len(rest)))
        if not chunk:
            self._eof = True
        if self._decoder:
            try:
                chunk = self._decoder.decode(chunk, self._eof).encode()
            except UnicodeError:
                problem = "the bytes are not UTF-16"
                raise TapeError(self._name, self._mark_offset, problem) from None
        self._buffer, self._position, self._mark = rest + chunk, 0, 0

    def _offset(self, position: int) -> int:
        """Return the byte of the file for a place in the buffer, not before the last one."""
        if self._wide:
            passed = self._buffer[self._mark : position].decode()
            self._mark_offset += len(passed.encode(self._wide))
        else:
            self._mark_offset += position - self._mark
        self._mark = position
        return self._mark_offset

    def _encoded(self, text: bytes) -> bytes:
        return text.decode().encode(self._wide) if self._wide else text


def _usual_end(prefix: bytes) -> bytes:
    return b"</%brecord></%btapeRecord>" % (prefix, prefix)


def _next_markup(buffer: bytes, mark: bytes, position: int, stop: int) -> int:
    """Return where ``<`` and the mark stand before ``stop``, or ``stop``."""
    at = position
    for _ in range(_MISSES):  # a single byte is found at the speed of memory, if it is rare
        at = buffer.find(mark, at, stop) + 1
        if not at:
            return stop
        if buffer[at - 2] == 0x3C:
            return at - 2
    at = buffer.find(b"<" + mark, at - 1, stop)
    return at if at >= 0 else stop


def _wide_codec(head: TapeHead) -> str:
    """Return the codec of a UTF-16 tape without its byte order mark, "" for other tapes."""
    if not head.encoding.startswith("utf-16"):
        return ""
    return "utf-16-be" if head.prologue[:2] in (b"\xfe\xff", b"\x00<") else "utf-16-le"


def _trimmed(buffer: bytes, stop: int) -> int:
    """Return where the record's element ends: before the white space in front of ``stop``."""
    while buffer[stop - 1] in b" \t\r\n":
        stop -= 1
    last = buffer[stop - 3 : stop]
    if last[2] != 0x3E or last in (b"-->", b"]]>") or last[1] == 0x3F:  # > and ?
        raise _Awkward
    return stop
