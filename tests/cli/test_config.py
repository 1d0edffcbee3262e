"""The configuration file: what it may say, and what is said about its faults."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from commandline import Run

from muniment.cli.archive import archive
from muniment.cli.config import Settings, load
from muniment.errors import UsageError
from muniment.siard import open_siard

DOCUMENT = Path(__file__).parents[2] / "docs" / "config.md"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "c.yaml"


def test_every_setting_is_read(config: Path) -> None:
    config.write_text(
        """
schema: main
table: [tree, "insp*"]
exclude: [audit]
where: {tree: felled_on IS NULL}
order: {tree: planted_on}
columns:
  tree: [id, height_m]
  street: name
view: [tree_overview]
query:
  tall: |
    SELECT id
    FROM tree
as-text: main.tree.height_m
lobs: inline
lob-threshold: 100
digest: [MD5, SHA-256]
compression: strong
jobs: 3
dbname: Trees
owner: City
timespan: 2019
description: All trees
archiver: Archive
contact: me@example.org
archival-date: 2025-12-31
descriptions:
  schemas: {main: Everything}
  tables: {tree: Trees}
  columns: {main.tree.id: A number}
"""
    )
    assert load(config) == Settings(
        schema=("main",),
        table=("tree", "insp*"),
        exclude=("audit",),
        where={"tree": "felled_on IS NULL"},
        order={"tree": "planted_on"},
        columns={"tree": ("id", "height_m"), "street": ("name",)},
        view=("tree_overview",),
        query={"tall": "SELECT id\nFROM tree"},
        as_text=("main.tree.height_m",),
        lobs="inline",
        lob_threshold=100,
        digest=("MD5", "SHA-256"),
        compression="strong",
        jobs=3,
        dbname="Trees",
        owner="City",
        timespan="2019",
        description="All trees",
        archiver="Archive",
        contact="me@example.org",
        archival_date="2025-12-31",
        descriptions={
            "schemas": {"main": "Everything"},
            "tables": {"tree": "Trees"},
            "columns": {"main.tree.id": "A number"},
        },
    )


@pytest.mark.parametrize("text", ["1.10", "2019-05", "no", "0x1F", "1e3", "12:30"])
def test_a_text_stays_as_it_was_written(config: Path, text: str) -> None:
    config.write_text(f"timespan: {text}\n")
    assert load(config).timespan == text


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("tabel: tree", 1, "unknown key 'tabel'; did you mean 'table'?"),
        ("owner: City\nlob_threshold: 5", 2, "did you mean 'lob-threshold'?"),
        ("xyzzy: 1", 1, "unknown key 'xyzzy'; known are schema, table"),
        ("owner: [a, b]", 1, "owner should be one text"),
        ("owner:", 1, "owner is empty"),
        ("where: felled", 1, "where should hold names"),
        ("where:\n  tree: [a]", 2, "where of tree should be one text"),
        ("columns:\n  tree:\n    a: b", 3, "columns of tree should be one text"),
        ("lobs: outside", 1, "lobs should be one of inline, internal, external, not 'outside'"),
        ("digest:\n  - SHA-256\n  - CRC32", 3, "digest should be one of"),
        ("jobs: many", 1, "jobs should be a whole number, not 'many'"),
        ("jobs: -1", 1, "jobs should be a whole number"),
        ("archival-date: 2025-02-30", 1, "archival-date should be a date"),
        ("descriptions:\n  table: {}", 2, "did you mean 'tables'?"),
        ("owner: a\nowner: b", 2, "has 'owner' twice"),
        ("- owner", 1, "the file should hold names"),
        ("owner: [a\nschema: b", 2, "not YAML"),
        ("owner: !!python/object/apply:os.getcwd []", 1, "owner should be one text"),
        ("owner: &a [x]\ntable: [*a]", 1, "owner should be one text"),
    ],
)
def test_a_fault_names_the_key_and_the_line(config: Path, text: str, line: int, says: str) -> None:
    config.write_text(text)
    with pytest.raises(UsageError) as caught:
        load(config)
    first = str(caught.value).splitlines()[0]
    assert f"{config}, line {line}: " in first
    assert says in first


def test_all_faults_are_reported_together(config: Path) -> None:
    config.write_text("tabel: tree\njobs: many\nlobs: outside\n")
    with pytest.raises(UsageError) as caught:
        load(config)
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize("content", [b"", b"# nothing\n"])
def test_an_empty_file_says_nothing(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    assert load(config) == Settings()


@pytest.mark.parametrize("content", [b"owner: \xff\xfe", b"\x00", b"owner: \x07"])
def test_bytes_that_are_no_text_are_refused(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    with pytest.raises(UsageError, match="not YAML"):
        load(config)


def test_a_file_in_another_encoding_should_be_saved_as_utf_8(config: Path) -> None:
    config.write_bytes("owner: Köln\n".encode("latin-1"))
    with pytest.raises(UsageError, match="save the file as UTF-8"):
        load(config)


def test_options_win_over_the_file() -> None:
    file = Settings(
        table=("a", "b"), where={"a": "x", "b": "y"}, owner="file", jobs=4, timespan="then"
    )
    options = Settings(table=("c",), where={"a": "z"}, owner="option", jobs=0)
    merged = file.overridden_by(options)
    assert merged.table == ("c",)
    assert merged.where == {"a": "z", "b": "y"}
    assert (merged.owner, merged.jobs, merged.timespan) == ("option", 0, "then")


def test_every_option_of_archive_is_a_setting() -> None:
    options = {
        parameter.name for parameter in archive.params if parameter.param_type_name == "option"
    }
    settings = {each.name for each in fields(Settings)}
    elsewhere = {"config", "as_json", "resume", "ssh"}  # of one run, or of one place
    assert options - elsewhere == settings - {"descriptions"}


def test_every_setting_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for each in fields(Settings):
        assert f"`{each.name.replace('_', '-')}`" in text


def test_the_documented_example_is_valid(config: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert examples
    for example in examples:
        config.write_text(example, encoding="utf-8")
        load(config)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("exclude: [crate, fruits]", "no table matches 'fruits'; did you mean 'main.fruit'?"),
        ("exclude: [crate, fruit]", "--schema, --table and --exclude leave no table to archive"),
        (
            "descriptions: {tables: {Fruit: Sold here.}}",
            "a description is given for the table 'Fruit', which is not there; "
            "did you mean 'main.fruit'?",
        ),
        (
            "descriptions: {columns: {fruit.name: As on the label.}}",
            "a description is given for the column 'fruit.name', which is not there; "
            "did you mean 'main.fruit.name'?",
        ),
        (
            "{table: crate, descriptions: {columns: {main.fruit.nam: As on the label.}}}",
            "a description is given for the column 'main.fruit.nam', which is not there; "
            "did you mean 'main.fruit.name'?",
        ),
        (
            "{table: crate, descriptions: {tables: {friut: Sold here.}}}",
            "a description is given for the table 'friut', which is not there; "
            "did you mean 'main.fruit'?",
        ),
        (
            "{query: {q: SELECT 1 AS one}, descriptions: {columns: {main.q.on: Always 1.}}}",
            "a description is given for the column 'main.q.on', which is not there; "
            "did you mean 'main.q.one'?",
        ),
        (
            "{schema: main, descriptions: {columns: {fruit.name: As on the label.}}}",
            "a description is given for the column 'fruit.name', which is not there; "
            "did you mean 'main.fruit.name'?",
        ),
        (
            "descriptions: {tables: {fruit: Sold here., main.fruit: Sold there.}}",
            "main.fruit is given a description twice",
        ),
    ],
)
def test_names_that_mean_nothing_are_refused(run: Run, shop: str, text: str, sentence: str) -> None:
    Path("shop.yaml").write_text(text)
    result = run("archive", shop, "shop.siard", "--config", "shop.yaml")
    assert (result.exit_code, result.stderr) == (2, f"muniment: {sentence}\n")
    assert not Path("shop.siard").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--table", "crate"],
        ["--exclude", "fruit"],
        ["--columns", "fruit=id"],
        ["--columns", "fruit=id", "--resume"],
    ],
)
def test_descriptions_of_what_is_left_out_do_no_harm(
    run: Run, shop: str, options: list[str]
) -> None:
    text = """
        descriptions:
          tables: {fruit: Sold here., main.crate: What it comes in.}
          columns: {main.fruit.name: As on the label., main.crate.id: Painted on it.}
    """
    Path("shop.yaml").write_text(text)
    result = run("archive", shop, "shop.siard", "--config", "shop.yaml", *options)
    assert result.exit_code == 0, result.output
    words = _words(Path("shop.siard"))
    assert words["crate.id"] == "Painted on it."
    assert (words["crate"] or "").startswith("What it comes in.\n")
    assert "fruit.name" not in words


def _words(path: Path) -> dict[str, str | None]:
    """The descriptions of tables and columns."""
    with open_siard(path) as source:
        tables = [table for _, table in source.describe().tables()]
    columns = {f"{t.name}.{c.name}": c.description for t in tables for c in t.columns}
    return {**{t.name: t.description for t in tables}, **columns}


def test_any_character_may_stand_in_a_description(run: Run, shop: str) -> None:
    odd = "two\nlines\t\x01\x1b[2J\x85\u2028 \\u0041  and \u00e4"
    words = {"tables": {"crate": odd}, "columns": {"main.crate.id": odd}}
    Path("shop.yaml").write_text(json.dumps({"descriptions": words}))
    result = run("archive", shop, "s.siard", "--config", "shop.yaml", "--description", odd)
    assert result.exit_code == 0, result.output
    found = _words(Path("s.siard"))
    assert found["crate.id"] == odd
    assert (found["crate"] or "").startswith(f"{odd}\n\n")
    assert run("validate", "s.siard").exit_code == 0


def test_descriptions_are_for_views_and_queries_that_become_tables(run: Run, shop: str) -> None:
    text = """
        view: cheap
        query: {q: SELECT 1 AS one}
        descriptions:
          tables: {cheap: For little money., q: A query.}
          columns: {main.cheap.name: As on the label., main.q.one: Always 1.}
    """
    Path("shop.yaml").write_text(text)
    result = run("archive", shop, "shop.siard", "--config", "shop.yaml")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("split: 1", "split: '1' is too small; it takes at least 10000 bytes"),
        ("split: 0", "split: '0' is too small"),
        ("segment-size: 9KB", "segment-size: '9KB' is too small"),
        ("segment-files: 0", "segment-files should be a whole number above 0, not '0'"),
        ("segment-files: []", "segment-files should be one text"),
        (f"lob-threshold: {'9' * 5000}", "lob-threshold should be a whole number, not"),
    ],
)
def test_sizes_that_make_no_sense_are_faults(config: Path, text: str, sentence: str) -> None:
    config.write_text(text)
    with pytest.raises(UsageError, match=re.escape(sentence)):
        load(config)
