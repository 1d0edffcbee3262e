"""SIARD: archives of relational databases, written as 2.2 and read in all versions."""

from muniment.siard.journal import open_journal
from muniment.siard.source import SiardSource, open_siard
from muniment.siard.target import LobOptions, SiardTarget, create_siard

__all__ = [
    "LobOptions",
    "SiardSource",
    "SiardTarget",
    "create_siard",
    "open_journal",
    "open_siard",
]
