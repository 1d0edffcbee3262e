"""From any name to what it stands for: bindings of PDIs, their octets, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muniment.errors import IdentifierError, NotFound
from muniment.fragments import extract
from muniment.fragments.extract import extract_bytes
from muniment.identifiers import Pdi, parse_urn
from muniment.identifiers.fragments import functional_fragment
from muniment.names import Binding
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.repository.catalogue import Found, Stream
from muniment.repository.naming import bound, is_pdi
from muniment.web.doors.answers import Refusal, safe_text
from muniment.web.doors.octets import Octets, of_bytes, of_file, of_stream
from muniment.web.doors.permission import Reader, caching, refuse_unreadable

__all__ = [
    "Named", "bindings_of", "octets_of", "part_of", "pdi_named", "refuse_withdrawn",
    "seen_renditions", "stream_octets", "versions_of",
]  # fmt: skip

_IN_MEMORY = 256 << 20  # bytes of a document of which a part is cut out
SIARD = "application/x-siard"


@dataclass(frozen=True)
class Named:
    """A PDI with format and version, the octets it is bound to, and what else there is."""

    pdi: Pdi
    binding: Binding
    renditions: tuple[Binding, ...]
    latest: int


def pdi_named(store: Store, pdi: Pdi) -> Named:
    """Resolve a PDI in the book of names, or if it came with an imported tape, in the catalogue."""
    found = store.names.resolve(pdi)
    if found.binding is not None:
        return Named(found.binding.pdi, found.binding, found.renditions, found.latest or 1)
    if found.status == "withdrawn":
        raise _withdrawn(pdi, found.reason or {})
    if found.status == "elsewhere" and found.resolver:
        raise _elsewhere(pdi, found.resolver)
    bindings = _of_catalogue(store, pdi)
    wanted = pdi.version or (1 if pdi.fragment or pdi.citation else None)
    fitting = [
        each
        for each in bindings
        if pdi.format in (None, each.pdi.format) and wanted in (None, each.pdi.version)
    ]
    if not fitting:
        state = "was minted, and nothing is bound to it yet" if found.status == "minted" else (
            "is not known here"
        )  # fmt: skip
        raise NotFound(f"{pdi.document} {state}")
    chosen = max(fitting, key=_version)
    same = tuple(each for each in bindings if each.pdi.version == chosen.pdi.version)
    return Named(chosen.pdi, chosen, same, max(map(_version, bindings)))


def bindings_of(store: Store, pdi: Pdi) -> list[Binding]:
    """Return all versions of a document in all formats, but for those that are withdrawn."""
    known = store.names.bindings(pdi)
    of_book = {each.pdi for each in known}
    reached = {"withdrawn", "bound"}
    return known + [
        each
        for each in _of_catalogue(store, pdi)
        if each.pdi not in of_book and store.names.resolve(each.pdi).status not in reached
    ]


def _of_catalogue(store: Store, pdi: Pdi) -> list[Binding]:
    bindings = []
    for found in store.versions(str(pdi.generic)):
        if found.pdi and found.kind == "object":
            streams, named = store.object(found).streams, store.names.read(found.pdi)
            new = bound(named, streams, found.identifier, found.sha256, found.length)
            bindings.append(Binding(new.pdi, new.digest, new.length, new.location, found.date))
    return bindings


def _version(binding: Binding) -> int:
    return binding.pdi.version if isinstance(binding.pdi.version, int) else 1


def _withdrawn(pdi: Pdi, reason: dict[str, Any]) -> Refusal:
    """A tombstone: what was withdrawn, when, by whom, why."""
    law = reason.get("law")
    sentence = f"{pdi.document} was withdrawn on {reason.get('at', '')} by {reason.get('by', '')}"
    sentence += f": {reason.get('reason', '')}" + (f" ({law})" if law else "")
    return Refusal(451 if law else 410, sentence)


def _elsewhere(pdi: Pdi, resolver: str) -> Refusal:
    """Another resolver answers for this name; a client is sent there, we ask nobody."""
    if not resolver.lower().startswith(("http://", "https://")):
        return Refusal(404, f"{pdi} is resolved by {resolver}")
    address = safe_text(f"{resolver.rstrip('/')}/uri-res/N2R?{str(pdi).replace('#', '%23')}")
    return Refusal(307, f"{pdi} is resolved by {resolver}", Location=address)


def refuse_withdrawn(store: Store, records: Sequence[Found]) -> None:
    """Refuse content whose every record is withdrawn; its metadata stays."""
    reasons = []
    for found in records:
        if not found.pdi:
            return
        answer = store.names.resolve(found.pdi)
        if answer.status != "withdrawn":
            return
        reasons.append((answer.asked, answer.reason or {}))
    if reasons:
        raise _withdrawn(*reasons[-1])


def seen_renditions(store: Store, named: Named, reader: Reader) -> Named:
    """Leave out the formats that a reader may not read, if others remain."""
    access = access_of(store.names)
    if access.all_open:
        return named
    seen = tuple(each for each in named.renditions if reader.sees(access.of_pdi(each.pdi)))
    if not seen:
        return named
    chosen = named.binding if named.binding in seen else seen[0]
    return Named(chosen.pdi, chosen, seen, named.latest)


def stream_octets(store: Store, stream: Stream, reader: Reader) -> Octets:
    """Open a datastream, unless all records that have it are withdrawn or may not be read."""
    name = stream.record.identifier
    records = store.catalogue.named(name, "stream")
    refuse_withdrawn(store, records)
    decision = access_of(store.names).of_stream(records)
    refuse_unreadable(reader, decision, name)
    octets = of_stream(store, stream)
    octets.headers |= {} if decision.level == "open" else caching(decision, "")
    return octets


def octets_of(store: Store, binding: Binding, media_type: str = "") -> Octets:
    """Open what a PDI is bound to: a datastream, a package's document, or a kept file."""
    digest, place = binding.digest.hex(), binding.location
    kind = media_type or binding.pdi.media_type or ""
    if (stream := store.catalogue.stream(place)) is not None:
        opened = of_stream(store, stream)
        opened.media_type = stream.record.media_type or kind
        opened.sha256 = digest
        return opened
    if (found := store.catalogue.record(place)) is not None:
        return of_bytes(store.read(found), "application/xml", digest, found.date)
    path = store.names.folder / place
    if place.startswith("content/") and path.is_file():
        return of_file(path, kind, digest, binding.at)
    raise NotFound(f"{binding.pdi} lies at {place}, which is not in this store")


def part_of(store: Store, pdi: Pdi, named: Named, wanted: str) -> Octets:
    """Cut out the part that a fragment names."""
    assert pdi.fragment is not None
    opened = octets_of(store, named.binding)
    media = named.pdi.media_type or opened.media_type
    try:
        if media == SIARD and store.catalogue.stream(named.binding.location) is not None:
            found = extract(store.siard(named.binding.location), media, pdi.fragment, wanted)
        else:
            meant = functional_fragment(pdi.fragment, media)
            if opened.size > _IN_MEMORY:
                raise Refusal(501, "the document is too large for parts; ask for ranges of it")
            found = extract_bytes(opened.source.read(), media, meant, False)
    finally:
        opened.source.close()
    return of_bytes(found.data, found.media_type)


def versions_of(store: Store, name: str) -> list[Found]:
    """Return the records that any name leads to; spellings of one URN or PDI are equal."""
    found = store.versions(name)
    if not found and name[:4].lower() == "urn:" and not is_pdi(name):
        try:
            key = parse_urn(name).key
        except IdentifierError:
            return []
        found = store.versions(key)
    if not found and is_pdi(name):
        found = store.versions(str(store.names.read(name).document))
    return found
