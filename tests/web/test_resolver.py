"""THTTP on a running server: names to addresses, documents, descriptions and other names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from doors import make_store, raw, serving
from rdflib import DC, Graph, Literal, URIRef

from muniment.repository import Session, Store
from muniment.repository.ingest import submit_file

BASE = "http://127.0.0.1:8180"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Path:
    made = tmp_path_factory.mktemp("resolver") / "store"
    make_store(made)
    with Store(made) as store, Session(store) as session:
        trees = submit_file(sample)
        session.add(
            trees.sources,
            contents=["urn:example:trees"],
            metadata=trees.metadata,
            facts=trees.facts,
        )
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[tuple[str, int]]:
    with serving(folder) as address:
        yield address


@pytest.fixture(scope="module")
def client(server: tuple[str, int]) -> Iterator[Any]:
    with httpx2.Client(base_url=server[0]) as made:
        yield made


def pdi_of(folder: Path, name: str) -> str:
    with Store(folder) as store:
        return store.find(name).pdi


def lines(answer: Any) -> list[str]:
    assert answer.headers["content-type"].startswith("text/uri-list")
    first, *rest = answer.text.rstrip("\r\n").split("\r\n")
    assert first.startswith("# ")
    return rest


@pytest.mark.parametrize("service", ["N2L", "I2L", "n2l"])
def test_a_name_to_its_address(client: Any, folder: Path, service: str) -> None:
    name = pdi_of(folder, "urn:example:5")
    for uri in (name, f"urn:{name}", "urn:example:5", "URN:example:5"):
        answer = client.get(f"/uri-res/{service}?{uri}")
        assert answer.status_code == 303
        assert client.get(answer.headers["location"].removeprefix(BASE)).content == b"object 5\n"


def test_old_clients_are_sent_with_302(server: tuple[str, int]) -> None:
    answer = raw(server[1], b"GET /uri-res/N2L?urn:example:5 HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert b" 302 " in answer.split(b"\r\n")[0]


def test_all_addresses_work(client: Any, folder: Path) -> None:
    found = lines(client.get("/uri-res/N2Ls?urn:example:5"))
    assert len(found) == 3  # the PDI, the record, the datastream
    for url in found:
        assert client.get(url.removeprefix(BASE)).status_code == 200
    page = client.get("/uri-res/N2Ls?urn:example:5", headers={"Accept": "text/html"})
    assert page.text.count("<LI><A HREF=") == 3


def test_the_resource_itself(client: Any, folder: Path) -> None:
    name = pdi_of(folder, "urn:example:5")
    assert client.get(f"/uri-res/N2R?{name}").content == b"object 5\n"
    assert client.get(f"/uri-res/N2R?{name}%230,6").content == b"object"
    assert client.get("/uri-res/I2R?urn:example:5").content == b"object 5\n"
    part = client.get(f"/uri-res/N2R?{name}", headers={"Range": "bytes=0-1"})
    assert (part.status_code, part.content) == (206, b"ob")
    assert client.get("/uri-res/N2Rs?urn:example:5").content == b"object 5\n"


def test_names_of_the_same_resource(client: Any, folder: Path) -> None:
    name = pdi_of(folder, "urn:example:5")
    found = lines(client.get(f"/uri-res/N2Ns?{name}"))
    assert {f"urn:{name}", "urn:example:5"} <= set(found)
    path = name.removeprefix("pdi://")
    assert lines(client.get(f"/uri-res/L2Ns?{BASE}/pdi/{path}")) == found
    for url in lines(client.get("/uri-res/N2Ls?urn:example:5")):
        assert lines(client.get(f"/uri-res/L2Ns?{url}"))
        assert client.get(f"/uri-res/L2C?{url}").status_code == 200
        assert lines(client.get(f"/uri-res/L2Ls?{url}"))


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph:DeprecationWarning")  # rdflib's own affair
@pytest.mark.parametrize("kind", ["application/ld+json", "text/turtle"])
def test_descriptions_for_machines(client: Any, folder: Path, kind: str) -> None:
    name = pdi_of(folder, "urn:example:5")
    answer = client.get(f"/uri-res/N2C?{name}", headers={"Accept": kind})
    graph = Graph().parse(data=answer.text, format=kind.replace("application/ld+json", "json-ld"))
    assert (URIRef(name), DC.title, Literal("<5> & more")) in graph
    both = client.get("/uri-res/N2Cs?urn:example:3", headers={"Accept": kind})
    graph = Graph().parse(data=both.text, format=kind.replace("application/ld+json", "json-ld"))
    assert len(set(graph.subjects(DC.identifier, None))) == 2


def test_descriptions_for_people(client: Any) -> None:
    erc = client.get("/uri-res/N2C?urn:example:5", headers={"Accept": "text/plain"}).text
    assert erc.startswith("erc:\nwho: ")
    assert "what: <5> & more\n" in erc
    page = client.get("/uri-res/N2C?urn:example:5", headers={"Accept": "text/html"}).text
    assert "&lt;5&gt; &amp; more" in page


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/uri-res/N2L", 400),
        ("/uri-res/N2L?", 400),
        ("/uri-res/N2L?nothing", 400),
        ("/uri-res/N2X?urn:example:5", 404),
        ("/uri-res/N2L?urn:example:unknown", 404),
        ("/uri-res/N2L?urn:example", 400),
        ("/uri-res/N2L?pdi://x", 400),
        ("/uri-res/N2R?pdi://db.example.ch/2001/01/01/1.text.1", 404),
        ("/uri-res/L2Ns?http://[", 404),
        ("/uri-res/L2Ns?http://127.0.0.1:8180/openurl?" + "&".join(["a=1"] * 99), 400),
        ("/uri-res/N2L?urn:example:%0d%0aX-Evil:1", 404),
        ("/uri-res/..%2f..%2fx?urn:example:5", 404),
    ],
)
def test_refusals(client: Any, target: str, status: int) -> None:
    answer = client.get(target)
    assert answer.status_code == status, answer.text
    assert "x-evil" not in answer.headers


def test_parts_of_a_database(client: Any, folder: Path) -> None:
    name = pdi_of(folder, "urn:example:trees")
    path = "/pdi/" + name.removeprefix("pdi://")
    row = client.get(f"{path}%23row=(s0,t0,r1)", headers={"Accept": "application/json"})
    assert row.status_code == 200, row.text
    assert row.headers["content-type"].startswith("application/json")
    assert row.headers["content-location"] == f"{name}#row=(s0,t0,r1)"
    assert client.get(f"{path}%23row=(s0,t0,r999999)").status_code == 404
    assert client.get(f"{path}%23row=(s9,t0,r1)").status_code == 404
    whole = client.get(path)
    assert whole.headers["content-type"] == "application/x-siard"
    assert whole.content[:2] == b"PK"
