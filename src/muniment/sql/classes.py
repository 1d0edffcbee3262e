"""What tells the values of an SQLite column apart that is text in the archive.

SQLite lets a column hold numbers, texts and bytes side by side. In the archive they are ``1``,
``1.5``, ``one`` and ``X'00FF'``; text that is not Unicode is ``CAST(X'FF' AS TEXT)``. A note says
which classes there are, so that each value can come back as what it was. Where a text of a column
looks like another of its values, all texts of that column stand in quotation marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from muniment.sql.model import Column
from muniment.sql.original import notes_in, with_note
from muniment.sql.types import Kind, PredefinedType

__all__ = [
    "Broken", "Classes", "both_classes", "classes_in", "has_pair", "has_surrogates", "with_classes",
]  # fmt: skip

BROKEN = "undecodable text"
_ALL = ("integer", "real", "text", BROKEN, "blob")
_CLASS_OF_KIND = {
    Kind.INTEGER: "integer", Kind.FLOAT: "real", Kind.TEXT: "text", Kind.BINARY: "blob"
}  # fmt: skip
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_REAL = re.compile(r"-?[0-9]+\.[0-9]+(?:e[+-]?[0-9]+)?|-?Inf")
_BYTES = re.compile(r"X'((?:[0-9A-F]{2})*)'")
_CAST = re.compile(r"CAST\(X'((?:[0-9A-F]{2})*)' AS TEXT\)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_NOTE = re.compile(
    r"SQLite holds (?P<classes>no|[a-z, ]+) values here"
    r"(?P<quoted>; its texts stand in quotation marks)?\."
)


class Broken(bytes):
    """The bytes of a text that is not Unicode."""


Value = int | float | str | bytes | Broken


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of a column's values, and whether its texts stand in quotation marks."""

    names: frozenset[str]
    quoted: bool = False

    def __str__(self) -> str:
        *some, last = [name for name in _ALL if name in self.names] or ["no"]
        return f"{', '.join(some)} and {last}" if some else last

    @property
    def has_broken(self) -> bool:
        """Whether there are texts that are not Unicode."""
        return BROKEN in self.names

    def value(self, text: str) -> Value:
        """Return the value that a text of the archive stands for."""
        if self.quoted and text.startswith("'"):
            return text[1:-1]
        if "integer" in self.names and _WHOLE.fullmatch(text) and -(2**63) <= int(text) < 2**63:
            return int(text)
        if "real" in self.names and _REAL.fullmatch(text):
            return float(text)
        if "blob" in self.names and (found := _BYTES.fullmatch(text)):
            return bytes.fromhex(found[1])
        if BROKEN in self.names and (found := _CAST.fullmatch(text)):
            return Broken.fromhex(found[1])
        return text

    def text(self, class_: str, value: Value) -> str:
        """Return what stands for a value; a real comes as the text that SQLite prints."""
        if not isinstance(value, bytes):
            return f"'{value}'" if self.quoted and class_ == "text" else str(value)
        literal = f"X'{value.hex().upper()}'"
        return f"CAST({literal} AS TEXT)" if class_ == "text" else literal

    def in_marks(self, cell: bytes) -> bytes:
        """Return a cell as a column has it whose texts stand in quotation marks."""
        is_text = isinstance(self.value(cell.decode("utf-8", "surrogatepass")), str)
        return b"'%b'" % cell if is_text and not self.quoted else cell

    def among(self, texts: Iterable[bytes], encoding: str) -> Classes:
        """Return the classes of a column with these texts."""
        names, quoted = set(self.names), False
        misleading = Classes(frozenset({*names, BROKEN}))
        for data in texts:
            try:
                text = data.decode(encoding, "surrogatepass")
            except UnicodeDecodeError:
                names.add(BROKEN)
            else:
                if has_surrogates(text):
                    names.add(BROKEN)
                quoted = quoted or misleading.value(text) is not text
        return Classes(frozenset(names), quoted)


def has_surrogates(text: str) -> bool:
    """Whether a text has halves of characters, which no file of text can hold."""
    return _SURROGATE.search(text) is not None


def has_pair(text: str) -> bool:
    """Whether a text has both halves of a character, which an archive would make one of."""
    return _PAIR.search(text) is not None


def with_classes(description: str | None, classes: Classes) -> str:
    """Return a column's description with the note that ``classes_in`` finds."""
    quoted = "; its texts stand in quotation marks" if classes.quoted else ""
    return with_note(description, f"SQLite holds {classes} values here{quoted}.")


def classes_in(description: str | None) -> Classes | None:
    """Return what a column's description says of the classes of its values, if anything.

    >>> str(classes_in(with_classes("Heights.", Classes(frozenset({"integer", "blob"})))))
    'integer and blob'
    """
    for note in notes_in(description):
        if match := _NOTE.fullmatch(note):
            names = set(re.split(", | and ", match["classes"])).intersection(_ALL)
            return Classes(frozenset(names), bool(match["quoted"]))
    return None


def both_classes(x: Column, y: Column) -> tuple[Classes, Classes] | None:
    """Return the classes of two columns of SQLite, if one has a note on them.

    Of the other one, the type may tell.
    """
    a, b = classes_in(x.description), classes_in(y.description)
    if a is None and b is None:
        return None
    a, b = a or _class_of_type(x), b or _class_of_type(y)
    return (a, b) if a and b else None


def _class_of_type(column: Column) -> Classes | None:
    kind = column.type.kind if isinstance(column.type, PredefinedType) else None
    name = _CLASS_OF_KIND.get(kind) if kind else None
    return Classes(frozenset({name})) if name else None
