"""The sum of the SHA-256 of rows, by OpenSSL's own functions and machine code.

Python makes an object for each digest, which takes longer than the digest itself. The functions are
those of the library that Python's ``hashlib`` is linked with; where that is none, they are missing.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np

from muniment.kernels.foreign import HASHES, sum_rows

__all__ = ["sum_of_rows"]

_CONTEXT = 1024  # bytes; SHA256_CTX has 112


def sum_of_rows(data: bytes) -> int:
    """Return the sum of the SHA-256 of a batch's rows, modulo 2**256."""
    octets = np.frombuffer(data, np.uint8)
    context, digest = np.zeros(_CONTEXT, np.uint8), np.zeros(32, np.uint8)
    total = np.zeros(4, np.uint64)
    place = np.uint64(digest.ctypes.data)
    sum_rows(
        _FUNCTIONS, octets, np.uint64(octets.ctypes.data), np.uint64(context.ctypes.data),
        (place, digest), total,
    )  # fmt: skip
    return int.from_bytes(total.astype(">u8").tobytes(), "big")


def _functions() -> Any:
    """Return the addresses of OpenSSL's functions."""
    library = ctypes.CDLL(import_module("_hashlib").__file__)
    try:
        found = [ctypes.cast(library[name], ctypes.c_void_p).value for name in HASHES]
    except AttributeError as error:
        raise OSError("OpenSSL's functions are not to be found") from error
    return np.array(found, np.uint64)


_FUNCTIONS = _functions()
