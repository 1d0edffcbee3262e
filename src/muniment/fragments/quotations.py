"""Citations as quotations: does the citing document really hold the cited part there? (draft 3.5)

``A@103=B#37,51`` says that the 14 characters of B from 37 stand in A from 103. Both are cut out and
compared: characters in texts, pixels in images, samples in WAV, octets elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from muniment.errors import FragmentError, UsageError
from muniment.fragments.extract import extract
from muniment.fragments.images import open_frame
from muniment.fragments.media import WAV
from muniment.fragments.result import Extract, not_possible
from muniment.fragments.text import canonical_text
from muniment.fragments.wav import read_wav
from muniment.identifiers import Pdi
from muniment.identifiers.fragments import Fragment, Position

__all__ = ["Quotation", "check_quotation"]

OpenDocument = Callable[[Pdi], Path]


@dataclass(frozen=True, slots=True)
class Quotation:
    """The quoted part, where it stands in the citing document, and whether the two are the same."""

    citing: Pdi
    cited: Pdi
    verdict: str  # verified, differs
    place: str
    found: Extract
    expected: Extract
    inner: Quotation | None = None


def check_quotation(pdi: Pdi, open_document: OpenDocument) -> Quotation:
    """Cut out both sides of a citation and compare them; nested citations are checked, too."""
    if pdi.citation is None:
        raise UsageError(f"{pdi} is not a citation")
    cited = pdi.citation.cited
    inner = None
    source = cited
    if cited.citation is not None:
        inner = check_quotation(cited, open_document)
        expected = inner.expected
        source = inner.cited
    else:
        expected = _part(cited, open_document)
    place = _place(pdi.citation.position, source, expected, pdi.media_type)
    try:
        found = extract(open_document(pdi.document), pdi.media_type, place)
    except FragmentError as error:
        if error.status != 404:
            raise
        found = Extract("", b"", (str(error),))
    same = _same(found, expected)
    verdict = "verified" if same else "differs"
    return Quotation(pdi.document, source, verdict, f"#{place}", found, expected, inner)


def _part(pdi: Pdi, open_document: OpenDocument) -> Extract:
    path = open_document(pdi.document)
    if pdi.fragment is not None:
        return extract(path, pdi.media_type, pdi.fragment)
    media, data = pdi.media_type or "application/octet-stream", path.read_bytes()
    if media.startswith("text/"):
        kind = media.partition(";")[0]
        return Extract(f"{kind};charset=utf-8", canonical_text(data, media).encode())
    return Extract(media, data)


def _place(position: Position, cited: Pdi, part: Extract, media: str | None) -> Fragment:
    """Return the fragment of the citing document that the cited part would fill."""
    major = (media or "").partition("/")[0]
    if media == "application/x-siard":
        return Fragment("cell", (position,))
    if major == "image":
        with open_frame(part.data, part.media_type, 0) as image:
            width, height = image.size
        x, y, frame = (*position, "0")[:3]
        corner = (str(int(x) + width), str(int(y) + height))
        return Fragment("rect", ((x, y), corner, frame))
    start = int(str(position))
    if major == "text":
        size = len(part.data.decode("utf-8", "surrogatepass"))
        return Fragment("char", (str(start), str(start + size)))
    if major in ("audio", "video"):
        return _time(start, cited)
    return Fragment("byte", (str(start), str(start + len(part.data))))


def _time(start: int, cited: Pdi) -> Fragment:
    if cited.fragment is None:
        raise not_possible("the length of a whole recording is not known; cite an interval of it")
    meant = cited._functional().fragment
    assert meant is not None
    positions = meant.positions[1:3] if meant.scheme == "crop" else meant.positions
    unit = str(meant.positions[0]) if meant.scheme == "crop" else meant.scheme
    length = int(str(positions[1])) - int(str(positions[0]))
    if unit == "msec":
        return Fragment("msec", (str(1000 * start), str(1000 * start + length)))
    return Fragment("sec", (str(start), str(start + length)))


def _same(one: Extract, other: Extract) -> bool:
    if one.data == other.data:
        return one.null == other.null
    if one.media_type.startswith("image/") and other.media_type.startswith("image/"):
        with open_frame(one.data, one.media_type, 0) as a, open_frame(other.data, "", 0) as b:
            return bool(a.convert("RGBA").tobytes() == b.convert("RGBA").tobytes())
    if one.media_type in WAV and other.media_type in WAV:
        return read_wav(one.data) == read_wav(other.data)
    return False
