"""Where a server is and who asks: the URL, ``~/.my.cnf``, ``MUNIMENT_PASSWORD``."""

from __future__ import annotations

import configparser
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pymysql.optionfile import Parser

from muniment.databases import redact
from muniment.errors import UsageError

__all__ = ["Address", "parse_address"]

_SOCKETS = ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock")
_GROUPS = ("client", "client-mariadb", "mysql", "mariadb-client", "muniment")
_MODES = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_OPTIONS = {
    "socket", "user", "password", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "connect-timeout",
    "defaults-file",
}  # fmt: skip
_ALIASES = {"unix-socket": "socket", "sslmode": "ssl-mode", "passwd": "password", "pwd": "password"}


@dataclass(frozen=True, slots=True)
class Address:
    """A server, a user, and perhaps one of its databases."""

    url: str  # without any password
    database: str | None
    host: str = ""
    port: int = 3306
    socket: str = ""
    user: str = ""
    password: str | None = field(default=None, repr=False)
    ssl: tuple[tuple[str, str], ...] = ()  # mode, ca, cert, key
    timeout: int = 10

    @property
    def server(self) -> str:
        """The server as people would name it."""
        return self.socket or f"{self.host}:{self.port}"

    def arguments(self) -> dict[str, Any]:
        """Return what the driver's ``connect`` takes."""
        place = {"unix_socket": self.socket} if self.socket else {}
        return {
            "host": self.host or "localhost",
            "port": self.port,
            "user": self.user,
            "password": (self.password or "").encode(),
            "database": self.database,
            "connect_timeout": self.timeout,
            **place,
            **self._tls(),
        }

    def _tls(self) -> dict[str, Any]:
        options = dict(self.ssl)
        mode = options.get("mode", "PREFERRED")
        if mode == "DISABLED" or (mode == "PREFERRED" and self.socket):
            return {"ssl_disabled": True}  # nobody listens in on a unix socket
        if mode == "PREFERRED" and len(options) <= 1:
            return {}  # the driver tries, and goes on without if the server has none
        try:
            context = ssl.create_default_context(cafile=options.get("ca"))
            context.check_hostname = mode == "VERIFY_IDENTITY"
            if not mode.startswith("VERIFY"):
                context.verify_mode = ssl.CERT_NONE
            if "cert" in options:
                context.load_cert_chain(options["cert"], options.get("key"))
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"the certificates for {self.url} cannot be read: {error}") from error
        return {"ssl": context}


def parse_address(url: str) -> Address:
    """Return the address that a URL names, completed by the user's option file.

    >>> parse_address("mariadb://reader:secret@db:3307/shop?ssl-mode=DISABLED")
    ... # doctest: +ELLIPSIS
    Address(url='mariadb://reader@db:3307/shop?ssl-mode=DISABLED', database='shop', host='db', ...)
    """
    try:
        parts = urlsplit(url)
        host, port = unquote(parts.hostname or ""), parts.port
    except ValueError as error:
        raise UsageError(f"{redact(url)} is not a URL of a server: {error}") from error
    path = parts.path.strip("/")
    if "/" in path:
        raise UsageError(f"{redact(url)}: write {parts.scheme}://USER@HOST/DATABASE")
    given = _query(url, parts.query)
    own = _option_file(given.get("defaults-file"))
    find = {**own, **given}
    host = host or own.get("host", "")
    socket = given.get("socket") or ("" if host else own.get("socket", ""))
    if not socket and host in ("", "localhost") and port is None:
        socket = next((place for place in _SOCKETS if Path(place).exists()), "")
    password = (
        unquote(parts.password)
        if parts.password is not None
        else given.get("password", os.environ.get("MUNIMENT_PASSWORD", own.get("password")))
    )
    return Address(
        redact(url),
        unquote(path) or None,
        host or "localhost",
        port or _number(url, "port", own.get("port", "3306")),
        socket,
        unquote(parts.username or "") or find.get("user", "") or _login(),
        password,
        _ssl(url, find),
        _number(url, "connect-timeout", find.get("connect-timeout", "10")),
    )


def _query(url: str, query: str) -> dict[str, str]:
    given = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        name = key.lower().replace("_", "-")
        name = _ALIASES.get(name, name)
        if name not in _OPTIONS:
            known = ", ".join(sorted(_OPTIONS - {"password"}))
            raise UsageError(f"{redact(url)}: there is no option {key!r}; there are {known}")
        given[name] = value
    return given


def _ssl(url: str, options: dict[str, str]) -> tuple[tuple[str, str], ...]:
    mode = options.get("ssl-mode", "PREFERRED").upper().replace("-", "_")
    if mode not in _MODES:
        raise UsageError(f"{redact(url)}: ssl-mode is one of {', '.join(_MODES)}")
    kept = [
        (name, options[f"ssl-{name}"]) for name in ("ca", "cert", "key") if f"ssl-{name}" in options
    ]
    return (("mode", mode), *kept)


def _number(url: str, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"{redact(url)}: {name} is a number, not {text!r}") from error


def _option_file(named: str | None) -> dict[str, str]:
    """The options of ~/.my.cnf that concern every client."""
    path = Path(named) if named else Path("~/.my.cnf").expanduser()
    if not path.is_file():
        if named:
            raise UsageError(f"there is no option file {named}")
        return {}
    parser = Parser(strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        # What the parser says may quote a line with a password in it.
        raise UsageError(f"{path} is not an option file as MariaDB reads it") from error
    found: dict[str, str] = {}
    for group in _GROUPS:
        if parser.has_section(group):
            for name in parser.options(group):
                if (
                    value := parser.get(group, name) if _has_value(parser, group, name) else None
                ) is not None:
                    found[name] = value
    return found


def _has_value(parser: Any, group: str, name: str) -> bool:
    return configparser.RawConfigParser.get(parser, group, name) is not None


def _login() -> str:
    return os.environ.get("USER") or os.environ.get("LOGNAME") or "root"
