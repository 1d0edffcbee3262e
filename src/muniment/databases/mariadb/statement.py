"""Statements that come with an archive, taken apart before any of them is run.

They may define and do nothing else: no query inside a table's definition, no place in the server's
file system, no library, no connection to another server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["CreateTable", "is_definition", "parse_create"]

_TOKEN = re.compile(
    r"""(?P<space>\s+|/\*M?!\d*|\*/)
      | (?P<name>`(?:[^`]|``)+`)
      | (?P<text>'(?:[^'\\]|''|\\.)*')
      | (?P<word>[A-Za-z_$][\w$]*)
      | (?P<other>[0-9][\w.]*|[^\s\w`'"/#]|/(?!\*)|-(?!-))""",
    re.VERBOSE | re.DOTALL,
)
_ENGINES = {"INNODB", "ARIA", "MYISAM", "MEMORY", "ARCHIVE", "CSV", "ROCKSDB", "COLUMNSTORE"}
_REFUSED = {
    "SELECT",
    "LOAD_FILE",
    "SLEEP",
    "BENCHMARK",
    "DIRECTORY",
    "SONAME",
    "OUTFILE",
    "DUMPFILE",
}
_REFUSED_BEHIND = _REFUSED | {
    "AS", "CONNECTION", "UNION", "TABLE", "IGNORE", "REPLACE", "LIKE", "TABLESPACE", "WRAPPER",
}  # fmt: skip
_INDEX = re.compile(r"(?:UNIQUE |FULLTEXT |SPATIAL |VECTOR )?(?:KEY|INDEX)\b")
_NAME = r"`(?:[^`]|``)+`"
_FOREIGN = re.compile(
    rf"CONSTRAINT `(?P<name>(?:[^`]|``)+)` FOREIGN KEY [^(]*\({_NAME}(?:, {_NAME})*\) REFERENCES "
    rf"(?:{_NAME}\.)?{_NAME} \({_NAME}(?:, {_NAME})*\)"
    r"(?P<actions>(?: ON (?:DELETE|UPDATE) (?:RESTRICT|CASCADE|SET NULL|NO ACTION|SET DEFAULT))*)"
)
_DEFINITION = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:ALGORITHM\s*=\s*\w+\s+)?(?:SQL\s+SECURITY\s+\w+\s+)?"
    r"(?:AGGREGATE\s+)?(?P<kind>VIEW|TRIGGER|FUNCTION|PROCEDURE|PACKAGE(?:\s+BODY)?|EVENT|SEQUENCE)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A table's definition in parts: columns by name, keys, the rest, and the options."""

    columns: dict[str, str]
    primary: str | None
    indexes: tuple[str, ...]
    rest: tuple[str, ...]  # checks and periods
    actions: dict[str, str]  # of foreign keys, by name; the keys themselves are made later
    options: str

    @property
    def needs_indexes(self) -> bool:
        """Whether a column counts by itself, and not as the first one of the primary key."""
        for name, text in self.columns.items():
            if re.search(r"\bAUTO_INCREMENT\b", text):
                return not (self.primary or "").startswith(f"PRIMARY KEY ({_quoted(name)}")
        return False


def parse_create(sql: str) -> CreateTable | None:
    """Return the parts of a CREATE TABLE statement, or None if it is not one to be run.

    >>> keys = "PRIMARY KEY (`a`), KEY `k` (`a`)"
    >>> made = parse_create(f"CREATE TABLE `t` (`a` int, {keys}) ENGINE=InnoDB")
    >>> list(made.columns), made.primary, made.indexes, made.options
    (['a'], 'PRIMARY KEY (`a`)', ('KEY `k` (`a`)',), 'ENGINE=InnoDB')
    >>> parse_create("CREATE TABLE `t` (`a` int) AS SELECT 1") is None
    True
    """
    try:
        parts = list(_parts(sql))
    except ValueError:
        return None
    head, *elements, options = parts
    if not re.fullmatch(r"CREATE TABLE `(?:[^`]|``)+`\s*", head) or not _are_good(options):
        return None
    columns: dict[str, str] = {}
    actions: dict[str, str] = {}
    primary, indexes, rest = None, [], []
    for element in elements:
        if element.startswith("`"):
            name = re.match(r"`((?:[^`]|``)+)`", element)
            assert name is not None
            columns[name[1].replace("``", "`")] = element
        elif element.startswith("PRIMARY KEY"):
            primary = element
        elif _INDEX.match(element):
            indexes.append(element)
        elif foreign := _FOREIGN.fullmatch(element):
            actions[foreign["name"].replace("``", "`")] = foreign["actions"]
        elif re.match(r"CONSTRAINT\b|CHECK\b|PERIOD\b", element):
            rest.append(element)
        else:
            return None
    return CreateTable(columns, primary, tuple(indexes), tuple(rest), actions, options)


def is_definition(sql: str, *kinds: str) -> bool:
    """Whether a statement makes a thing of one of these kinds, in the server's own language."""
    match = _DEFINITION.match(sql)
    if match is None or " ".join(match["kind"].upper().split()) not in kinds:
        return False
    plain = re.sub(r"'(?:[^'\\]|''|\\.)*'|`(?:[^`]|``)*`", "", sql, flags=re.DOTALL)
    return re.search(r"\bSONAME\b", plain, re.IGNORECASE) is None


def _parts(sql: str) -> Iterator[str]:
    """Cut a statement at the commas of its outermost parentheses; refuse what it may not say."""
    depth, start, at, behind = 0, 0, 0, False
    while at < len(sql):
        token = _TOKEN.match(sql, at)
        if token is None:
            raise ValueError
        text = token[0]
        if token["word"] and text.upper() in (_REFUSED_BEHIND if behind else _REFUSED):
            raise ValueError
        if text == "(":
            depth += 1
            if depth == 1 and not behind:
                yield sql[start:at]
                start = at + 1
        elif text == ")":
            depth -= 1
            if depth == 0 and not behind:
                yield sql[start:at].strip()
                start, behind = at + 1, True
        elif text == "," and depth == 1 and not behind:
            yield sql[start:at].strip()
            start = at + 1
        elif text == ";" or depth < 0:
            raise ValueError
        at = token.end()
    if not behind or depth:
        raise ValueError
    yield sql[start:].strip()


def _are_good(options: str) -> bool:
    engines = re.findall(r"\bENGINE\s*=?\s*(\w+)", options, re.IGNORECASE)
    return all(engine.upper() in _ENGINES for engine in engines)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
