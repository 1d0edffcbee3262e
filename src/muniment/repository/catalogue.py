"""The catalogue: every name the store knows, and the file, byte and length where it leads.

An SQLite file that can be deleted at any time: the tapes and ARC files say everything again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from muniment.arc import ArcRecord
from muniment.errors import StoreError
from muniment.files import disk_errors
from muniment.repository.entries import Entry

__all__ = ["Catalogue", "File", "Found", "Stream"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS file (
    id INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, place INTEGER NOT NULL,
    name TEXT NOT NULL, sealed INTEGER NOT NULL, base INTEGER NOT NULL, end INTEGER NOT NULL,
    facts TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS file_open ON file (id) WHERE NOT sealed;
CREATE TABLE IF NOT EXISTS record (
    file INTEGER NOT NULL, number INTEGER NOT NULL, identifier TEXT NOT NULL, date TEXT NOT NULL,
    offset INTEGER NOT NULL, length INTEGER NOT NULL, kind TEXT NOT NULL, sha256 TEXT NOT NULL,
    pdi TEXT NOT NULL, size INTEGER NOT NULL, streams INTEGER NOT NULL, namespaces TEXT,
    PRIMARY KEY (file, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS record_identifier ON record (identifier);
CREATE INDEX IF NOT EXISTS record_date ON record (date, file, number);
CREATE TABLE IF NOT EXISTS name (
    name TEXT NOT NULL, kind TEXT NOT NULL, file INTEGER NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (name, file, number, kind)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stream (
    identifier TEXT NOT NULL, kind TEXT NOT NULL, date TEXT NOT NULL, media_type TEXT NOT NULL,
    sha256 TEXT NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, block INTEGER NOT NULL,
    size INTEGER NOT NULL, file INTEGER NOT NULL,
    PRIMARY KEY (identifier, file, offset)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS membership (
    kind TEXT NOT NULL, name TEXT NOT NULL, file INTEGER NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (kind, name, file, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS membership_record ON membership (file, number);
CREATE TABLE IF NOT EXISTS stamp (
    of_file INTEGER NOT NULL, of_number INTEGER NOT NULL, moment TEXT NOT NULL,
    PRIMARY KEY (of_file, of_number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS stamp_moment ON stamp (moment, of_file, of_number);
CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""
VERSION = 3
_WAIT = 600_000  # ms that one writer waits for another
_RECORD = (
    "file, number, identifier, date, offset, length, kind, sha256, pdi, size, streams, namespaces"
)


class File(NamedTuple):
    """A tape or an ARC file; offsets of its records count from ``base``."""

    id: int
    uri: str
    kind: str
    place: int
    name: str
    sealed: bool
    base: int
    end: int
    facts: dict[str, Any]


class Found(NamedTuple):
    """A record, and where it lies."""

    file: int
    number: int
    identifier: str
    date: str
    offset: int
    length: int
    kind: str
    sha256: str
    pdi: str
    size: int
    streams: int
    namespaces: str | None


class Stream(NamedTuple):
    """A datastream, and the file it lies in."""

    record: ArcRecord
    file: int


class Catalogue:
    """The catalogue of one store; each process opens its own."""

    def __init__(self, path: Path) -> None:
        self.path, self._place = path, str(path)
        self._db = apsw.Connection(str(path))
        self._db.set_busy_timeout(_WAIT)
        self._db.pragma("journal_mode", "wal")
        self._db.pragma("synchronous", "normal")
        self._db.pragma("cache_size", -65536)
        self.fresh = self._db.pragma("user_version") != VERSION
        if self.fresh:
            with self.change():
                self._db.execute(_SCHEMA)
                self._db.pragma("user_version", VERSION)
        self._inode = path.stat().st_ino

    @property
    def replaced(self) -> bool:
        """Whether somebody deleted the file while it was in use."""
        try:
            return os.stat(self._place).st_ino != self._inode  # noqa: PTH116  asked all the time
        except FileNotFoundError:
            return True

    @contextmanager
    def change(self) -> Iterator[None]:
        """Change the catalogue, alone: other writers wait, readers do not notice."""
        with disk_errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def clear(self) -> None:
        """Forget everything."""
        for table in ("file", "record", "name", "stream", "membership", "stamp", "state"):
            self._db.execute(f"DELETE FROM {table}")

    # Files

    def add_file(self, uri: str, kind: str, place: int, name: str, facts: dict[str, Any]) -> int:
        """Note a file that is being written."""
        known = self._one("SELECT id FROM file WHERE uri = ?", (uri,))
        if known is not None:
            raise StoreError(f"there is already a file {uri}: {self.file(known[0]).name}")
        question = "INSERT INTO file VALUES (NULL, ?, ?, ?, ?, 0, 0, 0, ?)"
        self._db.execute(question, (uri, kind, place, name, json.dumps(facts)))
        return self._db.last_insert_rowid()

    def set_file(self, file: int, **columns: Any) -> None:
        """Change what is known of a file: name, sealed, base, end, facts."""
        if "facts" in columns:
            columns["facts"] = json.dumps(columns["facts"])
        names = ", ".join(f"{name} = ?" for name in columns)
        self._db.execute(f"UPDATE file SET {names} WHERE id = ?", (*columns.values(), file))

    def remove_file(self, file: int) -> None:
        """Forget a file in which nothing was kept."""
        self._db.execute("DELETE FROM file WHERE id = ?", (file,))

    def drop_file(self, file: int) -> None:
        """Forget a file and everything in it, which is slow."""
        for table in ("record", "name", "stream", "membership"):
            self._db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))
        self._db.execute("DELETE FROM stamp WHERE of_file = ?", (file,))
        self.remove_file(file)

    def unsealed(self) -> list[File]:
        """Return the files that are being written, as far as is known."""
        return [_file(row) for row in self._db.execute("SELECT * FROM file WHERE NOT sealed")]

    def file(self, number: int) -> File:
        """Return a file."""
        row = self._one("SELECT * FROM file WHERE id = ?", (number,))
        if row is None:
            raise StoreError("the catalogue is damaged; rebuild it with: muniment store reindex")
        return _file(row)

    def files(self, kind: str = "") -> list[File]:
        """Return all files, or those of a kind, in the order in which they came."""
        rows = self._db.execute("SELECT * FROM file WHERE ? IN ('', kind) ORDER BY id", (kind,))
        return [_file(row) for row in rows]

    def find_file(self, name: str) -> File | None:
        """Return a tape or an ARC file by its identifier, its UUID or its file name."""
        question = "SELECT * FROM file WHERE uri IN (?, 'urn:uuid:' || ?) OR name = ? LIMIT 1"
        row = self._one(question, (name, name, name))
        return None if row is None else _file(row)

    # Records

    def add_records(self, rows: Iterable[tuple[Found, Entry]], skip_known: bool = False) -> None:
        """Add records with all their names."""
        records, names, members = [], [], []
        for found, entry in rows:
            records.append(found)
            names += _names(found, entry)
            members += _memberships(found, entry)
        how = "INSERT OR IGNORE" if skip_known else "INSERT"
        marks = ", ".join("?" * 12)
        self._db.executemany(f"{how} INTO record VALUES ({marks})", records)
        self._db.executemany("INSERT OR IGNORE INTO name VALUES (?, ?, ?, ?)", names)
        self._db.executemany("INSERT OR IGNORE INTO membership VALUES (?, ?, ?, ?)", members)

    def record(self, identifier: str) -> Found | None:
        """Return a record by its package identifier."""
        row = self._one(f"SELECT {_RECORD} FROM record WHERE identifier = ?", (identifier,))
        return None if row is None else Found(*row)

    def named(self, name: str, kind: str = "") -> list[Found]:
        """Return the records that carry a name, oldest first."""
        question = "SELECT DISTINCT file, number FROM name WHERE name = ? AND ? IN ('', kind)"
        places = self._db.execute(question, (name, kind)).fetchall()
        question = f"SELECT {_RECORD} FROM record WHERE file = ? AND number = ?"
        rows = [self._one(question, place) for place in places]
        found = {row[2]: Found(*row) for row in rows if row is not None}
        return sorted(found.values(), key=lambda each: (each.date, each.file, each.number))

    def memberships(self, found: Found) -> list[tuple[str, str]]:
        """Return the foreign form and the collections of a record that came from elsewhere."""
        question = "SELECT kind, name FROM membership WHERE file = ? AND number = ?"
        rows = self._db.execute(question, (found.file, found.number))
        return [(str(kind), str(name)) for kind, name in rows]

    def groups(self, kind: str, file: int = -1) -> list[str]:
        """Return all foreign forms, or all collections that records from elsewhere name."""
        question = "SELECT DISTINCT name FROM membership WHERE kind = ? AND ? IN (-1, file)"
        return sorted(str(name) for (name,) in self._db.execute(question, (kind, file)))

    def set_stamps(self, rows: Iterable[tuple[int, int, str]]) -> None:
        """Note file, number and date of records that harvesters have to hear of again."""
        self._db.executemany("INSERT OR REPLACE INTO stamp VALUES (?, ?, ?)", rows)

    def is_named(self, name: str) -> bool:
        """Whether anything carries a name."""
        return self._one("SELECT 1 FROM name WHERE name = ? LIMIT 1", (name,)) is not None

    def which_named(self, names: Iterable[str]) -> set[str]:
        """Return those of many names that anything carries."""
        question = "SELECT j.value FROM json_each(?) j WHERE EXISTS (SELECT 1 FROM name n "
        listed = json.dumps(list(names))
        rows = self._db.execute(f"{question} WHERE n.name = j.value)", (listed,))
        return {name for (name,) in rows}

    def records(
        self, since: str = "", until: str = "9999", kind: str = "", file: int = -1,
        after: tuple[str, int, int] = ("", -1, -1), limit: int = -1,
    ) -> Iterator[Found]:  # fmt: skip
        """Yield records by date; ``after`` continues behind (date, file, number)."""
        rows = self._db.execute(
            f"SELECT {_RECORD} FROM record WHERE (date, file, number) > (?, ?, ?) AND date <= ? "
            "AND ? IN ('', kind) AND ? IN (-1, file) ORDER BY date, file, number LIMIT ?",
            (*max((since, -1, -1), after), until, kind, file, limit),
        )
        return (Found(*row) for row in rows)

    def on_file(self, file: int) -> Iterator[Found]:
        """Yield the records of a tape, in the order of the tape."""
        question = f"SELECT {_RECORD} FROM record WHERE file = ? ORDER BY number"
        return (Found(*row) for row in self._db.execute(question, (file,)))

    def counts(self) -> dict[str, int]:
        """Return how many records, objects, datastreams and bytes there are."""
        row = self._one(
            "SELECT count(*), coalesce(sum(kind = 'object'), 0), coalesce(sum(size), 0) FROM record"
        )
        streams = self._one("SELECT count(*) FROM stream")
        assert row is not None
        assert streams is not None
        return {"records": row[0], "objects": row[1], "bytes": row[2], "datastreams": streams[0]}

    # Datastreams

    def add_streams(self, rows: Iterable[Stream]) -> None:
        """Add datastreams."""
        marks = ", ".join("?" * 10)
        self._db.executemany(
            f"INSERT OR IGNORE INTO stream VALUES ({marks})",
            ((*stream.record[:9], stream.file) for stream in rows),
        )

    def stream(self, identifier: str, file: int = -1) -> Stream | None:
        """Return a datastream, of a certain file or of the first that has it."""
        question, values = "SELECT * FROM stream WHERE identifier = ?", (identifier, file)
        question += " AND file = ?" if file >= 0 else ""
        row = self._one(f"{question} LIMIT 1", values if file >= 0 else values[:1])  # by the key
        return None if row is None else Stream(ArcRecord(*row[:9]), row[9])

    def streams_named(self, identifier: str) -> list[ArcRecord]:
        """Return all datastreams of a name; only captures of the web share one."""
        rows = self._db.execute("SELECT * FROM stream WHERE identifier = ?", (identifier,))
        return [ArcRecord(*row[:9]) for row in rows]

    def streams_in(self, file: int) -> Iterator[ArcRecord]:
        """Yield the datastreams of an ARC file, in its order."""
        rows = self._db.execute("SELECT * FROM stream WHERE file = ? ORDER BY offset", (file,))
        return (ArcRecord(*row[:9]) for row in rows)

    def stream_names(self, after: str, limit: int, file: int = -1) -> list[str]:
        """Return names of datastreams behind a name, in the order of names, each once."""
        question = "SELECT DISTINCT identifier FROM stream WHERE identifier > ? AND ? IN (-1, file)"
        rows = self._db.execute(f"{question} ORDER BY identifier LIMIT ?", (after, file, limit))
        return [name for (name,) in rows]

    def answer(self, question: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Answer a question in SQL, for readers with an order of their own."""
        return iter(self._db.execute(question, values))

    # Small things that are worth remembering

    def state(self, key: str) -> Any:
        """Return a remembered value, None if there is none."""
        row = self._one("SELECT value FROM state WHERE key = ?", (key,))
        return None if row is None else row[0]

    def set_state(self, key: str, value: Any) -> None:
        """Remember a value."""
        self._db.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (key, value))

    def _one(self, question: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._db.execute(question, values).fetchone()
        return row


def _file(row: tuple[Any, ...]) -> File:
    number, uri, kind, place, name, sealed, base, end, facts = row
    return File(number, uri, kind, place, name, bool(sealed), base, end, json.loads(facts))


def _names(found: Found, entry: Entry) -> list[tuple[str, str, int, int]]:
    """Return every name of a record: contents, its PDI with and without version, datastreams."""
    names = [(name, "content", found.file, found.number) for name in entry.contents]
    if entry.pdi:
        generic = entry.pdi.rsplit(".", 2)[0]
        for name in {entry.pdi, generic, entry.pdi.rsplit(".", 1)[0]}:
            names.append((name, "pdi", found.file, found.number))
    names += [(name, "stream", found.file, found.number) for name in entry.streams]
    return names


def _memberships(found: Found, entry: Entry) -> list[tuple[str, str, int, int]]:
    place = found.file, found.number
    forms = [("form", entry.form, *place)] if entry.form else []
    return forms + [("collection", name, *place) for name in entry.collections]
