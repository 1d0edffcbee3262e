"""The types of MariaDB and MySQL, the SQL:2008 type that each becomes (P_4.3-3), and back.

Type text from an archive is untrusted: it is parsed here and written again, never passed on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from muniment.databases.mapping import TypeRow
from muniment.sql.types import Kind, PredefinedType, parse_type

__all__ = [
    "SPATIAL", "TYPES", "NativeType", "archived_type", "native_type", "parse_native",
]  # fmt: skip

_ZERO = "zero dates and dates that do not exist stop the work"
_OTHER_TIME = "times below 00:00:00 or from 24:00:00 on stop the work"
_SPATIAL_FORM = "`SRID=n;` and the WKT"

# The one table: what a type becomes in the archive. Parameters are carried over where both have
# them; docs/types.md is made from it.
TYPES = (
    TypeRow("tinyint", "SMALLINT"),
    TypeRow("tinyint unsigned", "SMALLINT"),
    TypeRow("tinyint(1) check (c in (0,1))", "BOOLEAN", same="the same type and check"),
    TypeRow("smallint", "SMALLINT"),
    TypeRow("smallint unsigned", "INTEGER"),
    TypeRow("mediumint", "INTEGER"),
    TypeRow("mediumint unsigned", "INTEGER"),
    TypeRow("int", "INTEGER"),
    TypeRow("int unsigned", "BIGINT"),
    TypeRow("bigint", "BIGINT"),
    TypeRow("bigint unsigned", "DECIMAL(20,0)"),
    TypeRow("decimal(p,s)", "DECIMAL", form="unsigned or not; without ZEROFILL's zeros"),
    TypeRow("float", "REAL", form="as few digits as read back to the same bits"),
    TypeRow("double", "DOUBLE PRECISION", form="as few digits as read back to the same bits"),
    TypeRow("bit(1)", "BOOLEAN"),
    TypeRow("bit(n)", "CHAR", form="n digits 0 and 1"),
    TypeRow("year", "SMALLINT", form="the year 0000 as 0"),
    TypeRow("date", "DATE", loss=_ZERO),
    TypeRow("datetime(n)", "TIMESTAMP", loss=_ZERO),
    TypeRow("timestamp(n)", "TIMESTAMP WITH TIME ZONE", form="in UTC", loss=_ZERO),
    TypeRow("time(n)", "TIME", loss=_OTHER_TIME),
    TypeRow("char(n)", "CHAR", form="without the spaces that fill it up"),
    TypeRow("varchar(n)", "VARCHAR"),
    TypeRow("tinytext", "VARCHAR(255)"),
    TypeRow("text", "CLOB"),
    TypeRow("mediumtext", "CLOB"),
    TypeRow("longtext", "CLOB"),
    TypeRow(
        "json",
        "CLOB",
        same="the same type (in MariaDB: longtext and its check)",
        loss="in MySQL, that a text inside was a date; decimals like 2.50 need --as-text",
    ),
    TypeRow("enum(…)", "VARCHAR", form="as long as the longest label"),
    TypeRow("set(…)", "VARCHAR", form="labels with commas between them"),
    TypeRow("binary(n)", "BINARY"),
    TypeRow("varbinary(n)", "VARBINARY"),
    TypeRow("tinyblob", "VARBINARY(255)"),
    TypeRow("blob", "BLOB"),
    TypeRow("mediumblob", "BLOB"),
    TypeRow("longblob", "BLOB"),
    TypeRow("uuid", "CHAR(36)"),
    TypeRow("inet4", "VARCHAR(15)"),
    TypeRow("inet6", "VARCHAR(45)"),
    TypeRow("geometry", "CLOB", form=_SPATIAL_FORM),
    TypeRow("point", "CLOB", form=_SPATIAL_FORM),
    TypeRow("linestring", "CLOB", form=_SPATIAL_FORM),
    TypeRow("polygon", "CLOB", form=_SPATIAL_FORM),
    TypeRow("multipoint", "CLOB", form=_SPATIAL_FORM),
    TypeRow("multilinestring", "CLOB", form=_SPATIAL_FORM),
    TypeRow("multipolygon", "CLOB", form=_SPATIAL_FORM),
    TypeRow("geometrycollection", "CLOB", form=_SPATIAL_FORM),
    TypeRow("geomcollection", "CLOB", form=_SPATIAL_FORM),
)

_ARCHIVED = {
    re.sub(r"\((?:p,s|n|…)\)", "", row.original): parse_type(row.archived)
    for row in TYPES
    if row.original not in ("bit(1)", "tinyint(1) check (c in (0,1))")
}
SPATIAL = frozenset(row.original for row in TYPES if row.form == _SPATIAL_FORM)
_LENGTHS = {"char", "varchar", "binary", "varbinary"}
_TEXT = PredefinedType("CLOB")
_LONGEST_VARCHAR = 16_383  # characters of utf8mb4 in a row of 64 KB


@dataclass(frozen=True, slots=True)
class NativeType:
    """A type of the product: ``decimal(10,2) unsigned``, ``enum('a','b')``."""

    name: str
    parameters: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    unsigned: bool = False
    zerofill: bool = False

    def __str__(self) -> str:
        inside = ",".join(map(str, self.parameters)) or ",".join(map(_label_text, self.labels))
        text = f"{self.name}({inside})" if inside else self.name
        return text + " unsigned" * self.unsigned + " zerofill" * self.zerofill


_DECLARED = re.compile(
    r"(?P<name>[a-z][a-z0-9]*)(?:\((?P<inside>.*)\))?(?P<unsigned> unsigned)?"
    r"(?P<zerofill> zerofill)?(?: /\*.*\*/)?",
    re.DOTALL,
)
_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "0": "\0", "Z": "\x1a", "t": "\t", "b": "\b"}


def parse_native(text: str) -> NativeType | None:
    """Return the type that the catalogue spells as ``text``, or None if it is not one known here.

    >>> parse_native("enum('a','it''s')").labels
    ('a', "it's")
    >>> str(parse_native("int(10) unsigned zerofill"))
    'int(10) unsigned zerofill'
    """
    match = _DECLARED.fullmatch(text)
    if not match or (match["name"] not in _ARCHIVED and match["name"] != "bit"):
        return None
    numbers: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    inside = match["inside"]
    if inside is not None and match["name"] in ("enum", "set"):
        labels = tuple(_unescaped(label) for label in _LABEL.findall(inside))
    elif inside is not None:
        if not re.fullmatch(r"\d{1,10}(,\d{1,10})?", inside):
            return None
        numbers = tuple(int(number) for number in inside.split(","))
    return NativeType(
        match["name"], numbers, labels, bool(match["unsigned"]), bool(match["zerofill"])
    )


def archived_type(native: NativeType | None) -> PredefinedType:
    """Return the SQL:2008 type that holds every value of a type.

    >>> [str(archived_type(parse_native(t))) for t in ("int unsigned", "bit(3)", "set('a','bc')")]
    ['BIGINT', 'CHAR(3)', 'VARCHAR(4)']
    """
    if native is None:
        return _TEXT
    name, numbers = native.name, native.parameters
    first = numbers[0] if numbers else None
    if name == "bit":
        width = first or 1
        return PredefinedType("BOOLEAN") if width == 1 else PredefinedType("CHAR", width)
    if name == "decimal":
        scale = numbers[1] if len(numbers) > 1 else 0
        return PredefinedType("DECIMAL", first or 10, scale)
    if name == "enum":
        return PredefinedType("VARCHAR", max([1, *map(len, native.labels)]))
    if name == "set":
        return PredefinedType(
            "VARCHAR", max(1, sum(map(len, native.labels)) + len(native.labels) - 1)
        )
    if name in _LENGTHS:
        kind = _ARCHIVED[name].name
        if not first:  # there are columns of no length; SIARD has none
            kind, first = ("VARCHAR", 1) if "CHAR" in kind else ("VARBINARY", 1)
        return PredefinedType(kind, first)
    found = _ARCHIVED[
        f"{name} unsigned" if native.unsigned and f"{name} unsigned" in _ARCHIVED else name
    ]
    if name in ("time", "datetime", "timestamp"):
        return PredefinedType(found.name, first or 0)
    return found


def native_type(archived: PredefinedType, scale: int) -> str:
    """Return the type that holds every value of an SQL:2008 type; ``scale`` is the product's most.

    >>> [native_type(parse_type(t), 38) for t in ("NUMERIC(10,2)", "CHAR(3)", "TIMESTAMP(9)")]
    ['decimal(10,2)', 'varchar(3)', 'varchar(64)']
    """
    length = archived.length
    match archived.kind:
        case Kind.INTEGER:
            return {"SMALLINT": "smallint", "INTEGER": "int"}.get(archived.name, "bigint")
        case Kind.DECIMAL if length and length <= 65 and (archived.scale or 0) <= scale:
            return f"decimal({length},{archived.scale or 0})"
        case Kind.DECIMAL:
            return "longtext" if length and length > 1000 else "varchar(1002)"
        case Kind.FLOAT:
            single = archived.name == "REAL" or (length or 53) <= 24
            return "float" if single else "double"
        case Kind.BOOLEAN:
            return "tinyint(1)"
        case Kind.DATE:
            return "date"
        case Kind.TIME if (length or 0) <= 6:
            return f"time({length})" if length else "time"
        case Kind.TIMESTAMP if length is None or length <= 6:
            return f"datetime({6 if length is None else length})"
        case Kind.TIME | Kind.TIMESTAMP | Kind.INTERVAL:
            return "varchar(64)"
        case Kind.BINARY if length and length <= _LONGEST_VARCHAR and not archived.large:
            return f"varbinary({length})"
        case Kind.BINARY | Kind.DATALINK:
            return "longblob"
        case Kind.TEXT if length and length <= _LONGEST_VARCHAR and not archived.large:
            return f"varchar({length})"
    return "longtext"


def _unescaped(label: str) -> str:
    return re.sub(
        r"''|\\(.)",
        lambda m: "'" if m[1] is None else _ESCAPES.get(m[1], m[1]),
        label,
        flags=re.DOTALL,
    )


def _label_text(label: str) -> str:
    return "'" + label.replace("\\", "\\\\").replace("'", "''") + "'"
