"""What of a database is taken: schemas, tables, columns, rows, order, views, named queries."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import TypeVar

from muniment.errors import UsageError
from muniment.sql.chosen import (
    is_like,
    matches,
    meant,
    refuse_twice,
    refuse_unmatched,
    refuse_views,
    undescribable,
)
from muniment.sql.model import Database, Schema, Table, View
from muniment.sql.original import notes_in, split_original, with_note, without_tables
from muniment.sql.types import PredefinedType

__all__ = ["Selection", "broken_view", "lacks_columns", "query_words", "view_words"]

T = TypeVar("T")
_LACKING = "Columns that were not archived: "


def view_words(view: View) -> str:
    """Describe the table that a view's rows become: as a view, it is not in the archive."""
    query = f"The rows of a view: {view.query_original}"
    words, _ = split_original(view.description)
    return with_note(words, query if view.query_original else "The rows of a view.")


def query_words(query: str) -> str:
    """Describe the table that the rows of a query become."""
    return with_note(None, f"The rows of a query: {query}")


def lacks_columns(table: Table) -> bool:
    """Whether a table says that some of its columns were not archived."""
    return any(note.startswith(_LACKING) for note in notes_in(table.description))


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
    as_text_if_there: tuple[str, ...] = ()  # the same, for columns that need not exist
    # What people describe: "schema", "table" or "column", and its name. It chooses nothing.
    described: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def takes_schema(self, schema: str) -> bool:
        return not self.schemas or any(is_like(schema, p) for p in self.schemas)

    def takes(self, schema: str, table: str) -> bool:
        """Whether a base table is taken."""
        wanted = not self.tables or matches(self.tables, schema, table)
        return self.takes_schema(schema) and wanted and not matches(self.exclude, schema, table)

    def takes_view(self, schema: str, view: str) -> bool:
        """Whether the rows of a view are taken as a table."""
        return self.takes_schema(schema) and matches(self.views, schema, view)

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
        patterns = (*self.as_text, *self.as_text_if_there)
        return any(_is_column(pattern, schema, table, column) for pattern in patterns)

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

    def check(
        self,
        database: Database,
        views: Sequence[tuple[str, str]],
        left: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Refuse names that match nothing: a misspelt table must not vanish in silence.

        ``left`` are tables that are not in ``database``: not wanted, or not to be read.
        """
        for pattern in self.schemas:
            if not any(is_like(s.name, pattern) for s in database.schemas):
                hint = meant(pattern, [s.name for s in database.schemas])
                raise UsageError(f"no schema matches {pattern!r}; {hint}")
        here = [(s.name, t.name) for s, t in database.tables()]
        there = [*here, *left]
        refuse_views(self.exclude, there, views, "only tables can be excluded")
        as_tables = [view for view in views if self.takes_view(*view)]
        refuse_views(self.tables, [*there, *as_tables], views, "--view archives the rows of views")
        unwanted = [name for name in left if not self.takes(*name)]
        refuse_unmatched("table", self.tables, [*here, *as_tables, *unwanted])
        known = [*there, *views]
        self._refuse_for_queries(known)
        named = (*self.exclude, *self.columns, *self.where, *self.order)
        refuse_unmatched("table", named, known)
        refuse_unmatched("view", self.views, views)
        for what, choices in (
            ("columns", self.columns), ("a condition", self.where), ("an order", self.order)
        ):  # fmt: skip
            refuse_twice(what, choices, known)
        self.refuse_several()
        self._refuse_nothing(here)
        self._check_text(database)
        self._check_described(database, left)

    def refuse_several(self) -> None:
        """Refuse what does not stay within the statement that it becomes a part of."""
        for what, choices in (("condition", self.where), ("order", self.order)):
            for name, text in choices.items():
                if not _is_one_condition(text):
                    raise UsageError(f"the {what} for {name} is not one {what}: {text}")

    def _refuse_for_queries(self, known: Sequence[tuple[str, str]]) -> None:
        """Refuse to choose rows and columns of a query, which does so itself."""
        for option, choices, advice in (
            ("--where", self.where, "put the condition into the query"),
            ("--order", self.order, "put ORDER BY into the query"),
            ("--columns", self.columns, "name the columns in the query"),
        ):
            for pattern in choices:
                name = pattern.rpartition(".")[2]
                if name in self.queries and not any(matches((pattern,), *k) for k in known):
                    raise UsageError(f"{option} {pattern}: that is a query of --query; {advice}")

    def _refuse_nothing(self, tables: Sequence[tuple[str, str]]) -> None:
        """Refuse to take no table at all of those that there are."""
        chosen = self.tables or self.exclude
        if chosen and not (self.views or self.queries) and not any(starmap(self.takes, tables)):
            raise UsageError("--schema, --table and --exclude leave no table to archive")

    def _check_text(self, database: Database) -> None:
        columns: list[tuple[str, str, str]] = []
        for schema in database.schemas:
            relations: tuple[Table | View, ...] = (*schema.tables, *schema.views)
            for table in relations:
                columns += ((schema.name, table.name, column.name) for column in table.columns)
        for pattern in self.as_text:
            # What columns a query has is not known yet.
            if pattern.rpartition(".")[0].rpartition(".")[2] in self.queries:
                continue
            if not any(_is_column(pattern, *column) for column in columns):
                hint = meant(pattern, list(map(".".join, columns)))
                hint = hint if hint.startswith("did") else "write SCHEMA.TABLE.COLUMN"
                raise UsageError(f"no column matches {pattern!r}; {hint}")

    def _check_described(self, database: Database, left: Sequence[tuple[str, str]]) -> None:
        """Refuse words about what is not there; what there is, but is not taken, does no harm."""
        if not self.described:
            return
        tables, columns = list(map(".".join, left)), list[str]()
        for schema in database.schemas:
            views = (v for v in schema.views if self.takes_view(schema.name, v.name))
            relations: tuple[Table | View, ...] = (*schema.tables, *views)
            for table in relations:
                tables.append(f"{schema.name}.{table.name}")
                columns += (f"{tables[-1]}.{column.name}" for column in table.columns)
        known = {"schema": [s.name for s in database.schemas], "table": tables, "column": columns}
        # Of tables that were not looked at nobody knows the columns.
        closed = tuple(f"{schema}.{table}." for schema, table in left)
        short = {table.partition(".")[2] for table in tables}
        for kind, name in self.described:
            is_known = name in known[kind] or (kind == "table" and name in short)
            elsewhere = kind == "column" and name.startswith(closed)
            if not (is_known or elsewhere or self._is_beyond(kind, name)):
                raise undescribable(kind, name, known[kind])

    def _is_beyond(self, kind: str, name: str) -> bool:
        """Whether a name lies in a query, or in a schema that is not taken: nobody knows yet."""
        whole = name.count(".") >= ("schema", "table", "column").index(kind)
        beside = whole and not self.takes_schema(name.partition(".")[0])
        return beside or self.describes_query(kind, name)

    def describes_query(self, kind: str, name: str) -> bool:
        """Whether a name that is described is that of a query, or of one of its columns."""
        table = name.rpartition(".")[0] if kind == "column" else name
        return kind != "schema" and table.rpartition(".")[2] in self.queries

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
                    hint = meant(name, list(by_name))
                    raise UsageError(f"{schema}.{table.name} has no column {name!r}; {hint}")
            names = set(chosen)
            if len(names) < len(chosen):
                twice = next(name for name in chosen if chosen.count(name) > 1)
                raise UsageError(f"{schema}.{table.name} is given the column {twice!r} twice")
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
    table = _with_note(table, f"{_LACKING}{', '.join(missing)}.")
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
        # The original of the table would bring the key back.
        table = _with_note(replace(table, description=without_tables(table.description)), note)
    if len(keys) == len(table.foreign_keys):
        return table
    return replace(table, foreign_keys=tuple(keys))


def _with_note(table: Table, note: str) -> Table:
    return replace(table, description=with_note(table.description, note))


def _is_column(pattern: str, schema: str, table: str, column: str) -> bool:
    names = f"{schema}.{table}.{column}", f"{table}.{column}"
    return any(is_like(name, pattern) for name in names)


def _pick(choices: Mapping[str, T], schema: str, table: str) -> T | None:
    for pattern, choice in choices.items():
        if matches((pattern,), schema, table):
            return choice
    return None
