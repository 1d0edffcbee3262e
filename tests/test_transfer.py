"""Archive and restore, whole: real files, real worker processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import zipfile
from dataclasses import replace
from pathlib import Path

import apsw
import duckdb
import pytest
from lxml import etree

from muniment import transfer
from muniment.compare import compare
from muniment.errors import DamagedSource, DatabaseError, SiardError, Unfit, UsageError
from muniment.siard import open_siard, validate
from muniment.siard.header import read_metadata, replace_metadata
from muniment.sql.original import split_original
from muniment.sql.selection import Selection
from muniment.transfer import ArchiveOptions, Description, Progress, archive, restore

SAME_DAY = Description(archival_date="2026-11-15")


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    with_types = apsw.Connection(str(path))
    columns = [r[1] for r in with_types.execute(f'PRAGMA table_info("{table}")')]
    listed = ", ".join(f'"{c}", typeof("{c}")' for c in columns)
    return with_types.execute(f'SELECT {listed} FROM "{table}" ORDER BY 1').fetchall()


def definitions(path: Path) -> list[tuple[object, ...]]:
    db = apsw.Connection(str(path))
    return db.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
    ).fetchall()


def tamper(archived: Path, evil: Path, old: bytes, new: bytes) -> None:
    """Write the archive once more, with other bytes in place of some."""
    with zipfile.ZipFile(archived) as package:
        files = {i: package.read(i) for i in package.infolist()}
    with zipfile.ZipFile(evil, "w") as package:
        for info, data in files.items():
            package.writestr(info, data.replace(old, new))


def test_sqlite_comes_back_to_the_last_bit(shop: Path, tmp_path: Path) -> None:
    report = archive(url(shop), tmp_path / "shop.siard")
    assert [(t.table, t.rows) for t in report.tables] == [("item", 4), ("sale", 49)]
    restored = restore(tmp_path / "shop.siard", url(tmp_path / "back.db"))
    assert restored.notes == ()
    for table in ("item", "sale"):
        assert rows(tmp_path / "back.db", table) == rows(shop, table)
    without_view = [d for d in definitions(shop) if d[0] != "view"]
    assert [d for d in definitions(tmp_path / "back.db") if d[0] != "view"] == without_view
    back = apsw.Connection(str(tmp_path / "back.db"))
    assert back.execute("SELECT count(*) FROM dear").fetchone() == (30,)


def test_every_file_in_the_archive_is_valid(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "shop.siard")
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(tmp_path / "shop.siard") as package:
        assert package.testzip() is None
        package.extractall(folder)
    names = [p for p in folder.rglob("*.xml") if p.with_suffix(".xsd").exists()]
    assert len(names) == 3
    for path in names:
        schema = etree.XMLSchema(etree.parse(path.with_suffix(".xsd")))
        schema.assertValid(etree.parse(path))
        command = ["xmllint", "--noout", "--schema", path.with_suffix(".xsd"), path]
        assert subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_the_archive_is_laid_out_so_that_its_digest_can_be_checked(
    shop: Path, tmp_path: Path
) -> None:
    options = ArchiveOptions(digests=("MD5", "SHA-1", "SHA-256"))
    report = archive(url(shop), tmp_path / "shop.siard", options=options)
    with zipfile.ZipFile(tmp_path / "shop.siard") as package:
        names = package.namelist()
    header = names.index("header/")
    assert names[0] == "content/"
    assert all(name.startswith("content/") for name in names[:header])
    assert names[header:] == [
        "header/", "header/siardversion/", "header/siardversion/2.2/", "header/metadata.xsd", "header/metadata.xml",
    ]  # fmt: skip
    with open_siard(tmp_path / "shop.siard") as source:
        digests = {d.digest_type: d.digest for d in source.describe().message_digests}
        assert digests == {name: source.digest(name) for name in ("MD5", "SHA-1", "SHA-256")}
        assert {d.digest_type for d in report.digests} == set(digests)


def test_large_objects_lie_in_files_with_length_and_digest(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "shop.siard", options=ArchiveOptions(lob_threshold=100))
    with zipfile.ZipFile(tmp_path / "shop.siard") as package:
        names = [n for n in package.namelist() if "/lob" in n]
        # Once a value of a column is large, all of them lie in files; an empty one has none.
        assert sorted(names) == [
            "content/schema0/table0/lob2/record0.txt",
            "content/schema0/table0/lob2/record2.txt",
            "content/schema0/table0/lob2/record3.txt",
            "content/schema0/table0/lob7/record2.bin",
            "content/schema0/table0/lob7/record3.png",
        ]
        xml = package.read("content/schema0/table0/table0.xml").decode()
        assert package.read("content/schema0/table0/lob7/record2.bin") == b"\x00\xff" * 5000
    assert (
        'file="content/schema0/table0/lob7/record2.bin" length="10000" digestType="SHA-256"' in xml
    )
    restore(tmp_path / "shop.siard", url(tmp_path / "back.db"))
    assert rows(tmp_path / "back.db", "item") == rows(shop, "item")


def test_large_objects_can_stay_inline(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "shop.siard", options=ArchiveOptions(lobs="inline"))
    with zipfile.ZipFile(tmp_path / "shop.siard") as package:
        assert not [n for n in package.namelist() if "/lob" in n]
    restore(tmp_path / "shop.siard", url(tmp_path / "back.db"))
    assert rows(tmp_path / "back.db", "item") == rows(shop, "item")


def test_a_changed_large_object_is_found_on_the_way_back(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "shop.siard")
    with zipfile.ZipFile(tmp_path / "shop.siard") as package:
        files = {i: package.read(i) for i in package.infolist()}
    with zipfile.ZipFile(tmp_path / "evil.siard", "w") as package:
        for info, data in files.items():
            package.writestr(
                info, data.replace(b"\x00\xff", b"\x00\xfe") if ".bin" in info.filename else data
            )
    with pytest.raises(Exception, match="was changed: its SHA-256 digest"):
        restore(tmp_path / "evil.siard", url(tmp_path / "back.db"))
    assert not (tmp_path / "back.db").exists()
    assert not list(tmp_path.glob(".*partial*"))


def make_wide(path: Path, count: int) -> None:
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE wide (id INTEGER PRIMARY KEY, a TEXT, b REAL, c TEXT)")
    db.execute(
        f"WITH RECURSIVE n(value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM n LIMIT {count}) "
        "INSERT INTO wide SELECT value, 'text & <more> ' || value, value / 7.0, iif(value % 5, 'x', NULL) FROM n"
    )
    db.close()


def test_the_same_data_gives_the_same_bytes_with_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wide(tmp_path / "wide.db", 150_000)
    monkeypatch.setattr(transfer, "_WORTH_WORKERS", 0)
    for jobs in (1, 2, 3):
        options = ArchiveOptions(jobs=jobs, description=SAME_DAY)
        archive(url(tmp_path / "wide.db"), tmp_path / f"{jobs}.siard", options=options)
    first, *others = [(tmp_path / f"{jobs}.siard").read_bytes() for jobs in (1, 2, 3)]
    assert all(other == first for other in others)
    restore(tmp_path / "2.siard", url(tmp_path / "back.db"), jobs=2)
    assert rows(tmp_path / "back.db", "wide") == rows(tmp_path / "wide.db", "wide")


def test_progress_counts_rows_and_bytes(tmp_path: Path) -> None:
    make_wide(tmp_path / "wide.db", 150_000)
    seen: list[Progress] = []
    archive(url(tmp_path / "wide.db"), tmp_path / "w.siard", progress=seen.append)
    assert [p.rows for p in seen] == [65536, 131072, 150000]
    assert seen[-1].total_rows == 150_000 and seen[-1].bytes_written > seen[0].bytes_written


def test_there_are_never_more_rows_than_in_all_tables(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "many.db"))
    # Nobody has counted the rows of a table WITHOUT ROWID beforehand.
    for table, rows_, way in (("a", 40, ""), ("b", 9, "WITHOUT ROWID"), ("c", 50, "")):
        db.execute(f"CREATE TABLE {table} (n INTEGER PRIMARY KEY) {way}")
        db.execute(
            f"INSERT INTO {table} WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k"
            f" WHERE n < {rows_}) SELECT n FROM k"
        )
    db.close()
    seen: list[Progress] = []
    archive(url(tmp_path / "many.db"), tmp_path / "m.siard", progress=seen.append)
    told = {p.table: (p.rows, p.total_rows, p.all_rows) for p in seen}
    assert told == {"a": (40, 40, 90), "b": (9, None, None), "c": (50, 50, 99)}


def test_words_about_the_database_go_into_the_archive(shop: Path, tmp_path: Path) -> None:
    words = replace(
        SAME_DAY,
        data_owner="City of Example",
        tables={"item": "What is sold."},
        columns={"main.item.sku": "Stock number."},
        schemas={"main": "All of it."},
    )
    archive(url(shop), tmp_path / "s.siard", options=ArchiveOptions(description=words))
    with open_siard(tmp_path / "s.siard") as source:
        database = source.describe()
    item = database.schema("main").table("item")
    assert (database.data_owner, database.archival_date) == ("City of Example", "2026-11-15Z")
    assert split_original(item.description)[0] == "What is sold."
    assert item.columns[1].description == "Stock number."
    assert database.schemas[0].description == "All of it."


@pytest.mark.parametrize("kind", ["tables", "columns", "schemas"])
def test_words_about_what_is_not_there_are_refused(shop: Path, tmp_path: Path, kind: str) -> None:
    words = replace(SAME_DAY, **{kind: {"nothing": "x"}})
    with pytest.raises(UsageError, match="nothing"):
        archive(url(shop), tmp_path / "s.siard", options=ArchiveOptions(description=words))
    assert not (tmp_path / "s.siard").exists()


def test_a_selection_of_tables_columns_rows_views_and_queries(shop: Path, tmp_path: Path) -> None:
    selection = Selection(
        tables=("sale",),
        columns={"sale": ("price", "number")},
        where={"sale": "number <= 3"},
        order={"sale": "number DESC"},
        views=("dear",),
        queries={"totals": "SELECT count(*) AS n, sum(price) AS s FROM sale"},
    )
    report = archive(url(shop), tmp_path / "s.siard", selection)
    assert [(t.table, t.rows) for t in report.tables] == [("sale", 3), ("dear", 30), ("totals", 1)]
    with open_siard(tmp_path / "s.siard") as source:
        schema = source.describe().schema("main")
        sale = schema.table("sale")
        (batch,) = [b for p in source.parts(schema, sale) for b in source.batches(schema, sale, p)]
    assert batch.data == b"3.5\xff3\xfd2.5\xff2\xfd1.5\xff1\xfd"
    assert "number <= 3" in (sale.description or "")
    assert [t.folder for t in schema.tables] == ["table0", "table1", "table2"]


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb", "sqlalchemy+sqlite"])
def test_rows_left_out_leave_no_key_that_others_break(tmp_path: Path, scheme: str) -> None:
    path, archived = tmp_path / "a.db", tmp_path / "a.siard"
    sql = (
        "CREATE TABLE kind (id INTEGER PRIMARY KEY); INSERT INTO kind VALUES (1), (2);"
        "CREATE TABLE tree (id INTEGER PRIMARY KEY, kind INTEGER REFERENCES kind (id));"
        "INSERT INTO tree VALUES (1, 1), (2, 2)"
    )
    with duckdb.connect(path) if scheme == "duckdb" else apsw.Connection(str(path)) as database:
        database.execute(sql)
    archive(f"{scheme}:///{path}", archived, Selection(where={"kind": "id < 2"}))
    assert validate(archived, jobs=1).finish().valid
    with open_siard(archived) as source:
        tree = source.describe().schema("main").table("tree")
    assert tree.foreign_keys == ()
    assert "kind referred to main.kind, of which not all rows" in (tree.description or "")
    back = f"{scheme}:///{tmp_path / 'back.db'}"
    assert not restore(archived, back).left_out
    assert compare(str(archived), back).equal
    archive(f"{scheme}:///{path}", tmp_path / "b.siard", Selection(where={"tree": "id < 2"}))
    with open_siard(tmp_path / "b.siard") as source:
        assert len(source.describe().schema("main").table("tree").foreign_keys) == 1


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb", "sqlalchemy+sqlite"])
def test_a_view_taken_as_a_table_is_no_view_of_the_archive(tmp_path: Path, scheme: str) -> None:
    path, archived = tmp_path / "a.db", tmp_path / "a.siard"
    sql = (
        "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2);"
        "CREATE VIEW v AS SELECT id FROM t WHERE id > 1; CREATE VIEW w AS SELECT id FROM v"
    )
    with duckdb.connect(path) if scheme == "duckdb" else apsw.Connection(str(path)) as database:
        database.execute(sql)
    archive(f"{scheme}:///{path}", archived, Selection(views=("v",)))
    assert validate(archived, jobs=1).finish().valid
    with open_siard(archived) as source:
        (schema,) = source.describe().schemas
    assert [(table.name, table.rows) for table in schema.tables] == [("t", 2), ("v", 1)]
    assert [view.name for view in schema.views] == ["w"]
    assert "id > 1" in (schema.table("v").description or "")
    report = restore(archived, f"sqlite:///{tmp_path / 'back.db'}")
    assert not report.left_out
    with apsw.Connection(str(tmp_path / "back.db")) as back:  # w reads a table now
        assert list(back.execute("SELECT * FROM w")) == [(2,)]


@pytest.mark.parametrize(
    "selection",
    [
        Selection(tables=("nope",)), Selection(views=("nope",)), Selection(schemas=("nope",)),
        Selection(columns={"item": ("nope",)}), Selection(queries={"item": "SELECT 1 AS a"}),
        Selection(queries={"dear": "SELECT 1 AS a"}), Selection(queries={"ITEM": "SELECT 1 AS a"}),
    ],
)  # fmt: skip
def test_a_selection_of_what_is_not_there_is_refused(
    shop: Path, tmp_path: Path, selection: Selection
) -> None:
    with pytest.raises(UsageError):
        archive(url(shop), tmp_path / "s.siard", selection)
    assert list(tmp_path.iterdir()) == [shop]


def test_an_unfit_value_stops_the_work_and_names_every_such_column(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "odd.db"))
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INT, d DATE, b BLOB, x TEXT)")
    db.execute(
        "INSERT INTO t VALUES (1, 1, '2020-01-01', x'00', 'a'), (7, 'seven', '2020-01-01', 'text', x'01')"
    )
    db.close()
    with pytest.raises(Unfit) as caught:
        archive(url(tmp_path / "odd.db"), tmp_path / "odd.siard")
    assert caught.value.where == "main.t.n" and caught.value.row == 2
    for column in ("n", "b", "x"):
        assert f"--as-text main.t.{column}" in str(caught.value)
    assert "2 more columns hold such values." in str(caught.value)
    assert "1 more column holds such values." in str(Unfit("t.a", 1, "'x'", "a day", ("t.b",)))
    assert not (tmp_path / "odd.siard").exists()
    archive(url(tmp_path / "odd.db"), tmp_path / "odd.siard", Selection(as_text=("main.t.*",)))
    restore(tmp_path / "odd.siard", url(tmp_path / "back.db"))
    back = apsw.Connection(str(tmp_path / "back.db")).execute("SELECT n, x FROM t").fetchall()
    assert back == [(1, "a"), ("seven", b"\x01")]


def test_values_that_outgrew_their_declaration_widen_the_type(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "odd.db"))
    db.execute(
        "CREATE TABLE before (x INT); CREATE TABLE t (a VARCHAR(3), b DECIMAL(4,1)); CREATE TABLE z (x INT)"
    )
    db.execute("INSERT INTO t VALUES ('abc', 1.5), ('longer', 0.30000000000000004)")
    db.close()
    report = archive(url(tmp_path / "odd.db"), tmp_path / "odd.siard")
    assert len(report.notes) == 2 and "VARCHAR(6)" in report.notes[0]
    with open_siard(tmp_path / "odd.siard") as source:
        columns = source.describe().schema("main").table("t").columns
        assert [str(c.type) for c in columns] == ["VARCHAR(6)", "DECIMAL"]
        digests = source.describe().message_digests
        assert source.digest("SHA-256") == digests[0].digest
    restore(tmp_path / "odd.siard", url(tmp_path / "back.db"))
    assert rows(tmp_path / "back.db", "t") == rows(tmp_path / "odd.db", "t")


def test_one_state_of_the_database_while_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "busy.db"
    make_wide(path, 100_000)
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA journal_mode=WAL").fetchall()
    writer.execute("CREATE TABLE later (x INT)")

    def disturb(_: Progress) -> None:
        writer.execute("UPDATE wide SET a = 'changed'; INSERT INTO later VALUES (1)")

    monkeypatch.setattr(transfer, "_WORTH_WORKERS", 0)
    report = archive(
        url(path), tmp_path / "b.siard", options=ArchiveOptions(jobs=2), progress=disturb
    )
    assert {t.table: t.rows for t in report.tables} == {"wide": 100_000, "later": 0}
    with open_siard(tmp_path / "b.siard") as source:
        schema = source.describe().schemas[0]
        table = schema.table("wide")
        text = b"".join(
            b.data for p in source.parts(schema, table) for b in source.batches(schema, table, p)
        )
    assert b"changed" not in text and text.count(b"\xfd") == 100_000


def test_an_existing_file_is_never_overwritten(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "s.siard").write_text("precious")
    with pytest.raises(UsageError, match="exists already"):
        archive(url(shop), tmp_path / "s.siard")
    (tmp_path / "back.db").write_text("precious")
    (tmp_path / "s.siard").unlink()
    archive(url(shop), tmp_path / "s.siard")
    with pytest.raises(UsageError, match="exists already"):
        restore(tmp_path / "s.siard", url(tmp_path / "back.db"))
    assert (tmp_path / "back.db").read_text() == "precious"
    with pytest.raises(DatabaseError, match="not an SQLite database"):
        restore(tmp_path / "s.siard", url(tmp_path / "back.db"), replace=True)
    assert (tmp_path / "back.db").read_text() == "precious"


def test_replacing_loses_nothing_that_is_not_replaced(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "s.siard")
    old = apsw.Connection(str(tmp_path / "back.db"))
    old.execute("PRAGMA journal_mode=WAL; CREATE TABLE sale (x INT); INSERT INTO sale VALUES (1)")
    old.execute("CREATE TABLE keep_me (x INT)")
    with pytest.raises(UsageError, match="also holds keep_me"):
        restore(tmp_path / "s.siard", url(tmp_path / "back.db"), replace=True)
    old.execute("DROP TABLE keep_me")
    restore(tmp_path / "s.siard", url(tmp_path / "back.db"), replace=True)
    assert rows(tmp_path / "back.db", "sale") == rows(shop, "sale")


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("sqlite:///missing.db", DatabaseError, "there is no SQLite database"),
        ("informix://x/y", UsageError, "not a database URL"),
        ("nosuch://me:secret@h/d", UsageError, "not a database URL"),
        ("postgresql://me:secret@127.0.0.1:1/d", DatabaseError, "nobody answers"),
        ("sqlite:x", UsageError, "not a database URL"),
        ("sqlite://x", UsageError, "sqlite:///file"),
    ],
)
def test_wrong_addresses_get_a_sentence(
    tmp_path: Path, address: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        archive(address, tmp_path / "s.siard")
    assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_database_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(DatabaseError, match="not an SQLite database"):
        archive(url(tmp_path / "x.db"), tmp_path / "s.siard")


def test_a_name_without_the_right_ending_is_refused(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.siard"):
        archive(url(shop), tmp_path / "s.zip")


def test_a_disk_that_is_full_leaves_nothing_behind(shop: Path, tmp_path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import resource, signal, sys
        from pathlib import Path
        from muniment.transfer import archive
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        try:
            archive("{url(shop)}", Path("{tmp_path / "s.siard"}"))
        except OSError as error:
            sys.exit(17)
        """
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 17
    assert sorted(p.name for p in tmp_path.iterdir()) == ["shop.db"]


def test_a_schema_can_be_renamed_and_tables_chosen(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "s.siard")
    report = restore(
        tmp_path / "s.siard",
        url(tmp_path / "back.db"),
        tables=("sale",),
        schema_map={"main": "other"},
    )
    assert [(t.schema, t.table) for t in report.tables] == [("other", "sale")]
    assert rows(tmp_path / "back.db", "sale") == rows(shop, "sale")


@pytest.mark.parametrize(("target", "original"), [("duckdb", None), ("db", False)])
def test_what_only_the_source_has_is_listed(
    shop: Path, tmp_path: Path, target: str, original: bool | None
) -> None:
    """An index has no place in SIARD: another product does not get it, and is told so."""
    archive(url(shop), tmp_path / "s.siard")
    scheme = {"duckdb": "duckdb", "db": "sqlite"}[target]
    report = restore(
        tmp_path / "s.siard", f"{scheme}:///{tmp_path / 'back'}.{target}", original_types=original
    )
    (index,) = [each for each in report.left_out if each.kind == "index"]
    assert (index.name, index.sql) == (
        "sale_item of main.sale",
        "CREATE INDEX sale_item ON sale (item)",
    )
    assert report.left_out_file is not None
    assert "CREATE INDEX sale_item" in report.left_out_file.read_text()


def test_hostile_definitions_do_nothing_but_define(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "s.siard")
    victim = tmp_path / "victim.db"
    with zipfile.ZipFile(tmp_path / "s.siard") as package:
        files = {i: package.read(i) for i in package.infolist()}
    attack = f"CREATE INDEX sale_item ON sale (item); ATTACH '{victim}' AS v; CREATE TABLE v.t (x)".encode()
    with zipfile.ZipFile(tmp_path / "evil.siard", "w") as package:
        for info, data in files.items():
            package.writestr(info, data.replace(b"CREATE INDEX sale_item ON sale (item)", attack))
    report = restore(tmp_path / "evil.siard", url(tmp_path / "back.db"))
    (index,) = report.left_out
    assert (index.kind, index.name) == ("index", "of sale") and "ATTACH" in (index.sql or "")
    assert report.left_out_file == tmp_path / "back.db.left-out.sql"
    assert not victim.exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            b"<condition>id &gt; 0</condition>",
            b"<condition>1)); COMMIT; ATTACH 'VICTIM' AS v; CREATE TABLE v.t (x); --</condition>",
        ),
        (
            b"CREATE TABLE sale (",
            b"CREATE TABLE sale AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT * FROM n --",
        ),
        (
            b"WITHOUT ROWID",
            b"WITHOUT ROWID; CREATE TRIGGER eat BEFORE INSERT ON sale BEGIN SELECT raise(IGNORE); END",
        ),
    ],
)
def test_hostile_tables_are_made_by_the_book(
    shop: Path, tmp_path: Path, old: bytes, new: bytes
) -> None:
    archive(url(shop), tmp_path / "s.siard")
    with zipfile.ZipFile(tmp_path / "s.siard") as package:
        files = {i: package.read(i) for i in package.infolist()}
    with zipfile.ZipFile(tmp_path / "evil.siard", "w") as package:
        for info, data in files.items():
            if info.filename == "header/metadata.xml":
                assert old in data
                data = data.replace(old, new.replace(b"VICTIM", str(tmp_path / "victim").encode()))
                if b"ATTACH" in data:  # only the check constraint is left to make the table from
                    data = data.replace(b"Original definition in SQLite", b"Nothing")
            package.writestr(info, data)
    try:
        restore(tmp_path / "evil.siard", url(tmp_path / "back.db"))
        assert rows(tmp_path / "back.db", "sale") == rows(shop, "sale")
    except DatabaseError:
        assert not (tmp_path / "back.db").exists()
    assert not (tmp_path / "victim").exists()


def test_definitions_that_swallow_rows_are_noticed(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute("CREATE TABLE t (x INT); INSERT INTO t VALUES (1), (NULL), (2)")
    db.close()
    archive(url(tmp_path / "a.db"), tmp_path / "a.siard")
    tamper(
        tmp_path / "a.siard",
        tmp_path / "evil.siard",
        b"(x INT)",
        b"(x INT NOT NULL ON CONFLICT IGNORE)",
    )
    with pytest.raises(DatabaseError, match="keep only 2"):
        restore(tmp_path / "evil.siard", url(tmp_path / "b.db"))


def test_keys_that_only_a_statement_knows_are_not_made(tmp_path: Path) -> None:
    """Rows that the archive has twice would be lost to such a key."""
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute("CREATE TABLE t (x INT, y); INSERT INTO t VALUES (1, 1), (1, 2), (2, 3)")
    db.close()
    archive(url(tmp_path / "a.db"), tmp_path / "a.siard")
    tamper(
        tmp_path / "a.siard",
        tmp_path / "evil.siard",
        b"(x INT, y)",
        b"(x INT UNIQUE ON CONFLICT IGNORE, y)",
    )
    report = restore(tmp_path / "evil.siard", url(tmp_path / "b.db"))
    (left,) = report.left_out
    assert str(left) == "key (x) of main.t: the archive does not say that its rows keep it"
    assert compare(url(tmp_path / "a.db"), url(tmp_path / "b.db")).equal


@pytest.mark.parametrize("count", [b"3", b"99"])
def test_an_archive_with_other_rows_than_it_says_is_refused(
    shop: Path, tmp_path: Path, count: bytes
) -> None:
    archive(url(shop), tmp_path / "s.siard")
    tamper(
        tmp_path / "s.siard",
        tmp_path / "evil.siard",
        b"<rows>4</rows>",
        b"<rows>" + count + b"</rows>",
    )
    with pytest.raises(DamagedSource, match="should have"):
        restore(tmp_path / "evil.siard", url(tmp_path / "back.db"))
    assert not (tmp_path / "back.db").exists()


def test_content_that_was_changed_later_is_reported(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "s.siard")
    assert restore(tmp_path / "s.siard", url(tmp_path / "a.db")).notes == ()
    tamper(tmp_path / "s.siard", tmp_path / "evil.siard", b"<c3>1.5</c3>", b"<c3>9.5</c3>")
    notes = restore(tmp_path / "evil.siard", url(tmp_path / "b.db")).notes
    assert len(notes) == 1 and "SHA-256" in notes[0]


def test_two_entries_of_one_name_are_refused(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "s.siard")
    with (
        pytest.warns(UserWarning, match="Duplicate"),
        zipfile.ZipFile(tmp_path / "s.siard", "a") as package,
    ):
        package.writestr("content/schema0/table0/table0.xml", b"<table/>")
    with pytest.raises(SiardError, match="two entries"):
        restore(tmp_path / "s.siard", url(tmp_path / "back.db"))


def test_a_query_in_any_order_gives_each_row_once(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)")
    db.executemany(
        "INSERT INTO t VALUES (?, ?)",
        [(n, "long " * 900 if n % 7 == 0 else "x") for n in range(500)],
    )
    db.close()
    selection = Selection(
        queries={"q": "SELECT * FROM t ORDER BY random()"}, order={"t": "random()"}
    )
    archive(url(tmp_path / "a.db"), tmp_path / "a.siard", selection)
    restore(tmp_path / "a.siard", url(tmp_path / "b.db"))
    for name in ("q", "t"):
        assert sorted(rows(tmp_path / "b.db", name)) == rows(tmp_path / "a.db", "t")


def test_two_statements_are_not_a_query(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="SQLite refuses the query"):
        archive(
            url(shop),
            tmp_path / "s.siard",
            Selection(queries={"q": "SELECT 1 AS a; DELETE FROM item"}),
        )


@pytest.mark.parametrize("lobs", ["inline", "internal"])
def test_large_values_without_a_rowid_come_back(tmp_path: Path, lobs: str) -> None:
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB); INSERT INTO t VALUES (1, zeroblob(30000))"
    )
    db.execute(
        "CREATE TABLE w (id INT PRIMARY KEY, b BLOB) WITHOUT ROWID; INSERT INTO w VALUES (1, zeroblob(100000))"
    )
    db.close()
    archive(url(tmp_path / "a.db"), tmp_path / "a.siard", options=ArchiveOptions(lobs=lobs))
    restore(tmp_path / "a.siard", url(tmp_path / "b.db"))
    for name in ("t", "w"):
        assert rows(tmp_path / "b.db", name) == rows(tmp_path / "a.db", name)


def test_a_damaged_table_stops_the_restore_and_leaves_nothing(shop: Path, tmp_path: Path) -> None:
    archive(url(shop), tmp_path / "s.siard")
    tamper(tmp_path / "s.siard", tmp_path / "evil.siard", b"</c3></row>", b"</c2></row>")
    with pytest.raises(SiardError, match=r"malformed XML at byte \d+"):
        restore(tmp_path / "evil.siard", url(tmp_path / "back.db"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["evil.siard", "s.siard", "shop.db"]


@pytest.mark.parametrize("product", ["sqlite", "duckdb"])
def test_quotation_marks_that_are_part_of_a_name_stay(product: str, tmp_path: Path) -> None:
    script = '''
        CREATE TABLE """t""" ("""id""" INTEGER PRIMARY KEY, """X""" INTEGER, "[b]" INTEGER);
        CREATE TABLE u ("`r`" INTEGER REFERENCES """t""" ("""id"""));
        CREATE VIEW """v""" AS SELECT """id""" FROM """t""";
        INSERT INTO """t""" VALUES (1, 2, 3);
        INSERT INTO u VALUES (1);
    '''
    path = str(tmp_path / "a.db")
    db = duckdb.connect(path) if product == "duckdb" else apsw.Connection(path)
    db.execute(script)
    db.close()
    first, again = (f"{product}:////{tmp_path}/{name}.db" for name in "ab")
    archive(first, tmp_path / "a.siard")
    result = validate(tmp_path / "a.siard", jobs=1).finish()
    assert not [finding for finding in result.findings if finding.rule.startswith("G_3.5")]
    with open_siard(tmp_path / "a.siard") as source:
        (schema,) = source.describe().schemas
    quoted, plain = schema.tables
    assert [quoted.name, *(c.name for c in quoted.columns)] == ['"t"', '"id"', '"X"', "[b]"]
    (key,) = plain.foreign_keys
    assert (key.referenced_table, key.references[0].referenced) == ('"t"', '"id"')
    assert (plain.columns[0].name, schema.views[0].name) == ("`r`", '"v"')
    restore(tmp_path / "a.siard", again)
    assert compare(first, again).equal


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sale", r"the table 'sa\\ud800' in main has half of a character \(U\+D800\)"),
        ("sku", r"the column 'sk\\ud800' of main.item has half of a character"),
    ],
)
def test_names_with_half_of_a_character_get_a_sentence(
    shop: Path, tmp_path: Path, scheme: str, name: str, words: str
) -> None:
    archive(url(shop), tmp_path / "s.siard")
    changed = read_metadata(tmp_path / "s.siard").replace(
        f"<name>{name}</name>".encode(), rf"<name>{name[:2]}\ud800</name>".encode()
    )
    replace_metadata(tmp_path / "s.siard", changed, tmp_path / "odd.siard")
    before = set(tmp_path.iterdir())
    with pytest.raises(SiardError, match=words):
        restore(tmp_path / "odd.siard", f"{scheme}:///{tmp_path / 'back'}")
    assert set(tmp_path.iterdir()) == before


def test_the_character_0_in_a_name_is_for_products_that_take_it(tmp_path: Path) -> None:
    db = duckdb.connect(str(tmp_path / "odd.duckdb"))
    db.execute('CREATE TABLE "a\0b" (n INTEGER)')
    db.close()
    archive(f"duckdb:///{tmp_path / 'odd.duckdb'}", tmp_path / "odd.siard")
    restore(tmp_path / "odd.siard", f"duckdb:///{tmp_path / 'back.duckdb'}")
    with pytest.raises(
        SiardError, match=r"the table 'a\\x00b' in main has .* SQLite does not take"
    ):
        restore(tmp_path / "odd.siard", f"sqlite:///{tmp_path / 'back.db'}")
