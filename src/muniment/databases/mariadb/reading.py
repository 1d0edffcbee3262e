"""How rows become batches: the query for a part of a table, and what its lines become."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from muniment.databases.mariadb.catalogue import ColumnFacts, Relation
from muniment.databases.mariadb.connection import quote
from muniment.databases.mariadb.values import cell_sql
from muniment.databases.mariadb.wire import cells
from muniment.errors import DatabaseError, Unfit
from muniment.sql.arrow import text_column
from muniment.sql.batch import CELL, NULL, ROW, Batch, cells_of
from muniment.sql.lines import ODD, LineCheck
from muniment.sql.model import Column, Schema, Table
from muniment.sql.selection import Selection
from muniment.sql.types import Kind, PredefinedType

__all__ = ["NUMERIC", "Part", "ReadOptions", "Reading", "predefined"]

NUMERIC = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal")
Part = tuple[int, int] | None


@dataclass(frozen=True)
class ReadOptions:
    """What holds for all tables: the longest inline value, and the server's longest packet."""

    selection: Selection
    checked: LineCheck
    limit: int
    packet: int


class Reading:
    """How one part of a table is read, and what its lines become."""

    def __init__(
        self, options: ReadOptions, relation: Relation, schema: Schema, table: Table, part: Part
    ) -> None:
        self._options, self._schema, self._table = options, schema, table
        self._relation = relation
        self._facts = [self._relation.facts[c.name] for c in table.columns]
        large = [k for k, c in enumerate(table.columns) if predefined(c).large]
        # Without a key nothing finds a large value again, and joined rows have a limit.
        room = 4 * options.limit * len(large) < options.packet
        self.wide = bool(large) and not (self._relation.key and room)
        self._singles = [
            k for k, f in enumerate(self._facts) if f.native and f.native.name == "float"
            and predefined(table.columns[k]).kind is Kind.FLOAT
        ]  # fmt: skip
        self.sql = f"SELECT {self._columns()} FROM {self._relation.sql}{self._rest(part)}"

    @property
    def plain(self) -> bool:
        """Whether the server joins rows to what the archive has."""
        return not (self.wide or self._singles)

    def batch(self, lines: list[bytes], done: int) -> Batch:
        """Return a batch of the lines; ``done`` rows came before them."""
        if self.wide:
            lines = [self._joined(payload) for payload in lines]
        data = ROW.join([*lines, b""])
        batch = self._options.checked(data, len(lines), len(self._facts))
        if batch is None:
            raise self._unfit(lines, done)
        return self._with_singles(batch) if self._singles else batch

    def _rest(self, part: Part) -> str:
        conditions = [f"({self._relation.where})"] if self._relation.where else []
        if part is not None:
            key = quote(self._relation.range)
            conditions.append(f"{key} BETWEEN {part[0]} AND {part[1]}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return where + (f" ORDER BY {self._relation.order}" if self._relation.order else "")

    def _columns(self) -> str:
        columns = [self._cell(k, c) for k, c in enumerate(self._table.columns)]
        return ", ".join(columns) if self.wide else f"CONCAT_WS(x'FF',{','.join(columns)})"

    def _cell(self, k: int, column: Column) -> str:
        facts, type_ = self._facts[k], predefined(column)
        as_text = self._options.selection.wants_text(
            self._schema.name, self._table.name, column.name
        )
        text, exact = cell_sql(column.name, facts.native, type_, facts.charset, as_text)
        name = quote(column.name)
        if self.wide and type_.kind is Kind.BINARY and not as_text:
            return name
        if exact:
            odd = f"CONCAT({_hex(ODD)},HEX({name}))"
            text = f"IF({name} IS NULL,NULL,IF({exact},{text},{odd}))"
        if type_.large and not self.wide:
            reference = f"CONCAT({_hex(self._options.checked.ref)},{self._key(k)})"
            text = f"IF(OCTET_LENGTH({name})>{self._options.limit},{reference},{text})"
        if self.wide:
            return text
        # As bytes, so that nothing is converted to another character set or type on the way.
        if column.nullable is False and text == name and _is_plain(facts):
            return text
        text = text if text.startswith("BINARY ") else f"BINARY ({text})"
        if column.nullable is False:
            return text
        return f"IFNULL({text},{_hex(self._options.checked.null)})"

    def _key(self, k: int) -> str:
        """SQL for what finds the row of a large value again."""
        texts = []
        for name in self._relation.key:
            facts = self._relation.facts[name]
            numeric = facts.native is not None and facts.native.name in NUMERIC
            unicode = f"CONVERT({quote(name)} USING utf8mb4)" if facts.charset else quote(name)
            texts.append(f"':',{quote(name) if numeric else f'HEX({unicode})'}")
        return f"'{k}',{','.join(texts)}"

    def _joined(self, payload: bytes) -> bytes:
        """A row whose cells came one by one, as the server would have joined it."""
        found = []
        for cell, column in zip(cells(payload), self._table.columns, strict=True):
            if cell is None:
                found.append(self._options.checked.null)
            elif predefined(column).kind is Kind.BINARY:
                found.append(cell.hex().upper().encode())
            else:
                found.append(cell)
        return CELL.join(found)

    def _with_singles(self, batch: Batch) -> Batch:
        """The server has no short text for single precision that reads back to the same bits."""
        width, all_cells = len(self._facts), cells_of(batch)
        for k in self._singles:
            singles = text_column(all_cells[k::width]).cast(pa.float64()).cast(pa.float32())
            all_cells[k::width] = [
                NULL if text is None else text.encode()
                for text in singles.cast(pa.string()).to_pylist()
            ]
        rows = zip(*[iter(all_cells)] * width, strict=True)
        return Batch(b"".join([CELL.join(row) + ROW for row in rows]), batch.rows)

    def _unfit(self, lines: list[bytes], done: int) -> Exception:
        """Find the value that has no exact text."""
        width = len(self._facts)
        where = f"{self._schema.name}.{self._table.name}"
        for row, line in enumerate(lines, done + 1):
            found = line.split(CELL)
            for column, facts, cell in zip(self._table.columns, self._facts, found, strict=False):
                place = f"{where}.{column.name}"
                if cell.startswith(ODD):
                    wanted = f"text in {facts.charset}" if facts.charset else "a shape with a WKT"
                    return Unfit(place, row, f"the byte string X'{cell[1:41].decode()}'", wanted)
                if cell.startswith((self._options.checked.null, self._options.checked.ref)):
                    continue
                if not _is_text(cell) or ROW in cell:
                    return Unfit(place, row, f"the byte string {cell[:40]!r}", "text in Unicode")
            if len(found) != width:
                return Unfit(
                    f"{where}.{self._table.columns[0].name}",
                    row,
                    "a value with the byte FF",
                    "text in Unicode",
                )
        return DatabaseError(f"{where}: some of the rows after row {done} cannot be read exactly")


def _is_text(cell: bytes) -> bool:
    try:
        cell.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def predefined(column: Column) -> PredefinedType:
    assert isinstance(column.type, PredefinedType)
    return column.type


def _is_plain(facts: ColumnFacts) -> bool:
    """Whether the server joins a value to bytes without any conversion."""
    return facts.native is not None and facts.native.name in (*NUMERIC, "date", "time", "double")


def _hex(data: bytes) -> str:
    return f"x'{data.hex()}'"
