"""Statements that an archive brings: told apart, kept to definitions, moved to another schema.

An archive may come from anywhere. What it brings as SQL runs only if it is one statement that
begins like a definition; the server is asked in a way that takes no second one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = [
    "added_constraint",
    "created_index",
    "is_definition",
    "is_early",
    "moved",
    "own_row_count",
]

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
      | (?P<dollar>\$(?P<tag>[^\W\d]\w*)?\$(?:.*?)\$(?P=tag)?\$)
      | (?P<string>[eEbBxXnN]?'(?:[^'\\]|''|\\.)*')
      | (?P<quoted>[uU]?&?"(?:[^"]|"")+")
      | (?P<word>[^\W\d][\w$]*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_PLACE = rf"{_NAME}(?:\.{_NAME})*"

_DEFINITION = re.compile(
    r"""CREATE\s+(OR\s+REPLACE\s+)?(UNLOGGED\s+|UNIQUE\s+|MATERIALIZED\s+|CONSTRAINT\s+)?
        (TABLE|INDEX|VIEW|SEQUENCE|TYPE|DOMAIN|FUNCTION|PROCEDURE|AGGREGATE|TRIGGER|RULE|POLICY
        |STATISTICS|COLLATION|EXTENSION|SCHEMA|TEXT\s+SEARCH)\b
      | ALTER\s+(TABLE|INDEX|VIEW|SEQUENCE|DOMAIN|STATISTICS|TEXT\s+SEARCH)\b
      | COMMENT\s+ON\b
      | REVOKE\ (EXECUTE|USAGE)\ ON\ (FUNCTION|PROCEDURE|TYPE|SCHEMA)\ .*\ FROM\ PUBLIC\Z
      | SELECT\ pg_catalog\.setval\(
        (E'(?:[^'\\]|''|\\\\)+'|'(?:[^'\\]|'')+'),\ -?\d+,\ (true|false)\)\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_EARLY = re.compile(
    r"CREATE (UNLOGGED )?TABLE\b|ALTER TABLE ONLY .* ALTER COLUMN .* (SET DEFAULT|DROP DEFAULT|SET"
    r" NOT NULL|SET STORAGE|SET COMPRESSION)\b|ALTER TABLE .* ATTACH PARTITION ",
    re.DOTALL,
)
_CONSTRAINT = re.compile(rf"ALTER TABLE (?P<place>{_PLACE}) ADD CONSTRAINT (?P<name>{_NAME}) ")
_INDEX = re.compile(rf"CREATE UNIQUE INDEX (?P<name>{_NAME}) ON ")
_OWN_ROWS = re.compile(r"-- rows of its own: (\d{1,18})")


def is_definition(sql: str) -> bool:
    """Whether SQL is one statement that defines something.

    >>> is_definition("CREATE INDEX i ON t (a)"), is_definition("DROP TABLE t")
    (True, False)
    >>> is_definition("CREATE INDEX i ON t (a); DROP TABLE t")
    False
    """
    if not _DEFINITION.match(sql):
        return False
    kinds = [(kind, text) for kind, text in _tokens(sql) if kind != "space"]
    if ("other", ";") in kinds:
        # A routine's body, or a rule's actions; the server takes one statement.
        words = [text.upper() for kind, text in kinds[:4] if kind == "word"]
        return "BEGIN ATOMIC" in sql.upper() or (
            words[:2] == ["CREATE", "RULE"] and not _top_level(kinds, ("other", ";"))
        )
    words = [text.upper() for kind, text in kinds if kind == "word"]
    makes_rows = words[:2] == ["CREATE", "TABLE"] and _top_level(kinds, ("word", "AS"))
    return not makes_rows


def is_early(sql: str) -> bool:
    """Whether a statement of a table's block has to run before its rows come."""
    return _EARLY.match(sql) is not None


def added_constraint(sql: str) -> str | None:
    """The name of the constraint that a statement adds."""
    match = _CONSTRAINT.match(sql)
    return _unquoted(match["name"]) if match else None


def created_index(sql: str) -> str | None:
    """The name of the unique index that a statement makes."""
    match = _INDEX.match(sql)
    return _unquoted(match["name"]) if match else None


def own_row_count(sql: str) -> int | None:
    """How many rows a table has besides those of its heirs, if that is what the line says."""
    match = _OWN_ROWS.fullmatch(sql)
    return int(match[1]) if match else None


def moved(sql: str, names: Mapping[str, str]) -> str:
    """Return SQL with schemas renamed wherever a name is qualified, also in text that names things.

    >>> moved("SELECT a.b, 'a.c'::regclass FROM a.t", {"a": "x"})
    'SELECT "x".b, \\'"x".c\\'::regclass FROM "x".t'
    """
    if all(old == new for old, new in names.items()):
        return sql
    tokens = list(_tokens(sql))
    for number, (kind, text) in enumerate(tokens):
        after = tokens[number + 1 : number + 4]
        if kind in ("word", "quoted") and after[:1] == [("other", ".")]:
            before = tokens[number - 1] if number else ("", "")
            name = _unquoted(text)
            if name in names and before != ("other", "."):
                tokens[number] = kind, _quoted(names[name])
        elif kind == "string" and (
            [t for _, t in after[:3]] == [":", ":", "regclass"] or "setval" in sql[:24]
        ):
            for old, new in names.items():
                for spelt in (f"{old}.", f"{_quoted(old)}."):
                    if text.startswith(f"'{spelt}"):
                        tokens[number] = kind, f"'{_quoted(new)}.{text[len(spelt) + 1 :]}"
        elif kind == "dollar" or (kind == "word" and text.upper() == "SCHEMA" and number < 4):
            follows = [n for n in range(number + 1, len(tokens)) if tokens[n][0] != "space"]
            if kind == "word" and follows and _unquoted(tokens[follows[0]][1]) in names:
                name = _unquoted(tokens[follows[0]][1])
                tokens[follows[0]] = "quoted", _quoted(names[name])
    return "".join(text for _, text in tokens)


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup if match.lastgroup != "tag" else "dollar"
        yield kind or "other", match[0]


def _top_level(tokens: list[tuple[str, str]], wanted: tuple[str, str]) -> bool:
    """Whether a token stands outside of all parentheses."""
    depth = 0
    for kind, text in tokens:
        if kind == "other" and text in "()":
            depth += 1 if text == "(" else -1
        elif not depth and (kind, text.upper()) == wanted:
            return True
    return False


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text
