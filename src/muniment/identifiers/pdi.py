"""Persistent Document Identifiers as values (draft-mallery-urn-pdi-00, with its errata read as
``docs/decisions.md`` says).

    pdi://SERIES/YYYY/MM/DD/UNIQUE-ID[.FORMAT[.VERSION]][#FRAGMENT | @POSITION=PDI]

All parts are kept in canonical spelling, so two values are equal if and only if the names are
lexically equal, and ``str`` gives the canonical form.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Literal, NamedTuple

from muniment.identifiers.formats import media_type
from muniment.identifiers.fragments import Fragment, Position, format_position, functional_fragment

__all__ = ["WILDCARD", "Citation", "Pdi", "Version"]

WILDCARD: Literal["*"] = "*"
Version = int | Literal["*"] | None


class Pdi(NamedTuple):
    """A PDI. A named tuple, because millions are made at a time."""

    series: str
    year: str
    month: str
    day: str
    unique_id: str
    format: str | None = None
    version: Version = None
    fragment: Fragment | None = None
    citation: Citation | None = None

    def __str__(self) -> str:
        text = f"pdi://{self.series}/{self.year}/{self.month}/{self.day}/{self.specifier}"
        if self.fragment is not None:
            return f"{text}#{self.fragment}"
        return text if self.citation is None else f"{text}@{self.citation}"

    @property
    def specifier(self) -> str:
        """The last part of the path: unique id, format, version."""
        if self.format is None:
            return self.unique_id
        if self.version is None:
            return f"{self.unique_id}.{self.format}"
        return f"{self.unique_id}.{self.format}.{self.version}"

    @property
    def date(self) -> date | None:
        """The day of minting, if it is not a pattern."""
        if WILDCARD in (self.year, self.month, self.day):
            return None
        return date(int(self.year), int(self.month), int(self.day))

    @property
    def country(self) -> str:
        """The country of the issuing authority."""
        return self.series.rpartition(".")[2]

    @property
    def media_type(self) -> str | None:
        """What the format token stands for."""
        return media_type(self.format)

    @property
    def wildcards(self) -> tuple[str, ...]:
        """The names of the parts that are wildcards."""
        if WILDCARD not in self[1:7]:
            return ()
        parts = ("year", "month", "day", "unique_id", "format", "version")
        return tuple(part for part in parts if getattr(self, part) == WILDCARD)

    @property
    def generic(self) -> Pdi:
        """The resource itself: without format, version, fragment and citation."""
        return Pdi(*self[:5])

    @property
    def document(self) -> Pdi:
        """The document: without fragment and citation."""
        return Pdi(*self[:7])

    @property
    def sort_key(self) -> tuple[str, str, str, str, bool, int, str, str, int]:
        """A key that sorts by series, day and, inside a day, serials as numbers (I-36)."""
        serial = self.unique_id.isdigit()
        number = int(self.unique_id) if serial else 0
        version = self.version if isinstance(self.version, int) else 0
        day = (self.series, self.year, self.month, self.day)
        return (*day, not serial, number, self.unique_id, self.format or "", version)

    @property
    def functional_key(self) -> str:
        """The canonical form with all defaults filled in, by which assertions are looked up."""
        return str(self._functional())

    def _functional(self) -> Pdi:
        if self.citation is not None:
            cited = self.citation.cited._functional()
            return self._replace(citation=Citation(self.citation.position, cited))
        if self.fragment is None:
            return self
        fragment = functional_fragment(self.fragment, self.media_type)
        return self._replace(fragment=fragment, version=self.version or 1)


@dataclass(frozen=True)
class Citation:
    """The appearance of a cited PDI at a position of the citing document (draft 3.5)."""

    position: Position
    cited: Pdi

    def __str__(self) -> str:
        return f"{format_position(self.position)}={self.cited}"

    @cached_property
    def depth(self) -> int:
        """How many citations are nested here."""
        inner = self.cited.citation
        return 1 if inner is None else 1 + inner.depth
