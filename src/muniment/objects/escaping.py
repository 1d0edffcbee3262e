"""Text and attribute values for XML; nearly all of them need no change, which is seen at once."""

from __future__ import annotations

import re
from xml.sax import saxutils

__all__ = ["escape", "quoteattr"]

_SPECIAL = re.compile('[&<>"\t\n\r]').search


def escape(text: str) -> str:
    """Return text as XML has it.

    >>> escape("plain"), escape("a < b")
    ('plain', 'a &lt; b')
    """
    return saxutils.escape(text) if _SPECIAL(text) else text


def quoteattr(text: str) -> str:
    """Return an attribute value with its quotes.

    >>> quoteattr("plain"), quoteattr("a & b")
    ('"plain"', '"a &amp; b"')
    """
    return saxutils.quoteattr(text) if _SPECIAL(text) else f'"{text}"'
