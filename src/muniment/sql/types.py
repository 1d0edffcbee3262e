"""SQL:2008 data types as SIARD writes them (P_4.3-3): values, their text, and their XML types.

Every spelling the standard allows is read; one spelling is written, the short one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from muniment.errors import FormatError

__all__ = ["Kind", "NamedType", "PredefinedType", "Type", "parse_type"]


class Kind(Enum):
    """What a value of a type looks like, apart from its parameters."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    BOOLEAN = "boolean"
    TEXT = "text"
    BINARY = "binary"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    DATALINK = "datalink"


@dataclass(frozen=True, slots=True)
class _Family:
    """What sets one predefined type apart: its kind, its XML type, the parameters it takes."""

    kind: Kind
    xml: str
    parameters: str = ""  # "", "length", "lob-length", "precision", "precision-scale", "fraction"
    large: bool = False


# P_4.3-3. The names are the short forms; _SPELLINGS below maps the long ones to them.
_FAMILIES = {
    "SMALLINT": _Family(Kind.INTEGER, "xs:integer"),
    "INTEGER": _Family(Kind.INTEGER, "xs:integer"),
    "BIGINT": _Family(Kind.INTEGER, "xs:integer"),
    "NUMERIC": _Family(Kind.DECIMAL, "xs:decimal", "precision-scale"),
    "DECIMAL": _Family(Kind.DECIMAL, "xs:decimal", "precision-scale"),
    "REAL": _Family(Kind.FLOAT, "xs:float"),
    "DOUBLE PRECISION": _Family(Kind.FLOAT, "xs:double"),
    "FLOAT": _Family(Kind.FLOAT, "xs:double", "precision"),
    "BOOLEAN": _Family(Kind.BOOLEAN, "xs:boolean"),
    "CHAR": _Family(Kind.TEXT, "xs:string", "length"),
    "VARCHAR": _Family(Kind.TEXT, "xs:string", "length"),
    "CLOB": _Family(Kind.TEXT, "clobType", "lob-length", large=True),
    "NCHAR": _Family(Kind.TEXT, "xs:string", "length"),
    "NCHAR VARYING": _Family(Kind.TEXT, "xs:string", "length"),
    "NCLOB": _Family(Kind.TEXT, "clobType", "lob-length", large=True),
    "XML": _Family(Kind.TEXT, "clobType", large=True),
    "BINARY": _Family(Kind.BINARY, "xs:hexBinary", "length"),
    "VARBINARY": _Family(Kind.BINARY, "xs:hexBinary", "length"),
    "BLOB": _Family(Kind.BINARY, "blobType", "lob-length", large=True),
    "DATE": _Family(Kind.DATE, "dateType"),
    "TIME": _Family(Kind.TIME, "timeType", "fraction"),
    "TIME WITH TIME ZONE": _Family(Kind.TIME, "timeType", "fraction"),
    "TIMESTAMP": _Family(Kind.TIMESTAMP, "dateTimeType", "fraction"),
    "TIMESTAMP WITH TIME ZONE": _Family(Kind.TIMESTAMP, "dateTimeType", "fraction"),
    "INTERVAL": _Family(Kind.INTERVAL, "xs:duration"),
    "DATALINK": _Family(Kind.DATALINK, "blobType", large=True),
}

_SPELLINGS = {
    "INT": "INTEGER",
    "DEC": "DECIMAL",
    "CHARACTER": "CHAR",
    "CHARACTER VARYING": "VARCHAR",
    "CHAR VARYING": "VARCHAR",
    "CHARACTER LARGE OBJECT": "CLOB",
    "CHAR LARGE OBJECT": "CLOB",
    "NATIONAL CHARACTER": "NCHAR",
    "NATIONAL CHAR": "NCHAR",
    "NATIONAL CHARACTER VARYING": "NCHAR VARYING",
    "NATIONAL CHAR VARYING": "NCHAR VARYING",
    "NATIONAL CHARACTER LARGE OBJECT": "NCLOB",
    "NCHAR LARGE OBJECT": "NCLOB",
    "BINARY VARYING": "VARBINARY",
    "BINARY LARGE OBJECT": "BLOB",
}

_MULTIPLIER = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class PredefinedType:
    """A built-in SQL:2008 type. ``length`` also holds the precision of numbers and times.

    >>> parse_type("character varying ( 20 )")
    PredefinedType(name='VARCHAR', length=20, scale=None, interval='')
    >>> str(parse_type("DEC(10, 2)"))
    'DECIMAL(10,2)'
    """

    name: str
    length: int | None = None
    scale: int | None = None
    interval: str = ""  # for INTERVAL: "YEAR TO MONTH", "DAY(3) TO SECOND(6)", …

    @property
    def kind(self) -> Kind:
        return _FAMILIES[self.name].kind

    @property
    def xml(self) -> str:
        """The type of a cell in tableN.xsd."""
        return _FAMILIES[self.name].xml

    @property
    def large(self) -> bool:
        """Whether values may lie in files of their own."""
        return _FAMILIES[self.name].large

    def __str__(self) -> str:
        if self.name == "INTERVAL":
            return f"INTERVAL {self.interval}"
        if self.length is None:
            return self.name
        if self.scale is None:
            return f"{self.name}({self.length})"
        return f"{self.name}({self.length},{self.scale})"


@dataclass(frozen=True, slots=True)
class NamedType:
    """A DISTINCT type or UDT of the archive, by name; an empty schema means the column's own."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


Type = PredefinedType | NamedType

_PARAMETER = re.compile(
    r"""\s*(?P<name>[A-Z][A-Z\s]*?)\s*
        (?:\(\s*(?P<length>\d+)\s*(?P<unit>[KMG]?)\s*(?:,\s*(?P<scale>\d+)\s*)?\))?
        \s*(?P<zone>WITH\s+TIME\s+ZONE|WITHOUT\s+TIME\s+ZONE)?\s*""",
    re.VERBOSE,
)
_INTERVAL = re.compile(
    r"""\s*INTERVAL\s+(?P<start>YEAR|MONTH|DAY|HOUR|MINUTE|SECOND)
        (?:\s*\(\s*(?P<lead>\d+)\s*(?:,\s*(?P<fraction>\d+)\s*)?\))?
        (?:\s+TO\s+(?P<end>MONTH|DAY|HOUR|MINUTE|SECOND)(?:\s*\(\s*(?P<last>\d+)\s*\))?)?\s*""",
    re.VERBOSE,
)


def parse_type(text: str) -> PredefinedType:
    """Return the predefined type that ``text`` spells in any of the standard's ways.

    >>> str(parse_type("CLOB(2G)")), str(parse_type("interval day (3) to second(6)"))
    ('CLOB(2147483648)', 'INTERVAL DAY(3) TO SECOND(6)')
    >>> str(parse_type("TIMESTAMP(6) WITH TIME ZONE"))
    'TIMESTAMP WITH TIME ZONE(6)'
    """
    upper = text.upper()
    if interval := _INTERVAL.fullmatch(upper):
        return PredefinedType("INTERVAL", interval=_interval_text(interval))
    match = _PARAMETER.fullmatch(upper)
    if match:
        name = " ".join(match["name"].split())
        if match["zone"]:
            zoned = " ".join(match["zone"].split())
            name = f"{name} {zoned}" if zoned == "WITH TIME ZONE" else name
        name = _SPELLINGS.get(name, name).removesuffix(" WITHOUT TIME ZONE")
        if name in _FAMILIES and name != "INTERVAL":
            length = int(match["length"]) * _MULTIPLIER[match["unit"]] if match["length"] else None
            return PredefinedType(name, length, int(match["scale"]) if match["scale"] else None)
    raise FormatError(f"{text!r} is not an SQL:2008 type")


def _interval_text(match: re.Match[str]) -> str:
    text = match["start"]
    if match["lead"]:
        fraction = f",{match['fraction']}" if match["fraction"] else ""
        text += f"({match['lead']}{fraction})"
    if match["end"]:
        text += f" TO {match['end']}"
        if match["last"]:
            text += f"({match['last']})"
    return text
