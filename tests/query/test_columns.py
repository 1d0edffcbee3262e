"""Rows read by all their tags at once are the rows that the other reader finds."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment.errors import SiardError
from muniment.query.columns import ColumnReader
from muniment.query.encode import IndexEncoder
from muniment.siard.cells import escape_cells
from muniment.siard.parse import RowReader, Run
from muniment.sql.batch import CELL, NULL, rows_of
from muniment.sql.model import Leaf
from muniment.sql.types import parse_type

TYPES = ("INTEGER", "VARCHAR(20)", "DATE", "CLOB", "TIMESTAMP")
SHAPES = [Leaf(parse_type(name)) for name in TYPES]
WIDE = [Leaf(parse_type("VARCHAR(20)")) for _ in range(120)]

# Text as an archive holds it, and markup that only looks like ours.
cells = (
    st.none()
    | st.text(max_size=8)
    | st.sampled_from(
        ["", "Z", "</c1>", "<row>", "1999-01-01Z", "&amp;", "\\u0020", " a  b ", "\ud800", "\x07"]
    )
)
rows = st.tuples(
    st.none() | st.integers().map(str),
    cells,
    st.none() | st.dates().map(lambda day: f"{day}Z"),
    cells,
    st.none() | st.datetimes().map(lambda moment: f"{moment.isoformat()}Z"),
).map(list)


def spelt(rows: list[list[str | None]]) -> bytes:
    """The XML that our own writer makes of rows."""
    lines = []
    for row in rows:
        tags = b"".join(
            b"<c%d>%b</c%d>" % (k, escape_cells(cell.encode("utf-8", "surrogatepass")), k)
            for k, cell in enumerate(row, 1)
            if cell is not None
        )
        lines.append(b"<row>" + tags + b"</row>\n")
    return b"".join(lines)


def by_batches(xml: bytes, shapes: list[Leaf]) -> list[list[bytes | None]]:
    rows = [
        [None if cell == NULL else cell for cell in row.split(CELL)]
        for batch in RowReader("t", shapes)(Run(xml, 0))
        for row in rows_of(batch)
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def by_tags(xml: bytes, shapes: list[Leaf]) -> list[list[bytes | None]] | None:
    columns = ColumnReader(shapes)(xml)
    return None if columns is None else [column.to_pylist() for column in columns]


@given(st.lists(rows, min_size=1, max_size=6))
@example([["1", None, None, "a", None], [None] * 5, ["2", "", "2001-01-01", "", None]])
def test_both_readers_find_the_same_cells(rows: list[list[str | None]]) -> None:
    xml = spelt(rows)
    assert by_tags(xml, SHAPES) == by_batches(xml, SHAPES)


@given(st.dictionaries(st.integers(0, 119), cells, max_size=4))
def test_numbers_of_three_digits_are_columns_too(there: dict[int, str | None]) -> None:
    xml = spelt([[there.get(k) for k in range(120)]])
    assert by_tags(xml, WIDE) == by_batches(xml, WIDE)


noise = st.sampled_from(
    [b"<row>", b"</row>", b"</row>\n", b"<c1>", b"</c1>", b"<c2>", b"</c2>", b"<c5>", b"</c5>",
     b"<c6>x</c6>", b"<c1/>", b"<c01>", b"</c01>", b"<c1 >", b"<!-- -->", b"<![CDATA[", b"]]>",
     b"x", b"\n", b" ", b"&", b"&lt;", b"<", b">", b"/", b"\\", b"\xff", b"\xc3", b"\r\n",
     b'<c4 file="x" length="3"/>', b"<c0>1</c0>", b"<c:>", b"<c1></c1>"]
)  # fmt: skip


@given(st.lists(noise, min_size=1, max_size=14))
@example([b"<row>", b"<c2>", b"x", b"</c2>", b"<c1>", b"</c1>", b"</row>\n"])
@example([b"<row>", b"<c1>", b"</c1>", b"<c1>", b"</c1>", b"</row>\n"])
@example([b"<row>", b"<c1>", b"<c1>", b"</c1>", b"</c1>", b"</row>\n"])
def test_what_is_proved_is_what_any_xml_reader_finds(pieces: list[bytes]) -> None:
    """Markup of any kind is refused, or read as the exact parser reads it."""
    xml = b"".join(pieces)
    found = by_tags(xml, SHAPES)
    if found is None:
        return
    parser_sees = by_batches(xml.replace(b"<row>", b"<row ><!---->", 1), SHAPES)
    assert found == parser_sees


@pytest.mark.parametrize("name", ["BLOB", "BINARY(3)"])
def test_columns_of_octets_are_left_to_the_other_reader(name: str) -> None:
    assert not ColumnReader([Leaf(parse_type(name))]).able


def test_columns_become_values() -> None:
    xml = spelt([["7", "a", "1999-12-31", "long", "2001-02-03T04:05:06"]])
    columns = ColumnReader(SHAPES)(xml)
    assert columns is not None
    table = IndexEncoder(tuple(SHAPES))._table(columns)
    assert table.schema.types[0] == pa.int64()
    assert [str(value) for value in table.to_pylist()[0].values()] == [
        "7", "a", "1999-12-31", "long", "2001-02-03 04:05:06",
    ]  # fmt: skip


def test_a_row_that_names_a_column_beyond_the_last_is_not_accepted() -> None:
    xml = b"<row><c9>1</c9></row>\n"
    assert by_tags(xml, SHAPES) is None
    with pytest.raises(SiardError):
        by_batches(xml, SHAPES)
