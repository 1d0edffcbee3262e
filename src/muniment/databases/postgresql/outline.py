"""Rows of the catalogue to parts of the model: columns, keys, triggers, and what queries return."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from muniment.databases.postgresql.catalogue import Row
from muniment.databases.postgresql.connection import Connection, quote, rows, translated
from muniment.databases.postgresql.originals import identity
from muniment.sql.model import (
    Column,
    Database,
    ForeignKey,
    Reference,
    Table,
    Trigger,
    UniqueKey,
)
from muniment.sql.original import Original, join_original
from muniment.sql.selection import Selection, view_words
from muniment.sql.types import PredefinedType

__all__ = [
    "describe_column", "describe_foreign_key", "describe_key", "describe_trigger", "index_key",
    "original", "orphan_sql", "result_columns", "twin_sql", "with_view_tables",
]  # fmt: skip

CLOB = PredefinedType("CLOB")
_MATCH = {"f": "FULL", "p": "PARTIAL", "s": "SIMPLE"}
_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
_EVENTS = ((4, "INSERT"), (8, "DELETE"), (16, "UPDATE"), (32, "TRUNCATE"))


def original(description: str | None, statements: Iterable[str]) -> str | None:
    """Return a description with statements behind it, if there are any."""
    listed = tuple(statements)
    return join_original(description, Original("PostgreSQL", listed)) if listed else description


def describe_column(row: Row) -> Column:
    description, default = row["comment"], row["expression"]
    if row["attgenerated"]:
        clause = f"GENERATED ALWAYS AS ({row['expression']})"
        stored = "STORED" if row["attgenerated"] == "s" else "VIRTUAL"
        description, default = original(description, [f"{clause} {stored}"]), None
    elif row["attidentity"]:
        description = original(description, [f"GENERATED {identity(row)} AS IDENTITY"])
    return Column(
        row["name"],
        CLOB,  # replaced once the rows were asked
        type_original=row["type"],
        nullable=not row["attnotnull"],
        default_value=default,
        description=description,
    )


def describe_key(row: Row) -> UniqueKey:
    return UniqueKey(row["name"], tuple(row["columns"]), row["comment"])


def index_key(row: Row) -> UniqueKey | None:
    """A unique index on plain columns says the same as a candidate key."""
    if row["constraint_oid"] is not None or not (row["indisunique"] and row["plain"]):
        return None
    if not row["indisvalid"]:
        return None
    return UniqueKey(row["name"], tuple(row["columns"]), row["comment"])


def describe_foreign_key(row: Row) -> ForeignKey:
    pairs = zip(row["columns"], row["referenced"], strict=True)
    return ForeignKey(
        row["name"],
        row["referenced_schema"],
        row["referenced_table"],
        tuple(Reference(column, referenced) for column, referenced in pairs),
        match_type=_MATCH[row["confmatchtype"]],
        delete_action=_ACTIONS[row["confdeltype"]],
        update_action=_ACTIONS[row["confupdtype"]],
        description=row["comment"],
    )


def twin_sql(row: Row, key: UniqueKey, primary: bool) -> str:
    """The query for rows of a table and its heirs with one key; NULL is none, or no primary one."""
    place, columns = quote(row["schema"], row["name"]), [quote(name) for name in key.columns]
    complete = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    twins = f"SELECT 1 FROM {place} WHERE {complete} GROUP BY {', '.join(columns)}"
    sql = f"(SELECT 1 FROM {place} WHERE NOT ({complete}) LIMIT 1) UNION ALL " if primary else ""
    return f"{sql}({twins} HAVING count(*) > 1 LIMIT 1)"


def orphan_sql(row: Row, key: ForeignKey) -> str:
    """The query for a row that refers to none, by the text of its values."""
    there = " AND ".join(
        f"p.{quote(r.referenced)}::text = c.{quote(r.column)}::text" for r in key.references
    )
    refers = " AND ".join(f"c.{quote(r.column)} IS NOT NULL" for r in key.references)
    parent = quote(key.referenced_schema, key.referenced_table)
    return (
        f"SELECT 1 FROM {quote(row['schema'], row['name'])} c"
        f" WHERE {refers} AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE {there}) LIMIT 1"
    )


def describe_trigger(row: Row) -> Trigger:
    time = "INSTEAD OF" if row["bits"] & 64 else "BEFORE" if row["bits"] & 2 else "AFTER"
    aliases = [
        f"{which} TABLE AS {quote(name)}"
        for which, name in (("OLD", row["old_table"]), ("NEW", row["new_table"]))
        if name
    ]
    return Trigger(
        row["name"],
        time,
        " OR ".join(word for bit, word in _EVENTS if row["bits"] & bit),
        row["definition"],
        alias_list=" ".join(aliases) or None,
        description=row["comment"],
    )


def with_view_tables(database: Database, whole: Database, selection: Selection) -> Database:
    """Add the selected views as tables, and take them out of the views."""
    schemas = []
    for schema in database.schemas:
        chosen = [v for v in schema.views if selection.takes_view(schema.name, v.name)]
        tables = tuple(Table(v.name, "", v.columns, description=view_words(v)) for v in chosen)
        views = selection.other_views(schema)
        schemas.append(replace(schema, tables=schema.tables + tables, views=views))
    return replace(database, schemas=tuple(schemas))


def result_columns(connection: Connection, relation: str) -> list[Row]:
    """Describe the columns of a query as the catalogue describes those of a table."""
    with translated("the query"):
        cursor = connection.execute(f"SELECT * FROM {relation} LIMIT 0".encode())
    result = cursor.pgresult
    assert result is not None
    found = []
    for number, column in enumerate(cursor.description or ()):
        oid, modifier = column.type_code, result.fmod(number)
        (row,) = rows(connection, f"SELECT format_type({oid}, {modifier}) AS type")
        found.append(
            {
                "name": column.name,
                "type_id": oid,
                "modifier": modifier,
                "type": row["type"],
                "comment": None,
                "expression": None,
                "attgenerated": "",
                "attidentity": "",
                "attnotnull": False,
            }
        )
    return found
