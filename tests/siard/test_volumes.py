"""SIARD files in parts: written while streaming, opened in place, joined again."""

from __future__ import annotations

import pickle
import tempfile
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.compare import compare
from muniment.convert import ConvertOptions, convert
from muniment.errors import SiardError, UsageError
from muniment.siard import create_siard, open_siard
from muniment.siard.volumes import Volumes, new_volumes
from muniment.siard.zip import ZipReader
from muniment.transfer import ArchiveOptions, archive, restore


def parts(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("*.siard*"))


def test_an_archive_is_split_opened_in_place_and_joined(shop: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{shop}"
    archive(url, tmp_path / "whole.siard")
    size = (tmp_path / "whole.siard").stat().st_size
    archive(url, tmp_path / "cut.siard", options=ArchiveOptions(split=size // 3 - 1))
    names = [f"cut.siard_part00{n}" for n in (1, 2, 3, 4)]
    assert parts(tmp_path) == [*names, "whole.siard"]
    joined = b"".join((tmp_path / name).read_bytes() for name in names)
    assert joined == (tmp_path / "whole.siard").read_bytes()
    for name in ("cut.siard", "cut.siard_part001"):
        assert compare(url, str(tmp_path / name)).equal
    restore(tmp_path / "cut.siard", f"sqlite:///{tmp_path / 'back.db'}")
    assert compare(url, f"sqlite:///{tmp_path / 'back.db'}").equal
    convert(tmp_path / "cut.siard", tmp_path / "joined.siard")
    assert (tmp_path / "joined.siard").read_bytes() == joined
    convert(tmp_path / "joined.siard", tmp_path / "again.siard", ConvertOptions(split=size // 2))
    assert compare(str(tmp_path / "again.siard"), str(tmp_path / "cut.siard")).equal


def test_an_archive_that_fits_into_one_part_is_not_split(shop: Path, tmp_path: Path) -> None:
    archive(f"sqlite:///{shop}", tmp_path / "a.siard", options=ArchiveOptions(split=1 << 20))
    assert parts(tmp_path) == ["a.siard"]


def test_missing_parts_are_named(shop: Path, tmp_path: Path) -> None:
    archive(f"sqlite:///{shop}", tmp_path / "a.siard", options=ArchiveOptions(split=4000))
    names = parts(tmp_path)
    assert len(names) > 2
    (tmp_path / names[1]).rename(tmp_path / "hidden")
    with pytest.raises(SiardError, match=r"part002 is missing, and a\.siard_part\d+ is there"):
        ZipReader(tmp_path / "a.siard")
    (tmp_path / "hidden").rename(tmp_path / names[1])
    (tmp_path / names[-1]).unlink()
    with pytest.raises(SiardError, match="are there more"):
        ZipReader(tmp_path / "a.siard")
    with pytest.raises(UsageError, match="not the first part"):
        ZipReader(tmp_path / names[1])


def test_nothing_appears_when_the_work_fails(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        create_siard(tmp_path / "a.siard", date(2026, 1, 1), split=100) as target,
    ):
        target.define(__import__("contracts.sample", fromlist=["x"]).DATABASE)
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_parts_that_exist_are_not_overwritten(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "a.siard_part001").write_bytes(b"x")
    with pytest.raises(UsageError, match="exists already"):
        archive(f"sqlite:///{shop}", tmp_path / "a.siard", options=ArchiveOptions(split=4000))
    assert parts(tmp_path) == ["a.siard_part001"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.binary(max_size=50), max_size=12), st.integers(1, 30), st.integers(0, 12), st.data()
)
def test_bytes_come_back_from_parts_of_any_size(
    blocks: list[bytes], limit: int, back: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.siard"
        with new_volumes(path, limit) as sink:
            kept = b"".join(blocks[:back])
            for block in blocks[:back]:
                sink.write(block)
            for block in blocks[back:]:
                sink.write(block)
            sink.seek(len(kept))
            sink.truncate()
            sink.write(b"end")
        whole = kept + b"end"
        volumes: Volumes = pickle.loads(pickle.dumps(Volumes(path)))
        assert volumes.size == len(whole)
        start = data.draw(st.integers(0, len(whole)))
        size = data.draw(st.integers(0, len(whole) + 5))
        assert volumes.read(start, size) == whole[start : start + size]


def test_a_directory_of_many_entries_takes_little_memory(tmp_path: Path) -> None:
    import tracemalloc

    from muniment.siard.zip import ZipWriter

    with (tmp_path / "a.zip").open("wb") as stream:
        writer = ZipWriter(stream, date(2026, 1, 1), "fast", ())
        for number in range(30_000):
            writer.file(f"content/schema0/table0/lob1/record{number}.bin", b"")
        writer.close()
    tracemalloc.start()
    reader = ZipReader(tmp_path / "a.zip")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 30_000 * 20
    assert reader.read("content/schema0/table0/lob1/record29999.bin") == b""
    assert "content/schema0/table0/lob1/record30000.bin" not in reader
    assert len(list(reader.names())) == 30_000


def test_parts_work_with_several_processes(tmp_path: Path) -> None:
    import apsw

    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a VARCHAR(200), b BLOB)")
    db.execute(
        "WITH RECURSIVE n(v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n LIMIT 140000) "
        "INSERT INTO t SELECT v, 'text ' || v || hex(zeroblob(80)), iif(v % 5000, NULL, zeroblob(v)) FROM n"
    )
    db.close()
    url = f"sqlite:///{tmp_path / 'a.db'}"
    archive(url, tmp_path / "a.siard", options=ArchiveOptions(split=300_000, jobs=2))
    assert compare(url, str(tmp_path / "a.siard"), jobs=2).equal
    with open_siard(tmp_path / "a.siard") as source:
        assert len(source._zip.parts) > 2


def test_an_archive_in_parts_is_queried_in_place(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from muniment.cli.main import cli

    monkeypatch.setenv("MUNIMENT_CACHE", str(tmp_path / "cache"))
    archive(f"sqlite:///{shop}", tmp_path / "a.siard", options=ArchiveOptions(split=4000))
    for name in ("a.siard", "a.siard_part001"):
        command = (
            "query",
            str(tmp_path / name),
            "SELECT count(*) AS n FROM sale",
            "--format",
            "csv",
        )
        result = CliRunner().invoke(cli, command)
        assert (result.exit_code, result.stdout.split()) == (0, ['"n"', "49"]), result.stderr
