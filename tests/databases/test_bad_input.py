"""What goes wrong at servers is a sentence, and nothing is left half-done without saying so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from muniment import databases
from muniment.compare import compare
from muniment.databases.mariadb import connection as mariadb_connection
from muniment.errors import DatabaseError, UsageError
from muniment.siard import open_siard
from muniment.sql.model import Routine, Schema
from muniment.sql.selection import Selection
from muniment.transfer import Progress, archive, copy, restore
from servers.mariadb import MariadbServer, private_mariadb
from servers.postgresql import Cluster, private_postgresql

LONG = "x" * 70


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restoring writes what it left out to the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["postgresql", "mariadb"])
def target(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The URL of an empty database, and the schema that tables go to."""
    server: Any = request.getfixturevalue(request.param)
    name = server.new_database()
    return server.url(name), "public" if request.param == "postgresql" else name


def archived(tmp_path: Path, *statements: str) -> Path:
    """Archive a SQLite database that is made of statements."""
    file = tmp_path / "made.db"
    db = apsw.Connection(str(file))
    for statement in statements:
        db.execute(statement)
    db.close()
    archive(f"sqlite:///{file}", tmp_path / "made.siard")
    return tmp_path / "made.siard"


def tables_of(url: str) -> list[str]:
    with databases.open_source(url) as source:
        return [table.name for _, table in source.describe().tables()]


@pytest.mark.parametrize("sql", [f"CREATE TABLE {LONG}1 (a INT)", f"CREATE TABLE t ({LONG}1 INT)"])
def test_names_that_are_too_long_are_refused_before_anything_is_made(
    target: tuple[str, str], tmp_path: Path, sql: str
) -> None:
    url, home = target
    path = archived(tmp_path, sql, "CREATE TABLE a_fine_one (a INT)")
    with pytest.raises(DatabaseError, match=r"has names of at most 6\d .*xxx1 would be longer"):
        restore(path, url, schema_map={"main": home})
    assert tables_of(url) == []


def test_long_names_of_keys_and_checks_do_not_matter(
    target: tuple[str, str], tmp_path: Path
) -> None:
    url, home = target
    path = archived(
        tmp_path,
        f"CREATE TABLE t (a INT, b INT, CONSTRAINT {LONG}1 UNIQUE (a), CONSTRAINT {LONG}2 UNIQUE"
        f" (b), CONSTRAINT {LONG}3 CHECK (a > 0), CONSTRAINT {LONG}4 CHECK (b > 0))",
        "INSERT INTO t VALUES (1, 2)",
    )
    report = restore(path, url, schema_map={"main": home})
    assert report.left_out == ()
    assert compare(url, str(path)).equal


def test_keys_of_two_tables_may_have_one_name(
    postgresql: Cluster, mariadb: MariadbServer, tmp_path: Path
) -> None:
    name, again = postgresql.new_database(), mariadb.new_name()
    postgresql.psql(
        name,
        "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1);"
        "CREATE TABLE a (p int CONSTRAINT k REFERENCES p, n int CONSTRAINT c CHECK (n > 0));"
        "CREATE TABLE b (p int CONSTRAINT k REFERENCES p, n int CONSTRAINT c CHECK (n > 1))",
    )
    archive(postgresql.url(name), tmp_path / "a.siard")
    report = restore(tmp_path / "a.siard", mariadb.url(again), schema_map={"public": again})
    assert {item.kind for item in report.left_out} <= {"user", "role", "privilege"}
    with databases.open_source(mariadb.url(again)) as source:
        found = {
            t.name: (t.foreign_keys, t.check_constraints) for _, t in source.describe().tables()
        }
    assert [len(found[n][0]) + len(found[n][1]) for n in "ab"] == [2, 2]


def test_two_schemas_are_not_put_into_one(postgresql: Cluster, tmp_path: Path) -> None:
    name = postgresql.new_database()
    postgresql.psql(
        name, "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (); CREATE TABLE b.t (x int)"
    )
    archive(postgresql.url(name), tmp_path / "a.siard")
    with pytest.raises(UsageError, match="two schemas would be called b"):
        restore(
            tmp_path / "a.siard", postgresql.url(postgresql.new_database()), schema_map={"a": "b"}
        )


def test_names_that_differ_by_case_alone_clash_where_case_does_not_count(
    postgresql: Cluster, mariadb: MariadbServer, tmp_path: Path
) -> None:
    name = postgresql.new_database()
    postgresql.psql(name, 'CREATE TABLE t (a int, "A" int)')
    archive(postgresql.url(name), tmp_path / "a.siard")
    again = mariadb.new_name()
    with pytest.raises(DatabaseError, match=r"t cannot be made: .*Duplicate column name 'A'"):
        restore(tmp_path / "a.siard", mariadb.url(again), schema_map={"public": again})
    assert mariadb.run(f"SHOW DATABASES LIKE '{again}'") == []


def test_a_table_that_somebody_locks_is_waited_for_and_named(
    mariadb: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = mariadb.new_database()
    mariadb.run("CREATE TABLE t (x INT)", database=name)
    monkeypatch.setattr(
        mariadb_connection,
        "_SESSION",
        mariadb_connection._SESSION.replace("lock_wait_timeout=60", "lock_wait_timeout=1"),
    )
    with mariadb.connect(name) as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLES t WRITE")
        with pytest.raises(DatabaseError, match="holds a lock for too long"):
            archive(mariadb.url(name), tmp_path / "a.siard")
    assert list(tmp_path.iterdir()) == []


def broken_routine(schema: Schema, source: str) -> Schema:
    routine = Routine("broken", "broken", None, source, None, None, None, ())
    return replace(schema, routines=(routine,))


@pytest.mark.parametrize(
    "source",
    [
        "CREATE FUNCTION broken( RETURNS",
        "CREATE FUNCTION broken() RETURNS int gibberish",
        "nonsense",
        "",
    ],
)
def test_a_routine_that_does_not_parse_is_left_out_and_listed(
    request: pytest.FixtureRequest, tmp_path: Path, source: str
) -> None:
    for product in ("postgresql", "mariadb"):
        server: Any = request.getfixturevalue(product)
        name, again = server.new_database(), server.new_database()
        make: Callable[..., Any] = server.psql if product == "postgresql" else server.run
        make(name, "CREATE TABLE t (x INT)") if product == "postgresql" else make(
            "CREATE TABLE t (x INT)", database=name
        )
        path = tmp_path / f"{product}{len(source)}.siard"
        archive(server.url(name), path)
        with open_siard(path) as archive_, databases.open_target(server.url(again)) as made:
            database = archive_.describe()
            (schema,) = database.schemas
            copy(archive_, made, replace(database, schemas=(broken_routine(schema, source),)))
        left = [item for item in made.left_out if item.kind == "routine"]  # type: ignore[attr-defined]
        assert len(left) == (1 if source or product == "mariadb" else 0)
        assert all("broken" in item.name and item.reason for item in left)
        assert tables_of(server.url(again)) == ["t"]


def dies(process: Any) -> Callable[[Progress], None]:
    """What kills a server once rows are on their way."""

    def watch(progress: Progress) -> None:
        if process.poll() is None:
            process.kill()
            process.wait()

    return watch


def big(tmp_path: Path) -> Path:
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
    return archived(
        tmp_path,
        "CREATE TABLE first (i INT)",
        "INSERT INTO first VALUES (1)",
        "CREATE TABLE t (i INT, x TEXT)",
        f"INSERT INTO t {count} SELECT i, hex(randomblob(40)) FROM n",
    )


def test_a_server_that_dies_while_it_is_filled_is_a_sentence(tmp_path: Path) -> None:
    path = big(tmp_path)
    with private_postgresql() as cluster:
        url = cluster.url(cluster.new_database())
        with pytest.raises(DatabaseError, match="connection to PostgreSQL was lost"):
            restore(path, url, progress=dies(cluster.process))
    with private_mariadb() as server:
        url = server.tcp_url("made", "root")
        with pytest.raises(
            DatabaseError, match=r"lost.*\. The server was lost: the tables made so"
        ):
            restore(path, url, schema_map={"main": "made"}, progress=dies(server.process))


def test_a_server_that_dies_while_it_is_read_is_a_sentence(tmp_path: Path) -> None:
    path = big(tmp_path)
    with private_mariadb() as server:
        restore(path, server.url("made"), schema_map={"main": "made"})
        started = threading.Event()

        def kill() -> None:
            started.wait(20)
            assert server.process is not None
            server.process.kill()

        killer = threading.Thread(target=kill)
        killer.start()

        def watch(_: Progress) -> None:
            started.set()
            time.sleep(0.5)

        with pytest.raises(DatabaseError, match="lost"):
            archive(server.url("made"), tmp_path / "b.siard", Selection(), progress=watch)
        killer.join()
    assert not list(tmp_path.glob("b.siard*"))
