"""DuckDB lets go of what it has written, and its keys are right nevertheless."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from muniment import transfer
from muniment.compare import compare
from muniment.databases.duckdb import keys, memory, pieces, tables
from muniment.databases.duckdb.keys import Keys
from muniment.databases.duckdb.memory import IndexesTooLarge, Memory
from muniment.databases.duckdb.order import Order
from muniment.databases.sqlite import SqliteSource
from muniment.sql.model import Database, ForeignKey, Reference, UniqueKey

_ROWS = 20_000
_KEYS = (
    "SELECT count(*) FROM duckdb_constraints() WHERE constraint_type NOT IN ('NOT NULL', 'CHECK')"
)
_KEPT = "SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()"


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small statements, and an index written after each: as large tables have it."""
    monkeypatch.setattr(pieces, "_GROUP_ROWS", 1500)
    monkeypatch.setattr(memory, "_HELD", 1 << 20)
    monkeypatch.setattr(memory, "_UNWRITTEN", 0)
    monkeypatch.setattr(memory, "_APART", 0)
    monkeypatch.setattr(keys, "_TOGETHER", 2)
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
    make = Keys.make_table

    def noted(self: Keys, made: tables.NewTable) -> tables.NewTable:
        done = make(self, made)
        found.extend([made.table.name] * (done.keyed and not done.staged))
        return done

    monkeypatch.setattr(Keys, "make_table", noted)
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
    _archive_with(monkeypatch, path, archive, primary_key=UniqueKey("wrong", ("a",)))
    report = transfer.restore(archive, f"duckdb:///{tmp_path / 'back.duckdb'}")
    assert [(left.kind, left.name) for left in report.left_out] == [
        ("primary key", "wrong of main.t")
    ]
    with duckdb.connect(str(tmp_path / "back.duckdb")) as back:
        assert back.execute("SELECT a, b FROM t").fetchall() == [(i // 2, i) for i in range(4000)]
        with pytest.raises(duckdb.ConstraintException):
            back.execute("INSERT INTO t VALUES (9999, 1)")


def _archive_with(
    monkeypatch: pytest.MonkeyPatch, path: Path, archive: Path, **changes: object
) -> None:
    """Archive a database whose tables claim more than they keep."""
    describe = SqliteSource.describe

    def described(self: SqliteSource) -> Database:
        found = describe(self)
        (schema,) = found.schemas
        claimed = tuple(replace(table, **changes) for table in schema.tables)
        return replace(found, schemas=(replace(schema, tables=claimed),))

    with monkeypatch.context() as patched:
        patched.setattr(SqliteSource, "describe", described)
        patched.setattr(SqliteSource, "kept", lambda _, known: known)
        transfer.archive(f"sqlite:///{path}", archive)


def test_staged_rows_whose_indexes_take_too_much_memory_come_without_the_key(
    grove: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_SORTING", 4 << 20)
    back = tmp_path / "back.duckdb"
    report = transfer.restore(grove, f"duckdb:///{back}", index_memory=2_000_000)
    (left,) = report.left_out
    assert (left.kind, left.name.split()[-1]) == ("foreign key", "main.branch")
    assert left.reason.startswith("its index takes more memory than --index-memory allows (2 MB); ")
    with duckdb.connect(str(back)) as database:
        with pytest.raises(duckdb.ConstraintException):  # the other key is there
            database.execute("INSERT INTO branch VALUES (17, NULL, 'new')")
        database.execute("INSERT INTO branch VALUES (99999, 88888, 'new')")


@pytest.mark.parametrize("allowed, lost", [(2, 1), (1, 2), (0, 3)])
def test_keys_are_given_up_one_by_one_until_the_rest_fits(
    tight: None,
    grove: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    allowed: int,
    lost: int,
) -> None:
    """Unique keys first, as the foreign key has few values.

    The keys of a table stand for what its indexes take: sizes this small could not be told apart.
    """
    monkeypatch.setattr(memory, "_INDEXES", f"{_KEYS} AND table_name = 'tree'")
    back = tmp_path / "back.duckdb"
    report = transfer.restore(grove, f"duckdb:///{back}", index_memory=allowed)
    kinds = ["candidate key", "primary key", "foreign key"]
    assert [left.kind for left in report.left_out] == kinds[:lost]
    assert all(left.reason.endswith("; all rows keep it") for left in report.left_out)
    assert all(table.equal for table in compare(str(grove), f"duckdb:///{back}").tables)
    with duckdb.connect(str(back)) as database:
        orphan = "INSERT INTO tree VALUES (99999, 999, 'new', 1)"
        if lost < 3:
            with pytest.raises(duckdb.ConstraintException):
                database.execute(orphan)
        else:
            database.execute(orphan)


def test_foreign_keys_to_large_tables_are_given_up_before_unique_keys(
    tight: None, grove: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "_FEW", 500)
    monkeypatch.setattr(memory, "_INDEXES", f"{_KEYS} AND table_name = 'tree'")
    report = transfer.restore(grove, f"duckdb:///{tmp_path / 'a.duckdb'}", index_memory=2)
    assert [left.kind for left in report.left_out] == ["foreign key"]


@pytest.mark.parametrize(
    "claims, said",
    [
        ({"candidate_keys": (UniqueKey("once", ("b",)),)}, "4 rows are not unique"),
        (
            {
                "primary_key": UniqueKey("id", ("a",)),
                "foreign_keys": (ForeignKey("there", "main", "t", (Reference("b", "a"),)),),
            },
            "1 row refers to no row",
        ),
    ],
)
def test_rows_that_break_a_key_that_was_given_up_are_counted(
    tight: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    claims: dict[str, object],
    said: str,
) -> None:
    path, archive = tmp_path / "twice.db", tmp_path / "twice.siard"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER)")
        rows = [(i, None if i % 100 == 3 else 3 if i > 3995 else i) for i in range(4000)]
        rows[7] = (7, 4001)
        database.executemany("INSERT INTO t VALUES (?, ?)", rows)
    _archive_with(monkeypatch, path, archive, **claims)
    monkeypatch.setattr(keys, "_FEW", 500)
    monkeypatch.setattr(memory, "_INDEXES", f"{_KEYS} AND constraint_type <> 'PRIMARY KEY'")
    report = transfer.restore(archive, f"duckdb:///{tmp_path / 'back.duckdb'}", index_memory=0)
    assert [left.reason.partition("; ")[2] for left in report.left_out] == [said]


def test_what_is_in_the_file_leaves_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_UNWRITTEN", 8 << 20)
    monkeypatch.setattr(memory, "_HELD", 8 << 20)
    spare = Memory(tmp_path / "t.duckdb", tmp_path / "staged")
    with closing(spare.connection) as database:
        database.execute("RESET memory_limit")
        database.execute("CREATE TABLE t (id UBIGINT PRIMARY KEY, v VARCHAR)")
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


def test_an_index_that_one_statement_holds_may_be_too_large(tmp_path: Path) -> None:
    spare = Memory(tmp_path / "t.duckdb", tmp_path / "staged", 4_000_000)
    with closing(spare.connection) as database:
        database.execute("CREATE TABLE t (id UBIGINT PRIMARY KEY)")

        def insert(some: str) -> None:
            spare.make_room()
            database.execute(f"INSERT INTO t SELECT {some} FROM range(100_000) AS r (i)")

        for start in range(0, 2_000_000, 100_000):
            insert(f"{start} + i")  # in order: each touches little of the index
        with pytest.raises(IndexesTooLarge):
            for start in range(1, 2_000_000, 100_000):
                insert(f"hash({start} + i)")


def test_what_was_only_read_of_indexes_leaves_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_HELD", 1 << 20)
    spare = Memory(tmp_path / "t.duckdb", tmp_path / "staged")
    spare.connection.execute("CREATE TABLE p (id UBIGINT PRIMARY KEY)")
    spare.connection.execute("INSERT INTO p FROM range(300_000)")
    spare.connection.execute("CHECKPOINT")
    spare.connection.execute("CREATE TABLE t (id UBIGINT REFERENCES p (id))")
    spare.connection.execute("INSERT INTO t FROM range(0, 300_000, 7)")
    spare.connection.execute("CHECKPOINT")
    assert spare._indexes() > memory._HELD
    spare.let_go()
    with closing(spare.connection) as database:
        assert spare._indexes() <= memory._HELD
        assert database.execute("SELECT count(*) FROM t").fetchone() == (42_858,)


def test_indexes_of_many_small_tables_do_not_open_the_file_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_HELD", 1 << 20)
    spare = Memory(tmp_path / "t.duckdb", tmp_path / "staged")
    with closing(spare.connection) as database:
        for number in range(10):
            database.execute(f"CREATE TABLE t{number} (id BIGINT PRIMARY KEY)")
            database.execute(f"INSERT INTO t{number} FROM range(3)")
        assert spare._indexes() > memory._HELD
        spare.let_go()
        assert spare.connection is database
        assert spare._indexes() <= memory._HELD


def test_tables_that_wait_are_written_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_BLOCKS", 3)
    spare = Memory(tmp_path / "t.duckdb", tmp_path / "staged")
    logged = []
    with closing(spare.connection) as database:
        for number in range(6):
            database.execute(f"CREATE TABLE {memory.STAGED}.t{number} AS FROM range(9)")
            spare.keep_staged()
            log = memory.log_of(tmp_path / "staged")
            logged.append(log.exists() and log.stat().st_size > 0)
    assert logged == [True, True, False, True, True, False]


def test_a_chain_of_tables_is_put_in_order_in_one_pass() -> None:
    names = [("main", f"t{number}") for number in range(50_000)]
    needs = {name: {above} for name, above in pairwise(names)}
    order = Order({**needs, names[-1]: set()})
    assert list(order.ready()) == names[::-1] and not order.waiting


def test_tables_that_form_a_ring_start_with_the_first() -> None:
    a, b, c = (("main", name) for name in "abc")
    order = Order({a: {b}, b: {a}, c: {a}})
    assert not order.is_ready and order.first() == a
    assert list(order.ready()) == [b, c]


def test_a_table_of_very_many_columns_is_read(tmp_path: Path) -> None:
    """DuckDB adds no more than a thousand numbers, and its questions take more memory then."""
    path = tmp_path / "a.duckdb"
    columns = ", ".join(f"c{number} VARCHAR" for number in range(1010))
    with duckdb.connect(path) as database:
        database.execute(f"CREATE TABLE t ({columns})")
        database.execute("INSERT INTO t (c0, c1009) VALUES ('x', 'y'), (NULL, NULL)")
    report = transfer.archive(f"duckdb:///{path}", tmp_path / "a.siard")
    assert [table.rows for table in report.tables] == [2]


def test_large_rows_are_written_by_fewer_at_once(tmp_path: Path) -> None:
    path, archive, back = (tmp_path / name for name in ("w.db", "w.siard", "staged.duckdb"))
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            """
            CREATE TABLE small (a INTEGER PRIMARY KEY);
            CREATE TABLE wide (a INTEGER PRIMARY KEY, up INTEGER REFERENCES wide, b TEXT);
            CREATE TABLE broad (a INTEGER PRIMARY KEY, b TEXT NOT NULL);
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
            INSERT INTO small SELECT i FROM n;
            INSERT INTO wide SELECT a, nullif(a / 3, 0), printf('%.*c', 2000, a) FROM small
                WHERE a < 30000;
            INSERT INTO broad SELECT a, b FROM wide;
            """
        )
    transfer.archive(f"sqlite:///{path}", archive)
    report = transfer.restore(archive, f"duckdb:///{back}")  # whose name is that of staged rows
    assert not report.left_out
    assert compare(str(archive), f"duckdb:///{back}").equal
    with duckdb.connect(str(back)) as database:
        assert _most_rows_in_a_group(database, "broad") <= 8192
        assert _most_rows_in_a_group(database, "small") == 122_880


def _most_rows_in_a_group(database: duckdb.DuckDBPyConnection, table: str) -> int:
    """The rows of the largest row group, as the file has them."""
    found = database.execute(
        "SELECT max(n) FROM (SELECT sum(count) AS n FROM pragma_storage_info(?)"
        " WHERE column_name = 'a' AND segment_type <> 'VALIDITY' GROUP BY row_group_id)",
        [table],
    ).fetchone()
    assert found is not None
    return int(found[0])
