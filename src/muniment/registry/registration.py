"""The registration of a subnamespace: the template's sections, and what a program can check.

Read from YAML or JSON as ``example.yaml`` shows it. What prose says for people, ``syntax``,
``equivalence``, ``attributes``, ``services`` and ``examples`` say for programs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote_to_bytes

from muniment.errors import UsageError
from muniment.identifiers.abnf import Grammar, parse_abnf
from muniment.identifiers.automata import Match, Program, Stop
from muniment.identifiers.problems import Problem

__all__ = ["CHAPTERS", "OPTIONAL", "SECTIONS", "TOGETHER", "Registration", "example"]

CHAPTERS: Mapping[str, str] = {
    "1": "Registration",
    "2": "Syntax",
    "3": "Services",
    "4": "Namespace Considerations",
    "5": "Community Considerations",
}
SECTIONS: Mapping[str, str] = {
    "1.1": "Namespace Identifier",
    "1.2": "Document Version",
    "1.3": "Declared Registrant",
    "2.1": "Syntactic Structure",
    "2.2": "Reserved Use",
    "2.3": "Encoding",
    "2.4": "Rules for Lexical Equivalence",
    "3.1": "Validation mechanism",
    "3.2": "Process for identifier resolution",
    "4.1": "Scope",
    "4.2": "Identifier uniqueness considerations",
    "4.3": "Exposition of Structure",
    "5.1": "Process of identifier assignment",
    "5.2": "Identifier immutability considerations",
    "6": "Examples",
    "7": "Relevant Ancillary Documentation",
    "8": "Changes from Previous Versions / Prior Usage",
}
TOGETHER = tuple(  # sections that may be combined with each other
    map(frozenset, (("2.1", "2.2", "2.3"), ("3.1", "3.2"), ("4.1", "4.2", "4.3")))
)
OPTIONAL = frozenset({"1.3", "3.1", "3.2", "6", "7", "8"})
_COMBINED = re.compile(r"(?i)^combined with (?:section )?([0-9.]+)$")
_IDENTIFIER = re.compile("[A-Za-z0-9][A-Za-z0-9-]{0,31}")
_HEX = re.compile("%[0-9A-Fa-f]{2}")
_STEPS = ("case", "hex-case")
_MOST_OCTETS = 8192


@dataclass(frozen=True)
class Registration:
    """One version of a registration, as it was handed in."""

    snid: str
    sections: Mapping[str, str]
    abnf: str
    start: str
    max_octets: int | None
    percent: bool
    utf8: bool  # whether escapes stand for UTF-8
    assignable: Mapping[str, str | None]
    limits: Mapping[str, Mapping[str, Any]]
    attributes: Mapping[str, Mapping[str, Any]]
    steps: Sequence[str]
    equal: Sequence[Sequence[str]]
    different: Sequence[Sequence[str]]
    assignment: Mapping[str, Any]
    ddds: str | None
    valid: Sequence[str]
    invalid: Sequence[str]
    body: Mapping[str, Any]

    @classmethod
    def read(cls, body: Any) -> Registration:
        """Take a registration from the content of a YAML or JSON file."""
        whole = _mapping(body, "the registration")
        syntax = _mapping(whole.get("syntax"), "syntax")
        same = _mapping(whole.get("equivalence"), "equivalence")
        examples = _mapping(whole.get("examples"), "examples")
        services = _mapping(whole.get("services"), "services")
        limit = syntax.get("max_octets")
        steps = [str(step) for step in _sequence(same.get("steps"), "equivalence steps")]
        if unknown := set(steps) - set(_STEPS):
            raise UsageError(f"{sorted(unknown)[0]!r} is not a step of equivalence: {_STEPS}")
        return cls(
            snid=str(whole.get("snid") or ""),
            sections={
                str(k): str(v) for k, v in _mapping(whole.get("sections"), "sections").items()
            },
            abnf=str(syntax.get("abnf") or ""),
            start=str(syntax.get("start") or ""),
            max_octets=limit if isinstance(limit, int) and 0 < limit <= _MOST_OCTETS else None,
            percent=bool(syntax.get("percent")),
            utf8=str(syntax.get("percent")).lower() == "utf-8",
            assignable={
                name: None if rule is None else str(rule)
                for name, rule in _mapping(syntax.get("assignable"), "assignable").items()
            },
            limits=_mappings(syntax.get("limits"), "limits"),
            attributes=_mappings(whole.get("attributes"), "attributes"),
            steps=steps,
            equal=_pairs(same.get("equal"), "equal"),
            different=_pairs(same.get("different"), "different"),
            assignment=_mapping(whole.get("assignment"), "assignment"),
            ddds=str(services["ddds"]) if services.get("ddds") else None,
            valid=[str(each) for each in _sequence(examples.get("valid"), "valid examples")],
            invalid=[str(each) for each in _sequence(examples.get("invalid"), "invalid examples")],
            body=whole,
        )

    def combined(self, number: str) -> str | None:
        """Return the section that stands for this one, if it says that it is combined."""
        match = _COMBINED.match(self.sections.get(number, "").strip())
        return match[1] if match else None

    @cached_property
    def grammar(self) -> Grammar:
        """The rules of the syntax."""
        return parse_abnf(self.abnf)

    @cached_property
    def program(self) -> Program:
        """The syntax, ready to match."""
        return self.grammar.compile(self.start, tuple(self.attributes))

    def canonical(self, text: str) -> str:
        """Return the form in which equivalent names are the same."""
        if "case" in self.steps:
            text = text.lower()
        text = _HEX.sub(lambda match: match[0].upper(), text)
        root = text.split(":", 3)
        if len(root) == 4:  # urn, root and subnamespace never depend on case (RFC 6453)
            text = ":".join([*(part.lower() for part in root[:3]), root[3]])
        return text

    def check(self, text: str, year: int) -> list[Problem]:
        """Return what is wrong with a name by the rules of this namespace."""
        limit = self.max_octets or _MOST_OCTETS
        if len(text.encode("utf-8", "surrogatepass")) > limit:
            message = f"a name of this namespace has at most {limit} octets"
            return [Problem("E_LENGTH", message, limit)]
        if "%" in text and not self.percent:
            message = "percent-escapes are not allowed in this namespace"
            return [Problem("E_PERCENT", message, text.index("%"))]
        if self.utf8 and _characters(text) is None:
            return [Problem("E_PERCENT_UTF8", "the escapes are no characters of UTF-8")]
        found = self.program.match(text)
        if isinstance(found, Stop):
            return [_stopped(text, found)]
        return list(self._implausible(found, year))

    def _implausible(self, found: Match, year: int) -> list[Problem]:
        problems = []
        for rule, limit in self.limits.items():
            value = found.groups.get(rule)
            low, high = (_bound(limit.get(side), year) for side in ("from", "to"))
            if value is None or not value.isdigit():
                continue
            if (low is not None and int(value) < low) or (high is not None and int(value) > high):
                message = f"{rule} {value} is implausible: {low or '…'} to {high or '…'}"
                problems.append(Problem(f"E_{rule}_IMPLAUSIBLE", message))
        return problems

    def not_assignable(self, text: str, year: int) -> list[Problem]:
        """Return why a valid name may not be assigned now."""
        found = self.program.match(text)
        if isinstance(found, Stop):
            return [_stopped(text, found)]
        problems = []
        characters = _characters(text)
        if self.utf8 and characters and normalize("NFKD", characters) != characters:
            message = "only characters in their decomposed form (NFKD) are assigned"
            problems.append(Problem("N_PERCENT_NFKD", message))
        for rule, syntax in self.assignable.items():
            value = found.groups.get(rule)
            if value is None:
                continue
            fits = syntax is not None and isinstance(
                parse_abnf(f"{rule} = {syntax}").compile(rule).match(value), Match
            )
            if not fits:
                message = f"{rule} {value!r} is reserved for later use"
                problems.append(Problem(f"N_{rule}_RESERVED", message))
        for rule, limit in self.limits.items():
            wanted = _bound(limit.get("assign"), year)
            if wanted is not None and found.groups.get(rule) != str(wanted):
                message = f"{rule} must be {wanted} in an assignment of today"
                problems.append(Problem(f"N_{rule}_ASSIGN", message))
        return problems


def example(root: str, snid: str) -> str:
    """Return the example of GFD.191 as a registration of a subnamespace, for others to change."""
    for part in (root, snid):
        if not _IDENTIFIER.fullmatch(part):
            raise UsageError(f"{part!r} is not 1 to 32 letters, digits and hyphens")
    text = files("muniment.registry").joinpath("example.yaml").read_text(encoding="utf-8")
    changes = {
        "URN:OGF:Example": f"URN:{root.upper()}:{snid.capitalize()}",
        "urn:ogf:example": f"urn:{root}:{snid}", '"urn:ogf:"': f'"urn:{root}:"',
        'SNID     = "example"': f'SNID     = "{snid}"', "snid: example\n": f"snid: {snid}\n",
        "propose example --from example.yaml": f"propose {snid} --from {snid}.yaml",
    }  # fmt: skip
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def _characters(text: str) -> str | None:
    """Return a name with its escapes as characters, or None if they are none."""
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _stopped(text: str, stop: Stop) -> Problem:
    if stop.position == len(text) and stop.missing:
        rule = stop.missing[0]
        return Problem(f"E_MISSING_{rule}", f"{rule} is missing", stop.position)
    if len(stop.inside) == 1:
        (rule,) = stop.inside
        return Problem(f"E_{rule}", f"{text[stop.position :]!r:.40} is no {rule}", stop.position)
    return Problem("E_SYNTAX", f"nothing may follow {text[: stop.position]!r:.60}", stop.position)


def _bound(value: Any, year: int) -> int | None:
    return year if value == "this-year" else value if isinstance(value, int) else None


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(f"{what} should be a mapping of names to values")
    return {str(key): each for key, each in value.items()}


def _mappings(value: Any, what: str) -> dict[str, dict[str, Any]]:
    return {name: _mapping(each, f"{what}: {name}") for name, each in _mapping(value, what).items()}


def _pairs(value: Any, what: str) -> list[list[str]]:
    pairs = _sequence(value, what)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise UsageError(f"{what} should be a list of pairs of names")
    return [[str(one), str(other)] for one, other in pairs]


def _sequence(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise UsageError(f"{what} should be a list")
    return value
