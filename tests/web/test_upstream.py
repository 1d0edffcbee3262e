"""Names that others resolve: real servers that pass them on to one another, and one circle."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import pytest
from doors import serving

from muniment.errors import MunimentError
from muniment.identifiers import parse_pdi
from muniment.repository import Session, Source, Store
from muniment.repository.tokens import create_token
from muniment.web.doors.upstream import parse_upstream


def make(folder: Path, series: str) -> str:
    with Store.create(folder, series=series) as store, Session(store) as session:
        session.add(
            [Source("a.txt", f"of {series}\n".encode(), "text/plain")],
            contents=[f"urn:example:{series}"],
            metadata=[("title", f"A document of {series}")],
        )
        session.commit()
        return session.acknowledged[0].pdi


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Three servers: the last keeps the document, the others ask it, by HTTP and by THTTP."""
    home = tmp_path_factory.mktemp("world")
    found = {name: make(home / name, f"{name}.example.ch") for name in ("one", "two", "three")}
    with Store(home / "three") as store:
        token = create_token(store.names, "test", ["series:three.example.ch"], "test", None)[1]
    with ExitStack() as stack:
        last, _ = stack.enter_context(serving(home / "three", "--workers", "1"))
        middle, _ = stack.enter_context(
            serving(home / "two", "--workers", "1", "--upstream", "three.example.ch", "thttp", last)
        )
        first, _ = stack.enter_context(
            serving(
                home / "one", "--workers", "2",
                "--upstream", "three.example.ch:19000101-19001231", "http", "http://127.0.0.1:1",
                "--upstream", "three.example.ch", "http", middle,
                "--upstream", "*.elsewhere.ch", "redirect", "http://resolver.invalid/",
                "--upstream", "two.example.ch", "http", f"{middle}/pdi",
                "--upstream", "dead.example.ch", "thttp", "http://127.0.0.1:1/",
            )
        )  # fmt: skip
        yield {"first": first, "middle": middle, "last": last, "token": token, **found}


def path_of(pdi: str) -> str:
    return "/pdi/" + pdi.removeprefix("pdi://").replace("#", "%23")


def test_a_document_comes_through_two_servers_and_two_protocols(world: dict[str, Any]) -> None:
    answer = httpx2.get(world["first"] + path_of(world["three"]))
    assert (answer.status_code, answer.text) == (200, "of three.example.ch\n")
    assert answer.headers["content-location"] == world["three"]
    direct = httpx2.get(world["last"] + path_of(world["three"]))
    assert answer.headers["etag"] == direct.headers["etag"]
    assert len(answer.headers["via"].split(",")) >= 1
    assert "muniment-" in answer.headers["via"]
    part = httpx2.get(world["first"] + path_of(world["three"] + "#0,2"))
    assert part.text == "of"
    some = httpx2.get(world["first"] + path_of(world["three"]), headers={"Range": "bytes=3-7"})
    assert (some.status_code, some.text) == (206, "three")
    again = httpx2.get(
        world["first"] + path_of(world["three"]),
        headers={"If-None-Match": direct.headers["etag"]},
    )
    assert again.status_code == 304


def test_what_is_known_here_is_answered_here(world: dict[str, Any]) -> None:
    answer = httpx2.get(world["first"] + path_of(world["one"]))
    assert answer.text == "of one.example.ch\n"
    assert "via" not in answer.headers
    assert httpx2.get(world["first"] + "/pdi/nobody.example.ch/2001/01/01/1").status_code == 404


def test_an_upstream_with_a_path(world: dict[str, Any]) -> None:
    assert httpx2.get(world["first"] + path_of(world["two"])).text == "of two.example.ch\n"


def test_a_head_by_thttp_is_a_description_and_other_methods_are_refused(
    world: dict[str, Any],
) -> None:
    answer = httpx2.head(world["middle"] + path_of(world["three"]))
    assert answer.status_code == 200
    assert answer.content == b""
    for method in ("PUT", "POST", "DELETE"):
        refused = httpx2.request(method, world["middle"] + path_of(world["three"]), content=b"x")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
    service = httpx2.get(f"{world['middle']}/uri-res/N2C?{world['three']}")
    assert "A document of three.example.ch" in service.text
    assert httpx2.get(f"{world['first']}/uri-res/N2R?{world['three']}").status_code == 200
    assert httpx2.get(f"{world['first']}/uri-res/N2Ns?{world['three']}").status_code == 404


def test_a_redirect_leads_there(world: dict[str, Any]) -> None:
    answer = httpx2.get(world["first"] + "/pdi/a.b.elsewhere.ch/2001/01/01/1.text.1")
    assert answer.status_code == 307
    where = "http://resolver.invalid/uri-res/N2R?pdi://a.b.elsewhere.ch/2001/01/01/1.text.1"
    assert answer.headers["location"] == where


def test_an_interval_is_looked_at(world: dict[str, Any]) -> None:
    old = httpx2.get(world["first"] + "/pdi/three.example.ch/1900/05/05/1.text.1")
    assert old.status_code == 502
    assert httpx2.get(world["first"] + "/pdi/dead.example.ch/2001/01/01/1").status_code == 502


@contextmanager
def circle(tmp_path: Path) -> Iterator[list[str]]:
    """Two servers, each of which believes that the other one knows."""

    class Lead(BaseHTTPRequestHandler):
        target: ClassVar[str] = ""

        def do_GET(self) -> None:
            asked = self.path if self.path.startswith("/") else f"/{self.path}"
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            answer = httpx2.get(self.target + asked, headers=headers)
            self.send_response(answer.status_code)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    bridge = ThreadingHTTPServer(("127.0.0.1", 0), Lead)
    threading.Thread(target=bridge.serve_forever, daemon=True).start()
    back = f"http://127.0.0.1:{bridge.server_port}"
    make(tmp_path / "a", "a.example.ch")
    make(tmp_path / "b", "b.example.ch")
    try:
        with (
            serving(tmp_path / "b", "--workers", "1", "--upstream", "c.example.ch", "http", back) as (b, _),
            serving(tmp_path / "a", "--workers", "1", "--upstream", "c.example.ch", "thttp", b) as (a, _),
        ):  # fmt: skip
            Lead.target = a
            yield [a, b]
    finally:
        bridge.shutdown()
        bridge.server_close()


def test_a_circle_is_cut(tmp_path: Path) -> None:
    with circle(tmp_path) as (a, b):
        for each in (a, b):
            answer = httpx2.get(f"{each}/pdi/c.example.ch/2001/01/01/1.text.1", timeout=30)
            assert answer.status_code == 508


def test_this_is_no_open_proxy(world: dict[str, Any]) -> None:
    for target in ("http://127.0.0.1:1/", "http://example.invalid/x", f"{world['last']}/healthz"):
        command = [
            "curl",
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "-x",
            world["first"],
            target,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.stdout in ("404", "421", "200")  # answered here, as a path of this server
    with httpx2.Client() as client:
        asked = client.build_request("GET", world["first"], extensions={"target": b"http://127.0.0.1:1/locate?id=urn:x:y"})  # fmt: skip
        assert client.send(asked).status_code in (404, 421)


def test_writing_is_passed_on_with_the_token_of_the_other_server(tmp_path: Path) -> None:
    make(tmp_path / "a", "a.example.ch")
    pdi = make(tmp_path / "b", "b.example.ch")
    with Store(tmp_path / "b") as store:
        theirs = create_token(store.names, "test", ["series:b.example.ch"], "test", None)[1]
    with Store(tmp_path / "a") as store:
        ours = create_token(store.names, "test", ["series:a.example.ch"], "test", None)[1]
    with (
        serving(tmp_path / "b", "--workers", "1") as (b, _),
        serving(tmp_path / "a", "--workers", "1", "--upstream", "b.example.ch", "http", b) as (
            a,
            _,
        ),
    ):
        headers = {"Content-Type": "text/plain", "Authorization": f"Bearer {theirs}"}
        made = httpx2.put(a + path_of(pdi), content=b"new\n", headers=headers)
        assert made.status_code == 201, made.text
        assert made.headers["content-location"] == pdi[:-1] + "2"
        assert httpx2.get(a + path_of(pdi.rpartition(".")[0])).text == "new\n"
        headers["Authorization"] = f"Bearer {ours}"
        assert httpx2.put(a + path_of(pdi), content=b"x", headers=headers).status_code == 403
        assert httpx2.delete(a + path_of(pdi)).status_code == 405


@pytest.mark.parametrize(
    "given",
    [
        ("a.example.ch", "ftp", "http://localhost/"),
        ("a.example.ch", "http", "localhost"),
        ("a.example.ch", "http", "file:///etc/passwd"),
        ("a.example.ch", "http", "http://localhost/?q=1"),
        ("example", "http", "http://localhost/"),
        ("a.example.ch:1997-1998", "http", "http://localhost/"),
        ("*", "http", "http://localhost/"),
    ],
)
def test_what_cannot_be_an_upstream_is_refused(given: tuple[str, str, str]) -> None:
    with pytest.raises(MunimentError):
        parse_upstream(*given)


def test_series_and_days() -> None:
    wild = parse_upstream("*.gov.us:19970101-19971231", "http", "http://localhost:8000/")
    assert wild.covers(parse_pdi("pdi://oma.eop.gov.us/1997/12/31/1.text.1"))
    assert not wild.covers(parse_pdi("pdi://oma.eop.gov.us/1998/01/01/1.text.1"))
    assert not wild.covers(parse_pdi("pdi://evilgov.us/1997/12/31/1.text.1"))
    assert json.dumps(wild.url) == '"http://localhost:8000"'
