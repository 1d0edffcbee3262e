"""The expressions that prove rows: what they match, libxml2 and the exact checks accept as well."""

from __future__ import annotations

import re

import pytest
from broken_archives import TABLE, VALID
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from muniment.siard.rules.archive import safe_parser
from muniment.siard.rules.tablexsd import Definition, TableSchema, parse_table_schema
from muniment.siard.rules.values import fault, proof
from muniment.sql.types import PredefinedType, parse_type

# Each SQL type with the XML types in which it is stored, and the forms that makers of archives
# give to the special ones.
COLUMNS = [
    ("SMALLINT", "xs:integer"), ("INTEGER", "xs:integer"), ("BIGINT", "xs:integer"),
    ("INTEGER", "xs:decimal"), ("DECIMAL(8,2)", "xs:decimal"), ("NUMERIC(5)", "xs:decimal"),
    ("DECIMAL(3,3)", "xs:decimal"), ("DECIMAL", "xs:decimal"), ("REAL", "xs:float"),
    ("DOUBLE PRECISION", "xs:double"), ("BOOLEAN", "xs:boolean"), ("VARCHAR(4)", "xs:string"),
    ("CLOB", "clobType"), ("CHAR(2)", "xs:string"), ("VARBINARY(3)", "xs:hexBinary"),
    ("BLOB", "blobType"), ("DATE", "dateType"), ("DATE", "xs:date"), ("TIME", "timeType"),
    ("TIME(3)", "timeType"), ("TIMESTAMP(6)", "dateTimeType"), ("TIMESTAMP", "xs:dateTime"),
    ("INTERVAL YEAR TO MONTH", "xs:duration"), ("INTERVAL DAY TO SECOND", "xs:duration"),
]  # fmt: skip
LIMITS = [
    ("0001-01-01{t}Z", "10000-01-01{t}Z"),
    ("0001-01-01{t}", "10000-01-01{t}"),
    ("0001-01-01{t}Z", "9999-12-31{e}Z"),
]
FRACTIONS = [r"(\.\d+)?", r"(\.\d*)", ""]


def schema(type_: str, limits: tuple[str, str], fraction: str) -> TableSchema:
    """A table of one column, with one maker's definitions of the special types."""
    low, high = limits
    text = VALID["content/schema0/table0/table0.xsd"].decode()
    start, end = (
        text.index('<xs:element name="c1"'),
        text.index('  </xs:sequence></xs:complexType>\n  <xs:complexType name="clob'),
    )
    text = text[:start] + f'<xs:element name="c1" type="{type_}"/>' + text[end:]
    text = text[: text.index('  <xs:simpleType name="dateType"')]
    clock = ".000000000"
    text += (
        f'<xs:simpleType name="dateType"><xs:restriction base="xs:date"><xs:minInclusive value="{low.format(t="")}"/>'
        f'<xs:maxExclusive value="{high.format(t="", e="")}"/><xs:pattern value="\\d{{4}}-\\d{{2}}-\\d{{2}}Z?"/></xs:restriction></xs:simpleType>'
        f'<xs:simpleType name="timeType"><xs:restriction base="xs:time"><xs:pattern value="\\d{{2}}:\\d{{2}}:\\d{{2}}{fraction if fraction != FRACTIONS[1] else ""}Z?"/></xs:restriction></xs:simpleType>'
        f'<xs:simpleType name="dateTimeType"><xs:restriction base="xs:dateTime"><xs:minInclusive value="{low.format(t="T00:00:00" + clock)}"/>'
        f'<xs:maxExclusive value="{high.format(t="T00:00:00" + clock, e="T23:59:59.9999999")}"/>'
        f'<xs:pattern value="\\d{{4}}-\\d{{2}}-\\d{{2}}T\\d{{2}}:\\d{{2}}:\\d{{2}}{fraction}Z?"/></xs:restriction></xs:simpleType></xs:schema>'
    )
    return parse_table_schema(text.encode(), safe_parser())


def accepted(table: TableSchema, compiled: etree.XMLSchema, cell: bytes) -> tuple[bool, str]:
    """Whether libxml2 accepts a cell, and the text that it reads."""
    document = b'<table xmlns="%b" version="2.2"><row><c1>%b</c1></row></table>' % (
        TABLE.encode(),
        cell,
    )
    try:
        root = etree.fromstring(document)
    except etree.XMLSyntaxError:
        return False, ""
    return compiled.validate(root), root[0][0].text or ""


def unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9A-Fa-f]{4})", lambda match: chr(int(match[1], 16)), text)


# Texts near to what the expressions match, so that their edges are met.
PIECES = [
    "0", "1", "9", "12", "2147483647", "2147483648", "-", "+", ".", "E", "e5", "INF", "NaN", "true",
    "false", "0001", "0000", "9999", "2000", "1900", "2024", "-02-29", "-01-31", "-04-31", "-13-01",
    "-12-31", "T", "23:59:59", "24:00:00", "00:00:00", "10:60:00", ".5", ".123456789", "Z", "+02:00",
    "P", "3D", "2Y", "4M", "1H", "6.7S", "FF", "ab", "A", "ü", "\U0001f600", "&amp;", "&lt;", "&#65;",
    "\\u0020", "\\", " ", "\n", "]]>", "&", "]", ">", "'", '"', "\x85", "<", "\ufffe", "\x7f", "/",
]  # fmt: skip
CELLS = (
    st.lists(st.sampled_from(PIECES), max_size=6)
    .map("".join)
    .map(lambda t: t.encode("utf-8", "surrogatepass"))
)
LIKELY = st.one_of(
    CELLS,
    st.dates().map(str).map(lambda d: d.encode()),
    st.dates().map(lambda d: f"{d}Z".encode()),
    st.datetimes().map(lambda d: f"{d.isoformat()}Z".encode()),
    st.datetimes().map(lambda d: d.isoformat().encode()),
    st.times().map(lambda t: t.isoformat().encode()),
    st.integers(-(2**64), 2**64).map(lambda n: str(n).encode()),
    st.sampled_from([2**15, 2**31, 2**63])
    .flatmap(lambda n: st.integers(n - 2, n + 1))
    .map(lambda n: str(n).encode()),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(lambda n: str(n).encode()),
    st.floats().map(lambda n: repr(n).replace("inf", "INF").replace("nan", "NaN").encode()),
    st.binary(max_size=4).map(lambda b: b.hex().encode()),
)


@pytest.mark.parametrize(("sql", "xml"), COLUMNS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_what_the_expression_matches_is_valid(sql: str, xml: str, data: st.DataObject) -> None:
    table = schema(xml, data.draw(st.sampled_from(LIMITS)), data.draw(st.sampled_from(FRACTIONS)))
    type_ = parse_type(sql)
    definition = table.definitions.get(xml) if not xml.startswith("xs:") else None
    expression = proof(type_, xml, definition)
    if expression is None:
        return
    compiled = table.compiled()
    for cell in data.draw(st.lists(LIKELY, min_size=8, max_size=12)):
        if b"]]>" in cell or re.search(rb"\x7f|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]", cell):
            continue  # RowChecker sends such rows to libxml2 before it asks the expression
        if re.fullmatch(rb"<c1>" + expression + rb"</c1>", b"<c1>" + cell + b"</c1>"):
            valid, text = accepted(table, compiled, cell)
            assert valid, (sql, xml, cell)
            assert fault(type_, unescaped(text), xml) is None, (sql, cell)


@pytest.mark.parametrize(("sql", "xml"), COLUMNS)
def test_usual_values_are_proven_so_that_the_quick_road_is_taken(sql: str, xml: str) -> None:
    usual = {
        "xs:integer": "12", "xs:decimal": "0.5", "xs:float": "1.5", "xs:double": "1.5E10", "xs:boolean": "true",
        "xs:string": "ok", "clobType": "Jürg &amp; \\u0020", "xs:hexBinary": "00FF", "blobType": "00ff",
        "dateType": "9999-12-31Z", "xs:date": "2024-02-29", "timeType": "10:00:00.5Z",
        "dateTimeType": "2024-02-29T10:00:00.123Z", "xs:dateTime": "2024-02-29T10:00:00Z",
        "xs:duration": "P2Y" if "YEAR" in sql else "P2DT3H",
    }[xml]  # fmt: skip
    if sql in ("INTEGER", "NUMERIC(5)") and xml == "xs:decimal":
        usual = "12"
    table = schema(xml, LIMITS[0], FRACTIONS[0])
    definition = table.definitions.get(xml) if not xml.startswith("xs:") else None
    expression = proof(parse_type(sql), xml, definition)
    assert expression is not None
    assert re.fullmatch(expression + b"<", usual.encode() + b"<"), (sql, expression)


def test_definitions_that_nobody_knows_are_left_to_libxml2() -> None:
    strange = Definition("simpleType", "xs:date", (("pattern", "2.*"),), ())
    assert proof(PredefinedType("DATE"), "dateType", strange) is None
    assert proof(PredefinedType("DATE"), "xs:string", None) is None
    assert proof(PredefinedType("DATE"), "dateType", None) is None
