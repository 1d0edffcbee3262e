"""A disk that fills up while rows are restored is a sentence, and leaves nothing behind."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from muniment import transfer
from muniment.errors import DatabaseError


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_disk_that_is_full_stops_a_restore(tmp_path: Path, disk: Path, scheme: str) -> None:
    path, archived = tmp_path / "a.db", tmp_path / "a.siard"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)")
        rows = ((number, os.urandom(300)) for number in range(20_000))
        database.executemany("INSERT INTO t VALUES (?, ?)", rows)
    transfer.archive(f"sqlite:///{path}", archived)
    with pytest.raises(DatabaseError, match="the disk is full; free some space and start again"):
        transfer.restore(archived, f"{scheme}:///{disk / 'back'}")
    assert list(disk.iterdir()) == []
