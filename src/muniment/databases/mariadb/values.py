"""SQL that turns values into the text of a batch, and that text into values again.

``cell_sql`` and ``value_sql`` are mirror images. Cells come as bytes: text as UTF-8, a NULL and a
reference with marks of their own, a value that has no exact text with the odd mark and its bytes
as hex.
"""

from __future__ import annotations

from muniment.databases.mariadb.connection import quote
from muniment.databases.mariadb.types import SPATIAL, NativeType
from muniment.sql.types import Kind, PredefinedType

__all__ = ["cell_sql", "is_raw", "raw_sql", "value_sql"]

_UTF8 = ("utf8mb4", "utf8mb3", "utf8", "ascii")
_NUMBERS = {
    "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year",
}  # fmt: skip
_BYTES_NEEDED = {  # read other things from binary text
    "uuid", "inet4", "inet6", "enum", "set", "json",
}  # fmt: skip
_LARGEST = "3.4028234663852886e38"  # of single precision


def cell_sql(
    name: str,
    native: NativeType | None,
    archived: PredefinedType,
    charset: str | None,
    as_text: bool,
) -> tuple[str, str]:
    """Return SQL for the text of a column's values, and SQL for when that is exact ("" for always).

    The text is NULL where the value is.
    """
    column = quote(name)
    kind = native.name if native else ""
    if as_text:
        return _any_text(column, native, charset)
    if kind in SPATIAL:
        return _spatial(column)
    if archived.kind is Kind.BOOLEAN:
        return f"IF({column} IS NULL,NULL,IF({column},'true','false'))", ""
    if kind == "bit":
        return _bits(column, archived), ""
    if kind == "float":
        return f"CAST({column} AS DOUBLE)", ""
    if kind == "double":
        fixed = native is not None and native.parameters
        return (f"CAST({column} AS DOUBLE)" if fixed else column), ""
    if kind in _NUMBERS:
        return (f"{column}+0" if kind == "year" or (native and native.zerofill) else column), ""
    if archived.kind is Kind.TIMESTAMP:
        return f"REPLACE({column},' ','T')", ""
    if archived.kind is Kind.BINARY:
        return f"HEX({column})", ""
    if kind in ("uuid", "inet4", "inet6"):  # whose bytes are something else
        return f"BINARY CAST({column} AS CHAR)", ""
    if kind == "json":
        return _json(column)
    if charset is None or kind in ("date", "time"):
        return column, ""
    return _text(column, charset)


def _json(column: str) -> tuple[str, str]:
    """MySQL's own JSON keeps decimals such as 2.50, which it would not read from text."""
    text = f"CAST({column} AS CHAR)"
    return f"BINARY {text}", f"BINARY CAST(CAST({text} AS JSON) AS CHAR)=BINARY {text}"


def raw_sql(
    name: str,
    native: NativeType | None,
    archived: PredefinedType,
    charset: str | None,
    as_text: bool,
) -> str:
    """Return SQL for a large value as it lies in a file: bytes, or text in UTF-8."""
    if archived.kind is Kind.BINARY and not as_text:
        return quote(name)
    return cell_sql(name, native, archived, charset, as_text)[0]


def _text(column: str, charset: str) -> tuple[str, str]:
    if charset in _UTF8:
        return f"BINARY {column}", ""
    unicode = f"CONVERT({column} USING utf8mb4)"
    return f"BINARY {unicode}", f"BINARY CONVERT({unicode} USING {charset})=BINARY {column}"


def _any_text(column: str, native: NativeType | None, charset: str | None) -> tuple[str, str]:
    """Any value as the server spells it; bytes that are not text as X'…'."""
    kind = native.name if native else ""
    octets = f"CONCAT('X''',HEX({column}),'''')"
    if kind in SPATIAL:  # as it is otherwise, where that is exact
        text, same = _spatial(column)
        return f"IF({column} IS NULL,NULL,IF({same},{text},{octets}))", ""
    if kind == "bit" or "binary" in kind or "blob" in kind:
        return octets, ""
    if charset is None or kind in ("date", "time", "datetime", "timestamp"):
        return f"BINARY CAST({column} AS CHAR)", ""
    unicode = f"CONVERT({column} USING utf8mb4)"
    if charset in _UTF8:
        unicode = f"CONVERT(BINARY {column} USING utf8mb4)"
        same = f"BINARY {unicode}=BINARY {column}"
    else:
        same = f"BINARY CONVERT({unicode} USING {charset})=BINARY {column}"
    return f"IF({column} IS NULL,NULL,IF({same},BINARY {unicode},{octets}))", ""


def _spatial(column: str) -> tuple[str, str]:
    text = f"CONCAT('SRID=',ST_SRID({column}),';',ST_AsText({column}))"
    again = f"ST_GeomFromText(ST_AsText({column}),ST_SRID({column}))"
    return f"BINARY {text}", f"HEX({again})=HEX({column})"


def _bits(column: str, archived: PredefinedType) -> str:
    return f"LPAD(BIN({column}+0),{archived.length},'0')"


def value_sql(
    native: NativeType | None, archived: PredefinedType, charset: str | None, cell: str
) -> str | None:
    """Return SQL for a value, given SQL for its cell as binary text; None where that is the value.

    The inverse of ``cell_sql``.
    """
    kind = native.name if native else ""
    textual = archived.kind is Kind.TEXT
    if kind in SPATIAL:
        srid = f"CAST(SUBSTRING_INDEX(SUBSTRING({cell},6),';',1) AS UNSIGNED)"
        value = f"ST_GeomFromText(SUBSTRING({cell},LOCATE(';',{cell})+1),{srid})"
        return f"IF(LEFT({cell},1)='X',UNHEX(SUBSTRING({cell},3,LENGTH({cell})-3)),{value})"
    if archived.kind is Kind.BOOLEAN:
        return f"({cell} IN ('true','1'))"
    if kind == "bit":
        return f"CAST(CONV({cell},2,10) AS UNSIGNED)"
    if kind == "float" and not textual:
        # The shortest text of the largest number is a little too large for the server.
        near = f"ABS({cell})>{_LARGEST} AND ABS({cell})<3.4028235677973366e38"
        return f"IF({near},SIGN({cell})*{_LARGEST},{cell}+0e0)"
    if kind == "year":
        return f"{cell}+0" if not textual else None
    if archived.kind is Kind.BINARY and not is_raw(native, archived):
        return f"UNHEX({cell})"
    if kind in _BYTES_NEEDED or (charset is not None and charset not in _UTF8):
        return f"CONVERT({cell} USING utf8mb4)"
    return None


def is_raw(native: NativeType | None, archived: PredefinedType) -> bool:
    """Whether a column takes bytes as they are rather than hex: those that may be long."""
    return archived.kind in (Kind.BINARY, Kind.DATALINK) and archived.large
