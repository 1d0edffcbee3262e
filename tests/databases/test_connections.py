"""Connections as people have them: TLS, certificates, sockets, files with passwords, a prompt."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from muniment import kernels
from muniment.databases.mariadb.address import parse_address
from muniment.databases.mariadb.connection import connect as connect_mariadb
from muniment.databases.postgresql.connection import (
    connect,
    connection_options,
    copy_out,
    rows,
)
from muniment.errors import DatabaseError
from muniment.siard import open_siard
from muniment.transfer import archive
from servers.certificates import Certificates, certificates
from servers.mariadb import MariadbServer, is_mysql, private_mariadb
from servers.postgresql import PASSWORD, Cluster, private_postgresql

ROLE = "certified"


@pytest.fixture(autouse=True)
def nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the person who runs the tests keeps at home is not looked at."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("MUNIMENT_PASSWORD", "PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)


def connection_in(path: Path) -> str:
    with open_siard(path) as source:
        return source.describe().connection or ""


# PostgreSQL


@pytest.fixture(scope="module")
def papers() -> Iterator[Certificates]:
    with certificates("postgres", ROLE) as made:
        yield made


@pytest.fixture(scope="module")
def encrypted(papers: Certificates) -> Iterator[Cluster]:
    """A server with TLS; one role has to show a certificate, and its database has a table."""
    with private_postgresql(
        ssl="on",
        ssl_cert_file=papers.file("server.crt"),
        ssl_key_file=papers.file("server.key"),
        ssl_ca_file=papers.file("ca.crt"),
    ) as cluster:
        rules = cluster.folder / "data" / "pg_hba.conf"
        line = f"hostssl all {ROLE} 127.0.0.1/32 cert\nhost all {ROLE} 127.0.0.1/32 reject\n"
        rules.write_text(line + rules.read_text())
        cluster.psql("postgres", f"CREATE ROLE {ROLE} LOGIN; SELECT pg_reload_conf()")
        cluster.psql("postgres", "CREATE TABLE t (x int); INSERT INTO t VALUES (1)")
        cluster.psql("postgres", f"GRANT SELECT ON t TO {ROLE}")
        yield cluster


def tls_url(cluster: Cluster, host: str = "localhost", user: str = "postgres", **words: str) -> str:
    secret = f":{PASSWORD}" if user == "postgres" else ""
    more = "&".join(f"{name}={quote(value, safe='/')}" for name, value in words.items())
    return f"postgresql://{user}{secret}@{host}:{cluster.port}/postgres?{more}"


def is_encrypted(url: str) -> bool:
    connection = connect(connection_options(url))
    try:
        (row,) = rows(connection, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        return bool(row["ssl"])
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("mode", "encrypts"),
    [("disable", False), ("allow", False), ("prefer", True), ("require", True)],
)
def test_postgresql_encrypts_as_it_is_told(encrypted: Cluster, mode: str, encrypts: bool) -> None:
    assert is_encrypted(tls_url(encrypted, "127.0.0.1", sslmode=mode)) is encrypts


@pytest.mark.parametrize("bulk", [True, False])
def test_rows_are_the_same_under_encryption(
    encrypted: Cluster, monkeypatch: pytest.MonkeyPatch, bulk: bool
) -> None:
    monkeypatch.setattr(kernels, "_missing", 0 if bulk else 1 << 62)
    connection = connect(connection_options(tls_url(encrypted, "127.0.0.1", sslmode="require")))
    try:
        query = "SELECT repeat('x', i % 30000) FROM generate_series(1, 90000, 77) i"
        sent = list(copy_out(connection, f"COPY ({query}) TO STDOUT", "to read"))
        assert b"".join(sent) == b"".join(b"x" * (i % 30000) + b"\n" for i in range(1, 90001, 77))
    finally:
        connection.close()


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
def test_postgresql_proves_who_it_is(
    encrypted: Cluster, papers: Certificates, mode: str, tmp_path: Path
) -> None:
    url = tls_url(encrypted, sslmode=mode, sslrootcert=papers.file("ca.crt"))
    assert is_encrypted(url)
    archive(url, tmp_path / "a.siard")
    assert PASSWORD not in connection_in(tmp_path / "a.siard")
    assert f"sslmode={mode}" in connection_in(tmp_path / "a.siard")


def test_postgresql_that_cannot_prove_it_is_refused(
    encrypted: Cluster, papers: Certificates
) -> None:
    authority, stranger = papers.file("ca.crt"), papers.file("stranger.crt")
    assert is_encrypted(tls_url(encrypted, "127.0.0.1", sslmode="verify-ca", sslrootcert=authority))
    for host, mode, root in (
        ("127.0.0.1", "verify-full", authority),  # the certificate is for localhost
        ("localhost", "verify-ca", stranger),
    ):
        url = tls_url(encrypted, host, sslmode=mode, sslrootcert=root)
        with pytest.raises(DatabaseError, match="certificate") as caught:
            is_encrypted(url)
        assert PASSWORD not in str(caught.value)


def test_postgresql_knows_people_by_their_certificates(
    encrypted: Cluster, papers: Certificates, tmp_path: Path
) -> None:
    own = {"sslcert": papers.file("client.crt"), "sslkey": papers.file("client.key")}
    url = tls_url(encrypted, "127.0.0.1", ROLE, sslmode="require", **own)
    assert [t.rows for t in archive(url, tmp_path / "a.siard").tables] == [1]
    for wrong in (
        {"sslmode": "require"},
        {"sslmode": "disable"},
        {"sslmode": "require", "sslcert": papers.file("unknown.crt"),
         "sslkey": papers.file("unknown.key")},
    ):  # fmt: skip
        with pytest.raises(DatabaseError, match=r"certificate|pg_hba"):
            is_encrypted(tls_url(encrypted, "127.0.0.1", ROLE, **wrong))


def test_a_server_without_tls_is_not_taken_for_one(postgresql: Cluster) -> None:
    url = tls_url(postgresql, "127.0.0.1", sslmode="require")
    with pytest.raises(DatabaseError, match="does not encrypt"):
        is_encrypted(url)


def test_work_may_take_longer_than_a_transaction_of_others(postgresql: Cluster) -> None:
    limits = postgresql.known(
        "idle_in_transaction_session_timeout /*14*/ idle_session_timeout/*-*/"
        " /*17*/ transaction_timeout/*-*/"
    ).split()
    name = postgresql.new_database()
    for limit in limits:
        postgresql.psql(name, f"ALTER DATABASE {name} SET {limit} = '2h'")
    connection = connect(connection_options(postgresql.url(name)))
    try:
        for limit in limits:
            assert rows(connection, f"SHOW {limit}") == [{limit: "0"}]
    finally:
        connection.close()


def test_passwords_are_found_in_pgpass(
    postgresql: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgresql.new_database()
    postgresql.psql(name, "CREATE TABLE t (x int)")
    kept = tmp_path / "kept"
    kept.write_text(f"127.0.0.1:{postgresql.port}:{name}:postgres:{PASSWORD}\n")
    kept.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(kept))
    archive(f"postgresql://postgres@127.0.0.1:{postgresql.port}/{name}", tmp_path / "a.siard")
    assert PASSWORD.encode() not in (tmp_path / "a.siard").read_bytes()
    kept.write_text("*:*:*:*:wrong\n")
    with pytest.raises(DatabaseError, match=r"password .* is wrong"):
        archive(f"postgresql://postgres@127.0.0.1:{postgresql.port}/{name}", tmp_path / "b.siard")


def test_services_are_found_in_their_file(
    postgresql: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgresql.new_database()
    postgresql.psql(name, "CREATE TABLE t (x int)")
    (tmp_path / "services").write_text(
        f"[shop]\nhost=127.0.0.1\nport={postgresql.port}\ndbname={name}\nuser=postgres\n"
        f"password={PASSWORD}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    archive("postgresql://?service=shop", tmp_path / "a.siard")
    assert connection_in(tmp_path / "a.siard") == "postgresql://?service=shop"
    with open_siard(tmp_path / "a.siard") as source:
        assert (source.describe().dbname, source.describe().database_user) == (name, "postgres")
    with pytest.raises(DatabaseError, match="the service nobody"):
        archive("postgresql://?service=nobody", tmp_path / "b.siard")


# A person at the terminal


def at_a_terminal(words: list[str], answer: str) -> tuple[int, str]:
    """Run ``muniment`` at a terminal; answer its question for a password."""
    child, screen = pty.fork()
    if child == 0:  # pragma: no cover - this is the other process
        os.execv(sys.executable, [sys.executable, "-m", "muniment", *words])
    shown, answered, deadline = "", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([screen], [], [], 1)[0]:
            continue
        try:
            more = os.read(screen, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more.decode(errors="replace")
        if "Password" in shown and not answered:
            time.sleep(0.2)  # until the question has switched the echo off
            os.write(screen, f"{answer}\n".encode())
            answered = True
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown


def test_a_person_is_asked_for_the_password_of_postgresql(
    postgresql: Cluster, tmp_path: Path
) -> None:
    name = postgresql.new_database()
    postgresql.psql(name, "CREATE TABLE t (x int)")
    url = f"postgresql://postgres@127.0.0.1:{postgresql.port}/{name}"
    code, shown = at_a_terminal(["archive", url, str(tmp_path / "a.siard")], PASSWORD)
    assert code == 0, shown
    assert shown.count("Password for") == 1 and PASSWORD not in shown
    assert PASSWORD.encode() not in (tmp_path / "a.siard").read_bytes()
    code, shown = at_a_terminal(["archive", url, str(tmp_path / "b.siard")], "wrong")
    assert code == 3 and "is wrong" in shown and not (tmp_path / "b.siard").exists()


def test_a_person_is_asked_for_the_password_of_mariadb(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    name = mariadb.new_database()
    mariadb.run(
        "CREATE USER IF NOT EXISTS asked@'%' IDENTIFIED BY 'w0rd'",
        f"GRANT ALL ON `{name}`.* TO asked@'%'",
        f"CREATE TABLE `{name}`.t (x INT)",
    )
    url = mariadb.tcp_url(name, "asked")
    code, shown = at_a_terminal(["archive", url, str(tmp_path / "a.siard")], "w0rd")
    assert code == 0, shown
    assert shown.count("Password of") == 1 and "w0rd" not in shown
    assert b"w0rd" not in (tmp_path / "a.siard").read_bytes()
    code, shown = at_a_terminal(["archive", url, str(tmp_path / "b.siard")], "wrong")
    assert code == 3 and "is wrong" in shown and not (tmp_path / "b.siard").exists()


# MariaDB


@pytest.fixture(scope="module")
def maria_papers() -> Iterator[Certificates]:
    with certificates("mysql", ROLE) as made:
        yield made


@pytest.fixture(scope="module")
def encrypted_mariadb(maria_papers: Certificates) -> Iterator[MariadbServer]:
    settings = {} if is_mysql() else {"ssl": "1"}
    with private_mariadb(
        ssl_ca=maria_papers.file("ca.crt"),
        ssl_cert=maria_papers.file("server.crt"),
        ssl_key=maria_papers.file("server.key"),
        tls_version="TLSv1.2,TLSv1.3",
        **settings,
    ) as server:
        server.run(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (x INT)",
            "CREATE USER plain@'%' IDENTIFIED BY 'w0rd'",
            f"CREATE USER {ROLE}@'%' REQUIRE X509",
            "GRANT ALL ON shop.* TO plain@'%'",
            f"GRANT ALL ON shop.* TO {ROLE}@'%'",
        )
        yield server


def maria_url(
    server: MariadbServer, host: str = "localhost", user: str = "plain:w0rd", **words: str
) -> str:
    more = "&".join(f"{name.replace('_', '-')}={value}" for name, value in words.items())
    return f"mariadb://{user}@{host}:{server.port}/shop?{more}"


def cipher(url: str) -> str:
    session = connect_mariadb(parse_address(url))
    try:
        return str(session.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1])
    finally:
        session.close()


@pytest.mark.parametrize(
    ("mode", "encrypts"), [("DISABLED", False), ("PREFERRED", True), ("REQUIRED", True)]
)
def test_mariadb_encrypts_as_it_is_told(
    encrypted_mariadb: MariadbServer, mode: str, encrypts: bool
) -> None:
    assert bool(cipher(maria_url(encrypted_mariadb, ssl_mode=mode))) is encrypts


@pytest.mark.parametrize("mode", ["VERIFY_CA", "VERIFY_IDENTITY"])
def test_mariadb_proves_who_it_is(
    encrypted_mariadb: MariadbServer, maria_papers: Certificates, mode: str, tmp_path: Path
) -> None:
    url = maria_url(encrypted_mariadb, ssl_mode=mode, ssl_ca=maria_papers.file("ca.crt"))
    assert cipher(url)
    archive(url, tmp_path / "a.siard")
    assert "w0rd" not in connection_in(tmp_path / "a.siard")


def test_mariadb_that_cannot_prove_it_is_refused(
    encrypted_mariadb: MariadbServer, maria_papers: Certificates
) -> None:
    authority, stranger = maria_papers.file("ca.crt"), maria_papers.file("stranger.crt")
    assert cipher(maria_url(encrypted_mariadb, "127.0.0.1", ssl_mode="VERIFY_CA", ssl_ca=authority))
    for host, mode, root in (
        ("127.0.0.1", "VERIFY_IDENTITY", authority),  # the certificate is for localhost
        ("localhost", "VERIFY_CA", stranger),
    ):
        with pytest.raises(DatabaseError, match="certificate"):
            cipher(maria_url(encrypted_mariadb, host, ssl_mode=mode, ssl_ca=root))


def test_mariadb_knows_people_by_their_certificates(
    encrypted_mariadb: MariadbServer, maria_papers: Certificates, tmp_path: Path
) -> None:
    own = {"ssl_cert": maria_papers.file("client.crt"), "ssl_key": maria_papers.file("client.key")}
    url = maria_url(encrypted_mariadb, "127.0.0.1", ROLE, ssl_mode="REQUIRED", **own)
    assert [t.rows for t in archive(url, tmp_path / "a.siard").tables] == [0]
    for mode in ("REQUIRED", "DISABLED"):
        with pytest.raises(DatabaseError, match="wrong"):
            cipher(maria_url(encrypted_mariadb, "127.0.0.1", ROLE, ssl_mode=mode))


def test_mariadb_is_found_by_an_option_file(
    encrypted_mariadb: MariadbServer, maria_papers: Certificates, tmp_path: Path
) -> None:
    (tmp_path / ".my.cnf").write_text(
        f"[client]\nuser=plain\npassword=w0rd\nhost=localhost\nport={encrypted_mariadb.port}\n"
        f"ssl-ca={maria_papers.file('ca.crt')}\nssl-mode=VERIFY_CA\n"
    )
    assert cipher("mariadb:///shop")
    archive("mariadb:///shop", tmp_path / "a.siard")
    assert connection_in(tmp_path / "a.siard") == "mariadb:///shop"
    (tmp_path / "other.cnf").write_text(
        f"[client]\nuser=plain\npassword=w0rd\nsocket={encrypted_mariadb.socket}\n"
    )
    assert not cipher(f"mariadb:///shop?defaults-file={tmp_path / 'other.cnf'}")
