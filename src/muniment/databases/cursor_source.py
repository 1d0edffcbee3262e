"""What sources share whose rows come from a driver's cursor, value by value.

For products without a bulk path of their own: correct and bounded in memory, not fast.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from muniment.databases.pyvalues import text_of
from muniment.databases.spool import Spool
from muniment.errors import Unfit
from muniment.sql.batch import CELL, NULL, ROW, Batch, cell_bytes
from muniment.sql.model import Array, Column, Database, Leaf, Schema, Table, shape_of
from muniment.sql.selection import Selection
from muniment.sql.types import Kind, PredefinedType

__all__ = ["CursorSource"]

_BATCH = 1 << 16  # bytes, roughly
_LONGEST = 60  # characters of a value in a message


class CursorSource(ABC):
    """A source that reads Python values; a product supplies ``_database`` and ``_rows``."""

    _database: Database

    def __init__(self, selection: Selection, inline_limit: int) -> None:
        self._selection = selection
        self._spool = Spool(inline_limit)
        self.notes: list[str] = []

    def close(self) -> None:
        """Forget the large values that wait."""
        self._spool.close()

    def describe(self) -> Database:
        """Return the definitions."""
        return self._database

    def opener(self) -> None:
        """Only this process sees the one state of the database."""
        return

    def parts(self, schema: Schema, table: Table) -> Iterator[None]:
        """Yield the whole table."""
        yield None

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        """Open a large value, which waits in a file."""
        return self._spool.open(reference)

    @abstractmethod
    def _rows(self, schema: Schema, table: Table) -> Iterable[Sequence[Any]]:
        """Yield the rows of a table as the driver gives them."""

    def batches(self, schema: Schema, table: Table, part: None) -> Iterator[Batch]:
        """Yield the rows of a table."""
        cells = [self._cell_maker(schema, table, column) for column in table.columns]
        lines: list[bytes] = []
        size = number = 0
        for number, row in enumerate(self._rows(schema, table), 1):
            line = CELL.join(
                NULL if value is None else make(value, number)
                for make, value in zip(cells, row, strict=True)
            )
            lines.append(line + ROW)
            size += len(line)
            if size >= _BATCH:
                yield Batch(b"".join(lines), len(lines))
                lines, size = [], 0
        if lines:
            yield Batch(b"".join(lines), len(lines))

    def _cell_maker(self, schema: Schema, table: Table, column: Column) -> Any:
        where = f"{schema.name}.{table.name}.{column.name}"
        shape = shape_of(self._database, schema.name, column)
        leaf = shape.element if isinstance(shape, Array) else shape
        assert isinstance(leaf, Leaf)
        type_ = leaf.type
        as_text = self._selection.wants_text(schema.name, table.name, column.name)

        def make(value: Any, number: int) -> bytes:
            if isinstance(shape, Array) and isinstance(value, list | tuple):
                parts = [self._text(column, type_, part) for part in value]
                if None not in parts:
                    return cell_bytes(list(parts))
            text = any_text(value) if as_text else self._text(column, type_, value)
            if text is None or isinstance(shape, Array):
                shown = repr(value)
                shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
                raise Unfit(where, number, shown, f"of the type {column.type_original or type_}")
            return self._placed(type_, text)

        return make

    def _text(self, column: Column, type_: PredefinedType, value: Any) -> str | None:
        """Return a value as text, or None if its column cannot hold it; products may know more."""
        return text_of(type_, value)

    def _placed(self, type_: PredefinedType, text: str) -> bytes:
        cell = text.encode("utf-8", "surrogatepass")
        if not type_.large:
            return cell
        raw = bytes.fromhex(text) if type_.kind is Kind.BINARY else cell
        return self._spool.place(raw) or cell


def any_text(value: Any) -> str:
    """Return any value as text, for columns that are archived as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"X'{bytes(value).hex().upper()}'"
    return str(value)
