"""SQL over archives: their tables and views by their own names, and nothing else within reach.

Each archive is a catalog of the name it was given; its index is attached beside it, read-only. Then
files, network, extensions and settings are locked away for good, before any SQL from outside runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from muniment.databases.duckdb.connection import Connection, first_line
from muniment.databases.duckdb.types import quote, quote_text
from muniment.errors import QueryError, QueryTimeout, UsageError
from muniment.query.advice import advised, explained
from muniment.query.cache import cache_folder, private_folder
from muniment.query.content import Contents
from muniment.query.index import About, IndexColumn, IndexTable, Watch, build, quiet, read_about
from muniment.query.names import index_catalog, unique_names
from muniment.query.objects import TEXT_LIMIT
from muniment.query.permitted import forbidden_name, refuse_others
from muniment.query.values import values_of
from muniment.siard.lobs.folders import Root

__all__ = ["Archives", "Limits", "Result", "attach", "open_archives"]

_OWN = ("memory", "system", "temp")  # catalogs that DuckDB has anyway


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a query may take."""

    seconds: float | None = 60.0
    rows: int | None = None
    memory_mb: int = 400
    threads: int = 2


@dataclass(frozen=True)
class Result:
    """The answer to a query: its columns at once, its rows as they are read."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    @property
    def columns(self) -> list[str]:
        """The names of the columns; two may have the same name."""
        return list(self.schema.names)


@contextmanager
def open_archives(
    archives: Mapping[str, Path],
    limits: Limits | None = None,
    progress: Watch | None = None,
    whole: bool = False,
    roots: Sequence[Root] = (),
) -> Iterator[Archives]:
    """Open archives by the names that SQL is to know them by, building their indexes if needed.

    With ``whole``, texts longer than the index keeps are read from the archive. Large objects may
    also lie beneath ``roots``.

    >>> with open_archives({"trees": Path("trees.siard")}) as db:  # doctest: +SKIP
    ...     result = db.execute("SELECT count(*) FROM trees.main.tree")
    """
    if not archives:
        raise UsageError("there is no archive to query")
    indexes = {n: build(p, progress or quiet, roots=roots) for n, p in archives.items()}
    with attach(archives, indexes, limits, whole, roots) as session:
        yield session


@contextmanager
def attach(
    archives: Mapping[str, Path],
    indexes: Mapping[str, Path],
    limits: Limits | None = None,
    whole: bool = False,
    roots: Sequence[Root] = (),
) -> Iterator[Archives]:
    """Open archives whose indexes are built already."""
    limits = limits or Limits()
    with ExitStack() as stack:
        connection = _connect(limits)
        stack.callback(connection.close)
        session = Archives(connection, limits, whole, roots)
        stack.enter_context(session.functions())
        for name, index in indexes.items():
            session.attach(name, archives[name], index)
        stack.enter_context(session.locked())
        yield session


def _connect(limits: Limits) -> Connection:
    spill = private_folder(cache_folder() / "spill")
    return duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
            "temp_directory": str(spill),
            "max_temp_directory_size": "4GB",
            "memory_limit": f"{limits.memory_mb}MB",
            "threads": str(limits.threads),
        },
    )


class Archives:
    """Open archives; make it with ``open_archives``."""

    def __init__(
        self,
        connection: Connection,
        limits: Limits,
        whole: bool = False,
        roots: Sequence[Root] = (),
    ) -> None:
        self._connection, self._limits, self._whole = connection, limits, whole
        self._contents = Contents(roots)
        self.about: dict[str, About] = {}
        self.notes: list[str] = []
        self._reader: Any = None
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")

    def attach(self, name: str, path: Path, index: Path) -> None:
        """Make the tables of an archive known under a name."""
        if name.casefold() in (*_OWN, *(n.casefold() for n in self.about)) or not name:
            raise UsageError(f"an archive cannot be called {name!r} here; choose another name")
        try:
            self._connection.execute(
                f"ATTACH {quote_text(str(index))} AS {quote(index_catalog(name))} (READ_ONLY)"
            )
        except duckdb.Error as error:
            raise QueryError(
                f"the index {index} cannot be read ({first_line(error)}); remove it, and it will "
                "be built again"
            ) from error
        about = self.about[name] = read_about(self._connection, quote(index_catalog(name)))
        self._contents.add(name, path, about)
        self._connection.execute(f"ATTACH ':memory:' AS {quote(name)}")
        for schema in about.schemas:
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(name)}.{quote(schema)}")
        for number, table in enumerate(about.tables):
            self._connection.execute(_view_sql(name, table, number, self._whole))
        self.notes += about.notes

    @contextmanager
    def functions(self) -> Iterator[None]:
        """Give SQL the functions that read large objects."""
        with self._contents.functions(self._connection):
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock everything away that is not an archive; then make the archived views."""
        self._connection.execute("SET enable_external_access = false")
        for name, about in self.about.items():
            self._make_views(name, about)
        self._connection.execute(f"SET search_path = {quote_text(self._search_path())}")
        self._connection.execute("SET lock_configuration = true")
        try:
            yield
        finally:
            self._end_query()

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Result:
        """Run one query that somebody wrote; its rows come in batches, within the limits.

        One at a time: the next query ends the one before.
        """
        refuse_others(self._connection, sql)
        self._end_query()
        clock = _Clock(
            self._connection,
            self._limits.seconds,
            lambda error: advised(error, sql, self.about, self.notes),
        )
        with clock.errors():
            relation = clock.cursor.sql(sql, params=list(parameters))
            self._reader = reader = relation.to_arrow_reader(10_000)
        return Result(reader.schema, _limited(clock, reader, self._limits.rows))

    def ask(self, sql: str, parameters: Sequence[Any] = ()) -> Result:
        """Run a query that this program made, beside others; its rows come in batches."""
        clock = _Clock(self._connection.cursor(), self._limits.seconds)
        with clock.errors():
            reader = clock.cursor.sql(sql, params=list(parameters)).to_arrow_reader(10_000)
        return Result(reader.schema, _limited(clock, reader, self._limits.rows))

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a small query that this program made."""
        clock = _Clock(self._connection.cursor(), self._limits.seconds)
        with clock.errors():
            # As Arrow: DuckDB's own way to Python needs a list of time zones for instants.
            table = clock.cursor.sql(sql, params=list(parameters)).to_arrow_table()
        columns = [values_of(column.combine_chunks()) for column in table.columns]
        return list(zip(*columns, strict=True))

    def open_content(self, key: str) -> Any:
        """Open the large object behind a key, as a stream of bytes."""
        return self._contents.open(self._connection.cursor(), key)

    def _end_query(self) -> None:
        """Let go of a result that was not read to its end."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _make_views(self, catalog: str, about: About) -> None:
        """Make the views that can be made; views of views need several rounds."""
        waiting = [view for view in about.views if view.sql]
        reasons: dict[Any, str] = {view: view.reason for view in about.views if not view.sql}
        while waiting:
            left = []
            for view in waiting:
                others = (s for s in about.schemas if s != view.schema)
                path = (f"{quote(catalog)}.{quote(s)}" for s in (view.schema, *others))
                self._connection.execute(f"SET search_path = {quote_text(','.join(path))}")
                place = f"{quote(catalog)}.{quote(view.schema)}.{quote(view.name)}"
                named = f" ({', '.join(map(quote, view.columns))})" if view.columns else ""
                if reason := self._refusal(place, named, view.sql):
                    reasons[view] = reason
                    left.append(view)
                else:
                    reasons.pop(view, None)
            if len(left) == len(waiting):
                break
            waiting = left
        for view, reason in reasons.items():
            self.notes.append(f"the view {view.schema}.{view.name} cannot be queried: {reason}")

    def _refusal(self, place: str, names: str, sql: str) -> str:
        if name := forbidden_name(self._connection, sql):
            return f"it uses {name}"
        reason = ""
        for head in dict.fromkeys((names, "")):
            try:
                self._connection.execute(f"CREATE VIEW {place}{head} AS {sql}")
                return ""
            except duckdb.Error as error:
                reason = reason or explained(error)
        return reason

    def _search_path(self) -> str:
        names = (
            f"{quote(name)}.{quote(schema)}"
            for name, about in self.about.items()
            for schema in about.schemas
        )
        return ",".join(names) or "memory"


def _view_sql(catalog: str, table: IndexTable, number: int, whole: bool) -> str:
    place = f"{quote(catalog)}.{quote(table.schema)}.{quote(table.name)}"
    columns = ", ".join(
        f"{_column_sql(catalog, number, position, column, whole)} AS {quote(column.name)}"
        for position, column in enumerate(table.columns, 1)
    )
    home = f"{quote(index_catalog(catalog))}.{table.place}"
    return f"CREATE VIEW {place} AS SELECT {columns or 'NULL AS nothing'} FROM {home}"


def _column_sql(catalog: str, number: int, position: int, column: IndexColumn, whole: bool) -> str:
    cell = f"c{position}"
    key = f"{quote_text(f'{catalog}/{number}/{position}/')} || (rowid + 1)"
    if column.large == "text" and whole:
        cut = f"{cell}_ref IS NOT NULL AND strlen({cell}) > {TEXT_LIMIT}"
        return f"CASE WHEN {cut} THEN muniment_content_text({key}) ELSE {cell} END"
    if column.large != "binary":
        return cell
    there = f"{cell} IS NOT NULL OR {cell}_ref IS NOT NULL"
    fields = f"{{'size': {cell}_size, 'type': {cell}_type, 'key': {key}}}"
    return f"CASE WHEN {there} THEN {fields} END"


class _Clock:
    """A cursor that is stopped when its time is over."""

    def __init__(
        self,
        cursor: Connection,
        seconds: float | None,
        explain: Callable[[Exception], str] = explained,
    ) -> None:
        self.cursor, self._seconds, self._over = cursor, seconds, False
        self._explain = explain
        self._timer: threading.Timer | None = None

    def _stop(self) -> None:
        self._over = True
        self.cursor.interrupt()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Run a part of the query against the clock; say in a sentence what went wrong."""
        if self._seconds is not None:
            self._timer = threading.Timer(self._seconds, self._stop)
            self._timer.daemon = True
            self._timer.start()
        try:
            yield
        except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
            if self._over:
                raise QueryTimeout(self._seconds or 0) from error
            if isinstance(error, duckdb.OutOfMemoryException):
                raise QueryError(
                    "the query needs more memory than it may have; ask for fewer rows or columns"
                ) from error
            raise QueryError(self._explain(error)) from error
        finally:
            if self._timer is not None:
                self._timer.cancel()


def _limited(clock: _Clock, reader: Any, rows: int | None) -> Iterator[pa.RecordBatch]:
    left = rows
    while left is None or left > 0:
        with clock.errors():
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        if batch.num_rows:
            yield batch


def sql_name(names: Sequence[str]) -> list[str]:
    """Names for archives on a command line, made from what their files are called."""
    return unique_names(names, taken=_OWN)
