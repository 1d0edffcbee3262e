"""One side of a comparison: its rows in the spelling that both sides share."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from queue import Queue
from typing import Any, BinaryIO, cast

from muniment.errors import WorkerDied
from muniment.kernels import expect
from muniment.normal import Normal
from muniment.siard.rows import RowWriter
from muniment.sql.batch import CLOSE, ITEM, NULL, Batch
from muniment.sql.digest import Canonical, ContentDigest, OrderedDigest
from muniment.sql.model import Column, Database, Schema, Shape, Table, shape_of
from muniment.sql.stores import Opener, Source
from muniment.workers import Workers, deaf_children, default_jobs, start_workers, suits_threads

__all__ = ["NotPlain", "Read", "Reader", "Side", "TooMuch", "Written", "no_lob", "reading_side"]

_MESSAGE = 1 << 19
_AHEAD = 32  # messages that wait here
_LAST_NULL = NULL + ITEM + CLOSE
_MOST_XML = 48 << 20  # bytes of one part that are held; of those of wide rows only a few fit


@dataclass(frozen=True)
class Read:
    """What to read of one side: a table, and the forms in which its values are compared."""

    schema: Schema
    table: Table
    normal: Normal
    ordered: bool = True  # with the ordered digest
    plain: bool = False  # small batches as they are; no large values

    @property
    def names(self) -> list[str]:
        """The columns that are compared, as they stand in the rows that are read."""
        columns, kept = self.table.columns, self.normal.kept
        return [column.name for column in (columns if kept is None else (columns[k] for k in kept))]


class NotPlain(Exception):
    """A value is large, or the archive is spelt in an unexpected way: rows have to be parsed."""


class TooMuch(NotPlain):
    """A part makes more XML than is held at a time."""


def no_lob(_: bytes) -> BinaryIO:
    raise NotPlain


class Reader:
    """Reads a table of one side in the spelling that both sides share."""

    def __init__(self, source: Source, database: Database, read: Read, *, ordered: bool) -> None:
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
        schema, table, normal = self._read.schema, self._read.table, self._read.normal
        canonical = Canonical(normal.shapes(self._shapes), self._open)
        for part in self._source.parts(schema, table):
            for batch in map(_trimmed, self._source.batches(schema, table, part)):
                if self._digest:
                    self._digest.update(batch)
                yield normal(canonical(normal.spelt(batch, self._open)))


def _trimmed(batch: Batch) -> Batch:
    """Return lists and structures without NULL at their end, as SIARD has them.

    Nothing is lost: their lengths are those of their types. Lists of any length that end with NULL
    are texts here.
    """
    data = batch.data
    while _LAST_NULL in data:
        data = data.replace(_LAST_NULL, CLOSE)
    return batch if data is batch.data else Batch(data, batch.rows)


@dataclass(frozen=True)
class Written:
    """The rows of a part as the XML that they make, and their digest."""

    xml: tuple[bytes, ...]
    digest: ContentDigest


@dataclass(frozen=True)
class _XmlEncoder:
    """Writes parts as an archive has them; runs in workers."""

    columns: tuple[Column, ...]
    shapes: tuple[Shape, ...]

    def __call__(self, batches: Iterable[Batch]) -> Written:
        """Return what a part makes; NotPlain if a value of it is large."""
        write, canonical = RowWriter("", self.columns, self.shapes), Canonical(self.shapes, no_lob)
        digest, held, size = ContentDigest(), [], 0
        for batch in batches:
            if canonical(batch) is not batch:
                raise NotPlain
            if size > _MOST_XML:
                raise TooMuch
            digest.update(batch)
            held.append(write(batch, trusted=True))
            size += len(held[-1])
        return Written(tuple(held), digest)


class Side:
    """The first side of a comparison, read in this process."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.outcome: str | None = None

    def written(self, read: Read) -> Iterator[Written] | None:
        """Return a plain table part by part, as XML; None if its batches have to do."""
        return None

    def read(self, read: Read) -> Iterator[bytes]:
        """Yield the rows of a table in large chunks; ``outcome`` is then their ordered digest.

        Plain batches come as they are, and without a digest: the two sides share the work.
        """
        self.outcome = None
        if read.plain:
            yield from self._read_plain(read)
            return
        reader = Reader(self._source, self._source.describe(), read, ordered=read.ordered)
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

    def _read_plain(self, read: Read) -> Iterator[bytes]:
        database, schema, table = self._source.describe(), read.schema, read.table
        shapes = [shape_of(database, schema.name, column) for column in table.columns]
        canonical = Canonical(shapes, no_lob)
        for part in self._source.parts(schema, table):
            for batch in self._source.batches(schema, table, part):
                if canonical(batch) is not batch:
                    raise NotPlain
                yield batch.data


class RemoteSide(Side):
    """The first side of a comparison, read by a process of its own, or by threads of this one."""

    def __init__(self, source: Source, stack: ExitStack, opener: Opener, jobs: int) -> None:
        super().__init__(source)
        self._stack, self._opener, self._jobs = stack, opener, jobs
        self._connection: Any = None
        self._workers: Workers | None = None
        self._arrived: Any = None

    def written(self, read: Read) -> Iterator[Written] | None:
        schema, table = read.schema, read.table
        parts = self._source.parts(schema, table)
        first = next(parts, None)
        if first is None or not suits_threads(self._source, self._jobs):
            return None
        if self._workers is None:
            unchanged = getattr(self._source, "unchanged", lambda: True)
            started = start_workers(self._source, self._jobs, unchanged, threads=True)
            self._workers = self._stack.enter_context(started)
        database = self._source.describe()
        shapes = tuple(shape_of(database, schema.name, column) for column in table.columns)
        encoder = _XmlEncoder(table.columns, shapes)
        tasks = ((schema, table, part, encoder) for part in chain((first,), parts))
        pieces = self._workers.run(tasks)
        return cast(Iterator[Written], pieces)

    def read(self, read: Read) -> Iterator[bytes]:
        """Yield what the other process reads; a thread takes it in, so that it need not wait."""
        self.outcome = None
        if self._connection is None:
            process = _process(self._opener, self._source.size())
            self._connection = self._stack.enter_context(process)
        arrived: Queue[bytes | None] = Queue(_AHEAD)
        taking = threading.Thread(target=self._take, args=(read, arrived), daemon=True)
        taking.start()
        while chunk := arrived.get():
            yield chunk
        taking.join()
        if isinstance(self._arrived, BaseException):
            raise self._arrived
        self.outcome = self._arrived

    def _take(self, read: Read, arrived: Queue[bytes | None]) -> None:
        try:
            self._connection.send(read)
            while chunk := self._connection.recv_bytes():
                arrived.put(chunk)
            self._arrived = self._connection.recv()
        except (EOFError, OSError):
            sentence = "a worker process was ended from outside; try again with --jobs 1"
            self._arrived = WorkerDied(sentence)
        arrived.put(None)


@contextmanager
def reading_side(source: Source, jobs: int) -> Iterator[Side]:
    """Give the first side others that read it if that is worth it."""
    jobs = jobs or default_jobs()
    opener = source.opener() if jobs > 1 else None
    if opener is None:
        yield Side(source)
        return
    with ExitStack() as stack:
        yield RemoteSide(source, stack, opener, jobs)


@contextmanager
def _process(opener: Opener, size: int) -> Iterator[Any]:
    """Start a process that reads; yield the connection to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(opener, size, theirs), daemon=True)
    with deaf_children():
        process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.terminate()
        process.join()


def _serve(opener: Opener, size: int, connection: Any) -> None:
    """Read tables for the other process until it closes the connection."""
    expect(size)
    with opener() as source:
        side = Side(source)
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
