"""The comparison of one table: equal streams, equal digests, or the rows that differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

from muniment.compare.sides import NotPlain, Read, Reader, Side, TooMuch, Written, no_lob
from muniment.definitions import Difference
from muniment.errors import Unfit
from muniment.siard import SiardSource
from muniment.siard.rows import RowWriter
from muniment.sql.batch import CELL, REF, ROW, Batch, Cell, cell_value, rows_of
from muniment.sql.digest import BucketDigest, ContentDigest, OrderedDigest, row_digests
from muniment.sql.model import Database, Leaf, Shape, shape_of
from muniment.sql.stores import Source
from muniment.transfer import Progress
from muniment.workers import Beside

__all__ = ["TableComparer", "TableComparison"]

_SHOWN = 10
_GROUPS = 2 * _SHOWN  # each has a row of one side at least
_MOST_ROWS = 1000  # of a few keys
_BEHIND = 16  # batches that wait for their digest
_STORED = re.compile(rb'<c\d+ file="')  # a value in a file of its own


@dataclass(frozen=True, slots=True)
class TableComparison:
    """One table on both sides; None stands for a side that does not have it."""

    schema: str
    table: str
    rows: tuple[int | None, int | None]
    digest: tuple[str | None, str | None]
    ordered_digest: tuple[str | None, str | None]
    equal: bool


class TableComparer:
    """The comparison of one table."""

    def __init__(self, side: Side, right: Source, database: Database, a: Read, b: Read) -> None:
        self._side, self._right, self._database, self._a, self._b = side, right, database, a, b
        self._buffer = b""
        self._at = 0
        self._seen = 0  # bytes

    def run(self, progress: Callable[[Progress], None]) -> tuple[TableComparison, list[Difference]]:
        """Return the table's comparison and the first differences in its rows."""
        same_head = [(c.name, str(c.type), c.cardinality) for c in self._a.table.columns] == [
            (c.name, str(c.type), c.cardinality) for c in self._b.table.columns
        ]
        if same_head and (result := self._predicted(progress)) is not None:
            return result, []
        self._stream = self._side.read(self._a)
        apart = self._b.ordered and not same_head
        reader = Reader(self._right, self._database, self._b, ordered=apart)
        shared = ContentDigest()
        batches = reader.batches()
        differing: Batch | None = None
        for batch in batches:
            if not self._next_is(batch.data):
                differing = batch
                break
            shared.update(batch)
            self._seen += len(batch.data)
            self._tell(progress, shared.rows)
        rest = self._rest()
        if differing is None and not rest:
            digest, ordered = shared.hexdigest(), self._side.outcome
            other = ordered if same_head else reader.ordered
            return self._result((shared.rows,) * 2, (digest,) * 2, (ordered, other)), []
        return self._parted(shared, rest, differing, batches, reader)

    def _predicted(self, progress: Callable[[Progress], None]) -> TableComparison | None:
        """Return the comparison if the archive's XML is just what the other side's rows make."""
        shapes = [shape_of(self._database, self._b.schema.name, c) for c in self._b.table.columns]
        native = (self._database.producer_application or "").startswith("Muniment ")
        plain = all(isinstance(shape, Leaf) for shape in shapes) and not self._b.normal.forms
        if not (native and plain and isinstance(self._right, SiardSource)):
            return None
        if _STORED.search(self._expected().peek()):
            return None
        try:
            if not self._b.ordered and (written := self._side.written(self._a)) is not None:
                return self._predicted_by_parts(written, progress)
        except TooMuch:
            pass
        except (NotPlain, Unfit):
            return None
        return self._predicted_in_order(shapes, progress)

    def _predicted_by_parts(
        self, written: Iterator[Written], progress: Callable[[Progress], None]
    ) -> TableComparison:
        """Let the other side write its parts as XML, several at a time."""
        xml, content = self._expected(), ContentDigest()
        for part in written:
            for piece in part.xml:
                xml.expect(piece)
                self._seen += len(piece)
            content.add(part.digest)
            self._tell(progress, content.rows)
        xml.expect_end()
        return self._result((content.rows,) * 2, (content.hexdigest(),) * 2, (None, None))

    def _predicted_in_order(
        self, shapes: Sequence[Shape], progress: Callable[[Progress], None]
    ) -> TableComparison | None:
        table = self._b.table
        xml, writer = self._expected(), RowWriter("", table.columns, shapes)
        ordered = OrderedDigest(table.columns, shapes, no_lob) if self._b.ordered else None
        stream, content, rows = self._side.read(replace(self._a, plain=True)), ContentDigest(), 0
        try:
            with Beside(_BEHIND) as beside:
                for data in stream:
                    batch = Batch(data, data.count(ROW))
                    beside(content.update, batch)
                    if ordered:
                        beside(ordered.update, batch)
                    xml.expect(writer(batch, trusted=True))
                    rows += batch.rows
                    self._seen += len(data)
                    self._tell(progress, rows)
            xml.expect_end()
        except (NotPlain, Unfit):
            with suppress(NotPlain, Unfit):  # what the other process has still to say
                for _ in stream:
                    pass
            return None
        digest, digest1 = content.hexdigest(), ordered.hexdigest() if ordered else None
        return self._result((content.rows,) * 2, (digest,) * 2, (digest1,) * 2)

    def _expected(self) -> _Expected:
        assert isinstance(self._right, SiardSource)
        return _Expected(self._right.rows_xml(self._b.schema, self._b.table))

    def _tell(self, progress: Callable[[Progress], None], rows: int) -> None:
        table = self._b.table
        total = table.rows or None
        progress(Progress(self._b.schema.name, table.name, rows, total, self._seen))

    def _next_is(self, data: bytes) -> bool:
        """Whether the other side continues with these bytes; if so, they are consumed."""
        while len(self._buffer) - self._at < len(data):
            more = next(self._stream, None)
            if more is None:
                return False
            self._buffer = self._buffer[self._at :] + more
            self._at = 0
        end = self._at + len(data)
        if self._buffer[self._at : end] != data:
            return False
        self._at = end
        return True

    def _rest(self) -> bytes:
        if self._at == len(self._buffer):
            self._buffer, self._at = next(self._stream, b""), 0
        return self._buffer[self._at :]

    def _parted(
        self,
        shared: ContentDigest,
        rest: bytes,
        batch: Batch | None,
        batches: Iterator[Batch],
        reader: Reader,
    ) -> tuple[TableComparison, list[Difference]]:
        """Digest what is left of both sides, and look closer if that differs too."""
        left, right = BucketDigest(), BucketDigest()
        while batch is not None:
            right.update(batch)
            batch = next(batches, None)
        while rest:
            left.update(Batch(rest, rest.count(ROW)))
            rest = next(self._stream, b"")
        rows = (shared.rows + left.rows, shared.rows + right.rows)
        digests = (shared.plus(left), shared.plus(right))
        ordered = (self._side.outcome, reader.ordered or self._ordered_again())
        result = self._result(rows, digests, ordered)
        if result.equal or self._a.names != self._b.names:
            return result, []
        return result, list(self._find(shared.rows, left, right))

    def _ordered_again(self) -> str | None:
        if not self._b.ordered:
            return None
        reader = Reader(self._right, self._database, self._b, ordered=True)
        for _ in reader.batches():
            pass
        return reader.ordered

    def _result(
        self,
        rows: tuple[int, int],
        digests: tuple[str, str],
        ordered: tuple[str | None, str | None],
    ) -> TableComparison:
        equal = rows[0] == rows[1] and digests[0] == digests[1]
        name = self._b.table.name
        return TableComparison(self._b.schema.name, name, rows, digests, ordered, equal)

    def _find(self, skip: int, left: BucketDigest, right: BucketDigest) -> Iterator[Difference]:
        pairs = enumerate(zip(left.buckets, right.buckets, strict=True))
        groups = {number for number, (x, y) in pairs if x != y}
        groups = set(sorted(groups)[:_GROUPS])
        key, sure = self._key()
        if not sure:
            skip = 0  # a row may occur before, too, and it is told how often it does
        all_a = Counter(_rows_in(self._left_batches(), skip, groups))
        all_b = Counter(_rows_in(self._right_batches(), skip, groups))
        if not key:
            yield from _count_differences(self._b, all_a, all_b)
            return
        # The other row of a key is in another group, as a rule, which may be none of these.
        wanted = _Keyed([self._b.names.index(name) for name in key])
        wanted.want([*(all_a - all_b), *(all_b - all_a)])
        all_a = Counter(wanted.rows_in(self._left_batches()))
        all_b = Counter(wanted.rows_in(self._right_batches()))
        rows = list((all_a - all_b).elements()), list((all_b - all_a).elements())
        yield from _row_differences(self._b, key, *rows)

    def _left_batches(self) -> Iterator[Batch]:
        return (Batch(data, data.count(ROW)) for data in self._side.read(self._a))

    def _right_batches(self) -> Iterator[Batch]:
        return Reader(self._right, self._database, self._b, ordered=False).batches()

    def _key(self) -> tuple[tuple[str, ...], bool]:
        """The columns that rows are paired by, and whether they are the key of both sides.

        A side may lack the column of the other one's key.
        """
        keys = [read.table.primary_key for read in (self._b, self._a)]
        usable = [key.columns for key in keys if key and set(self._b.names).issuperset(key.columns)]
        return (usable[0] if usable else ()), len(usable) == 2 and usable[0] == usable[1]


class _Keyed:
    """Finds the rows of the first keys that rows differ in."""

    def __init__(self, key: Sequence[int]) -> None:
        self._key = key
        self._keys: set[tuple[bytes, ...]] = set()

    def want(self, rows: Sequence[bytes]) -> None:
        for row in rows:
            if len(self._keys) < _SHOWN:
                self._keys.add(_key(row, self._key))

    def rows_in(self, batches: Iterator[Batch]) -> Iterator[bytes]:
        """Yield the rows with these keys; not all of them if a key is none, and has thousands."""
        firsts = {key[0] for key in self._keys}
        found = 0
        for batch in batches:  # to the end: another process may be about to send more
            if found >= _MOST_ROWS or not any(first in batch.data for first in firsts):
                continue
            for row in rows_of(batch):
                if _key(row, self._key) in self._keys:
                    found += 1
                    yield row


def _rows_in(batches: Iterator[Batch], skip: int, groups: set[int]) -> Iterator[bytes]:
    """Yield the rows after the first ``skip`` that fall into the given groups."""
    for batch in batches:
        if skip >= batch.rows:
            skip -= batch.rows
            continue
        for row, digest in list(zip(rows_of(batch), row_digests(batch), strict=True))[skip:]:
            if digest[0] << 8 | digest[1] in groups:
                yield row
        skip = 0


def _count_differences(read: Read, a: Counter[bytes], b: Counter[bytes]) -> Iterator[Difference]:
    """Say how often rows without a key occur, for the first that do not occur as often."""
    names = read.names
    place = f"{read.schema.name}.{read.table.name}"
    differing = [row for row in {**a, **b} if a[row] != b[row]]
    for row in differing[:_SHOWN]:
        where = f"{place} ({_spell(row, range(len(names)), names)})"
        yield Difference(where, _times(a[row]), _times(b[row]))


def _times(count: int) -> str:
    if count < 2:
        return "a row" if count else "no such row"
    return f"{count} such rows"


def _row_differences(
    read: Read, columns: Sequence[str], a: list[bytes], b: list[bytes]
) -> Iterator[Difference]:
    """Pair the rows by their key, and name the columns that differ."""
    names = read.names
    key = [names.index(name) for name in columns]
    others: dict[tuple[bytes, ...], list[bytes]] = {}
    for row in b:
        others.setdefault(_key(row, key), []).append(row)
    place = f"{read.schema.name}.{read.table.name}"
    shown = 0
    for row in a:
        if shown >= _SHOWN:
            return
        same_key = others.get(_key(row, key))
        other = same_key.pop() if same_key else None
        where = f"{place} ({_spell(row, key, names)})"
        if other is None:
            yield Difference(where, "a row", "no such row")
        else:
            for name, x, y in zip(names, row.split(CELL), other.split(CELL), strict=True):
                if x != y:
                    yield Difference(f"{where}.{name}", _show(x), _show(y))
        shown += 1
    for row in chain.from_iterable(others.values()):
        if shown >= _SHOWN:
            return
        yield Difference(f"{place} ({_spell(row, key, names)})", "no such row", "a row")
        shown += 1


def _key(row: bytes, key: Sequence[int]) -> tuple[bytes, ...]:
    cells = row.split(CELL)
    return tuple(cells[k] for k in key)


def _spell(row: bytes, positions: Sequence[int] | range, names: Sequence[str]) -> str:
    cells = row.split(CELL)
    return ", ".join(f"{names[k]}={_show(cells[k])}" for k in positions)


def _show(cell: bytes) -> str:
    if cell.startswith(REF):
        return _long(cell[1:])
    value: Cell = cell_value(cell, _long)
    if value is None:
        return "NULL"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}…"


def _long(reference: bytes) -> str:
    """What stands for a long value, or for one inside of a list."""
    length, _, digest = reference.decode().partition(":")
    return f"{length} bytes with SHA-256 {digest}"


class _Expected:
    """A stream of bytes that has to be what is expected of it."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held, self._at = chunks, b"", 0

    def peek(self) -> bytes:
        """Return some bytes of the start."""
        self._held = self._held or next(self._chunks, b"")
        return self._held

    def expect(self, data: bytes) -> None:
        """Consume the next bytes; raise NotPlain if they are others."""
        wanted, done = memoryview(data), 0
        while done < len(data):
            while self._at == len(self._held):
                more = next(self._chunks, None)
                if more is None:
                    raise NotPlain
                self._held, self._at = more, 0
            size = min(len(data) - done, len(self._held) - self._at)
            if not self._held.startswith(wanted[done : done + size], self._at):
                raise NotPlain
            self._at += size
            done += size

    def expect_end(self) -> None:
        """Make sure that the table ends here; this also reads the checksum of the file."""
        self.expect(b"</table>\n")
        if self._held[self._at :] or any(self._chunks):
            raise NotPlain
