"""ABNF (RFC 5234, with the strings of RFC 7405): the syntax that a namespace registers for itself.

Rules are compiled for matching; a rule that contains itself is refused, since names need none and
matching could take for ever.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from muniment.errors import IdentifierError
from muniment.identifiers.automata import (
    Alt,
    Chars,
    Group,
    Node,
    Program,
    Repeat,
    Seq,
    compile_node,
)
from muniment.identifiers.problems import Problem

__all__ = ["Grammar", "alphabet", "longest", "parse_abnf"]

_LONGEST, _DEEPEST, _MOST_TIMES = 65_536, 40, 4096
_DIGITS = 9  # of a number of times
_MOST_NODES, _DEEPEST_RULES = 50_000, 120
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|;[^\n]*)|(?P<string>%[si]"[^"\n]*"|"[^"\n]*")|(?P<prose><[^>\n]*>)
    |(?P<number>%[xdbXDB][0-9A-Fa-f]+(?:(?:\.[0-9A-Fa-f]+)+|-[0-9A-Fa-f]+)?)
    |(?P<repeat>[0-9]*\*[0-9]*|[0-9]+)|(?P<name>[A-Za-z][A-Za-z0-9-]*)|(?P<mark>[/()\[\]])""",
    re.VERBOSE,
)
_RULE = re.compile(r"^([A-Za-z][A-Za-z0-9-]*)[ \t]*(=/|=)", re.MULTILINE)

_ALPHA = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGIT = "0123456789"
_CORE: Mapping[str, Node] = {
    "alpha": Chars(frozenset(_ALPHA)),
    "digit": Chars(frozenset(_DIGIT)),
    "hexdig": Chars(frozenset("0123456789ABCDEFabcdef")),
    "bit": Chars(frozenset("01")),
    "dquote": Chars(frozenset('"')),
    "sp": Chars(frozenset(" ")),
    "htab": Chars(frozenset("\t")),
    "wsp": Chars(frozenset(" \t")),
    "cr": Chars(frozenset("\r")),
    "lf": Chars(frozenset("\n")),
    "vchar": Chars(frozenset(map(chr, range(0x21, 0x7F)))),
    "char": Chars(frozenset(map(chr, range(1, 0x80)))),
    "octet": Chars(frozenset(map(chr, range(0x100)))),
}
_HEX = _CORE["hexdig"]
# <URN chars> of RFC 2141, 2.2, as the registration template uses it.
_PROSE: Mapping[str, Node] = {
    "urn chars": Alt(
        (
            Chars(frozenset(_ALPHA + _DIGIT + "()+,-.:=@;$_!*'/?#")),
            Seq((Chars(frozenset("%")), _HEX, _HEX)),
        )
    )
}


@dataclass(frozen=True, slots=True)
class Grammar:
    """The rules of a syntax by their names in lower case."""

    rules: Mapping[str, _Syntax]

    def node(self, start: str, groups: Collection[str] = ()) -> Node:
        """Return a rule with all others put in; the texts of ``groups`` will be known."""
        wanted = {name.lower(): name for name in groups}
        return _Expansion(self.rules, wanted).rule(start.lower(), ())

    def compile(self, start: str, groups: Collection[str] = ()) -> Program:
        """Return a rule ready to match texts."""
        return compile_node(self.node(start, groups))

    def parts(self, start: str) -> list[str]:
        """Return the rules that a rule itself names, in their order, except those of RFC 5234."""
        found: list[str] = []
        waiting: list[_Syntax] = [self.rules.get(start.lower(), Seq(()))]
        while waiting:
            match waiting.pop():
                case _Name(name) if name in self.rules and name not in found:
                    found.append(name)
                case Seq(parts) | Alt(parts):
                    waiting += reversed(parts)
                case Repeat(part) | Group(_, part):
                    waiting.append(part)
        return found

    def replaced(self, changes: Mapping[str, Node]) -> Grammar:
        """Return the grammar with other definitions for some rules."""
        lowered = {name.lower(): node for name, node in changes.items()}
        return Grammar({**self.rules, **lowered})


class _Expansion:
    """Puts rules into rules; rules that double each other would grow without end, and may not."""

    def __init__(self, rules: Mapping[str, _Syntax], wanted: Mapping[str, str]) -> None:
        self._rules, self._wanted = rules, wanted
        self._left = _MOST_NODES

    def rule(self, name: str, path: tuple[str, ...], depth: int = 0) -> Node:
        if name in path:
            way = " → ".join((*path[path.index(name) :], name))
            raise Problem("E_ABNF_RECURSIVE", f"a rule contains itself: {way}").error()
        syntax = self._rules.get(name) or _CORE.get(name)
        if syntax is None:
            raise Problem("E_ABNF_UNDEFINED", f"the rule {name} is not defined").error()
        node = self._filled(syntax, (*path, name), depth + 1)
        return Group(self._wanted[name], node) if name in self._wanted else node

    def _filled(self, syntax: _Syntax, path: tuple[str, ...], depth: int) -> Node:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST_RULES:
            message = "the syntax is too large or too deep once its rules are put into each other"
            raise Problem("E_SYNTAX_SIZE", message).error()
        match syntax:
            case _Name(name):
                return self.rule(name, path, depth)
            case Seq(parts):
                return Seq(tuple([self._filled(part, path, depth + 1) for part in parts]))
            case Alt(parts):
                return Alt(tuple([self._filled(part, path, depth + 1) for part in parts]))
            case Repeat(part, least, most):
                return Repeat(self._filled(part, path, depth + 1), least, most)
        return syntax


@dataclass(frozen=True, slots=True)
class _Name:
    """A rule by its name."""

    name: str


_Syntax = Node | _Name


def parse_abnf(text: str) -> Grammar:
    """Read rules, or raise IdentifierError with the line that is wrong."""
    if len(text) > _LONGEST:
        raise Problem("E_ABNF", f"the syntax is longer than {_LONGEST} characters").error()
    starts = list(_RULE.finditer(text))
    if not starts or text[: starts[0].start()].strip():
        raise Problem("E_ABNF", "there is no rule NAME = … at the beginning of a line").error()
    rules: dict[str, _Syntax] = {}
    further: dict[str, list[_Syntax]] = {}  # alternatives that were added by =/
    ends = [*(match.start() for match in starts[1:]), len(text)]
    for match, end in zip(starts, ends, strict=True):
        name = match[1].lower()
        line = text.count("\n", 0, match.start()) + 1
        node = _Parser(text[match.end() : end], line, match[1]).parse()
        if match[2] == "=/" and name in rules:
            further.setdefault(name, []).append(node)
            continue
        elif name in rules:
            message = f"line {line}: the rule {match[1]} is defined twice"
            raise Problem("E_ABNF", message).error()
        rules[name] = node
    for name, nodes in further.items():
        rules[name] = Alt((rules[name], *nodes))  # type: ignore[arg-type]
    return Grammar(rules)


class _Parser:
    """Reads the right side of one rule."""

    def __init__(self, text: str, line: int, rule: str) -> None:
        self._where = f"line {line}, rule {rule}"
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._fault(f"{text[at]!r} has no meaning here")
            if match.lastgroup != "space":
                self._tokens.append((str(match.lastgroup), match[0]))
            at = match.end()
        self._at = 0

    def parse(self) -> _Syntax:
        node = self._alternation(0)
        if self._at < len(self._tokens):
            raise self._fault(f"{self._tokens[self._at][1]!r} is too much")
        return node

    def _fault(self, message: str) -> IdentifierError:
        return Problem("E_ABNF", f"{self._where}: {message}").error()

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _alternation(self, depth: int) -> _Syntax:
        if depth > _DEEPEST:
            raise self._fault("brackets are nested too deep")
        parts = [self._concatenation(depth)]
        while self._peek() == ("mark", "/"):
            self._at += 1
            parts.append(self._concatenation(depth))
        return parts[0] if len(parts) == 1 else Alt(tuple(parts))  # type: ignore[arg-type]

    def _concatenation(self, depth: int) -> _Syntax:
        parts = []
        while self._peek()[1] not in ("", "/", ")", "]"):
            parts.append(self._repetition(depth))
        if not parts:
            raise self._fault("something is missing")
        return parts[0] if len(parts) == 1 else Seq(tuple(parts))  # type: ignore[arg-type]

    def _repetition(self, depth: int) -> _Syntax:
        kind, text = self._peek()
        if kind != "repeat":
            return self._element(depth)
        self._at += 1
        least, star, most = text.partition("*")
        if max(len(least), len(most)) > _DIGITS:
            raise self._fault(f"{text[:20]}… is not a number of times up to {_MOST_TIMES}")
        low = int(least or 0)
        high = low if not star else int(most) if most else None
        if (high is not None and (high < low or high > _MOST_TIMES)) or low > _MOST_TIMES:
            raise self._fault(f"{text} is not a number of times up to {_MOST_TIMES}")
        return Repeat(self._element(depth), low, high)  # type: ignore[arg-type]

    def _element(self, depth: int) -> _Syntax:
        kind, text = self._peek()
        self._at += 1
        if kind == "name":
            return _Name(text.lower())
        if kind == "string":
            return _string(text)
        if kind == "number":
            return self._number(text)
        if kind == "prose":
            known = _PROSE.get(text[1:-1].strip().lower())
            if known is None:
                raise self._fault(f"{text[:40]} is prose; a syntax that can be checked is needed")
            return known
        if text in ("(", "["):
            node = self._alternation(depth + 1)
            if self._peek()[1] != {"(": ")", "[": "]"}[text]:
                raise self._fault(f"{text!r} is not closed")
            self._at += 1
            return node if text == "(" else Repeat(node, 0, 1)  # type: ignore[arg-type]
        raise self._fault("something is missing")

    def _number(self, text: str) -> Node:
        base = {"x": 16, "d": 10, "b": 2}[text[1].lower()]
        try:
            if "-" in text:
                low, high = (int(part, base) for part in text[2:].split("-"))
                if high > 0xFF or low > high:
                    raise ValueError
                return Chars(frozenset(map(chr, range(low, high + 1))))
            codes = [int(part, base) for part in text[2:].split(".")]
            if max(codes) > 0xFF:
                raise ValueError
        except ValueError:
            raise self._fault(f"{text[:40]} does not name octets") from None
        return Seq(tuple(Chars(frozenset(chr(code))) for code in codes))


def _string(text: str) -> Node:
    exact = text.startswith("%s")
    value = text.lstrip("%si")[1:-1] if text.startswith("%") else text[1:-1]
    return Seq(tuple(Chars(frozenset(c if exact else c.lower() + c.upper())) for c in value))


def alphabet(node: Node) -> frozenset[str]:
    """Return every character that a text of this syntax can have."""
    match node:
        case Chars(allowed):
            return allowed
        case Seq(parts) | Alt(parts):
            return frozenset().union(*map(alphabet, parts))
        case Repeat(part) | Group(_, part):
            return alphabet(part)
    return frozenset()


def longest(node: Node) -> int | None:
    """Return the length of the longest text of this syntax, or None if there is no limit."""
    match node:
        case Chars():
            return 1
        case Seq(parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else sum(filter(None, lengths))
        case Alt(parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else max(map(int, filter(None, lengths)), default=0)
        case Repeat(part, _, most):
            length = longest(part)
            return 0 if length == 0 else None if most is None or length is None else most * length
        case Group(_, part):
            return longest(part)
    return None
