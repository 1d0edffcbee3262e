"""``muniment show``: what an archive holds, the first rows of a table, or a view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from muniment.cli.lobs import lob_roots, roots_of
from muniment.cli.options import ARCHIVE, ROWS, check_input, examples, json_option
from muniment.cli.terminal import count, cut, paged, safe, size
from muniment.errors import MunimentError
from muniment.query.values import with_zone
from muniment.sql.batch import CELL, OPEN, REF, cell_value, parts_of, rows_of
from muniment.sql.chosen import meant
from muniment.sql.model import (
    Array,
    Column,
    Database,
    Leaf,
    Schema,
    Shape,
    Struct,
    Table,
    View,
    shape_of,
)
from muniment.sql.names import format_identifier
from muniment.sql.original import notes_in, split_notes, split_original
from muniment.sql.types import Kind

if TYPE_CHECKING:
    from rich.text import Text

    from muniment.sql.stores import Source

__all__ = ["show", "show_archive"]

_LONGEST = 60  # characters of a value in a table on the terminal
_LONGEST_FACT = 300  # characters of what is said about the whole database
_LOB_BYTES = 1 << 16  # of a large object, no more than this is read

OpenCell = Callable[[bytes], BinaryIO]


@click.command(
    epilog=examples("muniment show trees.siard", "muniment show trees.siard main.tree --rows 5")
)
@click.argument("file", type=ARCHIVE, metavar="FILE.siard")
@click.argument("table", required=False, metavar="[SCHEMA.TABLE]")
@click.option(
    "--rows", type=ROWS, metavar="N", default=20, show_default=True, help="How many rows."
)
@lob_roots
@json_option
@click.pass_context
def show(
    ctx: click.Context,
    file: Path,
    table: str | None,
    rows: int,
    lob_root: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what an archive holds, the first rows of a table, or the columns and query of a view.

    NULL is shown as NULL, an empty text as ''; control characters are escaped and long values cut.
    Lines that begin with "note:" are what the archive says of itself: that rows were left out, say.
    With --json the values are whole, except for large objects: of those over 64 KiB the start is
    given as {"start": …, "more": true}, and one that cannot be read is {"missing": "why"}.
    """
    check_input(file)
    show_archive(ctx, file, table, rows, as_json, lob_root)


def show_archive(
    ctx: click.Context, file: Path, table: str | None, rows: int, as_json: bool,
    lob_root: tuple[str, ...] = (), label: str = "",
) -> None:  # fmt: skip
    """Show an archive, which may be a file or lie inside a store under another name."""
    from muniment.siard import open_siard

    shown: Any = label or file  # what lies in a store is shown by its name there
    notes: list[str] = []
    with open_siard(file, roots_of(lob_root)) as source, _notes_follow(source):
        database = source.describe()
        found = None if table is None else _find(database, table)
        if table is not None and found is None:
            click.echo(f"muniment: {safe(_not_found(shown, database, table))}", err=True)
            ctx.exit(1)
        with nullcontext() if as_json else paged():
            match found:
                case None:
                    print_ = _print_overview_json if as_json else _print_overview
                    print_(shown, source.version, database)
                case schema, View() as view:
                    (_print_view_json if as_json else _print_view)(shown, schema, view)
                case schema, Table() as known:
                    values = list(islice(_rows(source, database, schema, known), rows))
                    (_print_rows_json if as_json else _print_rows)(shown, schema, known, values)
                    notes = [] if as_json else _notes_on_rows(schema, known, values)
    for note in notes:
        click.echo(note, err=True)
    if found and isinstance(found[1], View) and not (as_json or label):
        _advise_on_view(file, found[0], found[1])


@contextmanager
def _notes_follow(source: Any) -> Iterator[None]:
    """Print notes behind what the block prints: a pager has the terminal to itself."""
    from muniment.cli.report import print_notes

    try:
        yield
    finally:
        print_notes(source.notes)


def _find(database: Database, name: str) -> tuple[Schema, Table | View] | None:
    """Return the table or view called SCHEMA.TABLE, or TABLE if only one schema has it."""
    known = list(_relations(database))
    named = [(s, t) for s, t in known if name == f"{s.name}.{t.name}"]
    named = named or [(s, t) for s, t in known if name == t.name]
    return named[0] if len(named) == 1 else None


def _relations(database: Database) -> Iterator[tuple[Schema, Table | View]]:
    yield from database.tables()
    yield from ((schema, view) for schema in database.schemas for view in schema.views)


def _not_found(file: Path, database: Database, name: str) -> str:
    names = [f"{s.name}.{t.name}" for s, t in _relations(database)]
    several = [full for full in names if full.endswith(f".{name}")]
    if several:
        return f"{file} has {name} several times: {', '.join(several)}"
    return f"{file} has no table or view {name!r}; {meant(name, names)}"


# The overview


def _print_overview(file: Path | str, version: str, database: Database) -> None:
    from muniment.cli.report import print_table

    tables = list(database.tables())
    rows = sum(table.rows for _, table in tables)
    facts = f"SIARD {version}, {count(len(tables), 'table')}, {count(rows, 'row')}"
    facts += f", {size(_size(file))}" if isinstance(file, Path) else ""
    click.echo(safe(f"{file}: {facts}"))
    _print_facts(database)
    click.echo()
    print_table(
        ["table", "rows", "columns", "description"],
        [
            [
                safe(f"{schema.name}.{table.name}"),
                str(table.rows),
                str(len(table.columns)),
                cut(safe(_first_line(table.description)), _LONGEST),
            ]
            for schema, table in tables
        ],
        right=(1, 2),
    )
    for schema in database.schemas:
        for view in schema.views:
            text = f"view {schema.name}.{view.name}  {_first_line(view.description)}"
            click.echo(cut(safe(text.rstrip()), _LONGEST_FACT))
    for schema, relation in _relations(database):
        for note in _notes_of(schema, relation):
            click.echo(note)


def _notes_of(schema: Schema, relation: Table | View) -> list[str]:
    """What the archive itself says about a table or view, each as a line."""
    name = f"{schema.name}.{relation.name}"
    return [
        cut(safe(f"note: {name}: {' '.join(note.split())}"), _LONGEST_FACT)
        for note in notes_in(relation.description)
    ]


def _size(file: Path) -> int:
    from muniment.siard.volumes import volume_paths

    return sum(part.stat().st_size for part in volume_paths(file))


def _first_line(text: str | None) -> str:
    words, _ = split_notes(text)
    return (words or "").strip().partition("\n")[0]


def _print_facts(database: Database) -> None:
    facts = [
        ("database", database.dbname),
        ("owner", database.data_owner),
        ("timespan", database.data_origin_timespan),
        ("description", database.description),
        ("archived", database.archival_date),
        ("archiver", database.archiver),
        ("contact", database.archiver_contact),
        ("product", database.database_product),
        ("written by", database.producer_application),
        *((d.digest_type, f"{d.digest} (of the content)") for d in database.message_digests),
    ]
    for name, value in facts:
        if value:
            click.echo(f"  {safe(name):<12}{cut(safe(value), _LONGEST_FACT)}")


def _print_overview_json(file: Path, version: str, database: Database) -> None:
    from muniment.cli.report import print_json

    print_json(
        {
            "file": str(file),
            "version": version,
            "dbname": database.dbname,
            "schemas": [_schema_json(schema) for schema in database.schemas],
        }
    )


def _schema_json(schema: Schema) -> dict[str, Any]:
    return {
        "name": schema.name,
        "folder": schema.folder,
        "tables": [
            {
                "name": table.name,
                "folder": table.folder,
                "rows": table.rows,
                "columns": _columns_json(table.columns),
                "notes": notes_in(table.description),
            }
            for table in schema.tables
        ],
        "views": [
            {
                "name": view.name,
                "rows": view.rows,
                "columns": _columns_json(view.columns),
                "notes": notes_in(view.description),
            }
            for view in schema.views
        ],
    }


def _columns_json(columns: Sequence[Column]) -> list[dict[str, Any]]:
    return [
        {"name": column.name, "type": _type_text(column), "nullable": column.nullable is not False}
        for column in columns
    ]


def _type_text(column: Column) -> str:
    array = "" if column.cardinality is None else f" ARRAY[{column.cardinality}]"
    return f"{column.type}{array}"


# The rows of a table. A value is a str, None, a list (array or UDT), or for a large object perhaps
# only its _Start, or the reason why it is _Missing.


class _Start(str):
    """The start of a value that is too long to be read as a whole."""


class _Missing(str):
    """Why a large object cannot be read; the rest of its row can."""


def _rows(source: Source, database: Database, schema: Schema, table: Table) -> Iterator[list[Any]]:
    shapes = [shape_of(database, schema.name, column) for column in table.columns]

    def open_cell(reference: bytes) -> BinaryIO:
        return source.open_lob(schema, table, reference)

    for part in source.parts(schema, table):
        for batch in source.batches(schema, table, part):
            for row in rows_of(batch):
                cells = zip(row.split(CELL), shapes, strict=True)
                yield [_value(cell, shape, open_cell) for cell, shape in cells]


def _value(cell: bytes, shape: Shape, open_cell: OpenCell) -> Any:
    if cell.startswith(REF):
        try:
            return _read_start(open_cell(cell[1:]), shape)
        except (MunimentError, OSError) as error:
            return _Missing(str(error))
    if not cell.startswith(OPEN):
        value = cell_value(cell)
        return with_zone(value, shape) if isinstance(value, str) else value
    parts = list(parts_of(cell))
    match shape:
        case Struct(shapes):
            return [_value(part, s, open_cell) for part, s in zip(parts, shapes, strict=False)]
        case Array(element):
            return [_value(part, element, open_cell) for part in parts]
    return [_value(part, shape, open_cell) for part in parts]


def _read_start(stream: BinaryIO, shape: Shape) -> str:
    with stream:
        data = stream.read(_LOB_BYTES + 1)
    whole, data = len(data) <= _LOB_BYTES, data[:_LOB_BYTES]
    if isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT:
        # The cut may fall inside a character; what is left of it is dropped.
        text = data.decode("utf-8", "replace" if whole else "ignore")
    else:
        text = data.hex().upper()
    return text if whole else _Start(text)


def _print_rows_json(file: Path, schema: Schema, table: Table, rows: list[list[Any]]) -> None:
    from muniment.cli.report import print_json

    print_json(
        {
            "file": str(file),
            "schema": schema.name,
            "table": table.name,
            "total_rows": table.rows,
            "columns": _columns_json(table.columns),
            "notes": notes_in(table.description),
            "rows": [[_json_value(value) for value in row] for row in rows],
        }
    )


def _json_value(value: Any) -> Any:
    if isinstance(value, _Start):
        return {"start": str(value), "more": True}
    if isinstance(value, _Missing):
        return {"missing": str(value)}
    if isinstance(value, list):
        return [_json_value(part) for part in value]
    return value


def _print_rows(file: Path, schema: Schema, table: Table, rows: list[list[Any]]) -> None:
    from muniment.cli.report import print_records, print_table

    names = [safe(column.name) for column in table.columns]
    shown = [[_cell(value) for value in row] for row in rows]
    numeric = [i for i, column in enumerate(table.columns) if _is_number(column)]
    if not print_records(names, shown):
        print_table(names, shown, right=numeric)


def _notes_on_rows(schema: Schema, table: Table, rows: list[list[Any]]) -> list[str]:
    """What people should know about the rows that they were shown."""
    missing = (str(v) for row in rows for v in row if isinstance(v, _Missing))
    notes = _notes_of(schema, table)
    notes += [f"note: {safe(reason)}" for reason in islice(missing, 1)]
    total = max(table.rows, len(rows))
    if len(rows) < total:
        name = safe(f"{schema.name}.{table.name}")
        notes.append(f"{len(rows)} of {total} rows of {name}; --rows N shows more")
    return notes


def _is_number(column: Column) -> bool:
    kind = getattr(column.type, "kind", None)
    return column.cardinality is None and kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)


def _cell(value: Any) -> Text:
    from rich.text import Text

    return Text(cut(_shown(value), _LONGEST), style="dim" if value is None else "")


def _shown(value: Any) -> str:
    r"""Return a value as a table on the terminal shows it: NULL, '' and 'NULL' are three things.

    >>> [_shown(value) for value in (None, "", "NULL", "elm", " elm", ["a", None])]
    ['NULL', "''", "'NULL'", 'elm', "' elm'", "('a', NULL)"]
    """
    if value is None:
        return "NULL"
    if isinstance(value, _Missing):
        return "(cannot be read)"
    if isinstance(value, list):
        return "(" + ", ".join(_quoted(part) for part in value) + ")"
    text = safe(value) + ("…" if isinstance(value, _Start) else "")
    doubtful = not text or text == "NULL" or text[0] in " '(" or text[-1] == " "
    return _quoted(text) if doubtful else text


def _quoted(value: Any) -> str:
    if not isinstance(value, str) or isinstance(value, _Missing):
        return _shown(value)
    return "'" + safe(value).replace("'", "''") + "'"


# A view: an archive holds its definition, and no rows.


def _print_view(_file: Path | str, schema: Schema, view: View) -> None:
    from muniment.cli.report import print_table

    click.echo(safe(f"{schema.name}.{view.name} is a view: the archive holds its query, no rows"))
    words, _ = split_original(view.description)
    _print_lines(words)
    click.echo()
    columns = [[safe(column.name), safe(_type_text(column))] for column in view.columns]
    print_table(["column", "type"], columns)
    for query in dict.fromkeys((view.query_original, view.query)):
        if query:
            click.echo()
            _print_lines(query)


def _print_lines(text: str | None) -> None:
    for line in (text or "").splitlines():
        click.echo(safe(line))


def _print_view_json(file: Path | str, schema: Schema, view: View) -> None:
    from muniment.cli.report import print_json

    print_json(
        {
            "file": str(file),
            "schema": schema.name,
            "view": view.name,
            "columns": _columns_json(view.columns),
            "query": view.query,
            "query_original": view.query_original,
            "description": view.description,
            "notes": notes_in(view.description),
        }
    )


def _advise_on_view(file: Path, schema: Schema, view: View) -> None:
    from muniment.cli.report import named, print_advice

    sql = f"SELECT * FROM {format_identifier(schema.name, view.name)}"
    purpose = "its rows, where Muniment can translate its query"
    print_advice(purpose, ["muniment", "query", named(file), sql])
