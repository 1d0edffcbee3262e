"""Users and roles that a server lacks, and rights in the databases that were restored.

Users are made locked and without a password. Rights on the whole server are never given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from muniment.databases.mariadb.connection import quote
from muniment.sql.leftout import LeftOut
from muniment.sql.model import Database, Privilege
from muniment.sql.names import parse_identifiers

if TYPE_CHECKING:
    from muniment.databases.mariadb.target import MariadbTarget

__all__ = ["make_accounts"]

_WORDS = re.compile(r"[A-Z]+(?: [A-Z]+)*")


def make_accounts(target: MariadbTarget, database: Database) -> None:
    """Make missing users and roles; give them the rights that they had in these databases."""
    here = {_account(*row[:2]) for row in target.session.rows(target.session.product.users)}
    made = []
    for name, sql in _creations(target, database):
        if name in here:
            continue
        if (reason := target.refusal(sql)) is None:
            made.append(name)
        else:
            target.left_out.append(LeftOut("user", name, reason, sql))
    for right in database.privileges:
        if right.type == "ROLE" and right.grantee not in made:
            continue  # nobody who was here before gets a role
        grant = _grant(target, database, right)
        refused = target.refusal(grant) if grant else "rights on the whole server are not given"
        if refused is not None:
            name = f"{right.type} ON {right.object} TO {right.grantee}"
            target.left_out.append(LeftOut("privilege", name, refused, grant))
    if made:
        target.notes.append(
            f"users and roles were made, the users locked and without password: {', '.join(made)};"
            " let people in with ALTER USER … IDENTIFIED BY … ACCOUNT UNLOCK"
        )


def _creations(target: MariadbTarget, database: Database) -> Iterator[tuple[str, str]]:
    for role in database.roles:
        yield role.name, f"CREATE ROLE {_quoted(role.name)}"
    for user in database.users:
        if user.name.strip("@"):
            yield user.name, f"CREATE USER {_quoted(user.name)} ACCOUNT LOCK"


def _account(name: str, host: str) -> str:
    return f"{name}@{host}" if host else name


def _quoted(account: str) -> str:
    name, at, host = account.rpartition("@")
    return f"{quote(name)}@{quote(host)}" if at else quote(account)


def _grant(target: MariadbTarget, database: Database, right: Privilege) -> str | None:
    """The statement that gives a right; None for those on the whole server."""
    kind, _, place = (right.object or "").partition(" ")
    names = parse_identifiers(place) if place else ()
    option = " WITH GRANT OPTION" if right.option == "GRANT" else ""
    if right.type == "ROLE" and names:
        admin = " WITH ADMIN OPTION" if right.option == "ADMIN" else ""
        return f"GRANT {_quoted(names[0])} TO {_quoted(right.grantee)}{admin}"
    words = right.type.split(", ")
    known = names and names[0] in {schema.name for schema in database.schemas}
    if not known or not all(map(_WORDS.fullmatch, words)):
        return None
    home = target.place(names[0])
    if kind == "SCHEMA":
        # In a database's name these two stand for any characters.
        pattern = home.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%")
        return f"GRANT {right.type} ON {quote(pattern)}.* TO {_quoted(right.grantee)}{option}"
    if kind == "TABLE" and len(names) == 2:
        where = quote(home, names[1])
        return f"GRANT {right.type} ON {where} TO {_quoted(right.grantee)}{option}"
    if kind == "COLUMN" and len(names) == 3:
        listed = ", ".join(f"{word} ({quote(names[2])})" for word in words)
        return f"GRANT {listed} ON {quote(home, names[1])} TO {_quoted(right.grantee)}{option}"
    return None
