"""Names that harvesters see: prefixes of formats, collections as sets, items of the scheme oai."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

from muniment.objects import DIDL, METS
from muniment.objects.didl import OAI_DC
from muniment.web.oai.records import MetadataFormat, Set

__all__ = [
    "FORMATS", "REPOSITORY", "collection_of", "collection_sets", "collection_spec",
    "foreign_format", "item_of", "oai_identifier_description", "oai_name", "series_spec",
]  # fmt: skip

FORMATS = (
    MetadataFormat(
        "didl",
        "http://standards.iso.org/ittf/PubliclyAvailableStandards/MPEG-21_schema_files/did/didl.xsd",
        DIDL,
    ),
    MetadataFormat("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", OAI_DC),
    MetadataFormat("mets", "http://www.loc.gov/standards/mets/mets.xsd", METS),
)
_KNOWN = {
    each.namespace: each
    for each in (
        *FORMATS,
        MetadataFormat(
            "marc21",
            "http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd",
            "http://www.loc.gov/MARC21/slim",
        ),
        MetadataFormat(
            "mods", "http://www.loc.gov/standards/mods/v3/mods.xsd", "http://www.loc.gov/mods/v3"
        ),
        MetadataFormat("ead", "http://www.loc.gov/ead/ead.xsd", "urn:isbn:1-931666-22-9"),
    )
}
_SCHEME = "http://www.openarchives.org/OAI/2.0/oai-identifier"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
REPOSITORY = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*(\.[a-zA-Z][a-zA-Z0-9-]*)+")


def foreign_format(namespace: str) -> MetadataFormat | None:
    """Return the format of records of a namespace: its common prefix, or one that is always equal.

    >>> foreign_format("http://www.loc.gov/mods/v3").prefix, foreign_format("urn:example:b").prefix
    ('mods', 'ns-b02753fd')
    """
    if not namespace:
        return None
    if namespace in _KNOWN:
        return _KNOWN[namespace]
    prefix = f"ns-{hashlib.sha256(namespace.encode()).hexdigest()[:8]}"
    return MetadataFormat(prefix, namespace, namespace)


# Collections: document series, whose parts are a hierarchy from the country down, and what records
# from elsewhere say they are part of.


def series_spec(series: str) -> str:
    """Return the set of a document series.

    >>> series_spec("db.example.ch")
    'collection:ch:example:db'
    """
    return "collection:" + ":".join(reversed(series.split(".")))


def collection_spec(name: str) -> str:
    """Return the set of a collection of any name; what sets cannot have is written ``*HH``.

    >>> collection_spec("info:x/a b")
    'collection:info*3Ax*2Fa*20b'
    """
    return "collection:" + quote(name, safe="").replace("%", "*")


def collection_of(rest: str) -> tuple[str, str]:
    """Return the series and the collection that a set below ``collection`` may stand for."""
    return ".".join(reversed(rest.split(":"))), unquote(rest.replace("*", "%"))


def collection_sets(series: Iterable[str], others: Iterable[str]) -> list[Set]:
    """Return all sets by collection, each with those above it."""
    found: dict[str, str] = {}
    for name in series:
        parts = name.split(".")
        for start in range(len(parts) - 1, -1, -1):
            part = ".".join(parts[start:])
            found.setdefault(series_spec(part), f"Documents of {part}")
    for name in others:
        found.setdefault(collection_spec(name), f"Records from elsewhere that are part of {name}")
    top = [Set("collection", "By collection")] if found else []
    return top + [Set(spec, name) for spec, name in found.items()]


# Items of the scheme oai: oai:SERIES:LOCAL


def oai_name(identifier: str, repository: str) -> str:
    """Return the name of an item in the scheme oai.

    >>> oai_name("urn:uuid:0197", "db.example.ch"), oai_name("info:x y", "db.example.ch")
    ('oai:db.example.ch:0197', 'oai:db.example.ch:info:x%20y')
    """
    local = quote(identifier.removeprefix("urn:uuid:"), safe="-_.!~*'();/?:@&=+$,")
    return f"oai:{repository}:{local}"


def item_of(name: str, repository: str) -> str | None:
    """Return the item that a name of the scheme oai stands for, None if it is of another."""
    head = f"oai:{repository}:"
    if not name.startswith(head) or len(name) == len(head):
        return None
    local = unquote(name.removeprefix(head))
    return local if ":" in local else f"urn:uuid:{local}"


def oai_identifier_description(repository: str, sample: str) -> bytes:
    """Return what Identify says about the names of items."""
    return (
        f'<oai-identifier xmlns="{_SCHEME}" xmlns:xsi="{_XSI}" '
        f'xsi:schemaLocation="{_SCHEME} {_SCHEME}.xsd"><scheme>oai</scheme>'
        f"<repositoryIdentifier>{escape(repository)}</repositoryIdentifier>"
        "<delimiter>:</delimiter>"
        f"<sampleIdentifier>{escape(oai_name(sample, repository))}</sampleIdentifier>"
        "</oai-identifier>"
    ).encode()
