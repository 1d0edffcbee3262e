"""Names that others resolve: asked for there and passed on, or the client is sent (draft 3.8.3-4).

Only series that the operator has named are asked for elsewhere, and only at the address named for
them: nobody can make this server fetch anything else. ``Via`` shows the way a request has come; a
server that finds itself in it cuts the loop.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from muniment.errors import IdentifierError, NotFound, UsageError
from muniment.identifiers import Pdi, parse_series
from muniment.names.binding import day_number
from muniment.repository import Store
from muniment.repository.naming import is_pdi
from muniment.repository.tokens import check_token
from muniment.web.doors.answers import Refusal, refuse, safe_text
from muniment.web.doors.desk import Desk
from muniment.web.doors.pdi import spelled

__all__ = ["HOW", "Elsewhere", "Upstream", "Upstreams", "parse_upstream", "with_upstream"]

HOW = ("http", "thttp", "redirect")
_LONGEST_WAY = 8  # servers that a request may have passed
_HOP_BY_HOP = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade",
}  # fmt: skip
# What another server says about itself, or to a browser about the whole site, is not ours to say.
_NOT_OURS = {
    "set-cookie", "strict-transport-security", "clear-site-data", "alt-svc", "server", "date",
    "content-security-policy", "service-worker-allowed", "access-control-allow-origin",
}  # fmt: skip
_PRIVATE = {"authorization", "cookie", "content-length"}  # of this server, if one reads
_SANDBOX = "default-src 'none'; sandbox"
_TIMEOUT = httpx2.Timeout(60.0, connect=10.0, pool=10.0)

Door = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Upstream:
    """Who resolves the names of some days of a series, and how they are reached."""

    series: str  # *.gov.us: and all below it
    first: int
    last: int
    how: str
    url: str

    def covers(self, pdi: Pdi) -> bool:
        """Whether a name is one of theirs."""
        if self.series.startswith("*."):
            named = pdi.series.endswith(self.series[1:])
        else:
            named = pdi.series == self.series
        return named and not pdi.wildcards and self.first <= day_number(pdi) <= self.last


def parse_upstream(where: str, how: str, url: str) -> Upstream:
    """Return what the operator named: SERIES or SERIES:FIRST-LAST, how, and an address.

    >>> parse_upstream("oma.eop.gov.us:19970101-19971231", "thttp", "http://localhost:1/").last
    19971231
    """
    series, _, days = where.partition(":")
    wild = "*." if series.startswith("*.") else ""
    first, _, last = (days or "00010101-99991231").partition("-")
    if not (first.isdecimal() and last.isdecimal() and len(first) == len(last) == 8):
        raise UsageError(f"{where}: an interval is YYYYMMDD-YYYYMMDD")
    if how not in HOW:
        raise UsageError(f"{how}: an upstream is asked by {', '.join(HOW)}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UsageError(f"{url} is no address of a resolver: http://HOST/ or https://HOST/")
    # Below a wildcard the country alone may stand; a component makes it a series for the check.
    name = parse_series(f"x.{series[2:]}")[2:] if wild else parse_series(series)
    return Upstream(wild + name, int(first), int(last), how, url.rstrip("/"))


class Upstreams:
    """All of them, the first that covers a name first, and the connections to them."""

    def __init__(self, known: tuple[Upstream, ...], identity: str) -> None:
        self._known = known
        self.name = f"muniment-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
        self._client: httpx2.AsyncClient | None = None

    def __bool__(self) -> bool:
        return bool(self._known)

    def find(self, pdi: Pdi) -> Upstream | None:
        """Return who resolves a name, None if nobody was named."""
        return next((each for each in self._known if each.covers(pdi)), None)

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()

    async def ask(self, upstream: Upstream, request: Request, pdi: Pdi, service: str) -> Response:
        """Pass a request on, and the answer back."""
        via = self._via(request)
        if upstream.how == "redirect":
            target = f"{upstream.url}/uri-res/{service or 'N2R'}?{_escaped(pdi)}"
            message = f"{pdi} is resolved by {upstream.url}"
            raise Refusal(307, message, Location=safe_text(target))
        reads = request.method in ("GET", "HEAD")
        method, target, raw = _translated(upstream, request.method, pdi, service)
        headers = [
            (name, value)
            for name, value in request.headers.items()
            if name not in _HOP_BY_HOP | {"host", "via"} | (_PRIVATE if reads else set())
        ]
        headers.append(("via", via))
        if "accept-encoding" not in request.headers:
            headers.append(("accept-encoding", "identity"))
        body = None if reads or request.method == "OPTIONS" else request.stream()
        asked = self._http().build_request(
            method, target, headers=headers, content=body,
            extensions={"target": raw} if raw else {},
        )  # fmt: skip
        answer = await self._sent(asked, upstream)
        return _passed(answer, request.method, via)

    def _via(self, request: Request) -> str:
        """Return the way that the request has come, with ourselves at its end."""
        given = request.headers.getlist("via")
        way = [step.strip() for line in given for step in line.split(",") if step.strip()]
        names = [step.split()[1] if len(step.split()) > 1 else "" for step in way]
        if self.name in names or len(way) >= _LONGEST_WAY:
            raise Refusal(508, "the resolvers send this name round in a circle")
        return ", ".join([*way, f"{request.scope.get('http_version', '1.1')} {self.name}"])

    def _http(self) -> httpx2.AsyncClient:
        if self._client is None:
            limits = httpx2.Limits(max_connections=100, max_keepalive_connections=20)
            self._client = httpx2.AsyncClient(timeout=_TIMEOUT, limits=limits, trust_env=False)
        return self._client

    async def _sent(self, asked: httpx2.Request, upstream: Upstream) -> httpx2.Response:
        try:
            return await self._http().send(asked, stream=True, follow_redirects=False)
        except httpx2.TimeoutException:
            raise Refusal(504, f"{upstream.url} does not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise Refusal(502, f"{upstream.url} cannot be reached") from None


def _escaped(pdi: Pdi) -> str:
    return str(pdi).replace("#", "%23")


def _translated(
    upstream: Upstream, method: str, pdi: Pdi, service: str
) -> tuple[str, str, bytes | None]:
    """Return method, address and request target for the protocol of an upstream."""
    if upstream.how == "thttp":
        if method not in ("GET", "HEAD"):
            raise Refusal(405, "a resolver by THTTP is only read", Allow="GET, HEAD")
        asked = service or ("N2R" if method == "GET" else "N2C")
        return "GET", f"{upstream.url}/uri-res/{asked}?urn:{_escaped(pdi)}", None
    if service and service.upper() not in ("N2R", "I2R"):
        raise NotFound(f"{upstream.url} answers for {pdi}, and only delivers it: ask N2R")
    if urlsplit(upstream.url).path:
        address = f"{upstream.url}/{_escaped(pdi).removeprefix('pdi://')}"
        return method, address, None
    # The name is the request target, as the draft has it: GET pdi://SERIES/… HTTP/1.1
    return method, f"{upstream.url}/", str(pdi).encode()


def _passed(answer: httpx2.Response, method: str, via: str) -> Response:
    """Return what another server said, without what it said to this connection alone."""
    said = {name.strip().lower() for name in answer.headers.get("connection", "").split(",")}
    dropped = _HOP_BY_HOP | _NOT_OURS | said
    response: Response
    if method == "HEAD" or answer.status_code in (204, 304):
        response = _Closing(answer)
    else:
        response = StreamingResponse(_octets(answer))
    response.status_code = answer.status_code
    response.raw_headers = [
        (name.lower(), value)
        for name, value in answer.headers.raw
        if name.lower().decode("latin-1") not in dropped
    ]
    response.headers.append("Via", via)
    response.headers["Content-Security-Policy"] = _SANDBOX
    return response


class _Closing(Response):
    """An answer without a body, whatever stands behind the headers."""

    def __init__(self, answer: httpx2.Response) -> None:
        super().__init__(None)
        self._answer = answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._answer.aclose()
        await super().__call__(scope, receive, send)


async def _octets(answer: httpx2.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.aiter_raw():
            yield chunk
    finally:
        await answer.aclose()


def with_upstream(door: Door) -> Door:
    """Return a door that answers what is known here, and passes on what others resolve."""

    async def opened(request: Request) -> Response:
        upstreams: Upstreams | None = request.app.state.upstreams
        pdi = _name(request) if upstreams else None
        found = upstreams.find(pdi) if upstreams and pdi else None
        if upstreams is None or found is None or pdi is None:
            return await door(request)
        service = request.path_params.get("service", "")
        try:
            return await door(request)
        except NotFound:
            return await upstreams.ask(found, request, pdi, service)
        except Refusal as refusal:
            if refusal.status not in (307, 404):
                raise
            return await upstreams.ask(found, request, pdi, service)

    return opened


class Elsewhere:
    """Passes on what is written under names that others give; their tokens are not ours."""

    def __init__(self, app: Any, doors: Starlette) -> None:
        self._app, self._doors = app, doors

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        upstreams: Upstreams | None = self._doors.state.upstreams
        if not upstreams or scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        request = Request({**scope, "app": self._doors, "path_params": {}}, receive, send)
        pdi = _name(request) if scope["path"].startswith("/pdi/") else None
        found = upstreams.find(pdi) if pdi else None
        try:
            if found is None or pdi is None or await self._is_ours(request, pdi):
                await self._app(scope, receive, send)
                return
            answer = await upstreams.ask(found, request, pdi, "")
        except Refusal as refusal:
            answer = refuse(refusal)
        await answer(scope, receive, send)

    async def _is_ours(self, request: Request, pdi: Pdi) -> bool:
        """Whether the series is of this server; a token of ours goes to nobody else."""
        text = request.headers.get("authorization", "").partition(" ")[2].strip()

        def known(store: Store) -> bool:
            if pdi.series in store.names.rules().series:
                return True
            if text and check_token(store.names, text) is not None:
                raise Refusal(403, f"the token is of this server, and {pdi.series} is not")
            return False

        desk: Desk = self._doors.state.desk
        return await desk.ask(known)


def _name(request: Request) -> Pdi | None:
    """Return the name that a request is about, if it is one PDI."""
    raw: bytes = request.scope["raw_path"]
    if "service" in request.path_params:
        raw = request.scope["query_string"]
        if not is_pdi(raw.decode("latin-1")):
            return None
    desk: Desk = request.app.state.desk
    try:
        return desk.store().names.read(spelled(raw))
    except (IdentifierError, Refusal):
        return None
