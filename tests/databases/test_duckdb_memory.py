"""DuckDB lets go of what it has written, and its keys are right nevertheless."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from muniment import transfer
from muniment.compare import compare
from muniment.databases.duckdb import connection, memory, pieces, tables
from muniment.databases.duckdb.memory import Memory
from muniment.databases.duckdb.target import DuckdbTarget
from muniment.sql.model import UniqueKey

_ROWS = 20_000
_KEPT = "SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()"


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small statements, and an index written after each: as large tables have it."""
    monkeypatch.setattr(pieces, "_GROUP_ROWS", 1500)
    monkeypatch.setattr(memory, "_HELD", 1 << 20)
    monkeypatch.setattr(memory, "_UNWRITTEN", 0)
    monkeypatch.setattr(memory, "_APART", 0)
    monkeypatch.setattr(tables, "_MANY_ROWS", 100)


@pytest.fixture
def grove(tmp_path: Path) -> Path:
    """An archive of keys of several kinds, in order and in none; a tree refers to itself."""
    path = tmp_path / "grove.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            f"""
            CREATE TABLE kind (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL UNIQUE);
            CREATE TABLE tree (
                id INTEGER PRIMARY KEY, kind INTEGER NOT NULL REFERENCES kind (id),
                code VARCHAR(40) UNIQUE, spot INTEGER NOT NULL
            );
            CREATE TABLE branch (
                id INTEGER PRIMARY KEY, stem INTEGER REFERENCES branch (id), note VARCHAR(40)
            );
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_ROWS})
            INSERT INTO kind SELECT i, 'kind ' || (i * 7919 % 100003) FROM n WHERE i <= 700;
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_ROWS})
            INSERT INTO tree SELECT i, 1 + i * 31 % 700, 'code ' || (i * 7919 % 100003), i FROM n;
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_ROWS})
            INSERT INTO branch SELECT i, nullif(i / 3, 0), 'branch ' || i FROM n;
            """
        )
    archive = tmp_path / "grove.siard"
    transfer.archive(f"sqlite:///{path}", archive)
    return archive


@pytest.fixture
def made_with_keys(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that had their keys before their rows."""
    found: list[str] = []
    make = DuckdbTarget._is_made_with_keys

    def noted(self: DuckdbTarget, made: tables.NewTable) -> bool:
        done = make(self, made)
        found.extend([made.table.name] * done)
        return done

    monkeypatch.setattr(DuckdbTarget, "_is_made_with_keys", noted)
    return found


def test_keys_are_right_after_many_small_statements(
    tight: None, grove: Path, tmp_path: Path, made_with_keys: list[str]
) -> None:
    back = tmp_path / "back.duckdb"
    report = transfer.restore(grove, f"duckdb:///{back}")
    assert not report.left_out
    assert made_with_keys == ["kind", "tree"]
    assert compare(str(grove), f"duckdb:///{back}").equal
    with duckdb.connect(str(back)) as database:
        for table, column in (("tree", "id"), ("tree", "kind"), ("branch", "stem")):
            _assert_index_finds_all(database, table, column)
        for refused in (
            "INSERT INTO tree VALUES (17, 1, 'new', 1)",
            "INSERT INTO tree VALUES (99999, 1, 'code 7919', 1)",
            "INSERT INTO tree VALUES (99999, 999, 'new', 1)",
            "INSERT INTO branch VALUES (99999, 88888, 'new')",
            "DELETE FROM kind WHERE id = 5",
        ):
            with pytest.raises(duckdb.ConstraintException):
                database.execute(refused)
        database.execute("INSERT INTO tree VALUES (99999, 1, 'new', 1)")


def _assert_index_finds_all(database: duckdb.DuckDBPyConnection, table: str, column: str) -> None:
    """Ask for a value by its index, and by arithmetic that no index helps."""
    for value in (1, 5, 699, 700):
        by_index, by_scan = (
            database.execute(f"SELECT count(*) FROM {table} WHERE {term} = {value}").fetchone()
            for term in (column, f"{column} + 0")
        )
        assert by_index == by_scan


def test_tables_of_few_rows_get_their_keys_later(
    grove: Path, tmp_path: Path, made_with_keys: list[str]
) -> None:
    report = transfer.restore(grove, f"duckdb:///{tmp_path / 'back.duckdb'}")
    assert not report.left_out
    assert made_with_keys == ["tree"]  # it has a foreign key


def test_many_rows_that_break_a_key_come_without_it(
    tight: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, archive = tmp_path / "twice.db", tmp_path / "twice.siard"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER NOT NULL UNIQUE)")
        database.executemany("INSERT INTO t VALUES (?, ?)", ((i // 2, i) for i in range(4000)))
    transfer.archive(f"sqlite:///{path}", archive)
    duplicated = tables.unique_keys

    def with_another(made: tables.NewTable) -> list[tuple[str, UniqueKey]]:
        (found,) = duplicated(made)
        return [("PRIMARY KEY", UniqueKey("wrong", ("a",))), found]

    for module in (tables, sys.modules[DuckdbTarget.__module__]):
        monkeypatch.setattr(module, "unique_keys", with_another)
    report = transfer.restore(archive, f"duckdb:///{tmp_path / 'back.duckdb'}")
    assert [(left.kind, left.name) for left in report.left_out] == [
        ("primary key", "wrong of main.t")
    ]
    with duckdb.connect(str(tmp_path / "back.duckdb")) as back:
        assert back.execute("SELECT a, b FROM t").fetchall() == [(i // 2, i) for i in range(4000)]
        with pytest.raises(duckdb.ConstraintException):
            back.execute("INSERT INTO t VALUES (9999, 1)")


def test_staged_rows_whose_indexes_need_more_memory_get_it(
    grove: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_SORTING", 6 << 20)
    refusals: list[str] = []
    fill = DuckdbTarget._filled

    def noted(self: DuckdbTarget, *arguments: object) -> str | None:
        try:
            return fill(self, *arguments)  # type: ignore[arg-type]
        except duckdb.Error as error:
            refusals.append(str(error))
            raise

    monkeypatch.setattr(DuckdbTarget, "_filled", noted)
    back = tmp_path / "back.duckdb"
    report = transfer.restore(grove, f"duckdb:///{back}")
    assert len(refusals) == 1
    assert not report.left_out
    assert compare(str(grove), f"duckdb:///{back}").equal


def test_what_is_in_the_file_leaves_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_UNWRITTEN", 8 << 20)
    monkeypatch.setattr(memory, "_HELD", 8 << 20)
    with closing(connection.connect(tmp_path / "t.duckdb", read_only=False)) as database:
        database.execute("RESET memory_limit")
        database.execute("CREATE TABLE t (id UBIGINT PRIMARY KEY, v VARCHAR)")
        spare = Memory(database)
        for start in range(0, 1_000_000, 200_000):
            numbers = f"range({start}, {start + 200_000}) AS r (i)"
            database.execute(f"INSERT INTO t SELECT hash(i), 'value ' || i FROM {numbers}")
        (before,) = database.execute(_KEPT).fetchone()
        for _ in range(memory._APART + 1):
            spare.make_room()
        (after,) = database.execute(_KEPT).fetchone()
        assert before > 2 * (memory._UNWRITTEN + memory._HELD)
        assert after <= memory._HELD
        (limit,) = database.execute("SELECT current_setting('memory_limit')").fetchone()
        assert "GiB" in limit  # a statement has no limit
        assert database.execute("SELECT v FROM t WHERE id = hash(7)").fetchone() == ("value 7",)


def test_a_table_of_very_many_columns_is_read(tmp_path: Path) -> None:
    """DuckDB adds no more than a thousand numbers, and its questions take more memory then."""
    path = tmp_path / "a.duckdb"
    columns = ", ".join(f"c{number} VARCHAR" for number in range(1010))
    with duckdb.connect(path) as database:
        database.execute(f"CREATE TABLE t ({columns})")
        database.execute("INSERT INTO t (c0, c1009) VALUES ('x', 'y'), (NULL, NULL)")
    report = transfer.archive(f"duckdb:///{path}", tmp_path / "a.siard")
    assert [table.rows for table in report.tables] == [2]
