"""Large objects that lie about where and what they are: every command that resolves them says so."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

from muniment.cli.main import cli
from muniment.siard.metadata import format_metadata, metadata_schema
from muniment.siard.schema import table_schema
from muniment.sql.model import Column, Database, Leaf, Schema, Table
from muniment.sql.types import PredefinedType
from muniment.web.app import create_app
from muniment.web.site import OpenArchive, Site

DATA = b"0123456789"
SHA = hashlib.sha256(DATA).hexdigest()
GOOD = f'length="10" digestType="SHA-256" digest="{SHA}"'
SECRET = b"a secret of this machine"


@dataclass(frozen=True)
class Bad:
    """What a cell says, and what lies where; ``words`` are what people are told."""

    cell: str
    words: str
    inside: tuple[str, ...] = ()
    outside: tuple[tuple[str, bytes], ...] = ()
    base: str | None = None
    column: str | None = None
    rule: str = "T_6.4-5"
    mapping: str = ""
    link: bool = False  # a symbolic link to the secret in place of the object
    gone: bool = False  # restoring goes on without it


def parts(*names: tuple[str, bytes]) -> tuple[tuple[str, bytes], ...]:
    return tuple((f"d_lobs/c/{name}", data) for name, data in names)


OUT: dict[str, Any] = {"base": "./d_lobs/", "column": "c/"}
SEGMENT = f'file="seg_1/a.bin" {GOOD}'
BAD = {
    "absolute path": Bad(f'file="@SECRET@" {GOOD}', "must be relative", rule="T_6.2-1"),
    "absolute uri": Bad(f'file="file://@SECRET@" {GOOD}', "must be relative", rule="T_6.2-1"),
    "windows path": Bad(f'file="C:/a.bin" {GOOD}', "must be relative", rule="T_6.2-1"),
    "climbing": Bad(f'file="../../secret.txt" {GOOD}', "leads out of", gone=True),
    "climbing folder": Bad(
        f'file="secret.txt" {GOOD}', "not inside|neither inside|leads out|outside the",
        column="../../", gone=True,
    ),
    "absolute folder": Bad(
        f'file="secret.txt" {GOOD}', "--lob-root", column="file://@PARENT@/", gone=True
    ),
    "entry that climbs": Bad(
        f'file="seg_0.zip/../../../a.bin" {GOOD}', "neither inside|leads out|not inside",
        gone=True, **OUT,
    ),
    "link": Bad(f'file="a.bin" {GOOD}', "links are not followed", rule="G_3.4-1", link=True, **OUT),
    "missing part": Bad(
        SEGMENT, "part002 is missing", rule="S_8.1.1-0", gone=True,
        outside=parts(("seg_1/a.bin_part001", DATA[:3]), ("seg_2/a.bin_part003", DATA[3:])), **OUT,
    ),
    "parts out of order": Bad(
        SEGMENT, "out of order", rule="S_8.1.1-0",
        outside=parts(
            ("seg_1/a.bin_part001", DATA[:3]), ("seg_2/a.bin_part002", DATA[3:5]),
            ("seg_1/a.bin_part003", DATA[5:]),
        ), **OUT,
    ),
    "wrong length": Bad(
        f'file="a.bin" {GOOD}'.replace('"10"', '"11"'), "should be 11", ("a.bin",), rule="T_6.2-1"
    ),
    "odd length": Bad(
        f'file="a.bin" {GOOD}'.replace('"10"', '"ten"'), "is given as 'ten'", ("a.bin",),
        rule="T_6.2-1",
    ),
    "wrong digest": Bad(
        f'file="a.bin" {GOOD}'.replace(SHA, "0" * 64), "digest (should be 0+|is)", ("a.bin",)
    ),
    "unknown digest": Bad(
        f'file="a.bin" {GOOD}'.replace("SHA-256", "CRC32"), "'CRC32' is unknown", ("a.bin",),
        rule="T_6.2-1",
    ),
    "mapping that loops": Bad(
        SEGMENT, "loops", rule="S_8.1.2-0", mapping="d_lobs file://@HOME@/d_lobs/\n",
        outside=parts(("seg_1/a.bin", DATA)), **OUT,
    ),
    "mapping to the network": Bad(
        SEGMENT, "http://127.0.0.1:1/", rule="S_8.1.2-0",
        mapping="d_lobs/c/seg_1/ http://127.0.0.1:1/\n", **OUT,
    ),
    "missing": Bad(f'file="a.bin" {GOOD}', "not inside|neither inside", gone=True),
}  # fmt: skip


def make(folder: Path, bad: Bad) -> Path:
    """Write an archive of one cell."""
    (folder / "secret.txt").write_bytes(SECRET)
    home = folder / "home"
    home.mkdir()

    def filled(text: str) -> str:
        text = text.replace("@SECRET@", str(folder / "secret.txt"))
        return text.replace("@PARENT@", str(folder)).replace("@HOME@", str(home))

    column = Column("c", PredefinedType("BLOB"), lob_folder=bad.column and filled(bad.column))
    table = Table("t", "table0", (column,), rows=1)
    database = Database(
        folder.name, data_owner="nobody", data_origin_timespan="now", lob_folder=bad.base,
        archival_date="2026-01-01Z", schemas=(Schema("s", "schema0", tables=(table,)),),
    )  # fmt: skip
    head = "http://www.bar.admin.ch/xmlns/siard/2/table.xsd"
    rows = f'<table xmlns="{head}" version="2.2"><row><c1 {filled(bad.cell)}/></row></table>'
    path = home / "d.siard"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("content/schema0/table0/table0.xml", rows)
        schema = table_schema((column,), (Leaf(PredefinedType("BLOB")),), (0,))
        package.writestr("content/schema0/table0/table0.xsd", schema)
        for name in bad.inside:
            package.writestr(name, DATA)
        package.writestr("header/siardversion/2.2/", b"")
        package.writestr("header/metadata.xsd", metadata_schema())
        package.writestr("header/metadata.xml", format_metadata(database))
    for name, data in bad.outside:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(data)
    if bad.mapping:
        (home / "mapping.txt").write_text(filled(bad.mapping))
    if bad.link:
        (home / "d_lobs" / "c").mkdir(parents=True)
        (home / "d_lobs" / "c" / "a.bin").symlink_to(folder / "secret.txt")
    return path


@pytest.fixture(params=BAD)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Bad, Path]:
    folder = tmp_path / request.param.replace(" ", "_")  # each archive is another one
    folder.mkdir()
    return BAD[request.param], make(folder, BAD[request.param])


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), arguments
    assert SECRET.decode() not in result.output
    assert SECRET.hex() not in result.output.lower()
    return result


def told(result: Result, bad: Bad) -> None:
    assert re.search(bad.words, result.output), result.output
    assert "s.t.c" in result.output, result.output


def test_no_command_is_taken_in(case: tuple[Bad, Path]) -> None:
    bad, path = case
    home = path.parent
    found = run("validate", str(path))
    assert found.exit_code == 1
    told(found, bad)
    assert names_rule(found.output, bad.rule), found.output
    for command in (
        ("compare", str(path), str(path)),
        ("convert", str(path), str(home / "new.siard"), "--lobs", "internal"),
    ):
        result = run(*command)
        assert result.exit_code == 3
        told(result, bad)
    assert not (home / "new.siard").exists()
    restored = run("restore", str(path), f"sqlite:///{home}/back.db")
    assert restored.exit_code == (0 if bad.gone else 3)
    if bad.gone:
        assert "s.t.c: a large object is missing and became NULL" in restored.output
    else:
        told(restored, bad)
        assert not (home / "back.db").exists()
    assert run("show", str(path), "s.t").exit_code == 0
    asked = run("query", str(path), "SELECT * FROM t")
    assert asked.exit_code == 0
    told(asked, bad)
    pages = run("export", str(path), str(home / "pages"), "--format", "html")
    assert pages.exit_code == 0
    told(pages, bad)
    for page in (home / "pages").rglob("*"):
        assert not page.is_file() or SECRET not in page.read_bytes()


def names_rule(output: str, rule: str) -> bool:
    return f"error {rule}:" in output or f"warning {rule}:" in output


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Browse all of the archives at once."""
    archives = {}
    for number, (name, bad) in enumerate(BAD.items()):
        folder = tmp_path_factory.mktemp("browse") / name.replace(" ", "_")
        folder.mkdir()
        archives[f"a{number}"] = OpenArchive(f"a{number}", make(folder, bad))
    site = Site(archives)
    with TestClient(create_app(site), base_url="http://localhost") as client:
        for archive in archives.values():
            assert archive.wait(120), archive.progress
        yield client


def test_no_page_is_taken_in(browser: TestClient) -> None:
    for number, name in enumerate(BAD):
        page = browser.get(f"/a/a{number}/t/s/t")
        assert page.status_code == 200, name
        raw = browser.get(f"/a/a{number}/t/s/t/1/c/raw")
        assert raw.status_code in (404, 500, 502, 503) or raw.content == DATA, (name, raw)
        for answer in (page, raw):
            assert SECRET not in answer.content, name
