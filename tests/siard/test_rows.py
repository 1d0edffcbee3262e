"""Rows as XML and back: one table of laws for writer and reader."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from muniment.errors import SiardError, Unfit
from muniment.siard.parse import RowReader, Run, runs
from muniment.siard.rows import RowWriter
from muniment.siard.schema import TABLE_NAMESPACE, table_schema
from muniment.sql.batch import Batch, Cell, batch_of, cell_value, cells_of
from muniment.sql.model import Array, Column, Leaf, Shape, Struct
from muniment.sql.types import parse_type

HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<table xmlns="{TABLE_NAMESPACE}" version="2.2">\n'.encode()
TAIL = b"</table>\n"

TEXT = st.text(st.characters(exclude_categories=()), max_size=12) | st.text(
    st.sampled_from(" \\\t\r\n\x00\x85&<>\"'Z]"), max_size=6
)


def digits(low: int, high: int, width: int) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(lambda n: f"{n:0{width}d}")


DATES = st.dates().map(lambda d: d.isoformat())
FRACTIONS = st.just("") | st.text("0123456789", min_size=1, max_size=9).map(lambda f: f".{f}")
TIMES = st.builds(
    lambda h, m, s, f: f"{h}:{m}:{s}{f}",
    digits(0, 23, 2),
    digits(0, 59, 2),
    digits(0, 59, 2),
    FRACTIONS,
)
VALUES = {
    "SMALLINT": st.integers(-(2**15), 2**15 - 1).map(str),
    "INTEGER": st.integers(-(2**31), 2**31 - 1).map(str),
    "BIGINT": st.integers(-(2**63), 2**63 - 1).map(str),
    "DECIMAL(10,2)": st.decimals(-99999999, 99999999, places=2).map(lambda d: f"{d:f}"),
    "NUMERIC": st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: f"{d:f}"),
    "REAL": st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    "DOUBLE PRECISION": st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.sampled_from(["NaN", "INF", "-INF"]),
    "FLOAT(24)": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "BOOLEAN": st.sampled_from(["true", "false"]),
    "CHAR(12)": TEXT,
    "VARCHAR(20)": TEXT,
    "CLOB": TEXT,
    "NCHAR(13)": TEXT,
    "NCHAR VARYING(13)": TEXT,
    "NCLOB": TEXT,
    "XML": TEXT,
    "BINARY(4)": st.binary(max_size=4).map(lambda b: b.hex().upper()),
    "VARBINARY(8)": st.binary(max_size=8).map(lambda b: b.hex().upper()),
    "BLOB": st.binary(max_size=30).map(lambda b: b.hex().upper()),
    "DATE": DATES,
    "TIME": TIMES,
    "TIME WITH TIME ZONE(3)": TIMES,
    "TIMESTAMP(9)": st.builds(lambda d, t: f"{d}T{t}", DATES, TIMES),
    "TIMESTAMP WITH TIME ZONE(6)": st.builds(lambda d, t: f"{d}T{t}", DATES, TIMES),
    "INTERVAL YEAR TO MONTH": st.builds(
        lambda s, y, m: f"{s}P{y}Y{m}M",
        st.sampled_from(["", "-"]),
        st.integers(0, 99),
        st.integers(0, 11),
    ),
    "INTERVAL DAY TO SECOND(6)": st.builds(
        lambda d, h, f: f"P{d}DT{h}H0M1{f}S", st.integers(0, 99), st.integers(0, 23), FRACTIONS
    ),
    "DATALINK": st.binary(max_size=3).map(lambda b: b.hex().upper()),
}


def leaf(name: str) -> Leaf:
    return Leaf(parse_type(name))


@st.composite
def shapes_and_values(draw: st.DrawFn, depth: int = 0) -> tuple[Shape, st.SearchStrategy[Cell]]:
    kind = draw(st.sampled_from(["leaf"] * 6 + (["struct", "array"] if depth < 2 else [])))
    if kind == "leaf":
        name = draw(st.sampled_from(sorted(VALUES)))
        return leaf(name), VALUES[name]
    if kind == "array":
        element, value = draw(shapes_and_values(depth + 1))
        # A trailing NULL cannot be told from a shorter array: sources refuse it.
        items = st.lists(st.none() | value, max_size=4).map(
            lambda a: a if not a or a[-1] is not None else a[: -len(a)]
        )
        return Array(element, 4), items
    parts = draw(st.lists(shapes_and_values(depth + 1), min_size=1, max_size=3))
    values = st.tuples(*(st.none() | v for _, v in parts)).map(list)
    return Struct(tuple(s for s, _ in parts)), values


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[Shape], list[list[Cell]]]:
    picked = draw(st.lists(shapes_and_values(), min_size=1, max_size=6))
    shapes = [shape for shape, _ in picked]
    columns = [Column(f"c{k}", parse_type("CLOB"), nullable=True) for k in range(len(shapes))]
    row = st.tuples(*(st.none() | value for _, value in picked)).map(list)
    return columns, shapes, draw(st.lists(row, max_size=8))


def read(document: bytes, shapes: list[Shape], size: int = 1 << 16) -> list[Batch]:
    reader = RowReader("t", shapes)
    chunks = [document[i : i + size] for i in range(0, len(document), size)]
    batches = [batch for run in runs(chunks, "t") for batch in reader(run)]
    reader.close()
    return batches


def document(columns: list[Column], shapes: list[Shape], rows: list[list[Cell]]) -> bytes:
    return HEAD + RowWriter("t", columns, shapes)(batch_of(rows)) + TAIL


@settings(max_examples=300, deadline=None)
@given(tables(), st.sampled_from([1 << 16, 7]))
def test_rows_of_every_type_read_back_exactly(
    table: tuple[list[Column], list[Shape], list[list[Cell]]], size: int
) -> None:
    columns, shapes, rows = table
    found = b"".join(b.data for b in read(document(columns, shapes, rows), shapes, size))
    assert found == batch_of(rows).data


@pytest.mark.parametrize("rows", [[["", None], ["a", ""], [None, "b>"]], [[None, ""]] * 3])
def test_empty_cells_are_told_from_missing_ones_without_the_slow_parser(
    rows: list[list[Cell]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.siard.parse._exact", None)
    shapes = [leaf("VARCHAR(9)")] * 2
    columns = [Column(name, parse_type("VARCHAR(9)"), nullable=True) for name in "ab"]
    xml = document(columns, shapes, rows)
    for spelling in (xml, xml.replace(b"<row>", b"<row>\n ")):
        assert b"".join(b.data for b in read(spelling, shapes)) == batch_of(rows).data


@settings(max_examples=100, deadline=None)
@given(tables())
def test_the_files_obey_their_schema(
    table: tuple[list[Column], list[Shape], list[list[Cell]]],
) -> None:
    columns, shapes, rows = table
    schema = etree.XMLSchema(etree.fromstring(table_schema(columns, shapes)))
    schema.assertValid(etree.fromstring(document(columns, shapes, rows)))


def test_xmllint_agrees_about_every_type(tmp_path: Path) -> None:
    shapes: list[Shape] = [leaf(name) for name in sorted(VALUES)]
    columns = [Column(name, parse_type(name)) for name in sorted(VALUES)]
    rows: list[list[Cell]] = [[None] * len(shapes), [_sample(name) for name in sorted(VALUES)]]
    (tmp_path / "t.xsd").write_bytes(table_schema(columns, shapes))
    (tmp_path / "t.xml").write_bytes(document(columns, shapes, rows))
    command = ["xmllint", "--noout", "--schema", str(tmp_path / "t.xsd"), str(tmp_path / "t.xml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _sample(name: str) -> str:
    samples = {
        "DATE": "2024-02-29", "BOOLEAN": "true", "REAL": "0.5", "DOUBLE PRECISION": "-INF", "FLOAT(24)": "1e10",
        "TIME": "23:59:59.123", "TIME WITH TIME ZONE(3)": "00:00:00", "TIMESTAMP(9)": "9999-12-31T23:59:59.999999999",
        "TIMESTAMP WITH TIME ZONE(6)": "0001-01-01T00:00:00", "INTERVAL YEAR TO MONTH": "P1Y2M",
        "INTERVAL DAY TO SECOND(6)": "P1DT2H3M4.5S",
    }  # fmt: skip
    if name in ("SMALLINT", "INTEGER", "BIGINT", "DECIMAL(10,2)", "NUMERIC"):
        return "-12"
    binary = name.startswith(("BINARY", "VARBINARY", "BLOB", "DATALINK"))
    return samples.get(name, "0AFF" if binary else " a\x00 & <b> ")


def test_null_is_a_missing_column_and_empty_is_not() -> None:
    columns = [Column("a", parse_type("CLOB")), Column("b", parse_type("CLOB"))]
    xml = RowWriter("t", columns, [leaf("CLOB")] * 2)(batch_of([[None, ""], ["", None]]))
    assert xml == b"<row><c2></c2></row>\n<row><c1></c1></row>\n"


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("DATE", "2023-02-29"), ("DATE", "0000-01-01"), ("DATE", "2023-1-1"), ("DATE", "10000-01-01"),
        ("DATE", "1900-02-29"), ("TIMESTAMP", "2023-01-01 10:00:00"), ("TIME", "24:00:00"), ("DATE", ""),
        ("DECIMAL(5,2)", "1.234"), ("DECIMAL(5,2)", "1234.5"), ("NUMERIC", "NaN"), ("NUMERIC", "1e5"),
        ("VARCHAR(3)", "äöü\0"),
        ("NUMERIC", ""), ("BINARY(2)", "0"), ("INTERVAL DAY TO SECOND", "P"), ("DATE", "infinity"),
    ],
)  # fmt: skip
def test_a_value_that_its_type_does_not_know_is_refused_with_its_place(
    type_: str, value: str
) -> None:
    columns = [Column("id", parse_type("INTEGER")), Column("x", parse_type(type_))]
    write = RowWriter("main.t", columns, [leaf("INTEGER"), leaf(type_)])
    with pytest.raises(Unfit) as caught:
        write(batch_of([["1", None], ["2", value]]), first=10)
    assert (caught.value.where, caught.value.row) == ("main.t.x", 11)
    assert "--as-text main.t.x" in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (Array(leaf("DATE"), 4), [None, "2020-02-29", "2021-02-29"]),
        (Array(leaf("DATE"), 4), ["infinity"]),
        (
            Array(Array(leaf("TIMESTAMP"), 4), 4),
            [["2020-01-01T10:00:00"], None, ["2020-01-01 10:00:00"]],
        ),
        (Struct((leaf("CLOB"), leaf("DATE"))), ["12020-01-01", "12020-01-01"]),
        (Struct((leaf("CLOB"), Array(leaf("DECIMAL(5,2)"), 4))), ["x", ["1.20", "1.234"]]),
        (Struct((Struct((leaf("TIME"),)), leaf("INTEGER"))), [["24:00:00"], "1"]),
        (Array(leaf("BINARY(2)"), 4), ["00", "0"]),
    ],
)
def test_a_part_that_its_type_does_not_know_is_refused_with_its_place(
    shape: Shape, value: Cell
) -> None:
    columns = [Column("id", parse_type("INTEGER")), Column("x", parse_type("CLOB"))]
    write = RowWriter("main.t", columns, [leaf("INTEGER"), shape])
    with pytest.raises(Unfit) as caught:
        write(batch_of([["1", None], ["2", value]]), first=10)
    assert (caught.value.where, caught.value.row) == ("main.t.x", 11)


def test_lengths_count_characters_not_bytes() -> None:
    columns = [Column("x", parse_type("VARCHAR(3)"))]
    assert "äöü".encode() in RowWriter("t", columns, [leaf("VARCHAR(3)")])(batch_of([["äöü"]]))


@pytest.mark.parametrize("value", ["1.23", "-123.4", "0", "001.20", "123", ".5"])
def test_decimals_within_their_digits_pass(value: str) -> None:
    columns = [Column("x", parse_type("DECIMAL(5,2)"))]
    assert value.encode() in RowWriter("t", columns, [leaf("DECIMAL(5,2)")])(batch_of([[value]]))


def test_null_in_a_column_that_forbids_it_is_refused() -> None:
    columns = [Column("x", parse_type("CLOB"), nullable=False)]
    with pytest.raises(Unfit, match="NULL"):
        RowWriter("t", columns, [leaf("CLOB")])(batch_of([["a"], [None]]))


def test_bytes_that_are_not_unicode_are_refused_with_their_place() -> None:
    columns = [Column("x", parse_type("CLOB"))]
    with pytest.raises(Unfit, match=r"row 2.*Unicode"):
        RowWriter("t", columns, [leaf("CLOB")])(Batch(b"a\xfd\xc3\x28\xfd", 2))


TWO = [leaf("CLOB"), leaf("DATE")]


@pytest.mark.parametrize(
    "body",
    [
        b"<row><c1>a</c1><c2>2020-01-01Z</c2></row><row><c2>2020-01-02</c2></row>",
        b"\n  <row>\n    <c1>a</c1>\n    <c2>2020-01-01Z</c2>\n  </row>\n  <row><c2>2020-01-02Z</c2></row>\n",
        b"<row><c1><![CDATA[a]]></c1><c2>2020-01-01Z</c2></row><!-- </row> --><row><c2>2020-01-02Z</c2></row>",
        b"<row ><c1\n>a</c1><c2>2020-01-01Z</c2></row><row><c2>2020-01-02Z</c2></row >",
        b"<row><c1>&#97;</c1><c2>2020-01-01Z</c2></row>\r\n<row><c2>2020-01-02Z</c2></row>",
        b'<row><c1 xml:space="preserve">a</c1><c2>2020-01-01Z</c2></row><row><c2>2020-01-02Z</c2></row>',
    ],
)
@pytest.mark.parametrize(
    "head",
    [
        b"<table>", HEAD, b"\xef\xbb\xbf<?xml version='1.0'?><!-- c --><table xmlns='x'>",
        b"<?xml version='1.0' encoding='utf-8' standalone='no'?>\r\n<table\r\n version='2.2'>",
    ],
)  # fmt: skip
def test_other_writers_spellings_give_the_same_rows(head: bytes, body: bytes) -> None:
    found = b"".join(b.data for b in read(head + body + b"</table>", TWO))
    assert found == batch_of([["a", "2020-01-01"], [None, "2020-01-02"]]).data


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_other_encodings_and_prefixes_are_read_by_the_exact_parser(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><s:table xmlns:s="x"><s:row><s:c1>é</s:c1></s:row></s:table>'
    found = read(text.encode(encoding), TWO, 5)
    assert b"".join(b.data for b in found) == batch_of([["é", None]]).data


def test_empty_and_self_closed_cells_are_empty_not_null() -> None:
    found = read(b"<table><row><c1/></row><row><c1></c1></row><row></row></table>", [leaf("CLOB")])
    assert b"".join(b.data for b in found) == batch_of([[""], [""], [None]]).data


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<row><c1>a</c2></row>", "malformed XML at byte"),
        (b"<row><c1>a</c1>", "malformed XML at byte"),
        (b"<row><c9>a</c9></row>", "unexpected element <c9>"),
        (b"<row><c1>&evil;</c1></row>", "malformed XML at byte"),
        (b"<row><c1>&#0;</c1></row>", "malformed XML at byte"),
        (b"<row><c1>&#99999999999999999999;</c1></row>", "malformed XML at byte"),
        (b"<row><c1>lost</c1><c1>a</c1></row>", "unexpected element <c1>"),
        (b"<row><c99999999999999999999>a</c99999999999999999999></row>", "unexpected element"),
        (b"<row><c1>\x01</c1></row>", "malformed XML at byte"),
        (b"<row><c1>\xff</c1></row>", "malformed XML at byte"),
        (b"<row><c1><u1>a</u1></c1></row>", "unexpected element <u1>"),
        (b"<rows></rows><row></row>", "unexpected element <rows>"),
    ],
)
def test_damaged_rows_are_named_with_their_place(body: bytes, message: str) -> None:
    with pytest.raises(SiardError, match=message):
        read(b"<table>" + body + b"</table>", [leaf("CLOB")])


def test_a_truncated_file_is_named_so() -> None:
    with pytest.raises(SiardError, match="truncated"):
        read(b"<table><row><c1>a</c1></row><row><c1>", [leaf("CLOB")])


@pytest.mark.parametrize("text", ["0G", "ABC", "é"])
def test_what_is_not_hex_is_named_with_its_place(text: str) -> None:
    with pytest.raises(SiardError, match=r"<c1> at byte \d+"):
        read(f"<table><row><c1>{text}</c1></row></table>".encode(), [leaf("BLOB")])


def test_an_array_of_a_billion_parts_is_refused() -> None:
    with pytest.raises(SiardError, match="unexpected element"):
        read(
            b"<table><row><c1><a99999999>x</a99999999></c1></row></table>", [Array(leaf("CLOB"), 3)]
        )


def test_line_ends_are_those_of_xml() -> None:
    found = read(b"<table><row><c1>a\r\nb\rc</c1></row></table>", [leaf("CLOB")])
    assert b"".join(b.data for b in found) == batch_of([["a\nb\nc"]]).data


def test_a_document_type_is_refused() -> None:
    bomb = b'<!DOCTYPE table [<!ENTITY a "aaaa">]><table><row><c1>&a;</c1></row></table>'
    with pytest.raises(SiardError, match="document type"):
        read(bomb, [leaf("CLOB")])


def test_the_position_of_damage_counts_from_the_start_of_the_file() -> None:
    body = b"<row><c1>a</c1></row>\n" * 3
    with pytest.raises(SiardError) as caught:
        read(b"<table>" + body + b"<row><c1>b</cX></row></table>", [leaf("CLOB")])
    position = int(str(caught.value).partition("at byte ")[2].split(":")[0])
    assert position == pytest.approx(7 + len(body) + len("<row><c1>b</"), abs=4)


def test_runs_cut_large_files_at_row_ends() -> None:
    row = b"<row><c1>" + b"x" * 500 + b"</c1></row>\n"
    document = HEAD + row * 20000 + TAIL
    chunks = [document[i : i + 65536] for i in range(0, len(document), 65536)]
    found = list(runs(chunks, "t"))
    assert len(found) > 1
    assert b"".join(run.xml for run in found).strip() == (row * 20000).strip()
    assert all(isinstance(run, Run) and document[run.offset :].startswith(run.xml) for run in found)


def test_cells_of_a_batch_are_values() -> None:
    rows: list[list[Cell]] = [["1", None, ["a", None, ["b"]]], ["", "x", []]]
    assert [cell_value(cell) for cell in cells_of(batch_of(rows))] == [
        c for row in rows for c in row
    ]
