"""Work spread over processes, with results in order and bounded memory.

Each worker opens the source once. Python runs one thread at a time, so the cores are used by
processes; what travels between them is compressed or compact.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from typing import Any

from muniment.errors import WorkerDied
from muniment.sql.batch import Batch
from muniment.sql.model import Schema, Table
from muniment.sql.stores import Encoder, Opener, Part, Piece, Source

__all__ = ["Task", "Workers", "default_jobs", "start_workers"]

Task = tuple[Schema, Table, Part | list[Batch], Encoder]

_START_LIMIT = 120  # seconds


def default_jobs() -> int:
    """One worker per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Runs tasks; with no pool, in this process."""

    def __init__(self, source: Source, pool: ProcessPoolExecutor | None, jobs: int) -> None:
        self._source, self._pool, self._jobs = source, pool, jobs

    def run(self, tasks: Iterable[Task]) -> Iterator[Piece]:
        """Yield the piece of each task, in order; a few tasks are under way at a time."""
        if self._pool is None:
            for task in tasks:
                yield run_task(self._source, task)
            return
        waiting: deque[Future[Piece]] = deque()
        try:
            for task in tasks:
                waiting.append(self._pool.submit(_run, task))
                if len(waiting) > 2 * self._jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise WorkerDied(
                "a worker process was ended from outside, most likely for lack of memory; "
                "try again with --jobs 1"
            ) from error


@contextmanager
def start_workers(source: Source, jobs: int, unchanged: Callable[[], bool]) -> Iterator[Workers]:
    """Start processes that see the same state of the source, or none if that cannot be had."""
    opener = source.opener() if jobs > 1 else None
    if opener is None:
        yield Workers(source, None, 1)
        return
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(jobs + 1)
    pool = ProcessPoolExecutor(jobs, context, _open, (opener, ready))
    try:
        for _ in range(jobs):  # each first task starts one process
            pool.submit(os.getpid)
        yield Workers(source, pool if _all_ready(ready) and unchanged() else None, jobs)
    finally:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _all_ready(ready: Any) -> bool:
    """Wait until each worker has its view of the source; False if one of them could not get it."""
    try:
        ready.wait(_START_LIMIT)
    except threading.BrokenBarrierError:
        return False
    return True


def run_task(source: Source, task: Task) -> Piece:
    """Read a part, or take the batches that were read already, and encode them."""
    schema, table, part, encoder = task
    batches = part if isinstance(part, list) else source.batches(schema, table, part)
    piece: Piece = encoder(batches)
    return piece


_source: Any = None
_open_for_good = ExitStack()  # a worker's source stays open until the process ends


def _open(opener: Opener, ready: Any) -> None:
    """Set up a worker: its own view of the source, and deaf to Ctrl-C, which the parent handles."""
    global _source
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _source = _open_for_good.enter_context(opener())
    except BaseException:
        ready.abort()
        raise
    ready.wait(_START_LIMIT)


def _run(task: Task) -> Piece:
    return run_task(_source, task)
