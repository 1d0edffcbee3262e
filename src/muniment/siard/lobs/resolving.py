"""The one door to large objects: from what a cell says to a stream of bytes.

The DILCIS Board's ruling on LOB locations comes first. Where nothing lies there, the readings of
other writers follow, each under its name; ``Found.reading`` says which one it was:

    ruling              no column folder: inside, from the root of the ZIP file; with a column
                        folder: outside, beneath the database's folder or beside the archive
    root-of-zip         inside, from the root, although folders are set (DBPTK, internal objects)
    folders-in-zip      inside, beneath the folders (Full Convert)
    in-table-folder     inside, beneath the folder of the table or of its column (SIARD 1.0)
    up-from-zip         ``../`` counted from the ZIP file as from a folder (SIARD Suite, DBPTK)
    no-column-folder    outside, beneath the database's folder alone (E-ARK 2.0)
    moved               an absolute folder whose objects now lie beside the archive, or beneath a
                        folder that the user gave
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

from muniment.errors import LobError, LobMissing, SiardError
from muniment.siard.lobs.folders import Disks, Folder, Piece, Root, ZipFolder, components
from muniment.siard.lobs.location import Location, is_absolute, parse_location, path_of
from muniment.siard.lobs.outside import state_of
from muniment.siard.lobs.parts import find_parts
from muniment.siard.lobs.verifying import Verified, proven
from muniment.siard.zip import ZipReader
from muniment.sql.model import (
    Array,
    Column,
    Database,
    Field,
    Leaf,
    Schema,
    Shape,
    Struct,
    Table,
    shape_of,
)
from muniment.sql.types import Kind

__all__ = ["Found", "Resolver"]

_SMALL = 1 << 16
_BUFFER = 1 << 20
_CELLS = 4096  # columns, fields and elements of arrays that are remembered


class _Small(io.BytesIO):
    """A small object, with a place for what is known about it."""

    size: int
    link: str


@dataclass(frozen=True, slots=True)
class Found:
    """An object that was found: its pieces in order, and by which reading of its location."""

    pieces: tuple[Piece, ...]
    reading: str
    inside: bool

    @property
    def size(self) -> int:
        """The bytes of all pieces."""
        if len(self.pieces) == 1:
            return self.pieces[0].size
        return sum(piece.size for piece in self.pieces)

    @property
    def last(self) -> Piece | None:
        """The last of several parts."""
        return self.pieces[-1] if len(self.pieces) > 1 else None

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, unproven."""
        for piece in self.pieces:
            yield from piece.chunks()

    def whole(self) -> bytes:
        """Return all bytes of a small object, unproven."""
        if len(self.pieces) == 1:
            return self.pieces[0].whole()
        return b"".join(piece.whole() for piece in self.pieces)


class Resolver:
    """Finds and opens the objects of one archive."""

    def __init__(self, archive: ZipReader, database: Database, roots: Sequence[Root] = ()) -> None:
        self._zip, self._database = archive, database
        self._base = _clean(database.lob_folder)
        self._disks = Disks(archive.path, roots)
        self._readings = lru_cache(4096)(self._list_readings)
        self._places = lru_cache(4096)(self._place)
        self._known: dict[tuple[str, str, tuple[int, ...]], _Cell] = {}

    def open(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        """Open the object behind a reference; its length and digest are proven at its end.

        The stream has an attribute ``size`` in bytes, and ``link``, the dlurlpathonly of the cell.
        """
        location = self.location(schema, table, reference)
        stream: Any
        try:
            found = self.find(schema, table, location)
            text, size = self.is_text(schema, table, location), found.size
            where = partial(self.cell, schema, table, location)
            name = found.pieces[0].name
            if size <= _SMALL:
                stream = _Small(proven(found.whole(), name, where, location, text, found.last))
            else:
                verified = Verified(found.chunks(), name, where, location, text, found.last)
                stream = io.BufferedReader(verified, _BUFFER)
        except LobError as error:
            raise error.at(self.cell(schema, table, location)) from error
        stream.size, stream.link = size, location.link
        return cast(BinaryIO, stream)

    def location(self, schema: Schema, table: Table, reference: bytes) -> Location:
        """Return what a reference says."""
        try:
            return parse_location(reference)
        except LobError as error:
            place = Location(path_of(reference), "")
            raise error.at(self.cell(schema, table, place)) from error

    def find(self, schema: Schema, table: Table, location: Location) -> Found:
        """Return where the object lies; raise LobError if it cannot be found or may not be read."""
        if not location.file:
            raise LobMissing(location.link, "its cell names no file", "T_6.2-1")
        if is_absolute(location.file):
            raise LobError(location.file, "the location in a cell must be relative", "T_6.2-1")
        folders = self._cell(schema, table, location.path).folders
        head, _, name = _clean(location.file).rpartition("/")
        if name in ("", ".", ".."):
            raise LobError(location.file, "that is not the name of a file", "T_6.2-1")
        refused: list[LobError] = []
        table_folder = f"content/{schema.folder}/{table.folder}"
        for reading, place, steps in chain(
            self._readings(folders, head), self._in_table(table_folder, location.path[0], head)
        ):
            try:
                if pieces := self._look(place, steps, name):
                    return Found(pieces, reading, place == _INSIDE)
            except LobError as error:
                refused.append(error)
        if refused:
            raise refused[0]
        raise LobMissing(location.file, self._not_found(folders, head, location), "T_6.4-5")

    def _in_table(self, table: str, column: int, head: str) -> Iterator[_Reading]:
        """List the places within a table's own folder; nobody looks there who found it before."""
        found: list[_Reading] = []
        for folder in ("", f"lob{column - 1}/", f"lob{column}/"):
            _add(found, "in-table-folder", _INSIDE, f"{table}/{folder}{head}")
        yield from found

    def outside(self) -> str:
        """The state of the files outside that objects may lie in; empty if there are none."""
        folders = {
            self._cell(schema, table, (number,)).folders
            for schema, table in self._database.tables()
            for number in range(1, len(table.columns) + 1)
        }
        found: set[Path] = set()
        for each in folders if self._base else folders - {()}:
            with suppress(LobError):
                for _, place, steps in self._list_readings(each, ""):
                    if place != _INSIDE and steps:
                        found |= self._disks.places("" if place == _BESIDE else place, steps)
        return state_of(found)

    def is_text(self, schema: Schema, table: Table, location: Location) -> bool:
        """Whether the object is text, whose length counts characters."""
        return self._cell(schema, table, location.path).text

    def cell(self, schema: Schema, table: Table, location: Location) -> str:
        """Name a cell for people, as far as its location tells."""
        column = table.columns[location.path[0] - 1].name
        inner = "".join(f"[{part}]" for part in location.path[1:])
        return f"{self._zip.path}: {schema.name}.{table.name}.{column}{inner}"

    def _look(self, place: str, steps: tuple[str, ...], name: str) -> tuple[Piece, ...]:
        folder_at = partial(self._places, place)
        for spelling in dict.fromkeys((unquote(name), name)) if "%" in name else (name,):
            if pieces := find_parts(folder_at, steps, spelling):
                return pieces
        return ()

    def _place(self, place: str, steps: tuple[str, ...]) -> Folder | None:
        if place == _INSIDE:
            return ZipFolder(self._zip, "".join(f"{step}/" for step in steps))
        if place == _BESIDE:
            return self._disks.beside(steps)
        return self._disks.folder(place, steps)

    def _list_readings(self, folders: tuple[str, ...], head: str) -> tuple[_Reading, ...]:
        """List every place that a location may mean: the reading, its base, and the steps there."""
        found: list[_Reading] = []
        base, column = self._base, "/".join(folders)
        if folders:
            _refuse_absolute(base, folders, head)
            self._outside(found, "ruling", base, column, head)
        else:
            _add(found, "ruling", _INSIDE, head)
        if folders:
            _add(found, "root-of-zip", _INSIDE, head)
        if not is_absolute(column):
            for path in (f"{base}/{column}/{head}", f"{column}/{head}", f"content/{column}/{head}"):
                if not is_absolute(path.lstrip("/")):
                    _add(found, "folders-in-zip", _INSIDE, path)
        for path in (f"{column}/{head}", f"{base}/{column}/{head}", head):
            steps = [step for step in path.split("/") if step not in ("", ".")]
            if steps[:1] == [".."]:
                _add(found, "up-from-zip", _BESIDE, "/".join(steps[1:]))
        if not folders:
            self._outside(found, "no-column-folder", base, "", head)
        if is_absolute(base) or is_absolute(column) or self._disks.roots:
            inner = "" if is_absolute(column) else column
            outer = "" if is_absolute(base) else base
            for place in (_BESIDE, *(str(root.path) for root in self._disks.roots)):
                _add(found, "moved", place, f"{outer}/{inner}/{head}")
                _add(found, "moved", place, f"{inner}/{head}")
                _add(found, "moved", place, head)
        return tuple(dict.fromkeys(found))

    def _outside(
        self, found: list[_Reading], reading: str, base: str, column: str, head: str
    ) -> None:
        absolute = column if is_absolute(column) else base if is_absolute(base) else ""
        if not absolute:
            _add(found, reading, _BESIDE, f"{base}/{column}/{head}")
            return
        place = self._disks.base(absolute)
        if place is not None:
            _add(found, reading, place, head if absolute == column else f"{column}/{head}")

    def _not_found(self, folders: tuple[str, ...], head: str, location: Location) -> str:
        readings = self._readings(folders, head)
        column = "/".join(folders)
        for absolute in (column, self._base):
            if is_absolute(absolute) and self._disks.base(absolute) is None:
                return (
                    f"its folder is {absolute}, which is outside the archive's folder; name the "
                    "folder that it lies in now with --lob-root"
                )
        if not readings:
            return "its location leads out of the archive's folder"
        if folders or "/" not in location.file:
            return (
                "it is neither inside the archive nor in its folder; if its files were moved, say "
                "where with --lob-root"
            )
        return "it is not inside the archive"

    def _cell(self, schema: Schema, table: Table, path: tuple[int, ...]) -> _Cell:
        key = schema.name, table.folder, path
        if (known := self._known.get(key)) is None:
            if len(self._known) > _CELLS:
                self._known.clear()
            known = self._known[key] = self._new_cell(schema.name, table, path)
        return known

    def _new_cell(self, schema: str, table: Table, path: tuple[int, ...]) -> _Cell:
        if not 1 <= path[0] <= len(table.columns):
            raise SiardError(f"{self._zip.path}: {schema}.{table.name} has no column {path[0]}")
        column = table.columns[path[0] - 1]
        shape = shape_of(self._database, schema, column)
        folders = [_clean(column.lob_folder)]
        level: Column | Field | None = column
        name = column.name
        for number in path[1:]:
            level, name, shape = _part(level, name, shape, number)
            folders.append(_clean(level.lob_folder) if level else "")
        text = isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT
        # An empty folder means that of the enclosing element; an absolute one starts anew.
        kept: list[str] = []
        for folder in filter(None, folders):
            climbs = folder.startswith("../") and kept
            kept = [folder] if is_absolute(folder) or climbs else [*kept, folder]
        return _Cell(tuple(kept), text)


_INSIDE, _BESIDE = "inside", "beside"
_Reading = tuple[str, str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Cell:
    """What all cells of one column or field share."""

    folders: tuple[str, ...]
    text: bool


def _part(
    level: Column | Field | None, name: str, shape: Shape, number: int
) -> tuple[Field | None, str, Shape]:
    """Step into a complex value: the field's metadata (5.7), if there is any, and its shape."""
    if isinstance(shape, Struct) and number <= len(shape.parts):
        inner = shape.parts[number - 1]
        wanted = shape.names[number - 1] if shape.names else ""
    else:
        inner = shape.element if isinstance(shape, Array) else shape
        wanted = f"{name}[{number}]"
    fields = level.fields if level else ()
    for field in fields:
        if field.name == wanted:
            return field, wanted, inner
    return (fields[number - 1] if number <= len(fields) else None), wanted, inner


def _add(found: list[_Reading], reading: str, place: str, path: str) -> None:
    steps = components(unquote(path))
    if steps is not None:
        found.append((reading, place, tuple(steps)))


def _clean(location: str | None) -> str:
    """One spelling: some writers divide folders by backslashes."""
    text = (location or "").strip()
    return text if "://" in text else text.replace("\\", "/")


def _refuse_absolute(base: str, folders: tuple[str, ...], head: str) -> None:
    if base and any(map(is_absolute, folders)):
        raise LobError(
            f"{head}/" if head else folders[-1],
            f"the folder of its column, {folders[-1]}, is absolute, and so may be only the "
            "folder of the database",
            "M_5.6-1",
        )
