"""In front of the doors: the raw request target, limits, counts, and the log."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_to_bytes

from muniment.web.doors.answers import Refusal, refuse
from muniment.web.doors.board import Board

__all__ = ["Front"]

_HTTP = re.compile(rb"(?i)https?://([^/?#]*)")
_PDI = re.compile(rb"(?i)/?(?:urn:)?pdi:")
_DOORS = (
    "oai", "openurl", "locate", "pdi", "uri-res", "timemap", "api", "healthz", "metrics", "static",
    "a", "identifiers", "registry", "search", "health", "token",
)  # fmt: skip
_LONGEST = 8192  # bytes of a request target
_HEADERS = 32768  # bytes of all headers
_MOST = 512  # requests at the same time
_SOON = 0.5  # seconds until other processes see the counts
log = logging.getLogger("muniment.access")


class Front:
    """Wraps the application; everything here holds for every request."""

    def __init__(self, app: Any, board: Board | None = None) -> None:
        self._app = app
        self._board = board or Board(1)
        self._due = False  # whether the counts will soon be on the board
        self.active = 0
        self.answers: Counter[tuple[str, str, int]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.octets: Counter[str] = Counter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, sent = time.monotonic(), 0, 0

        async def counted(message: Any) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent += len(message.get("body", b"")) + message.get("count", 0)
            await send(message)

        door = "other"
        self.active += 1
        try:
            scope, door = _routed(scope)
            if self.active > _MOST:
                raise Refusal(503, "too many requests at once; try again", Retry_After="5")
            await self._app(scope, receive, counted)
        except Refusal as refusal:
            await refuse(refusal)(scope, receive, counted)
        finally:
            self.active -= 1
            self._note(scope, door, status, sent, time.monotonic() - started)

    def _note(self, scope: Any, door: str, status: int, sent: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self.answers[door, method, status] += 1
        self.seconds[door] += seconds  # type: ignore[assignment]
        self.octets[door] += sent
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(_SOON, self._publish)
        if log.isEnabledFor(logging.INFO):
            facts = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "client": (scope.get("client") or ("",))[0],
                "method": scope["method"],
                "target": scope.get("raw_path", b"").decode("latin-1")[:500],
                "status": status,
                "bytes": sent,
                "ms": round(seconds * 1000, 1),
            }
            log.info("%s", json.dumps(facts))

    def _publish(self) -> None:
        """Let the other processes of the server see the counts of this one."""
        self._due = False
        answers = [[*key, number] for key, number in self.answers.items()]
        self._board.write([answers, dict(self.seconds), dict(self.octets), self.active])

    def metrics(self) -> str:
        """The counts of all processes as Prometheus reads them."""
        self._publish()
        answers: Counter[tuple[str, str, int]] = Counter()
        seconds: Counter[str] = Counter()
        octets: Counter[str] = Counter()
        active = 0
        for counted, taken, sent, at_work in self._board.read():
            for door, method, status, number in counted:
                answers[door, method, status] += number
            seconds.update(taken)
            octets.update(sent)
            active += at_work
        lines = ["# TYPE muniment_requests_total counter"]
        for (door, method, status), number in sorted(answers.items()):
            labels = f'door="{door}",method="{method}",status="{status}"'
            lines.append(f"muniment_requests_total{{{labels}}} {number}")
        lines.append("# TYPE muniment_request_seconds_total counter")
        lines += [
            f'muniment_request_seconds_total{{door="{door}"}} {number:.6f}'
            for door, number in sorted(seconds.items())
        ]
        lines.append("# TYPE muniment_response_bytes_total counter")
        lines += [
            f'muniment_response_bytes_total{{door="{door}"}} {number}'
            for door, number in sorted(octets.items())
        ]
        lines += ["# TYPE muniment_requests_active gauge", f"muniment_requests_active {active}"]
        return "\n".join(lines) + "\n"


_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT"}


def _routed(scope: Any) -> tuple[Any, str]:
    """Return the request with the path that leads to its door, and the name of the door."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    if len(raw) + len(scope["query_string"]) > _LONGEST:
        raise Refusal(414, f"the address may have {_LONGEST} bytes")
    if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > _HEADERS:
        raise Refusal(431, f"the headers may have {_HEADERS} bytes", Connection="close")
    _check_framing(scope)
    if _PDI.match(raw):
        # A name in absolute form addresses itself: Host says nothing (RFC 9112, 3.2.2).
        headers = [(k, v) for k, v in scope["headers"] if k != b"host"]
        headers.append((b"host", b"127.0.0.1"))
        asked = {"headers": headers, "headers as they came": scope["headers"]}
        return {**scope, "path": "/pdi/", "raw_path": raw, **asked}, "pdi"
    if match := _HTTP.match(raw):
        raw = raw[match.end() :] or b"/"
        path = unquote_to_bytes(raw).decode("utf-8", "replace")
        # The host of the address counts, not that of the header (RFC 9112, 3.2.2).
        headers = [(k, v) for k, v in scope["headers"] if k != b"host"]
        headers.append((b"host", match[1].rpartition(b"@")[2]))
        scope = {**scope, "path": path, "raw_path": raw, "headers": headers}
    if raw == b"*" and scope["method"] == "OPTIONS":
        return {**scope, "path": "/healthz"}, "healthz"
    top = scope["path"].strip("/").partition("/")[0]
    return scope, top if top in _DOORS else "other"


def _check_framing(scope: Any) -> None:
    """Refuse a request whose end two readers may see at two places (RFC 9112, 6.1)."""
    names = {name for name, _ in scope["headers"]}
    if not scope["http_version"].startswith("1."):
        raise Refusal(505, "this server speaks HTTP/1.1", Connection="close")
    if b"transfer-encoding" in names and (
        b"content-length" in names or scope["http_version"] == "1.0"
    ):
        sentence = "a request has a Content-Length or, since HTTP/1.1, a Transfer-Encoding"
        raise Refusal(400, sentence, Connection="close")
    if scope["method"] == "CONNECT":
        raise Refusal(501, "this is not a proxy", Connection="close")
