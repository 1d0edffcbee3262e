"""Python values of database drivers, to and from SIARD's text: exact, or None for "has no place".

For products without a bulk path of their own. Each direction is a table from the kind of an SQL
type to a function; a value that a type cannot hold exactly gives None, and the caller says which.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from muniment.sql.types import Kind, PredefinedType

__all__ = ["text_of", "value_of"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?)")
_DAY = timedelta(days=1)


def text_of(type_: PredefinedType, value: Any) -> str | None:
    """Return a value that is not NULL in SIARD's lexical form; None if the type cannot hold it.

    >>> from muniment.sql.types import parse_type
    >>> text_of(parse_type("DECIMAL(5,2)"), 1.5), text_of(parse_type("DECIMAL(5,2)"), 1.555)
    ('1.5', None)
    """
    return _TEXTS[type_.kind](type_, value)


def _integer(_: PredefinedType, value: Any) -> str | None:
    if isinstance(value, bool | int):
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return str(int(value))
    return None


def _decimal(type_: PredefinedType, value: Any) -> str | None:
    if isinstance(value, float):
        value = Decimal(repr(value))  # the shortest text that is this number
    if isinstance(value, int):
        value = Decimal(value)
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = type_.scale or 0
    kept = value.normalize() if -exponent > scale else value
    places = max(0, -int(kept.as_tuple().exponent))
    whole = len(digits) + exponent
    if type_.length is not None and (places > scale or whole > type_.length - scale):
        return None
    return f"{kept:f}"


def _float(_: PredefinedType, value: Any) -> str | None:
    if isinstance(value, int | Decimal):
        number = float(value)
        if number != value:
            return None
        value = number
    if not isinstance(value, float):
        return None
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"


def _boolean(_: PredefinedType, value: Any) -> str | None:
    if isinstance(value, int) and value in (0, 1):
        return "true" if value else "false"
    return None


def _text(type_: PredefinedType, value: Any) -> str | None:
    if isinstance(value, str):
        fits = type_.length is None or type_.large or len(value) <= type_.length
        return value if fits else value.rstrip(" ") if type_.name in ("CHAR", "NCHAR") else None
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return None


def _binary(_: PredefinedType, value: Any) -> str | None:
    return bytes(value).hex().upper() if isinstance(value, bytes | bytearray | memoryview) else None


def _date(_: PredefinedType, value: Any) -> str | None:
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else None
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str) and _DATE.fullmatch(value) else None


def _time(_: PredefinedType, value: Any) -> str | None:
    if isinstance(value, timedelta):
        if not timedelta() <= value < _DAY:
            return None
        value = (datetime.min + value).time()
    if isinstance(value, time):
        return value.isoformat() if value.tzinfo is None else None
    return value if isinstance(value, str) and _TIME.fullmatch(value) else None


def _moment(type_: PredefinedType, value: Any) -> str | None:
    if isinstance(value, datetime):
        zoned = type_.name.endswith("ZONE")
        if zoned != (value.tzinfo is not None):
            return None
        return (value.astimezone(UTC) if zoned else value).replace(tzinfo=None).isoformat()
    match = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    return f"{match[1]}T{match[2]}" if match else None


def _never(_: PredefinedType, value: Any) -> None:
    return None


_TEXTS: dict[Kind, Callable[[PredefinedType, Any], str | None]] = {
    Kind.INTEGER: _integer,
    Kind.DECIMAL: _decimal,
    Kind.FLOAT: _float,
    Kind.BOOLEAN: _boolean,
    Kind.TEXT: _text,
    Kind.BINARY: _binary,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _moment,
    Kind.INTERVAL: _never,
    Kind.DATALINK: _text,
}


def value_of(type_: PredefinedType, text: str) -> Any:
    """Return the Python value of a cell that is not NULL; None if Python has none that is exact."""
    try:
        value = _VALUES.get(type_.kind, str)(text)
    except (ValueError, KeyError, InvalidOperation, OverflowError):
        return None
    zoned = type_.kind is Kind.TIMESTAMP and type_.name.endswith("ZONE")
    return value.replace(tzinfo=UTC) if zoned else value


def _whole_microseconds(text: str) -> str:
    """Digits beyond the sixth would be lost unless they are zeros."""
    head, point, fraction = text.partition(".")
    if fraction[6:].strip("0"):
        raise ValueError(text)
    return head + point + fraction[:6]


_VALUES: dict[Kind, Callable[[str], Any]] = {
    Kind.INTEGER: int,
    Kind.DECIMAL: Decimal,
    Kind.FLOAT: lambda text: float(text.replace("INF", "inf")),
    Kind.BOOLEAN: lambda text: {"true": True, "1": True, "false": False, "0": False}[text],
    Kind.BINARY: bytes.fromhex,
    Kind.DATE: date.fromisoformat,
    Kind.TIME: lambda text: time.fromisoformat(_whole_microseconds(text)),
    Kind.TIMESTAMP: lambda text: datetime.fromisoformat(_whole_microseconds(text)),
}
