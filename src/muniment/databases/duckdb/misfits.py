"""Columns with days that SIARD does not have, found by DuckDB for a message.

Only asked for when a value was refused, so that all such columns are named at once.
"""

from __future__ import annotations

from muniment.databases.duckdb.types import (
    DuckType,
    Listing,
    Mapping,
    Record,
    Scalar,
    Union,
    quote_text,
)

__all__ = ["misfit_sql"]

_DAYS = (
    "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMPTZ_NS",
)  # fmt: skip
_NANOSECONDS = ("TIMESTAMP_NS", "TIMESTAMPTZ_NS")  # from 1677 to 2262


def misfit_sql(duck: DuckType | None, value: str, depth: int = 0) -> str | None:
    """Return a condition for values that no type of SIARD holds; None if all have their place.

    >>> misfit_sql(Listing(Scalar("TIME")), "l")
    "list_contains([x0 = TIME '24:00:00' FOR x0 IN l], true)"
    >>> misfit_sql(Scalar("VARCHAR"), "v") is None
    True
    """
    item = f"x{depth}"
    match duck:
        case Scalar("TIME"):
            return f"{value} = TIME '24:00:00'"
        case Scalar(name) if name in _NANOSECONDS:
            return f"NOT isfinite({value})"
        case Scalar(name) if name in _DAYS:
            first, after = (f"CAST('{day}' AS {name})" for day in ("0001-01-01", "10000-01-01"))
            return f"({value} < {first} OR {value} >= {after})"
        case Listing(element, length):
            values = f"CAST({value} AS {element}[])" if length else value
            return _of_items(misfit_sql(element, item, depth + 1), item, values)
        case Mapping(key, held):
            pair = Record((("key", key), ("value", held)))
            return _of_items(misfit_sql(pair, item, depth + 1), item, f"map_entries({value})")
        case Record(parts) | Union(parts):
            extract = "struct_extract" if isinstance(duck, Record) else "union_extract"
            found = [
                misfit_sql(kind, f"{extract}({value}, {quote_text(name)})", depth)
                for name, kind in parts
            ]
            known = [f"coalesce({each}, false)" for each in found if each]
            return f"({' OR '.join(known)})" if known else None
    return None


def _of_items(condition: str | None, item: str, values: str) -> str | None:
    if condition is None:
        return None
    return f"list_contains([{condition} FOR {item} IN {values}], true)"
