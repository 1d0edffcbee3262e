"""The index over a journal: an SQLite file that can be deleted at any time and is made again.

``catch_up`` reads what the journal gained since the last time. The place up to which it has read is
kept in the same transaction, so the index always is the journal up to some line. Much at once is
read without the secondary indexes, which are sorted anew at the end: rows come in the order of the
primary keys, while digests would be put in at random places.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from muniment.files import disk_errors
from muniment.names.journal import Journal, Mark, State

__all__ = ["Index", "index_id"]

_VERSION = 4
_AT_ONCE = 1 << 25  # octets of the journal that are read in one transaction
_MAPPED = 1 << 36
_MUCH = 1 << 25  # octets behind which it is cheaper to sort the secondary indexes anew

# Serial numbers are kept as numbers and so sort as such; days as YYYYMMDD. A key column without a
# type holds either kind of unique id.
_TABLES = """
CREATE TABLE mark (journal_offset INTEGER, lines INTEGER, digest BLOB, sorted INTEGER);
INSERT INTO mark VALUES (0, 0, zeroblob(32), 0);
CREATE TABLE series (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
CREATE TABLE block (
    series INTEGER, day INTEGER, first INTEGER, last INTEGER, format TEXT, at TEXT,
    PRIMARY KEY (series, day, first)) WITHOUT ROWID;
CREATE TABLE name (
    series INTEGER, day INTEGER, id, folded TEXT, format TEXT, at TEXT,
    foreign_kind TEXT, foreign_value TEXT,
    PRIMARY KEY (series, day, id)) WITHOUT ROWID;
CREATE TABLE binding (
    series INTEGER, day INTEGER, id, version INTEGER, format TEXT,
    digest BLOB, length INTEGER, location TEXT, at TEXT,
    PRIMARY KEY (series, day, id, version, format)) WITHOUT ROWID;
CREATE TABLE location (
    series INTEGER, day INTEGER, id, version INTEGER, format TEXT,
    location TEXT, source TEXT, at TEXT, ended TEXT,
    PRIMARY KEY (series, day, id, version, format, location)) WITHOUT ROWID;
CREATE TABLE tombstone (
    series INTEGER, day INTEGER, id, version INTEGER, format TEXT, at TEXT, body TEXT,
    PRIMARY KEY (series, day, id, version, format)) WITHOUT ROWID;
CREATE TABLE assertion (
    line INTEGER PRIMARY KEY, subject TEXT, predicate TEXT, value TEXT, actor TEXT, at TEXT);
CREATE TABLE event (line INTEGER PRIMARY KEY, kind TEXT, subject TEXT, body TEXT);
CREATE TABLE target (
    target TEXT, line INTEGER, urn TEXT, PRIMARY KEY (target, line, urn)) WITHOUT ROWID;
"""
_SECONDARY = {
    "name_folded": "name (series, day, folded)",
    "name_foreign": "name (foreign_kind, foreign_value) WHERE foreign_kind IS NOT NULL",
    "binding_archive": "binding (digest) WHERE format='siard'",
    "assertion_subject": "assertion (subject, predicate)",
    "assertion_value": "assertion (predicate, value)",
    "event_subject": "event (kind, subject)",
}


def index_id(unique_id: str) -> str | int:
    """Return a unique id as the index keeps it: serial numbers as numbers."""
    if unique_id.isdigit() and unique_id[0] != "0" and len(unique_id) < 19:
        return int(unique_id)
    return unique_id


Apply = Callable[[apsw.Connection, "Index", int, dict[str, Any]], None]


class Index:
    """The index file of a journal, one connection per process."""

    def __init__(self, path: Path, apply: Apply) -> None:
        self.path, self._apply = path, apply
        self.db: Any = self._opened()  # its rows may hold anything
        self._series: dict[str, int] = {}
        self._mark: Mark | None = None
        self._mapped = False

    def _opened(self) -> apsw.Connection:
        try:
            return self._connected()
        except (apsw.FullError, apsw.BusyError):
            raise  # it is as good as it was
        except apsw.Error:
            self._remove()  # another version, or damaged: it is made again
            return self._connected()

    def _connected(self) -> apsw.Connection:
        db = apsw.Connection(str(self.path), statementcachesize=200)
        db.set_busy_timeout(600_000)  # somebody may be reading all of the journal
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", "normal")
        db.pragma("cache_size", -65536)
        with _transaction(db):
            if db.pragma("user_version") == 0:
                db.execute(_TABLES)
                db.pragma("user_version", _VERSION)
        if db.pragma("user_version") != _VERSION:
            db.close()
            raise apsw.Error("another version")
        return db

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    def is_at(self, end: Mark) -> bool:
        """Whether the index has read up to a place; looks, and waits for nobody."""
        if self._mark != end:
            found = self.mark()
            self._mark = found if found == end else self._mark
        return self._mark == end

    def mark(self) -> Mark:
        """Return the place in the journal up to which the index has read."""
        sql = "SELECT journal_offset, lines, digest FROM mark"
        offset, lines, digest = next(self.db.execute(sql))
        return Mark(offset, lines, digest)

    def catch_up(self, journal: Journal, state: State) -> None:
        """Read what the journal has and the index does not."""
        if self._mark == state.end:
            return
        while (mark := self.mark()).offset < state.end.offset:
            self._map(state.end.offset - mark.offset <= _MUCH)
            with _transaction(self.db):
                mark = self.mark()
                if mark.offset < state.end.offset:  # nobody else has done it meanwhile
                    self._read(journal, mark, state.end.offset)
        self._map(True)
        now = state if mark.offset <= state.end.offset else journal.state() or state
        wrong = mark.offset == now.end.offset and mark.digest != now.end.digest
        if wrong or mark.offset > now.end.offset:
            self._start_again()  # it is the index of another journal, or of one that lost its end
            return self.catch_up(journal, state)
        self._mark = mark

    def _map(self, wanted: bool) -> None:
        """Map the file into memory, except while so much is written that it would fill it."""
        if wanted != self._mapped:
            self.db.pragma("mmap_size", _MAPPED if wanted else 0)
            self._mapped = wanted

    def _read(self, journal: Journal, mark: Mark, until: int) -> None:
        """Read a stretch of the journal; at its end, or if that is near, all indexes are there."""
        self._series.clear()  # ids given in a transaction that failed are not there
        if until - mark.offset > _MUCH:
            self._unsort()
        end = mark
        for after, line in journal.records(mark, until):
            self._apply(self.db, self, after.lines, json.loads(line))
            end = after
            if end.offset - mark.offset > _AT_ONCE:
                break
        values = end.offset, end.lines, end.digest
        self.db.execute("UPDATE mark SET journal_offset=?, lines=?, digest=?", values)
        if end.offset >= until:
            self._sort()

    def _sorted(self) -> bool:
        return bool(self.db.execute("SELECT sorted FROM mark").fetchone()[0])

    def _unsort(self) -> None:
        if self._sorted():
            self.db.execute("".join(f"DROP INDEX {name};" for name in _SECONDARY))
            self.db.execute("UPDATE mark SET sorted=0")

    def _sort(self) -> None:
        if not self._sorted():
            for name, columns in _SECONDARY.items():
                self.db.execute(f"CREATE INDEX {name} ON {columns}")
            self.db.execute("UPDATE mark SET sorted=1")

    def _start_again(self) -> None:
        self.db.close()
        self._remove()
        self.db = self._connected()
        self._mark = None
        self._mapped = False
        self._series.clear()

    def series(self, name: str) -> int | None:
        """Return the number of a series, or None if nothing is known of it."""
        found = self._series.get(name)
        if found is None:
            row = self.db.execute("SELECT id FROM series WHERE name=?", (name,)).fetchone()
            if row is None:
                return None
            found = self._series[name] = row[0]
        return found

    def series_made(self, name: str) -> int:
        """Return the number of a series, a new one if need be; inside ``catch_up`` only."""
        found = self.series(name)
        if found is None:
            self.db.execute("INSERT INTO series (name) VALUES (?)", (name,))
            found = self._series[name] = self.db.last_insert_rowid()
        return found

    def events(
        self, kind: str, subject: str | None = None, without: str = ""
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield line number and content of the records of a kind (``registry.%`` for several)."""
        sql = "SELECT line, body FROM event WHERE kind LIKE ? AND kind<>?"
        values: tuple[str, ...] = (kind, without)
        if subject is not None:
            sql, values = f"{sql} AND subject=?", (*values, subject)
        for line, body in self.db.execute(f"{sql} ORDER BY line", values).fetchall():
            yield line, json.loads(body)


@contextmanager
def _transaction(db: apsw.Connection) -> Iterator[None]:
    with disk_errors():
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
