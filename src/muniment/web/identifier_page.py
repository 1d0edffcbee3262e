"""The pages of identifiers: which there are, and all that is known of one."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from muniment.citations.styles import Reference
from muniment.errors import IdentifierError, NotFound, UsageError
from muniment.identifiers import Pdi, parse_pdi, parse_series
from muniment.identifiers.fragments import SCHEMES
from muniment.identifiers.pdi import WILDCARD
from muniment.names import Resolution
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.repository.catalogue import Found
from muniment.sql.model import Database
from muniment.web.doors.finding import versions_of
from muniment.web.doors.locating import pdi_url
from muniment.web.doors.permission import Reader
from muniment.web.page import Page
from muniment.web.store_site import is_withdrawn, kept_of

__all__ = ["identifier_page", "identifier_url", "identifiers_page"]

_LISTED = 100
_SIARD = "application/x-siard"
_MOST_TABLES = 200
_ASSERTIONS = 200


def identifier_url(pdi: str, fragment: str = "") -> str:
    """Return the address of the page of a PDI."""
    name, _, own = pdi.removeprefix("pdi://").partition("#")
    fragment = fragment or own
    query = f"?fragment={quote(fragment, safe='=(),')}" if fragment else ""
    return f"/identifiers/{quote(name, safe='/.')}{query}"


def identifiers_page(request: Request, store: Store) -> Page:
    """The names of a series, a page at a time; or the page of a name that was typed."""
    known = {each.name: each for each in store.names.all_series()}
    series = request.query_params.get("series", "") or store.settings.series
    series = parse_series(series)
    if series not in known:
        raise NotFound(f"the series {series} is not known here")
    after = request.query_params.get("after", "")
    pattern = Pdi(series, WILDCARD, WILDCARD, WILDCARD, WILDCARD)
    names = store.names.listing(pattern, store.names.read(after) if after else None)
    found = [str(pdi) for pdi in islice(names, _LISTED + 1)]
    more = found[_LISTED - 1] if len(found) > _LISTED else ""
    facts = {
        "series": series,
        "all_series": [
            {"name": each.name, "title": each.title, "state": each.state, "steward": each.steward,
             "url": f"/identifiers?series={quote(each.name)}"}
            for each in known.values()
        ],
        "identifiers": [
            {"pdi": pdi, "url": identifier_url(pdi), "title": _title(store, pdi, request)}
            for pdi in found[:_LISTED]
        ],
        "next": f"/identifiers?series={quote(series)}&after={quote(more)}" if more else None,
    }  # fmt: skip
    return Page("identifiers.html", facts)


def _title(store: Store, pdi: str, request: Request) -> str | None:
    reader: Reader = request.app.state.site.reader(request, store)
    found = reader.seen(store, [each for each in store.versions(pdi) if each.kind == "object"])
    return _metadata(store, found[-1]).get("title") if found else None


def _metadata(store: Store, found: Found) -> dict[str, str]:
    return dict(reversed(store.object(found).metadata))


def identifier_page(request: Request, store: Store) -> Page:
    """Everything about one PDI: versions, formats, parts, citations, assertions."""
    reader: Reader = request.app.state.site.reader(request, store)
    base: str = request.app.state.site.base
    asked = _asked(request, store)
    resolved = store.names.resolve(asked)
    records = [each for each in versions_of(store, str(asked.generic)) if each.kind == "object"]
    if resolved.status == "unknown" and not records:
        raise NotFound(f"{asked.document} is not known here")
    seen = [
        each for each in reader.seen(store, records) if not is_withdrawn(store, each)
    ]  # fmt: skip
    chosen = _chosen(asked, seen)
    metadata = _metadata(store, chosen) if chosen else {}
    facts = {
        "pdi": str(asked),
        "generic": str(asked.generic),
        "status": _status(resolved, records),
        "withdrawn": resolved.reason,
        "resolver": resolved.resolver,
        "title": metadata.get("title") or None,
        "description": metadata.get("description") or None,
        "metadata": [list(pair) for pair in store.object(chosen).metadata] if chosen else [],
        "versions": [_version(store, each, reader, base) for each in reversed(records)],
        "formats": _formats(resolved, base),
        "parts": _parts(store, chosen, asked),
        "citations": None,
        "reference": None,
        "assertions": _assertions(store, asked),
        "url": pdi_url(base, str(asked)),
    }
    references = []
    if chosen is not None and chosen.pdi:
        reference = _reference(store, chosen, asked, metadata, base)
        facts["citations"], facts["reference"] = reference.texts(), reference.identifier
        facts["url"] = reference.url
        references.append(reference)
    return Page("identifier.html", facts, references=references)


def _asked(request: Request, store: Store) -> Pdi:
    text = f"pdi://{request.path_params['name']}"
    if fragment := request.query_params.get("fragment", ""):
        text += f"#{fragment}"
    asked = store.names.read(text)
    if asked.wildcards or asked.citation is not None:
        raise UsageError("the page of an identifier is that of one document or of a part of it")
    return asked


def _status(resolved: Resolution, records: list[Found]) -> str:
    if resolved.status == "unknown" and records:
        return "bound"  # it came with an imported tape
    return resolved.status


def _chosen(asked: Pdi, records: list[Found]) -> Found | None:
    """The version that was asked for: the latest, and of a part the first, unless named."""
    named = [(parse_pdi(each.pdi), each) for each in records if each.pdi]
    wanted = asked.version or (1 if asked.fragment else None)
    fitting = [
        each for pdi, each in named
        if asked.format in (None, pdi.format) and wanted in (None, pdi.version)
    ]  # fmt: skip
    return fitting[-1] if fitting else None


def _version(store: Store, found: Found, reader: Reader, base: str) -> dict[str, Any]:
    decision = access_of(store.names).of_record(found)
    withdrawn = is_withdrawn(store, found)
    readable = reader.sees(decision) and not withdrawn
    kept = kept_of(store, found) if readable else None
    return {
        "pdi": found.pdi or None,
        "package": found.identifier,
        "added": found.date,
        "bytes": found.size,
        "files": found.streams,
        "access": "withdrawn" if withdrawn else decision.level,
        "page": identifier_url(found.pdi) if found.pdi else None,
        "content": pdi_url(base, found.pdi) if found.pdi and readable else None,
        "browse": kept.url if kept else None,
    }


def _formats(resolved: Resolution, base: str) -> list[dict[str, Any]]:
    return [
        {
            "pdi": str(each.pdi),
            "format": each.pdi.format,
            "media_type": each.pdi.media_type,
            "bytes": each.length,
            "sha256": each.digest.hex(),
            "bound": each.at,
            "url": pdi_url(base, str(each.pdi)),
        }
        for each in resolved.renditions
    ]


def _parts(store: Store, found: Found | None, asked: Pdi) -> dict[str, Any]:
    """What of a document can be named by a fragment: its tables, and the schemes for its type."""
    media = None
    if found is not None and found.pdi:
        media = parse_pdi(found.pdi).media_type
    schemes = [
        {"name": each.name, "title": each.title}
        for each in SCHEMES.values()
        if media and each.fits(media)
    ]
    tables: list[dict[str, Any]] = []
    if media == _SIARD and found is not None:
        tables = _tables(store, found)
    return {"schemes": schemes, "tables": tables}


def _tables(store: Store, found: Found) -> list[dict[str, Any]]:
    from muniment.siard import open_siard

    with open_siard(store.siard(found.identifier)) as source:
        database: Database = source.describe()
    listed = []
    for s, schema in enumerate(database.schemas):
        for t, table in enumerate(schema.tables):
            fragment = f"table=(s{s},t{t})"
            listed.append(
                {
                    "name": f"{schema.name}.{table.name}",
                    "rows": table.rows,
                    "pdi": f"{found.pdi}#{fragment}",
                    "url": identifier_url(found.pdi, fragment),
                }
            )
    return listed[:_MOST_TABLES]


def _reference(
    store: Store, found: Found, asked: Pdi, metadata: dict[str, str], base: str
) -> Reference:
    pdi = parse_pdi(found.pdi)._replace(fragment=asked.fragment)
    digest = next((b.digest.hex() for b in store.names.resolve(pdi.document).renditions
                   if b.pdi == pdi.document), "")  # fmt: skip
    part = ""
    if asked.fragment is not None:
        part = _words(store, found, pdi)
    return Reference(
        title=metadata.get("title") or str(pdi.document),
        identifier=str(pdi),
        seen=datetime.now(UTC).date(),
        author=metadata.get("creator", ""),
        publisher=metadata.get("publisher") or metadata.get("contributor", ""),
        issued=(metadata.get("date") or found.date)[:10],
        version=str(pdi.version or ""),
        part=part,
        url=pdi_url(base, str(pdi)),
        sha256=digest,
        medium="Archived database, SIARD" if pdi.media_type == _SIARD else (
            metadata.get("format") or pdi.media_type or "Document"
        ),
    )  # fmt: skip


def _words(store: Store, found: Found, pdi: Pdi) -> str:
    """A part in words, after looking whether it is there."""
    from muniment.citations.texts import words_of
    from muniment.fragments import extract

    if pdi.media_type != _SIARD:
        return str(pdi.fragment)
    path = store.siard(found.identifier)
    assert pdi.fragment is not None
    if pdi.fragment.scheme not in ("table", "schema", "col"):  # those may be large
        extract(path, pdi.media_type, pdi.fragment)
    return ", ".join(words_of(path, pdi))


def _assertions(store: Store, asked: Pdi) -> list[dict[str, Any]]:
    try:
        found = store.names.assertions(str(asked), inherited=True)
    except IdentifierError:
        return []
    return [each.as_json() for each in found[:_ASSERTIONS]]
