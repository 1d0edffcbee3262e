"""Comparisons: equal is proved, and a difference is named to the column."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import duckdb
import pytest

from archives import column, make_archive
from muniment import compare as compare_module
from muniment.compare import Comparison, compare, sides
from muniment.compare import tables as tables_module
from muniment.definitions import compare_definitions
from muniment.errors import UsageError
from muniment.sql.model import Database, Schema, Table, View
from muniment.sql.selection import Selection
from muniment.transfer import ArchiveOptions, archive, restore


def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def siard(shop: Path, tmp_path: Path) -> Path:
    archive(url(shop), tmp_path / "shop.siard")
    return tmp_path / "shop.siard"


@pytest.fixture(params=["in one process", "in two"])
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in two":
        monkeypatch.setattr(compare_module, "_SMALL", 0)


def compare_after(shop: Path, siard: Path, change: str) -> Comparison:
    changed = shop.with_name("changed.db")
    shutil.copy(shop, changed)
    db = apsw.Connection(str(changed))
    db.execute(change)
    db.close()
    return compare(url(changed), str(siard), jobs=2)


@pytest.mark.usefixtures("both")
def test_an_archive_equals_its_source(shop: Path, siard: Path) -> None:
    result = compare(url(shop), str(siard), jobs=2, ordered=True)
    assert result.equal and result.differences == ()
    for table in result.tables:
        assert table.rows[0] == table.rows[1]
        assert table.digest[0] == table.digest[1] and len(table.digest[0] or "") == 64
        assert table.ordered_digest[0] == table.ordered_digest[1] is not None


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A table of several parts, with rows that make much XML."""
    path = tmp_path / "wide.db"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE wide (id INTEGER PRIMARY KEY, text VARCHAR(100), price DECIMAL(9,2))")
    with db:
        db.execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 150000) "
            "INSERT INTO wide SELECT n, 'text & ' || n, n / 100.0 FROM n"
        )
    db.close()
    archive(url(path), tmp_path / "wide.siard")
    return path


@pytest.mark.parametrize("most", [1 << 26, 1 << 16], ids=["held", "more than is held"])
def test_parts_are_compared_by_several_threads(
    wide: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(compare_module, "_SMALL", 0)
    siard = wide.with_suffix(".siard")
    alone = compare(url(wide), str(siard), jobs=1)
    monkeypatch.setattr(sides, "_MOST_XML", most)
    told: list[int] = []
    together = compare(
        url(wide), str(siard), jobs=2, ordered=False, progress=lambda seen: told.append(seen.rows)
    )
    assert alone.equal and together.equal
    assert together.tables[0].digest == alone.tables[0].digest
    assert told == sorted(told) and told[-1] == 150_000


@pytest.mark.parametrize("where", [1, 65_536, 65_537, 150_000])
def test_a_difference_in_any_part_is_found(
    wide: Path, monkeypatch: pytest.MonkeyPatch, where: int
) -> None:
    monkeypatch.setattr(compare_module, "_SMALL", 0)
    siard = wide.with_suffix(".siard")
    result = compare_after(wide, siard, f"UPDATE wide SET text = 'other' WHERE id = {where}")
    (difference,) = result.differences
    assert difference.where == f"main.wide (id='{where}').text"
    fewer = compare_after(wide, siard, f"DELETE FROM wide WHERE id = {where}")
    (difference,) = fewer.differences
    assert (difference.a, difference.b) == ("no such row", "a row")


def test_where_large_objects_lie_makes_no_difference(
    shop: Path, siard: Path, tmp_path: Path
) -> None:
    archive(url(shop), tmp_path / "inline.siard", options=ArchiveOptions(lobs="inline"))
    archive(url(shop), tmp_path / "files.siard", options=ArchiveOptions(lob_threshold=1))
    for other in ("inline.siard", "files.siard"):
        result = compare(str(siard), str(tmp_path / other))
        assert result.equal, result.differences
        assert all(t.ordered_digest[0] == t.ordered_digest[1] for t in result.tables)


def test_nobody_predicts_the_xml_of_objects_in_files(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "files.siard"
    archive(url(shop), path, Selection(tables=("item",)), ArchiveOptions(lob_threshold=1))
    predicted: list[bytes] = []
    expect = tables_module._Expected.expect
    monkeypatch.setattr(
        tables_module._Expected, "expect", lambda *a: (predicted.append(a[1]), expect(*a))[1]
    )
    assert compare(str(path), str(path)).equal
    assert not predicted
    archive(url(shop), tmp_path / "inline.siard", options=ArchiveOptions(lobs="inline"))
    assert compare(url(shop), str(tmp_path / "inline.siard")).equal
    assert predicted


def test_a_restored_copy_equals_the_original(shop: Path, siard: Path, tmp_path: Path) -> None:
    restore(siard, url(tmp_path / "back.db"))
    assert compare(url(shop), url(tmp_path / "back.db")).equal


@pytest.mark.usefixtures("both")
def test_a_changed_cell_is_named(shop: Path, siard: Path) -> None:
    result = compare_after(shop, siard, "UPDATE item SET name = 'other' WHERE id = 2")
    assert not result.equal
    (difference,) = result.differences
    assert (difference.where, difference.a, difference.b) == (
        "main.item (id='2').name",
        "'other'",
        "''",
    )


def test_a_changed_large_object_is_named(shop: Path, siard: Path) -> None:
    result = compare_after(shop, siard, "UPDATE item SET photo = zeroblob(10000) WHERE id = 3")
    (difference,) = result.differences
    assert difference.where == "main.item (id='3').photo" and "10000 bytes" in difference.a


def test_null_is_not_empty(shop: Path, siard: Path) -> None:
    result = compare_after(shop, siard, "UPDATE item SET name = NULL WHERE id = 2")
    (difference,) = result.differences
    assert (difference.a, difference.b) == ("NULL", "''")


def test_missing_and_surplus_rows_are_named(shop: Path, siard: Path) -> None:
    result = compare_after(
        shop, siard, "DELETE FROM sale WHERE number = 7; INSERT INTO sale VALUES (99, 1, 1)"
    )
    found = {(d.where, d.a, d.b) for d in result.differences}
    assert found == {
        ("main.sale (number='7')", "no such row", "a row"),
        ("main.sale (number='99')", "a row", "no such row"),
    }
    assert [t.rows for t in result.tables] == [(4, 4), (49, 49)]


def test_the_order_of_rows_makes_no_difference_to_the_content(tmp_path: Path) -> None:
    for name, order in (("a", "ASC"), ("b", "DESC")):
        db = apsw.Connection(str(tmp_path / name))
        db.execute("CREATE TABLE t (x INT, y TEXT)")
        db.execute(
            f"INSERT INTO t SELECT * FROM (VALUES (1,'a'),(2,'b'),(2,'b'),(3,NULL)) ORDER BY 1 {order}"
        )
        db.close()
    result = compare(url(tmp_path / "a"), url(tmp_path / "b"))
    (table,) = result.tables
    assert result.equal and table.digest[0] == table.digest[1]
    assert table.ordered_digest[0] != table.ordered_digest[1]


def test_rows_that_occur_twice_count_twice(tmp_path: Path) -> None:
    for name, rows in (("a", "(1),(1),(2)"), ("b", "(1),(2),(2)")):
        db = apsw.Connection(str(tmp_path / name))
        db.execute(f"CREATE TABLE t (x INT); INSERT INTO t VALUES {rows}")
        db.close()
    result = compare(url(tmp_path / "a"), url(tmp_path / "b"))
    assert not result.equal
    assert {(d.where, d.a, d.b) for d in result.differences} == {
        ("main.t (x='1')", "2 such rows", "a row"),
        ("main.t (x='2')", "a row", "2 such rows"),
    }


def test_many_differences_make_a_short_list(shop: Path, siard: Path) -> None:
    result = compare_after(shop, siard, "UPDATE sale SET price = price + 1")
    assert 1 <= len(result.differences) <= 10 and not result.equal


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ("DROP TABLE sale; CREATE TABLE other (x INT)", {"main.sale", "main.other"}),
        ("ALTER TABLE sale ADD COLUMN extra TEXT", {"main.sale.extra"}),
        ("ALTER TABLE sale DROP COLUMN price", {"main.sale.price"}),
        ("CREATE UNIQUE INDEX u ON item (name)", {"main.item candidate keys"}),
    ],
)
def test_other_definitions_are_differences(
    shop: Path, siard: Path, change: str, where: set[str]
) -> None:
    result = compare_after(shop, siard, "DROP VIEW dear; " + change)
    assert {d.where for d in result.differences} >= where and not result.equal


def test_what_happens_to_rows_that_refer_to_others_is_compared(tmp_path: Path) -> None:
    for name, action in (("a", "ON DELETE CASCADE"), ("b", ""), ("c", "ON DELETE RESTRICT")):
        db = apsw.Connection(str(tmp_path / name))
        db.execute(f"CREATE TABLE t (x INTEGER PRIMARY KEY, y INT REFERENCES t (x) {action})")
        db.close()
    found = compare(url(tmp_path / "a"), url(tmp_path / "b"))
    assert [(d.where, d.a, d.b) for d in found.differences] == [
        (
            "main.t foreign key y to t (x)",
            "ON DELETE CASCADE, ON UPDATE NO ACTION",
            "ON DELETE NO ACTION, ON UPDATE NO ACTION",
        )
    ]
    assert compare(url(tmp_path / "b"), url(tmp_path / "c")).equal


def test_foreign_keys_of_several_schemas_lead_to_the_same_tables(tmp_path: Path) -> None:
    """The table that they lead to has another name where there is one schema."""
    with duckdb.connect(str(tmp_path / "a.duckdb")) as db:
        db.execute(
            "CREATE SCHEMA s; CREATE SCHEMA r; CREATE TABLE r.p (x INTEGER PRIMARY KEY);"
            "CREATE TABLE s.p (x INTEGER PRIMARY KEY); CREATE TABLE s.t (y INTEGER REFERENCES s.p)"
        )
    for name in "sr":
        db = apsw.Connection(str(tmp_path / f"{name}.db"))
        db.execute(
            "CREATE TABLE r_p (x BIGINT PRIMARY KEY NOT NULL);"
            "CREATE TABLE s_p (x BIGINT PRIMARY KEY NOT NULL);"
            f"CREATE TABLE s_t (y BIGINT REFERENCES {name}_p)"
        )
        db.close()
    source = f"duckdb:///{tmp_path}/a.duckdb"
    same = compare(source, url(tmp_path / "s.db"))
    assert same.equal, same.differences
    assert same.notes == (
        "one side has the tables of several schemas in one: "
        "r.p is compared with main.r_p, and so on",
    )
    for places, names in (
        ((source, url(tmp_path / "r.db")), ("s_p", "r_p")),
        ((url(tmp_path / "r.db"), source), ("r.p", "s.p")),
    ):
        (found,) = compare(*places).differences
        assert (found.a, found.b) == tuple(f"y to {name} (x)" for name in names)


def test_names_that_differ_by_case_alone_are_told_apart(tmp_path: Path) -> None:
    tables = tuple(Table(name, f"table{k}", (column("c"),)) for k, name in enumerate("Tt"))
    both = Database("d", schemas=(Schema("s", "schema0", tables=tables),))
    rows = {("s", "T"): [["large"]], ("s", "t"): [["small"], ["smaller"]]}
    siard = make_archive(tmp_path / "case.siard", both, rows)
    report = restore(siard, url(tmp_path / "case.db"))
    assert report.notes == ("s.t is called t_2, since t is another one's name",)
    result = compare(str(siard), url(tmp_path / "case.db"))
    assert result.equal, result.differences


def test_routines_are_compared(tmp_path: Path) -> None:
    for name, macro in (("a", "a + 1"), ("b", "a + 2"), ("c", None)):
        with duckdb.connect(str(tmp_path / name)) as db:
            db.execute("CREATE TABLE t (i INT)")
            if macro:
                db.execute(f"CREATE MACRO f(a) AS {macro}; CREATE SEQUENCE s; SELECT nextval('s')")
    places = [f"duckdb:///{tmp_path}/{name}" for name in "abc"]
    assert [d.where for d in compare(places[0], places[1]).differences] == ["routine f"]
    assert [(d.where, d.b) for d in compare(places[0], places[2]).differences] == [
        ("routine f", "no such routine"),
        ("routine s", "no such routine"),
    ]
    archive(places[0], tmp_path / "a.siard")
    restore(tmp_path / "a.siard", f"duckdb:///{tmp_path}/again")
    assert compare(str(tmp_path / "a.siard"), f"duckdb:///{tmp_path}/again").equal


def test_definitions_that_are_not_compared_are_named(siard: Path, tmp_path: Path) -> None:
    restore(siard, f"duckdb:///{tmp_path}/a.duckdb")
    result = compare(str(siard), f"duckdb:///{tmp_path}/a.duckdb")
    assert result.equal, result.differences
    assert result.notes == (
        "not compared, since DuckDB and SQLite say such things in their own ways: "
        "views, checks, triggers",
    )


def test_what_is_neither_file_nor_database_is_refused(shop: Path) -> None:
    with pytest.raises(UsageError, match="nothing"):
        compare(url(shop), "nothing.siard")


@pytest.mark.usefixtures("both")
def test_columns_archived_as_text_are_compared_as_text(shop: Path, tmp_path: Path) -> None:
    db = apsw.Connection(str(shop))
    db.execute("UPDATE item SET made = 'some day' WHERE id = 2")
    db.close()
    archive(url(shop), tmp_path / "a.siard", Selection(as_text=("item.made", "item.weight")))
    for places in ((url(shop), str(tmp_path / "a.siard")), (str(tmp_path / "a.siard"), url(shop))):
        result = compare(*places, jobs=2)
        assert result.equal, result.differences
        assert result.notes == (
            "main.item.made was archived as text, and is compared as such",
            "main.item.weight was archived as text, and is compared as such",
        )
    changed = compare_after(
        shop, tmp_path / "a.siard", "UPDATE item SET made = 'never' WHERE id = 2"
    )
    assert [(d.where, d.a, d.b) for d in changed.differences] == [
        ("main.item (id='2').made", "'never'", "'some day'")
    ]


@pytest.mark.usefixtures("both")
def test_a_type_that_the_archive_widened_is_no_difference(shop: Path, tmp_path: Path) -> None:
    db = apsw.Connection(str(shop))
    db.execute("UPDATE item SET sku = 'longer than ten' WHERE id = 2")
    db.execute("UPDATE sale SET price = 1234567.891 WHERE number = 7")
    db.close()
    archive(url(shop), tmp_path / "a.siard")
    result = compare(url(shop), str(tmp_path / "a.siard"), jobs=2)
    assert result.equal, result.differences
    assert result.notes == (
        "main.item.sku is declared VARCHAR(10) and holds more; compared as VARCHAR(15)",
        "main.sale.price is declared DECIMAL(8,2) and holds more; compared as DECIMAL",
    )
    assert all(t.ordered_digest[0] == t.ordered_digest[1] for t in result.tables)


def test_a_type_of_another_name_does_not_hold_more(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, s SMALLINT, v VARCHAR, n DECIMAL(9,2))")
        db.execute("INSERT INTO t VALUES (1, 2, 'three', 4.5)")
    archive(f"duckdb:///{tmp_path}/a.duckdb", tmp_path / "a.siard")
    restore(tmp_path / "a.siard", url(tmp_path / "a.db"))
    for first in (str(tmp_path / "a.siard"), f"duckdb:///{tmp_path}/a.duckdb"):
        result = compare(first, url(tmp_path / "a.db"))
        assert result.equal and result.notes == (), (result.differences, result.notes)


def test_a_value_that_outgrew_its_type_after_archiving_is_a_difference(
    shop: Path, siard: Path
) -> None:
    changed = compare_after(shop, siard, "UPDATE item SET sku = 'longer than ten' WHERE id = 2")
    assert ("main.item (id='2').sku", "'longer than ten'", "'SKU-2'") in [
        (d.where, d.a, d.b) for d in changed.differences
    ]


@pytest.mark.usefixtures("both")
def test_databases_with_values_of_other_types_are_compared_as_text(
    shop: Path, tmp_path: Path
) -> None:
    db = apsw.Connection(str(shop))
    db.execute("UPDATE item SET made = 'some day', weight = 'heavy' WHERE id = 2")
    db.close()
    copy = shutil.copy(shop, tmp_path / "copy.db")
    result = compare(url(shop), url(copy), jobs=2)
    assert result.equal, result.differences
    assert result.notes == (
        "main.item.made holds values that do not fit its type, and is compared as text",
        "main.item.weight holds values that do not fit its type, and is compared as text",
    )
    db = apsw.Connection(str(copy))
    db.execute("UPDATE item SET weight = 'light' WHERE id = 2")
    db.close()
    assert [(d.where, d.a, d.b) for d in compare(url(shop), url(copy), jobs=2).differences] == [
        ("main.item (id='2').weight", "'heavy'", "'light'")
    ]


@pytest.mark.parametrize("column", ["made", "weight"])
def test_a_value_of_another_type_after_archiving_is_a_difference(
    shop: Path, siard: Path, column: str
) -> None:
    changed = compare_after(shop, siard, f"UPDATE item SET {column} = 'unknown' WHERE id = 2")
    assert not changed.equal
    rows = [d.where for d in changed.differences if "id=" in d.where]
    assert rows == [f"main.item (id='2').{column}"]


def test_values_of_other_types_are_compared_with_another_product(
    shop: Path, tmp_path: Path
) -> None:
    db = apsw.Connection(str(shop))
    db.execute("UPDATE item SET weight = 'heavy' WHERE id = 2")
    db.close()
    archive(url(shop), tmp_path / "a.siard", Selection(as_text=("item.weight",)))
    restore(tmp_path / "a.siard", f"duckdb:///{tmp_path}/a.duckdb")
    result = compare(url(shop), f"duckdb:///{tmp_path}/a.duckdb")
    assert result.equal, result.differences


LISTS = (
    "CREATE TABLE {}t (id INTEGER, l INTEGER[]); INSERT INTO {}t VALUES (1, [1, NULL]), (2, [3])"
)
NOTE = "main.t.l holds values that do not fit its type, and is compared as text"


def duck(path: Path, *statements: str) -> str:
    with duckdb.connect(str(path)) as db:
        for statement in statements:
            db.execute(statement)
    return f"duckdb:///{path}"


def test_lists_that_siard_cannot_hold_are_compared_as_text(tmp_path: Path) -> None:
    lists = LISTS.format("", "")
    a, b = duck(tmp_path / "a.duckdb", lists), duck(tmp_path / "b.duckdb", lists)
    result = compare(a, b)
    assert result.equal and result.notes == (NOTE,)
    duck(tmp_path / "b.duckdb", "UPDATE t SET l = [1] WHERE id = 1")
    found = compare(a, b).differences
    assert {(d.where, d.a, d.b) for d in found} == {
        ("main.t (id='1', l='[1, NULL]')", "a row", "no such row"),
        ("main.t (id='1', l='[1]')", "no such row", "a row"),
    }


def test_such_lists_are_text_in_a_restored_database_too(tmp_path: Path) -> None:
    a = duck(tmp_path / "a.duckdb", LISTS.format("", ""))
    archive(a, tmp_path / "a.siard", Selection(as_text=("t.l",)))
    restore(tmp_path / "a.siard", url(tmp_path / "a.db"))
    result = compare(a, url(tmp_path / "a.db"))
    assert result.equal and result.notes == (NOTE,), result.differences


def test_such_lists_are_text_on_the_other_side_whatever_the_names_of_schemas(
    tmp_path: Path,
) -> None:
    a = duck(tmp_path / "a.duckdb", LISTS.format("", ""))
    other = LISTS.format("s.", "s.").replace("NULL", "2")
    b = duck(tmp_path / "b.duckdb", "CREATE SCHEMA s", other)
    for places in ((a, b), (b, a)):
        result = compare(*places)
        assert result.notes == (NOTE,)
        assert {d.where.partition(".")[2] for d in result.differences} == {
            "t (id='1', l='[1, NULL]')", "t (id='1', l='[1, 2]')"
        }  # fmt: skip


def view_of(product: str, query: str) -> Database:
    view = View("v", (), query_original=query)
    return Database("d", database_product=product, schemas=(Schema("s", "schema0", views=(view,)),))


@pytest.mark.parametrize(
    ("query", "equal"),
    [
        ("SELECT a, 'x.a' AS b FROM s.t", True),
        ("SELECT u.a, 'x.a' AS b FROM s.t", False),
        ("SELECT a, 'a' AS b FROM s.t", False),
        ("SELECT a, 'x.a' AS b FROM s.t WHERE a > 1", False),
        ("SELECT a, 'x.a' AS b FROM r.t", False),
    ],
)
def test_versions_of_a_product_may_name_the_tables_of_columns_or_not(
    query: str, equal: bool
) -> None:
    old = view_of("PostgreSQL 15.18", "SELECT t.a,\n 'x.a' AS b FROM s.t")
    new, same = view_of("PostgreSQL 18.6", query), view_of("PostgreSQL 15.18", query)
    assert (list(compare_definitions(old, new)) == []) is equal
    assert (list(compare_definitions(new, old)) == []) is equal
    assert [d.where for d in compare_definitions(old, same)] == ["view v"]


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("turned", [False, True])
def test_a_column_of_one_side_alone_hides_no_other_difference(wide: Path, turned: bool) -> None:
    siard, changed = wide.with_suffix(".siard"), wide.with_name("changed.db")
    shutil.copy(wide, changed)
    db = apsw.Connection(str(changed))
    db.execute(
        "ALTER TABLE wide ADD COLUMN extra TEXT DEFAULT 'more';"
        "UPDATE wide SET price = 7 WHERE id = 70000; DELETE FROM wide WHERE id = 149999"
    )
    db.close()
    sides = [url(changed), str(siard)]
    result = compare(*(sides[::-1] if turned else sides), jobs=2)
    found = {d.where: (d.b, d.a) if turned else (d.a, d.b) for d in result.differences}
    assert found == {
        "main.wide.extra": ("a column", "no such column"),
        "main.wide (id='70000').price": ("'7'", "'700'"),
        "main.wide (id='149999')": ("no such row", "a row"),
    }
    (table,) = result.tables
    assert not table.equal and len(set(table.digest)) == 2  # digests are of whole rows


@pytest.mark.parametrize(
    ("there", "found"),
    [
        # another order: cells are compared by the names of their columns
        ("p (b TEXT, id INTEGER PRIMARY KEY, n INTEGER)", ["main.p columns", "main.p (id='2').b"]),
        # only this side has the key, or no key is shared: rows are told as they are
        ("p (id INTEGER, b TEXT)", ["main.p.n", "main.p primary key", "main.p (id='2').b"]),
        (
            "p (b TEXT, n INTEGER)",
            ["main.p.id", "main.p primary key", "main.p (b='two', n='7')", "main.p (b='z', n='7')"],
        ),
        # types that are only alike: 1 and 1.0
        ("p (id INTEGER PRIMARY KEY, b TEXT, n REAL)", ["main.p.x", "main.p (id='2').b"]),
        ("p (other TEXT)", ["main.p.id", "main.p.b", "main.p.n", "main.p.other"]),
    ],
)
def test_cells_of_shared_columns_are_compared_by_name(
    tmp_path: Path, there: str, found: list[str]
) -> None:
    here = "p (id INTEGER PRIMARY KEY, b TEXT, n INTEGER)"
    if "REAL" in there:
        here = here.replace("n INTEGER", "n INTEGER, x TEXT")
    for name, definition, two in (("a", here, "two"), ("b", there, "z")):
        db = apsw.Connection(str(tmp_path / f"{name}.db"))
        db.execute(f"CREATE TABLE {definition}")
        columns = [row[1] for row in db.execute("PRAGMA table_info(p)")]
        for row in ({"id": 1, "b": "one", "n": 1}, {"id": 2, "b": two, "n": 7}):
            values = [row.get(column) for column in columns]
            db.execute(f"INSERT INTO p VALUES ({', '.join('?' * len(columns))})", values)
        db.close()
    result = compare(url(tmp_path / "a.db"), url(tmp_path / "b.db"))
    wheres = [d.where for d in result.differences]
    missing = [where for where in found if where not in wheres]
    assert not missing, wheres
    rows = [where for where in wheres if "(" in where]
    assert rows == [where for where in found if "(" in where]


def test_a_long_text_in_a_list_is_named_by_its_size(tmp_path: Path) -> None:
    for name, kind, value in (
        ("a", "VARCHAR[]", "['a', repeat('x', 5000)]"),
        ("b", "VARCHAR", "'[a, ' || repeat('x', 5000) || ']'"),
    ):
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as database:
            database.execute(
                f"CREATE TABLE t (id INTEGER, l {kind}); INSERT INTO t VALUES (1, {value})"
            )
    found = compare(*(f"duckdb:///{tmp_path / name}.duckdb" for name in ("a", "b")))
    assert not found.equal
    assert any("5000 bytes with SHA-256" in difference.where for difference in found.differences)


def test_lists_of_a_fixed_length_may_end_with_null(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t (i INTEGER PRIMARY KEY, a VARCHAR[2], s STRUCT(x INT, y VARCHAR[2]));"
            "INSERT INTO t VALUES (1, ['', NULL], {'x': 1, 'y': ['a', NULL]}),"
            " (2, [NULL, NULL], {'x': NULL, 'y': [NULL, NULL]}), (3, ['a', 'b'], NULL)"
        )
    source, back = f"duckdb:///{tmp_path}/a.duckdb", f"duckdb:///{tmp_path}/b.duckdb"
    archive(source, tmp_path / "a.siard")
    restore(tmp_path / "a.siard", back)
    for pair in ((source, str(tmp_path / "a.siard")), (str(tmp_path / "a.siard"), back)):
        found = compare(*pair)
        assert found.equal
        assert found.tables[0].ordered_digest[0] == found.tables[0].ordered_digest[1]
    with duckdb.connect(str(tmp_path / "b.duckdb")) as connection:
        connection.execute("UPDATE t SET a = ['', ''] WHERE i = 1")
    found = compare(str(tmp_path / "a.siard"), back)
    assert [d.where for d in found.differences] == ["main.t (i='1').a"]


def test_digits_that_are_text_are_no_misfits(tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        db = apsw.Connection(str(tmp_path / name))
        db.execute("CREATE TABLE t (a DECIMAL_TEXT(18,3), b INTEGER)")
        db.execute("INSERT INTO t VALUES ('1.100', 1), ('-0.001', 'one')")
        db.close()
    found = compare(url(tmp_path / "a.db"), url(tmp_path / "b.db"))
    assert found.equal
    assert [note.partition(" ")[0] for note in found.notes] == ["main.t.b"]
