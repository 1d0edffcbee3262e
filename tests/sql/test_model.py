"""Shapes of cells: names looked up, and attacks by definition refused."""

from __future__ import annotations

import pytest

from muniment.errors import NotFound
from muniment.sql.model import (
    Array,
    Attribute,
    Column,
    Database,
    Leaf,
    Schema,
    Struct,
    UserType,
    shape_of,
)
from muniment.sql.types import NamedType, parse_type

INTEGER = parse_type("INTEGER")


def database(*types: UserType) -> Database:
    return Database("d", schemas=(Schema("s", "schema0", types=types),))


def test_distinct_types_are_their_base_and_udts_their_attributes() -> None:
    point = UserType("point", "udt", attributes=(Attribute("x", NamedType("", "metre")),))
    metre = UserType("metre", "distinct", base=INTEGER)
    column = Column("c", NamedType("s", "point"), cardinality=3)
    assert shape_of(database(point, metre), "s", column) == Array(
        Struct((Leaf(INTEGER),), ("x",)), 3
    )


def test_a_subtype_has_the_attributes_of_its_supertype_first() -> None:
    base = UserType("base", "udt", attributes=(Attribute("a", INTEGER),))
    sub = UserType("sub", "udt", under_type="base", attributes=(Attribute("b", INTEGER),))
    shape = shape_of(database(base, sub), "s", Column("c", NamedType("", "sub")))
    assert isinstance(shape, Struct) and shape.names == ("a", "b")


def test_a_type_that_contains_itself_is_refused() -> None:
    endless = UserType("t", "udt", attributes=(Attribute("a", NamedType("", "t")),))
    with pytest.raises(NotFound, match="contains itself"):
        shape_of(database(endless), "s", Column("c", NamedType("", "t")))


def test_types_that_grow_beyond_reason_are_refused() -> None:
    types = [
        UserType(
            f"t{n}",
            "udt",
            attributes=tuple(Attribute(f"a{k}", NamedType("", f"t{n + 1}")) for k in range(10)),
        )
        for n in range(12)
    ]
    types.append(UserType("t12", "udt", attributes=(Attribute("a", INTEGER),)))
    with pytest.raises(NotFound, match="more than"):
        shape_of(database(*types), "s", Column("c", NamedType("", "t0")))


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(NotFound, match="nowhere"):
        shape_of(database(), "s", Column("c", NamedType("", "nowhere")))
