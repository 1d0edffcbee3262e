"""The pages of the registry: who may give which names, and what happened to each entry."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from muniment.errors import NotFound
from muniment.registry import Registry
from muniment.registry.export import document_markdown, registry_json
from muniment.repository import Store
from muniment.web.page import Page

__all__ = ["entry_page", "registry_page"]


def registry_page(_request: Request, store: Store) -> Page:
    """All entries: subnamespaces, series and fragment schemes."""
    facts = registry_json(Registry(store.names))
    entries = [
        {**each, "url": f"/registry/{quote(each['kind'])}/{quote(each['name'], safe='')}"}
        for each in facts["entries"]
    ]
    return Page("registry.html", {**facts, "entries": entries})


def entry_page(request: Request, store: Store) -> Page:
    """One entry, its registration, and its history."""
    registry = Registry(store.names)
    kind, name = request.path_params["kind"], request.path_params["name"]
    entry = registry.entry(kind, name)
    if entry.state == "unknown":
        raise NotFound(f"the registry has no {kind} {name[:80]}")
    document: str | None = None
    if kind == "namespace" and (entry.versions or entry.proposal):
        document = document_markdown(registry, name)
    facts: dict[str, Any] = {
        **entry.as_json(), "root": registry.root, "document": document,
        "proposal": dict(entry.proposal) if entry.proposal else None,
    }  # fmt: skip
    return Page("registry_entry.html", facts)
