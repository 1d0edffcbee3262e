"""Rows on their way to the server: LOAD DATA from memory, or INSERT where that is switched off.

The bytes of structure in a batch are just what LOAD DATA can be told to read, so most batches need
two replacements and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from muniment.databases.mariadb.connection import Session, quote
from muniment.databases.mariadb.types import NativeType
from muniment.databases.mariadb.values import is_raw, value_sql
from muniment.databases.mariadb.wire import send_local
from muniment.errors import DatabaseError
from muniment.sql.batch import CELL, NULL, REF, ROW, Batch, cell_value, cells_of
from muniment.sql.model import Leaf, Shape
from muniment.sql.nested import nested_value
from muniment.sql.types import Kind

__all__ = ["LoadEncoder", "LoadPiece", "Loader", "NewColumn"]

_STATEMENT = 1 << 20  # bytes of one INSERT
_PIECE = 1 << 20
Open = Callable[[bytes], BinaryIO]


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column of a table that is being loaded; one that computes its values is passed over."""

    name: str
    native: NativeType | None
    shape: Shape
    charset: str | None
    computed: bool = False
    counts: bool = False  # by itself, which a 0 must not start

    @property
    def raw(self) -> bool:
        """Whether its bytes travel as they are."""
        return isinstance(self.shape, Leaf) and is_raw(self.native, self.shape.type)

    def value(self, cell: str) -> str | None:
        """SQL for the value, given SQL for the cell; None where they are the same."""
        if not isinstance(self.shape, Leaf):
            return None
        value = value_sql(self.native, self.shape.type, self.charset, cell)
        # LOAD DATA forgets that a 0 was given, unless it is set in the same way as other columns.
        return cell if self.counts and value is None else value


@dataclass(frozen=True, slots=True)
class LoadPiece:
    """A part on its way: bytes ready to be sent, and batches that need a closer look."""

    items: tuple[bytes | Batch, ...]
    rows: int


@dataclass(frozen=True)
class LoadEncoder:
    """Turns batches into what LOAD DATA reads; runs in worker processes."""

    columns: tuple[NewColumn, ...]
    local: bool

    def __call__(self, batches: Iterable[Batch]) -> LoadPiece:
        items: list[bytes | Batch] = []
        rows = 0
        for batch in batches:
            rows += batch.rows
            items.append(self._ready(batch) if self.local and REF not in batch.data else batch)
        return LoadPiece(tuple(items), rows)

    def _ready(self, batch: Batch) -> bytes:
        if any(c.raw or not isinstance(c.shape, Leaf) for c in self.columns):
            return b"".join(_careful(self.columns, batch, _no_lob))
        return _escaped(batch.data).replace(NULL, b"\\N")


def _escaped(data: bytes) -> bytes:
    return data.replace(b"\\", b"\\\\") if b"\\" in data else data


def _no_lob(_: bytes) -> BinaryIO:
    raise AssertionError("a large object is fetched by the process that loads")


def _careful(columns: tuple[NewColumn, ...], batch: Batch, open_lob: Open) -> Iterator[bytes]:
    """Cell by cell, for large objects, bytes and complex values."""
    last = len(columns) - 1
    for position, cell in enumerate(cells_of(batch)):
        number = position % len(columns)
        yield from _cell(columns[number], cell, open_lob)
        yield ROW if number == last else CELL


def _cell(column: NewColumn, cell: bytes, open_lob: Open) -> Iterator[bytes]:
    if cell == NULL:
        yield b"\\N"
    elif cell.startswith(REF):
        with open_lob(cell[1:]) as stream:
            while piece := stream.read(_PIECE):
                text = piece if column.raw else _of_lob(column, piece)
                yield _octets(text)
    elif not isinstance(column.shape, Leaf):
        yield _escaped(_json(cell, column.shape).encode())
    elif column.raw:
        yield _octets(bytes.fromhex(cell.decode()))
    else:
        yield _escaped(cell)


def _of_lob(column: NewColumn, piece: bytes) -> bytes:
    """A large object in a column that takes the text of cells."""
    assert isinstance(column.shape, Leaf)
    return piece.hex().upper().encode() if column.shape.type.kind is Kind.BINARY else piece


def _octets(data: bytes) -> bytes:
    for special in (b"\\", CELL, ROW):
        if special in data:
            data = data.replace(special, b"\\" + special)
    return data


def _json(cell: bytes, shape: Shape) -> str:
    return json.dumps(nested_value(cell_value(cell), shape), ensure_ascii=False)


class Loader:
    """Loads one table."""

    def __init__(
        self, session: Session, place: str, where: str, columns: tuple[NewColumn, ...]
    ) -> None:
        self._session, self._place, self._where, self._columns = session, place, where, columns

    def load(self, pieces: Iterable[LoadPiece], open_lob: Open) -> int:
        """Send the pieces as the file of one LOAD DATA; return the rows."""
        rows = 0

        def chunks() -> Iterator[bytes]:
            nonlocal rows
            for piece in pieces:
                for item in piece.items:
                    if isinstance(item, bytes):
                        yield item
                    else:
                        yield from _careful(self._columns, item, open_lob)
                rows += piece.rows

        self._session.free()
        stored, warnings = send_local(
            self._session.connection, self._statement(), _gathered(chunks())
        )
        if warnings:
            self._complain(warnings)
        self._expect(rows, stored)
        return rows

    def insert(self, pieces: Iterable[LoadPiece], open_lob: Open, packet: int) -> int:
        """Insert the rows, many at a time."""
        rows = 0
        kept = [quote(c.name) for c in self._columns if not c.computed]
        head = f"INSERT INTO {self._place} ({', '.join(kept)}) VALUES\n".encode()
        limit = min(_STATEMENT, packet // 2)
        lines: list[bytes] = []
        size = 0
        for piece in pieces:
            for item in piece.items:
                assert isinstance(item, Batch)
                for line in self._rows(item, open_lob):
                    if len(line) > packet - len(head) - 64:
                        raise DatabaseError(
                            f"{self._where}: a row of {len(line)} bytes is longer than the "
                            "server's max_allowed_packet; raise that, or switch local_infile on"
                        )
                    if lines and size + len(line) > limit:
                        rows += self._run(head, lines)
                        lines, size = [], 0
                    lines.append(line)
                    size += len(line)
        if lines:
            rows += self._run(head, lines)
        return rows

    def _run(self, head: bytes, lines: list[bytes]) -> int:
        connection = self._session.connection
        stored: int = connection.query(head + b",\n".join(lines))
        if warnings := connection.show_warnings():
            self._complain(len(warnings))
        self._expect(len(lines), stored)
        return len(lines)

    def _rows(self, batch: Batch, open_lob: Open) -> Iterator[bytes]:
        width = len(self._columns)
        found = cells_of(batch)
        for start in range(0, len(found), width):
            literals = [
                self._literal(column, cell, open_lob)
                for column, cell in zip(self._columns, found[start : start + width], strict=True)
                if not column.computed
            ]
            yield b"(" + b",".join(literals) + b")"

    def _literal(self, column: NewColumn, cell: bytes, open_lob: Open) -> bytes:
        if cell == NULL:
            return b"NULL"
        if not isinstance(column.shape, Leaf):
            cell = _json(cell, column.shape).encode()
        elif cell.startswith(REF):
            with open_lob(cell[1:]) as stream:
                content = stream.read()
            cell = content.hex().encode() if column.shape.type.kind is Kind.BINARY else content
        if column.raw:
            return b"x'" + cell + b"'"
        literal = b"'" + cell.replace(b"\\", b"\\\\").replace(b"'", b"\\'") + b"'"
        marked = column.value("\0")
        return literal if marked is None else marked.encode().replace(b"\0", literal)

    def _statement(self) -> str:
        targets, values = [], []
        for number, column in enumerate(self._columns):
            value = column.value(f"@c{number}")
            if column.computed or value is not None:
                targets.append(f"@c{number}")
            else:
                targets.append(quote(column.name))
            if value is not None and not column.computed:
                values.append(f"{quote(column.name)}={value}")
        end = f" SET {', '.join(values)}" if values else ""
        return (
            f"LOAD DATA LOCAL INFILE 'rows' INTO TABLE {self._place} CHARACTER SET binary"
            " FIELDS TERMINATED BY x'FF' ESCAPED BY '\\\\' LINES TERMINATED BY x'FD'"
            f" ({', '.join(targets)}){end}"
        )

    def _complain(self, count: int) -> None:
        """Stop, unless all that was said is about values which enumerations hold as errors."""
        found = self._session.rows("SHOW WARNINGS")
        labels = {c.name for c in self._columns if c.native and c.native.name == "enum"}
        for _, code, text in found:
            # 1638: the separators are not ASCII. Here they are bytes, which works.
            expected = code == 1638 or (code == 1265 and any(f"'{n}'" in text for n in labels))
            if not expected or len(found) < min(count, 65535):
                raise DatabaseError(
                    f"{self._where}: a value would not be stored as it is; the server says: {text}"
                )

    def _expect(self, sent: int, stored: int) -> None:
        if sent != stored:
            raise DatabaseError(
                f"{self._where}: {sent} rows were sent and the server kept {stored}"
            )


def _gathered(chunks: Iterator[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= _PIECE:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
