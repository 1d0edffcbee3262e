"""The moment in which a thing appears under its name, and what has appeared so far.

Who stops the work has to know which side of that moment it is: before it nothing may be left,
after it the thing is there. So a signal waits while something appears (cli/signals.py), and what is
said of it afterwards comes from here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["DATABASE", "appearing", "forget", "has_appeared", "is_appearing", "things"]

DATABASE = "the database"  # of a server

_now: list[Path | str] = []
_done: deque[Path | str] = deque(maxlen=1000)  # a server makes many


@contextmanager
def appearing(what: Path | str) -> Iterator[None]:
    """Let nobody stop the work in this block; at its end, the thing has appeared."""
    _now.append(what)
    try:
        yield
        _done.append(what)
    finally:
        _now.remove(what)


def is_appearing() -> bool:
    """Whether this is the moment in which something appears."""
    return bool(_now)


def has_appeared(what: Path | str) -> bool:
    return what in _done


def things() -> list[str]:
    """What this process has made and left where it is, in the order of its appearance."""
    return [str(thing) for thing in dict.fromkeys(_done) if _is_there(thing)]


def _is_there(thing: Path | str) -> bool:
    if isinstance(thing, str):
        return True
    return thing.exists() or thing.with_name(f"{thing.name}_part001").exists()


def forget() -> None:
    """Start with nothing."""
    _done.clear()
