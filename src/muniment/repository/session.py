"""Writing into a store: one batch is one tape, with as many ARC files as the size limit asks for.

Datastreams go first, into files that nobody else writes. Then, in turn with other writers,
a group of objects gets its names, its documents go onto the tape, both files are synced, and the
catalogue learns of them: from there on the objects are acknowledged, and survive whatever happens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from muniment.errors import StoreError
from muniment.identifiers import parse_many
from muniment.objects import DOCUMENTS, Datastream, DigitalObject
from muniment.repository.arcs import ArcBatch
from muniment.repository.catalogue import Found
from muniment.repository.entries import Entry, entry_xml
from muniment.repository.indexes import index_tape
from muniment.repository.naming import assign, bind, bound, names_record
from muniment.repository.settings import new_uuid, now
from muniment.repository.signatures import Signer
from muniment.repository.store import Store
from muniment.tape.index import moment as utc_moment
from muniment.tape.write import RECORD_END, SOFTWARE, TAPE_END, record_opening, tape_head

__all__ = ["Added", "Session", "Source", "keep_names"]

_GROUP, _GROUP_BYTES = 1024, 64_000_000  # objects, or bytes of datastreams, synced together


class Source(NamedTuple):
    """A file to be added: its path inside the object, where its bytes are, its type."""

    path: str
    data: Path | bytes
    media_type: str


class Added(NamedTuple):
    """What became of one object."""

    package: str
    pdi: str
    contents: tuple[str, ...]
    streams: int
    size: int
    new: bool = True


@dataclass(slots=True)
class _Draft:
    contents: tuple[str, ...]
    streams: tuple[Datastream, ...]
    metadata: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    pdi: str = ""
    settle: Callable[[Store], str] | None = None

    @property
    def size(self) -> int:
        """The bytes of all datastreams."""
        streams = self.streams
        return streams[0].size if len(streams) == 1 else sum([each.size for each in streams])


@dataclass(slots=True)
class _Group:
    drafts: list[_Draft] = field(default_factory=list)
    size: int = 0


class Session:
    """One batch; use it as a context manager, and the tape is sealed at the end."""

    def __init__(
        self, store: Store, *, series: str = "", document: str = "didl",
        signer: Signer | None = None,
    ) -> None:  # fmt: skip
        self.store = store
        self._series = series or store.settings.series
        self._write_document = DOCUMENTS[document]
        self._signer = signer
        self._group = _Group()
        self.acknowledged: list[Added] = []
        self._number = 0
        self._tape_id = f"urn:uuid:{new_uuid()}"
        self._time = now()
        self._closed = False
        self._hold = ExitStack()
        self._hold.enter_context(store.lock())
        try:
            self._begin()
        except BaseException:
            self._hold.close()
            raise

    def _begin(self) -> None:
        store, number = self.store, self.store.roomiest()
        self._place = store.places[number]
        name = f"{self._tape_id[9:]}.xml"
        head = tape_head(self._tape_id, (), self._time)
        with store.catalogue.change():  # nobody takes a new file for one that was left behind
            self._journal = self._place.begin(name)
            self._journal.write(head)
            self._file = store.catalogue.add_file(self._tape_id, "tape", number, name, {"own": 1})
            store.catalogue.set_file(self._file, base=len(head), end=len(head))
        self._base = self._good = len(head)
        self._arcs = ArcBatch(store, self._tape_id)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            return
        self._group = _Group()
        with suppress(OSError):  # the disk may be full: whoever opens the store next seals it
            self._undo()
            self.close()

    # Adding

    def add(
        self, sources: Sequence[Source], *, contents: Sequence[str] = (),
        metadata: Sequence[tuple[str, str]] = (), facts: Sequence[tuple[str, str]] = (),
        settle: Callable[[Store], str] | None = None,
    ) -> None:  # fmt: skip
        """Add an object; it is acknowledged when it appears in ``acknowledged``.

        ``settle`` gives it its PDI while nobody else writes, or refuses; without it, what the
        contents say decides.
        """
        mark = self._arcs.mark()
        try:
            streams = tuple([self._arcs.add(source) for source in sources])
        except BaseException:
            self._arcs.cut(mark)
            raise
        draft = _Draft(tuple(contents), streams, tuple(metadata), tuple(facts), settle=settle)
        group = self._group
        group.drafts.append(draft)
        group.size += draft.size
        if len(group.drafts) >= _GROUP or group.size >= _GROUP_BYTES:
            self.commit()

    def add_record(
        self, identifier: str, date: str, document: bytes, entry: Entry | None = None
    ) -> None:
        """Add a record of any namespace, at once."""
        self.commit()
        digest = hashlib.sha256(document).hexdigest()
        entry = entry or Entry("record", digest)
        with self.store.catalogue.change():
            self._check_rescued()
            known = self.store.catalogue.record(identifier)
            if known is not None:
                if known.sha256 == digest:
                    return
                raise StoreError(
                    f"{identifier} is in the store already, with other bytes; nothing was changed"
                )
            self._append([(identifier, date, document, entry)])

    def commit(self) -> None:
        """Acknowledge everything added so far."""
        group, self._group = self._group, _Group()
        if not group.drafts:
            return
        if self.store.catalogue.replaced:
            raise StoreError("the catalogue was removed while objects were added; start again")
        self._arcs.flush()
        try:
            with self.store.catalogue.change():
                self._check_rescued()
                assign(self.store, self._series, group.drafts)
                created = now()
                rows = [self._record(draft, created) for draft in group.drafts]
                self._arcs.sync()
                added = self._append(rows)
                settled = any(draft.settle for draft in group.drafts)
                if settled:  # the next who settles a name must know of this one
                    self._bind(added, group.drafts)
        except BaseException:
            self._undo()
            raise
        if not settled:
            self._bind(added, group.drafts)
        self.acknowledged += [
            Added(found.identifier, draft.pdi, draft.contents, len(draft.streams), found.size)
            for found, draft in zip(added, group.drafts, strict=True)
        ]

    def _bind(self, added: Sequence[Found], drafts: Sequence[_Draft]) -> None:
        names = parse_many(draft.pdi for draft in drafts)
        bind(
            self.store,
            [
                bound(pdi, draft.streams, found.identifier, found.sha256, found.length)
                for pdi, found, draft in zip(names, added, drafts, strict=True)
            ],
        )

    def _check_rescued(self) -> None:
        """In our turn nobody else is writing: what lies unknown on a tape is of a dead writer."""
        from muniment.repository.recovery import recover_within

        recover_within(self.store)

    def _record(self, draft: _Draft, created: str) -> tuple[str, str, bytes, Entry]:
        package = f"urn:uuid:{new_uuid()}"
        base = self.store.settings.base_url
        thing = DigitalObject(
            package, created, (draft.pdi, *draft.contents), draft.streams, draft.metadata,
            draft.facts, SOFTWARE,
        )  # fmt: skip
        if self._signer is None:
            document = self._write_document(thing, base)
        else:
            detached = self._signer.detached(thing.streams, base)
            document = self._signer.enveloped(self._write_document(thing, base, detached))
        entry = Entry(
            "object", hashlib.sha256(document).hexdigest(), draft.pdi, draft.contents,
            tuple([stream.identifier for stream in draft.streams]), draft.size,
        )  # fmt: skip
        return package, created, document, entry

    def _append(self, rows: list[tuple[str, str, bytes, Entry]]) -> list[Found]:
        """Put records onto the tape, sync it, and tell the catalogue."""
        position = self._journal.position
        pieces: list[bytes] = []
        added: list[tuple[Found, Entry]] = []
        for identifier, date, document, entry in rows:
            opening = record_opening(identifier, date, entry_xml(entry), *entry.about)
            offset = position + len(opening) - self._base
            found = Found(
                self._file, self._number, identifier, utc_moment(date), offset, len(document),
                entry.kind, entry.sha256, entry.pdi, entry.size, len(entry.streams), None,
            )  # fmt: skip
            added.append((found, entry))
            pieces += (opening, document, RECORD_END)
            position += len(opening) + len(document) + len(RECORD_END)
            self._number += 1
        self._journal.write(b"".join(pieces))
        self._journal.sync()
        catalogue = self.store.catalogue
        catalogue.add_streams(self._arcs.fresh())
        catalogue.add_records(added)
        catalogue.set_file(self._file, end=position)
        self._arcs.note()
        self._good = position
        return [found for found, _ in added]

    def _undo(self) -> None:
        """Cut off what was not acknowledged."""
        if not self._closed:
            self._journal.cut(self._good)
            self._arcs.undo()

    # The end

    def close(self) -> None:
        """Acknowledge the rest, and seal the tape and its ARC files."""
        if self._closed:
            return
        try:
            self.commit()
            self._closed = True
            if self._number:
                self.keep_names()
                self._seal()
            else:
                self._discard()
        finally:
            self._closed = True
            self._journal.close()
            self._arcs.close()
            self._hold.close()

    def keep_names(self) -> None:
        """Put what the book of names has learnt since the last time onto the tape."""
        with self.store.catalogue.change():
            self._check_rescued()
            package, created = f"urn:uuid:{new_uuid()}", now()
            while (record := names_record(self.store, package, created)) is not None:
                document, end = record
                digest = hashlib.sha256(document).hexdigest()
                self._append([(package, created, document, Entry("names", digest))])
                package = f"urn:uuid:{new_uuid()}"
                self.store.catalogue.set_state("names_end", end)

    def _seal(self) -> None:
        store = self.store
        with store.catalogue.change():
            arc_ids = self._arcs.seal()
            head = tape_head(self._tape_id, arc_ids, self._time)
            self._place.replace(self._journal, head, self._base, TAPE_END)
            size = len(head) + self._good - self._base + len(TAPE_END)
            store.catalogue.set_file(self._file, sealed=1, base=len(head), end=size)
        index_tape(store, self._file)
        self._arcs.finish_indexes()

    def _discard(self) -> None:
        with self.store.catalogue.change():
            self._journal.remove()
            self._arcs.discard()
            self.store.catalogue.remove_file(self._file)


def keep_names(store: Store) -> None:
    """Put the book of names onto a tape now: what was just decided must not be lost with it."""
    with Session(store) as session:
        session.keep_names()
