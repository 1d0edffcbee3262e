"""The book of names: minting, binding, versions, resolution, assertions."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from muniment.errors import IdentifierError, NameRefused, NotFound, UsageError
from muniment.identifiers import Pdi, parse_pdi
from muniment.names import Names, NewBinding
from muniment.names import book as book_module
from muniment.names import index as index_module
from muniment.names.assertions import as_json_ld
from muniment.names.journal import JournalError
from muniment.names.records import apply

SERIES = "db.bar.admin.ch"


class Clock:
    """A clock that a test can set."""

    def __init__(self) -> None:
        self.now = datetime(2025, 11, 15, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now.astimezone(UTC)

    def set(self, text: str) -> None:
        self.now = datetime.fromisoformat(text)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def names(tmp_path: Path, clock: Clock) -> Names:
    book = Names.create(tmp_path / "names", "example", clock)
    book.add_series(SERIES, "Federal Archives")
    return book


def sha(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def bind(names: Names, pdi: Pdi | str, text: str) -> str:
    return str(names.bind(pdi, sha(text), len(text), f"objects/{text}"))


def mint(names: Names, format: str = "html") -> str:
    return str(names.mint(SERIES, format=format)[0])


def test_serials_count_from_1_each_day_at_greenwich(names: Names, clock: Clock) -> None:
    assert mint(names) == f"pdi://{SERIES}/2025/11/15/1.html.1"
    names.mint(SERIES, 40)
    clock.set("2025-11-15T23:59:59.999+00:00")
    assert mint(names).endswith("/2025/11/15/42.html.1")
    clock.set("2025-11-16T00:00:00+00:00")
    assert mint(names).endswith("/2025/11/16/1.html.1")


def test_the_day_is_that_of_greenwich_wherever_the_clock_stands(names: Names, clock: Clock) -> None:
    clock.set("2025-11-16T00:30:00+01:00")
    assert "/2025/11/15/" in mint(names)


def test_a_leap_second_belongs_to_the_old_day(names: Names, clock: Clock) -> None:
    # System clocks show 23:59:59 twice.
    for serial in ("1", "2"):
        clock.set("2016-12-31T23:59:59.5+00:00")
        assert mint(names).endswith(f"/2016/12/31/{serial}.html.1")


def test_nothing_is_minted_while_the_clock_is_behind(names: Names, clock: Clock) -> None:
    clock.set("2025-11-16T00:00:01+00:00")
    mint(names)
    clock.set("2025-11-15T23:59:00+00:00")
    with pytest.raises(NameRefused, match="caught up") as caught:
        mint(names)
    assert (caught.value.status, caught.value.retry_after) == (503, 60)
    clock.set("2025-11-16T00:00:00.5+00:00")
    assert mint(names).endswith("/2025/11/16/2.html.1")


def test_a_batch_is_one_run_of_serials(names: Names) -> None:
    mint(names)
    block = names.mint(SERIES, 10_000, "siard")
    assert len(block) == 10_000
    assert str(block[0]).endswith("/2.siard.1") and str(block[-1]).endswith("/10001.siard.1")
    assert list(block.texts()) == [str(pdi) for pdi in block]
    assert mint(names).endswith("/10002.html.1")
    assert [str(pdi) for pdi in block[1:3]] == list(block.texts())[1:3]


def test_serials_step_over_mnemonic_ids(names: Names) -> None:
    names.mint(SERIES, 3)
    names.mint_name(SERIES, "7", "text")
    assert [mint(names).split("/")[-1].split(".")[0] for _ in range(5)] == ["4", "5", "6", "8", "9"]
    with pytest.raises(NameRefused, match="serial"):
        names.mint_name(SERIES, "2", "text")
    names.mint_name(SERIES, "12", "text")
    assert names.mint(SERIES, 4).first == 13


def test_mnemonic_ids_that_look_alike_are_refused(names: Names) -> None:
    assert str(names.mint_name(SERIES, "report", "text")).endswith("/report.text.1")
    with pytest.raises(NameRefused, match="too much like"):
        names.mint_name(SERIES, "Report", "text")
    with pytest.raises(NameRefused, match="exists already"):
        names.mint_name(SERIES, "report", "text")
    with pytest.raises(IdentifierError, match="E_UNIQUE_ID"):
        names.mint_name(SERIES, "a+b", "text")


def test_a_foreign_identifier_is_found_again(names: Names) -> None:
    pdi = names.mint_name(SERIES, "", "html", ("url", "HTTP://www.Whitehouse.gov"))
    assert pdi.unique_id == "http:%2f%2fwww%2ewhitehouse%2egov%2f"
    assert names.find_foreign("url", "http://www.whitehouse.gov:80/") == [pdi]
    assert names.find_foreign("url", "http://example.org/") == []


def test_only_open_series_of_the_book_give_names(names: Names) -> None:
    with pytest.raises(NotFound):
        names.mint("other.admin.ch")
    names.change_series(SERIES, "closed", "reorganised", "Federal Archives")
    with pytest.raises(NameRefused, match="closed") as caught:
        mint(names)
    assert caught.value.status == 405
    with pytest.raises(NameRefused, match="in the book already"):
        names.add_series(SERIES)
    with pytest.raises(NameRefused, match="ISO 3166"):
        names.add_series("a.qq")


def test_others_mint_only_with_a_mandate(names: Names) -> None:
    names.add_series(f"north.{SERIES}")
    assert names.series(f"north.{SERIES}").steward == "Federal Archives"
    names.add_series(f"south.{SERIES}", "Archives of the South")
    with pytest.raises(NameRefused, match="no mandate") as caught:
        names.mint(f"south.{SERIES}", by="Federal Archives")
    assert caught.value.status == 403
    names.give_mandate(f"south.{SERIES}", "Federal Archives", "contract 7", "Archives of the South")
    assert names.mint(f"south.{SERIES}", by="Federal Archives").first == 1


def test_a_media_type_becomes_a_token_for_ever(names: Names) -> None:
    assert mint(names, "image/png").endswith(".png.1")
    assert mint(names, "application/x-new-thing").endswith(".x-new-thing.1")
    assert mint(names, "x-new-thing").endswith(".x-new-thing.1")
    assert mint(names, "audio/x-new-thing").endswith(".audio+x-new-thing.1")
    for bad in ("unheard-of", "no type/x", "a/b/c"):
        with pytest.raises(IdentifierError, match="E_FORMAT"):
            mint(names, bad)


def test_octets_never_change(names: Names) -> None:
    pdi = mint(names)
    assert bind(names, pdi, "one") == pdi
    assert bind(names, pdi, "one") == pdi  # again is no change
    with pytest.raises(NameRefused, match="never"):
        bind(names, pdi, "eno")


def test_a_change_is_a_new_version_and_a_rendition_is_not(names: Names) -> None:
    generic = parse_pdi(mint(names)).generic
    html, text = generic._replace(format="html"), generic._replace(format="text")
    assert bind(names, html, "page").endswith(".html.1")
    assert bind(names, text, "words").endswith(".text.1")  # MS11
    assert bind(names, text, "Words").endswith(".text.2")  # MS12
    found = names.resolve(html)
    assert str(found.pdi).endswith(".html.1") and found.latest == 2
    assert str(names.resolve(generic).pdi).endswith(".text.2")
    assert bind(names, html, "Page").endswith(".html.3")  # it was changed, not added
    same = names.bind(html, sha("Page"), 4, "x", new_version=True)
    assert str(same).endswith(".html.4")
    with pytest.raises(NameRefused, match="gap"):
        bind(names, html._replace(version=9), "x")


def test_only_minted_whole_documents_are_bound(names: Names) -> None:
    pdi = parse_pdi(mint(names))
    for bad, match in [
        (f"pdi://{SERIES}/2025/11/15/99.html.1", "never minted"),
        (f"pdi://{SERIES}/2025/11/14/1.html.1", "never minted"),
        (f"{pdi}#char=0,1", "part"),
        (str(pdi.generic), "no format"),
    ]:
        with pytest.raises(NameRefused, match=match):
            bind(names, bad, "x")


def test_many_are_bound_or_none(names: Names) -> None:
    block = names.mint(SERIES, 100, "siard")
    new = [NewBinding(pdi, sha(str(pdi)), 1, f"o/{n}") for n, pdi in enumerate(block)]
    wrong = NewBinding(parse_pdi(f"pdi://{SERIES}/2025/11/15/101.siard.1"), sha("x"), 1, "x")
    with pytest.raises(NameRefused):
        names.bind_many([*new, wrong])
    assert names.resolve(block[0]).status == "minted"
    assert names.bind_many(new) == list(block)
    found = list(names.look_up([*block, wrong.pdi]))
    assert [each and each.location for each in found] == [*(f"o/{n}" for n in range(100)), None]


def test_resolution_tells_what_is_known(names: Names) -> None:
    pdi = parse_pdi(mint(names, "text"))
    assert names.resolve(pdi).status == "minted"
    assert names.resolve(pdi._replace(unique_id="77")).status == "unknown"
    for text in ("one", "two"):
        bind(names, pdi._replace(version=None), text)
    assert str(names.resolve(pdi._replace(version=None)).pdi).endswith(".text.2")
    part = names.resolve(f"{pdi.generic}.text#0,1")
    assert str(part.pdi).endswith(".text.1#0,1") and part.remarks
    assert names.resolve(pdi._replace(version=3)).status == "unknown"
    assert names.resolve(f"pdi://{SERIES}/2025/*/*/*").status == "pattern"


def test_nothing_is_deleted_but_a_tombstone_says_why_it_is_not_shown(names: Names) -> None:
    pdi = parse_pdi(mint(names))
    bind(names, pdi, "one")
    bind(names, pdi._replace(version=2), "two")
    names.withdraw(pdi, "holds personal data", "archivist", "Act 12")
    assert names.resolve(pdi).status == "withdrawn"
    assert (names.resolve(pdi).reason or {})["law"] == "Act 12"
    assert names.resolve(pdi._replace(version=2)).status == "bound"
    names.withdraw(pdi.generic, "all of it", "archivist")
    assert names.resolve(pdi._replace(version=2)).status == "withdrawn"
    with pytest.raises(UsageError):
        names.withdraw(pdi, " ", "archivist")


def test_an_indirect_binding_ends_when_its_source_changes(names: Names) -> None:
    pdi = mint(names)
    source = "https://example.org/report"
    names.bind(pdi, sha("one"), 3, "objects/one", source=source)
    sql = "SELECT location, source, ended IS NOT NULL FROM location"
    assert names.current().db.execute(sql).fetchall() == [(source, source, 0)]
    with pytest.raises(NameRefused, match="copy"):
        names.bind(mint(names), sha("two"), 3, source, source=source)
    names.end_source(pdi, source, "another digest")
    assert names.current().db.execute(sql).fetchall() == [(source, source, 1)]
    found = names.resolve(pdi).binding
    assert found is not None and found.location == "objects/one"


def test_intervals_are_resolved_by_others(names: Names) -> None:
    pdi = mint(names)
    bind(names, pdi, "one")
    names.delegate_interval(SERIES, 20250101, 20251231, "https://old.example.ch/", "archivist")
    found = names.resolve(pdi)
    assert (found.status, found.resolver) == ("elsewhere", "https://old.example.ch/")
    names.delegate_interval(SERIES, 20251101, 20251231, "", "archivist")
    assert names.resolve(pdi).status == "bound"


def test_patterns_list_names_in_the_order_of_days_and_numbers(names: Names, clock: Clock) -> None:
    block = names.mint(SERIES, 11)
    named = names.mint_name(SERIES, "annex", "text")
    clock.now += timedelta(days=20)
    later = names.mint(SERIES, 2)
    bind(names, block[0], "one")
    bind(names, block[0]._replace(version=2), "two")
    year = list(names.listing(f"pdi://{SERIES}/2025/*/*/*"))
    assert year == [*(pdi.generic for pdi in block), named.generic, *(p.generic for p in later)]
    assert list(names.listing(f"pdi://{SERIES}/2025/12/*/*")) == [p.generic for p in later]
    assert list(names.listing(f"pdi://{SERIES}/*/*/05/2")) == [later[1].generic]
    versions = [str(pdi) for pdi in names.listing(f"pdi://{SERIES}/2025/11/15/*.*.*")]
    assert versions == [str(block[0]), str(block[0]._replace(version=2))]
    page = list(names.listing(f"pdi://{SERIES}/2025/*/*/*", after=year[4]))
    assert page == year[5:]


def test_assertions_hold_for_everything_below_their_subject(names: Names) -> None:
    pdi = mint(names, "text")
    for subject, value in [
        (f"{pdi}#0,5", "fragment"), ("pdi://admin.ch/", "above"), (f"pdi://{SERIES}/", "series"),
        (f"pdi://{SERIES}/2025/*/*/*", "year"), (pdi.removesuffix(".text.1"), "generic"), (pdi, "version"),
    ]:  # fmt: skip
        names.say(subject, "policy", value, "archivist")
    names.say(pdi, "title", "A report", "clerk")
    found = names.assertions(f"{pdi}#char=0,5", "policy", inherited=True)
    assert [each.value for each in found] == [
        "above", "series", "year", "generic", "version", "fragment",
    ]  # fmt: skip
    assert [each.value for each in names.assertions(pdi)] == ["version", "A report"]
    assert len(names.assertions(predicate="policy")) == 6
    statement = as_json_ld(names.assertions(pdi, "title"))["@graph"][0]
    assert (statement["subject"], statement["object"], statement["by"]) == (
        pdi,
        "A report",
        "clerk",
    )
    with pytest.raises(UsageError):
        names.say(pdi, "two words", 1, "clerk")


def test_everything_but_the_journal_can_be_deleted(names: Names, clock: Clock) -> None:
    block = names.mint(SERIES, 5, "text")
    names.mint_name(SERIES, "6", "text")
    bind(names, block[2], "one")
    names.say(str(block[2]), "title", "T", "clerk")
    folder = names.folder
    names.close()
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.name != "names.jsonl":
            path.rmdir() if path.is_dir() else path.unlink()
    with Names.open(folder, clock) as again:
        assert again.root == "example"
        assert again.resolve(block[2]).status == "bound"
        assert again.assertions(str(block[2]))[0].value == "T"
        assert again.mint(SERIES).first == 7
        assert again.check() == len((folder / "names.jsonl").read_bytes().splitlines())


def test_a_torn_last_line_is_removed_and_a_changed_one_is_not_accepted(names: Names) -> None:
    names.mint(SERIES)
    folder, path = names.folder, names.folder / "names.jsonl"
    whole = path.read_bytes()
    names.close()
    path.write_bytes(whole + b'{"n":4,"kind":"mi')
    with Names.open(folder) as again:
        assert again.check() == 3
    assert path.read_bytes() == whole
    for name in ("names.state", "names.index"):
        (folder / name).unlink()
    path.write_bytes(whole.replace(b'"count":1', b'"count":9'))
    with (
        pytest.raises(JournalError, match="line 3 is not what was written"),
        Names.open(folder) as bad,
    ):
        bad.mint(SERIES)


def test_a_journal_that_lost_its_end_is_refused(names: Names) -> None:
    names.mint(SERIES)
    folder, path = names.folder, names.folder / "names.jsonl"
    names.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(JournalError, match="given twice"):
        Names.open(folder)


def test_an_index_that_is_damaged_or_ahead_is_made_again(names: Names) -> None:
    pdi = mint(names)
    bind(names, pdi, "one")
    folder = names.folder
    names.resolve(pdi)
    names.close()
    (folder / "names.index").write_bytes(b"no database at all" * 100)
    with Names.open(folder) as again:
        assert again.resolve(pdi).status == "bound"


def _secondary(names: Names) -> set[str]:
    rows = names.current().db.execute(
        "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE INDEX%'"
    )
    return {name for (name,) in rows}


def test_an_index_that_is_far_behind_is_sorted_at_the_end(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Much is read in stretches without secondary indexes; broken off, it goes on from there."""
    pdis = names.mint(SERIES, 40, "siard")
    for number, pdi in enumerate(pdis):
        names.bind(pdi, sha(str(number)), 1, "here")
    wanted = _secondary(names)
    assert "binding_archive" in wanted
    names.close()
    (names.folder / "names.index").unlink()
    monkeypatch.setattr(index_module, "_MUCH", 1000)
    monkeypatch.setattr(index_module, "_AT_ONCE", 2000)
    applied = 0

    def break_off(*arguments: Any) -> None:
        nonlocal applied
        applied += 1
        if applied == 30:
            raise KeyboardInterrupt
        apply(*arguments)

    monkeypatch.setattr(book_module, "apply", break_off)
    with Names.open(names.folder) as again, pytest.raises(KeyboardInterrupt):
        again.current()
    monkeypatch.setattr(book_module, "apply", apply)
    with Names.open(names.folder) as again:
        assert 0 < again.index.mark().lines < 30
        monkeypatch.setattr(index_module, "_MUCH", 1 << 20)  # what is left is not much
        assert _secondary(again) == wanted
        assert all(binding is not None for binding in again.look_up(pdis))
        assert again.find_archive(sha("7")) == pdis[7]


def test_a_folder_without_names_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="registry init"):
        Names.open(tmp_path)


def test_the_journal_is_json_line_by_line(names: Names) -> None:
    names.mint(SERIES, 3)
    lines = (names.folder / "names.jsonl").read_text(encoding="ascii").splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["n"] for record in records] == [1, 2, 3]
    assert [record["kind"] for record in records] == ["book", "series", "mint"]
    assert all(len(record["hash"]) == 64 for record in records)
