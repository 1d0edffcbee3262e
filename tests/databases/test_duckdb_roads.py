"""The quick roads from and to DuckDB give what the plain ones give."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from muniment import kernels, transfer, workers
from muniment.compare import compare
from muniment.databases.duckdb import DuckdbSource
from muniment.databases.duckdb.keys import Keys
from muniment.databases.duckdb.pieces import gathered
from muniment.databases.duckdb.tables import NewTable
from muniment.databases.duckdb.widths import Run
from muniment.databases.sqlite import SqliteSource
from muniment.kernels import joining_kernel
from muniment.sql.selection import Selection

WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
INSTANTS = st.sampled_from([
    "infinity", "-infinity", "0001-01-01", "0001-01-01 (BC)", "9999-12-31", "10000-01-01",
    "1969-12-31", "2000-02-29", "1900-03-01", "290000-01-01 (BC)",
])  # fmt: skip


def scaled(digits: int, scale: int) -> st.SearchStrategy[str]:
    """Decimals, spelt as DuckDB takes them for sure."""

    def spelt(number: int) -> str:
        text = str(abs(number)).zfill(scale + 1)
        point = len(text) - scale
        return "-" * (number < 0) + text[:point] + "." + text[point:]

    return st.integers(1 - 10**digits, 10**digits - 1).map(spelt)


VALUES: dict[str, st.SearchStrategy[str]] = {
    **{k: st.integers(-(1 << n - 1), (1 << n - 1) - 1).map(str) for k, n in WHOLE.items()},
    "UINTEGER": st.integers(0, (1 << 32) - 1).map(str),
    "UBIGINT": st.integers(0, (1 << 64) - 1).map(str),
    "HUGEINT": st.integers(-(10**38), 10**38).map(str),
    "DECIMAL(4,1)": scaled(4, 1),
    "DECIMAL(18,0)": scaled(18, 0),
    "DECIMAL(18,18)": scaled(18, 18),
    "DECIMAL(30,4)": scaled(30, 4),
    "DOUBLE": st.floats().map(str),
    "BOOLEAN": st.sampled_from(["true", "false"]),
    "DATE": st.dates(date(1, 1, 1)).map(str) | INSTANTS,
    "TIMESTAMP": st.datetimes(datetime(1, 1, 1)).map(str) | INSTANTS,
    "TIMESTAMP_NS": st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(str),
    "VARCHAR": st.text(max_size=30),
    "BLOB": st.binary(max_size=30).map(lambda data: "".join(f"\\x{byte:02X}" for byte in data)),
    "UUID": st.uuids().map(str),
}
TABLES = st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=6).flatmap(
    lambda types: st.tuples(
        st.just(types),
        st.lists(st.tuples(*(st.none() | VALUES[t] for t in types)), max_size=6),
    )
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = kernels._missing
    yield
    kernels._missing = before


def batches(types: list[str], rows: list[tuple[str | None, ...]], quick: bool) -> list[bytes]:
    kernels._missing = 0 if quick else kernels._NEVER
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET arrow_large_buffer_size = true; SET TimeZone = 'UTC'")
        columns = ", ".join(f"c{number} {name}" for number, name in enumerate(types))
        connection.execute(f"CREATE TABLE t ({columns})")
        casts = ", ".join(f"CAST(? AS {name})" for name in types)
        if rows:
            connection.executemany(f"INSERT INTO t VALUES ({casts})", rows)
        source = DuckdbSource(connection, Path("t.duckdb"), Selection(), 20)
        (schema,) = source.describe().schemas
        (table,) = schema.tables
        parts = source.parts(schema, table)
        return [batch.data for part in parts for batch in source.batches(schema, table, part)]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40, deadline=None)
@given(table=TABLES)
@example((["BIGINT"], [("-9223372036854775808",), ("9223372036854775807",), ("0",)]))
@example((["DECIMAL(4,1)"], [("-0.1",), ("0.0",), ("-999.9",), ("10",)]))
@example((["DECIMAL(18,18)"], [("0.000000000000000001",), ("-0.5",)]))
@example((["TIMESTAMP"], [("1969-12-31 23:59:59.999999",), ("0001-01-01 00:00:00.1",)]))
@example((["DATE", "VARCHAR"], [("10000-01-01", "a"), ("2000-02-29", "x" * 30)]))
@example((["VARCHAR"], [("ä" * 20,), ("",), (None,)]))
def test_values_are_spelt_the_same_on_both_roads(
    table: tuple[list[str], list[tuple[str | None, ...]]],
) -> None:
    assert batches(*table, quick=True) == batches(*table, quick=False)


@pytest.mark.parametrize("long", [10, 20_000, 70_000])
def test_batches_are_cut_at_the_same_rows_on_both_roads(long: int) -> None:
    rows: list[tuple[str | None, ...]] = [(str(n), "y" * (n % 20)) for n in range(5000)]
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET arrow_large_buffer_size = true")
        connection.execute("CREATE TABLE t (i INTEGER, s VARCHAR)")
        connection.execute(
            "INSERT INTO t SELECT i, repeat('y', CASE i % 999 WHEN 7 THEN ? ELSE i % 20 END)"
            " FROM range(5000) r(i)", [long],
        )  # fmt: skip
        source = DuckdbSource(connection, Path("t.duckdb"), Selection(), 1_000_000)
        (schema,) = source.describe().schemas
        (table,) = schema.tables
        found = []
        for missing in (0, kernels._NEVER):
            kernels._missing = missing
            found.append(list(source.batches(schema, table, Run(0, len(rows)))))
    assert found[0] == found[1]
    assert sum(batch.rows for batch in found[0]) == 5000


def test_usual_values_are_done_by_the_kernel() -> None:
    columns = [
        pa.array([1, None], pa.int32()), pa.array([True, False]), pa.array(["a", None], pa.large_string()),
        pa.array([0, 1], pa.date32()), pa.array([0, 1_500_000], pa.timestamp("us")),
        pa.array(["1.10", "-0.05"]).cast(pa.decimal128(4, 2)),
    ]  # fmt: skip
    made = joining_kernel()([column.slice(0) for column in columns], 100)
    assert made is not None
    assert b"".join(batch.data for batch in made).split(b"\xfd") == [
        b"1\xfftrue\xffa\xff1970-01-01\xff1970-01-01T00:00:00\xff1.10",
        b"\xfe\xfffalse\xff\xfe\xff1970-01-02\xff1970-01-01T00:00:01.5\xff-0.05",
        b"",
    ]
    assert joining_kernel()(columns, 0) is None
    assert joining_kernel()([pa.array([1.5])], 100) is None


def test_rows_come_by_whole_row_groups() -> None:
    table = pa.table({"c": pa.array(range(300_000), pa.int32())})
    pieces = [table.slice(start, 70_000) for start in range(0, 300_000, 70_000)]
    cut = list(gathered(pieces))
    assert [rows.num_rows for rows in cut] == [122_880, 122_880, 54_240]
    assert pa.concat_tables(cut).equals(table)
    other = table.cast(pa.schema([("c", pa.int64())]))
    assert [rows.num_rows for rows in gathered([table, other])] == [
        122_880, 122_880, 54_240, 122_880, 122_880, 54_240,
    ]  # fmt: skip


SHOP = """
CREATE TABLE city (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE);
CREATE TABLE visit (city INTEGER REFERENCES city (id), day DATE, note VARCHAR);
CREATE TABLE again (visit VARCHAR REFERENCES city (name));
INSERT INTO city SELECT i, 'city ' || i FROM range(1000) r(i);
INSERT INTO visit SELECT i % 1000, DATE '2000-01-01' + i::INTEGER, 'n' || i FROM range(200000) r(i);
INSERT INTO again VALUES ('city 3'), (NULL);
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SHOP)
    return path


def test_threads_and_processes_give_the_same(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_WORTH_WORKERS", 0)
    options = transfer.ArchiveOptions(
        jobs=2, description=transfer.Description(archival_date="2026-01-01")
    )
    started: list[workers._Thread] = []
    start = workers._Thread.__init__

    def noted(self: workers._Thread, opener: Any) -> None:
        started.append(self)
        start(self, opener)

    monkeypatch.setattr(workers._Thread, "__init__", noted)
    made = {}
    for quick in (True, False):
        kernels._missing = 0 if quick else kernels._NEVER
        made[quick] = tmp_path / f"{quick}.siard"
        transfer.archive(f"duckdb:///{shop}", made[quick], options=options)
        transfer.restore(made[quick], f"duckdb:///{tmp_path / f'{quick}.duckdb'}", jobs=2)
    assert len(started) == 4
    assert made[True].read_bytes() == made[False].read_bytes()
    for back in ("True.duckdb", "False.duckdb"):
        assert compare(f"duckdb:///{shop}", f"duckdb:///{tmp_path / back}").equal


def test_an_error_in_a_thread_stops_the_work(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_WORTH_WORKERS", 0)
    kernels._missing = 0

    def broken(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(DuckdbSource, "batches", broken)
    with pytest.raises(ValueError, match="broken"):
        transfer.archive(
            f"duckdb:///{shop}", tmp_path / "o.siard", options=transfer.ArchiveOptions(jobs=2)
        )
    assert not list(tmp_path.glob("*.siard*"))


def test_intervals_archived_as_text_are_compared_as_text(tmp_path: Path) -> None:
    path, archived = tmp_path / "a.duckdb", tmp_path / "a.siard"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t (i INTERVAL)")
        connection.execute("INSERT INTO t VALUES ('3 months'), ('1 day 2 hours'), (NULL)")
    transfer.archive(f"duckdb:///{path}", archived, Selection(as_text=("main.t.i",)))
    for places in ((f"duckdb:///{path}", str(archived)), (str(archived), f"duckdb:///{path}")):
        assert compare(*places).equal


def test_an_archive_of_siard_2_0_equals_its_source(tmp_path: Path) -> None:
    """It has no place for the original type of a column whose type has a name."""
    path, archived = tmp_path / "a.duckdb", tmp_path / "a.siard"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('glad', 'sad')")
        connection.execute("CREATE TABLE t (m mood, s STRUCT(a INTEGER, b VARCHAR))")
        connection.execute("INSERT INTO t VALUES ('sad', {'a': 1, 'b': 'x'})")
    options = transfer.ArchiveOptions(version="2.0")
    transfer.archive(f"duckdb:///{path}", archived, options=options)
    for places in ((f"duckdb:///{path}", str(archived)), (str(archived), f"duckdb:///{path}")):
        result = compare(*places)
        assert result.equal, result.differences


def test_tables_with_foreign_keys_are_loaded_once_after_what_they_refer_to(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged: list[NewTable] = []
    stage = Keys.stage

    def noted(self: Keys, made: NewTable) -> NewTable:
        staged.append(made)
        return stage(self, made)

    monkeypatch.setattr(Keys, "stage", noted)
    transfer.archive(f"duckdb:///{shop}", tmp_path / "o.siard")
    report = transfer.restore(tmp_path / "o.siard", f"duckdb:///{tmp_path / 'back.duckdb'}")
    assert not staged
    assert not report.left_out
    assert [(table.table, table.rows) for table in report.tables] == [
        ("again", 2), ("city", 1000), ("visit", 200_000),
    ]  # fmt: skip
    with duckdb.connect(str(tmp_path / "back.duckdb")) as connection:
        with pytest.raises(duckdb.ConstraintException):
            connection.execute("INSERT INTO visit VALUES (5000, NULL, NULL)")
        with pytest.raises(duckdb.ConstraintException):
            connection.execute("INSERT INTO again VALUES ('nowhere')")


def test_rows_that_break_a_foreign_key_come_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As another writer may have it: our own archives have no key that rows break.
    monkeypatch.setattr(SqliteSource, "kept", lambda _, known: known)
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE city (id INTEGER PRIMARY KEY);"
            "CREATE TABLE visit (id INTEGER PRIMARY KEY, city INTEGER REFERENCES city (id));"
            "INSERT INTO city VALUES (1), (2);"
            "INSERT INTO visit VALUES (1, 1), (2, 2), (3, 7);"
        )
    transfer.archive(f"sqlite:///{path}", tmp_path / "o.siard")
    report = transfer.restore(tmp_path / "o.siard", f"duckdb:///{tmp_path / 'back.duckdb'}")
    assert [left.kind for left in report.left_out] == ["foreign key"]
    with duckdb.connect(str(tmp_path / "back.duckdb")) as back:
        assert back.execute("SELECT * FROM visit ORDER BY id").fetchall() == [
            (1, 1),
            (2, 2),
            (3, 7),
        ]
        with pytest.raises(duckdb.ConstraintException):  # the other key is there
            back.execute("INSERT INTO visit VALUES (1, 1)")
