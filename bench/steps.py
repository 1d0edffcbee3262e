"""The steps of the benchmark: what is run, and which goal its result has to meet."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import copyfileobj
from textwrap import shorten
from urllib.parse import quote
from zipfile import ZipFile

import lobs
import mariadb
import micro
import postgresql
from data import Shop, make_shop
from measure import Command, Failed, Timing, muniment, rounds, run, shell
from report import Result
from serving import SERVING_STEPS
from store_steps import STORE_STEPS
from wide import COPY, duckdb_copy, measure_wide

__all__ = ["STEPS", "Bench", "run_steps"]

ROWS_PER_SECOND = 300_000
SERIALISED, PARSED = 120, 70  # MB/s of XML on one core
MEMORY = 500_000_000
OPENING_MEMORY = 700_000_000
GROWTH = 1.4  # of the peak for ten times the rows: the small size does not fill every queue


class Bench:
    """The shops of both sizes, and each group of commands run at most once per size."""

    def __init__(self, data: Path, work: Path, rows: int, count: int) -> None:
        self.large, self.small = rows, max(rows // 10, 1)
        self.timings: list[tuple[int, Timing]] = []
        self.data = data
        self.folder = self._work = work
        self._count = count
        self.shop: Callable[[int], Shop] = cache(lambda rows: _announced_shop(data, rows))
        self.leaving = cache(self._leaving)
        self.returning = cache(self._returning)

    def file(self, rows: int, suffix: str) -> Path:
        """Where an output goes."""
        return self._work / f"{rows}{suffix}"

    def archive(self, rows: int) -> Path:
        """Return the archive of the SQLite shop, made now unless an earlier step did."""
        path = self.file(rows, ".siard")
        if not path.exists():
            run(muniment("archive", "archive", url("sqlite", self.shop(rows).sqlite), str(path)))
        return path

    def timed(self, rows: int, commands: list[Command]) -> dict[str, Timing]:
        """Run the commands side by side, and remember how long they took.

        The small size takes machine code from the start, as the large one does: its libraries do
        not grow with the data.
        """
        with _machine_code(from_the_start=rows < self.large):
            best = rounds(commands, self._count)
        self.timings += [(rows, timing) for timing in best.values()]
        return best

    def prove(self, archive: Path, database: str) -> None:
        """Fail unless a database is equal to an archive."""
        run(muniment("is it equal?", "compare", str(archive), database))

    def _leaving(self, rows: int) -> dict[str, Timing]:
        """Out of SQLite: the dump, the archive, and the comparison of archive and database."""
        database, path = self.shop(rows).sqlite, self.file(rows, ".siard")
        dump = self.file(rows, ".sql.gz")
        line = f"sqlite3 {_quoted(database)} .dump | gzip -1 > {_quoted(dump)}"
        commands = [
            shell(DUMP, line, dump),
            muniment(ARCHIVE, "archive", url("sqlite", database), str(path), makes=path),
            muniment(COMPARE, "compare", url("sqlite", database), str(path)),
        ]
        return self.timed(rows, commands)

    def _returning(self, rows: int) -> dict[str, Timing]:
        """Back into SQLite, from the dump and from the archive."""
        self.leaving(rows)
        archive, dump = self.file(rows, ".siard"), self.file(rows, ".sql.gz")
        loaded, restored = self.file(rows, ".loaded.db"), self.file(rows, ".restored.db")
        line = f"zcat {_quoted(dump)} | sqlite3 {_quoted(loaded)}"
        commands = [
            shell(LOAD, line, loaded),
            muniment(RESTORE, "restore", str(archive), url("sqlite", restored), makes=restored),
        ]
        return self.timed(rows, commands)


DUMP, LOAD = "sqlite3 .dump | gzip -1", "zcat | sqlite3"
ARCHIVE, COMPARE = "archive sqlite", "compare sqlite"
RESTORE = "restore sqlite"
BARE, KEYED = "restore duckdb --no-constraints", "restore duckdb"
VALIDATE, XMLLINT = "validate", "xmllint --stream --schema"


def url(scheme: str, path: Path) -> str:
    """Name a database file as the command line wants it."""
    return f"{scheme}:///{quote(str(path))}"


def run_steps(bench: Bench, names: Iterable[str]) -> Iterator[Result]:
    """Yield the results of the named steps; one that fails does not stop the others."""
    for name in names:
        print(name, file=sys.stderr)
        try:
            yield from STEPS[name](bench)
        except Failed as failure:
            print(f" failed: {failure}", file=sys.stderr)
            yield Result(name, shorten(f"failed: {failure}", 72), met=False)


@contextmanager
def _machine_code(from_the_start: bool) -> Iterator[None]:
    """Let commands that are run meanwhile load machine code, however little there is to do."""
    before = os.environ.copy()
    if from_the_start:
        os.environ["MUNIMENT_KERNELS"] = "always"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _archive(bench: Bench) -> Iterator[Result]:
    timings = bench.leaving(bench.large)
    yield _rate("SQLite → SIARD", bench.large, timings[ARCHIVE])
    yield _against("SQLite → SIARD", timings[ARCHIVE], timings[DUMP], 1.0)


def _compare(bench: Bench) -> Iterator[Result]:
    timings = bench.leaving(bench.large)
    yield _against("compare SQLite with SIARD", timings[COMPARE], timings[ARCHIVE], 1.0)


def _restore(bench: Bench) -> Iterator[Result]:
    timings = bench.returning(bench.large)
    yield _against("SIARD → SQLite", timings[RESTORE], timings[LOAD], 2.0)
    restored = bench.file(bench.large, ".restored.db")
    bench.prove(bench.archive(bench.large), url("sqlite", restored))


def _validate(bench: Bench) -> Iterator[Result]:
    """Everything that validate checks, against xmllint's check of the largest table's XML alone."""
    timings = [_validated(bench, rows) for rows in (bench.small, bench.large)]
    large = timings[1]
    yield _against("validate SIARD", large[VALIDATE], large[XMLLINT], 1.5)
    sizes = bench.small, bench.large
    yield _peak_memory(VALIDATE, sizes, (timings[0][VALIDATE], large[VALIDATE]))


def _validated(bench: Bench, rows: int) -> dict[str, Timing]:
    archive, xml = bench.archive(rows), bench.file(rows, ".table.xml")
    xsd = xml.with_suffix(".xsd")
    with ZipFile(archive) as package:
        largest = max(package.infolist(), key=lambda entry: entry.file_size)
        for source, target in ((largest.filename, xml), (f"{largest.filename[:-4]}.xsd", xsd)):
            with package.open(source) as stream, target.open("wb") as copy:
                copyfileobj(stream, copy, 1 << 20)
    xmllint = ["xmllint", "--stream", "--noout", "--schema", str(xsd), str(xml)]
    commands = [Command(XMLLINT, xmllint), muniment(VALIDATE, "validate", str(archive))]
    return bench.timed(rows, commands)


def _duckdb_archive(bench: Bench) -> Iterator[Result]:
    path = bench.file(bench.large, ".duckdb.siard")
    source = url("duckdb", bench.shop(bench.large).duckdb)
    command = muniment("archive duckdb", "archive", source, str(path), makes=path)
    timings = bench.timed(bench.large, [command])
    yield _rate("DuckDB → SIARD", bench.large, timings[command.name])


def _duckdb_restore(bench: Bench) -> Iterator[Result]:
    """With keys and without: indexes take DuckDB longer than rows, which its own copying shows."""
    sizes = bench.small, bench.large
    small, large = (_duckdb_restored(bench, rows) for rows in sizes)
    yield _rate("SIARD → DuckDB, without keys", bench.large, large[BARE])
    ratio = large[KEYED].seconds / large[COPY].seconds
    beside = f"{COPY}: {large[COPY].seconds:.2f} s"
    seconds = f"{large[KEYED].seconds:.2f} s"
    yield Result("SIARD → DuckDB, with all keys", seconds, yardstick=beside, ratio=ratio)
    for name in (BARE, KEYED):
        yield _time_per_row(name, sizes, (small[name], large[name]))
        yield _peak_memory(name, sizes, (small[name], large[name]))


def _duckdb_restored(bench: Bench, rows: int) -> dict[str, Timing]:
    archive, target = bench.archive(rows), bench.file(rows, ".restored.duckdb")
    copy, shop = bench.file(rows, ".copied.duckdb"), bench.shop(rows).duckdb
    place = str(archive), url("duckdb", target)
    commands = [
        duckdb_copy(shop, copy),
        muniment(BARE, "restore", *place, "--no-constraints", makes=target),
        muniment(KEYED, "restore", *place, makes=target),
    ]
    timings = bench.timed(rows, commands)
    bench.prove(*place)
    return timings


def _duckdb_wide(bench: Bench) -> Iterator[Result]:
    yield from measure_wide(bench.file(bench.large, ".wide"))


def _many_rows(bench: Bench) -> Iterator[Result]:
    """Four times as many sales: memory stays where it was, also where keys come in no order."""
    rows = 4 * bench.large
    path, target = bench.file(rows, ".siard"), bench.file(rows, ".restored.duckdb")
    source, place = url("sqlite", bench.shop(rows).sqlite), url("duckdb", target)
    commands = [
        muniment(ARCHIVE, "archive", source, str(path), makes=path),
        muniment(COMPARE, "compare", source, str(path)),
        muniment(KEYED, "restore", str(path), place, makes=target),
    ]
    for name, timing in bench.timed(rows, commands).items():
        measured, goal = f"{timing.peak_bytes / 1e6:.0f} MB", f"< {MEMORY / 1e6:.0f} MB"
        step = f"{name}, {rows:,} rows, peak memory"
        yield Result(step, measured, goal, timing.peak_bytes < MEMORY)


def _postgresql(bench: Bench) -> Iterator[Result]:
    both: list[dict[str, Timing]] = []
    sizes = bench.small, bench.large
    for rows in sizes:
        with postgresql.running_shop(bench.shop(rows), bench.folder) as shop:
            timings = bench.timed(rows, shop.leaving())
            both.append({**timings, **bench.timed(rows, shop.returning())})
            bench.prove(shop.archive, shop.restored)
    pg, large = postgresql, both[1]
    yield _against("PostgreSQL → SIARD", large[pg.ARCHIVE], large[pg.DUMP], 0.45)
    yield _against("the same, strong", large[pg.STRONG], large[pg.DUMP], 0.7)
    quick = large[pg.ARCHIVE].seconds / large[pg.QUICK_DUMP].seconds
    seconds = f"{large[pg.ARCHIVE].seconds:.2f} s"
    yield Result("PostgreSQL → SIARD", seconds, yardstick=pg.QUICK_DUMP, ratio=quick)
    yield _against("SIARD → PostgreSQL", large[pg.RESTORE], large[pg.LOAD], 1.4)
    yield _against("compare PostgreSQL with SIARD", large[pg.COMPARE], large[pg.ARCHIVE], 1.5)
    for name in (pg.ARCHIVE, pg.RESTORE, pg.COMPARE):
        yield _time_per_row(name, sizes, (both[0][name], both[1][name]))
    for name in (pg.ARCHIVE, pg.RESTORE, pg.COMPARE):
        yield _peak_memory(name, sizes, (both[0][name], both[1][name]))


def _mariadb(bench: Bench) -> Iterator[Result]:
    both: list[dict[str, Timing]] = []
    sizes = bench.small, bench.large
    for rows in sizes:
        with mariadb.running_shop(bench.shop(rows), bench.folder) as shop:
            timings = bench.timed(rows, shop.leaving())
            both.append({**timings, **bench.timed(rows, shop.returning())})
            bench.prove(shop.archive, shop.restored)
    large = both[1]
    yield _against("MariaDB → SIARD", large[mariadb.ARCHIVE], large[mariadb.DUMP], 1.5)
    yield _against("SIARD → MariaDB", large[mariadb.RESTORE], large[mariadb.LOAD], 1.5)
    yield _against(
        "compare MariaDB with SIARD", large[mariadb.COMPARE], large[mariadb.ARCHIVE], 1.5
    )
    for name in (mariadb.ARCHIVE, mariadb.RESTORE, mariadb.COMPARE):
        yield _time_per_row(name, sizes, (both[0][name], both[1][name]))
    for name in (mariadb.ARCHIVE, mariadb.RESTORE, mariadb.COMPARE):
        yield _peak_memory(name, sizes, (both[0][name], both[1][name]))


def _serialise(bench: Bench) -> Iterator[Result]:
    speed = micro.serialise(url("sqlite", bench.shop(bench.large).sqlite))
    yield _speed("batches → row XML, one core", speed, SERIALISED)


def _parse(bench: Bench) -> Iterator[Result]:
    archive = bench.archive(bench.large)
    speed = micro.parse_fast(archive, url("sqlite", bench.shop(bench.large).sqlite))
    yield _speed("row XML → batches, one core", speed, PARSED)
    yield _speed("the same, exact parser", micro.parse_exactly(archive), None)


def _scale(bench: Bench) -> Iterator[Result]:
    sizes = bench.small, bench.large
    both = [{**bench.leaving(rows), **bench.returning(rows)} for rows in sizes]
    for name in (ARCHIVE, RESTORE, COMPARE):
        yield _time_per_row(name, sizes, (both[0][name], both[1][name]))
    for name in (ARCHIVE, RESTORE, COMPARE):
        yield _peak_memory(name, sizes, (both[0][name], both[1][name]))


def _compression(bench: Bench) -> Iterator[Result]:
    rows, source = bench.small, url("sqlite", bench.shop(bench.small).sqlite)
    commands = []
    for level in ("fast", "strong", "none"):
        path = bench.file(rows, f".{level}.siard")
        arguments = ["archive", source, str(path), "--compression", level]
        commands.append(muniment(f"archive sqlite --compression {level}", *arguments, makes=path))
    fast, *others = bench.timed(rows, commands).values()
    yield Result(f"{fast.name}, {rows:,} rows", _size_and_time(fast))
    for timing in others:
        ratio = timing.seconds / fast.seconds
        step = f"{timing.name}, {rows:,} rows"
        yield Result(step, _size_and_time(timing), yardstick="--compression fast", ratio=ratio)


def _small_objects(bench: Bench) -> Iterator[Result]:
    yield from lobs.small_objects(bench.file(bench.large, ".objects"), bench.large * 2 // 5)


def _large_object(bench: Bench) -> Iterator[Result]:
    size = lobs.LARGEST * min(bench.large, 2_500_000) // 2_500_000
    yield from lobs.large_object(bench.file(bench.large, ".object"), size)


def _names(bench: Bench) -> Iterator[Result]:
    import naming

    work = bench.file(bench.large, ".names")
    work.mkdir()
    bound = 4 * bench.large
    made, looked_up = naming.look_up(work, bound)
    for step, rate, goal in (
        ("read PDIs in bulk, one core", naming.parse(), 300_000),
        ("mint PDIs in blocks of 10,000", naming.batch_mint(work), 100_000),
        ("mint PDIs one by one, 32 writers", naming.single_mints(work), 3_000),
        (f"make the index of {bound:,} bindings, one core", made, 100_000),
        (f"look up PDIs among {bound:,}", looked_up, 50_000),
    ):
        yield Result(step, f"{rate:,.0f} /s", f"≥ {goal:,} /s", rate >= goal)


def _opening(bench: Bench) -> Iterator[Result]:
    """What ``muniment browse`` does, on an archive that nobody has opened yet."""
    archive = bench.archive(bench.large)
    script = Path(__file__).with_name("opening.py")
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, str(script), str(archive), cache]
        done = subprocess.run(command, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise Failed(f"opening: {done.stderr.strip().splitlines()[-1:]}")
    figures = json.loads(done.stdout)
    yield _within("browse: first page, cold", figures["first page"], 1.0)
    rate = figures["rows"] / figures["index"]
    goal = f"≥ {ROWS_PER_SECOND:,} rows/s"
    yield Result("browse: index", f"{rate:,.0f} rows/s", goal, rate >= ROWS_PER_SECOND)
    yield _within("browse: filter, sort, page", figures["filter, sort, page"], 0.2)
    yield _within("browse: search all tables", figures["search all tables"], 0.5)
    yield _within("browse: count by a column", figures["count by"], 0.3)
    memory = figures["memory"]
    goal = f"< {OPENING_MEMORY / 1e6:.0f} MB"
    yield Result("browse: peak memory", f"{memory / 1e6:.0f} MB", goal, memory < OPENING_MEMORY)


def _within(step: str, seconds: float, goal: float) -> Result:
    return Result(step, f"{seconds * 1000:.0f} ms", f"< {goal * 1000:.0f} ms", seconds < goal)


STEPS: dict[str, Callable[[Bench], Iterator[Result]]] = {
    "archive": _archive,
    "compare": _compare,
    "restore": _restore,
    "validate": _validate,
    "duckdb-archive": _duckdb_archive,
    "duckdb-restore": _duckdb_restore,
    "duckdb-wide": _duckdb_wide,
    "many-rows": _many_rows,
    "postgresql": _postgresql,
    "mariadb": _mariadb,
    "serialise": _serialise,
    "parse": _parse,
    "scale": _scale,
    "compression": _compression,
    "small-objects": _small_objects,
    "large-object": _large_object,
    "names": _names,
    "opening": _opening,
    **STORE_STEPS,
    **SERVING_STEPS,
}


def _rate(step: str, rows: int, timing: Timing) -> Result:
    rate = rows / timing.seconds
    goal = f"≥ {ROWS_PER_SECOND:,} rows/s"
    return Result(step, f"{rate:,.0f} rows/s", goal, rate >= ROWS_PER_SECOND)


def _against(step: str, timing: Timing, yardstick: Timing, limit: float) -> Result:
    ratio = timing.seconds / yardstick.seconds
    goal = f"≤ {limit} × yardstick"
    beside = f"{yardstick.name}: {yardstick.seconds:.2f} s"
    return Result(step, f"{timing.seconds:.2f} s", goal, ratio <= limit, beside, ratio)


def _speed(step: str, speed: micro.Speed, goal: int | None) -> Result:
    rate = speed.megabytes_per_second
    measured = f"{rate:.0f} MB/s"
    return (
        Result(step, measured, f"≥ {goal} MB/s", rate >= goal) if goal else Result(step, measured)
    )


def _time_per_row(name: str, sizes: tuple[int, int], pair: tuple[Timing, Timing]) -> Result:
    small, large = (t.seconds / rows * 1e6 for t, rows in zip(pair, sizes, strict=True))
    step, beside = f"{name}, time per row", f"{sizes[0]:,} rows: {small:.2f} µs"
    return Result(step, f"{large:.2f} µs", yardstick=beside, ratio=large / small)


def _peak_memory(name: str, sizes: tuple[int, int], pair: tuple[Timing, Timing]) -> Result:
    small, large = (max(timing.peak_bytes, 1) for timing in pair)
    goal = f"< {MEMORY / 1e6:.0f} MB, not growing"
    met = large < MEMORY and large <= GROWTH * small
    beside = f"{sizes[0]:,} rows: {small / 1e6:.0f} MB"
    return Result(f"{name}, peak memory", f"{large / 1e6:.0f} MB", goal, met, beside, large / small)


def _size_and_time(timing: Timing) -> str:
    return f"{timing.made_bytes / 1e6:.1f} MB in {timing.seconds:.2f} s"


def _announced_shop(data: Path, rows: int) -> Shop:
    print(f"  a shop with {rows:,} sales …", file=sys.stderr, flush=True)
    return make_shop(data, rows)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
