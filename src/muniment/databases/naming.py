"""Names that a product would not take, or would cut in silence."""

from __future__ import annotations

from collections.abc import Callable

from muniment.errors import DatabaseError
from muniment.sql.model import Database

__all__ = ["refuse_long_names"]

_SHOWN = 3


def refuse_long_names(
    database: Database, product: str, most: int, size: Callable[[str], int], unit: str
) -> None:
    """Refuse names of schemas, tables and columns that are longer than a product's may be."""
    found = []
    for schema in database.schemas:
        names = [schema.name, *(table.name for table in schema.tables)]
        names += [column.name for table in schema.tables for column in table.columns]
        found += [name for name in names if size(name) > most]
    if found:
        shown = ", ".join(dict.fromkeys(found[:_SHOWN])) + (" …" if len(found) > _SHOWN else "")
        raise DatabaseError(
            f"{product} has names of at most {most} {unit}, and {shown} would be longer; restore "
            "into another product, or choose other tables with --table"
        )
