"""What all doors share: refusals, lists, negotiation, and bodies of bounded size."""

from __future__ import annotations

import asyncio
import errno
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from muniment.errors import (
    FragmentError,
    IdentifierError,
    MunimentError,
    NameRefused,
    NotFound,
    UsageError,
)

__all__ = [
    "Refusal",
    "best",
    "body_of",
    "headers_of",
    "page",
    "quality",
    "query_keys",
    "refusal_of",
    "refuse",
    "safe_text",
    "uri_list",
]

_LARGEST = 1 << 20  # bytes of a form
_REFUSALS = ("application/problem+json", "text/html")
_STATUSES = {status.value for status in HTTPStatus}
_UNSAFE = re.compile(r"[^\x21-\x7e]")


class Refusal(Exception):
    """A request that ends with a status and a sentence."""

    def __init__(
        self, status: int, message: str, facts: Mapping[str, Any] | None = None, **headers: str
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.facts = dict(facts or {})  # more that a program may want to know
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def refusal_of(error: Exception) -> Refusal:
    """Return what an error means to who asked."""
    match error:
        case Refusal():
            return error
        case NotFound():
            return Refusal(404, str(error))
        case FragmentError():
            return Refusal(error.status, str(error))
        case NameRefused(retry_after=int(seconds)):
            return Refusal(error.status, str(error), Retry_After=str(seconds))
        case NameRefused():
            return Refusal(error.status, str(error))
        case IdentifierError(code="E_DATE") if "calendar" in error.message:
            return Refusal(404, str(error))  # well-formed, and nothing can have this name
        case IdentifierError() | UsageError():
            return Refusal(400, str(error))
        case HTTPException():
            return Refusal(error.status_code, str(error.detail), None, **_names(error.headers))
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return Refusal(507, "the disk of the store is full")
        case OSError(errno=errno.EROFS | errno.EACCES):
            return Refusal(503, "the store cannot be written now", Retry_After="3600")
        case MunimentError():
            return Refusal(503, str(error), Retry_After="60")  # the store, not the request
    return Refusal(500, "this could not be answered; the server's log says why")


def _names(headers: Any) -> dict[str, str]:
    return {name.replace("-", "_"): value for name, value in (headers or {}).items()}


def refuse(error: Refusal, accept: str = "") -> Response:
    """Return a refusal as problem details (RFC 9457), or as a page to who likes that better."""
    if "text/html" in accept and best(accept, _REFUSALS) == "text/html":
        return Response(_tombstone(error), error.status, error.headers, media_type="text/html")
    content = {**error.facts, "status": error.status, "title": error.message[:1000]}
    data = json.dumps(content, ensure_ascii=False).encode("utf-8", "backslashreplace")
    return Response(data, error.status, error.headers, media_type="application/problem+json")


def _tombstone(error: Refusal) -> bytes:
    facts = "".join(
        f"<dt>{escape(name)}<dd>{escape(str(value))}" for name, value in error.facts.items()
    )
    title = HTTPStatus(error.status).phrase if error.status in _STATUSES else "Refused"
    return page(title, f"<p>{escape(error.message[:1000])}</p>" + (facts and f"<dl>{facts}</dl>"))


def safe_text(text: str) -> str:
    """Return a text as it may stand in a header: nothing in it ends the line.

    >>> safe_text("urn:x:a\\r\\nSet-Cookie: b")
    'urn:x:a%0D%0ASet-Cookie:%20b'
    """
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    return _UNSAFE.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), text
    )


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request; one that is repeated is a list (RFC 9110, 5.3)."""
    found: dict[str, str] = {}
    for name, value in request.scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


async def body_of(request: Request) -> bytes:
    """Return the body of a form, if it is not too large and comes in time."""
    parts, size = [], 0
    stated = request.headers.get("content-length", "0")
    try:
        if stated.isdecimal() and int(stated[:19]) > _LARGEST:
            raise _too_large()
        async with asyncio.timeout(request.app.state.desk.patience):
            async for chunk in request.stream():
                size += len(chunk)
                if size > _LARGEST:
                    raise _too_large()
                parts.append(chunk)
    except TimeoutError:
        raise Refusal(408, "the request took too long", Connection="close") from None
    except ClientDisconnect:
        raise Refusal(400, "the request ended before its end") from None
    return b"".join(parts)


def query_keys(query: str) -> dict[str, list[str]]:
    """Return the keys of a query string; what cannot be read is refused."""
    try:
        return parse_qs(query, max_num_fields=50, errors="strict")
    except ValueError:
        raise Refusal(400, "the query cannot be read: it is not UTF-8, or too long") from None


def _too_large() -> Refusal:
    return Refusal(413, f"a request may have {_LARGEST} bytes", Connection="close")


def best(accept: str, offered: Sequence[str]) -> str | None:
    """Return the media type that a client likes best among those offered, in our order.

    >>> best("text/*;q=0.5, application/json", ["text/html", "application/json"])
    'application/json'
    >>> best("image/png", ["text/html"]) is None
    True
    """
    weights = [(quality(accept, kind), kind) for kind in offered]
    top = max((weight for weight, _ in weights), default=0.0)
    return next((kind for weight, kind in weights if weight == top and top > 0), None)


def quality(accept: str, kind: str) -> float:
    """Return how much a client likes a media type, from 0 to 1."""
    ranges = [_range(part) for part in accept[:4096].split(",") if part.strip()] or [("*/*", 1.0)]
    name = kind.partition(";")[0].strip().lower()
    for wanted in (name, name.partition("/")[0] + "/*", "*/*"):
        found = [weight for each, weight in ranges if each == wanted]
        if found:
            return max(found)
    return 0.0


def _range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    weight = next((p.removeprefix("q=") for p in parameters if p.startswith("q=")), "1")
    return name, float(weight) if re.fullmatch(r"[01](\.\d{0,3})?", weight) else 0.0


def uri_list(asked: str, uris: Iterable[str], head: bool = True) -> bytes:
    """Return text/uri-list: the question as a comment, then one URI per line (RFC 2483)."""
    lines = [f"# {safe_text(asked)}"] if head else []
    lines += [safe_text(uri) for uri in uris]
    return "".join(f"{line}\r\n" for line in lines).encode()


def page(title: str, body: str) -> bytes:
    """Return a plain page; ``body`` is HTML."""
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8">'
    style = '<link rel="stylesheet" href="/static/style.css">'
    text = f"{head}<title>{escape(title)}</title>{style}<main><h1>{escape(title)}</h1>{body}</main>"
    return f"{text}</html>\n".encode("utf-8", "backslashreplace")
