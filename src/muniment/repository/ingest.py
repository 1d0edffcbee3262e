"""From files and folders to Digital Objects: what is in them, and what is known about them."""

from __future__ import annotations

import hashlib
import mimetypes
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from muniment.errors import StoreError, UsageError
from muniment.files import open_plain
from muniment.objects import DigitalObject
from muniment.repository.session import Source
from muniment.siard import open_siard
from muniment.siard.lobs.location import is_absolute
from muniment.siard.lobs.mapping import Mapping
from muniment.siard.volumes import first_volume, part_name, part_of, volume_paths
from muniment.sql.model import Database

__all__ = ["Submission", "media_type", "same_as", "submissions", "submit_file", "submit_folder"]

SIARD = "application/x-siard"
_KNOWN = mimetypes.MimeTypes()  # the built-in table alone: the same on every machine
_OTHERS = {
    ".siard": SIARD,
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".parquet": "application/vnd.apache.parquet",
    ".sqlite": "application/vnd.sqlite3",
    ".db": "application/vnd.sqlite3",
    ".warc": "application/warc",
    ".flac": "audio/flac",
    ".gz": "application/gzip",
}
_UNWRITABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Submission(NamedTuple):
    """An object to be added."""

    sources: tuple[Source, ...]
    metadata: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...] = ()
    contents: tuple[str, ...] = ()


def media_type(name: str) -> str:
    """Return the media type that a file's name says.

    >>> media_type("a/b.siard"), media_type("x.pdf"), media_type("README")
    ('application/x-siard', 'application/pdf', 'application/octet-stream')
    """
    whole, number = part_of(name)  # of an archive in parts, the first stands for all
    if number == 1:
        name = whole if whole.lower().endswith(".siard") else name
    suffix = "." + name.rpartition(".")[2].lower()
    found = _OTHERS.get(suffix) or _KNOWN.types_map[1].get(suffix)
    return found or "application/octet-stream"


def submissions(
    paths: Iterable[Path], *, each: bool = False, folders: Sequence[Path] = ()
) -> Iterator[Submission]:
    """Yield an object per path; with ``each``, one per file inside folders as well."""
    for path in paths:
        if not path.is_dir():
            yield submit_file(path, folders)
        elif each:
            files = (file for file in _files(path) if not _follows(file))
            yield from (submit_file(file) for file in files)
        else:
            yield submit_folder(path)


def submit_file(
    path: Path, folders: Sequence[Path] = (), contents: tuple[str, ...] = ()
) -> Submission:
    """Return a file as an object, a SIARD archive together with its folders of large objects."""
    name = _checked(path.name)
    kind = media_type(name)
    if kind != SIARD and not folders:  # whether there is such a file, its reader says
        about = (("title", name), ("format", kind))
        return Submission((Source(name, path, kind),), about, (), contents)
    path = first_volume(path)
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    if kind != SIARD:
        raise UsageError(f"{path} is no SIARD archive; only those have folders of large objects")
    parts = volume_paths(path)
    sources = [Source(_checked(part.name), part, media_type(part.name)) for part in parts]
    with open_siard(path) as archive:
        database = archive.describe()
    path = path.with_name(part_of(path.name)[0])
    metadata, facts = _described(path, database)
    folders = [*folders, *_lob_folders(path, database)]
    mapped = _mapped(path)
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}")
        # A place that mapping.txt names holds what belongs beside the archive.
        sources += _sources(folder, folder if folder.resolve() in mapped else folder.parent)
    return Submission(tuple(sources), tuple(metadata), tuple(facts), contents)


def _follows(path: Path) -> bool:
    """Whether a file is a later part of an archive, whose first part stands for all."""
    whole, number = part_of(path.name)
    return number > 1 and path.with_name(part_name(whole, 1)).is_file()


def submit_folder(folder: Path) -> Submission:
    """Return all files of a folder as one object."""
    sources = tuple(_sources(folder, folder))
    if not sources:
        raise UsageError(f"{folder} holds no files")
    name = folder.resolve().name
    return Submission(sources, (("title", _checked(name)), ("type", "Collection")))


def _sources(folder: Path, root: Path) -> Iterator[Source]:
    for path in _files(folder):
        name = path.relative_to(root).as_posix()
        yield Source(_checked(name), path, media_type(name))


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted; links and devices are not files."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = folder / entry.name
        if entry.is_symlink():
            raise StoreError(f"{path} is a link; add what it leads to by its own name")
        if entry.is_dir(follow_symlinks=False):
            yield from _files(path)
        elif entry.is_file(follow_symlinks=False):
            yield path
        else:
            raise StoreError(f"{path} is neither a file nor a folder")


def _checked(name: str) -> str:
    if _UNWRITABLE.search(name):
        raise StoreError(f"the name {name!r} holds characters that XML cannot; rename the file")
    return name


def _described(
    path: Path, database: Database
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return Dublin Core and technical facts from an archive's metadata."""
    tables = list(database.tables())
    metadata = [
        ("title", database.dbname or path.name),
        ("creator", database.data_owner),
        ("description", database.description),
        ("contributor", database.archiver),
        ("date", database.archival_date),
        ("coverage", database.data_origin_timespan),
        ("type", "Dataset"),
        ("format", SIARD),
        ("source", database.database_product),
    ]
    facts = [
        ("SIARD version", database.version),
        ("tables", str(len(tables))),
        ("rows", str(sum(table.rows for _, table in tables))),
        ("written by", database.producer_application),
    ]
    return _known(metadata), _known(facts)


def _known(pairs: Iterable[tuple[str, str | None]]) -> list[tuple[str, str]]:
    return [(name, _UNWRITABLE.sub(" ", value)) for name, value in pairs if value]


def _lob_folders(path: Path, database: Database) -> list[Path]:
    """Return the folders beside an archive in which it keeps large objects."""
    named = {database.lob_folder or ""}
    for _, table in database.tables():
        named.update(column.lob_folder or "" for column in table.columns)
    found: dict[Path, None] = {}
    for place in sorted(named - {""}):
        if is_absolute(place):
            continue  # it may be anywhere; --with names it
        steps = [step for step in unquote(place).split("/") if step not in ("", ".")]
        if steps[:1] == [".."]:  # counted from the archive as from a folder
            steps = steps[1:]
        if steps and ".." not in steps and not steps[0].startswith("."):
            found[path.parent / steps[0]] = None
    for entry in sorted(path.parent.iterdir()):
        if entry.is_dir() and re.fullmatch(_beside(path, database), entry.name):
            found[entry] = None
    return [folder for folder in found if folder.is_dir()]


def _mapped(path: Path) -> set[Path]:
    """Return the folders elsewhere to which the archive's mapping.txt leads."""
    mapping = Mapping.beside(path)
    uris = mapping.entries.values() if mapping else ()
    return {Path(unquote(urlsplit(uri).path)).resolve() for uri in uris}


def _beside(path: Path, database: Database) -> str:
    names = {path.stem, path.name, database.dbname or path.stem}
    return f"(?:{'|'.join(map(re.escape, sorted(names)))})_lob(?:s|seg_[0-9]+)"


def same_as(submission: Submission, known: DigitalObject) -> bool:
    """Whether an object that is stored holds exactly these files."""
    stored = {stream.path: (stream.size, stream.sha256) for stream in known.streams}
    if set(stored) != {source.path for source in submission.sources}:
        return False
    return all(_fixity(source) == stored[source.path] for source in submission.sources)


def _fixity(source: Source) -> tuple[int, str]:
    if isinstance(source.data, bytes):
        return len(source.data), hashlib.sha256(source.data).hexdigest()
    with os.fdopen(open_plain(source.data), "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return stream.tell(), digest
