"""An interrupted archive is gone on with, and is in the end the one that it would have been."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from muniment.errors import SiardError, UsageError
from muniment.siard import open_siard, validate
from muniment.siard.lobs.layout import Limits
from muniment.siard.lobs.storing import External
from muniment.sql.selection import Selection
from muniment.transfer import ArchiveOptions, Description, Progress, Report, archive

OPTIONS = ArchiveOptions(
    resume=True, jobs=1, description=Description(archival_date="2026-11-15"), lob_threshold=100
)


class Lost(Exception):
    """The connection is lost."""


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Five tables with large objects; one type is too narrow for its values."""
    path = tmp_path / "many.db"
    db = apsw.Connection(str(path))
    db.execute("PRAGMA synchronous = off")
    for n in range(5):
        db.execute(
            f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY, name VARCHAR(3), photo BLOB, life TEXT)"
        )
        db.executemany(
            f"INSERT INTO t{n} VALUES (?,?,?,?)",
            [
                (k, "four" if n == 1 else "abc", os.urandom(k % 7 * 50), f"{k} " * k)
                for k in range(200)
            ],
        )
    db.close()
    return path


def interrupted_at(table: str) -> object:
    def watch(progress: Progress) -> None:
        if progress.table == table:
            raise Lost

    return watch


def run(source: Path, target: Path, stop: str = "", **more: object) -> Report:
    watch = interrupted_at(stop)
    return archive(f"sqlite:///{source}", target, progress=watch, options=OPTIONS, **more)  # type: ignore[arg-type]


def members(path: Path) -> list[tuple[str, bytes]]:
    """Every entry in its order, as it is when it is unpacked; the digest is over what is packed."""
    with open_siard(path) as source:
        assert source.changed() == []
    digest = re.compile(rb"(?<=<digest>)[0-9a-f]+")
    with zipfile.ZipFile(path) as package:
        assert package.testzip() is None
        return [(n, digest.sub(b"", package.read(n))) for n in package.namelist()]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_one_table_of_an_earlier_run_is_one(many: Path, tmp_path: Path) -> None:
    with pytest.raises(Lost):
        run(many, tmp_path / "a.siard", "t1")
    report = run(many, tmp_path / "a.siard")
    said = "1 table is that of an earlier run, which read the same state of the database"
    assert said in report.notes


def test_the_result_is_the_archive_of_an_uninterrupted_run(many: Path, tmp_path: Path) -> None:
    run(many, tmp_path / "whole.siard")
    for stop in ("t1", "t3", "t4"):
        with pytest.raises(Lost) as caught:
            run(many, tmp_path / "a.siard", stop)
        assert "go on" in caught.value.__notes__[0]
        assert not (tmp_path / "a.siard").exists()
        assert (tmp_path / "a.siard.partial").exists()
    report = run(many, tmp_path / "a.siard")
    assert members(tmp_path / "a.siard") == members(tmp_path / "whole.siard")
    assert names(tmp_path) == {"many.db", "a.siard", "whole.siard"}
    assert [t.rows for t in report.tables] == [200] * 5
    assert "4 tables are those of an earlier run, which read the same state" in report.notes[0]
    assert "main.t1.name was archived as VARCHAR(4)" in report.notes


def test_a_changed_database_is_said_in_the_report_and_in_the_archive(
    many: Path, tmp_path: Path
) -> None:
    with pytest.raises(Lost):
        run(many, tmp_path / "a.siard", "t2")
    db = apsw.Connection(str(many))
    db.execute("INSERT INTO t4 VALUES (1000, 'new', NULL, NULL)")
    db.close()
    report = run(many, tmp_path / "a.siard")
    assert "another state of the database" in report.notes[0]
    with open_siard(tmp_path / "a.siard") as source:
        database = source.describe()
    assert "main.t1 is the last table of one" in (database.description or "")
    assert [t.rows for t in report.tables] == [200, 200, 200, 200, 201]


def test_nothing_is_kept_before_the_first_table_is_complete(many: Path, tmp_path: Path) -> None:
    with pytest.raises(Lost):
        run(many, tmp_path / "a.siard", "t0")
    assert names(tmp_path) == {"many.db"}


def test_without_the_option_nothing_is_kept(many: Path, tmp_path: Path) -> None:
    with pytest.raises(Lost):
        archive(f"sqlite:///{many}", tmp_path / "a.siard", progress=interrupted_at("t3"))  # type: ignore[arg-type]
    assert names(tmp_path) == {"many.db"}


def test_a_run_that_was_killed_is_gone_on_with(many: Path, tmp_path: Path) -> None:
    run(many, tmp_path / "whole.siard")
    program = (
        "import os, signal, sys; sys.path[:0] = [sys.argv[3]]\n"
        "from pathlib import Path\n"
        "from test_resume import OPTIONS, archive\n"
        "def watch(p):\n"
        "    if p.table == 't3': os.kill(os.getpid(), signal.SIGKILL)\n"
        "archive(sys.argv[1], Path(sys.argv[2]), options=OPTIONS, progress=watch)\n"
    )
    here = str(Path(__file__).parent)
    killed = subprocess.run(
        [sys.executable, "-c", program, f"sqlite:///{many}", str(tmp_path / "a.siard"), here],
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    run(many, tmp_path / "a.siard")
    assert members(tmp_path / "a.siard") == members(tmp_path / "whole.siard")


@pytest.mark.parametrize("cut", [1, 7, 200])
def test_a_line_that_was_not_written_whole_does_not_count(
    many: Path, tmp_path: Path, cut: int
) -> None:
    run(many, tmp_path / "whole.siard")
    with pytest.raises(Lost):
        run(many, tmp_path / "a.siard", "t3")
    log = tmp_path / "a.siard.partial.journal"
    log.write_bytes(log.read_bytes()[:-cut])
    run(many, tmp_path / "a.siard")
    assert members(tmp_path / "a.siard") == members(tmp_path / "whole.siard")


def test_kept_bytes_that_were_changed_are_refused(many: Path, tmp_path: Path) -> None:
    with pytest.raises(Lost):
        run(many, tmp_path / "a.siard", "t3")
    partial = tmp_path / "a.siard.partial"
    data = bytearray(partial.read_bytes())
    data[500] ^= 1
    partial.write_bytes(data)
    with pytest.raises(SiardError, match="digest does not match"):
        run(many, tmp_path / "a.siard")
    partial.write_bytes(data[:1000])
    with pytest.raises(SiardError, match="shorter"):
        run(many, tmp_path / "a.siard")


def test_other_options_and_definitions_are_refused(many: Path, tmp_path: Path) -> None:
    with pytest.raises(Lost):
        run(many, tmp_path / "a.siard", "t3")
    with pytest.raises(UsageError, match="selection"):
        run(many, tmp_path / "a.siard", selection=Selection(where={"t0": "id > 5"}))
    with pytest.raises(UsageError, match="definitions"):
        run(many, tmp_path / "a.siard", selection=Selection(as_text=("main.t0.id",)))
    with pytest.raises(UsageError, match="compression"):
        archive(
            f"sqlite:///{many}",
            tmp_path / "a.siard",
            options=ArchiveOptions(resume=True, compression="none", lob_threshold=100,
                                   description=OPTIONS.description),
        )  # fmt: skip
    run(many, tmp_path / "a.siard", selection=Selection(as_text=("main.t4.id",)))
    with open_siard(tmp_path / "a.siard") as source:
        assert str(source.describe().schemas[0].tables[4].columns[0].type) != "BIGINT"


def test_a_file_of_another_origin_is_left_alone(many: Path, tmp_path: Path) -> None:
    (tmp_path / "a.siard.partial").write_text("somebody's own")
    with pytest.raises(UsageError, match="in the way"):
        run(many, tmp_path / "a.siard")
    assert (tmp_path / "a.siard.partial").read_text() == "somebody's own"


def test_two_runs_at_once_are_refused(many: Path, tmp_path: Path) -> None:
    def meanwhile(progress: Progress) -> None:
        with pytest.raises(UsageError, match="another run"):
            run(many, tmp_path / "a.siard")
        raise Lost

    with pytest.raises(Lost):
        archive(f"sqlite:///{many}", tmp_path / "a.siard", options=OPTIONS, progress=meanwhile)


def test_the_journal_holds_no_secret(many: Path, tmp_path: Path) -> None:
    with pytest.raises(Lost):
        run(many, tmp_path / "a.siard", "t3")
    head = json.loads((tmp_path / "a.siard.partial.journal").read_text().splitlines()[0])
    assert head["request"]["database"] == f"sqlite:///{many}"


PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Four tables of pictures, some larger than a segment."""
    path = tmp_path / "db" / "pictures.db"
    path.parent.mkdir()
    db = apsw.Connection(str(path))
    db.execute("PRAGMA synchronous = off")
    for n in range(4):
        db.execute(f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY, photo BLOB)")
        rows = [(k, PNG + bytes([n]) * (k % 5 * 150)) for k in range(30)]
        db.executemany(f"INSERT INTO t{n} VALUES (?,?)", rows)
    db.close()
    return path


def everything(folder: Path) -> dict[str, bytes]:
    """All files beneath a folder, but for what differs between two runs of one database."""
    digest = re.compile(rb"(?<=<digest>)[0-9a-f]+")
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        found[name] = path.read_bytes()
        if name.endswith(".siard"):
            with zipfile.ZipFile(path) as package:
                for entry in package.namelist():
                    found[entry] = digest.sub(b"", package.read(entry))
            del found[name]
    return found


HOWS = {
    "siard": External(limits=Limits(7, 500)),
    "eark": External(layout="eark-2.0", limits=Limits(7, 500)),
    "zipped": External(limits=Limits(7), zipped=True),
    "mapped": External(limits=Limits(7), places={"s0_t[13]_c2/seg_*": "file://@STORE@"}),
    "split": None,
}


def run_in(home: Path, source: Path, how: External | None, stop: str = "") -> Report:
    home.mkdir(exist_ok=True)
    store = home / "store"
    store.mkdir(exist_ok=True)
    options = replace(OPTIONS, lob_threshold=0, split=900)
    if how is not None:
        places = {k: v.replace("@STORE@", str(store)) for k, v in how.places.items()}
        options = replace(
            options, lobs="external", external=replace(how, places=places),
            split=900 if how.zipped else None,
        )  # fmt: skip
    watch: Any = interrupted_at(stop)
    return archive(f"sqlite:///{source}", home / "p.siard", options=options, progress=watch)


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
def test_objects_outside_and_parts_are_gone_on_with(
    how: External | None, pictures: Path, tmp_path: Path
) -> None:
    run_in(tmp_path / "whole", pictures, how)
    for stop in ("t1", "t1", "t3"):
        with pytest.raises(Lost) as caught:
            run_in(tmp_path / "home", pictures, how, stop)
        assert "go on" in caught.value.__notes__[0]
        assert not list((tmp_path / "home").glob("p.siard_part00?"))
    report = run_in(tmp_path / "home", pictures, how)
    assert "3 tables are those of an earlier run" in report.notes[0]
    whole, home = everything(tmp_path / "whole"), everything(tmp_path / "home")
    if how is None or how.zipped:  # cut elsewhere, since the digests differ
        for found in (whole, home):
            parts = [name for name in found if "_part" in name]
            assert len(parts) > 2
            for name in parts:
                del found[name]
    old, new = str(tmp_path / "whole").encode(), str(tmp_path / "home").encode()
    assert {k: v.replace(old, new) for k, v in whole.items()} == home
    folders = [p for p in (tmp_path / "home").rglob("*") if p.is_dir() and p.name != "store"]
    assert all(any(folder.iterdir()) for folder in folders)
    with open_siard(tmp_path / "home" / "p.siard") as source:
        types = [t.columns[1].mime_type for _, t in source.describe().tables()]
    assert types == ["image/png"] * 4
    if how is None or not how.places:
        assert validate(tmp_path / "home" / "p.siard", jobs=1).finish().valid


def test_kept_objects_that_were_changed_are_refused(pictures: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(Lost):
        run_in(home, pictures, HOWS["siard"], "t2")
    stage = next(home.glob(".*_lobs.*.partial"))
    kept = sorted(p for p in stage.rglob("t0_c2_r*") if p.stat().st_size > 100)[0]
    kept.write_bytes(kept.read_bytes()[:-1] + b"!")
    with pytest.raises(SiardError, match=f"{kept.name} of the earlier run was changed"):
        run_in(home, pictures, HOWS["siard"])


def test_other_folders_are_refused(pictures: Path, tmp_path: Path) -> None:
    with pytest.raises(Lost):
        run_in(tmp_path / "home", pictures, HOWS["siard"], "t2")
    with pytest.raises(UsageError, match="folders"):
        run_in(tmp_path / "home", pictures, HOWS["eark"])


def test_what_a_killed_run_left_before_its_first_table_is_removed(
    pictures: Path, tmp_path: Path
) -> None:
    program = (
        "import os, signal, sys; sys.path[:0] = [sys.argv[3]]\n"
        "from pathlib import Path\n"
        "import test_resume\n"
        "test_resume.interrupted_at = lambda _: lambda p: os.kill(os.getpid(), signal.SIGKILL)\n"
        "how = test_resume.HOWS['siard']\n"
        "test_resume.run_in(Path(sys.argv[2]), Path(sys.argv[1]), how)\n"
    )
    here, home = str(Path(__file__).parent), tmp_path / "home"
    home.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", program, str(pictures), str(home), here], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert list(home.glob(".*_lobs.*.partial"))
    run_in(home, pictures, HOWS["siard"])
    run_in(tmp_path / "whole", pictures, HOWS["siard"])
    assert everything(home) == everything(tmp_path / "whole")
