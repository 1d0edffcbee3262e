"""What a Digital Object is, whatever document describes it."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

__all__ = ["Datastream", "DigitalObject", "datastream_url", "referenced"]


_PLAIN = re.compile("[0-9a-f-]+(?:urn:uuid:[0-9a-f-]+)?").fullmatch  # as our own names are


class Datastream(NamedTuple):
    """One file of an object: its name in the store, its path as it was added, its fixity."""

    identifier: str
    path: str
    media_type: str
    size: int
    sha256: str
    arc: str = ""  # the identifier of the ARC or WARC file that holds it


class DigitalObject(NamedTuple):
    """One version of some content: a package with its own identifier, never changed again."""

    package: str
    created: str
    contents: tuple[str, ...]  # the PDI with its version first, then other content identifiers
    streams: tuple[Datastream, ...]
    metadata: tuple[tuple[str, str], ...] = ()  # Dublin Core elements
    facts: tuple[tuple[str, str], ...] = ()  # technical: what was found in the data
    agent: str = ""


def datastream_url(base: str, arc: str, identifier: str) -> str:
    """Return the OpenURL under which a datastream is delivered.

    >>> datastream_url("http://localhost", "urn:uuid:1", "urn:uuid:2")
    'http://localhost/openurl/1?url_ver=Z39.88-2004&rft_id=urn:uuid:2'
    """
    name = arc.removeprefix("urn:uuid:")
    if not _PLAIN(name + identifier):
        name, identifier = quote(name, safe=""), quote(identifier, safe=":/")
    return f"{base}/openurl/{name}?url_ver=Z39.88-2004&rft_id={identifier}"


def referenced(url: str) -> tuple[str, str]:
    """Return the datastream and the ARC file that an OpenURL names, "" for what it does not say.

    >>> referenced("http://h/r?res_id=info:a/arc/1&url_ver=Z39.88-2004&rft_id=info:a/ds/2")
    ('info:a/ds/2', 'info:a/arc/1')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", ""
    keys = parse_qs(parts.query)
    arc = keys.get("res_id", [""])[0]
    if not arc and "/openurl/" in parts.path:
        arc = "urn:uuid:" + parts.path.rpartition("/openurl/")[2].partition("/")[0]
    return keys.get("rft_id", [""])[0], arc
