"""Writing a SIARD archive: rows to compressed XML, large objects to files, metadata last."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO

from isal import isal_zlib

import muniment
from muniment.errors import UsageError
from muniment.finished import appearing
from muniment.siard.deflating import Block, deflate
from muniment.siard.encoding import EncodedPart, LazyPart, SiardEncoder
from muniment.siard.journal import Journal
from muniment.siard.lobs.layout import folder_name
from muniment.siard.lobs.placement import EXTERNAL, INLINE, Placements, Rule
from muniment.siard.lobs.storing import External, ExternalStore, InternalStore
from muniment.siard.lobs.writing import LobWriter
from muniment.siard.metadata import format_metadata
from muniment.siard.naming import name_note
from muniment.siard.older import metadata_2_0, schema_2_0
from muniment.siard.rows import RowWriter
from muniment.siard.schema import table_schema
from muniment.siard.schemas import schema_of
from muniment.siard.versions import CURRENT, WRITTEN, DigestStyle, Version, find_version
from muniment.siard.volumes import new_volumes
from muniment.siard.zip import ZipWriter
from muniment.sql.batch import Batch
from muniment.sql.model import Database, MessageDigest, Schema, Shape, Table, shape_of
from muniment.sql.stores import Again, OpenLob

__all__ = ["LobOptions", "SiardEncoder", "SiardTarget", "create_siard"]

_BLOCK = 1 << 20
_SPOOL = 1 << 25
_XSI = "http://www.w3.org/2001/XMLSchema-instance"


@dataclass(frozen=True)
class LobOptions:
    """Where large objects go, and how they are laid out there."""

    placements: Placements = field(default_factory=lambda: Placements(mixed=True))
    external: External = field(default_factory=External)


@contextmanager
def create_siard(
    path: Path,
    day: date,
    *,
    compression: str = "fast",
    digests: tuple[str, ...] = ("SHA-256",),
    lobs: LobOptions | None = None,
    split: int | None = None,
    journal: Journal | None = None,
    version: str = CURRENT.number,
) -> Iterator[SiardTarget]:
    """Open a new archive that appears at ``path``, with its folders, only if the block succeeds.

    With ``split`` it is cut into parts of so many bytes. With a ``journal`` the archive is the one
    that this has open, and the journal lets it appear.
    """
    target = None
    with ExitStack() as end:
        try:
            with nullcontext(journal.stream) if journal else new_volumes(path, split) as stream:
                writer = ZipWriter(stream, day, compression, digests)
                lobs = lobs or LobOptions()
                target = SiardTarget(writer, day, compression, path, lobs, journal, version)
                yield target
                if target.lies_outside:  # folders and archive appear together
                    (journal.end if journal else end).enter_context(appearing(path))
                target.settle()
        except BaseException:
            if target:
                target.discard()
            raise


class SiardTarget:
    """A SIARD archive in the making."""

    suits_threads = True  # plain rows are for machine code; the source knows whether they are

    def __init__(
        self,
        archive: ZipWriter,
        day: date,
        compression: str,
        path: Path,
        lobs: LobOptions,
        journal: Journal | None = None,
        version: str = CURRENT.number,
    ) -> None:
        self._version = find_version(version)
        if self._version.number not in WRITTEN:
            raise UsageError(f"SIARD {version} is not written; choose {' or '.join(WRITTEN)}")
        self._zip, self._path, self._lobs = archive, path, lobs
        self._journal = journal
        self._day = day
        self._compression = compression
        self._database = Database("")
        self._spool: _Spool | None = None
        self._internal = InternalStore(archive, compression)
        self._external: ExternalStore | None = None
        self._stored: dict[tuple[str, str], frozenset[int]] = {}
        self._facts: dict[tuple[str, str], LobWriter] = {}
        self._in_hand: tuple[str, str] = ("", "")
        self.digests: tuple[MessageDigest, ...] = ()
        self.notes: list[str] = []

    @property
    def bytes_written(self) -> int:
        """The size of the archive so far, with what waits in the spool."""
        return self._zip.position + (self._spool.packed if self._spool else 0)

    def define(self, database: Database) -> None:
        """Start the archive with its folders."""
        self._database = database
        placements = self._lobs.placements
        placements.check(database)
        if EXTERNAL in (placements.place, *placements.places.values()):
            self._external = ExternalStore(
                self._path,
                folder_name(database.dbname),
                self._lobs.external,
                self._digest_type,
                self._day,
                self._compression,
                kept=self._journal is not None,
            )
        if self._journal:
            self._journal.begin(self._zip, database, self._day.isoformat())
            self._go_on(database, self._journal)
            return
        self._zip.folder("content/")
        for schema in database.schemas:
            self._zip.folder(f"content/{schema.folder}/")

    def _go_on(self, database: Database, journal: Journal) -> None:
        """Take over the large objects of complete tables."""
        complete = {
            (schema.folder, table.folder)
            for schema, table in database.tables()
            if journal.completed(schema, table)
        }
        if self._external:
            self._external.go_on(journal.beside, complete)
            journal.companions = self._external.folders

    def mark(self) -> Any:
        """Remember this point: a table may have to be written again."""
        return self._zip.mark(), self._external.mark() if self._external else None

    def roll_back(self, mark: Any) -> None:
        """Forget what was written since ``mark``."""
        archive, external = mark
        self._zip.roll_back(archive)
        if self._journal:
            self._journal.forget()
        if self._external:
            self._external.roll_back(external, *self._in_hand)

    def completed(self, schema: Schema, table: Table) -> Table | None:
        """Return a table with its rows if an earlier run has written it."""
        found = self._journal.completed(schema, table) if self._journal else None
        if found is None:
            return None
        done, facts = found
        self._lob_writer(schema, done, _no_lob).recall(facts)
        return done

    def keep(self, schema: Schema, table: Table) -> None:
        """Note that a table, now with its rows, is complete."""
        if self._journal:
            declared = self._database.schema(schema.name).table(table.name)
            facts = self._facts[schema.folder, table.folder].facts()
            beside = self._external.state() if self._external else {}
            self._journal.companions = self._external.folders if self._external else []
            self._journal.keep(self._zip, schema, table, declared, facts, beside)

    def encoder(self, schema: Schema, table: Table) -> SiardEncoder:
        """Return what turns this table's batches into row XML."""
        shapes = self._shapes(schema, table)
        rules = self._rules(schema, table, shapes)
        stored = self._stored_columns(schema, table, rules)
        where = f"{schema.name}.{table.name}"
        return SiardEncoder(where, table.columns, shapes, self._compression, rules, stored)

    def write(
        self,
        schema: Schema,
        table: Table,
        pieces: Iterable[EncodedPart | LazyPart],
        open_lob: OpenLob,
    ) -> int:
        """Write a table: its large objects as they come, then the rows, then its schema.

        Raises Again if values went inline that turn out to belong into files.
        """
        self._in_hand = schema.folder, table.folder
        folder = f"content/{schema.folder}/{table.folder}/"
        self._zip.folder(folder)
        shapes = self._shapes(schema, table)
        rules = self._rules(schema, table, shapes)
        lobs = self._lob_writer(schema, table, open_lob)
        name = f"{folder}{table.folder}"
        with self._rows_file(f"{name}.xml", any(rules)) as write:
            head = _table_head(self._version, schema.folder, table.folder)
            write(deflate(head, self._compression))
            rows = self._write_rows(schema, table, shapes, rules, pieces, lobs, write)
            write(deflate(b"</table>\n", self._compression))
        if self._external:
            self._external.end_table()
        large = [k for k, rule in enumerate(rules) if rule and rule.place != INLINE]
        definition = table_schema(table.columns, shapes, large)
        if self._version is not CURRENT:
            definition = schema_2_0(definition, schema.folder, table.folder)
        self._zip.file(f"{name}.xsd", definition)
        return rows

    @property
    def lies_outside(self) -> bool:
        """Whether there are folders outside."""
        return bool(self._external and self._external.folders)

    def settle(self) -> None:
        """Give the folders outside their names."""
        if self._external:
            self._external.settle()

    def discard(self) -> None:
        """Remove the folders outside, after a failure; those of complete tables may be kept."""
        if self._external and self._journal and self._journal.kept:
            self._external.pause()
        elif self._external:
            self._external.discard()

    def finish(self, database: Database) -> None:
        """Write the header: metadata with row counts and the digests over all content."""
        if self._journal:
            self.notes += self._journal.notes()
            # Those who come later have to know that the tables may not fit together.
            words = [database.description or "", *self._journal.sentences()]
            database = replace(database, description="\n".join(filter(None, words)) or None)
        self.notes += filter(None, [name_note(database)])
        digests = tuple(MessageDigest(name, value) for name, value in self._zip.digests().items())
        self._zip.stop_digests()
        complete = replace(
            self._with_folders(database),
            version="2.2",
            archival_date=database.archival_date or f"{self._day.isoformat()}Z",
            message_digests=digests,
            producer_application=f"Muniment {muniment.__version__}",
        )
        self.digests = digests
        for folder in ("header/", "header/siardversion/", self._version.folder or ""):
            self._zip.folder(folder)
        metadata = format_metadata(complete)
        if self._version is not CURRENT:
            metadata = metadata_2_0(metadata)
        self._zip.file("header/metadata.xsd", schema_of(self._version.number))
        self._zip.file("header/metadata.xml", metadata)
        self._zip.close()

    def _lob_writer(self, schema: Schema, table: Table, open_lob: OpenLob) -> LobWriter:
        """Return what puts down the table's objects, and knows about them at the end."""
        shapes = self._shapes(schema, table)
        writer = self._facts[schema.folder, table.folder] = LobWriter(
            schema,
            table,
            shapes,
            self._rules(schema, table, shapes),
            self._internal,
            self._external,
            self._digest_type,
            open_lob,
            prefixed=self._version.digest_style is DigestStyle.PREFIXED,
        )
        return writer

    def _shapes(self, schema: Schema, table: Table) -> tuple[Shape, ...]:
        return tuple(shape_of(self._database, schema.name, column) for column in table.columns)

    @property
    def _digest_type(self) -> str:
        """Large objects get the strongest of the archive's digests."""
        wanted = self._zip.digest_types
        return next((name for name in ("SHA-256", "SHA-1", "MD5") if name in wanted), "SHA-256")

    def _rules(
        self, schema: Schema, table: Table, shapes: tuple[Shape, ...]
    ) -> tuple[Rule | None, ...]:
        rule = self._lobs.placements.rule
        return tuple(rule(schema, table, c, s) for c, s in zip(table.columns, shapes, strict=True))

    def _stored_columns(
        self, schema: Schema, table: Table, rules: tuple[Rule | None, ...]
    ) -> frozenset[int]:
        always = {
            k for k, rule in enumerate(rules) if rule and rule.place != INLINE and rule.stored
        }
        return self._stored.get((schema.folder, table.folder), frozenset()) | always

    def _with_folders(self, database: Database) -> Database:
        """Return the definitions with what is known now about the columns' large objects."""

        def described(schema: Schema, table: Table) -> Table:
            facts = self._facts.get((schema.folder, table.folder))
            return facts.described(table) if facts else table

        schemas = tuple(
            replace(s, tables=tuple(described(s, t) for t in s.tables)) for s in database.schemas
        )
        columns = (c for s in schemas for t in s.tables for c in t.columns)
        outside = any(column.lob_folder for column in columns)
        folder = self._external.lob_folder if outside and self._external else None
        return replace(database, schemas=schemas, lob_folder=folder)

    def _write_rows(
        self,
        schema: Schema,
        table: Table,
        shapes: tuple[Shape, ...],
        rules: tuple[Rule | None, ...],
        pieces: Iterable[EncodedPart | LazyPart],
        lobs: LobWriter,
        write: Callable[[Block], None],
    ) -> int:
        rows = 0
        with_lobs = RowWriter(f"{schema.name}.{table.name}", table.columns, shapes)
        stored = self._stored_columns(schema, table, rules)
        inlined: frozenset[int] = frozenset()
        for piece in pieces:
            before = inlined
            for item in piece.items:
                inlined, stored = before | piece.inlined, stored | piece.long
                if inlined & stored:  # these columns are to lie in files as a whole
                    self._stored[schema.folder, table.folder] = stored
                    raise Again
                if isinstance(item, Batch):
                    batch = lobs.prepare(item, stored)
                    xml = with_lobs(batch, rows + 1, lobs.placing(rows))
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
        with tempfile.SpooledTemporaryFile(_SPOOL, dir=str(self._path.parent)) as file:
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


def _no_lob(schema: Schema, table: Table, reference: bytes) -> BinaryIO:
    raise AssertionError("a table that is complete has no objects to come")


def _table_head(version: Version, schema: str, table: str) -> bytes:
    space = version.table_namespace.format(schema=schema, table=table)
    number = f' version="{version.number}"' if version is CURRENT else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<table xmlns="{space}" xmlns:xsi="{_XSI}" '
        f'xsi:schemaLocation="{space} {table}.xsd"{number}>\n'
    ).encode()
