"""Large values of sources that cannot open them again: they wait in a temporary file."""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any, BinaryIO, cast

from muniment.sql.batch import REF

__all__ = ["Spool"]


class Spool:
    """A file of large values; ``place`` says where each one is."""

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit  # bytes up to which a value stays in its row
        self._opened: BinaryIO | None = None

    @property
    def _file(self) -> BinaryIO:
        if self._opened is None:
            self._opened = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 see close
        return self._opened

    def close(self) -> None:
        """Forget the values."""
        if self._opened is not None:
            self._opened.close()

    def place(self, value: bytes) -> bytes | None:
        """Keep a value if it is large; return the cell that refers to it, or None."""
        return None if len(value) <= self._limit else REF + self.keep(value)

    def keep(self, value: bytes | memoryview) -> bytes:
        """Keep a value; return the reference to it."""
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(value)
        return f"{start}:{len(value)}".encode()

    def open(self, reference: bytes) -> BinaryIO:
        """Open a value that was placed."""
        start, _, size = reference.decode().partition(":")
        reader: Any = io.BufferedReader(_Slice(self._file, int(start), int(size)), 1 << 20)
        return cast(BinaryIO, reader)


class _Slice(io.RawIOBase):
    """Part of a file as a stream with a position of its own."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file, self._at, self._end = file, start, start + size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._at)
        data = self._file.read(min(len(buffer), self._end - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
