"""A small database that every product can hold, with the values that break careless code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from io import BytesIO
from typing import Any, BinaryIO

from muniment.sql.batch import CELL, REF, ROW, Batch, Cell, cell_bytes, cell_value, rows_of
from muniment.sql.model import (
    Attribute,
    CheckConstraint,
    Column,
    Database,
    ForeignKey,
    Leaf,
    Reference,
    Schema,
    Shape,
    Table,
    UniqueKey,
    UserType,
    shape_of,
)
from muniment.sql.stores import Again, Source, Target
from muniment.sql.types import Kind, NamedType, parse_type

__all__ = [
    "DATABASE", "NESTED", "NESTED_ROWS", "ROWS", "batches", "copy", "open_lob", "read", "values",
]  # fmt: skip


class Lob(bytes):
    """A cell that the sample hands over as a REF."""


LONG_TEXT = ("Zürich ist schön. 日本語 🎵 \n" * 700).encode()
LONG_BYTES = bytes(range(256)) * 40

NASTY = (
    "", " ", "  ", " a", "a ", "a  b", "\t", "\n", "\r\n", "a\rb", "'", '"', "`", "\\", "\\u0041",
    "\\N", "NULL", "null", "<a>&amp;</a>", "]]>", "%s {0} $1", "-- x", "; DROP TABLE people",
    "\x01\x1f", "\x7f\x80\x85\x9f", "\u2028", "e\u0301", "Zürich", "日本語", "🎵", "\U0010ffff",
    "\ufffe", "0", "1e5", "true", "2024-02-29", "x" * 3000,
)  # fmt: skip


def _column(name: str, type_text: str, nullable: bool = True) -> Column:
    return Column(name, parse_type(type_text), nullable=nullable)


PEOPLE = Table(
    "people",
    "table0",
    (
        _column("id", "INTEGER", nullable=False),
        _column("name", "VARCHAR(4000)"),
        Column("city id", parse_type("INTEGER"), nullable=True, description="Where they live."),
        _column("small", "SMALLINT"),
        _column("big", "BIGINT"),
        _column("price", "DECIMAL(12,2)"),
        _column("half", "REAL"),
        _column("ratio", "DOUBLE PRECISION"),
        _column("alive", "BOOLEAN"),
        _column("born", "DATE"),
        _column("wakes", "TIME(6)"),
        _column("seen", "TIMESTAMP(6)"),
        _column("code", "CHAR(3)"),
        _column("key", "VARBINARY(16)"),
        _column("life", "CLOB"),
        _column("photo", "BLOB"),
    ),
    description="People, some of them difficult.",
    primary_key=UniqueKey("people_pk", ("id",)),
    candidate_keys=(UniqueKey("people_big", ("big",)),),
    foreign_keys=(
        ForeignKey("people_city", "main", "cities", (Reference("city id", "id"),)),
    ),
)  # fmt: skip
CITIES = Table(
    "cities",
    "table1",
    (_column("id", "INTEGER", nullable=False), _column("Name", "VARCHAR(100)", nullable=False)),
    primary_key=UniqueKey("cities_pk", ("id",)),
    check_constraints=(CheckConstraint("cities_id", "id > 0"),),
)
EMPTY = Table("nobody's table", "table2", (_column("x", "INTEGER"), _column("select", "CLOB")))

DATABASE = Database(
    "sample",
    schemas=(Schema("main", "schema0", tables=(PEOPLE, CITIES, EMPTY)),),
)

_NULLS: list[Cell] = [None] * 13
ROWS: dict[str, list[list[Any]]] = {
    "people": [
        ["1", "Ada", "2", "-32768", "-9223372036854775808", "-1234567890.12", "0.1", "0.1", "true",
         "0001-01-01", "00:00:00", "0001-01-01T00:00:00", "abc", "00FF", "short", "00"],
        ["2", "", "1", "32767", "9223372036854775807", "0.00", "-1.5", "1e-07", "false",
         "9999-12-31", "23:59:59.999999", "9999-12-31T23:59:59.999999", "a c", "", "", ""],
        ["3", None, None, *_NULLS],
        ["4", "Lob", "1", "0", "0", "1.10", "16777216", "123456789.25", "true",
         "2024-02-29", "12:30:00.5", "2024-02-29T12:30:00.05", "äöü", "DEADBEEF",
         Lob(LONG_TEXT), Lob(LONG_BYTES)],
        *([str(n), text, None, *_NULLS] for n, text in enumerate(NASTY, 5)),
    ],
    "cities": [["1", "Bern"], ["2", "Aarau"]],
    "nobody's table": [],
}  # fmt: skip

# Arrays and UDTs, for the products that have them.
_POINT = UserType(
    "point",
    "udt",
    attributes=(
        Attribute("x", parse_type("INTEGER")),
        Attribute("label", parse_type("CLOB")),
        Attribute("tags", parse_type("VARCHAR(20)"), cardinality=3),
    ),
)
NESTED = Database(
    "nested",
    schemas=(
        Schema(
            "main",
            "schema0",
            types=(_POINT,),
            tables=(
                Table(
                    "shapes",
                    "table0",
                    (
                        _column("id", "INTEGER", nullable=False),
                        Column("spot", NamedType("", "point"), nullable=True),
                        Column("codes", parse_type("INTEGER"), nullable=True, cardinality=4),
                        Column("path", NamedType("", "point"), nullable=True, cardinality=5),
                    ),
                ),
            ),
        ),
    ),
)
NESTED_ROWS: dict[str, list[list[Any]]] = {
    "shapes": [
        ["1", ["5", "a<b", ["x", "y"]], ["1", None, "3"], [["1", "p", []], ["2", None, None]]],
        ["2", None, None, None],
        ["3", [None, None, None], [], []],
        ["4", ["-1", "", ["", None, "z"]], ["7"], [["0", "日本語", ["t"]], None, ["9", "", None]]],
    ]
}


def batches(rows: Iterable[Iterable[Any]]) -> Iterator[Batch]:
    """Yield rows three at a time; Lobs become REF cells that ``open_lob`` resolves."""
    lines = [CELL.join(map(_cell, row)) + ROW for row in rows]
    for start in range(0, len(lines), 3):
        some = lines[start : start + 3]
        yield Batch(b"".join(some), len(some))


def _cell(cell: Any) -> bytes:
    if isinstance(cell, Lob):
        return REF + (b"bytes" if cell == LONG_BYTES else b"text")
    return cell_bytes(cell)


def open_lob(schema: Schema, table: Table, reference: bytes) -> BinaryIO:
    return BytesIO({b"text": LONG_TEXT, b"bytes": LONG_BYTES}[reference])


def copy(target: Target, database: Database, rows: dict[str, list[list[Any]]]) -> dict[str, int]:
    """Write a database whose rows are Python values; return the rows written per table."""
    target.define(database)
    written = {}
    for schema, table in database.tables():
        encode = target.encoder(schema, table)
        cut = len(rows[table.name]) // 2
        parts = [p for p in (rows[table.name][:cut], rows[table.name][cut:]) if p]
        pieces = [encode(batches(part)) for part in parts]
        while table.name not in written:
            with suppress(Again):
                written[table.name] = target.write(schema, table, pieces, open_lob)
    target.finish(database)
    return written


def read(source: Source, schema: Schema, table: Table) -> list[list[Any]]:
    """Return the rows of a table as Python values; REF cells are resolved."""
    found = []
    shapes = [shape_of(source.describe(), schema.name, column) for column in table.columns]
    for part in source.parts(schema, table):
        for batch in source.batches(schema, table, part):
            for row in rows_of(batch):
                cells = row.split(CELL)
                assert len(cells) == len(table.columns)
                found.append([
                    _read_cell(source, schema, table, cell, shape)
                    for cell, shape in zip(cells, shapes, strict=True)
                ])  # fmt: skip
    return found


def _read_cell(source: Source, schema: Schema, table: Table, cell: bytes, shape: Shape) -> Any:
    if not cell.startswith(REF):
        return cell_value(cell)
    with source.open_lob(schema, table, cell[1:]) as stream:
        data = stream.read()
    assert isinstance(shape, Leaf)
    return data.hex().upper() if shape.type.kind is Kind.BINARY else data.decode()


def values(database: Database, table: Table, rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """Return rows as what their cells mean, so that 1.50 and 1.5 are the same number."""
    schema = next(s for s, t in database.tables() if t is table)
    shapes = [shape_of(database, schema.name, column) for column in table.columns]
    return [[_value(c, s) for c, s in zip(row, shapes, strict=True)] for row in rows]


def _value(cell: Any, shape: Shape) -> Any:
    if isinstance(cell, Lob):
        assert isinstance(shape, Leaf)
        return cell.hex().upper() if shape.type.kind is Kind.BINARY else cell.decode()
    if cell is None or not isinstance(shape, Leaf):
        return cell
    match shape.type.kind:
        case Kind.INTEGER:
            return int(cell)
        case Kind.DECIMAL:
            return Decimal(cell)
        case Kind.FLOAT:
            return float(cell)
        case Kind.BOOLEAN:
            return {"1": "true", "0": "false"}.get(cell, cell)
        case Kind.TIME | Kind.TIMESTAMP:
            whole, point, fraction = cell.replace(" ", "T").partition(".")
            return whole + (point + fraction).rstrip("0").rstrip(".")
        case Kind.TEXT if shape.type.name == "CHAR":
            return cell.rstrip(" ")  # some products fill up, some cut
    return cell
