"""What DuckDB keeps in memory while a file is made, and how it is made to let go of it.

It holds on to whatever it has written while memory lasts, and to indexes until the file has them. A
limit that holds during a statement would bound that, but is no way: where memory fails a statement
that brings rows, DuckDB forgets to take them out of its indexes again. So the limit is there
between statements, and what is in the file by then leaves the memory.

A statement holds all of an index that its rows touch: little if keys come in order, everything if
they come in none. Where that is more than is allowed, the index cannot be made. DuckDB
must not write its file when it likes to, since nobody could see what a statement held then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment.databases.duckdb.connection import Connection, connect, limit_memory
from muniment.databases.duckdb.types import quote, quote_text

__all__ = ["INDEX_MEMORY", "STAGED", "IndexesTooLarge", "Memory", "log_of"]

INDEX_MEMORY = 80_000_000  # bytes of indexes that a statement may hold
# The file where rows wait, as DuckDB knows it; it calls no file so: their names end before a dot.
STAGED = quote("staged.rows")
_HELD = 30 << 20  # bytes that DuckDB keeps from one statement to the next
_UNWRITTEN = 48 << 20  # bytes of indexes that may wait to be written to the file
_APART = 3  # statements between two such times: rows in no order bring all of an index back
_BLOCKS = 100  # tables whose rows are written together
_LOGGED = 4 << 20  # bytes of rows that may wait in the log: few, or wide ones
_SORTING = 80 << 20  # bytes beside those of indexes for a statement that can work on disk
_INDEXES = (
    "SELECT coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory()"
    " WHERE tag = 'ART_INDEX'"
)


class IndexesTooLarge(Exception):
    """A single statement held more of indexes than is allowed."""


def log_of(path: Path) -> Path:
    """DuckDB's write-ahead log of a file."""
    return path.with_name(f"{path.name}.wal")


class Memory:
    """A file in the making, one beside it where rows wait, and the memory that DuckDB takes."""

    def __init__(self, path: Path, staged: Path, most: int = INDEX_MEMORY) -> None:
        self.most = most
        self._path, self._staged = path, staged
        self._statements = 0  # since indexes were written to the file
        self._waiting = 0  # tables whose rows are in the other file
        self.connection = self._opened()

    def make_room(self) -> None:
        """Take from DuckDB what it does not need for the statement to come, which has no limit."""
        held = self._indexes()
        if held > self.most and self._statements == 1:
            raise IndexesTooLarge
        if _has_grown(log_of(self._staged)):
            self.connection.execute(f"CHECKPOINT {STAGED}")
        due = self._statements >= _APART and held > _UNWRITTEN
        if held > self.most or due or _has_grown(log_of(self._path)):
            self.connection.execute("CHECKPOINT")
            self._statements = 0
        self._give_back()
        self._statements += 1

    def let_go(self) -> None:
        """Write indexes to the file, if DuckDB keeps many; those it has only read it never forgets.

        Then the file is opened again, which looks at all of its tables: not after a few each time.
        """
        if self._indexes() > _HELD:
            self.connection.execute("CHECKPOINT")
            self._give_back()
        if self._indexes() > _HELD:
            self._open_again()
        self._statements = 0

    def keep_staged(self) -> None:
        """Write the file where rows wait now and then: all tables of it at once would fill memory.

        DuckDB holds a block of each table that it writes.
        """
        self._waiting += 1
        if self._waiting % _BLOCKS == 0:
            self.connection.execute(f"CHECKPOINT {STAGED}")
            self._give_back()

    @contextmanager
    def little(self) -> Iterator[None]:
        """Let what is run meanwhile work on disk; it fails if it needs more memory nevertheless."""
        limit_memory(self.connection, f"{(_SORTING + self.most) >> 20}MiB")
        try:
            yield
        finally:
            self.connection.execute("RESET memory_limit")

    def _give_back(self) -> None:
        limit_memory(self.connection, f"{_HELD >> 20}MiB")
        self.connection.execute("RESET memory_limit")

    def _open_again(self) -> None:
        self.connection.close()
        self.connection = self._opened()
        self._statements = 0

    def _opened(self) -> Connection:
        """Open the two files; no other can be reached."""
        connection = connect(self._path, read_only=False)
        connection.execute("SET checkpoint_threshold = '1TB'")
        # Rows that are in the file stay as they are: DuckDB would join those of small row groups,
        # and hold them for that, all earlier ones again each time that new ones come.
        connection.execute("SET max_vacuum_tasks = 0")
        connection.execute(f"ATTACH {quote_text(str(self._staged))} AS {STAGED}")
        connection.execute("SET enable_external_access = false")
        return connection

    def _indexes(self) -> int:
        found: int = self.connection.execute(_INDEXES).fetchone()[0]
        return found


def _has_grown(log: Path) -> bool:
    return log.exists() and log.stat().st_size > _LOGGED
