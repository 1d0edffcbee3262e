"""The door for resolvers: THTTP (RFC 2169), with the names of RFC 2483 as well."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from muniment.errors import NotFound
from muniment.identifiers.urn import format_pdi_urn
from muniment.names import Binding
from muniment.registry import Registry
from muniment.registry.validation import assigned_to
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.repository.naming import is_pdi
from muniment.web.doors.answers import (
    Refusal,
    best,
    headers_of,
    page,
    quality,
    safe_text,
    uri_list,
)
from muniment.web.doors.describing import (
    DESCRIPTIONS,
    Description,
    describe,
    describe_name,
    describe_urn,
)
from muniment.web.doors.desk import Desk
from muniment.web.doors.finding import (
    octets_of,
    pdi_named,
    seen_renditions,
    stream_octets,
)
from muniment.web.doors.locating import pdi_url, record_url, stream_url
from muniment.web.doors.many import answer_many, compared
from muniment.web.doors.octets import Octets, deliver, of_bytes
from muniment.web.doors.pdi import opened
from muniment.web.doors.permission import (
    Reader,
    caching,
    reader_of,
)
from muniment.web.doors.subjects import Subject, find_subject, seen

__all__ = ["uri_res"]


_SERVICE = re.compile(r"(?i)[nil]2(ls?|rs?|cs?|ns?)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SERVICES = "N2L, N2Ls, N2R, N2Rs, N2C, N2Cs, N2Ns, the same with L2… and I2…, and I=I"
_WEB = ("http://", "https://")
_LISTS = ("text/uri-list", "text/html")
_LARGEST = 64 << 20  # bytes of all renditions in one answer


async def uri_res(request: Request) -> Response:
    """Answer one service for one URI, the raw query string, or for many that are posted."""
    service = request.path_params["service"]
    if service.upper() == "I=I":
        return await compared(request)
    match = _SERVICE.fullmatch(service)
    if match is None:
        raise Refusal(404, f"the services are {_SERVICES}")
    if request.method == "POST":
        return await answer_many(request, match[1].lower(), _one)
    try:
        uri = request.scope["query_string"].decode("ascii")
    except UnicodeDecodeError:
        raise Refusal(400, "a URI is ASCII, with percent-escapes") from None
    if not _SCHEME.match(uri):
        raise Refusal(400, f"the question is /uri-res/{match[0]}?URI, with a whole URI")
    desk: Desk = request.app.state.desk
    accept = request.headers.get("accept", "")
    version = request.scope.get("http_version", "1.1")
    reader = reader_of(request)

    def answered(store: Store) -> Response | Octets:
        subject = seen(find_subject(store, uri, desk.base), store, reader)
        return _answer(match[1].lower(), subject, store, desk.base, accept, version)

    quick = match[1].lower() in ("l", "r") and not any(mark in uri for mark in ("%23", "#", "@"))
    answer = await desk.ask(answered, quick)
    if isinstance(answer, Octets):
        return deliver(answer, request.method, headers_of(request))
    return answer


def _one(store: Store, uri: str, base: str, service: str, reader: Reader) -> dict[str, Any]:
    """Return the answer for one URI of many."""
    if not _SCHEME.match(uri) or not uri.isascii():
        raise Refusal(400, "this is no URI")
    subject = seen(find_subject(store, uri, base), store, reader)
    match service:
        case "l":
            return {"uris": [_first(subject, store, base)]}
        case "ls":
            return {"uris": list(dict.fromkeys(_locations(subject, store, base)))}
        case "n" | "ns":
            return {"uris": list(_names(subject, store, base))}
    return {"description": json.loads(DESCRIPTIONS["application/ld+json"](
        _descriptions(subject, store, base, all_versions=service == "cs")))}  # fmt: skip


def _answer(
    service: str, subject: Subject, store: Store, base: str, accept: str, version: str
) -> Response | Octets:
    match service:
        case "l":
            return _sent(_first(subject, store, base), version)
        case "ls":
            return _list(subject, _locations(subject, store, base), accept)
        case "n" | "ns":
            names = _names(subject, store, base)
            return _list(subject, islice(names, 1) if service == "n" else names, accept)
        case "r" | "rs" if _is_elsewhere(subject):
            return _sent(_first(subject, store, base), version)
        case "r":
            return _resource(subject, store, base, accept)
        case "rs":
            return _resources(subject, store, base, accept)
    return _described(subject, store, base, accept, all_versions=service == "cs")


def _sent(url: str, version: str) -> Response:
    """See other, which clients of HTTP/1.0 do not know."""
    return Response(None, 302 if version == "1.0" else 303, {"Location": safe_text(url)})


def _first(subject: Subject, store: Store, base: str) -> str:
    for url in _locations(subject, store, base):
        return url
    raise NotFound(f"{subject.asked} is known, and has no address here")


def _is_elsewhere(subject: Subject) -> bool:
    """Whether a registered URN stands for something that is not in this store."""
    return subject.named is None and subject.stream is None and not subject.records


def _locations(subject: Subject, store: Store, base: str) -> Iterator[str]:
    """Yield addresses, the best one first."""
    yield from _here(subject, store, base)
    yield from (each for each in subject.targets if each.lower().startswith(_WEB))


def _here(subject: Subject, store: Store, base: str) -> Iterator[str]:
    if subject.pdi is not None and subject.named is not None:
        full = subject.named.pdi._replace(fragment=subject.pdi.fragment)
        yield pdi_url(base, str(full))
    if subject.stream is not None:
        arc = store.catalogue.file(subject.stream.file)
        yield stream_url(base, arc, subject.stream.record.identifier)
        return
    for found in reversed(subject.records):
        if found.pdi and subject.pdi is None:
            yield pdi_url(base, found.pdi)
        yield record_url(base, store.catalogue.file(found.file), found)
        for stream in store.object(found).streams if found.kind == "object" else ():
            place = store.catalogue.stream(stream.identifier)
            if place is not None:
                arc = store.catalogue.file(place.file)
                yield stream_url(base, arc, stream.identifier)


def _names(subject: Subject, store: Store, base: str) -> Iterator[str]:
    """Yield the URNs of the same resource, each once."""
    names: dict[str, None] = {}
    registry = Registry(store.names)
    if subject.verdict is not None and subject.verdict.canonical:
        names[subject.verdict.canonical] = None
    if subject.stream is not None:
        names[subject.stream.record.identifier] = None
    elif subject.named is not None:
        names |= dict.fromkeys(_forms(str(subject.named.pdi), registry))
    for found in subject.records if subject.stream is None else ():
        contents = store.object(found).contents if found.kind == "object" else ()
        for each in (*contents, found.identifier):
            names |= dict.fromkeys(_forms(each, registry))
    for known in (subject.asked, *list(names), *(_here(subject, store, base))):
        target = known.removeprefix("urn:") if is_pdi(known) else known
        names |= dict.fromkeys(assigned_to(registry, target))
    return (name for name in names if name.startswith("urn:"))


def _forms(name: str, registry: Registry) -> list[str]:
    """Return a name, a PDI in both its forms as URN."""
    if not is_pdi(name):
        return [name]
    pdi = registry.names.read(name)
    return [f"urn:{pdi}", format_pdi_urn(pdi, registry.root)]


def _list(subject: Subject, uris: Iterator[str], accept: str) -> Response:
    kind = best(accept, _LISTS)
    if kind is None:
        raise Refusal(406, f"lists can be had as {', '.join(_LISTS)}")
    found = list(dict.fromkeys(uris))
    if kind == "text/uri-list":
        return Response(uri_list(subject.asked, found), headers=_VARY, media_type=kind)
    items = "".join(f'<LI><A HREF="{escape(each)}">{escape(each)}</A>' for each in found)
    return Response(page(subject.asked, f"<UL>{items}</UL>"), headers=_VARY, media_type=kind)


_VARY = {"Vary": "Accept"}


def _resource(subject: Subject, store: Store, base: str, accept: str) -> Octets:
    if subject.pdi is not None:
        return opened(store, subject.pdi, accept, base, subject.reader)
    if subject.stream is not None:
        return stream_octets(store, subject.stream, subject.reader)
    latest = subject.records[-1]
    if latest.pdi:
        return opened(store, store.names.read(latest.pdi), accept, base, subject.reader)
    octets = of_bytes(store.document(latest), "application/xml", "", latest.date)
    octets.headers = caching(access_of(store.names).of_record(latest), "public, max-age=60")
    return octets


def _resources(subject: Subject, store: Store, base: str, accept: str) -> Response | Octets:
    """All acceptable renditions of a version; a single one comes bare."""
    named = subject.named
    if named is None and subject.stream is None and subject.records[-1].pdi:
        named = pdi_named(store, store.names.read(subject.records[-1].pdi))
    named = named and seen_renditions(store, named, subject.reader)
    fitting = [] if named is None else [each for each in named.renditions if _fits(each, accept)]
    fitting.sort(key=lambda each: quality(accept, _media(each)))  # the best one is the last
    if len(fitting) < 2:
        return _resource(subject, store, base, accept)
    if sum(each.length for each in fitting) > _LARGEST:
        raise Refusal(413, "the renditions are too large for one answer; ask for each by N2R")
    boundary, parts = os.urandom(12).hex(), []
    for binding in fitting:
        octets = octets_of(store, binding)
        with octets.source as source:
            head = f"--{boundary}\r\nContent-Type: {_media(binding)}\r\n"
            head += f"Content-Location: {safe_text(str(binding.pdi))}\r\n\r\n"
            parts.append(head.encode() + source.read() + b"\r\n")
    kind = f"multipart/alternative; boundary={boundary}"
    return Response(
        b"".join(parts) + f"--{boundary}--\r\n".encode(), headers=_VARY, media_type=kind
    )


def _fits(binding: Binding, accept: str) -> bool:
    return best(accept, [_media(binding)]) is not None


def _media(binding: Binding) -> str:
    return binding.pdi.media_type or "application/octet-stream"


def _described(
    subject: Subject, store: Store, base: str, accept: str, all_versions: bool
) -> Response:
    kind = best(accept, list(DESCRIPTIONS))
    if kind is None:
        raise Refusal(406, f"descriptions can be had as {', '.join(DESCRIPTIONS)}")
    found = _descriptions(subject, store, base, all_versions)
    return Response(DESCRIPTIONS[kind](found), headers=_VARY, media_type=kind)


def _descriptions(
    subject: Subject, store: Store, base: str, all_versions: bool
) -> list[Description]:
    if subject.records:
        chosen = subject.records if all_versions else subject.records[-1:]
        return [describe(store, found, base) for found in chosen]
    if subject.named is not None:
        return [describe_name(store, subject.named, base)]
    if subject.verdict is not None:
        return [describe_urn(subject.verdict, base)]
    raise NotFound(f"{subject.asked} has no description here")
