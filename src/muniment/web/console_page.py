"""The SQL console: queries of strangers, in processes of their own, within limits."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from muniment.databases.duckdb.types import quote
from muniment.errors import QueryError, UsageError
from muniment.query.values import json_value, values_of
from muniment.web.archive_pages import frame, need_index, open_archive
from muniment.web.cells import Cell, object_cell, value_cell
from muniment.web.page import Page, text_of, wants_json
from muniment.web.site import OpenArchive
from muniment.web.urls import Urls

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["console_page", "download_result"]

SECONDS = 15.0
_SHOWN, _DOWNLOADED = 1000, 200_000
_LONGEST = 20_000  # characters of a query


def console_page(request: Request) -> Page:
    """A query and its answer."""
    archive = open_archive(request)
    sql = request.query_params.get("sql", "").strip()
    facts: dict[str, Any] = {"sql": sql, "columns": [], "rows": [], "more": False, "error": None}
    if sql:
        try:
            answer = _ask(archive, sql, _SHOWN)
        except QueryError as error:
            facts["error"] = str(error)
        else:
            facts["columns"] = [
                {"name": f.name, "type": str(f.type), "number": _is_number(f.type)}
                for f in answer.table.schema
            ]
            facts["more"] = answer.more
            columns = [values_of(column.combine_chunks()) for column in answer.table.columns]
            if wants_json(request):
                facts["rows"] = [list(map(json_value, row)) for row in zip(*columns, strict=True)]
            else:
                facts["rows"] = [
                    [_cell(archive, value) for value in row] for row in zip(*columns, strict=True)
                ]
    only_page = {
        "examples": _examples(archive), "seconds": SECONDS, "limit": _SHOWN,
        "tables": _names(archive),
    }  # fmt: skip
    status = 400 if facts["error"] else 200
    if archive.isolated is not None:
        archive.isolated.warm()
    return Page("console.html", facts, {**frame(archive), **only_page}, status)


def download_result(request: Request) -> Response:
    """The answer to a query as a file."""
    from muniment.query.formats import write_csv, write_json_lines, write_parquet

    archive = open_archive(request)
    sql = request.query_params.get("sql", "").strip()
    form = request.query_params.get("as", "csv")
    writers = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson",
               "parquet": "application/vnd.apache.parquet"}  # fmt: skip
    if form not in writers or not sql:
        raise UsageError("ask for a query (sql) as csv, jsonl or parquet")
    answer = _ask(archive, sql, _DOWNLOADED)
    table, stream = answer.table, io.BytesIO()
    batches = _batches(table)
    if form == "csv":
        write_csv(table.schema, batches, stream, exact="exact" in request.query_params)
    elif form == "jsonl":
        write_json_lines(batches, stream)
    else:
        write_parquet(table.schema, batches, stream)
    headers = {"Content-Disposition": f'attachment; filename="result.{form}"'}
    if answer.more:
        headers["X-Muniment-More"] = f"only the first {_DOWNLOADED} rows"
    return Response(stream.getvalue(), 200, headers, media_type=writers[form])


def _is_number(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _cell(archive: OpenArchive, value: Any) -> Cell:
    """A value of an answer; large objects lead to their pages."""
    if not isinstance(value, dict) or set(value) != {"size", "type", "key"}:
        return value_cell(value)
    *name, table, column, row = str(value["key"]).split("/")
    numbers = [int(part) for part in (table, column, row) if part.isdecimal() and len(part) < 19]
    if "/".join(name) != archive.name or len(numbers) != 3 or numbers[0] >= len(archive.tables):
        return value_cell(value)
    home = archive.tables[numbers[0]]
    if not 1 <= numbers[1] <= len(home[1].columns):
        return value_cell(value)
    href = Urls(archive).cell(*home, numbers[2], numbers[1])
    size = value["size"] if isinstance(value["size"], int) else None
    return object_cell(size, str(value["type"]), href)


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    return list(table.combine_chunks().to_batches())


def _ask(archive: OpenArchive, sql: str, rows: int) -> Any:
    from muniment.query.session import Limits

    need_index(archive)
    if len(sql) > _LONGEST:
        raise QueryError(f"the query is longer than {_LONGEST} characters")
    assert archive.isolated is not None
    return archive.isolated.ask(sql, Limits(SECONDS, rows, memory_mb=300, threads=1))


def _examples(archive: OpenArchive) -> list[dict[str, str]]:
    """Queries that work on this very archive."""
    about = archive.about
    if about is None or not about.tables:
        return []
    table = max(about.tables, key=lambda t: t.rows)
    place = f"{quote(table.schema)}.{quote(table.name)}"
    examples = [(text_of("example_rows"), f"SELECT * FROM {place} LIMIT 20")]
    counted = [c for c in table.columns if c.distinct and 1 < c.distinct <= 60]
    if counted:
        name = quote(counted[0].name)
        examples.append(
            (
                text_of("example_count"),
                f"SELECT {name}, count(*) AS n\nFROM {place}\nGROUP BY {name}\nORDER BY n DESC",
            )
        )
    for home, archived in archive.tables:
        for key in archived.foreign_keys:
            if len(key.references) == 1 and home.name == key.referenced_schema:
                pair = key.references[0]
                examples.append(
                    (
                        text_of("example_join"),
                        "SELECT b.*, count(*) AS n"
                        f"\nFROM {quote(home.name)}.{quote(archived.name)} a"
                        f"\nJOIN {quote(key.referenced_schema)}.{quote(key.referenced_table)} b"
                        f" ON b.{quote(pair.referenced)} = a.{quote(pair.column)}"
                        "\nGROUP BY ALL\nORDER BY n DESC\nLIMIT 20",
                    )
                )
                return [{"title": title, "sql": sql} for title, sql in examples]
    return [{"title": title, "sql": sql} for title, sql in examples]


def _names(archive: OpenArchive) -> list[dict[str, Any]]:
    about = archive.about
    if about is None:
        return []
    return [
        {
            "name": f"{quote(t.schema)}.{quote(t.name)}",
            "columns": ", ".join(column.name[:60] for column in t.columns[:40]),
        }
        for t in about.tables[:300]
    ]
