"""Users, roles and rights: archived, listed, and made again only for those who ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.databases.postgresql.builder import Builder
from muniment.databases.postgresql.connection import connect, connection_options, execute, rows
from muniment.databases.postgresql.rights import Rights
from muniment.databases.postgresql.roles import make_roles, membership_limits
from muniment.errors import UsageError
from muniment.siard import open_siard
from muniment.sql.model import Database, Privilege, Role
from muniment.sql.original import Original, join_original
from muniment.transfer import archive, restore
from servers.mariadb import MariadbServer, private_mariadb
from servers.postgresql import Cluster, private_postgresql


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restoring writes what it left out to the current folder."""
    monkeypatch.chdir(tmp_path)


PG = """
CREATE ROLE readers; CREATE ROLE anna LOGIN PASSWORD 'hush-hush' IN ROLE readers; CREATE ROLE boss LOGIN;
GRANT readers TO boss WITH ADMIN OPTION;
CREATE TABLE t (a int, b int); CREATE TABLE secret (x int);
GRANT SELECT, INSERT ON t TO readers; GRANT UPDATE (b) ON t TO anna WITH GRANT OPTION;
CREATE FUNCTION f(i int) RETURNS int LANGUAGE sql AS 'SELECT 1';
REVOKE EXECUTE ON FUNCTION f(int) FROM PUBLIC; GRANT EXECUTE ON FUNCTION f(int) TO readers;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY; CREATE POLICY only_anna ON secret TO anna USING (x > 1);
"""


def test_roles_of_postgresql_come_back_on_request(postgresql: Cluster, tmp_path: Path) -> None:
    with private_postgresql() as other:
        name = other.new_database()
        other.psql(name, PG)
        archive(other.url(name), tmp_path / "a.siard")
    assert b"hush-hush" not in (tmp_path / "a.siard").read_bytes()
    with open_siard(tmp_path / "a.siard") as source:
        described = source.describe()
    assert {u.name for u in described.users} == {"postgres", "anna", "boss"}
    assert {r.name for r in described.roles} == {"readers"}
    plain = postgresql.new_database()
    report = restore(tmp_path / "a.siard", postgresql.url(plain))
    listed = {(item.kind, item.name) for item in report.left_out}
    assert ("privilege", "of readers") in listed and ("privilege", "of anna") in listed
    assert report.left_out_file is not None
    assert 'GRANT SELECT ON TABLE public.t TO "readers"' in report.left_out_file.read_text()
    assert "readers" not in postgresql.psql(plain, "SELECT rolname FROM pg_roles")
    again = postgresql.new_database()
    try:
        report = restore(tmp_path / "a.siard", postgresql.url(again), roles=True)
        assert report.left_out == ()
        assert report.notes == (
            "roles were made that cannot log in: anna, boss, readers; let people in with"
            " ALTER ROLE … LOGIN PASSWORD …",
        )
        facts = (
            "SELECT rolname, rolcanlogin, rolsuper FROM pg_roles WHERE rolname IN"
            " ('anna', 'boss', 'postgres', 'readers') ORDER BY 1"
        )
        found = postgresql.psql(again, facts).split()
        assert found == ["anna|f|f", "boss|f|f", "postgres|t|t", "readers|f|f"]
        asked = (
            "SELECT has_table_privilege('readers', 't', 'INSERT'), has_column_privilege('anna', 't',"
            " 'b', 'UPDATE WITH GRANT OPTION'), has_function_privilege('anna', 'f(int)', 'EXECUTE'),"
            " pg_has_role('boss', 'readers', 'MEMBER WITH ADMIN OPTION'),"
            " has_function_privilege('public', 'f(int)', 'EXECUTE'),"
            " (SELECT polroles = ARRAY['anna'::regrole::oid] FROM pg_policy)"
        )
        assert postgresql.psql(again, asked).strip() == "t|t|t|t|f|t"
    finally:
        postgresql.drop_database(again)
        postgresql.psql("postgres", "DROP ROLE IF EXISTS anna, boss, readers")


LIMITED = """
CREATE ROLE m_shared; CREATE ROLE m_careful NOINHERIT IN ROLE m_shared; CREATE ROLE m_usual IN ROLE m_shared;
/*16*/ CREATE ROLE m_bound; GRANT m_shared TO m_bound WITH INHERIT FALSE, SET FALSE, ADMIN TRUE;
CREATE ROLE m_reader; GRANT m_shared TO m_reader WITH SET FALSE; /*-*/
CREATE TABLE t (a int); GRANT SELECT ON t TO m_shared;
"""
MEMBERS = """
SELECT m.member::regrole, pg_has_role(m.member, m.roleid, 'USAGE') AS inherits,
    to_jsonb(m) - '{oid,roleid,member,grantor}'::text[]
FROM pg_auth_members m WHERE m.roleid = 'm_shared'::regrole ORDER BY m.member::regrole::text
"""


def test_members_get_no_more_than_they_had(postgresql: Cluster, tmp_path: Path) -> None:
    with private_postgresql() as other:
        name = other.new_database()
        other.psql(name, other.known(LIMITED))
        members = other.psql(name, MEMBERS)
        archive(other.url(name), tmp_path / "a.siard")
    assert "m_careful|f|" in members and "m_usual|t|" in members
    again = postgresql.new_database()
    try:
        report = restore(tmp_path / "a.siard", postgresql.url(again), roles=True)
        assert report.left_out == ()
        assert postgresql.psql(again, MEMBERS) == members
    finally:
        postgresql.drop_database(again)
        postgresql.psql(
            "postgres", "DROP ROLE IF EXISTS m_shared, m_careful, m_usual, m_bound, m_reader"
        )


def test_members_whom_an_older_server_cannot_limit_are_left_out(
    postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.databases.postgresql.roles._LIMITED_SINCE", 1_000_000)

    def member(name: str, inherits: bool, becomes: bool) -> Privilege:
        limits = Original("PostgreSQL", (str(membership_limits(inherits, becomes)),))
        return Privilege(
            "MEMBER", "postgres", name, 'ROLE "m_shared"', "ADMIN", join_original(None, limits)
        )

    database = Database(
        "d",
        roles=tuple(Role(name, "") for name in ("m_shared", "m_bound", "m_careful")),
        privileges=(member("m_bound", False, False), member("m_careful", False, True)),
    )
    connection = connect(connection_options(postgresql.url("postgres")))
    try:
        execute(connection, "BEGIN")
        builder = Builder(connection)
        make_roles(builder, database)
        assert [(item.name, item.reason) for item in builder.left_out] == [
            ("of m_bound", "this version of PostgreSQL lets every member become the role")
        ]
        asked = "SELECT rolname AS name FROM pg_roles WHERE NOT rolinherit AND rolname ~ '^m_'"
        assert rows(connection, asked) == [{"name": "m_careful"}]
        asked = "SELECT member::regrole::text AS name, admin_option FROM pg_auth_members"
        found = rows(connection, f"{asked} WHERE roleid = 'm_shared'::regrole")
        assert {"name": "m_careful", "admin_option": True} in found
        assert "m_bound" not in {row["name"] for row in found}
    finally:
        connection.close()


@pytest.mark.parametrize(
    "change",
    [
        "SELECT 1",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "GRANT CREATE ON SCHEMA public TO PUBLIC",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        "DROP SCHEMA public; CREATE SCHEMA public",
    ],
)
def test_the_schema_public_is_as_open_as_it_was(
    postgresql: Cluster, tmp_path: Path, change: str
) -> None:
    state = (
        "SELECT nspowner::regrole, has_schema_privilege('public', oid, 'CREATE'),"
        " has_schema_privilege('public', oid, 'USAGE'), obj_description(oid, 'pg_namespace')"
        " FROM pg_namespace WHERE nspname = 'public'"
    )
    name, again = postgresql.new_database(), postgresql.new_database()
    postgresql.psql(name, f"{change}; CREATE TABLE public.t (a int)")
    archive(postgresql.url(name), tmp_path / "a.siard")
    assert restore(tmp_path / "a.siard", postgresql.url(again)).left_out == ()
    assert postgresql.psql(again, state) == postgresql.psql(name, state)


@pytest.mark.parametrize(("product", "since"), [("PostgreSQL 14.2", 15), ("PostgreSQL 15.1", 99)])
def test_what_everybody_could_create_before_version_15_is_asked_for_anew(
    postgresql: Cluster, product: str, since: int
) -> None:
    right = Privilege("CREATE", "postgres", "PUBLIC", "SCHEMA public")
    database = Database("d", database_product=product, privileges=(right,))
    connection = connect(connection_options(postgresql.url("postgres")))
    try:
        execute(connection, "BEGIN")
        builder = Builder(connection)
        Rights(builder, database, ()).run()
        asked = "SELECT has_schema_privilege('public', 'public', 'CREATE') AS may"
        closed = postgresql.version() >= since
        assert rows(connection, asked) == [{"may": not closed}]
        assert [str(item) for item in builder.left_out] == [
            "privilege of PUBLIC: who runs the new database decides on it"
        ] * closed
    finally:
        connection.close()


def test_users_of_mariadb_come_back_on_request(mariadb: MariadbServer, tmp_path: Path) -> None:
    with private_mariadb() as other:
        other.run(
            "CREATE DATABASE a_b", "CREATE TABLE a_b.t (x INT, `y.z` INT)", "CREATE TABLE a_b.u (x INT)",
            "CREATE ROLE readers", "CREATE USER anna@'%' IDENTIFIED BY 'hush-hush'",
            "CREATE USER boss@localhost", "GRANT readers TO anna@'%'",
            "GRANT readers TO boss@localhost WITH ADMIN OPTION",
            "GRANT SELECT, INSERT ON a_b.* TO readers", "GRANT UPDATE (`y.z`) ON a_b.t TO anna@'%'",
            "GRANT DELETE ON a_b.u TO boss@localhost WITH GRANT OPTION",
            "GRANT RELOAD ON *.* TO boss@localhost",
        )  # fmt: skip
        archive(other.url("a_b"), tmp_path / "a.siard")
    assert b"hush-hush" not in (tmp_path / "a.siard").read_bytes()
    plain, again = mariadb.new_name(), "mine_too"
    report = restore(tmp_path / "a.siard", mariadb.url(plain))
    assert ("user", "anna@%") in {(item.kind, item.name) for item in report.left_out}
    users = "SELECT COUNT(*) FROM mysql.user WHERE User IN ('anna', 'boss', 'readers')"
    assert mariadb.run(users) == [(0,)]
    try:
        report = restore(tmp_path / "a.siard", mariadb.url(again), roles=True)
        assert {item.kind for item in report.left_out} == {"privilege"}
        assert all("GLOBAL" in item.name for item in report.left_out)
        assert any(item.name == "RELOAD ON GLOBAL TO boss@localhost" for item in report.left_out)
        grants = {
            who: " ".join(row[0] for row in mariadb.run(f"SHOW GRANTS FOR {who}"))
            for who in ("readers", "anna@'%'", "boss@localhost")
        }
        assert "GRANT SELECT, INSERT ON `mine\\_too`.*" in grants["readers"]
        assert "UPDATE (`y.z`)" in grants["anna@'%'"] and "`mine_too`.`t`" in grants["anna@'%'"]
        assert "GRANT DELETE ON `mine_too`.`u`" in grants["boss@localhost"]
        assert "WITH GRANT OPTION" in grants["boss@localhost"]
        assert "WITH ADMIN OPTION" in grants["boss@localhost"]
        assert "RELOAD" not in grants["boss@localhost"]
        assert "ACCOUNT LOCK" in mariadb.run("SHOW CREATE USER anna@'%'")[0][0]
    finally:
        mariadb.run("DROP USER IF EXISTS anna@'%', boss@localhost", "DROP ROLE IF EXISTS readers")
        mariadb.run(f"DROP DATABASE IF EXISTS {again}")


def test_files_have_no_users(shop: Path, tmp_path: Path) -> None:
    archive(f"sqlite:///{shop}", tmp_path / "a.siard")
    with pytest.raises(UsageError, match="has no users and roles"):
        restore(tmp_path / "a.siard", f"sqlite:///{tmp_path / 'again.db'}", roles=True)
    assert not (tmp_path / "again.db").exists()
