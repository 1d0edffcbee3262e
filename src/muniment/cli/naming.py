"""What the commands on names share: where the names are, and how texts and problems are shown."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muniment.cli.terminal import safe
from muniment.errors import IdentifierError, NotFound, UsageError

if TYPE_CHECKING:
    from muniment.identifiers.fragments import Scheme
    from muniment.identifiers.problems import Problem
    from muniment.names import Binding, Names

__all__ = [
    "NamesGroup", "by_option", "known_schemes", "names_option", "open_names", "print_problems",
    "problems_json", "profile_option", "series_of", "texts_of",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


class NamesGroup(click.Group):
    """Commands on names: what is not there is the answer no, a name that is none is wrong usage."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NotFound as error:
            click.echo(safe(f"muniment: {error}"), err=True)
            ctx.exit(1)
        except IdentifierError as error:
            raise UsageError(str(error)) from error


def names_option(command: F) -> F:
    """Add --names, the folder that holds the names."""
    return click.option(
        "--names",
        "folder",
        type=click.Path(path_type=Path),
        default=Path("names"),
        envvar="MUNIMENT_NAMES",
        show_default=True,
        help="The folder of the names; also MUNIMENT_NAMES.",
    )(command)


def by_option(command: F) -> F:
    """Add --by, who does it."""
    return click.option("--by", default="", metavar="WHO", help="Who does this.")(command)


def profile_option(command: F) -> F:
    """Add --profile, what a PDI is for."""
    return click.option(
        "--profile",
        type=click.Choice(["mint", "cite", "query", "read"]),
        default="read",
        show_default=True,
        help="What the PDI is for.",
    )(command)


def open_names(folder: Path) -> Names:
    """Open the book of names in a folder; that of a store also finds what the store keeps."""
    from muniment.names import Names

    if (folder / "store.json").is_file():
        folder = folder / "names"
    names = Names.open(folder)
    if (folder.parent / "store.json").is_file():
        names.fetch = partial(_from_store, folder.parent)
    return names


def known_schemes(folder: Path) -> Mapping[str, Scheme]:
    """Return the fragment schemes of a book of names, or those of the draft if there is none."""
    from muniment.identifiers.fragments import SCHEMES

    inside = folder / "names" if (folder / "store.json").is_file() else folder
    if not (inside / "names.jsonl").is_file():
        return SCHEMES
    with open_names(folder) as names:
        return names.schemes


def _from_store(folder: Path, binding: Binding) -> Path:
    """Return where the octets of a binding lie: an archive in place, anything else as a copy."""
    from muniment.repository import Store

    context = click.get_current_context()
    store = Store(folder)
    context.call_on_close(store.close)
    if binding.pdi.format == "siard":
        return store.siard(binding.location)
    scratch = tempfile.TemporaryDirectory(prefix="muniment-")
    context.call_on_close(scratch.cleanup)
    path = Path(scratch.name) / "document"
    with store.open_stream(binding.location) as stream, path.open("wb") as copy:
        shutil.copyfileobj(stream, copy, 1 << 20)
    return path


def series_of(names: Names, series: str) -> str:
    """Return the series that was asked for, or the only one that there is."""
    if series:
        return series
    known = [each.name for each in names.all_series() if each.state == "open"]
    if len(known) != 1:
        listed = ", ".join(known) or "none; add one with: muniment registry series NAME"
        raise UsageError(f"name a series with --series; there are: {listed}")
    return known[0]


def texts_of(arguments: Iterable[str]) -> Iterator[str]:
    """Yield the texts given as arguments; - stands for the lines of stdin."""
    for argument in arguments:
        if argument == "-":
            for line in sys.stdin.buffer:
                yield line.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
        else:
            yield os.fsencode(argument).decode("utf-8", "surrogateescape")


def problems_json(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Return problems in the form for programs."""
    return [{"code": p.code, "message": p.message, "position": p.position} for p in problems]


def print_problems(text: str, problems: Iterable[Problem]) -> None:
    """Print what is wrong with a name, with a mark below the place."""
    shown = list(problems)
    if shown and len(text) <= 200:
        click.echo(safe(text))
    for problem in shown:
        if len(text) <= 200 and text.isascii() and text.isprintable():
            click.echo(" " * min(problem.position, len(text)) + "^")
        click.echo(safe(f"{problem.code}: {problem.message}"))
