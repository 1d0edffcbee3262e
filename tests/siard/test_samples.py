"""Archives of other writers: every table, row and object is read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from muniment.cli.main import cli
from muniment.errors import LobMissing, SiardError
from muniment.siard import SiardSource, open_siard
from muniment.sql.batch import OPEN, REF, cells_of, parts_of
from muniment.sql.model import Schema, Table

pytestmark = pytest.mark.samples

# Its objects lie outside, and nobody has them any more.
WITHOUT_OBJECTS = "eark-ip-test-corpus__corpus_template-ip_old_packages_IP_1rep_SIARD2_representations_rep1_data_northwind.siard"


def archives(samples: Path, *folders: str) -> list[Path]:
    return sorted(p for f in folders for p in (samples / "siard" / f).rglob("*.siard"))


def references(cell: bytes) -> Iterator[bytes]:
    """Yield the references in a cell, those inside complex values too."""
    if cell.startswith(REF):
        yield cell[1:]
    elif cell.startswith(OPEN):
        for part in parts_of(cell):
            yield from references(part)


def read_all(source: SiardSource) -> tuple[int, Counter[str]]:
    """Read every cell and object; return the rows, and how the objects were found."""
    rows, found = 0, Counter[str]()
    for schema, table in source.describe().tables():
        count = 0
        for part in source.parts(schema, table):
            for batch in source.batches(schema, table, part):
                count += batch.rows
                for reference in (r for cell in cells_of(batch) for r in references(cell)):
                    found[read_object(source, schema, table, reference)] += 1
        assert count == table.rows, f"{schema.name}.{table.name}"
        rows += count
    return rows, found


def read_object(source: SiardSource, schema: Schema, table: Table, reference: bytes) -> str:
    location = source.lobs.location(schema, table, reference)
    try:
        reading = source.lobs.find(schema, table, location).reading
    except LobMissing:
        return "missing"
    source.open_lob(schema, table, reference).read()  # its length and digest are proven
    return reading


def test_every_archive_of_the_corpus_is_read_to_the_last_row(samples: Path) -> None:
    total = 0
    for path in archives(samples, "main"):
        with open_siard(path) as source:
            rows, found = read_all(source)
        total += rows
        assert found["missing"] == (17 if path.name == WITHOUT_OBJECTS else 0), path
        assert set(found) <= {"ruling", "missing"}, path
    assert total > 280_000


def test_every_object_outside_an_archive_is_found_and_verified(samples: Path) -> None:
    found = {}
    for path in archives(samples, "ext"):
        with open_siard(path) as source:
            found[path.name] = dict(read_all(source)[1])
    inside_and_out = {"ruling": 5, "up-from-zip": 3}
    assert found == {
        "dbptk.siard": {"up-from-zip": 35},
        "sql2008_2_1.siard": inside_and_out,
        "sql2008_2_2.siard": inside_and_out,
        "sql2008_cmd.siard": inside_and_out,
        "sfdbmysql.siard": {"ruling": 20, "up-from-zip": 1},
    }


def test_broken_archives_get_a_sentence(samples: Path) -> None:
    failed = 0
    for path in archives(samples, "broken"):
        try:
            with open_siard(path) as source:
                read_all(source)
        except SiardError as error:
            failed += 1
            assert path.name in str(error)
    assert failed == 6  # those that are no ZIP files any more


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, arguments)
    fault = result.exception
    assert fault is None or isinstance(fault, SystemExit), (arguments, fault)
    return result


def test_every_archive_is_shown_queried_and_restored(samples: Path, tmp_path: Path) -> None:
    """What a person could get out of an archive is got out, row by row."""
    unreadable = 0
    for number, path in enumerate(archives(samples, "main", "ext", "broken")):
        shown = run("show", str(path))
        target = tmp_path / f"{number}.db"
        if shown.exit_code == 3:  # no ZIP file any more
            unreadable += 1
            assert run("query", str(path), "SELECT 1").exit_code == 3
            assert run("restore", str(path), f"sqlite:///{target}").exit_code == 3
            continue
        assert shown.exit_code == 0, (path.name, shown.output)
        with open_siard(path) as source:
            tables = list(source.describe().tables())
        if sum(table.rows for _, table in tables) > 12_000:  # others like it are smaller
            continue
        counts = " UNION ALL ".join(
            f"SELECT '{n}', count(*) FROM {quoted(schema.name)}.{quoted(table.name)}"
            for n, (schema, table) in enumerate(tables)
        )
        asked = run(
            "query", str(path), counts or "SELECT '0', 0", "--format", "jsonl", "--limit", "1000"
        )
        assert asked.exit_code == 0, (path.name, asked.output)
        found = sum(next(reversed(json.loads(line).values())) for line in asked.stdout.splitlines())
        assert found == sum(table.rows for _, table in tables), path.name
        restored = run("restore", str(path), f"sqlite:///{target}")
        assert restored.exit_code == 0, (path.name, restored.output)
        assert target.stat().st_size > 0
        target.unlink()
    assert unreadable == 6


def quoted(name: str) -> str:
    return '"' + (name or "unnamed").replace('"', '""') + '"'
