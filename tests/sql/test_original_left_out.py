"""What only one product has is found in its own statements."""

from __future__ import annotations

import pytest

from muniment.sql.leftout import left_out_originals
from muniment.sql.model import Database, Schema, Table
from muniment.sql.original import Original, join_original


def found(product: str, *statements: str) -> list[tuple[str, str, str | None]]:
    """Kind, name and SQL of what a table's statements hold beside the table."""
    words = join_original("Words.", Original(product, statements))
    schema = Schema("s", "schema0", tables=(Table("t", "table0", (), description=words),))
    database = Database("d", schemas=(schema,))
    return [(each.kind, each.name, each.sql) for each in left_out_originals(database, "SQLite")]


@pytest.mark.parametrize(
    ("sql", "kind", "name"),
    [
        ("CREATE INDEX i ON t (lower(a))", "index", "i"),
        ('CREATE UNIQUE INDEX "i" ON t (a) WHERE b', "index", '"i"'),
        ("CREATE POLICY p ON t USING (true)", "policy", "p"),
        ("CREATE SEQUENCE s.q START WITH 5", "sequence", "s.q"),
        ("CREATE EXTENSION IF NOT EXISTS hstore", "extension", "hstore"),
        ("CREATE STATISTICS s.x ON a, b FROM t", "statistics", "s.x"),
    ],
)
def test_statements_beside_the_table_are_listed(sql: str, kind: str, name: str) -> None:
    made = found("PostgreSQL", "CREATE TABLE t (a text)", sql)
    assert made == [(kind, f"{name} of s.t", sql)]


def test_indexes_and_partitions_inside_the_table_are_listed() -> None:
    sql = (
        "CREATE TABLE `t` (\n  `a` int,\n  PRIMARY KEY (`a`),\n  UNIQUE KEY `u` (`a`),\n"
        "  KEY `i` (`a`,`b`),\n  FULLTEXT KEY `f` (`c`)\n) ENGINE=InnoDB\n PARTITION BY HASH (`a`)\n"
        "PARTITIONS 4"
    )
    assert found("MariaDB", sql) == [
        ("index", "i of s.t", "KEY `i` (`a`,`b`)"),
        ("index", "f of s.t", "FULLTEXT KEY `f` (`c`)"),
        ("partitions", "of s.t", "PARTITION BY HASH (`a`)\nPARTITIONS 4"),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a int) PARTITION BY RANGE (a)",
        "CREATE TABLE t (\n  a int\n) PARTITION BY RANGE (a)",
        "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB\n/*!50100 PARTITION BY RANGE (a)",
    ],
)
def test_partitions_are_found_wherever_they_stand(sql: str) -> None:
    assert found("PostgreSQL", sql) == [("partitions", "of s.t", "PARTITION BY RANGE (a)")]


def test_what_the_archive_describes_is_not_listed_twice() -> None:
    comment = "COMMENT ON TABLE t IS 'x'"
    assert found("PostgreSQL", "CREATE TABLE t (a text)", comment, "CREATE TYPE x AS (a int)") == []


def test_settings_are_listed() -> None:
    sql = "ALTER TABLE t REPLICA IDENTITY FULL"
    assert found("PostgreSQL", sql) == [("setting", "of s.t", sql)]


@pytest.mark.parametrize(
    ("product", "column", "clause"),
    [
        ("SQLite", "b INT AS (a*2)", "AS (a*2)"),
        ("SQLite", "[b] generated always as (max(a, ')')) stored", "generated always as (max(a, ')')) stored"),
        ("MariaDB", "`b` int(11) GENERATED ALWAYS AS (`a` * 2) VIRTUAL COMMENT ')'", "GENERATED ALWAYS AS (`a` * 2) VIRTUAL"),
        ("PostgreSQL", "b text GENERATED ALWAYS AS (upper(a)) STORED", "GENERATED ALWAYS AS (upper(a)) STORED"),
    ],
)  # fmt: skip
def test_generated_columns_are_listed(product: str, column: str, clause: str) -> None:
    listed = found(product, f"CREATE TABLE t (a int CHECK (a IN (1, 2)), {column}, c int)")
    assert listed == [("generated column", "s.t.b", clause)]


def test_collations_are_listed_where_a_column_has_its_own() -> None:
    collated = [("collation", "NOCASE of s.t.b", "COLLATE NOCASE")]
    assert found("SQLite", "CREATE TABLE t (a TEXT, b TEXT COLLATE NOCASE)") == collated
    assert found("MariaDB", "CREATE TABLE `t` (`b` text COLLATE utf8mb4_bin)") == []


def test_what_follows_a_table_of_sqlite_is_listed() -> None:
    assert found("SQLite", "CREATE TABLE t (a INT PRIMARY KEY) STRICT, WITHOUT ROWID") == [
        ("setting", "STRICT of s.t", "STRICT"),
        ("setting", "WITHOUT ROWID of s.t", "WITHOUT ROWID"),
    ]


def test_foreign_keys_that_are_none_of_the_archive_are_listed() -> None:
    sql = 'CREATE TABLE t (a INT REFERENCES p ON DELETE CASCADE, b INT, FOREIGN KEY ("b") REFERENCES q)'
    assert found("SQLite", sql) == [
        ("foreign key", "(a) of s.t", "FOREIGN KEY (a) REFERENCES p ON DELETE CASCADE"),
        ("foreign key", "(b) of s.t", 'FOREIGN KEY ("b") REFERENCES q'),
    ]


def test_virtual_tables_are_listed() -> None:
    sql = "CREATE VIRTUAL TABLE t USING fts5(body)"
    assert found("SQLite", "CREATE TABLE t (body)", sql) == [("virtual table", "s.t", sql)]


@pytest.mark.parametrize("sql", ["CREATE TABLE t", "CREATE TABLE t (", "CREATE TABLE t (a '", "CREATE TABLE t (,,)", "CREATE TABLE t (a AS", "CREATE TABLE t /*" * 50_000])  # fmt: skip
def test_statements_that_are_none_are_passed_over(sql: str) -> None:
    assert found("SQLite", sql) == []
