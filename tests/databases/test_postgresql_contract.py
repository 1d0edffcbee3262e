"""PostgreSQL keeps the laws of every source and target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from contracts import sample
from contracts.source_contract import SourceContract
from contracts.target_contract import Stop, TargetContract
from muniment.databases.postgresql import create_target, open_source
from muniment.errors import UsageError
from servers.postgresql import Cluster

Opened = AbstractContextManager[Any]


@pytest.fixture
def url(postgresql: Cluster) -> Iterator[str]:
    name = postgresql.new_database()
    yield postgresql.url(name)
    postgresql.drop_database(name)


class TestPostgresql(SourceContract):
    @pytest.fixture
    def source(self, url: str) -> Iterator[Any]:
        with create_target(url) as target:
            sample.copy(target, sample.DATABASE, sample.ROWS)
        with open_source(url) as source:
            yield source


class TestPostgresqlTarget(TargetContract):
    @pytest.fixture
    def target(self, url: str) -> Callable[[], Opened]:
        return lambda: create_target(url)

    @pytest.fixture
    def reopen(self, url: str) -> Callable[[], Opened]:
        return lambda: open_source(url)

    def test_nothing_appears_when_the_work_fails(  # a server has no folder to look at
        self, target: Callable[[], Opened], destination: Path, reopen: Callable[[], Opened]
    ) -> None:
        schema, table = next(iter(sample.DATABASE.tables()))

        def interrupted() -> Iterator[object]:
            yield opened.encoder(schema, table)(sample.batches(sample.ROWS["people"]))
            raise Stop

        with pytest.raises(Stop), target() as opened:
            opened.define(sample.DATABASE)
            opened.write(schema, table, interrupted(), sample.open_lob)
        with reopen() as source:
            assert list(source.describe().tables()) == []

    @pytest.mark.usefixtures("written")
    def test_an_existing_file_is_refused(
        self, target: Callable[[], Opened], destination: Path
    ) -> None:
        with pytest.raises(UsageError, match=r"has main\.cities, main"), target() as opened:
            opened.define(sample.DATABASE)
