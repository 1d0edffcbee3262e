"""``muniment query``: SQL over archives, without restoring them."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from muniment.cli.lobs import lob_roots, roots_of
from muniment.cli.options import ARCHIVE, ROWS, check_input, examples, json_option, pairs
from muniment.cli.terminal import byte_output, count, cut, safe
from muniment.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from muniment.query import Result
    from muniment.query.index import Watch
    from muniment.siard.lobs.folders import Root

__all__ = ["index_progress", "query", "run_query"]

_LONGEST = 60  # characters of a value on the terminal
_FORMATS = ("table", "csv", "json", "jsonl", "parquet")


@click.command(
    epilog=examples(
        "muniment query trees.siard 'SELECT kind, count(*) FROM work_order GROUP BY kind'",
        "muniment query trees.siard 'SELECT * FROM tree' --format csv --out trees.csv",
        "muniment query trees.siard --attach town=town.siard \\",
        "    'SELECT count(*) FROM trees.main.tree, town.finance.posting'",
    )
)
@click.argument("file", type=ARCHIVE, metavar="FILE.siard")
@click.argument("sql")
@click.option(
    "--attach",
    multiple=True,
    metavar="NAME=FILE",
    callback=pairs("NAME=FILE.siard"),
    help="Query another archive as well, under this name (repeatable).",
)
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="table", help="How rows are printed."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="A new file for them.")
@click.option("--limit", type=ROWS, metavar="N", help="At most so many rows.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop a query that takes longer.",
)
@click.option("--exact", is_flag=True, help="CSV: leave texts that look like formulas as they are.")
@lob_roots
@json_option
def query(
    file: Path,
    sql: str,
    attach: dict[str, str],
    form: str,
    out: Path | None,
    limit: int | None,
    timeout: float | None,
    exact: bool,
    lob_root: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run an SQL query over an archive, or over several.

    Tables have the names that the archive gives them: SCHEMA.TABLE, or TABLE where only one schema
    has it. With several archives, put the archive's name in front: the first is called as its file
    is, without .siard. Complex values are structures (column.field) and lists. A binary large
    object is a structure of size, type and key; content(column) reads it. Views of the archive can
    be queried where their SQL can be translated.

    The first query of an archive builds an index under the user's cache folder; the archive's own
    folder is left alone.
    """
    form = "json" if as_json else form
    files = _named(file, attach)
    for path in files.values():
        check_input(path)
    run_query(files, sql, form, out, limit, timeout, exact, roots_of(lob_root))


def run_query(
    files: dict[str, Path], sql: str, form: str, out: Path | None, limit: int | None,
    timeout: float | None = None, exact: bool = False, roots: tuple[Root, ...] = (),
) -> None:  # fmt: skip
    """Run a query over archives, which may be files or lie inside a store."""
    if form == "parquet" and out is None:
        raise UsageError("Parquet is not for terminals; name a file with --out")

    from muniment.query import Limits, open_archives

    shown = 1000 if form == "table" and limit is None and out is None else limit
    limits = Limits(seconds=timeout, rows=None if shown is None else shown + 1)
    with (
        index_progress() as progress,
        open_archives(files, limits, progress, whole=True, roots=roots) as archives,
    ):
        progress.stop()
        result = archives.execute(sql)
        notes = [note for note in archives.notes if _concerns(note, sql)]
        with _output(out) as stream:
            _print(result, form, stream, shown, exact)
    for note in notes:
        click.echo(f"note: {safe(note)}", err=True)


def _named(file: Path, attach: dict[str, str]) -> dict[str, Path]:
    from muniment.query.names import unique_names

    (name,) = unique_names([file.stem], taken=[*attach, "memory", "system", "temp"])
    return {name: file, **{other: Path(path) for other, path in attach.items()}}


def _concerns(note: str, sql: str) -> bool:
    """Whether a note may explain something about this query."""
    words = note.replace(":", " ").split()
    names = (word.rpartition(".")[2].lower() for word in words if "." in word.strip("."))
    return any(name and name in sql.lower() for name in names)


class _Bar:
    """Progress of an index on a terminal's stderr."""

    def __init__(self, tell: Watch, close: Callable[[], None]) -> None:
        self._tell, self._close = tell, close

    def __call__(self, table: str, rows: int, total: int) -> None:
        self._tell(table, rows, total)

    def stop(self) -> None:
        self._close()


@contextmanager
def index_progress() -> Iterator[_Bar]:
    """Show how far an index is while the block runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield _Bar(lambda _table, _rows, _total: None, lambda: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:.0f} of {task.total:.0f} rows"),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
    )
    task = bars.add_task("indexing", total=1)

    def tell(table: str, rows: int, total: int) -> None:
        bars.start()
        name = f"indexing {cut(safe(table), 30)}"
        bars.update(task, description=name, completed=rows, total=total)

    try:
        yield _Bar(tell, bars.stop)
    finally:
        bars.stop()


@contextmanager
def _output(out: Path | None) -> Iterator[BinaryIO]:
    if out is None:
        if getattr(sys.stdout, "buffer", None) is None:  # somebody catches the text
            caught = io.BytesIO()
            yield caught
            sys.stdout.write(caught.getvalue().decode("utf-8", "replace"))
            return
        stream = byte_output()
        yield stream
        stream.flush()
        return
    from muniment.files import new_file

    with new_file(out) as stream:
        yield stream


def _print(result: Result, form: str, stream: BinaryIO, limit: int | None, exact: bool) -> None:
    from muniment.query import formats

    batches = _Cut(result.batches, limit)
    match form:
        case "csv":
            formats.write_csv(result.schema, batches, stream, exact)
        case "jsonl":
            formats.write_json_lines(batches, stream)
        case "parquet":
            formats.write_parquet(result.schema, batches, stream)
        case "json":
            _print_json(result, batches, stream)
        case _:
            _print_table(result, batches, stream)
    if batches.more:
        click.echo(f"only the first {count(limit or 0, 'row')}; --limit N shows more", err=True)


class _Cut:
    """Batches up to a limit, which remembers whether there was more."""

    def __init__(self, batches: Iterator[Any], limit: int | None) -> None:
        self._batches, self._left, self.more = batches, limit, False

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            if self._left is not None:
                self.more = self.more or batch.num_rows > self._left
                batch = batch.slice(0, self._left)
                self._left -= batch.num_rows
            if batch.num_rows:
                yield batch


def _print_json(result: Result, batches: _Cut, stream: BinaryIO) -> None:
    import json

    from muniment.query.values import json_value, values_of

    columns = [{"name": f.name, "type": str(f.type)} for f in result.schema]
    stream.write(f'{{"columns": {json.dumps(columns)}, "rows": ['.encode())
    first = True
    for batch in batches:
        for row in zip(*(values_of(column) for column in batch.columns), strict=True):
            line = json.dumps([json_value(value) for value in row])
            stream.write(f"{'' if first else ','}\n{line}".encode())
            first = False
    stream.write(f'\n], "more": {json.dumps(batches.more)}}}\n'.encode())


def _print_table(result: Result, batches: _Cut, stream: BinaryIO) -> None:
    import pyarrow as pa

    from muniment.cli.report import print_records, print_table
    from muniment.query.values import values_of

    rows: list[list[Text]] = []
    for batch in batches:
        for row in zip(*(values_of(column) for column in batch.columns), strict=True):
            rows.append([_cell(value) for value in row])
    names = [safe(name) for name in result.columns]
    numeric = [
        number
        for number, field in enumerate(result.schema)
        if pa.types.is_integer(field.type)
        or pa.types.is_floating(field.type)
        or pa.types.is_decimal(field.type)
    ]
    stream.flush()
    if not rows:
        click.echo(f"no rows; columns: {', '.join(names)}", err=True)
    elif not print_records(names, rows):
        print_table(names, rows, right=numeric)


def _cell(value: Any) -> Text:
    from rich.text import Text

    return Text(_shown(value), style="dim" if value is None else "")


def _shown(value: Any) -> str:
    from muniment.query.values import json_value

    if value is None:
        return "NULL"
    plain = json_value(value)
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, dict) and {"size", "type", "key"} == set(plain):
        return f"{plain['type']}, {plain['size']} bytes"
    if not isinstance(plain, str):
        import json

        plain = json.dumps(plain, ensure_ascii=False)
    text = safe(plain)
    doubtful = not text or text == "NULL" or text[0] in " '" or text[-1] == " "
    return cut("'" + text.replace("'", "''") + "'" if doubtful else text, _LONGEST)
