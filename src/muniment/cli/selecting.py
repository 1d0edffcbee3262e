"""The options that choose what of a database is meant, for the commands that read one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from muniment.cli.config import Settings, load
from muniment.cli.options import pairs
from muniment.sql.selection import Selection

__all__ = ["chosen_by", "selection_of", "selection_options", "settings_of"]

F = TypeVar("F", bound=Callable[..., Any])


def _columns(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    chosen = pairs("TABLE=COLUMN,…")(ctx, param, values)
    return {
        table: tuple(name.strip() for name in names.split(",")) for table, names in chosen.items()
    }


_OPTIONS = (
    click.option(
        "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE.yaml", help="Read settings from a file; options given here win over it.",
    ),
    click.option("--schema", multiple=True, metavar="S", help="Only these schemas (repeatable)."),
    click.option(
        "--table", multiple=True, metavar="T", help="Only these tables: T or S.T, with * and ?."
    ),
    click.option("--exclude", multiple=True, metavar="T", help="Not these tables."),
    click.option(
        "--where", multiple=True, metavar="T=COND", callback=pairs("TABLE=CONDITION"),
        help="Only the rows of T that meet an SQL condition.",
    ),
    click.option(
        "--order", multiple=True, metavar="T=COLS", callback=pairs("TABLE=COLUMNS"),
        help="The rows of T in this order.",
    ),
    click.option(
        "--columns", multiple=True, metavar="T=A,B", callback=_columns,
        help="Only these columns of T.",
    ),
    click.option("--view", multiple=True, metavar="V", help="The rows of a view as a table."),
    click.option(
        "--query", multiple=True, metavar="NAME=SQL", callback=pairs("NAME=SQL"),
        help="The rows of a query as a table NAME.",
    ),
)  # fmt: skip


def selection_options(command: F) -> F:
    """Give a command the options that choose tables, rows and columns."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def selection_of(settings: Settings) -> Selection:
    """Return what of the database is taken."""
    return Selection(
        schemas=settings.schema,
        tables=settings.table,
        exclude=settings.exclude,
        columns=settings.columns,
        where=settings.where,
        order=settings.order,
        views=settings.view,
        # What ends a statement may stand there: the query becomes a part of another one.
        queries={name: sql.rstrip().removesuffix(";") for name, sql in settings.query.items()},
        as_text=settings.as_text,
    )


def settings_of(given: dict[str, Any], config: Path | None) -> Settings:
    """Return the settings of a file and of options; options win."""
    settings = Settings(**given)
    return load(config).overridden_by(settings) if config else settings


def chosen_by(settings: Settings, config: Path | None) -> list[str]:
    """Return the options that make the same choice again; ``settings`` are those of options."""
    file = ["--config", str(config)] if config and any(_arguments(load(config))) else []
    return [*file, *_arguments(settings)]


def _arguments(settings: Settings) -> Iterator[str]:
    for name in ("schema", "table", "exclude", "view"):
        for value in getattr(settings, name):
            yield from (f"--{name}", value)
    for name in ("where", "order", "query"):
        for key, value in getattr(settings, name).items():
            yield from (f"--{name}", f"{key}={value}")
    for key, names in settings.columns.items():
        yield from ("--columns", f"{key}={','.join(names)}")
