"""The digests of what ARC and WARC files hold: proved against what they state, or made."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from muniment.arc.records import ArcRecord, is_datastream
from muniment.arc.windows import open_record
from muniment.errors import DigestMismatch

__all__ = ["digested", "proved"]

_CHUNK = 1 << 20
_STATED = re.compile(r"(md5|sha-?(?:1|256|384|512))\s*:\s*([0-9A-Za-z=]+)", re.IGNORECASE)


def proved(
    stream: BinaryIO, name: str, record: ArcRecord, count: Callable[[int], object] | None = None
) -> str:
    """Return the SHA-256 of a record's data, in hex; raise DigestMismatch if the file states other.

    ``count`` is told of the bytes that are read.
    """
    sha256, other, stated = hashlib.sha256(), None, ""
    if found := _STATED.fullmatch(record.stated.strip()):
        algorithm = found[1].lower().replace("-", "")
        other = sha256 if algorithm == "sha256" else hashlib.new(algorithm, usedforsecurity=False)
        stated = _hex(found[2], other.digest_size)
    with open_record(stream, name, record, keep_open=True) as data:
        while chunk := data.read(_CHUNK):
            sha256.update(chunk)
            if other is not None and other is not sha256:
                other.update(chunk)
            if count is not None:
                count(len(chunk))
    if other is not None and stated != other.hexdigest():
        where = f"{name}, byte {record.offset}: {record.identifier or record.kind}"
        kind = other.name.upper().replace("SHA", "SHA-")
        raise DigestMismatch(where, kind, stated or record.stated, other.hexdigest())
    return sha256.hexdigest()


def _hex(text: str, size: int) -> str:
    """Return a digest in hex, however it is spelt; "" for what cannot be one of this size."""
    text = text.rstrip("=")
    try:
        if len(text) == 2 * size:
            return bytes.fromhex(text).hex()
        found = base64.b32decode(text.upper() + "=" * (-len(text) % 8))
    except ValueError:
        return ""
    return found.hex() if len(found) == size else ""


def digested(stream: BinaryIO, name: str, records: Iterable[ArcRecord]) -> Iterator[ArcRecord]:
    """Yield the records, datastreams of which the file states no SHA-256 with the one they have."""
    for record in records:
        if is_datastream(record) and not record.sha256:
            position = stream.tell()
            # What is stated is for those who verify: an index is made of damaged files, too.
            record = record._replace(sha256=proved(stream, name, record._replace(stated="")))
            stream.seek(position)
        yield record
