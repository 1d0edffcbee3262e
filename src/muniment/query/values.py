"""Values of answers: each kind has one spelling, on the terminal, in files and on pages."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from muniment.sql.model import Leaf, Shape

__all__ = ["interval_text", "json_value", "values_of", "with_zone"]

_EXACT_FLOAT = 1 << 53  # whole numbers up to this are the same in every JSON reader
_SECOND = 1_000_000_000  # in nanoseconds
_DAY = 86_400_000_000  # in microseconds
_ENDLESS = (1 << 63) - 1  # DuckDB's infinity, as an instant
_ENDLESS_DAY = (1 << 31) - 1


def json_value(value: Any) -> Any:
    """Return a value as JSON has it: what JSON cannot hold exactly becomes text.

    >>> json_value({"n": Decimal("1.10"), "day": date(1887, 4, 1), "x": b"\\x01"})
    {'n': '1.10', 'day': '1887-04-01', 'x': '01'}
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= _EXACT_FLOAT else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return format(value, "f")
        case datetime(tzinfo=zone) if zone is not None:
            return _instant(value.astimezone(UTC).replace(tzinfo=None).isoformat())
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta() | UUID():
            return str(value)
        case bytes():
            return value.hex().upper()
        case dict():
            return {str(name): json_value(part) for name, part in value.items()}
        case list() | tuple():
            return [json_value(part) for part in value]
    return str(value)


def with_zone(text: str, shape: Shape) -> str:
    """Return the text of a plain cell: with the Z of SIARD's files if its type has a time zone.

    >>> from muniment.sql.types import parse_type
    >>> with_zone("2024-01-01T09:00:00", Leaf(parse_type("TIMESTAMP WITH TIME ZONE")))
    '2024-01-01T09:00:00Z'
    """
    zoned = isinstance(shape, Leaf) and shape.type.name.endswith("WITH TIME ZONE")
    # What other writers put there may have a zone already, or be no time at all.
    plain = text[-1:].isdecimal() and ":" in text and "+" not in text and text[-6:-5] != "-"
    return f"{text}Z" if zoned and plain else text


def values_of(column: Any) -> list[Any]:
    """Return the values of an array, and of what is inside of complex values, as exact as they are.

    Instants to the nanosecond, which Python has none of, and intervals are text; numbers of four
    bytes are those that Python writes with their own digits.

    >>> import pyarrow
    >>> values_of(pyarrow.array([1], pyarrow.timestamp("ns")))
    ['1970-01-01T00:00:00.000000001']
    >>> values_of(pyarrow.array([[0.1], None], pyarrow.list_(pyarrow.float32())))
    [[0.1], None]
    """
    from pyarrow import types  # the first page does without

    kind = column.type
    if types.is_struct(kind):
        return _structs(column)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _lists(column)
    if types.is_map(kind):
        return _maps(column)
    if types.is_interval(kind):
        return [None if v is None else interval_text(*v) for v in column.to_pylist()]
    if types.is_float32(kind):
        return [None if text is None else float(text) for text in _texts(column)]
    if types.is_timestamp(kind):
        return _moments(column)
    if types.is_time64(kind) and kind.unit == "ns":
        return _texts(column)
    if types.is_time64(kind):
        return _times(column)
    return _within_reach(column)


def _structs(column: Any) -> list[Any]:
    names = [field.name for field in column.type]
    parts = zip(*map(values_of, column.flatten()), strict=True)
    rows = parts if names else iter([()] * len(column))
    there = column.is_valid().to_pylist()
    return [
        dict(zip(names, row, strict=True)) if valid else None
        for row, valid in zip(rows, there, strict=True)
    ]


def _lists(column: Any) -> list[Any]:
    items = iter(values_of(column.flatten()))
    sizes, there = column.value_lengths().to_pylist(), column.is_valid().to_pylist()
    return [
        [next(items) for _ in range(size)] if valid else None
        for size, valid in zip(sizes, there, strict=True)
    ]


def _maps(column: Any) -> list[Any]:
    import pyarrow as pa

    entry = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
    lists = _lists(column.cast(pa.list_(entry)))
    return [pairs and [tuple(pair.values()) for pair in pairs] for pairs in lists]


def _moments(column: Any) -> list[Any]:
    import pyarrow as pa

    zoned = column.type.tz is not None
    # Without its zone, which is UTC here, an instant needs no list of the world's time zones.
    column = column.cast(pa.timestamp(column.type.unit))
    if column.type.unit == "ns":
        texts = (t and t.replace(" ", "T") for t in _texts(column))
        return [_instant(t) if zoned and t else t for t in texts]
    values = _within_reach(column)
    return [v.replace(tzinfo=UTC) if zoned and isinstance(v, datetime) else v for v in values]


def _times(column: Any) -> list[Any]:
    """Times of day; of the last moment, which Python calls the first, the text."""
    micros = column.view("int64").to_pylist()
    values = zip(column.to_pylist(), micros, strict=True)
    return ["24:00:00" if number == _DAY else value for value, number in values]


def _within_reach(column: Any) -> list[Any]:
    """Values as Python has them; days beyond its years, and infinities, as text."""
    try:
        values: list[Any] = column.to_pylist()
        return values
    except OverflowError:
        return list(map(_one_within_reach, column))


def _one_within_reach(scalar: Any) -> Any:
    import pyarrow as pa

    try:
        return scalar.as_py()
    except OverflowError:
        if abs(scalar.value) in (_ENDLESS, _ENDLESS_DAY):
            return "infinity" if scalar.value > 0 else "-infinity"
        return scalar.cast(pa.string()).as_py()


def _texts(column: Any) -> list[str | None]:
    import pyarrow as pa

    texts: list[str | None] = column.cast(pa.string()).to_pylist()
    return texts


def _instant(text: str) -> str:
    """The text of an instant in UTC, as SIARD spells it, without zeros that say nothing."""
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "Z"


def interval_text(months: int, days: int, nanoseconds: int) -> str:
    """Return an interval as archives spell it: xs:duration, or with a sign at each part.

    >>> interval_text(14, 0, 0), interval_text(0, 3, 0), interval_text(0, 0, -1_500_000_000)
    ('P1Y2M', 'P3DT0H0M0S', '-P0DT0H0M1.5S')
    >>> interval_text(-1, 2, 0)
    'P0Y-1M2DT0H0M0S'
    """
    if months and not days and not nanoseconds:
        years, rest = divmod(abs(months), 12)
        return f"{'-' if months < 0 else ''}P{years}Y{rest}M"
    if not months and days * nanoseconds >= 0:
        sign = "-" if days < 0 or nanoseconds < 0 else ""
        return f"{sign}P{abs(days)}DT{_clock(abs(nanoseconds))}"
    years, rest = divmod(abs(months), 12)
    sign = "-" if months < 0 else ""
    year, month = (f"{sign if part else ''}{part}" for part in (years, rest))
    return f"P{year}Y{month}M{days}DT{_clock(nanoseconds)}"


def _clock(nanoseconds: int) -> str:
    sign = "-" if nanoseconds < 0 else ""
    seconds, fraction = divmod(abs(nanoseconds), _SECOND)
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    rest = f".{fraction:09}".rstrip("0").rstrip(".")
    parts = [(hours, "H"), (minutes, "M"), (f"{seconds}{rest}", "S")]
    return "".join(f"{'' if size in (0, '0') else sign}{size}{unit}" for size, unit in parts)
