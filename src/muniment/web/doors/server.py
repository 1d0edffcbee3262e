"""The HTTP server: one whose parser keeps the request target as it came."""

from __future__ import annotations

import resource
import socket
import threading
import time
from typing import Any

import uvicorn

from muniment.errors import MunimentError
from muniment.web.doors.protocol import patient

__all__ = ["allow_many_files", "check_parser", "configured"]

_PROBE = b"pdi://self.test.ch/2001/01/01/a%2eb.text.1#0,5"
_SECONDS = 10.0
_FILES = 16_384


def configured(app: Any, patience: float = 30.0) -> uvicorn.Config:
    """Return the settings of the server; h11 is the parser that keeps ``pdi://`` targets."""
    return uvicorn.Config(
        app,
        http=patient(patience),
        loop="asyncio",  # whose transports send files
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=32768,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=20,
    )


def allow_many_files() -> None:
    """Let this process open as many files and connections as it may: the usual limit is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def check_parser() -> None:
    """Send a name in absolute form through a server on loopback; refuse one that loses it."""
    seen: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(scope["raw_path"])
            head = {"type": "http.response.start", "status": 204, "headers": []}
            await send(head)
            await send({"type": "http.response.body", "body": b""})

    config = configured(app)
    config.lifespan = "off"
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
        thread.start()
        _send_probe(listener.getsockname())
        server.should_exit = True
        thread.join(_SECONDS)
    if seen != [_PROBE]:
        raise MunimentError("the HTTP parser does not keep the target of GET pdi://…; use h11")


def _send_probe(address: Any) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            with socket.create_connection(address, 1) as probe:
                head = b"GET " + _PROBE + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                probe.sendall(head)
                while probe.recv(4096):
                    pass
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
