"""SQLite as a target: a new file, loaded in one transaction, that appears when it is complete."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import apsw

from muniment.databases.sqlite import connect_sqlite, translated
from muniment.databases.sqlite_types import sqlite_type
from muniment.errors import DatabaseError, UsageError
from muniment.files import refuse_existing, refuse_losses, settle
from muniment.sql.batch import CELL, NULL, REF, ROW, Batch, cell_value
from muniment.sql.leftout import (
    LeftOut,
    left_out_rights,
    left_out_routine,
    left_out_trigger,
    left_out_view,
)
from muniment.sql.model import (
    CheckConstraint,
    Column,
    Database,
    ForeignKey,
    Leaf,
    Schema,
    Shape,
    Table,
    UniqueKey,
    View,
    shape_of,
)  # fmt: skip
from muniment.sql.names import quoted
from muniment.sql.nested import nested_value
from muniment.sql.original import split_original
from muniment.sql.stores import OpenLob
from muniment.sql.translate import (
    NotTranslatable,
    make_in_turn,
    translated_expression,
    translated_view,
    translation_note,
)
from muniment.sql.types import Kind
from muniment.sql.values import with_values

__all__ = ["SqliteTarget", "create_target"]

# Control characters that stand for the bytes of structure while a batch is text.
_PIECE = 1 << 20  # bytes of a large object that are held
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
_TO_TEXT = bytes.maketrans(CELL + ROW + NULL, b"\x1f\x1f\x1e")
_CELL, _NULL = "\x1f", "\x1e"
_PROBE = "muniment probe"  # a table that is never kept
_TRIGGER = re.compile(r"\s*CREATE\s+(?:TEMP(?:ORARY)?\s+)?TRIGGER\b", re.IGNORECASE)


@contextmanager
def create_target(path: Path, *, replace: bool = False) -> Iterator[SqliteTarget]:
    """Open a new database that appears at ``path`` only if the block succeeds."""
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already; choose another name or add --replace")
    if not path.exists():
        refuse_existing(path)
    there = _tables_and_views(path) if path.exists() else set()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    db = connect_sqlite(partial, write=True)
    try:
        yield SqliteTarget(db, path, there)
        db.close(True)
        if not replace:
            refuse_existing(path)  # somebody may have been quicker
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
        self.left_out: list[LeftOut] = []
        self._later: list[tuple[str, str]] = []  # the table, and the statement for it
        self._strict: list[tuple[str, CheckConstraint]] = []  # checks of other products
        self._declared: dict[str, dict[str, str]] = {}  # as tables' own definitions have them

    @property
    def bytes_written(self) -> int:
        """The size of the database so far."""
        return Path(self._db.filename).stat().st_size

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
        # Rows come before verdicts: a check of another product is tested when they are all there.
        checks = f"ignore_check_constraints={'OFF' if self._same else 'ON'}"
        for pragma in ("journal_mode=MEMORY", "synchronous=OFF", "foreign_keys=OFF", checks):
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
        name = self._name(schema, table.name)
        fillable = self._fillable(name, [row[1] for row in info])
        load = _Loader(shapes, converters, kept, partial(open_lob, schema, table), fillable)
        rows = 0
        for piece in pieces:
            for batch in piece.batches:
                if REF in batch.data:
                    self._insert_with_objects(insert, load, batch, name, info)
                elif _SURROGATE.search(batch.data):
                    self._insert_as_bytes(insert, load(batch))
                else:
                    self._db.executemany(insert, load(batch))
                rows += batch.rows
        self._expect(schema, table, rows)
        return rows

    def finish(self, database: Database) -> None:
        """Make what follows the rows, and commit."""
        for table, statement in self._later:
            try:
                self._run(statement)
            except apsw.Error as error:
                kind = "trigger" if _TRIGGER.match(statement) else "index"
                self.left_out.append(LeftOut(kind, f"of {table}", str(error), statement))
        self._check_checks()
        self._create_views(database)
        for schema in database.schemas:
            for routine in schema.routines:
                self.left_out.append(left_out_routine(schema, routine, "SQLite has no routines"))
        self.left_out += left_out_rights(database, "SQLite has no users")
        self._db.execute("COMMIT")
        self._check_foreign_keys()
        self._db.execute("PRAGMA synchronous=FULL").fetchall()
        with self._db:
            self._db.execute("PRAGMA user_version=0").fetchall()

    def _fillable(self, name: str, columns: list[str]) -> frozenset[int]:
        """Which columns SQLite lets be filled piece by piece: not indexed, in rowid tables."""
        db: Any = self._db
        tables = db.execute(f"PRAGMA table_list({quoted(name)})").fetchall()
        if any(row[4] for row in tables):
            return frozenset()
        indexed = {
            column
            for index in db.execute(f"PRAGMA index_list({quoted(name)})").fetchall()
            for _, _, column in db.execute(f"PRAGMA index_info({quoted(index[1])})").fetchall()
        }
        return frozenset(k for k, column in enumerate(columns) if column not in indexed)

    def _insert_with_objects(
        self, insert: str, load: _Loader, batch: Batch, name: str, info: list[Any]
    ) -> None:
        """Insert rows one by one; a large object is written into its row piece by piece."""
        if _SURROGATE.search(batch.data):
            self._insert_as_bytes(insert, load.whole(batch))
            return
        for row, objects in load.with_objects(batch):
            try:
                self._db.execute(insert, row)
            except apsw.ConstraintError:
                if not objects:
                    raise
                self._db.execute(insert, load.filled(row, objects))  # a check looks at them
                continue
            rowid = self._db.last_insert_rowid()
            for k, reference in objects:
                with (
                    load.open(reference) as stream,
                    self._db.blob_open("main", name, info[k][1], rowid, True) as blob,
                ):
                    while chunk := stream.read(_PIECE):
                        blob.write(chunk)

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
        """Say which rows refer to nothing; a key that leads nowhere is not in the way of others."""
        db: Any = self._db
        sql = 'SELECT DISTINCT "table", parent FROM pragma_foreign_key_check(?)'
        for schema, table in self._database.tables():
            name = self._name(schema, table.name)
            try:
                found = db.execute(sql, (name,)).fetchall()
            except apsw.SQLError as error:
                self.notes.append(f"foreign keys of {name} cannot be checked: SQLite says: {error}")
                continue
            for child, parent in found:
                self.notes.append(f"rows of {child} refer to rows that {parent} does not have")

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
            reason = "its action is in the language of another product"
            self.left_out.append(left_out_trigger(schema, table, trigger, reason))

    def _create_original(self, table: Table, statements: tuple[str, ...]) -> bool:
        """Run the table's own definition if it makes just the table that the archive describes."""
        first, *rest = statements
        if not first.lstrip().upper().startswith("CREATE TABLE"):
            return False
        try:
            with self._db:
                self._run(first, _TABLE_ONLY)
                self._refuse_another(table, first)
        except apsw.Error:
            return False
        for statement in rest:
            kind = statement.split(None, 1)[0:1]
            if kind and kind[0].upper() == "CREATE":
                self._later.append((table.name, statement))
        return True

    def _refuse_another(self, table: Table, statement: str) -> None:
        """Raise if a definition made other columns, or keys that rows of the archive may break."""
        db: Any = self._db
        info = db.execute(f"PRAGMA table_xinfo({quoted(table.name)})").fetchall()
        if [row[1] for row in info] != [column.name for column in table.columns]:
            raise apsw.SQLError("another table")
        known = {
            frozenset(key.columns) for key in (table.primary_key, *table.candidate_keys) if key
        }
        for _, name, *_ in db.execute(f"PRAGMA index_list({quoted(table.name)})").fetchall():
            index = db.execute(f"PRAGMA index_info({quoted(name)})").fetchall()
            columns = [row[2] for row in index]
            if frozenset(columns) not in known:
                self._declared[table.name] = {row[1]: row[2] for row in info}
                reason = "the archive does not say that its rows keep it"
                place = f"({', '.join(columns)}) of main.{table.name}"
                self.left_out.append(LeftOut("key", place, reason, statement))
                raise apsw.SQLError(reason)

    def _statement(self, schema: Schema, table: Table) -> str:
        lines = [self._column(schema, table, column) for column in table.columns]
        if table.primary_key:
            key_columns = _names(table.primary_key.columns)
            lines.append(f"{_constraint(table.primary_key)} PRIMARY KEY ({key_columns})")
        for key in table.candidate_keys:
            lines.append(f"{_constraint(key)} UNIQUE ({_names(key.columns)})")
        for foreign in table.foreign_keys:
            lines.append(self._foreign_key(foreign))
        lines += self._checks(schema, table, lines[: len(table.columns)])
        return (
            f"CREATE TABLE {quoted(self._name(schema, table.name))} (\n  "
            + ",\n  ".join(lines)
            + "\n)"
        )

    def _checks(self, schema: Schema, table: Table, columns: list[str]) -> Iterator[str]:
        """Yield the checks that SQLite understands, those of another product in its own words."""
        for check in table.check_constraints:
            condition = check.condition
            try:
                if not self._same:
                    condition = translated_expression(self._database, schema, condition, "sqlite")
                line = f"CONSTRAINT {quoted(check.name)} CHECK ({condition})"
                self._probe(f"CREATE TABLE {quoted(_PROBE)} ({', '.join([*columns, line])})")
            except (NotTranslatable, apsw.Error) as error:
                name = f"{check.name} of {schema.name}.{table.name}"
                self.left_out.append(
                    LeftOut("check constraint", name, str(error), f"CHECK ({check.condition})")
                )
            else:
                if not self._same:
                    made = self._name(schema, table.name)
                    self._strict.append((made, replace(check, condition=condition)))
                yield line

    def _default(self, schema: Schema, table: Table, column: Column) -> str:
        """The default of a column, if SQLite understands it."""
        if not column.default_value:
            return ""
        try:
            text = column.default_value
            if not self._same:
                text = translated_expression(self._database, schema, text, "sqlite")
            self._probe(f"CREATE TABLE {quoted(_PROBE)} (c DEFAULT ({text}))")
            self._run(f"EXPLAIN SELECT ({text})")  # only this looks its functions up
        except (NotTranslatable, apsw.Error) as error:
            name = f"of {schema.name}.{table.name}.{column.name}"
            sql = f"DEFAULT {column.default_value}"
            self.left_out.append(LeftOut("default", name, str(error), sql))
            return ""
        return f" DEFAULT ({text})"

    def _probe(self, statement: str) -> None:
        """Raise unless a definition works; leave nothing behind."""
        with self._undone():
            self._run(statement, _TABLE_ONLY)

    @contextmanager
    def _undone(self) -> Iterator[None]:
        self._db.execute("SAVEPOINT probe")
        try:
            # SQLite's own definitions may have texts between double quotation marks.
            with nullcontext() if self._same else self._only_names():
                yield
        finally:
            self._db.execute("ROLLBACK TO probe; RELEASE probe")

    @contextmanager
    def _only_names(self) -> Iterator[None]:
        """Let SQLite not take a quoted name that it does not find for a text."""
        settings = (apsw.SQLITE_DBCONFIG_DQS_DDL, apsw.SQLITE_DBCONFIG_DQS_DML)
        before = [self._db.config(setting, -1) for setting in settings]
        for setting in settings:
            self._db.config(setting, 0)
        try:
            yield
        finally:
            for setting, value in zip(settings, before, strict=True):
                self._db.config(setting, value)

    def _check_checks(self) -> None:
        """Say which checks of another product the rows break as SQLite reads them."""
        db: Any = self._db
        for table, check in self._strict:
            sql = f"SELECT 1 FROM {quoted(table)} WHERE NOT ({check.condition}) LIMIT 1"
            try:
                broken = db.execute(sql).fetchall()
            except apsw.Error:
                broken = [()]
            if broken:
                self.notes.append(
                    f"rows of {table} break the check {check.name} as SQLite reads it; it is "
                    "there, and new rows have to meet it"
                )

    def _column(self, schema: Schema, table: Table, column: Column) -> str:
        shape = shape_of(self._database, schema.name, column)
        original = self._declared.get(table.name, {}).get(column.name, column.type_original)
        if self._same and original is not None and isinstance(shape, Leaf):
            declared = original if _plain_declaration(original) else ""
        else:
            declared = sqlite_type(shape.type) if isinstance(shape, Leaf) else "TEXT"
            if " TO " in declared:  # INTERVAL DAY TO SECOND: a word of SQL within a type
                declared = quoted(declared)
        not_null = " NOT NULL" if column.nullable is False else ""
        default = self._default(schema, table, column)
        return f"{quoted(column.name)} {declared}{not_null}{default}"

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

    def _create_views(self, database: Database) -> None:
        """Make the views; those of other products in SQLite's SQL, if it understands that."""
        views = {(s.name, v.name): (s, v) for s in database.schemas for v in s.views}
        queries: dict[tuple[str, str], list[str]] = {}
        reasons: dict[tuple[str, str], str] = {}
        for key, (schema, view) in views.items():
            try:
                queries[key] = list(self._queries(database, schema, view))
            except NotTranslatable as error:
                reasons[key] = str(error)
        reasons |= make_in_turn(
            queries, lambda key, query: self._refusal_of_view(*views[key], query)
        )
        for key, reason in reasons.items():
            self.left_out.append(left_out_view(*views[key], reason))
        made = [f"{schema}.{name}" for schema, name in views if (schema, name) not in reasons]
        if made and not self._same:
            self.notes.append(translation_note(database, "SQLite", made))

    def _queries(self, database: Database, schema: Schema, view: View) -> Iterator[str]:
        if self._same and view.query_original:
            yield view.query_original
        yield translated_view(
            database, schema, view, "sqlite", lambda s, name: ("", self._name(s, name))
        )

    def _refusal_of_view(self, schema: Schema, view: View, query: str) -> str | None:
        """Make a view and try it; return why that fails."""
        name, columns = self._name(schema, view.name), _names(tuple(c.name for c in view.columns))
        head = f"{quoted(name)} ({columns})" if columns else quoted(name)
        own = self._same and query is view.query_original
        self._db.execute("SAVEPOINT making")
        try:
            with nullcontext() if own else self._only_names():
                self._run(f"CREATE VIEW {head} AS {query}")
                self._db.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 0").fetchall()
        except apsw.Error as error:
            self._db.execute("ROLLBACK TO making; RELEASE making")
            return str(error)
        self._db.execute("RELEASE making")
        return None

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
        open_lob: Callable[[bytes], BinaryIO],
        fillable: frozenset[int],
    ) -> None:
        self._width = len(shapes)
        self._kept = kept if len(kept) < len(shapes) else None
        self.open, self._fillable = open_lob, fillable
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

    def with_objects(
        self, batch: Batch
    ) -> Iterator[tuple[tuple[Any, ...], list[tuple[int, bytes]]]]:
        """Yield rows, and the columns in which large objects are yet to be written."""
        for row in batch.data.split(ROW)[:-1]:
            objects: list[tuple[int, bytes]] = []
            cells: list[Any] = []
            for k, cell in enumerate(row.split(CELL)):
                value = self._object(k, cell) if cell.startswith(REF) else self._value(k, cell)
                if isinstance(value, apsw.zeroblob):
                    objects.append((k, cell[1:]))
                cells.append(value)
            yield self._row(cells), objects

    def whole(self, batch: Batch) -> Iterator[tuple[Any, ...]]:
        """Yield rows with their large objects, one row at a time."""
        for row in batch.data.split(ROW)[:-1]:
            yield self._row([self._value(k, cell) for k, cell in enumerate(row.split(CELL))])

    def filled(self, row: tuple[Any, ...], objects: list[tuple[int, bytes]]) -> tuple[Any, ...]:
        """Return a row with its large objects in memory."""
        values = list(row)
        for k, reference in objects:
            values[self._kept.index(k) if self._kept else k] = self._read(reference)
        return tuple(values)

    def _row(self, cells: list[Any]) -> tuple[Any, ...]:
        for k, convert in self._convert:
            if cells[k] is not None and not isinstance(cells[k], (bytes, apsw.zeroblob)):
                cells[k] = convert(cells[k])
        return tuple(cells) if self._kept is None else tuple(cells[k] for k in self._kept)

    def _object(self, k: int, cell: bytes) -> Any:
        """Return an object, or room for it if it is too large to be held."""
        shape = self._shapes[k]
        if k not in self._fillable or (isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT):
            return self._value(k, cell)  # SQLite fills only bytes
        with self.open(cell[1:]) as stream:
            size: int | None = getattr(stream, "size", None)
            return stream.read() if size is None or size <= _PIECE else apsw.zeroblob(size)

    def _read(self, reference: bytes) -> bytes:
        with self.open(reference) as stream:
            return stream.read()

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
            return json.dumps(nested_value(value, shape), ensure_ascii=False)
        return value


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
