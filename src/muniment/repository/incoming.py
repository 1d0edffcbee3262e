"""Files on their way into a store: read completely, and compared, before anything is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import apsw

from muniment.arc import ArcRecord, read_arc_file
from muniment.arc.digests import proved
from muniment.arc.records import is_datastream
from muniment.errors import DigestMismatch, StoreError, TapeError, UsageError
from muniment.repository.entries import parse_entry
from muniment.repository.reindex import catalogue_arc, catalogue_tape
from muniment.repository.settings import new_uuid
from muniment.repository.storage import SUFFIXES
from muniment.repository.store import Store
from muniment.tape.exact import read_exactly, read_head
from muniment.tape.index import moment_of
from muniment.tape.records import TapeRecord

__all__ = ["Incoming", "Seen", "chunks"]

_CHUNK = 1 << 20


class Seen:
    """Every name that comes in with one import, on disk if there are many."""

    def __init__(self) -> None:
        self._db = apsw.Connection("")
        self._db.execute(
            "CREATE TABLE seen (name TEXT PRIMARY KEY, sha256 TEXT, path TEXT, byte INTEGER) "
            "WITHOUT ROWID; BEGIN"
        )

    def earlier(self, name: str, sha256: str, path: Path, byte: int) -> tuple[str, str, int] | None:
        """Note a name; return the digest, the file and the byte that it stood for before."""
        values = (name, sha256, str(path), byte)
        self._db.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?, ?)", values)
        if self._db.changes():
            return None
        question = "SELECT sha256, path, byte FROM seen WHERE name = ?"
        found: tuple[str, str, int] | None = self._db.execute(question, (name,)).fetchone()
        return found


class Incoming:
    """A file on its way in, read completely before anything is kept."""

    def __init__(self, store: Store, path: Path, digest: str, seen: Seen) -> None:
        if not path.name.endswith(SUFFIXES):
            raise UsageError(
                f"{path}: a tape ends in .xml, other files in {', '.join(SUFFIXES[1:])}"
            )
        self._store, self.path, self.digest, self._seen = store, path, digest, seen
        self.is_tape = path.suffix == ".xml"
        self.count = self._new = 0
        self.name = path.name
        self.uri = ""
        self._place, self._copied = 0, False
        (self._read_tape if self.is_tape else self._read_arc)()
        self.known = not self._new
        if self.uri and not self.known:
            self._check_tape_id()

    def _read_tape(self) -> None:
        with self.path.open("rb") as stream, self.path.open("rb") as beside:
            self.uri = read_head(beside, str(self.path)).tape_id
            for record in read_exactly(stream, str(self.path)):
                self.count += 1
                self._compare(record, beside)

    def _compare(self, record: TapeRecord, stream: BinaryIO) -> None:
        stream.seek(record.offset)
        data = stream.read(record.length)
        digest = hashlib.sha256(data).hexdigest()
        entry = parse_entry(record.admin)
        where = f"{self.path}, byte {record.offset}: {record.identifier}"
        moment_of(record, str(self.path))
        if entry is not None and entry.sha256 != digest:
            raise DigestMismatch(where, "SHA-256", entry.sha256, digest)
        earlier = self._seen.earlier(f"r {record.identifier}", digest, self.path, record.start)
        if earlier is not None and earlier[1] == str(self.path):
            problem = f"the identifier {record.identifier} was used already, at byte {earlier[2]}"
            raise TapeError(str(self.path), record.start, problem)
        known = self._store.catalogue.record(record.identifier)
        self._note(where, known and known.sha256, earlier, digest)

    def _note(
        self, where: str, known: str | None, earlier: tuple[str, str, int] | None, digest: str
    ) -> None:
        """Count what is new; refuse what stands for other bytes in the store, or beside it."""
        if known is not None and known != digest:
            raise StoreError(
                f"{where} is in the store already, with other bytes; nothing was imported"
            )
        if earlier is not None and earlier[0] != digest:
            raise StoreError(
                f"{where} is in {earlier[1]} with other bytes, at byte {earlier[2]}; "
                "nothing was imported"
            )
        self._new += known is None and earlier is None

    def _read_arc(self) -> None:
        with self.path.open("rb") as stream:
            for record in read_arc_file(stream, str(self.path)):
                position = stream.tell()
                found = proved(stream, str(self.path), record)
                stream.seek(position)
                if is_datastream(record):
                    self.count += 1
                    self._compare_stream(record, found)

    def _compare_stream(self, record: ArcRecord, digest: str) -> None:
        where = f"{self.path}, byte {record.offset}: {record.identifier}"
        known = self._store.catalogue.streams_named(record.identifier)
        same = any(_same(each, record, digest) for each in known)
        # A page of the web is captured many times; anything else never changes.
        capture = record.kind == "response" or any(each.kind == "response" for each in known)
        name = f"s {record.identifier}" + (f" {record.date} {digest}" if capture else "")
        earlier = self._seen.earlier(name, digest, self.path, record.offset)
        if earlier is not None and earlier[1] == str(self.path):
            return  # of an identifier used twice in one file, the first record counts
        other = "" if known and not same and not capture else None
        self._note(where, digest if same else other, earlier, digest)

    def _check_tape_id(self) -> None:
        """Refuse a tape whose identifier another one has."""
        seen = self._seen.earlier(f"t {self.uri}", self.digest, self.path, 0)
        if seen is not None or self._store.catalogue.find_file(self.uri) is not None:
            where = seen[1] if seen is not None else "the store"
            raise StoreError(
                f"{self.path}: there is already a tape {self.uri} in {where}, with other records; "
                "nothing was imported"
            )

    def _choose_name(self) -> None:
        self._place, self._copied = self._left_behind()
        if self._copied:
            return
        places = self._store.places
        if self._store.catalogue.find_file(self.name) or any(p.is_there(self.name) for p in places):
            suffix = next(s for s in sorted(SUFFIXES, key=len)[::-1] if self.name.endswith(s))
            self.name = f"{new_uuid()}{suffix}"

    def _left_behind(self) -> tuple[int, bool]:
        """Return the place with the same bytes under this name, left by an import that died."""
        if self._store.catalogue.find_file(self.name) is None:
            for number, place in enumerate(self._store.places):
                if place.is_sealed(self.name):
                    with place.open(self.name) as stream:
                        digest = hashlib.sha256()
                        for chunk in chunks(stream):
                            digest.update(chunk)
                    if digest.hexdigest() == self.digest:
                        return number, True
        return self._store.roomiest(), False

    def take_in(self) -> None:
        """Copy the file to its place, and tell the catalogue."""
        self._choose_name()
        place = self._store.places[self._place]
        if not self._copied:
            place.put(self.name, self.path)
        try:
            with self._store.catalogue.change():
                take_in = catalogue_tape if self.is_tape else catalogue_arc
                take_in(self._store, self._place, self.name)
        except BaseException:
            place.take_back(self.name)
            raise


def _same(known: ArcRecord, record: ArcRecord, sha256: str) -> bool:
    """Whether a datastream is one that is known; two captures differ also by their dates."""
    if "response" in (known.kind, record.kind) and known.date != record.date:
        return False
    return known.size == record.size and known.sha256 in ("", sha256)


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of a stream."""
    while chunk := stream.read(_CHUNK):
        yield chunk
