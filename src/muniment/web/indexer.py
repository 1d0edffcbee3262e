"""The processes that work for the pages: one builds an index, one validates an archive.

``python -m muniment.web.indexer index|validate`` reads from stdin what to work on
and tells as lines of JSON on stdout how far it is. It ends when its stdin does: nobody waits then.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
import threading
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muniment.siard.lobs.folders import Root

__all__ = ["main"]

_SHOWN = 100  # findings


def main() -> None:
    """Do what the command line says with the archive that stdin names."""
    gc.set_threshold(20_000, 20)  # as for commands
    from muniment.errors import MunimentError

    # Written by the process that started this one: a path may lead to a file inside another.
    path, roots = pickle.loads(b64decode(sys.stdin.readline()))
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        if sys.argv[1] == "index":
            from muniment.query.index import build

            build(path, _Teller(), roots=roots)
        else:
            _validate(path, roots)
    except (MunimentError, OSError) as error:
        _say(error=str(error))
        sys.exit(3)


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(1)  # the partial index is left for the cache's next visitor to replace


def _validate(path: Path, roots: Sequence[Root]) -> None:
    from muniment.siard import open_siard
    from muniment.siard.validation import Progress, validate

    os.nice(10)  # people look at pages meanwhile
    tell, done = _Teller(), dict[tuple[str, str], int]()
    with open_siard(path) as source:
        total = sum(table.rows for _, table in source.describe().tables())

    def progress(step: Progress) -> None:
        done[step.schema, step.table] = step.rows
        tell(step.table, min(sum(done.values()), total), total)

    found = validate(path, jobs=1, progress=progress, roots=roots).finish()
    findings: list[dict[str, Any]] = [
        {"rule": f.rule, "severity": f.severity.value, "where": f.where[:300],
         "message": f.message[:1000]}
        for f in found.findings[:_SHOWN]
    ]  # fmt: skip
    counts = {severity.value: number for severity, number in found.counts().items()}
    _say(valid=found.valid, version=found.version, counts=counts, findings=findings)


class _Teller:
    def __init__(self) -> None:
        self._told = 0

    def __call__(self, table: str, rows: int, total: int) -> None:
        if rows - self._told > total // 100 or rows == total:
            self._told = rows
            _say(table=table[:200], rows=rows, total=total)


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
