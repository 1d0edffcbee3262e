"""What a target could not make again: named in the report, and kept as SQL for people to adapt.

A target collects values of ``LeftOut`` in its attribute ``left_out``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
        _, original = split_original(description)
        for sql in original.statements if original else ():
            made = _MAKES.match(sql)
            kind = made["kind"].lower() if made else ""
            if kind == "table":
                yield from _inside(where, sql, reason)
            elif made and kind not in _BY_THE_MODEL:
                yield LeftOut(kind, f"{made['name']} of {where}", reason, sql)
            elif not made and not sql.upper().startswith(("COMMENT ", "GRANT ", "REVOKE ")):
                yield LeftOut("setting", f"of {where}", reason, sql)
    for schema in database.schemas:
        for view in schema.views:  # SIARD knows triggers of tables alone
            _, original = split_original(view.description)
            for sql in original.statements if original else ():
                yield LeftOut("trigger", f"of {schema.name}.{view.name}", reason, sql)


def _described(database: Database) -> Iterator[tuple[str, str | None]]:
    yield "the database", database.description
    for schema in database.schemas:
        yield schema.name, schema.description
        for user_type in schema.types:
            yield f"{schema.name}.{user_type.name}", user_type.description
        for table in schema.tables:
            yield f"{schema.name}.{table.name}", table.description


def _inside(where: str, sql: str, reason: str) -> Iterator[LeftOut]:
    for line in sql.splitlines():
        text = line.strip().removesuffix(",")
        if found := _INDEX.match(text):
            yield LeftOut("index", f"{found['name']} of {where}", reason, text)
    if partitions := _PARTITIONS.search(sql):
        yield LeftOut("partitions", f"of {where}", reason, partitions[1])


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
