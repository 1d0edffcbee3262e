"""What keeps columns from being NULL: since version 18, constraints with names.

A column's row in the catalogue has the constraint's name in ``null_name``, None in earlier
versions; ``null_local`` says whether it is the table's own, ``null_alone`` whether heirs may go
without it, ``null_late`` whether they do: the table can have it once its heirs and all rows are
there. ``attnotnull`` is false for a constraint that was never validated: rows may break it.
"""

from __future__ import annotations

from collections.abc import Iterable

from muniment.databases.postgresql.catalogue import Row
from muniment.databases.postgresql.connection import quote

__all__ = ["column_not_null", "is_usual_not_null", "late_not_null", "passed_on", "table_not_null"]


def passed_on(columns: Iterable[Row]) -> set[str]:
    """The names of those columns of parents that cannot be NULL in heirs either."""
    return {c["name"] for c in columns if c["attnotnull"] and not c["null_alone"]}


def column_not_null(row: Row, column: Row, inherited: set[str]) -> str:
    """What a column's definition says; nothing if only parents say so.

    >>> column = {"name": "a", "attnotnull": True, "null_name": "must", "null_alone": True}
    >>> column_not_null({"name": "t"}, {**column, "null_local": True}, {"a"})
    ' CONSTRAINT "must" NOT NULL NO INHERIT'
    >>> column_not_null({"name": "t"}, {**column, "null_local": False}, {"a"})
    ''
    """
    if not column["attnotnull"] or column.get("null_late"):
        return ""
    if column["null_local"] is False and column["name"] in inherited:
        return ""
    named = column["null_name"] not in (None, _usual_name(row, column))
    name = f" CONSTRAINT {quote(column['null_name'])}" if named else ""
    return f"{name} NOT NULL{_alone(column)}"


def table_not_null(row: Row, column: Row, inherited: set[str]) -> str | None:
    """What a table says of a column that its parents define, if SET NOT NULL cannot say it.

    >>> column = {"name": "a", "attnotnull": True, "null_local": True, "null_alone": False}
    >>> table_not_null({"name": "t"}, {**column, "null_name": "must"}, set())
    'CONSTRAINT "must" NOT NULL "a"'
    >>> table_not_null({"name": "t"}, {**column, "null_name": "t_a_not_null"}, set())
    """
    if not column["attnotnull"] or column["null_name"] is None or column.get("null_late"):
        return None
    said = (
        not column["null_local"] if column["name"] in inherited else is_usual_not_null(row, column)
    )
    return None if said else _named(column)


def late_not_null(place: str, column: Row) -> str | None:
    """The statement that keeps a column of a table, but not of its heirs, from being NULL.

    >>> late_not_null("t", {"name": "a", "null_name": None, "null_alone": True, "null_late": True})
    'ALTER TABLE ONLY t ALTER "a" SET NOT NULL'
    """
    if not column.get("null_late"):
        return None
    if column["null_name"] is None:
        return f"ALTER TABLE ONLY {place} ALTER {quote(column['name'])} SET NOT NULL"
    return f"ALTER TABLE {place} ADD {_named(column)}"


def is_usual_not_null(row: Row, column: Row) -> bool:
    """Whether SET NOT NULL makes the constraint of a column as it is."""
    usual = (None, _usual_name(row, column))
    return column["null_name"] in usual and not column["null_alone"]


def _named(column: Row) -> str:
    name, place = quote(column["null_name"]), quote(column["name"])
    return f"CONSTRAINT {name} NOT NULL {place}{_alone(column)}"


def _usual_name(row: Row, column: Row) -> str:
    return f"{row['name']}_{column['name']}_not_null"


def _alone(column: Row) -> str:
    return " NO INHERIT" if column["null_alone"] else ""
