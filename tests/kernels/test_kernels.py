"""The kernels give what pure Python gives, or leave it to that; usual data they do themselves."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment import kernels
from muniment.databases.duckdb.pieces import _Splitter
from muniment.databases.postgresql.copytext import decode_rows, encode_rows
from muniment.errors import SiardError, Unfit
from muniment.siard.parse import RowReader, Run
from muniment.siard.rows import RowWriter
from muniment.siard.rules.keys import KeyColumns
from muniment.sql.batch import Batch, batch_of, rows_of
from muniment.sql.lengths import may_exceed
from muniment.sql.model import Column, Leaf
from muniment.sql.types import parse_type

T = TypeVar("T")
TYPES = [
    "INTEGER", "DECIMAL(10,2)", "NUMERIC", "NUMERIC(5)", "NUMERIC(2,2)", "DOUBLE PRECISION",
    "BOOLEAN", "VARCHAR(20)", "CLOB", "VARBINARY(9)", "DATE", "TIME", "TIMESTAMP(6)",
]  # fmt: skip
USUAL = {
    "INTEGER": "-17", "DECIMAL(10,2)": "1.10", "NUMERIC": "00123456789012345678901234567890.5",
    "NUMERIC(5)": "99999", "NUMERIC(2,2)": "0.25", "DOUBLE PRECISION": "1e+300", "BOOLEAN": "true",
    "VARCHAR(20)": " a  b\t\\u0020 é字😀 &<>\"' ", "CLOB": "", "VARBINARY(9)": "00FF",
    "DATE": "2024-02-29", "TIME": "23:59:59.123", "TIMESTAMP(6)": "0001-01-01T00:00:00",
}  # fmt: skip
# Values of all types, good and bad, for columns of all types.
ODD = st.sampled_from([
    "0000-01-01", "2023-02-29", "1900-02-29", "2000-02-29", "2024-13-01", "2024-04-31", "2024-1-01",
    "24:00:00", "12:60:00", "12:00:00.", "12:00", "2024-01-01 00:00:00", "2024-01-01T00:00:00Z", "+1",
    "1.", ".5", "-", "-.5", "1.234", "123456789.00", "001.00", "NaN", "0F0", "0f", "0g", "", "9" * 50,
    "\ud800", "\ud83d\ude00", "\uffff", "\ufffe", "\x00", "\x85", "\x9f", "\x7f", "é", "a" * 30,
])  # fmt: skip
# Text of more than the sixteen bytes that the loops take at a time, with what stops them anywhere.
LONG = st.text(
    st.sampled_from("abcdefghij 0123456789  &<>'\"\\u\t\r\x7fé字😀Z"), min_size=12, max_size=60
)
CELLS = st.none() | ODD | st.sampled_from(list(USUAL.values())) | st.text(max_size=8) | LONG


def columns_of(types: list[str], nullable: bool = True) -> tuple[list[Column], list[Leaf]]:
    parsed = [parse_type(name) for name in types]
    columns = [Column(f"c{k}", type_, nullable=nullable) for k, type_ in enumerate(parsed)]
    return columns, [Leaf(type_) for type_ in parsed]


def written(types: list[str], batch: Batch, trusted: bool, nullable: bool = True) -> bytes | str:
    """The XML of a batch, or the words of the refusal."""
    try:
        return RowWriter("t", *columns_of(types, nullable))(batch, trusted=trusted)
    except Unfit as error:
        return str(error)


def read(types: list[str], xml: bytes) -> list[bytes] | str:
    """The rows of some XML, or the words of the refusal."""
    try:
        data = b"".join(b.data for b in RowReader("t", columns_of(types)[1])(Run(xml, 0)))
    except SiardError as error:
        return str(error)
    return data.split(b"\xfd")


def at_once(on: bool) -> None:
    kernels._missing = 0 if on else kernels._NEVER


@pytest.fixture(autouse=True)
def as_before() -> object:
    before = kernels._missing
    yield
    kernels._missing = before


def two_ways(work: Callable[[], T]) -> tuple[T, T]:
    at_once(False)
    slow = work()
    at_once(True)
    return slow, work()


TABLES = st.lists(st.sampled_from(TYPES), min_size=1, max_size=5).flatmap(
    lambda types: st.tuples(
        st.just(types), st.lists(st.tuples(*[CELLS] * len(types)).map(list), max_size=4)
    )
)


@given(table=TABLES, trusted=st.booleans(), nullable=st.booleans())
@example(
    table=(["CLOB"], [["  "], [" "], ["a "], [" a"], ["   b   "]]), trusted=False, nullable=True
)
@example(table=(["VARCHAR(20)"], [["\x00" + "a" * 30]]), trusted=False, nullable=True)
def test_writing_gives_the_same_on_both_roads(
    table: tuple[list[str], list[list[str | None]]], trusted: bool, nullable: bool
) -> None:
    types, rows = table
    batch = batch_of(rows)
    slow, fast = two_ways(lambda: written(types, batch, trusted, nullable))
    assert fast == slow


@given(table=TABLES)
def test_what_was_written_is_read_the_same_on_both_roads(
    table: tuple[list[str], list[list[str | None]]],
) -> None:
    types, rows = table
    at_once(False)
    xml = written(types, batch_of(rows), trusted=True)
    assert isinstance(xml, bytes)
    slow, fast = two_ways(lambda: read(types, xml))
    assert fast == slow


PIECES = st.sampled_from([
    b"<row>", b"</row>", b"<c1>", b"</c1>", b"<c2>", b"</c2>", b"<c3/>", b"<c1 file='x'/>", b"\n", b" ", b"\r", b"\t",
    b"&lt;", b"&amp;", b"&#65;", b"&x;", b"&", b"\\u0041", b"\\ud83d\\ude00", b"\\ud800", b"\\u00e9", b"\\u20ac", b"\\u12",
    b"\\", b"Z", b"2024-01-01", b"00ff", b"0", b"\xc3\xa9", b"\xff", b"\xed\xa0\x80", b"\x01", b"<!--x-->", b"]]>", b">",
])  # fmt: skip
ROWS = st.lists(PIECES, max_size=4).map(b"".join).map(
    lambda text: b"<row><c1>" + text + b"</c1></row>\n"
) | st.lists(PIECES, max_size=8).map(b"".join)


@given(
    types=st.lists(st.sampled_from(TYPES), min_size=1, max_size=3), xml=st.lists(ROWS, max_size=3)
)
@example(types=["CLOB"], xml=[b"<row><c1>\\u0041\\u00</c1></row>"])
@example(types=["CLOB"], xml=[b"<row><c1>a\r\nb</c1></row>"])
def test_any_xml_is_read_the_same_on_both_roads(types: list[str], xml: list[bytes]) -> None:
    text = b"".join(xml)
    slow, fast = two_ways(lambda: read(types, text))
    assert fast == slow


@given(table=TABLES)
def test_columns_are_the_same_on_both_roads(
    table: tuple[list[str], list[list[str | None]]],
) -> None:
    types, rows = table
    splitter = _Splitter(len(types))

    def columns() -> list[list[bytes | None]]:
        splitter.add(batch_of(rows))
        splitter.add(batch_of(rows))
        return [column.to_pylist() for column in splitter.columns()] if rows else []

    slow, fast = two_ways(columns)
    assert fast == slow
    assert not rows or len(fast[0]) == 2 * len(rows)


def proper(type_: str) -> st.SearchStrategy[str | None]:
    return CELLS if type_ in ("VARCHAR(20)", "CLOB") else st.none() | st.just(USUAL[type_])


PROPER = st.lists(st.sampled_from(TYPES), min_size=1, max_size=5).flatmap(
    lambda types: st.tuples(
        st.just(types), st.lists(st.tuples(*map(proper, types)).map(list), max_size=4)
    )
)


@given(table=PROPER, gap=st.sampled_from([b"", b"\n  "]))
def test_key_columns_are_the_same_on_both_roads(
    table: tuple[list[str], list[list[str | None]]], gap: bytes
) -> None:
    types, rows = table
    at_once(False)
    xml = written(types, batch_of(rows), trusted=True)
    assert isinstance(xml, bytes)
    xml = xml.replace(b"<row><", b"<row>" + gap + b"<")
    numbers = list(range(1, len(types) + 1, 2))
    keys = KeyColumns(numbers, tuple(columns_of(types)[1]))

    def gathered() -> bytes:
        run = keys.gather()
        run.take_plain(xml)
        run.take_plain(xml)
        return run.finish()

    slow, fast = two_ways(gathered)
    assert bool(fast) == bool(slow) == bool(rows and keys.numbers)
    if fast:
        both = [pa.ipc.open_stream(data).read_all() for data in (slow, fast)]
        assert both[0].to_pylist() == both[1].to_pylist()


def test_a_batch_of_another_width_has_no_columns() -> None:
    assert kernels.splitting_kernel()(batch_of([["1", "2"]]).data, 1, 3) is None
    assert kernels.splitting_kernel()(batch_of([["1", "2"]]).data, 2, 1) is None
    assert kernels.splitting_kernel()(batch_of([["1", "2"]]).data, 1, 2) is not None


@pytest.mark.parametrize("type_", TYPES)
def test_usual_values_are_done_by_the_kernels(type_: str) -> None:
    columns, shapes = columns_of([type_, type_])
    batch = batch_of([[USUAL[type_], None], [None, USUAL[type_]]])
    writer = RowWriter("t", columns, shapes)
    write = kernels.writing_kernel(shapes, writer._opens, writer._closes, [True, True])
    xml = write(batch.data, batch.rows, True)
    assert xml is not None
    assert kernels.reading_kernel(shapes)(xml) == batch


def test_kernels_wait_until_there_is_enough_to_do() -> None:
    kernels._missing = 100
    assert [kernels.worth_while(60) for _ in range(4)] == [False, False, True, True]


def test_rows_of_many_nulls_have_room() -> None:
    _, shapes = columns_of(["INTEGER"] * 300)
    xml, rows = b"<row></row>\n" * 2000 + b"<row></row>" * 2000, batch_of([[None] * 300])
    at_once(True)
    kernel = kernels.reading_kernel(shapes)
    assert kernel(xml) == Batch(rows.data * 4000, 4000)


def test_machine_code_is_not_loaded_for_stored_values(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(True)
    asked: list[object] = []

    def reading_kernel(shapes: list[Leaf]) -> kernels.Reading:
        asked.append(shapes)
        return lambda _xml: None

    monkeypatch.setattr("muniment.siard.parse.reading_kernel", reading_kernel)
    reader = RowReader("t", columns_of(["INTEGER", "BLOB"])[1])
    stored = b'<row><c1>1</c1><c2 file="a.bin" length="3"/></row>\n'
    assert [batch.rows for batch in reader(Run(stored * 3, 0))] == [3]
    assert not asked
    assert [batch.rows for batch in reader(Run(b"<row><c1>1</c1></row>\n", 0))] == [1]
    assert asked


def test_without_numba_everything_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    for name in ("writing", "reading", "columns", "machine", "sqlite", "digests", "foreign"):
        monkeypatch.delitem(sys.modules, f"muniment.kernels.{name}", raising=False)
    monkeypatch.setattr(kernels, "_loaded", kernels._loaded.__wrapped__)
    at_once(True)
    assert written(["INTEGER"], batch_of([["1"]]), trusted=False) == b"<row><c1>1</c1></row>\n"
    assert kernels.stepping_kernel() is None
    assert kernels.digest_kernel() is None


def test_archives_are_the_same_byte_for_byte(shop: Path, tmp_path: Path) -> None:
    digests = set()
    for setting in ("never", "always"):
        made, back = tmp_path / f"{setting}.siard", tmp_path / f"{setting}.db"
        environment = {**os.environ, "MUNIMENT_KERNELS": setting}
        for command in (
            ["archive", f"sqlite:///{shop}", str(made), "--archival-date", "2026-01-01"],
            ["restore", str(made), f"sqlite:///{back}"],
            ["compare", str(made), f"sqlite:///{back}"],
        ):
            line = [sys.executable, "-m", "muniment", *command]
            subprocess.run(line, env=environment, check=True, capture_output=True)
        digests.add(hashlib.sha256(made.read_bytes()).hexdigest())
    assert len(digests) == 1


COPIED = st.text(st.sampled_from("a\\Nntrbfvx\t\n\r\b\f\v0é字😀"), max_size=30)


@given(COPIED | st.text(max_size=30))
@example("\\")
@example("a\\x")
def test_copy_text_is_taken_apart_as_python_does(text: str) -> None:
    from muniment.kernels.copying import decode

    with_kernels, kernels._missing = kernels._missing, 1 << 62
    try:
        data = b"".join((text.replace("\n", "").encode(), b"\xff\xfe\xff", text.encode(), b"\xfd"))
        copied = encode_rows(data)
        assert decode(copied) == decode_rows(copied) == data
        assert decode(text.encode()) in (None, decode_rows(text.encode()))
    finally:
        kernels._missing = with_kernels


def test_copy_text_that_no_server_writes_is_left_to_python() -> None:
    from muniment.kernels.copying import decode

    assert decode(b"a\\x41\n") is None
    assert decode(b"a\\") is None


@given(
    rows=st.lists(
        st.lists(st.none() | st.text(max_size=30) | LONG, min_size=2, max_size=2), max_size=6
    ),
    limit=st.integers(0, 200),
)
def test_long_rows_are_found_on_both_roads(rows: list[list[str | None]], limit: int) -> None:
    batch = batch_of(rows)
    slow, fast = two_ways(lambda: may_exceed(batch, limit))
    assert fast == slow == any(len(row) > limit for row in rows_of(batch))
