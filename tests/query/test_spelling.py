"""Values that Python or spreadsheets have trouble with, on their way out of a query."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from click.testing import CliRunner

from muniment import transfer
from muniment.cli.main import cli
from muniment.query.formats import write_csv, write_json_lines


def csv_of(column: pa.Array, exact: bool = False) -> str:
    batch = pa.record_batch([column], ["a"])
    stream = BytesIO()
    write_csv(batch.schema, [batch], stream, exact)
    return stream.getvalue().decode()


def test_decimals_keep_every_digit_and_have_no_exponent() -> None:
    column = pa.array(["0", "-0.0000000001", None, "12.5"]).cast(pa.decimal128(38, 10))
    found = csv_of(column).replace('"', "").splitlines()
    assert found == ["a", "0.0000000000", "-0.0000000001", "", "12.5000000000"]


def test_instants_to_the_nanosecond_are_written() -> None:
    column = pa.array([1, None], pa.timestamp("ns"))
    stream = BytesIO()
    write_json_lines([pa.record_batch([column], ["a"])], stream)
    assert stream.getvalue() == b'{"a": "1970-01-01T00:00:00.000000001"}\n{"a": null}\n'


@pytest.mark.parametrize("kind", ["TIMESTAMP_NS", "TIME_NS"])
def test_instants_to_the_nanosecond_are_queried(tmp_path: Path, kind: str) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as database:
        database.execute(f"CREATE TABLE t (a {kind})")
        value = "12:00:00.123456789" if kind == "TIME_NS" else "2020-01-01 12:00:00.123456789"
        database.execute(f"INSERT INTO t VALUES ('{value}'), (NULL)")
    transfer.archive(f"duckdb:///{tmp_path}/a.duckdb", tmp_path / "a.siard")
    for options in ([], ["--json"], ["--format", "csv"]):
        found = CliRunner().invoke(
            cli, ["query", f"{tmp_path}/a.siard", "SELECT a FROM t", *options]
        )
        assert found.exit_code == 0 and "12:00:00.123456789" in found.stdout
    answer = CliRunner().invoke(cli, ["query", f"{tmp_path}/a.siard", "SELECT a FROM t", "--json"])
    assert json.loads(answer.stdout)["rows"][1] == [None]
