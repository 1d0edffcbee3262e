"""The registry for readers: a page, and each registration as a document in Markdown or HTML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from muniment.errors import NotFound
from muniment.registry.registration import SECTIONS, Registration
from muniment.registry.workflow import Entry, Registry

__all__ = ["document_html", "document_markdown", "page_html", "registry_json"]


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


def _registration(registry: Registry, snid: str) -> tuple[Entry, Registration]:
    entry = registry.entry("namespace", snid)
    body = entry.versions[-1] if entry.versions else entry.proposal
    if body is None:
        raise NotFound(f"there is no registration of {snid} ({entry.state})")
    return entry, Registration.read(body)


def document_markdown(registry: Registry, snid: str) -> str:
    """Return the registration document, sections 1 to 8."""
    entry, registration = _registration(registry, snid)
    lines = [
        f"# Registration of urn:{registry.root}:{entry.name}",
        "",
        f"State: {entry.state}. Version: {entry.version or 'not approved yet'}.",
        f"Steward: {entry.steward or 'not named'}. SHA-256: {digest(entry) or 'none yet'}.",
    ]
    for number, title in SECTIONS.items():
        level = "###" if "." in number else "##"
        text = registration.sections.get(number, "").strip() or "Omitted."
        lines += ["", f"{level} {number}. {title}", "", text]
        lines += _added(number, registration)
    return "\n".join([*lines, ""])


def _added(number: str, registration: Registration) -> Iterator[str]:
    """Yield what the parts for programs add to a section."""
    if number == "2.1" and registration.abnf:
        yield from ("", "```abnf", registration.abnf.strip(), "```", "")
        yield f"At most {registration.max_octets or '(not stated)'} octets."
    if number == "2.2":
        for rule, syntax in registration.assignable.items():
            yield f"- `{rule}`: " + (f"now `{syntax}`" if syntax else "not assigned now")
    if number == "4.3":
        for rule, about in registration.attributes.items():
            opaque = ", opaque" if about.get("opaque") else ""
            yield f"- `{rule}`: {about.get('meaning', '')}{opaque}"
    if number == "6":
        yield from (f"- `{example}`" for example in registration.valid)
        yield from (f"- not valid: `{example}`" for example in registration.invalid)


def document_html(registry: Registry, snid: str) -> str:
    """Return the registration document as a page that stands alone."""
    entry, registration = _registration(registry, snid)
    name = f"urn:{registry.root}:{entry.name}"
    body = [
        f"<h1>Registration of {escape(name)}</h1>",
        f"<p>State: {escape(entry.state)}. Version: {entry.version or 'not approved yet'}. "
        f"Steward: {escape(entry.steward)}. "
        f"SHA-256: <code>{digest(entry) or 'none yet'}</code></p>",
    ]
    for number, title in SECTIONS.items():
        text = registration.sections.get(number, "").strip() or "Omitted."
        body.append(f"<h2>{number}. {escape(title)}</h2>")
        body += [f"<p>{escape(part)}</p>" for part in text.split("\n\n")]
        if number == "2.1":
            body.append(f"<pre>{escape(registration.abnf)}</pre>")
        if number == "6":
            good = [f"<li><code>{escape(each)}</code></li>" for each in registration.valid]
            bad = [f"<li>not valid: <code>{escape(e)}</code></li>" for e in registration.invalid]
            body.append(f"<ul>{''.join([*good, *bad])}</ul>")
    body.append("<h2>History</h2>")
    body.append(_history(entry))
    return _page(f"Registration of {name}", body)


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
    items = "".join(
        f"<li>{escape(str(e['at']))} {escape(str(e['action']))}, {escape(str(e.get('by', '')))}"
        f"{': ' + escape(str(e['reason'])) if e.get('reason') else ''}</li>"
        for e in entry.history
    )
    return f"<ol>{items}</ol>"


def _page(title: str, body: Iterable[str]) -> str:
    head = f'<head><meta charset="utf-8"><title>{escape(title)}</title></head>'
    lines = "\n".join(body)
    return f'<!DOCTYPE html>\n<html lang="en">{head}<body>\n{lines}\n</body></html>\n'
