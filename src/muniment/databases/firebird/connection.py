"""Connections to Firebird: a file by the engine inside this process, or a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from firebird.driver import connect, create_database, driver_config, tpb
from firebird.driver.types import DatabaseError as DriverError
from firebird.driver.types import Isolation, TraAccessMode

from muniment.errors import DatabaseError, UsageError

__all__ = ["DriverError", "Place", "connected", "created", "first_lines", "parse_place", "undo"]

_LARGE = (1 << 31) - 1
_PAGE = 16384  # bytes; keys may take a quarter of it


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is: ``file`` for one in a file here, else a server."""

    dsn: str
    user: str
    password: str | None
    shown: str
    file: Path | None


def parse_place(url: str) -> Place:
    """Return what firebird:///file.fdb, or firebird://user@host:port//path/on/server, names."""
    parts = urlsplit(url)
    path = unquote(parts.path[1:])
    if not path:
        raise UsageError(
            "write firebird:///file.fdb for a file here, firebird://user@host//path/file.fdb or "
            "firebird://user@host/alias for a server"
        )
    user = unquote(parts.username or os.environ.get("ISC_USER", "SYSDBA"))
    password = unquote(parts.password) if parts.password else None
    password = password or os.environ.get("MUNIMENT_PASSWORD") or os.environ.get("ISC_PASSWORD")
    if not parts.hostname:
        return Place(path, user, password, f"firebird:///{path}", Path(path))
    try:
        host = parts.hostname + (f"/{parts.port}" if parts.port else "")
    except ValueError as error:
        raise UsageError("the port in the database's URL is not a number") from error
    shown = f"firebird://{user}@{parts.hostname}{f':{parts.port}' if parts.port else ''}/{path}"
    return Place(f"{host}:{path}", user, password, shown, None)


@contextmanager
def connected(place: Place) -> Iterator[Any]:
    """Open a database in one transaction that sees one state of it and changes nothing."""
    if place.file is not None and not place.file.is_file():
        raise DatabaseError(f"there is no Firebird database {place.file}; check the path")
    with _opened(place, lambda: connect(**_words(place))) as connection:
        snapshot = tpb(
            isolation=Isolation.SNAPSHOT, access_mode=TraAccessMode.READ, lock_timeout=10
        )
        connection.main_transaction.default_tpb = snapshot
        connection.begin(snapshot)
        yield connection


@contextmanager
def created(place: Place) -> Iterator[Any]:
    """Make a new database, which must not be there yet."""
    with _opened(place, lambda: create_database(**_words(place), overwrite=False)) as connection:
        yield connection


def _words(place: Place) -> dict[str, Any]:
    driver_config.stream_blob_threshold.value = _LARGE
    driver_config.db_defaults.page_size.value = _PAGE
    driver_config.db_defaults.db_charset.value = "UTF8"
    words: dict[str, Any] = {"database": place.dsn, "user": place.user, "charset": "UTF8"}
    return words | ({"password": place.password} if place.password else {})


@contextmanager
def _opened(place: Place, open_it: Any) -> Iterator[Any]:
    try:
        connection = open_it()
    except DriverError as error:
        raise DatabaseError(f"{place.shown}: Firebird says: {first_lines(error)}") from error
    except Exception as error:  # the driver has no better one for a missing library
        if "client library" in str(error) or isinstance(error, OSError):
            raise DatabaseError(
                "Firebird needs its client library; on Debian: apt-get install libfbclient2 "
                "(and firebird3.0-server-core to open files without a server)"
            ) from error
        raise
    try:
        yield connection
    finally:
        undo(connection)
        with suppress(DriverError):
            connection.close()


def undo(connection: Any) -> None:
    """Roll back, if there is anything to roll back."""
    with suppress(DriverError):
        if connection.is_active():
            connection.rollback()


def first_lines(error: BaseException) -> str:
    """Return what Firebird says as one line."""
    lines = [line.strip("- ").strip() for line in str(error).splitlines()]
    return "; ".join(line for line in lines if line)[:400]
