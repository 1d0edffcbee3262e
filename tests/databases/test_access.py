"""Access files through mdbtools: real ones where they are at hand, and what goes wrong."""

from __future__ import annotations

import math
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import sample
from contracts.source_contract import find
from muniment.compare import compare
from muniment.databases import open_source, open_target
from muniment.databases.access_values import converter, sql_type
from muniment.errors import DatabaseError, UsageError
from muniment.sql.selection import Selection
from muniment.transfer import ArchiveOptions, archive, restore


@pytest.fixture
def northwind(samples: Path) -> str:
    return f"access:///{samples / 'db/access/nwind.mdb'}"


@pytest.mark.samples
@pytest.mark.parametrize("name", ["nwind.mdb", "ASampleDatabase.accdb"])
def test_an_archive_equals_its_source(samples: Path, tmp_path: Path, name: str) -> None:
    url, file = f"access:///{samples / 'db/access' / name}", tmp_path / "a.siard"
    archive(url, file)
    assert compare(url, str(file)).equal
    restore(file, f"sqlite:///{tmp_path / 'a.db'}")
    assert all(t.equal for t in compare(str(file), f"sqlite:///{tmp_path / 'a.db'}").tables)


@pytest.mark.samples
def test_definitions_are_those_of_the_file(northwind: str) -> None:
    with open_source(northwind) as source:
        _, details = find(source, "Order Details")
        _, orders = find(source, "Orders")
        _, categories = find(source, "Categories")
    assert details.primary_key and details.primary_key.columns == ("OrderID", "ProductID")
    assert [str(c.type) for c in details.columns] == [
        "INTEGER", "INTEGER", "DECIMAL(19,4)", "SMALLINT", "REAL",
    ]  # fmt: skip
    assert details.columns[2].default_value == "0" and details.columns[2].nullable is False
    assert details.columns[0].description == "Same as Order ID in Orders table."
    keys = {k.name: k for k in details.foreign_keys}
    assert keys["OrdersOrder Details"].delete_action == "CASCADE"
    assert {k.referenced_table for k in orders.foreign_keys} >= {"Customers", "Employees"}
    assert [k.columns for k in categories.candidate_keys] == [("CategoryName",)]


@pytest.mark.samples
def test_rows_and_large_values_arrive(northwind: str) -> None:
    with open_source(northwind, inline_limit=100) as source:
        schema, table = find(source, "Employees")
        first = sample.read(source, schema, table)[0]
        _, orders = find(source, "Orders")
        regions = [row[11] for row in sample.read(source, schema, orders)]
    assert first[7] == "507 - 20th Ave. E.\r\nApt. 2A"
    assert first[5] == "1948-12-08T00:00:00"
    assert len(first[14]) == 2 * 21626 and first[14].startswith("151C2F00")
    assert None in regions and "Québec" in regions


@pytest.mark.samples
def test_columns_can_be_chosen_and_archived_as_text(northwind: str, tmp_path: Path) -> None:
    chosen = Selection(
        tables=("Order Details",),
        columns={"Order Details": ("Discount", "OrderID")},
        as_text=("main.Order Details.Discount",),
    )
    report = archive(northwind, tmp_path / "a.siard", chosen, ArchiveOptions(lobs="inline"))
    assert [t.rows for t in report.tables] == [2155]
    with open_source(northwind, chosen) as source:
        schema, table = find(source, "Order Details")
        assert sample.read(source, schema, table)[6] == ["0.15000001", "10250"]


@pytest.mark.samples
def test_a_damaged_file_is_a_sentence(samples: Path, tmp_path: Path) -> None:
    data = (samples / "db/access/nwind.mdb").read_bytes()
    for cut in (100, 4096, len(data) // 3):
        broken = tmp_path / f"{cut}.mdb"
        broken.write_bytes(data[:cut])
        with pytest.raises((DatabaseError, Exception)) as caught:
            archive(f"access:///{broken}", tmp_path / f"{cut}.siard")
        assert type(caught.value).__module__ == "muniment.errors"
        assert not (tmp_path / f"{cut}.siard").exists()


def test_what_is_no_access_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.mdb").write_text("hello " * 1000)
    with pytest.raises(DatabaseError, match="mdb"), open_source(f"access:///{tmp_path}/x.mdb"):
        pass
    with pytest.raises(DatabaseError, match="no Access"), open_source("access:///none.mdb"):
        pass


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.mdb").write_text("hello")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(DatabaseError, match="apt-get"), open_source(f"access:///{tmp_path}/x.mdb"):
        pass


def test_access_files_are_not_written() -> None:
    with pytest.raises(UsageError, match="not written"):
        open_target("access:///x.mdb")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_single_is_exact_or_refused(value: float) -> None:
    single = converter("Single")
    assert single is not None
    found = single(f"{value:.8g}".encode())
    if found is not None:
        assert struct.pack("<f", float(found)) == struct.pack("<f", value)


@given(st.floats(allow_nan=False))
def test_a_double_is_what_is_printed(value: float) -> None:
    double = converter("Double")
    assert double is not None
    found = double(f"{value:.16g}".encode())
    assert found is not None
    text = found.decode().replace("INF", "inf")
    assert float(text) == float(f"{value:.16g}")
    assert math.isfinite(value) or found in (b"INF", b"-INF")


def test_values_that_are_none_of_their_type_have_no_text() -> None:
    for kind, cell in (("Boolean", b"2"), ("DateTime", b"-5-01-01T00:00:00"), ("Double", b"x")):
        convert = converter(kind)
        assert convert is not None and convert(cell) is None
    moment = converter("DateTime")
    assert moment is not None and moment(b"100-01-01T00:00:00") == b"0100-01-01T00:00:00"
    assert sql_type("Complex") is None
