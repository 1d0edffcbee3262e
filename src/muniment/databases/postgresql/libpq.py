"""The functions of the very libpq that the driver has loaded, called without holding up Python.

The driver's own calls for COPY keep all other threads of Python waiting while they wait for the
server.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_char_p, c_int, c_void_p
from functools import cache
from typing import Any

import psycopg
from psycopg import pq

__all__ = ["addresses", "put_copy_data"]

_PIECE = 1 << 16  # bytes; the server reads a message whole, and takes rows out of its cache


def addresses(*names: str) -> list[int]:
    """Return where functions of libpq, or of C's library, lie; OSError if one is not to be found.

    The driver's module is linked with both, so what it sees can be seen through it.
    """
    module = sys.modules[pq.PGconn.__module__]
    library = module.__file__ if pq.__impl__ != "python" else pq.misc.find_libpq_full_path()
    try:
        loaded = ctypes.CDLL(library)
        found = [ctypes.cast(loaded[name], c_void_p).value for name in names]
    except (AttributeError, TypeError) as error:
        raise OSError("libpq's functions are not to be found") from error
    return [address or 0 for address in found]


@cache
def _put() -> Any:
    """PQputCopyData, or None."""
    try:
        (address,) = addresses("PQputCopyData")
    except OSError:
        return None
    return ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)(address)


def put_copy_data(pgconn: Any, data: bytes) -> None:
    """Send data of a COPY FROM STDIN, as the driver's function of this name does."""
    put = _put()
    for at in range(0, len(data), _PIECE):
        piece = data[at : at + _PIECE]
        if put is None:
            pgconn.put_copy_data(piece)
        elif put(pgconn.pgconn_ptr, piece, len(piece)) < 0:
            said = pgconn.get_error_message()
            raise psycopg.OperationalError(f"sending copy data failed: {said}")
