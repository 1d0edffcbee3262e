"""Who owns what, which rights owners gave up, and what is granted on objects to come."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from muniment.databases.postgresql.catalogue import NO_MEMBER, OWN, Row
from muniment.databases.postgresql.connection import Connection, quote, rows
from muniment.sql.selection import Selection

__all__ = ["default_privileges", "given_up", "owners"]

_DEFAULTS = """
SELECT quote_ident(pg_get_userbyid(d.defaclrole)) AS role, n.nspname AS schema,
    d.defaclobjtype AS kind, x.kept, x.right, x.grantable,
    CASE WHEN x.grantee = 0 THEN 'PUBLIC'
        ELSE quote_ident(pg_get_userbyid(x.grantee)) END AS grantee
FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace, LATERAL (
    SELECT false AS kept, a.grantee, a.privilege_type AS right, a.is_grantable AS grantable
    FROM aclexplode(acldefault(CASE d.defaclobjtype WHEN 'S' THEN 's' ELSE d.defaclobjtype END,
        d.defaclrole)) a
    WHERE d.defaclnamespace = 0 AND (a.grantee, a.privilege_type) NOT IN
        (SELECT b.grantee, b.privilege_type FROM aclexplode(d.defaclacl) b)
    UNION ALL
    SELECT true, a.grantee, a.privilege_type, a.is_grantable FROM aclexplode(d.defaclacl) a
    WHERE d.defaclnamespace <> 0 OR (a.grantee, a.privilege_type, a.is_grantable) NOT IN
        (SELECT b.grantee, b.privilege_type, b.is_grantable FROM aclexplode(acldefault(
            CASE d.defaclobjtype WHEN 'S' THEN 's' ELSE d.defaclobjtype END, d.defaclrole)) b)
) x ORDER BY 1, 2 NULLS FIRST, 3, x.kept, grantee, x.right
"""

# Who owns what, but for what the server's first user owns. Sequences of columns follow tables.
# The schema public, in which its owner may create, is born with another one since version 15.
_NAMED = {  # the word, the catalogue, and how its columns begin
    "COLLATION": ("pg_collation", "coll"),
    "CONVERSION": ("pg_conversion", "con"),
    "STATISTICS": ("pg_statistic_ext", "stx"),
    "TEXT SEARCH DICTIONARY": ("pg_ts_dict", "dict"),
    "TEXT SEARCH CONFIGURATION": ("pg_ts_config", "cfg"),
    "OPERATOR CLASS": ("pg_opclass", "opc"),
    "OPERATOR FAMILY": ("pg_opfamily", "opf"),
}
_WITHOUT_SCHEMA = {
    "LANGUAGE": ("pg_language", "lan"),
    "FOREIGN DATA WRAPPER": ("pg_foreign_data_wrapper", "fdw"),
    "SERVER": ("pg_foreign_server", "srv"),
    "PUBLICATION": ("pg_publication", "pub"),
    "EVENT TRIGGER": ("pg_event_trigger", "evt"),
}
_METHOD = " || ' USING ' || (SELECT quote_ident(amname) FROM pg_am WHERE oid = o.{}method)"
_MORE_OWNED = "".join(
    f"""
    UNION ALL
    SELECT 5, n.nspname, '', '{word} ' || quote_ident(n.nspname) || '.' || quote_ident(o.{head}name)
        {_METHOD.format(head) if head in ("opc", "opf") else ""}, o.{head}owner
    FROM {table} o JOIN pg_namespace n ON n.oid = o.{head}namespace
    WHERE {OWN} AND {NO_MEMBER.format(table, "o")}"""
    for word, (table, head) in _NAMED.items()
) + "".join(
    f"""
    UNION ALL
    SELECT 6, NULL, '', '{word} ' || quote_ident(o.{head}name), o.{head}owner
    FROM {table} o WHERE {NO_MEMBER.format(table, "o")}"""
    for word, (table, head) in _WITHOUT_SCHEMA.items()
)
_OWNERS = f"""
WITH objects AS (
    SELECT 1 AS turn, n.nspname AS schema, '' AS relation,
        'SCHEMA ' || quote_ident(n.nspname) AS object, n.nspowner AS owner
    FROM pg_namespace n WHERE {OWN} AND {NO_MEMBER.format("pg_namespace", "n")}
        AND pg_get_userbyid(n.nspowner) <> 'pg_database_owner'
    UNION ALL
    SELECT 2, n.nspname, '', CASE WHEN t.typtype = 'd' THEN 'DOMAIN ' ELSE 'TYPE ' END
        || format_type(t.oid, NULL), t.typowner
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
    LEFT JOIN pg_class c ON c.oid = t.typrelid
    WHERE (t.typtype IN ('d', 'e', 'r', 'b') OR c.relkind = 'c') AND {OWN}
        AND NOT EXISTS (SELECT 1 FROM pg_type e WHERE e.typarray = t.oid)
        AND {NO_MEMBER.format("pg_type", "t")}
    UNION ALL
    SELECT 3, n.nspname, c.relname, CASE c.relkind WHEN 'v' THEN 'VIEW '
        WHEN 'm' THEN 'MATERIALIZED VIEW ' WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END
        || quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relowner
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't' AND {OWN}
        AND {NO_MEMBER.format("pg_class", "c")}
        AND NOT (c.relkind = 'S' AND EXISTS (SELECT 1 FROM pg_depend d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')
            AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0))
    UNION ALL
    SELECT 4, n.nspname, '', CASE p.prokind WHEN 'p' THEN 'PROCEDURE ' WHEN 'a' THEN 'AGGREGATE '
        ELSE 'FUNCTION ' END || quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '('
        || CASE WHEN p.prokind = 'a' AND p.pronargs = 0 THEN '*'
            ELSE pg_get_function_identity_arguments(p.oid) END || ')', p.proowner
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE {OWN} AND {NO_MEMBER.format("pg_proc", "p")} AND NOT EXISTS (SELECT 1 FROM pg_depend i
        WHERE i.classid = 'pg_proc'::regclass AND i.objid = p.oid AND i.deptype = 'i')
    UNION ALL
    SELECT 5, n.nspname, '', 'OPERATOR ' || o.oid::regoperator, o.oprowner
    FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
    WHERE o.oprcode::oid <> 0 AND {OWN} AND {NO_MEMBER.format("pg_operator", "o")}{_MORE_OWNED}
)
SELECT o.schema, o.relation, o.object, quote_ident(pg_get_userbyid(o.owner)) AS owner
FROM objects o WHERE o.owner <> 10 OR (o.object = 'SCHEMA public'
    AND current_setting('server_version_num')::int >= 150000) ORDER BY o.turn, o.schema, o.object
"""

# Rights that owners gave away, which they are born with; and languages closed to everybody.
_GIVEN_UP = f"""
SELECT n.nspname AS schema, c.relname AS relation, d.privilege_type || ' ON '
    || CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || quote_ident(n.nspname) || '.'
    || quote_ident(c.relname) || ' FROM CURRENT_USER' AS right
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
    aclexplode(acldefault(CASE c.relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, c.relowner)) d
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S') AND c.relacl IS NOT NULL AND {OWN}
    AND {NO_MEMBER.format("pg_class", "c")}
    AND NOT EXISTS (SELECT 1 FROM aclexplode(c.relacl) x
        WHERE x.grantee = c.relowner AND x.privilege_type = d.privilege_type)
UNION ALL
SELECT NULL, '', 'USAGE ON LANGUAGE ' || quote_ident(l.lanname) || ' FROM PUBLIC'
FROM pg_language l WHERE l.lanpltrusted AND l.lanacl IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM aclexplode(l.lanacl) x WHERE x.grantee = 0)
ORDER BY 1, 2, 3
"""

_KINDS = {
    "r": "TABLES",
    "S": "SEQUENCES",
    "f": "FUNCTIONS",
    "T": "TYPES",
    "n": "SCHEMAS",
    "L": "LARGE OBJECTS",
}


def default_privileges(connection: Connection, taken: Callable[[str], bool]) -> Iterator[str]:
    """Yield what is granted on objects to come, where that differs from what servers grant."""
    for row in rows(connection, _DEFAULTS):
        if row["schema"] is not None and not taken(row["schema"]):
            continue
        where = f" IN SCHEMA {quote(row['schema'])}" if row["schema"] else ""
        head = f"ALTER DEFAULT PRIVILEGES FOR ROLE {row['role']}{where}"
        right, kind = row["right"], _KINDS[row["kind"]]
        if row["kept"]:
            option = " WITH GRANT OPTION" if row["grantable"] else ""
            yield f"{head} GRANT {right} ON {kind} TO {row['grantee']}{option}"
        else:
            yield f"{head} REVOKE {right} ON {kind} FROM {row['grantee']}"


def owners(connection: Connection, selection: Selection) -> Iterator[str]:
    """Yield who owns what, unless that is the first user of the server."""
    for row in rows(connection, _OWNERS):
        if _is_taken(row, selection):
            yield f"ALTER {row['object']} OWNER TO {row['owner']}"


def given_up(connection: Connection, selection: Selection) -> Iterator[str]:
    """Yield the rights that owners do not have on what is theirs."""
    for row in rows(connection, _GIVEN_UP):
        if _is_taken(row, selection):
            yield f"REVOKE {row['right']}"


def _is_taken(row: Row, selection: Selection) -> bool:
    if row["schema"] is None:
        return True
    relation = row["relation"]
    return (
        selection.takes(row["schema"], relation)
        if relation
        else selection.takes_schema(row["schema"])
    )
