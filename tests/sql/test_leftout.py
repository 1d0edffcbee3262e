"""What was left out is one file of SQL that no name can break out of."""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from muniment.sql.leftout import (
    LeftOut,
    format_left_out,
    left_out_rights,
    left_out_trigger,
    left_out_view,
)
from muniment.sql.model import Database, Privilege, Role, Schema, Table, Trigger, User, View


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_name_or_reason_ends_the_comment_that_it_stands_in(name: str, reason: str) -> None:
    text = format_left_out([LeftOut("view", name, reason, "SELECT 1")], name, reason)
    statements = [line for line in text.splitlines() if line and not line.startswith("--")]
    assert statements == ["SELECT 1;"]


def test_every_statement_has_an_end() -> None:
    sqls = ["SELECT 1", "SELECT 2 -- two", "SELECT 3;", "SELECT 4\n"]
    text = format_left_out([LeftOut("view", "v", "r", sql) for sql in sqls], "a.siard", "SQLite")
    sqlite3.connect(":memory:").executescript(text)
    assert text.count(";") == 4


def test_triggers_and_views_become_whole_statements() -> None:
    table = Table("tree", "table0", ())
    schema = Schema("main", "schema0", tables=(table,))
    trigger = Trigger("t", "BEFORE", "DELETE", "BEGIN SELECT 1; END")
    assert left_out_trigger(schema, table, trigger, "no").sql == (
        'CREATE TRIGGER "t" BEFORE DELETE ON "main"."tree"\nBEGIN SELECT 1; END'
    )
    view = View("v", (), query_original="SELECT 1")
    assert left_out_view(schema, view, "no").sql == 'CREATE VIEW "main"."v" AS\nSELECT 1'
    whole = View("v", (), query_original="create view v as select 1")
    assert left_out_view(schema, whole, "no").sql == "create view v as select 1"


def test_users_roles_and_privileges_are_named() -> None:
    database = Database(
        "d",
        users=(User("ada"),),
        roles=(Role("clerk", "ada"),),
        privileges=(Privilege("SELECT", "ada", "clerk", "TABLE tree"),),
    )
    found = [str(each) for each in left_out_rights(database, "none here")]
    assert found == [
        "user ada: none here",
        "role clerk: none here",
        "privilege SELECT ON TABLE tree TO clerk: none here",
    ]
