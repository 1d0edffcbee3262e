"""The tables of a DuckDB file in the making, and the SQL to make and to fill them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from muniment.databases.duckdb.types import DuckType, Listing, Record, quote, scalar_for
from muniment.databases.duckdb.values import value_sql
from muniment.sql.model import (
    Array,
    Attribute,
    Column,
    Database,
    ForeignKey,
    Leaf,
    Schema,
    Shape,
    Struct,
    Table,
    UniqueKey,
)
from muniment.sql.types import NamedType

__all__ = [
    "NewTable",
    "body_sql",
    "columns_sql",
    "foreign_key_sql",
    "foreign_keys_sql",
    "names_sql",
    "nearest_type",
    "needs",
    "refers_to",
    "select_sql",
    "unique_keys",
    "unique_sql",
    "waiting_sql",
]  # fmt: skip

_MANY_ROWS = 1_000_000


@dataclass(frozen=True)
class NewTable:
    """A table on its way: where its rows go now, and what its columns are."""

    schema: Schema
    table: Table
    ducks: tuple[DuckType, ...]
    shapes: tuple[Shape, ...]
    checks: tuple[str, ...] = ()
    defaults: dict[str, str] = field(default_factory=dict)
    staged: bool = False  # whether its rows wait in another file until all others are there

    @property
    def place(self) -> str:
        return f"{quote(self.schema.name)}.{quote(self.table.name)}"

    @property
    def name(self) -> tuple[str, str]:
        return self.schema.name, self.table.name

    @property
    def where(self) -> str:
        return f"{self.schema.name}.{self.table.name}"

    @property
    def keyed(self) -> bool:
        """Whether it is made with its keys, once the tables that it refers to are there.

        Foreign keys cannot be added. Others can, which is faster, but takes memory for all rows.
        """
        many = (self.table.rows or 0) > _MANY_ROWS and bool(unique_keys(self))
        return (many or bool(self.table.foreign_keys)) and not self.staged


def body_sql(made: NewTable) -> list[str]:
    """The columns and checks of a CREATE TABLE."""
    return [*columns_sql(made), *(f"CHECK ({check}\n)" for check in made.checks)]


def columns_sql(made: NewTable) -> Iterator[str]:
    for column, duck in zip(made.table.columns, made.ducks, strict=True):
        text = f"{quote(column.name)} {duck}"
        if column.name in made.defaults:
            text += f" DEFAULT ({made.defaults[column.name]})"
        yield text if column.nullable is not False else f"{text} NOT NULL"


def names_sql(names: Iterable[str]) -> str:
    return ", ".join(map(quote, names))


def foreign_key_sql(key: ForeignKey) -> str:
    home = f"{quote(key.referenced_schema)}.{quote(key.referenced_table)}"
    columns = names_sql(reference.column for reference in key.references)
    referenced = names_sql(reference.referenced for reference in key.references)
    return f"FOREIGN KEY ({columns}) REFERENCES {home} ({referenced})"


def foreign_keys_sql(made: NewTable) -> list[str]:
    return [foreign_key_sql(key) for key in made.table.foreign_keys]


def unique_keys(made: NewTable) -> list[tuple[str, UniqueKey]]:
    """The keys of a table, with what SQL calls their kind."""
    table = made.table
    primary = [("PRIMARY KEY", table.primary_key)] if table.primary_key else []
    return [*primary, *(("UNIQUE", key) for key in table.candidate_keys)]


def unique_sql(made: NewTable) -> list[str]:
    return [f"{kind} ({names_sql(key.columns)})" for kind, key in unique_keys(made)]


def waiting_sql(made: NewTable, keys: list[ForeignKey]) -> str:
    """The condition for staged rows that can go in now, for a table that refers to itself."""
    own = [key for key in keys if (key.referenced_schema, key.referenced_table) == made.name]
    conditions = []
    for key in own:
        unset = " OR ".join(f"s.{quote(r.column)} IS NULL" for r in key.references)
        there = " AND ".join(
            f"p.{quote(r.referenced)} = s.{quote(r.column)}" for r in key.references
        )
        conditions.append(f"({unset} OR EXISTS (SELECT 1 FROM {made.place} AS p WHERE {there}))")
    if own:
        same = " AND ".join(
            f"p.{quote(r.referenced)} IS NOT DISTINCT FROM s.{quote(r.referenced)}"
            for r in own[0].references
        )
        conditions.append(f"NOT EXISTS (SELECT 1 FROM {made.place} AS p WHERE {same})")
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def needs(made: NewTable) -> set[tuple[str, str]]:
    """The tables that have to be there before this one; itself is no obstacle."""
    return refers_to(made) - {made.name}


def refers_to(made: NewTable) -> set[tuple[str, str]]:
    """The tables that its foreign keys name, itself among them."""
    return {(key.referenced_schema, key.referenced_table) for key in made.table.foreign_keys}


def select_sql(made: NewTable, rows: pa.Table) -> str:
    values = []
    for number, (column, duck) in enumerate(zip(made.table.columns, made.ducks, strict=True)):
        cell = f"c{number}"
        if not _holds_text(rows.schema.field(number).type):
            values.append(f"CAST({cell} AS {duck})")
        else:
            where = f"{made.where}.{column.name}"
            values.append(value_sql(duck, made.shapes[number], cell, where))
    return f"SELECT {', '.join(values)} FROM piece"


def _holds_text(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(arrow) or pa.types.is_nested(arrow))


def nearest_type(database: Database, home: str, part: Column | Attribute, shape: Shape) -> DuckType:
    """Return the DuckDB type for a column or attribute of any product."""
    if isinstance(shape, Array):
        return Listing(_nearest_named(database, home, part, shape.element))
    return _nearest_named(database, home, part, shape)


def _nearest_named(
    database: Database, home: str, part: Column | Attribute, shape: Shape
) -> DuckType:
    if isinstance(shape, Leaf):
        return scalar_for(shape.type)
    if not isinstance(shape, Struct) or not isinstance(part.type, NamedType):
        raise TypeError(f"{part.name} is no UDT")
    home = part.type.schema or home
    attributes = _attributes(database, home, part.type.name)
    return Record(
        tuple(
            (attribute.name, nearest_type(database, home, attribute, inner))
            for attribute, inner in zip(attributes, shape.parts, strict=True)
        )
    )


def _attributes(database: Database, home: str, name: str) -> list[Attribute]:
    """The attributes of a UDT, those of its supertypes first."""
    for user_type in database.schema(home).types:
        if user_type.name == name:
            above = user_type.under_schema or home
            inherited = (
                _attributes(database, above, user_type.under_type) if user_type.under_type else []
            )
            return [*inherited, *user_type.attributes]
    return []
