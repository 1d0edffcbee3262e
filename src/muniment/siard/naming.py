"""Names that are longer than SQL:2008 has room for: kept as they are, and told to people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from muniment.sql.model import Database, Role, User
from muniment.sql.names import LONGEST

__all__ = ["name_note"]

_NAMED = 3  # in one note
_SHOWN = 40  # characters


def name_note(database: Database) -> str | None:
    """Return a sentence about the names of a database that are too long, if there are any."""
    found = list(dict.fromkeys(_long_names(database)))
    if not found:
        return None
    shown = ", ".join(f"{name[:_SHOWN]}… ({len(name)})" for name in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return (
        f"names of more than the {LONGEST} characters of SQL:2008 were kept; "
        f"other products may refuse them: {shown}{more}"
    )


def _long_names(part: Any) -> Iterator[str]:
    """Yield the long names within a part of the description of a database."""
    if isinstance(part, tuple):
        for each in part:
            yield from _long_names(each)
    elif is_dataclass(part) and not isinstance(part, User | Role):
        name = getattr(part, "name", "")
        if len(name) > LONGEST:
            yield name
        for each in fields(part):
            yield from _long_names(getattr(part, each.name))
