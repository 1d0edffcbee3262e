"""Whatever is asked at the doors, the answer is one of the protocol's own: never 500."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lxml import etree

from muniment.repository import Session, Source, Store
from muniment.web.doors.app import create_doors
from muniment.web.doors.desk import Desk
from muniment.web.doors.upstream import Upstreams

OAI = "{http://www.openarchives.org/OAI/2.0/}"


class Asked:
    """The application, asked as a server asks it."""

    def __init__(self, folder: Path) -> None:
        self.desk = Desk(folder, "http://127.0.0.1:8180", ("archive@example.ch",))
        self.app = create_doors(self.desk, upstreams=Upstreams((), "test"))
        self.loop = asyncio.new_event_loop()

    def __call__(
        self, target: bytes, headers: list[tuple[bytes, bytes]] | None = None,
        method: str = "GET", body: bytes = b"",
    ) -> tuple[int, dict[bytes, bytes], bytes]:  # fmt: skip
        return self.loop.run_until_complete(self._asked(target, headers or [], method, body))

    async def _asked(
        self, target: bytes, headers: list[tuple[bytes, bytes]], method: str, body: bytes
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        from urllib.parse import unquote

        raw, _, query = target.partition(b"?")
        scope: dict[str, Any] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "root_path": "", "path": unquote(raw.decode("latin-1")),
            "raw_path": raw, "query_string": query, "headers": headers, "state": {},
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
        }  # fmt: skip
        said: dict[str, Any] = {"status": 0, "headers": {}, "body": b""}
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                said.update(status=message["status"], headers=dict(message["headers"]))
            else:
                said["body"] += message.get("body", b"")

        await self.app(scope, receive, send)
        return said["status"], said["headers"], said["body"]

    def close(self) -> None:
        self.desk.close()
        self.loop.close()


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("any") / "store"
    with Store.create(folder, series="db.example.ch") as store:
        with Session(store) as session:
            session.add(
                [Source("a.txt", b"hello, world\n", "text/plain")], contents=["urn:example:a"]
            )
            session.add([Source("b.txt", b"b", "text/plain")], contents=["urn:example:b"])
        found = store.find("urn:example:a")
        stream = store.object(found).streams[0].identifier
    asked = Asked(folder)
    yield {"ask": asked, "names": [found.pdi, found.identifier, stream, "urn:example:a"]}
    asked.close()


quiet = settings(
    max_examples=700,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# Octets that an HTTP parser lets through in a request target.
octets = st.lists(st.integers(0x21, 0xFF), max_size=40).map(bytes)
escaped = st.text(max_size=30).map(lambda text: quote(text, errors="surrogatepass").encode())
arguments = st.sampled_from(
    [b"verb", b"identifier", b"metadataPrefix", b"from", b"until", b"set", b"resumptionToken"]
)
values = st.sampled_from(
    [
        b"Identify", b"ListRecords", b"GetRecord", b"ListSets", b"ListIdentifiers", b"didl",
        b"ListMetadataFormats", b"oai_dc", b"mets", b"2026-11-15", b"format:text", b"tape",
        b"collection:ch", b"collection", b"collection:*", b"", b"%00", b"%ff", b"urn:example:a",
        b"oai:db.example.ch:x", b"oai:db.example.ch:%25", b"%ed%a0%80",
    ]
)  # fmt: skip


@quiet
@given(st.lists(st.tuples(arguments | escaped, values | escaped | octets), max_size=6))
@example([(b"verb", b"GetRecord"), (b"metadataPrefix", b"didl"), (b"identifier", b"%ed%a0%80")])
def test_oai_pmh_answers_everything(
    known: dict[str, Any], pairs: list[tuple[bytes, bytes]]
) -> None:
    query = b"&".join(name + b"=" + value for name, value in pairs)
    got = known["ask"](b"/oai?" + query)
    assert got[0] in (200, 400), got
    if got[0] == 200:
        assert etree.fromstring(got[2]).tag == f"{OAI}OAI-PMH"
    form = [(b"content-type", b"application/x-www-form-urlencoded")]
    posted = known["ask"](b"/oai", form, "POST", query)
    assert posted[0] == got[0]


keys = st.sampled_from(
    [b"url_ver", b"rft_id", b"svc_id", b"res_id", b"url_ctx_fmt", b"url_ctx_val", b"url_ctx_ref"]
)
meanings = st.sampled_from(
    [
        b"Z39.88-2004", b"z39.88-2004", b"info:ofi/fmt:kev:mtx:ctx", b"info:ofi/fmt:xml:xsd:ctx",
        b"info:lanl-repo/svc/getDatastream", b"info:lanl-repo/svc/identifiers.list",
        b"urn:example:a", b"pdi://db.example.ch/2001/01/01/1.text.1", b"", b"%00", b"%ff",
        b"http://127.0.0.1:8180/pdi/x", b"http://[", b"pdi://%2e%2e/",
    ]
)  # fmt: skip


@quiet
@given(st.lists(st.tuples(keys, meanings | escaped | octets), max_size=5), st.booleans())
@example([(b"url_ver", b"Z39.88-2004"), (b"url_ctx_ref", b"http://127.0.0.1:8180/pdi/x")], True)
@example([(b"url_ver", b"Z39.88-2004"), (b"url_ctx_ref", b"http://127.0.0.1:8180/x?id=%ff")], True)
def test_openurl_answers_everything(
    known: dict[str, Any], pairs: list[tuple[bytes, bytes]], whole: bool
) -> None:
    query = b"&".join(name + b"=" + value for name, value in pairs)
    status, _, _ = known["ask"]((b"/openurl?" if whole else b"/openurl/x?") + query)
    assert status in (200, 400, 404, 501), (status, query)


services = st.sampled_from(
    [
        b"N2L", b"N2Ls", b"N2R", b"N2Rs", b"N2C", b"N2Cs", b"N2Ns", b"L2Ns", b"L2Ls", b"L2C",
        b"I2L", b"I2N", b"I=I", b"N2X", b"%ff",
    ]
)  # fmt: skip
accepted = st.sampled_from(
    [b"", b"*/*", b"text/turtle", b"application/rdf+xml", b"text/uri-list;q=x", b"\xff", b",;,"]
)
stems = st.sampled_from(
    [
        b"urn:example:", b"urn:example:pdi:", b"urn:example:example:", b"pdi://db.example.ch/",
        b"http://127.0.0.1:8180/", b"http://127.0.0.1:8180/pdi/", b"http://[", b"info:",
        b"urn:uuid:", b"URN:PDI://", b"a%20b:c%20", b"urn:a:b%20urn:",
    ]
)  # fmt: skip


@quiet
@given(services, stems, octets | escaped, accepted)
@example(b"L2Ns", b"http://127.0.0.1:8180/", b"x?id=%ff", b"")
@example(b"N2R", b"http://127.0.0.1:8180/pdi/", b"\xff", b"")
def test_resolvers_answer_everything(
    known: dict[str, Any], service: bytes, stem: bytes, rest: bytes, accept: bytes
) -> None:
    target = b"/uri-res/" + service + b"?" + stem + rest.replace(b"#", b"%23")
    status, headers, _ = known["ask"](target, [(b"accept", accept)])
    assert status in (200, 303, 400, 404, 406), (status, target)
    assert b"\r" not in b"".join(headers.values())


@quiet
@given(services, st.lists(stems.flatmap(lambda s: escaped.map(lambda e: s + e)), max_size=5))
def test_many_are_answered_one_by_one(
    known: dict[str, Any], service: bytes, uris: list[bytes]
) -> None:
    kind = [(b"content-type", b"text/uri-list")]
    target = b"/uri-res/" + service
    status, _, body = known["ask"](target, kind, "POST", b"\r\n".join(uris))
    assert status in (200, 400, 404, 405)
    if status == 200 and service != b"I=I":
        assert len(body.splitlines()) == len(uris)


parts = st.sampled_from(
    [b"db.example.ch", b"2026", b"*", b"11", b"16", b"1.text.1", b"1.text", b"1"]
)
marks = st.sampled_from([b"%23", b"#", b"@", b"=", b"/", b".", b"(", b","])
dates = st.sampled_from(
    [b"", b"Mon, 16 Nov 2026 00:00:00 GMT", b"Thu, 01 Jan 0001 00:00:00 -2359", b"\xff", b"0"]
)


@quiet
@given(
    st.sampled_from([b"/pdi/", b"/timemap/", b"pdi://", b"/"]),
    st.lists(parts | marks | octets, max_size=8),
    dates,
)
@example(b"/pdi/", [b"db.example.ch/2026/11/16/1"], b"Thu, 01 Jan 0001 00:00:00 -2359")
def test_names_as_urls_answer_everything(
    known: dict[str, Any], head: bytes, pieces: list[bytes], date: bytes
) -> None:
    target = head + b"/".join(pieces)
    headers = [(b"accept-datetime", date)] if date else []
    for method in ("GET", "HEAD", "OPTIONS", "DELETE"):
        status, found, _ = known["ask"](target, headers, method)
        assert status in (200, 204, 302, 400, 404, 405, 406, 414, 421), (status, method, target)
        assert b"\n" not in b"".join(found.values())


@quiet
@given(
    st.sampled_from(
        ["Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "Accept"]
    ),
    octets
    | st.sampled_from([b"bytes=0-1", b"bytes=-1,0-", b'"x"', b"W/", b"*", b"Mon, 16 Nov 2026"]),
)
def test_any_header_of_a_document(known: dict[str, Any], name: str, value: bytes) -> None:
    for each in known["names"]:
        for target in (
            b"/openurl?url_ver=Z39.88-2004&rft_id=" + each.encode(), b"/uri-res/N2R?" + each.encode(),
        ):  # fmt: skip
            status, _, _ = known["ask"](target, [(name.lower().encode(), value)])
            assert status in (200, 206, 304, 404, 406, 412, 416), (status, target, value)
