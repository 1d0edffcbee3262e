"""PostgreSQL's types: what each becomes in an archive, and how its text turns into cells.

``TYPES`` is the one table: the code looks types up in it, and docs/types.md shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from muniment.databases.mapping import TypeRow
from muniment.sql.types import PredefinedType, parse_type

__all__ = ["TYPES", "UNWRITABLE", "Listing", "Node", "Plain", "Record", "archived_type"]

_BOUNDED = "a value outside 0001-01-01 to 9999-12-31, or infinity, stops the work"
_AS_TEXT = "as PostgreSQL spells it"
_TEXT = "as text"

# Internal types, whose values PostgreSQL prints and never reads.
UNWRITABLE = (
    "gtsvector", "pg_brin_bloom_summary", "pg_brin_minmax_multi_summary", "pg_dependencies",
    "pg_mcv_list", "pg_ndistinct", "pg_node_tree",
)  # fmt: skip

TYPES: tuple[TypeRow, ...] = (
    TypeRow("boolean", "BOOLEAN", "`true`, `false`"),
    TypeRow("smallint", "SMALLINT"),
    TypeRow("integer", "INTEGER"),
    TypeRow("bigint", "BIGINT"),
    TypeRow(
        "numeric", "NUMERIC", "digits and scale as stored", loss="`NaN`, `Infinity` stop the work"
    ),
    TypeRow("real", "REAL", "shortest digits that read back to the same bits; `INF`, `NaN`"),
    TypeRow("double precision", "DOUBLE PRECISION", "as real"),
    TypeRow("money", "DECIMAL(19,2)", "with the decimals of the database's lc_monetary"),
    TypeRow("character", "CHAR", "with its padding"),
    TypeRow("character varying", "VARCHAR", "CLOB where no length is declared"),
    TypeRow("text", "CLOB"),
    TypeRow("name", "VARCHAR(63)"),
    TypeRow('"char"', "VARCHAR(4)"),
    TypeRow("bytea", "BLOB", "hexadecimal, or a file"),
    TypeRow("date", "DATE", loss=_BOUNDED),
    TypeRow("time without time zone", "TIME(6)", loss="`24:00:00` stops the work"),
    TypeRow(
        "time with time zone", "VARCHAR(24)", "with its offset: SIARD's times are UTC", others=_TEXT
    ),
    TypeRow("timestamp without time zone", "TIMESTAMP(6)", "spelt as if in UTC", loss=_BOUNDED),
    TypeRow("timestamp with time zone", "TIMESTAMP WITH TIME ZONE(6)", "in UTC", loss=_BOUNDED),
    TypeRow(
        "interval",
        "INTERVAL DAY TO SECOND(6)",
        "or INTERVAL YEAR TO MONTH if the column holds nothing else; VARCHAR(100) in ISO 8601 if"
        " it mixes months with days or seconds, or signs",
    ),
    TypeRow("uuid", "CHAR(36)", others=_TEXT),
    TypeRow("json", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("jsonb", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("jsonpath", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("xml", "XML"),
    TypeRow("bit", "CHAR", "`0` and `1`", others=_TEXT),
    TypeRow(
        "bit varying", "VARCHAR", "`0` and `1`; CLOB where no length is declared", others=_TEXT
    ),
    TypeRow("inet", "VARCHAR(50)", _AS_TEXT, others=_TEXT),
    TypeRow("cidr", "VARCHAR(50)", _AS_TEXT, others=_TEXT),
    TypeRow("macaddr", "CHAR(17)", _AS_TEXT, others=_TEXT),
    TypeRow("macaddr8", "CHAR(23)", _AS_TEXT, others=_TEXT),
    TypeRow("point", "VARCHAR(100)", _AS_TEXT, others=_TEXT),
    TypeRow("line", "VARCHAR(100)", _AS_TEXT, others=_TEXT),
    TypeRow("lseg", "VARCHAR(200)", _AS_TEXT, others=_TEXT),
    TypeRow("box", "VARCHAR(200)", _AS_TEXT, others=_TEXT),
    TypeRow("path", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("polygon", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("circle", "VARCHAR(100)", _AS_TEXT, others=_TEXT),
    TypeRow("int4range", "VARCHAR(100)", _AS_TEXT, others=_TEXT),
    TypeRow("int8range", "VARCHAR(100)", _AS_TEXT, others=_TEXT),
    TypeRow("numrange", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("tsrange", "VARCHAR(100)", _AS_TEXT, others=_TEXT),
    TypeRow("tstzrange", "VARCHAR(100)", f"{_AS_TEXT}, in UTC", others=_TEXT),
    TypeRow("daterange", "VARCHAR(100)", _AS_TEXT, others=_TEXT),
    TypeRow("int4multirange", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("int8multirange", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("nummultirange", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("tsmultirange", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("tstzmultirange", "CLOB", f"{_AS_TEXT}, in UTC", others=_TEXT),
    TypeRow("datemultirange", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("tsvector", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("tsquery", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("oid", "BIGINT", "BLOB where every value is the number of a large object"),
    TypeRow(
        "lo",
        "BLOB",
        "the large object itself, in hexadecimal or in a file",
        same="a large object with a new number",
        loss="the number of the large object",
    ),
    TypeRow("xid", "BIGINT"),
    TypeRow("cid", "BIGINT"),
    TypeRow("xid8", "DECIMAL(20,0)"),
    TypeRow("tid", "VARCHAR(20)", _AS_TEXT, others=_TEXT),
    TypeRow("pg_lsn", "VARCHAR(17)", _AS_TEXT, others=_TEXT),
    TypeRow("pg_snapshot", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("txid_snapshot", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("regclass", "CLOB", "the name, with its schema", others=_TEXT),
    TypeRow("regcollation", "CLOB", "the name, with its schema", others=_TEXT),
    TypeRow("regconfig", "CLOB", "the name, with its schema", others=_TEXT),
    TypeRow("regdictionary", "CLOB", "the name, with its schema", others=_TEXT),
    TypeRow("regnamespace", "CLOB", "the name", others=_TEXT),
    TypeRow("regoper", "CLOB", "the name, with its schema", others=_TEXT),
    TypeRow("regoperator", "CLOB", "the name, with its schema", others=_TEXT),
    TypeRow("regproc", "CLOB", "the name, with its schema", others=_TEXT),
    TypeRow("regprocedure", "CLOB", "the name, with its schema", others=_TEXT),
    TypeRow("regrole", "CLOB", "the name", others=_TEXT),
    TypeRow("regtype", "CLOB", "the name, with its schema", others=_TEXT),
    TypeRow("int2vector", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("oidvector", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("aclitem", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("refcursor", "CLOB", others=_TEXT),
    *(
        TypeRow(name, "CLOB", _AS_TEXT, same="text: PostgreSQL itself takes none", others=_TEXT)
        for name in UNWRITABLE
    ),
    TypeRow("hstore, citext, ltree, … of extensions", "CLOB", _AS_TEXT, others=_TEXT),
    TypeRow("a range of one's own", "DISTINCT", "CLOB, as PostgreSQL spells it", others=_TEXT),
    TypeRow(
        "an enumeration",
        "DISTINCT",
        "VARCHAR of the longest label; the labels stand in the type's description",
        others=_TEXT,
    ),
    TypeRow("a domain", "DISTINCT", "its checks stand in the type's description"),
    TypeRow("a composite type", "UDT", others="as JSON where there are no such types"),
    TypeRow(
        "an array",
        "ARRAY",
        "as long as the longest value; CLOB if values have more than one dimension, another lower"
        " bound than 1, or NULL at the end",
        others="as JSON where there are no arrays",
    ),
)

_ARCHIVED = {
    row.original: parse_type(row.archived)
    for row in TYPES
    if row.archived not in ("UDT", "ARRAY", "DISTINCT")
}
_CLOB = PredefinedType("CLOB")
_FRACTIONS = {"time without time zone", "timestamp without time zone", "timestamp with time zone"}


@dataclass(frozen=True, slots=True)
class Plain:
    """A value without parts; ``base`` is the name of the built-in type whose text it has."""

    base: str
    archived: PredefinedType


@dataclass(frozen=True, slots=True)
class Listing:
    """An array of one dimension."""

    element: Node


@dataclass(frozen=True, slots=True)
class Record:
    """A composite value."""

    parts: tuple[Node, ...]


Node = Plain | Listing | Record


def archived_type(name: str, modifier: int) -> PredefinedType:
    """Return the SQL:2008 type for a built-in type and the modifier that its declaration gave it.

    >>> str(archived_type("numeric", 786438)), str(archived_type("character varying", -1))
    ('NUMERIC(12,2)', 'CLOB')
    >>> str(archived_type("timestamp with time zone", 3)), str(archived_type("geometry", -1))
    ('TIMESTAMP WITH TIME ZONE(3)', 'CLOB')
    """
    found = _ARCHIVED.get(name, _CLOB)
    if name in ("character", "character varying"):
        return PredefinedType(found.name, modifier - 4) if modifier >= 4 else _CLOB
    if name in ("bit", "bit varying"):
        return PredefinedType(found.name, modifier) if modifier > 0 else _CLOB
    if name == "numeric" and modifier >= 4:
        return _numeric(modifier - 4)
    if name in _FRACTIONS and modifier >= 0:
        return PredefinedType(found.name, modifier)
    return found


def _numeric(modifier: int) -> PredefinedType:
    """Scales below zero or above the precision exist since PostgreSQL 15, and not in SQL:2008."""
    precision, scale = modifier >> 16 & 0xFFFF, (modifier & 0x7FF ^ 0x400) - 0x400
    if scale < 0:
        return PredefinedType("NUMERIC", precision - scale, 0)
    return PredefinedType("NUMERIC", max(precision, scale), scale)
