"""The rows of an SQLite statement as batches, by SQLite's own functions and machine code.

APSW keeps SQLite's C functions to itself, but an extension is given all of them when it is loaded:
the one that does nothing, which comes with APSW, keeps their table where it can be found. So the
statement runs on APSW's own connection, in its transaction.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import closing
from ctypes import Array, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any

import apsw
import numpy as np
from apsw import sqlite_extra

from muniment.kernels.foreign import (
    ANY,
    DECIMAL,
    END,
    FAILED,
    FUNCTIONS,
    LARGE_TEXT,
    OCTETS,
    ODD,
    REAL,
    ROOM,
    TEXT,
    TIMESTAMP,
    TRUTH,
    WHOLE,
    step_rows,
)  # fmt: skip
from muniment.sql.batch import Batch
from muniment.sql.types import Kind, PredefinedType

__all__ = ["step"]

# Where SQLite's table of functions (struct sqlite3_api_routines) has them; it only ever grows.
_PLACES = {
    "column_blob": 19, "column_bytes": 20, "column_double": 27, "column_int64": 29,
    "column_text": 36, "column_type": 38, "errcode": 52, "errmsg": 53, "finalize": 57,
    "libversion_number": 67, "step": 94, "prepare_v2": 116,
}  # fmt: skip

_KINDS = {
    Kind.INTEGER: WHOLE,
    Kind.FLOAT: REAL,
    Kind.DECIMAL: DECIMAL,
    Kind.BOOLEAN: TRUTH,
    Kind.TIMESTAMP: TIMESTAMP,
    Kind.BINARY: OCTETS,
}
_EXTENSION = "noop"
_BATCH = 64 << 10  # bytes
_ANY_LENGTH = 2**63


def step(
    db: apsw.Connection, sql: str, types: Sequence[PredefinedType | None], limit: int
) -> Generator[Batch | int, None, None]:
    """Yield the rows of a query as batches, and the key of each row that takes a closer look.

    The first column of the query is the key. ``types`` are those of the others, None where any
    class of value is taken as text. Large values of more than ``limit`` bytes come by reference.
    """
    kinds = np.array([_kind_of(type_) for type_ in types], np.uint8)
    longest = np.array([_length_of(type_) for type_ in types], np.uint64)
    handle = _API.prepare(db, sql.encode("utf-8", "surrogatepass"))
    statement, out, why = np.uint64(handle), np.empty(2 * _BATCH, np.uint8), -1
    try:
        while why != END:
            rows, size, why = step_rows(
                _API.functions, statement, why == ROOM, kinds, longest, np.uint64(limit), out,
                np.uint64(_BATCH),
            )  # fmt: skip
            if rows:
                yield Batch(out[:size].tobytes(), rows)
            if why == ODD:
                yield _API.key(handle)
            elif why == ROOM and not rows:
                out = np.empty(2 * len(out), np.uint8)
            elif why == FAILED:
                raise _API.error(db)
    finally:
        _API.finalize(handle)


class _Api:
    """SQLite's functions, by their addresses."""

    def __init__(self, table: Array[c_size_t]) -> None:
        def function(name: str, result: Any, *arguments: Any) -> Any:
            return ctypes.CFUNCTYPE(result, *arguments)(table[_PLACES[name]])

        self.functions = np.array([table[_PLACES[name]] for name in FUNCTIONS], np.uint64)
        self.version: int = function("libversion_number", c_int)()
        self.finalize = function("finalize", c_int, c_void_p)
        self._prepare = function("prepare_v2", c_int, c_void_p, c_char_p, c_int, c_void_p, c_void_p)
        self._key = function("column_int64", c_int64, c_void_p, c_int)
        self._errcode = function("errcode", c_int, c_void_p)
        self._errmsg = function("errmsg", c_char_p, c_void_p)

    def prepare(self, db: apsw.Connection, sql: bytes) -> int:
        """Return a statement that is ready to step."""
        handle = c_void_p()
        if self._prepare(db.sqlite3_pointer(), sql, -1, ctypes.addressof(handle), None):
            raise self.error(db)
        return int(handle.value or 0)

    def key(self, handle: int) -> int:
        """Return the key of the row that a statement is at."""
        return int(self._key(handle, 0))

    def error(self, db: apsw.Connection) -> Exception:
        """Return what went wrong last, as APSW would put it."""
        pointer = db.sqlite3_pointer()
        error = apsw.exception_for(self._errcode(pointer) or apsw.SQLITE_ERROR)
        return type(error)(self._errmsg(pointer).decode("utf-8", "replace"))


def _find_api() -> _Api:
    """Find SQLite's functions; OSError if they are not where they should be."""
    try:
        library = ctypes.CDLL(sqlite_extra.path(_EXTENSION))  # held: SQLite lets go of it below
        with closing(apsw.Connection(":memory:")) as db:
            sqlite_extra.load(db, _EXTENSION)
        table = c_void_p.in_dll(library, "sqlite3_api").value
    except (sqlite_extra.NotAvailable, LookupError, ValueError, apsw.Error) as error:
        raise OSError("SQLite's functions are not to be found") from error
    if not table:
        raise OSError("SQLite's functions are not to be found")
    api = _Api((c_size_t * (1 + max(_PLACES.values()))).from_address(table))
    if api.version != apsw.SQLITE_VERSION_NUMBER:
        raise OSError("SQLite's functions are those of another version")
    return api


def _kind_of(type_: PredefinedType | None) -> int:
    if type_ is None:
        return ANY
    if type_.kind is Kind.TEXT and type_.large:
        return LARGE_TEXT
    return _KINDS.get(type_.kind, TEXT)


def _length_of(type_: PredefinedType | None) -> int:
    """How many characters a text may have."""
    length = type_.length if type_ is not None and type_.kind is Kind.TEXT else None
    return _ANY_LENGTH if length is None else length


_API = _find_api()
