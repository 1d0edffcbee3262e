"""Functions and procedures, users, roles and privileges (5.15 to 5.19)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from muniment.databases.postgresql.catalogue import Catalogue, Row
from muniment.databases.postgresql.connection import Connection, quote, rows
from muniment.databases.postgresql.originals import aggregate_sql
from muniment.databases.postgresql.outline import original
from muniment.databases.postgresql.roles import membership_limits
from muniment.databases.postgresql.types import archived_type
from muniment.sql.model import Parameter, Privilege, Role, Routine, User
from muniment.sql.types import PredefinedType

__all__ = ["read_privileges", "read_roles", "read_routines"]

_MODES = {"i": "IN", "o": "OUT", "b": "INOUT", "v": "IN", "t": "OUT"}
_VOLATILITY = {"i": "IMMUTABLE", "s": "STABLE", "v": "VOLATILE"}
_KINDS = {"f": "FUNCTION", "p": "PROCEDURE", "a": "AGGREGATE", "w": "WINDOW FUNCTION"}


def read_routines(catalogue: Catalogue) -> Iterator[tuple[str, Routine]]:
    """Yield each routine with the name of its schema; overloads get specific names."""
    seen: dict[tuple[str, str], int] = defaultdict(int)
    for row in catalogue.routines:
        home, name = row["schema"], row["name"]
        seen[home, name] += 1
        number = seen[home, name]
        source = row["definition"]
        if row["kind"] == "a":
            source = aggregate_sql(home, name, catalogue.aggregates[row["oid"]])
        yield (
            home,
            Routine(
                name if number == 1 else f"{name}_{number}",
                name,
                row["comment"],
                source=source,
                body=row["body"] if row["kind"] != "a" and row["body"] else None,
                characteristic=_characteristic(row),
                return_type=row["result"],
                parameters=tuple(_parameters(catalogue, row)),
            ),
        )


def _characteristic(row: Row) -> str:
    words = [_KINDS[row["kind"]], f"({row['identity']})", f"LANGUAGE {row['language']}"]
    if row["kind"] != "p":
        words.append(_VOLATILITY[row["provolatile"]])
    if row["proisstrict"]:
        words.append("STRICT")
    if row["prosecdef"]:
        words.append("SECURITY DEFINER")
    return " ".join(words)


def _parameters(catalogue: Catalogue, row: Row) -> Iterator[Parameter]:
    types, modes, names = row["types"] or [], row["modes"], row["names"]
    for number, oid in enumerate(types):
        mode = _MODES[modes[number]] if modes else "IN"
        name = (names[number] if names else "") or f"${number + 1}"
        found = catalogue.types.get(oid)
        spelt = found["spelt"] if found else str(oid)
        type_ = archived_type(spelt, -1) if found and found["kind"] == "b" else _TEXT
        yield Parameter(name, mode, type_, type_original=spelt)


_TEXT = PredefinedType("CLOB")

_ROLES = """
SELECT r.rolname AS name, r.rolcanlogin, shobj_description(r.oid, 'pg_authid') AS comment,
    (SELECT pg_get_userbyid(m.member) FROM pg_auth_members m
        WHERE m.roleid = r.oid AND m.admin_option ORDER BY m.member LIMIT 1) AS admin
FROM pg_roles r WHERE r.rolname !~ '^pg_' ORDER BY r.rolname
"""

# Up to version 15 a member inherits rights from all roles or from none, and may become any of them.
_MEMBERS = """
SELECT pg_get_userbyid(m.roleid) AS role, pg_get_userbyid(m.member) AS member,
    pg_get_userbyid(m.grantor) AS grantor, m.admin_option,
    COALESCE((to_jsonb(m) ->> 'inherit_option')::boolean, r.rolinherit) AS inherits,
    COALESCE((to_jsonb(m) ->> 'set_option')::boolean, true) AS becomes
FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member ORDER BY role, member, grantor
"""

# Relations, columns, schemas, routines and types whose rights are not the ones they are born with.
_RIGHTS = """
WITH objects AS (
    SELECT n.nspname AS home, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
        quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS object, '' AS columns,
        c.relacl AS acl, c.relowner AS owner
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    UNION ALL
    SELECT n.nspname, 'TABLE', quote_ident(n.nspname) || '.' || quote_ident(c.relname),
        ' (' || quote_ident(a.attname) || ')', a.attacl, c.relowner
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT a.attisdropped
    UNION ALL
    SELECT n.nspname, 'SCHEMA', quote_ident(n.nspname), '', n.nspacl, n.nspowner FROM pg_namespace n
    UNION ALL
    SELECT n.nspname, CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END,
        quote_ident(n.nspname) || '.' || quote_ident(p.proname)
        || '(' || pg_get_function_identity_arguments(p.oid) || ')', '', p.proacl, p.proowner
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    UNION ALL
    SELECT n.nspname, 'TYPE', format_type(t.oid, NULL), '', t.typacl, t.typowner
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
    UNION ALL
    SELECT NULL, 'LANGUAGE', quote_ident(l.lanname), '', l.lanacl, l.lanowner FROM pg_language l
    UNION ALL
    SELECT NULL, 'FOREIGN DATA WRAPPER', quote_ident(w.fdwname), '', w.fdwacl, w.fdwowner
    FROM pg_foreign_data_wrapper w
    UNION ALL
    SELECT NULL, 'FOREIGN SERVER', quote_ident(s.srvname), '', s.srvacl, s.srvowner
    FROM pg_foreign_server s
    UNION ALL
    SELECT NULL, 'DATABASE', quote_ident(d.datname), '', d.datacl, d.datdba
    FROM pg_database d WHERE d.datname = current_database()
)
SELECT o.home, o.kind, o.object, o.columns, x.privilege_type AS type, x.is_grantable,
    pg_get_userbyid(x.grantor) AS grantor,
    CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(x.grantee) END AS grantee
FROM objects o, aclexplode(o.acl) WITH ORDINALITY
    x (grantor, grantee, privilege_type, is_grantable, n)
WHERE o.acl IS NOT NULL AND x.grantee <> o.owner
    AND (o.home IS NULL OR (o.home !~ '^pg_' AND o.home <> 'information_schema'))
    AND NOT (o.kind = 'DATABASE' AND x.grantee = 0)  -- as every database is
ORDER BY o.home, o.kind, o.object, o.columns, x.n
"""


def read_roles(connection: Connection) -> tuple[tuple[User, ...], tuple[Role, ...]]:
    """Return the users, who may log in, and the roles, which may not."""
    found = rows(connection, _ROLES)
    users = tuple(User(r["name"], r["comment"]) for r in found if r["rolcanlogin"])
    roles = tuple(
        Role(r["name"], r["admin"] or "", r["comment"]) for r in found if not r["rolcanlogin"]
    )
    return users, roles


def read_privileges(connection: Connection, taken: Callable[[str], bool]) -> Iterator[Privilege]:
    """Yield memberships in roles, and what was granted on the objects of the schemas taken.

    An object is spelt as GRANT spells it, with the columns of the right behind its type.
    """
    for row in rows(connection, _MEMBERS):
        if not row["role"].startswith("pg_"):
            option = "ADMIN" if row["admin_option"] else None
            role = f"ROLE {quote(row['role'])}"
            limits = membership_limits(row["inherits"], row["becomes"])
            description = original(None, filter(None, [limits]))
            yield Privilege("MEMBER", row["grantor"], row["member"], role, option, description)
    for row in rows(connection, _RIGHTS):
        if row["home"] is None or taken(row["home"]):
            yield Privilege(
                row["type"] + row["columns"],
                row["grantor"],
                row["grantee"],
                f"{row['kind']} {row['object']}",
                "GRANT" if row["is_grantable"] else None,
            )
