"""Which tables a restore has completed: noted in the server itself, for ``--resume``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from muniment.databases.mariadb.connection import Session, quote
from muniment.errors import UsageError
from muniment.sql.model import Database

__all__ = ["BOOK", "Book", "Kept", "fingerprint"]

BOOK = "muniment_restore"  # the table with the notes; it is dropped when all is done


def fingerprint(database: Database) -> str:
    """Tell archives apart, by everything that they say about themselves."""
    return hashlib.sha256(repr(database).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Kept:
    """A table of an earlier run: its rows, None if they are not complete."""

    rows: int | None
    own_words: bool  # whether it was made by its own definition


@dataclass(frozen=True)
class Book:
    """The notes in one database of the server."""

    session: Session
    place: str  # the database
    archive: str

    @property
    def _table(self) -> str:
        return quote(self.place, BOOK)

    def open(self) -> dict[str, Kept]:
        """Return what an earlier run of the same restore left, and start to take notes."""
        self.session.run(
            f"CREATE TABLE IF NOT EXISTS {self._table} (archive CHAR(64) NOT NULL,"
            " name VARCHAR(64) COLLATE utf8mb4_bin PRIMARY KEY, kept BIGINT, own BOOLEAN NOT NULL)"
            " ENGINE=InnoDB CHARACTER SET utf8mb4 COMMENT='notes of an unfinished restore'"
        )
        rows = self.session.rows(f"SELECT archive, name, kept, own FROM {self._table}")
        if any(row[0] != self.archive for row in rows):
            raise UsageError(
                f"the database {self.place} holds what is left of a restore from another archive, "
                f"or with other options; drop its tables and {BOOK} to start anew"
            )
        return {name: Kept(kept, bool(own)) for _, name, kept, own in rows}

    def begin(self, table: str) -> None:
        """Note that a table is going to be made."""
        self._note(table, None, False)

    def keep(self, table: str, rows: int, own_words: bool) -> None:
        """Note that a table has all its rows."""
        self._note(table, rows, own_words)

    def reopen(self) -> None:
        """Note that all tables are being changed: from here on there is nothing to go on from."""
        self.session.run(f"UPDATE {self._table} SET kept=NULL")

    def close(self) -> None:
        """Remove the notes."""
        self.session.run(f"DROP TABLE IF EXISTS {self._table}")

    def _note(self, table: str, rows: int | None, own_words: bool) -> None:
        self.session.rows(
            f"REPLACE INTO {self._table} VALUES (%s, %s, %s, %s)",
            self.archive,
            table,
            rows,
            own_words,
        )
