"""The registry for readers: a page, and each registration as a document in Markdown or HTML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from muniment.errors import NotFound
from muniment.registry.registration import CHAPTERS, SECTIONS, Registration
from muniment.registry.workflow import Entry, Registry

__all__ = ["document_html", "document_markdown", "page_html", "page_markdown", "registry_json"]


def registry_json(registry: Registry) -> dict[str, Any]:
    """Return the whole registry for programs."""
    entries = sorted(registry.entries().items())
    own = [
        {"name": s.name, "title": s.title, "media_types": [m or "*" for m in s.media]}
        for s in registry.names.schemes.values()
    ]
    return {
        "root": registry.root,
        "entries": [{**entry.as_json(), "digest": digest(entry)} for _, entry in entries],
        "series": [
            {"name": s.name, "state": s.state, "steward": s.steward, "title": s.title}
            for s in registry.names.all_series()
        ],
        "fragment_schemes": own,
    }


def digest(entry: Entry) -> str | None:
    """Return the SHA-256 of the registration in force, as it was handed in."""
    if not entry.versions:
        return None
    text = json.dumps(entry.versions[-1], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Section:
    """One section of a document: prose, perhaps source text, perhaps a list."""

    level: int
    title: str
    prose: str = ""
    source: str = ""
    items: tuple[str, ...] = ()


def document_markdown(registry: Registry, name: str, kind: str = "namespace") -> str:
    """Return the registration document, sections 1 to 8 and the history."""
    title, head, sections = _document(registry, kind, name)
    lines = [f"# {title}", "", *head]
    for section in sections:
        lines += ["", f"{'#' * section.level} {section.title}"]
        if section.prose:
            lines += ["", section.prose]
        if section.source:
            lines += ["", "```abnf", section.source, "```"]
        if section.items:
            lines += ["", *(f"- {item}" for item in section.items)]
    return "\n".join([*lines, ""])


def document_html(registry: Registry, name: str, kind: str = "namespace") -> str:
    """Return the registration document as a page that stands alone."""
    title, head, sections = _document(registry, kind, name)
    body = [f"<h1>{escape(title)}</h1>", f"<p>{'<br>'.join(map(escape, head))}</p>"]
    for section in sections:
        body.append(f"<h{section.level}>{escape(section.title)}</h{section.level}>")
        body += [f"<p>{escape(part)}</p>" for part in section.prose.split("\n\n") if part]
        if section.source:
            body.append(f"<pre>{escape(section.source)}</pre>")
        if section.items:
            body.append(f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in section.items)}</ul>")
    return _page(title, body)


def _document(registry: Registry, kind: str, name: str) -> tuple[str, list[str], list[_Section]]:
    """Return title, facts and sections of the registration in force, or of the proposal."""
    entry = registry.entry(kind, name)
    body = entry.versions[-1] if entry.versions else entry.proposal
    if body is None:
        raise NotFound(f"there is no registration of {name} ({entry.state})")
    shown = f"urn:{registry.root}:{entry.name}" if kind == "namespace" else f"{kind} {entry.name}"
    head = [
        f"State: {entry.state}. Version: {entry.version or 'not approved yet'}.",
        f"Steward: {entry.steward or 'not named'}. SHA-256: {digest(entry) or 'none yet'}.",
    ]
    if kind == "namespace":
        sections = list(_template(Registration.read(body)))
    else:
        sections = [_Section(2, key, _text(value)) for key, value in body.items()]
    history = tuple(_event(event) for event in entry.history)
    return f"Registration of {shown}", head, [*sections, _Section(2, "History", items=history)]


def _template(registration: Registration) -> Iterator[_Section]:
    """Yield the sections of the template, each with what the parts for programs add to it."""
    chapter = ""
    for number, title in SECTIONS.items():
        whole = number.partition(".")[0]
        if "." in number and whole != chapter:
            yield _Section(2, f"{whole}. {CHAPTERS[whole]}")
        chapter = whole
        prose = registration.sections.get(number, "").strip() or "Omitted."
        source = registration.abnf.strip() if number == "2.1" else ""
        items = tuple(_added(number, registration))
        yield _Section(3 if "." in number else 2, f"{number}. {title}", prose, source, items)


def _added(number: str, registration: Registration) -> Iterator[str]:
    """Yield what the parts for programs add to a section."""
    match number:
        case "2.1":
            yield f"Start rule: {registration.start}"
            yield f"At most {registration.max_octets or '(not stated)'} octets"
        case "2.2":
            for rule, syntax in registration.assignable.items():
                yield f"{rule}: " + (f"now {syntax}" if syntax else "not assigned now")
        case "2.3":
            yield f"Percent-escapes: {'allowed' if registration.percent else 'not allowed'}"
        case "2.4":
            yield f"Steps: {', '.join(registration.steps) or 'none'}"
            yield from (f"{one} is equivalent to {other}" for one, other in registration.equal)
            yield from (f"{one} differs from {other}" for one, other in registration.different)
        case "3.1" if registration.ddds:
            yield f"First rule of the DDDS: {registration.ddds}"
        case "4.3":
            for rule, about in registration.attributes.items():
                opaque = ", opaque" if about.get("opaque") else ""
                yield f"{rule}: {about.get('meaning', '')}{opaque}"
        case "5.1":
            yield f"Mode: {registration.assignment.get('mode', '(not stated)')}"
        case "5.2":
            for rule, about in registration.attributes.items():
                if about.get("volatile"):
                    yield f"{rule} may change: {about.get('measure', 'no measure')}"
        case "6":
            yield from registration.valid
            yield from (f"not valid: {example}" for example in registration.invalid)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _event(event: Mapping[str, Any]) -> str:
    reason = f": {event['reason']}" if event.get("reason") else ""
    return f"{event['at']} {event['action']}, {event.get('by', '')}{reason}"


def page_markdown(registry: Registry) -> str:
    """Return the registry as a table in Markdown."""
    lines = [
        f"# Registry of urn:{registry.root}",
        "",
        "| kind | name | state | version | steward |",
    ]
    lines.append("|---|---|---|---|---|")
    for _, entry in sorted(registry.entries().items()):
        cells = (entry.kind, entry.name, entry.state, str(entry.version or ""), entry.steward)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def page_html(registry: Registry) -> str:
    """Return the page of the registry: every entry with state, version, digest and history."""
    rows = []
    for _, entry in sorted(registry.entries().items()):
        cells = (entry.kind, entry.name, entry.state, str(entry.version or ""), entry.steward)
        marked = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr>{marked}<td><code>{(digest(entry) or '')[:16]}</code></td>")
        rows.append(f"<td>{_history(entry)}</td></tr>")
    heads = ("kind", "name", "state", "version", "steward", "document", "history")
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    schemes = "".join(
        f"<li><code>{escape(s.name)}</code>: {escape(s.title)}</li>"
        for s in registry.names.schemes.values()
    )
    body = [
        f"<h1>Registry of urn:{escape(registry.root)}</h1>",
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>",
        f"<h2>Fragment schemes</h2><ul>{schemes}</ul>",
    ]
    return _page(f"Registry of urn:{registry.root}", body)


def _history(entry: Entry) -> str:
    return f"<ol>{''.join(f'<li>{escape(_event(event))}</li>' for event in entry.history)}</ol>"


def _page(title: str, body: Iterable[str]) -> str:
    head = f'<head><meta charset="utf-8"><title>{escape(title)}</title></head>'
    lines = "\n".join(body)
    return f'<!DOCTYPE html>\n<html lang="en">{head}<body>\n{lines}\n</body></html>\n'
