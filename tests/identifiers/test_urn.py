"""URNs, the URN forms of PDIs, and OpenURL."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors import GOOD, URNS, Components

from muniment.errors import IdentifierError
from muniment.identifiers import Pdi, parse_pdi, parse_urn
from muniment.identifiers.foreign import encapsulate
from muniment.identifiers.openurl import ContextObject, Entity, format_kev, parse_kev
from muniment.identifiers.urn import format_pdi_urn, parse_pdi_urn, parse_urn_2141
from names import pdis


@pytest.mark.parametrize(("text", "expected"), URNS)
def test_urns_of_rfc_8141(text: str, expected: Components | None) -> None:
    if expected is None:
        with pytest.raises(IdentifierError):
            parse_urn(text)
        return
    urn = parse_urn(text)
    parts = (urn.nid, urn.nss, urn.resolver, urn.query, urn.fragment, urn.key)
    assert parts == expected
    assert parse_urn(str(urn)).key == urn.key


def test_urns_of_rfc_2141_are_the_same_by_its_rules() -> None:
    first, second, third = (
        parse_urn_2141(text).key
        for text in ("URN:foo:a123,456", "urn:foo:a123,456", "urn:FOO:a123,456")
    )
    assert first == second == third != parse_urn_2141("urn:foo:A123,456").key
    escaped = parse_urn_2141("urn:foo:a123%2C456").key
    assert escaped == parse_urn_2141("URN:FOO:a123%2c456").key != first
    for bad in ("urn:urn:x", "urn:a b:x", "urn:foo:a~b", "urn:foo:%00", "urn:foo:", "foo:bar:x"):
        with pytest.raises(IdentifierError):
            parse_urn_2141(bad)


@pytest.mark.parametrize("text", [row[1] for row in GOOD if "@" not in row[1]])
def test_every_pdi_has_a_form_below_a_root(text: str) -> None:
    pdi = parse_pdi(text)
    urn = format_pdi_urn(pdi, "example")
    assert parse_pdi_urn(urn, "EXAMPLE") == pdi
    assert parse_urn(urn).nid == "example"
    assert "/" not in urn and "?" not in urn
    assert parse_pdi_urn(format_pdi_urn(pdi), "example") == pdi


@given(pdis())
def test_the_form_below_a_root_loses_nothing(pdi: Pdi) -> None:
    if pdi.citation is None:
        assert parse_pdi_urn(format_pdi_urn(pdi, "example"), "example") == pdi
    else:
        with pytest.raises(IdentifierError, match="E_URN_CITATION"):
            format_pdi_urn(pdi, "example")


def test_a_urn_of_another_kind_is_no_pdi() -> None:
    for text in (
        "urn:example:x:a.ch:2025:11:15:1",
        "urn:other:pdi:a.ch:2025:11:15:1",
        "urn:isbn:1",
    ):
        with pytest.raises(IdentifierError, match="E_URN_PDI"):
            parse_pdi_urn(text, "example")


@settings(max_examples=200)
@given(st.one_of(st.text(), st.text("urn:?+=#%a1/-", max_size=60).map("urn:ex:{}".format)))
def test_any_text_is_a_urn_or_is_refused(text: str) -> None:
    for parse in (parse_urn, parse_urn_2141):
        try:
            assert parse(str(parse(text))).key == parse(text).key
        except IdentifierError as error:
            assert error.code.startswith("E_")


def test_long_urns_are_judged_at_once() -> None:
    started = time.process_time()
    for piece in ("a", "%41", "?+a", "?=a", "a?", "/", "%4"):
        for size in (8180 // len(piece), 1_000_000 // len(piece)):
            with pytest.raises(IdentifierError):
                parse_urn("urn:example:a" + piece * size + "\n")
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("kind", "value", "canonical"),
    [
        ("url", "HTTPS://Example.ORG:443", "https://example.org/"),
        ("url", "http://example.org:8080/%7eme?q#f", "http://example.org:8080/%7Eme?q#f"),
        ("doi", "https://doi.org/10.1000/ABC", "10.1000/abc"),
        ("ark", "ark:/12345/x6-np", "ark:12345/x6np"),
        ("urn", "URN:ISBN:0451450523", "urn:isbn:0451450523"),
        ("invoice", "A/17", "A/17"),
    ],
)
def test_a_foreign_identifier_becomes_a_unique_id(kind: str, value: str, canonical: str) -> None:
    unique_id, kept = encapsulate(kind, value)
    assert kept == canonical
    assert parse_pdi(f"pdi://a.ch/2025/11/15/{unique_id}.html.1").unique_id == unique_id


def test_what_is_no_identifier_of_its_kind_is_refused() -> None:
    cases = [
        ("url", "ftp://x"),
        ("url", "http://[::1"),
        ("doi", "11.1/x"),
        ("ark", "x"),
        ("urn", "x"),
    ]
    for kind, value in cases:
        with pytest.raises(IdentifierError):
            encapsulate(kind, value)


def test_an_openurl_names_its_referent() -> None:
    query = (
        "url_ver=Z39.88-2004&ctx_ver=Z39.88-2004&ctx_tim=2025-11-15"
        "&rft_id=info%3Adoi%2F10.1000%2F182&rft_id=urn%3Aisbn%3A1"
        "&rft_val_fmt=info%3Aofi%2Ffmt%3Akev%3Amtx%3Abook&rft.title=Caf%C3%A9"
        "&svc_id=info%3Alanl-repo%2Fsvc%2FgetDIDL&sid=elsewhere"
    )
    request = parse_kev(query)
    assert request.referent.ids == ("info:doi/10.1000/182", "urn:isbn:1")
    assert request.referent.first("title") == "Café"
    assert request.entity("svc").ids == ("info:lanl-repo/svc/getDIDL",)
    assert request.foreign == (("sid", "elsewhere"),)
    assert parse_kev(format_kev(request)) == request


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("url_ver=Z39.88-1999&rft_id=x", "E_OPENURL_VERSION"),
        ("rft_dat=a&rft_dat=b", "E_OPENURL_REPEATED"),
        ("rft_id=%ff", "E_OPENURL_ENCODING"),
        ("&".join(["rft_id=x"] * 1001), "E_OPENURL_SIZE"),
        ("x" * (1 << 21), "E_LENGTH"),
    ],
)
def test_a_faulty_openurl_is_refused(query: str, code: str) -> None:
    with pytest.raises(IdentifierError, match=code):
        parse_kev(query)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_openurls_read_back(ids: list[str], title: str) -> None:
    entity = Entity(tuple(ids), "f", (("title", title),), data="d")
    request = ContextObject((("rft", entity),))
    assert parse_kev(format_kev(request)) == request
