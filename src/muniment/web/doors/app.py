"""The application of ``muniment serve``: every door on one screen."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muniment.errors import MunimentError
from muniment.web.api.routes import api_routes
from muniment.web.app import Endpoint, Guard, static_file
from muniment.web.doors.answers import Refusal, refusal_of, refuse
from muniment.web.doors.board import Board
from muniment.web.doors.desk import Desk
from muniment.web.doors.front import Front
from muniment.web.doors.harvesting import oai
from muniment.web.doors.locating import locate
from muniment.web.doors.memento import timemap
from muniment.web.doors.openurl import openurl
from muniment.web.doors.pdi import METHODS, pdi
from muniment.web.doors.permission import Permission
from muniment.web.doors.thttp import uri_res
from muniment.web.doors.upstream import Elsewhere, Upstreams, with_upstream
from muniment.web.store_app import store_routes
from muniment.web.store_site import StoreSite

__all__ = ["create_doors"]

_FORMS = ["GET", "POST"]
_pdi, _uri_res = with_upstream(pdi), with_upstream(uri_res)


def create_doors(
    desk: Desk,
    hosts: tuple[str, ...] = (),
    board: Board | None = None,
    upstreams: Upstreams | None = None,
) -> Front:
    """Return the application for a store; ``hosts`` are the names it answers to, if not all."""

    site = StoreSite(desk)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> Any:
        try:
            yield
        finally:
            if upstreams:
                await upstreams.close()
            await run_in_threadpool(site.close)
            await run_in_threadpool(desk.close)

    app = Starlette(
        routes=[
            *store_routes(),
            Route("/healthz", _health, methods=["GET", "OPTIONS"]),
            Route("/metrics", _metrics),
            Route("/static/{name}", static_file),
            Route("/oai", oai, methods=_FORMS),
            Route("/oai/{tape}", oai, methods=_FORMS),
            Route("/openurl", openurl, methods=_FORMS),
            Route("/openurl/{arc}", openurl, methods=_FORMS),
            Route("/{arc}/openurl-aDORe4", openurl, methods=_FORMS),
            Route("/locate", locate),
            Route("/pdi/{name:path}", _pdi, methods=METHODS),
            Route("/timemap/{name:path}", timemap),
            Route("/uri-res/{service}", _uri_res, methods=_FORMS),
            *api_routes(),
        ],
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(
            (Refusal, HTTPException, MunimentError, Exception), _refused
        ),
    )
    inner = Elsewhere(Permission(_Shortcut(app), desk), app)
    front = Front(Guard(inner, hosts), board)
    app.state.desk, app.state.front, app.state.upstreams = desk, front, upstreams
    app.state.site = site
    return front


class _Shortcut:
    """Leads past the router to the doors at which programs knock thousands of times."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        found = _door(scope["path"]) if scope.get("method") == "GET" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        endpoint, scope["path_params"] = found
        scope["app"] = self._app
        request = Request(scope, receive, send)
        try:
            answer = await endpoint(request)
        except Exception as error:
            answer = await _refused(request, error)
        await answer(scope, receive, send)


def _door(path: str) -> tuple[Endpoint, dict[str, str]] | None:
    if path.startswith("/pdi/"):
        return _pdi, {}
    top, slash, rest = path[1:].partition("/")
    if "/" in rest or (slash and not rest) or (top, bool(slash)) not in _SHORT:
        return None
    endpoint, parameter = _SHORT[top, bool(slash)]
    return endpoint, {parameter: rest} if rest else {}


_SHORT: dict[tuple[str, bool], tuple[Endpoint, str]] = {
    ("oai", False): (oai, ""),
    ("oai", True): (oai, "tape"),
    ("openurl", False): (openurl, ""),
    ("openurl", True): (openurl, "arc"),
    ("locate", False): (locate, ""),
    ("uri-res", True): (_uri_res, "service"),
}


async def _refused(request: Request, error: Exception) -> Response:
    refusal = refusal_of(error)
    if refusal.status == 405 and request.method == "OPTIONS" and "Allow" in refusal.headers:
        return Response(None, 204, {"Allow": f"{refusal.headers['Allow']}, OPTIONS"})
    if refusal.status >= 500 and not isinstance(error, Refusal):
        logging.getLogger("muniment.web").error("%s: %s", type(error).__name__, error)
    return refuse(refusal, request.headers.get("accept", ""))


async def _health(request: Request) -> Response:
    """Whether the store can be read."""
    if request.method == "OPTIONS":
        whole = request.scope["raw_path"] == b"*"
        return Response(None, 204, {"Allow": "GET, HEAD, OPTIONS" + ", POST, PUT" * whole})
    desk: Desk = request.app.state.desk
    await desk.ask(lambda store: store.catalogue.state("complete"))
    return Response("ok\n", media_type="text/plain")


async def _metrics(request: Request) -> Response:
    return Response(request.app.state.front.metrics(), media_type="text/plain; version=0.0.4")
