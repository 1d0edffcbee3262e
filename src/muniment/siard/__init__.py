"""SIARD: archives of relational databases, written as 2.2 and read in all versions."""

from typing import TYPE_CHECKING, Any

from muniment.siard.journal import open_journal
from muniment.siard.source import SiardSource, open_siard
from muniment.siard.target import LobOptions, SiardTarget, create_siard

if TYPE_CHECKING:
    from muniment.siard.validation import Validation, validate

__all__ = [
    "LobOptions", "SiardSource", "SiardTarget", "Validation", "create_siard", "open_journal",
    "open_siard", "validate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load the validator when somebody asks for it: most do not, and it is heavy."""
    if name in ("Validation", "validate"):
        from muniment.siard import validation

        return getattr(validation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
