"""Where large objects are put down: inside the archive, or in folders beside it.

Folders outside are filled under another name and get theirs when all objects are there, just before
the archive appears.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from muniment.errors import SiardError, UsageError
from muniment.files import new_file, refuse_existing
from muniment.siard.deflating import deflate
from muniment.siard.lobs import mapping
from muniment.siard.lobs.layout import (
    EARK,
    LAYOUTS,
    SIARD,
    Cell,
    Limits,
    Segments,
    column_folder,
    eark_file,
    field_folders,
    folder_number,
    inside_name,
    part_of,
    siard_file,
)
from muniment.siard.lobs.location import ALGORITHMS
from muniment.siard.lobs.manifest import manifest_line, manifest_name, parse_manifest_line
from muniment.siard.zip import ZipWriter

__all__ = ["External", "ExternalStore", "InternalStore", "Store"]


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of an object on their way; ``size`` is None where nobody knows it beforehand."""

    chunks: Iterable[bytes]  # a tuple if all of it is here
    size: int | None
    extension: str
    digest: Callable[[], str]  # known when the chunks have been read


class Store(Protocol):
    """A place for objects."""

    def put(self, cell: Cell, content: Content) -> str:
        """Store an object and return its ``file``."""
        ...


class InternalStore:
    """Files inside the archive."""

    def __init__(self, archive: ZipWriter, compression: str) -> None:
        self._zip, self._compression = archive, compression

    def put(self, cell: Cell, content: Content) -> str:
        name = inside_name(cell, content.extension)
        _into_zip(self._zip, name, content, self._compression)
        return name


def _into_zip(archive: ZipWriter, name: str, content: Content, compression: str) -> None:
    if isinstance(content.chunks, tuple):  # all of it is here
        archive.file(name, b"".join(content.chunks))
        return
    with archive.stream(name) as member:
        for chunk in content.chunks:
            member.write(deflate(chunk, compression))


@dataclass(frozen=True)
class External:
    """How objects outside are laid out."""

    layout: str = SIARD
    limits: Limits = field(default_factory=Limits)
    zipped: bool = False
    places: Mapping[str, str] = field(default_factory=dict)  # segment pattern to file URI

    def check(self) -> None:
        """Refuse wishes that contradict each other."""
        if self.layout not in LAYOUTS:
            raise UsageError(f"{self.layout!r} is not a layout; choose {', '.join(LAYOUTS)}")
        if self.layout == EARK and (self.zipped or self.places):
            raise UsageError("the layout eark-2.0 knows neither zipped segments nor mapping.txt")
        for number in (self.limits.files, self.limits.size):
            if number is not None and number < 1:
                raise UsageError("a segment has room for at least one file and one byte")
        for uri in self.places.values():
            _folder_of(uri)


class ExternalStore:
    """Files beside the archive, or where the user maps their segments to."""

    def __init__(
        self,
        archive: Path,
        database: str,
        how: External,
        digest_type: str,
        day: date,
        compression: str,
        kept: bool = False,
    ) -> None:
        """With ``kept``, what is there already can be gone on with: see ``go_on``."""
        how.check()
        self.database, self._how, self._digest_type = database, how, digest_type
        self._home, self._day, self._compression = archive.parent, day, compression
        self._manifest = archive.with_name(manifest_name(database, digest_type))
        self._mapping = archive.with_name(mapping.NAME)
        self._own = _token(archive) if kept else str(os.getpid())
        self._unsynced = False
        self._stages: dict[str, Path] = {}  # URI of a place, or "", to its folder in the making
        self._segments: dict[tuple[str, ...], Segments] = {}
        self._zips: dict[str, _OpenZip] = {}
        self._list: BinaryIO | None = None  # the manifest in the making
        self._mapped: dict[str, str] = {}
        self._folders: set[str] = set()  # known to exist
        self._settled: list[Path] = []
        self._refuse_existing()

    def put(self, cell: Cell, content: Content) -> str:
        """Write an object, in as many parts as its segments demand."""
        segments = self._segments_of(cell)
        if content.size is None and self._how.limits.size is not None:
            return self._spooled(cell, content)
        parts = list(segments.parts(content.size or 0))
        stream = _Cutter(iter(content.chunks))
        for number, (segment, size) in enumerate(parts):
            steps = self._path(cell, content.extension, segment)
            steps[-1] = part_of(self._how.layout, steps[-1], number, len(parts))
            last = number == len(parts) - 1
            whole = content.digest if len(parts) == 1 else None
            self._write(steps, stream.take(None if last else size), whole)
        return self._file(cell, content.extension, parts[0][0])

    def mark(self) -> Any:
        """Remember this point; a table starts here."""
        segments = {key: s.copy() for key, s in self._segments.items()}
        return segments, self._list.tell() if self._list else 0, {**self._mapped}

    def roll_back(self, mark: Any, schema_folder: str, table_folder: str) -> None:
        """Forget the objects of a table that is written again."""
        segments, lines, mapped = mark
        self._segments = {key: s.copy() for key, s in segments.items()}
        if self._list:
            self._list.seek(lines)
            self._list.truncate()
        self._mapped = {**mapped}
        for name, archive in list(self._zips.items()):
            archive.stream.close()
            del self._zips[name]
        probe = column_folder(_probe(schema_folder, table_folder))
        prefix = probe.removesuffix("0")
        for stage in self._stages.values():
            for pattern in (f"*/{prefix}*", f"*/content/{schema_folder}/{table_folder}"):
                for folder in list(stage.glob(pattern)):
                    shutil.rmtree(folder)
        self._folders.clear()

    def state(self) -> dict[str, Any]:
        """Make sure that all objects are on the disk; return what ``go_on`` needs."""
        if self._list:
            self._list.flush()
        if self._unsynced:
            os.sync()
            self._unsynced = False
        return {
            "places": list(self._stages),
            "segments": [[list(key), s.state()] for key, s in self._segments.items()],
            "manifest": self._list.tell() if self._list else 0,
            "mapped": self._mapped,
        }

    def go_on(self, state: Mapping[str, Any], complete: set[tuple[str, str]]) -> None:
        """Take over the objects of the tables that are ``complete``, by their folders.

        Objects of other tables are removed; those that stay must be as the manifest has them.
        """
        for uri in {"", *self._how.places.values(), *state.get("places", ())}:
            stage = self._stage_path(uri)
            if stage.is_dir() and uri in state.get("places", ()):
                self._stages[uri] = stage
                _remove_incomplete(stage, complete)
            elif stage.is_dir():
                shutil.rmtree(stage)
        for key, numbers in state.get("segments", ()):
            self._segments[tuple(key)] = Segments(self._how.limits, *numbers)
        self._mapped = dict(state.get("mapped", {}))
        if state.get("manifest"):
            self._list = (self._stages_for("") / self._manifest.name).open("rb+")
            self._list.truncate(state["manifest"])
            self._prove(self._list)

    def _prove(self, lines: BinaryIO) -> None:
        """Read what was kept: it must be what was written."""
        homes = [(f"{_folder_of(uri)}/" if uri else "", s) for uri, s in self._stages.items()]
        lines.seek(0)
        for line in lines:
            digest, path = parse_manifest_line(line)
            home, stage = max((each for each in homes if path.startswith(each[0])), key=_length)
            try:
                with (stage / path.removeprefix(home)).open("rb") as stream:
                    found = hashlib.file_digest(stream, ALGORITHMS[self._digest_type]).hexdigest()
            except OSError:
                found = "none"
            if found != digest:
                raise SiardError(
                    f"the large object {path} of the earlier run was changed since or is missing; "
                    f"remove {', '.join(str(s) for _, s in homes)} and the journal to start anew"
                )

    def pause(self) -> None:
        """Let everything lie as it is, after a failure, to be gone on with."""
        if self._list:
            self._list.close()
        for archive in self._zips.values():
            archive.stream.close()

    @property
    def folders(self) -> list[Path]:
        """The folders in the making."""
        return list(self._stages.values())

    def end_table(self) -> None:
        """Close what was open for one table."""
        for archive in self._zips.values():
            self._close_zip(archive)
        self._zips.clear()

    def settle(self) -> None:
        """Give everything its name, once all of it is on the disk."""
        if not self._stages:
            return
        if self._list:
            self._list.close()
        os.sync()  # one for all: there may be millions of files
        for uri, stage in self._stages.items():
            self._move(stage, stage.parent, mapped=bool(uri))
            shutil.rmtree(stage)
        if self._mapped:
            self._settled.append(self._mapping)
            with new_file(self._mapping) as stream:
                stream.write(mapping.format_mapping(sorted(self._mapped.items())))

    def discard(self) -> None:
        """Remove what was made, after a failure."""
        if self._list:
            self._list.close()
        for archive in self._zips.values():
            archive.stream.close()
        for path in (*self._stages.values(), *self._settled):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    @property
    def lob_folder(self) -> str:
        """The lobFolder of the database."""
        return f"./{self.database}_lobs/" if self._how.layout == SIARD else "./"

    def column_folder(self, cell: Cell) -> str:
        """The lobFolder of a column."""
        return f"{column_folder(cell)}/" if self._how.layout == SIARD else "./"

    def field_folder(self, number: int) -> str | None:
        """The lobFolder of a field within a column."""
        return f"f{number}/" if self._how.layout == SIARD else None

    def _refuse_existing(self) -> None:
        first = "lobs" if self._how.layout == SIARD else "lobseg_0"
        refuse_existing(self._home / f"{self.database}_{first}")
        refuse_existing(self._manifest)
        if self._how.places:
            refuse_existing(self._mapping)

    def _segments_of(self, cell: Cell) -> Segments:
        """Segments belong to a folder: one per column and field, or one for the database."""
        key: tuple[str, ...] = ()
        if self._how.layout == SIARD:
            key = (column_folder(cell), *field_folders(cell.path))
        if key not in self._segments:
            self._segments[key] = Segments(self._how.limits)
        return self._segments[key]

    def _path(self, cell: Cell, extension: str, segment: int) -> list[str]:
        """The steps to an object, from the folder of the archive."""
        if self._how.layout == EARK:
            return eark_file(self.database, cell, extension, segment).split("/")
        folders = [f"{self.database}_lobs", column_folder(cell), *field_folders(cell.path)]
        return [*folders, *siard_file(cell, extension, segment, self._how.zipped).split("/")]

    def _file(self, cell: Cell, extension: str, segment: int) -> str:
        if self._how.layout == EARK:
            return eark_file(self.database, cell, extension, segment)
        return siard_file(cell, extension, segment, self._how.zipped)

    def _write(
        self, steps: list[str], chunks: Iterator[bytes], whole: Callable[[], str] | None
    ) -> None:
        if self._how.zipped:
            self._into_zip(steps, chunks)
            return
        folder = "/".join(steps[:-1])
        stage, uri = self._stage(folder)
        target = f"{stage}/{folder}"
        if target not in self._folders:
            Path(target).mkdir(parents=True, exist_ok=True)
            self._folders.add(target)
        digest = None
        if whole is None:  # the digest of a part is not that of the object
            digest = hashlib.new(ALGORITHMS[self._digest_type], usedforsecurity=False)
        with open(f"{target}/{steps[-1]}", "xb", buffering=0) as stream:  # noqa: PTH123 (hot path)
            for chunk in chunks:
                if digest is not None:
                    digest.update(chunk)
                view = memoryview(chunk)
                while view:  # a single write may take less than all
                    view = view[stream.write(view) :]
        found = digest.hexdigest() if digest is not None else whole() if whole else ""
        self._note(found, f"{folder}/{steps[-1]}", uri)

    def _into_zip(self, steps: list[str], chunks: Iterator[bytes]) -> None:
        path = "/".join(steps[:-1])
        key = "/".join(steps[:-2])
        opened = self._zips.get(key)
        if opened is None or opened.path != path:
            if opened is not None:
                self._close_zip(opened)
            opened = self._zips[key] = self._open_zip(path)
        _into_zip(opened.writer, steps[-1], Content(chunks, None, "", str), self._compression)

    def _open_zip(self, path: str) -> _OpenZip:
        stage, uri = self._stage(path.removesuffix(".zip"))
        file = stage / path
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = file.open("xb")
        return _OpenZip(
            path, uri, stream, ZipWriter(stream, self._day, self._compression, (self._digest_type,))
        )

    def _close_zip(self, opened: _OpenZip) -> None:
        opened.writer.close()
        opened.stream.close()
        self._note(opened.writer.digests()[self._digest_type], opened.path, opened.uri)

    def _note(self, digest: str, path: str, uri: str) -> None:
        self._unsynced = True
        place = str(_folder_of(uri) / path) if uri else path
        if self._list is None:
            self._list = (self._stages_for("") / self._manifest.name).open("xb")
        self._list.write(manifest_line(digest, place))

    def _stage(self, segment: str) -> tuple[Path, str]:
        """The folder in the making for a segment, and the URI that it is mapped to."""
        uri = self._mapped_to(segment)
        if uri:
            self._mapped[segment] = uri
        return self._stages_for(uri), uri

    def _stages_for(self, uri: str) -> Path:
        if uri not in self._stages:
            stage = self._stage_path(uri)
            stage.mkdir()
            self._stages[uri] = stage
        return self._stages[uri]

    def _stage_path(self, uri: str) -> Path:
        base = _folder_of(uri) if uri else self._home
        return base / f".{self.database}_lobs.{self._own}.partial"

    def _mapped_to(self, segment: str) -> str:
        short = segment.partition("/")[2]
        for pattern, uri in self._how.places.items():
            wanted = pattern.rstrip("/")
            if fnmatch(segment, wanted) or fnmatch(short, wanted):
                return uri
        return ""

    def _spooled(self, cell: Cell, content: Content) -> str:
        """Learn the size of an object by writing it down once."""
        path = self._stages_for("") / "object.spool"
        with path.open("wb") as stream:
            for chunk in content.chunks:
                stream.write(chunk)
        with path.open("rb") as stream:
            chunks = iter(lambda: stream.read(1 << 20), b"")
            file = self.put(cell, replace(content, chunks=chunks, size=path.stat().st_size))
        path.unlink()
        return file

    def _move(self, stage: Path, home: Path, *, mapped: bool) -> None:
        """Move what lies in a stage to where it belongs; whole folders where they are new."""
        for item in sorted(stage.iterdir()):
            target = home / item.name
            if mapped and item.is_dir() and target.is_dir():
                self._move(item, target, mapped=True)
                continue
            refuse_existing(target)
            item.rename(target)
            self._settled.append(target)


@dataclass(frozen=True, slots=True)
class _OpenZip:
    """A segment that is being packed."""

    path: str
    uri: str
    stream: BinaryIO
    writer: ZipWriter


class _Cutter:
    """Cuts a stream of chunks into runs of given sizes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""

    def take(self, size: int | None) -> Iterator[bytes]:
        """Yield the next ``size`` bytes, or all that are left."""
        while size is None or size > 0:
            chunk = self._rest or next(self._chunks, b"")
            if not chunk:
                return
            piece, self._rest = (chunk, b"") if size is None else (chunk[:size], chunk[size:])
            if size is not None:
                size -= len(piece)
            yield piece


def _token(archive: Path) -> str:
    """A name for what belongs to one archive, wherever it lies."""
    return hashlib.sha256(str(archive.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _length(each: tuple[str, Path]) -> int:
    return len(each[0])


_COLUMN = re.compile(r"s(\d+)_t(\d+)_c\d+")


def _remove_incomplete(stage: Path, complete: set[tuple[str, str]]) -> None:
    """Remove the objects of tables that are not complete, in either layout."""
    known = {(folder_number(schema), folder_number(table)) for schema, table in complete}
    for folder in list(stage.glob("*/s*_t*_c*")):
        match = _COLUMN.fullmatch(folder.name)
        if match and (match[1], match[2]) not in known:
            shutil.rmtree(folder)
    for folder in list(stage.glob("*/content/*/*")):
        if (folder.parent.name, folder.name) not in complete:
            shutil.rmtree(folder)
    (stage / "object.spool").unlink(missing_ok=True)
    for name, _, _ in os.walk(stage, topdown=False):
        if name != str(stage) and not any(Path(name).iterdir()):
            Path(name).rmdir()


def _probe(schema_folder: str, table_folder: str) -> Cell:
    from muniment.sql.model import Schema, Table

    return Cell(Schema("", schema_folder), Table("", table_folder, ()), (0,), 0)


def _folder_of(uri: str) -> Path:
    """Return the folder on this machine that a file URI names."""
    parts = urlsplit(uri)
    path = Path(unquote(parts.path))
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not path.is_absolute():
        raise UsageError(f"{uri!r} is not the URI of a folder here, such as file:///mnt/store/")
    if not path.is_dir():
        raise UsageError(f"the folder {path} does not exist; make it first")
    return path
