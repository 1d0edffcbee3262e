"""What SQLite is given, it keeps as it is; what it would change or refuse is said in a sentence."""

from __future__ import annotations

import zipfile
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment.compare import compare
from muniment.databases.sqlite_target import create_target
from muniment.errors import DatabaseError
from muniment.sql.batch import batch_of
from muniment.sql.model import Column, Database, Schema, Table
from muniment.sql.types import Kind, parse_type
from muniment.transfer import archive, restore


def make(path: Path, sql: str) -> str:
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()
    return f"sqlite:///{path}"


def changed(folder: Path, sql: str, *changes: tuple[str, bytes, bytes]) -> Path:
    """Return an archive of what the SQL makes, with other bytes in place of some."""
    archive(make(folder / "a.db", sql), folder / "a.siard")
    with zipfile.ZipFile(folder / "a.siard") as package:
        files = {info: package.read(info) for info in package.infolist()}
    with zipfile.ZipFile(folder / "e.siard", "w") as package:
        for info, data in files.items():
            for name, old, new in changes:
                if info.filename.endswith(name):
                    assert old in data
                    data = data.replace(old, new)
            package.writestr(info, data)
    return folder / "e.siard"


def stored(
    text: str, type_: str, declared: str | None, notes: list[str] | None = None
) -> tuple[str, object]:
    """The class and value that SQLite keeps of a text in a column; DatabaseError if it must not.

    What people are told goes to ``notes``.
    """
    table = Table("t", "table0", (Column("a", parse_type(type_), declared),))
    schema = Schema("main", "schema0", tables=(table,))
    database = Database("d", database_product="SQLite 3", schemas=(schema,))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "b.db"
        with create_target(path) as target:
            target.define(database)
            piece = target.encoder(schema, table)([batch_of([[text]])])
            target.write(schema, table, [piece], lambda *_: pytest.fail("no large objects"))
            target.finish(database)
            if notes is not None:
                notes += target.notes
        sql = "SELECT typeof(a), iif(typeof(a)='real', CAST(a AS TEXT), a) FROM t"
        ((class_, value),) = apsw.Connection(str(path)).execute(sql).fetchall()
    return str(class_), value


@pytest.mark.parametrize(
    ("text", "type_"),
    [("5.0", "BIGINT"), ("1e3", "BIGINT"), ("9223372036854775808", "BIGINT"), ("1e400", "DOUBLE PRECISION"),
     ("123456789012345678.5", "DECIMAL(10,2)"), ("maybe", "BOOLEAN"), ("2", "BOOLEAN"), ("5", "DATE"),
     ("now", "TIMESTAMP"), ("2020-01-01", "TIMESTAMP"), ("5", "INTERVAL YEAR")],
)  # fmt: skip
def test_a_value_that_sqlite_would_change_is_refused(text: str, type_: str) -> None:
    with pytest.raises(
        DatabaseError, match=r"^main\.t\.a, row 1: '.*' is no .*; muniment validate"
    ):
        stored(text, type_, None)


@pytest.mark.parametrize(
    ("text", "type_"),
    [("five", "BIGINT"), ("0x10", "BIGINT"), ("", "BIGINT"), ("٥", "BIGINT"), ("abc", "DOUBLE PRECISION"),
     ("abc", "DECIMAL(5,2)"), ("now", "DATE"), ("12:00", "TIME"), ("soon", "INTERVAL YEAR")],
)  # fmt: skip
def test_a_value_of_another_type_that_sqlite_keeps_as_text_stays_and_is_told(
    text: str, type_: str
) -> None:
    notes: list[str] = []
    assert stored(text, type_, None, notes) == ("text", text)
    (note,) = notes
    assert note.startswith(f"main.t.a, row 1: {text!r} is no ") and "keeps it as text" in note


@pytest.mark.parametrize(
    ("text", "type_", "declared", "kept"),
    [("-9223372036854775808", "BIGINT", None, ("integer", -(2**63))), ("007", "BIGINT", None, ("integer", 7)),
     ("9007199254740993", "BIGINT", None, ("integer", 2**53 + 1)), ("0.30000000000000004", "DECIMAL", "NUMERIC", ("real", "0.3")),
     ("123456789012345678.5", "DECIMAL(20,1)", None, ("text", "123456789012345678.5")), ("INF", "DOUBLE PRECISION", None, ("real", "Inf")),
     ("2020-01-01T10:00:00.5", "TIMESTAMP", None, ("text", "2020-01-01 10:00:00.5")), ("1", "BOOLEAN", None, ("integer", 1)),
     ("P1Y2M", "INTERVAL YEAR TO MONTH", None, ("text", "P1Y2M")), ("X'00'", "CLOB", "INT", ("text", "X'00'"))],
)  # fmt: skip
def test_unusual_values_of_a_type_are_kept(
    text: str, type_: str, declared: str | None, kept: tuple[str, object]
) -> None:
    class_, value = stored(text, type_, declared)
    assert class_ == kept[0]
    assert value == kept[1] or float(str(value)) == float(text)


_NUMERALS = st.from_regex(r"\s?[+-]?[0-9]{0,20}\.?[0-9]{0,9}(?:e[+-]?[0-9]{1,3})?", fullmatch=True)
_DECLARED = st.sampled_from(
    [None, "INT", "TEXT", "REAL", "NUMERIC", "VARCHAR(9)", "BLOB", "DATETIME"]
)


@given(
    st.one_of(_NUMERALS, st.text(max_size=6)),
    st.sampled_from(
        ["BIGINT", "DOUBLE PRECISION", "DECIMAL(5,2)", "DECIMAL(20,2)", "DATE", "CLOB"]
    ),
    _DECLARED,
)
@example("9007199254740993", "BIGINT", "REAL")
@example("007", "CLOB", "INT")
@example("5.0", "CLOB", "NUMERIC")
@example(" 5", "CLOB", "INT")
@example("1e3", "DECIMAL(5,2)", None)
def test_sqlite_keeps_a_value_or_is_not_given_it(
    text: str, type_: str, declared: str | None
) -> None:
    try:
        class_, value = stored(text, type_, declared)
    except DatabaseError:
        return
    kind = parse_type(type_).kind
    if value == text:
        return
    if kind in (Kind.INTEGER, Kind.DECIMAL):
        assert Decimal(str(value)) == Decimal(text.strip())
    elif kind is Kind.FLOAT and class_ != "text":
        assert float(str(value)) == float(text)
    else:
        assert str(value) == text


def test_text_that_a_column_of_numbers_would_change_is_refused_with_a_way_out(
    tmp_path: Path,
) -> None:
    evil = changed(
        tmp_path,
        "CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('x'), ('007')",
        ("metadata.xml", b"<typeOriginal>TEXT<", b"<typeOriginal>INT<"),
        ("metadata.xml", b"(a TEXT)", b"(a INT)"),
    )
    with pytest.raises(DatabaseError, match=r"main\.t\.a, row 2: .* --sql-types"):
        restore(evil, f"sqlite:///{tmp_path}/b.db")
    restore(evil, f"sqlite:///{tmp_path}/b.db", original_types=False)
    rows = apsw.Connection(str(tmp_path / "b.db")).execute("SELECT a FROM t").fetchall()
    assert rows == [("x",), ("007",)]


MANY = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n LIMIT 20000) "


def test_the_row_of_a_value_that_is_refused_is_counted_from_the_first(tmp_path: Path) -> None:
    evil = changed(
        tmp_path,
        f"CREATE TABLE t (a INT); {MANY} INSERT INTO t SELECT x FROM n",
        ("table0.xml", b"<c1>19<", b"<c1>many<"),  # which SQLite would keep
        ("table0.xml", b"<c1>19876<", b"<c1>1.0<"),
    )
    with pytest.raises(DatabaseError, match=r"main\.t\.a, row 19876: '1\.0' is no BIGINT"):
        restore(evil, f"sqlite:///{tmp_path}/b.db")
    assert not (tmp_path / "b.db").exists()


@pytest.mark.parametrize("large", ["x'00'", "zeroblob(5000)", "zeroblob(2000000)"])
def test_rows_that_break_a_check_come_back_with_it(tmp_path: Path, large: str) -> None:
    url = make(
        tmp_path / "a.db",
        "CREATE TABLE t (a INT, b BLOB, CONSTRAINT positive CHECK (a > 0), CHECK (a < 1000000));"
        f"PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES (1, NULL), (-1, {large}), (2, NULL);"
        f"{MANY} INSERT INTO t SELECT x % 700, NULL FROM n",
    )
    archive(url, tmp_path / "a.siard")
    report = restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db")
    assert report.notes == (
        "rows of t break the check positive; it is there, and new rows have to meet it",
    )
    assert compare(str(tmp_path / "a.siard"), f"sqlite:///{tmp_path}/b.db").equal
    with pytest.raises(apsw.ConstraintError):
        apsw.Connection(str(tmp_path / "b.db")).execute("INSERT INTO t VALUES (0, NULL)")


PLAIN = ("metadata.xml", b"Original definition in SQLite", b"Nothing")
BROKEN = {
    "NOT NULL constraint failed": (
        "CREATE TABLE t (a INT, b INT NOT NULL); INSERT INTO t VALUES (1, 1), (2, 2)",
        ("table0.xml", b"<c2>2</c2>", b""),
    ),
    "UNIQUE constraint failed": (
        "CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b)); INSERT INTO t VALUES (1, 1), (1, 2)",
        ("metadata.xml", b"<column>b</column>", b""),
    ),
}


@pytest.mark.parametrize("said", BROKEN)
def test_rows_that_break_what_their_archive_says_are_refused_with_a_way_out(
    tmp_path: Path, said: str
) -> None:
    sql, change = BROKEN[said]
    evil = changed(tmp_path, sql, change, PLAIN)
    sentence = rf"^main\.t, row 2: SQLite says: {said}: t\..*; --no-constraints restores the rows"
    with pytest.raises(DatabaseError, match=sentence):
        restore(evil, f"sqlite:///{tmp_path}/b.db")
    restore(evil, f"sqlite:///{tmp_path}/b.db", constraints=False)
    rows = apsw.Connection(str(tmp_path / "b.db")).execute("SELECT count(*) FROM t").fetchall()
    assert rows == [(2,)]


@pytest.mark.parametrize("said", ["NOT NULL constraint failed", "CHECK constraint failed"])
def test_duckdb_says_the_same_way_out(tmp_path: Path, said: str) -> None:
    check = (
        "CREATE TABLE t (a INT, b INT, CHECK (a > -9)); INSERT INTO t VALUES (1, 1), (-1, 2)",
        ("metadata.xml", b"&gt; -9", b"&gt; 0"),
    )
    sql, change = BROKEN.get(said, check)
    evil = changed(tmp_path, sql, change, PLAIN)
    with pytest.raises(
        DatabaseError, match=rf"main\.t: .*{said}.*; --no-constraints restores rows"
    ):
        restore(evil, f"duckdb:///{tmp_path}/b.duckdb")
    report = restore(evil, f"duckdb:///{tmp_path}/b.duckdb", constraints=False)
    assert report.tables[0].rows == 2


def test_a_large_object_comes_back_beside_computed_columns(tmp_path: Path) -> None:
    url = make(
        tmp_path / "a.db",
        "CREATE TABLE g (id INTEGER PRIMARY KEY, b BLOB,"
        " h TEXT GENERATED ALWAYS AS (hex(substr(b, 1, 4))) STORED);"
        "INSERT INTO g (b) VALUES (randomblob(2000000))",
    )
    archive(url, tmp_path / "a.siard")
    restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db")
    assert compare(url, f"sqlite:///{tmp_path}/b.db").equal


def test_years_of_five_digits_keep_them() -> None:
    assert stored("12024-01-31T00:00:00", "TIMESTAMP", None) == ("text", "12024-01-31 00:00:00")
