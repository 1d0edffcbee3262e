"""Reading a SIARD archive of any version and writer: definitions at once, rows as a stream."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from muniment.errors import SiardError
from muniment.siard.lobs.folders import Root
from muniment.siard.lobs.resolving import Resolver
from muniment.siard.metadata import parse_metadata
from muniment.siard.parse import RowReader, Run, runs, without_head
from muniment.siard.rooted import RootedZip, find_root
from muniment.siard.zip import ZipReader
from muniment.sql.batch import Batch
from muniment.sql.model import Database, Schema, Table, shape_of

__all__ = ["SiardSource", "open_siard"]


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
        self._database = parse_metadata(self._zip.read(metadata))
        self.lobs = Resolver(self._zip, self._database, roots)
        self._readers: dict[tuple[str, str], RowReader] = {}

    def __enter__(self) -> SiardSource:
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
        return sum(self._zip.size(self._file(s, t)) for s, t in self._database.tables())

    def parts(self, schema: Schema, table: Table) -> Iterator[Run | _WholeFile]:
        """Yield runs of rows as they stand in the file."""
        name = self._file(schema, table)
        cut = runs(self._zip.chunks(name), f"{self.path}: {name}")
        first = next(cut, None)
        if first is None:
            return
        if first.whole:
            yield _WholeFile()
        else:
            yield from chain((first,), cut)

    def batches(self, schema: Schema, table: Table, part: Run | _WholeFile) -> Iterator[Batch]:
        """Yield the rows of a run."""
        if isinstance(part, Run):
            yield from self._reader(schema, table)(part)
            return
        name = self._file(schema, table)
        reader = self._new_reader(schema, table)
        for run in runs(self._zip.chunks(name), f"{self.path}: {name}"):
            yield from reader(run)
        reader.close()

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
        key = (schema.folder, table.folder)
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
        if root := find_root(self._zip.names()):
            self._zip = RootedZip(self._zip, root)
            self.notes = [f"{self.path} is packed wrongly: everything lies in the folder {root}"]
            return "header/metadata.xml"
        raise SiardError(f"{self.path} is not a SIARD file: it has no header/metadata.xml")
