"""Results on stdout, as aligned tables or as JSON; notes and advice on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.terminal import count, hide_passwords, quoted, safe, size

if TYPE_CHECKING:
    from rich.text import Text

    from muniment.transfer import Report, TableResult

__all__ = [
    "fitted", "left_out_json", "named", "print_advice", "print_json", "print_left_out",
    "print_notes", "print_records", "print_summary", "print_table", "print_tables", "transfer_json",
]  # fmt: skip

_FIRST = 20  # things left out that are named on a terminal; the file has all
_LEAST = 8  # characters that are left of any column
_NARROWEST = 20  # characters: a longer value may be cut to this, a number never is


def print_json(value: Any) -> None:
    """Print a value as JSON in ASCII: any terminal shows it, none obeys it."""
    click.echo(json.dumps(value, indent=2))


def transfer_json(report: Report) -> dict[str, Any]:
    """Return what archive and restore report, in its stable form."""
    return {
        "tables": [{"schema": t.schema, "table": t.table, "rows": t.rows} for t in report.tables],
        "rows": sum(t.rows for t in report.tables),
        "bytes": report.bytes,
        "seconds": round(report.seconds, 3),
        "digests": [{"type": d.digest_type, "digest": d.digest} for d in report.digests],
        "notes": list(report.notes),
    }


def left_out_json(report: Report) -> dict[str, Any]:
    """Return what a restored database lacks, in its stable form."""
    file = report.left_out_file
    return {
        "left_out": [
            {"kind": each.kind, "name": each.name, "reason": each.reason, "sql": each.sql}
            for each in report.left_out
        ],
        "left_out_file": None if file is None else str(file),
    }


def print_left_out(report: Report) -> None:
    """Print on stderr what could not be made again, and where its SQL is."""
    for item in report.left_out[:_FIRST]:
        click.echo(f"left out: {safe(hide_passwords(str(item)))}", err=True)
    more = len(report.left_out) - _FIRST
    if more > 0:
        click.echo(f"left out: … and {count(more, 'more thing')}", err=True)
    if report.left_out_file is not None:
        things = count(len(report.left_out), "thing")
        click.echo(f"the SQL of {things} left out: {safe(str(report.left_out_file))}", err=True)


def print_tables(tables: Iterable[TableResult]) -> None:
    """Print the rows of each table that was copied."""
    rows = [[safe(f"{t.schema}.{t.table}"), str(t.rows)] for t in tables]
    print_table(["table", "rows"], rows, right={1})


def print_summary(name: str, report: Report) -> None:
    """Print one line on the whole, and the digests.

    These are over the content without the header: the whole file has another one.
    """
    rows = sum(t.rows for t in report.tables)
    facts = [count(len(report.tables), "table"), count(rows, "row")]
    if report.bytes:
        facts.append(size(report.bytes))
    click.echo(f"{safe(name)}: {', '.join(facts)}, in {report.seconds:.1f} s")
    for digest in report.digests:
        click.echo(f"{safe(digest.digest_type)} of the content: {safe(digest.digest)}")


def print_notes(notes: Iterable[str]) -> None:
    """Print on stderr what the user should know about the work that was done."""
    for note in notes:
        click.echo(f"note: {safe(hide_passwords(note))}", err=True)


def named(file: Path) -> str:
    """Return the name of a file as an argument, which no command takes for an option."""
    return f"./{file}" if str(file).startswith("-") else str(file)


def print_advice(purpose: str, command: Sequence[str]) -> None:
    """Print on stderr a command that can be pasted into a shell."""
    click.echo(f"{purpose}: {' '.join(map(quoted, command))}", err=True)


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str | Text]], right: Iterable[int] = ()
) -> None:
    """Print aligned columns; those numbered in ``right`` flush right. The cells must be safe.

    A terminal gets columns cut to its width, numbers never; a pipe or a file gets every cell whole.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    flush_right = set(right)
    terminal = sys.stdout.isatty()
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    natural = [
        max(cell.cell_len for cell in column)
        for column in zip(map(Text, headings), *cells, strict=True)
    ]
    room = Console(file=sys.stdout).width if terminal else _total(natural)
    widths = fitted(natural, flush_right, room)
    # What is too wide all the same goes on in the next line.
    console = Console(file=sys.stdout, width=max(room, _total(widths)), highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, (heading, width) in enumerate(zip(headings, widths, strict=True)):
        table.add_column(
            Text(heading),
            justify="right" if number in flush_right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=width,
        )
    for row in cells:
        table.add_row(*row)
    if terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().rstrip("\n").split("\n"):
        click.echo(line.rstrip())


def fitted(natural: Sequence[int], fixed: Container[int], room: int) -> list[int]:
    """Return the widths of columns that share a line: the widest gives way first, numbers never.

    >>> fitted([17, 5, 7, 60], {1, 2}, 80), fitted([17, 5, 60], {1}, 30)
    ([17, 5, 7, 45], [10, 5, 11])
    """
    widths = [width if k in fixed else min(width, room) for k, width in enumerate(natural)]
    narrowest = [width if k in fixed else min(width, _LEAST) for k, width in enumerate(natural)]
    for _ in range(_total(widths) - room):
        giving = [k for k, width in enumerate(widths) if width > narrowest[k]]
        if not giving:
            break
        widths[max(giving, key=lambda k: widths[k])] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def print_records(names: Sequence[str], rows: Sequence[Sequence[Text]]) -> bool:
    """Print one line per cell if the terminal is too narrow for columns; return whether it was."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    needed = sum(
        2 + min(_NARROWEST, max(len(name), *(row[number].cell_len for row in rows)))
        for number, name in enumerate(names)
        if rows
    )
    if not sys.stdout.isatty() or needed <= console.width:
        return False
    width = max(map(len, names), default=0)
    for number, row in enumerate(rows, 1):
        console.print(Text(f"row {number}", style="bold"))
        for name, cell in zip(names, row, strict=True):
            line = Text(f"  {name:<{width}}  ").append_text(cell)
            console.print(line, no_wrap=True, overflow="ellipsis")
    return True
