"""Proof that two databases hold the same: definitions, row counts, content.

Both sides are streams of rows in one spelling. As long as the streams are equal byte for byte, one
side's digests are the other's, and each process computes half of them. An archive that Muniment
wrote need not even be parsed: the other side's rows say what its XML must be. Where the streams
part, both sides are digested on their own; if only the order differs, the content digests agree.
Otherwise the rows that differ are found group by group, in memory that does not grow with the
table.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from muniment import databases
from muniment.conversions import (
    archived_as_text,
    archived_types,
    pattern_of,
    refused_text,
    text_sentences,
)
from muniment.databases.tunnel import tunnelled
from muniment.datalinks import unlinked
from muniment.definitions import Difference, compare_definitions, matched_tables
from muniment.errors import Unfit, UnknownType, UsageError, WorkerDied
from muniment.normal import Normal, normal_forms
from muniment.siard import SiardSource, open_siard
from muniment.siard.lobs.folders import Root
from muniment.siard.rows import RowWriter
from muniment.siard.volumes import exists
from muniment.sql.batch import CELL, ROW, Batch, Cell, cell_value, rows_of
from muniment.sql.digest import BucketDigest, Canonical, ContentDigest, OrderedDigest, row_digests
from muniment.sql.model import Database, Leaf, Schema, Table, shape_of
from muniment.sql.selection import Selection
from muniment.sql.stores import Opener, Source
from muniment.transfer import Progress
from muniment.workers import deaf_children, default_jobs

__all__ = ["Comparison", "Difference", "TableComparison", "compare"]

_WORTH_A_PROCESS = 24 << 20
_MESSAGE = 1 << 19
_SHOWN = 10
_GROUPS = 8


@dataclass(frozen=True, slots=True)
class TableComparison:
    """One table on both sides; None stands for a side that does not have it."""

    schema: str
    table: str
    rows: tuple[int | None, int | None]
    digest: tuple[str | None, str | None]
    ordered_digest: tuple[str | None, str | None]
    equal: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict, and what it rests on."""

    equal: bool
    tables: tuple[TableComparison, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()  # how the sides had to be read to be comparable


@dataclass(frozen=True)
class _Read:
    """What to read of one side: a table, and the forms in which its values are compared."""

    schema: Schema
    table: Table
    normal: Normal
    ordered: bool = True  # with the ordered digest
    plain: bool = False  # small batches as they are; no large values


class _NotPlain(Exception):
    """A value is large, or the archive is spelt in an unexpected way: rows have to be parsed."""


def compare(
    a: str,
    b: str,
    *,
    jobs: int = 0,
    ordered: bool | None = None,
    statement_timeout: float | None = None,
    ssh: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    roots: Sequence[Root] = (),
) -> Comparison:
    """Compare two databases or SIARD files, in any combination.

    ``ordered`` digests (siard-digest-1) take about as long as all the rest; None means only where
    the smaller side is so small that nobody will notice.
    """
    servers = [name for name in (a, b) if databases.is_url(name) and not databases.file_of(name)]
    if ssh and not servers:
        raise UsageError("--ssh is for database servers; neither side is one")
    open_side = partial(_open, statement_timeout=statement_timeout, ssh=ssh, roots=roots)
    if databases.is_url(b) and not databases.is_url(a):  # the archive is better second
        return _turned(_compare(b, a, open_side, jobs, ordered, progress))
    return _compare(a, b, open_side, jobs, ordered, progress)


def _turned(found: Comparison) -> Comparison:
    tables = tuple(
        replace(t, rows=t.rows[::-1], digest=t.digest[::-1], ordered_digest=t.ordered_digest[::-1])
        for t in found.tables
    )
    return replace(
        found, tables=tables, differences=tuple(replace(d, a=d.b, b=d.a) for d in found.differences)
    )


def _compare(
    a: str,
    b: str,
    open_side: Callable[..., Any],
    jobs: int,
    ordered: bool | None,
    progress: Callable[[Progress], None],
) -> Comparison:
    """Compare; a database is read again if its archive turns out to have columns as text."""
    texts: set[str] = set()
    while True:
        known = len(texts)
        try:
            return _compare_once(a, b, open_side, jobs, ordered, progress, texts)
        except (Unfit, UnknownType) as error:
            if not databases.is_url(b) and databases.is_url(a):
                with open_side(b) as archive:
                    texts |= refused_text(error, archive.describe())
            if len(texts) == known:
                raise
        except _AsText:
            pass


class _AsText(Exception):
    """The archive has columns as text that were read as something else."""


def _compare_once(
    a: str,
    b: str,
    open_side: Callable[..., Any],
    jobs: int,
    ordered: bool | None,
    progress: Callable[[Progress], None],
    texts: set[str],
) -> Comparison:
    with ExitStack() as stack:
        left = stack.enter_context(open_side(a, as_text=tuple(map(pattern_of, texts))))
        right = stack.enter_context(open_side(b))
        archived = databases.is_url(a) and not databases.is_url(b)
        if databases.is_url(a) != databases.is_url(b):  # a database has links, not their files
            left, right = (unlinked(s) if isinstance(s, SiardSource) else s for s in (left, right))
        first, second = left.describe(), right.describe()
        if archived and (more := set(archived_as_text(first, second)) - texts):
            texts |= more
            raise _AsText
        notes = list(text_sentences(texts))
        size = min(left.size(), right.size())
        ordered = size < _WORTH_A_PROCESS if ordered is None else ordered
        side = stack.enter_context(_side(left, size, jobs))
        differences = list(compare_definitions(first, second))
        tables = []
        for pair in matched_tables(first, second):
            if pair.a is None or pair.b is None:
                tables.append(_one_sided(left, pair.a) if pair.a else _one_sided(right, pair.b))
                if pair.a is None:
                    tables[-1] = replace(tables[-1], rows=tables[-1].rows[::-1])
                continue
            schema, table = pair.a
            if archived and hasattr(left, "refit"):
                table = archived_types(pair.a, pair.b)
            while True:
                forms = normal_forms(first, second, (schema, table), pair.b)
                reads = _Read(schema, table, forms[0], ordered), _Read(*pair.b, forms[1], ordered)
                work = _TableComparer(side, right, second, *reads)
                try:
                    result, found = work.run(progress)
                    break
                except Unfit as unfit:
                    table = _refitted(left, schema, table, unfit)
            notes += _wider(pair.a, table)
            tables.append(result)
            differences += found
    equal = not differences and all(table.equal for table in tables)
    return Comparison(equal, tuple(tables), tuple(differences), tuple(notes))


def _refitted(source: Source, schema: Schema, table: Table, unfit: Unfit) -> Table:
    """The table with a wider type for a value that outgrew its declaration."""
    refit = getattr(source, "refit", None)
    wider: Table | None = refit(schema, table, unfit) if refit else None
    if wider is None:
        raise unfit
    return wider


def _wider(declared: tuple[Schema, Table], table: Table) -> Iterator[str]:
    for x, y in zip(declared[1].columns, table.columns, strict=True):
        if x.type != y.type:
            where = f"{declared[0].name}.{table.name}.{x.name}"
            yield f"{where} is declared {x.type_original} and holds more; compared as {y.type}"


def _one_sided(source: Source, present: tuple[Schema, Table] | None) -> TableComparison:
    assert present is not None
    schema, table = present
    parts = source.parts(schema, table)
    rows = sum(batch.rows for part in parts for batch in source.batches(schema, table, part))
    return TableComparison(schema.name, table.name, (rows, None), (None, None), (None, None), False)


@contextmanager
def _open(
    name: str,
    statement_timeout: float | None,
    ssh: str | None,
    roots: Sequence[Root],
    as_text: tuple[str, ...] = (),
) -> Iterator[Any]:
    if not databases.is_url(name):
        if not exists(Path(name)):
            raise UsageError(
                f"there is no {name}; name a database by its URL or a SIARD file by its path"
            )
        with open_siard(Path(name), roots) as archive:
            yield archive
        return
    through = None if databases.file_of(name) else ssh
    with (
        tunnelled(name, through) as place,
        databases.open_source(
            place, Selection(as_text=as_text), statement_timeout=statement_timeout
        ) as source,
    ):
        yield source


class _TableComparer:
    """The comparison of one table."""

    def __init__(self, side: _Side, right: Source, database: Database, a: _Read, b: _Read) -> None:
        self._side, self._right, self._database, self._a, self._b = side, right, database, a, b
        self._buffer = b""
        self._at = 0

    def run(self, progress: Callable[[Progress], None]) -> tuple[TableComparison, list[Difference]]:
        """Return the table's comparison and the first differences in its rows."""
        same_head = [(c.name, str(c.type), c.cardinality) for c in self._a.table.columns] == [
            (c.name, str(c.type), c.cardinality) for c in self._b.table.columns
        ]
        if same_head and (result := self._predicted(progress)) is not None:
            return result, []
        self._stream = self._side.read(self._a)
        apart = self._b.ordered and not same_head
        reader = _Reader(self._right, self._database, self._b, ordered=apart)
        shared = ContentDigest()
        batches = reader.batches()
        differing: Batch | None = None
        for batch in batches:
            if not self._next_is(batch.data):
                differing = batch
                break
            shared.update(batch)
            name = self._b.table
            progress(Progress(self._b.schema.name, name.name, shared.rows, name.rows or None, 0))
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
        schema, table = self._b.schema, self._b.table
        xml = _Expected(self._right.rows_xml(schema, table))
        writer = RowWriter("", table.columns, shapes)
        ordered = OrderedDigest(table.columns, shapes, _no_lob) if self._b.ordered else None
        stream, content = self._side.read(replace(self._a, plain=True)), ContentDigest()
        try:
            for data in stream:
                batch = Batch(data, data.count(ROW))
                xml.expect(writer(batch, trusted=True))
                content.update(batch)
                if ordered:
                    ordered.update(batch)
                progress(Progress(schema.name, table.name, content.rows, table.rows or None, 0))
            xml.expect(b"</table>\n")
            xml.expect_end()
        except (_NotPlain, Unfit):
            with suppress(_NotPlain, Unfit):  # what the other process has still to say
                for _ in stream:
                    pass
            return None
        digest, digest1 = content.hexdigest(), ordered.hexdigest() if ordered else None
        return self._result((content.rows,) * 2, (digest,) * 2, (digest1,) * 2)

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
        reader: _Reader,
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
        alike = [c.name for c in self._a.table.columns] == [c.name for c in self._b.table.columns]
        if result.equal or not alike:
            return result, []
        return result, list(self._find(shared.rows, left, right))

    def _ordered_again(self) -> str | None:
        if not self._b.ordered:
            return None
        reader = _Reader(self._right, self._database, self._b, ordered=True)
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
        chunks = (Batch(data, data.count(ROW)) for data in self._side.read(self._a))
        only_a = Counter(_rows_in(chunks, skip, groups))
        reader = _Reader(self._right, self._database, self._b, ordered=False)
        only_b = Counter(_rows_in(reader.batches(), skip, groups))
        only_a, only_b = only_a - only_b, only_b - only_a
        yield from _row_differences(self._b, list(only_a.elements()), list(only_b.elements()))


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


def _row_differences(read: _Read, a: list[bytes], b: list[bytes]) -> Iterator[Difference]:
    """Pair the rows by their key, and name the columns that differ."""
    table = read.table
    names = [column.name for column in table.columns]
    key = [names.index(name) for name in table.primary_key.columns] if table.primary_key else []
    others = {_key(row, key): row for row in b} if key else {}
    place = f"{read.schema.name}.{table.name}"
    shown = 0
    for row in a:
        if shown >= _SHOWN:
            return
        other = others.pop(_key(row, key), None) if key else None
        where = f"{place} ({_spell(row, key or range(len(names)), names)})"
        if other is None:
            yield Difference(where, "a row", "no such row")
        else:
            for name, x, y in zip(names, row.split(CELL), other.split(CELL), strict=True):
                if x != y:
                    yield Difference(f"{where}.{name}", _show(x), _show(y))
        shown += 1
    for row in others.values() if key else b:
        if shown >= _SHOWN:
            return
        yield Difference(
            f"{place} ({_spell(row, key or range(len(names)), names)})", "no such row", "a row"
        )
        shown += 1


def _key(row: bytes, key: Sequence[int]) -> tuple[bytes, ...]:
    cells = row.split(CELL)
    return tuple(cells[k] for k in key)


def _spell(row: bytes, positions: Sequence[int] | range, names: Sequence[str]) -> str:
    cells = row.split(CELL)
    return ", ".join(f"{names[k]}={_show(cells[k])}" for k in positions)


def _show(cell: bytes) -> str:
    if cell.startswith(b"\xf9"):
        length, _, digest = cell[1:].decode().partition(":")
        return f"{length} bytes with SHA-256 {digest}"
    value: Cell = cell_value(cell)
    if value is None:
        return "NULL"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}…"


def _no_lob(_: bytes) -> BinaryIO:
    raise _NotPlain


class _Expected:
    """A stream of bytes that has to be what is expected of it."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held, self._at = chunks, b"", 0

    def expect(self, data: bytes) -> None:
        """Consume the next bytes; raise _NotPlain if they are others."""
        end = self._at + len(data)
        while len(self._held) < end:
            more = next(self._chunks, None)
            if more is None:
                raise _NotPlain
            self._held = self._held[self._at :] + more
            self._at, end = 0, len(data)
        if not self._held.startswith(data, self._at):
            raise _NotPlain
        self._at = end

    def expect_end(self) -> None:
        """Make sure that nothing follows; this also reads the checksum of the file."""
        if self._held[self._at :] or any(self._chunks):
            raise _NotPlain


class _Reader:
    """Reads a table of one side in the spelling that both sides share."""

    def __init__(self, source: Source, database: Database, read: _Read, *, ordered: bool) -> None:
        self._source, self._read = source, read
        schema, table = read.schema, read.table
        self._shapes = [shape_of(database, schema.name, column) for column in table.columns]
        self._open = partial(source.open_lob, schema, table)
        self._digest = OrderedDigest(table.columns, self._shapes, self._open) if ordered else None

    @property
    def ordered(self) -> str | None:
        """The ordered digest, once all batches were read."""
        return self._digest.hexdigest() if self._digest else None

    def batches(self) -> Iterator[Batch]:
        canonical = Canonical(self._shapes, self._open)
        schema, table, normal = self._read.schema, self._read.table, self._read.normal
        for part in self._source.parts(schema, table):
            for batch in self._source.batches(schema, table, part):
                if self._digest:
                    self._digest.update(batch)
                yield normal(canonical(batch))


class _Side:
    """The first side of a comparison, read in this process."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.outcome: str | None = None

    def read(self, read: _Read) -> Iterator[bytes]:
        """Yield the rows of a table in large chunks; ``outcome`` is then their ordered digest.

        Plain batches come as they are, and without a digest: the two sides share the work.
        """
        self.outcome = None
        if read.plain:
            yield from self._read_plain(read)
            return
        reader = _Reader(self._source, self._source.describe(), read, ordered=read.ordered)
        held: list[bytes] = []
        size = 0
        for batch in reader.batches():
            held.append(batch.data)
            size += len(batch.data)
            if size >= _MESSAGE:
                yield b"".join(held)
                held, size = [], 0
        if held:
            yield b"".join(held)
        self.outcome = reader.ordered

    def _read_plain(self, read: _Read) -> Iterator[bytes]:
        database, schema, table = self._source.describe(), read.schema, read.table
        shapes = [shape_of(database, schema.name, column) for column in table.columns]
        canonical = Canonical(shapes, _no_lob)
        for part in self._source.parts(schema, table):
            for batch in self._source.batches(schema, table, part):
                if canonical(batch) is not batch:
                    raise _NotPlain
                yield batch.data


class _RemoteSide:
    """The first side of a comparison, read by a process of its own."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.outcome: str | None = None

    def read(self, read: _Read) -> Iterator[bytes]:
        """Yield what the other process reads."""
        self.outcome = None
        try:
            self._connection.send(read)
            while chunk := self._connection.recv_bytes():
                yield chunk
            outcome = self._connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerDied(
                "a worker process was ended from outside; try again with --jobs 1"
            ) from error
        if isinstance(outcome, BaseException):
            raise outcome
        self.outcome = outcome


@contextmanager
def _side(source: Source, size: int, jobs: int) -> Iterator[Any]:
    """Give the first side a process of its own if that is worth it."""
    opener = source.opener() if size >= _WORTH_A_PROCESS and (jobs or default_jobs()) > 1 else None
    if opener is None:
        yield _Side(source)
        return
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(opener, theirs), daemon=True)
    with deaf_children():
        process.start()
    theirs.close()
    try:
        yield _RemoteSide(ours)
    finally:
        ours.close()
        process.terminate()
        process.join()


def _serve(opener: Opener, connection: Any) -> None:
    """Read tables for the other process until it closes the connection."""
    with opener() as source:
        side = _Side(source)
        while True:
            try:
                read = connection.recv()
            except EOFError:
                return
            outcome: Any
            try:
                for chunk in side.read(read):
                    connection.send_bytes(chunk)
                outcome = side.outcome
            except Exception as error:
                outcome = error
            connection.send_bytes(b"")
            connection.send(outcome)
