"""PUT on a name: a new version of a document, or on a series, a new document (draft 3.8.2).

The octets of a version never change: what is put under a name becomes its next version. With
``Link: <…>; rel="alternate"`` it becomes another format of the latest one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import mimetypes
import re
import tempfile
import time
from base64 import b64decode
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from muniment.errors import FormatError, NameRefused
from muniment.identifiers import Pdi, parse_pdi, parse_series
from muniment.identifiers.formats import CHARSETS, media_type, token_for
from muniment.repository import Source, Store
from muniment.repository.deposit import (
    Condition,
    Settle,
    check_series,
    new_name,
    next_version,
    rendition,
)
from muniment.repository.ingest import Submission, submit_file
from muniment.repository.tokens import Token
from muniment.web.doors.answers import Refusal, safe_text
from muniment.web.doors.desk import Desk
from muniment.web.doors.locating import pdi_url
from muniment.web.doors.permission import need, reader_of

__all__ = ["put", "series_of"]

_SERIES = re.compile(r"pdi://([^/?#@]+)/?")
_TAG = re.compile(r'"([0-9a-f]{64})"')
_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_DIGEST = re.compile(r"(?i)sha-256=:?([A-Za-z0-9+/=]{44}):?")
_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff/\\\\]")
_AGAIN = re.compile('"?([A-Za-z0-9-]{1,200})"?')
_SIARD = "application/x-siard"
_SLOWEST = 1024  # bytes a second, over all but the first minute
_CHUNK = 1 << 20
_KEY = "idempotencyKey"


def series_of(text: str) -> str | None:
    """Return the series, if a target is one: ``pdi://SERIES/``."""
    match = _SERIES.fullmatch(text)
    return parse_series(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class _Target:
    """What a document is put under: a series, or a name in it."""

    series: str
    pdi: Pdi | None
    media: str
    settle: Settle


async def put(request: Request, text: str, allowed: str) -> Response:
    """Keep the body of a request as a document, and answer with its name."""
    try:
        return await _put(request, text, allowed)
    except NameRefused as refused:
        if refused.status != 405:
            raise
        methods = allowed.replace(", PUT", "").replace("PUT", "")
        raise Refusal(405, str(refused), Allow=methods) from refused


async def _put(request: Request, text: str, allowed: str) -> Response:
    if reader_of(request).token is None:
        need(request, "series:NAME")  # says so, before anything is told of names
    series, desk = series_of(text), _desk(request)
    pdi = None if series else await desk.ask(lambda store: store.names.read(text))
    if pdi is not None and (pdi.wildcards or pdi.fragment or pdi.citation):
        raise Refusal(405, f"{pdi} is a pattern or a part; documents are whole", Allow=allowed)
    token = need(request, f"series:{series or (pdi and pdi.series)}")
    target = _target(request, series, pdi)
    if known := await desk.ask(lambda store: _before(store, request, token)):
        return _answer(request, desk, parse_pdi(known), None)
    await desk.ask(lambda store: _check(store, target))
    with tempfile.TemporaryDirectory(prefix="muniment-put-") as folder:
        path = Path(folder) / _file_name(request, target.media)
        digest = await _received(request, path, desk.largest, desk.patience)
        _check_digest(request, digest)
        submission = await run_in_threadpool(_submission, request, path, target.media, token)
        added = await asyncio.wrap_future(desk.deposits.add(submission, target.settle))
    made = parse_pdi(added.pdi)
    await desk.ask(lambda store: _remember(store, request, token, made))
    return _answer(request, desk, made, digest)


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _target(request: Request, series: str | None, pdi: Pdi | None) -> _Target:
    media = _media(request, pdi)
    if pdi is None:
        assert series is not None
        return _Target(series, None, media, new_name(series, media))
    matches, matches_not = (_tags(request, name) for name in ("if-match", "if-none-match"))
    condition = Condition(matches, matches_not)
    make = rendition if _is_alternate(request, pdi) else next_version
    return _Target(pdi.series, pdi, media, make(pdi, media, condition))


def _media(request: Request, pdi: Pdi | None) -> str:
    """Return the media type of a document, which its name may say as well."""
    headers = request.headers
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, "documents are put here as they are, not encoded", Accept_Encoding="")
    if "content-range" in headers:
        raise Refusal(400, "a document is put here whole, not in ranges")
    given = headers.get("content-type", "")
    bare, _, parameters = (part.strip() for part in given.lower().partition(";"))
    if not given and pdi is not None and (known := media_type(pdi.format)):
        return known
    charset = parameters.partition("charset=")[2].partition(";")[0].strip('" ')
    media = f"{bare};charset={charset}" if bare == "text/plain" and charset in CHARSETS else bare
    if token_for(media) is None or bare.startswith("multipart/") or len(media) > 200:
        raise Refusal(415, "say with Content-Type what kind of document this is")
    return media


def _tags(request: Request, name: str) -> frozenset[str] | None:
    text = request.headers.get(name)
    if text is None:
        return None
    return frozenset(["*"]) if text.strip() == "*" else frozenset(_TAG.findall(text))


def _is_alternate(request: Request, pdi: Pdi) -> bool:
    """Whether the document is another format of the one that a Link names."""
    for link, parameters in _LINK.findall(",".join(request.headers.getlist("link"))):
        relation = re.search(r'(?i);\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', parameters)
        if relation and "alternate" in (relation[1] or relation[2] or "").lower().split():
            other = parse_pdi(link)
            if other.generic != pdi.generic or other.version not in (None, pdi.version):
                raise Refusal(409, f"{link} is not another format of {pdi}")
            return True
    return False


def _check(store: Store, target: _Target) -> None:
    """Refuse what would be refused in the end, before the document is sent."""
    if target.pdi is None:
        check_series(store, target.series)
    else:
        target.settle(store)


# The octets


async def _received(request: Request, path: Path, largest: int, patience: float) -> str:
    """Write the body into a file, and return its SHA-256."""
    stated = request.headers.get("content-length", "0")
    if stated.isdecimal() and int(stated[:19]) > largest:
        raise _too_large(largest)
    digest, size, parts = hashlib.sha256(), 0, bytearray()
    started, chunks = time.monotonic(), request.stream().__aiter__()
    with path.open("xb") as stream:

        def write(data: bytes) -> None:
            digest.update(data)
            stream.write(data)

        try:
            while True:
                async with asyncio.timeout(patience):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                size += len(chunk)
                if size > largest:
                    raise _too_large(largest)
                if size < _SLOWEST * (time.monotonic() - started - 60):
                    raise TimeoutError
                parts += chunk
                if len(parts) >= _CHUNK:
                    await run_in_threadpool(write, bytes(parts))
                    parts.clear()
        except TimeoutError:
            raise Refusal(408, "the document took too long", Connection="close") from None
        except ClientDisconnect:
            raise Refusal(400, "the document ended before its end") from None
        await run_in_threadpool(write, bytes(parts))
    return digest.hexdigest()


def _too_large(largest: int) -> Refusal:
    return Refusal(413, f"a document may have {largest} bytes", Connection="close")


def _check_digest(request: Request, digest: str) -> None:
    """Compare with what the sender says (RFC 9530, and the older Digest)."""
    for name in ("content-digest", "repr-digest", "digest"):
        for given in _DIGEST.findall(request.headers.get(name, "")):
            if b64decode(given).hex() != digest:
                raise Refusal(400, f"the document arrived with the SHA-256 {digest}, not {name}'s")


# The object


def _file_name(request: Request, media: str) -> str:
    message = Message()
    message["content-disposition"] = request.headers.get("content-disposition", "")
    given = _NOT_IN_NAMES.sub("_", message.get_filename() or "").strip(". ")
    given = given.encode("utf-8", "replace")[:200].decode("utf-8", "ignore")  # of 255 octets
    ending = ".siard" if media == _SIARD else mimetypes.guess_extension(media.partition(";")[0])
    name = given or f"document{ending or ''}"
    return name if media != _SIARD or name.endswith(".siard") else f"{name}.siard"


def _submission(request: Request, path: Path, media: str, token: Token) -> Submission:
    by = ("contributor", _NOT_IN_NAMES.sub(" ", token.holder))
    if media == _SIARD:
        try:
            found = submit_file(path)
        except FormatError as error:
            raise Refusal(422, f"this is no SIARD archive: {error}") from error
        return Submission(found.sources, (*found.metadata, by), found.facts)
    title = _NOT_IN_NAMES.sub(" ", request.headers.get("title", "")).strip() or path.name
    source = Source(path.name, path, media)
    return Submission((source,), (("title", title), by, ("format", media)))


# Requests that are sent again


def _key(request: Request, token: Token) -> str:
    given = request.headers.get("idempotency-key")
    if given is None:
        return ""
    match = _AGAIN.fullmatch(given)
    if match is None:
        raise Refusal(400, "an Idempotency-Key is 1 to 200 letters, digits and hyphens")
    return hashlib.sha256(f"{token.id}:{match[1]}".encode()).hexdigest()


def _before(store: Store, request: Request, token: Token) -> str:
    """Return the name that the same request was answered with before."""
    key = _key(request, token)
    found = store.names.assertions_with(_KEY, key) if key else []
    return found[0].subject if found else ""


def _remember(store: Store, request: Request, token: Token, pdi: Pdi) -> None:
    if key := _key(request, token):
        store.names.say(str(pdi), _KEY, key, token.holder)


def _answer(request: Request, desk: Desk, pdi: Pdi, digest: str | None) -> Response:
    absolute = not request.scope["raw_path"].startswith(b"/pdi/")
    headers = {
        "Location": safe_text(str(pdi) if absolute else pdi_url(desk.base, str(pdi))),
        "Content-Location": safe_text(str(pdi)),
        "Cache-Control": "no-store",
    }
    facts = {"pdi": str(pdi), "url": pdi_url(desk.base, str(pdi)), "sha256": digest}
    if digest is not None:
        headers["ETag"] = f'"{digest}"'
    data = json.dumps(facts)
    return Response(data, 201, headers, media_type="application/json")
