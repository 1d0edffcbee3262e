"""``muniment store`` as its users see it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Run


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A few files in the folder where commands run."""
    (tmp_path / "a.txt").write_text("first\n")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "x.bin").write_bytes(bytes(300))
    (tmp_path / "folder" / "y.csv").write_text("1,2\n")
    return tmp_path


def test_a_file_goes_in_and_comes_out(run: Run, files: Path) -> None:
    assert run("store", "init", "s", "--series", "db.example.ch").exit_code == 0
    added = run("store", "add", "s", "a.txt", "--content-id", "urn:x:a", "--json")
    (thing,) = json.loads(added.stdout)["objects"]
    assert thing["pdi"].startswith("pdi://db.example.ch/")
    assert run("store", "get", "s", "urn:x:a").stdout == "first\n"
    assert run("store", "get", "s", thing["pdi"], "--range", "1-3").stdout == "irs"
    assert run("store", "get", "s", "urn:x:a", "--range=-2").stdout == "t\n"
    assert "unchanged" in run("store", "add", "s", "a.txt", "--content-id", "urn:x:a").stdout
    (files / "a.txt").write_text("second\n")
    assert run("store", "add", "s", "a.txt", "--content-id", thing["pdi"]).exit_code == 0
    found = json.loads(run("store", "versions", "s", "urn:x:a", "--json").stdout)
    assert [each["pdi"][-2:] for each in found["versions"]] == [".1"]
    found = json.loads(
        run("store", "versions", "s", thing["pdi"].rsplit(".", 2)[0], "--json").stdout
    )
    assert [each["pdi"][-2:] for each in found["versions"]] == [".1", ".2"]
    assert all("/oai/" in each["base_url"] for each in found["versions"])


def test_a_folder_is_one_object_or_many(run: Run, files: Path) -> None:
    run("store", "init", "s")
    assert run("store", "add", "s", "folder", "--content-id", "urn:x:f").exit_code == 0
    assert run("store", "get", "s", "urn:x:f", "--to", "out").exit_code == 0
    assert (files / "out" / "deep" / "x.bin").read_bytes() == bytes(300)
    assert run("store", "get", "s", "urn:x:f", "--file", "y.csv").stdout == "1,2\n"
    assert run("store", "get", "s", "urn:x:f").exit_code == 2
    assert len(run("store", "add", "s", "folder", "--each").stdout.splitlines()) == 2
    (files / "list").write_text("a.txt\turn:x:1\nfolder/y.csv\n")
    assert len(run("store", "add", "s", "--from", "list").stdout.splitlines()) == 2
    assert run("store", "get", "s", "urn:x:1").stdout == "first\n"
    listed = json.loads(run("store", "list", "s", "--json").stdout)["objects"]
    assert len(listed) == 5
    assert len(run("store", "cdxj", "s").stdout.splitlines()) == 6


def test_care_and_moving(run: Run, files: Path) -> None:
    run("store", "init", "s")
    run("store", "add", "s", "folder", "--content-id", "urn:x:f", "--as", "mets")
    assert json.loads(run("store", "verify", "s", "--json").stdout)["good"]
    assert run("store", "verify", "s", "--sample", "50%", "--rate", "100MB").exit_code == 0
    assert "1 ARC file" in run("store", "reindex", "s").stdout
    assert run("store", "export", "s", "out", "--id", "urn:x:f").exit_code == 0
    run("store", "init", "t", "--format", "arc.gz")
    assert run("store", "import", "t", "out").exit_code == 0
    assert run("store", "get", "t", "urn:x:f", "--file", "y.csv").stdout == "1,2\n"
    warc = next((files / "s" / "files").glob("*.warc"))
    warc.chmod(0o644)
    warc.write_bytes(warc.read_bytes().replace(b"1,2\n", b"1,3\n"))
    damaged = run("store", "verify", "s")
    assert damaged.exit_code == 1
    assert "digest in its own header" in damaged.stdout
    assert run("store", "convert", str(warc), "x.arc").exit_code == 3
    assert (
        run("store", "convert", str(next((files / "out").glob("*.warc"))), "x.arc.gz").exit_code
        == 0
    )


def test_a_stored_archive_is_shown_in_place(run: Run, shop: str) -> None:
    run("archive", shop, "shop.siard")
    run("store", "init", "s")
    run("store", "add", "s", "shop.siard", "--content-id", "urn:x:shop")
    shown = run("store", "show", "s", "urn:x:shop", "fruit")
    assert shown.exit_code == 0, shown.stderr
    assert "apple" in shown.stdout
    assert run("store", "show", "s", "urn:x:shop").stdout.count("main.") >= 2


def test_stored_archives_of_one_batch_are_queried_in_place(
    run: Run, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_CACHE", str(tmp_path / "cache"))
    run("archive", shop, "shop.siard")
    run("archive", shop, "part.siard", "--table", "fruit", "--where", "fruit=id > 1")
    run("store", "init", "s")
    (tmp_path / "list").write_text("shop.siard\turn:x:1\npart.siard\turn:x:2\n")
    assert run("store", "add", "s", "--from", "list").exit_code == 0
    for name, count in (("urn:x:1", "3"), ("urn:x:2", "2")):  # both lie in one WARC file
        asked = run("store", "query", "s", name, "SELECT count(*) FROM fruit", "--format", "csv")
        assert asked.exit_code == 0, asked.stderr
        assert asked.stdout.split()[-1] == count


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["add", "s", "nothing"], 2),
        (["add", "s"], 2),
        (["add", "nostore", "a.txt"], 2),
        (["add", "s", "a.txt", "--content-id", "pdi://db.example.ch/2020/01/01/9.text.1"], 1),
        (["add", "s", "a.txt", "--sign", "a.txt"], 2),
        (["get", "s", "urn:no"], 1),
        (["versions", "s", "urn:no"], 1),
        (["init", "s"], 2),
        (["init", "t", "--series", "no series"], 2),
        (["init", "t", "--format", "zip"], 2),
        (["import", "s", "a.txt"], 2),
        (["import", "s", "folder"], 2),
        (["verify", "s", "--sample", "lots"], 2),
        (["export", "s", "folder"], 2),
        (["convert", "a.txt", "b.warc"], 3),
    ],
)
def test_wrong_requests_get_a_sentence(
    run: Run, files: Path, arguments: list[str], code: int
) -> None:
    run("store", "init", "s")
    result = run("store", *arguments)
    assert result.exit_code == code, result.stderr
    assert result.stderr.startswith("muniment: ")
    assert "Traceback" not in result.stderr
    assert "fault of its own" not in result.stderr


def test_what_is_no_file_is_told_and_nothing_waits_for_it(run: Run, files: Path) -> None:
    run("store", "init", "s")
    os.mkfifo(files / "pipe")
    for name in ("missing.txt", "folder", "pipe", "a.txt/below", "missing.siard"):
        (files / "list").write_text(f"a.txt\n{name}\n")
        result = run("store", "add", "s", "--from", "list")
        assert result.exit_code == 2
        assert result.stderr.startswith(f"muniment: there is no file {name}\n")
        assert json.loads(run("store", "list", "s", "--json").stdout)["objects"] == []


@pytest.mark.parametrize("instead", [Path.touch, os.mkfifo, None])
def test_a_known_name_is_no_reason_to_wait_for_a_file(
    run: Run, files: Path, instead: Callable[[Path], None] | None
) -> None:
    run("store", "init", "s")
    run("store", "add", "s", "a.txt", "--content-id", "urn:x:a")
    (files / "a.txt").unlink()
    if instead:
        instead(files / "a.txt")
    (files / "list").write_text("a.txt\turn:x:a\n")
    result = run("store", "add", "s", "--from", "list")
    if instead is Path.touch:
        assert result.exit_code == 0 and len(result.stdout.splitlines()) == 1
    else:
        assert result.exit_code == 2 and "there is no file a.txt" in result.stderr
