"""SIARD: archives of relational databases, written as 2.2 and read in all versions."""

from muniment.siard.source import SiardSource, open_siard
from muniment.siard.target import LobOptions, SiardTarget, create_siard
from muniment.siard.validation import Validation, validate

__all__ = [
    "LobOptions", "SiardSource", "SiardTarget", "Validation", "create_siard", "open_siard",
    "validate",
]  # fmt: skip
