"""The web application: every route on one screen, and the rules that hold for all of them."""

from __future__ import annotations

import logging
import mimetypes
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from muniment.errors import (
    FragmentError,
    IdentifierError,
    MunimentError,
    NotFound,
    QueryError,
    UsageError,
)
from muniment.web import archive_pages, console_page, describe_page, diagram_page, object_page
from muniment.web.citing import cite_page
from muniment.web.doors.answers import Refusal
from muniment.web.page import Page, render, text_of
from muniment.web.row_page import row_page
from muniment.web.search_page import search_page
from muniment.web.site import Site
from muniment.web.table_page import table_page

__all__ = ["Endpoint", "Guard", "answered", "archive_routes", "create_app", "static_file"]

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "media-src 'self'; frame-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_ENCODED = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
_ONE_TABLE = "/a/{archive}/t/{schema}/{table}"

PagesByPath = tuple[tuple[str, Callable[[Request], Page]], ...]
PAGES: PagesByPath = (
    ("/a/{archive}", archive_pages.archive_page),
    ("/a/{archive}/s/{schema}", archive_pages.schema_page),
    ("/a/{archive}/v/{schema}/{view}", archive_pages.view_page),
    ("/a/{archive}/r/{schema}/{routine}", archive_pages.routine_page),
    ("/a/{archive}/people", archive_pages.people_page),
    ("/a/{archive}/progress", archive_pages.progress_page),
    ("/a/{archive}/diagram", diagram_page.diagram_page),
    ("/a/{archive}/search", search_page),
    ("/a/{archive}/sql", console_page.console_page),
    ("/a/{archive}/describe", describe_page.describe_page),
    ("/a/{archive}/cite/{schema}/{table}", cite_page),
    (_ONE_TABLE, table_page),
    (f"{_ONE_TABLE}/{{row}}", row_page),
    (f"{_ONE_TABLE}/{{row}}/{{column}}", object_page.object_page),
)
FILES: tuple[tuple[str, Callable[[Request], Response]], ...] = (
    ("/a/{archive}/sql/download", console_page.download_result),
    (f"{_ONE_TABLE}/{{row}}/{{column}}/raw", object_page.raw_object),
)


def create_app(site: Site, hosts: tuple[str, ...] = ()) -> Starlette:
    """Return the application for a site; ``hosts`` are the names it answers to, if not all."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> Any:
        site.start()
        try:
            yield
        finally:
            await run_in_threadpool(site.close)

    app = Starlette(
        routes=[
            Route("/", _home),
            Route("/healthz", lambda _request: Response("ok\n", media_type="text/plain")),
            Route("/static/{name}", static_file),
            *archive_routes(),
        ],
        lifespan=lifespan,
        middleware=[Middleware(Guard, hosts=hosts), Middleware(GZipMiddleware)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.state.site = site
    return app


def archive_routes() -> list[Route]:
    """The pages of archives; ``app.state.site`` knows which there are."""
    return [
        Route("/a/{archive}/describe", _described, methods=["POST"]),
        *(Route(path, _page(make)) for path, make in PAGES),
        *(Route(path, _file(make)) for path, make in FILES),
    ]


Endpoint = Callable[[Request], Awaitable[Response]]


async def _described(request: Request) -> Response:
    return await describe_page.save_descriptions(
        request, lambda asked, make: run_in_threadpool(answered, asked, make)
    )


def _page(make: Callable[[Request], Page]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(answered, request, lambda: render(request, make(request)))

    return endpoint


def _file(make: Callable[[Request], Response]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(answered, request, lambda: make(request))

    return endpoint


def answered(request: Request, make: Callable[[], Response]) -> Response:
    """Turn errors that a person can act on into pages that say so."""
    try:
        return make()
    except Refusal as refusal:
        titles = {401: "error_token", 403: "error_closed", 410: "error_withdrawn",
                  451: "error_closed"}  # fmt: skip
        title = titles.get(refusal.status, "error_failed")
        page = _error(request, refusal.status, title, refusal.message)
        page.headers.update(refusal.headers)
        return page
    except NotFound as error:
        return _error(request, 404, "error_not_found", str(error))
    except (UsageError, QueryError, IdentifierError, FragmentError) as error:
        return _error(request, 400, "error_bad_request", str(error))
    except (MunimentError, OSError) as error:
        return _error(request, 500, "error_failed", str(error))
    except Exception:
        logging.getLogger("muniment.web").exception("a page could not be made")
        return _error(request, 500, "error_failed", text_of("error_unknown"))


def _error(request: Request, status: int, title: str, sentence: str) -> Response:
    facts = {"error": text_of(title), "message": sentence[:1000], "status": status}
    return render(request, Page("error.html", facts, status=status))


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    title = "error_not_found" if status == 404 else "error_bad_request"
    return _error(request, status, title, text_of("error_no_page" if status == 404 else title))


async def _failed(request: Request, _error_: Exception) -> Response:
    return _error(request, 500, "error_failed", text_of("error_unknown"))


async def _home(request: Request) -> Response:
    site: Site = request.app.state.site
    if len(site.archives) == 1 and "format" not in request.query_params:
        from muniment.web.urls import Urls

        return RedirectResponse(Urls(next(iter(site.archives.values()))).home, 303)
    return await _page(archive_pages.home_page)(request)


async def static_file(request: Request) -> Response:
    """Return a file of the pages' own."""
    name = request.path_params["name"]
    if name not in ("style.css", "muniment.js"):
        raise HTTPException(404)
    data = (files("muniment.web") / "static" / name).read_bytes()
    kind = mimetypes.guess_type(name)[0]
    return Response(data, media_type=kind, headers={"Cache-Control": "max-age=3600"})


class Guard:
    """Sets the headers of every answer, and answers only to its own name."""

    def __init__(self, app: Any, hosts: tuple[str, ...]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._hosts and _host(scope) not in self._hosts:
            refused = Response("not the name of this server\n", 421, media_type="text/plain")
            await refused(scope, receive, send)
            return

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = dict(message["headers"])  # names are in lower case, as ASGI has it
                more = [pair for pair in _ENCODED if pair[0] not in present]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await self._app(scope, receive, send_guarded)


def _host(scope: Any) -> str:
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1").rpartition(":")
    return host[0] if host[1] and host[2].isdecimal() else "".join(host)
