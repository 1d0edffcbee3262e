"""Chapter 5.1 to 5.19: what metadata.xml says about one thing agrees with what it says of others.

A schema cannot see that a key names a column that is not there. A reference to nothing is an error
even where the level is optional: once archived, it has to be right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from muniment.errors import NotFound
from muniment.findings import Severity
from muniment.siard.rules.archive import Archive
from muniment.siard.rules.levels import LEVELS, level_of
from muniment.siard.rules.metadata import place
from muniment.sql.model import (
    Attribute,
    Column,
    Database,
    Field,
    ForeignKey,
    Parameter,
    Schema,
    Table,
    UniqueKey,
    UserType,
    View,
    shape_of,
    supertypes,
)  # fmt: skip
from muniment.sql.types import Kind, NamedType, PredefinedType

__all__ = ["check_references"]

_EVENT = re.compile(r"\s*(?:INSERT|DELETE|UPDATE(?:\s+OF\s+(?P<columns>.+))?)\s*", re.I | re.S)
_FILLED = ("dbname", "dataOwner", "dataOriginTimespan")
_PLACEHOLDERS = {"(...)", "unspecified", "unknown", "n/a", "?"}


def check_references(archive: Archive) -> None:
    """Check everything in the metadata that refers to something else, or must differ from it."""
    database, report = archive.database, archive.report
    assert database is not None
    _look(archive, database)
    _check_empty(archive)
    for rule, where, message, severity in _findings(database):
        report(rule, where, message, severity, kind=f"{severity} {re.sub('[0-9]+', '0', message)}")


_Found = tuple[str, str, str, Severity | None]
_ERROR, _WARN, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


def _look(archive: Archive, database: Database) -> None:
    archive.report.look("M_5.1-1", "M_5.2-1")
    for element in archive.metadata.iter():
        if isinstance(element.tag, str) and len(element):
            archive.report.look(level_of(element).rule)


def _check_empty(archive: Archive) -> None:
    """Mandatory texts that the schema lets be empty."""
    for element in archive.metadata.iter():
        if not isinstance(element.tag, str) or len(element) or (element.text or "").strip():
            continue
        parent, name = element.getparent(), element.tag.rpartition("}")[2]
        if parent is None:
            continue
        level = LEVELS.get(parent.tag.rpartition("}")[2])
        if level is not None and name in level.mandatory - {"users", "column"}:
            where = f"metadata.xml, line {element.sourceline}: {place(parent)}"
            # The schema has a type of its own for what must not be empty; names are not of it.
            weight = None if name in _FILLED else Severity.WARNING
            archive.report(level.rule, where, f"{name} is empty", weight, kind=f"{name} is empty")


def _findings(database: Database) -> Iterator[_Found]:
    yield from _twins("M_5.1-1", "the database", "schema", (s.name for s in database.schemas))
    yield from _twins("M_5.1-1", "the database", "folder", (s.folder for s in database.schemas))
    for name in ("dbname", "data_owner", "data_origin_timespan"):
        if getattr(database, name).strip().lower() in _PLACEHOLDERS:
            said = getattr(database, name)
            yield "M_5.1-1", "the database", f"{name} is {said!r}, which says nothing", _NOTE
    places = ((s.name, t) for s, t in reversed([*database.tables()]))
    tables = {(schema, table.name): table for schema, table in places}  # of twins the first
    for schema in database.schemas:
        yield from _schema(database, schema, tables)
    yield from _people(database)


_Tables = dict[tuple[str, str], Table]  # by the names of their schemas and their own


def _schema(database: Database, schema: Schema, tables: _Tables) -> Iterator[_Found]:
    relations = [t.name for t in schema.tables] + [v.name for v in schema.views]
    yield from _twins("M_5.2-1", schema.name, "table or view", relations)
    yield from _twins("M_5.2-1", schema.name, "folder", (t.folder for t in schema.tables))
    yield from _twins("M_5.3-1", schema.name, "type", (t.name for t in schema.types))
    yield from _twins(
        "M_5.15-1", schema.name, "specific name", (r.specific_name for r in schema.routines)
    )
    yield from _types(database, schema)
    for table in schema.tables:
        yield from _table(database, schema, table, tables)
    for view in schema.views:
        yield from _columns(database, schema, view, "M_5.14-1")
    for routine in schema.routines:
        where = f"{schema.name}.{routine.specific_name}"
        yield from _twins("M_5.16-1", where, "parameter", (p.name for p in routine.parameters))
        for parameter in routine.parameters:
            yield from _typed(database, schema, parameter, f"{where}.{parameter.name}", "M_5.16-1")
            if parameter.mode.upper().strip() not in ("IN", "OUT", "INOUT", "IN OUT"):
                message = f"its mode is {parameter.mode!r}, not IN, OUT or INOUT"
                yield "M_5.16-1", f"{where}.{parameter.name}", message, _WARN


def _types(database: Database, schema: Schema) -> Iterator[_Found]:
    for user_type in schema.types:
        where = f"{schema.name}.{user_type.name}"
        if user_type.category == "distinct" and user_type.base is None:
            yield "M_5.3-1", where, "a distinct type without a base", _ERROR
        if user_type.category == "udt" and not user_type.attributes and not user_type.under_type:
            yield "M_5.3-1", where, "a UDT without attributes", _ERROR
        if user_type.under_type:
            parent = NamedType(user_type.under_schema or schema.name, user_type.under_type)
            if not _exists(database, schema, parent):
                yield "M_5.3-1", where, f"its supertype {parent} is not there", _ERROR
            elif _has_no_top(database, schema.name, user_type):
                yield "M_5.3-1", where, "its supertypes lead back to themselves", _ERROR
        yield from _twins("M_5.4-1", where, "attribute", (a.name for a in user_type.attributes))
        for attribute in user_type.attributes:
            place = f"{where}.{attribute.name}"
            yield from _typed(database, schema, attribute, place, "M_5.4-1")


def _has_no_top(database: Database, home: str, user_type: UserType) -> bool:
    """Whether what a type stands under goes round in a circle."""
    try:
        chain = [user_type, *supertypes(database, home, user_type)]
    except NotFound:
        return False  # told where that type is
    return chain[-1].under_type is not None


def _table(database: Database, schema: Schema, table: Table, tables: _Tables) -> Iterator[_Found]:
    where = f"{schema.name}.{table.name}"
    if not table.columns:
        yield "M_5.5-1", where, "it has no columns", None
    yield from _columns(database, schema, table, "M_5.6-1")
    if table.primary_key is not None:
        yield from _key(table, table.primary_key, where, "M_5.8-1")
    for key in table.candidate_keys:
        yield from _key(table, key, where, "M_5.11-1")
    yield from _twins("M_5.9-1", where, "foreign key", (k.name for k in table.foreign_keys))
    yield from _twins("M_5.11-1", where, "candidate key", (k.name for k in table.candidate_keys))
    yield from _twins(
        "M_5.12-1", where, "check constraint", (c.name for c in table.check_constraints)
    )
    yield from _twins("M_5.13-1", where, "trigger", (t.name for t in table.triggers))
    for foreign in table.foreign_keys:
        yield from _foreign_key(tables, table, foreign, where)
    names = {column.name for column in table.columns}
    for trigger in table.triggers:
        yield from _trigger(trigger.trigger_event, names, f"{where}.{trigger.name}")


def _columns(
    database: Database, schema: Schema, owner: Table | View, rule: str
) -> Iterator[_Found]:
    where = f"{schema.name}.{owner.name}"
    yield from _twins(rule, where, "column", (c.name for c in owner.columns))
    for column in owner.columns:
        place = f"{where}.{column.name}"
        yield from _typed(database, schema, column, place, rule)
        yield from _fields(column.fields, place)
        if isinstance(owner, Table):
            yield from _large(database, column, place)


def _fields(fields: tuple[Field, ...], where: str) -> Iterator[_Found]:
    yield from _twins("M_5.7-1", where, "field", (field.name for field in fields if field.name))
    for field in fields:
        yield from _fields(field.fields, f"{where}.{field.name}")


def _typed(
    database: Database,
    schema: Schema,
    part: Column | Attribute | Parameter,
    where: str,
    rule: str,
) -> Iterator[_Found]:
    if isinstance(part.type, NamedType) and not _exists(database, schema, part.type):
        yield rule, where, f"its type {part.type} is not there", _ERROR
    elif isinstance(part.type, NamedType) and not isinstance(part, Parameter):
        try:
            shape_of(database, schema.name, part)
        except (NotFound, RecursionError):
            # Oracle's references lead back to the type they are in: its parts are not checked.
            yield rule, where, f"its type {part.type} leads back to itself", _NOTE
    if part.cardinality is not None and part.cardinality < 1:
        yield rule, where, f"its cardinality is {part.cardinality}", _ERROR


def _exists(database: Database, schema: Schema, named: NamedType) -> bool:
    home = named.schema or schema.name
    return any(
        user_type.name == named.name
        for each in database.schemas
        if each.name == home
        for user_type in each.types
    )


def _large(database: Database, column: Column, where: str) -> Iterator[_Found]:
    plain = isinstance(column.type, PredefinedType) and not (
        column.type.large or column.type.kind in (Kind.TEXT, Kind.BINARY)
    )
    for name, value in (("lobFolder", column.lob_folder), ("mimeType", column.mime_type)):
        if plain and value:
            yield "M_5.6-1", where, f"it has a {name}, but no large objects", _NOTE
    folder = column.lob_folder or ""
    if folder.startswith("file:") and database.lob_folder:
        yield (
            "M_5.6-1", where,
            "its lobFolder is absolute although the database has one: which of them counts is open",
            _WARN,
        )  # fmt: skip


def _key(table: Table, key: UniqueKey, where: str, rule: str) -> Iterator[_Found]:
    names = {column.name for column in table.columns}
    for name, count in Counter(key.columns).items():
        if name not in names:
            yield rule, f"{where}.{key.name}", f"the table has no column {name}", _ERROR
        elif count > 1:
            yield rule, f"{where}.{key.name}", f"it names the column {name} {count} times", _ERROR


def _foreign_key(tables: _Tables, table: Table, key: ForeignKey, where: str) -> Iterator[_Found]:
    place = f"{where}.{key.name}"
    referenced = tables.get((key.referenced_schema, key.referenced_table))
    if referenced is None:
        target = f"{key.referenced_schema}.{key.referenced_table}"
        yield "M_5.9-1", place, f"the table {target} that it refers to is not there", _ERROR
        return
    ours = {column.name: column for column in table.columns}
    theirs = {column.name: column for column in referenced.columns}
    for reference in key.references:
        mine, other = ours.get(reference.column), theirs.get(reference.referenced)
        if mine is None:
            yield "M_5.10-1", place, f"the table has no column {reference.column}", _ERROR
        if other is None:
            message = f"{referenced.name} has no column {reference.referenced}"
            yield "M_5.10-1", place, message, _ERROR
        if mine and other and not _comparable(mine, other):
            message = f"{mine.name} is {mine.type}, {other.name} that it refers to {other.type}"
            yield "M_5.10-1", place, message, _WARN
    keys = [k.columns for k in (referenced.primary_key, *referenced.candidate_keys) if k]
    wanted = {reference.referenced for reference in key.references}
    if wanted <= theirs.keys() and not any(set(columns) == wanted for columns in keys):
        columns = ", ".join(sorted(wanted))
        yield "M_5.9-1", place, f"{referenced.name} has no key of {columns}", _WARN


_NUMBERS = {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT}


def _comparable(a: Column, b: Column) -> bool:
    if not isinstance(a.type, PredefinedType) or not isinstance(b.type, PredefinedType):
        return a.type == b.type or isinstance(a.type, NamedType) != isinstance(b.type, NamedType)
    kinds = {a.type.kind, b.type.kind}
    return len(kinds) == 1 or kinds <= _NUMBERS


def _trigger(event: str, columns: set[str], where: str) -> Iterator[_Found]:
    for part in re.split(r"\s+OR\s+", event.strip(), flags=re.I):
        match = _EVENT.fullmatch(part)
        if not match:
            yield "M_5.13-1", where, f"its event {part!r} is not INSERT, DELETE or UPDATE", _WARN
        elif match["columns"]:
            for name in (each.strip().strip('"') for each in match["columns"].split(",")):
                if name not in columns and name.upper() not in {c.upper() for c in columns}:
                    yield "M_5.13-1", where, f"the table has no column {name}", _WARN


def _people(database: Database) -> Iterator[_Found]:
    users = [user.name for user in database.users]
    roles = [role.name for role in database.roles]
    yield from _twins("M_5.17-1", "the database", "user", users)
    yield from _twins("M_5.18-1", "the database", "role", roles)
    known = {*users, *roles, "PUBLIC", "public", ""}
    for role in database.roles:
        if role.admin not in known:
            message = f"its administrator {role.admin} is neither a user nor a role"
            yield "M_5.18-1", role.name, message, _WARN
    for privilege in database.privileges:
        where = f"privilege {privilege.type} on {privilege.object or 'no object'}"
        for word, name in (("grantor", privilege.grantor), ("grantee", privilege.grantee)):
            if name not in known and name.upper() not in ("_SYSTEM", "SYSTEM", "SYS"):
                message = f"its {word} {name} is neither a user nor a role"
                yield "M_5.19-1", where, message, _WARN


def _twins(rule: str, where: str, what: str, names: Iterable[str]) -> Iterator[_Found]:
    for name, count in Counter(names).items():
        if count > 1:
            yield rule, where, f"it has {count} of the {what} {name}", _ERROR
