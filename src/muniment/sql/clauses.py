"""What a CREATE TABLE statement says of each column, found by its words alone.

Statements of any product are cut at their commas and parentheses; nothing is understood beyond the
few clauses that SIARD has no place for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ColumnClauses", "ForeignClause", "TableClauses", "read_clauses"]

# What is never closed goes on to the end: nobody should look for its end again and again.
_STRINGS = (
    r"""'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)"""
    r"""|--[^\n]*|/\*.*?(?:\*/|\Z)"""
)
_WORDS = re.compile(rf"{_STRINGS}|\w+|\S", re.DOTALL)
_WORDS_OF_SQLITE = re.compile(rf"{_STRINGS}|\[[^]]*\]|\w+|\S", re.DOTALL)
_CONSTRAINTS = frozenset(("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE"))
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True)
class ForeignClause:
    """A foreign key as the statement has it."""

    columns: tuple[str, ...]
    sql: str


@dataclass(frozen=True, slots=True)
class ColumnClauses:
    """A column, with what it is computed from and how its texts are compared."""

    name: str
    generated: str | None = None  # the expression
    computing: str | None = None  # the whole clause around it
    collation: str | None = None
    counts: bool = False  # AUTOINCREMENT


@dataclass(frozen=True, slots=True)
class TableClauses:
    """The columns of a table, its foreign keys, and what follows the last parenthesis."""

    columns: tuple[ColumnClauses, ...]
    foreign_keys: tuple[ForeignClause, ...]
    options: str


def read_clauses(sql: str, product: str) -> TableClauses:
    """Return the clauses of a CREATE TABLE statement.

    >>> read_clauses("CREATE TABLE t(a INT, b AS (a*2))", "SQLite").columns[1].generated
    'a*2'
    """
    pattern = _WORDS_OF_SQLITE if product == "SQLite" else _WORDS
    words = [w for w in pattern.finditer(sql) if not w[0].startswith(("--", "/*"))]
    items, end = _items(words)
    found = [_Item(sql, item) for item in items]
    columns = tuple(item.column() for item in found if not item.is_constraint)
    foreign_keys = tuple(key for item in found for key in item.foreign_keys())
    return TableClauses(columns, foreign_keys, sql[end:].strip())


_Word = re.Match[str]


def _items(words: list[_Word]) -> tuple[list[list[_Word]], int]:
    """Cut what stands between the outer parentheses at its commas; say where they end."""
    items: list[list[_Word]] = []
    depth = 0
    for word in words:
        if depth == 1 and word[0] == ",":
            items.append([])
            continue
        depth += _DEPTH.get(word[0], 0)
        if depth == 0 and items:
            return [item for item in items if item], word.end()
        if depth == 1 and not items:
            items.append([])
        elif items:
            items[-1].append(word)
    return [], len(words[-1].string) if words else 0


class _Item:
    """A column or a constraint of a table."""

    def __init__(self, sql: str, words: list[_Word]) -> None:
        self._sql, self._words = sql, words
        self.is_constraint = words[0][0].upper() in _CONSTRAINTS

    def column(self) -> ColumnClauses:
        opening = self._after("AS", "(")
        closing = self._closing(opening) if opening else None
        collation, counts = self._after("COLLATE"), self._after("AUTOINCREMENT", "")
        return ColumnClauses(
            _unquoted(self._words[0][0]),
            self._between(opening + 1, closing - 1) if opening and closing else None,
            self._computing(opening, closing) if opening and closing else None,
            self._dotted(collation) if collation else None,
            counts is not None,
        )

    def foreign_keys(self) -> Iterator[ForeignClause]:
        """Yield the foreign key of a constraint, or that of a column."""
        place = self._after("REFERENCES")
        if place is None:
            return
        if not self.is_constraint:
            name = _unquoted(self._words[0][0])
            rest = self._sql[self._words[place - 1].start() : self._words[-1].end()]
            yield ForeignClause((name,), f"FOREIGN KEY ({self._words[0][0]}) {rest}")
        elif (opening := self._after("KEY", "(")) is not None:
            inside = self._words[opening + 1 : self._closing(opening)]
            columns = tuple(_unquoted(word[0]) for word in inside if word[0] != ",")
            yield ForeignClause(columns, self._between(0, len(self._words) - 1))

    def _after(self, keyword: str, following: str | None = None) -> int | None:
        """The number of the word that follows a keyword outside of parentheses."""
        depth = 0
        for number, word in enumerate(self._words[1:], 2):
            depth += _DEPTH.get(word[0], 0)
            follows = self._words[number][0] if number < len(self._words) else ""
            if depth == 0 and word[0].upper() == keyword and following in (None, "", follows):
                return number
        return None

    def _closing(self, opening: int) -> int:
        """The number of the parenthesis that closes one."""
        depth = 0
        for number in range(opening, len(self._words)):
            depth += _DEPTH.get(self._words[number][0], 0)
            if depth == 0:
                return number
        return len(self._words) - 1

    def _computing(self, opening: int, closing: int) -> str:
        before = [word[0].upper() for word in self._words[opening - 3 : opening - 1]]
        first = opening - 3 if before == ["GENERATED", "ALWAYS"] else opening - 1
        following = self._words[closing + 1 : closing + 2]
        kept = following and following[0][0].upper() in ("STORED", "VIRTUAL", "PERSISTENT")
        return self._between(first, closing + 1 if kept else closing)

    def _between(self, first: int, last: int) -> str:
        return self._sql[self._words[first].start() : self._words[last].end()]

    def _dotted(self, first: int) -> str | None:
        """A name, and those that follow it with a dot."""
        last = first
        while last + 2 < len(self._words) and self._words[last + 1][0] == ".":
            last += 2
        return self._between(first, last) if first < len(self._words) else None


def _unquoted(name: str) -> str:
    """Return a name without its marks.

    >>> _unquoted('"a""b"'), _unquoted("[a]"), _unquoted("a")
    ('a"b', 'a', 'a')
    """
    if name[0] not in "\"`'[":
        return name
    return name[1:-1] if name[0] == "[" else name[1:-1].replace(2 * name[0], name[0])
