"""Ctrl-C, SIGTERM and a closed terminal: all unwind the stack, so that unfinished files go.

Python drops exceptions in some places: in finalizers, in what libraries call back, where code in C
asks whether an attribute exists. Imports alone pass hundreds of them. A signal that came there
would be lost, and the work would go on; so it is sent again if its exception has disappeared.
Other code turns it into an error of its own, as DuckDB does ("Query interrupted"); so whatever goes
wrong after a signal counts as the signal.

A signal waits while something appears under its name, so that it is known what is left. Where the
result of a command is complete, it comes too late: the report follows, and the command is done, up
to the last thing that Python does.
Whoever presses Ctrl-C again while unfinished files go has to do so three times.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from _thread import start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from weakref import ref

from muniment.finished import has_appeared, is_appearing

__all__ = [
    "Terminated", "done_with", "expect_nothing", "is_done", "stoppable", "stopped_by", "within",
]  # fmt: skip

_MOMENT = 0.05  # seconds
_TIMES = 4  # that a signal is sent again: somebody may have dropped it on purpose
_PATIENCE = 2  # signals that come too late, or while the work is being stopped

_results: list[Path | str] = []  # what the command is done with, once it is there
_outer: list[object] = []  # commands that others are part of

_received: list[int] = []  # the signals that have come


def stopped_by() -> BaseException | None:
    """Return what the signal that came means, or None if none has come."""
    if not _received:
        return None
    number = _received[0]
    return _Interrupted() if number == signal.SIGINT else Terminated(number)


def done_with(result: Path | str) -> None:
    """Say what this command makes: once that has appeared, nothing but the report is left.

    That is not so for one of the steps of the demonstration, say.
    """
    if not _outer:
        _results.append(result)


def expect_nothing() -> None:
    """Start with a command that has not yet said what it makes."""
    _results.clear()


def is_done() -> bool:
    """Whether what the command makes has appeared."""
    return any(map(has_appeared, _results))


@contextmanager
def within(command: object) -> Iterator[None]:
    """Run a command as part of another one, which has more to do."""
    _outer.append(command)
    try:
        yield
    finally:
        _outer.pop()


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived; like KeyboardInterrupt, only the outermost caller catches it."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        self.number = number
        super().__init__(number)


class _Interrupted(KeyboardInterrupt):
    pass


@contextmanager
def stoppable() -> Iterator[None]:
    """Have these signals end the work by an exception, wherever they catch this process."""
    stopping = _Stopping()
    signal.signal(signal.SIGTERM, stopping.stop)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup has it ignored
        signal.signal(signal.SIGHUP, stopping.stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it may be ignored
        signal.signal(signal.SIGINT, stopping.stop)
    sys.unraisablehook = _show_other_faults
    # Before Python takes everything down it gives signals back to the system, which would kill it.
    atexit.register(_drop_if_done)
    _received.clear()
    expect_nothing()
    try:
        yield
    finally:
        stopping.over = True


def _drop_if_done() -> None:
    if is_done():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


class _Stopping:
    def __init__(self) -> None:
        self.over = False
        self._process, self._left = os.getpid(), _TIMES
        self._patience, self._waiting = _PATIENCE, False
        self._raised: ref[BaseException] | None = None

    def stop(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a forked worker: no half-written file is its own
            os._exit(128 + number)
        if is_appearing():
            if not self._waiting:
                self._waiting = True
                start_new_thread(self._stop_later, (number,))
            return
        if self._patience and self._is_ending():
            self._patience -= 1
            return
        _received.append(number)
        raise self._watched(number)  # which no name here may hold, or it would never disappear

    def _is_ending(self) -> bool:
        on_its_way = self._raised is not None and self._raised() is not None
        return self.over or on_its_way or is_done()

    def _stop_later(self, number: int) -> None:
        while is_appearing():
            time.sleep(_MOMENT)
        self._waiting = False
        if not self.over:
            os.kill(self._process, number)

    def _watched(self, number: int) -> BaseException:
        raised: BaseException = _Interrupted() if number == signal.SIGINT else Terminated(number)
        # Not by the module threading: its lock may be held where the signal came.
        self._raised = ref(raised)
        start_new_thread(self._watch, (number, self._raised))
        return raised

    def _watch(self, number: int, raised: ref[BaseException]) -> None:
        while raised():
            time.sleep(_MOMENT)
        time.sleep(_MOMENT)  # from the outermost caller to the end it is not far
        if not self.over and self._left:
            self._left -= 1
            os.kill(self._process, number)


def _show_other_faults(lost: sys.UnraisableHookArgs) -> None:
    if not isinstance(lost.exc_value, _Interrupted | Terminated):
        sys.__unraisablehook__(lost)
