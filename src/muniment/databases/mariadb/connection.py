"""The one border to the driver: sessions, the two products, errors as sentences."""

from __future__ import annotations

import getpass
import math
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pymysql
from pymysql import err

from muniment.databases.mariadb.address import Address
from muniment.databases.mariadb.wire import RowStream
from muniment.errors import DatabaseError

__all__ = [
    "Product",
    "Session",
    "connect",
    "quote",
    "quote_names",
    "sentence",
    "translated",
]


@dataclass(frozen=True, slots=True)
class Product:
    """What sets one of the two products apart."""

    name: str
    timeout: str  # the setting that limits each statement
    timeout_unit: float  # of that setting, in seconds
    exact_collation: str  # compares text as it is, spaces at the end included
    users: str  # SQL for users: user, host, whether it is a role
    role_grants: str
    checks_by_table: bool  # whether CHECK_CONSTRAINTS knows the table
    quoted_defaults: bool  # whether COLUMN_DEFAULT is an expression as SQL writes it
    sequences: bool
    scale: int  # the most digits after the point
    log_position: str  # the statement that says how much InnoDB has logged by now


_MARIADB = Product(
    "MariaDB",
    "max_statement_time",
    1,
    "utf8mb4_nopad_bin",
    "SELECT User, Host, is_role='Y' FROM mysql.user ORDER BY 1, 2",
    "SELECT Role, IF(Host='', User, CONCAT(User,'@',Host)), Admin_option"
    " FROM mysql.roles_mapping ORDER BY 1, 2",
    checks_by_table=True,
    quoted_defaults=True,
    sequences=True,
    scale=38,
    log_position="SHOW GLOBAL STATUS LIKE 'Innodb_lsn_current'",
)
_MYSQL = Product(
    "MySQL",
    "max_execution_time",
    0.001,
    "utf8mb4_0900_bin",
    "SELECT User, Host, account_locked='Y' AND password_expired='Y' AND authentication_string=''"
    " FROM mysql.user ORDER BY 1, 2",
    "SELECT CONCAT(FROM_USER,'@',FROM_HOST), CONCAT(TO_USER,'@',TO_HOST), WITH_ADMIN_OPTION"
    " FROM mysql.role_edges ORDER BY 1, 2",
    checks_by_table=False,
    quoted_defaults=False,
    sequences=False,
    scale=30,
    log_position="SHOW ENGINE INNODB STATUS",  # its status variable is some milliseconds late
)

# What the driver's error numbers mean to people.
_MEANINGS = {
    1044: "the user may not use that database",
    1045: "the user or the password is wrong",
    1049: "there is no such database",
    1142: "the user lacks a privilege",
    1143: "the user lacks a privilege on a column",
    1205: "another transaction holds a lock for too long; try again later",
    1213: "another transaction got in the way; try again",
    1227: "the user lacks a privilege",
    1412: "a table was altered meanwhile; try again",
    1969: "the statement timeout was reached; give it more time or none",
    3024: "the statement timeout was reached; give it more time or none",
    2003: "the server cannot be reached; check the host and the port",
    2006: "the connection to the server was lost",
    2013: "the connection to the server was lost",
}
_LOST = (2006, 2013)
_SESSION = (
    "SET SESSION time_zone='+00:00', sql_mode='', net_write_timeout=86400, net_read_timeout=86400,"
    " wait_timeout=604800, group_concat_max_len=1048576, lock_wait_timeout=60"
)


class Session:
    """A connection, and what is running on it."""

    def __init__(self, connection: Any, address: Address) -> None:
        self.connection, self.address = connection, address
        self._stream: RowStream | None = None
        version = str(connection.server_version)
        self.product = _MARIADB if "mariadb" in version.lower() else _MYSQL
        found = re.search(r"(?:5\.5\.5-)?(\d+\.\d+\.\d+)", version)
        self.version = found[1] if found else version

    def close(self) -> None:
        self._stream = None
        with suppress(OSError, err.Error):
            self.connection._force_close()

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a small query."""
        self.free()
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def value(self, sql: str, *values: Any) -> Any:
        """Return the first value of a small query, None if there is no row."""
        found = self.rows(sql, *values)
        return found[0][0] if found else None

    def run(self, sql: str) -> None:
        """Run a statement that has no rows to give."""
        self.free()
        self.connection.query(sql)

    def stream(self, sql: str, *, joined: bool = True) -> RowStream:
        """Start a query whose rows come as they are read."""
        self.free()
        self._stream = RowStream(self.connection, sql, joined=joined)
        return self._stream

    def release(self, stream: RowStream) -> None:
        """Give the connection back, whatever is left of a stream."""
        if self._stream is stream:
            self._stream = None
            stream.drop()

    def free(self) -> None:
        """Make the connection ready for another statement."""
        if self._stream is not None:
            self._stream.park()
            self._stream = None


def connect(
    address: Address, *, timeout: float | None = None, local_infile: bool = False
) -> Session:
    """Connect; a password is asked for if the server wants one and somebody is there to ask."""
    try:
        session = _connected(address, local_infile)
    except err.MySQLError as error:
        asked = address.password is None and error.args and error.args[0] == 1045
        if not asked or not sys.stdin.isatty():
            raise DatabaseError(f"{address.url}: {sentence(error)}") from error
        password = getpass.getpass(f"Password of {address.user} at {address.server}: ")
        return connect(
            replace(address, password=password), local_infile=local_infile, timeout=timeout
        )
    with translated(address.url):
        session.run(_SESSION)
        if timeout is not None:
            product = session.product
            limit = timeout / product.timeout_unit
            spelt = f"{limit:f}" if product.timeout_unit == 1 else str(math.ceil(limit))
            session.run(f"SET SESSION {product.timeout}={spelt}")
    return session


def _connected(address: Address, local_infile: bool) -> Session:
    connection: Any = pymysql.connect(
        charset="utf8mb4", autocommit=True, local_infile=local_infile, **address.arguments()
    )
    # The driver would hand any file to a server that asks for it. Only ``send_local`` answers.
    connection._local_infile = False
    mode = dict(address.ssl).get("mode", "")
    if mode not in ("", "DISABLED", "PREFERRED") and not connection._secure:
        connection.close()
        raise DatabaseError(f"{address.url}: the server has no TLS, and ssl-mode asks for it")
    return Session(connection, address)


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn the driver's errors into ours; ``doing`` names the place for the sentence."""
    try:
        yield
    except err.MySQLError as error:
        raise DatabaseError(f"{doing}: {sentence(error)}") from error
    except OSError as error:
        raise DatabaseError(f"{doing}: {_MEANINGS[2013]} ({error})") from error


def sentence(error: err.MySQLError) -> str:
    """Return what went wrong, in words and in the server's own."""
    code, text = (*error.args, "", "")[:2] if len(error.args) > 1 else (0, str(error))
    meaning = _MEANINGS.get(code)
    if code in _LOST or (code == 0 and not text):
        return _MEANINGS[2013]
    said = f"the server says: {text}"
    return f"{meaning} ({said})" if meaning else said


def quote(*names: str) -> str:
    """Return names between backticks, joined by full stops.

    >>> quote("shop", "a`b")
    '`shop`.`a``b`'
    """
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def quote_names(names: Sequence[str]) -> str:
    """Return names as a list of columns."""
    return ", ".join(quote(name) for name in names)
