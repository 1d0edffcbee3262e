"""Archives of other writers: every table, row and internal object is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.errors import NotFound, SiardError
from muniment.siard import SiardSource, open_siard
from muniment.sql.batch import REF, cells_of

pytestmark = pytest.mark.samples

# What lies outside the archives, in folders of their own or nowhere.
EXTERNAL = {
    "ext",
    "eark-ip-test-corpus__corpus_template-ip_old_packages_IP_1rep_SIARD2_representations_rep1_data_northwind.siard",
}


def archives(samples: Path, *folders: str) -> list[Path]:
    return sorted(p for f in folders for p in (samples / "siard" / f).rglob("*.siard"))


def read_all(source: SiardSource) -> tuple[int, int, int]:
    """Read every cell; return rows, objects found inside and objects not found."""
    rows = inside = outside = 0
    for schema, table in source.describe().tables():
        count = 0
        for part in source.parts(schema, table):
            for batch in source.batches(schema, table, part):
                count += batch.rows
                for cell in cells_of(batch):
                    if cell.startswith(REF):
                        try:
                            source.open_lob(schema, table, cell[1:]).read()
                            inside += 1
                        except NotFound:
                            outside += 1
        assert count == table.rows, f"{schema.name}.{table.name}"
        rows += count
    return rows, inside, outside


def test_every_archive_of_the_corpus_is_read_to_the_last_row(samples: Path) -> None:
    total = 0
    for path in archives(samples, "main", "ext"):
        with open_siard(path) as source:
            rows, _, outside = read_all(source)
        total += rows
        assert outside == 0 or EXTERNAL & {path.name, path.parent.parent.name}, path
    assert total > 280_000


def test_broken_archives_get_a_sentence(samples: Path) -> None:
    failed = 0
    for path in archives(samples, "broken"):
        try:
            with open_siard(path) as source:
                read_all(source)
        except SiardError as error:
            failed += 1
            assert path.name in str(error)
    assert failed == 8
