"""Large objects on their way in: the ruling, other writers' readings, and hostile archives."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from muniment.errors import DigestMismatch, LobError, LobMissing, SiardError
from muniment.siard import open_siard
from muniment.siard.lobs.folders import Root
from muniment.siard.metadata import format_metadata
from muniment.sql.batch import REF, cells_of
from muniment.sql.model import Column, Database, Schema, Table
from muniment.sql.types import parse_type

DATA = b"the object"
SHA = hashlib.sha256(DATA).hexdigest()


def make(
    folder: Path,
    *,
    cell: str = 'file="a.bin"',
    base: str | None = None,
    column: str | None = None,
    inside: dict[str, bytes] | None = None,
    outside: dict[str, bytes] | None = None,
    type_: str = "BLOB",
) -> Path:
    """Make an archive of one cell, and the files that may or may not be its object."""
    table = Table(
        "t", "table0", (Column("c", parse_type(type_), nullable=True, lob_folder=column),), rows=1
    )
    database = Database(
        "d", archival_date="2026-01-01Z", lob_folder=base,
        schemas=(Schema("s", "schema0", tables=(table,)),),
    )  # fmt: skip
    home = folder / "home"
    home.mkdir(exist_ok=True)
    path = home / "d.siard"
    with zipfile.ZipFile(path, "w") as package:
        row = f"<table><row><c1 {cell}/></row></table>"
        package.writestr("content/schema0/table0/table0.xml", row)
        for name, data in (inside or {}).items():
            package.writestr(name, data)
        package.writestr("header/metadata.xml", format_metadata(database))
    for name, data in (outside or {}).items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return path


def read(path: Path, *roots: Root) -> tuple[str, bytes]:
    """Return by which reading the object was found, and the object."""
    with open_siard(path, roots) as source:
        ((schema, table),) = source.describe().tables()
        (part,) = source.parts(schema, table)
        (batch,) = source.batches(schema, table, part)
        (cell,) = cells_of(batch)
        assert cell.startswith(REF)
        with source.open_lob(schema, table, cell[1:]) as stream:
            data = stream.read()
        location = source.lobs.location(schema, table, cell[1:])
        return source.lobs.find(schema, table, location).reading, data


# The ruling


@pytest.mark.parametrize("base", [None, "./d_lobs/", "d_lobs/"])
def test_without_a_column_folder_the_object_is_inside(tmp_path: Path, base: str | None) -> None:
    name = "content/schema0/table0/lob0/record0.bin"
    path = make(tmp_path, cell=f'file="{name}"', base=base, inside={name: DATA})
    assert read(path) == ("ruling", DATA)


@pytest.mark.parametrize(
    ("base", "column"),
    [(None, "d_lobs/c/"), ("./d_lobs/", "c/"), ("d_lobs", "c"), ("d_lobs/c", "./")],
)
def test_with_a_column_folder_the_object_is_outside(
    tmp_path: Path, base: str | None, column: str
) -> None:
    path = make(tmp_path, base=base, column=column, outside={"d_lobs/c/a.bin": DATA})
    assert read(path) == ("ruling", DATA)


def test_absolute_folders_are_followed_where_the_user_allows_it(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "c").mkdir(parents=True)
    (store / "c" / "a.bin").write_bytes(DATA)
    for base, column in ((store.as_uri(), "c/"), (None, f"{store.as_uri()}/c/")):
        path = make(tmp_path, base=base, column=column)
        assert read(path, Root(store)) == ("ruling", DATA)
        with pytest.raises(LobMissing, match="--lob-root"):
            read(path)
        path.unlink()


def test_a_folder_on_another_machine_is_found_under_the_name_the_user_gives_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "mounted" / "c").mkdir(parents=True)
    (tmp_path / "mounted" / "c" / "a.bin").write_bytes(DATA)
    path = make(tmp_path, base="file://storage.example/Home/stor/", column="c/")
    root = Root(tmp_path / "mounted", "file://storage.example/Home/stor/")
    assert read(path, root) == ("ruling", DATA)
    with pytest.raises(LobMissing, match=r"storage\.example"):
        read(path)


def test_a_location_is_url_encoded_and_may_be_not(tmp_path: Path) -> None:
    path = make(tmp_path, cell='file="a%20%C3%A4.bin"', column="x/", outside={"x/a ä.bin": DATA})
    assert read(path)[1] == DATA
    path = make(tmp_path, cell='file="100%.bin"', column="x/", outside={"x/100%.bin": DATA})
    assert read(path)[1] == DATA


# Other writers


@pytest.mark.parametrize(
    ("reading", "base", "column", "file", "inside", "outside"),
    [
        ("root-of-zip", "content", "schema0/table0/lob0", "content/schema0/table0/lob0/r.bin",
         "content/schema0/table0/lob0/r.bin", None),
        ("folders-in-zip", "content/", "schema0/table0/lob0/", "seg0/r.bin",
         "content/schema0/table0/lob0/seg0/r.bin", None),
        ("up-from-zip", None, "../lobs/", "record0.bin", None, "lobs/record0.bin"),
        ("up-from-zip", "../d.siard_lobs", "s0_t0_c1", "seg_0/t0_c1_r1.bin", None,
         "d.siard_lobs/s0_t0_c1/seg_0/t0_c1_r1.bin"),
        ("up-from-zip", "content", "lob9", "../d.siard_lobseg_1/content/r.bin", None,
         "d.siard_lobseg_1/content/r.bin"),
        ("up-from-zip", None, None, "..\\d.siard_lobseg_1\\content\\r.bin", None,
         "d.siard_lobseg_1/content/r.bin"),
        ("no-column-folder", "./", None, "d_lobseg_0/content/r.bin", None,
         "d_lobseg_0/content/r.bin"),
        ("moved", "file:///Archives/Northwind/", None, "d_lobseg_0/content/r.bin", None,
         "d_lobseg_0/content/r.bin"),
        ("moved", "file:///D:/Archives/", "c/", "r.bin", None, "c/r.bin"),
    ],
)  # fmt: skip
def test_readings_of_other_writers(
    tmp_path: Path,
    reading: str,
    base: str | None,
    column: str | None,
    file: str,
    inside: str | None,
    outside: str | None,
) -> None:
    path = make(
        tmp_path,
        cell=f'file="{file}"',
        base=base,
        column=column,
        inside={inside: DATA} if inside else {},
        outside={outside: DATA} if outside else {},
    )
    assert read(path) == (reading, DATA)


@pytest.mark.parametrize("prefix", ["md5", "MD5", "sha1", "SHA-1", "sha256", "SHA-256"])
def test_digests_of_siard_2_0_start_with_their_algorithm(tmp_path: Path, prefix: str) -> None:
    name = prefix.lower().replace("-", "")
    for data, fits in ((DATA, True), (b"another one", False)):
        digest = hashlib.new(name, data).hexdigest().upper()
        cell = f'file="a.bin" messageDigest="{prefix}{digest}"'
        path = make(tmp_path, cell=cell, inside={"a.bin": DATA})
        if fits:
            assert read(path)[1] == DATA
        else:
            with pytest.raises(DigestMismatch):
                read(path)


@pytest.mark.parametrize("length", [3, 4, 7])  # characters, UTF-16 units, bytes
def test_the_length_of_text_is_counted_in_three_ways(tmp_path: Path, length: int) -> None:
    text = "aé\U0001f600".encode()
    path = make(
        tmp_path, cell=f'file="a.txt" length="{length}"', inside={"a.txt": text}, type_="CLOB"
    )
    assert read(path)[1] == text


def test_zipped_segments_of_any_packing_are_opened(tmp_path: Path) -> None:
    for number, (file, zipped, entry) in enumerate(
        [
            ("seg_0.zip/a.bin", "seg_0.zip", "a.bin"),
            ("seg_0/a.bin", "seg_0.zip", "a.bin"),
            ("seg_0/a.bin", "seg_0.zip", "seg_0/a.bin"),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = make(folder, cell=f'file="{file}"', base="d_lobs/", column="c/")
        (path.parent / "d_lobs" / "c").mkdir(parents=True)
        with zipfile.ZipFile(path.parent / "d_lobs" / "c" / zipped, "w") as package:
            package.writestr(entry, DATA)
        assert read(path) == ("ruling", DATA)


# Parts


def split(tmp_path: Path, parts: dict[str, bytes], length: int = len(DATA)) -> Path:
    cell = f'file="seg_1/a.bin" length="{length}" digestType="SHA-256" digest="{SHA}"'
    outside = {f"d_lobs/c/{name}": data for name, data in parts.items()}
    return make(tmp_path, cell=cell, base="d_lobs/", column="c/", outside=outside)


def test_parts_are_joined_across_segments(tmp_path: Path) -> None:
    parts = {
        "seg_1/a.bin_part001": DATA[:3],
        "seg_2/a.bin_part002": DATA[3:4],
        "seg_2/a.bin_part003": DATA[4:],
    }
    assert read(split(tmp_path, parts))[1] == DATA


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"seg_1/a.bin_part001": DATA[:3], "seg_2/a.bin_part003": DATA[3:]}, "part002 is missing"),
        ({"seg_1/a.bin_part002": DATA[3:]}, "part001 is missing"),
        ({"seg_1/a.bin_part001": DATA[:3]}, "length should be 10 and is 3"),
        ({"seg_1/a.bin_part001": DATA[:3], "seg_2/a.bin_part002": DATA[3:5],
          "seg_1/a.bin_part003": DATA[5:]}, "out of order"),
        ({"seg_1/a.bin_part001": DATA[3:], "seg_1/a.bin_part002": DATA[:3]}, "was changed"),
        ({"seg_1/a.bin.0": DATA[:3], "seg_2/a.bin.1": DATA[3:]}, "the last part"),
    ],
)  # fmt: skip
def test_parts_that_are_missing_or_out_of_order_are_named(
    tmp_path: Path, parts: dict[str, bytes], message: str
) -> None:
    with pytest.raises((LobError, DigestMismatch), match=message) as caught:
        read(split(tmp_path, parts))
    assert "s.t.c" in str(caught.value)


# Damage and malice


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ('file="a.bin" length="11"', "length should be 11 and is 10"),
        ('file="a.bin" length="-1"', "its length is given as '-1'"),
        ('file="a.bin" digestType="SHA-256" digest="00"', "was changed"),
        ('file="a.bin" digestType="CRC32" digest="00"', "digest type 'CRC32' is unknown"),
        ('file="b.bin"', "it is neither inside the archive"),
        ('file="/etc/passwd"', "must be relative"),
        ('file="file:///etc/passwd"', "must be relative"),
        ('file="\\\\server\\share\\a"', "must be relative"),
        ('file="C:/a.bin"', "must be relative"),
        ('file="content/.."', "not the name of a file"),
        ('file="../../etc/passwd"', "leads out of|neither inside"),
        ('file="../../../../../../etc/passwd"', "leads out of|neither inside"),
        ('file="x/../../../etc/passwd"', "leads out of|neither inside|not inside"),
        ('file="..%2F..%2Fetc/passwd"', "leads out of|neither inside|not inside"),
    ],
)
def test_bad_cells_get_a_sentence_that_names_them(tmp_path: Path, cell: str, message: str) -> None:
    with pytest.raises((LobError, DigestMismatch), match=message) as caught:
        read(make(tmp_path, cell=cell, inside={"a.bin": DATA}))
    assert "s.t" in str(caught.value)


@pytest.mark.parametrize(
    ("base", "column"),
    [
        ("/etc/", "./"), ("file:///etc/", "./"), (None, "/etc/"), (None, "file:///etc/"),
        ("../../../../../../../../etc/", "./"), (None, "../../../../../../../../etc"),
    ],
)  # fmt: skip
def test_folders_outside_are_not_looked_into(tmp_path: Path, base: str | None, column: str) -> None:
    with pytest.raises(LobError, match=r"s\.t\.c.*passwd"):
        read(make(tmp_path, cell='file="passwd"', base=base, column=column))


def test_a_column_folder_is_relative_if_the_database_has_one(tmp_path: Path) -> None:
    path = make(
        tmp_path, base="./d_lobs/", column=f"file://{tmp_path}/home/x/", outside={"x/a.bin": DATA}
    )
    with pytest.raises(LobError, match="is absolute"):
        read(path)


def test_links_lead_nowhere_unless_the_user_allows_their_target(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "a.bin").write_bytes(DATA)
    path = make(tmp_path, base="./d_lobs/", column="c/", outside={"d_lobs/c/other": b""})
    (path.parent / "d_lobs" / "c" / "a.bin").symlink_to(secret / "a.bin")
    with pytest.raises(LobError, match="links are not followed"):
        read(path)
    (path.parent / "d_lobs" / "c" / "a.bin").unlink()
    (path.parent / "d_lobs" / "c" / "other").unlink()
    (path.parent / "d_lobs" / "c").rmdir()
    (path.parent / "d_lobs" / "c").symlink_to(secret)
    with pytest.raises(LobError, match="outside the folder of the archive"):
        read(path)
    assert read(path, Root(secret))[1] == DATA


def test_hidden_folders_are_not_looked_into(tmp_path: Path) -> None:
    path = make(tmp_path, cell='file="id"', column=".ssh/", outside={".ssh/id": DATA})
    with pytest.raises(LobError, match="hidden"):
        read(path)


def test_a_pipe_in_place_of_a_file_does_not_make_anybody_wait(tmp_path: Path) -> None:
    path = make(tmp_path, column="c/", outside={"c/other": b""})
    os.mkfifo(path.parent / "c" / "a.bin")
    with pytest.raises(LobMissing):
        read(path)


def test_entries_of_a_zipped_segment_cannot_climb_out(tmp_path: Path) -> None:
    path = make(tmp_path, cell='file="seg_0.zip/../../../a.bin"', base="d_lobs/", column="c/")
    (path.parent / "d_lobs" / "c").mkdir(parents=True)
    with zipfile.ZipFile(path.parent / "d_lobs" / "c" / "seg_0.zip", "w") as package:
        package.writestr("../../../a.bin", DATA)
    with pytest.raises(LobError):
        read(path)


# mapping.txt


def mapped(tmp_path: Path, lines: str) -> Path:
    path = make(tmp_path, cell='file="seg_0/a.bin"', base="d_lobs/", column="c/")
    (tmp_path / "store" / "d_lobs" / "c" / "seg_0").mkdir(parents=True, exist_ok=True)
    (tmp_path / "store" / "d_lobs" / "c" / "seg_0" / "a.bin").write_bytes(DATA)
    (path.parent / "mapping.txt").write_text(lines)
    return path


def test_a_mapped_segment_is_found_where_the_user_allows_it(tmp_path: Path) -> None:
    path = mapped(tmp_path, f"d_lobs/c/seg_0/ {(tmp_path / 'store').as_uri()}/\n")
    assert read(path, Root(tmp_path / "store"))[1] == DATA
    with pytest.raises(LobError, match=r"mapping\.txt says .* --lob-root"):
        read(path)


def test_a_mapping_that_loops_is_refused(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/home/d_lobs"
    with pytest.raises(LobError, match="loops"):
        read(mapped(tmp_path, f"d_lobs {uri}/\n"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("d_lobs/c/seg_0/\n", "line 1: there should be"),
        ("../x/ file:///a/\n", "line 1: there should be"),
        ("a/ file:///a/\n\na/ file:///b/\n", "line 3: a/ is mapped twice"),
    ],
)
def test_a_mapping_that_makes_no_sense_is_named_with_its_line(
    tmp_path: Path, lines: str, message: str
) -> None:
    with pytest.raises(SiardError, match=message):
        read(mapped(tmp_path, lines))


def test_network_places_are_never_opened(tmp_path: Path) -> None:
    path = mapped(tmp_path, "d_lobs/c/seg_0/ http://127.0.0.1:1/\n")
    (tmp_path / "other").mkdir()
    with pytest.raises(LobError, match=r"http://127\.0\.0\.1:1/"):
        read(path, Root(tmp_path / "other"))
    assert read(path, Root(tmp_path / "store")) == ("moved", DATA)  # the user knows better


def test_fields_have_folders_of_their_own(tmp_path: Path) -> None:
    from muniment.sql.model import Attribute, Field, UserType
    from muniment.sql.types import NamedType

    udt = UserType(
        "u",
        "udt",
        attributes=(Attribute("x", parse_type("INTEGER")), Attribute("y", parse_type("BLOB"))),
    )
    column = Column(
        "c", NamedType("", "u"), nullable=True, lob_folder="c/",
        fields=(Field("x"), Field("y", lob_folder="inner/")),
    )  # fmt: skip
    table = Table("t", "table0", (column,), rows=1)
    database = Database(
        "d", archival_date="2026-01-01Z", lob_folder="d_lobs/",
        schemas=(Schema("s", "schema0", types=(udt,), tables=(table,)),),
    )  # fmt: skip
    path = make(tmp_path, outside={"d_lobs/c/inner/a.bin": DATA})
    path.unlink()
    with zipfile.ZipFile(path, "w") as package:
        row = '<table><row><c1><u1>1</u1><u2 file="a.bin"/></c1></row></table>'
        package.writestr("content/schema0/table0/table0.xml", row)
        package.writestr("header/metadata.xml", format_metadata(replace(database)))
    with open_siard(path) as source:
        ((schema, found),) = source.describe().tables()
        (part,) = source.parts(schema, found)
        (batch,) = source.batches(schema, found, part)
        reference = batch.data[batch.data.index(REF) + 1 :].split(b"\xfb")[0]
        with source.open_lob(schema, found, reference) as stream:
            assert stream.read() == DATA
