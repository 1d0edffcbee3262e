"""What PostgreSQL alone has, as statements: base types, operators, casts, languages.

The statements that belong to a schema stand behind its description, the others behind the
database's. Server and catalogue are asked with an empty search path, so every name is complete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from muniment.databases.postgresql.catalogue import NO_MEMBER, OWN, Row
from muniment.databases.postgresql.connection import Connection, quote, quote_text, rows

__all__ = ["base_types", "casts", "languages", "schema_specialities"]

_SHELLS = f"""
SELECT n.nspname AS schema, t.typname AS name, obj_description(t.oid, 'pg_type') AS comment
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype = 'p' AND NOT t.typisdefined AND {OWN} AND {NO_MEMBER.format("pg_type", "t")}
ORDER BY 1, 2
"""

_BASE_TYPES = f"""
SELECT n.nspname AS schema, t.typname AS name, obj_description(t.oid, 'pg_type') AS comment,
    t.typlen, t.typbyval, t.typalign, t.typstorage, t.typcategory, t.typispreferred, t.typdelim,
    t.typdefault, t.typcollation <> 0 AS collatable,
    CASE WHEN t.typelem <> 0 THEN format_type(t.typelem, NULL) END AS element,
    t.typinput::text AS input, t.typoutput::text AS output,
    NULLIF(t.typreceive::oid, 0)::regproc::text AS receive,
    NULLIF(t.typsend::oid, 0)::regproc::text AS send,
    NULLIF(t.typmodin::oid, 0)::regproc::text AS typmod_in,
    NULLIF(t.typmodout::oid, 0)::regproc::text AS typmod_out,
    NULLIF(t.typanalyze::oid, 0)::regproc::text AS analyze,
    NULLIF((to_jsonb(t) ->> 'typsubscript')::regproc::oid, 0)::regproc::text AS subscript
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype = 'b' AND t.typisdefined AND {OWN} AND {NO_MEMBER.format("pg_type", "t")}
    AND NOT EXISTS (SELECT 1 FROM pg_type e WHERE e.typarray = t.oid)
ORDER BY 1, 2
"""

_OPERATORS = f"""
SELECT n.nspname AS schema, o.oprname AS name, o.oprcode::text AS function,
    format_type(NULLIF(o.oprleft, 0), NULL) AS "left",
    format_type(NULLIF(o.oprright, 0), NULL) AS "right",
    (SELECT 'OPERATOR(' || quote_ident(cn.nspname) || '.' || c.oprname || ')' FROM pg_operator c
        JOIN pg_namespace cn ON cn.oid = c.oprnamespace WHERE c.oid = o.oprcom) AS commutator,
    (SELECT 'OPERATOR(' || quote_ident(cn.nspname) || '.' || c.oprname || ')' FROM pg_operator c
        JOIN pg_namespace cn ON cn.oid = c.oprnamespace WHERE c.oid = o.oprnegate) AS negator,
    NULLIF(o.oprrest::oid, 0)::regproc::text AS restrict,
    NULLIF(o.oprjoin::oid, 0)::regproc::text AS joins, o.oprcanhash, o.oprcanmerge,
    obj_description(o.oid, 'pg_operator') AS comment
FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
WHERE o.oprcode::oid <> 0 AND {OWN} AND {NO_MEMBER.format("pg_operator", "o")}
ORDER BY 1, 2, o.oid
"""

_FAMILIES = f"""
SELECT f.oid, n.nspname AS schema, f.opfname AS name, a.amname AS method,
    obj_description(f.oid, 'pg_opfamily') AS comment
FROM pg_opfamily f JOIN pg_namespace n ON n.oid = f.opfnamespace JOIN pg_am a ON a.oid = f.opfmethod
WHERE {OWN} AND {NO_MEMBER.format("pg_opfamily", "f")} ORDER BY 2, 3, 4
"""

_CLASSES = f"""
SELECT c.oid, n.nspname AS schema, c.opcname AS name, a.amname AS method, c.opcdefault,
    format_type(c.opcintype, NULL) AS type, fn.nspname AS family_schema, f.opfname AS family,
    format_type(NULLIF(c.opckeytype, 0), NULL) AS storage,
    obj_description(c.oid, 'pg_opclass') AS comment
FROM pg_opclass c JOIN pg_namespace n ON n.oid = c.opcnamespace JOIN pg_am a ON a.oid = c.opcmethod
JOIN pg_opfamily f ON f.oid = c.opcfamily JOIN pg_namespace fn ON fn.oid = f.opfnamespace
WHERE {OWN} AND {NO_MEMBER.format("pg_opclass", "c")} ORDER BY 2, 3, 4
"""

# The operators and functions of families; those that a class needs depend on the class.
_MEMBERS = """
SELECT m.amopfamily AS family, d.refobjid AS class, 1 AS kind, m.oid,
    'OPERATOR ' || m.amopstrategy || ' ' || m.amopopr::regoperator
    || COALESCE((SELECT ' FOR ORDER BY ' || quote_ident(sn.nspname) || '.' || quote_ident(s.opfname)
        FROM pg_opfamily s JOIN pg_namespace sn ON sn.oid = s.opfnamespace
        WHERE s.oid = m.amopsortfamily), '') AS sql
FROM pg_amop m LEFT JOIN pg_depend d ON d.classid = 'pg_amop'::regclass AND d.objid = m.oid
    AND d.refclassid = 'pg_opclass'::regclass
WHERE m.oid >= 16384
UNION ALL
SELECT p.amprocfamily, d.refobjid, 2, p.oid,
    'FUNCTION ' || p.amprocnum || ' (' || format_type(p.amproclefttype, NULL) || ', '
    || format_type(p.amprocrighttype, NULL) || ') ' || p.amproc::regprocedure
FROM pg_amproc p LEFT JOIN pg_depend d ON d.classid = 'pg_amproc'::regclass AND d.objid = p.oid
    AND d.refclassid = 'pg_opclass'::regclass
WHERE p.oid >= 16384
ORDER BY 1, 2, 3, 4
"""

_CONVERSIONS = f"""
SELECT n.nspname AS schema, c.conname AS name, c.condefault, c.conproc::text AS function,
    pg_encoding_to_char(c.conforencoding) AS "from", pg_encoding_to_char(c.contoencoding) AS "to",
    obj_description(c.oid, 'pg_conversion') AS comment
FROM pg_conversion c JOIN pg_namespace n ON n.oid = c.connamespace
WHERE {OWN} AND {NO_MEMBER.format("pg_conversion", "c")} ORDER BY 1, 2
"""

_TEMPLATES = f"""
SELECT n.nspname AS schema, t.tmplname AS name, 'TEMPLATE' AS kind,
    concat_ws(', ', 'INIT = ' || NULLIF(t.tmplinit::oid, 0)::regproc,
        'LEXIZE = ' || t.tmpllexize) AS parts, obj_description(t.oid, 'pg_ts_template') AS comment
FROM pg_ts_template t JOIN pg_namespace n ON n.oid = t.tmplnamespace
WHERE {OWN} AND {NO_MEMBER.format("pg_ts_template", "t")}
UNION ALL
SELECT n.nspname, p.prsname, 'PARSER', concat_ws(', ', 'START = ' || p.prsstart,
    'GETTOKEN = ' || p.prstoken, 'END = ' || p.prsend, 'LEXTYPES = ' || p.prslextype,
    'HEADLINE = ' || NULLIF(p.prsheadline::oid, 0)::regproc),
    obj_description(p.oid, 'pg_ts_parser')
FROM pg_ts_parser p JOIN pg_namespace n ON n.oid = p.prsnamespace
WHERE {OWN} AND {NO_MEMBER.format("pg_ts_parser", "p")} ORDER BY 1, 3, 2
"""

# Who needs a cast or a transform has at least one schema of its own among these.
_CASTS = f"""
SELECT format_type(c.castsource, NULL) AS source, format_type(c.casttarget, NULL) AS target,
    c.castmethod, c.castcontext, NULLIF(c.castfunc, 0)::regprocedure::text AS function,
    obj_description(c.oid, 'pg_cast') AS comment,
    ARRAY(SELECT n.nspname::text FROM pg_namespace n WHERE {OWN} AND n.oid IN (
        SELECT typnamespace FROM pg_type WHERE oid IN (c.castsource, c.casttarget)
        UNION SELECT pronamespace FROM pg_proc WHERE oid = c.castfunc)) AS homes
FROM pg_cast c WHERE c.oid >= 16384 AND {NO_MEMBER.format("pg_cast", "c")}
    AND NOT EXISTS (SELECT 1 FROM pg_depend i WHERE i.deptype = 'i'
        AND i.classid = 'pg_cast'::regclass AND i.objid = c.oid)
ORDER BY 1, 2
"""

_TRANSFORMS = f"""
SELECT format_type(t.trftype, NULL) AS type, l.lanname AS language,
    NULLIF(t.trffromsql::oid, 0)::regprocedure::text AS from_sql,
    NULLIF(t.trftosql::oid, 0)::regprocedure::text AS to_sql,
    obj_description(t.oid, 'pg_transform') AS comment
FROM pg_transform t JOIN pg_language l ON l.oid = t.trflang
WHERE {NO_MEMBER.format("pg_transform", "t")} ORDER BY 1, 2
"""

_LANGUAGES = f"""
SELECT l.lanname AS name, l.lanpltrusted, l.lanplcallfoid::regproc::text AS handler,
    NULLIF(l.laninline, 0)::regproc::text AS inline,
    NULLIF(l.lanvalidator, 0)::regproc::text AS validator,
    obj_description(l.oid, 'pg_language') AS comment
FROM pg_language l WHERE l.lanispl AND {NO_MEMBER.format("pg_language", "l")} ORDER BY 1
"""

_METHODS = f"""
SELECT a.amname AS name, a.amtype AS kind, a.amhandler::text AS handler,
    obj_description(a.oid, 'pg_am') AS comment
FROM pg_am a WHERE a.oid >= 16384 AND {NO_MEMBER.format("pg_am", "a")} ORDER BY 1
"""

_ALIGNED = {"c": "char", "s": "int2", "i": "int4", "d": "double"}
_STORED = {"p": "plain", "e": "external", "x": "extended", "m": "main"}
_CONTEXTS = {"a": " AS ASSIGNMENT", "i": " AS IMPLICIT"}


def base_types(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yield the statements for types in other languages than SQL, each with its schema."""
    for row in rows(connection, _SHELLS):
        yield row["schema"], f"CREATE TYPE {quote(row['schema'], row['name'])}"
        yield from _commented(row, f"TYPE {quote(row['schema'], row['name'])}")
    for row in rows(connection, _BASE_TYPES):
        place = quote(row["schema"], row["name"])
        yield row["schema"], f"CREATE TYPE {place}"  # which its functions need
        yield row["schema"], f"CREATE TYPE {place} ({', '.join(_type_parts(row))})"
        yield from _commented(row, f"TYPE {place}")


def _type_parts(row: Row) -> Iterator[str]:
    for word in ("input", "output", "receive", "send", "typmod_in", "typmod_out", "analyze"):
        if row[word]:
            yield f"{word.upper()} = {row[word]}"
    if row["subscript"]:
        yield f"SUBSCRIPT = {row['subscript']}"
    yield f"INTERNALLENGTH = {row['typlen'] if row['typlen'] > 0 else 'VARIABLE'}"
    if row["typbyval"]:
        yield "PASSEDBYVALUE"
    yield f"ALIGNMENT = {_ALIGNED[row['typalign']]}"
    yield f"STORAGE = {_STORED[row['typstorage']]}"
    yield f"CATEGORY = {quote_text(row['typcategory'])}"
    if row["typispreferred"]:
        yield "PREFERRED = true"
    if row["typdefault"] is not None:
        yield f"DEFAULT = {quote_text(row['typdefault'])}"
    if row["element"]:
        yield f"ELEMENT = {row['element']}"
    if row["typdelim"] != ",":
        yield f"DELIMITER = {quote_text(row['typdelim'])}"
    if row["collatable"]:
        yield "COLLATABLE = true"


def schema_specialities(connection: Connection) -> dict[str, list[str]]:
    """Return the statements for operators, their classes, conversions and the like, by schema."""
    found: dict[str, list[str]] = defaultdict(list)
    for read in (base_types, _operators, _operator_classes, _conversions, _search_parts):
        for home, sql in read(connection):
            found[home].append(sql)
    return found


def _commented(row: Row, place: str) -> Iterator[tuple[str, str]]:
    if row["comment"]:
        yield row["schema"], f"COMMENT ON {place} IS {quote_text(row['comment'])}"


def _operators(connection: Connection) -> Iterator[tuple[str, str]]:
    for row in rows(connection, _OPERATORS):
        place = f"{quote(row['schema'])}.{row['name']}"
        parts = [f"FUNCTION = {row['function']}"]
        for word, key in (
            ("LEFTARG", "left"), ("RIGHTARG", "right"), ("COMMUTATOR", "commutator"),
            ("NEGATOR", "negator"), ("RESTRICT", "restrict"), ("JOIN", "joins"),
        ):  # fmt: skip
            if row[key]:
                parts.append(f"{word} = {row[key]}")
        parts += ["HASHES"] if row["oprcanhash"] else []
        parts += ["MERGES"] if row["oprcanmerge"] else []
        yield row["schema"], f"CREATE OPERATOR {place} ({', '.join(parts)})"
        sides = f"({row['left'] or 'NONE'}, {row['right'] or 'NONE'})"
        yield from _commented(row, f"OPERATOR {place} {sides}")


def _operator_classes(connection: Connection) -> Iterator[tuple[str, str]]:
    """Families first, then classes, then what families have besides their classes."""
    of_class: dict[int, list[str]] = defaultdict(list)
    of_family: dict[int, list[str]] = defaultdict(list)
    for row in rows(connection, _MEMBERS):
        (of_class[row["class"]] if row["class"] else of_family[row["family"]]).append(row["sql"])
    families = rows(connection, _FAMILIES)
    for row in families:
        place = f"OPERATOR FAMILY {quote(row['schema'], row['name'])} USING {quote(row['method'])}"
        yield row["schema"], f"CREATE {place}"
        yield from _commented(row, place)
    for row in rows(connection, _CLASSES):
        method, name = quote(row["method"]), quote(row["schema"], row["name"])
        head = f"CREATE OPERATOR CLASS {name}{' DEFAULT' if row['opcdefault'] else ''}"
        family = quote(row["family_schema"], row["family"])
        parts = [f"STORAGE {row['storage']}"] if row["storage"] else []
        parts += of_class[row["oid"]]
        listed = ", ".join(parts) or f"STORAGE {row['type']}"
        sql = f"{head} FOR TYPE {row['type']} USING {method} FAMILY {family} AS {listed}"
        yield row["schema"], sql
        yield from _commented(row, f"OPERATOR CLASS {name} USING {method}")
    for row in families:
        if loose := of_family[row["oid"]]:
            place = f"{quote(row['schema'], row['name'])} USING {quote(row['method'])}"
            yield row["schema"], f"ALTER OPERATOR FAMILY {place} ADD {', '.join(loose)}"


def _conversions(connection: Connection) -> Iterator[tuple[str, str]]:
    for row in rows(connection, _CONVERSIONS):
        place = f"CONVERSION {quote(row['schema'], row['name'])}"
        head = f"CREATE {'DEFAULT ' if row['condefault'] else ''}{place}"
        ends = f"FOR {quote_text(row['from'])} TO {quote_text(row['to'])}"
        yield row["schema"], f"{head} {ends} FROM {row['function']}"
        yield from _commented(row, place)


def _search_parts(connection: Connection) -> Iterator[tuple[str, str]]:
    for row in rows(connection, _TEMPLATES):
        place = f"TEXT SEARCH {row['kind']} {quote(row['schema'], row['name'])}"
        yield row["schema"], f"CREATE {place} ({row['parts']})"
        yield from _commented(row, place)


def casts(connection: Connection, taken: Callable[[str], bool]) -> Iterator[str]:
    """Yield the statements for casts and transforms; ``taken`` says which schemas are there."""
    for row in rows(connection, _CASTS):
        if not all(map(taken, row["homes"])):
            continue
        place = f"CAST ({row['source']} AS {row['target']})"
        way = {"f": f"WITH FUNCTION {row['function']}", "i": "WITH INOUT"}
        sql = f"CREATE {place} {way.get(row['castmethod'], 'WITHOUT FUNCTION')}"
        yield sql + _CONTEXTS.get(row["castcontext"], "")
        yield from _comment(row, place)
    for row in rows(connection, _TRANSFORMS):
        place = f"TRANSFORM FOR {row['type']} LANGUAGE {quote(row['language'])}"
        ways = [
            f"{word} SQL WITH FUNCTION {row[key]}"
            for word, key in (("FROM", "from_sql"), ("TO", "to_sql"))
            if row[key]
        ]
        yield f"CREATE {place} ({', '.join(ways)})"
        yield from _comment(row, place)


def languages(connection: Connection) -> Iterator[str]:
    """Yield the statements for languages and access methods that no extension brought."""
    for row in rows(connection, _LANGUAGES):
        place = f"LANGUAGE {quote(row['name'])}"
        sql = f"CREATE {'TRUSTED ' if row['lanpltrusted'] else ''}{place} HANDLER {row['handler']}"
        for word in ("inline", "validator"):
            sql += f" {word.upper()} {row[word]}" if row[word] else ""
        yield sql
        yield from _comment(row, place)
    for row in rows(connection, _METHODS):
        kind = "INDEX" if row["kind"] == "i" else "TABLE"
        place = f"ACCESS METHOD {quote(row['name'])}"
        yield f"CREATE {place} TYPE {kind} HANDLER {row['handler']}"
        yield from _comment(row, place)


def _comment(row: Row, place: str) -> Iterator[str]:
    if row["comment"]:
        yield f"COMMENT ON {place} IS {quote_text(row['comment'])}"
