"""Microsoft Access files as a source, through mdbtools (JET3, JET4, ACE12).

Rows come from ``mdb-export`` with separators that no value can contain, since they are drawn anew
for each table. What mdbtools does not show exactly is said in notes: it prints sixteen digits of a
Double and whole seconds of a Date/Time, and it reads only parts of stored queries.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from muniment.databases.access_catalogue import AccessColumn, AccessTable, read_catalogue
from muniment.databases.access_values import converter
from muniment.databases.spool import Spool
from muniment.errors import DatabaseError, Unfit, UsageError
from muniment.sql.batch import CELL, NULL, ROW, Batch
from muniment.sql.model import Column, Database, Schema, Table
from muniment.sql.selection import Selection
from muniment.sql.types import Kind, PredefinedType

__all__ = ["AccessSource", "create_target", "open_source"]

_CHUNK = 1 << 18
_BATCH = 64  # rows; a row may hold large values
_TIME = "%Y-%m-%dT%H:%M:%S"


@contextmanager
def open_source(
    path: Path, selection: Selection, *, inline_limit: int = 4000
) -> Iterator[AccessSource]:
    """Open an Access file for reading."""
    if not path.is_file():
        raise DatabaseError(f"there is no Access database {path}; check the path")
    with closing(Spool(inline_limit)) as spool:
        yield AccessSource(path, selection, spool)


def create_target(path: Path, **_: Any) -> Any:
    """Refuse: mdbtools only reads."""
    raise UsageError("Access files can be archived, not written; restore to another product")


class AccessSource:
    """An Access file as a source."""

    def __init__(self, path: Path, selection: Selection, spool: Spool) -> None:
        for name, given in (("where", selection.where), ("order", selection.order),
                            ("query", selection.queries), ("view", selection.views)):  # fmt: skip
            if given:
                raise UsageError(f"mdbtools cannot compute: --{name} is not for Access files")
        self.path, self._selection, self.spool = path, selection, spool
        catalogue = read_catalogue(path, run_tool)
        selection.check(catalogue.database, ())
        self._database = selection.with_text(selection.prune(catalogue.database))
        self._tables = catalogue.tables
        self.notes = list(catalogue.notes)

    def describe(self) -> Database:
        """Return the definitions, with the counts that the file states."""
        return self._database

    def size(self) -> int:
        """The bytes of the file."""
        return self.path.stat().st_size

    def opener(self) -> None:
        """One process reads: a file is not split for others."""
        return

    def snapshot_token(self) -> str:
        """A text that is the same while nobody writes to the file."""
        facts = self.path.stat()
        return f"{facts.st_size} {facts.st_mtime_ns}"

    def parts(self, schema: Schema, table: Table) -> Iterator[None]:
        """Yield the whole table."""
        yield None

    def count(self, schema: Schema, table: Table, read: int) -> int | None:
        """How many rows the file says that a table has."""
        return self._tables[table.name].rows

    def batches(self, schema: Schema, table: Table, part: None) -> Iterator[Batch]:
        """Yield the rows of a table."""
        where = f"{schema.name}.{table.name}"
        known = self._tables[table.name]
        reader = _Rows(self, where, known, table)
        rows, first = [], 1
        for row in self._exported(known):
            rows.append(row)
            if len(rows) == _BATCH:
                yield reader.batch(rows, first)
                first += len(rows)
                rows = []
        if rows:
            yield reader.batch(rows, first)

    def open_lob(self, schema: Schema, table: Table, reference: bytes) -> BinaryIO:
        """Open a large value, which waits in a file."""
        return self.spool.open(reference)

    def wants_text(self, where: str) -> bool:
        """Whether a column, named with schema and table, is archived as text."""
        schema, table, column = where.split(".", 2)
        return self._selection.wants_text(schema, table, column)

    def _exported(self, table: AccessTable) -> Iterator[list[bytes]]:
        """Yield rows as mdb-export prints them: cells, NULL as the one byte NULL."""
        nonce = secrets.token_hex(12)
        cell, row, null = f"<c{nonce}>", f"<r{nonce}>", f"<n{nonce}>"
        words = ["-H", "-Q", "-b", "hex", "-T", _TIME, "-D", _TIME]
        words += ["-d", cell, "-R", row, "-0", null]
        cut, end, nothing = cell.encode(), row.encode(), null.encode()
        width = len(table.columns)
        rest = b""
        for chunk in stream_tool("mdb-export", *words, str(self.path), table.name):
            *lines, rest = (rest + chunk).split(end)
            for line in lines:
                cells = [NULL if c == nothing else c for c in line.split(cut)]
                if len(cells) != width:
                    raise DatabaseError(
                        f"{self.path}, {table.name}: mdbtools gave {len(cells)} values for "
                        f"{width} columns; the file may be damaged"
                    )
                yield cells
        if rest.strip(b"\n"):
            raise DatabaseError(f"{self.path}, {table.name}: mdbtools stopped within a row")


class _Rows:
    """Turns exported rows of one table into batches."""

    def __init__(self, source: AccessSource, where: str, known: AccessTable, table: Table) -> None:
        self._source, self._where = source, where
        positions = {column.name: number for number, column in enumerate(known.columns)}
        self._chosen = [
            (positions[c.name], c, known.columns[positions[c.name]]) for c in table.columns
        ]

    def batch(self, rows: list[list[bytes]], first: int) -> Batch:
        columns = [
            self._cells([row[position] for row in rows], column, known, first)
            for position, column, known in self._chosen
        ]
        lines = [CELL.join(cells) + ROW for cells in zip(*columns, strict=True)]
        return Batch(b"".join(lines), len(lines))

    def _cells(
        self, cells: list[bytes], column: Column, known: AccessColumn, first: int
    ) -> list[bytes]:
        where = f"{self._where}.{column.name}"
        type_ = column.type
        assert isinstance(type_, PredefinedType)
        convert = None if self._source.wants_text(where) else converter(known.original)
        if type_.kind is Kind.TEXT:
            self._refuse_bytes(cells, where, first)
        if convert is not None:
            converted = []
            for number, cell in enumerate(cells):
                value = NULL if cell == NULL else convert(cell)
                if value is None:
                    shown = cell[:60].decode(errors="replace")
                    raise Unfit(where, first + number, shown, f"a value of {known.original}")
                converted.append(value)
            cells = converted
        if not type_.large:
            return cells
        hexed = type_.kind is Kind.BINARY
        return [c if c == NULL else self._place(c, hexed) for c in cells]

    def _place(self, cell: bytes, hexed: bool) -> bytes:
        value = bytes.fromhex(cell.decode()) if hexed else cell
        return self._source.spool.place(value) or (cell.upper() if hexed else cell)

    @staticmethod
    def _refuse_bytes(cells: list[bytes], where: str, first: int) -> None:
        """Text has to be Unicode; only where all of it together is not, each value is looked at."""
        try:
            b"".join(c for c in cells if c != NULL).decode()
        except UnicodeDecodeError:
            for number, cell in enumerate(cells):
                try:
                    cell.decode()
                except UnicodeDecodeError as error:
                    if cell != NULL:
                        shown = repr(cell[:40])
                        raise Unfit(where, first + number, shown, "text in Unicode") from error


def run_tool(name: str, *words: str) -> str:
    """Run one of mdbtools' programs and return what it prints."""
    return b"".join(stream_tool(name, *words)).decode("utf-8", "replace")


def stream_tool(name: str, *words: str) -> Iterator[bytes]:
    """Run one of mdbtools' programs and yield what it prints; a failure is a sentence."""
    if shutil.which(name) is None:
        raise DatabaseError(
            f"Access files need mdbtools, and its {name} is not installed; on Debian: "
            "apt-get install mdbtools"
        )
    environment = {**os.environ, "MDBOPTS": "", "LC_ALL": "C.UTF-8"}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [name, *words], stdout=subprocess.PIPE, stderr=errors, env=environment
        ) as process,
    ):
        assert process.stdout is not None
        try:
            while chunk := process.stdout.read(_CHUNK):
                yield chunk
        finally:
            process.stdout.close()
            code = process.wait()
        if code:
            errors.seek(0)
            told = errors.read(2000).decode(errors="replace").strip().replace("\n", "; ")
            raise DatabaseError(f"{name} could not read the file: {told or f'exit code {code}'}")
