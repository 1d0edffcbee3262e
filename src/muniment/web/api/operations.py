"""An operation of the API: stated once, for the routes, the checks and the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from muniment.errors import IdentifierError, NameRefused
from muniment.repository import Store
from muniment.repository.tokens import Token
from muniment.web.api.checking import Schema, check, parse_json, parse_text
from muniment.web.doors.answers import Refusal, body_of
from muniment.web.doors.desk import Desk
from muniment.web.doors.permission import Reader, need, reader_of

__all__ = ["Answer", "Call", "Handler", "Operation", "Parameter", "endpoint"]

_MOST_KEYS = 20


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value in the address."""

    name: str
    schema: Schema
    about: str
    required: bool = False
    place: str = "query"


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation answers with; no schema is no body."""

    about: str
    schema: Schema | None = None
    media: str = "application/json"
    headers: tuple[str, ...] = ()
    links: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)  # to, parameter, value


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose parameters and body are what the operation says."""

    request: Request
    desk: Desk
    reader: Reader
    values: Mapping[str, Any]
    body: Any

    def need(self, *scopes: str) -> Token:
        """Return the token, if it is for one of several things."""
        return need(self.request, *scopes)


Handler = Callable[[Store, Call], Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path."""

    method: str
    path: str
    name: str
    about: str
    answers: Mapping[int, Answer]
    handler: Handler | None = None  # None: the door is elsewhere, and only described here
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    scopes: tuple[str, ...] = ()
    tag: str = "store"
    refusals: tuple[int, ...] = field(default=())
    raw_body: tuple[str, ...] = ()  # media types of a body that is not JSON

    @property
    def status(self) -> int:
        """The status of success."""
        return min(self.answers)


def endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers an operation."""

    async def answer(request: Request) -> Response:
        assert operation.handler is not None
        handler = operation.handler
        desk: Desk = request.app.state.desk
        if operation.scopes and reader_of(request).token is None:
            need(request, *operation.scopes)  # says so
        values = _values(operation, request)
        body = await _body(operation, request) if operation.body is not None else None
        call = Call(request, desk, reader_of(request), values, body)
        try:
            facts = await desk.ask(lambda store: handler(store, call))
        except IdentifierError as error:
            raise Refusal(404, str(error)) from error  # what is no name names nothing
        except NameRefused as refused:
            if refused.status != 405:
                raise
            raise Refusal(409, str(refused)) from refused  # the method is right, the time is not
        data = json.dumps(facts, ensure_ascii=False).encode("utf-8", "backslashreplace")
        return Response(data, operation.status, media_type="application/json")

    return answer


def _values(operation: Operation, request: Request) -> dict[str, Any]:
    try:
        pairs = parse_qsl(
            request.scope["query_string"].decode("ascii"), keep_blank_values=True,
            strict_parsing=bool(request.scope["query_string"]), max_num_fields=_MOST_KEYS,
            errors="strict",
        )  # fmt: skip
    except ValueError:
        raise Refusal(400, "the query cannot be read: name=value&…, in UTF-8") from None
    known = {each.name: each for each in operation.parameters}
    values: dict[str, Any] = {}
    for name, text in [*request.path_params.items(), *pairs]:
        place = "path" if name in request.path_params else "query"
        if name not in known or known[name].place != place:
            raise Refusal(400, f"there is no parameter {name[:80]} here")
        if name in values:
            raise Refusal(400, f"the parameter {name} is given twice")
        values[name] = parse_text(known[name].schema, text, name)
    for parameter in operation.parameters:
        if parameter.required and parameter.name not in values:
            raise Refusal(400, f"the parameter {parameter.name} is missing")
    return values


async def _body(operation: Operation, request: Request) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "the body is application/json")
    value = parse_json(await body_of(request))
    assert operation.body is not None
    check(operation.body, value, "the body")
    return value
