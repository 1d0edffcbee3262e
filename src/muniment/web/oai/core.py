"""Records as Dublin Core: from what our own writer wrote by pattern, from all others by parsing."""

from __future__ import annotations

import re
from functools import lru_cache

from muniment.markup import escape
from muniment.objects import DIDL, DigitalObject
from muniment.objects.didl import DC, DII, OAI_DC

__all__ = ["dublin_core", "written_core"]

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_ELEMENTS = (
    "title", "creator", "subject", "description", "publisher", "contributor", "date", "type",
    "format", "identifier", "source", "language", "relation", "coverage", "rights",
)  # fmt: skip

_OWN = re.compile(
    rb"<didl:DIDL((?: xmlns:[a-z_]+=\"[^\"]*\")+) DIDLDocumentId=\"[^\"]*\" "
    rb"diext:DIDLDocumentCreated=\"[^\"]*\"><didl:Item>"
    rb"((?:<didl:Descriptor><didl:Statement mimeType=\"application/xml; charset=utf-8\">"
    rb"<dii:Identifier>[^<]*</dii:Identifier></didl:Statement></didl:Descriptor>)*)"
    rb"<didl:Descriptor><didl:Statement mimeType=\"application/xml; charset=utf-8\">"
    rb"<oai_dc:dc>((?:<dc:([a-z]+)>[^<]+</dc:\4>)*)</oai_dc:dc>"
)
_SPACES = tuple(
    f' xmlns:{prefix}="{space}"'.encode()
    for prefix, space in (("didl", DIDL), ("dii", DII), ("oai_dc", OAI_DC), ("dc", DC))
)
_CONTENT = re.compile(rb"<dii:Identifier>([^<]*)<")
_PAIR = re.compile(rb"<dc:([a-z]+)>([^<]*)<")
_ASCII_SPACE = bytes(range(9, 14)) + bytes(range(28, 33))  # as str.strip has it
_NAMES = {name.encode() for name in _ELEMENTS}


def written_core(document: bytes, identifier: str) -> bytes | None:
    """Return the Dublin Core of a document as our writer writes them, without parsing it.

    None if it is not spelled so, or holds what has to be looked at.
    """
    match = _OWN.match(document)
    if match is None or b"&#" in match[2] + match[3] or not _has_spaces(match[1]):
        return None
    pairs = _PAIR.findall(match[3])
    if any(name not in _NAMES or _padded(value) for name, value in pairs):
        return None
    known = {value for name, value in pairs if name == b"identifier"}
    names = dict.fromkeys((*_CONTENT.findall(match[2]), escape(identifier).encode()))
    if any(map(_padded, names)):
        return None
    more = b"".join(
        b"<dc:identifier>%b</dc:identifier>" % name for name in names if name not in known
    )
    return b"%b%b%b</oai_dc:dc>" % (_CORE_HEAD, match[3], more)


@lru_cache(maxsize=64)
def _has_spaces(declarations: bytes) -> bool:
    return all(space in declarations for space in _SPACES)


_CORE = (
    f'<oai_dc:dc xmlns:oai_dc="{OAI_DC}" xmlns:dc="{DC}" xmlns:xsi="{_XSI}" '
    f'xsi:schemaLocation="{OAI_DC} http://www.openarchives.org/OAI/2.0/oai_dc.xsd">'
)


_CORE_HEAD = _CORE.encode()


def _padded(value: bytes) -> bool:
    if value.isascii():
        return value.strip(_ASCII_SPACE) != value
    text = value.decode()
    return text.strip() != text


def dublin_core(thing: DigitalObject | None, identifier: str) -> bytes:
    """Return a description that everybody understands, from what the record says of itself."""
    pairs = [(name, value) for name, value in (thing.metadata if thing else ()) if value]
    known = {value for name, value in pairs if name == "identifier"}
    names = dict.fromkeys((*(thing.contents if thing else ()), identifier))
    pairs += [("identifier", name) for name in names if name not in known]
    text = "".join(
        f"<dc:{name}>{escape(value)}</dc:{name}>" for name, value in pairs if name in _ELEMENTS
    )
    return f"{_CORE}{text}</oai_dc:dc>".encode()
