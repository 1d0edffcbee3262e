"""The loops that are compiled, all in one file: Numba keeps its code while the file is the same.

Loops over arrays of bytes, no objects. Positions are unsigned numbers, as Numba would look for
negative ones (which count from the end) at each step; so are the constants. What most bytes go
through takes sixteen of them at a time (``wide``) as long as there are so many, then single ones;
so every array that is written to has room for sixteen more than it needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from muniment.kernels import wide

__all__ = [
    "BAD", "LARGEST", "copy_to_batch", "count_rows", "find_cells", "gather_cells",
    "gather_columns", "longest_row", "read_rows", "split_columns", "write_rows",
]  # fmt: skip

LARGEST = 4 << 20  # bytes at once; the room for what they become is several times that

_kernel = njit(cache=True, nogil=True)
_part = njit(nogil=True)
_inlined = njit(nogil=True, inline="always")

VERBATIM, TEXT, DATE, TIME, TIMESTAMP, DECIMAL, BINARY = range(7)  # what a column holds
PLAIN, UTC, OCTETS = range(3)  # and how its text is to be read

ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
BAD = np.uint64(2**64 - 1)  # the position that says: not for a kernel
_THREE, _FOUR = np.uint64(3), np.uint64(4)
_WIDE, _LONG = np.uint64(wide.SIZE), np.uint64(8)


@_inlined
def _copy(source: Any, start: Any, stop: Any, out: Any, to: Any) -> Any:
    """Copy bytes; return the position after them."""
    size = stop - start
    for k in range(size):
        out[to + k] = source[start + k]
    return to + size


@_part
def _copy_wide(source: Any, start: Any, stop: Any, target: Any, to: Any) -> Any:
    """Copy bytes behind which there are enough others; return the position after them."""
    place, at = target + to, start
    while at < stop:
        wide.copy(source + at, place)
        place += _WIDE
        at += _WIDE
    return to + stop - start


@_inlined
def _first(count: Any) -> Any:
    """Return the mask of the first bytes, fewer than 64."""
    return (ONE << count) - ONE


@_inlined
def _is_digit(byte: Any) -> Any:
    """Whether a byte is one of 0-9."""
    return 48 <= byte <= 57


@_part
def _hex_digit(byte: Any) -> Any:
    """Return the value of a hexadecimal digit, -1 if it is none."""
    if 48 <= byte <= 57:
        return np.int64(byte) - 48
    if 65 <= byte <= 70:
        return np.int64(byte) - 55
    if 97 <= byte <= 102:
        return np.int64(byte) - 87
    return np.int64(-1)


@_part
def _character_end(data: Any, at: Any, end: Any) -> Any:
    """Return where a character of two to four bytes ends, BAD if XML does not have it.

    That is what is not UTF-8, halves of surrogate pairs among it, and U+FFFE and U+FFFF.
    """
    first = data[at]
    if 0xC2 <= first <= 0xDF:
        size = TWO
    elif 0xE0 <= first <= 0xEF:
        size = _THREE
    elif 0xF0 <= first <= 0xF4:
        size = _FOUR
    else:
        return BAD
    if at + size > end:
        return BAD
    for k in range(ONE, size):
        if data[at + k] & 0xC0 != 0x80:
            return BAD
    second = data[at + ONE]
    if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
        return BAD
    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
        return BAD
    if first == 0xEF and second == 0xBF and data[at + TWO] >= 0xBE:
        return BAD
    return at + size


@_kernel
def copy_to_batch(data: Any, out: Any, plain: Any, escaped: Any) -> Any:
    """Put rows of COPY text as a batch has them; return their size, BAD at an unknown escape.

    ``plain`` says what bytes become, ``escaped`` what they mean after a backslash.
    """
    end, source, target = np.uint64(len(data)), wide.place(data), wide.place(out)
    at = to = ZERO
    while at < end:
        if at + _WIDE <= end:
            found = wide.copy_cells(source + at, target + to)
            size = wide.first(found) if found else _WIDE
            at += size
            to += size
            if not found:
                continue
        byte = data[at]
        at += ONE
        if byte == 92:
            if at == end or escaped[data[at]] == 0:
                return BAD
            out[to] = escaped[data[at]]
            at += ONE
        else:
            out[to] = plain[byte]
        to += ONE
    return to


@_part
def _cell_end(data: Any, source: Any, at: Any, end: Any) -> Any:
    """Return where a cell ends: at the next mark, or at the end."""
    while at + _WIDE <= end:
        found = wide.find_ends(source + at)
        if found:
            return at + wide.first(found)
        at += _WIDE
    while at < end and data[at] < 0xFD:
        at += ONE
    return at


@_kernel
def write_rows(
    data: Any,
    out: Any,
    rows: Any,
    checked: Any,
    checks: Any,
    whole: Any,
    fraction: Any,
    nullable: Any,
    tags: Any,
    bounds: Any,
) -> Any:
    """Write rows as XML; return the size, BAD if they hold anything unusual.

    ``tags`` has those of the row and, between them, of the columns; ``bounds`` is where they begin.
    """
    width, end = np.uint64(len(checks)), np.uint64(len(data))
    source, target, names = wide.place(data), wide.place(out), wide.place(tags)
    at = to = ZERO
    for _ in range(rows):
        to = _copy_wide(names, ZERO, bounds[ONE], target, to)
        for k in range(width):
            stop = _cell_end(data, source, at, end)
            if stop == end:
                return BAD
            if data[stop] == 0xFE:  # NULL: the one byte of its cell
                if stop != at or not nullable[k] or stop + ONE == end:
                    return BAD
                stop += ONE
            else:
                if checked and not _fits(data, at, stop, checks[k], whole[k], fraction[k]):
                    return BAD
                tag = k + k + ONE
                to = _copy_wide(names, bounds[tag], bounds[tag + ONE], target, to)
                if checks[k] == TEXT:
                    to = _escape(data, at, stop, out, to)
                else:
                    to = _verbatim(data, at, stop, out, to)
                if to == BAD:
                    return BAD
                to = _copy_wide(names, bounds[tag + ONE], bounds[tag + TWO], target, to)
            if data[stop] != (0xFD if k + ONE == width else 0xFF):
                return BAD
            at = stop + ONE
        tag = width + width + ONE
        to = _copy_wide(names, bounds[tag], bounds[tag + ONE], target, to)
    return to if at == end else BAD


_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_ENTITIES = np.frombuffer(b"&amp;&lt;&gt;&quot;&apos;", np.uint8)
_AMP, _LT, _GT, _QUOT, _APOS = (np.uint64(end) for end in (5, 9, 13, 19, 25))


@_part
def _verbatim(data: Any, at: Any, stop: Any, out: Any, to: Any) -> Any:
    """Copy a number, date or truth value; BAD if it is more than ASCII."""
    source, target, end = wide.place(data), wide.place(out), np.uint64(len(data))
    while at < stop and at + _WIDE <= end:
        wide.copy(source + at, target + to)
        size = min(stop - at, _WIDE)
        if wide.find_beyond_ascii(source + at) & _first(size):
            return BAD
        at += size
        to += size
    high = np.uint8(0)
    for k in range(stop - at):
        high |= data[at + k]
        out[to + k] = data[at + k]
    return BAD if high & 0x80 else to + stop - at


@_part
def _escape(data: Any, at: Any, stop: Any, out: Any, to: Any) -> Any:
    """Copy text, escaped as ``siard.cells`` does it; BAD if that has to look at it."""
    source, target, end, start = wide.place(data), wide.place(out), np.uint64(len(data)), at
    while at < stop:
        if at + _WIDE <= end:
            size = min(stop - at, _WIDE)
            gaps = wide.find_spaces(source + at)
            after = ONE if at == start or data[at - ONE] == 32 else ZERO
            doubled = gaps & (gaps << ONE | after)
            final = gaps & ONE << size - ONE if at + size == stop else ZERO
            odd = (wide.find_odd(source + at) | doubled | final) & _first(size)
            wide.copy(source + at, target + to)
            size = wide.first(odd) if odd else size
            at += size
            to += size
            if not odd:
                continue
        at, to = _escape_one(data, at, start, stop, out, to)
        if to == BAD:
            return BAD
    return to


@_part
def _escape_one(data: Any, at: Any, start: Any, stop: Any, out: Any, to: Any) -> Any:
    """Copy one character; return the positions after it."""
    byte = data[at]
    if byte == 32:
        if at == start or at + ONE == stop or data[at - ONE] == 32:
            return at + ONE, _escaped(byte, out, to)
    elif byte < 32 or byte == 127 or byte == 92:
        if byte == 0:
            return at, BAD  # a product that counts no further may break the limit of its column
        return at + ONE, _escaped(byte, out, to)
    elif byte == 38:
        return at + ONE, _copy(_ENTITIES, ZERO, _AMP, out, to)
    elif byte == 60:
        return at + ONE, _copy(_ENTITIES, _AMP, _LT, out, to)
    elif byte == 62:
        return at + ONE, _copy(_ENTITIES, _LT, _GT, out, to)
    elif byte == 34:
        return at + ONE, _copy(_ENTITIES, _GT, _QUOT, out, to)
    elif byte == 39:
        return at + ONE, _copy(_ENTITIES, _QUOT, _APOS, out, to)
    elif byte >= 128:
        after = _character_end(data, at, stop)
        if after == BAD:
            return at, BAD
        if byte == 0xC2 and data[at + ONE] < 0xA0:
            return after, _escaped(data[at + ONE], out, to)
        return after, _copy(data, at, after, out, to)
    out[to] = byte
    return at + ONE, to + ONE


@_part
def _escaped(code: Any, out: Any, to: Any) -> Any:
    out[to] = 92
    out[to + ONE] = 117
    out[to + TWO] = 48
    out[to + np.uint64(3)] = 48
    out[to + np.uint64(4)] = _HEX[np.uint64(code >> 4)]
    out[to + np.uint64(5)] = _HEX[np.uint64(code & 15)]
    return to + np.uint64(6)


@_part
def _fits(data: Any, at: Any, stop: Any, check: Any, whole: Any, fraction: Any) -> Any:
    """Whether a value is spelt in the usual way of its type."""
    size = stop - at
    if check == DATE:
        return size == _DAY and _is_date(data, at)
    if check == TIMESTAMP:
        if size < _DAY + ONE or data[at + _DAY] != 84:
            return False
        return _is_date(data, at) and _is_time(data, at + _DAY + ONE, stop)
    if check == TIME:
        return _is_time(data, at, stop)
    if check == DECIMAL:
        return _is_decimal(data, at, stop, whole, fraction)
    if check == BINARY:
        if size & ONE:
            return False
        for k in range(size):
            if _hex_digit(data[at + k]) < 0:
                return False
    return True


_DAY, _CLOCK = np.uint64(len("2000-01-01")), np.uint64(len("00:00:00"))


@_inlined
def _two(data: Any, at: Any) -> Any:
    """The number of two digits; 100 and more if they are none."""
    if not (_is_digit(data[at]) and _is_digit(data[at + ONE])):
        return 100
    return 10 * (np.int64(data[at]) - 48) + np.int64(data[at + ONE]) - 48


@_part
def _is_date(data: Any, at: Any) -> Any:
    century, of_century = _two(data, at), _two(data, at + TWO)
    month, day = _two(data, at + np.uint64(5)), _two(data, at + np.uint64(8))
    if century > 99 or of_century > 99 or century + of_century == 0:
        return False
    if data[at + np.uint64(4)] != 45 or data[at + np.uint64(7)] != 45:
        return False
    if month < 1 or month > 12 or day < 1:
        return False
    if month == 2:
        leap = of_century % 4 == 0 and (of_century != 0 or century % 4 == 0)
        return day <= (29 if leap else 28)
    return day <= (30 if month == 4 or month == 6 or month == 9 or month == 11 else 31)


@_part
def _is_time(data: Any, at: Any, stop: Any) -> Any:
    size = stop - at
    if size < _CLOCK or data[at + TWO] != 58 or data[at + np.uint64(5)] != 58:
        return False
    hour, minute = _two(data, at), _two(data, at + np.uint64(3))
    if hour > 23 or minute > 59 or _two(data, at + np.uint64(6)) > 59:
        return False
    if size == _CLOCK:
        return True
    if data[at + _CLOCK] != 46 or size == _CLOCK + ONE:
        return False
    for k in range(_CLOCK + ONE, size):
        if not _is_digit(data[at + k]):
            return False
    return True


@_part
def _is_decimal(data: Any, at: Any, stop: Any, whole: Any, fraction: Any) -> Any:
    if at < stop and data[at] == 45:
        at += ONE
    start = at
    while at < stop and data[at] == 48:
        at += ONE
    counted = at  # zeros in front do not count
    while at < stop and _is_digit(data[at]):
        at += ONE
    if at == start or at - counted > whole:
        return False
    if at == stop:
        return True
    at += ONE
    if data[at - ONE] != 46 or at == stop or stop - at > fraction:
        return False
    for k in range(stop - at):
        if not _is_digit(data[at + k]):
            return False
    return True


_CELL, _NULL, _ROW_MARK = 0xFF, 0xFE, 0xFD


@_inlined
def _follows(xml: Any, at: Any, end: Any, text: Any, start: Any, stop: Any) -> Any:
    """Whether the text stands there."""
    size = stop - start
    if at + size > end:
        return False
    for k in range(size):
        if xml[at + k] != text[start + k]:
            return False
    return True


@_part
def _is_tag(xml: Any, source: Any, at: Any, end: Any, tag: Any, tags: Any, bounds: Any) -> Any:
    """Whether a tag stands there: most have no more than eight bytes."""
    start, stop = bounds[tag], bounds[tag + ONE]
    if stop - start > _LONG or at + _LONG > end:
        return _follows(xml, at, end, tags, start, stop)
    unlike = wide.word(source + at) ^ wide.word(wide.place(tags) + start)
    return unlike << (np.uint64(64) - _LONG * (stop - start)) == ZERO


@_kernel
def count_rows(xml: Any) -> Any:
    """Count the rows of some XML: tags that begin with an r, of which plain rows have no other."""
    end, at, rows, source = np.uint64(len(xml)), ZERO, ZERO, wide.place(xml)
    while at + _WIDE < end:
        rows += wide.count_row_tags(source + at)
        at += _WIDE
    while at + ONE < end:
        if xml[at] == 60 and xml[at + ONE] == 114:
            rows += ONE
        at += ONE
    return rows


@_kernel
def read_rows(xml: Any, out: Any, forms: Any, tags: Any, bounds: Any) -> Any:
    """Read rows of XML; return their number and the size, BAD if they hold anything unusual.

    ``tags`` has those of the row and, between them, of the columns; ``bounds`` is where they begin.
    """
    width, end, source = np.uint64(len(forms)), np.uint64(len(xml)), wide.place(xml)
    at = to = rows = ZERO
    last = width + width + ONE
    while True:
        while at < end and (xml[at] == 10 or xml[at] == 32 or xml[at] == 9):
            at += ONE
        if at == end:
            return rows, to
        if not _is_tag(xml, source, at, end, ZERO, tags, bounds):
            return rows, BAD
        at += bounds[ONE]
        for k in range(width):
            tag = k + k + ONE
            if _is_tag(xml, source, at, end, tag, tags, bounds):
                at += bounds[tag + ONE] - bounds[tag]
                if forms[k] == PLAIN:
                    at, to = _take_text(xml, at, end, out, to)
                else:
                    at, to = _compact(xml, at, end, forms[k], out, to)
                if to == BAD or not _is_tag(xml, source, at, end, tag + ONE, tags, bounds):
                    return rows, BAD
                at += bounds[tag + TWO] - bounds[tag + ONE]
            else:
                out[to] = _NULL
                to += ONE
            out[to] = _ROW_MARK if k + ONE == width else _CELL
            to += ONE
        if not _is_tag(xml, source, at, end, last, tags, bounds):
            return rows, BAD
        at += bounds[last + ONE] - bounds[last]
        rows += ONE


@_part
def _take_text(xml: Any, at: Any, end: Any, out: Any, to: Any) -> Any:
    """Copy text up to the next tag, free of references and escapes."""
    source, target = wide.place(xml), wide.place(out)
    while at < end:
        if at + _WIDE <= end:
            wide.copy(source + at, target + to)
            found = wide.find_markup(source + at)
            size = wide.first(found) if found else _WIDE
            at += size
            to += size
            if not found:
                continue
        byte = xml[at]
        if byte >= 0x80:
            after = _character_end(xml, at, end)
            if after == BAD:
                return at, BAD
            while at < after:
                out[to] = xml[at]
                to += ONE
                at += ONE
            continue
        if byte == 60:
            return at, to
        if byte == 38:
            at, byte = _entity(xml, at, end)
        elif byte == 92 and at + ONE < end and xml[at + ONE] == 117:
            at, to = _unescape(xml, at, end, out, to)
            if to == BAD:
                return at, BAD
            continue
        elif byte < 32 and byte != 9 and byte != 10:
            return at, BAD
        if byte == 0:
            return at, BAD
        out[to] = byte
        to += ONE
        at += ONE
    return at, BAD


@_part
def _entity(xml: Any, at: Any, end: Any) -> Any:
    """Return the last byte of a reference and its character; 0 if XML does not name it."""
    if _follows(xml, at, end, _AMP_REF, ZERO, np.uint64(5)):
        return at + np.uint64(4), np.uint8(38)
    if _follows(xml, at, end, _LT_REF, ZERO, np.uint64(4)):
        return at + np.uint64(3), np.uint8(60)
    if _follows(xml, at, end, _GT_REF, ZERO, np.uint64(4)):
        return at + np.uint64(3), np.uint8(62)
    if _follows(xml, at, end, _QUOT_REF, ZERO, np.uint64(6)):
        return at + np.uint64(5), np.uint8(34)
    if _follows(xml, at, end, _APOS_REF, ZERO, np.uint64(6)):
        return at + np.uint64(5), np.uint8(39)
    return at, np.uint8(0)


_AMP_REF, _LT_REF, _GT_REF, _QUOT_REF, _APOS_REF = (
    np.frombuffer(entity, np.uint8) for entity in (b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&apos;")
)


@_part
def _unescape(xml: Any, at: Any, end: Any, out: Any, to: Any) -> Any:
    """Undo an escape by four hexadecimal digits; other text after a backslash stays."""
    code = np.int64(0)
    if at + np.uint64(6) > end:
        return at, BAD
    for k in range(TWO, np.uint64(6)):
        digit = _hex_digit(xml[at + k])
        if digit < 0:
            out[to] = 92
            return at + ONE, to + ONE
        code = 16 * code + digit
    at += np.uint64(6)
    if code < 0x80:
        out[to] = np.uint8(code)
        return at, to + ONE
    if code < 0x800:
        out[to] = np.uint8(0xC0 | code >> 6)
        out[to + ONE] = np.uint8(0x80 | code & 63)
        return at, to + TWO
    if 0xD800 <= code <= 0xDFFF:
        return at, BAD  # half of a pair: the other half has to be looked for
    out[to] = np.uint8(0xE0 | code >> 12)
    out[to + ONE] = np.uint8(0x80 | code >> 6 & 63)
    out[to + TWO] = np.uint8(0x80 | code & 63)
    return at, to + np.uint64(3)


@_part
def _compact(xml: Any, at: Any, end: Any, form: Any, out: Any, to: Any) -> Any:
    """Copy a time without its final Z, or octets in capital letters."""
    start, source, target = to, wide.place(xml), wide.place(out)
    while at < end and xml[at] != 60:
        if form == UTC and at + _WIDE <= end:
            wide.copy(source + at, target + to)
            found = wide.find_time_end(source + at)
            size = wide.first(found) if found else _WIDE
            at += size
            to += size
            if not found or xml[at] == 60:
                continue
        byte = xml[at]
        if form == OCTETS:
            if _hex_digit(byte) < 0:
                return at, BAD
            if byte >= 97:
                byte -= np.uint8(32)
        elif byte == 90:
            at += ONE
            if at == end or xml[at] != 60:
                return at, BAD
            return at, to
        elif byte < 33 or byte >= 0x7F or byte == 38 or byte == 92:
            return at, BAD
        out[to] = byte
        to += ONE
        at += ONE
    if form == OCTETS and (to - start) & ONE:
        return at, BAD
    return at, to


@_kernel
def longest_row(data: Any) -> Any:
    """Return the size of the longest row of a batch, its end not counted."""
    end, source = np.uint64(len(data)), wide.place(data)
    at = start = longest = ZERO
    while at + _WIDE <= end:
        found = wide.find_row_ends(source + at)
        while found:
            stop = at + wide.first(found)
            longest = max(longest, stop - start)
            start = stop + ONE
            found &= found - ONE
        at += _WIDE
    while at < end:
        if data[at] == _ROW_MARK:
            longest = max(longest, at - start)
            start = at + ONE
        at += ONE
    return longest


@_kernel
def split_columns(data: Any, rows: Any, width: Any, sizes: Any, lengths: Any) -> Any:
    """Measure the cells of a batch, column by column; NULL has the length -1.

    ``lengths`` gets those of all cells, row after row, ``sizes`` the sum of each column. False if
    the batch does not have so many rows and columns.
    """
    end, source = np.uint64(len(data)), wide.place(data)
    at = cell = ZERO
    for _ in range(rows):
        for k in range(width):
            start = at
            at = _cell_end(data, source, at, end)
            if at == end:
                return False
            if data[at] == 0xFE:
                lengths[cell] = -1
                at += ONE
            else:
                lengths[cell] = np.int64(at - start)
                sizes[k] += at - start
            if at == end or data[at] != (_ROW_MARK if k + ONE == width else _CELL):
                return False
            at += ONE
            cell += ONE
    return at == end


@_part
def _gather(data: Any, at: Any, stop: Any, out: Any, to: Any) -> Any:
    """Copy bytes wherever they stand; return the position after them."""
    if at + _WIDE * ((stop - at + _WIDE - ONE) // _WIDE) <= np.uint64(len(data)):
        return _copy_wide(wide.place(data), at, stop, wide.place(out), to)
    return _copy(data, at, stop, out, to)


@_kernel
def gather_columns(
    data: Any, rows: Any, width: Any, lengths: Any, starts: Any, out: Any, offsets: Any, valid: Any
) -> None:
    """Copy the cells of each column behind one another, as Arrow lays them out.

    The room of each column is followed by as many bytes as may be copied too many.
    """
    at = cell = ZERO
    for row in range(rows):
        for k in range(width):
            length = lengths[cell]
            if length < 0:
                at += TWO
            else:
                size = np.uint64(length)
                starts[k] = _gather(data, at, at + size, out, starts[k])
                valid[k, row >> np.uint64(3)] |= np.uint8(1) << np.uint8(row & np.uint64(7))
                at += size + ONE
            offsets[k, row + ONE] = starts[k]
            cell += ONE


@_part
def _tag_begin(xml: Any, at: Any, end: Any) -> Any:
    """Return where the next tag begins, or the end."""
    source = wide.place(xml)
    while at + _WIDE <= end:
        found = wide.find_tags(source + at)
        if found:
            return at + wide.first(found)
        at += _WIDE
    while at < end and xml[at] != 60:
        at += ONE
    return at


@_kernel
def find_cells(xml: Any, places: Any, starts: Any, ends: Any) -> Any:
    """Find some columns' cells in rows that are known to be plain; return the number of rows.

    ``places`` has for each number of a column its place among the wanted ones, or 255.
    """
    end, at, row = np.uint64(len(xml)), ZERO, ZERO
    while True:
        at = _tag_begin(xml, at, end)
        if at == end:
            return row
        at += ONE
        if xml[at] == 47:  # </row>, or the end of a cell
            row += ONE if xml[at + ONE] == 114 else ZERO
            continue
        if xml[at] != 99:
            continue
        number = ZERO
        at += ONE
        while xml[at] != 62:
            number = number * np.uint64(10) + np.uint64(xml[at] - 48)
            at += ONE
        at += ONE
        place = np.uint64(places[number])
        if place != np.uint64(255):
            starts[place, row] = at
            at = _tag_begin(xml, at, end)
            ends[place, row] = at


@_kernel
def gather_cells(xml: Any, starts: Any, ends: Any, out: Any, offsets: Any, valid: Any) -> None:
    """Copy the cells of one column behind one another, as Arrow lays them out."""
    to = ZERO
    for row in range(np.uint64(len(starts))):
        if starts[row]:  # no cell begins a file
            to = _gather(xml, starts[row], ends[row], out, to)
            valid[row >> np.uint64(3)] |= np.uint8(1) << np.uint8(row & np.uint64(7))
        offsets[row + ONE] = to
