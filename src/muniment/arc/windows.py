"""The data of one record as a file of its own: seekable, read in place, never copied."""

from __future__ import annotations

import io
import weakref
from typing import Any, BinaryIO, cast
from weakref import WeakKeyDictionary

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
    """The data of a compressed record; going back means inflating from its member's beginning."""

    def __init__(
        self, stream: BinaryIO, name: str, record: ArcRecord, keep_open: bool = False
    ) -> None:
        super().__init__(stream, name, record.offset, record.size, keep_open)
        self._header = record.block
        known = _INFLATED.get(stream)
        if known is None or known.start != record.offset:
            known = _INFLATED[stream] = _Inflated(stream, name, record.offset)
        self._inflated = known

    def _read(self, wanted: int) -> bytes:
        return self._inflated.read(self._header + self._position, wanted)


class _Inflated:
    """The content of one gzip member; records in it are usually read one after the other."""

    def __init__(self, stream: BinaryIO, name: str, start: int) -> None:
        self._stream, self._name, self.start = weakref.ref(stream), name, start
        self._reader: io.BufferedReader | None = None
        self._at = 0

    def read(self, position: int, wanted: int) -> bytes:
        """Return bytes from a place of the content on."""
        if self._reader is None or position < self._at:
            stream = self._stream()
            assert stream is not None  # its window holds it
            self._reader, self._at = member_stream(stream, self._name, self.start), 0
        while self._at < position:
            skipped = self._reader.read(min(position - self._at, _CHUNK))
            if not skipped:
                return b""
            self._at += len(skipped)
        data = self._reader.read(wanted)
        self._at += len(data)
        return data


_INFLATED: WeakKeyDictionary[BinaryIO, _Inflated] = WeakKeyDictionary()  # the last of each file
