"""The console blocks of a document: read, run again, compared, written anew.

    python tests/cli/transcripts.py README.md      runs every command and writes its output there

A block holds commands after "$ ", each followed by what it prints on stdout and stderr; a line "…"
stands for lines left out. All blocks of a document run one after the other in one new folder; "cd"
moves on for the commands after it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
# What differs from run to run and from machine to machine.
_VARIABLE = (
    (re.compile(r"\d+\.\d s\b"), "# s"),
    (re.compile(r"\d+(\.\d)? (B|kB|MB)\b"), "# B"),
    (re.compile(r"\b[0-9A-Fa-f]{12,}\b"), "#"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z"), "#time"),
    (re.compile(r"\b20\d\d-\d\d-\d\d(Z|\+\d\d:\d\d)?\b"), "#date"),
    (re.compile(r"/20\d\d/\d\d/\d\d/|\(20\d\d\)"), "/#day/"),
    (re.compile(r"\b(SQLite|DuckDB|Muniment) v?\d+(\.\d+)+"), r"\1 #"),
)


@dataclass(frozen=True)
class Command:
    """A command of a document and what it is said to print."""

    text: str
    output: str


def commands(document: str) -> Iterator[Command]:
    """Yield the commands of all console blocks."""
    for block in _BLOCK.findall(document):
        yield from _commands_of(block)


def _commands_of(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        text, _, output = part.partition("\n")
        yield Command(text, output.strip("\n"))


def shortened(output: str, like: str) -> str:
    """Return output with lines left out where the lines of ``like`` were.

    >>> shortened("1\\n2\\n3\\n4", like="a\\n…\\nb")
    '1\\n…\\n4'
    """
    wanted, lines = like.splitlines(), output.splitlines()
    if "…" not in wanted or len(lines) < len(wanted):
        return output
    first = wanted.index("…")
    last = len(wanted) - first - 1
    return "\n".join([*lines[:first], "…", *lines[len(lines) - last :]])


def constant(output: str) -> str:
    """Return output without what differs from run to run."""
    for pattern, replacement in _VARIABLE:
        output = pattern.sub(replacement, output)
    return "\n".join(line.rstrip() for line in output.splitlines())


class Shell:
    """Runs commands in one folder, with ``muniment`` at hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / ".programs"
        programs.mkdir()
        muniment = programs / "muniment"
        start = "from muniment.cli.main import main; main()"
        muniment.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{start}" "$@"\n')
        muniment.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def run(self, command: str) -> str:
        """Return what a command prints."""
        if command.startswith("cd "):
            self.folder /= command.removeprefix("cd ")
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=300,
        )
        return done.stdout.strip("\n")


def rewritten(document: str, shell: Shell) -> str:
    """Return the document with the output of every command as it is now."""

    def again(match: re.Match[str]) -> str:
        lines: list[str] = []
        for command in _commands_of(match[0]):
            output = shortened(shell.run(command.text), command.output)
            lines += [f"$ {command.text}", *([output] if output else [])]
        return "\n".join(lines) + "\n"

    return _BLOCK.sub(again, document)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        with tempfile.TemporaryDirectory() as temporary:
            text = rewritten(path.read_text(encoding="utf-8"), Shell(Path(temporary)))
        path.write_text(text, encoding="utf-8")
