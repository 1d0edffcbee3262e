"""The door for links: OpenURL 1.0, over all ARC files and over each (Z39.88-2004)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from muniment.errors import NotFound
from muniment.identifiers.openurl import ContextObject
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.repository.catalogue import File
from muniment.repository.naming import is_pdi
from muniment.web.doors.answers import Refusal, body_of, headers_of, uri_list
from muniment.web.doors.contexts import (
    LARGEST,
    Envelope,
    fetched,
    parse_context,
    parse_envelope,
)
from muniment.web.doors.desk import Desk
from muniment.web.doors.finding import (
    octets_of,
    pdi_named,
    refuse_withdrawn,
    stream_octets,
    versions_of,
)
from muniment.web.doors.octets import Octets, deliver
from muniment.web.doors.permission import Reader, caching, reader_of, refuse_unreadable
from muniment.web.doors.subjects import name_of

__all__ = ["openurl"]

_DATASTREAM = {"info:lanl-repo/svc/getDatastream", "info:lanl-repo/svc/getdatastream"}
_TOGETHER = 5000  # names that are read at a time
_IDENTIFIERS = {"info:lanl-repo/svc/identifiers.list"}


@dataclass(frozen=True)
class _Asked:
    """What a request is about."""

    referent: str
    service: str
    resolver: str


async def openurl(request: Request) -> Response:
    """Deliver the datastream that a ContextObject names, or the list of identifiers."""
    query = request.scope["query_string"]
    if request.method == "POST":
        query = b"&".join(part for part in (query, await body_of(request)) if part)
    envelope = parse_envelope(query)
    context = envelope.context or await _referred(request, envelope)
    asked = _context(context)
    arc = request.path_params.get("arc", "")
    desk: Desk = request.app.state.desk
    reader = reader_of(request)
    if asked.service == "identifiers":
        file = await desk.ask(lambda store: _arc(store, arc, asked))
        first = await desk.ask(partial(_names, file, ""))
        if request.method == "HEAD":
            return Response(None, media_type="text/uri-list")
        names = _identifiers(desk, first, file, reader)
        return StreamingResponse(names, media_type="text/uri-list")
    octets = await desk.ask(
        lambda store: _octets(store, asked.referent, _arc(store, arc, asked), reader),
        quick=True,
    )
    method = "GET" if request.method == "POST" else request.method
    return deliver(octets, method, headers_of(request))


async def _referred(request: Request, envelope: Envelope) -> ContextObject:
    """Read the ContextObject that a request refers to, from this store or a named address."""
    desk: Desk = request.app.state.desk
    reader, reference = reader_of(request), envelope.reference
    inside = not reference.lower().startswith(("http:", "https:"))

    def read(store: Store) -> bytes:
        octets = _octets(store, name_of(reference, desk.base), None, reader)
        with octets.source as source:
            return source.read(LARGEST + 1)

    if inside or reference.startswith(f"{desk.base}/"):
        data = await desk.ask(read)
    else:
        data = await fetched(reference, desk.references)
    return parse_context(data, envelope.format)


def _context(context: ContextObject) -> _Asked:
    referents = [each for each in context.referent.ids if each]
    services = context.entity("svc").ids
    service = "datastream"
    if services and set(services) <= _IDENTIFIERS:
        service = "identifiers"
    elif services and not set(services) <= _DATASTREAM:
        raise Refusal(501, f"there is no service {services[0][:200]} here")
    if service == "datastream" and len(referents) != 1:
        what = "is missing" if not referents else f"is given {len(referents)} times"
        raise Refusal(400, f"the key rft_id, which names the datastream, {what}")
    resolvers = context.entity("res").ids
    return _Asked(referents[0] if referents else "", service, resolvers[0] if resolvers else "")


def _arc(store: Store, name: str, asked: _Asked) -> File | None:
    """Return the ARC file that the path names; a resolver's identifier may name one as well."""
    if not name:
        found = store.catalogue.find_file(asked.resolver) if asked.resolver else None
        return found if found is not None and found.kind == "arc" else None
    found = store.catalogue.find_file(name)
    if found is None or found.kind != "arc":
        raise NotFound(f"there is no ARC file {name[:200]} in this store")
    return found


def _octets(store: Store, name: str, arc: File | None, reader: Reader) -> Octets:
    stream = store.catalogue.stream(name, arc.id if arc else -1)
    if stream is not None:
        return stream_octets(store, stream, reader)
    if arc is None and is_pdi(name):
        named = pdi_named(store, store.names.read(name))
        decision = access_of(store.names).of_pdi(named.pdi)
        refuse_unreadable(reader, decision, str(named.pdi))
        octets = octets_of(store, named.binding)
        octets.headers |= {} if decision.level == "open" else caching(decision, "")
        return octets
    records = versions_of(store, name) if arc is None else []
    if records and records[-1].kind == "object":
        refuse_withdrawn(store, records[-1:])
        refuse_unreadable(reader, access_of(store.names).of_record(records[-1]), name)
        streams = store.object(records[-1]).streams
        if len(streams) == 1:
            return stream_octets(store, store.stream(streams[0].identifier), reader)
        raise NotFound(f"{name} has {len(streams)} datastreams; /locate?id= names them")
    raise NotFound(f"there is no datastream {name} " + ("in this file" if arc else "here"))


async def _identifiers(
    desk: Desk, first: list[str], arc: File | None, reader: Reader
) -> AsyncIterator[bytes]:
    """Yield the names of all datastreams that a reader may see, some thousands at a time."""
    head, names = True, first
    while names:
        seen = await desk.ask(partial(_seen, names, reader))
        yield uri_list("datastreams", seen, head)
        head, last = False, names[-1]
        names = await desk.ask(partial(_names, arc, last))
    if head:
        yield uri_list("datastreams", ())


def _names(arc: File | None, after: str, store: Store) -> list[str]:
    return store.catalogue.stream_names(after, _TOGETHER, arc.id if arc else -1)


def _seen(names: list[str], reader: Reader, store: Store) -> list[str]:
    access = access_of(store.names)
    if access.all_open:
        return names
    catalogue = store.catalogue
    return [n for n in names if reader.sees(access.of_stream(catalogue.named(n, "stream")))]
