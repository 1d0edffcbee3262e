"""SQLite as a source: one text per batch, made by SQLite itself, with every value's class checked.

The text of a row is built by one ``concat_ws`` with the separators of ``sql.batch``. A row with a
value that is not of its column's class carries a mark, and a value that only looks like structure
(text that is not UTF-8) is found by counting; such batches are read again, value by value.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import apsw

from muniment.databases.sqlite_catalogue import Catalogue, Relation, read_catalogue
from muniment.databases.sqlite_keys import KeyJudge
from muniment.databases.sqlite_types import (
    NAN,
    Expression,
    Marks,
    any_class,
    expression,
    lexical,
)
from muniment.errors import DatabaseError, NotFound, Unfit
from muniment.kernels import Stepping, at_once, stepping_kernel
from muniment.sql.batch import CELL, NULL, REF, ROW, Batch, cell_bytes
from muniment.sql.classes import Classes, has_pair, has_surrogates
from muniment.sql.lines import ODD, LineCheck
from muniment.sql.model import Column, Database, Schema, Table
from muniment.sql.names import quoted
from muniment.sql.selection import Selection
from muniment.sql.types import Kind, PredefinedType

__all__ = ["SqliteSource", "connect_sqlite"]

_PART = 1 << 16  # rows; the parts of a table are the same whatever the number of workers
_BATCH = 14 << 10  # bytes; what is made of them should stay in the processor's cache
_WIDEST = 1024  # rowids that are read at once where most of them are free
_MOST_COLUMNS = 2000  # of one result, in SQLite
_HUGE = 8 << 20  # bytes of a value; SQLite and those who ask it hold smaller ones whole
_LAST_ROWID = (1 << 63) - 1


def open_source(path: Path, selection: Selection, *, inline_limit: int = 4000) -> SqliteSource:
    """Open a database file for reading."""
    return SqliteSource(path, selection, inline_limit=inline_limit)


def connect_sqlite(path: Path, *, write: bool = False) -> apsw.Connection:
    """Open a database file; errors name the file and what to do."""
    if not path.is_file() and not write:
        raise DatabaseError(f"there is no SQLite database {path}; check the path")
    # A connection is used by one thread at a time: nobody has to be locked out of it.
    reading = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOMUTEX
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if write else reading
    try:
        connection = apsw.Connection(str(path), flags=flags)
        connection.set_busy_timeout(10_000)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.Error as error:
        raise translated(error, path) from error
    return connection


def translated(error: apsw.Error, path: Path, table: str = "") -> DatabaseError:
    """Return the sentence for an SQLite error."""
    if isinstance(error, apsw.NotADBError):
        return DatabaseError(f"{path} is not an SQLite database, or it is encrypted")
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return DatabaseError(f"{path} is locked by another program; close that and try again")
    if isinstance(error, apsw.CorruptError):
        return DatabaseError(f"{path} is damaged ({error}); try sqlite3's .recover on a copy of it")
    if isinstance(error, apsw.ReadOnlyError):
        return DatabaseError(
            f"{path} is in WAL mode, and its folder cannot be written to, which SQLite needs to "
            "read such a file; copy it elsewhere, with its -wal file"
        )
    if isinstance(error, apsw.FullError):
        return DatabaseError(f"{path}: the disk is full; free some space and start again")
    place = f"{path}, {table}" if table else str(path)
    return DatabaseError(f"{place}: SQLite says: {error}")


@dataclass(frozen=True)
class _Opener:
    path: Path
    selection: Selection
    inline_limit: int
    catalogue: Catalogue

    def __call__(self) -> SqliteSource:
        return SqliteSource(
            self.path, self.selection, inline_limit=self.inline_limit, known=self.catalogue
        )


class SqliteSource:
    """An SQLite file as a source, in one read transaction from first to last."""

    def __init__(
        self,
        path: Path,
        selection: Selection | None = None,
        *,
        inline_limit: int = 4000,
        known: Catalogue | None = None,  # of the same state, read by another connection
    ) -> None:
        self.path = path
        self._selection = selection or Selection()
        self._limit = inline_limit
        self._watch: Any = connect_sqlite(path)
        self._state = self.state()
        self._token: str | None = None
        self._db: Any = connect_sqlite(path)
        self._db.execute("PRAGMA cell_size_check=ON").fetchall()
        self._db.execute("BEGIN")
        self._db.execute(
            "SELECT count(*) FROM sqlite_schema"
        ).fetchall()  # the snapshot starts here
        self._utf8 = self._encoding() == "utf-8"
        self._long: set[str] = set()  # tables known to hold long text
        self._counted: dict[str, int] = {}  # rows of the tables that were read
        self._checked = LineCheck()
        self._stepping: list[Generator[Batch | int, None, None]] = []  # rows under way
        try:
            self._catalogue = known or read_catalogue(self._db, self.path, self._selection)
        except apsw.Error as error:
            raise translated(error, path) from error
        self._database = self._catalogue.database
        self.notes = list(self._catalogue.notes)

    def __enter__(self) -> SqliteSource:
        return self

    def __exit__(self, *_: object) -> None:
        for rows in self._stepping:
            rows.close()  # nobody read them to their end, and they keep the file open
        self._db.close(True)
        self._watch.close(True)

    def describe(self) -> Database:
        """Return the definitions, with estimated row counts."""
        return self._database

    def size(self) -> int:
        """The bytes of the database file."""
        return self.path.stat().st_size

    def state(self) -> int:
        """A number that changes when another program commits a change."""
        return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    def unchanged(self) -> bool:
        """Whether no other program has changed the database since it was opened."""
        return self.state() == self._state

    def snapshot_token(self) -> str:
        """A text that is the same while nobody writes to the file, now or in a later run."""
        if self._token is None:
            self._token = self._file_state()
        return self._token

    def _file_state(self) -> str:
        # Through SQLite: to close a file of one's own would end the locks of this process on it.
        flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY
        file = apsw.VFSFile("", str(self.path.resolve()), [flags, 0])
        changes = file.xRead(4, 24).hex()  # SQLite's own counter of changes
        file.xClose()
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        facts = [
            (f.stat().st_size, f.stat().st_mtime_ns)
            for f in files
            if f.exists() and f.stat().st_size
        ]
        return f"{changes} {facts}"

    def opener(self) -> _Opener:
        """Return how a worker process opens the same file."""
        return _Opener(self.path, self._selection, self._limit, self._catalogue)

    @property
    def suits_threads(self) -> bool:
        """Whether machine code reads every table by SQLite's own functions."""
        relations = (self._relation(table) for _, table in self._database.tables())
        narrow = (len(table.columns) < _MOST_COLUMNS for _, table in self._database.tables())
        bare = not any(classes.quoted for classes in self._catalogue.classes.values())
        plain = self._utf8 and bare and all(map(_has_parts, relations)) and all(narrow)
        return plain and at_once() and stepping_kernel() is not None

    def parts(self, schema: Schema, table: Table) -> Iterator[tuple[int, int] | None]:
        """Yield ranges of rowids that hold the same number of rows each."""
        relation = self._relation(table)
        if not _has_parts(relation):
            yield None
            return
        low, last = self._edge(relation, "min"), self._edge(relation, "max")
        if low is None or last is None:
            return
        dense = True
        while True:
            following = self._boundary(relation, low, dense)
            if following is None:
                yield low, last
                return
            yield low, following - 1
            dense = dense and following - low < 2 * _PART
            low = following

    def _boundary(self, relation: Relation, low: int, dense: bool) -> int | None:
        """Where the part after the one that starts at ``low`` starts, if there is one.

        Where rowids have few gaps, the next one can be looked up; elsewhere rows are counted.
        """
        rowid = relation.rowid
        if dense:
            sql = f"SELECT min({rowid}) FROM {relation.sql} WHERE {rowid} >= ?"
            ((following,),) = self._db.execute(sql, (min(low + _PART, _LAST_ROWID),)).fetchall()
            return following if following != low else None
        sql = f"SELECT {rowid} FROM {relation.sql} WHERE {rowid} > ? ORDER BY 1 LIMIT 1 OFFSET ?"
        found = self._db.execute(sql, (low, _PART - 1)).fetchall()
        return found[0][0] if found else None

    def batches(
        self, schema: Schema, table: Table, part: tuple[int, int] | None
    ) -> Iterator[Batch]:
        """Yield the rows of a part."""
        try:
            yield from self._batches(_Query(self, schema, table, part))
        except apsw.Error as error:
            raise translated(error, self.path, f"{schema.name}.{table.name}") from error

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        """Open a large value by its rowid, without reading it whole where SQLite allows that."""
        rowid, _, number = reference.decode().partition(":")
        column = table.columns[int(number)]
        relation = self._relation(table)
        try:
            if relation.base and self._utf8:
                return _blob_stream(
                    self._db.blob_open("main", relation.base, column.name, int(rowid), False)
                )
        except apsw.Error:
            pass  # a generated column, say: read the value itself
        found = self._db.execute(
            f"SELECT {quoted(column.name)} FROM {relation.sql} WHERE {relation.rowid}=?",
            (int(rowid),),
        ).fetchone()
        if found is None:
            raise NotFound(f"{table.name}: no row {rowid} any more")
        value = found[0]
        return BytesIO(
            value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        )

    def refit(self, schema: Schema, table: Table, unfit: Unfit) -> Table | None:
        """Return the table with a wider type where SQLite let a value outgrow its declaration."""
        name = unfit.where.removeprefix(f"{schema.name}.{table.name}.")
        for number, column in enumerate(table.columns):
            if column.name == name:
                wider = self._wider(table, column)
                if wider is None or wider == column.type:
                    return None
                self.notes.append(
                    f"{unfit.where} is declared {column.type_original} and holds more; "
                    f"it was archived as {wider}"
                )
                columns = list(table.columns)
                columns[number] = replace(column, type=wider)
                return replace(table, columns=tuple(columns))
        return None

    def count(self, schema: Schema, table: Table, read: int) -> int | None:
        """How many rows a table has, counted another way than they were read; None if unknown."""
        relation = self._relation(table)
        if relation.where or relation.base is None:
            return None
        if read == table.rows:  # as many as there are numbers from the first rowid to the last
            self._counted[table.name] = read
            return read
        try:
            ((rows,),) = self._db.execute(f"SELECT count(*) FROM {relation.sql}").fetchall()
        except apsw.Error as error:
            raise translated(error, self.path, f"{schema.name}.{table.name}") from error
        self._counted[table.name] = int(rows)
        return int(rows)

    def kept(self, database: Database) -> Database:
        """Return the definitions without the keys that rows do not keep; notes name those."""
        judge = KeyJudge(self._db, self._catalogue, self._selection, self._counted)
        try:
            database = judge.kept(database)
        except apsw.Error as error:
            raise translated(error, self.path) from error
        self.notes += judge.notes
        return database

    def misfits(self) -> list[Unfit]:
        """Find, in every table, the columns that hold values of another class than declared."""
        found = []
        for schema, table in self._database.tables():
            for column in table.columns:
                if (unfit := self._first_misfit(schema, table, column)) is not None:
                    found.append(unfit)
        return found

    def _first_misfit(self, schema: Schema, table: Table, column: Column) -> Unfit | None:
        relation, name = self._relation(table), quoted(column.name)
        kind = _predefined(column).kind
        classes = _CLASSES_OF_KIND.get(kind)
        if classes is None or (table.name, column.name) in self._catalogue.classes:
            return None
        wanted = ",".join(f"'{c}'" for c in classes)
        key = relation.rowid if relation.has_rowid else "NULL"
        row = self._db.execute(
            f"SELECT {key}, typeof({name}), iif(typeof({name})='text', "
            f"substr(CAST({name} AS BLOB),1,160), substr({name},1,40)) FROM {relation.sql} "
            f"WHERE typeof({name}) NOT IN ({wanted},'null')"
            f"{_OTHER_FORM.get(kind, '').format(c=name)} LIMIT 1"
        ).fetchone()
        if row is None:
            return None
        value = row[2]
        if row[1] == "text":  # as bytes, which may be no Unicode
            value = (value or b"").decode(self._encoding(), "replace")[:40]
        return _misfit(schema, table, column, row[0], row[1], value)

    def _wider(self, table: Table, column: Column) -> PredefinedType | None:
        type_, relation, name = _predefined(column), self._relation(table), quoted(column.name)
        if type_.kind is Kind.TEXT and type_.length is not None:
            # SQLite's length() stops at a NUL character; bytes are never fewer than characters.
            has_nul = f"instr(CAST({name} AS BLOB), x'00')"
            size = f"iif({has_nul}, octet_length({name}), length({name}))"
            longest = self._db.execute(
                f"SELECT max({size}) FROM {relation.sql} WHERE typeof({name})='text'"
            ).fetchone()[0]
            return replace(type_, length=longest)
        if type_.kind is Kind.DECIMAL and type_.length is not None:
            return PredefinedType("DECIMAL")
        return None

    def _encoding(self) -> str:
        """The encoding of text in the file: utf-8, utf-16le or utf-16be."""
        ((encoding,),) = self._db.execute("PRAGMA encoding").fetchall()
        return str(encoding).lower()

    def _relation(self, table: Table) -> Relation:
        return self._catalogue.relations[table.name]

    def _edge(self, relation: Relation, function: str) -> int | None:
        row = self._db.execute(
            f"SELECT {function}({relation.rowid}) FROM {relation.sql}"
        ).fetchone()
        return row[0] if row else None

    def _batches(self, query: _Query) -> Iterator[Batch]:
        if not self._utf8:
            yield from self._slow(query, query.slow(), 0)
            return
        huge = self._has_huge(query)
        if huge:
            self._long.add(query.table.name)
        if query.part is not None and query.part[1] - query.part[0] < 2 * _PART:
            yield from self._range_by_range(query, *query.part, by_machine=not huge)
        else:
            yield from self._line_by_line(query)

    def _has_huge(self, query: _Query) -> bool:
        """Whether there is a value among these rows that nobody should hold whole.

        SQLite knows the size of a value without reading it.
        """
        if not self._relation(query.table).has_rowid or not (sizes := query.sizes()):
            return False
        row = self._db.execute(sizes).fetchone()
        return any(size is not None and size > _HUGE for size in row or ())

    def _range_by_range(
        self, query: _Query, low: int, last: int, *, by_machine: bool
    ) -> Iterator[Batch]:
        """Let SQLite join the rows of a range of rowids; the ranges grow or shrink to fit."""
        table, done, step = query.table, 0, 64
        while low <= last:
            stepping = stepping_kernel() if by_machine and query.by_machine else None
            if stepping is not None:
                yield from self._row_by_row(query, stepping, low, last, done)
                return
            high = min(low + step - 1, last)
            careful = table.name in self._long
            ((rows, data),) = self._db.execute(query.joined(careful), (low, high)).fetchall()
            if rows:
                batch = self._joined(query, data + ROW, rows)
                if batch is not None and self._suspicious(table, data.split(ROW)):
                    # From here on SQLite looks at the length of each text, and hands over only
                    # those that stay inline.
                    self._long.add(table.name)
                    batch = None
                if batch is None:
                    yield from self._slow(query, query.slow(low, high), done)
                else:
                    yield batch
                done += rows
            fitting = step * _BATCH // max(len(data), 1) if rows else _WIDEST
            low, step = high + 1, max(1, min(fitting, 4 * step, _WIDEST))

    def _row_by_row(
        self, query: _Query, stepping: Stepping, low: int, last: int, done: int
    ) -> Iterator[Batch]:
        """Let machine code step through the rows; those that are odd are read closely.

        Where they come one after the other, more and more rows are read closely at a time.
        """
        stretch = 1
        while low <= last:
            usual, odd = 0, None
            rows = stepping(self._db, query.values(low, last), query.types(), self._limit)
            self._stepping.append(rows)
            for found in rows:
                if isinstance(found, int):
                    odd = found
                    break
                usual += found.rows
                yield found
            rows.close()
            self._stepping.remove(rows)
            if odd is None:
                return
            stretch = min(2 * stretch, _WIDEST) if usual < 4 * stretch else 1
            high, done = min(odd + stretch - 1, last), done + usual
            for batch in self._slow(query, query.slow(odd, high), done):
                done += batch.rows
                yield batch
            low = high + 1

    def _line_by_line(self, query: _Query) -> Iterator[Batch]:
        """Read what has no rowids, few of them, or an order of its own."""
        table, done, count = query.table, 0, 64
        cursor = self._db.execute(query.lines(table.name in self._long))
        while lines := [line for (line,) in islice(cursor, count)]:
            batch = self._joined(query, ROW.join([*lines, b""]), len(lines))
            if batch is not None and self._suspicious(table, lines):
                self._long.add(table.name)
                rest = f" LIMIT -1 OFFSET {done + len(lines)}"
                cursor = self._db.execute(query.lines(True) + rest)
                batch = None
            if batch is None:
                limit = f" LIMIT {len(lines)} OFFSET {done}"
                yield from self._slow(query, query.slow(limit=limit), done)
            else:
                yield batch
            done += len(lines)
            size = sum(map(len, lines))
            count = max(1, min(4096, len(lines) * _BATCH // max(size, 1)))

    def _joined(self, query: _Query, data: bytes, rows: int) -> Batch | None:
        """Return rows that SQLite joined as a batch, None if they take a closer look."""
        if b"\0" in data and query.limited:
            return None  # SQLite stops counting characters there
        return self._checked(data, rows, len(query.table.columns))

    def _suspicious(self, table: Table, lines: list[bytes]) -> bool:
        """Whether a row is so long that a text in it may have to lie in a file."""
        if table.name in self._long or not self._relation(table).has_rowid:
            return False  # without a rowid there is nothing to find it by: it stays inline
        if not any(_predefined(c).large for c in table.columns):
            return False
        return max(map(len, lines)) > self._limit

    def _slow(self, query: _Query, parts: list[str], number: int) -> Iterator[Batch]:
        """Read rows value by value: those that the quick way could not be sure of."""
        cursors = [self._db.execute(sql) for sql in parts]
        rows = zip(*cursors, strict=True)
        while some := list(islice(rows, 64)):
            values = [sum((part[1:] for part in row[1:]), row[0]) for row in some]
            lines = []
            for row in values:
                number += 1
                lines.append(CELL.join(query.cells(row, number)) + ROW)
            yield Batch(b"".join(lines), len(lines))


_CLASSES_OF_KIND = {
    Kind.INTEGER: ("integer",),
    Kind.FLOAT: ("real",),
    Kind.DECIMAL: ("integer", "real", "text"),  # DECIMAL_TEXT has digits as text
    Kind.BOOLEAN: ("integer",),
    Kind.BINARY: ("blob",),
    Kind.TEXT: ("text",),
    Kind.DATE: ("text",),
    Kind.TIME: ("text",),
    Kind.TIMESTAMP: ("text",),
}


def _has_parts(relation: Relation) -> bool:
    """Whether its rows can be told apart by numbers that anybody may look up."""
    return relation.has_rowid and not relation.private


def _is_quoted(source: SqliteSource, table: Table) -> bool:
    known = source._catalogue.classes
    return any(c.quoted for place, c in known.items() if place[0] == table.name)


def _row_text(columns: list[Expression]) -> str:
    """SQL for the text of a row, ended by the odd mark if the condition of a column fails."""
    *texts, last = (column.text for column in columns)
    condition = _all_of([column.condition for column in columns])
    return _joined([*texts, f"iif({condition},{last},{_hex(ODD)})"])


def _joined(texts: list[str]) -> str:
    """One concat_ws, or several inside another: a function takes a limited number of values."""
    if len(texts) <= _MOST_ARGUMENTS:
        return f"concat_ws(x'ff',{','.join(texts)})"
    return _joined([_joined(group) for group in _groups(texts)])


def _all_of(conditions: list[str]) -> str:
    """All conditions, in groups: a long chain would be too deep an expression."""
    if len(conditions) <= _MOST_ARGUMENTS:
        return " and ".join(conditions)
    return _all_of([f"({_all_of(group)})" for group in _groups(conditions)])


def _groups(items: list[str]) -> list[list[str]]:
    return [items[n : n + _MOST_ARGUMENTS] for n in range(0, len(items), _MOST_ARGUMENTS)]


_MOST_ARGUMENTS = 100


# What a text looks like that is no number, date or time as the archive wants it.
_OTHER_FORM = {
    Kind.FLOAT: f" AND {{c}} IS NOT '{NAN}'",
    Kind.DECIMAL: " OR (typeof({c})='text' AND ({c} GLOB '*[^-+.0-9]*' OR {c} NOT GLOB '*[0-9]*'))",
    Kind.DATE: " OR date({c}) IS NOT {c}",
    Kind.TIME: " OR time(substr({c},1,8)) IS NOT substr({c},1,8)",
    Kind.TIMESTAMP: " OR {c} NOT GLOB '????-??-?? ??:??:??*'"
    " OR datetime(substr({c},1,19)) IS NOT substr({c},1,19)",
}


class _Query:
    """How one part of a table is read, quickly or closely."""

    def __init__(
        self, source: SqliteSource, schema: Schema, table: Table, part: tuple[int, int] | None
    ) -> None:
        self.schema, self.table, self.part, self._source = schema, table, part, source
        self._relation = source._relation(table)
        self._texts: dict[bool, str] = {}
        types = map(_predefined, table.columns)
        # There is room for the rowid, and machine code knows no quotation marks.
        self.by_machine = len(table.columns) < _MOST_COLUMNS and not _is_quoted(source, table)
        self.limited = any(type_.kind is Kind.TEXT and type_.length for type_ in types)

    def joined(self, careful: bool) -> str:
        """How many rows lie between two rowids, and their texts in one; ``careful`` as below."""
        if careful not in self._texts:
            rows = f"group_concat({self._text(careful)},{_hex(ROW)})"
            # Without another index a table is read in the order of its rowids.
            self._texts[careful] = (
                f"SELECT count(*),CAST({rows} AS BLOB) FROM {self._relation.sql} NOT INDEXED"
                f"{self._where(self._between('?', '?'))}"
            )
        return self._texts[careful]

    def lines(self, careful: bool) -> str:
        """One text per row; ``careful`` about text that is too long to stay inline."""
        return f"SELECT CAST({self._text(careful)} AS BLOB){self._from(self._in_part())}"

    def slow(self, low: int | None = None, high: int | None = None, limit: str = "") -> list[str]:
        """The class and value of each cell, and the rowid before them; between two rowids.

        One query for so many columns as fit into a result, all in the order of the rowids.
        """
        key = self._relation.rowid if self._relation.has_rowid else "NULL"
        between = self._in_part() if low is None else self._between(low, high)
        end = f"{self._from(between)}{limit}"
        # Text comes as bytes, so that text which is not Unicode does not stop the reading; floats
        # come as SQLite spells them, as they do the quick way.
        cells = [
            f"typeof({q}),CASE typeof({q}) WHEN 'text' THEN CAST({q} AS BLOB) "
            f"WHEN 'real' THEN CAST({q} AS TEXT) ELSE {q} END"
            for q in (quoted(c.name) for c in self.table.columns)
        ]
        size = _MOST_COLUMNS // 2 - 1 if self._relation.has_rowid else len(cells)
        parts = (cells[n : n + size] for n in range(0, len(cells), size))
        return [f"SELECT {key},{','.join(part)}{end}" for part in parts]

    def sizes(self) -> str:
        """The largest sizes in the columns that may hold large values; nothing if none may."""
        large = [quoted(c.name) for c in self.table.columns if _predefined(c).large]
        if not large:
            return ""
        sizes = ",".join(f"max(octet_length({name}))" for name in large)
        return f"SELECT {sizes} FROM {self._relation.sql}{self._where(self._in_part())}"

    def values(self, low: int, high: int) -> str:
        """The rowid and the values of each row between two rowids."""
        names = ",".join(quoted(c.name) for c in self.table.columns)
        return (
            f"SELECT {self._relation.rowid},{names} FROM {self._relation.sql} NOT INDEXED"
            f"{self._where(self._between(low, high))}"
        )

    def types(self) -> list[PredefinedType | None]:
        """The types of the columns; None for those that are archived as text in any case."""
        return [None if self._classes(c) else _predefined(c) for c in self.table.columns]

    def _in_part(self) -> str:
        return self._between(*self.part) if self.part else ""

    def _between(self, low: int | str, high: int | str | None) -> str:
        return f"{self._relation.rowid} BETWEEN {low} AND {high}"

    def _text(self, careful: bool) -> str:
        source, relation = self._source, self._relation
        marks = Marks(_hex(source._checked.null), _hex(source._checked.ref))
        limit, rowid = source._limit, relation.rowid
        if not relation.has_rowid:  # nothing to find a large value by: it stays inline
            limit, rowid = 2_000_000_000, "''"
        return _row_text(
            [
                any_class(quoted(c.name), marks, quoted=classes.quoted)
                if (classes := self._classes(c))
                else expression(
                    quoted(c.name),
                    _predefined(c),
                    marks,
                    nullable=c.nullable is not False,
                    reference=f"{rowid}||':{k}'",
                    limit=limit,
                    careful=careful,
                )
                for k, c in enumerate(self.table.columns)
            ]
        )

    def _from(self, condition: str = "") -> str:
        order = f" ORDER BY {self._relation.rowid}" if self._relation.has_rowid else ""
        return f" FROM {self._relation.sql}{self._where(condition)}{order}"

    def _where(self, condition: str) -> str:
        own = f"({self._relation.where})" if self._relation.where else ""
        both = " AND ".join(filter(None, (own, condition)))
        return f" WHERE {both}" if both else ""

    def cells(self, row: tuple[Any, ...], number: int) -> Iterator[bytes]:
        """Yield the cells of a row given as key and pairs of class and value."""
        for k, column in enumerate(self.table.columns):
            class_, value = row[2 * k + 1], row[2 * k + 2]
            yield NULL if value is None else self._cell(column, class_, value, row[0], k, number)

    def _cell(
        self, column: Column, class_: str, value: Any, key: int | None, k: int, number: int
    ) -> bytes:
        if class_ == "text":
            value = self._decoded(column, value, number)
        if classes := self._classes(column):
            return cell_bytes(classes.text(class_, value))
        type_ = _predefined(column)
        fits = isinstance(value, bytes) == (type_.kind is Kind.BINARY)
        if type_.large and fits and key is not None and _octets(value) > self._source._limit:
            return REF + f"{key}:{k}".encode()
        text = lexical(class_, value, type_)
        if text is None:
            raise _misfit(self.schema, self.table, column, number, class_, value)
        return cell_bytes(text)

    def _decoded(self, column: Column, value: bytes, number: int) -> str | bytes:
        try:
            text = value.decode(self._source._encoding(), "surrogatepass")
        except UnicodeDecodeError as error:
            if self._classes(column):
                return value
            raise self._no_unicode(column, value, number) from error
        if self._classes(column):
            return text.encode("utf-8", "surrogatepass") if has_surrogates(text) else text
        if has_pair(text):
            raise self._no_unicode(column, value, number)
        return text

    def _no_unicode(self, column: Column, value: bytes, number: int) -> Unfit:
        where = f"{self.schema.name}.{self.table.name}.{column.name}"
        return Unfit(where, number, f"the byte string {value[:40]!r}", "text in Unicode")

    def _classes(self, column: Column) -> Classes | None:
        """The classes of a column's values if it is archived as text."""
        return self._source._catalogue.classes.get((self.table.name, column.name))


def _octets(value: Any) -> int:
    """The size of a value, as SQLite's octet_length would have it for a database in UTF-8."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    return len(value) if isinstance(value, bytes) else 0


def _misfit(
    schema: Schema, table: Table, column: Column, row: int | None, class_: str, value: Any
) -> Unfit:
    shown = repr(value if len(repr(value)) <= 60 else value[:40])
    declared = column.type_original or str(column.type)
    return Unfit(
        f"{schema.name}.{table.name}.{column.name}",
        row,
        f"the {class_} {shown}",
        f"of the declared type {declared}",
    )


def _predefined(column: Column) -> PredefinedType:
    assert isinstance(column.type, PredefinedType)
    return column.type


def _hex(data: bytes) -> str:
    return f"x'{data.hex()}'"


def _blob_stream(blob: apsw.Blob) -> BinaryIO:
    import io

    class Stream(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            data = blob.read(len(buffer))
            buffer[: len(data)] = data
            return len(data)

        def close(self) -> None:
            if not self.closed:
                blob.close()
            super().close()

    return io.BufferedReader(Stream(), 1 << 20)
