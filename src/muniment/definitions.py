"""Differences between the definitions of two databases.

Names, order, kinds of types, nullability and keys have to agree. What products cannot keep does not
count: the names of keys, lengths that one of them does not know, its own spelling of types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muniment.sql.model import Column, Database, Leaf, Schema, Shape, Table, shape_of

__all__ = ["Difference", "TablePair", "compare_definitions", "matched_tables"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A place, and what each side has there."""

    where: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class TablePair:
    """A table on both sides, or on one."""

    a: tuple[Schema, Table] | None
    b: tuple[Schema, Table] | None


def matched_tables(first: Database, second: Database) -> list[TablePair]:
    """Pair the tables of two databases by schema and name.

    Where each side has its tables in one schema, the schema's name does not matter.
    """
    left, right = _tables(first), _tables(second)
    if len({s for s, _ in left}) <= 1 and len({s for s, _ in right}) <= 1:
        left = {("", name): pair for (_, name), pair in left.items()}
        right = {("", name): pair for (_, name), pair in right.items()}
    pairs = [TablePair(pair, right.get(key)) for key, pair in left.items()]
    return pairs + [TablePair(None, pair) for key, pair in right.items() if key not in left]


def _tables(database: Database) -> dict[tuple[str, str], tuple[Schema, Table]]:
    return {(s.name, t.name): (s, t) for s, t in database.tables()}


def compare_definitions(first: Database, second: Database) -> Iterator[Difference]:
    """Yield what differs between the definitions."""
    for pair in matched_tables(first, second):
        if pair.a is None or pair.b is None:
            schema, table = pair.a or pair.b or _none()
            sides = ("a table", "no such table")
            a, b = sides if pair.b is None else sides[::-1]
            yield Difference(f"{schema.name}.{table.name}", a, b)
        else:
            yield from _table_differences(first, second, pair.a, pair.b)


def _none() -> tuple[Schema, Table]:
    raise AssertionError("a pair has at least one side")


def _table_differences(
    first: Database, second: Database, a: tuple[Schema, Table], b: tuple[Schema, Table]
) -> Iterator[Difference]:
    (left_schema, left), (right_schema, right) = a, b
    where = f"{right_schema.name}.{right.name}"
    names = [c.name for c in left.columns], [c.name for c in right.columns]
    if names[0] != names[1]:
        yield Difference(f"{where} columns", ", ".join(names[0]), ", ".join(names[1]))
        return
    keys = set(_key(left)) | set(_key(right))
    for x, y in zip(left.columns, right.columns, strict=True):
        place = f"{where}.{x.name}"
        kinds = _kind(first, left_schema, x), _kind(second, right_schema, y)
        if kinds[0] != kinds[1]:
            yield Difference(f"{place} type", _type_text(x), _type_text(y))
        nullable = (x.nullable is not False, y.nullable is not False)
        if nullable[0] != nullable[1] and x.name not in keys:
            yield Difference(
                f"{place} nullable", str(nullable[0]).lower(), str(nullable[1]).lower()
            )
    for what, x_keys, y_keys in (
        ("primary key", _key(left), _key(right)),
        ("candidate keys", _candidates(left), _candidates(right)),
        ("foreign keys", _foreign(left), _foreign(right)),
    ):
        if x_keys != y_keys:
            yield Difference(
                f"{where} {what}", "; ".join(x_keys) or "none", "; ".join(y_keys) or "none"
            )


def _type_text(column: Column) -> str:
    return str(column.type) if column.cardinality is None else f"{column.type} ARRAY"


def _kind(database: Database, schema: Schema, column: Column) -> object:
    return _kind_of(shape_of(database, schema.name, column))


_FAMILIES = {"decimal": "number", "integer": "number", "float": "number"}


def _kind_of(shape: Shape) -> object:
    if isinstance(shape, Leaf):
        kind = shape.type.kind.value
        return _FAMILIES.get(kind, kind)
    return type(shape).__name__


def _key(table: Table) -> list[str]:
    return list(table.primary_key.columns) if table.primary_key else []


def _candidates(table: Table) -> list[str]:
    return sorted(", ".join(key.columns) for key in table.candidate_keys)


def _foreign(table: Table) -> list[str]:
    return sorted(
        ", ".join(r.column for r in key.references)
        + f" to {key.referenced_table} ("
        + ", ".join(r.referenced for r in key.references)
        + ")"
        for key in table.foreign_keys
    )
