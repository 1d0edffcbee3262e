"""Whether a URN is valid, assigned, and what it stands for, by its own registration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.errors import IdentifierError, NameRefused, UsageError
from muniment.identifiers.ddds import Naptr, Outcome, follow, parse_substitution
from muniment.identifiers.problems import Problem
from muniment.identifiers.urn import parse_pdi_urn, parse_urn_2141
from muniment.registry.registration import Registration
from muniment.registry.workflow import Registry

__all__ = ["Verdict", "assign", "assigned_to", "follow_rules", "same", "validate"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything there is to say about a URN. ``assigned`` is None where nobody can know."""

    urn: str
    problems: tuple[Problem, ...]
    canonical: str | None = None
    snid: str | None = None
    state: str = "unknown"
    version: int = 0
    assigned: bool | None = None
    assignable: tuple[Problem, ...] = ()
    resolves: tuple[str, ...] = ()
    key: str | None = None

    @property
    def valid(self) -> bool:
        """Whether the syntax is right and the subnamespace is assigned."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "urn": self.urn,
            "valid": self.valid,
            "canonical": self.canonical,
            "snid": self.snid,
            "state": self.state,
            "registration_version": self.version or None,
            "assigned": self.assigned,
            "not_assignable": [problem.code for problem in self.assignable],
            "resolves": list(self.resolves),
            "ddds_key": self.key,
            "problems": [
                {"code": p.code, "message": p.message, "position": p.position}
                for p in self.problems
            ],
        }


def validate(registry: Registry, text: str) -> Verdict:
    """Judge a URN below the root of the registry."""
    root = registry.root
    syntax = f"E_{root.upper()}_SYNTAX"
    try:
        urn = parse_urn_2141(text)
    except IdentifierError as error:
        code = syntax if error.code == "E_URN" else error.code
        return Verdict(text, (Problem(code, error.message, error.position),))
    snid, colon, rest = urn.nss.partition(":")
    if urn.nid.lower() != root or not (colon and snid and rest):
        message = f"a name below this root is urn:{root}:SUBNAMESPACE:STRING"
        return Verdict(text, (Problem(syntax, message, 4),))
    if snid.lower() == "pdi":
        return _pdi(registry, text)
    entry = registry.entry("namespace", snid)
    registration = entry.registration
    if registration is None:
        message = f"the subnamespace {snid.lower()} is not assigned ({entry.state})"
        problem = Problem("E_SNID_UNASSIGNED", message, len(root) + 5)
        return Verdict(text, (problem,), snid=snid.lower(), state=entry.state)
    year = registry.names.clock().year
    problems = tuple(registration.check(text, year))
    if problems:
        return Verdict(text, problems, None, entry.name, entry.state, entry.version)
    canonical = registration.canonical(text)
    targets = _assignment(registry, canonical)
    return Verdict(
        text, (), canonical, entry.name, entry.state, entry.version,
        assigned=targets is not None,
        assignable=tuple(registration.not_assignable(text, year)),
        resolves=tuple(targets or ()),
        key=_key(registration, canonical),
    )  # fmt: skip


def _pdi(registry: Registry, text: str) -> Verdict:
    """A PDI in its URN form: the book of names knows whether it was given."""
    try:
        pdi = parse_pdi_urn(text, registry.root, schemes=registry.names.schemes)
    except IdentifierError as error:
        return Verdict(text, (Problem(error.code, error.message, error.position),), snid="pdi")
    found = registry.names.resolve(pdi)
    resolves = () if found.binding is None else (found.binding.location,)
    canonical = f"urn:{registry.root}:pdi:{text.split(':', 3)[3]}"
    known = None if found.status == "elsewhere" else found.status != "unknown"
    return Verdict(text, (), canonical, "pdi", "assigned", 1, known, (), resolves)


def _assignment(registry: Registry, canonical: str) -> list[str] | None:
    """Return what a URN was assigned to, or None if it never was."""
    events = list(registry.names.current().events("registry.assign", canonical))
    if not events:
        return None
    return [target for _, event in events for target in event["targets"]]


def assigned_to(registry: Registry, target: str, most: int = 100) -> list[str]:
    """Return the URNs that were assigned to something, oldest first."""
    rows = registry.names.current().db.execute(
        "SELECT urn FROM target WHERE target=? ORDER BY line LIMIT ?", (target, most)
    )
    return list(dict.fromkeys(urn for (urn,) in rows))


def assign(registry: Registry, text: str, targets: Sequence[str], by: str) -> str:
    """Assign a URN to a resource, once and for ever; return its canonical form."""
    if not by.strip():
        raise UsageError("say who does this with --by")
    with registry.names.turn() as state:
        verdict = validate(registry, text)
        for problem in (*verdict.problems, *verdict.assignable):
            raise NameRefused(f"{text} cannot be assigned: {problem.message}")
        if verdict.assigned:
            raise NameRefused(f"{verdict.canonical} is assigned already, and for ever")
        if verdict.state != "assigned":
            raise NameRefused(f"the subnamespace {verdict.snid} is {verdict.state}", 405)
        record = {"kind": "registry.assign", "subject": verdict.canonical, "written": text}
        version = {"version": verdict.version, "targets": list(targets), "by": by}
        after = registry.names.append(state, [{**record, **version}])
    registry.names.journal.sync(after.end)
    return str(verdict.canonical)


def same(registry: Registry, one: str, other: str) -> bool:
    """Whether two URNs are equivalent by the rules of their namespace."""
    first, second = validate(registry, one), validate(registry, other)
    for verdict in (first, second):
        if verdict.problems:
            raise verdict.problems[0].error()
    return first.canonical == second.canonical


def _key(registration: Registration, canonical: str) -> str | None:
    if not registration.ddds:
        return None
    key = parse_substitution(registration.ddds).apply(canonical)
    return None if key is None else key.lower()


def follow_rules(
    registry: Registry, text: str, records: Mapping[str, Sequence[Naptr]], service: str = ""
) -> Outcome:
    """Validate a URN by the rules of its DDDS, with the records of a file instead of the DNS."""
    verdict = validate(registry, text)
    for problem in verdict.problems:
        raise problem.error()
    registration = registry.registration(str(verdict.snid))
    if not registration.ddds:
        raise UsageError(f"the subnamespace {verdict.snid} has no DDDS rule")
    return follow(str(verdict.canonical), registration.ddds, records, service)
