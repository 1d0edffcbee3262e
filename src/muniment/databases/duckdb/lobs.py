"""The values of a DuckDB file that are too long for a batch, as streams.

Whoever asks DuckDB for one value gets it at the price of 2,048: it reads that many rows of a column
together, and holds those once more that were asked for. Long values are opened in the order of
rows. So some are read at once, and wait in a temporary file while those of other columns are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from muniment.databases.duckdb.widths import VECTOR
from muniment.databases.spool import Spool

__all__ = ["LongValues"]

_Ask = Callable[[str, int], Iterator[pa.RecordBatch]]  # SQL to its rows, so many at a time
_WAITING_BYTES = 1 << 25
_SHARES = 4  # of a vector, at most: DuckDB reads all of it for each


class LongValues:
    """Opens the long values of one table after the other."""

    def __init__(self, ask: _Ask) -> None:
        self._ask = ask
        self._relation = ""
        self._columns: dict[str, _Column] = {}

    def open(self, relation: str, value: str, is_long: str, rowid: int) -> BinaryIO:
        """Open a value of bytes, given SQL for it, for the rows, and for what makes it long."""
        if relation != self._relation:
            self.close()
            self._relation = relation
        if value not in self._columns:
            self._columns[value] = _Column(self._ask, relation, value, is_long)
        return self._columns[value].open(rowid)

    def close(self) -> None:
        for column in self._columns.values():
            column.spool.close()
        self._columns.clear()


@dataclass
class _Column:
    """The long values of a column, some of a vector at a time."""

    ask: _Ask
    relation: str
    value: str
    is_long: str
    last: int = -1  # the row that was asked for before
    vector: int = -1
    sizes: dict[int, int] = field(default_factory=dict)  # of its long values, by rowid
    spool: Spool = field(default_factory=Spool)
    places: dict[int, bytes] = field(default_factory=dict)  # in the spool, by rowid

    def open(self, rowid: int) -> BinaryIO:
        if rowid not in self.places:
            self._read(rowid, self._until(rowid))
        self.last = rowid
        return self.spool.open(self.places[rowid])

    def _until(self, rowid: int) -> int:
        """The last row whose value is read together with that of this row.

        That is another one only if rows are asked for in their order, and none is left out.
        """
        if not self.last < rowid <= self.last + 2 * VECTOR:
            return rowid
        if rowid // VECTOR != self.vector:
            self._look(rowid // VECTOR)
        if any(self.last < each < rowid for each in self.sizes):
            return rowid
        room = max(_WAITING_BYTES, sum(self.sizes.values()) // _SHARES) - self.sizes[rowid]
        until = rowid
        for each in sorted(each for each in self.sizes if each > rowid):
            room -= self.sizes[each]
            if room < 0:
                break
            until = each
        return until

    def _look(self, vector: int) -> None:
        """See how long the long values of a vector are."""
        first, sizes = vector * VECTOR, dict[int, int]()
        sql = self._query(f"octet_length({self.value})", first, first + VECTOR - 1)
        for rows in self.ask(sql, VECTOR):
            sizes |= zip(rows["rowid"].to_pylist(), rows["found"].to_pylist(), strict=True)
        self.vector, self.sizes = vector, sizes

    def _read(self, first: int, last: int) -> None:
        self.spool.close()
        self.spool, self.places = Spool(), {}
        for rows in self.ask(self._query(self.value, first, last), 1):
            value = memoryview(rows["found"][0].as_buffer())
            self.places[rows["rowid"][0].as_py()] = self.spool.keep(value)

    def _query(self, what: str, first: int, last: int) -> str:
        some = f"rowid BETWEEN {first} AND {last} AND ({self.is_long})"
        return f"SELECT rowid, {what} AS found FROM {self.relation} AND {some}"
