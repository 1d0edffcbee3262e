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
