"""Several processes at one door: each has the store open, all listen on the same socket."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType

import uvicorn

from muniment.errors import MunimentError
from muniment.web.doors.board import Board

__all__ = ["Served", "run_workers"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_RARELY = (10_000, 50, 50)  # answers leave few cycles behind; looking for them takes time
_BACKLOG = 2048
_YOUNG = 2.0  # seconds; a process that ends earlier will not do better the next time


class Served(uvicorn.Server):
    """A server among others: it takes one connection at a time, and ends with its parent."""

    def __init__(self, config: uvicorn.Config, parent: int = -1) -> None:
        super().__init__(config)
        self._parent = parent
        if parent >= 0:
            config.backlog = 1  # a burst of connections is shared, not taken by the first

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, with a queue as long as it was."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)
        if self._parent >= 0:
            asyncio.get_running_loop().add_reader(self._parent, self._orphaned)

    def _orphaned(self) -> None:
        asyncio.get_running_loop().remove_reader(self._parent)
        self.should_exit = True


def run_workers(
    count: int, listener: socket.socket, configured: Callable[[Board], uvicorn.Config]
) -> None:
    """Serve with so many processes until SIGTERM or Ctrl-C; one that dies is replaced."""
    board = Board(count)
    gc.set_threshold(*_RARELY)
    if count == 1:
        Served(configured(board)).run(sockets=[listener])
        return
    gc.collect()
    gc.freeze()  # what is there now is shared by all of them
    reading, writing = os.pipe()  # ends for the children when we end, however that happens

    def start(number: int) -> int:
        process = os.fork()
        if process:
            return process
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(writing)
        board.take(number)
        os._exit(_serve(listener, reading, lambda: configured(board)))

    try:
        _Watch(count, start, listener).run()
    finally:
        gc.unfreeze()
        os.close(writing)
        os.close(reading)


def _serve(listener: socket.socket, parent: int, config: Callable[[], uvicorn.Config]) -> int:
    try:
        Served(config(), parent).run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    except BaseException as error:
        print(f"muniment: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


class _Stop(Exception):
    pass


class _Watch:
    """Starts processes, waits for them, and ends them."""

    def __init__(self, count: int, start: Callable[[int], int], listener: socket.socket) -> None:
        self._start, self._listener = start, listener
        self._count = count
        self._running: dict[int, tuple[int, float]] = {}  # process: its number, when it began
        self._signal = 0

    def run(self) -> None:
        before = {number: signal.signal(number, self._asked) for number in _SIGNALS}
        try:
            for number in range(self._count):
                self._begin(number)
            self._watch()
        except _Stop:
            pass
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._signal:
            signal.raise_signal(self._signal)  # what a process does that served alone

    def _begin(self, number: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # none comes before it is noted
        try:
            self._running[self._start(number)] = number, time.monotonic()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        if not self._signal:
            self._signal = number
            raise _Stop

    def _watch(self) -> None:
        while True:
            process, _ = os.waitpid(-1, 0)
            number, began = self._running.pop(process, (-1, 0.0))
            if number >= 0 and time.monotonic() - began < _YOUNG:
                raise MunimentError("a process of the server ended at once; the store is shut")
            if number >= 0:
                self._begin(number)

    def _end(self) -> None:
        self._listener.close()  # who comes now is told at once, instead of waiting for nobody
        for process in self._running:
            os.kill(process, signal.SIGTERM)
        for process in self._running:
            os.waitpid(process, 0)
        self._running.clear()
