"""Fragments: the part of a document that a PDI names (draft 3).

``#`` [scheme ``=``] position *( ``,`` position ). Positions are read without regard to the scheme,
then checked by it: how many there are, what they may be, and for which media types. A scheme is a
row of SCHEMES; those for archived databases are in ``database_parts``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muniment.identifiers import database_parts
from muniment.identifiers.characters import NAME_POSITION, POSITION, unescape
from muniment.identifiers.formats import default_scheme
from muniment.identifiers.problems import Problem, Problems

__all__ = [
    "SCHEMES", "Fragment", "Position", "Scheme", "check_fragment", "format_position",
    "functional_fragment", "parse_fragment", "parse_position",
]  # fmt: skip

Position = str | tuple[str, ...]
_SCHEME = re.compile("[A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Fragment:
    """A scheme, or None where it was left out, and its positions in canonical spelling."""

    scheme: str | None
    positions: tuple[Position, ...]

    def __str__(self) -> str:
        scheme = f"{self.scheme}=" if self.scheme else ""
        return scheme + ",".join(map(format_position, self.positions))

    def meant(self, media: str | None) -> str | None:
        """Return the scheme, also where it was left out or set off by a comma (D_SEC_COMMA)."""
        if self.scheme:
            return self.scheme
        first = self.positions[0] if len(self.positions) == 3 else None
        timed = default_scheme(media) == "sec" and first in ("sec", "msec")
        return str(first) if timed else default_scheme(media)


def format_position(position: Position) -> str:
    """Return a position as it is written."""
    return position if isinstance(position, str) else f"({','.join(position)})"


def parse_fragment(text: str, offset: int) -> Fragment:
    """Read what follows ``#``; ``offset`` is where it begins in the whole name."""
    head, equals, rest = text.partition("=")
    scheme = None
    if equals:
        if not _SCHEME.fullmatch(head):
            raise Problem(
                "E_FRAG_SYNTAX", f"{head!r} is not the name of a fragment scheme", offset
            ).error()
        scheme, text, offset = head.lower(), rest, offset + len(head) + 1
    allowed = NAME_POSITION if scheme == "name" else POSITION
    if scheme == "name":
        positions: list[Position] = [_item(item, allowed, offset) for item in text.split(",")]
    else:
        positions = _positions(text, offset)
    return Fragment(scheme, tuple(positions))


def parse_position(text: str, offset: int) -> Position:
    """Read one position, for the origin of a citation."""
    positions = _positions(text, offset)
    if len(positions) != 1:
        raise Problem("E_CIT_SYNTAX", "a citation has one origin position", offset).error()
    return positions[0]


def _positions(text: str, offset: int) -> list[Position]:
    """Read positions that may be groups in parentheses."""
    positions: list[Position] = []
    at = 0
    while True:
        if text[at : at + 1] == "(":
            end = text.find(")", at)
            if end < 0:
                raise Problem(
                    "E_FRAG_SYNTAX", "')' is missing: the name was cut short", offset + len(text)
                ).error()
            inner = text[at + 1 : end].split(",")
            positions.append(tuple(_item(item, POSITION, offset + at) for item in inner))
            at = end + 1
        else:
            end = text.find(",", at)
            end = len(text) if end < 0 else end
            positions.append(_item(text[at:end], POSITION, offset + at))
            at = end
        if at == len(text):
            return positions
        if text[at] != ",":
            message = f"{text[at]!r} cannot stand between positions"
            raise Problem("E_FRAG_SYNTAX", message, offset + at).error()
        at += 1


def _item(text: str, allowed: re.Pattern[str], offset: int) -> str:
    if not allowed.fullmatch(text):
        what = f"{text!r} is not a position" if text else "a position is missing"
        raise Problem("E_FRAG_SYNTAX", what, offset).error()
    return unescape(text, allowed)


# The schemes


@dataclass(frozen=True, slots=True)
class Scheme:
    """What one fragment scheme may be used for, and how its positions are checked and completed."""

    name: str
    title: str
    media: tuple[str, ...]  # beginnings of media types; "" is every one
    check: Callable[[tuple[Position, ...], Problems | None], tuple[Position, ...]]
    functional: Callable[[tuple[Position, ...]], tuple[Position, ...]] = tuple

    def fits(self, media: str | None) -> bool:
        """Whether parts of such documents can be named this way."""
        known = media or "?"
        return any(known.startswith(start) or start in ("", known) for start in self.media)


def check_fragment(
    fragment: Fragment,
    media: str | None,
    problems: Problems | None = None,
    schemes: Mapping[str, Scheme] | None = None,
) -> Fragment:
    """Return the fragment in canonical case, or raise what is wrong with it.

    With ``problems`` the draft's own slips are read and noted; without, they are refused.
    """
    known = SCHEMES if schemes is None else schemes
    name = fragment.scheme or default_scheme(media)
    if name is None:
        message = f"there is no default fragment scheme for {media or 'this format'}; name one"
        raise Problem("E_FRAG_SCHEME_REQUIRED", message).error()
    if name not in known:
        message = f"the fragment scheme {name!r} is not registered"
        raise Problem("E_FRAG_SCHEME_UNKNOWN", message).error()
    scheme = known[name]
    if not scheme.fits(media):
        message = f"the scheme {name!r} is not defined for {media or 'this format'}"
        raise Problem("E_FRAG_SCHEME_FORMAT", message).error()
    if problems is not None and fragment.scheme is None and (unit := fragment.meant(media)) != name:
        return _sec_with_a_comma(fragment, str(unit), problems)
    if problems is not None and fragment.scheme is None and fragment.positions[0] == "sec":
        return _sec_with_a_comma(fragment, "sec", problems)
    return Fragment(fragment.scheme, scheme.check(fragment.positions, problems))


def _sec_with_a_comma(fragment: Fragment, unit: str, problems: Problems) -> Fragment:
    _interval(fragment.positions[1:], problems)
    problems.note("D_SEC_COMMA", f"'#{unit},' is read as '#{unit}='")
    return fragment


def functional_fragment(fragment: Fragment, media: str | None) -> Fragment:
    """Return the fragment with everything filled in that its meaning implies (I-25)."""
    name = fragment.meant(media)
    positions = fragment.positions
    if fragment.scheme is None and positions[0] == name:
        positions = positions[1:]
    if name == "crop" and len(positions) == 3:
        name, positions = str(positions[0]), positions[1:]
    if name is None or name not in SCHEMES:
        return Fragment(name, positions)
    return Fragment(name, SCHEMES[name].functional(positions))


def _digits(position: Position) -> int:
    if not (isinstance(position, str) and position.isascii() and position.isdigit()):
        message = f"{format_position(position)!r} is not a number"
        raise Problem("E_FRAG_SYNTAX", message).error()
    return int(position)


def _interval(
    positions: tuple[Position, ...], _problems: Problems | None = None
) -> tuple[Position, ...]:
    if len(positions) != 2:
        raise Problem("E_FRAG_SYNTAX", "a start and an end are needed").error()
    start, end = map(_digits, positions)
    if end < start:
        raise Problem("E_FRAG_RANGE", f"the end {end} lies before the start {start}").error()
    return positions


def _names(positions: tuple[Position, ...], _problems: Problems | None) -> tuple[Position, ...]:
    if len(positions) != 2:
        raise Problem("E_FRAG_SYNTAX", "two names are needed, of the start and the end").error()
    return positions


def _point(position: Position) -> tuple[int, int]:
    if isinstance(position, str) or len(position) != 2:
        message = f"{format_position(position)!r} is not a point (x,y)"
        raise Problem("E_FRAG_SYNTAX", message).error()
    return _digits(position[0]), _digits(position[1])


def _rectangle(positions: tuple[Position, ...]) -> None:
    (left, top), (right, bottom) = map(_point, positions)
    if right <= left or bottom <= top:
        raise Problem("E_FRAG_RANGE", "the rectangle is empty").error()


def _rect(positions: tuple[Position, ...], _problems: Problems | None) -> tuple[Position, ...]:
    if len(positions) not in (2, 3):
        raise Problem("E_FRAG_SYNTAX", "two corners are needed, and perhaps a frame").error()
    _rectangle(positions[:2])
    for frame in positions[2:]:
        _digits(frame)
    return positions


def _crop(positions: tuple[Position, ...], _problems: Problems | None) -> tuple[Position, ...]:
    if len(positions) not in (3, 5) or not isinstance(positions[0], str):
        message = "a unit, a start and an end are needed, and perhaps two corners"
        raise Problem("E_FRAG_SYNTAX", message).error()
    unit = positions[0].lower()
    if unit not in ("sec", "msec"):
        raise Problem("E_FRAG_SYNTAX", f"{positions[0]!r} is not a unit of time").error()
    _interval(positions[1:3])
    if len(positions) == 5:
        _rectangle(positions[3:])
    return (unit, *positions[1:])


def _plain_number(position: Position) -> Position:
    return str(int(position)) if isinstance(position, str) and position.isdigit() else position


def _plain_numbers(positions: tuple[Position, ...]) -> tuple[Position, ...]:
    return tuple(
        _plain_number(p) if isinstance(p, str) else tuple(str(int(n)) for n in p) for p in positions
    )


def _with_frame(positions: tuple[Position, ...]) -> tuple[Position, ...]:
    return (*_plain_numbers(positions[:2]), _plain_number((*positions, "0")[2]))


_MARKUP = (
    "text/html", "text/xml", "text/sgml", "application/xml", "application/xhtml+xml",
    "image/svg+xml", "application/rdf+xml",
)  # fmt: skip


def _scheme_table() -> dict[str, Scheme]:
    own = [
        Scheme(
            "char", "characters of the CRLF form", ("text/", *_MARKUP), _interval, _plain_numbers
        ),
        Scheme("elt", "elements, counted from 0", _MARKUP, _interval, _plain_numbers),
        Scheme("name", "elements by their name attribute", ("text/html",), _names),
        Scheme("rect", "a rectangle of pixels", ("image/",), _rect, _with_frame),
        Scheme("sec", "seconds", ("audio/", "video/"), _interval, _plain_numbers),
        Scheme("msec", "milliseconds", ("audio/", "video/"), _interval, _plain_numbers),
        Scheme("crop", "time and rectangle", ("video/",), _crop, _plain_numbers),
        Scheme("byte", "octets", ("",), _interval, _plain_numbers),
    ]
    parts = [
        Scheme(name, title, ("application/x-siard",), check, functional)
        for name, title, check, functional in database_parts.SCHEMES
    ]
    return {scheme.name: scheme for scheme in (*own, *parts)}


SCHEMES: Mapping[str, Scheme] = _scheme_table()
