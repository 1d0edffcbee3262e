"""Writes docs/types.md from the tables by which the code maps types: ``make docs`` calls it."""

from __future__ import annotations

import sys
from pathlib import Path

from muniment import databases
from muniment.databases.mapping import format_types

_HEAD = """# Types

How each type of each product travels: into the archive, back into the same product, and into others. This page is
made from the tables in the code (`make docs`); a test keeps it up to date.

Values that a type of the archive cannot hold stop the work with the table, the column and the row;
`--as-text SCHEMA.TABLE.COLUMN` archives such a column as text, spelt as the product spells it.
"""


def types_page() -> str:
    """Return the whole page."""
    tables = databases.type_tables().items()
    return "\n".join([_HEAD, *(format_types(name, rows) for name, rows in tables)])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(types_page())
