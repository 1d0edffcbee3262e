"""What the API tells: the store, its objects, names, citations, assertions, the registry."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from muniment.citations import cite_part
from muniment.errors import NotFound
from muniment.identifiers import Pdi, Profile
from muniment.names.assertions import subject_key
from muniment.registry import Registry
from muniment.registry.export import registry_json
from muniment.repository import Store
from muniment.repository.access import EVERYTHING, access_of, subjects_of
from muniment.repository.catalogue import Found
from muniment.repository.store import version_of
from muniment.web.api.operations import Call
from muniment.web.doors.finding import versions_of
from muniment.web.doors.locating import stream_url, version_facts
from muniment.web.doors.permission import Reader, refuse_unreadable
from muniment.web.doors.quoting import check, document_path, facts_of

__all__ = [
    "get_access", "get_assertions", "get_citation", "get_entry", "get_object", "get_quotation",
    "get_registry", "get_resolution", "get_store", "list_objects",
]  # fmt: skip

_MOST = 1000


def get_store(store: Store, call: Call) -> Any:
    """What the store is, and how much is in it."""
    settings = store.settings
    return {
        "id": settings.id,
        "created": settings.created,
        "series": settings.series,
        "base_url": call.desk.base,
        "access": access_of(store.names).of_subject(EVERYTHING).level,
        "counts": store.catalogue.counts(),
        "document_series": [
            {"name": s.name, "state": s.state, "title": s.title, "steward": s.steward}
            for s in store.names.all_series()
        ],
    }


def list_objects(store: Store, call: Call) -> Any:
    """A page of objects by date."""
    values, limit = call.values, call.values.get("limit", 100)
    date, file, number = (values.get("after") or "~-1~-1").split("~")
    until = values.get("until", "9999")
    until = f"{until}T23:59:59Z" if len(until) == 10 else until
    after = date, int(file), int(number)
    rows = list(
        store.catalogue.records(values.get("since", ""), until, "object", -1, after, limit + 1)
    )
    more, rows = len(rows) > limit, rows[:limit]
    last = rows[-1] if rows else None
    return {
        "objects": [version_facts(store, each, call.desk.base, call.reader) for each in rows],
        "next": f"{last.date}~{last.file}~{last.number}" if more and last else None,
    }


def get_object(store: Store, call: Call) -> Any:
    """One version of an object, with its description and its files."""
    name, version = call.values["name"], call.values.get("version")
    found = [each for each in versions_of(store, name) if version in (None, version_of(each))]
    if not found:
        raise NotFound(f"there is nothing called {name} in this store")
    chosen = found[-1]
    refuse_unreadable(call.reader, access_of(store.names).of_record(chosen), name)
    facts = version_facts(store, chosen, call.desk.base, call.reader)
    return {**facts, **_described(store, chosen, call.desk.base)}


def _described(store: Store, found: Found, base: str) -> dict[str, Any]:
    if found.kind != "object":
        return {"contents": [], "metadata": [], "files": []}
    thing = store.object(found)
    files = []
    for stream in thing.streams:
        place = store.catalogue.stream(stream.identifier)
        arc = None if place is None else store.catalogue.file(place.file)
        files.append(
            {
                "id": stream.identifier,
                "path": stream.path,
                "media_type": stream.media_type,
                "bytes": stream.size,
                "sha256": stream.sha256,
                "url": None if arc is None else stream_url(base, arc, stream.identifier),
            }
        )
    return {
        "contents": list(thing.contents),
        "metadata": [{"name": name, "value": value} for name, value in thing.metadata],
        "files": files,
    }


def get_access(store: Store, call: Call) -> Any:
    """Who may read what a name stands for."""
    name = call.values["id"]
    access = access_of(store.names)
    records = versions_of(store, name)
    if records and (found := records[-1]).identifier == name:
        decision = access.of_record(found)
    else:
        decision = access.of_subject(subjects_of(store, name)[-1])
    return {key: value for key, value in decision.as_json().items() if key != "by"}


def get_resolution(store: Store, call: Call) -> Any:
    """What the book of names says of a PDI; of what may not be read, that it is there."""
    profile = Profile.QUERY if "*" in call.values["id"] else Profile.READ
    pdi = store.names.read(call.values["id"], profile)
    found = store.names.resolve(pdi)
    facts = found.as_json()
    name = found.binding.pdi if found.binding is not None else pdi.document
    access = access_of(store.names)
    decision = access.of_pdi(name)
    if not call.reader.sees(decision):
        facts |= {"binding": None, "renditions": [], "pdi": str(name)}
    facts["renditions"] = [
        each for each in facts["renditions"] if call.reader.sees(access.of_pdi(each["pdi"]))
    ]
    return {**facts, "access": decision.level}


def get_citation(store: Store, call: Call) -> Any:
    """A document or a part of one, cited in words."""
    found = store.names.resolve(store.names.read(call.values["id"], Profile.CITE))
    name = found.asked.document if found.binding is None else found.binding.pdi
    refuse_unreadable(call.reader, access_of(store.names).of_pdi(name), str(name))
    with tempfile.TemporaryDirectory(prefix="muniment-") as folder:
        opened = partial(_opened, store, Path(folder), call.reader)
        pdi, text = cite_part(store.names, call.values["id"], opened)
    return {"pdi": str(pdi), "citation": text}


def _opened(store: Store, folder: Path, reader: Reader, pdi: Pdi) -> Path:
    return document_path(store, pdi, folder, reader)


def get_quotation(store: Store, call: Call) -> Any:
    """Whether a citing document really holds what it cites."""
    return facts_of(check(store, store.names.read(call.values["id"]), call.reader))


def get_assertions(store: Store, call: Call) -> Any:
    """What was said about a name."""
    subject = call.values["subject"]
    key = subject_key(subject, store.names.read)
    if not key.endswith("/"):
        decision = access_of(store.names).of_subject(str(store.names.read(key).document))
        refuse_unreadable(call.reader, decision, subject)
    found = store.names.assertions(
        subject, call.values.get("predicate"), call.values.get("inherited", False)
    )
    return {
        "assertions": [each.as_json() for each in found[:_MOST]],
        "complete": len(found) <= _MOST,
    }


def get_registry(store: Store, _call: Call) -> Any:
    """The whole registry."""
    return registry_json(Registry(store.names))


def get_entry(store: Store, call: Call) -> Any:
    """One entry of the registry, with all that happened to it."""
    entry = Registry(store.names).entry(call.values["kind"], call.values["name"])
    if entry.state == "unknown":
        raise NotFound(f"{entry.kind} {entry.name} is not in the registry")
    return entry.as_json()
