"""Names that are no records, and parts by registered schemes, through the doors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from doors import serving

from muniment import transfer
from muniment.citations import cite_query
from muniment.registry import Registry
from muniment.repository import Session, Source, Store
from muniment.repository.access import set_access

VOXEL = {
    "title": "Boxes",
    "description": "A box in a three-dimensional image",
    "media_types": ["image/"],
    "positions": 'box = corner "," corner\ncorner = "(" 1*DIGIT 2("," 1*DIGIT) ")" / "(" 1*ALPHA ")"',
    "examples": {"valid": ["voxel=(0,0,0),(End)"], "invalid": ["voxel=(0,0)"]},
}
STREAMS = 12_345


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    home = tmp_path_factory.mktemp("named")
    with sqlite3.connect(home / "shop.db") as shop:
        shop.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        shop.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, "y & z")])
    transfer.archive(f"sqlite:///{home}/shop.db", home / "shop.siard")
    with Store.create(home / "store", series="db.example.ch") as store:
        with Session(store) as session:
            session.add([Source("a.png", b"no image", "image/png")], contents=["urn:example:png"])
            session.add(
                [
                    Source(f"{number}.txt", b"%d" % number, "text/plain")
                    for number in range(STREAMS)
                ],
                contents=["urn:example:many"],
            )
        registry = Registry(store.names)
        registry.propose("scheme", "voxel", "Museum", VOXEL)
        registry.decide("scheme", "voxel", "registrar", True, "")
        sql, archives = "SELECT b FROM t WHERE a > 1", {"shop": home / "shop.siard"}
        cited = cite_query(store.names, "db.example.ch", sql, archives, "me", "Large ones")
        png = store.find("urn:example:png").pdi
    with serving(home / "store") as (base, _), httpx2.Client(base_url=base, timeout=60) as client:
        yield {"client": client, "query": cited.pdi, "png": png, "folder": home / "store"}


def path_of(pdi: Any) -> str:
    return "/pdi/" + str(pdi).removeprefix("pdi://").replace("#", "%23")


def test_a_cited_query_is_its_result_in_many_formats(world: dict[str, Any]) -> None:
    client, name = world["client"], world["query"].generic
    for kind, text in (("text/csv", '"b"\n"y & z"\n'), ("application/json", '[{"b": "y & z"}]\n')):
        answer = client.get(path_of(name), headers={"Accept": kind})
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert answer.text == text
        assert answer.headers["content-location"].startswith(f"{name}.")
    recipe = client.get(path_of(name._replace(format="sql")))
    assert recipe.text.startswith("SELECT b FROM t WHERE a > 1 ORDER BY")
    archive = client.get(path_of(name._replace(format="siard")))
    assert archive.content.startswith(b"PK")


def test_people_are_led_to_the_page_of_a_query(world: dict[str, Any]) -> None:
    client, name = world["client"], world["query"].generic
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    led = client.get(path_of(name), headers={"Accept": browser})
    assert (led.status_code, led.headers["vary"]) == (303, "Accept")
    page = client.get(led.headers["location"], headers={"Accept": browser})
    assert page.status_code == 200
    assert "SELECT b FROM t WHERE a &gt; 1" in page.text
    png = client.get(path_of(world["png"].rsplit(".", 2)[0]), headers={"Accept": "text/html"})
    assert png.status_code == 406  # a document without such a page stays what it is


def test_a_cited_query_is_described_and_located(world: dict[str, Any]) -> None:
    client, name = world["client"], world["query"].generic
    for pdi in (name, world["query"]):
        facts = client.get(f"/uri-res/N2C?{pdi}", headers={"Accept": "application/ld+json"}).json()
        assert facts["dc:title"] == ["Large ones"]
        assert any("SELECT b" in each for each in facts["dc:source"])
        assert len(facts["dcterms:hasPart"]) == 4
    located = client.get("/locate", params={"id": str(name)}).json()
    formats = {each["pdi"].rsplit(".", 2)[1] for each in located["versions"]}
    assert formats == {"sql", "csv", "json", "siard"}
    assert client.get("/locate", params={"id": f"{name}9"}).status_code == 404


def test_parts_by_registered_schemes_are_names(world: dict[str, Any]) -> None:
    client, part = world["client"], f"{world['png']}#voxel=(0,0,0),(End)"
    answer = client.get(path_of(part))
    assert answer.status_code == 501, answer.text  # a name, and nothing here cuts it out
    assert client.get(path_of(f"{world['png']}#voxel=(0,0)")).status_code == 400
    escaped = part.replace("#", "%23")
    same = client.get(f"/uri-res/I=I?{escaped}%20{escaped.replace('voxel', 'VOXEL')}")
    assert same.text == "TRUE"
    names = client.get(f"/uri-res/N2Ns?{escaped}")
    assert (names.status_code, world["png"] in names.text) == (200, True)


def test_the_list_of_datastreams_is_streamed(world: dict[str, Any]) -> None:
    client = world["client"]
    service = "/openurl?url_ver=Z39.88-2004&svc_id=info:lanl-repo/svc/identifiers.list"
    with client.stream("GET", service) as answer:
        assert "content-length" not in answer.headers
        lines = answer.read().decode().split("\r\n")
    assert lines[0].startswith("# ")
    assert len(set(lines[1:-1])) == len(lines[1:-1]) == STREAMS + 1
    assert client.head(service).status_code == 200
    with Store(world["folder"]) as store:
        closed = store.find("urn:example:png")
        set_access(store.names, [closed.pdi], "closed", reason="so", by="me")
    assert client.get(service).text.count("\r\n") == STREAMS + 1
