"""Digital Objects and the documents that describe them: DIDL and METS."""

from __future__ import annotations

from collections.abc import Callable

from lxml import etree

from muniment.objects.didl import DIDL, didl_document, didl_object, didl_statement, parse, read_didl
from muniment.objects.mets import METS, mets_document, mets_object, read_mets
from muniment.objects.model import Datastream, DigitalObject, datastream_url

__all__ = [
    "DIDL", "DOCUMENTS", "METS", "Datastream", "DigitalObject", "datastream_url", "didl_document",
    "didl_statement", "mets_document", "object_of", "read_didl", "read_mets", "read_object",
]  # fmt: skip

DOCUMENTS: dict[str, Callable[..., bytes]] = {"didl": didl_document, "mets": mets_document}


def read_object(document: bytes, name: str = "the record") -> DigitalObject | None:
    """Return the object that a document describes, None if it is neither DIDL nor METS."""
    return object_of(parse(document, name), name)


def object_of(root: etree._Element, name: str) -> DigitalObject | None:
    """Return the object that a parsed document describes, None if it is neither DIDL nor METS."""
    if root.tag.startswith(f"{{{DIDL}}}"):
        return didl_object(root, name)
    if root.tag.startswith(f"{{{METS}}}"):
        return mets_object(root, name)
    return None
