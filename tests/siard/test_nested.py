"""Complex values in bulk: what the exact parser finds, or nothing."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.databases.duckdb import pieces
from muniment.errors import SiardError
from muniment.siard import parse
from muniment.siard.nested import nested_cells
from muniment.siard.parse import runs
from muniment.sql.batch import OPEN, Cell, batch_of, cells_of
from muniment.sql.model import Array, Column, Shape, Struct
from muniment.sql.types import parse_type
from siard.test_rows import HEAD, TAIL, document, leaf, read, tables

TEXT, DATE, BYTES = leaf("VARCHAR(9)"), leaf("DATE"), leaf("VARBINARY(8)")
POINT = Struct((TEXT, TEXT))
TAG = re.compile(rb"</?(?:[cua]\d+|row)>")


def exactly(xml: bytes, shapes: list[Shape]) -> bytes | None:
    """What the exact parser reads; None if it refuses."""
    try:
        return b"".join(parse._exact(run, "t", shapes).data for run in runs([xml], "t"))
    except SiardError:
        return None


def quickly(xml: bytes, shapes: list[Shape]) -> bytes | None:
    try:
        return b"".join(batch.data for batch in read(xml, shapes))
    except SiardError:
        return None


@settings(max_examples=300, deadline=None)
@given(tables(), st.data())
def test_damaged_rows_are_read_as_the_exact_parser_reads_them(
    table: tuple[list[Column], list[Shape], list[list[Cell]]], data: st.DataObject
) -> None:
    columns, shapes, rows = table
    xml = document(columns, shapes, rows)
    found = list(TAG.finditer(xml))
    if not found:
        return
    one, other = (data.draw(st.sampled_from(found)) for _ in range(2))
    put = data.draw(st.sampled_from([b"", other[0], one[0] * 2, b" " + one[0], b"<a3>", b"</u2>"]))
    damaged = xml[: one.start()] + put + xml[one.end() :]
    assert quickly(damaged, shapes) == exactly(damaged, shapes)


@pytest.mark.parametrize(
    "shape, cells",
    [
        (Array(TEXT, 9), [["a", "", "<&>"], [], None, [""], ["x"] * 20, [None, "b", None, "d"]]),
        (Array(DATE, 9), [["2020-01-02", "1999-12-31"], []]),
        (Array(BYTES, 9), [["00FF", ""], ["AB"]]),
        (POINT, [["a", "b"], [None, ""], ["", None], [None, None], None, [">", ">>"]]),
        (Struct((TEXT, DATE, BYTES, TEXT)), [["Z", "2020-01-02", "00", "Z"], [None] * 4]),
        (Struct((Array(TEXT, 9), TEXT)), [[["a", ">"], "b"], [[], None], [None, "c"]]),
        (Struct((POINT, TEXT, POINT)), [[["a", None], "b", [">", ""]], [None, "", None]]),
        (Array(Array(TEXT, 9), 9), [[["a", None, "b"], ["c"]], [], None]),
        (Array(POINT, 9), [[["a", None], [None, "b"], None, [">", ""]], [], None]),
    ],
)
def test_usual_spelling_needs_no_slow_parser(
    shape: Shape, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse, "_exact", None)
    shapes = [TEXT, shape]
    columns = [Column(name, parse_type("CLOB"), nullable=True) for name in "ab"]
    rows: list[list[Cell]] = [[f"row {n}" if n % 3 else None, cell] for n, cell in enumerate(cells)]
    assert quickly(document(columns, shapes, rows), shapes) == batch_of(rows).data


@pytest.mark.parametrize(
    "content",
    [
        "<a2>x</a2><a1>y</a1>",  # in no order
        "<a1>x</a1><a1>y</a1>",  # twice
        "<a0>x</a0>",
        "<a1>x</a2>",
        "<a900000>x</a900000>",  # far away
        "<a1>x</a1> <a2>y</a2>",
        "<a1><b/></a1>",
        "x<a1>y</a1>",
    ],
)
def test_unusual_arrays_are_left_to_the_exact_parser(content: str) -> None:
    xml = HEAD + f"<row><c1>{content}</c1></row>".encode() + TAIL
    shapes: list[Shape] = [Array(TEXT, 9)]
    assert quickly(xml, shapes) == exactly(xml, shapes)


def test_tags_that_stand_for_several_shapes_are_left_to_the_exact_parser() -> None:
    assert nested_cells([Struct((POINT,)), Struct((Array(TEXT, 9),))]) is None
    assert nested_cells([Array(Array(Array(TEXT, 9), 9), 9)]) is None
    assert nested_cells([Array(TEXT, 9), Array(POINT, 9)]) is not None


PARTS = st.text(max_size=5) | st.sampled_from(["", " ", "é"])


@given(st.lists(st.none() | st.lists(st.none() | PARTS, max_size=5), max_size=9), st.booleans())
def test_cells_become_arrow_lists_and_structs_in_bulk(
    cells: list[list[str | None] | None], as_struct: bool
) -> None:
    shape: Shape = Array(TEXT, 9)
    if as_struct:
        shape = Struct((TEXT, TEXT, TEXT))
        cells = [cell and [*cell, None, None, None][:3] for cell in cells]
        cells = [cell or None for cell in cells]
    rows: list[list[Cell]] = [[cell] for cell in cells]  # type: ignore[list-item]
    column = [cell if cell.startswith(OPEN) else None for cell in cells_of(batch_of(rows))]
    array = pa.chunked_array([pa.array(column, pa.large_binary())])
    expected = [
        cell if cell is None else pieces.nested_value(list(cell), shape)  # type: ignore[arg-type]
        for cell in cells
    ]
    assert pieces._nested_array(array, shape).to_pylist() == expected


def test_bulk_leaves_values_within_values_to_the_slow_way() -> None:
    cells = pa.chunked_array([pa.array([b"\xfa\xfaa\xfb\xfc\xfb\xfc"], pa.large_binary())])
    assert pieces._split_cells(cells, Array(Array(TEXT, 9), 9)) is None
    assert pieces._nested_array(cells, Array(Array(TEXT, 9), 9)).to_pylist() == [[["a"]]]
