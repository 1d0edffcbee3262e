"""One side of a comparison: its rows in the spelling that both sides share."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from queue import Queue
from typing import Any, BinaryIO

from muniment.errors import WorkerDied
from muniment.kernels import expect
from muniment.normal import Normal
from muniment.sql.batch import Batch
from muniment.sql.digest import Canonical, OrderedDigest
from muniment.sql.model import Database, Schema, Table, shape_of
from muniment.sql.stores import Opener, Source
from muniment.workers import deaf_children, default_jobs

__all__ = ["NotPlain", "Read", "Reader", "Side", "no_lob", "reading_side"]

_MESSAGE = 1 << 19
_AHEAD = 32  # messages that wait here


@dataclass(frozen=True)
class Read:
    """What to read of one side: a table, and the forms in which its values are compared."""

    schema: Schema
    table: Table
    normal: Normal
    ordered: bool = True  # with the ordered digest
    plain: bool = False  # small batches as they are; no large values


class NotPlain(Exception):
    """A value is large, or the archive is spelt in an unexpected way: rows have to be parsed."""


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
        canonical = Canonical(self._shapes, self._open)
        schema, table, normal = self._read.schema, self._read.table, self._read.normal
        for part in self._source.parts(schema, table):
            for batch in self._source.batches(schema, table, part):
                if self._digest:
                    self._digest.update(batch)
                yield normal(canonical(batch))


class Side:
    """The first side of a comparison, read in this process."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.outcome: str | None = None

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


class RemoteSide:
    """The first side of a comparison, read by a process of its own."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._arrived: Any = None
        self.outcome: str | None = None

    def read(self, read: Read) -> Iterator[bytes]:
        """Yield what the other process reads; a thread takes it in, so that it need not wait."""
        self.outcome = None
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
def reading_side(source: Source, jobs: int) -> Iterator[Any]:
    """Give the first side a process of its own if that is worth it."""
    opener = source.opener() if (jobs or default_jobs()) > 1 else None
    if opener is None:
        yield Side(source)
        return
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(opener, source.size(), theirs), daemon=True)
    with deaf_children():
        process.start()
    theirs.close()
    try:
        yield RemoteSide(ours)
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
