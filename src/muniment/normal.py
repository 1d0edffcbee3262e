"""One spelling for equal values of different types or from different writers.

A value that the same product wrote twice is spelt the same twice, and nothing has to be done. Other
pairs are brought to one form first: 1.10 and 1.1, 1.0E10 and 10000000000, true and 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import BinaryIO

from muniment.sql.batch import CELL, NULL, REF, ROW, Batch, cells_of
from muniment.sql.classes import Classes, both_classes
from muniment.sql.model import Column, Database, Leaf, Schema, Shape, Table, shape_of
from muniment.sql.types import Kind, PredefinedType

__all__ = ["FORMS", "Normal", "Spelling", "normal_forms", "shared_forms"]

_NUMBERS = {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT}
_TIMES = {Kind.TIME, Kind.TIMESTAMP}
_TEXT = Leaf(PredefinedType("CLOB"))


@dataclass(frozen=True)
class Spelling:
    """The values of a column as those of one that holds several classes of SQLite are spelt."""

    classes: Classes
    kind: Kind
    quoted: bool  # whether the other column has its texts in quotation marks

    def __call__(self, cell: bytes, open_lob: Callable[[bytes], BinaryIO]) -> bytes:
        """Return a cell in that spelling; large values as well."""
        if cell.startswith(REF):
            with open_lob(cell[1:]) as stream:
                content = stream.read()
            cell = content.hex().upper().encode() if self.kind is Kind.BINARY else content
        match self.kind:
            case Kind.BINARY:
                return b"X'%b'" % cell
            case Kind.FLOAT:
                return cell.replace(b"INF", b"Inf")
            case Kind.TEXT if self.quoted:
                return self.classes.in_marks(cell)
        return cell


Forms = tuple[tuple[int, str | Spelling], ...]


@dataclass(frozen=True)
class Normal:
    """The forms in which the columns of a table are compared: position and name of the form.

    ``kept`` says which columns of a row are compared, and in which order; None means all as they
    are. Positions of forms count what is kept.
    """

    forms: Forms
    width: int  # of the rows as they come
    kept: tuple[int, ...] | None = None

    def shapes(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Return the shapes of cells that were spelt."""
        found = list(shapes)
        for k, _ in self._spellings():
            found[k] = _TEXT
        return found

    def spelt(self, batch: Batch, open_lob: Callable[[bytes], BinaryIO]) -> Batch:
        """Return rows as they come, but for columns that another one's spelling is for."""
        spellings = self._spellings()
        if not spellings:
            return batch
        cells = cells_of(batch)
        for k, spelling in spellings:
            column = cells[k :: self.width]
            cells[k :: self.width] = [c if c == NULL else spelling(c, open_lob) for c in column]
        rows = zip(*[iter(cells)] * self.width, strict=True)
        return Batch(b"".join([CELL.join(row) + ROW for row in rows]), batch.rows)

    def _spellings(self) -> list[tuple[int, Spelling]]:
        return [
            (k if self.kept is None else self.kept[k], form)
            for k, form in self.forms
            if isinstance(form, Spelling)
        ]

    def __call__(self, batch: Batch) -> Batch:
        """Return the columns that are kept, in their forms."""
        if not self.forms and self.kept is None:
            return batch
        cells = cells_of(batch)
        kept = range(self.width) if self.kept is None else self.kept
        columns = [cells[k :: self.width] for k in kept]
        for k, form in self.forms:
            if isinstance(form, str):
                function = FORMS[form]
                columns[k] = [cell if cell == NULL else function(cell) for cell in columns[k]]
        rows = zip(*columns, strict=True)
        return Batch(b"".join([CELL.join(row) + ROW for row in rows]), batch.rows)


def normal_forms(
    first: Database, second: Database, a: tuple[Schema, Table], b: tuple[Schema, Table]
) -> tuple[Normal, Normal]:
    """Return the forms that two tables need to be compared; none if their columns differ."""
    left_columns, right_columns = a[1].columns, b[1].columns
    if [x.name for x in left_columns] != [y.name for y in right_columns]:
        return Normal((), len(left_columns)), Normal((), len(right_columns))
    pairs = list(zip(left_columns, right_columns, strict=True))
    left, right = _forms(first, second, (a[0], b[0]), pairs)
    return Normal(left, len(left_columns)), Normal(right, len(right_columns))


def shared_forms(
    first: Database, second: Database, a: tuple[Schema, Table], b: tuple[Schema, Table]
) -> tuple[Normal, Normal]:
    """Return what narrows two tables to the columns that both have, by their names."""
    places = {column.name: k for k, column in enumerate(b[1].columns)}
    left = tuple(k for k, column in enumerate(a[1].columns) if column.name in places)
    right = tuple(places[a[1].columns[k].name] for k in left)
    pairs = [(a[1].columns[j], b[1].columns[k]) for j, k in zip(left, right, strict=True)]
    x, y = _forms(first, second, (a[0], b[0]), pairs)
    return Normal(x, len(a[1].columns), left), Normal(y, len(b[1].columns), right)


def _forms(
    first: Database,
    second: Database,
    schemas: tuple[Schema, Schema],
    pairs: Sequence[tuple[Column, Column]],
) -> tuple[Forms, Forms]:
    """The forms of both sides: the same, but for spellings that one side alone needs."""
    same_writer = _writer(first) == _writer(second) is not None
    sqlite = all((d.database_product or "").startswith("SQLite") for d in (first, second))
    forms: list[tuple[int, str]] = []
    left_spelt: list[tuple[int, Spelling]] = []
    right_spelt: list[tuple[int, Spelling]] = []
    for k, (x, y) in enumerate(pairs):
        both = both_classes(x, y) if sqlite else None
        if both:
            quoted = both[0].quoted or both[1].quoted
            for column, classes, spelt in ((x, both[0], left_spelt), (y, both[1], right_spelt)):
                kind = _kind(column)
                if kind in _SPELT or quoted != classes.quoted:
                    spelt.append((k, Spelling(classes, kind, quoted)))
            continue
        left = shape_of(first, schemas[0].name, x)
        right = shape_of(second, schemas[1].name, y)
        if same_writer and left == right:
            continue
        if (form := _form(left, right)) is not None:
            forms.append((k, form))
    return (*forms, *left_spelt), (*forms, *right_spelt)


_SPELT = {Kind.BINARY, Kind.FLOAT}  # not as they are among values of other classes


def _kind(column: Column) -> Kind:
    return column.type.kind if isinstance(column.type, PredefinedType) else Kind.TEXT


def _writer(database: Database) -> str | None:
    """The product whose values are spelt here, if it was Muniment that spelt them."""
    archived_elsewhere = (
        database.producer_application and not database.producer_application.startswith("Muniment ")
    )
    return None if archived_elsewhere else (database.database_product or "").partition(" ")[0]


def _form(a: Shape, b: Shape) -> str | None:
    if not isinstance(a, Leaf) or not isinstance(b, Leaf):
        return None
    kinds = {a.type.kind, b.type.kind}
    if kinds <= _NUMBERS:
        if kinds == {Kind.INTEGER}:
            return None
        return "float" if kinds == {Kind.FLOAT} else "number"
    if kinds <= _TIMES:
        return "fraction"
    # A column that one side reads as text, since not all of its values are of its type.
    if kinds == {Kind.TEXT, Kind.TIMESTAMP}:
        return "stamp"
    if Kind.TEXT in kinds and kinds <= _NUMBERS | {Kind.TEXT} and kinds != {Kind.TEXT}:
        return "number"
    if Kind.BOOLEAN in kinds and kinds != {Kind.BOOLEAN}:
        return "boolean"
    if kinds == {Kind.TEXT} and "CHAR" in (a.type.name, b.type.name) and a.type.name != b.type.name:
        return "padding"
    return None


def _number(cell: bytes) -> bytes:
    whole, point, rest = cell.partition(b".")
    if whole.isdigit() and (len(whole) == 1 or not whole.startswith(b"0")):  # as most are spelt
        if not point:
            return cell
        if rest.isdigit():
            rest = rest.rstrip(b"0")
            return whole + point + rest if rest else whole
    if not _NUMERAL.fullmatch(cell):
        return cell
    value = Decimal(cell.decode())
    if abs(value.adjusted()) > 400:  # beyond any double; spelling it out could take for ever
        return cell
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return (text if text not in ("-0", "") else "0").encode()


_NUMERAL = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][+-]?[0-9]{1,9})?")


def _float(cell: bytes) -> bytes:
    """The shortest text that reads back to the same bits: writers differ in how many digits."""
    try:
        return repr(float(cell)).encode()
    except ValueError:
        return cell


def _fraction(cell: bytes) -> bytes:
    return cell.rstrip(b"0").rstrip(b".") if b"." in cell else cell


def _stamp(cell: bytes) -> bytes:
    """A timestamp as SQLite's text has it, with a space before the time."""
    return _fraction(cell[:10] + b" " + cell[11:] if cell[10:11] == b"T" else cell)


def _boolean(cell: bytes) -> bytes:
    return {b"1": b"true", b"0": b"false"}.get(cell, cell)


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "number": _number,
    "float": _float,
    "fraction": _fraction,
    "stamp": _stamp,
    "boolean": _boolean,
    "padding": lambda cell: cell.rstrip(b" "),
}
