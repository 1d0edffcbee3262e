"""Search across all tables of an archive."""

from __future__ import annotations

import time
from typing import Any

from starlette.requests import Request

from muniment.errors import QueryError
from muniment.web.archive_pages import frame, need_index, open_archive
from muniment.web.filters import search_sql
from muniment.web.page import Page
from muniment.web.site import OpenArchive
from muniment.web.table_page import indexed_rows, place_of, select_sql
from muniment.web.urls import Urls

__all__ = ["search_page"]

_PER_TABLE = 5
_SECONDS = 8.0
_COLUMNS = 8


def search_page(request: Request) -> Page:
    """Rows of all tables that hold the words."""
    archive = open_archive(request)
    words = request.query_params.get("q", "").strip()[:200]
    facts: dict[str, Any] = {"q": words, "tables": [], "not_searched": []}
    if words:
        need_index(archive)
        _search(archive, words, facts)
    return Page("search.html", facts, frame(archive))


def _search(archive: OpenArchive, words: str, facts: dict[str, Any]) -> None:
    assert archive.about is not None
    urls = Urls(archive)
    started = time.monotonic()
    for number, (schema, table) in enumerate(archive.tables):
        name = f"{schema.name}.{table.name}"
        if time.monotonic() - started > _SECONDS:
            facts["not_searched"].append(name)
            continue
        index = archive.about.tables[number]
        condition, parameters = search_sql(index, words)
        shown = list(range(min(len(index.columns), _COLUMNS)))
        sql = (
            f"SELECT rowid, {select_sql(index, shown)} FROM {place_of(archive, index)}"
            f" WHERE {condition} LIMIT {_PER_TABLE + 1}"
        )
        if condition == "false" or not shown:
            continue
        try:
            rows = indexed_rows(archive, schema, table, index, shown, sql, parameters, 80)
        except QueryError:
            facts["not_searched"].append(name)
            continue
        if rows:
            facts["tables"].append(
                {
                    "table": name,
                    "url": urls.table(schema, table, q=words),
                    "columns": [table.columns[k].name for k in shown],
                    "rows": rows[:_PER_TABLE],
                    "more": len(rows) > _PER_TABLE,
                }
            )
