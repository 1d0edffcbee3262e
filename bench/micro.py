"""Serialising and parsing on their own: one core, everything in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from measure import best_of
from muniment import databases
from muniment.siard import SiardSource, open_siard
from muniment.siard.parse import RowReader, Run, runs
from muniment.siard.rows import RowWriter
from muniment.sql.batch import Batch
from muniment.sql.model import Column, Schema, Shape, Table, shape_of
from muniment.sql.stores import Source

__all__ = ["Speed", "parse_exactly", "parse_fast", "serialise"]

_REPEAT = 5
_XML = 60_000_000  # bytes to work on
_EXACT_XML = 10_000_000  # the exact parser is slow
_TABLE = "sale"


@dataclass(frozen=True, slots=True)
class Speed:
    """How much XML was made or read in how many seconds."""

    xml_bytes: int
    seconds: float

    @property
    def megabytes_per_second(self) -> float:
        return self.xml_bytes / 1e6 / self.seconds


def serialise(url: str) -> Speed:
    """Turn batches of a database into row XML."""
    with databases.open_source(url) as source:
        table = _Table.find(source)
        writer = RowWriter(_TABLE, table.columns, table.shapes)
        batches = _batches(source, table, _XML // 2)  # tags are more than half of the XML
        size = sum(len(writer(batch)) for batch in batches)
        return Speed(size, best_of(_REPEAT, lambda: deque(map(writer, batches), maxlen=0)))


def parse_fast(path: Path, url: str) -> Speed:
    """Turn row XML into batches, and see that they are what the database holds."""
    with open_siard(path) as archive, databases.open_source(url) as source:
        table = _Table.find(archive)
        runs = _runs(archive, table, _XML)
        _check(runs, table, source)
        size = sum(len(run.xml) for run in runs)
        return Speed(size, best_of(_REPEAT, lambda: deque(_read(runs, table), maxlen=0)))


def parse_exactly(path: Path) -> Speed:
    """The same by the parser for spellings that the fast one does not know."""
    with open_siard(path) as archive:
        table = _Table.find(archive)
        xml = b"".join(run.xml for run in _runs(archive, table, _EXACT_XML))
        whole = [Run(b"<table>" + xml + b"</table>", 0, whole=True)]
        return Speed(len(xml), best_of(_REPEAT, lambda: deque(_read(whole, table), maxlen=0)))


@dataclass(frozen=True, slots=True)
class _Table:
    schema: Schema
    table: Table
    shapes: Sequence[Shape]

    @property
    def columns(self) -> Sequence[Column]:
        return self.table.columns

    @classmethod
    def find(cls, source: Source) -> _Table:
        database = source.describe()
        schema, table = next(pair for pair in database.tables() if pair[1].name == _TABLE)
        shapes = [shape_of(database, schema.name, column) for column in table.columns]
        return cls(schema, table, shapes)


def _batches(source: Source, table: _Table, wanted: int) -> list[Batch]:
    """Read the first batches of a table, up to some bytes."""
    batches, size = [], 0
    for part in source.parts(table.schema, table.table):
        for batch in source.batches(table.schema, table.table, part):
            batches.append(batch)
            size += len(batch.data)
            if size >= wanted:
                return batches
    return batches


def _runs(archive: SiardSource, table: _Table, wanted: int) -> list[Run]:
    """Read the first runs of rows of a table file, up to some bytes."""
    read, size = [], 0
    chunks = chain([b"<table>"], archive.rows_xml(table.schema, table.table))
    for run in runs(chunks, _TABLE):
        read.append(run)
        size += len(run.xml)
        if size >= wanted:
            break
    return read


def _read(runs: Sequence[Run], table: _Table) -> Iterator[Batch]:
    reader = RowReader(_TABLE, table.shapes)
    for run in runs:
        yield from reader(run)
    reader.close()


def _check(runs: Sequence[Run], table: _Table, source: Source) -> None:
    parsed = b"".join(batch.data for batch in _read(runs, table))
    batches = _batches(source, _Table.find(source), len(parsed))
    if not b"".join(batch.data for batch in batches).startswith(parsed):
        raise AssertionError("the parsed rows are not those of the database")
