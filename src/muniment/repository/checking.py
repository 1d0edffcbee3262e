"""The checks of a store: tapes by the exact parser, records and datastreams by their digests,
signatures by trusted keys, whole files by the last log.

What is done is noted beside the store, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

import apsw
from lxml import etree

from muniment.arc import ArcRecord, read_arc_file
from muniment.arc.digests import proved
from muniment.arc.records import is_datastream
from muniment.errors import DigestMismatch, FormatError, MunimentError
from muniment.objects import Datastream, read_object
from muniment.objects.model import referenced
from muniment.repository.catalogue import File, Found
from muniment.repository.entries import Entry, parse_entry
from muniment.repository.logs import Report, last_digests, receipts
from muniment.repository.signatures import DSIG, check_detached, check_enveloped
from muniment.repository.signatures import trusted as trusted_keys
from muniment.tape.document import standalone
from muniment.tape.exact import read_exactly, read_head
from muniment.tape.records import TapeRecord

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from muniment.repository.store import Store

__all__ = ["Check", "Throttle"]

_CHUNK = 1 << 20
_STATE = "verify.db"
_SIGNATURE = f'"{DSIG}"'.encode()


class Throttle:
    """Counts bytes, and waits when there were too many in a second."""

    def __init__(self, rate: float | None) -> None:
        self._rate, self._start, self.bytes = rate, time.monotonic(), 0

    def __call__(self, count: int) -> None:
        self.bytes += count
        if self._rate:
            ahead = self.bytes / self._rate - (time.monotonic() - self._start)
            if ahead > 0.01:
                time.sleep(ahead)


class Check:
    """One run over a store; what is wrong goes into its report."""

    def __init__(
        self, store: Store, throttle: Throttle, progress: Callable[[str, int], None]
    ) -> None:
        self.store, self.throttle, self._progress = store, throttle, progress
        self.report = Report()
        self._trust: list[Certificate] = trusted_keys(store.folder / "trust")
        self._state: apsw.Connection | None = None

    # Everything

    def everything(self, restart: bool) -> Report:
        """Check all sealed files, from where an interrupted run stopped."""
        state = self._open_state(restart)
        earlier = last_digests(self.store) | receipts(self.store)
        for kind in ("tape", "arc"):
            for file in self.store.catalogue.files(kind):
                done = state.execute("SELECT 1 FROM done WHERE name = ?", (file.name,)).fetchone()
                if file.sealed and not done:
                    with state:
                        self._file(file, earlier.get(file.name))
        self._unknown_files()
        self._missing_streams()
        return self._collected()

    def _open_state(self, restart: bool) -> apsw.Connection:
        path = self.store.folder / _STATE
        if restart:
            path.unlink(missing_ok=True)
        state = self._state = apsw.Connection(str(path))
        state.pragma("synchronous", "off")
        state.execute(
            "CREATE TABLE IF NOT EXISTS done (name TEXT PRIMARY KEY, size, sha256, records, "
            "datastreams, signatures, bytes);"
            "CREATE TABLE IF NOT EXISTS expected (stream TEXT, sha256 TEXT, record TEXT, found);"
            "CREATE INDEX IF NOT EXISTS by_stream ON expected (stream);"
            "CREATE TABLE IF NOT EXISTS problem (place TEXT, words TEXT);"
            "CREATE TABLE IF NOT EXISTS run (started TEXT);"
        )
        if state.execute("SELECT count(*) FROM run").get == 0:
            state.execute("INSERT INTO run VALUES (?)", (self.report.started,))
        return state

    def _file(self, file: File, earlier: str | None) -> None:
        before = self.throttle.bytes
        self.report.records = self.report.datastreams = self.report.signatures = 0
        try:
            digest = self._digest(file)
            if earlier and earlier != digest:
                self._problem(file.name, "the file is not the one that was verified before")
            (self._tape if file.kind == "tape" else self._arc)(file)
        except FileNotFoundError:
            digest = ""
            self._problem(file.name, "the file is missing")
        except FormatError as error:
            digest = ""
            self._problem(file.name, str(error))
        assert self._state is not None
        report, read = self.report, self.throttle.bytes - before
        self._state.execute(
            "INSERT INTO done VALUES (?, ?, ?, ?, ?, ?, ?)",
            (file.name, file.end, digest, report.records, report.datastreams, report.signatures,
             read),
        )  # fmt: skip

    def _digest(self, file: File) -> str:
        digest, size = hashlib.sha256(), 0
        with self.store.places[file.place].open(file.name) as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                self._count(file.name, len(chunk))
        if size != file.end:
            self._problem(file.name, f"the file has {size} bytes, not {file.end}")
        return digest.hexdigest()

    def _count(self, name: str, count: int) -> None:
        self.throttle(count)
        self._progress(name, count)

    def _tape(self, file: File) -> None:
        with (
            self.store.places[file.place].open(file.name) as stream,
            self.store.places[file.place].open(file.name) as beside,
        ):
            head = read_head(beside, file.name)
            for record in read_exactly(stream, file.name):
                self.report.records += 1
                beside.seek(record.offset)
                data = beside.read(record.length)
                entry = parse_entry(record.admin)
                self._record(file, record, data, entry)
                document = standalone(data, head, record.namespaces)
                self._document(record.identifier, document, self._expect)

    def _record(self, file: File, record: TapeRecord, data: bytes, entry: Entry | None) -> None:
        where = f"{file.name}, byte {record.offset}: {record.identifier}"
        digest = hashlib.sha256(data).hexdigest()
        if entry is not None and entry.sha256 != digest:
            self._problem(where, "the record is not what was written: its SHA-256 differs")
        known = self.store.catalogue.record(record.identifier)
        if known is None:
            self._problem(where, "the catalogue does not know the record; reindex")
        elif known.sha256 != digest and entry is None:
            self._problem(where, "the record is not what was imported: its SHA-256 differs")

    def _document(
        self, identifier: str, document: bytes, use: Callable[[str, Datastream], None]
    ) -> None:
        """Check the signatures of a document, and pass on what it says of its datastreams."""
        try:
            thing = read_object(document, identifier)
        except FormatError as error:
            self._problem(identifier, str(error))
            return
        streams = thing.streams if thing is not None else ()
        for stream in streams:
            if stream.identifier:
                use(identifier, stream)
        if _SIGNATURE in document:
            self._signatures(identifier, document, {s.identifier: s.sha256 for s in streams})

    def _signatures(self, identifier: str, document: bytes, digests: dict[str, str]) -> None:
        self.report.signatures += 1
        root = etree.fromstring(document)
        ours = [s for s in root.iter(f"{{{DSIG}}}Signature") if s.get("Id") != "datastreams"]
        if ours and (problem := check_enveloped(document, self._trust)):
            self._problem(identifier, problem)
        for problem in check_detached(
            document, lambda url: digests.get(referenced(url)[0], ""), self._trust
        ):
            self._problem(identifier, problem)

    def _expect(self, record: str, stream: Datastream) -> None:
        assert self._state is not None
        self._state.execute(
            "INSERT INTO expected VALUES (?, ?, ?, 0)", (stream.identifier, stream.sha256, record)
        )

    def _arc(self, file: File) -> None:
        with self.store.places[file.place].open(file.name) as stream:
            for record in read_arc_file(stream, file.name):
                if not is_datastream(record):
                    continue
                self.report.datastreams += 1
                self._stream(file.name, stream, record)

    def _stream(self, name: str, stream: BinaryIO, record: ArcRecord) -> None:
        position = stream.tell()
        where = f"{name}, byte {record.offset}: {record.identifier}"
        try:
            digest = proved(stream, name, record, self.throttle)
        except DigestMismatch as error:
            digest = error.found if error.algorithm == "SHA-256" else ""
            self._problem(where, "the datastream does not match the digest in its own header")
        stream.seek(position)
        assert self._state is not None
        rows = self._state.execute(
            "SELECT rowid, sha256, record FROM expected WHERE stream = ?", (record.identifier,)
        ).fetchall()
        for row, expected, by in rows:
            self._state.execute("UPDATE expected SET found = 1 WHERE rowid = ?", (row,))
            if expected and expected != digest:
                self._problem(where, f"the datastream is not the one that {by} describes")

    def _missing_streams(self) -> None:
        assert self._state is not None
        question = "SELECT record, stream FROM expected WHERE NOT found"
        rows: Any = self._state.execute(question).fetchall()
        for record, stream in rows:
            known = self.store.catalogue.stream(stream)
            if known is None:
                self._problem(record, f"its datastream {stream} is not in the store")

    def _unknown_files(self) -> None:
        known = {file.name for file in self.store.catalogue.files()}
        for place in self.store.places:
            for name in place.names():
                if name not in known:
                    self._problem(name, "the catalogue does not know this file; reindex")

    def _problem(self, where: str, words: str) -> None:
        if self._state is None:
            self.report.problems.append((where, words))
        else:
            self._state.execute("INSERT INTO problem VALUES (?, ?)", (where, words))

    def _collected(self) -> Report:
        """Return the report over all runs since the last one that was finished."""
        state, report = self._state, self.report
        assert state is not None
        report.started = str(state.execute("SELECT started FROM run").get)
        report.records = report.datastreams = report.signatures = 0
        rows: Any = state.execute("SELECT * FROM done ORDER BY rowid")
        for name, size, digest, records, streams, signatures, _ in rows:
            report.digests.append((name, size, digest))
            report.files += 1
            report.records += records
            report.datastreams += streams
            report.signatures += signatures
        problems: Any = state.execute("SELECT DISTINCT place, words FROM problem")
        report.problems = list(problems)
        return report

    def forget(self) -> None:
        """The run is finished: the next one begins anew."""
        if self._state is not None:
            self._state.close()
        (self.store.folder / _STATE).unlink(missing_ok=True)

    # A part

    def sampled(self, share: float) -> Report:
        """Check a random part of the records, each with its datastreams."""
        chooser = random.SystemRandom()
        self.report.scope = f"a sample of {share:.2%}"
        for found in self.store.catalogue.records():
            if chooser.random() < share:
                self._one(found)
        return self.report

    def _one(self, found: Found) -> None:
        self.report.records += 1
        try:
            data = self.store.read(found)
            self.throttle(len(data))
            if hashlib.sha256(data).hexdigest() != found.sha256:
                self._problem(found.identifier, "the record is not what was written")
            self._document(found.identifier, self.store.document(found), self._one_stream)
        except (MunimentError, OSError) as error:
            self._problem(found.identifier, str(error))

    def _one_stream(self, record: str, stream: Datastream) -> None:
        if self.store.catalogue.stream(stream.identifier) is None:
            self._problem(record, f"its datastream {stream.identifier} is not in the store")
            return
        self.report.datastreams += 1
        with self.store.open_stream(stream.identifier) as opened:
            digest = _digest_of(opened, self.throttle)
        if stream.sha256 and digest != stream.sha256:
            self._problem(stream.identifier, f"the datastream is not the one {record} describes")


def _digest_of(stream: BinaryIO, throttle: Throttle) -> str:
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
        throttle(len(chunk))
    return digest.hexdigest()
