"""The door for harvesters: OAI-PMH over the whole store and over each tape."""

from __future__ import annotations

import gzip
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from muniment.repository import Store
from muniment.web.doors.answers import Refusal, body_of, headers_of, quality
from muniment.web.doors.desk import Desk
from muniment.web.doors.permission import reader_of
from muniment.web.oai.answers import answer
from muniment.web.oai.shelf import Shelf

__all__ = ["oai"]

_FORM = "application/x-www-form-urlencoded"
_MOST = 100  # arguments; the protocol knows seven
_WORTH = 1000  # bytes from which on compression pays


async def oai(request: Request) -> Response:
    """Answer a request of OAI-PMH; its errors are answers, too."""
    arguments, headers = _arguments(request.scope["query_string"]), headers_of(request)
    if request.method == "POST":
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await body_of(request)
        if body and kind != _FORM:
            raise Refusal(415, f"arguments are posted as {_FORM}")
        arguments += _arguments(body)
    desk: Desk = request.app.state.desk
    tape = request.path_params.get("tape", "")

    staff = reader_of(request).staff
    packs = quality(headers.get("accept-encoding") or "identity", "gzip") > 0

    def made(store: Store) -> Response:
        shelf = Shelf(store, desk.base, desk.emails, tape, staff)
        data, more = b"".join(answer(arguments, shelf)), {"Vary": "Accept-Encoding"}
        if packs and len(data) > _WORTH:
            data, more["Content-Encoding"] = gzip.compress(data, 3), "gzip"
        return Response(data, headers=more, media_type="text/xml; charset=utf-8")

    return await desk.ask(made, quick=("verb", "GetRecord") in arguments)


def _arguments(query: bytes) -> list[tuple[str, str]]:
    """Return the arguments; what is not UTF-8 becomes a character that the protocol refuses."""
    try:
        return parse_qsl(
            query.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST,
            errors="surrogateescape",
        )  # fmt: skip
    except UnicodeDecodeError:
        raise Refusal(400, "arguments are ASCII, with percent-escapes") from None
    except ValueError:
        raise Refusal(400, f"there are more than {_MOST} arguments") from None
