"""A private PostgreSQL cluster, with a new database for whoever asks.

``MUNIMENT_TEST_PG_BIN`` names the folders of another PostgreSQL than the installed one, those of
its server and, if they lie elsewhere, of its programs, with ``:`` between them.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from servers.processes import (
    find_program,
    free_port,
    named_folders,
    run,
    running,
    server_folder,
)

__all__ = ["PASSWORD", "Cluster", "private_postgresql", "program"]

PASSWORD = "not-a-secret"  # of the user postgres, for connections over TCP
_USER = "postgres"
_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")

# Durability is of no use to a server whose folder is removed; speed is.
_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "max_wal_size": "2GB",
    "listen_addresses": "127.0.0.1",
}


def program(name: str) -> Path:
    """Return a program of PostgreSQL."""
    found = find_program(name, *named_folders("MUNIMENT_TEST_PG_BIN"), *_FOLDERS)
    if found is None:
        raise RuntimeError(f"PostgreSQL's {name} is not installed; on Debian: postgresql")
    return found


@dataclass
class Cluster:
    """A running server."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self, database: str, user: str = _USER, *, password: str | None = None) -> str:
        """Return a database's URL: over TCP if a password is given, else by the unix socket."""
        if password is not None:
            place = f"{user}:{quote(password, safe='')}@127.0.0.1:{self.port}"
            return f"postgresql://{place}/{quote(database, safe='')}"
        host = quote(str(self.folder), safe="")
        return f"postgresql://{user}@/{quote(database, safe='')}?host={host}&port={self.port}"

    def new_database(self, *options: str) -> str:
        """Make an empty database and return its name; ``options`` are those of createdb."""
        name = f"test{next(self._numbers)}"
        self._run("createdb", *options, name)
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever is connected to it."""
        self._run("dropdb", "--if-exists", "--force", name)

    def psql(self, database: str, sql: str, user: str = _USER) -> str:
        """Run SQL, psql's own commands included, and return what it prints; errors stop it."""
        words = ("-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-f", "-")
        return self._run("psql", *words, input=sql, user=user)

    def end_connection(self, process: int) -> None:
        """End somebody's connection, and wait until its process is gone."""
        there = f"SELECT 1 FROM pg_stat_activity WHERE pid = {process}"
        wait = "PERFORM pg_sleep(0.01), pg_stat_clear_snapshot()"
        self.psql("postgres", f"""SELECT pg_terminate_backend({process});
            DO $$ BEGIN WHILE EXISTS ({there}) LOOP {wait}; END LOOP; END $$""")  # fmt: skip

    def version(self) -> int:
        """The server's version: 15, say."""
        return int(self.psql("postgres", "SHOW server_version_num")) // 10000

    def known(self, sql: str) -> str:
        """Return SQL without what the server does not know.

        That is what stands between /*14*/ and /*-*/ if the server is older than version 14, and
        what stands between /*<14*/ and /*-*/ if it is not.
        """
        version = self.version()

        def kept(found: re.Match[str]) -> str:
            older = version < int(found[2])
            return found[3] if older == bool(found[1]) else ""

        return re.sub(r"/\*(<?)(\d\d)\*/(.*?)/\*-\*/", kept, sql, flags=re.DOTALL)

    def dump(self, database: str, *options: str) -> str:
        """Return what pg_dump prints."""
        return self._run("pg_dump", *options, database)

    def environment(self) -> dict[str, str]:
        """Return the variables by which PostgreSQL's programs find this server."""
        return {**os.environ, "PGHOST": str(self.folder), "PGPORT": str(self.port)}

    def _run(self, name: str, *words: str, input: str | None = None, user: str = _USER) -> str:
        environment = self.environment() | {"PGUSER": user, "PGCLIENTENCODING": "UTF8"}
        return run([program(name), *words], _USER, input=input, env=environment)


@contextmanager
def private_postgresql(**settings: str) -> Iterator[Cluster]:
    """Start a cluster of its own; ``settings`` are those of postgresql.conf."""
    with server_folder("pg", _USER) as folder:
        data, secret, port = folder / "data", folder / "secret", free_port()
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        run(
            [
                program("initdb"),
                "-D",
                data,
                "-U",
                _USER,
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
                "--auth-local=trust",
                "--auth-host=scram-sha-256",
                f"--pwfile={secret}",
            ],
            _USER,
        )
        chosen = _SETTINGS | {"unix_socket_directories": str(folder), "port": str(port)} | settings
        options = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
        command = [program("postgres"), "-D", data, *options]
        ready = [str(program("pg_isready")), "-q", "-h", str(folder), "-p", str(port)]

        def is_ready() -> bool:
            return subprocess.run(ready, check=False).returncode == 0

        # SIGQUIT: nothing has to be written to files that are removed at once.
        with running(command, _USER, folder / "log", is_ready, signal.SIGQUIT) as process:
            yield Cluster(folder, port, process)
