"""What is not for everybody stays behind every door."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from doors import serving
from sickle import Sickle
from sickle.iterator import OAIItemIterator

from muniment.repository import Session, Source, Store
from muniment.repository.access import set_access, subjects_of
from muniment.repository.ingest import submit_file
from muniment.repository.tokens import create_token
from muniment.siard import SiardSource
from muniment.web.app import FILES, PAGES
from muniment.web.store_site import page_name

LEVELS = ("open", "staff", "closed")


def secret(level: str) -> str:
    return f"SECRET-{level}"


def decide(store: Store, name: str, level: str, **more: str) -> None:
    set_access(
        store.names, subjects_of(store, name), level, reason="it is so", by="the archivist", **more
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("access") / "store"
    with Store.create(made, series="db.example.ch") as store:
        with Session(store) as session:
            for level in LEVELS:
                session.add(
                    [Source(f"{secret(level)}.txt", secret(level).encode(), "text/plain")],
                    contents=[f"urn:example:{level}"],
                    metadata=[("title", f"title {secret(level)}")],
                )
        for level in LEVELS:
            decide(store, f"urn:example:{level}", level)
    return made


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    with Store(folder) as store:
        return {
            scope: create_token(store.names, scope, [scope], "me", 1)[1]
            for scope in ("staff", "store", "describe")
        }


@pytest.fixture(scope="module")
def base(folder: Path) -> Iterator[str]:
    with serving(folder) as (address, _):
        yield address


def addresses(folder: Path, level: str) -> list[str]:
    """Every address that leads to an object, its content or its description."""
    with Store(folder) as store:
        found = store.find(f"urn:example:{level}")
        stream = store.object(found).streams[0].identifier
        tape = store.catalogue.file(found.file).uri.removeprefix("urn:uuid:")
        place = store.catalogue.stream(stream)
        assert place is not None
        arc = store.catalogue.file(place.file).uri.removeprefix("urn:uuid:")
    path = "/pdi/" + found.pdi.removeprefix("pdi://")
    openurl = "url_ver=Z39.88-2004&rft_id"
    names = (f"urn:example:{level}", found.pdi, f"urn:{found.pdi}", found.identifier, stream)
    services = ("N2L", "N2Ls", "N2R", "N2Rs", "N2C", "N2Cs", "N2Ns", "I2R", "I2C", "L2Ns")
    return [
        path,
        path.rsplit(".", 1)[0],
        path.rsplit(".", 2)[0],
        f"{path}%230,6",
        f"{path}%23byte=0,6",
        *(f"/openurl?{openurl}={name}" for name in names),
        f"/openurl/{arc}?{openurl}={stream}",
        f"/openurl?{openurl}={stream}&svc_id=info:lanl-repo/svc/identifiers.list",
        f"/{arc}/openurl-aDORe4?{openurl}={stream}",
        *(f"/locate?id={name}" for name in names),
        *(f"/uri-res/{service}?{name}" for service in services for name in names),
        *(
            f"{door}?verb=GetRecord&metadataPrefix={prefix}&identifier={found.identifier}"
            for door in ("/oai", f"/oai/{tape}")
            for prefix in ("didl", "oai_dc", "mets")
        ),
        *(f"/oai?verb=ListRecords&metadataPrefix={prefix}" for prefix in ("didl", "oai_dc")),
        f"/oai/{tape}?verb=ListRecords&metadataPrefix=mets",
        "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc",
        *(f"/api/objects/{quote(name, safe='')}" for name in names),
        *(f"/api/names?id={name}" for name in names[1:3]),
        *(f"/api/access?id={name}" for name in names),
        f"/api/citations?id={found.pdi}",
        f"/api/citations?id={found.pdi}%230,6",
        f"/api/quotations?id={found.pdi}@0={found.pdi}%230,6",
        f"{path}@0={found.pdi}%230,6",
        f"/api/assertions?subject={found.pdi}",
        "/api/objects",
        f"/timemap/link/{found.pdi}",
        f"/timemap/json/{found.pdi}",
        "/",
    ]


ACCEPTED = ("*/*", "text/html", "application/json", "application/ld+json")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("reader", ["anybody", "describe", "staff", "store"])
@pytest.mark.parametrize("level", LEVELS)
def test_no_door_shows_what_may_not_be_read(
    base: str, folder: Path, keys: dict[str, str], level: str, reader: str, method: str
) -> None:
    headers = {} if reader == "anybody" else {"Authorization": f"Bearer {keys[reader]}"}
    sees = level == "open" or (level == "staff" and reader in ("staff", "store"))
    shown = 0
    with httpx2.Client(base_url=base, headers=headers) as client:
        for number, path in enumerate(addresses(folder, level)):
            accept = ACCEPTED[number % len(ACCEPTED)]
            answer = client.request(method, path, headers={"Accept": accept})
            text = answer.text + str(answer.headers)
            assert answer.status_code < 500, (path, answer.text)
            if not sees:
                assert secret(level) not in text, path
                assert "object" not in answer.headers.get("etag", ""), path
            shown += secret(level) in text
            if answer.is_success and level != "open" and sees and "/oai" not in path:
                kept = answer.headers.get("cache-control", "")
                assert "no-store" in kept, (path, kept)
    assert bool(shown) == (sees and method == "GET")


def test_who_could_get_it_is_told_how(base: str, folder: Path, keys: dict[str, str]) -> None:
    path = addresses(folder, "staff")[0]
    answer = httpx2.get(base + path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    other = httpx2.get(base + path, headers={"Authorization": f"Bearer {keys['describe']}"})
    assert other.status_code == 403
    assert 'scope="staff"' in other.headers["www-authenticate"]


def test_a_tombstone_says_what_and_why(base: str, folder: Path) -> None:
    path = addresses(folder, "closed")[0]
    answer = httpx2.get(base + path)
    assert answer.status_code == 403
    problem = answer.json()
    assert (problem["access"], problem["reason"]) == ("closed", "it is so")
    assert path.removeprefix("/pdi/") in problem["title"]
    assert "by" not in problem
    page = httpx2.get(base + path, headers={"Accept": "text/html,*/*;q=0.5"})
    assert page.headers["content-type"].startswith("text/html")
    assert "it is so" in page.text
    assert page.status_code == 403


def test_harvesters_learn_that_a_record_is_gone(base: str, folder: Path) -> None:
    text = httpx2.get(f"{base}/oai?verb=ListIdentifiers&metadataPrefix=oai_dc").text
    assert text.count('status="deleted"') == 2
    assert (
        "<deletedRecord>transient</deletedRecord>" in httpx2.get(f"{base}/oai?verb=Identify").text
    )


def test_a_change_holds_at_once_and_by_law_is_451(base: str, folder: Path) -> None:
    path = addresses(folder, "open")[0]
    assert httpx2.get(base + path).status_code == 200
    with Store(folder) as store:
        decide(store, "urn:example:open", "closed", law="Archives Act, art. 9")
        answer = httpx2.get(base + path)
        assert answer.status_code == 451
        assert "Archives Act" in answer.json()["title"]
        decide(store, "urn:example:open", "inherit")
        assert httpx2.get(base + path).status_code == 200
        decide(store, "*", "staff")
        assert httpx2.get(base + path).status_code == 401
        decide(store, "*", "open")
        assert httpx2.get(base + path).status_code == 200


def test_an_open_format_of_a_closed_document_is_chosen(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Store.create(folder, series="db.example.ch") as store, Session(store) as session:
        session.add([Source("a.html", b"<p>names", "text/html")], contents=["urn:example:a"])
        session.commit()
        pdi = store.find("urn:example:a").pdi
        session.add(
            [Source("a.txt", b"no names", "text/plain")],
            settle=lambda _store: pdi.replace(".html.", ".text."),
        )
        session.commit()
        decide(store, "urn:example:a", "closed")
        decide(store, pdi.replace(".html.", ".text."), "open")
    path = "/pdi/" + pdi.removeprefix("pdi://")
    with serving(folder) as (base, _):
        assert httpx2.get(base + path).status_code == 403
        generic: Any = httpx2.get(base + path.rsplit(".", 2)[0])
        assert (generic.status_code, generic.content) == (200, b"no names")


def test_no_page_of_an_archive_shows_what_may_not_be_read(tmp_path: Path, sample: Path) -> None:
    folder = tmp_path / "store"
    with Store.create(folder, series="db.example.ch") as store:
        with Session(store) as session:
            trees = submit_file(sample)
            session.add(trees.sources, contents=["urn:example:trees"], metadata=trees.metadata)
        pdi = store.find("urn:example:trees").pdi
        _, key = create_token(store.names, "staff", ["staff"], "me", 1)
        decide(store, "urn:example:trees", "staff")
        with SiardSource(sample) as source:
            schema = source.describe().schemas[0]
    told = [value for name, value in trees.metadata if name in ("title", "description")]
    assert told
    fill = {
        "{archive}": page_name(pdi, ""), "{schema}": schema.name, "{table}": schema.tables[0].name,
        "{row}": "1", "{column}": schema.tables[0].columns[0].name, "{view}": "v", "{routine}": "r",
    }  # fmt: skip
    with serving(folder, "--workers", "1") as (base, _), httpx2.Client(base_url=base) as client:
        headers = {"Authorization": f"Bearer {key}"}
        home = f"/a/{fill['{archive}']}"
        while (
            client.get(f"{home}/progress?format=json", headers=headers).json()["state"] != "ready"
        ):
            time.sleep(0.2)
        for level in ("staff", "closed"):
            with Store(folder) as store:
                decide(store, "urn:example:trees", level)
            for path, _ in (*PAGES, *FILES):
                for name, value in fill.items():
                    path = path.replace(name, quote(value))
                for query in ("", "?format=json", "?q=a", "?sql=select+21212121*2", "?format=csv"):
                    answer = client.get(path + query)
                    assert answer.status_code == (401 if level == "staff" else 403), path + query
                    assert not any(value in answer.text for value in told)
                    assert "42424242" not in answer.text
            for path in (
                "/",
                "/search?q=Baum",
                "/search?q=tree",
                f"/identifiers/{quote(pdi, safe='')}",
            ):
                for more in ("", "?format=json", "&format=json"):
                    text = client.get(path + more).text
                    assert not any(value in text for value in told)


def test_a_harvester_that_comes_again_hears_what_was_closed_and_opened(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Store.create(folder, series="db.example.ch") as store:
        with Session(store) as session:
            for number in range(3):
                session.add([Source("a.txt", b"a", "text/plain")], contents=[f"urn:x:{number}"])
        identifier = store.find("urn:x:1").identifier
        with serving(folder) as (base, _):
            harvester = Sickle(f"{base}/oai", iterator=OAIItemIterator)
            assert len(list(harvester.ListRecords(metadataPrefix="oai_dc"))) == 3
            for level, gone in (("closed", True), ("open", False)):
                time.sleep(1.1)
                since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                decide(store, "urn:x:1", level)
                [heard] = harvester.ListRecords(metadataPrefix="oai_dc", **{"from": since})
                assert (heard.header.identifier, heard.deleted) == (identifier, gone)
                alone = harvester.GetRecord(metadataPrefix="oai_dc", identifier=identifier)
                assert alone.header.datestamp == heard.header.datestamp >= since
