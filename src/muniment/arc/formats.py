"""The ways a file of datastreams is written: WARC or ARC, plain or gzip per record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID, uuid4

from isal import isal_zlib

from muniment.arc.records import (
    ARC_END,
    WARC_END,
    arc_header,
    arc_version_block,
    warc_header,
    warcinfo_record,
)
from muniment.errors import UsageError

__all__ = ["FORMATS", "ArcFormat", "format_of"]


@dataclass(frozen=True, slots=True)
class ArcFormat:
    """How records become bytes."""

    suffix: str
    warc: bool
    gzip: bool

    def first(self, uri: str, filename: str, date: str, facts: dict[str, str]) -> bytes:
        """Return the record that a file begins with."""
        if self.warc:
            data = warcinfo_record(uuid4(), filename, date, {"isPartOf": uri, **facts})
        else:
            data = arc_version_block(filename, date, facts.get("software", "Muniment"))
        return self.packed(data)

    def header(
        self, record_id: UUID | str, uri: str, date: str, media_type: str, size: int, sha256: str,
        kind: str = "resource",
    ) -> bytes:  # fmt: skip
        """Return the header of a record; its length does not depend on the digest."""
        if self.warc:
            return warc_header(record_id, uri, date, media_type, size, sha256, kind)
        return arc_header(uri, date, media_type, size)

    @property
    def end(self) -> bytes:
        """What follows the data of a record."""
        return WARC_END if self.warc else ARC_END

    def packed(self, record: bytes) -> bytes:
        """Return a whole record as it goes into the file."""
        return b"".join(self.pieces([record])) if self.gzip else record

    def pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield a record, given piece by piece, as it goes into the file."""
        if not self.gzip:
            yield from pieces
            return
        packer = isal_zlib.compressobj(2, isal_zlib.DEFLATED, 31)
        for piece in pieces:
            yield packer.compress(piece)
        yield packer.flush()


FORMATS = {
    "warc": ArcFormat(".warc", True, False),
    "warc.gz": ArcFormat(".warc.gz", True, True),
    "arc": ArcFormat(".arc", False, False),
    "arc.gz": ArcFormat(".arc.gz", False, True),
}


def format_of(name: str) -> ArcFormat:
    """Return a format by its name, which is also the end of its files' names."""
    if name not in FORMATS:
        raise UsageError(f"{name} is none of {', '.join(FORMATS)}")
    return FORMATS[name]
