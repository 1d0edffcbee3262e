"""What a PostgreSQL database defines, put together from its catalogue into the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from muniment.databases.postgresql.catalogue import Catalogue, Row
from muniment.databases.postgresql.connection import Connection, execute, quote, quote_text, rows
from muniment.databases.postgresql.fitting import CLOB, LARGE_OBJECT, Fit, Fitter
from muniment.databases.postgresql.originals import (
    collation_sql,
    extension_sql,
    is_temporal,
    own_rows,
    search_statements,
    sequence_options,
    sequence_sql,
    sequence_state,
    table_statements,
    type_statements,
    view_statements,
)
from muniment.databases.postgresql.outline import (
    describe_column,
    describe_foreign_key,
    describe_key,
    describe_trigger,
    index_key,
    original,
    orphan_sql,
    result_columns,
    twin_sql,
    with_view_tables,
)
from muniment.databases.postgresql.ownership import default_privileges, given_up, owners
from muniment.databases.postgresql.routines import read_privileges, read_roles, read_routines
from muniment.databases.postgresql.specialities import casts, languages, schema_specialities
from muniment.databases.postgresql.surroundings import (
    event_triggers,
    foreign_servers,
    foreign_table_sql,
    labels,
    publications,
    settings,
    tablespaces,
)
from muniment.databases.postgresql.types import Plain, archived_type
from muniment.errors import UsageError
from muniment.sql.model import (
    UNKNOWN_COLUMNS,
    CheckConstraint,
    Database,
    Schema,
    Table,
    UserType,
    View,
)
from muniment.sql.selection import Selection, query_words
from muniment.sql.types import NamedType

__all__ = ["Relation", "read_database"]

_TEXTS = ("text", "character varying")
_ENCODING = "server_encoding"
_PUBLIC = "standard public schema"


@dataclass
class Relation:
    """Where the rows of an archived table come from."""

    sql: str  # what stands after FROM
    fits: tuple[Fit, ...]
    leaves: tuple[tuple[str, int], ...] = ()  # stored tables and their oid; none for queries
    custom: bool = False  # whether SQL of the user's is in it, which may need the search path
    rows: int = 0


@dataclass
class _Reader:
    """Reads one database; ``notes`` says what it could not see."""

    connection: Connection
    selection: Selection
    catalogue: Catalogue
    notes: list[str]
    user_path: str = "''"  # where names without a schema in the user's own SQL are looked up
    relations: dict[tuple[str, str], Relation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fitter = Fitter(self.connection, self.catalogue, self.selection.takes_schema)
        self.states = _sequence_states(self.connection, self.catalogue)
        self.specialities = schema_specialities(self.connection)
        self._name_identity_sequences()

    def database(self, dbname: str) -> Database:
        whole = Database(dbname, schemas=tuple(map(self._outline, self.catalogue.schemas)))
        views = [(s.name, v.name) for s in whole.schemas for v in s.views]
        self.selection.check(whole, views, self._not_readable(whole))
        self._say_what_is_hidden(whole)
        database = self.selection.prune(whole)
        database = with_view_tables(database, whole, self.selection)
        database = self._with_queries(database)
        self._look(database)
        schemas = tuple(
            self._complete(database, replace(schema, folder=f"schema{number}"))
            for number, schema in enumerate(database.schemas)
        )
        users, roles = read_roles(self.connection)
        return replace(
            database,
            schemas=schemas,
            description=original(self._comment(), self._database_statements()),
            users=users,
            roles=roles,
            privileges=tuple(read_privileges(self.connection, self.selection.takes_schema)),
        )

    # The outline: names, keys and columns, before anything is chosen

    def _outline(self, row: Row) -> Schema:
        home = row["name"]
        mine = [r for r in self.catalogue.relations if r["schema"] == home]
        tables = [r for r in mine if r["kind"] in "rpf" and not r["relispartition"]]
        comment = row["comment"] if (home, row["comment"]) != ("public", _PUBLIC) else None
        return Schema(
            home,
            "",
            description=comment,
            tables=tuple(
                self._table(r) for r in tables if r["partly"] and self.catalogue.columns[r["oid"]]
            ),
            views=tuple(self._view(r) for r in mine if r["kind"] in "vm"),
            routines=tuple(r for at, r in read_routines(self.catalogue) if at == home),
        )

    def _table(self, row: Row) -> Table:
        constraints = [c for c in self.catalogue.constraints[row["oid"]] if not c["conparentid"]]
        primary = [describe_key(c) for c in constraints if c["kind"] == "p"]
        unique = [describe_key(c) for c in constraints if c["kind"] == "u"]
        unique += [k for i in self.catalogue.indexes[row["oid"]] if (k := index_key(i))]
        readable = [c for c in self.catalogue.columns[row["oid"]] if c["readable"]]
        # Rows of heirs are rows of the table, and may be NULL where its own are not.
        below = self.catalogue.descendants(row["oid"])
        loose = {
            c["name"] for oid in below for c in self.catalogue.columns[oid] if not c["attnotnull"]
        }
        return Table(
            row["name"],
            "",
            tuple(
                describe_column({**c, "attnotnull": c["attnotnull"] and c["name"] not in loose})
                for c in readable
            ),
            rows=max(int(row["reltuples"]), 0),
            description=row["comment"],
            primary_key=primary[0] if primary else None,
            candidate_keys=tuple(unique),
            foreign_keys=tuple(describe_foreign_key(c) for c in constraints if c["kind"] == "f"),
            check_constraints=tuple(
                CheckConstraint(c["name"], c["condition"], c["comment"])
                for c in constraints
                if c["kind"] == "c"
            ),
            triggers=tuple(describe_trigger(t) for t in self.catalogue.triggers[row["oid"]]),
        )

    def _view(self, row: Row) -> View:
        columns = (
            replace(describe_column(c), type=self._flat(c), nullable=None, default_value=None)
            for c in self.catalogue.columns[row["oid"]]
        )
        description = original(row["comment"], view_statements(self.catalogue, row))
        query = row["query"].strip().rstrip(";")
        known = tuple(columns) or UNKNOWN_COLUMNS
        return View(row["name"], known, query_original=query, description=description)

    def _flat(self, column: Row) -> Any:
        """The type of a view's column, whose rows nobody looks at: nested ones count as text."""
        row = self.catalogue.types[column["type_id"]]
        while row["kind"] == "d":
            row = self.catalogue.types[row["typbasetype"]]
        return archived_type(row["spelt"], column["modifier"]) if row["kind"] == "b" else CLOB

    # The selection

    def _not_readable(self, whole: Database) -> list[tuple[str, str]]:
        """The tables that are left out in any case, which people may say themselves."""
        there = {(schema.name, table.name) for schema, table in whole.tables()}
        tables = [r for r in self.catalogue.relations if r["kind"] in "rpf"]
        names = [(r["schema"], r["name"]) for r in tables if not r["relispartition"]]
        return [name for name in names if name not in there]

    def _say_what_is_hidden(self, whole: Database) -> None:
        for schema in self.catalogue.schemas:
            if not schema["usable"] and self.selection.takes_schema(schema["name"]):
                self.notes.append(
                    f"schema {schema['name']} was left out: this user may not use it."
                )
        for row in self.catalogue.relations:
            if row["kind"] not in "rpf" or row["relispartition"]:
                continue
            name = f"{row['schema']}.{row['name']}"
            if not self.selection.takes(row["schema"], row["name"]):
                continue
            if not self.catalogue.columns[row["oid"]]:
                self.notes.append(f"table {name} has no columns: only its definition was archived.")
            elif not row["partly"]:
                self.notes.append(f"table {name} was left out: this user may not read it.")
            elif hidden := [
                c["name"] for c in self.catalogue.columns[row["oid"]] if not c["readable"]
            ]:
                self.notes.append(
                    f"table {name} has no {', '.join(hidden)}: this user may not read that."
                )

    def _with_queries(self, database: Database) -> Database:
        """Add the named queries as tables of the first schema."""
        if not self.selection.queries:
            return database
        if not database.schemas:
            raise UsageError("no schema is selected that could hold the results of queries")
        first, *others = database.schemas
        for name, query in self.selection.queries.items():
            if any(name == table.name for table in first.tables):
                raise UsageError(f"{first.name} has a table {name}; give the query another name")
            table = Table(name, "", (), description=query_words(query))
            first = replace(first, tables=(*first.tables, table))
        return replace(database, schemas=(first, *others))

    def _look(self, database: Database) -> None:
        """Find where rows come from, and ask them what the catalogue does not say."""
        for schema, table in database.tables():
            relation, described = self._relation(schema.name, table)
            self.relations[schema.name, table.name] = relation
            places = [
                (quote(c["name"]), (schema.name, table.name, c["name"]), c["type_id"])
                for c in described
                if not self.selection.wants_text(schema.name, table.name, c["name"])
            ]
            if relation.custom:
                self.use_path(True)
            self.fitter.look(relation.sql, places)
            if relation.custom:
                self.use_path(False)

    def use_path(self, own: bool) -> None:
        """Look names up where the user's own SQL expects them, or nowhere."""
        path = self.user_path if own else "''"
        execute(self.connection, f"SET LOCAL search_path = {path}")

    def _relation(self, home: str, table: Table) -> tuple[Relation, list[Row]]:
        row = self._row(home, table.name)
        condition = self.selection.where_of(home, table.name)
        where = f" WHERE ({condition})" if condition else ""
        if row is None:
            query = self.selection.queries[table.name].strip().rstrip(";")
            sql = f"({query}\n) AS {quote(table.name)}"
            self.use_path(True)
            described = result_columns(self.connection, sql)
            self.use_path(False)
            return Relation(sql + where, (), custom=True), described
        chosen = {c.name for c in table.columns}
        described = [c for c in self.catalogue.columns[row["oid"]] if c["name"] in chosen]
        order = [c.name for c in table.columns]
        described.sort(key=lambda c: order.index(c["name"]))
        sql = f"{quote(home, table.name)}{where}"
        ordered = self.selection.order_of(home, table.name)
        leaves: list[tuple[str, int]] = []
        if row["kind"] in "rp" and not ordered:
            oids = [leaf for oid in self._family(row) for leaf in self.catalogue.leaves(oid)]
            found = [self.catalogue.by_oid.get(oid) for oid in oids]
            if all(r and r["readable"] and r["kind"] == "r" for r in found):
                leaves = [(f"{quote(r['schema'], r['name'])}", r["oid"]) for r in found if r]
        custom = bool(condition or ordered)
        return Relation(sql, (), tuple(leaves), custom, max(int(row["reltuples"]), 0)), described

    def _family(self, row: Row) -> list[int]:
        """A table and those that inherit from it: its rows are theirs as well."""
        if row["kind"] == "p":
            return [row["oid"]]
        return [row["oid"], *self.catalogue.descendants(row["oid"])]

    def _row(self, home: str, name: str) -> Row | None:
        for row in self.catalogue.relations:
            if (row["schema"], row["name"]) == (home, name):
                return row
        return None

    # The completion: types, folders, original definitions

    def _complete(self, database: Database, schema: Schema) -> Schema:
        tables = tuple(
            self._completed_table(database, schema, replace(table, folder=f"table{number}"))
            for number, table in enumerate(schema.tables)
        )
        used = {
            name.name
            for relation in self.relations.values()
            for fit in relation.fits
            for name in self._named(fit)
            if name.schema == schema.name
        }
        types, loose = self._types(schema.name, used)
        statements = [*self._schema_statements(database, schema), *loose]
        return replace(
            schema,
            tables=tables,
            types=types,
            description=original(schema.description, statements),
        )

    def _named(self, fit: Fit) -> Iterator[NamedType]:
        if isinstance(fit.type, NamedType):
            yield fit.type
            for row in self.catalogue.types.values():
                if (row["schema"], row["name"], row["kind"]) == (
                    fit.type.schema,
                    fit.type.name,
                    "c",
                ):
                    for attribute in self.catalogue.columns[row["typrelid"]]:
                        place = (f"{row['schema']}.{row['name']}", attribute["name"])
                        yield from self._named(
                            self.fitter.fit(place, attribute["type_id"], attribute["modifier"])
                        )

    def _types(self, home: str, used: set[str]) -> tuple[tuple[UserType, ...], list[str]]:
        """The types of a schema, and statements for those that have no place among them."""
        made, described = [], set()
        for row, user_type in self.fitter.user_types(home, used):
            description = original(row["comment"], type_statements(self.catalogue, row))
            made.append(replace(user_type, description=description))
            described.add(row["oid"])
        loose = [
            statement
            for row in self.catalogue.types.values()
            if row["schema"] == home and row["kind"] == "d" and not row["foreign"]
            and row["oid"] not in described and row["name"] != "lo"
            for statement in (*type_statements(self.catalogue, row), *_domain_comment(row))
        ]  # fmt: skip
        return tuple(made), loose

    def _completed_table(self, database: Database, schema: Schema, table: Table) -> Table:
        relation = self.relations[schema.name, table.name]
        row = self._row(schema.name, table.name)
        described: list[Row]
        if row is None:
            self.use_path(True)
            described = result_columns(self.connection, relation.sql)
            self.use_path(False)
            table = replace(table, columns=tuple(describe_column(c) for c in described))
        else:
            by_name = {c["name"]: c for c in self.catalogue.columns[row["oid"]]}
            described = [by_name[c.name] for c in table.columns]
        fits = tuple(self._fit(schema.name, table.name, c) for c in described)
        relation.fits = fits
        columns = tuple(
            replace(column, type=fit.type, cardinality=fit.cardinality)
            for column, fit in zip(table.columns, fits, strict=True)
        )
        table = replace(table, columns=columns)
        if row is not None and row["kind"] in "rpf":
            table, broken = self._with_keys_that_hold(table, row)
            table = self._with_original(database, table, row, broken)
        return table

    def _with_keys_that_hold(self, table: Table, row: Row) -> tuple[Table, set[str]]:
        """Take out the keys that rows break, those of heirs included; return their names, too."""
        heirs = bool(self._family(row)[1:])
        broken: dict[str, str] = {}
        for key in (table.primary_key, *table.candidate_keys) if heirs else ():
            if key and rows(self.connection, twin_sql(row, key, key is table.primary_key)):
                broken[key.name] = "not all rows obey it"
        constraints = {c["name"]: c for c in self.catalogue.constraints[row["oid"]]}
        for reference in table.foreign_keys:
            constraint = constraints[reference.name]
            if is_temporal(constraint):
                broken[reference.name] = "it compares periods"
            elif constraint["convalidated"] and not heirs:
                continue
            elif rows(self.connection, orphan_sql(row, reference)):
                broken[reference.name] = "not all rows obey it"
        place = f"{row['schema']}.{row['name']}"
        self.notes += [
            f"key {name} of {place} is archived as a statement alone: {reason}."
            for name, reason in broken.items()
        ]
        primary = table.primary_key
        kept = replace(
            table,
            primary_key=primary if primary and primary.name not in broken else None,
            candidate_keys=tuple(k for k in table.candidate_keys if k.name not in broken),
            foreign_keys=tuple(k for k in table.foreign_keys if k.name not in broken),
        )
        return kept, set(broken)

    def _fit(self, home: str, table: str, column: Row) -> Fit:
        place = (home, table, column["name"])
        if self.selection.wants_text(*place):
            text = self.catalogue.types[column["type_id"]]["spelt"] in _TEXTS
            escaped = text and self.connection.info.parameter_status(_ENCODING) == "SQL_ASCII"
            return Fit(Plain("escaped" if escaped else "other", CLOB), CLOB)
        return self.fitter.fit(place, column["type_id"], column["modifier"])

    def _with_original(self, database: Database, table: Table, row: Row, untold: set[str]) -> Table:
        kept = {(s.name, t.name) for s, t in database.tables()}
        oids = {r["oid"] for r in self.catalogue.relations if (r["schema"], r["name"]) in kept}
        everything = len(table.columns) == len(self.catalogue.columns[row["oid"]])
        description = table.description
        family = self._family(row)[1:]
        statements: list[str] = []
        if everything:
            parents = self._parents_kept(oids)
            statements += table_statements(self.catalogue, row, parents, untold)
            statements += self._owned_sequences(row)
        if family:
            names = [
                f"{r['schema']}.{r['name']}" for r in map(self.catalogue.by_oid.get, family) if r
            ]
            note = f"Its rows include those of the tables that inherit from it: {', '.join(names)}."
            description = f"{description}\n{note}" if description else note
            if oids.issuperset(family) and self._parents_kept(oids).issuperset([row["oid"]]):
                (found,) = rows(
                    self.connection,
                    f"SELECT count(*) AS count FROM ONLY {quote(row['schema'], row['name'])}",
                )
                statements.append(own_rows(found["count"]))
        if row["kind"] == "f":
            statements.append(foreign_table_sql(self.connection, self.catalogue, row))
            note = f"A foreign table of the server {row['server']}."
            description = f"{description}\n{note}" if description else note
        return replace(table, description=original(description, statements))

    def _parents_kept(self, oids: set[int]) -> set[int]:
        """The tables from which others can inherit again: all their rows and heirs are there."""
        chosen = self.selection
        return {
            oid
            for oid in oids
            if not chosen.where_of(*self._names(oid))
            and all(
                child in oids and not chosen.where_of(*self._names(child))
                for child in self.catalogue.descendants(oid)
            )
        }

    def _names(self, oid: int) -> tuple[str, str]:
        row = self.catalogue.by_oid[oid]
        return row["schema"], row["name"]

    # Sequences and what belongs to whole schemas

    def _name_identity_sequences(self) -> None:
        for sequence in self.catalogue.sequences:
            if sequence["ownership"] != "i":
                continue
            for column in self.catalogue.columns[sequence["owner"]]:
                if column["name"] == sequence["owner_column"]:
                    place = quote(sequence["schema"], sequence["name"])
                    options = sequence_options(sequence)
                    column["sequence"] = f" (SEQUENCE NAME {place}{options})"

    def _owned_sequences(self, row: Row) -> Iterator[str]:
        for sequence in self.catalogue.sequences:
            if sequence["owner"] != row["oid"]:
                continue
            place = quote(sequence["schema"], sequence["name"])
            if sequence["ownership"] == "a":
                column = quote(row["schema"], row["name"], sequence["owner_column"])
                yield f"ALTER SEQUENCE {place} OWNED BY {column}"
            elif state := self.states.get(sequence["oid"]):
                yield sequence_state(sequence, *state)

    def _schema_statements(self, database: Database, schema: Schema) -> Iterator[str]:
        """What belongs to no table; the first statement tells the schema's own name."""
        yield f"CREATE SCHEMA {quote(schema.name)}"
        here = next(s for s in self.catalogue.schemas if s["name"] == schema.name)
        if schema.name == "public" and here["comment"] is None:
            yield "COMMENT ON SCHEMA public IS NULL"  # since it is born with one
        for collation in self.catalogue.collations:
            if collation["schema"] == schema.name and (sql := collation_sql(collation)):
                yield sql
                if collation["comment"]:
                    yield _comment("COLLATION", schema.name, collation)
        yield from self.specialities[schema.name]
        yield from search_statements(self.catalogue, schema.name)
        yield from self._tables_without_columns(schema.name)
        for row in self.catalogue.closed:
            if row["schema"] == schema.name:
                yield f"REVOKE {row['right']} FROM PUBLIC"
        kept = {(s.name, t.name) for s, t in database.tables()}
        for sequence in self.catalogue.sequences:
            owner = sequence["owner"]
            if sequence["schema"] != schema.name or sequence["ownership"] == "i":
                continue
            if owner and owner in self.catalogue.by_oid and self._names(owner) not in kept:
                continue
            yield sequence_sql(sequence)
            if state := self.states.get(sequence["oid"]):
                yield sequence_state(sequence, *state)
            else:
                name = f"{sequence['schema']}.{sequence['name']}"
                self.notes.append(
                    f"the state of sequence {name} is not known: no right to read it."
                )
            if sequence["comment"]:
                yield _comment("SEQUENCE", schema.name, sequence)

    def _tables_without_columns(self, home: str) -> Iterator[str]:
        for row in self.catalogue.relations:
            bare = row["kind"] == "r" and not self.catalogue.columns[row["oid"]]
            if row["schema"] == home and bare and self.selection.takes(home, row["name"]):
                yield f"CREATE TABLE {quote(home, row['name'])} ()"

    def _database_statements(self) -> Iterator[str]:
        """What belongs to no schema, in the order in which it is made."""
        for extension in self.catalogue.extensions:
            yield from extension_sql(extension)
        yield from languages(self.connection)
        yield from foreign_servers(self.connection, self.notes)
        yield from casts(self.connection, self.selection.takes_schema)
        yield from tablespaces(self.connection, self.selection.takes)
        yield from publications(self.connection, self.selection.takes)
        yield from given_up(self.connection, self.selection)
        yield from owners(self.connection, self.selection)
        yield from default_privileges(self.connection, self.selection.takes_schema)
        yield from labels(self.connection, self.selection.takes_schema)
        yield from event_triggers(self.connection)
        yield from settings(self.connection)

    def _comment(self) -> str | None:
        (row,) = rows(
            self.connection,
            "SELECT shobj_description(oid, 'pg_database') AS comment FROM pg_database"
            " WHERE datname = current_database()",
        )
        comment: str | None = row["comment"]
        return comment


def read_database(
    connection: Connection, dbname: str, selection: Selection, notes: list[str], path: str
) -> tuple[Database, dict[tuple[str, str], Relation]]:
    """Return the definitions of what was selected, and where the rows of its tables come from."""
    catalogue = Catalogue(connection)
    reader = _Reader(connection, selection, catalogue, notes, path)
    database = reader.database(dbname)
    notes += dict.fromkeys(reader.fitter.notes)
    _note_others(database, reader, notes)
    return database, reader.relations


def _note_others(database: Database, reader: _Reader, notes: list[str]) -> None:
    """Say what of the database is not in the archive."""
    if names := reader.catalogue.subscriptions():
        notes.append(f"not archived: subscriptions to other servers ({', '.join(names)}).")
    places = [
        f"SELECT {quote(column.name)}::oid FROM {relation.sql}"
        for schema, table in database.tables()
        for relation in [reader.relations[schema.name, table.name]]
        for column, fit in zip(table.columns, relation.fits, strict=True)
        if isinstance(fit.node, Plain) and fit.node.base == LARGE_OBJECT
    ]
    known = " UNION ALL ".join(places) or "SELECT NULL::oid"
    reader.use_path(True)
    (row,) = rows(
        reader.connection,
        "SELECT count(*) AS count FROM pg_largeobject_metadata m"
        f" WHERE NOT EXISTS (SELECT 1 FROM ({known}) k (number) WHERE k.number = m.oid)",
    )
    reader.use_path(False)
    if row["count"]:
        notes.append(
            f"not archived: {row['count']} large objects that no archived column refers to."
        )


def _sequence_states(connection: Connection, catalogue: Catalogue) -> dict[int, tuple[int, bool]]:
    """Where sequences stand, as far as this user may see it."""
    states: dict[int, tuple[int, bool]] = {}
    readable = [s for s in catalogue.sequences if s["readable"]]
    for start in range(0, len(readable), 200):
        sql = " UNION ALL ".join(
            f"SELECT {s['oid']} AS oid, last_value, is_called FROM {quote(s['schema'], s['name'])}"
            for s in readable[start : start + 200]
        )
        for row in rows(connection, sql):
            states[row["oid"]] = row["last_value"], row["is_called"]
    return states


def _domain_comment(row: Row) -> Iterator[str]:
    if row["comment"]:
        yield _comment("DOMAIN", row["schema"], row)


def _comment(kind: str, home: str, row: Row) -> str:
    return f"COMMENT ON {kind} {quote(home, row['name'])} IS {quote_text(row['comment'])}"
