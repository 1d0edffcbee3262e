"""Names that no database can be told, in archives that were changed or made by other hands."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.errors import SiardError
from muniment.sql.model import Database, Table

__all__ = ["refuse_unsayable"]


_ADVICE = "change the name in metadata.xml, or choose other tables with --table"


def refuse_unsayable(database: Database, product: str, *, nul: bool) -> None:
    """Raise SiardError for a name with half of a character, or with U+0000 if not ``nul``.

    The latter is for tables and their columns; other things with such names are left out.
    """
    for what, name in _names(database):
        try:
            name.encode()
        except UnicodeEncodeError as error:
            half = f"half of a character (U+{ord(name[error.start]):04X})"
            raise SiardError(
                f"the {what} has {half} in its name, which no database takes; {_ADVICE}"
            ) from error
        if "\0" in name and not nul and what.startswith(("table", "column")):
            raise SiardError(
                f"the {what} has the character U+0000 in its name, which {product} does not take; "
                f"{_ADVICE}"
            )


def _names(database: Database) -> Iterator[tuple[str, str]]:
    """Yield each name, with what it is the name of."""
    for schema in database.schemas:
        yield f"schema {schema.name!r}", schema.name
        for made in schema.types:
            yield f"type {made.name!r} in {schema.name}", made.name
            for attribute in made.attributes:
                yield f"attribute {attribute.name!r} of {schema.name}.{made.name}", attribute.name
        for table in schema.tables:
            yield f"table {table.name!r} in {schema.name}", table.name
            where = f"{schema.name}.{table.name}"
            yield from ((f"column {c.name!r} of {where}", c.name) for c in table.columns)
            yield from _constraints(where, table)
        for view in schema.views:
            yield f"view {view.name!r} in {schema.name}", view.name
            for column in view.columns:
                yield f"view column {column.name!r} of {schema.name}.{view.name}", column.name


def _constraints(where: str, table: Table) -> Iterator[tuple[str, str]]:
    keys = (*filter(None, (table.primary_key,)), *table.candidate_keys)
    for key in keys:
        parts = (key.name, *key.columns)
        yield from ((f"key {key.name!r} of {where}", part) for part in parts)
    for foreign in table.foreign_keys:
        parts = (foreign.name, foreign.referenced_schema, foreign.referenced_table)
        pairs = (name for each in foreign.references for name in (each.column, each.referenced))
        yield from ((f"foreign key {foreign.name!r} of {where}", p) for p in (*parts, *pairs))
    for check in table.check_constraints:
        yield f"check {check.name!r} of {where}", check.name
