"""Laws of the PostgreSQL path: its text formats, and whole databases there and back."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import psycopg
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from muniment import transfer
from muniment.compare import compare
from muniment.databases.postgresql.connection import quote
from muniment.databases.postgresql.copytext import decode_rows, encode_rows
from muniment.databases.postgresql.literals import (
    array_parts,
    array_text,
    record_parts,
    record_text,
)
from muniment.sql.batch import batch_of
from servers.postgresql import Cluster

text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
awkward = text | st.sampled_from(["\\N", "\\", "\\.", "NULL", "", " ", "\t", "\n", '"', "{}", "()"])
parts = st.lists(st.none() | awkward.map(str.encode), min_size=1, max_size=6)


@given(st.lists(st.lists(st.none() | awkward, min_size=2, max_size=2), max_size=9))
def test_copy_text_and_batches_are_two_spellings_of_the_same(rows: list[list[str | None]]) -> None:
    data = batch_of(rows).data
    copied = encode_rows(data)
    assert copied.count(b"\n") == len(rows)
    assert decode_rows(copied) == data


@given(parts)
def test_arrays_and_composite_values_read_back(values: list[bytes | None]) -> None:
    assert list(array_parts(array_text(values))) == values
    assert list(record_parts(record_text(values))) == values


@given(values=parts)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_server_reads_them_in_the_same_way(
    postgresql: Cluster, values: list[bytes | None]
) -> None:
    texts = [None if value is None else value.decode() for value in values]
    with psycopg.connect(postgresql.url("postgres")) as connection:
        sql = "SELECT %s::text[] = %s::text[] AS equal, %s::text[]::text AS written"
        row = connection.execute(sql, [array_text(values).decode(), texts, texts]).fetchone()
    assert row is not None and row[0] is True
    assert list(array_parts(row[1].encode())) == values


# A menu of types, and values for them.
_YEARS = {"min_value": 1, "max_value": 9999}
NAMES = st.text(st.sampled_from("aZ_ é\"'.%;9"), min_size=1, max_size=6)
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "numeric": st.decimals(allow_nan=False, allow_infinity=False).filter(lambda d: abs(d.adjusted()) < 40),
    "numeric(9,3)": st.decimals(-999999, 999999, places=3),
    "real": st.floats(width=32),
    "double precision": st.floats(),
    "boolean": st.booleans(),
    "text": awkward,
    "character varying(30)": awkward,
    "character(13)": awkward,
    "bytea": st.binary(max_size=20),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "timestamptz": st.datetimes(timezones=st.timezones()).filter(lambda d: 2 < d.year < 9998),
    "time": st.times(),
    "interval": st.timedeltas(),
    "uuid": st.uuids().map(str),
    "integer[]": st.lists(st.none() | st.integers(0, 99), max_size=4),
    "text[]": st.lists(st.none() | awkward, max_size=4),
    "timestamp[]": st.lists(st.datetimes(), max_size=3),
    "inet": st.ip_addresses().map(str),
}  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[str, str, bool]], list[list[Any]]]:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    columns = [(name, draw(st.sampled_from(sorted(TYPES))), draw(st.booleans())) for name in names]
    row = st.tuples(
        *(TYPES[kind] if needed else st.none() | TYPES[kind] for _, kind, needed in columns)
    )
    return columns, [list(r) for r in draw(st.lists(row, max_size=5))]


def _create(name: str, columns: list[tuple[str, str, bool]], unique: bool) -> str:
    listed = ", ".join(
        f"{quote(column)} {kind}{' NOT NULL' if needed else ''}" for column, kind, needed in columns
    )
    key = ", number serial PRIMARY KEY" if unique else ""
    return f"CREATE TABLE {quote(name)} ({listed}{key})"


@given(st.dictionaries(NAMES, st.tuples(tables(), st.booleans()), min_size=1, max_size=3), awkward)
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_database_comes_back(
    postgresql: Cluster, made: dict[str, tuple[Any, bool]], comment: str
) -> None:
    name, again = postgresql.new_database(), postgresql.new_database()
    with psycopg.connect(postgresql.url(name)) as connection:
        for table, ((columns, rows), unique) in made.items():
            connection.execute(_create(table, columns, unique).replace("%", "%%").encode(), [])
            said = psycopg.sql.Literal(comment)
            connection.execute(
                psycopg.sql.SQL("COMMENT ON TABLE {} IS {}").format(
                    psycopg.sql.Identifier(table), said
                )
            )
            places = ", ".join(quote(column) for column, _, _ in columns).replace("%", "%%")
            marks = ", ".join(f"%s::{kind}" for _, kind, _ in columns)
            insert = f"INSERT INTO {quote(table).replace('%', '%%')} ({places}) VALUES ({marks})"
            for row in rows:
                connection.execute(insert.encode(), row)
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "a.siard"
        transfer.archive(postgresql.url(name), archive)
        report = transfer.restore(archive, postgresql.url(again))
        assert report.left_out == ()
        for database in (name, again):
            assert compare(postgresql.url(database), str(archive)).equal
    dumps = [
        [line for line in postgresql.dump(db).splitlines() if "restrict" not in line]
        for db in (name, again)
    ]
    assert dumps[0] == dumps[1]
