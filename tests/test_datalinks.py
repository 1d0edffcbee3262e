"""Columns that link to files: the files are archived, and come back with their links."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import apsw
import duckdb
import pytest
from click.testing import CliRunner

from muniment.cli.main import cli
from muniment.compare import compare
from muniment.convert import ConvertOptions, convert
from muniment.datalinks import Links
from muniment.errors import NotFound, UsageError
from muniment.siard import open_siard, validate
from muniment.sql.types import Kind
from muniment.transfer import ArchiveOptions, archive, restore

PDF = b"%PDF-1.7\n" + b"x" * 5000


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a b.pdf").write_bytes(PDF)
    (folder / "docs" / "ä%.txt").write_bytes(b"")
    return folder


def database(folder: Path, *links: str | None) -> str:
    path = folder / "a.db"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE doc (id INTEGER PRIMARY KEY, path VARCHAR(200))")
    db.executemany("INSERT INTO doc (path) VALUES (?)", [(link,) for link in links])
    db.close()
    return f"sqlite:///{path}"


def options(root: Path | None, **more: object) -> ArchiveOptions:
    links = Links(("main.doc.path",), root, report=bool(more.pop("report", False)))
    return ArchiveOptions(links=links, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["inline", "internal", "external"])
def test_linked_files_are_archived_with_their_links(docs: Path, tmp_path: Path, place: str) -> None:
    links = (
        "docs/a b.pdf",
        None,
        "/docs/ä%.txt",
        "docs\\a b.pdf",
        "",
        (docs / "docs/a b.pdf").as_uri(),
    )
    url = database(tmp_path, *links)
    archive(url, tmp_path / "a.siard", options=options(docs, lobs=place))
    with open_siard(tmp_path / "a.siard") as source:
        ((schema, table),) = source.describe().tables()
        column = table.columns[1]
        assert column.type.kind is Kind.DATALINK  # type: ignore[union-attr]
        xml = b"".join(source.rows_xml(schema, table)).decode()
    assert 'dlurlpathonly="docs/a%20b.pdf"' in xml
    assert xml.count(f'length="{len(PDF)}"') == 3
    assert compare(url, str(tmp_path / "a.siard")).equal
    report = restore(tmp_path / "a.siard", f"sqlite:///{tmp_path / 'b.db'}")
    assert any("4 linked files stay in the archive" in note for note in report.notes)
    assert compare(url, f"sqlite:///{tmp_path / 'b.db'}").equal


@pytest.mark.parametrize("place", ["internal", "external"])
def test_links_in_arrays_are_followed_one_by_one(docs: Path, tmp_path: Path, place: str) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE doc (id INTEGER PRIMARY KEY, path VARCHAR[3])")
        db.execute("INSERT INTO doc VALUES (1, ['docs/a b.pdf', NULL, 'docs/ä%.txt']), (2, NULL)")
    url = f"duckdb:///{path}"
    archive(url, tmp_path / "a.siard", options=options(docs, lobs=place))
    result = validate(tmp_path / "a.siard", jobs=1).finish()
    assert (result.valid, result.lobs) == (True, 2), result.findings
    assert compare(url, str(tmp_path / "a.siard")).equal
    back = tmp_path / "back"
    back.mkdir()
    restore(tmp_path / "a.siard", f"duckdb:///{tmp_path}/b.duckdb", datalink_root=back)
    assert (back / "docs" / "a b.pdf").read_bytes() == PDF
    assert (back / "docs" / "ä%.txt").read_bytes() == b""
    with duckdb.connect(str(tmp_path / "b.duckdb"), read_only=True) as db:
        found = db.execute("SELECT path FROM doc WHERE id = 1").fetchone()
    assert found is not None
    assert list(found[0]) == ["docs/a b.pdf", None, "docs/ä%.txt"]


def test_linked_files_come_back_into_a_folder(docs: Path, tmp_path: Path) -> None:
    url = database(tmp_path, "docs/a b.pdf", "docs/ä%.txt", "docs/a b.pdf")  # twice the same
    archive(url, tmp_path / "a.siard", options=options(docs))
    convert(tmp_path / "a.siard", tmp_path / "b.siard", ConvertOptions("external"))
    back = tmp_path / "back"
    back.mkdir()
    restore(tmp_path / "b.siard", f"sqlite:///{tmp_path / 'b.db'}", datalink_root=back)
    assert (back / "docs" / "a b.pdf").read_bytes() == PDF
    assert (back / "docs" / "ä%.txt").read_bytes() == b""
    assert compare(url, str(tmp_path / "b.siard")).equal


def test_missing_files_stop_the_work_with_a_list(docs: Path, tmp_path: Path) -> None:
    url = database(tmp_path, "docs/a b.pdf", "docs/gone.pdf", "../a.db", "/etc/passwd")
    with pytest.raises(NotFound, match="3 linked files cannot be read") as caught:
        archive(url, tmp_path / "a.siard", options=options(docs))
    for name in ("docs/gone.pdf", "../a.db", "/etc/passwd"):
        assert name in str(caught.value)
    assert not (tmp_path / "a.siard").exists()


def test_missing_files_are_reported_if_that_is_wanted(docs: Path, tmp_path: Path) -> None:
    url = database(tmp_path, "docs/a b.pdf", "docs/gone.pdf")
    report = archive(url, tmp_path / "a.siard", options=options(docs, report=True))
    assert [note for note in report.notes if "docs/gone.pdf" in note]
    assert compare(url, str(tmp_path / "a.siard")).equal  # the link itself is kept
    back = tmp_path / "back"
    back.mkdir()
    report = restore(tmp_path / "a.siard", f"sqlite:///{tmp_path / 'b.db'}", datalink_root=back)
    assert any("docs/gone.pdf" in note for note in report.notes)
    assert compare(url, f"sqlite:///{tmp_path / 'b.db'}").equal


@pytest.fixture
def server(docs: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

    serving = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(docs)))
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_address[1]}"
    serving.shutdown()
    serving.server_close()


def test_links_to_a_web_server_are_fetched(server: str, tmp_path: Path) -> None:
    url = database(tmp_path, f"{server}/docs/a%20b.pdf")
    archive(url, tmp_path / "a.siard", options=options(None))
    with zipfile.ZipFile(tmp_path / "a.siard") as package:
        assert package.read("content/schema0/table0/lob1/record0.pdf") == PDF
    assert compare(url, str(tmp_path / "a.siard")).equal
    db = apsw.Connection(url.removeprefix("sqlite:///"))
    db.execute("INSERT INTO doc (path) VALUES (?)", (f"{server}/docs/gone.pdf",))
    db.close()
    with pytest.raises(NotFound, match=r"gone\.pdf"):
        archive(url, tmp_path / "b.siard", options=options(None))
    assert not (tmp_path / "b.siard").exists()


def test_links_that_lead_out_of_the_folder_are_not_written(docs: Path, tmp_path: Path) -> None:
    url = database(tmp_path, "docs/../docs/a b.pdf")
    archive(url, tmp_path / "a.siard", options=options(docs))
    with pytest.raises(UsageError, match="leads out of"):
        restore(tmp_path / "a.siard", f"sqlite:///{tmp_path / 'b.db'}", datalink_root=docs)


def test_a_column_that_is_not_there_is_refused(docs: Path, tmp_path: Path) -> None:
    url = database(tmp_path, "x")
    with pytest.raises(UsageError, match=r"main\.doc\.file is not a column"):
        archive(url, tmp_path / "a.siard", options=ArchiveOptions(links=Links(("main.doc.file",))))


def test_the_command_line_takes_links(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database(tmp_path, "docs/a b.pdf", "docs/gone.pdf")
    arguments = (
        "archive",
        "sqlite:///a.db",
        "a.siard",
        "--datalink",
        "main.doc.path",
        "--datalink-root",
        str(docs),
    )
    stopped = CliRunner().invoke(cli, arguments)
    assert stopped.exit_code == 3
    assert "docs/gone.pdf" in stopped.stderr
    done = CliRunner().invoke(cli, (*arguments, "--missing-files", "report"))
    assert done.exit_code == 0
    assert "docs/gone.pdf" in done.stderr
    assert CliRunner().invoke(cli, ("compare", "sqlite:///a.db", "a.siard")).exit_code == 0
