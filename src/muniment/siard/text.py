r"""Text as SIARD keeps it inside XML, with escapes of its own below those of XML.

G_3.3-3 asks that control characters (0-31, 127-159) be written as ``\u00XX``, because XML cannot
hold most of them. G_3.3-4 repeats it with 9-13 left out, and adds the backslash itself and every
space after the first of a row.
"""

from __future__ import annotations

import re

__all__ = ["escape_metadata", "escape_name", "unescape"]

# Some readers and pretty-printers trim text, so blanks at its ends are never left raw.
_BLANK = " \t\n"

# G_3.3-4 spares tab and line feed, and people read the SQL in metadata. It spares 11-13 too, but
# XML forbids two of them and turns the third, a carriage return, into a line feed. Neither can XML
# hold half a surrogate pair or the last two code points of the basic plane.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\\\ud800-\udfff\ufffe\uffff]|(?<= ) ")

_QUOTATION_MARKS = ('""', "``", "[]")  # of SQL and of products

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def escape_metadata(text: str) -> str:
    r"""Return text that no XML reader alters and a person can still read.

    >>> escape_metadata("SELECT  'C:\\x'\n FROM t ")
    "SELECT \\u0020'C:\\u005cx'\n FROM t\\u0020"
    """
    rest = text.lstrip(_BLANK)
    body = rest.rstrip(_BLANK)
    head, tail = text[: len(text) - len(rest)], rest[len(body) :]
    return _codes(head) + _UNSAFE.sub(lambda match: _codes(match[0]), body) + _codes(tail)


def escape_name(name: str) -> str:
    r"""Return a name as metadata have it; marks around it that are its own are escaped.

    Names are stored without quotation marks (G_3.5-3): raw ones would be taken for those of SQL.

    >>> escape_name('the "old" town'), escape_name('"x"')
    ('the "old" town', '\\u0022x\\u0022')
    """
    text = escape_metadata(name)
    if len(text) > 2 and text[0] + text[-1] in _QUOTATION_MARKS:
        return _codes(text[0]) + text[1:-1] + _codes(text[-1])
    return text


def unescape(text: str) -> str:
    r"""Return the text that was escaped; a backslash that starts no escape stays itself.

    >>> unescape(r"C:\temp\u005cuser")
    'C:\\temp\\user'
    """
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _codes(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)
