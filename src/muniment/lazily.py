"""Packages that load their parts when somebody asks for them: who waits for a page needs few."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["on_demand"]


def on_demand(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``: ``homes`` says in which module each name stands.

    >>> on_demand("json", {"JSONDecoder": "decoder"})("JSONDecoder").__name__
    'JSONDecoder'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
