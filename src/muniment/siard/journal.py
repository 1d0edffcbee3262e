"""Archives that can be gone on with: the tables that are complete, in a journal beside the file.

While an archive is made with ``--resume``, ``NAME.siard.partial`` grows beside its final name (or
``NAME.siard_part001.partial`` and so on, if it is to be split), and ``NAME.siard.partial.journal``
gets one line of JSON for each table that is complete and synced. The next run cuts the file after
the last such table, proves its digest, and goes on from there. Large objects outside lie in folders
of their own meanwhile; the journal notes how far they had come with each table.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO

import muniment
from muniment.errors import SiardError, UsageError
from muniment.files import refuse_existing, settle
from muniment.finished import appearing
from muniment.siard.volumes import VolumeWriter
from muniment.siard.zip import ZipWriter
from muniment.sql.model import Database, Schema, Table
from muniment.sql.types import parse_type

__all__ = ["Journal", "open_journal"]

_FORMAT = 2
_RECORDS = 4096


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table that an earlier run, or this one, completed."""

    schema: str
    table: str
    rows: int
    fingerprint: str
    types: Mapping[str, str]  # of columns that had to be widened
    state: str  # the same for tables that were read from one state of the database
    objects: Mapping[str, Any]  # what is known about its large objects


@contextmanager
def open_journal(
    path: Path, request: Mapping[str, Any], split: int | None = None
) -> Iterator[Journal]:
    """Open what an earlier run left of the archive at ``path``, or start anew.

    ``request`` is what has to be the same in both runs. If the block fails, what is complete stays,
    and the error says so; if it succeeds, the archive appears under its name, in parts of ``split``
    bytes if that is given.
    """
    refuse_existing(path)
    partial = path.with_name(f"{path.name}.partial")
    log = partial.with_name(f"{partial.name}.journal")
    _refuse_strange(partial, log)
    with partial.open("a+b") as lock:
        _lock(lock, partial)
        stream = VolumeWriter(path, split, "{}.partial") if split else _Whole(partial, path)
        with ExitStack() as end:
            with closing(stream), log.open("a+b") as lines:
                wanted = {**request, "muniment": muniment.__version__}
                journal = Journal(stream, lines, partial, wanted, end)
                try:
                    yield journal
                    stream.sync()
                    refuse_existing(path)
                    end.enter_context(appearing(path))
                except BaseException as error:
                    if journal.kept:
                        error.add_note(journal.advice())
                    else:
                        stream.discard()
                        partial.unlink(missing_ok=True)
                        log.unlink()
                    raise
            stream.settle()
            partial.unlink(missing_ok=True)
            log.unlink()


class _Whole:
    """An archive in the making, in one piece."""

    def __init__(self, partial: Path, path: Path) -> None:
        self._partial, self._path = partial, path
        self._stream = partial.open("r+b")
        self.write, self.read = self._stream.write, self._stream.read
        self.seek, self.truncate = self._stream.seek, self._stream.truncate
        self.close = self._stream.close

    def sync(self) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def settle(self) -> None:
        settle(self._partial, self._path)

    def discard(self) -> None:
        return


def _refuse_strange(partial: Path, log: Path) -> None:
    """Refuse to take a file for the rest of an interrupted run that has no journal to show it."""
    parts = list(partial.parent.glob(_parts_of(partial)))
    if parts or (partial.exists() and partial.stat().st_size):
        lines = log.read_bytes().splitlines() if log.is_file() else []
        if not lines or not lines[0].startswith(b'{"journal": '):
            raise UsageError(
                f"{partial} is in the way, and nothing shows that an interrupted run left it; "
                "move it away"
            )


def _lock(stream: BinaryIO, partial: Path) -> None:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(f"another run is writing {partial}; wait for it or stop it") from error


@dataclass
class Journal:
    """The journal of one archive; ``kept`` are its complete tables."""

    stream: VolumeWriter | _Whole
    _lines: BinaryIO
    _partial: Path
    request: dict[str, Any]
    end: ExitStack  # closed when the archive has its name
    token: Callable[[], str | None] = lambda: None  # of the state of the source that is read now
    kept: list[_Kept] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pending: list[bytes] = []
        self._packed: list[bytes] = []
        self._records: list[bytes] = []  # of complete tables, packed
        self._position = 0
        self._digests: dict[str, str] = {}
        self._head: dict[str, Any] = {}
        self.beside: dict[str, Any] = {}  # how far objects outside had come with the last table
        self.companions: list[Path] = []  # the folders in which they lie meanwhile
        self._earlier = 0  # tables of earlier runs
        self._runs = 1
        self._read()

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier run left something to go on with."""
        return bool(self._head)

    @property
    def day(self) -> str | None:
        """The day on which the archive was begun; all its entries carry it."""
        return self._head.get("day")

    def begin(self, writer: ZipWriter, database: Database, day: str) -> None:
        """Note what an archive starts with, or go on with what is there."""
        writer.on_entry = self._note_record
        shape = _fingerprint([(s.name, s.folder, s.types) for s in database.schemas])
        if not self.is_resumed:
            self.stream.seek(0)
            self.stream.truncate()
            self._lines.truncate(0)
            for folder in ("content/", *(f"content/{s.folder}/" for s in database.schemas)):
                writer.folder(folder)
            head = {"journal": _FORMAT, "request": self.request, "day": day, "shape": shape}
            self._append(writer, {**head, "run": 1})
            return
        self._refuse_changes(database, shape)
        writer.go_on(self._position, _unpacked(self._records))
        if writer.digests() != self._digests:
            raise SiardError(
                "what the earlier run kept was changed since: its digest does not match. "
                f"Remove it and start anew: {self._names()}"
            )
        self._write({"run": self._runs})

    def completed(self, schema: Schema, table: Table) -> tuple[Table, Mapping[str, Any]] | None:
        """Return a table as it was written, with its rows and objects, if it is complete."""
        for kept in self.kept:
            if (kept.schema, kept.table) == (schema.name, table.name):
                return _widened(replace(table, rows=kept.rows), kept.types), kept.objects
        return None

    def keep(
        self,
        writer: ZipWriter,
        schema: Schema,
        table: Table,
        declared: Table,
        objects: Mapping[str, Any],
        beside: Mapping[str, Any],
    ) -> None:
        """Note that a table is complete; ``declared`` is what it was before types were widened.

        ``objects`` is what is known about its large objects, ``beside`` how far those outside are.
        """
        types = {
            column.name: str(column.type)
            for column, before in zip(table.columns, declared.columns, strict=True)
            if column.type != before.type
        }
        state = self.token() or f"run {self._runs}"
        fingerprint = _fingerprint((schema.name, replace(declared, rows=0)))
        kept = _Kept(schema.name, table.name, table.rows, fingerprint, types, state, objects)
        values = {name: getattr(kept, name) for name in _Kept.__slots__}
        self.stream.sync()
        self._append(writer, {"table": values, "beside": beside})
        self.kept.append(kept)

    def forget(self) -> None:
        """Forget what was written since the last table that is complete."""
        self._pending, self._packed = [], []

    def sentences(self) -> Iterator[str]:
        """Say what people have to know about an archive that was made in several runs."""
        states = [kept.state for kept in self.kept]
        changes = [n for n in range(1, len(states)) if states[n] != states[n - 1]]
        if changes:
            last = ", ".join(f"{self.kept[n - 1].schema}.{self.kept[n - 1].table}" for n in changes)
            yield (
                f"The rows were read in {len(changes) + 1} runs, between which the database may "
                f"have changed: each of {last} is the last table of one."
            )

    def notes(self) -> Iterator[str]:
        """Say what this run took over from earlier ones."""
        earlier = self.kept[: self._earlier]
        if not earlier:
            return
        same = not any(self.sentences())
        state = "the same state of the database" if same else "another state of the database"
        tables = f"{len(earlier)} tables are those" if len(earlier) > 1 else "1 table is that"
        yield f"{tables} of an earlier run, which read {state}"
        for kept in earlier:
            for column, type_ in kept.types.items():
                yield f"{kept.schema}.{kept.table}.{column} was archived as {type_}"

    def advice(self) -> str:
        """Return the sentence for a run that was interrupted."""
        tables = f"{len(self.kept)} tables are" if len(self.kept) > 1 else "1 table is"
        return (
            f"{tables} complete and kept in {self._partial}; run the same command with --resume "
            f"to go on, or remove {self._names()} to give up"
        )

    def _names(self) -> str:
        parts = [self._partial, *sorted(self._partial.parent.glob(_parts_of(self._partial)))]
        files = [*(path for path in parts if path.exists()), *self.companions]
        return f"{', '.join(map(str, files))} and {self._lines.name}"

    def _refuse_changes(self, database: Database, shape: str) -> None:
        for name, value in self._head["request"].items():
            now = self.request.get(name)
            if now != value:
                name = name.replace("_", " ")
                raise UsageError(
                    f"the earlier run had the {name} {value!r}, this one has {now!r}: use the "
                    f"same, or remove {self._names()} to start anew"
                )
        there = {(s.name, t.name): _fingerprint((s.name, replace(t, rows=0)))
                 for s, t in database.tables()}  # fmt: skip
        for kept in self.kept:
            if there.get((kept.schema, kept.table)) != kept.fingerprint:
                shape = ""
        if shape != self._head["shape"]:
            raise UsageError(
                "the definitions of the tables that are complete were changed since the earlier "
                f"run, or chosen otherwise; remove {self._names()} to start anew"
            )

    # The file

    def _read(self) -> None:
        self._lines.seek(0)
        end = 0
        for line in self._lines.read().splitlines(keepends=True):
            try:
                entry = json.loads(line) if line.endswith(b"\n") else None
                if entry is None or not self._take(entry):
                    break
            except (ValueError, KeyError, TypeError):
                break  # the run was stopped while it wrote this line
            end += len(line)
        self._lines.truncate(end)
        if not self.kept:
            self._head, self.beside = {}, {}
            self._records = []
        self._earlier = len(self.kept)
        self._runs += 1 if self.kept else 0

    def _take(self, entry: dict[str, Any]) -> bool:
        if not self._head and entry.get("journal") != _FORMAT:
            return False
        if "journal" in entry:
            self._head = entry
        if "table" in entry:
            self.kept.append(_Kept(**entry["table"]))
        if "run" in entry:
            self._runs = int(entry["run"])
        if "beside" in entry:
            self.beside = entry["beside"]
        if "position" in entry:
            self._records += [b64decode(each) for each in entry["records"]]
            self._position, self._digests = entry["position"], entry["digests"]
        return True

    def _append(self, writer: ZipWriter, entry: dict[str, Any]) -> None:
        self._pack()
        records = [b64encode(each).decode() for each in self._packed]
        self._packed = []
        state = {"position": writer.position, "digests": writer.digests(), "records": records}
        self._write({**entry, **state})

    def _write(self, entry: dict[str, Any]) -> None:
        self._lines.write(json.dumps(entry).encode() + b"\n")
        self._lines.flush()
        os.fsync(self._lines.fileno())

    def _note_record(self, record: bytes) -> None:
        self._pending.append(struct.pack("<L", len(record)) + record)
        if len(self._pending) >= _RECORDS:
            self._pack()

    def _pack(self) -> None:
        if self._pending:
            self._packed.append(zlib.compress(b"".join(self._pending), 1))
            self._pending = []


def _unpacked(packed: list[bytes]) -> Iterator[bytes]:
    for each in packed:
        data, at = zlib.decompress(each), 0
        while at < len(data):
            (size,) = struct.unpack_from("<L", data, at)
            yield data[at + 4 : at + 4 + size]
            at += 4 + size


def _parts_of(partial: Path) -> str:
    return f"{escape(partial.name.removesuffix('.partial'))}_part*.partial"


def _widened(table: Table, types: Mapping[str, str]) -> Table:
    columns = tuple(
        replace(column, type=parse_type(types[column.name])) if column.name in types else column
        for column in table.columns
    )
    return replace(table, columns=columns)


def _fingerprint(value: Any) -> str:
    """Frozen values of the model have one spelling each."""
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()
