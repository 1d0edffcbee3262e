"""Archived views in DuckDB's SQL, where they can be translated.

A view's SQL comes with the archive, so nobody vouches for it: it has to be one query, and it runs
only where files, network and settings are out of reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muniment.query.names import unique_names
from muniment.sql.model import Database
from muniment.sql.translate import NotTranslatable, Place, translated_view

__all__ = ["translated_views"]


def translated_views(
    database: Database, schemas: Sequence[str], tables: Sequence[Sequence[str]]
) -> Iterator[tuple[str, str, tuple[str, ...], str, str]]:
    """Yield each view: schema, name and columns in SQL, its query, or why there is none.

    ``schemas`` and ``tables`` are the names that SQL has for those of the database, in order.
    """
    views = [
        unique_names((view.name for view in schema.views), taken=taken)
        for schema, taken in zip(database.schemas, tables, strict=True)
    ]
    places: dict[Place, Place] = {}
    for number, schema in enumerate(database.schemas):
        old = [*(v.name for v in schema.views), *(t.name for t in schema.tables)]
        for name, new in zip(old, (*views[number], *tables[number]), strict=True):
            places[schema.name, name] = schemas[number], new
    for number, schema in enumerate(database.schemas):
        for view, name in zip(schema.views, views[number], strict=True):
            columns = tuple(unique_names(column.name for column in view.columns))
            sql = reason = ""
            try:
                sql = translated_view(
                    database, schema, view, "duckdb", lambda s, t: places.get((s, t), (s, t))
                )
            except NotTranslatable as error:
                reason = str(error)
            yield schemas[number], name, columns, sql, reason
