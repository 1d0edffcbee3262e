"""Values of answers as JSON has them."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

__all__ = ["json_value", "values_of"]

_EXACT_FLOAT = 1 << 53  # whole numbers up to this are the same in every JSON reader


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


def values_of(column: Any) -> list[Any]:
    """Return the values of an array; instants to the nanosecond, which Python has none of, as text.

    >>> import pyarrow
    >>> values_of(pyarrow.array([1], pyarrow.timestamp("ns")))
    ['1970-01-01T00:00:00.000000001']
    """
    import pyarrow as pa  # the first page does without
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        text = pc.cast(column, pa.timestamp("ns")).cast(pa.string())
        column = pc.replace_substring(text, " ", "T")
    elif pa.types.is_time64(column.type) and column.type.unit == "ns":
        column = column.cast(pa.string())
    values: list[Any] = column.to_pylist()
    return values
