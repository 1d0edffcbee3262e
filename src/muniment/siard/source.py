"""Reading a SIARD archive of any version and writer: definitions at once, rows as a stream."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Self
from zipfile import ZIP_DEFLATED

from muniment.errors import SiardError
from muniment.siard.blocks import Blocks, Sum, find_blocks, inflated, inflated_size
from muniment.siard.lobs.folders import Root
from muniment.siard.lobs.resolving import Resolver
from muniment.siard.metadata import parse_metadata
from muniment.siard.parse import (
    RowReader,
    Run,
    rows_in,
    runs,
    without_head,
    without_table_head,
)
from muniment.siard.rooted import seen_rightly
from muniment.siard.zip import ZipReader
from muniment.sql.batch import CELL, Batch, rows_of
from muniment.sql.model import Database, Leaf, Schema, Table, shape_of

__all__ = ["SiardSource", "open_siard"]

_WORTH_CUTTING = 1 << 20  # compressed bytes
_A_LOOK = 1 << 18  # bytes of XML at once, where somebody waits for a few rows


@contextmanager
def open_siard(path: Path, roots: Sequence[Root] = ()) -> Iterator[SiardSource]:
    """Open an archive for reading; large objects may also lie beneath ``roots``."""
    with SiardSource(path, roots) as source:
        yield source


@dataclass(frozen=True)
class _Opener:
    path: Path
    roots: tuple[Root, ...]
    archive: ZipReader  # with its directory, which need not be read again

    def __call__(self) -> SiardSource:
        return SiardSource(self.path, self.roots, self.archive)


def _hex_of_base64(digest: str) -> str:
    """A digest may be in Base64 as well (5.1)."""
    try:
        return b64decode(digest, validate=True).hex()
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True)
class _Receipt:
    """What was found in a stretch of rows."""

    file: str
    blocks: Blocks
    sum: Sum


@dataclass(slots=True)
class _Sums:
    """The checksum of a table file that is read in stretches, as far as they came."""

    so_far: Sum
    tail: Sum
    expected: Sum


@dataclass(frozen=True, slots=True)
class _WholeFile:
    """A table file that allows no cutting and is read from its start by one process."""


class SiardSource:
    """A SIARD archive as a source."""

    def __init__(
        self, path: Path, roots: Sequence[Root] = (), archive: ZipReader | None = None
    ) -> None:
        self.path, self._roots = path, tuple(roots)
        self._zip = archive or ZipReader(path)
        self.notes: list[str] = []  # what had to be overlooked to read the archive
        metadata = self._metadata_name()
        try:
            self._database = parse_metadata(self._zip.read(metadata))
        except SiardError as error:
            if str(error).startswith("metadata.xml"):  # of two archives, which one
                raise SiardError(f"{path}: header/{error}") from error
            raise
        self.lobs = Resolver(self._zip, self._database, roots)
        self._readers: dict[tuple[str, str, str | None], RowReader] = {}
        self._sums: dict[str, _Sums] = {}
        self._receipt: _Receipt | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def version(self) -> str:
        """The version of SIARD that the archive says it follows."""
        return self._database.version

    def describe(self) -> Database:
        """Return the archive's metadata."""
        return self._database

    def size(self) -> int:
        """The bytes of XML to read."""
        return sum(self._xml_size(s, t) for s, t in self._database.tables())

    def _xml_size(self, schema: Schema, table: Table) -> int:
        return self._zip.size(self._file(schema, table))

    @property
    def suits_threads(self) -> bool:
        """Whether machine code reads nearly all rows: ours are spelt for it, unless complex."""
        tables = self._database.tables()
        plain = sum(self._xml_size(s, t) for s, t in tables if self._is_plain(s, t))
        return self._is_ours and 8 * plain >= 7 * self.size()

    def _is_plain(self, schema: Schema, table: Table) -> bool:
        shapes = (shape_of(self._database, schema.name, column) for column in table.columns)
        return all(isinstance(shape, Leaf) for shape in shapes)

    @property
    def _is_ours(self) -> bool:
        return (self._database.producer_application or "").startswith("Muniment ")

    def parts(self, schema: Schema, table: Table) -> Iterator[Run | Blocks | _WholeFile]:
        """Yield runs of rows as they stand in the file, or where they lie in it."""
        name = self._file(schema, table)
        if (blocks := self._blocks(name)) is not None:
            yield from blocks
            return
        cut = runs(self._zip.chunks(name), f"{self.path}: {name}")
        first = next(cut, None)
        if first is None:
            return
        if first.whole:
            yield _WholeFile()
        else:
            yield from chain((first,), cut)

    def batches(
        self, schema: Schema, table: Table, part: Run | Blocks | _WholeFile
    ) -> Iterator[Batch]:
        """Yield the rows of a run."""
        name = self._file(schema, table)
        if isinstance(part, Blocks):
            yield from self._read_blocks(name, self._reader(schema, table), part)
            return
        if isinstance(part, Run):
            yield from self._reader(schema, table)(part)
            return
        reader = self._new_reader(schema, table)
        for run in runs(self._zip.chunks(name), f"{self.path}: {name}"):
            yield from reader(run)
        reader.close()

    def rows(
        self, schema: Schema, table: Table, first: int = 1, last: int | None = None
    ) -> Iterator[tuple[int, list[bytes]]]:
        """Yield rows with their numbers, from 1, as cells; those before ``first`` are passed over.

        Any number of threads may read like this, and each reads no more than it is asked for.
        """
        name, number = self._file(schema, table), 1
        reader = self._new_reader(schema, table)
        for run in runs(self._zip.chunks(name), f"{self.path}: {name}", _A_LOOK):
            if number < first and (count := rows_in(run)) and number + count <= first:
                number += count
                continue
            for batch in reader(run):
                end = None if last is None else max(0, last - number + 1)
                if number + batch.rows > first:
                    chosen = rows_of(batch)[max(0, first - number) : end]
                    for at, row in enumerate(chosen, max(first, number)):
                        yield at, row.split(CELL)
                number += batch.rows
                if last is not None and number > last:
                    return
        reader.close()

    def receipt(self) -> _Receipt | None:
        """Return what was found in the part that was read last, for the process that adds it up."""
        receipt, self._receipt = self._receipt, None
        return receipt

    def accept(self, receipt: _Receipt) -> None:
        """Add up the checksums of the parts of a table, in order; the last must make it right."""
        sums = self._sums[receipt.file]
        sums.so_far += receipt.sum
        if receipt.blocks.last and sums.so_far + sums.tail != sums.expected:
            raise self._damaged(receipt.file)

    def _blocks(self, name: str) -> Iterator[Blocks] | None:
        """Return the stretches of a table file that was written by Muniment."""
        if not self._is_ours:
            return None
        read, entry = self._zip.compressed(name)
        if entry.flags & 1 or entry.method != ZIP_DEFLATED or entry.packed < _WORTH_CUTTING:
            return None
        found = find_blocks(read, entry.packed, entry.size)
        if found is None or without_table_head(found[0]) != b"" or found[2] != b"</table>\n":
            return None
        head, blocks, tail = found
        expected = Sum(entry.crc, entry.size)
        self._sums[name] = _Sums(Sum.of(head), Sum.of(tail), expected)
        return blocks

    def _read_blocks(self, name: str, reader: RowReader, blocks: Blocks) -> Iterator[Batch]:
        read, _ = self._zip.compressed(name)
        found = Sum()
        for start, xml in inflated(read, blocks):
            # A comment that began in one of them and ended in another is an error of the first.
            if xml is None or not xml.endswith(b"</row>\n"):
                raise self._damaged(name)
            found += Sum.of(xml)
            try:
                yield from reader(Run(xml, 0))
            except SiardError:
                # The message names the place of the fault; now it is worth counting to there.
                for _ in reader(Run(xml, inflated_size(read, start))):
                    pass
                raise
        receipt = _Receipt(name, blocks, found)
        if name in self._sums:
            self.accept(receipt)
        else:
            self._receipt = receipt

    def _damaged(self, name: str) -> SiardError:
        return SiardError(f"{self.path}: {name} is damaged: its checksum does not match")

    def rows_xml(self, schema: Schema, table: Table) -> Iterator[bytes]:
        """Yield a table's file as it is, from its first row on."""
        return without_head(self._zip.chunks(self._file(schema, table)))

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        """Open a large object; its length and digest are checked when its end is read."""
        return self.lobs.open(schema, table, reference)

    def count(self, schema: Schema, table: Table, read: int) -> int:
        """How many rows the metadata says that a table has (P_4.3-10)."""
        return table.rows

    def opener(self) -> _Opener:
        """Return how a worker process opens this archive."""
        return _Opener(self.path, self._roots, self._zip)

    def digest(self, algorithm: str) -> str | None:
        """The digest over all content as 5.1 defines it, if the archive has a header/ entry."""
        if "header/" not in self._zip:
            return None
        return self._zip.digest(algorithm, self._zip.offset("header/"))

    def changed(self) -> list[str]:
        """Say which of the archive's digests its content does not match any more."""
        return [
            f"the content of {self.path} does not match the {known.digest_type} digest in its "
            "metadata: it was changed after it was archived"
            for known in self._database.message_digests
            if known.digest_type in ("MD5", "SHA-1", "SHA-256")
            and (found := self.digest(known.digest_type)) is not None
            and found not in (known.digest.strip().lower(), _hex_of_base64(known.digest))
        ]

    def _reader(self, schema: Schema, table: Table) -> RowReader:
        key = (schema.name, table.name, table.folder)  # two tables may claim one folder
        if key not in self._readers:
            self._readers[key] = self._new_reader(schema, table)
        return self._readers[key]

    def _new_reader(self, schema: Schema, table: Table) -> RowReader:
        shapes = [shape_of(self._database, schema.name, column) for column in table.columns]
        nullable = [column.nullable is not False for column in table.columns]
        return RowReader(f"{self.path}: {schema.name}.{table.name}", shapes, nullable)

    def _file(self, schema: Schema, table: Table) -> str:
        folder = f"content/{schema.folder}/{table.folder}/"
        name = f"{folder}{table.folder}.xml"
        if name in self._zip:
            return name
        for other in self._zip.names():
            if other.lower() == name.lower():
                return other
        raise SiardError(f"{self.path}: {name} is missing; the rows of {table.name} are not there")

    def _metadata_name(self) -> str:
        if "header/metadata.xml" in self._zip:
            return "header/metadata.xml"
        self._zip, root = seen_rightly(self._zip)
        if "header/metadata.xml" in self._zip:
            how = f"everything lies in the folder {root}" if root else "its names have backslashes"
            self.notes = [f"{self.path} is packed wrongly: {how}"]
            return "header/metadata.xml"
        raise SiardError(f"{self.path} is not a SIARD file: it has no header/metadata.xml")
