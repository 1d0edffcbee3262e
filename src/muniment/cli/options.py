"""What several commands share: their common options, and how pairs and examples are written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from muniment.errors import UsageError

__all__ = [
    "ARCHIVE", "ROWS", "check_input", "check_output", "examples", "jobs_option", "json_option",
    "pairs", "ssh_option", "timeout_option",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


_MOST = 1 << 48  # which counters in C hold as well


class _Rows(click.types.IntParamType):
    """A number of rows or the like; a range of click's own would spell its limits out in help."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = int(super().convert(value, param, ctx))
        if not 0 <= number <= _MOST:
            self.fail(f"{number} is not in the range from 0 to {_MOST}.", param, ctx)
        return number


ROWS = _Rows()
ARCHIVE = click.Path(path_type=Path, readable=False)  # whether it can be read is no usage


def json_option(command: F) -> F:
    """Add --json, passed as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")(command)


def jobs_option(command: F) -> F:
    """Add --jobs, passed as None where it was not given."""
    return click.option(
        "--jobs",
        type=click.IntRange(min=0),
        metavar="N",
        help="Processes that share the work; 0 is one per core.",
    )(command)


def timeout_option(command: F) -> F:
    """Add --statement-timeout, in seconds, passed as None where it was not given."""
    return click.option(
        "--statement-timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Give up if one statement takes longer, in databases that can do that.",
    )(command)


def ssh_option(command: F) -> F:
    """Add --ssh, passed as None where it was not given."""
    return click.option(
        "--ssh",
        metavar="USER@HOST[:PORT]",
        help="Reach the database server through this SSH server, with your keys or agent.",
    )(command)


def examples(*commands: str) -> str:
    """Return the end of a help text: commands to try, each on its own line."""
    title = "Example:" if len(commands) == 1 else "Examples:"
    # \b keeps click from joining the lines.
    return "\b\n" + "\n".join([title, *(f"  {command}" for command in commands)])


def pairs(form: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """Return the callback of a repeatable option NAME=VALUE; the first = divides."""

    def parse(
        _ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
    ) -> dict[str, str]:
        chosen: dict[str, str] = {}
        for value in values:
            name, _, rest = (part.strip() for part in value.partition("="))
            if not (name and rest):
                raise click.BadParameter(f"{value!r} should have the form {form}", param=param)
            if name in chosen:
                raise click.BadParameter(f"{name!r} is given twice", param=param)
            chosen[name] = rest
        return chosen

    return parse


def exists(path: Path) -> bool:
    """Whether there is a file of this name, or the first part of one (S_8.2-0)."""
    return path.exists() or path.with_name(f"{path.name}_part001").exists()


def check_output(path: Path) -> None:
    """Refuse a name under which no new archive can appear, before any work is done."""
    if path.name == ".siard":
        raise UsageError(f"{path} is no name of an archive; put one before .siard")
    if path.suffix != ".siard":
        raise UsageError(f"{path} does not end in .siard, as the name of an archive must")
    if exists(path) or path.is_symlink():
        raise UsageError(
            f"{path} exists already and is never overwritten; choose another name or remove it"
        )
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write {path.name} into")


def check_input(path: Path) -> None:
    """Refuse an archive that is not there."""
    if not exists(path):
        if re.match(r"[a-z+]+:/", str(path)):  # what is left of a URL
            raise UsageError("this is for archives, not for databases; archive the database first")
        raise UsageError(f"there is no file {path}")
    if path.is_dir():
        raise UsageError(f"{path} is a folder, not an archive")
    if path.is_file() and (product := _database_in(path)):
        url = f"{product}:///{quote(str(path), safe='/ ')}"
        raise UsageError(f"{path} is a database and no archive; its URL is {url}")


def _database_in(path: Path) -> str | None:
    """Return the scheme for a file that begins as a database does."""
    with path.open("rb") as stream:
        start = stream.read(16)
    if start.startswith(b"SQLite format 3"):
        return "sqlite"
    return "duckdb" if start[8:12] == b"DUCK" else None
