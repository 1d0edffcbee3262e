"""Making the catalogue and all indexes again from the files alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from muniment.arc import ArcRecord, read_arc_file
from muniment.arc import index as arc_index
from muniment.arc.digests import digested
from muniment.arc.records import is_datastream
from muniment.errors import StoreError
from muniment.repository.catalogue import Found, Stream
from muniment.repository.entries import Entry, entry_of, parse_entry
from muniment.repository.naming import statement
from muniment.repository.provenance import note_imports
from muniment.tape import index as tape_index
from muniment.tape.document import standalone
from muniment.tape.index import moment_of
from muniment.tape.records import TapeHead, TapeRecord
from muniment.tape.scan import scan
from muniment.tape.write import PROLOGUE

if TYPE_CHECKING:
    from muniment.repository.store import Store

__all__ = ["Rebuilt", "catalogue_arc", "catalogue_tape", "file_uri", "reindex"]

_BATCH = 5000


class Rebuilt(NamedTuple):
    """What was found."""

    tapes: int
    arcs: int
    records: int
    datastreams: int


def reindex(store: Store, only_if_needed: bool = False) -> Rebuilt | None:
    """Forget the catalogue and every index, and read all files again."""
    with store.lock(exclusive=True, wait=only_if_needed):
        catalogue = store.catalogue
        if only_if_needed and catalogue.state("complete"):
            return None  # another process was quicker
        with catalogue.change():
            catalogue.clear()
            store.forget()
            for place in store.places:
                place.tidy()
            files = [(n, name) for n, place in enumerate(store.places) for name in place.names()]
            tapes = [(number, name) for number, name in files if name.endswith(".xml")]
            arcs = [each for each in files if each not in set(tapes)]
            for number, name in tapes:
                catalogue_tape(store, number, name)
            for number, name in arcs:
                catalogue_arc(store, number, name)
            _remember_names(store)
            note_imports(store)
            catalogue.set_state("complete", 1)
        store.forget()
    counts = store.catalogue.counts()
    return Rebuilt(len(tapes), len(arcs), counts["records"], counts["datastreams"])


def file_uri(name: str) -> str:
    """The identifier of a file that does not say its own."""
    stem = name.partition(".")[0]
    try:
        return f"urn:uuid:{UUID(stem)}"
    except ValueError:
        return f"urn:uuid:{uuid5(NAMESPACE_URL, name)}"


def catalogue_tape(store: Store, place: int, name: str) -> int:
    """Take a sealed tape into the catalogue, and write the index beside it."""
    home, catalogue = store.places[place], store.catalogue
    size, label = home.size(name), home.label(name)
    with home.open(name) as stream, home.open(name) as beside:
        head, records = scan(stream, label)
        uri = head.tape_id or file_uri(name)
        # Whatever stands on a tape of ours is a document of its own.
        own = head.tape_id == file_uri(name) and head.prologue == PROLOGUE
        facts: dict[str, object] = {"arcs": list(head.arc_ids)}
        if own:
            facts["own"] = 1
        number = catalogue.add_file(uri, "tape", place, name, facts)
        catalogue.set_file(number, sealed=1, base=0, end=size)
        seen = _Teeing(store, label, head, number, records, beside)
        tape_index.write_index(home.index(name), label, head, size, seen)
        seen.flush()
    return number


class _Teeing:
    """Records on their way into a tape's index; the catalogue gets them as well."""

    def __init__(
        self, store: Store, label: str, head: TapeHead, file: int, records: Iterator[TapeRecord],
        stream: BinaryIO,
    ) -> None:  # fmt: skip
        self._store, self._label, self._head, self._file = store, label, head, file
        self._records, self._stream = records, stream
        self._rows: list[tuple[Found, Entry]] = []

    def __iter__(self) -> Iterator[TapeRecord]:
        for number, record in enumerate(self._records):
            entry = parse_entry(record.admin)
            if entry is None:
                self._stream.seek(record.offset)
                data = self._stream.read(record.length)
                document = standalone(data, self._head, record.namespaces)
                digest = hashlib.sha256(data).hexdigest()
                entry = entry_of(document, digest, record.identifier)
            date = moment_of(record, self._label)
            self._rows.append((_found(self._file, number, date, record, entry), entry))
            if len(self._rows) >= _BATCH:
                self.flush()
            yield record

    def flush(self) -> None:
        """Hand the rows to the catalogue; a record that another tape has as well is kept once."""
        for found, _ in self._rows:
            known = self._store.catalogue.record(found.identifier)
            if known is not None and known.sha256 != found.sha256:
                other = self._store.catalogue.file(known.file).name
                raise StoreError(
                    f"{self._label}, byte {found.offset}: {found.identifier} is on {other} "
                    "already, with other bytes"
                )
        self._store.catalogue.add_records(self._rows, skip_known=True)
        self._rows = []


def _found(file: int, number: int, date: str, record: TapeRecord, entry: Entry) -> Found:
    namespaces = json.dumps(record.namespaces) if record.namespaces else None
    return Found(
        file, number, record.identifier, date, record.offset, record.length,
        entry.kind, entry.sha256, entry.pdi, entry.size, len(entry.streams), namespaces,
    )  # fmt: skip


def _arc_uri(store: Store, name: str) -> str:
    """The identifier of an ARC file: what its tape calls it, or what its name says."""
    stem = name.partition(".")[0]
    for tape in store.catalogue.files("tape"):
        for uri in tape.facts.get("arcs", ()):
            if uri.endswith((f"/{stem}", f":{stem}")):
                return str(uri)
    return file_uri(name)


def catalogue_arc(store: Store, place: int, name: str) -> int:
    """Take a sealed ARC file into the catalogue, and write the index beside it."""
    home, catalogue = store.places[place], store.catalogue
    size, label = home.size(name), home.label(name)
    number = catalogue.add_file(_arc_uri(store, name), "arc", place, name, {})
    catalogue.set_file(number, sealed=1, end=size)
    with home.open(name) as stream, home.open(name) as beside:

        def teed() -> Iterator[ArcRecord]:
            batch: list[Stream] = []
            for record in digested(beside, label, read_arc_file(stream, label)):
                if is_datastream(record):
                    batch.append(Stream(record, number))
                if len(batch) >= _BATCH:
                    catalogue.add_streams(batch)
                    batch = []
                yield record
            catalogue.add_streams(batch)

        arc_index.write_index(home.index(name), size, teed())
    return number


def _remember_names(store: Store) -> None:
    """Note up to where the book of names is on the tapes."""
    end = 0
    for found in store.catalogue.records(kind="names"):
        root = statement(store.read(found), "names")
        if root.get("store") == store.settings.id:
            end = max(end, int(root.get("to", "0")))
    store.catalogue.set_state("names_end", end)
