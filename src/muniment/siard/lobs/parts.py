"""Objects that were split into parts (S_8.1.1-0; E-ARK 2.0, 5.3): found again, in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from muniment.errors import LobError, LobMissing
from muniment.siard.lobs.folders import Folder, Piece, next_segment
from muniment.siard.volumes import part_name

__all__ = ["eark_part_name", "find_parts"]

FolderAt = Callable[[tuple[str, ...]], Folder | None]
_FIRST_PART = re.compile(r"(.*)(?:_part001|\.0)", re.DOTALL)


def eark_part_name(name: str, number: int) -> str:
    """Return the name of a part in the E-ARK 2.0 layout; numbers start with 0, the last is z.

    >>> eark_part_name("record14.bin", 0), eark_part_name("record14.bin", -1)
    ('record14.bin.0', 'record14.bin.z')
    """
    return f"{name}.z" if number < 0 else f"{name}.{number}"


def find_parts(folder_at: FolderAt, steps: tuple[str, ...], name: str) -> tuple[Piece, ...]:
    """Return the pieces of an object, one or more; none if it is not there."""
    folder = folder_at(steps)
    if folder is None:
        return ()
    if piece := folder.find(name):
        if not (match := _FIRST_PART.fullmatch(name)):
            return (piece,)
        others = _siard_parts(folder_at, steps, match[1]) or _eark_parts(folder_at, steps, match[1])
        return others if len(others) > 1 else (piece,)
    return _siard_parts(folder_at, steps, name) or _eark_parts(folder_at, steps, name)


class _Walk:
    """Goes from segment to segment; a part lies where the one before it does, or in the next."""

    def __init__(self, folder_at: FolderAt, steps: tuple[str, ...]) -> None:
        self._folder_at, self._steps = folder_at, steps
        self._before: list[tuple[str, ...]] = []

    def find(self, name: str) -> Piece | None:
        following = next_segment(self._steps)
        for steps in (self._steps, following):
            if steps is None:
                continue
            folder = self._folder_at(steps)
            piece = folder.find(name) if folder else None
            if piece is not None:
                if steps is not self._steps:
                    self._before.append(self._steps)
                    self._steps = steps
                return piece
        self._refuse_disorder(name)
        return None

    def ahead(self, names: Sequence[str]) -> str | None:
        """Return which of these names lies in this segment or one of the next few."""
        steps: tuple[str, ...] | None = self._steps
        for _ in range(3):
            folder = self._folder_at(steps) if steps else None
            for name in names if folder else ():
                if folder and folder.find(name):
                    return name
            steps = next_segment(steps) if steps else None
        return None

    def _refuse_disorder(self, name: str) -> None:
        for steps in self._before:
            folder = self._folder_at(steps)
            if folder and folder.find(name):
                raise LobError(
                    name,
                    f"it lies in {steps[-1]}, before the part that precedes it: the parts are out "
                    "of order",
                    "S_8.1.1-0",
                )


def _siard_parts(folder_at: FolderAt, steps: tuple[str, ...], name: str) -> tuple[Piece, ...]:
    walk = _Walk(folder_at, steps)
    found: list[Piece] = []
    folder = folder_at(steps)
    if folder is None or folder.find(part_name(name, 1)) is None:
        later = walk.ahead([part_name(name, n) for n in (2, 3)])
        if later:
            raise LobMissing(name, f"{part_name(name, 1)} is missing, and {later} is there", _RULE)
        return ()
    while piece := walk.find(part_name(name, len(found) + 1)):
        found.append(piece)
    later = walk.ahead([part_name(name, len(found) + n) for n in (2, 3)])
    if later:
        missing = part_name(name, len(found) + 1)
        raise LobMissing(name, f"{missing} is missing, and {later} is there", _RULE)
    return tuple(found)


def _eark_parts(folder_at: FolderAt, steps: tuple[str, ...], name: str) -> tuple[Piece, ...]:
    walk = _Walk(folder_at, steps)
    folder = folder_at(steps)
    if folder is None or folder.find(eark_part_name(name, 0)) is None:
        return ()
    found: list[Piece] = []
    while piece := walk.find(eark_part_name(name, len(found))):
        found.append(piece)
    last = walk.find(eark_part_name(name, -1))
    if last is None:
        missing = eark_part_name(name, len(found))
        raise LobMissing(name, f"{missing} is missing, or the last part, {name}.z", _RULE)
    return (*found, last)


_RULE = "S_8.1.1-0"
