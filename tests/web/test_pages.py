"""The pages without a browser: what they say, their JSON twins, and what they refuse."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from hostile import SCRIPT
from lxml import html
from starlette.testclient import TestClient

from muniment.web.app import FILES, PAGES, create_app
from muniment.web.diagram import draw
from muniment.web.site import OpenArchive, Site
from muniment.web.verdict import Verdict
from muniment.web.words import WORDS

TREES = "/a/trees"
TREE = "/a/trees/t/main/tree"


def page(client: TestClient, path: str, status: int = 200) -> html.HtmlElement:
    answer = client.get(path)
    assert answer.status_code == status, answer.text[:2000]
    return html.fromstring(answer.text)


def facts(client: TestClient, path: str) -> dict:
    answer = client.get(path + ("&" if "?" in path else "?") + "format=json")
    assert answer.headers["content-type"] == "application/json"
    return json.loads(answer.text)


def links(tree: html.HtmlElement) -> set[str]:
    return {
        link.partition("#")[0]
        for link in tree.xpath("//a/@href|//img/@src|//iframe/@src")
        if link.startswith("/")
    }


@pytest.mark.parametrize("start", ["/", "/a/evil"])
def test_every_link_leads_somewhere_and_every_page_has_a_json_twin(
    client: TestClient, start: str
) -> None:
    seen, waiting, kinds = set(), [start], {}
    while waiting and len(seen) < 250:
        path = waiting.pop(0)
        shape = re.sub(r"\d+", "0", path.partition("?")[0])
        kinds[shape] = kinds.get(shape, 0) + 1
        if path in seen or path.startswith("/static") or kinds[shape] > 3:
            continue
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.headers["content-type"].startswith("text/html"):
            found = links(html.fromstring(answer.text))
            waiting += sorted(found - seen)
            if "format=json" not in path:
                facts(client, path)
    assert len(seen) > 15


def test_the_archive_says_what_it_is(client: TestClient) -> None:
    found = facts(client, TREES)
    assert found["owner"] == "City of Ulmenhafen, Parks Department"
    assert len(found["sha256"]) == 64
    assert found["sha256"] in found["citation"]
    text = page(client, TREES).text_content()
    for words in ("Tree register", "City Archives of Ulmenhafen", "How to cite", "tree_overview"):
        assert words in text


def test_rows_are_sorted_filtered_and_counted_by_type(client: TestClient) -> None:
    found = facts(client, f"{TREE}?c=height_m&op=gt&v=9.5&desc=height_m&facet=protected&size=100")
    heights = [float(row["cells"][9]) for row in found["rows"]]
    assert heights == sorted(heights, reverse=True) and min(heights) > 9.5
    assert found["count"] < found["total_rows"] == 1200
    assert sum(v["count"] for v in found["facets"][0]["values"]) == found["count"]
    assert found["next"].endswith("start=100&size=100")


def test_columns_can_be_chosen_and_searched(client: TestClient) -> None:
    found = facts(client, f"{TREE}?col=id&col=note&q=WALDKAUZ")
    assert [c["name"] for c in found["columns"]] == ["id", "note"]
    assert found["count"] > 0
    assert all("Waldkauz" in row["cells"][1] for row in found["rows"])
    null = facts(client, f"{TREE}?c=planted_on&op=null&v=")
    assert null["count"] > 0 and all(row["cells"][7] is None for row in null["rows"])


@pytest.mark.parametrize(
    "query",
    ["c=height_m&op=gt&v=tall", "c=nothing&op=eq&v=1", "c=id&op=like&v=1", "c=id&op=eq",
     "sort=nothing", "start=x", "size=-1", "col=nothing", "facet=nothing"],
)  # fmt: skip
def test_what_cannot_be_asked_gets_a_sentence(client: TestClient, query: str) -> None:
    tree = page(client, f"{TREE}?{query}", 400)
    assert "That cannot be asked" in tree.text_content()
    assert "Traceback" not in tree.text_content()


@pytest.mark.parametrize(
    "path",
    ["/a/nothing", "/a/trees/t/main/nothing", "/a/trees/s/nothing", "/nothing", f"{TREE}/0",
     f"{TREE}/1201", f"{TREE}/x", f"{TREE}/1/nothing", f"{TREE}/1/id", "/a/trees/v/main/x",
     "/a/trees/r/main/x", "/static/..%2fapp.py", f"{TREE}/1/id/raw"],
)  # fmt: skip
def test_what_is_not_there_gets_a_page(client: TestClient, path: str) -> None:
    assert "Not here" in page(client, path, 404).text_content()


def test_a_row_leads_both_ways_along_its_keys(client: TestClient) -> None:
    found = facts(client, f"{TREE}/2")
    assert found["refers_to"][0]["label"] == "Prunus avium"
    assert client.get(found["refers_to"][0]["url"]).status_code == 200
    inspections = next(r for r in found["referred_by"] if r["table"] == "main.inspection")
    assert facts(client, inspections["url"])["count"] == inspections["count"] > 0


def test_a_file_without_a_name_is_cited_by_what_can_be_checked(client: TestClient) -> None:
    url = f"{TREES}/cite/main/tree?row=2&row=3&col=id&col=note"
    found = facts(client, url)
    names = [part["identifier"] for part in found["parts"]]
    assert names == ["trees.siard#cell=(s0,t4,c1,r2),(c1,r3)",
                     "trees.siard#cell=(s0,t4,c13,r2),(c13,r3)"]  # fmt: skip
    assert found["pdi"] is None
    assert all(found["sha256"] in part["citations"]["plain"] for part in found["parts"])
    text = page(client, url).text_content()
    assert "This file has no persistent name yet." in text
    assert "muniment store add STORE trees.siard" in text
    shown = [row["cells"] for row in found["check"]["rows"]]
    assert [cells[0] for cells in shown] == [2, 3]
    assert facts(client, f"{TREES}/cite/main/tree")["parts"][0]["fragment"] == "table=(s0,t4)"
    run = facts(client, f"{TREES}/cite/main/tree?from=40&to=1100")["parts"]
    assert [part["fragment"] for part in run] == ["row=(s0,t4,r40),(r1100)"]
    assert client.get(f"{url}&format=ris").text.count("TY  - ") == 2


@pytest.mark.parametrize(
    "query", ["row=0", "row=x", "row=1201", "col=nothing", "from=1&to=1201", "row=" + "9" * 40]
)
def test_what_cannot_be_cited_gets_a_sentence(client: TestClient, query: str) -> None:
    answer = client.get(f"{TREES}/cite/main/tree?{query}")
    assert answer.status_code == 400
    assert "That cannot be asked" in answer.text


def test_a_form_of_the_table_leads_to_the_citation(client: TestClient) -> None:
    """Without a script: a tick in a row and in the head of a column."""
    tree = page(client, TREE)
    (form,) = tree.xpath("//form[@class='choosing']")
    row = form.xpath(".//input[@name='row']/@value")[4]
    column = form.xpath(".//input[@name='col']/@value")[7]
    found = facts(client, f"{form.get('action')}?row={row}&col={column}")
    assert found["parts"][0]["fragment"] == "cell=(s0,t4,c8,r5)"
    labels = [e.getparent().text_content() for e in form.xpath(".//input[@type='checkbox']")]
    assert all(label.strip() for label in labels)


def test_the_verdict_is_found_once_and_kept_by_digest(client: TestClient, site: Site) -> None:
    archive = site.archives["trees"]
    assert archive.wait_for_verdict(120)
    found = facts(client, TREES)["verdict"]
    assert (found["state"], found["valid"], found["errors"]) == ("done", True, 0)
    assert "Valid SIARD 2.2" in page(client, TREES).text_content()
    again = Verdict()
    assert again.recall(archive.digest)
    assert again.valid
    assert not Verdict().recall("0" * 64)
    evil = site.archives["evil"]
    assert evil.wait_for_verdict(120)
    verdict = facts(client, "/a/evil")["verdict"]
    assert verdict["valid"] is (verdict["errors"] == 0)


def test_descriptions_are_written_by_those_with_the_token(tmp_path: Path, sample: Path) -> None:
    path = tmp_path / "trees.siard"
    path.write_bytes(sample.read_bytes())
    site = Site({"trees": OpenArchive("trees", path)}, token="secret")
    with TestClient(create_app(site)) as client:
        assert site.archives["trees"].wait(60)
        before = facts(client, TREES)
        form = page(client, f"{TREES}/describe?in=main.tree")
        state = form.xpath("//input[@name='state']/@value")[0]
        listed = facts(client, f"{TREES}/describe?in=main.tree")["list"]
        (number,) = [e["number"] for e in listed if e["place"] == "main.tree.felled_on"]
        words = {"state": state, f"d{number}": f"NULL: it stands. {SCRIPT}\r\n"}
        for token in ("", "wrong"):
            answer = client.post(f"{TREES}/describe", data={**words, "token": token})
            assert answer.status_code == 403
        assert path.read_bytes() == sample.read_bytes()
        done = client.post(f"{TREES}/describe", data={**words, "token": "secret"})
        assert done.status_code == 200
        assert "1 descriptions are in the archive now" in done.text
        assert SCRIPT not in done.text
        assert site.archives["trees"].wait(60)
        assert f"NULL: it stands. {SCRIPT}" in [
            c["description"] for c in facts(client, TREE)["columns"]
        ]
        assert facts(client, TREES)["digests"] == before["digests"]
        stale = client.post(f"{TREES}/describe", data={**words, "token": "secret"})
        assert stale.status_code == 400
    with TestClient(create_app(Site({"trees": OpenArchive("trees", path)}))) as client:
        assert client.post(f"{TREES}/describe", data={**words, "token": ""}).status_code == 403


def test_a_long_value_has_a_page_of_its_own(client: TestClient) -> None:
    row = page(client, "/a/evil/t/s/~0/2")
    assert row.xpath("//a[text()='Show all of it']")
    text = page(client, "/a/evil/t/s/~0/2/text").xpath("string(//pre[@class='text'])")
    assert len(text) > 100_000


def test_search_finds_words_numbers_and_days(client: TestClient) -> None:
    for words, table in (("イチョウ", "main.species_name"), ("9007199254741186", "main.tree"),
                         ("1899-11-07", "main.tree")):  # fmt: skip
        found = facts(client, f"/a/trees/search?q={quote(words)}")
        assert table in [t["table"] for t in found["tables"]], words
    assert facts(client, "/a/trees/search?q=100%25_nothing")["tables"] == []


def test_the_console_answers_and_hands_over_files(client: TestClient) -> None:
    sql = quote("SELECT code, name FROM district ORDER BY code LIMIT 2")
    found = facts(client, f"/a/trees/sql?sql={sql}")
    assert found["rows"] == [["AL", "Altstadt"], ["HA", "Hafenviertel"]]
    csv = client.get(f"/a/trees/sql/download?as=csv&sql={sql}")
    assert csv.text == '"code","name"\n"AL","Altstadt"\n"HA","Hafenviertel"\n'
    assert client.get(f"/a/trees/sql/download?as=parquet&sql={sql}").content[:4] == b"PAR1"
    assert len(client.get(f"/a/trees/sql/download?as=jsonl&sql={sql}").text.splitlines()) == 2
    assert client.get(f"/a/trees/sql/download?as=exe&sql={sql}").status_code == 400


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM read_csv('/etc/passwd')", "ATTACH '/tmp/x.db'", "INSTALL httpfs",
     "COPY district TO '/tmp/x.csv'", "DROP TABLE district", "SELECT 1; SELECT 2", "nonsense",
     "LOAD httpfs", "FROM '/etc/passwd'", "SELECT * FROM glob('/etc/*')", "SELECT getenv('HOME')",
     "SET enable_external_access = true", "SELECT * FROM read_text('/etc/hostname')",
     "EXPORT DATABASE '/tmp/x'", "PRAGMA database_list", "CREATE TABLE x (a INTEGER)",
     "SELECT * FROM 'https://example.org/x.parquet'", "CALL pragma_version()",
     "SELECT * FROM duckdb_databases()", "SELECT length(repeat('x', 4000000000))"],
)  # fmt: skip
def test_the_console_refuses_what_reaches_beyond_the_archive(client: TestClient, sql: str) -> None:
    tree = page(client, f"/a/trees/sql?sql={quote(sql)}", 400)
    assert "This query was not answered" in tree.text_content()


def test_a_query_without_end_is_ended(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.web.console_page.SECONDS", 1.0)
    sql = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    started = time.monotonic()
    tree = page(client, f"/a/trees/sql?sql={quote(sql)}", 400)
    assert "stopped after 1 seconds" in tree.text_content()
    assert time.monotonic() - started < 15


def test_large_objects_are_shown_safely_or_handed_over(client: TestClient) -> None:
    photo = client.get("/a/trees/t/main/photo/3/image/raw")
    assert photo.headers["content-type"] == "image/png"
    part = client.get("/a/trees/t/main/photo/3/image/raw", headers={"Range": "bytes=1-3"})
    assert (part.status_code, part.content) == (206, b"PNG")
    table = quote(SCRIPT)
    kinds = {}
    for row in range(1, 5):
        answer = client.get(f"/a/evil/t/s/~0/{row}/file/raw")
        assert answer.status_code == 200, table
        kinds[row] = answer.headers["content-type"].partition(";")[0]
        if row != 3:
            assert "sandbox" in answer.headers["content-security-policy"]
        if row in (2, 4):
            assert answer.headers["content-disposition"].startswith("attachment")
    assert kinds == {1: "image/svg+xml", 2: "application/octet-stream",
                     3: "application/pdf", 4: "application/octet-stream"}  # fmt: skip
    text = page(client, "/a/evil/t/s/~0/2/file")
    assert SCRIPT in text.xpath("string(//pre[@class='text'])")


def test_nothing_in_an_archive_becomes_markup(client: TestClient) -> None:
    for path in ("/", "/a/evil", "/a/evil/s/s", "/a/evil/t/s/~0", "/a/evil/t/s/~0/1",
                 "/a/evil/t/s/~0/1/text", "/a/evil/v/s/~0", "/a/evil/r/s/~0", "/a/evil/people",
                 "/a/evil/diagram", "/a/evil/describe", "/a/evil/cite/s/~0?row=1&col=~1", "/a/evil/search?q=script", "/a/evil/t/s/~1", "/a/evil/t/s/~2",
                 f"/a/evil/sql?sql={quote(SCRIPT)}"):  # fmt: skip
        answer = client.get(path)
        tree = html.fromstring(answer.text)
        assert tree.xpath("//script/@src|//script[not(@src)]") == ["/static/muniment.js"], path
        assert not tree.xpath("//@onmouseover|//@onload|//@style"), path
        assert not [
            h for h in tree.xpath("//a/@href") if h.strip().lower().startswith("javascript")
        ]
        assert "49" not in tree.xpath("string(//table/thead)")
        assert len(answer.content) < 3_000_000, path


def test_csv_of_hostile_cells_runs_in_no_spreadsheet(client: TestClient) -> None:
    sql = quote('SELECT "{{ 7 * 7 }}" AS x FROM s."' + SCRIPT.replace('"', '""') + '"')
    text = client.get(f"/a/evil/sql/download?as=csv&sql={sql}").text
    assert text.splitlines()[1].startswith("\"'=HYPERLINK")


def test_another_site_cannot_reach_this_one_by_a_name_of_its_own(sample: Path) -> None:
    site = Site({"trees": OpenArchive("trees", sample)})
    app = create_app(site, hosts=("127.0.0.1", "localhost"))
    with TestClient(app, base_url="http://localhost:8180") as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/", headers={"host": "evil.example"}).status_code == 421
        assert client.get("/", headers={"host": "evil.example:8180"}).status_code == 421


def test_the_first_rows_are_there_before_the_index(
    tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_CACHE", str(tmp_path))
    monkeypatch.setattr(OpenArchive, "_prepare", lambda self: None)
    site = Site({"trees": OpenArchive("trees", sample)})
    with TestClient(create_app(site)) as client:
        found = facts(client, TREE)
        assert [row["row"] for row in found["rows"]] == list(range(1, 51))
        assert found["rows"][0]["cells"][1] == "9007199254741089"
        assert "being built" in page(client, TREE).text_content()
        assert facts(client, f"{TREE}?start=1150")["rows"][-1]["row"] == 1200
        assert facts(client, f"{TREE}?sort=id")["waiting"]
        assert page(client, f"{TREE}/7").xpath("string(//dl//dd[1])") == "7"
        assert client.get("/a/trees/sql?sql=SELECT+1").status_code == 404
        assert client.get("/a/trees/t/main/photo/1/image").status_code == 404
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_cannot_be_indexed_says_so(tmp_path: Path, sample: Path) -> None:
    import zipfile

    broken = tmp_path / "broken.siard"
    with zipfile.ZipFile(sample) as old, zipfile.ZipFile(broken, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith("table4/table4.xml"):
                data = data[: len(data) // 2]
            new.writestr(info.filename, data)
    site = Site({"broken": OpenArchive("broken", broken)})
    with TestClient(create_app(site)) as client:
        assert not site.archives["broken"].wait(60)
        assert "could not be built" in page(client, "/a/broken").text_content()
        assert facts(client, "/a/broken/progress")["state"] == "failed"
        assert facts(client, "/a/broken/t/main/street")["rows"]


def test_all_texts_stand_in_one_place() -> None:
    import muniment.web

    folder = Path(muniment.web.__file__).parent
    used = set()
    for file in [*folder.glob("templates/*.html"), *folder.glob("*.py")]:
        text = file.read_text(encoding="utf-8")
        used |= set(re.findall(r"\bt\(\s*['\"](\w+)['\"]", text))
        used |= set(re.findall(r"text_of\(['\"](\w+)['\"]", text))
        if file.suffix == ".html":
            bare = re.sub(
                r"<(script|style)\b.*?</\1>|{[{%#].*?[}%#]}|<[^>]*>", " ", text, flags=re.S
            )
            assert not re.findall(r"[A-Za-z]{4,}", bare), file.name
    starts = {word for word in used if word.endswith("_")}
    assert used - starts <= set(WORDS)
    assert all(any(known.startswith(start) for known in WORDS) for start in starts)


def test_routes_are_listed_once() -> None:
    paths = [path for path, _ in (*PAGES, *FILES)]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("count", [1, 5, 200])
def test_boxes_of_the_diagram_do_not_overlap(tmp_path: Path, count: int) -> None:
    from archives import column, make_archive
    from muniment.sql.model import Database, ForeignKey, Reference, Schema, Table

    def table(n: int) -> Table:
        keys = tuple(
            ForeignKey(f"k{n}_{m}", "s", f"t{m}", (Reference("id", "id"),))
            for m in {n // 3, (n * 7) % count, n}
            if n % 5
        )
        return Table(
            f"t{n}", f"table{n}", (column("id", "INTEGER"), column("name")), foreign_keys=keys
        )

    database = Database(
        "d", schemas=(Schema("s", "schema0", tables=tuple(map(table, range(count)))),)
    )
    path = make_archive(tmp_path / "many.siard", database, {})
    diagram = draw(OpenArchive("many", path))
    assert len(diagram.boxes) == count
    for number, a in enumerate(diagram.boxes):
        assert a.x >= 0 and a.x + a.width <= diagram.width and a.y + a.height <= diagram.height
        for b in diagram.boxes[number + 1 :]:
            apart_x = a.x + a.width <= b.x or b.x + b.width <= a.x
            assert apart_x or a.y + a.height <= b.y or b.y + b.height <= a.y
    near = draw(OpenArchive("many", path), "s.t0", 1)
    assert [box.name for box in near.boxes if box.focused] == ["t0"]
