"""Keys that the rows of an SQLite file break are no keys of its archive, and come back with it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muniment.compare import compare
from muniment.siard import open_siard, validate
from muniment.sql.model import Table
from muniment.sql.original import notes_in, split_original
from muniment.sql.selection import Selection
from muniment.transfer import Report, archive, restore


def make(path: Path, sql: str) -> Path:
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()
    return path


def travel(folder: Path, selection: Selection | None = None) -> tuple[Report, Report]:
    """Archive a.db, validate that, restore it, and compare all three; return both reports."""
    source, siard, back = f"sqlite:///{folder}/a.db", folder / "a.siard", f"sqlite:///{folder}/b.db"
    first = archive(source, siard, selection)
    assert [f.message for f in validate(siard) if f.severity == "error"] == []
    second = restore(siard, back)
    if selection is None:
        assert compare(source, str(siard)).differences == ()
        assert compare(source, back).differences == ()
    assert compare(back, str(siard)).equal
    return first, second


def archived(folder: Path, name: str) -> Table:
    with open_siard(folder / "a.siard") as source:
        return source.describe().schema("main").table(name)


PARENT = "CREATE TABLE p (id INTEGER PRIMARY KEY, n VARCHAR(9)); INSERT INTO p VALUES (1, 'a'), (2, 'b');"


def test_a_foreign_key_that_rows_break_is_a_statement_alone(tmp_path: Path) -> None:
    make(
        tmp_path / "a.db",
        PARENT + "CREATE TABLE c (x INT REFERENCES p, y INT REFERENCES p (id) ON DELETE CASCADE);"
        "INSERT INTO c VALUES (1, 7), (2, NULL)",
    )
    first, second = travel(tmp_path)
    assert first.notes == (
        "key fk_c_2 of main.c is archived as a statement alone: not all rows obey it",
    )
    assert second.notes == ("rows of c refer to rows that p does not have",)
    table = archived(tmp_path, "c")
    assert [key.name for key in table.foreign_keys] == ["fk_c_1"]
    _, original = split_original(table.description)
    assert notes_in(table.description) == [
        "The key fk_c_2 (y) to p (id) is a statement alone: not all rows obey it."
    ]
    assert original and "REFERENCES p (id) ON DELETE CASCADE" in original.statements[0]
    keys = apsw.Connection(str(tmp_path / "b.db")).execute("PRAGMA foreign_key_list(c)").fetchall()
    assert [(key[3], key[6]) for key in keys] == [("y", "CASCADE"), ("x", "NO ACTION")]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("x INT REFERENCES nowhere (id)", "there is no table nowhere"),
        ("x INT REFERENCES v (id)", "there is no table v"),
        ("x INT REFERENCES p (other)", "p has no column other"),
        ("x VARCHAR(9) REFERENCES p (n)", "p has no key of n"),
        ("x INT, y INT, FOREIGN KEY (x, y) REFERENCES p", "p has no key for it"),
        ("x INT, FOREIGN KEY (x) REFERENCES q", "q has no key for it"),
        ("x BOOLEAN REFERENCES p", "x is BOOLEAN, but id BIGINT"),
    ],
)
def test_a_foreign_key_that_leads_nowhere_is_a_statement_alone(
    tmp_path: Path, key: str, reason: str
) -> None:
    make(
        tmp_path / "a.db",
        PARENT + f"CREATE VIEW v AS SELECT 1 AS id; CREATE TABLE q (a INT); CREATE TABLE c ({key});"
        "INSERT INTO c (x) VALUES (1)",
    )
    first, _ = travel(tmp_path)
    assert first.notes == (f"key fk_c_1 of main.c is archived as a statement alone: {reason}",)
    back = apsw.Connection(str(tmp_path / "b.db"))
    assert back.execute("PRAGMA foreign_key_list(c)").fetchall()


def test_null_in_a_primary_key_makes_it_a_candidate_key(tmp_path: Path) -> None:
    make(
        tmp_path / "a.db",
        "CREATE TABLE p (a VARCHAR(9), b INT, PRIMARY KEY (a, b));"
        "INSERT INTO p VALUES ('x', NULL), ('x', NULL), (NULL, 1), ('x', 1);"
        "CREATE TABLE c (a VARCHAR(9), b INT, FOREIGN KEY (a, b) REFERENCES p);"
        "INSERT INTO c VALUES ('x', 1), ('y', NULL)",
    )
    first, second = travel(tmp_path)
    assert first.notes == ("key pk_p of main.p is archived as a candidate key: NULL stands in it",)
    assert not second.notes and not second.left_out
    table = archived(tmp_path, "p")
    assert table.primary_key is None
    assert [key.columns for key in table.candidate_keys] == [("a", "b")]
    assert len(archived(tmp_path, "c").foreign_keys) == 1


def test_values_that_look_alike_as_text_are_no_key(tmp_path: Path) -> None:
    make(tmp_path / "a.db", "CREATE TABLE t (a PRIMARY KEY); INSERT INTO t VALUES (1), ('1')")
    first, second = travel(tmp_path)
    assert "main.t is archived as a statement alone: not all rows obey it" in first.notes[-1]
    assert [item.kind for item in second.left_out] == ["key"]


def test_a_unique_index_with_twins_is_no_key(tmp_path: Path) -> None:
    """Somebody wrote into the catalogue of SQLite: no other way leads there."""
    make(
        tmp_path / "a.db",
        "CREATE TABLE t (a VARCHAR(9)); CREATE INDEX i ON t (a);"
        "INSERT INTO t VALUES ('x'), ('x'), (NULL), (NULL); PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = 'CREATE UNIQUE INDEX i ON t (a)' WHERE name = 'i'",
    )
    first, second = travel(tmp_path)
    assert first.notes == (
        "key i of main.t is archived as a statement alone: not all rows obey it",
    )
    assert [item.kind for item in second.left_out] == ["index"]


def test_the_order_of_an_index_decides_what_is_unique(tmp_path: Path) -> None:
    make(
        tmp_path / "a.db",
        "CREATE TABLE t (a VARCHAR(9) COLLATE NOCASE, b VARCHAR(9) UNIQUE COLLATE NOCASE);"
        "CREATE UNIQUE INDEX i ON t (a COLLATE BINARY); INSERT INTO t VALUES ('x', 'x'), ('X', 'y')",
    )
    first, _ = travel(tmp_path)
    assert not first.notes
    assert len(archived(tmp_path, "t").candidate_keys) == 2


def test_rows_that_are_left_out_break_no_key(tmp_path: Path) -> None:
    make(
        tmp_path / "a.db",
        PARENT + "CREATE TABLE c (x INT PRIMARY KEY REFERENCES p, y INT);"
        "INSERT INTO c VALUES (1, 1), (7, 2), (NULL, 2)",
    )
    first, _ = travel(tmp_path, Selection(where={"c": "y = 1 OR x IS 2"}))
    assert not first.notes
    table = archived(tmp_path, "c")
    assert table.primary_key and len(table.foreign_keys) == 1


@pytest.mark.parametrize("gap", [1, 5_000_000])
@pytest.mark.parametrize("goal", ["INTEGER PRIMARY KEY", "INT UNIQUE", "BIGINT NOT NULL UNIQUE"])
@pytest.mark.parametrize("value", [-5, -4, 0, 1, 3, 4, 2**63 - 1, -(2**63), None])
def test_numbers_are_looked_up_in_any_range(
    tmp_path: Path, gap: int, goal: str, value: int | None
) -> None:
    there = {-4, -3, 1, 3, 3 + gap}
    rows = ", ".join(f"({number})" for number in sorted(there))
    make(
        tmp_path / "a.db",
        f"CREATE TABLE p (id {goal}); INSERT INTO p VALUES {rows};"
        "CREATE TABLE c (x INT REFERENCES p (id))",
    )
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.executemany("INSERT INTO c VALUES (?)", [(1,), (value,)])
    db.close()
    first, _ = travel(tmp_path)
    assert bool(first.notes) == (value is not None and value not in there)


_VALUES = st.one_of(st.none(), st.integers(-2, 6), st.sampled_from(["a", "A", "a ", "1", "01", ""]))
_TYPES = st.sampled_from(["INTEGER", "INT", "VARCHAR(9)", "TEXT", "REAL", "NUMERIC", "BOOLEAN", ""])
_KEYS = st.sampled_from(["", "PRIMARY KEY", "UNIQUE", "UNIQUE COLLATE NOCASE", "COLLATE NOCASE"])


@settings(max_examples=40)
@given(
    types=st.tuples(_TYPES, _TYPES, _TYPES),
    key=_KEYS,
    parents=st.lists(_VALUES, max_size=5),
    children=st.lists(st.tuples(_VALUES, _VALUES), max_size=5),
)
@example(("INTEGER", "REAL", "VARCHAR(9)"), "PRIMARY KEY", [1, 2], [(1, 1), (2, 2)])
@example(("INTEGER", "VARCHAR(9)", "INT"), "PRIMARY KEY", [1, 2], [("01", None)])
@example(("VARCHAR(9)", "VARCHAR(9)", "INT"), "UNIQUE COLLATE NOCASE", ["a", 1], [("A", 1)])
@example(("", "TEXT", "VARCHAR(9)"), "UNIQUE", ["A", "", 1], [("1", 0)])
def test_the_archive_of_any_keys_and_rows_is_valid(
    types: tuple[str, str, str], key: str, parents: list[object], children: list[tuple[object, ...]]
) -> None:
    """SQLite takes what it is given; --as-text is for values of another class than their column."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        db = apsw.Connection(str(folder / "a.db"))
        db.execute(
            f"CREATE TABLE p (k {types[0]} {key}); CREATE TABLE c (x {types[1]} REFERENCES p (k), "
            f"y {types[2]} REFERENCES p (k) ON DELETE SET NULL)"
        )
        for value in parents:
            with suppress(apsw.MismatchError):  # the number of a row has to be one
                db.execute("INSERT OR IGNORE INTO p VALUES (?)", (value,))
        db.executemany("INSERT INTO c VALUES (?, ?)", children)
        db.close()
        travel(folder, Selection(as_text=("*",)) if _has_misfits(folder / "a.db") else None)


def _has_misfits(path: Path) -> bool:
    """Whether a column has values of another class than its type: such have to be asked for."""
    wanted = {"INTEGER": ("integer",), "INT": ("integer",), "VARCHAR(9)": ("text",),
              "TEXT": ("text",), "REAL": ("real",), "NUMERIC": ("integer", "real")}  # fmt: skip
    db = apsw.Connection(str(path))
    for table in ("p", "c"):
        for row in db.execute(f"PRAGMA table_info({table})").fetchall():
            column, declared = row[1], row[2]
            sql = f"SELECT DISTINCT typeof({column}), {column} FROM {table}"
            for class_, value in db.execute(sql).fetchall():
                odd = declared == "BOOLEAN" and value not in (None, 0, 1)
                if odd or class_ not in (*wanted.get(str(declared), (class_,)), "null"):
                    return True
    return False


def test_a_collation_that_only_another_program_knows_does_no_harm(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.create_collation("theirs", lambda a, b: (str(a) > str(b)) - (str(a) < str(b)))
    db.execute(
        "CREATE TABLE p (k VARCHAR(9) COLLATE theirs UNIQUE); INSERT INTO p VALUES ('x'), ('y');"
        "CREATE TABLE c (x VARCHAR(9) REFERENCES p (k)); INSERT INTO c VALUES ('x')"
    )
    db.close()
    report = archive(f"sqlite:///{tmp_path}/a.db", tmp_path / "a.siard")
    assert not report.notes
    assert len(archived(tmp_path, "c").foreign_keys) == 1
    assert [f for f in validate(tmp_path / "a.siard") if f.severity == "error"] == []


def test_null_among_the_numbers_of_a_parent_fills_no_gap(tmp_path: Path) -> None:
    make(
        tmp_path / "a.db",
        "CREATE TABLE p (k INTEGER UNIQUE); INSERT INTO p VALUES (1), (NULL), (3);"
        "CREATE TABLE c (r INTEGER REFERENCES p (k)); INSERT INTO c VALUES (2)",
    )
    first, _ = travel(tmp_path)
    assert [note.partition(" is ")[0] for note in first.notes] == ["key fk_c_1 of main.c"]
    assert archived(tmp_path, "c").foreign_keys == ()


def test_the_name_of_a_collation_may_be_in_small_letters(tmp_path: Path) -> None:
    make(
        tmp_path / "a.db",
        "CREATE TABLE p (a VARCHAR(10) COLLATE nocase PRIMARY KEY NOT NULL);"
        "INSERT INTO p VALUES ('A');"
        "CREATE TABLE c (r VARCHAR(10) REFERENCES p (a)); INSERT INTO c VALUES ('a')",
    )
    first, _ = travel(tmp_path)
    assert first.notes == ()
    assert len(archived(tmp_path, "c").foreign_keys) == 1
