"""The text of PostgreSQL's values to cells of a batch, column by column.

Most types need nothing: their text is SIARD's. The rest is done on whole columns; only arrays and
composite values are looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from muniment.databases.postgresql.literals import array_parts, record_parts
from muniment.databases.postgresql.types import Listing, Node, Plain, Record
from muniment.errors import Unfit
from muniment.sql.batch import CELL, CLOSE, ITEM, NULL, OPEN, REF, ROW, Batch
from muniment.sql.types import Kind, PredefinedType

__all__ = ["CellReader"]

Convert = Callable[[list[bytes]], list[bytes]]

_TRUTH = {b"t": b"true", b"f": b"false", NULL: NULL}


def _booleans(cells: list[bytes]) -> list[bytes]:
    return list(map(_TRUTH.__getitem__, cells))


def _floats(cells: list[bytes]) -> list[bytes]:
    column = CELL.join(cells)
    return column.replace(b"Infinity", b"INF").split(CELL) if b"I" in column else cells


def _timestamps(cells: list[bytes]) -> list[bytes]:
    return CELL.join(cells).replace(b" ", b"T").split(CELL)


def _instants(cells: list[bytes]) -> list[bytes]:
    column = CELL.join([*cells, b""]).replace(b"+00" + CELL, CELL).replace(b" ", b"T")
    return column.split(CELL)[:-1]


def _octets(cells: list[bytes]) -> list[bytes]:
    return CELL.join(cells).replace(b"\\x", b"").upper().split(CELL)


def _durations(cells: list[bytes]) -> list[bytes]:
    """All parts of a value have one sign; XML Schema writes it once, in front."""
    if b"-" not in CELL.join(cells):
        return cells
    return [b"-" + cell.replace(b"-", b"") if b"-" in cell else cell for cell in cells]


_CONVERTS: dict[str, Convert] = {
    "boolean": _booleans,
    "real": _floats,
    "double precision": _floats,
    "timestamp without time zone": _timestamps,
    "timestamp with time zone": _instants,
    "bytea": _octets,
    "large object": _octets,
}
# What the server spells as SIARD does, if it is a column of its own: see ``_Reading``.
_SERVED = {"boolean", "timestamp without time zone", "timestamp with time zone"}

# What values inside arrays and composite values have to look like; cells of their own are checked
# when they are written.
_FORMS = {
    Kind.DECIMAL: re.compile(rb"-?[0-9]+(?:\.[0-9]+)?"),
    Kind.DATE: re.compile(rb"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    Kind.TIME: re.compile(rb"(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"),
    Kind.TIMESTAMP: re.compile(rb"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+"),
}


class CellReader:
    """Turns decoded COPY text of one table into batches.

    With ``marked``, a column stands before all others: empty, or the place of a row and the numbers
    of those of its columns whose values are too large to come along.
    """

    def __init__(self, where: str, names: Sequence[str], nodes: Sequence[Node], marked: bool):
        self._where, self._names, self._marked = where, names, marked
        self._width = len(nodes)
        self._converts = [
            (k, convert)
            for k, node in enumerate(nodes)
            if not (isinstance(node, Plain) and node.base in _SERVED)
            and (convert := self._convert(k, node)) is not None
        ]
        self._rarely = all(convert is _floats for _, convert in self._converts)
        self._separators: dict[int, list[bytes]] = {}
        self._row = 0

    @property
    def plain(self) -> bool:
        """Whether rows come as they are, or nearly always."""
        return self._rarely and not self._marked

    def batch(self, data: bytes) -> Batch:
        """Return the rows of some decoded COPY text."""
        count = data.count(ROW)
        if self._marked:
            data = self._unmarked(data, count)
        if self._converts and not (self._rarely and b"Infin" not in data):
            data = self._converted(data, count)
        self._row += count
        return Batch(data, count)

    def check_text(self, copied: bytes) -> None:
        """Refuse COPY text that is not UTF-8: a database in SQL_ASCII may hold anything."""
        try:
            copied.decode()
        except UnicodeDecodeError as error:
            line = copied.count(b"\n", 0, error.start)
            start = copied.rfind(b"\n", 0, error.start) + 1
            k = copied.count(b"\t", start, error.start) - self._marked
            value = f"the byte string {error.object[error.start : error.start + 20]!r}"
            where = f"{self._where}.{self._names[k]}"
            raise Unfit(where, self._row + line + 1, value, "text in Unicode") from error

    def _converted(self, data: bytes, count: int) -> bytes:
        cells = data.replace(ROW, CELL).split(CELL)
        cells.pop()
        for k, convert in self._converts:
            cells[k :: self._width] = convert(cells[k :: self._width])
        if count not in self._separators:
            between = [b"", CELL] * self._width
            between[-1] = ROW
            self._separators[count] = between * count
        pieces = self._separators[count].copy()
        pieces[::2] = cells
        return b"".join(pieces)

    def _unmarked(self, data: bytes, count: int) -> bytes:
        """Take off the first column; where it is not empty, put references in."""
        framed = ROW + data
        if framed.count(ROW + CELL) == count:
            return framed.replace(ROW + CELL, ROW)[1:]
        lines = []
        for line in data.split(ROW)[:-1]:
            mark, *cells = line.split(CELL)
            if mark:
                place, *numbers = mark.split(b"|")
                for number in numbers:
                    column, _, own_place = number.partition(b"=")
                    cells[int(column)] = REF + (own_place or place) + b":" + column
            lines.append(CELL.join(cells) + ROW)
        return b"".join(lines)

    def _convert(self, k: int, node: Node) -> Convert | None:
        if isinstance(node, Plain):
            if node.base == "interval":
                return _durations if node.archived.kind is Kind.INTERVAL else None
            return _CONVERTS.get(node.base)
        return partial(self._nested, k, node)

    def _nested(self, k: int, node: Node, cells: list[bytes]) -> list[bytes]:
        if isinstance(node, Listing) and _is_simple(node.element):
            column = CELL.join(cells)
            if not set(b'"\\').intersection(column):
                return _bulk_arrays(column)
        return [
            cell if cell == NULL else self._value(cell, node, k, row)
            for row, cell in enumerate(cells, self._row + 1)
        ]

    def _value(self, text: bytes, node: Node, k: int, row: int) -> bytes:
        if isinstance(node, Plain):
            convert = self._convert(k, node)
            cell = convert([text])[0] if convert else text
            form = _FORMS.get(node.archived.kind)
            if form and not form.fullmatch(cell):
                raise self._unfit(k, row, text, node.archived)
            return cell
        if isinstance(node, Listing):
            parts = [(part, node.element) for part in array_parts(text)]
        else:
            texts = record_parts(text) if node.parts else ()
            parts = list(zip(texts, node.parts, strict=True))
        inner = [NULL if p is None else self._value(p, n, k, row) for p, n in parts]
        return OPEN + b"".join([part + ITEM for part in inner]) + CLOSE

    def _unfit(self, k: int, row: int, text: bytes, wanted: PredefinedType) -> Unfit:
        where = f"{self._where}.{self._names[k]}"
        return Unfit(where, row, repr(text.decode("utf-8", "replace")), f"a value of {wanted}")


def _is_simple(node: Node) -> bool:
    """Whether elements can stay as they are, without a look at each of them."""
    if isinstance(node, Listing | Record):
        return False
    return node.base not in _CONVERTS and node.archived.kind in (Kind.INTEGER, Kind.TEXT)


def _bulk_arrays(column: bytes) -> list[bytes]:
    """Arrays without a quotation mark: no element needs to be told from another character."""
    column = column.replace(b"{", OPEN).replace(b",", ITEM).replace(b"}", ITEM + CLOSE)
    column = column.replace(OPEN + ITEM + CLOSE, OPEN + CLOSE)
    if b"NULL" in column:
        for before in (OPEN, ITEM):
            while before + b"NULL" + ITEM in column:
                column = column.replace(before + b"NULL" + ITEM, before + NULL + ITEM)
    return column.split(CELL)
