"""What a validator says: findings, each under the rule that it breaks, and few enough to read.

A table with a million bad cells makes one finding per cell. Only the first of a kind are told one
by one; the rest are counted, and told as one finding at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

__all__ = ["Finding", "Limiter", "Severity"]

FIRST = 5  # cases of one kind that are told one by one
MOST = 200  # findings of one rule that are told one by one, whatever their kinds


class Severity(StrEnum):
    """How much a finding weighs: an error makes an archive invalid."""

    ERROR = "error"  # a mandatory requirement is not met
    WARNING = "warning"  # an optional one is not met, or something looks wrong
    NOTE = "note"  # a recommendation is not followed, or something is worth knowing


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found; ``count`` is how many cases it stands for."""

    rule: str
    severity: Severity
    where: str
    message: str
    count: int = 1


class Limiter:
    """Lets the first findings of each kind pass and counts the others."""

    def __init__(self, first: int = FIRST, most: int = MOST) -> None:
        self._first, self._most = first, most
        self._passed: dict[tuple[str, str], int] = {}
        self._told: dict[str, int] = {}
        self._held: dict[tuple[str, str], Finding] = {}

    def admit(self, finding: Finding, kind: str) -> Iterator[Finding]:
        """Yield the finding if it is one of the first of its kind (the rule is part of it)."""
        key = (finding.rule, kind)
        passed, told = self._passed.get(key, 0), self._told.get(finding.rule, 0)
        if passed < self._first and told < self._most and finding.count == 1:
            self._passed[key], self._told[finding.rule] = passed + 1, told + 1
            yield finding
            return
        if told >= self._most and key not in self._held:
            key = (finding.rule, "")  # no room for yet another kind
        held = self._held.get(key)
        count = finding.count + (held.count if held else 0)
        self._held[key] = replace(finding, count=count)

    def rest(self) -> Iterator[Finding]:
        """Yield one finding per kind for all that were held back."""
        for (_, kind), last in self._held.items():
            more = f"and {last.count} more like it, for example: " if last.count > 1 else ""
            where = last.where if kind else "…"
            yield replace(last, where=where, message=more + last.message)
        self._held.clear()
