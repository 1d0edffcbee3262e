"""What a query may name: archives, and nothing that tells about the machine or runs other SQL.

Files, network, extensions and settings are locked away by DuckDB itself. What is left to refuse
are functions and views of its own, found in the query as DuckDB understands it, so that no comment
or quoting hides them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from muniment.databases.duckdb.connection import Connection
from muniment.errors import QueryError
from muniment.query.advice import explained

__all__ = ["forbidden_name", "refuse_others"]

_READS = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
_TELLING = (
    r"duckdb_(?:databases|settings|secrets|secret_types|logs?\w*|extensions|temporary_files|memory"
    r"|approx_database_count|external_file_cache|profiling_settings|connection_count)"
    r"|pragma_\w+|pg_settings|sqlite_temp_\w+"
)
_RUNNING = (
    r"current_setting|query|query_table|which_secret|write_log|parse_duckdb_log_message"
    r"|getvariable|getenv|test_\w+|repeat_row|json_execute_serialized_sql|from_substrait\w*"
)
_TABLE = re.compile(_TELLING, re.IGNORECASE)
_FUNCTION = re.compile(f"{_TELLING}|{_RUNNING}", re.IGNORECASE)
_ANYWHERE = re.compile(rf"\b(?:{_TELLING}|{_RUNNING})\b", re.IGNORECASE)


def refuse_others(connection: Connection, sql: str) -> None:
    """Let nothing through but one query, over archives alone."""
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(explained(error)) from error
    if len(statements) != 1:
        raise QueryError("write one query at a time; there are " + str(len(statements)))
    if statements[0].type not in _READS:
        raise QueryError("an archive is never changed: only queries (SELECT) can be run here")
    if name := forbidden_name(connection, sql):
        raise QueryError(f"{name} cannot be used here: it tells about more than archives")


def forbidden_name(connection: Connection, sql: str) -> str:
    """Return the first name in a query that it must not use, or nothing."""
    (text,) = connection.cursor().execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    tree = json.loads(text)
    if tree.get("error"):  # EXPLAIN and its like: any word may be a name
        found = _ANYWHERE.search(sql)
        return found[0] if found else ""
    for key, name in _names(tree):
        if (_FUNCTION if key == "function_name" else _TABLE).fullmatch(name):
            return name
    return ""


def _names(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield what is called and what is read from, wherever it stands."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            for key in ("function_name", "table_name"):
                if isinstance(name := node.get(key), str):
                    yield key, name
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
