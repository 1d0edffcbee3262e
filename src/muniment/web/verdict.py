"""Whether an archive is valid: found in the background, kept in the cache by its digest."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muniment import __version__
from muniment.query.cache import cache_folder, private_folder

__all__ = ["Verdict", "verdict_path"]


@dataclass
class Verdict:
    """What the validator says, or how far it is."""

    state: str = "waiting"  # "running", "done", "failed"
    rows: int = 0
    total: int = 0
    valid: bool | None = None
    version: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""

    @property
    def percent(self) -> int:
        return min(99, 100 * self.rows // self.total) if self.total else 0

    def as_json(self) -> dict[str, Any]:
        """What pages and programs see."""
        if self.state != "done":
            return {"state": self.state, "percent": self.percent, "error": self.error or None}
        return {
            "state": "done",
            "valid": self.valid,
            "version": self.version,
            "errors": self.counts.get("error", 0),
            "warnings": self.counts.get("warning", 0),
            "notes": self.counts.get("note", 0),
            "findings": self.findings,
        }

    def told(self, facts: dict[str, Any]) -> None:
        """Take a line that the validating process wrote."""
        if "valid" in facts:
            self.valid, self.version = bool(facts["valid"]), str(facts["version"])
            self.counts, self.findings = facts["counts"], facts["findings"]
            self.state = "done"
        self.rows = facts.get("rows", self.rows)
        self.total = facts.get("total", self.total)
        self.error = facts.get("error", "")

    def recall(self, digest: str) -> bool:
        """Take the verdict on an archive with this digest from the cache, if it is there."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            self.told(json.loads(verdict_path(digest).read_text(encoding="utf-8")))
        return self.state == "done"

    def keep(self, digest: str) -> None:
        """Put a verdict into the cache."""
        facts = {"valid": self.valid, "version": self.version, "counts": self.counts,
                 "findings": self.findings}  # fmt: skip
        place = verdict_path(digest)
        with suppress(OSError):  # without a cache it will be found again
            private_folder(place.parent)
            partial = place.with_name(f"{place.name}.{os.getpid()}.partial")
            partial.write_text(json.dumps(facts), encoding="utf-8")
            partial.rename(place)


def verdict_path(digest: str) -> Path:
    """Where the verdict on an archive lies; another version of Muniment may judge otherwise."""
    return cache_folder() / "verdicts" / f"{digest}-{__version__}.json"
