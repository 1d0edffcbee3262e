"""Where definitions go that SIARD has no place for: a block at the end of a description.

Indexes, collations, generated columns and the like stay readable for people, and come back when an
archive is restored to the product it came from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Original", "join_original", "split_original", "with_note"]

_MARK = re.compile(
    r"(?:\A|\n\n?)-- Original definition in (?P<product>[^\n]+):\n(?P<sql>.*)\Z", re.DOTALL
)
_BETWEEN = ";\n-- next\n"


@dataclass(frozen=True, slots=True)
class Original:
    """Statements in the language of one product."""

    product: str
    statements: tuple[str, ...]


def join_original(description: str | None, original: Original) -> str:
    """Return a description that ends with the original statements.

    >>> split_original(join_original("Trees.", Original("SQLite", ("CREATE TABLE t(a)",))))
    ('Trees.', Original(product='SQLite', statements=('CREATE TABLE t(a)',)))
    """
    block = f"-- Original definition in {original.product}:\n{_BETWEEN.join(original.statements)}"
    return f"{description}\n\n{block}" if description else block


def split_original(description: str | None) -> tuple[str | None, Original | None]:
    """Return a description without its block, and the block."""
    match = _MARK.search(description or "")
    if not match or description is None:
        return description, None
    statements = tuple(match["sql"].split(_BETWEEN))
    return description[: match.start()] or None, Original(match["product"], statements)


def with_note(description: str | None, note: str) -> str:
    """Return a description with a note on a line of its own, before the original statements.

    >>> with_note("Trees.", "Not all of them.")
    'Trees.\\nNot all of them.'
    """
    words, original = split_original(description)
    words = f"{words}\n{note}" if words else note
    return join_original(words, original) if original else words
