"""Names that people choose by: nothing is left out, or taken, in silence."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.errors import UsageError
from muniment.sql.chosen import meant
from muniment.sql.model import Column, Database, Schema, Table, View
from muniment.sql.selection import Selection
from muniment.sql.types import PredefinedType

_TYPE = PredefinedType("INTEGER")
_COLUMNS = (Column("id", _TYPE), Column("girth_cm", _TYPE))
_TABLES = tuple(Table(name, "", _COLUMNS) for name in ("tree", "street", "odd[1]"))
_VIEWS = (View("overview", _COLUMNS), View("totals", (Column("sum", _TYPE),)))
_DATABASE = Database("d", schemas=(Schema("main", "", tables=_TABLES, views=_VIEWS),))


def taken(left: list[tuple[str, str]] | None = None, **choices: Any) -> list[str]:
    selection = Selection(**choices)
    selection.check(_DATABASE, [("main", view.name) for view in _VIEWS], left or [])
    return [table.name for _, table in selection.prune(_DATABASE).tables()]


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"exclude": ("tre",)}, "no table matches 'tre'; did you mean 'main.tree'?"),
        ({"exclude": ("TREE",)}, "no table matches 'TREE'; did you mean 'main.tree'?"),
        ({"exclude": ("mian.tree",)}, "no table matches 'mian.tree'; did you mean 'main.tree'?"),
        ({"exclude": ("*_old",)}, "no table matches '*_old'; there are: main.tree, main.street, "),
        ({"exclude": ("overview",)}, "'overview' is a view and no table; only tables can be excl"),
        ({"tables": ("overview",)}, "'overview' is a view and no table; --view archives the rows"),
        ({"tables": ("stret",)}, "no table matches 'stret'; did you mean 'main.street'?"),
        ({"where": {"Tree": "1"}}, "no table matches 'Tree'; did you mean 'main.tree'?"),
        ({"order": {"": "1"}}, "no table matches ''; there are: "),
        ({"views": ("tree",)}, "no view matches 'tree'; there are: main.overview, main.totals"),
        ({"views": ("Total",)}, "no view matches 'Total'; did you mean 'main.totals'?"),
        ({"schemas": ("Main",)}, "no schema matches 'Main'; did you mean 'main'?"),
        ({"schemas": ("x",)}, "no schema matches 'x'; there are: main"),
        ({"columns": {"tree": ("ID",)}}, "main.tree has no column 'ID'; did you mean 'id'?"),
        ({"columns": {"tree": ("id", "id")}}, "main.tree is given the column 'id' twice"),
        ({"as_text": ("girth_cm",)}, "no column matches 'girth_cm'; did you mean 'main.tree.girt"),
        ({"as_text": ("zzz",)}, "no column matches 'zzz'; write SCHEMA.TABLE.COLUMN"),
        ({"as_text": ("tree.gird",), "views": ("overview",)}, "no column matches 'tree.gird'; did"),
        (
            {"where": {"tree": "1", "main.tree": "2"}},
            "main.tree is given a condition twice, by 'tree' and 'main.tree'; leave one out",
        ),
        ({"order": {"t*": "1", "tree": "2"}}, "main.tree is given an order twice"),
        ({"columns": {"t*": ("id",), "tree": ("id",)}}, "main.tree is given columns twice"),
        ({"tables": ("tree",), "exclude": ("tree",)}, "--schema, --table and --exclude leave no"),
        (
            {"tables": ("closed",), "left": [("main", "closed")]},  # this user may not read it
            "no table matches 'closed'; there are: ",
        ),
        ({"exclude": ("*",)}, "--schema, --table and --exclude leave no table to archive"),
    ],
)
def test_what_means_nothing_is_told(choices: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        taken(**choices)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("choices", "names"),
    [
        ({"exclude": ("tree", "main.odd*")}, ["street"]),
        ({"exclude": ("odd[1]",)}, ["tree", "street"]),  # a name may look like a pattern
        ({"tables": ("odd[1]", "odd[1]")}, ["odd[1]"]),
        ({"tables": ("t*", "s*"), "exclude": ("street",)}, ["tree"]),
        ({"tables": ("overview",), "views": ("overview",)}, []),  # only the rows of the view
        ({"exclude": ("*",), "queries": {"q": "SELECT 1"}}, []),
        ({"exclude": ("secret",), "left": [("main", "secret")]}, ["tree", "street", "odd[1]"]),
    ],
)
def test_what_is_meant_is_taken(choices: dict[str, Any], names: list[str]) -> None:
    assert taken(**choices) == names


@pytest.mark.parametrize("pattern", ["main.tree.id", "tree.id", "*.id", "odd[1].id"])
def test_a_column_that_may_be_named_as_text_is_read_as_text(pattern: str) -> None:
    selection = Selection(as_text=(pattern,))
    selection.check(_DATABASE, [])
    assert any(selection.wants_text("main", table.name, "id") for table in _TABLES)


def test_columns_of_queries_are_not_known_beforehand() -> None:
    Selection(as_text=("q.n",), queries={"q": "SELECT 1 AS n"}).check(_DATABASE, [])


def test_a_database_without_tables_may_be_taken_whole() -> None:
    Selection().check(Database("d", schemas=(Schema("main", ""),)), [])


def test_many_names_are_not_all_listed() -> None:
    assert meant("*", [f"t{n}" for n in range(20)]).endswith("t10, t11 …")
