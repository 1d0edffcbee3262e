"""The doors of a running server, opened with other people's clients and with bare sockets."""

from __future__ import annotations

import gzip
import hashlib
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from doors import BINARY, OBJECTS, make_store, raw, serving
from lxml import etree
from sickle import Sickle
from sickle.oaiexceptions import CannotDisseminateFormat, IdDoesNotExist, NoRecordsMatch

from muniment.repository import Session, Source, Store
from muniment.repository.exchange import import_records
from muniment.web.doors.octets import deliver, of_bytes

OAI = "{http://www.openarchives.org/OAI/2.0/}"
DIDL = "{urn:mpeg:mpeg21:2002:02-DIDL-NS}DIDL"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("doors") / "store"
    make_store(made)
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[tuple[str, int]]:
    with serving(folder) as address:
        yield address


@pytest.fixture(scope="module")
def client(server: tuple[str, int]) -> Iterator[Any]:
    with httpx2.Client(base_url=server[0]) as made:
        yield made


def located(client: Any, name: str) -> dict[str, Any]:
    answer = client.get("/locate", params={"id": name})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def stream_of(folder: Path, name: str, number: int = 0) -> tuple[str, str]:
    """Return a datastream of an object, and the ARC file that it is in."""
    with Store(folder) as store:
        stream = store.object(store.find(name)).streams[number]
    return stream.identifier, stream.arc


# OAI-PMH


@pytest.mark.parametrize("prefix", ["didl", "oai_dc", "mets"])
def test_sickle_harvests_every_record_once(server: tuple[str, int], prefix: str) -> None:
    records = list(Sickle(f"{server[0]}/oai").ListRecords(metadataPrefix=prefix))
    names = [record.header.identifier for record in records]
    assert len(names) == len(set(names)) == OBJECTS
    roots = {record.xml.find(f"{OAI}metadata")[0].tag for record in records}
    assert len(roots) == 1


def test_tapes_are_repositories_of_their_own(server: tuple[str, int]) -> None:
    whole = Sickle(f"{server[0]}/oai")
    tapes = [s.setSpec.partition(":")[2] for s in whole.ListSets() if s.setSpec.startswith("tape:")]
    found = {
        tape: [
            h.identifier
            for h in Sickle(f"{server[0]}/oai/{tape}").ListIdentifiers(metadataPrefix="didl")
        ]
        for tape in tapes
    }
    assert sorted(map(len, found.values())) == [5, OBJECTS - 5]
    for tape, names in found.items():
        chosen = whole.ListIdentifiers(metadataPrefix="didl", set=f"tape:{tape}")
        assert [header.identifier for header in chosen] == names


def test_sets_by_format(server: tuple[str, int]) -> None:
    whole = Sickle(f"{server[0]}/oai")
    specs = {s.setSpec for s in whole.ListSets()}
    assert {"format:plain", "format:text"} & specs or any(s.startswith("format:") for s in specs)
    for spec in specs - {"format", "tape"}:
        headers = list(whole.ListIdentifiers(metadataPrefix="oai_dc", set=spec))
        assert headers
        for header in headers:  # a set holds what those below it hold
            assert any(f"{each}:".startswith(f"{spec}:") for each in header.setSpecs)


def test_selection_by_date(server: tuple[str, int]) -> None:
    whole = Sickle(f"{server[0]}/oai")
    assert (
        len(list(whole.ListIdentifiers(metadataPrefix="didl", **{"from": "2020-01-01"}))) == OBJECTS
    )
    with pytest.raises(NoRecordsMatch):
        whole.ListIdentifiers(metadataPrefix="didl", until="2020-01-01")


def test_one_record_is_the_bytes_of_the_tape(server: tuple[str, int], folder: Path) -> None:
    with Store(folder) as store:
        found = store.find("urn:example:7")
        data = store.read(found)
    base = f"{server[0]}/oai?verb=GetRecord&metadataPrefix=didl&identifier={found.identifier}"
    assert data in httpx2.get(base).content
    whole = Sickle(f"{server[0]}/oai")
    record = whole.GetRecord(identifier=found.identifier, metadataPrefix="oai_dc")
    assert record.metadata["title"] == ["<7> & more"]
    assert "urn:example:7" in record.metadata["identifier"]
    with pytest.raises(IdDoesNotExist):
        whole.GetRecord(identifier="urn:uuid:none", metadataPrefix="oai_dc")
    with pytest.raises(CannotDisseminateFormat):
        whole.GetRecord(identifier=found.identifier, metadataPrefix="marc21")


def test_post_equals_get_and_gzip_is_offered(client: Any) -> None:
    arguments = {"verb": "ListMetadataFormats"}
    got, posted = client.get("/oai", params=arguments), client.post("/oai", data=arguments)
    assert [e.tag for e in etree.fromstring(got.content).iter()] == [
        e.tag for e in etree.fromstring(posted.content).iter()
    ]
    listed = {"verb": "ListIdentifiers", "metadataPrefix": "didl"}
    plain = client.get("/oai", params=listed, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with client.stream("GET", "/oai", params=listed, headers={"Accept-Encoding": "gzip"}) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        data = gzip.decompress(b"".join(packed.iter_raw()))
    assert len(etree.fromstring(data).findall(f".//{OAI}header")) == 500


def test_a_list_goes_on_while_objects_are_added_and_after_a_restart(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    question = {"verb": "ListIdentifiers", "metadataPrefix": "oai_dc"}
    with serving(tmp_path / "store") as (base, _):
        first = etree.fromstring(httpx2.get(f"{base}/oai", params=question).content)
        names = [e.text for e in first.iter(f"{OAI}identifier")]
        with Store(tmp_path / "store") as store, Session(store) as session:
            session.add([Source("new.txt", b"new", "text/plain")], contents=["urn:example:new"])
        token = first.findtext(f".//{OAI}resumptionToken")
    with serving(tmp_path / "store") as (base, _):
        while token:
            question = {"verb": "ListIdentifiers", "resumptionToken": token}
            page = etree.fromstring(httpx2.get(f"{base}/oai", params=question).content)
            names += [e.text for e in page.iter(f"{OAI}identifier")]
            token = page.findtext(f".//{OAI}resumptionToken")
        fresh = httpx2.get(f"{base}/oai", params={"verb": "Identify"}).content
    assert len(names) == len(set(names)) == OBJECTS
    assert b"friends" in fresh


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "badVerb"),
        ("verb=Identify&verb=Identify", "badVerb"),
        ("verb=Identify&x=1", "badArgument"),
        ("verb=ListRecords&metadataPrefix=didl&from=%ff", "badArgument"),
        ("verb=GetRecord&metadataPrefix=didl&identifier=%00", "badArgument"),
        ("verb=GetRecord&metadataPrefix=didl&identifier=%ff%fe", "badArgument"),
        ("verb=ListRecords&resumptionToken=forged", "badResumptionToken"),
        ("verb=ListRecords&metadataPrefix=didl&set=nothing", "noRecordsMatch"),
        ("verb=ListRecords&metadataPrefix=didl&set=tape:nothing", "noRecordsMatch"),
        ("verb=%3Cscript%3E", "badVerb"),
    ],
)
def test_errors_of_the_protocol(client: Any, query: str, code: str) -> None:
    answer = client.get(f"/oai?{query}")
    assert answer.status_code == 200
    errors = etree.fromstring(answer.content).findall(f"{OAI}error")
    assert code in {error.get("code") for error in errors}


def test_tokens_are_for_one_repository(client: Any) -> None:
    page = client.get("/oai?verb=ListIdentifiers&metadataPrefix=didl")
    token = etree.fromstring(page.content).findtext(f".//{OAI}resumptionToken")
    tape = located(client, "urn:example:7")["versions"][0]["base_url"].rpartition("/")[2]
    answer = client.get(
        f"/oai/{tape}", params={"verb": "ListIdentifiers", "resumptionToken": token}
    )
    assert b"badResumptionToken" in answer.content


# OpenURL and the locator


def test_a_datastream_with_all_that_is_known_of_it(client: Any, folder: Path) -> None:
    name, arc = stream_of(folder, "urn:example:big")
    question = {"url_ver": "Z39.88-2004", "rft_id": name}
    digest = hashlib.sha256(BINARY)
    for path in ("/openurl", f"/openurl/{arc.removeprefix('urn:uuid:')}", f"/{arc}/openurl-aDORe4"):
        answer = client.get(path, params=question)
        assert answer.content == BINARY
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["etag"] == f'"{digest.hexdigest()}"'
        assert answer.headers["repr-digest"] == f"sha-256=:{b64encode(digest.digest()).decode()}:"
    assert client.post("/openurl", data=question).content == BINARY
    head = client.head("/openurl", params=question)
    assert (head.content, head.headers["content-length"]) == (b"", str(len(BINARY)))
    again = client.get("/openurl", params=question, headers={"If-None-Match": head.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    wrong = client.get("/openurl", params=question, headers={"If-Match": '"x"'})
    assert wrong.status_code == 412


@pytest.mark.parametrize(
    ("asked", "status", "expected"),
    [
        ("bytes=0-9", 206, BINARY[:10]),
        ("bytes=5-", 206, BINARY[5:]),
        ("bytes=-7", 206, BINARY[-7:]),
        ("bytes=0-9999999999", 206, BINARY),
        ("bytes=3-9,5-20", 206, BINARY[3:21]),
        ("bytes=9-3", 200, BINARY),
        ("bytes=a-b", 200, BINARY),
        ("lines=1-2", 200, BINARY),
        ("bytes=" + ",".join(["0-1"] * 100), 200, BINARY),
        ("bytes=99999999-", 416, None),
        ("bytes=-0", 416, None),
    ],
)
def test_ranges(client: Any, folder: Path, asked: str, status: int, expected: bytes | None) -> None:
    question = {"url_ver": "Z39.88-2004", "rft_id": stream_of(folder, "urn:example:big")[0]}
    answer = client.get("/openurl", params=question, headers={"Range": asked})
    assert answer.status_code == status
    if expected is not None:
        assert answer.content == expected
    else:
        assert answer.headers["content-range"] == f"bytes */{len(BINARY)}"


def test_several_ranges(client: Any, folder: Path) -> None:
    question = {"url_ver": "Z39.88-2004", "rft_id": stream_of(folder, "urn:example:big")[0]}
    answer = client.get("/openurl", params=question, headers={"Range": "bytes=0-3,1000-1003"})
    assert answer.status_code == 206
    assert answer.headers["content-type"].startswith("multipart/byteranges")
    assert answer.content.count(b"Content-Range: bytes ") == 2
    assert BINARY[:4] in answer.content
    assert b"bytes 1000-1003/" in answer.content
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_context_objects_by_value_and_services(client: Any, folder: Path) -> None:
    name, arc = stream_of(folder, "urn:example:5")
    inner = f"url_ver=z39.88-2004&rft_id={name}&rfr_id=info:sid/test"
    answer = client.get(
        "/openurl",
        params={
            "url_ver": "z39.88-2004",
            "url_ctx_fmt": "info:ofi/fmt:kev:mtx:ctx",
            "url_ctx_val": inner,
        },
    )
    assert answer.content == b"object 5\n"
    listed = client.get(
        f"/openurl/{arc}",
        params={"url_ver": "Z39.88-2004", "svc_id": "info:lanl-repo/svc/identifiers.list"},
    )
    assert listed.headers["content-type"].startswith("text/uri-list")
    assert name in listed.text.split("\r\n")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/openurl", 400),
        ("/openurl?rft_id=urn:x:1", 400),
        ("/openurl?url_ver=Z39.88-2004", 400),
        ("/openurl?url_ver=Z39.88-2004&rft_id=", 400),
        ("/openurl?url_ver=Z39.88-1990&rft_id=urn:x:1", 400),
        ("/openurl?url_ver=Z39.88-2004&rft_id=urn:x:1&rft_id=urn:x:2", 400),
        ("/openurl?url_ver=Z39.88-2004&rft_id=%ff", 400),
        ("/openurl?url_ver=Z39.88-2004&rft_id=urn:x:unknown", 404),
        ("/openurl?url_ver=Z39.88-2004&rft_id=pdi://", 400),
        ("/openurl/none?url_ver=Z39.88-2004&rft_id=urn:x:1", 404),
        ("/openurl?url_ver=Z39.88-2004&rft_id=urn:x:1&svc_id=info:x", 501),
        ("/openurl?url_ver=Z39.88-2004&url_ctx_ref=http://127.0.0.1/", 501),
        ("/locate", 400),
        ("/locate?id=", 400),
        ("/locate?id=urn:x:unknown", 404),
        ("/locate?id=..%2F..%2Fetc%2Fpasswd", 404),
        ("/locate?id=a%0d%0aX-Evil:%201", 404),
        ("/oai/..%2f..%2fstore.json?verb=Identify", 404),
        ("/static/..%2f..%2fapp.py", 404),
        ("/nothing", 404),
        ("/oai?" + "x" * 9000, 414),
    ],
)
def test_refusals_are_sentences(client: Any, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert answer.json()["status"] == status
    assert "x-evil" not in answer.headers
    assert b"Traceback" not in answer.content


def test_documents_are_not_our_pages(client: Any, folder: Path) -> None:
    name = stream_of(folder, "urn:example:page")[0]
    answer = client.get("/openurl", params={"url_ver": "Z39.88-2004", "rft_id": name})
    assert answer.headers["content-type"] == "text/html"
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("media", ["text/html\r\nX-Evil: 1", "é/x", "", 'a/b; c="\r\n"', "text"])
def test_types_from_elsewhere_make_no_headers(media: str) -> None:
    answer = deliver(of_bytes(b"x", media), "GET", {})
    assert answer.headers["content-type"] == "application/octet-stream"


def test_locating_all_versions(client: Any) -> None:
    found = located(client, "urn:example:3")
    assert len(found["versions"]) == 2
    assert [each["pdi"].rpartition(".")[2] for each in found["versions"]] == ["1", "2"]
    for each in found["versions"]:
        record = client.get(each["url"].partition("8180")[2])
        assert each["package"] in record.text
    assert len(located(client, "URN:EXAMPLE:3")["versions"]) == 2
    listed = client.get("/locate?id=urn:example:3", headers={"Accept": "text/uri-list"})
    assert len(listed.text.strip().split("\r\n")) == 3
    page = client.get("/locate?id=urn:example:3", headers={"Accept": "text/html"})
    assert "<li>" in page.text
    assert (
        client.get("/locate?id=urn:example:3", headers={"Accept": "image/png"}).status_code == 406
    )


def test_locating_a_datastream(client: Any, folder: Path) -> None:
    name = stream_of(folder, "urn:example:big")[0]
    found = located(client, name)["datastream"]
    assert found["bytes"] == len(BINARY)
    assert client.get(found["url"].partition("8180")[2]).content == BINARY


# The server


def test_health_and_metrics(client: Any) -> None:
    assert client.get("/healthz").text == "ok\n"
    client.get("/oai?verb=Identify")
    text = client.get("/metrics").text
    assert 'muniment_requests_total{door="oai",method="GET",status="200"}' in text
    assert client.get("/").status_code == 200


def test_bodies_and_headers_have_limits(client: Any, server: tuple[str, int]) -> None:
    large = b"POST /oai HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2097152\r\n\r\n"
    assert raw(server[1], large).startswith(b"HTTP/1.1 413 ")
    assert (
        client.post(
            "/oai", content=b"verb=Identify", headers={"Content-Type": "text/plain"}
        ).status_code
        == 415
    )
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"
    answer = raw(server[1], head)
    assert not answer or answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /oai HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(server: tuple[str, int], data: bytes) -> None:
    assert raw(server[1], data).startswith(b"HTTP/1.1 4")


def test_other_names_of_the_server_are_refused(client: Any) -> None:
    assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 421


# PDIs as URLs


def pdi_of(client: Any, name: str, version: int = -1) -> str:
    text: str = located(client, name)["versions"][version]["pdi"]
    return text


def path_of(pdi: str) -> str:
    return "/pdi/" + pdi.removeprefix("pdi://").replace("#", "%23")


def test_a_version_never_changes_and_no_version_is_the_latest(client: Any) -> None:
    first, second = pdi_of(client, "urn:example:3", 0), pdi_of(client, "urn:example:3")
    answer = client.get(path_of(first))
    assert (answer.status_code, answer.content) == (200, b"object 3\n")
    assert answer.headers["content-location"] == first
    assert "immutable" in answer.headers["cache-control"]
    digest = hashlib.sha256(answer.content).hexdigest()
    assert answer.headers["etag"] == f'"{digest}"'
    latest = client.get(path_of(first.rpartition(".")[0]))
    assert latest.content == b"changed\n"
    assert latest.headers["content-location"] == second
    assert "immutable" not in latest.headers["cache-control"]
    assert 'rel="predecessor-version"' in latest.headers["link"]
    assert client.get(path_of(first.rpartition(".")[0] + ".9")).status_code == 404
    head = client.head(path_of(second))
    assert head.headers["content-length"] == "8"
    assert head.content == b""


def test_the_generic_name_is_negotiated(client: Any) -> None:
    name = path_of(pdi_of(client, "urn:example:3").rsplit(".", 2)[0])
    answer = client.get(name, headers={"Accept": "text/*"})
    assert answer.content == b"changed\n"
    assert "Accept" in answer.headers["vary"]
    assert client.get(name, headers={"Accept": "image/png"}).status_code == 406


def test_the_absolute_form_on_a_bare_socket(client: Any, server: tuple[str, int]) -> None:
    name = pdi_of(client, "urn:example:5")
    for target in (name, f"urn:{name}", f"/{name}", f"http://127.0.0.1{path_of(name)}"):
        head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        answer = raw(server[1], head.encode())
        assert answer.startswith(b"HTTP/1.1 200 "), (target, answer[:300])
        assert answer.endswith(b"\r\n\r\nobject 5\n")
    other = f"GET {name}#0,6 HTTP/1.1\r\nHost: db.example.ch\r\nConnection: close\r\n\r\n"
    answer = raw(server[1], other.encode())
    assert answer.endswith(b"\r\n\r\nobject")
    assert f"content-location: {name}#0,6".encode() in answer.lower()


def test_parts_are_cut_out_by_the_server(client: Any) -> None:
    name = pdi_of(client, "urn:example:5")
    answer = client.get(path_of(f"{name}#0,6"))
    assert (answer.status_code, answer.content) == (200, b"object")
    assert answer.headers["content-location"] == f"{name}#0,6"
    assert client.get(path_of(f"{name}#byte=2,4")).content == b"je"
    assert client.get(path_of(f"{name}#900,901")).status_code == 404
    assert client.get(path_of(f"{name}#nonsense=1")).status_code == 400


def test_methods_of_names(client: Any) -> None:
    name = path_of(pdi_of(client, "urn:example:5"))
    allowed = "GET, HEAD, OPTIONS, PUT"
    for method in ("DELETE", "POST", "PATCH", "TRACE"):
        answer = client.request(method, name)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert client.request("PUT", name).status_code == 401
    assert client.request("DELETE", "/pdi/db.example.ch/2001/01/01/1.text.1").status_code == 405
    answer = client.options(name)
    assert (answer.status_code, answer.headers["allow"]) == (204, allowed)
    assert client.options("/pdi/other.example.ch/2001/01/01/1.text.1").status_code == 404


def test_patterns_list_what_is_known_in_pages(client: Any) -> None:
    question, found = "/pdi/db.example.ch/*/*/*/*", []
    while question:
        answer = client.get(question, headers={"Accept": "application/json"})
        assert answer.status_code == 200, answer.text
        found += answer.json()["pdis"]
        link = answer.headers.get("link", "")
        assert answer.json()["complete"] == (not link)
        question = link.partition(">")[0].partition("8180")[2]
    assert len(found) == len(set(found)) == OBJECTS - 1
    text = client.get("/pdi/db.example.ch/*/*/*/*.*.2").text
    assert pdi_of(client, "urn:example:3") in text.split("\r\n")


def test_withdrawn_documents_leave_a_tombstone(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    with Store(tmp_path / "store") as store:
        found = store.find("urn:example:8")
        store.names.withdraw(found.pdi, "it was wrong", "the archive")
        stream = store.object(found).streams[0].identifier
    with serving(tmp_path / "store") as (base, _):
        answer = httpx2.get(base + path_of(found.pdi))
        assert answer.status_code == 410
        assert "it was wrong" in answer.json()["title"]
        question = {"url_ver": "Z39.88-2004", "rft_id": stream}
        assert httpx2.get(f"{base}/openurl", params=question).status_code == 410
        assert httpx2.get(f"{base}/locate", params={"id": "urn:example:8"}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/pdi/", "/pdi/x", "/pdi/db.example.ch/2001/13/01/1.text.1", "/pdi/%00", "/pdi/..%2f..%2fx",
        "/pdi/db.example.ch/2001/01/01/1.text.0", "/pdi/" + "a" * 5000,
        "/pdi/db.example.ch/2001/01/01/%0d%0aX-Evil:1.text.1", "/pdi/*/1997/09/01/1",
        "/pdi/db.example.ch/*/*/*/*?after=x",
    ],
)  # fmt: skip
def test_what_is_no_name_is_refused(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (400, 404)
    assert "x-evil" not in answer.headers


def test_records_of_other_makers_are_harvested_too(tmp_path: Path) -> None:
    document = b'<r:book xmlns:r="urn:example:books"><r:name>&lt;A&gt;</r:name></r:book>'
    (tmp_path / "book.xml").write_bytes(document)
    with Store.create(tmp_path / "store") as store:
        import_records(store, [tmp_path / "book.xml"])
    with serving(tmp_path / "store") as (base, _):
        whole = Sickle(f"{base}/oai")
        [header] = whole.ListIdentifiers(metadataPrefix="didl")
        record = whole.GetRecord(identifier=header.identifier, metadataPrefix="didl")
        assert record.xml.find(".//{urn:example:books}name").text == "<A>"
        assert record.xml.find(f"{OAI}metadata")[0].tag == DIDL
        core = whole.GetRecord(identifier=header.identifier, metadataPrefix="oai_dc")
        assert core.metadata["identifier"] == [header.identifier]
        with pytest.raises(CannotDisseminateFormat):
            whole.GetRecord(identifier=header.identifier, metadataPrefix="mets")
        assert httpx2.get(f"{base}/uri-res/N2R?{header.identifier}").content == document
