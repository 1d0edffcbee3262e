"""``muniment show`` on a terminal: paged for who sits at it, and never waiting for nobody."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commandline import Run, database

ROWS = 400


@pytest.fixture
def archive(run: Run, tmp_path: Path) -> Path:
    script = f"""
        CREATE TABLE t (id INTEGER PRIMARY KEY, v VARCHAR(20));
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
        INSERT INTO t SELECT i, 'row ' || i FROM n;
    """
    assert run("archive", database(tmp_path / "t.db", script), "t.siard").exit_code == 0
    return tmp_path / "t.siard"


def on_terminal(command: str) -> subprocess.Popen[bytes]:
    """Run a command of the shell as if somebody had typed it into a terminal."""
    env = {**os.environ, "TERM": "xterm", "LESS": "-FRX", "PAGER": "less", "COLUMNS": "80"}
    return subprocess.Popen(
        ["script", "-qefc", command, "/dev/null"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
    )  # fmt: skip


def show(archive: Path, *more: str) -> str:
    return shlex.join([sys.executable, "-m", "muniment", "show", str(archive), *more])


def test_a_long_table_waits_for_its_reader_and_ends_with_q(archive: Path) -> None:
    with on_terminal(show(archive, "t", "--rows", str(ROWS))) as process:
        assert process.stdin is not None and process.stdout is not None
        seen, deadline = b"", time.monotonic() + 60
        while b"row 15" not in seen and time.monotonic() < deadline:
            seen += os.read(process.stdout.fileno(), 65536)
        assert f"row {ROWS}".encode() not in seen  # it stopped after a page
        process.stdin.write(b"q")
        process.stdin.flush()
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Traceback" not in seen + rest


def test_a_short_answer_is_printed_at_once(archive: Path) -> None:
    with on_terminal(show(archive)) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"main.t" in output


def test_without_a_keyboard_nothing_waits(archive: Path) -> None:
    with on_terminal(f"{show(archive, 't', '--rows', str(ROWS))} < /dev/null") as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"row {ROWS}".encode() in output


def test_it_says_how_much_is_not_shown(archive: Path) -> None:
    with on_terminal(f"{show(archive, 't', '--rows', '5')} < /dev/null") as process:
        output, _ = process.communicate(timeout=60)
    assert f"5 of {ROWS} rows".encode() in output


def test_a_reader_who_has_seen_enough_hears_no_complaint(archive: Path) -> None:
    command = f"set -o pipefail; {show(archive, 't', '--rows', str(ROWS))} | head -n 2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == b""
    assert done.returncode in (0, 141)  # all was written before the reader left, or it was not


def test_nobody_at_all_needs_to_read(archive: Path) -> None:
    query = [sys.executable, "-m", "muniment", "query", str(archive), "SELECT * FROM t"]
    commands = [
        show(archive),
        show(archive, "--json"),
        shlex.join([*query, "--format", "csv"]),
        shlex.join([*query, "--format", "jsonl"]),
        shlex.join([sys.executable, "-m", "muniment", "--help"]),
    ]
    for command in commands:
        unread = f"set -o pipefail; (sleep 0.2; {command}) | true"
        done = subprocess.run(["bash", "-c", unread], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (141, b""), command


def test_notes_come_behind_the_pager(archive: Path) -> None:
    # A pager that takes its time: what else is written meanwhile would stand before its pages.
    slow = "sh -c 'sleep 1; cat'"
    command = f"PAGER={shlex.quote(slow)} {show(archive, 't', '--rows', '5')}"
    with on_terminal(command) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.index(b"row 5") < output.index(f"5 of {ROWS} rows".encode())
