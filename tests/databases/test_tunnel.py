"""Databases behind an SSH server, through a real one on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from muniment.databases import tunnel
from muniment.databases.tunnel import tunnelled
from muniment.errors import DatabaseError, UsageError
from servers.ssh import SshServer, private_ssh


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with private_ssh(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
def place(server: SshServer, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PATH", f"{server.path}:{os.environ['PATH']}")
    return server.place


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    while data := connection.recv(1000):
                        connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def said(url: str, words: bytes) -> bytes:
    parts = urlsplit(url)
    with socket.create_connection(("127.0.0.1", parts.port or 0), timeout=10) as connection:
        connection.sendall(words)
        return connection.recv(100)


def children() -> set[str]:
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "ssh"], capture_output=True, text=True, check=False
    )
    return set(found.stdout.split())


def test_what_is_sent_arrives_and_ssh_ends_with_the_block(place: str, echo: int) -> None:
    before = children()
    with tunnelled(f"mysql://ada:secret@127.0.0.1:{echo}/shop", place) as url:
        assert urlsplit(url).hostname == "127.0.0.1" and urlsplit(url).port != echo
        assert url.startswith("mysql://ada:secret@") and url.endswith("/shop")
        assert said(url, b"hello") == b"hello"
        (process,) = children() - before
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        assert b"secret" not in command and b"BatchMode=yes" in command
    assert children() == before


def test_ssh_ends_when_the_work_fails(place: str, echo: int) -> None:
    before = children()
    with pytest.raises(KeyError), tunnelled(f"mysql://127.0.0.1:{echo}/", place):
        raise KeyError
    assert children() == before


def test_a_certificate_is_still_for_the_name_of_the_server(place: str, echo: int) -> None:
    with tunnelled(f"postgresql://localhost:{echo}/db?sslmode=verify-full", place) as url:
        parts = urlsplit(url)
        assert parts.hostname == "localhost" and parts.port != echo
        assert parts.query == "sslmode=verify-full&hostaddr=127.0.0.1"
        assert said(url, b"x") == b"x"


def test_a_unix_socket_on_the_other_side_is_reached(place: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / ".s.PGSQL.5433"))
        listener.listen()
        with tunnelled(f"postgresql://ada@/db?host={tmp_path}&port=5433", place) as url:
            listener.accept()[0].close()  # the probe
            with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)) as connection:
                other, _ = listener.accept()
                other.sendall(b"hello")
                assert connection.recv(10) == b"hello"
                other.close()
        assert "host=" not in url and url.startswith("postgresql://ada@127.0.0.1:")


def test_without_an_ssh_server_the_url_stays() -> None:
    with tunnelled("mysql://h/d", None) as url:
        assert url == "mysql://h/d"


def test_a_key_that_is_not_taken_is_a_sentence(server: SshServer, place: str, echo: int) -> None:
    config = server.path.parent / "ssh.conf"
    text = config.read_text()
    config.write_text(text.replace("/user\n", "/stranger\n"))
    try:
        with (
            pytest.raises(DatabaseError, match="a key or an agent"),
            tunnelled(f"mysql://127.0.0.1:{echo}/", place),
        ):
            pass
    finally:
        config.write_text(text)


def test_an_unknown_host_is_a_sentence(server: SshServer, place: str, echo: int) -> None:
    known = server.path.parent / "known"
    text = known.read_text()
    known.write_text("")
    try:
        with (
            pytest.raises(DatabaseError, match="connect once with: ssh"),
            tunnelled(f"mysql://127.0.0.1:{echo}/", place),
        ):
            pass
    finally:
        known.write_text(text)


def test_nobody_there_is_a_sentence(place: str) -> None:
    dead = f"{place.partition(':')[0]}:1"
    with (
        pytest.raises(DatabaseError, match="Connection refused"),
        tunnelled("mysql://127.0.0.1/", dead),
    ):
        pass


def test_a_port_that_somebody_took_is_not_the_end(
    place: str, echo: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = tunnel._free_port
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1], free()])
        monkeypatch.setattr(tunnel, "_free_port", lambda: next(ports))
        monkeypatch.setattr(tunnel, "_is_up", _only_when_ssh_lives(tunnel._is_up))
        with tunnelled(f"mysql://127.0.0.1:{echo}/", place) as url:
            assert said(url, b"x") == b"x"


def _only_when_ssh_lives(is_up: object) -> object:
    """Let ssh have the time to notice that the port is taken: the test answers there itself."""

    def check(process: subprocess.Popen[bytes], port: int) -> bool:
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            return is_up(process, port)  # type: ignore[operator,no-any-return]
        return False

    return check


@pytest.mark.parametrize("ssh", ["-oProxyCommand=x", "a b", "u@-x", "u@h:port", "", "u@h;ls"])
def test_what_is_no_server_is_refused(ssh: str) -> None:
    with pytest.raises(UsageError, match="not an SSH server"), tunnelled("mysql://h/d", ssh):
        pass


@pytest.mark.parametrize(
    "url", ["sqlite:///x.db", "duckdb:///x", "mysql://a b/", "mysql://h:x/", "nothing"]
)
def test_what_is_no_database_server_is_refused(url: str) -> None:
    with pytest.raises(UsageError), tunnelled(url, "u@h"):
        pass
