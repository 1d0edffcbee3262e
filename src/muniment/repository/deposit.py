"""Documents that arrive one by one: each is named, written and acknowledged before it is answered.

A tape and a WARC file for each would be many small files, so one session stays open from document
to document. It is sealed after a while without any; whatever it holds by then survives a crash.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from muniment.errors import NameRefused, NotFound
from muniment.identifiers import Pdi
from muniment.names import Binding
from muniment.repository.ingest import Submission
from muniment.repository.naming import unused
from muniment.repository.session import Added, Session
from muniment.repository.store import Store

__all__ = [
    "Condition", "Deposits", "Settle", "check_series", "new_name", "next_version", "rendition",
]  # fmt: skip

_IDLE = 10.0  # seconds without a document after which the files are sealed
_MOST = 2000  # documents in one tape


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold of the latest version (RFC 9110, 13.1): its digests; ``*`` is any."""

    matches: frozenset[str] | None = None
    matches_not: frozenset[str] | None = None

    def check(self, renditions: tuple[Binding, ...]) -> None:
        """Raise NameRefused if it does not hold."""
        digests = {each.digest.hex() for each in renditions}
        wanted, unwanted = self.matches, self.matches_not
        if wanted is not None and not (digests & wanted or (digests and "*" in wanted)):
            raise NameRefused("the latest version is not the one that If-Match names", 412)
        if unwanted is not None and (digests & unwanted or (digests and "*" in unwanted)):
            raise NameRefused("the latest version is one that If-None-Match excludes", 412)


Settle = Callable[[Store], str]


def new_name(series: str, media: str) -> Settle:
    """Give a document a new name in a series."""

    def settle(store: Store) -> str:
        check_series(store, series)
        return unused(store, series, 1, media)[0]

    return settle


def next_version(pdi: Pdi, media: str, condition: Condition) -> Settle:
    """Give a document the next version of a name; the first, if nothing is bound to it yet."""

    def settle(store: Store) -> str:
        renditions, latest = _latest(store, pdi)
        if latest and store.names.resolve(pdi).binding is None:
            raise NotFound(f"{pdi} is not known here; the latest version is {latest}")
        condition.check(renditions)
        token = _token(store, pdi, media)
        return str(pdi.generic._replace(format=token, version=latest + 1))

    return settle


def rendition(pdi: Pdi, media: str, condition: Condition) -> Settle:
    """Give a document the name of another format of the latest version (draft 2.6)."""

    def settle(store: Store) -> str:
        renditions, latest = _latest(store, pdi)
        condition.check(renditions)
        token = _token(store, pdi, media)
        if not latest or pdi.version not in (None, latest):
            raise NameRefused(f"another format is added to the latest version, which is {latest}")
        if any(each.pdi.format == token for each in renditions):
            raise NameRefused(f"{pdi.generic} has a format {token} in version {latest}; it stays")
        return str(pdi.generic._replace(format=token, version=latest))

    return settle


def _latest(store: Store, pdi: Pdi) -> tuple[tuple[Binding, ...], int]:
    """Return the formats of the latest version, and its number."""
    check_series(store, pdi.series)
    found = store.names.resolve(pdi.generic)
    if found.status == "withdrawn":
        raise NameRefused(f"{pdi.generic} was withdrawn; it has no further versions", 410)
    if found.status == "elsewhere":
        raise NameRefused(f"{pdi.generic} is kept by {found.resolver}", 405)
    if found.status == "unknown":
        if store.versions(str(pdi.generic)):
            raise NameRefused(f"{pdi.generic} came from another store, which gives versions", 405)
        raise NotFound(f"{pdi.generic} is not known here")
    if found.status == "minted" and pdi.version not in (None, 1):
        raise NotFound(f"{pdi} is not known here; nothing is bound to its name yet")
    return found.renditions, found.latest or 0


def check_series(store: Store, series: str) -> None:
    known = store.names.rules().series.get(series)
    if known is None:
        raise NameRefused(f"the series {series} is not given here", 405)
    if known.state != "open":
        raise NameRefused(f"the series {series} is {known.state}: it has no new documents", 405)


def _token(store: Store, pdi: Pdi, media: str) -> str:
    token = store.names.token(media)
    if pdi.format is not None and token != pdi.format:
        raise NameRefused(f"the name is of the format {pdi.format}, the document is {media}", 415)
    return token


class Deposits:
    """Writes documents into a store, one after the other, in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "deposits")
        self._store: Store | None = None
        self._session: Session | None = None
        self._last, self._timer = 0.0, threading.Timer(0, lambda: None)
        self._waiting = self._closed = False

    def add(self, submission: Submission, settle: Settle) -> Future[Added]:
        """Add a document; the answer comes when it is on the disk."""
        return self._thread.submit(self._add, submission, settle)

    def close(self) -> None:
        """Finish and seal; nothing can be added afterwards."""
        self._closed = True
        self._timer.cancel()
        self._thread.submit(self._end).result()
        self._thread.shutdown()

    def _opened(self) -> Store:
        if self._store is not None and self._store.catalogue.replaced:
            self._end()
        if self._store is None:
            self._store = Store(self._folder)
        return self._store

    def _add(self, submission: Submission, settle: Settle) -> Added:
        store = self._opened()
        session = self._session = self._session or Session(store)
        try:
            session.add(
                submission.sources, metadata=submission.metadata, facts=submission.facts,
                settle=settle,
            )  # fmt: skip
            session.commit()
        except BaseException:
            self._seal()
            raise
        self._last = time.monotonic()
        self._seal_later(_IDLE)
        added = session.acknowledged[-1]
        if len(session.acknowledged) >= _MOST:
            self._seal()
        return added

    def _seal_later(self, seconds: float) -> None:
        if self._closed or self._waiting:
            return
        self._waiting = True
        self._timer = threading.Timer(seconds, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def _ring(self) -> None:
        with suppress(RuntimeError):  # it was closed at this moment
            self._thread.submit(self._seal_if_idle)

    def _seal_if_idle(self) -> None:
        self._waiting = False
        left = self._last + _IDLE - time.monotonic()
        if left > 0:
            self._seal_later(left + 0.1)
        else:
            self._seal()

    def _seal(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _end(self) -> None:
        self._seal()
        store, self._store = self._store, None
        if store is not None:
            store.close()
