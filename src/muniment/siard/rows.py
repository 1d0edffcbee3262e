"""Batches to row XML (T_6.1-2, T_6.4): the hot path of every archive.

A batch is split once into cells, and the cells are laid between ready-made tags. NULL cells take
their two tags back out. A last check proves that the result is UTF-8.
"""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from muniment.errors import Unfit
from muniment.kernels import Writing, worth_while, writing_kernel
from muniment.siard.cells import escape_cells
from muniment.sql.batch import (
    CELL,
    CLOSE,
    ITEM,
    NULL,
    OPEN,
    REF,
    Batch,
    cells_of,
    null_positions,
    parts_of,
)
from muniment.sql.model import Array, Column, Leaf, Shape
from muniment.sql.types import Kind, PredefinedType
from muniment.sql.values import part_shape

__all__ = ["RowWriter", "in_utc"]

# Dates and times end with Z (T_6.3-2); batches leave it out, the tags bring it.
_UTC_KINDS = {Kind.DATE, Kind.TIME, Kind.TIMESTAMP}

# Possessive, and the commonest days first: these run over every value. There is no year 0. The one
# group remembers whether a leap day was among the dates: that takes a closer look.
_DATE = (
    rb"(?!0000)[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    rb"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31|(02-29))"
)
_TIME = rb"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]++)?+"
_DURATION = (
    rb"-?P(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    rb"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?"
)
_LEAP_DAY = re.compile(rb"([0-9]{4})-02-29")
_FEW_NULLS = 8  # of a batch, per column that may hold some
_PAIR = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf]")  # of surrogates
_REMEMBERED = 10_000  # dates; columns of dates repeat themselves


# Stores the object behind a reference and returns the attributes of its cell; it is given the
# position among the cells of a batch, and the parts within a complex value, from 1.
Place = Callable[[int, tuple[int, ...], bytes], bytes]


def in_utc(shape: Shape) -> bool:
    """Whether cells of this shape are written with a final Z."""
    return isinstance(shape, Leaf) and shape.type.kind in _UTC_KINDS


def _column_pattern(cell: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?:(?:" + cell + rb"|\xfe)\xff)*+")


_PATTERNS = {
    Kind.DATE: _column_pattern(_DATE),
    Kind.TIME: _column_pattern(_TIME),
    Kind.TIMESTAMP: _column_pattern(_DATE + b"T" + _TIME),
    Kind.INTERVAL: _column_pattern(_DURATION),
    Kind.DECIMAL: _column_pattern(rb"[+-]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)"),
    Kind.BINARY: _column_pattern(rb"(?:[0-9A-Fa-f]{2})*|\xf9[^\xff]*"),
}
# Integers, floats and truth values have no pattern: no product hands them over as text.
_TEXTUAL = {Kind.TEXT, Kind.DATALINK}
_WORDS = {
    Kind.DATE: "a date between 0001-01-01 and 9999-12-31",
    Kind.TIME: "a time of day",
    Kind.TIMESTAMP: "a timestamp between the years 0001 and 9999",
    Kind.INTERVAL: "an interval",
    Kind.BINARY: "binary",
}


@lru_cache
def _pattern(type_: PredefinedType, plain: bool = False) -> re.Pattern[bytes]:
    """What a column of this type looks like; decimals have no more digits than they declare.

    ``plain`` is quicker and knows only the usual spelling: no plus sign, no needless zeros.
    """
    if type_.kind is not Kind.DECIMAL or type_.length is None:
        return _PATTERNS[type_.kind]
    scale = type_.scale or 0
    if plain and scale and type_.length > scale:
        return _column_pattern(
            rb"-?+[0-9]{1,%d}+(?:\.[0-9]{1,%d}+)?+" % (type_.length - scale, scale)
        )
    whole = rb"0*+[0-9]{0,%d}+" % (type_.length - scale)
    fraction = rb"(?:\.[0-9]{0,%d}+0*+)?+" % scale
    return _column_pattern(rb"[+-]?+(?=[0-9.])" + whole + fraction)


class RowWriter:
    """Writes the rows of one table as XML."""

    def __init__(
        self,
        where: str,
        columns: Sequence[Column],
        shapes: Sequence[Shape],
        watched: Collection[int] = (),
    ) -> None:
        self._where = where
        self._watched = set(watched)
        self.inlined: set[int] = set()  # those of the watched columns that had a value
        self._columns = tuple(columns)
        self._shapes = tuple(shapes)
        self._opens = [b"<c%d>" % (k + 1) for k in range(len(shapes))]
        self._closes = [
            (b"Z</c%d>" if in_utc(shape) else b"</c%d>") % (k + 1) for k, shape in enumerate(shapes)
        ]
        self._nullable = [column.nullable is not False for column in columns]
        self._checks = [
            (k, shape.type, _pattern(shape.type, plain=True))
            for k, shape in enumerate(shapes)
            if isinstance(shape, Leaf) and shape.type.kind in _PATTERNS
        ]
        self._limits = [
            (k, shape.type.length)
            for k, shape in enumerate(shapes)
            if isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT and shape.type.length
        ]
        self._texts = [
            k
            for k, shape in enumerate(shapes)
            if not isinstance(shape, Leaf) or shape.type.kind in _TEXTUAL
        ]
        self._nested = [k for k, shape in enumerate(shapes) if not isinstance(shape, Leaf)]
        self._nested_checks = [k for k in self._nested if _is_checked(shapes[k])]
        self._null_cells = [
            opening + NULL + closing
            for opening, closing, nullable in zip(
                self._opens, self._closes, self._nullable, strict=True
            )
            if nullable
        ]
        self._dates: set[bytes] = set()  # known to be good
        self._templates: dict[int, list[bytes]] = {}
        self._kernel: Writing | None = None

    def __call__(
        self,
        batch: Batch,
        first: int = 1,
        large: Place | None = None,
        *,
        trusted: bool = False,
    ) -> bytes:
        """Return the rows of a batch as XML; ``first`` is the number of its first row.

        ``trusted`` values are not checked. ``large`` is given each REF; it returns the attributes
        that stand for it.
        """
        if not batch.rows:
            return b""
        if (xml := self._quickly(batch, trusted)) is not None:
            return xml
        cells = cells_of(batch)
        if not trusted:
            self._check(batch, cells, first)
        if self._watched:
            self._watch(cells)
        stored = _Stored(large) if large is not None and REF in batch.data else None
        if stored is not None:
            stored.replace(cells)
        width = len(self._shapes)
        for k in self._texts:
            column = CELL.join(cells[k::width])
            escaped = escape_cells(column)
            if escaped is not column:
                cells[k::width] = escaped.split(CELL)
        for k in self._nested:
            shape = self._shapes[k]
            cells[k::width] = [_complex(cell, shape, stored) for cell in cells[k::width]]
        pieces = self._template(batch.rows).copy()
        pieces[1::2] = cells
        nulls = batch.data.count(NULL)
        # Many NULLs are cut out of the finished text, column by column; few one by one.
        many = nulls > _FEW_NULLS * len(self._null_cells) and not self._nested
        if nulls and not many:
            self._drop_nulls(batch, cells, pieces, first)
        for position, attributes in stored.cells.items() if stored else ():
            slot, close = 2 * position + 1, len(self._closes[position % width])
            pieces[slot - 1] = pieces[slot - 1][:-1] + attributes + b"/>"
            pieces[slot + 1] = pieces[slot + 1][close:]
        xml = b"".join(pieces)
        if many:
            xml = self._cut_nulls(xml, batch, cells, pieces, first)
        if not trusted:
            self._check_unicode(xml, batch, first)
        return xml

    def _quickly(self, batch: Batch, trusted: bool) -> bytes | None:
        """Return what machine code makes of a batch; None if it is not for it."""
        if self._watched or not worth_while(len(batch.data)):
            return None
        if self._kernel is None:
            self._kernel = writing_kernel(self._shapes, self._opens, self._closes, self._nullable)
        return self._kernel(batch.data, batch.rows, not trusted)

    def _watch(self, cells: list[bytes]) -> None:
        width = len(self._shapes)
        for k in list(self._watched):
            if any(cell not in (NULL, b"") for cell in cells[k::width]):
                self._watched.remove(k)
                self.inlined.add(k)

    def _template(self, rows: int) -> list[bytes]:
        """The tags of so many rows, with an empty slot between each two for a cell."""
        if rows not in self._templates:
            seams = [a + b for a, b in zip(self._closes[:-1], self._opens[1:], strict=True)]
            start, end = b"<row>" + self._opens[0], self._closes[-1] + b"</row>\n"
            tags = ([end + start, *seams] * rows) + [end]
            tags[0] = start
            template = [b""] * (2 * len(tags) - 1)
            template[::2] = tags
            if rows > 4096:  # an odd size is not worth keeping
                return template
            self._templates[rows] = template
        return self._templates[rows]

    def _drop_nulls(
        self, batch: Batch, cells: list[bytes], pieces: list[bytes], first: int
    ) -> None:
        """T_6.4-3: a cell that is NULL is left out, tags and all."""
        width, opens, closes = len(self._shapes), self._opens, self._closes
        many = batch.data.count(NULL) > batch.rows // 8
        positions = _null_cells(cells) if self._nested or many else null_positions(batch, width)
        for position in positions:
            k, slot = position % width, 2 * position + 1
            if not self._nullable[k]:
                raise self._unfit(k, first + position // width, "NULL", "allowed there")
            pieces[slot] = b""
            pieces[slot - 1] = pieces[slot - 1][: -len(opens[k])]
            pieces[slot + 1] = pieces[slot + 1][len(closes[k]) :]

    def _cut_nulls(
        self, xml: bytes, batch: Batch, cells: list[bytes], pieces: list[bytes], first: int
    ) -> bytes:
        """The same, in bulk: a NULL in the text is just its cell."""
        for cell in self._null_cells:
            xml = xml.replace(cell, b"")
        if NULL in xml:
            self._drop_nulls(batch, cells, pieces, first)  # knows what is wrong
        return xml

    def _check(self, batch: Batch, cells: list[bytes], first: int) -> None:
        """Refuse values that the column's type does not know; they would make invalid XML."""
        width = len(self._shapes)
        if b"\x00" in batch.data:
            # Products that do not keep to the length of a text stop counting at this character.
            for k, limit in self._limits:
                self._check_length(k, limit, cells[k::width], first)
        for k, type_, pattern in self._checks:
            cells_k = cells[k::width]
            if type_.kind is Kind.DATE and self._dates.issuperset(cells_k):
                continue
            column = CELL.join([*cells_k, b""])
            if not _fits(pattern, column):
                self._look_closer(k, type_, cells_k, first)
            if type_.kind is Kind.DATE and len(self._dates) < _REMEMBERED:
                self._dates.update(cells_k)
        for k in self._nested_checks:
            for row, cell in enumerate(cells[k::width], first):
                for part, type_ in _wrong_parts(cell, self._shapes[k]):
                    raise self._unfit(k, row, _shown(part), _wanted(type_))

    def _look_closer(self, k: int, type_: PredefinedType, column: list[bytes], first: int) -> None:
        pattern = _pattern(type_)
        for row, cell in enumerate(column, first):
            one = cell + CELL
            if not _fits(pattern, one):
                raise self._unfit(k, row, _shown(cell), _wanted(type_))

    def _check_length(self, k: int, limit: int, column: list[bytes], first: int) -> None:
        for row, cell in enumerate(column, first):
            text = cell.decode("utf-8", "replace")
            if len(text) > limit and not cell.startswith(REF):
                shown = f"a text of {len(text)} characters"
                raise self._unfit(k, row, shown, f"short enough for {self._columns[k].type}")

    def _check_unicode(self, xml: bytes, batch: Batch, first: int) -> None:
        try:
            xml.decode()
        except UnicodeDecodeError as error:
            self._refuse_text(batch, first, _is_text)
            raise AssertionError("row XML is not UTF-8 although every cell is") from error
        if b"\\ud" in xml:
            self._refuse_text(batch, first, _has_no_pair)

    def _refuse_text(self, batch: Batch, first: int, fits: Callable[[bytes], bool]) -> None:
        width = len(self._shapes)
        for position, cell in enumerate(cells_of(batch)):
            if not fits(cell):
                value = f"the byte string {cell[:40]!r}"
                column, row = position % width, first + position // width
                raise self._unfit(column, row, value, "text in Unicode")

    def _unfit(self, column: int, row: int, value: str, wanted: str) -> Unfit:
        return Unfit(f"{self._where}.{self._columns[column].name}", row, value, wanted)


def _null_cells(cells: list[bytes]) -> Iterator[int]:
    """The same by a look at every cell: where complex values hold NULLs too, or there are many."""
    position = -1
    with suppress(ValueError):
        while True:
            position = cells.index(NULL, position + 1)
            yield position


class _Stored:
    """The values of a batch that lie elsewhere, and the attributes that stand for them."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.cells: dict[int, bytes] = {}
        self._parts: list[bytes] = []

    def replace(self, cells: list[bytes]) -> None:
        """Take the references out: cells become empty, parts of complex values a number."""
        for position, cell in enumerate(cells):
            if cell.startswith(REF):
                self.cells[position] = self._place(position, (), cell[1:])
                cells[position] = b""
            elif cell.startswith(OPEN) and REF in cell:
                cells[position] = self._numbered(position, (), cell)

    def attributes(self, part: bytes) -> bytes:
        """The attributes of a part that ``replace`` has numbered."""
        return self._parts[int(part[1:])]

    def _numbered(self, position: int, path: tuple[int, ...], cell: bytes) -> bytes:
        if cell.startswith(REF):
            self._parts.append(self._place(position, path, cell[1:]))
            return REF + b"%d" % (len(self._parts) - 1)
        if not cell.startswith(OPEN) or REF not in cell:
            return cell
        parts = enumerate(parts_of(cell), 1)
        numbered = (self._numbered(position, (*path, n), part) + ITEM for n, part in parts)
        return OPEN + b"".join(numbered) + CLOSE


def _fits(pattern: re.Pattern[bytes], column: bytes) -> bool:
    """Whether all cells of a column match, and its leap days are in leap years."""
    match = pattern.fullmatch(column)
    if match is None:
        return False
    if not pattern.groups or match[1] is None:
        return True
    return all(isleap(int(year)) for year in _LEAP_DAY.findall(column))


def _is_checked(shape: Shape) -> bool:
    """Whether a complex value has parts that are looked at."""
    if isinstance(shape, Leaf):
        return shape.type.kind in _PATTERNS
    inner = (shape.element,) if isinstance(shape, Array) else shape.parts
    return any(map(_is_checked, inner))


def _wrong_parts(cell: bytes, shape: Shape) -> Iterator[tuple[bytes, PredefinedType]]:
    """Yield the parts of a complex value that their types do not know."""
    if isinstance(shape, Leaf):
        if shape.type.kind in _PATTERNS and not _fits(_pattern(shape.type), cell + CELL):
            yield cell, shape.type
    elif cell.startswith(OPEN):
        parts = list(parts_of(cell))
        if isinstance(shape, Array) and isinstance(shape.element, Leaf):  # all at once
            column = b"".join([part + CELL for part in parts])
            if shape.element.type.kind not in _PATTERNS or _fits(
                _pattern(shape.element.type), column
            ):
                return
        for number, part in enumerate(parts):
            yield from _wrong_parts(part, part_shape(shape, number))


def _shown(cell: bytes) -> str:
    return repr(cell.decode("utf-8", "replace"))


def _wanted(type_: PredefinedType) -> str:
    return str(type_) if type_.kind is Kind.DECIMAL else _WORDS[type_.kind]


def _is_text(cell: bytes) -> bool:
    if cell[:1] in (NULL, REF):
        return True
    if cell.startswith(OPEN):
        return all(map(_is_text, parts_of(cell)))
    try:
        cell.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _has_no_pair(cell: bytes) -> bool:
    """Whether no escapes of a cell would be read as one character: that is not what it has."""
    return cell[:1] == REF or _PAIR.search(cell) is None


def _complex(cell: bytes, shape: Shape, stored: _Stored | None) -> bytes:
    """Return the inner XML of a UDT or array cell (T_6.4-4)."""
    return cell if cell in (NULL, b"") else b"".join(_elements(cell, shape, stored))


def _elements(cell: bytes, shape: Shape, stored: _Stored | None) -> Iterator[bytes]:
    letter = b"a" if isinstance(shape, Array) else b"u"
    for number, part in enumerate(parts_of(cell), 1):
        if part == NULL:
            continue
        if stored is not None and part.startswith(REF):
            yield b"<%b%d%b/>" % (letter, number, stored.attributes(part))
            continue
        if isinstance(shape, Array):
            inner = shape.element
        else:
            assert not isinstance(shape, Leaf)
            inner = shape.parts[number - 1]
        text = part if isinstance(inner, Leaf) else b"".join(_elements(part, inner, stored))
        end = b"Z" if in_utc(inner) else b""
        yield b"<%b%d>%b%b</%b%d>" % (letter, number, text, end, letter, number)
