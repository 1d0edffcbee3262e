"""Every rule of SIARD, one module per chapter, and what checks it."""

from muniment.siard.rules import (
    container,
    correspondence,
    folders,
    general,
    levels,
    metadata,
    segments,
    tables,
)  # fmt: skip
from muniment.siard.rules.registry import Rule

__all__ = ["RULES", "Rule"]

RULES: tuple[Rule, ...] = (
    *general.RULES,
    *container.RULES,
    *folders.RULES,
    *correspondence.RULES,
    *metadata.RULES,
    *levels.RULES,
    *tables.RULES,
    *segments.RULES,
)
