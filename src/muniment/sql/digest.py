"""Two digests of a table's content, independent of file formats and tools.

The *content digest* does not depend on the order of rows: it is the sum, modulo 2**256, of the
SHA-256 of each row in the spelling of ``sql.batch``. The *ordered digest* is siard-digest-1:
SHA-256 over column names and types, then for each cell ``N`` for NULL or a netstring of its value
(raw octets for binary values, complex values in braces), and a line feed after each row.

Values longer than LARGE octets enter the content digest by length and SHA-256, wherever they lie.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import BinaryIO

from muniment.kernels import digest_kernel
from muniment.sql.batch import (
    CELL,
    CLOSE,
    ITEM,
    NULL,
    OPEN,
    REF,
    ROW,
    Batch,
    cells_of,
    null_positions,
    parts_of,
    rows_of,
)  # fmt: skip
from muniment.sql.lengths import may_exceed
from muniment.sql.model import Array, Column, Leaf, Shape
from muniment.sql.types import Kind
from muniment.sql.values import part_shape

__all__ = ["LARGE", "BucketDigest", "Canonical", "ContentDigest", "OrderedDigest", "row_digests"]

LARGE = 4000
_SHORT = 1000  # octets of a row on average; hashing others takes so long that Python does as well
_CHUNK = 1 << 20
Open = Callable[[bytes], BinaryIO]


class Canonical:
    """Replaces large values by their length and digest, so that their place does not matter."""

    def __init__(self, shapes: Sequence[Shape], open_lob: Open) -> None:
        self._width = len(shapes)
        self._open = open_lob
        self._shapes = tuple(shapes)
        self._large = any(map(_may_be_large, shapes))

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with no value longer than LARGE octets, and no reference."""
        if REF not in batch.data and not (self._large and may_exceed(batch, LARGE)):
            return batch
        cells = cells_of(batch)
        for k, shape in enumerate(self._shapes):
            cells[k :: self._width] = [self._cell(c, shape) for c in cells[k :: self._width]]
        rows = zip(*[iter(cells)] * self._width, strict=True)
        return Batch(b"".join([CELL.join(row) + ROW for row in rows]), batch.rows)

    def _cell(self, cell: bytes, shape: Shape) -> bytes:
        binary = isinstance(shape, Leaf) and shape.type.kind in (Kind.BINARY, Kind.DATALINK)
        if cell.startswith(REF):
            return self._stored(cell[1:], binary)
        if len(cell) <= LARGE and REF not in cell:
            return cell
        if cell.startswith(OPEN):
            parts = enumerate(parts_of(cell))
            inner = (self._cell(p, part_shape(shape, n)) + ITEM for n, p in parts)
            return OPEN + b"".join(inner) + CLOSE
        value = bytes.fromhex(cell.decode()) if binary else cell
        if len(value) <= LARGE:
            return cell
        return REF + b"%d:%b" % (len(value), hashlib.sha256(value).hexdigest().encode())

    def _stored(self, reference: bytes, binary: bool) -> bytes:
        digest, length = hashlib.sha256(), 0
        with self._open(reference) as stream:
            first = stream.read(LARGE + 1)
            if len(first) <= LARGE and not stream.read(1):
                return first.hex().upper().encode() if binary else first
            chunk = first
            while chunk:
                digest.update(chunk)
                length += len(chunk)
                chunk = stream.read(_CHUNK)
        return REF + b"%d:%b" % (length, digest.hexdigest().encode())


def _may_be_large(shape: Shape) -> bool:
    if isinstance(shape, Leaf):
        return shape.type.large
    return any(map(_may_be_large, (shape.element,) if isinstance(shape, Array) else shape.parts))


def row_digests(batch: Batch) -> list[bytes]:
    """Return the SHA-256 of each row."""
    sha256 = hashlib.sha256
    return [sha256(row).digest() for row in rows_of(batch)]


class ContentDigest:
    """The order-independent digest of rows."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def update(self, batch: Batch) -> None:
        """Take the rows of a batch, already canonical."""
        short = len(batch.data) < _SHORT * batch.rows
        kernel = digest_kernel() if short else None
        self._sum += kernel(batch.data) if kernel else sum(map(_number, row_digests(batch)))
        self.rows += batch.rows

    def add(self, other: ContentDigest) -> None:
        """Take the rows that another digest has taken."""
        self._sum += other._sum
        self.rows += other.rows

    def hexdigest(self) -> str:
        """The digest, 64 hexadecimal digits."""
        return f"{self._sum % (1 << 256):064x}"

    def plus(self, other: ContentDigest) -> str:
        """The digest of these rows and those of another digest together."""
        return f"{(self._sum + other._sum) % (1 << 256):064x}"


class BucketDigest(ContentDigest):
    """A content digest that also keeps a sum for each of 65,536 groups of rows.

    Two tables that differ differ in few groups; only the rows of those have to be looked at again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.buckets = [0] * (1 << 16)

    def update(self, batch: Batch) -> None:
        for digest in row_digests(batch):
            number = _number(digest)
            self._sum += number
            self.buckets[digest[0] << 8 | digest[1]] += number
        self.rows += batch.rows


_number = partial(int.from_bytes, byteorder="big")


_LONGEST = 4096  # octets of a value that takes the quick way


@lru_cache
def _prefixes(before: bytes, more: int) -> list[bytes]:
    """What stands before a value of each length: the end of the value before it, and the length.

    ``more`` octets follow the value that are not in its cell.
    """
    return [before + b"%d:" % (length + more) for length in range(_LONGEST + 1)]


class OrderedDigest:
    """siard-digest-1 of rows in their order."""

    def __init__(self, columns: Sequence[Column], shapes: Sequence[Shape], open_lob: Open) -> None:
        self._shapes, self._open = tuple(shapes), open_lob
        self._simple = all(isinstance(s, Leaf) and s.type.kind is not Kind.BINARY for s in shapes)
        self._digest = hashlib.sha256()
        for column in columns:
            array = f" ARRAY[{column.cardinality}]" if column.cardinality is not None else ""
            for text in (column.name, f"{column.type}{array}"):
                data = text.encode("utf-8", "surrogatepass")
                self._digest.update(b"%d:%b," % (len(data), data))
        self._digest.update(b"\n")
        # A date or time ends with Z, which its cell leaves out: it goes before the next value.
        utc = [isinstance(s, Leaf) and s.type.kind in _UTC for s in shapes]
        self._ends = [b"Z," if zone else b"," for zone in utc]
        befores = [self._ends[-1] + b"\n", *self._ends[:-1]]
        self._prefixes = [
            _prefixes(before, zone) for before, zone in zip(befores, utc, strict=True)
        ]

    def update(self, batch: Batch) -> None:
        """Take the rows of a batch; large values may be references."""
        if not batch.rows:
            return
        cells = cells_of(batch)
        lengths = list(map(len, cells))
        if self._simple and REF not in batch.data and max(lengths) <= _LONGEST:
            self._digest.update(self._netstrings(batch, cells, lengths))
        else:
            self._careful(cells)

    def _netstrings(self, batch: Batch, cells: list[bytes], lengths: list[int]) -> bytes:
        width = len(self._shapes)
        pieces = [*cells, *cells, b""]
        pieces[1::2] = cells
        plain = _prefixes(b",", 0)
        pieces[0:-1:2] = map(plain.__getitem__, lengths)
        for k, prefixes in enumerate(self._prefixes):
            if prefixes is not plain:
                pieces[2 * k : -1 : 2 * width] = map(prefixes.__getitem__, lengths[k::width])
        pieces[0] = b"%d:" % (lengths[0] + len(self._ends[0]) - 1)
        pieces[-1] = self._ends[-1] + b"\n"
        if NULL in batch.data:
            for position in null_positions(batch, width):
                # The prefix of NULL ends with the length of its one byte; the next prefix begins
                # with the end of a value that is not there.
                pieces[2 * position] = pieces[2 * position][:-2] + b"N"
                pieces[2 * position + 1] = b""
                end = len(self._ends[position % width])
                pieces[2 * position + 2] = pieces[2 * position + 2][end:]
        return b"".join(pieces)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()

    def _careful(self, cells: list[bytes]) -> None:
        width = len(self._shapes)
        for position, cell in enumerate(cells):
            self._put(cell, self._shapes[position % width])
            if position % width == width - 1:
                self._digest.update(b"\n")

    def _put(self, cell: bytes, shape: Shape) -> None:
        if cell == NULL:
            self._digest.update(b"N")
        elif cell.startswith(OPEN):
            self._digest.update(b"{")
            for number, part in enumerate(parts_of(cell)):
                self._put(part, part_shape(shape, number))
            self._digest.update(b"}")
        elif cell.startswith(REF):
            self._put_stored(cell[1:])
        else:
            value = _decoded(cell, shape)
            self._digest.update(b"%d:%b," % (len(value), value))

    def _put_stored(self, reference: bytes) -> None:
        # The length goes first, so the object is read twice: once to measure, once to digest.
        length = 0
        with self._open(reference) as stream:
            while chunk := stream.read(_CHUNK):
                length += len(chunk)
        self._digest.update(b"%d:" % length)
        with self._open(reference) as stream:
            while chunk := stream.read(_CHUNK):
                self._digest.update(chunk)
        self._digest.update(b",")


_UTC = {Kind.DATE, Kind.TIME, Kind.TIMESTAMP}


def _decoded(cell: bytes, shape: Shape) -> bytes:
    if isinstance(shape, Leaf) and shape.type.kind is Kind.BINARY:
        return bytes.fromhex(cell.decode())
    if isinstance(shape, Leaf) and shape.type.kind in _UTC:
        return cell + b"Z"
    return cell
