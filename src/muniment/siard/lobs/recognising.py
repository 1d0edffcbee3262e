"""What kind of file a large object is, by its first bytes."""

from __future__ import annotations

import re

import filetype

__all__ = ["HEAD", "recognise"]

HEAD = 8192  # bytes that are looked at
_SHORT = 300  # enough for all formats that are not folders of files themselves
_CONTAINERS = (b"PK", b"\xd0\xcf")
_SAFE = re.compile(r"[a-z0-9]{1,10}")


def recognise(head: bytes) -> tuple[str, str] | None:
    """Return the MIME type and the extension of a binary object; None if nobody knows.

    >>> recognise(b"\\x89PNG\\r\\n\\x1a\\n" + bytes(20))
    ('image/png', 'png')
    >>> recognise(bytes(range(40)))
    """
    kind = filetype.guess(head[: HEAD if head.startswith(_CONTAINERS) else _SHORT])
    if kind is None or not _SAFE.fullmatch(kind.extension):
        return None
    return kind.mime, kind.extension
