"""DuckDB's own types: their text as a tree, and the SQL:2008 type that each becomes (P_4.3-3).

Type text from an archive is untrusted: it is parsed here and written again from the tree, never
passed on to DuckDB as it came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind, PredefinedType

__all__ = [
    "DuckType", "Enumeration", "Listing", "Mapping", "Record", "Scalar", "Union", "fits",
    "is_wrapped", "parse_duck_type", "predefined_type", "quote", "quote_text", "scalar_for",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts, such as INTEGER or DECIMAL(10,2)."""

    name: str
    parameters: tuple[int, ...] = ()

    def __str__(self) -> str:
        numbers = ",".join(map(str, self.parameters))
        return f"{self.name}({numbers})" if numbers else self.name


@dataclass(frozen=True, slots=True)
class Enumeration:
    """ENUM: one of some labels."""

    labels: tuple[str, ...]

    def __str__(self) -> str:
        return f"ENUM({', '.join(map(quote_text, self.labels))})"


@dataclass(frozen=True, slots=True)
class Record:
    """STRUCT: named fields."""

    fields: tuple[tuple[str, DuckType], ...]

    def __str__(self) -> str:
        return f"STRUCT({_format_fields(self.fields)})"


@dataclass(frozen=True, slots=True)
class Union:
    """UNION: a value of exactly one of some named types."""

    members: tuple[tuple[str, DuckType], ...]

    def __str__(self) -> str:
        return f"UNION({_format_fields(self.members)})"


@dataclass(frozen=True, slots=True)
class Listing:
    """LIST, or ARRAY if it has a length."""

    element: DuckType
    length: int | None = None

    def __str__(self) -> str:
        return f"{self.element}[{self.length or ''}]"


@dataclass(frozen=True, slots=True)
class Mapping:
    """MAP: keys and their values."""

    key: DuckType
    value: DuckType

    def __str__(self) -> str:
        return f"MAP({self.key}, {self.value})"


DuckType = Scalar | Enumeration | Record | Union | Listing | Mapping

_TEXT = PredefinedType("CLOB")

# What each scalar becomes. Unsigned numbers take the smallest exact type that holds them all.
# TIME WITH TIME ZONE keeps its offset only as text: SIARD's times are in UTC.
_SCALARS = {
    "BOOLEAN": PredefinedType("BOOLEAN"),
    "TINYINT": PredefinedType("SMALLINT"),
    "UTINYINT": PredefinedType("SMALLINT"),
    "SMALLINT": PredefinedType("SMALLINT"),
    "USMALLINT": PredefinedType("INTEGER"),
    "INTEGER": PredefinedType("INTEGER"),
    "UINTEGER": PredefinedType("BIGINT"),
    "BIGINT": PredefinedType("BIGINT"),
    "UBIGINT": PredefinedType("DECIMAL", 20, 0),
    "HUGEINT": PredefinedType("DECIMAL", 39, 0),
    "UHUGEINT": PredefinedType("DECIMAL", 39, 0),
    "BIGNUM": _TEXT,
    "FLOAT": PredefinedType("REAL"),
    "DOUBLE": PredefinedType("DOUBLE PRECISION"),
    "VARCHAR": _TEXT,
    "JSON": _TEXT,
    "BIT": _TEXT,
    "BLOB": PredefinedType("BLOB"),
    "UUID": PredefinedType("CHAR", 36),
    "DATE": PredefinedType("DATE"),
    "TIME": PredefinedType("TIME", 6),
    "TIME_NS": PredefinedType("TIME", 9),
    "TIME WITH TIME ZONE": PredefinedType("VARCHAR", 24),
    "TIMESTAMP_S": PredefinedType("TIMESTAMP", 0),
    "TIMESTAMP_MS": PredefinedType("TIMESTAMP", 3),
    "TIMESTAMP": PredefinedType("TIMESTAMP", 6),
    "TIMESTAMP_NS": PredefinedType("TIMESTAMP", 9),
    "TIMESTAMP WITH TIME ZONE": PredefinedType("TIMESTAMP WITH TIME ZONE", 6),
    "TIMESTAMPTZ_NS": PredefinedType("TIMESTAMP WITH TIME ZONE", 9),
    "INTERVAL": _TEXT,  # the rows decide: see definitions.py
}


def parse_duck_type(text: str) -> DuckType | None:
    """Return the type that DuckDB spells as ``text``, or None if it is not one known here.

    >>> parse_duck_type('STRUCT(a INTEGER, "b c" DECIMAL(4,1)[3])[]')
    ... # doctest: +NORMALIZE_WHITESPACE
    Listing(element=Record(fields=(('a', Scalar(name='INTEGER', parameters=())),
      ('b c', Listing(element=Scalar(name='DECIMAL', parameters=(4, 1)), length=3)))), length=None)
    >>> parse_duck_type("GEOMETRY") is None
    True
    """
    tokens = _Tokens(text)
    try:
        found = _parse(tokens)
        return found if tokens.here is None else None
    except _Unknown:
        return None


def predefined_type(scalar: Scalar | Enumeration) -> PredefinedType:
    """Return the SQL:2008 type of a scalar.

    >>> str(predefined_type(Enumeration(("sad", "happy"))))
    'VARCHAR(5)'
    """
    if isinstance(scalar, Enumeration):
        return PredefinedType("VARCHAR", max([1, *map(len, scalar.labels)]))
    if scalar.name == "DECIMAL":
        precision, scale = scalar.parameters
        return PredefinedType("DECIMAL", precision, scale)
    return _SCALARS[scalar.name]


def scalar_for(archived: PredefinedType) -> Scalar:
    """Return the DuckDB type that holds every value of an SQL:2008 type exactly.

    >>> str(scalar_for(PredefinedType("DECIMAL", 10, 2)))
    'DECIMAL(10,2)'
    >>> str(scalar_for(PredefinedType("DECIMAL", 65, 30)))  # DuckDB ends at 38 digits
    'VARCHAR'
    """
    match archived.kind:
        case Kind.INTEGER:
            return Scalar(archived.name)
        case Kind.DECIMAL if archived.length is not None and archived.length <= 38:
            return Scalar("DECIMAL", (archived.length, archived.scale or 0))
        case Kind.FLOAT:
            single = archived.name == "REAL" or (archived.length or 53) <= 24
            return Scalar("FLOAT" if single else "DOUBLE")
        case Kind.BOOLEAN | Kind.DATE:
            return Scalar(archived.name)
        case Kind.BINARY | Kind.DATALINK:
            return Scalar("BLOB")
        case Kind.TIME if (archived.length or 0) <= 6:
            return Scalar(archived.name)
        case Kind.TIMESTAMP if (archived.length or 6) <= 6:
            return Scalar(archived.name)
        case Kind.TIMESTAMP if archived.name == "TIMESTAMP" and (archived.length or 0) <= 9:
            return Scalar("TIMESTAMP_NS")
        case Kind.INTERVAL if not re.search(r"SECOND\((?:\d+,)?([7-9]|\d\d)", archived.interval):
            return Scalar("INTERVAL")
    return Scalar("VARCHAR")


def fits(duck: DuckType, shape: Shape) -> bool:
    """Whether cells of a shape can become values of a type without loss.

    A nested value that was archived as text cannot: its text does not keep every difference.
    """
    match duck, shape:
        case (Scalar() | Enumeration(), Leaf()):
            return True
        case Record(fields), Struct(parts):
            return len(fields) == len(parts) and all(
                fits(field, part) for (_, field), part in zip(fields, parts, strict=True)
            )
        case Union(members), Struct(parts):
            return len(members) == len(parts) - 1 and all(
                fits(member, part) for (_, member), part in zip(members, parts[1:], strict=True)
            )
        case Mapping(key, value), Array(Struct((first, second))):
            return fits(key, first) and fits(value, second)
        case Listing(element), Array(Struct((inner,))) if is_wrapped(element):
            return fits(element, inner)
        case Listing(element), Array(inner):
            return not is_wrapped(element) and fits(element, inner)
    return False


def is_wrapped(element: DuckType) -> bool:
    """Whether elements of this type need a UDT around them: SIARD has no array of arrays.

    The wrapping has a use of its own: a NULL inside it can be told from a missing element.
    """
    return isinstance(element, Listing | Mapping)


def quote(name: str) -> str:
    """Return a name as a delimited identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _format_fields(fields: tuple[tuple[str, DuckType], ...]) -> str:
    return ", ".join(f"{quote(name)} {kind}" for name, kind in fields)


class _Unknown(Exception):
    """The text is no type that is known here."""


class _Tokens:
    """The words and signs of a type's text, one at a time."""

    _PATTERN = re.compile(r"""\s*("(?:[^"]|"")*"|'(?:[^']|'')*'|\w+|[(),\[\]])\s*""")

    def __init__(self, text: str) -> None:
        self._tokens = self._cut(text)
        self.here: str | None = next(self._tokens, None)

    def _cut(self, text: str) -> Iterator[str]:
        position = 0
        while position < len(text):
            match = self._PATTERN.match(text, position)
            if not match:
                raise _Unknown
            yield match[1]
            position = match.end()

    def take(self) -> str:
        if self.here is None:
            raise _Unknown
        taken, self.here = self.here, next(self._tokens, None)
        return taken

    def accept(self, sign: str) -> bool:
        if self.here != sign:
            return False
        self.take()
        return True

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise _Unknown


def _parse(tokens: _Tokens) -> DuckType:
    """type := base ("[" number? "]")*"""
    found = _parse_base(tokens)
    while tokens.accept("["):
        length = None if tokens.here == "]" else _number(tokens.take())
        tokens.expect("]")
        found = Listing(found, length)
    return found


def _parse_base(tokens: _Tokens) -> DuckType:
    """base := STRUCT(fields) | UNION(fields) | MAP(type, type) | ENUM(labels) | word+ (numbers)?"""
    name = tokens.take()
    if name in ("STRUCT", "UNION"):
        fields = _parse_fields(tokens)
        return Record(fields) if name == "STRUCT" else Union(fields)
    if name == "MAP":
        tokens.expect("(")
        key = _parse(tokens)
        tokens.expect(",")
        value = _parse(tokens)
        tokens.expect(")")
        return Mapping(key, value)
    if name == "ENUM":
        return Enumeration(tuple(_label(token) for token in _parse_arguments(tokens)))
    while tokens.here is not None and tokens.here.isidentifier():
        name = f"{name} {tokens.take()}"
    if name == "DECIMAL":
        return Scalar(name, tuple(_number(token) for token in _parse_arguments(tokens)))
    if name not in _SCALARS:
        raise _Unknown
    return Scalar(name)


def _parse_fields(tokens: _Tokens) -> tuple[tuple[str, DuckType], ...]:
    """fields := "(" name type ("," name type)* ")" """
    tokens.expect("(")
    fields = [(_name(tokens.take()), _parse(tokens))]
    while tokens.accept(","):
        fields.append((_name(tokens.take()), _parse(tokens)))
    tokens.expect(")")
    return tuple(fields)


def _parse_arguments(tokens: _Tokens) -> Iterator[str]:
    tokens.expect("(")
    yield tokens.take()
    while tokens.accept(","):
        yield tokens.take()
    tokens.expect(")")


def _name(token: str) -> str:
    if token.startswith('"'):
        return token[1:-1].replace('""', '"')
    if not token[0].isalpha() and token[0] != "_":
        raise _Unknown
    return token


def _label(token: str) -> str:
    if not token.startswith("'"):
        raise _Unknown
    return token[1:-1].replace("''", "'")


def _number(token: str) -> int:
    if not token.isdecimal():
        raise _Unknown
    return int(token)
