"""SQLite as a target: a new file, loaded in one transaction, that appears when it is complete."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import apsw

from muniment.databases.sqlite import connect_sqlite, translated
from muniment.databases.sqlite_catalogue import read_catalogue
from muniment.databases.sqlite_fitting import Batches, Fitter, Misfit
from muniment.databases.sqlite_inserting import Inserter
from muniment.databases.sqlite_keys import KeyJudge
from muniment.databases.sqlite_loading import Loader, converter
from muniment.databases.sqlite_types import sqlite_type
from muniment.errors import DatabaseError, UsageError
from muniment.files import refuse_closed, refuse_existing, refuse_losses, settle
from muniment.finished import appearing
from muniment.sql.classes import Classes, classes_in
from muniment.sql.flat import flat_names, flat_notes, has_several_schemas
from muniment.sql.leftout import (
    LeftOut,
    left_out_rights,
    left_out_routine,
    left_out_trigger,
    left_out_view,
)
from muniment.sql.model import (
    UNKNOWN_COLUMNS,
    CheckConstraint,
    Column,
    Database,
    ForeignKey,
    Leaf,
    Schema,
    Table,
    UniqueKey,
    View,
    shape_of,
)  # fmt: skip
from muniment.sql.names import quoted
from muniment.sql.original import beside_table, split_original
from muniment.sql.selection import Selection, lacks_columns
from muniment.sql.stores import OpenLob
from muniment.sql.translate import (
    NotTranslatable,
    make_in_turn,
    translated_expression,
    translated_view,
    translation_note,
)
from muniment.sql.types import Kind, PredefinedType

__all__ = ["SqliteTarget", "create_target"]

_PROBE = "muniment probe"  # a table that is never kept
_SEQUENCE = re.compile(r"UPDATE sqlite_sequence SET seq = (?P<last>-?[0-9]{1,19}) WHERE .*", re.S)
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE\b", re.IGNORECASE)
_TRIGGER = re.compile(r"\s*CREATE\s+(?:TEMP(?:ORARY)?\s+)?TRIGGER\b", re.IGNORECASE)


@contextmanager
def create_target(path: Path, *, replace: bool = False) -> Iterator[SqliteTarget]:
    """Open a new database that appears at ``path`` only if the block succeeds."""
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already; choose another name or add --replace")
    if not path.exists():
        refuse_existing(path)
    refuse_closed(path)
    there = _tables_and_views(path) if path.exists() else set()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    db = connect_sqlite(partial, write=True)
    try:
        yield SqliteTarget(db, path, there)
        db.close(True)
        if not replace:
            refuse_existing(path)  # somebody may have been quicker
        with appearing(path):
            for rest in ("-wal", "-shm", "-journal"):  # of a file that is replaced, not of this
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


class SqliteTarget:
    """An SQLite file in the making."""

    def __init__(self, db: apsw.Connection, path: Path, there: set[str]) -> None:
        self._db, self._path, self._there = db, path, there
        self.notes: list[str] = []
        self.left_out: list[LeftOut] = []
        self._later: list[tuple[str, str]] = []  # the table, and the statement for it
        self._strict: list[tuple[str, CheckConstraint]] = []  # checks of other products
        self._last_numbers: dict[str, int] = {}  # that AUTOINCREMENT has given
        self._declared: dict[str, dict[str, str]] = {}  # as tables' own definitions have them

    @property
    def bytes_written(self) -> int:
        """The size of the database so far."""
        return Path(self._db.filename).stat().st_size

    def define(self, database: Database) -> None:
        """Create the tables; indexes, triggers and views follow the rows."""
        self._database = database
        self._same = (database.database_product or "").startswith("SQLite")
        self._declaring = self._same and any(map(_has_declarations, database.tables()))
        self._prefixed = has_several_schemas(database)
        self._names = flat_names(database)
        self.notes += flat_notes(database, self._names)
        refuse_losses(self._path, self._there, set(self._names.values()))
        # The file is new, so its journal stays empty; rolling back a refused definition needs one.
        for pragma in ("journal_mode=MEMORY", "synchronous=OFF", "foreign_keys=OFF"):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        self._ignore_checks(not self._same)
        self._db.execute("BEGIN")
        for schema, table in database.tables():
            self._create(schema, table)
        # Asked once: SQLite goes through all tables to answer for one.
        rows = self._db.execute("PRAGMA table_list").fetchall()
        self._without_rowid = {str(row[1]).lower() for row in rows if row[4]}
        self._strict_tables = {str(row[1]).lower() for row in rows if row[5]}

    def encoder(self, schema: Schema, table: Table) -> Fitter:
        """Return what a worker does with batches: look for values that are not of their type."""
        shapes = [shape_of(self._database, schema.name, column) for column in table.columns]
        types = tuple(
            shape.type if isinstance(shape, Leaf) and not self._told(column) else None
            for shape, column in zip(shapes, table.columns, strict=True)
        )
        filled = (k for k, column in enumerate(table.columns) if column.nullable is False)
        declared = self._declarations(self._name(schema, table.name))
        return Fitter(types, declared, frozenset(filled))

    def _declarations(self, name: str) -> tuple[str, ...]:
        """How the columns of a table are declared; none for those that keep any value as it is."""
        db: Any = self._db
        strict = name.lower() in self._strict_tables
        declared = [row[2] for row in db.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()]
        # ANY does so in strict tables alone.
        return tuple("" if strict and d.upper() == "ANY" else d for d in declared)

    def write(
        self, schema: Schema, table: Table, pieces: Iterable[Batches], open_lob: OpenLob
    ) -> int:
        """Insert the rows."""
        rows, insert = 0, self._inserter(schema, table, open_lob)
        odd: Misfit | None = None
        for piece in pieces:
            if misfit := piece.misfit and replace(piece.misfit, row=rows + piece.misfit.row):
                if not misfit.kept:
                    raise self._unfit(schema, table, misfit)
                odd = odd or misfit
            for batch in piece.batches:
                insert(batch, rows)
                rows += batch.rows
        if insert.ignoring:
            made = self._name(schema, table.name)
            self._strict += [(made, check) for check in table.check_constraints]
            self._ignore_checks(not self._same)
        self._expect(schema, table, rows)
        if odd:
            column, text = table.columns[odd.column], _shown(odd.text)
            self.notes.append(
                f"{schema.name}.{table.name}.{column.name}, row {odd.row}: {text} is no "
                f"{column.type}; SQLite keeps it as text, and muniment validate shows all others"
            )
        return rows

    def _inserter(self, schema: Schema, table: Table, open_lob: OpenLob) -> Inserter:
        name, db = self._name(schema, table.name), cast(Any, self._db)
        info = db.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        # Generated columns compute their own values.
        kept = [cid for cid, _, _, _, _, _, hidden in info if hidden not in (2, 3)]
        shapes = [shape_of(self._database, schema.name, column) for column in table.columns]
        converters = [
            told.value if (told := self._told(column)) else converter(shape, declared)
            for shape, declared, column in zip(
                shapes, self._declarations(name), table.columns, strict=True
            )
        ]
        columns = [row[1] for row in info]
        fillable = self._fillable(name, columns)
        load = Loader(shapes, converters, kept, partial(open_lob, schema, table), fillable)
        ignore = self._ignore_checks if self._same else None
        broken = any(told.has_broken for c in table.columns if (told := self._told(c)))
        where = f"{schema.name}.{table.name}"
        return Inserter(self._db, where, name, columns, kept, load, ignore, broken=broken)

    def _ignore_checks(self, ignored: bool) -> None:
        """Rows come before verdicts: a check that they may break is tested when all are there."""
        state = "ON" if ignored else "OFF"
        self._db.execute(f"PRAGMA ignore_check_constraints={state}").fetchall()

    @staticmethod
    def _unfit(schema: Schema, table: Table, misfit: Misfit) -> DatabaseError:
        column = table.columns[misfit.column]
        text = _shown(misfit.text)
        textual = isinstance(column.type, PredefinedType) and column.type.kind is Kind.TEXT
        return DatabaseError(
            f"{schema.name}.{table.name}.{column.name}, row {misfit.row}: "
            + (
                f"a column declared {column.type_original} would change the text {text}; "
                "restore the archive with --sql-types"
                if textual
                else f"{text} is no {column.type} that SQLite can keep; "
                "muniment validate shows what is wrong with the archive"
            )
        )

    def finish(self, database: Database) -> None:
        """Make what follows the rows, and commit."""
        self._set_last_numbers()
        self._run_later()
        self._check_checks()
        self._create_views(database)
        self._run_later()  # triggers of views
        for schema in database.schemas:
            for routine in schema.routines:
                self.left_out.append(left_out_routine(schema, routine, "SQLite has no routines"))
        self.left_out += left_out_rights(database, "SQLite has no users")
        self._db.execute("COMMIT")
        self._check_foreign_keys()
        self._db.execute("PRAGMA synchronous=FULL").fetchall()
        with self._db:
            self._db.execute("PRAGMA user_version=0").fetchall()

    def _run_later(self) -> None:
        """Run what waited; what fails is left out."""
        for table, statement in self._later:
            try:
                self._run(statement)
            except apsw.Error as error:
                kind = "trigger" if _TRIGGER.match(statement) else "index"
                self.left_out.append(LeftOut(kind, f"of {table}", str(error), statement))
        self._later.clear()

    def _set_last_numbers(self) -> None:
        """Let AUTOINCREMENT go on from where it was, beyond rows that were deleted."""
        db: Any = self._db
        if not db.execute("SELECT 1 FROM sqlite_schema WHERE name='sqlite_sequence'").fetchall():
            return
        for table, last in self._last_numbers.items():
            db.execute("DELETE FROM sqlite_sequence WHERE name=?", (table,))
            db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))

    def _fillable(self, name: str, columns: list[str]) -> frozenset[int]:
        """Which columns SQLite lets be filled piece by piece: not indexed, in rowid tables.

        Nor may others of the table be computed.
        """
        db: Any = self._db
        info = db.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        if name.lower() in self._without_rowid or any(row[6] in (2, 3) for row in info):
            return frozenset()
        indexed = {
            column
            for index in db.execute(f"PRAGMA index_list({quoted(name)})").fetchall()
            for _, _, column in db.execute(f"PRAGMA index_info({quoted(index[1])})").fetchall()
        }
        return frozenset(k for k, column in enumerate(columns) if column not in indexed)

    def _check_foreign_keys(self) -> None:
        """Say which rows refer to nothing; a key that leads nowhere is not in the way of others."""
        if not any(table.foreign_keys or table.description for _, table in self._database.tables()):
            return
        catalogue = read_catalogue(self._db, self._path, Selection())
        judge = KeyJudge(self._db, catalogue, Selection(), {})
        for child, parent in judge.orphans(catalogue.database):
            if parent is None:
                self._ask_for_orphans(child)
            else:
                self.notes.append(f"rows of {child} refer to rows that {parent} does not have")

    def _ask_for_orphans(self, table: str) -> None:
        db: Any = self._db
        sql = "SELECT DISTINCT parent FROM pragma_foreign_key_check(?)"
        try:
            for (parent,) in db.execute(sql, (table,)).fetchall():
                self.notes.append(f"rows of {table} refer to rows that {parent} does not have")
        except apsw.SQLError as error:
            self.notes.append(f"foreign keys of {table} cannot be checked: SQLite says: {error}")

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

    def _told(self, column: Column) -> Classes | None:
        """The classes of a column of SQLite that is text in the archive."""
        return classes_in(column.description) if self._same else None

    def _name(self, schema: Schema | str, table: str) -> str:
        schema_name = schema if isinstance(schema, str) else schema.name
        unknown = f"{schema_name}_{table}" if self._prefixed else table
        return self._names.get((schema_name, table), unknown)

    def _create(self, schema: Schema, table: Table) -> None:
        _, original = split_original(table.description)
        known = original and original.product == "SQLite" and self._same
        known = known and self._name(schema, table.name) == table.name
        statements = original.statements if original and known else ()
        if statements and self._create_original(table, statements):
            return
        self._run(self._statement(schema, table), _TABLE_ONLY)
        for column in table.columns:
            self._name_nested(schema, table, column)
        for statement in beside_table(statements):
            self._take_later(table.name, statement)
        for trigger in () if any(map(_TRIGGER.match, statements)) else table.triggers:
            reason = self._reason_without(table)
            self.left_out.append(left_out_trigger(schema, table, trigger, reason))

    def _name_nested(self, schema: Schema, table: Table, column: Column) -> None:
        """Say so if values of a column become texts: a comparison will."""
        if not isinstance(shape_of(self._database, schema.name, column), Leaf):
            place = f"{schema.name}.{table.name}.{column.name}"
            reason = "SQLite has no lists and structures, so its values are JSON"
            self.left_out.append(LeftOut("type", f"of {place}", reason))

    def _reason_without(self, table: Table) -> str:
        """Say why a table comes without its triggers."""
        if not self._same:
            return "its action is in the language of another product"
        if lacks_columns(table):
            return "columns of its table were not archived, so its own statements were not taken"
        return "its table was not made by its own statements"

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
            self._take_later(table.name, statement)
        return True

    def _take_later(self, table: str, statement: str) -> None:
        """Keep a statement that came with a table for when its rows are there."""
        if found := _SEQUENCE.fullmatch(statement):
            self._last_numbers[table] = int(found["last"])
        elif _VIRTUAL.match(statement):
            reason = "its rows are in an ordinary table"
            self.left_out.append(LeftOut("virtual table", f"main.{table}", reason, statement))
        elif statement.split(None, 1)[:1] and statement.split(None, 1)[0].upper() == "CREATE":
            self._later.append((table, statement))

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
        """Say which checks the rows break; those of another product as SQLite reads them."""
        db: Any = self._db
        for table, check in self._strict:
            sql = f"SELECT 1 FROM {quoted(table)} WHERE NOT ({check.condition}) LIMIT 1"
            try:
                broken = db.execute(sql).fetchall()
            except apsw.Error:
                broken = [()]
            if broken:
                reading = "" if self._same else " as SQLite reads it"
                self.notes.append(
                    f"rows of {table} break the check {check.name}{reading}; it is "
                    "there, and new rows have to meet it"
                )

    def _column(self, schema: Schema, table: Table, column: Column) -> str:
        shape = shape_of(self._database, schema.name, column)
        original = self._declared.get(table.name, {}).get(column.name, column.type_original)
        if self._same and original is not None and isinstance(shape, Leaf):
            declared = original if _plain_declaration(original) else ""
        elif self._told(column):
            declared = ""  # each value stays what it is
        elif self._declaring and isinstance(shape, Leaf) and shape.type in _BY_CONTENT:
            declared = ""  # as it was: computed by a view or query, say
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
        """Make a view and try it; return why that fails. One that was broken comes back so."""
        name, columns = self._name(schema, view.name), _names(tuple(c.name for c in view.columns))
        own = self._same and query is view.query_original
        broken = own and view.columns == UNKNOWN_COLUMNS
        head = f"{quoted(name)} ({columns})" if columns and not broken else quoted(name)
        self._db.execute("SAVEPOINT making")
        try:
            with nullcontext() if own else self._only_names():
                self._run(f"CREATE VIEW {head} AS {query}")
                if not broken:
                    self._db.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 0").fetchall()
        except apsw.Error as error:
            self._db.execute("ROLLBACK TO making; RELEASE making")
            return str(error)
        self._db.execute("RELEASE making")
        if broken:
            self.notes.append(f"the view {name} came back broken, as it was archived")
        self._take_triggers(view)
        return None

    def _take_triggers(self, view: View) -> None:
        _, original = split_original(view.description)
        if original and original.product == "SQLite" and self._same and not self._prefixed:
            for statement in original.statements:
                self._take_later(view.name, statement)


# The types of columns that have no declaration.
_BY_CONTENT = frozenset(map(PredefinedType, ("BIGINT", "DOUBLE PRECISION", "BLOB", "CLOB")))


def _has_declarations(place: tuple[Schema, Table]) -> bool:
    """Whether a table says what it was in SQLite: --sql-types takes that away from all of them."""
    table = place[1]
    _, original = split_original(table.description)
    return original is not None or any(column.type_original for column in table.columns)


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


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:40]}…")
