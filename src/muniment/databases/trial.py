"""SQL that people give (conditions, orders, queries), tried before any row is read.

The database explains it: that finds what is misspelt, in every table at once, and costs nothing.
What is wrong then is the request, and who made it is told what could be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from muniment.errors import UsageError
from muniment.sql.chosen import meant
from muniment.sql.names import quoted
from muniment.sql.selection import Selection

__all__ = ["refuse_wrong_sql"]

_Name = tuple[str, str]  # of a table or view: its schema and its own

_NO_COLUMN = re.compile(
    r"no such column: (?:.*\.)?\"?(.+?)\"?(?: - should .*)?$|Referenced column \"(.+?)\" not found"
)
_AS_TEXT = re.compile(r'no such column: ("(?:[^"]|"")*") - should this be a string literal')
_NO_TABLE = re.compile(r"no such table: (.+)|Table with name (.+?) does not exist")


class _Trial(Protocol):
    """A database that is asked what it thinks of SQL."""

    def tables(self) -> list[_Name]: ...
    def views(self) -> list[_Name]: ...
    def columns(self, name: _Name) -> list[str]: ...
    def refusal(self, sql: str) -> str | None: ...


def refuse_wrong_sql(product: str, path: Path, selection: Selection) -> None:
    """Raise UsageError for a condition, an order or a query that the database cannot run."""
    if not (selection.where or selection.order or selection.queries) or product not in _TRIALS:
        return
    selection.refuse_several()
    with _TRIALS[product](path) as trial:
        for name in trial.tables():
            if selection.takes(*name):
                _try_table(product, trial, name, selection)
        for name in trial.views():
            if selection.takes_view(*name):
                _try_table(product, trial, name, selection)
        for query, sql in selection.queries.items():
            text = f"SELECT * FROM (\n{sql.rstrip().rstrip(';')}\n) AS {quoted(query)}"
            if said := trial.refusal(text):
                hint = _hint_for_query(trial, said)
                raise UsageError(f"--query {query}: {product} refuses the query: {said}; {hint}")


def _try_table(product: str, trial: _Trial, name: _Name, selection: Selection) -> None:
    table = ".".join(map(quoted, name))
    for option, what, given, clause in (
        ("--where", "condition", selection.where_of(*name), "WHERE ({})"),
        ("--order", "order", selection.order_of(*name), "ORDER BY {}"),
    ):
        if given and (said := trial.refusal(f"SELECT * FROM {table} {clause.format(given)}")):
            columns = trial.columns(name)
            found = _NO_COLUMN.search(said)
            hint = f"its columns are {', '.join(columns)}"
            if found:
                hint = meant(found[1] or found[2], columns)
            full = ".".join(name)
            sentence = f"{product} refuses the {what} {given!r}: {said}; {hint}"
            raise UsageError(f"{option} {full}: {sentence}")


def _hint_for_query(trial: _Trial, said: str) -> str:
    tables = [*trial.tables(), *trial.views()]
    if found := _NO_TABLE.search(said):
        return meant(found[1] or found[2], [".".join(name) for name in tables])
    if found := _NO_COLUMN.search(said):
        columns = dict.fromkeys(column for name in tables for column in trial.columns(name))
        hint = meant(found[1] or found[2], list(columns))
        if hint.startswith("did"):
            return hint
    return "correct it and run the command again"


class _SqliteTrial:
    def __init__(self, connection: Any) -> None:
        self._db = connection

    def tables(self) -> list[_Name]:
        # Of a virtual table whose module is missing nothing is known, and nothing is archived.
        return [name for name in self._named("table", "virtual") if self.columns(name)]

    def views(self) -> list[_Name]:
        return self._named("view")

    def _named(self, *kinds: str) -> list[_Name]:
        found = self._db.execute("PRAGMA main.table_list").fetchall()
        return [
            (schema, name)
            for schema, name, kind, *_ in found
            if schema == "main" and kind in kinds and not name.startswith("sqlite_")
        ]

    def columns(self, name: _Name) -> list[str]:
        import apsw

        with suppress(apsw.SQLError):  # of a view that is broken
            found = self._db.execute(f"PRAGMA main.table_info({quoted(name[1])})").fetchall()
            return [row[1] for row in found]
        return []

    def refusal(self, sql: str) -> str | None:
        # SQLite takes a misspelt "name" for a text; here it is not to, unless a view says so.
        said = self._said(sql, texts=0)
        named = _AS_TEXT.search(said or "")
        return self._said(sql, texts=1) if named and named[1] not in sql else said

    def _said(self, sql: str, *, texts: int) -> str | None:
        import apsw

        try:
            self._db.config(apsw.SQLITE_DBCONFIG_DQS_DML, texts)
            # It is not read to its end: of several statements only the first is explained.
            self._db.execute(f"EXPLAIN {sql}").close(True)
        except (apsw.SQLError, apsw.BindingsError) as error:
            return str(error)
        return None


@contextmanager
def _sqlite(path: Path) -> Iterator[_Trial]:
    import apsw

    from muniment.databases.sqlite import connect_sqlite, translated

    with closing(connect_sqlite(path)) as connection:
        try:
            yield _SqliteTrial(connection)
        except apsw.Error as error:
            raise translated(error, path) from error


class _DuckdbTrial:
    def __init__(self, connection: Any) -> None:
        self._db = connection

    def tables(self) -> list[_Name]:
        return self._named("table")

    def views(self) -> list[_Name]:
        return self._named("view")

    def _named(self, kind: str) -> list[_Name]:
        home = "database_name = current_database() AND NOT internal"
        sql = f"SELECT schema_name, {kind}_name FROM duckdb_{kind}s() WHERE {home}"
        return [(schema, name) for schema, name in self._db.execute(sql).fetchall()]

    def columns(self, name: _Name) -> list[str]:
        sql = "SELECT column_name FROM duckdb_columns() WHERE database_name = current_database()"
        sql += " AND schema_name = ? AND table_name = ? ORDER BY column_index"
        return [column for (column,) in self._db.execute(sql, list(name)).fetchall()]

    def refusal(self, sql: str) -> str | None:
        import duckdb

        from muniment.databases.duckdb.connection import first_line

        try:
            statement, *more = self._db.extract_statements(f"EXPLAIN {sql}")
            if more:
                return "it is more than one statement"
            self._db.execute(statement).fetchall()
        except (duckdb.ProgrammingError, duckdb.DataError) as error:
            return first_line(error).rstrip("!")
        return None


@contextmanager
def _duckdb(path: Path) -> Iterator[_Trial]:
    from muniment.databases.duckdb.connection import connect, translated

    with closing(connect(path, read_only=True)) as connection, translated("to explain a query"):
        yield _DuckdbTrial(connection)


_TRIALS: dict[str, Callable[[Path], AbstractContextManager[_Trial]]] = {
    "SQLite": _sqlite,
    "DuckDB": _duckdb,
}
