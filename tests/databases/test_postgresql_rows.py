"""Rows come out of PostgreSQL the same in bulk as one by one, and so do errors."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment import kernels
from muniment.databases.postgresql import libpq
from muniment.databases.postgresql.connection import (
    Connection,
    Refused,
    connect,
    connection_options,
    copy_in,
    copy_out,
    execute,
    rows,
)
from servers.postgresql import Cluster, private_postgresql

pytest.importorskip("numba")

CELLS = st.none() | st.binary(max_size=40) | st.sampled_from([b"\\N", b"\\.", b"", b"\t\n\r\\"])
LONG = "SELECT i, repeat('é\\', i * i) FROM generate_series(0, 400) i"  # up to 480 KB
FOREVER = "SELECT generate_series(1, 100000000), repeat('x', 100)"


@pytest.fixture(scope="module")
def raw(postgresql: Cluster) -> Iterator[Connection]:
    """A connection on which any byte but zero is text."""
    name = postgresql.new_database("-E", "SQL_ASCII", "--locale=C", "-T", "template0")
    settings = {"client_encoding": "SQL_ASCII"}
    opened = connect(connection_options(postgresql.url(name)), settings)
    yield opened
    opened.close()


@contextmanager
def in_bulk(chosen: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_missing", 0 if chosen else 1 << 62)
        assert (kernels.fetching_kernel() is not None) is chosen
        yield


def taken(connection: Connection, query: str, bulk: bool) -> list[bytes]:
    with in_bulk(bulk):
        return list(copy_out(connection, f"COPY ({query}) TO STDOUT", "to read"))


def check_equal(connection: Connection, query: str) -> bytes:
    chunks = taken(connection, query, True)
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    assert b"".join(chunks) == b"".join(taken(connection, query, False))
    return b"".join(chunks)


def literal(cell: bytes | None) -> str:
    data = (cell or b"").replace(b"\0", b"")
    text = "".join(f"\\x{byte:02x}" for byte in data)
    return "NULL::text" if cell is None else f"E'{text}'"


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=20))
@example([(bytes(range(1, 128)), bytes(range(128, 256)))])
def test_any_bytes_are_the_same(raw: Connection, cells: list[tuple[bytes | None, ...]]) -> None:
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in cells)
    check_equal(raw, f"SELECT * FROM (VALUES {values}) AS v")


@pytest.mark.parametrize(
    "query",
    [
        LONG,
        "SELECT 1 WHERE false",
        "SELECT",
        "SELECT FROM generate_series(1, 100000)",
        "SELECT i, i::text, NULL FROM generate_series(1, 100000) i",
        "SELECT repeat('x', 3000000)",
        "SELECT repeat('x', 65535)",
        "SELECT repeat('x', 65536 - 2) UNION ALL SELECT 'y'",
        "SELECT repeat('x', 131072 - i) FROM generate_series(0, 3) i",
    ],
)
def test_rows_of_any_size_are_the_same(raw: Connection, query: str) -> None:
    check_equal(raw, query)


def test_they_come_in_large_pieces(raw: Connection) -> None:
    chunks = taken(raw, "SELECT i FROM generate_series(1, 200000) i", True)
    assert len(chunks) < 50
    assert b"".join(chunks).split(b"\n")[-2] == b"200000"


@pytest.mark.parametrize("bulk", [True, False])
def test_a_reader_that_goes_away_leaves_a_usable_connection(raw: Connection, bulk: bool) -> None:
    with in_bulk(bulk):
        reading = copy_out(raw, f"COPY ({FOREVER}) TO STDOUT", "to read")
        next(reading)
        reading.close()
    assert rows(raw, "SELECT 1 AS one") == [{"one": 1}]


def said(cluster: Cluster, name: str, query: str, act: Callable[[int], object], bulk: bool) -> str:
    """What a reader is told if something happens after the first rows."""
    reader = connect(connection_options(cluster.url(name)))
    try:
        reading = copy_out(reader, f"COPY ({query}) TO STDOUT", "to read t")
        with in_bulk(bulk), pytest.raises(Refused) as caught:
            next(reading)
            act(reader.info.backend_pid)
            for _ in reading:
                pass
    finally:
        reader.close()
    return f"{caught.value.state} {caught.value}"


def stopped(cluster: Cluster, how: str) -> list[str]:
    """What readers are told, in bulk and one by one, if the server ends their work."""

    def stop(pid: int) -> None:
        cluster.psql("postgres", f"SELECT {how}({pid})")

    return [said(cluster, "postgres", FOREVER, stop, bulk) for bulk in (True, False)]


def test_a_copy_that_is_cancelled_is_the_same_sentence(postgresql: Cluster) -> None:
    bulk, one_by_one = stopped(postgresql, "pg_cancel_backend")
    assert bulk == one_by_one
    assert bulk.startswith("57014 PostgreSQL refused to read t: canceling statement")


def test_a_connection_that_is_ended_is_a_sentence(postgresql: Cluster) -> None:
    # Whether the server's own words arrive depends on what it was doing.
    for words in stopped(postgresql, "pg_terminate_backend"):
        assert re.match(r"(57P01)? the connection to PostgreSQL was lost during to read t:", words)


def test_an_error_of_the_server_is_the_same_sentence(postgresql: Cluster) -> None:
    query = "SELECT 1 / (90000 - i), repeat('x', 100) FROM generate_series(1, 100000) i"
    found = {said(postgresql, "postgres", query, lambda _: None, bulk) for bulk in (True, False)}
    assert found == {"22012 PostgreSQL refused to read t: division by zero"}


def test_a_server_that_is_killed_is_the_same_sentence() -> None:
    def kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    found = set()
    for bulk in (True, False):
        with private_postgresql() as cluster:
            found.add(said(cluster, "postgres", FOREVER, kill, bulk))
    assert len(found) == 1
    assert "the connection to PostgreSQL was lost during to read t" in found.pop()


@pytest.mark.parametrize(
    ("first", "bulk"), [("repeat('x', 99999)", True), ("'x'", True), ("'x'", False)]
)
def test_who_waits_for_rows_hears_ctrl_c(raw: Connection, first: str, bulk: bool) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    slow = f"SELECT {first} UNION ALL SELECT pg_sleep(60)::text"
    before = signal.signal(signal.SIGALRM, interrupt)
    started = time.monotonic()
    try:
        with in_bulk(bulk), pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            for _ in copy_out(raw, f"COPY ({slow}) TO STDOUT", "to read"):
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 20
    assert rows(raw, "SELECT 1 AS one") == [{"one": 1}]


def test_other_threads_run_while_one_waits(raw: Connection) -> None:
    """The driver itself would keep them waiting until the server sends something."""
    times: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.05):
            times.append(time.monotonic())

    slow = "SELECT repeat('x', 99999) UNION ALL SELECT pg_sleep(2)::text"
    ticking = threading.Thread(target=tick)
    ticking.start()
    with in_bulk(True):
        assert sum(map(len, copy_out(raw, f"COPY ({slow}) TO STDOUT", "to read"))) == 100001
    done.set()
    ticking.join()
    assert max(b - a for a, b in pairwise(times)) < 1


@pytest.mark.parametrize("bulk", [True, False])
@pytest.mark.parametrize(
    ("query", "said"),
    [("SELECT nothing", "nothing"), ("SELECT 1/0", "zero"), ("SELECT 1; SELECT 2", "syntax")],
)
def test_a_refused_query_leaves_a_usable_connection(
    raw: Connection, query: str, said: str, bulk: bool
) -> None:
    with pytest.raises(Refused, match=f"refused to read: .*{said}"):
        taken(raw, query, bulk)
    assert rows(raw, "SELECT 1 AS one") == [{"one": 1}]


def test_a_server_that_goes_before_the_first_row_is_a_sentence(postgresql: Cluster) -> None:
    reader = connect(connection_options(postgresql.url("postgres")))
    stop = f"SELECT pg_terminate_backend({reader.info.backend_pid})"
    stopping = threading.Timer(0.5, postgresql.psql, ["postgres", stop])
    stopping.start()
    try:
        with pytest.raises(Refused, match="connection to PostgreSQL was lost during to read"):
            taken(reader, "SELECT pg_sleep(60)", True)
    finally:
        stopping.join()
        reader.close()


@pytest.mark.parametrize("found", [True, False])
def test_rows_that_are_refused_are_a_sentence(
    postgresql: Cluster, monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    if not found:
        monkeypatch.setattr(libpq, "_put", lambda: None)
    writer = connect(connection_options(postgresql.url("postgres")))
    execute(writer, "CREATE TEMP TABLE taken (n int)")
    try:
        sql = "COPY taken FROM STDIN"
        assert copy_in(writer, sql, iter([b"1\n", b"", b"2\n" * 99999]), "the rows") == 100000
        with pytest.raises(Refused, match="refused the rows: invalid input syntax") as caught:
            copy_in(writer, sql, iter([b"1\n", b"x\n", *[b"2\n" * 99999] * 20]), "the rows")
        assert caught.value.state == "22P02"
    finally:
        writer.close()


@pytest.mark.parametrize("found", [True, False])
def test_a_server_that_goes_while_it_takes_rows_is_a_sentence(
    postgresql: Cluster, monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    if not found:
        monkeypatch.setattr(libpq, "_put", lambda: None)
    writer = connect(connection_options(postgresql.url("postgres")))

    def chunks() -> Iterator[bytes]:
        yield b"1\n"
        postgresql.end_connection(writer.info.backend_pid)
        for _ in range(100):
            yield b"2\n" * 99999

    execute(writer, "CREATE TEMP TABLE taken (n int)")
    try:
        with pytest.raises(Refused, match="connection to PostgreSQL was lost during the rows"):
            copy_in(writer, "COPY taken FROM STDIN", chunks(), "the rows")
    finally:
        writer.close()


def test_functions_that_libpq_does_not_have_are_missed() -> None:
    with pytest.raises(OSError, match="not to be found"):
        libpq.addresses("PQnosuchfunction")
