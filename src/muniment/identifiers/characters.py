"""The character sets of PDIs (draft 1.2.4), and their escapes.

Steps 1 and 2 of lexical equivalence live here: an escape becomes its character where that may stand
unescaped, and the hex digits of all others become lower case. Decoding is done once: ``%252e``
stays ``%252e``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

__all__ = [
    "NAME_POSITION", "POSITION", "TOKEN", "UNIQUE_ID", "decode", "escape", "first_fault",
    "unescape",
]  # fmt: skip

_ALNUM = "A-Za-z0-9"
UNIQUE_ID = re.compile(rf"(?:[{_ALNUM}():;$_!'-]|%[0-9A-Fa-f]{{2}})+")
TOKEN = re.compile(rf"(?:[{_ALNUM}_:-]|%[0-9A-Fa-f]{{2}})+")
POSITION = re.compile(rf"(?:[{_ALNUM}:;$_!'-]|%[0-9A-Fa-f]{{2}})+")
NAME_POSITION = UNIQUE_ID  # parentheses are no delimiters in the scheme "name"

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
# All that RFC 2141 lets stand in a URN; "?" is reserved in PDIs and has no meaning there.
_FAULT = re.compile(rf"[^{_ALNUM}():;$_!'.,/#*@=+%-]|%(?![0-9A-Fa-f]{{2}})|%00")


def first_fault(text: str) -> tuple[str, str, int] | None:
    """Return code, message and position of the first character that no PDI may have."""
    found = _FAULT.search(text)
    if found is None:
        return None
    if found[0] == "%00":
        return "E_NUL", "the octet 0 is never allowed, not even escaped", found.start()
    if found[0] == "%":
        return "E_ESCAPE", "'%' is not followed by two hexadecimal digits", found.start()
    escaped = "".join(f"%{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass"))
    message = f"{found[0]!r} cannot stand in a PDI; as part of a name it is written {escaped}"
    return "E_CHARS", message, found.start()


def _settle(allowed: re.Pattern[str], match: re.Match[str]) -> str:
    character = chr(int(match[0][1:], 16))
    return character if allowed.fullmatch(character) else match[0].lower()


def _unescaper(allowed: re.Pattern[str]) -> Callable[[str], str]:
    replace = partial(_ESCAPE.sub, partial(_settle, allowed))
    return lambda text: replace(text) if "%" in text else text


_UNESCAPERS = {each: _unescaper(each) for each in (UNIQUE_ID, TOKEN, POSITION)}


def unescape(text: str, allowed: re.Pattern[str]) -> str:
    """Undo the escapes of characters that may stand as they are; lower the digits of the others.

    >>> unescape("%41%2E%3a", UNIQUE_ID)
    'A%2e:'
    """
    return _UNESCAPERS[allowed](text)


def escape(text: str, allowed: re.Pattern[str] = UNIQUE_ID) -> str:
    """Return text in the spelling of a unique id, a token or a position.

    >>> escape("http://www.whitehouse.gov/")
    'http:%2f%2fwww%2ewhitehouse%2egov%2f'
    """
    plain = {c for c in set(text) if c != "%" and allowed.fullmatch(c)}
    return "".join(
        c if c in plain else "".join(f"%{byte:02x}" for byte in c.encode("utf-8", "surrogatepass"))
        for c in text
    )


def decode(text: str) -> str:
    """Undo every escape; octets that are no UTF-8 become the replacement character."""
    if "%" not in text:
        return text
    octets = _ESCAPE.sub(lambda match: chr(int(match[0][1:], 16)), text)
    return octets.encode("latin-1").decode("utf-8", "replace")
