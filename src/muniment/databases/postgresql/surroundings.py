"""What stands around a database's objects, as statements: foreign servers, publications, events.

Secrets of foreign servers and of those who use them are left out, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from muniment.databases.postgresql.catalogue import NO_MEMBER, OWN, Catalogue, Row
from muniment.databases.postgresql.connection import Connection, quote, quote_text, rows
from muniment.databases.postgresql.nulls import column_not_null
from muniment.databases.postgresql.originals import column_sql

__all__ = [
    "event_triggers", "foreign_servers", "foreign_table_sql", "labels", "publications", "settings",
    "tablespaces",
]  # fmt: skip

_SECRET = re.compile(r"pass|secret|token|credential|key|private|auth", re.IGNORECASE)
_ENABLED = {"D": "DISABLE", "R": "ENABLE REPLICA", "A": "ENABLE ALWAYS"}

_WRAPPERS = f"""
SELECT w.fdwname AS name, NULLIF(w.fdwhandler, 0)::regproc::text AS handler,
    NULLIF(w.fdwvalidator, 0)::regproc::text AS validator, w.fdwoptions AS options,
    obj_description(w.oid, 'pg_foreign_data_wrapper') AS comment
FROM pg_foreign_data_wrapper w WHERE {NO_MEMBER.format("pg_foreign_data_wrapper", "w")} ORDER BY 1
"""
_SERVERS = f"""
SELECT s.srvname AS name, s.srvtype AS type, s.srvversion AS version, w.fdwname AS wrapper,
    s.srvoptions AS options, obj_description(s.oid, 'pg_foreign_server') AS comment
FROM pg_foreign_server s JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw
WHERE {NO_MEMBER.format("pg_foreign_server", "s")} ORDER BY 1
"""
_MAPPINGS = """
SELECT m.srvname AS server, m.umoptions AS options,
    CASE WHEN m.umuser = 0 THEN 'PUBLIC' ELSE quote_ident(m.usename) END AS user
FROM pg_user_mappings m ORDER BY 1, 3
"""
_FOREIGN = """
SELECT s.srvname AS server, f.ftoptions AS options,
    (SELECT jsonb_object_agg(a.attname, to_jsonb(a.attfdwoptions)) FROM pg_attribute a
        WHERE a.attrelid = f.ftrelid AND a.attfdwoptions IS NOT NULL) AS columns
FROM pg_foreign_table f JOIN pg_foreign_server s ON s.oid = f.ftserver WHERE f.ftrelid = %s
"""
_EVENTS = f"""
SELECT t.evtname AS name, t.evtevent AS event, t.evtenabled AS enabled, t.evttags AS tags,
    t.evtfoid::regproc::text AS function, obj_description(t.oid, 'pg_event_trigger') AS comment
FROM pg_event_trigger t WHERE {NO_MEMBER.format("pg_event_trigger", "t")} ORDER BY 1
"""
_PUBLICATIONS = f"""
SELECT p.oid, p.pubname AS name, p.puballtables, to_jsonb(p) AS facts,
    obj_description(p.oid, 'pg_publication') AS comment
FROM pg_publication p WHERE {NO_MEMBER.format("pg_publication", "p")} ORDER BY 2
"""
_PUBLISHED = """
SELECT r.prpubid, n.nspname AS schema, c.relname AS name, {condition} AS condition,
    {columns} AS columns
FROM pg_publication_rel r JOIN pg_class c ON c.oid = r.prrelid
JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY 1, 2, 3
"""
_PUBLISHED_SCHEMAS = """
SELECT p.pnpubid, n.nspname AS schema FROM pg_publication_namespace p
JOIN pg_namespace n ON n.oid = p.pnnspid ORDER BY 1, 2
"""
_TABLESPACES = f"""
SELECT n.nspname AS schema, c.relname AS name, s.spcname AS tablespace, t.relname AS table,
    CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'i' THEN 'INDEX' WHEN 'I' THEN 'INDEX'
        ELSE 'TABLE' END AS kind
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_tablespace s ON s.oid = c.reltablespace LEFT JOIN pg_index i ON i.indexrelid = c.oid
LEFT JOIN pg_class t ON t.oid = COALESCE(i.indrelid, c.oid)
WHERE c.relkind IN ('r', 'p', 'm', 'i', 'I') AND {OWN} ORDER BY 1, 2
"""
_SETTINGS = """
SELECT r.rolname AS role, unnest(s.setconfig) AS setting FROM pg_db_role_setting s
JOIN pg_database d ON d.oid = s.setdatabase LEFT JOIN pg_roles r ON r.oid = s.setrole
WHERE d.datname = current_database() ORDER BY 1 NULLS FIRST, 2
"""
_LABELS = """
SELECT l.objtype AS kind, l.objname AS name, l.provider, l.label, n.nspname AS schema
FROM pg_seclabels l LEFT JOIN pg_namespace n ON n.oid = l.objnamespace
WHERE l.objtype NOT IN ('database', 'role', 'tablespace', 'large object')
ORDER BY l.objtype, l.objname, l.provider
"""


def _withheld(options: Iterable[str] | None) -> list[str]:
    """The options that may be secrets."""
    return [o.partition("=")[0] for o in options or () if _SECRET.search(o.partition("=")[0])]


def _options(options: Iterable[str] | None) -> str:
    kept = [o for o in options or () if not _SECRET.search(o.partition("=")[0])]
    pairs = (o.partition("=") for o in kept)
    listed = ", ".join(f"{quote(name)} {quote_text(value)}" for name, _, value in pairs)
    return f" OPTIONS ({listed})" if listed else ""


def foreign_servers(connection: Connection, notes: list[str]) -> Iterator[str]:
    """Yield the statements for foreign-data wrappers, servers and those who use them."""
    for row in rows(connection, _WRAPPERS):
        place = f"FOREIGN DATA WRAPPER {quote(row['name'])}"
        ways = (f" {word.upper()} {row[word]}" for word in ("handler", "validator") if row[word])
        yield f"CREATE {place}{''.join(ways)}{_options(row['options'])}"
        yield from _comment(row, place)
    for row in rows(connection, _SERVERS):
        place = f"SERVER {quote(row['name'])}"
        ways = (f" {w.upper()} {quote_text(row[w])}" for w in ("type", "version") if row[w])
        wrapper = f" FOREIGN DATA WRAPPER {quote(row['wrapper'])}"
        yield f"CREATE {place}{''.join(ways)}{wrapper}{_options(row['options'])}"
        yield from _comment(row, place)
        _say_withheld(f"foreign server {row['name']}", row["options"], notes)
    for row in rows(connection, _MAPPINGS):
        place = f"{row['user']} SERVER {quote(row['server'])}"
        yield f"CREATE USER MAPPING FOR {place}{_options(row['options'])}"
        user = f"the user mapping of {row['user']} for server {row['server']}"
        _say_withheld(user, row["options"], notes)


def _say_withheld(what: str, options: list[str] | None, notes: list[str]) -> None:
    if secrets := _withheld(options):
        notes.append(f"not archived: {', '.join(secrets)} of {what}, which may be secret.")


def foreign_table_sql(connection: Connection, catalogue: Catalogue, row: Row) -> str:
    """The statement that makes a foreign table."""
    (facts,) = rows(connection, _FOREIGN, row["oid"])
    columns = []
    for column in catalogue.columns[row["oid"]]:
        sql = column_sql(column, _options((facts["columns"] or {}).get(column["name"])))
        columns.append(f"    {sql}{column_not_null(row, column, set())}")
    listed = "\n" + ",\n".join(columns) + "\n" if columns else ""
    head = f"CREATE FOREIGN TABLE {quote(row['schema'], row['name'])} ({listed})"
    return f"{head} SERVER {quote(facts['server'])}{_options(facts['options'])}"


def event_triggers(connection: Connection) -> Iterator[str]:
    """Yield the statements for event triggers; they come last, and see none of the rest."""
    for row in rows(connection, _EVENTS):
        place = f"EVENT TRIGGER {quote(row['name'])}"
        sql = f"CREATE {place} ON {row['event']}"
        if row["tags"]:
            sql += f" WHEN TAG IN ({', '.join(map(quote_text, row['tags']))})"
        yield f"{sql} EXECUTE FUNCTION {row['function']}()"
        yield from _comment(row, place)
        if row["enabled"] in _ENABLED:
            yield f"ALTER {place} {_ENABLED[row['enabled']]}"


def publications(connection: Connection, taken: Callable[[str, str], bool]) -> Iterator[str]:
    """Yield the statements for publications, of the tables that are taken."""
    new = connection.info.server_version >= 150000
    condition = "pg_get_expr(r.prqual, r.prrelid)" if new else "NULL"
    columns = (
        "ARRAY(SELECT quote_ident(a.attname) FROM pg_attribute a WHERE a.attrelid = r.prrelid"
        " AND a.attnum = ANY (r.prattrs) ORDER BY a.attnum)"
        if new
        else "NULL"
    )
    published = rows(connection, _PUBLISHED.format(condition=condition, columns=columns))
    schemas = rows(connection, _PUBLISHED_SCHEMAS) if new else []
    for row in rows(connection, _PUBLICATIONS):
        place = f"PUBLICATION {quote(row['name'])}"
        mine = [
            _published(each)
            for each in published
            if each["prpubid"] == row["oid"] and taken(each["schema"], each["name"])
        ]
        listed = [f"TABLE {', '.join(mine)}"] if mine else []
        homes = [quote(s["schema"]) for s in schemas if s["pnpubid"] == row["oid"]]
        listed += [f"TABLES IN SCHEMA {name}" for name in homes]
        what = " FOR ALL TABLES" if row["puballtables"] else ""
        what = what or (f" FOR {', '.join(listed)}" if listed else "")
        yield f"CREATE {place}{what} WITH ({', '.join(_publishing(row['facts']))})"
        yield from _comment(row, place)


def _published(row: Row) -> str:
    columns = f" ({', '.join(row['columns'])})" if row["columns"] else ""
    condition = f" WHERE ({row['condition']})" if row["condition"] else ""
    return f"{quote(row['schema'], row['name'])}{columns}{condition}"


def _publishing(facts: Row) -> Iterator[str]:
    kinds = [k for k in ("insert", "update", "delete", "truncate") if facts[f"pub{k}"]]
    yield f"publish = '{', '.join(kinds)}'"
    if facts.get("pubviaroot"):
        yield "publish_via_partition_root = true"
    if facts.get("pubgencols") == "s":
        yield "publish_generated_columns = stored"


def tablespaces(connection: Connection, taken: Callable[[str, str], bool]) -> Iterator[str]:
    """Yield where tables and indexes lie that have a place of their own."""
    for row in rows(connection, _TABLESPACES):
        if row["kind"] == "MATERIALIZED VIEW" or taken(row["schema"], row["table"]):
            place = f"{row['kind']} {quote(row['schema'], row['name'])}"
            yield f"ALTER {place} SET TABLESPACE {quote(row['tablespace'])}"


def settings(connection: Connection) -> Iterator[str]:
    """Yield the settings that hold in the database as a whole."""
    for row in rows(connection, _SETTINGS):
        name, _, value = row["setting"].partition("=")
        role = f"ROLE {quote(row['role'])} IN " if row["role"] else ""
        (here,) = rows(connection, "SELECT current_database() AS name")
        # Lists are kept as they were written, between quotation marks where needed.
        text = value if name in _LISTS and value else quote_text(value)
        yield f"ALTER {role}DATABASE {quote(here['name'])} SET {name} TO {text}"


_LISTS = {
    "DateStyle", "local_preload_libraries", "search_path", "session_preload_libraries",
    "shared_preload_libraries", "temp_tablespaces", "unix_socket_directories",
}  # fmt: skip


def labels(connection: Connection, taken: Callable[[str], bool]) -> Iterator[str]:
    """Yield the security labels of objects."""
    for row in rows(connection, _LABELS):
        if row["schema"] is None or taken(row["schema"]):
            place = f"{row['kind'].upper()} {row['name']}"
            head = f"SECURITY LABEL FOR {quote(row['provider'])} ON {place}"
            yield f"{head} IS {quote_text(row['label'])}"


def _comment(row: Row, place: str) -> Iterator[str]:
    if row["comment"]:
        yield f"COMMENT ON {place} IS {quote_text(row['comment'])}"
