"""What a database holds before a restore."""

from __future__ import annotations

from muniment.databases.postgresql.connection import Connection, execute, quote, rows

__all__ = ["Occupant", "drop_occupants", "occupants"]

Occupant = tuple[str, str]  # the kind, as the catalogue says it, and the full name

_THERE = """
SELECT c.relkind AS kind, n.nspname AS schema, c.relname AS name, '' AS arguments
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
    AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = c.oid AND d.deptype = 'e')
    AND NOT c.relispartition
UNION ALL
SELECT 'T', n.nspname, t.typname, '' FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_class c ON c.oid = t.typrelid
WHERE (t.typtype IN ('d', 'e', 'r') OR c.relkind = 'c')
    AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_type'::regclass
        AND d.objid = t.oid AND d.deptype = 'e')
UNION ALL
SELECT 'S', n.nspname, c.relname, '' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND n.nspname !~ '^pg_' AND c.relpersistence <> 't'
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = c.oid AND d.deptype IN ('e', 'i'))
UNION ALL
SELECT 'F', n.nspname, p.proname, p.oid::regprocedure::text
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass
        AND d.objid = p.oid AND d.deptype IN ('e', 'i'))
ORDER BY 2, 3, 4
"""

_WORDS = {"r": "TABLE", "p": "TABLE", "f": "FOREIGN TABLE", "v": "VIEW", "m": "MATERIALIZED VIEW"}


def occupants(connection: Connection) -> list[Occupant]:
    """Return the tables, views, types, sequences and routines of a database."""
    return [(row["kind"], f"{row['schema']}.{row['name']}") for row in rows(connection, _THERE)]


def drop_occupants(connection: Connection, there: list[Occupant], coming: set[str]) -> None:
    """Remove everything; the caller has made sure that nothing is lost by that."""
    if not there:
        return
    for row in rows(connection, _THERE):
        place = quote(row["schema"], row["name"])
        if row["kind"] in _WORDS:
            sql = f"DROP {_WORDS[row['kind']]} IF EXISTS {place} CASCADE"
        elif row["kind"] == "T":
            sql = f"DROP TYPE IF EXISTS {place} CASCADE"
        elif row["kind"] == "S":
            sql = f"DROP SEQUENCE IF EXISTS {place} CASCADE"
        else:
            sql = f"DROP ROUTINE IF EXISTS {row['arguments']} CASCADE"
        execute(connection, sql, f"to replace {row['schema']}.{row['name']}")
