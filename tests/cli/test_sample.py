"""The sample database of the demonstration."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from muniment.cli.config import load
from muniment.demo import build_sample, sample_config


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "trees.db"
    build_sample(path)
    return path


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_the_sample_is_the_same_each_time(sample: Path, tmp_path: Path) -> None:
    build_sample(tmp_path / "again.db")
    assert dump(sample) == dump(tmp_path / "again.db")


def test_the_sample_is_sound(sample: Path) -> None:
    with closing(sqlite3.connect(sample)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_the_sample_has_what_archives_find_hard(sample: Path) -> None:
    with closing(sqlite3.connect(sample)) as connection:

        def one(statement: str) -> object:
            return connection.execute(statement).fetchone()[0]

        assert one("SELECT count(*) FROM tree WHERE house_number IS NULL")
        assert one("SELECT count(*) FROM tree WHERE house_number = ''")
        assert one("SELECT count(*) FROM tree_event")  # the trigger fired
        assert one("SELECT max(length(body)) FROM report") > 4000  # type: ignore[operator]
        assert one("SELECT image FROM photo ORDER BY id LIMIT 1")[:4] == b"\x89PNG"  # type: ignore[index]
        assert one("SELECT count(*) FROM photo WHERE image = x''")
        assert one("SELECT max(integer_value) FROM curiosity") == 2**63 - 1


def test_an_existing_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "trees.db"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        build_sample(path)
    assert path.read_text() == "precious"


def test_the_configuration_of_the_sample_describes_its_tables(sample: Path) -> None:
    path = sample.with_name("trees.yaml")
    path.write_text(sample_config(), encoding="utf-8")
    described = load(path).descriptions
    with closing(sqlite3.connect(sample)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        assert set(described["tables"]) == {name for (name,) in names}
