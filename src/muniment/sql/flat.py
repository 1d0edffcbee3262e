"""The names of tables and views where a product has no schemas: all stand side by side.

Those of one schema keep their names; those of several are called SCHEMA_TABLE. Of names that a
product would take for one another, all but the first get a number. Restoring gives these names, and
comparing finds the tables by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from string import ascii_lowercase, ascii_uppercase

from muniment.sql.model import Database

__all__ = ["FlatNames", "flat_names", "flat_notes", "has_several_schemas"]

FlatNames = Mapping[tuple[str, str], str]  # by schema and name
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)


def has_several_schemas(database: Database) -> bool:
    """Whether there are tables in more than one schema."""
    return sum(bool(schema.tables) for schema in database.schemas) > 1


def flat_names(database: Database, *, by_case: bool = False) -> FlatNames:
    """Return what tables and views are called in a product without schemas.

    The names do not depend on the order of schemas and tables. ``by_case`` is for products in which
    names may differ by case alone.
    """
    names = _plain_names(database)
    seen = str if by_case else _without_case
    taken = set(map(seen, names.values()))
    given: set[str] = set()
    for place, name in names.items():
        if seen(name) in given:
            numbered = (f"{name}_{number}" for number in count(2))
            names[place] = next(each for each in numbered if seen(each) not in taken)
            taken.add(seen(names[place]))
        given.add(seen(names[place]))
    return names


def flat_notes(database: Database, names: FlatNames) -> Iterator[str]:
    """Say what tables and views are called, if not as they were."""
    plain = _plain_names(database)
    if has_several_schemas(database):
        place = next((s.name, t.name) for s, t in database.tables())
        yield (
            "tables and views of several schemas are in one now, and are called SCHEMA_TABLE, "
            f"as {plain[place]} for {'.'.join(place)}"
        )
    for place, name in plain.items():
        if names[place] != name:
            yield f"{'.'.join(place)} is called {names[place]}, since {name} is another one's name"


def _plain_names(database: Database) -> dict[tuple[str, str], str]:
    """The names without numbers, those of tables first."""
    several = has_several_schemas(database)
    tables = sorted((schema.name, table.name) for schema, table in database.tables())
    views = sorted((schema.name, view.name) for schema in database.schemas for view in schema.views)
    return {place: "_".join(place) if several else place[1] for place in (*tables, *views)}


def _without_case(name: str) -> str:
    """What SQLite sees of a name: the case of letters beyond ASCII counts."""
    return name.translate(_SMALL)
