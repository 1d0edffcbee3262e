"""Columns with values that SIARD's types cannot hold, found by the server for a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muniment.databases.postgresql.connection import Connection, quote, rows
from muniment.databases.postgresql.definitions import Relation
from muniment.databases.postgresql.types import Plain
from muniment.errors import Unfit
from muniment.sql.model import Database

__all__ = ["find_misfits"]

_BOUNDED = "({0} < '0001-01-01' OR {0} >= '10000-01-01')"
_TESTS = {
    "numeric": "{0}::text !~ '^[-0-9.]'  OR {0}::text LIKE '-I%'",
    "date": _BOUNDED,
    "timestamp without time zone": _BOUNDED,
    "timestamp with time zone": _BOUNDED,  # the session is in UTC
    "time without time zone": "{0} = '24:00:00'",
}


def find_misfits(
    connection: Connection,
    database: Database,
    relations: Mapping[tuple[str, str], Relation],
) -> Iterator[Unfit]:
    """Yield every column that holds such a value; each table that may is read once."""
    for schema, table in database.tables():
        relation = relations[schema.name, table.name]
        if relation.custom:
            continue
        tests = {
            column.name: _TESTS[fit.node.base].format(quote(column.name))
            for column, fit in zip(table.columns, relation.fits, strict=True)
            if isinstance(fit.node, Plain) and fit.node.base in _TESTS
        }
        if not tests:
            continue
        listed = ", ".join(f"bool_or({test}) AS {quote(name)}" for name, test in tests.items())
        (row,) = rows(connection, f"SELECT {listed} FROM {relation.sql}")
        for name, found in row.items():
            if found:
                yield Unfit(f"{schema.name}.{table.name}.{name}", None, "a value", "in range")
