"""The API's place in the application: one route per path."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muniment.web.api import OPERATIONS
from muniment.web.api.document import document
from muniment.web.api.operations import endpoint
from muniment.web.doors.desk import Desk

__all__ = ["api_routes"]

Endpoint = Callable[[Request], Awaitable[Response]]


def api_routes() -> list[Route]:
    """Return the routes of all operations that are answered here, and of their description."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for operation in OPERATIONS:
        if operation.handler is not None:
            paths.setdefault(operation.path, {})[operation.method] = endpoint(operation)
    # A name may hold slashes.
    routes = [
        Route(path.replace("objects/{name}", "objects/{name:path}"), _dispatched(methods),
              methods=list(methods))
        for path, methods in paths.items()
    ]  # fmt: skip
    return [Route("/api/openapi.json", _described), *routes]


def _dispatched(methods: dict[str, Endpoint]) -> Endpoint:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await methods[method](request)

    return answer


async def _described(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    known = await desk.ask(lambda store: store.names.all_series())
    series = [each.name for each in known if each.state == "open"]
    data = json.dumps(document(OPERATIONS, series), ensure_ascii=False)
    return Response(data, media_type="application/json")
