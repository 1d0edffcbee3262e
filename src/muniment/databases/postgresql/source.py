"""PostgreSQL as a source: one exported snapshot, COPY text, ranges of pages as parts.

The first connection holds the snapshot and the locks that keep tables from being dropped or
rewritten. Rows are read on further connections that see the same snapshot, also in other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from io import BufferedReader
from typing import Any, BinaryIO

from muniment.databases import redact
from muniment.databases.postgresql.connection import (
    Connection,
    Refused,
    connect,
    connection_options,
    copy_out,
    execute,
    quote,
    quote_text,
    rows,
    translated,
)
from muniment.databases.postgresql.definitions import Relation, read_database
from muniment.databases.postgresql.misfits import find_misfits
from muniment.databases.postgresql.reading import CHUNK, LargeValue, Part, Reading
from muniment.errors import DatabaseError, TableGone, Unfit
from muniment.kernels import fetching_kernel
from muniment.sql.batch import Batch
from muniment.sql.model import Database, Schema, Table
from muniment.sql.selection import Selection

__all__ = ["PostgresqlOpener", "PostgresqlSource", "open_source", "state_token"]

_PAGE = 8192
_PART_PAGES = 1024
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_NO_SUCH_TABLE = "42P01"
_NO_SUCH_RELATION = "could not open relation with OID"  # with the state of an internal error
_RANGES_SINCE = 140000  # earlier versions read the whole table for every range


@contextmanager
def open_source(
    url: str,
    selection: Selection | None = None,
    inline_limit: int = 4000,
    statement_timeout: float = 0,
) -> Iterator[PostgresqlSource]:
    """Open a database for reading, as it is at this moment; others may go on changing it.

    Text of more characters, and binary values of more bytes, than ``inline_limit`` come as REF.
    ``statement_timeout`` is in seconds; 0 means none but the server's own.
    """
    options = connection_options(url)
    settings = {"search_path": ""}
    if statement_timeout:
        settings["statement_timeout"] = f"{statement_timeout:.3f}s"
    chosen = selection or Selection()
    path = _user_path(options)
    first = connect(options, settings)
    try:
        _lock(first, chosen)
        (row,) = rows(first, _EXPORT)
        checked = row["encoding"] != "SQL_ASCII"
        token = state_token(first)
        state = _State(
            url, options, settings, row["name"], chosen, inline_limit, path, checked, token
        )
        with PostgresqlSource(state, first) as source:
            yield source
    finally:
        first.close()


_EXPORT = "SELECT pg_export_snapshot() AS name, current_setting('server_encoding') AS encoding"


def _user_path(options: dict[str, Any]) -> str:
    """The search path that a user would have, as SET takes it."""
    connection = connect(options)
    try:
        (row,) = rows(connection, "SELECT current_setting('search_path') AS path")
    finally:
        connection.close()
    return row["path"] or "''"


# The transactions that a snapshot sees are a complete account of what it sees. A standby does not
# list all that run, but replays one log; unlogged tables are emptied when a server restarts after a
# crash; and the rows of foreign tables are elsewhere.
_TOKEN = """
SELECT concat_ws(' ', d.oid, d.datname,
    current_setting('port'), pg_current_snapshot(),
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END,
    CASE WHEN EXISTS (SELECT 1 FROM pg_class WHERE relpersistence = 'u')
        THEN pg_postmaster_start_time() END) AS token,
    EXISTS (SELECT 1 FROM pg_class WHERE relkind = 'f') AS elsewhere
FROM pg_database d WHERE d.datname = current_database()
"""


def state_token(connection: Connection) -> str | None:
    """Return a text for the state that a snapshot sees; None if it does not say all."""
    (row,) = rows(connection, _TOKEN)
    return None if row["elsewhere"] else str(row["token"])


_TO_LOCK = """
SELECT n.nspname AS schema, c.relname AS name
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND NOT c.relispartition
    AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY c.oid
"""


def _lock(connection: Connection, selection: Selection) -> None:
    """Begin the transaction: first the locks, then the snapshot.

    The other way round, a table emptied by TRUNCATE in between would seem to have no rows.
    """
    tables = rows(connection, _TO_LOCK)
    execute(connection, _SNAPSHOT)
    for row in tables:
        if selection.takes(row["schema"], row["name"]):
            name = f"{row['schema']}.{row['name']}"
            place = quote(row["schema"], row["name"])
            try:
                execute(connection, f"LOCK TABLE {place} IN ACCESS SHARE MODE", f"a lock on {name}")
            except Refused as error:
                if error.state != _NO_SUCH_TABLE:
                    raise
                raise TableGone(name) from error


@dataclass(frozen=True)
class _State:
    """What lets another process see the same; it holds the password, and travels by pipes only."""

    url: str
    options: dict[str, Any]
    settings: dict[str, str]
    snapshot: str
    selection: Selection
    inline_limit: int
    path: str
    checked: bool = True  # whether the server makes sure that text is valid
    token: str | None = None
    database: Database | None = None
    relations: dict[tuple[str, str], Relation] = field(default_factory=dict)
    parts: dict[tuple[str, str], tuple[Part, ...] | None] = field(default_factory=dict)


@dataclass(frozen=True)
class PostgresqlOpener:
    """Opens the same snapshot in another process, while the first one holds it."""

    state: _State

    def __call__(self) -> PostgresqlSource:
        return PostgresqlSource(self.state)


class PostgresqlSource:
    """The tables of a PostgreSQL database; make it with ``open_source``."""

    def __init__(self, state: _State, first: Connection | None = None) -> None:
        self._state = state
        self._first = first
        self._idle: list[Connection] = []
        self._opened: list[Connection] = []
        self.notes: list[str] = []
        if first is None:
            self._idle.append(self._open())

    def __enter__(self) -> PostgresqlSource:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._opened:
            connection.close()

    def describe(self) -> Database:
        """Return the definitions; arrays, intervals and numbers of objects cost a look at rows."""
        if self._state.database is None:
            assert self._first is not None
            self._state = replace(self._state, **self._describe(self._first))
        assert self._state.database is not None
        return self._state.database

    def _describe(self, connection: Connection) -> dict[str, Any]:
        selection = self._state.selection
        (row,) = rows(
            connection,
            "SELECT current_database() AS name, current_user AS user,"
            " current_setting('server_version') AS version",
        )
        try:
            database, relations = read_database(
                connection, row["name"], selection, self.notes, self._state.path
            )
        except Refused as error:
            if error.state == _NO_SUCH_TABLE or error.message.startswith(_NO_SUCH_RELATION):
                raise TableGone("a view or a sequence") from error
            raise
        database = replace(
            database,
            database_product=f"PostgreSQL {row['version'].split()[0]}",
            connection=redact(self._state.url),
            database_user=row["user"],
        )
        parts = {name: _parts(connection, relation) for name, relation in relations.items()}
        return {"database": database, "relations": relations, "parts": parts}

    def size(self) -> int:
        """Return roughly how many bytes the rows take on disk."""
        self.describe()
        pages = sum(
            (end or start) - start
            for parts in self._state.parts.values()
            for _, start, end in parts or ()
        )
        return (pages + 1) * _PAGE

    @property
    def most_threads(self) -> int | None:
        """Any number; few, if rows come one by one, which takes a third of a thread's time."""
        return None if fetching_kernel() else 2

    @property
    def suits_threads(self) -> bool:
        """Whether nearly all rows come as the archive has them."""
        pages = plain = 0
        for schema, table in self.describe().tables():
            parts = self._state.parts[schema.name, table.name] or ()
            count = sum((end or start) - start for _, start, end in parts)
            pages += count
            plain += count if self._reading(schema, table).plain else 0
        return 8 * plain >= 7 * pages

    def snapshot_token(self) -> str | None:
        """A text that is the same in a later run if nobody has written to the server since."""
        return self._state.token

    def parts(self, schema: Schema, table: Table) -> Iterator[Part | None]:
        """Yield ranges of pages; None for views, queries and ordered tables."""
        self.describe()
        found = self._state.parts[schema.name, table.name]
        yield from (None,) if found is None else found

    def batches(self, schema: Schema, table: Table, part: Part | None) -> Iterator[Batch]:
        """Yield the rows of a part, some at a time."""
        self.describe()
        reading = self._reading(schema, table)
        connection = self._idle.pop() if self._idle else self._open()
        try:
            if reading.relation.custom:
                execute(connection, f"SET LOCAL search_path = {self._state.path}")
            for chunk in copy_out(connection, reading.sql(part), f"to read {reading.where}"):
                yield reading.batch(chunk)
            if reading.relation.custom:
                execute(connection, "SET LOCAL search_path = ''")
        except GeneratorExit:
            connection.close()  # its transaction is spoilt by the cancelled COPY
            raise
        self._idle.append(connection)

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        """Open the value behind a REF cell: raw bytes, or text in UTF-8."""
        place, _, number = reference.decode().partition(":")
        reading = self._reading(schema, table)
        if not place.startswith("0("):
            home, row_id = place.split("(")
            sql = reading.value_sql(int(number), int(home), f"({row_id}")
        else:
            sql = f"SELECT lo_get({place[2:-1]}, {{start}}, {{length}}) AS value"
        return BufferedReader(LargeValue(partial(self._fetch, sql)))

    def _fetch(self, sql: str, start: int) -> bytes:
        connection = self._idle.pop() if self._idle else self._open()
        first = start if "lo_get(" in sql else start + 1
        question = sql.format(start=first, length=CHUNK).encode()
        with translated("a large value"):
            found = connection.cursor(binary=True).execute(question).fetchone()
        self._idle.append(connection)
        if found is None:
            raise DatabaseError("a large value has vanished while it was read")
        return bytes(found["value"] or b"")

    def _reading(self, schema: Schema, table: Table) -> Reading:
        state = self._state
        relation = state.relations[schema.name, table.name]
        return Reading(schema, table, relation, state.selection, state.inline_limit, state.checked)

    def misfits(self) -> list[Unfit]:
        """Return every column with values that its type in the archive cannot hold."""
        connection = self._open()
        return list(find_misfits(connection, self.describe(), self._state.relations))

    def opener(self) -> PostgresqlOpener:
        self.describe()
        return PostgresqlOpener(self._state)

    def _open(self) -> Connection:
        """Open a connection that sees the snapshot."""
        connection = connect(self._state.options, self._state.settings)
        try:
            execute(connection, _SNAPSHOT)
            name = quote_text(self._state.snapshot)
            execute(connection, f"SET TRANSACTION SNAPSHOT {name}", "to share the snapshot")
            if not self._state.checked:  # else the server would refuse bytes that are no text
                execute(connection, "SET client_encoding = 'SQL_ASCII'")
        except BaseException:
            connection.close()
            raise
        self._opened.append(connection)
        return connection


def _parts(connection: Connection, relation: Relation) -> tuple[Part, ...] | None:
    """Cut stored tables into ranges of pages that take about the same room, TOAST included."""
    if not relation.leaves or connection.info.server_version < _RANGES_SINCE:
        return None
    oids = [oid for _, oid in relation.leaves]
    found = rows(
        connection,
        "SELECT c.oid, pg_relation_size(c.oid) AS heap, CASE WHEN c.reltoastrelid <> 0"
        " THEN pg_relation_size(c.reltoastrelid) ELSE 0 END AS toast"
        " FROM pg_class c WHERE c.oid = ANY (%s)",
        oids,
    )
    sizes = {row["oid"]: (row["heap"] // _PAGE, row["toast"] // _PAGE) for row in found}
    parts: list[Part] = []
    for place, oid in relation.leaves:
        heap, toast = sizes[oid]
        step = max(1, _PART_PAGES * heap // (heap + toast)) if heap else 1
        starts = list(range(0, heap, step))
        parts += [(place, start, min(start + step, heap)) for start in starts]
    return tuple(parts)
