"""What a relational database is, as SIARD chapter 5 describes it: frozen values, no behaviour.

Names are the standard's own, in Python's spelling. Order is the order of the archive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from muniment.errors import NotFound
from muniment.sql.types import NamedType, PredefinedType, Type

__all__ = [
    "UNKNOWN_COLUMNS", "Array", "Attribute", "CheckConstraint", "Column", "Database", "Field",
    "ForeignKey", "Leaf", "MessageDigest", "Parameter", "Privilege", "Reference", "Role", "Routine",
    "Schema", "Shape", "Struct", "Table", "Trigger", "UniqueKey", "User", "UserType", "View",
    "shape_of", "supertypes",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a UDT (5.4)."""

    name: str
    type: Type
    type_original: str | None = None
    nullable: bool | None = None
    default_value: str | None = None
    cardinality: int | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class UserType:
    """A named type (5.3): ``category`` is "distinct" or "udt"."""

    name: str
    category: str
    under_schema: str | None = None
    under_type: str | None = None
    instantiable: bool = True
    final: bool = True
    base: PredefinedType | None = None
    attributes: tuple[Attribute, ...] = ()
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a column whose type is an array or a UDT (5.7)."""

    name: str
    lob_folder: str | None = None
    fields: tuple[Field, ...] = ()
    mime_type: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or view (5.6). A ``cardinality`` makes it an array of its type."""

    name: str
    type: Type
    type_original: str | None = None
    nullable: bool | None = None
    default_value: str | None = None
    cardinality: int | None = None
    description: str | None = None
    lob_folder: str | None = None
    mime_type: str | None = None
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A primary or candidate key (5.8, 5.11)."""

    name: str
    columns: tuple[str, ...]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """One pair of columns of a foreign key (5.10)."""

    column: str
    referenced: str


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key (5.9)."""

    name: str
    referenced_schema: str
    referenced_table: str
    references: tuple[Reference, ...]
    match_type: str | None = None
    delete_action: str | None = None
    update_action: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """A check constraint (5.12)."""

    name: str
    condition: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger (5.13): ``action_time`` is BEFORE, AFTER or INSTEAD OF."""

    name: str
    action_time: str
    trigger_event: str
    triggered_action: str
    alias_list: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table (5.5)."""

    name: str
    folder: str
    columns: tuple[Column, ...]
    rows: int = 0
    description: str | None = None
    primary_key: UniqueKey | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    candidate_keys: tuple[UniqueKey, ...] = ()
    check_constraints: tuple[CheckConstraint, ...] = ()
    triggers: tuple[Trigger, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A view (5.14)."""

    name: str
    columns: tuple[Column, ...]
    query: str | None = None
    query_original: str | None = None
    description: str | None = None
    rows: int | None = None


# For a view of which they cannot be known; the standard wants at least one.
UNKNOWN_COLUMNS = (Column("unknown", PredefinedType("CLOB"), nullable=True),)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a routine (5.16): ``mode`` is IN, OUT or INOUT."""

    name: str
    mode: str
    type: Type
    type_original: str | None = None
    cardinality: int | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Routine:
    """A function or procedure (5.15)."""

    specific_name: str
    name: str
    description: str | None = None
    source: str | None = None
    body: str | None = None
    characteristic: str | None = None
    return_type: str | None = None
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema (5.2)."""

    name: str
    folder: str
    description: str | None = None
    types: tuple[UserType, ...] = ()
    tables: tuple[Table, ...] = ()
    views: tuple[View, ...] = ()
    routines: tuple[Routine, ...] = ()

    def table(self, name: str) -> Table:
        """Return the table of that name."""
        for table in self.tables:
            if table.name == name:
                return table
        raise NotFound(f"schema {self.name} has no table {name}")


@dataclass(frozen=True, slots=True)
class User:
    """A database user (5.17)."""

    name: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """A role (5.18)."""

    name: str
    admin: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Privilege:
    """A granted privilege (5.19): ``option`` is ADMIN, GRANT or nothing."""

    type: str
    grantor: str
    grantee: str
    object: str | None = None
    option: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class MessageDigest:
    """A digest over the primary data of an archive (5.1)."""

    digest_type: str
    digest: str


@dataclass(frozen=True, slots=True)
class Database:
    """A whole database (5.1)."""

    dbname: str
    data_owner: str = "unspecified"
    data_origin_timespan: str = "unspecified"
    archival_date: str = ""
    version: str = "2.2"
    description: str | None = None
    archiver: str | None = None
    archiver_contact: str | None = None
    lob_folder: str | None = None
    producer_application: str | None = None
    message_digests: tuple[MessageDigest, ...] = ()
    client_machine: str | None = None
    database_product: str | None = None
    connection: str | None = None
    database_user: str | None = None
    schemas: tuple[Schema, ...] = ()
    users: tuple[User, ...] = ()
    roles: tuple[Role, ...] = ()
    privileges: tuple[Privilege, ...] = ()

    def schema(self, name: str) -> Schema:
        """Return the schema of that name."""
        for schema in self.schemas:
            if schema.name == name:
                return schema
        raise NotFound(f"{self.dbname} has no schema {name}")

    def tables(self) -> Iterator[tuple[Schema, Table]]:
        """Yield every table with its schema, in the archive's order."""
        for schema in self.schemas:
            for table in schema.tables:
                yield schema, table


# The shape of a cell: what columns, attributes and arrays come down to once names are looked up.


@dataclass(frozen=True, slots=True)
class Leaf:
    """A cell of a predefined type."""

    type: PredefinedType


@dataclass(frozen=True, slots=True)
class Struct:
    """A cell of a UDT: one part per attribute, <u1> <u2> …"""

    parts: tuple[Shape, ...]
    names: tuple[str, ...] = ()
    required: tuple[bool, ...] = field(default=(), compare=False)  # parts that are never NULL


@dataclass(frozen=True, slots=True)
class Array:
    """A cell that is an array: <a1> <a2> …"""

    element: Shape
    cardinality: int


Shape = Leaf | Struct | Array


def shape_of(database: Database, schema: str, part: Column | Attribute) -> Shape:
    """Return the shape of a column's cells; DISTINCT types become their base type (P_4.3-4)."""
    return _shape(database, schema, part, 0, iter(range(_MOST_PARTS)))


_MOST_PARTS = 100_000  # types inside types can grow without limit in a few lines


def _shape(
    database: Database, schema: str, part: Column | Attribute, depth: int, budget: Iterator[int]
) -> Shape:
    if depth > 64:
        raise NotFound(f"type {part.type} contains itself")
    if next(budget, None) is None:
        raise NotFound(f"type {part.type} has more than {_MOST_PARTS} parts")
    if part.cardinality is not None:
        return Array(_named(database, schema, part.type, depth, budget), part.cardinality)
    return _named(database, schema, part.type, depth, budget)


def _named(
    database: Database, schema: str, named: Type, depth: int, budget: Iterator[int]
) -> Shape:
    if isinstance(named, PredefinedType):
        return Leaf(named)
    home = named.schema or schema
    user_type = _look_up(database, home, named)
    if user_type.base is not None:
        return Leaf(user_type.base)
    attributes = _attributes(database, home, user_type)
    return Struct(
        tuple(_shape(database, home, each, depth + 1, budget) for each in attributes),
        tuple(attribute.name for attribute in attributes),
        tuple(attribute.nullable is False for attribute in attributes),
    )


def _attributes(database: Database, home: str, user_type: UserType) -> tuple[Attribute, ...]:
    """The attributes of a type, those of its supertypes first."""
    found = user_type.attributes
    for parent in supertypes(database, home, user_type):
        found = parent.attributes + found
    return found


def supertypes(database: Database, home: str, user_type: UserType) -> Iterator[UserType]:
    """Yield what a type of a schema stands under, the nearest first; a loop ends it."""
    seen = {(home, user_type.name)}
    while user_type.under_type:
        home = user_type.under_schema or home
        user_type = _look_up(database, home, NamedType(home, user_type.under_type))
        if (home, user_type.name) in seen:
            return
        seen.add((home, user_type.name))
        yield user_type


def _look_up(database: Database, home: str, named: NamedType) -> UserType:
    for user_type in database.schema(home).types:
        if user_type.name == named.name:
            return user_type
    raise NotFound(f"type {named} is not defined in schema {home}")
