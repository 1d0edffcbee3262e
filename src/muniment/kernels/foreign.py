"""Loops that are compiled and call C functions of other libraries: SQLite's and OpenSSL's.

The addresses of the functions come as numbers, so that Numba can keep the code; where they come
from is the business of ``kernels.sqlite`` and ``kernels.digests``. The loops stand in one file, for
the reason that ``machine`` gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from muniment.kernels import wide
from muniment.kernels.calling import function

__all__ = ["END", "FAILED", "FUNCTIONS", "HASHES", "MORE", "ODD", "ROOM", "step_rows", "sum_rows"]

# The functions that each of the loops calls, in the order of their addresses.
HASHES = ("SHA256_Init", "SHA256_Update", "SHA256_Final")
FUNCTIONS = (
    "step", "column_type", "column_int64", "column_text", "column_blob", "column_bytes",
    "column_double",
)  # fmt: skip

# What a column holds: how the value becomes text, and of which class it has to be.
WHOLE, REAL, DECIMAL, TRUTH, TIMESTAMP, OCTETS, TEXT, LARGE_TEXT, ANY = range(9)

# Why the loop stopped: enough rows for a batch; the last row; at a row that takes a closer look; at
# a row that needs more room; for an error.
MORE, END, ODD, ROOM, FAILED = range(5)

_INTEGER, _FLOAT, _TEXT, _BLOB, _NULL = range(1, 6)  # SQLite's classes
_ROW, _DONE = 100, 101  # SQLite's codes

_ZERO, _ONE, _TWO, _TEN = (np.uint64(n) for n in (0, 1, 2, 10))
_WIDE, _HUNDRED = np.uint64(wide.SIZE), np.uint64(100)
_IN_PAGE, _LAST_OF_PAGE = np.uint64(4095), np.uint64(4096 - wide.SIZE)
_PAIRS = np.frombuffer(b"".join(b"%02d" % n for n in range(100)), np.uint8)
_POWERS = np.array([0, *(10**n for n in range(1, 20))], np.uint64)
_MOST = 10.0**15  # numbers of fewer digits are told apart by a double
_NUMBER = np.uint64(64)  # bytes that are enough for two numbers and their marks
_FULL, _ODD = np.uint64(2**64 - 2), np.uint64(2**64 - 1)
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_YES, _NO = np.frombuffer(b"true", np.uint8), np.frombuffer(b"false", np.uint8)

_part = njit(nogil=True)
_inlined = njit(nogil=True, inline="always")


@intrinsic
def _call_double(_typing: Any, _address: Any, _statement: Any, _column: Any) -> Any:
    """Call the C function at an address for a statement and a column; it returns a double."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        shape = ir.FunctionType(ir.DoubleType(), [ir.IntType(64), ir.IntType(32)])
        address = builder.inttoptr(given[0], shape.as_pointer())
        return builder.call(address, [given[1], builder.trunc(given[2], ir.IntType(32))])

    return types.float64(types.uint64, types.uint64, types.uint64), generate


_call_row = function(32, 64)
_call_int = function(32, 64, 32)
_call_long = function(64, 64, 32)
_call_three = function(32, 64, 64, 64)
_call_two = function(32, 64, 64)


@intrinsic
def _byte(_typing: Any, _address: Any, _position: Any) -> Any:
    """Return the byte at an address."""
    signature = types.uint8(types.uint64, types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        pointer = builder.inttoptr(builder.add(*given), ir.IntType(8).as_pointer())
        return builder.load(pointer)

    return signature, generate


@_part
def _put_number(value: Any, out: Any, to: Any) -> Any:
    """Write a whole number; return the position after it."""
    rest = np.uint64(value)
    if value < 0:
        out[to] = 45
        to += _ONE
        rest = _ZERO - rest
    few = wide.bits(rest | _ONE) * np.uint64(1233) >> np.uint64(12)  # by log10(2): one less, or all
    size = few + (_ONE if rest >= _POWERS[few] else _ZERO)
    _put_digits(rest, size, out, to)
    return to + size


@_part
def _put_digits(number: Any, size: Any, out: Any, to: Any) -> None:
    """Write the last digits of a number, so many, two at a time."""
    at = to + size
    while at > to + _ONE:
        pair = _TWO * (number % _HUNDRED)
        number //= _HUNDRED
        at -= _TWO
        out[at], out[at + _ONE] = _PAIRS[pair], _PAIRS[pair + _ONE]
    if at > to:
        out[to] = np.uint8(48) + np.uint8(number % _TEN)


@_part
def _put_double(value: Any, out: Any, to: Any) -> Any:
    """Write a number of at most three decimals as SQLite prints it; _ODD if it is another one."""
    scale = 1.0
    for decimals in range(4):
        whole = np.floor(abs(value) * scale + 0.5)
        if whole >= _MOST or whole == 0.0:
            return _ODD
        if whole / scale == abs(value):
            if value < 0:
                out[to] = 45
                to += _ONE
            number, part = np.uint64(whole), np.uint64(scale)
            to = _put_number(np.int64(number // part), out, to)
            out[to] = 46
            size = np.uint64(max(decimals, 1))
            _put_digits(number % part, size, out, to + _ONE)
            return to + _ONE + size
        scale *= 10.0
    return _ODD


@_inlined
def _put_word(word: Any, out: Any, to: Any) -> Any:
    for k in range(np.uint64(len(word))):
        out[to + k] = word[k]
    return to + np.uint64(len(word))


@_part
def _character_size(address: Any, at: Any, size: Any) -> Any:
    """Return the bytes of a character beyond ASCII, 0 if it is not UTF-8, or a surrogate."""
    first = _byte(address, at)
    if 0xC2 <= first <= 0xDF:
        count = _TWO
    elif 0xE0 <= first <= 0xEF:
        count = np.uint64(3)
    elif 0xF0 <= first <= 0xF4:
        count = np.uint64(4)
    else:
        return _ZERO
    if at + count > size:
        return _ZERO
    for k in range(_ONE, count):
        if _byte(address, at + k) & 0xC0 != 0x80:
            return _ZERO
    second = _byte(address, at + _ONE)
    if (first == 0xE0 and second < 0xA0) or (first == 0xF0 and second < 0x90):
        return _ZERO
    if first == 0xED and second > 0x9F:
        return _ZERO
    return _ZERO if first == 0xF4 and second > 0x8F else count


@_part
def _put_text(address: Any, size: Any, longest: Any, out: Any, to: Any) -> Any:
    """Copy a text; return the position after it, or ODD if it is too long or not Unicode."""
    at = characters = _ZERO
    target = wide.place(out) + to
    while at < size:
        place = address + at
        if place & _IN_PAGE <= _LAST_OF_PAGE:  # what stands behind the text may be read
            wide.copy(place, target + at)
            step = min(size - at, _WIDE)
            beyond = wide.find_beyond_ascii(place) & ((_ONE << step) - _ONE)
            step = wide.first(beyond) if beyond else step
            at += step
            characters += step
            if not beyond:
                continue
        byte = _byte(address, at)
        count = _ONE if byte < 0x80 else _character_size(address, at, size)
        if count == _ZERO:
            return _ODD
        for k in range(count):
            out[to + at + k] = _byte(address, at + k)
        at += count
        characters += _ONE
    return to + size if characters <= longest else _ODD


@_part
def _put_timestamp(address: Any, size: Any, out: Any, to: Any) -> Any:
    """Copy a timestamp as SQLite's functions print it, with a T for the space."""
    if size < np.uint64(19) or _byte(address, _TEN) != 32:
        return _ODD
    for k in range(size):
        byte = _byte(address, k)
        if byte >= 0x80:
            return _ODD
        out[to + k] = np.uint8(84) if byte == 32 else byte
    return to + size


@_part
def _put_real(address: Any, size: Any, plain: Any, out: Any, to: Any) -> Any:
    """Copy a finite number as SQLite prints it; ``plain`` ones have no exponent."""
    for k in range(size):
        byte = _byte(address, k)
        if byte == 73 or (plain and byte == 101):  # Inf; e
            return _ODD
        out[to + k] = byte
    return to + size


@_part
def _put_octets(address: Any, size: Any, out: Any, to: Any) -> Any:
    for k in range(size):
        byte, at = _byte(address, k), to + _TWO * k
        out[at], out[at + _ONE] = _HEX[byte >> 4], _HEX[byte & 15]
    return to + _TWO * size


@_part
def _put_reference(key: Any, column: Any, out: Any, to: Any) -> Any:
    """Write what finds a large value again: the key of its row, and the number of its column."""
    out[to] = 0xF9
    to = _put_number(key, out, to + _ONE)
    out[to] = 58
    return _put_number(column, out, to + _ONE)


@_part
def _put_whole(value: Any, kind: Any, out: Any, to: Any) -> Any:
    if kind in (WHOLE, DECIMAL, ANY):
        return _put_number(value, out, to)
    if kind == TRUTH and 0 <= value <= 1:
        return _put_word(_YES, out, to) if value else _put_word(_NO, out, to)
    return _ODD


@_part
def _put_string(
    address: Any, size: Any, class_: Any, kind: Any, longest: Any, out: Any, to: Any
) -> Any:
    """Write what SQLite hands over as text: a real number, or a text."""
    if class_ == _FLOAT:
        if kind in (REAL, DECIMAL, ANY):
            return _put_real(address, size, kind == DECIMAL, out, to)
        return _ODD
    if kind == TIMESTAMP:
        return _put_timestamp(address, size, out, to)
    if kind in (WHOLE, REAL, TRUTH):
        return _ODD
    return _put_text(address, size, longest, out, to)


@_part
def _put_cell(
    functions: Any, statement: Any, k: Any, kind: Any, longest: Any, limit: Any, out: Any, to: Any
) -> Any:
    """Write a cell; return the position after it, or that the row is odd or there is no room."""
    class_ = _call_int(functions[1], (statement, np.uint64(k + 1)))
    if to + _NUMBER > np.uint64(len(out)):
        return _FULL
    if class_ == _NULL:
        out[to] = 0xFE
        return to + _ONE
    if class_ == _INTEGER:
        return _put_whole(_call_long(functions[2], (statement, np.uint64(k + 1))), kind, out, to)
    if class_ == _FLOAT and kind in (REAL, DECIMAL, ANY):
        after = _put_double(_call_double(functions[6], statement, np.uint64(k + 1)), out, to)
        if after != _ODD:
            return after
    octets = class_ == _BLOB
    if octets != (kind == OCTETS):
        return _ODD
    reading = functions[4] if octets else functions[3]
    address = np.uint64(_call_long(reading, (statement, np.uint64(k + 1))))
    size = np.uint64(_call_int(functions[5], (statement, np.uint64(k + 1))))
    if size > limit and (octets or (kind == LARGE_TEXT and class_ == _TEXT)):
        return _put_reference(_call_long(functions[2], (statement, np.uint64(0))), k, out, to)
    if to + size + size + _NUMBER > np.uint64(len(out)):
        return _FULL
    if octets:
        return _put_octets(address, size, out, to)
    return _put_string(address, size, class_, kind, longest, out, to)


@njit(cache=True, nogil=True)
def step_rows(
    functions: Any,
    statement: Any,
    waiting: Any,
    kinds: Any,
    longest: Any,
    limit: Any,
    out: Any,
    target: Any,
) -> Any:
    """Write rows as a batch has them; return their number, the bytes, and why the loop stopped.

    Column 0 of the statement is the key of the row. ``waiting``: the statement is at a row that has
    not been written yet.
    """
    width, rows, to = len(kinds), 0, _ZERO
    while to < target:
        if not waiting:
            code = _call_row(functions[0], (statement,))
            if code != _ROW:
                return rows, to, END if code == _DONE else FAILED
        waiting, start = False, to
        for k in range(width):
            to = _put_cell(functions, statement, k, kinds[k], longest[k], limit, out, to)
            if to >= _FULL:
                return rows, start, ROOM if to == _FULL else ODD
            out[to] = 0xFF if k + 1 < width else 0xFD
            to += _ONE
        rows += 1
    return rows, to, MORE


@_part
def _row_end(data: Any, address: Any, at: Any, end: Any) -> Any:
    """Return where a row of a batch ends."""
    while at + _WIDE <= end:
        found = wide.find_row_ends(address + at)
        if found:
            return at + wide.first(found)
        at += _WIDE
    while at < end and data[at] != 0xFD:
        at += _ONE
    return at


@njit(cache=True, nogil=True)
def sum_rows(
    functions: Any, data: Any, address: Any, context: Any, digest: Any, total: Any
) -> None:
    """Add the SHA-256 of each row of a batch to a number of four words.

    ``address``, ``context`` and the first of ``digest`` are addresses: of the data, of what SHA-256
    remembers, of what it gives; the other of ``digest`` is an array at that place.
    """
    at, end = _ZERO, np.uint64(len(data))
    place, octets = digest
    while at < end:
        stop = _row_end(data, address, at, end)
        _call_row(functions[0], (context,))
        _call_three(functions[1], (context, address + at, stop - at))
        _call_two(functions[2], (place, context))
        _add(octets, total)
        at = stop + _ONE


@_part
def _add(octets: Any, total: Any) -> None:
    """Add a number of 32 bytes, modulo 2**256; the highest comes first in both."""
    carry = _ZERO
    for word in range(3, -1, -1):
        value = _ZERO
        for k in range(8):
            value = value << np.uint64(8) | np.uint64(octets[8 * word + k])
        first = total[word] + value
        second = first + carry
        carry = _ONE if first < value or second < carry else _ZERO
        total[word] = second
