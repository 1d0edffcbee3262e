"""Citations over HTTP: the quoted part, and whether the citing document really holds it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from muniment.fragments import Quotation, check_quotation
from muniment.fragments.result import Extract
from muniment.identifiers import Pdi
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.web.doors.answers import Refusal, best, safe_text
from muniment.web.doors.finding import SIARD, octets_of, pdi_named
from muniment.web.doors.locating import pdi_url
from muniment.web.doors.octets import Octets, of_bytes
from muniment.web.doors.permission import Reader, refuse_unreadable

__all__ = ["check", "document_path", "facts_of", "quoted"]

_LARGEST = 256 << 20  # bytes of a document of which a part is cut out


def quoted(store: Store, pdi: Pdi, accept: str, base: str, reader: Reader) -> Octets:
    """Return the part that stands in the citing document, or as JSON what was found out."""
    assert pdi.citation is not None
    found = check(store, pdi, reader)
    data = json.dumps(facts_of(found), ensure_ascii=False).encode("utf-8", "backslashreplace")
    kinds = [found.found.media_type or "text/plain", "application/json"]
    wanted = best(accept, kinds)
    if wanted is None:
        raise Refusal(406, f"a quotation can be had as {', '.join(kinds)}", Vary="Accept")
    if wanted != "application/json":
        data = found.found.data
    octets = of_bytes(data, wanted, hashlib.sha256(data).hexdigest())
    links = ("canonical", pdi.document), ("related", pdi.citation.cited)
    octets.headers = {
        "Content-Location": safe_text(str(pdi)),
        "Link": ", ".join(f'<{pdi_url(base, str(to))}>; rel="{rel}"' for rel, to in links),
        "Quotation": found.verdict,
        "Vary": "Accept",
    }
    if not access_of(store.names).all_open:  # a part of what is not for everybody may be in it
        octets.headers["Cache-Control"] = "private, no-store"
    return octets


def check(store: Store, pdi: Pdi, reader: Reader) -> Quotation:
    """Compare what a citation cites with what stands in the citing document."""
    with tempfile.TemporaryDirectory(prefix="muniment-") as folder:
        return check_quotation(pdi, lambda each: document_path(store, each, Path(folder), reader))


def document_path(store: Store, pdi: Pdi, folder: Path, reader: Reader) -> Path:
    """Return a document as a file; a database is read where it lies."""
    named = pdi_named(store, pdi.document)
    decision = access_of(store.names).of_pdi(named.pdi)
    refuse_unreadable(reader, decision, str(named.pdi))
    octets = octets_of(store, named.binding)
    with octets.source as source:
        location = named.binding.location
        if named.pdi.media_type == SIARD and store.catalogue.stream(location) is not None:
            return store.siard(location)
        if octets.size > _LARGEST:
            raise Refusal(501, f"{named.pdi} is too large for quotations")
        path = folder / hashlib.sha256(str(named.pdi).encode()).hexdigest()
        with path.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
    return path


def facts_of(found: Quotation) -> dict[str, Any]:
    """Return what was found out, for programs."""
    return {
        "citing": str(found.citing),
        "cited": str(found.cited),
        "place": found.place,
        "verdict": found.verdict,
        "found": _shown(found.found),
        "expected": _shown(found.expected),
        "inner": None if found.inner is None else facts_of(found.inner),
    }


def _shown(part: Extract) -> dict[str, Any]:
    facts = {
        "media_type": part.media_type,
        "bytes": len(part.data),
        "sha256": hashlib.sha256(part.data).hexdigest(),
        "remarks": list(part.remarks),
    }
    if part.media_type.startswith("text/"):
        facts["text"] = part.data.decode("utf-8", "replace")[:10_000]
    return facts
