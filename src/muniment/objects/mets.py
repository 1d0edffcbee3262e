"""Digital Objects as METS documents, written and read."""

from __future__ import annotations

import hashlib

from lxml import etree

from muniment.errors import FormatError
from muniment.markup import escape, quoteattr
from muniment.objects.didl import DC, OAI_DC, PREMIS, dublin_core, parse, premis_object
from muniment.objects.model import Datastream, DigitalObject, datastream_url, referenced

__all__ = ["METS", "mets_document", "mets_object", "read_mets"]

METS = "http://www.loc.gov/METS/"
XLINK = "http://www.w3.org/1999/xlink"


def mets_document(thing: DigitalObject, base: str, signatures: bytes = b"") -> bytes:
    """Return the document; ``signatures`` are further elements about the datastreams."""
    key = f"m{hashlib.sha256(thing.package.encode()).hexdigest()[:24]}"  # unique on any tape
    others = "".join(
        f"<mets:altRecordID>{escape(name)}</mets:altRecordID>" for name in thing.contents
    )
    metadata = "".join(f"<dc:{name}>{escape(value)}</dc:{name}>" for name, value in thing.metadata)
    parts = [
        f'<mets:mets xmlns:mets="{METS}" xmlns:xlink="{XLINK}" xmlns:oai_dc="{OAI_DC}" '
        f'xmlns:dc="{DC}" xmlns:premis="{PREMIS}" '
        f"OBJID={quoteattr(thing.package)}>"
        f'<mets:metsHdr CREATEDATE="{thing.created}"><mets:agent ROLE="ARCHIVIST" TYPE="OTHER" '
        f'OTHERTYPE="SOFTWARE"><mets:name>{escape(thing.agent)}</mets:name></mets:agent>{others}'
        f'</mets:metsHdr><mets:dmdSec ID="{key}-dc"><mets:mdWrap MDTYPE="DC"><mets:xmlData>'
        f"<oai_dc:dc>{metadata}</oai_dc:dc></mets:xmlData></mets:mdWrap></mets:dmdSec>"
    ]
    technical = "".join(
        f'<mets:techMD ID="{key}-t{n}"><mets:mdWrap MDTYPE="PREMIS:OBJECT"><mets:xmlData>'
        f"{premis_object(stream, thing.facts)}</mets:xmlData></mets:mdWrap></mets:techMD>"
        for n, stream in enumerate(thing.streams)
    )
    parts.append(f"<mets:amdSec>{technical}")
    if signatures:
        parts.append(
            f'<mets:digiprovMD ID="{key}-s"><mets:mdWrap MDTYPE="OTHER" OTHERMDTYPE="XMLDSIG">'
            f"<mets:xmlData>{signatures.decode()}</mets:xmlData></mets:mdWrap></mets:digiprovMD>"
        )
    parts.append("</mets:amdSec>" + _files(thing, base, key))
    return "".join(parts).encode()


def _files(thing: DigitalObject, base: str, key: str) -> str:
    files = "".join(
        f'<mets:file ID="{key}-f{n}" ADMID="{key}-t{n}" MIMETYPE={quoteattr(stream.media_type)} '
        f'SIZE="{stream.size}" CHECKSUM="{stream.sha256}" CHECKSUMTYPE="SHA-256" '
        f'OWNERID={quoteattr(stream.identifier)}><mets:FLocat LOCTYPE="URL" '
        f"xlink:href={quoteattr(datastream_url(base, stream.arc, stream.identifier))} "
        f"xlink:title={quoteattr(stream.path)}/></mets:file>"
        for n, stream in enumerate(thing.streams)
    )
    group = f"<mets:fileSec><mets:fileGrp>{files}</mets:fileGrp></mets:fileSec>" if files else ""
    pointers = "".join(f'<mets:fptr FILEID="{key}-f{n}"/>' for n in range(len(thing.streams)))
    return (
        f'{group}<mets:structMap><mets:div DMDID="{key}-dc">{pointers}</mets:div></mets:structMap>'
        "</mets:mets>"
    )


def read_mets(document: bytes, name: str = "the record") -> DigitalObject:
    """Return the object that a METS document describes; foreign ones may say less."""
    return mets_object(parse(document, name), name)


def mets_object(root: etree._Element, name: str) -> DigitalObject:
    """Return the object that a parsed METS document describes."""
    if root.tag != f"{{{METS}}}mets":
        raise FormatError(f"{name} is not a METS document but {root.tag}")
    header = root.find(f"{{{METS}}}metsHdr")
    streams = []
    for file in root.iter(f"{{{METS}}}file"):
        location = file.find(f"{{{METS}}}FLocat")
        if location is None:
            continue
        identifier, arc = referenced(location.get(f"{{{XLINK}}}href", ""))
        size, digest = file.get("SIZE", ""), file.get("CHECKSUM", "")
        streams.append(
            Datastream(
                file.get("OWNERID", "") or identifier,
                location.get(f"{{{XLINK}}}title", ""),
                file.get("MIMETYPE", ""),
                int(size) if size.isdecimal() else -1,
                digest if file.get("CHECKSUMTYPE") == "SHA-256" else "",
                arc,
            )
        )
    others = root.iter(f"{{{METS}}}altRecordID")
    return DigitalObject(
        package=root.get("OBJID", ""),
        created="" if header is None else header.get("CREATEDATE", ""),
        contents=tuple((other.text or "").strip() for other in others),
        streams=tuple(streams),
        metadata=tuple(dublin_core(root)),
    )
