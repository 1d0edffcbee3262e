"""The columns of a query, from what the server says about its result."""

from __future__ import annotations

from typing import Any

from pymysql.constants import FIELD_TYPE, FLAG

from muniment.databases.mariadb.connection import Session, quote
from muniment.databases.mariadb.types import NativeType

__all__ = ["query_columns"]

_BINARY = 63  # the number of the character set of bytes
_INTEGERS = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "mediumint",
    FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
}
# How MariaDB declares them where nobody says how wide they are shown: signed and unsigned.
_WIDTHS = {"tinyint": (4, 3), "smallint": (6, 5), "mediumint": (9, 8), "int": (11, 10),
           "bigint": (20, 20)}  # fmt: skip
_PLAIN = {
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "double",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.YEAR: "year",
    FIELD_TYPE.JSON: "json",
    FIELD_TYPE.GEOMETRY: "geometry",
}
_TIMES = {
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.TIMESTAMP: "timestamp",
}
_SHORT = (FIELD_TYPE.STRING, FIELD_TYPE.VAR_STRING, FIELD_TYPE.VARCHAR)


def query_columns(session: Session, query: str) -> list[tuple[str, NativeType, str | None]]:
    """Return the name, the type and the character set of each column."""
    session.rows(f"SELECT * FROM ({query}) AS q LIMIT 0")
    fields = session.connection._result.fields
    asked = ", ".join(f"CHARSET({quote(field.name)})" for field in fields)
    found = session.rows(f"SELECT {asked} FROM ({query}) AS q LIMIT 1")
    charsets = found[0] if found else ["utf8mb4"] * len(fields)
    return [
        (field.name, _native(field, session), charset if _is_text(field) else None)
        for field, charset in zip(fields, charsets, strict=True)
    ]


def _is_text(field: Any) -> bool:
    textual = (*_SHORT, FIELD_TYPE.BLOB, FIELD_TYPE.JSON)
    return field.type_code in textual and field.charsetnr != _BINARY


def _native(field: Any, session: Session) -> NativeType:
    code, unsigned = field.type_code, bool(field.flags & FLAG.UNSIGNED)
    if code in _INTEGERS:
        name = _INTEGERS[code]
        shown = (_WIDTHS[name][unsigned],) if session.product.name == "MariaDB" else ()
        return NativeType(name, shown, unsigned=unsigned)
    if code in (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL):
        # The length counts a sign and a point as well.
        precision = field.length - (not unsigned) - bool(field.scale)
        return NativeType("decimal", (min(max(precision, field.scale), 65), field.scale))
    if code in _PLAIN:
        return NativeType(_PLAIN[code])
    if code in _TIMES:
        return NativeType(_TIMES[code], (field.scale,))
    if code == FIELD_TYPE.BIT:
        return NativeType("bit", (field.length,))
    binary = field.charsetnr == _BINARY
    if code in _SHORT and field.length < 1 << 16:
        length = field.length if binary else field.length // 4
        return NativeType("varbinary" if binary else "varchar", (max(length, 1),))
    return NativeType("longblob" if binary else "longtext")
