"""Columns that hold the names of files outside the database: DATALINK (7, P_4.3-3).

On the way into an archive, ``Linked`` turns the texts of such columns into large objects: it
fetches the files. On the way back, ``Unlinked`` gives the texts that the database had.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from muniment.errors import LobMissing, NotFound, UsageError
from muniment.files import new_file
from muniment.siard.lobs.location import parse_location
from muniment.siard.source import SiardSource
from muniment.sql.batch import CELL, CLOSE, ITEM, NULL, OPEN, REF, ROW, Batch, cells_of, parts_of
from muniment.sql.model import Column, Database, Schema, Table
from muniment.sql.stores import Opener, Source
from muniment.sql.types import Kind, PredefinedType

__all__ = ["Linked", "Links", "Unlinked", "unlinked"]

_MARK = b"\x03"  # starts a reference to a linked file
_TIMEOUT = 60  # seconds without an answer
_SHOWN = 20
_DATALINK, _TEXT = PredefinedType("DATALINK"), PredefinedType("CLOB")


@dataclass(frozen=True)
class Links:
    """Which columns hold links (SCHEMA.TABLE.COLUMN), and how they are followed."""

    columns: tuple[str, ...] = ()
    root: Path | None = None  # the folder that paths start from, and never leave
    report: bool = False  # go on without files that are missing


class Linked:
    """A source some of whose columns hold links."""

    def __init__(self, source: Source, links: Links) -> None:
        self._source, self._links = source, links
        self._originals = source.describe()
        self._database = _retyped(self._originals, self._is_link, _DATALINK)
        self._missing: dict[str, str] = {}
        tables = list(self._originals.tables())
        known = {f"{s.name}.{t.name}.{c.name}" for s, t in tables for c in t.columns}
        for name in links.columns:
            if name not in known:
                raise UsageError(f"{name} is not a column SCHEMA.TABLE.COLUMN of this database")

    def __enter__(self) -> Linked:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    @property
    def notes(self) -> list[str]:
        """What the source says, and every file that is missing."""
        missing = [f"{where}: {reason}" for where, reason in self._missing.items()]
        return [*getattr(self._source, "notes", ()), *missing]

    def describe(self) -> Database:
        return self._database

    def check(self) -> None:
        """Raise NotFound, with a list, if files are missing and nobody said to go on without."""
        if self._links.report:
            return
        missing = []
        for schema, table in self._database.tables():
            for link in self._all_links(schema, table):
                if urlsplit(link).scheme not in ("http", "https"):
                    try:
                        self._path(link)
                    except _Gone as gone:
                        missing.append(str(gone))
        if missing:
            more = f"\nand {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
            raise NotFound(
                f"{len(missing)} linked files cannot be read; --missing-files report archives the "
                "rest:\n" + "\n".join(missing[:_SHOWN]) + more
            )

    def parts(self, schema: Schema, table: Table) -> Iterator[Any]:
        return self._source.parts(schema, self._original(schema, table))

    def batches(self, schema: Schema, table: Table, part: Any) -> Iterator[Batch]:
        chosen = self._numbers(schema, table)
        for batch in self._source.batches(schema, self._original(schema, table), part):
            yield _changed(batch, len(table.columns), chosen, _marked) if chosen else batch

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        if not reference.startswith(_MARK):
            return self._source.open_lob(schema, self._original(schema, table), reference)
        link = reference[1:].decode("utf-8", "surrogatepass")
        try:
            return self._fetched(link)
        except _Gone as gone:
            if not self._links.report:
                raise NotFound(f"{schema.name}.{table.name}: {gone}") from gone
            self._missing[f"{schema.name}.{table.name}: {link}"] = "the linked file is missing"
            raise LobMissing(link, "the linked file is missing", "missing-file") from gone

    def opener(self) -> Opener | None:
        inner = self._source.opener()
        return _Opener(inner, self._links) if inner else None

    def count(self, schema: Schema, table: Table, read: int) -> int | None:
        count = getattr(self._source, "count", None)
        counted: int | None = count(schema, self._original(schema, table), read) if count else None
        return counted

    def refit(self, schema: Schema, table: Table, unfit: Any) -> Table | None:
        refit = getattr(self._source, "refit", None)
        wider = refit(schema, self._original(schema, table), unfit) if refit else None
        return _retyped_table(schema, wider, self._is_link, _DATALINK) if wider else None

    def _is_link(self, schema: Schema, table: Table, column: Column) -> bool:
        return f"{schema.name}.{table.name}.{column.name}" in self._links.columns

    def _numbers(self, schema: Schema, table: Table) -> list[int]:
        return [k for k, c in enumerate(table.columns) if self._is_link(schema, table, c)]

    def _original(self, schema: Schema, table: Table) -> Table:
        """The table as the source knows it, apart from types that were widened since."""
        original = self._originals.schema(schema.name).table(table.name)
        known = {c.name: c.type for c in original.columns}
        columns = tuple(
            replace(c, type=known[c.name]) if self._is_link(schema, table, c) else c
            for c in table.columns
        )
        return replace(table, columns=columns)

    def _all_links(self, schema: Schema, table: Table) -> Iterator[str]:
        numbers, width = self._numbers(schema, table), len(table.columns)
        original = self._original(schema, table)
        for part in self._source.parts(schema, original) if numbers else ():
            for batch in self._source.batches(schema, original, part):
                cells = cells_of(batch)
                for k in numbers:
                    for cell in cells[k::width]:
                        yield from _links_in(cell)

    def _fetched(self, link: str) -> BinaryIO:
        stream: Any
        if urlsplit(link).scheme in ("http", "https"):
            try:
                stream = urlopen(link, timeout=_TIMEOUT)
            except (URLError, OSError, ValueError) as error:
                raise _Gone(f"{link}: {error}") from error
            length = stream.headers.get("Content-Length")
            stream.size = int(length) if length and length.isdecimal() else None
        else:
            path = self._path(link)
            stream = path.open("rb")
            stream = _WithFacts(stream, path.stat().st_size)
        stream.link = link
        opened: BinaryIO = stream
        return opened

    def _path(self, link: str) -> Path:
        text = unquote(urlsplit(link).path) if link.lower().startswith("file:") else link
        root = self._links.root
        candidates = [Path(text)]
        if root is not None:
            slashes = text.replace("\\", "/")
            candidates = [Path(text), root / text.lstrip("/"), root / slashes.lstrip("/")]
        for path in candidates:
            try:
                real = Path(os.path.realpath(path))
                inside = root is None or real.is_relative_to(os.path.realpath(root))
                if inside and real.is_file():
                    return real
            except (OSError, ValueError):
                continue
        where = f" beneath {root}" if root else ""
        raise _Gone(f"{link}: there is no such file{where}")


class _Gone(Exception):
    """A linked file cannot be had."""


class _WithFacts:
    """A file with a place for what is known about it."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self.size, self.link = stream, size, ""

    def __enter__(self) -> _WithFacts:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size)


@dataclass(frozen=True)
class _Opener:
    inner: Opener
    links: Links

    def __call__(self) -> Any:
        return _Reopened(self.inner(), self.links)


class _Reopened:
    """A linked source in a worker process."""

    def __init__(self, inner: Any, links: Links) -> None:
        self._inner, self._links = inner, links

    def __enter__(self) -> Linked:
        return Linked(self._inner.__enter__(), self._links)

    def __exit__(self, *error: Any) -> None:
        self._inner.__exit__(*error)


@dataclass
class _Files:
    """Where linked files are put, and how many there were."""

    root: Path | None
    count: int = 0
    unwritten: int = 0
    missing: list[str] = field(default_factory=list)


def unlinked(source: SiardSource, root: Path | None = None) -> Any:
    """Return an archive whose DATALINK columns give their links as text.

    The files go beneath ``root``, if that is given. An archive without links stays as it is.
    """
    found = {
        (schema.name, table.name, column.name)
        for schema, table in source.describe().tables()
        for k, column in enumerate(table.columns)
        if _is_datalink(column) and _has_links(source, schema, table, k)
    }
    return Unlinked(source, found, root) if found else source


class Unlinked:
    """An archive that gives back the links of its DATALINK columns."""

    def __init__(
        self, source: SiardSource, columns: set[tuple[str, str, str]], root: Path | None
    ) -> None:
        self._source, self._columns = source, columns
        self._database = _retyped(source.describe(), self._is_link, _TEXT)
        self._files = _Files(root)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def describe(self) -> Database:
        return self._database

    @property
    def notes(self) -> list[str]:
        """What became of the files."""
        files = self._files
        notes = [f"{link}: the archive has no file for this link" for link in files.missing]
        if files.unwritten:
            notes.append(
                f"{files.unwritten} linked files stay in the archive; "
                "--datalink-root DIR writes them into a folder"
            )
        return notes

    def batches(self, schema: Schema, table: Table, part: Any) -> Iterator[Batch]:
        numbers = [k for k, c in enumerate(table.columns) if self._is_link(schema, table, c)]

        own = self._source.describe().schema(schema.name).table(table.name)

        def text(cell: bytes) -> bytes:
            return self._link(schema, own, cell)

        for batch in self._source.batches(schema, own, part):
            yield _changed(batch, len(table.columns), numbers, text) if numbers else batch

    def opener(self) -> None:
        return None  # the files are written by one process

    def _is_link(self, schema: Schema, table: Table, column: Column) -> bool:
        return (schema.name, table.name, column.name) in self._columns

    def _link(self, schema: Schema, table: Table, cell: bytes) -> bytes:
        if cell.startswith(OPEN):
            return _each_part(cell, lambda part: self._link(schema, table, part))
        if not cell.startswith(REF):
            return cell
        location = parse_location(cell[1:])
        link = location.link or location.file
        if not location.file:
            self._files.missing.append(link)
        elif self._files.root is None:
            self._files.unwritten += 1
        else:
            self._write(schema, table, cell[1:], link)
        return link.encode("utf-8", "surrogateescape")

    def _write(self, schema: Schema, table: Table, reference: bytes, link: str) -> None:
        root = self._files.root
        assert root is not None
        parts = urlsplit(link) if "://" in link else None
        text = f"{parts.netloc}/{unquote(parts.path)}" if parts else link.replace("\\", "/")
        steps = [s.rstrip(":") for s in text.split("/") if s not in ("", ".")]
        if ".." in steps or not steps or any(map(_is_odd, steps)):
            raise UsageError(f"the link {link!r} leads out of {root}; it cannot be written there")
        path = root.joinpath(*steps)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            with self._source.open_lob(schema, table, reference) as stream:
                if _is_same(path, stream):
                    return  # several rows link to it
        with self._source.open_lob(schema, table, reference) as stream, new_file(path) as out:
            while chunk := stream.read(1 << 20):
                out.write(chunk)
        self._files.count += 1


def _is_same(path: Path, stream: BinaryIO) -> bool:
    with path.open("rb") as known:
        while chunk := stream.read(1 << 20):
            if known.read(len(chunk)) != chunk:
                return False
        return not known.read(1)


def _is_odd(step: str) -> bool:
    return not step or "\x00" in step


def _is_datalink(column: Column) -> bool:
    return isinstance(column.type, PredefinedType) and column.type.kind is Kind.DATALINK


def _has_links(source: SiardSource, schema: Schema, table: Table, k: int) -> bool:
    """Whether the first stored value of a column comes with its link."""
    for part in source.parts(schema, table):
        for batch in source.batches(schema, table, part):
            for cell in cells_of(batch)[k :: len(table.columns)]:
                for each in parts_of(cell) if cell.startswith(OPEN) else (cell,):
                    if each.startswith(REF):
                        return bool(parse_location(each[1:]).link)
    return False


def _links_in(cell: bytes) -> Iterator[str]:
    """The links that a cell holds: one, or those of an array."""
    if cell.startswith(OPEN):
        for part in parts_of(cell):
            yield from _links_in(part)
    elif cell not in (NULL, b"") and not cell.startswith(REF):
        yield cell.decode("utf-8", "surrogatepass")


def _each_part(cell: bytes, change: Callable[[bytes], bytes]) -> bytes:
    return OPEN + b"".join(change(part) + ITEM for part in parts_of(cell)) + CLOSE


def _marked(cell: bytes) -> bytes:
    if cell.startswith(OPEN):
        return _each_part(cell, _marked)
    return cell if cell in (NULL, b"") or cell.startswith(REF) else REF + _MARK + cell


def _changed(
    batch: Batch, width: int, numbers: list[int], change: Callable[[bytes], bytes]
) -> Batch:
    cells = cells_of(batch)
    for k in numbers:
        cells[k::width] = map(change, cells[k::width])
    rows = zip(*[iter(cells)] * width, strict=True)
    return Batch(b"".join([CELL.join(row) + ROW for row in rows]), batch.rows)


_Is = Callable[[Schema, Table, Column], bool]


def _retyped(database: Database, wanted: _Is, type_: PredefinedType) -> Database:
    schemas = tuple(
        replace(s, tables=tuple(_retyped_table(s, t, wanted, type_) for t in s.tables))
        for s in database.schemas
    )
    return replace(database, schemas=schemas)


def _retyped_table(schema: Schema, table: Table, wanted: _Is, type_: PredefinedType) -> Table:
    columns = tuple(
        replace(c, type=type_) if wanted(schema, table, c) else c for c in table.columns
    )
    return replace(table, columns=columns)
