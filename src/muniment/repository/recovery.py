"""After a crash: what a dead writer left is cut back to its last complete record, and sealed.

A file belongs to a dead writer if its lock is free. Records that are whole, by their own digest,
were acknowledged or about to be: they are kept. Datastreams that no record refers to are cut off.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from muniment.arc import ArcRecord, read_arc_file
from muniment.errors import FormatError, StoreError
from muniment.identifiers import parse_pdi
from muniment.repository.catalogue import Found, Stream
from muniment.repository.entries import Entry, parse_entry
from muniment.repository.indexes import index_arc, index_tape
from muniment.repository.naming import bind, bound
from muniment.repository.reindex import catalogue_arc, catalogue_tape
from muniment.repository.storage import Growing
from muniment.tape.exact import read_head
from muniment.tape.index import moment
from muniment.tape.scan import scan_from
from muniment.tape.write import TAPE_END, tape_head

if TYPE_CHECKING:
    from muniment.repository.store import Store

__all__ = ["recover", "recover_within"]


def recover(store: Store) -> int:
    """Settle what dead writers left; return how many tapes were."""
    if not any(place.growing() for place in store.places) and not store.catalogue.unsealed():
        return 0
    with store.catalogue.change():
        return recover_within(store)


def recover_within(store: Store) -> int:
    """The same, inside a change of the catalogue."""
    dead = [
        (number, growing)
        for number, place in enumerate(store.places)
        for name in place.growing()
        if (growing := place.resume(name)) is not None
    ]
    _finish_sealing(store)
    if not dead:
        return 0
    try:
        tapes = [_Tape(store, number, each) for number, each in dead if _is_tape(each)]
        for tape in tapes:
            tape.take_in()
        for number, growing in dead:
            if not _is_tape(growing):
                _settle_arc(store, number, growing)
        for tape in tapes:
            tape.seal()
    finally:
        for _, growing in dead:
            growing.close()
    return len(tapes)


def _finish_sealing(store: Store) -> None:
    """Take files in anew that were sealed just before the catalogue could note it."""
    for file in store.catalogue.unsealed():
        place = store.places[file.place]
        if place.is_sealed(file.name):
            store.catalogue.drop_file(file.id)
            take_in = catalogue_tape if file.kind == "tape" else catalogue_arc
            take_in(store, file.place, file.name)
            place.discard(file.name)
        elif not place.is_there(file.name) and file.end <= file.base:
            store.catalogue.remove_file(file.id)  # it was empty, and is thrown away already


def _is_tape(growing: Growing) -> bool:
    return growing.name.endswith(".xml")


class _Tape:
    """A tape that its writer could not finish."""

    def __init__(self, store: Store, place: int, growing: Growing) -> None:
        self._store, self._number, self._growing = store, place, growing
        self._place = store.places[place]
        self._name = growing.name
        self._uri = f"urn:uuid:{growing.name.partition('.')[0]}"
        self._time = ""
        self._base = self._end = 0
        self._rows: list[tuple[Found, Entry]] = []

    def take_in(self) -> None:
        """Find the records that are whole, cut off the rest, and tell the catalogue."""
        catalogue = self._store.catalogue
        known = catalogue.find_file(self._uri)
        if known is not None and known.sealed:  # only the removal of this copy was missed
            self._growing.remove()
            return
        number = (
            known.id
            if known is not None
            else catalogue.add_file(self._uri, "tape", self._number, self._name, {"own": 1})
        )
        self._read(number)
        self._growing.cut(self._end)
        if self._rows:
            self._growing.write(b"\n")
            self._end += 1
        fresh = [row for row in self._rows if catalogue.record(row[0].identifier) is None]
        catalogue.add_records(fresh)
        catalogue.set_file(number, base=self._base, end=self._end)
        self._file = number

    def _read(self, number: int) -> None:
        with self._growing.open() as stream:
            try:
                head = read_head(stream, self._name)
            except FormatError:
                return  # not even the head was written
            self._time, self._base, self._end = head.time, head.start, head.start
            try:
                for record in scan_from(stream, self._name, head, head.start):
                    data = self._growing.read(record.offset, record.length)
                    entry = parse_entry(record.admin)
                    if entry is None or hashlib.sha256(data).hexdigest() != entry.sha256:
                        return
                    found = Found(
                        number, len(self._rows), record.identifier, moment(record.date),
                        record.offset - self._base, record.length, entry.kind, entry.sha256,
                        entry.pdi, entry.size, len(entry.streams), None,
                    )  # fmt: skip
                    self._rows.append((found, entry))
                    self._end = record.end
            except FormatError:
                return  # the torn end

    def seal(self) -> None:
        """Seal the tape, or throw it away if nothing on it is whole."""
        if self._growing.gone:
            return
        store, catalogue = self._store, self._store.catalogue
        if not self._rows:
            self._growing.remove()
            catalogue.remove_file(self._file)
            return
        arcs = []
        for _, entry in self._rows:
            for identifier in entry.streams:
                stream = catalogue.stream(identifier)
                if stream is None:
                    raise StoreError(f"{self._name}: the datastream {identifier} is not there")
                if stream.file not in arcs:
                    arcs.append(stream.file)
        head = tape_head(self._uri, [catalogue.file(arc).uri for arc in arcs], self._time)
        self._place.replace(self._growing, head, self._base, TAPE_END)
        size = len(head) + self._end - self._base + len(TAPE_END)
        catalogue.set_file(self._file, sealed=1, base=len(head), end=size)
        index_tape(store, self._file)
        self._bind(store)

    def _bind(self, store: Store) -> None:
        bindings = []
        for found, entry in self._rows:
            if entry.pdi:
                streams = store.object(found).streams
                pdi = parse_pdi(entry.pdi)
                bindings.append(bound(pdi, streams, found.identifier, found.sha256, found.length))
        bind(store, bindings)


def _settle_arc(store: Store, place: int, growing: Growing) -> None:
    """Keep an ARC file up to its last datastream that a record refers to."""
    catalogue = store.catalogue
    name = growing.name
    uri = f"urn:uuid:{name.partition('.')[0]}"
    kept: list[ArcRecord] = []
    seen: list[ArcRecord] = []
    with growing.open() as stream:
        try:
            for record in read_arc_file(stream, name):
                seen.append(record)
                if catalogue.named(record.identifier, "stream"):
                    kept += seen
                    seen = []
        except FormatError:
            pass  # the torn end
    known = catalogue.find_file(uri)
    if not any(record.kind == "resource" for record in kept):
        growing.remove()
        if known is not None:
            catalogue.remove_file(known.id)
        return
    number = known.id if known is not None else catalogue.add_file(uri, "arc", place, name, {})
    end = kept[-1].offset + kept[-1].length
    growing.cut(end)
    catalogue.add_streams(Stream(each, number) for each in kept if each.kind == "resource")
    store.places[place].seal(growing)
    catalogue.set_file(number, sealed=1, end=end)
    index_arc(store, number)
