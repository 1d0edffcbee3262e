"""Users and roles that a server lacks: made without passwords, so that nobody can log in."""

from __future__ import annotations

import re

from muniment.databases.postgresql.builder import Builder, Item
from muniment.databases.postgresql.connection import quote, rows
from muniment.sql.model import Database

__all__ = ["make_roles"]

_HERE = "SELECT rolname AS name FROM pg_roles"
_MEMBER_OF = re.compile(r'ROLE "(?P<role>(?:[^"]|"")+)"')


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
        option = " WITH ADMIN OPTION" if right.option == "ADMIN" else ""
        sql = f'GRANT "{found["role"]}" TO {quote(right.grantee)}{option}'
        if refused := builder.attempt(sql):
            builder.leave_out(Item("privilege", f"of {right.grantee}", (sql,)), refused.message)
    if made:
        builder.notes.append(
            f"roles were made that cannot log in: {', '.join(made)}; let people in with"
            " ALTER ROLE … LOGIN PASSWORD …"
        )
