"""What no database can be told, in archives that were changed or made by other hands.

Half of a character in a name stops the work; other definitions that have one are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from muniment.errors import SiardError
from muniment.sql.leftout import LeftOut
from muniment.sql.model import Database, Schema, Table
from muniment.sql.original import Original, join_original, split_original

__all__ = ["refuse_unsayable", "without_unsayable"]

T = TypeVar("T")
_REASON = "it has half of a character, which no database takes"


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


def without_unsayable(database: Database) -> tuple[Database, list[LeftOut]]:
    """Return a database without definitions that have half of a character, and what these are."""
    left: list[LeftOut] = []
    schemas = tuple(_schema(schema, left) for schema in database.schemas)
    return _described(replace(database, schemas=schemas)), left


def _schema(schema: Schema, left: list[LeftOut]) -> Schema:
    views = (
        view
        for view in schema.views
        if _keeps(left, "view", schema.name, view.name, view.query_original, view.query)
    )
    routines = (
        routine
        for routine in schema.routines
        if _keeps(left, "routine", schema.name, routine.name, routine.source, routine.body)
    )
    return _described(
        replace(
            schema,
            tables=tuple(_table(f"{schema.name}.{t.name}", t, left) for t in schema.tables),
            views=tuple(map(_described, views)),
            routines=tuple(map(_described, routines)),
        )
    )


def _table(where: str, table: Table, left: list[LeftOut]) -> Table:
    columns = (
        c
        if _keeps(left, "default", where, c.name, c.default_value)
        else replace(c, default_value=None)
        for c in table.columns
    )
    checks = (
        check
        for check in table.check_constraints
        if _keeps(left, "check constraint", where, check.name, check.condition)
    )
    triggers = (
        trigger
        for trigger in table.triggers
        if _keeps(left, "trigger", where, trigger.name, trigger.triggered_action)
    )
    return _described(
        replace(
            table,
            columns=tuple(map(_described, columns)),
            check_constraints=tuple(map(_described, checks)),
            triggers=tuple(map(_described, triggers)),
        )
    )


def _keeps(left: list[LeftOut], kind: str, where: str, name: str, *texts: str | None) -> bool:
    """Whether a thing can be said; if not, it is left out."""
    broken = next((text for text in texts if text and not _is_sayable(text)), None)
    if broken is None:
        return True
    left.append(LeftOut(kind, f"{name} of {where}", _REASON, _said(broken)))
    return False


def _described(thing: T) -> T:
    """Return a thing whose description can be said; of its statements, those that can."""
    there: Any = thing
    if not there.description or _is_sayable(there.description):
        return thing
    words, original = split_original(there.description)
    kept = tuple(filter(_is_sayable, original.statements)) if original else ()
    text = _said(words) if words else None
    if original and kept:
        text = join_original(text, Original(original.product, kept))
    described: T = replace(there, description=text)
    return described


def _is_sayable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _said(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
