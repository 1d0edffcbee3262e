"""Proof that two databases hold the same: definitions, row counts, content.

Both sides are streams of rows in one spelling. As long as the streams are equal byte for byte, one
side's digests are the other's, and each process computes half of them. An archive that Muniment
wrote need not even be parsed: the other side's rows say what its XML must be. Where the streams
part, both sides are digested on their own; if only the order differs, the content digests agree.
Otherwise the rows that differ are found group by group, in memory that does not grow with the
table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from muniment import databases
from muniment.compare.classes import class_differences
from muniment.compare.sides import Read, reading_side
from muniment.compare.tables import TableComparer, TableComparison
from muniment.conversions import (
    UNFIT,
    archived_as_text,
    archived_types,
    beside_texts,
    is_wider,
    odd_columns,
    odd_sentences,
    pattern_of,
    refused_text,
    text_sentences,
)
from muniment.databases.tunnel import tunnelled
from muniment.datalinks import unlinked
from muniment.definitions import (
    Difference,
    compare_definitions,
    made_one,
    matched_tables,
    not_compared,
    with_moved_views,
)
from muniment.errors import DatabaseError, Unfit, UnknownType, UsageError
from muniment.kernels import expect
from muniment.normal import Normal, normal_forms, shared_forms
from muniment.siard import SiardSource, open_siard
from muniment.siard.lobs.folders import Root
from muniment.siard.volumes import exists
from muniment.sql.model import Database, Schema, Table
from muniment.sql.selection import Selection
from muniment.sql.stores import Source
from muniment.transfer import Progress, Renamed

__all__ = ["Comparison", "Difference", "TableComparison", "compare"]

_KEYS = (" primary key", " candidate keys", " foreign keys")  # where definitions may differ
_SMALL = 24 << 20  # bytes that take no time to digest in order, and are not worth a process


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict, and what it rests on."""

    equal: bool
    tables: tuple[TableComparison, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()  # how the sides had to be read to be comparable


def compare(
    a: str,
    b: str,
    *,
    jobs: int = 0,
    ordered: bool | None = None,
    statement_timeout: float | None = None,
    ssh: str | None = None,
    schema_map: Mapping[str, str] | None = None,
    selection: Selection | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    roots: Sequence[Root] = (),
) -> Comparison:
    """Compare two databases or SIARD files, in any combination.

    ``ordered`` digests (siard-digest-1) take about as long as all the rest; None means only where
    the smaller side is so small that nobody will notice. ``schema_map`` is that with which an
    archive was restored: new names for its schemas, or for those of ``a`` if both are archives, or
    none is. ``selection`` is what of the database is compared, or of ``a`` if both are databases.
    """
    chosen = selection or Selection()
    if chosen != Selection() and not (databases.is_url(a) or databases.is_url(b)):
        raise UsageError("tables and rows are chosen from a database, and both sides are archives")
    servers = [name for name in (a, b) if databases.is_url(name) and not databases.file_of(name)]
    if ssh and not servers:
        raise UsageError("--ssh is for database servers; neither side is one")
    open_side = partial(
        _open,
        statement_timeout=statement_timeout,
        ssh=ssh,
        roots=roots,
        chosen=(a if databases.is_url(a) else b, chosen),
    )
    if chosen.views or chosen.queries or chosen.order:
        jobs = 1  # their rows may be in temporary tables, which only one connection sees
    names = schema_map or {}
    if databases.is_url(b) and not databases.is_url(a):  # the archive is better second
        return _turned(_compare(b, a, open_side, jobs, ordered, progress, names))
    return _compare(a, b, open_side, jobs, ordered, progress, names)


def _turned(found: Comparison) -> Comparison:
    tables = tuple(
        replace(t, rows=t.rows[::-1], digest=t.digest[::-1], ordered_digest=t.ordered_digest[::-1])
        for t in found.tables
    )
    return replace(
        found, tables=tables, differences=tuple(replace(d, a=d.b, b=d.a) for d in found.differences)
    )


def _compare(
    a: str,
    b: str,
    open_side: Callable[..., Any],
    jobs: int,
    ordered: bool | None,
    progress: Callable[[Progress], None],
    names: Mapping[str, str],
) -> Comparison:
    """Compare; a database is read again if columns of it have to be read as text."""
    texts = _Texts()
    while True:
        known = len(texts)
        try:
            return _compare_once(a, b, open_side, jobs, ordered, progress, names, texts)
        except _AsText:
            continue
        except (Unfit, UnknownType) as error:
            # Its frames would hold on to connections, and DuckDB waits for the end of those.
            refused = error.with_traceback(None)
        if not databases.is_url(b) and databases.is_url(a):
            with open_side(b) as archive:
                texts.archived |= refused_text(refused, archive.describe())
        if len(texts) == known:
            texts.add(odd_columns(refused))
            if isinstance(refused, Unfit):
                texts.add(dict.fromkeys(_misfits((a, b), open_side, texts), UNFIT))
        if len(texts) == known:
            raise DatabaseError(f"{refused.fact}, and cannot be compared, not even as text")


@dataclass
class _Texts:
    """The columns that databases are asked for as text, as SCHEMA.TABLE.COLUMN."""

    archived: set[str] = field(default_factory=set)  # the archive has them as text
    odd: dict[str, str] = field(default_factory=dict)  # they cannot be read otherwise, and why
    beside: set[str] = field(default_factory=set)  # they are compared with such a column

    def __len__(self) -> int:
        return len(self.archived) + len(self.odd) + len(self.beside)

    def add(self, odd: Mapping[str, str]) -> None:
        self.odd |= {c: why for c, why in odd.items() if c not in self.archived}

    def patterns(self) -> tuple[str, ...]:
        return tuple(map(pattern_of, sorted(self.archived | self.odd.keys() | self.beside)))

    def sentences(self) -> Iterator[str]:
        yield from text_sentences(self.archived)
        yield from odd_sentences(self.odd)


class _AsText(Exception):
    """Columns that were read as something else have to be read as text."""


def _misfits(sides: Iterable[str], open_side: Callable[..., Any], texts: _Texts) -> Iterator[str]:
    """Yield all columns of the databases with values that do not fit: one reading finds one."""
    for name in filter(databases.is_url, sides):
        # What a side cannot be opened with is found when it is opened again.
        with suppress(Unfit), open_side(name, as_text=texts.patterns()) as source:
            yield from (unfit.where for unfit in getattr(source, "misfits", list)())


def _compare_once(
    a: str,
    b: str,
    open_side: Callable[..., Any],
    jobs: int,
    ordered: bool | None,
    progress: Callable[[Progress], None],
    names: Mapping[str, str],
    texts: _Texts,
) -> Comparison:
    with ExitStack() as stack:
        left, right = (
            stack.enter_context(open_side(name, as_text=texts.patterns())) for name in (a, b)
        )
        archived = databases.is_url(a) and not databases.is_url(b)
        if databases.is_url(a) != databases.is_url(b):  # a database has links, not their files
            left, right = (unlinked(s) if isinstance(s, SiardSource) else s for s in (left, right))
        if names and archived:
            right = _Renamed(right, names)
        elif names:
            left = _Renamed(left, names)
        first, second = left.describe(), right.describe()
        if archived and (more := set(archived_as_text(first, second)) - texts.archived):
            texts.archived |= more
            raise _AsText
        if more := set(beside_texts(first, second, texts.odd.keys())) - texts.beside:
            texts.beside |= more
            raise _AsText
        notes = list(texts.sentences())
        pairs = matched_tables(first, second)
        notes += filter(None, [not_compared(first, second), made_one(pairs)])
        size = min(left.size(), right.size())
        expect(max(left.size(), right.size()))
        ordered = size < _SMALL if ordered is None else ordered
        side = stack.enter_context(reading_side(left, 1 if size < _SMALL else jobs))
        differences = _definition_differences((left, first), (right, second))
        tables = []
        differences += class_differences(first, second, pairs)
        watch = _Watch(progress, sum(pair.b[1].rows for pair in pairs if pair.b))
        for pair in pairs:
            watch.next_table()
            if pair.a is None or pair.b is None:
                tables.append(_one_sided(left, pair.a) if pair.a else _one_sided(right, pair.b))
                if pair.a is None:
                    tables[-1] = replace(tables[-1], rows=tables[-1].rows[::-1])
                continue
            schema, table = pair.a
            if archived and hasattr(left, "refit"):
                table = archived_types(pair.a, pair.b)
            while True:
                forms = normal_forms(first, second, (schema, table), pair.b)
                reads = Read(schema, table, forms[0], ordered), Read(*pair.b, forms[1], ordered)
                work = partial(TableComparer, side, right, second)
                try:
                    result, found = work(*reads).run(watch)
                    if reads[0].names != reads[1].names:
                        # The digests are of whole rows; cells are found in what both sides have.
                        shared = _narrowed(
                            reads, shared_forms(first, second, (schema, table), pair.b)
                        )
                        found = work(*shared).run(watch)[1] if shared[0].names else []
                    break
                except Unfit as unfit:
                    table = _refitted(left, schema, table, unfit)
            notes += _wider(pair.a, table)
            tables.append(result)
            differences += found
    equal = not differences and all(table.equal for table in tables)
    return Comparison(equal, tuple(tables), tuple(differences), tuple(notes))


class _Renamed(Renamed):
    """A side whose schemas go by the names that they have on the other one."""

    def describe(self) -> Database:
        return with_moved_views(super().describe(), self._names)


def _narrowed(reads: tuple[Read, Read], forms: tuple[Normal, Normal]) -> tuple[Read, Read]:
    a, b = (replace(r, normal=n, ordered=False) for r, n in zip(reads, forms, strict=True))
    return a, b


def _definition_differences(
    left: tuple[Any, Database], right: tuple[Any, Database]
) -> list[Difference]:
    """Compare definitions; a key that one side alone has may be one that rows do not keep.

    Whether they do is asked only then: it takes a source longer than to read the definitions.
    """
    differences = list(compare_definitions(left[1], right[1]))
    if any(difference.where.endswith(_KEYS) for difference in differences):
        first, second = (
            source.kept(known) if hasattr(source, "kept") else known
            for source, known in (left, right)
        )
        differences = list(compare_definitions(first, second))
    return differences


class _Watch:
    """Adds up the bytes of the tables, and tells how many rows they have in all."""

    def __init__(self, progress: Callable[[Progress], None], rows: int) -> None:
        self._progress, self._rows = progress, rows or None
        self._before = self._now = 0

    def __call__(self, step: Progress) -> None:
        self._now = step.bytes_written
        size = self._before + self._now
        self._progress(replace(step, bytes_written=size, all_rows=self._rows))

    def next_table(self) -> None:
        self._before, self._now = self._before + self._now, 0


def _refitted(source: Source, schema: Schema, table: Table, unfit: Unfit) -> Table:
    """The table with a wider type for a value that outgrew its declaration."""
    refit = getattr(source, "refit", None)
    wider: Table | None = refit(schema, table, unfit) if refit else None
    if wider is None:
        raise unfit
    return wider


def _wider(declared: tuple[Schema, Table], table: Table) -> Iterator[str]:
    """Say which columns hold more than they are declared for.

    Others are read in the archive's type, too, if their own is only another name for it.
    """
    for x, y in zip(declared[1].columns, table.columns, strict=True):
        if is_wider(y.type, x.type):
            where, known = f"{declared[0].name}.{table.name}.{x.name}", x.type_original or x.type
            yield f"{where} is declared {known} and holds more; compared as {y.type}"


def _one_sided(source: Source, present: tuple[Schema, Table] | None) -> TableComparison:
    assert present is not None
    schema, table = present
    parts = source.parts(schema, table)
    rows = sum(batch.rows for part in parts for batch in source.batches(schema, table, part))
    return TableComparison(schema.name, table.name, (rows, None), (None, None), (None, None), False)


@contextmanager
def _open(
    name: str,
    statement_timeout: float | None,
    ssh: str | None,
    roots: Sequence[Root],
    chosen: tuple[str, Selection],
    as_text: tuple[str, ...] = (),
) -> Iterator[Any]:
    if not databases.is_url(name):
        if not exists(Path(name)):
            raise UsageError(
                f"there is no {name}; name a database by its URL or a SIARD file by its path"
            )
        with open_siard(Path(name), roots) as archive:
            yield archive
        return
    through = None if databases.file_of(name) else ssh
    selection = replace(chosen[1] if name == chosen[0] else Selection(), as_text_if_there=as_text)
    with (
        tunnelled(name, through) as place,
        databases.open_source(place, selection, statement_timeout=statement_timeout) as source,
    ):
        yield source
