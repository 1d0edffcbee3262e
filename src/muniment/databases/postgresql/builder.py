"""Runs the statements of a restore inside one transaction, each so that it may fail alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from psycopg import pq

from muniment.databases.postgresql.connection import Connection, Refused, execute
from muniment.databases.postgresql.statements import is_definition, moved
from muniment.sql.leftout import LeftOut

__all__ = ["Builder", "Item"]


@dataclass(frozen=True, slots=True)
class Item:
    """Something to make: what it is, and the statements for it, which run all or none."""

    kind: str
    name: str
    statements: tuple[str, ...]
    foreign: bool = True  # whether the statements came with the archive


@dataclass
class Builder:
    """A transaction, what came of it, and how the schemas of the archive are called here."""

    connection: Connection
    names: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    remade: set[str] = field(default_factory=set)  # tables made by types, not by their definition

    def run(self, sql: str, doing: str) -> None:
        """Run a statement that has to succeed."""
        execute(self.connection, sql, doing)

    def attempt(self, *statements: str) -> Refused | None:
        """Run statements, all or none of them; return why they were refused."""
        execute(self.connection, "SAVEPOINT attempt")
        try:
            for sql in statements:
                execute(self.connection, sql, "a definition")
        except Refused as error:
            if self.connection.pgconn.status == pq.ConnStatus.BAD:
                raise
            execute(self.connection, "ROLLBACK TO SAVEPOINT attempt")
            return error
        finally:
            if self.connection.pgconn.status == pq.ConnStatus.OK:
                execute(self.connection, "RELEASE SAVEPOINT attempt")
        return None

    def attempt_item(self, item: Item) -> str | None:
        """Make something; return why that fails."""
        if not item.foreign:
            refused = self.attempt(*item.statements)
            return refused.message if refused else None
        statements = [moved(sql, self.names) for sql in item.statements]
        if not all(map(is_definition, statements)):
            return "it is not one statement that defines something"
        refused = self.attempt(*statements)
        return refused.message if refused else None

    def make(self, item: Item) -> bool:
        """Make something; say so if that fails."""
        reason = self.attempt_item(item)
        if reason is not None:
            self.leave_out(item, reason)
        return reason is None

    def settle(self, items: Sequence[Item]) -> list[tuple[Item, str]]:
        """Make things that may need one another: try until nothing moves; return the rest."""
        waiting = list(items)
        while True:
            failed = [(item, why) for item in waiting if (why := self.attempt_item(item))]
            if len(failed) in (0, len(waiting)):
                return failed
            waiting = [item for item, _ in failed]

    def leave_out(self, item: Item, reason: str) -> None:
        """Remember what could not be made."""
        sql = ";\n".join(item.statements) or None
        self.left_out.append(LeftOut(item.kind, item.name, reason.rstrip("."), sql))
