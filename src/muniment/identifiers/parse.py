"""Reading PDIs: one by one with a diagnosis, or in bulk.

Profiles say what for: *mint* names a version of a document, *cite* a part of one, *query* may hold
wildcards, *read* takes what people and the draft itself have written, and notes it.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import islice, starmap
from typing import NoReturn

from muniment.errors import IdentifierError
from muniment.identifiers.characters import TOKEN, UNIQUE_ID, first_fault, unescape
from muniment.identifiers.countries import COUNTRIES
from muniment.identifiers.formats import default_scheme, media_type
from muniment.identifiers.fragments import (
    SCHEMES,
    Fragment,
    Position,
    Scheme,
    check_fragment,
    parse_fragment,
    parse_position,
)
from muniment.identifiers.pdi import WILDCARD, Citation, Pdi, Version
from muniment.identifiers.problems import Problem, Problems

__all__ = [
    "Diagnosis", "Profile", "diagnose", "parse_canonical", "parse_many", "parse_pdi",
    "parse_series",
]  # fmt: skip

_LONGEST, _LONGEST_SERIES, _DEEPEST = 2048, 255, 8
_COMPONENT = re.compile("[A-Za-z0-9-]{1,63}")
_VERSION = re.compile("[1-9][0-9]*")


class Profile(StrEnum):
    """What a PDI is to be used for."""

    MINT = "mint"
    CITE = "cite"
    QUERY = "query"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a text is: a PDI or none, and everything there is to say about it."""

    text: str
    pdi: Pdi | None
    problems: tuple[Problem, ...] = ()


def parse_pdi(
    text: str, profile: Profile = Profile.READ, schemes: Mapping[str, Scheme] = SCHEMES
) -> Pdi:
    """Return the PDI that a text spells, or raise IdentifierError.

    ``schemes`` are the fragment schemes that are known; a registry may have more.

    >>> str(parse_pdi("URN:PDI://OMA.eop.Gov.US/1997/09/01/1.HTML.1"))
    'pdi://oma.eop.gov.us/1997/09/01/1.html.1'
    """
    if profile is Profile.READ and (known := parse_canonical(text)) is not None:
        return known
    return _Reader(text, profile, schemes).read()


def diagnose(
    text: str, profile: Profile = Profile.READ, schemes: Mapping[str, Scheme] = SCHEMES
) -> Diagnosis:
    """Say whether a text is a PDI and what is odd about it; never raises."""
    reader = _Reader(text, profile, schemes)
    try:
        pdi = reader.read()
    except IdentifierError as error:
        problem = Problem(error.code, error.message, error.position)
        return Diagnosis(text, None, (*reader.problems.found, problem))
    return Diagnosis(text, pdi, tuple(reader.problems.found))


@lru_cache(maxsize=1024)
def parse_series(text: str) -> str:
    """Return a document series in canonical form; ``pdi://SERIES/`` is read as well."""
    if fault := first_fault(text):
        raise Problem(*fault).error()
    bare = re.sub(r"(?i)^(?:urn:)?pdi://", "", text).removesuffix("/")
    return _series(bare, 0)


# In bulk: names that are already in canonical form and have neither fragment nor citation, which is
# what archives hold, are read by one expression for many lines. Everything else goes the exact way.
_CANONICAL = re.compile(
    r"^pdi://([a-z0-9.-]+)/([0-9]{4})/([0-9]{2})/([0-9]{2})/"
    r"([A-Za-z0-9():;$_!'-]++)(?:\.([a-z0-9_:-]++)(?:\.([1-9][0-9]*+))?)?+$",
    re.MULTILINE,
)
_TOGETHER = 512  # lines
_new = tuple.__new__


def parse_many(texts: Iterable[str]) -> Iterator[Pdi]:
    """Yield the PDI of each text (profile read); the first that is none raises IdentifierError."""
    stream = iter(texts)
    while chunk := list(islice(stream, _TOGETHER)):
        yield from _parse_lines(chunk) or map(parse_pdi, chunk)


def _parse_lines(texts: list[str]) -> list[Pdi] | None:
    """Read canonical names all at once, or say with None that one of them is not canonical."""
    lines = "\n".join(texts)
    found = _CANONICAL.findall(lines)
    if len(found) != len(texts) or lines.count("\n") != len(texts) - 1:
        return None
    if max(map(len, texts)) > _LONGEST or not all(map(_good_series, {each[0] for each in found})):
        return None
    if not all(starmap(_real_date, {each[1:4] for each in found})):
        return None
    return [
        _new(Pdi, (s, y, m, d, name, token or None, int(v) if v else None, None, None))
        for s, y, m, d, name, token, v in found
    ]


def parse_canonical(text: str) -> Pdi | None:
    """Read one such name, whatever schemes there are; None says that it goes the exact way."""
    match = _CANONICAL.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        return None
    series, year, month, day, name, token, version = match.groups()
    if not _good_series(series) or not _real_date(year, month, day):
        return None
    number = int(version) if version else None
    return _new(Pdi, (series, year, month, day, name, token, number, None, None))


@lru_cache(maxsize=1 << 12)
def _good_series(text: str) -> bool:
    try:
        return _series(text, 0) == text
    except IdentifierError:
        return False


@lru_cache(maxsize=1 << 16)
def _real_date(year: str, month: str, day: str) -> bool:
    if year == "0000" or not "01" <= month <= "12":
        return False
    return 1 <= int(day) <= monthrange(int(year), int(month))[1]


# One by one


@dataclass(slots=True)
class _Reader:
    """Reads one text; ``problems`` holds what did not stop it."""

    text: str
    profile: Profile
    schemes: Mapping[str, Scheme]
    problems: Problems = field(default_factory=Problems)

    def read(self) -> Pdi:
        if len(self.text) > _LONGEST:
            self._refuse("E_LENGTH", f"a PDI has at most {_LONGEST} characters", _LONGEST)
        return self._pdi(self.text, 0, _DEEPEST)

    def _refuse(self, code: str, message: str, position: int) -> NoReturn:
        raise Problem(code, message, position).error()

    def _pdi(self, text: str, start: int, depth: int) -> Pdi:
        at = self._after_scheme(text, start)
        if fault := first_fault(text):
            code, message, position = fault
            self._refuse(code, message, start + position)
        head, mark, tail = _cut(text[at:])
        pdi = self._document(head, start + at)
        after = start + at + len(head) + 1
        if mark:
            self._check_whole(pdi, mark, after)
        if mark == "#":
            pdi = pdi._replace(fragment=self._fragment(pdi, tail, after))
        elif mark == "@":
            pdi = pdi._replace(citation=self._citation(pdi, tail, after, depth))
        else:
            self._check_plain(pdi, start + len(text), nested=start > 0)
        return pdi

    def _after_scheme(self, text: str, start: int) -> int:
        at = 4 if text[:4].lower() == "urn:" else 0
        if text[at : at + 4].lower() != "pdi:":
            self._refuse("E_SCHEME", "a PDI begins with pdi:// or urn:pdi://", start)
        if text[at + 4 : at + 6] != "//":
            message = "there are no relative PDIs: // and a document series must follow pdi:"
            self._refuse("E_RELATIVE", message, start + at + 4)
        return at + 6

    def _document(self, head: str, start: int) -> Pdi:
        parts = head.split("/")
        if len(parts) != 5:
            message = (
                f"a PDI has five parts, SERIES/YYYY/MM/DD/ID; this has {len(parts)}, "
                "and which is missing or too much is not guessed"
            )
            self._refuse("E_STRUCTURE", message, start)
        series, year, month, day, specifier = parts
        series = _series(series, start)
        if self.profile is Profile.MINT and series.rpartition(".")[2] not in COUNTRIES:
            message = f"{series.rpartition('.')[2]!r} never was a country code of ISO 3166"
            self._refuse("E_COUNTRY", message, start)
        _check_date(year, month, day, start + len(series) + 1)
        unique_id, token, version = self._specifier(specifier, start + len(head) - len(specifier))
        return Pdi(series, year, month, day, unique_id, token, version)

    def _specifier(self, text: str, start: int) -> tuple[str, str | None, Version]:
        parts = text.split(".")
        if len(parts) > 3:
            message = "an ID, a format and a version are all there can be; a literal dot is %2e"
            self._refuse("E_SPECIFIER", message, start)
        unique_id = parts[0]
        if unique_id != WILDCARD and not UNIQUE_ID.fullmatch(unique_id):
            message = f"{unique_id!r} is not a unique id; reserved characters are escaped"
            self._refuse("E_UNIQUE_ID", message, start)
        unique_id = unescape(unique_id, UNIQUE_ID)
        start += len(parts[0]) + 1
        token = self._token(parts[1], start) if len(parts) > 1 else None
        version: Version = None
        if len(parts) == 3:
            version = self._version(parts[2], start + len(parts[1]) + 1)
        return unique_id, token, version

    def _token(self, text: str, start: int) -> str:
        halves = text.split("+")
        if text != WILDCARD and not (len(halves) <= 2 and all(map(TOKEN.fullmatch, halves))):
            self._refuse("E_FORMAT", f"{text!r} is not the token of a format", start)
        return unescape(text, TOKEN).lower()

    def _version(self, text: str, start: int) -> Version:
        if text == WILDCARD:
            return WILDCARD
        if not _VERSION.fullmatch(text):
            message = f"{text!r} is not a version: a number from 1, without leading zeros"
            self._refuse("E_VERSION", message, start)
        return int(text)

    # What the profiles ask for

    def _check_plain(self, pdi: Pdi, end: int, nested: bool) -> None:
        wild = pdi.wildcards
        if wild and (nested or self.profile in (Profile.MINT, Profile.CITE)):
            message = f"no wildcard may stand here, and the {wild[0]} is one"
            self._refuse("E_WILDCARD", message.replace("_", " "), end)
        if self.profile is Profile.MINT and (pdi.format is None or pdi.version is None):
            message = "a minted PDI has a format and a version"
            self._refuse("E_MINT_NEEDS_FORMAT_VERSION", message, end)
        if nested and self.profile is Profile.CITE and pdi.version is None:
            self._refuse("E_CIT_NEEDS_VERSION", "a cited PDI has a format and a version", end)

    def _check_whole(self, pdi: Pdi, mark: str, at: int) -> None:
        """Refuse a fragment or citation where there cannot be one."""
        what, prefix = ("fragment", "E_FRAG") if mark == "#" else ("citation", "E_CIT")
        if self.profile is Profile.MINT:
            self._refuse("E_MINT_WHOLE", f"a minted PDI has no {what}", at)
        if pdi.wildcards:
            message = f"a {what} of many documents at once is refused; make a PDI for the set"
            self._refuse("E_WILDCARD", message, at)
        if pdi.format is None:
            self._refuse(f"{prefix}_NEEDS_FORMAT", f"a {what} needs a format before it", at)
        if pdi.version is None:
            if self.profile is not Profile.READ:
                self._refuse(f"{prefix}_NEEDS_VERSION", f"a {what} needs a version before it", at)
            code = "D_FRAG_NO_VERSION" if mark == "#" else "D_CIT_NO_VERSION"
            self.problems.note(code, "no version is given: version 1 is meant", at)

    @property
    def _slips(self) -> Problems | None:
        """Where to note the draft's own slips; None refuses them."""
        return self.problems if self.profile in (Profile.READ, Profile.QUERY) else None

    def _fragment(self, pdi: Pdi, text: str, at: int) -> Fragment:
        if not text:
            self._refuse("E_FRAG_SYNTAX", "nothing follows '#'", at)
        fragment = parse_fragment(text, at)
        return self._placed(fragment, media_type(pdi.format), at)

    def _placed(self, fragment: Fragment, media: str | None, at: int) -> Fragment:
        try:
            return check_fragment(fragment, media, self._slips, self.schemes)
        except IdentifierError as error:
            raise IdentifierError(error.code, error.message, error.position or at) from None

    def _citation(self, pdi: Pdi, text: str, at: int, depth: int) -> Citation:
        if depth == 0:
            self._refuse("E_DEPTH", f"citations are nested at most {_DEEPEST} deep", at)
        position, equals, cited = text.partition("=")
        if not (position and equals):
            self._refuse("E_CIT_SYNTAX", "a citation is written @POSITION=PDI", at)
        origin = _origin(parse_position(position, at), media_type(pdi.format), at)
        return Citation(origin, self._pdi(cited, at + len(position) + 1, depth - 1))


def _cut(text: str) -> tuple[str, str, str]:
    """Divide a name at its first '#' or '@'."""
    found = re.search("[#@]", text)
    if found is None:
        return text, "", ""
    return text[: found.start()], found[0], text[found.end() :]


def _series(text: str, start: int) -> str:
    *components, country = text.split(".")
    if not components or len(text) > _LONGEST_SERIES:
        message = "a document series is at least one component, a dot and a country"
        raise Problem("E_SERIES", message, start).error()
    for component in (*components, country):
        if not _COMPONENT.fullmatch(component):
            message = f"{component!r} is no component of a series: 1 to 63 letters, digits, hyphens"
            raise Problem("E_SERIES", message, start).error()
        start += len(component) + 1
    if not (len(country) == 2 and country.isalpha()):
        message = f"a series ends with a country of two letters (ISO 3166), not {country!r}"
        raise Problem("E_COUNTRY", message, start - len(country) - 1).error()
    return text.lower()


def _check_date(year: str, month: str, day: str, start: int) -> None:
    digits = (year, 4), (month, 2), (day, 2)
    for text, length in digits:
        if text != WILDCARD and not (len(text) == length and text.isascii() and text.isdigit()):
            message = f"{text!r}: a date is YYYY/MM/DD, and a wildcard stands alone"
            raise Problem("E_DATE", message, start).error()
    # A leap year of 31-day months stands in for what is open.
    real = [
        text if text != WILDCARD else open_
        for text, open_ in zip((year, month, day), ("2000", "01", "01"), strict=True)
    ]
    if not _real_date(*real):
        message = f"{year}/{month}/{day} is not a day of the calendar"
        raise Problem("E_DATE", message, start).error()


def _origin(position: Position, media: str | None, at: int) -> Position:
    """Check the origin of a citation by the default scheme of the citing document."""
    scheme = default_scheme(media)
    if media == "application/x-siard":
        return SCHEMES["cell"].check((position,), None)[0]
    if scheme == "rect":
        good = not isinstance(position, str) and len(position) in (2, 3)
        good = good and all(part.isdigit() for part in position)
    else:
        good = isinstance(position, str) and position.isdigit()
    if not good:
        message = "the origin of a citation is a position in the citing document: 103, or (10,20)"
        raise Problem("E_CIT_SYNTAX", message, at).error()
    return position
