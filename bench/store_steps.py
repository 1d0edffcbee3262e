"""The steps that measure the store: indexing tapes, adding objects, getting records."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from measure import Command, Timing, muniment, run, shell
from report import Result
from store_work import make_files, make_tape

__all__ = ["STORE_STEPS"]

INDEXED = 400  # MB/s
ADDED = 5_000  # objects/s
GOT = 0.2  # ms
_WORK = Path(__file__).with_name("store_work.py")


class Bench(Protocol):
    """What the steps need of a benchmark."""

    large: int
    data: Path

    def file(self, rows: int, suffix: str) -> Path: ...
    def timed(self, rows: int, commands: list[Command]) -> dict[str, Timing]: ...


def _index(bench: Bench) -> Iterator[Result]:
    records = max(bench.large * 6 // 125, 20)  # 120,000 of 2.5 million
    for name, awkward in (("index a tape", False), ("index a tape of awkward spelling", True)):
        tape = make_tape(
            bench.data / f"{records}{'-awkward' * awkward}.xml", records, awkward=awkward
        )
        index = bench.file(records, ".index")
        timing = bench.timed(records, [_work(name, "index", tape, index, makes=index)])[name]
        run(_work("every offset as expat finds it", "prove", tape))
        rate = tape.stat().st_size / 1e6 / timing.seconds
        goal = "" if awkward else f"≥ {INDEXED} MB/s"
        met = None if awkward else rate >= INDEXED
        yield Result(f"{name}, {records:,} records", f"{rate:.0f} MB/s", goal, met)


def _add(bench: Bench) -> Iterator[Result]:
    count = max(bench.large // 25, 20)  # 100,000 of 2.5 million
    listing, store = make_files(bench.data / f"files-{count}", count), bench.file(count, ".store")
    plain = bench.file(count, ".list")  # the same files without their identifiers are new objects
    plain.write_text("".join(line.split("\t")[0] + "\n" for line in listing.open()))
    names = [f"store add, {turn} {count:,} objects" for turn in ("first", "second")]
    adding = [
        muniment(name, "store", "add", str(store), "--from", str(files))
        for name, files in zip(names, (listing, plain), strict=True)
    ]
    timings = bench.timed(count, [_fresh(store), *adding])
    rates = [count / timings[name].seconds for name in names]
    for name, rate in zip(names, rates, strict=True):
        yield Result(name, f"{rate:,.0f} objects/s", f"≥ {ADDED:,} objects/s", rate >= ADDED)
    yield Result(
        "the same, second against first",
        f"{rates[0] / rates[1]:.2f}",
        "flat",
        rates[0] <= 1.3 * rates[1],
    )
    yield from _add_large(bench, store)


def _add_large(bench: Bench, store: Path) -> Iterator[Result]:
    size = max(bench.large * 400, 1_000_000)  # 1 GB of 2.5 million
    path, copy = bench.file(size, ".bin"), bench.file(size, ".copy")
    with path.open("wb") as stream, Path("/dev/urandom").open("rb") as source:
        for _ in range(size // 1_000_000):
            stream.write(source.read(1_000_000))
    line = (
        f"sha256sum {_quoted(path)} && cp {_quoted(path)} {_quoted(copy)} && sync {_quoted(copy)}"
    )
    yardstick = run(shell("sha256sum + cp", line, copy))
    timing = run(muniment("store add, a large file", "store", "add", str(store), str(path)))
    ratio = timing.seconds / yardstick.seconds
    beside = f"{yardstick.name}: {yardstick.seconds:.2f} s"
    yield Result(
        f"store add, {size / 1e6:.0f} MB",
        f"{timing.seconds:.2f} s",
        "≤ 2.0 × yardstick",
        ratio <= 2,
        beside,
        ratio,
    )


def _get(bench: Bench) -> Iterator[Result]:
    records = max(bench.large * 12 // 25, 100)  # 1.2 million of 2.5 million
    tape, store = (
        make_tape(bench.data / f"{records}-small.xml", records, 200),
        bench.file(records, ".got"),
    )
    run(_fresh(store))
    run(muniment("store import", "store", "import", str(store), str(tape)))
    command = [sys.executable, str(_WORK), "get", str(store), str(records), "20000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    took = float(done.stdout) / 1000
    yield Result(f"get one of {records:,} records", f"{took:.3f} ms", f"< {GOT} ms", took < GOT)


def _fresh(store: Path) -> Command:
    """Return what makes a new store, in the place of an old one."""
    start = f"from muniment.cli.main import main; shutil.rmtree({str(store)!r}, True); main()"
    arguments = ["-c", f"import shutil; {start}", "store", "init", str(store)]
    return Command("store init", [sys.executable, *arguments])


def _work(name: str, *arguments: object, makes: Path | None = None) -> Command:
    return Command(name, [sys.executable, str(_WORK), *map(str, arguments)], makes)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


STORE_STEPS: dict[str, Callable[[Bench], Iterator[Result]]] = {
    "store-index": _index,
    "store-add": _add,
    "store-get": _get,
}
