"""Row XML back to batches: one regular expression per table, a proof, and an exact parser behind.

The fast path takes a run of whole rows and finds every cell with one possessive expression. It may
trust the result only if nothing was overlooked: each "<" of the run must belong to a tag that was
matched. Any other spelling (attributes, comments, CDATA, prefixes, other encodings) goes through
expat, which reads all that XML allows and says where a file is damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from xml.parsers import expat

from muniment.errors import SiardError
from muniment.kernels import Reading, reading_kernel, worth_while
from muniment.siard.cells import UNEXPECTED, unescape_cells, unescape_text
from muniment.siard.feeding import Feeder, TokenTooLong
from muniment.siard.lobs.location import reference_of
from muniment.siard.nested import MISSING, nested_cells
from muniment.siard.rows import in_utc
from muniment.sql.batch import CELL, CLOSE, ITEM, NULL, OPEN, REF, ROW, Batch
from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind

__all__ = ["RowReader", "Run", "rows_in", "runs", "without_head", "without_table_head"]

_EMPTY = b"\xf7"  # stands between the tags of an empty cell until NULL has been told from it
_HEAD = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*"
    rb"<table(?:\s[^<>]*[^/<>])?>\s*",
    re.DOTALL,
)
_OTHER_ENCODING = re.compile(rb"encoding\s*=\s*[\"'](?!utf-8)", re.IGNORECASE)
_HEAD_LIMIT = 1 << 16
RUN_SIZE = 4 << 20
_SLICE, _LARGE_SLICE = 3 << 14, 1 << 17  # bytes at once, for Python and for machine code
_TAGS = 2  # so much longer are rows with their tags
_HEX = re.compile(rb"(?:(?:(?:[0-9A-F]{2})*+|\xfe|\xf9[^\xff]*+)\xff)*+")
# A cell whose value lies in a file: attributes without escapes, and no content.
_STORED = re.compile(
    rb"<c(\d{1,6}+)((?:\s++[A-Za-z]++=\"[^\"<>&\\\t\n\r]*+\")++)\s*+(?:/>|></c\1>)"
)
_ATTRIBUTE = re.compile(rb"([A-Za-z]++)=\"([^\"]*+)\"")
_MOST_PARTS = 1_000_000  # of an array; a larger number is an attack, or a mistake
_USUAL = b"\t\n\r" + bytes(range(32, 128))


@dataclass(frozen=True, slots=True)
class Run:
    """A run of whole rows as they stand in the file, with the offset of their first byte.

    ``whole`` marks a file whose spelling allows no cutting: the run is the file's whole text.
    """

    xml: bytes
    offset: int
    whole: bool = False


def rows_in(run: Run) -> int:
    """Return how many rows a run has, or 0 where only a parser can tell."""
    if run.whole or _may_hide_tags(run.xml):
        return 0
    count = run.xml.count(b"</row>")
    return count if run.xml.count(b"<row") == count else 0  # none is <row/> or ends in </row >


def runs(chunks: Iterable[bytes], where: str, size: int = RUN_SIZE) -> Iterator[Run]:
    """Cut a table file into runs of whole rows of a few megabytes.

    A file that cannot be cut by looking for ``</row>`` (see RowReader) comes in pieces marked
    ``whole``, to be fed to one exact parser in order.
    """
    stream = iter(chunks)
    start = b""
    for chunk in stream:
        start += chunk
        if len(start) >= _HEAD_LIMIT:
            break
    head = _HEAD.match(start)
    if not head or _OTHER_ENCODING.search(start, 0, head.end()):
        yield from _uncut(start, stream)
        return
    yield from _cut(start, head.end(), stream, where, size)


def without_head(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a table file from its first row on, or whole if its head is unusual."""
    stream = iter(chunks)
    start = b""
    for chunk in stream:
        start += chunk
        if head := _HEAD.match(start):
            start = start[head.end() :]
            break
        if len(start) >= _HEAD_LIMIT:
            break
    yield start
    yield from stream


def without_table_head(start: bytes) -> bytes | None:
    """Return what follows the head of a table file; None if its head is unusual."""
    head = _HEAD.match(start)
    return (
        start[head.end() :] if head and not _OTHER_ENCODING.search(start, 0, head.end()) else None
    )


def _uncut(start: bytes, stream: Iterator[bytes]) -> Iterator[Run]:
    yield Run(start, 0, whole=True)
    offset = len(start)
    for chunk in stream:
        yield Run(chunk, offset, whole=True)
        offset += len(chunk)


def _cut(
    start: bytes, begin: int, stream: Iterator[bytes], where: str, usual: int
) -> Iterator[Run]:
    held, size, offset = [start[begin:]], len(start) - begin, begin
    wanted = usual
    for chunk in stream:
        held.append(chunk)
        size += len(chunk)
        if size < wanted:
            continue
        rest = b"".join(held)
        end = rest.rfind(b"</row>") + 6
        if end > 5 and not _may_hide_tags(rest):
            yield Run(rest[:end], offset)
            rest, offset, wanted = rest[end:], offset + end, usual
        else:
            wanted = 2 * size
            if size > _ROW_LIMIT:
                limit = _ROW_LIMIT >> 20
                raise SiardError(f"{where}: no end of row in {limit} MiB after byte {offset}")
        held, size = [rest], len(rest)
    yield from _last(b"".join(held), offset, where)


def _may_hide_tags(xml: bytes) -> bool:
    """Whether a comment or CDATA section may hold text that only looks like tags."""
    return b"!" in xml and b"<!" in xml


_ROW_LIMIT = 1 << 28


_END = re.compile(rb"</table\s*>\s*(?:<!--(?:(?!-->).)*-->\s*)*\Z", re.DOTALL)


def _last(rest: bytes, offset: int, where: str) -> Iterator[Run]:
    end = _END.search(rest, max(0, rest.rfind(b"</table")))
    if not end:
        raise SiardError(
            f"{where}: malformed XML at byte {offset + len(rest)}: the table does not end as it "
            "should; the file is truncated or damaged"
        )
    if rest[: end.start()].strip():
        yield Run(rest[: end.start()], offset)


class RowReader:
    """Reads the rows of one table; cells arrive unescaped, in the forms of ``sql.batch``."""

    def __init__(
        self, where: str, shapes: Sequence[Shape], nullable: Sequence[bool] | None = None
    ) -> None:
        self._where = where
        self._shapes = tuple(shapes)
        self._plain = all(isinstance(shape, Leaf) for shape in shapes)
        self._nested = None if self._plain else nested_cells(shapes)
        # Our own spelling first; then, once that has failed, with white space between the tags,
        # and any column may be missing.
        self._row = _row_pattern(shapes, nullable or [True] * len(shapes), b"")
        self._spaced = _row_pattern(shapes, [True] * len(shapes), rb"\s*+")
        self._hex = [
            k
            for k, shape in enumerate(shapes)
            if isinstance(shape, Leaf) and shape.type.kind is Kind.BINARY
        ]
        self._empties = False
        self._whole: _ExactParser | None = None
        self._kernel: Reading | None = None

    def __call__(self, run: Run) -> Iterator[Batch]:
        """Yield the rows of a run in batches that stay in the processor's cache."""
        if run.whole:
            yield self._feed(run)
            return
        start = 0
        while start < len(run.xml):
            size = _LARGE_SLICE if worth_while(0) else _SLICE
            end = run.xml.find(b"</row>", start + size) + 6
            end = end if end > 5 else len(run.xml)
            xml = run.xml[start:end]
            batch = self._quickly(xml) if self._plain else None
            if batch is None and (self._plain or self._nested):
                batch = self._fast(xml)
            if batch is None:
                # Not sure where rows end any more: hand over all that is left.
                yield _exact(
                    replace(run, xml=run.xml[start:], offset=run.offset + start),
                    self._where,
                    self._shapes,
                )
                return
            yield batch
            start = end

    def close(self) -> None:
        """Say that the last run was read: a file fed whole must be complete."""
        if self._whole is not None:
            self._whole.feed(b"", final=True)

    def _feed(self, run: Run) -> Batch:
        if self._whole is None:
            self._whole = _ExactParser(self._where, self._shapes)
        return self._whole.feed(run.xml)

    def _quickly(self, xml: bytes) -> Batch | None:
        """Return what machine code makes of some rows; None if they are not for it."""
        if self._kernel is None:
            # Stored values are not for machine code: it is not even loaded for them.
            if b' file="' in xml or not worth_while(len(xml) // _TAGS):
                return None
            self._kernel = reading_kernel(self._shapes)
        return self._kernel(xml)

    def _fast(self, xml: bytes) -> Batch | None:
        """Return the batch if the proof holds, else None."""
        original = xml
        if b"\r" in xml:  # XML knows one kind of line end
            xml = xml.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        unusual = xml.translate(None, _USUAL)
        if unusual:
            try:
                xml.decode()
            except UnicodeDecodeError:
                return None
            if unusual.translate(None, UNEXPECTED) != unusual:
                return None
        width = len(self._shapes)
        if self._nested is not None:
            xml = self._nested(xml)
        if b' file="' in xml or b' dlurlpathonly="' in xml:
            xml = _STORED.sub(_referred, xml)
        text = xml.replace(b"></c", b">\xf7</c") if self._empties else xml
        rows = self._row.findall(text)
        if not rows and self._row is not self._spaced:
            self._row = self._spaced
            rows = self._row.findall(text)
        if not rows:
            return Batch(b"", 0) if not xml.strip() else None
        # Each row and each cell that is there has two tags; what is missing from their full number
        # must be the cells that are NULL, no more and no less.
        missing, odd = divmod(2 * len(rows) * (width + 1) - xml.count(b"<"), 2)
        if odd or missing < 0:
            return None
        if width == 1:
            rows = [(cell,) for cell, _ in rows]
        lines = [CELL.join([c or NULL for c in row] if b"" in row else row) for row in rows]
        data = ROW.join([*lines, b""])
        if data.count(NULL) != missing:
            if self._empties:
                return None
            self._empties = True  # the rest are cells that are there but empty: tell them apart
            return self._fast(original)
        try:
            data = unescape_cells(data.replace(_EMPTY, b"") if self._empties else data)
        except ValueError:
            return None
        if self._nested is not None:
            data = data.replace(MISSING, NULL)
        if self._hex:
            data = self._upper_hex(data)
        return Batch(data, len(rows)) if data else None

    def _upper_hex(self, data: bytes) -> bytes:
        width = len(self._shapes)
        cells = data.replace(ROW, CELL).split(CELL)
        cells.pop()
        for k in self._hex:
            if REF in data:
                spelt = [c if c.startswith(REF) else c.upper() for c in cells[k::width]]
                column = CELL.join(spelt)
            else:
                column = CELL.join(cells[k::width]).upper()
            if not _HEX.fullmatch(column + CELL):
                return b""  # not hex: the exact parser will say where
            cells[k::width] = column.split(CELL)
        rows = zip(*[iter(cells)] * width, strict=True)
        return b"".join([CELL.join(row) + ROW for row in rows])


def _referred(match: re.Match[bytes]) -> bytes:
    """Put the reference of a stored value where others have their content."""
    found = dict(_ATTRIBUTE.findall(match[2]))
    if b"file" not in found and b"dlurlpathonly" not in found:
        return match[0]
    attributes = {name.decode(): value.decode() for name, value in found.items()}
    reference = reference_of((int(match[1]),), attributes)
    return b"<c%b>%b%b</c%b>" % (match[1], REF, reference, match[1])


def _row_pattern(
    shapes: Sequence[Shape], nullable: Sequence[bool], gap: bytes
) -> re.Pattern[bytes]:
    cells = b"".join(
        (rb"(?:<c%d>%b</c%d>%b)?+" if optional else rb"<c%d>%b</c%d>%b")
        % (number, _content_pattern(shape), number, gap)
        for number, (shape, optional) in enumerate(zip(shapes, nullable, strict=True), 1)
    )
    # With one group findall would return bytes instead of tuples.
    return re.compile(b"<row>" + gap + cells + b"</row>" + (b"()" if len(shapes) == 1 else b""))


def _content_pattern(shape: Shape) -> bytes:
    if not isinstance(shape, Leaf):
        return rb"(\xfa[^<]*+)"
    return rb"([^<Z]*+)Z?+" if in_utc(shape) else rb"([^<]*+)"


def _exact(run: Run, where: str, shapes: Sequence[Shape]) -> Batch:
    parser = _ExactParser(where, shapes, run.offset - len(b"<table>"))
    return parser.feed(b"<table>" + run.xml + b"</table>", final=True)


class _ExactParser:
    """Rows through expat: slow, and right for everything that XML allows."""

    def __init__(self, where: str, shapes: Sequence[Shape], offset: int = 0) -> None:
        self._where, self._shapes, self._offset = where, shapes, offset
        self._rows: list[bytes] = []
        self._cells: dict[int, bytes] = {}
        # One frame per open element below <row>: shape, text so far, parts so far, attributes.
        self._open: list[_Frame] = []
        self._depth = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._feed = Feeder(self._parser)

    def feed(self, data: bytes, *, final: bool = False) -> Batch:
        """Take the next bytes; return the rows that they completed."""
        try:
            self._feed(data, final)
        except expat.ExpatError as error:
            position = self._offset + self._parser.ErrorByteIndex
            reason = expat.errors.messages[error.code]
            raise SiardError(
                f"{self._where}: malformed XML at byte {position}: {reason}; the file is damaged"
            ) from error
        except TokenTooLong as error:
            raise SiardError(f"{self._where}: {error}") from error
        rows, self._rows = self._rows, []
        return Batch(b"".join(rows), len(rows))

    def _doctype(self, *_: object) -> None:
        raise SiardError(f"{self._where}: a document type declaration, which SIARD does not allow")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        local = name.rpartition(":")[2]
        if self._depth == 2:
            if local != "row":
                raise self._unexpected(name)
            self._cells = {}
        elif self._depth > 2:
            shape = self._shape_of(local, name)
            self._open.append(_Frame(local, shape, attributes))

    def _shape_of(self, local: str, name: str) -> Shape:
        """Find what <c3>, <u2> or <a1> stands for under the element that is open now."""
        if not local[1:].isdecimal() or local[0] not in "cua" or len(local) > 8:
            raise self._unexpected(name)
        number = int(local[1:])
        if number > _MOST_PARTS:
            raise self._unexpected(name)
        parent = self._open[-1].shape if self._open else None
        if parent is None and local[0] == "c" and 1 <= number <= len(self._shapes):
            return self._shapes[number - 1]
        if isinstance(parent, Array) and local[0] == "a" and number >= 1:
            return parent.element
        if isinstance(parent, Struct) and local[0] == "u" and 1 <= number <= len(parent.parts):
            return parent.parts[number - 1]
        raise self._unexpected(name)

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].text.append(text)

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._depth == 1:
            row = (self._cells.get(k, NULL) for k in range(1, len(self._shapes) + 1))
            self._rows.append(CELL.join(row) + ROW)
        elif self._depth > 1:
            path = tuple(int(frame.local[1:]) for frame in self._open)
            frame = self._open.pop()
            number, cell = path[-1], self._cell(frame, path, name)
            if self._open:
                self._put(self._open[-1].parts, number, cell, name)
            else:
                self._put(self._cells, number, cell, name)

    def _put(self, parts: dict[int, bytes], number: int, cell: bytes, name: str) -> None:
        if number in parts:
            raise self._unexpected(name)  # a second value would push out the first
        parts[number] = cell

    def _cell(self, frame: _Frame, path: tuple[int, ...], name: str) -> bytes:
        try:
            return frame.cell(path)
        except ValueError as error:
            position = self._offset + self._parser.CurrentByteIndex
            raise SiardError(f"{self._where}: <{name}> at byte {position}: {error}") from error

    def _unexpected(self, name: str) -> SiardError:
        position = self._offset + self._parser.CurrentByteIndex
        return SiardError(f"{self._where}: unexpected element <{name}> at byte {position}")


class _Frame:
    """An element that is still open."""

    def __init__(self, local: str, shape: Shape, attributes: dict[str, str]) -> None:
        self.local, self.shape, self.attributes = local, shape, attributes
        self.text: list[str] = []
        self.parts: dict[int, bytes] = {}

    def cell(self, path: tuple[int, ...]) -> bytes:
        """Return the finished cell; a reference says where it stands, as its folder hangs on it."""
        if "file" in self.attributes or "dlurlpathonly" in self.attributes:
            return REF + reference_of(path, self.attributes)
        if isinstance(self.shape, Leaf):
            return _leaf(self.shape, "".join(self.text))
        size = max(self.parts, default=0)
        if not isinstance(self.shape, Array):
            size = len(self.shape.parts)
        filled = (self.parts.get(number, NULL) + ITEM for number in range(1, size + 1))
        return OPEN + b"".join(filled) + CLOSE


def _leaf(shape: Leaf, text: str) -> bytes:
    cell = unescape_text(text.encode("utf-8", "surrogatepass"))
    if in_utc(shape):
        return cell.strip().removesuffix(b"Z")
    if shape.type.kind is Kind.BINARY:
        cell = cell.strip().upper()
        bytes.fromhex(cell.decode("ascii", "replace"))  # raises ValueError if it is not hex
        return cell
    return cell
