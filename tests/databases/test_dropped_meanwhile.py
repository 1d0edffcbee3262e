"""Somebody drops, renames or alters things while a database is archived.

What the archive has begun with stays there until it is done; what went before that is named.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pymysql
import pytest

from muniment.compare import compare
from muniment.databases.mariadb.connection import Session
from muniment.databases.postgresql import catalogue as postgresql_catalogue
from muniment.databases.postgresql import definitions as postgresql_definitions
from muniment.databases.postgresql import source as postgresql_source
from muniment.errors import DatabaseError, TableGone
from muniment.siard import open_siard
from muniment.transfer import Progress, archive
from servers.mariadb import MariadbServer
from servers.postgresql import Cluster

TABLES = [f"t{number}" for number in range(3)]


def first_time(act: Callable[[], None]) -> Callable[[Progress], None]:
    """Call ``act`` with the first word of progress."""
    calls: list[Progress] = []

    def progress(now: Progress) -> None:
        calls.append(now)
        if len(calls) == 1:
            act()

    return progress


def tables_of(path: Path) -> dict[str, int]:
    with open_siard(path) as source:
        return {table.name: table.rows for _, table in source.describe().tables()}


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_sqlite_shows_the_state_at_the_start(tmp_path: Path, mode: str) -> None:
    db = apsw.Connection(str(tmp_path / "shop.db"))
    db.execute(f"PRAGMA journal_mode = {mode}")
    for name in TABLES:
        db.execute(f"CREATE TABLE {name} (a INTEGER); INSERT INTO {name} VALUES (1)")

    def drop() -> None:
        if mode == "wal":
            db.execute("DROP TABLE t2")
        else:
            with pytest.raises(apsw.BusyError):
                db.execute("DROP TABLE t2")

    try:
        archive(f"sqlite:///{tmp_path}/shop.db", tmp_path / "a.siard", progress=first_time(drop))
    finally:
        db.close()
    assert tables_of(tmp_path / "a.siard") == dict.fromkeys(TABLES, 1)


def postgresql_shop(server: Cluster) -> str:
    name = server.new_database()
    for table in TABLES:
        server.psql(name, f"CREATE TABLE {table} (a int); INSERT INTO {table} VALUES (1)")
    return name


def test_postgresql_keeps_tables_until_they_are_read(postgresql: Cluster, tmp_path: Path) -> None:
    name = postgresql_shop(postgresql)

    def drop() -> None:
        with pytest.raises(Exception, match="lock timeout"):
            postgresql.psql(name, "SET lock_timeout = '50ms'; DROP TABLE t2")

    archive(postgresql.url(name), tmp_path / "a.siard", progress=first_time(drop))
    assert tables_of(tmp_path / "a.siard") == dict.fromkeys(TABLES, 1)


@pytest.mark.parametrize("sql", ["DROP TABLE t2", "ALTER TABLE t2 RENAME TO t9"])
def test_a_table_that_postgresql_loses_before_its_lock_is_named(
    postgresql: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    name = postgresql_shop(postgresql)
    execute = postgresql_source.execute

    def late(connection: Any, statement: str, *doing: str) -> None:
        if "LOCK TABLE" in statement and "t2" in statement:
            postgresql.psql(name, sql)
        execute(connection, statement, *doing)

    monkeypatch.setattr(postgresql_source, "execute", late)
    with pytest.raises(
        TableGone, match=r"public\.t2 was dropped or renamed .*; run the command ag"
    ):
        archive(postgresql.url(name), tmp_path / "a.siard")
    assert list(tmp_path.iterdir()) == []


def mariadb_shop(server: MariadbServer) -> str:
    name = server.new_database()
    for table in TABLES:
        make = f"CREATE TABLE {table} (a INT CHECK (a > 0), INDEX (a))"
        server.run(make, f"INSERT INTO {table} VALUES (1)", database=name)
    return name


def test_mariadb_keeps_tables_until_they_are_read(mariadb: MariadbServer, tmp_path: Path) -> None:
    name = mariadb_shop(mariadb)

    def drop() -> None:
        with pytest.raises(pymysql.err.OperationalError, match="Lock wait timeout"):
            mariadb.run("SET lock_wait_timeout=1", "DROP TABLE t2", database=name)

    archive(mariadb.url(name), tmp_path / "a.siard", progress=first_time(drop))
    assert tables_of(tmp_path / "a.siard") == dict.fromkeys(TABLES, 1)


@pytest.mark.parametrize(
    "sql", ["DROP TABLE t2", "RENAME TABLE t2 TO t9", "ALTER TABLE t2 ADD b INT NOT NULL FIRST"]
)
def test_what_happens_between_two_questions_to_mariadb_does_no_harm(
    mariadb: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    """After each question in turn: the archive is whole, or a sentence names the table."""
    ask, outcomes = Session.rows, []
    for turn in range(1, 12):
        name, asked = mariadb_shop(mariadb), []

        def and_then(
            session: Session, question: str, *values: Any, name: str = name, turn: int = turn,
            asked: list[str] = asked,
        ) -> Any:  # fmt: skip
            answer = ask(session, question, *values)
            asked.append(question)
            if len(asked) == turn:
                try:
                    mariadb.run("SET lock_wait_timeout=1", sql, database=name)
                except pymysql.err.OperationalError:
                    asked.append("locked")
            return answer

        path = tmp_path / f"{turn}.siard"
        with monkeypatch.context() as patch:
            patch.setattr(Session, "rows", and_then)
            try:
                archive(mariadb.url(name), path)
            except DatabaseError as error:
                assert "t2 was dropped or renamed" in str(error) or "altered" in str(error)
                outcomes.append("named")
                continue
        assert "locked" in asked or compare(mariadb.url(name), str(path)).equal
        outcomes.append("locked" if "locked" in asked else "whole")
        if "locked" in asked:
            break
    assert outcomes[0] == "whole" and outcomes[-1] == "locked"
    assert "ALTER" in sql or "named" in outcomes
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".siard"]


def test_a_view_of_a_table_that_is_gone_stops_nothing(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    name = mariadb.new_database()
    mariadb.run(
        "CREATE TABLE t (a INT)", "CREATE TABLE gone (a INT)",
        "CREATE VIEW good AS SELECT a FROM t", "CREATE VIEW broken AS SELECT a FROM gone",
        "DROP TABLE gone", database=name,
    )  # fmt: skip
    report = archive(mariadb.url(name), tmp_path / "a.siard")
    assert any(f"view {name}.broken is broken in the database" in note for note in report.notes)
    with open_siard(tmp_path / "a.siard") as source:
        views = {view.name: view for view in source.describe().schemas[0].views}
    assert "gone" in str(views["broken"].query_original)
    assert [column.name for column in views["good"].columns] == ["a"]
    assert compare(mariadb.url(name), str(tmp_path / "a.siard")).equal


@pytest.mark.parametrize(
    ("sql", "before"), [("DROP VIEW v", "pg_get_viewdef"), ("DROP SEQUENCE q", "last_value")]
)
def test_what_goes_while_postgresql_tells_of_it_is_said_in_a_sentence(
    postgresql: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, before: str
) -> None:
    """Views and sequences have no locks; the server loses its way when they go."""
    name, ask = postgresql.new_database(), postgresql_catalogue.rows
    make = "CREATE TABLE t (a int); CREATE VIEW v AS SELECT a FROM t; CREATE SEQUENCE q"
    postgresql.psql(name, make)

    def late(connection: Any, question: str, *values: Any) -> Any:
        if before in question:
            postgresql.psql(name, sql)
        return ask(connection, question, *values)

    for module in (postgresql_catalogue, postgresql_definitions):
        monkeypatch.setattr(module, "rows", late)
    with pytest.raises(TableGone, match=r"a view or a sequence was dropped .*; run the command"):
        archive(postgresql.url(name), tmp_path / "a.siard")
    assert list(tmp_path.iterdir()) == []
