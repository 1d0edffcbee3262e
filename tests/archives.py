"""Archives made by hand for tests: any definitions, any cells."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from muniment.siard import create_siard
from muniment.sql.batch import CELL, REF, ROW, Batch, cell_bytes
from muniment.sql.model import Column, Database, Schema, Table
from muniment.sql.types import parse_type

__all__ = ["column", "make_archive", "one_table"]


def column(name: str, type_text: str = "VARCHAR(1000)", **more: Any) -> Column:
    return Column(name, parse_type(type_text), nullable=True, **more)


def one_table(
    name: str, columns: tuple[Column, ...], schema: str = "main", **more: Any
) -> Database:
    table = Table(name, "table0", columns)
    return Database("test", schemas=(Schema(schema, "schema0", tables=(table,)),), **more)


def make_archive(
    path: Path, database: Database, rows: dict[tuple[str, str], list[list[Any]]]
) -> Path:
    """Write an archive; bytes as a cell become a large object in a file of its own."""
    objects: list[bytes] = []

    def cell(value: Any) -> bytes:
        if isinstance(value, bytes):
            objects.append(value)
            return REF + str(len(objects) - 1).encode()
        return cell_bytes(value)

    def open_lob(_schema: Schema, _table: Table, reference: bytes) -> BinaryIO:
        return BytesIO(objects[int(reference)])

    with create_siard(path, date(2026, 11, 15)) as target:
        target.define(database)
        schemas = []
        for schema in database.schemas:
            tables = []
            for table in schema.tables:
                lines = rows.get((schema.name, table.name), [])
                data = b"".join(CELL.join(map(cell, line)) + ROW for line in lines)
                batches = [Batch(data, len(lines))] if lines else []
                piece = target.encoder(schema, table)(batches)
                written = target.write(schema, table, [piece], open_lob)
                tables.append(replace(table, rows=written))
            schemas.append(replace(schema, tables=tuple(tables)))
        target.finish(replace(database, schemas=tuple(schemas)))
    return path
