"""``muniment query``: formats, several archives, and what goes wrong."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest
from commandline import Run, database


@pytest.fixture
def archive(shop: str, run: Run, tmp_path: Path) -> Path:
    assert run("archive", shop, "shop.siard").exit_code == 0
    return tmp_path / "shop.siard"


def test_a_query_prints_a_table(archive: Path, run: Run) -> None:
    result = run("query", "shop.siard", "SELECT * FROM fruit ORDER BY id")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "id  name    price", " 1  apple   1.10", " 2  ''      NULL", " 3  'NULL'  0.05",
    ]  # fmt: skip


def test_json_is_stable(archive: Path, run: Run) -> None:
    result = run("query", "shop.siard", "SELECT id, name FROM cheap", "--json")
    assert json.loads(result.stdout) == {
        "columns": [{"name": "id", "type": "int64"}, {"name": "name", "type": "string"}],
        "rows": [[3, "NULL"]],
        "more": False,
    }


def test_csv_tells_null_from_empty_and_disarms_formulas(archive: Path, run: Run) -> None:
    sql = "SELECT name, price FROM fruit WHERE id = 2 UNION ALL SELECT '=1+1', '-2+3'"
    result = run("query", "shop.siard", sql, "--format", "csv")
    assert result.stdout == '"name","price"\n"",\n"\'=1+1","\'-2+3"\n'
    result = run("query", "shop.siard", sql, "--format", "csv", "--exact")
    assert result.stdout == '"name","price"\n"",\n"=1+1","-2+3"\n'


def test_numbers_are_no_formulas(run: Run, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "large.duckdb")) as db:
        db.execute("CREATE TABLE t (n HUGEINT)")
        db.execute("INSERT INTO t VALUES (-5), (-170141183460469231731687303715884105727)")
    assert run("archive", "duckdb:///large.duckdb", "large.siard").exit_code == 0
    result = run("query", "large.siard", "SELECT n FROM t", "--format", "csv")
    numbers = [line.strip('"') for line in result.stdout.splitlines()]
    assert numbers == ["n", "-5", "-170141183460469231731687303715884105727"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "json", "table"])
def test_a_terminal_gets_no_control_characters(run: Run, tmp_path: Path, form: str) -> None:
    evil = "\x1b]0;owned\x07\x9b2J\u202eü\r"
    script = f"CREATE TABLE t (v VARCHAR(90)); INSERT INTO t VALUES ('{evil}\nnext');"
    assert run("archive", database(tmp_path / "evil.db", script), "evil.siard").exit_code == 0
    command = [sys.executable, "-m", "muniment", "query", "evil.siard", "SELECT v FROM t"]
    line = shlex.join([*command, "--format", form])
    shown = subprocess.run(
        ["script", "-qefc", f"{line} 2>/dev/null", "/dev/null"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True,
    ).stdout.decode()  # fmt: skip
    lines = shown.replace("\r\n", "\n")
    bold = re.compile(r"\x1b\[[0-9;]*m")  # of the heading, by ourselves
    assert not any(c in bold.sub("", lines) for c in "\x1b\x07\x9b\u202e\r"), lines
    assert "owned" in lines
    piped = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60, check=True).stdout
    if form == "csv":
        assert piped.decode() == f'"v"\n"{evil}\nnext"\n'


def test_parquet_goes_to_a_file(archive: Path, run: Run, tmp_path: Path) -> None:
    arguments = "query", "shop.siard", "SELECT id FROM fruit", "--format", "parquet"
    assert run(*arguments).exit_code == 2
    assert run(*arguments, "--out", "fruit.parquet").exit_code == 0
    assert pyarrow.parquet.read_table(tmp_path / "fruit.parquet").to_pydict() == {"id": [1, 2, 3]}
    assert run(*arguments, "--out", "fruit.parquet").exit_code == 2


def test_archives_are_compared_by_a_query(archive: Path, run: Run) -> None:
    sql = "SELECT * FROM shop.main.fruit EXCEPT SELECT * FROM again.main.fruit"
    result = run("query", "shop.siard", sql, "--attach", "again=shop.siard", "--format", "jsonl")
    assert (result.exit_code, result.stdout) == (0, "")


def test_a_limit_is_said(archive: Path, run: Run) -> None:
    result = run("query", "shop.siard", "SELECT id FROM fruit", "--limit", "2")
    assert result.stdout.split() == ["id", "1", "2"]
    assert "only the first 2 rows" in result.stderr


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM fruits", "fruits"),
        ("DELETE FROM fruit", "never changed"),
        ("SELECT * FROM read_csv('/etc/passwd')", "files cannot be read here"),
    ],
)
def test_what_cannot_be_answered_gets_a_sentence(
    archive: Path, run: Run, sql: str, words: str
) -> None:
    result = run("query", "shop.siard", sql)
    assert result.exit_code == 3
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_nothing_is_written_beside_the_archive(archive: Path, run: Run) -> None:
    before = sorted(archive.parent.iterdir())
    assert run("query", "shop.siard", "SELECT 1").exit_code == 0
    assert sorted(archive.parent.iterdir()) == before


def test_large_objects_that_lie_elsewhere_are_found_by_lob_root(run: Run, tmp_path: Path) -> None:
    script = """
        CREATE TABLE doc (id INTEGER PRIMARY KEY, body CLOB, data BLOB);
        INSERT INTO doc VALUES (1, replace(hex(zeroblob(5000)), '00', 'oak '), zeroblob(9000));
    """
    url = database(tmp_path / "docs.db", script)
    assert run("archive", url, "docs.siard", "--lobs", "external").exit_code == 0
    outside = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert outside
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in outside:
        shutil.move(folder, elsewhere / folder.name)
    sql = "SELECT left(body, 4) AS body, octet_length(content(data)) AS bytes FROM doc"
    lost = run("query", "docs.siard", sql, "--json")
    assert lost.exit_code == 3 or "oak" not in lost.stdout
    found = run("query", "docs.siard", sql, "--json", "--lob-root", "elsewhere")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["rows"] == [["oak ", 9000]]
    wrong = run("query", "docs.siard", sql, "--lob-root", "nowhere")
    assert wrong.exit_code == 2
