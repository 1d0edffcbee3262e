"""The one border to the driver: connections, and its errors as sentences."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from muniment.errors import DatabaseError, MissingDriver

try:
    import duckdb
except ImportError as error:
    raise MissingDriver("DuckDB", "duckdb") from error

__all__ = [
    "Connection", "asked", "connect", "first_line", "forget", "is_one_create", "limit_memory",
    "room", "rows", "translated",
]  # fmt: skip

Connection = Any  # the driver ships no types

_SQLITE = b"SQLite format 3\0"

# The first words that DuckDB's message contains, and what to tell the user instead.
_REFUSALS = (
    ("does not exist", "{path} does not exist; check the name"),
    ("not a valid DuckDB", "{path} is not a DuckDB database; check the name"),
    ("Is a directory", "{path} is a folder, not a DuckDB database; check the name"),
    (
        "Could not set lock",
        "{path} is locked by another process; close it there, or archive a copy of the file",
    ),
    (
        "different configuration",
        "{path} is open for writing in this process; close it there first",
    ),
    (
        "version number",
        "{path} was written by a newer DuckDB; pip install --upgrade duckdb",
    ),
    ("encrypt", "{path} is encrypted; archive an unencrypted copy of it"),
    ("checksum", "{path} is damaged; restore it from a backup"),
)


def connect(path: Path, *, read_only: bool) -> Connection:
    """Open a database file; one thread, so that rows keep their order and workers their core."""
    settings = {
        "autoinstall_known_extensions": "false",  # nothing is fetched from the network
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",  # a name in a query is never a Python variable
        "threads": "1",
    }
    _refuse_others(path)
    # What is read or loaded passes through once: a large cache would only fill the memory.
    settings["memory_limit"] = "32MB" if read_only else "100MB"
    try:
        connection = duckdb.connect(str(path), read_only=read_only, config=settings)
    except duckdb.Error as error:
        message = str(error)
        for words, sentence in _REFUSALS:
            if words in message:
                raise DatabaseError(sentence.format(path=path)) from error
        raise DatabaseError(f"{path} cannot be opened: {first_line(error)}") from error
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    return connection


def _refuse_others(path: Path) -> None:
    """Raise DatabaseError for a pipe, at which DuckDB would wait, and for a file of SQLite.

    DuckDB opens the latter by an extension of its own, or complains that it has none.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DatabaseError(f"{path} is not a file; check the name")
    if path.is_file():
        with path.open("rb") as stream:
            if stream.read(len(_SQLITE)) == _SQLITE:
                raise DatabaseError(
                    f"{path} is an SQLite database; name it by a URL that starts with sqlite:///"
                )


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn the driver's errors into ours; ``doing`` is what was being done, for the sentence."""
    try:
        yield
    except duckdb.Error as error:
        if os.strerror(errno.ENOSPC) in str(error):
            raise DatabaseError("the disk is full; free some space and start again") from error
        advice = ""
        if isinstance(error, duckdb.ConstraintException):
            advice = "; --no-constraints restores rows without keys, checks and NOT NULL"
        raise DatabaseError(f"DuckDB refused {doing}: {first_line(error)}{advice}") from error


def rows(connection: Connection, sql: str, *parameters: object) -> list[dict[str, Any]]:
    """Return the rows of a small query, by column name."""
    with translated("a query"):
        cursor = asked(connection, sql, *parameters)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def asked(connection: Connection, sql: str, *parameters: object) -> Connection:
    """Run a query in little memory, or with room if a value or all columns need more."""
    cursor = connection.cursor()
    try:
        return cursor.execute(sql, list(parameters))
    except duckdb.OutOfMemoryException:
        with room(connection):
            return cursor.execute(sql, list(parameters))


@contextmanager
def room(connection: Connection) -> Iterator[None]:
    """Let DuckDB take as much memory as it needs, of which it would keep most otherwise.

    The limit is that of all connections to a file: others should not be at work meanwhile.
    """
    limit = _memory_limit(connection)
    connection.execute("RESET memory_limit")
    try:
        yield
    finally:
        limit_memory(connection, limit)


def forget(connection: Connection) -> None:
    """Have DuckDB forget what it has read, if nobody is going to read it again."""
    limit = _memory_limit(connection)
    limit_memory(connection, "1MB")
    limit_memory(connection, limit)


def limit_memory(connection: Connection, limit: str) -> None:
    """Have DuckDB give back the memory that goes beyond a limit, and keep to that from now on."""
    with suppress(duckdb.OutOfMemoryException):  # it needs more, and has given back the rest
        connection.execute(f"SET memory_limit = '{limit}'")


def _memory_limit(connection: Connection) -> str:
    found: str = connection.execute("SELECT current_setting('memory_limit')").fetchone()[0]
    return found


def is_one_create(sql: str) -> bool:
    """Whether ``sql``, which an archive brought, is a single CREATE statement."""
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error:
        return False
    return len(statements) == 1 and statements[0].type == duckdb.StatementType.CREATE


def first_line(error: Exception) -> str:
    """Return what the driver says, without its picture of the statement."""
    return str(error).partition("\n")[0]
