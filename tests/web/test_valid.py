"""Every answer to a harvester is valid, with all that stands in its open places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from doors import serving
from lxml import etree
from test_harvest import HARVESTED

from muniment.repository import Session, Source, Store
from muniment.repository.access import set_access
from muniment.repository.exchange import export_store, import_files, import_records

OAI = "{http://www.openarchives.org/OAI/2.0/}"
PUBLIC = Path(__file__).resolve().parents[3] / "shared" / "xsd"
OWN = Path(__file__).with_name("schemas")
_SPACES = {
    "http://www.w3.org/XML/1998/namespace": PUBLIC / "xml.xsd",
    "http://purl.org/dc/elements/1.1/": PUBLIC / "simpledc20021212.xsd",
    "http://www.openarchives.org/OAI/2.0/oai_dc/": PUBLIC / "oai_dc.xsd",
    "http://www.openarchives.org/OAI/2.0/oai-identifier": PUBLIC / "oai-identifier.xsd",
    "http://www.openarchives.org/OAI/2.0/friends/": OWN / "friends.xsd",
    "http://www.openarchives.org/OAI/2.0/provenance": OWN / "provenance.xsd",
    "http://www.openarchives.org/OAI/2.0/": PUBLIC / "OAI-PMH.xsd",
}
pytestmark = pytest.mark.skipif(
    not PUBLIC.exists(), reason="the public schemas are not beside the project"
)


@pytest.fixture(scope="module")
def schema() -> etree.XMLSchema:
    """One schema of several, in an order in which nothing is fetched."""
    imports = "".join(
        f'<xs:import namespace="{name}" schemaLocation="{file.as_uri()}"/>'
        for name, file in _SPACES.items()
    )
    text = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{imports}</xs:schema>'
    return etree.XMLSchema(etree.fromstring(text))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Objects of our own, one of them closed, records from elsewhere and an imported tape."""
    home = tmp_path_factory.mktemp("valid")
    (home / "harvest.xml").write_text(HARVESTED)
    with Store.create(home / "other", series="other.example.ch") as other:
        with Session(other) as session:
            session.add([Source("o.txt", b"other", "text/plain")], contents=["urn:example:o"])
        export_store(other, home / "moved")
    with Store.create(home / "store", series="db.example.ch") as store:
        with Session(store) as session:
            for number in range(3):
                session.add(
                    [Source("a.txt", b"a", "text/plain")],
                    contents=[f"urn:x:{number}"],
                    metadata=[("title", "<&>\u00e4"), ("creator", "")],
                )
        import_records(store, [home / "harvest.xml"])
        import_files(store, [home / "moved"])
        subject = store.find("urn:x:1").pdi
        set_access(store.names, [subject], "closed", reason="so", by="me")
    with serving(home / "store", "--email", "archive@example.ch") as (address, _):
        yield address


@pytest.mark.parametrize(
    "query",
    [
        "", "verb=Identify", "verb=ListSets", "verb=ListMetadataFormats", "verb=nonsense",
        "verb=ListIdentifiers&metadataPrefix=didl", "verb=ListRecords&metadataPrefix=oai_dc",
        "verb=ListRecords&metadataPrefix=oai_dc&set=collection:ch&from=2020-01-01",
        "verb=ListRecords&metadataPrefix=oai_dc&until=1990-01-01T00:00:00Z",
        "verb=ListRecords&metadataPrefix=a%20b", "verb=ListRecords&metadataPrefix=none",
        "verb=ListRecords&metadataPrefix=oai_dc&set=a%20b", "verb=ListRecords&resumptionToken=%22",
        "verb=GetRecord&metadataPrefix=oai_dc&identifier=invalid%22id%3C",
        "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:origin.example:1",
    ],
)  # fmt: skip
def test_answers_are_valid(base: str, schema: etree.XMLSchema, query: str) -> None:
    answer = httpx2.get(f"{base}/oai?{query}")
    assert answer.status_code == 200
    root = etree.fromstring(answer.content)
    for about in root.iter("{urn:example:rights}rights"):  # which no schema knows
        about.getparent().getparent().remove(about.getparent())
    assert schema.validate(root), schema.error_log


def test_every_open_place_is_filled(base: str) -> None:
    """What the schemas above are for is really there."""
    introduced = httpx2.get(f"{base}/oai?verb=Identify").text
    assert "<friends " in introduced
    assert "<oai-identifier " in introduced
    assert "<adminEmail>archive@example.ch</adminEmail>" in introduced
    listed = httpx2.get(f"{base}/oai?verb=ListRecords&metadataPrefix=oai_dc").text
    assert listed.count("<provenance ") == 3
    assert listed.count('status="deleted"') == 1


def test_a_prefix_that_can_be_none_is_a_bad_argument(base: str) -> None:
    for verb in ("ListRecords", "ListIdentifiers", "GetRecord&identifier=urn:x:1"):
        root = etree.fromstring(httpx2.get(f"{base}/oai?verb={verb}&metadataPrefix=a%20b").content)
        assert root.find(f"{OAI}error").get("code") == "badArgument"
        assert not root.find(f"{OAI}request").attrib


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/oai", "GET POST"), ("/openurl", "GET POST"), ("/locate", "GET"), ("/uri-res/N2L", "GET")],
)
def test_options_tell_the_methods(base: str, path: str, methods: str) -> None:
    answer = httpx2.options(base + path)
    assert answer.status_code == 204
    assert {*methods.split(), "HEAD", "OPTIONS"} <= set(answer.headers["allow"].split(", "))
    assert httpx2.delete(base + path).status_code == 405
