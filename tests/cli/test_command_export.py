"""``muniment export``: files that other programs open, complete or not at all."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet
import pytest
from commandline import Run, database
from lxml import html

SCRIPT = """
CREATE TABLE "odd name/.." (id INTEGER PRIMARY KEY, note TEXT, picture BLOB, price DECIMAL(8,2));
INSERT INTO "odd name/.." VALUES
    (1, '=cmd|calc', x'89504E470D0A1A0A00', '1.10'), (2, '', x'', NULL), (3, NULL, NULL, '-2.50'),
    (4, '<script>alert(1)</script>', '<svg onload="alert(1)"/>', '0.00');
CREATE TABLE empty (a VARCHAR(5));
"""


@pytest.fixture
def archive(run: Run, tmp_path: Path) -> Path:
    url = database(
        tmp_path / "x.db", SCRIPT.replace("'<svg onload=\"alert(1)\"/>'", "x'3C7376672F3E'")
    )
    assert run("archive", url, "x.siard").exit_code == 0
    return tmp_path / "x.siard"


def test_csv_keeps_null_and_empty_apart_and_objects_as_files(
    archive: Path, run: Run, tmp_path: Path
) -> None:
    result = run("export", "x.siard", "out")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "out: 2 tables, 4 rows, 3 large objects"
    (file,) = (tmp_path / "out").glob("main.odd*.csv")
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith('1,"\'=cmd|calc","lobs/')
    assert lines[2].startswith('2,"","lobs/')
    assert lines[3] == "3,,,-2.50"
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    assert (tmp_path / "out" / rows[0]["picture"]).read_bytes() == b"\x89PNG\r\n\x1a\n\x00"
    assert rows[0]["picture"].endswith(".png")
    assert (tmp_path / "out" / rows[1]["picture"]).read_bytes() == b""


def test_exact_csv_changes_no_text(archive: Path, run: Run, tmp_path: Path) -> None:
    assert run("export", "x.siard", "out", "--exact").exit_code == 0
    (file,) = (tmp_path / "out").glob("main.odd*.csv")
    assert '1,"=cmd|calc",' in file.read_text(encoding="utf-8")


def test_a_heading_runs_in_no_spreadsheet(run: Run, tmp_path: Path) -> None:
    url = database(tmp_path / "h.db", 'CREATE TABLE t ("=1+1" TEXT, "@x" TEXT);')
    assert run("archive", url, "h.siard").exit_code == 0
    assert run("export", "h.siard", "guarded").exit_code == 0
    assert run("export", "h.siard", "exact", "--exact").exit_code == 0
    heads = [(tmp_path / folder / "main.t.csv").read_text() for folder in ("guarded", "exact")]
    assert heads == ['"\'=1+1","\'@x"\n', '"=1+1","@x"\n']


def test_json_lines_and_parquet_hold_the_same(archive: Path, run: Run, tmp_path: Path) -> None:
    assert run("export", "x.siard", "j", "--format", "jsonl").exit_code == 0
    assert run("export", "x.siard", "p", "--format", "parquet").exit_code == 0
    (lines,) = (tmp_path / "j").glob("main.odd*.jsonl")
    (table,) = (tmp_path / "p").glob("main.odd*.parquet")
    objects = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    rows = pyarrow.parquet.read_table(table).to_pylist()
    assert [o["note"] for o in objects] == [r["note"] for r in rows]
    assert [o["price"] for o in objects] == [
        None if r["price"] is None else str(r["price"]) for r in rows
    ]


@pytest.mark.parametrize("form", ["sqlite", "duckdb"])
def test_a_database_file_is_what_restore_makes(
    archive: Path, run: Run, tmp_path: Path, form: str
) -> None:
    assert run("export", "x.siard", "again.db", "--format", form).exit_code == 0
    assert run("compare", "x.siard", f"{form}:///again.db").exit_code == 0
    if form == "sqlite":
        with closing(sqlite3.connect(tmp_path / "again.db")) as connection:
            assert connection.execute("SELECT count(*) FROM empty").fetchone() == (0,)


def test_a_site_opens_from_disk_and_runs_nothing_but_its_search(
    archive: Path, run: Run, tmp_path: Path
) -> None:
    result = run("export", "x.siard", "site", "--format", "html", "--json")
    assert json.loads(result.stdout)["objects"] == 3
    site = tmp_path / "site"
    pages = list(site.glob("*.html"))
    assert len(pages) == 4
    for page in pages:
        tree = html.parse(str(page))
        own = ["search.js"] if page.name == "search.html" else []
        assert tree.xpath("//script/@src") == own and not tree.xpath("//script[text()]|//@onload")
        for link in tree.xpath("//a/@href|//img/@src|//link/@href|//script/@src"):
            assert (site / link.partition("#")[0]).exists(), link
    (texts,) = (site / "search").glob("[0-9]*.js")
    assert texts.read_bytes().isascii()
    assert not list(site.rglob("*.svg"))


def test_nothing_is_overwritten_or_left_behind(archive: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("mine", encoding="utf-8")
    before = sorted(p.name for p in tmp_path.iterdir())
    result = run("export", "x.siard", "there")
    assert result.exit_code == 2
    assert "not an empty folder" in result.stderr
    assert run("export", "x.siard", "no/such/place").exit_code == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_site_leads_from_the_start_of_a_long_text_to_all_of_it(run: Run, tmp_path: Path) -> None:
    texts = ["short", "word " * 1000, "ä" * (3 << 20)]
    with closing(sqlite3.connect(tmp_path / "long.db")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b VARCHAR(9999999))")
        connection.executemany("INSERT INTO t (a, b) VALUES (?, ?)", zip(texts, texts, strict=True))
        connection.commit()
    assert run("archive", "sqlite:///long.db", "long.siard").exit_code == 0
    assert run("export", "long.siard", "site", "--format", "html").exit_code == 0
    tree = html.parse(str(tmp_path / "site" / "main.t.html"))
    found = []
    for row in tree.xpath("//tbody/tr"):
        for cell in row.xpath("./td")[1:]:
            links = cell.xpath(".//a/@href")
            shown = cell.text_content().strip()
            whole = (tmp_path / "site" / links[0]).read_text(encoding="utf-8") if links else shown
            assert len(shown) <= 2000
            found.append(whole)
    assert found == [text.strip() if len(text) < 9 else text for text in texts for _ in "ab"]
