"""What the book of names gives and takes: blocks of new names, bindings, resolutions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from muniment.identifiers.pdi import Pdi

__all__ = ["Assertion", "Binding", "Block", "NewBinding", "Resolution", "Series"]


@dataclass(frozen=True, slots=True)
class Block(Sequence[Pdi]):
    """Names that were minted together: serials of one day, all of version 1."""

    series: str
    day: int
    first: int
    size: int
    format: str

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Pdi: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Pdi]: ...
    def __getitem__(self, index: int | slice) -> Pdi | Sequence[Pdi]:
        numbers = range(self.first, self.first + self.size)[index]
        if isinstance(numbers, int):
            return self._pdi(numbers)
        return [self._pdi(number) for number in numbers]

    def _pdi(self, number: int) -> Pdi:
        day = f"{self.day:08d}"
        return Pdi(self.series, day[:4], day[4:6], day[6:], str(number), self.format, 1)

    def texts(self) -> Iterator[str]:
        """Yield the names as texts, which is quicker than making values of them."""
        day = f"{self.day:08d}"
        stem = f"pdi://{self.series}/{day[:4]}/{day[4:6]}/{day[6:]}/"
        tail = f".{self.format}.1"
        numbers = range(self.first, self.first + self.size)
        return (f"{stem}{number}{tail}" for number in numbers)


@dataclass(frozen=True, slots=True)
class Series:
    """A document series as this book knows it: open, closed, or delegated to others."""

    name: str
    steward: str
    state: str = "open"
    title: str = ""
    mandates: tuple[str, ...] = ()
    intervals: tuple[tuple[int, int, str], ...] = ()  # first day, last day, resolver

    def resolver(self, day: int) -> str | None:
        """Return who resolves the names of a day, if it is not this book."""
        found = None
        for first, last, resolver in self.intervals:
            if first <= day <= last:
                found = resolver or None
        return found


@dataclass(frozen=True, slots=True)
class NewBinding:
    """Octets to be bound to a name; without a version, the rules of versions decide it."""

    pdi: Pdi
    digest: bytes
    length: int
    location: str


@dataclass(frozen=True, slots=True)
class Binding:
    """The octets that a version of a document has in a format, and where they lie."""

    pdi: Pdi
    digest: bytes
    length: int
    location: str
    at: str

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "pdi": str(self.pdi),
            "media_type": self.pdi.media_type,
            "sha256": self.digest.hex(),
            "length": self.length,
            "location": self.location,
            "bound": self.at,
        }


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a name stands for.

    ``status``: bound; minted, if nothing was bound to it yet; withdrawn, with the reason;
    elsewhere, with the resolver to ask; pattern; unknown.
    """

    asked: Pdi
    status: str
    binding: Binding | None = None
    renditions: tuple[Binding, ...] = ()
    latest: int | None = None
    resolver: str | None = None
    reason: dict[str, Any] | None = None
    remarks: tuple[str, ...] = ()

    @property
    def pdi(self) -> Pdi | None:
        """The name with format and version, and the fragment or citation that was asked for."""
        if self.binding is None:
            return None
        asked = self.asked
        return self.binding.pdi._replace(fragment=asked.fragment, citation=asked.citation)

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "asked": str(self.asked),
            "status": self.status,
            "pdi": None if self.pdi is None else str(self.pdi),
            "binding": None if self.binding is None else self.binding.as_json(),
            "renditions": [each.as_json() for each in self.renditions],
            "latest_version": self.latest,
            "resolver": self.resolver,
            "reason": self.reason,
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True, slots=True)
class Assertion:
    """A statement about a name: who said what about it, and when."""

    subject: str
    predicate: str
    value: Any
    actor: str
    at: str
    line: int = field(default=0, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "subject": self.subject,
            "predicate": self.predicate,
            "value": self.value,
            "by": self.actor,
            "at": self.at,
            "line": self.line,
        }
