"""The SIARD types of PostgreSQL's columns, and the user types that they need.

How long arrays get, what intervals consist of and whether numbers are those of large objects, only
the rows can tell: one query per table asks. A composite type is shared by all columns that use it,
so its arrays are as long as the longest anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from muniment.databases.postgresql.catalogue import Catalogue, Row
from muniment.databases.postgresql.connection import Connection, quote, rows
from muniment.databases.postgresql.types import Listing, Node, Plain, Record, archived_type
from muniment.sql.model import Attribute, UserType
from muniment.sql.types import NamedType, PredefinedType, Type

__all__ = ["LARGE_OBJECT", "Fit", "Fitter", "Place"]

Place: TypeAlias = tuple[Any, ...]  # a column of a table, or an attribute of a composite type

CLOB = PredefinedType("CLOB")
_MIXED_INTERVAL = PredefinedType("VARCHAR", 100)
LARGE_OBJECT = "large object"
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class Fit:
    """What a type becomes: how its text is read, and its type and cardinality in the archive."""

    node: Node
    type: Type
    cardinality: int | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    """Something to ask of all rows: an aggregate over an expression."""

    place: Place
    what: str
    aggregate: str
    sql: str


@dataclass
class Fitter:
    """Finds the types of columns, once ``look`` has asked the rows."""

    connection: Connection
    catalogue: Catalogue
    taken: Callable[[str], bool]  # whether a schema is archived, so that types can stand in it
    answers: dict[tuple[Place, str], Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _money: PredefinedType | None = None

    def look(self, relation: str, columns: Iterable[tuple[str, Place, int]]) -> None:
        """Ask the rows of a relation about its columns: their SQL, their place, their type."""
        questions = [q for sql, place, oid in columns for q in self._ask(place, oid, sql, 0)]
        if not questions:
            return
        listed = ", ".join(
            f"{q.aggregate}({q.sql}) AS a{number}" for number, q in enumerate(questions)
        )
        (row,) = rows(self.connection, f"SELECT {listed} FROM {relation}")
        for number, question in enumerate(questions):
            key, answer = (question.place, question.what), row[f"a{number}"]
            known = self.answers.get(key)
            if answer is not None:
                self.answers[key] = answer if known is None else max(known, answer)

    def _ask(self, place: Place, oid: int, value: str, depth: int) -> Iterator[_Question]:
        row = self.catalogue.types[oid]
        if depth > _DEEPEST:
            return
        if row["kind"] == "d":
            if not _is_large_object(row):
                yield from self._ask(place, row["typbasetype"], value, depth)
        elif row["element"]:
            yield _Question(place, "length", "max", f"cardinality({value})")
            yield _Question(place, "irregular", "bool_or", _irregular(value))
            item = f"x{depth}"
            for inner in self._ask((*place, "item"), row["element"], item, depth + 1):
                sql = f"(SELECT {inner.aggregate}({inner.sql}) FROM unnest({value}) AS {item})"
                yield _Question(inner.place, inner.what, inner.aggregate, sql)
        elif row["kind"] == "c":
            for attribute in self.catalogue.columns[row["typrelid"]]:
                inner_value = f"({value}).{quote(attribute['name'])}"
                inner_place = _attribute_place(row, attribute)
                yield from self._ask(inner_place, attribute["type_id"], inner_value, depth + 1)
        elif row["spelt"] == "interval":
            yield from _interval_questions(place, value)
        elif row["spelt"] == "oid" and depth == 0:
            there = f"EXISTS (SELECT 1 FROM pg_largeobject_metadata m WHERE m.oid = {value})"
            yield _Question(
                place, "objects", "bool_and", f"CASE WHEN {value} <> 0 THEN {there} END"
            )

    def fit(self, place: Place, oid: int, modifier: int = -1) -> Fit:
        """Return what a type becomes at a place."""
        row = self.catalogue.types[oid]
        if row["kind"] == "d":
            return self._fit_domain(place, row)
        if row["element"]:
            return self._fit_array(place, row, modifier)
        if row["kind"] == "c" and self._stands(row):
            attributes = self.catalogue.columns[row["typrelid"]]
            parts = [self._fit_attribute(row, attribute).node for attribute in attributes]
            return Fit(Record(tuple(parts)), NamedType(row["schema"], row["name"]))
        plain = self._fit_plain(place, row, modifier)
        if row["kind"] in "er" and self._stands(row):
            return Fit(plain, NamedType(row["schema"], row["name"]))
        return Fit(plain, plain.archived)

    def _stands(self, row: Row) -> bool:
        """Whether a type of the user's own is described in the archive."""
        return not row["foreign"] and self.taken(row["schema"])

    def _fit_domain(self, place: Place, row: Row) -> Fit:
        if _is_large_object(row):
            plain = Plain(LARGE_OBJECT, PredefinedType("BLOB"))
            return Fit(plain, plain.archived)
        base = self.fit(place, row["typbasetype"], row["typtypmod"])
        if isinstance(base.node, Plain) and self._stands(row) and base.cardinality is None:
            kept = self._domain_base(row)
            if kept == base.node.archived:
                return Fit(base.node, NamedType(row["schema"], row["name"]))
        return base

    def _domain_base(self, row: Row) -> PredefinedType:
        """The base of the DISTINCT type, which does not depend on the rows of one column."""
        while row["kind"] == "d":
            modifier, row = row["typtypmod"], self.catalogue.types[row["typbasetype"]]
        return self._fit_plain((), row, modifier).archived

    def _fit_array(self, place: Place, row: Row, modifier: int) -> Fit:
        element = self.fit((*place, "item"), row["element"], modifier)
        odd = self.answers.get((place, "irregular"))
        if odd or element.cardinality is not None or row["spelt"] == "box[]":
            if odd:
                self.notes.append(
                    f"{_spell(place)} is archived as text: SIARD's arrays have one dimension, start"
                    " with 1 and do not end with NULL, and some of its values are different."
                )
            return Fit(Plain("other", CLOB), CLOB)
        length = max(self.answers.get((place, "length")) or 1, 1)
        return Fit(Listing(element.node), element.type, length)

    def _fit_attribute(self, row: Row, attribute: Row) -> Fit:
        place = _attribute_place(row, attribute)
        return self.fit(place, attribute["type_id"], attribute["modifier"])

    def _fit_plain(self, place: Place, row: Row, modifier: int) -> Plain:
        if row["kind"] == "e":
            longest = max([len(label) for label in row["labels"]] or [1])
            return Plain("other", PredefinedType("VARCHAR", longest))
        name = row["spelt"] if row["schema"] == "pg_catalog" else ""
        if name == "interval":
            return Plain("interval", self._interval(place))
        if name == "money":
            return Plain("money" if len(place) in (0, 3) else "other", self._money_type(place))
        if name == "oid" and self.answers.get((place, "objects")):
            return Plain(LARGE_OBJECT, PredefinedType("BLOB"))
        return Plain(name or "other", archived_type(name, modifier))

    def _money_type(self, place: Place) -> PredefinedType:
        if len(place) not in (0, 3):  # in an array or a composite type: no cast there
            return PredefinedType("VARCHAR", 40)
        if self._money is None:
            (row,) = rows(self.connection, "SELECT scale(0::money::numeric) AS scale")
            self._money = PredefinedType("DECIMAL", 19, row["scale"])
        return self._money

    def _interval(self, place: Place) -> PredefinedType:
        months, others, odd = (self.answers.get((place, w)) for w in ("months", "others", "odd"))
        if odd or (months and others):
            return _MIXED_INTERVAL
        return PredefinedType(
            "INTERVAL", interval="YEAR TO MONTH" if months else "DAY TO SECOND(6)"
        )

    def user_types(self, schema: str, used: set[str]) -> Iterator[tuple[Row, UserType]]:
        """Yield the types of a schema with their catalogue rows: its own, and used tables' rows."""
        for row in self.catalogue.types.values():
            if row["schema"] != schema or row["foreign"]:
                continue
            if row["kind"] == "c" and (row["relkind"] == "c" or row["name"] in used):
                attributes = self.catalogue.columns[row["typrelid"]]
                made = tuple(self._attribute(row, attribute) for attribute in attributes)
                yield row, UserType(row["name"], "udt", attributes=made)
            elif row["kind"] in "er":
                base = self._fit_plain((), row, -1).archived
                yield row, UserType(row["name"], "distinct", base=base)
            elif row["kind"] == "d" and not _is_large_object(row):
                inner = self.fit((), row["typbasetype"], row["typtypmod"])
                if isinstance(inner.node, Plain) and inner.cardinality is None:
                    yield row, UserType(row["name"], "distinct", base=self._domain_base(row))

    def _attribute(self, row: Row, attribute: Row) -> Attribute:
        fitted = self._fit_attribute(row, attribute)
        return Attribute(
            attribute["name"],
            fitted.type,
            type_original=attribute["type"],
            cardinality=fitted.cardinality,
            description=attribute["comment"],
        )


def _attribute_place(row: Row, attribute: Row) -> Place:
    return f"{row['schema']}.{row['name']}", attribute["name"]


def _spell(place: Place) -> str:
    return ".".join(part for part in place if part != "item")


def _is_large_object(row: Row) -> bool:
    """The type of the extension lo: a domain on oid that means a large object."""
    return (row["name"], row["kind"], row["base"]) == ("lo", "d", "oid")


def _irregular(value: str) -> str:
    """Whether SIARD cannot tell an array from another one."""
    last = f"({value})[array_upper({value}, 1)]"
    return (
        f"array_ndims({value}) > 1 OR array_lower({value}, 1) <> 1"
        f" OR cardinality({value}) > 0 AND {last} IS NULL"
    )


def _interval_questions(place: Place, value: str) -> Iterator[_Question]:
    months = f"(extract(year FROM {value}) * 12 + extract(month FROM {value}))"
    days = f"extract(day FROM {value})"
    seconds = (
        f"(extract(hour FROM {value}) * 3600 + extract(minute FROM {value}) * 60"
        f" + extract(second FROM {value}))"
    )
    yield _Question(place, "months", "bool_or", f"{months} <> 0")
    yield _Question(place, "others", "bool_or", f"{days} <> 0 OR {seconds} <> 0")
    odd = f"{days} * {seconds} < 0 OR NOT isfinite({value})"
    yield _Question(place, "odd", "bool_or", odd)
