"""SQL:2008 identifiers as SIARD stores and SQL writes them (G_3.5).

An archive holds every name without quotation marks: a regular identifier in upper case, any other
just as it is. A name with a lower-case letter is therefore a delimited one, and keeps its case.
"""

from __future__ import annotations

import re

from muniment.errors import UsageError

__all__ = ["LONGEST", "format_identifier", "is_regular", "parse_identifiers", "quoted"]

LONGEST = 128  # characters of a name in SQL:2008

_REGULAR = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')

# The reserved words of SQL:2008 that a name may not be without quotation marks.
_RESERVED = frozenset(
    """ABS ALL ALLOCATE ALTER AND ANY ARE ARRAY ARRAY_AGG AS ASENSITIVE ASYMMETRIC AT ATOMIC
    AUTHORIZATION AVG BEGIN BETWEEN BIGINT BINARY BLOB BOOLEAN BOTH BY CALL CALLED
    CARDINALITY CASCADED CASE CAST CEIL CEILING CHAR CHARACTER CHARACTER_LENGTH CHAR_LENGTH
    CHECK CLOB CLOSE COALESCE COLLATE COLLECT COLUMN COMMIT CONDITION CONNECT CONSTRAINT
    CONVERT CORR CORRESPONDING COUNT COVAR_POP COVAR_SAMP CREATE CROSS CUBE CUME_DIST
    CURRENT CURRENT_CATALOG CURRENT_DATE CURRENT_DEFAULT_TRANSFORM_GROUP CURRENT_PATH
    CURRENT_ROLE CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP
    CURRENT_TRANSFORM_GROUP_FOR_TYPE CURRENT_USER CURSOR CYCLE DATALINK DATE DAY DEALLOCATE
    DEC DECIMAL DECLARE DEFAULT DELETE DENSE_RANK DEREF DESCRIBE DETERMINISTIC DISCONNECT
    DISTINCT DLNEWCOPY DLPREVIOUSCOPY DLURLCOMPLETE DLURLCOMPLETEONLY DLURLCOMPLETEWRITE
    DLURLPATH DLURLPATHONLY DLURLPATHWRITE DLURLSCHEME DLURLSERVER DLVALUE DOUBLE DROP
    DYNAMIC EACH ELEMENT ELSE END END-EXEC ESCAPE EVERY EXCEPT EXEC EXECUTE EXISTS EXP
    EXTERNAL EXTRACT FALSE FETCH FILTER FIRST_VALUE FLOAT FLOOR FOR FOREIGN FREE FROM FULL
    FUNCTION FUSION GET GLOBAL GRANT GROUP GROUPING HAVING HOLD HOUR IDENTITY IMPORT IN
    INDICATOR INNER INOUT INSENSITIVE INSERT INT INTEGER INTERSECT INTERSECTION INTERVAL
    INTO IS JOIN LAG LANGUAGE LARGE LAST_VALUE LATERAL LEAD LEADING LEFT LIKE LIKE_REGEX LN
    LOCAL LOCALTIME LOCALTIMESTAMP LOWER MATCH MAX MEMBER MERGE METHOD MIN MINUTE MOD
    MODIFIES MODULE MONTH MULTISET NATIONAL NATURAL NCHAR NCLOB NEW NO NONE NORMALIZE NOT
    NTH_VALUE NTILE NULL NULLIF NUMERIC OCCURRENCES_REGEX OCTET_LENGTH OF OFFSET OLD ON ONLY
    OPEN OR ORDER OUT OUTER OVER OVERLAPS OVERLAY PARAMETER PARTITION PERCENTILE_CONT
    PERCENTILE_DISC PERCENT_RANK POSITION POSITION_REGEX POWER PRECISION PREPARE PRIMARY
    PROCEDURE RANGE RANK READS REAL RECURSIVE REF REFERENCES REFERENCING REGR_AVGX REGR_AVGY
    REGR_COUNT REGR_INTERCEPT REGR_R2 REGR_SLOPE REGR_SXX REGR_SXY REGR_SYY RELEASE RESULT
    RETURN RETURNS REVOKE RIGHT ROLLBACK ROLLUP ROW ROWS ROW_NUMBER SAVEPOINT SCOPE SCROLL
    SEARCH SECOND SELECT SENSITIVE SESSION_USER SET SIMILAR SMALLINT SOME SPECIFIC
    SPECIFICTYPE SQL SQLEXCEPTION SQLSTATE SQLWARNING SQRT START STATIC STDDEV_POP
    STDDEV_SAMP SUBMULTISET SUBSTRING SUBSTRING_REGEX SUM SYMMETRIC SYSTEM SYSTEM_USER TABLE
    TABLESAMPLE THEN TIME TIMESTAMP TIMEZONE_HOUR TIMEZONE_MINUTE TO TRAILING TRANSLATE
    TRANSLATE_REGEX TRANSLATION TREAT TRIGGER TRIM TRIM_ARRAY TRUE TRUNCATE UESCAPE UNION
    UNIQUE UNKNOWN UNNEST UPDATE UPPER USER USING VALUE VALUES VARBINARY VARCHAR VARYING
    VAR_POP VAR_SAMP WHEN WHENEVER WHERE WIDTH_BUCKET WINDOW WITH WITHIN WITHOUT XML XMLAGG
    XMLATTRIBUTES XMLBINARY XMLCAST XMLCOMMENT XMLCONCAT XMLDOCUMENT XMLELEMENT XMLEXISTS
    XMLFOREST XMLITERATE XMLNAMESPACES XMLPARSE XMLPI XMLQUERY XMLSERIALIZE XMLTABLE XMLTEXT
    XMLVALIDATE YEAR""".split()  # noqa: SIM905
)


def is_regular(name: str) -> bool:
    """Whether a stored name can stand in SQL without quotation marks.

    >>> [is_regular(name) for name in ("PARCEL", "parcel", "SELECT", "GREEN PARK")]
    [True, False, False, False]
    """
    return _REGULAR.fullmatch(name) is not None and name not in _RESERVED


def quoted(name: str) -> str:
    """Return a name between quotation marks, which is right in SQL for every name.

    >>> quoted('the "old" town')
    '"the ""old"" town"'
    """
    return '"' + name.replace('"', '""') + '"'


def format_identifier(*names: str) -> str:
    """Return names as SQL writes them, joined by full stops, quoted only where they have to be.

    >>> format_identifier("MAIN", "tree")
    'MAIN."tree"'
    """
    return ".".join(name if is_regular(name) else quoted(name) for name in names)


def parse_identifiers(text: str) -> tuple[str, ...]:
    """Return the names in a dotted text; quotation marks protect full stops and are taken off.

    Case is kept: which of two spellings a product means is for its catalogue to say.

    >>> parse_identifiers('main."guided.walk"')
    ('main', 'guided.walk')
    """
    names, position = [], 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            raise UsageError(f'{text!r} is not a name; write SCHEMA.TABLE or "SCHEMA"."TABLE"')
        names.append(match[1].replace('""', '"') if match[1] is not None else match[2])
        position = match.end()
        if position == len(text):
            return tuple(names)
        if text[position] != ".":
            raise UsageError(f'{text!r} is not a name; write SCHEMA.TABLE or "SCHEMA"."TABLE"')
        position += 1
