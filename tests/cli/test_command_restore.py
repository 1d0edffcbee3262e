"""``muniment restore`` from the outside."""

from __future__ import annotations

import json
import shlex
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from commandline import Run, database

from muniment import transfer
from muniment.errors import UsageError


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
    names = {"database", "tables", "rows", "bytes", "seconds", "digests", "notes"}
    assert set(report) == names | {"left_out", "left_out_file"}
    assert report["database"] == "sqlite:///again.db"
    assert {"schema": "main", "table": "fruit", "rows": 3} in report["tables"]


def test_what_is_there_is_replaced_only_on_request(run: Run, archive: str) -> None:
    assert run("restore", archive, "sqlite:///again.db").exit_code == 0
    before = Path("again.db").read_bytes()
    refused = run("restore", archive, "sqlite:///again.db")
    assert refused.exit_code in (2, 3)
    assert Path("again.db").read_bytes() == before
    assert run("restore", archive, "sqlite:///again.db", "--replace").exit_code == 0


@pytest.mark.parametrize("product", ["sqlite", "duckdb"])
def test_what_came_meanwhile_is_not_replaced(archive: str, product: str) -> None:
    def quicker(_: transfer.Progress) -> None:
        Path("again.db").write_text("somebody else's")

    with pytest.raises(UsageError, match=r"again\.db exists already"):
        transfer.restore(Path(archive), f"{product}:///again.db", progress=quicker)
    assert Path("again.db").read_text() == "somebody else's"
    assert not [path for path in Path().iterdir() if "partial" in path.name]


@pytest.mark.parametrize("product", ["sqlite", "duckdb"])
def test_a_link_that_leads_nowhere_is_not_replaced(run: Run, archive: str, product: str) -> None:
    Path("again.db").symlink_to("nowhere.db")
    refused = run("restore", archive, f"{product}:///again.db")
    assert refused.exit_code == 2 and "exists already" in refused.stderr
    assert Path("again.db").is_symlink() and not Path("nowhere.db").exists()


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


def with_a_trigger(path: Path) -> str:
    script = """
        CREATE TABLE fruit (id INTEGER PRIMARY KEY, name VARCHAR(20) DEFAULT 'none' CHECK (length(name) > 0));
        INSERT INTO fruit VALUES (1, 'apple');
        CREATE VIEW short AS SELECT substr(name, 1, 1) AS letter FROM fruit;
        CREATE TRIGGER keep BEFORE DELETE ON fruit BEGIN SELECT raise(ABORT, 'no'); END;
    """
    return database(path, script)


def test_views_are_translated_and_what_is_left_out_is_kept_as_sql(run: Run, tmp_path: Path) -> None:
    run("archive", with_a_trigger(tmp_path / "t.db"), "t.siard")
    result = run("restore", "t.siard", "duckdb:///t.duckdb")
    assert result.exit_code == 0, result.output
    assert "left out: trigger keep of main.fruit: its action is in the language" in result.stderr
    assert "main.short" in result.stderr
    sql = Path("t.duckdb.left-out.sql").read_text()
    assert 'CREATE TRIGGER "keep" BEFORE DELETE ON "main"."fruit"' in sql
    again = run("restore", "t.siard", "duckdb:///t.duckdb", "--replace", "--json")
    report = json.loads(again.stdout)
    assert report["left_out_file"] == "t.duckdb.left-out-2.sql"
    (left,) = report["left_out"]
    assert (left["kind"], left["name"]) == ("trigger", "keep of main.fruit")
    chosen = run("restore", "t.siard", "duckdb:///u.duckdb", "--left-out", "rest.sql")
    assert chosen.exit_code == 0 and "keep" in Path("rest.sql").read_text()
    taken = run("restore", "t.siard", "duckdb:///w.duckdb", "--left-out", "rest.sql")
    assert taken.exit_code == 2 and not Path("w.duckdb").exists()


def test_checks_and_defaults_come_from_another_product(run: Run, tmp_path: Path) -> None:
    run("archive", with_a_trigger(tmp_path / "t.db"), "t.siard")
    run("restore", "t.siard", "duckdb:///t.duckdb")
    run("archive", "duckdb:///t.duckdb", "u.siard")
    result = run("restore", "u.siard", "sqlite:///u.db")
    assert "left out" not in result.stderr, result.stderr
    assert query("u.db", "SELECT letter FROM short") == [("a",)]
    (sql,) = query("u.db", "SELECT sql FROM sqlite_master WHERE name = 'fruit'")
    assert "CHECK" in sql[0] and "DEFAULT ('none')" in sql[0]


def test_types_are_original_or_those_of_sql(run: Run, tmp_path: Path) -> None:
    script = "CREATE TABLE t (a MEDIUMINT, b NATIVE CHARACTER(70)); INSERT INTO t VALUES (1, 'x')"
    run("archive", database(tmp_path / "t.db", script), "t.siard")

    def types(*options: str) -> list[object]:
        result = run("restore", "t.siard", "sqlite:///u.db", "--replace", *options)
        assert result.exit_code == 0, result.output
        return [row[0] for row in query("u.db", "SELECT type FROM pragma_table_info('t')")]

    assert types() == types("--original-types") == ["MEDIUMINT", "NATIVE CHARACTER(70)"]
    assert "MEDIUMINT" not in types("--sql-types")
    refused = run("restore", "t.siard", "duckdb:///t.duckdb", "--original-types")
    assert refused.exit_code == 2 and "DuckDB" in refused.stderr


def test_a_timeout_is_refused_where_there_is_none(run: Run, shop: str) -> None:
    result = run("archive", shop, "t.siard", "--statement-timeout", "5")
    assert result.exit_code == 2 and "no statement timeout" in result.stderr


def test_memory_for_indexes_is_refused_where_it_means_nothing(run: Run, archive: str) -> None:
    result = run("restore", archive, "sqlite:///again.db", "--index-memory", "1GB")
    assert result.exit_code == 2
    assert "leave out --index-memory" in result.stderr
    assert run("restore", archive, "duckdb:///a.duckdb", "--index-memory", "1GB").exit_code == 0
    wrong = run("restore", archive, "duckdb:///b.duckdb", "--index-memory", "much")
    assert wrong.exit_code == 2
    assert "'much' is not a size such as 45000, 700MB or 8GiB" in wrong.stderr
    little = run("restore", archive, "duckdb:///c.duckdb", "--index-memory", "1MB")
    assert little.exit_code == 2
    assert "--index-memory takes at least 32MB" in little.stderr


def test_two_tables_that_claim_one_file_are_refused(run: Run, archive: str) -> None:
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile("lying.siard", "w") as lying:
        for name in whole.namelist():
            data = whole.read(name)
            if name == "header/metadata.xml":
                data = data.replace(b"<folder>table1<", b"<folder>table0<")
            lying.writestr(name, data)
    refused = run("restore", "lying.siard", "sqlite:///again.db")
    assert refused.exit_code == 3
    assert "main.crate: unexpected element <c3>" in refused.stderr
    assert not Path("again.db").exists()


def test_a_part_of_an_archive_is_not_said_to_equal_it(run: Run, archive: str) -> None:
    advice = "to see that only what was left out differs: muniment compare"
    for option in (("--table", "fruit"), ("--no-constraints",)):
        name = option[0].strip("-")
        result = run("restore", archive, f"sqlite:///{name}.db", *option)
        assert result.exit_code == 0 and advice in result.stderr


@pytest.mark.parametrize("product", ["sqlite", "duckdb"])
def test_replacing_by_a_link_replaces_the_database_and_not_the_link(
    run: Run, archive: str, product: str
) -> None:
    url = f"{product}:///link.db"
    assert run("restore", archive, f"{product}:///real.db").exit_code == 0
    Path("link.db").symlink_to("real.db")
    before = Path("real.db").stat().st_ino
    assert run("restore", archive, url, "--replace").exit_code == 0
    assert Path("link.db").is_symlink() and Path("real.db").stat().st_ino != before
    assert run("compare", archive, url).exit_code == 0
