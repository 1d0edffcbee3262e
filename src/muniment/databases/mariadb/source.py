"""Reading a server: one text per row, joined by the server itself, in one consistent snapshot.

Everything is read in one transaction. Several processes read the same state if the user may stop
writers for the moment in which they all start theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, BinaryIO

import pyarrow as pa
from pymysql import err

from muniment.databases.mariadb.address import Address, parse_address
from muniment.databases.mariadb.catalogue import Catalogue, ColumnFacts, Relation, read_catalogue
from muniment.databases.mariadb.connection import Session, connect, quote, translated
from muniment.databases.mariadb.types import NativeType
from muniment.databases.mariadb.values import cell_sql, raw_sql
from muniment.databases.mariadb.wire import TooLong, cells
from muniment.errors import DatabaseError, NotFound, Unfit
from muniment.sql.arrow import text_column
from muniment.sql.batch import CELL, NULL, ROW, Batch, cells_of
from muniment.sql.lines import ODD, LineCheck
from muniment.sql.model import Column, Database, Schema, Table
from muniment.sql.selection import Selection
from muniment.sql.types import Kind, PredefinedType

__all__ = ["MariadbSource", "open_source"]

_PART = 1 << 16  # rows; the parts of a table are the same whatever the number of workers
_LOB_PIECE = 1 << 22
_LOCK_PATIENCE = 5  # seconds; while a lock is waited for, others wait behind it
_NUMERIC = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal")
Part = tuple[int, int] | None


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
            _start(session)
        source = MariadbSource(session, selection or Selection(), inline_limit, statement_timeout)
        yield source
    finally:
        session.close()


def _start(session: Session) -> None:
    """Begin a transaction that sees one state of everything and can change nothing."""
    session.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


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
        self._checked = LineCheck()
        self._alone = False
        self._packet = int(session.value("SELECT @@max_allowed_packet"))

    def describe(self) -> Database:
        """Return the definitions, with estimated row counts."""
        return self._catalogue.database

    def size(self) -> int:
        """The bytes that the server says its tables take."""
        taken = {(s.name, t.name) for s, t in self.describe().tables()}
        return 1 + sum(r.bytes for key, r in self._catalogue.relations.items() if key in taken)

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
                _start(self._session)
            yield
        finally:
            lock.close()

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
            reading = _Reading(self, schema, table, part)
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
        value = raw_sql(column.name, facts.native, _predefined(column), facts.charset)
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
                condition = _MISFITS.get(_predefined(column).kind)
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


class _Reading:
    """How one part of a table is read, and what its lines become."""

    def __init__(self, source: MariadbSource, schema: Schema, table: Table, part: Part) -> None:
        self._source, self._schema, self._table = source, schema, table
        self._relation = source._relation(schema, table)
        self._facts = [self._relation.facts[c.name] for c in table.columns]
        large = [k for k, c in enumerate(table.columns) if _predefined(c).large]
        # Without a key nothing finds a large value again, and joined rows have a limit.
        room = 4 * source._limit * len(large) < source._packet
        self.wide = bool(large) and not (self._relation.key and room)
        self._singles = [
            k for k, f in enumerate(self._facts) if f.native and f.native.name == "float"
            and _predefined(table.columns[k]).kind is Kind.FLOAT
        ]  # fmt: skip
        self.sql = f"SELECT {self._columns()} FROM {self._relation.sql}{self._rest(part)}"

    def batch(self, lines: list[bytes], done: int) -> Batch:
        """Return a batch of the lines; ``done`` rows came before them."""
        if self.wide:
            lines = [self._joined(payload) for payload in lines]
        data = ROW.join([*lines, b""])
        batch = self._source._checked(data, len(lines), len(self._facts))
        if batch is None:
            raise self._unfit(lines, done)
        return self._with_singles(batch) if self._singles else batch

    def _rest(self, part: Part) -> str:
        conditions = [f"({self._relation.where})"] if self._relation.where else []
        if part is not None:
            key = quote(self._relation.range)
            conditions.append(f"{key} BETWEEN {part[0]} AND {part[1]}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return where + (f" ORDER BY {self._relation.order}" if self._relation.order else "")

    def _columns(self) -> str:
        columns = [self._cell(k, c) for k, c in enumerate(self._table.columns)]
        return ", ".join(columns) if self.wide else f"CONCAT_WS(x'FF',{','.join(columns)})"

    def _cell(self, k: int, column: Column) -> str:
        facts, type_ = self._facts[k], _predefined(column)
        as_text = self._source._selection.wants_text(
            self._schema.name, self._table.name, column.name
        )
        text, exact = cell_sql(column.name, facts.native, type_, facts.charset, as_text)
        name = quote(column.name)
        if self.wide and type_.kind is Kind.BINARY and not as_text:
            return name
        if exact:
            odd = f"CONCAT({_hex(ODD)},HEX({name}))"
            text = f"IF({name} IS NULL,NULL,IF({exact},{text},{odd}))"
        if type_.large and not self.wide:
            reference = f"CONCAT({_hex(self._source._checked.ref)},{self._key(k)})"
            text = f"IF(OCTET_LENGTH({name})>{self._source._limit},{reference},{text})"
        if self.wide:
            return text
        # As bytes, so that nothing is converted to another character set or type on the way.
        if column.nullable is False and text == name and _is_plain(facts):
            return text
        text = text if text.startswith("BINARY ") else f"BINARY ({text})"
        if column.nullable is False:
            return text
        return f"IFNULL({text},{_hex(self._source._checked.null)})"

    def _key(self, k: int) -> str:
        """SQL for what finds the row of a large value again."""
        texts = []
        for name in self._relation.key:
            facts = self._relation.facts[name]
            numeric = facts.native is not None and facts.native.name in _NUMERIC
            unicode = f"CONVERT({quote(name)} USING utf8mb4)" if facts.charset else quote(name)
            texts.append(f"':',{quote(name) if numeric else f'HEX({unicode})'}")
        return f"'{k}',{','.join(texts)}"

    def _joined(self, payload: bytes) -> bytes:
        """A row whose cells came one by one, as the server would have joined it."""
        found = []
        for cell, column in zip(cells(payload), self._table.columns, strict=True):
            if cell is None:
                found.append(self._source._checked.null)
            elif _predefined(column).kind is Kind.BINARY:
                found.append(cell.hex().upper().encode())
            else:
                found.append(cell)
        return CELL.join(found)

    def _with_singles(self, batch: Batch) -> Batch:
        """The server has no short text for single precision that reads back to the same bits."""
        width, all_cells = len(self._facts), cells_of(batch)
        for k in self._singles:
            singles = text_column(all_cells[k::width]).cast(pa.float64()).cast(pa.float32())
            all_cells[k::width] = [
                NULL if text is None else text.encode()
                for text in singles.cast(pa.string()).to_pylist()
            ]
        rows = zip(*[iter(all_cells)] * width, strict=True)
        return Batch(b"".join([CELL.join(row) + ROW for row in rows]), batch.rows)

    def _unfit(self, lines: list[bytes], done: int) -> Exception:
        """Find the value that has no exact text."""
        width = len(self._facts)
        where = f"{self._schema.name}.{self._table.name}"
        for row, line in enumerate(lines, done + 1):
            found = line.split(CELL)
            for column, facts, cell in zip(self._table.columns, self._facts, found, strict=False):
                place = f"{where}.{column.name}"
                if cell.startswith(ODD):
                    wanted = f"text in {facts.charset}" if facts.charset else "a shape with a WKT"
                    return Unfit(place, row, f"the byte string X'{cell[1:41].decode()}'", wanted)
                if cell.startswith((self._source._checked.null, self._source._checked.ref)):
                    continue
                if not _is_text(cell) or ROW in cell:
                    return Unfit(place, row, f"the byte string {cell[:40]!r}", "text in Unicode")
            if len(found) != width:
                return Unfit(
                    f"{where}.{self._table.columns[0].name}",
                    row,
                    "a value with the byte FF",
                    "text in Unicode",
                )
        return DatabaseError(f"{where}: some of the rows after row {done} cannot be read exactly")


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
    if name in _NUMERIC:
        return text
    return f"x'{text}'" if "binary" in name or "blob" in name else f"_utf8mb4 x'{text}'"


def _is_text(cell: bytes) -> bool:
    try:
        cell.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _predefined(column: Column) -> PredefinedType:
    assert isinstance(column.type, PredefinedType)
    return column.type


def _is_plain(facts: ColumnFacts) -> bool:
    """Whether the server joins a value to bytes without any conversion."""
    return facts.native is not None and facts.native.name in (*_NUMERIC, "date", "time", "double")


def _hex(data: bytes) -> str:
    return f"x'{data.hex()}'"
