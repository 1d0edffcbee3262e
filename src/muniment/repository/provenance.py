"""Where records come from: the provenance of OAI-PMH, kept with each record on its tape.

A harvested record carries the address it was harvested from, its identifier, date and namespace
there, and what that repository said of still earlier ones. A record on an imported tape comes from
that tape.
"""

from __future__ import annotations

import copy
import os
import re
from typing import TYPE_CHECKING

from lxml import etree

from muniment.markup import escape, quoteattr
from muniment.objects import DIDL, METS
from muniment.repository.catalogue import File, Found
from muniment.repository.naming import statement
from muniment.tape.records import STORE

if TYPE_CHECKING:
    from muniment.repository.store import Store

__all__ = ["PROVENANCE", "harvest_of", "harvested_about", "note_imports", "origins"]

PROVENANCE = "http://www.openarchives.org/OAI/2.0/provenance"
_OAI = "http://www.openarchives.org/OAI/2.0/"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_BEFORE = 1 << 16  # bytes before a record in which what is said about it stands
_ADMIN = re.compile(rb"<ta:recordAdmin>(.*?)</ta:recordAdmin>", re.DOTALL)
_OWN = b'<mu:entry xmlns:mu="'


def harvest_of(root: etree._Element) -> tuple[str, str]:
    """Return the address and the date of an answer of OAI-PMH."""
    source = root.findtext(f"{{{_OAI}}}request", "").strip()
    return source, root.findtext(f"{{{_OAI}}}responseDate", "").strip()


def harvested_about(record: etree._Element, source: str, date: str) -> tuple[bytes, ...]:
    """Return what is to be kept about a harvested record: its origin, and what was said there."""
    earlier, others = None, []
    for about in record.findall(f"{{{_OAI}}}about"):
        for element in about:
            if element.tag == f"{{{PROVENANCE}}}provenance":
                earlier = element.find(f"{{{PROVENANCE}}}originDescription")
            elif isinstance(element.tag, str):
                element = copy.deepcopy(element)
                element.tail = None
                others.append(etree.tostring(element, encoding="utf-8"))
    metadata = record.find(f"{{{_OAI}}}metadata")
    header = f"{{{_OAI}}}header/{{{_OAI}}}"
    if metadata is None or not len(metadata) or not source:
        return tuple(others)
    inner = b"" if earlier is None else _described_earlier(earlier)
    made = _provenance(
        source, record.findtext(f"{header}identifier", ""),
        record.findtext(f"{header}datestamp", ""), etree.QName(metadata[0]).namespace or "",
        date, inner,
    )  # fmt: skip
    return (made, *others)


def _described_earlier(earlier: etree._Element) -> bytes:
    found = copy.deepcopy(earlier)
    found.tail = None
    text: bytes = etree.tostring(found, encoding="utf-8")
    return text


def _provenance(
    source: str, identifier: str, datestamp: str, namespace: str, date: str, inner: bytes = b""
) -> bytes:
    schema = f"{PROVENANCE} {PROVENANCE}.xsd"
    return (
        f'<provenance xmlns="{PROVENANCE}" xmlns:xsi="{_XSI}" xsi:schemaLocation="{schema}">'
        f'<originDescription harvestDate={quoteattr(date)} altered="false">'
        f"<baseURL>{escape(source)}</baseURL><identifier>{escape(identifier.strip())}</identifier>"
        f"<datestamp>{escape(datestamp.strip())}</datestamp>"
        f"<metadataNamespace>{escape(namespace)}</metadataNamespace>"
    ).encode() + inner + b"</originDescription></provenance>"  # fmt: skip


def origins(store: Store, found: Found) -> tuple[bytes, ...]:
    """Return what is known about the origin of a record; nothing for one that was made here."""
    if found.kind not in ("object", "record"):
        return ()
    file = store.catalogue.file(found.file)
    kept = _kept(store, found) if file.facts.get("own") and not found.pdi else ()
    if kept or not file.facts.get("imported"):
        return kept
    return (_of_tape(store, found, file, str(file.facts["imported"])),)


def _kept(store: Store, found: Found) -> tuple[bytes, ...]:
    """Return the elements that stand before a record on a tape of ours, but for our own."""
    file, stream = store.file(found.file)
    end = file.base + found.offset
    start = max(end - _BEFORE, 0)
    try:
        data = os.pread(stream.fileno(), end - start, start)
    finally:
        if not file.sealed:
            stream.close()
    data = data[data.rfind(b"<ta:tapeRecord>") :]
    return tuple(each for each in _ADMIN.findall(data) if not each.startswith(_OWN))


def note_imports(store: Store) -> None:
    """Tell the catalogue which files were imported, and when, as the receipts say."""
    files = {file.name: file for file in store.catalogue.files()}
    for record in store.catalogue.records(kind="receipt"):
        receipt = statement(store.read(record), "receipt")
        for each in receipt.findall(f"{{{STORE}}}file"):
            file = files.get(each.get("name", ""))
            if file is not None:
                facts = {**file.facts, "imported": receipt.get("date", "")}
                store.catalogue.set_file(file.id, facts=facts)


def _of_tape(store: Store, found: Found, file: File, date: str) -> bytes:
    """A record of an imported tape: each tape is a repository, so its name stands for one."""
    forms = [name for kind, name in store.catalogue.memberships(found) if kind == "form"]
    space = forms[0] if forms else METS if METS.encode() in store.read(found)[:1000] else DIDL
    return _provenance(file.uri, found.identifier, found.date, space, date)
