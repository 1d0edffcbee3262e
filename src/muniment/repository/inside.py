"""Files of an object where they lie in the store, for readers who want paths."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from muniment.arc import open_record
from muniment.arc.records import ArcRecord
from muniment.files import Inside

__all__ = ["StoredFile"]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A datastream by the place where it lies; other processes may be given it."""

    outer: Path
    record: ArcRecord
    name: str

    @property
    def size(self) -> int:
        """The bytes that it has."""
        return self.record.size

    @property
    def packed(self) -> bool:
        """Whether it has to be inflated."""
        return self.outer.name.endswith(".gz")

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes."""
        with open_record(self.outer.open("rb"), self.outer.name, self.record) as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk

    def path(self) -> Path:
        """Return a path to it; one that is compressed is inflated, and ends with the process."""
        if not self.packed:
            start = self.record.offset + self.record.block
            return Inside.of(self.outer, start, self.record.size, self.name)
        with tempfile.NamedTemporaryFile(prefix="muniment-", delete=False) as spool:
            path = Path(spool.name)
            atexit.register(path.unlink, missing_ok=True)
            for chunk in self.chunks():
                spool.write(chunk)
        return path
