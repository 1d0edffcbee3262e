"""The routes of a store's pages, and the cookie in which a browser keeps its token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from muniment.repository import Store
from muniment.repository.tokens import check_token
from muniment.web.app import answered, archive_routes
from muniment.web.doors.answers import body_of
from muniment.web.doors.desk import Desk
from muniment.web.identifier_page import identifier_page, identifiers_page
from muniment.web.page import Page, render
from muniment.web.registry_page import entry_page, registry_page
from muniment.web.store_pages import health_page, search_store_page, store_home_page, token_page
from muniment.web.store_site import COOKIE

__all__ = ["store_routes"]

Make = Callable[[Request, Store], Page]
_PAGES: tuple[tuple[str, Make], ...] = (
    ("/", store_home_page),
    ("/search", search_store_page),
    ("/identifiers", identifiers_page),
    ("/identifiers/{name:path}", identifier_page),
    ("/registry", registry_page),
    ("/registry/{kind}/{name}", entry_page),
    ("/health", health_page),
    ("/token", token_page),
)


def store_routes() -> list[Route]:
    """The pages of a store and of the archives in it."""
    return [
        Route("/token", _show_token, methods=["POST"]),
        *(Route(path, _page(make)) for path, make in _PAGES),
        *archive_routes(),
    ]


def _page(make: Make) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        desk: Desk = request.app.state.desk
        return await desk.ask(
            lambda store: answered(request, lambda: render(request, make(request, store)))
        )

    return endpoint


async def _show_token(request: Request) -> Response:
    """Keep a token in the browser, or forget it; scripts and other sites cannot see it."""
    desk: Desk = request.app.state.desk
    form = parse_qs((await body_of(request)).decode("utf-8", "replace"))
    given = form.get("token", [""])[0].strip()
    back = RedirectResponse("/token", 303)
    secure = desk.base.startswith("https:")
    if not given:
        back.delete_cookie(COOKIE, path="/", secure=secure, httponly=True, samesite="strict")
        return back
    known = await desk.ask(lambda store: check_token(store.names, given))
    if known is None:
        return RedirectResponse("/token?refused=1", 303)
    back.set_cookie(
        COOKIE, given, max_age=8 * 3600, path="/", secure=secure, httponly=True, samesite="strict"
    )
    return back
