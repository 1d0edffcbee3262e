"""The page about types says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest
from type_tables import types_page

from muniment.databases.mapping import TypeRow, format_types

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "types.md").read_text() == types_page(), "run: make docs"


def test_a_row_names_the_xml_type_of_its_cells() -> None:
    row = TypeRow("numeric(p,s)", "NUMERIC")
    assert "| `numeric(p,s)` | NUMERIC | `xs:decimal` |" in format_types("X", [row])


@pytest.mark.parametrize("archived", ["UDT", "ARRAY", "DISTINCT", "TIMESTAMP WITH TIME ZONE"])
def test_every_kind_of_type_has_a_form(archived: str) -> None:
    assert TypeRow("x", archived, "some form").xml.endswith(", some form")
