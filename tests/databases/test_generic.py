"""Databases through SQLAlchemy keep the laws of every source and target, on products that run here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts import sample
from contracts.source_contract import SourceContract, find
from contracts.target_contract import Stop, TargetContract
from muniment.compare import compare
from muniment.databases import open_source, open_target
from muniment.errors import DatabaseError, Unfit, UsageError
from muniment.sql.selection import Selection
from muniment.transfer import archive, restore
from servers.postgresql import Cluster

Opened = AbstractContextManager[Any]


class GenericTargetLaws(TargetContract):
    """What holds of targets that are no files; ``url`` is a new empty database."""

    nested = False

    @pytest.fixture
    def target(self, url: str) -> Callable[[], Opened]:
        return lambda: open_target(url)

    @pytest.fixture
    def reopen(self, url: str) -> Callable[[], Opened]:
        return lambda: open_source(url)

    def test_nothing_appears_when_the_work_fails(  # type: ignore[override]
        self, target: Callable[[], Opened], url: str
    ) -> None:
        with pytest.raises(Stop), target() as opened:
            opened.define(sample.DATABASE)
            schema, table = next(iter(sample.DATABASE.tables()))
            piece = opened.encoder(schema, table)(sample.batches(sample.ROWS["people"]))
            opened.write(schema, table, [piece], sample.open_lob)
            raise Stop
        with open_source(url) as source:
            assert list(source.describe().tables()) == []

    @pytest.mark.usefixtures("written")
    def test_an_existing_file_is_refused(  # type: ignore[override]
        self, target: Callable[[], Opened], url: str
    ) -> None:
        with pytest.raises(UsageError, match="already"), target() as opened:
            opened.define(sample.DATABASE)
        with open_source(url) as source:
            assert {t.name for _, t in source.describe().tables()} == set(sample.ROWS)


def filled(url: str) -> None:
    with open_target(url) as target:
        sample.copy(target, sample.DATABASE, sample.ROWS)


class TestThroughSqlite(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[Any]:
        url = f"sqlalchemy+sqlite:///{tmp_path / 'sample.db'}"
        filled(url)
        with open_source(url) as source:
            yield source


class TestThroughSqliteTarget(GenericTargetLaws):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlalchemy+sqlite:///{tmp_path / 'copy.db'}"


@pytest.fixture
def postgresql_url(postgresql: Cluster) -> Iterator[str]:
    name = postgresql.new_database()
    url = postgresql.url(name, password="not-a-secret")
    yield url.replace("postgresql://", "sqlalchemy+postgresql+psycopg://")
    postgresql.drop_database(name)


class TestThroughPostgresql(SourceContract):
    @pytest.fixture
    def source(self, postgresql_url: str) -> Iterator[Any]:
        filled(postgresql_url)
        with open_source(postgresql_url, Selection(schemas=("main",))) as source:
            yield source


class TestThroughPostgresqlTarget(GenericTargetLaws):
    @pytest.fixture
    def url(self, postgresql_url: str) -> str:
        return postgresql_url


def test_a_database_goes_there_and_back(postgresql_url: str, tmp_path: Path) -> None:
    first = f"sqlalchemy+sqlite:///{tmp_path / 'a.db'}"
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'a.db'}")
    with engine.begin() as connection:
        for sql in (
            "CREATE TABLE a (id INTEGER PRIMARY KEY, n VARCHAR(9) DEFAULT 'x', CHECK (id > 0))",
            "CREATE INDEX a_n ON a (n)",
            "INSERT INTO a VALUES (1, '100%'), (2, NULL)",
            "CREATE VIEW v AS SELECT n FROM a WHERE n LIKE '1%'",
        ):  # fmt: skip
            connection.execute(sa.text(sql))
    engine.dispose()
    archive(first, tmp_path / "a.siard")
    assert compare(first, str(tmp_path / "a.siard")).equal
    report = restore(tmp_path / "a.siard", postgresql_url, left_out=tmp_path / "left-out.sql")
    kinds = {each.kind for each in report.left_out}
    assert kinds == {"default", "index"}
    with open_source(postgresql_url) as source:
        schema, table = find(source, "a")
        assert sample.read(source, schema, table) == [["1", "100%"], ["2", None]]
        assert [v.name for v in schema.views] == ["v"]
        assert len(table.check_constraints) == 1
    assert all(t.equal for t in compare(str(tmp_path / "a.siard"), postgresql_url).tables)


def test_a_view_and_a_condition_choose_rows(postgresql: Cluster, postgresql_url: str) -> None:
    name = postgresql_url.rpartition("/")[2]
    postgresql.psql(name, "CREATE TABLE t (i int, c text); INSERT INTO t VALUES (1,'a'),(2,'b%');"
                    "CREATE VIEW w AS SELECT c FROM t")  # fmt: skip
    chosen = Selection(tables=("t",), where={"t": "c LIKE 'b%'"}, views=("w",))
    with open_source(postgresql_url, chosen) as source:
        schema, table = find(source, "t")
        assert sample.read(source, schema, table) == [["2", "b%"]]
        _, view = find(source, "w")
        assert len(sample.read(source, schema, view)) == 2
    with open_source(postgresql_url, Selection(exclude=("t",), views=("w",))) as source:
        assert [table.name for _, table in source.describe().tables()] == ["w"]
    with pytest.raises(UsageError, match=r"did you mean 'public\.t'"):
        open_source(postgresql_url, Selection(exclude=("public.T",))).__enter__()


def test_a_value_that_does_not_fit_is_named(tmp_path: Path) -> None:
    url = f"sqlalchemy+sqlite:///{tmp_path / 'a.db'}"
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'a.db'}")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE t (d DECIMAL(5,2), b DATE)"))
        connection.execute(sa.text("INSERT INTO t VALUES (1.5, '2024-01-01'), (1.555, 'soon')"))
    engine.dispose()
    with pytest.raises(Unfit, match=r"main\.t\.d, row 2: 1\.555"):
        archive(url, tmp_path / "a.siard")
    archive(url, tmp_path / "a.siard", Selection(as_text=("t.d", "t.b")))
    assert not list(tmp_path.glob("*.partial"))


def test_a_type_that_nobody_knows_needs_a_word(
    postgresql: Cluster, postgresql_url: str, tmp_path: Path
) -> None:
    name = postgresql_url.rpartition("/")[2]
    postgresql.psql(name, "CREATE TABLE t (i interval); INSERT INTO t VALUES ('1 day')")
    with pytest.raises(UsageError, match=r"--as-text 'public\.t\.i'"), open_source(postgresql_url):
        pass
    with open_source(postgresql_url, Selection(as_text=("public.t.i",))) as source:
        schema, table = find(source, "t")
        assert sample.read(source, schema, table) == [["1 day, 0:00:00"]]
    archive(postgresql_url, tmp_path / "a.siard", Selection(as_text=("public.t.i",)))
    found = compare(postgresql_url, str(tmp_path / "a.siard"))
    assert found.equal and found.notes == (
        "public.t.i was archived as text, and is compared as such",
    )
    twice = compare(postgresql_url, postgresql_url)
    (note,) = twice.notes
    assert twice.equal and note.startswith("public.t.i is INTERVAL")
    assert note.endswith("for which SIARD has no type, and is compared as text")


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("sqlalchemy+nothing://h/d", UsageError, "does not understand"),
        ("mssql+pymssql://sa:pw@127.0.0.1:1/d", DatabaseError, "127|driver"),
        ("sqlalchemy+postgresql+psycopg://u:pw@127.0.0.1:1/d", DatabaseError, "127|driver"),
        ("sqlalchemy+sqlite:////nowhere/at/all.db", DatabaseError, "unable to open"),
    ],
)
def test_what_cannot_be_opened_is_a_sentence(url: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught, open_source(url):
        pass
    assert ":pw" not in str(caught.value)
