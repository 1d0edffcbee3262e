"""Identifiers: what is stored and what SQL writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import UsageError
from muniment.sql.names import format_identifier, is_regular, parse_identifiers, quoted


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_written_names_read_back(names: list[str]) -> None:
    assert parse_identifiers(format_identifier(*names)) == tuple(names)


@pytest.mark.parametrize("name", ["A", "_X", "TREE_2", "A" * 128])
def test_regular_names_stand_without_marks(name: str) -> None:
    assert is_regular(name) and format_identifier(name) == name


@pytest.mark.parametrize("name", ["", "a", "2A", "A B", "Ä", "TABLE", "A" * 129, 'A"B'])
def test_other_names_are_delimited(name: str) -> None:
    assert not is_regular(name) and format_identifier(name) == quoted(name)


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", '"a', 'a"b"', '"a"b', '""'])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a name"):
        parse_identifiers(text)
