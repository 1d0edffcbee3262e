"""The rows of a COPY TO STDOUT in bulk, by libpq's own functions and machine code.

libpq hands out rows one by one, and the driver makes an object of each, while all other threads of
Python wait. Here they are put one behind the other, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numba import njit
from psycopg import OperationalError

from muniment.databases.postgresql.libpq import addresses
from muniment.kernels.calling import function

__all__ = ["fetch"]

_CHUNK = 1 << 16  # bytes
_FUNCTIONS = ("PQgetCopyData", "PQfreemem", "PQconsumeInput", "poll", "memcpy")
_POLL = np.dtype([("socket", "i4"), ("events", "i2"), ("found", "i2")])  # struct pollfd
_POLLIN = 1

# Why the loop stopped: enough rows; none came for a while; a row needs more room; the last row;
# for an error.
MORE, WAIT, ROOM, END, FAILED = range(5)

_TURNS = 200  # about a tenth of a second, after which Python may look for Ctrl-C
_MILLISECOND = np.uint64(1)
_ZERO, _ONE = np.uint64(0), np.uint64(1)

_call_get = function(32, 64, 64, 32)
_call_one = function(32, 64)
_call_poll = function(32, 64, 64, 32)
_call_copy = function(64, 64, 64, 64)


@njit(nogil=True)
def _next_row(functions: Any, connection: Any, place: Any, waiting: Any) -> Any:
    """Return the size of the next row, -1 at the end, -2 for an error, 0 if none came for a while.

    Every other look is without waiting: what was encrypted may have left the socket already.
    """
    for turn in range(_TURNS):
        size = _call_get(functions[0], (connection, place, _ONE))
        if size != 0:
            return size
        if turn % 2 == 1:
            _call_poll(functions[3], (waiting, _ONE, _MILLISECOND))
        if _call_one(functions[2], (connection,)) == 0:
            # The server's own words may have come before the end of the connection.
            size = _call_get(functions[0], (connection, place, _ONE))
            return size if size != 0 else -2
    return 0


@njit(cache=True, nogil=True)
def take_rows(functions: Any, places: Any, row: Any, out: Any, to: Any, enough: Any) -> Any:
    """Put rows into ``out`` from ``to`` on; return the position after them, and why it stopped.

    ``places`` are the addresses of the connection, of ``row``, of what poll wants, and of ``out``.
    ``row`` is the address of a row that has not been put yet, and its size; or 0.
    """
    connection, place, waiting, target = places
    while to < enough:
        if row[0] == _ZERO:
            size = _next_row(functions, connection, place, waiting)
            if size <= 0:
                return to, WAIT if size == 0 else END if size == -1 else FAILED
            row[1] = np.uint64(size)
        if to + row[1] > np.uint64(len(out)):
            return to, ROOM
        _call_copy(functions[4], (target + to, row[0], row[1]))
        _call_one(functions[1], (row[0],))
        row[0] = _ZERO
        to += row[1]
    return to, MORE


def fetch(pgconn: Any) -> Generator[bytes, None, bytes]:
    """Yield whole rows as they come, and return the last ones."""
    row, out = np.zeros(2, np.uint64), np.empty(2 * _CHUNK, np.uint8)
    poll = np.array([(pgconn.socket, _POLLIN, 0)], _POLL)
    to = np.uint64(0)
    while True:
        lie = (pgconn.pgconn_ptr, row.ctypes.data, poll.ctypes.data, out.ctypes.data)
        places = tuple(map(np.uint64, lie))
        to, why = take_rows(_ADDRESSES, places, row, out, np.uint64(to), np.uint64(_CHUNK))
        if why == END:
            return out[:to].tobytes()
        if why == FAILED:
            raise OperationalError(f"receiving copy data failed: {pgconn.get_error_message()}")
        if why == ROOM:
            room = np.empty(to + row[1], np.uint8)
            room[:to] = out[:to]
            out = room
        elif why == MORE:
            yield out[:to].tobytes()
            out = out if len(out) == 2 * _CHUNK else np.empty(2 * _CHUNK, np.uint8)
            to = np.uint64(0)


_ADDRESSES = np.array(addresses(*_FUNCTIONS), np.uint64)
