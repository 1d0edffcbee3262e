"""Names on their own: reading, giving and looking up PDIs."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import time
from pathlib import Path

from measure import best_of
from muniment.identifiers import parse_many
from muniment.names import Names

__all__ = ["Rate", "batch_mint", "look_up", "parse", "single_mints"]

_SERIES = "db.example.ch"
_NAMES = 300_000
_BLOCK, _BLOCKS = 10_000, 50
_MINTS = 24_000
_ASKED = 200_000

Rate = float


def parse() -> Rate:
    """Read PDIs in bulk, on one core."""
    texts = [
        f"pdi://{_SERIES}/2025/{1 + n % 12:02d}/{1 + n % 28:02d}/{n}.siard.{1 + n % 9}"
        for n in range(_NAMES)
    ]
    return _NAMES / best_of(5, lambda: sum(1 for _ in parse_many(texts)))


def batch_mint(work: Path) -> Rate:
    """Give blocks of names, each durable before its names are written out."""
    with _book(work / "batch") as names:
        started = time.perf_counter()
        for _ in range(_BLOCKS):
            sum(map(len, names.mint(_SERIES, _BLOCK, "siard").texts()))
        return _BLOCK * _BLOCKS / (time.perf_counter() - started)


_WRITER = """
import sys
from pathlib import Path
from muniment.names import Names
with Names.open(Path(sys.argv[1])) as names:
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(sys.argv[2])):
        names.mint("db.example.ch", format="siard")
    print("done", flush=True)
    sys.stdin.readline()
"""


def single_mints(work: Path, writers: int = 32) -> Rate:
    """Give names one by one, each on the disk before the next, by many processes at once."""
    folder = work / "single"
    _book(folder).close()
    each = _MINTS // writers
    command = [sys.executable, "-c", _WRITER, str(folder), str(each)]
    pipe = subprocess.PIPE
    running = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(writers)
    ]
    _await(running, "ready")
    started = time.perf_counter()
    _tell(running)
    _await(running, "done")
    seconds = time.perf_counter() - started
    _tell(running)
    for process in running:
        process.communicate()
    with Names.open(folder) as names:
        if names.mint(_SERIES).first != each * writers + 1:
            raise AssertionError("a name was given twice or lost")
    return each * writers / seconds


def _await(running: list[subprocess.Popen[str]], word: str) -> None:
    for process in running:
        assert process.stdout is not None
        if process.stdout.readline() != f"{word}\n":
            raise AssertionError("a writer failed")


def _tell(running: list[subprocess.Popen[str]]) -> None:
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def look_up(work: Path, bindings: int) -> tuple[Rate, Rate]:
    """Make the index of many bindings from their journal, and look names up in random order."""
    with _book(work / "bound") as names:
        _bind(names, bindings)
        started = time.process_time()
        names.current()
        made = bindings / (time.process_time() - started)
        first = next(names.listing(f"pdi://{_SERIES}/*/*/*/*.siard.*"))
        chance = random.Random(7)
        numbers = [chance.randrange(1, bindings + 1) for _ in range(_ASKED)]
        asked = [first._replace(unique_id=str(number)) for number in numbers]
        started = time.perf_counter()
        found = sum(binding is not None for binding in names.look_up(asked))
        seconds = time.perf_counter() - started
        if found != _ASKED:
            raise AssertionError(f"{_ASKED - found} names were not found")
        return made, _ASKED / seconds


def _bind(names: Names, count: int) -> None:
    """Write bindings into the journal as ``bind_many`` does, without asking the index for each."""
    day = names.mint(_SERIES, count, "siard").day
    head = {"kind": "bind", "series": _SERIES, "day": day, "version": 1, "format": "siard"}
    for start in range(1, count + 1, 20_000):
        numbers = range(start, min(start + 20_000, count + 1))
        items = [[str(n), hashlib.sha256(b"%d" % n).hexdigest(), 1, f"tape/{n}"] for n in numbers]
        names.write([{**head, "by": "", "items": items}])


def _book(folder: Path) -> Names:
    names = Names.create(folder)
    names.add_series(_SERIES)
    return names
