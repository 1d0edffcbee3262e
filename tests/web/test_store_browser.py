"""The pages of a store in a real browser, served by the command that people use."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from browsing import MARKS, Visitor, faults_of
from doors import serving

from muniment import transfer
from muniment.demo import build_council
from muniment.registry import Registry
from muniment.repository import Session, Source, Store
from muniment.repository.ingest import submit_file
from muniment.repository.tokens import create_token
from muniment.repository.verify import verify

pytest.importorskip("playwright.sync_api")
pytestmark = MARKS


class Served:
    """A store that is served, and the names in it."""

    def __init__(self, folder: Path, sample: Path) -> None:
        self.folder = folder / "store"
        build_council(folder / "town.duckdb")
        town = folder / "town.siard"
        words = transfer.Description(dbname="Council and accounts")
        options = transfer.ArchiveOptions(description=words, jobs=1)
        transfer.archive(f"duckdb:///{folder}/town.duckdb", town, options=options)
        with Store.create(self.folder, series="db.ulmenhafen.de") as store:
            with Session(store) as session:
                for path in (sample, town):
                    given = submit_file(path)
                    session.add(given.sources, metadata=given.metadata, facts=given.facts)
                session.add([Source("note.txt", b"a note\n", "text/plain")],
                            metadata=[("title", "A note")])  # fmt: skip
            self.trees, self.town, self.note = (each.pdi for each in session.acknowledged)
            store.names.say(self.trees, "creator", "Parks Department", "City Archives")
            store.names.say(self.trees, "accessRights", "open", "City Archives")
            self.token = create_token(store.names, "archivist", ["describe", "staff"], "me", None)[
                1
            ]
            registry = Registry(store.names)
            registry.reserve("namespace", "trees", "City Archives", 90, "for the tree register")
            verify(store)
        self.address = ""
        self.home = "/a/" + self.trees.removeprefix("pdi://").replace("/", "-")
        self.name = "/identifiers/" + self.trees.removeprefix("pdi://")

    def pages(self) -> dict[str, str]:
        return {
            "store": "/",
            "store-search": "/search?q=register",
            "identifiers": "/identifiers",
            "identifier": self.name,
            "part": f"{self.name}?fragment=row=(s0,t4,r3)",
            "registry": "/registry",
            "entry": "/registry/namespace/trees",
            "health": "/health",
            "token": "/token",
            "database": self.home,
            "chosen": f"{self.home}/t/main/tree",
            "one-row": f"{self.home}/t/main/tree/3",
            "citation": f"{self.home}/cite/main/tree?row=3&row=4&col=planted_on",
            "describe": f"{self.home}/describe",
            "not-there": "/a/nothing",
        }


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Iterator[Served]:
    store = Served(tmp_path_factory.mktemp("served"), sample)
    with serving(store.folder) as (address, _):
        store.address = address
        for pdi in (store.trees, store.town):
            _wait(f"{address}/a/{pdi.removeprefix('pdi://').replace('/', '-')}")
        yield store


def _wait(home: str) -> None:
    """Wait until an archive has its index and its verdict, in whatever process answers."""
    good = 0
    for _ in range(600):
        with urlopen(f"{home}/progress?format=json") as answer:
            text = answer.read().decode()
        good = good + 1 if '"ready"' in text and '"done"' in text else 0
        if good == 6:
            return
        time.sleep(0.2)
    raise AssertionError(text)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_pages_of_a_store(
    browser: Any, served: Served, scheme: str
) -> None:
    visitor = Visitor(browser, served.address, color_scheme=scheme, bypass_csp=True)
    faults = []
    for name, path in served.pages().items():
        page = visitor.open(path)
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        faults += faults_of(page, scheme)
        visitor.shoot(f"{scheme}-{name}")
    visitor.context.close()
    assert faults == []


def test_a_visitor_clicks_through_the_store(browser: Any, served: Served) -> None:
    visitor = Visitor(browser, served.address, permissions=["clipboard-read", "clipboard-write"])
    page = visitor.open("/")
    assert page.locator(".cards li").count() == 2
    visitor.shoot("store")
    page.get_by_role("link", name="Tree register").click()
    assert "Valid SIARD 2.2" in page.inner_text("main")
    page.get_by_role("link", name="tree", exact=True).click()
    boxes = page.locator("input[name=row]")
    boxes.nth(1).click()
    boxes.nth(3).click(modifiers=["Shift"])
    page.get_by_label("Choose column planted_on").check()
    said = page.inner_text("[data-chosen]")
    assert said == f"{served.trees}#cell=(s0,t4,c8,r2),(c8,r4)"
    assert page.locator("td.chosen").count() == 3
    visitor.shoot("chosen")
    page.get_by_role("button", name="Cite what is ticked").click()
    assert said in page.inner_text(".name")
    visitor.shoot("citation")
    page.get_by_role("button", name="Copy the name").click()
    assert page.evaluate("navigator.clipboard.readText()") == said
    page.locator("summary").first.click()
    page.locator("[data-copy=cite1-bibtex]").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("@misc{")
    with page.expect_download() as download:
        page.get_by_role("link", name="RIS").last.click()
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("TY  - DBASE")
    page.get_by_role("link", name="Identifiers").click()
    page.locator("main a.mono").first.click()
    assert "Versions" in page.inner_text("main")
    visitor.shoot("identifier")
    page.get_by_role("link", name="Health").click()
    assert "The store is well." in page.inner_text("main")
    visitor.shoot("health")
    page.get_by_role("link", name="Registry").click()
    page.get_by_role("link", name="trees", exact=True).click()
    assert "for the tree register" in page.inner_text("main")
    visitor.shoot("registry")
    page.locator("#find").fill("accounts")
    page.locator(".find button").click()
    assert "Council and accounts" in page.inner_text("main")
    visitor.context.close()
    assert visitor.complaints == []
    assert visitor.elsewhere == []


def test_cells_are_cited_without_javascript(browser: Any, served: Served) -> None:
    visitor = Visitor(browser, served.address, java_script_enabled=False)
    page = visitor.open(f"{served.home}/t/main/tree")
    page.locator("input[name=row]").nth(4).check()
    page.locator(".choosing input[name=col]").nth(9).check()
    page.get_by_role("button", name="Cite what is ticked").click()
    assert f"{served.trees}#cell=(s0,t4,c10,r5)" in page.inner_text(".name")
    page = visitor.open(f"{served.home}/t/main/tree/5")
    page.locator("input[name=col]").first.check()
    page.get_by_role("button", name="Cite this row or the ticked cells").click()
    assert f"{served.trees}#cell=(s0,t4,c1,r5)" in page.inner_text(".name")
    visitor.context.close()


def test_rows_are_chosen_by_the_keyboard(browser: Any, served: Served) -> None:
    visitor = Visitor(browser, served.address)
    page = visitor.open(f"{served.home}/t/main/tree")
    page.locator("input[name=row]").first.focus()
    page.keyboard.press("Space")
    assert page.inner_text("[data-chosen]").endswith("#row=(s0,t4,r1)")
    page.locator(".choosing button[type=submit]").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".name")
    assert page.inner_text(".name").endswith("#row=(s0,t4,r1)")
    visitor.context.close()


def test_descriptions_are_written_in_the_browser(browser: Any, served: Served) -> None:
    visitor = Visitor(browser, served.address)
    home = "/a/" + served.town.removeprefix("pdi://").replace("/", "-")
    page = visitor.open(f"{home}/describe?in=council.member")
    page.get_by_label("council.member.party").fill("NULL: of no party")
    visitor.shoot("describe")
    page.get_by_label("Token").fill(served.token)
    page.get_by_role("button", name="Save").click()
    assert "1 descriptions are in the archive now" in page.inner_text("main")
    assert page.url.partition("/describe")[0].endswith(".siard.2")
    visitor.context.close()
    assert visitor.complaints == []


def test_a_token_opens_what_is_for_staff(browser: Any, served: Served) -> None:
    visitor = Visitor(browser, served.address)
    page = visitor.open("/token")
    page.locator("input[name=token]").fill(served.token)
    page.get_by_role("button", name="Use it").click()
    assert "archivist" in page.inner_text("main")
    page = visitor.open(f"{served.home}/describe")
    assert page.locator("input[name=token]").count() == 0
    page = visitor.open("/token")
    page.get_by_role("button", name="Forget it").click()
    assert page.locator("input[name=token]").count() == 1
    visitor.context.close()


def test_a_phone_scrolls_in_one_direction_in_the_store(browser: Any, served: Served) -> None:
    visitor = Visitor(browser, served.address, viewport={"width": 390, "height": 780})
    for name, path in served.pages().items():
        page = visitor.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        visitor.shoot(f"phone-{name}")
    visitor.context.close()


def test_paper_shows_the_content_alone(browser: Any, served: Served, tmp_path: Path) -> None:
    visitor = Visitor(browser, served.address)
    for path in (f"{served.home}/t/main/tree", served.home, served.name):
        page = visitor.open(path)
        page.emulate_media(media="print")
        for hidden in (".top", "footer", "button", ".pick", ".cite-bar"):
            assert not any(e.is_visible() for e in page.locator(hidden).all()), (path, hidden)
        page.pdf(path=str(tmp_path / "page.pdf"))
        assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    visitor.context.close()
