"""Files that appear complete or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Protocol

import apsw

from muniment.errors import UsageError
from muniment.finished import appearing

__all__ = [
    "Beside", "Inside", "chunks_of", "disk_errors", "new_file", "open_plain", "refuse_closed",
    "refuse_existing", "refuse_losses", "settle", "sync_folder",
]  # fmt: skip


def open_plain(path: Path) -> int:
    """Open a file to be read; raise UsageError if there is none, or something that is no file."""
    try:
        # Who opens a pipe waits for somebody to write into it, unless told not to.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"there is no file {path}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"there is no file {path}")
    return descriptor


def refuse_existing(path: Path) -> None:
    """Raise UsageError if something has this name, or if its folder is missing."""
    if path.exists() or path.is_symlink():  # a link that leads nowhere is somebody's, too
        raise UsageError(f"{path} exists already; choose another name or move it away")
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; make it first")
    refuse_closed(path)


def refuse_closed(path: Path) -> None:
    """Raise PermissionError, of this name and no hidden one, if its folder takes no new file."""
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def refuse_losses(path: Path, there: set[str], coming: set[str]) -> None:
    """Raise UsageError if replacing a database would lose tables or views that nobody replaces."""
    lost = sorted(there - coming)
    if lost:
        shown = ", ".join(lost[:8]) + (" …" if len(lost) > 8 else "")
        raise UsageError(
            f"{path} also holds {shown}, which would be lost; choose another name for the database"
        )


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that appears at ``path``, synced to disk, only if the block succeeds."""
    refuse_existing(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    # Ctrl-C may come while the file is being made: it is already ours then.
    try:
        with _open_new(partial, path) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        refuse_existing(path)  # somebody may have been quicker
        settle(partial, path)
    except _Taken:
        raise
    except BaseException:
        with suppress(OSError):  # a name that is too long cannot be removed either
            partial.unlink(missing_ok=True)
        raise


class _Taken(FileExistsError):
    """There is a file of the name under which a new one was to grow."""


def _open_new(partial: Path, path: Path) -> BinaryIO:
    try:
        return partial.open("xb")
    except FileExistsError as error:
        raise _Taken(error.errno, error.strerror, str(partial)) from error
    except OSError as error:  # of a name that only we know
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def disk_errors() -> Iterator[None]:
    """Let a full or broken disk be an OSError in indexes, too, as it is everywhere else."""
    try:
        yield
    except apsw.FullError as error:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
    except apsw.IOError as error:
        raise OSError(errno.EIO, f"an index could not be written or read ({error})") from error


def settle(partial: Path, path: Path) -> None:
    """Give a finished file its name, and make sure that the name survives a power cut."""
    with appearing(path):
        partial.rename(path)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder survive a power cut, as far as its disk knows how."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # of disks beyond a network
            raise
    finally:
        os.close(descriptor)


class Beside(Protocol):
    """A file that was kept together with another one, wherever its bytes lie now."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def chunks(self) -> Iterator[bytes]: ...
    def path(self) -> Path: ...


class Inside(type(Path())):  # type: ignore[misc]  # the class of paths on this system
    """A file that lies inside another one, from a byte on: a path that leads to the outer file.

    ``beside`` are the files that lay around it, by their paths from its folder; what lies around
    the outer file has nothing to do with it. A file in parts has ``pieces``, each of an outer file
    of its own, from a byte on, so many bytes; the path leads to the first.
    """

    start = 0
    size: int | None = None
    pieces: tuple[tuple[Path, int, int], ...] = ()
    label = ""
    beside: Mapping[str, Beside] = MappingProxyType({})

    @classmethod
    def of(
        cls,
        outer: Path,
        start: int,
        size: int,
        label: str,
        beside: Mapping[str, Beside] | None = None,
    ) -> Inside:
        """Name ``size`` bytes of a file, from ``start`` on."""
        return cls.joined([(Path(str(outer)), start, size)], label, beside)

    @classmethod
    def joined(
        cls,
        pieces: Sequence[tuple[Path, int, int]],
        label: str,
        beside: Mapping[str, Beside] | None = None,
    ) -> Inside:
        """Name the bytes of several files, one after the other."""
        made = cls(pieces[0][0])
        made.pieces, made.start = tuple(pieces), pieces[0][1]
        made.size, made.label = sum(size for _, _, size in pieces), label
        made.beside = beside or {}
        return made

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Inside):
            return self._identity() == other._identity()
        return self.size is None and super().__eq__(other) is True

    def __hash__(self) -> int:
        return super().__hash__() if self.size is None else hash(self._identity())

    def _identity(self) -> tuple[str, int, int | None]:
        return str(self), self.start, self.size

    def __reduce__(self) -> tuple[object, ...]:
        if self.size is None:
            return Path, (str(self),)
        return Inside.joined, (self.pieces, self.label, dict(self.beside))


def chunks_of(path: Path, size: int = 1 << 20) -> Iterator[bytes]:
    """Yield the bytes of a file, also of one that lies inside another."""
    pieces = path.pieces if isinstance(path, Inside) and path.pieces else ((path, 0, -1),)
    for outer, start, left in pieces:
        with outer.open("rb") as stream:
            stream.seek(start)
            while left and (chunk := stream.read(size if left < 0 else min(size, left))):
                yield chunk
                left = left if left < 0 else left - len(chunk)
