"""Parts of an archived database: schemas, tables, columns, rows, cells, large objects, definitions.

Positions are those of metadata.xml and of the rows in a table's file, never numbers of folders.
Rows are skipped in batches; only those that were asked for are looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from muniment.fragments.rendering import Fields, render_definition, render_rows
from muniment.fragments.result import Extract, not_possible, out_of_range
from muniment.identifiers.database_parts import Place, parse_place
from muniment.identifiers.fragments import Fragment
from muniment.siard import open_siard
from muniment.siard.source import SiardSource
from muniment.sql.batch import NULL, OPEN, REF, cell_value, parts_of
from muniment.sql.model import Array, Leaf, Schema, Shape, Struct, Table, View, shape_of
from muniment.sql.types import Kind

__all__ = ["extract"]

_LOB = 64 << 20  # octets of a large object inside a row


def extract(path: Path, fragment: Fragment, wanted: str) -> Extract:
    """Return a part of a SIARD archive; ``wanted`` is a media type, or empty for the usual one."""
    with open_siard(path) as source:
        place = parse_place(fragment.positions[0])
        part = _Part(source, _pick(source.describe().schemas, place.schema, "schema"), place)
        match fragment.scheme:
            case "meta":
                return render_definition(part.definition(), wanted)
            case "schema" | "view":
                return render_definition(part.overview(), wanted)
            case "lob":
                return _lob(part, fragment)
            case "key":
                return part.rows_extract([part.by_key(fragment)], part.columns, wanted)
            case "cell" if len(fragment.positions) == 1:
                return part.cell(wanted)
        first, last = part.row_range(fragment)
        return part.rows_extract(part.between(first, last), part.column_range(fragment), wanted)


def _pick(things: Sequence[Any], number: int | None, what: str) -> Any:
    if number is None or not 0 <= number < len(things):
        raise out_of_range(f"there is no {what} {number}: there are {len(things)}")
    return things[number]


@dataclass(frozen=True)
class _Part:
    """The schema and place that a fragment begins with."""

    source: SiardSource
    schema: Schema
    place: Place

    @property
    def table(self) -> Table:
        table: Table = _pick(self.schema.tables, self.place.table, "table")
        return table

    @property
    def columns(self) -> range:
        """The numbers of all columns, from 0."""
        return range(len(self.table.columns))

    def shapes(self) -> list[Shape]:
        database = self.source.describe()
        return [shape_of(database, self.schema.name, column) for column in self.table.columns]

    # Definitions

    def definition(self) -> dict[str, Any]:
        place, schema = self.place, self.schema
        if place.routine is not None:
            return _facts(_pick(schema.routines, place.routine, "routine"), "routine")
        if place.view is None and place.table is None:
            return self.overview()
        home: Table | View = self.table if place.view is None else self._view()
        if place.column is not None:
            return _facts(_pick(home.columns, place.column - 1, "column"), "column")
        if place.key is not None:
            assert isinstance(home, Table)
            return _facts(_pick(_keys(home), place.key, "key"), "key")
        facts = _facts(home, "view" if isinstance(home, View) else "table")
        return {**facts, "columns": [_facts(column, "column") for column in home.columns]}

    def _view(self) -> View:
        view: View = _pick(self.schema.views, self.place.view, "view")
        return view

    def overview(self) -> dict[str, Any]:
        if self.place.view is not None:
            view = self._view()
            return {**_facts(view, "view"), "columns": [_facts(c, "column") for c in view.columns]}
        return {
            **_facts(self.schema, "schema"),
            "tables": [
                {"name": t.name, "rows": t.rows, "columns": [c.name for c in t.columns]}
                for t in self.schema.tables
            ],
            "views": [view.name for view in self.schema.views],
        }

    # Rows

    def between(self, first: int, last: int | None) -> Iterator[list[Any]]:
        """Yield the values of the rows of a closed range."""
        shapes, seen = self.shapes(), 0
        for seen, cells in self.source.rows(self.schema, self.table, first, last):  # noqa: B007
            yield [self.value(cell, shape) for cell, shape in zip(cells, shapes, strict=True)]
        if last is not None and seen < last:
            raise out_of_range(f"there is no row {last} in {self.table.name}")

    def value(self, cell: bytes, shape: Shape) -> Any:
        """Return a cell as text, None or a list."""
        if cell.startswith(REF):
            return self._stored(cell[1:], shape)
        if not cell.startswith(OPEN):
            return cell_value(cell)
        parts = list(parts_of(cell))
        match shape:
            case Struct(shapes):
                return Fields(self.value(p, s) for p, s in zip(parts, shapes, strict=False))
            case Array(element):
                return [self.value(part, element) for part in parts]
        return [self.value(part, shape) for part in parts]

    def _stored(self, reference: bytes, shape: Shape) -> str:
        with self.source.open_lob(self.schema, self.table, reference) as stream:
            data = stream.read(_LOB + 1)
        if len(data) > _LOB:
            raise not_possible("a large object is too long to be shown in its row; name it by lob=")
        binary = isinstance(shape, Leaf) and shape.type.kind is Kind.BINARY
        return data.hex().upper() if binary else data.decode("utf-8", "surrogatepass")

    def row_range(self, fragment: Fragment) -> tuple[int, int | None]:
        """Return the first and last row of a fragment; None is the end of the table."""
        if fragment.scheme in ("table", "col"):
            return 1, None
        first = self.place.row or 1
        ends = [int(p[1:]) for g in fragment.positions[1:] for p in g if p.startswith("r")]
        return first, ends[0] if ends else first

    def column_range(self, fragment: Fragment) -> range:
        """Return the columns of a fragment, counted from 0."""
        if self.place.column is None:
            return self.columns
        _pick(self.table.columns, self.place.column - 1, "column")
        ends = [int(p[1:]) for g in fragment.positions[1:] for p in g if p.startswith("c")]
        last = ends[0] if ends else self.place.column
        _pick(self.table.columns, last - 1, "column")
        return range(self.place.column - 1, last)

    def rows_extract(self, rows: Any, columns: range, wanted: str) -> Extract:
        names = [self.table.columns[number].name for number in columns]
        chosen = ([row[number] for number in columns] for row in rows)
        return render_rows(names, [number + 1 for number in columns], chosen, wanted)

    # One value

    def raw(self) -> tuple[bytes, Shape]:
        """Return the cell of the place, and what shape it has."""
        column = (self.place.column or 1) - 1
        _pick(self.table.columns, column, "column")
        wanted = self.place.row or 1
        for _, cells in self.source.rows(self.schema, self.table, wanted, wanted):
            return self._inner(cells[column], self.shapes()[column])
        raise out_of_range(f"there is no row {wanted} in {self.table.name}")

    def _inner(self, cell: bytes, shape: Shape) -> tuple[bytes, Shape]:
        """Follow the path into UDT fields and array elements."""
        for letter, number in self.place.path:
            parts = list(parts_of(cell)) if cell.startswith(OPEN) else []
            fits = isinstance(shape, Struct) if letter == "u" else isinstance(shape, Array)
            if not fits or number > len(parts):
                raise out_of_range(f"the cell has no part {letter}{number}")
            cell = parts[number - 1]
            shape = shape.parts[number - 1] if isinstance(shape, Struct) else shape.element  # type: ignore[union-attr]
        return cell, shape

    def cell(self, wanted: str) -> Extract:
        """Return one value; NULL is said to be NULL."""
        cell, shape = self.raw()
        value = self.value(cell, shape)
        if wanted == "application/json":
            return Extract(wanted, json.dumps(value).encode(), null=value is None)
        if wanted not in ("", "text/plain"):
            column = (self.place.column or 1) - 1
            name = self.table.columns[column].name
            return render_rows([name], [column + 1], iter([[value]]), wanted)
        text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
        data = text.encode("utf-8", "surrogatepass")
        return Extract("text/plain;charset=utf-8", data, null=value is None)

    # By key

    def by_key(self, fragment: Fragment) -> list[Any]:
        """Return the one row that has the values of a key."""
        key = _pick(_keys(self.table), self.place.key, "key")
        values = [_key_value(value) for value in fragment.positions[0][3:]]
        names = [column.name for column in self.table.columns]
        where = [names.index(name) for name in key.columns]
        if len(values) != len(where):
            raise out_of_range(f"the key {key.name} has {len(where)} columns")
        found = [
            row
            for row in self.between(1, None)
            if all(_same(row[at], value) for at, value in zip(where, values, strict=True))
        ]
        if len(found) != 1:
            raise out_of_range(f"{len(found)} rows have this key; it should be one")
        return found[0]


def _keys(table: Table) -> list[Any]:
    own = [table.primary_key] if table.primary_key is not None else []
    return [*own, *table.candidate_keys]


def _key_value(text: str) -> str:
    if text.startswith("x"):
        return bytes.fromhex(text[1:]).decode("utf-8", "replace")
    return f"-{text[1:]}" if text.startswith("n") else text


def _same(cell: Any, value: str) -> bool:
    if cell == value:
        return True
    try:
        return isinstance(cell, str) and Decimal(cell) == Decimal(value)
    except InvalidOperation:
        return False


def _facts(thing: Any, kind: str) -> dict[str, Any]:
    """Return what a definition says, without what it contains."""
    facts: dict[str, Any] = {"is": kind}
    for name in thing.__dataclass_fields__:
        value = getattr(thing, name)
        if value is None or value == () or name in ("tables", "views", "types", "routines"):
            continue
        if name == "columns" and kind != "key":
            continue
        if isinstance(value, tuple):
            value = [str(each) if isinstance(each, str) else _facts(each, "part") for each in value]
        elif not isinstance(value, (str, int, bool)):
            value = _facts(value, name) if hasattr(value, "columns") else str(value)
        facts[name] = value
    return facts


def _lob(part: _Part, fragment: Fragment) -> Extract:
    """Return a large object or a part of it."""
    from muniment.fragments.extract import extract_bytes

    cell, shape = part.raw()
    if cell == NULL:
        return Extract("application/octet-stream", b"", null=True)
    text = isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT
    if not isinstance(shape, Leaf) or shape.type.kind not in (Kind.TEXT, Kind.BINARY):
        raise out_of_range("the cell is no large object")
    value = part.value(cell, shape)
    data = value.encode("utf-8", "surrogatepass") if text else bytes.fromhex(value)
    column = part.table.columns[(part.place.column or 1) - 1]
    media = column.mime_type or ("text/plain;charset=utf-8" if text else recognised(data))
    if len(fragment.positions) == 1:
        return Extract(media, data)
    scheme, *numbers = tuple(fragment.positions[1])
    if scheme == "char":
        # Characters of data are counted as they are: no line end is rewritten.
        words = data.decode("utf-8", "surrogatepass")
        start, end = map(int, numbers)
        if end > len(words):
            raise out_of_range(f"character {end} lies behind the end: there are {len(words)}")
        return Extract(
            "text/plain;charset=utf-8", words[start:end].encode("utf-8", "surrogatepass")
        )
    if scheme == "rect":
        inner = Fragment("rect", ((numbers[0], numbers[1]), (numbers[2], numbers[3]), numbers[4]))
    else:
        inner = Fragment(scheme, tuple(numbers))
    return extract_bytes(data, media, inner, False)


_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"GIF8": "image/gif", b"\xff\xd8\xff": "image/jpeg",
    b"II*\x00": "image/tiff", b"MM\x00*": "image/tiff", b"BM": "image/bmp",
    b"%PDF-": "application/pdf",
    b"fLaC": "audio/flac", b"\x00\x00\x01\xba": "video/mpeg", b"PK\x03\x04": "application/zip",
}  # fmt: skip


def recognised(data: bytes) -> str:
    """Return the media type that the first octets of a large object show."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "audio/wav"
    for magic, media in _MAGIC.items():
        if data.startswith(magic):
            return media
    return "application/octet-stream"
