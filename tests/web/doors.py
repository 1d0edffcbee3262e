"""A running server on a store, for the tests of its doors."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from muniment.repository import Session, Source, Store

BASE = "http://127.0.0.1:8180"  # whatever the port: answers can be compared
OBJECTS = 1205  # more than two pages
BINARY = bytes(range(256)) * 4096


def make_store(folder: Path) -> None:
    """A store with many small objects on two tapes, two versions of one, and a larger file."""
    with Store.create(folder, series="db.example.ch") as store:
        with Session(store) as session:
            for number in range(OBJECTS - 5):
                data = f"object {number}\n".encode()
                session.add(
                    [Source(f"file{number}.txt", data, "text/plain")],
                    contents=[f"urn:example:{number}"],
                    metadata=[("title", f"<{number}> & more")],
                )
        with Session(store, document="mets") as session:
            session.add([Source("f.txt", b"changed\n", "text/plain")], contents=["urn:example:3"])
            session.add(
                [Source("big.bin", BINARY, "application/octet-stream")],
                contents=["urn:example:big"],
            )
            session.add(
                [Source("a.txt", b"a", "text/plain"), Source("b.png", b"b", "image/png")],
                contents=["urn:example:folder"],
            )
            session.add([Source("x.html", b"<p>x", "text/html")], contents=["urn:example:page"])
            session.add([Source("e.txt", b"", "text/plain")], contents=["urn:example:empty"])


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Run ``muniment serve`` as users do; stop it as a service manager does."""
    home = () if "--base-url" in options else ("--base-url", BASE)
    command = [
        sys.executable,
        "-m",
        "muniment",
        "serve",
        str(folder),
        "--port",
        "0",
        *home,
        *options,
    ]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            match = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
            assert match, (line, server.stderr and server.stderr.read())
            yield match[0].rstrip("/"), int(match[1])
        finally:
            server.terminate()
            _, errors = server.communicate(timeout=30)
    assert "Traceback" not in errors, errors


def raw(port: int, data: bytes) -> bytes:
    """Send bytes, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(data)
        parts = []
        with contextlib.suppress(ConnectionError, TimeoutError):
            while part := connection.recv(65536):
                parts.append(part)
    return b"".join(parts)
