"""The page of a table: typed sorting, filters, facets, search, permanent addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from muniment.databases.duckdb.types import quote
from muniment.errors import MunimentError
from muniment.query.media import HEAD_BYTES, recognise
from muniment.query.names import index_catalog
from muniment.sql.model import ForeignKey, Leaf, Schema, Shape, Table
from muniment.sql.original import split_original
from muniment.sql.types import Kind
from muniment.web.archive_pages import find_table, frame, open_archive, type_text
from muniment.web.cells import Cell, archived_cell, object_cell, value_cell
from muniment.web.filters import (
    OPERATORS,
    SIZES,
    Filter,
    TableRequest,
    is_scalar,
    order_sql,
    parse_request,
    where_sql,
)
from muniment.web.page import Page, text_of
from muniment.web.site import OpenArchive
from muniment.web.urls import Urls, slug

if TYPE_CHECKING:
    from muniment.query.index import IndexTable

__all__ = ["indexed_rows", "place_of", "read_rows", "select_sql", "table_page"]

_FACET_VALUES = 12
_SUGGESTED = 8
_FEW = 60  # different values that make a good facet
_READ_THROUGH = 64 << 20  # bytes of an object that a page reads to its end


def table_page(request: Request) -> Page:
    """Rows of a table."""
    archive = open_archive(request)
    schema, table = find_table(request, archive)
    asked = parse_request(request.query_params, column_keys(table))
    view = _View(archive, schema, table, asked)
    facts = {
        "schema": schema.name,
        "name": table.name,
        "description": split_original(table.description)[0],
        "total_rows": table.rows,
        "columns": [view.column_facts(number) for number in view.shown],
        **view.rows(),
        "facets": view.facets(),
        "keys": key_facts(archive, schema, table),
    }
    return Page("table.html", facts, {**frame(archive), **view.controls()})


class _View:
    """One state of the page of a table."""

    def __init__(
        self, archive: OpenArchive, schema: Schema, table: Table, asked: TableRequest
    ) -> None:
        self.archive, self.schema, self.table, self.asked = archive, schema, table, asked
        self.urls = Urls(archive)
        self.names = [column.name for column in table.columns]
        self.keys = list(column_keys(table).values())
        self.shapes = archive.shapes(schema, table)
        self.shown = list(asked.columns) or list(range(len(table.columns)))
        self.index = _index_of(archive, schema, table)

    # Facts

    def column_facts(self, number: int) -> dict[str, Any]:
        column = self.table.columns[number]
        key = self.table.primary_key
        return {
            "name": column.name,
            "type": type_text(column),
            "description": column.description,
            "key": bool(key and column.name in key.columns),
            "position": number + 1,
            "number": _is_number(self.shapes[number]),
            "sort_url": self._sort_url(number),
            "sorted": self._sorted(number),
        }

    def rows(self) -> dict[str, Any]:
        """The rows of this page, and how many there are in all."""
        if self.index is None:
            return self._first_rows()
        assert self.archive.session is not None
        condition, parameters = where_sql(self.index, self.asked)
        home = place_of(self.archive, self.index)
        if condition:
            found = self.archive.session.rows(f"SELECT count(*) FROM {home}{condition}", parameters)
            count = int(found[0][0])
        else:
            count = self.index.rows
        sql = (
            f"SELECT rowid, {select_sql(self.index, self.shown)} FROM {home}{condition}"
            f"{order_sql(self.asked, self.index)} LIMIT {self.asked.size} OFFSET {self.asked.start}"
        )
        rows = indexed_rows(
            self.archive, self.schema, self.table, self.index, self.shown, sql, parameters
        )
        return {"rows": rows, "count": count, "waiting": None, **self._pages(count)}

    def _first_rows(self) -> dict[str, Any]:
        """The start of the table, as the archive has it."""
        asked = self.asked
        waiting = text_of("index_needed") if asked.needs_index else None
        chosen = [] if waiting else [(asked.start + 1, asked.start + asked.size)]
        rows = read_rows(
            self.archive, self.schema, self.table, chosen, self.shown, asked.size, look=False
        )
        return {"rows": rows, "count": self.table.rows, "waiting": waiting,
                **self._pages(self.table.rows)}  # fmt: skip

    def _pages(self, count: int) -> dict[str, Any]:
        start, size = self.asked.start, self.asked.size
        last = max(0, (count - 1) // size * size)
        return {
            "start": start,
            "size": size,
            "previous": self._url(start=max(0, start - size)) if start else None,
            "next": self._url(start=start + size) if start + size < count else None,
            "first_url": self._url() if start else None,
            "last_url": self._url(start=last) if start < last else None,
        }

    def facets(self) -> list[dict[str, Any]]:
        """For each chosen column, its most frequent values among the rows of the request."""
        if self.index is None or self.archive.session is None:
            return []
        facets = []
        condition, parameters = where_sql(self.index, self.asked)
        home = place_of(self.archive, self.index)
        for number in self.asked.facets:
            cell = f"c{number + 1}"
            if self.index.columns[number].large == "binary":
                cell = f"{cell}_type"
            found = self.archive.session.rows(
                f"SELECT {cell}, count(*) AS n FROM {home}{condition} GROUP BY 1"
                f" ORDER BY n DESC, 1 NULLS LAST LIMIT {_FACET_VALUES + 1}",
                parameters,
            )
            facets.append(
                {
                    "column": self.names[number],
                    "more": len(found) > _FACET_VALUES,
                    "remove": self._url(facets=tuple(f for f in self.asked.facets if f != number)),
                    "values": [self._facet_value(number, *row) for row in found[:_FACET_VALUES]],
                }
            )
        return facets

    def _facet_value(self, number: int, value: Any, count: int) -> dict[str, Any]:
        cell = value_cell(value, 60)
        text = "" if value is None else str(cell.value)
        chosen = Filter(number, "null") if value is None else Filter(number, "eq", text)
        is_chosen = chosen in self.asked.filters
        others = tuple(f for f in self.asked.filters if f != chosen)
        filters = others if is_chosen else (*self.asked.filters, chosen)
        return {"value": cell, "count": count, "chosen": is_chosen,
                "url": self._url(filters=filters)}  # fmt: skip

    # Controls, which only people need

    def controls(self) -> dict[str, Any]:
        return {
            "asked": self.asked,
            "options": list(zip(self.keys, self.names, strict=True)),
            "keys_of": self.keys,
            "table_url": self.urls.table(self.schema, self.table),
            "operators": list(OPERATORS),
            "sizes": SIZES,
            "filters": [
                {
                    "text": self._filter_text(each),
                    "remove": self._url(filters=tuple(f for f in self.asked.filters if f != each)),
                }
                for each in self.asked.filters
            ],
            "suggested": self._suggested(),
            "cite_url": self.urls.cite(self.schema, self.table),
            "place": [
                self.archive.database.schemas.index(self.schema),
                self.schema.tables.index(self.table),
            ],
            "cited_as": self.archive.pdi or self.archive.file,
            "focus_url": self.urls.focus(self.schema, self.table),
            "sql": self._sql(),
        }

    def _filter_text(self, each: Filter) -> str:
        words = text_of(f"op_{each.operator}")
        return f"{self.names[each.column][:40]} {words} {each.value[:60]}".strip()

    def _suggested(self) -> list[dict[str, str]]:
        if self.index is None:
            return []
        good = [
            number
            for number, column in enumerate(self.index.columns)
            if number not in self.asked.facets
            and (column.large == "binary" or _makes_facet(column.distinct, self.index.rows))
            and is_scalar(column.type)
        ]
        return [
            {"name": self.names[n], "url": self._url(facets=(*self.asked.facets, n))}
            for n in good[:_SUGGESTED]
        ]

    def _sql(self) -> str:
        if self.index is None:
            return ""
        columns = ", ".join(quote(self.index.columns[n].name) for n in self.asked.columns) or "*"
        return (
            f"SELECT {columns} FROM {quote(self.index.schema)}.{quote(self.index.name)} LIMIT 100"
        )

    def _url(self, **changes: Any) -> str:
        return self.asked.address(self.keys, **changes)

    def _sort_url(self, number: int) -> str:
        down = self.asked.sort == number and not self.asked.descending
        return self._url(sort=number, descending=down)

    def _sorted(self, number: int) -> str:
        if self.asked.sort != number:
            return "none"
        return "descending" if self.asked.descending else "ascending"


def column_keys(table: Table) -> dict[str, str]:
    """What stands for each column in an address, by the column's name."""
    return {column.name: slug(column.name, n) for n, column in enumerate(table.columns)}


def indexed_rows(
    archive: OpenArchive,
    schema: Schema,
    table: Table,
    index: IndexTable,
    shown: list[int],
    sql: str,
    parameters: list[Any],
    longest: int = 200,
) -> list[dict[str, Any]]:
    """Return rows of the index as cells; the SQL selects rowid and then ``select_sql``."""
    assert archive.session is not None
    urls = Urls(archive)
    rows = []
    for row in archive.session.rows(sql, parameters):
        number, values = row[0] + 1, iter(row[1:])
        cells = []
        for k in shown:
            value = next(values)
            if index.columns[k].large == "binary":
                size, media = next(values), next(values)
                href = urls.cell(schema, table, number, k + 1)
                cells.append(object_cell(size, media, href) if value else Cell("null"))
                continue
            cell = value_cell(value, longest)
            is_long = index.columns[k].large == "text" and (cell.cut or "\n" in cell.text)
            if is_long or (cell.cut and cell.kind in ("text", "binary", "nested")):
                cell.href = urls.cell(schema, table, number, k + 1)
            cells.append(cell)
        link_keys(archive, table, cells, shown)
        rows.append({"row": number, "url": urls.row(schema, table, number), "cells": cells})
    return rows


def read_rows(
    archive: OpenArchive,
    schema: Schema,
    table: Table,
    runs: list[tuple[int, int]],
    shown: list[int],
    most: int,
    look: bool = True,
) -> list[dict[str, Any]]:
    """Return runs of rows as cells, read from the archive itself; with ``look`` its objects too."""
    urls, shapes = Urls(archive), archive.shapes(schema, table)
    found: list[dict[str, Any]] = []
    for first, last in runs:
        last = min(last, first + most - len(found) - 1)
        for number, row in archive.source.rows(schema, table, first, last):
            cells = []
            for k in shown:
                cell = archived_cell(row[k], shapes[k], urls.cell(schema, table, number, k + 1))
                if look and cell.kind == "object":
                    cell = _proven(archive, schema, table, row[k][1:], shapes[k], cell)
                cells.append(cell)
            link_keys(archive, table, cells, shown)
            found.append({"row": number, "url": urls.row(schema, table, number), "cells": cells})
        if len(found) >= most:
            break
    return found


def _proven(
    archive: OpenArchive, schema: Schema, table: Table, reference: bytes, shape: Shape, cell: Cell
) -> Cell:
    """Read a stored value to its end, where its length and digest are checked; say what it is."""
    try:
        with archive.source.open_lob(schema, table, reference) as stream:
            head = stream.read(HEAD_BYTES)
            while (cell.size or 0) <= _READ_THROUGH and stream.read(1 << 20):
                pass
    except (MunimentError, OSError) as error:
        return Cell("text", str(error)[:400], href=cell.href)
    if isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT:
        shown = value_cell(head.decode("utf-8", "ignore"), 80)
        shown.href = cell.href
        return shown
    return object_cell(cell.size, recognise(head), cell.href)


def select_sql(index: IndexTable, shown: list[int], longest: int = 1000) -> str:
    """The columns of a page; of a large object, whether it is there, its size and its type."""
    wanted = []
    for k in shown:
        cell = f"c{k + 1}"
        if index.columns[k].large == "binary":
            there = f"{cell} IS NOT NULL OR {cell}_ref IS NOT NULL"
            wanted += [there, f"{cell}_size", f"{cell}_type"]
        elif index.columns[k].large == "text":
            wanted.append(f"left({cell}, {longest})")
        elif index.columns[k].type == "TIME WITH TIME ZONE":  # Arrow would leave out that it is UTC
            wanted.append(f"replace(CAST({cell} AS VARCHAR), '+00', 'Z')")
        else:
            wanted.append(cell)
    return ", ".join(wanted)


def link_keys(archive: OpenArchive, table: Table, cells: list[Cell], shown: list[int]) -> None:
    """Let the cells of simple foreign keys lead to the rows that they refer to."""
    for key in table.foreign_keys:
        if len(key.references) != 1:
            continue
        reference = key.references[0]
        for cell, number in zip(cells, shown, strict=True):
            if table.columns[number].name == reference.column and cell.value is not None:
                target = referenced(archive, key)
                if target is not None:
                    cell.href = Urls(archive).table(
                        *target, c=reference.referenced, op="eq", v=str(cell.value)
                    )


def referenced(archive: OpenArchive, key: ForeignKey) -> tuple[Schema, Table] | None:
    """The table that a foreign key refers to, if the archive has it."""
    for schema, table in archive.tables:
        if schema.name == key.referenced_schema and table.name == key.referenced_table:
            return schema, table
    return None


def key_facts(archive: OpenArchive, schema: Schema, table: Table) -> dict[str, Any]:
    """Keys, checks and triggers of a table."""
    urls = Urls(archive)
    key = table.primary_key
    return {
        "primary": {"name": key.name, "columns": list(key.columns)} if key else None,
        "unique": [{"name": k.name, "columns": list(k.columns)} for k in table.candidate_keys],
        "foreign": [
            {
                "name": k.name,
                "columns": [r.column for r in k.references],
                "table": f"{k.referenced_schema}.{k.referenced_table}",
                "url": urls.table(*target) if (target := referenced(archive, k)) else None,
            }
            for k in table.foreign_keys
        ],
        "checks": [{"name": c.name, "condition": c.condition} for c in table.check_constraints],
        "triggers": [
            {
                "name": t.name,
                "when": f"{t.action_time} {t.trigger_event}",
                "action": t.triggered_action,
                "description": t.description,
            }
            for t in table.triggers
        ],
        "original": _original(table),
    }


def _original(table: Table) -> list[str]:
    original = split_original(table.description)[1]
    return list(original.statements) if original else []


def place_of(archive: OpenArchive, index: IndexTable) -> str:
    """Where the rows of a table lie in the index, for SQL."""
    return f"{quote(index_catalog(archive.name))}.{index.place}"


def _index_of(archive: OpenArchive, schema: Schema, table: Table) -> IndexTable | None:
    about = archive.about
    return about.tables[archive.table_number(schema, table)] if about else None


def _makes_facet(distinct: int | None, rows: int) -> bool:
    return distinct is not None and 1 < distinct <= _FEW and distinct * 2 < rows


def _is_number(shape: Shape) -> bool:
    numbers = Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT
    return isinstance(shape, Leaf) and shape.type.kind in numbers
