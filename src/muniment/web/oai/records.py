"""What OAI-PMH needs to know of a repository; the store and each of its tapes provide it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from muniment.web.oai.requests import Selection

__all__ = ["About", "Header", "MetadataFormat", "Place", "Record", "Records", "Set"]


@dataclass(frozen=True, slots=True)
class MetadataFormat:
    """A format in which records can be had."""

    prefix: str
    schema: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Set:
    """A set; ``spec`` with colons is a hierarchy."""

    spec: str
    name: str


class Place(NamedTuple):
    """Where a record stands in the order of harvesting: by datestamp, then by arrival."""

    datestamp: datetime
    number: int


class Header(NamedTuple):
    """What is said of a record without its metadata."""

    identifier: str
    place: Place
    sets: tuple[str, ...] = ()
    deleted: bool = False


class Record(NamedTuple):
    """A record: metadata and about are elements in UTF-8 that stand on their own."""

    header: Header
    metadata: bytes
    about: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class About:
    """How a repository introduces itself (4.2)."""

    name: str
    base_url: str
    earliest: datetime
    emails: tuple[str, ...]
    deleted_record: str = "no"
    compressions: tuple[str, ...] = ("gzip", "deflate")
    descriptions: tuple[bytes, ...] = field(default=())


class Records(Protocol):
    """A repository as harvesters see it."""

    @property
    def secret(self) -> bytes:
        """What tokens are signed with: the same after a restart, another in each repository."""
        ...

    @property
    def base_url(self) -> str:
        """The address at which this repository answers."""
        ...

    def about(self) -> About:
        """Introduce the repository."""
        ...

    def formats(self, identifier: str | None = None) -> Sequence[MetadataFormat]:
        """The formats of all records, or of one; NotFound if there is none of this identifier."""
        ...

    def sets(self) -> Sequence[Set]:
        """All sets; an empty sequence if the repository has no hierarchy."""
        ...

    def get(self, identifier: str, prefix: str) -> Record | None:
        """One record; None if it cannot be had in this format, NotFound if it is unknown."""
        ...

    def last(self) -> int:
        """The number of the record that arrived last; a list of many pages ends there."""
        ...

    def count(self, selection: Selection, last: int) -> int:
        """How many records a selection holds, up to the one with number ``last``."""
        ...

    def headers(
        self, selection: Selection, last: int, after: Place | None, limit: int
    ) -> Iterator[Header]:
        """Yield at most ``limit`` headers, in order, that come after a place."""
        ...

    def records(
        self, selection: Selection, last: int, after: Place | None, limit: int
    ) -> Iterator[Record]:
        """The same with metadata, read as they are asked for."""
        ...
