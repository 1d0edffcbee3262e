"""Addresses of pages. They are permanent: what an archive holds does not change.

A name stands in an address as it is. One that an address cannot hold (empty, with a slash, too
long) is replaced by its number: ``~3`` is the fourth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from muniment.errors import NotFound
from muniment.sql.model import Schema, Table
from muniment.web.site import OpenArchive

__all__ = ["Urls", "find", "slug"]

_LONGEST = 120


def slug(name: str, number: int) -> str:
    """Return what stands for a name in an address.

    >>> slug("guided walk", 3), slug("a/b", 3), slug("..", 0), slug("~x", 1)
    ('guided walk', '~3', '~0', '~1')
    """
    fits = name and len(name) <= _LONGEST and "/" not in name and name.strip(".")
    plain = fits and not name.startswith("~") and name.isprintable()
    return name if plain else f"~{number}"


def find(items: Sequence[Any], text: str, kind: str) -> tuple[int, Any]:
    """Return the number and the item that an address names."""
    if text.startswith("~") and text[1:].isdecimal() and len(text) < 10:
        number = int(text[1:])
        if number < len(items):
            return number, items[number]
    for number, item in enumerate(items):
        if getattr(item, "name", item) == text:
            return number, item
    raise NotFound(f"there is no {kind} {text[:80]!r} in this archive")


class Urls:
    """The addresses within one archive."""

    def __init__(self, archive: OpenArchive) -> None:
        self._archive = archive
        self.home = f"/a/{quote(archive.name, safe='')}"

    def page(self, *parts: str | int, **query: Any) -> str:
        """Return the address of a page below the archive's own."""
        path = "/".join([self.home, *(quote(str(part), safe="") for part in parts)])
        asked = {name: value for name, value in query.items() if value not in (None, "", ())}
        return f"{path}?{urlencode(asked, doseq=True)}" if asked else path

    def schema(self, schema: Schema) -> str:
        return self.page("s", self._schema(schema))

    def table(self, schema: Schema, table: Table, **query: Any) -> str:
        return self.page("t", *self._table(schema, table), **query)

    def cite(self, schema: Schema, table: Table) -> str:
        """Where what was chosen in a table is cited."""
        return self.page("cite", *self._table(schema, table))

    def row(self, schema: Schema, table: Table, row: int) -> str:
        return self.page("t", *self._table(schema, table), row)

    def cell(self, schema: Schema, table: Table, row: int, column: int, *more: str) -> str:
        name = slug(table.columns[column - 1].name, column - 1)
        return self.page("t", *self._table(schema, table), row, name, *more)

    def part(self, kind: str, schema: Schema, items: Sequence[Any], number: int) -> str:
        """The address of a view ("v"), routine ("r") or type of a schema."""
        return self.page(kind, self._schema(schema), slug(items[number].name, number))

    def focus(self, schema: Schema, table: Table) -> str:
        """The address of the diagram around a table."""
        return self.page("diagram", focus=self.focus_name(schema, table))

    def focus_name(self, schema: Schema, table: Table) -> str:
        """What stands for a table in the address of the diagram."""
        number = self._archive.table_number(schema, table)
        return slug(f"{schema.name}.{table.name}", number)

    def _schema(self, schema: Schema) -> str:
        return slug(schema.name, _position(self._archive.database.schemas, schema))

    def _table(self, schema: Schema, table: Table) -> tuple[str, str]:
        return self._schema(schema), slug(table.name, _position(schema.tables, table))


def _position(items: Sequence[Any], wanted: Any) -> int:
    return next(number for number, item in enumerate(items) if item is wanted)
