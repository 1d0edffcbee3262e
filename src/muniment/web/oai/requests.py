"""The six verbs of OAI-PMH as values, and the rules by which arguments become one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

__all__ = [
    "GetRecord", "Identify", "ListIdentifiers", "ListMetadataFormats", "ListRecords", "ListSets",
    "OaiError", "Refused", "Request", "Selection", "format_datestamp", "parse_datestamp",
    "parse_request",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OaiError:
    """One of the protocol's errors (3.6)."""

    code: str
    message: str


class Refused(Exception):
    """A request that is answered by errors."""

    def __init__(self, *errors: OaiError) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Identify:
    """Who is this repository?"""


@dataclass(frozen=True, slots=True)
class ListMetadataFormats:
    """Which formats does it, or one of its items, have?"""

    identifier: str | None = None


@dataclass(frozen=True, slots=True)
class ListSets:
    """Which sets does it have?"""

    token: str | None = None


@dataclass(frozen=True, slots=True)
class GetRecord:
    """One record in one format."""

    identifier: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Selective harvesting (2.7): both days and seconds are inclusive."""

    prefix: str
    since: datetime | None = None
    until: datetime | None = None
    set_spec: str | None = None


@dataclass(frozen=True, slots=True)
class ListIdentifiers:
    """The headers of the records that a selection, or the token of an earlier answer, names."""

    what: Selection | str


@dataclass(frozen=True, slots=True)
class ListRecords:
    """The same with metadata."""

    what: Selection | str


Request = Identify | ListMetadataFormats | ListSets | GetRecord | ListIdentifiers | ListRecords

_SELECTION = frozenset({"metadataPrefix", "from", "until", "set"})


@dataclass(frozen=True, slots=True)
class _Verb:
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    resumes: bool = False  # takes a resumptionToken, and nothing beside it


_VERBS = {
    "Identify": _Verb(),
    "ListMetadataFormats": _Verb(optional=frozenset({"identifier"})),
    "ListSets": _Verb(resumes=True),
    "GetRecord": _Verb(required=frozenset({"identifier", "metadataPrefix"})),
    "ListIdentifiers": _Verb(frozenset({"metadataPrefix"}), _SELECTION, resumes=True),
    "ListRecords": _Verb(frozenset({"metadataPrefix"}), _SELECTION, resumes=True),
}

_TOKEN = "resumptionToken"
_UNRESERVED = r"[A-Za-z0-9\-_.!~*'()]"
_PREFIX = re.compile(rf"{_UNRESERVED}+")
_SET = re.compile(rf"{_UNRESERVED}+(?::{_UNRESERVED}+)*")
_LONGEST = 4096
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def parse_request(arguments: Iterable[tuple[str, str]]) -> Request:
    """Return the request that the arguments of a GET or POST make; raise Refused with all faults.

    >>> parse_request([("verb", "GetRecord"), ("identifier", "x:1"), ("metadataPrefix", "didl")])
    GetRecord(identifier='x:1', prefix='didl')
    """
    given = list(arguments)
    verbs = [value for name, value in given if name == "verb"]
    if len(verbs) != 1 or verbs[0] not in _VERBS:
        raise Refused(OaiError("badVerb", _verb_fault(verbs)))
    rest = [(name, value) for name, value in given if name != "verb"]
    faults = list(_faults(_VERBS[verbs[0]], rest))
    if faults:
        raise Refused(*(OaiError("badArgument", fault) for fault in faults))
    return _request(verbs[0], dict(rest))


def _verb_fault(verbs: list[str]) -> str:
    known = ", ".join(_VERBS)
    if not verbs:
        return f"the argument verb is missing; it is one of {known}"
    if len(verbs) > 1:
        return "the argument verb is given more than once"
    return f"{_shown(verbs[0])} is not a verb of OAI-PMH; those are {known}"


def _faults(verb: _Verb, arguments: list[tuple[str, str]]) -> Iterable[str]:
    names = [name for name, _ in arguments]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"the argument {_shown(name)} is given more than once"
    for name, value in arguments:
        if not value:
            yield f"the argument {_shown(name)} is empty"
        elif len(value) > _LONGEST or _NOT_XML.search(value):
            yield f"the argument {_shown(name)} is too long, or holds characters that XML forbids"
    if verb.resumes and _TOKEN in names:
        if len(set(names)) > 1:
            yield f"{_TOKEN} stands alone: it carries all other arguments"
        return
    allowed = verb.required | verb.optional
    for name in sorted(set(names) - allowed):
        yield f"the verb does not take the argument {_shown(name)}"
    for name in sorted(verb.required - set(names)):
        yield f"the argument {name} is missing"
    prefix = dict(arguments).get("metadataPrefix")
    if prefix and not _PREFIX.fullmatch(prefix):
        yield "metadataPrefix holds characters that no prefix has"
    if not verb.resumes or _SELECTION.isdisjoint(allowed):
        return
    yield from _selection_faults(dict(arguments))


def _selection_faults(given: dict[str, str]) -> Iterable[str]:
    dates = {}
    for name in ("from", "until"):
        if given.get(name):
            try:
                dates[name] = parse_datestamp(given[name])
            except ValueError:
                yield f"{name} is not a UTC date like 2026-11-15 or 2026-11-15T08:30:00Z"
    if len(dates) == 2:
        if len(given["from"]) != len(given["until"]):
            yield "from and until differ in granularity"
        elif dates["from"] > dates["until"]:
            yield "from is later than until"
    if given.get("set") and not _SET.fullmatch(given["set"]):
        yield "set is not a setSpec"


def parse_datestamp(text: str) -> datetime:
    """Return the time of a datestamp in days or seconds (3.3.1); ValueError if it is neither."""
    pattern = {10: "%Y-%m-%d", 20: "%Y-%m-%dT%H:%M:%SZ"}.get(len(text), "")
    if not text.isascii() or not re.fullmatch(r"[0-9TZ:-]+", text):
        raise ValueError(text)
    return datetime.strptime(text, pattern).replace(tzinfo=UTC)


@lru_cache(maxsize=4096)
def format_datestamp(time: datetime) -> str:
    """Return a datestamp in seconds."""
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _request(verb: str, given: dict[str, str]) -> Request:
    match verb:
        case "Identify":
            return Identify()
        case "ListMetadataFormats":
            return ListMetadataFormats(given.get("identifier"))
        case "ListSets":
            return ListSets(given.get(_TOKEN))
        case "GetRecord":
            return GetRecord(given["identifier"], given["metadataPrefix"])
    kind = ListIdentifiers if verb == "ListIdentifiers" else ListRecords
    return kind(given.get(_TOKEN) or _selection(given))


def _selection(given: dict[str, str]) -> Selection:
    since, until = given.get("from"), given.get("until")
    end = parse_datestamp(until) if until else None
    if end is not None and until is not None and len(until) == 10:
        end += timedelta(days=1, seconds=-1)  # the whole day
    return Selection(
        given["metadataPrefix"],
        parse_datestamp(since) if since else None,
        end,
        given.get("set"),
    )


def _shown(text: str) -> str:
    """A value from outside, short and harmless, for a message."""
    return repr(_NOT_XML.sub("�", text[:80]))
