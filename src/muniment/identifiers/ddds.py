"""The Dynamic Delegation Discovery System (RFC 3401-3404) without the DNS: rules in, result out.

A rule is a substitution with a POSIX extended regular expression, always applied to the original
string. POSIX knows no backslash inside brackets: ``[a-z0-9\\-]`` holds a backslash, not a hyphen,
as the pattern printed in GFD.191 would need. Patterns of other dialects are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muniment.errors import IdentifierError
from muniment.identifiers.automata import (
    Alt,
    Chars,
    Group,
    Match,
    Node,
    Repeat,
    Seq,
    compile_node,
)
from muniment.identifiers.problems import Problem

__all__ = ["Naptr", "Outcome", "Substitution", "follow", "parse_substitution"]

_LIMIT = 8  # look-ups
_LONGEST = 4096
_ANY = frozenset(map(chr, range(1, 128)))
_CLASSES = {
    "alpha": str.isalpha, "digit": str.isdigit, "alnum": str.isalnum, "upper": str.isupper,
    "lower": str.islower, "space": str.isspace, "print": str.isprintable,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Substitution:
    """A pattern and what it is replaced by."""

    pattern: str
    replacement: str
    ignore_case: bool

    def apply(self, text: str) -> str | None:
        """Return what a text becomes, or None if the pattern does not match.

        RFC 3402 makes the whole result out of the replacement; what lies outside of the match is
        left out.
        """
        ere = _Ere(self.pattern, self.ignore_case)
        program = compile_node(ere.parse())
        for start in range(1 if ere.anchored else len(text) + 1):
            found = program.match(text, longest=True, start=start)
            if isinstance(found, Match) and (not ere.to_end or found.end == len(text)):
                return re.sub(
                    r"\\([0-9])",
                    lambda back, groups=found.groups: groups.get(back[1], ""),  # type: ignore[misc]
                    self.replacement,
                )
        return None


def parse_substitution(text: str) -> Substitution:
    """Read ``!pattern!replacement!flags``, whatever the delimiter is (RFC 3402, 3.2)."""
    if len(text) > _LONGEST or len(text) < 3:
        raise Problem("E_DDDS_RULE", "a rule is written !pattern!replacement!flags").error()
    mark = text[0]
    if mark.isdigit() or mark in "i\\":
        raise Problem("E_DDDS_RULE", f"{mark!r} cannot divide the parts of a rule").error()
    parts = re.split(rf"(?<!\\){re.escape(mark)}", text[1:])
    if len(parts) != 3 or parts[2] not in ("", "i", "I"):
        raise Problem("E_DDDS_RULE", f"{text!r} is not !pattern!replacement!flags").error()
    pattern, replacement = (part.replace(f"\\{mark}", mark) for part in parts[:2])
    rule = Substitution(pattern, replacement, parts[2].lower() == "i")
    groups = _Ere(pattern, rule.ignore_case)
    groups.parse()
    for back in re.findall(r"\\([0-9])", replacement):
        if back == "0" or int(back) > groups.groups:
            message = f"\\{back} stands for no group of {pattern!r}"
            raise Problem("E_DDDS_RULE", message).error()
    return rule


class _Ere:
    """Reads a POSIX extended regular expression."""

    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self.anchored = pattern.startswith("^")
        self.to_end = pattern.endswith("$") and not pattern.endswith("\\$")
        self._text = pattern[self.anchored : len(pattern) - self.to_end]
        self._ignore_case = ignore_case
        self._at = 0
        self._depth = 0
        self.groups = 0

    def parse(self) -> Node:
        self._at, self.groups = 0, 0
        node = self._alternation()
        if self._at < len(self._text):
            raise self._fault(f"{self._text[self._at]!r} is too much")
        return node

    def _fault(self, message: str) -> IdentifierError:
        return Problem("E_DDDS_PATTERN", f"{message} in {self._text!r}", self._at).error()

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _alternation(self) -> Node:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Alt(tuple(parts))

    def _sequence(self) -> Node:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated())
        return Seq(tuple(parts))

    def _repeated(self) -> Node:
        node = self._atom()
        while self._peek() and self._peek() in "*+?{":
            mark = self._peek()
            if mark == "{":
                bounds = re.compile(r"\{([0-9]{1,4})(,([0-9]{0,4}))?\}").match(self._text, self._at)
                if bounds is None:
                    raise self._fault("'{' does not begin a number of times")
                least = int(bounds[1])
                most = least if bounds[2] is None else int(bounds[3]) if bounds[3] else None
                if most is not None and most < least:
                    raise self._fault(f"{bounds[0]} is no number of times")
                self._at = bounds.end()
            else:
                least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[mark]
                self._at += 1
            node = Repeat(node, least, most)
        return node

    def _atom(self) -> Node:
        mark = self._peek()
        self._at += 1
        if mark == "(":
            return self._group()
        if mark == "[":
            return Chars(self._bracket())
        if mark == ".":
            return Chars(_ANY)
        if mark == "\\":
            escaped = self._peek()
            if not escaped or escaped.isalnum():
                raise self._fault(f"\\{escaped} has no meaning in POSIX expressions")
            self._at += 1
            return Chars(frozenset(escaped))
        if mark in "^$*+?{":
            raise self._fault(f"{mark!r} cannot stand here")
        return Chars(self._cases(frozenset(mark)))

    def _group(self) -> Node:
        self.groups += 1
        self._depth += 1
        if self._depth > 40:
            raise self._fault("groups are nested too deep")
        number = self.groups
        node = self._alternation()
        if self._peek() != ")":
            raise self._fault("'(' is not closed")
        self._at += 1
        self._depth -= 1
        return Group(str(number), node)

    def _bracket(self) -> frozenset[str]:
        """Read a bracket expression, in which a backslash is a backslash."""
        negated = self._peek() == "^"
        self._at += negated
        end = self._text.find("]", self._at + 1)
        body = re.compile(r"\]?(?:\[:[a-z]+:\]|[^\]])*").match(self._text, self._at)
        if end < 0 or body is None or self._text[body.end() : body.end() + 1] != "]":
            raise self._fault("'[' is not closed")
        self._at = body.end() + 1
        found = self._cases(frozenset(self._members(body[0])))
        return _ANY - found if negated else found

    def _members(self, body: str) -> Iterable[str]:
        at = 0
        while at < len(body):
            named = re.compile(r"\[:([a-z]+):\]").match(body, at)
            if named is not None:
                test = _CLASSES.get(named[1])
                if test is None:
                    raise self._fault(f"[:{named[1]}:] is not a class of characters")
                yield from filter(test, _ANY)
                at = named.end()
            elif body[at + 1 : at + 2] == "-" and at + 2 < len(body):
                low, high = ord(body[at]), ord(body[at + 2])
                if high < low or high > 127:
                    raise self._fault(f"{body[at : at + 3]} is not a range")
                yield from map(chr, range(low, high + 1))
                at += 3
            else:
                yield body[at]
                at += 1

    def _cases(self, characters: frozenset[str]) -> frozenset[str]:
        if not self._ignore_case:
            return characters
        return frozenset(c for each in characters for c in (each.lower(), each.upper()))


# Records and their evaluation


@dataclass(frozen=True, slots=True)
class Naptr:
    """A NAPTR record (RFC 3403): either a rule or a plain replacement."""

    order: int
    preference: int
    flags: str
    service: str
    regexp: str = ""
    replacement: str = "."


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where following the rules led: the terminal record's flag, service and result, if any."""

    valid: bool
    keys: tuple[str, ...]
    flag: str = ""
    service: str = ""
    result: str = ""
    reason: str = ""


def follow(
    text: str,
    first: str,
    records: Mapping[str, Sequence[Naptr]],
    wanted: str = "",
    limit: int = _LIMIT,
) -> Outcome:
    """Apply the first rule to a string, look up its result, and so on to a terminal rule.

    ``records`` is the database, ``wanted`` a service such as ``I2R``. S, A, U and P end the search.
    """
    key = parse_substitution(first).apply(text)
    if key is None:
        return Outcome(False, (), reason="the first rule does not match")
    keys = [key]
    for _ in range(limit):
        chosen = _choose(text, records.get(key.lower().rstrip("."), ()), wanted)
        if chosen is None:
            return Outcome(False, tuple(keys), reason=f"{key} has no rule for it")
        record, result = chosen
        if record.flags:
            return Outcome(True, tuple(keys), record.flags.upper(), record.service, result)
        key = result
        keys.append(key)
    return Outcome(False, tuple(keys), reason=f"no end after {limit} look-ups")


def _choose(text: str, records: Sequence[Naptr], wanted: str) -> tuple[Naptr, str] | None:
    ordered = sorted(records, key=lambda record: (record.order, record.preference))
    order = None
    for record in ordered:
        if order is not None and record.order != order:
            return None  # a rule of the lower order matched: higher ones are not looked at
        if record.flags.upper() not in ("", "S", "A", "U", "P"):
            continue
        result = record.replacement
        if record.regexp:
            found = parse_substitution(record.regexp).apply(text)
            if found is None:
                continue
            result = found
        services = {part.lower() for part in re.split(r"[+:]", record.service)}
        order = record.order
        if not wanted or not record.flags or wanted.lower() in services:
            return record, result
    return None
