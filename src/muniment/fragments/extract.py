"""One function for all schemes: octets and a fragment in, the part out."""

from __future__ import annotations

from pathlib import Path

from muniment.errors import FragmentError
from muniment.fragments import database, text
from muniment.fragments.result import Extract, not_possible, out_of_range
from muniment.identifiers.fragments import Fragment, functional_fragment

__all__ = ["Extract", "extract"]

_IN_MEMORY = 512 << 20  # octets of a document that is not read as a stream


def extract(
    path: Path, media: str | None, fragment: Fragment, wanted: str = "", strict: bool = False
) -> Extract:
    """Return a part of the document in a file.

    ``wanted`` is the media type in which parts of databases are given; ``strict`` refuses parts of
    markup that are not whole elements, as whoever creates a citation must.
    """
    meant = functional_fragment(fragment, media)
    if meant.scheme == "byte":
        return _octets(path, *_interval(meant))
    if media == "application/x-siard":
        return database.extract(path, meant, wanted)
    if path.stat().st_size > _IN_MEMORY:
        raise not_possible(f"{path.name} is too large for parts by {meant.scheme}; use byte")
    return extract_bytes(path.read_bytes(), media, meant, strict)


def extract_bytes(data: bytes, media: str | None, fragment: Fragment, strict: bool) -> Extract:
    """Return a part of a document in memory; the fragment is in its functional form."""
    from muniment.fragments import images, markup
    from muniment.fragments import media as timed

    known = media or "application/octet-stream"
    match fragment.scheme:
        case "byte":
            start, end = _interval(fragment)
            if end > len(data):
                raise out_of_range(f"octet {end} lies behind the end: there are {len(data)}")
            return Extract("application/octet-stream", data[start:end])
        case "char":
            return text.characters(data, known, *_interval(fragment))
        case "elt" | "name":
            return markup.elements(data, known, fragment, strict)
        case "rect":
            return images.rectangle(data, known, fragment)
        case "sec" | "msec" | "crop":
            return timed.interval(data, known, fragment)
    message = f"the scheme {fragment.scheme} is not for documents of {known}"
    raise FragmentError(message, 501, "E_FRAG_SCHEME_FORMAT")


def _interval(fragment: Fragment) -> tuple[int, int]:
    start, end = fragment.positions
    return int(str(start)), int(str(end))


def _octets(path: Path, start: int, end: int) -> Extract:
    size = path.stat().st_size
    if end > size:
        raise out_of_range(f"octet {end} lies behind the end: there are {size}")
    if end - start > _IN_MEMORY:
        raise not_possible(f"{end - start} octets are too many at once; ask for less")
    with path.open("rb") as stream:
        stream.seek(start)
        return Extract("application/octet-stream", stream.read(end - start))
