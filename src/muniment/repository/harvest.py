"""The catalogue in the order of harvesting: by date, and within a second by arrival.

The number of a record holds its file and its place in it. Files are numbered as they come, so what
arrives later has a higher number; a list that ends at a number stays what it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muniment.repository.catalogue import Catalogue, File, Found

__all__ = [
    "Wanted",
    "count",
    "earliest",
    "formats",
    "last",
    "number_of",
    "secret",
    "select",
    "series",
]

_new = tuple.__new__
_BITS = 32  # of a record's number within its file
_COLUMNS = "identifier, date, offset, length, kind, sha256, pdi, size, streams, namespaces"
_TOKEN = "rtrim(pdi, '0123456789')"  # a PDI up to the dot before its version
_SERIES = "substr(pdi, 7, instr(substr(pdi, 7), '/') - 1)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records: both dates are included; ``file`` is a tape, ``format`` the token of a PDI.

    ``series`` stands for itself and all below it; ``form`` is the namespace of a record that is
    neither DIDL nor METS, ``collection`` what a record from elsewhere says it is part of.
    """

    since: str = ""
    until: str = "9999"
    kinds: tuple[str, ...] = ("object", "record")
    file: int = -1
    format: str = ""
    series: str = ""
    form: str = ""
    collection: str = ""
    collected: bool = False  # in any series or collection

    def sql(self, date: str) -> tuple[str, tuple[Any, ...]]:
        """Return the condition and its values; ``date`` is the column that the dates are of.

        Where a list begins is not in it: that is one comparison with ``since`` or a later place,
        so that the index leads there.
        """
        kinds = ", ".join("?" * len(self.kinds))
        text = f"{date} <= ? AND kind IN ({kinds})"
        values: list[Any] = [self.until, *self.kinds]
        if self.file >= 0:
            text += " AND file = ?"
            values.append(self.file)
        if self.format:
            tail = f".{self.format}."
            text += f" AND substr({_TOKEN}, ?) = ?"
            values += [-len(tail), tail]
        if self.series:
            text += f" AND ({_SERIES} = ? OR substr({_SERIES}, ?) = ?)"
            values += [self.series, -len(self.series) - 1, f".{self.series}"]
        for kind, name in (("form", self.form), ("collection", self.collection)):
            if name:
                text += " AND (file, number) IN (SELECT file, number FROM membership "
                text += "WHERE kind = ? AND name = ?)"
                values += [kind, name]
        if self.collected:
            text += " AND (pdi <> '' OR (file, number) IN (SELECT file, number FROM membership "
            text += "WHERE kind = 'collection'))"
        return text, tuple(values)


def number_of(found: Found) -> int:
    """The place of a record in the order of arrival."""
    return found.file << _BITS | found.number


def _split(number: int) -> tuple[int, int]:
    return number >> _BITS, number & (1 << _BITS) - 1


# A record lies in the order at its own date, or at that of a later decision about it.
_Source = tuple[str, str, str]  # the column of the date, those of the place, and the tables
_PLAIN: tuple[_Source, ...] = (("date", "file, number", "record WHERE true"),)
_SOURCES: tuple[_Source, ...] = (
    ("date", "file, number", "record WHERE NOT EXISTS (SELECT 1 FROM stamp WHERE of_file = file "
     "AND of_number = number)"),
    ("moment", "of_file, of_number",
     "stamp CROSS JOIN record ON file = of_file AND number = of_number WHERE true"),
)  # fmt: skip


def _sources(catalogue: Catalogue) -> tuple[_Source, ...]:
    return _SOURCES if any(catalogue.answer("SELECT 1 FROM stamp LIMIT 1")) else _PLAIN


def select(
    catalogue: Catalogue, wanted: Wanted, last: int, after: tuple[str, int] | None, limit: int
) -> Iterator[tuple[str, Found]]:
    """Yield date and record, behind a date and number and up to the number ``last``."""
    start = (after[0], *_split(after[1])) if after else (wanted.since, -1, -1)
    parts, values = [], []
    for date, place, source in _sources(catalogue):
        condition, given = wanted.sql(date)
        parts.append(
            f"SELECT {date}, {place}, {_COLUMNS} FROM {source} AND {condition} "
            f"AND ({place}) <= (?, ?) AND ({date}, {place}) > (?, ?, ?)"
        )
        values += [*given, *_split(last), *start]
    question = f"{' UNION ALL '.join(parts)} ORDER BY 1, 2, 3 LIMIT ?"
    rows = catalogue.answer(question, (*values, limit))
    return ((row[0], _new(Found, row[1:])) for row in rows)


def count(catalogue: Catalogue, wanted: Wanted, last: int) -> int:
    """How many records a list has."""
    found = 0
    for date, _, source in _sources(catalogue):
        condition, values = wanted.sql(date)
        question = f"SELECT count(*) FROM {source} AND {condition} AND (file, number) <= (?, ?)"
        given = *values, *_split(last), wanted.since
        found += int(next(catalogue.answer(f"{question} AND {date} >= ?", given))[0])
    return found


def last(catalogue: Catalogue, file: int = -1) -> int:
    """The number of the record that came last, of a tape or of all."""
    question = "SELECT file, number FROM record ORDER BY file DESC, number DESC LIMIT 1"
    values: tuple[Any, ...] = ()
    if file >= 0:
        question = "SELECT file, number FROM record WHERE file = ? ORDER BY number DESC LIMIT 1"
        values = (file,)
    for found, number in catalogue.answer(question, values):
        return int(found) << _BITS | int(number)
    return 0


def earliest(catalogue: Catalogue, file: int = -1) -> str | None:
    """The date of the oldest record."""
    question = "SELECT min(date) FROM record WHERE ? IN (-1, file)"
    found: str | None = next(catalogue.answer(question, (file,)))[0]
    return found


def formats(catalogue: Catalogue, file: int = -1) -> list[str]:
    """The format tokens of all PDIs."""
    rows = catalogue.answer(
        f"SELECT DISTINCT replace({_TOKEN}, rtrim(rtrim({_TOKEN}, '.'), replace(rtrim({_TOKEN}, "
        "'.'), '.', '')), '') FROM record WHERE pdi <> '' AND ? IN (-1, file)",
        (file,),
    )
    return sorted(token.strip(".") for (token,) in rows if token.strip("."))


def tapes(catalogue: Catalogue) -> list[File]:
    """The tapes that hold more than the store's own logs and receipts."""
    question = "SELECT 1 FROM record WHERE file = ? AND kind IN ('object', 'record') LIMIT 1"
    return [t for t in catalogue.files("tape") if any(catalogue.answer(question, (t.id,)))]


def series(catalogue: Catalogue, file: int = -1) -> list[str]:
    """The document series of all PDIs."""
    question = f"SELECT DISTINCT {_SERIES} FROM record WHERE pdi <> '' AND ? IN (-1, file)"
    return sorted(str(name) for (name,) in catalogue.answer(question, (file,)) if name)


def secret(catalogue: Catalogue) -> bytes:
    """What this catalogue signs with. A new catalogue has new numbers, so a new secret too."""
    known = catalogue.state("secret")
    if known is None:
        with catalogue.change():
            known = catalogue.state("secret") or os.urandom(32).hex()
            catalogue.set_state("secret", known)
    return bytes.fromhex(str(known))
