"""MariaDB: every type and feature there and back, in one snapshot, with few rights."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts import sample
from muniment import transfer
from muniment.compare import compare
from muniment.databases.mariadb import open_source
from muniment.databases.mariadb.address import parse_address
from muniment.databases.mariadb.statement import is_definition, parse_create
from muniment.errors import DatabaseError, Unfit, UsageError
from muniment.siard import open_siard
from muniment.sql.original import split_original
from muniment.sql.selection import Selection
from muniment.workers import start_workers
from servers.mariadb import MariadbServer, is_mysql, numbers

SCHEMA = Path(__file__).parent / "schemas" / ("mysql.sql" if is_mysql() else "mariadb.sql")
THINGS = (
    "VIEW plain", "VIEW careful", "VIEW a_view_on_a_view", "FUNCTION twice", "PROCEDURE fill",
    *(() if is_mysql() else ("SEQUENCE numbers",)),
)  # fmt: skip
MYSQLS_OWN = {
    "uu": "123E4567E89B12D3A456426655440000", "i6": "20010DB8000000000000FF0000428329",
    "ge": "SRID=4326;POINT(0.1 120.5)", "js": '{"a": [1, 2], "b": [2.5, null, "ü"]}',
}  # fmt: skip
_YOUNG = {"uu UUID": "uu CHAR(36)", "i4 INET4": "i4 VARCHAR(15)"}  # not in MariaDB 10.6


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restoring writes what it left out to the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def rich(mariadb: MariadbServer) -> str:
    name, sql = mariadb.new_database(), SCHEMA.read_text()
    for young, old in _YOUNG.items():
        sql = sql if mariadb.has_type(young.split()[1]) else sql.replace(young, old)
    mariadb.script(sql, name)
    return name


@pytest.fixture(scope="module")
def rich_archive(mariadb: MariadbServer, rich: str, tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("rich") / "rich.siard"
    transfer.archive(mariadb.url(rich), path)
    return path


def restored(mariadb: MariadbServer, archive: Path, **options: Any) -> tuple[str, Any]:
    name = mariadb.new_name()
    return name, transfer.restore(archive, mariadb.url(name), **options)


def archived(mariadb: MariadbServer, tmp_path: Path, *statements: str, **options: Any) -> Path:
    """Make a database of statements, and archive it."""
    name = mariadb.new_database()
    if statements:
        mariadb.run(*statements, database=name)
    path = tmp_path / f"{name}.siard"
    transfer.archive(mariadb.url(name), path, Selection(**options))
    return path


def definitions(mariadb: MariadbServer, database: str) -> dict[str, str]:
    """What the server says about everything in a database, without names of the database."""
    tables = mariadb.run(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE NOT IN"
        f" ('VIEW','SEQUENCE') AND TABLE_SCHEMA='{database}'"
    )
    things = [f"TABLE `{name.replace('`', '``')}`" for (name,) in tables]
    found = {}
    for thing in (*things, *(THINGS if len(things) > 5 else ())):
        row = mariadb.run(f"SHOW CREATE {thing}", database=database)[0]
        text = row[2] if thing.startswith(("FUNCTION", "PROCEDURE")) else row[1]
        # MySQL names the character set of a collation once somebody has named the collation.
        text = text.replace("CHARACTER SET utf8mb4 COLLATE", "COLLATE") if is_mysql() else text
        found[thing] = text.replace(f"`{database}`.", "")
    return found


class TestEverything:
    def test_contents_come_back_equal(
        self, mariadb: MariadbServer, rich: str, rich_archive: Path
    ) -> None:
        name, _ = restored(mariadb, rich_archive)
        for a, b in (
            (mariadb.url(rich), str(rich_archive)),
            (str(rich_archive), mariadb.url(name)),
        ):
            result = compare(a, b)
            assert result.equal, result.differences

    def test_definitions_come_back_in_the_servers_own_words(
        self, mariadb: MariadbServer, rich: str, rich_archive: Path
    ) -> None:
        name, report = restored(mariadb, rich_archive)
        assert definitions(mariadb, name) == definitions(mariadb, rich)
        assert {item.kind for item in report.left_out} <= {"user", "role", "privilege"}
        if not is_mysql():
            following = "SELECT next_not_cached_value FROM `{}`.numbers"
            assert mariadb.run(following.format(name)) == mariadb.run(following.format(rich))
        triggers = "SELECT TRIGGER_NAME, ACTION_STATEMENT, SQL_MODE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA='{}' ORDER BY 1"
        assert mariadb.run(triggers.format(name)) == mariadb.run(triggers.format(rich))
        (event,) = mariadb.run(f"SHOW CREATE EVENT `{name}`.tidy")
        assert " DISABLE " in event[3]
        assert any("tidy" in note for note in report.notes)

    def test_values_are_the_servers_own_text(self, rich_archive: Path) -> None:
        with open_siard(rich_archive) as source:
            schema, table = next(
                (s, t) for s, t in source.describe().tables() if t.name == "every type"
            )
            rows = sample.read(source, schema, table)
        names = [column.name for column in table.columns]
        one, two, three, four = (dict(zip(names, row, strict=True)) for row in rows[1:])
        assert rows[0][0] == "0"
        assert all(
            value is None
            for name, value in zip(names, rows[0], strict=True)
            if name in ("ti", "lb", "po")
        )
        expected = {
            "bu": "18446744073709551615", "zi": "42", "zd": "1.50", "flag": "true", "loose": "-7",
            "de": "12345678901234567890123456789012345.123456789012345678901234567890",
            "fl": "3.4028235e+38", "fu": "16777216", "do": "1.7976931348623157e308", "fd": "1234.567",
            "b1": "true", "b9": "101010101", "b64": "1" * 64, "da": "0001-01-01", "t6": "23:59:59.999999",
            "d6": "9999-12-31T23:59:59.999999", "ts6": "2038-01-19T03:14:07.999999", "vl": "Köln",
            "vj": "日本", "vg": "中文", "vu": "𝄞é", "lt": "Ж", "tx": "te\0xt", "mt": "me\\dium",
            "en": "gr'een", "se": "a,ü", "bn": "61620000", "vb": "", "tb": "", "bl": "00FF",
            "mb": "FDFEFF5C", "i4": "192.168.0.1", "i6": "2001:db8::ff00:42:8329",
            "uu": "123e4567-e89b-12d3-a456-426655440000", "ge": "SRID=4326;POINT(0.1 1e300)",
            "po": "SRID=0;POINT(1.1 -2)", "gv": "-32767", "gs": "<ascii>", "hidden": "7",
        } | (MYSQLS_OWN if is_mysql() else {})  # fmt: skip
        assert {name: one[name] for name in expected} == expected
        assert (two["fl"], two["ye"], two["en"]) == ("0.1", "0", "")
        assert two["do"] in ("0", "-0")  # as the server reads -0e0; later ones keep the sign
        assert (two["tx"], two["lb"]) == ("ö" * 5000, "FFFDFE5C00" * 30000)
        assert (three["fl"], three["do"], three["lb"]) == ("3.1415927", "5e-324", "")
        assert (four["fl"], four["do"], four["ch"]) == ("-1.1754944e-38", "0.1", "\\N")

    def test_metadata_of_chapter_5(self, rich_archive: Path) -> None:
        with open_siard(rich_archive) as source:
            database = source.describe()
        (schema,) = database.schemas
        child = schema.table("child")
        assert {k.name: (k.delete_action, len(k.references)) for k in child.foreign_keys} == {
            "child_parent": ("CASCADE", 2), "child_up": ("SET NULL", 1),
        }  # fmt: skip
        assert {c.name for c in child.check_constraints} == {
            "low", "child_chk_1" if is_mysql() else "n",
        }  # fmt: skip
        assert [t.name for t in child.triggers] == ["before_child", "after_child"]
        assert {v.name for v in schema.views} == {"plain", "careful", "a_view_on_a_view"}
        routines = {r.name: r for r in schema.routines}
        assert [(p.name, p.mode) for p in routines["fill"].parameters] == [
            ("n", "IN"), ("done", "OUT"), ("sofar", "INOUT"),
        ]  # fmt: skip
        assert routines["twice"].return_type == "BIGINT"
        every = schema.table("every type")
        assert split_original(every.description)[0] == "All of them"
        assert [k.columns for k in every.candidate_keys] == [("bi",)]
        types = {c.name: (str(c.type), c.type_original) for c in every.columns}
        assert types["bu"] == (
            "DECIMAL(20,0)", "bigint unsigned" if is_mysql() else "bigint(20) unsigned",
        )  # fmt: skip
        assert types["ts6"] == ("TIMESTAMP WITH TIME ZONE(6)", "timestamp(6)")
        assert any(user.name == "root@localhost" for user in database.users)
        assert database.connection is not None and "root@" in database.connection

    def test_it_goes_to_sqlite_and_back(
        self, mariadb: MariadbServer, tmp_path: Path, rich_archive: Path
    ) -> None:
        there = f"sqlite:///{tmp_path / 'there.db'}"
        tables = ("parent", "child", "parted", "named", "counted")
        transfer.restore(rich_archive, there, tables=tables)
        again = tmp_path / "again.siard"
        transfer.archive(there, again)
        name = mariadb.new_name()
        transfer.restore(again, mariadb.url(name), schema_map={"main": name})
        digests = [
            {
                t.table: t.digest
                for t in compare(str(rich_archive), side).tables
                if t.table in tables
            }
            for side in (there, str(again), mariadb.url(name))
        ]
        for side in digests:
            assert all(a == b for a, b in side.values()), side
        assert mariadb.run(f"SELECT COUNT(*) FROM `{name}`.child") == [(3,)]


class TestExactness:
    @pytest.mark.parametrize(
        ("type_", "value", "text"),
        [
            ("DATE", "0000-00-00", "0000-00-00"),
            ("DATE", "2020-00-00", "2020-00-00"),
            ("DATETIME(3)", "0000-00-00 00:00:00", "0000-00-00 00:00:00.000"),
            ("TIMESTAMP NULL", "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
            ("TIME", "-838:59:59", "-838:59:59"),
            ("TIME(6)", "838:59:59", "838:59:59.000000"),
        ],
    )
    def test_a_date_that_does_not_exist_stops_or_becomes_text(
        self, mariadb: MariadbServer, tmp_path: Path, type_: str, value: str, text: str
    ) -> None:
        name = mariadb.new_database()
        mariadb.run(
            "SET sql_mode=''", f"CREATE TABLE t (id INT PRIMARY KEY, v {type_})",
            f"INSERT INTO t VALUES (1, NULL), (2, '{value}')", database=name,
        )  # fmt: skip
        with pytest.raises(Unfit, match=rf"{name}\.t\.v, row 2: .*--as-text {name}\.t\.v"):
            transfer.archive(mariadb.url(name), tmp_path / "a.siard")
        assert not (tmp_path / "a.siard").exists()
        selection = Selection(as_text=("t.v",))
        transfer.archive(mariadb.url(name), tmp_path / "a.siard", selection)
        with open_siard(tmp_path / "a.siard") as source:
            schema, table = next(iter(source.describe().tables()))
            assert sample.read(source, schema, table) == [["1", None], ["2", text]]
        again, _ = restored(mariadb, tmp_path / "a.siard")
        assert definitions(mariadb, again) == definitions(mariadb, name)
        both = f"SELECT a.v <=> b.v FROM `{name}`.t a JOIN `{again}`.t b USING (id)"
        assert mariadb.run(both) == [(1,), (1,)]
        for database in (name, again):
            found = compare(mariadb.url(database), str(tmp_path / "a.siard"))
            assert found.equal, found.differences
            assert found.notes == (f"{database}.t.v was archived as text, and is compared as such",)

    def test_every_column_can_be_archived_as_text(
        self, mariadb: MariadbServer, rich: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.siard"
        transfer.archive(mariadb.url(rich), path, Selection(as_text=("*",)))
        found = compare(mariadb.url(rich), str(path))
        assert found.equal, found.differences
        again, _ = restored(mariadb, path)
        back = compare(str(path), mariadb.url(again))
        assert {table.digest[0] == table.digest[1] for table in back.tables} == {True}

    def test_all_columns_that_do_not_fit_are_named_at_once(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        with pytest.raises(Unfit, match=r"1 more column holds.*\.a\.d .*\.b\.t"):
            archived(
                mariadb, tmp_path, "SET sql_mode=''", "CREATE TABLE a (d DATE)",
                "CREATE TABLE b (t TIME)", "INSERT INTO a VALUES ('0000-00-00')",
                "INSERT INTO b VALUES ('-01:00:00')",
            )  # fmt: skip

    def test_bytes_that_do_not_decode_stop_or_become_hex(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        name = mariadb.new_database()
        mariadb.run(
            "CREATE TABLE t (v VARCHAR(10) CHARACTER SET cp1250)",
            "INSERT INTO t VALUES ('ok'), (x'81')", database=name,
        )  # fmt: skip
        with pytest.raises(Unfit, match=r"t\.v, row 2: the byte string X'81'"):
            transfer.archive(mariadb.url(name), tmp_path / "a.siard")
        transfer.archive(mariadb.url(name), tmp_path / "a.siard", Selection(as_text=("t.v",)))
        with open_siard(tmp_path / "a.siard") as source:
            schema, table = next(iter(source.describe().tables()))
            assert sample.read(source, schema, table) == [["ok"], ["X'81'"]]
        assert compare(mariadb.url(name), str(tmp_path / "a.siard")).equal

    def test_a_row_longer_than_a_packet_is_read(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        path = archived(
            mariadb, tmp_path, "CREATE TABLE t (a LONGTEXT, b LONGTEXT)",
            "INSERT INTO t VALUES (REPEAT('ö', 4200000), REPEAT('ä', 4200000)), ('', NULL)",
        )  # fmt: skip
        name, _ = restored(mariadb, path)
        assert mariadb.run(f"SELECT LENGTH(a), LENGTH(b), SHA2(b, 256) FROM `{name}`.t ORDER BY 1 DESC") == [
            (8400000, 8400000, mariadb.run("SELECT SHA2(REPEAT('ä', 4200000), 256)")[0][0]), (0, None, None),
        ]  # fmt: skip
        assert compare(str(path), mariadb.url(name)).equal

    def test_an_enumeration_keeps_its_error_value(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        path = archived(
            mariadb, tmp_path, "SET sql_mode=''", "CREATE TABLE t (e ENUM('a','b'))",
            "INSERT IGNORE INTO t VALUES ('a'), ('wrong')",
        )  # fmt: skip
        name, _ = restored(mariadb, path)
        assert mariadb.run(f"SELECT e, e+0 FROM `{name}`.t") == [("a", 1), ("", 0)]

    def test_views_and_queries_are_archived_by_their_rows(
        self, mariadb: MariadbServer, rich: str, tmp_path: Path
    ) -> None:
        selection = Selection(
            tables=("parent",), views=("plain",),
            queries={"q": "SELECT vj, de, COUNT(*) AS n, MAX(lb) AS lb FROM `every type` GROUP BY 1, 2"},
        )  # fmt: skip
        transfer.archive(mariadb.url(rich), tmp_path / "v.siard", selection)
        with open_siard(tmp_path / "v.siard") as source:
            tables = {t.name: t for _, t in source.describe().tables()}
            schema = source.describe().schemas[0]
            assert sample.read(source, schema, tables["plain"]) == [["1", "2"], ["2", "4"]]
            rows = sample.read(source, schema, tables["q"])
        assert [str(c.type) for c in tables["q"].columns][1:] == [
            "DECIMAL(65,30)",
            "BIGINT",
            "BLOB",
        ]
        assert sorted(row[2] for row in rows) == ["1", "4"]


class TestSnapshot:
    @pytest.fixture
    def busy(self, mariadb: MariadbServer) -> Iterator[str]:
        """Two tables whose sums are always the same together, while somebody moves amounts."""
        name = mariadb.new_database()
        mariadb.run(
            "CREATE TABLE a (id INT PRIMARY KEY, n BIGINT)", "CREATE TABLE b (id INT PRIMARY KEY, n BIGINT)",
            f"INSERT INTO a SELECT seq, 1000 FROM {numbers(100_000)}", f"INSERT INTO b SELECT seq, 1000 FROM {numbers(100_000)}",
            database=name,
        )  # fmt: skip
        stop = threading.Event()

        def move() -> None:
            with mariadb.connect(name) as connection, connection.cursor() as cursor:
                number = 0
                while not stop.is_set():
                    number += 1
                    cursor.execute("BEGIN")
                    cursor.execute(f"UPDATE a SET n = n - 7 WHERE id = {number * 37 % 100_000 + 1}")
                    cursor.execute(
                        f"UPDATE b SET n = n + 7 WHERE id = {100_000 - number * 91 % 100_000}"
                    )
                    cursor.execute("COMMIT")

        mover = threading.Thread(target=move)
        mover.start()
        yield name
        stop.set()
        mover.join()

    @pytest.mark.parametrize("user", ["root", "reader"])
    def test_several_processes_read_one_state(
        self, mariadb: MariadbServer, busy: str, user: str
    ) -> None:
        mariadb.run(
            "CREATE USER IF NOT EXISTS reader@localhost",
            f"GRANT SELECT ON `{busy}`.* TO reader@localhost",
        )
        before = mariadb.run(f"SELECT SUM(n) FROM `{busy}`.a")[0][0]
        with open_source(mariadb.url(busy, user)) as source:
            database = source.describe()
            schema = database.schemas[0]
            with start_workers(source, 2, lambda: True) as workers:
                totals = [
                    sum(piece.total for piece in workers.run(_tasks(source, schema, table)))
                    for table in schema.tables
                ]
            alone = any("one connection" in note for note in source.notes)
        assert sum(totals) == 2 * 100_000 * 1000
        assert totals[0] <= before
        assert mariadb.run(f"SELECT SUM(n) FROM `{busy}`.a")[0][0] < before  # they did move
        assert alone == (user == "reader")


def _tasks(source: Any, schema: Any, table: Any) -> Iterator[Any]:
    for part in source.parts(schema, table):
        if part is None:
            yield schema, table, list(source.batches(schema, table, None)), total
        else:
            yield schema, table, part, total


class Total:
    def __init__(self, rows: int, total: int) -> None:
        self.rows, self.total = rows, total


def total(batches: Any) -> Total:
    """Add up the second column; runs in worker processes."""
    rows = amount = 0
    for batch in batches:
        rows += batch.rows
        amount += sum(int(row.split(b"\xff")[1]) for row in batch.data.split(b"\xfd")[:-1])
    return Total(rows, amount)


class TestConnections:
    def test_few_rights_give_what_they_give_and_say_so(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        name = mariadb.new_database()
        mariadb.run(
            "CREATE TABLE seen (id INT PRIMARY KEY)", "INSERT INTO seen VALUES (1)", "CREATE TABLE secret (id INT)",
            "CREATE USER IF NOT EXISTS clerk@localhost IDENTIFIED BY 'pass wörd:/@'",
            f"GRANT SELECT ON `{name}`.seen TO clerk@localhost", f"GRANT INSERT ON `{name}`.secret TO clerk@localhost",
            database=name,
        )  # fmt: skip
        url = mariadb.url(name, "clerk:pass%20w%C3%B6rd%3A%2F%40")
        report = transfer.archive(url, tmp_path / "a.siard")
        notes = "\n".join(report.notes)
        assert [t.table for t in report.tables] == ["seen"]
        assert f"{name}.secret was not archived" in notes
        assert "privilege TRIGGER" in notes and "mysql.user" in notes
        for text in ((tmp_path / "a.siard").read_bytes(), notes.encode()):
            assert b"pass" not in text
        with pytest.raises(DatabaseError, match="lacks a privilege"):
            transfer.archive(url, tmp_path / "b.siard", Selection(tables=("secret",)))
        report = transfer.archive(url, tmp_path / "c.siard", Selection(exclude=("secret",)))
        assert [t.table for t in report.tables] == ["seen"]
        with pytest.raises(UsageError, match=r"did you mean '\w+\.secret'"):
            transfer.archive(url, tmp_path / "d.siard", Selection(exclude=("Secret",)))

    @pytest.mark.parametrize("given", ["MUNIMENT_PASSWORD", ".my.cnf", "wrong", "none"])
    def test_passwords_come_from_where_people_keep_them(
        self, mariadb: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
    ) -> None:
        name = mariadb.new_database()
        mariadb.run(
            "CREATE USER IF NOT EXISTS keeper@'%' IDENTIFIED BY 's3cret'", f"GRANT ALL ON `{name}`.* TO keeper@'%'",
            "CREATE TABLE t (x INT)", database=name,
        )  # fmt: skip
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("MUNIMENT_PASSWORD", raising=False)
        if given == "MUNIMENT_PASSWORD":
            monkeypatch.setenv(given, "s3cret")
        elif given == ".my.cnf":
            (tmp_path / given).write_text('[client]\nuser = keeper\npassword = "s3cret"\nquick\n')
        elif given == "wrong":
            monkeypatch.setenv("MUNIMENT_PASSWORD", "an0ther")
        user = "" if given == ".my.cnf" else "keeper@"
        url = f"mysql://{user}127.0.0.1:{mariadb.port}/{name}"
        if given in ("wrong", "none"):
            with pytest.raises(DatabaseError, match="the user or the password is wrong") as caught:
                transfer.archive(url, tmp_path / "a.siard")
            assert "an0ther" not in str(caught.value)
        else:
            assert transfer.archive(url, tmp_path / "a.siard").tables[0].rows == 0

    def test_tls_that_the_server_does_not_have_is_missed(self, mariadb: MariadbServer) -> None:
        url = f"mariadb://root@127.0.0.1:{mariadb.port}/mysql?ssl-mode=REQUIRED"
        with pytest.raises(DatabaseError, match=r"TLS|SSL"), open_source(url):
            pass

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("mariadb://u@h/db?ssl-mode=SOME", "ssl-mode is one of"),
            ("mariadb://u:secret@h/db?colour=red", "there is no option 'colour'"),
            ("mariadb://u:secret@h/a/b", "USER@HOST/DATABASE"),
            ("mariadb://u:secret@h:port/a", "is not a URL of a server"),
            ("mariadb://u:secret@h/a?ssl-mode=VERIFY_CA&ssl-ca=/nowhere.pem", "cannot be read"),
        ],
    )
    def test_a_wrong_url_is_a_sentence_without_the_secret(self, url: str, words: str) -> None:
        with pytest.raises(UsageError, match=words) as caught:
            parse_address(url).arguments()
        assert "secret" not in str(caught.value)

    def test_servers_and_databases_that_are_not_there(self, mariadb: MariadbServer) -> None:
        for url, words in (
            ("mariadb://root@127.0.0.1:1/db", "cannot be reached"),
            (mariadb.url("no_such"), "there is no such database"),
        ):
            with pytest.raises(DatabaseError, match=words), open_source(url):
                pass

    def test_a_timeout_is_a_sentence(self, mariadb: MariadbServer, rich: str) -> None:
        many = numbers(100_000)
        slow_query = f"SELECT MAX(q.seq * r.seq) AS s FROM {many} JOIN {many[:-1]}r"
        selection = Selection(tables=("parent",), queries={"slow": slow_query})
        slow = open_source(mariadb.url(rich), selection, statement_timeout=0.2)
        with pytest.raises(DatabaseError, match="statement timeout"), slow as source:
            schema = source.describe().schemas[0]
            sample.read(source, schema, schema.tables[-1])

    def test_a_server_that_goes_away_is_a_sentence(self, mariadb: MariadbServer) -> None:
        name = mariadb.new_database()
        mariadb.run(
            f"CREATE TABLE t AS SELECT seq, REPEAT('x', 200) AS x FROM {numbers(100_000)}",
            database=name,
        )
        with open_source(mariadb.url(name)) as source:
            schema, table = next(iter(source.describe().tables()))
            batches = source.batches(schema, table, None)
            next(batches)
            ((number,),) = mariadb.run(
                f"SELECT ID FROM information_schema.PROCESSLIST WHERE DB='{name}' AND COMMAND='Query'"
            )
            mariadb.run(f"KILL {number}")
            with pytest.raises(DatabaseError, match=rf"{name}\.t: .*(lost|killed|interrupted)"):
                list(batches)


class TestRestoring:
    def test_foreign_keys_that_the_rows_break_are_left_out(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        path = archived(
            mariadb, tmp_path, "CREATE TABLE p (id INT PRIMARY KEY)",
            "CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT c_p FOREIGN KEY (p) REFERENCES p (id))",
            "SET foreign_key_checks=0", "INSERT INTO c VALUES (1, 7)",
        )  # fmt: skip
        name, report = restored(mariadb, path)
        (item,) = (i for i in report.left_out if i.kind == "foreign key")
        assert "c_p" in item.name and "does not have" in item.reason
        assert mariadb.run(f"SELECT * FROM `{name}`.c") == [(1, 7)]

    def test_replacing_keeps_the_old_tables_until_the_rows_are_there(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        path = archived(mariadb, tmp_path, "CREATE TABLE t (x INT)", "INSERT INTO t VALUES (1)")
        name = mariadb.new_database()
        mariadb.run("CREATE TABLE t (old INT)", "CREATE TABLE other (x INT)", database=name)
        with pytest.raises(UsageError, match="has t already"):
            transfer.restore(path, mariadb.url(name))
        transfer.restore(path, mariadb.url(name), replace=True)
        assert mariadb.run(f"SHOW TABLES FROM `{name}`") == [("other",), ("t",)]
        assert mariadb.run(f"SELECT x FROM `{name}`.t") == [(1,)]

    def test_a_failed_replacement_brings_the_old_tables_back(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        source = f"sqlite:///{tmp_path / 'x.db'}"
        import apsw

        db = apsw.Connection(str(tmp_path / "x.db"))
        db.execute("CREATE TABLE t (x REAL); INSERT INTO t VALUES (9e999)")
        db.close()
        transfer.archive(source, tmp_path / "x.siard")
        name = mariadb.new_database()
        mariadb.run("CREATE TABLE t (old INT)", "INSERT INTO t VALUES (5)", database=name)
        with pytest.raises(DatabaseError, match="would not be stored as it is"):
            transfer.restore(tmp_path / "x.siard", mariadb.url(name), replace=True)
        assert mariadb.run(f"SELECT old FROM `{name}`.t") == [(5,)]
        assert mariadb.run(f"SHOW TABLES FROM `{name}`") == [("t",)]

    def test_a_definition_with_a_query_in_it_is_not_run(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        assert parse_create("CREATE TABLE `t` (`a` int) AS SELECT 1") is None
        assert parse_create("CREATE TABLE `t` (`a` int) ENGINE=CONNECT") is None
        assert parse_create("CREATE TABLE `t` (`a` int) DATA DIRECTORY='/tmp'") is None
        assert (
            parse_create("CREATE TABLE `t` (`a` text DEFAULT (load_file('/etc/passwd')))") is None
        )
        assert parse_create("CREATE TABLE `t` (`a` int); DROP TABLE `u`") is None
        assert not is_definition("CREATE FUNCTION f RETURNS INT SONAME 'x.so'", "FUNCTION")
        assert not is_definition("DROP VIEW v", "VIEW")

    def test_several_databases_with_keys_between_them(
        self, mariadb: MariadbServer, tmp_path: Path
    ) -> None:
        one, two = mariadb.new_database(), mariadb.new_database()
        mariadb.run("CREATE TABLE p (id INT PRIMARY KEY)", "INSERT INTO p VALUES (1)", database=one)
        mariadb.run(
            f"CREATE TABLE c (p INT, CONSTRAINT across FOREIGN KEY (p) REFERENCES `{one}`.p (id))",
            "INSERT INTO c VALUES (1)", database=two,
        )  # fmt: skip
        path = tmp_path / "both.siard"
        transfer.archive(mariadb.url(), path, Selection(schemas=(one, two)))
        with pytest.raises(UsageError, match="2 schemas"):
            transfer.restore(path, mariadb.url("x"))
        names = {one: mariadb.new_name(), two: mariadb.new_name()}
        transfer.restore(path, mariadb.url(), schema_map=names)
        text = mariadb.run(f"SHOW CREATE TABLE `{names[two]}`.c")[0][1]
        assert re.search(
            rf"`across` FOREIGN KEY \(`p`\) REFERENCES `{names[one]}`\.`p` \(`id`\)", text
        )


@pytest.mark.samples
@pytest.mark.skipif(is_mysql(), reason="these are features of MariaDB")
def test_what_few_people_use_comes_back_or_is_named(mariadb: MariadbServer, tmp_path: Path) -> None:
    name, sql = mariadb.new_database(), SCHEMA.with_name("mariadb_riches.sql").read_text()
    if not mariadb.has_type("UUID"):
        sql = sql.replace("u UUID", "u CHAR(36)")
    mariadb.script(sql, name)
    path = tmp_path / "a.siard"
    notes = " ".join(transfer.archive(mariadb.url(name), path).notes)
    assert f"{name}.history keeps a history" in notes
    for engine in ("Aria", "CSV", "MEMORY", "MyISAM"):
        assert f"{engine} has no snapshots" in notes
    again, report = restored(mariadb, path)
    assert {item.kind for item in report.left_out} <= {"user", "role", "privilege"}
    assert any("`every_month`, `once`" in note for note in report.notes)

    def told(database: str) -> str:
        text = mariadb.dump(database).replace(f"`{database}`", "`x`")
        text = re.sub(
            r"TRIGGER `?(\w+)`? (BEFORE INSERT) ON `?(\w+)`?", r"TRIGGER \1 \2 ON \3", text
        )
        return text.replace(" PRESERVE ENABLE DO ", " PRESERVE DISABLE DO ")

    assert told(again) == told(name)
    assert compare(mariadb.url(name), str(path)).equal
    found = compare(mariadb.url(again), str(path))
    times = mariadb.run("SHOW VARIABLES LIKE 'system_versioning_insert_history'")
    assert found.equal if times else any("does not take other times" in n for n in report.notes)


def test_sakila_goes_there_and_back(mariadb: MariadbServer, samples: Path, tmp_path: Path) -> None:
    mariadb.script((samples / "db" / "mysql" / "sakila.mysql.sql").read_text())
    path = tmp_path / "sakila.siard"
    transfer.archive(mariadb.url("sakila"), path)
    name, report = restored(mariadb, path)
    result = compare(mariadb.url("sakila"), mariadb.url(name))
    assert result.equal, result.differences
    assert {item.kind for item in report.left_out} <= {"user", "role", "privilege"}
    assert len(result.tables) == 16


def test_rows_of_views_and_queries_come_back_as_the_tables_that_the_archive_has(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    path = archived(
        mariadb,
        tmp_path,
        "CREATE TABLE t (id int PRIMARY KEY, n decimal(9,2), u smallint unsigned)",
        "INSERT INTO t VALUES (1, 1.5, 2)",
        "CREATE VIEW v AS SELECT t.*, n * 2 AS twice, now() AS seen, count(*) OVER () AS c FROM t",
        views=("v",),
        queries={"q": "SELECT id + 1 AS next, u, n, 'x' AS x FROM t"},
    )
    name, _ = restored(mariadb, path, left_out=tmp_path / "left.sql")
    result = compare(str(path), mariadb.url(name))
    assert result.equal, result.differences
