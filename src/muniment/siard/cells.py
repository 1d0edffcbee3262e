"""Escaping of whole batches at once: bytes in, bytes out, never a Python loop over cells.

G_3.3-3 wants the control characters 0-31 and 127-159 escaped, G_3.3-4 spares 9-13; escaping all of
them survives every XML reader. Spaces are escaped where a reader might drop them: at either end of
a value and after another space. What XML 1.0 cannot spell at all (lone surrogates, U+FFFE, U+FFFF)
takes the same road.
"""

from __future__ import annotations

import re

from muniment.sql.batch import CELL, ITEM, OPEN

__all__ = ["UNEXPECTED", "escape_cells", "unescape_cells", "unescape_text"]

UNEXPECTED = bytes(c for c in range(32) if c not in b"\t\n\r")  # what no XML file may contain

_CONTROLS = bytes(range(32)) + b"\x7f"
_ENTITIES = (
    (b"&", b"&amp;"),
    (b"<", b"&lt;"),
    (b">", b"&gt;"),
    (b'"', b"&quot;"),
    (b"'", b"&apos;"),
)
# All bytes but those that may need an escape: C2, ED and EF begin characters of which some do.
_HARMLESS = bytes(set(range(256)) - set(_CONTROLS + b"\\&<>\"'\xc2\xed\xef"))
_STARTS = (CELL, OPEN, ITEM)
_ENDS = (CELL, ITEM)
_SPACE = b"\\u0020"
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_NOT_XML = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]|\xef\xbf[\xbe\xbf]")


def escape_cells(data: bytes) -> bytes:
    """Return cells joined by CELL, each now safe to stand between two tags.

    Nothing to escape: the very same object comes back.
    """
    special = set(data.translate(None, _HARMLESS))
    if special:
        data = _escape_special(data, special)
    return _escape_spaces(data) if b" " in data else data


def _escape_special(data: bytes, special: set[int]) -> bytes:
    if 0x5C in special:  # the backslash first: all other steps add some
        data = data.replace(b"\\", b"\\u005c")
    for plain, entity in _ENTITIES:
        if plain[0] in special:
            data = data.replace(plain, entity)
    for control in special.intersection(_CONTROLS):
        data = data.replace(bytes((control,)), b"\\u%04x" % control)
    if 0xC2 in special:
        data = _C1.sub(_escape_match, data)
    if special & {0xED, 0xEF}:
        data = _NOT_XML.sub(_escape_match, data)
    return data


def _escape_spaces(data: bytes) -> bytes:
    if b"  " in data:
        data = data.replace(b"  ", b" " + _SPACE).replace(_SPACE + b" ", _SPACE * 2)
    complex_values = OPEN in data
    for start in _STARTS if complex_values else _STARTS[:1]:
        if start + b" " in data:
            data = data.replace(start + b" ", start + _SPACE)
    for end in _ENDS if complex_values else _ENDS[:1]:
        if b" " + end in data:
            data = data.replace(b" " + end, _SPACE + end)
    if data.startswith(b" "):
        data = _SPACE + data[1:]
    return data[:-1] + _SPACE if data.endswith(b" ") else data


def _escape_match(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(match[0].decode("utf-8", "surrogatepass"))


_ESCAPE = re.compile(rb"\\u([0-9A-Fa-f]{4})")
_SURROGATES = re.compile(rb"(\xed[\xa0-\xaf][\x80-\xbf])(\xed[\xb0-\xbf][\x80-\xbf])")
_REFERENCE = re.compile(rb"&(?:#x([0-9A-Fa-f]+)|#([0-9]+)|(lt|gt|amp|quot|apos));")
_NAMED = {entity[1:-1]: plain for plain, entity in _ENTITIES}
_FEW = 64


def unescape_cells(data: bytes) -> bytes:
    """Undo entities and escapes in cells taken out of row XML.

    Raises ValueError at an entity that XML does not define.
    """
    references = data.count(b"&")
    if references > _FEW:  # many: known ones in bulk, each in one pass
        for plain, entity in _ENTITIES[1:]:
            data = data.replace(entity, plain)
        if data.count(b"&") == data.count(b"&amp;"):
            return unescape_text(data.replace(b"&amp;", b"&"))
        references = data.count(b"&")
    if references:
        data, found = _REFERENCE.subn(_reference, data)
        if found != references:
            raise ValueError("an entity that XML does not define")
    return unescape_text(data)


def unescape_text(text: bytes) -> bytes:
    """Undo the escapes in text that is already free of entities."""
    if b"\\" not in text:
        return text
    text = _ESCAPE.sub(_unescape_match, text.replace(_SPACE, b" "))
    if b"\xed" in text:  # another writer's pair of escapes for one character
        text = _SURROGATES.sub(_join_surrogates, text)
    return text


def _reference(match: re.Match[bytes]) -> bytes:
    if match[3]:
        return _NAMED[match[3]]
    return _xml_character(match[1], 16) if match[1] else _xml_character(match[2], 10)


def _unescape_match(match: re.Match[bytes]) -> bytes:
    return _character(int(match[1], 16))


def _character(code: int) -> bytes:
    return chr(code).encode("utf-8", "surrogatepass")


def _xml_character(digits: bytes, base: int) -> bytes:
    """A character by its number, if XML allows it there."""
    code = int(digits, base) if len(digits) <= 8 else 0
    allowed = code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD
    if not allowed and not 0x10000 <= code <= 0x10FFFF:
        raise ValueError(f"a reference to the character {code}, which XML does not allow")
    return chr(code).encode()


def _join_surrogates(match: re.Match[bytes]) -> bytes:
    pair = match[0].decode("utf-8", "surrogatepass")
    return pair.encode("utf-16", "surrogatepass").decode("utf-16").encode()
