"""SQL that makes tables and types from the model, for archives of any product."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from muniment.databases.postgresql.connection import quote
from muniment.sql.model import (
    Attribute,
    Column,
    ForeignKey,
    Schema,
    Table,
    UserType,
)
from muniment.sql.types import Kind, NamedType, PredefinedType, Type

__all__ = [
    "LONGEST_NAME", "byte_length", "column_type", "constraint_name",
    "create_table_sql", "create_types", "foreign_key_sql", "is_type_text",
    "names_sql", "nearest_type", "type_sql",
]  # fmt: skip

LONGEST_NAME = 63  # bytes
_MOST_DIGITS, _LONGEST = 1000, 10_485_760
_FINEST = 6  # digits of a second
_SAFE_TYPE = re.compile(
    r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)(?:\.(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*))*'
    r"(?: [A-Za-z]+)*(?:\([A-Za-z0-9_, -]+\))?(?: [A-Za-z]+)*(?:\(\d\))?(?:\[\])*"
)


def nearest_type(type_: PredefinedType) -> str:
    """Return PostgreSQL's type for a type of SQL:2008; ``text`` where none is exact.

    >>> [nearest_type(PredefinedType(*t)) for t in (("DECIMAL", 9, 2), ("TIMESTAMP", 9), ("BLOB",))]
    ['numeric(9,2)', 'text', 'bytea']
    """
    length = type_.length
    match type_.kind:
        case Kind.INTEGER:
            return type_.name.lower()
        case Kind.DECIMAL:
            if length is None or length > _MOST_DIGITS:
                return "numeric"
            return f"numeric({length},{type_.scale or 0})"
        case Kind.FLOAT:
            return "real" if type_.name == "REAL" else "double precision"
        case Kind.BOOLEAN | Kind.DATE:
            return type_.name.lower()
        case Kind.BINARY | Kind.DATALINK:
            return "bytea"
        case Kind.TIME | Kind.TIMESTAMP:
            digits = length if length is not None else 0 if type_.kind is Kind.TIME else _FINEST
            if digits > _FINEST:
                return "text"
            name = type_.name.partition(" ")[0].lower()
            zone = " with time zone" if type_.name.endswith("ZONE") else ""
            return f"{name}({digits}){zone}" if length is not None else f"{name}{zone}"
        case Kind.INTERVAL:
            return "interval"
    if type_.name == "XML":
        return "xml"
    if length is None or length > _LONGEST or type_.large:
        return "text"
    return f"character({length})" if type_.name in ("CHAR", "NCHAR") else f"varchar({length})"


def type_sql(type_: Type, home: str) -> str:
    """Return the SQL of a type; named ones are made in their schemas before tables are."""
    if isinstance(type_, NamedType):
        return quote(type_.schema or home, type_.name)
    return nearest_type(type_)


def is_type_text(text: str) -> bool:
    """Whether a text looks like nothing but the name of a type."""
    return _SAFE_TYPE.fullmatch(text) is not None


def column_type(column: Column | Attribute, home: str, same: bool) -> str:
    """Return the original type if it comes from PostgreSQL, else the nearest."""
    if same and column.type_original and is_type_text(column.type_original):
        return column.type_original
    array = "[]" if column.cardinality is not None else ""
    return type_sql(column.type, home) + array


def create_table_sql(schema: Schema, table: Table, same: bool | set[str]) -> str:
    """Return a CREATE TABLE of columns alone; ``same`` may name those with their original type."""
    original = {c.name for c in table.columns if same} if isinstance(same, bool) else same
    columns = ", ".join(
        f"{quote(c.name)} {column_type(c, schema.name, c.name in original)}"
        + (" NOT NULL" if c.nullable is False else "")
        for c in table.columns
    )
    return f"CREATE TABLE {quote(schema.name, table.name)} ({columns})"


def create_types(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield each named type of a schema and the statement that makes it."""
    tables = {table.name for table in schema.tables}
    for user_type in schema.types:
        thing = f"{schema.name}.{user_type.name}"
        place = quote(schema.name, user_type.name)
        if user_type.base is not None:
            yield thing, f"CREATE DOMAIN {place} AS {nearest_type(user_type.base)}"
        elif user_type.name not in tables:
            yield thing, f"CREATE TYPE {place} AS ({_attributes(schema, user_type)})"


def _attributes(schema: Schema, user_type: UserType) -> str:
    return ", ".join(
        f"{quote(a.name)} {column_type(a, schema.name, False)}" for a in user_type.attributes
    )


def byte_length(name: str) -> int:
    """The length that PostgreSQL limits."""
    return len(name.encode())


def constraint_name(name: str | None) -> str:
    """The clause that names a constraint; none for a name that would be cut."""
    usable = name and byte_length(name) <= LONGEST_NAME
    return f" CONSTRAINT {quote(name)}" if name and usable else ""


def names_sql(names: Iterable[str]) -> str:
    """Return names for a list of columns."""
    return ", ".join(map(quote, names))


def foreign_key_sql(key: ForeignKey) -> str:
    """Return the clause of a foreign key."""
    columns = names_sql(r.column for r in key.references)
    referenced = names_sql(r.referenced for r in key.references)
    home = quote(key.referenced_schema, key.referenced_table)
    sql = f"FOREIGN KEY ({columns}) REFERENCES {home} ({referenced})"
    if key.match_type == "FULL":
        sql += " MATCH FULL"
    for event, action in (("UPDATE", key.update_action), ("DELETE", key.delete_action)):
        if action in ("RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"):
            sql += f" ON {event} {action}"
    return sql
