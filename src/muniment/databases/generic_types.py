"""SQLAlchemy's types and SQL:2008's, both ways, for products without a module of their own."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mssql as untyped
from sqlalchemy.dialects import mysql, oracle

from muniment.sql.types import Kind, PredefinedType

__all__ = ["column_type", "sql_type"]

mssql: Any = untyped
_LONGEST = 4000  # characters; more is a large object in some product


def sql_type(type_: Any) -> PredefinedType | None:
    """Return the SQL:2008 type of a reflected column, or None if nobody knows how to read it."""
    length = getattr(type_, "length", None)
    match type_:
        case sa.Boolean():
            return PredefinedType("BOOLEAN")
        case sa.SmallInteger():
            return PredefinedType("SMALLINT")
        case sa.BigInteger():
            return PredefinedType("BIGINT")
        case sa.Integer():
            return _integer(type_)
        case sa.REAL():
            return PredefinedType("REAL")
        case sa.Float():
            return PredefinedType("DOUBLE PRECISION")
        case sa.Numeric():
            return _numeric(type_)
        case sa.Interval():
            return None
        case sa.DateTime():
            zone = " WITH TIME ZONE" if getattr(type_, "timezone", False) else ""
            return PredefinedType(f"TIMESTAMP{zone}", 6)
        case sa.Date():
            return PredefinedType("DATE")
        case sa.Time():
            return None if getattr(type_, "timezone", False) else PredefinedType("TIME", 6)
        case sa.BINARY() | sa.VARBINARY() if isinstance(length, int) and 0 < length <= 1 << 15:
            return PredefinedType("VARBINARY", length)
        case sa.LargeBinary() | sa.BINARY() | sa.VARBINARY():
            return PredefinedType("BLOB")
        case sa.Uuid() | sa.UUID():
            return PredefinedType("VARCHAR", 36)
        case sa.JSON():
            return PredefinedType("CLOB")
        case sa.CHAR() | sa.NCHAR() if isinstance(length, int):
            return PredefinedType("CHAR", length)
        case sa.Text() | sa.UnicodeText() | sa.Enum():
            return PredefinedType("CLOB")
        case sa.String():
            return PredefinedType("VARCHAR", length) if length else PredefinedType("CLOB")
    return None


def _integer(type_: Any) -> PredefinedType:
    if getattr(type_, "unsigned", False):  # MySQL's; the next larger type holds them
        return PredefinedType("BIGINT")
    return PredefinedType("INTEGER")


def _numeric(type_: Any) -> PredefinedType:
    """A number without a precision has no bounds; a plain type says so."""
    if type_.precision is None:
        return PredefinedType("DECIMAL")
    scale = type_.scale or 0
    if scale < 0 or scale > type_.precision:  # Oracle has both
        return PredefinedType("DECIMAL")
    return PredefinedType("DECIMAL", type_.precision, scale)


def column_type(type_: PredefinedType) -> Any:
    """Return the SQLAlchemy type that holds every value of an SQL:2008 type, in any dialect."""
    match type_.kind:
        case Kind.INTEGER:
            names = {"SMALLINT": sa.SmallInteger, "BIGINT": sa.BigInteger}
            return names.get(type_.name, sa.Integer)()
        case Kind.DECIMAL:
            return sa.Numeric(type_.length, type_.scale)
        case Kind.FLOAT:
            return sa.REAL() if type_.name == "REAL" else sa.Double()
        case Kind.BOOLEAN:
            return sa.Boolean(create_constraint=False)
        case Kind.DATE:
            return sa.Date()
        case Kind.TIME:
            time: Any = sa.Time().with_variant(mysql.TIME(fsp=6), "mysql", "mariadb")
            return time.with_variant(mssql.TIME(6), "mssql")
        case Kind.TIMESTAMP:
            zoned = type_.name.endswith("ZONE")
            moment: Any = sa.DateTime(timezone=zoned)
            moment = moment.with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
            offset: Any = mssql.DATETIMEOFFSET(6) if zoned else mssql.DATETIME2(6)
            moment = moment.with_variant(offset, "mssql")
            return moment.with_variant(oracle.TIMESTAMP(timezone=zoned), "oracle")
        case Kind.BINARY:
            blob: Any = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
            short = type_.length is not None and type_.length <= _LONGEST and not type_.large
            if short and type_.length:
                few = sa.VARBINARY(type_.length)
                return sa.LargeBinary().with_variant(few, "mysql", "mariadb", "mssql")
            return blob
    if type_.length is not None and type_.length <= _LONGEST and not type_.large:
        fixed = type_.name in ("CHAR", "NCHAR")
        return sa.CHAR(type_.length) if fixed else sa.Unicode(type_.length)
    text: Any = sa.UnicodeText().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
    return text
