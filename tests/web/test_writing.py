"""PUT on a running server: who may, what becomes of it, and that nothing is ever changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from doors import raw, serving

from muniment.repository import Session, Source, Store
from muniment.repository.tokens import create_token, revoke_token
from muniment.repository.verify import verify

SERIES = "db.example.ch"
HOME = f"/pdi/{SERIES}/"
TEXT = {"Content-Type": "text/plain"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("writing") / "store"
    with Store.create(made, series=SERIES) as store:
        store.names.add_series("other.example.ch")
        store.names.add_series("closed.example.ch")
        store.names.change_series("closed.example.ch", "closed", "it ended", "me")
        with Session(store) as session:
            session.add([Source("a.txt", b"first\n", "text/plain")], contents=["urn:example:a"])
    return made


@pytest.fixture(scope="module")
def tokens(folder: Path) -> dict[str, str]:
    scopes = {
        "series": [f"series:{SERIES}"], "store": ["store"], "staff": ["staff"],
        "registry": ["registry"], "describe": ["describe"],
    }  # fmt: skip
    with Store(folder) as store:
        return {
            name: create_token(store.names, f"The {name}", scope, "me", 1)[1]
            for name, scope in scopes.items()
        }


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[tuple[str, int]]:
    with serving(folder, "--largest", "1M") as address:
        yield address


@pytest.fixture(scope="module")
def client(server: tuple[str, int]) -> Iterator[Any]:
    with httpx2.Client(base_url=server[0]) as made:
        yield made


Put = Callable[..., Any]


@pytest.fixture
def put(client: Any, tokens: dict[str, str]) -> Put:
    def send(path: str, data: bytes = b"x", token: str = "series", **headers: str) -> Any:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        key = tokens.get(token, token)
        return client.put(
            path, content=data, headers={"Authorization": f"Bearer {key}", **TEXT, **given}
        )

    return send


def path_of(pdi: str) -> str:
    return "/pdi/" + pdi.removeprefix("pdi://").replace("#", "%23")


def test_a_series_gives_a_new_name(put: Put, client: Any, folder: Path) -> None:
    data = b"Hello\r\n"
    answer = put(HOME, data)
    assert answer.status_code == 201, answer.text
    pdi = answer.headers["content-location"]
    today = datetime.now(UTC).strftime("%Y/%m/%d")
    assert pdi.startswith(f"pdi://{SERIES}/{today}/")
    assert pdi.endswith(".text.1")
    assert answer.headers["location"].endswith(path_of(pdi))
    assert answer.json()["sha256"] == hashlib.sha256(data).hexdigest()
    got = client.get(path_of(pdi))
    assert (got.content, got.headers["etag"]) == (data, answer.headers["etag"])
    with Store(folder) as store:
        assert ("contributor", "The series") in store.object(store.find(pdi)).metadata
    assert put(HOME, data).headers["content-location"] != pdi


def test_a_name_gets_its_next_version_and_the_old_one_stays(put: Put, client: Any) -> None:
    first = put(HOME, b"one").headers["content-location"]
    second = put(path_of(first), b"two")
    assert second.status_code == 201
    assert second.headers["content-location"] == first[:-1] + "2"
    assert put(path_of(first), b"two").headers["content-location"] == first[:-1] + "3"
    without = path_of(first.rsplit(".", 1)[0])
    assert put(without, b"four").headers["content-location"] == first[:-1] + "4"
    generic = path_of(first.rsplit(".", 2)[0])
    html = put(generic, b"<p>five", Content_Type="text/html").headers["content-location"]
    assert html == first[:-6] + "html.5"
    for version, data in ((1, b"one"), (2, b"two"), (3, b"two"), (4, b"four")):
        assert client.get(path_of(f"{first[:-1]}{version}")).content == data


def test_if_match_guards_against_lost_updates(put: Put) -> None:
    first = put(HOME, b"one")
    path, tag = path_of(first.headers["content-location"]), first.headers["etag"]
    second = put(path, b"two", If_Match=tag)
    assert second.status_code == 201
    assert put(path, b"three", If_Match=tag).status_code == 412
    assert put(path, b"three", If_Match=f"W/{tag}, {second.headers['etag']}").status_code == 201
    assert put(path, b"four", If_Match="*").status_code == 201
    assert put(path, b"five", If_None_Match="*").status_code == 412
    assert put(path, b"five", If_Match='"nonsense"').status_code == 412


def test_another_format_joins_the_latest_version(put: Put, client: Any) -> None:
    html = put(HOME, b"<p>one", Content_Type="text/html").headers["content-location"]
    text = html.replace(".html.", ".text.")
    assert put(path_of(text), b"one").status_code == 404
    link = f'<{html}>; rel="alternate"'
    answer = put(path_of(text), b"one", Link=link)
    assert (answer.status_code, answer.headers["content-location"]) == (201, text)
    assert put(path_of(text), b"two", Link=link).status_code == 409
    generic = path_of(html.rsplit(".", 2)[0])
    for accept, data in (("text/html", b"<p>one"), ("text/plain", b"one")):
        assert client.get(generic, headers={"Accept": accept}).content == data
    other = f'<pdi://{SERIES}/2001/01/01/1.html.1>; rel="alternate"'
    assert put(path_of(text), b"two", Link=other).status_code == 409


def test_a_minted_name_gets_its_first_version(put: Put, client: Any, folder: Path) -> None:
    with Store(folder) as store:
        pdi = str(store.names.mint(SERIES)[0])
    assert client.get(path_of(pdi)).status_code == 404
    assert put(path_of(pdi), b"one", If_Match="*").status_code == 412
    answer = put(path_of(pdi), b"one", If_None_Match="*")
    assert (answer.status_code, answer.headers["content-location"]) == (201, pdi)
    assert client.get(path_of(pdi)).content == b"one"


def test_a_repeated_request_gives_the_same_name(put: Put) -> None:
    first = put(HOME, b"one", Idempotency_Key="k1")
    again = put(HOME, b"one", Idempotency_Key="k1")
    assert again.status_code == 201
    assert again.headers["content-location"] == first.headers["content-location"]
    other = put(HOME, b"one", token="store", Idempotency_Key="k1")
    assert other.headers["content-location"] != first.headers["content-location"]
    quoted = put(HOME, b"one", Idempotency_Key='"k1"')
    assert quoted.headers["content-location"] == first.headers["content-location"]
    for wrong in ("a b", "a" * 201, '"'):
        assert put(HOME, b"one", Idempotency_Key=wrong).status_code == 400


@pytest.mark.parametrize("token", ["staff", "registry", "describe"])
def test_another_scope_is_refused(put: Put, token: str) -> None:
    answer = put(HOME, token=token)
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]


def test_a_series_token_is_for_its_series_alone(put: Put) -> None:
    assert put("/pdi/other.example.ch/").status_code == 403
    assert put("/pdi/other.example.ch/", token="store").status_code == 201


def test_no_token_and_wrong_tokens(client: Any, folder: Path, tokens: dict[str, str]) -> None:
    answer = client.put(HOME, content=b"x", headers=TEXT)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (
        401,
        'Bearer realm="muniment"',
    )
    good = tokens["series"]
    with Store(folder) as store:
        made, ended = create_token(store.names, "Gone", ["store"], "me", 1)
        revoke_token(store.names, made.id, "me")
    wrong = ["x", good[:-1], good + "x", ended, f"{good},{good}", "é", "Bearer"]
    for text in wrong:
        value = f"Bearer {text}".encode()
        answer = client.put(HOME, content=b"x", headers=[(b"Authorization", value)])
        assert answer.status_code == 401, text
        assert "invalid_token" in answer.headers["www-authenticate"]
    both = [(b"Authorization", f"Bearer {good}".encode())] * 2
    assert client.put(HOME, content=b"x", headers=both).status_code == 401
    basic = client.put(HOME, content=b"x", headers={"Authorization": f"Basic {good}"})
    assert basic.status_code == 401
    # A wrong token is told of by reading, too.
    assert client.get("/healthz", headers={"Authorization": "Bearer x"}).status_code == 401


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/pdi/{SERIES}/2001/01/01/1.text.1", 404),
        (f"/pdi/{SERIES}/2001/01/01/1", 404),
        (f"/pdi/{SERIES}/*/*/*/*", 405),
        (f"/pdi/{SERIES}/2001/01/01/1.text.1%230,5", 405),
        (f"/pdi/{SERIES}/2001/01/01/1.text.1@5=pdi://{SERIES}/2001/01/01/1.text.1", 405),
        ("/pdi/closed.example.ch/", 405),
        ("/pdi/unknown.example.ch/", 405),
        ("/pdi/unknown.example.ch/2001/01/01/1.text.1", 405),
        ("/pdi/x", 400),
        ("/pdi/", 400),
        (f"/pdi/{SERIES}/2001/01/01/1.text.0", 400),
    ],
)
def test_what_cannot_be_put(put: Put, path: str, status: int) -> None:
    answer = put(path, token="store")
    assert answer.status_code == status, answer.text
    assert (status == 405) == ("allow" in answer.headers)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "nonsense"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Type": "text/plain\tx/y"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": f"text/{'x' * 300}"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Range": "bytes 0-1/2"}, 400),
        ({"Content-Digest": f"sha-256=:{b64encode(bytes(32)).decode()}:"}, 400),
        ({"Content-Type": "application/x-siard"}, 422),
    ],
)
def test_documents_that_are_refused(put: Put, headers: dict[str, str], status: int) -> None:
    answer = put(HOME, b"x", **{name.replace("-", "_"): value for name, value in headers.items()})
    assert answer.status_code == status, answer.text


def test_a_digest_that_is_right(put: Put) -> None:
    digest = b64encode(hashlib.sha256(b"x").digest()).decode()
    assert put(HOME, b"x", Content_Digest=f"sha-256=:{digest}:").status_code == 201
    assert put(HOME, b"x", Digest=f"SHA-256={digest}").status_code == 201


def test_media_types_and_file_names(put: Put, folder: Path) -> None:
    disposition = "attachment; filename*=UTF-8''..%2F..%2Fetc%2FPl%C3%A4ne.txt"
    utf8 = put(HOME, "é".encode(), Content_Type="text/plain; charset=utf-8",
               Content_Disposition=disposition)  # fmt: skip
    assert utf8.headers["content-location"].endswith(".utf-8.1")
    strange = put(HOME, b"x", Content_Type="application/vnd.example.thing+json")
    assert strange.headers["content-location"].endswith(".vnd%2eexample%2ething%2bjson.1")
    with Store(folder) as store:
        stream = store.object(store.find(utf8.headers["content-location"])).streams[0]
    assert "/" not in stream.path
    assert stream.path == "_.._etc_Pläne.txt"


def test_an_archive_is_described_by_itself(put: Put, folder: Path, sample: Path) -> None:
    data = sample.read_bytes()
    with serving(folder) as (base, _), Store(folder) as store:
        _, key = create_token(store.names, "Big", ["store"], "me", 1)
        answer = httpx2.put(base + HOME, content=data, headers={
            "Authorization": f"Bearer {key}", "Content-Type": "application/x-siard",
            "Content-Disposition": "attachment; filename=trees.siard",
        })  # fmt: skip
        assert answer.status_code == 201, answer.text
        pdi = answer.headers["content-location"]
        assert pdi.endswith(".siard.1")
        row = httpx2.get(f"{base}{path_of(pdi)}%23row=(s0,t0,r1)")
        assert row.status_code == 200
        assert ("type", "Dataset") in store.object(store.find(pdi)).metadata


def test_documents_have_a_limit(put: Put, client: Any, tokens: dict[str, str]) -> None:
    assert put(HOME, bytes(1_000_000)).status_code == 201
    assert put(HOME, bytes(1_000_001)).status_code == 413
    chunks = client.put(HOME, content=iter([bytes(1 << 19)] * 3), headers={
        "Authorization": f"Bearer {tokens['series']}", **TEXT})  # fmt: skip
    assert chunks.status_code == 413


def test_the_absolute_form_on_a_bare_socket(server: tuple[str, int], tokens: Any) -> None:
    def send(method: str, target: str, body: bytes = b"") -> tuple[int, dict[str, str]]:
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n"
            f"Authorization: Bearer {tokens['series']}\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        answer = raw(server[1], head.encode() + body).decode("latin-1").partition("\r\n\r\n")[0]
        first, *rest = answer.split("\r\n")
        pairs = (line.partition(": ") for line in rest)
        return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}

    status, headers = send("PUT", f"pdi://{SERIES}/", b"absolute")
    assert status == 201
    pdi = headers["content-location"]
    assert headers["location"] == pdi
    assert send("PUT", pdi, b"second")[1]["content-location"] == pdi[:-1] + "2"
    assert send("PUT", f"urn:{pdi}", b"third")[0] == 201
    assert send("PUT", f"{pdi}#0,5", b"x")[0] == 405
    assert send("DELETE", pdi)[0] == 405
    status, headers = send("OPTIONS", f"pdi://{SERIES}/")
    assert (status, headers["allow"]) == (204, "OPTIONS, PUT")
    assert send("GET", f"pdi://{SERIES}/")[0] == 405
    assert send("HEAD", pdi)[0] == 200


def test_methods(client: Any, put: Put) -> None:
    path = path_of(put(HOME).headers["content-location"])
    for method in ("DELETE", "POST", "PATCH", "TRACE"):
        answer = client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS, PUT")
    assert client.options(path).headers["allow"] == "GET, HEAD, OPTIONS, PUT"
    assert client.options(f"/pdi/{SERIES}/*/*/*/*").headers["allow"] == "GET, HEAD, OPTIONS"
    assert client.request("DELETE", f"/pdi/{SERIES}/2001/01/01/1").status_code == 405


def test_trace_shows_the_request_without_its_secrets(folder: Path, tokens: Any) -> None:
    with serving(folder, "--trace") as (_, port):
        pdi = f"pdi://{SERIES}/2001/01/01/1.text.1"
        head = (
            f"TRACE {pdi} HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n"
            f"Authorization: Bearer {tokens['series']}\r\nCookie: secret\r\nX-Seen: yes\r\n\r\n"
        )
        answer = raw(port, head.encode())
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"content-type: message/http" in answer.lower()
    echo = answer.partition(b"\r\n\r\n")[2]
    assert echo.startswith(f"TRACE {pdi} HTTP/1.1\r\n".encode())
    assert b"host: elsewhere.example" in echo
    assert b"x-seen: yes" in echo
    assert b"secret" not in echo
    assert b"muniment_" not in echo


def test_a_document_that_ends_too_early_is_not_kept(
    server: tuple[str, int], tokens: Any, folder: Path
) -> None:
    with Store(folder) as store:
        before = store.catalogue.counts()
    head = (
        f"PUT {HOME} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
        f"Authorization: Bearer {tokens['series']}\r\nContent-Length: 100\r\n\r\nhalf"
    )
    with socket.create_connection(("127.0.0.1", server[1]), 10) as connection:
        connection.sendall(head.encode())
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(1000)
    assert not answer or b" 400 " in answer
    with Store(folder) as store:
        assert store.catalogue.counts() == before


def test_everything_put_is_sealed_and_verified_in_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Store.create(folder, series=SERIES) as store:
        _, key = create_token(store.names, "Many", ["store"], "me", None)
    headers = {"Authorization": f"Bearer {key}", **TEXT}
    one = serving(folder, "--workers", "1")
    with one as (base, _), httpx2.Client(base_url=base, headers=headers) as client:
        names = [client.put(HOME, content=f"{n}".encode()).json()["pdi"] for n in range(30)]
    assert len(set(names)) == 30
    with Store(folder) as store:
        assert not store.catalogue.unsealed()
        assert len(store.catalogue.files("tape")) == 1
        assert not list(verify(store).problems)
        for number, name in enumerate(names):
            binding = store.names.resolve(name).binding
            assert binding is not None
            with store.open_stream(binding.location) as stream:
                assert stream.read() == f"{number}".encode()


def test_concurrent_puts_lose_nothing(put: Put, client: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    first = put(HOME, b"0").headers["content-location"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: put(path_of(first), f"{n}".encode()), range(16)))
    made = [answer.headers["content-location"] for answer in answers]
    assert sorted(made) == sorted(f"{first[:-1]}{version}" for version in range(2, 18))
    for number, name in enumerate(made):
        assert client.get(path_of(name)).content == f"{number}".encode()
    tag = client.get(path_of(first.rsplit(".", 1)[0])).headers["etag"]
    with ThreadPoolExecutor(8) as pool:
        guarded = list(
            pool.map(lambda n: put(path_of(first), f"g{n}".encode(), If_Match=tag), range(8))
        )
    assert sorted(answer.status_code for answer in guarded) == [201] + [412] * 7
    assert json.loads(guarded[0].text)


def test_what_was_acknowledged_survives_a_crash(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Store.create(folder, series=SERIES) as store:
        _, key = create_token(store.names, "Many", ["store"], "me", None)
    command = [sys.executable, "-m", "muniment", "serve", str(folder), "--port", "0"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, "--workers", "1"], stdout=subprocess.PIPE, text=True, env=env
    ) as server:
        assert server.stdout is not None
        match = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
        assert match
        headers = {"Authorization": f"Bearer {key}", **TEXT}
        with httpx2.Client(base_url=match[0], headers=headers) as client:
            names = [client.put(HOME, content=f"{n}".encode()).json()["pdi"] for n in range(5)]
            again = client.put(path_of(names[0]), content=b"second").json()["pdi"]
        server.kill()
    with Store(folder) as store:
        for name, data in ((names[0], b"0"), (names[4], b"4"), (again, b"second")):
            binding = store.names.resolve(name).binding
            assert binding is not None
            with store.open_stream(binding.location) as stream:
                assert stream.read() == data
        assert not list(verify(store).problems)
