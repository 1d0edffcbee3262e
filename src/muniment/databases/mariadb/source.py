"""Reading a server: one text per row, joined by the server itself, in one consistent snapshot.

Everything is read in one transaction. Several processes read the same state if the user may stop
writers for the moment in which they all start theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, BinaryIO

from pymysql import err

from muniment.databases.mariadb.address import Address, parse_address
from muniment.databases.mariadb.catalogue import Catalogue, Relation, read_catalogue
from muniment.databases.mariadb.connection import Session, connect, quote, translated
from muniment.databases.mariadb.reading import NUMERIC, Part, Reading, ReadOptions, predefined
from muniment.databases.mariadb.types import NativeType
from muniment.databases.mariadb.values import raw_sql
from muniment.databases.mariadb.wire import TooLong
from muniment.errors import DatabaseError, NotFound, Unfit
from muniment.sql.batch import Batch
from muniment.sql.lines import LineCheck
from muniment.sql.model import Database, Schema, Table
from muniment.sql.selection import Selection
from muniment.sql.types import Kind

__all__ = ["MariadbSource", "open_source"]

_PART = 1 << 16  # rows; the parts of a table are the same whatever the number of workers
_LOB_PIECE = 1 << 22
_LOGGED = re.compile(r"(?:\A|^Log sequence number +)(\d+)$", re.MULTILINE)
_LOCK_PATIENCE = 5  # seconds; while a lock is waited for, others wait behind it


@contextmanager
def open_source(
    url: str,
    selection: Selection | None = None,
    *,
    inline_limit: int = 4000,
    statement_timeout: float | None = None,
) -> Iterator[MariadbSource]:
    """Open a server's database for reading."""
    address = parse_address(url)
    session = connect(address, timeout=statement_timeout)
    try:
        with translated(address.url):
            token = _start(session)
        source = MariadbSource(session, selection or Selection(), inline_limit, statement_timeout)
        source.token = token
        yield source
    finally:
        session.close()


def _start(session: Session) -> str | None:
    """Begin a transaction that sees one state of everything and can change nothing.

    Return a text for that state, if nobody wrote while it began.
    """
    session.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    before = _position(session)
    session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    return before if before == _position(session) else None


def _position(session: Session) -> str | None:
    """Where InnoDB's log ends: nothing was stored while that stays the same.

    None if the user may not know; MySQL wants the privilege PROCESS.
    """
    try:
        rows = session.rows(session.product.log_position)
    except err.MySQLError as error:
        if error.args[0] != 1227:
            raise
        return None
    found = _LOGGED.findall(str(rows[0][-1])) if rows else []
    if not found:
        return None
    where = session.rows("SELECT CONCAT_WS(' ', @@hostname, @@port, @@datadir)")[0][0]
    return f"{where} {found[-1]}"  # statements of others stand above it


@dataclass(frozen=True)
class _Opener:
    """Opens the same database in another process; without a catalogue it only encodes."""

    address: Address
    selection: Selection
    inline_limit: int
    timeout: float | None
    catalogue: Catalogue

    @contextmanager
    def __call__(self) -> Iterator[MariadbSource]:
        session = connect(self.address, timeout=self.timeout)
        try:
            with translated(self.address.url):
                _start(session)
            yield MariadbSource(
                session, self.selection, self.inline_limit, self.timeout, self.catalogue
            )
        finally:
            session.close()


class MariadbSource:
    """The databases of a server; make it with ``open_source``."""

    most_threads = 2  # rows are cut out of what the network brings one by one

    def __init__(
        self,
        session: Session,
        selection: Selection,
        inline_limit: int,
        timeout: float | None,
        catalogue: Catalogue | None = None,
    ) -> None:
        self._session, self._selection = session, selection
        self._limit, self._timeout = inline_limit, timeout
        self._catalogue = catalogue or read_catalogue(session, selection)
        self.notes = list(self._catalogue.notes)
        self._alone = False
        self.token: str | None = None
        packet = int(session.value("SELECT @@max_allowed_packet"))
        self._options = ReadOptions(selection, LineCheck(), inline_limit, packet)

    def describe(self) -> Database:
        """Return the definitions, with estimated row counts."""
        return self._catalogue.database

    def size(self) -> int:
        """The bytes that the server says its tables take."""
        taken = {(s.name, t.name) for s, t in self.describe().tables()}
        return 1 + sum(r.bytes for key, r in self._catalogue.relations.items() if key in taken)

    def snapshot_token(self) -> str | None:
        """A text that is the same in a later run if nobody has written to the server since."""
        return self.token if self._catalogue.one_state else None

    def opener(self) -> _Opener:
        """Return how another process opens the same database."""
        address = self._session.address
        return _Opener(address, self._selection, self._limit, self._timeout, self._catalogue)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Stop writers while the block runs, so that all who start in it see the same state.

        If that is not allowed, this connection alone reads; other processes only encode.
        """
        lock = connect(self._session.address)
        try:
            lock.run(f"SET SESSION lock_wait_timeout={_LOCK_PATIENCE}")
            try:
                lock.run("FLUSH TABLES WITH READ LOCK")
            except err.MySQLError as error:
                self._alone = True
                why = "lacks the privilege RELOAD" if error.args[0] == 1227 else "waited too long"
                self.notes.append(
                    f"one connection read everything: the user {why} to stop writers while more "
                    "connections start at the same state"
                )
                yield
                return
            with translated(self._session.address.url):
                self._session.run("COMMIT")
                self.token = _start(self._session)
            yield
        finally:
            lock.close()

    @property
    def suits_threads(self) -> bool:
        """Whether nearly all rows come as the archive has them."""
        rows = plain = 0
        for schema, table in self.describe().tables():
            reading = Reading(self._options, self._relation(schema, table), schema, table, None)
            rows += table.rows
            plain += table.rows if reading.plain else 0
        return 8 * plain >= 7 * rows

    def parts(self, schema: Schema, table: Table) -> Iterator[Part]:
        """Yield ranges of an integer key; None for tables that are read in one go."""
        relation = self._relation(schema, table)
        if not relation.range or self._alone:
            yield None
            return
        with translated(f"{schema.name}.{table.name}"):
            yield from self._ranges(relation)

    def _ranges(self, relation: Relation) -> Iterator[tuple[int, int]]:
        key = quote(relation.range)
        low, last = self._session.rows(f"SELECT MIN({key}), MAX({key}) FROM {relation.sql}")[0]
        dense = True
        while low is not None:
            following = self._boundary(relation, low, dense)
            if following is None:
                yield low, last
                return
            yield low, following - 1
            dense = dense and following - low < 2 * _PART
            low = following

    def _boundary(self, relation: Relation, low: int, dense: bool) -> int | None:
        """Where the part after the one that starts at ``low`` starts, if there is one."""
        key = quote(relation.range)
        found: int | None
        if dense:
            sql = f"SELECT MIN({key}) FROM {relation.sql} WHERE {key}>={low + _PART}"
        else:
            sql = (
                f"SELECT {key} FROM {relation.sql} WHERE {key}>{low} ORDER BY {key}"
                f" LIMIT 1 OFFSET {_PART - 1}"
            )
        found = self._session.value(sql)
        return found

    def batches(self, schema: Schema, table: Table, part: Part) -> Iterator[Batch]:
        """Yield the rows of a part."""
        with translated(f"{schema.name}.{table.name}"):
            reading = Reading(self._options, self._relation(schema, table), schema, table, part)
            stream = self._session.stream(reading.sql, joined=not reading.wide)
            done = 0
            try:
                for lines in stream:
                    batch = reading.batch(lines, done)
                    done += batch.rows
                    yield batch
            except TooLong as error:
                raise DatabaseError(
                    f"{schema.name}.{table.name}, row {done + 1}: the row is longer than the "
                    "server's max_allowed_packet; raise that and try again"
                ) from error
            finally:
                self._session.release(stream)

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        """Open a large value by the key of its row, some megabytes at a time."""
        number, *key = reference.decode().split(":")
        column, relation = table.columns[int(number)], self._relation(schema, table)
        facts = relation.facts[column.name]
        found = " AND ".join(
            f"{quote(name)}={_literal(relation.facts[name].native, text)}"
            for name, text in zip(relation.key, key, strict=True)
        )
        as_text = self._selection.wants_text(schema.name, table.name, column.name)
        value = raw_sql(column.name, facts.native, predefined(column), facts.charset, as_text)
        place = f"{schema.name}.{table.name}.{column.name}"
        return BufferedReader(
            _LobStream(self._session, value, f"{relation.sql} WHERE {found}", place), 1 << 20
        )

    def misfits(self) -> list[Unfit]:
        """Find, in every table, the columns that hold dates and times which do not exist."""
        found = []
        for schema, table in self.describe().tables():
            relation = self._relation(schema, table)
            for column in table.columns:
                condition = _MISFITS.get(predefined(column).kind)
                if condition is None:
                    continue
                sql = f"SELECT {quote(column.name)}+0 FROM {relation.sql} WHERE "
                value = self._session.value(
                    sql + condition.format(c=quote(column.name)) + " LIMIT 1"
                )
                if value is not None:
                    where = f"{schema.name}.{table.name}.{column.name}"
                    found.append(Unfit(where, None, str(value), f"a value of {column.type}"))
        return found

    def _relation(self, schema: Schema, table: Table) -> Relation:
        return self._catalogue.relations[schema.name, table.name]


# Zero dates, dates of a month or day 0, and times that are not of a day.
_MISFITS = {
    Kind.DATE: "YEAR({c})=0 OR MONTH({c})=0 OR DAYOFMONTH({c})=0 OR {c}=0",
    Kind.TIMESTAMP: "YEAR({c})=0 OR MONTH({c})=0 OR DAYOFMONTH({c})=0 OR {c}=0",
    Kind.TIME: "{c}<'00:00:00' OR {c}>='24:00:00'",
}


class _LobStream(RawIOBase):
    """A large value, fetched in pieces inside the snapshot."""

    def __init__(self, session: Session, value: str, place: str, name: str) -> None:
        self._session, self._value, self._place, self._name = session, value, place, name
        self._at = 0
        self._held = BytesIO()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._held.readinto(buffer)
        if not count:
            piece = f"SUBSTRING(BINARY {self._value},{self._at + 1},{_LOB_PIECE})"
            with translated(self._name):
                found = self._session.rows(f"SELECT {piece} FROM {self._place}")
            if len(found) != 1 or found[0][0] is None:
                raise NotFound(f"{self._name}: the row of a large value is not there any more")
            data = found[0][0]
            self._at += len(data)
            self._held = BytesIO(data)
            count = self._held.readinto(buffer)
        return count


def _literal(native: NativeType | None, text: str) -> str:
    """The literal that finds a key again; the reference holds numbers plainly, the rest as hex."""
    name = native.name if native else ""
    if name in NUMERIC:
        return text
    return f"x'{text}'" if "binary" in name or "blob" in name else f"_utf8mb4 x'{text}'"
