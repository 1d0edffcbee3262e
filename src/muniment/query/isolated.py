"""Queries of strangers, each in a process of its own that can be ended at any moment."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from muniment.errors import QueryError, QueryTimeout
from muniment.query.session import Limits
from muniment.siard.lobs.folders import Root

__all__ = ["Answer", "Isolated"]

_PROCESS_MB = 1200  # on top of what the process has when it starts
_GRACE = 2.0  # seconds: a query that can be interrupted says so itself


@dataclass(frozen=True)
class Answer:
    """All rows of an answer, within the limits."""

    table: pa.Table
    more: bool


class Isolated:
    """Runs queries one by one in fresh processes; the next process is started ahead of time."""

    def __init__(
        self, archives: Mapping[str, Path], indexes: Mapping[str, Path], roots: Sequence[Root] = ()
    ) -> None:
        self._archives, self._indexes, self._roots = dict(archives), dict(indexes), tuple(roots)
        self._lock = threading.Lock()
        self._spare: subprocess.Popen[bytes] | None = None
        self._closed = False

    def ask(self, sql: str, limits: Limits) -> Answer:
        """Answer a query, or say in a QueryError why not."""
        rows = limits.rows
        request = {
            # Pickled: a path may lead to an archive inside another file.
            "archives": b64encode(pickle.dumps(self._archives)).decode(),
            "indexes": b64encode(pickle.dumps(self._indexes)).decode(),
            "roots": b64encode(pickle.dumps(self._roots)).decode(),
            "sql": sql,
            "seconds": limits.seconds,
            "rows": None if rows is None else rows + 1,
            "memory_mb": limits.memory_mb,
            "process_mb": _PROCESS_MB,
        }
        process = self._take()
        try:
            patience = None if limits.seconds is None else limits.seconds + _GRACE
            line = json.dumps(request).encode() + b"\n"
            output, errors = process.communicate(line, timeout=patience)
        except subprocess.TimeoutExpired:
            raise QueryTimeout(limits.seconds or 0) from None
        finally:
            process.kill()
            process.communicate()
        if process.returncode:
            raise QueryError(_sentence(errors))
        with pa.ipc.open_stream(output) as stream:
            table = stream.read_all()
        more = rows is not None and table.num_rows > rows
        return Answer(table.slice(0, rows) if more else table, more)

    def warm(self) -> None:
        """Start the next process, so that the next query need not wait for it."""
        with self._lock:
            if self._spare is None and not self._closed:
                self._spare = _start()

    def close(self) -> None:
        """End the process that waits."""
        with self._lock:
            self._closed = True
            if self._spare is not None:
                self._spare.kill()
                self._spare.communicate()
                self._spare = None

    def _take(self) -> subprocess.Popen[bytes]:
        with self._lock:
            process, self._spare = self._spare, None
        return process or _start()


def _start() -> subprocess.Popen[bytes]:
    environment = {**os.environ, "MUNIMENT_DEBUG": ""}
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
    }  # fmt: skip
    command = [sys.executable, "-m", "muniment.query.worker"]
    return subprocess.Popen(command, env=environment, start_new_session=True, **pipes)


def _sentence(errors: bytes) -> str:
    for line in reversed(errors.decode("utf-8", "replace").splitlines()):
        try:
            return str(json.loads(line)["error"])
        except (ValueError, KeyError, TypeError):
            continue
    return "the query took more than it may have and was ended; ask for less"
