"""ContextObjects by value and by reference, as keys and as XML, on a running server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest
from doors import serving
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import MunimentError
from muniment.identifiers.openurl import ContextObject
from muniment.repository import Session, Source, Store
from muniment.web.doors.answers import Refusal
from muniment.web.doors.contexts import XML, parse_context, parse_envelope

BASE = "http://127.0.0.1:8180"
KEV = "info:ofi/fmt:kev:mtx:ctx"
LIST = "info:lanl-repo/svc/identifiers.list"


def as_xml(referent: str, service: str = "") -> bytes:
    more = f"<c:service-type><c:identifier>{service}</c:identifier></c:service-type>"
    return (
        f'<c:context-objects xmlns:c="{XML}"><c:context-object version="Z39.88-2004">'
        f"<c:referent><c:identifier>{referent}</c:identifier></c:referent>"
        f"{more if service else ''}</c:context-object></c:context-objects>"
    ).encode()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    class Kept(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            bodies = {"/good": b"rft_id=urn:example:a", "/large": b"x" * 100_000}
            self.send_response(200 if self.path in bodies else 302)
            self.send_header("Location", "/good")
            self.end_headers()
            self.wfile.write(bodies.get(self.path, b""))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Kept)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, elsewhere: str) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("contexts") / "store"
    with Store.create(folder, series="db.example.ch") as store:
        with Session(store) as session:
            session.add([Source("a.txt", b"a\n", "text/plain")], contents=["urn:example:a"])
        inner = b"ctx_ver=Z39.88-2004&rft_id=urn:example:a\n"
        with Session(store) as session:
            session.add([Source("k", inner, "text/plain")], contents=["urn:example:kev"])
            session.add(
                [Source("x", as_xml("urn:example:a"), "text/xml")], contents=["urn:example:xml"]
            )
        pdi = store.find("urn:example:kev").pdi
        name = store.object(store.find("urn:example:a")).streams[0].identifier
    with (
        serving(folder, "--context-from", elsewhere) as (base, _),
        httpx2.Client(base_url=base) as client,
    ):
        yield {"client": client, "pdi": pdi, "stream": name}


def ask(world: dict[str, Any], **keys: str) -> Any:
    return world["client"].get("/openurl", params={"url_ver": "Z39.88-2004", **keys})


@pytest.mark.parametrize("reference", ["urn:example:kev", "pdi", "url"])
def test_what_lies_here_is_read(world: dict[str, Any], reference: str) -> None:
    path = world["pdi"].removeprefix("pdi://")
    there = {"pdi": world["pdi"], "url": f"{BASE}/pdi/{path}"}.get(reference, reference)
    answer = ask(world, url_ctx_fmt=KEV, url_ctx_ref=there)
    assert (answer.status_code, answer.text) == (200, "a\n")


def test_contexts_as_xml(world: dict[str, Any]) -> None:
    by_reference = ask(world, url_ctx_fmt=XML, url_ctx_ref="urn:example:xml")
    assert by_reference.text == "a\n"
    by_value = ask(world, url_ctx_fmt=XML, url_ctx_val=as_xml(world["stream"]).decode())
    assert by_value.text == "a\n"
    listed = ask(world, url_ctx_fmt=XML, url_ctx_val=as_xml("urn:x:y", LIST).decode())
    assert world["stream"] in listed.text.split("\r\n")
    posted = world["client"].post(
        "/openurl",
        data={
            "url_ver": "Z39.88-2004",
            "url_ctx_fmt": XML,
            "url_ctx_val": as_xml(world["stream"]).decode(),
        },
    )
    assert posted.text == "a\n"


def test_other_addresses_are_asked_only_if_they_were_named(
    world: dict[str, Any], elsewhere: str
) -> None:
    def status(reference: str) -> int:
        answer = ask(world, url_ctx_fmt=KEV, url_ctx_ref=reference)
        return int(answer.status_code)

    assert status(f"{elsewhere}/good") == 200
    assert status(f"{elsewhere}/large") == 502
    assert status(f"{elsewhere}/moved") == 502  # redirects are not followed
    assert status("http://127.0.0.1:1/") == 501
    assert status(f"{elsewhere}0/good") == 501
    assert status("http://169.254.169.254/latest/meta-data") == 501
    assert status("file:///etc/passwd") == 404
    assert status("urn:example:nothing") == 404


@pytest.mark.parametrize(
    ("keys", "status"),
    [
        ({"url_ctx_val": "rft_id=a:b", "url_ctx_ref": "urn:a:b"}, 400),
        ({"url_ctx_val": "rft_id=a:b", "url_ctx_fmt": "info:ofi/fmt:other"}, 501),
        ({"url_ctx_val": "<x", "url_ctx_fmt": XML}, 400),
        ({"url_ctx_val": "<x/>", "url_ctx_fmt": XML}, 400),
        ({"url_ctx_val": "é"}, 400),
        ({"url_ctx_val": "rft_id=urn:a:b&svc_id=info:x"}, 501),
        ({"url_ctx_val": "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><x>&a;</x>", "url_ctx_fmt": XML}, 400),
    ],
)  # fmt: skip
def test_what_cannot_be_a_context_is_refused(
    world: dict[str, Any], keys: dict[str, str], status: int
) -> None:
    assert ask(world, **keys).status_code == status


@given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode), st.sampled_from([KEV, XML]))
def test_any_bytes_are_a_context_or_refused(data: bytes, form: str) -> None:
    try:
        assert isinstance(parse_context(data, form), ContextObject)
    except Refusal as refusal:
        assert refusal.status == 400
    except MunimentError:
        pass


keys = st.sampled_from(
    ["url_ver", "url_ctx_val", "url_ctx_ref", "url_ctx_fmt", "rft_id", "svc_id", "ctx_ver", "x"]
)
values = st.sampled_from(["Z39.88-2004", "z39.88-2004", KEV, XML, "", "urn:a:b", "%ff", "%26"])


@given(st.lists(st.tuples(keys, values)), st.binary(max_size=20))
def test_any_query_is_an_openurl_or_refused(pairs: list[tuple[str, str]], tail: bytes) -> None:
    query = "&".join(f"{key}={value}" for key, value in pairs).encode() + tail
    try:
        parse_envelope(query)
    except Refusal as refusal:
        assert refusal.status in (400, 501)
    except MunimentError:
        pass
