"""ContextObjects of OpenURL: inline, by value and by reference, as keys or as XML.

What is referred to is read if it lies in this store; elsewhere it is fetched only from addresses
that the operator has named. A server that fetched for strangers would be a tool in their hands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qs

import httpx2

from muniment.errors import FormatError
from muniment.identifiers.openurl import KEV, VERSION, ContextObject, Entity, parse_kev
from muniment.objects.didl import parse
from muniment.web.doors.answers import Refusal

__all__ = ["LARGEST", "Envelope", "fetched", "parse_context", "parse_envelope"]

XML = "info:ofi/fmt:xml:xsd:ctx"
LARGEST = 65536  # bytes of a ContextObject
_SECONDS = 10.0
_LOWER = re.compile(r"(?i)((?:url|ctx)_ver=)z39\.88-2004")
_ENTITIES = {"referent": "rft", "service-type": "svc", "resolver": "res", "referrer": "rfr"}


@dataclass(frozen=True, slots=True)
class Envelope:
    """How a ContextObject comes: as it is, or as the address where it lies."""

    context: ContextObject | None
    reference: str = ""
    format: str = KEV


def parse_envelope(query: bytes) -> Envelope:
    """Read the keys of a request."""
    try:
        text = _LOWER.sub(rf"\g<1>{VERSION}", query.decode("ascii"))
    except UnicodeDecodeError:
        raise Refusal(400, "an OpenURL is ASCII, with percent-escapes") from None
    context = parse_kev(text)
    keys = dict(context.foreign)
    if not re.search(r"(?:^|&)url_ver=", text):
        raise Refusal(400, f"the key url_ver={VERSION} is missing")
    given = parse_qs(text, max_num_fields=1000)
    formats = given.get("url_ctx_fmt", [KEV])
    if "url_ctx_val" in keys and "url_ctx_ref" in keys:
        raise Refusal(400, "a context object comes by value or by reference, not both")
    if "url_ctx_ref" not in keys and "url_ctx_val" not in keys:
        return Envelope(context)
    if len(formats) > 1 or formats[0] not in (KEV, XML):
        what = formats[0][:200]
        raise Refusal(501, f"context objects are read in the formats {KEV} and {XML}, not {what}")
    if "url_ctx_ref" in keys:
        return Envelope(None, keys["url_ctx_ref"], formats[0])
    return Envelope(parse_context(keys["url_ctx_val"].encode("utf-8", "replace"), formats[0]))


def parse_context(data: bytes, form: str) -> ContextObject:
    """Read a ContextObject that stands alone."""
    if len(data) > LARGEST:
        raise Refusal(400, f"a context object has at most {LARGEST} bytes here")
    if form == XML:
        return _of_xml(data)
    try:
        text = data.decode("ascii").strip()
    except UnicodeDecodeError:
        raise Refusal(400, "a context object is ASCII, with percent-escapes") from None
    return parse_kev(_LOWER.sub(rf"\g<1>{VERSION}", text))


def _of_xml(data: bytes) -> ContextObject:
    try:
        root = parse(data, "the context object")
    except (FormatError, ValueError) as error:
        raise Refusal(400, f"the context object cannot be read: {error}") from None
    objects = list(root.iter(f"{{{XML}}}context-object"))
    if len(objects) != 1:
        raise Refusal(400, f"there are {len(objects)} context objects in it; one is answered")
    entities = []
    for name, prefix in _ENTITIES.items():
        found = objects[0].findall(f"{{{XML}}}{name}/{{{XML}}}identifier")
        ids = tuple((each.text or "").strip() for each in found)
        if ids:
            entities.append((prefix, Entity(ids)))
    return ContextObject(tuple(entities))


async def fetched(reference: str, allowed: tuple[str, ...]) -> bytes:
    """Fetch a ContextObject from an address that the operator has named."""
    if not any(reference.startswith(each) for each in allowed):
        raise Refusal(501, "context objects are fetched only from addresses that were named here")
    parts = []
    try:
        async with (
            httpx2.AsyncClient(timeout=_SECONDS, trust_env=False) as client,
            client.stream("GET", reference, follow_redirects=False) as answer,
        ):
            if answer.status_code != 200:
                raise Refusal(502, f"the context object gives status {answer.status_code}")
            async for chunk in answer.aiter_bytes():
                parts.append(chunk)
                if sum(map(len, parts)) > LARGEST:
                    raise Refusal(502, f"the context object has more than {LARGEST} bytes")
    except (httpx2.HTTPError, httpx2.InvalidURL):
        raise Refusal(502, "the context object cannot be fetched") from None
    return b"".join(parts)
