"""Archive and restore: each is a copy from a source to a target."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from muniment import databases
from muniment.datalinks import Linked, Links, unlinked
from muniment.errors import DamagedSource, Unfit, UsageError
from muniment.files import refuse_existing
from muniment.siard import LobOptions, create_siard
from muniment.siard.forgiving import ForgivingSource
from muniment.siard.lobs.folders import Root
from muniment.siard.lobs.placement import Placements
from muniment.siard.lobs.storing import External
from muniment.sql.batch import Batch
from muniment.sql.model import Database, MessageDigest, Schema, Table
from muniment.sql.original import split_original
from muniment.sql.selection import Selection
from muniment.sql.stores import Again, Encoder, Piece, Source, Target
from muniment.workers import Task, Workers, default_jobs, start_workers

__all__ = [
    "ArchiveOptions", "Description", "Progress", "Report", "TableResult", "archive", "copy",
    "reported", "restore",
]  # fmt: skip

_WORTH_WORKERS = 24 << 20  # bytes; below that, starting processes takes longer than the work
_GROUP = 256  # batches


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work has come: rows of the table in hand, bytes of the whole."""

    schema: str
    table: str
    rows: int
    total_rows: int | None
    bytes_written: int


@dataclass(frozen=True, slots=True)
class TableResult:
    """The rows that one table had."""

    schema: str
    table: str
    rows: int


@dataclass(frozen=True, slots=True)
class Report:
    """What was done, and what people should know about it."""

    tables: tuple[TableResult, ...]
    notes: tuple[str, ...]
    seconds: float
    bytes: int
    digests: tuple[MessageDigest, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """What people say about a database; None keeps what the source says."""

    dbname: str | None = None
    description: str | None = None
    data_owner: str | None = None
    data_origin_timespan: str | None = None
    archiver: str | None = None
    archiver_contact: str | None = None
    archival_date: str | None = None  # YYYY-MM-DD
    schemas: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """How an archive is written."""

    lobs: str = "internal"  # or "inline", "external"
    lob_threshold: int = 4000  # bytes or characters up to which a large object stays inline
    lobs_for: Mapping[str, str] = field(default_factory=dict)  # by type or SCHEMA.TABLE.COLUMN
    lob_threshold_for: Mapping[str, int] = field(default_factory=dict)
    lob_mixed: bool = False  # decide value by value instead of column by column
    external: External = field(default_factory=External)
    split: int | None = None  # bytes of each part of the SIARD file
    links: Links = field(default_factory=Links)
    digests: tuple[str, ...] = ("SHA-256",)
    compression: str = "fast"  # or "strong", "none"
    jobs: int = 0  # 0: one per core
    description: Description = field(default_factory=Description)


Watch = Callable[[Progress], None]


def _quiet(_: Progress) -> None:
    return


def archive(
    url: str,
    path: Path,
    selection: Selection | None = None,
    options: ArchiveOptions | None = None,
    progress: Watch = _quiet,
) -> Report:
    """Archive the database at ``url`` as the new SIARD file ``path``."""
    options = options or ArchiveOptions()
    if path.suffix != ".siard":
        raise UsageError(f"{path}: the name of a SIARD file ends with .siard (G_4.1-5)")
    refuse_existing(path)
    started = time.monotonic()
    day = _day(options.description.archival_date)
    placements = Placements(
        options.lobs,
        options.lob_threshold,
        options.lob_mixed,
        options.lobs_for,
        options.lob_threshold_for,
    )
    limit = placements.inline_limit()
    with ExitStack() as stack:
        source = stack.enter_context(databases.open_source(url, selection, inline_limit=limit))
        if options.links.columns:
            source = Linked(source, options.links)
            source.check()
        target = stack.enter_context(
            create_siard(
                path,
                day,
                compression=options.compression,
                digests=options.digests,
                lobs=LobOptions(placements, options.external),
                split=options.split,
            )
        )
        database = described(_stamped(source.describe(), day), options.description)
        counts = copy(source, target, database, options.jobs, progress)
        written, digests = target.bytes_written, target.digests
        notes = (*_notes(source), *target.notes)
    return reported(counts, notes, started, written, digests)


def restore(
    path: Path,
    url: str,
    *,
    tables: tuple[str, ...] = (),
    schema_map: Mapping[str, str] | None = None,
    constraints: bool = True,
    replace: bool = False,
    jobs: int = 0,
    progress: Watch = _quiet,
    roots: Sequence[Root] = (),
    datalink_root: Path | None = None,
) -> Report:
    """Restore a SIARD file into the new database at ``url``.

    Large objects may lie beneath ``roots``; linked files are put beneath ``datalink_root``.
    """
    started = time.monotonic()
    with (
        ForgivingSource(path, roots) as archived,
        databases.open_target(url, replace=replace) as target,
    ):
        source = unlinked(archived, datalink_root)
        store: Source = source
        database = _chosen(source.describe(), tables)
        if not constraints:
            database = _without_constraints(database)
        if schema_map:
            database, store = _renamed(database, schema_map), _Renamed(source, schema_map)
        counts = copy(store, target, database, jobs, progress)
        notes = (
            *source.changed(),
            *_notes(archived),
            *(_notes(source) if source is not archived else ()),
            *getattr(target, "notes", ()),
        )
    return reported(counts, notes, started, 0, ())


def copy(
    source: Source, target: Target, database: Database, jobs: int = 0, progress: Watch = _quiet
) -> dict[tuple[str, str], int]:
    """Copy definitions, then rows; return the rows written per table."""
    target.define(database)
    counts: dict[tuple[str, str], int] = {}
    wanted = jobs or default_jobs()
    if source.size() < _WORTH_WORKERS:
        wanted = 1
    unchanged = getattr(source, "unchanged", lambda: True)
    with start_workers(source, wanted, unchanged) as workers:
        for schema, table in database.tables():
            work = _TableCopy(source, target, workers, schema, progress)
            expected = table.rows
            table, rows = work.run(table)
            _refuse_lost_rows(source, schema, replace(table, rows=expected), rows)
            database = _with_table(database, schema, replace(table, rows=rows))
            counts[schema.name, table.name] = rows
    target.finish(database)
    return counts


def _refuse_lost_rows(source: Source, schema: Schema, table: Table, rows: int) -> None:
    """Stop if a source that can count has other rows than those that were read."""
    count = getattr(source, "count", None)
    counted = count(schema, table, rows) if count else None
    if counted is not None and counted != rows:
        raise DamagedSource(f"{schema.name}.{table.name}", rows, counted)


class _TableCopy:
    """The copying of one table."""

    def __init__(
        self, source: Source, target: Target, workers: Workers, schema: Schema, progress: Watch
    ) -> None:
        self._source, self._target, self._workers = source, target, workers
        self._schema, self._progress = schema, progress

    def run(self, table: Table) -> tuple[Table, int]:
        """Copy the rows; again if a value outgrew its type and the source knows a wider one."""
        while True:
            self._rows = 0
            mark = self._target.mark() if hasattr(self._target, "mark") else None
            try:
                return table, self._copy(table)
            except Again:
                self._target.roll_back(mark)  # type: ignore[attr-defined]
            except Unfit as unfit:
                wider = self._refitted(table, unfit)
                if wider is None or mark is None:
                    raise self._complete(unfit) from unfit
                self._target.roll_back(mark)  # type: ignore[attr-defined]
                table = wider

    def _copy(self, table: Table) -> int:
        encoder = self._target.encoder(self._schema, table)
        pieces = self._watched(table, self._workers.run(self._tasks(table, encoder)))
        return self._target.write(self._schema, table, pieces, self._source.open_lob)

    def _tasks(self, table: Table, encoder: Encoder) -> Iterator[Task]:
        for part in self._source.parts(self._schema, table):
            if part is not None:
                yield self._schema, table, part, encoder
                continue
            # Only this process can read these rows in one go; the workers still encode them.
            batches = self._source.batches(self._schema, table, None)
            while group := list(islice(batches, _GROUP)):
                yield self._schema, table, group, encoder

    def _watched(self, table: Table, pieces: Iterable[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            yield piece
            self._rows += piece.rows
            written = getattr(self._target, "bytes_written", 0)
            total = table.rows or None
            self._progress(Progress(self._schema.name, table.name, self._rows, total, written))

    def _refitted(self, table: Table, unfit: Unfit) -> Table | None:
        refit = getattr(self._source, "refit", None)
        wider: Table | None = refit(self._schema, table, unfit) if refit else None
        return wider

    def _complete(self, unfit: Unfit) -> Unfit:
        """Count the row from the table's start, and name all other columns that would not fit."""
        row = None if unfit.row is None else self._rows + unfit.row
        others: list[Unfit] = getattr(self._source, "misfits", list)()
        return Unfit(unfit.where, row, unfit.value, unfit.wanted, tuple(o.where for o in others))


def described(database: Database, words: Description) -> Database:
    """Return the database with what people say about it."""
    given = {
        name: value
        for name in (
            "dbname",
            "description",
            "data_owner",
            "data_origin_timespan",
            "archiver",
            "archiver_contact",
        )
        if (value := getattr(words, name)) is not None
    }
    schemas = tuple(_described_schema(schema, words) for schema in database.schemas)
    _refuse_unknown(database, words)
    return replace(database, schemas=schemas, **given)


def _described_schema(schema: Schema, words: Description) -> Schema:
    tables = []
    for table in schema.tables:
        columns = tuple(
            replace(c, description=text)
            if (text := words.columns.get(f"{schema.name}.{table.name}.{c.name}"))
            else c
            for c in table.columns
        )
        text = words.tables.get(f"{schema.name}.{table.name}") or words.tables.get(table.name)
        if text:  # what the source said (its original definition, say) follows
            text = f"{text}\n\n{table.description}" if table.description else text
            table = replace(table, description=text)
        tables.append(replace(table, columns=columns))
    text = words.schemas.get(schema.name) or schema.description
    return replace(schema, tables=tuple(tables), description=text)


def _refuse_unknown(database: Database, words: Description) -> None:
    tables = {n for s, t in database.tables() for n in (t.name, f"{s.name}.{t.name}")}
    columns = {f"{s.name}.{t.name}.{c.name}" for s, t in database.tables() for c in t.columns}
    schemas = {s.name for s in database.schemas}
    for known, names, kind in (
        (schemas, words.schemas, "schema"),
        (tables, words.tables, "table"),
        (columns, words.columns, "column"),
    ):
        for name in names:
            if name not in known:
                raise UsageError(
                    f"a description is given for the {kind} {name}, which is not archived"
                )


def _day(text: str | None) -> date:
    if text is None:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a date like 2026-11-15") from error


def _stamped(database: Database, day: date) -> Database:
    return replace(
        database, archival_date=f"{day.isoformat()}Z", client_machine=platform.node() or None
    )


def _notes(store: Any) -> Iterator[str]:
    yield from getattr(store, "notes", ())


def _with_table(database: Database, schema: Schema, table: Table) -> Database:
    schemas = tuple(
        replace(s, tables=tuple(table if t.name == table.name else t for t in s.tables))
        if s.name == schema.name
        else s
        for s in database.schemas
    )
    return replace(database, schemas=schemas)


def reported(
    counts: Mapping[tuple[str, str], int],
    notes: Iterable[str],
    started: float,
    written: int,
    digests: tuple[MessageDigest, ...],
) -> Report:
    """Return the report on a copy."""
    tables = tuple(TableResult(schema, table, rows) for (schema, table), rows in counts.items())
    return Report(tables, tuple(notes), time.monotonic() - started, written, digests)


def _chosen(database: Database, tables: tuple[str, ...]) -> Database:
    selection = Selection(tables=tables)
    selection.check(database, ())
    return selection.prune(database)


def _without_constraints(database: Database) -> Database:
    def bare(table: Table) -> Table:
        return replace(
            table,
            description=split_original(table.description)[0],
            primary_key=None,
            foreign_keys=(),
            candidate_keys=(),
            check_constraints=(),
            triggers=(),
        )

    schemas = tuple(replace(s, tables=tuple(map(bare, s.tables))) for s in database.schemas)
    return replace(database, schemas=schemas)


def _renamed(database: Database, names: Mapping[str, str]) -> Database:
    known = {schema.name for schema in database.schemas}
    for old in names:
        if old not in known:
            there = ", ".join(sorted(known))
            raise UsageError(f"the archive has no schema {old} to rename; it has {there}")

    def moved(table: Table) -> Table:
        keys = tuple(
            replace(k, referenced_schema=names.get(k.referenced_schema, k.referenced_schema))
            for k in table.foreign_keys
        )
        return replace(table, foreign_keys=keys)

    schemas = tuple(
        replace(s, name=names.get(s.name, s.name), tables=tuple(map(moved, s.tables)))
        for s in database.schemas
    )
    return replace(database, schemas=schemas)


class _Renamed:
    """A source whose schemas go by other names at the target."""

    def __init__(self, source: Source, names: Mapping[str, str]) -> None:
        self._source = source
        self._old = {new: old for old, new in names.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def _schema(self, schema: Schema) -> Schema:
        return replace(schema, name=self._old.get(schema.name, schema.name))

    def opener(self) -> None:
        return None  # workers would look for the new names in the archive

    def parts(self, schema: Schema, table: Table) -> Iterator[Any]:
        return self._source.parts(self._schema(schema), table)

    def batches(self, schema: Schema, table: Table, part: Any) -> Iterator[Batch]:
        return self._source.batches(self._schema(schema), table, part)

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> Any:
        return self._source.open_lob(self._schema(schema), table, reference)
