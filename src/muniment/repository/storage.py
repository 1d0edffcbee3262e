"""Where a store's files lie: the one module that touches them.

A place is a folder of sealed, read-only files; those that still grow lie in its folder ``growing``.
A file grows under the lock of one process; it moves to its place when it is complete and synced.
Object storage fits behind the same operations: it grows files locally and puts them away when they
are sealed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from typing import BinaryIO

from muniment.errors import StoreError
from muniment.files import settle

__all__ = ["Growing", "Place"]

_READ_ONLY = 0o444
_COPY = 1 << 20
_GROWING = "growing"


class Place:
    """A folder that holds files of a store."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self) -> None:
        """Make the folders."""
        (self.root / _GROWING).mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        """The names of the sealed tapes and ARC files."""
        return sorted(e.name for e in os.scandir(self.root) if e.name.endswith(SUFFIXES))

    def growing(self) -> list[str]:
        """The names of the files that are not sealed."""
        folder = self.root / _GROWING
        return sorted(e.name for e in os.scandir(folder) if e.name.endswith(SUFFIXES))

    def path(self, name: str) -> Path:
        """Where a file lies now, sealed or not."""
        sealed = self.root / name
        return sealed if sealed.exists() else self.root / _GROWING / name

    def is_sealed(self, name: str) -> bool:
        """Whether a file is complete and in its place."""
        return (self.root / name).exists()

    def discard(self, name: str) -> None:
        """Remove what is left of a file that is sealed."""
        (self.root / _GROWING / name).unlink(missing_ok=True)

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        return self.path(name).stat().st_size

    def open(self, name: str, sealed: bool = True) -> BinaryIO:
        """Open a sealed file, or one that still grows, for reading."""
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
        final = self.root / growing.path.name
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
        final = self.root / growing.path.name
        if final.exists():
            raise StoreError(f"{final} exists already; nothing was overwritten")
        os.fchmod(growing.fileno(), _READ_ONLY)
        settle(growing.path, final)
        growing.close()

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

    def free(self) -> int:
        """How many bytes are free."""
        return shutil.disk_usage(self.root).free


SUFFIXES = (".xml", ".warc", ".warc.gz", ".arc", ".arc.gz")


class Growing:
    """A file that grows at its end; what was not synced may be cut off again."""

    def __init__(self, path: Path, mode: str) -> None:
        self.path = path
        self._stream: BinaryIO = path.open(mode, buffering=0)  # type: ignore[assignment]
        try:
            fcntl.flock(self._stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not path.exists():  # sealed or removed while we waited
                raise FileNotFoundError(path)
        except BaseException:
            self._stream.close()
            raise
        self.position = self._stream.seek(0, os.SEEK_END)

    def fileno(self) -> int:
        """The number of the open file."""
        return self._stream.fileno()

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
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let go of the file and its lock."""
        self._stream.close()
