"""THTTP beyond one question: are two URIs the same, and one service for many URIs."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from muniment.errors import IdentifierError, MunimentError
from muniment.identifiers import parse_urn
from muniment.registry import Registry
from muniment.registry.validation import same
from muniment.repository import Store
from muniment.repository.naming import is_pdi
from muniment.web.doors.answers import Refusal, best, body_of, refusal_of
from muniment.web.doors.desk import Desk
from muniment.web.doors.permission import Reader, reader_of
from muniment.web.doors.subjects import find_subject, seen

__all__ = ["answer_many", "compared"]

_KINDS = ("text/plain", "application/json")
_MOST = 10_000  # URIs in one request
_BATCH = 200  # URIs for which one thread is kept busy
_BULK = ("l", "ls", "n", "ns", "c", "cs")

One = Callable[[Store, str, str, str, Reader], dict[str, Any]]


async def answer_many(request: Request, service: str, one: One) -> Response:
    """Answer a service for each URI of a list, a line of JSON for each."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/uri-list":
        raise Refusal(415, "many URIs are posted as text/uri-list")
    if service not in _BULK:
        raise Refusal(405, "documents are asked for one by one", Allow="GET, HEAD")
    try:
        lines = (await body_of(request)).decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise Refusal(400, "URIs are ASCII, with percent-escapes") from None
    uris = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if len(uris) > _MOST:
        raise Refusal(413, f"one request may ask for {_MOST} URIs")
    desk: Desk = request.app.state.desk
    reader, waiting, parts = reader_of(request), iter(uris), []
    while batch := list(islice(waiting, _BATCH)):

        def made(store: Store, batch: list[str] = batch) -> bytes:
            return b"".join(_line(store, uri, desk.base, service, reader, one) for uri in batch)

        parts.append(await desk.ask(made))
    return Response(b"".join(parts), media_type="application/jsonl")


def _line(store: Store, uri: str, base: str, service: str, reader: Reader, one: One) -> bytes:
    try:
        facts = {"uri": uri, "status": 200, **one(store, uri, base, service, reader)}
    except (Refusal, MunimentError) as error:
        refusal = refusal_of(error)
        facts = {"uri": uri, "status": refusal.status, "title": refusal.message[:1000]}
    return json.dumps(facts).encode() + b"\n"


# Two URIs


async def compared(request: Request) -> Response:
    """Say whether two URIs name the same (I=I), and by which rule."""
    try:
        text = unquote(request.scope["query_string"].decode("ascii"), errors="strict")
    except ValueError:
        raise Refusal(400, "URIs are ASCII, with percent-escapes") from None
    uris = text.split()
    if len(uris) != 2 or not all(":" in each and each.isascii() for each in uris):
        raise Refusal(400, "the question is /uri-res/I=I?URI%20URI, with two whole URIs")
    kind = best(request.headers.get("accept", ""), _KINDS)
    if kind is None:
        raise Refusal(406, f"the answer can be had as {', '.join(_KINDS)}")
    desk: Desk = request.app.state.desk
    reader = reader_of(request)
    rule = await desk.ask(lambda store: _rule(store, uris[0], uris[1], desk.base, reader))
    if kind == "text/plain":
        return Response("TRUE" if rule else "FALSE", headers=_VARY, media_type=kind)
    facts = {"uris": uris, "same": bool(rule), "rule": rule or None}
    return Response(json.dumps(facts), headers=_VARY, media_type=kind)


_VARY = {"Vary": "Accept"}


def _rule(store: Store, one: str, other: str, base: str, reader: Reader) -> str:
    """Return the first rule by which two URIs are the same, "" if there is none."""
    if one == other:
        return "identical"
    if is_pdi(one) and is_pdi(other):
        first, second = store.names.read(one), store.names.read(other)
        if first == second:
            return "lexical equivalence of PDIs"
        if first.functional_key == second.functional_key:
            return "functional equivalence of PDIs"
    elif one[:4].lower() == other[:4].lower() == "urn:":
        if _key(store, one) == _key(store, other):
            return "equivalence of URNs (RFC 8141)"
        if _same_by_registration(store, one, other):
            return "the rules of the registered namespace"
    return "the same resource" if _one_resource(store, (one, other), base, reader) else ""


def _key(store: Store, urn: str) -> str:
    return str(store.names.read(urn)) if is_pdi(urn) else parse_urn(urn).key


def _same_by_registration(store: Store, one: str, other: str) -> bool:
    try:
        return same(Registry(store.names), one, other)
    except IdentifierError:
        return False


def _one_resource(store: Store, uris: tuple[str, str], base: str, reader: Reader) -> bool:
    """Whether both lead to the same records or datastream of this store."""
    led = []
    for uri in uris:
        try:
            subject = seen(find_subject(store, uri, base), store, reader)
        except (Refusal, MunimentError):
            return False
        part = subject.pdi.fragment if subject.pdi else None
        stream = subject.stream.record.identifier if subject.stream else None
        records = tuple(found.identifier for found in subject.records)
        led.append((part, stream, records if stream is None else ()))
    return led[0] == led[1] and led[0] != (None, None, ())
