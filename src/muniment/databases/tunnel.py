"""Databases behind an SSH server: a tunnel by the system's own ``ssh``.

Keys, agents, jump hosts and known hosts are those of the user's configuration of ssh. Of the
database's URL only host and port are given to ssh: no password appears among its arguments.
"""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import IO
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from muniment.errors import DatabaseError, UsageError

__all__ = ["tunnelled"]

_PATIENCE = 60  # seconds until the tunnel has to be there
_TRIES = 3  # of local ports, which somebody else may take first
_PORTS = {
    "postgresql": 5432,
    "postgres": 5432,
    "mysql": 3306,
    "mariadb": 3306,
    "firebird": 3050,
    "oracle": 1521,
    "mssql": 1433,
    "db2": 50000,
}
_PLACE = re.compile(
    r"(?P<user>[\w.][\w.+-]*@)?(?P<host>[A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f:]+\])(?::(?P<port>\d{1,5}))?"
)
_HOST = re.compile(r"[A-Za-z0-9_][\w.-]*|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*")


@dataclass(frozen=True, slots=True)
class _Way:
    """Where the tunnel ends, as seen from the SSH server, and the URL at this end of it."""

    end: str
    url: SplitResult

    def here(self, port: int) -> str:
        user, at, _ = self.url.netloc.rpartition("@")
        scheme = self.url.scheme.partition("+")[0]
        host = f"127.0.0.1:{port}"
        query = self.url.query
        # A certificate and a line of .pgpass are for the server's own name.
        if scheme.startswith("postgres") and self.url.hostname and not self.end.startswith("/"):
            host = f"{self.url.hostname}:{port}"
            query = "&".join(filter(None, (query, "hostaddr=127.0.0.1")))
        return self.url._replace(netloc=f"{user}{at}{host}", query=query).geturl()


@contextmanager
def tunnelled(url: str, ssh: str | None) -> Iterator[str]:
    """Open a tunnel through ``ssh`` (user@host[:port]); yield the URL that leads through it."""
    if ssh is None:
        with nullcontext(url) as same:
            yield same
        return
    place, way = _place(ssh), _way(url)
    with _tunnel(place, way.end, ssh) as port:
        yield way.here(port)


def _place(ssh: str) -> list[str]:
    """The arguments that name an SSH server."""
    match = _PLACE.fullmatch(ssh)
    if match is None:
        raise UsageError(f"{ssh!r} is not an SSH server; write user@host or user@host:port")
    words = ["-p", match["port"]] if match["port"] else []
    return [*words, f"{match['user'] or ''}{match['host'].strip('[]')}"]


def _way(url: str) -> _Way:
    parts = urlsplit(url)
    names = parts.scheme.removeprefix("sqlalchemy+").partition("+")[0]
    if names not in _PORTS:
        raise UsageError(f"--ssh is for database servers; {names or url}:// names none")
    query = dict(parse_qsl(parts.query))
    socket_folder = query.get("host", "")
    if socket_folder.startswith("/"):
        port = query.get("port", "5432")
        kept = {name: value for name, value in query.items() if name not in ("host", "port")}
        end = f"{socket_folder}/.s.PGSQL.{port}"
        if re.fullmatch(r"[\w/.-]+", end) is None:
            raise UsageError(f"{end} is not the name of a socket")
        return _Way(end, parts._replace(query=urlencode(kept)))
    try:
        host, port = parts.hostname or "localhost", str(parts.port or _PORTS[names])
    except ValueError as error:
        raise UsageError("the port in the database's URL is not a number") from error
    if _HOST.fullmatch(host) is None:
        raise UsageError(f"{host!r} is not the name of a database server")
    return _Way(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", parts)


@contextmanager
def _tunnel(place: list[str], end: str, shown: str) -> Iterator[int]:
    for left in reversed(range(_TRIES)):
        port = _free_port()
        with tempfile.TemporaryFile() as errors:
            process = _start(place, f"127.0.0.1:{port}:{end}", errors)
            try:
                if _is_up(process, port):
                    yield port
                    return
                told = _told(errors)
                if not left or "in use" not in told:
                    raise DatabaseError(_sentence(shown, told))
            finally:
                _stop(process)


def _start(place: list[str], forward: str, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    options = ("BatchMode=yes", "ExitOnForwardFailure=yes", "ConnectTimeout=20",
               "ServerAliveInterval=15", "ControlMaster=no", "ControlPath=none")  # fmt: skip
    settings = [word for option in options for word in ("-o", option)]
    try:
        return subprocess.Popen(
            ["ssh", "-N", "-T", *settings, "-L", forward, *place],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for this process, which stops it in its turn
        )
    except FileNotFoundError as error:
        raise DatabaseError("--ssh needs the program ssh, which is not installed") from error


def _is_up(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until the tunnel takes connections; False if ssh gave up before."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0 and process.poll() is None:
                return True
        time.sleep(0.05)
    return False


def _told(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = [line.strip() for line in errors.read(1 << 16).decode(errors="replace").splitlines()]
    return "; ".join(line for line in lines[-3:] if line)


def _sentence(shown: str, told: str) -> str:
    reason = f"ssh says: {told}" if told else "it did not answer in time"
    advice = ""
    if "Permission denied" in told:
        advice = "; a key or an agent has to open it, since no password is asked for here"
    if "Host key verification failed" in told:
        advice = f"; connect once with: ssh {shown}"
    return f"no tunnel through {shown}: {reason}{advice}"


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
