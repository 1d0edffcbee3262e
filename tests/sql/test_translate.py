"""Views of one product in the SQL of another."""

from __future__ import annotations

import apsw
import pytest

from muniment.sql.model import Column, Database, Schema, Table, View
from muniment.sql.translate import (
    NotTranslatable,
    make_in_turn,
    translated_expression,
    translated_view,
)
from muniment.sql.types import PredefinedType

COLUMNS = tuple(Column(name, PredefinedType("INTEGER")) for name in ("Id", "total"))


def world(product: str, query: str | None) -> tuple[Database, Schema, View]:
    view = View("v", (), query_original=query)
    schema = Schema("shop", "schema0", tables=(Table("Order", "table0", COLUMNS),), views=(view,))
    return Database("d", database_product=product, schemas=(schema,)), schema, view


def translated(product: str, query: str | None, target: str = "sqlite") -> str:
    database, schema, view = world(product, query)
    return translated_view(database, schema, view, target, lambda s, name: ("", f"{s}_{name}"))


@pytest.mark.parametrize(
    ("product", "query"),
    [
        (
            "PostgreSQL 15",
            "SELECT o.\"Id\"::text || 'x', now() FROM \"Order\" o WHERE o.total ILIKE 'a%'",
        ),
        (
            "MariaDB 10.11",
            "select `shop`.`Order`.`Id` AS `Id` from `shop`.`Order` where `shop`.`Order`.`total` > 1",
        ),
        ("DuckDB 1.0", 'SELECT order_.id FROM shop."order" AS order_'),
        ("SQLite 3.40", "WITH big AS (SELECT ID FROM [order]) SELECT big.id FROM big"),
        ("Microsoft SQL Server 2019", "SELECT TOP 5 [Id], ISNULL([total], 0) FROM [dbo].[Order]"),
    ],
)
def test_a_translation_runs_where_it_goes(product: str, query: str) -> None:
    db = apsw.Connection(":memory:")
    db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    db.execute('CREATE TABLE "shop_Order" ("Id", total); CREATE TABLE "dbo_Order" ("Id", total)')
    db.execute(translated(product, query)).fetchall()


def test_a_table_that_got_another_name_keeps_the_old_one_for_its_columns() -> None:
    assert translated("DuckDB", 'SELECT "Order".total FROM "Order"') == (
        'SELECT "Order"."total" FROM "shop_Order" AS "Order"'
    )


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (None, "no query"),
        ("DROP TABLE x", "not a query"),
        ("SELECT FROM WHERE (", "could not be translated"),
        ("SELECT 1; SELECT 2", "not a query"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "nested too deeply"),
        ("SELECT 1 --" + "x" * (1 << 18), "too long"),
    ],
)
def test_what_cannot_be_translated_says_why(query: str | None, reason: str) -> None:
    with pytest.raises(NotTranslatable, match=reason):
        translated("PostgreSQL 15", query)


@pytest.mark.parametrize("text", ["1, 2", "1 FROM t", "1) OR (1", "1; DROP TABLE t", ""])
def test_an_expression_is_one_expression(text: str) -> None:
    database, schema, _ = world("PostgreSQL", None)
    with pytest.raises(NotTranslatable):
        translated_expression(database, schema, text, "sqlite")


def test_an_expression_is_said_in_the_other_language() -> None:
    database, schema, _ = world("PostgreSQL", None)
    found = translated_expression(database, schema, "(TOTAL)::numeric > 0", "mysql")
    assert found == "CAST((`total`) AS DECIMAL) > 0"


def test_things_that_need_one_another_are_made_in_turn() -> None:
    needs, made = {"a": "b", "b": "c", "c": "", "x": "y"}, set()

    def attempt(thing: str, way: str) -> str | None:
        if way == "never" or (needs[thing] and needs[thing] not in made):
            return f"{thing} {way}"
        made.add(thing)
        return None

    waiting = {thing: ["never", "well"] for thing in needs}
    assert make_in_turn(waiting, attempt) == {"x": "x never"}
    assert made == {"a", "b", "c"}


def test_a_table_named_alone_may_lie_in_the_only_other_schema_that_has_it() -> None:
    tables = [Table(name, "table0", (Column("x", PredefinedType("INTEGER")),)) for name in "ab"]
    view = View("v", (), query_original="SELECT a.x FROM a, b, c")
    database = Database(
        "d", database_product="Oracle 12", schemas=(
            Schema("OE", "schema0", tables=(tables[1],), views=(view,)),
            Schema("HR", "schema1", tables=tuple(tables)),
        ),
    )  # fmt: skip
    sql = translated_view(database, database.schemas[0], view, "duckdb", lambda s, t: (s, t))
    assert '"HR"."a"' in sql and '"OE"."b"' in sql and '"OE"."c"' in sql
