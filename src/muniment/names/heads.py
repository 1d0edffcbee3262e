"""The next serial number of each series, shared by all processes that mint.

One small file per series, read and written during a turn at the journal. A head is moved on before
the journal is written: a process that is killed between the two leaves a gap, never a number
that is given twice. Heads are no record either; a head of another generation of the journal's state
is made anew from the index.
"""

from __future__ import annotations

import os
import struct
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Head", "Heads"]

_HEAD = struct.Struct("<16sIQI")
_OPEN = 64  # files


@dataclass(frozen=True, slots=True)
class Head:
    """The last day on which a series gave names, its next serial, and if mnemonics lie ahead."""

    day: int = 0
    next: int = 1
    named: bool = False


class Heads:
    """The heads of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self._files: OrderedDict[str, int] = OrderedDict()

    def read(self, series: str, generation: bytes) -> Head | None:
        """Return a head, or None if it is not of this generation."""
        data = os.pread(self._file(series), _HEAD.size, 0)
        if len(data) < _HEAD.size:
            return None
        written_in, day, next_, named = _HEAD.unpack(data)
        return Head(day, next_, bool(named)) if written_in == generation else None

    def write(self, series: str, generation: bytes, head: Head) -> None:
        """Move a head on."""
        data = _HEAD.pack(generation, head.day, head.next, head.named)
        os.pwrite(self._file(series), data, 0)

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.popitem()[1])

    def _file(self, series: str) -> int:
        found = self._files.get(series)
        if found is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            found = self._files[series] = os.open(self._folder / f"{series}.head", flags, 0o644)
            if len(self._files) > _OPEN:
                os.close(self._files.popitem(last=False)[1])
        else:
            self._files.move_to_end(series)
        return found
