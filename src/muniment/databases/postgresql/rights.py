"""The end of a restore: publications, owners, rights, event triggers."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from muniment.databases.postgresql.builder import Builder, Item
from muniment.databases.postgresql.connection import Refused, quote, rows
from muniment.databases.postgresql.statements import (
    final_stage,
    is_database_setting,
    kind_and_name,
    moved,
    named_owner,
)
from muniment.sql.model import Database, Privilege

__all__ = ["Rights"]

_RIGHTS = {
    "SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "USAGE", "CREATE",
    "EXECUTE", "MAINTAIN",
}  # fmt: skip


_CLOSED_SINCE = 15  # the schema public, to those who would create something there
_ROLES = "SELECT rolname AS name FROM pg_roles"


@dataclass
class Rights:
    """Completes what the archive says of a whole database; ``statements`` are PostgreSQL's own."""

    builder: Builder
    database: Database
    statements: tuple[str, ...]

    def run(self) -> None:
        """Make everything; owners come before rights, and event triggers see nothing of it."""
        self._finals(1)
        self._set_owners()
        self._grant()
        self._finals(3)
        self._finals(4)
        self._leave_settings()

    def _finals(self, stage: int) -> None:
        """Make what follows everything else: publications, then rights, then event triggers."""
        for sql in self.statements:
            if final_stage(sql) == stage and not is_database_setting(sql):
                kind, name = kind_and_name(sql) or ("setting", "of the database")
                self.builder.make(Item(kind, name, (sql,)))

    def _set_owners(self) -> None:
        """Give objects to their owners, as far as those are here."""
        here = {row["name"] for row in rows(self.builder.connection, _ROLES)}
        (me,) = rows(self.builder.connection, "SELECT current_user AS name")
        missed: dict[tuple[str, str], list[str]] = defaultdict(list)
        for sql in self.statements:
            role = named_owner(sql) if final_stage(sql) == 2 else None
            mine = role == me["name"] and not sql.startswith("ALTER SCHEMA public ")
            if role is None or mine:
                continue
            reason: str | None = "there is no such role here"
            if role in here:
                reason = self.builder.attempt_item(Item("owner", role, (sql,)))
            if reason is not None:
                missed[role, reason].append(sql)
        for (role, reason), statements in missed.items():
            count = f"{len(statements)} object{'' if len(statements) == 1 else 's'}"
            self.builder.leave_out(Item("owner", f"{role} of {count}", tuple(statements)), reason)

    def _leave_settings(self) -> None:
        for sql in self.statements:
            if is_database_setting(sql):
                item = Item("setting", "of the database", (sql,))
                self.builder.leave_out(item, "who runs the new database decides on it")

    def _grant(self) -> None:
        """Grant what was granted, to those who exist here."""
        here = {row["name"] for row in rows(self.builder.connection, _ROLES)} | {"PUBLIC"}
        rights = [p for p in self.database.privileges if p.type != "MEMBER"]
        lenders = {(p.grantee, p.object) for p in rights if p.option == "GRANT"}
        # What somebody passes on comes after what that person got.
        for right in sorted(rights, key=lambda p: (p.grantor, p.object) in lenders):
            sql = moved(_grant_sql(right), self.builder.names)
            item = Item("privilege", f"of {right.grantee}", (sql,))
            if right.grantee not in here:
                self.builder.leave_out(item, "there is no such role here")
            elif (right.object or "").startswith("DATABASE ") or self._was_usual(right):
                self.builder.leave_out(item, "who runs the new database decides on it")
            elif reason := self._refused(right, sql, here, lenders):
                self.builder.leave_out(item, reason)

    def _was_usual(self, right: Privilege) -> bool:
        """Whether everybody had a right up to version 14 that they are kept from since."""
        if (right.type, right.object, right.grantee) != ("CREATE", "SCHEMA public", "PUBLIC"):
            return False
        product = re.match(r"PostgreSQL (\d+)", self.database.database_product or "")
        here = self.builder.connection.info.server_version // 10000
        return bool(product and int(product[1]) < _CLOSED_SINCE <= here)

    def _refused(
        self, right: Privilege, sql: str, here: set[str], lenders: set[tuple[str, str | None]]
    ) -> str | None:
        """Grant something, as the one who granted it; return why that fails."""
        if not _GRANT.fullmatch(sql):
            return "it is no right of PostgreSQL"
        refused: Refused | None = None
        if (right.grantor, right.object) in lenders and right.grantor in here:
            lend = f"SET LOCAL ROLE {quote(right.grantor)}"
            refused = self.builder.attempt(lend, sql, "RESET ROLE")
            if refused is None:
                return None
        refused = self.builder.attempt(sql)
        return refused.message if refused else None


_GRANT = re.compile(
    rf"""GRANT\ ({"|".join(sorted(_RIGHTS))})(\ \(.+\))?\ ON
    \ (TABLE|SEQUENCE|SCHEMA|FUNCTION|PROCEDURE|TYPE|LANGUAGE|FOREIGN\ (DATA\ WRAPPER|SERVER))
    \ .+\ TO\ .+""",
    re.VERBOSE | re.DOTALL,
)


def _grant_sql(privilege: Privilege) -> str:
    right, _, columns = privilege.type.partition(" (")
    grantee = "PUBLIC" if privilege.grantee == "PUBLIC" else quote(privilege.grantee)
    option = " WITH GRANT OPTION" if privilege.option == "GRANT" else ""
    listed = f" ({columns}" if columns else ""
    return f"GRANT {right}{listed} ON {privilege.object} TO {grantee}{option}"
