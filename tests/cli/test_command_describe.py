"""``muniment describe``: words are set, and nothing else changes."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from commandline import Run
from lxml import etree

from muniment.siard import open_siard
from muniment.siard.descriptions import places, set_descriptions
from muniment.siard.header import METADATA, replace_metadata
from muniment.siard.metadata import metadata_schema
from muniment.siard.zip import ZipReader


@pytest.fixture
def archive(shop: str, run: Run, tmp_path: Path) -> Path:
    assert run("archive", shop, "shop.siard").exit_code == 0
    return tmp_path / "shop.siard"


def content(path: Path) -> dict[str, tuple[int, bytes]]:
    """Each entry outside the header: where it lies, and its bytes."""
    with zipfile.ZipFile(path) as file:
        return {
            info.filename: (info.header_offset, file.read(info))
            for info in file.infolist()
            if not info.filename.startswith("header/")
        }


def test_what_has_no_description_is_listed(archive: Path, run: Run) -> None:
    result = run("describe", "shop.siard")
    assert result.exit_code == 0
    assert ["column", "main.fruit.price"] in [line.split() for line in result.stdout.splitlines()]
    found = json.loads(run("describe", "shop.siard", "--json").stdout)
    assert found["places"] == found["missing"] + 0 == len(found["list"])


def test_setting_words_leaves_the_content_and_its_digest_alone(archive: Path, run: Run) -> None:
    before, whole = content(archive), archive.read_bytes()
    words = 'What it costs: <1 & "2" \\ 3'
    result = run(
        "describe", "shop.siard", "--set", f"main.fruit.price={words}", "--set", "main.fruit=Fruit",
        "--set", "database=A shop",
    )  # fmt: skip
    assert result.stdout == "shop.siard: 3 descriptions set\n"
    assert content(archive) == before
    with zipfile.ZipFile(archive) as file:
        end = file.getinfo("header/").header_offset
        assert file.testzip() is None
    assert archive.read_bytes()[:end] == whole[:end]
    with open_siard(archive) as source:
        database = source.describe()
        assert source.changed() == []
    table = database.schema("main").table("fruit")
    assert database.description == "A shop"
    assert table.columns[2].description == words
    assert table.description is not None and table.description.startswith("Fruit\n\n-- Original")
    schema = etree.XMLSchema(etree.fromstring(metadata_schema()))
    assert schema.validate(etree.fromstring(ZipReader(archive).read(METADATA)))


@pytest.mark.parametrize("form", ["yaml", "csv"])
def test_what_is_dumped_can_be_loaded(archive: Path, run: Run, tmp_path: Path, form: str) -> None:
    assert (
        run("describe", "shop.siard", "--set", "main.fruit.id=A, “number”\nof two lines").exit_code
        == 0
    )
    dumped = run("describe", "shop.siard", "--dump", form).stdout
    (tmp_path / f"words.{form}").write_text(dumped.replace("number", "name"), encoding="utf-8")
    result = run("describe", "shop.siard", "--from", f"words.{form}", "--out", "new.siard")
    assert result.stdout == "new.siard: 1 description set\n"
    again = run("describe", "new.siard", "--dump", form).stdout
    assert again == dumped.replace("number", "name")
    assert run("describe", "shop.siard", "--dump", form).stdout == dumped


def test_an_empty_text_takes_a_description_away(archive: Path, run: Run, tmp_path: Path) -> None:
    assert run("describe", "shop.siard", "--set", "main.crate.id=x").exit_code == 0
    (tmp_path / "w.yaml").write_text('column: {main.crate.id: ""}', encoding="utf-8")
    assert run("describe", "shop.siard", "--from", "w.yaml").exit_code == 0
    with open_siard(archive) as source:
        assert source.describe().schema("main").table("crate").columns[0].description is None


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (
            "w.yaml",
            "column: {main.crate.id: x, main.crate.nothing: y}",
            "no column main.crate.nothing",
        ),
        ("w.yaml", "- a list", "should map"),
        ("w.yaml", "{", "not YAML"),
        ("w.yaml", "column: {main.crate.id: [1]}", "should map names to texts"),
        ("w.csv", "a,b\n1,2\n", "should have the columns"),
    ],
)
def test_all_is_set_or_nothing(
    archive: Path, run: Run, tmp_path: Path, file: str, text: str, words: str
) -> None:
    before = archive.read_bytes()
    (tmp_path / file).write_text(text, encoding="utf-8")
    result = run("describe", "shop.siard", "--from", file)
    assert result.exit_code == 2
    assert words in result.stderr
    assert archive.read_bytes() == before
    assert not [p for p in tmp_path.iterdir() if "partial" in p.name]


@pytest.mark.parametrize("mark", ["About this archive: ", "-- Original definition in SQLite:"])
@pytest.mark.parametrize("before", ["", "Words.\n", "Words.\r\n"])
def test_nobody_speaks_in_the_name_of_the_archive(
    archive: Path, run: Run, tmp_path: Path, shop: str, mark: str, before: str
) -> None:
    whole, words = archive.read_bytes(), f"{before}{mark}\nSELECT 1"
    result = run("describe", "shop.siard", "--set", f"main.fruit.id={words}")
    assert result.exit_code == 2
    assert "column main.fruit.id has a line that begins with" in result.stderr
    (tmp_path / "w.yaml").write_text(json.dumps({"table": {"main.fruit": words}}))
    assert run("describe", "shop.siard", "--from", "w.yaml").exit_code == 2
    assert archive.read_bytes() == whole
    result = run("archive", shop, "new.siard", "--description", words)
    assert (result.exit_code, (tmp_path / "new.siard").exists()) == (2, False)
    for kind, name in (("tables", "fruit"), ("columns", "main.fruit.id"), ("schemas", "main")):
        (tmp_path / "c.yaml").write_text(json.dumps({"descriptions": {kind: {name: words}}}))
        result = run("archive", shop, "new.siard", "--config", "c.yaml")
        assert (result.exit_code, (tmp_path / "new.siard").exists()) == (2, False)
        assert "what the archive says of itself" in result.stderr


def test_notes_of_the_archive_are_listed_with_all(archive: Path, run: Run, shop: str) -> None:
    assert run("archive", shop, "part.siard", "--where", "fruit=id = 1").exit_code == 0
    note = "Only the rows where id = 1 were archived."
    assert f"note: table main.fruit: {note}\n" in run("describe", "part.siard", "--all").stdout
    found = json.loads(run("describe", "part.siard", "--all", "--json").stdout)["list"]
    assert [each["notes"] for each in found if each["place"] == "main.fruit"] == [[note]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_csv_of_any_spreadsheet_is_read(
    archive: Path, run: Run, tmp_path: Path, delimiter: str
) -> None:
    text = 'kind place description\r\ntable main.fruit "Of,;all"'.replace(" ", delimiter)
    (tmp_path / "w.csv").write_text(text, encoding="utf-8-sig", newline="")
    result = run("describe", "shop.siard", "--from", "w.csv")
    assert result.stdout == "shop.siard: 1 description set\n", result.stderr
    assert "Of,;all" in run("describe", "shop.siard", "--all").stdout


@pytest.mark.parametrize("file", ["w.csv", "w.yaml"])
def test_files_that_are_not_utf_8_get_a_sentence(
    archive: Path, run: Run, tmp_path: Path, file: str
) -> None:
    (tmp_path / file).write_bytes(
        "kind,place,description\ntable,main.fruit,Äpfel\n".encode("cp1252")
    )
    result = run("describe", "shop.siard", "--from", file)
    assert result.exit_code == 2
    assert "save the file as UTF-8" in result.stderr


def test_an_unknown_place_is_said(archive: Path, run: Run) -> None:
    result = run("describe", "shop.siard", "--set", "main.vegetable=x")
    assert result.exit_code == 2
    assert "nothing called 'main.vegetable'" in result.stderr


def test_a_header_in_front_of_the_content_moves_nothing(archive: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.siard"
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(mixed, "w", zipfile.ZIP_DEFLATED) as new:
        for info in sorted(old.infolist(), key=lambda i: not i.filename.startswith("header/")):
            new.writestr(info.filename, old.read(info))
    before = content(mixed)
    changed = set_descriptions(ZipReader(mixed).read(METADATA), {("database", ""): "New"})
    replace_metadata(mixed, changed)
    assert content(mixed) == before
    with zipfile.ZipFile(mixed) as file:
        assert file.testzip() is None
        assert len(file.namelist()) == len(set(file.namelist()))
    with open_siard(mixed) as source:
        assert source.describe().description == "New"


@pytest.mark.samples
def test_everything_in_archives_of_other_makers_can_be_described(
    samples: Path, tmp_path: Path
) -> None:
    seen = set()
    for number, path in enumerate(sorted((samples / "siard" / "main").glob("*.siard"))):
        copy = tmp_path / f"{number}.siard"
        shutil.copy(path, copy)
        metadata = ZipReader(copy).read(METADATA)
        changes = {(p.kind, p.name): f"words on {p}" for p in places(metadata)}
        before = content(copy)
        replace_metadata(copy, set_descriptions(metadata, changes))
        assert content(copy) == before
        found = {(p.kind, p.name): p.description for p in places(ZipReader(copy).read(METADATA))}
        assert found == changes
        seen |= {kind for kind, _ in found}
        copy.unlink()
    assert {"database", "schema", "table", "column", "primary-key", "foreign-key", "view",
            "routine", "parameter", "user", "type"} <= seen  # fmt: skip
