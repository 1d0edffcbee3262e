"""Typed columns hold what the text says."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.sql.arrow import arrow_type, typed_batch
from muniment.sql.batch import Cell, batch_of
from muniment.sql.model import Array, Column, Leaf, Shape, Struct
from muniment.sql.types import parse_type


def typed(shape: Shape, cells: list[Cell]) -> list[Any]:
    batch = typed_batch(batch_of([[c] for c in cells]), [Column("x", parse_type("CLOB"))], [shape])
    return batch.column(0).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("SMALLINT", "-5", -5), ("BIGINT", "9223372036854775807", 2**63 - 1), ("BOOLEAN", "true", True),
        ("DECIMAL(10,2)", "1.10", Decimal("1.10")), ("DECIMAL(50,3)", "-1.5", Decimal("-1.500")),
        ("NUMERIC", "1.10", "1.10"), ("REAL", "0.5", 0.5), ("DOUBLE PRECISION", "-INF", float("-inf")),
        ("VARCHAR(9)", "ä", "ä"), ("BLOB", "00FF", b"\x00\xff"), ("DATE", "2024-02-29", dt.date(2024, 2, 29)),
        ("TIME", "23:59:59.5", dt.time(23, 59, 59, 500000)), ("TIMESTAMP", "2024-02-29T01:02:03.000004", dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
        ("TIMESTAMP WITH TIME ZONE(6)", "1970-01-01T00:00:00", dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        ("INTERVAL DAY TO SECOND", "P1D", "P1D"),
    ],
)  # fmt: skip
def test_values_are_what_the_text_says(type_: str, text: str, value: object) -> None:
    assert typed(Leaf(parse_type(type_)), [text, None]) == [value, None]


@settings(max_examples=100)
@given(st.lists(st.none() | st.floats(allow_nan=False)))
def test_floats_keep_their_bits(values: list[float | None]) -> None:
    cells: list[Cell] = [None if v is None else repr(v).replace("inf", "INF") for v in values]
    assert typed(Leaf(parse_type("DOUBLE PRECISION")), cells) == values


@settings(max_examples=100)
@given(st.lists(st.none() | st.datetimes()))
def test_timestamps_keep_their_microseconds(values: list[dt.datetime | None]) -> None:
    cells: list[Cell] = [None if v is None else v.isoformat() for v in values]
    assert typed(Leaf(parse_type("TIMESTAMP(6)")), cells) == values


def test_complex_values_become_lists_and_structs() -> None:
    point = Struct((Leaf(parse_type("INTEGER")), Leaf(parse_type("DATE"))), ("x", "day"))
    shape = Array(point, 3)
    assert arrow_type(shape) == pa.list_(pa.struct([("x", pa.int32()), ("day", pa.date32())]))
    assert typed(shape, [[["1", "2020-01-01"], None], [], None]) == [
        [{"x": 1, "day": dt.date(2020, 1, 1)}, None],
        [],
        None,
    ]


def test_values_that_lie_elsewhere_are_fetched() -> None:
    batch = batch_of([["x"]])
    batch = type(batch)(b"\xf9here\xfd\xfe\xfd", 2)
    column = [Column("x", parse_type("BLOB"))]
    found = typed_batch(batch, column, [Leaf(parse_type("BLOB"))], lambda r: b"<" + r + b">")
    assert found.column(0).to_pylist() == [b"<here>", None]
    with pytest.raises(ValueError, match="elsewhere"):
        typed_batch(batch, column, [Leaf(parse_type("BLOB"))])


def test_a_value_beyond_its_type_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        typed(Leaf(parse_type("SMALLINT")), ["40000"])
