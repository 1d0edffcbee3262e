"""SQLite keeps the laws of every source and target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from contracts import sample
from contracts.source_contract import SourceContract
from contracts.target_contract import TargetContract
from muniment.databases.sqlite import SqliteSource
from muniment.databases.sqlite_target import create_target

Opened = AbstractContextManager[Any]


class TestSqlite(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[SqliteSource]:
        with create_target(tmp_path / "sample.db") as target:
            sample.copy(target, sample.DATABASE, sample.ROWS)
        with SqliteSource(tmp_path / "sample.db") as source:
            yield source


class TestSqliteTarget(TargetContract):
    suffix = ".db"
    nested = False

    @pytest.fixture
    def target(self, destination: Path) -> Callable[[], Opened]:
        return lambda: create_target(destination)

    @pytest.fixture
    def reopen(self, destination: Path) -> Callable[[], Opened]:
        return lambda: SqliteSource(destination)

    def test_arrays_and_udts_become_json(
        self, destination: Path, target: Callable[[], Opened]
    ) -> None:
        with target() as opened:
            sample.copy(opened, sample.NESTED, sample.NESTED_ROWS)
        with SqliteSource(destination) as source:
            schema = source.describe().schemas[0]
            first, second, *_ = sample.read(source, schema, schema.tables[0])
        assert first[1:] == [
            '{"x": "5", "label": "a<b", "tags": ["x", "y"]}',
            '["1", null, "3"]',
            '[{"x": "1", "label": "p", "tags": []}, {"x": "2", "label": null, "tags": null}]',
        ]
        assert second == ["2", None, None, None]
