"""Parts of archived databases, in every form, with NULL explicit."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from lxml import etree, html

from muniment import transfer
from muniment.errors import FragmentError
from muniment.fragments import Extract, extract
from muniment.identifiers.fragments import parse_fragment


@pytest.fixture
def archive(shop: Path, tmp_path: Path) -> Path:
    path = tmp_path / "shop.siard"
    transfer.archive(f"sqlite:///{shop}", path)
    return path


def cut(archive: Path, fragment: str, wanted: str = "") -> Extract:
    return extract(archive, "application/x-siard", parse_fragment(fragment, 0), wanted)


def rows(archive: Path, fragment: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(cut(archive, fragment).data.decode(), newline="")))


def test_tables_rows_columns_and_regions_as_csv(archive: Path) -> None:
    assert len(rows(archive, "table=(s0,t1)")) == 50
    assert rows(archive, "row=(s0,t1,r2),(r3)") == [
        ["number", "item", "price"],
        ["2", "3", "2.5"],
        ["3", "4", "3.5"],
    ]
    assert rows(archive, "row=(s0,t1,r49)")[1][0] == "49"
    assert rows(archive, "col=(s0,t1,c3)")[:2] == [["price"], ["1.5"]]
    assert rows(archive, "cell=(s0,t1,c1,r2),(c2,r3)") == [
        ["number", "item"],
        ["2", "3"],
        ["3", "4"],
    ]


def test_a_cell_is_text_or_json_and_null_is_said(archive: Path) -> None:
    assert cut(archive, "cell=(s0,t0,c2,r1)").data == b"SKU-1"
    assert cut(archive, "cell=(s0,t0,c3,r3)").data.decode() == "Ünïcødé 字 \U0001f600 <&>\"'"
    null, empty = cut(archive, "cell=(s0,t0,c6,r2)"), cut(archive, "cell=(s0,t0,c3,r2)")
    assert (null.data, null.null, empty.data, empty.null) == (b"", True, b"", False)
    assert cut(archive, "cell=(s0,t0,c6,r2)", "application/json").data == b"null"
    assert cut(archive, "cell=(s0,t0,c3,r2)", "application/json").data == b'""'


def test_null_and_the_empty_text_differ_in_every_form(archive: Path) -> None:
    part = "cell=(s0,t0,c3,r2),(c6,r2)"
    assert cut(archive, part).data.decode().splitlines()[1] == '"",-0.1,false,'
    assert json.loads(cut(archive, part, "application/json").data)["rows"] == [
        ["", "-0.1", "false", None]
    ]
    row = etree.fromstring(cut(archive, part, "application/xml").data)[0]
    assert [cell.tag for cell in row] == ["c3", "c4", "c5"]
    cells = html.document_fromstring(cut(archive, part, "text/html").data).findall(".//td")
    assert [cells[0].text, cells[3].findtext("em")] == [None, "NULL"]


def test_large_objects_and_parts_of_them(archive: Path) -> None:
    assert cut(archive, "lob=(s0,t0,c8,r3)").data == b"\x00\xff" * 5000
    assert cut(archive, "lob=(s0,t0,c8,r3),(byte,1,4)").data == b"\xff\x00\xff"
    assert cut(archive, "lob=(s0,t0,c3,r4),(char,5,9)").data == b"long"
    assert cut(archive, "lob=(s0,t0,c3,r1),(char,12,14)").data == b"\t\r"  # data, not text/*
    assert cut(archive, "lob=(s0,t0,c8,r1)").null
    assert cut(archive, "lob=(s0,t0,c8,r2)").data == b""


def test_a_row_by_its_key(archive: Path) -> None:
    assert rows(archive, "key=(s0,t1,k0,17)")[1] == ["17", "2", "17.5"]
    assert rows(archive, f"key=(s0,t0,k1,x{b'SKU-4'.hex()})")[1][0] == "4"
    for missing in (
        "key=(s0,t1,k0,99)",
        "key=(s0,t1,k0,n1)",
        "key=(s0,t1,k5,1)",
        "key=(s0,t1,k0,1,2)",
    ):
        with pytest.raises(FragmentError) as caught:
            cut(archive, missing)
        assert caught.value.status == 404


def test_definitions(archive: Path) -> None:
    column = json.loads(cut(archive, "meta=(s0,t0,c2)").data)
    assert (column["is"], column["name"], column["type"]) == ("column", "sku", "VARCHAR(10)")
    table = json.loads(cut(archive, "meta=(s0,t1)").data)
    assert (table["name"], len(table["columns"])) == ("sale", 3)
    schema = json.loads(cut(archive, "schema=(s0)").data)
    assert [each["name"] for each in schema["tables"]] == ["item", "sale"]
    assert json.loads(cut(archive, "view=(s0,v0)").data)["name"] == "dear"
    assert json.loads(cut(archive, "meta=(s0,t0,k0)").data)["is"] == "key"
    assert (
        etree.fromstring(cut(archive, "meta=(s0,t0)", "application/xml").data).tag == "definition"
    )
    assert b"sku" in cut(archive, "meta=(s0,t0)", "text/html").data


@pytest.mark.parametrize(
    "fragment",
    ["row=(s0,t1,r50)", "row=(s0,t1,r40),(r51)", "cell=(s0,t1,c4,r1)", "table=(s0,t2)", "table=(s1,t0)",
     "cell=(s0,t1,c1,r1,u1)", "col=(s0,t1,c2),(c9)", "meta=(s0,t0,c99)", "lob=(s0,t1,c1,r1)", "meta=(s0,p0)",
     "lob=(s0,t0,c8,r3),(byte,0,10001)"],
)  # fmt: skip
def test_parts_that_do_not_exist_are_not_found(archive: Path, fragment: str) -> None:
    with pytest.raises(FragmentError) as caught:
        cut(archive, fragment)
    assert caught.value.status == 404


def test_another_form_is_not_implemented(archive: Path) -> None:
    with pytest.raises(FragmentError) as caught:
        cut(archive, "table=(s0,t1)", "application/x-unheard-of")
    assert caught.value.status == 501
