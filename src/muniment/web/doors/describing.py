"""Descriptions of documents (URCs): JSON-LD, RDF, ERC and HTML from one set of facts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from muniment.citations.facts import described
from muniment.citations.styles import Reference
from muniment.registry.validation import Verdict
from muniment.repository import Store
from muniment.repository.catalogue import Found
from muniment.web.doors.answers import page, safe_text
from muniment.web.doors.finding import Named
from muniment.web.doors.locating import pdi_url

__all__ = ["DESCRIPTIONS", "Description", "describe", "describe_name", "describe_urn"]

_DC = "http://purl.org/dc/elements/1.1/"
_TERMS = "http://purl.org/dc/terms/"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_IN_IRI = re.compile(r'[<>"{}|^`\\]')
_UNKNOWN = "(:unkn) unknown"


@dataclass(frozen=True)
class Description:
    """What is said about one version of a document."""

    name: str
    url: str
    created: str
    pairs: tuple[tuple[str, str], ...]  # Dublin Core
    parts: tuple[str, ...]


def describe(store: Store, found: Found, base: str) -> Description:
    """Return what the record of a version says."""
    name = found.pdi or found.identifier
    url = pdi_url(base, name) if found.pdi else f"{base}/locate?id={safe_text(name)}"
    if found.kind != "object":
        return Description(name, url, found.date, (("identifier", found.identifier),), ())
    thing = store.object(found)
    known = {value for key, value in thing.metadata if key == "identifier"}
    names = dict.fromkeys((*thing.contents, found.identifier))
    pairs = [(key, value) for key, value in thing.metadata if value]
    pairs += [("identifier", each) for each in names if each not in known]
    return Description(
        name, url, found.date, tuple(pairs), tuple(each.identifier for each in thing.streams)
    )


def describe_name(store: Store, named: Named, base: str) -> Description:
    """Return what was said about a document that has no record, such as a cited query."""
    generic = named.pdi.generic
    pairs = [*described(store.names, generic), ("identifier", str(generic))]
    parts = tuple(str(each.pdi) for each in named.renditions)
    url = pdi_url(base, str(generic))
    return Description(str(generic), url, named.binding.at, tuple(pairs), parts)


def describe_urn(verdict: Verdict, base: str) -> Description:
    """Return what the registry says about a URN."""
    name = verdict.canonical or verdict.urn
    pairs = [("identifier", name), *(("source", each) for each in verdict.resolves)]
    relation = f"{verdict.snid}, version {verdict.version} of its registration, {verdict.state}"
    pairs.append(("relation", relation))
    return Description(name, f"{base}/uri-res/N2L?{safe_text(name)}", "", tuple(pairs), ())


def _json_ld(items: Sequence[Description]) -> bytes:
    graph = []
    for item in items:
        node: dict[str, object] = {"@id": item.name}
        for key in dict.fromkeys(key for key, _ in item.pairs):
            node[f"dc:{key}"] = [value for name, value in item.pairs if name == key]
        if item.created:
            node["dcterms:created"] = item.created
        node["dcterms:hasPart"] = [{"@id": part} for part in item.parts]
        graph.append(node)
    context = {"dc": _DC, "dcterms": _TERMS}
    facts = {"@context": context, **(graph[0] if len(graph) == 1 else {"@graph": graph})}
    return json.dumps(facts, ensure_ascii=False).encode()


def _turtle(items: Sequence[Description]) -> bytes:
    lines = [f"@prefix dc: <{_DC}> .", f"@prefix dcterms: <{_TERMS}> ."]
    for item in items:
        said = [f"dc:{key} {_literal(value)}" for key, value in item.pairs]
        said += [f"dcterms:created {_literal(item.created)}"] if item.created else []
        said += [f"dcterms:hasPart {_iri(part)}" for part in item.parts]
        lines.append(f"{_iri(item.name)}\n    " + " ;\n    ".join(said) + " .")
    return ("\n".join(lines) + "\n").encode()


def _rdf_xml(items: Sequence[Description]) -> bytes:
    parts = []
    for item in items:
        said = [f"<dc:{key}>{_xml(value)}</dc:{key}>" for key, value in item.pairs]
        said += [f"<dcterms:created>{_xml(item.created)}</dcterms:created>"] if item.created else []
        said += [f"<dcterms:hasPart rdf:resource={_reference(part)}/>" for part in item.parts]
        about = f"<rdf:Description rdf:about={_reference(item.name)}>"
        parts.append(f"{about}{''.join(said)}</rdf:Description>")
    spaces = f'xmlns:rdf="{_RDF}" xmlns:dc="{_DC}" xmlns:dcterms="{_TERMS}"'
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}<rdf:RDF {spaces}>{''.join(parts)}</rdf:RDF>\n".encode("utf-8", "replace")


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text), quote=False)


def _reference(name: str) -> str:
    return f'"{escape(_iri(name)[1:-1])}"'


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _iri(name: str) -> str:
    return f"<{_NOT_IN_IRI.sub(lambda match: f'%{ord(match[0]):02X}', safe_text(name))}>"


def _erc(items: Sequence[Description]) -> bytes:
    """Who, what, when, where: an Electronic Resource Citation in ANVL."""

    def first(item: Description, key: str) -> str:
        return next((value for name, value in item.pairs if name == key), _UNKNOWN)

    def line(label: str, text: str) -> str:
        return f"{label}: {' '.join(text.split())}\n"

    return "\n".join(
        "erc:\n"
        + line("who", first(item, "creator"))
        + line("what", first(item, "title"))
        + line("when", first(item, "date") if first(item, "date") != _UNKNOWN else item.created)
        + line("where", item.name)
        for item in items
    ).encode()


def _html(items: Sequence[Description]) -> bytes:
    lists = "".join(
        f'<h2><a href="{escape(item.url)}">{escape(item.name)}</a></h2><dl>'
        + "".join(f"<dt>{escape(key)}<dd>{escape(value)}" for key, value in item.pairs)
        + f"<dt>created<dd>{escape(item.created)}</dl>"
        for item in items
    )
    return page(items[0].name if items else "", lists)


def _cited(item: Description) -> Reference:
    """Return a description as what bibliographies are made of."""
    first = dict(reversed(item.pairs))
    return Reference(
        title=first.get("title") or item.name,
        identifier=item.name,
        seen=datetime.now(UTC).date(),
        author=first.get("creator", ""),
        publisher=first.get("publisher", ""),
        issued=(first.get("date") or item.created)[:10],
        url=item.url,
        medium=first.get("format") or "Document",
    )


def _csl(items: Sequence[Description]) -> bytes:
    found = [each for item in items for each in _cited(item).csl()]
    return json.dumps(found, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _bibtex(items: Sequence[Description]) -> bytes:
    return "\n".join(_cited(item).bibtex() + "\n" for item in items).encode()


DESCRIPTIONS: dict[str, Callable[[Sequence[Description]], bytes]] = {
    "application/ld+json": _json_ld,
    "text/turtle": _turtle,
    "application/rdf+xml": _rdf_xml,
    "text/html": _html,
    "text/plain": _erc,
    "application/vnd.citationstyles.csl+json": _csl,
    "application/x-bibtex": _bibtex,
}
