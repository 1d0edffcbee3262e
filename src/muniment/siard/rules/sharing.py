"""Cells that share what each should have for itself: one file, or one link (chapter 7).

Entries of the archive are marked when a cell refers to them. Of things outside there may be
millions, so DuckDB keeps a number for each, and finds those that are there twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

__all__ = ["Cells", "Shared", "SharedStore"]

_FIRST = 5


@dataclass(slots=True)
class Cells:
    """Cells of a run: what each refers to, its column and its row, both from 1."""

    goals: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def add(self, goal: str | int, column: int, row: int) -> None:
        """Note a cell that refers to the entry of a number, or to something outside."""
        if isinstance(goal, str):
            digest = hashlib.blake2b(goal.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            goal = int.from_bytes(digest, "little")
        self.goals.append(goal)
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

    def __init__(
        self, name: str, keep: Callable[[str, bytes, int], None], load: Callable[[str], Any]
    ) -> None:
        """``keep`` takes rows of a table; ``load`` returns a database that has made it of them."""
        self._name, self._keep, self._load = name, keep, load
        self._empty = True

    def add(self, table: int, cells: Cells, rows_before: int) -> None:
        """Take the cells of a run."""
        if not cells.goals:
            return
        columns = {
            "goal": pa.array(cells.goals, pa.uint64()),
            "t": pa.array([table] * len(cells.goals), pa.int32()),
            "c": pa.array(cells.columns, pa.int32()),
            "n": pa.array([row + rows_before for row in cells.rows], pa.int64()),
        }
        self._empty = False
        run = pa.table(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, run.schema) as writer:
            writer.write_table(run)
        self._keep(self._name, sink.getvalue().to_pybytes(), rows_before)

    def shared(self) -> tuple[int, Iterator[Shared]]:
        """Return how many things several cells refer to, and the first of them."""
        if self._empty:
            return 0, iter(())
        db = self._load(self._name)
        several = f"SELECT goal FROM {self._name} GROUP BY goal HAVING count(*) > 1"
        ((total,),) = db.execute(f"SELECT count(*) FROM ({several})").fetchall()
        if not total:
            return 0, iter(())
        cells = (
            f"SELECT goal, t, c, n FROM {self._name} WHERE goal IN "
            f"(SELECT goal FROM ({several}) ORDER BY goal LIMIT {_FIRST}) ORDER BY goal, t, n, c"
        )
        groups: dict[int, list[tuple[int, int, int]]] = {}
        for goal, table, column, row in db.execute(f"{cells} LIMIT 10000").fetchall():
            groups.setdefault(goal, []).append((table, column, row))
        found = (Shared(group[0], group[1], len(group)) for group in groups.values())
        return total, found
