"""How values have to be spelt on their way into DuckDB, which reads more than SIARD writes.

An archive may come from anywhere. Arrow and DuckDB take 0x10 for 16, 1_000 for 1000 and "epoch" for
a day; nobody may get another value than the archive has, so such cells are refused. What Arrow has
read is proven by the bytes that occur in a column, which costs next to nothing; a column with other
bytes is looked at cell by cell.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind, PredefinedType

__all__ = ["first_half_byte", "first_misspelt", "is_usual"]

_DIGITS = b"0123456789"
# The bytes of usual values: those of them that Arrow reads are what SIARD writes.
_BYTES = {
    Kind.INTEGER: _DIGITS + b"+-",
    Kind.DECIMAL: _DIGITS + b"+-.",
    Kind.FLOAT: _DIGITS + b"+-.eE",
    Kind.BOOLEAN: b"truefals01",
    Kind.DATE: _DIGITS + b"-",
    Kind.TIMESTAMP: _DIGITS + b"-:.T",
}
_LENGTHS = {Kind.DATE: 10, Kind.TIMESTAMP: 19}  # at least: Arrow reads times without seconds
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
_YEAR = r"(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_DAY, _CLOCK = rf"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
# Days that SIARD does not have, as DuckDB alone writes them.
_FAR_DAY = r"(?:[0-9]{4,6}-[0-9]{2}-[0-9]{2} \(BC\)|[1-9][0-9]{4,5}-[0-9]{2}-[0-9]{2})"
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_SPAN = r"[0-9]+(?:\.[0-9]+)?"
_FORMS = {
    Kind.INTEGER: r"[+-]?[0-9]+",
    Kind.DECIMAL: _NUMBER,
    Kind.FLOAT: rf"{_NUMBER}(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN",
    Kind.BOOLEAN: "true|false|1|0",
    Kind.DATE: f"{_DAY}Z?|{_FAR_DAY}|-?infinity",
    Kind.TIME: f"{_CLOCK}Z?",
    Kind.TIMESTAMP: f"{_DAY}T{_CLOCK}Z?|{_FAR_DAY} {_CLOCK}|-?infinity",
    Kind.INTERVAL: rf"[+-]?P(?:{_SPAN}[YMD])*(?:T(?:{_SPAN}[HMS])+)?",
}
_INSTANT = rf"{_FORMS[Kind.TIMESTAMP]}|{_DAY}T{_CLOCK}[+-][0-9]{{2}}:[0-9]{{2}}"
_DAYS_BEFORE = 719_162  # from the first day of the year 1 to that of 1970


def is_usual(cells: pa.ChunkedArray, values: Any, type_: PredefinedType) -> bool:
    """Whether cells, given the values that Arrow read in them, are spelt as in SIARD for certain.

    Other columns may be, too; ``first_misspelt`` tells.
    """
    if not all(_has_only(chunk, type_.kind) for chunk in cells.chunks):
        return False
    if type_.kind is Kind.FLOAT:
        return not pc.any(pc.is_inf(values)).as_py()
    if type_.kind in _LENGTHS:
        least, unit = pc.min(values), 1 if type_.kind is Kind.DATE else 86_400_000_000
        return not least.is_valid or bool(least.value >= -_DAYS_BEFORE * unit)
    return True


def first_misspelt(cells: Any, shape: Shape) -> int | None:
    """Return the number of the first cell that is not spelt as values of its type are."""
    match shape:
        case Leaf(type=type_):
            return _first_other(cells, type_)
        case Array(element):
            held = [(cells.flatten(), element)]
        case Struct(parts):
            held = list(zip(cells.flatten(), parts, strict=True))
    if all(first_misspelt(inner, kind) is None for inner, kind in held):
        return None
    if len(cells) == 1:
        return 0
    half = len(cells) // 2
    found = first_misspelt(cells.slice(0, half), shape)
    if found is not None:
        return found
    found = first_misspelt(cells.slice(half), shape)
    return None if found is None else half + found


def first_half_byte(cells: pa.ChunkedArray) -> int | None:
    """Return the number of the first cell with an odd number of characters, for hexBinary."""
    odd = pc.equal(pc.bit_wise_and(pc.binary_length(cells), 1), 1)
    found: int = pc.index(pc.fill_null(odd, False), True).as_py()
    return found if found >= 0 else None


def _first_other(cells: Any, type_: PredefinedType) -> int | None:
    form = _FORMS.get(type_.kind)
    if form is None:
        return None
    if type_.kind is Kind.TIMESTAMP and type_.name != "TIMESTAMP":
        form = _INSTANT
    chunks = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
    # DuckDB itself proves the order of these bytes.
    if type_.kind in _NUMBERS and all(_has_only(chunk, type_.kind) for chunk in chunks):
        return None
    right = pc.fill_null(pc.match_substring_regex(cells, f"^(?:{form})$"), True)
    found: int = pc.index(right, False).as_py()
    return found if found >= 0 else None


def _has_only(chunk: Any, kind: Kind) -> bool:
    """Whether a column of texts has no bytes, and no texts, but usual ones."""
    _, offsets, data = chunk.buffers()
    if not len(chunk) or data is None:
        return True
    ends = memoryview(offsets).cast("q")
    first, after = ends[chunk.offset], ends[chunk.offset + len(chunk)]
    if memoryview(data)[first:after].tobytes().translate(None, _BYTES[kind]):
        return False
    if kind not in _LENGTHS:
        return True
    shortest = pc.min(pc.binary_length(chunk)).as_py()
    return shortest is None or shortest >= _LENGTHS[kind]
