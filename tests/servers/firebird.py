"""A private Firebird server with a security database of its own."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers.processes import find_program, free_port, running

__all__ = ["FirebirdServer", "private_firebird"]

PASSWORD = "not-a-secret"
_HOMES = ("/usr/lib/x86_64-linux-gnu/firebird/3.0", "/usr/lib/aarch64-linux-gnu/firebird/3.0")
_USER = """
import sys
from firebird.driver import create_database
connection = create_database(sys.argv[1], user="SYSDBA")
connection.execute_immediate(f"CREATE USER SYSDBA PASSWORD '{sys.argv[2]}' USING PLUGIN Srp")
connection.commit()
connection.close()
"""


@dataclass(frozen=True)
class FirebirdServer:
    """A running server."""

    folder: Path
    port: int

    def url(self, name: str) -> str:
        """The URL of a database in the server's folder."""
        return f"firebird://SYSDBA:{PASSWORD}@127.0.0.1:{self.port}/{self.folder}/{name}"


@contextmanager
def private_firebird(folder: Path) -> Iterator[FirebirdServer]:
    """Start a server on a free port; everything of it lies in ``folder``."""
    program = find_program("firebird", "/usr/sbin")
    home = next((Path(h) for h in _HOMES if Path(h).is_dir()), None)
    if program is None or home is None:
        raise RuntimeError("Firebird is not installed; on Debian: firebird3.0-server")
    for name in ("intl", "lib", "plugins", "firebird.msg"):
        (folder / name).symlink_to(home / name)
    (folder / "plugins.conf").write_bytes((home / "plugins.conf").resolve().read_bytes())
    (folder / "databases.conf").write_text("")
    (folder / "lock").mkdir()
    port = free_port()
    (folder / "firebird.conf").write_text(
        f"RemoteServicePort = {port}\nRemoteBindAddress = 127.0.0.1\nAuthServer = Srp\n"
        f"UserManager = Srp\nSecurityDatabase = {folder}/security.fdb\n"
    )
    variables = {"FIREBIRD": str(folder), "FIREBIRD_LOCK": str(folder / "lock")}
    subprocess.run(
        [sys.executable, "-c", _USER, str(folder / "security.fdb"), PASSWORD],
        env={**os.environ, **variables},
        check=True,
    )

    def is_ready() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    command = ["env", *(f"{name}={value}" for name, value in variables.items()), program]
    with running(command, getpass.getuser(), folder / "log", is_ready):
        yield FirebirdServer(folder, port)
