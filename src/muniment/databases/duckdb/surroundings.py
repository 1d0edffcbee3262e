"""What belongs to a DuckDB file beside its tables: some has to come before them, the rest after.

Types, sequences and macros come first, since columns may need them; then indexes, views, triggers
and comments. What an archive brings as SQL is run one CREATE statement at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

import duckdb

from muniment.databases.duckdb.connection import first_line, is_one_create
from muniment.databases.duckdb.keys import Keys
from muniment.databases.duckdb.memory import Memory
from muniment.databases.duckdb.tables import names_sql
from muniment.databases.duckdb.types import parse_duck_type, quote, quote_text
from muniment.sql.leftout import LeftOut, left_out_routine, left_out_trigger, left_out_view
from muniment.sql.model import Database, Routine, Schema, Table, Trigger, View
from muniment.sql.original import split_original
from muniment.sql.translate import (
    NotTranslatable,
    make_in_turn,
    translated_view,
    translation_note,
)

__all__ = ["Surroundings"]

Thing = tuple[str, str]  # a kind and a name
Miss = Callable[[str], LeftOut]  # a reason to what is left out for it
_INDEX_COMMENT = re.compile(
    r"""COMMENT ON (?P<thing>INDEX (?:"(?:[^"]|"")*"\.)?"(?:[^"]|"")*") IS"""
    r""" '(?P<text>(?:[^']|'')*)'"""
)
# What a routine is for DuckDB where somebody comments on it.
_COMMENTED = {"SEQUENCE": "SEQUENCE", "MACRO": "MACRO", "TABLE MACRO": "MACRO TABLE"}


class Surroundings:
    """Makes what belongs to a file beside its tables.

    ``notes`` gets sentences on what became something else, ``left_out`` what could not be made.
    """

    def __init__(
        self, memory: Memory, keys: Keys, notes: list[str], left_out: list[LeftOut]
    ) -> None:
        self._memory, self._keys = memory, keys
        self._notes, self._left_out = notes, left_out
        self._made: set[Thing] = set()
        self._same_product = True

    def prepare(self, database: Database) -> None:
        """Make what columns may need, given the definitions of a DuckDB file."""
        for schema in database.schemas:
            self._make_types_and_sequences(schema)
        self._make_macros(database)

    def complete(self, database: Database, same_product: bool) -> None:
        """Make what needs the tables; ``same_product`` says that they come from DuckDB."""
        self._same_product = same_product
        self._make_indexes(database)
        self._make_views(database)
        self._make_triggers(database)
        self._comment(database)

    def _make_types_and_sequences(self, schema: Schema) -> None:
        for user_type in schema.types:
            words, original = split_original(user_type.description)
            duck = parse_duck_type((original.statements[0] if original else words) or "")
            if user_type.category == "distinct" and duck is not None:
                place = f"{quote(schema.name)}.{quote(user_type.name)}"
                self._try(
                    "type", f"{schema.name}.{user_type.name}", f"CREATE TYPE {place} AS {duck}"
                )
        for routine in schema.routines:
            if routine.characteristic == "SEQUENCE":
                reason, name = self._refusal(routine.source or ""), f"{schema.name}.{routine.name}"
                if reason is None:
                    self._made.add(("routine", name))
                else:
                    self._leave_out("sequence", name, reason, routine.source)

    def _make_indexes(self, database: Database) -> None:
        for schema, table in database.tables():
            _, original = split_original(table.description)
            for sql in original.statements if original and self._same_product else ():
                if sql.startswith("COMMENT ON INDEX "):
                    continue
                reason = self._refusal(sql, self._keys.make_index)
                if reason is not None:
                    self._leave_out("index", f"of {schema.name}.{table.name}", reason, sql)

    def _make_triggers(self, database: Database) -> None:
        """Make triggers, now that nothing sets them off any more; other products have their own."""
        for schema, table in database.tables():
            for trigger in table.triggers:
                reason: str | None = "its action is in the language of another product"
                if self._same_product:
                    reason = self._refusal(_trigger_sql(schema, table, trigger))
                if reason is not None:
                    self._left_out.append(left_out_trigger(schema, table, trigger, reason))

    def _comment(self, database: Database) -> None:
        for schema in database.schemas:
            things = [(f"SCHEMA {quote(schema.name)}", schema.description)]
            for kind, described in (("TABLE", schema.tables), ("VIEW", self._made_views(schema))):
                for table in described:
                    place = f"{quote(schema.name)}.{quote(table.name)}"
                    things.append((f"{kind} {place}", table.description))
                    things += [
                        (f"COLUMN {place}.{quote(column.name)}", column.description)
                        for column in table.columns
                    ]
            if self._same_product:
                things += self._comments_of_duckdb(schema)
            for thing, description in things:
                text, _ = split_original(description)
                if text:
                    self._try("comment", thing, f"COMMENT ON {thing} IS {quote_text(text)}")

    def _comments_of_duckdb(self, schema: Schema) -> Iterator[tuple[str, str | None]]:
        """Yield things that only this product describes, with their comments."""
        for routine in schema.routines:
            kind = _COMMENTED.get(routine.characteristic or "")
            if kind and ("routine", f"{schema.name}.{routine.specific_name}") in self._made:
                yield f"{kind} {quote(schema.name)}.{quote(routine.name)}", routine.description
        for user_type in schema.types:
            if split_original(user_type.description)[1]:
                place = f"{quote(schema.name)}.{quote(user_type.name)}"
                yield f"TYPE {place}", user_type.description
        for table in schema.tables:
            _, original = split_original(table.description)
            for sql in original.statements if original else ():
                if found := _INDEX_COMMENT.fullmatch(sql):
                    yield found["thing"], found["text"].replace("''", "'")

    def _made_views(self, schema: Schema) -> list[View]:
        return [v for v in schema.views if ("view", f"{schema.name}.{v.name}") in self._made]

    def _make_macros(self, database: Database) -> None:
        """Make the macros that need no table: columns may be computed by them."""
        sources = {
            (schema.name, routine.specific_name): [routine.source or ""]
            for schema in database.schemas
            for routine in schema.routines
            if routine.characteristic != "SEQUENCE"
        }
        waiting = make_in_turn(sources, lambda _, sql: self._refusal(sql))
        self._made |= {
            ("routine", f"{home}.{name}") for home, name in sources.keys() - waiting.keys()
        }

    def _make_views(self, database: Database) -> None:
        """Make macros and views; as they may need one another, try until nothing moves."""
        waiting = dict(self._creates(database))
        reasons = make_in_turn(
            {thing: ways for thing, (_, ways) in waiting.items()},
            lambda _, sql: self._refusal(sql),
        )
        for thing, reason in reasons.items():
            self._left_out.append(waiting[thing][0](reason))
        self._made |= set(waiting) - set(reasons)
        views = [name for kind, name in waiting if (kind, name) in self._made and kind == "view"]
        if views and not self._same_product:
            self._notes.append(translation_note(database, "DuckDB", views))

    def _creates(self, database: Database) -> Iterator[tuple[Thing, tuple[Miss, list[str]]]]:
        """Yield macros and views with what to say of a failure and the statements to try."""
        for schema in database.schemas:
            for routine in schema.routines:
                name, missed = routine.specific_name, partial(left_out_routine, schema, routine)
                if not self._same_product:
                    self._left_out.append(missed("it is written for another product"))
                elif self._is_missing(schema, routine):
                    yield ("routine", f"{schema.name}.{name}"), (missed, [routine.source or ""])
            for view in schema.views:
                missing = partial(left_out_view, schema, view)
                try:
                    ways = list(self._view_ways(database, schema, view))
                except NotTranslatable as error:
                    self._left_out.append(missing(str(error)))
                else:
                    yield ("view", f"{schema.name}.{view.name}"), (missing, ways)

    def _is_missing(self, schema: Schema, routine: Routine) -> bool:
        """Whether a macro is still to be made."""
        thing = "routine", f"{schema.name}.{routine.specific_name}"
        return routine.characteristic != "SEQUENCE" and thing not in self._made

    def _view_ways(self, database: Database, schema: Schema, view: View) -> Iterator[str]:
        """Yield the statements that may make a view, the best one first."""
        place = f"{quote(schema.name)}.{quote(view.name)}"
        columns = f"({names_sql(column.name for column in view.columns)})"
        head = f"CREATE VIEW {place} {columns if view.columns else ''} AS "
        if self._same_product and view.query_original:
            yield head + view.query_original
        known = {each.name for each in database.schemas}
        yield head + translated_view(
            database, schema, view, "duckdb", lambda s, n: (s if s in known else schema.name, n)
        )

    # Running SQL

    def _try(self, kind: str, name: str, sql: str) -> None:
        """Run SQL of our own; if that fails, say so."""
        reason = self._failure(sql)
        if reason is not None:
            self._leave_out(kind, name, reason, sql)

    def _refusal(self, sql: str, make: Callable[[str], str | None] | None = None) -> str | None:
        """Run a CREATE statement that an archive brought; return why that fails."""
        return (
            (make or self._failure)(sql) if is_one_create(sql) else "It is not one CREATE statement"
        )

    def _failure(self, sql: str) -> str | None:
        try:
            self._memory.connection.execute(sql)
        except duckdb.Error as error:
            return first_line(error)
        return None

    def _leave_out(self, kind: str, name: str, reason: str, sql: str | None) -> None:
        self._left_out.append(LeftOut(kind, name, reason.rstrip("."), sql or None))


def _trigger_sql(schema: Schema, table: Table, trigger: Trigger) -> str:
    event = f"{trigger.action_time} {trigger.trigger_event}"
    place = f"{quote(schema.name)}.{quote(table.name)}"
    return f"CREATE TRIGGER {quote(trigger.name)} {event} ON {place} {trigger.triggered_action}"
