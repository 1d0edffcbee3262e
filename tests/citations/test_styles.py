"""Citations for people and for their programs: other people's readers find in them what we put in."""

from __future__ import annotations

import json
import re
from datetime import date

import bibtexparser
import pytest
import rispy
from hypothesis import example, given
from hypothesis import strategies as st

from muniment.citations.styles import STYLES, Reference

ROW = Reference(
    title="Tree register",
    identifier="pdi://db.ulmenhafen.de/2026/11/16/1.siard.1#row=(s0,t2,r17)",
    seen=date(2026, 11, 16),
    author="City of Ulmenhafen, Parks Department",
    publisher="City Archives of Ulmenhafen",
    issued="2026-11-15",
    version="1",
    part="main.tree, row 17",
    url="http://127.0.0.1:8180/pdi/db.ulmenhafen.de/2026/11/16/1.siard.1%23row=(s0,t2,r17)",
    sha256="ab" * 32,
)
texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30)


@pytest.mark.parametrize("style", STYLES)
def test_every_style_names_what_is_cited(style: str) -> None:
    text = ROW.texts()[style]
    plain = text.replace("\\", "")
    assert ROW.identifier in plain
    assert "Tree register, main.tree, row 17" in plain
    assert "Ulmenhafen" in plain
    assert "2026" in plain


@given(texts, texts, texts)
@example("a{b}c\\d", "100 % & more_#1 $ ~ ^", "{{")
def test_bibtex_reads_back(title: str, author: str, part: str) -> None:
    reference = Reference(title, ROW.identifier, ROW.seen, author=author, part=part)
    text = reference.bibtex()
    bare = re.sub(r"\\.", "", text)
    assert bare.count("{") == bare.count("}")
    (entry,) = bibtexparser.parse_string(text).entries
    assert entry.entry_type == "misc"
    assert entry.fields_dict["urldate"].value == "2026-11-16"


@given(texts, texts)
@example("one\nTY  - BOOK", "two\r\nER  - ")
def test_ris_reads_back_and_no_value_ends_its_field(title: str, author: str) -> None:
    reference = Reference(title or "?", ROW.identifier, ROW.seen, author=author)
    (entry,) = rispy.loads(reference.ris())
    assert entry["type_of_reference"] == "DBASE"
    assert entry["title"].split() == " ".join((title or "?").split()).split()


def test_csl_is_what_the_schema_of_citation_styles_calls_a_dataset() -> None:
    (item,) = json.loads(ROW.texts()["csl"])
    assert item["type"] == "dataset"
    assert item["issued"] == {"date-parts": [[2026, 11, 15]]}
    assert item["author"] == [{"literal": "City of Ulmenhafen, Parks Department"}]
    assert item["number"] == ROW.identifier


def test_without_author_and_date_a_citation_still_stands() -> None:
    bare = Reference("T", "file.siard", date(2026, 1, 2))
    for text in bare.texts().values():
        assert "file.siard" in text.replace("\\", "")
    assert "n.d." in bare.plain()


def test_bibtex_calls_nothing_a_pdi_that_is_none() -> None:
    fields = bibtexparser.parse_string(ROW.bibtex()).entries[0].fields_dict
    assert fields["eprinttype"].value == "pdi" and "howpublished" not in fields
    bare = Reference("T", "d.siard#row=(s0,t0,r1)", date(2026, 1, 2)).bibtex()
    fields = bibtexparser.parse_string(bare).entries[0].fields_dict
    assert "eprint" not in fields and "eprinttype" not in fields
    assert fields["howpublished"].value.replace("\\", "") == "d.siard#row=(s0,t0,r1)"
