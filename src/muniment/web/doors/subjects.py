"""What a URI leads to: a PDI, records, a datastream, or what a registered URN was assigned to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import unquote

from muniment.errors import NotFound
from muniment.identifiers import Pdi, parse_urn
from muniment.identifiers.urn import parse_pdi_urn
from muniment.registry import Registry
from muniment.registry.validation import Verdict, validate
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.repository.catalogue import Found, Stream
from muniment.repository.naming import is_pdi
from muniment.web.doors.answers import query_keys
from muniment.web.doors.finding import Named, pdi_named, versions_of
from muniment.web.doors.pdi import spelled
from muniment.web.doors.permission import ANYBODY, Reader, refuse_unreadable

__all__ = ["Subject", "find_subject", "name_of", "seen"]


@dataclass(frozen=True)
class Subject:
    """What a URI leads to."""

    asked: str
    store: Store
    pdi: Pdi | None = None
    named: Named | None = None
    found: tuple[Found, ...] | None = None  # None: to be looked up when somebody wants them
    stream: Stream | None = None
    reader: Reader = ANYBODY
    verdict: Verdict | None = None  # of the registry

    @cached_property
    def records(self) -> tuple[Found, ...]:
        """The records, by version."""
        if self.found is not None or self.pdi is None or self.named is None:
            return self.found or ()
        name = self.named.pdi if self.pdi.version else self.pdi.generic
        return tuple(self.store.versions(str(name)))

    @property
    def targets(self) -> tuple[str, ...]:
        """What a registered URN was assigned to."""
        return self.verdict.resolves if self.verdict is not None else ()


def find_subject(store: Store, uri: str, base: str) -> Subject:
    """Return what a URI leads to, or refuse it."""
    name = name_of(uri, base, store.settings.base_url) if uri[:4].lower() == "http" else uri
    if is_pdi(name):
        return _of_pdi(store, uri, store.names.read(spelled(name.encode("ascii", "replace"))))
    if name[:4].lower() == "urn:":
        parse_urn(name)  # 400 for what is none
    records = versions_of(store, name)
    stream = store.catalogue.stream(name)
    if records or stream is not None:
        return Subject(uri, store, found=tuple(records), stream=stream)
    root = store.names.root
    if name.lower().startswith(f"urn:{root}:pdi:"):
        schemes = store.names.schemes
        pdi = parse_pdi_urn(name.replace("%23", "#"), root, schemes=schemes)
        return _of_pdi(store, uri, pdi)
    if name.lower().startswith(f"urn:{root}:"):
        return _registered(store, uri, name)
    raise NotFound(f"{name} is not known here")


def _of_pdi(store: Store, uri: str, pdi: Pdi) -> Subject:
    return Subject(uri, store, pdi, pdi_named(store, pdi))


def _registered(store: Store, uri: str, name: str) -> Subject:
    """A URN of a registered namespace; its own rules say what is the same name."""
    verdict = validate(Registry(store.names), name)
    for problem in verdict.problems:
        if verdict.version:
            raise problem.error()  # 400: the namespace is registered, and has no such names
        raise NotFound(f"{name} is not known here: {problem.message}")
    if not verdict.assigned:
        raise NotFound(f"{verdict.canonical} is valid, and was never assigned")
    for target in verdict.resolves:
        if is_pdi(target):
            pdi = store.names.read(target)
            found = store.names.resolve(pdi)
            if found.binding is not None:
                return Subject(uri, store, pdi, pdi_named(store, pdi), verdict=verdict)
        elif records := versions_of(store, target):
            return Subject(uri, store, found=tuple(records), verdict=verdict)
        elif (stream := store.catalogue.stream(target)) is not None:
            return Subject(uri, store, stream=stream, verdict=verdict)
    return Subject(uri, store, found=(), verdict=verdict)


def seen(subject: Subject, store: Store, reader: Reader) -> Subject:
    """Leave out what a reader may not read, and refuse what nothing is left of."""
    access = access_of(store.names)
    if access.all_open:
        return subject
    if subject.stream is not None:
        records = store.catalogue.named(subject.stream.record.identifier, "stream")
        refuse_unreadable(reader, access.of_stream(records), subject.asked)
    if subject.named is not None:
        refuse_unreadable(reader, access.of_pdi(subject.named.pdi), subject.asked)
    left = reader.seen(store, subject.records)
    if subject.records and not left:
        refuse_unreadable(reader, access.of_record(subject.records[-1]), subject.asked)
    return replace(subject, found=tuple(left), reader=reader)


def name_of(url: str, *bases: str) -> str:
    """Return the name that one of our own addresses stands for."""
    for base in bases:
        if url.startswith(f"{base}/pdi/"):
            return spelled(url.removeprefix(base).encode())
        if url.startswith(f"{base}/"):
            keys = query_keys(url.partition("?")[2])
            for key in ("rft_id", "identifier", "id"):
                if key in keys:
                    return keys[key][0]
    return unquote(url)
