"""Where a store's tapes and ARC files lie: the one module that touches them.

A place is a folder of sealed, read-only files; those that still grow lie in its folder ``growing``.
A file grows under the lock of one process; it moves to its place when it is complete and synced.

Object storage fits behind the same operations: a subclass grows files locally, as this one does,
and overrides what is done with sealed ones. It is entered in ``SCHEMES`` for places that begin with
its scheme, ``scheme://…``; nothing else has to change.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from muniment.errors import StoreError
from muniment.files import settle
from muniment.tape.reader import index_path

__all__ = ["SCHEMES", "SUFFIXES", "Growing", "Place", "open_place"]

_READ_ONLY = 0o444
_COPY = 1 << 20
_GROWING = "growing"


def open_place(name: str, home: Path) -> Place:
    """Return the place that a store's settings name; folders count from ``home``."""
    scheme, mark, _ = name.partition("://")
    if not mark:
        return Place(home / name)
    if scheme not in SCHEMES:
        raise StoreError(f"{name} is not a place that this version knows")
    return SCHEMES[scheme](name, home)


class Place:
    """A folder that holds files of a store.

    Files are known by their names. Those that still grow, and the indexes beside files, lie on a
    disk of this machine; sealed ones do not have to.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self) -> None:
        """Make the folders."""
        (self.root / _GROWING).mkdir(parents=True, exist_ok=True)

    def check(self) -> None:
        """Refuse a place that cannot be reached."""
        if not self.root.is_dir():
            raise StoreError(f"{self.root} is not there: is its disk mounted?")

    def names(self) -> list[str]:
        """The names of the sealed tapes and ARC files."""
        return sorted(e.name for e in os.scandir(self.root) if e.name.endswith(SUFFIXES))

    def growing(self) -> list[str]:
        """The names of the files that are not sealed."""
        folder = self.root / _GROWING
        return sorted(e.name for e in os.scandir(folder) if e.name.endswith(SUFFIXES))

    def label(self, name: str) -> str:
        """What people are told about where a file lies."""
        return str(self.root / name)

    def local(self, name: str) -> Path:
        """Return a path of this machine that has the bytes of a file, sealed or not."""
        return self.root / name if self.is_sealed(name) else self.root / _GROWING / name

    def index(self, name: str) -> Path:
        """Return where the index of a file lies, or will."""
        return index_path(self.root / name)

    def is_sealed(self, name: str) -> bool:
        """Whether a file is complete and in its place."""
        return (self.root / name).exists()

    def is_there(self, name: str) -> bool:
        """Whether there is such a file, sealed or not."""
        return self.is_sealed(name) or (self.root / _GROWING / name).exists()

    def discard(self, name: str) -> None:
        """Remove what is left of a file that is sealed."""
        (self.root / _GROWING / name).unlink(missing_ok=True)

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        return self.local(name).stat().st_size

    def open(self, name: str, sealed: bool = True) -> BinaryIO:
        """Open a sealed file, or one that still grows, for reading; it has a descriptor."""
        return (self.root / name if sealed else self.root / _GROWING / name).open("rb")

    def begin(self, name: str) -> Growing:
        """Begin a new file, under a lock of its own."""
        return Growing(self.root / _GROWING / name, "x+b")

    def resume(self, name: str) -> Growing | None:
        """Take over a file whose writer has ended; None if somebody is writing it."""
        try:
            return Growing(self.root / _GROWING / name, "r+b")
        except (BlockingIOError, FileNotFoundError):
            return None

    def replace(self, growing: Growing, head: bytes, start: int, tail: bytes) -> None:
        """Seal a file with another beginning: ``head``, its bytes from ``start`` on, ``tail``."""
        final = self.root / growing.name
        partial = self.root / f".{final.name}.partial"
        partial.unlink(missing_ok=True)
        try:
            with partial.open("xb") as copy:
                copy.write(head)
                while chunk := growing.read(start, _COPY):
                    copy.write(chunk)
                    start += len(chunk)
                copy.write(tail)
                copy.flush()
                os.fsync(copy.fileno())
            partial.chmod(_READ_ONLY)
            settle(partial, final)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        growing.remove()

    def seal(self, growing: Growing) -> None:
        """Give a complete file its name; from now on nobody writes it."""
        growing.sync()
        final = self.root / growing.name
        if final.exists():
            raise StoreError(f"{final} exists already; nothing was overwritten")
        growing.settle(final)

    def put(self, name: str, source: Path) -> None:
        """Take in a copy of a finished file, which appears complete or not at all."""
        final = self.root / name
        if final.exists():
            raise StoreError(f"{final} exists already; nothing was overwritten")
        partial = self.root / f".{name}.{os.getpid()}.partial"
        try:
            with source.open("rb") as stream, partial.open("xb") as copy:
                shutil.copyfileobj(stream, copy, _COPY)
                copy.flush()
                os.fsync(copy.fileno())
            partial.chmod(_READ_ONLY)
            settle(partial, final)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def tidy(self) -> None:
        """Remove what writers that were killed left half-copied; nobody may be writing."""
        for path in self.root.glob("*.partial"):
            path.unlink(missing_ok=True)

    def take_back(self, name: str) -> None:
        """Remove a file that was put here just now, and its index: nothing knows it yet."""
        (self.root / name).unlink(missing_ok=True)
        self.index(name).unlink(missing_ok=True)

    def free(self) -> int:
        """How many bytes are free."""
        return shutil.disk_usage(self.root).free


SCHEMES: dict[str, Callable[[str, Path], Place]] = {}
SUFFIXES = (".xml", ".warc", ".warc.gz", ".arc", ".arc.gz")


class Growing:
    """A file that grows at its end; what was not synced may be cut off again."""

    def __init__(self, path: Path, mode: str) -> None:
        self._path, self.name = path, path.name
        self._stream: BinaryIO = path.open(mode, buffering=0)  # type: ignore[assignment]
        try:
            fcntl.flock(self._stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not path.exists():  # sealed or removed while we waited
                raise FileNotFoundError(path)
        except BaseException:
            self._stream.close()
            raise
        self.position = self._stream.seek(0, os.SEEK_END)

    @property
    def gone(self) -> bool:
        """Whether it was sealed or thrown away."""
        return not self._path.exists()

    def open(self) -> BinaryIO:
        """Open what was written so far, for reading."""
        return self._path.open("rb")

    def settle(self, final: Path) -> None:
        """Move the file, complete and read-only, to another path."""
        os.fchmod(self._stream.fileno(), _READ_ONLY)
        settle(self._path, final)
        self.close()

    def write(self, data: bytes) -> None:
        """Append bytes."""
        view = memoryview(data)
        while view:
            written = self._stream.write(view)
            self.position += written
            view = view[written:]

    def patch(self, offset: int, data: bytes) -> None:
        """Replace bytes that were not synced yet."""
        os.pwrite(self._stream.fileno(), data, offset)

    def cut(self, position: int) -> None:
        """Cut off everything behind a byte."""
        os.ftruncate(self._stream.fileno(), position)
        self.position = self._stream.seek(position)

    def sync(self) -> None:
        """Make sure that everything survives a power cut."""
        os.fsync(self._stream.fileno())

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes that were written before."""
        return os.pread(self._stream.fileno(), length, offset)

    def remove(self) -> None:
        """Throw the file away; nothing in it was ever acknowledged."""
        self._path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let go of the file and its lock."""
        self._stream.close()
