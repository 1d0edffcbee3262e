"""Wide rows of DuckDB, both ways, beside DuckDB's own copying: what counts is the memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import duckdb

from measure import Command, muniment, run
from report import Result

COPY = "DuckDB's COPY FROM DATABASE"
_COPYING = """
import duckdb, sys
with duckdb.connect(sys.argv[2]) as db:
    db.execute("SET enable_progress_bar = false")
    db.execute(f"ATTACH '{sys.argv[1]}' AS source (READ_ONLY)")
    (name,) = db.execute("SELECT current_database()").fetchone()
    db.execute(f'COPY FROM DATABASE source TO "{name}"')
"""
MEMORY = 500_000_000
# What a row holds, as SQL; DuckDB reads 2,048 rows together. None: the values alone are too many.
SHAPES: dict[str, tuple[str, int | None]] = {
    "200,000 rows of two texts of 3 KB": (
        "SELECT i, repeat(md5(i::VARCHAR), 100) AS a, repeat(md5((i + 1)::VARCHAR), 110) AS b"
        " FROM range(200000) r(i)", MEMORY,
    ),
    "20,000 rows of lists of 1,000 numbers": (
        "SELECT i, [(i * 7919 + j * 104729) % 1000003 FOR j IN range(1000)] AS l"
        " FROM range(20000) r(i)", MEMORY,
    ),
    "60 rows of a text and a BLOB of 5 MB": (
        "SELECT i, repeat(md5(i::VARCHAR), 160000) AS a,"
        " encode(repeat(md5((i + 7)::VARCHAR), 160000)) AS b FROM range(60) r(i)", None,
    ),
}  # fmt: skip


def duckdb_copy(source: Path, target: Path) -> Command:
    """Return the yardstick: DuckDB's own copy of a file."""
    return Command(COPY, [sys.executable, "-c", _COPYING, str(source), str(target)], target)


def measure_wide(folder: Path) -> Iterator[Result]:
    """Yield the peak memory of each way for each shape of rows."""
    folder.mkdir(exist_ok=True)
    for number, (shape, (sql, goal)) in enumerate(SHAPES.items()):
        paths = [folder / f"{number}{ending}" for ending in (".duckdb", ".siard", ".back.duckdb")]
        database, siard, back = paths
        with duckdb.connect(str(database)) as connection:
            connection.execute(f"CREATE TABLE t AS {sql}")
        yardstick = run(duckdb_copy(database, back))
        beside = f"{COPY}: {yardstick.peak_bytes / 1e6:.0f} MB"
        for command in (
            muniment("archive", "archive", _url(database), str(siard), makes=siard),
            muniment("compare", "compare", _url(database), str(siard)),
            muniment("restore", "restore", str(siard), _url(back), makes=back),
        ):
            timing = run(command)
            yield Result(
                f"{command.name} duckdb, {shape}, peak memory",
                f"{timing.peak_bytes / 1e6:.0f} MB",
                f"< {goal / 1e6:.0f} MB" if goal else "",
                timing.peak_bytes < goal if goal else None,
                beside,
                timing.peak_bytes / yardstick.peak_bytes,
            )
        run(muniment("is it equal?", "compare", _url(database), _url(back)))
        for path in paths:
            path.unlink(missing_ok=True)


def _url(path: Path) -> str:
    return f"duckdb:///{quote(str(path))}"
