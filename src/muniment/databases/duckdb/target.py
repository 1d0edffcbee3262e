"""Writing a DuckDB file: tables first, rows as Arrow tables of text that DuckDB casts, views last.

What an archive brings as SQL (checks, defaults, views) is run without access to files and network,
one CREATE statement at a time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import BinaryIO

import duckdb
import pyarrow as pa

from muniment.databases.duckdb.connection import (
    Connection,
    connect,
    first_line,
    is_one_create,
    rows,
    translated,
)
from muniment.databases.duckdb.keys import Keys
from muniment.databases.duckdb.memory import (
    INDEX_MEMORY,
    STAGED,
    IndexesTooLarge,
    Memory,
    log_of,
)
from muniment.databases.duckdb.pieces import (
    ADVICE,
    DuckdbEncoder,
    DuckdbPiece,
    arrow_tables,
    shown,
)
from muniment.databases.duckdb.surroundings import Surroundings
from muniment.databases.duckdb.tables import (
    NewTable,
    columns_sql,
    differing_sql,
    key_columns,
    names_sql,
    nearest_type,
    select_sql,
)
from muniment.databases.duckdb.types import (
    DuckType,
    Scalar,
    fits,
    parse_duck_type,
    quote,
)
from muniment.errors import DatabaseError, UsageError
from muniment.files import refuse_closed, refuse_existing, refuse_losses, settle
from muniment.finished import appearing
from muniment.sql.leftout import (
    LeftOut,
    left_out_rights,
)
from muniment.sql.model import (
    Column,
    Database,
    Leaf,
    Schema,
    Shape,
    Table,
    shape_of,
)
from muniment.sql.original import split_original
from muniment.sql.stores import Again, OpenLob
from muniment.sql.translate import (
    NotTranslatable,
    translated_expression,
)
from muniment.sql.types import Kind
from muniment.workers import Beside

__all__ = ["DuckdbTarget", "create_target"]

_ALONE = 1 << 26  # bytes of rows beside which no others should be held
_COLLATE = re.compile(r"COLLATE (?P<name>\w+(?:\.\w+)*)")
_GENERATED = re.compile(r"GENERATED ALWAYS AS \((?P<text>.*)\)", re.DOTALL)


class _ComputedOtherwise(Exception):
    """Generated columns would not hold what the archive has; the text says why."""

    def __init__(self, columns: Iterable[str], reason: str) -> None:
        super().__init__(reason)
        self.columns = tuple(columns)


@contextmanager
def create_target(
    path: Path, replace: bool = False, index_memory: int = INDEX_MEMORY
) -> Iterator[DuckdbTarget]:
    """Open a new DuckDB file that appears at ``path`` only if the block succeeds.

    Keys whose indexes take more than ``index_memory`` bytes while rows come are left out.
    """
    if path.exists() and not replace:
        raise UsageError(f"{path} exists; choose another name or add --replace")
    if not path.exists():
        refuse_existing(path)
    refuse_closed(path)
    there = _tables_and_views(path) if path.exists() else set()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    staged = path.with_name(f"{partial.name}.staged")
    try:
        target = DuckdbTarget(partial, staged, index_memory)
        target.replaced = path, there
        try:
            yield target
        finally:
            target.close()
        if not target.finished:
            return
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        if not replace:
            refuse_existing(path)  # somebody may have been quicker
        with appearing(path):
            log_of(path).unlink(missing_ok=True)  # DuckDB would replay it into the new file
            settle(partial, path)
    finally:
        for rest in (partial, staged):
            rest.unlink(missing_ok=True)
            log_of(rest).unlink(missing_ok=True)


def _tables_and_views(path: Path) -> set[str]:
    """The names in a database that is about to be replaced."""
    with closing(connect(path, read_only=True)) as connection:
        return {row["name"] for row in rows(connection, _NAMES)}


_NAMES = (
    "SELECT schema_name || '.' || table_name AS name FROM duckdb_tables() WHERE NOT internal"
    " UNION ALL SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal"
)


class DuckdbTarget:
    """A DuckDB file in the making; make it with ``create_target``.

    ``notes`` says in sentences what became something else, ``left_out`` what could not be made.
    """

    suits_threads = True
    cores = 1  # DuckDB's own, as it takes in the rows of one statement after another

    def __init__(self, path: Path, staged: Path, index_memory: int) -> None:
        self.notes: list[str] = []
        self.left_out: list[LeftOut] = []
        self.finished = False
        self._files = (path, staged, log_of(path), log_of(staged))
        self.replaced: tuple[Path, set[str]] | None = None  # the old file, and what it holds
        self._tables: dict[tuple[str, str], NewTable] = {}
        self._database = Database("")
        self._same_product = False
        self._memory = Memory(path, staged, index_memory)
        self._keys = Keys(self._memory, self._tables, self.left_out)
        self._surroundings = Surroundings(self._memory, self._keys, self.notes, self.left_out)

    @property
    def _connection(self) -> Connection:
        return self._memory.connection  # it may be opened again

    def close(self) -> None:
        self._connection.close()

    @property
    def bytes_written(self) -> int:
        """The size of the database so far, with what waits beside it."""
        return sum(file.stat().st_size for file in self._files if file.exists())

    def define(self, database: Database) -> None:
        """Make schemas, types, sequences and tables, as yet without keys."""
        self._database = database
        self._same_product = (database.database_product or "").startswith("DuckDB")
        if self.replaced is not None:
            coming = {
                f"{schema.name}.{name}"
                for schema in database.schemas
                for name in (*(t.name for t in schema.tables), *(v.name for v in schema.views))
            }
            refuse_losses(*self.replaced, coming)
        for schema in database.schemas:
            self._run(f"CREATE SCHEMA IF NOT EXISTS {quote(schema.name)}", f"schema {schema.name}")
            self._run(f"CREATE SCHEMA IF NOT EXISTS {STAGED}.{quote(schema.name)}", "a schema")
        if self._same_product:
            self._surroundings.prepare(database)
        for schema, table in database.tables():
            self._define_table(database, schema, table)
        self._keys.arrange()

    def arranged(self, tables: Iterable[tuple[Schema, Table]]) -> list[tuple[Schema, Table]]:
        """Return tables in the order in which their rows have to come: ``define`` found it."""
        places = {name: place for place, name in enumerate(self._tables)}
        return sorted(tables, key=lambda each: places[each[0].name, each[1].name])

    def encoder(self, schema: Schema, table: Table) -> DuckdbEncoder:
        """Return what turns batches into Arrow; runs in worker processes."""
        made = self._tables[schema.name, table.name]
        names = tuple(column.name for column in table.columns)
        texts = frozenset(n for n, duck in enumerate(made.ducks) if duck == Scalar("VARCHAR"))
        return DuckdbEncoder(made.where, names, made.shapes, texts)

    def write(
        self, schema: Schema, table: Table, pieces: Iterable[DuckdbPiece], open_lob: OpenLob
    ) -> int:
        """Insert a table's rows; the file is nobody's before it is complete, so no transaction."""
        made = self._tables[schema.name, table.name]
        if made.keyed:
            made = self._keys.make_table(made)
        place = f"{STAGED}.{made.place}" if made.staged else made.place
        encoder = self.encoder(schema, table)

        def open_one(reference: bytes) -> BinaryIO:
            return open_lob(schema, table, reference)

        written, step = 0, 1
        with translated(f"the rows of {made.where}"):
            try:
                # While DuckDB takes rows in, those that follow are read.
                with Beside(1) as beside:
                    for rows in arrow_tables(encoder, _sound(made, pieces), open_one):
                        beside(self._insert, made, place, rows)
                        if rows.nbytes > _ALONE:
                            beside.wait()
                        written += rows.num_rows
                        step = max(step, rows.num_rows)
            except duckdb.ConstraintException as error:
                if made.keyed:
                    self._keys.stage(made)
                elif made.generated:
                    self._make_ordinary(made, made.generated, first_line(error))
                else:
                    raise
                raise Again from None
            except _ComputedOtherwise as found:
                self._make_ordinary(made, found.columns, str(found))
                raise Again from None
            except IndexesTooLarge:
                self._keys.give_up_one(made)
                raise Again from None
        self._keys.complete(made, step)
        return written

    def mark(self) -> None:
        """Return nothing to go back to: a table that is to come again was staged meanwhile."""

    def roll_back(self, _: None) -> None:
        return

    def _insert(self, made: NewTable, place: str, rows: pa.Table) -> None:
        self._memory.make_room()
        self._connection.register("piece", rows)
        try:
            if made.generated:
                self._prove_generated(made, rows)
            names = names_sql(made.filled)
            self._connection.execute(f"INSERT INTO {place} ({names}) {select_sql(made, rows)}")
        finally:
            self._connection.unregister("piece")

    def _prove_generated(self, made: NewTable, rows: pa.Table) -> None:
        """Raise if DuckDB computes something else than the archive has, or nothing at all."""
        try:
            (differ,) = self._connection.execute(differing_sql(made, rows)).fetchall()
        except duckdb.Error as error:
            raise _ComputedOtherwise(made.generated, first_line(error)) from error
        if names := list(compress(made.generated, differ)):
            raise _ComputedOtherwise(names, "DuckDB computes other values than the archive has")

    def _make_ordinary(self, made: NewTable, columns: Iterable[str], reason: str) -> None:
        """Have a table come again with the archive's values where DuckDB would compute others."""
        for name in columns:
            self._leave_out_generated(made, name, reason)
        others = {n: text for n, text in made.generated.items() if n not in columns}
        self._keys.make_again(replace(made, generated=others))

    def finish(self, database: Database) -> None:
        """Add what is left of the keys, comments, macros and views, and write all to the file."""
        self._keys.make_staged()
        self._keys.explain()
        self._surroundings.complete(database, self._same_product)
        self.left_out += left_out_rights(database, "DuckDB has no users")
        self._run(f"DETACH {STAGED}", "to close the staged rows")
        self._run("CHECKPOINT", "to write the file")
        self.finished = True

    # Definitions

    def _define_table(self, database: Database, schema: Schema, table: Table) -> None:
        shapes = tuple(shape_of(database, schema.name, column) for column in table.columns)
        ducks = tuple(
            self._duck(database, schema, table, column, shape)
            for column, shape in zip(table.columns, shapes, strict=True)
        )
        made = NewTable(schema, table, ducks, shapes)
        if self._same_product:
            made = self._with_clauses(made)
        made = replace(made, defaults=self._defaults(made), checks=tuple(self._checks(made)))
        self._tables[schema.name, table.name] = made
        if not made.keyed:
            self._keys.make_table(made)

    def _duck(
        self, database: Database, schema: Schema, table: Table, column: Column, shape: Shape
    ) -> DuckType:
        """The original type if it comes from DuckDB and can take the cells, else the nearest."""
        where = f"{schema.name}.{table.name}.{column.name}"
        if self._same_product and column.type_original:
            duck = parse_duck_type(column.type_original)
            if duck is not None and fits(duck, shape):
                return duck
        found = nearest_type(database, schema.name, column, shape)
        if found == Scalar("VARCHAR") and isinstance(shape, Leaf):
            if shape.type.kind is not Kind.TEXT:
                self.notes.append(f"{where} became VARCHAR: no type of DuckDB holds {shape.type}.")
            elif self._same_product:
                original = column.type_original or "an unknown type"
                reason = f"it was archived as text of {original}, so it is VARCHAR"
                self.left_out.append(LeftOut("type", f"of {where}", reason))
        return found

    def _with_clauses(self, made: NewTable) -> NewTable:
        """Let columns be computed and compared as they were, where DuckDB still can."""
        keyed = key_columns(made.table)
        for column in made.table.columns:
            _, original = split_original(column.description)
            clause = original.statements[0] if original and original.product == "DuckDB" else ""
            if found := _COLLATE.fullmatch(clause):
                wanted = replace(made, collations=made.collations | {column.name: found["name"]})
            elif column.name in keyed and _GENERATED.fullmatch(clause):
                self._leave_out_generated(made, column.name, "it is a part of a key")
                continue
            elif found := _GENERATED.fullmatch(clause):
                wanted = replace(made, generated=made.generated | {column.name: found["text"]})
            else:
                continue
            if self._is_accepted(", ".join(columns_sql(wanted)), wanted):
                made = wanted
            elif column.name in wanted.generated:
                self._leave_out_generated(made, column.name, "DuckDB does not understand it")
            else:
                name = f"of {made.where}.{column.name}"
                self._leave_out("collation", name, "DuckDB does not know it", clause)
        return made

    def _leave_out_generated(self, made: NewTable, name: str, reason: str) -> None:
        column = next(column for column in made.table.columns if column.name == name)
        _, original = split_original(column.description)
        why = f"{reason.rstrip('.')}; it is an ordinary column now, with the values of the archive"
        sql = original.statements[0] if original else None
        self._leave_out("generated column", f"{made.where}.{name}", why, sql)

    def _defaults(self, made: NewTable) -> dict[str, str]:
        usable = {}
        for column, duck in zip(made.table.columns, made.ducks, strict=True):
            text = column.default_value
            for way in self._ways(made.schema, text) if text else ():
                if self._is_accepted(f"c {duck} DEFAULT ({way})"):
                    usable[column.name] = way
                    break
            else:
                if text:
                    name, sql = f"of {made.where}.{column.name}", f"DEFAULT {text}"
                    self._leave_out("default", name, "DuckDB does not understand it", sql)
        return usable

    def _ways(self, schema: Schema, text: str) -> Iterator[str]:
        """Yield an expression as it is and, if it is another product's, in DuckDB's SQL."""
        if not self._same_product:
            with suppress(NotTranslatable):
                yield translated_expression(self._database, schema, text, "duckdb")
        yield text

    def _checks(self, made: NewTable) -> Iterator[str]:
        columns = ", ".join(columns_sql(replace(made, defaults={})))
        for check in made.table.check_constraints:
            for way in self._ways(made.schema, check.condition):
                if self._is_accepted(f"{columns}, CHECK ({way})"):
                    yield way
                    break
            else:
                name, sql = f"{check.name} of {made.where}", f"CHECK ({check.condition})"
                self._leave_out("check constraint", name, "DuckDB does not understand it", sql)

    def _is_accepted(self, body: str, wanted: NewTable | None = None) -> bool:
        """Whether DuckDB takes the body of a table that holds SQL from the archive.

        ``wanted`` is what has to come out of it: SQL may say more than it seems to.
        """
        sql = f"CREATE TEMP TABLE probe ({body}\n)"
        if not is_one_create(sql):
            return False
        try:
            self._connection.execute(sql)
            made = self._connection.execute("FROM temp.probe LIMIT 0").description
            self._connection.execute("DROP TABLE probe")
        except duckdb.Error:
            return False
        names = [column[0] for column in made]
        return wanted is None or names == [column.name for column in wanted.table.columns]

    # Running SQL

    def _run(self, sql: str, doing: str) -> None:
        with translated(doing):
            self._connection.execute(sql)

    def _leave_out(self, kind: str, name: str, reason: str, sql: str | None) -> None:
        self.left_out.append(LeftOut(kind, name, reason.rstrip("."), sql or None))


def _sound(made: NewTable, pieces: Iterable[DuckdbPiece]) -> Iterator[DuckdbPiece]:
    """Yield pieces as long as their cells are spelt as values of their types."""
    before = 0
    for piece in pieces:
        if (misfit := piece.misfit) is not None:
            column = made.table.columns[misfit.column]
            place = f"{made.where}.{column.name}, row {before + misfit.row}"
            raise DatabaseError(f"{place}: {shown(misfit.text)} is no {column.type}; {ADVICE}")
        yield piece
        before += piece.rows
