"""``muniment compare``: whether two databases or archives hold the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.lobs import lob_roots, roots_of
from muniment.cli.options import (
    check_input,
    examples,
    jobs_option,
    json_option,
    pairs,
    ssh_option,
    timeout_option,
)
from muniment.cli.selecting import selection_of, selection_options, settings_of
from muniment.cli.terminal import count, cut, safe

if TYPE_CHECKING:
    from muniment.compare import Comparison

__all__ = ["compare"]

_SHORT_DIGEST = 12  # characters
_FIRST = 20  # differences shown on a terminal; --json gives all that were looked up
_LONGEST = 200  # characters of a value in a difference


@click.command(
    epilog=examples(
        "muniment compare sqlite:///trees.db trees.siard",
        "muniment compare trees.siard duckdb:///again.duckdb --json",
        "muniment compare sqlite:///trees.db felled.siard --table tree \\",
        "    --where 'tree=felled_on IS NOT NULL'",
    )
)
@click.argument("a")
@click.argument("b")
@selection_options
@click.option(
    "--ordered/--no-ordered",
    default=None,
    help="Compute siard-digest-1 as well, which covers the order of rows; by default only for "
    "databases under 24 MB, since it doubles the time.",
)
@click.option(
    "--schema-map",
    multiple=True,
    metavar="OLD=NEW",
    callback=pairs("OLD=NEW"),
    help="A schema of the archive was restored under another name (repeatable).",
)
@lob_roots
@timeout_option
@ssh_option
@jobs_option
@json_option
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    a: str,
    b: str,
    ordered: bool | None,
    schema_map: dict[str, str],
    lob_root: tuple[str, ...],
    statement_timeout: float | None,
    ssh: str | None,
    jobs: int | None,
    as_json: bool,
    config: Path | None,
    **given: Any,
) -> None:
    """Compare two databases or archives: rows, contents and definitions.

    A and B are URLs such as sqlite:///trees.db, or SIARD files. A digest stands for the rows of a
    table in any order. With the options that an archive was made with (--table, --where and so on,
    or --config), it is compared with just that part of the database. Exit code 0 means equal, 1
    different.
    """
    for side in (a, b):
        if "://" not in side:
            check_input(Path(side))

    from muniment import compare as comparing
    from muniment.cli import progress, report

    with progress.shown("comparing") as tell:
        comparison = comparing.compare(
            a,
            b,
            jobs=jobs or 0,
            ordered=ordered,
            statement_timeout=statement_timeout,
            ssh=ssh,
            schema_map=schema_map,
            selection=selection_of(settings_of(given, config)),
            progress=tell,
            roots=roots_of(lob_root),
        )
    if as_json:
        report.print_json(_as_json(comparison))
    else:
        _print(comparison)
    ctx.exit(0 if comparison.equal else 1)


def _as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "equal": comparison.equal,
        "tables": [
            {
                "schema": table.schema,
                "table": table.table,
                "rows": list(table.rows),
                "digest": list(table.digest),
                "siard_digest_1": list(table.ordered_digest),
                "equal": table.equal,
            }
            for table in comparison.tables
        ],
        "differences": [
            {"where": each.where, "a": each.a, "b": each.b} for each in comparison.differences
        ],
        **({"notes": list(comparison.notes)} if comparison.notes else {}),
    }


def _print(comparison: Comparison) -> None:
    from muniment.cli.report import print_table

    rows = [
        [
            safe(f"{table.schema}.{table.table}"),
            _pair(*(_number(number) for number in table.rows)),
            _pair(*(_digest(digest) for digest in table.digest)),
            "equal" if table.equal else "different",
        ]
        for table in comparison.tables
    ]
    print_table(["table", "rows", "digest", ""], rows, right=(1,))
    for difference in comparison.differences[:_FIRST]:
        a, b = (cut(safe(side), _LONGEST) for side in (difference.a, difference.b))
        click.echo(f"{safe(difference.where)}: {a} | {b}")
    left = len(comparison.differences) - _FIRST
    if left > 0:
        click.echo(f"… and {count(left, 'more difference')}; --json gives them")
    for note in comparison.notes:
        click.echo(f"note: {safe(note)}", err=True)
    click.echo(_conclusion(comparison))


def _conclusion(comparison: Comparison) -> str:
    tables = count(len(comparison.tables), "table")
    if comparison.equal:
        total = sum(table.rows[0] or 0 for table in comparison.tables)
        return f"equal: {tables}, {count(total, 'row')}"
    unequal = sum(not table.equal for table in comparison.tables)
    found = count(len(comparison.differences), "difference")
    return f"different: {unequal} of {tables}; {found} named, at most 10 rows per table"


def _pair(a: str, b: str) -> str:
    return a if a == b else f"{a} | {b}"


def _number(number: int | None) -> str:
    return "none" if number is None else str(number)


def _digest(digest: str | None) -> str:
    return "none" if digest is None else safe(digest[:_SHORT_DIGEST])
