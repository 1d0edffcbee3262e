"""What DuckDB keeps in memory while a file is made, and how it is made to let go of it.

It holds on to whatever it has written while memory lasts, and to indexes until the file has them. A
limit that holds during a statement would bound that, but is no way: where memory fails a statement
that brings rows, DuckDB forgets to take them out of its indexes again. So the limit is there
between statements, and what is in the file by then leaves the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb

from muniment.databases.duckdb.connection import Connection

__all__ = ["Memory"]

_HELD = 32 << 20  # bytes that DuckDB keeps from one statement to the next
_UNWRITTEN = 48 << 20  # bytes of indexes that may wait to be written to the file
_APART = 3  # statements between two such times: rows in no order bring all of an index back
_SORTING = 192 << 20  # bytes for a statement that sorts, and can do that on disk
_INDEXES = (
    "SELECT coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory()"
    " WHERE tag = 'ART_INDEX'"
)


class Memory:
    """The memory of a connection that writes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._statements = 0  # since indexes were written to the file

    def make_room(self) -> None:
        """Take from DuckDB what it does not need for the statement to come, which has no limit."""
        self._statements += 1
        if self._statements > _APART and self._indexes() > _UNWRITTEN:
            self._connection.execute("CHECKPOINT")
            self._statements = 0
        self._limit(_HELD)
        self._connection.execute("RESET memory_limit")

    @contextmanager
    def little(self) -> Iterator[None]:
        """Let what is run meanwhile sort on disk; it fails if it needs more memory nevertheless."""
        self._limit(_SORTING)
        try:
            yield
        finally:
            self._connection.execute("RESET memory_limit")

    def _indexes(self) -> int:
        found: int = self._connection.execute(_INDEXES).fetchone()[0]
        return found

    def _limit(self, most: int) -> None:
        with suppress(duckdb.OutOfMemoryException):  # it needs more, and has given back the rest
            self._connection.execute(f"SET memory_limit = '{most >> 20}MiB'")
