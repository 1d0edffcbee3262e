"""Users, roles and privileges: who could do what. No password or hash is ever read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pymysql import err

from muniment.databases.mariadb.connection import Session
from muniment.sql.model import Privilege, Role, User
from muniment.sql.names import format_identifier

__all__ = ["read_rights"]

_UNKNOWN = "unspecified"  # neither product keeps who granted a privilege on everything
Rights = tuple[tuple[User, ...], tuple[Role, ...], tuple[Privilege, ...], list[str]]


def read_rights(session: Session, schemas: Sequence[str]) -> Rights:
    """Return users, roles, privileges, and what the user was not allowed to see of them."""
    notes: list[str] = []
    users: list[User] = []
    roles: list[Role] = []
    try:
        for name, host, is_role in session.rows(session.product.users):
            if is_role:
                roles.append(Role(_account(name, host), _UNKNOWN))
            else:
                users.append(User(_account(name, host)))
    except err.MySQLError:
        notes.append("users and roles were not archived: the user may not read mysql.user")
    privileges = [*_privileges(session, schemas), *_memberships(session)]
    return tuple(users), tuple(roles), tuple(privileges), notes


def _privileges(session: Session, schemas: Sequence[str]) -> Iterator[Privilege]:
    among = ",".join(["%s"] * len(schemas))
    for sql, kind in (
        (_GLOBAL, ""),
        (_SCHEMA.format(among=among), "SCHEMA"),
        (_TABLE.format(among=among), "TABLE"),
        (_COLUMN.format(among=among), "COLUMN"),
    ):
        together: dict[tuple[str, ...], list[str]] = {}
        for grantee, privilege, grantable, *place in session.rows(sql, *(schemas if kind else ())):
            if kind or privilege != "USAGE":  # the word for no privilege at all
                together.setdefault((grantee, grantable, *place), []).append(privilege)
        for (grantee, grantable, *place), types in together.items():
            where = f"{kind} {format_identifier(*place)}" if kind else "GLOBAL"
            option = "GRANT" if grantable == "YES" else None
            yield Privilege(", ".join(types), _UNKNOWN, _unquoted(grantee), where, option)


def _memberships(session: Session) -> Iterator[Privilege]:
    """Who has which role."""
    try:
        rows: list[tuple[Any, ...]] = session.rows(session.product.role_grants)
    except err.MySQLError:
        return
    for role, member, admin in rows:
        yield Privilege(
            "ROLE",
            _UNKNOWN,
            member,
            f"ROLE {format_identifier(role)}",
            "ADMIN" if admin == "Y" else None,
        )


def _account(name: str, host: str) -> str:
    return f"{name}@{host}" if host else name


def _unquoted(grantee: str) -> str:
    """The catalogue writes 'name'@'host'."""
    return grantee.replace("'@'", "@").strip("'").removesuffix("@")


_GLOBAL = """
SELECT GRANTEE, PRIVILEGE_TYPE, IS_GRANTABLE FROM information_schema.USER_PRIVILEGES ORDER BY 1, 2
"""
_SCHEMA = """
SELECT GRANTEE, PRIVILEGE_TYPE, IS_GRANTABLE, TABLE_SCHEMA
FROM information_schema.SCHEMA_PRIVILEGES WHERE TABLE_SCHEMA IN ({among}) ORDER BY 4, 1, 2
"""
_TABLE = """
SELECT GRANTEE, PRIVILEGE_TYPE, IS_GRANTABLE, TABLE_SCHEMA, TABLE_NAME
FROM information_schema.TABLE_PRIVILEGES WHERE TABLE_SCHEMA IN ({among}) ORDER BY 4, 5, 1, 2
"""
_COLUMN = """
SELECT GRANTEE, PRIVILEGE_TYPE, IS_GRANTABLE, TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME
FROM information_schema.COLUMN_PRIVILEGES WHERE TABLE_SCHEMA IN ({among}) ORDER BY 4, 5, 6, 1, 2
"""
