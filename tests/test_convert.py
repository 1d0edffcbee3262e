"""From archive to archive: versions, places of large objects, and the mapping after a move."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from archives import column, make_archive, one_table
from contracts import sample
from muniment.cli.main import cli
from muniment.compare import compare
from muniment.convert import ConvertOptions, convert, remap
from muniment.errors import DigestMismatch, UsageError
from muniment.siard import LobOptions, create_siard, open_siard
from muniment.siard.lobs.folders import Root
from muniment.siard.lobs.layout import Limits
from muniment.siard.lobs.placement import Placements
from muniment.siard.lobs.storing import External
from muniment.sql.batch import OPEN, REF, cells_of, parts_of
from muniment.sql.model import Database
from muniment.transfer import ArchiveOptions, archive, restore
from siard.northwind import make_northwind


def run(*arguments: str) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(cli, arguments)


PLACES: list[ConvertOptions] = [
    ConvertOptions(place="inline"),
    ConvertOptions(place="internal", threshold=0),
    ConvertOptions(place="internal", threshold=11_000, mixed=True),
    ConvertOptions(place="external", external=External(limits=Limits(3, 20_000))),
    ConvertOptions(place="external", external=External(limits=Limits(2, 5_000))),
    ConvertOptions(place="external", external=External(layout="eark-2.0", limits=Limits(2, 5_000))),
    ConvertOptions(place="external", threshold=0, external=External(zipped=True)),
    ConvertOptions(split=30_000),
]


def test_objects_move_from_every_place_to_every_other(tmp_path: Path) -> None:
    url = make_northwind(tmp_path / "Northwind.db")
    before = tmp_path / "Northwind.siard"
    archive(url, before)
    for number, options in enumerate(PLACES + PLACES[::-1]):
        folder = tmp_path / str(number)
        folder.mkdir()
        after = folder / "Northwind.siard"
        convert(before, after, options)
        assert compare(url, str(after)).equal, options
        assert compare(str(before), str(after)).equal, options
        assert not list(folder.glob(".*"))
        before = after


def test_without_a_wish_objects_stay_where_they_are(tmp_path: Path) -> None:
    url = make_northwind(tmp_path / "Northwind.db")
    how = ArchiveOptions(lobs="external", external=External(limits=Limits(4, 45_000)))
    archive(url, tmp_path / "Northwind.siard", options=how)
    (tmp_path / "a").mkdir()
    convert(tmp_path / "Northwind.siard", tmp_path / "a" / "Northwind.siard")
    assert len(list((tmp_path / "a" / "Northwind_lobs").rglob("*.bin"))) == 8
    archive(url, tmp_path / "inline.siard", options=ArchiveOptions(lobs="inline"))
    convert(tmp_path / "inline.siard", tmp_path / "still.siard")
    with zipfile.ZipFile(tmp_path / "still.siard") as package:
        assert not [name for name in package.namelist() if "lob" in name]


def test_a_changed_object_stops_the_conversion_and_leaves_nothing(tmp_path: Path) -> None:
    url = make_northwind(tmp_path / "Northwind.db")
    archive(url, tmp_path / "Northwind.siard", options=ArchiveOptions(lobs="external"))
    file = tmp_path / "Northwind_lobs/s0_t2_c4/seg_0/t2_c4_r5.bin"
    data = bytearray(file.read_bytes())
    data[500] ^= 1
    file.write_bytes(bytes(data))
    (tmp_path / "out").mkdir()
    with pytest.raises(DigestMismatch, match=r"main\.Categories\.Picture"):
        convert(
            tmp_path / "Northwind.siard", tmp_path / "out" / "a.siard", ConvertOptions("internal")
        )
    assert list((tmp_path / "out").iterdir()) == []


def references(cell: bytes) -> list[bytes]:
    if cell.startswith(REF):
        return [cell[1:]]
    return [r for p in parts_of(cell) for r in references(p)] if cell.startswith(OPEN) else []


def counted(database: Database) -> Database:
    """The database with the number of rows that its tables are going to have."""
    schemas = tuple(
        replace(s, tables=tuple(replace(t, rows=len(sample.NESTED_ROWS[t.name])) for t in s.tables))
        for s in database.schemas
    )
    return replace(database, schemas=schemas)


def nested(source: Any) -> tuple[list[list[Any]], int]:
    schema, table = next((s, t) for s, t in source.describe().tables() if t.name == "shapes")
    found = 0
    for part in source.parts(schema, table):
        for batch in source.batches(schema, table, part):
            for cell in cells_of(batch):
                for reference in references(cell):
                    source.open_lob(schema, table, reference).read()
                    found += 1
    return ([] if found else sample.read(source, schema, table)), found


def test_a_value_that_has_no_place_is_for_the_validator(tmp_path: Path) -> None:
    """Nothing can be archived as text here: the fault is in the archive."""
    database = one_table("t", (replace(column("c"), nullable=False),))
    before = make_archive(tmp_path / "a.siard", database, {("main", "t"): [["x"]]})
    broken = tmp_path / "broken.siard"
    with zipfile.ZipFile(before) as whole, zipfile.ZipFile(broken, "w") as other:
        for name in whole.namelist():
            other.writestr(name, whole.read(name).replace(b"<c1>x</c1>", b""))
    result = run("convert", str(broken), str(tmp_path / "b.siard"))
    assert result.exit_code == 3
    assert "main.t.c, row 1: NULL is not allowed there." in result.stderr
    assert "muniment validate shows what is wrong with broken.siard" in result.stderr
    assert "--as-text" not in result.stderr


@pytest.mark.parametrize("place", ["internal", "external"])
@pytest.mark.parametrize("layout", ["siard-2.2", "eark-2.0"])
def test_objects_inside_arrays_and_udts_lie_in_files_too(
    tmp_path: Path, place: str, layout: str
) -> None:
    options = LobOptions(Placements(place, threshold=0), External(layout=layout))
    path = tmp_path / "nested.siard"
    with create_siard(path, date(2026, 1, 1), lobs=options) as target:
        sample.copy(target, counted(sample.NESTED), sample.NESTED_ROWS)
    with open_siard(path) as source:
        _, objects = nested(source)
        assert objects > 0
        folders = [
            f.lob_folder for _, t in source.describe().tables() for c in t.columns for f in c.fields
        ]
    assert any(folders) == (place == "external" and layout == "siard-2.2")
    (tmp_path / "inline").mkdir()
    convert(path, tmp_path / "inline" / "a.siard", ConvertOptions("inline"))
    assert compare(str(path), str(tmp_path / "inline" / "a.siard")).equal
    with open_siard(tmp_path / "inline" / "a.siard") as source:
        rows, objects = nested(source)
        assert objects == 0
        assert rows == sample.NESTED_ROWS["shapes"]
    for product in ("sqlite", "duckdb"):
        restore(path, f"{product}:///{tmp_path / product}")
        restore(tmp_path / "inline" / "a.siard", f"{product}:///{tmp_path / product}2")
        pair = (f"{product}:///{tmp_path / product}", f"{product}:///{tmp_path / product}2")
        assert compare(*pair).equal


def test_the_mapping_is_rewritten_after_a_move(tmp_path: Path) -> None:
    url = make_northwind(tmp_path / "Northwind.db")
    old, new, home = (tmp_path / name for name in ("old", "new", "home"))
    old.mkdir()
    home.mkdir()
    how = External(limits=Limits(3), places={"*/seg_*": old.as_uri()})
    archive(url, home / "N.siard", options=ArchiveOptions(lobs="external", external=how))
    moves = {old.as_uri(): new.as_uri()}
    with pytest.raises(UsageError, match=r"nothing was changed|not allowed"):
        remap(home / "N.siard", moves, [Root(tmp_path)])
    old.rename(new)
    with pytest.raises(UsageError, match="--lob-root"):
        remap(home / "N.siard", moves)
    with pytest.raises(UsageError, match="maps nothing to file:///elsewhere"):
        remap(home / "N.siard", {"file:///elsewhere": new.as_uri()}, [Root(new)])
    result = run(
        "convert", str(home / "N.siard"), "--remap", f"{old.as_uri()}/={new.as_uri()}/",
        "--lob-root", str(new), "--json",
    )  # fmt: skip
    mapping = json.loads(result.stdout)["mapping"]
    assert set(mapping.values()) == {f"{new.as_uri()}/"}
    assert compare(url, str(home / "N.siard"), roots=[Root(new)]).equal


def test_the_command_converts_and_says_how_to_prove_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_northwind(tmp_path / "Northwind.db")
    run("archive", "sqlite:///Northwind.db", "a.siard")
    done = run(
        "convert", "a.siard", "b.siard", "--lobs", "external", "--segment-files", "4",
        "--segment-size", "45000", "--digest", "MD5", "--split", "20KiB",
    )  # fmt: skip
    assert "muniment compare a.siard b.siard" in done.stderr
    assert (tmp_path / "Northwind_lobs/s0_t2_c4/seg_2/t2_c4_r8.bin").is_file()
    assert run("compare", "a.siard", "b.siard").exit_code == 0
    assert run("show", "b.siard", "Categories", "--json").exit_code == 0
    assert run("convert", "a.siard").exit_code == 2
    assert run("convert", "a.siard", "c.siard", "--remap", "a=b").exit_code == 2
    assert run("convert", "a.siard", "c.siard", "--segment-size", "lots").exit_code == 2
    assert run("convert", "a.siard", "b.siard").exit_code == 2


@pytest.mark.samples
def test_every_archive_of_other_writers_becomes_2_2_with_the_same_content(
    samples: Path, tmp_path: Path
) -> None:
    done = 0
    for number, path in enumerate(sorted((samples / "siard").glob("[me]*/**/*.siard"))):
        if "northwind" in path.name or path.stat().st_size > 3_000_000:
            continue  # its objects are lost; or it would take too long
        out = tmp_path / str(number) / "out.siard"
        out.parent.mkdir()
        convert(path, out, ConvertOptions(place="external" if number % 2 else "internal"))
        assert compare(str(path), str(out)).equal, path
        with open_siard(out) as source:
            assert source.version == "2.2"
        done += 1
    assert done > 20
