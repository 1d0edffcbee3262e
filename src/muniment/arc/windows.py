"""The data of one record as a file of its own: seekable, read in place, never copied."""

from __future__ import annotations

import io
from typing import Any, BinaryIO, cast

from muniment.arc.reader import member_stream
from muniment.arc.records import ArcRecord
from muniment.errors import ArcError

__all__ = ["Window", "open_record"]

_CHUNK = 1 << 18


def open_record(
    stream: BinaryIO, name: str, record: ArcRecord, *, keep_open: bool = False
) -> BinaryIO:
    """Open a record's data for reading and seeking; closing it closes ``stream``, or not."""
    stream.seek(record.offset)
    raw: Window
    if stream.read(2) == b"\x1f\x8b":
        raw = _PackedWindow(stream, name, record, keep_open)
    else:
        raw = Window(stream, name, record.offset + record.block, record.size, keep_open)
    return cast(BinaryIO, io.BufferedReader(cast(Any, raw), _CHUNK))


class Window(io.RawIOBase):
    """A part of a file."""

    def __init__(
        self, stream: BinaryIO, name: str, start: int, size: int, keep_open: bool = False
    ) -> None:
        self._stream, self._name, self._start, self._size = stream, name, start, size
        self._position, self._keep_open = 0, keep_open

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("a place before the beginning")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), max(self._size - self._position, 0))
        if not wanted:
            return 0
        data = self._read(wanted)
        if not data:
            raise ArcError(self._name, self._start + self._position, "the file ends too early")
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _read(self, wanted: int) -> bytes:
        self._stream.seek(self._start + self._position)
        return self._stream.read(wanted)

    def close(self) -> None:
        if not self.closed and not self._keep_open:
            self._stream.close()
        super().close()


class _PackedWindow(Window):
    """The data of a compressed record; going back means inflating from its beginning again."""

    def __init__(
        self, stream: BinaryIO, name: str, record: ArcRecord, keep_open: bool = False
    ) -> None:
        super().__init__(stream, name, record.offset, record.size, keep_open)
        self._header = record.block
        self._inflated = self._restart()
        self._reached = 0

    def _restart(self) -> io.BufferedReader:
        inflated = member_stream(self._stream, self._name, self._start)
        left = self._header
        while left > 0 and (skipped := inflated.read(left)):
            left -= len(skipped)
        return inflated

    def _read(self, wanted: int) -> bytes:
        if self._position < self._reached:
            self._inflated, self._reached = self._restart(), 0
        while self._reached < self._position:
            skipped = self._inflated.read(min(self._position - self._reached, _CHUNK))
            if not skipped:
                return b""
            self._reached += len(skipped)
        data = self._inflated.read(wanted)
        self._reached += len(data)
        return data
