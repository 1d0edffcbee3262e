"""Results as people read them: a table on the terminal, and docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from measure import Timing

__all__ = ["Result", "format_markdown", "format_table"]


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the outcome; without a goal it is only information."""

    step: str
    measured: str
    goal: str = ""
    met: bool | None = None
    yardstick: str = ""
    ratio: float | None = None

    @property
    def failed(self) -> bool:
        """Whether there is nothing measured because a command broke off."""
        return self.met is False and not self.goal


_HEADINGS = ("step", "measured", "goal", "met", "yardstick", "ratio")


def format_table(results: Iterable[Result]) -> str:
    """Return the results in columns for a terminal."""
    lines = [_HEADINGS, *map(_cells, results)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_padded(line, widths) for line in lines)


def format_markdown(
    results: Sequence[Result],
    timings: Sequence[tuple[int, Timing]],
    machine: Mapping[str, str],
    rows: tuple[int, int],
    day: date,
) -> str:
    """Return the page of documentation; ``rows`` are the small and the large size."""
    small, large = (f"{number:,}" for number in rows)
    return _PAGE.format(
        day=day.isoformat(),
        small=small,
        large=large,
        results=_markdown_table(_HEADINGS, map(_cells, results)),
        timings=_markdown_table(_TIMING_HEADINGS, [_timing_cells(*each) for each in timings]),
        machine=_markdown_table(("", ""), machine.items()),
    )


def _cells(result: Result) -> tuple[str, ...]:
    met = {True: "yes", False: "**no**", None: ""}[result.met]
    ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
    return result.step, result.measured, result.goal, met, result.yardstick, ratio


def _padded(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.replace("*", "").ljust(width) for cell, width in zip(line, widths, strict=True))
    return "  ".join(cells).rstrip()


_TIMING_HEADINGS = ("command", "sales", "seconds", "CPU seconds", "peak memory", "output")


def _timing_cells(rows: int, timing: Timing) -> tuple[str, ...]:
    return (
        timing.name,
        f"{rows:,}",
        f"{timing.seconds:.2f}",
        f"{timing.cpu_seconds:.2f}",
        f"{timing.peak_bytes / 1e6:.0f} MB",
        f"{timing.made_bytes / 1e6:.1f} MB" if timing.made_bytes else "",
    )


def _markdown_table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(headings)
    rows = [headings, rule, *([cell.replace("|", r"\|") for cell in line] for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


_PAGE = """\
# Benchmarks

Written by `make bench` on {day}. The numbers below come from one run on one machine; each yardstick
ran right beside the step that it is compared with.

{results}

## Every timed command

{timings}

## Machine

{machine}

## How it is measured

- **Data.** A web shop in SQLite and the same in DuckDB: {large} sales of 16 columns (whole numbers,
  decimals, floats, truth values, dates, timestamps, text), of which some are NULL in 2 or 3 % of
  the rows and 3 % of the remarks hold awkward text; customers and products with foreign keys to
  them. Rows per second count the sales alone. The small size has {small} sales.
- **Steps** are calls of the `muniment` command, each a process of its own that starts from nothing.
  Steps and yardsticks share the same two cores and find the files in the system's cache. What was
  written before is on the disk when a command starts. The fastest run of several counts.
- **CPU and memory** are those of a command with all its processes. Memory is looked at ten times a
  second; a page that several processes share counts once.
- **Serialising and parsing** are measured in one process and in memory, as XML made or read per
  second; best of five. Parsing includes the proof that nothing was overlooked. That its values are
  those of the database is checked before.
- **Comparing** ends with success only if archive and database are equal; each restored database is
  compared with its archive too, outside the measured time.
- **Names.** Minted names are on the disk before they count; the 32 writers are processes that mint
  one name at a time, and share syncs. Look-ups are of single names in random order, from Python, in
  an index that was made from the journal just before.
- **The store.** A tape of 9 kB records is indexed from nothing, plain and in awkward spelling;
  every offset is compared with expat's, outside the measured time. Objects are small text files,
  each with a content identifier; digests, names, documents, syncing and all indexes are included.
  Records are got at random, by identifier, in one process.
- **Ratio** is the step's time divided by the yardstick's, so less is better; for memory, bytes
  instead of time.

`python bench/run.py --rows 100000` is a quick try, `--only STEP` runs one step, and `--help` tells
the rest. A quick try leaves this page as it is.
"""
