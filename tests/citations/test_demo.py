"""The sample database: a query is cited, its name resolved, its result proved."""

from __future__ import annotations

from pathlib import Path

from muniment import transfer
from muniment.citations import cite_part, cite_query, open_document, prove
from muniment.demo import build_sample
from muniment.identifiers import parse_pdi
from muniment.names import Names
from muniment.names.content import keep


def test_a_citation_of_the_demo_database_opens(tmp_path: Path) -> None:
    build_sample(tmp_path / "trees.db")
    archive = tmp_path / "trees.siard"
    transfer.archive(f"sqlite:///{tmp_path / 'trees.db'}", archive)
    with Names.create(tmp_path / "names") as names:
        names.add_series("db.example.ch")
        sql = "SELECT count(*) AS felled FROM tree WHERE felled_on IS NOT NULL"
        cited = cite_query(names, "db.example.ch", sql, {"trees": archive}, "Reader")
        name = next(word for word in cited.text.split() if word == f"{cited.pdi.generic}.")
        found = names.resolve(name.rstrip("."))
        assert found.status == "bound" and len(found.renditions) == 4
        text = open_document(names, parse_pdi(f"{cited.pdi.generic}.csv")).read_text()
        assert text == '"felled"\n74\n'
        assert prove(names, cited.pdi).same
        _, words = cite_part(names, f"{cited.sources['trees']}#cell=(s0,t2,c2,r3)")
        assert "main.species, row 3, column latin_name" in words


def test_a_part_of_a_text_is_cited_in_words(tmp_path: Path) -> None:
    text = tmp_path / "letter.txt"
    text.write_text("Dear reader,\nthis is a letter.\n", encoding="utf-8")
    with Names.create(tmp_path / "names") as names:
        names.add_series("db.example.ch")
        pdi = names.mint("db.example.ch")[0]
        digest, length, location = keep(names, text)
        names.bind(pdi, digest, length, location)
        assert cite_part(names, f"{pdi}#0,4")[1].startswith(f"Document, characters 0,4. {pdi}#0,4.")
        names.say(str(pdi), "title", "A letter", "clerk")
        assert cite_part(names, str(pdi))[1].startswith(f"A letter. {pdi}. SHA-256 ")
