"""The types of Access: what they are in SQL:2008, and how mdbtools' text becomes theirs."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable

from muniment.databases.mapping import TypeRow
from muniment.sql.types import PredefinedType, parse_type

__all__ = ["TYPES", "converter", "sql_type"]

_SIXTEEN = "the seventeenth digit: mdbtools prints sixteen; the report names the columns"
_REFUSED = "a Single whose eight digits fit two numbers is refused"
_SECONDS = "fractions of seconds, which Access itself does not show; the report names the columns"

TYPES = (
    TypeRow("Text (n)", "VARCHAR(1)", same="not written", others="VARCHAR(n)"),
    TypeRow("Memo/Hyperlink", "CLOB", same="not written"),
    TypeRow("Byte", "SMALLINT", same="not written"),
    TypeRow("Integer", "SMALLINT", same="not written"),
    TypeRow("Long Integer", "INTEGER", same="not written"),
    TypeRow("BigInt", "BIGINT", same="not written"),
    TypeRow("Single", "REAL", same="not written", loss=_REFUSED),
    TypeRow("Double", "DOUBLE PRECISION", same="not written", loss=_SIXTEEN),
    TypeRow("Currency", "DECIMAL(19,4)", same="not written"),
    TypeRow("Numeric (p, s)", "NUMERIC(1,0)", same="not written", others="NUMERIC(p,s)"),
    TypeRow("Boolean", "BOOLEAN", same="not written"),
    TypeRow("DateTime", "TIMESTAMP", same="not written", loss=_SECONDS),
    TypeRow("OLE", "BLOB", same="not written"),
    TypeRow("Binary (n)", "VARBINARY(1)", same="not written", others="VARBINARY(n)"),
    TypeRow("Replication ID", "CHAR(38)", same="not written"),
)
_BY_NAME = {row.original.partition(" (")[0]: row.archived for row in TYPES}
_DECLARED = re.compile(r"(?P<name>[A-Za-z/ ]+?)(?: \((?P<length>\d+)(?:, (?P<scale>\d+))?\))?")


def sql_type(original: str) -> PredefinedType | None:
    """Return the SQL:2008 type of an Access type, or None for one that nobody knows.

    >>> [str(sql_type(t)) for t in ("Text (5)", "Memo/Hyperlink (255)", "Numeric (18, 2)", "Odd")]
    ['VARCHAR(5)', 'CLOB', 'NUMERIC(18,2)', 'None']
    """
    match = _DECLARED.fullmatch(original)
    if match is None or match["name"] not in _BY_NAME:
        return None
    archived = parse_type(_BY_NAME[match["name"]])
    if archived.name in ("VARCHAR", "VARBINARY"):
        return PredefinedType(archived.name, int(match["length"] or 255))
    if archived.name == "NUMERIC":
        return PredefinedType("NUMERIC", int(match["length"] or 28), int(match["scale"] or 0))
    return archived


def converter(original: str) -> Callable[[bytes], bytes | None] | None:
    """Return what makes SIARD's text of mdbtools' text (None: no value); None if it is the same."""
    match = _DECLARED.fullmatch(original)
    return _CONVERTERS.get(match["name"]) if match else None


def _boolean(cell: bytes) -> bytes | None:
    return {b"1": b"true", b"0": b"false"}.get(cell)


def _single(cell: bytes) -> bytes | None:
    """The shortest text of the one Single that prints like this; None if there are two."""
    value = _number(cell)
    if value is None or not math.isfinite(value):
        return _special(value)
    near = [_next_single(value, step) for step in (-1, 0, 1)]
    alike = [n for n in near if n is not None and float(f"{n:.8g}") == float(cell)]
    return repr(value).encode() if len(alike) == 1 else None


def _next_single(value: float, step: int) -> float | None:
    """The Single that is ``step`` away from the one nearest to ``value``."""
    try:
        (bits,) = struct.unpack("<l", struct.pack("<f", value))
        (found,) = struct.unpack("<f", struct.pack("<l", bits + step))
    except (struct.error, OverflowError):
        return None
    return float(found)


def _double(cell: bytes) -> bytes | None:
    value = _number(cell)
    if value is None or not math.isfinite(value):
        return _special(value)
    return repr(value).encode()


def _number(cell: bytes) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _special(value: float | None) -> bytes | None:
    if value is None:
        return None
    return b"NaN" if math.isnan(value) else b"INF" if value > 0 else b"-INF"


_MOMENT = re.compile(rb"(-?\d{1,4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)")


def _moment(cell: bytes) -> bytes | None:
    match = _MOMENT.fullmatch(cell)
    if match is None or cell.startswith(b"-"):
        return None
    return match[1].rjust(4, b"0") + cell[len(match[1]) :]


_CONVERTERS: dict[str, Callable[[bytes], bytes | None]] = {
    "Boolean": _boolean,
    "Single": _single,
    "Double": _double,
    "DateTime": _moment,
}
