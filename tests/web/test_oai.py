"""OAI-PMH as a protocol: requests to values, values to answers, tokens that hold all they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from muniment.errors import NotFound
from muniment.web.oai.answers import answer
from muniment.web.oai.records import About, Header, MetadataFormat, Place, Record, Set
from muniment.web.oai.requests import Refused, Selection, parse_request
from muniment.web.oai.tokens import BadToken, Token, format_token, parse_token

DAY = datetime(2026, 11, 15, 12, tzinfo=UTC)
OAI = "{http://www.openarchives.org/OAI/2.0/}"


@dataclass
class Shelf:
    """Records in memory, in the order of harvesting."""

    stamps: list[datetime] = field(default_factory=list)
    secret: bytes = b"of this shelf"
    hierarchy: tuple[Set, ...] = (Set("odd", "Odd numbers"),)

    base_url: str = "http://localhost/oai"

    def about(self) -> About:
        return About("Shelf", self.base_url, DAY - timedelta(days=9), ("a@example.org",))

    def formats(self, identifier: str | None = None) -> Sequence[MetadataFormat]:
        if identifier is not None:
            self._number(identifier)
        return [MetadataFormat("didl", "urn:schema", "urn:didl")]

    def sets(self) -> Sequence[Set]:
        return self.hierarchy

    def get(self, identifier: str, prefix: str) -> Record | None:
        return self._record(self._number(identifier)) if prefix == "didl" else None

    def last(self) -> int:
        return len(self.stamps) - 1

    def count(self, selection: Selection, last: int) -> int:
        return len(self._chosen(selection, last, None))

    def headers(
        self, selection: Selection, last: int, after: Place | None, limit: int
    ) -> Iterator[Header]:
        return (r.header for r in self.records(selection, last, after, limit))

    def records(
        self, selection: Selection, last: int, after: Place | None, limit: int
    ) -> Iterator[Record]:
        return (self._record(p.number) for p in self._chosen(selection, last, after)[:limit])

    def _chosen(self, selection: Selection, last: int, after: Place | None) -> list[Place]:
        places = [Place(stamp, n) for n, stamp in enumerate(self.stamps[: last + 1])]
        return [
            place
            for place in sorted(places, key=_order)
            if (after is None or _order(place) > _order(after))
            and (selection.since is None or place.datestamp >= selection.since)
            and (selection.until is None or place.datestamp <= selection.until)
            and (selection.set_spec != "odd" or place.number % 2)
        ]

    def _record(self, number: int) -> Record:
        place = Place(self.stamps[number], number)
        sets = ("odd",) if number % 2 else ()
        header = Header(f"urn:example:{number}", place, sets, deleted=number == 3)
        return Record(header, b'<d xmlns="urn:didl">%d</d>' % number)

    def _number(self, identifier: str) -> int:
        number = identifier.removeprefix("urn:example:")
        if not number.isdigit() or int(number) >= len(self.stamps):
            raise NotFound(identifier)
        return int(number)


def _order(place: Place) -> tuple[datetime, int]:
    return place.datestamp, place.number


@pytest.fixture
def shelf() -> Shelf:
    return Shelf([DAY + timedelta(seconds=n // 3) for n in range(10)])


def ask(shelf: Shelf, page: int = 4, **arguments: str) -> etree._Element:
    given = [(name.removesuffix("_"), value) for name, value in arguments.items()]
    return etree.fromstring(b"".join(answer(given, shelf, page=page)))


def codes(document: etree._Element) -> list[str]:
    return [error.get("code") for error in document.iter(f"{OAI}error")]


def harvest(shelf: Shelf, verb: str = "ListRecords", **arguments: str) -> list[str]:
    """Follow the tokens to the end, as a harvester does."""
    found = []
    document = ask(shelf, verb=verb, metadataPrefix="didl", **arguments)
    while True:
        found += [e.text for e in document.iter(f"{OAI}identifier")]
        token = document.findtext(f".//{OAI}resumptionToken")
        if not token:
            return found
        document = ask(shelf, verb=verb, resumptionToken=token)


@pytest.mark.parametrize("verb", ["ListRecords", "ListIdentifiers"])
def test_a_harvest_meets_every_record_once(shelf, verb):
    assert harvest(shelf, verb) == [f"urn:example:{n}" for n in range(10)]


def test_records_that_arrive_meanwhile_change_no_page(shelf):
    first = ask(shelf, verb="ListRecords", metadataPrefix="didl")
    token = first.findtext(f".//{OAI}resumptionToken")
    shelf.stamps.append(DAY)  # it would stand on the first page
    shelf.stamps.append(DAY + timedelta(seconds=1))
    pages = [ask(shelf, verb="ListRecords", resumptionToken=token) for _ in range(2)]
    assert [e.text for e in pages[0].iter(f"{OAI}identifier")] == [
        f"urn:example:{n}" for n in range(4, 8)
    ]
    assert etree.tostring(pages[0][2]) == etree.tostring(pages[1][2])  # the same answer again


def test_the_last_page_of_a_split_list_ends_with_an_empty_token(shelf):
    document = ask(shelf, page=8, verb="ListIdentifiers", metadataPrefix="didl")
    token = document.find(f".//{OAI}resumptionToken")
    assert (token.get("completeListSize"), token.get("cursor")) == ("10", "0")
    document = ask(shelf, page=8, verb="ListIdentifiers", resumptionToken=token.text)
    token = document.find(f".//{OAI}resumptionToken")
    assert (token.text, token.get("cursor")) == (None, "8")


def test_a_list_in_one_answer_has_no_token(shelf):
    document = ask(shelf, page=10, verb="ListRecords", metadataPrefix="didl")
    assert document.find(f".//{OAI}resumptionToken") is None


def test_days_are_whole_days_and_seconds_are_inclusive(shelf):
    assert len(harvest(shelf, from_="2026-11-15", until="2026-11-15")) == 10
    assert harvest(shelf, from_="2026-11-15T12:00:03Z") == ["urn:example:9"]
    assert len(harvest(shelf, until="2026-11-15T12:00:00Z")) == 3


def test_sets_select(shelf):
    assert harvest(shelf, set="odd") == [f"urn:example:{n}" for n in (1, 3, 5, 7, 9)]


def test_a_deleted_record_has_a_header_alone(shelf):
    document = ask(shelf, verb="GetRecord", identifier="urn:example:3", metadataPrefix="didl")
    assert document.find(f".//{OAI}header").get("status") == "deleted"
    assert document.find(f".//{OAI}metadata") is None


def test_identify_says_who_this_is(shelf):
    document = ask(shelf, verb="Identify")
    assert document.findtext(f".//{OAI}granularity") == "YYYY-MM-DDThh:mm:ssZ"
    assert document.find(f"{OAI}request").get("verb") == "Identify"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["badVerb"]),
        ({"verb": "Dance"}, ["badVerb"]),
        ({"verb": "Identify", "x": "1"}, ["badArgument"]),
        ({"verb": "GetRecord"}, ["badArgument", "badArgument"]),
        ({"verb": "GetRecord", "identifier": "", "metadataPrefix": "didl"}, ["badArgument"]),
        ({"verb": "GetRecord", "identifier": "a\x00", "metadataPrefix": "didl"}, ["badArgument"]),
        ({"verb": "GetRecord", "identifier": "no", "metadataPrefix": "didl"}, ["idDoesNotExist"]),
        (
            {"verb": "GetRecord", "identifier": "urn:example:1", "metadataPrefix": "x"},
            ["cannotDisseminateFormat"],
        ),
        ({"verb": "ListMetadataFormats", "identifier": "no"}, ["idDoesNotExist"]),
        ({"verb": "ListRecords"}, ["badArgument"]),
        ({"verb": "ListRecords", "metadataPrefix": "x"}, ["cannotDisseminateFormat"]),
        ({"verb": "ListRecords", "resumptionToken": "x"}, ["badResumptionToken"]),
        ({"verb": "ListSets", "resumptionToken": "x"}, ["badResumptionToken"]),
        (
            {"verb": "ListRecords", "resumptionToken": "x", "metadataPrefix": "didl"},
            ["badArgument"],
        ),
        ({"verb": "ListRecords", "metadataPrefix": "didl", "from_": "2026-13-01"}, ["badArgument"]),
        (
            {"verb": "ListRecords", "metadataPrefix": "didl", "from_": "2026-11-15T00:00Z"},
            ["badArgument"],
        ),
        (
            {
                "verb": "ListRecords",
                "metadataPrefix": "didl",
                "from_": "2026-11-15",
                "until": "2026-11-16T00:00:00Z",
            },
            ["badArgument"],
        ),
        (
            {
                "verb": "ListRecords",
                "metadataPrefix": "didl",
                "from_": "2026-11-16",
                "until": "2026-11-15",
            },
            ["badArgument"],
        ),
        (
            {"verb": "ListRecords", "metadataPrefix": "didl", "until": "2001-01-01"},
            ["noRecordsMatch"],
        ),
        ({"verb": "ListRecords", "metadataPrefix": "didl", "set": "a b"}, ["badArgument"]),
    ],
)
def test_each_fault_has_its_code(shelf, arguments, expected):
    document = ask(shelf, **arguments)
    assert codes(document) == expected
    repeated = document.find(f"{OAI}request").keys()
    assert bool(repeated) == (expected[0] not in ("badVerb", "badArgument"))


def test_repeated_arguments_are_faults(shelf):
    twice = b"".join(answer([("verb", "Identify"), ("verb", "Identify")], shelf))
    assert codes(etree.fromstring(twice)) == ["badVerb"]
    given = [("verb", "GetRecord"), *[("identifier", "a")] * 2, ("metadataPrefix", "didl")]
    assert codes(etree.fromstring(b"".join(answer(given, shelf)))) == ["badArgument"]


def test_a_repository_without_sets_says_so(shelf):
    shelf.hierarchy = ()
    assert codes(ask(shelf, verb="ListSets")) == ["noSetHierarchy"]
    assert codes(ask(shelf, verb="ListRecords", metadataPrefix="didl", set="odd")) == [
        "noSetHierarchy"
    ]


def test_a_token_of_another_repository_or_verb_is_refused(shelf):
    token = ask(shelf, verb="ListRecords", metadataPrefix="didl").findtext(
        f".//{OAI}resumptionToken"
    )
    assert codes(ask(shelf, verb="ListIdentifiers", resumptionToken=token)) == [
        "badResumptionToken"
    ]
    shelf.secret = b"of another"
    assert codes(ask(shelf, verb="ListRecords", resumptionToken=token)) == ["badResumptionToken"]


times = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(
    lambda t: t.replace(microsecond=0, tzinfo=UTC)
)
tokens = st.builds(
    Token,
    st.sampled_from(["ListRecords", "ListIdentifiers"]),
    st.builds(
        Selection, st.text(), st.none() | times, st.none() | times, st.none() | st.text(min_size=1)
    ),
    st.integers(0, 2**60),
    st.integers(0, 2**60),
    st.integers(0, 2**60),
    st.builds(Place, times, st.integers(0, 2**60)),
)


@given(tokens, st.binary())
def test_tokens_read_back(token, secret):
    assert parse_token(format_token(token, secret), token.verb, secret) == token


@given(st.text())
def test_no_text_passes_for_a_token(text):
    with pytest.raises(BadToken):
        parse_token(text, "ListRecords", b"secret")


@given(tokens, st.integers(0), st.characters(codec="ascii"))
def test_no_changed_token_is_taken(token, position, letter):
    text = format_token(token, b"secret")
    position %= len(text)
    changed = text[:position] + letter + text[position + 1 :]
    with suppress(BadToken):
        assert parse_token(changed, token.verb, b"secret") == token  # base64 has slack bits


names = st.sampled_from(
    ["verb", "identifier", "metadataPrefix", "from", "until", "set", "resumptionToken"]
)
values = st.sampled_from(
    ["Identify", "ListRecords", "GetRecord", "ListSets", "didl", "2026-11-15", "odd", ""]
)


@given(st.lists(st.tuples(names | st.text(), values | st.text())))
def test_any_arguments_make_a_request_or_a_refusal(arguments):
    try:
        parse_request(arguments)
    except Refused as refused:
        assert refused.errors


@given(st.lists(st.tuples(names | st.text(), values | st.text())))
def test_every_answer_is_xml(arguments):
    shelf = Shelf([DAY + timedelta(seconds=n // 3) for n in range(10)])
    etree.fromstring(b"".join(answer(arguments, shelf)))


@pytest.mark.samples
@pytest.mark.parametrize(
    "arguments",
    [
        {"verb": "Identify"},
        {"verb": "ListMetadataFormats"},
        {"verb": "ListSets"},
        {"verb": "ListIdentifiers", "metadataPrefix": "didl"},
        {"verb": "GetRecord", "identifier": "urn:example:3", "metadataPrefix": "didl"},
        {"verb": "GetRecord", "identifier": "no", "metadataPrefix": "didl"},
        {"verb": "Dance"},
        {"verb": "ListRecords", "resumptionToken": "x"},
    ],
)
def test_answers_are_valid_by_the_official_schema(samples, shelf, arguments):
    schema = etree.XMLSchema(etree.parse(samples.parent / "xsd" / "OAI-PMH.xsd"))
    schema.assertValid(ask(shelf, **arguments))
