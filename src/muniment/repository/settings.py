"""What a store is: its settings, in one small file at its root."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from muniment.arc.formats import format_of
from muniment.errors import StoreError, UsageError
from muniment.files import new_file
from muniment.identifiers import parse_series

__all__ = ["FILE", "Settings", "new_uuid", "now"]

FILE = "store.json"
_VERSION = 1


DEFAULT_BASE = "http://127.0.0.1:8180"  # nobody has said yet where the store will be served


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices made when a store was made; places are folders, relative to the store's."""

    id: str
    created: str
    series: str
    base_url: str = DEFAULT_BASE
    places: tuple[str, ...] = ("files",)
    format: str = "warc"
    arc_limit: int = 1_000_000_000

    def check(self) -> None:
        """Refuse settings that cannot work."""
        parse_series(self.series)
        format_of(self.format)
        if self.arc_limit < 1 or not self.places:
            raise UsageError("a store needs a place, and a limit above nothing")

    def save(self, folder: Path) -> None:
        """Write the settings of a new store."""
        self.check()
        with new_file(folder / FILE) as stream:
            data = {"store": _VERSION, **asdict(self)}
            stream.write(json.dumps(data, indent=2).encode() + b"\n")

    def change(self, folder: Path) -> None:
        """Write changed settings in the place of the old ones."""
        self.check()
        partial = folder / f".{FILE}.{os.getpid()}"
        partial.write_text(json.dumps({"store": _VERSION, **asdict(self)}, indent=2) + "\n")
        partial.replace(folder / FILE)

    @classmethod
    def load(cls, folder: Path) -> Settings:
        """Read the settings of a store."""
        path = folder / FILE
        if not path.is_file():
            raise UsageError(
                f"{folder} is not a store; make one with: muniment store init {folder}"
            )
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data.pop("store") != _VERSION:
                raise StoreError(f"{path} was written by a newer Muniment; use that one")
            found = cls(**{**data, "places": tuple(data["places"])})
            found.check()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(f"{path} is damaged: {error}") from error
        return found


def now() -> str:
    """The present in UTC, to the second."""
    return _spelled(int(time.time()))


@lru_cache(maxsize=2)
def _spelled(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_uuid() -> str:
    """Return a UUID of version 7: unique, and sorted by time, which keeps indexes compact."""
    since = time.time_ns() // 1_000_000
    try:
        chance = _chances.pop()
    except IndexError:
        chance = _draw()
    return f"{since >> 16:08x}-{since & 0xFFFF:04x}-7{chance}"


_DRAWN = 256
_chances: list[str] = []  # the random ends of UUIDs to come
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_chances.clear)  # parent and child must not draw the same


def _draw() -> str:
    """Ask the system for many random numbers at once, and return one of them."""
    digits = os.urandom(_DRAWN * 10).hex()
    fresh = [
        f"{part[1:4]}-{'89ab'[int(part[0], 16) & 3]}{part[4:7]}-{part[7:19]}"
        for part in (digits[at : at + 20] for at in range(0, len(digits), 20))
    ]
    _chances.extend(fresh[1:])
    return fresh[0]
