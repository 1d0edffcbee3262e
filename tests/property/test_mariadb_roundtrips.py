"""Whatever tables MariaDB can hold: archived and restored, they are the same in its own words."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from muniment import transfer
from muniment.compare import compare
from servers.mariadb import MariadbServer

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Cn"], max_codepoint=0xFFFF),
    min_size=1,
    max_size=20,
)


@dataclass(frozen=True)
class Kind:
    """A type, and SQL for some of its values."""

    type: str
    values: st.SearchStrategy[str]


def literal(text: str) -> str:
    return f"_utf8mb4 x'{text.encode().hex()}'"


def octets(data: bytes) -> str:
    return f"x'{data.hex()}'"


def integers(type_: str, bits: int, unsigned: bool = False) -> Kind:
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return Kind(type_, st.integers(low, high).map(str))


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
KINDS = st.sampled_from([
    integers("TINYINT", 8), integers("SMALLINT UNSIGNED", 16, True), integers("MEDIUMINT", 24),
    integers("INT UNSIGNED ZEROFILL", 32, True), integers("BIGINT", 64), integers("BIGINT UNSIGNED", 64, True),
    Kind("DECIMAL(65,30)", st.decimals(-10**30, 10**30, places=30).map(lambda d: f"'{d:f}'")),
    Kind("DOUBLE", FLOATS.map(lambda x: f"'{x!r}'")),
    Kind("FLOAT", st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False).map(lambda x: f"'{x!r}'")),
    Kind("BIT(13)", st.integers(0, 2**13 - 1).map(str)), Kind("BIT(1)", st.integers(0, 1).map(str)),
    Kind("YEAR", st.just("0") | st.integers(1901, 2155).map(str)),
    Kind("DATE", st.dates().map(lambda d: f"'{d}'")), Kind("TIME(6)", st.times().map(lambda t: f"'{t}'")),
    Kind("DATETIME(6)", st.datetimes().map(lambda d: f"'{d}'")), Kind("DATETIME", st.datetimes().map(lambda d: f"'{d.replace(microsecond=0)}'")),
    Kind("VARCHAR(40)", TEXT.map(literal)), Kind("VARCHAR(40) COLLATE utf8mb4_bin DEFAULT 'it''s \\\\ \"'", TEXT.map(literal)),
    Kind("CHAR(35)", TEXT.map(literal)), Kind("LONGTEXT", TEXT.map(literal) | TEXT.map(lambda t: f"REPEAT({literal(t + 'x')},3000)")),
    Kind("VARCHAR(40) CHARACTER SET latin1", st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=20).map(literal)),
    Kind("VARCHAR(40) CHARACTER SET utf16", TEXT.map(literal)),
    Kind("ENUM('a','it''s','ü')", st.sampled_from(["'a'", "'it''s'", "'ü'"])), Kind("SET('a','b','c')", st.sampled_from(["''", "'a'", "'b,c'"])),
    Kind("BINARY(7)", st.binary(max_size=7).map(octets)), Kind("VARBINARY(30)", st.binary(max_size=30).map(octets)),
    Kind("LONGBLOB", st.binary(max_size=30).map(octets) | st.binary(min_size=1, max_size=9).map(lambda b: f"REPEAT({octets(b)},2000)")),
    Kind("UUID", st.uuids(version=4).map(lambda u: f"'{u}'")), Kind("INET6", st.ip_addresses(v=6).map(lambda a: f"'{a}'")),
    Kind("POINT", st.tuples(FLOATS, FLOATS).map(lambda p: f"POINT({p[0]!r},{p[1]!r})")),
])  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[str]]:
    """The statement that makes a table, and rows for it."""
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique_by=str.casefold))
    kinds = [draw(KINDS) for _ in names]
    keys = draw(st.sampled_from([[], ["PRIMARY KEY (k)"], ["UNIQUE KEY u (k)", "KEY d (k DESC)"]]))
    quoted = [f"`c{name.replace('`', '``')}`" for name in names]
    columns = [f"{name} {kind.type}" for name, kind in zip(quoted, kinds, strict=True)]
    words = draw(TEXT)
    lines = ["k INT NOT NULL", *columns, *keys]
    comment = "".join(c for c in words if c.isprintable()).replace("\\", "\\\\").replace("'", "''")
    sql = f"CREATE TABLE t ({', '.join(lines)}) COMMENT='{comment}'"
    rows = draw(st.lists(st.tuples(*(kind.values | st.just("NULL") for kind in kinds)), max_size=5))
    return sql, [f"({number}, {', '.join(row)})" for number, row in enumerate(rows, -2)]


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@example(  # the archive is unlike the rows at first, and a later batch is not plain either
    table=(
        "CREATE TABLE t (k INT NOT NULL, a LONGTEXT, b LONGTEXT)",
        ["(1, REPEAT('x',3000), '')", "(2, NULL, '0')", "(3, '', REPEAT('0x',3000))"],
    )
)
@given(table=tables())
def test_a_table_comes_back_in_the_servers_own_words(
    mariadb: MariadbServer, table: tuple[str, list[str]]
) -> None:
    sql, rows = table
    if any(young in sql and not mariadb.has_type(young) for young in ("UUID", "INET6")):
        return  # which MySQL and older MariaDB do not have
    name = mariadb.new_database()
    again = mariadb.new_name()
    folder = Path(tempfile.mkdtemp())
    try:
        fill = [f"INSERT INTO t VALUES {', '.join(rows)}"] if rows else []
        mariadb.run(
            "SET NAMES utf8mb4, sql_mode='STRICT_ALL_TABLES', time_zone='+00:00'",
            sql,
            *fill,
            database=name,
        )
        transfer.archive(mariadb.url(name), folder / "t.siard")
        report = transfer.restore(
            folder / "t.siard", mariadb.url(again), left_out=folder / "left.sql"
        )
        assert not [note for note in report.notes if "description" in note]
        assert _definition(mariadb, again) == _definition(mariadb, name)
        result = compare(mariadb.url(name), mariadb.url(again))
        assert result.equal, result.differences
        assert compare(str(folder / "t.siard"), mariadb.url(again)).equal
    finally:
        shutil.rmtree(folder)
        mariadb.run(f"DROP DATABASE IF EXISTS `{name}`", f"DROP DATABASE IF EXISTS `{again}`")


def _definition(mariadb: MariadbServer, database: str) -> Any:
    return mariadb.run("SHOW CREATE TABLE t", database=database)[0][1]
