"""Archived views in DuckDB's SQL, where sqlglot can translate them.

A view's SQL comes with the archive, so nobody vouches for it: it has to be one query, and it runs
only where files, network and settings are out of reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from muniment.query.names import unique_names
from muniment.sql.model import Database, View

if TYPE_CHECKING:
    from muniment.query.index import IndexTable

__all__ = ["translate", "translated_views"]

_LONGEST = 100_000  # characters of SQL; parsing takes time
# How products introduce themselves in an archive, and sqlglot's name for their SQL.
_DIALECTS = (
    ("postgres", "postgres"), ("mariadb", "mysql"), ("mysql", "mysql"), ("sqlite", "sqlite"),
    ("oracle", "oracle"), ("sql server", "tsql"), ("duckdb", "duckdb"), ("adaptive", "tsql"),
)  # fmt: skip


def translated_views(
    database: Database, tables: list[IndexTable]
) -> Iterator[tuple[int, str, tuple[str, ...], str, str]]:
    """Yield each view: number of its schema, name, columns, SQL, or why there is none."""
    product = (database.database_product or "").lower()
    dialect = next((name for words, name in _DIALECTS if words in product), "")
    for number, schema in enumerate(database.schemas):
        taken = [] if not tables else [t.name for t in schema.tables]
        names = unique_names((view.name for view in schema.views), taken=taken)
        for view, name in zip(schema.views, names, strict=True):
            columns = tuple(unique_names(column.name for column in view.columns))
            sql, reason = _translated(view, dialect)
            yield number, name, columns, sql, reason


def _translated(view: View, dialect: str) -> tuple[str, str]:
    reason = "the archive does not say how it is made"
    for query, spoken in ((view.query, ""), (view.query_original, dialect)):
        if query and query.strip():
            try:
                return translate(query, spoken), ""
            except ValueError as error:
                reason = str(error)
    return "", reason


def translate(query: str, dialect: str) -> str:
    """Return a query of another product as DuckDB's SQL; raise ValueError with the reason."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ErrorLevel, SqlglotError

    if len(query) > _LONGEST:
        raise ValueError(f"its SQL is longer than {_LONGEST} characters")
    try:
        parsed: list[Any] = [s for s in sqlglot.parse(query, dialect=dialect or None) if s]
        if len(parsed) != 1:
            raise ValueError("its SQL is not one query")
        statement = parsed[0]
        if isinstance(statement, exp.Create) and isinstance(statement.expression, exp.Query):
            statement = statement.expression
        if not isinstance(statement, exp.Query):
            raise ValueError("its SQL is not a query")
        return str(statement.sql("duckdb", unsupported_level=ErrorLevel.IGNORE))
    except SqlglotError as error:
        message = str(error).partition("\n")[0]
        raise ValueError(f"its SQL cannot be translated: {message[:200]}") from error
    except RecursionError:
        raise ValueError("its SQL is nested too deeply") from None
