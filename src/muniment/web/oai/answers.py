"""Requests to answers: XML as a stream of bytes, records copied as they lie on their tapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain

from muniment.errors import NotFound
from muniment.markup import escape, quoteattr
from muniment.web.oai.records import Header, Record, Records
from muniment.web.oai.requests import (
    GetRecord,
    Identify,
    ListIdentifiers,
    ListMetadataFormats,
    ListRecords,
    ListSets,
    OaiError,
    Refused,
    Request,
    Selection,
    format_datestamp,
    parse_request,
)
from muniment.web.oai.tokens import BadToken, Token, format_token, parse_token

__all__ = ["PAGE", "answer", "respond"]

PAGE = 500  # records
_OAI = "http://www.openarchives.org/OAI/2.0/"
# Errors after which the answer repeats the arguments: those that left them intact (3.2).
_REPEATED = {
    "badResumptionToken",
    "cannotDisseminateFormat",
    "idDoesNotExist",
    "noMetadataFormats",
    "noRecordsMatch",
    "noSetHierarchy",
}
_XSI = "http://www.w3.org/2001/XMLSchema-instance"


def answer(
    arguments: Iterable[tuple[str, str]],
    records: Records,
    *,
    now: datetime | None = None,
    page: int = PAGE,
) -> Iterator[bytes]:
    """Yield the answer to a request as XML; errors of the protocol are answers as well (3.6)."""
    given = list(arguments)
    try:
        request = parse_request(given)
        body = respond(request, records, page=page)
        body = chain((next(body),), body)  # a refusal shows before the first byte is sent
    except Refused as refused:
        body = _errors(refused.errors)
        if not _REPEATED.issuperset(error.code for error in refused.errors):
            given = []
    yield _head(now or datetime.now(UTC), given, records.base_url)
    yield from body
    yield b"</OAI-PMH>\n"


def respond(request: Request, records: Records, *, page: int = PAGE) -> Iterator[bytes]:
    """Yield the part of an answer that differs from verb to verb; raise Refused at once."""
    match request:
        case Identify():
            yield _identify(records)
        case ListMetadataFormats(identifier):
            yield _formats(records, identifier)
        case ListSets(token):
            yield _sets(records, token)
        case GetRecord(identifier, prefix):
            yield _get_record(records, identifier, prefix)
        case ListIdentifiers(what):
            yield from _list("ListIdentifiers", what, records, page)
        case ListRecords(what):
            yield from _list("ListRecords", what, records, page)


def _head(now: datetime, echo: list[tuple[str, str]], base_url: str) -> bytes:
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in echo)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<OAI-PMH xmlns="{_OAI}" xmlns:xsi="{_XSI}" '
        f'xsi:schemaLocation="{_OAI} {_OAI}OAI-PMH.xsd">\n'
        f"<responseDate>{format_datestamp(now)}</responseDate>\n"
        f"<request{attributes}>{escape(base_url)}</request>\n"
    ).encode()


def _errors(errors: Iterable[OaiError]) -> Iterator[bytes]:
    for error in errors:
        yield f'<error code="{error.code}">{escape(error.message)}</error>\n'.encode()


def _identify(records: Records) -> bytes:
    about = records.about()
    emails = "".join(f"<adminEmail>{escape(email)}</adminEmail>\n" for email in about.emails)
    compressions = "".join(f"<compression>{name}</compression>\n" for name in about.compressions)
    text = (
        f"<repositoryName>{escape(about.name)}</repositoryName>\n"
        f"<baseURL>{escape(about.base_url)}</baseURL>\n"
        "<protocolVersion>2.0</protocolVersion>\n"
        f"{emails}"
        f"<earliestDatestamp>{format_datestamp(about.earliest)}</earliestDatestamp>\n"
        f"<deletedRecord>{about.deleted_record}</deletedRecord>\n"
        "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>\n"
        f"{compressions}"
    )
    descriptions = b"".join(b"<description>%b</description>\n" % d for d in about.descriptions)
    return b"<Identify>\n" + text.encode() + descriptions + b"</Identify>\n"


def _formats(records: Records, identifier: str | None) -> bytes:
    try:
        formats = records.formats(identifier)
    except NotFound as error:
        raise _unknown(identifier) from error
    if not formats:
        raise Refused(OaiError("noMetadataFormats", f"{identifier} has no metadata"))
    text = "".join(
        f"<metadataFormat><metadataPrefix>{f.prefix}</metadataPrefix>"
        f"<schema>{escape(f.schema)}</schema>"
        f"<metadataNamespace>{escape(f.namespace)}</metadataNamespace></metadataFormat>\n"
        for f in formats
    )
    return f"<ListMetadataFormats>\n{text}</ListMetadataFormats>\n".encode()


def _sets(records: Records, token: str | None) -> bytes:
    if token is not None:
        message = "all sets come in one answer, so no token continues them"
        raise Refused(OaiError("badResumptionToken", message))
    sets = records.sets()
    if not sets:
        raise Refused(OaiError("noSetHierarchy", "this repository has no sets"))
    text = "".join(
        f"<set><setSpec>{escape(s.spec)}</setSpec><setName>{escape(s.name)}</setName></set>\n"
        for s in sets
    )
    return f"<ListSets>\n{text}</ListSets>\n".encode()


def _get_record(records: Records, identifier: str, prefix: str) -> bytes:
    try:
        record = records.get(identifier, prefix)
    except NotFound as error:
        raise _unknown(identifier) from error
    if record is None:
        message = f"{identifier} cannot be had as {prefix}; ListMetadataFormats tells its formats"
        raise Refused(OaiError("cannotDisseminateFormat", message))
    return b"<GetRecord>\n" + _record(record) + b"</GetRecord>\n"


def _unknown(identifier: str | None) -> Refused:
    return Refused(OaiError("idDoesNotExist", f"there is no item {identifier} in this repository"))


def _list(verb: str, what: Selection | str, records: Records, page: int) -> Iterator[bytes]:
    """One page of a list, and the token that leads to the next."""
    token = _resumed(verb, what, records) if isinstance(what, str) else None
    selection = token.selection if token else what
    assert isinstance(selection, Selection)
    last = token.last if token else records.last()
    size = token.size if token else _size(selection, records, last)
    after = token.after if token else None
    yield f"<{verb}>\n".encode()
    count, place = token.cursor if token else 0, after
    found: Iterable[Header | Record]
    read = records.headers if verb == "ListIdentifiers" else records.records
    found = read(selection, last, after, page)
    for item in found:
        if isinstance(item, Record):
            yield _record(item)
            place = item.header.place
        else:
            yield _header(item)
            place = item.place
        count += 1
    following = None
    if place is not None and count < size and place != after:
        following = Token(verb, selection, last, size, count, place)
    yield _resumption(token, following, size, records.secret)
    yield f"</{verb}>\n".encode()


def _resumed(verb: str, text: str, records: Records) -> Token:
    try:
        return parse_token(text, verb, records.secret)
    except BadToken as error:
        raise Refused(OaiError("badResumptionToken", str(error))) from error


def _size(selection: Selection, records: Records, last: int) -> int:
    """How long the list is; an empty one, and one in an unknown format, is an error."""
    if selection.prefix not in {f.prefix for f in records.formats()}:
        message = f"this repository has no records in the format {selection.prefix}"
        raise Refused(OaiError("cannotDisseminateFormat", message))
    if selection.set_spec is not None and not records.sets():
        raise Refused(OaiError("noSetHierarchy", "this repository has no sets"))
    size = records.count(selection, last)
    if not size:
        raise Refused(OaiError("noRecordsMatch", "no record matches the arguments"))
    return size


def _resumption(token: Token | None, following: Token | None, size: int, secret: bytes) -> bytes:
    if token is None and following is None:
        return b""  # the list is complete in one answer
    cursor = token.cursor if token else 0
    text = format_token(following, secret) if following else ""
    return (
        f'<resumptionToken completeListSize="{size}" cursor="{cursor}">{text}</resumptionToken>\n'
    ).encode()


def _record(record: Record) -> bytes:
    header = _header(record.header)
    if record.header.deleted:
        return b"<record>%b</record>\n" % header
    about = b"".join([b"<about>%b</about>" % each for each in record.about])
    return b"<record>%b<metadata>%b</metadata>%b</record>\n" % (header, record.metadata, about)


def _header(header: Header) -> bytes:
    status = ' status="deleted"' if header.deleted else ""
    return (
        f"<header{status}><identifier>{escape(header.identifier)}</identifier>"
        f"<datestamp>{format_datestamp(header.place.datestamp)}</datestamp>{_specs(header.sets)}"
        "</header>\n"
    ).encode()


@lru_cache(maxsize=1024)
def _specs(sets: tuple[str, ...]) -> str:
    return "".join(f"<setSpec>{escape(spec)}</setSpec>" for spec in sets)
