"""What the store says about each record in the administrative part of its tape.

It is all that the catalogue needs: rebuilding it never parses the records themselves.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lxml import etree

from muniment.errors import FormatError
from muniment.markup import escape, quoteattr
from muniment.objects import object_of
from muniment.objects.didl import parse
from muniment.tape.records import STORE

__all__ = ["Entry", "entry_of", "entry_xml", "parse_entry"]

_ENTRY = re.compile(
    rf'<mu:entry xmlns:mu="{re.escape(STORE)}"((?: [a-z0-9]+="[^"<]*")*)>'
    r"((?:<mu:(?:content|stream|collection)>[^<]*</mu:(?:content|stream|collection)>)*)</mu:entry>"
)
_ATTRIBUTE = re.compile(r' ([a-z0-9]+)="([^"]*)"')
_CHILD = re.compile(r"<mu:(content|stream|collection)>([^<]*)<")
_REFERENCE = re.compile("&(?:(amp|lt|gt|quot)|#([0-9]+));")
_PREDEFINED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"'}
_TERMS = "http://purl.org/dc/terms/"
_LONGEST = 200  # characters of the name of a collection


class Entry(NamedTuple):
    """One record as the catalogue knows it: what kind, its digest, its names, its datastreams."""

    kind: str  # object, record, names, verification, receipt
    sha256: str
    pdi: str = ""  # with format and version
    contents: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    size: int = 0  # of all datastreams, in bytes
    form: str = ""  # the namespace of a record that is neither DIDL nor METS
    collections: tuple[str, ...] = ()  # that a record from elsewhere names
    about: tuple[bytes, ...] = ()  # elements on where it comes from; not in the catalogue


def entry_xml(entry: Entry) -> bytes:
    """Return the element that goes into ta:recordAdmin."""
    pdi = f" pdi={quoteattr(entry.pdi)}" if entry.pdi else ""
    names = "".join([f"<mu:content>{escape(name)}</mu:content>" for name in entry.contents])
    streams = "".join([f"<mu:stream>{escape(name)}</mu:stream>" for name in entry.streams])
    form = f" form={quoteattr(entry.form)}" if entry.form else ""
    parts = "".join([f"<mu:collection>{escape(n)}</mu:collection>" for n in entry.collections])
    return (
        f'<mu:entry xmlns:mu="{STORE}" kind="{entry.kind}" sha256="{entry.sha256}"{pdi} '
        f'size="{entry.size}"{form}>{names}{streams}{parts}</mu:entry>'
    ).encode()


def parse_entry(admin: bytes) -> Entry | None:
    """Return what the store wrote about a record, None for a record of other origin."""
    match = _ENTRY.search(admin.decode("utf-8", "replace")) if STORE.encode() in admin else None
    if match is None:
        return None
    facts = {name: _unescaped(value) for name, value in _ATTRIBUTE.findall(match[1])}
    children: dict[str, list[str]] = {"content": [], "stream": [], "collection": []}
    for kind, text in _CHILD.findall(match[2]):
        children[kind].append(_unescaped(text))
    size = facts.get("size", "0")
    return Entry(
        facts.get("kind", "record"),
        facts.get("sha256", ""),
        facts.get("pdi", ""),
        tuple(children["content"]),
        tuple(children["stream"]),
        int(size) if size.isdecimal() else 0,
        facts.get("form", ""),
        tuple(children["collection"]),
    )


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    return _REFERENCE.sub(lambda found: _PREDEFINED.get(found[1]) or chr(int(found[2])), text)


def entry_of(document: bytes, sha256: str, identifier: str) -> Entry:
    """Return an entry for a record that the store did not write, by looking into it."""
    try:
        root = parse(document, identifier)
        thing = object_of(root, identifier)
    except FormatError:
        return Entry("record", sha256)
    collections = _collections(root)
    if thing is None:
        return Entry("record", sha256, form=_namespace(root), collections=collections)
    streams = tuple(stream.identifier for stream in thing.streams if stream.identifier)
    contents = tuple(name for name in thing.contents if name)
    size = sum(stream.size for stream in thing.streams if stream.size > 0)
    return Entry("object", sha256, "", contents, streams, size, collections=collections)


def _namespace(root: etree._Element) -> str:
    return etree.QName(root).namespace or ""


def _collections(root: etree._Element) -> tuple[str, ...]:
    """Return the collections that a record says it is part of."""
    found = (" ".join((each.text or "").split()) for each in root.iter(f"{{{_TERMS}}}isPartOf"))
    return tuple(dict.fromkeys(name for name in found if name and len(name) <= _LONGEST))
