"""The last part of a restore: keys, indexes, views, routines, triggers, comments, rights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from muniment.databases.postgresql.builder import Builder, Item
from muniment.databases.postgresql.connection import quote, quote_text, rows
from muniment.databases.postgresql.rights import Rights
from muniment.databases.postgresql.statements import (
    added_constraint,
    created_index,
    is_early,
    moved,
    own_row_count,
)
from muniment.databases.postgresql.tables import constraint_name, foreign_key_sql, names_sql
from muniment.sql.leftout import (
    left_out_rights,
    left_out_routine,
    left_out_trigger,
    left_out_view,
)
from muniment.sql.model import (
    UNKNOWN_COLUMNS,
    Database,
    ForeignKey,
    Schema,
    Table,
    UniqueKey,
    View,
)
from muniment.sql.original import split_original
from muniment.sql.translate import (
    NotTranslatable,
    make_in_turn,
    translated_expression,
    translated_view,
    translation_note,
)

__all__ = ["Completion"]

_HEIRS = """
WITH RECURSIVE heirs (oid, depth) AS (
    SELECT i.inhrelid, 1 FROM pg_inherits i
    UNION SELECT i.inhrelid, h.depth + 1 FROM pg_inherits i JOIN heirs h ON h.oid = i.inhparent
)
SELECT n.nspname AS schema, c.relname AS name, max(h.depth) AS depth
FROM heirs h JOIN pg_class c ON c.oid = h.oid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND NOT c.relispartition GROUP BY 1, 2
"""


@dataclass
class Completion:
    """Completes one database."""

    builder: Builder
    database: Database
    same: bool  # whether the archive comes from PostgreSQL

    def run(self, later: list[Item]) -> None:
        """Make everything that follows the rows; ``later`` could not be made before them."""
        self._set_defaults()
        depths = {
            (r["schema"], r["name"]): r["depth"] for r in rows(self.builder.connection, _HEIRS)
        }
        tables = sorted(  # what parents have, heirs inherit
            self.database.tables(), key=lambda pair: depths.get((pair[0].name, pair[1].name), 0)
        )
        for schema, table in tables:
            self._add_unique_keys(schema, table)
        for schema, table in tables:
            self._add_checks(schema, table)
        others = [*later, *self._others()]
        for item, reason in self.builder.settle(others):
            self.builder.leave_out(item, reason)
        self._translate_views()
        for schema, table in tables:
            for key in table.foreign_keys:
                self._add_foreign_key(schema, table, key)
        for item in self._triggers():
            self.builder.make(item)
        for schema, table in tables:
            for sql in self._block(table.description):
                if _is_last(sql):
                    self.builder.make(Item("setting", f"of {schema.name}.{table.name}", (sql,)))
        for item in self._comments():
            self.builder.make(item)
        if self.same:
            block = self._block(self.database.description)
            Rights(self.builder, self.database, block).run()
        else:
            reason = "they are those of another product"
            self.builder.left_out.extend(left_out_rights(self.database, reason))

    def _block(self, description: str | None) -> tuple[str, ...]:
        _, original = split_original(description)
        mine = original and original.product == "PostgreSQL" and self.same
        return original.statements if original and mine else ()

    def _head(self, schema: Schema, table: Table) -> str:
        return next(iter(self._block(table.description)), "")

    # Defaults, keys, checks

    def _set_defaults(self) -> None:
        """Set the defaults of tables that were made from the model."""
        for schema, table in self.database.tables():
            own = self._head(schema, table).startswith("CREATE")
            if own and f"{schema.name}.{table.name}" not in self.builder.remade:
                continue
            for column in table.columns:
                if not column.default_value:
                    continue
                head = f"ALTER TABLE {quote(schema.name, table.name)} ALTER COLUMN"
                name = f"of {schema.name}.{table.name}.{column.name}"
                self._first_of(
                    Item("default", name, (f"DEFAULT {column.default_value}",)),
                    [
                        f"{head} {quote(column.name)} SET DEFAULT {way}"
                        for way in self._ways(schema, column.default_value)
                    ],
                )

    def _ways(self, schema: Schema, text: str) -> Iterator[str]:
        """Yield an expression as it is and, if it is another product's, in PostgreSQL's SQL."""
        if not self.same:
            with suppress(NotTranslatable):
                yield translated_expression(self.database, schema, text, "postgres")
        yield moved(text, self.builder.names)

    def _add_unique_keys(self, schema: Schema, table: Table) -> None:
        block = self._block(table.description)
        indexes = {created_index(sql) for sql in block}
        own = {name: sql for sql in block if (name := added_constraint(sql))}
        keys: list[tuple[str, UniqueKey]] = []
        if table.primary_key:
            keys.append(("PRIMARY KEY", table.primary_key))
        keys += [("UNIQUE", key) for key in table.candidate_keys if key.name not in indexes]
        for kind, key in keys:
            named = "primary key" if kind == "PRIMARY KEY" else "candidate key"
            where = f"{key.name} of {schema.name}.{table.name}"
            if key.name in own:
                self.builder.make(Item(named, where, (own[key.name],)))
                continue
            name = constraint_name(key.name)
            head = f"ALTER TABLE {quote(schema.name, table.name)} ADD"
            clause = f"{kind} ({names_sql(key.columns)})"
            ways = [f"{head}{name} {clause}", f"{head} {clause}"]  # the name may be taken
            self._first_of(Item(named, where, (ways[0],)), ways)

    def _first_of(self, item: Item, ways: list[str]) -> None:
        """Run the first statement that is not refused."""
        reasons = []
        for sql in ways:
            reason = self.builder.attempt_item(Item(item.kind, item.name, (sql,)))
            if reason is None:
                return
            reasons.append(reason)
        self.builder.leave_out(item, reasons[0])

    def _add_checks(self, schema: Schema, table: Table) -> None:
        block = self._block(table.description)
        own = {name: sql for sql in block if (name := added_constraint(sql))}
        place, where = quote(schema.name, table.name), f"{schema.name}.{table.name}"
        there = {
            row["conname"]
            for row in rows(
                self.builder.connection,
                "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass",
                place,
            )
        }
        for check in table.check_constraints:
            item = Item("check constraint", f"{check.name} of {where}", ())
            if check.name in own:
                self.builder.make(replace(item, statements=(own[check.name],)))
                continue
            if check.name in there:  # inherited
                continue
            name = constraint_name(check.name)
            ways = [
                f"ALTER TABLE {place} ADD{name} CHECK ({condition}\n)"
                for condition in self._ways(schema, check.condition)
            ]
            self._with_or_without_rows(item, ways)

    def _add_foreign_key(self, schema: Schema, table: Table, key: ForeignKey) -> None:
        item = Item("foreign key", f"{key.name} of {schema.name}.{table.name}", ())
        own = {
            name: sql for sql in self._block(table.description) if (name := added_constraint(sql))
        }
        if key.name in own:
            self._with_or_without_rows(item, [own[key.name]])
            return
        name = constraint_name(key.name)
        place = quote(schema.name, table.name)
        sql = f"ALTER TABLE {place} ADD{name} {foreign_key_sql(key)}"
        self._with_or_without_rows(replace(item, foreign=False), [sql])

    def _with_or_without_rows(self, item: Item, ways: list[str]) -> None:
        """Add a constraint; if rows break it, add it for the rows to come, and say so."""
        reason = ""
        for sql in ways:
            reason = self.builder.attempt_item(replace(item, statements=(sql,))) or ""
            if not reason:
                return
            later = replace(item, statements=(f"{sql} NOT VALID",))
            broken = "violate" in reason and "NOT VALID" not in sql
            if broken and self.builder.attempt_item(later) is None:
                self.builder.notes.append(
                    f"{item.kind} {item.name} does not hold for all rows, and was made NOT VALID:"
                    f" {reason}."
                )
                return
        self.builder.leave_out(replace(item, statements=(ways[-1],)), reason)

    # Views, routines, indexes, rules

    def _others(self) -> Iterator[Item]:
        for schema in self.database.schemas:
            for table in schema.tables:
                yield from self._table_others(schema, table)
            if self.same:
                for view in schema.views:
                    yield from self._view(schema, view)
                continue
            reason = "it is written for another product"
            for routine in schema.routines:
                self.builder.left_out.append(left_out_routine(schema, routine, reason))

    def _table_others(self, schema: Schema, table: Table) -> Iterator[Item]:
        keys = {key.name for key in table.candidate_keys}
        keys |= {key.name for key in table.foreign_keys}
        keys |= {check.name for check in table.check_constraints}
        keys |= {table.primary_key.name} if table.primary_key else set()
        for sql in self._block(table.description):
            if sql.startswith("CREATE FOREIGN TABLE "):
                item = Item("foreign table", f"{schema.name}.{table.name}", (sql,))
                self.builder.leave_out(item, "its rows are in a table of this database now")
                continue
            if is_early(sql) or own_row_count(sql) is not None or _is_last(sql):
                continue
            if added_constraint(sql) in keys:
                continue
            yield Item("definition", f"of {schema.name}.{table.name}", (sql,))

    def _view(self, schema: Schema, view: View) -> Iterator[Item]:
        """A view of PostgreSQL, with what else belongs to it."""
        block = self._block(view.description)
        name = f"{schema.name}.{view.name}"
        if block and block[0].startswith("CREATE MATERIALIZED"):
            yield Item("view", name, (block[0],))
            block = block[1:]
        elif query := view.query_original or view.query:
            yield Item("view", name, (_view_sql(schema, view, query),))
        else:
            self.builder.leave_out(Item("view", name, ()), "the archive has no SQL for it")
            return
        for sql in block:
            yield Item("definition", f"of {name}", (sql,))

    def _translate_views(self) -> None:
        """Make the views of other products, as far as their SQL can be translated."""
        if self.same:
            return
        views = {f"{s.name}.{v.name}": (s, v) for s in self.database.schemas for v in s.views}
        known = {schema.name for schema in self.database.schemas}
        ways: dict[str, list[str]] = {}
        for name, (schema, view) in views.items():
            home = schema.name
            try:
                query = translated_view(
                    self.database,
                    schema,
                    view,
                    "postgres",
                    lambda s, n, home=home: (s if s in known else home, n),  # type: ignore[misc]
                )
            except NotTranslatable as error:
                self.builder.left_out.append(left_out_view(schema, view, str(error)))
            else:
                ways[name] = [_view_sql(schema, view, query)]
        reasons = make_in_turn(
            ways, lambda name, sql: self.builder.attempt_item(Item("view", name, (sql,)))
        )
        for name, reason in reasons.items():
            self.builder.left_out.append(left_out_view(*views[name], reason))
        made = [name for name in ways if name not in reasons]
        if made:
            self.builder.notes.append(translation_note(self.database, "PostgreSQL", made))

    def _triggers(self) -> Iterator[Item]:
        for schema, table in self.database.tables():
            for trigger in table.triggers:
                if self.same:
                    name = f"{trigger.name} of {schema.name}.{table.name}"
                    yield Item("trigger", name, (trigger.triggered_action,))
                else:
                    reason = "it is written for another product"
                    missed = left_out_trigger(schema, table, trigger, reason)
                    self.builder.left_out.append(missed)

    # Comments and rights

    def _comments(self) -> Iterator[Item]:
        if self.same:
            (row,) = rows(self.builder.connection, "SELECT current_database() AS name")
            yield from _comment(f"DATABASE {quote(row['name'])}", self.database.description)
        for schema in self.database.schemas:
            yield from _comment(f"SCHEMA {quote(schema.name)}", schema.description)
            for user_type in schema.types:
                kind = "DOMAIN" if self._is_domain(user_type.description) else "TYPE"
                place = quote(schema.name, user_type.name)
                yield from _comment(f"{kind} {place}", user_type.description)
                for attribute in user_type.attributes:
                    spelt = f"COLUMN {place}.{quote(attribute.name)}"
                    yield from _comment(spelt, attribute.description)
            for table in schema.tables:
                yield from self._table_comments(schema, table)
            for view in schema.views:
                place = quote(schema.name, view.name)
                block = self._block(view.description)
                material = block and block[0].startswith("CREATE MATERIALIZED")
                kind = "MATERIALIZED VIEW" if material else "VIEW"
                yield from _comment(f"{kind} {place}", view.description)
                for column in view.columns:
                    yield from _comment(f"COLUMN {place}.{quote(column.name)}", column.description)
            for routine in schema.routines if self.same else ():
                kind, _, rest = (routine.characteristic or "").partition(" (")
                arguments = rest.partition(") LANGUAGE")[0]
                kind = kind.removeprefix("WINDOW ")
                if kind in ("FUNCTION", "PROCEDURE", "AGGREGATE"):
                    listed = arguments or ("*" if kind == "AGGREGATE" else "")
                    place = f"{kind} {quote(schema.name, routine.name)}({listed})"
                    yield from _comment(place, routine.description, foreign=True)

    def _is_domain(self, description: str | None) -> bool:
        block = self._block(description)
        return not block or block[0].startswith("CREATE DOMAIN")

    def _table_comments(self, schema: Schema, table: Table) -> Iterator[Item]:
        place = quote(schema.name, table.name)
        yield from _comment(f"TABLE {place}", _without_notes(table.description))
        for column in table.columns:
            yield from _comment(f"COLUMN {place}.{quote(column.name)}", column.description)
        indexes = {created_index(sql) for sql in self._block(table.description)}
        keys = [(k.name, k.description) for k in table.candidate_keys if k.name not in indexes]
        keys += [(k.name, k.description) for k in table.foreign_keys]
        keys += [(k.name, k.description) for k in table.check_constraints]
        if table.primary_key:
            keys.append((table.primary_key.name, table.primary_key.description))
        for name, text in keys:
            yield from _comment(f"CONSTRAINT {quote(name)} ON {place}", text)
        for trigger in table.triggers if self.same else ():
            yield from _comment(f"TRIGGER {quote(trigger.name)} ON {place}", trigger.description)


def _view_sql(schema: Schema, view: View, query: str) -> str:
    known = view.columns != UNKNOWN_COLUMNS  # PostgreSQL has views without any
    columns = f" ({names_sql(column.name for column in view.columns)})" if known else ""
    place = quote(schema.name, view.name)
    return f"CREATE VIEW {place}{columns} AS\n{query.strip().rstrip(';')}"


def _is_last(sql: str) -> bool:
    """Whether a statement needs triggers and keys to be there."""
    words = (" TRIGGER ", " RULE ", " CLUSTER ON ", " REPLICA IDENTITY ")
    heads = ("SELECT pg_catalog.setval", "ALTER SEQUENCE", "COMMENT ON TRIGGER")
    return sql.startswith(heads) or (
        sql.startswith("ALTER TABLE") and any(word in sql for word in words)
    )


def _without_notes(description: str | None) -> str | None:
    """A table's comment without the sentences on heirs and servers, which were not part of it."""
    text, _ = split_original(description)
    for note in ("A foreign table of the server ", "Its rows include those of the tables that inh"):
        head, mark, _ = (text or "").rpartition(note)
        text = head.rstrip("\n") if mark else text
    return text


def _comment(place: str, description: str | None, foreign: bool = False) -> Iterator[Item]:
    text, _ = split_original(description)
    if text:
        sql = f"COMMENT ON {place} IS {quote_text(text)}"
        yield Item("comment", f"on {place}", (sql,), foreign=foreign)
