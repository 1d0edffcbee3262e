"""What of a database is taken: schemas, tables, columns, rows, order, views, named queries."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from muniment.errors import UsageError
from muniment.sql.model import Database, Schema, Table, View
from muniment.sql.original import split_original, with_note
from muniment.sql.types import PredefinedType

__all__ = ["Selection", "broken_view", "view_words"]

T = TypeVar("T")


def view_words(view: View) -> str:
    """Describe the table that a view's rows become: as a view, it is not in the archive."""
    query = f"The rows of a view: {view.query_original}"
    note = query if view.query_original else "The rows of a view."
    words, _ = split_original(view.description)
    return f"{words}\n{note}" if words else note


def broken_view(name: str) -> str:
    """What people should know of a view whose tables or columns are gone."""
    return f"the view {name} is broken in the database itself; only its text was archived"


def _none() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Selection:
    """A choice of tables and rows. Names are ``table`` or ``schema.table``, with * and ? allowed.

    ``views`` are archived as tables, by their rows; ``queries`` become tables of the first schema.
    """

    schemas: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=_none)
    order: Mapping[str, str] = field(default_factory=_none)
    views: tuple[str, ...] = ()
    queries: Mapping[str, str] = field(default_factory=_none)
    as_text: tuple[str, ...] = ()  # schema.table.column patterns

    def takes_schema(self, schema: str) -> bool:
        return not self.schemas or any(fnmatchcase(schema, p) for p in self.schemas)

    def takes(self, schema: str, table: str) -> bool:
        """Whether a base table is taken."""
        wanted = not self.tables or _matches(self.tables, schema, table)
        return self.takes_schema(schema) and wanted and not _matches(self.exclude, schema, table)

    def takes_view(self, schema: str, view: str) -> bool:
        """Whether the rows of a view are taken as a table."""
        return self.takes_schema(schema) and _matches(self.views, schema, view)

    def other_views(self, schema: Schema) -> tuple[View, ...]:
        """The views that stay views: tables and views share their names."""
        return tuple(v for v in schema.views if not self.takes_view(schema.name, v.name))

    def columns_of(self, schema: str, table: str) -> tuple[str, ...] | None:
        """The chosen columns of a table, or None for all."""
        return _pick(self.columns, schema, table)

    def where_of(self, schema: str, table: str) -> str | None:
        return _pick(self.where, schema, table)

    def order_of(self, schema: str, table: str) -> str | None:
        return _pick(self.order, schema, table)

    def wants_text(self, schema: str, table: str, column: str) -> bool:
        """Whether a column is to be archived as text whatever its type."""
        full = f"{schema}.{table}.{column}"
        return any(fnmatchcase(full, p) or fnmatchcase(full, f"{schema}.{p}") for p in self.as_text)

    def with_text(self, database: Database) -> Database:
        """Return the definitions with text as the type of the columns that are archived as such."""

        def chosen(schema: Schema, table: Table) -> Table:
            columns = tuple(
                replace(c, type=PredefinedType("CLOB"))
                if self.wants_text(schema.name, table.name, c.name)
                else c
                for c in table.columns
            )
            return replace(table, columns=columns)

        schemas = tuple(
            replace(s, tables=tuple(chosen(s, t) for t in s.tables)) for s in database.schemas
        )
        return replace(database, schemas=schemas)

    def check(self, database: Database, views: Iterable[tuple[str, str]]) -> None:
        """Refuse names that match nothing: a misspelt table must not vanish in silence."""
        tables = [(s.name, t.name) for s, t in database.tables()]
        known = tables + list(views)
        for pattern in (*self.tables, *self.columns, *self.where, *self.order):
            if not any(_matches((pattern,), *name) for name in known):
                raise UsageError(f"no table matches {pattern!r}; there are: {_list(tables)}")
        for name, condition in self.where.items():
            if not _is_one_condition(condition):
                raise UsageError(f"the condition for {name} is not one condition: {condition}")
        for pattern in self.views:
            if not any(_matches((pattern,), *name) for name in views):
                raise UsageError(f"no view matches {pattern!r}; there are: {_list(views)}")
        for pattern in self.schemas:
            if not any(fnmatchcase(s.name, pattern) for s in database.schemas):
                names = ", ".join(s.name for s in database.schemas)
                raise UsageError(f"no schema matches {pattern!r}; there are: {names}")
        columns = [f"{s.name}.{t.name}.{c.name}" for s, t in database.tables() for c in t.columns]
        if self.queries or self.views:
            return  # whose columns are not known yet
        for pattern in self.as_text:
            if not any(fnmatchcase(c, pattern) or fnmatchcase(c, f"*.{pattern}") for c in columns):
                raise UsageError(f"no column matches {pattern!r}; write SCHEMA.TABLE.COLUMN")

    def prune(self, database: Database) -> Database:
        """Return the database without what was not chosen, and without keys into it.

        Rows may refer to rows that a condition left out, so keys into such a table go as well.
        """
        schemas = tuple(
            self._prune_schema(s) for s in database.schemas if self.takes_schema(s.name)
        )
        kept = {(s.name, t.name): {c.name for c in t.columns} for s in schemas for t in s.tables}
        partial = {place for place in kept if self.where_of(*place)}
        schemas = tuple(
            replace(s, tables=tuple(_without_dangling_keys(t, kept, partial) for t in s.tables))
            for s in schemas
        )
        return replace(database, schemas=schemas)

    def _prune_schema(self, schema: Schema) -> Schema:
        tables = [t for t in schema.tables if self.takes(schema.name, t.name)]
        return replace(schema, tables=tuple(self._prune_table(schema.name, t) for t in tables))

    def _prune_table(self, schema: str, table: Table) -> Table:
        chosen = self.columns_of(schema, table.name)
        if chosen is not None:
            by_name = {c.name: c for c in table.columns}
            for name in chosen:
                if name not in by_name:
                    raise UsageError(f"{schema}.{table.name} has no column {name!r}")
            names = set(chosen)
            missing = [name for name in by_name if name not in names]
            key = table.primary_key
            table = replace(
                table,
                columns=tuple(by_name[name] for name in chosen),
                primary_key=key if key and names.issuperset(key.columns) else None,
                candidate_keys=tuple(
                    k for k in table.candidate_keys if names.issuperset(k.columns)
                ),
                foreign_keys=tuple(
                    k
                    for k in table.foreign_keys
                    if names.issuperset(r.column for r in k.references)
                ),
            )
            table = _without_columns(table, missing) if missing else table
        condition = self.where_of(schema, table.name)
        if condition:
            # An archive that holds part of a table has to say so to those who come later.
            table = _with_note(table, f"Only the rows where {condition} were archived.")
        return table


def _without_columns(table: Table, missing: Sequence[str]) -> Table:
    """Say which columns are not there, and leave out the checks that need them."""
    table = _with_note(table, f"Columns that were not archived: {', '.join(missing)}.")
    gone = {name.casefold() for name in missing}
    kept = []
    for check in table.check_constraints:
        if gone.isdisjoint(_names_in(check.condition)):
            kept.append(check)
        else:
            note = f"The check {check.name} ({check.condition}) needs columns that are not here."
            table = _with_note(table, note)
    return replace(table, check_constraints=tuple(kept))


_NAMES = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)"|`([^`]*)`|\[([^\]]*)\]|(\w+)""")


def _names_in(condition: str) -> Iterator[str]:
    """Yield all words of a condition that may be names of columns, without regard to case."""
    for match in _NAMES.finditer(condition):
        name = match[1].replace('""', '"') if match[1] else match[2] or match[3] or match[4]
        if name:
            yield name.casefold()


_QUOTED = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|/\*.*?\*/|\$(\w*)\$.*?\$\1\$""", re.DOTALL)


def _is_one_condition(text: str) -> bool:
    """Whether a text stays within the parentheses around it: what follows them is not looked at.

    >>> [_is_one_condition(text) for text in ("f(a) = ')'", "1) OR (2", "1); SELECT 2; --")]
    [True, False, False]
    """
    depth = 0
    for character in _QUOTED.sub("", text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0 or character == ";":
            return False
    return True


def _without_dangling_keys(
    table: Table, kept: Mapping[tuple[str, str], set[str]], partial: Container[tuple[str, str]]
) -> Table:
    keys = []
    for key in table.foreign_keys:
        home = key.referenced_schema, key.referenced_table
        if not kept.get(home, set()).issuperset(r.referenced for r in key.references):
            continue
        if home not in partial:
            keys.append(key)
            continue
        columns = ", ".join(reference.column for reference in key.references)
        note = f"{columns} referred to {'.'.join(home)}, of which not all rows were archived."
        words, _ = split_original(table.description)  # the original would bring the key back
        table = _with_note(replace(table, description=words), note)
    if len(keys) == len(table.foreign_keys):
        return table
    return replace(table, foreign_keys=tuple(keys))


def _with_note(table: Table, note: str) -> Table:
    return replace(table, description=with_note(table.description, note))


def _matches(patterns: Iterable[str], schema: str, table: str) -> bool:
    full = f"{schema}.{table}"
    return any(fnmatchcase(table, p) or fnmatchcase(full, p) for p in patterns)


def _pick(choices: Mapping[str, T], schema: str, table: str) -> T | None:
    for pattern, choice in choices.items():
        if _matches((pattern,), schema, table):
            return choice
    return None


def _list(names: Iterable[tuple[str, str]]) -> str:
    shown = [f"{schema}.{name}" for schema, name in names]
    return ", ".join(shown[:12]) + (" …" if len(shown) > 12 else "") if shown else "none"
