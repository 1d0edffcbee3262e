"""Firebird 3, both ways: a file opened by the engine itself, or a server."""

from muniment.databases.firebird.source import FirebirdSource, open_source
from muniment.databases.firebird.target import FirebirdTarget, create_target
from muniment.databases.firebird.types import TYPES

__all__ = ["TYPES", "FirebirdSource", "FirebirdTarget", "create_target", "open_source"]
