"""The first page comes before anything heavy is loaded, and straight from the archive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from archives import column, make_archive, one_table
from muniment.siard import open_siard
from muniment.siard.parse import Run, rows_in
from muniment.web.app import create_app
from muniment.web.site import OpenArchive, Site

HEAVY = ("duckdb", "numba", "numpy", "PIL", "pyarrow", "sqlglot", "sqlalchemy", "rich")
LOOK = """
import asyncio, sys
from pathlib import Path
from muniment.cli.main import cli
from muniment.cli.browse import _site
site, app = _site((Path(sys.argv[1]),), "127.0.0.1", (), "")
sent = []
async def receive(): return {"type": "http.request", "body": b"", "more_body": False}
async def send(message): sent.append(message)
scope = {"type": "http", "method": "GET", "path": sys.argv[2], "raw_path": sys.argv[2].encode(),
         "query_string": b"", "headers": [(b"host", b"localhost")], "http_version": "1.1",
         "scheme": "http", "server": ("localhost", 80), "client": ("localhost", 1), "root_path": ""}
asyncio.run(app(scope, receive, send))
print(sent[0]["status"], b"".join(m.get("body", b"") for m in sent).count(b"<tr>"))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize(("path", "rows"), [("/a/trees", 1), ("/a/trees/t/main/tree", 51)])
def test_the_first_page_waits_for_nothing_heavy(sample: Path, path: str, rows: int) -> None:
    command = [sys.executable, "-c", LOOK, str(sample), path]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    answer, modules = said.splitlines()[-2:]
    assert answer.split()[0] == "200"
    assert int(answer.split()[1]) >= rows or path == "/a/trees"
    assert set(modules.split()) & set(HEAVY) == set()


@pytest.fixture(scope="module")
def long_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = one_table("n", (column("id", "INTEGER"), column("word")))
    rows = [[str(n), f"word {n} " * 20] for n in range(1, 6001)]
    path = tmp_path_factory.mktemp("long") / "long.siard"
    return make_archive(path, database, {("main", "n"): rows})


@given(first=st.integers(1, 6100), count=st.integers(1, 300))
def test_any_rows_can_be_read_by_their_numbers(long_table: Path, first: int, count: int) -> None:
    with open_siard(long_table) as source:
        schema, table = next(iter(source.describe().tables()))
        found = list(source.rows(schema, table, first, first + count - 1))
    wanted = range(first, min(first + count, 6001))
    assert [(number, int(cells[0])) for number, cells in found] == [(n, n) for n in wanted]


@pytest.mark.parametrize(
    ("xml", "rows"),
    [
        (b"<row><c1>1</c1></row><row><c1>2</c1></row>", 2),
        (b"<row><c1>1</c1></row><row/>", 0),
        (b"<row><c1>1</c1></row ><row><c1>2</c1></row>", 0),
        (b"<row a='1'><c1>1</c1></row>", 1),
        (b"<!-- <row></row> --><row><c1>1</c1></row>", 0),
    ],
)
def test_rows_are_counted_only_where_that_is_sure(xml: bytes, rows: int) -> None:
    assert rows_in(Run(xml, 0)) == rows


def test_what_is_cited_is_read_from_the_archive_itself(
    tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_CACHE", str(tmp_path))
    monkeypatch.setattr(OpenArchive, "_prepare", lambda self: None)
    with TestClient(create_app(Site({"trees": OpenArchive("trees", sample)}))) as client:
        address = "/a/trees/cite/main/{}&format=json"
        check = client.get(address.format("tree?row=1200&row=7&col=id")).json()["check"]
        assert [(row["row"], row["cells"]) for row in check["rows"]] == [(7, [7]), (1200, [1200])]
        image = client.get(address.format("photo?row=3&col=image")).json()["check"]["rows"][0]
        assert image["cells"][0]["type"].startswith("image/")
