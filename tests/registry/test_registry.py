"""The registry: the namespace of GFD.191 as fixture, the life of entries, validation."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html
from namespace_vectors import CANDIDATES, REFUSED, VALID

from muniment.errors import IdentifierError, NameRefused, NotFound, UsageError
from muniment.identifiers.ddds import Naptr
from muniment.names import Names
from muniment.registry import Registration, Registry, check_snid, review
from muniment.registry.export import (
    document_html,
    document_markdown,
    page_html,
    page_markdown,
    registry_json,
)
from muniment.registry.reading import read_mapping
from muniment.registry.validation import assign, follow_rules, same, validate

EXAMPLE: dict[str, Any] = yaml.safe_load(
    files("muniment.registry").joinpath("example.yaml").read_text(encoding="utf-8")
)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2011, 12, 13, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def empty(tmp_path: Path, clock: Clock) -> Registry:
    return Registry(Names.create(tmp_path / "names", "ogf", clock))


@pytest.fixture
def registry(empty: Registry) -> Registry:
    empty.propose("namespace", "example", "applicant", EXAMPLE)
    empty.decide("namespace", "example", "editor", True, "GFD.191 published")
    return empty


def changed(**changes: Any) -> dict[str, Any]:
    body = copy.deepcopy(EXAMPLE)
    for path, value in changes.items():
        target = body
        *way, last = path.split("__")
        for step in way:
            target = target[step]
        if value is None:
            target.pop(last.replace("_", "."), None)
        else:
            target[last] = value
    return body


@pytest.mark.parametrize(("text", "canonical", "reserved"), VALID)
def test_valid_names(
    registry: Registry, text: str, canonical: str, reserved: tuple[str, ...]
) -> None:
    verdict = validate(registry, text)
    assert not verdict.problems
    assert verdict.canonical == canonical
    codes = tuple(p.code for p in verdict.assignable if p.code.endswith("_RESERVED"))
    assert codes == reserved


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_invalid_names(registry: Registry, text: str, code: str) -> None:
    verdict = validate(registry, text)
    assert [problem.code for problem in verdict.problems] == [code]


@pytest.mark.parametrize(("snid", "errors", "warnings"), CANDIDATES)
def test_candidates(snid: str, errors: tuple[str, ...], warnings: tuple[str, ...]) -> None:
    findings = list(check_snid(snid, {"example"}))
    assert tuple(f.code for f in findings if f.stops) == errors
    assert tuple(f.code for f in findings if not f.stops) == warnings


def test_names_are_equivalent_by_their_own_rules(registry: Registry) -> None:
    one = "urn:ogf:example:cluster:2009:example.net:42"
    assert same(registry, one, "URN:OGF:Example:CLUSTER:2009:EXAMPLE.net:42")
    assert not same(registry, one, "urn:ogf:example:cluster:2009:example.net:042")
    with pytest.raises(IdentifierError):
        same(registry, one, "urn:ogf:example:cluster")


def test_a_name_is_assigned_once_and_for_ever(registry: Registry, clock: Clock) -> None:
    with pytest.raises(NameRefused, match="YEAR must be 2011"):
        assign(registry, "urn:ogf:example:cluster:2009:example.net:42", [], "owner")
    name = "urn:ogf:example:cluster:2011:example.net:42"
    assert validate(registry, name).assigned is False
    assert assign(registry, name, ["https://example.net/c42"], "owner") == name
    with pytest.raises(NameRefused, match="assigned already"):
        assign(registry, "URN:OGF:example:CLUSTER:2011:example.net:42", [], "another")
    with pytest.raises(NameRefused, match="reserved"):
        assign(registry, "urn:ogf:example:desktop:2011:example.net:42", [], "owner")
    registry.close("namespace", "example", "steering group", "no longer needed")
    with pytest.raises(NameRefused, match="closed"):
        assign(registry, "urn:ogf:example:cluster:2011:example.net:43", [], "owner")
    clock.now = datetime(2061, 1, 1, tzinfo=UTC)
    verdict = validate(registry, name)
    assert (verdict.valid, verdict.assigned, verdict.state) == (True, True, "closed")
    assert verdict.resolves == ("https://example.net/c42",)


def test_the_rules_of_the_ddds_are_followed_without_dns(registry: Registry) -> None:
    text = "URN:OGF:Example:CLUSTER:2009:EXAMPLE.net:42"
    assert validate(registry, text).key == "2009.example.net.cluster.grid.example.net"
    rule = Naptr(1, 1, "U", "thttp+I2L", r"!^urn:ogf:example:.*:([0-9]+)$!http://e.net/\1!i")
    records = {"2009.example.net.cluster.grid.example.net": [rule]}
    assert follow_rules(registry, text, records).result == "http://e.net/42"
    assert not follow_rules(registry, "urn:ogf:example:cluster:2010:e.net:42", records).valid


def test_the_example_passes_its_own_review() -> None:
    findings = review(Registration.read(EXAMPLE), "ogf", year=2011)
    assert [finding.code for finding in findings if finding.stops] == []
    assert "W_RESERVED" in [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (changed(sections__2_4=None), "E_SECTION"),
        (changed(sections={**EXAMPLE["sections"], "4.3": "combined with 9.9"}), "E_SECTION"),
        (changed(syntax__abnf="EXAMPLE-URN = ("), "E_SYNTAX_ABNF"),
        (changed(syntax__abnf="EXAMPLE-URN = 1*VCHAR"), "E_CHARACTERS"),
        (changed(syntax__abnf=EXAMPLE["syntax"]["abnf"].replace('":" INDEX', "INDEX")), "E_EXAMPLE_INVALID"),
        (changed(syntax__abnf=EXAMPLE["syntax"]["abnf"].replace("1*OTHER", "1*<URN chars>")), "E_AMBIGUOUS"),
        (changed(syntax__max_octets="long"), "E_MAX_LENGTH"),
        (changed(syntax__percent=True), "E_NORMALISATION"),
        (changed(examples__invalid=["urn:ogf:example:cluster:2009:example.net:1"]), "E_EXAMPLE_VALID"),
        (changed(examples__valid=["urn:ogf:other:cluster:2009:example.net:1"]), "E_PREFIX"),
        (changed(equivalence__steps=[]), "E_EQUIVALENCE"),
        (changed(equivalence__different=EXAMPLE["equivalence"]["equal"]), "E_EQUIVALENCE"),
        (changed(attributes__DOMAIN={"volatile": True}), "E_VOLATILE"),
        (changed(attributes__DOMAIN={}), "E_ATTRIBUTE"),
        (changed(assignment={"mode": "open", "subdelegation": True}), "E_SUBDELEGATION"),
        (changed(assignment={}), "E_ASSIGNMENT"),
        (changed(services={"ddds": r"!\d!x!"}), "E_DDDS"),
        (changed(snid="x-example"), "E_SNID_X"),
        (changed(snid="example-wg"), "W_SNID_VOLATILE"),
        (changed(sections={**EXAMPLE["sections"], "2.4": "combined with 4.1"}), "E_SECTION"),
        (changed(sections={**EXAMPLE["sections"], "1.1": "something"}), "E_SECTION_SNID"),
        (changed(attributes__SERIAL={"volatile": False}), "E_ATTRIBUTE"),  # no such rule
        (changed(attributes__TYPE=None), "W_ATTRIBUTE"),
        (changed(attributes__YEAR=None), "E_ATTRIBUTE"),  # it has limits
        (changed(examples__valid=["nonsense", "", ":", "urn:"]), "E_EXAMPLE_INVALID"),
        (changed(syntax__abnf=""), "E_SYNTAX_MISSING"),
        (changed(syntax__abnf=EXAMPLE["syntax"]["abnf"] + '    X = "%" 2HEXDIG\n'.lstrip(),
                 syntax__start="X"), "E_PERCENT"),
        (changed(syntax__abnf='X = "urn:ogf:example:" 4DIGIT', syntax__start="X", syntax__max_octets=10), "W_MAX_LENGTH"),
        (changed(examples={}), "W_EXAMPLES"),
    ],
)  # fmt: skip
def test_the_review_finds(body: dict[str, Any], code: str) -> None:
    findings = review(Registration.read(body), "ogf", year=2011)
    assert code in [finding.code for finding in findings]


def test_the_review_asks_for_the_version_that_will_be_approved(registry: Registry) -> None:
    registry.propose("namespace", "example", "owner", EXAMPLE)  # it still says version 1
    assert "W_VERSION" in [finding.code for finding in registry.review("namespace", "example")]
    second = changed(sections={**EXAMPLE["sections"], "1.2": "Version 2"})
    registry.propose("namespace", "example", "owner", second)
    assert "W_VERSION" not in [finding.code for finding in registry.review("namespace", "example")]


def test_changes_can_be_asked_for(empty: Registry) -> None:
    empty.propose("namespace", "example", "applicant", EXAMPLE)
    entry = empty.act("ask", "namespace", "example", "editor", "say more in 4.1")
    assert (entry.state, entry.history[-1]["reason"]) == ("proposed", "say more in 4.1")
    empty.propose("namespace", "example", "applicant", EXAMPLE)
    assert empty.decide("namespace", "example", "editor", True, "good").state == "assigned"


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_registration_is_reviewed_or_refused(data: st.DataObject) -> None:
    """Whatever somebody hands in: a review or a sentence, and no more."""
    body = copy.deepcopy(EXAMPLE)
    for _ in range(data.draw(st.integers(1, 3))):
        target: Any = body
        while True:
            keys = list(target) if isinstance(target, dict) else list(range(len(target)))
            key = data.draw(st.sampled_from(keys))
            deeper = isinstance(target[key], (dict, list)) and target[key]
            if not deeper or data.draw(st.booleans()):
                target[key] = data.draw(_json)
                break
            target = target[key]
    try:
        findings = review(Registration.read(body), "ogf", year=2011)
    except UsageError:
        return
    assert all(finding.message for finding in findings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "references"),
        ("[" * 50_000, "nested too deep|neither"),
        ("a: " + "9" * 10_000, "neither YAML nor JSON"),
        ("a: 2001-99-99", "neither YAML nor JSON"),
        ("? [a, b]\n: c", "neither YAML nor JSON"),
        ("- a", "does not hold a registration"),
        ("a: !!python/object:os.system x", "neither YAML nor JSON"),
        ("a: " + "b" * 300_000, "more than a registration"),
        ("a: \udcff", "neither YAML nor JSON"),
    ],
)
def test_a_file_that_is_no_registration_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "registration.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(UsageError, match=message):
        read_mapping(path)


def test_approval_needs_good_checks_or_a_waiver(empty: Registry) -> None:
    empty.propose("namespace", "example", "applicant", changed(assignment={}))
    with pytest.raises(NameRefused, match="OGF-55"):
        empty.decide("namespace", "example", "editor", True, "fine")
    entry = empty.decide("namespace", "example", "editor", True, "fine", waiver="will follow")
    assert (entry.state, entry.version) == ("assigned", 1)


def test_a_revision_keeps_earlier_names_valid(registry: Registry) -> None:
    assign(registry, "urn:ogf:example:cluster:2011:example.net:42", [], "owner")
    abnf = EXAMPLE["syntax"]["abnf"].replace("INDEX    = 1*DIGIT", "INDEX    = 1*1DIGIT")
    assert abnf != EXAMPLE["syntax"]["abnf"]
    fewer = changed(
        syntax__abnf=abnf, examples={"valid": [], "invalid": []}, equivalence={"steps": ["case"]}
    )
    registry.propose("namespace", "example", "owner", fewer)
    with pytest.raises(NameRefused, match="was valid before"):
        registry.decide("namespace", "example", "editor", True, "")
    with pytest.raises(NameRefused, match="no waiver"):
        registry.decide("namespace", "example", "editor", True, "", waiver="please")
    entry = registry.decide("namespace", "example", "editor", False, "breaks names")
    assert (entry.state, entry.version, entry.proposal) == ("assigned", 1, None)
    registry.propose(
        "namespace", "example", "owner", changed(sections={**EXAMPLE["sections"], "7": "more"})
    )
    assert registry.entry("namespace", "example").version == 1
    assert registry.decide("namespace", "example", "editor", True, "GFD.300").version == 2


def test_reservations_end_and_are_extended_once(empty: Registry, clock: Clock) -> None:
    empty.act("notice", "namespace", "network", "a group")
    empty.reserve("namespace", "network", "a group", 30)
    empty.extend("namespace", "network", "steering group", 10)
    with pytest.raises(NameRefused, match="once already"):
        empty.extend("namespace", "network", "steering group", 10)
    clock.now += timedelta(days=40)
    assert empty.entry("namespace", "network").state == "reserved"
    clock.now += timedelta(days=1)
    assert empty.entry("namespace", "network").state == "lapsed"
    empty.reserve("namespace", "network", "others", 30)
    empty.act("observe", "namespace", "network", "a reader", sample="urn:ogf:network:1")
    clock.now += timedelta(days=60)
    assert empty.entry("namespace", "network").state == "blocked"
    with pytest.raises(NameRefused, match="blocked"):
        empty.propose("namespace", "network", "others", changed(snid="network"))


def test_a_reserved_name_is_proposed_by_whom_it_is_reserved_for(empty: Registry) -> None:
    empty.reserve("namespace", "example", "steering group", 30, holder="a group")
    with pytest.raises(NameRefused, match="reserved for a group until"):
        empty.propose("namespace", "example", "others", EXAMPLE)
    assert empty.propose("namespace", "example", "a group", EXAMPLE).state == "proposed"


def test_optional_sections_may_be_left_out_and_others_combined(empty: Registry) -> None:
    left = {
        n: t for n, t in EXAMPLE["sections"].items() if n not in ("1.3", "3.1", "3.2", "7", "8")
    }
    together = {**left, "2.2": "combined with 2.1", "4.2": "Combined with section 4.1"}
    findings = review(Registration.read(changed(sections=together)), "ogf", year=2011)
    assert [finding.code for finding in findings if finding.stops] == []


def _small(snid: str, abnf: str, **changes: Any) -> dict[str, Any]:
    """A registration of names that are a prefix and one attribute, NAME."""
    syntax = {"start": "URN", "abnf": f'URN = "urn:ogf:{snid}:" NAME\n{abnf}', "max_octets": 100}
    sections = {**EXAMPLE["sections"], "1.1": f"urn:ogf:{snid}"}
    body = {**EXAMPLE, "snid": snid, "sections": sections, "syntax": {**syntax, **changes}}
    attributes = {"NAME": {"meaning": "the name", "volatile": False}}
    return {**body, "attributes": attributes, "services": {}, "examples": {}, "equivalence": {}}


def test_places_are_written_with_a_hyphen_for_the_space(empty: Registry) -> None:
    """The second example of GFD.191: codes of UN/LOCODE."""
    body = _small("place", 'NAME = 2ALPHA "-" 3( ALPHA / DIGIT )')
    body["examples"] = {"valid": ["urn:ogf:place:NL-AMS"], "invalid": ["urn:ogf:place:NL AMS"]}
    body["equivalence"] = {"steps": ["case"]}
    empty.propose("namespace", "place", "applicant", body)
    assert empty.decide("namespace", "place", "editor", True, "good").state == "assigned"
    assert validate(empty, "urn:ogf:place:nl-ams").canonical == "urn:ogf:place:nl-ams"
    assert not validate(empty, "urn:ogf:place:NL%20AMS").valid


def test_escapes_are_utf_8_and_compared_without_being_read(empty: Registry) -> None:
    """The third example of GFD.191: names in any script, escaped."""
    body = _small("word", 'NAME = 1*( ALPHA / "%" 2HEXDIG )', percent="utf-8")
    body["equivalence"] = {"steps": ["hex-case"]}
    body["examples"] = {"valid": ["urn:ogf:word:e%cc%81"]}
    empty.propose("namespace", "word", "applicant", body)
    assert empty.decide("namespace", "word", "editor", True, "good").state == "assigned"
    assert validate(empty, "urn:ogf:word:e%CC%81").canonical == "urn:ogf:word:e%CC%81"
    assert validate(empty, "urn:ogf:word:e%cc%81").canonical == "urn:ogf:word:e%CC%81"
    assert validate(empty, "urn:ogf:word:%65%cc%81").canonical == "urn:ogf:word:%65%CC%81"
    assert [p.code for p in validate(empty, "urn:ogf:word:%ff").problems] == ["E_PERCENT_UTF8"]
    composed = validate(empty, "urn:ogf:word:%c3%a9")
    assert composed.valid and [p.code for p in composed.assignable] == ["N_PERCENT_NFKD"]


def test_what_was_assigned_never_goes_to_others(registry: Registry) -> None:
    for action in ("notice", "reserve", "propose", "withdraw", "reject"):
        with pytest.raises(NameRefused):
            registry.act(action, "namespace", "Example", "others", until="2099-01-01", body=EXAMPLE)
    entry = registry.hand_on("namespace", "example", "owner", "successor", "merged")
    assert (entry.steward, entry.state) == ("successor", "assigned")
    registry.act("freeze", "namespace", "example", "steering group", "dispute")
    with pytest.raises(NameRefused, match="frozen"):
        registry.close("namespace", "example", "owner", "")
    registry.act("release", "namespace", "example", "steering group", "settled")
    assert registry.act("steward", "namespace", "example", "archive").state == "stewarded"
    with pytest.raises(UsageError):
        registry.act("close", "namespace", "example", " ")


def test_series_and_schemes_go_the_same_way(empty: Registry) -> None:
    about = {"title": "Databases", "description": "Archived databases of the administration"}
    empty.propose("series", "db.admin.ch", "Archives", about)
    empty.decide("series", "db.admin.ch", "registrar", True, "")
    assert empty.names.mint("db.admin.ch", format="siard").first == 1
    empty.close("series", "db.admin.ch", "Archives", "reorganised")
    with pytest.raises(NameRefused, match="closed"):
        empty.names.mint("db.admin.ch")
    empty.propose("scheme", "voxel", "Museum", {"title": "Boxes", "description": "A box in 3-D"})
    codes = [finding.code for finding in empty.review("scheme", "voxel")]
    assert codes == ["E_SECTION"] * 3
    empty.propose("scheme", "char", "Museum", about)
    assert "E_SCHEME_TAKEN" in [finding.code for finding in empty.review("scheme", "char")]


VOXEL = {
    "title": "Boxes",
    "description": "A box in a three-dimensional image, half-open",
    "media_types": ["model/", "image/"],
    "positions": 'box = corner "," corner\ncorner = "(" 1*DIGIT 2("," 1*DIGIT) ")" / "(" mark ")"\n'
    "mark = 1*ALPHA",
    "examples": {
        "valid": ["voxel=(0,0,0),(5,5,5)", "voxel=(0,0,0),(End)"],
        "invalid": ["voxel=(0,0)", "rect=(0,0,0),(5,5,5)", "voxel=(0,0,0),(5,5,5)#"],
    },
}
PART = "pdi://db.admin.ch/2025/11/15/1.png.1#Voxel=(0,0,0),(END)"


def test_a_registered_scheme_reaches_the_parser(empty: Registry) -> None:
    names = empty.names
    with pytest.raises(IdentifierError, match="not registered"):
        names.read(PART)
    empty.propose("scheme", "voxel", "Museum", VOXEL)
    assert empty.review("scheme", "voxel") == []
    empty.decide("scheme", "voxel", "registrar", True, "")
    assert str(names.read(PART)).endswith("#voxel=(0,0,0),(end)")
    assert names.say(PART, "title", "A box", "me").subject.endswith("#voxel=(0,0,0),(end)")
    (said,) = names.assertions(PART.lower(), inherited=True)
    assert said.value == "A box"
    for wrong in (PART[:-5] + "(7)", PART.replace(".png.", ".text.")):
        with pytest.raises(IdentifierError):
            names.read(wrong)
    with Names.open(names.folder) as again:
        assert "voxel" in again.schemes
    assert "voxel" in {each["name"] for each in registry_json(empty)["fragment_schemes"]}


def test_a_revised_scheme_keeps_its_positions(empty: Registry) -> None:
    empty.propose("scheme", "voxel", "Museum", VOXEL)
    empty.decide("scheme", "voxel", "registrar", True, "")
    narrow = {"positions": 'box = "(" 1*DIGIT ")"', "examples": {"valid": ["voxel=(1)"]}}
    empty.propose("scheme", "voxel", "Museum", {**VOXEL, **narrow})
    with pytest.raises(NameRefused, match="stay valid"):
        empty.decide("scheme", "voxel", "registrar", True, "", waiver="we want it")
    exact = {**VOXEL, "case_sensitive": True}
    empty.propose("scheme", "voxel", "Museum", exact)
    empty.decide("scheme", "voxel", "registrar", True, "")
    assert str(empty.names.read(PART)).endswith("#voxel=(0,0,0),(END)")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"positions": "box = box"}, "E_SYNTAX_ABNF"),
        ({"positions": "= ="}, "E_SYNTAX_ABNF"),
        ({"positions": 'box = "x"'}, "E_EXAMPLE_INVALID"),
        ({"media_types": "image/"}, "E_SECTION"),
        ({"examples": ["voxel=(1)"]}, "E_SECTION"),
        ({"examples": {"valid": []}}, "E_SECTION"),
        ({"examples": {"valid": ["voxel=(0,0,0),(5,5,5)"], "invalid": ["voxel=(0,0,0),(5,5,5)"]}},
         "E_EXAMPLE_VALID"),
    ],
)  # fmt: skip
def test_a_bad_scheme_is_refused(empty: Registry, change: dict[str, Any], code: str) -> None:
    empty.propose("scheme", "voxel", "Museum", {**VOXEL, **change})
    assert code in [finding.code for finding in empty.review("scheme", "voxel")]
    with pytest.raises(NameRefused):
        empty.decide("scheme", "voxel", "registrar", True, "")


def test_the_registry_is_exported(registry: Registry) -> None:
    data = registry_json(registry)
    assert data["root"] == "ogf"
    (entry,) = data["entries"]
    assert (entry["state"], entry["version"], len(entry["digest"])) == ("assigned", 1, 64)
    assert [event["action"] for event in entry["history"]] == ["propose", "review", "approve"]
    text = document_markdown(registry, "example")
    assert "### 2.1. Syntactic Structure" in text and "EXAMPLE-URN =" in text
    for page in (document_html(registry, "example"), page_html(registry)):
        tree = html.document_fromstring(page)
        assert tree.findtext(".//h1")
    parts = [title for title in text.splitlines() if title.startswith("#")]
    assert [n for n in "12345678" if not any(f"# {n}. " in part for part in parts)] == []
    page = document_html(registry, "example")
    for fact in (
        "At most 255 octets",
        "not assigned now",
        "INDEX: none, opaque",
        "History",
        "DOMAIN may change",
    ):
        assert fact in text and fact in page
    assert "| namespace | example | assigned | 1 |" in page_markdown(registry)
    with pytest.raises(NotFound):
        document_markdown(registry, "nowhere")
    registry.act("notice", "namespace", "evil", "<script>alert(1)</script>")
    assert "<script>" not in page_html(registry)


def test_a_pdi_in_urn_form_is_answered_by_the_book(registry: Registry) -> None:
    registry.names.add_series("db.admin.ch")
    pdi = registry.names.mint("db.admin.ch", format="siard")[0]
    name = f"urn:ogf:pdi:db.admin.ch:2011:12:13:{pdi.unique_id}.siard.1"
    assert validate(registry, name).assigned is True
    assert validate(registry, name.replace(":1.siard", ":9.siard")).assigned is False
    assert [p.code for p in validate(registry, "urn:ogf:pdi:x").problems] == ["E_URN_PDI"]
