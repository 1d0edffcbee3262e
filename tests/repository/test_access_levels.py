"""Who may read what: the most specific decision holds, and none is lost."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.errors import NotFound, UsageError
from muniment.identifiers import Pdi
from muniment.names.assertions import covering, covering_pdi, subject_key
from muniment.repository import Store, keep_names
from muniment.repository.access import Access, access_of, set_access, subjects_of


def decide(store: Store, name: str, level: str) -> None:
    set_access(store.names, subjects_of(store, name), level, reason="because", by="me")


def level(store: Store, name: str, number: int = -1) -> str:
    return access_of(store.names).of_record(store.versions(name)[number]).level


def test_everything_is_open_unless_the_store_says_otherwise(filled: Store) -> None:
    assert access_of(filled.names).all_open
    assert level(filled, "urn:test:3") == "open"
    decide(filled, "*", "staff")
    assert level(filled, "urn:test:3") == "staff"
    decide(filled, "urn:test:4", "open")
    assert (level(filled, "urn:test:3"), level(filled, "urn:test:4")) == ("staff", "open")
    decide(filled, "*", "inherit")
    assert access_of(filled.names).all_open


def test_the_most_specific_decision_holds(filled: Store) -> None:
    first, second = filled.versions("urn:test:3")
    day = first.pdi.rpartition("/")[0]
    for subject, expected in (
        (f"pdi://{filled.settings.series}/", "staff"),
        (f"{day}/*", "closed"),
        ("urn:test:3", "staff"),
        (second.pdi, "open"),
    ):
        decide(filled, subject, expected)
        assert level(filled, "urn:test:3", 1) == expected
    assert level(filled, "urn:test:3", 0) == "staff"
    assert level(filled, "urn:test:5") == "closed"
    decide(filled, first.identifier, "closed")
    assert (level(filled, "urn:test:3", 0), level(filled, "urn:test:3", 1)) == ("closed", "open")
    decide(filled, first.identifier, "inherit")
    assert level(filled, "urn:test:3", 0) == "staff"


def test_what_is_said_of_a_document_holds_for_versions_to_come(filled: Store) -> None:
    decide(filled, "urn:test:7", "closed")
    later = filled.versions("urn:test:7")[0].pdi.removesuffix(".1") + ".2"
    assert access_of(filled.names).of_pdi(later).level == "closed"


def test_records_without_a_pdi_are_decided_by_their_package(filled: Store) -> None:
    found = filled.find("urn:test:5")._replace(pdi="", identifier="urn:uuid:x")
    bad = found._replace(pdi="not a PDI")
    set_access(filled.names, ["urn:uuid:x"], "closed", reason="r", by="me")
    access = access_of(filled.names)
    assert access.of_record(found).level == access.of_record(bad).level == "closed"


def test_a_datastream_is_as_open_as_the_most_open_of_its_records(filled: Store) -> None:
    a, b = filled.versions("urn:test:3")
    decide(filled, a.pdi, "closed")
    access = access_of(filled.names)
    assert access.of_stream([a]).level == "closed"
    assert access.of_stream([a, b]).level == "open"
    decide(filled, "*", "staff")
    assert access_of(filled.names).of_stream([]).level == "staff"


def test_decisions_come_back_from_the_tapes_and_reach_others_at_once(filled: Store) -> None:
    with Store(filled.folder) as other:
        assert level(other, "urn:test:3") == "open"
        decide(filled, "urn:test:3", "closed")
        assert level(other, "urn:test:3") == "closed"
    keep_names(filled)
    filled.close()
    shutil.rmtree(filled.folder / "names")
    with Store(filled.folder) as again:
        assert level(again, "urn:test:3") == "closed"


def test_what_cannot_be_decided_is_refused(filled: Store) -> None:
    pdi = filled.find("urn:test:3").pdi
    with pytest.raises(NotFound):
        subjects_of(filled, "urn:test:unknown")
    with pytest.raises(NotFound):
        subjects_of(filled, "pdi://archive.example.ch/2001/01/01/1.text.1")
    with pytest.raises(UsageError):
        subjects_of(filled, f"{pdi}#0,5")
    with pytest.raises(UsageError):
        set_access(filled.names, [pdi], "closed", reason=" ", by="me")
    with pytest.raises(UsageError):
        set_access(filled.names, [pdi], "secret", reason="r", by="me")


def test_readable() -> None:
    decision = Access({}).of_subject("*")
    assert decision.readable()
    assert decision.readable(staff=True)


@settings(max_examples=200)
@given(
    series=st.sampled_from(["a.ch", "b.a.ch", "c.b.a.ch"]),
    token=st.sampled_from(["text", "svg%2bxml", "image+png", None]),
    version=st.integers(1, 3) | st.none(),
    wild=st.booleans(),
)
def test_every_subject_that_covers_a_document_is_a_name_in_its_one_spelling(
    series: str, token: str | None, version: int | None, wild: bool
) -> None:
    pdi = Pdi(series, "2001", "01", "*" if wild else "02", "7", token, version if token else None)
    subjects = list(covering_pdi(pdi))
    for subject in subjects:
        assert subject_key(subject) == subject
    assert list(dict.fromkeys([*subjects, str(pdi)])) == list(dict.fromkeys(covering(str(pdi))))
