"""Firebird as a target: a new database, which stays only if the work succeeds.

A file appears under its name when it is complete; a database on a server is removed again if the
work fails. Keys, checks, code and comments follow the rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace as changed
from functools import partial
from typing import Any

from muniment.databases.firebird.catalogue import PRODUCT
from muniment.databases.firebird.connection import (
    DriverError,
    created,
    first_lines,
    parse_place,
    undo,
)
from muniment.databases.firebird.types import column_type
from muniment.databases.loading import Kept, RowLoader, read_lob
from muniment.errors import DatabaseError, UsageError
from muniment.files import settle
from muniment.sql.batch import Batch
from muniment.sql.flat import flat_names, flat_notes, has_several_schemas
from muniment.sql.leftout import (
    LeftOut,
    left_out_rights,
    left_out_routine,
    left_out_trigger,
    left_out_view,
)
from muniment.sql.model import (
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
)
from muniment.sql.names import quoted
from muniment.sql.original import Original, split_original
from muniment.sql.stores import OpenLob
from muniment.sql.translate import (
    NotTranslatable,
    make_in_turn,
    translated_expression,
    translated_view,
    translation_note,
)
from muniment.sql.types import PredefinedType

__all__ = ["FirebirdTarget", "create_target"]

_SQL = ""  # sqlglot does not speak Firebird's SQL, but plain SQL
_STATEMENTS = 200  # that are prepared at a time
_TEXT = PredefinedType("VARCHAR", 64)  # for numbers and times that no type of Firebird holds


@contextmanager
def create_target(url: str, *, replace: bool = False) -> Iterator[FirebirdTarget]:
    """Make a new database that stays only if the block succeeds."""
    place = parse_place(url)
    if replace:
        raise UsageError("--replace is not for Firebird; name another database, or remove it first")
    if place.file is None:
        with created(place) as connection:
            target = FirebirdTarget(connection)
            try:
                yield target
            except BaseException:
                undo(connection)
                with suppress(DriverError):
                    connection.drop_database()
                raise
        return
    path = place.file
    if path.exists():
        raise UsageError(f"{path} exists already; choose another name")
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; make it first")
    partial_file = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with created(changed(place, dsn=str(partial_file.absolute()))) as connection:
            yield FirebirdTarget(connection)
        with partial_file.open("rb") as stream:
            os.fsync(stream.fileno())
        settle(partial_file, path)
    finally:
        partial_file.unlink(missing_ok=True)


class FirebirdTarget:
    """A Firebird database in the making."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.notes: list[str] = []
        self.left_out: list[LeftOut] = []
        self._written: dict[tuple[str, str], list[str]] = {}  # the columns that take rows
        self._as_text: set[tuple[str, str, str]] = set()

    def define(self, database: Database) -> None:
        """Make sequences, exceptions and domains, then the tables, as yet without keys."""
        self._database = database
        self._same = (database.database_product or "").startswith(PRODUCT)
        self._prefixed = has_several_schemas(database)
        self._names = flat_names(database, by_case=True)
        self.notes += flat_notes(database, self._names)
        for schema in database.schemas:
            self._originals("definition", schema.name, schema.description)
            for user_type in schema.types:
                self._originals("domain", user_type.name, user_type.description)
        for schema, table in database.tables():
            self._create(schema, table)

    def encoder(self, schema: Schema, table: Table) -> Callable[[Iterable[Batch]], Kept]:
        """Return what a worker does with batches: nothing."""
        return Kept

    def write(self, schema: Schema, table: Table, pieces: Iterable[Kept], open_lob: OpenLob) -> int:
        """Insert the rows, and count what the database kept."""
        where = f"{schema.name}.{table.name}"
        chosen = self._written[schema.name, table.name]
        kept = [k for k, column in enumerate(table.columns) if column.name in chosen]
        place = self._place(schema, table.name)
        shapes = [self._stored(schema, table, column) for column in table.columns]
        load = RowLoader(where, table, shapes, partial(read_lob, open_lob, schema, table),
                         lists=self._same)  # fmt: skip
        rows = 0
        cursor = self._connection.cursor()
        try:
            insert = _Inserter(cursor, f"INSERT INTO {place} ({', '.join(map(quoted, chosen))})")
            for piece in pieces:
                for batch in piece.batches:
                    for row in load(batch, rows + 1):
                        insert([row[k] for k in kept])
                        rows += 1
            insert.close()
            cursor.execute(f"SELECT COUNT(*) FROM {place}")
            ((stored,),) = cursor.fetchall()
        except (DriverError, ValueError) as error:
            said = first_lines(error)
            raise DatabaseError(f"{where}, row {rows + 1}: Firebird says: {said}") from error
        finally:
            cursor.close()
        self._commit(where)
        if stored != rows:
            raise DatabaseError(f"{where} has {rows} rows, but the database kept {stored}")
        return rows

    def finish(self, database: Database) -> None:
        """Add keys, then what is written in Firebird's language, then comments."""
        for schema, table in database.tables():
            self._add_keys(schema, table)
        for schema, table in database.tables():
            for key in table.foreign_keys:
                self._add_foreign_key(schema, table, key)
        for schema, table in database.tables():
            self._restart_identity(schema, table)
            self._add_checks(schema, table)
            self._originals("original definition", table.name, table.description)
        self._make_code(database)
        for schema in database.schemas:
            self._comment(schema)
        self.left_out += left_out_rights(database, "rights are not restored to Firebird")

    # Definitions

    def _place(self, schema: Schema | str, table: str) -> str:
        return quoted(self._name(schema if isinstance(schema, str) else schema.name, table))

    def _name(self, schema: str, table: str) -> str:
        unknown = f"{schema}_{table}" if self._prefixed else table
        return self._names.get((schema, table), unknown)

    def _create(self, schema: Schema, table: Table) -> None:
        computed = self._computed(table)
        columns = [c for c in table.columns if c.name not in computed]
        self._written[schema.name, table.name] = [column.name for column in columns]
        place = self._place(schema, table.name)
        lines = [self._column(schema, table, column) for column in columns]
        reason = self._refusal(f"CREATE TABLE {place} ({', '.join(lines)})")
        if reason is not None:
            raise DatabaseError(f"{schema.name}.{table.name}: Firebird says: {reason}")

    def _computed(self, table: Table) -> set[str]:
        """The columns that compute their values, and come with the statements after the rows."""
        _, original = split_original(table.description)
        if not self._same or original is None:
            return set()
        head = f"ALTER TABLE {quoted(table.name)} ADD "
        return {
            c.name
            for c in table.columns
            for sql in original.statements
            if sql.startswith(f"{head}{quoted(c.name)} COMPUTED BY ")
        }

    def _column(self, schema: Schema, table: Table, column: Column) -> str:
        where = f"{schema.name}.{table.name}.{column.name}"
        shape = shape_of(self._database, schema.name, column)
        declared = column.type_original if self._same else None
        if declared is None or not self._is_type(declared):
            leaf = shape.type if isinstance(shape, Leaf) else PredefinedType("CLOB")
            declared = column_type(leaf)
            if declared is None:
                declared = str(_TEXT)
                self._as_text.add((schema.name, table.name, column.name))
                self.notes.append(f"{where} became text: no type of Firebird holds {leaf}")
        default = self._default(where, declared, column)
        not_null = " NOT NULL" if column.nullable is False else ""
        return f"{quoted(column.name)} {declared}{default}{not_null}"

    def _is_type(self, declared: str) -> bool:
        """Whether Firebird takes a type that came with an archive, and nothing else with it."""
        if ";" in declared or "--" in declared or declared.count("(") != declared.count(")"):
            return False
        if self._refusal(f'CREATE TABLE "muniment probe" (C {declared})') is not None:
            return False
        self._refusal('DROP TABLE "muniment probe"')
        return True

    def _default(self, where: str, declared: str, column: Column) -> str:
        text = column.default_value
        if not text:
            return ""
        probe = f'CREATE TABLE "muniment probe" (C {declared} DEFAULT {text})'
        reason = self._refusal(probe) if ";" not in text else "it is more than a value"
        if reason is None:
            self._refusal('DROP TABLE "muniment probe"')
            return f" DEFAULT {text}"
        self.left_out.append(LeftOut("default", f"of {where}", reason, f"DEFAULT {text}"))
        return ""

    def _stored(self, schema: Schema, table: Table, column: Column) -> Shape:
        """The shape in which a column's values are stored here."""
        if (schema.name, table.name, column.name) in self._as_text:
            return Leaf(_TEXT)
        return shape_of(self._database, schema.name, column)

    def _add_keys(self, schema: Schema, table: Table) -> None:
        keys: list[tuple[str, str, UniqueKey]] = []
        if table.primary_key:
            keys.append(("primary key", "PRIMARY KEY", table.primary_key))
        keys += [("candidate key", "UNIQUE", key) for key in table.candidate_keys]
        for kind, word, key in keys:
            columns = ", ".join(map(quoted, key.columns))
            body = f"{word} ({columns})"
            self._add(schema, table, kind, key.name, body)

    def _add_foreign_key(self, schema: Schema, table: Table, key: ForeignKey) -> None:
        columns = ", ".join(quoted(r.column) for r in key.references)
        referenced = ", ".join(quoted(r.referenced) for r in key.references)
        parent = self._place(key.referenced_schema, key.referenced_table)
        body = f"FOREIGN KEY ({columns}) REFERENCES {parent} ({referenced})"
        for event, action in (("DELETE", key.delete_action), ("UPDATE", key.update_action)):
            if action in ("CASCADE", "SET NULL", "SET DEFAULT"):
                body += f" ON {event} {action}"
        self._add(schema, table, "foreign key", key.name, body)

    def _add_checks(self, schema: Schema, table: Table) -> None:
        for check in table.check_constraints:
            condition = check.condition
            if not self._same:
                with suppress(NotTranslatable):
                    condition = translated_expression(self._database, schema, condition, _SQL)
            self._add(schema, table, "check constraint", check.name, f"CHECK ({condition})")

    def _add(self, schema: Schema, table: Table, kind: str, name: str, body: str) -> None:
        place = self._place(schema, table.name)
        sql = f"ALTER TABLE {place} ADD CONSTRAINT {quoted(name[:31])} {body}"
        reason = self._refusal(sql)
        if reason is not None and "already exists" in reason.lower():
            reason = self._refusal(f"ALTER TABLE {place} ADD {body}")  # with a name of its own
        if reason is not None:
            where = f"{name} of {schema.name}.{table.name}"
            self.left_out.append(LeftOut(kind, where, reason, sql))

    def _restart_identity(self, schema: Schema, table: Table) -> None:
        """Let new rows get numbers after those that are there."""
        for column in table.columns:
            if self._same and (column.type_original or "").endswith(" AS IDENTITY"):
                place, name = self._place(schema, table.name), quoted(column.name)
                cursor = self._connection.cursor()
                ((last,),) = cursor.execute(f"SELECT MAX({name}) FROM {place}").fetchall()
                cursor.close()
                if last is not None:
                    self._refusal(f"ALTER TABLE {place} ALTER {name} RESTART WITH {int(last)}")

    def _originals(self, kind: str, name: str, description: str | None) -> None:
        """Run the statements that stand in a description, if they are Firebird's."""
        _, original = split_original(description)
        for sql in original.statements if original and self._same else ():
            reason = self._own_refusal(original, sql)
            if reason is not None:
                self.left_out.append(LeftOut(kind, f"of {name}", reason, sql))

    def _own_refusal(self, original: Original | None, sql: str) -> str | None:
        if original is None or not self._same or self._prefixed:
            return "it is written for another product"
        if sql.split(None, 1)[0].upper() not in ("CREATE", "ALTER"):
            return "it is no definition"
        return self._refusal(sql)

    def _make_code(self, database: Database) -> None:
        """Make views, routines and triggers of Firebird, in whatever order they need each other."""
        waiting: dict[tuple[str, str], list[str]] = {}
        missing: dict[tuple[str, str], Callable[[str], LeftOut]] = {}
        for schema in database.schemas:
            for view in schema.views:
                name = ("view", self._name(schema.name, view.name))
                missing[name] = partial(left_out_view, schema, view)
                waiting[name] = list(self._view_ways(schema, view))
            for routine in schema.routines:
                name = ("routine", f"{schema.name}.{routine.specific_name}")
                missing[name] = partial(left_out_routine, schema, routine)
                waiting[name] = self._own_ways(routine.source)
            for table in schema.tables:
                for trigger in table.triggers:
                    place = self._name(schema.name, table.name)
                    name = ("trigger", f"{place}.{trigger.name}")
                    missing[name] = partial(left_out_trigger, schema, table, trigger)
                    waiting[name] = self._own_ways(trigger.triggered_action)
        reasons = make_in_turn(waiting, lambda _, sql: self._refusal(sql))
        for thing, reason in reasons.items():
            other = "it is written in the language of another product"
            self.left_out.append(missing[thing](reason if waiting[thing] else other))
        views = [name for kind, name in waiting if kind == "view" and (kind, name) not in reasons]
        if views and not self._same:
            self.notes.append(translation_note(database, PRODUCT, views))

    def _own_ways(self, sql: str | None) -> list[str]:
        fits = (
            self._same and not self._prefixed and (sql or "").lstrip().upper().startswith("CREATE")
        )
        return [sql] if fits and sql else []

    def _view_ways(self, schema: Schema, view: View) -> Iterator[str]:
        """Yield the statements that may make a view: its own, or one in plain SQL."""
        columns = ", ".join(quoted(column.name) for column in view.columns)
        head = f"CREATE VIEW {self._place(schema, view.name)} ({columns}) AS "
        if self._same and view.query_original and not self._prefixed:
            yield head + view.query_original
            return
        with suppress(NotTranslatable):
            yield head + translated_view(
                self._database, schema, view, _SQL, lambda s, n: ("", self._name(s, n))
            )

    def _comment(self, schema: Schema) -> None:
        for table in schema.tables:
            place = self._place(schema, table.name)
            words, _ = split_original(table.description)
            things = [(f"TABLE {place}", words)]
            things += [(f"COLUMN {place}.{quoted(c.name)}", c.description) for c in table.columns]
            for thing, text in things:
                if text:
                    literal = text.replace("'", "''")
                    sql = f"COMMENT ON {thing} IS '{literal}'"
                    reason = self._refusal(sql)
                    if reason is not None:
                        self.left_out.append(LeftOut("comment", thing, reason, sql))

    # Running SQL

    def _refusal(self, sql: str) -> str | None:
        """Run one definition and keep it; return why that fails."""
        try:
            self._connection.execute_immediate(sql)
            self._connection.commit()
        except DriverError as error:
            undo(self._connection)
            return first_lines(error)
        except (ValueError, UnicodeEncodeError) as error:
            return str(error)
        return None

    def _commit(self, where: str) -> None:
        try:
            self._connection.commit()
        except DriverError as error:
            raise DatabaseError(f"{where}: Firebird says: {first_lines(error)}") from error


class _Inserter:
    """Inserts rows with prepared statements.

    The driver hands over a NULL with the length of a text that is not there, and is refused; so
    each pattern of NULLs has a statement of its own.
    """

    def __init__(self, cursor: Any, head: str) -> None:
        self._cursor, self._head = cursor, head
        self._statements: dict[tuple[bool, ...], Any] = {}

    def __call__(self, row: list[Any]) -> None:
        pattern = tuple(value is None for value in row)
        if pattern not in self._statements:
            if len(self._statements) >= _STATEMENTS:
                self.close()
            marks = ", ".join("NULL" if null else "?" for null in pattern)
            self._statements[pattern] = self._cursor.prepare(f"{self._head} VALUES ({marks})")
        values = [value for value in row if value is not None]
        self._cursor.execute(self._statements[pattern], values)

    def close(self) -> None:
        """Give the statements back."""
        for statement in self._statements.values():
            statement.free()
        self._statements = {}
