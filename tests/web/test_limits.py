"""Clients that are slow, too many, or say things that can be read in two ways."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from doors import serving

from muniment.repository import Session, Source, Store
from muniment.repository.tokens import create_token

PATIENCE = 1.5
SIZE = 24 << 20
HOST = b"Host: localhost\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("limits") / "store"
    with Store.create(made, series="db.example.ch") as store, Session(store) as session:
        session.add(
            [Source("big.bin", bytes(SIZE), "application/octet-stream")],
            contents=["urn:example:big"],
        )
    return made


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    with serving(folder, "--patience", str(PATIENCE)) as (_, number):
        yield number


@pytest.fixture(scope="module")
def key(folder: Path) -> str:
    with Store(folder) as store:
        return create_token(store.names, "a", ["store"], "me", 1)[1]


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 20)


def rest_of(connection: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def statuses(data: bytes) -> list[int]:
    return [int(each) for each in re.findall(rb"(?m)^HTTP/1\.[01] (\d{3}) ?", data)]


def asked(port: int, *parts: bytes) -> list[int]:
    """Send a request in parts, and return the statuses of all answers until the end."""
    with connect(port) as connection:
        for part in parts:
            connection.sendall(part)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        return statuses(rest_of(connection))


# Slow clients


def test_who_says_nothing_is_left_alone_only_for_a_while(port: int) -> None:
    started = time.monotonic()
    with connect(port) as connection:
        assert rest_of(connection) == b""
    assert PATIENCE * 0.8 < time.monotonic() - started < PATIENCE + 8


def test_headers_that_trickle_in_come_to_an_end(port: int) -> None:
    started, head = time.monotonic(), b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Slow: "
    with connect(port) as connection:
        connection.settimeout(0.1)
        answer = b""
        for byte in head + b"a" * 1000:
            with contextlib.suppress(ConnectionError):
                connection.sendall(bytes([byte]))
            try:
                answer = connection.recv(1000)
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
    assert statuses(answer) == [408]
    assert time.monotonic() - started < PATIENCE + 8


def test_the_next_request_of_a_connection_has_no_more_time(port: int) -> None:
    whole = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    with connect(port) as connection:
        connection.sendall(whole + b"GET /healthz HT")
        data = rest_of(connection)
    assert statuses(data) == [200, 408]


@pytest.mark.parametrize("target", [b"POST /oai", b"POST /openurl"])
def test_forms_that_trickle_in_come_to_an_end(port: int, target: bytes) -> None:
    started = time.monotonic()
    head = target + b" HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: 1000\r\n\r\n"
    with connect(port) as connection:
        connection.settimeout(0.2)
        connection.sendall(head)
        answer = b""
        while time.monotonic() - started < PATIENCE + 8:
            with contextlib.suppress(TimeoutError, ConnectionError):
                if answer := connection.recv(1000):
                    break
            connection.sendall(b"a")
    assert statuses(answer) == [408]


def test_documents_that_stall_come_to_an_end(port: int, key: str, folder: Path) -> None:
    head = (
        b"PUT /pdi/db.example.ch/ HTTP/1.1\r\n" + HOST + b"Content-Type: text/plain\r\n"
        b"Authorization: Bearer " + key.encode() + b"\r\nContent-Length: 1000\r\n\r\nhalf"
    )
    with connect(port) as connection:
        connection.sendall(head)
        assert statuses(rest_of(connection)) == [408]
    with Store(folder) as store:
        assert store.catalogue.counts()["objects"] == 1


def test_who_does_not_read_on_loses_the_connection(port: int) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", port))
        target = b"/openurl?url_ver=Z39.88-2004&rft_id=urn:example:big"
        connection.sendall(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        time.sleep(PATIENCE + 2.5)
        assert len(rest_of(connection)) < SIZE


def test_who_reads_slowly_but_reads_gets_everything(port: int) -> None:
    with connect(port) as connection:
        target = b"/openurl?url_ver=Z39.88-2004&rft_id=urn:example:big"
        connection.sendall(
            b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
        )
        received, started = 0, time.monotonic()
        while part := connection.recv(1 << 20):
            received += len(part)
            if time.monotonic() - started < PATIENCE * 1.5:
                time.sleep(0.1)
    assert received > SIZE


# Too many


def test_too_many_requests_get_503_and_others_are_answered_afterwards(folder: Path) -> None:
    head = b"POST /oai HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: 10\r\n\r\n"
    with serving(folder, "--workers", "1") as (base, port), contextlib.ExitStack() as stack:
        for _ in range(512):
            stack.enter_context(connect(port)).sendall(head)
        deadline = time.monotonic() + 20
        while True:
            answer = httpx2.get(f"{base}/healthz")
            if answer.status_code == 503 or time.monotonic() > deadline:
                break
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        stack.close()
        while (answer := httpx2.get(f"{base}/healthz")).status_code == 503:
            assert time.monotonic() < deadline
        assert answer.status_code == 200


# The end


def test_answers_under_way_are_finished_before_the_server_ends(folder: Path) -> None:
    command = [sys.executable, "-m", "muniment", "serve", str(folder), "--port", "0"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as server:
        assert server.stdout is not None
        match = re.search(r"127\.0\.0\.1:(\d+)/", server.stdout.readline())
        assert match
        with connect(int(match[1])) as connection:
            target = b"/openurl?url_ver=Z39.88-2004&rft_id=urn:example:big"
            connection.sendall(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
            received = len(connection.recv(1000))
            server.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            with pytest.raises(OSError), connect(int(match[1])):
                pass
            received += len(rest_of(connection))
        _, errors = server.communicate(timeout=30)
    assert received > SIZE
    assert "Traceback" not in errors


def test_the_log_has_a_line_of_json_for_each_request(folder: Path) -> None:
    command = [
        sys.executable, "-m", "muniment", "serve", str(folder), "--port", "0", "--access-log",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as server:
        assert server.stdout is not None
        match = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
        assert match
        headers = {"Authorization": "Bearer muniment_secret"}
        httpx2.get(f"{match[0]}/healthz")
        httpx2.get(f'{match[0]}/nothing"%0a{{"injected', headers=headers)
        server.terminate()
        _, errors = server.communicate(timeout=30)
    lines = [json.loads(line) for line in errors.splitlines() if line[0] == "{"]
    assert [line["status"] for line in lines] == [200, 401]
    assert all(line["client"] == "127.0.0.1" and line["ms"] >= 0 for line in lines)
    assert "muniment_secret" not in errors


# What can be read in two ways

BODY = b"0\r\n\r\nGET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (b"Content-Length: 5\r\n" + CHUNKED, BODY, 400),
        (CHUNKED + b"Content-Length: 48\r\n", BODY, 400),
        (CHUNKED + b"Transfer-Encoding: identity\r\n", BODY, 400),
        (b"Transfer-Encoding: xchunked\r\n", BODY, 400),
        (b"Transfer-Encoding: chunked, identity\r\n", BODY, 400),
        (b"Transfer-Encoding: \x0bchunked\r\n", BODY, 400),
        (b"Transfer-Encoding : chunked\r\n", BODY, 400),
        (b"Transfer-Encoding\x00: chunked\r\n", BODY, 400),
        (b"Content-Length: 5\r\nContent-Length: 6\r\n", b"verb=x", 400),
        (b"Content-Length: +5\r\n", b"verb=", 400),
        (b"Content-Length: -5\r\n", b"verb=", 400),
        (b"Content-Length: 0x5\r\n", b"verb=", 400),
        (b"Content-Length: 5 5\r\n", b"verb=", 400),
        (b"Content-Length: " + b"9" * 40 + b"\r\n", b"verb=", 400),
        (b"Content-Length : 5\r\n", b"verb=", 400),
        (b"X-A: b\rContent-Length: 5\r\n", b"verb=", 400),
        (b"X-A: b\x00c\r\n", b"", 400),
        (b": b\r\n", b"", 400),
        (b"no colon\r\n", b"", 400),
        (CHUNKED, b"ZZ\r\nx\r\n0\r\n\r\n", 400),
        (CHUNKED, b"-1\r\nx\r\n0\r\n\r\n", 400),
        (CHUNKED, b"3\r\nabcX0\r\n\r\n", 400),
        (CHUNKED, b"3\r\nab", 400),
        (CHUNKED, b"F" * 30 + b"\r\nx", 400),
        (CHUNKED, b"0" * 40000 + b"\r\n", 400),
        (b"Host: other.example\r\n", b"", 400),
    ],
)
def test_what_two_readers_would_read_differently_is_refused(
    port: int, head: bytes, body: bytes, status: int
) -> None:
    answered = asked(port, b"POST /oai HTTP/1.1\r\n" + HOST + FORM + head + b"\r\n" + body)
    assert answered == [status]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /healthz HTTP/9.9\r\n" + HOST + b"\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"POST /oai HTTP/1.0\r\n" + HOST + CHUNKED + b"\r\n0\r\n\r\n", 400),
        (b"GET  /healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET /he althz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET /\x00 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"G(T /healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"CONNECT localhost:22 HTTP/1.1\r\n" + HOST + b"\r\n", 501),
        (b"GET http://other.example/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 421),
        (b"GET http://localhost/healthz HTTP/1.1\r\nHost: other.example\r\n\r\n", 200),
        (b"GET http://localhost@other.example/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 421),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 9000 + b"\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 40000 + b"\r\n\r\n", 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00", 400),
        (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 204),
        (b"GET /../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n", 404),
        (b"GET /static/../app.py HTTP/1.1\r\n" + HOST + b"\r\n", 404),
        (b"GET /static/..%2fapp.py HTTP/1.1\r\n" + HOST + b"\r\n", 404),
        (b"GET /static/%2e%2e%2fapp.py HTTP/1.1\r\n" + HOST + b"\r\n", 404),
        (b"GET /oai/..%2f..%2fstore.json?verb=Identify HTTP/1.1\r\n" + HOST + b"\r\n", 404),
        (b"GET /openurl/%2fetc%2fpasswd?url_ver=Z39.88-2004&rft_id=a HTTP/1.1\r\n" + HOST
         + b"\r\n", 404),
        (b"GET /openurl?url_ver=Z39.88-2004&rft_id=content/../../store.json HTTP/1.1\r\n" + HOST
         + b"\r\n", 404),
        (b"GET /openurl?url_ver=Z39.88-2004&rft_id=" + b"a" * 8000 + b" HTTP/1.1\r\n" + HOST
         + b"\r\n", 404),
        (b"GET /locate?id=%ff HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET /locate?id=a%0d%0aSet-Cookie:%20b HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    ],
)  # fmt: skip
def test_odd_requests_have_one_answer(port: int, request_: bytes, status: int) -> None:
    with connect(port) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(request_)
            connection.shutdown(socket.SHUT_WR)
        data = rest_of(connection)
    assert statuses(data) == [status]
    head = data.partition(b"\r\n\r\n")[0].lower()
    assert b"set-cookie" not in head
    assert b"traceback" not in data.lower()


def test_a_body_that_nobody_asked_for_is_no_second_request(port: int) -> None:
    inner = b"GET /metrics HTTP/1.1\r\n" + HOST + b"\r\n"
    head = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(inner)
    assert asked(port, head + inner) == [200]
    assert asked(port, head + inner + inner) == [200, 200]


def test_a_refused_document_is_not_asked_for(port: int) -> None:
    head = b"PUT /pdi/db.example.ch/ HTTP/1.1\r\n" + HOST
    head += b"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n"
    with connect(port) as connection:
        connection.sendall(head)
        assert statuses(connection.recv(1000)) == [401]


def test_counts_for_operators(port: int) -> None:
    assert httpx2.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    text = httpx2.get(f"http://127.0.0.1:{port}/metrics").text
    for name in ("requests_total", "request_seconds_total", "response_bytes_total"):
        assert f"# TYPE muniment_{name} counter" in text
    assert re.search(
        r'muniment_requests_total\{door="healthz",method="GET",status="200"\} \d+', text
    )
    assert httpx2.get(f"http://127.0.0.1:{port}/healthz").text == "ok\n"
