"""What descriptions hold besides people's words: notes of the archive, and original definitions.

A note says what whoever describes a table later should not erase: that not all of its rows were
archived, say. It is a line that begins with ABOUT. Definitions that SIARD has no place for are a
block at the end: indexes, collations, generated columns and the like stay readable for people, and
come back when an archive is restored to the product it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from muniment.errors import UsageError

__all__ = [
    "ABOUT", "Original", "beside_table", "join_original", "notes_in", "refuse_imitation",
    "split_notes", "split_original", "with_note", "with_words", "without_tables",
]  # fmt: skip

ABOUT = "About this archive: "

_ORIGINAL = "-- Original definition in "
_MARK = re.compile(rf"(?:\A|\n\n?){_ORIGINAL}(?P<product>[^\n]+):\n(?P<sql>.*)\Z", re.DOTALL)
_BESIDE = re.compile(r"\s*CREATE\s+(?:UNIQUE\s+)?(?:INDEX|TRIGGER)\b", re.IGNORECASE)
_BETWEEN = ";\n-- next\n"
_NOTES = re.compile(rf"(?:\A|\n+)(?P<notes>{ABOUT}.*)\Z", re.DOTALL)
_IMITATION = re.compile(rf"(?:\A|[\r\n])(?P<mark>{ABOUT}|{_ORIGINAL})")


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
    block = f"{_ORIGINAL}{original.product}:\n{_BETWEEN.join(original.statements)}"
    return f"{description}\n\n{block}" if description else block


def split_original(description: str | None) -> tuple[str | None, Original | None]:
    """Return a description without its block, and the block."""
    match = _MARK.search(description or "")
    if not match or description is None:
        return description, None
    statements = tuple(match["sql"].split(_BETWEEN))
    return description[: match.start()] or None, Original(match["product"], statements)


def beside_table(statements: Iterable[str]) -> tuple[str, ...]:
    """Return those statements that make indexes and triggers of a table."""
    return tuple(filter(_BESIDE.match, statements))


def without_tables(description: str | None) -> str | None:
    """Return a description whose original makes nothing but what is beside the table."""
    words, original = split_original(description)
    kept = beside_table(original.statements) if original else ()
    return join_original(words, Original(original.product, kept)) if original and kept else words


def split_notes(description: str | None) -> tuple[str | None, str | None]:
    """Return people's words, and the notes of the archive that follow them; no original.

    >>> split_notes("Trees.\\nAbout this archive: Not all of them.")
    ('Trees.', 'About this archive: Not all of them.')
    """
    words, _ = split_original(description)
    match = _NOTES.search(words or "")
    if not match or words is None:
        return words, None
    return words[: match.start()] or None, match["notes"]


def notes_in(description: str | None) -> list[str]:
    """Return the notes of the archive, one by one."""
    _, notes = split_notes(description)
    return f"\n{notes}".split(f"\n{ABOUT}")[1:] if notes else []


def with_note(description: str | None, note: str) -> str:
    """Return a description with a note on a line of its own, before the original statements.

    >>> with_note("Trees.", "Not all of them.")
    'Trees.\\nAbout this archive: Not all of them.'
    """
    words, original = split_original(description)
    words = f"{words}\n{ABOUT}{note}" if words else f"{ABOUT}{note}"
    return join_original(words, original) if original else words


def with_words(description: str | None, words: str | None) -> str | None:
    """Return a description with other words, and all that stands behind them.

    >>> with_words("Trees.\\nAbout this archive: Not all of them.", "Old trees.")
    'Old trees.\\nAbout this archive: Not all of them.'
    """
    _, notes = split_notes(description)
    _, original = split_original(description)
    text = "\n".join(filter(None, (words, notes))) or None
    return join_original(text, original) if original else text


def refuse_imitation(where: str, words: str) -> None:
    """Raise UsageError for words of people that would be taken for what the archive itself says."""
    if found := _IMITATION.search(words):
        raise UsageError(
            f"the description of {where} has a line that begins with {found['mark'].strip()!r}, "
            "as only what the archive says of itself does; put it in other words"
        )
