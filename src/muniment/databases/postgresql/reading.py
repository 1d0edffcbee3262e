"""The SQL by which the rows of a table are read, and its large values piece by piece."""

from __future__ import annotations

from io import RawIOBase
from typing import Any, TypeAlias

from muniment.databases.postgresql.cells import CellReader
from muniment.databases.postgresql.connection import quote
from muniment.databases.postgresql.copytext import decode_rows
from muniment.databases.postgresql.definitions import Relation
from muniment.databases.postgresql.types import Plain
from muniment.sql.batch import Batch
from muniment.sql.model import Schema, Table
from muniment.sql.selection import Selection
from muniment.sql.types import Kind

__all__ = ["CHUNK", "LargeValue", "Part", "Reading"]

Part: TypeAlias = tuple[str, int, int | None]  # a stored table, its first page, the page after

CHUNK = 32 << 20  # of a large object; PostgreSQL unpacks the whole value for each
_TEXTS = ("text", "character varying")
_ARGUMENTS = 100  # of a function
# Cheaper to spell right by the server than to take rows apart here.
_SERVED = {
    "boolean": "{}::text",
    "timestamp without time zone": "replace({}::text, ' ', 'T')",
    "timestamp with time zone": "replace(({} AT TIME ZONE 'UTC')::text, ' ', 'T')",
    "money": "{}::numeric",
    "escaped": "encode(convert_to({}, 'SQL_ASCII'), 'escape')",
}


class Reading:
    """How the rows of one table are read."""

    def __init__(
        self,
        schema: Schema,
        table: Table,
        relation: Relation,
        selection: Selection,
        inline_limit: int,
        checked: bool,
    ) -> None:
        self.where = f"{schema.name}.{table.name}"
        self.relation = relation
        self._names = [column.name for column in table.columns]
        self._nodes = [fit.node for fit in self.relation.fits]
        self._order = selection.order_of(schema.name, table.name)
        self._condition = selection.where_of(schema.name, table.name)
        self._limit = inline_limit
        self._checked = checked
        stored = bool(self.relation.leaves)
        self._large = [
            k
            for k, node in enumerate(self._nodes)
            if isinstance(node, Plain)
            and (node.base == "large object" or (stored and node.archived.large))
        ]
        self._cells = CellReader(self.where, self._names, self._nodes, bool(self._large))

    @property
    def plain(self) -> bool:
        """Whether nothing has to be done to rows."""
        return self._checked and self._cells.plain

    def batch(self, chunk: bytes) -> Batch:
        """Return the batch of some COPY text."""
        if not self._checked:
            self._cells.check_text(chunk)
        return self._cells.batch(decode_rows(chunk))

    def sql(self, part: Part | None) -> str:
        """Return the COPY statement for a part."""
        listed = ", ".join(map(self._cell, range(len(self._names))))
        if self._large:
            listed = f"{self._mark()}, {listed}"
        source = self.relation.sql
        if part is not None:
            place, start, end = part
            tests = [f"ctid >= '({start},0)'", f"ctid < '({end},0)'"]
            tests += [f"({self._condition})"] if self._condition else []
            source = f"ONLY {place} WHERE {' AND '.join(tests)}"
        order = f" ORDER BY {self._order}" if self._order else ""
        return f"COPY (SELECT {listed} FROM {source}{order}) TO STDOUT"

    def value_sql(self, k: int, home: int, row_id: str) -> str:
        """Return a query for a piece of a large value; the place of the piece is to be put in."""
        place = next(place for place, oid in self.relation.leaves if oid == home)
        value = quote(self._names[k])
        if not self._is_binary(k):
            value = f"convert_to({self._text(k)}, 'UTF8')"
        value = f"substring({value} FROM {{start}} FOR {{length}})"
        braces = place.replace("{", "{{").replace("}", "}}")
        return f"SELECT {value} AS value FROM ONLY {braces} WHERE ctid = '{row_id}'"

    def _is_binary(self, k: int) -> bool:
        node = self._nodes[k]
        return isinstance(node, Plain) and node.archived.kind is Kind.BINARY

    def _text(self, k: int) -> str:
        """A value's text as COPY writes it; a cast would cut the padding of character(n)."""
        name = quote(self._names[k])
        node = self._nodes[k]
        return name if isinstance(node, Plain) and node.base in _TEXTS else f"concat({name})"

    def _too_long(self, k: int) -> str:
        name, limit = quote(self._names[k]), self._limit
        node = self._nodes[k]
        if isinstance(node, Plain) and node.base == "large object":
            return f"length(lo_get({name}, 0, {limit + 1})) > {limit}"
        if self._is_binary(k):
            return f"octet_length({name}) > {limit}"
        # In bytes it costs nothing; the characters of the few that are left have to be counted.
        text = self._text(k)
        return f"octet_length({text}) > {limit} AND char_length({text}) > {limit}"

    def _mark(self) -> str:
        """SQL for the place of a row and its large columns, empty if it has none."""
        tests = {k: self._too_long(k) for k in self._large}
        numbers = []
        for k, test in tests.items():
            node = self._nodes[k]
            number = f"'|{k}'"
            if isinstance(node, Plain) and node.base == "large object":
                number = f"concat('|{k}=0(', {quote(self._names[k])}, ')')"
            numbers.append(f"CASE WHEN {test} THEN {number} END")
        place = "concat(tableoid, ctid)" if self.relation.leaves else "'0'"
        some = " OR ".join(f"({test})" for test in tests.values())
        return f"CASE WHEN {some} THEN {_joined([place, *numbers])} ELSE '' END"

    def _cell(self, k: int) -> str:
        name, node = quote(self._names[k]), self._nodes[k]
        value = name
        if isinstance(node, Plain):
            if node.base in _SERVED:
                value = _SERVED[node.base].format(name)
            elif node.base == "large object":
                value = f"CASE WHEN {name} <> 0 THEN lo_get({name}) END"
        return (
            f"CASE WHEN {self._too_long(k)} THEN NULL ELSE {value} END"
            if k in self._large
            else value
        )


def _joined(texts: list[str]) -> str:
    """SQL for texts one after the other, NULLs left out: a function takes no more than 100."""
    while len(texts) > 1:
        groups = (texts[start : start + _ARGUMENTS] for start in range(0, len(texts), _ARGUMENTS))
        texts = [f"concat({', '.join(group)})" for group in groups]
    return texts[0]


class LargeValue(RawIOBase):
    """A large value as a stream, fetched piece by piece."""

    def __init__(self, fetch: Any) -> None:
        self._fetch = fetch
        self._start = 0
        self._held = b""
        self._at = 0
        self._last = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._at == len(self._held) and not self._last:
            self._held, self._at = self._fetch(self._start), 0
            self._start += len(self._held)
            self._last = len(self._held) < CHUNK
        size = min(len(buffer), len(self._held) - self._at)
        buffer[:size] = self._held[self._at : self._at + size]
        self._at += size
        return size
