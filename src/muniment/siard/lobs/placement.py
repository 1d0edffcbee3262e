"""What goes where: values inline, in files inside the archive, or in files outside (T_6.2-1).

As T_6.4-5 recommends, a column is either inline or in files as a whole: once one of its values is
longer than the threshold, all of them lie in files. ``mixed`` decides value by value instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from muniment.errors import UsageError
from muniment.sql.batch import NULL
from muniment.sql.model import Array, Column, Database, Leaf, Schema, Shape, Table
from muniment.sql.types import Kind, PredefinedType

__all__ = ["EXTERNAL", "INLINE", "INTERNAL", "PLACES", "Placements", "Rule", "leaves"]

INLINE, INTERNAL, EXTERNAL = PLACES = ("inline", "internal", "external")
_THRESHOLD = 4000
_STORABLE = {Kind.TEXT, Kind.BINARY, Kind.DATALINK}


@dataclass(frozen=True, slots=True)
class Rule:
    """Where the values of one column go."""

    place: str
    threshold: int  # the longest value that stays inline: characters of text, else bytes
    mixed: bool
    stored: bool = False  # in files from the first value on

    def is_long(self, cell: bytes, text: bool) -> bool:
        """Whether a value in a batch is longer than the threshold; NULL never is."""
        if cell == NULL:
            return False
        if not text:
            return len(cell) > 2 * self.threshold
        if len(cell) <= self.threshold:
            return False
        return len(cell.decode("utf-8", "surrogatepass")) > self.threshold


@dataclass(frozen=True)
class Placements:
    """The user's wishes: for all, by type, and by column (SCHEMA.TABLE.COLUMN)."""

    place: str = INTERNAL
    threshold: int = _THRESHOLD
    mixed: bool = False
    places: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, int] = field(default_factory=dict)

    def rule(self, schema: Schema, table: Table, column: Column, shape: Shape) -> Rule | None:
        """Return where a column's values go; None if they are always inline."""
        name = f"{schema.name}.{table.name}.{column.name}"
        types = [leaf.type for leaf in leaves(shape)]
        named = [name, *dict.fromkeys(type_.name for type_ in types)]
        asked = any(n in self.places or n in self.thresholds for n in named)
        if not any(t.large or (asked and t.kind in _STORABLE) for t in types):
            return None
        place = next((self.places[n] for n in named if n in self.places), self.place)
        threshold = next((self.thresholds[n] for n in named if n in self.thresholds), None)
        linked = any(t.kind is Kind.DATALINK for t in types)
        if linked and place == INLINE:
            place = INTERNAL  # what a link leads to is a file
        threshold = self.threshold if threshold is None else threshold
        return Rule(place, threshold, self.mixed, stored=linked or threshold == 0)

    def check(self, database: Database) -> None:
        """Refuse names that are neither a type nor a column."""
        known = {f"{s.name}.{t.name}.{c.name}" for s, t in database.tables() for c in t.columns}
        for name in {**self.places, **self.thresholds}:
            if name not in known and not _is_type(name):
                raise UsageError(
                    f"{name} is neither a type such as BLOB nor a column SCHEMA.TABLE.COLUMN "
                    "of this database"
                )
        for place in (self.place, *self.places.values()):
            if place not in PLACES:
                raise UsageError(f"{place!r} is not a place; choose {', '.join(PLACES)}")

    def inline_limit(self) -> int:
        """How long a value may be that a source hands over with its row.

        Short values are quicker that way even if they go into files.
        """
        limits = [self.threshold, *self.thresholds.values()]
        if INTERNAL in (self.place, *self.places.values()):
            return max(_THRESHOLD, *limits)
        if EXTERNAL in (self.place, *self.places.values()):
            return max(_THRESHOLD, *limits)
        return 1 << 31


def leaves(shape: Shape) -> Iterator[Leaf]:
    """Yield the predefined types that a shape is made of."""
    if isinstance(shape, Leaf):
        yield shape
        return
    for part in (shape.element,) if isinstance(shape, Array) else shape.parts:
        yield from leaves(part)


def _is_type(name: str) -> bool:
    try:
        return PredefinedType(name).kind in _STORABLE
    except KeyError:
        return False
