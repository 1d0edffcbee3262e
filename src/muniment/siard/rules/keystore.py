"""Primary, candidate and foreign keys judged, in bounded memory however large the tables are.

A file keeps the key columns. Of the few rows of a small table Python proves in a moment that they
keep a key; there may be thousands of such tables. Any other key is for DuckDB, which groups and
joins, spills to disk where memory does not suffice, and finds the rows that break it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from muniment.siard.rules.archive import TableFiles
from muniment.siard.rules.keys import KeyColumns
from muniment.siard.rules.sharing import SharedStore
from muniment.sql.model import ForeignKey, UniqueKey

__all__ = ["KeyStore"]

_MEMORY = "100MB"
_FIRST = 5
_AT_ONCE = 200_000  # rows that DuckDB is given together
_SMALL = 1 << 16  # bytes of key columns that Python looks at sooner than DuckDB starts a query
_ARROW = {"BIGINT": pa.int64(), "BLOB": pa.binary()}

_Rows = list[tuple[Any, ...]]


class _Runs:
    """The key columns of runs of rows, in a file, and where those of each table lie."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._places: dict[str, array[int]] = {}  # of each run: offset, size, and the rows before
        self._end = 0

    def close(self) -> None:
        self._file.close()

    def add(self, name: str, data: bytes, rows_before: int) -> None:
        """Keep a run of the table of a name."""
        self._file.seek(self._end)
        self._file.write(data)
        self._places.setdefault(name, array("Q")).extend((self._end, len(data), rows_before))
        self._end += len(data)

    def size(self, name: str) -> int:
        """How many bytes are kept of a table."""
        return sum(self._places.get(name, ())[1::3])

    def of(self, name: str) -> Iterator[pa.Table]:
        """Yield the runs of a table; their rows get their numbers."""
        places = iter(self._places.get(name, ()))
        for offset, size, before in zip(places, places, places, strict=True):
            self._file.seek(offset)
            run = pa.ipc.open_stream(self._file.read(size)).read_all()
            if "n" not in run.column_names:
                numbers = pa.array(range(before + 1, before + run.num_rows + 1), pa.int64())
                run = run.append_column("n", numbers)
            yield run


@dataclass(frozen=True, slots=True)
class KeyCase:
    """A broken key: one of the first cases, or the number of the others."""

    rule: str
    where: str
    message: str
    count: int
    severity: str | None


class KeyStore:
    """Keeps the key columns of all tables, and judges the keys once no more come."""

    def __init__(self, folder: Path) -> None:
        """What is added goes to a file first: DuckDB needs the memory that the workers have."""
        self._folder = folder
        self._tables: dict[str, dict[str, str]] = {}  # by name: the columns and their types
        self._loaded: set[str] = set()
        self._runs = _Runs(folder / "keys.runs")
        self.outer = SharedStore("outer_files", self._runs.add, self._load)
        self.links = SharedStore("links", self._runs.add, self._load)

    def close(self) -> None:
        self._runs.close()
        if "_db" in self.__dict__:
            self._db.close()

    def begin(self, number: int, columns: KeyColumns) -> None:
        """Make room for the key columns of the table of a number."""
        if columns.numbers:
            self._tables[f"t{number}"] = dict(columns.schema())

    def add(self, number: int, data: bytes, rows_before: int) -> None:
        """Take the key columns of a run."""
        if data:
            self._runs.add(f"t{number}", data, rows_before)

    # what DuckDB sees

    @cached_property
    def _db(self) -> Any:
        import duckdb

        db = duckdb.connect(str(self._folder / "keys.duckdb"))
        for setting, value in (
            ("memory_limit", _MEMORY), ("threads", "2"), ("temp_directory", str(self._folder)),
            ("preserve_insertion_order", "false"), ("checkpoint_threshold", "4MB"),
        ):  # fmt: skip
            db.execute(f"SET {setting} = '{value}'")
        return db

    @contextmanager
    def _seen(self, *names: str) -> Iterator[None]:
        """Let DuckDB see tables: small ones as they are kept, others in its own file."""
        small = [name for name in dict.fromkeys(names) if self._is_small(name)]
        try:
            for name in names:
                if name in small:
                    self._db.register(name, self._whole(name))
                else:
                    self._load(name)
            yield
        finally:
            for name in small:
                self._db.unregister(name)

    def _load(self, name: str) -> Any:
        """Give DuckDB what was kept of a table, many rows at a time: each time it syncs."""
        if name not in self._loaded:
            self._loaded.add(name)
            made = False
            for rows in _together(self._runs.of(name)):
                self._db.register("run", rows)
                into = f"INSERT INTO {name}" if made else f"CREATE TABLE {name} AS"
                self._db.execute(f"{into} SELECT * FROM run").fetchall()
                self._db.unregister("run")
                made = True
        return self._db

    # what Python proves

    def _is_small(self, name: str) -> bool:
        return self._runs.size(name) <= _SMALL

    def _whole(self, name: str) -> pa.Table:
        """All rows of a small table."""
        types = {column: _ARROW[type_] for column, type_ in self._tables[name].items()}
        empty = pa.schema([*types.items(), ("n", pa.int64())]).empty_table()
        return pa.concat_tables([*self._runs.of(name)] or [empty])

    def _rows(self, name: str, columns: list[str]) -> _Rows:
        whole = self._whole(name)
        return list(zip(*(whole[column].to_pylist() for column in columns), strict=True))

    def _is_unique(self, name: str, columns: list[str]) -> bool:
        """Whether a look at a small table proves that it keeps a key."""
        if not self._is_small(name):
            return False
        filled = [row for row in self._rows(name, columns) if None not in row]
        return len(set(filled)) == len(filled)

    def _refers(self, key: ForeignKey, ours: Any, theirs: Any) -> bool:
        """Whether a look at two small tables proves that one keeps its foreign key to the other."""
        types = [[type_ for _, type_ in self._texts(side)] for side in (ours, theirs)]
        if types[0] != types[1] or not (self._is_small(ours[0]) and self._is_small(theirs[0])):
            return False
        strict = key.match_type in ("FULL", "PARTIAL")
        parents = set(self._rows(*theirs))
        return all(
            row in parents if None not in row else not strict or not any(_filled(row))
            for row in self._rows(*ours)
        )

    # the verdicts

    def unique(self, number: int, each: TableFiles, key: UniqueKey, kind: str) -> Iterator[KeyCase]:
        """Yield the values that a key has more than once."""
        found = self._columns(number, each, key.columns)
        if found is None:
            return
        name, columns = found
        if self._is_unique(name, columns):
            return
        listed = ", ".join(columns)
        filled = " AND ".join(f"{column} IS NOT NULL" for column in columns)
        grouped = (
            f"SELECT {listed}, count(*) AS times, min(n) AS first, max(n) AS last FROM {name} "
            f"WHERE {filled} GROUP BY {listed} HAVING count(*) > 1"
        )
        where = f"{each.name}.{key.name}"
        with self._seen(name):
            yield from self._cases(
                grouped, len(columns), where,
                lambda values, times, first, last: (
                    f"{times} rows have the {kind} {values}, the first are {first} and {last}"
                ),
            )  # fmt: skip

    def _cases(
        self,
        query: str,
        width: int,
        where: str,
        say: Callable[..., str],
        severity: str | None = None,
    ) -> Iterator[KeyCase]:
        total = self._count(query)
        if not total:
            return
        rows = self._db.execute(f"{query} ORDER BY first LIMIT {_FIRST}").fetchall()
        for number, row in enumerate(rows):
            message = say(_shown(row[:width]), *row[width:])
            yield KeyCase("T_6.0-1", where, message, 1, severity)
            if number == len(rows) - 1 and total > len(rows):
                yield KeyCase("T_6.0-1", where, message, total - len(rows), severity)

    def _count(self, query: str) -> int:
        # Read to its end: DuckDB registers nothing while a result is under way.
        ((count,),) = self._db.execute(f"SELECT count(*) FROM ({query})").fetchall()
        return int(count)

    def foreign(
        self, child: tuple[int, TableFiles], key: ForeignKey, parent: tuple[int, TableFiles]
    ) -> Iterator[KeyCase]:
        """Yield the rows that refer to nothing."""
        ours = self._columns(*child, [r.column for r in key.references])
        theirs = self._columns(*parent, [r.referenced for r in key.references])
        if ours is None or theirs is None or self._refers(key, ours, theirs):
            return
        with self._seen(ours[0], theirs[0]):
            yield from self._orphans(f"{child[1].name}.{key.name}", key, ours, theirs)

    def _orphans(self, where: str, key: ForeignKey, ours: Any, theirs: Any) -> Iterator[KeyCase]:
        pairs = list(zip(self._texts(ours), self._texts(theirs), strict=True))
        full = " AND ".join(f"c.{column} IS NOT NULL" for column in ours[1])
        listed = ", ".join(f"c.{column}" for column in ours[1])
        goal = f"{key.referenced_schema}.{key.referenced_table}"
        # Without a collation nobody knows whether case and trailing spaces count: a row that only
        # they keep from its parent is told apart.
        exact, folded = (" AND ".join(same(a, b) for a, b in pairs) for same in (_equal, _alike))
        columns = f"{listed}, 1 AS times, c.n AS first, c.n AS last"
        strict = f"SELECT c.* FROM {ours[0]} c ANTI JOIN {theirs[0]} p ON {exact} WHERE {full}"
        if self._count(strict):
            self._db.execute(f"CREATE OR REPLACE TEMP TABLE orphan AS {strict}").fetchall()
            for join, why, severity in (
                ("ANTI", "", None),
                ("SEMI", ", but for case or trailing spaces", "warning"),
            ):
                query = f"SELECT {columns} FROM orphan c {join} JOIN {theirs[0]} p ON {folded}"
                yield from self._cases(
                    query, len(pairs), where,
                    lambda values, _times, first, _last, why=why: (
                        f"row {first} refers to {values}, which {goal} does not have{why}"
                    ),
                    severity,
                )  # fmt: skip
        if len(pairs) > 1 and key.match_type in ("FULL", "PARTIAL"):
            yield from self._partly_null(key, ours, theirs, pairs, where, listed)

    def _partly_null(
        self, key: ForeignKey, ours: Any, theirs: Any, pairs: Any, where: str, listed: str
    ) -> Iterator[KeyCase]:
        """MATCH FULL allows no row of which only a part is NULL; PARTIAL compares the rest."""
        some = " OR ".join(f"c.{column} IS NULL" for column in ours[1])
        not_all = " OR ".join(f"c.{column} IS NOT NULL" for column in ours[1])
        query = (
            f"SELECT {listed}, 1 AS times, c.n AS first, c.n AS last FROM {ours[0]} c "
            f"WHERE ({some}) AND ({not_all})"
        )
        if key.match_type == "PARTIAL":
            rest = " AND ".join(f"(c.{a[0]} IS NULL OR {_equal(a, b)})" for a, b in pairs)
            query += f" AND NOT EXISTS (SELECT 1 FROM {theirs[0]} p WHERE {rest})"
        yield from self._cases(
            query, len(pairs), where,
            lambda values, _times, first, _last: (
                f"row {first} refers to {values}, which MATCH {key.match_type} does not allow"
            ),
        )  # fmt: skip

    def _texts(self, found: tuple[str, list[str]]) -> list[tuple[str, str]]:
        types = self._tables[found[0]]
        return [(column, types[column]) for column in found[1]]

    def _columns(self, number: int, each: TableFiles, names: Any) -> tuple[str, list[str]] | None:
        """The stored columns of a key; None if one of them is not there or is no key column."""
        name = f"t{number}"
        stored = self._tables.get(name)
        if stored is None:
            return None
        numbers = {column.name: n for n, column in enumerate(each.table.columns, 1)}
        columns = [f"c{numbers[name]}" for name in names if name in numbers]
        if len(columns) != len(names) or not set(columns) <= stored.keys():
            return None
        return name, columns


def _together(runs: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join runs until there are many rows; at least one table comes, if there is a run."""
    held: list[pa.Table] = []
    rows = 0
    for run in runs:
        held.append(run)
        rows += run.num_rows
        if rows >= _AT_ONCE:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if held:
        yield pa.concat_tables(held)


def _filled(row: tuple[Any, ...]) -> Iterator[bool]:
    return (value is not None for value in row)


def _equal(ours: tuple[str, str], theirs: tuple[str, str]) -> str:
    if ours[1] == theirs[1]:
        return f"c.{ours[0]} = p.{theirs[0]}"
    return f"{_of('c', ours)} = {_of('p', theirs)}"


def _alike(ours: tuple[str, str], theirs: tuple[str, str]) -> str:
    """Whether two values are the same but for case and trailing spaces."""
    if "BIGINT" in (ours[1], theirs[1]):
        return _equal(ours, theirs)
    a, b = (f"lower(rtrim(CAST({side} AS VARCHAR)))" for side in (f"c.{ours[0]}", f"p.{theirs[0]}"))
    return f"{a} = {b}"


def _of(side: str, column: tuple[str, str]) -> str:
    """A column as bytes, whatever it is stored as."""
    name, type_ = column
    return f"{side}.{name}" if type_ == "BLOB" else f"CAST(CAST({side}.{name} AS VARCHAR) AS BLOB)"


def _shown(values: tuple[Any, ...]) -> str:
    """Return the values of a key as messages name them; NULL and the text 'NULL' are two things.

    >>> _shown((None, b"None", 5))
    "NULL, 'None', '5'"
    """
    return ", ".join("NULL" if value is None else repr(_text(value)) for value in values)


def _text(value: Any) -> str:
    return value[:60].decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
