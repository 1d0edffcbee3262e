"""The page of a row: all columns with their descriptions, and links along keys both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from muniment.errors import NotFound
from muniment.sql.model import Array, ForeignKey, Schema, Shape, Struct, Table
from muniment.web.archive_pages import find_table, frame, open_archive, type_text
from muniment.web.cells import Cell
from muniment.web.page import Page
from muniment.web.references import reference_of
from muniment.web.site import OpenArchive
from muniment.web.table_page import (
    column_keys,
    indexed_rows,
    place_of,
    read_rows,
    referenced,
    select_sql,
)
from muniment.web.urls import Urls

if TYPE_CHECKING:
    from muniment.query.index import IndexTable

__all__ = ["row_number", "row_page", "unfold"]

_LONGEST = 4000  # characters of a value; longer ones have a page of their own
_PROBED = 10_000  # incoming references are counted up to this


def row_page(request: Request) -> Page:
    """One row."""
    archive = open_archive(request)
    schema, table = find_table(request, archive)
    number = row_number(request.path_params["row"], table)
    cells = _cells(archive, schema, table, number)
    urls, shapes = Urls(archive), archive.shapes(schema, table)
    part = f"{schema.name}.{table.name}, row {number}"
    home = archive.database.schemas.index(schema), schema.tables.index(table)
    fragment = f"row=(s{home[0]},t{home[1]},r{number})"
    reference = reference_of(archive, part, fragment, request.app.state.site.base)
    values = {c.name: cell.value for c, cell in zip(table.columns, cells, strict=True)}
    facts = {
        "schema": schema.name,
        "table": table.name,
        "row": number,
        "total_rows": table.rows,
        "columns": [
            {
                "name": column.name,
                "type": type_text(column),
                "description": column.description,
                "value": cell,
                "parts": unfold(cell.value, shape) if cell.kind == "nested" else None,
            }
            for column, cell, shape in zip(table.columns, cells, shapes, strict=True)
        ],
        "refers_to": [_outgoing(archive, key, values) for key in table.foreign_keys],
        "referred_by": _incoming(archive, schema, table, values),
        "citation": reference.plain(),
        "citations": reference.texts(),
        "identifier": reference.identifier,
        "url": urls.row(schema, table, number),
    }
    only_page = {
        "table_url": urls.table(schema, table),
        "cite_url": urls.cite(schema, table),
        "keys_of": list(column_keys(table).values()),
        "previous": urls.row(schema, table, number - 1) if number > 1 else None,
        "next": urls.row(schema, table, number + 1) if number < table.rows else None,
    }
    return Page("row.html", facts, {**frame(archive), **only_page}, references=[reference])


def row_number(text: str, table: Table) -> int:
    if not text.isdecimal() or len(text) > 18 or not 1 <= int(text) <= max(table.rows, 1):
        raise NotFound(f"{table.name[:80]} has no row {text[:40]}; it has {table.rows}")
    return int(text)


def _cells(archive: OpenArchive, schema: Schema, table: Table, number: int) -> list[Cell]:
    shown = list(range(len(table.columns)))
    if archive.about:
        index = archive.about.tables[archive.table_number(schema, table)]
        sql = (
            f"SELECT rowid, {select_sql(index, shown, _LONGEST + 1)}"
            f" FROM {place_of(archive, index)} WHERE rowid = ?"
        )
        rows = indexed_rows(archive, schema, table, index, shown, sql, [number - 1], _LONGEST)
    else:
        rows = read_rows(archive, schema, table, [(number, number)], shown, 1, look=False)
    if rows:
        found: list[Cell] = rows[0]["cells"]
        return found
    raise NotFound(f"{table.name[:80]} has no row {number}")


def unfold(value: Any, shape: Shape) -> Any:
    """A complex value as nested lists of (name, value) pairs, for people."""
    match shape:
        case Struct(parts, names) if isinstance(value, dict):
            titles = names or tuple(f"u{n}" for n in range(1, len(parts) + 1))
            got = list(value.values())
            return [
                {"name": name, "value": unfold(part, inner)}
                for name, part, inner in zip(titles, got, parts, strict=False)
            ]
        case Array(element) if isinstance(value, list):
            return [
                {"name": str(number), "value": unfold(part, element)}
                for number, part in enumerate(value, 1)
            ]
    return value


def _outgoing(archive: OpenArchive, key: ForeignKey, values: dict[str, Any]) -> dict[str, Any]:
    target = referenced(archive, key)
    fact: dict[str, Any] = {
        "key": key.name,
        "columns": [reference.column for reference in key.references],
        "table": f"{key.referenced_schema}.{key.referenced_table}",
        "url": None,
        "label": None,
    }
    wanted = [(r.referenced, values.get(r.column)) for r in key.references]
    if target is None or any(value is None for _, value in wanted):
        return fact
    fact["url"] = _filtered(archive, *target, wanted)
    row = _only_row(archive, *target, wanted)
    if row is not None:
        fact["url"] = Urls(archive).row(*target, row[0] + 1)
        fact["label"] = row[1]
    return fact


def _filtered(
    archive: OpenArchive, schema: Schema, table: Table, wanted: list[tuple[str, Any]]
) -> str:
    query = {
        "c": [name for name, _ in wanted],
        "op": ["eq"] * len(wanted),
        "v": [str(value) for _, value in wanted],
    }
    return Urls(archive).table(schema, table, **query)


def _condition(
    index: IndexTable, table: Table, wanted: list[tuple[str, Any]]
) -> tuple[str, list[str]] | None:
    names = [column.name for column in table.columns]
    conditions = []
    for name, _ in wanted:
        if name not in names:
            return None
        column = index.columns[names.index(name)]
        conditions.append(f"c{names.index(name) + 1} = CAST(? AS {column.type})")
    return " AND ".join(conditions), [str(value) for _, value in wanted]


def _only_row(
    archive: OpenArchive, schema: Schema, table: Table, wanted: list[tuple[str, Any]]
) -> tuple[int, str | None] | None:
    """The row that a key refers to, and the text that best says what it is."""
    if archive.about is None or archive.session is None:
        return None
    index = archive.about.tables[archive.table_number(schema, table)]
    condition = _condition(index, table, wanted)
    if condition is None:
        return None
    label = _label_column(index, table)
    sql = f"SELECT rowid, {label} FROM {place_of(archive, index)} WHERE {condition[0]} LIMIT 2"
    rows = archive.session.rows(sql, condition[1])
    if len(rows) != 1:
        return None
    text = rows[0][1]
    return rows[0][0], None if text is None else str(text)[:120]


def _label_column(index: IndexTable, table: Table) -> str:
    keys = {c for key in table.foreign_keys for r in key.references for c in (r.column,)}
    keys |= set(table.primary_key.columns) if table.primary_key else set()
    for number, (column, archived) in enumerate(zip(index.columns, table.columns, strict=True), 1):
        if column.type == "VARCHAR" and not column.large and archived.name not in keys:
            return f"c{number}"
    return "NULL"


def _incoming(
    archive: OpenArchive, schema: Schema, table: Table, values: dict[str, Any]
) -> list[dict[str, Any]]:
    """Which rows of other tables refer to this one, and how many."""
    found = []
    for home, other in archive.tables:
        for key in other.foreign_keys:
            if (key.referenced_schema, key.referenced_table) != (schema.name, table.name):
                continue
            wanted = [(r.column, values.get(r.referenced)) for r in key.references]
            if any(value is None for _, value in wanted):
                continue
            found.append(
                {
                    "table": f"{home.name}.{other.name}",
                    "columns": [name for name, _ in wanted],
                    "count": _count(archive, home, other, wanted),
                    "url": _filtered(archive, home, other, wanted),
                }
            )
    return found


def _count(
    archive: OpenArchive, schema: Schema, table: Table, wanted: list[tuple[str, Any]]
) -> int | None:
    if archive.about is None or archive.session is None:
        return None
    index = archive.about.tables[archive.table_number(schema, table)]
    condition = _condition(index, table, wanted)
    if condition is None:
        return None
    place = place_of(archive, index)
    inner = f"SELECT 1 FROM {place} WHERE {condition[0]} LIMIT {_PROBED}"
    return int(archive.session.rows(f"SELECT count(*) FROM ({inner})", condition[1])[0][0])
