"""``muniment archive`` from the outside."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import apsw
import duckdb
import pytest
from commandline import Run, database

from muniment.cli.archive import options_of
from muniment.cli.config import Settings
from muniment.cli.selecting import selection_of


def rows(run: Run, file: str, table: str) -> list[list[str | None]]:
    """The rows of an archived table."""
    found: list[list[str | None]] = json.loads(run("show", file, table, "--json").stdout)["rows"]
    return found


def test_an_archive_is_a_new_zip_file(run: Run, shop: str) -> None:
    result = run("archive", shop, "shop.siard")
    assert result.exit_code == 0, result.output
    assert zipfile.is_zipfile("shop.siard")
    assert sorted(path.name for path in Path().iterdir()) == ["shop.db", "shop.siard"]


def test_the_command_that_proves_it_can_be_pasted_whatever_the_name_of_the_file(
    run: Run, tmp_path: Path
) -> None:
    url = database(tmp_path / "quoi? a=b&c.db", "CREATE TABLE t (a INT)")
    for made in (run("archive", url, "a.siard"), run("restore", "a.siard", "sqlite:///quoi?2.db")):
        assert made.exit_code == 0, made.output
        advice = made.stderr.strip().splitlines()[-1].partition(": ")[2]
        assert run(*shlex.split(advice)[1:]).exit_code == 0, advice


def test_the_report_names_tables_and_rows_and_the_command_that_proves_it(
    run: Run, shop: str
) -> None:
    result = run("archive", shop, "shop.siard")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["main.fruit", "3"] in lines
    assert ["main.crate", "3"] in lines
    assert "shop.siard: 2 tables, 6 rows" in result.stdout
    advice = result.stderr.strip().splitlines()[-1].partition(": ")[2]
    program, *arguments = shlex.split(advice)
    assert program == "muniment"
    assert arguments == ["compare", "sqlite:///shop.db", "shop.siard"]
    assert run(*arguments).exit_code == 0


def test_the_json_form_is_stable(run: Run, shop: str) -> None:
    result = run("archive", shop, "shop.siard", "--json", "--digest", "MD5", "--digest", "SHA-256")
    report = json.loads(result.stdout)
    assert set(report) == {"file", "tables", "rows", "bytes", "seconds", "digests", "notes"}
    assert report["file"] == "shop.siard"
    assert report["rows"] == 6
    assert {"schema": "main", "table": "fruit", "rows": 3} in report["tables"]
    assert report["bytes"] > 0
    assert [digest["type"] for digest in report["digests"]] == ["MD5", "SHA-256"]
    assert result.stderr == ""


def test_an_existing_file_is_refused_and_left_as_it_is(run: Run, shop: str) -> None:
    Path("shop.siard").write_text("precious")
    result = run("archive", shop, "shop.siard")
    assert result.exit_code == 2
    assert "shop.siard exists already" in result.stderr
    assert Path("shop.siard").read_text() == "precious"


def test_a_missing_database_is_a_failure_that_leaves_nothing(run: Run) -> None:
    result = run("archive", "sqlite:///missing.db", "a.siard")
    assert result.exit_code in (2, 3)
    assert "missing.db" in result.stderr
    assert list(Path().iterdir()) == []


def test_an_unknown_kind_of_database_is_wrong_usage(run: Run) -> None:
    result = run("archive", "paper://clerk:tiger@cellar/cards", "a.siard")
    assert result.exit_code == 2
    assert "tiger" not in result.output


def test_a_misspelt_table_is_wrong_usage(run: Run, shop: str) -> None:
    result = run("archive", shop, "a.siard", "--table", "friut")
    assert result.exit_code == 2
    assert "friut" in result.stderr
    assert not Path("a.siard").exists()


def test_tables_rows_columns_and_order_can_be_chosen(run: Run, shop: str) -> None:
    chosen = ["--table", "fruit", "--columns", "fruit=name,id", "--where", "fruit=id > 1"]
    assert run("archive", shop, "a.siard", *chosen, "--order", "fruit=id DESC").exit_code == 0
    assert rows(run, "a.siard", "main.fruit") == [["NULL", "3"], ["", "2"]]
    tables = json.loads(run("show", "a.siard", "--json").stdout)["schemas"][0]["tables"]
    assert [table["name"] for table in tables] == ["fruit"]


PART = (
    "--table", "fruit", "--table", "cheap", "--view", "cheap", "--where", "fruit=id > 1",
    "--columns", "fruit=name,id", "--order", "fruit=id DESC", "--query", "q=SELECT 'a b' AS x;",
)  # fmt: skip


@pytest.mark.parametrize("way", ["options", "a file"])
def test_a_part_of_a_database_is_proved_to_equal_it(run: Run, shop: str, way: str) -> None:
    Path("part.yaml").write_text("table: fruit\nwhere: {fruit: id > 1}\n")
    Path("less.yaml").write_text("table: fruit\nwhere: {fruit: id > 2}\n")
    options = PART if way == "options" else ("--config", "part.yaml")
    result = run("archive", shop, "a.siard", *options)
    advice = result.stderr.partition("equals its source: muniment ")[2].strip()
    proved = run(*shlex.split(advice))
    assert proved.exit_code == 0, proved.output
    other = (*PART[:-1], "q=SELECT 'a c' AS x") if way == "options" else ("--config", "less.yaml")
    assert run("compare", shop, "a.siard", *other).exit_code == 1
    assert run("compare", shop, "a.siard").exit_code == 1
    restored = run("restore", "a.siard", "sqlite:///b.db")
    assert run(*shlex.split(restored.stderr.rpartition(": muniment ")[2])).exit_code == 0
    assert run("compare", shop, "sqlite:///b.db", *options).exit_code == 0


def test_a_row_that_was_chosen_and_differs_is_named(run: Run, shop: str) -> None:
    assert run("archive", shop, "a.siard", *PART).exit_code == 0
    apsw.Connection("shop.db").execute("UPDATE fruit SET name = 'pear' WHERE id = 3")
    result = run("compare", shop, "a.siard", *PART, "--json")
    found = [d["where"] for d in json.loads(result.stdout)["differences"]]
    assert "main.fruit (id='3').name" in found


def test_of_two_archives_nothing_can_be_chosen(run: Run, shop: str) -> None:
    assert run("archive", shop, "a.siard").exit_code == 0
    result = run("compare", "a.siard", "a.siard", "--table", "fruit")
    assert result.exit_code == 2 and "both sides are archives" in result.stderr


def test_a_view_and_a_query_become_tables(run: Run, shop: str) -> None:
    query = "pairs=SELECT crate.id, name FROM crate JOIN fruit ON fruit.id = fruit_id"
    result = run("archive", shop, "a.siard", "--view", "cheap", "--query", query)
    assert result.exit_code == 0, result.output
    assert rows(run, "a.siard", "main.cheap") == [["3", "NULL"]]
    assert sorted(rows(run, "a.siard", "pairs")) == [["10", "apple"], ["11", "apple"]]


def test_a_configuration_file_describes_and_options_win(run: Run, shop: str) -> None:
    Path("c.yaml").write_text(
        "owner: File\ntimespan: 2019\nexclude: crate\n"
        "descriptions: {tables: {fruit: What we sell}}\n"
    )
    result = run("archive", shop, "a.siard", "--config", "c.yaml", "--owner", "Option")
    assert result.exit_code == 0, result.output
    shown = run("show", "a.siard").stdout
    assert "Option" in shown
    assert "2019" in shown
    assert "What we sell" in shown
    assert "crate" not in shown


def test_a_fault_of_the_configuration_file_stops_before_anything_is_done(
    run: Run, shop: str
) -> None:
    Path("c.yaml").write_text("owner: x\ntabel: fruit\n")
    result = run("archive", shop, "a.siard", "--config", "c.yaml")
    assert result.exit_code == 2
    assert "c.yaml, line 2: unknown key 'tabel'; did you mean 'table'?" in result.stderr
    assert not Path("a.siard").exists()


def test_a_value_that_does_not_fit_stops_the_work_or_becomes_text(run: Run, tmp_path: Path) -> None:
    script = "CREATE TABLE t (day DATE); INSERT INTO t VALUES ('2024-01-31'), ('31 January');"
    url = database(tmp_path / "odd.db", script)
    stopped = run("archive", url, "odd.siard")
    assert stopped.exit_code == 3
    assert "main.t.day" in stopped.stderr
    assert "row 2" in stopped.stderr
    assert not Path("odd.siard").exists()
    assert run("archive", url, "odd.siard", "--as-text", "main.t.day").exit_code == 0
    assert rows(run, "odd.siard", "main.t") == [["2024-01-31"], ["31 January"]]


def test_settings_become_a_selection_and_options() -> None:
    settings = Settings(
        schema=("s",), table=("t",), view=("v",), query={"q": "SELECT 1"}, owner="o", contact="c",
        lobs="inline", lob_threshold=0, digest=("MD5",), compression="none", jobs=2,
        descriptions={"columns": {"s.t.c": "d"}},
    )  # fmt: skip
    selection, options = selection_of(settings), options_of(settings)
    assert (selection.schemas, selection.tables, selection.views) == (("s",), ("t",), ("v",))
    assert selection.queries == {"q": "SELECT 1"}
    assert (options.lobs, options.lob_threshold, options.digests) == ("inline", 0, ("MD5",))
    assert (options.compression, options.jobs) == ("none", 2)
    assert options.description.data_owner == "o"
    assert options.description.archiver_contact == "c"
    assert options.description.columns == {"s.t.c": "d"}


def test_what_nobody_said_is_left_to_the_defaults() -> None:
    from muniment.transfer import ArchiveOptions

    assert options_of(Settings()) == ArchiveOptions()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_leaves_nothing_behind(tmp_path: Path, number: int, code: int) -> None:
    script = """
        CREATE TABLE n (i INTEGER PRIMARY KEY, t VARCHAR(40));
        WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 3000000)
        INSERT INTO n SELECT i, 'number ' || i FROM c;
    """
    url = database(tmp_path / "big.db", script)
    # Where the tests run in the background, the signal is ignored from the start.
    hearing = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = f"{hearing}; from muniment.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", start, "archive", url, "big.siard", "--compression", "strong"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    while len(list(tmp_path.iterdir())) < 2:  # until there is something to leave behind
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, number)  # a terminal's Ctrl-C reaches the workers, too
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert errors.strip() == "muniment: stopped; nothing was left behind"
    assert [path.name for path in tmp_path.iterdir()] == ["big.db"]


def test_an_archive_that_can_be_gone_on_with_leaves_nothing_else(run: Run, shop: str) -> None:
    result = run("archive", shop, "a.siard", "--resume")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in Path().iterdir()) == ["a.siard", "shop.db"]


def test_a_file_in_the_way_of_resuming_is_wrong_usage(run: Run, shop: str) -> None:
    Path("a.siard.partial").write_text("mine")
    result = run("archive", shop, "a.siard", "--resume")
    assert result.exit_code == 2 and "in the way" in result.stderr
    assert Path("a.siard.partial").read_text() == "mine"


def test_ssh_is_refused_for_files(run: Run, shop: str) -> None:
    result = run("archive", shop, "a.siard", "--ssh", "me@host")
    assert result.exit_code == 2 and "database servers" in result.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--split", "1"), "'1' is too small; it takes at least 10000 bytes"),
        (("--split", "0"), "'0' is too small"),
        (("--split", "9KB"), "'9KB' is too small"),
        (("--split", "999999999T"), "'999999999T' is larger than any disk"),
        (("--lobs", "external", "--segment-size", "100"), "'100' is too small"),
        (("--segment-files", "0"), "0 is not in the range x>=1"),
        (("--lob-threshold", "-1"), "-1 is not in the range"),
        (("--lob-threshold-for", "BLOB=" + "9" * 5000), "is not a whole number"),
    ],
)
def test_sizes_that_make_no_sense_are_wrong_usage(
    run: Run, shop: str, options: tuple[str, ...], sentence: str
) -> None:
    result = run("archive", shop, "shop.siard", *options)
    assert result.exit_code == 2 and sentence in result.stderr
    assert [path.name for path in Path().iterdir()] == ["shop.db"]


@pytest.fixture(params=["SQLite", "DuckDB"])
def product(request: pytest.FixtureRequest, shop: str, tmp_path: Path) -> tuple[str, str]:
    """The name of a product, and the URL of a database in it."""
    if request.param == "DuckDB":
        with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
            db.execute("CREATE TABLE fruit (id INTEGER, name VARCHAR, price VARCHAR)")
            db.execute("CREATE VIEW cheap AS SELECT id, name FROM fruit")
        return "DuckDB", "duckdb:///shop.duckdb"
    return "SQLite", shop


@pytest.mark.parametrize(
    ("option", "value", "place", "hint"),
    [
        ("--where", "fruit=nme = 'apple'", "--where main.fruit: ", "did you mean 'name'?"),
        ("--where", "fruit=\"nme\" = 'apple'", "--where main.fruit: ", "did you mean 'name'?"),
        ("--where", "fruit=id =", "--where main.fruit: ", "its columns are id, name, price"),
        ("--where", "*=xyzzy > 1", "--where main.", "there are: id, "),
        ("--where", "fruit=id = ?", "--where main.fruit: ", "its columns are id, name, price"),
        ("--order", "fruit=nme DESC", "--order main.fruit: ", "did you mean 'name'?"),
        ("--order", "fruit=id DESC DESC", "--order main.fruit: ", "its columns are"),
        ("--query", "q=SELECT nme FROM fruit", "--query q: ", "did you mean 'name'?"),
        ("--query", "q=SELECT * FROM friut", "--query q: ", "did you mean 'main.fruit'?"),
        ("--query", "q=SELEC 1", "--query q: ", "correct it"),
        ("--query", "q=SELECT 1; SELECT 2", "--query q: ", "correct it"),
    ],
)
def test_sql_that_the_database_refuses_is_wrong_usage(
    run: Run, product: tuple[str, str], option: str, value: str, place: str, hint: str
) -> None:
    result = run("archive", product[1], "a.siard", option, value)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"muniment: {place}")
    assert f": {product[0]} refuses the " in result.stderr and hint in result.stderr
    assert not Path("a.siard").exists()


def test_a_condition_for_rows_of_a_view_is_tried_too(run: Run, product: tuple[str, str]) -> None:
    result = run("archive", product[1], "a.siard", "--view", "cheap", "--where", "cheap=nme = 1")
    assert result.exit_code == 2
    assert "--where main.cheap: " in result.stderr and "did you mean 'name'?" in result.stderr


def test_a_view_that_has_texts_between_double_quotation_marks_is_read(
    run: Run, tmp_path: Path
) -> None:
    script = """
        CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2);
        CREATE VIEW v AS SELECT a, "text" AS b FROM t;
    """
    url = database(tmp_path / "v.db", script)
    chosen = ("--view", "v", "--where", "v=a > 1", "--query", "q=SELECT b FROM v")
    assert run("archive", url, "a.siard", *chosen).exit_code == 0
    assert rows(run, "a.siard", "v") == [["2", "text"]]
    assert rows(run, "a.siard", "q") == [["text"], ["text"]]


def test_sql_for_tables_that_are_left_out_is_not_tried(run: Run, shop: str) -> None:
    result = run("archive", shop, "a.siard", "--where", "*=price > '0'", "--exclude", "crate")
    assert result.exit_code == 0, result.output


def test_a_query_may_end_as_statements_do(run: Run, product: tuple[str, str]) -> None:
    result = run("archive", product[1], "a.siard", "--query", "q=SELECT 7 AS n; ")
    assert result.exit_code == 0, result.output
    assert rows(run, "a.siard", "q") == [["7"]]


@pytest.mark.parametrize(
    ("option", "value", "advice"),
    [
        ("--where", "q=n > 1", "put the condition into the query"),
        ("--order", "main.q=n", "put ORDER BY into the query"),
        ("--columns", "q=n", "name the columns in the query"),
    ],
)
def test_what_a_query_takes_is_said_by_the_query(
    run: Run, product: tuple[str, str], option: str, value: str, advice: str
) -> None:
    result = run("archive", product[1], "a.siard", "--query", "q=SELECT 7 AS n", option, value)
    assert result.exit_code == 2
    assert advice in result.stderr


def test_a_damaged_database_is_no_wrong_usage(run: Run, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    file.write_bytes(file.read_bytes()[:100] + bytes(4096 - 100) + file.read_bytes()[4096:])
    result = run("archive", shop, "a.siard", "--where", "fruit=id = 1")
    assert result.exit_code == 3
    assert "is damaged" in result.stderr


def test_an_order_is_one_order(run: Run, product: tuple[str, str]) -> None:
    result = run("archive", product[1], "a.siard", "--order", "fruit=id; DROP TABLE fruit")
    assert result.exit_code == 2
    assert "is not one order" in result.stderr
