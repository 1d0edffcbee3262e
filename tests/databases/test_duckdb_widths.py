"""Wide rows of DuckDB are read in memory that their size bounds, and none is lost or changed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts import sample
from contracts.source_contract import find
from muniment import transfer
from muniment.compare import compare
from muniment.databases.duckdb import DuckdbSource, lobs, open_source, pieces, widths
from muniment.databases.duckdb.types import parse_duck_type
from muniment.databases.duckdb.widths import (
    VECTOR,
    Run,
    WideColumn,
    joined,
    runs_of,
    too_wide_for_many,
    weight_sql,
)
from muniment.sql.batch import REF, cells_of
from muniment.sql.selection import Selection

Make = Callable[[str], Path]

MIXED = (
    "CREATE TABLE t AS SELECT i, repeat(md5(i::VARCHAR), i % 97) AS s,"
    " encode(repeat('x', i % 611)) AS b, [i, NULL, i + 1] AS l, NULL::VARCHAR AS n"
    " FROM range(7000) r(i);"
    "DELETE FROM t WHERE i BETWEEN 2000 AND 4200 OR i % 7 = 3"
)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a DuckDB file by SQL."""

    def make(sql: str) -> Path:
        path = tmp_path / "made.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(sql)
        return path

    return make


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows of some hundred bytes be wide."""
    monkeypatch.setattr(widths, "_RUN_BYTES", 1 << 18)
    monkeypatch.setattr(widths, "_FETCH_BYTES", 1 << 15)
    monkeypatch.setattr(widths, "_LONG_BYTES", 1 << 19)
    monkeypatch.setattr(widths, "_LONE_BYTES", 1 << 20)
    monkeypatch.setattr(lobs, "_WAITING_BYTES", 1 << 14)


def rows_of(path: Path, selection: Selection | None = None, limit: int = 300) -> list[Any]:
    """The rows of the table t with their long values."""
    with open_source(path, selection, limit) as source:
        return sample.read(source, *find(source, "t"))


@given(
    st.lists(st.integers(0, 3000), min_size=1, max_size=40),
    st.integers(1, 3 * VECTOR),
    st.sampled_from([100, 5000, None]),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_runs_cover_all_rows_once_and_weigh_little(
    sizes: list[int], rows: int, limit: int | None
) -> None:
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("CREATE TABLE t AS SELECT ?[1 + i % ?] AS size FROM range(?) r(i)",
                           [sizes, len(sizes), rows])  # fmt: skip
        runs = list(runs_of(connection, "t", [WideColumn("size", "size", limit)]))
        for run in runs:
            sql = f"FROM t WHERE rowid BETWEEN {run.first} AND {run.last}"
            kept = "size" if limit is None else f"least(size, {limit})"
            found = connection.execute(f"SELECT coalesce(sum({kept}), 0) {sql}").fetchone()
            short = run.last - run.first < VECTOR
            assert short or found[0] <= widths._RUN_BYTES
    assert runs[0].first == 0 and runs[-1].last == rows - 1
    assert all(a.last + 1 == b.first for a, b in pairwise(runs))


def test_a_heavy_vector_is_read_in_shares(make: Make) -> None:
    with duckdb.connect(str(make("CREATE TABLE t AS SELECT 45000 AS size FROM range(300)"))) as db:
        runs = list(runs_of(db, "t", [WideColumn("size", "size")]))
    assert [run.last - run.first + 1 for run in runs] == [75] * 4
    assert {run.vector for run in runs} == {13_500_000}
    assert joined(runs) == Run(0, 299, runs[0].fetch, 13_500_000, 13_500_000)
    assert not too_wide_for_many(runs)


@pytest.mark.parametrize(
    ("kind", "value", "weight"),
    [
        ("VARCHAR", "'äö'", 4),
        ("BLOB", "'abc'::BLOB", 3),
        ("INTEGER", "1", None),
        ("JSON", "'[1,2]'", 5),
        ("VARCHAR[]", "['ab', NULL, 'c']", 3 * 16 + 3),
        ("INTEGER[]", "[1, 2, NULL]", 48),
        ("INTEGER[3]", "[1, 2, NULL]", 48),
        ("VARCHAR[][]", "[['ab'], [], NULL]", 3 * 16 + 16 + 2),
        ("STRUCT(a INTEGER, b VARCHAR, c BLOB)", "{'a': 1, 'b': 'xyz', 'c': NULL}", 3),
        ("STRUCT(a INTEGER)", "{'a': 1}", None),
        ("MAP(VARCHAR, INTEGER)", "MAP {'one': 1, 'three': 3}", 2 * 16 + 8),
        ("UNION(n INTEGER, t VARCHAR)", "'word'::UNION(n INTEGER, t VARCHAR)", 4),
        ("ENUM('a', 'b')", "'a'", None),
    ],
)
def test_values_weigh_what_their_text_weighs(kind: str, value: str, weight: int | None) -> None:
    duck = parse_duck_type(kind)
    assert duck is not None
    sql = weight_sql(duck, "c")
    if sql is None:
        assert weight is None
        return
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (c {kind})")
        connection.execute(f"INSERT INTO t SELECT {value} UNION ALL SELECT NULL")
        found = connection.execute(f"SELECT coalesce({sql}, 0) FROM t").fetchall()
        assert found == [(weight,), (0,)]


def test_short_texts_are_not_weighed_and_long_ones_are(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    weighed: list[str] = []
    weigh = widths._weighed

    def noted(connection: Any, place: str, column: WideColumn) -> Any:
        weighed.append(column.name)
        return weigh(connection, place, column)

    monkeypatch.setattr(widths, "_weighed", noted)
    path = make(
        """CREATE SCHEMA "a ""b"; CREATE TABLE "a ""b"."t.1" (s VARCHAR, b BLOB, l VARCHAR[]);"""
        """INSERT INTO "a ""b"."t.1" SELECT 'short', 'x'::BLOB, NULL FROM range(3000)"""
    )
    place, wide = (
        '"a ""b"."t.1"',
        [WideColumn("s", "strlen(s)"), WideColumn("b", "octet_length(b)")],
    )
    with duckdb.connect(str(path)) as connection:
        assert list(runs_of(connection, place, wide)) == [Run(0, 2999)]
        assert weighed == []
        connection.execute(f"UPDATE {place} SET s = repeat('x', 9000) WHERE rowid = 2500")
        (run,) = runs_of(connection, place, wide)
        assert weighed == ["s", "b"] and run.vector > 9000
        connection.execute("CHECKPOINT")
        weighed.clear()
        (again,) = runs_of(connection, place, wide)
        assert weighed == ["s", "b"] and again == run
        list(runs_of(connection, place, [WideColumn("l", "len(l)")]))
        assert weighed[2:] == ["l"]


def test_wide_rows_are_read_by_one_reader_and_come_out_the_same(
    make: Make, request: pytest.FixtureRequest
) -> None:
    path = make(MIXED)
    usual = rows_of(path)
    request.getfixturevalue("narrow")
    with open_source(path, None, 300) as source:
        schema, table = find(source, "t")
        assert list(source.parts(schema, table)) == [None]
    assert rows_of(path) == usual
    assert len(usual) == 4113 and any(len(row[1] or "") > 3000 for row in usual)


def test_wide_rows_are_weighed_once(
    make: Make, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("narrow")
    weighed: list[str] = []
    weigh = widths._weighed

    def noted(connection: Any, place: str, column: WideColumn) -> Any:
        weighed.append(column.name)
        return weigh(connection, place, column)

    monkeypatch.setattr(widths, "_weighed", noted)
    assert len(rows_of(make(MIXED))) == 4113
    assert sorted(weighed) == sorted(set(weighed)) != []


@pytest.mark.parametrize("selection", [
    Selection(where={"t": "i % 5 = 0"}),
    Selection(where={"t": "i % 59 = 0"}, order={"t": "i % 10, i DESC"}),
])  # fmt: skip
def test_wide_rows_that_are_chosen_or_ordered_come_out_the_same(
    make: Make, request: pytest.FixtureRequest, selection: Selection
) -> None:
    path = make(MIXED)
    usual = rows_of(path, selection)
    request.getfixturevalue("narrow")
    assert rows_of(path, selection) == usual


@pytest.mark.usefixtures("narrow")
@given(st.randoms(use_true_random=False))
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_long_values_can_be_opened_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, random: Any
) -> None:
    path = tmp_path_factory.mktemp("any") / "made.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i::VARCHAR || repeat('.', 1000) AS s,"
                           " encode(repeat('b', 999 + i)) AS b FROM range(3000) r(i)")  # fmt: skip
    with open_source(path, None, 300) as source:
        schema, table = find(source, "t")
        for _ in range(40):
            row, column = random.randrange(3000), random.randrange(2)
            with source.open_lob(schema, table, f"{row}:{column}".encode()) as stream:
                expected = b"b" * (999 + row) if column else str(row).encode() + b"." * 1000
                assert stream.read() == expected


def test_long_values_in_order_cost_few_queries(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make("CREATE TABLE t AS SELECT repeat('x', 5000 + i) AS s FROM range(3000) r(i)")
    asked = []
    fetched = DuckdbSource._fetched

    def counted(self: DuckdbSource, sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return fetched(self, sql, *rest)

    monkeypatch.setattr(DuckdbSource, "_fetched", counted)
    with open_source(path) as source:
        schema, table = find(source, "t")
        cells = [
            cell
            for part in source.parts(schema, table)
            for batch in source.batches(schema, table, part)
            for cell in cells_of(batch)
        ]
        assert all(cell.startswith(REF) for cell in cells) and len(cells) == 3000
        asked.clear()
        for number, cell in enumerate(cells):
            with source.open_lob(schema, table, cell[1:]) as stream:
                assert len(stream.read()) == 5000 + number
    assert len(asked) <= 4  # one to see how long they are and one to read them, for each vector


def test_an_archive_of_very_wide_rows_equals_its_source(tmp_path: Path, make: Make) -> None:
    path = make(
        "CREATE TABLE t AS SELECT i, repeat(md5(i::VARCHAR), 80000) AS s,"
        " encode(repeat(md5(i::VARCHAR), 90000)) AS b, [md5(j::VARCHAR) FOR j IN range(9000)] AS l"
        " FROM range(40) r(i)"
    )
    siard = tmp_path / "wide.siard"
    transfer.archive(f"duckdb:///{path}", siard)
    assert compare(f"duckdb:///{path}", str(siard)).equal
    transfer.restore(siard, f"duckdb:///{tmp_path / 'back.duckdb'}")
    assert compare(f"duckdb:///{path}", f"duckdb:///{tmp_path / 'back.duckdb'}").equal


_READS = """
import sys
from pathlib import Path
from muniment.databases.duckdb import open_source
from muniment.sql.batch import REF, cells_of

def memory():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))

with open_source(Path(sys.argv[1])) as source:
    (schema,) = source.describe().schemas
    (table,) = schema.tables
    before = memory()
    for part in source.parts(schema, table):
        for batch in source.batches(schema, table, part):
            for cell in cells_of(batch):
                if cell.startswith(REF):
                    with source.open_lob(schema, table, cell[1:]) as stream:
                        while stream.read(1 << 20):
                            pass
print(memory() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells no memory")
def test_memory_is_not_that_of_all_columns_of_a_vector(make: Make) -> None:
    columns = ", ".join(f"repeat(md5((i + {n})::VARCHAR), 100000) AS s{n}" for n in range(3))
    path = make(f"CREATE TABLE t AS SELECT {columns} FROM range(40) r(i)")
    command = [sys.executable, "-c", _READS, str(path)]
    grown = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    # Of three columns of 128 MB each; DuckDB gives back what it had a moment later.
    assert grown < 2.7 * 40 * 3.2


@pytest.mark.parametrize("name", ["rowid", '"ROWID"'])
def test_a_column_called_rowid_that_is_left_out_costs_no_rows(make: Make, name: str) -> None:
    path = make(
        f"CREATE TABLE t ({name} INTEGER, v VARCHAR); INSERT INTO t SELECT CASE WHEN i % 3 = 0"
        " THEN NULL ELSE i // 2 - 100 END, i || repeat('x', i % 2 * 5000) FROM range(500) r(i)"
    )
    found = rows_of(path, Selection(columns={"t": ("v",)}))
    assert found == [[f"{i}{'x' * (i % 2 * 5000)}"] for i in range(500)]


def test_rows_are_ordered_by_columns_whatever_their_names(make: Make) -> None:
    path = make(
        "CREATE TABLE t (c1 INTEGER, c0 INTEGER);"
        "INSERT INTO t SELECT i, 100 - i FROM range(100) r(i)"
    )
    found = rows_of(path, Selection(order={"t": "c1 DESC"}))
    assert found == [[str(i), str(100 - i)] for i in range(99, -1, -1)]


@pytest.mark.parametrize("kind, value", [
    ("STRUCT(a VARCHAR, n STRUCT(z VARCHAR))", "{'a': 'y' || i, 'n': {'z': 'q' || i}}"),
    ("UNION(a STRUCT(b VARCHAR), c INTEGER)",
     "CAST({'b': 'y' || i} AS UNION(a STRUCT(b VARCHAR), c INTEGER))"),
])  # fmt: skip
def test_structs_in_structs_are_cut_where_their_objects_fill_the_memory(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, value: str
) -> None:
    monkeypatch.setattr(pieces, "CHUNK_BYTES", 1 << 18)
    monkeypatch.setattr(pieces, "_GROUP_ROWS", 700)
    path = make(
        f"CREATE TABLE t (i INTEGER, s {kind}, b BLOB); INSERT INTO t"
        f" SELECT i, {value}, encode(repeat('x', i % 2 * 8000)) FROM range(2000) r(i)"
    )
    transfer.archive(f"duckdb:///{path}", tmp_path / "a.siard")
    transfer.restore(tmp_path / "a.siard", f"duckdb:///{tmp_path / 'back.duckdb'}")
    assert compare(f"duckdb:///{path}", f"duckdb:///{tmp_path / 'back.duckdb'}").equal
