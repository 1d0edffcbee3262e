"""URNs by RFC 8141 and by the older RFC 2141, and the URN forms of PDIs.

``urn:NID:NSS [?+resolver] [?=query] [#fragment]``. Equivalence looks at the assigned name alone:
``urn``, NID and hex digits in one case, nothing unescaped. ``urn:pdi://…`` is no URN of RFC 8141,
whose names may not begin with a slash, and ``pdi`` is no registered namespace; so the form for the
world outside is ``urn:ROOT:pdi:SERIES:YYYY:MM:DD:SPECIFIER``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from muniment.identifiers.fragments import SCHEMES, Scheme
from muniment.identifiers.parse import Profile, parse_pdi
from muniment.identifiers.pdi import Pdi
from muniment.identifiers.problems import Problem

__all__ = ["Urn", "format_pdi_urn", "parse_pdi_urn", "parse_urn", "parse_urn_2141"]

_LONGEST = 8192
_PCHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_URN = re.compile(
    rf"([Uu][Rr][Nn]):([A-Za-z0-9][A-Za-z0-9-]{{0,30}}[A-Za-z0-9]):({_PCHAR}(?:{_PCHAR}|/)*+)"
    rf"(?:\?\+({_PCHAR}(?:{_PCHAR}|/|\?(?!=))*+))?"
    rf"(?:\?=({_PCHAR}(?:{_PCHAR}|[/?])*+))?"
    rf"(?:#((?:{_PCHAR}|[/?])*+))?"
)
_URN_2141 = re.compile(
    r"([Uu][Rr][Nn]):([A-Za-z0-9][A-Za-z0-9-]{0,31}):"
    r"((?:[A-Za-z0-9()+,.:=@;$_!*'/?#-]|%(?!00)[0-9A-Fa-f]{2})+)"
)
_HEX = re.compile("%[0-9A-Fa-f]{2}")


@dataclass(frozen=True, slots=True)
class Urn:
    """A URN in its parts, as they were written."""

    nid: str
    nss: str
    resolver: str | None = None
    query: str | None = None
    fragment: str | None = None

    def __str__(self) -> str:
        parts = (("?+", self.resolver), ("?=", self.query), ("#", self.fragment))
        tail = "".join(mark + part for mark, part in parts if part is not None)
        return f"urn:{self.nid.lower()}:{_upper_hex(self.nss)}{tail}"

    @property
    def key(self) -> str:
        """The assigned name in the form in which equivalent URNs are the same (8141, 3.1)."""
        return f"urn:{self.nid.lower()}:{_upper_hex(self.nss)}"


def _upper_hex(text: str) -> str:
    return _HEX.sub(lambda match: match[0].upper(), text) if "%" in text else text


def parse_urn(text: str) -> Urn:
    """Read a URN of RFC 8141, or raise IdentifierError.

    >>> parse_urn("URN:Example:a%2cb?=q#f").key
    'urn:example:a%2Cb'
    """
    _check_start(text)
    match = _URN.fullmatch(text)
    if match is None:
        raise _fault(text).error()
    return Urn(match[2], match[3], match[4], match[5], match[6])


def parse_urn_2141(text: str) -> Urn:
    """Read a URN of RFC 2141; what RFC 8141 would call a fragment is part of its name."""
    _check_start(text)
    match = _URN_2141.fullmatch(text)
    if match is None:
        stop = _URN_2141.match(text)
        raise Problem("E_URN", "this is no URN of RFC 2141", stop.end() if stop else 4).error()
    if match[2].lower() == "urn":
        raise Problem("E_URN_NID", "the namespace identifier 'urn' is reserved", 4).error()
    return Urn(match[2], match[3])


def _check_start(text: str) -> None:
    if len(text) > _LONGEST:
        raise Problem("E_LENGTH", f"a URN has at most {_LONGEST} characters here", _LONGEST).error()
    if text[:4].lower() != "urn:":
        raise Problem("E_SCHEME", "a URN begins with urn:").error()


_NID = re.compile("[A-Za-z0-9][A-Za-z0-9-]{0,30}[A-Za-z0-9]")


def _fault(text: str) -> Problem:
    """Say what keeps a text from being a URN."""
    nid, colon, nss = text[4:].partition(":")
    at = 5 + len(nid)
    if not _NID.fullmatch(nid):
        message = (
            f"{nid!r} is no namespace identifier: 2 to 32 letters, digits and hyphens, "
            "no hyphen at the ends"
        )
        return Problem("E_URN_NID", message, 4)
    if not (colon and nss):
        return Problem("E_URN_NSS", "nothing follows the namespace identifier", len(text))
    if nss[0] == "/":
        message = "the name in a namespace may not begin with '/' (RFC 8141)"
        return Problem("E_URN_NSS", message, at)
    match = _URN.match(text)
    end = match.end() if match else at
    mark = text[end : end + 1]
    if mark == "%":
        return Problem("E_ESCAPE", "'%' is not followed by two hexadecimal digits", end)
    if mark == "?":
        return Problem("E_URN_QUESTION", "'?' stands only in '?+' and '?='", end)
    return Problem("E_CHARS", f"{mark!r} cannot stand here in a URN", end)


def format_pdi_urn(pdi: Pdi, root: str | None = None) -> str:
    """Return ``urn:pdi://…``, or below a root namespace the form without slashes.

    >>> format_pdi_urn(parse_pdi("pdi://a.ch/2025/11/15/1.text.1#0,5"), "example")
    'urn:example:pdi:a.ch:2025:11:15:1.text.1#0,5'
    """
    if root is None:
        return f"urn:{pdi}"
    if pdi.citation is not None:
        message = f"a citation has no form below urn:{root}; it is written urn:{pdi}"
        raise Problem("E_URN_CITATION", message).error()
    day = f"{pdi.series}:{pdi.year}:{pdi.month}:{pdi.day}"
    fragment = "" if pdi.fragment is None else f"#{pdi.fragment}"
    return f"urn:{root.lower()}:pdi:{day}:{pdi.specifier}{fragment}"


def parse_pdi_urn(
    text: str, root: str, profile: Profile = Profile.READ,
    schemes: Mapping[str, Scheme] = SCHEMES,
) -> Pdi:  # fmt: skip
    """Read a PDI from ``urn:ROOT:pdi:…`` or ``urn:pdi://…``."""
    if text[:8].lower() == "urn:pdi:":
        return parse_pdi(text, profile, schemes)
    urn = parse_urn(text)
    head, _, rest = urn.nss.partition(":")
    parts = rest.split(":", 4)
    if urn.nid.lower() != root.lower() or head.lower() != "pdi" or len(parts) != 5:
        message = f"a PDI below urn:{root} is urn:{root}:pdi:SERIES:YYYY:MM:DD:SPECIFIER"
        raise Problem("E_URN_PDI", message).error()
    fragment = "" if urn.fragment is None else f"#{urn.fragment}"
    return parse_pdi(f"pdi://{'/'.join(parts)}{fragment}", profile, schemes)
