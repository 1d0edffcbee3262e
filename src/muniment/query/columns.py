"""Runs of row XML as Arrow columns: all tags are found at once, and no cell becomes an object.

The rows must be spelt as Muniment spells them. That is proved, not assumed: every "<" of a run is
looked at, each tag must be the one that may stand there, and it must begin where the one before it
ends. A run for which the proof fails is read by ``siard.parse``, which takes any spelling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muniment.siard.cells import UNEXPECTED, unescape_cells
from muniment.siard.rows import in_utc
from muniment.sql.batch import CELL
from muniment.sql.model import Leaf, Shape
from muniment.sql.types import Kind

__all__ = ["ColumnReader"]

_MOST = 999  # columns: a closing tag and its number fit into eight bytes
_LONGEST = 1 << 30  # bytes of a run
_USUAL = b"\t\n" + bytes(range(32, 128))
_BEGIN, _END = b"<row>", b"</row>\n"
_EDGE = bytes(8)  # before and after a run, so that eight bytes can be read everywhere
_BYTES = pa.large_binary()
Numbers = Any  # arrays of numbers; numpy's own types say no more


class ColumnReader:
    """Reads the rows of one table, if all of its columns are plain."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._width = len(shapes)
        leaves = [shape.type.kind for shape in shapes if isinstance(shape, Leaf)]
        self.able = len(leaves) == len(shapes) > 0 and Kind.BINARY not in leaves
        self.able = self.able and self._width <= _MOST
        self._utc = np.array([False, *map(in_utc, shapes)])
        # What opens and closes each column; the number 0 stands for the row itself.
        columns = range(1, self._width + 1)
        self._opening = _Tags([b"", *(b"<c%d>" % number for number in columns)], backwards=True)
        self._closing = _Tags([_END, *(b"</c%d>" % number for number in columns)])

    def __call__(self, xml: bytes) -> list[pa.Array] | None:
        """Return the columns of a run, missing cells as NULL; None if the proof fails."""
        if not self.able or not len(_BEGIN) < len(xml) < _LONGEST or not _is_plain_text(xml):
            return None
        found = self._found(xml)
        if found is None:
            return None
        start, end, number, row, rows = found
        if b"&" in xml or b"\\" in xml:
            try:
                xml = _unescaped(xml, start, end)
            except ValueError:
                return None
        return self._taken(xml, start, end, number, row, rows)

    def _found(self, xml: bytes) -> tuple[Numbers, ...] | None:
        """Return where each cell starts and ends, its column and its row, if all tags are ours."""
        octets = np.frombuffer(_EDGE + xml + _EDGE, np.uint8)
        words = np.lib.stride_tricks.as_strided(
            octets[: len(octets) // 8 * 8].view(np.uint64), (len(octets) - 7,), (1,)
        )
        slashes = octets[9:-7] == 47
        slashes &= octets[8:-8] == 60
        tags = np.flatnonzero(slashes)  # those that close
        if not len(tags) or xml.count(b"<") != 2 * len(tags):
            return None
        word = words[tags + 8]
        number = self._numbers(word)
        if not self._closing.proved(word, number):
            return None
        # Each tag begins where the one before it ended; only in a cell there is text between.
        first = np.empty(len(tags), bool)
        first[0], first[1:] = True, number[:-1] == 0
        begin = np.empty(len(tags), np.int64)
        begin[0], begin[1:] = 0, (tags + self._closing.length[number])[:-1]
        rows = np.flatnonzero(number == 0)
        opened = words[begin[first] + 8] & np.uint64((1 << 40) - 1)
        if number[-1] or tags[-1] + len(_END) != len(xml):
            return None
        if (opened != int.from_bytes(_BEGIN, "little")).any():
            return None
        start = begin + self._opening.length[number] + 5 * first
        if (start[rows] != tags[rows]).any() or (start > tags).any():
            return None
        if not self._opening.proved(words[start], number):
            return None
        cells = np.flatnonzero(number)
        start, end, number = start[cells], tags[cells], number[cells]
        if self._utc.any():
            dated = np.flatnonzero(self._utc[number] & (start < end))
            end[dated] -= octets[end[dated] + 7] == 90
        row = np.repeat(np.arange(len(rows)), np.diff(rows, prepend=-1) - 1)
        return start, end, number, row, len(rows)

    def _numbers(self, word: Numbers) -> Numbers:
        """The number in each closing tag; a wrong one is noticed by who compares the tags."""
        number = ((word >> np.uint64(24)) & np.uint64(255)).astype(np.int64) - 48
        for step in range(1, len(str(self._width))):
            digit = ((word >> np.uint64(24 + 8 * step)) & np.uint64(255)).astype(np.int64) - 48
            number = np.where((digit >= 0) & (digit <= 9), number * 10 + digit, number)
        of_cell = ((word >> np.uint64(16)) & np.uint64(255)) == ord("c")
        number[~of_cell | (number < 0) | (number > self._width)] = 0
        return number

    def _taken(
        self, data: bytes, start: Numbers, end: Numbers, number: Numbers, row: Numbers, rows: int
    ) -> list[pa.Array] | None:
        """Gather the cells of each column; every second element of the array is a cell."""
        width = self._width
        place = row * width + number - 1
        if (place[1:] <= place[:-1]).any():
            return None
        offsets = np.empty(2 * len(start) + 2, np.int64)
        offsets[0], offsets[-1] = 0, len(data)
        offsets[1:-1:2], offsets[2:-1:2] = start, end
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        cells = pa.Array.from_buffers(_BYTES, 2 * len(start) + 1, buffers)
        if len(start) == rows * width:
            every = np.arange(rows) * (2 * width) + 1
            return [_take(cells, pa.array(every + 2 * k)) for k in range(width)]
        where = np.full(rows * width, -1, np.int64)
        where[place] = np.arange(len(start)) * 2 + 1
        columns = np.ascontiguousarray(where.reshape(rows, width).T)
        return [_take(cells, pa.array(column, mask=column < 0)) for column in columns]


class _Tags:
    """The tags that may stand somewhere, by number, as words of eight bytes."""

    def __init__(self, tags: list[bytes], backwards: bool = False) -> None:
        self.length = np.array([len(tag) for tag in tags], np.int64)
        place = [8 * (8 - len(tag)) if backwards else 0 for tag in tags]
        self._word = np.array(
            [int.from_bytes(tag, "little") << at for tag, at in zip(tags, place, strict=True)],
            np.uint64,
        )
        self._mask = np.array(
            [((1 << 8 * len(tag)) - 1) << at for tag, at in zip(tags, place, strict=True)],
            np.uint64,
        )

    def proved(self, word: Numbers, number: Numbers) -> bool:
        """Whether each word begins, or read backwards ends, with the tag of its number."""
        return not ((word ^ self._word[number]) & self._mask[number]).any()


def _take(cells: pa.Array, places: pa.Array) -> pa.Array:
    return pc.take(cells, places, boundscheck=False)  # each place was made from a cell


def _is_plain_text(xml: bytes) -> bool:
    """Whether a run is UTF-8 without anything that an XML reader would change or refuse."""
    unusual = xml.translate(None, _USUAL)
    if not unusual:
        return True
    if b"\r" in unusual or unusual.translate(None, UNEXPECTED) != unusual:
        return False
    bounds = pa.py_buffer(np.array([0, len(xml)], np.int64))
    try:
        pa.Array.from_buffers(_BYTES, 1, [None, bounds, pa.py_buffer(xml)]).cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _unescaped(xml: bytes, start: Numbers, end: Numbers) -> bytes:
    """Put the cells with escapes behind the run as they read without, and point to them there."""
    octets = np.frombuffer(xml, np.uint8)
    marks = np.flatnonzero((octets == 38) | (octets == 92))
    cells = np.unique(np.searchsorted(start, marks, "right") - 1)
    pieces = [xml[a:b] for a, b in zip(start[cells].tolist(), end[cells].tolist(), strict=True)]
    plain = unescape_cells(CELL.join(pieces) + CELL)
    texts = plain.split(CELL)[:-1]
    if len(texts) != len(pieces):
        raise ValueError("a cell holds what separates cells")
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    after = len(xml) + np.cumsum(lengths + 1)
    start[cells], end[cells] = after - lengths - 1, after - 1
    return xml + plain
