"""An archive as a folder of plain pages that open from disk: no server, no network.

Every table is cut into pages of rows; a first page lists everything. Foreign keys lead to the rows
that they refer to, large objects are files, and one page, the only one with a script, searches all
tables.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from muniment.databases.duckdb.types import quote as sql_quote
from muniment.errors import MunimentError
from muniment.query.export import Exported, file_names, new_folder
from muniment.query.index import IndexTable, Watch
from muniment.query.media import EXTENSIONS
from muniment.query.names import index_catalog
from muniment.query.session import Archives, Limits, open_archives
from muniment.siard import open_siard
from muniment.sql.model import Database, Schema, Table
from muniment.sql.original import split_original
from muniment.web.cells import Cell, object_cell, value_cell
from muniment.web.page import render_file, text_of
from muniment.web.static_search import SearchTexts
from muniment.web.table_page import select_sql

__all__ = ["export_site"]

_NAME = "archive"
_ROWS = 500  # on a page
_LONGEST = 2000  # characters of a value on a page


def export_site(path: Path, folder: Path, progress: Watch | None = None) -> Exported:
    """Write an archive as a static site into a new folder."""
    with (
        new_folder(folder) as place,
        open_siard(path) as source,
        open_archives({_NAME: path}, Limits(seconds=None), progress) as session,
    ):
        return _Site(session, source.describe(), place, path.name).write()


class _Site:
    """A static site in the making."""

    def __init__(self, session: Archives, database: Database, folder: Path, file: str) -> None:
        self._session, self._database, self._folder = session, database, folder
        self._file = file
        self._about = session.about[_NAME]
        self._tables = list(database.tables())
        self._names = file_names([(t.schema, t.name) for t in self._about.tables])
        self._texts = SearchTexts(folder)
        self._notes: list[str] = []
        self._objects = 0

    def write(self) -> Exported:
        for name in ("style.css", "search.js"):
            data = (files("muniment.web") / "static" / name).read_bytes()
            (self._folder / name).write_bytes(data)
        written = []
        for number, (schema, table) in enumerate(self._tables):
            rows = self._write_table(number, schema, table)
            written.append((schema.name, table.name, rows, f"{self._names[number]}.html"))
        self._write_index()
        self._save("search.html", render_file("static_search.html", database=self._database))
        titles = [f"{schema.name}.{table.name}"[:200] for schema, table in self._tables]
        listed = [{"name": t, "file": quote(f)} for t, f in zip(titles, self._names, strict=True)]
        self._texts.finish(listed, _ROWS)
        return Exported(tuple(written), self._objects, (*self._session.notes, *self._notes))

    def _write_index(self) -> None:
        tables = [
            {
                "schema": schema.name,
                "name": table.name,
                "rows": self._about.tables[number].rows,
                "description": split_original(table.description)[0],
                "url": f"{quote(self._names[number])}.html",
            }
            for number, (schema, table) in enumerate(self._tables)
        ]
        text = render_file(
            "static_index.html", database=self._database, tables=tables, file=self._file,
            digest=self._about.digest,
        )  # fmt: skip
        self._save("index.html", text)

    def _write_table(self, number: int, schema: Schema, table: Table) -> int:
        index, name = self._about.tables[number], self._names[number]
        pages = max(1, -(-index.rows // _ROWS))
        relations = self._relations(schema, table)
        for page in range(pages):
            rows = list(self._rows(index, number, page * _ROWS))
            text = render_file(
                "static_table.html", database=self._database, schema=schema.name, table=table,
                description=split_original(table.description)[0], rows=rows, page=page,
                total=index.rows, start=page * _ROWS, links=_page_links(name, page, pages),
                **relations,
            )  # fmt: skip
            self._save(page_name(name, page), text)
        return index.rows

    def _relations(self, schema: Schema, table: Table) -> dict[str, list[dict[str, Any]]]:
        """Which tables this one refers to, and which refer to it."""
        own = schema.name, table.name
        places = {(s.name, t.name): f"{quote(n)}.html" for (s, t), n in
                  zip(self._tables, self._names, strict=True)}  # fmt: skip
        return {
            "refers_to": [
                {
                    "columns": [r.column for r in key.references],
                    "table": f"{key.referenced_schema}.{key.referenced_table}",
                    "url": places.get((key.referenced_schema, key.referenced_table)),
                }
                for key in table.foreign_keys
            ],
            "referred_by": [
                {
                    "columns": [r.column for r in key.references],
                    "table": f"{home.name}.{other.name}",
                    "url": places[home.name, other.name],
                }
                for home, other in self._tables
                for key in other.foreign_keys
                if (key.referenced_schema, key.referenced_table) == own
            ],
        }

    def _rows(self, index: IndexTable, number: int, start: int) -> Iterator[list[Cell]]:
        shown = list(range(len(index.columns)))
        home = f"{sql_quote(index_catalog(_NAME))}.{index.place}"
        keys = list(self._keys(number))
        wanted = [select_sql(index, shown, _LONGEST + 1) or "NULL", *(sql for _, _, sql in keys)]
        sql = (
            f"SELECT rowid, {', '.join(wanted)} FROM {home} AS own"
            " WHERE rowid >= ? AND rowid < ? ORDER BY rowid"
        )
        for row in self._session.rows(sql, [start, start + _ROWS]):
            values = iter(row[1:])
            cells = [self._cell(index, number, k, row[0] + 1, values) for k in shown]
            self._texts.add(number, row[0] + 1, cells)
            for (columns, target, _), found in zip(keys, row[len(row) - len(keys) :], strict=True):
                for k in columns if found is not None else ():
                    page = page_name(self._names[target], found // _ROWS)
                    cells[k].href = cells[k].href or f"{quote(page)}#row{found + 1}"
            yield cells

    def _keys(self, number: int) -> Iterator[tuple[list[int], int, str]]:
        """Yield foreign keys: their columns, the table referred to, and SQL for the row there."""
        names = {(s.name, t.name): n for n, (s, t) in enumerate(self._tables)}
        own, table = self._about.tables[number], self._tables[number][1]
        for key in table.foreign_keys:
            target = names.get((key.referenced_schema, key.referenced_table))
            if target is None or not key.references:
                continue
            other, archived = self._about.tables[target], self._tables[target][1]
            pairs = [
                (_column(table, r.column), _column(archived, r.referenced)) for r in key.references
            ]
            if any(a is None or b is None for a, b in pairs):
                continue
            alike = " AND ".join(
                f"CAST(own.c{a + 1} AS VARCHAR) = CAST(other.c{b + 1} AS VARCHAR)"
                if own.columns[a].type != other.columns[b].type
                else f"own.c{a + 1} = other.c{b + 1}"
                for a, b in pairs
                if a is not None and b is not None
            )
            place = f"{sql_quote(index_catalog(_NAME))}.{other.place}"
            sql = f"(SELECT min(other.rowid) FROM {place} AS other WHERE {alike})"
            yield [a for a, _ in pairs if a is not None], target, sql

    def _cell(
        self, index: IndexTable, number: int, k: int, row: int, values: Iterator[Any]
    ) -> Cell:
        value = next(values)
        place = number, k + 1, row
        if index.columns[k].large != "binary":
            return self._shown(value, place, index.columns[k].large == "text")
        size, media = next(values), next(values)
        if not value:
            return Cell("null")
        file = self._copied(place, "lobs", _extension(media))
        if not file:
            return Cell("text", text_of("object_unreadable"))
        self._objects += 1
        cell = object_cell(size, media, quote(file))
        cell.thumbnail = cell.href if cell.thumbnail else ""
        return cell

    def _shown(self, value: Any, place: tuple[int, int, int], large: bool) -> Cell:
        """A value; of one that is too long for the page the start, which leads to all of it."""
        cell = value_cell(value, _LONGEST)
        if not cell.cut:
            return cell
        text = None
        if not large:
            whole = cell.value if isinstance(cell.value, str) else json.dumps(
                cell.value, ensure_ascii=False, indent=1
            )  # fmt: skip
            text = whole.encode("utf-8", "backslashreplace")
        cell.href = quote(self._copied(place, "texts", "txt", text))
        return cell

    def _copied(
        self, place: tuple[int, int, int], folder: str, ending: str, text: bytes | None = None
    ) -> str:
        """Write a value into a file of its own; return its name, or nothing and a note."""
        number, column, row = place
        file = f"{folder}/{self._names[number]}/{row}-{column}.{ending}"
        target = self._folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source = self._session.open_content(f"{_NAME}/{number}/{column}/{row}") if (
                text is None
            ) else io.BytesIO(text)  # fmt: skip
            with source, target.open("xb") as stream:
                shutil.copyfileobj(source, stream, 1 << 20)
        except MunimentError as error:
            target.unlink(missing_ok=True)
            self._notes.append(str(error))
            return ""
        return file

    def _save(self, name: str, text: str) -> None:
        (self._folder / name).write_bytes(text.encode("utf-8", "backslashreplace"))


def page_name(name: str, page: int) -> str:
    """The file of a page of a table; no table's own name has two dots."""
    return f"{name}.html" if page == 0 else f"{name}.{page + 1}.html"


def _page_links(name: str, page: int, pages: int) -> list[tuple[str, Any]]:
    """The way to other pages of a table: the next ones, the ends, and steps in between.

    >>> [key or (at and at[0]) for key, at in _page_links("t", 4, 90)]
    ['previous', 1, None, 3, 4, 5, 6, 7, None, 90, 'next']
    """
    if pages < 2:
        return []
    near = sorted({0, pages - 1, *range(max(0, page - 2), min(pages, page + 3))})
    links: list[tuple[str, Any]] = []
    if page:
        links.append(("previous", quote(page_name(name, page - 1))))
    for at, number in enumerate(near):
        if at and number > near[at - 1] + 1:
            links.append(("", None))
        address = quote(page_name(name, number)) if number != page else ""
        links.append(("", (number + 1, address)))
    if page + 1 < pages:
        links.append(("next", quote(page_name(name, page + 1))))
    return links


def _column(table: Table, name: str) -> int | None:
    return next((k for k, column in enumerate(table.columns) if column.name == name), None)


def _extension(media: str | None) -> str:
    """What could run when it is opened from disk gets an ending that no browser runs."""
    if media in ("text/html", "image/svg+xml", "application/xml"):
        return "txt"
    return EXTENSIONS.get(media or "", "bin")
