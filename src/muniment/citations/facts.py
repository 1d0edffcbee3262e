"""What is said about a cited query: how it is recognised, and described to others."""

from __future__ import annotations

from typing import Any

from muniment.identifiers import Pdi
from muniment.names import Names

__all__ = ["described", "facts_of", "is_query"]


def facts_of(names: Names, pdi: Pdi) -> dict[str, Any]:
    """Return what was said about a document; of several statements the latest."""
    return {each.predicate: each.value for each in names.assertions(str(pdi.generic))}


def is_query(names: Names, pdi: Pdi) -> bool:
    """Whether a name is that of a cited query."""
    return any(each.value == "query" for each in names.assertions(str(pdi.generic), "type"))


def described(names: Names, pdi: Pdi) -> list[tuple[str, str]]:
    """Return as Dublin Core what was said about a document that has no record of its own."""
    facts = facts_of(names, pdi)
    pairs = [(name, str(facts[name])) for name in ("title", "creator") if facts.get(name)]
    if "query" in facts:
        pairs += [("description", str(facts["citation"])), ("source", str(facts["query"]))]
        pairs += [("source", str(each)) for each in facts["executedAgainst"].values()]
        pairs += [("date", str(facts["executedAt"])), ("type", "query")]
    return pairs
