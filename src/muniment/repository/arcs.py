"""The ARC or WARC files of one batch: datastreams are digested while they are written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from muniment.arc import ArcRecord, format_of
from muniment.arc.index import ArcIndexWriter
from muniment.errors import StoreError
from muniment.files import open_plain
from muniment.objects import Datastream
from muniment.repository.catalogue import Stream
from muniment.repository.settings import new_uuid, now
from muniment.repository.storage import Growing, Place
from muniment.tape.write import SOFTWARE

if TYPE_CHECKING:
    from muniment.repository.session import Source
    from muniment.repository.store import Store

__all__ = ["ArcBatch"]

_SMALL, _TINY = 1 << 20, 1 << 15  # bytes that are read at once
_BUFFER = 4 << 20
_NO_DIGEST = "00" * 32


class Mark(NamedTuple):
    """A point to come back to."""

    files: int
    end: int
    buffered: int
    streams: int


class _Arc:
    """One file that grows."""

    def __init__(self, uri: str, file: int, growing: Growing, place: Place) -> None:
        self.uri, self.file, self.growing, self.place = uri, file, growing, place
        self.good = growing.position  # what is acknowledged
        self.kept = 0  # acknowledged datastreams
        self.index = ArcIndexWriter(place.index(growing.name))


class ArcBatch:
    """Writes datastreams into one file after the other."""

    def __init__(self, store: Store, tape_id: str) -> None:
        self._store, self._tape_id = store, tape_id
        self._form = format_of(store.settings.format)
        self._arcs: list[_Arc] = []
        self._fresh: list[Stream] = []
        self._buffer: list[bytes] = []
        self._buffered = 0

    def _end(self) -> int:
        return self._arcs[-1].growing.position + self._buffered if self._arcs else 0

    def mark(self) -> Mark:
        """Remember this point."""
        return Mark(len(self._arcs), self._end(), len(self._buffer), len(self._fresh))

    def cut(self, mark: Mark) -> None:
        """Forget everything since a point."""
        while len(self._arcs) > max(mark.files, 1):
            arc = self._arcs.pop()
            arc.index.abandon()
            arc.growing.remove()
            self._store.catalogue.remove_file(arc.file)
            self._buffer, self._buffered = [], 0
        if self._arcs:
            self.flush()
            end = mark.end if mark.files else self._arcs[-1].good
            self._arcs[-1].growing.cut(min(end, self._arcs[-1].growing.position))
        del self._fresh[mark.streams :]

    def add(self, source: Source) -> Datastream:
        """Write one file of an object."""
        if isinstance(source.data, bytes):
            return self._add_small(source, source.data)
        data = _read_small(source.data)
        if data is None:
            return self._add_large(source, source.data)
        return self._add_small(source, data)

    def _add_small(self, source: Source, data: bytes) -> Datastream:
        digest = hashlib.sha256(data).hexdigest()
        arc = self._room_for(len(data))
        uuid, date = new_uuid(), now()
        uri = f"urn:uuid:{uuid}"
        header = self._form.header(uuid, uri, date, source.media_type, len(data), digest)
        record = self._form.packed(b"".join((header, data, self._form.end)))
        self._note(arc, uri, source.media_type, date, digest, len(record), len(header), len(data))
        self._buffer.append(record)
        self._buffered += len(record)
        if self._buffered >= _BUFFER:
            self.flush()
        return Datastream(uri, source.path, source.media_type, len(data), digest, arc.uri)

    def _add_large(self, source: Source, path: Path) -> Datastream:
        """Copy a large file in one pass; its digest is put into the header afterwards."""
        if self._form.gzip:
            return self._add_packed(source, path)
        size = path.stat().st_size
        arc = self._room_for(size)
        self.flush()
        uuid, date = new_uuid(), now()
        uri, start = f"urn:uuid:{uuid}", arc.growing.position
        header = self._form.header(uuid, uri, date, source.media_type, size, _NO_DIGEST)
        arc.growing.write(header)
        digest = _copy(path, size, arc.growing)
        arc.growing.write(self._form.end)
        arc.growing.patch(
            start, self._form.header(uuid, uri, date, source.media_type, size, digest)
        )
        length = arc.growing.position - start
        self._note(arc, uri, source.media_type, date, digest, length, len(header), size, start)
        return Datastream(uri, source.path, source.media_type, size, digest, arc.uri)

    def _add_packed(self, source: Source, path: Path) -> Datastream:
        """Compress a large file, which is read twice: its digest stands in front of it."""
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            size = stream.tell()
        arc = self._room_for(size)
        self.flush()
        uuid, date = new_uuid(), now()
        uri, start = f"urn:uuid:{uuid}", arc.growing.position
        header = self._form.header(uuid, uri, date, source.media_type, size, digest)
        again = hashlib.sha256()

        def pieces() -> Iterator[bytes]:
            yield header
            with path.open("rb") as stream:
                while chunk := stream.read(_SMALL):
                    again.update(chunk)
                    yield chunk
            yield self._form.end

        for piece in self._form.pieces(pieces()):
            arc.growing.write(piece)
        if again.hexdigest() != digest:
            raise StoreError(f"{path} changed while it was read; nothing of it was added")
        length = arc.growing.position - start
        self._note(arc, uri, source.media_type, date, digest, length, len(header), size, start)
        return Datastream(uri, source.path, source.media_type, size, digest, arc.uri)

    def _note(
        self, arc: _Arc, uri: str, media_type: str, date: str, digest: str, length: int,
        block: int, size: int, start: int | None = None,
    ) -> None:  # fmt: skip
        offset = self._end() if start is None else start
        record = ArcRecord(uri, "resource", date, media_type, digest, offset, length, block, size)
        self._fresh.append(Stream(record, arc.file))

    def _room_for(self, size: int) -> _Arc:
        """Return the file that takes a datastream: a new one if the limit would be passed."""
        limit = self._store.settings.arc_limit
        if self._arcs and (self._end() + size <= limit or not self._holds_something()):
            return self._arcs[-1]
        self.flush()
        uuid = new_uuid()
        name, uri, date = f"{uuid}{self._form.suffix}", f"urn:uuid:{uuid}", now()
        catalogue, number = self._store.catalogue, self._store.roomiest()
        place = self._store.places[number]
        with catalogue.change():
            growing = place.begin(name)
            facts = {"software": SOFTWARE, "tape": self._tape_id}
            growing.write(self._form.first(uri, name, date, facts))
            file = catalogue.add_file(uri, "arc", number, name, {"tape": self._tape_id})
        self._arcs.append(_Arc(uri, file, growing, place))
        return self._arcs[-1]

    def _holds_something(self) -> bool:
        arc = self._arcs[-1]
        return arc.kept > 0 or any(stream.file == arc.file for stream in self._fresh)

    def flush(self) -> None:
        """Hand everything to the system."""
        if self._buffer:
            self._arcs[-1].growing.write(b"".join(self._buffer))
            self._buffer, self._buffered = [], 0

    def sync(self) -> None:
        """Make sure that everything survives a power cut."""
        for arc in self._arcs:
            if arc.growing.position != arc.good or not arc.kept:
                arc.growing.sync()

    def fresh(self) -> list[Stream]:
        """The datastreams since the last acknowledgement."""
        return self._fresh

    def note(self) -> None:
        """The catalogue takes these datastreams; note in it where each file ends."""
        for arc in self._arcs:
            records = [stream.record for stream in self._fresh if stream.file == arc.file]
            if records:
                self._store.catalogue.set_file(arc.file, end=arc.growing.position)
                arc.index.add(records)
                arc.kept += len(records)
                arc.good = arc.growing.position
        self._fresh = []

    def undo(self) -> None:
        """Cut off what was not acknowledged."""
        self._buffer, self._buffered, self._fresh = [], 0, []
        for arc in self._arcs:
            if arc.growing.position != arc.good:
                arc.growing.cut(arc.good)

    # The end

    def seal(self) -> list[str]:
        """Seal the files, inside a change of the catalogue; return their identifiers."""
        for arc in [arc for arc in self._arcs if not arc.kept]:
            arc.index.abandon()
            arc.growing.remove()
            self._store.catalogue.remove_file(arc.file)
        self._arcs = [arc for arc in self._arcs if arc.kept]
        for arc in self._arcs:
            arc.place.seal(arc.growing)
            self._store.catalogue.set_file(arc.file, sealed=1, end=arc.good)
        return [arc.uri for arc in self._arcs]

    def finish_indexes(self) -> None:
        """Let the index beside each sealed file appear."""
        for arc in self._arcs:
            arc.index.finish(arc.good)

    def discard(self) -> None:
        """Throw everything away."""
        for arc in self._arcs:
            arc.index.abandon()
            arc.growing.remove()
            self._store.catalogue.remove_file(arc.file)

    def close(self) -> None:
        """Let go of the files."""
        for arc in self._arcs:
            arc.growing.close()


def _read_small(path: Path) -> bytes | None:
    """Return a file that is small, None for one that is read piece by piece."""
    descriptor = open_plain(path)
    try:
        data = os.read(descriptor, _TINY)
        if len(data) == _TINY:
            if os.fstat(descriptor).st_size >= _SMALL:
                return None
            while more := os.read(descriptor, _SMALL):
                data += more
        return data
    finally:
        os.close(descriptor)


def _copy(path: Path, size: int, target: Growing) -> str:
    """Append a file of known size; return its digest."""
    digest, left = hashlib.sha256(), size
    with path.open("rb", buffering=0) as stream:
        while chunk := stream.read(_SMALL):
            left -= len(chunk)
            if left < 0:
                break
            digest.update(chunk)
            target.write(chunk)
    if left:
        raise StoreError(f"{path} changed while it was read; nothing of it was added")
    return digest.hexdigest()
