"""Large objects on their way out: placement, names, segments, parts, manifest, mapping."""

from __future__ import annotations

import hashlib
import re
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.compare import compare
from muniment.convert import ConvertOptions, convert
from muniment.errors import DatabaseError, UsageError
from muniment.findings import Severity
from muniment.siard import open_siard, validate
from muniment.siard.lobs.layout import Limits, Segments
from muniment.siard.lobs.storing import External
from muniment.siard.volumes import part_name
from muniment.transfer import ArchiveOptions, archive, restore
from siard.northwind import SIZES, make_northwind, pictures

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture
def northwind(tmp_path: Path) -> str:
    (tmp_path / "db").mkdir()
    return make_northwind(tmp_path / "db" / "Northwind.db")


def options(limits: Limits | None = None, **how: Any) -> ArchiveOptions:
    external = External(limits=limits or Limits(), **how)
    return ArchiveOptions(lobs="external", external=external, digests=("MD5",))


def files(folder: Path, pattern: str = "Northwind_*/**/*") -> list[str]:
    found = (p for p in folder.glob(pattern) if p.is_file())
    return sorted((str(p.relative_to(folder)) for p in found), key=_by_number)


def _by_number(name: str) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def xml_of(path: Path, member: str = "content/schema0/table2/table2.xml") -> str:
    with zipfile.ZipFile(path) as package:
        return package.read(member).decode()


def proved(url: str, path: Path) -> None:
    """The archive equals its database, and what is restored from it does too."""
    assert compare(url, str(path)).equal
    restore(path, f"sqlite:///{path.with_suffix('.back.db')}")
    assert compare(url, f"sqlite:///{path.with_suffix('.back.db')}").equal


def test_appendix_e_is_reproduced_to_the_byte_count(northwind: str, tmp_path: Path) -> None:
    path = tmp_path / "Northwind.siard"
    archive(northwind, path, options=options(Limits(4, 45_000)))
    assert files(tmp_path) == [
        *(f"Northwind_lobs/s0_t2_c4/seg_0/t2_c4_r{n}.bin" for n in (1, 2, 3, 4)),
        *(f"Northwind_lobs/s0_t2_c4/seg_1/t2_c4_r{n}.bin" for n in (5, 6, 7)),
        "Northwind_lobs/s0_t2_c4/seg_2/t2_c4_r8.bin",
    ]
    sizes = [(tmp_path / name).stat().st_size for name in files(tmp_path)]
    assert sizes == list(SIZES)
    digest = hashlib.md5(pictures()[3]).hexdigest()
    cell = f'<c4 file="seg_0/t2_c4_r4.bin" length="9756" digestType="MD5" digest="{digest}"/>'
    assert cell in xml_of(path)
    metadata = xml_of(path, "header/metadata.xml")
    assert "<lobFolder>./Northwind_lobs/</lobFolder>" in metadata
    assert "<lobFolder>s0_t2_c4/</lobFolder>" in metadata
    assert metadata.count("<lobFolder>") == 2
    proved(northwind, path)


def test_the_eark_example_is_reproduced(northwind: str, tmp_path: Path) -> None:
    path = tmp_path / "Northwind.siard"
    archive(northwind, path, options=options(Limits(4, 45_000), layout="eark-2.0"))
    folder = "content/schema0/table2/lob4"
    assert files(tmp_path) == [
        *(f"Northwind_lobseg_0/{folder}/record{n}.bin" for n in (0, 1, 2, 3)),
        *(f"Northwind_lobseg_1/{folder}/record{n}.bin" for n in (4, 5, 6)),
        f"Northwind_lobseg_2/{folder}/record7.bin",
    ]
    assert f'file="Northwind_lobseg_1/{folder}/record4.bin" length="12131"' in xml_of(path)
    proved(northwind, path)


def test_the_eark_example_is_reproduced_to_the_letter_in_siard_2_0(
    northwind: str, tmp_path: Path
) -> None:
    path = tmp_path / "Northwind.siard"
    wanted = replace(options(Limits(4, 45_000), layout="eark-2.0"), version="2.0")
    archive(northwind, path, options=wanted)
    rows = re.findall("<row>.*?</row>", xml_of(path))
    for number, (row, data) in enumerate(zip(rows, pictures(), strict=True)):
        segment = (0, 0, 0, 0, 1, 1, 1, 2)[number]
        file = f"Northwind_lobseg_{segment}/content/schema0/table2/lob4/record{number}.bin"
        digest = hashlib.md5(data).hexdigest()
        assert row.endswith(
            f'<c4 file="{file}" length="{len(data)}" messageDigest="md5{digest}"/></row>'
        )
    result = validate(path, jobs=1).finish()
    assert result.version == "2.0"
    assert [f for f in result.findings if f.severity is not Severity.NOTE] == []
    proved(northwind, path)
    with zipfile.ZipFile(path) as package:
        package.extractall(tmp_path / "out")
    for schema, document in (
        ("content/schema0/table2/table2.xsd", "content/schema0/table2/table2.xml"),
        ("header/metadata.xsd", "header/metadata.xml"),
    ):
        subprocess.run(
            ["xmllint", "--noout", "--schema", schema, document],
            cwd=tmp_path / "out", check=True, capture_output=True,
        )  # fmt: skip


@pytest.mark.samples
def test_siard_2_0_is_what_the_official_schema_says(
    shop: Path, samples: Path, tmp_path: Path
) -> None:
    path = tmp_path / "shop.siard"
    archive(f"sqlite:///{shop}", path, options=ArchiveOptions(version="2.0"))
    official = samples.parent / "xsd" / "siard" / "metadata-2.0.xsd"
    (tmp_path / "metadata.xml").write_text(xml_of(path, "header/metadata.xml"))
    subprocess.run(
        ["xmllint", "--noout", "--schema", str(official), str(tmp_path / "metadata.xml")],
        check=True, capture_output=True,
    )  # fmt: skip


def test_an_archive_goes_to_siard_2_0_and_back(shop: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{shop}"
    archive(url, tmp_path / "new.siard")
    convert(tmp_path / "new.siard", tmp_path / "old.siard", ConvertOptions(version="2.0"))
    result = validate(tmp_path / "old.siard", jobs=1).finish()
    assert (result.version, result.valid) == ("2.0", True)
    proved(url, tmp_path / "old.siard")
    convert(tmp_path / "old.siard", tmp_path / "again.siard")
    assert validate(tmp_path / "again.siard", jobs=1).finish().valid
    assert compare(str(tmp_path / "new.siard"), str(tmp_path / "again.siard")).equal


@pytest.mark.parametrize(
    ("layout", "names"),
    [
        (
            "siard-2.2",
            ["seg_0/t2_c4_r1.bin", "seg_0/t2_c4_r2.bin_part001", "seg_1/t2_c4_r2.bin_part002",
             "seg_2/t2_c4_r2.bin_part003", "seg_2/t2_c4_r3.bin"],
        ),
        (
            "eark-2.0",
            ["lobseg_0/…/record0.bin", "lobseg_0/…/record1.bin.0", "lobseg_1/…/record1.bin.1",
             "lobseg_2/…/record1.bin.z", "lobseg_2/…/record2.bin"],
        ),
    ],
)  # fmt: skip
def test_an_object_larger_than_a_segment_is_split_and_joined(
    tmp_path: Path, layout: str, names: list[str]
) -> None:
    (tmp_path / "db").mkdir()
    sizes = (40_000, 230_000, 20_000)
    url = make_northwind(tmp_path / "db" / "Northwind.db", sizes)
    path = tmp_path / "Northwind.siard"
    archive(url, path, options=options(Limits(4, 100_000), layout=layout))
    short = [
        re.sub("content/.*/", "…/", name.removeprefix("Northwind_lobs/s0_t2_c4/")).removeprefix(
            "Northwind_"
        )
        for name in files(tmp_path)
    ]
    assert sorted(short) == sorted(names)
    assert hashlib.md5(pictures(sizes)[1]).hexdigest() in xml_of(path)
    proved(url, path)


def test_zipped_segments_are_addressed_as_folders(northwind: str, tmp_path: Path) -> None:
    path = tmp_path / "Northwind.siard"
    archive(northwind, path, options=options(Limits(3), zipped=True))
    assert files(tmp_path) == [f"Northwind_lobs/s0_t2_c4/seg_{n}.zip" for n in (0, 1, 2)]
    assert 'file="seg_1.zip/t2_c4_r4.bin"' in xml_of(path)
    with zipfile.ZipFile(tmp_path / "Northwind_lobs/s0_t2_c4/seg_1.zip") as package:
        assert package.namelist() == ["t2_c4_r4.bin", "t2_c4_r5.bin", "t2_c4_r6.bin"]
        assert package.testzip() is None
    proved(northwind, path)


@pytest.mark.parametrize(
    ("digest", "tool"), [("SHA-256", "sha256sum"), ("MD5", "md5sum"), ("SHA-1", "sha1sum")]
)
@pytest.mark.parametrize("how", [{}, {"zipped": True}, {"layout": "eark-2.0"}])
def test_the_manifest_is_checked_by_coreutils(
    northwind: str, tmp_path: Path, digest: str, tool: str, how: dict[str, Any]
) -> None:
    wanted = ArchiveOptions(
        lobs="external", external=External(limits=Limits(3, 11_500), **how), digests=(digest,)
    )
    archive(northwind, tmp_path / "Northwind.siard", options=wanted)
    name = f"Northwind_lobs_{tool.removesuffix('sum')}.txt"
    checked = subprocess.run(
        [tool, "-c", "--strict", name], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert checked.stdout.count(": OK") == len(files(tmp_path, "Northwind_lob*/**/*"))


def test_segments_can_lie_elsewhere_and_are_found_by_the_mapping(
    northwind: str, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    path = home / "Northwind.siard"
    places = {"s0_t2_c4/seg_[12]": store.as_uri()}
    archive(northwind, path, options=options(Limits(3), places=places))
    assert (home / "mapping.txt").read_text() == (
        f"Northwind_lobs/s0_t2_c4/seg_1/ {store.as_uri()}/\n"
        f"Northwind_lobs/s0_t2_c4/seg_2/ {store.as_uri()}/\n"
    )
    assert len(files(home)) == 3
    assert len(files(store)) == 5
    assert not list(tmp_path.rglob("*.partial"))
    with pytest.raises(Exception, match=r"Categories\.Picture.*allow it with --lob-root"):
        compare(northwind, str(path))
    from muniment.siard.lobs.folders import Root

    assert compare(northwind, str(path), roots=[Root(store)]).equal


def database(path: Path, script: str, *rows: tuple[Any, ...]) -> str:
    db = apsw.Connection(str(path))
    db.execute(script)
    if rows:
        db.executemany(f"INSERT INTO t VALUES ({','.join('?' * len(rows[0]))})", rows)
    db.close()
    return f"sqlite:///{path}"


def test_a_column_lies_inline_or_in_files_as_a_whole(tmp_path: Path) -> None:
    script = "CREATE TABLE t (id INTEGER PRIMARY KEY, short TEXT, long TEXT, none TEXT)"
    rows = [(n, "s" * n, "l" * (n * 100), None) for n in range(1, 60)]
    url = database(tmp_path / "a.db", script, *rows)
    archive(url, tmp_path / "a.siard")
    xml = xml_of(tmp_path / "a.siard", "content/schema0/table0/table0.xml")
    assert xml.count("<c3 file=") == 59
    assert xml.count("<c2>") == 59
    archive(url, tmp_path / "mixed.siard", options=ArchiveOptions(lob_mixed=True))
    xml = xml_of(tmp_path / "mixed.siard", "content/schema0/table0/table0.xml")
    assert (xml.count("<c3 file="), xml.count("<c3>")) == (19, 40)
    for name in ("a", "mixed"):
        proved(url, tmp_path / f"{name}.siard")


def test_types_and_columns_have_their_own_places(tmp_path: Path) -> None:
    script = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB, c BLOB, d VARBINARY(9))"
    url = database(tmp_path / "a.db", script, (1, "ä" * 3, PNG, b"xyz", b"\x01\x02"))
    wanted = ArchiveOptions(
        lobs="inline",
        lobs_for={"BLOB": "external", "main.t.c": "internal", "main.t.d": "internal"},
        lob_threshold_for={"BLOB": 0, "main.t.c": 3, "main.t.d": 0},
    )
    archive(url, tmp_path / "a.siard", options=wanted)
    xml = xml_of(tmp_path / "a.siard", "content/schema0/table0/table0.xml")
    assert "<c2>äää</c2>" in xml
    assert '<c3 file="seg_0/t0_c3_r1.png" length="108"' in xml
    assert "<c4>78797A</c4>" in xml
    assert '<c5 file="content/schema0/table0/lob4/record0.bin" length="2"' in xml
    with open_siard(tmp_path / "a.siard") as source:
        (table,) = (t for _, t in source.describe().tables())
    assert [c.mime_type for c in table.columns] == [None, None, "image/png", None, None]
    assert [c.lob_folder for c in table.columns] == [None, None, "s0_t0_c3/", None, None]
    with zipfile.ZipFile(tmp_path / "a.siard") as package:
        package.extractall(tmp_path / "out")
    subprocess.run(
        ["xmllint", "--noout", "--schema", "table0.xsd", "table0.xml"],
        cwd=tmp_path / "out/content/schema0/table0", check=True, capture_output=True,
    )  # fmt: skip
    proved(url, tmp_path / "a.siard")


def test_length_counts_characters_of_text_and_bytes_of_the_rest(tmp_path: Path) -> None:
    script = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB)"
    url = database(tmp_path / "a.db", script, (1, "ä字\U0001f600" * 5, b"\x00" * 15))
    archive(url, tmp_path / "a.siard", options=ArchiveOptions(lob_threshold=0))
    xml = xml_of(tmp_path / "a.siard", "content/schema0/table0/table0.xml")
    assert xml.count('length="15"') == 2


def test_a_column_of_nulls_has_no_folder(tmp_path: Path) -> None:
    script = "CREATE TABLE t (id INTEGER PRIMARY KEY, a BLOB); CREATE TABLE u (b BLOB)"
    url = database(tmp_path / "a.db", script, (1, None))
    archive(url, tmp_path / "a.siard", options=ArchiveOptions(lobs="external", lob_threshold=0))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.db", "a.siard"]
    assert "lobFolder" not in xml_of(tmp_path / "a.siard", "header/metadata.xml")


def test_nothing_is_left_behind_when_the_work_fails(northwind: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    broken = ArchiveOptions(
        lobs="external", external=External(limits=Limits(4)), lobs_for={"nothing": "inline"}
    )
    with pytest.raises(UsageError, match="nothing is neither a type"):
        archive(northwind, home / "Northwind.siard", options=broken)
    db = apsw.Connection(northwind.removeprefix("sqlite:///"))
    db.execute("CREATE TABLE odd (d DATE)")
    db.execute("INSERT INTO odd VALUES ('no date')")
    db.close()
    with pytest.raises(Exception, match="no date"):
        archive(northwind, home / "Northwind.siard", options=options(Limits(4, 45_000)))
    assert list(home.iterdir()) == []


def test_what_is_there_already_is_not_touched(northwind: str, tmp_path: Path) -> None:
    (tmp_path / "Northwind_lobs").mkdir()
    with pytest.raises(UsageError, match="Northwind_lobs exists already"):
        archive(northwind, tmp_path / "Northwind.siard", options=options())
    assert not (tmp_path / "Northwind.siard").exists()


@pytest.mark.parametrize("how", [{"zipped": True}, {"places": {"*": "file:///tmp"}}])
def test_wishes_that_contradict_each_other_are_refused(
    northwind: str, tmp_path: Path, how: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match=r"eark-2\.0"):
        archive(northwind, tmp_path / "a.siard", options=options(layout="eark-2.0", **how))


@given(
    st.lists(st.integers(0, 500), max_size=40),
    st.one_of(st.none(), st.integers(1, 5)),
    st.one_of(st.none(), st.integers(1, 200)),
)
def test_no_segment_exceeds_its_limits_and_no_byte_is_lost(
    sizes: list[int], most_files: int | None, most_bytes: int | None
) -> None:
    segments = Segments(Limits(most_files, most_bytes))
    filled: dict[int, list[int]] = {}
    at = 0
    for size in sizes:
        parts = list(segments.parts(size))
        assert sum(part for _, part in parts) == size
        assert len(parts) == 1 or (most_bytes is not None and size > most_bytes)
        for segment, part in parts:
            assert segment in (at, at + 1)  # in order, and no number is left out
            at = segment
            filled.setdefault(segment, []).append(part)
    for contents in filled.values():
        assert most_files is None or len(contents) <= most_files
        assert most_bytes is None or sum(contents) <= most_bytes


def test_parts_are_numbered_with_at_least_three_digits() -> None:
    assert [part_name("a", n) for n in (1, 999, 1000)] == ["a_part001", "a_part999", "a_part1000"]


@pytest.mark.parametrize("place", ["inline", "internal", "external"])
@pytest.mark.parametrize("mixed", [False, True])
def test_null_is_no_value_for_any_threshold(tmp_path: Path, place: str, mixed: bool) -> None:
    script = "CREATE TABLE t (i INTEGER PRIMARY KEY, c CLOB, b BLOB, n CLOB, m BLOB)"
    rows = [(1, None, None, None, None), (2, "text", b"0", None, None), (3, "", b"", None, None)]
    url = database(tmp_path / "n.db", script, *rows)
    options = ArchiveOptions(lobs=place, lob_threshold=0, lob_mixed=mixed)
    archive(url, tmp_path / "n.siard", options=options)
    proved(url, tmp_path / "n.siard")
    with zipfile.ZipFile(tmp_path / "n.siard") as found:
        folders = {name.split("/")[3] for name in found.namelist() if "/lob" in name}
    assert folders == ({"lob1", "lob2"} if place == "internal" else set())


def test_what_is_missing_is_told_where_a_database_insists_on_it(tmp_path: Path) -> None:
    script = "CREATE TABLE t (i INTEGER PRIMARY KEY, b BLOB NOT NULL)"
    url = database(tmp_path / "n.db", script, (1, b"one"), (2, b"two"))
    options = ArchiveOptions(lobs="external", lob_threshold=0)
    archive(url, tmp_path / "n.siard", options=options)
    (tmp_path / "n_lobs").rename(tmp_path / "away")
    with pytest.raises(DatabaseError, match="NOT NULL") as caught:
        restore(tmp_path / "n.siard", f"sqlite:///{tmp_path / 'back.db'}")
    (note,) = caught.value.__notes__
    assert note.startswith("main.t.b: 2 large objects are missing") and "--lob-root" in note
    assert not (tmp_path / "back.db").exists()
