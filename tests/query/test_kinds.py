"""Instants, intervals and numbers of four bytes: one spelling each, wherever they come out."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from muniment import transfer
from muniment.cli.main import cli
from muniment.databases.duckdb.types import Scalar
from muniment.databases.duckdb.values import value_sql
from muniment.query.values import interval_text, values_of
from muniment.sql.model import Leaf
from muniment.sql.types import parse_type

NAMES = ["quand", "days", "months", "small"]
WANTED = [
    ["2024-01-01T09:00:00Z", "P3DT0H0M0S", "P1Y2M", "0.1"],
    ["2024-01-01T09:00:00.12Z", "-P1DT0H0M0.5S", "-P0Y1M", "1e+20"],
]
WITHOUT_PYTZ = """
import sys
sys.modules["pytz"] = None
from pathlib import Path
from starlette.testclient import TestClient
from muniment.cli.main import cli
from muniment.web.app import create_app
from muniment.web.site import OpenArchive, Site

archive, folder = map(Path, sys.argv[1:])
site = Site({"a": OpenArchive("a", archive)})
with TestClient(create_app(site)) as client:
    assert site.archives["a"].wait(60)
    for path in ("/a/a/t/main/e", "/a/a/t/main/e?facet=quand", "/a/a/t/main/e?facet=days",
                 "/a/a/t/main/e?c=days&op=eq&v=P3DT0H0M0S", "/a/a/t/main/e/1",
                 "/a/a/sql?sql=SELECT * FROM e"):
        print(path, client.get(path).status_code)
        print(client.get(path, headers={"Accept": "application/json"}).text)
cli(["export", str(archive), str(folder), "--format", "html"])
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    with duckdb.connect(str(folder / "a.duckdb")) as database:
        database.execute(
            "CREATE TABLE e (quand TIMESTAMP WITH TIME ZONE, days INTERVAL, months INTERVAL,"
            " small FLOAT, all_of_it STRUCT(q TIMESTAMPTZ, i INTERVAL, f FLOAT)[])"
        )
        database.execute(
            "INSERT INTO e VALUES ('2024-01-01 10:00:00+01', '3 days', '14 months', 0.1,"
            " [{'q': '2024-01-01 09:00:00+00', 'i': INTERVAL '3 days', 'f': 0.1}]),"
            " ('2024-01-01 09:00:00.12+00', '-1 day -0.5 seconds', '-1 month', 1e20, NULL),"
            " (NULL, NULL, NULL, NULL, [])"
        )
    transfer.archive(f"duckdb:///{folder}/a.duckdb", folder / "a.siard")
    return folder / "a.siard"


def said(*words: str) -> str:
    found = CliRunner().invoke(cli, words, env={"COLUMNS": "300"})
    assert found.exit_code == 0, found.output
    return found.stdout


def test_show_and_query_spell_values_alike(archive: Path) -> None:
    sql = f"SELECT {', '.join(NAMES)} FROM e"
    shown = json.loads(said("show", str(archive), "e", "--json"))["rows"]
    assert [row[:4] for row in shown[:2]] == WANTED
    assert shown[0][4] == [["2024-01-01T09:00:00Z", "P3DT0H0M0S", "0.1"]]
    for table in (said("show", str(archive), "e"), said("query", str(archive), sql)):
        assert all(text in table.split() for row in WANTED for text in row)
    for line, wanted in zip(
        said("query", str(archive), sql, "--format", "jsonl").splitlines(), WANTED, strict=False
    ):
        values = json.loads(line)
        assert list(values.values()) == [*wanted[:3], float(wanted[3])]
    rows = list(csv.reader(said("query", str(archive), sql, "--format", "csv").splitlines()))
    assert [[cell.lstrip("'") for cell in row] for row in rows[1:]] == [*WANTED, [""] * 4]
    exact = said("query", str(archive), sql, "--format", "csv", "--exact").splitlines()
    assert list(csv.reader(exact))[1:3] == WANTED


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_parts_of_complex_values_are_spelt_as_others_are(archive: Path, form: str) -> None:
    text = said("query", str(archive), "SELECT all_of_it FROM e", "--format", form)
    plain = text.replace('""', '"')
    assert '[{"q": "2024-01-01T09:00:00Z", "i": "P3DT0H0M0S", "f": 0.1}]' in plain


def test_pages_show_instants_without_a_list_of_time_zones(archive: Path, tmp_path: Path) -> None:
    """DuckDB's own way to Python needs pytz for them, which nobody has to install."""
    command = [sys.executable, "-c", WITHOUT_PYTZ, str(archive), str(tmp_path / "out")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith("/a/")] == ["200"] * 6
    page = (tmp_path / "out" / "main.e.html").read_text()
    for text in ("2024-01-01T09:00:00Z", "P3DT0H0M0S"):
        assert f">{text}<" in page
        assert found.stdout.count(f'"{text}"') >= 5
    assert ">0.1<" in page and "0.1000000" not in page + found.stdout


@given(
    st.integers(-100_000, 100_000), st.integers(-100_000, 100_000), st.integers(-(10**15), 10**15)
)
def test_intervals_read_back(months: int, days: int, micros: int) -> None:
    text = interval_text(months, days, micros * 1000)
    sql = value_sql(Scalar("INTERVAL"), Leaf(parse_type("INTERVAL DAY TO SECOND(6)")), "v", "here")
    row = duckdb.sql(f"SELECT {sql} FROM (SELECT CAST(? AS VARCHAR) AS v)", params=[text])
    (found,) = row.to_arrow_table().column(0).to_pylist()
    assert tuple(found) == (months, days, micros * 1000)


@given(st.lists(st.none() | st.floats(width=32, allow_nan=False)))
def test_numbers_of_four_bytes_read_back(numbers: list[float | None]) -> None:
    column = pa.array(numbers, pa.float32())
    assert pa.array(values_of(column), pa.float32()) == column


def test_moments_beyond_pythons_are_text() -> None:
    with duckdb.connect() as connection:
        table = connection.sql(
            "SELECT 'infinity'::TIMESTAMP, '-infinity'::DATE, '-infinity'::TIMESTAMPTZ,"
            " '24:00:00'::TIME"
        ).to_arrow_table()
    found = [values_of(column.combine_chunks()) for column in table.columns]
    assert found == [["infinity"], ["-infinity"], ["-infinity"], ["24:00:00"]]
