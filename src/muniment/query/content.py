"""The content of large objects, on demand: by key, from SQL and from a page.

A key says archive, table, column and row: ``trees/9/5/17``. In SQL, ``content(photo)`` is the whole
object as BLOB and ``content_text(photo)`` as text; both read it from the archive at that moment.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from muniment.databases.duckdb.connection import Connection
from muniment.databases.duckdb.types import quote
from muniment.errors import NotFound, QueryError
from muniment.query.index import About
from muniment.query.names import index_catalog
from muniment.siard import SiardSource
from muniment.siard.lobs.folders import Root

__all__ = ["CONTENT_LIMIT", "Contents"]

CONTENT_LIMIT = 1 << 28  # bytes of an object that a query takes


class Contents:
    """The large objects of the archives that are open."""

    def __init__(self, roots: Sequence[Root] = ()) -> None:
        self._roots = roots
        self._archives: dict[str, tuple[Path, About]] = {}
        self._sources: dict[str, SiardSource] = {}

    def add(self, name: str, path: Path, about: About) -> None:
        self._archives[name] = path, about

    @contextmanager
    def functions(self, connection: Connection) -> Iterator[None]:
        """Give SQL the two functions while the block runs."""
        lookup = connection.cursor()
        names = "muniment_content", "muniment_content_text"
        for name, text in zip(names, (False, True), strict=True):
            connection.create_function(
                name, self._function(lookup, text), ["VARCHAR"],
                "VARCHAR" if text else "BLOB", type="arrow", null_handling="special",
            )  # fmt: skip
        connection.execute("CREATE TEMP MACRO content(object) AS muniment_content(object.key)")
        connection.execute(
            "CREATE TEMP MACRO content_text(object) AS muniment_content_text(object.key)"
        )
        try:
            yield
        finally:
            # A function that is left behind would keep the driver alive beyond its end.
            for name in names:
                connection.remove_function(name)
            lookup.close()

    def open(self, connection: Connection, key: str) -> BinaryIO:
        """Open an object by its key."""
        name, table, column, row = self._parsed(key)
        place = self._archives[name][1].tables[table].place
        home = f"{quote(index_catalog(name))}.{place}"
        found = connection.execute(
            f"SELECT c{column}, c{column}_ref FROM {home} WHERE rowid = ?", [row - 1]
        ).fetchone()
        if found is None:
            raise NotFound(f"there is no row {row} for the large object {key}")
        inline, reference = found
        if reference is None:
            data = inline.encode() if isinstance(inline, str) else inline
            return io.BytesIO(data or b"")
        source = self._source(name)
        schema, archived = list(source.describe().tables())[table]
        return source.open_lob(schema, archived, reference)

    def _function(self, connection: Connection, text: bool) -> Callable[[Any], Any]:
        def read(keys: Any) -> Any:
            values = [self._whole(connection, key) for key in keys.to_pylist()]
            if not text:
                return pa.array(values, pa.binary())
            return pa.array([None if v is None else v.decode("utf-8", "replace") for v in values])

        return read

    def _whole(self, connection: Connection, key: str | None) -> bytes | None:
        if key is None:
            return None
        with self.open(connection, key) as stream:
            data = stream.read(CONTENT_LIMIT + 1)
        if len(data) > CONTENT_LIMIT:
            raise QueryError(f"the large object {key} is too long for a query; export it instead")
        return data

    def _parsed(self, key: str) -> tuple[str, int, int, int]:
        parts = key.rsplit("/", 3)
        if len(parts) != 4 or parts[0] not in self._archives:
            raise NotFound(f"{key[:80]!r} is not the key of a large object")
        if not all(part.isdecimal() and len(part) < 19 for part in parts[1:]):
            raise NotFound(f"{key[:80]!r} is not the key of a large object")
        name, table, column, row = parts[0], *map(int, parts[1:])
        tables = self._archives[name][1].tables
        if table >= len(tables) or not 1 <= column <= len(tables[table].columns):
            raise NotFound(f"{key[:80]!r} is not the key of a large object")
        if not tables[table].columns[column - 1].large:
            raise NotFound(f"{key[:80]!r} is not the key of a large object")
        return name, table, column, row

    def _source(self, name: str) -> SiardSource:
        if name not in self._sources:
            self._sources[name] = SiardSource(self._archives[name][0], self._roots)
        return self._sources[name]
