"""Firebird as a source: one read-only snapshot transaction, definitions from the system tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from muniment.databases.cursor_source import CursorSource
from muniment.databases.firebird.catalogue import Catalogue
from muniment.databases.firebird.connection import (
    DriverError,
    Place,
    connected,
    first_lines,
    parse_place,
)
from muniment.databases.firebird.types import shortest_single
from muniment.errors import DatabaseError, UsageError
from muniment.sql.model import Column, Schema, Table
from muniment.sql.names import quoted
from muniment.sql.selection import Selection
from muniment.sql.types import PredefinedType

__all__ = ["FirebirdSource", "open_source"]


@contextmanager
def open_source(
    url: str, selection: Selection, *, inline_limit: int = 4000
) -> Iterator[FirebirdSource]:
    """Open a database for reading."""
    if selection.queries or selection.views:
        raise UsageError("--view and --query are not for Firebird; archive the tables")
    place = parse_place(url)
    with connected(place) as connection:
        source = FirebirdSource(connection, place, selection, inline_limit)
        try:
            yield source
        finally:
            source.close()


class FirebirdSource(CursorSource):
    """A Firebird database as a source."""

    def __init__(self, connection: Any, place: Place, selection: Selection, limit: int) -> None:
        super().__init__(selection, limit)
        self._connection = connection
        catalogue = Catalogue(connection, selection)
        name = place.dsn.rpartition("/")[2].partition(".")[0] or "firebird"
        try:
            database = catalogue.read(name, place.shown, place.user)
        except DriverError as error:
            raise DatabaseError(f"{place.shown}: Firebird says: {first_lines(error)}") from error
        selection.check(database, (), catalogue.left)
        self._database = selection.prune(database)
        self.notes = catalogue.notes

    def size(self) -> int:
        """The bytes of the database's pages."""
        info = self._connection.info
        return int(info.page_size * info.pages_allocated)

    def _text(self, column: Column, type_: PredefinedType, value: Any) -> str | None:
        if type_.name == "REAL" and isinstance(value, float) and value - value == 0:
            return shortest_single(value)
        return super()._text(column, type_, value)

    def _rows(self, schema: Schema, table: Table) -> Iterator[Sequence[Any]]:
        columns = ", ".join(quoted(column.name) for column in table.columns)
        sql = f"SELECT {columns} FROM {quoted(table.name)}"
        if condition := self._selection.where_of(schema.name, table.name):
            sql += f" WHERE {condition}"
        order = self._selection.order_of(schema.name, table.name)
        if order is None and table.primary_key:
            order = ", ".join(map(quoted, table.primary_key.columns))
        if order:
            sql += f" ORDER BY {order}"
        cursor = self._connection.cursor()
        number = 0
        try:
            cursor.execute(sql)
            while (row := cursor.fetchone()) is not None:
                number += 1
                yield row
        except (DriverError, UnicodeDecodeError) as error:
            raise DatabaseError(
                f"{schema.name}.{table.name}, after row {number}: {first_lines(error)}"
            ) from error
        finally:
            cursor.close()
