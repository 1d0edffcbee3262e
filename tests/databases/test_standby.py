"""A read replica of PostgreSQL is archived like its primary."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muniment.compare import compare
from muniment.databases.postgresql import open_source
from muniment.errors import DatabaseError
from muniment.transfer import archive
from servers.postgresql import Cluster, private_postgresql, program
from servers.processes import free_port, run, running, server_folder


@contextmanager
def standby_of(primary: Cluster, **settings: str) -> Iterator[Cluster]:
    """Start a hot standby of a running server."""
    with server_folder("standby", "postgres") as folder:
        data, port = folder / "data", free_port()
        environment = primary.environment() | {"PGUSER": "postgres"}
        copy = [program("pg_basebackup"), "-D", data, "-R", "-X", "stream", "-c", "fast"]
        run(copy, "postgres", env=environment)
        chosen = {"port": str(port), "unix_socket_directories": str(folder)} | settings
        words = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
        ready = [str(program("pg_isready")), "-q", "-h", str(folder), "-p", str(port)]
        with running(
            [program("postgres"), "-D", data, *words],
            "postgres",
            folder / "log",
            lambda: subprocess.run(ready, check=False).returncode == 0,
            signal.SIGQUIT,
        ) as process:
            yield Cluster(folder, port, process)


_POSITION = {"replay": "pg_last_wal_replay_lsn", "receive": "pg_last_wal_receive_lsn"}


def caught_up(primary: Cluster, standby: Cluster, done: str = "replay") -> None:
    """Wait until a standby has replayed, or at least received, all that was committed."""
    primary.psql("postgres", "CHECKPOINT")  # what is committed may wait for its way to the disk
    wanted = primary.psql("postgres", "SELECT pg_current_wal_flush_lsn()").strip()
    sql = f"SELECT {_POSITION[done]}() >= '{wanted}'"
    deadline = time.monotonic() + 30
    while standby.psql("postgres", sql).strip() != "t":
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Cluster, Cluster]]:
    with (
        private_postgresql(wal_level="replica", max_wal_senders="4") as primary,
        standby_of(primary, max_standby_streaming_delay="100ms", autovacuum="off") as standby,
    ):
        yield primary, standby


def test_a_standby_gives_the_same_archive(pair: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    primary, standby = pair
    name = primary.new_database()
    primary.psql(name, "CREATE TABLE t (i serial PRIMARY KEY, x text DEFAULT 'y')")
    primary.psql(
        name, "INSERT INTO t (x) SELECT repeat('x', i % 50) FROM generate_series(1, 500) i"
    )
    caught_up(primary, standby)
    archive(standby.url(name), tmp_path / "a.siard")
    assert compare(primary.url(name), str(tmp_path / "a.siard")).equal


def test_a_standby_that_needs_its_rows_otherwise_says_so(pair: tuple[Cluster, Cluster]) -> None:
    primary, standby = pair
    name = primary.new_database()
    primary.psql(
        name, "CREATE TABLE t AS SELECT i, repeat('x', 900) AS x FROM generate_series(1, 9000) i"
    )
    caught_up(primary, standby)
    with (
        pytest.raises(DatabaseError, match=r"standby .* hot_standby_feedback=on"),
        open_source(standby.url(name)) as source,
    ):
        ((schema, table),) = source.describe().tables()
        parts = list(source.parts(schema, table))
        batches = source.batches(schema, table, parts[0])
        next(batches)
        primary.psql(name, "DELETE FROM t; VACUUM t")
        # The rows that are being read keep it from replaying; it loses its patience in 0.1 s.
        caught_up(primary, standby, "receive")
        time.sleep(1)
        for part in parts:
            list(batches if part == parts[0] else source.batches(schema, table, part))
