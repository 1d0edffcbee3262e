"""A tape and its index as one thing: look up, seek, read; nothing is parsed on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from muniment.errors import TapeError
from muniment.tape.document import standalone
from muniment.tape.index import TapeEntry, TapeIndex, build_index
from muniment.tape.records import TapeHead

__all__ = ["Tape", "index_path"]


def index_path(tape: Path) -> Path:
    """Where the index of a tape lies: beside it."""
    return tape.with_name(f"{tape.name}.index")


class Tape:
    """An XMLtape that is read by identifier or by date; a missing or old index is made anew."""

    def __init__(self, path: Path, index: Path | None = None) -> None:
        self.path = path
        index = index or index_path(path)
        self._stream = path.open("rb")
        try:
            self.index = _current_index(path, index)
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Tape:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.index)

    @property
    def head(self) -> TapeHead:
        """What the tape says of itself."""
        return self.index.head

    def read(self, identifier: str) -> bytes:
        """Return the bytes of a record, exactly as they stand on the tape."""
        return self.read_entry(self.index.find(identifier))

    def document(self, identifier: str) -> bytes:
        """Return a record as a document of its own."""
        entry = self.index.find(identifier)
        return standalone(self.read_entry(entry), self.head, entry.namespaces)

    def read_entry(self, entry: TapeEntry) -> bytes:
        """Return the bytes that an entry names."""
        self._stream.seek(entry.offset)
        data = self._stream.read(entry.length)
        if len(data) != entry.length:
            problem = f"the tape ends within the record {entry.identifier}"
            raise TapeError(str(self.path), entry.offset, problem)
        return data

    def entries(self) -> Iterator[TapeEntry]:
        """Yield all entries in the order of their dates."""
        return self.index.between()

    def close(self) -> None:
        """Let go of the files."""
        self._stream.close()
        self.index.close()


def _current_index(path: Path, index: Path) -> TapeIndex:
    if index.exists():
        found = TapeIndex(index)
        if found.size == path.stat().st_size:
            return found
        found.close()
    build_index(path, index)
    return TapeIndex(index)
