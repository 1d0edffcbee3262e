"""Cited queries: total order, the same name for the same result, proof after a change."""

from __future__ import annotations

import hashlib
from pathlib import Path

import apsw
import pytest

from muniment import transfer
from muniment.citations import cite_query, open_document, prove
from muniment.errors import DigestMismatch, NotFound, QueryError
from muniment.identifiers import parse_pdi
from muniment.names import Names
from muniment.repository import Session, Store
from muniment.repository.ingest import submit_file
from muniment.siard import open_siard

SERIES = "queries.example.ch"


@pytest.fixture
def names(tmp_path: Path) -> Names:
    book = Names.create(tmp_path / "names")
    book.add_series(SERIES)
    return book


@pytest.fixture
def archive(shop: Path, tmp_path: Path) -> Path:
    path = tmp_path / "shop.siard"
    transfer.archive(f"sqlite:///{shop}", path)
    return path


def cite(names: Names, sql: str, archive: Path):  # type: ignore[no-untyped-def]
    return cite_query(names, SERIES, sql, {"shop": archive}, "Reader")


@pytest.mark.parametrize(
    ("sql", "order"),
    [
        ("SELECT item, price FROM sale", "ORDER BY 1, 2"),
        ("select item, price from sale order by price desc", "ORDER BY price DESC, 1, 2"),
        ("SELECT item FROM sale ORDER BY ALL", "ORDER BY ALL"),
        ("SELECT item FROM sale UNION SELECT id FROM item", "ORDER BY 1"),
        ("WITH s AS (SELECT * FROM sale) SELECT count(*) FROM s -- how many?", "ORDER BY 1"),
        ("SELECT item FROM sale LIMIT 5", "ORDER BY 1 LIMIT 5"),
    ],
)
def test_every_query_gets_a_total_order(names: Names, archive: Path, sql: str, order: str) -> None:
    cited = cite(names, sql, archive)
    assert cited.sql.endswith(order)
    assert prove(names, cited.pdi).same


def test_spelling_does_not_make_another_query(names: Names, archive: Path) -> None:
    one = cite(names, "SELECT count(*) AS n FROM sale WHERE item=1", archive)
    other = cite(names, "select  count( * ) as n\nfrom sale\nwhere item = 1;", archive)
    assert (other.pdi, other.known, one.known) == (one.pdi, True, False)
    assert cite(names, "SELECT count(*) AS n FROM sale WHERE item=2", archive).pdi != one.pdi


def test_the_same_octets_are_named_once(names: Names, archive: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.siard"
    copy.write_bytes(archive.read_bytes())
    one = cite(names, "SELECT 1 AS one FROM sale LIMIT 1", archive)
    other = cite(names, "SELECT 2 AS two FROM sale LIMIT 1", copy)
    assert one.sources["shop"] == other.sources["shop"]


def test_a_changed_source_is_told(names: Names, archive: Path, shop: Path, tmp_path: Path) -> None:
    total = cite(names, "SELECT sum(price) AS total FROM sale", archive)
    rows = cite(names, "SELECT number FROM sale", archive)
    db = apsw.Connection(str(shop))
    db.execute(
        "UPDATE sale SET price = price + 1 WHERE number = 7; DELETE FROM sale WHERE number=9"
    )
    db.close()
    later = tmp_path / "later.siard"
    transfer.archive(f"sqlite:///{shop}", later)
    found = prove(names, total.pdi, {"shop": later})
    assert (found.same, found.differences) == (
        False,
        ("the same number of rows, with other values",),
    )
    assert prove(names, rows.pdi, {"shop": later}).differences == ("48 rows instead of 49",)
    assert prove(names, total.pdi).same  # over what was kept, it still is


def test_renditions_are_kept_and_hold_the_result(names: Names, archive: Path) -> None:
    cited = cite(names, "SELECT id, name FROM item WHERE id < 3", archive)
    assert set(cited.renditions) == {"sql", "csv", "json", "siard"}
    text = open_document(names, cited.pdi._replace(format="csv")).read_text()
    assert text.startswith('"id","name"\n1,')
    assert open_document(names, cited.pdi._replace(format="siard")).read_bytes()[:2] == b"PK"


def test_what_was_kept_is_checked_before_it_is_used(names: Names, archive: Path) -> None:
    cited = cite(names, "SELECT count(*) FROM sale", archive)
    path = open_document(names, parse_pdi(cited.sources["shop"]))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(DigestMismatch):
        prove(names, cited.pdi)


def test_only_queries_are_cited(names: Names, archive: Path) -> None:
    for bad in ("DELETE FROM sale", "SELECT nothing FROM sale", "not SQL"):
        with pytest.raises(QueryError):
            cite(names, bad, archive)
    pdi = names.mint(SERIES)[0]
    with pytest.raises(NotFound):
        prove(names, pdi)


def test_the_content_of_large_objects_is_in_the_digest(names: Names, tmp_path: Path) -> None:
    """Two archives that differ in one octet of a BLOB and in the end of a long text."""
    paths = []
    for number, octets in enumerate((b"\x00" * 9000, b"\x00" * 8999 + b"\x01")):
        db = apsw.Connection(str(tmp_path / f"{number}.db"))
        db.execute("CREATE TABLE doc (id INTEGER PRIMARY KEY, photo BLOB, story TEXT)")
        story = "x" * (1 << 20) + f" the end {number}"
        db.execute("INSERT INTO doc VALUES (1, ?, ?), (2, NULL, NULL)", (octets, story))
        db.close()
        paths.append(tmp_path / f"{number}.siard")
        transfer.archive(f"sqlite:///{tmp_path / f'{number}.db'}", paths[-1])
    for column in ("photo", "story"):
        cited = cite_query(names, SERIES, f"SELECT id, {column} FROM doc", {"d": paths[0]}, "")
        assert cited.rows == 2 and prove(names, cited.pdi).same
        found = prove(names, cited.pdi, {"d": paths[1]})
        assert found.differences == ("the same number of rows, with other values",)
    plain = cite_query(names, SERIES, "SELECT id, photo.size AS n FROM doc", {"d": paths[0]}, "")
    assert prove(names, plain.pdi, {"d": paths[1]}).same


def test_the_result_holds_the_octets_of_large_objects(names: Names, archive: Path) -> None:
    cited = cite(names, "SELECT sku, photo FROM item WHERE photo IS NOT NULL", archive)
    result = open_document(names, cited.pdi._replace(format="siard"))
    with open_siard(result) as source:
        _, table = next(source.describe().tables())
        assert str(table.columns[1].type) == "BLOB"
    again = cite_query(
        names, SERIES, "SELECT md5(content(photo)) AS m FROM result", {"r": result}, ""
    )
    digests = open_document(names, again.pdi._replace(format="csv")).read_text()
    assert hashlib.md5(b"\x00\xff" * 5000).hexdigest() in digests


def test_an_archive_that_a_store_holds_keeps_its_name(archive: Path, tmp_path: Path) -> None:
    with Store.create(tmp_path / "store") as store:
        with Session(store) as session:
            session.add(submit_file(archive).sources)
        (added,) = session.acknowledged
        cited = cite_query(
            store.names, store.settings.series, "SELECT 1 AS n FROM sale", {"shop": archive}, ""
        )
        assert cited.sources["shop"] == added.pdi
        with open_siard(archive) as source:
            assert f"over {source.describe().dbname}" in cited.text  # nobody gave it a title
