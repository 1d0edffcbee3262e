"""PostgreSQL as a source: one exported snapshot, COPY text, ranges of pages as parts.

The first connection holds the snapshot and the locks that keep tables from being dropped or
rewritten. Rows are read on further connections that see the same snapshot, also in other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, TypeAlias

from muniment.databases import redact
from muniment.databases.postgresql.cells import CellReader
from muniment.databases.postgresql.connection import (
    Connection,
    connect,
    connection_options,
    copy_out,
    execute,
    quote,
    quote_text,
    rows,
)
from muniment.databases.postgresql.copytext import decode_rows
from muniment.databases.postgresql.definitions import Relation, read_database
from muniment.databases.postgresql.misfits import find_misfits
from muniment.databases.postgresql.types import Plain
from muniment.errors import DatabaseError, Unfit
from muniment.sql.batch import Batch
from muniment.sql.model import Database, Schema, Table
from muniment.sql.selection import Selection
from muniment.sql.types import Kind

__all__ = ["PostgresqlOpener", "PostgresqlSource", "open_source"]

_PAGE = 8192
_PART_PAGES = 1024
_CHUNK = 32 << 20  # of a large object; PostgreSQL unpacks the whole value for each
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TEXTS = ("text", "character varying")
# Cheaper to spell right by the server than to take rows apart here.
_SERVED = {
    "boolean": "{}::text",
    "timestamp without time zone": "replace({}::text, ' ', 'T')",
    "timestamp with time zone": "replace(({} AT TIME ZONE 'UTC')::text, ' ', 'T')",
    "money": "{}::numeric",
    "escaped": "encode(convert_to({}, 'SQL_ASCII'), 'escape')",
}
_RANGES_SINCE = 140000  # earlier versions read the whole table for every range

Part: TypeAlias = tuple[str, int, int | None]  # a stored table, its first page, the page after


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
        state = _State(url, options, settings, row["name"], chosen, inline_limit, path, checked)
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
            execute(connection, f"LOCK TABLE {place} IN ACCESS SHARE MODE", f"a lock on {name}")


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
        database, relations = read_database(
            connection, row["name"], selection, self.notes, self._state.path
        )
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

    def parts(self, schema: Schema, table: Table) -> Iterator[Part | None]:
        """Yield ranges of pages; None for views, queries and ordered tables."""
        self.describe()
        found = self._state.parts[schema.name, table.name]
        yield from (None,) if found is None else found

    def batches(self, schema: Schema, table: Table, part: Part | None) -> Iterator[Batch]:
        """Yield the rows of a part, some 16 KB at a time."""
        self.describe()
        reading = _Reading(self._state, schema, table)
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
        reading = _Reading(self._state, schema, table)
        if not place.startswith("0("):
            home, row_id = place.split("(")
            sql = reading.value_sql(int(number), int(home), f"({row_id}")
        else:
            sql = f"SELECT lo_get({place[2:-1]}, {{start}}, {{length}}) AS value"
        return BufferedReader(_Value(partial(self._fetch, sql)))

    def _fetch(self, sql: str, start: int) -> bytes:
        connection = self._idle.pop() if self._idle else self._open()
        first = start if "lo_get(" in sql else start + 1
        question = sql.format(start=first, length=_CHUNK).encode()
        cursor = connection.cursor(binary=True)
        found = cursor.execute(question).fetchone()
        self._idle.append(connection)
        if found is None:
            raise DatabaseError("a large value has vanished while it was read")
        return bytes(found["value"] or b"")

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


class _Reading:
    """How the rows of one table are read."""

    def __init__(self, state: _State, schema: Schema, table: Table) -> None:
        self.where = f"{schema.name}.{table.name}"
        self.relation = state.relations[schema.name, table.name]
        self._names = [column.name for column in table.columns]
        self._nodes = [fit.node for fit in self.relation.fits]
        self._order = state.selection.order_of(schema.name, table.name)
        self._condition = state.selection.where_of(schema.name, table.name)
        self._limit = state.inline_limit
        self._checked = state.checked
        stored = bool(self.relation.leaves)
        self._large = [
            k
            for k, node in enumerate(self._nodes)
            if isinstance(node, Plain)
            and (node.base == "large object" or (stored and node.archived.large))
        ]
        self._cells = CellReader(self.where, self._names, self._nodes, bool(self._large))

    def batch(self, chunk: bytes) -> Batch:
        """Return the batch of some COPY text."""
        if not self._checked:
            self._cells.check_text(chunk)
        return self._cells.batch(decode_rows(chunk))

    def sql(self, part: Part | None) -> str:
        """Return the COPY statement for a part."""
        listed = ", ".join(map(self._cell, range(len(self._names))))
        if self._large:
            listed = f"{self._mark()}, {listed}"
        source = self.relation.sql
        if part is not None:
            place, start, end = part
            tests = [f"ctid >= '({start},0)'", f"ctid < '({end},0)'"]
            tests += [f"({self._condition})"] if self._condition else []
            source = f"ONLY {place} WHERE {' AND '.join(tests)}"
        order = f" ORDER BY {self._order}" if self._order else ""
        return f"COPY (SELECT {listed} FROM {source}{order}) TO STDOUT"

    def value_sql(self, k: int, home: int, row_id: str) -> str:
        """Return a query for a piece of a large value; the place of the piece is to be put in."""
        place = next(place for place, oid in self.relation.leaves if oid == home)
        value = quote(self._names[k])
        if not self._is_binary(k):
            value = f"convert_to({self._text(k)}, 'UTF8')"
        value = f"substring({value} FROM {{start}} FOR {{length}})"
        braces = place.replace("{", "{{").replace("}", "}}")
        return f"SELECT {value} AS value FROM ONLY {braces} WHERE ctid = '{row_id}'"

    def _is_binary(self, k: int) -> bool:
        node = self._nodes[k]
        return isinstance(node, Plain) and node.archived.kind is Kind.BINARY

    def _text(self, k: int) -> str:
        """A value's text as COPY writes it; a cast would cut the padding of character(n)."""
        name = quote(self._names[k])
        node = self._nodes[k]
        return name if isinstance(node, Plain) and node.base in _TEXTS else f"concat({name})"

    def _too_long(self, k: int) -> str:
        name, limit = quote(self._names[k]), self._limit
        node = self._nodes[k]
        if isinstance(node, Plain) and node.base == "large object":
            return f"length(lo_get({name}, 0, {limit + 1})) > {limit}"
        if self._is_binary(k):
            return f"octet_length({name}) > {limit}"
        # In bytes it costs nothing; the characters of the few that are left have to be counted.
        text = self._text(k)
        return f"octet_length({text}) > {limit} AND char_length({text}) > {limit}"

    def _mark(self) -> str:
        """SQL for the place of a row and its large columns, empty if it has none."""
        tests = {k: self._too_long(k) for k in self._large}
        numbers = []
        for k, test in tests.items():
            node = self._nodes[k]
            number = f"'|{k}'"
            if isinstance(node, Plain) and node.base == "large object":
                number = f"concat('|{k}=0(', {quote(self._names[k])}, ')')"
            numbers.append(f"CASE WHEN {test} THEN {number} END")
        place = "concat(tableoid, ctid)" if self.relation.leaves else "'0'"
        some = " OR ".join(f"({test})" for test in tests.values())
        return f"CASE WHEN {some} THEN concat({place}, {', '.join(numbers)}) ELSE '' END"

    def _cell(self, k: int) -> str:
        name, node = quote(self._names[k]), self._nodes[k]
        value = name
        if isinstance(node, Plain):
            if node.base in _SERVED:
                value = _SERVED[node.base].format(name)
            elif node.base == "large object":
                value = f"CASE WHEN {name} <> 0 THEN lo_get({name}) END"
        return (
            f"CASE WHEN {self._too_long(k)} THEN NULL ELSE {value} END"
            if k in self._large
            else value
        )


class _Value(RawIOBase):
    """A large value as a stream, fetched piece by piece."""

    def __init__(self, fetch: Any) -> None:
        self._fetch = fetch
        self._start = 0
        self._held = b""
        self._at = 0
        self._last = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._at == len(self._held) and not self._last:
            self._held, self._at = self._fetch(self._start), 0
            self._start += len(self._held)
            self._last = len(self._held) < _CHUNK
        size = min(len(buffer), len(self._held) - self._at)
        buffer[:size] = self._held[self._at : self._at + size]
        self._at += size
        return size
