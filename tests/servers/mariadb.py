"""A private MariaDB or MySQL server, with new databases for whoever asks.

``MUNIMENT_TEST_MARIADB_BIN`` names the folders of another server than the installed one, with ``:``
between them; one that holds ``mysqld`` alone is of MySQL.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql

from servers.processes import (
    find_program,
    free_port,
    named_folders,
    run,
    running,
    server_folder,
)

__all__ = ["MariadbServer", "is_mysql", "numbers", "private_mariadb", "program"]

_USER = "mysql"
_FOLDERS = ("/usr/sbin", "/usr/libexec", "/usr/bin", "/usr/local/sbin")


def program(name: str, *others: str) -> Path:
    """Return a program of the server, by the first of its names that there is."""
    for folders in (named_folders("MUNIMENT_TEST_MARIADB_BIN"), _FOLDERS):
        for each in (name, *others):
            found = find_program(each, *folders) if folders else None
            if found is not None and (folders is _FOLDERS or str(found.parent) in folders):
                return found
    raise RuntimeError(f"MariaDB's {name} is not installed; on Debian: mariadb-server")


def is_mysql() -> bool:
    """Whether the tests run with MySQL, which is a product of its own in some ways."""
    return program("mariadbd", "mysqld").name == "mysqld"


@dataclass
class MariadbServer:
    """A running server; its user root needs no password."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def url(self, database: str = "", user: str = "root", **options: str) -> str:
        """Return a database's URL, by the unix socket."""
        more = "".join(f"&{name}={quote(value)}" for name, value in options.items())
        return f"mariadb://{user}@localhost/{quote(database, safe='')}?socket={self.socket}{more}"

    def tcp_url(self, database: str, user: str, password: str | None = None) -> str:
        """Return a database's URL over TCP."""
        secret = f":{quote(password, safe='')}" if password is not None else ""
        return f"mariadb://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Make an empty database and return its name."""
        name = f"test{next(self._numbers)}"
        self.run(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        return name

    def new_name(self) -> str:
        """Return a name that no database has."""
        return f"new{next(self._numbers)}"

    def connect(self, database: str | None = None) -> Any:
        """Return a connection as root that commits each statement."""
        return pymysql.connect(
            unix_socket=str(self.socket), user="root", database=database, charset="utf8mb4",
            autocommit=True,
        )  # fmt: skip

    def run(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements as root and return the rows of the last."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def dump(self, database: str) -> str:
        """Return what mariadb-dump says about definitions, routines, events and triggers."""
        words = ["--no-data", "--routines", "--events", "--skip-dump-date", "--skip-comments"]
        command = [program("mariadb-dump"), "--no-defaults", "-uroot", f"--socket={self.socket}"]
        return run([*command, "--skip-ssl", *words, database], _USER)

    def has_type(self, name: str) -> bool:
        """Whether the server knows a type; some are younger than others."""
        try:
            self.run(f"CREATE TEMPORARY TABLE t (x {name})", database="mysql")
        except pymysql.MySQLError:
            return False
        return True

    def script(self, sql: str, database: str = "") -> None:
        """Run a script, the client's own commands included."""
        words = [
            "--no-defaults",
            "-uroot",
            f"--socket={self.socket}",
            "--local-infile=1",
            "--default-character-set=utf8mb4",
            *([] if is_mysql() else ["--skip-ssl"]),
        ]
        run(
            [program("mariadb", "mysql"), *words, *([database] if database else [])],
            _USER,
            input=sql,
        )


def numbers(count: int) -> str:
    """SQL for a table ``q`` of the numbers from 1 on, as ``seq``; a power of ten of them."""
    digits = "(SELECT 0 d" + "".join(f" UNION ALL SELECT {n}" for n in range(1, 10)) + ")"
    places = range(len(str(count)) - 1)
    terms = "+".join(f"d{k}.d*{10**k}" for k in places)
    tables = ", ".join(f"{digits} d{k}" for k in places)
    return f"(SELECT 1+{terms} AS seq FROM {tables}) q"


@contextmanager
def private_mariadb(**settings: str) -> Iterator[MariadbServer]:
    """Start a server of its own; ``settings`` are options of mariadbd, with _ for -."""
    with server_folder("maria", _USER) as folder:
        data, port = folder / "data", free_port()
        run(_installation(data), _USER)
        chosen = (_MYSQL if is_mysql() else _MARIADB) | {
            "datadir": str(data),
            "tmpdir": str(folder),  # a server that starts removes what others have in theirs
            "socket": str(folder / "socket"),
            "port": str(port),
        }
        options = [f"--{n.replace('_', '-')}={v}" for n, v in (chosen | settings).items()]
        command = [program("mariadbd", "mysqld"), "--no-defaults", *_base(), *options]
        server = MariadbServer(folder, port)

        def is_ready() -> bool:
            with socket.socket(socket.AF_UNIX) as probe:
                return probe.connect_ex(str(server.socket)) == 0

        with running(command, _USER, folder / "log", is_ready) as process:
            server.process = process
            yield server


def _installation(data: Path) -> list[str | Path]:
    """The command that makes a new data folder whose root needs no password."""
    place = ["--no-defaults", *_base(), f"--datadir={data}", f"--tmpdir={data.parent}"]
    if is_mysql():
        return [program("mysqld"), *place, "--initialize-insecure"]
    words = ["--auth-root-authentication-method=normal", "--skip-test-db"]
    return [program("mariadb-install-db"), *place, *words]


def _base() -> list[str]:
    """Where a server that was not installed finds its messages and system tables."""
    if not named_folders("MUNIMENT_TEST_MARIADB_BIN"):
        return []
    return [f"--basedir={program('mariadbd', 'mysqld').resolve().parent.parent}"]


# Durability is of no use to a server whose folder is removed; speed is.
_SETTINGS = {
    "bind_address": "127.0.0.1",
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_buffer_pool_size": "64M",
    "innodb_doublewrite": "0",
    "innodb_fast_shutdown": "2",
    "local_infile": "1",
    "event_scheduler": "OFF",
}
_MARIADB = _SETTINGS | {"innodb_log_file_size": "32M", "ssl": "0"}
_MYSQL = _SETTINGS | {
    "mysqlx": "0",
    "tls_version": "",
    "log_bin_trust_function_creators": "1",
    "secure_file_priv": "",
}
