"""SQLite as a source: its catalogue, its dynamic types, and text of every kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apsw
import duckdb
import pytest

from muniment.compare import compare
from muniment.databases.sqlite import SqliteSource
from muniment.databases.sqlite_target import create_target
from muniment.databases.sqlite_types import declared_type, sqlite_type
from muniment.errors import DamagedSource, DatabaseError, Unfit, UsageError
from muniment.siard import open_siard, validate
from muniment.sql.batch import Batch, cell_value, cells_of, rows_of
from muniment.sql.model import CheckConstraint, Column, Database, Schema, Table
from muniment.sql.selection import Selection
from muniment.sql.types import PredefinedType, parse_type
from muniment.transfer import ArchiveOptions, archive, restore


def make(path: Path, sql: str, *, encoding: str = "UTF-8") -> Path:
    db = apsw.Connection(str(path))
    db.execute(f"PRAGMA encoding='{encoding}'")
    db.execute(sql)
    db.close()
    return path


def batches(source: SqliteSource, name: str) -> list[Batch]:
    schema = source.describe().schemas[0]
    table = schema.table(name)
    return [b for p in source.parts(schema, table) for b in source.batches(schema, table, p)]


def values(source: SqliteSource, name: str) -> list[object]:
    return [cell_value(cell) for batch in batches(source, name) for cell in cells_of(batch)]


def table(path: Path, name: str, selection: Selection | None = None) -> Table:
    with SqliteSource(path, selection) as source:
        return source.describe().schemas[0].table(name)


@pytest.mark.parametrize(
    ("declared", "type_"),
    [
        ("INTEGER", "BIGINT"), ("tinyint(1)", "BIGINT"), ("UNSIGNED BIG INT", "BIGINT"), ("VARCHAR(255)", "VARCHAR(255)"),
        ("NATIVE CHARACTER(70)", "VARCHAR(70)"), ("TEXT", "CLOB"), ("varchar", "CLOB"), ("BLOB", "BLOB"),
        ("DOUBLE PRECISION", "DOUBLE PRECISION"), ("float", "DOUBLE PRECISION"), ("NUMERIC", "DECIMAL"),
        ("DECIMAL(10,5)", "DECIMAL(10,5)"), ("decimal(10)", "DECIMAL(10)"), ("BOOLEAN", "BOOLEAN"), ("DATE", "DATE"),
        ("DATETIME", "TIMESTAMP"), ("TIMESTAMP WITH TIME ZONE(6)", "TIMESTAMP WITH TIME ZONE(6)"),
        ("INTERVAL DAY TO SECOND(6)", "INTERVAL DAY TO SECOND(6)"), ("VARBINARY(8)", "VARBINARY(8)"),
        ("DECIMAL_TEXT(38,9)", "DECIMAL(38,9)"),
    ],
)  # fmt: skip
def test_declarations_have_a_type(declared: str, type_: str) -> None:
    assert str(declared_type(declared)) == type_


@pytest.mark.parametrize("declared", ["", "JSON", "GEOMETRY", "whatever", "POINT", "MultiPoint"])
def test_other_declarations_are_decided_by_content(declared: str) -> None:
    assert declared_type(declared) is None


@pytest.mark.parametrize(
    "type_",
    ["SMALLINT", "DECIMAL(10,2)", "DECIMAL(38,9)", "DOUBLE PRECISION", "BOOLEAN", "VARCHAR(9)", "CLOB", "BINARY(3)", "BLOB", "DATE", "TIMESTAMP", "INTERVAL YEAR TO MONTH"],
)  # fmt: skip
def test_types_survive_a_stay_in_sqlite(type_: str) -> None:
    known = parse_type(type_)
    back = declared_type(sqlite_type(known))
    assert back is not None and back.kind is known.kind


def test_the_catalogue_has_keys_checks_triggers_views_and_defaults(shop: Path) -> None:
    with SqliteSource(shop) as source:
        database = source.describe()
    (schema,) = database.schemas
    item, sale = schema.tables
    assert (schema.name, schema.folder, item.folder, sale.folder) == (
        "main",
        "schema0",
        "table0",
        "table1",
    )
    assert [(c.name, str(c.type), c.nullable) for c in item.columns] == [
        ("id", "BIGINT", False), ("sku", "VARCHAR(10)", False), ("name", "CLOB", True), ("weight", "DOUBLE PRECISION", True),
        ("sold", "BOOLEAN", True), ("made", "DATE", True), ("changed", "TIMESTAMP", True), ("photo", "BLOB", True),
    ]  # fmt: skip
    assert item.primary_key and item.primary_key.columns == ("id",)
    assert [k.columns for k in item.candidate_keys] == [("sku",)]
    assert [(c.name, c.condition) for c in item.check_constraints] == [("positive", "id > 0")]
    (trigger,) = item.triggers
    assert (trigger.action_time, trigger.trigger_event) == ("BEFORE", "DELETE")
    assert trigger.triggered_action.startswith("WHEN old.sold BEGIN")
    (key,) = sale.foreign_keys
    assert (key.referenced_table, key.delete_action) == ("item", "CASCADE")
    assert [(r.column, r.referenced) for r in key.references] == [("item", "id")]
    (view,) = schema.views
    assert view.query_original == "SELECT number, price FROM sale WHERE price > 20"
    assert [c.name for c in view.columns] == ["number", "price"]
    assert (database.dbname, database.connection) == ("shop", "sqlite:///shop.db")


def test_checks_are_found_between_strings_comments_and_parentheses(tmp_path: Path) -> None:
    path = make(
        tmp_path / "c.db",
        "CREATE TABLE t (a TEXT DEFAULT 'CHECK (x)' CHECK (a <> ')' AND (length(a) > 1)), -- CHECK (no)\n"
        '[check] INT, /* CHECK (no) */ CONSTRAINT "the ""b""" CHECK ([check] IN (1, 2)))',
    )
    found = [(c.name, c.condition) for c in table(path, "t").check_constraints]
    assert found == [("ck_t_1", "a <> ')' AND (length(a) > 1)"), ('the "b"', "[check] IN (1, 2)")]


def test_foreign_keys_without_columns_mean_the_primary_key(tmp_path: Path) -> None:
    path = make(
        tmp_path / "f.db",
        """CREATE TABLE Parent (A INT, B INT, PRIMARY KEY (B, A));
           CREATE TABLE child (x INT, y INT, FOREIGN KEY (X, y) REFERENCES parent)""",
    )
    (key,) = table(path, "child").foreign_keys
    assert key.referenced_table == "Parent"
    assert [(r.column, r.referenced) for r in key.references] == [("x", "B"), ("y", "A")]


def test_generated_columns_are_archived_and_come_back(tmp_path: Path) -> None:
    path = make(
        tmp_path / "g.db",
        "CREATE TABLE t (a INT, b INT AS (a * 2) STORED, c TEXT AS ('x' || a)); INSERT INTO t VALUES (1), (2)",
    )
    archive(f"sqlite:///{path}", tmp_path / "g.siard")
    with open_siard(tmp_path / "g.siard") as source:
        schema = source.describe().schemas[0]
        (part,) = source.parts(schema, schema.tables[0])
        (batch,) = source.batches(schema, schema.tables[0], part)
    assert batch.data == b"1\xff2\xffx1\xfd2\xff4\xffx2\xfd"
    assert restore(tmp_path / "g.siard", f"sqlite:///{tmp_path / 'b.db'}").notes == ()
    assert apsw.Connection(str(tmp_path / "b.db")).execute("SELECT * FROM t").fetchall() == [
        (1, 2, "x1"),
        (2, 4, "x2"),
    ]


def test_columns_without_a_type_are_typed_by_their_content(tmp_path: Path) -> None:
    path = make(
        tmp_path / "u.db",
        "CREATE TABLE t (a, b, c, d, e JSON); INSERT INTO t VALUES (1, 1.5, 'x', 1, '{}'), (2, 2.5, 'y', 'z', NULL)",
    )
    with SqliteSource(path) as source:
        found = [str(c.type) for c in source.describe().schemas[0].tables[0].columns]
        assert found == ["BIGINT", "DOUBLE PRECISION", "CLOB", "CLOB", "CLOB"]
        assert len(source.notes) == 1 and "main.t.d" in source.notes[0]
        assert values(source, "t") == ["1", "1.5", "x", "1", "{}", "2", "2.5", "y", "z", None]


def test_virtual_tables_are_archived_and_their_shadows_are_not(tmp_path: Path) -> None:
    path = make(
        tmp_path / "v.db",
        "CREATE VIRTUAL TABLE notes USING fts5(title, body); INSERT INTO notes VALUES ('a', 'b')",
    )
    with SqliteSource(path) as source:
        assert [t.name for t in source.describe().schemas[0].tables] == ["notes"]
        assert values(source, "notes") == ["a", "b"]


def test_a_column_called_rowid_does_no_harm(tmp_path: Path) -> None:
    path = make(
        tmp_path / "r.db",
        "CREATE TABLE t (rowid TEXT, oid TEXT); INSERT INTO t VALUES ('b', 'x'), ('a', 'y')",
    )
    with SqliteSource(path) as source:
        assert values(source, "t") == ["b", "x", "a", "y"]


def test_parts_are_bounded_and_few_however_sparse_the_rowids(tmp_path: Path) -> None:
    path = make(
        tmp_path / "s.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY); WITH RECURSIVE n(x) AS (VALUES (-9000000000000000000) "
        "UNION ALL SELECT x + 90000000000000 FROM n LIMIT 140000) INSERT INTO t SELECT x FROM n",
    )
    with SqliteSource(path) as source:
        schema = source.describe().schemas[0]
        parts = list(source.parts(schema, schema.tables[0]))
        sizes = [sum(b.rows for b in source.batches(schema, schema.tables[0], p)) for p in parts]
    assert sizes == [1, 65536, 65536, 139999 - 2 * 65536]


STRUCTURE = [bytes((b,)) for b in range(0xF7, 0x100)]


@pytest.mark.parametrize("byte", STRUCTURE)
def test_text_that_looks_like_structure_is_found_and_refused(tmp_path: Path, byte: bytes) -> None:
    path = make(
        tmp_path / "b.db",
        f"CREATE TABLE t (a TEXT, b TEXT); INSERT INTO t VALUES ('x', 'y'), (CAST(x'{byte.hex()}' AS TEXT), 'z')",
    )
    with (
        SqliteSource(path) as source,
        pytest.raises(Unfit, match=r"main\.t\.a.*not text in Unicode"),
    ):
        archive(f"sqlite:///{path}", tmp_path / "b.siard")
        batches(source, "t")
    selection = Selection(as_text=("main.t.a",))
    with SqliteSource(path, selection) as source:
        assert values(source, "t") == ["x", "y", f"CAST(X'{byte.hex().upper()}' AS TEXT)", "z"]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_lone_surrogates_survive(tmp_path: Path, encoding: str) -> None:
    codec = encoding.replace("le", "-le").replace("be", "-be")
    raw = "a\ud800b\udfff".encode(codec, "surrogatepass").hex()
    path = make(
        tmp_path / "s.db",
        f"CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'{raw}' AS TEXT)), ('ü')",
        encoding=encoding,
    )
    with SqliteSource(path) as source:
        assert values(source, "t") == ["a\ud800b\udfff", "ü"]
    archive(f"sqlite:///{path}", tmp_path / "s.siard")
    with open_siard(tmp_path / "s.siard") as archived:
        schema = archived.describe().schemas[0]
        (part,) = archived.parts(schema, schema.tables[0])
        (batch,) = archived.batches(schema, schema.tables[0], part)
    assert [cell_value(c) for c in cells_of(batch)] == ["a\ud800b\udfff", "ü"]


@pytest.mark.parametrize("form", ["2020-01-01T10:00:00", "2020-01-01", "1577836800", "noon"])
def test_timestamps_in_other_forms_are_not_silently_changed(tmp_path: Path, form: str) -> None:
    path = make(tmp_path / "t.db", f"CREATE TABLE t (a DATETIME); INSERT INTO t VALUES ('{form}')")
    with pytest.raises(Unfit):
        archive(f"sqlite:///{path}", tmp_path / "t.siard")
    archive(f"sqlite:///{path}", tmp_path / "t.siard", Selection(as_text=("*",)))
    restore(tmp_path / "t.siard", f"sqlite:///{tmp_path / 'b.db'}")
    original = apsw.Connection(str(path)).execute("SELECT a, typeof(a) FROM t").fetchall()
    assert (
        apsw.Connection(str(tmp_path / "b.db")).execute("SELECT a, typeof(a) FROM t").fetchall()
        == original
    )


def test_lone_surrogates_come_back_from_an_archive(tmp_path: Path) -> None:
    raw = "a\ud800b".encode("utf-8", "surrogatepass").hex()
    path = make(
        tmp_path / "s.db",
        f"CREATE TABLE t (a TEXT, b TEXT, c INT); INSERT INTO t VALUES (CAST(x'{raw}' AS TEXT), 'ü', 5)",
    )
    archive(f"sqlite:///{path}", tmp_path / "s.siard")
    restore(tmp_path / "s.siard", f"sqlite:///{tmp_path / 'b.db'}")
    sql = "SELECT hex(a), typeof(a), b, typeof(b), c, typeof(c) FROM t"
    found = [apsw.Connection(str(p)).execute(sql).fetchall() for p in (path, tmp_path / "b.db")]
    assert found[0] == found[1]


@pytest.mark.parametrize("lobs", ["inline", "internal"])
@pytest.mark.parametrize("more", ["", "x" * 5000])
def test_both_halves_of_a_character_stay_two(tmp_path: Path, more: str, lobs: str) -> None:
    raw = f"{more}\ud83d\ude00".encode("utf-8", "surrogatepass").hex()
    path = make(
        tmp_path / "s.db",
        f"CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'{raw}' AS TEXT)), ('\U0001f600')",
    )
    options = ArchiveOptions(lobs=lobs)
    with pytest.raises(Unfit, match="Unicode"):
        archive(f"sqlite:///{path}", tmp_path / "s.siard", options=options)
    as_text = Selection(as_text=("t.a",))
    archive(f"sqlite:///{path}", tmp_path / "s.siard", as_text, options=options)
    restore(tmp_path / "s.siard", f"sqlite:///{tmp_path / 'b.db'}")
    assert compare(f"sqlite:///{path}", str(tmp_path / "s.siard")).equal
    sql = "SELECT hex(a), typeof(a) FROM t"
    found = [apsw.Connection(str(p)).execute(sql).fetchall() for p in (path, tmp_path / "b.db")]
    assert found[0] == found[1]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_lone_surrogates_beside_large_values_can_be_had_as_text(
    tmp_path: Path, encoding: str
) -> None:
    raw = "\ud800".encode(encoding.replace("le", "-le"), "surrogatepass").hex()
    path = make(
        tmp_path / "s.db",
        f"CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'{raw}' AS TEXT)), ('{'y' * 5000}')",
        encoding=encoding,
    )
    with pytest.raises(Unfit, match="Unicode"):
        archive(f"sqlite:///{path}", tmp_path / "s.siard")
    archive(f"sqlite:///{path}", tmp_path / "s.siard", Selection(as_text=("t.a",)))
    restore(tmp_path / "s.siard", f"sqlite:///{tmp_path / 'b.db'}")
    again = apsw.Connection(str(tmp_path / "b.db"))
    assert again.execute("SELECT hex(a), typeof(a) FROM t LIMIT 1").fetchall() == [
        ("EDA080", "text")
    ]
    assert compare(f"sqlite:///{path}", f"sqlite:///{tmp_path / 'b.db'}").equal


def test_two_thousand_columns_are_no_obstacle(tmp_path: Path) -> None:
    columns = ", ".join(f"c{n} INT" for n in range(2000))
    path = make(
        tmp_path / "w.db", f"CREATE TABLE t ({columns}); INSERT INTO t (c0, c1999) VALUES (1, 2)"
    )
    with SqliteSource(path) as source:
        found = values(source, "t")
    assert found == ["1", *[None] * 1998, "2"]


@pytest.mark.parametrize("width", [999, 1000, 2000])
def test_many_columns_of_unusual_values_are_no_obstacle_either(tmp_path: Path, width: int) -> None:
    """Reading closely takes two columns of a result for each of the table's."""
    columns = ", ".join(f"c{n} TEXT" for n in range(width))
    path = make(
        tmp_path / "w.db",
        f"CREATE TABLE t ({columns});"
        f"INSERT INTO t (c0, c500, c{width - 1}) VALUES ('a', CAST(x'410042' AS TEXT), 'z');"
        "INSERT INTO t (c1) VALUES ('b')",
    )
    archive(f"sqlite:///{path}", tmp_path / "w.siard")
    assert compare(f"sqlite:///{path}", str(tmp_path / "w.siard")).equal
    with SqliteSource(path) as source:
        found = values(source, "t")
    assert found[:width] == ["a", *[None] * 499, "A\0B", *[None] * (width - 502), "z"]
    assert found[width:] == [None, "b", *[None] * (width - 2)]


_PEAK = """
import re, sys
from pathlib import Path
from muniment.transfer import archive
archive(sys.argv[1], Path(sys.argv[2]))
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.parametrize("kernels", ["always", "never"])
@pytest.mark.parametrize(
    ("type_", "value"),
    [("BLOB", "(zeroblob({})), (x'')"), ("TEXT", "(hex(zeroblob({} / 2))), ('')")],
)
def test_a_huge_value_takes_no_more_memory_than_a_small_one(
    tmp_path: Path, type_: str, value: str, kernels: str
) -> None:
    peaks = []
    for size in (100, 100_000_000):
        path, siard = tmp_path / f"{size}.db", tmp_path / f"{size}.siard"
        make(path, f"CREATE TABLE t (a {type_}); INSERT INTO t VALUES {value.format(size)}")
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, f"sqlite:///{path}", str(siard)],
            env={**os.environ, "MUNIMENT_KERNELS": kernels},
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(done.stdout) << 10)
        assert compare(f"sqlite:///{path}", str(siard)).equal
    assert peaks[1] - peaks[0] < 50_000_000


def test_a_damaged_file_is_not_archived_as_if_it_were_whole(tmp_path: Path) -> None:
    path = make(
        tmp_path / "d.db",
        "CREATE TABLE t (a TEXT); WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n LIMIT 5000) INSERT INTO t SELECT 'row ' || x FROM n",
    )
    data = bytearray(path.read_bytes())
    for page in range(4096, len(data), 4096 * 3):
        data[page : page + 8] = b"\x00" * 8
    path.write_bytes(bytes(data))
    with pytest.raises((DatabaseError, DamagedSource)):
        archive(f"sqlite:///{path}", tmp_path / "d.siard")
    assert not (tmp_path / "d.siard").exists()


def test_a_condition_cannot_become_another_statement(shop: Path, tmp_path: Path) -> None:
    chosen = Selection(where={"sale": "1); SELECT 7, 8, 9; --"})
    with pytest.raises(UsageError, match="the condition for sale is not one condition"):
        archive(f"sqlite:///{shop}", tmp_path / "a.siard", chosen)


def test_a_column_to_archive_as_text_must_exist(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no column matches"):
        archive(f"sqlite:///{shop}", tmp_path / "s.siard", Selection(as_text=("main.item.nmae",)))


def test_rows_of_one_empty_value_are_rows(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "empty.db"))
    db.execute("CREATE TABLE t (a VARCHAR(9) NOT NULL)")
    db.executemany("INSERT INTO t VALUES (?)", [("",), ("",), ("x",), ("",)])
    db.close()
    with SqliteSource(tmp_path / "empty.db") as source:
        ((schema, table),) = source.describe().tables()
        (part,) = source.parts(schema, table)
        rows = [row for batch in source.batches(schema, table, part) for row in rows_of(batch)]
    assert rows == [b"", b"", b"x", b""]


@pytest.mark.parametrize(
    "columns",
    ["id INTEGER PRIMARY KEY, film BLOB", "id INTEGER PRIMARY KEY, film BLOB UNIQUE",
     "id INT NOT NULL PRIMARY KEY, film BLOB) WITHOUT ROWID; --",
     "id INTEGER PRIMARY KEY, film BLOB CHECK (hex(substr(film, 1, 1)) = '01')",
     "id INTEGER PRIMARY KEY, film TEXT"],
    ids=["plain", "indexed", "without rowid", "checked", "text"],
)  # fmt: skip
def test_large_objects_are_written_piece_by_piece(columns: str, tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute(f"CREATE TABLE t ({columns})")
    text = "TEXT" in columns
    values = [b"\x01" + bytes([n]) * n * 700_000 for n in range(1, 5)]
    rows = [(n, v.decode() if text else v) for n, v in enumerate(values)]
    db.executemany("INSERT INTO t VALUES (?,?)", rows)
    db.close()
    url = f"sqlite:///{tmp_path}/a.db"
    archive(url, tmp_path / "a.siard")
    restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db")
    back = apsw.Connection(str(tmp_path / "b.db"))
    assert back.execute("SELECT id, film FROM t ORDER BY id").fetchall() == rows
    assert back.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    back.close()


def test_the_snapshot_outlives_the_token_of_its_state(tmp_path: Path) -> None:
    """Nobody writes while the source reads, not even after its state was looked up in the file."""
    path = tmp_path / "t.db"
    make(path, "CREATE TABLE t (a INTEGER PRIMARY KEY)")
    writer = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], timeout=0);"
        "db.execute('INSERT INTO t VALUES (NULL)'); db.commit()"
    )
    with SqliteSource(path) as source:
        assert source.snapshot_token() == source.snapshot_token()
        done = subprocess.run(
            [sys.executable, "-c", writer, str(path)], capture_output=True, text=True, check=False
        )
    assert "database is locked" in done.stderr


def test_columns_that_are_left_out_are_named_and_take_their_checks_along(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute(
        'CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, "the b" INT, CONSTRAINT k CHECK '
        "(a < \"The B\"), CONSTRAINT kept CHECK (a > 0 AND 'the b' <> 'x'));"
        "INSERT INTO t VALUES (1, 1, 2)"
    )
    db.close()
    chosen = Selection(columns={"t": ("id", "a")})
    archive(f"sqlite:///{tmp_path}/a.db", tmp_path / "a.siard", chosen)
    with open_siard(tmp_path / "a.siard") as source:
        table = source.describe().schema("main").table("t")
    assert [check.name for check in table.check_constraints] == ["kept"]
    assert table.description == (
        "About this archive: Columns that were not archived: the b.\n"
        'About this archive: The check k (a < "The B") needs columns that are not here.'
    )
    report = restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db")
    assert not report.left_out


def test_a_check_that_names_no_column_is_left_out(tmp_path: Path) -> None:
    column = Column("a", PredefinedType("BIGINT"), "INTEGER")
    checks = (CheckConstraint("bad", "b > 0"), CheckConstraint("good", 'a <> "x"'))
    table = Table("t", "table0", (column,), check_constraints=checks)
    database = Database(
        "d", database_product="SQLite 3", schemas=(Schema("main", "schema0", tables=(table,)),)
    )
    with create_target(tmp_path / "b.db") as target:
        target.define(database)
        target.finish(database)
        assert [item.name for item in target.left_out] == ["bad of main.t"]


@pytest.mark.parametrize("length", [126, 128, 129, 700])
def test_names_of_any_length_are_kept(tmp_path: Path, length: int) -> None:
    name = ("a long näme " * 60)[:length]
    path = make(
        tmp_path / "n.db",
        f'CREATE TABLE "{name}" ("{name}" INTEGER PRIMARY KEY CHECK ("{name}" > 0), b INT UNIQUE '
        f'REFERENCES "{name}"); INSERT INTO "{name}" VALUES (1, 1)',
    )
    report = archive(f"sqlite:///{path}", tmp_path / "n.siard")
    found = [f for f in validate(tmp_path / "n.siard") if f.rule == "G_3.5-2"]
    if length > 128:
        assert [f.severity for f in found] == ["warning", "warning"]
        (note,) = report.notes
        assert note == (
            "names of more than the 128 characters of SQL:2008 were kept; other products may refuse "
            f"them: {name[:40]}… ({length})"
        )
    else:
        assert (found, report.notes) == ([], ())
    restore(tmp_path / "n.siard", f"sqlite:///{tmp_path / 'b.db'}")
    assert compare(f"sqlite:///{path}", str(tmp_path / "n.siard")).equal
    assert compare(f"sqlite:///{path}", f"sqlite:///{tmp_path / 'b.db'}").equal


def definitions_of(path: Path) -> list[tuple[object, ...]]:
    sql = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    return apsw.Connection(str(path)).execute(sql).fetchall()


ODDITIES = {
    "AUTOINCREMENT goes on where it was": (
        "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (1), (7);"
        "DELETE FROM t WHERE a = 7; CREATE TABLE [it's] (a INTEGER PRIMARY KEY AUTOINCREMENT);"
        "INSERT INTO [it's] VALUES (9); DELETE FROM [it's];"
        "CREATE TABLE u (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO u VALUES (5)"
    ),
    "triggers of views": (
        "CREATE TABLE t (a INT); CREATE VIEW v (a) AS SELECT a FROM t; CREATE TRIGGER i INSTEAD OF "
        "INSERT ON v BEGIN INSERT INTO t VALUES (new.a); END"
    ),
    "broken views": (
        "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT b FROM t;"
        "CREATE VIEW w AS SELECT * FROM nowhere"
    ),
    "indexes": (
        "CREATE TABLE t (a TEXT COLLATE NOCASE, b INT); CREATE INDEX e ON t (lower(a));"
        "CREATE UNIQUE INDEX p ON t (b) WHERE b > 5; INSERT INTO t VALUES ('x', 1), ('X', 1)"
    ),
    "strict tables": (
        "CREATE TABLE t (a ANY, b INT, c BLOB, PRIMARY KEY (b)) STRICT, WITHOUT ROWID;"
        "INSERT INTO t VALUES ('007', 1, x'00'), ('x', 2, NULL)"
    ),
    "points": "CREATE TABLE t (a POINT, b MULTIPOINT); INSERT INTO t VALUES (x'00', NULL)",
}


@pytest.mark.parametrize("oddity", ODDITIES)
def test_what_is_odd_in_sqlite_comes_back(tmp_path: Path, oddity: str) -> None:
    path, siard, back = tmp_path / "a.db", tmp_path / "a.siard", tmp_path / "b.db"
    make(path, ODDITIES[oddity])
    archive(f"sqlite:///{path}", siard)
    assert [f for f in validate(siard) if f.severity == "error"] == []
    assert restore(siard, f"sqlite:///{back}").left_out == ()
    for other in (str(siard), f"sqlite:///{back}"):
        assert compare(f"sqlite:///{path}", other).equal
    found = [
        [" ".join(str(d).replace('"', "").split()) for d in definitions_of(p)] for p in (path, back)
    ]
    assert found[0] == found[1]
    if "AUTOINCREMENT" in oddity:
        sql = "SELECT name, seq FROM sqlite_sequence ORDER BY name"
        numbers = [apsw.Connection(str(p)).execute(sql).fetchall() for p in (path, back)]
        assert numbers[0] == numbers[1]


def test_virtual_tables_come_back_as_ordinary_ones_and_their_statements_are_kept(
    tmp_path: Path,
) -> None:
    path, siard, back = tmp_path / "a.db", tmp_path / "a.siard", tmp_path / "b.db"
    make(
        path,
        "CREATE VIRTUAL TABLE f USING fts5(a, b); INSERT INTO f VALUES ('x', '007');"
        "CREATE VIRTUAL TABLE r USING rtree(id, low, high); INSERT INTO r VALUES (1, 0.5, 2)",
    )
    archive(f"sqlite:///{path}", siard)
    report = restore(siard, f"sqlite:///{back}")
    assert [(item.kind, item.sql) for item in report.left_out] == [
        ("virtual table", "CREATE VIRTUAL TABLE f USING fts5(a, b)"),
        ("virtual table", "CREATE VIRTUAL TABLE r USING rtree(id, low, high)"),
    ]
    for other in (str(siard), f"sqlite:///{back}"):
        assert compare(f"sqlite:///{path}", other).equal


def test_triggers_of_views_are_listed_for_other_products(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db", ODDITIES["triggers of views"])
    archive(f"sqlite:///{path}", tmp_path / "a.siard")
    report = restore(tmp_path / "a.siard", f"duckdb:///{tmp_path}/b.duckdb")
    assert [(item.kind, item.name) for item in report.left_out] == [("trigger", "of main.v")]
    archive(f"sqlite:///{path}", tmp_path / "v.siard", Selection(views=("v",)))
    with open_siard(tmp_path / "v.siard") as source:
        description = source.describe().schema("main").table("v").description
    assert description == "About this archive: The rows of a view: SELECT a FROM t"


INDEXED = """
    CREATE TABLE p (id INTEGER PRIMARY KEY);
    CREATE TABLE t (id INTEGER PRIMARY KEY, a INT REFERENCES p, b TEXT, c TEXT);
    CREATE INDEX of_a ON t (a);
    CREATE UNIQUE INDEX of_b ON t (b COLLATE NOCASE) WHERE a > 0;
    CREATE INDEX of_c ON t (c);
    CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT new.c; END;
    INSERT INTO p VALUES (1), (2);
    INSERT INTO t VALUES (1, 1, 'b', 'c'), (2, 2, 'd', 'e')
"""


def made_again(tmp_path: Path, selection: Selection) -> tuple[list[str], list[tuple[str, str]]]:
    """Indexes and triggers of a restored file, and what was left out."""
    path = make(tmp_path / "a.db", INDEXED)
    archive(f"sqlite:///{path}", tmp_path / "a.siard", selection)
    report = restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db")
    names = apsw.Connection(str(tmp_path / "b.db")).execute(
        "SELECT name FROM sqlite_schema WHERE type <> 'table' ORDER BY name"
    )
    return [str(name) for (name,) in names], [(item.kind, item.name) for item in report.left_out]


def test_indexes_of_the_columns_that_are_archived_come_back(tmp_path: Path) -> None:
    names, left = made_again(tmp_path, Selection(columns={"t": ("id", "a", "b")}))
    assert names == ["of_a", "of_b"]
    assert left == [("trigger", "r of main.t"), ("index", "of t")]


def test_a_table_that_loses_a_key_keeps_its_indexes_and_triggers(tmp_path: Path) -> None:
    names, left = made_again(tmp_path, Selection(where={"p": "id = 1"}))
    assert names == ["of_a", "of_b", "of_c", "r"] and left == []


def test_a_number_that_is_none_goes_through_sqlite(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, f DOUBLE, g FLOAT)")
        db.execute("INSERT INTO t VALUES (1, 'nan', 'nan'), (2, 1.5, 'inf'), (3, NULL, -0.1)")
    archive(f"duckdb:///{tmp_path}/a.duckdb", tmp_path / "a.siard")
    restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db")
    archive(f"sqlite:///{tmp_path}/b.db", tmp_path / "b.siard")
    for other in (f"sqlite:///{tmp_path}/b.db", str(tmp_path / "b.siard")):
        assert compare(str(tmp_path / "a.siard"), other).differences == ()
    restore(tmp_path / "b.siard", f"sqlite:///{tmp_path}/c.db")
    assert compare(f"sqlite:///{tmp_path}/b.db", f"sqlite:///{tmp_path}/c.db").equal
    make(tmp_path / "d.db", "CREATE TABLE t (f REAL); INSERT INTO t VALUES ('nan')")
    with pytest.raises(Unfit, match="the text 'nan' is not of the declared type REAL"):
        archive(f"sqlite:///{tmp_path}/d.db", tmp_path / "d.siard")
