"""Versions by date (RFC 7089), and quotations, on a running server."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from doors import serving

from muniment.names.content import keep
from muniment.repository import Session, Source, Store

BASE = "http://127.0.0.1:8180"


def add(folder: Path, name: str, data: bytes, media: str = "text/plain") -> str:
    with Store(folder) as store, Session(store) as session:
        session.add([Source("a", data, media)], contents=[name])
        session.commit()
        return session.acknowledged[0].pdi


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("memento") / "store"
    Store.create(folder, series="db.example.ch").close()
    pdis, moments = [], []
    for text in (b"first\n", b"second\n", b"third\n"):
        pdis.append(add(folder, "urn:example:a", text))
        moments.append(datetime.now(UTC))
        time.sleep(1.1)  # dates of HTTP are of seconds
    source = add(folder, "urn:example:source", b"We hold these truths to be self-evident.\n")
    quoting = add(folder, "urn:example:quoting", b"He wrote of these truths, twice.\n")
    with serving(folder) as (base, _), httpx2.Client(base_url=base) as client:
        yield {
            "client": client, "pdis": pdis, "moments": moments, "source": source,
            "quoting": quoting, "folder": folder,
        }  # fmt: skip


def path_of(pdi: str) -> str:
    return "/pdi/" + pdi.removeprefix("pdi://").replace("#", "%23")


def generic(pdi: str) -> str:
    return pdi.rsplit(".", 2)[0]


def test_a_name_without_a_version_is_a_timegate(world: dict[str, Any]) -> None:
    client = world["client"]
    for pdi, moment in zip(world["pdis"], world["moments"], strict=True):
        for name in (generic(pdi), pdi.rpartition(".")[0]):
            date = format_datetime(moment, usegmt=True)
            answer = client.get(path_of(name), headers={"Accept-Datetime": date})
            assert answer.status_code == 302
            assert answer.headers["location"] == BASE + path_of(pdi)
            assert "accept-datetime" in answer.headers["vary"].lower()
            assert 'rel="original timegate"' in answer.headers["link"]
            assert 'rel="timemap"' in answer.headers["link"]
            dates = re.findall(r'rel="([^"]* memento)"; datetime="([^"]*)"', answer.headers["link"])
            assert {"first", "last"} <= {each for said, _ in dates for each in said.split()}
    early = format_datetime(datetime(1997, 1, 1, tzinfo=UTC), usegmt=True)
    answer = client.get(path_of(generic(world["pdis"][0])), headers={"Accept-Datetime": early})
    assert answer.headers["location"] == BASE + path_of(world["pdis"][0])


def test_a_version_is_a_memento(world: dict[str, Any]) -> None:
    client = world["client"]
    answer = client.get(path_of(world["pdis"][1]))
    assert answer.text == "second\n"
    date = parsedate_to_datetime(answer.headers["memento-datetime"])
    assert world["moments"][0] - timedelta(seconds=1) <= date <= world["moments"][1]
    assert f"<{BASE}{path_of(generic(world['pdis'][1]))}>" in answer.headers["link"]
    links = {name: link["url"] for name, link in answer.links.items()}
    assert links["first prev memento"] == BASE + path_of(world["pdis"][0])
    assert links["next last memento"] == BASE + path_of(world["pdis"][2])
    with_date = client.get(path_of(world["pdis"][1]), headers={"Accept-Datetime": "nonsense"})
    assert with_date.status_code == 200  # a memento is what it is
    latest = client.get(path_of(generic(world["pdis"][1])))
    assert latest.text == "third\n"
    assert "accept-datetime" in latest.headers["vary"].lower()


def test_dates_that_are_none_are_refused(world: dict[str, Any]) -> None:
    path = path_of(generic(world["pdis"][0]))
    for text in ("nonsense", "2026-11-16", "", "Mon, 99 Nov 2026 00:00:00 GMT"):
        answer = world["client"].get(path, headers={"Accept-Datetime": text})
        assert answer.status_code == 400, text


def test_the_timemap_lists_all_versions(world: dict[str, Any]) -> None:
    client, name = world["client"], generic(world["pdis"][0])
    where = client.get(path_of(world["pdis"][0])).links["timemap"]["url"]
    answer = client.get(where.removeprefix(BASE))
    assert answer.headers["content-type"].startswith("application/link-format")
    found = re.findall(r'<([^>]*)>; rel="([^"]*)"(?:; datetime="([^"]*)")?', answer.text)
    mementos = [(url, date) for url, relation, date in found if "memento" in relation]
    assert [url for url, _ in mementos] == [BASE + path_of(pdi) for pdi in world["pdis"]]
    dates = [parsedate_to_datetime(date) for _, date in mementos]
    assert dates == sorted(dates)
    relations = {relation: url for url, relation, _ in found}
    assert relations["original timegate"] == BASE + path_of(name)
    assert relations["self"] == where
    assert {"first memento", "last memento"} <= set(relations)
    facts = client.get(where.removeprefix(BASE), headers={"Accept": "application/json"}).json()
    assert [each["pdi"] for each in facts["mementos"]] == world["pdis"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/timemap/", 400),
        ("/timemap/x", 400),
        ("/timemap/db.example.ch/2001/01/01/1", 404),
        ("/timemap/db.example.ch/2001/01/01/1.text.1", 400),
        ("/timemap/db.example.ch/2001/01/01/1.text.1%230,5", 400),
        ("/timemap/%ff", 400),
    ],
)
def test_what_has_no_versions_is_refused(world: dict[str, Any], path: str, status: int) -> None:
    assert world["client"].get(path).status_code == status


def test_withdrawn_versions_are_not_listed(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    Store.create(folder, series="db.example.ch").close()
    one, two = add(folder, "urn:x:a", b"1"), add(folder, "urn:x:a", b"2")
    with Store(folder) as store:
        store.names.withdraw(one, "a mistake", "the archive")
    with serving(folder) as (base, _):
        listed = httpx2.get(f"{base}/timemap/{generic(one).removeprefix('pdi://')}").text
    assert path_of(two) in listed
    assert path_of(one) not in listed


def test_a_quotation_is_delivered_with_the_verdict(world: dict[str, Any]) -> None:
    client = world["client"]
    for at, verdict, text in ((12, "verified", "these truths"), (13, "differs", "hese truths,")):
        name = f"{world['quoting']}@{at}={world['source']}#8,20"
        answer = client.get(path_of(name))
        assert (answer.status_code, answer.text) == (200, text)
        assert answer.headers["quotation"] == verdict
        assert answer.headers["content-location"] == name
        facts = client.get(path_of(name), headers={"Accept": "application/json"}).json()
        assert facts["verdict"] == verdict
        assert facts["expected"]["text"] == "these truths"
    unknown = "pdi://db.example.ch/2001/01/01/1.text.1"
    assert client.get(path_of(f"{unknown}@1={world['source']}#8,20")).status_code == 404
    refused = client.get(path_of(name), headers={"Accept": "image/png"})
    assert refused.status_code == 406


def test_links_lead_to_versions_that_are_there(tmp_path: Path) -> None:
    """Also where the next version has another format, and one version has two."""
    folder = tmp_path / "store"
    Store.create(folder, series="db.example.ch").close()
    one = add(folder, "urn:x:a", b"1")
    two = add(folder, "urn:x:a", b"<p>2", "text/html")
    (tmp_path / "plain.txt").write_bytes(b"2")
    with Store(folder) as store:
        digest, length, location = keep(store.names, tmp_path / "plain.txt")
        store.names.bind(f"{generic(two)}.text.2", digest, length, location)
    with serving(folder) as (base, _), httpx2.Client(base_url=base) as client:
        first, second = client.get(path_of(one)).links, client.get(path_of(two)).links
        assert first["latest-version"]["url"] == BASE + path_of(f"{generic(two)}.text.2")
        assert first["successor-version"]["url"] == first["latest-version"]["url"]
        assert second["latest-version"]["url"] == BASE + path_of(two)
        assert second["predecessor-version"]["url"] == BASE + path_of(one)
        for links in (first, second):
            for relation, link in links.items():
                if relation != "original timegate":
                    where = link["url"].removeprefix(BASE)
                    assert client.get(where).status_code == 200, relation
        for accept, last in (
            ("text/html, text/plain;q=0.5", b"<p>2"),
            ("text/*;q=0.1, text/plain", b"2"),
        ):
            both = client.get(f"/uri-res/N2Rs?{generic(two)}", headers={"Accept": accept})
            assert both.headers["content-type"].startswith("multipart/alternative")
            assert both.content.count(b"Content-Type: text/") == 2
            assert both.content.rsplit(b"\r\n--", 1)[0].endswith(b"\r\n\r\n" + last)
        only = client.get(f"/uri-res/N2Rs?{generic(two)}", headers={"Accept": "text/html"})
        assert only.content == b"<p>2"
