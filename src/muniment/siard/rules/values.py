"""Values against their SQL types, twice: as expressions that prove whole rows, and one by one.

``proof`` gives an expression for the bytes between two tags. What it matches is valid, for the SQL
type and for the XML type alike; what it does not match may still be valid, and ``fault`` decides.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from functools import lru_cache
from math import isinf

from muniment.siard.rules.tablexsd import Definition
from muniment.sql.types import Kind, PredefinedType

__all__ = ["Fault", "fault", "proof"]

Fault = tuple[str, str]  # the rule, and what is wrong

_RANGES = {"SMALLINT": 1 << 15, "INTEGER": 1 << 31, "BIGINT": 1 << 63}

# XML types that hold every value that the expression of a kind matches.
_HOLDERS = {
    Kind.INTEGER: {"xs:integer", "xs:decimal"},
    Kind.DECIMAL: {"xs:decimal"},
    Kind.FLOAT: {"xs:double", "xs:float"},
    Kind.BOOLEAN: {"xs:boolean"},
    Kind.TEXT: {"xs:string", "clobType"},
    Kind.BINARY: {"xs:hexBinary", "blobType"},
    Kind.DATE: {"dateType", "xs:date"},
    Kind.TIME: {"timeType", "xs:time"},
    Kind.TIMESTAMP: {"dateTimeType", "xs:dateTime"},
    Kind.INTERVAL: {"xs:duration"},
}

_ESCAPE = rb"\\u[0-9A-Fa-f]{4}"
_ENTITY = rb"&(?:amp|lt|gt|quot|apos);"
_ASCII = rb"[^<&\\\x80-\xff]"
_WIDE = rb"[\xc2-\xf4][\x80-\xbf]{1,3}+"
_LEAP = rb"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    rb"(?:[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    rb"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)|" + _LEAP + rb"-02-29)"
)
_CLOCK = rb"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_FIELDS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


def proof(type_: PredefinedType, xml: str, definition: Definition | None) -> bytes | None:
    """Return an expression for what stands between the tags, or None if there is none."""
    if xml not in _HOLDERS.get(type_.kind, ()):
        return None
    match type_.kind:
        case Kind.INTEGER:
            return rb"-?+(?:" + _up_to(_RANGES[type_.name] - 1) + rb")"
        case Kind.DECIMAL:
            return _decimal(type_)
        case Kind.FLOAT:
            return (
                rb"(?:[+-]?+(?:[0-9]{1,20}+(?:\.[0-9]{0,20}+)?+|\.[0-9]{1,20}+)"
                rb"(?:[eE](?:-[0-9]{1,3}+|\+?+(?:1[0-9]{2}|2[0-7][0-9]|[0-9]{1,2})))?+|-?+INF|NaN)"
            )
        case Kind.BOOLEAN:
            return rb"(?:true|false|[01])"
        case Kind.TEXT:
            return _text(type_.length)
        case Kind.BINARY:
            most = _limit(type_.length)
            limit = b"" if most is None else b"%d" % most
            return rb"(?:[0-9A-Fa-f]{2}){0," + limit + rb"}+"
        case Kind.INTERVAL:
            return _interval(type_)
    return _temporal(type_, xml, definition)


def _up_to(highest: int) -> bytes:
    """Match numbers from 0 to ``highest`` without needless zeros; 0-9 in every place below it."""
    digits = str(highest)
    choices = [f"[0-9]{{1,{len(digits) - 1}}}+(?![0-9])"]
    for place, digit in enumerate(digits):
        rest = len(digits) - place - 1
        lowest = 0 if place else 1
        if int(digit) > lowest:
            choices.append(f"{digits[:place]}[{lowest}-{int(digit) - 1}][0-9]{{{rest}}}")
    return "|".join([*choices, digits]).encode()


def _decimal(type_: PredefinedType) -> bytes:
    if type_.length is None:
        return rb"-?+[0-9]{1,38}+(?:\.[0-9]{1,38}+)?+"
    scale = type_.scale or 0
    whole = type_.length - scale
    fraction = rb"(?:\.[0-9]{1,%d}+)?+" % scale if scale else b""
    return rb"-?+" + (rb"[0-9]{1,%d}+" % whole if whole > 0 else rb"0") + fraction


@dataclass(frozen=True, slots=True)
class _Qualifier:
    """The fields of an INTERVAL, first and last, and the digits that they may have."""

    first: str
    last: str
    lead: int | None
    fraction: int | None

    def digits(self, field: str) -> int | None:
        """How many digits a field may have; None if nobody said."""
        if _FIELDS.index(field) > _FIELDS.index(self.last):
            return 0
        return self.lead if field == self.first else None


@lru_cache
def _qualifier(type_: PredefinedType) -> _Qualifier:
    first, _, last = type_.interval.partition(" TO ")
    name, _, numbers = first.rstrip(")").partition("(")
    lead, _, fraction = numbers.partition(",")
    end, _, digits = last.rstrip(")").partition("(")
    fraction = digits or fraction
    return _Qualifier(
        name, end or name, int(lead) if lead else None, int(fraction) if fraction else None
    )


def _interval(type_: PredefinedType) -> bytes:
    """Match durations of the fields that the type has, in their order."""
    qualifier = _qualifier(type_)
    fields = {}
    for field in _FIELDS:
        most = qualifier.digits(field)
        fields[field] = b"[0-9]{1,%d}+" % min(9, most) if most else b"[0-9]{1,9}+"
        if most == 0:
            fields[field] = b"0"
    if _counts_months(type_):
        return rb"-?+P(?=[0-9])(?:%bY)?+(?:%bM)?+" % (fields["YEAR"], fields["MONTH"])
    most = 9 if qualifier.fraction is None else min(9, qualifier.fraction)
    fraction = rb"(?:\.[0-9]{1,%d}+)?+" % most if most else b""
    return rb"-?+P(?=[0-9T])(?:%bD)?+(?:T(?=[0-9])(?:%bH)?+(?:%bM)?+(?:%b%bS)?+)?+" % (
        fields["DAY"], fields["HOUR"], fields["MINUTE"], fields["SECOND"], fraction,
    )  # fmt: skip


def _limit(length: int | None) -> int | None:
    """A limit that matters: rows have one of their own, so none is beyond it."""
    return None if length is None or length > 1 << 28 else length


def _text(length: int | None) -> bytes:
    length = _limit(length)
    if length is None:
        return rb"(?:[^<&\\]++|" + _ENTITY + rb"|" + _ESCAPE + rb")*+"
    each = rb"(?:" + rb"|".join((_ASCII, _WIDE, _ENTITY, _ESCAPE)) + rb"){0,%d}+" % length
    return rb"(?:[^<&\\]{0,%d}+(?=<)|" % length + each + rb")"


# What the makers of archives write; anything else is left to the XML parser.
_LOW = {"dateType": "0001-01-01", "dateTimeType": "0001-01-01T00:00:00.000000000"}
_HIGH = {"dateType": "10000-01-01", "dateTimeType": "10000-01-01T00:00:00.000000000"}
_PATTERNS = {
    r"\d{4}-\d{2}-\d{2}Z?": b"",
    r"\d{2}:\d{2}:\d{2}Z?": b"",
    r"\d{2}:\d{2}:\d{2}(\.\d+)?Z?": rb"(?:\.[0-9]{1,%d}+)?+",
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z?": rb"(?:\.[0-9]{1,%d}+)?+",
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d*)Z?": rb"\.[0-9]{1,%d}+",
}


def _temporal(type_: PredefinedType, xml: str, definition: Definition | None) -> bytes | None:
    fraction: bytes | None = rb"(?:\.[0-9]{1,%d}+)?+"
    if definition is not None:
        patterns = [value for facet, value in definition.facets if facet == "pattern"]
        fraction = _PATTERNS.get(patterns[0]) if len(patterns) == 1 else None
        known = {"pattern", "minInclusive", "maxExclusive"}
        base = {"dateType": "xs:date", "timeType": "xs:time", "dateTimeType": "xs:dateTime"}
        if definition.base != base[xml] or not {f for f, _ in definition.facets} <= known:
            return None
    elif not xml.startswith("xs:"):
        return None
    if fraction is None:
        return None
    if b"%d" in fraction:
        fraction = fraction % min(9, type_.length if type_.length is not None else 9)
        if type_.length == 0:
            return None
    if type_.kind is Kind.TIME:
        return _CLOCK + fraction + rb"Z?+"
    shape = _DAY if type_.kind is Kind.DATE else _DAY + b"T" + _CLOCK + fraction
    # Where a limit and a value differ in having a zone, they cannot be compared near the limit.
    inner = rb"(?!0000|0001|9999)" + shape
    facets = dict(definition.facets) if definition is not None else {}
    low, high = _LOW.get(xml), _HIGH.get(xml)
    if (
        facets
        and facets.get("minInclusive") == f"{low}Z"
        and facets.get("maxExclusive") == f"{high}Z"
    ):
        return rb"(?:(?!0000)" + shape + rb"Z|" + inner + rb")"
    if facets and not {facets.get("minInclusive"), facets.get("maxExclusive")} <= {
        f"{low}Z", low, f"{high}Z", high, "9999-12-31Z", "9999-12-31T23:59:59.9999999Z",
    }:  # fmt: skip
        return None
    return inner + rb"Z?+"


# One by one

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?=[0-9.])0*([0-9]*)(?:\.([0-9]*))?")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_MOMENT = re.compile(
    r"(?:(?P<year>-?[0-9]{4,})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2}))?(?P<t>T)?"
    r"(?:(?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<fraction>[0-9]*))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
)
_DURATION = re.compile(
    r"-?P(?=[0-9T])(?:(?P<YEAR>[0-9]+)Y)?(?:(?P<MONTH>[0-9]+)M)?(?:(?P<DAY>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<HOUR>[0-9]+)H)?(?:(?P<MINUTE>[0-9]+)M)?"
    r"(?:(?P<SECOND>[0-9]+)(?:\.(?P<fraction>[0-9]+))?S)?)?"
)
_CLOCK_TEXT = re.compile(_CLOCK.decode())
_SHOWN = 40


def fault(type_: PredefinedType, text: str, xml: str) -> Fault | None:
    """Return what is wrong with a value, which is already free of escapes."""
    kind = type_.kind
    if kind is Kind.TEXT:
        if type_.length is not None and len(text) > type_.length:
            return _wrong(f"{len(text)} characters in {type_}")
        return None
    if kind is Kind.BINARY:
        return _binary_fault(type_, text.strip()) if xml != "clobType" else None
    if kind is Kind.DATALINK:
        return None
    text = text.strip(" \t\r\n")
    if not text:
        return "T_6.4-3", f"an empty {type_}; NULL would be left out"
    if kind in _TESTS:
        return _TESTS[kind](type_, text)
    return _moment_fault(type_, text)


def _wrong(message: str) -> Fault:
    return "T_6.0-1", message


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _binary_fault(type_: PredefinedType, text: str) -> Fault | None:
    if not _HEX.fullmatch(text):
        return _wrong(f"{_shown(text)} is not hexadecimal")
    if type_.length is not None and len(text) > 2 * type_.length:
        return _wrong(f"{len(text) // 2} bytes in {type_}")
    return None


def _integer_fault(type_: PredefinedType, text: str) -> Fault | None:
    if not _INTEGER.fullmatch(text):
        return _wrong(f"{_shown(text)} is not an integer")
    limit, digits = _RANGES[type_.name], text.lstrip("+-").lstrip("0")
    if len(digits) > 20 or not -limit <= int(text) < limit:
        return _wrong(f"{_shown(text)} is out of the range of {type_}")
    return None


def _decimal_fault(type_: PredefinedType, text: str) -> Fault | None:
    match = _DECIMAL.fullmatch(text)
    if not match:
        return _wrong(f"{_shown(text)} is not a decimal number")
    if type_.length is None:
        return None
    whole, fraction, scale = match[1], (match[2] or "").rstrip("0"), type_.scale or 0
    if len(whole) > type_.length - scale or len(fraction) > scale:
        return _wrong(f"{_shown(text)} has more digits than {type_}")
    return None


def _float_fault(type_: PredefinedType, text: str) -> Fault | None:
    if not _FLOAT.fullmatch(text):
        return _wrong(f"{_shown(text)} is not a number")
    if "INF" not in text and isinf(float(text)):
        return _wrong(f"{_shown(text)} is out of the range of {type_}")
    return None


def _boolean_fault(type_: PredefinedType, text: str) -> Fault | None:
    ok = text in ("true", "false", "0", "1")
    return None if ok else _wrong(f"{_shown(text)} is neither true nor false")


def _interval_fault(type_: PredefinedType, text: str) -> Fault | None:
    match = _DURATION.fullmatch(text)
    if not match:
        return _wrong(f"{_shown(text)} is not a duration")
    found = {field: (match[field] or "").lstrip("0") for field in _FIELDS}
    fraction, qualifier = (match["fraction"] or "").rstrip("0"), _qualifier(type_)
    months = _counts_months(type_)
    for field, digits in found.items():
        if digits and (field in ("YEAR", "MONTH")) is not months:
            return _wrong(f"{_shown(text)} does not fit into {type_}")
        most = qualifier.digits(field)
        if most is not None and len(digits) > most:
            return _wrong(f"{_shown(text)} has more than {type_} has room for")
    if fraction and (months or qualifier.last != "SECOND"):
        return _wrong(f"{_shown(text)} does not fit into {type_}")
    if qualifier.fraction is not None and len(fraction) > qualifier.fraction:
        return _wrong(f"{_shown(text)} has more digits than {type_}")
    return None


@lru_cache
def _counts_months(type_: PredefinedType) -> bool:
    return _qualifier(type_).first in ("YEAR", "MONTH")


_TESTS = {
    Kind.INTEGER: _integer_fault,
    Kind.DECIMAL: _decimal_fault,
    Kind.FLOAT: _float_fault,
    Kind.BOOLEAN: _boolean_fault,
    Kind.INTERVAL: _interval_fault,
}


def _moment_fault(type_: PredefinedType, text: str) -> Fault | None:
    match = _MOMENT.fullmatch(text)
    dated, clocked = type_.kind is not Kind.TIME, type_.kind is not Kind.DATE
    if not match or (match["year"] is not None) != dated or bool(match["clock"]) != clocked:
        return _wrong(f"{_shown(text)} is not a value of {type_}")
    if bool(match["t"]) != (dated and clocked):
        return _wrong(f"{_shown(text)} is not a value of {type_}")
    if match["zone"] not in (None, "Z", "+00:00", "-00:00"):
        return "T_6.3-2", f"{_shown(text)} is not in UTC"
    if dated and (problem := _date_fault(int(match["year"]), match)):
        return problem[0], f"{_shown(text)} {problem[1]}"
    if clocked and not _CLOCK_TEXT.fullmatch(match["clock"]):
        return _wrong(f"{_shown(text)} has no such time of day")
    fraction = (match["fraction"] or "").rstrip("0")
    if type_.length is not None and len(fraction) > type_.length:
        return _wrong(f"{_shown(text)} has more digits than {type_}")
    return None


def _date_fault(year: int, match: re.Match[str]) -> Fault | None:
    if not 1 <= year <= 9999:
        return "T_6.3-1", "is not of the years 0001 to 9999"
    month, day = int(match["month"]), int(match["day"])
    if not 1 <= month <= 12 or not 1 <= day <= monthrange(year, month)[1]:
        return _wrong("is no day of the calendar")
    return None
