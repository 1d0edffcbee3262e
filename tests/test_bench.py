"""The benchmark works; how fast anything is, is no test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from importlib import import_module
from pathlib import Path
from types import ModuleType

import apsw
import duckdb
import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
ROWS = 2000

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import a module of the benchmark, which is no package."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module


def test_the_shop_is_the_same_in_both_products(load: Load, tmp_path: Path) -> None:
    shop = load("data").make_shop(tmp_path, ROWS)
    lite = apsw.Connection(str(shop.sqlite))
    with duckdb.connect(str(shop.duckdb), read_only=True) as duck:
        for question in (
            "SELECT count(*), count(remark), count(shipped), sum(quantity) FROM sale",
            "SELECT count(*), count(city), min(name), max(joined || '') FROM customer",
            "SELECT count(*), count(DISTINCT product), max(changed || '') FROM sale, product p "
            "WHERE sale.product = p.id",
        ):
            assert lite.execute(question).fetchall() == duck.execute(question).fetchall()
    lite.close()


def test_sales_are_ordinary_with_some_nulls_and_some_awkward_text(
    load: Load, tmp_path: Path
) -> None:
    db = apsw.Connection(str(load("data").make_shop(tmp_path, ROWS).sqlite))
    assert len(db.execute("SELECT * FROM sale LIMIT 1").fetchone()) == 16
    remarks = [remark for (remark,) in db.execute("SELECT remark FROM sale ORDER BY id")]
    db.close()
    assert len(remarks) == ROWS
    texts = [text for text in remarks if text is not None]
    assert 0.95 < len(texts) / ROWS < 1
    awkward = [text for text in texts if not text.replace(" ", "").isalpha() or "  " in text]
    assert 0.01 < len(awkward) / ROWS < 0.05
    assert all(text == text.strip() and len(text) <= 60 for text in texts)


def test_a_shop_is_made_once_and_always_the_same(load: Load, tmp_path: Path) -> None:
    make_shop = load("data").make_shop
    first = make_shop(tmp_path / "a", 200)
    made = first.sqlite.stat().st_mtime_ns
    assert make_shop(tmp_path / "a", 200) == first
    assert first.sqlite.stat().st_mtime_ns == made
    assert make_shop(tmp_path / "b", 200).sqlite.read_bytes() == first.sqlite.read_bytes()


def test_a_quick_try_prints_a_table_and_writes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    steps = [word for step in ("archive", "serialise", "parse") for word in ("--only", step)]
    where = ["--data", str(tmp_path), "--report", str(page)]
    command = [sys.executable, str(BENCH / "run.py"), "--rows", str(ROWS), "--runs", "1"]
    done = subprocess.run([*command, *steps, *where], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    heading, *lines = done.stdout.strip().split("\n")
    assert heading.split() == ["step", "measured", "goal", "met", "yardstick", "ratio"]
    assert len(lines) == 5
    assert "| sqlite3 .dump \\| gzip -1 | 2,000 |" in page.read_text(encoding="utf-8")
    assert not list(tmp_path.glob("out-*"))


def test_the_page_names_goals_yardsticks_and_machine(load: Load) -> None:
    report, measure = load("report"), load("measure")
    results = [
        report.Result("archive", "1.00 s", "≤ 1.0 × yardstick", True, "dump: 2.00 s", 0.5),
        report.Result("parse", "3 MB/s", "≥ 70 MB/s", False),
    ]
    timings = [(20, measure.Timing("archive", 1.0, 1.5, 50_000_000, 1_000_000))]
    day = date(2026, 11, 15)
    page = report.format_markdown(results, timings, {"cores": "2"}, (2, 20), day)
    assert "| archive | 1.00 s | ≤ 1.0 × yardstick | yes | dump: 2.00 s | 0.50 |" in page
    assert "| parse | 3 MB/s | ≥ 70 MB/s | **no** |  |  |" in page
    assert "| archive | 20 | 1.00 | 1.50 | 50 MB | 1.0 MB |" in page
    assert "| cores | 2 |" in page
    assert "2026-11-15" in page


@pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from /proc"
)
def test_memory_counts_the_children_too(load: Load) -> None:
    measure = load("measure")
    child = "import time; data = b'x' * 50_000_000; time.sleep(0.5)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    timing = measure.run(measure.Command("two", [sys.executable, "-c", parent]))
    assert timing.peak_bytes > 50_000_000
    assert timing.seconds >= 0.5


def test_a_command_that_fails_says_why(load: Load) -> None:
    measure = load("measure")
    command = measure.Command("bad", [sys.executable, "-c", "raise SystemExit('no such luck')"])
    with pytest.raises(measure.Failed, match="bad: no such luck"):
        measure.run(command)


def test_the_steps_of_the_store_run(tmp_path: Path) -> None:
    names = ("store-index", "store-add", "store-get")
    steps = [word for step in names for word in ("--only", step)]
    command = [sys.executable, str(BENCH / "run.py"), "--rows", "500", "--runs", "1"]
    done = subprocess.run(
        [*command, *steps, "--data", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "objects/s" in done.stdout
    assert "MB/s" in done.stdout


def run_steps(tmp_path: Path, *names: str) -> str:
    steps = [word for step in names for word in ("--only", step)]
    command = [sys.executable, str(BENCH / "run.py"), "--rows", "500", "--runs", "1"]
    done = subprocess.run(
        [*command, *steps, "--data", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_steps_of_the_server_run(tmp_path: Path) -> None:
    shown = run_steps(tmp_path, "serve")
    assert "resolve a PDI" in shown
    assert "records/s" in shown


@pytest.mark.skipif(
    not shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"), reason="there is no nginx"
)
def test_a_datastream_is_measured_beside_nginx(tmp_path: Path) -> None:
    assert "nginx: " in run_steps(tmp_path, "serve-large")


def test_the_report_of_wrk_is_read(load: Load) -> None:
    text = (
        "  Latency Distribution\n     50%    1.20ms\n     99%  930.00us\n"
        "  Socket errors: connect 1, read 2, write 0, timeout 0\n"
        "  Non-2xx or 3xx responses: 3\nRequests/sec:   1234.50\n"
    )
    found = load("serving")._parse_wrk(text)
    assert (found.rate, found.slowest, found.errors) == (1234.5, 0.93, 6)
