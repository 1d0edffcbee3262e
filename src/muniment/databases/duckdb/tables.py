"""The tables of a DuckDB file in the making, and the SQL to make and to fill them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

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
    "Key", "NewTable", "body_sql", "breaking_sql", "columns_sql", "differing_sql",
    "key_columns", "key_sql", "keyed_body_sql", "kind_of", "names_sql", "nearest_type", "needs",
    "only_foreign_key", "refers_to", "select_sql", "unique_keys", "waiting_sql", "without_key",
]  # fmt: skip

Key = ForeignKey | UniqueKey
_MANY_ROWS = 200_000


@dataclass(frozen=True)
class NewTable:
    """A table on its way: where its rows go now, and what its columns are.

    ``table`` loses the keys that turn out to be impossible.
    """

    schema: Schema
    table: Table
    ducks: tuple[DuckType, ...]
    shapes: tuple[Shape, ...]
    checks: tuple[str, ...] = ()
    defaults: dict[str, str] = field(default_factory=dict)
    collations: dict[str, str] = field(default_factory=dict)
    generated: dict[str, str] = field(default_factory=dict)  # columns and their expressions
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
    def filled(self) -> list[str]:
        """The names of the columns that take values: DuckDB computes the others."""
        return [column.name for column in self.table.columns if column.name not in self.generated]

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
        if column.name in made.generated:
            yield f"{text} GENERATED ALWAYS AS ({made.generated[column.name]}\n)"
            continue
        if column.name in made.collations:
            text += f" COLLATE {made.collations[column.name]}"
        if column.name in made.defaults:
            text += f" DEFAULT ({made.defaults[column.name]})"
        yield text if column.nullable is not False else f"{text} NOT NULL"


def names_sql(names: Iterable[str]) -> str:
    return ", ".join(map(quote, names))


def keyed_body_sql(made: NewTable) -> str:
    """The columns, checks and keys of a CREATE TABLE."""
    keys: list[Key] = [*unique_keys(made), *made.table.foreign_keys]
    return ", ".join([*body_sql(made), *(key_sql(made, key) for key in keys)])


def key_sql(made: NewTable, key: Key) -> str:
    if isinstance(key, UniqueKey):
        kind = "PRIMARY KEY" if key == made.table.primary_key else "UNIQUE"
        return f"{kind} ({names_sql(key.columns)})"
    home = f"{quote(key.referenced_schema)}.{quote(key.referenced_table)}"
    columns = names_sql(reference.column for reference in key.references)
    referenced = names_sql(reference.referenced for reference in key.references)
    return f"FOREIGN KEY ({columns}) REFERENCES {home} ({referenced})"


def kind_of(made: NewTable, key: Key) -> str:
    """What people call a key of this kind."""
    if isinstance(key, ForeignKey):
        return "foreign key"
    return "primary key" if key == made.table.primary_key else "candidate key"


def unique_keys(made: NewTable) -> list[UniqueKey]:
    table = made.table
    return [*([table.primary_key] if table.primary_key else []), *table.candidate_keys]


def key_columns(table: Table) -> set[str]:
    """The columns that any key of a table names."""
    unique = [key for key in (table.primary_key, *table.candidate_keys) if key]
    foreign = {reference.column for key in table.foreign_keys for reference in key.references}
    return foreign.union(*(key.columns for key in unique))


def without_key(made: NewTable, key: Key) -> NewTable:
    """Return the table as if it never had a key."""
    table = made.table
    return replace(
        made,
        table=replace(
            table,
            primary_key=None if key == table.primary_key else table.primary_key,
            candidate_keys=tuple(each for each in table.candidate_keys if each != key),
            foreign_keys=tuple(each for each in table.foreign_keys if each != key),
        ),
    )


def only_foreign_key(made: NewTable, key: ForeignKey) -> NewTable:
    """Return the table with one foreign key of its own beside its unique keys."""
    return replace(made, table=replace(made.table, foreign_keys=(key,)))


def breaking_sql(made: NewTable, key: Key) -> str:
    """A query for the number of rows that break a key."""
    if isinstance(key, UniqueKey):
        columns = names_sql(key.columns)
        known = _all(f"{quote(column)} IS NOT NULL" for column in key.columns)
        twice = f"SELECT count(*) AS n FROM {made.place} WHERE {known} GROUP BY {columns}"
        return f"SELECT coalesce(sum(n), 0)::BIGINT FROM ({twice}) WHERE n > 1"
    known = _all(f"s.{quote(r.column)} IS NOT NULL" for r in key.references)
    there = _all(f"p.{quote(r.referenced)} = s.{quote(r.column)}" for r in key.references)
    home = f"{quote(key.referenced_schema)}.{quote(key.referenced_table)}"
    found = f"EXISTS (SELECT 1 FROM {home} AS p WHERE {there})"
    return f"SELECT count(*) FROM {made.place} AS s WHERE {known} AND NOT {found}"


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(conditions)


def waiting_sql(made: NewTable) -> str:
    """The condition for staged rows that can go in now, for a table that refers to itself."""
    keys = made.table.foreign_keys
    own = [key for key in keys if (key.referenced_schema, key.referenced_table) == made.name]
    conditions = []
    for key in own:
        unset = " OR ".join(f"s.{quote(r.column)} IS NULL" for r in key.references)
        there = _all(f"p.{quote(r.referenced)} = s.{quote(r.column)}" for r in key.references)
        conditions.append(f"({unset} OR EXISTS (SELECT 1 FROM {made.place} AS p WHERE {there}))")
    if own:
        same = _all(
            f"p.{quote(r.referenced)} IS NOT DISTINCT FROM s.{quote(r.referenced)}"
            for r in own[0].references
        )
        conditions.append(f"NOT EXISTS (SELECT 1 FROM {made.place} AS p WHERE {same})")
    return f"WHERE {_all(conditions)}" if conditions else ""


def needs(made: NewTable) -> set[tuple[str, str]]:
    """The tables that have to be there before this one; itself is no obstacle."""
    return refers_to(made) - {made.name}


def refers_to(made: NewTable) -> set[tuple[str, str]]:
    """The tables that its foreign keys name, itself among them."""
    return {(key.referenced_schema, key.referenced_table) for key in made.table.foreign_keys}


def select_sql(made: NewTable, rows: pa.Table) -> str:
    """A query for the values of the columns that take some."""
    values = [value for name, value in _values(made, rows) if name not in made.generated]
    return f"SELECT {', '.join(values)} FROM piece"


def differing_sql(made: NewTable, rows: pa.Table) -> str:
    """A query that says of each generated column whether DuckDB computes other values than come."""
    named = (
        f"{value}{_collated(made, name)} AS {quote(name)}" for name, value in _values(made, rows)
    )
    tests = (
        f"coalesce(bool_or(({text}\n) IS DISTINCT FROM {quote(name)}), false)"
        for name, text in made.generated.items()
    )
    return f"SELECT {', '.join(tests)} FROM (SELECT {', '.join(named)} FROM piece)"


def _collated(made: NewTable, name: str) -> str:
    return f" COLLATE {made.collations[name]}" if name in made.collations else ""


def _values(made: NewTable, rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Yield each column's name and SQL for its values."""
    for number, (column, duck) in enumerate(zip(made.table.columns, made.ducks, strict=True)):
        cell = f"c{number}"
        if not _holds_text(rows.schema.field(number).type):
            yield column.name, f"CAST({cell} AS {duck})"
        else:
            where = f"{made.where}.{column.name}"
            yield column.name, value_sql(duck, made.shapes[number], cell, where)


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
