"""How quickly an archive opens: the first page, the index, and what people ask of it then."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

__all__ = ["main"]


def main() -> None:
    """Measure one archive with an empty cache; print the figures as JSON."""
    path, cache = Path(sys.argv[1]), sys.argv[2]
    os.environ["MUNIMENT_CACHE"] = cache
    from starlette.testclient import TestClient  # the visitor, whom nobody waits for

    figures: dict[str, Any] = {"first page": median(_first_page(path) for _ in range(3))}
    from muniment.web.app import create_app
    from muniment.web.site import OpenArchive, Site

    archive = OpenArchive("shop", path)
    app = create_app(Site({"shop": archive}))
    client = TestClient(app)
    table = "/a/shop/t/main/sale"
    building = time.perf_counter()
    with client:
        if not archive.wait(3600):
            raise SystemExit(archive.progress.error)
        figures["index"] = time.perf_counter() - building
        archive.wait_for_verdict(3600)  # so that it does not take a part of the answers' time
        rows = sum(t.rows for t in archive.about.tables) if archive.about else 0
        figures["rows"] = rows
        asked = {
            "filter, sort, page": f"{table}?c=quantity&op=gt&v=40&desc=price",
            "search all tables": "/a/shop/search?q=zebra+lantern+xx",
            "count by": f"{table}?facet=status",
        }
        for name, address in asked.items():
            figures[name] = _median(lambda address=address: _get(client, address))
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    figures["memory"] = (own + children) * 1024
    print(json.dumps(figures))


def _first_page(path: Path) -> float:
    """From the start of ``muniment browse`` to the last byte of a table's first page."""
    with TemporaryDirectory() as cache:
        environment = {**os.environ, "MUNIMENT_CACHE": cache}
        command = [sys.executable, "-m", "muniment", "browse", str(path), "--port", "0"]
        started = time.perf_counter()
        browse = Popen([*command, "--no-open"], env=environment, stdout=PIPE, stderr=DEVNULL)
        try:
            assert browse.stdout is not None
            said = browse.stdout.readline().decode()
            address = said.partition("http://")[2].partition("/")[0]
            name = quote(path.stem)
            with urlopen(f"http://{address}/a/{name}/t/main/sale") as answer:
                answer.read()
            return time.perf_counter() - started
        finally:
            browse.terminate()
            browse.wait()


def _get(client: Any, address: str) -> None:
    answer = client.get(address)
    if answer.status_code != 200:
        raise SystemExit(f"{address}: {answer.status_code}")


def _median(ask: Callable[[], None]) -> float:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        ask()
        times.append(time.perf_counter() - started)
    return median(times)


if __name__ == "__main__":
    main()
