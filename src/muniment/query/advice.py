"""What a query may have meant: the names that there are, where it names one that there is not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from muniment.databases.duckdb.types import quote, quote_text

if TYPE_CHECKING:
    from muniment.query.index import About

__all__ = ["advised", "explained", "shown_name"]

_NO_TABLE = re.compile(r'^(?:Table|View) with name "?(.+?)"? does not exist')
_NO_ALIAS = re.compile(r'^Referenced table "(.+?)" not found')
_NO_COLUMN = re.compile(
    r'^(?:Referenced column|Column) "(.+?)" (?:not found|does not exist|in \w+ list not found)'
    r'|does not have a column named "(.+?)"'
)
# The text in the middle may have lines.
_NO_NUMBER = re.compile(r"Could not convert string (?s:.*) when casting from source column (.+)")
_TEXT_AND_OTHER = re.compile(r"^Cannot compare values of type VARCHAR|and type VARCHAR -")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words of the language that may also be names; as names they need quotes.
_WORDS = {
    "all", "and", "any", "array", "as", "asc", "both", "case", "cast", "check", "column",
    "constraint", "create", "default", "desc", "distinct", "do", "else", "end", "except",
    "false", "fetch", "for", "foreign", "from", "grant", "group", "having", "in", "initially",
    "intersect", "into", "is", "join", "lateral", "leading", "limit", "not", "null", "offset",
    "on", "only", "or", "order", "placing", "primary", "qualify", "references", "returning",
    "select", "show", "some", "summarize", "symmetric", "table", "then", "to", "trailing",
    "true", "union", "unique", "using", "variadic", "when", "where", "window", "with",
}  # fmt: skip
_TABLES, _COLUMNS, _HOMES = 8, 12, 3  # that a sentence names


def explained(error: Exception) -> str:
    """What DuckDB says, without the name of its class and without its picture of the statement."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    lines[0] = re.sub(r"^[A-Z][A-Za-z]*(?: \w+){0,3} Error: ", "", lines[0])
    if "Cannot extract field 'key'" in lines[0]:
        return "content() is for binary large objects; a text is there as it is"
    if "disabled by configuration" in lines[0]:
        return "files cannot be read here: a query sees the archive and nothing else"
    also = [line for line in lines[1:2] if line.startswith("Did you mean")]
    return " ".join([lines[0], *also])


def advised(
    error: Exception, sql: str, archives: Mapping[str, About], notes: Sequence[str] = ()
) -> str:
    """Return what went wrong; of a name that is not there, the closest that are."""
    said = explained(error)
    if found := _NO_TABLE.search(said):
        return _no_table(found[1], archives, notes)
    if found := _NO_ALIAS.search(said):
        return f"the query has no table {found[1]} in its FROM; {_tables(found[1], archives)}"
    if found := _NO_COLUMN.search(said):
        return _no_column(found[1] or found[2], sql, archives)
    if (found := _NO_NUMBER.search(str(error))) and _is_text(found[1], archives):
        return f"{said}; {_as_text(found[1], sql)}"
    if _TEXT_AND_OTHER.search(said):
        return f"{said}; what is text in the archive is compared with texts, such as '7.5'"
    return said


def _is_text(name: str, archives: Mapping[str, About]) -> bool:
    tables = (table for about in archives.values() for table in about.tables)
    return any(c.name == name and c.type == "VARCHAR" for t in tables for c in t.columns)


def _as_text(name: str, sql: str) -> str:
    """How to compare a column of texts; DuckDB would read them as the numbers of the query."""
    shown = shown_name(name)
    place = rf'\b{re.escape(name)}"?\s*(?:[<>!]?=|<>|<|>|\bIN\s*\()\s*([+-]?\d[\d.]*)'
    number = re.search(place, sql, re.IGNORECASE)
    return (
        f"{shown} is text in the archive: write '{number[1] if number else 7}' in quotation marks"
        f" to compare it, or TRY_CAST({shown} AS …) where some of it may be no number"
    )


def _no_table(name: str, archives: Mapping[str, About], notes: Sequence[str]) -> str:
    for note in notes:  # an archived view that could not be translated
        if note.startswith("the view ") and f".{_last(name)} cannot be queried" in note:
            return note
    return f"there is no table {name}; {_tables(name, archives)}"


def _tables(name: str, archives: Mapping[str, About]) -> str:
    """The tables and views that there are, those that are called most alike first."""
    places = [
        (part, ".".join(map(shown_name, [*([home] if len(archives) > 1 else []), schema, part])))
        for home, about in archives.items()
        for schema, part in (
            *((t.schema, t.name) for t in about.tables),
            *((v.schema, v.name) for v in about.views if v.sql),
        )
    ]
    if not places:
        return "the archive has no tables"
    closest = [place for _, place in _closest(_last(name), places)]
    return f"there {'are' if len(places) > 1 else 'is'} {_listed(closest, _TABLES)}"


def _no_column(name: str, sql: str, archives: Mapping[str, About]) -> str:
    """The columns of the tables that the query names, those that are called most alike first."""
    words = sql.casefold()
    tables = [t for about in archives.values() for t in about.tables]
    named = [t for t in tables if re.search(rf"\b{re.escape(t.name.casefold())}\b", words)]
    said = []
    for table in named[:_HOMES]:
        columns = [(c.name, shown_name(c.name)) for c in table.columns]
        closest = [shown for _, shown in _closest(name, columns)]
        said.append(f"{shown_name(table.name)} has {_listed(closest, _COLUMNS)}")
    if quote(name) in sql:
        said.append(f"if it is a text, write it in single quotation marks: {quote_text(name)}")
    return "; ".join([f"there is no column {name} here", *said])


def _closest(name: str, named: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    wanted = name.casefold()[:200]

    def distance(pair: tuple[str, str]) -> float:
        other = pair[0].casefold()[:200]
        inside = wanted in other or other in wanted
        return -SequenceMatcher(None, wanted, other).ratio() - inside

    return sorted(named, key=distance)


def _listed(names: Sequence[str], most: int) -> str:
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


def _last(name: str) -> str:
    return name.rpartition(".")[2].strip('"')


def shown_name(name: str) -> str:
    """Return a name as a query has to spell it.

    >>> shown_name("tree"), shown_name("Guided walk"), shown_name("order")
    ('tree', '"Guided walk"', '"order"')
    """
    if _PLAIN.fullmatch(name) and name.lower() not in _WORDS:
        return name
    return quote(name)
