"""The examples at the end of every help, pasted where the demonstration left its files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from commandline import Run

from muniment.cli.main import COMMANDS, cli

_HERE = ("archive", "compare", "convert", "describe", "export", "query", "restore", "show",
         "validate")  # fmt: skip


def _commands(group: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    yield context.command_path, group
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            inner = click.Context(command, parent=context, info_name=name)
            yield from _commands(command, inner)


def _examples(command: click.Command) -> list[list[str]]:
    text = re.sub(r"\\\n\s*", "", command.epilog or "").partition("\n")[2]
    lines = [shlex.split(line) for line in text.splitlines()[1:]]
    return [line[: line.index(">")] if ">" in line else line for line in lines]


def test_every_help_ends_with_examples_of_the_command() -> None:
    context = click.Context(cli, info_name="muniment", **cli.context_settings)
    for path, command in _commands(cli, context):
        lines = [shlex.join(line) for line in _examples(command)]
        assert lines and all(line.startswith("muniment ") for line in lines), path
        assert path == "muniment" or any(line.startswith(path) for line in lines), path


def test_examples_work_as_they_are(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = _examples(cli)
    assert run(*first[1:]).exit_code == 0
    assert all(run(*other[1:]).exit_code == 0 for other in others)
    monkeypatch.chdir("muniment-demo")
    for name in _HERE:
        assert name in COMMANDS
        command = cli.get_command(click.Context(cli, **cli.context_settings), name)
        assert command is not None
        for example in _examples(command):
            result = run(*example[1:])
            assert result.exit_code == 0, (example, result.output)
            if "--dump" in example:
                Path("words.yaml").write_text(result.stdout)
