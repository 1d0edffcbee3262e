"""The steps of the benchmark on large objects: a million small ones, and one of 8 GiB."""

from __future__ import annotations

import random
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import apsw

from measure import Command, Timing, muniment, run
from report import Result

__all__ = ["large_object", "small_objects"]

SMALL = 1024  # bytes
LARGEST = 8 << 30
MEMORY = 300_000_000
_WITHIN = 1.5  # times what cp and sha256sum take


def small_objects(work: Path, count: int) -> Iterator[Result]:
    """Yield the results for so many objects of a kilobyte each, inside and outside the archive."""
    folder = work / "small"
    database = _many(folder, count)
    plain = folder / "plain"
    plain.mkdir()
    _unpack(database, plain)
    yardstick = run(_copied(plain, folder / "copy", "cp -r"))
    for place in ("internal", "external"):
        home = folder / place
        home.mkdir()
        siard, back = home / "small.siard", home / "back.db"
        commands = [
            muniment(
                f"archive {count:,} small objects, {place}", "archive", _url(database), str(siard),
                "--lobs", place, "--lob-threshold", "0",
            ),
            muniment(f"validate them, {place}", "validate", str(siard)),
            muniment(f"restore them, {place}", "restore", str(siard), _url(back)),
            muniment(f"prove them, {place}", "compare", str(siard), _url(back), "--no-ordered"),
        ]  # fmt: skip
        yield from _measured(commands, yardstick, None)
    shutil.rmtree(folder)


def large_object(work: Path, size: int = LARGEST) -> Iterator[Result]:
    """Yield the results for one object, a sparse file that a column links to."""
    folder = work / "large"
    (folder / "files").mkdir(parents=True)
    file = folder / "files" / "film.bin"
    with file.open("wb") as stream:
        stream.truncate(size)
    database = folder / "films.db"
    db = apsw.Connection(str(database))
    db.execute("CREATE TABLE film (id INTEGER PRIMARY KEY, path VARCHAR(100))")
    db.execute("INSERT INTO film VALUES (1, 'film.bin')")
    db.close()
    yardstick = run(_copied(file, folder / "copy", "cp --sparse=never"))
    siard, back, files = folder / "films.siard", folder / "back.db", folder / "back"
    files.mkdir()
    commands = [
        muniment(
            f"archive one object of {size / 2**30:.1f} GiB", "archive", _url(database), str(siard),
            "--lobs", "external", "--datalink", "main.film.path",
            "--datalink-root", str(file.parent),
        ),
        muniment("validate it", "validate", str(siard)),
        muniment("restore it", "restore", str(siard), _url(back), "--datalink-root", str(files)),
    ]  # fmt: skip
    yield from _measured(commands, yardstick, _WITHIN)
    shutil.rmtree(folder)


def _measured(commands: list[Command], yardstick: Timing, limit: float | None) -> Iterator[Result]:
    for command in commands:
        timing = run(command)
        ratio = timing.seconds / yardstick.seconds
        goal = f"≤ {limit} × yardstick" if limit else ""
        beside = f"{yardstick.name}: {yardstick.seconds:.2f} s"
        met = ratio <= limit if limit else None
        yield Result(timing.name, f"{timing.seconds:.2f} s", goal, met, beside, ratio)
        peak = f"{timing.peak_bytes / 1e6:.0f} MB"
        memory = f"< {MEMORY / 1e6:.0f} MB"
        yield Result(f"{timing.name}, peak memory", peak, memory, timing.peak_bytes < MEMORY)


def _copied(source: Path, target: Path, copy: str) -> Command:
    """Copying the same bytes and taking their digests: what nobody can do without."""
    a, b = shlex.quote(str(source)), shlex.quote(str(target))
    line = f"{copy} {a} {b} && find {b} -type f -print0 | xargs -0 sha256sum > /dev/null"
    return Command(f"{copy} and sha256sum", ["bash", "-o", "pipefail", "-c", line])


def _many(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True)
    path = folder / "small.db"
    numbers = random.Random(1)
    rows = ((n, b"\x01\x02" + numbers.randbytes(SMALL - 2)) for n in range(count))
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE small (id INTEGER PRIMARY KEY, data BLOB)")
    with db:
        db.executemany("INSERT INTO small VALUES (?,?)", rows)
    db.close()
    return path


def _unpack(database: Path, folder: Path) -> None:
    db = apsw.Connection(str(database))
    for number, data in db.execute("SELECT id, data FROM small"):
        place = folder / str(number // 10_000)
        if number % 10_000 == 0:
            place.mkdir()
        (place / f"{number}.bin").write_bytes(data)
    db.close()


def _url(path: Path) -> str:
    return f"sqlite:///{quote(str(path))}"
