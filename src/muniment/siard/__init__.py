"""SIARD: archives of relational databases, written as 2.2 and read in all versions."""

from typing import TYPE_CHECKING

from muniment.lazily import on_demand
from muniment.siard.source import SiardSource, open_siard

if TYPE_CHECKING:
    from muniment.siard.journal import open_journal
    from muniment.siard.target import LobOptions, SiardTarget, create_siard
    from muniment.siard.validation import Validation, validate

__all__ = [
    "LobOptions", "SiardSource", "SiardTarget", "Validation", "create_siard", "open_journal",
    "open_siard", "validate",
]  # fmt: skip

# Who reads an archive needs neither what writes nor what judges it.
__getattr__ = on_demand(
    __name__,
    {
        "LobOptions": "target", "SiardTarget": "target", "create_siard": "target",
        "Validation": "validation", "open_journal": "journal", "validate": "validation",
    },
)  # fmt: skip
