"""Escaping of whole columns: every string comes back, and XML readers see it unharmed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from muniment.siard.cells import escape_cells, unescape_cells, unescape_text
from muniment.sql.batch import CELL, CLOSE, ITEM, OPEN

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates included
NASTY = st.text(st.sampled_from(" \\u0020\t\r\n\x00\x7f\x85&<>\"'\ufffe\uffff\ud800\U0001f600ab"))


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@given(st.lists(ANY_TEXT | NASTY, min_size=1))
@example(["\\u0041", "\\\\u0041", "a\\", "  ", " a ", "&lt;", "&#13;"])
def test_escaped_cells_read_back_unchanged(texts: list[str]) -> None:
    data = CELL.join(map(encoded, texts))
    assert unescape_cells(escape_cells(data)) == data


@given(st.lists(ANY_TEXT | NASTY, min_size=1))
def test_any_xml_parser_sees_the_escapes_as_they_were_written(texts: list[str]) -> None:
    for cell in escape_cells(CELL.join(map(encoded, texts))).split(CELL):
        seen = etree.fromstring(b"<c1>" + cell + b"</c1>").text or ""
        assert unescape_text(encoded(seen)) in map(encoded, texts)


@given(st.lists(ANY_TEXT | NASTY, min_size=1))
def test_a_reader_that_folds_white_space_does_no_harm(texts: list[str]) -> None:
    for cell in escape_cells(CELL.join(map(encoded, texts))).split(CELL):
        folded = b" ".join(cell.split(b" "))
        assert folded == cell and b"  " not in cell
        assert not cell.startswith(b" ") and not cell.endswith(b" ")


@given(st.lists(NASTY, min_size=1))
def test_parts_of_complex_values_are_escaped_like_cells(texts: list[str]) -> None:
    data = OPEN + b"".join(encoded(t) + ITEM for t in texts) + CLOSE
    escaped = escape_cells(data)
    parts = escaped.strip(OPEN + CLOSE).split(ITEM)
    assert not any(part.startswith(b" ") or part.endswith(b" ") for part in parts)
    assert unescape_cells(escaped) == data


def test_plain_text_is_the_same_object() -> None:
    data = b"plain\xfftext with single spaces"
    assert escape_cells(data) is data


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        (b"a\\b", b"a\\u005cb"),
        (b"a   b", b"a \\u0020\\u0020b"),
        (b" a ", b"\\u0020a\\u0020"),
        (b"\x00\t\n\r\x1f\x7f", b"\\u0000\\u0009\\u000a\\u000d\\u001f\\u007f"),
        ("\x85\x9f\xa0".encode(), b"\\u0085\\u009f\xc2\xa0"),
        (b"<a & \"b\" 'c'>", b"&lt;a &amp; &quot;b&quot; &apos;c&apos;&gt;"),
        ("\ufffe\uffff".encode(), b"\\ufffe\\uffff"),
        (b"\xed\xa0\x80", b"\\ud800"),
    ],
)
def test_escapes_are_those_of_the_standard(text: bytes, escaped: bytes) -> None:
    assert escape_cells(text) == escaped


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        (b"a&#13;b&#x41;", b"a\rbA"),
        (b"&lt;" * 100 + b"&#65;", b"<" * 100 + b"A"),
        (b"\\ud83d\\ude00", "\U0001f600".encode()),
        (b"\\u004 \\x \\", b"\\u004 \\x \\"),
        (b"&amp;lt;", b"&lt;"),
        (b"\\u005cu0041", b"\\u0041"),
    ],
)
def test_other_spellings_are_understood(xml: bytes, text: bytes) -> None:
    assert unescape_cells(xml) == text


@pytest.mark.parametrize("xml", [b"&nbsp;", b"a & b", b"&lt;" * 100 + b"&evil;"])
def test_unknown_entities_are_refused(xml: bytes) -> None:
    with pytest.raises(ValueError, match="entity"):
        unescape_cells(xml)
