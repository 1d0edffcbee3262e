"""DuckDB files as sources and targets."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts import sample
from contracts.source_contract import SourceContract, find
from contracts.target_contract import TargetContract
from muniment import transfer
from muniment.compare import compare
from muniment.databases.duckdb import DuckdbSource, create_target, open_source
from muniment.errors import DatabaseError, Unfit, UsageError
from muniment.sql.batch import REF, batch_of, cells_of
from muniment.sql.model import (
    Attribute,
    CheckConstraint,
    Column,
    Database,
    ForeignKey,
    Reference,
    Routine,
    Schema,
    Table,
    UniqueKey,
    UserType,
    View,
)
from muniment.sql.original import Original, split_original
from muniment.sql.selection import Selection
from muniment.sql.stores import Target
from muniment.sql.types import NamedType, parse_type
from muniment.transfer import archive, restore

CHINOOK = Path(__file__).parents[2].parent / "shared/samples/db/duckdb/chinook_nested.duckdb"

Make = Callable[[str], Path]
Opened = AbstractContextManager[Any]


class TestDuckdb(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[DuckdbSource]:
        path = tmp_path / "sample.duckdb"
        with create_target(path) as target:
            sample.copy(target, sample.DATABASE, sample.ROWS)
        with open_source(path) as source:
            yield source


class TestDuckdbTarget(TargetContract):
    suffix = ".duckdb"

    @pytest.fixture
    def target(self, destination: Path) -> Callable[[], Opened]:
        return lambda: create_target(destination)

    @pytest.fixture
    def reopen(self, destination: Path) -> Callable[[], Opened]:
        return lambda: open_source(destination)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a DuckDB file by SQL."""

    def make(sql: str) -> Path:
        path = tmp_path / "made.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(sql)
        return path

    return make


def read(source: DuckdbSource, name: str = "t") -> list[list[Any]]:
    return sample.read(source, *find(source, name))


def copy(source: DuckdbSource, target: Target) -> Database:
    """Copy everything, as the product does."""
    database = source.describe()
    target.define(database)
    for schema, table in database.tables():
        encode = target.encoder(schema, table)
        pieces = [
            encode(source.batches(schema, table, part)) for part in source.parts(schema, table)
        ]
        target.write(schema, table, pieces, source.open_lob)
    target.finish(database)
    return database


def differences(first: Path, second: Path, database: Database) -> list[str]:
    """Return the tables whose rows differ between two files, in value, text or order."""
    found = []
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{first}' AS a (READ_ONLY); ATTACH '{second}' AS b (READ_ONLY)")
        for schema, table in database.tables():
            name = f'"{schema.name}"."{table.name}"'
            texts = [
                connection.execute(
                    f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {db}.{name}"
                ).fetchall()
                for db in "ab"
            ]
            rows = f"(FROM a.{name} EXCEPT ALL FROM b.{name})"
            (count,) = connection.execute(f"SELECT count(*) FROM {rows}").fetchone() or (None,)
            if texts[0] != texts[1] or count:
                found.append(name)
    return found


# Types and values

SCALARS = [
    # DuckDB type, a value, SIARD type, the cell
    ("BOOLEAN", "true", "BOOLEAN", "true"),
    ("TINYINT", "-128", "SMALLINT", "-128"),
    ("UTINYINT", "255", "SMALLINT", "255"),
    ("SMALLINT", "-32768", "SMALLINT", "-32768"),
    ("USMALLINT", "65535", "INTEGER", "65535"),
    ("INTEGER", "-2147483648", "INTEGER", "-2147483648"),
    ("UINTEGER", "4294967295", "BIGINT", "4294967295"),
    ("BIGINT", "-9223372036854775808", "BIGINT", "-9223372036854775808"),
    ("UBIGINT", "18446744073709551615", "DECIMAL(20,0)", "18446744073709551615"),
    ("HUGEINT", f"{-(2**127)}", "DECIMAL(39,0)", f"{-(2**127)}"),
    ("UHUGEINT", f"{2**128 - 1}", "DECIMAL(39,0)", f"{2**128 - 1}"),
    ("FLOAT", "'0.1'", "REAL", "0.1"),
    ("FLOAT", "'-inf'", "REAL", "-INF"),
    ("DOUBLE", "'nan'", "DOUBLE PRECISION", "NaN"),
    ("DOUBLE", "'inf'", "DOUBLE PRECISION", "INF"),
    ("DOUBLE", "'-0.0'", "DOUBLE PRECISION", "-0.0"),
    ("DOUBLE", "'5e-324'", "DOUBLE PRECISION", "5e-324"),
    ("DECIMAL(4,4)", "-0.1", "DECIMAL(4,4)", "-0.1000"),
    ("DECIMAL(38,0)", "9" * 38, "DECIMAL(38,0)", "9" * 38),
    ("VARCHAR", "''", "CLOB", ""),
    ("VARCHAR", "'a' || chr(0) || 'b'", "CLOB", "a\0b"),
    ("JSON", "'{\"a\":  1.10}'", "CLOB", '{"a":  1.10}'),
    ("BLOB", r"'\x00\xAB'", "BLOB", "00AB"),
    ("BLOB", "''", "BLOB", ""),
    ("BIT", "'0101'", "CLOB", "0101"),
    ("UUID", "'550E8400-e29b-41d4-a716-446655440000'", "CHAR(36)",
     "550e8400-e29b-41d4-a716-446655440000"),
    ("ENUM('sad', 'it''s, ok')", "'it''s, ok'", "VARCHAR(8)", "it's, ok"),
    ("DATE", "'2024-02-29'", "DATE", "2024-02-29"),
    ("DATE", "'infinity'", "DATE", "infinity"),
    ("DATE", "'0044-03-15 (BC)'", "DATE", "0044-03-15 (BC)"),
    ("TIME", "'12:34:56.500000'", "TIME(6)", "12:34:56.5"),
    ("TIME_NS", "'12:34:56.123456789'", "TIME(9)", "12:34:56.123456789"),
    ("TIMETZ", "'12:34:56+05:30'", "VARCHAR(24)", "12:34:56+05:30"),
    ("TIMESTAMP", "'2024-02-29 12:00:00'", "TIMESTAMP(6)", "2024-02-29T12:00:00"),
    ("TIMESTAMP", "'0001-01-01 00:00:00.1'", "TIMESTAMP(6)", "0001-01-01T00:00:00.1"),
    ("TIMESTAMP", "'0044-03-15 (BC) 01:02:03'", "TIMESTAMP(6)", "0044-03-15 (BC) 01:02:03"),
    ("TIMESTAMP", "'12024-01-01 00:00:00'", "TIMESTAMP(6)", "12024-01-01 00:00:00"),
    ("TIMESTAMP", "'-infinity'", "TIMESTAMP(6)", "-infinity"),
    ("TIMESTAMP_S", "'2024-02-29 12:00:01'", "TIMESTAMP(0)", "2024-02-29T12:00:01"),
    ("TIMESTAMP_MS", "'2024-02-29 12:00:00.12'", "TIMESTAMP(3)", "2024-02-29T12:00:00.12"),
    ("TIMESTAMP_NS", "'2024-02-29 12:00:00.123456789'", "TIMESTAMP(9)",
     "2024-02-29T12:00:00.123456789"),
    ("TIMESTAMPTZ", "'2024-02-29 12:00:00.5+02'", "TIMESTAMP WITH TIME ZONE(6)",
     "2024-02-29T10:00:00.5"),
]  # fmt: skip


@pytest.mark.parametrize(("duck", "value", "type_text", "cell"), SCALARS)
def test_a_value_is_archived_in_its_lexical_form_and_comes_back(
    make: Make, tmp_path: Path, duck: str, value: str, type_text: str, cell: str
) -> None:
    path = make(f"CREATE TABLE t(c {duck}); INSERT INTO t VALUES (NULL), ({value})")
    with open_source(path) as source, create_target(tmp_path / "copy.duckdb") as target:
        _, table = find(source, "t")
        assert str(table.columns[0].type) == type_text
        assert read(source) == [[None], [cell]]
        database = copy(source, target)
        assert target.notes == []
    assert differences(path, tmp_path / "copy.duckdb", database) == []


NESTED = [
    # DuckDB type, a value, cardinality, the cell
    ("STRUCT(a INTEGER, \"b c\" VARCHAR)", "{'a': 1, 'b c': ''}", None, ["1", ""]),
    ("STRUCT(a INTEGER, s STRUCT(d DATE))", "{'a': NULL, 's': {'d': '2024-02-29'}}", None,
     [None, ["2024-02-29"]]),
    ("STRUCT(a INTEGER)", "{'a': NULL}", None, [None]),
    ("INTEGER[]", "[1, NULL, 3]", 3, ["1", None, "3"]),
    ("INTEGER[]", "[]", 1, []),
    ("INTEGER[3]", "[1, 2, NULL]", 3, ["1", "2", None]),
    ("INTEGER[][]", "[[1], [], NULL, [2, 3]]", 4, [[["1"]], [[]], [None], [["2", "3"]]]),
    ("INTEGER[2][]", "[[1, NULL]]", 1, [[["1", None]]]),
    ("STRUCT(a INTEGER)[]", "[{'a': 1}, NULL, {'a': NULL}]", 3, [["1"], None, [None]]),
    ("MAP(VARCHAR, INTEGER)", "MAP {'k': 1, 'l': NULL}", 2, [["k", "1"], ["l", None]]),
    ("MAP(VARCHAR, INTEGER[])", "MAP {'k': [1, 2]}", 1, [["k", ["1", "2"]]]),
    ("MAP(INTEGER, INTEGER)", "MAP {}", 1, []),
    ("STRUCT(m MAP(INTEGER, BLOB), l VARCHAR[])", r"{'m': MAP {1: '\xFF'::BLOB}, 'l': ['']}", None,
     [[["1", "FF"]], [""]]),
    ("UNION(num INTEGER, str VARCHAR)", "union_value(str := '1')", None, ["str", None, "1"]),
    ("UNION(num INTEGER, tag INTEGER[])", "union_value(tag := [7])", None, ["tag", None, ["7"]]),
    ("UNION(num INTEGER, str VARCHAR)[]", "[union_value(num := 1)]", 1, [["num", "1", None]]),
    ("UNION(i INTERVAL, str VARCHAR)", "union_value(i := INTERVAL 1 DAY)", None,
     ["i", "P1DT0H0M0S", None]),
    ("TIMESTAMP[]", "['2024-02-29 12:00:00'::TIMESTAMP]", 1, ["2024-02-29T12:00:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("duck", "value", "cardinality", "cell"), NESTED)
def test_a_nested_value_is_archived_as_udt_or_array_and_comes_back(
    make: Make, tmp_path: Path, duck: str, value: str, cardinality: int | None, cell: list[Any]
) -> None:
    path = make(f"CREATE TABLE t(c {duck}); INSERT INTO t VALUES ({value}), (NULL), ({value})")
    with open_source(path) as source, create_target(tmp_path / "copy.duckdb") as target:
        _, table = find(source, "t")
        assert table.columns[0].cardinality == cardinality
        assert read(source) == [[cell], [None], [cell]]
        database = copy(source, target)
        assert target.notes == []
    assert differences(path, tmp_path / "copy.duckdb", database) == []


def test_generated_types_are_named_after_table_and_column(make: Make) -> None:
    path = make(
        "CREATE TABLE t(s STRUCT(a STRUCT(b INTEGER), l INTEGER[][]), m MAP(INTEGER, DATE))"
    )
    with open_source(path) as source:
        (schema,) = source.describe().schemas
    described = {t.name: [(a.name, str(a.type), a.cardinality) for a in t.attributes]
                 for t in schema.types}  # fmt: skip
    assert described == {
        "t_s_a": [("b", "INTEGER", None)],
        "t_s_l": [("item", "INTEGER", 1)],
        "t_s": [("a", "t_s_a", None), ("l", "t_s_l", 1)],
        "t_m": [("key", "INTEGER", None), ("value", "DATE", None)],
    }


INTERVALS = [
    # values, SIARD type, cells
    (["14 months", "-1 month", "0 days"], "INTERVAL YEAR TO MONTH", ["P1Y2M", "-P0Y1M", "P0Y0M"]),
    (["1 day 36:00:00.25", "-90 minutes", "-2 days"], "INTERVAL DAY TO SECOND(6)",
     ["P1DT36H0M0.25S", "-P0DT1H30M0S", "-P2DT0H0M0S"]),
    (["1 month 1 day", "-1.5 seconds"], "VARCHAR(100)", ["P0Y1M1DT0H0M0S", "P0Y0M0DT0H0M-1.5S"]),
    (["1 day -2 hours"], "VARCHAR(100)", ["P0Y0M1DT-2H0M0S"]),
    (["00:00:00.000001"], "INTERVAL DAY TO SECOND(6)", ["P0DT0H0M0.000001S"]),
]  # fmt: skip


@pytest.mark.parametrize(("intervals", "type_text", "cells"), INTERVALS)
def test_the_rows_decide_what_kind_of_interval_a_column_is(
    make: Make, tmp_path: Path, intervals: list[str], type_text: str, cells: list[str]
) -> None:
    values = ", ".join(f"(INTERVAL '{interval}')" for interval in intervals)
    path = make(f"CREATE TABLE t(c INTERVAL); INSERT INTO t VALUES {values}, (NULL)")
    with open_source(path) as source, create_target(tmp_path / "copy.duckdb") as target:
        _, table = find(source, "t")
        assert str(table.columns[0].type) == type_text
        assert read(source) == [*([cell] for cell in cells), [None]]
        database = copy(source, target)
    assert differences(path, tmp_path / "copy.duckdb", database) == []


def test_lists_that_end_with_null_are_refused_all_at_once(make: Make) -> None:
    path = make(
        "CREATE TABLE t(a INTEGER[], b STRUCT(l INTEGER[]), c INTEGER[]);"
        "INSERT INTO t VALUES ([1, NULL], {'l': [NULL]}, [NULL, 1])"
    )
    with open_source(path) as source, pytest.raises(Unfit) as caught:
        source.describe()
    assert {caught.value.where, *caught.value.others} == {"main.t.a", "main.t.b"}


def test_all_columns_with_days_that_siard_does_not_have_are_named_at_once(
    make: Make, tmp_path: Path
) -> None:
    path = make(
        """
        CREATE TABLE a(i INTEGER, d DATE, fine DATE, far TIMESTAMP, none DATE);
        INSERT INTO a VALUES (1, '2024-01-01', '9999-12-31', '2024-01-01', NULL),
            (2, 'infinity', '0001-01-01', '12024-01-01', NULL);
        CREATE TABLE b(z TIMESTAMPTZ, s TIMESTAMP_S, n TIMESTAMP_NS, l DATE[], f TIMESTAMP[2],
            r STRUCT(a DATE, b INTEGER), m MAP(INTEGER, DATE), u UNION(d DATE, i INTEGER),
            t TIME, late TIME, e TIMESTAMP, word VARCHAR);
        INSERT INTO b VALUES ('0044-03-15 (BC)', '-infinity', 'infinity', ['2024-01-01', 'infinity'],
            [NULL, 'infinity'], {'a': 'infinity'::DATE, 'b': 1}, MAP {1: 'infinity'::DATE},
            'infinity'::DATE, '23:59:59', '24:00:00', '2024-01-01', 'infinity');
        """
    )
    with pytest.raises(Unfit) as refused:
        transfer.archive(f"duckdb:///{path}", tmp_path / "a.siard")
    named = {refused.value.where, *refused.value.others}
    expected = {"main.a.d", "main.a.far", *(f"main.b.{name}" for name in "zsnlfrmu"), "main.b.late"}
    assert named == expected


def test_a_column_can_be_archived_as_text(make: Make, tmp_path: Path) -> None:
    path = make(
        "CREATE TABLE t(l INTEGER[], d DATE, b BLOB, i INTERVAL);"
        r"INSERT INTO t VALUES ([1, NULL], '-infinity', '\x00a', '1 month 1 day')"
    )
    with (
        open_source(path, Selection(as_text=("t.*",))) as source,
        create_target(tmp_path / "copy.duckdb") as target,
    ):
        _, table = find(source, "t")
        assert {str(column.type) for column in table.columns} == {"CLOB"}
        assert read(source) == [["[1, NULL]", "-infinity", r"\x00a", "1 month 1 day"]]
        copy(source, target)
        assert target.notes == []
        assert [str(item) for item in target.left_out] == [
            "type of main.t.l: it was archived as text of INTEGER[], so it is VARCHAR"
        ]
    with open_source(tmp_path / "copy.duckdb", Selection(as_text=("t.d",))) as source:
        assert read(source) == [["[1, NULL]", "-infinity", "0061", "P0Y1M1DT0H0M0S"]]


def test_types_nobody_knows_are_archived_as_text(make: Make) -> None:
    with open_source(make("CREATE TABLE t(v VARIANT); INSERT INTO t VALUES (1)")) as source:
        _, table = find(source, "t")
        assert str(table.columns[0].type) == "CLOB"
        assert read(source) == [["1"]]


# Definitions

SHOP = """
    CREATE SCHEMA "old shop";
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE SEQUENCE numbers START 7;
    CREATE MACRO twice(a) AS a * 2;
    CREATE TABLE city(id INTEGER PRIMARY KEY, "the name" VARCHAR NOT NULL DEFAULT 'Bern');
    CREATE TABLE person(
        id INTEGER DEFAULT nextval('numbers'), city INTEGER REFERENCES city(id), a INTEGER, b DATE,
        m mood, twice INTEGER GENERATED ALWAYS AS (a * 2),
        PRIMARY KEY (id), UNIQUE (a, b), CHECK (a > 0)
    );
    CREATE UNIQUE INDEX by_mood ON person(m);
    CREATE INDEX by_city ON person(city, (a + 1));
    COMMENT ON TABLE person IS 'It''s people';
    COMMENT ON COLUMN person.a IS 'A number';
    CREATE VIEW grown(x, "y z") AS SELECT a, twice(a) FROM person;
    CREATE VIEW twice_grown AS SELECT * FROM grown;
    COMMENT ON VIEW grown IS 'Grown';
    INSERT INTO city VALUES (1, 'Bern'), (2, 'Aarau');
    INSERT INTO person(city, a, b, m) VALUES (2, 1, '2024-01-01', 'ok'), (NULL, 2, NULL, NULL);
"""


@pytest.fixture
def shop(make: Make) -> Path:
    return make(SHOP)


def test_everything_a_file_defines_is_described(shop: Path) -> None:
    with open_source(shop) as source:
        database = source.describe()
    assert database.dbname == "made"
    assert database.database_product == f"DuckDB {duckdb.__version__}"
    assert database.connection == "duckdb:///made.duckdb"
    assert [(s.name, s.folder) for s in database.schemas] == [
        ("main", "schema0"),
        ("old shop", "schema1"),
    ]
    main = database.schemas[0]
    assert [(t.name, t.folder) for t in main.tables] == [("city", "table0"), ("person", "table1")]
    person = main.table("person")
    assert person.description is not None
    assert person.description.startswith("It's people\n")
    assert "CREATE INDEX by_city ON person" in person.description
    assert person.primary_key == UniqueKey("person_id_pkey", ("id",))
    assert [key.columns for key in person.candidate_keys] == [("a", "b"), ("m",)]
    assert person.foreign_keys == (
        ForeignKey("person_city_id_fkey", "main", "city", (Reference("city", "id"),)),
    )
    assert [check.condition for check in person.check_constraints] == ["(a > 0)"]
    columns = {column.name: column for column in person.columns}
    assert columns["id"].default_value == "nextval('numbers')"
    assert columns["a"].description == "A number"
    assert columns["m"].type_original == "ENUM('sad', 'ok')"
    assert split_original(columns["twice"].description) == (
        None,
        Original("DuckDB", ("GENERATED ALWAYS AS ((a * 2))",)),
    )
    name = main.table("city").columns[1]
    assert (name.name, name.nullable, name.default_value) == ("the name", False, "'Bern'")
    assert [(t.name, t.category, str(t.base)) for t in main.types] == [
        ("mood", "distinct", "VARCHAR(3)")
    ]
    grown = main.views[0]
    assert grown.query_original is not None
    assert grown.query_original.startswith("SELECT a, twice(a) FROM ")
    assert [column.name for column in grown.columns] == ["x", "y z"]
    assert grown.description == "Grown"
    assert [(r.name, r.characteristic) for r in main.routines] == [
        ("numbers", "SEQUENCE"),
        ("twice", "MACRO"),
    ]


def test_a_copy_defines_the_same(shop: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy.duckdb"
    with open_source(shop) as source, create_target(copied) as target:
        database = copy(source, target)
        assert target.notes == []
    with open_source(copied) as source:
        again = source.describe()
    assert differences(shop, copied, database) == []
    # DuckDB makes its own names for keys; a unique index comes back as a constraint.
    for schema, table in database.tables():
        other = again.schema(schema.name).table(table.name)
        assert _anonymous(table) == _anonymous(other)
        assert set(table.check_constraints) == set(other.check_constraints)
    assert [(s.name, s.types, s.views, s.routines) for s in again.schemas] == [
        (s.name, s.types, s.views, s.routines) for s in database.schemas
    ]


def _anonymous(table: Table) -> tuple[Any, ...]:
    keys = [key.columns for key in (table.primary_key, *table.candidate_keys) if key]
    foreign = {(key.referenced_table, key.references) for key in table.foreign_keys}
    return table.name, table.columns, table.description, keys, foreign


def test_a_file_that_was_not_closed_properly_is_read_with_its_log(tmp_path: Path) -> None:
    path = tmp_path / "crashed.duckdb"
    crash = (
        f"import duckdb, os; c = duckdb.connect({str(path)!r});"
        "c.execute('CREATE TABLE t(i INTEGER); INSERT INTO t VALUES (5)'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", crash], check=True)
    assert path.with_name("crashed.duckdb.wal").exists()
    with open_source(path) as source:
        assert read(source) == [["5"]]


# Selection


def test_only_chosen_tables_columns_and_rows_are_read(shop: Path) -> None:
    chosen = Selection(
        tables=("person",), columns={"person": ("b", "a")}, where={"person": "person.a < 2"}
    )
    with open_source(shop, chosen) as source:
        assert [table.name for _, table in source.describe().tables()] == ["person"]
        assert read(source, "person") == [["2024-01-01", "1"]]
        assert find(source, "person")[1].foreign_keys == ()


def test_rows_come_in_the_chosen_order(shop: Path) -> None:
    with open_source(shop, Selection(order={"city": '"the name"'})) as source:
        assert list(source.parts(*find(source, "city"))) == [None]
        assert read(source, "city") == [["2", "Aarau"], ["1", "Bern"]]


def test_columns_of_views_that_have_no_type_become_columns_of_tables(
    make: Make, tmp_path: Path
) -> None:
    path = make(
        "CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1);"
        "CREATE VIEW v AS SELECT id, NULL AS n, [] AS l, {'NULL': id, 'x': NULL} AS s FROM t"
    )
    chosen = Selection(views=("v",), queries={"q": "SELECT NULL AS n"})
    with open_source(path, chosen) as source:
        originals = [[c.type_original for c in t.columns] for _, t in source.describe().tables()]
        assert originals[1:] == [
            ["INTEGER", "VARCHAR", "VARCHAR[]", 'STRUCT("NULL" INTEGER, x VARCHAR)'],
            ["VARCHAR"],
        ]
    siard = tmp_path / "v.siard"
    archive(f"duckdb:///{path}", siard, chosen)
    report = restore(siard, f"duckdb:///{tmp_path}/again.duckdb")
    assert report.notes == ()
    result = compare(str(siard), f"duckdb:///{tmp_path}/again.duckdb")
    assert result.equal, result.differences


def test_views_and_queries_are_archived_as_tables(shop: Path) -> None:
    chosen = Selection(
        tables=("city",),
        views=("grown",),
        queries={"moods": "SELECT m, [a] AS l FROM person ORDER BY a;"},
    )
    with open_source(shop, chosen) as source:
        tables = [table for _, table in source.describe().tables()]
        assert [t.name for t in tables] == ["city", "grown", "moods"]
        assert [view.name for view in source.describe().schemas[0].views] == ["twice_grown"]
        assert read(source, "grown") == [["1", "2"], ["2", "4"]]
        assert read(source, "moods") == [["ok", ["1"]], [None, ["2"]]]
        assert tables[2].columns[1].cardinality == 1
        assert tables[1].description is not None
        assert "SELECT a, twice(a)" in tables[1].description


@pytest.mark.parametrize(
    "chosen",
    [
        Selection(tables=("persons",)),
        Selection(views=("person",)),
        Selection(schemas=("shop",)),
        Selection(queries={"person": "SELECT 1"}),
    ],
)
def test_names_that_match_nothing_or_too_much_are_refused(shop: Path, chosen: Selection) -> None:
    with open_source(shop, chosen) as source, pytest.raises(UsageError):
        source.describe()


def test_a_query_that_fails_is_an_error_with_a_reason(shop: Path) -> None:
    chosen = Selection(queries={"q": "SELECT nothing FROM person"})
    with open_source(shop, chosen) as source, pytest.raises(DatabaseError, match="nothing"):
        source.describe()


# Parts, batches, large objects


def test_a_large_table_is_cut_into_ranges_of_rowid(make: Make) -> None:
    path = make("CREATE TABLE t AS SELECT range AS i FROM range(500000); DELETE FROM t WHERE i < 9")
    with open_source(path) as source:
        schema, table = find(source, "t")
        parts = list(source.parts(schema, table))
        assert len(parts) == 9
        cells = [
            int(cell)
            for part in parts
            for batch in source.batches(schema, table, part)
            for cell in cells_of(batch)
        ]
    assert cells == list(range(9, 500000))


def test_a_column_called_rowid_hides_nothing(make: Make) -> None:
    path = make("CREATE TABLE t(rowid INTEGER, x INTEGER); INSERT INTO t VALUES (7, 1), (-1, 2)")
    with open_source(path) as source:
        assert read(source) == [["7", "1"], ["-1", "2"]]


def test_values_beyond_the_limit_come_as_references(make: Make) -> None:
    path = make(
        r"CREATE TABLE t(s VARCHAR, b BLOB, l VARCHAR[]);"
        r"INSERT INTO t VALUES ('äöü€', '\x00\x01\x02\x03', ['long enough']),"
        r"('äöü€x', '\x00\x01\x02\x03\x04', NULL)"
    )
    with open_source(path, inline_limit=4) as source:
        schema, table = find(source, "t")
        (part,) = source.parts(schema, table)
        (batch,) = source.batches(schema, table, part)
        cells = cells_of(batch)
        assert not any(cell.startswith(REF) for cell in cells[:3])
        assert cells[3].startswith(REF) and cells[4].startswith(REF)
        with source.open_lob(schema, table, cells[3][1:]) as stream:
            assert stream.read() == "äöü€x".encode()
        with source.open_lob(schema, table, cells[4][1:]) as stream:
            assert stream.read() == bytes(range(5))


def test_large_objects_come_back(make: Make, tmp_path: Path) -> None:
    path = make(
        "CREATE TABLE t(i INTEGER, s VARCHAR, b BLOB, j JSON);"
        "INSERT INTO t SELECT i, repeat('ä' || chr(0), i * 70000), encode(repeat('x', i * 3000)),"
        " '[' || repeat('1,', i * 3000) || '1]' FROM range(30) r(i)"
    )
    with open_source(path) as source, create_target(tmp_path / "copy.duckdb") as target:
        database = copy(source, target)
    assert differences(path, tmp_path / "copy.duckdb", database) == []


# Refusals


def test_files_that_cannot_be_opened_are_refused_with_advice(tmp_path: Path) -> None:
    text = tmp_path / "text.duckdb"
    text.write_text("This is not a database. " * 1000)
    os.mkfifo(pipe := tmp_path / "pipe.duckdb")
    with closing(sqlite3.connect(other := tmp_path / "other.db")) as database:
        database.execute("CREATE TABLE t (a)")
    for path, words in [
        (pipe, "is not a file"),
        (other, "is an SQLite database; name it by a URL that starts with sqlite:///"),
        (tmp_path / "missing.duckdb", "does not exist"),
        (text, "is not a DuckDB database"),
        (tmp_path, "is a folder"),
    ]:
        with pytest.raises(DatabaseError, match=words), open_source(path):
            pass
    assert not (tmp_path / "missing.duckdb").exists()


def test_a_file_that_another_process_writes_is_refused(shop: Path) -> None:
    hold = f"import duckdb; c = duckdb.connect({str(shop)!r}); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(DatabaseError, match="another process"), open_source(shop):
            pass
        other.communicate(b"\n")


def test_a_file_that_this_process_writes_is_refused(shop: Path) -> None:
    with (
        duckdb.connect(str(shop)),
        pytest.raises(DatabaseError, match="open for writing"),
        open_source(shop),
    ):
        pass


def test_other_processes_can_read_at_the_same_time(shop: Path) -> None:
    look = f"import duckdb; duckdb.connect({str(shop)!r}, read_only=True).execute('FROM city')"
    with open_source(shop):
        subprocess.run([sys.executable, "-c", look], check=True)


# Databases of other products


def _database(*tables: Table, **more: Any) -> Database:
    schema = Schema("main", "schema0", tables=tables, **more)
    return Database("other", database_product="Other 1.0", schemas=(schema,))


def _table(name: str, *columns: tuple[str, str], **more: Any) -> Table:
    made = tuple(Column(column, parse_type(kind), nullable=True) for column, kind in columns)
    return Table(name, "table0", made, **more)


def _write(path: Path, database: Database, rows: dict[str, list[list[Any]]]) -> list[str]:
    with create_target(path) as target:
        sample.copy(target, database, rows)
        return [*target.notes, *map(str, target.left_out)]


def test_types_follow_sql_when_the_archive_is_not_from_duckdb(tmp_path: Path) -> None:
    kinds = {
        "SMALLINT": "SMALLINT", "DECIMAL(38,3)": "DECIMAL(38,3)", "NUMERIC(5)": "DECIMAL(5,0)",
        "FLOAT(24)": "FLOAT", "FLOAT": "DOUBLE", "NCHAR VARYING(5)": "VARCHAR", "XML": "VARCHAR",
        "BINARY(4)": "BLOB", "TIME": "TIME", "TIME WITH TIME ZONE(6)": "TIME WITH TIME ZONE",
        "TIMESTAMP": "TIMESTAMP", "TIMESTAMP(9)": "TIMESTAMP_NS",
        "TIMESTAMP WITH TIME ZONE(3)": "TIMESTAMP WITH TIME ZONE",
        "INTERVAL YEAR TO MONTH": "INTERVAL", "INTERVAL DAY TO SECOND(3)": "INTERVAL",
    }  # fmt: skip
    table = _table("t", *((f"c{n}", kind) for n, kind in enumerate(kinds)))
    row = [
        "-5", "1.5", "+12", "0.1", "1e5", "é", "<a/>", "DEADBEEF", "12:00:00", "12:00:00.5",
        "2024-02-29T12:00:00", "2024-02-29T12:00:00.123456789", "2024-02-29T12:00:00.120",
        "-P1Y2M", "P1DT2H3M4.567S",
    ]  # fmt: skip
    assert _write(tmp_path / "o.duckdb", _database(table), {"t": [row]}) == []
    with duckdb.connect(str(tmp_path / "o.duckdb")) as connection:
        types = connection.execute(
            "SELECT data_type FROM duckdb_columns() WHERE NOT internal"
        ).fetchall()
        assert [found for (found,) in types] == list(kinds.values())
        found = connection.execute("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM t").fetchone()
    assert found == (
        "-5", "1.500", "12", "0.1", "100000.0", "é", "<a/>", r"\xDE\xAD\xBE\xEF", "12:00:00",
        "12:00:00.5+00", "2024-02-29 12:00:00", "2024-02-29 12:00:00.123456789",
        "2024-02-29 12:00:00.12+00", "-1 year -2 months", "1 day 02:03:04.567",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["DECIMAL(65,30)", "NUMERIC", "TIME(9)", "INTERVAL SECOND(2,9)"])
def test_types_that_duckdb_lacks_become_text_with_a_note(tmp_path: Path, kind: str) -> None:
    (note,) = _write(tmp_path / "o.duckdb", _database(_table("t", ("c", kind))), {"t": []})
    assert "main.t.c became VARCHAR" in note


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("INTEGER", "1.5"),
        ("INTEGER", "1e-1"),
        ("INTEGER", "3000000000"),
        ("SMALLINT", "x"),
        ("DECIMAL(4,1)", "1.25"),
        ("DECIMAL(4,1)", "12345"),
        ("TIME(6)", "12:00:00.1234567"),
        ("TIMESTAMP(6)", "2024-02-29T12:00:00.1234567"),
        ("DATE", "2024-02-30"),
        ("BOOLEAN", "maybe"),
        ("VARBINARY(4)", "0G"),
    ],
)
def test_a_value_that_would_change_is_refused(tmp_path: Path, kind: str, cell: str) -> None:
    with pytest.raises(DatabaseError, match=r"main\.t"):
        _write(tmp_path / "o.duckdb", _database(_table("t", ("c", kind))), {"t": [[cell]]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("BIGINT", ["0x10", "0XfF", "1_000", " 5 ", "1e3", "5.0", "٣", "0b1", ""]),
        ("DECIMAL(10,2)", ["0x10", "1_000", " 5", "1e3", "NaN", "1,5"]),
        ("DOUBLE PRECISION", ["0x10", "1_000", " 5", "inf", "nan", "Infinity", "1e400"]),
        ("REAL", ["1_000", "inf", "1e39", "1 "]),
        ("BOOLEAN", ["TRUE", "t", "yes", " true"]),
        ("DATE", ["epoch", "2024-1-5", "2024/01/05", "0000-01-01", "2024-01-05T00:00:00", " 2024-01-05"]),
        ("TIME(6)", ["10:00", "1:2:3", "10:00:00+02:00", " 10:00:00"]),
        ("TIMESTAMP(6)", ["epoch", "2024-01-05", "2024-01-05T10:00", "2024-01-05 10:00:00",
                          "2024-01-05T10:00:00+02:00", "0000-01-01T00:00:00"]),
        ("TIMESTAMP(3)", ["epoch", "2024-01-05", "2024-01-05T10:00:00+02:00"]),
        ("TIMESTAMP(6) WITH TIME ZONE", ["now", "2024-01-05", "2024-01-05 10:00:00"]),
        ("INTERVAL DAY TO SECOND(6)", ["5", "1 day", "P1D2"]),
        ("VARBINARY(4)", ["ABC", "A"]),
    ],
)  # fmt: skip
def test_what_is_not_spelt_as_a_value_of_its_type_is_refused(
    tmp_path: Path, kind: str, cells: list[str]
) -> None:
    table = _table("t", ("i", "INTEGER"), ("c", kind))
    for cell in cells:
        with pytest.raises(DatabaseError, match=r"main\.t\.c(, row 5|: .* has no place in)"):
            rows = [[str(number), None] for number in range(4)]
            _write(
                tmp_path / "o.duckdb", _database(table), {"t": [*rows, ["4", cell], ["5", None]]}
            )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "cell", "value"),
    [
        ("BIGINT", "+5", "5"),
        ("BIGINT", "-007", "-7"),
        ("DECIMAL(10,2)", "+1.", "1.00"),
        ("DOUBLE PRECISION", "1E3", "1000.0"),
        ("DOUBLE PRECISION", "INF", "inf"),
        ("REAL", "NaN", "nan"),
        ("BOOLEAN", "0", "false"),
        ("TIME(6)", "10:00:00.5", "10:00:00.5"),
        ("TIMESTAMP(6) WITH TIME ZONE", "2024-01-05T10:00:00+02:00", "2024-01-05 08:00:00+00"),
        ("VARBINARY(4)", "aB", "\\xAB"),
        ("DECIMAL(50,2)", "0x10", "0x10"),  # as text, as it is
    ],
)
def test_other_spellings_of_a_value_are_read(
    tmp_path: Path, kind: str, cell: str, value: str
) -> None:
    _write(tmp_path / "o.duckdb", _database(_table("t", ("c", kind))), {"t": [[None], [cell]]})
    with duckdb.connect(str(tmp_path / "o.duckdb")) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute("SELECT CAST(c AS VARCHAR) FROM t").fetchall()
    assert found == [(None,), (value,)]


@pytest.mark.parametrize("kind", ["BIGINT", "DATE", "DOUBLE PRECISION"])
def test_misspelt_values_inside_of_others_are_refused(tmp_path: Path, kind: str) -> None:
    pair = UserType("pair", "udt", attributes=(
        Attribute("a", parse_type(kind)), Attribute("b", parse_type(kind), cardinality=9)
    ))  # fmt: skip
    table = Table("t", "table0", (
        Column("l", parse_type(kind), nullable=True, cardinality=9),
        Column("s", NamedType("main", "pair"), nullable=True),
    ))  # fmt: skip
    good = {"BIGINT": "7", "DATE": "2024-02-29", "DOUBLE PRECISION": "1.5"}[kind]
    for number, bad in (("l", [[good, "0x1"], None]), ("s", [[good], [good, [good, "epoch"]]])):
        rows = [[[good, good], None], [None, [good, [good]]], [[good], None], bad]
        database = _database(table, types=(pair,))
        with pytest.raises(DatabaseError, match=rf"main\.t\.{number}, row 4: "):
            _write(tmp_path / "o.duckdb", database, {"t": rows})


def test_more_digits_are_fine_when_they_are_zeros(tmp_path: Path) -> None:
    table = _table("t", ("d", "DECIMAL(4,1)"), ("t", "TIMESTAMP(6)"))
    row = ["1.2000", "2024-02-29T12:00:00.123456000"]
    _write(tmp_path / "o.duckdb", _database(table), {"t": [row]})
    with open_source(tmp_path / "o.duckdb") as source:
        assert read(source) == [["1.2", "2024-02-29T12:00:00.123456"]]


def test_half_a_surrogate_pair_is_refused_with_the_column(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"main\.t\.c .*surrogate"):
        _write(tmp_path / "o.duckdb", _database(_table("t", ("c", "CLOB"))), {"t": [["\ud800"]]})


def test_keys_that_the_rows_break_are_noted_and_not_fatal(tmp_path: Path) -> None:
    city = _table("city", ("id", "INTEGER"), primary_key=UniqueKey("pk", ("id",)))
    person = _table(
        "person",
        ("id", "INTEGER"),
        ("city", "INTEGER"),
        primary_key=UniqueKey("person_pk", ("id",)),
        foreign_keys=(ForeignKey("lives", "main", "city", (Reference("city", "id"),)),),
    )
    rows = {"city": [["1"]], "person": [["1", "1"], ["1", "2"]]}
    notes = _write(tmp_path / "o.duckdb", _database(person, city), rows)
    assert [note.partition(": ")[0] for note in notes] == [
        "primary key person_pk of main.person",
        "foreign key lives of main.person",
    ]
    with open_source(tmp_path / "o.duckdb") as source:
        assert read(source, "person") == [["1", "1"], ["1", "2"]]
        assert find(source, "person")[1].primary_key is None


def test_rings_of_foreign_keys_are_opened_with_a_note(tmp_path: Path) -> None:
    def ring(name: str, other: str) -> Table:
        key = ForeignKey(f"{name}_fk", "main", other, (Reference("o", "id"),))
        columns = (("id", "INTEGER"), ("o", "INTEGER"))
        return _table(name, *columns, primary_key=UniqueKey("pk", ("id",)), foreign_keys=(key,))

    database = _database(ring("a", "b"), ring("b", "a"), ring("tree", "tree"), ring("me", "me"))
    rows = {
        "a": [["1", "1"]],
        "b": [["1", "1"]],
        "tree": [["1", None], ["4", "3"], ["2", "1"], ["3", "2"], ["5", "1"], ["6", None]],
        "me": [["1", "1"]],
    }
    notes = _write(tmp_path / "o.duckdb", database, rows)
    assert notes == [
        "foreign key me_fk of main.me: its rows refer to one another in a ring",
        "foreign key a_fk of main.a: its tables form a ring",
    ]
    with open_source(tmp_path / "o.duckdb") as source:
        assert find(source, "a")[1].foreign_keys == ()
        assert len(find(source, "b")[1].foreign_keys) == 1
        assert len(find(source, "tree")[1].foreign_keys) == 1
        assert [row[0] for row in read(source, "tree")] == ["1", "6", "2", "5", "3", "4"]
        assert read(source, "me") == [["1", "1"]]


def test_foreign_sql_is_tried_and_noted(tmp_path: Path) -> None:
    table = replace(
        _table("t", ("i", "INTEGER")),
        check_constraints=(
            CheckConstraint("good", "i > 0"),
            CheckConstraint("bad", "i ~~~ 5"),
            CheckConstraint("evil", "i > 0)); DROP TABLE t; --"),
        ),
    )
    table = replace(table, columns=(replace(table.columns[0], default_value="SYSDATE()"),))
    columns = (Column("i", parse_type("INTEGER")),)
    views = (
        View("fine", columns, query="SELECT i FROM t"),
        View("wrong", columns, query="SELECT i FROM nowhere"),
        View("evil", columns, query="SELECT 1; CREATE TABLE stolen(i INTEGER)"),
        View("spy", (), query="SELECT * FROM read_text('/etc/hostname')"),
        View("silent", columns, query_original="SELECT FOR"),
    )
    database = _database(table, views=views, routines=(Routine("r", "r", source="BEGIN END"),))
    notes = " ".join(_write(tmp_path / "o.duckdb", database, {"t": [["1"]]}))
    for name in ("bad of", "evil of", "default of", "main.wrong", "main.evil", "main.spy",
                 "main.silent", "main.r"):  # fmt: skip
        assert name in notes
    assert "good of" not in notes and "view main.fine" not in notes
    with open_source(tmp_path / "o.duckdb") as source:
        (schema,) = source.describe().schemas
    assert [t.name for t in schema.tables] == ["t"]
    assert [v.name for v in schema.views] == ["fine"]
    assert [c.condition for c in schema.tables[0].check_constraints] == ["(i > 0)"]


def test_replacing_leaves_nothing_of_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "o.duckdb"
    with duckdb.connect(str(path)) as old:
        old.execute("CREATE TABLE t (j INTEGER); CREATE TABLE other (j INTEGER)")
    with (
        pytest.raises(UsageError, match=r"main\.other"),
        create_target(path, replace=True) as target,
    ):
        sample.copy(target, _database(_table("t", ("i", "INTEGER"))), {"t": [["1"]]})
    with duckdb.connect(str(path)) as old:
        old.execute("DROP TABLE other")
    with create_target(path, replace=True) as target:
        sample.copy(target, _database(_table("t", ("i", "INTEGER"))), {"t": [["1"]]})
    assert [rest.name for rest in tmp_path.iterdir()] == ["o.duckdb"]
    with open_source(path) as source:
        assert read(source) == [["1"]]


def test_a_target_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    with create_target(tmp_path / "o.duckdb"):
        pass
    assert list(tmp_path.iterdir()) == []


# Laws

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_LEAVES: dict[str, st.SearchStrategy[str]] = {
    "INTEGER": st.integers(-(2**31), 2**31 - 1).map(str),
    "UBIGINT": st.integers(0, 2**64 - 1).map(str),
    "HUGEINT": st.integers(-(2**127), 2**127 - 1).map(lambda n: f"'{n}'"),
    "DOUBLE": st.floats(allow_nan=True).map(lambda f: f"'{f!r}'"),
    "FLOAT": st.floats(width=32).map(lambda f: f"'{f!r}'"),
    "DECIMAL(9,4)": st.decimals(-99999, 99999, places=4).map(str),
    "BOOLEAN": st.sampled_from(["true", "false"]),
    "VARCHAR": texts.map(_literal),
    "BLOB": st.binary(max_size=9).map(lambda b: "'" + "".join(f"\\x{x:02X}" for x in b) + "'"),
    "DATE": st.dates().map(lambda d: f"'{d}'"),
    "TIME": st.times().map(lambda t: f"'{t}'"),
    "TIMESTAMP": st.datetimes().map(lambda t: f"'{t}'"),
    "TIMESTAMP WITH TIME ZONE": st.datetimes().map(lambda t: f"'{t}+00'"),
    "TIMESTAMP_NS": st.integers(-(2**62), 2**62).map(lambda n: f"make_timestamp_ns({n})"),
    "INTERVAL": st.tuples(
        st.integers(-999, 999), st.integers(-999, 999), st.integers(-(10**12), 10**12)
    ).map(lambda i: f"to_months({i[0]}) + to_days({i[1]}) + to_microseconds({i[2]})"),
    "UUID": st.uuids().map(lambda u: f"'{u}'"),
    "ENUM('a', 'b''c')": st.sampled_from(["'a'", "'b''c'"]),
}


def _nullable(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just("NULL"), values)


def _typed(kind: str, values: st.SearchStrategy[str]) -> tuple[str, st.SearchStrategy[str]]:
    return kind, values.map(lambda value: f"CAST({value} AS {kind})")


@st.composite
def kinds(draw: st.DrawFn, depth: int = 2) -> tuple[str, st.SearchStrategy[str]]:
    """A DuckDB type, and SQL for values of it that are not NULL."""
    shape = draw(st.sampled_from(["leaf", "leaf", "list", "array", "struct", "map", "union"]))
    if depth == 0 or shape == "leaf":
        kind = draw(st.sampled_from(sorted(_LEAVES)))
        return _typed(kind, _LEAVES[kind])
    kind, values = draw(kinds(depth=depth - 1))
    match shape:
        case "list":  # one that ends with NULL has no place in SIARD
            items = st.tuples(st.lists(_nullable(values), max_size=2), values)
            some = items.map(lambda i: f"[{', '.join([*i[0], i[1]])}]")
            return _typed(f"{kind}[]", st.one_of(st.just("[]"), some))
        case "array":
            items = st.tuples(_nullable(values), _nullable(values))
            return _typed(f"{kind}[2]", items.map(lambda i: f"[{i[0]}, {i[1]}]"))
        case "struct":
            other, others = draw(kinds(depth=depth - 1))
            fields = st.tuples(_nullable(values), _nullable(others))
            packed = fields.map(lambda f: f"{{'a': {f[0]}, 'b c': {f[1]}}}")
            return _typed(f'STRUCT(a {kind}, "b c" {other})', packed)
        case "map":
            keys = st.lists(st.integers(0, 9), unique=True, max_size=3)
            entries = keys.flatmap(lambda ks: st.tuples(*(
                _nullable(values).map(lambda v, k=k: f"{k}: {v}") for k in ks)))  # fmt: skip
            return _typed(f"MAP(INTEGER, {kind})", entries.map(lambda e: f"MAP {{{', '.join(e)}}}"))
    one = values.map(lambda v: f"union_value(one := {v})")
    two = texts.map(lambda t: f"union_value(two := {_literal(t)})")
    return _typed(f"UNION(one {kind}, two VARCHAR)", st.one_of(one, two))


@st.composite
def tables(draw: st.DrawFn) -> str:
    """SQL that makes and fills a table."""
    columns = draw(st.lists(kinds(), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*(_nullable(values) for _, values in columns)), max_size=4))
    defined = ", ".join(f"c{number} {kind}" for number, (kind, _) in enumerate(columns))
    made = [f"CREATE TABLE t({defined})", *(f"INSERT INTO t VALUES ({', '.join(r)})" for r in rows)]
    return ";\n".join(made)


@given(tables())
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_table_comes_back_unchanged(sql: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, copied = Path(folder, "a.duckdb"), Path(folder, "b.duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.execute(sql)
        with open_source(path, inline_limit=6) as source, create_target(copied) as target:
            database = copy(source, target)
            assert target.notes == []
        assert differences(path, copied, database) == []


@given(st.lists(st.tuples(st.none() | texts, st.none() | texts), max_size=20))
@settings(max_examples=25, deadline=None)
def test_any_text_arrives_as_it_is(rows: list[tuple[str | None, str | None]]) -> None:
    database = _database(_table("t", ("a", "VARCHAR(12)"), ("b", "CLOB")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.duckdb")
        with create_target(path) as target:
            target.define(database)
            ((schema, table),) = database.tables()
            piece = target.encoder(schema, table)([batch_of(rows)] if rows else [])
            target.write(schema, table, [piece], sample.open_lob)
            target.finish(database)
        with open_source(path) as source:
            assert read(source) == [list(row) for row in rows]


@pytest.mark.samples
@pytest.mark.skipif(not CHINOOK.exists(), reason="the corpus is not beside the project")
def test_a_real_file_comes_back_whole(tmp_path: Path) -> None:
    chosen = Selection(as_text=("nested.alltypes.t25",))  # it ends with NULL
    with open_source(CHINOOK, chosen) as source, create_target(tmp_path / "c.duckdb") as target:
        database = copy(source, target)
        assert [item.name for item in target.left_out] == ["of nested.alltypes.t25"]
    assert sum(1 for _ in database.tables()) == 14
    assert differences(CHINOOK, tmp_path / "c.duckdb", database) == []
    with open_source(tmp_path / "c.duckdb", chosen) as source:
        again = source.describe()
    assert [v.name for s in again.schemas for v in s.views] == ["v_long"]
