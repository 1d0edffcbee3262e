"""Whether values that are equal as text are numbers, texts or bytes on both sides.

Only SQLite keeps values of several classes in one column. Texts that look like other values of
their column stand in quotation marks, so equal texts are equal values if the classes are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muniment.definitions import Difference, TablePair
from muniment.sql.classes import Classes, both_classes
from muniment.sql.model import Database

__all__ = ["class_differences"]


def class_differences(
    first: Database, second: Database, pairs: Sequence[TablePair]
) -> Iterator[Difference]:
    """Compare the classes of columns that hold several, or were read as text."""
    if not all((side.database_product or "").startswith("SQLite") for side in (first, second)):
        return
    for pair in pairs:
        if pair.a is None or pair.b is None:
            continue
        there = {column.name: column for column in pair.b[1].columns}
        for x in pair.a[1].columns:
            y = there.get(x.name)
            both = both_classes(x, y) if y else None
            if both and both[0] != both[1]:
                where = f"{pair.b[0].name}.{pair.b[1].name}.{x.name}"
                yield Difference(f"{where} values", *map(_shown, both))


def _shown(classes: Classes) -> str:
    return f"{classes}{', some of which look alike' if classes.quoted else ''}"
