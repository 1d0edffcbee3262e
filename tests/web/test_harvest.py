"""Harvesting a running server with other people's harvesters: everything once, whatever it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from doors import OBJECTS, make_store, serving
from lxml import etree
from oaipmh_scythe import Scythe
from sickle import Sickle
from sickle.oaiexceptions import CannotDisseminateFormat

from muniment.repository import Session, Source, Store
from muniment.repository.exchange import export_store, import_files, import_records

OAI = "{http://www.openarchives.org/OAI/2.0/}"
PROVENANCE = "{http://www.openarchives.org/OAI/2.0/provenance}"
BOOKS = "urn:example:books"
HARVESTED = """<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">
<responseDate>2026-11-01T10:00:00Z</responseDate>
<request verb="ListRecords">http://origin.example/oai</request>
<ListRecords>
<record><header><identifier>oai:origin.example:1</identifier>
<datestamp>2020-02-03T04:05:06Z</datestamp></header>
<metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A &lt;title&gt;</dc:title></oai_dc:dc></metadata>
<about><provenance xmlns="http://www.openarchives.org/OAI/2.0/provenance">
<originDescription harvestDate="2019-01-01T00:00:00Z" altered="true"><baseURL>http://first.example/</baseURL>
<identifier>oai:first.example:1</identifier><datestamp>2018-01-01</datestamp>
<metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace></originDescription>
</provenance></about>
<about><rights xmlns="urn:example:rights">free &amp; open</rights></about></record>
<record><header><identifier>oai:origin.example:2</identifier>
<datestamp>2020-02-03</datestamp></header>
<metadata><b:book xmlns:b="urn:example:books" xmlns:t="http://purl.org/dc/terms/">
<t:isPartOf>info:shelf/a b</t:isPartOf></b:book></metadata></record>
</ListRecords></OAI-PMH>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Objects of our own on three tapes and two days, and records from elsewhere."""
    home = tmp_path_factory.mktemp("harvest")
    make_store(home / "store")
    (home / "harvest.xml").write_text(HARVESTED)
    with Store.create(home / "other", series="other.example.ch") as other:
        with Session(other) as session:
            session.add([Source("o.txt", b"other\n", "text/plain")], contents=["urn:example:o"])
        export_store(other, home / "moved")
    with Store(home / "store") as store:
        import_records(store, [home / "harvest.xml"])
        import_files(store, [home / "moved"])
    return home / "store"


@pytest.fixture(scope="module")
def base(folder: Path) -> Iterator[str]:
    with serving(folder) as (address, _):
        yield address


def records(folder: Path) -> set[str]:
    with Store(folder) as store:
        kinds = ("object", "record")
        return {each.identifier for each in store.catalogue.records() if each.kind in kinds}


@pytest.mark.parametrize("prefix", ["didl", "oai_dc"])
def test_both_harvesters_meet_every_record_once(base: str, folder: Path, prefix: str) -> None:
    expected = records(folder)
    assert len(expected) == OBJECTS + 3
    first = [r.header.identifier for r in Sickle(f"{base}/oai").ListRecords(metadataPrefix=prefix)]
    with Scythe(f"{base}/oai") as scythe:
        second = [r.header.identifier for r in scythe.list_records(metadata_prefix=prefix)]
        third = [h.identifier for h in scythe.list_identifiers(metadata_prefix=prefix)]
    for found in (first, second, third):
        assert len(found) == len(set(found))
        assert set(found) == expected


def test_both_harvesters_by_date(base: str, folder: Path) -> None:
    with Store(folder) as store:
        dates = sorted(
            each.date for each in store.catalogue.records() if each.kind in ("object", "record")
        )
    middle = dates[len(dates) // 2]
    old = [d for d in dates if d <= "2020-12-31"]
    assert len(old) == 2
    whole = Sickle(f"{base}/oai")
    with Scythe(f"{base}/oai") as scythe:
        for since, until in (
            (None, "2020-12-31"),
            ("2020-12-31", None),
            (None, middle),
            (middle, None),
        ):
            wanted = [
                date for date in dates
                if (since is None or date[: len(since)] >= since)
                and (until is None or date[: len(until)] <= until)
            ]  # fmt: skip
            chosen = {k: v for k, v in (("from", since), ("until", until)) if v}
            one = [h.identifier for h in whole.ListIdentifiers(metadataPrefix="didl", **chosen)]
            two = [
                r.header.identifier
                for r in scythe.list_records(metadata_prefix="didl", from_=since, until=until)
            ]
            assert one == two
            assert len(one) == len(set(one)) == len(wanted)


def test_scythe_reads_the_rest(base: str) -> None:
    with Scythe(f"{base}/oai") as scythe:
        assert scythe.identify().protocolVersion == "2.0"
        prefixes = {each.metadataPrefix for each in scythe.list_metadata_formats()}
        assert {"didl", "oai_dc", "mets"} < prefixes
        specs = {each.setSpec for each in scythe.list_sets()}
        for spec in specs:
            found = list(scythe.list_identifiers(metadata_prefix="didl", set_=spec))
            assert found, spec


def test_a_record_in_its_own_format(base: str) -> None:
    whole = Sickle(f"{base}/oai")
    name = "oai:origin.example:2"
    formats = {f.metadataNamespace: f for f in whole.ListMetadataFormats(identifier=name)}
    own = formats[BOOKS].metadataPrefix
    record = whole.GetRecord(identifier=name, metadataPrefix=own)
    assert record.xml.find(f"{OAI}metadata")[0].tag == f"{{{BOOKS}}}book"
    [listed] = whole.ListRecords(metadataPrefix=own)
    assert listed.header.identifier == name
    with pytest.raises(CannotDisseminateFormat):
        whole.GetRecord(identifier="oai:origin.example:1", metadataPrefix=own)
    # What came as Dublin Core is given as it came.
    core = whole.GetRecord(identifier="oai:origin.example:1", metadataPrefix="oai_dc")
    assert core.metadata == {"title": ["A <title>"]}
    with pytest.raises(CannotDisseminateFormat):
        whole.ListRecords(metadataPrefix="ns-00000000")


def test_provenance_says_where_records_come_from(base: str, folder: Path) -> None:
    whole = Sickle(f"{base}/oai")
    record = whole.GetRecord(identifier="oai:origin.example:1", metadataPrefix="oai_dc")
    origin = record.xml.find(f"{OAI}about/{PROVENANCE}provenance/{PROVENANCE}originDescription")
    assert origin.get("harvestDate") == "2026-11-01T10:00:00Z"
    assert origin.get("altered") == "false"
    assert origin.findtext(f"{PROVENANCE}baseURL") == "http://origin.example/oai"
    assert origin.findtext(f"{PROVENANCE}identifier") == "oai:origin.example:1"
    assert origin.findtext(f"{PROVENANCE}datestamp") == "2020-02-03T04:05:06Z"
    earlier = origin.find(f"{PROVENANCE}originDescription")
    assert earlier.findtext(f"{PROVENANCE}baseURL") == "http://first.example/"
    assert record.xml.findtext(f"{OAI}about/{{urn:example:rights}}rights") == "free & open"
    with Store(folder) as store:
        moved = store.find("urn:example:o").identifier
        own = store.find("urn:example:5").identifier
    moved_record = whole.GetRecord(identifier=moved, metadataPrefix="didl")
    source = moved_record.xml.find(f".//{PROVENANCE}baseURL").text
    assert source.startswith("urn:uuid:")  # the tape on which it came
    assert whole.GetRecord(identifier=own, metadataPrefix="didl").xml.find(f"{OAI}about") is None


def test_provenance_and_collections_survive_a_new_catalogue_and_a_move(
    folder: Path, tmp_path: Path
) -> None:
    with Store(folder) as store:
        export_store(store, tmp_path / "all")
    with Store.create(tmp_path / "copy", series="copy.example.ch") as copy:
        import_files(copy, [tmp_path / "all"])
        for name in ("catalogue.db", "catalogue.db-wal", "catalogue.db-shm"):
            (tmp_path / "copy" / name).unlink(missing_ok=True)
    with serving(tmp_path / "copy") as (base, _):
        whole = Sickle(f"{base}/oai")
        record = whole.GetRecord(identifier="oai:origin.example:1", metadataPrefix="didl")
        assert record.xml.find(f".//{PROVENANCE}baseURL").text == "http://origin.example/oai"
        [header] = whole.ListIdentifiers(
            metadataPrefix="didl", set="collection:info*3Ashelf*2Fa*20b"
        )
        assert header.identifier == "oai:origin.example:2"


def test_collections_are_a_hierarchy(base: str) -> None:
    whole = Sickle(f"{base}/oai")
    specs = {each.setSpec for each in whole.ListSets()}
    assert {
        "collection", "collection:ch", "collection:ch:example", "collection:ch:example:db",
        "collection:ch:example:other", "collection:info*3Ashelf*2Fa*20b",
    } <= specs  # fmt: skip

    def count(spec: str) -> int:
        return len(list(whole.ListIdentifiers(metadataPrefix="didl", set=spec)))

    assert count("collection:ch:example:other") == 1
    assert count("collection:ch:example") == count("collection:ch") == OBJECTS + 1
    assert count("collection") == OBJECTS + 2
    assert count("collection:info*3Ashelf*2Fa*20b") == 1


def test_items_have_names_of_the_scheme_oai(base: str) -> None:
    answer = etree.fromstring(httpx2.get(f"{base}/oai?verb=Identify").content)
    space = "{http://www.openarchives.org/OAI/2.0/oai-identifier}"
    assert answer.find(f".//{space}repositoryIdentifier").text == "db.example.ch"
    sample = answer.find(f".//{space}sampleIdentifier").text
    record = Sickle(f"{base}/oai").GetRecord(identifier=sample, metadataPrefix="oai_dc")
    assert record.header.identifier == sample


def test_a_token_outlives_what_is_added_and_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    make_store(folder)
    with serving(folder) as (base, _):
        pages = Sickle(f"{base}/oai").ListRecords(metadataPrefix="oai_dc")
        found = [next(pages).header.identifier for _ in range(1000)]
        token = pages.resumption_token.token
        time.sleep(1)
        with Store(folder) as store, Session(store) as session:
            for n in range(20):
                session.add([Source(f"{n}", b"new", "text/plain")], contents=[f"urn:new:{n}"])
    with serving(folder) as (base, _), Scythe(f"{base}/oai") as scythe:
        rest = [r.header.identifier for r in scythe.list_records(resumption_token=token)]
    assert len(set(found + rest)) == len(found) + len(rest) == OBJECTS


def test_get_and_post_and_gzip_say_the_same(base: str) -> None:
    def said(answer: Any) -> bytes:
        root = etree.fromstring(answer.content)
        root.find(f"{OAI}responseDate").text = ""
        return etree.tostring(root)

    for arguments in (
        {"verb": "ListRecords", "metadataPrefix": "oai_dc", "set": "collection:ch"},
        {"verb": "ListSets"},
        {"verb": "nonsense"},
    ):
        got = httpx2.get(f"{base}/oai", params=arguments, headers={"Accept-Encoding": "identity"})
        posted = httpx2.post(f"{base}/oai", data=arguments, headers={"Accept-Encoding": "gzip"})
        assert said(got) == said(posted)
        assert got.headers["content-type"] == posted.headers["content-type"]


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("br", False), ("", False)],
)
def test_compression_is_for_who_wants_it(base: str, accepted: str, packed: bool) -> None:
    question = f"{base}/oai?verb=ListIdentifiers&metadataPrefix=didl"
    answer = httpx2.get(question, headers={"Accept-Encoding": accepted})
    assert ("content-encoding" in answer.headers) == packed
    assert b"<ListIdentifiers>" in answer.content
