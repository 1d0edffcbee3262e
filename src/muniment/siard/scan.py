"""The pass over all rows: tables in parallel, runs in order, keys at the end."""

from __future__ import annotations

import ctypes
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from muniment.errors import NotFound, SiardError
from muniment.findings import Severity
from muniment.siard.lobs.folders import Root
from muniment.siard.lobs.resolving import Resolver
from muniment.siard.rules.archive import Archive, Marks, TableFiles
from muniment.siard.rules.container import Damaged, check_rest, sound_chunks
from muniment.siard.rules.folders import surplus
from muniment.siard.rules.general import check_declaration
from muniment.siard.rules.keys import KeyColumns, key_columns, referenced_columns
from muniment.siard.rules.keystore import KeyStore
from muniment.siard.rules.lobs import LobChecks
from muniment.siard.rules.rows import RowChecker, RunReport
from muniment.siard.rules.runs import Head, Malformed, row_runs
from muniment.siard.rules.segments import check_layout, check_segments
from muniment.siard.rules.sharing import SharedStore
from muniment.siard.rules.tablexsd import TableSchema
from muniment.siard.zip import ZipReader
from muniment.sql.model import Database, ForeignKey, Schema, Shape, Table, shape_of
from muniment.sql.stores import Source
from muniment.workers import Task, default_jobs, start_workers

__all__ = ["Progress", "Scan"]

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of mallopt(3)
_BOMB_RATIO, _BOMB_SIZE = 200, 1 << 28


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a validation is; the attributes are those of transfers, for the same bars."""

    schema: str
    table: str
    rows: int
    total_rows: int
    bytes_written: int  # read, in truth


class Scan:
    """Reads every row of every table once."""

    def __init__(
        self,
        archive: Archive,
        folder: Path,
        jobs: int,
        progress: Callable[[Progress], None] | None,
        roots: tuple[Root, ...] = (),
    ) -> None:
        self._roots = roots
        self._archive, self._folder, self._jobs = archive, folder, jobs or default_jobs()
        self._tell = progress or (lambda _progress: None)
        self.rows = self.lobs = self._bytes = 0
        self._counts = [0] * len(archive.tables)
        self._whole = [False] * len(archive.tables)
        self._broken = [False] * len(archive.tables)  # not all rows could be read
        self._used = Marks(len(archive.whole.directory))  # entries that cells refer to
        self._read = Marks(len(archive.whole.directory))
        self._resolves = True
        self._note_read("header/metadata.xml")
        self._outside: dict[tuple[int, int], tuple[str, set[int]]] = {}
        # By name; if two tables share one, against the rules, the first is meant.
        self._numbers: dict[tuple[str, str], int] = {}
        for number, each in enumerate(archive.tables):
            self._numbers.setdefault((each.schema.name, each.table.name), number)

    def run(self) -> Iterator[None]:
        """Do it all; between the steps there may be findings."""
        archive = self._archive
        if archive.database is not None:
            self._check_digests(archive.database)
            yield
            yield from self._check_rows(archive.database)
            self._check_outside()
            if self._resolves and all(self._whole) and not any(self._broken):
                surplus(archive, self._used)
        for _ in check_rest(archive, self._read):
            yield

    def _note_read(self, name: str) -> None:
        if entry := self._archive.zip.find(name):
            self._read.add(entry.number)

    def _check_digests(self, database: Database) -> None:
        """The digests of 5.1, over everything before the entry header/."""
        report, whole = self._archive.report, self._archive.whole
        for known in database.message_digests:
            if "header/" not in self._archive.zip:
                report(
                    "M_5.1-1", "messageDigest",
                    "it cannot be checked, since there is no entry header/", Severity.NOTE,
                )  # fmt: skip
                continue
            if known.digest_type not in ("MD5", "SHA-1", "SHA-256"):
                report("M_5.1-1", "messageDigest", f"its type is {known.digest_type!r}")
                continue
            end = self._archive.zip.offset("header/")
            found, stated = whole.digest(known.digest_type, end), known.digest.strip()
            if found not in (stated.lower(), _hex_of_base64(stated)):
                report(
                    "M_5.1-1", "messageDigest",
                    f"the content does not match its {known.digest_type} digest: it was changed "
                    "after it was archived, or packed again",
                )  # fmt: skip
        if not database.message_digests:
            report(
                "M_5.1-1", "messageDigest", "there is none; keep a digest outside the archive",
                Severity.NOTE,
            )  # fmt: skip

    def _check_rows(self, database: Database) -> Iterator[None]:
        archive = self._archive
        definitions = _definitions(archive)
        source = RowSource(archive.path, archive.zip, database, definitions, self._roots)
        self._resolves = source.resolves
        with ExitStack() as stack:
            store = KeyStore(self._folder)
            stack.callback(store.close)
            for place, each in enumerate(archive.tables):
                store.begin(place, source.key_columns(each.schema, each.table))
            with start_workers(cast(Source, source), self._jobs_for(), lambda: True) as workers:
                waiting: deque[int | None] = deque()
                for piece in workers.run(self._tasks(waiting)):
                    number = waiting.popleft()
                    while number is None:  # a table without rows ended
                        number = waiting.popleft()
                    self._take(number, cast(RunReport, piece), store)
                    yield
            # The workers have ended, and leave their memory to the keys.
            for number, each in enumerate(archive.tables):
                self._check_count(number, each)
            yield
            yield from self._check_keys(store)
            self._check_shared(store.outer, "T_6.4-5", "they name one file")
            self._check_shared(
                store.links, "T_6.2-1", "they link to one file; SQL/MED allows one link per file"
            )

    def _jobs_for(self) -> int:
        """Small archives are checked sooner than a process starts."""
        sizes = (self._archive.zip.size(t.xml) for t in self._archive.tables if self._has(t))
        return self._jobs if sum(sizes) > 1 << 22 else 1

    def _has(self, each: TableFiles) -> bool:
        return each.xml in self._archive.zip

    def _tasks(self, waiting: deque[int | None]) -> Iterator[Task]:
        """Yield the runs of all tables; what is wrong with the files themselves is told here."""
        report = self._archive.report
        for number, each in enumerate(self._archive.tables):
            if not self._has(each):
                continue
            report.look(
                "T_6.0-1", "T_6.0-2", "T_6.4-2", "T_6.4-3", "P_4.3-10", "G_3.3-1", "G_3.3-3",
                "G_3.3-4", "G_3.1-1",
            )  # fmt: skip
            try:
                for part in self._parts(number, each):
                    waiting.append(number)
                    yield each.schema, each.table, part, _only
                self._whole[number] = True
            except Damaged as error:
                report("G_4.1-1", each.xml, f"it is damaged: {error}", kind="damaged")
            except Malformed as error:
                report(error.rule, each.xml, str(error), kind="malformed")
            self._note_read(each.xml)

    def _parts(self, number: int, each: TableFiles) -> Iterator[_Part]:
        tag = b"<table>"
        size = 0
        for run in row_runs(self._counted(each)):
            if isinstance(run, Head):
                check_declaration(self._archive, each.xml, run.start)
                tag = run.tag
                yield _Part(number, b"", tag, run.name)
                continue
            size += len(run.xml)
            yield _Part(number, run.xml, tag)
            if size > _BOMB_SIZE and self._counts[number] > each.table.rows:
                packed = self._archive.zip.packed(each.xml)
                if size > _BOMB_RATIO * max(packed, 1):
                    raise Damaged("it goes on after its last row, like a bomb; reading stopped")

    def _counted(self, each: TableFiles) -> Iterator[bytes]:
        for chunk in sound_chunks(self._archive.zip, each.xml):
            self._bytes += len(chunk)
            yield chunk

    def _take(self, number: int, piece: RunReport, store: KeyStore) -> None:
        each, before = self._archive.tables[number], self._counts[number]
        for (_, _, kind), case in piece.cases.items():
            column = _column(each, case.column)
            for row, message in case.first:
                place = "" if row is None else f", row {before + row}"
                self._report(case, f"{each.name}{column}{place}", message, kind + each.name)
            if case.count > len(case.first):
                rest = case.count - len(case.first)
                self._report(
                    case, f"{each.name}{column}", case.first[-1][1], kind + each.name, rest
                )
        store.add(number, piece.keys, before)
        self._mark(number, piece, before)
        store.outer.add(number, piece.outer, before)
        store.links.add(number, piece.links, before)
        self._counts[number] += piece.rows
        self.rows += piece.rows
        self.lobs += piece.lobs
        self._broken[number] |= piece.broken
        self._archive.report.look(*piece.looked_at)
        for at, (file, segments) in piece.outside.items():
            self._outside.setdefault((number, at), (file, set()))[1].update(segments)
        table = each.table
        self._tell(
            Progress(each.schema.name, table.name, self._counts[number], table.rows, self._bytes)
        )

    def _mark(self, number: int, piece: RunReport, before: int) -> None:
        """Mark the entries that cells refer to; each should be one cell's own."""
        cells = piece.inside
        for entry, column, row in zip(cells.goals, cells.columns, cells.rows, strict=True):
            if entry in self._used:
                where = self._cell_name((number, column, before + row))
                name = self._archive.whole.directory.entry(entry).name
                message = f"another cell names {name!r} as well"
                self._archive.report(
                    "T_6.4-5", where, message, Severity.WARNING, kind="shared entry"
                )
            self._used.add(entry)
            self._read.add(entry)
        for entry in piece.used:
            self._used.add(entry)
            self._read.add(entry)

    def _report(self, case: Any, where: str, message: str, kind: str, count: int = 1) -> None:
        severity = Severity(case.severity) if case.severity else None
        kind = f"{case.column} {kind}"
        self._archive.report(case.rule, where, message, severity, kind=kind, count=count)

    def _check_count(self, number: int, each: TableFiles) -> None:
        """P_4.3-10; a file that could not be read to its end has been told already."""
        counted, report = self._counts[number], self._archive.report
        if not self._whole[number]:
            return
        if counted != each.table.rows:
            message = f"metadata.xml has {each.table.rows} rows, the file {counted}"
            report("P_4.3-10", each.name, message)
        definition = each.definition
        if definition is not None and (
            counted < definition.rows_from
            or (definition.rows_to is not None and counted > definition.rows_to)
        ):
            most = definition.rows_to if definition.rows_to is not None else "any number of"
            message = (
                f"the schema wants {definition.rows_from} to {most} rows, and {counted} are there"
            )
            report("T_6.0-2", each.name, message)

    def _check_keys(self, store: KeyStore) -> Iterator[None]:
        report = self._archive.report
        for number, each in enumerate(self._archive.tables):
            table = each.table
            keys = [(table.primary_key, "primary key")] if table.primary_key else []
            keys += [(key, "candidate key") for key in table.candidate_keys]
            cases = [store.unique(number, each, key, kind) for key, kind in keys if key]
            for foreign in table.foreign_keys:
                target = self._target(foreign)
                if target is not None:
                    goal = self._archive.tables[target]
                    cases.append(store.foreign((number, each), foreign, (target, goal)))
            for found in cases:
                for case in found:
                    weight = Severity(case.severity) if case.severity else None
                    kind = f"{case.where} {weight}"
                    report(case.rule, case.where, case.message, weight, kind=kind, count=case.count)
                yield

    def _check_shared(self, store: SharedStore, rule: str, what: str) -> None:
        """Each cell has a file of its own, and each linked file one link (chapter 7)."""
        total, first = store.shared()
        message = ""
        for found in first:
            a, b = self._cell_name(found.first), self._cell_name(found.other)
            more = f" and {found.cells - 2} more" if found.cells > 2 else ""
            message = f"so does {b}{more}: {what}"
            self._archive.report(rule, a, message, Severity.WARNING, kind=what)
            total -= 1
        if total > 0:
            self._archive.report(
                rule, "other cells", message, Severity.WARNING, kind=what, count=total
            )

    def _cell_name(self, cell: tuple[int, int, int]) -> str:
        number, column, row = cell
        each = self._archive.tables[number]
        return f"{each.name}.{each.table.columns[column - 1].name}, row {row}"

    def _target(self, key: ForeignKey) -> int | None:
        """The table that a key refers to, if all of its rows are known."""
        number = self._numbers.get((key.referenced_schema, key.referenced_table))
        if number is None or not self._whole[number] or self._broken[number]:
            return None
        return number

    def _check_outside(self) -> None:
        """Chapters 7 and 8 for the columns that have objects outside."""
        for (number, column), (file, segments) in self._outside.items():
            each = self._archive.tables[number]
            where = f"{each.name}.{each.table.columns[column - 1].name}"
            folder = each.table.columns[column - 1].lob_folder or ""
            check_layout(self._archive.report, where, folder, file, column)
            if segments:
                check_segments(self._archive.report, where, segments)


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows to be checked, or the head of a file."""

    table: int  # names and folders may be shared, against the rules
    xml: bytes
    tag: bytes
    root: bytes = b""  # the name of the root element, for a head


class RowSource:
    """Checks parts, in this process or in a worker's."""

    def __init__(
        self,
        path: Path,
        archive: ZipReader,
        database: Database,
        definitions: dict[int, TableSchema],
        roots: tuple[Root, ...] = (),
    ) -> None:
        self._path, self._zip, self._database = path, archive, database
        self._definitions, self._roots = definitions, roots
        self._resolver: Resolver | SiardError
        try:
            self._resolver = Resolver(archive, database, roots)
        except SiardError as error:  # a mapping.txt that makes no sense
            self._resolver = error
        self._referenced = referenced_columns(database)
        self._latest: tuple[int, RowChecker] | None = None

    def __enter__(self) -> RowSource:
        return self

    def __exit__(self, *_: object) -> None:
        return

    @property
    def resolves(self) -> bool:
        """Whether large objects can be looked for at all."""
        return isinstance(self._resolver, Resolver)

    def size(self) -> int:
        """The bytes of XML to read."""
        names = (f"content/{s.folder}/{t.folder}/{t.folder}.xml"
                 for s, t in self._database.tables())  # fmt: skip
        return sum(self._zip.size(name) for name in names if name in self._zip)

    def opener(self) -> Callable[[], RowSource]:
        """Return how a worker process opens this."""
        return _Opener(self._path, self._zip, self._database, self._definitions, self._roots)

    def batches(self, schema: Schema, table: Table, part: _Part) -> Iterator[RunReport]:
        """Yield the one report of a part."""
        # Parts come table by table; what a checker has compiled would fill memory by and by.
        if self._latest is None or self._latest[0] != part.table:
            definition = self._definitions.get(part.table)
            self._latest = part.table, self._checker(schema, table, definition)
        checker = self._latest[1]
        yield checker.head(part.tag) if part.root else checker(part.xml, part.tag)

    def key_columns(self, schema: Schema, table: Table) -> KeyColumns:
        """Return the columns of a table that its keys, and those of others, need."""
        numbers = key_columns(self._referenced, schema, table)
        return KeyColumns(numbers, self._shapes(schema, table))

    def _checker(self, schema: Schema, table: Table, definition: TableSchema | None) -> RowChecker:
        return RowChecker(
            table,
            self._shapes(schema, table),
            definition,
            LobChecks(self._resolver, schema, table),
            self.key_columns(schema, table),
        )

    def _shapes(self, schema: Schema, table: Table) -> tuple[Shape | None, ...]:
        return tuple(self._shape(schema, column) for column in table.columns)

    def _shape(self, schema: Schema, column: Any) -> Shape | None:
        try:
            return shape_of(self._database, schema.name, column)
        except (NotFound, RecursionError):
            return None  # told by the chapter on metadata


@dataclass(frozen=True)
class _Opener:
    path: Path
    archive: ZipReader
    database: Database
    definitions: dict[int, TableSchema]
    roots: tuple[Root, ...]

    def __call__(self) -> RowSource:
        _return_memory()
        return RowSource(self.path, self.archive, self.database, self.definitions, self.roots)


def _return_memory() -> None:
    """Let what is freed go back to the system: much passes through a worker, and little stays."""
    pa.set_memory_pool(pa.system_memory_pool())
    with suppress(OSError, AttributeError):  # other systems do it otherwise
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 18)


def _only(reports: Iterable[Any]) -> Any:
    return next(iter(reports))


def _definitions(archive: Archive) -> dict[int, TableSchema]:
    return {
        number: each.definition
        for number, each in enumerate(archive.tables)
        if each.definition is not None
    }


def _column(each: TableFiles, name: str) -> str:
    """The column as people call it: the checks on XML know it only as c3."""
    if name[:1] == "c" and name[1:].isdecimal() and 1 <= int(name[1:]) <= len(each.table.columns):
        return f".{each.table.columns[int(name[1:]) - 1].name}"
    return f".{name}" if name else ""


def _hex_of_base64(digest: str) -> str:
    try:
        return b64decode(digest, validate=True).hex()
    except ValueError:
        return ""
