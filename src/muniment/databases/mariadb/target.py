"""Restoring into a server: tables, rows by LOAD DATA, then keys, then all that refers to them.

Definitions cannot be rolled back here. What was made is dropped again when the work fails, and
tables that are replaced wait under another name until all rows are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace as replace_table
from functools import partial
from typing import Any

from pymysql import err

from muniment.databases.mariadb.accounts import make_accounts
from muniment.databases.mariadb.address import Address, parse_address
from muniment.databases.mariadb.connection import Session, connect, quote, sentence, translated
from muniment.databases.mariadb.loading import LoadEncoder, Loader, LoadPiece, NewColumn
from muniment.databases.mariadb.progress import BOOK, Book, Kept, fingerprint
from muniment.databases.mariadb.refill import remake
from muniment.databases.mariadb.statement import parse_create
from muniment.databases.mariadb.tables import (
    LONGEST_NAME,
    NewTable,
    column_types,
    foreign_key_sql,
    orphan_sql,
    takes_cells,
)
from muniment.databases.mariadb.types import native_type, parse_native
from muniment.databases.naming import refuse_long_names
from muniment.errors import DatabaseError, UsageError
from muniment.finished import DATABASE, appearing
from muniment.sql.leftout import LeftOut, left_out_rights
from muniment.sql.model import Database, Leaf, Schema, Table, shape_of
from muniment.sql.original import split_original
from muniment.sql.stores import OpenLob
from muniment.sql.translate import NotTranslatable, translated_expression

__all__ = ["MariadbTarget", "create_target"]

_MODE = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
_PROBE = "muniment probe"
_ASIDE = "muniment_replaced_{}"


@contextmanager
def create_target(
    url: str, *, replace: bool = False, resume: bool = False, roles: bool = False
) -> Iterator[MariadbTarget]:
    """Open a server for writing; what was made is dropped again if the block fails.

    With ``resume`` complete tables stay, and a later run goes on behind them.
    """
    if replace and resume:
        raise UsageError("--replace and --resume exclude each other")
    address = parse_address(url)
    server = Address(
        address.url, None, address.host, address.port, address.socket, address.user,
        address.password, address.ssl, address.timeout,
    )  # fmt: skip
    session = connect(server, local_infile=True)
    target = MariadbTarget(session, address.database, replace, resume, roles)
    try:
        yield target
    except BaseException as error:
        if advice := target.advice():
            error.add_note(advice)
            raise
        left = target.undo()
        if left and isinstance(error, DatabaseError | UsageError):
            raise type(error)(f"{error}. {left}") from error
        raise
    finally:
        target.close()


class MariadbTarget:
    """A server that takes a database; make it with ``create_target``."""

    def __init__(
        self,
        session: Session,
        database: str | None,
        replace: bool,
        resume: bool = False,
        roles: bool = False,
    ) -> None:
        self._session, self._into, self._replace = session, database, replace
        self._resume, self._roles = resume, roles
        self._books: dict[str, Book] = {}
        self._kept: dict[tuple[str, str], Kept] = {}  # complete tables, of this run as well
        self.notes: list[str] = []
        self.left_out: list[LeftOut] = []
        self._tables: dict[tuple[str, str], NewTable] = {}
        self._columns: dict[tuple[str, str], tuple[NewColumn, ...]] = {}
        self._made: list[str] = []  # statements that undo what was made, last first
        self._aside: list[tuple[str, str]] = []  # replaced tables: their place, where they wait
        self._views_there: list[str] = []
        self._keeps_times = False
        self._check_names: dict[str, set[str]] = {}
        self._local = bool(session.value("SELECT @@local_infile"))
        self._packet = int(session.value("SELECT @@max_allowed_packet"))
        if not self._local:
            self.notes.append(
                "local_infile is off in the server: rows were inserted, which is slower"
            )

    def close(self) -> None:
        self._session.close()

    def define(self, database: Database) -> None:
        """Make databases, sequences and tables, as yet with no keys but the primary ones."""
        self._database = database
        product = (database.database_product or "").partition(" ")[0]
        self._same = product in ("MariaDB", "MySQL")
        self._product = product
        self._places = self._choose_places(database)
        refuse_long_names(database, self._session.product.name, LONGEST_NAME, len, "characters")
        with translated(self._session.address.url):
            self._settings()
            for schema in database.schemas:
                self._make_room(schema)
            for schema in database.schemas:
                remake(self, schema, "SEQUENCE")
            for schema, table in database.tables():
                self._define_table(schema, table)

    def completed(self, schema: Schema, table: Table) -> Table | None:
        """Return a table with its rows if an earlier run has completed it."""
        kept = self._kept.get((schema.name, table.name))
        return replace_table(table, rows=kept.rows) if kept and kept.rows is not None else None

    def keep(self, schema: Schema, table: Table) -> None:
        """Note that a table is complete."""
        if book := self._books.get(schema.name):
            own_words = self._tables[schema.name, table.name].original is not None
            book.keep(table.name, table.rows, own_words)
            self._kept[schema.name, table.name] = Kept(table.rows, own_words)

    def encoder(self, schema: Schema, table: Table) -> LoadEncoder:
        """Return what prepares batches for LOAD DATA; runs in worker processes."""
        return LoadEncoder(self._columns[schema.name, table.name], self._local)

    def write(
        self, schema: Schema, table: Table, pieces: Iterable[LoadPiece], open_lob: OpenLob
    ) -> int:
        """Load a table's rows; each is stored as it is, or the work stops."""
        made = self._tables[schema.name, table.name]
        columns = self._columns[schema.name, table.name]
        loader = Loader(self._session, made.place, made.where, columns)
        read = partial(open_lob, schema, table)
        with translated(made.where):
            if self._local:
                return loader.load(pieces, read)
            return loader.insert(pieces, read, self._packet)

    def finish(self, database: Database) -> None:
        """Add keys, routines, views, triggers and events."""
        with translated(self._session.address.url):
            for book in self._books.values():
                book.reopen()
            self._kept = {}
            for _, waiting in self._aside:
                self.run(f"DROP TABLE {waiting}")
            for view in self._views_there:
                self.run(f"DROP VIEW {view}")
            self._aside = []
            for made in self._tables.values():
                self._add_keys(made)
            for made in self._tables.values():
                self._add_foreign_keys(made)
            for made in self._tables.values():
                self._check_checks(made)
            self.run(f"SET sql_mode='{_MODE}', foreign_key_checks=1")
            for kind in ("ROUTINE", "VIEW", "TRIGGER", "EVENT", "DATABASE"):
                for schema in database.schemas:
                    remake(self, schema, kind)
            for book in self._books.values():
                book.close()
        if self.product and self._roles:
            make_accounts(self, database)
        else:
            reason = "nobody is given rights unless --roles asks for that"
            self.left_out += left_out_rights(database, reason)
        with appearing(DATABASE):
            self._made = []

    def advice(self) -> str:
        """What to do about complete tables that stay; nothing if there are none."""
        if not (self._resume and self._kept):
            return ""
        count = "1 table is" if len(self._kept) == 1 else f"{len(self._kept)} tables are"
        return (
            f"{count} complete and stay in the server; run the same command with --resume to go "
            f"on, or drop the tables and {BOOK} to give up"
        )

    def undo(self) -> str:
        """Remove what was made; return what could not be removed, in words."""
        if not self._made and not self._aside:
            return ""
        session = self._session
        left = []
        try:
            if not session.connection.open:
                session = self._session = connect(session.address)
            session.run("SET SESSION foreign_key_checks=0")
        except (DatabaseError, err.MySQLError, OSError):
            names = ", ".join(made.where for made in self._tables.values())
            return f"The server was lost: the tables made so far ({names}) are still there"
        for statement in reversed(self._made):
            try:
                session.run(statement)
            except (err.MySQLError, OSError) as error:
                left.append(f"{statement}: {error}")
        for place, waiting in self._aside:
            try:
                session.run(f"RENAME TABLE {waiting} TO {place}")
            except (err.MySQLError, OSError):
                left.append(f"{place} waits as {waiting}")
        self._made, self._aside = [], []
        return f"This could not be undone: {'; '.join(left)}" if left else ""

    # For those who remake things

    @property
    def product(self) -> str:
        """The product the archive came from, if it is one of the two; else nothing."""
        return self._product if self._same else ""

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier run has left something to go on from."""
        return bool(self._kept)

    @property
    def database(self) -> Database:
        return self._database

    @property
    def session(self) -> Session:
        return self._session

    def run(self, sql: str) -> None:
        self._session.run(sql)

    def refusal(self, sql: str) -> str | None:
        """Run a statement; return why that fails."""
        try:
            self._session.run(sql)
        except err.MySQLError as error:
            if not self._session.connection.open:
                raise
            return sentence(error)
        return None

    def undo_with(self, statement: str) -> None:
        """Remember what removes a thing that was made."""
        self._made.append(statement)

    def use(self, schema: Schema) -> None:
        """Let names without a database be those of a schema."""
        self.run(f"USE {quote(self.place(schema.name))}")

    def place(self, schema: str) -> str:
        """The database of a schema."""
        return self._places.get(schema, schema)

    # Definitions

    def _choose_places(self, database: Database) -> dict[str, str]:
        full = [s.name for s in database.schemas if s.tables or s.views or s.routines]
        if not self._into:
            return {}
        if len(full) > 1:
            raise UsageError(
                f"the archive has {len(full)} schemas, and each becomes a database of its own: "
                "leave the database out of the URL, and choose names with --schema-map"
            )
        return {schema.name: self._into for schema in database.schemas}

    def _settings(self) -> None:
        self.run(
            f"SET SESSION sql_mode='{_MODE}', foreign_key_checks=0,"
            " max_error_count=65535, time_zone='+00:00'"
        )
        self.refusal("SET SESSION check_constraint_checks=0")
        # Whether the times at which rows came can be given with them.
        self._keeps_times = self.refusal("SET SESSION system_versioning_insert_history=1") is None

    def _make_room(self, schema: Schema) -> None:
        """Make a schema's database, and see to what is in its way."""
        place = self.place(schema.name)
        rows = self._session.rows(
            "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA=%s",
            place,
        )
        there = {name.lower(): (name, kind) for name, kind in rows}
        coming = [t.name for t in schema.tables] + [v.name for v in schema.views]
        if self._resume:
            there = self._go_on(schema, there)
        clashing = [there[name.lower()] for name in coming if name.lower() in there]
        if clashing and not self._replace:
            names = ", ".join(name for name, _ in clashing[:5]) + (
                " …" if len(clashing) > 5 else ""
            )
            raise UsageError(
                f"the database {place} has {names} already; "
                "choose another database or add --replace"
            )
        exists = self._session.value(
            "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME=%s", place
        )
        if not exists:
            self.run(f"CREATE DATABASE {quote(place)} CHARACTER SET utf8mb4")
            self.undo_with(f"DROP DATABASE {quote(place)}")
        if self._resume and schema.name not in self._books:
            self._open_book(schema)
        for name, kind in clashing:
            if kind == "VIEW":
                self._views_there.append(quote(place, name))
                continue
            waiting = quote(place, _ASIDE.format(len(self._aside)))
            self.run(f"RENAME TABLE {quote(place, name)} TO {waiting}")
            self._aside.append((quote(place, name), waiting))

    def _go_on(
        self, schema: Schema, there: dict[str, tuple[str, str]]
    ) -> dict[str, tuple[str, str]]:
        """Return what is in the way besides what an earlier run of this restore left."""
        if BOOK not in there:
            return there
        earlier = self._open_book(schema)
        place = self.place(schema.name)
        for name, kept in earlier.items():
            there.pop(name.lower(), None)
            if kept.rows is None:
                self.run(f"DROP TABLE IF EXISTS {quote(place, name)}")
            else:
                self._kept[schema.name, name] = kept
        if self._kept:
            many = len(self._kept) > 1
            tables = f"{len(self._kept)} tables are those" if many else "1 table is that"
            self.notes.append(f"{tables} of an earlier run")
        return {name: found for name, found in there.items() if found[1] != "SEQUENCE"}

    def _open_book(self, schema: Schema) -> dict[str, Kept]:
        book = Book(self._session, self.place(schema.name), fingerprint(self._database))
        self._books[schema.name] = book
        self.undo_with(f"DROP TABLE IF EXISTS {quote(book.place, BOOK)}")
        return book.open()

    def _define_table(self, schema: Schema, table: Table) -> None:
        kept = self._kept.get((schema.name, table.name))
        if book := self._books.get(schema.name) if kept is None else None:
            book.begin(table.name)
        shapes = tuple(shape_of(self._database, schema.name, c) for c in table.columns)
        product = self._session.product
        place = quote(self.place(schema.name), table.name)
        made = self._own_words(schema, table, place, shapes)
        self.use(schema)
        reason: str | None = "there is none"
        if made and kept is None:
            reason = self.refusal(made.statement(product))
        elif made and kept:
            made.statement(product)  # which settles when its indexes are made
            reason = None if kept.own_words else "an earlier run could not"
        if made is None or reason is not None:
            types, texts = column_types(self._database, schema, table, product, self._same)
            if self.product and made is not None:
                self.notes.append(
                    f"{schema.name}.{table.name} was made from its description, not from its own "
                    f"definition: {reason}"
                )
            for name in texts:
                where = f"{schema.name}.{table.name}.{name}"
                self.notes.append(f"{where} became text: no type of the server holds its values")
            made = NewTable(schema, table, place, shapes, types)
            made.defaults = dict(self._defaults(made))
            made.checks = dict(self._checks(made))
            if kept is None:
                self._create_described(made)
        self.undo_with(f"DROP TABLE IF EXISTS {place}")
        self._tables[schema.name, table.name] = made
        self._columns[schema.name, table.name] = self._new_columns(made)

    def _own_words(
        self, schema: Schema, table: Table, place: str, shapes: tuple[Any, ...]
    ) -> NewTable | None:
        """The table's own definition, if it makes just the table that the archive describes."""
        _, original = split_original(table.description)
        if not original or not self._same or original.product != self._product:
            return None
        parsed = parse_create(original.statements[0])
        if parsed is None or list(parsed.columns) != [c.name for c in table.columns]:
            return None
        types = []
        for column, shape in zip(table.columns, shapes, strict=True):
            native = parse_native(column.type_original or "")
            fits = isinstance(shape, Leaf) and (native is None or takes_cells(native, shape.type))
            types.append("" if fits else native_type(shape.type, self._session.product.scale))
        return NewTable(schema, table, place, shapes, tuple(types), parsed)

    def _create_described(self, made: NewTable) -> None:
        product = self._session.product
        reason = self.refusal(made.statement(product))
        if reason is None:
            return
        key = made.table.primary_key
        without = self.refusal(made.statement(product, primary=False)) if key else reason
        if without is not None or key is None:
            raise DatabaseError(f"{made.where} cannot be made: {without}")
        self.left_out.append(LeftOut("primary key", f"of {made.where}", reason))

    def _defaults(self, made: NewTable) -> Iterator[tuple[str, str]]:
        for column, type_ in zip(made.table.columns, made.types, strict=True):
            text = column.default_value
            if not text:
                continue
            try:
                if not self._same:
                    text = translated_expression(self._database, made.schema, text, "mysql")
                reason = self._probe(f"{quote(column.name)} {type_} DEFAULT ({text})")
            except NotTranslatable as error:
                reason = str(error)
            if reason is None:
                yield column.name, text
            else:
                name, sql = f"of {made.where}.{column.name}", f"DEFAULT {column.default_value}"
                self.left_out.append(LeftOut("default", name, reason, sql))

    def _checks(self, made: NewTable) -> Iterator[tuple[str, str]]:
        columns = [
            f"{quote(c.name)} {t}" for c, t in zip(made.table.columns, made.types, strict=True)
        ]
        for check in made.table.check_constraints:
            condition = check.condition
            try:
                if not self._same:
                    condition = translated_expression(
                        self._database, made.schema, condition, "mysql"
                    )
                reason = self._probe(", ".join([*columns, f"CHECK ({condition})"]))
            except NotTranslatable as error:
                reason = str(error)
            if reason is None:
                yield self._free_check(made, check.name), condition
            else:
                name = f"{check.name} of {made.where}"
                sql = f"CHECK ({check.condition})"
                self.left_out.append(LeftOut("check constraint", name, reason, sql))

    def _free_check(self, made: NewTable, name: str) -> str:
        """A name for a check; MySQL's have to differ within a whole database."""
        if self._session.product.checks_by_table:
            return name
        taken = self._check_names.setdefault(made.schema.name, set())
        chosen = name if name not in taken else f"{made.table.name}_{name}"
        taken.add(chosen)
        return chosen

    def _probe(self, body: str) -> str | None:
        """Return why the server does not take the body of a table that an archive brings."""
        if parse_create(f"CREATE TABLE `x` ({body}\n) ENGINE=InnoDB") is None:
            return "it is not a definition alone"
        reason = self.refusal(f"CREATE TEMPORARY TABLE {quote(_PROBE)} ({body}\n)")
        if reason is None:
            self.run(f"DROP TEMPORARY TABLE {quote(_PROBE)}")
        return reason

    def _new_columns(self, made: NewTable) -> tuple[NewColumn, ...]:
        """Look at a table that was made: some of its columns may compute their values."""
        rows = self._session.rows(
            "SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, EXTRA, GENERATION_EXPRESSION FROM"
            " information_schema.COLUMNS WHERE TABLE_SCHEMA=%s AND TABLE_NAME=%s",
            self.place(made.schema.name),
            made.table.name,
        )
        facts = {}
        for name, type_, charset, extra, expression in rows:
            is_time = expression in ("ROW START", "ROW END")
            facts[name] = type_, charset, "" if is_time and self._keeps_times else extra or ""
            if is_time and not self._keeps_times:
                self.notes.append(
                    f"{made.where}.{name} says when the rows came into this server: it does not "
                    "take other times"
                )
        return made.new_columns(facts)

    # Keys

    def _add_keys(self, made: NewTable) -> None:
        clauses = made.later()
        if clauses and self.refusal(f"ALTER TABLE {made.place} {', '.join(clauses)}") is not None:
            for clause in clauses:
                if (reason := self.refusal(f"ALTER TABLE {made.place} {clause}")) is not None:
                    sql = f"ALTER TABLE {made.place} {clause}"
                    self.left_out.append(LeftOut("key", f"of {made.where}", reason, sql))

    def _add_foreign_keys(self, made: NewTable) -> None:
        for key in made.table.foreign_keys:
            parent = quote(self.place(key.referenced_schema), key.referenced_table)
            sql = f"ALTER TABLE {made.place} {foreign_key_sql(key, parent, made.original)}"
            try:
                broken = self._session.rows(orphan_sql(made.place, key, parent))
            except err.MySQLError as error:
                reason: str | None = sentence(error)
            else:
                reason = f"rows refer to rows that {key.referenced_table} does not have"
                reason = reason if broken else self.refusal(sql)
                if reason is not None and not broken:  # another table may have a key of that name
                    nameless = foreign_key_sql(key, parent, made.original, named=False)
                    if self.refusal(f"ALTER TABLE {made.place} {nameless}") is None:
                        reason = None
            if reason is not None:
                name = f"{key.name} of {made.where}"
                self.left_out.append(LeftOut("foreign key", name, reason, sql))

    def _check_checks(self, made: NewTable) -> None:
        """Say which checks of another product the rows break as this server reads them."""
        if self._same:
            return
        for name, condition in made.checks.items():
            sql = f"SELECT 1 FROM {made.place} WHERE NOT ({condition}) LIMIT 1"
            if self._session.rows(sql):
                self.notes.append(
                    f"rows of {made.where} break the check {name} as the server reads it; it is "
                    "there, and new rows have to meet it"
                )
