"""Large objects: shown where a browser can show them safely, handed over otherwise.

An object is never trusted: its type is judged by its bytes, what could run (HTML, SVG, XML) is sent
in a sandbox or shown as text, and everything else is a download.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from muniment.query.media import EXTENSIONS, HEAD_BYTES, recognise
from muniment.sql.model import Leaf, Schema, Table
from muniment.sql.types import Kind
from muniment.web.archive_pages import find_table, frame, need_index, open_archive
from muniment.web.cells import size_text
from muniment.web.page import Page
from muniment.web.site import OpenArchive
from muniment.web.urls import Urls, find

__all__ = ["object_page", "raw_object"]

_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/svg+xml"}
_SOUNDS = {"audio/ogg", "audio/flac", "audio/mpeg", "audio/wav", "audio/mp4"}
_FILMS = {"video/webm", "video/mp4"}
_TEXTS = {"text/plain", "text/html", "application/xml", "image/svg+xml"}
_SHOWN_BYTES = 1 << 17  # of a text
_CHUNK = 1 << 18
_SANDBOX = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def object_page(request: Request) -> Page:
    """A large object, or a long text, with what is known about it."""
    archive, schema, table, row, column = _found(request)
    with archive.open_object(schema, table, row, column + 1) as stream:
        head = stream.read(_SHOWN_BYTES + 1)
    media = _media(archive, schema, table, column, head)
    url = Urls(archive).cell(schema, table, row, column + 1, "raw")
    facts = {
        "schema": schema.name,
        "table": table.name,
        "row": row,
        "column": table.columns[column].name,
        "type": media,
        "shown_as": shown_as(media),
        "size": _size(archive, schema, table, row, column, head),
        "url": url,
    }
    text = head[:_SHOWN_BYTES].decode("utf-8", "replace") if media in _TEXTS else None
    only_page = {
        "text": text,
        "more": len(head) > _SHOWN_BYTES,
        "row_url": Urls(archive).row(schema, table, row),
        "table_url": Urls(archive).table(schema, table),
        "size_text": size_text(facts["size"]),  # type: ignore[arg-type]
    }
    return Page("object.html", facts, {**frame(archive), **only_page})


def shown_as(media: str) -> str:
    """How a page shows a type: image, audio, video, pdf, text, or not at all.

    >>> shown_as("image/svg+xml"), shown_as("text/html"), shown_as("application/zip")
    ('image', 'text', 'download')
    """
    if media in _IMAGES:
        return "image"
    if media in _SOUNDS:
        return "audio"
    if media in _FILMS:
        return "video"
    if media == "application/pdf":
        return "pdf"
    return "text" if media in _TEXTS else "download"


def raw_object(request: Request) -> Response:
    """The bytes of an object, with headers that let nothing in it run."""
    archive, schema, table, row, column = _found(request)
    stream = archive.open_object(schema, table, row, column + 1)
    head = stream.read(HEAD_BYTES)
    media = _media(archive, schema, table, column, head)
    inline = shown_as(media) in ("image", "audio", "video", "pdf") and not _asked(request)
    name = f"{table.folder}-row{row}-column{column + 1}.{EXTENSIONS.get(media, 'bin')}"
    kind = "inline" if inline else "attachment"
    headers = {
        "Content-Disposition": f'{kind}; filename="{_safe(name)}"',
        "Content-Security-Policy": "default-src 'none'" if media == "application/pdf" else _SANDBOX,
        "Cache-Control": "private, max-age=3600",
    }
    served = media if inline else "application/octet-stream"
    size = _size(archive, schema, table, row, column, b"") if len(head) == HEAD_BYTES else len(head)
    wanted = _range(request.headers.get("range"), size)
    if wanted is None:
        return StreamingResponse(_chunks(stream, head), 200, headers, media_type=served)
    first, last = wanted
    headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    body = _chunks(stream, head, first, last - first + 1)
    return StreamingResponse(body, 206, headers, media_type=served)


def _asked(request: Request) -> bool:
    return "download" in request.query_params


def _safe(name: str) -> str:
    return "".join(c if (c.isalnum() and c.isascii()) or c in "-_." else "_" for c in name)


def _found(request: Request) -> tuple[OpenArchive, Schema, Table, int, int]:
    from muniment.web.row_page import row_number

    archive = open_archive(request)
    need_index(archive)
    schema, table = find_table(request, archive)
    row = row_number(request.path_params["row"], table)
    number, _ = find(table.columns, request.path_params["column"], "column")
    return archive, schema, table, row, number


def _media(archive: OpenArchive, schema: Schema, table: Table, column: int, head: bytes) -> str:
    """The type of an object: texts by their column, binary ones by their bytes."""
    shape = archive.shapes(schema, table)[column]
    media = recognise(head[:HEAD_BYTES])
    if isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT and media not in _TEXTS:
        return "text/plain"
    return media


def _size(
    archive: OpenArchive, schema: Schema, table: Table, row: int, column: int, head: bytes
) -> int | None:
    assert archive.about is not None and archive.session is not None
    index = archive.about.tables[archive.table_number(schema, table)]
    if index.columns[column].large == "binary":
        from muniment.web.table_page import place_of

        sql = f"SELECT c{column + 1}_size FROM {place_of(archive, index)} WHERE rowid = ?"
        found = archive.session.rows(sql, [row - 1])
        return None if not found or found[0][0] is None else int(found[0][0])
    return len(head) if 0 < len(head) <= _SHOWN_BYTES else None


def _range(header: str | None, size: int | None) -> tuple[int, int] | None:
    """The bytes that a player asks for, if it asks for one run of them."""
    if not header or size is None or not header.startswith("bytes=") or "," in header:
        return None
    first, _, last = header[6:].strip().partition("-")
    if not first.isdecimal() or (last and not last.isdecimal()):
        return None
    start, end = int(first), min(int(last) if last else size - 1, size - 1)
    return (start, end) if start <= end else None


def _chunks(
    stream: BinaryIO, head: bytes, skip: int = 0, count: int | None = None
) -> Iterator[bytes]:
    left: Any = count
    with stream:
        chunk = head
        while chunk:
            if skip < len(chunk):
                piece = chunk[skip:] if left is None else chunk[skip : skip + left]
                yield piece
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        return
            skip = max(0, skip - len(chunk))
            chunk = stream.read(_CHUNK)
