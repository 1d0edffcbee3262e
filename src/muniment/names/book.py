"""The book of names of a folder: who may mint what, and one place for every operation.

The work is done in ``minting``, ``binding``, ``resolution`` and ``assertions``; here is what they
share: the journal, the index, the clock and the series.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from muniment.errors import NameRefused, NotFound, UsageError
from muniment.files import refuse_existing
from muniment.identifiers import Pdi, Profile, parse_pdi, parse_series
from muniment.identifiers.countries import COUNTRIES
from muniment.identifiers.formats import TOKENS
from muniment.identifiers.fragments import SCHEMES, Scheme
from muniment.identifiers.parse import parse_canonical
from muniment.identifiers.registered import registered_scheme
from muniment.names import assertions, binding, minting, resolution
from muniment.names.heads import Heads
from muniment.names.index import Index
from muniment.names.journal import FIRST, Journal, Mark, State, utc_now
from muniment.names.queue import Queue
from muniment.names.records import RULES, apply
from muniment.names.values import Assertion, Binding, Block, NewBinding, Resolution, Series

__all__ = ["Names"]

Record = dict[str, Any]
T = TypeVar("T")


class Names:
    """A book of names. Threads may share one; processes open their own."""

    def __init__(self, folder: Path, clock: Callable[[], datetime] = utc_now) -> None:
        """Open the book in a folder, as ``open`` does."""
        path = folder / "names.jsonl"
        if not path.is_file():
            raise UsageError(
                f"{folder} holds no names; make it with: muniment registry init {folder}"
            )
        self.folder, self.clock = folder, clock
        self.fetch: Callable[[Binding], Path] | None = None  # octets that are kept elsewhere
        self._local = threading.local()
        self.journal = Journal(path, self._known)
        self.heads = Heads(folder / "heads")
        self._derived: dict[Callable[[Index], Any], tuple[tuple[bytes, int], Any]] = {}
        self.queue = Queue(folder / "names.queue")
        self._rules_lock = threading.Lock()
        self.wishes: dict[tuple[str, int, str, str], minting.Wish] = {}

    @classmethod
    def create(
        cls, folder: Path, root: str = "example", clock: Callable[[], datetime] = utc_now
    ) -> Names:
        """Make a new book; ``root`` is the URN namespace below which its names are published."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "names.jsonl"
        refuse_existing(path)
        Journal.create(path)
        names = cls(folder, clock)
        names.write([{"kind": "book", "subject": root.lower(), "root": root.lower()}])
        return names

    @classmethod
    def open(cls, folder: Path, clock: Callable[[], datetime] = utc_now) -> Names:
        """Open the book in a folder."""
        return cls(folder, clock)

    def close(self) -> None:
        """Close the files of this thread and those that all share."""
        if (index := getattr(self._local, "index", None)) is not None:
            index.close()
            del self._local.index, self._local.process
        self.queue.close()
        self.heads.close()
        self.journal.close()

    def __enter__(self) -> Names:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What the parts share

    @property
    def index(self) -> Index:
        """The index of this thread, not necessarily up to date."""
        local = self._local
        if getattr(local, "process", None) != os.getpid():
            local.index = Index(self.folder / "names.index", apply)
            local.process = os.getpid()
        found: Index = local.index
        return found

    def _known(self) -> Mark:
        return self.index.mark() if (self.folder / "names.index").exists() else FIRST

    def current(self, state: State | None = None) -> Index:
        """The index, with everything in it that the journal has."""
        state = state or self.journal.state()
        if state is None:
            with self.journal.turn() as state:
                pass
        index = self.index
        index.catch_up(self.journal, state)
        return index

    @property
    def is_current(self) -> bool:
        """Whether the index of this thread has all that the journal has: nobody is waited for."""
        state = self.journal.state()
        return state is not None and self.index.is_at(state.end)

    def stamp(self) -> str:
        """The present as records have it."""
        return self.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def write(self, records: Sequence[Record]) -> None:
        """Append records and return when they are on the disk."""
        with self.journal.turn() as state:
            after = self.append(state, records)
        self.journal.sync(after.end)

    def append(self, state: State, records: Sequence[Record]) -> State:
        """Append records during a turn, each with the time."""
        at = self.stamp()
        rules = any(record["kind"] in RULES for record in records)
        stamped = [{"at": at, **record} for record in records]
        return self.journal.append(state, stamped, rules)

    def read(self, name: Pdi | str, profile: Profile = Profile.READ) -> Pdi:
        """Return a name as a value."""
        if isinstance(name, Pdi):
            return name
        known = parse_canonical(name) if profile is Profile.READ else None
        return known or parse_pdi(name, profile, self.schemes)

    # The rules: root, series, mandates, intervals, tokens

    def rules(self, state: State | None = None) -> _Rules:
        """Return the rules as they are now."""
        return self.derived(_Rules.read, state)

    def derived(self, read: Callable[[Index], T], state: State | None = None) -> T:
        """Return what a function reads from the index; again only when a rule was changed."""
        state = state or self.journal.state()
        with self._rules_lock:
            if state is None:
                return read(self.current(state))
            version = state.generation, state.epoch
            known = self._derived.get(read)
            if known is None or known[0] != version:
                known = self._derived[read] = version, read(self.current(state))
            found: T = known[1]
            return found

    @property
    def root(self) -> str:
        """The URN namespace below which the names are published."""
        return self.rules().root

    def series(self, name: str) -> Series:
        """Return a series of this book, or raise NotFound."""
        found = self.rules().series.get(name)
        if found is None:
            raise NotFound(
                f"{name} is not a series of this book; add it: muniment registry series {name}"
            )
        return found

    def all_series(self) -> list[Series]:
        """Return every series that was ever added."""
        return list(self.rules().series.values())

    def add_series(self, name: str, steward: str = "", title: str = "", by: str = "") -> Series:
        """Take a series into the book, so that names can be minted in it."""
        name = parse_series(name)
        if name.rpartition(".")[2] not in COUNTRIES:
            raise NameRefused(f"{name} does not end with a country code of ISO 3166", 405)
        with self.journal.turn() as state:
            known = self.rules(state).series
            if name in known:
                raise NameRefused(f"the series {name} is in the book already")
            owner = steward or _inherited(name, known)
            record = {"series": name, "steward": owner, "title": title, "state": "open", "by": by}
            after = self.append(state, [{"kind": "series", **record}])
        self.journal.sync(after.end)
        return self.series(name)

    def change_series(self, name: str, state: str, reason: str, by: str, steward: str = "") -> None:
        """Close a series, hand it on to another steward, or open it again; its names all stay."""
        series = self.series(parse_series(name))
        record = {
            "series": series.name,
            "steward": steward or series.steward,
            "title": series.title,
        }
        self.write([{"kind": "series", **record, "state": state, "reason": reason, "by": by}])

    @property
    def schemes(self) -> Mapping[str, Scheme]:
        """The fragment schemes that are known here: those of the draft, and registered ones."""
        return self.rules().schemes

    def give_mandate(self, name: str, agent: str, document: str, by: str) -> None:
        """Record that somebody else may mint in a series on behalf of its steward."""
        series = self.series(parse_series(name))
        record = {"series": series.name, "agent": agent, "document": document, "by": by}
        self.write([{"kind": "mandate", **record}])

    def delegate_interval(self, name: str, first: int, last: int, resolver: str, by: str) -> None:
        """Record who resolves the names of some days (YYYYMMDD); no resolver takes them back."""
        series = self.series(parse_series(name))
        if first > last:
            raise UsageError(f"the interval ends ({last}) before it begins ({first})")
        record = {"series": series.name, "first": first, "last": last, "resolver": resolver}
        self.write([{"kind": "interval", **record, "by": by}])

    # The operations

    def mint(self, series: str, count: int = 1, format: str = "text", by: str = "") -> Block:
        """Give new names, serials of today; they are on the disk when this returns."""
        return minting.mint(self, parse_series(series), count, format, by)

    def mint_name(
        self,
        series: str,
        unique_id: str,
        format: str,
        foreign: tuple[str, str] | None = None,
        by: str = "",
    ) -> Pdi:
        """Give a name with a mnemonic id, or one that holds a foreign identifier (kind, value)."""
        return minting.mint_name(self, parse_series(series), unique_id, format, foreign, by)

    def token(self, format: str) -> str:
        """Return the format token of a media type; what it means stays so from then on."""
        return minting.settle_token(self, format)

    def bind(
        self,
        pdi: Pdi | str,
        digest: bytes,
        length: int,
        location: str,
        source: str | None = None,
        new_version: bool = False,
        by: str = "",
    ) -> Pdi:
        """Bind octets to a minted name and return it with its version.

        With a version in the name, exactly that one; without, a changed document becomes a new
        version and a new format joins the latest one. ``source`` is the URI of an indirect
        binding, whose kept copy lies at ``location``.
        """
        new = NewBinding(self.read(pdi), digest, length, location)
        return binding.bind(self, [new], by, new_version, source)[0]

    def bind_many(self, bindings: Sequence[NewBinding], by: str = "") -> list[Pdi]:
        """Bind many at once: all of them, or none if one is refused."""
        return binding.bind(self, bindings, by)

    def locate(self, pdi: Pdi | str, location: str, source: str | None = None) -> None:
        """Record another place where the octets of a binding lie."""
        binding.locate(self, self.read(pdi), location, source)

    def end_source(self, pdi: Pdi | str, source: str, found: str, by: str = "") -> None:
        """Record that the URI of an indirect binding gives other octets now; the copy stays."""
        binding.end_source(self, self.read(pdi), source, found, by)

    def withdraw(self, pdi: Pdi | str, reason: str, by: str, law: str = "") -> None:
        """Put a tombstone where a document was: nothing is deleted, and the name stays."""
        binding.withdraw(self, self.read(pdi), reason, by, law)

    def resolve(self, pdi: Pdi | str) -> Resolution:
        """Say what a name stands for."""
        return resolution.resolve(self, self.read(pdi))

    def bindings(self, pdi: Pdi | str) -> list[Binding]:
        """Return all versions of a document in all formats that are not withdrawn."""
        return resolution.all_bindings(self, self.read(pdi))

    def look_up(self, pdis: Iterable[Pdi]) -> Iterator[Binding | None]:
        """Yield the binding of each fully qualified name, or None; for many names at a time."""
        return resolution.look_up(self, pdis)

    def listing(self, pattern: Pdi | str, after: Pdi | None = None) -> Iterator[Pdi]:
        """Yield the names that a pattern stands for, in the order of days and serials."""
        return resolution.listing(self, self.read(pattern, Profile.QUERY), after)

    def find_archive(self, digest: bytes) -> Pdi | None:
        """Return the name of a SIARD archive by the SHA-256 of its octets, if it has one."""
        return resolution.find_archive(self, digest)

    def find_foreign(self, kind: str, value: str) -> list[Pdi]:
        """Return the names that hold a foreign identifier."""
        return resolution.find_foreign(self, kind, value)

    def say(self, subject: str, predicate: str, value: Any, by: str) -> Assertion:
        """Assert something about a name, a fragment, a citation, a series or an interval."""
        return assertions.say(self, subject, predicate, value, by)

    def assertions(
        self, subject: str | None = None, predicate: str | None = None, inherited: bool = False
    ) -> list[Assertion]:
        """Return what was asserted, the most specific last if inherited ones are wanted."""
        return assertions.find(self, subject, predicate, inherited)

    def assertions_with(self, predicate: str, value: Any) -> list[Assertion]:
        """Return who it was said of that a predicate has a value."""
        return assertions.with_value(self, predicate, value)

    @contextmanager
    def turn(self) -> Iterator[State]:
        """Hold the book against all other writers."""
        with self.journal.turn() as state:
            yield state

    def check(self) -> int:
        """Read the whole journal, check its chain, and return the number of its records."""
        with self.journal.turn() as state:
            end = state.end
        return sum(1 for _ in self.journal.records(FIRST, end.offset))


class _Rules:
    """Root, series and tokens, read from the index."""

    def __init__(self) -> None:
        self.root = "example"
        self.series: dict[str, Series] = {}
        self.tokens: dict[str, str] = dict(TOKENS)
        self.schemes: dict[str, Scheme] = dict(SCHEMES)

    @classmethod
    def read(cls, index: Index) -> _Rules:
        rules = cls()
        for kind in _READING_ORDER:
            for _, record in index.events(kind):
                rules._take(kind, record)
        return rules

    def _take(self, kind: str, record: Record) -> None:
        if kind == "book":
            self.root = record["root"]
        elif kind == "token":
            self.tokens.setdefault(record["subject"], record["media"])
        elif kind == "scheme":
            self.schemes[record["subject"]] = registered_scheme(record["subject"], record["body"])
        elif kind == "series":
            name = record["series"]
            old = self.series.get(name) or Series(name, record["steward"])
            self.series[name] = replace(
                old, steward=record["steward"], state=record["state"], title=record["title"]
            )
        elif record["series"] in self.series:
            old = self.series[record["series"]]
            if kind == "mandate":
                new = replace(old, mandates=(*old.mandates, record["agent"]))
            else:
                interval = (record["first"], record["last"], record["resolver"])
                new = replace(old, intervals=(*old.intervals, interval))
            self.series[old.name] = new


_READING_ORDER = ["book", "token", "scheme", "series", "mandate", "interval"]


def _inherited(name: str, known: dict[str, Series]) -> str:
    """A subseries has the steward of the nearest series above it, if nobody else is named."""
    while "." in name:
        name = name.partition(".")[2]
        if name in known:
            return known[name].steward
    return ""
