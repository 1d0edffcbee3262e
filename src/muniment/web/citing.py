"""Citing by hand: rows and cells that somebody chose become names with fragments, and are checked.

A name has one fragment, and a fragment one run of rows or one block of cells. What was chosen is
therefore cited by as few of them as possible.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from muniment.citations.styles import Reference
from muniment.errors import UsageError
from muniment.identifiers import Profile, parse_pdi
from muniment.sql.model import Schema, Table
from muniment.web.archive_pages import find_table, frame, open_archive
from muniment.web.page import Page, text_of
from muniment.web.references import reference_of
from muniment.web.site import OpenArchive
from muniment.web.table_page import column_keys, read_rows
from muniment.web.urls import Urls

__all__ = ["Part", "cite_page", "parts_of", "runs_of"]

_MOST = 500  # rows that can be chosen at once
_SHOWN = 20
Run = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """A run of rows and columns of a table; numbers count from 1, as fragments count them."""

    schema: int
    table: int
    rows: Run | None = None
    columns: Run | None = None

    @property
    def fragment(self) -> str:
        """The part as a fragment.

        >>> Part(0, 2, (17, 19)).fragment, Part(0, 2, (17, 17), (4, 5)).fragment
        ('row=(s0,t2,r17),(r19)', 'cell=(s0,t2,c4,r17),(c5,r17)')
        >>> Part(0, 2).fragment, Part(0, 2, None, (4, 4)).fragment
        ('table=(s0,t2)', 'col=(s0,t2,c4)')
        """
        first, last = [f"s{self.schema}", f"t{self.table}"], []
        for letter, run in (("c", self.columns), ("r", self.rows)):
            if run is not None:
                first.append(f"{letter}{run[0]}")
                last.append(f"{letter}{run[1]}")
        scheme = ("cell" if self.columns else "row") if self.rows else "col"
        scheme = scheme if last else "table"
        whole = all(run is None or run[0] == run[1] for run in (self.rows, self.columns))
        end = "" if whole else f",({','.join(last)})"
        return f"{scheme}=({','.join(first)}){end}"

    def words(self, schema: Schema, table: Table) -> str:
        """The part in words, with the names that a reader knows."""
        said = [f"{schema.name}.{table.name}"]
        if self.rows:
            said.append(f"row {self.rows[0]}" if self.rows[0] == self.rows[1] else
                        f"rows {self.rows[0]}–{self.rows[1]}")  # fmt: skip
        if self.columns:
            names = [c.name for c in table.columns[self.columns[0] - 1 : self.columns[1]]]
            said.append(f"column{'s' if len(names) > 1 else ''} {', '.join(names)}")
        return ", ".join(said)


def runs_of(numbers: Iterable[int], others: Iterable[Run] = ()) -> list[Run]:
    """Return numbers, and runs of them, as the fewest runs.

    >>> runs_of([5, 3, 4, 9, 4]), runs_of([5], [(6, 900), (20, 30)])
    ([(3, 5), (9, 9)], [(5, 900)])
    """
    runs: list[Run] = []
    for first, last in sorted([*((n, n) for n in numbers), *others]):
        if runs and first <= runs[-1][1] + 1:
            runs[-1] = runs[-1][0], max(last, runs[-1][1])
        else:
            runs.append((first, last))
    return runs


def parts_of(schema: int, table: int, rows: Sequence[Run], columns: Sequence[Run]) -> list[Part]:
    """Return the parts that make up all chosen cells; nothing chosen is the whole table."""
    runs: Sequence[Run | None] = rows or (None,)
    blocks: Sequence[Run | None] = columns or (None,)
    return [Part(schema, table, run, block) for run in runs for block in blocks]


def cite_page(request: Request) -> Page:
    """What was chosen in a table, as citations that were checked."""
    archive = open_archive(request)
    schema, table = find_table(request, archive)
    rows, columns = _chosen(request, table)
    home = archive.database.schemas.index(schema), schema.tables.index(table)
    base = request.app.state.site.base
    parts = [
        (part, reference_of(archive, part.words(schema, table), part.fragment, base))
        for part in parts_of(*home, rows, columns)
    ]
    facts = {
        "schema": schema.name,
        "table": table.name,
        "pdi": archive.pdi or None,
        "sha256": archive.digest or None,
        "rows": [list(run) for run in rows],
        "columns": [column.name for a, b in columns for column in table.columns[a - 1 : b]],
        "parts": [_cited(archive, part, reference) for part, reference in parts],
        "check": _check(archive, schema, table, rows, columns),
    }
    only_page = {
        "table_url": Urls(archive).table(schema, table),
        "file": archive.file,
        "command": text_of("command_add", file=shlex.quote(archive.file)),
    }
    references = [reference for _, reference in parts]
    return Page("cite.html", facts, {**frame(archive), **only_page}, references=references)


def _cited(archive: OpenArchive, part: Part, reference: Reference) -> dict[str, Any]:
    if archive.pdi:
        parse_pdi(reference.identifier, Profile.CITE)  # a name that nobody accepts is not shown
    return {
        "words": reference.part,
        "identifier": reference.identifier,
        "fragment": part.fragment,
        "url": reference.url or None,
        "citations": reference.texts(),
    }


def _chosen(request: Request, table: Table) -> tuple[list[Run], list[Run]]:
    query = request.query_params
    texts = [text for text in query.getlist("row") if text]
    ends = [query.get(name, "").strip() for name in ("from", "to")]
    ends = [ends[0] or ends[1], ends[1] or ends[0]] if any(ends) else []
    if len(texts) > _MOST or not all(t.isdecimal() and len(t) < 19 for t in (*texts, *ends)):
        raise UsageError(f"rows are chosen by their numbers, at most {_MOST} of them or one run")
    between = [(min(map(int, ends)), max(map(int, ends)))] if ends else []
    rows = runs_of(map(int, texts), between)
    if rows and not (rows[0][0] >= 1 and rows[-1][1] <= table.rows):
        raise UsageError(f"{table.name[:80]} has the rows 1 to {table.rows}")
    names = list(column_keys(table).items())
    columns = []
    for text in query.getlist("col")[:2000]:
        known = [number for number, pair in enumerate(names, 1) if text in pair]
        if not known:
            raise UsageError(f"this table has no column {text[:80]!r}")
        columns.append(known[0])
    return rows, runs_of(columns)


def _check(
    archive: OpenArchive, schema: Schema, table: Table, rows: list[Run], columns: list[Run]
) -> dict[str, Any]:
    """Read the chosen cells from the archive anew, so that whoever cites them sees what is cited.

    The index is not asked: what stands here is what any reader of the archive will find.
    """
    shown = [k - 1 for a, b in columns for k in range(a, b + 1)] or list(range(len(table.columns)))
    chosen = rows or [(1, table.rows)] if table.rows else []
    read = read_rows(archive, schema, table, chosen, shown, _SHOWN)
    return {
        "columns": [table.columns[k].name for k in shown],
        "rows": read,
        "more": max(0, sum(b - a + 1 for a, b in chosen) - len(read)),
        "file_is_named": bool(archive.pdi),
    }
