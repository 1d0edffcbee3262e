"""Addresses to which names are bound indirectly, fetched again and compared with the kept copy.

An address must never change (draft 3.6.2); if it does, that binding ends and the copy goes on. Only
addresses that begin with one that was allowed are fetched, redirections included.
"""

from __future__ import annotations

import hashlib
import os
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPException
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from muniment.errors import UsageError
from muniment.identifiers import Pdi
from muniment.names.book import Names
from muniment.names.resolution import sources

__all__ = ["Checked", "check_links"]

_CHUNK = 1 << 20
_SCHEMES = ("file", "http", "https")
_PREDICATE = "sourceChecked"


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of one address: same, changed, unreachable, or not allowed."""

    pdi: Pdi
    source: str
    verdict: str
    found: str = ""  # the digest that was found, or why nothing was

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "pdi": str(self.pdi),
            "source": self.source,
            "verdict": self.verdict,
            "found": self.found or None,
        }


def check_links(
    names: Names, allowed: Sequence[str], by: str, days: float = 0, timeout: float = 30
) -> Iterator[Checked]:
    """Fetch every address that was not checked for so many days; write down what was found."""
    for prefix in allowed:
        if urlsplit(prefix).scheme.lower() not in _SCHEMES:
            raise UsageError(f"{prefix!r} does not begin with file:, http: or https:")
    since = (names.clock() - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S")
    for pdi, source, digest, length in list(sources(names)):
        if days and _last(names, pdi, source) > since:
            continue
        yield _check(names, pdi, source, digest, length, allowed, by, timeout)


def _last(names: Names, pdi: Pdi, source: str) -> str:
    said = names.assertions(str(pdi), _PREDICATE)
    times = (
        each.at
        for each in said
        if isinstance(each.value, dict) and each.value.get("source") == source
    )
    return max(times, default="")


def _check(
    names: Names, pdi: Pdi, source: str, digest: bytes, length: int, allowed: Sequence[str],
    by: str, timeout: float,
) -> Checked:  # fmt: skip
    if not _is_allowed(source, allowed):
        return Checked(pdi, source, "not allowed")
    try:
        found = _digest(source, allowed, length, timeout)
    except (OSError, HTTPException, ValueError) as error:
        result = Checked(pdi, source, "unreachable", str(error) or type(error).__name__)
    else:
        verdict = "same" if found == digest else "changed"
        result = Checked(pdi, source, verdict, found.hex() if found else "more octets")
    value = {"source": source, "verdict": result.verdict, "found": result.found}
    names.say(str(pdi), _PREDICATE, value, by)
    if result.verdict == "changed":
        names.end_source(pdi, source, result.found, by)
    return result


def _is_allowed(source: str, allowed: Sequence[str]) -> bool:
    """Whether an address begins with an allowed one: same scheme and host, a path below."""
    parts = urlsplit(source)
    steps = unquote(parts.path).split("/")
    if ".." in steps or "\\" in parts.path:
        return False
    for prefix in map(urlsplit, allowed):
        same = (parts.scheme.lower(), parts.netloc.lower()) == (
            prefix.scheme.lower(),
            prefix.netloc.lower(),
        )
        base = unquote(prefix.path).rstrip("/").split("/")
        if same and steps[: len(base)] == base:
            return True
    return False


def _digest(source: str, allowed: Sequence[str], length: int, timeout: float) -> bytes:
    """Return the SHA-256 of what an address gives, b"" if that is longer than it should be."""
    digest, left = hashlib.sha256(), length
    with _opened(source, allowed, timeout) as stream:
        while chunk := stream.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                return b""
            digest.update(chunk)
    return digest.digest()


def _opened(source: str, allowed: Sequence[str], timeout: float) -> BinaryIO:
    if urlsplit(source).scheme.lower() == "file":
        return _opened_file(source, allowed)
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirections(allowed),
    ):
        opener.add_handler(handler)
    request = urllib.request.Request(source, headers={"User-Agent": "Muniment"})
    opened: BinaryIO = opener.open(request, timeout=timeout)
    return opened


def _opened_file(source: str, allowed: Sequence[str]) -> BinaryIO:
    """Open a file; a link may not lead out of what is allowed."""
    path = os.path.realpath(unquote(urlsplit(source).path))
    roots = [os.path.realpath(unquote(urlsplit(each).path)) for each in allowed]
    files = [root for root, each in zip(roots, allowed, strict=True) if each[:5].lower() == "file:"]
    if not any(path == root or path.startswith(root.rstrip("/") + "/") for root in files):
        raise OSError(f"{path} lies outside of what is allowed")
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    stream = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        stream.close()
        raise OSError(f"{path} is not a file")
    return stream


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follows redirections only to where fetching is allowed."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = allowed

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """Return the next request, or refuse it."""
        if not _is_allowed(newurl, self._allowed):
            raise urllib.error.URLError(f"it leads to {newurl}, which is not allowed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
