"""The door for resolvers: THTTP (RFC 2169), with the names of RFC 2483 as well."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from muniment.errors import NotFound
from muniment.identifiers import Pdi, parse_pdi, parse_urn
from muniment.names import Binding
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.repository.catalogue import Found, Stream
from muniment.repository.naming import is_pdi
from muniment.web.doors.answers import (
    Refusal,
    best,
    page,
    query_keys,
    safe_text,
    uri_list,
)
from muniment.web.doors.describing import DESCRIPTIONS, describe
from muniment.web.doors.desk import Desk
from muniment.web.doors.finding import (
    Named,
    octets_of,
    pdi_named,
    seen_renditions,
    stream_octets,
    versions_of,
)
from muniment.web.doors.locating import pdi_url, record_url, stream_url
from muniment.web.doors.octets import Octets, deliver, of_bytes
from muniment.web.doors.pdi import opened, spelled
from muniment.web.doors.permission import (
    ANYBODY,
    Reader,
    caching,
    reader_of,
    refuse_unreadable,
)

__all__ = ["uri_res"]

_SERVICE = re.compile(r"(?i)[nil]2(ls?|rs?|cs?|ns?)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LISTS = ("text/uri-list", "text/html")
_LARGEST = 64 << 20  # bytes of all renditions in one answer


@dataclass(frozen=True)
class _Subject:
    """What a URI leads to: a PDI, records, or one datastream."""

    asked: str
    pdi: Pdi | None = None
    named: Named | None = None
    records: tuple[Found, ...] = ()
    stream: Stream | None = None
    reader: Reader = ANYBODY


async def uri_res(request: Request) -> Response:
    """Answer one service for one URI, which is the raw query string."""
    match = _SERVICE.fullmatch(request.path_params["service"])
    if match is None:
        raise Refusal(404, "the services are N2L, N2Ls, N2R, N2Rs, N2C, N2Cs, N2Ns, L2… and I2…")
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
    answer = await desk.ask(
        lambda store: _answer(match[1].lower(), _seen(_subject(store, uri, desk.base), store,
                              reader), store, desk.base, accept, version),
        quick=match[1].lower() == "l",
    )  # fmt: skip
    if isinstance(answer, Octets):
        return deliver(answer, request.method, request.headers)
    return answer


def _subject(store: Store, uri: str, base: str) -> _Subject:
    name = _of_url(uri, base) if uri[:4].lower() == "http" else uri
    if is_pdi(name):
        pdi = parse_pdi(spelled(name.encode("ascii", "replace")))
        named = pdi_named(store, pdi)
        records = store.versions(str(named.pdi if pdi.version else pdi.generic))
        return _Subject(uri, pdi, named, tuple(records))
    if name[:4].lower() == "urn:":
        parse_urn(name)  # 400 for what is none
    records = versions_of(store, name)
    stream = store.catalogue.stream(name)
    if not records and stream is None:
        raise NotFound(f"{name} is not known here")
    return _Subject(uri, records=tuple(records), stream=stream)


def _seen(subject: _Subject, store: Store, reader: Reader) -> _Subject:
    """Leave out what a reader may not read, and refuse what nothing is left of."""
    access = access_of(store.names)
    if access.all_open:
        return subject
    if subject.stream is not None:
        records = store.catalogue.named(subject.stream.record.identifier, "stream")
        refuse_unreadable(reader, access.of_stream(records), subject.asked)
    if subject.named is not None:
        refuse_unreadable(reader, access.of_pdi(subject.named.pdi), subject.asked)
    seen = reader.seen(store, subject.records)
    if subject.records and not seen:
        refuse_unreadable(reader, access.of_record(subject.records[-1]), subject.asked)
    return replace(subject, records=tuple(seen), reader=reader)


def _of_url(url: str, base: str) -> str:
    """Return the name that one of our own addresses stands for."""
    if url.startswith(f"{base}/pdi/"):
        return spelled(url.removeprefix(base).encode())
    if url.startswith(f"{base}/"):
        keys = query_keys(url.partition("?")[2])
        for key in ("rft_id", "identifier", "id"):
            if key in keys:
                return keys[key][0]
    return unquote(url)


def _answer(
    service: str, subject: _Subject, store: Store, base: str, accept: str, version: str
) -> Response | Octets:
    match service:
        case "l":
            url = safe_text(next(_locations(subject, store, base)))
            headers = {"Location": url}
            return Response(None, 302 if version == "1.0" else 303, headers)
        case "ls":
            return _list(subject, _locations(subject, store, base), accept)
        case "n" | "ns":
            return _list(subject, _names(subject, store), accept)
        case "r":
            return _resource(subject, store, base, accept)
        case "rs":
            return _resources(subject, store, base, accept)
    return _described(subject, store, base, accept, all_versions=service == "cs")


def _locations(subject: _Subject, store: Store, base: str) -> Iterator[str]:
    """Yield addresses, the best one first."""
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


def _names(subject: _Subject, store: Store) -> Iterator[str]:
    """Yield the URNs of the same resource, each once."""
    names: dict[str, None] = {}
    if subject.stream is not None:
        names[subject.stream.record.identifier] = None
    elif subject.named is not None:
        names[f"urn:{subject.named.pdi}"] = None
    for found in subject.records if subject.stream is None else ():
        contents = store.object(found).contents if found.kind == "object" else ()
        names |= dict.fromkeys(f"urn:{each}" if is_pdi(each) and each[:4] != "urn:" else each
                               for each in (*contents, found.identifier))  # fmt: skip
    return (name for name in names if name.startswith("urn:"))


def _list(subject: _Subject, uris: Iterator[str], accept: str) -> Response:
    kind = best(accept, _LISTS)
    if kind is None:
        raise Refusal(406, f"lists can be had as {', '.join(_LISTS)}")
    found = list(dict.fromkeys(uris))
    if kind == "text/uri-list":
        return Response(uri_list(subject.asked, found), headers=_VARY, media_type=kind)
    items = "".join(f'<LI><A HREF="{escape(each)}">{escape(each)}</A>' for each in found)
    return Response(page(subject.asked, f"<UL>{items}</UL>"), headers=_VARY, media_type=kind)


_VARY = {"Vary": "Accept"}


def _resource(subject: _Subject, store: Store, base: str, accept: str) -> Octets:
    if subject.pdi is not None:
        return opened(store, subject.pdi, accept, base, subject.reader)
    if subject.stream is not None:
        return stream_octets(store, subject.stream, subject.reader)
    latest = subject.records[-1]
    if latest.pdi:
        return opened(store, parse_pdi(latest.pdi), accept, base, subject.reader)
    octets = of_bytes(store.document(latest), "application/xml", "", latest.date)
    octets.headers = caching(access_of(store.names).of_record(latest), "public, max-age=60")
    return octets


def _resources(subject: _Subject, store: Store, base: str, accept: str) -> Response | Octets:
    """All acceptable renditions of a version; a single one comes bare."""
    named = subject.named
    if named is None and subject.stream is None and subject.records[-1].pdi:
        named = pdi_named(store, parse_pdi(subject.records[-1].pdi))
    named = named and seen_renditions(store, named, subject.reader)
    fitting = [] if named is None else [each for each in named.renditions if _fits(each, accept)]
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
    subject: _Subject, store: Store, base: str, accept: str, all_versions: bool
) -> Response:
    kind = best(accept, list(DESCRIPTIONS))
    if kind is None:
        raise Refusal(406, f"descriptions can be had as {', '.join(DESCRIPTIONS)}")
    if not subject.records:
        raise NotFound(f"{subject.asked} has no description here")
    chosen = subject.records if all_versions else subject.records[-1:]
    data = DESCRIPTIONS[kind]([describe(store, found, base) for found in chosen])
    return Response(data, headers=_VARY, media_type=kind)
