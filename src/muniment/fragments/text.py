"""Characters of texts: code points of the form whose lines end with CR LF (draft 3.4.1).

A lone CR or LF counts as CR LF; a byte order mark is no character.
"""

from __future__ import annotations

import re

from muniment.fragments.result import Extract, not_possible, out_of_range
from muniment.identifiers.formats import charset_of

__all__ = ["canonical_text", "characters", "decoded"]

_LINE_END = re.compile("\r\n|\r|\n")


def decoded(data: bytes, media: str) -> str:
    """Return the characters of a text without its byte order mark."""
    charset = charset_of(media) or "utf-8"
    try:
        words = data.decode(charset)
    except (UnicodeDecodeError, UnicodeError):
        raise not_possible(
            f"the text is not {charset}; characters are counted only if its format names its "
            "character set, such as .iso-8859-1"
        ) from None
    return words.removeprefix("\ufeff")


def canonical_text(data: bytes, media: str) -> str:
    """Return the characters of a text in the form in which positions count."""
    return _LINE_END.sub("\r\n", decoded(data, media))


def characters(data: bytes, media: str, start: int, end: int) -> Extract:
    """Return the characters from ``start`` up to and excluding ``end``."""
    words = canonical_text(data, media)
    if end > len(words):
        raise out_of_range(f"character {end} lies behind the end: there are {len(words)}")
    kind = media.partition(";")[0]
    return Extract(f"{kind};charset=utf-8", words[start:end].encode("utf-8", "surrogatepass"))
