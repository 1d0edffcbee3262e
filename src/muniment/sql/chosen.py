"""Names that people give: what they match, and what they may have meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import islice

from muniment.errors import UsageError

__all__ = [
    "is_like", "matches", "meant", "refuse_twice", "refuse_unmatched", "refuse_views",
    "undescribable",
]  # fmt: skip

_SHOWN = 12
_LOOKED_AT = 20_000  # names that a misspelt one is held against
_NEAR = 0.6


def is_like(name: str, pattern: str) -> bool:
    """Whether a name is meant: just as it is, or by * and ?."""
    return name == pattern or fnmatchcase(name, pattern)


def matches(patterns: Iterable[str], schema: str, table: str) -> bool:
    """Whether a table is meant by one of the patterns for ``table`` or ``schema.table``."""
    full = f"{schema}.{table}"
    return any(is_like(table, p) or is_like(full, p) for p in patterns)


def refuse_unmatched(
    kind: str, patterns: Iterable[str], names: Collection[tuple[str, str]]
) -> None:
    """Raise UsageError for a pattern that means none of the tables or views."""
    for pattern in patterns:
        if not any(matches((pattern,), *name) for name in names):
            hint = meant(pattern, [".".join(name) for name in names])
            raise UsageError(f"no {kind} matches {pattern!r}; {hint}")


def undescribable(kind: str, name: str, known: Collection[str]) -> UsageError:
    """Return the error for a description of something that is not there."""
    sentence = f"a description is given for the {kind} {name!r}, which is not there"
    return UsageError(f"{sentence}; {meant(name, sorted(known))}")


def refuse_views(
    patterns: Iterable[str],
    tables: Collection[tuple[str, str]],
    views: Collection[tuple[str, str]],
    advice: str,
) -> None:
    """Raise UsageError for a pattern that means no table, but a view."""
    for pattern in patterns:
        if any(matches((pattern,), *name) for name in tables):
            continue
        if any(matches((pattern,), *name) for name in views):
            raise UsageError(f"{pattern!r} is a view and no table; {advice}")


def refuse_twice(
    what: str, choices: Mapping[str, object], names: Iterable[tuple[str, str]]
) -> None:
    """Raise UsageError where two patterns mean one table: nobody could tell which one holds."""
    if len(choices) < 2:
        return
    for name in names:
        found = [pattern for pattern in choices if matches((pattern,), *name)]
        if len(found) > 1:
            both = " and ".join(map(repr, found[:2]))
            raise UsageError(f"{'.'.join(name)} is given {what} twice, by {both}; leave one out")


def meant(name: str, known: Collection[str]) -> str:
    """Say which of the known names is near to one that is not known, or which there are.

    >>> meant("Tre", ["main.tree", "main.street"]), meant("x", ["main.tree"]), meant("x", [])
    ("did you mean 'main.tree'?", 'there are: main.tree', 'there are: none')
    """
    if not {"*", "?"} & set(name):
        ends: dict[str, str] = {}  # of names, from each of their parts on
        for full in islice(known, _LOOKED_AT):
            parts = full.split(".")
            for start in range(len(parts)):
                ends.setdefault(".".join(parts[start:]).casefold(), full)
        if near := get_close_matches(name.casefold(), ends, 1, _NEAR):
            return f"did you mean {ends[near[0]]!r}?"
    more = " …" if len(known) > _SHOWN else ""
    return f"there are: {', '.join(islice(known, _SHOWN)) or 'none'}{more}"
