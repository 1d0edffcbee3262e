"""What keeps columns from being NULL: since version 18, constraints with names.

A column's row in the catalogue has the constraint's name in ``null_name``, None in earlier
versions; ``null_local`` says whether it is the table's own, ``null_alone`` whether heirs go without
it, which earlier versions are told when the heirs are there. ``attnotnull`` is false for a
constraint that was never validated: rows may break it.
"""

from __future__ import annotations

from collections.abc import Iterable

from muniment.databases.postgresql.catalogue import Row
from muniment.databases.postgresql.connection import quote

__all__ = [
    "column_not_null",
    "is_late_not_null",
    "is_usual_not_null",
    "passed_on",
    "table_not_null",
]


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
    if not column["attnotnull"] or is_late_not_null(column):
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
    if not column["attnotnull"] or column["null_name"] is None:
        return None
    said = (
        not column["null_local"] if column["name"] in inherited else is_usual_not_null(row, column)
    )
    name, place = quote(column["null_name"]), quote(column["name"])
    return None if said else f"CONSTRAINT {name} NOT NULL {place}{_alone(column)}"


def is_late_not_null(column: Row) -> bool:
    """Whether a column can be kept from being NULL only once there are heirs who may have NULL."""
    return column["null_name"] is None and bool(column["null_alone"])


def is_usual_not_null(row: Row, column: Row) -> bool:
    """Whether SET NOT NULL makes the constraint of a column as it is."""
    usual = (None, _usual_name(row, column))
    return column["null_name"] in usual and not column["null_alone"]


def _usual_name(row: Row, column: Row) -> str:
    return f"{row['name']}_{column['name']}_not_null"


def _alone(column: Row) -> str:
    return " NO INHERIT" if column["null_alone"] else ""
