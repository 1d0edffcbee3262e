"""What the tests of the command line share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from commandline import Run, database

from muniment.cli.main import cli


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command inside an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MUNIMENT_DEBUG", raising=False)

    def run_command(*arguments: str) -> Result:
        return CliRunner().invoke(cli, arguments)

    return run_command


@pytest.fixture
def run_process(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command inside an empty folder, in a process of its own."""
    start = "from muniment.cli.main import main; main()"

    def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", start, *arguments],
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )

    return run_command


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A small database beside the archives, by its URL."""
    script = """
        CREATE TABLE fruit (id INTEGER PRIMARY KEY, name VARCHAR(20), price VARCHAR(10));
        INSERT INTO fruit VALUES (1, 'apple', '1.10'), (2, '', NULL), (3, 'NULL', '0.05');
        CREATE TABLE crate (id INTEGER PRIMARY KEY, fruit_id INTEGER REFERENCES fruit (id));
        INSERT INTO crate VALUES (10, 1), (11, 1), (12, NULL);
        CREATE VIEW cheap AS SELECT id, name FROM fruit WHERE price < '1';
    """
    return database(tmp_path / "shop.db", script)
