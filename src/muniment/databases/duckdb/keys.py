"""The keys of a DuckDB file in the making: with rows, after them, or not at all.

Keys wait until a table's rows are there, which is faster, or come first where the table has many
rows, which takes less memory. Foreign keys cannot be added, so a table with some comes after those
that it refers to. A table for which there is no such order, or whose rows break a key, is staged in
a file of its own, and costs the key but not the work. A key whose index takes too much memory is
given up; its rows are checked by a query instead.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import duckdb

from muniment.databases.duckdb.connection import first_line, translated
from muniment.databases.duckdb.memory import STAGED, IndexesTooLarge, Memory
from muniment.databases.duckdb.order import Order
from muniment.databases.duckdb.tables import (
    Key,
    NewTable,
    body_sql,
    breaking_sql,
    columns_sql,
    key_sql,
    keyed_body_sql,
    kind_of,
    names_sql,
    needs,
    only_foreign_key,
    refers_to,
    unique_keys,
    waiting_sql,
    without_key,
)
from muniment.databases.duckdb.types import quote
from muniment.errors import DatabaseError
from muniment.sql.leftout import LeftOut
from muniment.sql.model import ForeignKey

__all__ = ["Keys"]

_Name = tuple[str, str]  # of a schema and of a table
_LONGEST_CHAIN = 1000  # of rows that refer to rows of the same table
_FEW = 10_000  # rows that are referred to: an index of so few values is touched at its ends alone
_TOGETHER = 4  # steps for a statement that looks at all rows to find its own


class Keys:
    """Makes the tables of a file with the keys that their rows, DuckDB and the memory allow.

    ``tables`` is changed as keys turn out to be impossible; they are told in ``left_out``.
    """

    def __init__(
        self, memory: Memory, tables: dict[_Name, NewTable], left_out: list[LeftOut]
    ) -> None:
        self._memory, self._tables, self._left_out = memory, tables, left_out
        self._complete: set[_Name] = set()  # tables with all their rows
        self._given_up: list[tuple[NewTable, Key]] = []
        self._steps: dict[_Name, int] = {}  # staged rows for one statement

    def arrange(self) -> None:
        """Put tables after those that they refer to; stage those for which there is no such order.

        A row that refers to a row of its own table has to come after it, which nobody can tell yet.
        """
        order = Order({name: refers_to(made) for name, made in self._tables.items()})
        ready = [self._tables[name] for name in order.ready()]
        waiting = [self._tables[name] for name in order.waiting]
        self._tables.clear()
        self._tables.update({made.name: made for made in (*ready, *waiting)})
        for made in waiting:
            self.stage(made)

    def make_table(self, made: NewTable) -> NewTable:
        """Make a table for its rows, with all its keys if it comes with them; else stage it."""
        if not made.keyed:
            self._run(f"CREATE TABLE {made.place} ({', '.join(body_sql(made))})", made)
            return made
        with suppress(duckdb.Error):
            if refers_to(made) <= self._complete:
                self._execute(f"CREATE TABLE {made.place} ({keyed_body_sql(made)})")
                return made
        return self.stage(made)

    def stage(self, made: NewTable) -> NewTable:
        """Let rows wait in another file until all others are there."""
        made = self._tables[made.name] = replace(made, staged=True)
        self._drop(made)
        columns = ", ".join(columns_sql(replace(made, defaults={})))
        self._run(f"CREATE TABLE {STAGED}.{made.place} ({columns})", made)
        return made

    def make_again(self, made: NewTable) -> None:
        """Remove a table that has begun to fill, so that it can come again with other columns."""
        self._tables[made.name] = made
        self._drop(made)
        if made.staged:
            self._run(f"DROP TABLE {STAGED}.{made.place}", made)
            self.stage(made)
        elif not made.keyed:
            self.make_table(made)

    def give_up_one(self, made: NewTable) -> None:
        """Remove a table that has begun to fill, so that it can come again with one key less."""
        self._drop(made)
        self._give_up(made, self._heaviest(made))
        if not self._tables[made.name].keyed:
            self.make_table(self._tables[made.name])

    def complete(self, made: NewTable, step: int) -> None:
        """Add the keys that wait for the rows of a table, which are all there now.

        ``step`` is how many of them a statement can take.
        """
        if made.staged:
            self._steps[made.name] = step
            self._memory.keep_staged()
            return
        if not made.keyed:
            self._memory.make_room()
            self._add_unique(made, made.place)
        self._complete.add(made.name)
        self._memory.let_go()

    def make_staged(self) -> None:
        """Make the tables whose rows wait, each after those it refers to."""
        staged = {name: needs(made) for name, made in self._tables.items() if made.staged}
        order = Order(staged)
        while order.waiting:
            # Tables that form a ring start with any of them.
            for name in order.ready() if order.is_ready else [order.first()]:
                self._make_referring(self._tables[name], staged[name] & order.waiting.keys())
                self._memory.let_go()

    def explain(self) -> None:
        """Say of each key that was given up whether the rows keep it nevertheless."""
        for made, key in self._given_up:
            reason = f"its index takes more memory than {self._allowed()}; {self._kept(made, key)}"
            self._leave_out(made, key, reason)

    def make_index(self, sql: str) -> str | None:
        """Run a statement that makes an index; return why that fails."""
        try:
            return self._refusal(sql)
        except duckdb.OutOfMemoryException:
            return f"it takes more memory than {self._allowed()}"

    # Staged rows

    def _make_referring(self, made: NewTable, not_yet: set[_Name]) -> None:
        """Make a table with those of its keys that its rows and DuckDB allow."""
        for key in made.table.foreign_keys:
            if (key.referenced_schema, key.referenced_table) in not_yet:
                self._refuse(made, key, "its tables form a ring")
        if self._fill(self._tables[made.name]) is None:
            return
        self._add_unique(self._tables[made.name], f"{STAGED}.{made.place}")
        for key in self._tables[made.name].table.foreign_keys:
            alone = only_foreign_key(self._tables[made.name], key)
            if refused := self._fill(alone, keep=False):
                self._refuse(made, key, refused)
        if refused := self._fill(self._tables[made.name]):
            raise DatabaseError(
                f"DuckDB refused the rows of {made.where}: {refused}; --no-constraints restores "
                "them without keys, checks and NOT NULL"
            )

    def _fill(self, made: NewTable, keep: bool = True) -> str | None:
        """Make a table from its staged rows; return DuckDB's reason if it refuses."""
        while True:
            key = self._heaviest(made)
            try:
                return self._filled(made, keep)
            except (IndexesTooLarge, duckdb.OutOfMemoryException, duckdb.TransactionException):
                if key is None:
                    raise
                self._give_up(made, key)
                made = without_key(made, key)
            except duckdb.Error as error:
                return first_line(error)

    def _filled(self, made: NewTable, keep: bool) -> str | None:
        """The same, where memory and all else that DuckDB refuses for are errors."""
        self._execute(f"CREATE TABLE {made.place} ({keyed_body_sql(made)})")
        complete = False
        try:
            insert = self._insert_in_turn if waiting_sql(made) else self._insert_slices
            complete = insert(made)
        finally:
            if not (complete and keep):
                self._drop(made)
        return None if complete else "its rows refer to one another in a ring"

    def _insert_slices(self, made: NewTable) -> bool:
        """Insert the staged rows as they stand."""
        staged = f"{STAGED}.{made.place}"
        size = self._steps[made.name]
        # A column called rowid hides the number of a row; to pass others by takes longer.
        hidden = any(column.name.lower() == "rowid" for column in made.table.columns)
        for start in range(0, self._count(f"SELECT count(*) FROM {staged}"), size):
            self._memory.make_room()
            some = f"WHERE s.rowid >= {start} AND s.rowid < {start + size}"
            if hidden:
                some = f"LIMIT {size} OFFSET {start}"
            self._execute(f"{_insert_sql(made)} FROM {staged} AS s {some}")
        return True

    def _insert_in_turn(self, made: NewTable) -> bool:
        """Insert the staged rows, those that others of them refer to first; whether all went in.

        DuckDB wants the row referred to in the table before the statement starts.
        """
        staged = f"{STAGED}.{made.place}"
        left = self._count(f"SELECT count(*) FROM {staged}")
        sql = f"{_insert_sql(made)} FROM {staged} AS s {waiting_sql(made)}"
        size = _TOGETHER * self._steps[made.name]
        for _ in range(_LONGEST_CHAIN + left // size):
            self._memory.make_room()
            with self._memory.little():
                inserted = self._count(f"{sql} ORDER BY s.rowid LIMIT {size}")
            left -= inserted
            if not left or not inserted:
                break
        return not left

    def _add_unique(self, made: NewTable, place: str) -> None:
        """Add a table's unique keys; those that its rows break are left out."""
        for key in unique_keys(made):
            ways = [f"ALTER TABLE {place} ADD {key_sql(made, key)}"]
            if key != made.table.primary_key:  # older versions cannot add it, but its index
                columns = names_sql(key.columns)
                ways.append(f"CREATE UNIQUE INDEX {quote(key.name)} ON {place} ({columns})")
            try:
                reason = self._refusal(*ways)
            except duckdb.OutOfMemoryException:
                self._give_up(made, key)
            else:
                if reason is not None:
                    self._refuse(made, key, reason)

    def _refusal(self, *ways: str) -> str | None:
        """Run the first SQL that does not fail; return why the first one did if all do."""
        reasons = []
        for sql in ways:
            try:
                with self._memory.little():
                    self._execute(sql)
            except duckdb.OutOfMemoryException:
                raise
            except duckdb.Error as error:
                reasons.append(first_line(error))
            else:
                return None
        return reasons[0]

    # What is left out

    def _heaviest(self, made: NewTable) -> Key | None:
        """The key to give up first: to the largest table, as it has the most values."""

        def weight(key: ForeignKey) -> int:
            there = self._tables.get((key.referenced_schema, key.referenced_table))
            return there.table.rows or 0 if there else 0

        foreign = sorted(made.table.foreign_keys, key=weight, reverse=True)
        heavy = [key for key in foreign if weight(key) > _FEW]
        ordered: list[Key] = [*heavy, *reversed(unique_keys(made)), *foreign]
        return ordered[0] if ordered else None

    def _give_up(self, made: NewTable, key: Key | None) -> None:
        if key is None:
            raise DatabaseError(f"the rows of {made.where} take too much memory in DuckDB")
        self._given_up.append((made, key))
        self._tables[made.name] = without_key(self._tables[made.name], key)
        self._memory.let_go()

    def _refuse(self, made: NewTable, key: Key, reason: str) -> None:
        self._leave_out(made, key, reason)
        self._tables[made.name] = without_key(self._tables[made.name], key)

    def _leave_out(self, made: NewTable, key: Key, reason: str) -> None:
        name, sql = f"{key.name} of {made.where}", f"ALTER TABLE {made.place} ADD "
        kind, sql = kind_of(made, key), sql + key_sql(made, key)
        self._left_out.append(LeftOut(kind, name, reason.rstrip("."), sql))

    def _allowed(self) -> str:
        return f"--index-memory allows ({self._memory.most // 1_000_000} MB)"

    def _kept(self, made: NewTable, key: Key) -> str:
        try:
            with self._memory.little():
                broken = self._count(breaking_sql(made, key))
        except duckdb.Error as error:
            return f"its rows were not checked ({first_line(error)})"
        if not broken:
            return "all rows keep it"
        if isinstance(key, ForeignKey):
            return f"{broken} rows refer to no row" if broken > 1 else "1 row refers to no row"
        return f"{broken} rows are not unique"

    # Running SQL

    def _execute(self, sql: str) -> None:
        self._memory.connection.execute(sql)

    def _count(self, sql: str) -> int:
        found: int = self._memory.connection.execute(sql).fetchone()[0]
        return found

    def _run(self, sql: str, made: NewTable) -> None:
        with translated(f"table {made.where}"):
            self._execute(sql)

    def _drop(self, made: NewTable) -> None:
        self._run(f"DROP TABLE IF EXISTS {made.place}", made)


def _insert_sql(made: NewTable) -> str:
    """The start of a statement that takes rows over from a table s of the same columns."""
    values = ", ".join(f"s.{quote(name)}" for name in made.filled)
    return f"INSERT INTO {made.place} ({names_sql(made.filled)}) SELECT {values}"
