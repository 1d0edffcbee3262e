"""Names of large objects, and their distribution over segments.

``siard-2.2`` is the layout of L_7.1-0, with segments in each column's folder; ``eark-2.0`` is that
of the E-ARK recommendation, with segments for the whole database. Inside the archive the names are
those of the standard's examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from muniment.siard.lobs.parts import eark_part_name
from muniment.siard.volumes import part_name
from muniment.sql.model import Schema, Table

__all__ = ["EARK", "LAYOUTS", "SIARD", "Cell", "Limits", "Segments", "folder_name", "inside_name"]

SIARD, EARK = LAYOUTS = ("siard-2.2", "eark-2.0")


@dataclass(frozen=True, slots=True)
class Cell:
    """A place in a table: the column and the parts within a complex value from 1, rows too."""

    schema: Schema
    table: Table
    path: tuple[int, ...]
    row: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What one segment may hold; None is no limit."""

    files: int | None = 10_000
    size: int | None = None


class Segments:
    """Gives each object its segment, or several if it is larger than one (S_8.1)."""

    def __init__(self, limits: Limits, number: int = 0, files: int = 0, size: int = 0) -> None:
        """Begin with a segment that holds so much already."""
        self._limits = limits
        self.number, self._files, self._bytes = number, files, size

    def copy(self) -> Segments:
        """Return the same state, to come back to it."""
        return Segments(self._limits, *self.state())

    def state(self) -> tuple[int, int, int]:
        """The segment in hand, its files and its bytes."""
        return self.number, self._files, self._bytes

    def parts(self, size: int) -> Iterator[tuple[int, int]]:
        """Yield the segment and the size of each part of an object.

        >>> segments = Segments(Limits(files=4, size=45_000))
        >>> sizes = [10151, 12107, 12007, 9756, 12131, 11280, 12338, 12069]
        >>> [next(segments.parts(size))[0] for size in sizes]
        [0, 0, 0, 0, 1, 1, 1, 2]
        >>> segments = Segments(Limits(files=4, size=100))
        >>> [list(segments.parts(size)) for size in (40, 230, 20)]
        [[(0, 40)], [(0, 60), (1, 100), (2, 70)], [(2, 20)]]
        """
        limit = self._limits.size
        if limit is None or size <= limit:
            if self._is_full(size):
                self._advance()
            yield self._take(size)
            return
        while size > 0:
            if self._is_full(1):
                self._advance()
            part = min(size, limit - self._bytes)
            yield self._take(part)
            size -= part

    def _is_full(self, size: int) -> bool:
        if self._files == 0:
            return False
        files, limit = self._limits.files, self._limits.size
        if files is not None and self._files >= files:
            return True
        return limit is not None and self._bytes + size > limit

    def _take(self, size: int) -> tuple[int, int]:
        self._files += 1
        self._bytes += size
        return self.number, size

    def _advance(self) -> None:
        self.number, self._files, self._bytes = self.number + 1, 0, 0


def folder_name(dbname: str) -> str:
    """Return a database's name as a folder may be called (P_4.2-6).

    >>> folder_name("Tree register"), folder_name("../etc"), folder_name("")
    ('Tree_register', 'etc', 'database')
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "_", dbname).strip("_-") or "database"


def inside_name(cell: Cell, extension: str) -> str:
    """Return the name of an object inside the archive, from the root of the ZIP file."""
    fields = "".join(f"field{part - 1}/" for part in cell.path[1:])
    folder = f"content/{cell.schema.folder}/{cell.table.folder}/lob{cell.path[0] - 1}/{fields}"
    return f"{folder}record{cell.row - 1}.{extension}"


def column_folder(cell: Cell) -> str:
    """Return the folder of a column in the layout of L_7.1-0.

    >>> from muniment.sql.model import Schema, Table
    >>> column_folder(Cell(Schema("n", "schema0"), Table("c", "table2", ()), (4,), 1))
    's0_t2_c4'
    """
    return (
        f"s{folder_number(cell.schema.folder)}_t{folder_number(cell.table.folder)}_c{cell.path[0]}"
    )


def field_folders(path: tuple[int, ...]) -> list[str]:
    """Return the folders of the fields within a complex value: 5.7 gives each one of its own."""
    return [f"f{part}" for part in path[1:]]


def siard_file(cell: Cell, extension: str, segment: int, zipped: bool) -> str:
    """Return the ``file`` of an object in the layout of L_7.1-0, relative to its folder."""
    name = f"t{folder_number(cell.table.folder)}_c{cell.path[0]}_r{cell.row}.{extension}"
    return f"seg_{segment}{'.zip' if zipped else ''}/{name}"


def eark_file(database: str, cell: Cell, extension: str, segment: int) -> str:
    """Return the ``file`` of an object in the E-ARK layout, relative to the archive."""
    fields = "".join(f"field{part}/" for part in cell.path[1:])
    folder = f"content/{cell.schema.folder}/{cell.table.folder}/lob{cell.path[0]}/{fields}"
    return f"{database}_lobseg_{segment}/{folder}record{cell.row - 1}.{extension}"


def part_of(layout: str, name: str, number: int, count: int) -> str:
    """Return the name of a part; numbers start with 0."""
    if count == 1:
        return name
    if layout == EARK:
        return eark_part_name(name, -1 if number == count - 1 else number)
    return part_name(name, number + 1)


def folder_number(folder: str) -> str:
    """Return the number at the end of a folder's name."""
    digits = re.search(r"\d+$", folder)
    return digits[0] if digits else "0"
