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
    "final_stage",
    "is_database_setting",
    "is_definition",
    "is_early",
    "kind_and_name",
    "moved",
    "named_owner",
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
    r"""CREATE\s+(OR\s+REPLACE\s+)?
        (UNLOGGED\s+|UNIQUE\s+|MATERIALIZED\s+|CONSTRAINT\s+|DEFAULT\s+|TRUSTED\s+)?
        (TABLE|INDEX|VIEW|SEQUENCE|TYPE|DOMAIN|FUNCTION|PROCEDURE|AGGREGATE|TRIGGER|RULE|POLICY
        |STATISTICS|COLLATION|EXTENSION|SCHEMA|TEXT\s+SEARCH|OPERATOR|CAST|CONVERSION|LANGUAGE
        |ACCESS\s+METHOD|TRANSFORM|FOREIGN\s+DATA\s+WRAPPER|SERVER|USER\s+MAPPING
        |PUBLICATION|EVENT\s+TRIGGER)\b
      | ALTER\s+(TABLE|INDEX|VIEW|SEQUENCE|DOMAIN|STATISTICS|TEXT\s+SEARCH|MATERIALIZED\s+VIEW
        |OPERATOR\s+FAMILY|EVENT\s+TRIGGER|DEFAULT\s+PRIVILEGES)\b
      | ALTER\ [^;]+\ OWNER\ TO\ [^;]+\Z
      | COMMENT\s+ON\b
      | SECURITY\s+LABEL\s+FOR\b
      | REVOKE\ (EXECUTE|USAGE|CREATE)\ ON
        \ (FUNCTION|PROCEDURE|TYPE|SCHEMA|LANGUAGE)\ .*\ FROM\ PUBLIC\Z
      | REVOKE\ [A-Z]+\ ON\ (TABLE|SEQUENCE)\ .*\ FROM\ CURRENT_USER\Z
      | SELECT\ pg_catalog\.setval\(
        (E'(?:[^'\\]|''|\\\\)+'|'(?:[^'\\]|'')+'),\ -?\d+,\ (true|false)\)\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_KIND = re.compile(
    r"""(?:CREATE|ALTER|COMMENT\ ON)[ ]
    (?:DEFAULT\ (?!P)|TRUSTED\ )?
    (?P<kind>OPERATOR\ CLASS|OPERATOR\ FAMILY|OPERATOR|CAST|CONVERSION|LANGUAGE|ACCESS\ METHOD
    |TRANSFORM|FOREIGN\ DATA\ WRAPPER|SERVER|USER\ MAPPING|PUBLICATION|EVENT\ TRIGGER
    |TEXT\ SEARCH\ [A-Z]+|COLLATION|SEQUENCE|TYPE|DOMAIN|DEFAULT\ PRIVILEGES)\ (?P<name>.+)""",
    re.VERBOSE | re.DOTALL,
)
_STAGES = (  # of what follows everything else; the first that matches holds
    re.compile(r"(CREATE|ALTER|COMMENT ON) EVENT TRIGGER "),
    re.compile(r"ALTER DEFAULT PRIVILEGES |SECURITY LABEL "),
    re.compile(r"ALTER .* OWNER TO ", re.DOTALL),
    re.compile(
        r"(CREATE|COMMENT ON) PUBLICATION |ALTER .* SET TABLESPACE |REVOKE .* FROM CURRENT_USER\Z"
        r"|REVOKE USAGE ON LANGUAGE ",
        re.DOTALL,
    ),
)
_DATABASE_SETTING = re.compile(r"ALTER (ROLE .* IN )?DATABASE ", re.DOTALL)
_OWNER = re.compile(rf".* OWNER TO (?P<role>{_NAME})\Z", re.DOTALL)
_EARLY = re.compile(
    rf"""CREATE\ (UNLOGGED\ )?TABLE\b
      | ALTER\ TABLE\ ONLY\ .*\ ALTER\ COLUMN\ .*
        \ (SET\ (DEFAULT|NOT\ NULL|EXPRESSION|STORAGE|COMPRESSION)|DROP\ DEFAULT)\b
      | ALTER\ TABLE\ {_PLACE}\ (ATTACH\ PARTITION|INHERIT)\ """,
    re.VERBOSE | re.DOTALL,
)
_CONSTRAINT = re.compile(rf"ALTER TABLE (ONLY )?{_PLACE} ADD CONSTRAINT (?P<name>{_NAME}) ")
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


def final_stage(sql: str) -> int:
    """When a statement runs that follows everything else: 0 for one that does not, then 1 to 4.

    >>> final_stage("CREATE PUBLICATION p"), final_stage("ALTER TABLE t OWNER TO o")
    (1, 2)
    """
    for stage, pattern in zip((4, 3, 2, 1), _STAGES, strict=True):
        if pattern.match(sql):
            return stage
    return 0


def is_database_setting(sql: str) -> bool:
    """Whether a statement sets something for a database as a whole."""
    return _DATABASE_SETTING.match(sql) is not None


def named_owner(sql: str) -> str | None:
    """The role that becomes the owner of something."""
    match = _OWNER.match(sql)
    return _unquoted(match["role"]) if match else None


def kind_and_name(sql: str) -> tuple[str, str] | None:
    """What a statement of PostgreSQL alone makes, as a report calls it.

    >>> kind_and_name("CREATE CAST (a.b AS text) WITHOUT FUNCTION")
    ('cast', '(a.b AS text)')
    """
    match = _KIND.match(sql)
    if sql.startswith("SECURITY LABEL "):
        return "security label", sql.partition(" ON ")[2].rpartition(" IS ")[0]
    if match is None:
        return None
    kind, name = match["kind"].lower(), match["name"]
    if kind == "cast":
        return kind, name[: name.find(")") + 1]
    end = re.compile(
        r"\ (?:\(|OWNER\ |FOR\ TYPE|USING|IS\ |WITH\ |HANDLER|AS\ |ON\ |ADD\ )"
    ).search(name)
    return kind, name[: end.start()] if end else name


def is_early(sql: str) -> bool:
    """Whether a statement of a table's block has to run before its rows come.

    What is set without the word COLUMN waits until all tables are there.

    >>> is_early('ALTER TABLE ONLY t ALTER COLUMN "a" SET NOT NULL')
    True
    >>> is_early('ALTER TABLE ONLY t ALTER "a" SET NOT NULL')
    False
    >>> is_early('ALTER TABLE "s"."t" INHERIT "s"."u"')
    True
    >>> is_early("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1) NO INHERIT NOT VALID")
    False
    """
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
        elif kind == "dollar" or (
            kind == "word"
            and text.upper() == "SCHEMA"
            and (number < 4 or tokens[number - 2][1].upper() in ("IN", "ON", "WITH"))
        ):
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
