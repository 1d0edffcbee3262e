"""A table's file as runs of whole rows in one plain spelling.

Most files can be cut at ``</row>``. One that cannot (prefixes, comments, CDATA, other encodings) is
spelt anew, element by element, as the plain file that means the same; memory does not grow with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from muniment.siard.feeding import Feeder, TokenTooLong

__all__ = ["Head", "Malformed", "RowRun", "row_runs"]

RUN_SIZE = 2 << 20
_HEAD_LIMIT = 1 << 16
_ROW_LIMIT = 1 << 27
_HEAD = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*"
    rb"(?P<tag><table(?:\s[^<>]*[^/<>])?>)\s*",
    re.DOTALL,
)
_OTHER_ENCODING = re.compile(rb"encoding\s*=\s*[\"'](?!utf-?8)", re.IGNORECASE)
_END = re.compile(rb"\s*</table\s*>\s*(?:(?:<!--(?:(?!-->).)*-->|<\?[^<>]*\?>)\s*)*\Z", re.DOTALL)


class Malformed(Exception):
    """The file is not well-formed; ``rule`` is the requirement that it breaks."""

    def __init__(self, message: str, rule: str = "T_6.0-2") -> None:
        self.rule = rule
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Head:
    """The start tag of the file's root element, and the bytes that the file begins with."""

    tag: bytes
    name: bytes
    start: bytes


@dataclass(frozen=True, slots=True)
class RowRun:
    """Some whole rows, and what is between them."""

    xml: bytes


def row_runs(chunks: Iterator[bytes]) -> Iterator[Head | RowRun]:
    """Yield the head of a table's file, then its rows; raises Malformed."""
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start) >= _HEAD_LIMIT:
            break
    match = _HEAD.match(start)
    if not match or _OTHER_ENCODING.search(start, 0, match.end()):
        yield from _spelt_anew(start, chunks)
        return
    yield Head(match["tag"], b"table", start[:200])
    yield from _cut(match["tag"], start[match.end() :], chunks)


def _cut(tag: bytes, rest: bytes, chunks: Iterator[bytes]) -> Iterator[Head | RowRun]:
    held, size, wanted = [rest], len(rest), RUN_SIZE
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size < wanted:
            continue
        rest = b"".join(held)
        if b"<!" in rest:
            yield from _spelt_anew(tag + rest, chunks, begun=True)
            return
        end = rest.rfind(b"</row>") + 6
        if end > 5:
            yield RowRun(rest[:end])
            rest, wanted = rest[end:], RUN_SIZE
        elif size > _ROW_LIMIT:
            raise Malformed(f"a row of more than {_ROW_LIMIT >> 20} MiB, or none at all")
        else:
            wanted = 2 * size
        held, size = [rest], len(rest)
    rest = b"".join(held)
    end = rest.rfind(b"</table")
    if b"<!" in rest[: max(end, 0)] or (end >= 0 and not _END.match(rest, end)):
        yield from _spelt_anew(tag + rest, iter(()), begun=True)
        return
    if end < 0:
        raise Malformed("the file ends before its table does; it is truncated or damaged")
    if rest[:end].strip():
        yield RowRun(rest[:end])


def _spelt_anew(
    start: bytes, chunks: Iterator[bytes], *, begun: bool = False
) -> Iterator[Head | RowRun]:
    """Read with expat what cannot be cut, and write it plainly."""
    speller = _Speller()
    told = begun
    for chunk in _with_end(start, chunks):
        speller.feed(chunk)
        if not told and speller.head is not None:
            told = True
            yield Head(speller.head, speller.name, start[:200])
        if rows := speller.take():
            yield RowRun(rows)
    if not told:
        raise Malformed("the file is empty")


def _with_end(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes | None]:
    yield start
    yield from chunks
    yield None


class _Speller:
    """Writes what expat reads: no prefixes, no comments, no CDATA, UTF-8."""

    def __init__(self) -> None:
        self.head: bytes | None = None
        self.name = b"table"
        self._out: list[str] = []
        self._rows: list[bytes] = []
        self._size = self._depth = self._ready = 0
        self._space: list[str] = []
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        self._parse = Feeder(parser)
        self._parser = parser

    def feed(self, data: bytes | None) -> None:
        """Take the next bytes, or None at the end of the file."""
        try:
            self._parse(data or b"", data is None)
        except expat.ExpatError as error:
            reason = expat.errors.messages[error.code]
            rule = "G_3.3-1" if "encoding" in reason or ("token" in reason and _bad(data)) else ""
            at = self._parser.ErrorByteIndex
            raise Malformed(f"malformed XML at byte {at}: {reason}", rule or "T_6.0-2") from error
        except TokenTooLong as error:
            raise Malformed(str(error)) from error
        except (LookupError, ValueError) as error:
            raise Malformed(f"its encoding cannot be read: {error}", "G_3.3-1") from error

    def take(self) -> bytes:
        """Return the whole rows so far, if there are enough of them or the file has ended."""
        if self._ready < RUN_SIZE and self._depth:
            if self._size > _ROW_LIMIT:
                raise Malformed(f"a row of more than {_ROW_LIMIT >> 20} MiB, or none at all")
            return b""
        rows, self._rows = b"".join(self._rows), []
        self._size -= self._ready
        self._ready = 0
        return rows

    def _doctype(self, *_: object) -> None:
        raise Malformed("a document type declaration, which SIARD does not allow", "G_3.1-1")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        self._depth += 1
        if self._depth > 200:
            raise Malformed("elements are nested more than 200 deep")
        written = _written(attributes)
        outer = self._space[-1] if self._space else ""
        declared = f" xmlns={quoteattr(space)}" if space != outer else ""
        self._space.append(space)
        tag = f"<{local}{declared}{written}>"
        if self._depth == 1:
            self.head, self.name = tag.encode(), local.encode()
        else:
            self._write(tag)

    def _end(self, name: str) -> None:
        self._space.pop()
        self._depth -= 1
        if self._depth:
            self._write(f"</{name.rpartition(' ')[2]}>")
        if self._depth <= 1 and self._out:
            self._rows.append("".join(self._out).encode("utf-8", "surrogatepass"))
            self._out = []
            self._ready = self._size

    def _text(self, text: str) -> None:
        self._write(escape(text, {"\r": "&#13;"}))

    def _write(self, text: str) -> None:
        self._out.append(text)
        self._size += len(text)


def _written(attributes: dict[str, str]) -> str:
    spaces: dict[str, str] = {}
    text = ""
    for key, value in attributes.items():
        space, _, local = key.rpartition(" ")
        prefix = f"{spaces.setdefault(space, f'n{len(spaces)}')}:" if space else ""
        text += f" {prefix}{local}={quoteattr(value)}"
    declared = (f" xmlns:{prefix}={quoteattr(space)}" for space, prefix in spaces.items())
    return "".join(declared) + text


def _bad(data: bytes | None) -> bool:
    try:
        (data or b"").decode()
    except UnicodeDecodeError as error:
        return error.end < len(data or b"") - 4 or error.reason != "unexpected end of data"
    return False
