"""What a large object is, judged by its first bytes; names and declarations may lie."""

from __future__ import annotations

import re

__all__ = ["EXTENSIONS", "HEAD_BYTES", "recognise"]

HEAD_BYTES = 1 << 10
EXTENSIONS = {
    "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp",
    "image/bmp": "bmp", "image/svg+xml": "svg", "image/tiff": "tif", "application/pdf": "pdf",
    "text/plain": "txt", "text/html": "html", "application/xml": "xml", "application/zip": "zip",
    "audio/ogg": "ogg", "audio/flac": "flac", "audio/mpeg": "mp3", "audio/wav": "wav",
    "audio/mp4": "m4a", "video/webm": "webm", "video/mp4": "mp4", "application/rtf": "rtf",
}  # fmt: skip

# What a file starts with, and its media type. The first that fits counts.
_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"BM", "image/bmp"),
    (b"%PDF-", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_RIFF = {b"WAVE": "audio/wav", b"WEBP": "image/webp", b"AVI ": "video/x-msvideo"}
_TEXT = re.compile(rb"[^\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]*+")
_BEFORE = rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*"
_HTML = re.compile(_BEFORE + rb"<(?:!doctype\s+html|html|head|body|script)\b", re.I | re.S)
_SVG = re.compile(_BEFORE + rb"(?:<!doctype\s+svg[^>]*>\s*)?<(?:\w+:)?svg\b", re.I | re.S)
_XML = re.compile(rb"\s*<(?:\?xml\s|[A-Za-z_][\w.:-]*[\s/>])")


def recognise(head: bytes) -> str:
    """Return the media type of what starts with ``head``.

    >>> recognise(b"%PDF-1.7 ..."), recognise(b"<svg xmlns='x'/>"), recognise("Ulme".encode())
    ('application/pdf', 'image/svg+xml', 'text/plain')
    >>> recognise(b"")
    'application/x-empty'
    """
    if not head:
        return "application/x-empty"
    for start, kind in _STARTS:
        if head.startswith(start) and not (start == b"BM" and _is_text(head)):
            return kind
    if head[:4] == b"RIFF" and head[8:12] in _RIFF:
        return _RIFF[head[8:12]]
    if head[4:8] == b"ftyp":
        return "audio/mp4" if head[8:11] == b"M4A" else "video/mp4"
    return _text_kind(head) if _is_text(head) else "application/octet-stream"


def _is_text(head: bytes) -> bool:
    if not _TEXT.fullmatch(head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4 and len(head) >= HEAD_BYTES  # cut inside a character
    return True


def _text_kind(head: bytes) -> str:
    head = head.removeprefix(b"\xef\xbb\xbf")
    if _SVG.match(head):
        return "image/svg+xml"
    if _HTML.match(head):
        return "text/html"
    if _XML.match(head):
        return "application/xml"
    return "text/plain"
