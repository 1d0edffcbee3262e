"""The SIARD types of a DuckDB schema: what the type of each column becomes, and the UDTs for it.

How long lists get and what intervals consist of, only the rows can tell: one query per column asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from muniment.databases.duckdb.connection import Connection, asked, rows, translated
from muniment.databases.duckdb.types import (
    DuckType,
    Enumeration,
    Listing,
    Mapping,
    Record,
    Scalar,
    Union,
    is_wrapped,
    parse_duck_type,
    predefined_type,
    quote,
    quote_text,
)
from muniment.databases.duckdb.values import interval_parts
from muniment.sql.model import Attribute, Column, Schema, Table, UserType
from muniment.sql.selection import Selection
from muniment.sql.types import NamedType, PredefinedType, Type

__all__ = ["fit_schema", "relation_sql"]

_MIXED_INTERVAL = PredefinedType("VARCHAR", 100)


def relation_sql(connection: Connection, selection: Selection, schema: str, table: str) -> str:
    """Return SQL for what the rows of a table are selected from, with its condition."""
    query = selection.queries.get(table)
    if query and not _exists(connection, schema, table):
        return f"({query.rstrip().rstrip(';')}) AS {quote(table)} WHERE true"
    condition = selection.where_of(schema, table) or "true"
    return f"{quote(schema)}.{quote(table)} WHERE ({condition})"


def _exists(connection: Connection, schema: str, table: str) -> bool:
    """Whether a base table or a view of that name exists."""
    sql = "SELECT 1 FROM duckdb_{0}s() WHERE database_name = current_database()"
    sql += " AND schema_name = ? AND {0}_name = ?"
    return any(rows(connection, sql.format(kind), schema, table) for kind in ("table", "view"))


def fit_schema(
    connection: Connection, selection: Selection, schema: Schema, unfit: list[str]
) -> Schema:
    """Number the folders and give every column its SIARD type, making the UDTs it needs.

    Columns that have none are named in ``unfit``.
    """
    types = _Types(list(schema.types))
    tables = tuple(
        replace(
            table,
            folder=f"table{number}",
            columns=_TableTypes(connection, selection, schema, table, types, unfit).columns(),
        )
        for number, table in enumerate(schema.tables)
    )
    return replace(schema, tables=tables, types=tuple(types.made))


@dataclass
class _Types:
    """The named types of one schema."""

    made: list[UserType] = field(default_factory=list)

    def add(self, name: str, attributes: list[Attribute]) -> NamedType:
        taken = {user_type.name for user_type in self.made}
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        self.made.append(UserType(unique, "udt", attributes=tuple(attributes)))
        return NamedType("", unique)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a nested type, as SQL for what stands there in one row.

    Outside of lists that is a value. Inside of one there are many, and each of them is x.
    """

    value: str = "x"
    many: str = ""

    def each(self, value: str) -> _Place:
        """The place of what is made of each value."""
        return _Place(many=f"[{value} FOR x IN {self.many}]") if self.many else _Place(value)

    def items(self) -> _Place:
        """The place of the elements of lists."""
        return _Place(many=f"flatten({self.many})" if self.many else self.value)


@dataclass
class _TableTypes:
    """The types of one table's columns, with what its rows have to say about them."""

    connection: Connection
    selection: Selection
    schema: Schema
    table: Table
    types: _Types
    unfit: list[str]
    questions: list[str] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def columns(self) -> tuple[Column, ...]:
        ducks = [self._duck(column) for column in self.table.columns]
        for column, duck in zip(self.table.columns, ducks, strict=True):
            if duck is not None:
                self._ask(duck, _Place(quote(column.name)))
            self._look()
        self.answers.reverse()
        return tuple(
            self._column(column, duck)
            for column, duck in zip(self.table.columns, ducks, strict=True)
        )

    def _duck(self, column: Column) -> DuckType | None:
        if self.selection.wants_text(self.schema.name, self.table.name, column.name):
            return None
        return parse_duck_type(column.type_original or "")

    def _ask(self, duck: DuckType, place: _Place) -> None:
        """Note the questions of a type and of all types in it, in the order of ``_fit``."""
        x = place.value
        match duck:
            case Scalar("INTERVAL"):
                months, days, micros = interval_parts(x)
                self._any(f"{months} <> 0", place)
                self._any(f"{days} <> 0 OR {micros} <> 0", place)
                self._any(f"{days} < 0 AND {micros} > 0 OR {days} > 0 AND {micros} < 0", place)
            case Listing(element, length):
                if length is None:
                    self._longest(f"len({x})", place)
                    if not is_wrapped(element):
                        self._any(f"len({x}) > 0 AND {x}[-1] IS NULL", place)
                else:
                    place = place.each(f"CAST({x} AS {element}[])")
                self._ask(element, place.items())
            case Mapping(key, value):
                self._longest(f"cardinality({x})", place)
                entry = place.each(f"map_entries({x})").items()
                self._ask(key, entry.each("struct_extract(x, 'key')"))
                self._ask(value, entry.each("struct_extract(x, 'value')"))
            case Record(fields):
                for name, kind in fields:
                    self._ask(kind, place.each(f"struct_extract({x}, {quote_text(name)})"))
            case Union(members):
                for name, kind in members:
                    self._ask(kind, place.each(f"union_extract({x}, {quote_text(name)})"))

    def _any(self, condition: str, place: _Place) -> None:
        inside = f"list_contains([{condition} FOR x IN {place.many}], true)"
        held = inside if place.many else condition
        self.questions.append(f"coalesce(bool_or({held}), false)")

    def _longest(self, length: str, place: _Place) -> None:
        longest = f"list_max([{length} FOR x IN {place.many}])" if place.many else length
        self.questions.append(f"coalesce(max({longest}), 0)")

    def _look(self) -> None:
        """Answer the questions of a column in one pass over the rows; two are never in memory."""
        if not self.questions:
            return
        relation = relation_sql(self.connection, self.selection, self.schema.name, self.table.name)
        with translated(f"to read {self.schema.name}.{self.table.name}"):
            cursor = asked(self.connection, f"SELECT {', '.join(self.questions)} FROM {relation}")
            self.answers += cursor.fetchone()
        self.questions.clear()

    def _column(self, column: Column, duck: DuckType | None) -> Column:
        if duck is None:
            return column
        name = f"{self.table.name}_{column.name}"
        where = f"{self.schema.name}.{self.table.name}.{column.name}"
        fitted, cardinality = self._fit(duck, name, where)
        return replace(column, type=fitted, cardinality=cardinality)

    def _fit(self, duck: DuckType, name: str, where: str) -> tuple[Type, int | None]:
        """Return the SIARD type and cardinality of a type; UDTs are called ``name``."""
        match duck:
            case Scalar("INTERVAL"):
                return self._fit_interval(), None
            case Scalar() | Enumeration():
                return predefined_type(duck), None
            case Record(fields):
                made = [self._attribute(n, kind, f"{name}_{n}", where) for n, kind in fields]
                return self.types.add(name, made), None
            case Union(members):
                # Text would not tell the number 1 from the word 1: keep which member it is.
                tag = "tag" if "tag" not in dict(members) else "tag of the union"
                made = [Attribute(tag, PredefinedType("VARCHAR", 255))]
                made += [self._attribute(n, kind, f"{name}_{n}", where) for n, kind in members]
                return self.types.add(name, made), None
            case Mapping(key, value):
                size = max(self.answers.pop(), 1)
                made = [
                    self._attribute("key", key, f"{name}_key", where),
                    self._attribute("value", value, f"{name}_value", where),
                ]
                return self.types.add(name, made), size
            case Listing(element, length):
                return self._fit_list(element, length, name, where)

    def _fit_list(
        self, element: DuckType, length: int | None, name: str, where: str
    ) -> tuple[Type, int]:
        if length is None:
            length = max(self.answers.pop(), 1)
            if not is_wrapped(element) and self.answers.pop() and where not in self.unfit:
                self.unfit.append(where)
        if is_wrapped(element):
            attribute = self._attribute("item", element, f"{name}_item", where)
            return self.types.add(name, [attribute]), length
        return self._fit(element, name, where)[0], length

    def _attribute(self, name: str, duck: DuckType, type_name: str, where: str) -> Attribute:
        fitted, cardinality = self._fit(duck, type_name, where)
        return Attribute(name, fitted, type_original=str(duck), cardinality=cardinality)

    def _fit_interval(self) -> PredefinedType:
        has_months, has_days, has_two_signs = (self.answers.pop() for _ in range(3))
        if has_two_signs or (has_months and has_days):
            return _MIXED_INTERVAL
        if has_months:
            return PredefinedType("INTERVAL", interval="YEAR TO MONTH")
        return PredefinedType("INTERVAL", interval="DAY TO SECOND(6)")
