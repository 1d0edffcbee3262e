"""The API for programs, and the OpenAPI document that describes it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from doors import serving
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.registry import Registration
from muniment.repository import Session, Source, Store
from muniment.repository.access import set_access
from muniment.repository.tokens import create_token
from muniment.web.api import OPERATIONS, schemas
from muniment.web.api.checking import check, parse_json, parse_text
from muniment.web.api.document import document
from muniment.web.doors.answers import Refusal

SERIES = "db.example.ch"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("api") / "store"
    with Store.create(made, series=SERIES) as store:
        store.names.add_series("other.example.ch")
        with Session(store) as session:
            for number in range(5):
                data = f"document {number} says: Hello\n".encode()
                session.add(
                    [Source(f"{number}.txt", data, "text/plain")],
                    contents=[f"urn:example:{number}"],
                    metadata=[("title", f"Number {number}")],
                )
            session.add([Source("s.txt", b"SECRET", "text/plain")], contents=["urn:example:secret"])
        secret = store.find("urn:example:secret").pdi
        set_access(store.names, [secret], "closed", reason="personal", by="me")
    return made


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    scopes = {
        "series": [f"series:{SERIES}"], "registry": ["registry"], "describe": ["describe"],
        "all": ["store", "registry", "describe", "staff"],
    }  # fmt: skip
    with Store(folder) as store:
        return {
            name: create_token(store.names, f"The {name}", each, "me", 1)[1]
            for name, each in scopes.items()
        }


@pytest.fixture(scope="module")
def base(folder: Path) -> Iterator[str]:
    with serving(folder) as (address, _):
        yield address


@pytest.fixture(scope="module")
def client(base: str) -> Iterator[Any]:
    with httpx2.Client(base_url=base) as made:
        yield made


Post = Callable[..., Any]


@pytest.fixture
def post(client: Any, keys: dict[str, str]) -> Post:
    def send(path: str, body: Any, key: str = "all") -> Any:
        headers = {"Authorization": f"Bearer {keys[key]}"} if key else {}
        return client.post(f"/api/{path}", json=body, headers=headers)

    return send


def pdi_of(folder: Path, name: str) -> str:
    with Store(folder) as store:
        return store.find(name).pdi


def test_schemathesis_finds_nothing(folder: Path, keys: dict[str, str], tmp_path: Path) -> None:
    tool = Path(sys.executable).parent / "schemathesis"
    shutil.copytree(folder, tmp_path / "store")
    with serving(tmp_path / "store") as (base, _):
        done = _asked(tool, base, keys["all"])
    assert done.returncode == 0, done.stdout[-6000:]


def _asked(tool: Path, base: str, key: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(tool), "run", f"{base}/api/openapi.json", "-H", f"Authorization: Bearer {key}",
         "--max-examples", "2", "--phases", "coverage,fuzzing,stateful", "--seed", "1",
         "--no-color", "--generation-database", "none"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_the_document_describes_what_is_there(client: Any) -> None:
    found = client.get("/api/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    assert found["servers"] == [{"url": "/"}]
    for operation in OPERATIONS:
        assert operation.method.lower() in found["paths"][operation.path]
    put = found["paths"]["/pdi/{series}/"]["put"]
    assert put["parameters"][0]["schema"]["enum"] == [SERIES, "other.example.ch"]
    assert put["security"] == [{"token": []}]
    names = [each.name for each in OPERATIONS]
    assert len(names) == len(set(names))
    assert "enum" not in str(document(OPERATIONS)["paths"]["/pdi/{series}/"])


def test_objects_in_pages(client: Any) -> None:
    seen, after = [], ""
    while True:
        more = {"after": after} if after else {}
        page = client.get("/api/objects", params={"limit": 2, **more}).json()
        seen += page["objects"]
        if not (after := page["next"]):
            break
    assert len(seen) == len({each["package"] for each in seen}) == 6
    assert client.get("/api/objects?since=2001-01-01&until=2001-01-02").json()["objects"] == []
    hidden = [each for each in seen if each["access"] == "closed"]
    assert [set(each) for each in hidden] == [{"package", "date", "kind", "pdi", "access"}]


def test_an_object_by_any_of_its_names(client: Any, folder: Path) -> None:
    pdi = pdi_of(folder, "urn:example:3")
    facts = client.get("/api/objects/urn:example:3").json()
    assert facts["metadata"] == [{"name": "title", "value": "Number 3"}]
    assert facts["pdi"] == pdi
    [file] = facts["files"]
    assert file["path"] == "3.txt"
    for name in (pdi, f"urn:{pdi}", facts["package"], file["id"]):
        quoted = httpx2.QueryParams({"a": name})
        path = "/api/objects/" + str(quoted).removeprefix("a=")
        assert client.get(path).json()["package"] == facts["package"]
    assert client.get("/api/objects/urn:example:3?version=2").status_code == 404
    assert client.get("/api/objects/urn:example:unknown").status_code == 404
    secret = client.get("/api/objects/urn:example:secret")
    assert (secret.status_code, secret.json()["reason"]) == (403, "personal")


def test_names_are_minted_bound_and_resolved(client: Any, post: Post, folder: Path) -> None:
    made = post("names", {"count": 2, "format": "text/plain"}, "series")
    assert made.status_code == 201
    first, second = made.json()["pdis"]
    assert first != second
    facts = client.get("/api/names", params={"id": first}).json()
    assert (facts["status"], facts["binding"], facts["access"]) == ("minted", None, "open")
    stream = client.get("/api/objects/urn:example:1").json()["files"][0]["id"]
    bound = post("bindings", {"pdi": first, "datastream": stream}, "series")
    assert bound.status_code == 201, bound.text
    again = post("bindings", {"pdi": first, "datastream": stream}, "series")
    assert again.json()["pdi"] == first
    other = client.get("/api/objects/urn:example:2").json()["files"][0]["id"]
    assert post("bindings", {"pdi": first, "datastream": other}, "series").status_code == 409
    octets = client.get("/pdi/" + first.removeprefix("pdi://"))
    assert octets.content == b"document 1 says: Hello\n"
    assert post("bindings", {"pdi": second, "datastream": "urn:x:y"}).status_code == 404
    with Store(folder) as store:
        secret = store.object(store.find("urn:example:secret")).streams[0].identifier
    stolen = post("bindings", {"pdi": second, "datastream": secret})
    assert stolen.status_code == 403
    named = post("names/mnemonic", {"id": "annual-report"})
    assert named.json()["pdis"][0].endswith("/annual-report.text.1")
    assert post("names/mnemonic", {"id": "Annual-Report"}).status_code == 409


def test_what_is_closed_is_told_by_no_operation(client: Any, folder: Path) -> None:
    pdi = pdi_of(folder, "urn:example:secret")
    facts = client.get("/api/names", params={"id": pdi}).json()
    assert (facts["access"], facts["binding"], facts["renditions"]) == ("closed", None, [])
    for path in (f"citations?id={pdi}", f"assertions?subject={pdi}",
                 f"quotations?id={pdi}@0={pdi}%230,3"):  # fmt: skip
        answer = client.get(f"/api/{path}")
        assert answer.status_code == 403, path
        assert "SECRET" not in answer.text
    assert client.get("/api/access", params={"id": pdi}).json()["access"] == "closed"


def test_assertions(client: Any, post: Post, folder: Path) -> None:
    pdi = pdi_of(folder, "urn:example:3")
    said = post("assertions", {"subject": pdi, "predicate": "title", "value": {"en": "T"}},
                "describe")  # fmt: skip
    assert said.status_code == 201, said.text
    assert said.json()["by"] == "The describe"
    series = {"subject": f"pdi://{SERIES}/", "predicate": "rights", "value": "free"}
    assert post("assertions", series, "series").status_code == 201
    found = client.get("/api/assertions", params={"subject": pdi, "inherited": "true"}).json()
    assert [each["value"] for each in found["assertions"]] == ["free", {"en": "T"}]
    ours = {"subject": pdi, "predicate": "sha256", "value": "00"}
    assert post("assertions", ours).status_code == 422
    elsewhere = {"subject": "pdi://x.ch/2001/01/01/1.text.1", "predicate": "a", "value": 1}
    assert post("assertions", elsewhere).status_code == 404
    assert post("assertions", series, "registry").status_code == 403


def test_citations_and_quotations(client: Any, folder: Path) -> None:
    one, two = pdi_of(folder, "urn:example:1"), pdi_of(folder, "urn:example:2")
    cited = client.get("/api/citations", params={"id": f"{one}#0,8"}).json()
    assert cited["pdi"] == f"{one}#0,8"
    assert f"{one}#0,8" in cited["citation"]
    assert client.get("/api/citations", params={"id": f"{one}#0,800"}).status_code == 404
    same = client.get("/api/quotations", params={"id": f"{one}@17={two}#17,22"}).json()
    assert same["verdict"] == "verified"
    other = client.get("/api/quotations", params={"id": f"{one}@0={two}#0,10"}).json()
    assert other["verdict"] == "differs"


def test_registry_decisions(client: Any, post: Post) -> None:
    from importlib.resources import files

    text = files("muniment.registry").joinpath("example.yaml").read_text(encoding="utf-8")
    body = yaml.safe_load(text)
    name = body["snid"].lower()
    home = f"registry/namespace/{name}"
    assert client.get(f"/api/{home}").status_code == 404
    assert post(f"{home}/reserve", {"days": 30}, "series").status_code == 403
    assert post(f"{home}/reserve", {"days": 30}, "").status_code == 401
    assert post(f"{home}/reserve", {"days": 30}, "registry").json()["state"] == "reserved"
    assert post(f"{home}/reserve", {}, "registry").status_code == 409
    wrong = post("registry/namespace/other/propose", {"document": body}, "registry")
    assert wrong.status_code == 409
    assert post(f"{home}/propose", {"document": body}, "registry").json()["state"] == "proposed"
    decided = post(f"{home}/decide", {"approve": True, "waiver": "example"}, "registry").json()
    assert (decided["state"], decided["version"]) == ("assigned", 1)
    assert {event["by"] for event in decided["history"]} == {"The registry"}
    assert client.get(f"/api/{home}").json()["state"] == "assigned"
    assert client.get("/api/registry").json()["entries"][0]["name"] == name


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("objects?limit=0", 400), ("objects?limit=1001", 400), ("objects?limit=x", 400),
        ("objects?limit=", 400), ("objects?limit=1&limit=2", 400), ("objects?since=yesterday", 400),
        ("objects?after=x", 400), ("objects?unknown=1", 400), ("objects?limit=%ff", 400),
        ("objects?limit", 400), ("objects?since=2001-01-01%0a", 400),
        ("objects?" + "&".join(f"a{n}=1" for n in range(50)), 400),
        ("names", 400), ("names?id=", 400), ("names?id=x", 400), ("names?id=" + "a" * 700, 400),
        (f"names?id=pdi://{SERIES}/2001/02/30/1.text.1", 404),
        (f"citations?id=pdi://{SERIES}/2001/01/01/1.text.1", 404),
        (f"quotations?id=pdi://{SERIES}/2001/01/01/1.text.1", 400),
        ("registry/nonsense/x", 400), ("registry/namespace/..%2f..", 404), ("nothing", 404),
        ("objects/%ff", 400), ("objects/" + "../" * 5 + "etc/passwd", 404),
    ],
)  # fmt: skip
def test_bad_questions(client: Any, path: str, status: int) -> None:
    answer = client.get(f"/api/{path}")
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (b"{}", "text/plain", 415), (b"{}", "", 415), (b"", "application/json", 400),
        (b"{", "application/json", 400), (b"\xff", "application/json", 400),
        (b"[" * 100_000, "application/json", 400), (b"NaN", "application/json", 400),
        (b'{"count": 1, "count": 2}', "application/json", 400),
        (b'{"count": 1e999}', "application/json", 400),
        (b'{"count": ' + b"9" * 5000 + b"}", "application/json", 400),
        (b"[]", "application/json", 422), (b"null", "application/json", 422),
        (b'{"count": 0}', "application/json", 422), (b'{"count": true}', "application/json", 422),
        (b'{"count": "1"}', "application/json", 422), (b'{"more": 1}', "application/json", 422),
        (b'{"format": "text/plain\\n"}', "application/json", 422),
        (b'{"format": "\\ud800"}', "application/json", 422),
        (b'{"series": "x"}', "application/json", 422),
        (b'{"series": "unknown.example.ch"}', "application/json", 404),
        (b'{"count": 1}' + b" " * (1 << 20), "application/json", 413),
    ],
)  # fmt: skip
def test_bad_bodies(client: Any, keys: dict[str, str], data: bytes, kind: str, status: int) -> None:
    headers = {"Authorization": f"Bearer {keys['all']}", **({"Content-Type": kind} if kind else {})}
    answer = client.post("/api/names", content=data, headers=headers)
    assert answer.status_code == status, answer.text


def test_methods_are_those_of_the_document(client: Any) -> None:
    for path in ("/api/names", "/api/assertions"):
        answer = client.delete(path)
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
    assert client.head("/api/store").status_code == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150)
@given(JSON)
def test_any_value_is_taken_or_refused(value: Any) -> None:
    for schema in (schemas.NEW_NAMES, schemas.REGISTRY_ACTS["propose"], schemas.NEW_ASSERTION):
        try:
            check(schema, value, "the body")
        except Refusal as refusal:
            assert refusal.status == 422


REGISTRATION = schemas.REGISTRY_ACTS["propose"]["properties"]["document"]
PARTS = st.sampled_from([*REGISTRATION["properties"]])


@settings(max_examples=150)
@given(st.dictionaries(PARTS, JSON, max_size=4))
def test_every_registration_that_is_taken_can_be_read(body: dict[str, Any]) -> None:
    try:
        check(REGISTRATION, body, "the body")
    except Refusal:
        return
    Registration.read(body)


@settings(max_examples=100)
@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_json_or_refused(data: bytes) -> None:
    try:
        parse_json(data)
    except Refusal as refusal:
        assert refusal.status == 400


@settings(max_examples=100)
@given(st.text())
def test_any_text_is_a_value_or_refused(text: str) -> None:
    for schema in ({"type": "integer"}, {"type": "boolean"}, schemas.PDI, schemas.NAME):
        try:
            parse_text(schema, text, "a")
        except Refusal as refusal:
            assert refusal.status == 400
