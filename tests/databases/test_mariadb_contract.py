"""MariaDB keeps the laws of every source and target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from contracts import sample
from contracts.source_contract import SourceContract
from contracts.target_contract import Stop, TargetContract
from muniment.databases.mariadb import create_target, open_source
from muniment.errors import UsageError
from servers.mariadb import MariadbServer

Opened = AbstractContextManager[Any]


@pytest.fixture(scope="module")
def filled(mariadb: MariadbServer) -> Iterator[str]:
    mariadb.run("DROP DATABASE IF EXISTS main")
    with create_target(mariadb.url()) as target:
        sample.copy(target, sample.DATABASE, sample.ROWS)
    yield mariadb.url("main")
    mariadb.run("DROP DATABASE IF EXISTS main")


class TestMariadb(SourceContract):
    @pytest.fixture
    def source(self, filled: str) -> Iterator[Any]:
        with open_source(filled) as source:
            yield source


class TestMariadbTarget(TargetContract):
    nested = False

    @pytest.fixture(autouse=True)
    def clean(self, mariadb: MariadbServer) -> None:
        mariadb.run("DROP DATABASE IF EXISTS main")

    @pytest.fixture
    def target(self, mariadb: MariadbServer) -> Callable[[], Opened]:
        return lambda: create_target(mariadb.url())

    @pytest.fixture
    def reopen(self, mariadb: MariadbServer) -> Callable[[], Opened]:
        return lambda: open_source(mariadb.url("main"))

    def test_nothing_appears_when_the_work_fails(
        self, target: Callable[[], Opened], destination: Path, mariadb: MariadbServer
    ) -> None:
        def interrupted() -> Iterator[object]:
            schema, table = next(iter(sample.DATABASE.tables()))
            yield opened.encoder(schema, table)(sample.batches(sample.ROWS["people"]))
            raise Stop

        with pytest.raises(Stop), target() as opened:
            opened.define(sample.DATABASE)
            schema, table = next(iter(sample.DATABASE.tables()))
            opened.write(schema, table, interrupted(), sample.open_lob)
        assert mariadb.run("SHOW DATABASES LIKE 'main'") == []

    @pytest.mark.usefixtures("written")
    def test_an_existing_file_is_refused(
        self, target: Callable[[], Opened], destination: Path, mariadb: MariadbServer
    ) -> None:
        with pytest.raises(UsageError, match="people"), target() as opened:
            opened.define(sample.DATABASE)
        assert mariadb.run("SELECT COUNT(*) FROM main.people") == [(len(sample.ROWS["people"]),)]

    def test_arrays_and_udts_become_json(
        self, target: Callable[[], Opened], mariadb: MariadbServer
    ) -> None:
        with target() as opened:
            sample.copy(opened, sample.NESTED, sample.NESTED_ROWS)
        first, second, *_ = mariadb.run("SELECT * FROM main.shapes ORDER BY id")
        assert first[1:] == (
            '{"x": "5", "label": "a<b", "tags": ["x", "y"]}',
            '["1", null, "3"]',
            '[{"x": "1", "label": "p", "tags": []}, {"x": "2", "label": null, "tags": null}]',
        )
        assert second == (2, None, None, None)


class TestWithoutLocalInfile(TargetContract):
    """The same rows by INSERT, for servers that take no LOAD DATA LOCAL."""

    nested = False

    @pytest.fixture(autouse=True)
    def clean(self, mariadb: MariadbServer) -> Iterator[None]:
        mariadb.run("DROP DATABASE IF EXISTS main", "SET GLOBAL local_infile=0")
        yield
        mariadb.run("SET GLOBAL local_infile=1")

    @pytest.fixture
    def target(self, mariadb: MariadbServer) -> Callable[[], Opened]:
        return lambda: create_target(mariadb.url())

    @pytest.fixture
    def reopen(self, mariadb: MariadbServer) -> Callable[[], Opened]:
        return lambda: open_source(mariadb.url("main"))

    test_nothing_appears_when_the_work_fails = (
        TestMariadbTarget.test_nothing_appears_when_the_work_fails
    )
    test_an_existing_file_is_refused = TestMariadbTarget.test_an_existing_file_is_refused
