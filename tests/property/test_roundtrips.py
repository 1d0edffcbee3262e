"""Whole journeys of random tables: nothing changes on the way."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import apsw
import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.compare import compare
from muniment.transfer import archive, restore

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    st.sampled_from(" \\\x00\t\r\n&<>\"'\x1e\x1f\x85")
)
COLUMNS: dict[str, st.SearchStrategy[object]] = {
    "INTEGER": st.integers(-(2**63), 2**63 - 1),
    "REAL": st.floats(allow_nan=False).filter(lambda x: not (x == 0 and math.copysign(1, x) < 0)),
    "TEXT": TEXTS,
    "VARCHAR(8)": TEXTS,
    "BLOB": st.binary(),
    "BOOLEAN": st.integers(0, 1),
    "DATE": st.dates().map(str),
    "DATETIME": st.datetimes().map(lambda d: d.isoformat(" ")),
    "TIME": st.times().map(str),
    "DECIMAL(12,2)": st.integers(-(10**9), 10**9)
    | st.decimals(-(10**9), 10**9, places=2).map(float),
    "": st.integers(-5, 5),
}


def make(path: Path, kinds: list[str], rows: list[tuple[object, ...]]) -> Path:
    db = apsw.Connection(str(path))
    db.execute(f"CREATE TABLE t ({', '.join(f'c{n} {kind}' for n, kind in enumerate(kinds))})")
    db.executemany(f"INSERT INTO t VALUES ({','.join('?' * len(kinds))})", rows)
    db.close()
    return path


@st.composite
def sqlite_tables(draw: st.DrawFn) -> tuple[list[str], list[tuple[object, ...]]]:
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6))
    row = st.tuples(*(st.none() | COLUMNS[kind] for kind in kinds))
    return kinds, draw(st.lists(row, max_size=20))


@settings(max_examples=120, deadline=None)
@given(sqlite_tables())
def test_sqlite_to_siard_to_sqlite_changes_nothing(
    made: tuple[list[str], list[tuple[object, ...]]],
) -> None:
    kinds, rows = made
    with tempfile.TemporaryDirectory() as folder:
        path, copy = make(Path(folder, "a.db"), kinds, rows), Path(folder, "b.db")
        db = apsw.Connection(str(path))
        listed = ", ".join(f"c{n}, typeof(c{n})" for n in range(len(kinds)))
        before = db.execute(f"SELECT {listed} FROM t ORDER BY rowid").fetchall()
        db.close()
        archive(f"sqlite:///{path}", Path(folder, "a.siard"))
        restore(Path(folder, "a.siard"), f"sqlite:///{copy}")
        back = apsw.Connection(str(copy))
        assert back.execute(f"SELECT {listed} FROM t ORDER BY rowid").fetchall() == before
        back.close()


@settings(max_examples=40, deadline=None)
@given(sqlite_tables())
def test_sqlite_to_siard_to_duckdb_and_back_changes_no_value(
    made: tuple[list[str], list[tuple[object, ...]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = make(Path(folder, "a.db"), *made)
        archive(f"sqlite:///{path}", Path(folder, "a.siard"))
        report = restore(Path(folder, "a.siard"), f"duckdb:///{folder}/a.duckdb")
        assert report.notes == ()
        with duckdb.connect(f"{folder}/a.duckdb", read_only=True) as db:
            assert db.execute("SELECT count(*) FROM t").fetchone() == (len(made[1]),)
        result = compare(f"{folder}/a.siard", f"duckdb:///{folder}/a.duckdb")
        assert result.equal, result.differences
        archive(f"duckdb:///{folder}/a.duckdb", Path(folder, "b.siard"))
        again = compare(f"{folder}/a.siard", f"{folder}/b.siard")
        assert again.equal, again.differences
