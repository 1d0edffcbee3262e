"""SQLite as a target: a new file, loaded in one transaction, that appears when it is complete."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from muniment.databases.sqlite import connect_sqlite, translated
from muniment.databases.sqlite_types import sqlite_type
from muniment.errors import DatabaseError, UsageError
from muniment.files import refuse_losses, settle
from muniment.sql.batch import CELL, NULL, REF, ROW, Batch, Cell, cell_value
from muniment.sql.model import (
    Array,
    Column,
    Database,
    ForeignKey,
    Leaf,
    Schema,
    Shape,
    Struct,
    Table,
    UniqueKey,
    shape_of,
)  # fmt: skip
from muniment.sql.names import quoted
from muniment.sql.original import split_original
from muniment.sql.stores import OpenLob
from muniment.sql.types import Kind
from muniment.sql.values import with_values

__all__ = ["SqliteTarget", "create_target"]

# Control characters that stand for the bytes of structure while a batch is text.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
_TO_TEXT = bytes.maketrans(CELL + ROW + NULL, b"\x1f\x1f\x1e")
_CELL, _NULL = "\x1f", "\x1e"


@contextmanager
def create_target(path: Path, *, replace: bool = False) -> Iterator[SqliteTarget]:
    """Open a new database that appears at ``path`` only if the block succeeds."""
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already; choose another name or add --replace")
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; make it first")
    there = _tables_and_views(path) if path.exists() else set()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    db = connect_sqlite(partial, write=True)
    try:
        yield SqliteTarget(db, path, there)
        db.close(True)
        for rest in ("-wal", "-shm", "-journal"):  # of a file that is replaced: not of the new one
            path.with_name(path.name + rest).unlink(missing_ok=True)
        settle(partial, path)
    except apsw.Error as error:
        raise translated(error, path) from error
    finally:
        db.close(True)
        partial.unlink(missing_ok=True)


def _tables_and_views(path: Path) -> set[str]:
    """The names in a database that is about to be replaced."""
    db: Any = connect_sqlite(path)
    try:
        rows = db.execute(
            "SELECT name FROM pragma_table_list WHERE schema='main' AND type<>'shadow'"
        )
        return {name for (name,) in rows if not name.startswith("sqlite_")}
    finally:
        db.close(True)


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of a part, as they are."""

    batches: tuple[Batch, ...]
    rows: int


def keep(batches: Iterable[Batch]) -> Batches:
    """Return the batches; SQLite takes them row by row anyway."""
    kept = tuple(batches)
    return Batches(kept, sum(batch.rows for batch in kept))


class SqliteTarget:
    """An SQLite file in the making."""

    def __init__(self, db: apsw.Connection, path: Path, there: set[str]) -> None:
        self._db, self._path, self._there = db, path, there
        self.notes: list[str] = []
        self._later: list[tuple[str, str]] = []  # what it is, and the statement that makes it

    def define(self, database: Database) -> None:
        """Create the tables; indexes, triggers and views follow the rows."""
        self._database = database
        self._same = (database.database_product or "").startswith("SQLite")
        self._prefixed = sum(bool(schema.tables) for schema in database.schemas) > 1
        coming = {
            self._name(schema, name)
            for schema in database.schemas
            for name in (*(t.name for t in schema.tables), *(v.name for v in schema.views))
        }
        refuse_losses(self._path, self._there, coming)
        # The file is new, so its journal stays empty; rolling back a refused definition needs one.
        for pragma in ("journal_mode=MEMORY", "synchronous=OFF", "foreign_keys=OFF"):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        self._db.execute("BEGIN")
        for schema, table in database.tables():
            self._create(schema, table)

    def encoder(self, schema: Schema, table: Table) -> Callable[[Iterable[Batch]], Batches]:
        """Return what a worker does with batches: nothing."""
        return keep

    def write(
        self, schema: Schema, table: Table, pieces: Iterable[Batches], open_lob: OpenLob
    ) -> int:
        """Insert the rows."""
        shapes = [shape_of(self._database, schema.name, column) for column in table.columns]
        info = list(
            self._db.execute(f"PRAGMA table_xinfo({quoted(self._name(schema, table.name))})")
        )
        # Generated columns compute their own values.
        kept = [cid for cid, _, _, _, _, _, hidden in info if hidden not in (2, 3)]
        insert = self._insert(schema, table, kept)
        converters = [_converter(shape, row[2]) for shape, row in zip(shapes, info, strict=True)]
        read = partial(_read_all, open_lob, schema, table)
        load = _Loader(shapes, converters, kept, read)
        rows = 0
        for piece in pieces:
            for batch in piece.batches:
                if _SURROGATE.search(batch.data):
                    self._insert_as_bytes(insert, load(batch))
                else:
                    self._db.executemany(insert, load(batch))
                rows += batch.rows
        self._expect(schema, table, rows)
        return rows

    def finish(self, database: Database) -> None:
        """Make what follows the rows, and commit."""
        for what, statement in self._later:
            try:
                self._run(statement)
            except apsw.Error as error:
                self.notes.append(f"{what} was left out: SQLite says: {error}")
        for schema in database.schemas:
            for view in schema.views:
                self._create_view(
                    schema, view.name, view.query_original if self._same else view.query
                )
            if schema.routines:
                names = ", ".join(routine.name for routine in schema.routines)
                self.notes.append(f"SQLite has no routines: {names} were left out")
        self._db.execute("COMMIT")
        self._check_foreign_keys()
        self._db.execute("PRAGMA synchronous=FULL").fetchall()
        with self._db:
            self._db.execute("PRAGMA user_version=0").fetchall()

    def _insert_as_bytes(self, insert: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows whose text has half of a surrogate pair; the driver wants it as bytes."""
        for row in rows:
            odd = [isinstance(v, str) and not v.isascii() for v in row]
            marks = ",".join("CAST(? AS TEXT)" if cast else "?" for cast in odd)
            head = insert[: insert.rindex("(")]
            values = tuple(
                v.encode("utf-8", "surrogatepass") if cast else v
                for v, cast in zip(row, odd, strict=True)
            )
            self._db.execute(f"{head}({marks})", values)

    def _check_foreign_keys(self) -> None:
        sql = 'SELECT DISTINCT "table", parent FROM pragma_foreign_key_check'
        try:
            for child, parent in self._db.execute(sql).fetchall():
                self.notes.append(f"rows of {child} refer to rows that {parent} does not have")
        except apsw.SQLError as error:
            self.notes.append(f"the foreign keys could not be checked: SQLite says: {error}")

    def _expect(self, schema: Schema, table: Table, rows: int) -> None:
        """Make sure that no definition that came with the archive has swallowed rows."""
        db: Any = self._db
        name = self._name(schema, table.name)
        ((stored,),) = db.execute(f"SELECT count(*) FROM {quoted(name)}").fetchall()
        if stored != rows:
            raise DatabaseError(
                f"{schema.name}.{table.name} has {rows} rows, but its own definition lets SQLite "
                f"keep only {stored}; restore it with --no-constraints"
            )

    def _run(self, statement: str, allowed: frozenset[int] | None = None) -> None:
        """Run a statement that came with the archive; it may define, and do nothing else."""
        self._db.authorizer = partial(_only_definitions, allowed or _DEFINING)
        try:
            self._db.execute(statement).fetchall()
        finally:
            self._db.authorizer = None

    def _name(self, schema: Schema | str, table: str) -> str:
        schema_name = schema if isinstance(schema, str) else schema.name
        return f"{schema_name}_{table}" if self._prefixed else table

    def _create(self, schema: Schema, table: Table) -> None:
        _, original = split_original(table.description)
        known = original and original.product == "SQLite" and self._same and not self._prefixed
        if original and known and self._create_original(table, original.statements):
            return
        self._run(self._statement(schema, table), _TABLE_ONLY)
        for trigger in table.triggers:
            self.notes.append(f"the trigger {trigger.name} of {table.name} was left out")

    def _create_original(self, table: Table, statements: tuple[str, ...]) -> bool:
        """Run the table's own definition if it makes just the table that the archive describes."""
        first, *rest = statements
        if not first.lstrip().upper().startswith("CREATE TABLE"):
            return False
        try:
            with self._db:
                self._run(first, _TABLE_ONLY)
                made = [
                    row[1] for row in self._db.execute(f"PRAGMA table_xinfo({quoted(table.name)})")
                ]
                if made != [column.name for column in table.columns]:
                    raise apsw.SQLError("another table")
        except apsw.Error:
            return False
        for statement in rest:
            kind = statement.split(None, 1)[0:1]
            if kind and kind[0].upper() == "CREATE":
                self._later.append((f"an index or trigger of {table.name}", statement))
        return True

    def _statement(self, schema: Schema, table: Table) -> str:
        lines = [self._column(schema, column) for column in table.columns]
        if table.primary_key:
            key_columns = _names(table.primary_key.columns)
            lines.append(f"{_constraint(table.primary_key)} PRIMARY KEY ({key_columns})")
        for key in table.candidate_keys:
            lines.append(f"{_constraint(key)} UNIQUE ({_names(key.columns)})")
        for foreign in table.foreign_keys:
            lines.append(self._foreign_key(foreign))
        if self._same:
            for check in table.check_constraints:
                lines.append(f"CONSTRAINT {quoted(check.name)} CHECK ({check.condition})")
        elif table.check_constraints:
            names = ", ".join(check.name for check in table.check_constraints)
            self.notes.append(f"check constraints of {table.name} were left out: {names}")
        return (
            f"CREATE TABLE {quoted(self._name(schema, table.name))} (\n  "
            + ",\n  ".join(lines)
            + "\n)"
        )

    def _column(self, schema: Schema, column: Column) -> str:
        shape = shape_of(self._database, schema.name, column)
        if self._same and column.type_original is not None and isinstance(shape, Leaf):
            declared = column.type_original if _plain_declaration(column.type_original) else ""
        else:
            declared = sqlite_type(shape.type) if isinstance(shape, Leaf) else "TEXT"
            if " TO " in declared:  # INTERVAL DAY TO SECOND: a word of SQL within a type
                declared = quoted(declared)
        not_null = " NOT NULL" if column.nullable is False else ""
        return f"{quoted(column.name)} {declared}{not_null}"

    def _foreign_key(self, key: ForeignKey) -> str:
        columns = _names(tuple(r.column for r in key.references))
        referenced = _names(tuple(r.referenced for r in key.references))
        parent = quoted(self._name(key.referenced_schema, key.referenced_table))
        actions = "".join(
            f" ON {event} {action}"
            for event, action in (("DELETE", key.delete_action), ("UPDATE", key.update_action))
            if action in ("CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION")
        )
        foreign = f"CONSTRAINT {quoted(key.name)} FOREIGN KEY ({columns})"
        return f"{foreign} REFERENCES {parent} ({referenced}){actions}"

    def _create_view(self, schema: Schema, name: str, query: str | None) -> None:
        try:
            if not query:
                raise apsw.SQLError(
                    "the archive has no query for it in a language that SQLite knows"
                )
            view = next(v for v in schema.views if v.name == name)
            columns = _names(tuple(column.name for column in view.columns))
            self._run(f"CREATE VIEW {quoted(self._name(schema, name))} ({columns}) AS {query}")
            self._db.execute(f"SELECT 1 FROM {quoted(self._name(schema, name))} LIMIT 0").fetchall()
        except apsw.Error as error:
            self._db.execute(f"DROP VIEW IF EXISTS {quoted(self._name(schema, name))}")
            self.notes.append(f"the view {name} was left out: {error}")

    def _insert(self, schema: Schema, table: Table, kept: list[int]) -> str:
        columns = _names(tuple(table.columns[k].name for k in kept))
        marks = ",".join("?" * len(kept))
        return f"INSERT INTO {quoted(self._name(schema, table.name))} ({columns}) VALUES ({marks})"


_CLAUSES = frozenset(
    (
        "AS",
        "CHECK",
        "COLLATE",
        "CONSTRAINT",
        "DEFAULT",
        "GENERATED",
        "NOT",
        "PRIMARY",
        "REFERENCES",
        "UNIQUE",
    )
)


def _plain_declaration(declared: str) -> bool:
    """Whether a declaration can stand in SQL as it is: words and numbers in parentheses."""
    plain = re.fullmatch(r"[\w ]+(?:\(\s*\d+\s*(?:,\s*\d+\s*)?\)[\w ]*)?", declared)
    return plain is not None and not _CLAUSES.intersection(declared.upper().split())


class _Loader:
    """Turns batches into rows of values that SQLite stores as they were."""

    def __init__(
        self,
        shapes: list[Shape],
        converters: list[Callable[[Any], Any] | None],
        kept: list[int],
        read: Callable[[bytes], bytes],
    ) -> None:
        self._width = len(shapes)
        self._kept = kept if len(kept) < len(shapes) else None
        self._read = read
        self._shapes = shapes
        self._convert = [
            (k, convert) for k, convert in enumerate(converters) if convert is not None
        ]

    def __call__(self, batch: Batch) -> Iterator[tuple[Any, ...]]:
        cells = self._cells(batch)
        for k, convert in self._convert:
            column = cells[k :: self._width]
            cells[k :: self._width] = [
                None if c is None else c if type(c) is bytes else convert(c) for c in column
            ]
        rows = zip(*[iter(cells)] * self._width, strict=True)
        if self._kept is None:
            return rows
        return (tuple(row[k] for k in self._kept or ()) for row in rows)

    def _cells(self, batch: Batch) -> list[Any]:
        data = batch.data
        if REF in data or b"\x1e" in data or b"\x1f" in data or b"\xfa" in data:
            return self._careful(batch)
        try:
            cells: list[Any] = data.translate(_TO_TEXT).decode().split(_CELL)
        except UnicodeDecodeError:
            return self._careful(batch)
        cells.pop()
        position = -1
        for _ in range(data.count(NULL)):
            position = cells.index(_NULL, position + 1)
            cells[position] = None
        return cells

    def _careful(self, batch: Batch) -> list[Any]:
        """Cell by cell: for large objects, complex values, surrogates and control characters."""
        cells = batch.data.replace(ROW, CELL).split(CELL)
        cells.pop()
        return [self._value(position % self._width, cell) for position, cell in enumerate(cells)]

    def _value(self, k: int, cell: bytes) -> Any:
        shape = self._shapes[k]
        if cell.startswith(REF):
            content = self._read(cell[1:])
            if isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT:
                return content.decode("utf-8", "surrogatepass")
            return content
        value = cell_value(with_values(cell, shape, self._read))
        if isinstance(value, list):
            return json.dumps(_json(value, shape), ensure_ascii=False)
        return value


def _read_all(open_lob: OpenLob, schema: Schema, table: Table, reference: bytes) -> bytes:
    with open_lob(schema, table, reference) as stream:
        return stream.read()


def _converter(shape: Shape, declared: str) -> Callable[[Any], Any] | None:
    """Return what makes a stored value of a text; None where SQLite does that itself.

    A column of a numeric declaration turns text into numbers, exactly; others would keep the text.
    """
    if not isinstance(shape, Leaf):
        return None
    kind = shape.type.kind
    if kind in _NUMBERS and (not declared or "BLOB" in declared.upper()):
        return _NUMBERS[kind]
    return _CONVERTERS.get(kind)


def _float(text: str) -> Any:
    """SQLite has infinities but no spelling of them that it would read back, and no NaN at all."""
    return float(text) if text in ("INF", "-INF") else text


_NUMBERS: dict[Kind, Callable[[str], Any]] = {
    Kind.INTEGER: int,
    Kind.FLOAT: lambda text: float(text.replace("INF", "inf")),
    Kind.DECIMAL: lambda text: int(text) if text.lstrip("+-").isdecimal() else text,
}
_CONVERTERS: dict[Kind, Callable[[str], Any]] = {
    Kind.BOOLEAN: lambda text: 1 if text in ("true", "1") else 0,
    Kind.BINARY: bytes.fromhex,
    Kind.TIMESTAMP: lambda text: f"{text[:10]} {text[11:]}",
    Kind.FLOAT: _float,
}


def _json(value: Cell, shape: Shape) -> Any:
    if not isinstance(value, list):
        return value
    if isinstance(shape, Array):
        return [_json(part, shape.element) for part in value]
    assert isinstance(shape, Struct)
    return {n: _json(v, s) for n, v, s in zip(shape.names, value, shape.parts, strict=True)}


def _constraint(key: UniqueKey) -> str:
    return f"CONSTRAINT {quoted(key.name)}"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quoted, names))


_DEFINING = frozenset({
    apsw.SQLITE_CREATE_TABLE, apsw.SQLITE_CREATE_INDEX, apsw.SQLITE_CREATE_TRIGGER,
    apsw.SQLITE_CREATE_VIEW, apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION,
    apsw.SQLITE_REINDEX, apsw.SQLITE_RECURSIVE,
})  # fmt: skip
# What makes a table and its keys; no query, which could run for ever, and no trigger.
_TABLE_ONLY = frozenset({
    apsw.SQLITE_CREATE_TABLE, apsw.SQLITE_CREATE_INDEX, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION,
    apsw.SQLITE_REINDEX,
})  # fmt: skip
_WRITING = {apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE}


def _only_definitions(
    allowed: frozenset[int], action: int, first: str | None, second: str | None, *_: str | None
) -> int:
    """What an archive says must define things and nothing else: no other files, no other data."""
    defining = action in allowed and second != "load_extension"
    catalogue = action in _WRITING and (first or "").startswith("sqlite_")
    return apsw.SQLITE_OK if defining or catalogue else apsw.SQLITE_DENY
