"""Folders that may be looked into: inside the archive, on disk, or in a ZIP file on disk.

An archive comes from anywhere, so what it names is opened only beneath the folder that it lies in
or beneath a folder that the user gave. Links are followed only to such places; names that start
with a dot are not followed at all, unless the user gave their folder.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Files
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from muniment.errors import LobError, SiardError
from muniment.files import Beside, Inside
from muniment.siard.directory import Entry
from muniment.siard.lobs.mapping import Mapping
from muniment.siard.zip import ZipReader

__all__ = ["Disks", "Folder", "Piece", "Root", "ZipFolder", "components", "next_segment"]

_CHUNK = 1 << 20
_SEGMENT = re.compile(r"((?:.*_lob)?seg_)(\d{1,9})(\.zip)?")


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that the user allows; ``uri`` is how archives call it, if they do."""

    path: Path
    uri: str = ""


class Piece(Protocol):
    """A file or an entry of a ZIP file: an object, or a part of one."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def chunks(self) -> Iterator[bytes]: ...
    def whole(self) -> bytes:
        """Return all of a small piece."""
        ...


class Folder(Protocol):
    """A place that holds pieces."""

    def find(self, name: str) -> Piece | None: ...


def components(path: str) -> list[str] | None:
    """Return the steps of a relative path; None if it leaves the folder that it starts from.

    >>> components("./a/../b//c.bin"), components("a/../../b")
    (['b', 'c.bin'], None)
    """
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            if not steps:
                return None
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    return steps


def next_segment(steps: Sequence[str]) -> tuple[str, ...] | None:
    """Return the folder of the segment after this one.

    >>> next_segment(["Northwind_lobs", "s0_t2_c4", "seg_0"])
    ('Northwind_lobs', 's0_t2_c4', 'seg_1')
    >>> next_segment(["Northwind_lobseg_9", "content", "schema0"])
    ('Northwind_lobseg_10', 'content', 'schema0')
    """
    for at in reversed(range(len(steps))):
        if match := _SEGMENT.fullmatch(steps[at]):
            following = f"{match[1]}{int(match[2]) + 1}{match[3] or ''}"
            return (*steps[:at], following, *steps[at + 1 :])
    return None


@dataclass(frozen=True, slots=True)
class ZipPiece:
    """An entry of a ZIP file."""

    archive: ZipReader
    entry: Entry

    @property
    def name(self) -> str:
        return f"{self.archive.path}/{self.entry.name}"

    @property
    def size(self) -> int:
        return self.entry.size

    def chunks(self) -> Iterator[bytes]:
        return self.archive.chunks_of(self.entry)

    def whole(self) -> bytes:
        return self.archive.whole(self.entry)


@dataclass(frozen=True, slots=True)
class ZipFolder:
    """A folder of a ZIP file; ``prefix`` is empty or ends with a slash."""

    archive: ZipReader
    prefix: str

    def find(self, name: str) -> ZipPiece | None:
        entry = self.archive.find(self.prefix + name)
        return ZipPiece(self.archive, entry) if entry else None


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A file on disk."""

    name: str
    size: int

    def chunks(self) -> Iterator[bytes]:
        handle = self._opened()
        try:
            while chunk := os.read(handle, _CHUNK):
                yield chunk
        finally:
            os.close(handle)

    def whole(self) -> bytes:
        handle = self._opened()
        try:
            return os.read(handle, self.size + 1)
        finally:
            os.close(handle)

    def _opened(self) -> int:
        # O_NOFOLLOW: the folder was checked, and no link leads out of it. O_NONBLOCK: a pipe in
        # place of a file does not make us wait.
        handle = os.open(self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
        os.close(handle)
        raise SiardError(f"{self.name} is not a file")


@dataclass(frozen=True, slots=True)
class DiskFolder:
    """A folder on disk, its path free of links."""

    path: str

    def find(self, name: str) -> FilePiece | None:
        full = f"{self.path}/{name}"
        try:
            status = os.stat(full, follow_symlinks=False)  # noqa: PTH116 (hot path)
        except OSError:
            return None
        if stat.S_ISLNK(status.st_mode):
            raise LobError(name, f"{full} is a link, and links are not followed", "G_3.4-1")
        return FilePiece(full, status.st_size) if stat.S_ISREG(status.st_mode) else None


@dataclass(frozen=True, slots=True)
class KeptPiece:
    """A file that was kept with its archive in a store."""

    file: Beside

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def size(self) -> int:
        return self.file.size

    def chunks(self) -> Iterator[bytes]:
        return self.file.chunks()

    def whole(self) -> bytes:
        return b"".join(self.file.chunks())


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """A folder that was kept with its archive in a store; ``prefix`` is empty or ends with /."""

    files: Files[str, Beside]
    prefix: str

    def find(self, name: str) -> KeptPiece | None:
        file = self.files.get(self.prefix + name)
        return KeptPiece(file) if file is not None else None


class Disks:
    """The folders on disk that an archive may use.

    One that is kept in a store has only what was kept with it, and what the user gives.
    """

    def __init__(self, archive: Path, roots: Sequence[Root]) -> None:
        home = Path(os.path.realpath(archive.parent))
        self._home = home
        self.roots = tuple(Root(Path(os.path.realpath(r.path)), r.uri) for r in roots)
        self._kept: Files[str, Beside] | None = None
        if isinstance(archive, Inside) and archive.size is not None:
            self._kept = archive.beside
        self._mapping = Mapping.beside(archive) if self._kept is None else None
        self.folder = lru_cache(4096)(self._folder)
        self._zip = lru_cache(16)(ZipReader)

    def beside(self, steps: tuple[str, ...]) -> Folder | None:
        """Return a folder beside the archive, or where mapping.txt says that it is."""
        if self._kept is not None:
            return self._beside_kept(steps)
        mapped = self._mapping.find(steps) if self._mapping else None
        if self._mapping is None or mapped is None:
            return self.folder(str(self._home), steps)
        base = self.base(mapped)
        if base is None:
            raise LobError(
                "/".join(steps),
                f"mapping.txt says that it lies in {mapped}; if that is right, allow it with "
                "--lob-root",
                "S_8.1.2-0",
            )
        self._mapping.refuse_loop(steps, base, self._home)
        return self.folder(base, steps)

    def places(self, base: str, steps: tuple[str, ...]) -> set[Path]:
        """Where on disk a folder may lie: beneath its base, or where mapping.txt maps it to.

        What is kept in a store with its archive never changes, and so has no places.
        """
        found = {Path(base or self._home, *steps)} if base or self._kept is None else set()
        for mapped, uri in self._mapping.entries.items() if self._mapping else ():
            if mapped[: len(steps)] == steps and (home := self.base(uri)) is not None:
                found.add(Path(home, *mapped))
        return found

    def _beside_kept(self, steps: tuple[str, ...]) -> Folder:
        assert self._kept is not None
        for at in range(1, len(steps) + 1):
            for name in (steps[at - 1], f"{steps[at - 1]}.zip"):
                file = self._kept.get("/".join([*steps[: at - 1], name]))
                if file is not None and name.lower().endswith(".zip"):
                    folder = name[: -len(".zip")]
                    return _ZippedSegment(self._zip(file.path()), _prefix(steps[at:]), folder)
        return KeptFolder(self._kept, _prefix(steps))

    def base(self, uri: str) -> str | None:
        """Return the folder that an absolute location stands for, if it may be looked into."""
        for root in self.roots:
            if root.uri and uri.rstrip("/").startswith(root.uri.rstrip("/")):
                rest = components(unquote(uri.rstrip("/")[len(root.uri.rstrip("/")) :]))
                if rest is not None:
                    return "/".join([str(root.path), *rest])
        parts = urlsplit(uri)
        if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
            return None
        path = os.path.realpath(unquote(parts.path))
        home = () if self._kept is not None else (str(self._home),)
        allowed = (*home, *(str(root.path) for root in self.roots))
        return path if any(_is_within(path, folder) for folder in allowed) else None

    def _folder(self, base: str, steps: tuple[str, ...]) -> Folder | None:
        plain = "/".join([base, *steps])
        real = os.path.realpath(plain)
        self._refuse_outside(real, steps)
        if Path(real).is_dir():
            return DiskFolder(real)
        return self._zipped(base, steps)

    def _zipped(self, base: str, steps: tuple[str, ...]) -> Folder | None:
        """Look for a step that is a ZIP file: ``seg_0.zip`` may stand for ``seg_0`` (L_7.1-1)."""
        for at in range(1, len(steps) + 1):
            head, name, rest = [base, *steps[: at - 1]], steps[at - 1], steps[at:]
            for file, inner in ((name, rest), (f"{name}.zip", rest)):
                path = "/".join([*head, file])
                if file.lower().endswith(".zip") and os.path.isfile(path):  # noqa: PTH113
                    self._refuse_outside(os.path.realpath(path), steps)
                    archive = self._zip(Path(path))
                    return _ZippedSegment(archive, _prefix(inner), name.removesuffix(".zip"))
        return None

    def _refuse_outside(self, real: str, steps: Sequence[str]) -> None:
        if any(_is_within(real, str(root.path)) for root in self.roots):
            return
        shown = "/".join(steps)
        if not _is_within(real, str(self._home)):
            raise LobError(
                shown,
                f"it lies in {real}, outside the folder of the archive; if you trust the archive, "
                f"allow that with --lob-root",
                "G_3.4-1",
            )
        if any(step.startswith(".") for step in real[len(str(self._home)) :].split("/")):
            raise LobError(shown, f"{real} is a hidden folder; allow it with --lob-root", "G_3.4-1")


@dataclass(frozen=True, slots=True)
class _ZippedSegment:
    """A ZIP file in place of a folder; some packers put the folder itself into it."""

    archive: ZipReader
    prefix: str
    folder: str

    def find(self, name: str) -> ZipPiece | None:
        for place in (f"{self.prefix}{name}", f"{self.folder}/{self.prefix}{name}"):
            if entry := self.archive.find(place):
                return ZipPiece(self.archive, entry)
        return None


def _prefix(steps: Sequence[str]) -> str:
    return "".join(f"{step}/" for step in steps)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
