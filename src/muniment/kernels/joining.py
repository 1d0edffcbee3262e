"""Arrow columns of a database's own values to batches in machine code.

Numbers, dates and timestamps are spelt here as ``sql.batch`` has them; text is copied. What is
unusual (years that ISO 8601 does not have, text that may be a large object) is left to the caller.
The loops stand in one file with what they call: Numba keeps its code while the file is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from muniment.sql.batch import Batch

__all__ = ["joined"]

_TEXT, _NUMBER, _TRUTH, _DATE, _TIMESTAMP = range(5)
_BATCH_BYTES = np.uint64(1 << 16)
_LONGEST_VALUE = np.uint64(40)  # bytes of what is not text, and of a separator
_CELL, _NULL, _ROW = 0xFF, 0xFE, 0xFD
_DAY = 86_400_000_000  # microseconds
_FIRST, _LAST = -719_162, 2_932_896  # the days 0001-01-01 and 9999-12-31
_MOST_DIGITS = 18  # of decimals that fit into 64 bits
_ZERO, _ONE, _TEN = np.uint64(0), np.uint64(1), np.uint64(10)

_kernel = njit(cache=True, nogil=True)
_part = njit(nogil=True)


def joined(columns: Sequence[pa.Array], most: int) -> Iterator[Batch] | None:
    """Return batches of some columns' rows, or None if one holds anything unusual.

    Text of more than ``most`` bytes is unusual, and so are types other than text, whole numbers and
    decimals of 64 bits, truth values, dates, and timestamps of microseconds.
    """
    forms = [_form(column.type) for column in columns]
    if None in forms:
        return None
    rows, width = len(columns[0]), len(columns)
    values = np.empty((width, rows + 1), np.int64)
    valid = np.ones((width, rows), np.bool_)
    texts = [np.empty(0, np.uint8)]
    size = 0
    for k, column in enumerate(columns):
        if column.null_count:
            valid[k] = column.is_valid().to_numpy(zero_copy_only=False)
        if forms[k] == _TEXT:
            ends, text = _text(column)
            values[k] = ends + size
            texts.append(text)
            size += len(text)
        else:
            values[k, :rows] = _integers(column)
    kinds = np.array(forms, np.uint8)
    if not _is_usual(kinds, values, valid, most):
        return None
    scales = np.array([getattr(column.type, "scale", 0) for column in columns], np.uint64)
    return _batches(kinds, scales, values, valid, np.concatenate(texts))


def _form(type_: pa.DataType) -> int | None:
    if pa.types.is_large_string(type_):
        return _TEXT
    if pa.types.is_integer(type_) and type_ != pa.uint64():
        return _NUMBER
    if pa.types.is_decimal128(type_) and type_.precision <= _MOST_DIGITS and type_.scale >= 0:
        return _NUMBER
    return {pa.bool_(): _TRUTH, pa.date32(): _DATE, pa.timestamp("us"): _TIMESTAMP}.get(type_)


def _text(column: pa.Array) -> tuple[Any, Any]:
    """Where the texts of a column begin and end, and the bytes of all of them."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data else np.empty(0, np.uint8)
    return ends - ends[0], text


def _integers(column: pa.Array) -> Any:
    """The numbers behind a column; what stands for NULL among them does not matter."""
    if pa.types.is_boolean(column.type):
        return column.fill_null(False).to_numpy(zero_copy_only=False)
    here = slice(column.offset, column.offset + len(column))
    if pa.types.is_decimal(column.type):  # of 128 bits, of which the lower half says it all
        return np.frombuffer(column.buffers()[1], np.int64)[::2][here]
    size = column.type.bit_width // 8
    sign = "u" if pa.types.is_unsigned_integer(column.type) else "i"
    return np.frombuffer(column.buffers()[1], f"{sign}{size}")[here]


def _batches(forms: Any, scales: Any, values: Any, valid: Any, texts: Any) -> Iterator[Batch]:
    rows = values.shape[1] - 1
    row, out = 0, np.empty(2 * int(_BATCH_BYTES), np.uint8)
    while row < rows:
        count, size = join_rows(forms, scales, values, valid, texts, np.uint64(row), out)
        if not count:
            out = np.empty(2 * len(out), np.uint8)
            continue
        yield Batch(out[:size].tobytes(), int(count))
        row += int(count)


@_kernel
def _is_usual(forms: Any, values: Any, valid: Any, most: Any) -> Any:
    width, rows = valid.shape
    for k in range(width):
        form = forms[k]
        if form in (_NUMBER, _TRUTH):
            continue
        for row in range(rows):
            if not valid[k, row]:
                continue
            value = values[k, row]
            if form == _TEXT:
                if values[k, row + 1] - value > most:
                    return False
            elif form == _DATE:
                if value < _FIRST or value > _LAST:
                    return False
            elif value < _FIRST * _DAY or value >= (_LAST + 1) * _DAY:
                return False
    return True


@_kernel
def join_rows(
    forms: Any, scales: Any, values: Any, valid: Any, texts: Any, row: Any, out: Any
) -> Any:
    """Write rows until there are enough; return their number, 0 if they need more room, and size.

    As many as have no more than that many bytes, their ends not counted, or one that has more.
    """
    width, rows, room = np.uint64(len(forms)), np.uint64(valid.shape[1]), np.uint64(len(out))
    last, to, count = width - _ONE, _ZERO, _ZERO
    while row < rows:
        start_of_row = to
        needed = width * _LONGEST_VALUE
        for k in range(width):
            if forms[k] == _TEXT:
                needed += np.uint64(values[k, row + _ONE] - values[k, row])
        if to + needed > room:
            return _ZERO, _ZERO
        for k in range(width):
            value, form = values[k, row], forms[k]
            if not valid[k, row]:
                out[to] = _NULL
                to += _ONE
            elif form == _TEXT:
                start = np.uint64(value)
                size = np.uint64(values[k, row + _ONE]) - start
                for at in range(size):
                    out[to + at] = texts[start + at]
                to += size
            elif form == _NUMBER:
                to = _number(value, scales[k], out, to)
            elif form == _TRUTH:
                to = _truth(value, out, to)
            elif form == _DATE:
                to = _date(value, out, to)
            else:
                to = _timestamp(value, out, to)
            out[to] = _ROW if k == last else _CELL
            to += _ONE
        if count and to - count - _ONE > _BATCH_BYTES:
            return count, start_of_row
        row += _ONE
        count += _ONE
    return count, to


@_part
def _number(value: Any, scale: Any, out: Any, to: Any) -> Any:
    """Write a whole number, or one with so many digits after the point."""
    rest = np.uint64(value)
    if value < 0:
        out[to] = 45
        to += _ONE
        rest = _ZERO - rest  # also right for the smallest, which has no opposite
    size, left = _ONE, rest // _TEN
    while left:
        size += _ONE
        left //= _TEN
    if scale:
        size = max(size, scale + _ONE) + _ONE  # a digit before the point, and the point
    for k in range(size):
        at = to + size - _ONE - k
        if scale and k == scale:
            out[at] = 46
        else:
            out[at] = np.uint8(rest % _TEN + np.uint64(48))
            rest //= _TEN
    return to + size


_TRUTHS = np.frombuffer(b"falsetrue", np.uint8)


@_part
def _truth(value: Any, out: Any, to: Any) -> Any:
    start, stop = (np.uint64(5), np.uint64(9)) if value else (_ZERO, np.uint64(5))
    for k in range(start, stop):
        out[to + k - start] = _TRUTHS[k]
    return to + stop - start


@_part
def _digits(value: Any, size: Any, out: Any, to: Any) -> Any:
    """Write a small number with so many digits."""
    rest = np.uint64(value)
    for k in range(size):
        out[to + size - _ONE - k] = np.uint8(rest % _TEN + np.uint64(48))
        rest //= _TEN
    return to + size


_TWO, _FOUR, _SIX = np.uint64(2), np.uint64(4), np.uint64(6)


@_part
def _date(days: Any, out: Any, to: Any) -> Any:
    """Write a date: years are counted from March, so that the odd day is the last of a year."""
    days = np.uint64(days + 719_468)  # since 0000-03-01
    era = days // np.uint64(146_097)  # of 400 years
    rest = days - era * np.uint64(146_097)
    leaps = rest // np.uint64(1460) - rest // np.uint64(36_524) + rest // np.uint64(146_096)
    year = (rest - leaps) // np.uint64(365)
    rest -= np.uint64(365) * year + year // _FOUR - year // np.uint64(100)
    month = (np.uint64(5) * rest + _TWO) // np.uint64(153)
    day = rest - (np.uint64(153) * month + _TWO) // np.uint64(5) + _ONE
    month = month + np.uint64(3) if month < _TEN else month - np.uint64(9)
    year += era * np.uint64(400) + (_ONE if month <= _TWO else _ZERO)
    to = _digits(year, _FOUR, out, to)
    out[to] = 45
    to = _digits(month, _TWO, out, to + _ONE)
    out[to] = 45
    return _digits(day, _TWO, out, to + _ONE)


@_part
def _timestamp(micros: Any, out: Any, to: Any) -> Any:
    """Write a date and a time of day, whose fraction has no zeros at its end."""
    days = micros // _DAY
    rest = micros - days * _DAY
    to = _date(days, out, to)
    seconds, fraction = rest // 1_000_000, rest % 1_000_000
    out[to] = 84
    to = _digits(seconds // 3600, _TWO, out, to + _ONE)
    out[to] = 58
    to = _digits(seconds // 60 % 60, _TWO, out, to + _ONE)
    out[to] = 58
    to = _digits(seconds % 60, _TWO, out, to + _ONE)
    if fraction:
        out[to] = 46
        to = _digits(fraction, _SIX, out, to + _ONE)
        while out[to - _ONE] == 48:
            to -= _ONE
    return to
