"""Measure Muniment against the yardsticks of its trade; ``make bench`` calls this.

python bench/run.py                              everything; writes docs/benchmarks.md
python bench/run.py --rows 100000 --only parse   a quick try; writes nothing
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from machine import describe_machine, use_cores
from report import format_markdown, format_table
from steps import STEPS, Bench, run_steps

ROWS = 2_500_000
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps that were asked for; return 1 if one of them broke off."""
    options = _options(arguments)
    use_cores(2)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has been compiled
    options.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="out-", dir=options.data) as work:
        bench = Bench(options.data, Path(work), options.rows, options.runs)
        results = list(run_steps(bench, options.only or STEPS))
    print(format_table(results))
    if page := options.report or (None if options.only or options.rows != ROWS else PAGE):
        sizes = bench.small, bench.large
        text = format_markdown(results, bench.timings, describe_machine(), sizes, date.today())
        page.write_text(text, encoding="utf-8")
        print(f"\nwritten: {page}", file=sys.stderr)
    return int(any(result.failed for result in results))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="of the large table [%(default)s]")
    parser.add_argument("--runs", type=int, default=2, help="the best of so many [%(default)s]")
    parser.add_argument("--only", action="append", choices=STEPS, help="one step (repeatable)")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(tempfile.gettempdir()) / "muniment-bench",
        help="the folder that keeps the databases for the next run [%(default)s]",
    )
    parser.add_argument("--report", type=Path, help="write the page there, even after a quick try")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
