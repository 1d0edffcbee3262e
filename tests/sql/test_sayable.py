"""Definitions with half of a character are left out, whatever they are, and named."""

from __future__ import annotations

from muniment.sql.model import CheckConstraint, Column, Database, Schema, Table, Trigger, View
from muniment.sql.original import Original, join_original, split_original
from muniment.sql.sayable import without_unsayable
from muniment.sql.types import parse_type

HALF = "'\ud800'"


def database(text: str) -> Database:
    """A database in which this text is nearly everywhere."""
    described = join_original(f"Words {text}.", Original("SQLite", (f"CREATE {text}", "CREATE i")))
    table = Table(
        "t",
        "table0",
        (Column("a", parse_type("CLOB"), default_value=text, description=text),),
        description=described,
        check_constraints=(CheckConstraint("k", f"a <> {text}"), CheckConstraint("l", "a <> 'b'")),
        triggers=(Trigger("r", "AFTER", "INSERT", triggered_action=text),),
    )
    view = View("v", (Column("a", parse_type("CLOB")),), query_original=f"SELECT {text} AS a")
    return Database("d", schemas=(Schema("s", "schema0", text, tables=(table,), views=(view,)),))


def test_what_cannot_be_said_is_left_out_and_named() -> None:
    kept, left = without_unsayable(database(HALF))
    assert {(item.kind, item.name) for item in left} == {
        ("default", "a of s.t"),
        ("check constraint", "k of s.t"),
        ("trigger", "r of s.t"),
        ("view", "v of s"),
    }
    (schema,) = kept.schemas
    (table,) = schema.tables
    assert [check.name for check in table.check_constraints] == ["l"]
    assert (schema.views, table.triggers, table.columns[0].default_value) == ((), (), None)
    assert split_original(table.description) == ("Words '?'.", Original("SQLite", ("CREATE i",)))
    assert "ud800" not in repr(kept)
    for item in left:
        assert "ud800" not in repr(item)


def test_all_else_stays_as_it_is() -> None:
    for text in ("'é'", "'\U0001f600'", "7"):
        assert without_unsayable(database(text)) == (database(text), [])
