"""PDIs: every vector, and the laws that hold for all names."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from vectors import BAD, GOOD, PAIRS

from muniment.errors import IdentifierError
from muniment.identifiers import Profile, diagnose, matches, parse_many, parse_pdi, parse_series
from muniment.identifiers.pdi import Pdi
from names import pdis


@pytest.mark.parametrize(("profile", "text", "canonical", "functional", "remarks"), GOOD)
def test_a_good_name_has_one_canonical_form(
    profile: str, text: str, canonical: str, functional: str, remarks: tuple[str, ...]
) -> None:
    found = diagnose(text, Profile(profile))
    assert found.pdi is not None
    assert str(found.pdi) == (canonical or text)
    assert found.pdi.functional_key == (functional or canonical or text)
    assert tuple(problem.code for problem in found.problems) == remarks


@pytest.mark.parametrize(("profile", "text", "code"), BAD)
def test_a_bad_name_is_refused_with_its_code(profile: str, text: str, code: str) -> None:
    found = diagnose(text, Profile(profile))
    assert found.pdi is None
    assert [problem.code for problem in found.problems if problem.fatal] == [code]
    with pytest.raises(IdentifierError, match=code):
        parse_pdi(text, Profile(profile))


@pytest.mark.parametrize(("a", "b", "lexical", "functional"), PAIRS)
def test_names_are_the_same_lexically_or_in_meaning(
    a: str, b: str, lexical: bool, functional: bool
) -> None:
    one, other = parse_pdi(a), parse_pdi(b)
    assert (one == other) is lexical
    assert (one.functional_key == other.functional_key) is functional


def test_the_parts_of_a_name_can_be_had() -> None:
    pdi = parse_pdi("PDI://OMA.eop.gov.us/1997/09/01/Report.HTML.2#NAME=A,B")
    assert (pdi.series, pdi.country, pdi.unique_id) == ("oma.eop.gov.us", "us", "Report")
    assert (pdi.format, pdi.version, pdi.media_type) == ("html", 2, "text/html")
    assert pdi.date is not None and pdi.date.isoformat() == "1997-09-01"
    assert pdi.fragment is not None and pdi.fragment.scheme == "name"
    assert str(pdi.document) == "pdi://oma.eop.gov.us/1997/09/01/Report.html.2"
    assert str(pdi.generic) == "pdi://oma.eop.gov.us/1997/09/01/Report"


def test_a_problem_says_where_it_is() -> None:
    text = "pdi://a.ch/2025/11/15/x%4.text.1"
    (problem,) = diagnose(text).problems
    assert text[problem.position :].startswith("%4.")
    cited = "pdi://a.ch/2025/11/15/1.text.1@5=pdi://b.gov/2025/11/15/1.text.1"
    (problem,) = diagnose(cited).problems
    assert (problem.code, cited[problem.position :][:3]) == ("E_COUNTRY", "gov")


def test_citations_are_nested_at_most_eight_deep() -> None:
    link = "pdi://a.us/2001/01/01/1.text.1@5="
    assert parse_pdi(link * 8 + "pdi://a.us/2001/01/01/1.text.1").citation
    with pytest.raises(IdentifierError, match="E_DEPTH"):
        parse_pdi(link * 9 + "pdi://a.us/2001/01/01/1.text.1")


def test_a_name_is_at_most_2048_characters_long() -> None:
    stem = "pdi://a.ch/2025/11/15/"
    assert parse_pdi(stem + "x" * (2048 - len(stem)))
    with pytest.raises(IdentifierError, match="E_LENGTH"):
        parse_pdi(stem + "x" * (2049 - len(stem)))


def test_names_are_minted_only_below_countries_that_exist_or_existed() -> None:
    for country, good in (("ch", True), ("dd", True), ("su", True), ("qq", False), ("eu", False)):
        found = diagnose(f"pdi://a.{country}/2025/11/15/1.text.1", Profile.MINT)
        assert (found.pdi is not None) is good
    assert parse_pdi("pdi://a.qq/2025/11/15/1.text.1").country == "qq"


def test_names_sort_by_day_and_serial_number() -> None:
    texts = [f"pdi://a.ch/2025/11/{day}/{n}.text.1" for day in ("14", "15") for n in (2, 10, 33)]
    pdis = [parse_pdi(text) for text in reversed(texts)]
    assert [str(pdi) for pdi in sorted(pdis, key=lambda pdi: pdi.sort_key)] == texts


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("pdi://a.ch/2025/*/*/*", "pdi://a.ch/2025/11/15/1.text.1", True),
        ("pdi://a.ch/2025/*/*/*", "pdi://a.ch/2024/11/15/1.text.1", False),
        ("pdi://a.ch/2025/*/*/*", "pdi://b.ch/2025/11/15/1.text.1", False),
        ("pdi://a.ch/2025/11/15/1.*.*", "pdi://a.ch/2025/11/15/1.text.3", True),
        ("pdi://a.ch/2025/11/15/1.*.*", "pdi://a.ch/2025/11/15/1", False),
        ("pdi://a.ch/2025/11/15/1.*.2", "pdi://a.ch/2025/11/15/1.text.3", False),
    ],
)
def test_wildcards_stand_for_any_value(pattern: str, name: str, expected: bool) -> None:
    assert matches(parse_pdi(pattern, Profile.QUERY), parse_pdi(name)) is expected


def test_a_series_is_read_alone() -> None:
    assert parse_series("pdi://DB.bar.admin.CH/") == "db.bar.admin.ch"
    assert parse_series("db.bar.admin.ch") == "db.bar.admin.ch"
    for bad in ("ch", "db..ch", "a b.ch", "db.bar.admin", ""):
        with pytest.raises(IdentifierError):
            parse_series(bad)


@given(pdis())
def test_the_canonical_form_reads_back_as_the_same_value(pdi: Pdi) -> None:
    assert parse_pdi(str(pdi)) == pdi
    assert parse_pdi(f"URN:{pdi}") == pdi
    assert parse_pdi(parse_pdi(str(pdi)).functional_key).functional_key == pdi.functional_key


@given(st.lists(pdis(), max_size=20), st.integers(1, 3))
def test_reading_in_bulk_gives_the_same(some: list[Pdi], times: int) -> None:
    texts = [str(pdi) for pdi in some] * times
    assert list(parse_many(texts)) == [parse_pdi(text) for text in texts]


_PIECES = st.sampled_from(
    [
        "pdi://",
        "urn:",
        "a.ch",
        "/",
        "2025",
        "11",
        "15",
        "1",
        ".",
        "text",
        "*",
        "#",
        "@",
        "=",
        "(",
        ")",
        ",",
        "%41",
        "%00",
        "%",
        "siard",
        "cell",
        "s0",
        "é",
        "\n",
    ]
)


@settings(max_examples=300)
@given(st.one_of(st.text(), st.lists(_PIECES, max_size=30).map("".join)), st.sampled_from(Profile))
@example("pdi://a.ch/2025/11/15/1.text.1\n", Profile.READ)
@example("pdi://a.ch/２０２５/11/15/1", Profile.READ)
def test_any_text_gets_a_diagnosis(text: str, profile: Profile) -> None:
    found = diagnose(text, profile)
    if found.pdi is None:
        assert found.problems[-1].fatal
        assert 0 <= found.problems[-1].position <= max(len(text), 0)
    else:
        assert parse_pdi(str(found.pdi)) == found.pdi
    assert ([found.pdi] if found.pdi else None) == _bulk(text) or profile is not Profile.READ


def _bulk(text: str) -> list[Pdi] | None:
    try:
        return list(parse_many([text]))
    except IdentifierError:
        return None


@pytest.mark.parametrize(
    "piece", ["a", "(", "%", "%41", "#", "@", "pdi://a.ch/", "é", "*.", "a.b."]
)
def test_a_megabyte_of_anything_is_judged_at_once(piece: str) -> None:
    started = time.process_time()
    for start in (
        "",
        "pdi://",
        "pdi://a.ch/2025/11/15/1.text.1#",
        "pdi://a.ch/2025/11/15/1.text.1@",
    ):
        diagnose(start + piece * (1_000_000 // len(piece)))
        diagnose((start + piece * 2048)[:2048])
    assert time.process_time() - started < 2
