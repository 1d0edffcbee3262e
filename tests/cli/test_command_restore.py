"""``muniment restore`` from the outside."""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from commandline import Run


@pytest.fixture
def archive(run: Run, shop: str) -> str:
    assert run("archive", shop, "shop.siard").exit_code == 0
    return "shop.siard"


def query(path: str, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def test_an_archive_becomes_a_database_again(run: Run, archive: str) -> None:
    result = run("restore", archive, "sqlite:///again.db")
    assert result.exit_code == 0, result.output
    assert query("again.db", "SELECT * FROM fruit ORDER BY id") == [
        (1, "apple", "1.10"), (2, "", None), (3, "NULL", "0.05"),
    ]  # fmt: skip
    assert "2 tables, 6 rows" in result.stdout


def test_the_report_recommends_the_command_that_proves_it(run: Run, archive: str) -> None:
    result = run("restore", archive, "sqlite:///again.db")
    advice = result.stderr.strip().splitlines()[-1].partition(": ")[2]
    assert run(*shlex.split(advice)[1:]).exit_code == 0


def test_the_json_form_is_stable(run: Run, archive: str) -> None:
    report = json.loads(run("restore", archive, "sqlite:///again.db", "--json").stdout)
    assert set(report) == {"database", "tables", "rows", "bytes", "seconds", "digests", "notes"}
    assert report["database"] == "sqlite:///again.db"
    assert {"schema": "main", "table": "fruit", "rows": 3} in report["tables"]


def test_what_is_there_is_replaced_only_on_request(run: Run, archive: str) -> None:
    assert run("restore", archive, "sqlite:///again.db").exit_code == 0
    before = Path("again.db").read_bytes()
    refused = run("restore", archive, "sqlite:///again.db")
    assert refused.exit_code in (2, 3)
    assert Path("again.db").read_bytes() == before
    assert run("restore", archive, "sqlite:///again.db", "--replace").exit_code == 0


def test_tables_can_be_chosen(run: Run, archive: str) -> None:
    assert run("restore", archive, "sqlite:///again.db", "--table", "fruit").exit_code == 0
    names = query("again.db", "SELECT name FROM sqlite_master WHERE type = 'table'")
    assert names == [("fruit",)]


def test_keys_can_be_left_out(run: Run, archive: str) -> None:
    assert run("restore", archive, "sqlite:///again.db", "--no-constraints").exit_code == 0
    assert query("again.db", "PRAGMA foreign_key_list(crate)") == []


def test_a_schema_can_have_another_name(run: Run, archive: str) -> None:
    result = run("restore", archive, "duckdb:///again.duckdb", "--schema-map", "main=shop")
    assert result.exit_code == 0, result.output
    assert "equal" in run("compare", archive, "duckdb:///again.duckdb").stdout
