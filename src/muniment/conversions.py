"""Columns that an archive holds in another type than its database: as text, or in a wider type.

Comparing the two means reading the database the way it was archived.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from glob import escape

from muniment.definitions import TablePair, matched_tables
from muniment.errors import Unfit, UnknownType
from muniment.sql.classes import classes_in
from muniment.sql.model import Column, Database, Leaf, Schema, Shape, Table, shape_of
from muniment.sql.types import Kind, PredefinedType, Type

__all__ = [
    "UNFIT", "archived_as_text", "archived_types", "beside_texts", "is_wider", "odd_columns",
    "odd_sentences", "pattern_of", "refused_text", "text_sentences",
]  # fmt: skip

UNFIT = "holds values that do not fit its type"


def archived_as_text(database: Database, archive: Database) -> Iterator[str]:
    """Yield the columns of the database, as SCHEMA.TABLE.COLUMN, that the archive has as text."""
    if _product(database) != _product(archive):
        return
    for pair in matched_tables(database, archive):
        for x, y in _columns(pair):
            assert pair.a is not None and pair.b is not None
            here = shape_of(database, pair.a[0].name, x)
            there = shape_of(archive, pair.b[0].name, y)
            # SQLite's columns of text may be archived as such, too: other values are among them.
            told = classes_in(y.description) and not classes_in(x.description)
            if x.type_original == y.type_original and (told or _was_made_text(here, there)):
                yield f"{pair.a[0].name}.{pair.a[1].name}.{x.name}"


def refused_text(error: Unfit | UnknownType, archive: Database) -> set[str]:
    """Return the columns with values that do not fit their type, if the archive has them as text.

    A column of text with bytes that are none has the same type on both sides.
    """
    texts = tuple(
        f".{table.name}.{column.name}"
        for schema, table in archive.tables()
        for column in table.columns
        if _is_text(shape_of(archive, schema.name, column))
    )
    refused = (error.where, *(error.others if isinstance(error, Unfit) else ()))
    return {where for where in refused if where.endswith(texts)}


def beside_texts(first: Database, second: Database, odd: Set[str]) -> Iterator[str]:
    """Yield the columns that have to be read as text since those on the other side are.

    Of single values, those of numbers say, there is one spelling for text and type; lists and
    structures have to be text on both sides.
    """
    for pair in matched_tables(first, second) if odd else ():
        for x, y in _columns(pair):
            assert pair.a is not None and pair.b is not None
            sides = (first, *pair.a, x), (second, *pair.b, y)
            places = [f"{schema.name}.{table.name}.{c.name}" for _, schema, table, c in sides]
            if odd.isdisjoint(places):
                continue
            for place, (database, schema, _, column) in zip(places, sides, strict=True):
                if not isinstance(shape_of(database, schema.name, column), Leaf):
                    yield place


def archived_types(a: tuple[Schema, Table], b: tuple[Schema, Table]) -> Table:
    """Return the database's table with the types that the archive gave to its columns.

    They are wider, or those of another product that says the same of a column.
    """
    types = {}
    for x, y in _columns(TablePair(a, b)):
        if classes_in(x.description):
            continue  # it holds several classes now, and is text whatever the archive has
        wider = isinstance(x.type, PredefinedType) and isinstance(y.type, PredefinedType)
        if wider and x.type != y.type and x.type_original == y.type_original:
            types[x.name] = y.type
    columns = tuple(replace(c, type=types.get(c.name, c.type)) for c in a[1].columns)
    return replace(a[1], columns=columns)


def is_wider(type_: Type, other: Type) -> bool:
    """Whether a type has room for longer texts, or for more digits, than another of its kind.

    >>> wide, narrow = PredefinedType("DECIMAL"), PredefinedType("DECIMAL", 9, 2)
    >>> is_wider(wide, narrow), is_wider(PredefinedType("INTEGER"), PredefinedType("BIGINT"))
    (True, False)
    """
    if not isinstance(type_, PredefinedType) or not isinstance(other, PredefinedType):
        return False
    if type_.kind is not other.kind or type_.kind not in (Kind.TEXT, Kind.DECIMAL):
        return False
    return other.length is not None and (type_.length is None or type_.length > other.length)


def text_sentences(columns: set[str]) -> Iterator[str]:
    """Say which columns were compared as text."""
    for column in sorted(columns):
        yield f"{column} was archived as text, and is compared as such"


def odd_columns(error: Unfit | UnknownType) -> dict[str, str]:
    """Return the columns that a source refused to read, and why."""
    if isinstance(error, UnknownType):
        return {error.where: f"is {error.type}, for which SIARD has no type"}
    return dict.fromkeys((error.where, *error.others), UNFIT)


def odd_sentences(columns: Mapping[str, str]) -> Iterator[str]:
    """Say which columns had to be compared as text, though nobody archived them as such."""
    for column, reason in sorted(columns.items()):
        yield f"{column} {reason}, and is compared as text"


def pattern_of(column: str) -> str:
    """The pattern that selects one column alone."""
    return escape(column)


def _columns(pair: TablePair) -> Iterator[tuple[Column, Column]]:
    if pair.a is not None and pair.b is not None:
        there = {column.name: column for column in pair.b[1].columns}
        yield from ((c, there[c.name]) for c in pair.a[1].columns if c.name in there)


def _was_made_text(here: Shape, there: Shape) -> bool:
    """Whether --as-text made the difference.

    Some values have a spelling of SIARD's in a short text, intervals of months and days for one,
    and that of their product as text.
    """
    if not isinstance(there, Leaf) or not _is_text(there):
        return False
    if not isinstance(here, Leaf) or not _is_text(here):
        return True
    return there.type.name == "CLOB" and here.type.name != "CLOB"


def _is_text(shape: object) -> bool:
    return isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT


def _product(database: Database) -> str:
    return (database.database_product or "").partition(" ")[0]
