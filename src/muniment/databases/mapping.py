"""How the types of a product travel: the code maps by these tables; docs/types.md shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muniment.sql.types import parse_type

__all__ = ["TypeRow", "format_types"]

_HEAD = (
    "Original type",
    "SQL:2008 type in the archive",
    "XML",
    "Back in the same product",
    "In other products",
    "What can be lost",
)


@dataclass(frozen=True, slots=True)
class TypeRow:
    """One type of a product, and what becomes of its values.

    ``archived`` is an SQL:2008 type (parameters of the original type are carried over), or a word
    for types that depend on the declaration: "UDT", "DISTINCT", "ARRAY". ``form`` says how values
    are spelt where that is not plain. ``loss`` is empty if every value is exact.
    """

    original: str
    archived: str
    form: str = ""
    same: str = "the same type"
    others: str = "by the SQL:2008 type"
    loss: str = ""

    @property
    def xml(self) -> str:
        """The XML type of a cell, and how values are spelt in it."""
        structured = {"UDT": "udt", "ARRAY": "array", "DISTINCT": "as its base type"}
        kind = structured.get(self.archived) or f"`{parse_type(self.archived).xml}`"
        return f"{kind}, {self.form}" if self.form else kind


def format_types(product: str, rows: Iterable[TypeRow]) -> str:
    """Return one product's table in Markdown."""
    lines = [f"## {product}", "", _line(_HEAD), _line("---" for _ in _HEAD)]
    for row in rows:
        cells = (f"`{row.original}`", row.archived, row.xml, row.same, row.others)
        lines.append(_line((*cells, row.loss or "nothing")))
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
