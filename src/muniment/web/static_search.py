"""The search of a static site: the texts of all rows as scripts, which a page may load from disk.

A page that was opened from disk can read no other file but a script; so the texts are scripts of
about a megabyte, each of which hands them over to the page. They are loaded one after the other
when somebody searches.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from muniment.web.cells import Cell

__all__ = ["SearchTexts"]

_PIECE = 1 << 20  # bytes of a script


class SearchTexts:
    """Writes what can be searched, beside the pages."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "search"
        self._folder.mkdir()
        self._rows: list[tuple[int, int, str]] = []
        self._size = self._pieces = 0

    def add(self, table: int, row: int, cells: list[Cell]) -> None:
        """Take the texts of a row."""
        texts = (cell.text for cell in cells if cell.kind not in ("null", "object") and cell.text)
        text = " · ".join(texts)
        self._rows.append((table, row, text))
        self._size += len(text) + 16
        if self._size >= _PIECE:
            self._flush()

    def finish(self, tables: list[dict[str, Any]], rows_per_page: int) -> None:
        """Write what is left, and the list of what there is."""
        self._flush()
        facts = {"pieces": self._pieces, "size": rows_per_page, "tables": tables}
        self._write("list.js", "start", facts)

    def _flush(self) -> None:
        if self._rows:
            self._write(f"{self._pieces}.js", "take", self._rows)
            self._rows, self._size, self._pieces = [], 0, self._pieces + 1

    def _write(self, name: str, function: str, value: Any) -> None:
        text = f"muniment.{function}({json.dumps(value)});\n"  # ASCII alone: no encoding to guess
        (self._folder / name).write_bytes(text.encode("ascii"))
