"""Views, triggers, routines, events and sequences, with what brings them back."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pymysql import err

from muniment.databases.mariadb.connection import Session, quote
from muniment.databases.mariadb.types import archived_type, parse_native
from muniment.sql.model import (
    UNKNOWN_COLUMNS,
    Column,
    Parameter,
    Routine,
    Schema,
    Trigger,
    View,
)
from muniment.sql.original import Original, join_original
from muniment.sql.selection import broken_view

__all__ = ["read_schema", "read_triggers", "read_views", "without_definer", "without_schema"]

_DEFINER = re.compile(r"\s+DEFINER\s*=\s*(`(?:[^`]|``)*`|\S+?)@(`(?:[^`]|``)*`|\S+)", re.IGNORECASE)
Key = tuple[str, str]


def without_definer(statement: str) -> str:
    """Return a CREATE statement without the user it belongs to: who restores it owns it.

    >>> without_definer("CREATE DEFINER=`root`@`localhost` TRIGGER t")
    'CREATE TRIGGER t'
    """
    return _DEFINER.sub("", statement, count=1)


def without_schema(statement: str, schema: str) -> str:
    """Return a statement in which the names of one schema stand alone, where that is safe.

    >>> without_schema("select `s`.`t`.`a` AS `a` from `s`.`t`", "s")
    'select `t`.`a` AS `a` from `t`'
    """
    name = quote(schema)
    if re.search(re.escape(name) + r"(?!\.)", statement):
        return statement  # something else goes by the same name
    return statement.replace(f"{name}.", "")


def read_views(
    session: Session, schemas: Sequence[str], columns: Mapping[Key, tuple[Column, ...]]
) -> tuple[dict[str, list[View]], list[str]]:
    """Return the views of each schema, and what people should know."""
    found: dict[str, list[View]] = defaultdict(list)
    notes = []
    algorithm = "ALGORITHM" if session.product.sequences else "'UNDEFINED'"
    for schema, name, query, check, security, way in session.rows(
        "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION, CHECK_OPTION, SECURITY_TYPE,"
        f" {algorithm} FROM information_schema.VIEWS"
        f" WHERE TABLE_SCHEMA IN ({_among(schemas)}) ORDER BY 1, 2",
        *schemas,
    ):
        if not query:
            notes.append(f"the query of the view {schema}.{name} was not seen: the user may not")
        if query and session.product.sequences:
            query = _exact_query(session, schema, name, check) or query
        query = without_schema(query, schema) if query else None
        description = None
        plain = session.product.sequences and (way, security, check) == _USUAL
        if query and not plain:
            end = f" WITH {check} CHECK OPTION" if check != "NONE" else ""
            sql = (
                f"CREATE ALGORITHM={way} SQL SECURITY {security} VIEW {quote(name)} AS {query}{end}"
            )
            if not session.product.sequences:
                sql = _whole_view(session, schema, name) or sql
            description = join_original(None, Original(session.product.name, (sql,)))
        if (schema, name) not in columns:
            notes.append(broken_view(f"{schema}.{name}"))
        known = columns.get((schema, name), UNKNOWN_COLUMNS)
        found[schema].append(View(name, known, None, query, description))
    return found, notes


_USUAL = ("UNDEFINED", "DEFINER", "NONE")


def _exact_query(session: Session, schema: str, name: str, check: str) -> str | None:
    """The query of a view with the character sets of its literals, which are told here alone."""
    try:
        statement = str(session.rows(f"SHOW CREATE VIEW {quote(schema, name)}")[0][1])
    except err.MySQLError:
        return None
    for place in (quote(schema, name), quote(name)):
        _, mark, query = statement.partition(f" VIEW {place} AS ")
        if mark:
            return query.removesuffix(f" WITH {check} CHECK OPTION")
    return None


def _whole_view(session: Session, schema: str, name: str) -> str | None:
    """MySQL tells the algorithm and the names of columns here alone."""
    try:
        statement = session.rows(f"SHOW CREATE VIEW {quote(schema, name)}")[0][1]
    except err.MySQLError:
        return None
    return without_schema(without_definer(statement), schema)


def read_triggers(
    session: Session, schemas: Sequence[str]
) -> tuple[dict[Key, list[Trigger]], list[str]]:
    """Return the triggers of each table, and what people should know."""
    found: dict[Key, list[Trigger]] = defaultdict(list)
    rows = session.rows(
        "SELECT TRIGGER_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME, ACTION_TIMING,"
        " EVENT_MANIPULATION, ACTION_STATEMENT, SQL_MODE FROM information_schema.TRIGGERS"
        f" WHERE TRIGGER_SCHEMA IN ({_among(schemas)})"
        " ORDER BY 1, 2, EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER",
        *schemas,
    )
    for schema, table, name, timing, event, action, mode in rows:
        statement = (
            f"CREATE TRIGGER {quote(name)} {timing} {event} ON {quote(table)} FOR EACH ROW {action}"
        )
        original = Original(session.product.name, (_mode(mode), statement))
        found[schema, table].append(
            Trigger(name, timing, event, action, description=join_original(None, original))
        )
    notes = []
    for schema in schemas:
        if not _may(session, "TRIGGER", schema):
            notes.append(
                f"triggers of {schema} may be missing: the user lacks the privilege TRIGGER"
            )
    return found, notes


def read_schema(session: Session, name: str) -> tuple[Schema, list[str]]:
    """Return a schema with its routines; what SIARD has no place for goes to its description."""
    notes: list[str] = []
    routines = _routines(session, name, notes)
    charset, collation = session.rows(
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA"
        " WHERE SCHEMA_NAME=%s",
        name,
    )[0]
    statements = [f"ALTER DATABASE CHARACTER SET {charset} COLLATE {collation}"]
    if session.product.sequences:
        statements += _sequences(session, name, notes)
    statements += _events(session, name, notes)
    comment = None
    if session.product.sequences:
        comment = session.value(
            "SELECT SCHEMA_COMMENT FROM information_schema.SCHEMATA WHERE SCHEMA_NAME=%s", name
        )
    original = Original(session.product.name, tuple(statements))
    return Schema(name, "", join_original(comment or None, original), routines=routines), notes


def _sequences(session: Session, schema: str, notes: list[str]) -> list[str]:
    statements = []
    for (name,) in session.rows(
        "SELECT TABLE_NAME FROM information_schema.TABLES"
        " WHERE TABLE_SCHEMA=%s AND TABLE_TYPE='SEQUENCE' ORDER BY 1",
        schema,
    ):
        try:
            definition = session.rows(f"SHOW CREATE SEQUENCE {quote(schema, name)}")[0][1]
            following = session.value(f"SELECT next_not_cached_value FROM {quote(schema, name)}")
        except err.MySQLError:
            notes.append(f"the sequence {schema}.{name} was not archived: the user may not read it")
            continue
        statements.append(without_schema(definition, schema))
        statements.append(f"SELECT SETVAL({quote(name)}, {int(following)}, 0)")
    return statements


def _events(session: Session, schema: str, notes: list[str]) -> list[str]:
    if not _may(session, "EVENT", schema):
        notes.append(f"events of {schema} may be missing: the user lacks the privilege EVENT")
    statements = []
    for (name,) in session.rows(
        "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA=%s ORDER BY 1", schema
    ):
        _, mode, _, definition, *_ = session.rows(f"SHOW CREATE EVENT {quote(schema, name)}")[0]
        statements.append(_mode(mode))
        statements.append(without_definer(definition))
    return statements


def _routines(session: Session, schema: str, notes: list[str]) -> tuple[Routine, ...]:
    rows = session.rows(
        "SELECT ROUTINE_NAME, ROUTINE_TYPE, SPECIFIC_NAME, DTD_IDENTIFIER, ROUTINE_DEFINITION,"
        " IS_DETERMINISTIC, SQL_DATA_ACCESS, SECURITY_TYPE, SQL_MODE, ROUTINE_COMMENT"
        " FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA=%s ORDER BY 1, 2",
        schema,
    )
    names = [row[0] for row in rows]
    parameters = _parameters(session, schema)
    found = []
    for name, kind, _, returns, body, steady, access, security, mode, comment in rows:
        source = _source(session, kind, schema, name)
        if source is None:
            notes.append(f"the text of the routine {schema}.{name} was not seen: the user may not")
        original = Original(session.product.name, (_mode(mode), source or ""))
        words = [kind, "DETERMINISTIC" if steady == "YES" else "NOT DETERMINISTIC", access]
        found.append(
            Routine(
                name if names.count(name) == 1 else f"{name}_{kind.replace(' ', '_')}",
                name,
                join_original(comment or None, original) if source else comment or None,
                source,
                body,
                ", ".join([*words, f"SQL SECURITY {security}"]),
                str(archived_type(parse_native(returns))) if returns else None,
                tuple(parameters.get((name, kind), ())),
            )
        )
    return tuple(found)


def _parameters(session: Session, schema: str) -> dict[Key, list[Parameter]]:
    found: dict[Key, list[Parameter]] = defaultdict(list)
    for routine, kind, mode, name, type_ in session.rows(
        "SELECT SPECIFIC_NAME, ROUTINE_TYPE, PARAMETER_MODE, PARAMETER_NAME, DTD_IDENTIFIER"
        " FROM information_schema.PARAMETERS WHERE SPECIFIC_SCHEMA=%s AND ORDINAL_POSITION>0"
        " ORDER BY SPECIFIC_NAME, ROUTINE_TYPE, ORDINAL_POSITION",
        schema,
    ):
        archived = archived_type(parse_native(type_))
        found[routine, kind].append(Parameter(name or "", mode or "IN", archived, type_))
    return found


def _source(session: Session, kind: str, schema: str, name: str) -> str | None:
    """The statement that makes a routine, without its owner; None if the user may not see it."""
    try:
        row: tuple[Any, ...] = session.rows(f"SHOW CREATE {kind} {quote(schema, name)}")[0]
    except err.MySQLError:
        return None
    return without_definer(row[2]) if row[2] else None


def _mode(mode: str | None) -> str:
    """The SQL mode under which a text was written: it says how to read it."""
    return f"SET sql_mode='{mode or ''}'"


def _may(session: Session, privilege: str, schema: str) -> bool:
    """Whether the user, or a role of theirs, has a privilege for a whole schema."""
    sql = (
        "SELECT EXISTS(SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE=%s)"
        " OR EXISTS(SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES"
        " WHERE PRIVILEGE_TYPE=%s AND %s LIKE TABLE_SCHEMA)"
    )
    return bool(session.value(sql, privilege, privilege, schema))


def _among(names: Sequence[str]) -> str:
    return ",".join(["%s"] * len(names))
