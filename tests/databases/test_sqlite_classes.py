"""Values of any class in any column of SQLite: archived as text, told apart, and back as they were."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muniment.compare import Comparison, compare
from muniment.siard import open_siard, validate
from muniment.siard.descriptions import set_descriptions
from muniment.siard.header import read_metadata, replace_metadata
from muniment.sql.classes import Classes, classes_in, with_classes
from muniment.sql.original import notes_in
from muniment.sql.selection import Selection
from muniment.transfer import ArchiveOptions, Description, archive, restore

ALL_TEXT = Selection(as_text=("*",))


def make(path: Path, *statements: str) -> str:
    db = apsw.Connection(str(path))
    for statement in statements:
        db.execute(statement)
    db.close()
    return f"sqlite:///{path}"


def content(url: str) -> list[Any]:
    """The class and the very bytes of every value."""
    db: Any = apsw.Connection(url.removeprefix("sqlite:///"))
    names = [row[1] for row in db.execute("PRAGMA table_xinfo(t)")]
    # CAST leaves numbers to be printed; those of one class are equal if they print alike.
    cells = ", ".join(f'typeof("{n}"), CAST("{n}" AS BLOB)' for n in names)
    rows = db.execute(f"SELECT {cells} FROM t").fetchall()
    db.close()
    return [tuple(row) for row in rows]


LOOK_ALIKES = (
    "1", "-7", "0", "00", "1.5", "1.50", "1e5", "1.0e+300", "Inf", "-Inf", "inf", "X'00FF'", "X''",
    "x'00'", "X'0'", "'1'", "'", "''", "CAST(X'FF' AS TEXT)", "CAST(X'FF' AS TEXT) ", "", " 1",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "NULL", "é", "a\x00b",
)  # fmt: skip
VALUES = (
    st.sampled_from(LOOK_ALIKES)
    | st.sampled_from((1, -7, 0, 2**63 - 1, -(2**63), 1.5, 1e300, 0.1 + 0.2, math.inf, -math.inf))
    | st.sampled_from((b"", b"\x00\xff", b"1", b"one", b"X'00FF'"))
    | st.sampled_from((b"\xff", b"caf\xe9", b"\xc3", b"a\x00\xff")).map(lambda raw: ("text", raw))
    | st.none()
)
DECLARED = ("", "INTEGER", "TEXT", "BLOB", "REAL", "NUMERIC", "VARCHAR(3)", "DATE", "POINT", "ANY")


def filled(path: Path, declared: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    db: Any = apsw.Connection(str(path))
    db.execute(f"CREATE TABLE t ({', '.join(f'c{n} {d}' for n, d in enumerate(declared))})")
    for row in rows:
        marks = ", ".join("CAST(? AS TEXT)" if isinstance(v, tuple) else "?" for v in row)
        values = tuple(v[1] if isinstance(v, tuple) else v for v in row)
        db.execute(f"INSERT INTO t VALUES ({marks})", values)
    db.close()
    return f"sqlite:///{path}"


@settings(max_examples=150, deadline=None)
@given(
    declared=st.tuples(st.sampled_from(DECLARED), st.sampled_from(DECLARED)),
    rows=st.lists(st.tuples(VALUES, VALUES), max_size=8),
)
@example(declared=("", "TEXT"), rows=[(1, "a"), ("1", b"a"), ("X'00'", None), (b"\x00", "X'61'")])
@example(declared=("", "TEXT"), rows=[(("text", b"\xff"), "CAST(X'FF' AS TEXT)"), (1, "b")])
def test_values_of_any_class_come_back_as_they_were(
    declared: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> None:
    with TemporaryDirectory() as folder:
        source = filled(Path(folder, "a.db"), declared, rows)
        siard, back = Path(folder, "a.siard"), f"sqlite:///{folder}/b.db"
        archive(source, siard, ALL_TEXT)
        assert [f.message for f in validate(siard) if f.severity == "error"] == []
        restore(siard, back)
        assert content(back) == content(source)
        for pair in ((source, str(siard)), (back, str(siard)), (source, back)):
            assert compare(*pair).differences == (), pair


@settings(max_examples=150, deadline=None)
@given(
    declared=st.sampled_from(DECLARED),
    values=st.lists(VALUES, min_size=1, max_size=5),
    position=st.integers(0, 4),
    other=VALUES,
)
@example(declared="", values=[1, "one"], position=0, other="1")
@example(declared="", values=[1, "1"], position=0, other="1")
@example(declared="TEXT", values=["a", b"a"], position=0, other=b"a")
@example(declared="TEXT", values=["X'61'", "a"], position=0, other=b"a")
def test_equal_is_said_of_equal_values_alone(
    declared: str, values: list[Any], position: int, other: Any
) -> None:
    changed = [other if k == position % len(values) else v for k, v in enumerate(values)]
    with TemporaryDirectory() as folder:
        one = filled(Path(folder, "a.db"), (declared,), [(v,) for v in values])
        two = filled(Path(folder, "b.db"), (declared,), [(v,) for v in changed])
        same = sorted(content(one)) == sorted(content(two))
        assert compare(one, two).equal == same
        archive(one, Path(folder, "a.siard"), ALL_TEXT)
        assert compare(two, f"{folder}/a.siard").equal == same
        archive(two, Path(folder, "b.siard"), ALL_TEXT)
        assert compare(f"{folder}/a.siard", f"{folder}/b.siard").equal == same


def test_two_values_that_change_places_are_found(tmp_path: Path) -> None:
    rows = [(1, "x"), ("1", "y")]
    one = filled(tmp_path / "a.db", ("", "TEXT"), rows)
    two = filled(tmp_path / "b.db", ("", "TEXT"), [("1", "x"), (1, "y")])
    assert not compare(one, two).equal
    archive(one, tmp_path / "a.siard")
    assert not compare(two, str(tmp_path / "a.siard")).equal
    assert compare(one, str(tmp_path / "a.siard")).equal


def test_only_a_row_that_differs_is_named_where_one_side_has_no_quotation_marks(
    tmp_path: Path,
) -> None:
    table = "CREATE TABLE t (id INTEGER PRIMARY KEY, c)"
    insert = "INSERT INTO t VALUES (1, 1), (2, 'one'), (3, 'two'), (4, {})"
    one = make(tmp_path / "a.db", table, insert.format("'4'"))
    two = make(tmp_path / "b.db", table, insert.format("'four'"))
    archive(one, tmp_path / "a.siard")
    archive(two, tmp_path / "b.siard")
    for a, b in ((one, two), (one, f"{tmp_path}/b.siard"), (two, f"{tmp_path}/a.siard")):
        found = compare(a, b)
        assert [d.where for d in found.differences] == ["main.t.c values", "main.t (id='4').c"]


def test_the_other_row_of_a_key_is_found_however_many_differ(tmp_path: Path) -> None:
    table = "CREATE TABLE t (id INTEGER PRIMARY KEY, c TEXT)"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
    one = make(tmp_path / "a.db", table, f"INSERT INTO t {numbers} SELECT i, 'a' || i FROM n")
    two = make(tmp_path / "b.db", table, f"INSERT INTO t {numbers} SELECT i, 'b' || i FROM n")
    differences = compare(one, two).differences
    assert len(differences) == 10
    for difference in differences:
        number = difference.where.removeprefix("main.t (id='").removesuffix("').c")
        assert (difference.a, difference.b) == (f"'a{number}'", f"'b{number}'")


def test_a_settings_table_comes_back_with_its_numbers_and_is_told(tmp_path: Path) -> None:
    source = make(
        tmp_path / "a.db",
        "CREATE TABLE t (name TEXT PRIMARY KEY, value)",
        "INSERT INTO t VALUES ('version', 3), ('scale', 0.5), ('title', 'Trees'), ('key', x'01')",
    )
    report = archive(source, tmp_path / "a.siard")
    assert report.notes == (
        "main.t.value has no declared type and holds integer, real, text and blob values; "
        "it was archived as text",
    )
    with open_siard(tmp_path / "a.siard") as opened:
        column = opened.describe().schema("main").table("t").columns[1]
    assert notes_in(column.description) == [
        "SQLite holds integer, real, text and blob values here."
    ]
    assert restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db").notes == ()
    assert content(f"sqlite:///{tmp_path}/b.db") == content(source)


def test_what_the_archive_says_of_itself_outlives_every_description(tmp_path: Path) -> None:
    source = make(
        tmp_path / "a.db",
        "CREATE TABLE t (a INT, b, c)",
        "INSERT INTO t VALUES (1, 1, 'c'), (2, 'two', 'c'), (3, '3', 'c')",
    )
    words = Description(tables={"t": "Numbers."}, columns={"main.t.b": "Any of them."})
    siard = tmp_path / "a.siard"
    chosen = Selection(where={"t": "a < 4"}, columns={"t": ("a", "b")})
    archive(source, siard, chosen, ArchiveOptions(description=words))
    table = described(siard)
    assert table.description.startswith("Numbers.\n")
    first = notes_in(table.description), notes_in(table.columns[1].description)
    assert first == (
        ["Columns that were not archived: c.", "Only the rows where a < 4 were archived."],
        ["SQLite holds integer and text values here; its texts stand in quotation marks."],
    )
    changes = {("table", "main.t"): "Other words.", ("column", "main.t.b"): ""}
    replace_metadata(siard, set_descriptions(read_metadata(siard), changes), None)
    table = described(siard)
    assert (notes_in(table.description), notes_in(table.columns[1].description)) == first
    assert table.description.startswith("Other words.\nAbout this archive: ")
    assert table.columns[1].description.startswith("About this archive: ")
    restore(siard, f"sqlite:///{tmp_path}/b.db")
    assert [row[2:] for row in content(f"sqlite:///{tmp_path}/b.db")] == [
        row[2:4] for row in content(source)
    ]


def described(siard: Path) -> Any:
    with open_siard(siard) as source:
        return source.describe().schema("main").table("t")


@given(
    names=st.sets(st.sampled_from(("integer", "real", "text", "undecodable text", "blob"))),
    quoted=st.booleans(),
    words=st.none() | st.sampled_from(("Words.", "Two\nlines.\n", "About this archive")),
)
def test_the_note_on_classes_is_read_as_it_was_written(
    names: set[str], quoted: bool, words: str | None
) -> None:
    classes = Classes(frozenset(names), quoted)
    assert classes_in(with_classes(words, classes)) == classes


@pytest.mark.parametrize("note", ["SQLite holds dogs values here.", "SQLite holds everything."])
def test_notes_of_others_are_not_misread(tmp_path: Path, note: str) -> None:
    found = classes_in(f"About this archive: {note}")
    assert found is None or found == Classes(frozenset())


def test_texts_in_quotation_marks_go_to_other_products_as_they_are(tmp_path: Path) -> None:
    source = make(tmp_path / "a.db", "CREATE TABLE t (c)", "INSERT INTO t VALUES (1), ('1')")
    archive(source, tmp_path / "a.siard")
    restore(tmp_path / "a.siard", f"duckdb:///{tmp_path}/b.duckdb")
    result: Comparison = compare(source, f"duckdb:///{tmp_path}/b.duckdb")
    assert result.equal
    shutil.copy(tmp_path / "a.db", tmp_path / "c.db")
    make(tmp_path / "c.db", "UPDATE t SET c = 2 WHERE typeof(c) = 'integer'")
    assert not compare(f"sqlite:///{tmp_path}/c.db", f"duckdb:///{tmp_path}/b.duckdb").equal


def test_views_of_columns_without_a_type_are_archived_by_their_content(tmp_path: Path) -> None:
    source = make(
        tmp_path / "a.db",
        "CREATE TABLE t (a, b BLOB, c, d ANY)",
        "INSERT INTO t VALUES (1, x'00', 'one', 1), (2, NULL, 'two', 'x')",
        "CREATE VIEW v AS SELECT a, b, c, d, a || '' AS e FROM t",
    )
    archive(source, tmp_path / "a.siard", Selection(views=("v",)))
    with open_siard(tmp_path / "a.siard") as opened:
        columns = opened.describe().schema("main").table("v").columns
    assert [str(c.type) for c in columns] == ["BIGINT", "BLOB", "CLOB", "CLOB", "CLOB"]
    restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db")
    db: Any = apsw.Connection(str(tmp_path / "b.db"))
    rows = db.execute("SELECT a, b, c, d, typeof(e) FROM v").fetchall()
    assert rows == [(1, b"\x00", "one", 1, "text"), (2, None, "two", "x", "text")]


def test_the_order_of_rows_changes_no_value_of_a_strict_table(tmp_path: Path) -> None:
    source = make(
        tmp_path / "a.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a ANY) STRICT",
        "INSERT INTO t VALUES (1, '12'), (2, 12), (3, x'12'), (4, 'x')",
    )
    archive(source, tmp_path / "a.siard", Selection(order={"t": "id"}))
    restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db")
    assert content(f"sqlite:///{tmp_path}/b.db") == content(source)


@pytest.mark.parametrize("table", ["t (id, c)", "t (id TEXT PRIMARY KEY, c) WITHOUT ROWID"])
def test_large_values_of_any_class_come_back(tmp_path: Path, table: str) -> None:
    db: Any = apsw.Connection(str(tmp_path / "a.db"))
    db.execute(f"CREATE TABLE {table}")
    long = ["x" * 10_000, b"\x00" * 9_000, "'" * 5_000, "é" * 3_000, "X'00'", 1, "1", None, b""]
    db.executemany("INSERT INTO t VALUES (?, ?)", enumerate(long))
    broken = (99, b"\xe9" * 5_000)
    db.execute("INSERT INTO t VALUES (?, CAST(? AS TEXT)), (100, CAST(x'e9' AS TEXT))", broken)
    db.close()
    source, back = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    archive(source, tmp_path / "a.siard")
    restore(tmp_path / "a.siard", back)
    assert sorted(content(back), key=repr) == sorted(content(source), key=repr)
    assert compare(source, back).equal and compare(back, str(tmp_path / "a.siard")).equal


def test_numbers_at_the_edge_of_integers_stay_what_they_are(tmp_path: Path) -> None:
    rows = [(2.0**63, 1.5), (-(2.0**63), 2.0**63), (-(2**63), 2**63 - 1), (1e19, 5)]
    source = filled(tmp_path / "a.db", ("NUMERIC", "DECIMAL(10,2)"), rows)
    archive(source, tmp_path / "a.siard")
    assert [f.message for f in validate(tmp_path / "a.siard") if f.severity == "error"] == []
    back = f"sqlite:///{tmp_path}/b.db"
    restore(tmp_path / "a.siard", back)
    assert content(back) == content(source)
    assert compare(source, str(tmp_path / "a.siard")).equal
    other = filled(tmp_path / "c.db", ("NUMERIC", "DECIMAL(10,2)"), [(-(2**63), 1.5), *rows[1:]])
    assert not compare(source, other).equal


@pytest.mark.parametrize("large", ["y" * 5000, b"\x00" * 5000])
@pytest.mark.parametrize("other", [1, "1", 1.5, b"\xff"])
def test_only_the_row_is_named_that_got_a_value_of_another_class(
    tmp_path: Path, large: str | bytes, other: object
) -> None:
    rows = [(1, large), (2, large[:3]), (3, large[:2])]
    source = filled(tmp_path / "a.db", ("INTEGER PRIMARY KEY", ""), rows)
    changed = filled(tmp_path / "b.db", ("INTEGER PRIMARY KEY", ""), [*rows[:2], (3, other)])
    archive(source, tmp_path / "a.siard")
    for pair in ((source, changed), (str(tmp_path / "a.siard"), changed), (changed, source)):
        found = compare(*pair)
        assert not found.equal
        named = {d.where for d in found.differences if "(" in d.where}
        assert named == {"main.t (c0='3').c1"}


def test_numbers_in_columns_of_any_type_come_back_as_numbers(tmp_path: Path) -> None:
    source = make(
        tmp_path / "a.db",
        "CREATE TABLE t (a ANY, b ANY, c ANY) STRICT",
        "INSERT INTO t VALUES (5, 1.5, x'00'), (6, 2.0, x'01')",
    )
    archive(source, tmp_path / "a.siard")
    back = f"sqlite:///{tmp_path}/b.db"
    restore(tmp_path / "a.siard", back)
    assert content(back) == content(source)


def test_bytes_that_are_longer_than_declared_widen_the_type(tmp_path: Path) -> None:
    rows = [(b"\x00" * 9, b"\x00"), (None, b"\x00" * 3)]
    source = filled(tmp_path / "a.db", ("VARBINARY(5)", "BINARY(2)"), rows)
    report = archive(source, tmp_path / "a.siard")
    assert "main.t.c0 is declared VARBINARY(5) and holds more" in "\n".join(report.notes)
    assert [f.message for f in validate(tmp_path / "a.siard") if f.severity == "error"] == []
    restore(tmp_path / "a.siard", f"sqlite:///{tmp_path}/b.db")
    assert content(f"sqlite:///{tmp_path}/b.db") == content(source)
    assert compare(source, str(tmp_path / "a.siard")).equal


def test_keys_of_numbers_with_text_that_is_not_unicode_are_judged(tmp_path: Path) -> None:
    source = make(
        tmp_path / "a.db",
        "CREATE TABLE t (a BIGINT PRIMARY KEY REFERENCES t(a)) WITHOUT ROWID",
        "INSERT INTO t VALUES (1), (CAST(x'fe' AS TEXT))",
    )
    archive(source, tmp_path / "a.siard", ALL_TEXT)
    back = f"sqlite:///{tmp_path}/b.db"
    restore(tmp_path / "a.siard", back)
    assert content(back) == content(source)
    assert compare(source, back).equal
