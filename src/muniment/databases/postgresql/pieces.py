"""Batches on their way into PostgreSQL: COPY text, made in bulk, with gaps for large objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from muniment.databases.postgresql.copytext import encode_rows, encode_text
from muniment.databases.postgresql.literals import array_text, record_text
from muniment.errors import DatabaseError
from muniment.sql.batch import (
    CELL,
    NULL,
    OPEN,
    REF,
    ROW,
    Batch,
    cell_bytes,
    cell_value,
    cells_of,
    parts_of,
)
from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind

__all__ = ["PostgresqlEncoder", "PostgresqlPiece", "copy_chunks", "cut_rows"]

_GAP = b"\xf6"  # where the content of a large object goes
_READ = 1 << 20
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
_AMOUNT = re.compile(rb"([0-9]+(?:\.[0-9]+)?[YMDHS])")
_NUMERAL = rb"[+-]?0*+[0-9]{0,%d}+(?:\.[0-9]{0,%d}+0*+)?+"


@dataclass(frozen=True, slots=True)
class PostgresqlPiece:
    """A part on its way: COPY text, and batches whose large objects have still to be fetched."""

    items: tuple[bytes | Batch, ...]
    rows: int


@dataclass(frozen=True)
class PostgresqlEncoder:
    """Turns batches into COPY text; runs in worker processes."""

    where: str
    columns: tuple[str, ...]
    shapes: tuple[Shape, ...]
    dropped: tuple[int, ...] = ()  # columns that the server computes
    trusted: bool = True  # whether numbers are known to fit their declarations
    waiting: bool = False  # whether batches have to be looked at by the process that writes

    @property
    def plain(self) -> bool:
        """Whether rows are sent without looking at single cells."""
        changed = self.dropped or self.waiting or any(map(_changes, self.shapes))
        return self.trusted and not changed

    def __call__(self, batches: Iterable[Batch]) -> PostgresqlPiece:
        items: list[bytes | Batch] = []
        held: list[bytes] = []
        rows = 0
        for batch in batches:
            if REF in batch.data or self.waiting:
                if held:
                    items.append(b"".join(held))
                    held = []
                items.append(batch)
            else:
                held.append(self.encode(batch, rows + 1))
            rows += batch.rows
        if held:
            items.append(b"".join(held))
        return PostgresqlPiece(tuple(items), rows)

    def encode(self, batch: Batch, first: int = 1) -> bytes:
        """Return a batch as COPY text; cells that hold a large object are gaps already."""
        data = batch.data
        if b"\x00" in data or (b"\xed" in data and _SURROGATE.search(data)):
            self._refuse(batch, first)
        changes = [k for k, shape in enumerate(self.shapes) if _changes(shape)]
        checks = [] if self.trusted else [k for k, s in enumerate(self.shapes) if _is_bounded(s)]
        if changes or checks or self.dropped:
            data = self._changed(batch, changes, checks, first)
        return encode_rows(data)

    def _changed(self, batch: Batch, changes: list[int], checks: list[int], first: int) -> bytes:
        cells, width = cells_of(batch), len(self.shapes)
        for k in checks:
            self._check(k, cells[k::width], first)
        for k in changes:
            cells[k::width] = _column(cells[k::width], self.shapes[k])
        kept = [k for k in range(width) if k not in self.dropped]
        columns = [cells[k::width] for k in kept]
        return b"".join([CELL.join(row) + ROW for row in zip(*columns, strict=True)])

    def _check(self, k: int, cells: list[bytes], first: int) -> None:
        shape = self.shapes[k]
        assert isinstance(shape, Leaf) and shape.type.length is not None
        scale = shape.type.scale or 0
        form = re.compile(_NUMERAL % (max(shape.type.length - scale, 0), scale))
        for row, cell in enumerate(cells, first):
            if cell != NULL and not form.fullmatch(cell):
                raise DatabaseError(
                    f"{self.where}.{self.columns[k]}, row {row}: {cell.decode('utf-8', 'replace')}"
                    f" does not fit {shape.type}, and PostgreSQL would round it; restore into"
                    " another product"
                )

    def _refuse(self, batch: Batch, first: int) -> None:
        for number, cell in enumerate(cells_of(batch)):
            if b"\x00" in cell or _SURROGATE.search(cell):
                what = "the character U+0000" if b"\x00" in cell else "half of a surrogate pair"
                row, k = divmod(number, len(self.columns))
                raise DatabaseError(
                    f"{self.where}.{self.columns[k]}, row {first + row} holds {what}, which"
                    " PostgreSQL cannot store; leave the table out or restore into another product"
                )


def _changes(shape: Shape) -> bool:
    if not isinstance(shape, Leaf):
        return True
    return shape.type.kind in (Kind.BINARY, Kind.DATALINK, Kind.INTERVAL)


def _is_bounded(shape: Shape) -> bool:
    return (
        isinstance(shape, Leaf)
        and shape.type.kind is Kind.DECIMAL
        and shape.type.length is not None
    )


def _column(cells: list[bytes], shape: Shape) -> list[bytes]:
    """Return a column as PostgreSQL reads it."""
    if not isinstance(shape, Leaf):
        return [cell if cell == NULL else _literal(cell, shape) for cell in cells]
    if shape.type.kind is Kind.INTERVAL:
        return [_duration(cell) if cell.startswith(b"-") else cell for cell in cells]
    return [cell if cell == NULL else b"\\x" + cell for cell in cells]


def _duration(cell: bytes) -> bytes:
    """PostgreSQL wants the sign at each part."""
    return _AMOUNT.sub(rb"-\1", cell[1:])


def _literal(cell: bytes, shape: Shape) -> bytes:
    if isinstance(shape, Leaf):
        return _column([cell], shape)[0] if _changes(shape) else cell
    inner: list[bytes | None] = []
    for number, part in enumerate(parts_of(cell)):
        kind = shape.element if isinstance(shape, Array) else shape.parts[number]
        inner.append(None if part == NULL else _literal(part, kind))
    if isinstance(shape, Struct):
        inner += [None] * (len(shape.parts) - len(inner))
        return record_text(inner)
    return array_text(inner)


def copy_chunks(
    encoder: PostgresqlEncoder,
    pieces: Iterable[PostgresqlPiece],
    open_lob: Callable[[bytes], BinaryIO],
) -> Iterator[bytes]:
    """Yield the COPY text of all pieces, large objects included, some bytes at a time."""
    for piece in pieces:
        for item in piece.items:
            if isinstance(item, bytes):
                yield item
            else:
                yield from _filled(encoder, item, open_lob)


def _filled(
    encoder: PostgresqlEncoder, batch: Batch, open_lob: Callable[[bytes], BinaryIO]
) -> Iterator[bytes]:
    cells, width = cells_of(batch), len(encoder.shapes)
    references: list[tuple[bytes, bool]] = []
    for number, cell in enumerate(cells):
        shape = encoder.shapes[number % width]
        if cell.startswith(REF) and number % width not in encoder.dropped:
            binary = isinstance(shape, Leaf) and shape.type.kind is not Kind.TEXT
            references.append((cell[1:], binary))
            cells[number] = _GAP
        elif cell.startswith(OPEN) and REF in cell:
            cells[number] = cell_bytes(cell_value(cell, lambda r: _whole(open_lob, r)))
    rows = zip(*[iter(cells)] * width, strict=True)
    gaps = Batch(b"".join([CELL.join(row) + ROW for row in rows]), batch.rows)
    before, *after = encoder.encode(gaps).split(_GAP)
    yield before
    for (reference, binary), text in zip(references, after, strict=True):
        with open_lob(reference) as stream:
            while chunk := stream.read(_READ):
                if not binary and b"\x00" in chunk:
                    encoder._refuse(Batch(b"\x00" + CELL * (width - 1) + ROW, 1), 1)
                yield chunk.hex().encode() if binary else encode_text(chunk)
        yield text


def _whole(open_lob: Callable[[bytes], BinaryIO], reference: bytes) -> str:
    with open_lob(reference) as stream:
        return stream.read().decode("utf-8", "surrogatepass")


def cut_rows(pieces: Iterable[PostgresqlPiece], count: int) -> Iterator[PostgresqlPiece]:
    """Yield only so many rows; the rest is read all the same, to be counted."""
    for piece in pieces:
        items: list[bytes | Batch] = []
        taken = 0
        for item in piece.items:
            ending = ROW if isinstance(item, Batch) else b"\n"
            data = item.data if isinstance(item, Batch) else item
            rows = data.count(ending)
            if rows > count:
                data = b"".join([line + ending for line in data.split(ending)[:count]])
                rows = count
            count -= rows
            taken += rows
            items.append(Batch(data, rows) if isinstance(item, Batch) else data)
        yield PostgresqlPiece(tuple(items), taken)
