"""The pages in a real browser: clicked through, looked at, and checked with axe."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from browsing import MARKS, Visitor, faults_of, wait_until

from muniment.web.app import create_app
from muniment.web.site import OpenArchive, Site

pytest.importorskip("playwright.sync_api")
pytestmark = MARKS


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    """A server of its own for the browser."""
    archives = {name: OpenArchive(name, a.path) for name, a in site.archives.items()}
    served = Site(archives, token="a token")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(served), log_level="warning", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.05)
        for archive in archives.values():
            assert archive.wait(120)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


@pytest.fixture
def visitor(browser: Any, address: str) -> Iterator[Visitor]:
    visitor = Visitor(browser, address)
    yield visitor
    visitor.context.close()
    assert visitor.complaints == []
    assert visitor.elsewhere == []


PAGES = {
    "archive": "/a/trees",
    "schema": "/a/trees/s/main",
    "table": "/a/trees/t/main/tree?c=height_m&op=gt&v=10&desc=planted_on&facet=protected",
    "photos": "/a/trees/t/main/photo",
    "row": "/a/trees/t/main/tree/2",
    "object": "/a/trees/t/main/photo/3/image",
    "text": "/a/trees/t/main/report/1/body",
    "pdf": "/a/trees/t/main/permit/1/document",
    "diagram": "/a/trees/diagram",
    "diagram-focus": "/a/trees/diagram?focus=main.tree",
    "search": "/a/trees/search?q=Linden",
    "sql": "/a/trees/sql?sql=SELECT+kind,+count(*)+AS+n+FROM+work_order+GROUP+BY+kind+ORDER+BY+n",
    "view": "/a/trees/v/main/tree_overview",
    "people": "/a/trees/people",
    "cite": "/a/trees/cite/main/tree?row=2&row=3&col=planted_on",
    "describe": "/a/trees/describe?in=main.tree",
    "missing": "/a/trees/t/main/nothing",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(browser: Any, address: str, scheme: str) -> None:
    visitor = Visitor(browser, address, color_scheme=scheme, bypass_csp=True)
    faults = []
    for name, path in PAGES.items():
        faults += faults_of(visitor.open(path), scheme)
        if scheme == "dark":
            visitor.shoot(f"dark-{name}")
    visitor.context.close()
    assert faults == []


def test_a_visitor_clicks_through_the_archive(visitor: Visitor) -> None:
    page = visitor.open("/")
    page.wait_for_selector("h1")
    visitor.open("/a/trees")
    visitor.shoot("archive")
    page.get_by_role("link", name="tree", exact=True).click()
    assert page.inner_text("h1").endswith("tree")
    page.get_by_role("link", name="height_m").click()
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.get_by_role("link", name="protected", exact=True).first.click()
    assert page.locator(".facets li a").first.is_visible()
    page.get_by_text("Filters", exact=True).click()
    page.locator("[data-new-filter] select[name=c]").select_option("height_m")
    page.locator("select[name=op]").first.select_option("gt")
    page.locator("input[name=v]").first.fill("10")
    page.get_by_role("button", name="Apply").click()
    assert "of 590 rows" in page.inner_text(".count").replace("\u202f", "")
    visitor.shoot("table")
    address = page.url
    page.locator("tbody .rownum a").first.click()
    visitor.shoot("row")
    page.get_by_role("link", name="Prunus").or_(page.locator("#to ~ ul a")).first.click()
    assert page.locator("dl.record").is_visible()
    page.goto(address)
    assert "of 590 rows" in page.inner_text(".count").replace("\u202f", "")
    visitor.open(PAGES["photos"])
    wait_until(page, "[...document.images].slice(0, 5).every(i => i.complete && i.naturalWidth)")
    visitor.shoot("photos")
    page.locator("td.object a").nth(2).click()
    assert page.locator(".stage img").evaluate("image => image.naturalWidth") > 0
    visitor.shoot("object")
    page.get_by_role("link", name="Diagram").click()
    assert page.locator(".erd .box").count() == 14
    visitor.shoot("diagram")
    page.locator("[data-zoom]").select_option("50")
    page.get_by_role("link", name="Search", exact=True).click()
    page.locator("main input[name=q]").fill("Waldkauz")
    page.locator("main").get_by_role("button", name="Search").click()
    assert "main.tree" in page.inner_text("main")
    visitor.shoot("search")
    page.get_by_role("link", name="SQL", exact=True).click()
    page.get_by_role("link", name="Count by a column").click()
    assert page.locator("table.data tbody tr").count() > 0
    visitor.shoot("sql")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").count("\n") > 1
    page.locator("textarea").fill("SELECT * FROM read_csv('/etc/passwd')")
    page.locator("textarea").press("Control+Enter")
    page.wait_for_selector("[role=alert]")
    assert "files cannot be read here" in page.inner_text("[role=alert]")


def test_everything_works_without_javascript(browser: Any, address: str) -> None:
    visitor = Visitor(browser, address, java_script_enabled=False)
    page = visitor.open("/a/trees/t/main/street")
    page.get_by_text("Filters", exact=True).click()
    page.locator("select[name=c]").select_option("name")
    page.locator("select[name=op]").select_option("contains")
    page.locator("input[name=v]").fill("linden")
    page.get_by_role("button", name="Apply").click()
    assert "1 to 2 of 2 rows" in page.inner_text(".count")
    page.locator(".rownum a").first.click()
    assert page.locator("dl.record").is_visible()
    page.get_by_role("link", name="SQL", exact=True).click()
    page.locator("textarea").fill("SELECT 6 * 7 AS answer")
    page.get_by_role("button", name="Run").click()
    assert page.inner_text("td.number") == "42"
    visitor.context.close()


@pytest.mark.parametrize("path", [*PAGES.values(), "/a/evil/t/s/~0", "/a/evil/t/s/~2", "/a/evil"])
def test_a_phone_scrolls_in_one_direction(browser: Any, address: str, path: str) -> None:
    visitor = Visitor(browser, address, viewport={"width": 320, "height": 780})
    page = visitor.open(path)
    width = page.evaluate("document.documentElement.scrollWidth")
    name = next((name for name, other in PAGES.items() if other == path), "evil")
    visitor.shoot(f"phone-{name}")
    visitor.context.close()
    assert width <= 320


# What axe does not look at: small targets that stand alone, and headings that skip a level.
RULES = """() => {
  const faults = [];
  for (const one of document.querySelectorAll("a, button, input, select, summary, textarea")) {
    const box = (one.type === "checkbox" && one.closest("label") || one).getBoundingClientRect();
    const within = getComputedStyle(one).display === "inline"
      && one.parentElement.textContent.trim() !== one.textContent.trim();
    if (box.width && (box.width < 24 || box.height < 24) && !within && !one.closest("svg"))
      faults.push(`${box.width}x${box.height} ${one.outerHTML.slice(0, 80)}`);
  }
  let last = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    const level = Number(heading.tagName[1]);
    if (level > last + 1) faults.push(`after h${last}: ${heading.outerHTML.slice(0, 80)}`);
    last = level;
  }
  if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
  if (document.querySelector("th:not([scope])")) faults.push("th without scope");
  if (!document.documentElement.lang) faults.push("no language");
  return faults;
}"""


@pytest.mark.parametrize("path", PAGES.values())
def test_targets_are_large_enough_and_headings_in_order(
    browser: Any, address: str, path: str
) -> None:
    visitor = Visitor(browser, address)
    faults = visitor.open(path).evaluate(RULES)
    visitor.context.close()
    assert faults == []


def test_what_has_the_focus_can_be_seen(visitor: Visitor) -> None:
    page = visitor.open("/a/trees/t/main/tree")
    for _ in range(25):
        page.keyboard.press("Tab")
        style, top = page.evaluate(
            "() => { const e = document.activeElement;"
            " return [getComputedStyle(e).outlineStyle, e.getBoundingClientRect().top]; }"
        )
        assert style == "solid" and -2 < top < 850


def test_the_keyboard_reaches_the_content(visitor: Visitor) -> None:
    page = visitor.open("/a/trees/t/main/tree")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


@pytest.mark.parametrize(
    "path",
    ["/a/evil", "/a/evil/s/s", "/a/evil/t/s/~0", "/a/evil/t/s/~0/1", "/a/evil/t/s/~0/1/file",
     "/a/evil/t/s/~0/2/file", "/a/evil/t/s/~0/1/text", "/a/evil/v/s/~0", "/a/evil/r/s/~0",
     "/a/evil/people", "/a/evil/diagram", "/a/evil/search?q=script", "/a/evil/t/s/~2"],
)  # fmt: skip
def test_nothing_in_a_hostile_archive_runs(browser: Any, address: str, path: str) -> None:
    visitor = Visitor(browser, address)
    page = visitor.open(path)
    for element in page.locator("td, dd, text").all()[:12]:
        if element.is_visible():
            element.hover(timeout=2000, force=True)
    assert not visitor.is_owned()
    assert visitor.elsewhere == []
    visitor.context.close()


def test_an_svg_that_is_opened_by_itself_runs_nothing(browser: Any, address: str) -> None:
    visitor = Visitor(browser, address)
    page = visitor.open("/a/evil/t/s/~0/1/file/raw")
    assert page.evaluate("document.documentElement.nodeName") == "svg"
    assert not page.evaluate("'owned' in document.documentElement.dataset")
    visitor.context.close()


def test_the_static_site_opens_from_disk(browser: Any, sample: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "muniment", "export", str(sample), str(tmp_path / "site")]
    subprocess.run([*command, "--format", "html"], check=True, capture_output=True)
    visitor = Visitor(browser, "file://")
    page = visitor.open(f"{tmp_path}/site/index.html")
    page.get_by_role("link", name="photo", exact=True).click()
    wait_until(page, "document.images.length > 5 && document.images[0].naturalWidth")
    assert page.evaluate("getComputedStyle(document.body).margin") == "0px"
    visitor.shoot("static")
    page.goto(f"file://{tmp_path}/site/main.inspection.html")
    page.get_by_role("link", name="3", exact=True).last.click()
    assert "1001 to 1500" in page.inner_text(".count").replace("\u202f", "")
    page.locator("td.number a").first.click()
    row = page.inner_text("tr:target th")
    assert page.url.endswith(f"#row{row}") and "main.tree" in page.url
    page.get_by_role("link", name="Search all tables").click()
    page.get_by_label("Words").fill("waldkauz")
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator("#hits a").first.wait_for()
    page.locator("#hits a", has_text="main.tree,").first.click()
    assert "waldkauz" in page.inner_text("tr:target").lower()
    page.goto(f"file://{tmp_path}/site/search.html?q=nowhere+to+be+found")
    page.get_by_text("Nothing found in any table").wait_for()
    visitor.context.close()
    judge = Visitor(browser, "file://", bypass_csp=True)
    for name in ("index", "main.photo", "search"):
        assert faults_of(judge.open(f"{tmp_path}/site/{name}.html"), "light") == []
    judge.context.close()
    assert visitor.complaints == []
    assert visitor.elsewhere == []


def test_nothing_in_a_hostile_site_on_disk_runs(
    browser: Any, hostile: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "muniment", "export", str(hostile), str(tmp_path / "site")]
    subprocess.run([*command, "--format", "html"], check=True, capture_output=True)
    visitor = Visitor(browser, "file://")
    for file in sorted((tmp_path / "site").glob("*.html")):
        visitor.open(str(file).replace("%", "%25"))
        assert not visitor.is_owned()
    page = visitor.open(f"{tmp_path}/site/search.html?q=script")
    page.locator("#hits a").first.wait_for()
    assert not visitor.is_owned()
    assert visitor.complaints == []
    assert visitor.elsewhere == []
    visitor.context.close()


@pytest.mark.samples
def test_archives_of_other_makers_can_be_looked_at(browser: Any, samples: Path) -> None:
    from starlette.testclient import TestClient

    names = ("siard2sql__data_sakila", "SiardCmd__testfiles_siardarchives_sfdboe",
             "SiardCmd__testfiles_siardarchives_dvd_rental")  # fmt: skip
    found = [samples / "siard" / "main" / f"{name}.siard" for name in names]
    site = Site({f"a{n}": OpenArchive(f"a{n}", path) for n, path in enumerate(found)})
    with TestClient(create_app(site)) as client:
        for archive in site.archives.values():
            assert archive.wait(120), archive.progress
            pages = client.get(f"/a/{archive.name}?format=json").json()
            for schema in pages["schemas"]:
                for thing in (*schema["tables"], *schema["views"], *schema["routines"]):
                    answer = client.get(thing["url"])
                    assert answer.status_code == 200, thing["url"]
            for path in ("diagram", "people", "search?q=a", "sql"):
                assert client.get(f"/a/{archive.name}/{path}").status_code == 200
