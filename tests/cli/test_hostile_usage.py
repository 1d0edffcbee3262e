"""What users get wrong, and what is wrong with their files: a sentence, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from commandline import Run


@pytest.fixture
def archive(run: Run, shop: str) -> str:
    assert run("archive", shop, "shop.siard").exit_code == 0
    return "shop.siard"


def refused(run: Run, *arguments: str, code: int = 2) -> str:
    before = sorted(path.name for path in Path().iterdir())
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == "" and "fault" not in result.stderr
    assert sorted(path.name for path in Path().iterdir()) == before
    return result.stderr


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:se/cret@127.0.0.1:1/x",
        "postgresql://me:se?cret@127.0.0.1:1/x",
        "mysql://me:se#cret@127.0.0.1:1/x",
    ],
)
def test_a_password_that_ends_too_early_is_neither_used_nor_shown(run: Run, url: str) -> None:
    said = refused(run, "archive", url, "a.siard")
    assert "write %2F for /" in said and "cret" not in said


def test_a_password_in_a_url_of_no_product_is_not_shown(run: Run) -> None:
    # The command line of the process is what passwords are looked for in.
    code = "from muniment.cli.main import main; main()"
    command = [sys.executable, "-c", code, "archive", "nothing://me:se/cret@host/x", "a.siard"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
    assert result.returncode == 2 and "nothing://me:***@host/x" in result.stderr
    assert "cret" not in result.stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (".siard", "put one before .siard"),
        ("nowhere/a.siard", "there is no folder nowhere"),
        ("shop.db/a.siard", "there is no folder shop.db"),
    ],
)
def test_odd_names_of_new_archives(run: Run, shop: str, name: str, sentence: str) -> None:
    assert sentence in refused(run, "archive", shop, name)


def test_a_name_that_is_too_long_is_told_as_it_was_given(run: Run, shop: str) -> None:
    name = "a" * 240 + ".siard"  # which leaves no room for what is in the making
    said = refused(run, "archive", shop, name, code=3)
    assert said == f"muniment: {name}: the name is too long; choose a shorter one\n"


@pytest.mark.parametrize(
    "name", ["-x.siard", "it's\n\x1b[31m.siard", "bad\udcff.siard", "sp ace.siard", "$(id).siard"]
)
def test_the_command_that_proves_it_can_be_pasted(run: Run, shop: str, name: str) -> None:
    result = run("archive", shop, "--", name)
    assert result.exit_code == 0, result.stderr
    advice = result.stderr.strip()
    assert "\n" not in advice and "\x1b" not in advice
    words = advice.partition("muniment compare ")[2]
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True
    )
    database, path, _ = shown.stdout.split(b"\0")
    assert database.decode() == shop and Path(os.fsdecode(path)) == Path(name)


def test_a_table_of_another_spelling_is_suggested(run: Run, archive: str) -> None:
    result = run("show", archive, "Fruit")
    assert result.exit_code == 1
    assert result.stderr == (
        "muniment: shop.siard has no table or view 'Fruit'; did you mean 'main.fruit'?\n"
    )


def test_a_database_that_is_named_like_an_archive_is_recognised(run: Run, archive: str) -> None:
    for command in (("compare", "shop.db", archive), ("show", "shop.db")):
        said = refused(run, *command)
        assert said == (
            "muniment: shop.db is a database and no archive; its URL is sqlite:///shop.db\n"
        )
    assert run("restore", archive, "duckdb:///b.duckdb").exit_code == 0
    assert "duckdb:///b.duckdb" in refused(run, "compare", "b.duckdb", archive)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- table\n- tree\n", "line 1: the file should hold names"),
        ("[" * 5000, "brackets are nested too deeply"),
        ("owner: " + "x" * (9 << 20), "larger than any file of settings"),
        ("datalink-root: nowhere", "line 1: datalink-root: there is no folder nowhere"),
        ("table: &t [tree, *t]", "table should be one text"),
        ("table: [tree]\ntable: [x]", "line 2: the file has 'table' twice"),
    ],
)
def test_odd_files_of_settings(run: Run, shop: str, text: str, sentence: str) -> None:
    Path("c.yaml").write_text(text)
    assert sentence in refused(run, "archive", shop, "a.siard", "--config", "c.yaml")


def test_a_file_of_settings_without_end_is_not_read_for_ever(run: Run, shop: str) -> None:
    said = refused(run, "archive", shop, "a.siard", "--config", "/dev/zero")
    assert "larger than any file of settings" in said


@pytest.fixture
def as_nobody(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run a command as somebody who has no rights here."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can be somebody else")
    folder = tmp_path
    while folder != Path("/tmp") and folder != folder.parent:
        folder.chmod(0o755)
        folder = folder.parent

    def run_command(*arguments: str) -> tuple[int, str]:
        code = "from muniment.cli.main import main; main()"
        person = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        result = subprocess.run(
            [*person, sys.executable, "-c", code, *arguments],
            cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=120,
            env={**os.environ, "HOME": "/nonexistent"},
        )  # fmt: skip
        return result.returncode, result.stderr

    if run_command("--version")[0]:
        pytest.skip("this Python is not for everybody")
    return run_command


def test_what_may_not_be_read_or_written_is_told_by_its_own_name(
    run: Run, shop: str, archive: str, as_nobody: Callable[..., tuple[int, str]]
) -> None:
    """The folder belongs to root, and nobody may write there."""
    for name in ("closed.db", "closed.siard"):
        shutil.copy(f"shop{Path(name).suffix}", name)
        Path(name).chmod(0)
    before = sorted(path.name for path in Path().iterdir())
    for name, *arguments in (
        ("a.siard", "archive", shop, "a.siard"),
        ("a.siard", "archive", shop, "a.siard", "--resume"),
        ("a.siard", "archive", shop, "a.siard", "--split", "1MB"),
        ("a.siard", "convert", archive, "a.siard"),
        ("a.db", "restore", archive, "sqlite:///a.db"),
        ("a.duckdb", "restore", archive, "duckdb:///a.duckdb"),
        ("shop.db", "restore", archive, "sqlite:///shop.db", "--replace"),
        ("closed.siard", "show", "closed.siard"),
        ("closed.siard", "compare", "closed.siard", archive),
        ("closed.siard", "restore", "closed.siard", "sqlite:///a.db"),
        ("closed.db", "compare", "sqlite:///closed.db", archive),
    ):
        assert as_nobody(*arguments) == (3, f"muniment: {name}: permission denied\n"), arguments
    assert sorted(path.name for path in Path().iterdir()) == before


def test_a_database_in_wal_mode_in_a_closed_folder_is_explained(
    tmp_path: Path, run: Run, archive: str, as_nobody: Callable[..., tuple[int, str]]
) -> None:
    with closing(sqlite3.connect("wal.db")) as connection:
        connection.executescript("PRAGMA journal_mode=wal; CREATE TABLE t (a)")
    code, said = as_nobody("compare", "sqlite:///wal.db", archive)
    assert code == 3 and "copy it elsewhere, with its -wal file" in said
