"""Archives with faults that a person could still read are read, and the faults are told."""

from __future__ import annotations

import zipfile
from pathlib import Path

import apsw
import duckdb
from broken_archives import ARTIST, OUTSIDE, POEM, TRACK, VALID, WORK, changed, write

from muniment.siard import open_siard
from muniment.transfer import restore

IN_FOLDER = {f"museum/{name}": data for name, data in VALID.items()}


def rows(path: Path, question: str) -> list[tuple[object, ...]]:
    db = apsw.Connection(str(path))
    try:
        return db.execute(question).fetchall()
    finally:
        db.close()


def test_an_archive_packed_with_a_folder_around_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "museum.siard"
    write(path, {k: v.replace(b"@DIGEST@", b"00") for k, v in IN_FOLDER.items()})
    with open_siard(path) as source:
        assert [t.name for _, t in source.describe().tables()] == ["ARTIST", "WORK"]
        assert source.notes == [f"{path} is packed wrongly: everything lies in the folder museum/"]
    report = restore(path, f"sqlite:///{tmp_path}/back.db")
    assert any("packed wrongly" in note for note in report.notes)
    assert rows(tmp_path / "back.db", "SELECT count(*) FROM ARTIST") == [(3,)]
    assert rows(tmp_path / "back.db", "SELECT POEM FROM WORK WHERE NUMBER = 10") == [
        (POEM.decode(),)
    ]


def test_objects_that_are_lost_become_null_and_are_counted(tmp_path: Path) -> None:
    files = {k: v for k, v in VALID.items() if not k.endswith("record0.txt")}
    path = write(tmp_path / "museum.siard", files)
    report = restore(path, f"sqlite:///{tmp_path}/back.db")
    assert "MAIN.WORK.POEM: a large object is missing and became NULL" in report.notes
    assert rows(tmp_path / "back.db", "SELECT POEM FROM WORK WHERE NUMBER = 10") == [(None,)]


def test_objects_inside_complex_values_come_with_them(tmp_path: Path) -> None:
    files = changed(
        VALID,
        "header/metadata.xml",
        "<name>WALL</name><type>VARCHAR(5)",
        "<name>WALL</name><type>CLOB",
    )
    reference = '<u2 file="content/schema0/table1/lob4/field1/record0.txt" length="4"/>'
    files = changed(files, WORK, "<u2>N</u2>", reference)
    files["content/schema0/table1/lob4/field1/record0.txt"] = "Nörd".encode()
    path = write(tmp_path / "museum.siard", files)
    restore(path, f"duckdb:///{tmp_path}/back.duckdb")
    with duckdb.connect(str(tmp_path / "back.duckdb"), read_only=True) as db:
        found = db.execute('SELECT HANGS."WALL" FROM MAIN.WORK WHERE NUMBER = 10').fetchall()
    assert found == [("Nörd",)]


def test_linked_files_inside_complex_values_come_with_them(tmp_path: Path) -> None:
    files = changed(
        VALID,
        "header/metadata.xml",
        "<name>WALL</name><type>VARCHAR(5)",
        "<name>WALL</name><type>DATALINK",
    )
    name = "content/schema0/table1/lob4/field1/record0.bin"
    reference = f'<u2 file="{name}" length="4" dlurlpathonly="/walls/n.pdf"/>'
    files = {**changed(files, WORK, "<u2>N</u2>", reference), name: b"%PDF"}
    path = write(tmp_path / "museum.siard", files)
    restore(path, f"duckdb:///{tmp_path}/back.duckdb")
    with duckdb.connect(str(tmp_path / "back.duckdb"), read_only=True) as db:
        found = db.execute('SELECT HANGS."WALL" FROM MAIN.WORK WHERE NUMBER = 10').fetchall()
    assert found == [(b"%PDF",)]


def test_intervals_find_a_place_in_sqlite(tmp_path: Path) -> None:
    path = write(tmp_path / "museum.siard")
    restore(path, f"sqlite:///{tmp_path}/back.db")
    assert rows(tmp_path / "back.db", "SELECT LOAN FROM WORK WHERE NUMBER = 10") == [
        ("P3DT4H5M6.7S",)
    ]


def test_the_writers_deviations_are_read(tmp_path: Path) -> None:
    """Other namespaces, prefixes, no entries for folders, a byte order mark, CDATA, no Z."""
    text = VALID[ARTIST].decode()
    text = text.replace(
        "http://www.bar.admin.ch/xmlns/siard/2/table.xsd",
        "http://www.admin.ch/xmlns/siard/2.2/schema0/table0.xsd",
    )
    text = (
        text.replace(' version="2.2"', "")
        .replace("-29Z", "-29")
        .replace("Jürg", "<![CDATA[Jürg]]>")
    )
    files = {k: v for k, v in VALID.items() if not k.endswith("/")}
    files[ARTIST] = b"\xef\xbb\xbf" + text.encode()
    files["header/metadata.xml"] = files["header/metadata.xml"].replace(b"@DIGEST@", b"00")
    path = write(tmp_path / "museum.siard", files)
    restore(path, f"sqlite:///{tmp_path}/back.db")
    assert rows(tmp_path / "back.db", "SELECT NAME, BORN FROM ARTIST WHERE ID = 2") == [
        ("Jürg", "1988-02-29")
    ]


def test_the_sample_is_what_the_tests_say(tmp_path: Path) -> None:
    path = write(tmp_path / "museum.siard")
    assert (tmp_path / next(iter(OUTSIDE))).read_bytes() == TRACK
    with zipfile.ZipFile(path) as package:
        assert package.testzip() is None
