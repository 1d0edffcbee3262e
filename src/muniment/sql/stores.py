"""Where rows come from and where they go: a live database and a SIARD file are both.

Work is cut into *parts* so that several processes can share it: a worker process opens the source
again, reads one part, encodes it for the target, and hands the piece back; the pieces are written
in order. With one process the same calls run one after the other and give the same bytes.

Some methods and attributes are for those who have them:

    source.notes              sentences that people should read
    source.hold()             a block in which all who open the source see the same state
    source.unchanged()        whether nobody has changed the database since it was opened
    source.count(…)           how many rows a table has, counted another way than by reading it
    source.suits_threads      whether machine code and libraries do nearly all that reading takes
    source.most_threads       so many at once, if Python does a part; None is any number
    source.refit(…)           a table with a wider type for a value that outgrew its own
    source.kept(database)     the definitions without the keys that rows break, asked for when
                              they were read; a note names each of those
    source.misfits()          all columns whose values do not fit
    source.snapshot_token()   a text of the state that is read; while it is the same, so are the
                              rows; None if that cannot be shown: for --resume
    target.notes              sentences that people should read
    target.suits_threads      the same of its encoders
    target.cores              how many it keeps busy itself while pieces are made
    target.left_out           what could not be made again (``sql.leftout``)
    target.arranged(tables)   tables in the order in which their rows have to come
    target.mark(), target.roll_back(mark)   a table can be written again
    target.completed(schema, table)         the table with its rows, if an earlier run wrote it
    target.keep(schema, table)              the table, now with its rows, is complete
    open_source(…, statement_timeout=seconds), create_target(…, resume=True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, Protocol

from muniment.sql.batch import Batch
from muniment.sql.model import Database, Schema, Table

__all__ = ["Again", "Encoder", "OpenLob", "Opener", "Part", "Piece", "Source", "Target"]

Part = Any  # whatever lets a source find a run of rows again; it can be pickled
Encoder = Callable[[Iterable[Batch]], Any]  # batches of a part to a Piece; runs in workers
OpenLob = Callable[[Schema, Table, bytes], BinaryIO]
Opener = Callable[[], "AbstractContextManager[Source]"]  # can be pickled


class Again(Exception):
    """A target knows better now how a table has to be written, and wants its rows once more."""


class Piece(Protocol):
    """What a target makes of a part; it can be pickled."""

    @property
    def rows(self) -> int:
        """The number of rows in it."""
        ...


class Source(Protocol):
    """Something that holds a database."""

    def describe(self) -> Database:
        """Return the definitions. Row counts are 0 or estimates until the rows were read."""
        ...

    def size(self) -> int:
        """Return roughly how many bytes there are to read."""
        ...

    def parts(self, schema: Schema, table: Table) -> Iterator[Part | None]:
        """Yield consecutive bounded runs of rows, the same ones each time.

        None stands for all rows of a table that only this process can read, in one go.
        """
        ...

    def batches(self, schema: Schema, table: Table, part: Part) -> Iterator[Batch]:
        """Yield the rows of a part in bounded batches."""
        ...

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        """Open the value behind a REF cell (``reference`` is what follows the REF byte).

        The stream may have attributes: ``size``, its bytes, and ``link``, the text of a DATALINK.
        """
        ...

    def opener(self) -> Opener | None:
        """Return how a worker process opens the same state of the same source, if it can."""
        ...


class Target(Protocol):
    """Something that takes a database."""

    def define(self, database: Database) -> None:
        """Take the definitions, before any rows."""
        ...

    def encoder(self, schema: Schema, table: Table) -> Encoder:
        """Return what prepares this table's batches for ``write``."""
        ...

    def write(self, schema: Schema, table: Table, pieces: Iterable[Any], open_lob: OpenLob) -> int:
        """Write a table's pieces in order; return the number of rows."""
        ...

    def finish(self, database: Database) -> None:
        """Take the definitions once more, now with row counts, and complete the work."""
        ...
