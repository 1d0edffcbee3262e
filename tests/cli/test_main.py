"""Help, errors and exit codes, whatever the command."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from commandline import Run

from muniment.cli.main import COMMANDS, cli
from muniment.errors import DatabaseError, NotFound, SiardError, Unfit, UsageError


def failing_with(error: BaseException) -> Result:
    """Run a command that raises an error, in a group as ``muniment`` is one."""

    @click.command("fail")
    def fail() -> None:
        raise error

    return CliRunner().invoke(type(cli)("muniment", commands={"fail": fail}), ["fail"])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_help_ends_with_an_example(run: Run, command: str, option: str) -> None:
    result = run(command, option)
    assert result.exit_code == 0
    end = result.stdout.split("\n\n")[-1]
    assert "Example" in end.splitlines()[0]
    assert f"muniment {command}" in end


def test_the_help_of_muniment_names_every_command_and_ends_with_an_example(run: Run) -> None:
    result = run("--help")
    assert all(f"  {command} " in result.stdout for command in COMMANDS)
    assert "muniment demo" in result.stdout.split("\n\n")[-1]


def test_muniment_alone_shows_its_help(run: Run) -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: ")


# These print a document, or serve one.
DOCUMENTS = {"browse", "registry export", "registry template", "store cdxj"}


def leaves() -> dict[str, click.Command]:
    """Every command by its words, those of groups included."""
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli, **cli.context_settings), name)
        assert command is not None
        if isinstance(command, click.Group):
            found |= {f"{name} {inner}": each for inner, each in command.commands.items()}
        else:
            found[name] = command
    return found


@pytest.mark.parametrize("command", sorted(set(leaves()) - DOCUMENTS))
def test_every_command_takes_json(command: str) -> None:
    assert any("--json" in parameter.opts for parameter in leaves()[command].params)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such thing"), 2),
        (click.UsageError("no such option"), 2),
        (SiardError("not a SIARD file"), 3),
        (DatabaseError("refused"), 3),
        (NotFound("type t is not defined"), 3),
        (Unfit("main.t.c", 7, "'x'", "an integer"), 3),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.siard"), 3),
        (PermissionError(errno.EACCES, "Permission denied", "a.siard"), 3),
        (OSError(errno.EIO, "Input/output error"), 3),
        (MemoryError(), 3),
        (EOFError("stream ended"), 3),
        (ZeroDivisionError("division by zero"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_error_is_one_sentence_and_an_exit_code(error: BaseException, code: int) -> None:
    result = failing_with(error)
    assert result.exit_code == code
    assert result.stderr.strip().startswith("muniment: ")
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_a_full_disk_has_a_sentence_of_its_own() -> None:
    result = failing_with(OSError(errno.ENOSPC, "No space left on device", "a.siard"))
    assert "a.siard: the disk is full" in result.stderr


def test_ctrl_c_says_that_nothing_was_left_behind() -> None:
    assert "stopped; nothing was left behind" in failing_with(KeyboardInterrupt()).stderr


def test_a_traceback_is_shown_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_DEBUG", "1")
    result = failing_with(ZeroDivisionError("mysql://u:tiger@h/db"))
    assert "Traceback" in result.stderr
    assert "tiger" not in result.stderr


def test_a_message_cannot_command_the_terminal_or_forge_another_message() -> None:
    result = failing_with(SiardError("table \x1b[2Jx\nmuniment: all is well is broken"))
    assert "\x1b" not in result.stderr
    assert "\nmuniment:" not in result.stderr


def test_a_password_is_not_printed() -> None:
    result = failing_with(DatabaseError("cannot open postgresql://clerk:tiger@host/db"))
    assert "tiger" not in result.output
    assert "clerk:***@host" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("--nothing",),
        ("archive",),
        ("archive", "sqlite:///a.db"),
        ("archive", "sqlite:///a.db", "a.siard", "--lobs", "elsewhere"),
        ("archive", "sqlite:///a.db", "a.siard", "--jobs", "-1"),
        ("archive", "sqlite:///a.db", "a.siard", "--digest", "CRC32"),
        ("archive", "sqlite:///a.db", "a.siard", "--archival-date", "31.12.2025"),
        ("archive", "sqlite:///a.db", "a.siard", "--where", "no condition"),
        ("archive", "sqlite:///a.db", "a.siard", "--where", "t=1", "--where", "t=2"),
        ("archive", "sqlite:///a.db", "a.siard", "--config", "missing.yaml"),
        ("archive", "sqlite:///a.db", "a.zip"),
        ("archive", "sqlite:///a.db", "missing/a.siard"),
        ("show", "missing.siard"),
        ("show", "."),
        ("restore", "missing.siard", "sqlite:///a.db"),
        ("restore", "a.siard", "sqlite:///a.db", "--schema-map", "main"),
        ("compare", "a.siard"),
        ("compare", "missing.siard", "sqlite:///a.db"),
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_misspelt_command_is_recognised(run: Run) -> None:
    result = run("archiv", "sqlite:///a.db", "a.siard")
    assert (result.exit_code, "Did you mean 'archive'?" in result.stderr) == (2, True)


def test_a_file_name_in_a_usage_error_cannot_command_the_terminal(run: Run) -> None:
    result = run("show", "a.siard", "t", "\x1b[2Jb.siard")
    assert result.exit_code == 2
    assert "\x1b" not in result.output


def test_help_is_quick() -> None:
    """Heavy libraries are imported by the commands that need them."""
    heavy = ["apsw", "duckdb", "lxml", "pyarrow", "rich", "sqlalchemy", "yaml"]
    code = (
        "import sys; from muniment.cli.main import cli; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert time.perf_counter() - start < 5  # far above what it takes: other tests run beside it


def test_the_command_runs_as_a_process(
    run_process: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert run_process("--version").stdout.startswith("muniment ")
    wrong = run_process("show", "missing.siard")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "muniment: there is no file missing.siard\n"


_RUN = f"{shlex.quote(sys.executable)} -m muniment"


@pytest.mark.parametrize(
    ("streams", "code"),
    [(">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), ("2>/dev/full", 3), ("| true", 0)],
)
def test_streams_that_are_closed_or_full_do_no_harm(
    shop: str, streams: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = f"set -o pipefail; {_RUN} archive {shop} closed.siard {streams}"
    result = subprocess.run(["bash", "-c", line], capture_output=True, timeout=50)
    assert result.returncode == code, result.stderr
    assert b"fault" not in result.stderr
    assert zipfile.is_zipfile("closed.siard")
    assert [path.name for path in Path().iterdir() if "closed" in path.name] == ["closed.siard"]


def test_a_reader_that_leaves_does_not_make_a_failure_of_what_is_done(
    run: Run, shop: str, tmp_path: Path
) -> None:
    start = "from muniment.cli.main import main; main()"
    for code, arguments in ((0, ["archive", shop, "a.siard"]), (141, ["show", "a.siard"])):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            result = subprocess.run(
                [sys.executable, "-c", start, *arguments], cwd=tmp_path, stdout=writing,
                stderr=subprocess.PIPE, encoding="utf-8", timeout=120,
            )  # fmt: skip
        finally:
            os.close(writing)
        assert result.returncode == code, result.stderr
        assert "Traceback" not in result.stderr
