"""What the tests of the command line share, apart from fixtures."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from click.testing import Result

Run = Callable[..., Result]


def database(path: Path, script: str) -> str:
    """Make a SQLite database; return its URL relative to its folder."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return f"sqlite:///{path.name}"
