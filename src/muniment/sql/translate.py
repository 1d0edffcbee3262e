"""Views of one product for another: their queries in the other's SQL, by sqlglot.

A translation is a proposal. The target proves it by creating the view and preparing a query on it;
what does not compile there is left out, with its original text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from muniment.sql.model import Database, Schema, Table, View

__all__ = [
    "NotTranslatable", "dialect_of", "make_in_turn", "translated_expression", "translated_view",
    "translation_note",
]  # fmt: skip

Place = tuple[str, str]  # the schema of a table ("" for none) and its name
Move = Callable[[str, str], Place]
T = TypeVar("T")

# How ``databaseProduct`` begins, and the language that its views are written in.
_DIALECTS = {
    "SQLite": "sqlite",
    "DuckDB": "duckdb",
    "PostgreSQL": "postgres",
    "MariaDB": "mysql",
    "MySQL": "mysql",
    "Oracle": "oracle",
    "Microsoft SQL Server": "tsql",
    "mssql": "tsql",
    "Snowflake": "snowflake",
}
_LONGEST = 1 << 18  # characters; an archive may bring anything


class NotTranslatable(Exception):
    """A query cannot be said in the other product's SQL; the text says why."""


def dialect_of(product: str | None) -> str | None:
    """Return sqlglot's name for the SQL of a product, or None.

    >>> dialect_of("PostgreSQL 15.3"), dialect_of("Firebird 3.0"), dialect_of(None)
    ('postgres', None, None)
    """
    for name, dialect in _DIALECTS.items():
        if (product or "").lower().startswith(name.lower()):
            return dialect
    return None


def translated_view(database: Database, schema: Schema, view: View, target: str, move: Move) -> str:
    """Return the query of an archived view in the SQL of the product ``target``.

    ``move`` says where a table of the archive is in the target. An archive's SQL:2008 text is
    tried where the original is missing or in an unknown language.
    """
    source = dialect_of(database.database_product)
    query = view.query_original if view.query_original and source else view.query
    if not query:
        raise NotTranslatable("the archive has no query for it in a language that can be read")
    if len(query) > _LONGEST:
        raise NotTranslatable("its query is too long to be translated")
    names = _names(database, schema)
    return _translated(query, source if query is view.query_original else None, target, names, move)


def translated_expression(database: Database, schema: Schema, text: str, target: str) -> str:
    """Return the condition of a check, or a default, in the SQL of the product ``target``."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(text) > _LONGEST:
        raise NotTranslatable("it is too long to be translated")
    names = _names(database, schema)
    try:
        tree = sqlglot.parse_one(
            f"SELECT {text}", read=dialect_of(database.database_product), into=exp.Select
        )
        if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or tree.args.get("from_"):
            raise NotTranslatable("it is not one expression")
        for identifier in list(tree.find_all(exp.Identifier)):
            identifier.set("this", names.declared(identifier.name))
        level = sqlglot.ErrorLevel.RAISE
        found = tree.expressions[0]
        return str(
            found.sql(dialect=target, identify=True, unsupported_level=level, comments=False)
        )
    except SqlglotError as error:
        reason = str(error).partition("\n")[0]
        raise NotTranslatable(f"it could not be translated: {reason}") from error
    except RecursionError as error:
        raise NotTranslatable("it is nested too deeply to be translated") from error


def _translated(query: str, source: str | None, target: str, names: _Names, move: Move) -> str:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(query, read=source)
        if isinstance(tree, exp.Create) and tree.expression is not None:
            tree = tree.expression
        if not isinstance(tree, exp.Query):
            raise NotTranslatable("its text is not a query")
        for identifier in list(tree.find_all(exp.Identifier)):
            identifier.set("this", names.declared(identifier.name))
        _move_tables(tree, names, move)
        # A function or clause that the other product lacks must not be dropped in silence.
        level = sqlglot.ErrorLevel.RAISE
        return str(tree.sql(dialect=target, identify=True, unsupported_level=level, comments=False))
    except SqlglotError as error:
        reason = str(error).partition("\n")[0]
        raise NotTranslatable(f"its query could not be translated: {reason}") from error
    except RecursionError as error:
        raise NotTranslatable("its query is nested too deeply to be translated") from error


def _move_tables(tree: object, names: _Names, move: Move) -> None:
    """Let every table of the query be the one in the target; columns keep what they said."""
    from sqlglot import exp

    assert isinstance(tree, exp.Expr)
    temporary = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier) or (not table.db and table.name in temporary):
            continue  # a function, or a name that the query defines itself
        name = table.name
        schema, moved = move(table.db or names.home_of(name), name)
        table.set("this", exp.to_identifier(moved, quoted=True))
        table.set("db", exp.to_identifier(schema, quoted=True) if schema else None)
        table.set("catalog", None)
        if moved != name and not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)


def _names(database: Database, schema: Schema) -> _Names:
    """Return the names of an archive: collected once, while texts of one schema are translated."""
    global _latest
    if _latest is None or _latest[0] is not database or _latest[1] is not schema:
        _latest = database, schema, _Names(database, schema)
    return _latest[2]


class _Names:
    """The names of an archive, in the case in which they were declared."""

    def __init__(self, database: Database, schema: Schema) -> None:
        self.home = schema.name
        self._exact: set[str] = set()
        self._folded: dict[str, str] = {}
        self._homes: dict[str, list[str]] = {}
        for each in (schema, *(s for s in database.schemas if s is not schema)):
            self._add(each.name)
            things: list[Table | View] = [*each.tables, *each.views]
            for thing in things:
                self._add(thing.name)
                self._homes.setdefault(thing.name, []).append(each.name)
                for column in thing.columns:
                    self._add(column.name)

    def _add(self, name: str) -> None:
        self._exact.add(name)
        self._folded.setdefault(name.casefold(), name)

    def home_of(self, name: str) -> str:
        """The schema of a table that a query names alone: its own, or the only one that has it.

        The others were reached by synonyms, or by a search path that the archive does not tell.
        """
        homes = self._homes.get(name, [])
        return homes[0] if len(homes) == 1 else self.home

    def declared(self, name: str) -> str:
        """The spelling that a catalogue would find; names of the query's own stay as they are."""
        return name if name in self._exact else self._folded.get(name.casefold(), name)


_latest: tuple[Database, Schema, _Names] | None = None


def translation_note(database: Database, target: str, views: Iterable[str]) -> str:
    """Return the sentence that asks people to look at translated views."""
    product = database.database_product or "another product"
    return (
        f"translated from the SQL of {product} into that of {target}: the views "
        f"{', '.join(views)}; see that they say what they should"
    )


def make_in_turn(
    waiting: Mapping[T, Iterable[str]], attempt: Callable[[T, str], str | None]
) -> dict[T, str]:
    """Make things that may need one another, until nothing moves; return why the rest failed.

    Each thing has one or more statements, of which the first that works is taken. ``attempt``
    returns None if it made the thing, else the reason.
    """
    left = {thing: list(ways) for thing, ways in waiting.items()}
    while True:
        reasons: dict[T, str] = {}
        for thing, ways in left.items():
            for way in ways:
                reason = attempt(thing, way)
                if reason is None:
                    break
                reasons.setdefault(thing, reason)
            else:
                reasons.setdefault(thing, "there is no statement for it")
                continue
            reasons.pop(thing, None)
        if len(reasons) == len(left):
            return reasons
        left = {thing: left[thing] for thing in reasons}
