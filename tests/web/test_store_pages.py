"""The pages of a store: archives opened where they lie, identifiers, registry, health, tokens."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from muniment.identifiers import parse_pdi
from muniment.registry import Registry
from muniment.repository import Session, Source, Store
from muniment.repository.access import set_access
from muniment.repository.ingest import submit_file
from muniment.repository.tokens import create_token
from muniment.repository.verify import verify
from muniment.siard import open_siard
from muniment.web.doors.app import create_doors
from muniment.web.doors.desk import Desk
from muniment.web.store_site import page_name


class Kept:
    """A store for the tests, with what is in it."""

    def __init__(self, folder: Path, sample: Path) -> None:
        self.folder = folder
        with Store.create(folder, series="db.example.ch") as store:
            with Session(store) as session:
                trees = submit_file(sample)
                for name in ("trees", "staff", "closed", "gone"):
                    session.add(trees.sources, contents=[f"urn:example:{name}"],
                                metadata=trees.metadata, facts=trees.facts)  # fmt: skip
                session.add([Source("note.txt", b"<b>hello</b>\n", "text/plain")],
                            contents=["urn:example:note"],
                            metadata=[("title", "<script>alert(1)</script>")])  # fmt: skip
            names = [each.pdi for each in session.acknowledged]
            self.trees, self.staff, self.closed, self.gone, self.note = names
            set_access(store.names, [self.staff], "staff", reason="personal data", by="me")
            set_access(store.names, [self.closed], "closed", reason="by law", by="me", law="L 1")
            store.names.withdraw(self.gone, "a mistake", "me")
            store.names.say(self.trees, "title", "Trees & shrubs", "me")
            store.names.say(f"{self.trees}#row=(s0,t4,r3)", "source", "the card index", "me")
            self.reader = create_token(store.names, "reader", ["staff"], "me", None)[1]
            self.writer = create_token(store.names, "writer", ["describe"], "me", None)[1]
            Registry(store.names).reserve("namespace", "trees", "me", 90, "for tests")

    def page(self, pdi: str) -> str:
        return f"/a/{page_name(pdi, '')}"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Kept:
    return Kept(tmp_path_factory.mktemp("pages") / "store", sample)


@pytest.fixture(scope="module")
def client(kept: Kept) -> Iterator[TestClient]:
    desk = Desk(kept.folder, "http://archive.example", ("a@archive.example",))
    with TestClient(create_doors(desk), base_url="http://localhost") as client:  # type: ignore[arg-type]
        ready(client, kept.page(kept.trees))
        yield client


def ready(client: Any, home: str) -> None:
    """Wait for the index and the verdict of an archive."""
    for _ in range(600):
        facts = client.get(f"{home}/progress?format=json").json()
        if facts["state"] == "ready" and facts["verdict"]["state"] == "done":
            return
        assert facts["state"] != "failed", facts
        time.sleep(0.2)
    raise AssertionError(facts)


PAGES = ["/", "/search?q=tree", "/identifiers", "/registry", "/registry/namespace/trees",
         "/health", "/token"]  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_a_json_twin(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "<script>alert" not in page.text
    joint = "&" if "?" in path else "?"
    twin = client.get(f"{path}{joint}format=json")
    assert twin.headers["content-type"] == "application/json"
    assert isinstance(twin.json(), dict)


def test_an_archive_in_the_store_opens_where_it_lies(client: TestClient, kept: Kept) -> None:
    home = kept.page(kept.trees)
    facts = client.get(f"{home}?format=json").json()
    assert facts["dbname"] == "Tree register"
    assert facts["pdi"] == kept.trees
    assert facts["verdict"]["valid"] is True
    rows = client.get(f"{home}/t/main/tree?desc=height_m&format=json").json()
    assert rows["count"] == 1200
    asked = client.get(
        f"{home}/sql", params={"sql": "SELECT count(*) n FROM tree", "format": "json"}
    )
    assert asked.json()["rows"] == [[1200]]
    found = client.get(f"{home}/search?q=oak&format=json").json()
    assert "tables" in found
    # Nothing was unpacked: the files of the store are all there is of it.
    assert not list(kept.folder.rglob("*.siard"))


def test_a_large_object_comes_out_of_the_store(client: TestClient, kept: Kept) -> None:
    home = kept.page(kept.trees)
    row = client.get(f"{home}/t/main/photo/1?format=json").json()
    (url,) = [c["value"]["url"] for c in row["columns"] if isinstance(c["value"], dict)]
    raw = client.get(f"{url}/raw")
    assert raw.content.startswith(b"\x89PNG")
    assert "sandbox" in raw.headers["content-security-policy"]


def test_what_is_not_for_everybody_is_not_shown(client: TestClient, kept: Kept) -> None:
    for pdi, status in ((kept.staff, 401), (kept.closed, 451), (kept.gone, 410)):
        home = kept.page(pdi)
        for path in (home, f"{home}/t/main/tree", f"{home}/search?q=oak", f"{home}/sql",
                     f"{home}/t/main/photo/1/image/raw"):  # fmt: skip
            answer = client.get(path)
            assert answer.status_code == status, (path, answer.status_code)
            assert "Tree register" not in answer.text
    listed = client.get("/?format=json").json()["databases"]
    by_name = {each["pdi"]: each for each in listed}
    assert by_name[kept.staff]["title"] is None
    assert by_name[kept.staff]["url"] is None
    found = client.get("/search?q=register&format=json").json()["found"]
    assert {each["pdi"] for each in found if each["url"]} == {kept.trees}


def test_staff_show_their_token_in_a_cookie(client: TestClient, kept: Kept) -> None:
    home = kept.page(kept.staff)
    wrong = client.post("/token", data={"token": "muniment_x"}, follow_redirects=False)
    assert wrong.headers["location"] == "/token?refused=1"
    right = client.post("/token", data={"token": kept.reader}, follow_redirects=False)
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert client.get(home).status_code == 200
    assert client.get("/token?format=json").json()["holder"] == "reader"
    assert client.get(kept.page(kept.closed)).status_code == 451
    client.post("/token", data={})
    assert client.get(home).status_code == 401


def test_the_page_of_an_identifier(client: TestClient, kept: Kept) -> None:
    name = kept.trees.removeprefix("pdi://")
    facts = client.get(f"/identifiers/{name}?format=json").json()
    assert facts["status"] == "bound"
    assert facts["title"] == "Tree register"
    assert [v["pdi"] for v in facts["versions"]] == [kept.trees]
    assert facts["formats"][0]["media_type"] == "application/x-siard"
    assert {key: facts["parts"]["tables"][4][key] for key in ("name", "rows")} == {
        "name": "main.tree",
        "rows": 1200,
    }
    assert [a["value"] for a in facts["assertions"] if a["predicate"] == "title"] == [
        "Trees & shrubs"
    ]
    assert facts["url"].startswith("http://archive.example/pdi/db.example.ch/")
    assert kept.trees in facts["citations"]["plain"]
    bib = client.get(f"/identifiers/{name}?format=bibtex")
    assert bib.headers["content-type"].startswith("application/x-bibtex")
    assert bib.text.startswith("@misc{")
    assert client.get(f"/identifiers/{name}?format=ris").text.startswith("TY  - DBASE")
    assert client.get(f"/identifiers/{name}?format=csl").json()[0]["type"] == "dataset"


def test_the_page_of_a_part(client: TestClient, kept: Kept) -> None:
    name = kept.trees.removeprefix("pdi://")
    part = client.get(f"/identifiers/{name}?fragment=row=(s0,t4,r3)&format=json").json()
    assert part["reference"] == f"{kept.trees}#row=(s0,t4,r3)"
    assert "main.tree, row 3" in part["citations"]["plain"]
    assert "the card index" in [each["value"] for each in part["assertions"]]
    missing = client.get(f"/identifiers/{name}?fragment=row=(s0,t4,r99999)")
    assert missing.status_code in (400, 404)
    assert "99999" in missing.text


@pytest.mark.parametrize(
    ("path", "status"),
    [("/identifiers/db.example.ch/1999/01/01/7", 404), ("/identifiers/nonsense", 400),
     ("/identifiers/db.example.ch/*/*/*/*", 400), ("/registry/namespace/nobody", 404),
     ("/registry/nonsense/x", 400), ("/a/nothing", 404), ("/a/..%2f..%2fetc", 404),
     ("/?after=x", 400), ("/identifiers?series=other.example.ch", 404)],
)  # fmt: skip
def test_bad_addresses_get_pages_that_a_person_understands(
    client: TestClient, path: str, status: int
) -> None:
    answer = client.get(path, headers={"accept": "text/html"})
    assert answer.status_code == status, answer.text[:300]
    assert "Traceback" not in answer.text


def test_withdrawn_names_say_so(client: TestClient, kept: Kept) -> None:
    name = kept.gone.removeprefix("pdi://")
    page = client.get(f"/identifiers/{name}")
    assert page.status_code == 200
    assert "a mistake" in page.text
    facts = client.get(f"/identifiers/{name}?format=json").json()
    assert facts["status"] == "withdrawn"
    assert facts["citations"] is None
    assert facts["versions"][0]["browse"] is None


def test_the_registry_shows_what_happened(client: TestClient) -> None:
    facts = client.get("/registry?format=json").json()
    assert [(e["name"], e["state"]) for e in facts["entries"]] == [("trees", "reserved")]
    entry = client.get("/registry/namespace/trees")
    assert "for tests" in entry.text


def test_the_health_of_a_store(client: TestClient, kept: Kept) -> None:
    before = client.get("/health?format=json").json()
    assert before["last_verified"] is None
    assert before["counts"]["objects"] >= 5
    with Store(kept.folder) as store:
        assert verify(store).good
    after = client.get("/health?format=json").json()
    assert after["well"] is True
    assert after["last_verified"]
    assert after["verifications"][0]["problems"] == 0


def test_cells_are_cited_by_the_name_that_a_resolver_understands(
    client: TestClient, kept: Kept
) -> None:
    home = kept.page(kept.trees)
    query = {"row": ["3", "4", "9"], "col": ["planted_on"], "format": "json"}
    facts = client.get(f"{home}/cite/main/tree", params=query).json()
    names = [part["identifier"] for part in facts["parts"]]
    assert names == [f"{kept.trees}#cell=(s0,t4,c8,r3),(c8,r4)", f"{kept.trees}#cell=(s0,t4,c8,r9)"]
    assert [row["row"] for row in facts["check"]["rows"]] == [3, 4, 9]
    shown = [row["cells"][0] for row in facts["check"]["rows"]]
    resolved = []
    for part in facts["parts"]:
        path = part["url"].removeprefix("http://archive.example")
        answer = client.get(path, headers={"accept": "application/json"})
        assert answer.status_code == 200, answer.text
        resolved += re.findall(r"\d{4}-\d\d-\d\d", answer.text)
    assert resolved[-1] == shown[-1]


def test_descriptions_become_a_new_version(client: TestClient, kept: Kept) -> None:
    home = kept.page(kept.trees)
    page = client.get(f"{home}/describe")
    state = re.search(r'name="state" value="(\w+)"', page.text)
    assert state
    places = client.get(f"{home}/describe?format=json").json()["list"]
    number = next(each["number"] for each in places if each["place"] == "main")
    form = {"state": state[1], f"d{number}": "Everything about the city's trees <b>"}
    refused = client.post(f"{home}/describe", data={**form, "token": kept.reader})
    assert refused.status_code == 403
    stale = client.post(f"{home}/describe", data={**form, "state": "0", "token": kept.writer})
    assert stale.status_code == 400
    saved = client.post(
        f"{home}/describe", data={**form, "token": kept.writer}, follow_redirects=False
    )
    assert saved.status_code == 303, saved.text
    new = saved.headers["location"].partition("/describe")[0]
    assert new == home[:-1] + "2"
    ready(client, new)
    facts = client.get(f"{new}?format=json").json()
    assert facts["schemas"][0]["description"] == "Everything about the city's trees <b>"
    assert facts["verdict"]["valid"] is True
    assert client.get(f"{home}?format=json").json()["schemas"][0]["description"] is None
    name = str(parse_pdi(kept.trees).generic).removeprefix("pdi://")
    versions = client.get(f"/identifiers/{name}?format=json").json()["versions"]
    assert len(versions) == 2
    with Store(kept.folder) as store, open_siard(store.siard(kept.trees)) as old:
        first = {d.digest for d in old.describe().message_digests}
        with open_siard(store.siard(versions[0]["pdi"])) as later:
            assert {d.digest for d in later.describe().message_digests} == first


def test_facts_of_pages_are_plain_json(client: TestClient, kept: Kept) -> None:
    text = client.get(f"{kept.page(kept.trees)}?format=json").text
    assert json.loads(text)["file"] == "trees.siard"


def test_search_finds_every_description_page_by_page(tmp_path: Path) -> None:
    with (
        Store.create(tmp_path / "many", series="db.example.ch") as store,
        Session(store) as session,
    ):
        for number in range(430):
            words = [("title", f"Deed {number}"), ("description", "Grundbuch Ölmühle 土地台帳")]
            note = Source("deed.txt", f"{number}".encode(), "text/plain")
            session.add([note], contents=[f"urn:example:deed-{number}"], metadata=words)
    desk = Desk(tmp_path / "many", "http://archive.example", ("a@archive.example",))
    with TestClient(create_doors(desk), base_url="http://localhost") as client:  # type: ignore[arg-type]

        def titles(address: str) -> list[str]:
            found: list[str] = []
            while address:
                joint = "&" if "?" in address else "?"
                page = client.get(f"{address}{joint}format=json").json()
                assert page["complete"]
                found += [each["title"] for each in page["found"]]
                address = page["next"]
            return found

        assert sorted(titles("/search?q=olmuhle+grundb")) == sorted(f"Deed {n}" for n in range(430))
        assert titles("/search?q=deed+429") == ["Deed 429"]
        assert len(titles("/search?q=台帳")) == 430
        assert titles("/search?q=%25%25") == titles('/search?q="x"+OR+deed*') == []
        with Store(tmp_path / "many") as store, Session(store) as session:
            note = Source("deed.txt", b"new", "text/plain")
            session.add(
                [note], contents=["urn:example:new"], metadata=[("title", "Deed, the last")]
            )
        assert titles("/search?q=the+last") == ["Deed, the last"]
        assert client.get("/search?q=a&before=x").status_code == 400
