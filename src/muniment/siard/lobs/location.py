"""What a cell says about its large object: the attributes of 6.2, on their way through batches.

A cell whose value lies elsewhere travels as REF and a *reference*: the place of the cell within its
row (column, then parts of complex values, all counted from 1) and its attributes. They are divided
by a character that XML does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from muniment.errors import LobError

__all__ = [
    "ALGORITHMS", "Location", "is_absolute", "location_of", "parse_location", "path_of",
    "reference_of", "stated", "uri_path",
]  # fmt: skip

ALGORITHMS = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256"}  # digestType to hashlib

_BETWEEN = "\x01"
_PREFIXED = re.compile(r"(MD5|SHA-?1|SHA-?256):?\s*([0-9A-Fa-f]+)", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Location:
    """Where a cell says that its object lies, and what it should be."""

    path: tuple[int, ...]  # the column, then the parts within a complex value; from 1
    file: str
    length: int | None = None
    digest_type: str = ""
    digest: str = ""
    link: str = ""  # dlurlpathonly, decoded


def reference_of(path: tuple[int, ...], attributes: Mapping[str, str]) -> bytes:
    """Return the reference for a cell with these attributes."""
    fields = (".".join(map(str, path)), *_fields_of(attributes))
    return _BETWEEN.join(fields).encode("utf-8", "surrogatepass")


def location_of(path: tuple[int, ...], attributes: Mapping[str, str]) -> Location:
    """Return what the attributes of a cell say; raise LobError if they make no sense."""
    return _location(path, *_fields_of(attributes))


def _fields_of(attributes: Mapping[str, str]) -> tuple[str, str, str, str, str]:
    type_, digest = attributes.get("digestType", ""), attributes.get("digest", "")
    if not digest and "messageDigest" in attributes:  # SIARD 1.0 and 2.0
        type_, digest = _prefixed(attributes["messageDigest"])
    file, length = attributes.get("file", ""), attributes.get("length", "")
    return file, length, type_, digest, attributes.get("dlurlpathonly", "")


def parse_location(reference: bytes) -> Location:
    """Return what a reference says; raise LobError if it makes no sense."""
    path, *fields = reference.decode("utf-8", "surrogatepass").split(_BETWEEN)
    return _location(_steps(path), *fields)


def path_of(reference: bytes) -> tuple[int, ...]:
    """Return which cell a reference stands in: its column, then the parts within."""
    return _steps(reference.partition(_BETWEEN.encode())[0].decode())


def _steps(path: str) -> tuple[int, ...]:
    return tuple(map(int, path.split("."))) if "." in path else (int(path),)


def _location(
    path: tuple[int, ...], file: str, length: str, type_: str, digest: str, link: str
) -> Location:
    length, digest = length.strip(), digest.strip().lower()
    if length and not (length.isascii() and length.isdecimal() and len(length) < 20):
        raise LobError(file, f"its length is given as {length[:40]!r}", "T_6.2-1")
    if digest and type_ not in ALGORITHMS:
        type_ = _known_type(type_.strip(), file)
    return Location(
        path,
        file.strip(),
        int(length) if length else None,
        type_ if digest else "",
        digest,
        unquote(link, errors="surrogateescape") if link else "",
    )


def stated(reference: bytes) -> tuple[str, int | None]:
    """Return the file and the length that a reference states, whatever else is wrong with it."""
    fields = reference.decode("utf-8", "replace").split(_BETWEEN)
    file, length = (*fields, "", "", "")[1:3]
    return file, int(length) if length.isascii() and length.isdecimal() else None


def _prefixed(text: str) -> tuple[str, str]:
    """Divide a digest that starts with the name of its algorithm.

    >>> _prefixed("md574f24080")
    ('MD5', '74f24080')
    >>> _prefixed("SHA-256:00ff"), _prefixed("sha1ab")
    (('SHA-256', '00ff'), ('SHA-1', 'ab'))
    """
    match = _PREFIXED.fullmatch(text.strip())
    if not match:
        return "?", text
    name = match[1].upper().replace("-", "")
    return {"MD5": "MD5", "SHA1": "SHA-1", "SHA256": "SHA-256"}[name], match[2]


def _known_type(text: str, file: str) -> str:
    """One spelling of a digest type: the standard's own example writes ``md5``."""
    upper = text.upper()
    name = {"SHA1": "SHA-1", "SHA256": "SHA-256"}.get(upper, upper)
    if name not in ALGORITHMS:
        raise LobError(file, f"its digest type {text[:40]!r} is unknown", "T_6.2-1")
    return name


def is_absolute(uri: str) -> bool:
    r"""Whether a location starts from a root of its own.

    >>> [is_absolute(u) for u in ("file:///a", "/a", "\\\\server\\a", "C:/a", "./a", "a:b/c")]
    [True, True, True, True, False, True]
    """
    return bool(_SCHEME.match(uri)) or uri.startswith(("/", "\\"))


def uri_path(text: str) -> str:
    """Return a file name as it stands in a URI: URL-encoded ASCII (G_3.4-2).

    >>> uri_path("Städte & Dörfer/a b.bin")
    'St%C3%A4dte%20%26%20D%C3%B6rfer/a%20b.bin'
    """
    return quote(text, safe="/", errors="surrogateescape")
