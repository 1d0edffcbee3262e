"""Decisions who may read what are news to harvesters: the dates of records follow them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.repository import Session, Source, Store, harvest
from muniment.repository.access import access_of, set_access
from muniment.repository.harvest import Wanted
from muniment.repository.reindex import reindex
from muniment.repository.stamps import follow, stamp_of

ALL = 1 << 62
LATER = datetime(2037, 1, 1, tzinfo=UTC)


def fill(folder: Path) -> Store:
    store = Store.create(folder, series="db.example.ch")
    store.names.add_series("plans.db.example.ch")
    for series in ("db.example.ch", "plans.db.example.ch"):
        with Session(store, series=series) as session:
            for number in range(3):
                name = f"urn:example:{series}:{number}"
                session.add([Source("a.txt", name.encode(), "text/plain")], contents=[name])
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with fill(tmp_path / "store") as made:
        yield made


def listed(store: Store, since: str = "") -> dict[str, str]:
    follow(store)
    rows = list(harvest.select(store.catalogue, Wanted(since=since), ALL, None, -1))
    assert [(stamp, *found[:2]) for stamp, found in rows] == sorted(
        (stamp, *found[:2]) for stamp, found in rows
    )
    assert harvest.count(store.catalogue, Wanted(since=since), ALL) == len(rows)
    return {found.identifier: stamp for stamp, found in rows}


def decide(store: Store, subject: str, level: str, at: datetime) -> None:
    store.names.clock = lambda: at
    set_access(store.names, [subject], level, reason="so it is", by="me")


def test_what_is_closed_and_opened_again_comes_twice(store: Store) -> None:
    chosen, other = list(store.catalogue.records(kind="object"))[:2]
    decide(store, chosen.pdi, "closed", LATER)
    assert listed(store, "2037") == {chosen.identifier: "2037-01-01T00:00:00Z"}
    decide(store, chosen.pdi, "inherit", LATER + timedelta(hours=1))
    assert listed(store, "2037") == {chosen.identifier: "2037-01-01T01:00:00Z"}
    decide(store, other.pdi, "open", LATER + timedelta(hours=2))  # which it was
    assert listed(store, "2037") == {chosen.identifier: "2037-01-01T01:00:00Z"}
    assert len(listed(store)) == 6


def test_pages_hold_every_record_once(store: Store) -> None:
    for number, found in enumerate(list(store.catalogue.records(kind="object"))[::2]):
        decide(store, found.identifier, "staff", LATER + timedelta(seconds=number))
    follow(store)
    met, after = [], None
    while rows := list(harvest.select(store.catalogue, Wanted(), ALL, after, 2)):
        met += [found.identifier for _, found in rows]
        after = rows[-1][0], harvest.number_of(rows[-1][1])
    assert len(met) == len(set(met)) == 6
    assert met == list(listed(store))


@pytest.mark.parametrize("decided", [False, True])
def test_the_index_leads_to_each_page(
    store: Store, decided: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if decided:
        decide(store, "*", "staff", LATER)
    follow(store)
    answer, plans = store.catalogue.answer, []

    def explained(question: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        plans.extend(row[3] for row in answer(f"EXPLAIN QUERY PLAN {question}", values))
        return answer(question, values)

    monkeypatch.setattr(store.catalogue, "answer", explained)
    list(harvest.select(store.catalogue, Wanted(), ALL, ("2026-11-16T08:00:00Z", 7), 500))
    searched = [plan for plan in plans if plan.endswith("<?)") and ")>(?,?,?)" in plan]
    assert len(searched) == 1 + decided, plans
    assert not any("TEMP B-TREE" in plan for plan in plans)


def test_a_new_catalogue_knows_the_dates_again(store: Store) -> None:
    decide(store, "pdi://plans.db.example.ch/", "closed", LATER)
    before = listed(store)
    assert sum(stamp >= "2037" for stamp in before.values()) == 3
    reindex(store)
    assert listed(store) == before


_SUBJECTS = st.one_of(
    st.sampled_from(
        ["*", "pdi://db.example.ch/", "pdi://plans.db.example.ch/", "pdi://example.ch/"]
    ),
    st.tuples(st.integers(0, 5), st.sampled_from(["pdi", "generic", "package", "year"])),
)
_LEVELS = st.sampled_from(["open", "staff", "closed", "inherit"])
_numbers = itertools.count()


@settings(max_examples=25)
@given(decisions=st.lists(st.tuples(_SUBJECTS, _LEVELS, st.booleans()), max_size=8))
def test_the_catalogue_says_what_the_decisions_say(
    decisions: list[tuple[str | tuple[int, str], str, bool]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with fill(tmp_path_factory.mktemp("stamps") / str(next(_numbers))) as store:
        records = list(store.catalogue.records(kind="object"))
        levels = {each.identifier: "open" for each in records}
        expected = {each.identifier: each.date for each in records}
        for hour, (subject, level, looked) in enumerate(decisions):
            if not isinstance(subject, str):
                found = records[subject[0]]
                pdi = store.names.read(found.pdi)
                subject = {
                    "pdi": found.pdi, "generic": str(pdi.generic), "package": found.identifier,
                    "year": f"pdi://{pdi.series}/{pdi.year}/*/*/*",
                }[subject[1]]  # fmt: skip
            moment = LATER + timedelta(hours=hour)
            decide(store, subject, level, moment)
            for each in records:
                new = access_of(store.names).of_record(each).level
                if new != levels[each.identifier]:
                    levels[each.identifier] = new
                    expected[each.identifier] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
            if looked:
                assert listed(store) == expected
        assert listed(store) == expected
        assert {each.identifier: stamp_of(store, each) for each in records} == expected
