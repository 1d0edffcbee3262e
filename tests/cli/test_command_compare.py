"""``muniment compare`` from the outside."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from commandline import Run


@pytest.fixture
def archive(run: Run, shop: str) -> str:
    assert run("archive", shop, "shop.siard").exit_code == 0
    return "shop.siard"


def change(statement: str) -> None:
    with closing(sqlite3.connect("shop.db")) as connection, connection:
        connection.execute(statement)


def test_an_archive_equals_its_source(run: Run, shop: str, archive: str) -> None:
    result = run("compare", shop, archive)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "equal: 2 tables, 6 rows"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE fruit SET name = NULL WHERE name = ''",
        "UPDATE fruit SET price = '1.1' WHERE id = 1",
        "DELETE FROM crate WHERE id = 12",
        "INSERT INTO crate VALUES (13, 1)",
    ],
)
def test_one_changed_cell_or_row_makes_the_difference(
    run: Run, shop: str, archive: str, statement: str
) -> None:
    change(statement)
    result = run("compare", shop, archive)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("different: 1 of 2 tables")


def test_the_json_form_is_stable(run: Run, shop: str, archive: str) -> None:
    change("DELETE FROM crate WHERE id = 12")
    result = run("compare", shop, archive, "--json")
    comparison = json.loads(result.stdout)
    assert result.exit_code == 1
    assert set(comparison) == {"equal", "tables", "differences"}
    assert comparison["equal"] is False
    tables = {table["table"]: table for table in comparison["tables"]}
    assert set(tables["crate"]) == {"schema", "table", "rows", "digest", "siard_digest_1", "equal"}
    assert tables["crate"]["rows"] == [2, 3]
    assert tables["crate"]["equal"] is False
    assert tables["fruit"]["equal"] is True
    assert len(set(tables["fruit"]["digest"])) == 1
    assert all(set(each) == {"where", "a", "b"} for each in comparison["differences"])


def test_another_definition_is_a_difference(run: Run, shop: str, archive: str) -> None:
    change("ALTER TABLE crate ADD COLUMN label VARCHAR(10)")
    result = run("compare", shop, archive)
    assert result.exit_code == 1
    assert "label" in result.stdout
