"""Fragment schemes that somebody registered (draft 3.7): a table of facts, never a program.

A registration says for which media types a scheme is, and in ABNF what its positions look like;
that is all the parser needs. Only the scheme's own software can cut out what it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muniment.errors import IdentifierError, UsageError
from muniment.identifiers.abnf import parse_abnf
from muniment.identifiers.automata import Program, Stop
from muniment.identifiers.fragments import (
    Fragment,
    Position,
    Scheme,
    format_position,
    parse_fragment,
)
from muniment.identifiers.problems import Problem, Problems

__all__ = ["registered_scheme", "scheme_faults"]


def registered_scheme(name: str, body: Any) -> Scheme:
    """Return the scheme that a registration describes, or raise what is wrong with it."""
    facts = _mapping(body)
    media = _texts(facts.get("media_types"), "media_types")
    program = _program(str(facts.get("positions") or ""))
    folded = not facts.get("case_sensitive")

    def check(positions: tuple[Position, ...], _problems: Problems | None) -> tuple[Position, ...]:
        found = program.match(str(Fragment(None, positions)))
        if isinstance(found, Stop):
            message = f"{_shown(positions)!r:.60} are no positions of the scheme {name!r}"
            raise Problem("E_FRAG_SYNTAX", message).error()
        return tuple(map(_folded, positions)) if folded else positions

    return Scheme(name, str(facts.get("title") or name), tuple(media), check)


def scheme_faults(name: str, body: Any) -> Iterator[tuple[str, str]]:
    """Yield a code and a sentence for everything that is wrong with a registration."""
    try:
        facts = _mapping(body)
        scheme = registered_scheme(name, facts)
        examples = _mapping(facts.get("examples"))
        valid = _texts(examples.get("valid"), "valid examples")
        invalid = _texts(examples.get("invalid"), "invalid examples")
    except IdentifierError as error:
        yield "E_SYNTAX_ABNF", str(error)
        return
    except UsageError as error:
        yield "E_SECTION", str(error)
        return
    if not valid:
        yield "E_SECTION", "valid examples are missing"
    for example in valid:
        if fault := _fault(scheme, example):
            yield "E_EXAMPLE_INVALID", f"{example} should be valid: {fault}"
    for example in invalid:
        if not _fault(scheme, example):
            yield "E_EXAMPLE_VALID", f"{example} should be invalid and is not"


def _fault(scheme: Scheme, example: str) -> str:
    """Return what is wrong with an example, which is written SCHEME=POSITIONS."""
    try:
        fragment = parse_fragment(example.removeprefix("#"), 0)
        if fragment.scheme != scheme.name:
            return f"it does not begin with {scheme.name}="
        scheme.check(fragment.positions, None)
    except IdentifierError as error:
        return error.message
    return ""


def _program(abnf: str) -> Program:
    if not abnf.strip():
        raise UsageError("positions should be the ABNF of what follows the scheme and '='")
    grammar = parse_abnf(abnf)
    return grammar.compile(next(iter(grammar.rules)))


def _folded(position: Position) -> Position:
    if isinstance(position, str):
        return position.lower()
    return tuple(item.lower() for item in position)


def _shown(positions: tuple[Position, ...]) -> str:
    return ",".join(map(format_position, positions))


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError("a scheme and its examples are described by names and values")
    return value


def _texts(value: Any, what: str) -> list[str]:
    if value is not None and not isinstance(value, list):
        raise UsageError(f"{what} should be a list")
    return [str(each) for each in value or ()]
