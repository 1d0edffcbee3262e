"""Patterns: PDIs with wildcards, and what they stand for (draft 1.2.1, 3.6.3)."""

from __future__ import annotations

from muniment.identifiers.pdi import WILDCARD, Pdi

__all__ = ["matches"]


def matches(pattern: Pdi, pdi: Pdi) -> bool:
    """Whether a PDI is one of those that a pattern stands for.

    A ``*`` stands for any value of its part. A part that the pattern leaves out is not looked at: a
    pattern without format names the resource in all of them.
    """
    if pattern.series != pdi.series:
        return False
    for wanted, given in zip(pattern[1:7], pdi[1:7], strict=True):
        if wanted is None:
            continue
        if wanted == WILDCARD:
            if given is None:
                return False
        elif wanted != given:
            return False
    return True
