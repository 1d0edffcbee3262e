"""A store, or one of its tapes, as harvesters see it: records are read from the tape by seek."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote
from xml.sax.saxutils import escape

from muniment.errors import MunimentError, NotFound
from muniment.objects import (
    DIDL,
    METS,
    DigitalObject,
    didl_document,
    didl_statement,
    mets_document,
    read_object,
)
from muniment.repository import Store, harvest
from muniment.repository.access import access_of
from muniment.repository.catalogue import File, Found
from muniment.repository.harvest import Wanted
from muniment.repository.provenance import origins
from muniment.repository.stamps import follow, stamp_of
from muniment.web.oai.core import dublin_core, written_core
from muniment.web.oai.naming import (
    FORMATS,
    REPOSITORY,
    collection_of,
    collection_sets,
    collection_spec,
    foreign_format,
    item_of,
    oai_identifier_description,
    series_spec,
)
from muniment.web.oai.records import About, Header, MetadataFormat, Place, Record, Set
from muniment.web.oai.requests import Selection

__all__ = ["Shelf", "tape_name"]

_FRIENDS = "http://www.openarchives.org/OAI/2.0/friends/"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_SPEC = re.compile(r"[A-Za-z0-9\-_.!~*'()]+")
_EVERYWHERE = {each.prefix for each in FORMATS}
_MARKS = {"didl": DIDL.encode(), "mets": METS.encode()}
_MOST_FRIENDS = 500
_NO_DATE = datetime(1970, 1, 1, tzinfo=UTC)


def tape_name(file: File) -> str:
    """What stands for a tape in addresses and sets: its UUID, or for others its file's name."""
    name = file.uri.removeprefix("urn:uuid:")
    return name if name != file.uri else file.name


class Shelf:
    """The records of a store, or of one tape."""

    def __init__(
        self, store: Store, base: str, emails: tuple[str, ...], tape: str = "", staff: bool = False
    ) -> None:
        self._store, self._catalogue = store, store.catalogue
        self._base, self._emails, self._tape = base.rstrip("/"), emails, None
        if tape:
            self._tape = self._catalogue.find_file(tape)
            if self._tape is None or self._tape.kind != "tape":
                raise NotFound(f"there is no tape {tape[:200]} in this store")
        self._file = self._tape.id if self._tape else -1
        self._tapes: dict[int, File] = {}
        self._sets: dict[tuple[int, str, str], tuple[str, ...]] = {}
        self._access, self._staff = access_of(store.names), staff

    @property
    def secret(self) -> bytes:
        """The catalogue's secret, made another for each tape."""
        scope = self._tape.uri if self._tape else self._store.settings.id
        return hmac.digest(harvest.secret(self._catalogue), scope.encode(), "sha256")

    @property
    def base_url(self) -> str:
        """The address at which this repository answers."""
        return self._address(self._tape)

    def about(self) -> About:
        """Introduce the repository."""
        oldest = harvest.earliest(self._catalogue, self._file)
        settings = self._store.settings
        name = f"Tape {tape_name(self._tape)}" if self._tape else f"Store {settings.series}"
        return About(
            name,
            self._address(self._tape),
            _time(oldest) if oldest else _NO_DATE,
            self._emails,
            deleted_record="transient",
            compressions=("gzip",),
            descriptions=(*self._scheme(), *self._friends()),
        )

    def _address(self, tape: File | None) -> str:
        return (
            f"{self._base}/oai/{quote(tape_name(tape), safe='')}" if tape else f"{self._base}/oai"
        )

    def _scheme(self) -> tuple[bytes, ...]:
        """Items have names of the scheme ``oai`` as well, below the store's document series."""
        sample = harvest.select(self._catalogue, Wanted(file=self._file), 1 << 62, None, 1)
        name = self._store.settings.series
        if not REPOSITORY.fullmatch(name):
            return ()
        return tuple(oai_identifier_description(name, found.identifier) for _, found in sample)

    def _friends(self) -> tuple[bytes, ...]:
        """The tapes are the friends of the store, and the store is the friend of each tape."""
        if self._tape:
            addresses = [self._address(None)]
        else:
            tapes = harvest.tapes(self._catalogue)[:_MOST_FRIENDS]
            addresses = [self._address(tape) for tape in tapes]
        text = "".join(f"<baseURL>{escape(address)}</baseURL>" for address in addresses)
        schema = f"{_FRIENDS} http://www.openarchives.org/OAI/2.0/friends.xsd"
        head = f'<friends xmlns="{_FRIENDS}" xmlns:xsi="{_XSI}" xsi:schemaLocation="{schema}">'
        return (f"{head}{text}</friends>".encode(),) if text else ()

    def formats(self, identifier: str | None = None) -> Sequence[MetadataFormat]:
        """All formats, or those of an item: METS is for objects, its own is what it is."""
        if identifier is None:
            forms = self._catalogue.groups("form", self._file)
            return (*FORMATS, *(form for form in map(foreign_format, forms) if form))
        return self._formats_of(self._find(identifier))

    def _formats_of(self, found: Found) -> Sequence[MetadataFormat]:
        if found.kind == "object":
            return FORMATS
        own = foreign_format(self._form(found))
        return (*FORMATS[:2], own) if own else FORMATS[:2]

    def _form(self, found: Found) -> str:
        """The namespace of a record that is neither DIDL nor METS."""
        if found.kind == "object":
            return ""
        known = self._catalogue.memberships(found)
        return next((name for kind, name in known if kind == "form"), "")

    def sets(self) -> Sequence[Set]:
        """Sets by collection, by format, and over the whole store by tape."""
        found = collection_sets(
            harvest.series(self._catalogue, self._file),
            self._catalogue.groups("collection", self._file),
        )
        tokens = harvest.formats(self._catalogue, self._file)
        specs = [(_format_spec(token), token) for token in tokens]
        found += [Set("format", "By format")] if specs else []
        found += [Set(spec, f"Documents in the format {token}") for spec, token in specs if spec]
        if not self._tape:
            tapes = harvest.tapes(self._catalogue)
            found.append(Set("tape", "By tape"))
            found += [Set(_tape_spec(tape), f"The tape {tape.uri}") for tape in tapes]
        return found

    def get(self, identifier: str, prefix: str) -> Record | None:
        """One record, under the name by which it was asked for."""
        found = self._find(identifier)
        if prefix not in {each.prefix for each in self._formats_of(found)}:
            return None
        record = self._record(
            found, prefix, stamp_of(self._store, found), self._store.document(found)
        )
        if identifier != found.identifier:
            record = record._replace(header=record.header._replace(identifier=identifier))
        return record

    def _find(self, identifier: str) -> Found:
        found = self._catalogue.record(identifier)
        if found is None:
            name = item_of(identifier, self._store.settings.series)
            found = self._catalogue.record(name) if name else None
        if found is None or found.kind not in Wanted().kinds or self._file not in (-1, found.file):
            raise NotFound(f"there is no record {identifier}")
        return found

    def last(self) -> int:
        """The number of the record that arrived last; decisions are followed up to now."""
        follow(self._store)
        return harvest.last(self._catalogue, self._file)

    def count(self, selection: Selection, last: int) -> int:
        """How many records a selection holds."""
        wanted = self._wanted(selection)
        return harvest.count(self._catalogue, wanted, last) if wanted else 0

    def headers(
        self, selection: Selection, last: int, after: Place | None, limit: int
    ) -> Iterator[Header]:
        """Yield headers."""
        for stamp, found in self._select(selection, last, after, limit):
            yield self._header(found, stamp)

    def records(
        self, selection: Selection, last: int, after: Place | None, limit: int
    ) -> Iterator[Record]:
        """Yield records."""
        chosen = list(self._select(selection, last, after, limit))
        documents = self._store.documents([found for _, found in chosen])
        for (stamp, found), document in zip(chosen, documents, strict=True):
            yield self._record(found, selection.prefix, stamp, document)

    def _select(
        self, selection: Selection, last: int, after: Place | None, limit: int
    ) -> Iterator[tuple[str, Found]]:
        wanted = self._wanted(selection)
        place = (_text(after.datestamp), after.number) if after else None
        return harvest.select(self._catalogue, wanted, last, place, limit) if wanted else iter(())

    def _wanted(self, selection: Selection) -> Wanted | None:
        """Return what the catalogue is asked for; None if it is certain that there is nothing."""
        wanted = Wanted(
            _text(selection.since) if selection.since else "",
            _text(selection.until) if selection.until else "9999",
            ("object",) if selection.prefix == "mets" else Wanted().kinds,
            self._file,
        )
        if selection.prefix not in _EVERYWHERE:
            forms = self._catalogue.groups("form", self._file)
            named = (form for form in forms if _prefix(form) == selection.prefix)
            wanted = replace(wanted, form=next(named, "-"))
        top, _, rest = (selection.set_spec or "").partition(":")
        match top:
            case "":
                return wanted
            case "format":
                return replace(wanted, format=rest.replace(".", "+"))
            case "collection":
                series, collection = collection_of(rest)
                if collection in self._catalogue.groups("collection", self._file):
                    return replace(wanted, collection=collection)
                return replace(wanted, series=series) if rest else replace(wanted, collected=True)
            case "tape" if not self._tape:
                return self._of_tape(wanted, rest)
        return None

    def _of_tape(self, wanted: Wanted, name: str) -> Wanted | None:
        if not name:
            return wanted
        tapes = self._catalogue.files("tape")
        file = next((tape.id for tape in tapes if _tape_spec(tape) == f"tape:{name}"), None)
        return None if file is None else replace(wanted, file=file)

    def _header(self, found: Found, stamp: str) -> Header:
        place = Place(_time(stamp), harvest.number_of(found))
        hidden = not self._access.of_record(found).readable(self._staff)
        return Header(found.identifier, place, self._specs(found), deleted=hidden)

    def _specs(self, found: Found) -> tuple[str, ...]:
        """Return the sets of a record; those of documents depend on few things, and are kept."""
        if not found.pdi:
            known = self._catalogue.memberships(found)
            named = [collection_spec(name) for kind, name in known if kind == "collection"]
            return (*named, *([] if self._tape else [_tape_spec(self._tape_of(found))]))
        key = found.file, found.pdi[6 : found.pdi.index("/", 6)], found.pdi.rsplit(".", 2)[1]
        if key not in self._sets:
            specs = [series_spec(key[1]), _format_spec(key[2])]
            specs += [] if self._tape else [_tape_spec(self._tape_of(found))]
            self._sets[key] = tuple(filter(None, specs))
        return self._sets[key]

    def _record(self, found: Found, prefix: str, stamp: str, document: bytes) -> Record:
        header = self._header(found, stamp)
        if header.deleted:  # what may not be read is gone, as far as harvesters are concerned
            return Record(header, b"")
        data = self._as(document, found, prefix)
        made_here = found.pdi and not self._tape_of(found).facts.get("imported")
        return Record(header, data, () if made_here else origins(self._store, found))

    def _tape_of(self, found: Found) -> File:
        if found.file not in self._tapes:
            self._tapes[found.file] = self._catalogue.file(found.file)
        return self._tapes[found.file]

    def _as(self, document: bytes, found: Found, prefix: str) -> bytes:
        """Return a record in a format: as it stands on the tape, if it is in this format."""
        if prefix in _MARKS and _MARKS[prefix] in document[:1000] and document[:1] == b"<":
            return document
        form = "" if prefix in ("didl", "mets") else self._form(found)
        if form and _prefix(form) == prefix:
            return document
        if prefix == "oai_dc" and (core := written_core(document, found.identifier)):
            return core
        thing = _object(document, found)
        if prefix == "oai_dc":
            return dublin_core(thing, found.identifier)
        if prefix == "mets":
            return mets_document(thing or _bare(found), self._base)
        if thing is None:
            return didl_statement(found.identifier, found.date, document)
        return didl_document(thing, self._base)


def _object(document: bytes, found: Found) -> DigitalObject | None:
    try:
        return read_object(document, found.identifier)
    except MunimentError:
        return None  # a record of other origin, which need not describe an object


def _bare(found: Found) -> DigitalObject:
    return DigitalObject(found.identifier, found.date, (found.pdi,) if found.pdi else (), ())


def _prefix(form: str) -> str:
    found = foreign_format(form)
    return found.prefix if found else ""


def _format_spec(token: str) -> str:
    """Return the set of a format; a plus, which sets cannot have, becomes a dot."""
    name = token.replace("+", ".")
    return f"format:{name}" if _SPEC.fullmatch(name) else ""


def _tape_spec(tape: File) -> str:
    name = tape_name(tape)
    return f"tape:{name if _SPEC.fullmatch(name) else tape.id}"


@lru_cache(maxsize=4096)
def _time(date: str) -> datetime:
    return datetime.fromisoformat(date)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
