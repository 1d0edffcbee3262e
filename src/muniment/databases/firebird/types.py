"""The types of Firebird, and what they are in SQL:2008: both ways."""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import dataclass

from muniment.databases.mapping import TypeRow
from muniment.sql.names import quoted
from muniment.sql.types import Kind, PredefinedType

__all__ = ["TYPES", "Field", "column_type", "domain_sql", "shortest_single"]

_LONGEST_TEXT = 8191  # characters of four bytes each in a VARCHAR
_TENTHS = "text if SQL:2008 says more than four digits of a second"

TYPES = (
    TypeRow("SMALLINT", "SMALLINT"),
    TypeRow("INTEGER", "INTEGER"),
    TypeRow("BIGINT", "BIGINT"),
    TypeRow("NUMERIC(p,s)", "NUMERIC(1,0)"),
    TypeRow("DECIMAL(p,s)", "DECIMAL(1,0)"),
    TypeRow("FLOAT", "REAL"),
    TypeRow("DOUBLE PRECISION", "DOUBLE PRECISION"),
    TypeRow("BOOLEAN", "BOOLEAN"),
    TypeRow("DATE", "DATE"),
    TypeRow("TIME", "TIME(4)", others=f"by the SQL:2008 type; here {_TENTHS}"),
    TypeRow("TIMESTAMP", "TIMESTAMP(4)", others=f"by the SQL:2008 type; here {_TENTHS}"),
    TypeRow("CHAR(n)", "CHAR(1)", form="filled with spaces"),
    TypeRow("VARCHAR(n)", "VARCHAR(1)"),
    TypeRow("CHAR(n) CHARACTER SET OCTETS", "BINARY(1)"),
    TypeRow("VARCHAR(n) CHARACTER SET OCTETS", "VARBINARY(1)"),
    TypeRow("BLOB SUB_TYPE TEXT", "CLOB"),
    TypeRow("BLOB", "BLOB"),
    TypeRow("type [1:n]", "ARRAY", others="an array, or JSON"),
    TypeRow("domain", "DISTINCT"),
)

_OCTETS = 1
_PLAIN = {7: "SMALLINT", 8: "INTEGER", 16: "BIGINT", 10: "REAL", 27: "DOUBLE PRECISION",
          12: "DATE", 13: "TIME", 35: "TIMESTAMP", 23: "BOOLEAN"}  # fmt: skip
_PRECISION = {7: 4, 8: 9, 16: 18}


@dataclass(frozen=True, slots=True)
class Field:
    """A row of RDB$FIELDS: the storage of a column, a domain or a parameter."""

    name: str
    type: int
    sub_type: int
    length: int
    characters: int
    precision: int
    scale: int
    charset: int
    dimensions: int

    def sql_type(self) -> PredefinedType | None:
        """Return the SQL:2008 type of one element, or None for a type that nobody knows."""
        if self.type in _PRECISION and (self.scale < 0 or self.sub_type in (1, 2)):
            name = "DECIMAL" if self.sub_type == 2 else "NUMERIC"
            return PredefinedType(name, self.precision or _PRECISION[self.type], -self.scale)
        if self.type in (12, 23, *_PRECISION, 10, 27):
            return PredefinedType(_PLAIN[self.type])
        if self.type in (13, 35):
            return PredefinedType(_PLAIN[self.type], 4)
        if self.type in (14, 37, 40):
            return self._text()
        if self.type == 261:
            return PredefinedType("CLOB" if self.sub_type == 1 else "BLOB")
        return None

    def _text(self) -> PredefinedType:
        if self.charset == _OCTETS:
            return PredefinedType("BINARY" if self.type == 14 else "VARBINARY", self.length)
        return PredefinedType("CHAR" if self.type == 14 else "VARCHAR", self.characters)

    def declared(self) -> str:
        """Return the type as Firebird's SQL spells it."""
        type_ = self.sql_type()
        name = str(type_)
        if self.type == 10:
            return "FLOAT"
        if self.type in (13, 35):
            return _PLAIN[self.type]
        if self.type == 261:
            return "BLOB SUB_TYPE TEXT" if self.sub_type == 1 else f"BLOB SUB_TYPE {self.sub_type}"
        if type_ is not None and type_.kind is Kind.BINARY:
            plain = "CHAR" if self.type == 14 else "VARCHAR"
            return f"{plain}({self.length}) CHARACTER SET OCTETS"
        return name


def column_type(type_: PredefinedType) -> str | None:
    """Return the Firebird type that holds every value of an SQL:2008 type; None: only text does."""
    length = type_.length
    match type_.kind:
        case Kind.INTEGER | Kind.BOOLEAN | Kind.DATE:
            return type_.name
        case Kind.DECIMAL:
            fits = length is not None and length <= 18
            return f"{type_.name}({length},{type_.scale or 0})" if fits else None
        case Kind.FLOAT:
            return "FLOAT" if type_.name == "REAL" else "DOUBLE PRECISION"
        case Kind.TIME | Kind.TIMESTAMP:
            exact = (length or 0) <= 4 and not type_.name.endswith("ZONE")
            return type_.name if exact else None
        case Kind.BINARY:
            if length and length <= 32000 and not type_.large:
                return f"VARCHAR({length}) CHARACTER SET OCTETS"
            return "BLOB SUB_TYPE 0"
        case Kind.TEXT if length and length <= _LONGEST_TEXT and not type_.large:
            return f"{'CHAR' if 'CHAR' in type_.name[:5] else 'VARCHAR'}({length})"
        case Kind.TEXT:
            return "BLOB SUB_TYPE TEXT"
    return None


def shortest_single(value: float) -> str:
    """Return the shortest text that is this FLOAT of four bytes.

    >>> shortest_single(0.10000000149011612)
    '0.1'
    """
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        with suppress(OverflowError):  # rounded up beyond the largest
            if struct.pack("<f", float(text)) == struct.pack("<f", value):
                return repr(float(text))
    return repr(float(f"{value:.9g}"))


def domain_sql(name: str, field: Field, default: str | None, check: str | None, null: bool) -> str:
    """Return the statement that makes a domain."""
    parts = [f"CREATE DOMAIN {quoted(name)} AS {field.declared()}", default, check]
    return " ".join(filter(None, [*parts[:2], "" if null else "NOT NULL", check]))
