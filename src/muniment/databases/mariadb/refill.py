"""What comes back around the tables: sequences, routines, views, triggers, events.

Their text comes with the archive. Each statement has to be the definition it claims to be; it then
belongs to the user who restores it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from muniment.databases.mariadb.connection import quote, quote_names
from muniment.databases.mariadb.programs import without_definer
from muniment.databases.mariadb.statement import is_definition
from muniment.sql.leftout import LeftOut, left_out_routine, left_out_trigger, left_out_view
from muniment.sql.model import Routine, Schema, Trigger, View
from muniment.sql.original import split_original
from muniment.sql.translate import (
    NotTranslatable,
    make_in_turn,
    translated_view,
    translation_note,
)

if TYPE_CHECKING:
    from muniment.databases.mariadb.target import MariadbTarget

__all__ = ["remake"]

_MODE = re.compile(r"SET sql_mode='[A-Z_,]*'")
_SETVAL = re.compile(r"SELECT SETVAL\(`(?:[^`]|``)+`, -?\d+, 0\)")
_ALTER = re.compile(r"ALTER DATABASE CHARACTER SET \w+ COLLATE \w+")


def remake(target: MariadbTarget, schema: Schema, kind: str) -> None:
    """Make the things of one kind that a schema has."""
    if not target.session.connection.open:
        return
    target.use(schema)
    _KINDS[kind](target, schema)


def _schema_statements(target: MariadbTarget, schema: Schema) -> tuple[str, ...]:
    _, original = split_original(schema.description)
    return original.statements if original and original.product == target.product else ()


def _sequences(target: MariadbTarget, schema: Schema) -> None:
    for statement in _schema_statements(target, schema):
        if is_definition(statement, "SEQUENCE") or _SETVAL.fullmatch(statement):
            made = re.match(r"CREATE SEQUENCE (`(?:[^`]|``)+`)", statement)
            if made and target.is_resumed:
                target.refusal(f"DROP SEQUENCE IF EXISTS {made[1]}")
            reason = target.refusal(statement)
            if reason is not None:
                target.left_out.append(LeftOut("sequence", f"of {schema.name}", reason, statement))
            elif made:
                place = f"{quote(target.place(schema.name))}.{made[1]}"
                target.undo_with(f"DROP SEQUENCE IF EXISTS {place}")


def _settings(target: MariadbTarget, schema: Schema) -> None:
    for statement in _schema_statements(target, schema):
        if _ALTER.fullmatch(statement):
            target.refusal(statement)


def _events(target: MariadbTarget, schema: Schema) -> None:
    made = []
    for mode, statement in _pairs(_schema_statements(target, schema)):
        if not is_definition(statement, "EVENT"):
            continue
        reason = _under_mode(target, mode, statement)
        name = re.match(r"CREATE EVENT (`(?:[^`]|``)+`)", statement)
        if reason is not None or name is None:
            target.left_out.append(LeftOut("event", f"of {schema.name}", reason or "", statement))
        else:
            target.run(f"ALTER EVENT {name[1]} DISABLE")
            made.append(name[1])
    if made:
        target.notes.append(
            f"events of {schema.name} were made and switched off: {', '.join(made)}; "
            "switch them on with ALTER EVENT … ENABLE"
        )


def _pairs(statements: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The statements, each with the SQL mode that stands before it."""
    mode = "SET sql_mode=''"
    for statement in statements:
        if _MODE.fullmatch(statement):
            mode = statement
        else:
            yield mode, statement


def _under_mode(target: MariadbTarget, mode: str, statement: str) -> str | None:
    if target.refusal(mode) is not None:
        return "it was written under an SQL mode that the server does not have"
    return target.refusal(without_definer(statement))


def _routines(target: MariadbTarget, schema: Schema) -> None:
    waiting = {routine.specific_name: routine for routine in schema.routines}
    if not target.product:
        for routine in schema.routines:
            reason = "it is in the language of another product"
            target.left_out.append(left_out_routine(schema, routine, reason))
        return
    reasons = make_in_turn(
        {name: [routine.source or ""] for name, routine in waiting.items()},
        lambda name, _: _routine(target, waiting[name]),
    )
    for name, reason in reasons.items():
        target.left_out.append(left_out_routine(schema, waiting[name], reason))


def _routine(target: MariadbTarget, routine: Routine) -> str | None:
    _, original = split_original(routine.description)
    statements = original.statements if original else ("SET sql_mode=''", routine.source or "")
    for mode, statement in _pairs(statements):
        if is_definition(statement, "FUNCTION", "PROCEDURE", "PACKAGE", "PACKAGE BODY"):
            return _under_mode(target, mode, statement)
    return "the archive has no definition of it"


def _views(target: MariadbTarget, schema: Schema) -> None:
    views = {view.name: view for view in schema.views}
    ways: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    for name, view in views.items():
        try:
            ways[name] = list(_view_ways(target, schema, view))
        except NotTranslatable as error:
            reasons[name] = str(error)
    target.refusal("SET sql_mode=''")
    reasons |= make_in_turn(ways, lambda name, sql: _view(target, views[name], sql))
    for name, reason in reasons.items():
        target.left_out.append(left_out_view(schema, views[name], reason))
    made = [f"{schema.name}.{name}" for name in views if name not in reasons]
    if made and not target.product:
        product = target.session.product.name
        target.notes.append(translation_note(target.database, product, made))


def _view_ways(target: MariadbTarget, schema: Schema, view: View) -> Iterator[str]:
    columns = f" ({quote_names([c.name for c in view.columns])})" if view.columns else ""
    head = f"CREATE VIEW {quote(view.name)}{columns} AS "
    if target.product and view.query_original:
        _, original = split_original(view.description)
        if original and original.product == target.product:
            yield from (s for s in original.statements if is_definition(s, "VIEW"))
        yield head + view.query_original
        return
    yield head + translated_view(
        target.database, schema, view, "mysql", lambda s, name: (target.place(s), name)
    )


def _view(target: MariadbTarget, view: View, sql: str) -> str | None:
    reason = target.refusal(sql)
    if reason is None:
        reason = target.refusal(f"DO (SELECT COUNT(*) FROM {quote(view.name)} WHERE FALSE)")
        if reason is not None:
            target.refusal(f"DROP VIEW {quote(view.name)}")
    return reason


def _triggers(target: MariadbTarget, schema: Schema) -> None:
    for table in schema.tables:
        for trigger in table.triggers:
            reason = _trigger(target, trigger)
            if reason is not None:
                target.left_out.append(left_out_trigger(schema, table, trigger, reason))


def _trigger(target: MariadbTarget, trigger: Trigger) -> str | None:
    if not target.product:
        return "its action is in the language of another product"
    _, original = split_original(trigger.description)
    for mode, statement in _pairs(original.statements if original else ()):
        if is_definition(statement, "TRIGGER"):
            return _under_mode(target, mode, statement)
    return "the archive has no definition of it"


_KINDS: dict[str, Callable[[MariadbTarget, Schema], None]] = {
    "SEQUENCE": _sequences,
    "ROUTINE": _routines,
    "VIEW": _views,
    "TRIGGER": _triggers,
    "EVENT": _events,
    "DATABASE": _settings,
}
