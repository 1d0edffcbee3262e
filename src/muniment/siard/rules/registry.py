"""What a rule is, and where all of them are kept.

Each module of this package holds one chapter: its rules as ``RULES``, and the functions that check
them. docs/conformance.md is made from the rules, so they say everything in words for people.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muniment.findings import Severity

__all__ = ["Rule", "rules_of"]

_ORDER = ("1.0", "2.0", "2.1", "2.2")


@dataclass(frozen=True, slots=True)
class Rule:
    """One requirement of the standard."""

    id: str
    level: str  # "M" mandatory, "O" optional, as the standard marks it
    says: str  # the requirement, in our words
    checks: str  # what is looked at; empty if no program can check it
    remedy: str = ""  # what the producer of the archive should do
    unchecked: str = ""  # why no program can check it
    since: str = "1.0"  # the first version of SIARD that has it
    rows: bool = False  # whether it takes a pass over the rows

    @property
    def severity(self) -> Severity:
        """How much it weighs to break it."""
        return Severity.ERROR if self.level == "M" else Severity.WARNING


def rules_of(rules: Iterable[Rule], version: str) -> dict[str, Rule]:
    """Return the rules that a version of SIARD has, by id."""
    known = _ORDER.index(version)
    return {rule.id: rule for rule in rules if _ORDER.index(rule.since) <= known}
