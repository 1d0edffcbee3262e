"""THTTP for registered URNs, two URIs compared, and many at once, on a running server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import httpx2
import pytest
import yaml
from doors import make_store, serving
from rdflib import DC, Graph, Literal, URIRef

from muniment.registry import Registry
from muniment.registry.validation import assign
from muniment.repository import Store

BASE = "http://127.0.0.1:8180"
STEM = f"urn:example:example:cluster:{datetime.now(UTC).year}:example.net"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A store whose book has a registered namespace, with names for things here and elsewhere."""
    folder = tmp_path_factory.mktemp("thttp") / "store"
    make_store(folder)
    text = files("muniment.registry").joinpath("example.yaml").read_text(encoding="utf-8")
    body = yaml.safe_load(re.sub("(?i)urn:ogf:", "urn:example:", text))
    with Store(folder) as store:
        registry = Registry(store.names)
        registry.propose("namespace", "example", "applicant", body)
        registry.decide("namespace", "example", "editor", True, "for the test")
        pdi = store.find("urn:example:5").pdi
        assign(registry, f"{STEM}:1", [pdi], "the editor")
        assign(registry, f"{STEM}:2", ["https://elsewhere.example/two"], "the editor")
        assign(
            registry, f"{STEM}:3", ["urn:example:7", "https://elsewhere.example/3"], "the editor"
        )
        assign(registry, f"{STEM}:4", ["info:x/4"], "the editor")
    with serving(folder) as (base, _), httpx2.Client(base_url=base) as client:
        yield {"client": client, "pdi": pdi}


def lines(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/uri-list")
    return [line for line in answer.text.split("\r\n") if line and not line.startswith("#")]


def test_a_registered_urn_for_a_document_here(world: dict[str, Any]) -> None:
    client = world["client"]
    for name in (f"{STEM}:1", f"{STEM}:1".upper().replace("URN:", "urn:")):
        answer = client.get(f"/uri-res/N2L?{name}")
        assert answer.status_code == 303
        assert answer.headers["location"] == f"{BASE}/pdi/{world['pdi'].removeprefix('pdi://')}"
        assert client.get(f"/uri-res/N2R?{name}").text == "object 5\n"
        assert "<5>" in client.get(f"/uri-res/N2C?{name}").json()["dc:title"][0]
    names = lines(client.get(f"/uri-res/N2Ns?{STEM}:1"))
    assert {f"{STEM}:1", "urn:example:5", f"urn:{world['pdi']}"} <= set(names)
    assert f"{STEM}:1" in lines(client.get(f"/uri-res/N2Ns?{world['pdi']}"))
    url = client.get(f"/uri-res/N2L?{STEM}:1").headers["location"]
    assert f"{STEM}:1" in lines(client.get(f"/uri-res/L2Ns?{url}"))
    assert client.get(f"/uri-res/N2R?{STEM}:3").text == "object 7\n"


def test_a_registered_urn_for_something_elsewhere(world: dict[str, Any]) -> None:
    client = world["client"]
    for service in ("N2L", "N2R", "I2L", "n2rs"):
        answer = client.get(f"/uri-res/{service}?{STEM}:2")
        assert answer.status_code == 303
        assert answer.headers["location"] == "https://elsewhere.example/two"
    assert lines(client.get(f"/uri-res/N2Ls?{STEM}:2")) == ["https://elsewhere.example/two"]
    found = lines(client.get(f"/uri-res/N2Ls?{STEM}:3"))
    assert found[-1] == "https://elsewhere.example/3"
    assert len(found) == 4
    said = client.get(f"/uri-res/N2C?{STEM}:2").json()
    assert said["@id"] == f"{STEM}:2"
    assert said["dc:source"] == ["https://elsewhere.example/two"]
    assert client.get(f"/uri-res/N2L?{STEM}:4").status_code == 404
    assert lines(client.get(f"/uri-res/N2Ls?{STEM}:4")) == []


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (f"{STEM}:99", 404),  # valid, never assigned
        ("urn:example:example:nonsense", 400),
        ("urn:example:unheard:of", 404),
        ("urn:example:pdi:db.example.ch:2001:01:01:1.text.1", 404),
        ("urn:example:pdi:db.example.ch", 400),
    ],
)
def test_registered_names_that_lead_nowhere(world: dict[str, Any], name: str, status: int) -> None:
    assert world["client"].get(f"/uri-res/N2L?{name}").status_code == status


def test_the_published_form_of_a_pdi(world: dict[str, Any]) -> None:
    series, year, month, day, specifier = world["pdi"].removeprefix("pdi://").split("/")
    name = f"urn:example:pdi:{series}:{year}:{month}:{day}:{specifier}"
    assert world["client"].get(f"/uri-res/N2R?{name}").text == "object 5\n"
    assert world["client"].get(f"/uri-res/N2R?{name}%230,6").text == "object"
    assert name in lines(world["client"].get("/uri-res/N2Ns?urn:example:5"))


def test_rdf_xml(world: dict[str, Any]) -> None:
    answer = world["client"].get(
        "/uri-res/N2Cs?urn:example:3", headers={"Accept": "application/rdf+xml"}
    )
    assert answer.headers["content-type"].startswith("application/rdf+xml")
    graph = Graph().parse(data=answer.text, format="xml")
    assert len(set(graph.subjects(DC.identifier, None))) == 2
    one = world["client"].get(
        f"/uri-res/N2C?{world['pdi']}", headers={"Accept": "application/rdf+xml"}
    )
    graph = Graph().parse(data=one.text, format="xml")
    assert (URIRef(world["pdi"]), DC.title, Literal("<5> & more")) in graph


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        ("urn:x-a:1", "urn:x-a:1", "identical"),
        ("URN:Foo:a%2c1", "urn:foo:a%2C1", "RFC 8141"),
        ("urn:foo:a123", "urn:foo:A123", None),
        ("PDI://A.us/2001/01/01/1.HTML.1", "pdi://a.us/2001/01/01/1.html.1", "lexical"),
        ("pdi://a.us/2001/01/01/1.text.1%230,5", "pdi://a.us/2001/01/01/1.text.1%23char=0,5", "functional"),
        (f"{STEM}:17", f"{STEM}:17".upper(), "registered"),
        (f"{STEM}:1", "urn:example:5", "same resource"),
        ("urn:example:5", "urn:example:7", None),
        ("urn:x-y:nobody", "http://nobody.example/", None),
    ],
)  # fmt: skip
def test_are_two_uris_the_same(
    world: dict[str, Any], one: str, other: str, rule: str | None
) -> None:
    question = f"/uri-res/I=I?{one.replace('%2', '%252')}%20{other.replace('%2', '%252')}"
    question = question.replace("%25230", "%230").replace("%2523char", "%23char")
    answer = world["client"].get(question)
    assert answer.text == ("TRUE" if rule else "FALSE")
    said = world["client"].get(question, headers={"Accept": "application/json"}).json()
    assert said["same"] is bool(rule)
    assert (rule or "") in (said["rule"] or "")


def test_comparing_takes_two(world: dict[str, Any]) -> None:
    for query in ("", "urn:a:b", "urn:a:b%20urn:a:c%20urn:a:d", "a%20b", "%ff%20urn:a:b"):
        assert world["client"].get(f"/uri-res/I=I?{query}").status_code == 400


def test_many_at_once(world: dict[str, Any]) -> None:
    client, kind = world["client"], {"Content-Type": "text/uri-list"}
    asked = [f"urn:example:{n}" for n in range(500)] + ["urn:example:nothing", "nonsense"]
    body = "# a comment\r\n" + "".join(f"{uri}\r\n" for uri in asked)
    answer = client.post("/uri-res/N2L", content=body, headers=kind)
    assert answer.headers["content-type"] == "application/jsonl"
    found = [json.loads(line) for line in answer.text.splitlines()]
    assert [each["uri"] for each in found] == asked
    assert [each["status"] for each in found] == [200] * 500 + [404, 400]
    assert found[5]["uris"] == [f"{BASE}/pdi/{world['pdi'].removeprefix('pdi://')}"]
    said = client.post("/uri-res/I2C", content=f"{world['pdi']}\r\n", headers=kind)
    assert json.loads(said.text)["description"]["dc:title"] == ["<5> & more"]
    for service in ("N2Ls", "N2Ns", "N2Cs"):
        assert client.post(f"/uri-res/{service}", content=body, headers=kind).status_code == 200


@pytest.mark.parametrize(
    ("service", "body", "kind", "status"),
    [
        ("N2R", b"urn:example:5\r\n", "text/uri-list", 405),
        ("N2L", b"urn:example:5\r\n", "text/plain", 415),
        ("N2L", "urn:é\r\n".encode(), "text/uri-list", 400),
        ("N2L", b"urn:a:b\r\n" * 10_001, "text/uri-list", 413),
        ("N2X", b"", "text/uri-list", 404),
        ("N2L", b"", "text/uri-list", 200),
    ],
)
def test_many_that_are_refused(
    world: dict[str, Any], service: str, body: bytes, kind: str, status: int
) -> None:
    answer = world["client"].post(
        f"/uri-res/{service}", content=body, headers={"Content-Type": kind}
    )
    assert answer.status_code == status


def test_descriptions_for_bibliographies(world: dict[str, Any]) -> None:
    client, question = world["client"], f"/uri-res/N2C?{world['pdi']}"
    kind = "application/vnd.citationstyles.csl+json"
    [entry] = client.get(question, headers={"Accept": kind}).json()
    assert "<5>" in entry["title"]
    text = client.get(question, headers={"Accept": "application/x-bibtex"}).text
    assert text.startswith("@")
    assert world["pdi"] in text


def test_i2n_is_one_name_and_i2ns_are_all(world: dict[str, Any]) -> None:
    every = lines(world["client"].get(f"/uri-res/I2Ns?{STEM}:1"))
    assert lines(world["client"].get(f"/uri-res/I2N?{STEM}:1")) == every[:1]
    assert len(every) > 1
