"""How wide the rows of a table are, and so how many of them are read at once.

DuckDB reads 2,048 rows at a time, whatever their size, and holds all their values meanwhile. Of
that it copies as many rows as are asked for; and of what is made of them, a part is held as a
whole. So tables are weighed before they are read, one column after the other: where rows are wide,
fewer are asked for, parts are shorter, and very wide rows are read by nobody but one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import duckdb

from muniment.databases.duckdb.connection import Connection, asked
from muniment.databases.duckdb.types import (
    DuckType,
    Enumeration,
    Listing,
    Mapping,
    Record,
    Scalar,
    Union,
    predefined_type,
    quote_text,
)

__all__ = [
    "VECTOR", "Run", "WideColumn", "joined", "runs_of", "too_wide_for_many", "weight_sql",
]  # fmt: skip

VECTOR = 2048  # rows that DuckDB reads together
_RUN_VECTORS = 30  # half a row group: pieces of it are held by several processes at once
_RUN_BYTES = 1 << 22  # of what stays in the batches
_SHARES = 8  # of a vector, at most: DuckDB reads all of it for each
_FETCH_ROWS = 8192
_FETCH_BYTES = 1 << 21
_LONG_BYTES = 1 << 24  # of values in a vector: more are not copied to see how long they are
_LONE_BYTES = 1 << 26  # of values in a vector: more are held only once
_ITEM = 16  # bytes of an element of a list, beside its own


@dataclass(frozen=True, slots=True)
class Run:
    """Rows that are read by one query."""

    first: int  # rowid
    last: int
    fetch: int = _FETCH_ROWS  # rows that are copied at once
    vector: int = 0  # bytes of the heaviest rows that DuckDB reads together
    kept: int = 0  # bytes that stay in batches

    @property
    def has_long(self) -> bool:
        """Whether values are so long that DuckDB has to say which ones."""
        return self.vector > _LONG_BYTES

    @property
    def is_short(self) -> bool:
        """Whether all batches of it can be held at once."""
        return self.kept <= _RUN_BYTES


def too_wide_for_many(runs: Sequence[Run]) -> bool:
    """Whether one reader after the other has to read these."""
    return any(run.vector > _LONE_BYTES for run in runs)


def joined(runs: Sequence[Run]) -> Run:
    """Return all rows as one run."""
    return Run(
        runs[0].first,
        runs[-1].last,
        min(run.fetch for run in runs),
        max(run.vector for run in runs),
        sum(run.kept for run in runs),
    )


@dataclass(frozen=True, slots=True)
class WideColumn:
    """A column that may be wide."""

    name: str
    weight: str  # SQL for the bytes of a value
    limit: int | None = None  # of them stay in a batch at most, if others go elsewhere


def runs_of(connection: Connection, place: str, columns: Sequence[WideColumn]) -> Iterator[Run]:
    """Yield the rows of a table in runs of bounded weight, given its columns that may be wide."""
    last = asked(connection, f"SELECT max(rowid) FROM {place}").fetchone()[0]
    if last is None:
        return
    read, kept = [0] * (last // VECTOR + 1), [0] * (last // VECTOR + 1)
    for column in () if _are_narrow(connection, place, columns) else columns:
        for vector, whole, part in _weighed(connection, place, column):
            read[vector] += whole
            kept[vector] += part
    start = 0
    while start < len(read):
        end, size = start + 1, kept[start]
        while end < min(len(read), start + _RUN_VECTORS) and size + kept[end] <= _RUN_BYTES:
            size += kept[end]
            end += 1
        fetch = min(_FETCH_ROWS, max(1, VECTOR * _FETCH_BYTES // max(*kept[start:end], 1)))
        until = min(end * VECTOR - 1, last)
        yield from _shares(Run(start * VECTOR, until, fetch, max(read[start:end]), size))
        start = end


def _shares(run: Run) -> Iterator[Run]:
    """Cut a vector that is too heavy; others stay as they are."""
    shares = min(-(-run.kept // _RUN_BYTES), _SHARES)
    if shares <= 1:
        yield run
        return
    size = -(-(run.last + 1 - run.first) // shares)
    for first in range(run.first, run.last + 1, size):
        after = min(first + size, run.last + 1)
        yield replace(run, first=first, last=after - 1, kept=run.kept // shares)


def _are_narrow(connection: Connection, place: str, columns: Sequence[WideColumn]) -> bool:
    """Whether DuckDB knows that no vector of these is heavy: by its statistics of text and bytes.

    Values that were changed since the file was last written are not in them.
    """
    names = [column.name for column in columns]
    sql = (
        "SELECT count(*), sum(most)::BIGINT FROM (SELECT max(longest) AS most FROM"
        " (SELECT column_name, has_updates, TRY_CAST(stats.max_string_length AS BIGINT) AS longest"
        " FROM pragma_storage_info(?) WHERE column_path = concat('[', column_id, ']')"
        " AND list_contains(?, column_name)) GROUP BY column_name"
        " HAVING bool_and(longest IS NOT NULL AND NOT has_updates))"
    )
    try:
        known, most = connection.cursor().execute(sql, [place, names]).fetchone()
    except duckdb.Error:
        return not names
    return known == len(names) and (most or 0) * VECTOR <= _RUN_BYTES


def _weighed(
    connection: Connection, place: str, column: WideColumn
) -> Iterator[tuple[int, int, int]]:
    """Yield the number of a vector, the bytes of a column in it, and those that stay."""
    kept = "bytes" if column.limit is None else f"least(bytes, {column.limit})"
    sql = (
        f"SELECT rowid // {VECTOR} AS vector, sum(bytes)::BIGINT, sum({kept})::BIGINT"
        f" FROM (SELECT rowid, coalesce({column.weight}, 0) AS bytes FROM {place}) GROUP BY ALL"
    )
    yield from asked(connection, sql).fetchall()


def weight_sql(duck: DuckType | None, value: str, depth: int = 0) -> str | None:
    """Return SQL for about how many bytes a value has as text; None if never many.

    >>> weight_sql(Listing(Scalar("VARCHAR")), "l")
    'list_sum([16 + coalesce(strlen(x0), 0) FOR x0 IN l])'
    >>> weight_sql(Listing(Scalar("INTEGER")), "l")
    '16 * len(l)'
    """
    item = f"x{depth}"
    match duck:
        case Listing(element, length):
            values = f"CAST({value} AS {element}[])" if length else value
            return _of_items(weight_sql(element, item, depth + 1), item, values)
        case Mapping(key, held):
            pair = Record((("key", key), ("value", held)))
            return _of_items(weight_sql(pair, item, depth + 1), item, f"map_entries({value})")
        case Record(fields):
            found = [
                weight_sql(kind, f"struct_extract({value}, {quote_text(name)})", depth)
                for name, kind in fields
            ]
            known = [f"coalesce({each}, 0)" for each in found if each]
            return f"({' + '.join(known)})" if known else None
        case Scalar("BLOB"):
            return f"octet_length({value})"
        case Scalar("VARCHAR"):
            return f"strlen({value})"
        case Enumeration():
            return None
        case Scalar() if not predefined_type(duck).large:
            return None
        case Scalar() | Union() | None:
            return f"strlen(CAST({value} AS VARCHAR))"


def _of_items(weight: str | None, item: str, values: str) -> str:
    if weight is None:
        return f"{_ITEM} * len({values})"
    return f"list_sum([{_ITEM} + coalesce({weight}, 0) FOR {item} IN {values}])"
