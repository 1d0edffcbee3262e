"""Rows into a table of SQLite, by the way that their values need, and what to say if it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import apsw

from muniment.databases.sqlite_loading import PIECE, Loader
from muniment.errors import DatabaseError
from muniment.sql.batch import REF, Batch
from muniment.sql.classes import Broken
from muniment.sql.names import quoted

__all__ = ["Inserter"]

T = TypeVar("T")

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")


class Inserter:
    """Inserts the batches of one table."""

    def __init__(
        self,
        db: apsw.Connection,
        where: str,
        name: str,
        columns: Sequence[str],
        kept: Sequence[int],
        load: Loader,
        ignore_checks: Callable[[bool], None] | None,
        *,
        broken: bool = False,
    ) -> None:
        """``where`` is for messages, ``name`` the table; ``kept`` are the columns that are given.

        Rows that break a check are taken if ``ignore_checks`` can switch checks off. There may be
        ``broken`` texts, which are not Unicode.
        """
        self._broken = broken
        self._db, self._where, self._name, self._columns = db, where, name, columns
        self._load, self._ignore = load, ignore_checks
        listed = ", ".join(quoted(columns[k]) for k in kept)
        self._head = f"INSERT INTO {quoted(name)} ({listed}) VALUES "
        self._insert = f"{self._head}({','.join('?' * len(kept))})"
        self._done = 0  # rows of the batch in hand
        self.ignoring = False  # whether rows broke a check

    def __call__(self, batch: Batch, before: int) -> None:
        """Insert a batch; ``before`` are the rows that the table has already."""
        self._done = 0
        try:
            self._put(batch, 0)
        except apsw.ConstraintError as error:
            if self._ignore is None or not _is_check(error):
                raise self._refusal(error, before) from error
            self._ignore(True)
            self.ignoring = True
            self._again(batch, before)

    def _again(self, batch: Batch, before: int) -> None:
        """Insert what is left of a batch, from the row on that was refused."""
        skipped = self._done = self._done - 1
        try:
            self._put(batch, skipped)
        except apsw.ConstraintError as error:
            raise self._refusal(error, before) from error

    def _put(self, batch: Batch, skipped: int) -> None:
        odd = self._broken or _SURROGATE.search(batch.data)
        if REF in batch.data and not odd:
            self._put_with_objects(self._counted(self._load.with_objects(batch), skipped))
        elif odd:
            rows = self._load.whole(batch) if REF in batch.data else self._load(batch)
            self._put_as_bytes(self._counted(rows, skipped))
        else:
            self._db.executemany(self._insert, self._counted(self._load(batch), skipped))

    def _counted(self, rows: Iterable[T], skipped: int) -> Iterator[T]:
        for row in islice(rows, skipped, None):
            self._done += 1
            yield row

    def _refusal(self, error: apsw.ConstraintError, before: int) -> DatabaseError:
        return DatabaseError(
            f"{self._where}, row {before + self._done}: SQLite says: {error}; --no-constraints "
            "restores the rows without keys, checks and NOT NULL"
        )

    def _put_with_objects(
        self, rows: Iterable[tuple[tuple[Any, ...], list[tuple[int, bytes]]]]
    ) -> None:
        """Insert rows one by one; a large object is written into its row piece by piece."""
        for row, objects in rows:
            try:
                self._db.execute(self._insert, row)
            except apsw.ConstraintError:
                if not objects:
                    raise
                # A check looks at them.
                self._db.execute(self._insert, self._load.filled(row, objects))
                continue
            rowid = self._db.last_insert_rowid()
            for k, reference in objects:
                with (
                    self._load.open(reference) as stream,
                    self._db.blob_open("main", self._name, self._columns[k], rowid, True) as blob,
                ):
                    while chunk := stream.read(PIECE):
                        blob.write(chunk)

    def _put_as_bytes(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows with text that is not Unicode; the driver wants it as bytes."""
        for row in rows:
            odd = [isinstance(v, Broken) or (isinstance(v, str) and not v.isascii()) for v in row]
            marks = ",".join("CAST(? AS TEXT)" if cast else "?" for cast in odd)
            values = tuple(
                v.encode("utf-8", "surrogatepass") if isinstance(v, str) and cast else v
                for v, cast in zip(row, odd, strict=True)
            )
            self._db.execute(f"{self._head}({marks})", values)


def _is_check(error: apsw.ConstraintError) -> bool:
    # APSW's annotations do not know the attribute.
    return bool(getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_CHECK)
