"""What a DuckDB file defines beside its columns and keys comes back, or is named."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from contracts import sample
from muniment import transfer
from muniment.databases.duckdb import create_target
from muniment.siard import open_siard
from muniment.sql.model import Column, Database, ForeignKey, Reference, Schema, Table, UniqueKey
from muniment.sql.original import Original, join_original
from muniment.sql.types import parse_type

COMPUTED = """
    CREATE MACRO thrice(x) AS x * 3;
    CREATE TABLE t(
        a INTEGER, c VARCHAR GENERATED ALWAYS AS ('it''s, (' || b), b INTEGER AS (a * 2), d INTEGER,
        e INTEGER AS (thrice(a)), l INTEGER[] AS ([a, 7]), "f g" DOUBLE AS (a / 3)
    );
    COMMENT ON COLUMN t.b IS 'Doubled';
    INSERT INTO t SELECT range, range + 1 FROM range(5000);
    INSERT INTO t VALUES (NULL, NULL);
"""


def made(path: Path, sql: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute(sql)
    return path


def asked(path: Path, sql: str) -> list[Any]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def again(folder: Path, sql: str, **options: Any) -> tuple[Path, list[str]]:
    """Make a file, archive and restore it; return the new one and what was left out."""
    made(folder / "a.duckdb", sql)
    transfer.archive(f"duckdb:///{folder}/a.duckdb", folder / "a.siard")
    report = transfer.restore(folder / "a.siard", f"duckdb:///{folder}/b.duckdb", **options)
    assert not report.notes
    return folder / "b.duckdb", [str(each) for each in report.left_out]


def tables(path: Path) -> list[Any]:
    """The statements of all tables as DuckDB prints them."""
    return asked(path, "SELECT sql, comment FROM duckdb_tables() ORDER BY table_name")


def test_generated_columns_come_back_as_such(tmp_path: Path) -> None:
    copy, left_out = again(tmp_path, COMPUTED)
    assert left_out == []
    assert tables(copy) == tables(tmp_path / "a.duckdb")
    comments = "SELECT column_name, comment FROM duckdb_columns() WHERE comment IS NOT NULL"
    assert asked(copy, comments) == [("b", "Doubled")]
    assert asked(copy, "FROM t") == asked(tmp_path / "a.duckdb", "FROM t")


def test_generated_columns_of_tables_that_wait_come_back_as_such(tmp_path: Path) -> None:
    sql = """
        CREATE TABLE t(id INTEGER PRIMARY KEY, twice INTEGER AS (id * 2),
            above INTEGER REFERENCES t(id));
        INSERT INTO t VALUES (1, NULL);
        INSERT INTO t VALUES (2, 1);
    """
    copy, left_out = again(tmp_path, sql)
    assert left_out == []
    assert asked(copy, "FROM t") == [(1, 2, None), (2, 4, 1)]
    assert "GENERATED ALWAYS AS" in tables(copy)[0][0]


def test_values_that_duckdb_computes_otherwise_stay_those_of_the_archive(tmp_path: Path) -> None:
    sql = """
        CREATE TABLE t(a INTEGER, x DOUBLE AS (random()), y INTEGER AS (a + 1));
        INSERT INTO t VALUES (1), (2);
    """
    copy, left_out = again(tmp_path, sql)
    assert left_out == [
        "generated column main.t.x: DuckDB computes other values than the archive has; it is an "
        "ordinary column now, with the values of the archive"
    ]
    (statement, _), *_ = tables(copy)
    assert statement == (
        "CREATE TABLE t(a INTEGER, x DOUBLE, y INTEGER GENERATED ALWAYS AS((a + 1)));"
    )
    archived = sample_rows(tmp_path / "a.siard")
    assert [[str(value) for value in row] for row in asked(copy, "FROM t")] == archived


def sample_rows(archive: Path) -> list[list[Any]]:
    with open_siard(archive) as source:
        ((schema, table),) = source.describe().tables()
        return sample.read(source, schema, table)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("nothing(a)", "DuckDB does not understand it"),
        ("a + missing", "DuckDB does not understand it"),
        ("(SELECT 1)", "DuckDB does not understand it"),
        ("a), more INTEGER AS (1", "DuckDB does not understand it"),
        ("a); DROP TABLE t; --", "DuckDB does not understand it"),
        ("b + 1", "DuckDB does not understand it"),
        ("a + 2", "DuckDB computes other values than the archive has"),
        ("CAST('x' || a AS INTEGER)", "Conversion Error: "),
    ],
)
def test_expressions_that_cannot_come_back_are_named(
    tmp_path: Path, expression: str, reason: str
) -> None:
    left_out, rows = restored(tmp_path, expression)
    assert [(each.kind, each.name) for each in left_out] == [("generated column", "main.t.b")]
    assert left_out[0].reason.startswith(reason)
    assert "; it is an ordinary column now" in left_out[0].reason
    assert left_out[0].sql == f"GENERATED ALWAYS AS ({expression})"
    assert rows == [(1, 2)]


def test_a_generated_column_of_a_key_is_an_ordinary_one(tmp_path: Path) -> None:
    left_out, rows = restored(tmp_path, "a + 1", primary_key=UniqueKey("k", ("b",)))
    assert [each.name for each in left_out] == ["main.t.b"]
    assert left_out[0].reason.startswith("it is a part of a key;")
    assert rows == [(1, 2)]


def restored(folder: Path, expression: str, **more: Any) -> tuple[list[Any], list[Any]]:
    """Write the row 1, 2 of a table whose second column is said to be generated."""
    clause = Original("DuckDB", (f"GENERATED ALWAYS AS ({expression})",))
    columns = tuple(
        Column(name, parse_type("INTEGER"), "INTEGER", nullable=True) for name in ("a", "b")
    )
    columns = columns[0], replace(columns[1], description=join_original(None, clause))
    schema = Schema("main", "schema0", tables=(Table("t", "table0", columns, **more),))
    database = Database("d", database_product="DuckDB 2.0.0", schemas=(schema,))
    with create_target(folder / "o.duckdb") as target:
        sample.copy(target, database, {"t": [["1", "2"]]})
        left_out = target.left_out
    return left_out, asked(folder / "o.duckdb", "FROM t")


def test_generated_columns_are_ordinary_where_sql_types_are_asked_for(tmp_path: Path) -> None:
    sql = "CREATE TABLE t(a INTEGER, b INTEGER AS (a * 2)); INSERT INTO t VALUES (1)"
    copy, left_out = again(tmp_path, sql, original_types=False)
    assert [each.partition(":")[0] for each in left_out] == ["generated column main.t.b"]
    assert tables(copy) == [("CREATE TABLE t(a INTEGER, b INTEGER);", None)]


SURROUNDINGS = """
    CREATE TYPE mood AS ENUM ('sad', 'ok'); COMMENT ON TYPE mood IS 'How they are';
    CREATE TYPE number AS DECIMAL(5, 2);
    CREATE TYPE pair AS STRUCT(a INTEGER, b VARCHAR[]);
    CREATE SEQUENCE numbers START 7; COMMENT ON SEQUENCE numbers IS 'Counts';
    CREATE MACRO twice(x) AS x * 2; COMMENT ON MACRO twice IS 'Doubles';
    CREATE MACRO plus(x, y INTEGER := 5, z := 'a, (b') AS x + y, (x) AS x;
    CREATE MACRO listed(x, y := 3) AS TABLE SELECT x AS a, y AS b;
    COMMENT ON MACRO TABLE listed IS 'Lists';
    CREATE TABLE t(
        id INTEGER DEFAULT nextval('numbers'), a VARCHAR COLLATE nocase DEFAULT 'x, (',
        b VARCHAR COLLATE nocase.noaccent, d INTEGER DEFAULT (twice(2)), CHECK (twice(d) > 0)
    );
    CREATE TABLE log(a VARCHAR);
    CREATE MACRO longest() AS (SELECT max(a) FROM log);
    CREATE INDEX by_length ON t((length(a))); COMMENT ON INDEX by_length IS 'It''s long';
    CREATE TRIGGER noted AFTER INSERT ON t REFERENCING NEW TABLE AS n FOR EACH STATEMENT
        INSERT INTO log SELECT a FROM n;
    CREATE TRIGGER renamed AFTER UPDATE OF a, b ON t FOR EACH STATEMENT
        INSERT INTO log VALUES ('changed');
    INSERT INTO t(a) VALUES ('first');
"""
CATALOGUE = {
    "tables": "table_name, sql, comment",
    "indexes": "index_name, sql, comment",
    "sequences": "sequence_name, sql, comment",
    "triggers": "trigger_name, sql",
    "types": "type_name, logical_type, labels, comment",
    "functions": "function_name, parameters, parameter_types, macro_definition, comment",
}


def test_everything_beside_tables_comes_back(tmp_path: Path) -> None:
    copy, left_out = again(tmp_path, SURROUNDINGS)
    assert left_out == []
    for kind, columns in CATALOGUE.items():
        internal = "NOT internal" if kind in ("types", "functions") else "true"
        sql = f"SELECT {columns} FROM duckdb_{kind}() WHERE {internal} ORDER BY ALL"
        assert asked(copy, sql) == asked(tmp_path / "a.duckdb", sql), kind
    assert asked(copy, "SELECT plus(1, 2), plus(1, z := 'c')") == [(3, 6)]
    assert asked(copy, "SELECT typeof(CAST(NULL AS pair)), typeof(CAST(NULL AS number))") == [
        ("STRUCT(a INTEGER, b VARCHAR[])", "DECIMAL(5,2)")
    ]
    assert asked(copy, "FROM listed(1)") == [(1, 3)]
    assert asked(copy, "FROM log") == [("first",)]  # what triggers did came once
    assert asked(copy, "SELECT a FROM t WHERE a = 'FIRST'") == [("first",)]


def test_what_sqlite_alone_describes_is_named(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.executescript(
            """
            CREATE TABLE p(id INTEGER PRIMARY KEY AUTOINCREMENT, n TEXT COLLATE NOCASE);
            CREATE TABLE g(a INT, [b c] INT GENERATED ALWAYS AS (a * 2) VIRTUAL, key INT AS (a+1));
            CREATE TABLE w(k TEXT PRIMARY KEY, v INT) WITHOUT ROWID;
            CREATE TABLE k(p INT REFERENCES p(id), q INT, r INT REFERENCES p(id),
                FOREIGN KEY (q) REFERENCES nowhere(x));
            CREATE VIRTUAL TABLE f USING fts5(body);
            CREATE INDEX some ON p(n) WHERE n IS NOT NULL;
            CREATE INDEX lower_n ON p(lower(n));
            CREATE TRIGGER tr AFTER INSERT ON g BEGIN SELECT 1; END;
            INSERT INTO p(n) VALUES ('a');
            INSERT INTO g(a) VALUES (1);
            INSERT INTO k VALUES (77, 1, 1);
            INSERT INTO f VALUES ('hello');
            """
        )
    transfer.archive(f"sqlite:///{tmp_path}/a.db", tmp_path / "a.siard")
    report = transfer.restore(tmp_path / "a.siard", f"duckdb:///{tmp_path}/b.duckdb")
    assert sorted(f"{each.kind} {each.name}" for each in report.left_out) == [
        "collation NOCASE of main.p.n",
        "foreign key (p) of main.k",
        "foreign key (q) of main.k",
        "generated column main.g.b c",
        "generated column main.g.key",
        "index lower_n of main.p",
        "index some of main.p",
        "setting AUTOINCREMENT of main.p.id",
        "setting WITHOUT ROWID of main.w",
        "trigger tr of main.g",
        "virtual table main.f",
    ]
    assert asked(tmp_path / "b.duckdb", "FROM g") == [(1, 2, 2)]


def test_staged_rows_with_a_column_called_rowid_are_all_there(tmp_path: Path) -> None:
    key = ForeignKey("f", "main", "p", (Reference("p", "id"),))
    number = parse_type("INTEGER")
    parent = Table("p", "table0", (Column("id", number),), primary_key=UniqueKey("k", ("id",)))
    names = ("RowID", "p")
    child = Table("c", "table1", tuple(Column(n, number) for n in names), foreign_keys=(key,))
    schema = Schema("main", "schema0", tables=(parent, child))
    rows = {"p": [["1"]], "c": [["-5", "1"], ["0", "1"], ["900000", "7"]]}
    with create_target(tmp_path / "o.duckdb") as target:
        sample.copy(target, Database("d", schemas=(schema,)), rows)
    assert asked(tmp_path / "o.duckdb", "FROM c") == [(-5, 1), (0, 1), (900000, 7)]
