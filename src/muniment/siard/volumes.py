"""A SIARD file in one piece or in parts (S_8.2-0): ``Northwind.siard_part001``, ``_part002`` …

Every command opens the parts in place, as one file. They are written while the archive streams: no
whole file is ever made first.
"""

from __future__ import annotations

import os
import re
import weakref
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, count
from pathlib import Path
from typing import BinaryIO, Protocol

from muniment.errors import SiardError, UsageError
from muniment.files import Inside, new_file, refuse_existing, sync_folder
from muniment.finished import appearing

__all__ = [
    "Sink", "VolumeWriter", "Volumes", "exists", "first_volume", "new_volumes", "part_name",
    "part_of", "volume_paths",
]  # fmt: skip

_OPEN = 64  # parts
_PART = re.compile(r"(?P<name>.*)_part(?P<number>\d{3,})", re.DOTALL)


def part_name(name: str, number: int) -> str:
    """Return the name of a part; numbers start with 1.

    >>> part_name("Northwind.siard", 1)
    'Northwind.siard_part001'
    """
    return f"{name}_part{number:03}"


def part_of(name: str) -> tuple[str, int]:
    """Return the name of the archive and the number of a part; 0 for what is no part.

    >>> part_of("Northwind.siard_part002"), part_of("Northwind.siard")
    (('Northwind.siard', 2), ('Northwind.siard', 0))
    """
    match = _PART.fullmatch(name)
    return (match["name"], int(match["number"])) if match else (name, 0)


def first_volume(path: Path) -> Path:
    """Return the file that an archive starts with, given its name or that of its first part."""
    if path.exists():
        return path
    first = path.with_name(part_name(path.name, 1))
    return first if first.exists() else path


def exists(path: Path) -> bool:
    """Whether there is an archive of this name, whole or in parts."""
    return first_volume(path).exists()


def volume_paths(path: Path) -> tuple[Path, ...]:
    """Return the files that an archive lies in, in order."""
    if isinstance(path, Inside) and path.pieces:
        return tuple(outer for outer, _, _ in path.pieces)
    first = first_volume(path)
    match = _PART.fullmatch(first.name)
    if not match or not first.exists():
        return (first,)
    if int(match["number"]) != 1:
        raise UsageError(f"{path} is not the first part of an archive; name the one with _part001")
    found = []
    for number in count(1):
        part = first.with_name(part_name(match["name"], number))
        if not part.is_file():
            break
        found.append(part)
    _refuse_gap(first.parent, match["name"], len(found))
    return tuple(found)


def _refuse_gap(folder: Path, name: str, found: int) -> None:
    for other in folder.iterdir():
        match = _PART.fullmatch(other.name)
        if match and match["name"] == name and int(match["number"]) > found:
            missing = part_name(name, found + 1)
            raise SiardError(f"{folder / missing} is missing, and {other.name} is there")


class Volumes:
    """The bytes of an archive by their offset, whatever files they lie in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.paths = volume_paths(path)
        # A process may have few files open at once; those of many parts are opened when needed.
        kept = self.paths if len(self.paths) <= _OPEN else ()
        self._files = [os.open(part, os.O_RDONLY) for part in kept]
        self.close = weakref.finalize(self, _close, self._files)
        self._bases = [0] * len(self.paths)
        if isinstance(path, Inside) and path.pieces:  # kept in a store, read in place
            self._bases = [start for _, start, _ in path.pieces]
            sizes = [size for _, _, size in path.pieces]
        else:
            sizes = [part.stat().st_size for part in self.paths]
        self._starts = [0, *accumulate(sizes)]
        self.size = self._starts.pop()

    def __reduce__(self) -> tuple[type[Volumes], tuple[Path]]:
        return Volumes, (self.path,)

    def read(self, offset: int, size: int) -> bytes:
        """Return so many bytes, or fewer at the end of the archive."""
        if size <= 0 or offset >= self.size:
            return b""
        data = self._read(offset, size)
        if len(data) == size or len(self.paths) == 1:
            return data
        pieces = [data]
        while len(data) < size and offset + len(data) < self.size:
            offset, size = offset + len(data), size - len(data)
            data = self._read(offset, size)
            pieces.append(data)
        return b"".join(pieces)

    def _read(self, offset: int, size: int) -> bytes:
        number = bisect_right(self._starts, offset) - 1
        end = self._starts[number + 1] if number + 1 < len(self._starts) else self.size
        size = min(size, end - offset)
        within = self._bases[number] + offset - self._starts[number]
        if self._files:
            data = os.pread(self._files[number], size, within)
        else:
            with self.paths[number].open("rb") as part:
                data = os.pread(part.fileno(), size, within)
        if not data:
            raise SiardError(f"{self.paths[number]} became shorter while it was read")
        return data


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


class Sink(Protocol):
    """What an archive is written to."""

    def write(self, data: bytes, /) -> object: ...
    def read(self, size: int, /) -> bytes: ...
    def seek(self, position: int, /) -> object: ...
    def truncate(self) -> object: ...


@contextmanager
def new_volumes(path: Path, limit: int | None) -> Iterator[Sink]:
    """Open a new archive that appears under its name only if the block succeeds.

    With a ``limit`` it is cut into parts of so many bytes, unless it fits into one.
    """
    if limit is None:
        with new_file(path) as stream:
            yield stream
        return
    writer = VolumeWriter(path, limit, f".{{}}.{os.getpid()}.partial")
    try:
        yield writer
        writer.sync()
        writer.settle()
    except BaseException:
        writer.discard()
        raise


class VolumeWriter:
    """Writes bytes into one partial file after the other; ``naming`` says what they are called.

    Parts that an earlier run left under these names are gone on with.
    """

    def __init__(self, path: Path, limit: int, naming: str) -> None:
        if limit < 1:
            raise UsageError("an archive cannot be split into parts of no size")
        refuse_existing(path)
        refuse_existing(path.with_name(part_name(path.name, 1)))
        self._path, self._limit, self._naming = path, limit, naming
        self._count = next(n for n in count() if not self._partial(n).exists())
        self._part: tuple[int, BinaryIO] | None = None  # the one that is open
        self._unsynced: set[int] = set()
        self._position = 0

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            number, within = divmod(self._position, self._limit)
            part = self._opened(number)
            if part.tell() != within:  # seeking would empty the buffer
                part.seek(within)
            size = part.write(view[: self._limit - within])
            self._unsynced.add(number)
            self._position += size
            view = view[size:]

    def read(self, size: int) -> bytes:
        """Return at most so many bytes from the present position on."""
        number, within = divmod(self._position, self._limit)
        if number >= self._count:
            return b""
        part = self._opened(number)
        part.seek(within)
        data = part.read(min(size, self._limit - within))
        self._position += len(data)
        return data

    def seek(self, position: int) -> None:
        self._position = position

    def truncate(self) -> None:
        """Cut off what follows the present position."""
        number, within = divmod(self._position, self._limit)
        self._close()
        for later in range(number + 1, self._count):
            self._partial(later).unlink()
        if number < self._count:
            self._count = number + 1
            part = self._opened(number)
            part.seek(within)
            part.truncate()
            self._unsynced.add(number)
        self._unsynced = {each for each in self._unsynced if each <= number}

    def sync(self) -> None:
        """Make sure that all of it is on the disk."""
        self._close()
        for number in sorted(self._unsynced):
            with self._partial(number).open("rb") as part:
                os.fsync(part.fileno())
        self._unsynced.clear()

    def settle(self) -> None:
        """Give the parts their names, the first one last."""
        self._close()
        if self._count > 1 and self._partial(self._count - 1).stat().st_size == 0:
            self._count -= 1  # cut at a limit, and nothing came after it
            self._partial(self._count).unlink()
        names = [part_name(self._path.name, number + 1) for number in range(self._count)]
        if len(names) == 1:
            names = [self._path.name]
        for name in names:
            refuse_existing(self._path.with_name(name))
        paths = [self._path.with_name(name) for name in names]
        with appearing(self._path):
            try:
                for number in reversed(range(len(paths))):
                    self._partial(number).rename(paths[number])
            except BaseException:
                for path in paths[number + 1 :]:
                    path.unlink()
                raise
            sync_folder(self._path.parent)

    def close(self) -> None:
        """Let the parts lie as they are."""
        self._close()

    def discard(self) -> None:
        """Remove the parts."""
        self._close()
        for number in range(self._count):
            self._partial(number).unlink(missing_ok=True)

    def _opened(self, number: int) -> BinaryIO:
        if self._part is None or self._part[0] != number:
            self._close()
            # Bytes of which no file is made before they are needed; no other is ever skipped.
            stream = self._partial(number).open("xb+" if number == self._count else "rb+")
            self._count = max(self._count, number + 1)
            self._part = number, stream
        return self._part[1]

    def _close(self) -> None:
        if self._part is not None:
            self._part[1].close()
            self._part = None

    def _partial(self, number: int) -> Path:
        return self._path.with_name(self._naming.format(part_name(self._path.name, number + 1)))
