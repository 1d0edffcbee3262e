"""The archives of a store, opened where they lie when somebody comes to see them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from muniment.errors import IdentifierError, NotFound, UsageError
from muniment.identifiers import parse_pdi
from muniment.repository import Source, Store
from muniment.repository.access import access_of
from muniment.repository.catalogue import Found
from muniment.repository.deposit import Condition, next_version
from muniment.repository.ingest import media_type, submit_file
from muniment.repository.tokens import check_token
from muniment.repository.words import Words
from muniment.siard.header import replace_metadata
from muniment.web.doors.desk import Desk
from muniment.web.doors.finding import refuse_withdrawn
from muniment.web.doors.permission import ANYBODY, Reader, reader_of, refuse_unreadable
from muniment.web.site import OpenArchive, Site

__all__ = ["COOKIE", "Kept", "StoreSite", "is_withdrawn", "kept_archives", "kept_of", "page_name"]

SIARD = "application/x-siard"
COOKIE = "muniment-token"
_MOST_OPEN = 24
_IDLE = 900.0  # seconds after which an archive that nobody looks at may be closed


@dataclass(frozen=True, slots=True)
class Kept:
    """A SIARD archive that a store holds."""

    name: str  # in addresses
    found: Found
    stream: str
    file: str
    size: int

    @property
    def url(self) -> str:
        return f"/a/{quote(self.name)}"


def page_name(pdi: str, identifier: str) -> str:
    """Return what stands for an archive in addresses; it never changes.

    >>> page_name("pdi://db.example.ch/2026/11/16/3.siard.2", "")
    'db.example.ch-2026-11-16-3.siard.2'
    >>> page_name("", "urn:uuid:0192-8d")
    '0192-8d'
    """
    if not pdi:
        return identifier.rpartition(":")[2]
    return pdi.removeprefix("pdi://").replace("/", "-")


class StoreSite(Site):
    """All archives of a store. Each is opened by its first visitor, and closed when forgotten."""

    is_store = True

    def __init__(self, desk: Desk) -> None:
        super().__init__(base=desk.base)
        self.desk = desk
        self._open: OrderedDict[str, tuple[OpenArchive, ExitStack, float]] = OrderedDict()
        self._lock = threading.Lock()
        self._reading: threading.Thread | None = None
        self._closed = threading.Event()

    def start(self) -> None:
        """Nothing is opened before somebody asks for it."""

    def read_on(self) -> None:
        """Read, in the background, the descriptions that the search does not know yet."""
        with self._lock:
            if self._reading is None or not self._reading.is_alive():
                self._reading = threading.Thread(target=self._read_words, daemon=True)
                self._reading.start()

    def _read_words(self) -> None:
        with Store(self.desk.folder) as store, Words(store) as said:
            while not self._closed.is_set() and not said.catch_up(1.0):
                pass

    def close(self) -> None:
        self._closed.set()
        if self._reading is not None:
            self._reading.join(10)
        with self._lock:
            while self._open:
                self._let_go(next(iter(self._open)))

    def reader(self, request: Request, store: Store) -> Reader:
        """Return who asks; a browser shows its token in a cookie."""
        reader = reader_of(request)
        given = request.cookies.get(COOKIE, "")
        if reader.token is None and given:
            token = check_token(store.names, given)
            return Reader(token) if token is not None else ANYBODY
        return reader

    def open(self, request: Request) -> OpenArchive:
        """Return the archive that an address names, if who asks may read it."""
        return self._opened(self.desk.answer(lambda store: self._kept(request, store)))

    def _kept(self, request: Request, store: Store) -> Kept:
        kept = find_kept(store, request.path_params["archive"])
        reader = self.reader(request, store)
        name = kept.found.pdi or kept.found.identifier
        refuse_unreadable(reader, access_of(store.names).of_record(kept.found), name)
        refuse_withdrawn(store, [kept.found])
        return kept

    @property
    def describable(self) -> bool:
        return True

    def knows(self, request: Request) -> bool:
        reader = self.desk.answer(lambda store: self.reader(request, store))
        return reader.token is not None and reader.token.may("describe")

    def may_describe(self, request: Request, token: str) -> bool:
        """Whether the token in the form, or the one of the browser, is for descriptions."""
        if not token:
            return self.knows(request)
        found = self.desk.answer(lambda store: check_token(store.names, token))
        return found is not None and found.may("describe")

    def described(self, archive: OpenArchive, metadata: bytes, request: Request) -> str:
        """Add the archive with other words as a new version of what it is."""
        kept = self.desk.answer(lambda store: find_kept(store, archive.name))
        if not kept.found.pdi:
            raise UsageError("this archive has no PDI, so it cannot have a new version")
        pdi = parse_pdi(kept.found.pdi)
        with TemporaryDirectory(prefix="muniment-describe-") as folder:
            place = Path(folder)
            files = self.desk.answer(lambda store: store.extract(kept.found, place))
            file = next(each for each in files if each.name == kept.file)
            replace_metadata(file, metadata)
            submission = submit_file(file)
            known = {source.path for source in submission.sources}
            others = tuple(
                Source(name, each, media_type(each.name))
                for each in files
                if (name := each.relative_to(place).as_posix()) not in known
            )
            submission = submission._replace(sources=(*submission.sources, *others))
            condition = Condition(matches=frozenset({archive.digest}))
            settle = next_version(pdi.generic, SIARD, condition)
            added = self.desk.deposits.add(submission, settle).result()
        return f"/a/{quote(page_name(added.pdi, added.package))}"

    def _opened(self, kept: Kept) -> OpenArchive:
        with self._lock:
            known = self._open.get(kept.stream)
            if known is not None and not known[0].path.exists():
                self._let_go(kept.stream)  # the file that it lies in was sealed meanwhile
                known = None
            if known is None:
                self._close_idle()
                stack = ExitStack()
                # A store of its own: what it has to unpack lives as long as the archive is open.
                store = stack.enter_context(Store(self.desk.folder))
                path = store.siard(kept.found.identifier)
                archive = OpenArchive(kept.name, path, file=kept.file, pdi=kept.found.pdi)
                archive.start()
                known = archive, stack, 0.0
            self._open[kept.stream] = known[0], known[1], time.monotonic()
            self._open.move_to_end(kept.stream)
            return known[0]

    def _close_idle(self) -> None:
        for stream, (_, _, seen) in list(self._open.items()):
            if len(self._open) < _MOST_OPEN or time.monotonic() - seen < _IDLE:
                return
            self._let_go(stream)

    def _let_go(self, stream: str) -> None:
        archive, stack, _ = self._open.pop(stream)
        archive.close()
        stack.close()


def find_kept(store: Store, name: str) -> Kept:
    """Return the archive of that name in addresses."""
    pdi = _pdi_of(name)
    found = store.catalogue.named(pdi, "pdi") if pdi else []
    if not pdi:
        record = store.catalogue.record(f"urn:uuid:{name}")
        found = [record] if record is not None else []
    for each in reversed(found):
        kept = kept_of(store, each)
        if kept is not None and kept.name == name:
            return kept
    raise NotFound(f"there is no archive {name[:120]!r} in this store")


def _pdi_of(name: str) -> str:
    """The PDI that a name in an address was made from, or nothing."""
    series, *day, specifier = name.rsplit("-", 4) if name.count("-") >= 4 else ("", "")
    if len(day) != 3 or "." not in specifier:
        return ""
    try:
        return str(parse_pdi(f"pdi://{series}/{'/'.join(day)}/{specifier}"))
    except IdentifierError:
        return ""


def kept_of(store: Store, found: Found) -> Kept | None:
    """Return the archive that a record is about, if it is one."""
    if found.kind != "object" or (found.pdi and ".siard." not in found.pdi):
        return None
    for stream in store.object(found).streams:
        if stream.media_type == SIARD:
            file = (stream.path or "archive.siard").rpartition("/")[2]
            return Kept(page_name(found.pdi, found.identifier), found, stream.identifier, file,
                        stream.size)  # fmt: skip
    return None


def is_withdrawn(store: Store, found: Found) -> bool:
    """Whether content is refused by every door; what is said of it stays."""
    return bool(found.pdi) and store.names.resolve(parse_pdi(found.pdi)).status == "withdrawn"


def kept_archives(
    store: Store, after: tuple[str, int, int] | None = None, count: int = 51
) -> Iterator[Kept]:
    """Yield the archives of a store, the latest first, from a place on."""
    values: list[Any] = [SIARD]
    where = ""
    if after is not None:
        where = "AND (r.date, r.file, r.number) < (?, ?, ?) "
        values += after
    rows = store.catalogue.answer(
        "SELECT DISTINCT r.identifier, r.date, r.file, r.number FROM stream s "
        "JOIN name n ON n.name = s.identifier AND n.kind = 'stream' "
        "JOIN record r ON r.file = n.file AND r.number = n.number "
        f"WHERE s.media_type = ? AND r.kind = 'object' {where}"
        "ORDER BY r.date DESC, r.file DESC, r.number DESC LIMIT ?",
        (*values, count),
    )
    for identifier, *_ in list(rows):
        found = store.catalogue.record(identifier)
        kept = kept_of(store, found) if found is not None else None
        if kept is not None:
            yield kept
