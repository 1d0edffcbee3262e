"""Pages on a store: what it holds, search, its health, and the token that a browser shows."""

from __future__ import annotations

from itertools import islice
from typing import Any
from urllib.parse import quote

from lxml import etree
from starlette.requests import Request

from muniment.errors import UsageError
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.repository.catalogue import Found
from muniment.repository.words import Words
from muniment.tape.records import STORE
from muniment.web.doors.permission import Reader
from muniment.web.identifier_page import identifier_url
from muniment.web.page import Page
from muniment.web.store_site import Kept, StoreSite, is_withdrawn, kept_archives, kept_of

__all__ = ["health_page", "search_store_page", "store_home_page", "token_page"]

_LISTED = 50
_SECONDS = 2.0  # that a search may spend on what was added since the last one
_LOGS = 20


def store_home_page(request: Request, store: Store) -> Page:
    """The store: its databases, and where everything else is."""
    site: StoreSite = request.app.state.site
    reader = site.reader(request, store)
    after = _place(request.query_params.get("after", ""))
    found = list(kept_archives(store, after, _LISTED + 1))
    shown = found[:_LISTED]
    last = shown[-1].found if len(found) > _LISTED else None
    facts = {
        "series": store.settings.series,
        "counts": store.catalogue.counts(),
        "databases": [_database(store, kept, reader) for kept in shown],
        "next": f"/?after={quote(f'{last.date},{last.file},{last.number}')}" if last else None,
    }
    return Page("store_home.html", facts, {"start": after is None})


def _place(text: str) -> tuple[str, int, int] | None:
    date, _, rest = text.partition(",")
    file, _, number = rest.partition(",")
    if not text:
        return None
    if not (file.isdecimal() and number.isdecimal() and len(rest) < 30):
        raise UsageError(f"{text[:60]!r} is not a place in the list of databases")
    return date, int(file), int(number)


def _database(store: Store, kept: Kept, reader: Reader) -> dict[str, Any]:
    """What the list says of an archive: nothing but its name, if it is not for this reader."""
    found = kept.found
    decision = access_of(store.names).of_record(found)
    readable, withdrawn = reader.sees(decision), is_withdrawn(store, found)
    metadata = dict(reversed(store.object(found).metadata)) if readable else {}
    return {
        "title": metadata.get("title") or None,
        "description": metadata.get("description") or None,
        "creator": metadata.get("creator") or None,
        "pdi": found.pdi or None,
        "added": found.date,
        "size": kept.size if readable else None,
        "access": "withdrawn" if withdrawn else decision.level,
        "url": kept.url if readable and not withdrawn else None,
        "identifier_url": identifier_url(found.pdi) if found.pdi else None,
    }


def search_store_page(request: Request, store: Store) -> Page:
    """Objects by any of their names, or by words of their titles and descriptions."""
    site: StoreSite = request.app.state.site
    words = request.query_params.get("q", "").strip()[:300]
    before = request.query_params.get("before", "")
    if before and not (before.isdecimal() and len(before) < 19):
        raise UsageError(f"{before[:60]!r} is not a place in the list of what was found")
    facts: dict[str, Any] = {"q": words, "found": [], "next": None, "complete": True}
    if words:
        reader = site.reader(request, store)
        named = {} if before else {each.identifier: each for each in store.versions(words)}
        found = list(named.values())[:_LISTED]
        with Words(store) as said:
            facts["complete"] = said.catch_up(_SECONDS)
            facts["searched"] = said.count()
            for place, identifier in said.find(words, int(before) if before else None):
                if len(found) >= _LISTED:
                    facts["next"] = f"/search?q={quote(words)}&before={place + 1}"
                    break
                record = store.catalogue.record(identifier)
                if record is not None and identifier not in named and reader.seen(store, [record]):
                    found.append(record)
        if not facts["complete"]:
            site.read_on()
        facts["found"] = [_hit(store, each, reader) for each in found]
    return Page("store_search.html", facts)


def _hit(store: Store, found: Found, reader: Reader) -> dict[str, Any]:
    readable = bool(reader.seen(store, [found])) and found.kind == "object"
    metadata = dict(reversed(store.object(found).metadata)) if readable else {}
    kept = kept_of(store, found) if readable and not is_withdrawn(store, found) else None
    return {
        "title": metadata.get("title") or found.pdi or found.identifier,
        "description": metadata.get("description") or None,
        "pdi": found.pdi or None,
        "package": found.identifier,
        "added": found.date,
        "url": kept.url if kept else None,
        "identifier_url": identifier_url(found.pdi) if found.pdi else None,
    }


def health_page(request: Request, store: Store) -> Page:
    """Whether the store is well: its files, its room, and what verifications found."""
    files = store.catalogue.files()
    verified = _verifications(store)
    whole = [each for each in verified if each["scope"] == "all"]
    kinds = {kind: [each for each in files if each.kind == kind] for kind in ("tape", "arc")}
    facts = {
        "series": store.settings.series,
        "store": store.settings.id,
        "created": store.settings.created,
        "counts": store.catalogue.counts(),
        "catalogue_complete": bool(store.catalogue.state("complete")),
        "files": {
            kind: {
                "number": len(of_kind),
                "sealed": sum(each.sealed for each in of_kind),
                "bytes": sum(each.end for each in of_kind),
            }
            for kind, of_kind in kinds.items()
        },
        "missing": [each.name for each in files if not store.holds(each)],
        "places": [
            {"place": str(store.settings.places[number]), "free": place.free()}
            for number, place in enumerate(store.places)
        ],
        "last_verified": whole[-1]["finished"] if whole else None,
        "problems": verified[-1]["problems"] if verified else None,
        "verifications": list(reversed(verified[-_LOGS:])),
    }
    facts["well"] = not facts["missing"] and facts["catalogue_complete"] and not facts["problems"]
    return Page("health.html", facts)


def _verifications(store: Store) -> list[dict[str, Any]]:
    """What the logs on the tapes say, oldest first."""
    found = []
    for record in list(store.catalogue.records(kind="verification")):
        root = etree.fromstring(store.read(record)).find(f".//{{{STORE}}}verification")
        if root is None:
            continue
        said = [
            {"place": each.get("place", ""), "message": (each.text or "")[:500]}
            for each in islice(root.iter(f"{{{STORE}}}problem"), 50)
        ]
        numbers = {
            name: int(root.get(name, "0"))
            for name in ("files", "records", "datastreams", "problems")
        }
        words = {name: root.get(name, "") for name in ("scope", "started", "finished")}
        found.append({"log": record.identifier, **words, **numbers, "said": said})
    return found


def token_page(request: Request, store: Store) -> Page:
    """Who this browser is to the store, and the form to show a token."""
    site: StoreSite = request.app.state.site
    token = site.reader(request, store).token
    facts = {
        "holder": token.holder if token else None,
        "scopes": list(token.scopes) if token else [],
        "expires": (token.expires or None) if token else None,
    }
    return Page("token.html", facts)
