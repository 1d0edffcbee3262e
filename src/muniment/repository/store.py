"""A store that is open: what it holds, and how to get it back."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain, count, takewhile
from pathlib import Path
from typing import Any, BinaryIO

from muniment.arc import open_record
from muniment.errors import DigestMismatch, IdentifierError, NotFound, StoreError, UsageError
from muniment.files import Inside, new_file
from muniment.identifiers import parse_pdi
from muniment.names import Names
from muniment.objects import Datastream, DigitalObject, read_object
from muniment.repository.catalogue import Catalogue, File, Found, Stream
from muniment.repository.inside import StoredFile
from muniment.repository.naming import open_names
from muniment.repository.settings import Settings, new_uuid, now
from muniment.repository.storage import open_place
from muniment.siard.volumes import part_name, part_of
from muniment.tape.document import standalone
from muniment.tape.exact import read_head
from muniment.tape.records import TapeHead

__all__ = ["Store"]

_CATALOGUE = "catalogue.db"
_MOST_OPEN = 64
_GAP, _STRETCH = 16384, 4 << 20  # bytes between records that are read together, and of all of them
_PATIENCE = 30.0  # seconds for another process to seal a tape


class Store:
    """A store in a folder. Any number of processes may have it open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = Settings.load(folder)
        self.places = [open_place(place, folder) for place in self.settings.places]
        for place in self.places:
            place.check()
            place.create()
        self._handles: OrderedDict[int, tuple[File, BinaryIO]] = OrderedDict()
        self._heads: dict[int, TapeHead] = {}
        self._spools: dict[str, Any] = {}  # archives that were inflated, by their datastream
        self.catalogue = Catalogue(folder / _CATALOGUE)
        self._prepare()

    def _prepare(self) -> None:
        """Repair what a crash left, and make a catalogue that is missing."""
        from muniment.repository.recovery import recover
        from muniment.repository.reindex import reindex

        if self.catalogue.fresh or not self.catalogue.state("complete"):
            reindex(self, only_if_needed=True)
        try:
            recover(self)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            # On a full disk everything can be read; writers will say that it is full.

    @classmethod
    def create(cls, folder: Path, settings: Settings | None = None, **choices: object) -> Store:
        """Make a new store in a folder that is empty or not there."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is not empty; choose another folder for the store")
        made = settings or Settings(**{  # type: ignore[arg-type]
            "id": f"urn:uuid:{new_uuid()}", "created": now(), "series": DEFAULT_SERIES, **choices
        })  # fmt: skip
        made.check()
        folder.mkdir(parents=True, exist_ok=True)
        for place in made.places:
            open_place(place, folder).create()
        with Names.create(folder / "names") as names:
            names.add_series(made.series)
        made.save(folder)
        return cls(folder)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def forget(self) -> None:
        """Close the files that are kept open, and forget what is known of them."""
        for _, stream in self._handles.values():
            stream.close()
        self._handles.clear()
        self._heads.clear()

    def close(self) -> None:
        """Let go of all files."""
        self.forget()
        while self._spools:
            self._spools.popitem()[1].close()
        names = self.__dict__.pop("names", None)
        if names is not None:
            names.close()
        self.catalogue.close()

    @cached_property
    def names(self) -> Names:
        """The store's book of names."""
        return open_names(self)

    @contextmanager
    def lock(self, exclusive: bool = False, wait: bool = False) -> Iterator[None]:
        """Hold the store: writers together, or one alone that rebuilds it."""
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        kind |= fcntl.LOCK_NB if exclusive and not wait else 0
        with (self.folder / ".lock").open("ab") as stream:
            try:
                fcntl.flock(stream.fileno(), kind)
            except BlockingIOError:
                raise StoreError(f"{self.folder} is being written; try again later") from None
            yield

    def add_place(self, folder: Path) -> None:
        """Let the store spread over another folder, on another disk perhaps."""
        if folder.exists() and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty; a place must be")
        path = os.path.relpath(folder, self.folder)
        path = str(folder.resolve()) if path.startswith("..") else path
        settings = replace(self.settings, places=(*self.settings.places, path))
        place = open_place(path, self.folder)
        place.create()
        settings.change(self.folder)
        self.settings = settings
        self.places.append(place)

    def roomiest(self) -> int:
        """The number of the place with the most room."""
        return max(range(len(self.places)), key=lambda number: self.places[number].free())

    # Files

    def file(self, number: int) -> tuple[File, BinaryIO]:
        """Return a file and its bytes; sealed files stay open for the next time."""
        known = self._handles.get(number)
        if known is not None:
            self._handles.move_to_end(number)
            return known
        file, stream = self._open_file(number)
        if not file.sealed:
            return file, stream
        self._handles[number] = file, stream
        if len(self._handles) > _MOST_OPEN:
            _, (_, oldest) = self._handles.popitem(last=False)
            oldest.close()
        return file, stream

    def _open_file(self, number: int) -> tuple[File, BinaryIO]:
        """Open a file together with what the catalogue says of just these bytes."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            file = self.catalogue.file(number)
            try:
                return file, self.places[file.place].open(file.name, file.sealed)
            except FileNotFoundError:  # it is being sealed at this moment, or was and nobody knows
                if file.sealed or time.monotonic() > deadline:
                    raise
                if file.kind != "tape":  # sealed, it has another name but the same bytes
                    return file, self.places[file.place].open(file.name)
                time.sleep(0.002)

    def path(self, file: File) -> Path:
        """Return a path of this machine that has the bytes of a file."""
        return self.places[file.place].local(file.name)

    def holds(self, file: File) -> bool:
        """Whether a file that the catalogue knows is there."""
        return self.places[file.place].is_there(file.name)

    def label(self, file: File) -> str:
        """What people are told about where a file lies."""
        return self.places[file.place].label(file.name)

    def head(self, number: int) -> TapeHead:
        """Return what a tape says of itself."""
        if number in self._heads:
            return self._heads[number]
        file, stream = self.file(number)
        try:
            stream.seek(0)
            head = read_head(stream, file.name)
        finally:
            if not file.sealed:
                stream.close()
        if file.sealed:
            self._heads[number] = head
        return head

    # Records

    def find(self, name: str, version: int | None = None) -> Found:
        """Return the record for any name; of several versions the latest, or the one asked for."""
        versions = self.versions(name)
        if not versions:
            raise NotFound(f"there is nothing called {name} in {self.folder}")
        if version is None:
            return versions[-1]
        for found in versions:
            if version_of(found) == version:
                return found
        raise NotFound(f"there is no version {version} of {name}")

    def versions(self, name: str) -> list[Found]:
        """Return all versions that a content identifier, PDI, package or datastream leads to."""
        found = self.catalogue.record(name)
        if found is not None:
            return [found]
        found_by_name = self.catalogue.named(name)
        if not found_by_name and name.lower().startswith(("urn:pdi:", "pdi:")):
            found_by_name = self.catalogue.named(_canonical(name))
        return sorted(found_by_name, key=lambda each: (version_of(each), each.date))

    def read(self, found: Found) -> bytes:
        """Return the bytes of a record, exactly as they stand on the tape."""
        file, stream = self.file(found.file)
        data = os.pread(stream.fileno(), found.length, file.base + found.offset)
        if not file.sealed:
            stream.close()
        if len(data) != found.length:
            raise StoreError(f"{file.name} ends within the record {found.identifier}")
        return data

    def document(self, found: Found) -> bytes:
        """Return a record as a document of its own."""
        data = self.read(found)
        known = self._handles.get(found.file)
        if (known[0] if known else self.catalogue.file(found.file)).facts.get("own"):
            return data
        namespaces = tuple((a, b) for a, b in json.loads(found.namespaces or "[]"))
        return standalone(data, self.head(found.file), namespaces)

    def documents(self, records: Sequence[Found]) -> Iterator[bytes]:
        """Yield many records as documents; those that lie together are read together."""
        start = 0
        while start < len(records):
            end = _together(records, start)
            yield from self._documents(records[start:end])
            start = end

    def _documents(self, records: Sequence[Found]) -> Iterator[bytes]:
        file, stream = self.file(records[0].file)
        try:
            if len(records) == 1 or not file.facts.get("own"):
                yield from map(self.document, records)
                return
            first, last = records[0].offset, records[-1].offset + records[-1].length
            data = os.pread(stream.fileno(), last - first, file.base + first)
        finally:
            if not file.sealed:
                stream.close()
        if len(data) != last - first:
            raise StoreError(f"{file.name} ends within the record {records[-1].identifier}")
        for found in records:
            yield data[found.offset - first : found.offset - first + found.length]

    def object(self, found: Found) -> DigitalObject:
        """Return the object that a record describes."""
        thing = read_object(self.document(found), found.identifier)
        if thing is None:
            raise NotFound(f"{found.identifier} describes no object; get it with --record")
        return thing

    # Datastreams

    def stream(self, identifier: str) -> Stream:
        """Return where a datastream lies."""
        found = self.catalogue.stream(identifier)
        if found is None:
            raise NotFound(f"there is no datastream {identifier} in {self.folder}")
        return found

    def octets(self, stream: Stream) -> bytes | None:
        """Return the octets of a datastream that is not compressed, None if it is."""
        record = stream.record
        file, opened = self.file(stream.file)
        try:
            data = os.pread(opened.fileno(), record.block + record.size, record.offset)
        finally:
            if not file.sealed:
                opened.close()
        if data[:2] == b"\x1f\x8b":
            return None
        if len(data) != record.block + record.size:
            raise StoreError(f"{file.name} ends within the datastream {record.identifier}")
        return data[record.block :]

    def open_file(self, number: int) -> BinaryIO:
        """Open a tape or an ARC file, sealed or not, for a reader of its own."""
        return self._open_file(number)[1]

    def open_stream(self, identifier: str) -> BinaryIO:
        """Open a datastream for reading and seeking, in place."""
        stream = self.stream(identifier)
        name = self.catalogue.file(stream.file).name
        return open_record(self.open_file(stream.file), name, stream.record)

    def siard(self, name: str, version: int | None = None) -> Inside:
        """Return the SIARD archive of an object as a path that is read in place.

        The files that were added with it, such as its large objects, are found beside it. In a
        compressed file it cannot be read in place: then it is inflated into a temporary file.
        """
        found = self.find(name, version)
        streams = self.object(found).streams
        wanted = [each for each in streams if each.identifier == name] or [
            each for each in streams if each.media_type == "application/x-siard"
        ]
        if not wanted:
            raise NotFound(f"{name} is not a SIARD archive")
        archive = wanted[0]
        parts = _parts(archive, streams)
        label = name if archive.identifier == name else f"{found.pdi or name}: {archive.path}"
        home = archive.path.rpartition("/")[0]
        beside = {
            each.path.removeprefix(f"{home}/" if home else ""): self._stored(each.identifier)
            for each in streams
            if each not in parts and (not home or each.path.startswith(f"{home}/"))
        }
        return self._in_place([self._stored(part.identifier) for part in parts], label, beside)

    def _stored(self, identifier: str) -> StoredFile:
        stream = self.stream(identifier)
        file = self.catalogue.file(stream.file)
        return StoredFile(self.places[file.place], file.name, stream.record, identifier)

    def _in_place(
        self, parts: list[StoredFile], label: str, beside: dict[str, StoredFile]
    ) -> Inside:
        if not any(part.packed for part in parts):
            return Inside.joined([part.piece for part in parts], label, beside)
        identifier = parts[0].name
        spool = self._spools.get(identifier)
        if spool is None:
            spool = tempfile.NamedTemporaryFile(prefix="muniment-")  # noqa: SIM115  until close()
            try:
                for chunk in chain.from_iterable(part.chunks() for part in parts):
                    spool.write(chunk)
                spool.flush()
            except BaseException:
                spool.close()
                raise
            self._spools[identifier] = spool
        return Inside.of(Path(spool.name), 0, sum(part.size for part in parts), label, beside)

    def extract(self, found: Found, folder: Path) -> list[Path]:
        """Write the files of an object into a folder as they were added, each proved."""
        thing = self.object(found)
        made = []
        for stream in thing.streams:
            target = _inside(folder, stream.path or stream.identifier.rpartition("/")[2])
            target.parent.mkdir(parents=True, exist_ok=True)
            self._extract(stream.identifier, stream.sha256, target)
            made.append(target)
        return made

    def _extract(self, identifier: str, sha256: str, target: Path) -> None:
        digest = hashlib.sha256()
        with self.open_stream(identifier) as source, new_file(target) as copy:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                copy.write(chunk)
            if sha256 and digest.hexdigest() != sha256:
                raise DigestMismatch(identifier, "SHA-256", sha256, digest.hexdigest())


DEFAULT_SERIES = "archive.example.ch"


def _together(records: Sequence[Found], start: int) -> int:
    """Return the end of those records that follow each other closely on one tape."""
    first, place = records[start], records[start].offset
    for number in range(start, len(records)):
        found = records[number]
        gap = found.offset - place
        if found.file != first.file or not 0 <= gap <= _GAP or place - first.offset > _STRETCH:
            return number
        place = found.offset + found.length
    return len(records)


def version_of(found: Found) -> int:
    """The version that a record is of its content; 1 if it does not say."""
    number = found.pdi.rpartition(".")[2]
    return int(number) if number.isdecimal() else 1


def _parts(archive: Datastream, streams: Sequence[Datastream]) -> list[Datastream]:
    """Return the datastreams that an archive lies in: itself, or all its parts in their order."""
    whole, number = part_of(archive.path)
    if number != 1:
        return [archive]
    found = {each.path: each for each in streams}
    paths = takewhile(found.__contains__, (part_name(whole, n) for n in count(1)))
    return [found[path] for path in paths]


def _canonical(name: str) -> str:
    try:
        return str(parse_pdi(name))
    except IdentifierError:
        return name


def _inside(folder: Path, path: str) -> Path:
    """Return a path below a folder; a stored path that leads elsewhere is refused."""
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise StoreError(f"the path {path!r} leads out of the folder, and was not written")
    return folder.joinpath(*parts)
