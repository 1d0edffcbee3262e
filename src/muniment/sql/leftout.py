"""What a target could not make again: named in the report, and kept as SQL for people to adapt.

A target collects values of ``LeftOut`` in its attribute ``left_out``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from muniment.sql.clauses import ColumnClauses, read_clauses
from muniment.sql.model import Database, Routine, Schema, Table, Trigger, View
from muniment.sql.names import format_identifier
from muniment.sql.original import split_original

__all__ = [
    "LeftOut", "format_left_out", "left_out_originals", "left_out_rights", "left_out_routine",
    "left_out_trigger", "left_out_view",
]  # fmt: skip

# A statement that makes something, and what it makes; the words before the kind do not matter.
_MAKES = re.compile(
    r"\s*CREATE\s+(?:(?:OR\s+REPLACE|UNIQUE|FULLTEXT|SPATIAL|UNLOGGED|TEMPORARY|TEMP|EVENT(?=\s+T)"
    r"|VIRTUAL(?=\s+T)"
    r"|MATERIALIZED|FOREIGN(?=\s+T)|TEXT\s+SEARCH|DESC(?:ENDING)?|ASC(?:ENDING)?)\s+)*"
    r"(?P<kind>[A-Z]+)\s+(?:CONCURRENTLY\s+)?(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[^\s(]+)",
    re.IGNORECASE,
)
# What a table's own statement holds beside columns and keys, in the dialects that have it inside.
_INDEX = re.compile(r"(?:FULLTEXT |SPATIAL )?(?:KEY|INDEX) [`\"]?(?P<name>[^`\"(\s]+)")
_PARTITIONS = re.compile(r"(?:\)|\n|/\*!\d+)[ \t]*(PARTITION BY .*)", re.DOTALL)
_BY_THE_MODEL = {"table", "schema", "database", "type", "domain", "view", "function", "procedure",
                 "trigger", "user", "role"}  # fmt: skip
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\s", re.IGNORECASE)
_OPTIONS = re.compile(r"\bWITHOUT\s+ROWID\b|\bSTRICT\b", re.IGNORECASE)
_COLLATED = ("MariaDB", "MySQL")  # every column of theirs says how it is compared
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One thing that was not recreated: ``kind`` is "view", "trigger", "check constraint", …

    ``sql`` is its text in the language of the product it comes from, if the archive has it.
    """

    kind: str
    name: str
    reason: str
    sql: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.reason}"


def format_left_out(items: Iterable[LeftOut], archive: str, product: str | None) -> str:
    """Return the text of an SQL file with everything that was left out.

    >>> view = LeftOut("view", "main.v", "no such table: u", "SELECT 1")
    >>> print(format_left_out([view], "a", "X"))
    -- Left out when a was restored. The statements are those of X.
    -- They come from the archive: read each one before you run it.
    <BLANKLINE>
    -- view main.v: no such table: u
    SELECT 1;
    <BLANKLINE>
    """
    lines = [
        f"-- Left out when {_one_line(archive)} was restored. "
        f"The statements are those of {_one_line(product or 'an unknown product')}.",
        "-- They come from the archive: read each one before you run it.",
        "",
    ]
    for item in items:
        lines.append(f"-- {_one_line(str(item))}")
        lines.append(_statement(item.sql) if item.sql else "-- the archive has no SQL for it")
        lines.append("")
    return "\n".join(lines)


def left_out_view(schema: Schema, view: View, reason: str) -> LeftOut:
    """Return a view that was not made, with the statement that made it."""
    query = view.query_original or view.query
    head = f"CREATE VIEW {format_identifier(schema.name, view.name)} AS\n"
    sql = f"{head}{query}" if query and not _is_create(query) else query
    return LeftOut("view", f"{schema.name}.{view.name}", reason, sql)


def left_out_trigger(schema: Schema, table: Table, trigger: Trigger, reason: str) -> LeftOut:
    """Return a trigger that was not made, with the statement that made it."""
    action, place = trigger.triggered_action, format_identifier(schema.name, table.name)
    event = f"{trigger.action_time} {trigger.trigger_event} ON {place}"
    head = f"CREATE TRIGGER {format_identifier(trigger.name)} {event}\n"
    sql = action if _is_create(action) else f"{head}{action}"
    return LeftOut("trigger", f"{trigger.name} of {schema.name}.{table.name}", reason, sql)


def left_out_routine(schema: Schema, routine: Routine, reason: str) -> LeftOut:
    """Return a function or procedure that was not made, with its text."""
    name = f"{schema.name}.{routine.specific_name}"
    return LeftOut("routine", name, reason, routine.source or routine.body)


def _is_create(sql: str) -> bool:
    return sql.lstrip()[:6].upper() == "CREATE"


def left_out_originals(database: Database, product: str) -> Iterator[LeftOut]:
    """Yield what only the product has that a database comes from, for a target of another one.

    Tables, keys, types, views and routines are described by the archive, and judged by the target.
    """
    reason = f"{product} is not given what only another product describes"
    for where, description in _described(database):
        for original, sql in _statements(description):
            made = _MAKES.match(sql)
            kind = made["kind"].lower() if made else ""
            if kind == "table":
                yield from _inside(where, original, sql, reason)
            elif made and kind not in _BY_THE_MODEL:
                yield LeftOut(kind, f"{made['name']} of {where}", reason, sql)
            elif not made and not sql.upper().startswith(("COMMENT ", "GRANT ", "REVOKE ")):
                yield LeftOut("setting", f"of {where}", reason, sql)
    for schema, table in database.tables():
        yield from _of_columns(f"{schema.name}.{table.name}", table, reason)
    for schema in database.schemas:
        for view in schema.views:  # SIARD knows triggers of tables alone
            for _, sql in _statements(view.description):
                yield LeftOut("trigger", f"of {schema.name}.{view.name}", reason, sql)


def _statements(description: str | None) -> Iterator[tuple[str, str]]:
    """Yield the product and the text of each statement behind a description."""
    _, original = split_original(description)
    for sql in original.statements if original else ():
        yield original.product if original else "", sql


def _described(database: Database) -> Iterator[tuple[str, str | None]]:
    yield "the database", database.description
    for schema in database.schemas:
        yield schema.name, schema.description
        for user_type in schema.types:
            yield f"{schema.name}.{user_type.name}", user_type.description
        for table in schema.tables:
            yield f"{schema.name}.{table.name}", table.description


def _inside(where: str, product: str, sql: str, reason: str) -> Iterator[LeftOut]:
    if _VIRTUAL.match(sql):
        yield LeftOut("virtual table", where, "its rows are in an ordinary table", sql)
        return
    for line in sql.splitlines():
        text = line.strip().removesuffix(",")
        if found := _INDEX.match(text):
            yield LeftOut("index", f"{found['name']} of {where}", reason, text)
    if partitions := _PARTITIONS.search(sql):
        yield LeftOut("partitions", f"of {where}", reason, partitions[1])
    if product == "SQLite":
        for option in _OPTIONS.findall(read_clauses(sql, product).options):
            yield LeftOut("setting", f"{option} of {where}", reason, option)


def _of_columns(where: str, table: Table, reason: str) -> Iterator[LeftOut]:
    """Yield what columns lose, and the foreign keys that are none of the archive's own."""
    told = set()
    for column in table.columns:
        for _, clause in _statements(column.description):
            told.add(column.name)
            yield _lost(f"{where}.{column.name}", clause, reason)
    known = {tuple(r.column.lower() for r in key.references) for key in table.foreign_keys}
    for product, sql in _statements(table.description):
        made = _MAKES.match(sql)
        if not made or made["kind"].upper() != "TABLE" or _VIRTUAL.match(sql):
            continue
        clauses = read_clauses(sql, product)
        for each in clauses.columns:
            if each.name not in told:
                told.add(each.name)
                found = _clauses_of(each, product)
                yield from (_lost(f"{where}.{each.name}", clause, reason) for clause in found)
        for key in clauses.foreign_keys if product == "SQLite" else ():
            if tuple(name.lower() for name in key.columns) not in known:
                name = f"({', '.join(key.columns)}) of {where}"
                yield LeftOut(
                    "foreign key", name, "the archive has it as a statement alone", key.sql
                )


def _clauses_of(column: ColumnClauses, product: str) -> Iterator[str]:
    if column.computing:
        yield column.computing
    if column.collation and product not in _COLLATED:
        yield f"COLLATE {column.collation}"
    if column.counts:
        yield "AUTOINCREMENT"


def _lost(where: str, clause: str, reason: str) -> LeftOut:
    """Return a clause of a column, by what people call such a column."""
    if "IDENTITY" in clause.upper().split():
        return LeftOut("identity", f"of {where}", reason, clause)
    if clause.upper().startswith("COLLATE "):
        return LeftOut("collation", f"{clause.partition(' ')[2]} of {where}", reason, clause)
    if clause.upper() == "AUTOINCREMENT":
        return LeftOut("setting", f"{clause} of {where}", reason, clause)
    ordinary = "it is an ordinary column now, with the values of the archive"
    return LeftOut("generated column", where, ordinary, clause)


def left_out_rights(database: Database, reason: str) -> Iterator[LeftOut]:
    """Yield the users, roles and privileges of an archive, for targets that make none."""
    for user in database.users:
        yield LeftOut("user", user.name, reason)
    for role in database.roles:
        yield LeftOut("role", role.name, reason)
    for right in database.privileges:
        where = f" ON {right.object}" if right.object else ""
        grant = f"GRANT {right.type}{where} TO {right.grantee}"
        yield LeftOut("privilege", grant.removeprefix("GRANT "), reason, grant)


def _statement(sql: str) -> str:
    text = sql.strip()
    # The end goes on a line of its own after a comment, which would swallow it.
    end = "\n;" if "--" in text.rpartition("\n")[2] else ";"
    return text if text.endswith(";") else text + end


def _one_line(text: str) -> str:
    """No name in an archive can end the comment that it stands in."""
    return _CONTROLS.sub(" ", text)
