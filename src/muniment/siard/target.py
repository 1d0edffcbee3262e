"""Writing a SIARD 2.2 archive: rows to compressed XML, large objects to files, metadata last."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO

from isal import isal_zlib

import muniment
from muniment.files import new_file
from muniment.siard.journal import Journal
from muniment.siard.lobs import LobWriter
from muniment.siard.metadata import format_metadata, metadata_schema
from muniment.siard.rows import RowWriter
from muniment.siard.schema import TABLE_NAMESPACE, table_schema
from muniment.siard.zip import Block, Deflater, ZipWriter, deflate
from muniment.sql.batch import REF, Batch
from muniment.sql.model import (
    Array,
    Column,
    Database,
    Leaf,
    MessageDigest,
    Schema,
    Shape,
    Table,
    shape_of,
)
from muniment.sql.stores import OpenLob

__all__ = ["SiardEncoder", "SiardTarget", "create_siard"]

_BLOCK = 1 << 20
_SPOOL = 1 << 25
_XSI = "http://www.w3.org/2001/XMLSchema-instance"


@contextmanager
def create_siard(
    path: Path,
    day: date,
    *,
    compression: str = "fast",
    digests: tuple[str, ...] = ("SHA-256",),
    journal: Journal | None = None,
) -> Iterator[SiardTarget]:
    """Open a new archive that appears at ``path`` only if the block succeeds.

    With a ``journal`` the archive is the one that this has open, and the journal lets it appear.
    """
    with nullcontext(journal.stream) if journal else new_file(path) as stream:
        writer = ZipWriter(stream, day, compression, digests)
        yield SiardTarget(writer, day, compression, path.parent, journal)


@dataclass(frozen=True, slots=True)
class EncodedPart:
    """A part on its way into the archive: compressed rows, or rows whose large objects wait."""

    items: tuple[Block | Batch, ...]
    rows: int


@dataclass(frozen=True)
class SiardEncoder:
    """Turns batches into compressed row XML; runs in worker processes."""

    where: str
    columns: tuple[Column, ...]
    shapes: tuple[Shape, ...]
    compression: str

    def __call__(self, batches: Iterable[Batch]) -> EncodedPart:
        """Return the part; row numbers in errors count from its first row."""
        write_rows = RowWriter(self.where, self.columns, self.shapes)
        items: list[Block | Batch] = []
        deflater = Deflater(self.compression)
        rows = 0
        for batch in batches:
            if REF in batch.data:
                # The objects go into the archive in the one process that writes it.
                if deflater.size:
                    items.append(deflater.block())
                    deflater = Deflater(self.compression)
                items.append(batch)
            else:
                deflater.add(write_rows(batch, rows + 1), batch.rows)
            rows += batch.rows
            if deflater.size >= _BLOCK:
                items.append(deflater.block())
                deflater = Deflater(self.compression)
        if deflater.size:
            items.append(deflater.block())
        return EncodedPart(tuple(items), rows)


class SiardTarget:
    """A SIARD 2.2 archive in the making."""

    def __init__(
        self,
        archive: ZipWriter,
        day: date,
        compression: str,
        scratch: Path,
        journal: Journal | None = None,
    ) -> None:
        self._zip = archive
        self._journal = journal
        self._day = day
        self._compression = compression
        self._scratch = scratch
        self._database = Database("")
        self._spool: _Spool | None = None
        self.digests: tuple[MessageDigest, ...] = ()
        self.notes: list[str] = []

    @property
    def bytes_written(self) -> int:
        """The size of the archive so far, with what waits in the spool."""
        return self._zip.position + (self._spool.packed if self._spool else 0)

    def define(self, database: Database) -> None:
        """Start the archive with its folders."""
        self._database = database
        if self._journal:
            self._journal.begin(self._zip, database, self._day.isoformat())
            return
        self._zip.folder("content/")
        for schema in database.schemas:
            self._zip.folder(f"content/{schema.folder}/")

    def mark(self) -> Any:
        """Remember this point: a table may have to be written again."""
        return self._zip.mark()

    def roll_back(self, mark: Any) -> None:
        """Forget what was written since ``mark``."""
        self._zip.roll_back(mark)
        if self._journal:
            self._journal.forget()

    def completed(self, schema: Schema, table: Table) -> Table | None:
        """Return a table with its rows if an earlier run has written it."""
        return self._journal.completed(schema, table) if self._journal else None

    def keep(self, schema: Schema, table: Table) -> None:
        """Note that a table, now with its rows, is complete."""
        if self._journal:
            declared = self._database.schema(schema.name).table(table.name)
            self._journal.keep(self._zip, schema, table, declared)

    def encoder(self, schema: Schema, table: Table) -> SiardEncoder:
        """Return what turns this table's batches into row XML."""
        shapes = self._shapes(schema, table)
        return SiardEncoder(f"{schema.name}.{table.name}", table.columns, shapes, self._compression)

    def write(
        self, schema: Schema, table: Table, pieces: Iterable[EncodedPart], open_lob: OpenLob
    ) -> int:
        """Write a table: its large objects as they come, then the rows, then its schema."""
        folder = f"content/{schema.folder}/{table.folder}/"
        self._zip.folder(folder)
        shapes = self._shapes(schema, table)
        name = f"{folder}{table.folder}"
        with self._rows_file(f"{name}.xml", any(map(_may_be_large, shapes))) as write:
            write(deflate(_table_head(table.folder), self._compression))
            rows = self._write_rows(schema, table, shapes, pieces, open_lob, write)
            write(deflate(b"</table>\n", self._compression))
        self._zip.file(f"{name}.xsd", table_schema(table.columns, shapes))
        return rows

    def finish(self, database: Database) -> None:
        """Write the header: metadata with row counts and the digests over all content."""
        if self._journal:
            self.notes += self._journal.notes()
            # Those who come later have to know that the tables may not fit together.
            words = [database.description or "", *self._journal.sentences()]
            database = replace(database, description="\n".join(filter(None, words)) or None)
        digests = tuple(MessageDigest(name, value) for name, value in self._zip.digests().items())
        self._zip.stop_digests()
        complete = replace(
            database,
            version="2.2",
            archival_date=database.archival_date or f"{self._day.isoformat()}Z",
            message_digests=digests,
            producer_application=f"Muniment {muniment.__version__}",
        )
        self.digests = digests
        for folder in ("header/", "header/siardversion/", "header/siardversion/2.2/"):
            self._zip.folder(folder)
        self._zip.file("header/metadata.xsd", metadata_schema())
        self._zip.file("header/metadata.xml", format_metadata(complete))
        self._zip.close()

    def _shapes(self, schema: Schema, table: Table) -> tuple[Shape, ...]:
        return tuple(shape_of(self._database, schema.name, column) for column in table.columns)

    def _write_rows(
        self,
        schema: Schema,
        table: Table,
        shapes: tuple[Shape, ...],
        pieces: Iterable[EncodedPart],
        open_lob: OpenLob,
        write: Callable[[Block], None],
    ) -> int:
        rows = 0
        with_lobs = RowWriter(f"{schema.name}.{table.name}", table.columns, shapes)
        lobs = LobWriter(self._zip, self._compression, schema, table, shapes, open_lob)
        for piece in pieces:
            for item in piece.items:
                if isinstance(item, Batch):
                    xml = with_lobs(item, rows + 1, lobs.placing(rows))
                    item = deflate(xml, self._compression, item.rows)
                write(item)
                rows += item.rows
        return rows

    @contextmanager
    def _rows_file(self, name: str, spooled: bool) -> Iterator[Callable[[Block], None]]:
        """Open the file of a table's rows.

        Where large objects may come between, the rows wait in a spool: two members of a ZIP file
        cannot be written at once.
        """
        if not spooled:
            with self._zip.stream(name) as member:
                yield member.write
            return
        with tempfile.SpooledTemporaryFile(_SPOOL, dir=str(self._scratch)) as file:
            spool = self._spool = _Spool(file)
            try:
                yield spool.write
            finally:
                self._spool = None
            self._zip.joined(name, spool.blocks(), spool.packed, spool.crc, spool.size)


class _Spool:
    """Blocks that wait for their place in the archive."""

    def __init__(self, file: BinaryIO | tempfile.SpooledTemporaryFile[bytes]) -> None:
        self._file = file
        self.packed = self.crc = self.size = 0

    def write(self, block: Block) -> None:
        self._file.write(block.data)
        self.crc = isal_zlib.crc32_combine(self.crc, block.crc, block.size)
        self.packed += len(block.data)
        self.size += block.size

    def blocks(self) -> Iterator[bytes]:
        self._file.seek(0)
        while chunk := self._file.read(_BLOCK):
            yield chunk


def _may_be_large(shape: Shape) -> bool:
    if isinstance(shape, Leaf):
        return shape.type.large
    parts = (shape.element,) if isinstance(shape, Array) else shape.parts
    return any(map(_may_be_large, parts))


def _table_head(folder: str) -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<table xmlns="{TABLE_NAMESPACE}" xmlns:xsi="{_XSI}" '
        f'xsi:schemaLocation="{TABLE_NAMESPACE} {folder}.xsd" version="2.2">\n'
    ).encode()
