"""Archive and restore: each is a copy from a source to a target."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from muniment import databases
from muniment.databases.tunnel import tunnelled
from muniment.datalinks import Linked, Links, unlinked
from muniment.errors import DamagedSource, Unfit, UsageError
from muniment.files import new_file, refuse_existing
from muniment.siard import LobOptions, create_siard, open_journal
from muniment.siard.forgiving import ForgivingSource
from muniment.siard.lobs.folders import Root
from muniment.siard.lobs.placement import Placements
from muniment.siard.lobs.storing import External
from muniment.sql.batch import Batch
from muniment.sql.chosen import undescribable
from muniment.sql.leftout import LeftOut, format_left_out, left_out_originals
from muniment.sql.model import Database, MessageDigest, Schema, Table, UserType, View
from muniment.sql.original import refuse_imitation, split_notes, split_original, with_words
from muniment.sql.sayable import refuse_unsayable, without_unsayable
from muniment.sql.selection import Selection
from muniment.sql.stores import Again, Encoder, Piece, Source, Target
from muniment.sql.types import NamedType, Type
from muniment.workers import Task, Workers, default_jobs, start_workers, suits_threads

__all__ = [
    "ArchiveOptions", "Description", "Progress", "Renamed", "Report", "TableResult", "archive",
    "copy", "renamed", "reported", "restore", "without_originals",
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
    all_rows: int | None = None  # of all tables, as far as that is known beforehand


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
    left_out: tuple[LeftOut, ...] = ()  # what a restored database lacks
    left_out_file: Path | None = None  # the SQL of that


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

    def names(self) -> tuple[tuple[str, str], ...]:
        """The kind and the name of each thing that is described."""
        kinds = ("schema", self.schemas), ("table", self.tables), ("column", self.columns)
        return tuple((kind, name) for kind, words in kinds for name in words)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Each thing that is described, and the words about it."""
        yield "the database", self.description or ""
        yield from (("schema " + name, text) for name, text in self.schemas.items())
        yield from (("table " + name, text) for name, text in self.tables.items())
        yield from (("column " + name, text) for name, text in self.columns.items())


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
    version: str = "2.2"  # of SIARD; or "2.0"
    links: Links = field(default_factory=Links)
    digests: tuple[str, ...] = ("SHA-256",)
    compression: str = "fast"  # or "strong", "none"
    jobs: int = 0  # 0: one per core
    statement_timeout: float | None = None  # seconds, for products that have one
    ssh: str | None = None  # user@host[:port] of a server that leads to the database
    resume: bool = False  # keep complete tables if the work is interrupted, and go on from there
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
    selection = replace(selection or Selection(), described=options.description.names())
    if path.suffix != ".siard":
        raise UsageError(f"{path}: the name of a SIARD file ends with .siard (G_4.1-5)")
    refuse_existing(path)
    started = time.monotonic()
    placements = Placements(
        options.lobs,
        options.lob_threshold,
        options.lob_mixed,
        options.lobs_for,
        options.lob_threshold_for,
    )
    limit = placements.inline_limit()
    with ExitStack() as stack:
        journal = None
        if options.resume:
            request = _request(url, selection, options)
            journal = stack.enter_context(open_journal(path, request, options.split))
        day = _day((journal and journal.day) or options.description.archival_date)
        source = stack.enter_context(
            databases.open_source(
                stack.enter_context(tunnelled(url, options.ssh)),
                selection,
                inline_limit=limit,
                statement_timeout=options.statement_timeout,
            )
        )
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
                version=options.version,
                journal=journal,
            )
        )
        if journal and hasattr(source, "snapshot_token"):
            source.snapshot_token()
            journal.token = source.snapshot_token
        database = described(_stamped(source.describe(), day), options.description, selection)
        if options.ssh:  # what the source was given leads through this machine
            database = replace(database, connection=databases.redact(url))
        counts = copy(source, target, database, options.jobs, progress)
        written, digests = target.bytes_written, target.digests
        notes = (*_notes(source), *target.notes)
    return reported(counts, notes, started, written, digests)


def _request(url: str, selection: Selection, options: ArchiveOptions) -> dict[str, Any]:
    """What has to be the same for a run to go on with what an earlier one left.

    Which columns are text is part of the definitions; those of complete tables have to be the same.
    """
    chosen = asdict(replace(selection, tables=(), exclude=(), schemas=(), as_text=(), described=()))
    return {
        "database": databases.redact(url),
        "archival_date": options.description.archival_date,
        "lobs": options.lobs,
        "lob_threshold": options.lob_threshold,
        "lobs_for": dict(options.lobs_for),
        "lob_threshold_for": dict(options.lob_threshold_for),
        "lob_mixed": options.lob_mixed,
        "folders": asdict(replace(options.external, places=dict(options.external.places))),
        "split": options.split,
        "version": options.version,
        "digests": list(options.digests),
        "compression": options.compression,
        "selection": {name: str(value) for name, value in chosen.items() if value},
    }


def restore(
    path: Path,
    url: str,
    *,
    tables: tuple[str, ...] = (),
    schema_map: Mapping[str, str] | None = None,
    constraints: bool = True,
    replace: bool = False,
    original_types: bool | None = None,
    left_out: Path | None = None,
    resume: bool = False,
    roles: bool = False,
    index_memory: int | None = None,
    ssh: str | None = None,
    jobs: int = 0,
    progress: Watch = _quiet,
    roots: Sequence[Root] = (),
    datalink_root: Path | None = None,
) -> Report:
    """Restore a SIARD file into the new database at ``url``.

    Large objects may lie beneath ``roots``; linked files are put beneath ``datalink_root``.
    With ``original_types`` a database comes back with the types and definitions of its product;
    None means wherever the target is of that product. What could not be made is written as SQL to
    ``left_out``, which must not exist; None means beside a new database file, or else here. Users
    and roles are made, without passwords, only if ``roles`` asks for that. ``index_memory`` is for
    databases that make indexes in memory (DuckDB): keys that take more bytes are left out.
    """
    started = time.monotonic()
    if left_out is not None:
        refuse_existing(left_out)
    with (
        ForgivingSource(path, roots) as archived,
        archived.explaining(),
        tunnelled(url, ssh) as place,
        databases.open_target(
            place, replace=replace, resume=resume, roles=roles, index_memory=index_memory
        ) as target,
    ):
        source = unlinked(archived, datalink_root)
        store: Source = source
        database = whole = _chosen(source.describe(), tables)
        if original_types is False:
            database = without_originals(database)
        elif original_types:
            _refuse_other_product(database, url)
        if not constraints:
            database = _without_constraints(database)
        if schema_map:
            database, store = renamed(database, schema_map), Renamed(source, schema_map)
        refuse_unsayable(database, databases.product_of(url), nul=databases.takes_nul(url))
        database, unsayable = without_unsayable(database)
        counts = copy(store, target, database, jobs, progress)
        told = [*_notes(archived), *(_notes(source) if source is not archived else ())]
        notes = [*source.changed(), *told, *_notes(target)]
    report = reported(counts, notes, started, 0, ())
    missing = (*unsayable, *getattr(target, "left_out", ()))
    again = original_types is not False and getattr(target, "runs_originals", True)
    if constraints and not (again and _is_product(database.database_product, url)):
        missing += tuple(left_out_originals(whole, databases.product_of(url)))
    file = left_out or _place_of_left_out(path, url)
    return _with_left_out(report, missing, file, path, database.database_product)


def _place_of_left_out(path: Path, url: str) -> Path:
    """A free name for the SQL of what was left out: beside a database file, else in this folder."""
    file = databases.file_of(url)
    folder, stem = (Path(), path.stem) if file is None else (file.parent, file.name)
    numbers = chain(("",), (f"-{number}" for number in count(2)))
    places = (folder / f"{stem}.left-out{number}.sql" for number in numbers)
    return next(place for place in places if not place.exists())


def _with_left_out(
    report: Report, missing: tuple[LeftOut, ...], file: Path, path: Path, product: str | None
) -> Report:
    if not missing:
        return report
    report = replace(report, left_out=missing)
    try:
        with new_file(file) as stream:
            text = format_left_out(missing, path.name, product)
            stream.write(text.encode("utf-8", "backslashreplace"))
    except (OSError, UsageError) as error:  # the database is complete; that must not be undone
        note = f"the SQL of what was left out could not be written to {file}: {error}"
        return replace(report, notes=(*report.notes, note))
    return replace(report, left_out_file=file)


def _refuse_other_product(database: Database, url: str) -> None:
    known = database.database_product
    if not _is_product(known, url):
        raise UsageError(
            f"the archive comes from {known or 'an unknown product'}; {databases.product_of(url)} "
            "does not have its original types: leave out --original-types"
        )


def _is_product(known: str | None, url: str) -> bool:
    """Whether an archive comes from the product of a URL."""
    names = databases.product_of(url).lower().split(" and ")  # one module may be for several
    return (known or "").lower().startswith(tuple(names))


def copy(
    source: Source, target: Target, database: Database, jobs: int = 0, progress: Watch = _quiet
) -> dict[tuple[str, str], int]:
    """Copy definitions, then rows; return the rows written per table."""
    target.define(database)
    copied: dict[tuple[str, str], Table] = {}
    wanted = jobs or _usual_jobs(source, target)
    if source.size() < _WORTH_WORKERS:
        wanted = 1
    unchanged = getattr(source, "unchanged", lambda: True)
    completed: Callable[..., Table | None] = getattr(target, "completed", lambda *_: None)
    keep: Callable[..., None] = getattr(target, "keep", lambda *_: None)
    arranged: Callable[..., Iterable[tuple[Schema, Table]]] = getattr(target, "arranged", list)
    threads = getattr(target, "suits_threads", False)
    watch = _AllRows(progress, database).tell
    with start_workers(source, wanted, unchanged, threads=threads) as workers:
        for schema, table in arranged(database.tables()):
            done = completed(schema, table)
            if done is None:
                work = _TableCopy(source, target, workers, schema, watch)
                expected = table.rows
                table, rows = work.run(table)
                _refuse_lost_rows(source, schema, replace(table, rows=expected), rows)
                done = replace(table, rows=rows)
                keep(schema, done)
            copied[schema.name, done.name] = done
    kept: Callable[[Database], Database] = getattr(source, "kept", lambda known: known)
    target.finish(kept(_with_tables(database, copied)))
    return {(s.name, t.name): copied[s.name, t.name].rows for s, t in database.tables()}


class _AllRows:
    """How many rows all tables have: counted in those that are done, estimated in the others."""

    def __init__(self, progress: Watch, database: Database) -> None:
        self._progress = progress
        self._expected = {(s.name, t.name): t.rows for s, t in database.tables()}
        self._total = sum(self._expected.values())
        self._last: tuple[tuple[str, str], int] | None = None

    def tell(self, step: Progress) -> None:
        """Pass on how far the work is, with the rows of all tables where they are known."""
        name = step.schema, step.table
        if self._last and self._last[0] != name:
            self._expect(*self._last)
        self._last = name, step.rows
        known = bool(self._expected.get(name))  # else it is empty, or its source does not count
        self._expect(name, max(self._expected.get(name, 0), step.rows) if known else 0)
        self._progress(replace(step, all_rows=self._total if known else None))

    def _expect(self, name: tuple[str, str], rows: int) -> None:
        self._total += rows - self._expected.get(name, 0)
        self._expected[name] = rows


def _usual_jobs(source: Source, target: Target) -> int:
    """One worker per core; if threads do the work, less those that the target fills itself."""
    jobs = default_jobs()
    if getattr(target, "suits_threads", False) and suits_threads(source, jobs):
        jobs -= getattr(target, "cores", 0)
    return max(jobs, 1)


def _refuse_lost_rows(source: Source, schema: Schema, table: Table, rows: int) -> None:
    """Stop if a source that can count has other rows than those that were read."""
    count_again = getattr(source, "count", None)
    counted = count_again(schema, table, rows) if count_again else None
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
        local = getattr(encoder, "local", False)
        done = self._workers.run(self._tasks(table, encoder), local=local)
        pieces = self._watched(table, done)
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
            total = table.rows if table.rows >= self._rows else None  # it is but an estimate
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


def described(database: Database, words: Description, selection: Selection) -> Database:
    """Return the database with what people say about it."""
    for where, text in words.texts():
        refuse_imitation(where, text)
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
    if "description" in given:
        given["description"] = with_words(database.description, given["description"])
    schemas = tuple(_described_schema(schema, words) for schema in database.schemas)
    _refuse_unknown(database, words, selection)
    return replace(database, schemas=schemas, **given)


def _described_schema(schema: Schema, words: Description) -> Schema:
    tables = []
    for table in schema.tables:
        columns = tuple(
            replace(c, description=with_words(c.description, text))
            if (text := words.columns.get(f"{schema.name}.{table.name}.{c.name}"))
            else c
            for c in table.columns
        )
        text = words.tables.get(f"{schema.name}.{table.name}") or words.tables.get(table.name)
        if text:  # what the source said (its original definition, say) follows
            text = f"{text}\n\n{table.description}" if table.description else text
            table = replace(table, description=text)
        tables.append(replace(table, columns=columns))
    text = schema.description
    if schema.name in words.schemas:
        text = with_words(text, words.schemas[schema.name])
    return replace(schema, tables=tuple(tables), description=text)


def _refuse_unknown(database: Database, words: Description, selection: Selection) -> None:
    """Refuse names that a query does not have; the source knew those of all other tables."""
    tables = {n for s, t in database.tables() for n in (t.name, f"{s.name}.{t.name}")}
    columns = {f"{s.name}.{t.name}.{c.name}" for s, t in database.tables() for c in t.columns}
    for kind, name in words.names():
        known = tables if kind == "table" else columns
        if name not in known and selection.describes_query(kind, name):
            raise undescribable(kind, name, known)
    for schema, table in database.tables():
        if {table.name, f"{schema.name}.{table.name}"} <= words.tables.keys():
            raise UsageError(f"{schema.name}.{table.name} is given a description twice")


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


def _with_tables(database: Database, tables: Mapping[tuple[str, str], Table]) -> Database:
    """Return the definitions with the tables as they were copied, by schema and name."""
    schemas = tuple(
        replace(s, tables=tuple(tables[s.name, t.name] for t in s.tables)) for s in database.schemas
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


def without_originals(database: Database) -> Database:
    """Return the database as SQL:2008 alone describes it, without its product's own words."""

    def plain_type(user_type: UserType) -> UserType:
        attributes = tuple(replace(a, type_original=None) for a in user_type.attributes)
        text = split_original(user_type.description)[0]
        return replace(user_type, attributes=attributes, description=text)

    def plain(table: Table) -> Table:
        columns = tuple(
            replace(c, type_original=None, description=split_notes(c.description)[0])
            for c in table.columns
        )
        return replace(table, columns=columns, description=split_original(table.description)[0])

    def plain_view(view: View) -> View:
        return replace(view, description=split_original(view.description)[0])

    def plain_schema(schema: Schema) -> Schema:
        return replace(
            schema,
            description=split_original(schema.description)[0],
            types=tuple(map(plain_type, schema.types)),
            tables=tuple(map(plain, schema.tables)),
            views=tuple(map(plain_view, schema.views)),
        )

    return replace(
        database,
        description=split_original(database.description)[0],
        schemas=tuple(map(plain_schema, database.schemas)),
    )


def _without_constraints(database: Database) -> Database:
    def bare(table: Table) -> Table:
        return replace(
            table,
            columns=tuple(
                replace(c, nullable=True) if c.nullable is False else c for c in table.columns
            ),
            description=split_original(table.description)[0],
            primary_key=None,
            foreign_keys=(),
            candidate_keys=(),
            check_constraints=(),
            triggers=(),
        )

    schemas = tuple(replace(s, tables=tuple(map(bare, s.tables))) for s in database.schemas)
    return replace(database, schemas=schemas)


def renamed(database: Database, names: Mapping[str, str]) -> Database:
    """Return the database with other names for some of its schemas."""
    known = {schema.name for schema in database.schemas}
    for old in names:
        if old not in known:
            there = ", ".join(sorted(known))
            raise UsageError(f"the archive has no schema {old} to rename; it has {there}")

    _refuse_one_name_for_two([names.get(s.name, s.name) for s in database.schemas])

    def moved_to(type_: Type) -> Type:
        if isinstance(type_, NamedType):
            return NamedType(names.get(type_.schema, type_.schema), type_.name)
        return type_

    def moved(table: Table) -> Table:
        keys = tuple(
            replace(k, referenced_schema=names.get(k.referenced_schema, k.referenced_schema))
            for k in table.foreign_keys
        )
        columns = tuple(replace(c, type=moved_to(c.type)) for c in table.columns)
        return replace(table, columns=columns, foreign_keys=keys)

    def moved_type(made: UserType) -> UserType:
        attributes = tuple(replace(a, type=moved_to(a.type)) for a in made.attributes)
        under = names.get(made.under_schema or "", made.under_schema)
        return replace(made, attributes=attributes, under_schema=under)

    schemas = tuple(
        replace(
            s,
            name=names.get(s.name, s.name),
            tables=tuple(map(moved, s.tables)),
            types=tuple(map(moved_type, s.types)),
        )
        for s in database.schemas
    )
    return replace(database, schemas=schemas)


def _refuse_one_name_for_two(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"two schemas would be called {name}; give each a name of its own with --schema-map"
            )


class Renamed:
    """A source whose schemas go by other names at the target."""

    def __init__(self, source: Source, names: Mapping[str, str]) -> None:
        self._source, self._names = source, names
        self._old = {new: old for old, new in names.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def describe(self) -> Database:
        return renamed(self._source.describe(), self._names)

    def _there(self, schema: Schema, table: Table) -> tuple[Schema, Table]:
        """A table as the source knows it: its types may be those of a renamed schema, too."""
        home = self._source.describe().schema(self._old.get(schema.name, schema.name))
        return home, home.table(table.name)

    def opener(self) -> None:
        return None  # workers would look for the new names in the archive

    def parts(self, schema: Schema, table: Table) -> Iterator[Any]:
        return self._source.parts(*self._there(schema, table))

    def batches(self, schema: Schema, table: Table, part: Any) -> Iterator[Batch]:
        return self._source.batches(*self._there(schema, table), part)

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> Any:
        return self._source.open_lob(*self._there(schema, table), reference)
