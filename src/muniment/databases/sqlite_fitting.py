"""Values on their way into SQLite that are not of their column's type, found before they get there.

SQLite takes any value into any column, and makes numbers of texts as it likes. An archive that was
changed, or that another program wrote badly, must not get through as if it were sound: what
SQLite would keep as something else is refused, and what it keeps as it is, as text, is told.
Workers look for both, by one expression per table; only a batch that does not match is looked at
cell by cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from math import isinf
from typing import Any

import apsw

from muniment.databases.sqlite_types import affinity_of
from muniment.sql.batch import CELL, NULL, REF, ROW, Batch
from muniment.sql.types import Kind, PredefinedType

__all__ = ["Batches", "Fitter", "Misfit"]

_ANY = rb"[^\xff\xfd]*+"
_DAY, _CLOCK = rb"[0-9]{4}-[0-9]{2}-[0-9]{2}", rb"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]++)?+"
_ZONE = rb"(?:Z|[+-][0-9]{2}:[0-9]{2})?+"  # other writers leave it there
_ANY_DAY = rb"-?[0-9]{4,6}-[0-9]{2}-[0-9]{2}"

# What nearly all values look like: SQLite keeps each as the value that it is.
_USUAL = {
    Kind.INTEGER: rb"-?+[0-9]{1,15}+",
    Kind.DECIMAL: rb"-?+[0-9]{1,9}+(?:\.[0-9]{1,6}+)?+",
    Kind.FLOAT: rb"-?+[0-9]{1,40}+(?:\.[0-9]{1,40}+)?+(?:[eE][+-]?[0-9]{1,2}+)?+",
    Kind.BOOLEAN: rb"(?:true|false)",
    Kind.DATE: _DAY,
    Kind.TIME: _CLOCK,
    Kind.TIMESTAMP: _DAY + rb"T" + _CLOCK,
    Kind.INTERVAL: rb"[+-]?P[0-9T][0-9A-Z.]*+",
}
# What else they may look like.
_ALLOWED = {
    Kind.BOOLEAN: rb"true|false|[01]",
    Kind.DATE: _ANY_DAY + _ZONE,
    Kind.TIME: _CLOCK + _ZONE,
    Kind.TIMESTAMP: _ANY_DAY + rb"T" + _CLOCK + _ZONE,
    Kind.INTERVAL: _USUAL[Kind.INTERVAL],
}
_DIGITS = rb"[+-]?+[0-9]++(?:\.[0-9]*+)?+"
# Text that no column of numbers takes for a number.
_NO_NUMBER = rb"(?![0-9+\-.\s])" + _ANY
_NUMERIC = {"INTEGER", "NUMERIC", "REAL"}
_NUMERAL = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that is not of its column's type: the row counts from the start of the piece."""

    row: int
    column: int
    text: str
    kept: bool = False  # as the text that it is


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of a part, as they are, and the first value that is not of its type.

    If there is one that SQLite would change, it is that.
    """

    batches: tuple[Batch, ...]
    rows: int
    misfit: Misfit | None = None


@dataclass(frozen=True)
class Fitter:
    """Looks at the rows of a table; runs in workers."""

    types: tuple[PredefinedType | None, ...]  # None for complex values
    declared: tuple[str, ...]  # as SQLite has the columns
    filled: frozenset[int] = frozenset()  # those in which NULL is unusual

    def __call__(self, batches: Iterable[Batch]) -> Batches:
        """Return the batches; SQLite takes them row by row anyway."""
        kept, rows, misfit = [], 0, None
        for batch in batches:
            if (misfit is None or misfit.kept) and self._usual.fullmatch(batch.data) is None:
                misfit = self._first_misfit(batch, rows, misfit)
            kept.append(batch)
            rows += batch.rows
        return Batches(tuple(kept), rows, misfit)

    @cached_property
    def _usual(self) -> re.Pattern[bytes]:
        forms = map(self._form, range(len(self.types)))
        cells = (f if k in self.filled else rb"(?:" + f + rb"|\xfe)" for k, f in enumerate(forms))
        return re.compile(rb"(?:" + rb"\xff".join(cells) + rb"\xfd)*+")

    @cached_property
    def _db(self) -> Any:
        return apsw.Connection(":memory:")

    def _form(self, k: int) -> bytes:
        type_ = self.types[k]
        if type_ is None:
            return _ANY
        numeric = affinity_of(self.declared[k]) in _NUMERIC
        if type_.kind is Kind.TEXT and numeric:
            return _NO_NUMBER
        if type_.kind is Kind.DECIMAL and not numeric:
            return _DIGITS
        return _USUAL.get(type_.kind, _ANY)

    def _first_misfit(self, batch: Batch, before: int, known: Misfit | None) -> Misfit | None:
        """The first value that SQLite would change, or else the first one that it would not."""
        for number, row in enumerate(batch.data.split(ROW)[:-1], before + 1):
            for k, cell in enumerate(row.split(CELL)):
                type_ = self.types[k]
                if type_ is None or cell == NULL or cell.startswith(REF):
                    continue
                text = cell.decode("utf-8", "surrogatepass")
                affinity = affinity_of(self.declared[k])
                if not self._fits(text, type_, affinity):
                    found = Misfit(number, k, text, _stays_text(text, type_, affinity))
                    if not found.kept:
                        return found
                    known = known or found
        return known

    def _fits(self, text: str, type_: PredefinedType, affinity: str) -> bool:
        """Whether SQLite keeps a value of this type as that value."""
        match type_.kind:
            case Kind.INTEGER:
                return _is(_WHOLE, text) and -(2**63) <= int(text) < 2**63 and (
                    affinity != "REAL" or int(float(text)) == int(text)
                )  # fmt: skip
            case Kind.DECIMAL:
                return _is(_NUMERAL, text) and self._is_same_number(text, affinity)
            case Kind.FLOAT:
                return text in _BEYOND or (_is(_NUMERAL, text) and not isinf(float(text)))
            case Kind.TEXT:
                numeral = affinity in _NUMERIC and _is(_NUMERAL, text)
                return not numeral or self._kept(text, affinity) == text
        form = _ALLOWED.get(type_.kind, _ANY)
        return re.fullmatch(form, text.encode("utf-8", "surrogatepass")) is not None

    def _is_same_number(self, text: str, affinity: str) -> bool:
        """Whether a number of many digits is one of SQLite's own."""
        digits = sum(map(str.isdigit, text))
        if affinity not in _NUMERIC or (digits <= 15 and "e" not in text.lower()):
            return True  # all digits are kept
        try:
            kept, wanted = self._kept(text, affinity), Decimal(text.strip())
            # A number with a point is printed with fewer digits than it has.
            return Decimal(kept) == wanted or ("." in kept and Decimal(float(kept)) == wanted)
        except InvalidOperation:
            return False

    def _kept(self, text: str, affinity: str) -> str:
        """What SQLite prints of a text that became a number."""
        kind = "REAL" if affinity == "REAL" else "NUMERIC"
        ((kept,),) = self._db.execute(f"SELECT CAST(CAST(? AS {kind}) AS TEXT)", (text,)).fetchall()
        return str(kept)


_BEYOND = ("INF", "-INF", "NaN")


def _stays_text(text: str, type_: PredefinedType, affinity: str) -> bool:
    """Whether SQLite, and what makes values for it, leave a text alone that is of another type."""
    if type_.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT):
        return affinity in _NUMERIC and not _is(_NUMERAL, text)
    alone = type_.kind in (Kind.DATE, Kind.TIME, Kind.INTERVAL)
    return alone and not (affinity in _NUMERIC and _is(_NUMERAL, text))


def _is(form: re.Pattern[str], text: str) -> bool:
    return text.isascii() and form.fullmatch(text) is not None
