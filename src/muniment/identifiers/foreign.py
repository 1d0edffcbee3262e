"""Identifiers of other systems inside a PDI (draft 2.4.1).

What kind of identifier it is is recorded when the PDI is minted, never guessed from its spelling:
to software that does not know the kind, the unique id is opaque. Each kind here knows the one
spelling that its own rules give equal identifiers (step 4 of lexical equivalence).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit, urlunsplit

from muniment.identifiers.characters import UNIQUE_ID, escape
from muniment.identifiers.problems import Problem
from muniment.identifiers.urn import parse_urn

__all__ = ["FOREIGN", "encapsulate"]


def _http(value: str) -> str:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise Problem("E_FOREIGN", f"{value!r} is not a URL: {error}").error() from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise Problem("E_FOREIGN", f"{value!r} is not an http or https URL").error()
    host = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
    if port is not None and port != {"http": 80, "https": 443}[parts.scheme.lower()]:
        host = f"{host}:{port}"
    path = re.sub("%[0-9a-fA-F]{2}", lambda match: match[0].upper(), parts.path or "/")
    return urlunsplit((parts.scheme.lower(), host, path, parts.query, parts.fragment))


def _urn(value: str) -> str:
    return parse_urn(value).key


def _doi(value: str) -> str:
    bare = re.sub(r"(?i)^(?:doi:|https?://(?:dx\.)?doi\.org/)", "", value)
    if not re.fullmatch(r"10\.[0-9.]+/\S+", bare):
        raise Problem("E_FOREIGN", f"{value!r} is not a DOI such as 10.1000/182").error()
    return bare.lower()


def _ark(value: str) -> str:
    match = re.fullmatch(r"(?i)ark:/?([0-9a-z]+)/(\S+)", value)
    if match is None:
        raise Problem("E_FOREIGN", f"{value!r} is not an ARK such as ark:12345/x9").error()
    # Hyphens are there for readers alone; they do not tell ARKs apart.
    return f"ark:{match[1].lower()}/{match[2].replace('-', '')}"


FOREIGN: Mapping[str, Callable[[str], str]] = {
    "http": _http, "https": _http, "url": _http, "urn": _urn, "doi": _doi, "ark": _ark,
}  # fmt: skip


def encapsulate(kind: str, value: str) -> tuple[str, str]:
    """Return the unique id that holds a foreign identifier, and the identifier in its own spelling.

    >>> encapsulate("url", "HTTP://www.Whitehouse.gov")
    ('http:%2f%2fwww%2ewhitehouse%2egov%2f', 'http://www.whitehouse.gov/')
    """
    if not value:
        raise Problem("E_FOREIGN", "the foreign identifier is empty").error()
    canonical = FOREIGN.get(kind.lower(), str)(value)
    return escape(canonical, UNIQUE_ID), canonical
