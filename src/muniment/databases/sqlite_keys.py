"""The keys of an SQLite file that its rows keep.

SQLite looks after foreign keys only for those who ask it to, and lets NULL into most primary keys.
A key of SIARD has to hold; one that does not stays in the table's own statement, and comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import apsw

from muniment.databases.sqlite_catalogue import Catalogue
from muniment.sql.model import Column, Database, ForeignKey, Table, UniqueKey
from muniment.sql.names import quoted
from muniment.sql.original import with_note
from muniment.sql.selection import Selection
from muniment.sql.types import Kind, PredefinedType

__all__ = ["KeyJudge"]

_AT_ONCE = 20  # foreign keys that one pass over a table looks at; SQLite joins 64 tables at most
_NUMBERS = {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT}
_SPELT_ALIKE = {Kind.INTEGER, Kind.TEXT, Kind.DATE}  # as numbers and texts of the archive
_COLLATIONS = {"BINARY", "NOCASE", "RTRIM"}  # SQLite's own; it lists those of others, too
_BROKEN = "not all rows obey it"
_LARGEST_MAP = 4 << 20  # bytes, one for each number that there may be

_Pair = tuple[Column, Column]  # one that refers, and the one that it refers to


@dataclass(frozen=True, slots=True)
class _Test:
    """What holds for a row that refers to none, and what has to be joined and bound for that."""

    test: str
    join: str = ""
    map: Mapping[str, bytes] = field(default_factory=dict)


class KeyJudge:
    """Tells the keys that rows keep from those that they break."""

    def __init__(
        self,
        db: apsw.Connection,
        catalogue: Catalogue,
        selection: Selection,
        rows: Mapping[str, int],
    ) -> None:
        """``rows`` are those of the tables that were counted."""
        self._db: Any = db
        self._catalogue, self._selection, self._rows = catalogue, selection, rows
        self.notes: list[str] = []

    def kept(self, database: Database) -> Database:
        """Return the definitions with the keys that hold; ``notes`` name the others."""
        (schema,) = database.schemas
        tables = [self._with_unique_keys(table) for table in schema.tables]
        known = {table.name: table for table in tables}
        tables = [self._with_foreign_keys(table, known) for table in tables]
        return replace(database, schemas=(replace(schema, tables=tuple(tables)),))

    def orphans(self, database: Database) -> Iterator[tuple[str, str | None]]:
        """Yield each table with the one that rows of it refer to in vain.

        None stands for that one where a foreign key leads nowhere: SQLite itself may know more.
        """
        known = {table.name: table for _, table in database.tables()}
        for table in known.values():
            keys = table.foreign_keys
            misfits = any(self._misfit(table, key, known) for key in keys)
            if misfits or table.name in self._catalogue.dangling:
                yield table.name, None
            else:
                broken = self._broken(table, keys, known)
                yield from dict.fromkeys((table.name, key.referenced_table) for key in broken)

    def _with_unique_keys(self, table: Table) -> Table:
        primary, candidates = table.primary_key, table.candidate_keys
        if primary and any(self._finds(query) for query in self._null_queries(table, primary)):
            self.notes.append(
                f"key {primary.name} of main.{table.name} is archived as a candidate key: "
                "NULL stands in it"
            )
            candidates = (primary, *candidates)
            primary = None
        keys = (*([primary] if primary else []), *candidates)
        broken = {key for key in keys if self._has_twins(table, key)}
        for key in (key for key in keys if key in broken):
            table = self._left(table, key.name, f"({', '.join(key.columns)})", _BROKEN)
        return replace(
            table,
            primary_key=None if primary in broken else primary,
            candidate_keys=tuple(key for key in candidates if key not in broken),
        )

    def _null_queries(self, table: Table, key: UniqueKey) -> Iterator[str]:
        for column in table.columns:
            if column.name in key.columns and column.nullable is not False:
                null = f"{quoted(column.name)} IS NULL"
                yield f"SELECT 1 FROM {self._archived(table, null)} LIMIT 1"

    def _has_twins(self, table: Table, key: UniqueKey) -> bool:
        """Whether values stand twice in a key.

        An index sees to it that they do not, unless somebody changed its definition by hand; but a
        number and a text that look the same are one text where a column is archived as text.
        """
        if (self._catalogue.relations[table.name].alias,) == key.columns:
            return False  # the number of the row itself
        collations = self._collations(table.name, key.columns)
        terms = [
            _as_text(column)
            if self._is_text(table.name, column)
            else f"{quoted(column)}{collation}"
            for column, collation in zip(key.columns, collations, strict=True)
        ]
        filled = " AND ".join(f"{quoted(column)} IS NOT NULL" for column in key.columns)
        return self._finds(
            f"SELECT 1 FROM {self._archived(table, filled)} GROUP BY {', '.join(terms)} "
            "HAVING count(*) > 1 LIMIT 1"
        )

    def _collations(self, table: str, key: Sequence[str]) -> list[str]:
        """How the index of a key compares texts; along its order, twins are neighbours.

        A collation that only another program knows is left aside: the archive has none, either.
        """
        for unique, parts in self._indexes(table):
            if parts.keys() == set(key) and unique:
                found = (parts[name] if parts[name] in _COLLATIONS else "BINARY" for name in key)
                return [f" COLLATE {quoted(collation)}" for collation in found]
        return [""] * len(key)

    def _indexes(self, table: str) -> Iterator[tuple[bool, dict[str, str]]]:
        """Yield for each index whether all rows differ in it, and the collations by column."""
        for index in self._db.execute(f"PRAGMA index_list({quoted(table)})").fetchall():
            info = self._db.execute(f"PRAGMA index_xinfo({quoted(index[1])})").fetchall()
            yield (
                bool(index[2] and not index[4]),
                {row[2]: row[4].upper() for row in info if row[5]},
            )

    def _is_strange(self, table: str) -> bool:
        """Whether an index of a table is in an order that SQLite does not know here."""
        return any(not _COLLATIONS.issuperset(parts.values()) for _, parts in self._indexes(table))

    def _place(self, table: str) -> str:
        return f"main.{quoted(table)}" + (" NOT INDEXED" if self._is_strange(table) else "")

    def _with_foreign_keys(self, table: Table, known: Mapping[str, Table]) -> Table:
        misfits = {key: self._misfit(table, key, known) for key in table.foreign_keys}
        sound = [key for key, reason in misfits.items() if reason is None]
        broken = set(self._broken(table, sound, known))
        left = {key: reason for key, reason in misfits.items() if reason is not None}
        left |= {key: _BROKEN for key in sound if key in broken}
        dangling = self._catalogue.dangling.get(table.name, ())
        for key, reason in sorted((*dangling, *left.items()), key=lambda item: item[0].name):
            table = self._left(table, key.name, format_foreign_key(key), reason)
        return replace(table, foreign_keys=tuple(key for key in sound if key not in broken))

    def _broken(
        self, table: Table, keys: Sequence[ForeignKey], known: Mapping[str, Table]
    ) -> Iterator[ForeignKey]:
        for group in (keys[n : n + _AT_ONCE] for n in range(0, len(keys), _AT_ONCE)):
            if self._has_orphans(table, group, known):
                for key in group:
                    if len(group) == 1 or self._has_orphans(table, [key], known):
                        yield key

    def _misfit(self, table: Table, key: ForeignKey, known: Mapping[str, Table]) -> str | None:
        """Say why a foreign key is none that SIARD knows, whatever the rows."""
        parent = known[key.referenced_table]
        wanted = {reference.referenced for reference in key.references}
        keys = (parent.primary_key, *parent.candidate_keys)
        if not any(wanted == set(each.columns) for each in keys if each):
            return f"{parent.name} has no key of {', '.join(sorted(wanted))}"
        for ours, theirs in _pairs(table, key, parent):
            if _kinds(ours, theirs) is None:
                return f"{ours.name} is {ours.type}, but {theirs.name} {theirs.type}"
        return None

    def _has_orphans(
        self, table: Table, keys: Sequence[ForeignKey], known: Mapping[str, Table]
    ) -> bool:
        """Whether a row refers to none, by any of the keys; one pass over the table tells."""
        tests = []
        for number, key in enumerate(keys):
            pairs = _pairs(table, key, known[key.referenced_table])
            tests.append(
                self._number_test(key.referenced_table, pairs, number)
                or self._text_test(table.name, key.referenced_table, pairs)
                or self._lookup_test(key.referenced_table, pairs, number)
            )
        columns = {reference.column for key in keys for reference in key.references}
        rows = f"SELECT {','.join(map(quoted, sorted(columns)))} FROM {self._archived(table)}"
        joins, conditions = "".join(t.join for t in tests), " OR ".join(t.test for t in tests)
        maps = {name: value for test in tests for name, value in test.map.items()}
        return self._finds(f"SELECT 1 FROM ({rows}) AS c{joins} WHERE {conditions} LIMIT 1", maps)

    def _number_test(self, parent: str, pairs: Sequence[_Pair], number: int) -> _Test | None:
        """Compare with the least and the greatest number of the parent, and look gaps up in a map.

        That takes a fifth of the time or less that it takes to find the parent of each row.
        """
        if len(pairs) > 1 or {_kind(column) for column in pairs[0]} != {Kind.INTEGER}:
            return None
        if self._is_strange(parent):
            return None
        name, place = quoted(pairs[0][1].name), f"main.{quoted(parent)}"
        # Two statements, so that each finds its end of the index without reading what is between.
        # Anything but a number may be there as well, text that is not Unicode included.
        number_or_not = "iif(typeof(edge) IN ('integer', 'null'), edge, '')"
        ((low,),), ((high,),) = (
            self._db.execute(
                f"SELECT {number_or_not} FROM (SELECT {edge}({name}) AS edge FROM {place})"
            ).fetchall()
            for edge in ("min", "max")
        )
        ours = f"c.{quoted(pairs[0][0].name)}"
        if low is None:
            return _Test(f"{ours} IS NOT NULL")
        if not isinstance(low, int) or not isinstance(high, int):
            return None
        outside = f"{ours} NOT BETWEEN {low} AND {high}"
        theirs = pairs[0][1]
        filled = theirs.nullable is False or theirs.name == self._catalogue.relations[parent].alias
        if filled and self._rows.get(parent) == high - low + 1:
            return _Test(outside)
        if high - low >= _LARGEST_MAP:
            return None
        there = bytearray(high - low + 1)
        whole = f"SELECT {name} FROM {place} WHERE typeof({name})='integer'"
        for (value,) in self._db.execute(whole):
            there[value - low] = 1
        gap = f"substr(:m{number},{ours}-({low})+1,1)=x'00'"
        return _Test(f"{outside} OR {gap}", map={f"m{number}": bytes(there)})

    def _text_test(self, table: str, parent: str, pairs: Sequence[_Pair]) -> _Test | None:
        """Compare what stands in the archive, where that is text on one side alone, or made so."""
        alike = all(_kinds(*pair) == "same" for pair in pairs)
        made = any(
            self._is_text(table, ours.name) or self._is_text(parent, theirs.name)
            for ours, theirs in pairs
        )
        if alike and not made and not self._is_strange(parent):
            return None
        names = tuple(theirs.name for _, theirs in pairs)
        filled = _all(f"{quoted(name)} IS NOT NULL" for name in names)
        found = (
            f"SELECT {', '.join(map(_as_text, names))} FROM {self._place(parent)} WHERE {filled}"
        )
        collations = self._collations(parent, names)
        values = [_as_text(ours.name, "c.") for ours, _ in pairs]
        listed = ", ".join(f"{v}{c}" for v, c in zip(values, collations, strict=True))
        return _Test(_all([*_filled(pairs), f"({listed}) NOT IN ({found})"]))

    def _lookup_test(self, parent: str, pairs: Sequence[_Pair], number: int) -> _Test:
        """Find each row's parent by its key."""
        there = f"p{number}"
        collations = self._collations(parent, [theirs.name for _, theirs in pairs])
        on = _all(
            f"{there}.{quoted(theirs.name)}{collation}=c.{quoted(ours.name)}"
            for (ours, theirs), collation in zip(pairs, collations, strict=True)
        )
        join = f" LEFT JOIN main.{quoted(parent)} AS {there} ON {on}"
        return _Test(_all([*_filled(pairs), f"{there}.{quoted(pairs[0][1].name)} IS NULL"]), join)

    def _archived(self, table: Table, condition: str = "") -> str:
        """The rows of a table that are archived and meet a condition: what follows FROM."""
        own = self._selection.where_of("main", table.name)
        both = _all(filter(None, (f"({own})" if own else "", condition)))
        return self._place(table.name) + (f" WHERE {both}" if both else "")

    def _is_text(self, table: str, column: str) -> bool:
        return (table, column) in self._catalogue.classes

    def _finds(self, query: str, values: Mapping[str, bytes] | None = None) -> bool:
        return bool(self._db.execute(query, values).fetchall())

    def _left(self, table: Table, key: str, text: str, reason: str) -> Table:
        place = f"main.{table.name}"
        self.notes.append(f"key {key} of {place} is archived as a statement alone: {reason}")
        words = f"The key {key} {text} is a statement alone: {reason}."
        return replace(table, description=with_note(table.description, words))


def format_foreign_key(key: ForeignKey) -> str:
    """Return what a foreign key says, for people.

    >>> from muniment.sql.model import Reference
    >>> format_foreign_key(ForeignKey("k", "main", "p", (Reference("a", "id"),)))
    '(a) to p (id)'
    """
    columns = ", ".join(reference.column for reference in key.references)
    referenced = ", ".join(filter(None, (reference.referenced for reference in key.references)))
    return f"({columns}) to {key.referenced_table}" + (f" ({referenced})" if referenced else "")


def _pairs(table: Table, key: ForeignKey, parent: Table) -> list[_Pair]:
    ours = {column.name: column for column in table.columns}
    theirs = {column.name: column for column in parent.columns}
    return [(ours[each.column], theirs[each.referenced]) for each in key.references]


def _filled(pairs: Sequence[_Pair]) -> list[str]:
    """A row with NULL anywhere in a foreign key refers to nothing, and need not."""
    return [f"c.{quoted(ours.name)} IS NOT NULL" for ours, _ in pairs]


def _kinds(ours: Column, theirs: Column) -> str | None:
    """Whether values are compared as the same kind or as text; None if they are not comparable."""
    kinds = {_kind(ours), _kind(theirs)}
    if len(kinds) == 1 or kinds <= _NUMBERS:
        return "same"
    return "text" if kinds <= _SPELT_ALIKE else None


def _kind(column: Column) -> Kind | None:
    return column.type.kind if isinstance(column.type, PredefinedType) else None


def _as_text(column: str, prefix: str = "") -> str:
    """A value as it is archived in a column of text."""
    name = f"{prefix}{quoted(column)}"
    return f"iif(typeof({name})='blob','X'''||hex({name})||'''',CAST({name} AS TEXT))"


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(conditions)
