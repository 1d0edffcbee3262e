"""PostgreSQL: values that have no place in SIARD, snapshots, rights, refusals, other products."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from muniment import databases, transfer
from muniment.compare import compare
from muniment.compare.sides import RemoteSide
from muniment.databases.postgresql import create_target, open_source
from muniment.databases.postgresql.statements import is_definition, moved
from muniment.errors import DatabaseError, MunimentError, Unfit, UsageError
from muniment.siard import open_siard
from muniment.sql.batch import cells_of
from muniment.sql.selection import Selection
from servers.postgresql import PASSWORD, Cluster, private_postgresql

Make = Callable[..., str]


@pytest.fixture
def make(postgresql: Cluster) -> Make:
    """Make a database from SQL and return its name."""

    def made(sql: str = "", *options: str) -> str:
        name = postgresql.new_database(*options)
        postgresql.psql(name, postgresql.known(sql) if "/*-*/" in sql else sql)
        return name

    return made


def archived(cluster: Cluster, name: str, folder: Path, **chosen: object) -> Path:
    path = folder / f"{name}.siard"
    transfer.archive(cluster.url(name), path, Selection(**chosen))  # type: ignore[arg-type]
    return path


# Values

MISFITS = """
CREATE TABLE odd (
    id int PRIMARY KEY, n numeric, d date, ts timestamp, tz timestamptz, t time, fine numeric);
INSERT INTO odd VALUES (1, 1, '2000-01-01', '2000-01-01', '2000-01-01', '12:00', 1);
INSERT INTO odd VALUES (2, 'NaN', '0044-03-15 BC', 'infinity', '10000-01-01', '24:00', 2.50);
INSERT INTO odd VALUES (3, /*14*/'-Infinity', --/*-*/ 'NaN',
    '-infinity', '294276-12-31', '4713-01-01 BC', '00:00', 3);
"""


def test_values_outside_of_sql_2008_stop_the_work_and_name_every_column(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    name = make(MISFITS)
    with pytest.raises(Unfit) as caught:
        archived(postgresql, name, tmp_path)
    assert caught.value.row == 2
    assert set(caught.value.others) == {f"public.odd.{c}" for c in ("n", "d", "ts", "tz", "t")}
    assert list(tmp_path.iterdir()) == []


def test_they_come_back_if_they_are_archived_as_text(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    name, again = make(MISFITS), make()
    path = archived(postgresql, name, tmp_path, as_text=("public.odd.[ndt]*",))
    report = transfer.restore(path, postgresql.url(again))
    assert (report.left_out, report.notes) == ((), ())
    sql = "SELECT * FROM odd ORDER BY id"
    assert postgresql.psql(again, sql) == postgresql.psql(name, sql)
    for database in (name, again):
        found = compare(postgresql.url(database), str(path))
        assert found.equal, found.differences
        assert len(found.notes) == 5


def test_nested_misfits_stop_the_work(postgresql: Cluster, make: Make, tmp_path: Path) -> None:
    name = make("CREATE TABLE t AS SELECT 1 AS i UNION SELECT 2; ALTER TABLE t ADD a numeric[];"
                " UPDATE t SET a = '{1.5,NaN}' WHERE i = 2")  # fmt: skip
    with pytest.raises(Unfit, match=r"public\.t\.a, row"):
        archived(postgresql, name, tmp_path)


def test_bytes_that_are_no_text_stop_the_work_or_are_escaped(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    options = ("-E", "SQL_ASCII", "--locale=C", "-T", "template0")
    name = make("CREATE TABLE t (i int, s text)", *options)
    with psycopg.connect(postgresql.url(name), client_encoding="SQL_ASCII") as connection:
        connection.execute(b"INSERT INTO t VALUES (1, 'plain'), (2, E'caf\\xe9 \\\\')")
    with pytest.raises(Unfit, match=r"public\.t\.s, row 2: .* is not text in Unicode"):
        archived(postgresql, name, tmp_path)
    path = archived(postgresql, name, tmp_path, as_text=("public.t.s",))
    with open_siard(path) as source:
        schema, table = next(iter(source.describe().tables()))
        (part,) = source.parts(schema, table)
        (batch,) = source.batches(schema, table, part)
    assert cells_of(batch)[3] == rb"caf\351 \\"
    assert compare(postgresql.url(name), str(path)).equal


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "WIN1251"])
def test_other_encodings_become_unicode(
    postgresql: Cluster, make: Make, tmp_path: Path, encoding: str
) -> None:
    text = {"LATIN1": "Zürich ÿ", "EUC_JP": "日本語", "WIN1251": "Москва"}[encoding]
    options = ("-E", encoding, "--locale=C", "-T", "template0")
    name = make(f"CREATE TABLE t (s text); INSERT INTO t VALUES ('{text}')", *options)
    again = make()
    transfer.restore(archived(postgresql, name, tmp_path), postgresql.url(again))
    assert postgresql.psql(again, "SELECT s FROM t").strip() == text


# The snapshot


def test_all_tables_are_of_one_moment_while_others_write(
    postgresql: Cluster, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables always hold the same sum; writers move money between them all the time."""
    name = make("""
        CREATE TABLE one AS SELECT i, 100 AS v, repeat('x', 200) AS pad FROM generate_series(1, 40000) i;
        CREATE TABLE two AS SELECT i, 100 AS v FROM generate_series(1, 40000) i;
        CREATE INDEX ON one (i); CREATE INDEX ON two (i);""")
    monkeypatch.setattr(transfer, "_WORTH_WORKERS", 0)
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(postgresql.url(name), autocommit=True) as connection:
            number = 1
            while not stop.is_set():
                with connection.transaction():
                    connection.execute("UPDATE one SET v = v - 1 WHERE i = %s", [number])
                    connection.execute("INSERT INTO two VALUES (%s, 1)", [-number])
                number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        path = tmp_path / "moving.siard"
        transfer.archive(postgresql.url(name), path, options=transfer.ArchiveOptions(jobs=2))
    finally:
        stop.set()
        writer.join()
    sums = []
    with open_siard(path) as source:
        for schema, table in source.describe().tables():
            width = len(table.columns)
            total = 0
            for part in source.parts(schema, table):
                for batch in source.batches(schema, table, part):
                    total += sum(map(int, cells_of(batch)[1::width]))
            sums.append(total)
    assert sum(sums) == 2 * 40000 * 100
    assert int(postgresql.psql(name, "SELECT count(*) FROM two")) > 40000


def test_workers_read_the_same_bytes(
    postgresql: Cluster, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = make(
        "CREATE TABLE t AS SELECT i, repeat(md5(i::text), 10) AS s FROM generate_series(1, 40000) i"
    )
    monkeypatch.setattr(transfer, "_WORTH_WORKERS", 0)
    files = [tmp_path / "one.siard", tmp_path / "two.siard"]
    words = transfer.Description(archival_date="2026-01-01")
    for jobs, path in enumerate(files, 1):
        options = transfer.ArchiveOptions(jobs=jobs, description=words)
        transfer.archive(postgresql.url(name), path, options=options)
    assert files[0].read_bytes() == files[1].read_bytes()
    again = make()
    transfer.restore(files[1], postgresql.url(again), jobs=2)
    assert compare(postgresql.url(again), str(files[0])).equal


@pytest.mark.parametrize("since", [0, 1_000_000])  # with ranges of rows, and as before them
def test_comparisons_take_the_quick_road_only_where_rows_come_in_ranges(
    postgresql: Cluster, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, since: int
) -> None:
    name = make("""
        CREATE TABLE t AS SELECT i, md5(i::text)::varchar(40) AS s FROM generate_series(1, 40000) i
    """)
    monkeypatch.setattr("muniment.databases.postgresql.source._RANGES_SINCE", since)
    monkeypatch.setattr("muniment.compare._SMALL", 0)
    transfer.archive(postgresql.url(name), tmp_path / "t.siard")
    roads = []
    quick = RemoteSide.written
    monkeypatch.setattr(
        RemoteSide, "written", lambda *given: roads.append(quick(*given)) or roads[-1]
    )
    assert compare(postgresql.url(name), str(tmp_path / "t.siard"), jobs=2, ordered=False).equal
    assert [road is not None for road in roads] == [since == 0]
    postgresql.psql(name, "UPDATE t SET s = 'other' WHERE i = 39999")
    assert not compare(postgresql.url(name), str(tmp_path / "t.siard"), jobs=2, ordered=False).equal


# Rights


def test_what_a_user_may_not_see_is_named(postgresql: Cluster, make: Make, tmp_path: Path) -> None:
    name = make("""
        CREATE ROLE reader LOGIN; CREATE SCHEMA hidden; CREATE TABLE hidden.h (i int);
        CREATE TABLE open (i int); CREATE TABLE closed (i int); CREATE TABLE partly (i int, secret text);
        INSERT INTO partly VALUES (1, 'x');
        CREATE SEQUENCE s; GRANT SELECT ON open TO reader; GRANT SELECT (i) ON partly TO reader;""")
    report = transfer.archive(postgresql.url(name, "reader"), tmp_path / "a.siard")
    assert [t.table for t in report.tables] == ["open", "partly"]
    said = "\n".join(report.notes)
    for words in (
        "schema hidden",
        "table public.closed",
        "public.partly has no secret",
        "sequence",
    ):
        assert words in said
    without = Selection(exclude=("closed",))
    report = transfer.archive(postgresql.url(name, "reader"), tmp_path / "b.siard", without)
    assert "public.closed" not in "\n".join(report.notes)


def test_hidden_rows_are_an_error_and_no_silent_loss(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    name = make("""
        CREATE ROLE limited LOGIN; CREATE TABLE t (i int); INSERT INTO t VALUES (1), (2);
        GRANT SELECT ON t TO limited; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
        CREATE POLICY p ON t USING (i = 1);""")
    with pytest.raises(DatabaseError, match="row-level security"):
        transfer.archive(postgresql.url(name, "limited"), tmp_path / "a.siard")


# Refusals


def test_locks_and_long_statements_end_with_a_sentence(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    name = make("CREATE TABLE t AS SELECT generate_series(1, 10) AS i")
    url = postgresql.url(name)
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DatabaseError, match=r"a lock on public\.t: .*another session"):
            transfer.archive(f"{url}&options=-c%20lock_timeout%3D100", tmp_path / "a.siard")
    slow = Selection(queries={"q": "SELECT 1 AS x FROM pg_sleep(5)"})
    with (
        pytest.raises(DatabaseError, match="longer than the timeout"),
        open_source(url, slow, statement_timeout=0.2) as source,
    ):
        schema, table = next((s, t) for s, t in source.describe().tables() if t.name == "q")
        list(source.batches(schema, table, None))


def test_a_server_that_goes_away_ends_the_work_with_a_sentence(make: Make, tmp_path: Path) -> None:
    with private_postgresql() as cluster:
        name = cluster.new_database()
        cluster.psql(
            name, "CREATE TABLE t AS SELECT i, repeat('x', 500) FROM generate_series(1, 60000) i"
        )
        killed = []

        def watch(progress: object) -> None:
            if not killed and cluster.process:
                killed.append(True)
                cluster.process.kill()
                cluster.process.wait()

        with pytest.raises(
            MunimentError, match=r"connection to PostgreSQL was lost|nobody answers|no server"
        ):
            transfer.archive(cluster.url(name), tmp_path / "a.siard", progress=watch,
                             options=transfer.ArchiveOptions(jobs=1))  # fmt: skip
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://nobody:wrong@127.0.0.1:{port}/postgres", "password"),
        ("postgresql://127.0.0.1:1/x", "nobody answers"),
        ("postgresql://postgres@/x?host=/nowhere", "no server socket"),
        ("postgresql://u@h.invalid/x", "host"),
        ("postgresql://u@/x?nonsense=1", "cannot be read"),
        ("postgresql://postgres:{password}@127.0.0.1:{port}/postgres?sslmode=require", "encrypt"),
    ],
)
def test_a_refused_connection_is_a_sentence_without_the_password(
    postgresql: Cluster, url: str, said: str
) -> None:
    url = url.format(port=postgresql.port, password=PASSWORD)
    with pytest.raises(MunimentError, match=said) as caught, databases.open_source(url):
        pass
    assert "wrong@" not in str(caught.value) and PASSWORD not in str(caught.value)


def test_passwords_come_from_the_environment_and_are_not_archived(
    postgresql: Cluster, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = make("CREATE TABLE t (i int)")
    monkeypatch.setenv("MUNIMENT_PASSWORD", PASSWORD)
    path = tmp_path / "a.siard"
    transfer.archive(f"postgresql://postgres@127.0.0.1:{postgresql.port}/{name}", path)
    monkeypatch.delenv("MUNIMENT_PASSWORD")
    passfile = tmp_path / "pgpass"
    passfile.write_text(f"127.0.0.1:*:*:postgres:{PASSWORD}\n")
    passfile.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    url = f"postgresql://postgres@127.0.0.1:{postgresql.port}/{name}"
    assert compare(url, str(path)).equal
    with open_siard(path) as source:
        assert PASSWORD not in repr(source.describe())


# Restoring


def test_a_database_that_does_not_exist_is_created_or_nothing_is(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    path = archived(postgresql, make("CREATE TABLE t AS SELECT 1 AS i"), tmp_path)
    fresh = f"fresh{postgresql.port}"
    report = transfer.restore(path, postgresql.url(fresh))
    assert any("was created" in note for note in report.notes)
    assert postgresql.psql(fresh, "SELECT i FROM t").strip() == "1"
    with pytest.raises(ZeroDivisionError), create_target(postgresql.url(f"{fresh}b")):
        raise ZeroDivisionError
    names = postgresql.psql("postgres", "SELECT datname FROM pg_database").split()
    assert f"{fresh}b" not in names


def test_tables_that_are_there_stay_unless_they_are_replaced(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    sql = "CREATE TYPE m AS ENUM ('a'); CREATE TABLE t AS SELECT 'a'::m AS i; CREATE VIEW v AS TABLE t"
    name = make(sql)
    path, url = archived(postgresql, name, tmp_path), postgresql.url(name)
    with pytest.raises(UsageError, match=r"has public\.m, public\.t, public\.v already"):
        transfer.restore(path, url)
    transfer.restore(path, url, replace=True)
    assert compare(url, str(path)).equal
    postgresql.psql(name, "CREATE TABLE precious (i int)")
    with pytest.raises(UsageError, match=r"public\.precious, which would be lost"):
        transfer.restore(path, url, replace=True)
    assert postgresql.psql(name, "SELECT count(*) FROM precious, t").strip() == "0"


def test_schemas_take_their_definitions_along_when_they_are_renamed(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    name = make("""
        CREATE SCHEMA s; CREATE TYPE s.mood AS ENUM ('ok'); CREATE FUNCTION s.f(i int) RETURNS int
        LANGUAGE sql IMMUTABLE AS 'SELECT i'; CREATE TABLE s.t (id serial, m s.mood DEFAULT 'ok'::s.mood,
        g int GENERATED ALWAYS AS (s.f(1)) STORED); INSERT INTO s.t (id) VALUES (1);
        CREATE VIEW s.v AS SELECT id, m FROM s.t; CREATE INDEX i ON s.t (s.f(id)); DROP SCHEMA public;""")
    path, again = archived(postgresql, name, tmp_path), make("DROP SCHEMA public")
    report = transfer.restore(path, postgresql.url(again), schema_map={"s": "New One"})
    assert report.left_out == ()
    dump = postgresql.dump(again, "--schema-only")
    assert " s." not in dump and '"New One".v' in dump
    assert postgresql.psql(again, 'SELECT id, m FROM "New One".v') == "1|ok\n"


def test_rows_that_break_a_key_keep_it_for_the_rows_to_come(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    name = make("""
        CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (a int REFERENCES a, n int CHECK (n > 0));
        ALTER TABLE b DISABLE TRIGGER ALL; INSERT INTO b VALUES (7, 1);""")
    path, again = archived(postgresql, name, tmp_path), make()
    report = transfer.restore(path, postgresql.url(again))
    assert any("b_a_fkey of public.b does not hold" in note for note in report.notes)
    valid = "SELECT convalidated FROM pg_constraint WHERE conname = 'b_a_fkey'"
    assert postgresql.psql(again, valid).strip() == "f"


def test_statements_that_are_no_definitions_do_not_run(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    name = make(
        "CREATE TABLE t (i int); CREATE INDEX x ON t (i); CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"
    )
    path, victim = archived(postgresql, name, tmp_path), make("CREATE TABLE victim (i int)")
    with open_siard(path) as source:
        database = source.describe()
    (schema,) = database.schemas
    evil = "DROP TABLE public.victim"
    described = (schema.tables[0].description or "").replace(
        "CREATE INDEX x", f"{evil}; CREATE INDEX x"
    )
    table = replace(schema.tables[0], description=described)
    routine = replace(schema.routines[0], source=f"{evil}; {schema.routines[0].source}")
    hostile = replace(database, schemas=(replace(schema, tables=(table,), routines=(routine,)),))
    with create_target(postgresql.url(victim)) as target:
        target.define(hostile)
        target.write(*next(hostile.tables()), [], lambda *_: None)
        target.finish(hostile)
    assert {item.kind for item in target.left_out} == {"routine", "definition"}
    assert postgresql.psql(victim, "SELECT count(*) FROM victim").strip() == "0"


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE t", "SELECT 1", "CREATE TABLE t AS SELECT 1", "COPY t TO PROGRAM 'x'", "DO $$ $$",
        "CREATE INDEX i ON t (a); SELECT 1", "ALTER SYSTEM SET x = 1", "ALTER ROLE x SUPERUSER",
        "SELECT pg_catalog.setval('\"a\".\"b\"', 1, true), pg_sleep(9)",
        r"SELECT pg_catalog.setval(E'a\', 1, true), pg_sleep(9), E', 1, true)", "CREATE ROLE x", "",
    ],
)  # fmt: skip
def test_only_definitions_are_definitions(sql: str) -> None:
    assert not is_definition(sql)


def test_renaming_leaves_text_and_other_names_alone() -> None:
    sql = "SELECT 'a.b', a.b, x.a.c, $$a.b$$, \"a\".d /* a.b */ FROM a"
    assert moved(sql, {"a": "z"}) == 'SELECT \'a.b\', "z".b, x.a.c, $$a.b$$, "z".d /* a.b */ FROM a'


@pytest.mark.parametrize(
    "sql",
    [
        "GRANT USAGE ON SCHEMA {} TO PUBLIC",
        "REVOKE CREATE ON SCHEMA {} FROM PUBLIC",
        "COMMENT ON SCHEMA {} IS NULL",
        "CREATE EXTENSION IF NOT EXISTS e WITH SCHEMA {}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA {} GRANT SELECT ON TABLES TO PUBLIC",
    ],
)
def test_what_is_said_of_a_schema_moves_with_it(sql: str) -> None:
    assert moved(sql.format("a"), {"a": "z"}) == sql.format('"z"')


# Other products


def test_other_products_take_what_they_can(postgresql: Cluster, make: Make, tmp_path: Path) -> None:
    name = make("""
        CREATE TABLE t (id int PRIMARY KEY, n numeric(10,2), s varchar(20), d date, ts timestamp, b boolean,
            u uuid, j jsonb, a int[], by bytea, big text);
        INSERT INTO t VALUES (1, 1.50, 'x', '2024-02-29', '2024-02-29 12:00:00.5', true,
            'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1}', '{1,2}', '\\x00ff', repeat('long ', 5000));
        INSERT INTO t (id) VALUES (2);
        CREATE VIEW v AS SELECT id, upper(s) AS s FROM t;""")
    path = archived(postgresql, name, tmp_path)
    transfer.restore(path, f"duckdb:///{tmp_path}/t.duckdb")
    comparison = compare(f"duckdb:///{tmp_path}/t.duckdb", str(path))
    assert comparison.differences == ()
    assert comparison.equal
    transfer.restore(path, f"sqlite:///{tmp_path}/t.db")


def test_archives_of_other_products_become_tables_of_postgresql(
    postgresql: Cluster, make: Make, shop: Path, tmp_path: Path
) -> None:
    path, again = tmp_path / "shop.siard", make()
    transfer.archive(f"sqlite:///{shop}", path)
    report = transfer.restore(path, postgresql.url(again), left_out=tmp_path / "left-out.sql")
    assert {item.kind for item in report.left_out} == {"trigger", "index", "setting"}
    comparison = compare(postgresql.url(again), str(path))
    assert all(table.equal for table in comparison.tables)
    assert postgresql.psql(again, "SELECT count(*) FROM main.dear").strip() == "30"
    constraints = postgresql.psql(
        again,
        "SELECT contype FROM pg_constraint WHERE connamespace = 'main'::regnamespace"
        " AND contype <> 'n' ORDER BY 1",
    ).split()
    assert constraints == ["c", "f", "p", "p", "u"]


def test_what_postgresql_cannot_store_is_refused_with_its_place(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    import apsw

    db = apsw.Connection(str(tmp_path / "nul.db"))
    db.execute("CREATE TABLE t (i INTEGER, s TEXT)")
    db.execute("INSERT INTO t VALUES (1, 'fine'), (2, ?)", ["a\0b"])
    db.close()
    path = tmp_path / "nul.siard"
    transfer.archive(f"sqlite:///{tmp_path}/nul.db", path)
    with pytest.raises(DatabaseError, match=r"main\.t\.s, row 2 holds the character U\+0000"):
        transfer.restore(path, postgresql.url(make()))


# The selection


def test_sql_that_postgresql_does_not_understand_is_a_sentence(
    postgresql: Cluster, make: Make
) -> None:
    url = postgresql.url(make("CREATE TABLE t AS SELECT 1 AS i"))
    for chosen in (Selection(queries={"q": "SELEC 1"}), Selection(where={"t": "nonsense ="})):
        with pytest.raises(DatabaseError, match="syntax error"), open_source(url, chosen) as source:
            for schema, table in source.describe().tables():
                for part in source.parts(schema, table):
                    list(source.batches(schema, table, part))


def test_parts_of_a_database_can_be_chosen(postgresql: Cluster, make: Make, tmp_path: Path) -> None:
    name = make("""
        CREATE TABLE t AS SELECT i, i * 2 AS j, 'x' AS k FROM generate_series(1, 10) i;
        CREATE TABLE other (i int); CREATE VIEW v AS SELECT i FROM t WHERE i > 8;""")
    path = archived(
        postgresql, name, tmp_path, tables=("t",), columns={"t": ("j", "i")}, where={"t": "i <= 3"},
        order={"t": "i DESC"}, views=("v",), queries={"q": "SELECT count(*) AS n, ARRAY[1,2] AS a FROM t"},
    )  # fmt: skip
    found = {}
    with open_siard(path) as source:
        for schema, table in source.describe().tables():
            found[table.name] = [
                cells_of(batch)
                for part in source.parts(schema, table)
                for batch in source.batches(schema, table, part)
            ]
    assert found["t"] == [[b"6", b"3", b"4", b"2", b"2", b"1"]]
    assert found["v"] == [[b"9", b"10"]]
    assert found["q"] == [[b"10", b"\xfa1\xfb2\xfb\xfc"]]
    assert set(found) == {"t", "v", "q"}
    again = make()
    assert transfer.restore(path, postgresql.url(again)).left_out == ()


def test_a_table_whose_definition_needs_what_is_missing_is_made_from_its_columns(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    name, again = make("""
        CREATE SCHEMA far; CREATE FUNCTION far.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
        CREATE TABLE t (a int DEFAULT far.f(), b text); INSERT INTO t VALUES (1, 'x')
    """), make()  # fmt: skip
    path = archived(postgresql, name, tmp_path, schemas=("public",))
    report = transfer.restore(path, postgresql.url(again))
    (note,) = report.notes
    assert note.startswith("public.t was made from its columns alone: schema")
    assert [(item.kind, item.name) for item in report.left_out] == [("default", "of public.t.a")]
    assert postgresql.psql(again, "SELECT * FROM t").strip() == "1|x"


def test_a_type_whose_definition_needs_what_is_missing_is_made_by_its_sql_type(
    postgresql: Cluster, make: Make, tmp_path: Path
) -> None:
    name, again = make("""
        CREATE SCHEMA far;
        CREATE FUNCTION far.gap(int, int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 1.0::float8';
        CREATE TYPE span AS RANGE (subtype = int, subtype_diff = far.gap);
        CREATE DOMAIN short_span AS span CHECK (upper(VALUE) < 10);
        CREATE TABLE t (a span, b int DEFAULT 7, c short_span);
        INSERT INTO t VALUES ('[1,5)', 3, NULL), ('empty', 4, '[1,2)')
    """), make()  # fmt: skip
    path = archived(postgresql, name, tmp_path, schemas=("public",))
    report = transfer.restore(path, postgresql.url(again))
    assert {note.partition(": ")[0] for note in report.notes} == {
        "type public.span was made by SQL:2008 types",
        "type public.short_span was made by SQL:2008 types",
    }
    assert report.left_out == ()
    assert postgresql.psql(again, "SELECT * FROM t") == postgresql.psql(name, "SELECT * FROM t")
    assert "DEFAULT 7" in postgresql.dump(again, "-s", "-t", "t")
