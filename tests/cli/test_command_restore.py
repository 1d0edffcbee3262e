"""``muniment restore`` from the outside."""

from __future__ import annotations

import json
import shlex
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from click.testing import Result
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
    for option in (("--table", "fruit"), ("--no-constraints",), ("--sql-types",)):
        name = option[0].strip("-")
        result = run("restore", archive, f"sqlite:///{name}.db", *option)
        assert result.exit_code == 0 and advice in result.stderr


def advised(result: Result) -> tuple[str, list[str]]:
    """What the last line of a report is for, and the command in it."""
    purpose, _, command = result.stderr.strip().splitlines()[-1].partition(": ")
    return purpose, shlex.split(command)[1:]


def test_a_trigger_of_a_table_without_all_its_columns_is_left_out_for_that(run: Run) -> None:
    shop = database(
        Path("log.db"),
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT); CREATE TABLE log (w TEXT);"
        "CREATE TRIGGER g AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (old.b); END",
    )
    assert run("archive", shop, "log.siard", "--columns", "t=id,a").exit_code == 0
    result = run("restore", "log.siard", "sqlite:///again.db")
    assert "trigger g of main.t: columns of its table were not archived" in result.stderr
    purpose, command = advised(result)
    assert purpose == "to see that only what was left out differs"
    compared = json.loads(run(*command, "--json").stdout)
    assert [found["where"] for found in compared["differences"]] == ["main.t triggers"]
    plain = run("restore", "log.siard", "sqlite:///plain.db", "--sql-types")
    assert "another product" not in plain.stderr


def test_rows_of_views_and_queries_come_back_as_the_tables_that_the_archive_has(run: Run) -> None:
    shop = database(
        Path("view.db"),
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n DECIMAL(9,2), s VARCHAR(10), d DATE);"
        "INSERT INTO t VALUES (1, 1.5, 'one', '2026-11-15'), (2, NULL, NULL, NULL);"
        "CREATE VIEW v AS SELECT t.*, n * 2 AS twice, upper(s) AS u, count(*) AS c, NULL AS no "
        "FROM t GROUP BY id",
    )
    chosen = ("--view", "v", "--query", "q=SELECT id + 1 AS next, s FROM t")
    assert run("archive", shop, "view.siard", *chosen).exit_code == 0
    purpose, command = advised(run("restore", "view.siard", "sqlite:///again.db"))
    assert purpose == "to prove that the database equals the archive"
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert query("again.db", "SELECT twice, typeof(twice), u, c, typeof(c) FROM v") == [
        (3.0, "real", "ONE", 1, "integer"), (None, "null", None, 1, "integer"),
    ]  # fmt: skip


def test_lists_are_not_said_to_come_back_where_there_are_none(run: Run) -> None:
    with closing(duckdb.connect("lists.duckdb")) as connection:
        connection.execute("CREATE TABLE t (l INTEGER[]); INSERT INTO t VALUES ([1, 2])")
    assert run("archive", "duckdb:///lists.duckdb", "lists.siard").exit_code == 0
    result = run("restore", "lists.siard", "sqlite:///lists.db")
    assert "left out: type of main.t.l: SQLite has no lists and structures" in result.stderr
    purpose, command = advised(result)
    assert purpose == "to see that only what was left out differs"
    compared = json.loads(run(*command, "--json").stdout)
    assert "main.t.l type" in [found["where"] for found in compared["differences"]]


def test_another_declaration_is_still_a_difference(run: Run) -> None:
    shop = database(Path("shop.db"), "CREATE TABLE t (a, b TEXT); INSERT INTO t VALUES (1, 'x')")
    assert run("archive", shop, "plain.siard").exit_code == 0
    other = database(
        Path("other.db"), "CREATE TABLE t (a BIGINT, b CLOB); INSERT INTO t VALUES (1, 'x')"
    )
    result = run("compare", "plain.siard", other)
    assert result.exit_code == 1
    assert "main.t.a original type: none | BIGINT" in result.stdout
    assert "main.t.b original type: TEXT | CLOB" in result.stdout


@pytest.fixture
def several(run: Run) -> str:
    """An archive of schemas whose tables get equal names if the schema goes before theirs."""
    with closing(duckdb.connect("several.duckdb")) as connection:
        connection.execute(
            "CREATE SCHEMA a; CREATE SCHEMA a_b;"
            "CREATE TABLE a.b_c (id INTEGER PRIMARY KEY); INSERT INTO a.b_c VALUES (1), (2);"
            "CREATE TABLE a_b.c (id INTEGER PRIMARY KEY); INSERT INTO a_b.c VALUES (3);"
            "CREATE TABLE a_b.child (c INTEGER REFERENCES a_b.c (id)); INSERT INTO a_b.child VALUES (3);"
            "CREATE VIEW a.v AS SELECT b_c.id, c.id AS other FROM a.b_c, a_b.c"
        )
    assert run("archive", "duckdb:///several.duckdb", "several.siard").exit_code == 0
    return "several.siard"


@pytest.mark.parametrize("command", ["restore", "export"])
def test_tables_of_several_schemas_are_found_again(run: Run, several: str, command: str) -> None:
    place = ["one.db", "--format", "sqlite"] if command == "export" else ["sqlite:///one.db"]
    result = run(command, several, *place)
    assert result.exit_code == 0, result.output
    assert "are called SCHEMA_TABLE, as a_b_c for a.b_c" in result.stderr
    assert "a_b.c is called a_b_c_2" in result.stderr
    assert query("one.db", "SELECT * FROM a_v ORDER BY 1") == [(1, 3), (2, 3)]
    purpose, advice = advised(result)
    assert purpose == "to prove that the database equals the archive"
    for sides in (advice[1:], ["duckdb:///several.duckdb", "sqlite:///one.db"]):
        compared = run("compare", *sides)
        assert compared.exit_code == 0, compared.output
    assert run("restore", several, "sqlite:///one.db", "--replace").exit_code == 0


@pytest.mark.parametrize("place", ["sqlite:///other.db", "duckdb:///other.duckdb"])
def test_schemas_are_found_again_under_other_names(run: Run, several: str, place: str) -> None:
    names = ("--schema-map", "a=new", "--schema-map", "a_b=a")
    result = run("restore", several, place, *names)
    assert result.exit_code == 0, result.output
    _, advice = advised(result)
    compared = json.loads(run(*advice, "--json").stdout)
    assert all(table["equal"] for table in compared["tables"]) and len(compared["tables"]) == 3
    found = {difference["where"] for difference in compared["differences"]}
    assert found <= {"view v"}  # which DuckDB could not make, and restore has named
    wrong = run("compare", *advice[1:3])
    assert wrong.exit_code == 1


def test_views_name_their_schema_as_it_is_called_now(run: Run) -> None:
    with closing(duckdb.connect("one.duckdb")) as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.t (c INTEGER); CREATE TABLE u (s INTEGER);"
            "CREATE VIEW s.v AS SELECT t.c, 's.t' AS name FROM s.t"
        )
    assert run("archive", "duckdb:///one.duckdb", "one.siard").exit_code == 0
    result = run("restore", "one.siard", "duckdb:///two.duckdb", "--schema-map", "s=r")
    assert result.exit_code == 0, result.output
    compared = run(*advised(result)[1])
    assert compared.exit_code == 0, compared.output


def test_a_part_of_several_schemas_is_compared_with_that_part(run: Run, several: str) -> None:
    result = run("restore", several, "sqlite:///part.db", "--table", "a_b.*")
    compared = json.loads(run(*advised(result)[1], "--json").stdout)
    assert [(t["schema"], t["table"], t["equal"]) for t in compared["tables"]] == [
        ("a_b", "c", True), ("a_b", "child", True), ("a", "b_c", False),
    ]  # fmt: skip
    assert [found["where"] for found in compared["differences"]] == ["a.b_c"]


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
