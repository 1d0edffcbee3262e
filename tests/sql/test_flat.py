"""Names of tables where there are no schemas."""

from __future__ import annotations

from dataclasses import replace

from archives import column
from muniment.sql.flat import flat_names, flat_notes
from muniment.sql.model import Database, Schema, Table, View


def database(**schemas: str) -> Database:
    """Schemas with the tables that are named, and the views whose names have an asterisk."""
    made = []
    for number, (schema, names) in enumerate(schemas.items()):
        views = tuple(View(n.strip("*"), ()) for n in names.split() if "*" in n)
        tables = tuple(Table(n, "", (column("c"),)) for n in names.split() if "*" not in n)
        made.append(Schema(schema, f"schema{number}", tables=tables, views=views))
    return Database("test", schemas=tuple(made))


def test_tables_of_one_schema_keep_their_names() -> None:
    names = flat_names(database(a="x y v*", b=""))
    assert list(names.values()) == ["x", "y", "v"]
    assert list(flat_notes(database(a="x y v*", b=""), names)) == []


def test_tables_of_several_schemas_have_its_name_before_theirs() -> None:
    several = database(a="x v*", b="x")
    names = flat_names(several)
    assert names == {("a", "x"): "a_x", ("b", "x"): "b_x", ("a", "v"): "a_v"}
    assert list(flat_notes(several, names)) == [
        "tables and views of several schemas are in one now, and are called SCHEMA_TABLE, "
        "as a_x for a.x"
    ]


def test_names_that_would_be_the_same_get_numbers_in_any_order() -> None:
    clash = database(a="b_c", a_b="c c_2 C", z="x")
    turned = replace(clash, schemas=clash.schemas[::-1])
    names = flat_names(clash)
    assert names == flat_names(turned)
    assert names == {
        ("a", "b_c"): "a_b_c",
        ("a_b", "C"): "a_b_C_3",
        ("a_b", "c"): "a_b_c_4",
        ("a_b", "c_2"): "a_b_c_2",
        ("z", "x"): "z_x",
    }
    assert list(flat_notes(clash, names))[1:] == [
        "a_b.C is called a_b_C_3, since a_b_C is another one's name",
        "a_b.c is called a_b_c_4, since a_b_c is another one's name",
    ]


def test_case_counts_where_a_product_says_so() -> None:
    both = database(a="T t Ä ä")
    assert sorted(flat_names(both, by_case=True).values()) == ["T", "t", "Ä", "ä"]
    assert sorted(flat_names(both).values()) == ["T", "t_2", "Ä", "ä"]
