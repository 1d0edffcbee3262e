"""Differences between the definitions of two databases.

Names, order, kinds of types, nullability and keys have to agree. Between two sides of the same
product, so have original types, defaults, check constraints, triggers, views, routines and what
happens to rows that refer to others. Between different products those do not count, nor do the
names of keys and the lengths of text: not every product can keep them. Two versions of a product
may name the tables of a view's columns in one place each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from muniment.errors import SiardError
from muniment.sql.flat import flat_names
from muniment.sql.model import (
    Column,
    Database,
    ForeignKey,
    Leaf,
    Schema,
    Shape,
    Table,
    View,
    shape_of,
)
from muniment.sql.names import quoted
from muniment.sql.types import NamedType

__all__ = [
    "Difference", "TablePair", "compare_definitions", "made_one", "matched_tables", "not_compared",
    "with_moved_views",
]  # fmt: skip


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

    Where each side has its tables in one schema, the schema's name does not matter. A side that has
    one may be made of another that has several: of all of them, with the names of ``sql.flat``, or
    of one. Of these ways, the one is taken that pairs most tables.
    """
    left, right = _tables(first), _tables(second)
    best: tuple[_Keys, _Keys] | None = None
    most = -1
    for keys in _ways(first, second, left, right):
        paired = len(set(keys[0].values()) & set(keys[1].values()))
        if paired > most:
            best, most = keys, paired
        if most == len(left) == len(right):
            break
    assert best is not None  # there is always one way
    others = {best[1][place]: pair for place, pair in right.items()}
    pairs = [TablePair(pair, others.pop(best[0][place], None)) for place, pair in left.items()]
    return pairs + [TablePair(None, pair) for pair in others.values()]


_Place = tuple[str, str]  # a schema and a table
_Tables = Mapping[_Place, tuple[Schema, Table]]
_Keys = Mapping[_Place, _Place]  # what tables are paired by


def _ways(
    first: Database, second: Database, left: _Tables, right: _Tables
) -> Iterator[tuple[_Keys, _Keys]]:
    """Yield the ways in which tables may be paired, the likely ones first."""
    one_left, one_right = (len({schema for schema, _ in side}) <= 1 for side in (left, right))
    if one_left and one_right:
        yield _without_schema(left), _without_schema(right)
    else:
        yield {place: place for place in left}, {place: place for place in right}
    if one_right:
        yield from ((keys, _without_schema(right)) for keys in _made_one(first, left, right))
    if one_left:
        yield from ((_without_schema(left), keys) for keys in _made_one(second, right, left))


def _without_schema(tables: _Tables) -> _Keys:
    return {place: ("", place[1]) for place in tables}


def _made_one(database: Database, tables: _Tables, others: _Tables) -> Iterator[_Keys]:
    """Yield what tables would be called in one schema: all of them, or those of one schema."""
    for by_case in (False, True):
        names = flat_names(database, by_case=by_case)
        yield {place: ("", names[place]) for place in tables}
    wanted = {name for _, name in others}
    for schema in database.schemas:
        if wanted.issubset(table.name for table in schema.tables):
            yield {place: ("", place[1]) if place[0] == schema.name else place for place in tables}


def made_one(pairs: Iterable[TablePair]) -> str | None:
    """Say so if tables of several schemas were paired with those of one."""
    for pair in pairs:
        if pair.a and pair.b and pair.a[1].name != pair.b[1].name:
            a, b = (f"{schema.name}.{table.name}" for schema, table in (pair.a, pair.b))
            sides = f"{a} is compared with {b}, and so on"
            return f"one side has the tables of several schemas in one: {sides}"
    return None


def _tables(database: Database) -> dict[tuple[str, str], tuple[Schema, Table]]:
    found: dict[tuple[str, str], tuple[Schema, Table]] = {}
    for schema, table in database.tables():
        if (schema.name, table.name) in found:
            raise SiardError(f"{database.dbname} has two tables {schema.name}.{table.name}")
        found[schema.name, table.name] = schema, table
    return found


def compare_definitions(first: Database, second: Database) -> Iterator[Difference]:
    """Yield what differs between the definitions."""
    alike = _product(first) == _product(second) is not None
    if alike:
        yield from _view_differences(first, second)
        yield from _routine_differences(first, second)
    pairs = matched_tables(first, second)
    parents = _parents(pairs)
    for pair in pairs:
        if pair.a is None or pair.b is None:
            schema, table = pair.a or pair.b or _none()
            sides = ("a table", "no such table")
            a, b = sides if pair.b is None else sides[::-1]
            yield Difference(f"{schema.name}.{table.name}", a, b)
        else:
            yield from _table_differences(first, second, pair.a, pair.b, parents)
            if alike:
                yield from _same_product_differences(pair.a[1], pair.b, parents)


_Parents = Mapping[_Place, str]  # what tables that others refer to are called, by their places


def _parents(pairs: Sequence[TablePair]) -> tuple[_Parents, _Parents]:
    """One name for the two tables of a pair: that of the second side, which differences show."""
    several = len({pair.b[0].name for pair in pairs if pair.b}) > 1
    names: tuple[dict[_Place, str], dict[_Place, str]] = {}, {}
    for pair in pairs:
        schema, table = pair.b or pair.a or _none()
        name = f"{schema.name}.{table.name}" if several else table.name
        for side, known in zip((pair.a, pair.b), names, strict=True):
            if side is not None:
                known[side[0].name, side[1].name] = name
    return names


def not_compared(first: Database, second: Database) -> str | None:
    """Say which definitions of different products were not compared, if there are any."""
    products = _product(first), _product(second)
    if products[0] == products[1] is not None:
        return None
    kinds = {kind: None for database in (first, second) for kind in _kinds_in(database)}
    if not kinds:
        return None
    names = " and ".join(sorted(name or "an unknown product" for name in products))
    return f"not compared, since {names} say such things in their own ways: {', '.join(kinds)}"


def _kinds_in(database: Database) -> Iterator[str]:
    for schema in database.schemas:
        if schema.views:
            yield "views"
        if schema.routines:
            yield "routines"
        for table in schema.tables:
            if table.check_constraints:
                yield "checks"
            if table.triggers:
                yield "triggers"
            if any(column.default_value for column in table.columns):
                yield "defaults"


def _product(database: Database) -> str | None:
    return (database.database_product or "").partition(" ")[0] or None


def _view_differences(first: Database, second: Database) -> Iterator[Difference]:
    left, right = (
        {
            v.name: " ".join((v.query_original or v.query or "").split())
            for s in d.schemas
            for v in s.views
        }
        for d in (first, second)
    )
    versions = {first.database_product, second.database_product}
    for name in sorted(left.keys() | right.keys()):
        a, b = left.get(name, "no such view"), right.get(name, "no such view")
        if a != b and not (len(versions) > 1 and _are_named_alike(a, b)):
            yield Difference(f"view {name}", a, b)


def _routine_differences(first: Database, second: Database) -> Iterator[Difference]:
    """Routines by name, since a server may number what is specific about them."""
    left, right = _routines(first), _routines(second)
    for name in sorted(left.keys() | right.keys()):
        a, b = left.get(name), right.get(name)
        if a != b:
            missing = "no such routine"
            yield Difference(f"routine {name}", a or missing, b or missing)


def _routines(database: Database) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for schema in database.schemas:
        for routine in schema.routines:
            # A sequence goes on from where it was; how far it is makes no other database.
            counts = routine.characteristic == "SEQUENCE"
            text = "a sequence" if counts else routine.source or routine.body or "a routine"
            found.setdefault(routine.name, []).append(" ".join(text.split()))
    return {name: "; ".join(sorted(texts)) for name, texts in found.items()}


_WORDS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|\S""")


def _are_named_alike(a: str, b: str) -> bool:
    """Whether two queries are the same but for tables that one of them names before columns.

    PostgreSQL does so up to version 15, and later only where a query has several tables.

    >>> _are_named_alike("SELECT t.a FROM s.t", "SELECT a FROM s.t")
    True
    >>> _are_named_alike("SELECT t.a FROM s.t", "SELECT u.a FROM s.t")
    False
    """
    left, right = _WORDS.findall(a)[::-1], _WORDS.findall(b)[::-1]
    while left and right:
        for one, other in ((left, right), (right, left)):
            if one[-2:-1] == ["."] != other[-2:-1] and one[-3:-2] == other[-1:]:
                del one[-2:]
        if left.pop() != right.pop():
            return False
    return left == right


_PLACE = re.compile(
    r"""'(?:[^']|'')*'|(?P<schema>"(?:[^"]|"")+"|\w+)\.(?P<table>"(?:[^"]|"")+"|\w+)"""
)


def with_moved_views(database: Database, names: Mapping[str, str]) -> Database:
    """Return a database with renamed schemas, by old name, as its views' queries say it now."""
    known = {(schema.name, table.name) for schema, table in database.tables()}
    known |= {(schema.name, view.name) for schema in database.schemas for view in schema.views}

    def moved(place: re.Match[str]) -> str:
        schema, table = ((place[part] or "").strip('"') for part in ("schema", "table"))
        new = names.get(schema)
        if new is None or (new, table) not in known:
            return place[0]
        return f"{new if re.fullmatch('[a-z_][a-z0-9_]*', new) else quoted(new)}.{place['table']}"

    def moved_view(view: View) -> View:
        query = view.query_original and _PLACE.sub(moved, view.query_original)
        return replace(view, query_original=query)

    schemas = (replace(s, views=tuple(map(moved_view, s.views))) for s in database.schemas)
    return replace(database, schemas=tuple(schemas))


def _original(column: Column, other: Column) -> str | None:
    """A column's original type, unless the other has only the name of a type: SIARD 2.0 does so."""
    named = isinstance(other.type, NamedType) and other.type_original is None
    return None if named else column.type_original


def _same_product_differences(
    a: Table, b: tuple[Schema, Table], parents: tuple[_Parents, _Parents]
) -> Iterator[Difference]:
    """What one product can say about a table, and another cannot always repeat."""
    schema, table = b
    where = f"{schema.name}.{table.name}"
    columns = {column.name: column for column in table.columns}
    for x in a.columns:
        y = columns.get(x.name)
        if y is None:
            continue
        for what, left, right in (
            ("original type", _original(x, y), _original(y, x)),
            ("default", x.default_value, y.default_value),
        ):
            if left != right:
                yield Difference(f"{where}.{x.name} {what}", left or "none", right or "none")
    actions = _actions(a, parents[0]), _actions(table, parents[1])
    for key in actions[0].keys() & actions[1].keys():
        if actions[0][key] != actions[1][key]:
            yield Difference(f"{where} foreign key {key}", actions[0][key], actions[1][key])
    for what, left_all, right_all in (
        ("check constraints", _check_texts(a), _check_texts(table)),
        ("triggers", _trigger_texts(a), _trigger_texts(table)),
    ):
        if left_all != right_all:
            yield Difference(
                f"{where} {what}", "; ".join(left_all) or "none", "; ".join(right_all) or "none"
            )


def _check_texts(table: Table) -> list[str]:
    return sorted(" ".join(check.condition.split()) for check in table.check_constraints)


def _trigger_texts(table: Table) -> list[str]:
    return sorted(
        " ".join(f"{t.name} {t.action_time} {t.trigger_event} {t.triggered_action}".split())
        for t in table.triggers
    )


def _none() -> tuple[Schema, Table]:
    raise AssertionError("a pair has at least one side")


def _table_differences(
    first: Database,
    second: Database,
    a: tuple[Schema, Table],
    b: tuple[Schema, Table],
    parents: tuple[_Parents, _Parents],
) -> Iterator[Difference]:
    (left_schema, left), (right_schema, right) = a, b
    where = f"{right_schema.name}.{right.name}"
    names = [c.name for c in left.columns], [c.name for c in right.columns]
    if sorted(names[0]) != sorted(names[1]):
        sides = ("a column", "no such column")
        for name in [n for n in names[0] if n not in names[1]]:
            yield Difference(f"{where}.{name}", *sides)
        for name in [n for n in names[1] if n not in names[0]]:
            yield Difference(f"{where}.{name}", *sides[::-1])
    elif names[0] != names[1]:
        yield Difference(f"{where} columns", ", ".join(names[0]), ", ".join(names[1]))
    keys = set(_key(left)) | set(_key(right))
    others = {column.name: column for column in right.columns}
    for x, y in ((x, others[x.name]) for x in left.columns if x.name in others):
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
        ("foreign keys", _foreign(left, parents[0]), _foreign(right, parents[1])),
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


def _foreign(table: Table, parents: _Parents) -> list[str]:
    return sorted(_foreign_text(key, parents) for key in table.foreign_keys)


def _foreign_text(key: ForeignKey, parents: _Parents) -> str:
    parent = parents.get((key.referenced_schema, key.referenced_table), key.referenced_table)
    columns = ", ".join(r.column for r in key.references)
    return f"{columns} to {parent} ({', '.join(r.referenced for r in key.references)})"


def _actions(table: Table, parents: _Parents) -> dict[str, str]:
    """What happens to rows that refer to others, by foreign key."""
    return {
        _foreign_text(key, parents): f"ON DELETE {_action(key.delete_action)}, "
        f"ON UPDATE {_action(key.update_action)}"
        for key in table.foreign_keys
    }


def _action(action: str | None) -> str:
    # RESTRICT differs only in the moment of the check, and products take one for the other.
    return action if action and action != "RESTRICT" else "NO ACTION"
