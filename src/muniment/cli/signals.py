"""Ctrl-C, SIGTERM and a closed terminal: all unwind the stack, so that unfinished files go.

Python drops exceptions in some places: in finalizers, in what libraries call back, where code in C
asks whether an attribute exists. Imports alone pass hundreds of them. A signal that came there
would be lost, and the work would go on; so it is sent again if its exception has disappeared.
Other code turns it into an error of its own, as DuckDB does ("Query interrupted"); so whatever goes
wrong after a signal counts as the signal.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from _thread import start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn
from weakref import ref

__all__ = ["Terminated", "stoppable", "stopped_by"]

_MOMENT = 0.05  # seconds
_TIMES = 4  # that a signal is sent again: somebody may have dropped it on purpose


_received: list[int] = []  # the signals that have come


def stopped_by() -> BaseException | None:
    """Return what the signal that came means, or None if none has come."""
    if not _received:
        return None
    number = _received[0]
    return _Interrupted() if number == signal.SIGINT else Terminated(number)


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
    _received.clear()
    try:
        yield
    finally:
        stopping.over = True


class _Stopping:
    def __init__(self) -> None:
        self.over = False
        self._process, self._left = os.getpid(), _TIMES

    def stop(self, number: int, _frame: FrameType | None) -> NoReturn:
        if os.getpid() != self._process:  # a forked worker: no half-written file is its own
            os._exit(128 + number)
        _received.append(number)
        raise self._watched(number)  # which no name here may hold, or it would never disappear

    def _watched(self, number: int) -> BaseException:
        raised: BaseException = _Interrupted() if number == signal.SIGINT else Terminated(number)
        # Not by the module threading: its lock may be held where the signal came.
        start_new_thread(self._watch, (number, ref(raised)))
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
