"""Text and attribute values for XML; nearly all of them need no change, which is seen at once."""

from __future__ import annotations

import re

__all__ = ["escape", "quoteattr"]

_IN_ATTRIBUTES = re.compile('[&<>"\t\n\r]')
_REFERENCES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;",
               "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}  # fmt: skip


def escape(text: str) -> str:
    """Return text as XML has it.

    >>> escape("plain"), escape("a < b & c")
    ('plain', 'a &lt; b &amp; c')
    """
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    return text.replace(">", "&gt;") if ">" in text else text


def quoteattr(text: str) -> str:
    """Return an attribute value in double quotes.

    >>> quoteattr("plain"), quoteattr('a & "b"')
    ('"plain"', '"a &amp; &quot;b&quot;"')
    """
    if not _IN_ATTRIBUTES.search(text):
        return f'"{text}"'
    return '"' + _IN_ATTRIBUTES.sub(lambda found: _REFERENCES[found[0]], text) + '"'
