"""``muniment export``: an archive in other people's formats."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import click

from muniment.cli.options import ARCHIVE, check_input, examples, json_option
from muniment.cli.terminal import count, safe
from muniment.errors import MissingDriver

__all__ = ["export"]

_FORMATS = ("csv", "jsonl", "parquet", "sqlite", "duckdb", "html")


@click.command(
    epilog=examples(
        "muniment export trees.siard trees-csv",
        "muniment export trees.siard site --format html",
        "muniment export trees.siard trees-copy.db --format sqlite",
    )
)
@click.argument("file", type=ARCHIVE, metavar="FILE.siard")
@click.argument("place", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="csv", show_default=True,
    help="csv, jsonl, parquet: one file per table; sqlite, duckdb: a database file; html: a site.",
)  # fmt: skip
@click.option("--exact", is_flag=True, help="CSV: leave texts that look like formulas as they are.")
@json_option
def export(file: Path, place: Path, form: str, exact: bool, as_json: bool) -> None:
    """Write an archive into a new folder, as files that other programs open.

    Binary large objects become files in the folder lobs; the tables hold their names. In CSV files
    NULL is nothing and an empty text is "", and a text that a spreadsheet would run as a formula
    gets an apostrophe in front unless --exact is given. html is a site that opens from disk.
    For sqlite and duckdb, DIR is the name of the new database file.
    """
    check_input(file)
    if form in ("sqlite", "duckdb"):
        _database(file, place, form, as_json)
        return
    from muniment.cli.query import index_progress
    from muniment.cli.report import print_json, print_notes, print_table

    with index_progress() as progress:
        if form == "html":
            try:
                import jinja2  # noqa: F401
            except ImportError as error:
                raise MissingDriver("The static site", "web") from error
            from muniment.web.static_site import export_site

            done = export_site(file, place, progress)
        else:
            from muniment.query.export import export_tables

            done = export_tables(file, place, form, exact=exact, progress=progress)
    rows = sum(table[2] for table in done.tables)
    if as_json:
        print_json(
            {
                "folder": str(place),
                "format": form,
                "tables": [
                    {"schema": s, "table": t, "rows": r, "file": f} for s, t, r, f in done.tables
                ],
                "rows": rows,
                "objects": done.objects,
                "notes": list(done.notes),
            }
        )
        return
    print_table(
        ["table", "rows", "file"],
        [[safe(f"{s}.{t}"), str(r), safe(f)] for s, t, r, f in done.tables],
        right={1},
    )
    facts = f"{count(len(done.tables), 'table')}, {count(rows, 'row')}"
    click.echo(safe(f"{place}: {facts}, {count(done.objects, 'large object')}"))
    print_notes(done.notes)


def _database(file: Path, place: Path, form: str, as_json: bool) -> None:
    """A database file is what restore makes."""
    ctx = click.get_current_context()
    from muniment.cli.restore import restore

    url = f"{form}:///{quote(str(place))}"
    arguments = [str(file), url, *(["--json"] if as_json else [])]
    with restore.make_context("restore", arguments, parent=ctx.parent) as inner:
        restore.invoke(inner)
