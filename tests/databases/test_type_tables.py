"""The page about types says what the code does."""

from __future__ import annotations

from pathlib import Path

import pymysql
import pytest
from type_tables import types_page

from muniment.databases import type_tables
from muniment.databases.mapping import TypeRow, format_types
from servers.mariadb import MariadbServer, is_mysql
from servers.postgresql import Cluster

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "types.md").read_text() == types_page(), "run: make docs"


def test_a_row_names_the_xml_type_of_its_cells() -> None:
    row = TypeRow("numeric(p,s)", "NUMERIC")
    assert "| `numeric(p,s)` | NUMERIC | `xs:decimal` |" in format_types("X", [row])


@pytest.mark.parametrize("archived", ["UDT", "ARRAY", "DISTINCT", "TIMESTAMP WITH TIME ZONE"])
def test_every_kind_of_type_has_a_form(archived: str) -> None:
    assert TypeRow("x", archived, "some form").xml.endswith(", some form")


def test_every_type_that_postgresql_has_is_on_the_page(postgresql: Cluster) -> None:
    found = postgresql.psql(
        "postgres",
        "SELECT format_type(t.oid, NULL) FROM pg_type t WHERE t.typtype IN ('b', 'r', 'm')"
        " AND t.typnamespace = 'pg_catalog'::regnamespace"
        " AND NOT EXISTS (SELECT 1 FROM pg_type e WHERE e.typarray = t.oid)",
    )
    here = set(found.split("\n")) - {""}
    assert len(here) > 70
    assert here - {row.original for row in type_tables()["PostgreSQL"]} == set()


SPATIAL = ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING",
           "MULTIPOLYGON", "GEOMETRYCOLLECTION")  # fmt: skip


def test_every_type_that_mariadb_has_is_on_the_page(mariadb: MariadbServer) -> None:
    """Its own manual says which types there are; its own catalogue says what they are."""
    topics = mariadb.run(
        "SELECT t.name FROM mysql.help_topic t JOIN mysql.help_category c USING (help_category_id)"
        " WHERE c.name LIKE '%Types%'"
    )
    topics += mariadb.run(
        "SELECT PLUGIN_NAME FROM information_schema.ALL_PLUGINS WHERE PLUGIN_TYPE = 'DATA TYPE'"
    ) if topics and not is_mysql() else []  # fmt: skip
    names = {name.removesuffix(" Data Type").upper() for (name,) in topics}
    if not names:
        pytest.skip("the server has no manual")
    database, number = mariadb.new_database(), 0
    for name in sorted({*names, *SPATIAL}):
        for length in ("", "(1)", "('a')"):
            try:
                sql = f"CREATE TABLE t{number} (x {name}{length}{' UNIQUE' * (name == 'SERIAL')})"
                mariadb.run(sql, database=database)
            except pymysql.MySQLError:
                continue
            number += 1
    found = mariadb.run(
        "SELECT DISTINCT DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s"
        .replace("%s", f"'{database}'")
    )  # fmt: skip
    here = {str(row[0]) for row in found}
    assert len(here) > 30
    known = {
        row.original.partition("(")[0].split()[0] for row in type_tables()["MariaDB and MySQL"]
    }
    assert here - known == set()
