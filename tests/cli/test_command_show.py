"""``muniment show`` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Run, database


@pytest.fixture
def archive(run: Run, shop: str) -> str:
    assert run("archive", shop, "shop.siard", "--owner", "Shop").exit_code == 0
    return "shop.siard"


def test_the_overview_names_version_tables_and_views(run: Run, archive: str) -> None:
    result = run("show", archive)
    assert result.exit_code == 0
    assert result.stdout.startswith("shop.siard: SIARD 2.2, 2 tables, 6 rows, ")
    assert "Shop" in result.stdout
    assert "main.fruit" in result.stdout
    assert "view main.cheap" in result.stdout


def test_the_json_form_of_the_overview_is_stable(run: Run, archive: str) -> None:
    overview = json.loads(run("show", archive, "--json").stdout)
    assert set(overview) == {"file", "version", "dbname", "schemas"}
    assert overview["version"] == "2.2"
    (schema,) = overview["schemas"]
    assert set(schema) == {"name", "folder", "tables", "views"}
    fruit = next(table for table in schema["tables"] if table["name"] == "fruit")
    assert set(fruit) == {"name", "folder", "rows", "columns", "notes"}
    assert fruit["rows"] == 3
    assert fruit["columns"][1] == {"name": "name", "type": "VARCHAR(20)", "nullable": True}
    (view,) = schema["views"]
    assert (view["name"], set(view)) == ("cheap", {"name", "rows", "columns", "notes"})


def test_null_empty_and_the_word_null_look_different(run: Run, archive: str) -> None:
    lines = run("show", archive, "main.fruit").stdout.splitlines()
    assert lines[0].split() == ["id", "name", "price"]
    assert [line.split() for line in lines[1:]] == [
        ["1", "apple", "1.10"],
        ["2", "''", "NULL"],
        ["3", "'NULL'", "0.05"],
    ]


def test_the_json_form_of_rows_is_stable(run: Run, archive: str) -> None:
    table = json.loads(run("show", archive, "fruit", "--rows", "2", "--json").stdout)
    assert table.pop("columns")[0]["name"] == "id"
    assert table == {
        "file": "shop.siard",
        "schema": "main",
        "table": "fruit",
        "total_rows": 3,
        "notes": [],
        "rows": [["1", "apple", "1.10"], ["2", "", None]],
    }


def test_the_number_of_rows_can_be_chosen(run: Run, archive: str) -> None:
    result = run("show", archive, "main.fruit", "--rows", "1")
    assert len(result.stdout.splitlines()) == 2
    assert "1 of 3 rows" in result.stderr


def test_a_table_that_is_not_there_is_exit_code_1(run: Run, archive: str) -> None:
    result = run("show", archive, "main.friut")
    assert result.exit_code == 1
    assert "did you mean 'main.fruit'?" in result.stderr


def test_a_view_is_shown_by_its_columns_and_its_query(run: Run, archive: str) -> None:
    result = run("show", archive, "cheap")
    assert result.exit_code == 0
    assert result.stdout.startswith("main.cheap is a view")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["id", "BIGINT"] in lines and ["name", "VARCHAR(20)"] in lines
    assert "SELECT id, name FROM fruit WHERE price < '1'" in result.stdout
    assert "muniment query shop.siard" in result.stderr
    view = json.loads(run("show", archive, "main.cheap", "--json").stdout)
    assert [column["name"] for column in view.pop("columns")] == ["id", "name"]
    assert view == {
        "file": "shop.siard",
        "schema": "main",
        "view": "cheap",
        "query": None,
        "query_original": "SELECT id, name FROM fruit WHERE price < '1'",
        "description": None,
        "notes": [],
    }


def test_what_the_archive_says_of_itself_is_shown_beside_a_description(run: Run, shop: str) -> None:
    made = run("archive", shop, "part.siard", "--where", "fruit=price < '1'", "--view", "cheap")
    assert made.exit_code == 0, made.stderr
    assert run("describe", "part.siard", "--set", "main.fruit=Apples, say.").exit_code == 0
    note = "Only the rows where price < '1' were archived."
    overview = run("show", "part.siard").stdout
    assert "Apples, say." in overview
    assert f"note: main.fruit: {note}\n" in overview
    assert "note: main.cheap: The rows of a view: SELECT id, name FROM fruit WHERE" in overview
    assert f"note: main.fruit: {note}\n" in run("show", "part.siard", "fruit").stderr
    assert json.loads(run("show", "part.siard", "fruit", "--json").stdout)["notes"] == [note]
    (schema,) = json.loads(run("show", "part.siard", "--json").stdout)["schemas"]
    assert [note] in [table["notes"] for table in schema["tables"]]


def test_a_misspelt_view_is_recognised(run: Run, archive: str) -> None:
    result = run("show", archive, "chaep")
    assert result.exit_code == 1
    assert "did you mean 'main.cheap'?" in result.stderr


def test_a_file_that_is_no_archive_is_exit_code_3(run: Run) -> None:
    Path("a.siard").write_bytes(b"PK no")
    result = run("show", "a.siard")
    assert result.exit_code == 3
    assert "a.siard" in result.stderr


def test_long_values_are_cut_on_the_terminal_and_whole_in_json(run: Run, tmp_path: Path) -> None:
    script = f"CREATE TABLE t (v VARCHAR(900)); INSERT INTO t VALUES ('{'x' * 900}');"
    run("archive", database(tmp_path / "long.db", script), "long.siard")
    assert run("show", "long.siard", "t").stdout.splitlines()[1] == "x" * 59 + "…"
    assert json.loads(run("show", "long.siard", "t", "--json").stdout)["rows"] == [["x" * 900]]


def test_large_objects_in_files_of_their_own_are_shown(run: Run, tmp_path: Path) -> None:
    script = """
        CREATE TABLE t (id INTEGER PRIMARY KEY, text CLOB, bytes BLOB);
        INSERT INTO t VALUES (1, replace(hex(zeroblob(3000)), '00', 'äö'), zeroblob(5000)),
                             (2, replace(hex(zeroblob(50000)), '00', 'äö'), zeroblob(90000)),
                             (3, '', x''), (4, NULL, NULL);
    """
    run("archive", database(tmp_path / "lobs.db", script), "lobs.siard")
    one, two, three, four = json.loads(run("show", "lobs.siard", "t", "--json").stdout)["rows"]
    assert one == ["1", "äö" * 3000, "00" * 5000]
    assert two[1] == {"start": "äö" * 16384, "more": True}
    assert two[2] == {"start": "00" * 65536, "more": True}
    assert three == ["3", "", ""]
    assert four == ["4", None, None]
    assert "äöäö" in run("show", "lobs.siard", "t").stdout


def test_a_hostile_archive_cannot_command_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x9b2J\u202e"
    script = f"""
        CREATE TABLE "t{evil}" ("c{evil}" VARCHAR(90), "d[red]" VARCHAR(90));
        INSERT INTO "t{evil}" VALUES ('v{evil}', '[bold]:smile:');
        CREATE VIEW "v{evil}" AS SELECT 1 AS "x{evil}";
    """
    url = database(tmp_path / "evil.db", script)
    made = run("archive", url, "evil.siard", "--owner", f"o{evil}", "--description", f"d{evil}\n")
    assert made.exit_code == 0, made.output
    results = [
        made,
        run("show", "evil.siard"),
        run("show", "evil.siard", f"main.t{evil}"),
        run("show", "evil.siard", f"main.x{evil}"),
        run("show", "evil.siard", f"main.v{evil}"),
        run("compare", url, "evil.siard"),
        run("restore", "evil.siard", "sqlite:///again.db"),
        run("restore", "evil.siard", "sqlite:///again.db"),
        run("archive", url, "b.siard", "--table", f"x{evil}"),
    ]
    for result in results:
        assert not any(c in result.output for c in "\x1b\x07\x9b\u202e"), result.output
    assert r"v\x1b]0;owned\x07\x9b2J\u202e" in results[2].stdout
    assert "[bold]:smile:" in results[2].stdout


def test_more_rows_than_anybody_can_count_are_wrong_usage(run: Run, shop: str) -> None:
    assert run("archive", shop, "shop.siard").exit_code == 0
    assert run("show", "shop.siard", "fruit", "--rows", "9" * 20).exit_code == 2
    assert run("show", "shop.siard", "fruit", "--rows", "9" * 14).exit_code == 0
    assert run("query", "shop.siard", "SELECT 1", "--limit", "9" * 20).exit_code == 2
