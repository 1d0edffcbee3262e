"""A citation in the forms that people and their programs use: texts, BibTeX, RIS, CSL-JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from typing import Any

__all__ = ["STYLES", "Reference"]

_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        **{c: f"\\{c}" for c in "&%$#_{}"}}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reference:
    """What is cited: a document or a part of it, where it can be found, and when it was seen."""

    title: str
    identifier: str  # the PDI with its fragment, or what stands for it
    seen: date
    author: str = ""
    publisher: str = ""
    issued: str = ""  # YYYY-MM-DD, or less
    version: str = ""
    part: str = ""
    url: str = ""
    sha256: str = ""
    medium: str = "Database"

    @property
    def year(self) -> str:
        return self.issued[:4] if re.match(r"\d{4}", self.issued) else "n.d."

    @property
    def key(self) -> str:
        """A key for bibliographies: the same for the same thing."""
        words = re.findall(r"[a-z0-9]+", (self.author or self.title).lower())
        tail = "-".join(re.findall(r"[a-z0-9]+", self.identifier.lower())[-6:])
        return f"{words[0] if words else 'archive'}{self.year}-{tail}"[:80]

    def plain(self) -> str:
        """Everything that lets somebody find and check it in fifty years."""
        digest = f" SHA-256 {self.sha256}." if self.sha256 else ""
        by = f"{self.author} " if self.author else ""
        kept = f" {self.publisher}." if self.publisher else ""
        return (
            f"{by}({self.year}): {self._named()}.{kept} {self.identifier}.{digest} "
            f"Seen {self.seen.isoformat()}."
        )

    def iso690(self) -> str:
        """In the order of ISO 690: creator, title, medium, version, publisher, date, access."""
        parts = [f"{self.author.upper()}. " if self.author else ""]
        parts.append(f"{self._named()} [{self.medium}]. ")
        parts.append(f"Version {self.version}. " if self.version else "")
        parts.append(f"{self.publisher}, " if self.publisher else "")
        parts.append(f"{self.issued or self.year} [viewed {self.seen.isoformat()}]. ")
        return "".join(parts) + f"Identifier: {self.identifier}." + self._available()

    def author_date(self) -> str:
        """Author and date first, as in the social and natural sciences."""
        who = self.author or self.publisher or self.title
        version = f" (Version {self.version})" if self.version else ""
        kept = f" {self.publisher}." if self.publisher and self.author else ""
        title = self._named() if who != self.title else self.part or self.title
        return f"{who}. ({self.year}). {title}{version} [{self.medium}].{kept} {self.identifier}"

    def notes(self) -> str:
        """As a footnote, in the humanities."""
        who = f"{self.author}, " if self.author else ""
        kept = f"{self.publisher}, " if self.publisher else ""
        return (
            f"{who}“{self._named()},” {kept}{self.issued or self.year}, "
            f"{self.identifier} (accessed {self.seen.isoformat()})."
        )

    def bibtex(self) -> str:
        """An entry for BibTeX and biblatex; only a PDI is an eprint, another name is a text."""
        has_pdi = self.identifier.startswith("pdi://")
        name = {"eprint": self.identifier, "eprinttype": "pdi"}
        fields = {
            "title": self._named(), "author": f"{{{_tex(self.author)}}}" if self.author else "",
            "year": self.issued[:4], "date": self.issued, "publisher": self.publisher,
            "version": self.version,
            **(name if has_pdi else {"howpublished": self.identifier}),
            "url": self.url, "urldate": self.seen.isoformat(),
            "note": f"SHA-256 {self.sha256}" if self.sha256 else "",
        }  # fmt: skip
        exact = {"author", "url"}  # the one is protected already, the other is no text
        lines = [
            f"  {name} = {{{value if name in exact else _tex(value)}}},"
            for name, value in fields.items()
            if value
        ]
        return "\n".join([f"@misc{{{self.key},", *lines, "}"])

    def ris(self) -> str:
        """A record for reference managers."""
        tags = [
            ("TY", "DBASE"), ("AU", self.author), ("TI", self._named()), ("PB", self.publisher),
            ("PY", self.issued[:4]), ("DA", self.issued.replace("-", "/")), ("ET", self.version),
            ("AN", self.identifier), ("UR", self.url), ("Y2", self.seen.isoformat()),
            ("N1", f"SHA-256 {self.sha256}" if self.sha256 else ""), ("ER", ""),
        ]  # fmt: skip
        lines = [f"{tag}  - {_line(value)}" for tag, value in tags if value or tag == "ER"]
        return "\r\n".join(lines) + "\r\n"

    def csl(self) -> list[dict[str, Any]]:
        """A list of one item of CSL-JSON."""
        item: dict[str, Any] = {"id": self.key, "type": "dataset", "title": self._named()}
        if self.author:
            item["author"] = [{"literal": self.author}]
        if numbers := [int(part) for part in re.findall(r"\d+", self.issued)[:3]]:
            item["issued"] = {"date-parts": [numbers]}
        seen = [self.seen.year, self.seen.month, self.seen.day]
        item["accessed"] = {"date-parts": [seen]}
        more = {"publisher": self.publisher, "version": self.version, "number": self.identifier,
                "URL": self.url, "medium": self.medium,
                "note": f"SHA-256 {self.sha256}" if self.sha256 else ""}  # fmt: skip
        return [{**item, **{name: value for name, value in more.items() if value}}]

    def texts(self) -> dict[str, str]:
        """All forms by name, in the order in which people should see them."""
        return {
            "plain": self.plain(),
            "author_date": self.author_date(),
            "notes": self.notes(),
            "iso690": self.iso690(),
            "bibtex": self.bibtex(),
            "ris": self.ris(),
            "csl": json.dumps(self.csl(), ensure_ascii=False, indent=1),
        }

    def _named(self) -> str:
        return f"{self.title}, {self.part}" if self.part else self.title

    def _available(self) -> str:
        return f" Available from: {self.url}" if self.url else ""


STYLES = ("plain", "author_date", "notes", "iso690", "bibtex", "ris", "csl")


def _tex(text: str) -> str:
    return "".join(_TEX.get(character, character) for character in _line(text))


def _line(text: str) -> str:
    """One line: a value must not end its field."""
    return " ".join(text.split())
