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
from muniment.repository.storage import Place

__all__ = ["StoredFile"]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A datastream by the place where it lies; other processes may be given it."""

    place: Place
    file: str
    record: ArcRecord
    name: str

    @property
    def size(self) -> int:
        """The bytes that it has."""
        return self.record.size

    @property
    def packed(self) -> bool:
        """Whether it has to be inflated."""
        return self.file.endswith(".gz")

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes."""
        opened = self.place.open(self.file, self.place.is_sealed(self.file))
        with open_record(opened, self.file, self.record) as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk

    @property
    def piece(self) -> tuple[Path, int, int]:
        """The file that holds it, its first byte there, its size; not for what is compressed."""
        start = self.record.offset + self.record.block
        return self.place.local(self.file), start, self.record.size

    def path(self) -> Path:
        """Return a path to it; one that is compressed is inflated, and ends with the process."""
        if not self.packed:
            return Inside.of(*self.piece, self.name)
        with tempfile.NamedTemporaryFile(prefix="muniment-", delete=False) as spool:
            path = Path(spool.name)
            atexit.register(path.unlink, missing_ok=True)
            for chunk in self.chunks():
                spool.write(chunk)
        return path
