"""Words of titles and descriptions: an index of what the objects of a store say about themselves.

An SQLite file beside the catalogue that can be deleted at any time. It is made when somebody
searches, and goes on from where it is: each tape is read once, as far as it is written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from muniment.errors import MunimentError
from muniment.files import disk_errors
from muniment.repository.catalogue import File
from muniment.repository.store import Store

__all__ = ["Words"]

# Three characters in a row are found wherever they stand, in any script and without accents.
_SCHEMA = """
CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5(
    words, identifier UNINDEXED, tokenize = "trigram remove_diacritics 1"
);
CREATE TABLE IF NOT EXISTS tape (
    uri TEXT PRIMARY KEY, number INTEGER NOT NULL, complete INTEGER NOT NULL
) WITHOUT ROWID;
"""
_VERSION = 1
_BATCH = 200  # records that are added at once
_SHORTEST = 3
_WAIT = 10_000  # ms that one reader waits for another


class Words:
    """The index of a store's words; each thread opens its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        path = store.folder / "words.db"
        with disk_errors():
            self._db = _opened(path)

    def __enter__(self) -> Words:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def catch_up(self, seconds: float) -> bool:
        """Read what was added to the store since; return whether that is all."""
        end = time.monotonic() + seconds
        known = {u: bool(c) for u, c in self._db.execute("SELECT uri, complete FROM tape")}
        for file in self._store.catalogue.files("tape"):
            while not known.get(file.uri):
                if time.monotonic() > end:
                    return False
                if not self._read_some(file):
                    break
        return True

    def _read_some(self, file: File) -> bool:
        """Add some records of a tape; return whether there were any."""
        with disk_errors(), self._alone():
            row = self._db.execute("SELECT number FROM tape WHERE uri = ?", (file.uri,)).fetchone()
            last = -1 if row is None else row[0]
            found = list(
                self._store.catalogue.answer(
                    "SELECT identifier, number, kind FROM record WHERE file = ? AND number > ? "
                    "ORDER BY number LIMIT ?",
                    (file.id, last, _BATCH),
                )
            )
            self._db.executemany(
                "INSERT INTO said VALUES (?, ?)",
                ((self._said(name), name) for name, _, kind in found if kind == "object"),
            )
            complete = file.sealed and len(found) < _BATCH
            last = found[-1][1] if found else last
            self._db.execute(
                "INSERT OR REPLACE INTO tape VALUES (?, ?, ?)", (file.uri, last, complete)
            )
        return len(found) == _BATCH

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process at a time add to the index; the others find what it added."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def _said(self, identifier: str) -> str:
        """All that an object says about itself; nothing, if it cannot be read."""
        record = self._store.catalogue.record(identifier)
        try:
            thing = self._store.object(record) if record is not None else None
        except (MunimentError, OSError):  # health and verify say so; a search goes on
            return ""
        return "\n".join(value for _, value in thing.metadata) if thing is not None else ""

    def find(self, words: str, before: int | None = None) -> Iterator[tuple[int, str]]:
        """Yield the package identifiers of objects that have all words, the latest first.

        Each comes with its place; ``before`` goes on behind a place.
        """
        conditions = ["rowid < ?"]
        long = [word for word in words.split() if len(word) >= _SHORTEST]
        matches = " AND ".join('"' + word.replace('"', '""') + '"' for word in long)
        parameters: list[str | int] = [1 << 62 if before is None else before]
        if matches:
            conditions.append("said MATCH ?")
            parameters.append(matches)
        for word in words.split():
            if len(word) < _SHORTEST:
                conditions.append("words LIKE ? ESCAPE '\\'")
                escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
                parameters.append(f"%{escaped}%")
        question = f"SELECT rowid, identifier FROM said WHERE {' AND '.join(conditions)}"
        for rowid, identifier in self._db.execute(f"{question} ORDER BY rowid DESC", parameters):
            yield int(str(rowid)), str(identifier)

    def count(self) -> int:
        """How many objects can be searched."""
        (number,) = self._db.execute("SELECT count(*) FROM said").fetchone()  # type: ignore[misc]
        return int(str(number))


def _opened(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path))
    db.set_busy_timeout(_WAIT)
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "normal")
    if db.pragma("user_version") != _VERSION:
        with db:
            db.execute("DROP TABLE IF EXISTS said; DROP TABLE IF EXISTS tape;")
            db.execute(_SCHEMA)
            db.pragma("user_version", _VERSION)
    return db
