"""SQL over archives: names, types, views, large objects, and the walls around all of it."""

from __future__ import annotations

import os
import re
import zipfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archives import column, make_archive, one_table
from contracts import sample
from muniment import transfer
from muniment.errors import QueryError, QueryTimeout, UsageError
from muniment.query import Archives, Limits, open_archives
from muniment.query.cache import cache_folder, digest_of, index_path
from muniment.query.media import recognise
from muniment.query.names import unique_names
from muniment.siard.metadata import format_metadata
from muniment.sql.model import Database, Schema, Table, View


@pytest.fixture
def archive(shop: Path, tmp_path: Path) -> Path:
    path = tmp_path / "shop.siard"
    transfer.archive(f"sqlite:///{shop}", path)
    return path


def answer(db: Archives, sql: str) -> list[tuple[Any, ...]]:
    result = db.execute(sql)
    rows: list[tuple[Any, ...]] = []
    for batch in result.batches:
        rows += zip(*(c.to_pylist() for c in batch.columns), strict=True)
    return rows


def test_tables_have_the_names_of_the_archive(archive: Path) -> None:
    with open_archives({"shop": archive}) as db:
        for name in ("item", "main.item", "shop.main.item"):
            assert answer(db, f"SELECT count(*) FROM {name}") == [(4,)]


def test_values_have_their_types(archive: Path) -> None:
    with open_archives({"shop": archive}) as db:
        rows = answer(db, "SELECT id, name, weight, sold, made, changed FROM item ORDER BY id")
        assert answer(db, "SELECT sum(price) FROM sale") == [(Decimal("1249.50"),)]
    assert rows[0][1] == " two  spaces\t\r\n\\u0041 "
    assert rows[1][1:5] == ("", -0.1, False, None)
    assert str(rows[2][4]) == "0001-01-01"


def test_a_large_object_is_size_type_and_content_on_demand(archive: Path) -> None:
    with open_archives({"shop": archive}) as db:
        rows = answer(db, "SELECT photo, content(photo) FROM item ORDER BY id")
    assert rows[0] == (None, None)
    assert rows[2][0] == {"size": 10000, "type": "application/octet-stream", "key": "shop/0/8/3"}
    assert rows[2][1] == b"\x00\xff" * 5000
    assert rows[3][1] == b"\x89PNG"


def test_the_views_of_the_archive_can_be_queried(archive: Path) -> None:
    with open_archives({"shop": archive}) as db:
        assert answer(db, "SELECT count(*) FROM dear") == [(30,)]
        assert db.notes == []


def test_a_view_that_cannot_be_translated_is_said(tmp_path: Path) -> None:
    b = (column("b"),)
    views = (
        View("works", b, query="SELECT a AS b FROM t"),
        View("on_top", b, query='SELECT "b" FROM "works"'),
        View("odd", b, query_original="CONNECT BY PRIOR nothing"),
        View("thief", b, query="SELECT * FROM read_csv('/etc/passwd')"),
        View("spy", b, query="SELECT * FROM duckdb_settings()"),
        View("silent", b),
    )
    table = Table("t", "table0", (column("a"),))
    database = Database("d", schemas=(Schema("s", "schema0", tables=(table,), views=views),))
    path = make_archive(tmp_path / "v.siard", database, {("s", "t"): [["x"]]})
    with open_archives({"v": path}) as db:
        assert answer(db, "SELECT * FROM on_top") == [("x",)]
        notes = "\n".join(db.notes)
        for name in ("odd", "thief", "spy", "silent"):
            assert f"the view s.{name} cannot be queried" in notes
            with pytest.raises(QueryError):
                answer(db, f"SELECT * FROM {name}")


def test_udts_and_arrays_are_structures(tmp_path: Path) -> None:
    rows = {("main", "shapes"): sample.NESTED_ROWS["shapes"]}
    path = make_archive(tmp_path / "nested.siard", sample.NESTED, rows)
    with open_archives({"n": path}) as db:
        assert answer(db, "SELECT spot.x, spot.tags, codes[3], path[2].x FROM shapes")[0] == (
            5, ["x", "y"], 3, 2,
        )  # fmt: skip


def test_every_nasty_text_comes_back(tmp_path: Path) -> None:
    path = make_archive(
        tmp_path / "n.siard",
        one_table("t", (column("a"),)),
        {("main", "t"): [[text] for text in sample.NASTY]},
    )
    with open_archives({"n": path}) as db:
        assert [row[0] for row in answer(db, "SELECT a FROM t")] == list(sample.NASTY)


def test_several_archives_at_once(archive: Path, tmp_path: Path) -> None:
    path = make_archive(
        tmp_path / "b.siard", one_table("t", (column("a", "INTEGER"),)), {("main", "t"): [["7"]]}
    )
    with open_archives({"one": archive, "two": path}) as db:
        sql = "SELECT i.id + t.a FROM one.main.item i, two.main.t t ORDER BY 1"
        assert answer(db, sql)[0] == (8,)
    with pytest.raises(UsageError, match="temp"), open_archives({"temp": path}):
        pass


def test_views_of_two_archives_keep_apart(tmp_path: Path) -> None:
    view = View("v", (column("a"),), query_original="SELECT a FROM main.t")
    paths = {}
    for name in ("one", "two"):
        database = one_table("t", (column("a"),), database_product="SQLite 3")
        schema = replace(database.schemas[0], views=(view,))
        database = replace(database, schemas=(schema,))
        rows = {("main", "t"): [[name]]}
        paths[name] = make_archive(tmp_path / f"{name}.siard", database, rows)
    with open_archives(paths) as db:
        sql = "SELECT a FROM one.main.v UNION ALL SELECT a FROM two.main.v"
        assert answer(db, sql) == [("one",), ("two",)]


def test_names_that_differ_by_case_alone_get_a_number(tmp_path: Path) -> None:
    columns = column("a"), column("A"), column('we"ird, name')
    tables = Table("T", "table0", columns), Table("t", "table1", columns)
    database = Database("d", schemas=(Schema("information_schema", "schema0", tables=tables),))
    rows = {("information_schema", name): [["1", "2", name]] for name in "Tt"}
    path = make_archive(tmp_path / "c.siard", database, rows)
    with open_archives({"c": path}) as db:
        assert answer(db, 'SELECT a, "A_2", "we""ird, name" FROM t_2') == [("1", "2", "t")]
        assert any("is called t_2 in SQL" in note for note in db.notes)


@given(st.lists(st.text(max_size=5), max_size=8))
def test_names_become_unique_and_typeable(names: list[str]) -> None:
    unique = unique_names(names)
    assert len({name.casefold() for name in unique}) == len(names)
    assert all(unique)


def test_a_value_outside_its_type_is_kept_as_text(tmp_path: Path) -> None:
    import zipfile

    path = make_archive(
        tmp_path / "n.siard",
        one_table("t", (column("a", "SMALLINT"), column("b", "DATE"))),
        {("main", "t"): [["1", "2024-02-29"], ["12345", "2024-03-01"]]},
    )
    odd = tmp_path / "odd.siard"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(odd, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            data = old.read(info).replace(b"12345", b"99999").replace(b"03-01Z", b"02-31Z")
            new.writestr(info.filename, data)
    with open_archives({"n": odd}) as db:
        assert answer(db, "SELECT a, b FROM t") == [("1", "2024-02-29"), ("99999", "2024-02-31")]
        assert len(db.notes) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM duckdb_databases()",
        "SELECT * FROM \"duckdb_databases\" ()",
        "SELECT current_setting('temp_directory')",
        "SELECT * FROM query('SELECT * FROM duckdb_' || 'databases()')",
        "SELECT * FROM query/*/**/*/('SELECT 1')",
        "SELECT '--', x FROM (SELECT * FROM duckdb_settings -- no brackets\n) AS t(x)",
        "SELECT * FROM pg_catalog.pg_settings",
        "SELECT * FROM duckdb_databases",
        "EXPLAIN ANALYZE SELECT * FROM duckdb_secrets()",
        "SUMMARIZE SELECT * FROM pragma_database_list",
        "SELECT content FROM read_text('/etc/passwd')",
        "SELECT repeat('x', 10000000000)",
        "ATTACH '/tmp/other.db'",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "EXPORT DATABASE '/tmp/out'",
        "INSTALL httpfs",
        "LOAD '/tmp/evil.so'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "CREATE TABLE x (a INT)",
        "CREATE TEMP TABLE x AS SELECT 1",
        "INSERT INTO item SELECT * FROM item",
        "DELETE FROM item",
        "UPDATE item SET name = ''",
        "DROP VIEW main.item",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP VIEW main.item",
        "",
        ";",
        "SELECT",
        "SELECT * FROM nowhere",
        "\0",
    ],
)  # fmt: skip
def test_nothing_but_a_query_over_archives_is_answered(archive: Path, sql: str) -> None:
    with open_archives({"shop": archive}) as db:
        with pytest.raises(QueryError) as raised:
            answer(db, sql)
        assert "\n" not in str(raised.value)
        assert answer(db, "SELECT count(*) FROM item") == [(4,)]


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("SELECT * FROM itm", r"there is no table itm; there are main\.item, .*"),
        ("SELECT * FROM other.item", r"there is no table other\.item; there are main\.item, .*"),
        ("SELECT nam FROM item", r"there is no column nam here; item has name, .*"),
        ("SELECT i.nam FROM item i", r"there is no column nam here; item has name, .*"),
        (
            'SELECT * FROM item WHERE name = "Ødegård"',
            r"there is no column Ødegård here; .*; if it is a text, write .* marks: 'Ødegård'",
        ),
        (
            "SELECT * FROM item WHERE name = 17",
            r"Could not convert .*; name is text in the archive: write '17' in quotation marks .*",
        ),
        ("SELECT * FROM item WHERE name > 7.5", r"Cannot compare .*; what is text .* '7\.5'"),
        ("SELECT x.name FROM item", r"the query has no table x in its FROM; there are .*"),
        ("SELECT * FROM '/etc/passwd'", r"there is no table /etc/passwd; there are .*"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_ones(
    archive: Path, sql: str, sentence: str
) -> None:
    with open_archives({"shop": archive}) as db, pytest.raises(QueryError) as raised:
        answer(db, sql)
    assert re.fullmatch(sentence, str(raised.value))


def test_a_query_that_runs_forever_is_stopped(archive: Path) -> None:
    sql = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    with open_archives({"shop": archive}, Limits(seconds=0.3)) as db:
        with pytest.raises(QueryTimeout, match=r"stopped after 0\.3 seconds"):
            answer(db, sql)
        assert answer(db, "SELECT count(*) FROM item") == [(4,)]


def test_rows_end_at_the_limit(archive: Path) -> None:
    with open_archives({"shop": archive}, Limits(rows=7)) as db:
        assert len(answer(db, "SELECT * FROM range(1000000)")) == 7


def test_an_index_is_found_by_the_archives_bytes(archive: Path, tmp_path: Path) -> None:
    with open_archives({"shop": archive}):
        pass
    index = index_path(digest_of(archive))
    assert index.is_relative_to(cache_folder()) and index.exists()
    made = index.stat().st_mtime_ns
    copy = tmp_path / "elsewhere.siard"
    copy.write_bytes(archive.read_bytes())
    with open_archives({"shop": copy}) as db:
        assert answer(db, "SELECT count(*) FROM item") == [(4,)]
    assert index.stat().st_mtime_ns == made
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "elsewhere.siard", "shop.db", "shop.siard",
    ]  # fmt: skip


def test_another_archive_under_the_same_name_is_not_mistaken(tmp_path: Path) -> None:
    path = tmp_path / "a.siard"
    for value in ("old", "new"):
        path.unlink(missing_ok=True)
        make_archive(path, one_table("t", (column("a"),)), {("main", "t"): [[value]]})
        os.utime(path, ns=(1, 1))
        with open_archives({"a": path}) as db:
            assert answer(db, "SELECT a FROM t") == [(value,)]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.decimals(-9999, 9999, places=2),
            st.none() | st.dates(),
            st.none() | st.datetimes(),
            st.none() | st.floats(allow_nan=False, allow_infinity=False),
        ),
        max_size=20,
    )
)
def test_what_goes_into_an_archive_comes_out_of_a_query(
    tmp_path: Path, rows: list[tuple[Any, ...]]
) -> None:
    kinds = "VARCHAR(100)", "BIGINT", "DECIMAL(8,2)", "DATE", "TIMESTAMP(6)", "DOUBLE PRECISION"
    columns = tuple(column(f"c{n}", kind) for n, kind in enumerate(kinds))
    cells = [
        [None if v is None else v.isoformat() if hasattr(v, "isoformat") else str(v) for v in row]
        for row in rows
    ]
    path = tmp_path / "random.siard"
    path.unlink(missing_ok=True)
    make_archive(path, one_table("t", columns), {("main", "t"): cells})
    with open_archives({"r": path}) as db:
        assert answer(db, "SELECT * FROM t") == rows


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"BM is how this text begins", "text/plain"),
        (b"<!-- hi --><HTML><script>", "text/html"),
        (b"<?xml version='1.0'?>\n<svg onload='alert(1)'/>", "image/svg+xml"),
        (b"<?xml version='1.0'?><a/>", "application/xml"),
        (b"\x00\x01\x02", "application/octet-stream"),
        ("ü".encode() * 511 + b"a\xc3", "text/plain"),
    ],
)
def test_a_large_object_is_judged_by_its_bytes(head: bytes, kind: str) -> None:
    assert recognise(head) == kind


@pytest.mark.samples
def test_archives_of_other_makers_can_be_queried(samples: Path) -> None:
    for path in sorted((samples / "siard").glob("main/*.siard")):
        with open_archives({"a": path}) as db:
            for table in db.about["a"].tables:
                schema, name = (part.replace('"', '""') for part in (table.schema, table.name))
                sql = f'SELECT count(*) FROM "{schema}"."{name}"'
                assert answer(db, sql) == [(table.rows,)], path


def test_files_beside_an_archive_are_read_again_when_they_change(tmp_path: Path) -> None:
    table = Table("t", "table0", (column("words", "CLOB", lob_folder="words"),), rows=1)
    database = Database(
        "d", archival_date="2026-01-01Z", lob_folder="d_lobs",
        schemas=(Schema("s", "schema0", tables=(table,)),),
    )  # fmt: skip
    path, file = tmp_path / "d.siard", tmp_path / "d_lobs" / "words" / "1.txt"
    with zipfile.ZipFile(path, "w") as package:
        row = '<table><row><c1 file="1.txt"/></row></table>'
        package.writestr("content/schema0/table0/table0.xml", row)
        package.writestr("header/metadata.xml", format_metadata(database))
    file.parent.mkdir(parents=True)
    for text in ("Linde", "Ulme", None, "Eiche"):
        if text is None:
            file.unlink()
        else:
            file.write_text(text, encoding="utf-8")
        with open_archives({"d": path}) as db:
            ((found,),) = answer(db, "SELECT words FROM t")
            assert found == text if text else "cannot be read" in found


def test_parquet_takes_what_it_has_no_type_for_as_text(archive: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    from muniment.query.formats import write_parquet

    sql = "SELECT INTERVAL 3 DAY AS i, {'n': 1, 'i': INTERVAL 1 YEAR} AS s, [1, 2] AS l, 1 AS l"
    with open_archives({"shop": archive}) as db, (tmp_path / "x.parquet").open("xb") as stream:
        result = db.execute(sql)
        assert write_parquet(result.schema, result.batches, stream) == 1
    (row,) = pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist()
    assert "3" in row["i"] and '"n": 1' in row["s"] and (row["l"], row["l_2"]) == ([1, 2], 1)
