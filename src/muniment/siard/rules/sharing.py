"""Cells that share what each should have for itself: one file, or one link (chapter 7).

There may be millions of large objects, so DuckDB keeps where they lie, and finds those that lie in
one place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from muniment.siard.directory import Entry

__all__ = ["Cells", "Shared", "SharedStore"]

_FIRST = 5


@dataclass(slots=True)
class Cells:
    """Cells of a run: what each refers to, its column and its row, both from 1."""

    goals: list[bytes] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def add(self, goal: str | Entry, column: int, row: int) -> None:
        """Note a cell that refers to an entry of the archive, or to something outside."""
        if isinstance(goal, Entry):
            self.goals.append(goal.number.to_bytes(8, "big"))
        else:
            text = goal.encode("utf-8", "surrogatepass")
            self.goals.append(hashlib.blake2b(text, digest_size=16).digest())
        self.columns.append(column)
        self.rows.append(row)


@dataclass(frozen=True, slots=True)
class Shared:
    """Several cells that refer to one thing: two of them (table, column, row), and how many."""

    first: tuple[int, int, int]
    other: tuple[int, int, int]
    cells: int


class SharedStore:
    """Keeps what cells refer to, in the database of the keys."""

    def __init__(self, database: Any, name: str) -> None:
        self._db, self._name = database, name
        database.execute(f"CREATE TABLE {name} (goal BLOB, t INTEGER, c INTEGER, n BIGINT)")

    def add(self, table: int, cells: Cells, rows_before: int) -> None:
        """Take the cells of a run."""
        if not cells.goals:
            return
        run = pa.table(
            {
                "goal": pa.array(cells.goals, pa.binary()),
                "c": pa.array(cells.columns, pa.int32()),
                "n": pa.array(cells.rows, pa.int64()),
            }
        )
        self._db.register("run", run)
        self._db.execute(
            f"INSERT INTO {self._name} SELECT goal, {table}, c, n + {rows_before} FROM run"
        )
        self._db.unregister("run")

    def shared(self) -> tuple[int, Iterator[Shared]]:
        """Return how many things several cells refer to, and the first of them."""
        grouped = (
            "SELECT min((t, n, c)) AS a, max((t, n, c)) AS b, count(*) AS times "
            f"FROM {self._name} GROUP BY goal HAVING count(*) > 1"
        )
        total = self._db.execute(f"SELECT count(*) FROM ({grouped})").fetchone()[0]
        found = self._db.execute(f"{grouped} ORDER BY a LIMIT {_FIRST}").fetchall()
        return total, (Shared(_place(a), _place(b), times) for a, b, times in found)


def _place(found: Any) -> tuple[int, int, int]:
    table, row, column = found.values() if isinstance(found, dict) else found
    return table, column, row
