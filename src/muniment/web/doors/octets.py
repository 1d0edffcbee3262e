"""Octets over HTTP: conditions, ranges, digests; streamed, whatever their length (RFC 9110)."""

from __future__ import annotations

import hashlib
import io
import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from muniment.arc import open_record
from muniment.repository import Store
from muniment.repository.catalogue import Stream
from muniment.web.doors.answers import Refusal

__all__ = [
    "ZERO_COPY",
    "Octets",
    "deliver",
    "http_date",
    "of_bytes",
    "of_file",
    "of_stream",
    "ranges_of",
]

ZERO_COPY = "http.response.zerocopysend"  # an extension of ASGI
GZIP = b"\x1f\x8b"
_CHUNK = 1 << 18
_MOST = 32  # ranges in one request
_NAME = r"[A-Za-z0-9!#$&^_.+-]+"
_MEDIA = re.compile(rf'{_NAME}/{_NAME}(?: *; *{_NAME}=(?:{_NAME}|"[ !#-\[\]-~]*"))*')
_ONE = re.compile(r"([0-9]*)-([0-9]*)")


@dataclass
class Octets:
    """A document that is open: its octets, and what is known about them."""

    source: BinaryIO
    size: int
    media_type: str
    sha256: str = ""
    date: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    place: tuple[BinaryIO, int] | None = None  # the file, and where in it the octets lie as such

    @property
    def tag(self) -> str:
        """The entity tag: the digest, where there is one."""
        return f'"{self.sha256}"' if self.sha256 else ""


def of_stream(store: Store, stream: Stream) -> Octets:
    """Open a datastream where it lies; a small one is read at once."""
    record = stream.record
    facts = record.media_type, record.sha256, record.date
    if record.size <= _CHUNK and (data := store.octets(stream)) is not None:
        return Octets(io.BytesIO(data), record.size, *facts)
    opened = store.open_file(stream.file)
    try:
        source = open_record(opened, record.identifier, record)
    except BaseException:
        opened.close()
        raise
    packed = os.pread(opened.fileno(), 2, record.offset) == GZIP
    place = None if packed else (opened, record.offset + record.block)
    return Octets(source, record.size, *facts, place=place)


def of_bytes(data: bytes, media_type: str, sha256: str = "", date: str = "") -> Octets:
    """A document in memory."""
    return Octets(io.BytesIO(data), len(data), media_type, sha256, date)


def of_file(path: Path, media_type: str, sha256: str = "", date: str = "") -> Octets:
    """A document in a file of its own."""
    source = path.open("rb")
    size = os.fstat(source.fileno()).st_size
    return Octets(source, size, media_type, sha256, date, place=(source, 0))


def deliver(octets: Octets, method: str, asked: Mapping[str, str]) -> Response:
    """Return the answer to GET or HEAD; ``asked`` are the headers of the request."""
    headers = _headers(octets)
    try:
        status = _condition(octets, asked)
        if status:
            octets.source.close()
            if status == 412:
                raise Refusal(412, "the document is not the one that If-Match names")
            kept = ("ETag", "Cache-Control", "Content-Location", "Vary", "Last-Modified", "Link")
            return Response(None, status, {k: v for k, v in headers.items() if k in kept})
        ranges = _asked_ranges(octets, asked) if method == "GET" else None
    except Refusal:
        octets.source.close()
        raise
    if ranges is not None and len(ranges) > 1:
        return _parts(octets, ranges, headers)
    start, end = ranges[0] if ranges else (0, octets.size)
    headers["Content-Length"] = str(end - start)
    if ranges:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{octets.size}"
    if method == "HEAD":
        octets.source.close()
        return Response(None, 200, headers)
    status, wants = 206 if ranges else 200, "want-content-digest" in asked
    if wants and not ranges and "Repr-Digest" in headers:
        headers["Content-Digest"] = headers["Repr-Digest"]
    if octets.size <= _CHUNK:
        data = _read(octets, start, end)
        if wants:
            digest = b64encode(hashlib.sha256(data).digest()).decode()
            headers["Content-Digest"] = f"sha-256=:{digest}:"
        return Response(data, status, headers)
    if octets.place is not None:
        return _FileResponse(octets, start, end, status, headers)
    return StreamingResponse(_closing(octets, [(b"", start, end)]), status, headers)


class _FileResponse(StreamingResponse):
    """Octets that lie in a file as they are sent: the kernel copies them, if the server can."""

    def __init__(
        self, octets: Octets, start: int, end: int, status: int, headers: dict[str, str]
    ) -> None:
        super().__init__(_closing(octets, [(b"", start, end)]), status, headers)
        self._octets, self._part = octets, (start, end)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if ZERO_COPY not in scope.get("extensions", {}) or self._octets.place is None:
            await super().__call__(scope, receive, send)
            return
        file, offset = self._octets.place
        start, end = self._part
        try:
            head = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **head})
            what = {"file": file.fileno(), "offset": offset + start, "count": end - start}
            await send({"type": ZERO_COPY, **what})
        finally:
            self._octets.source.close()


def _read(octets: Octets, start: int, end: int) -> bytes:
    """Read from a small document, for which a stream would cost more than it gives."""
    with octets.source as source:
        source.seek(start)
        data = source.read(end - start)
    if len(data) != end - start:
        raise Refusal(503, "the document ends before its end; it is damaged", Retry_After="3600")
    return data


def _headers(octets: Octets) -> dict[str, str]:
    media = octets.media_type.strip()
    headers = {
        "Content-Type": media if _MEDIA.fullmatch(media) else "application/octet-stream",
        "Accept-Ranges": "bytes",
        "Content-Security-Policy": "default-src 'none'; sandbox",  # documents are not our pages
        "Cache-Control": "public, max-age=60",
    }
    if octets.sha256:
        digest = b64encode(bytes.fromhex(octets.sha256)).decode()
        headers |= {"ETag": octets.tag, "Repr-Digest": f"sha-256=:{digest}:"}
        headers["Digest"] = f"sha-256={digest}"
    if date := http_date(octets.date):
        headers["Last-Modified"] = date
    return headers | octets.headers


@lru_cache(maxsize=4096)
def http_date(date: str) -> str:
    """Return a time as HTTP has it, "" for what is none."""
    moment = _moment(date)
    return format_datetime(moment, usegmt=True) if moment else ""


@lru_cache(maxsize=4096)
def _moment(date: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(date)
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC).replace(microsecond=0)


def _condition(octets: Octets, asked: Mapping[str, str]) -> int:
    """Return 304 or 412 if a condition of the request says so, else 0 (RFC 9110, 13.2.2)."""
    changed = _moment(octets.date)
    if "if-match" in asked:
        if not _matches(octets, asked["if-match"], weak=False):
            return 412
    elif changed and (limit := _date(asked.get("if-unmodified-since"))) and changed > limit:
        return 412
    if "if-none-match" in asked:
        return 304 if _matches(octets, asked["if-none-match"]) else 0
    since = _date(asked.get("if-modified-since"))
    return 304 if changed and since and changed <= since else 0


def _matches(octets: Octets, tags: str, weak: bool = True) -> bool:
    """Whether one of some tags is ours; a weak one is never the very same (RFC 9110, 8.8.3.2)."""
    given = [tag.strip() for tag in tags.split(",")]
    given = [tag.removeprefix("W/") for tag in given] if weak else given
    return "*" in given or (bool(octets.tag) and octets.tag in given)


def _date(text: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    return None if found is None else found.replace(tzinfo=found.tzinfo or UTC)


def _asked_ranges(octets: Octets, asked: Mapping[str, str]) -> list[tuple[int, int]] | None:
    if "range" not in asked:
        return None
    condition = asked.get("if-range")
    if condition is not None and condition != octets.tag:
        date, changed = _date(condition), _moment(octets.date)
        if date is None or date != changed:
            return None
    return ranges_of(asked["range"], octets.size)


def ranges_of(text: str, size: int) -> list[tuple[int, int]] | None:
    """Return half-open intervals, those that touch joined; None for what is no set of ranges.

    >>> ranges_of("bytes=0-4, 2-9, -3", 100), ranges_of("bytes=9-2", 100)
    ([(0, 10), (97, 100)], None)
    """
    unit, _, given = text.partition("=")
    parts = [_ONE.fullmatch(part.strip()) for part in given.split(",") if part.strip()]
    if unit.strip().lower() != "bytes" or not parts or len(parts) > _MOST:
        return None
    found: list[tuple[int, int]] = []
    for part in parts:
        if part is None or not part[0].strip("-") or max(map(len, part.groups())) > 18:
            return None
        if part[1] and part[2] and int(part[2]) < int(part[1]):
            return None
        start = int(part[1]) if part[1] else max(size - int(part[2]), 0)
        end = min(int(part[2]) + 1, size) if part[1] and part[2] else size
        if start < end:
            found.append((start, end))
    if not found:
        raise Refusal(416, "the range lies behind the end", Content_Range=f"bytes */{size}")
    return _joined(found)


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _parts(octets: Octets, ranges: list[tuple[int, int]], headers: dict[str, str]) -> Response:
    """Several ranges, as multipart/byteranges."""
    boundary = os.urandom(12).hex()
    kind = headers["Content-Type"]
    pieces = []
    for number, (start, end) in enumerate(ranges):
        head = "\r\n" * bool(number) + f"--{boundary}\r\nContent-Type: {kind}\r\n"
        head += f"Content-Range: bytes {start}-{end - 1}/{octets.size}\r\n\r\n"
        pieces.append((head.encode(), start, end))
    pieces.append((f"\r\n--{boundary}--\r\n".encode(), 0, 0))
    headers["Content-Type"] = f"multipart/byteranges; boundary={boundary}"
    length = sum(len(head) + end - start for head, start, end in pieces)
    headers["Content-Length"] = str(length)
    return StreamingResponse(_closing(octets, pieces), 206, headers)


async def _closing(octets: Octets, pieces: list[tuple[bytes, int, int]]) -> AsyncIterator[bytes]:
    try:
        for head, start, end in pieces:
            if head:
                yield head
            if start < end:
                await run_in_threadpool(octets.source.seek, start)
            while start < end:
                chunk = await run_in_threadpool(octets.source.read, min(_CHUNK, end - start))
                if not chunk:
                    raise OSError("the document ends before its end")
                start += len(chunk)
                yield chunk
    finally:
        octets.source.close()
