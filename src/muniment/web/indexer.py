"""The process that builds an index for the pages: progress as lines of JSON on stdout.

It ends when its stdin does: nobody waits for the index any more.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Build the index of the archive that the command line names."""
    from muniment.errors import MunimentError
    from muniment.query.index import build

    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        build(Path(sys.argv[1]), _Teller())
    except (MunimentError, OSError) as error:
        _say(error=str(error))
        sys.exit(3)


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(1)  # the partial index is left for the cache's next visitor to replace


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
