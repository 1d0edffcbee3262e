"""How quickly an archive opens: the first page, the index, and what people ask of it then."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from measure import watched

__all__ = ["main"]

_TABLE = "t/main/sale"
_ASKED = {
    "filter, sort, page": f"{_TABLE}?c=quantity&op=gt&v=40&desc=price",
    "search all tables": "search?q=zebra+lantern+xx",
    "count by": f"{_TABLE}?facet=status",
}
_OFTEN = 0.05  # seconds from one question to the next whether the work is done


def main() -> None:
    """Measure one archive with an empty cache; print the figures as JSON.

    The memory is that of ``muniment browse`` and all its processes, from the start of the index to
    the last answer.
    """
    path, cache = Path(sys.argv[1]), sys.argv[2]
    figures: dict[str, Any] = {"first page": median(_first_page(path) for _ in range(3))}
    with _browsing(path, cache) as (process, archive), watched(process) as memory:
        building = time.perf_counter()
        facts = _progress_until(archive, lambda facts: facts["state"] in ("ready", "failed"))
        if facts["error"]:
            raise SystemExit(facts["error"])
        figures["index"] = time.perf_counter() - building
        figures["rows"] = facts["total"]
        # The validation must not take a part of the answers' time.
        _progress_until(archive, lambda facts: facts["verdict"]["state"] in ("done", "failed"))
        for name, address in _ASKED.items():
            figures[name] = median(_seconds(f"{archive}/{address}") for _ in range(5))
    figures["memory"] = memory.peak
    print(json.dumps(figures))


def _first_page(path: Path) -> float:
    """From the start of ``muniment browse`` to the last byte of a table's first page."""
    with TemporaryDirectory() as cache:
        started = time.perf_counter()
        with _browsing(path, cache) as (_, archive):
            _seconds(f"{archive}/{_TABLE}")
            return time.perf_counter() - started


@contextmanager
def _browsing(path: Path, cache: str) -> Iterator[tuple[int, str]]:
    """Run ``muniment browse``; give its process and the address of the archive's page."""
    environment = {**os.environ, "MUNIMENT_CACHE": cache}
    command = [sys.executable, "-m", "muniment", "browse", str(path), "--port", "0", "--no-open"]
    browse = Popen(command, env=environment, stdout=PIPE, stderr=DEVNULL)
    try:
        assert browse.stdout is not None
        said = browse.stdout.readline().decode()
        address = said.partition("http://")[2].partition("/")[0]
        yield browse.pid, f"http://{address}/a/{quote(path.stem)}"
    finally:
        browse.terminate()
        browse.wait()


def _progress_until(archive: str, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    while True:
        with urlopen(f"{archive}/progress?format=json") as answer:
            facts: dict[str, Any] = json.load(answer)
        if done(facts):
            return facts
        time.sleep(_OFTEN)


def _seconds(address: str) -> float:
    """Ask for a page; return how long it took."""
    started = time.perf_counter()
    with urlopen(address) as answer:
        answer.read()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
