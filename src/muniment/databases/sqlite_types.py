"""What a declared SQLite type means in SQL:2008, and how its values become text.

SQLite checks no types, so each column has two ways to its text: an SQL expression that is quick,
with the condition under which it is right, and a Python function that takes a closer look.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from muniment.errors import FormatError
from muniment.sql.types import Kind, PredefinedType, parse_type

__all__ = [
    "NAN", "Expression", "Marks", "affinity_of", "any_class", "declared_type", "expression",
    "lexical", "sqlite_type", "type_of_classes",
]  # fmt: skip

_DECLARED = re.compile(r"(?P<name>[^()]*)(?:\(\s*(?P<p>\d+)\s*(?:,\s*(?P<s>\d+)\s*)?\)[^()]*)?")

NAN = "NaN"  # which SQLite has no number for; it keeps the text

# Decimals too long for a double keep their digits as text, under a name that says so.
DECIMAL_TEXT = "DECIMAL_TEXT"

_EXACT_NAMES = {
    "DATE": PredefinedType("DATE"),
    "TIME": PredefinedType("TIME"),
    "DATETIME": PredefinedType("TIMESTAMP"),
    "TIMESTAMP": PredefinedType("TIMESTAMP"),
    "BOOLEAN": PredefinedType("BOOLEAN"),
    "BOOL": PredefinedType("BOOLEAN"),
}


def declared_type(declared: str) -> PredefinedType | None:
    """Return the SQL:2008 type of a declaration; None where only the content can tell.

    >>> [str(declared_type(d)) for d in ("INT", "nvarchar(20)", "DECIMAL(10,2)", "text", "")]
    ['BIGINT', 'VARCHAR(20)', 'DECIMAL(10,2)', 'CLOB', 'None']
    """
    match = _DECLARED.fullmatch(declared.upper())
    if not match or not match["name"]:
        return None
    name, length = " ".join(match["name"].split()), int(match["p"] or 0)
    if name in _EXACT_NAMES:
        return _EXACT_NAMES[name]
    scale = int(match["s"]) if match["s"] else None
    if name in ("DECIMAL", "NUMERIC", "DEC", DECIMAL_TEXT):
        return PredefinedType("DECIMAL", length or None, scale)
    if name in ("BINARY", "VARBINARY") and length:
        return PredefinedType(name, length)
    if name.startswith(("INTERVAL ", "TIMESTAMP ", "TIME ")):
        return _standard_type(declared)
    if name.endswith("POINT"):  # what SpatiaLite and GeoPackage call bytes
        return None
    if "INT" in name:  # SQLite's own order of rules for affinity; all its integers have 64 bits
        return PredefinedType("BIGINT")
    if "CHAR" in name and length:
        return PredefinedType("VARCHAR", length)
    if any(word in name for word in ("CHAR", "CLOB", "TEXT")):
        return PredefinedType("CLOB")
    if "BLOB" in name:
        return PredefinedType("BLOB")
    if any(word in name for word in ("REAL", "FLOA", "DOUB")):
        return PredefinedType("DOUBLE PRECISION")
    return None


def _standard_type(declared: str) -> PredefinedType | None:
    try:
        return parse_type(declared)
    except FormatError:
        return None


def sqlite_type(type_: PredefinedType) -> str:
    """Return the declaration under which a column of this type loses nothing."""
    if type_.kind is Kind.DECIMAL and (type_.length is None or type_.length > 15):
        return str(type_).replace(type_.name, DECIMAL_TEXT, 1)
    if type_.kind is Kind.TEXT and (type_.large or type_.length is None):
        return "TEXT"
    if type_.kind is Kind.BINARY and type_.large:
        return "BLOB"
    return str(type_)


def type_of_classes(classes: set[str]) -> PredefinedType:
    """Return the type for a column that only its content describes."""
    single = {"integer": "BIGINT", "real": "DOUBLE PRECISION", "blob": "BLOB"}
    return PredefinedType(
        single.get(next(iter(classes), ""), "CLOB") if len(classes) == 1 else "CLOB"
    )


@dataclass(frozen=True, slots=True)
class Marks:
    """The bytes that structure the text of a row; NULL and REF carry a nonce (see sqlite.py)."""

    null: str
    ref: str


@dataclass(frozen=True, slots=True)
class Expression:
    """SQL for the text of a column's values, and the condition under which it is right.

    SQLite tests the conditions of all columns at once, which is quicker than to look at each value
    on its way out.
    """

    text: str
    condition: str


def expression(
    column: str,
    type_: PredefinedType,
    marks: Marks,
    *,
    nullable: bool,
    reference: str,
    limit: int,
    careful: bool,
) -> Expression:
    """Return how a column of this type is read.

    ``reference`` is SQL for what finds a large value again; binary values longer than ``limit`` are
    always given by reference, text only if ``careful``.
    """
    text, condition = _reading(column, type_, f"{marks.ref}||{reference}", limit, careful)
    if not nullable:
        return Expression(text, condition)
    return Expression(
        f"iif({column} is null,{marks.null},{text})"
        if type_.kind in (Kind.BINARY, Kind.BOOLEAN) or careful
        else f"ifnull({text},{marks.null})",
        f"({column} is null or {condition})",
    )


def _reading(
    column: str, type_: PredefinedType, large: str, limit: int, careful: bool
) -> tuple[str, str]:
    """How a value that is not NULL becomes text, and what must hold for it."""
    kind = f"typeof({column})"
    match type_.kind:
        case Kind.INTEGER:
            return column, f"{kind}='integer'"
        case Kind.FLOAT:
            bound = "1.7976931348623157e308"
            return column, f"({kind}='real' and {column} between -{bound} and {bound})"
        case Kind.DECIMAL:
            # Beyond these bounds SQLite prints exponents. Text is greater than any number.
            plain = f"{column} between 0.0001 and 1e15 or {kind}='integer' or {kind}='text'"
            return column, f"({plain} or {column} between -1e15 and -0.0001 or {column}=0)"
        case Kind.BOOLEAN:
            return f"iif({column} is 1,'true','false')", f"({column} is 1 or {column} is 0)"
        case Kind.TIMESTAMP:
            spaced = f"({kind}='text' and {column} glob '????-??-?? ??:??:??*')"
            return f"replace({column},' ','T')", spaced
        case Kind.BINARY:
            inline = f"iif(length({column})<={limit},hex({column}),{large})"
            return inline, f"{kind}='blob'"
        case _ if type_.large and careful:
            return f"iif(octet_length({column})<={limit},{column},{large})", f"{kind}='text'"
        case _ if type_.length is not None:
            return column, f"({kind}='text' and length({column})<={type_.length})"
        case _:
            return column, f"{kind}='text'"


def any_class(column: str, marks: Marks, *, quoted: bool) -> Expression:
    """Return how a column is read that is archived as text whatever it holds.

    ``quoted`` texts are between quotation marks, which tells them from other values.
    """
    text = f"iif(typeof({column})='text',''''||{column}||'''',{column})" if quoted else column
    return Expression(f"ifnull({text},{marks.null})", f"typeof({column})<>'blob'")


def lexical(class_: str, value: int | str | bytes, type_: PredefinedType) -> str | None:
    """Return the text of a value in its column's type, or None if it does not fit.

    ``class_`` is what SQLite calls the value's class; a real comes as the text that SQLite prints.
    """
    match type_.kind, class_, value:
        case ((Kind.INTEGER | Kind.DECIMAL), "integer", int()):
            return str(value)
        case Kind.FLOAT, "real", str():
            return value.replace("Inf", "INF")
        case Kind.FLOAT, "text", str() if value == NAN:
            return value
        case Kind.DECIMAL, "real", str() if "Inf" not in value:
            # SQLite's own digits of this number, and all of them, would come back as an integer.
            return f"{float(value):.1f}" if abs(float(value)) == 2**63 else f"{Decimal(value):f}"
        case Kind.BOOLEAN, "integer", int() if value in (0, 1):
            return "true" if value else "false"
        case Kind.TIMESTAMP, "text", str() if value[10:11] == " ":
            return value.replace(" ", "T")
        case Kind.TEXT, "text", str():
            return value if type_.length is None or len(value) <= type_.length else None
        case ((Kind.DECIMAL | Kind.DATE | Kind.TIME | Kind.INTERVAL), "text", str()):
            return value
        case Kind.BINARY, "blob", bytes():
            return value.hex().upper()
    return None


def affinity_of(declared: str) -> str:
    """Return what SQLite prefers in a column, by its own rules for declarations.

    >>> [affinity_of(d) for d in ("BIGINT", "VARCHAR(9)", "", "FLOAT", "DECIMAL(5,2)")]
    ['INTEGER', 'TEXT', 'BLOB', 'REAL', 'NUMERIC']
    """
    name = declared.upper()
    for words, affinity in _AFFINITIES:
        if any(word in name for word in words):
            return affinity
    return "NUMERIC" if name else "BLOB"


_AFFINITIES = (
    (("INT",), "INTEGER"),
    (("CHAR", "CLOB", "TEXT"), "TEXT"),
    (("BLOB",), "BLOB"),
    (("REAL", "FLOA", "DOUB"), "REAL"),
)
