"""What the store says about each record in the administrative part of its tape.

It is all that the catalogue needs: rebuilding it never parses the records themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.sax.saxutils import unescape

from muniment.errors import FormatError
from muniment.objects import read_object
from muniment.objects.escaping import escape, quoteattr
from muniment.tape.records import STORE

__all__ = ["Entry", "entry_of", "entry_xml", "parse_entry"]

_ENTRY = re.compile(
    rf'<mu:entry xmlns:mu="{re.escape(STORE)}"((?: [a-z0-9]+="[^"<]*")*)>'
    r"((?:<mu:(?:content|stream)>[^<]*</mu:(?:content|stream)>)*)</mu:entry>"
)
_ATTRIBUTE = re.compile(r' ([a-z0-9]+)="([^"]*)"')
_CHILD = re.compile(r"<mu:(content|stream)>([^<]*)<")
_QUOTE = {"&quot;": '"'}


@dataclass(frozen=True, slots=True)
class Entry:
    """One record as the catalogue knows it: what kind, its digest, its names, its datastreams."""

    kind: str  # object, record, names, verification, receipt
    sha256: str
    pdi: str = ""  # with format and version
    contents: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    size: int = 0  # of all datastreams, in bytes


def entry_xml(entry: Entry) -> bytes:
    """Return the element that goes into ta:recordAdmin."""
    pdi = f" pdi={quoteattr(entry.pdi)}" if entry.pdi else ""
    names = "".join(f"<mu:content>{escape(name)}</mu:content>" for name in entry.contents)
    streams = "".join(f"<mu:stream>{escape(name)}</mu:stream>" for name in entry.streams)
    return (
        f'<mu:entry xmlns:mu="{STORE}" kind="{entry.kind}" sha256="{entry.sha256}"{pdi} '
        f'size="{entry.size}">{names}{streams}</mu:entry>'
    ).encode()


def parse_entry(admin: bytes) -> Entry | None:
    """Return what the store wrote about a record, None for a record of other origin."""
    match = _ENTRY.search(admin.decode("utf-8", "replace")) if STORE.encode() in admin else None
    if match is None:
        return None
    facts = {name: unescape(value, _QUOTE) for name, value in _ATTRIBUTE.findall(match[1])}
    contents: list[str] = []
    streams: list[str] = []
    for kind, text in _CHILD.findall(match[2]):
        (contents if kind == "content" else streams).append(unescape(text))
    size = facts.get("size", "0")
    return Entry(
        facts.get("kind", "record"),
        facts.get("sha256", ""),
        facts.get("pdi", ""),
        tuple(contents),
        tuple(streams),
        int(size) if size.isdecimal() else 0,
    )


def entry_of(document: bytes, sha256: str, identifier: str) -> Entry:
    """Return an entry for a record that the store did not write, by looking into it."""
    try:
        thing = read_object(document, identifier)
    except FormatError:
        thing = None
    if thing is None:
        return Entry("record", sha256)
    streams = tuple(stream.identifier for stream in thing.streams if stream.identifier)
    contents = tuple(name for name in thing.contents if name)
    size = sum(stream.size for stream in thing.streams if stream.size > 0)
    return Entry("object", sha256, "", contents, streams, size)
