"""PDIs as URLs: ``/pdi/SERIES/…``, and ``GET pdi://SERIES/… HTTP/1.1`` (draft 3.8)."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime
from html import escape
from itertools import islice
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from muniment.citations.facts import is_query
from muniment.errors import NotFound
from muniment.identifiers import Pdi, Profile, parse_pdi, parse_series
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.web.doors.answers import (
    Refusal,
    best,
    headers_of,
    page,
    query_keys,
    safe_text,
    uri_list,
)
from muniment.web.doors.desk import Desk
from muniment.web.doors.finding import (
    Named,
    octets_of,
    part_of,
    pdi_named,
    seen_renditions,
)
from muniment.web.doors.locating import pdi_url
from muniment.web.doors.memento import at_date, memento_links, redirect, wanted_date
from muniment.web.doors.octets import Octets, deliver, http_date
from muniment.web.doors.permission import ANYBODY, Reader, caching, reader_of, refuse_unreadable
from muniment.web.doors.quoting import quoted
from muniment.web.doors.writing import put, series_of

__all__ = ["METHODS", "opened", "pdi", "spelled"]

METHODS = ["GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE", "TRACE"]
_READING = "GET, HEAD, OPTIONS"
_FRAGMENT = re.compile(r"^(.*?\.[1-9][0-9]*)%23(.*)$")
_PREFIX = re.compile(r"(?i)^/?(?:urn:)?pdi:|^/pdi/")
_LISTED = ("text/uri-list", "application/json", "text/html")
_PARTS = ("text/html", "application/json", "text/csv", "text/plain", "application/xml")
_OF_QUERIES = ("sql", "csv", "json", "siard")
_PAGE = 1000
_FOREVER = "public, max-age=31536000, immutable"


async def pdi(request: Request) -> Response:
    """Answer any method on a name."""
    text = spelled(request.scope["raw_path"])
    desk: Desk = request.app.state.desk
    method = request.method
    if method not in ("GET", "HEAD") or (text.count("/") < 4 and series_of(text)):
        return await _other_method(request, desk, text)
    if "*" in text:
        return await _listed(request, desk, parse_pdi(text, Profile.QUERY))
    headers, reader = headers_of(request), reader_of(request)
    accept, date = headers.get("accept", ""), headers.get("accept-datetime")

    def found(store: Store) -> Octets | Response:
        asked = store.names.read(text)
        if date is not None and (asked.version, asked.fragment, asked.citation) == (
            None,
            None,
            None,
        ):
            return _at_date(store, asked, wanted_date(date), accept, reader, desk.base)
        return opened(store, asked, accept, desk.base, reader)

    answer = await desk.ask(found, quick=not ("#" in text or "@" in text))
    if isinstance(answer, Octets):
        return deliver(answer, method, headers)
    return answer


async def _other_method(request: Request, desk: Desk, text: str) -> Response:
    """Answer what is not reading, and what is no document but a series."""
    allowed = _allowed(text, desk)
    if request.method == "OPTIONS":
        await desk.ask(lambda store: _known_series(store, text))
        return Response(None, 204, {"Allow": allowed})
    if request.method == "PUT":
        return await put(request, text, allowed)
    if request.method == "TRACE" and desk.traces:
        return traced(request)
    raise Refusal(405, f"{request.method} is not for this name", Allow=allowed)


def _allowed(text: str, desk: Desk) -> str:
    """Return the methods that a name knows: a series, a pattern or part, a document."""
    methods = "OPTIONS, PUT" if series_of(text) else _READING
    if methods == _READING and not any(mark in text for mark in "*#@"):
        methods += ", PUT"
    return f"{methods}, TRACE" if desk.traces else methods


def traced(request: Request) -> Response:
    """Return the request as it arrived, without what is secret in it (RFC 9110, 9.3.8)."""
    scope = request.scope
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    lines = [b"TRACE %b%b HTTP/%b" % (scope["raw_path"], query, scope["http_version"].encode())]
    headers = scope.get("headers as they came", scope["headers"])
    secret = (b"authorization", b"cookie", b"proxy-authorization")
    lines += [b"%b: %b" % pair for pair in headers if pair[0] not in secret]
    return Response(b"\r\n".join(lines) + b"\r\n\r\n", media_type="message/http")


def spelled(raw: bytes) -> str:
    """Return the PDI that a request target spells; ``%23`` behind a version begins a fragment.

    >>> spelled(b"/pdi/a.us/2001/01/01/1.text.1%2337,51")
    'pdi://a.us/2001/01/01/1.text.1#37,51'
    >>> spelled(b"PDI://a.us/2001/01/01/1.text.1")
    'pdi://a.us/2001/01/01/1.text.1'
    """
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError:
        raise Refusal(400, "a PDI is ASCII, with percent-escapes") from None
    rest = _PREFIX.sub("", text, count=1)
    text = "pdi://" + rest.removeprefix("//")
    match = _FRAGMENT.match(text)
    return f"{match[1]}#{match[2]}" if match else text


def _known_series(store: Store, text: str) -> None:
    series = parse_series(text.removeprefix("pdi://").partition("/")[0])
    if series not in store.names.rules().series:
        raise NotFound(f"the series {series} is not known here")


def opened(store: Store, asked: Pdi, accept: str, base: str, reader: Reader = ANYBODY) -> Octets:
    """Open what a name stands for, with all headers that belong to it."""
    if asked.citation is not None:
        return quoted(store, asked, accept, base, reader)
    named = pdi_named(store, asked)
    if asked.format is None:
        named = _negotiated(seen_renditions(store, named, reader), accept, _landing(store, named))
    decision = access_of(store.names).of_pdi(named.pdi)
    refuse_unreadable(reader, decision, str(named.pdi))
    if asked.fragment is not None:
        octets = part_of(store, asked, named, best(accept, _PARTS) or "" if accept else "")
        octets.sha256 = hashlib.sha256(octets.source.read()).hexdigest()
        octets.date = named.binding.at
    else:
        octets = octets_of(store, named.binding)
    full = named.pdi._replace(fragment=asked.fragment)
    octets.headers = {
        "Content-Location": safe_text(str(full)),
        **caching(decision, _FOREVER if asked.version else "public, max-age=60"),
        "Link": ", ".join(_links(store, named, asked, base)),
    }
    varying = ["Accept-Datetime"] if asked.version is None and asked.fragment is None else []
    varying += ["Accept"] if asked.format is None or asked.fragment is not None else []
    if varying:
        octets.headers["Vary"] = ", ".join(varying)
    if date := http_date(named.binding.at):
        octets.headers["Memento-Datetime"] = date
    return octets


def _at_date(
    store: Store, asked: Pdi, date: datetime, accept: str, reader: Reader, base: str
) -> Response:
    named = at_date(store, asked, date)
    if not asked.format:
        named = _negotiated(seen_renditions(store, named, reader), accept, "")
    return redirect(store, named, base)


def _landing(store: Store, named: Named) -> str:
    """Return the page of a cited query, which people are shown instead of its result."""
    if named.pdi.format not in _OF_QUERIES or not is_query(store.names, named.pdi):
        return ""
    return f"/identifiers/{str(named.pdi.generic).removeprefix('pdi://')}"


def _negotiated(named: Named, accept: str, landing: str) -> Named:
    """Choose among the formats of a version; there may be a page about it as well."""
    kinds = {each.pdi.media_type or "application/octet-stream": each for each in named.renditions}
    first = named.pdi.media_type or "application/octet-stream"
    offered = [first, *(kind for kind in kinds if kind != first)]
    if landing and "text/html" not in offered:
        offered.append("text/html")
    chosen = best(accept, offered)
    if chosen is None:
        raise Refusal(406, f"the document can be had as {', '.join(offered)}", Vary="Accept")
    if chosen not in kinds and chosen == "text/html":
        raise Refusal(303, f"its page is {landing}", Location=safe_text(landing), Vary="Accept")
    binding = kinds.get(chosen, named.binding)
    return Named(binding.pdi, binding, named.renditions, named.latest)


def _links(store: Store, named: Named, asked: Pdi, base: str) -> list[str]:
    """Return the links that lead on from a document (RFC 5829, 7089, 8288, 8574)."""
    whole = named.pdi
    name = safe_text(str(whole))
    url = pdi_url(base, name)
    cited = safe_text(pdi_url(base, f"{name}#{asked.fragment}")) if asked.fragment else url
    links = [
        f'<{cited}>; rel="cite-as"',
        f'<{base}/uri-res/N2C?{name}>; rel="describedby"',
        f'<{base}/pdi/{whole.series}/*/*/*/*>; rel="collection"',
    ]
    if asked.fragment is not None:
        links.append(f'<{url}>; rel="canonical"')
    return links + memento_links(store, named, base)


async def _listed(request: Request, desk: Desk, pattern: Pdi) -> Response:
    """List the names that a pattern stands for, a page at a time."""
    kind = best(request.headers.get("accept", ""), _LISTED)
    if kind is None:
        raise Refusal(406, f"lists can be had as {', '.join(_LISTED)}")
    query = request.scope["query_string"].decode("latin-1")
    given = query_keys(query).get("after", [""])[0]

    def names(store: Store) -> list[str]:
        after = store.names.read(given) if given else None
        return [str(each) for each in islice(store.names.listing(pattern, after), _PAGE + 1)]

    found = await desk.ask(names)
    complete = len(found) <= _PAGE
    found = found[:_PAGE]
    headers = {"Vary": "Accept"}
    if not complete:
        following = f"{pdi_url(desk.base, str(pattern))}?after={quote(found[-1], safe=':/')}"
        headers["Link"] = f'<{safe_text(following)}>; rel="next"'
    if kind == "application/json":
        facts = {"pattern": str(pattern), "pdis": found, "complete": complete}
        return Response(json.dumps(facts), headers=headers, media_type=kind)
    if kind == "text/uri-list":
        return Response(uri_list(str(pattern), found), headers=headers, media_type=kind)
    items = "".join(
        f'<li><a href="{escape(pdi_url("", each))}">{escape(each)}</a>' for each in found
    )
    return Response(page(str(pattern), f"<ul>{items}</ul>"), headers=headers, media_type=kind)
