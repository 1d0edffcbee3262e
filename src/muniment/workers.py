"""Work spread over processes or threads, with results in order and bounded memory.

Each worker opens the source once. Python runs one thread at a time, so the cores are mostly used by
processes; what travels between them is compressed or compact. The pipes to a worker are served by
two threads, so that its next task waits at its door while it works. Where machine code and
libraries do nearly all of the work, threads are enough, and nothing has to travel.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from multiprocessing import resource_tracker
from queue import SimpleQueue
from typing import Any

from muniment.errors import WorkerDied
from muniment.kernels import at_once, expect
from muniment.sql.batch import Batch
from muniment.sql.model import Schema, Table
from muniment.sql.stores import Encoder, Opener, Part, Piece, Source

__all__ = [
    "Beside", "Task", "Workers", "deaf_children", "default_jobs", "start_workers",
    "suits_threads", "take_quick_turns",
]  # fmt: skip

Task = tuple[Schema, Table, Part | list[Batch], Encoder]

_Outcome = tuple[Piece, Any]  # what a target makes of a part, and the source's receipt for it

_TURN = 0.0005  # seconds
_MOST_JOBS = 256  # more would fill the machine before the first of them had work
_AHEAD = 2  # tasks under way per worker, the one it works on included
_M_TRIM_THRESHOLD = -1  # of malloc.h
_KEPT = 4 << 20  # bytes


def take_quick_turns() -> None:
    """Let threads that come back from machine code wait less for their turn in Python.

    A turn is five milliseconds otherwise, and such work returns after a fraction of one.
    """
    sys.setswitchinterval(_TURN)


def default_jobs() -> int:
    """One worker per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Runs tasks; with no processes, in this one."""

    def __init__(self, source: Source, started: Sequence[_Worker | _Thread]) -> None:
        self._source, self._started = source, started

    def run(self, tasks: Iterable[Task], *, local: bool = False) -> Iterator[Piece]:
        """Yield the piece of each task, in order; a few tasks are under way at a time.

        ``local`` work is done in this process: its pieces may be lazy.
        """
        if local or not self._started:
            for task in tasks:
                yield _run(self._source, task)[0]
            return
        waiting: deque[Future[_Outcome]] = deque()
        for number, task in enumerate(tasks):
            waiting.append(self._started[number % len(self._started)].submit(task))
            if len(waiting) >= _AHEAD * len(self._started):
                yield self._accepted(waiting.popleft())
        while waiting:
            yield self._accepted(waiting.popleft())

    def _accepted(self, future: Future[_Outcome]) -> Piece:
        piece, receipt = future.result()
        if receipt is not None:
            self._source.accept(receipt)  # type: ignore[attr-defined]
        return piece


def suits_threads(source: Source, jobs: int) -> bool:
    """Whether so many threads can read it side by side, with machine code."""
    most = getattr(source, "most_threads", None)
    few = most is None or jobs <= most
    return few and getattr(source, "suits_threads", False) and at_once()


@contextmanager
def start_workers(
    source: Source, jobs: int, unchanged: Callable[[], bool], *, threads: bool = False
) -> Iterator[Workers]:
    """Start workers that see the same state of the source, or none if that cannot be had.

    They are threads if the encoders leave Python free (``threads``), the source does so too, for so
    many, and kernels can be had.
    """
    jobs = min(jobs, _MOST_JOBS)
    opener = source.opener() if jobs > 1 else None
    if opener is None:
        expect(source.size())
        yield Workers(source, [])
        return
    share = source.size() // jobs
    free = threads and suits_threads(source, jobs)
    if free and getattr(source, "most_threads", None) is None:
        take_quick_turns()
    started: list[_Worker | _Thread] = []
    hold = getattr(source, "hold", nullcontext)
    try:
        with hold():
            with deaf_children():
                started += [
                    _Thread(opener) if free else _Worker(opener, share) for _ in range(jobs)
                ]
            ready = [worker.is_ready() for worker in started]
        yield Workers(source, started if all(ready) and unchanged() else [])
    finally:
        for worker in started:
            worker.stop()


@contextmanager
def deaf_children() -> Iterator[None]:
    """Let processes that are started meanwhile not hear Ctrl-C: this one stops them.

    They inherit that the signal is blocked. One that comes meanwhile waits for this process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()  # starting it later would unblock the signal
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Worker:
    """A process, and the threads that talk to it."""

    def __init__(self, opener: Opener, share: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(opener, share, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._tasks: SimpleQueue[tuple[Task, Future[_Outcome]]] = SimpleQueue()
        self._sent: SimpleQueue[Future[_Outcome]] = SimpleQueue()

    def is_ready(self) -> bool:
        """Wait until the worker has opened the source; False if it could not."""
        try:
            ready: bool = self._connection.recv()
        except (EOFError, OSError):
            return False
        for talk in (self._send, self._receive):
            threading.Thread(target=talk, daemon=True).start()
        return ready

    def submit(self, task: Task) -> Future[_Outcome]:
        future: Future[_Outcome] = Future()
        self._tasks.put((task, future))
        return future

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()
        self._connection.close()

    def _send(self) -> None:
        known: Schema | None = None
        while True:
            (schema, *rest), future = self._tasks.get()
            self._sent.put(future)
            try:
                # A schema holds all of its tables, maybe thousands: each task would bring them all.
                self._connection.send((None if schema is known else schema, *rest))
                known = schema
            except (OSError, ValueError):
                return  # the receiving thread notices as well, and says so

    def _receive(self) -> None:
        while True:
            future = self._sent.get()
            try:
                outcome = self._connection.recv()
            except (EOFError, OSError, ValueError):
                future.set_exception(
                    WorkerDied(
                        "a worker process was ended from outside, most likely for lack of memory; "
                        "try again with --jobs 1"
                    )
                )
            else:
                if isinstance(outcome, BaseException):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)


class Beside:
    """Work that a thread does in order, beside this one and only so many calls behind."""

    def __init__(self, most: int) -> None:
        take_quick_turns()
        self._most = most
        self._thread = ThreadPoolExecutor(1, "beside")
        self._waiting: deque[Future[None]] = deque()

    def __call__(self, work: Callable[..., None], *arguments: Any) -> None:
        """Have something done; what went wrong with earlier work is raised here or at the end."""
        if len(self._waiting) >= self._most:
            self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(work, *arguments))

    def wait(self) -> None:
        """Go on when all is done that was asked for."""
        while self._waiting:
            self._waiting.popleft().result()

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        self._thread.shutdown(cancel_futures=failed is not None)
        for future in self._waiting if failed is None else ():
            future.result()


class _Thread:
    """A thread of this process, which reads the source through an opening of its own."""

    def __init__(self, opener: Opener) -> None:
        self._tasks: SimpleQueue[tuple[Task, Future[_Outcome]] | None] = SimpleQueue()
        self._ready: Future[bool] = Future()
        self._stopped = False
        mine = pickle.loads(pickle.dumps(opener))  # as a process has it: nothing is shared
        self._thread = threading.Thread(target=self._serve, args=(mine,), daemon=True)
        self._thread.start()

    def is_ready(self) -> bool:
        """Wait until the worker has opened the source; False if it could not."""
        return self._ready.result()

    def submit(self, task: Task) -> Future[_Outcome]:
        future: Future[_Outcome] = Future()
        self._tasks.put((task, future))
        return future

    def stop(self) -> None:
        """End after the task in hand."""
        self._stopped = True
        self._tasks.put(None)
        self._thread.join()

    def _serve(self, opener: Opener) -> None:
        with ExitStack() as stack:
            try:
                source = stack.enter_context(opener())
            except Exception:
                self._ready.set_result(False)
                return
            self._ready.set_result(True)
            while (found := self._tasks.get()) is not None and not self._stopped:
                task, future = found
                try:
                    future.set_result(_run(source, task))
                except Exception as error:
                    future.set_exception(error)


def _serve(opener: Opener, share: int, connection: Any) -> None:
    """Open the source, then do tasks until the other process is gone.

    ``share`` is about how many bytes of the source this process will read.
    """
    expect(share)
    _give_memory_back()
    with ExitStack() as stack:
        try:
            source = stack.enter_context(opener())
        except Exception:
            connection.send(False)
            return
        connection.send(True)
        schema: Any = None
        while True:
            try:
                another, *rest = connection.recv()
            except EOFError:
                return
            schema = another or schema  # that of the last task, if none comes with this one
            outcome: Any
            try:
                outcome = _run(source, (schema, *rest))
            except Exception as error:
                outcome = error
            connection.send(outcome)


def _give_memory_back() -> None:
    """Have the C library keep little of what is freed: each process would keep its own."""
    with suppress(OSError, AttributeError):  # others have other ways
        ctypes.CDLL(None).mallopt(_M_TRIM_THRESHOLD, _KEPT)


def _run(source: Source, task: Task) -> _Outcome:
    """Read a part, or take the batches that were read already, and encode them.

    Some sources check a table by its parts: the receipt of each goes to the source that the work
    started with.
    """
    schema, table, part, encoder = task
    batches = part if isinstance(part, list) else source.batches(schema, table, part)
    piece: Piece = encoder(batches)
    receipt = getattr(source, "receipt", None)
    return piece, receipt() if receipt else None
