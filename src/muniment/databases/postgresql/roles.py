"""Users and roles that a server lacks: made without passwords, so that nobody can log in."""

from __future__ import annotations

import re

from muniment.databases.postgresql.builder import Builder, Item
from muniment.databases.postgresql.connection import quote, rows
from muniment.sql.model import Database, Privilege
from muniment.sql.original import split_original

__all__ = ["make_roles", "membership_limits"]

_HERE = "SELECT rolname AS name FROM pg_roles"
_MEMBER_OF = re.compile(r'ROLE "(?P<role>(?:[^"]|"")+)"')
_LIMITS = re.compile(r"WITH INHERIT (?P<inherits>TRUE|FALSE), SET (?P<becomes>TRUE|FALSE)")
_LIMITED_SINCE = 160000  # earlier versions know members who inherit from no role at all


def membership_limits(inherits: bool, becomes: bool) -> str | None:
    """How a member is less than others: rights are not inherited, or the role cannot be set.

    >>> membership_limits(True, False)
    'WITH INHERIT TRUE, SET FALSE'
    """
    if inherits and becomes:
        return None
    return f"WITH INHERIT {str(inherits).upper()}, SET {str(becomes).upper()}"


def make_roles(builder: Builder, database: Database) -> None:
    """Make the users and roles of an archive that are missing, and those among them members."""
    here = {row["name"] for row in rows(builder.connection, _HERE)}
    made = []
    for name in (*(u.name for u in database.users), *(r.name for r in database.roles)):
        if name in here:
            continue
        sql = f"CREATE ROLE {quote(name)} NOLOGIN"
        if refused := builder.attempt(sql):
            builder.leave_out(Item("role", name, (sql,)), refused.message)
        else:
            made.append(name)
    for right in database.privileges:
        found = _MEMBER_OF.fullmatch(right.object or "") if right.type == "MEMBER" else None
        # Nobody who was here before becomes a member of anything.
        if found is None or right.grantee not in made:
            continue
        sql = f'GRANT "{found["role"]}" TO {quote(right.grantee)}'
        if reason := _refused(builder, right, sql):
            builder.leave_out(Item("privilege", f"of {right.grantee}", (sql,)), reason)
    if made:
        builder.notes.append(
            f"roles were made that cannot log in: {', '.join(made)}; let people in with"
            " ALTER ROLE … LOGIN PASSWORD …"
        )


def _refused(builder: Builder, right: Privilege, grant: str) -> str | None:
    """Make somebody a member with the limits that were there; return why that fails."""
    _, original = split_original(right.description)
    limits = _LIMITS.fullmatch(original.statements[0]) if original else None
    admin = right.option == "ADMIN"
    before: list[str] = []
    if limits is None:
        grant += " WITH ADMIN OPTION" if admin else ""
    elif builder.connection.info.server_version >= _LIMITED_SINCE:
        grant += f" {limits[0]}{', ADMIN TRUE' if admin else ''}"
    elif limits["becomes"] == "FALSE":
        return "this version of PostgreSQL lets every member become the role"
    else:
        before = [f"ALTER ROLE {quote(right.grantee)} NOINHERIT"]
        grant += " WITH ADMIN OPTION" if admin else ""
    refused = builder.attempt(*before, grant)
    return refused.message if refused else None
