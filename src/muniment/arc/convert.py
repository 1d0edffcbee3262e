"""From ARC to WARC, and between plain and compressed files: the data stays what it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO
from uuid import NAMESPACE_URL, uuid5

from muniment.arc.formats import ArcFormat
from muniment.arc.reader import read_arc_file
from muniment.arc.records import ArcRecord
from muniment.arc.windows import open_record
from muniment.errors import DigestMismatch

__all__ = ["convert_arc"]


def convert_arc(
    source: BinaryIO, name: str, target: BinaryIO, filename: str, form: ArcFormat, date: str,
    software: str,
) -> int:  # fmt: skip
    """Write the records of one file into another; return how many were converted.

    HTTP answers stay ``response`` records with their headers. The facts about the file itself are
    written anew.
    """
    facts = {"software": software, "description": f"converted from {name}"}
    target.write(form.first(f"urn:uuid:{uuid5(NAMESPACE_URL, filename)}", filename, date, facts))
    count = 0
    for record in read_arc_file(source, name):
        if record.kind in ("filedesc", "warcinfo"):
            continue
        _convert(source, name, record, target, form)
        count += 1
    return count


def _convert(
    source: BinaryIO, name: str, record: ArcRecord, target: BinaryIO, form: ArcFormat
) -> None:
    """Copy one record, whose data is read twice: the digest stands before it."""
    position = source.tell()
    window = open_record(source, name, record, keep_open=True)
    hasher, start = hashlib.sha256(), b""
    for chunk in _chunks(window):
        start = start or chunk[:5]
        hasher.update(chunk)
    digest = hasher.hexdigest()
    if record.sha256 and record.sha256 != digest:
        where = f"{name}, byte {record.offset}: {record.identifier}"
        raise DigestMismatch(where, "SHA-256", record.sha256, digest)
    kind, media_type = _kind(record, start)
    identity = uuid5(NAMESPACE_URL, f"{name}#{record.offset}")
    header = form.header(
        identity, record.identifier, record.date, media_type, record.size, digest, kind
    )
    window.seek(0)
    for piece in form.pieces(chain([header], _chunks(window), [form.end])):
        target.write(piece)
    source.seek(position)


def _kind(record: ArcRecord, start: bytes) -> tuple[str, str]:
    """Return the type of a record and of its data: an ARC file has no place to say the first."""
    if record.kind != "response" or record.media_type.startswith("application/http"):
        return record.kind, record.media_type
    if start == b"HTTP/":
        return "response", "application/http; msgtype=response"
    return "resource", record.media_type


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(1 << 20):
        yield chunk
