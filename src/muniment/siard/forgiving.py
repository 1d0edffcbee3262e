"""An archive of which as much is read as there is: for restoring, not for proving.

Large objects that nobody has any more become NULL, and a note says how many. Objects inside complex
values come with them, since no database takes those apart from their value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment.errors import LobError, LobMissing, MunimentError
from muniment.siard.lobs.folders import Root
from muniment.siard.source import SiardSource
from muniment.siard.zip import ZipReader
from muniment.sql.batch import CELL, CLOSE, ITEM, NULL, OPEN, REF, ROW, Batch, cells_of, parts_of
from muniment.sql.model import Schema, Table
from muniment.sql.types import PredefinedType

__all__ = ["ForgivingSource"]

_BATCH_BYTES = 1 << 22  # of objects that are put into complex values
_DATALINK = PredefinedType("DATALINK")


class ForgivingSource(SiardSource):
    """A SIARD archive that gives what it has."""

    def __init__(self, *arguments: Any) -> None:
        self._missing: dict[str, set[bytes]] = {}  # rows may be read more than once
        self._told: list[str] = []
        super().__init__(*arguments)

    @property
    def missing(self) -> list[str]:
        """Which large objects nobody has any more, as sentences."""
        return [
            f"{where}: {len(references)} large objects are missing and became NULL"
            if len(references) > 1
            else f"{where}: a large object is missing and became NULL"
            for where, references in self._missing.items()
        ]

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Say with an error what is missing: that may be the reason."""
        try:
            yield
        except MunimentError as error:
            for sentence in self.missing:
                error.add_note(f"{sentence}; if its files were moved, say where with --lob-root")
            raise

    @property
    def notes(self) -> list[str]:
        """What had to be overlooked, as sentences."""
        return self._told + self.missing

    @notes.setter
    def notes(self, notes: list[str]) -> None:
        self._told = notes

    def batches(self, schema: Schema, table: Table, part: Any) -> Iterator[Batch]:
        """Yield the rows of a run."""
        for batch in super().batches(schema, table, part):
            if REF in batch.data:
                yield from self._settled(schema, table, batch)
            else:
                yield batch

    def opener(self) -> Any:
        """Let workers help only where nothing can be missing: they could not say what was."""
        database = self.describe()
        outside = database.lob_folder or any(
            column.lob_folder for _, table in database.tables() for column in table.columns
        )
        return None if outside else _Opener(self.path, self._roots, self._zip)

    def _settled(self, schema: Schema, table: Table, batch: Batch) -> Iterator[Batch]:
        """Yield a batch again, in several ones if the objects in complex values are large."""
        cells = (
            self._cell(schema, table, cell) if REF in cell else cell for cell in cells_of(batch)
        )
        held: list[bytes] = []
        size = 0
        for row in zip(*[cells] * len(table.columns), strict=True):
            held.append(CELL.join(row) + ROW)
            size += len(held[-1])
            if size >= _BATCH_BYTES:
                yield Batch(b"".join(held), len(held))
                held, size = [], 0
        if held:
            yield Batch(b"".join(held), len(held))

    def _cell(self, schema: Schema, table: Table, cell: bytes, *, inner: bool = False) -> bytes:
        if cell.startswith(OPEN):
            parts = (self._cell(schema, table, part, inner=True) for part in parts_of(cell))
            return OPEN + b"".join(part + ITEM for part in parts) + CLOSE
        if not cell.startswith(REF):
            return cell
        location = self.lobs.location(schema, table, cell[1:])
        own = table.columns[location.path[0] - 1].type
        if location.link and (not inner or own == _DATALINK):
            return cell  # the link is there, whatever became of its file
        try:
            self.lobs.find(schema, table, location)
        except LobMissing:
            column = table.columns[location.path[0] - 1].name
            where = f"{schema.name}.{table.name}.{column}"
            self._missing.setdefault(where, set()).add(cell)
            return NULL
        except LobError as error:
            raise error.at(self.lobs.cell(schema, table, location)) from error
        if not inner:
            return cell
        with self.open_lob(schema, table, cell[1:]) as stream:
            value = stream.read()
        return value if self.lobs.is_text(schema, table, location) else value.hex().upper().encode()


@dataclass(frozen=True)
class _Opener:
    path: Path
    roots: tuple[Root, ...]
    archive: ZipReader

    def __call__(self) -> ForgivingSource:
        return ForgivingSource(self.path, self.roots, self.archive)
