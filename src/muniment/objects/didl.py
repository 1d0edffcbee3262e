"""Digital Objects as MPEG-21 DIDL documents: written by us, read from anybody.

Metadata stands in the document, datastreams are referred to by OpenURL. Identifiers of the content
stand in the outermost Item, those of datastreams in their Components.
"""

from __future__ import annotations

from functools import lru_cache

from lxml import etree

from muniment.errors import FormatError
from muniment.markup import escape, quoteattr
from muniment.objects.model import Datastream, DigitalObject, datastream_url, referenced

__all__ = ["DIDL", "didl_document", "didl_object", "didl_statement", "read_didl"]

DIDL = "urn:mpeg:mpeg21:2002:02-DIDL-NS"
DII = "urn:mpeg:mpeg21:2002:01-DII-NS"
DIEXT = "http://library.lanl.gov/2005-08/aDORe/DIDLextension/"
OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
DC = "http://purl.org/dc/elements/1.1/"
PREMIS = "http://www.loc.gov/premis/v3"

_HEAD = (
    f'<didl:DIDL xmlns:didl="{DIDL}" xmlns:dii="{DII}" xmlns:diext="{DIEXT}" '
    f'xmlns:oai_dc="{OAI_DC}" xmlns:dc="{DC}" xmlns:premis="{PREMIS}"'
)
_STATEMENT = '<didl:Descriptor><didl:Statement mimeType="application/xml; charset=utf-8">'
_END = "</didl:Statement></didl:Descriptor>"


def didl_document(thing: DigitalObject, base: str, signatures: bytes = b"") -> bytes:
    """Return the document; ``signatures`` are further elements about the datastreams."""
    identifiers = "".join(
        [
            f"{_STATEMENT}<dii:Identifier>{escape(name)}</dii:Identifier>{_END}"
            for name in thing.contents
        ]
    )
    metadata = "".join([f"<dc:{name}>{escape(text)}</dc:{name}>" for name, text in thing.metadata])
    head = (
        f"{_HEAD} DIDLDocumentId={quoteattr(thing.package)} "
        f'diext:DIDLDocumentCreated="{thing.created}"><didl:Item>{identifiers}'
        f"{_STATEMENT}<oai_dc:dc>{metadata}</oai_dc:dc>{_END}{_event(thing.created, thing.agent)}"
    )
    body = "".join([_component(stream, thing.facts, base) for stream in thing.streams])
    signed = _STATEMENT.encode() + signatures + _END.encode() if signatures else b""
    return head.encode() + signed + body.encode() + b"</didl:Item></didl:DIDL>"


def didl_statement(package: str, created: str, element: bytes) -> bytes:
    """Return a document that says one thing, in any namespace, about no datastream."""
    head = (
        f'<didl:DIDL xmlns:didl="{DIDL}" xmlns:diext="{DIEXT}" DIDLDocumentId={quoteattr(package)} '
        f'diext:DIDLDocumentCreated="{created}"><didl:Item>{_STATEMENT}'
    )
    return head.encode() + element + f"{_END}</didl:Item></didl:DIDL>".encode()


@lru_cache(maxsize=4)
def _event(created: str, agent: str) -> str:
    return (
        f"{_STATEMENT}<premis:event><premis:eventIdentifier>"
        "<premis:eventIdentifierType>local</premis:eventIdentifierType>"
        "<premis:eventIdentifierValue>ingestion</premis:eventIdentifierValue>"
        "</premis:eventIdentifier><premis:eventType>ingestion</premis:eventType>"
        f"<premis:eventDateTime>{created}</premis:eventDateTime>"
        "<premis:eventDetailInformation><premis:eventDetail>"
        f"{escape(agent)}: message digests calculated</premis:eventDetail>"
        f"</premis:eventDetailInformation></premis:event>{_END}"
    )


def _component(stream: Datastream, facts: tuple[tuple[str, str], ...], base: str) -> str:
    url = quoteattr(datastream_url(base, stream.arc, stream.identifier))
    media = quoteattr(stream.media_type)
    return (
        f"<didl:Component>{_STATEMENT}<dii:Identifier>{escape(stream.identifier)}</dii:Identifier>"
        f"{_END}{_STATEMENT}{premis_object(stream, facts)}{_END}"
        f"<didl:Resource mimeType={media} ref={url}/></didl:Component>"
    )


def premis_object(stream: Datastream, facts: tuple[tuple[str, str], ...]) -> str:
    """Return what PREMIS calls a file: fixity, size, format, original name."""
    told = facts if stream.media_type == "application/x-siard" else ()
    properties = "".join(
        f"<premis:significantProperties><premis:significantPropertiesType>{escape(name)}"
        "</premis:significantPropertiesType><premis:significantPropertiesValue>"
        f"{escape(value)}</premis:significantPropertiesValue></premis:significantProperties>"
        for name, value in told
    )
    return (
        "<premis:object><premis:objectIdentifier>"
        "<premis:objectIdentifierType>URI</premis:objectIdentifierType>"
        f"<premis:objectIdentifierValue>{escape(stream.identifier)}</premis:objectIdentifierValue>"
        f"</premis:objectIdentifier>{properties}<premis:objectCharacteristics>"
        "<premis:fixity><premis:messageDigestAlgorithm>SHA-256</premis:messageDigestAlgorithm>"
        f"<premis:messageDigest>{stream.sha256}</premis:messageDigest></premis:fixity>"
        f"<premis:size>{stream.size}</premis:size><premis:format><premis:formatDesignation>"
        f"<premis:formatName>{escape(stream.media_type)}</premis:formatName>"
        "</premis:formatDesignation></premis:format></premis:objectCharacteristics>"
        f"<premis:originalName>{escape(stream.path)}</premis:originalName></premis:object>"
    )


def read_didl(document: bytes, name: str = "the record") -> DigitalObject:
    """Return the object that a DIDL document describes; foreign ones may say less."""
    return didl_object(parse(document, name), name)


def didl_object(root: etree._Element, name: str) -> DigitalObject:
    """Return the object that a parsed DIDL document describes."""
    if root.tag != f"{{{DIDL}}}DIDL":
        raise FormatError(f"{name} is not a DIDL document but {root.tag}")
    item = root.find(f"{{{DIDL}}}Item")
    top = root if item is None else item
    streams = tuple(
        stream for component in root.iter(f"{{{DIDL}}}Component") for stream in _streams(component)
    )
    return DigitalObject(
        package=root.get("DIDLDocumentId", ""),
        created=root.get(f"{{{DIEXT}}}DIDLDocumentCreated", ""),
        contents=tuple(_identifiers(top)),
        streams=streams,
        metadata=tuple(dublin_core(root)),
    )


def dublin_core(root: etree._Element) -> list[tuple[str, str]]:
    """Return every Dublin Core element below an element, in order."""
    return [
        (etree.QName(found).localname, (found.text or "").strip())
        for found in root.iter(f"{{{DC}}}*")
    ]


def _identifiers(element: etree._Element) -> list[str]:
    path = f"{{{DIDL}}}Descriptor/{{{DIDL}}}Statement/{{{DII}}}Identifier"
    return [(found.text or "").strip() for found in element.findall(path)]


def _streams(component: etree._Element) -> list[Datastream]:
    known = {
        etree.QName(found).localname: found.text or ""
        for found in component.iter()
        if isinstance(found.tag, str) and found.tag.startswith("{http://www.loc.gov/")
    }
    streams = []
    for resource in component.findall(f"{{{DIDL}}}Resource"):
        if not resource.get("ref"):
            continue
        identifier, arc = referenced(resource.get("ref", ""))
        if not identifier:
            identifier = next(iter(_identifiers(component)), "")
        streams.append(
            Datastream(
                identifier,
                known.get("originalName", ""),
                resource.get("mimeType", ""),
                int(known["size"]) if known.get("size", "").strip().isdecimal() else -1,
                known.get("messageDigest", "")
                if known.get("messageDigestAlgorithm") == "SHA-256"
                else "",
                arc,
            )
        )
    return streams


def parse(document: bytes, name: str) -> etree._Element:
    """Parse a document that may come from anywhere."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    try:
        return etree.fromstring(document, parser)
    except etree.XMLSyntaxError as error:
        raise FormatError(f"{name} is not well-formed XML: {error}") from None
