"""The Identifier Locator: any name to all versions, their packages, tapes and datastreams."""

from __future__ import annotations

import json
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.requests import Request
from starlette.responses import Response

from muniment.errors import NotFound
from muniment.names import Binding
from muniment.objects import datastream_url
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.repository.catalogue import File, Found
from muniment.repository.naming import is_pdi
from muniment.web.doors.answers import Refusal, best, page, uri_list
from muniment.web.doors.desk import Desk
from muniment.web.doors.finding import bindings_of, versions_of
from muniment.web.doors.permission import Reader, reader_of
from muniment.web.oai.shelf import tape_name

__all__ = ["locate", "located", "pdi_url", "record_url", "stream_url", "version_facts"]

_KINDS = ("application/json", "text/uri-list", "text/html")


async def locate(request: Request) -> Response:
    """Answer where everything lies that a name leads to."""
    try:
        query = request.scope["query_string"].decode("ascii")
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=20, errors="strict")
    except ValueError:
        raise Refusal(400, "the question is /locate?id=NAME, in UTF-8") from None
    names = [value for key, value in pairs if key == "id"]
    if len(names) != 1 or not names[0]:
        raise Refusal(400, "the question is /locate?id=NAME, with one name")
    kind = best(request.headers.get("accept", ""), _KINDS)
    if kind is None:
        raise Refusal(406, f"the answer can be had as {', '.join(_KINDS)}")
    desk: Desk = request.app.state.desk
    reader = reader_of(request)
    facts = await desk.ask(lambda store: located(store, names[0], desk.base, reader))
    return Response(_shown(facts, kind), headers={"Vary": "Accept"}, media_type=kind)


def located(store: Store, name: str, base: str, reader: Reader) -> dict[str, Any]:
    """Return all versions of a name; of what a reader may not read, that it is there."""
    found = versions_of(store, name)
    stream = store.catalogue.stream(name)
    versions = [version_facts(store, each, base, reader) for each in found]
    if not found and is_pdi(name):
        bound = bindings_of(store, store.names.read(name))
        versions = [_bound_facts(store, each, base, reader) for each in bound]
    if not versions and stream is None:
        raise NotFound(f"there is nothing called {name} in this store")
    facts: dict[str, Any] = {"id": name, "versions": versions}
    access = access_of(store.names)
    if stream is not None and reader.sees(access.of_stream(store.catalogue.named(name, "stream"))):
        arc = store.catalogue.file(stream.file)
        facts["datastream"] = {
            "arc": arc.uri,
            "base_url": f"{base}/openurl/{quote(tape_name(arc), safe='')}",
            "url": stream_url(base, arc, name),
            "media_type": stream.record.media_type,
            "bytes": stream.record.size,
            "sha256": stream.record.sha256,
        }
    return facts


def version_facts(store: Store, found: Found, base: str, reader: Reader) -> dict[str, Any]:
    """Return where a version lies; of what a reader may not read, that it is there."""
    tape = store.catalogue.file(found.file)
    decision = access_of(store.names).of_record(found)
    facts = {
        "package": found.identifier,
        "date": found.date,
        "kind": found.kind,
        "pdi": found.pdi or None,
        "access": decision.level,
    }
    if not reader.sees(decision):
        return facts
    return {
        **facts,
        "bytes": found.size,
        "datastreams": found.streams,
        "tape": tape.uri,
        "base_url": f"{base}/oai/{quote(tape_name(tape), safe='')}",
        "url": record_url(base, tape, found),
    }


def _bound_facts(store: Store, binding: Binding, base: str, reader: Reader) -> dict[str, Any]:
    """Return where a document lies that has a name and no record, such as a cited query."""
    decision = access_of(store.names).of_pdi(binding.pdi)
    facts = {
        "package": None,
        "date": binding.at[:19] + "Z",
        "kind": "document",
        "pdi": str(binding.pdi),
        "access": decision.level,
    }
    if not reader.sees(decision):
        return facts
    return {**facts, "bytes": binding.length, "url": pdi_url(base, str(binding.pdi))}


def record_url(base: str, tape: File, found: Found) -> str:
    """The address of a record on its tape."""
    home = f"{base}/oai/{quote(tape_name(tape), safe='')}"
    return f"{home}?verb=GetRecord&metadataPrefix=didl&identifier={quote(found.identifier)}"


def stream_url(base: str, arc: File, identifier: str) -> str:
    """The address of a datastream in its ARC file."""
    return datastream_url(base, tape_name(arc), identifier)


def pdi_url(base: str, pdi: str) -> str:
    """The address of a PDI; what would end the path is escaped."""
    return f"{base}/pdi/{pdi.removeprefix('pdi://').replace('#', '%23').replace('?', '%3F')}"


def _shown(facts: dict[str, Any], kind: str) -> bytes:
    if kind == "application/json":
        return json.dumps(facts, ensure_ascii=False).encode("utf-8", "backslashreplace")
    urls = [each["url"] for each in facts["versions"] if "url" in each]
    urls += [facts["datastream"]["url"]] if "datastream" in facts else []
    if kind == "text/uri-list":
        return uri_list(facts["id"], urls)
    rows = "".join(f'<li><a href="{escape(url)}">{escape(url)}</a>' for url in urls)
    return page(facts["id"], f"<ul>{rows}</ul>")
