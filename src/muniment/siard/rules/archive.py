"""An archive as the rules see it: its entries, its metadata as XML and as a model, its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml import etree

from muniment.errors import SiardError
from muniment.findings import Finding, Severity
from muniment.siard.rules.registry import Rule
from muniment.siard.rules.tablexsd import TableSchema
from muniment.siard.versions import Version
from muniment.siard.zip import ZipReader
from muniment.sql.model import Database, Schema, Table

__all__ = ["Archive", "Marks", "Report", "TableFiles", "safe_parser"]


def safe_parser() -> Any:
    """Return a parser that expands nothing, fetches nothing and refuses absurd depths."""
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_pis=True, huge_tree=False
    )


class Report:
    """Takes what the checks find, as long as somebody asked for the rule."""

    def __init__(self, rules: dict[str, Rule], tell: Callable[[Finding, str], None]) -> None:
        self._rules, self._tell = rules, tell
        self.looked_at: set[str] = set()

    def look(self, *rules: str) -> None:
        """Say that there was something to check under these rules."""
        self.looked_at.update(rules)

    def __call__(
        self,
        rule: str,
        where: str,
        message: str,
        severity: Severity | None = None,
        *,
        kind: str | None = None,
        count: int = 1,
    ) -> None:
        """Report a finding; those of one ``kind`` (the message, if not given) are counted."""
        known = self._rules.get(rule)
        self.looked_at.add(rule)
        if known is not None:
            weight = severity or known.severity
            self._tell(Finding(rule, weight, where, message, count), kind or message)


@dataclass(frozen=True, slots=True)
class TableFiles:
    """A table of the metadata with the files that it should have."""

    schema: Schema
    table: Table
    xml: str  # the entry's name, whether it is there or not
    xsd: str
    definition: TableSchema | None  # None if the file is missing or no schema

    @property
    def name(self) -> str:
        """The table as people call it."""
        return f"{self.schema.name}.{self.table.name}"


class Marks:
    """A mark for each of some of an archive's entries, in a bit apiece: there may be millions."""

    def __init__(self, count: int) -> None:
        self._bits = bytearray(count // 8 + 1)

    def add(self, number: int) -> None:
        """Mark an entry."""
        self._bits[number >> 3] |= 1 << (number & 7)

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and bool(self._bits[number >> 3] & 1 << (number & 7))


@dataclass
class Archive:
    """What is known of an archive so far; later checks need what earlier ones found."""

    path: Path
    version: Version
    report: Report
    zip: ZipReader  # names start from where the archive begins
    whole: ZipReader  # names are those of the file
    root: str = ""  # the folder that everything lies in, if it was packed wrongly
    metadata: Any = None  # the root element of metadata.xml
    database: Database | None = None
    tables: list[TableFiles] = field(default_factory=list)
    unknown_types: set[str] = field(default_factory=set)  # places whose type is none of SQL's
    damaged: set[str] = field(default_factory=set)  # entries that were told already

    def has(self, name: str) -> bool:
        """Whether there is an entry of this name."""
        return name in self.zip

    def names(self) -> Iterator[str]:
        """Yield the names of all entries, seen from where the archive begins."""
        return self.zip.names()

    def read(self, name: str, limit: int) -> bytes:
        """Return a small entry; raises SiardError, and says so if the entry is damaged."""
        try:
            return self.zip.read(name, limit)
        except SiardError as error:
            if "larger than" not in str(error):
                self.damaged.add(self.root + name)
                reason = str(error).removeprefix(f"{self.path}: ")
                self.report("G_4.1-1", name, reason, kind="damaged")
            raise
