"""mapping.txt (S_8.1.2-0): segments of large objects that lie elsewhere.

Each line holds the path of a segment's folder, a space, and the URI of the place beneath which it
lies: ``Northwind_lobs/s0_t2_c4/seg_0/ file:///mnt/store/`` means that the files are in
``/mnt/store/Northwind_lobs/s0_t2_c4/seg_0/``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Names
from pathlib import Path
from urllib.parse import quote, unquote

from muniment.errors import LobError, SiardError, UsageError

__all__ = ["NAME", "Mapping", "format_mapping", "remapped"]

NAME = "mapping.txt"
_LARGEST = 1 << 26


class Mapping:
    """Where segments lie, by the steps of their paths."""

    def __init__(self, path: Path, entries: Names[tuple[str, ...], str]) -> None:
        self.path, self.entries = path, dict(entries)
        self._depths = sorted({len(steps) for steps in self.entries}, reverse=True)

    @classmethod
    def beside(cls, archive: Path) -> Mapping | None:
        """Read the mapping.txt beside an archive, if there is one."""
        path = archive.with_name(NAME)
        return cls.read(path) if path.is_file() else None

    @classmethod
    def read(cls, path: Path) -> Mapping:
        """Read a file; raise SiardError with the line that is wrong."""
        if path.stat().st_size > _LARGEST:
            raise SiardError(f"{path} is too large for a list of folders")
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise SiardError(f"{path} is not text in UTF-8") from error
        entries: dict[tuple[str, ...], str] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            folder, _, uri = line.strip().rpartition(" ")
            steps = tuple(s for s in unquote(folder.strip()).split("/") if s not in ("", "."))
            if not steps or ".." in steps or ":" not in uri:
                raise SiardError(
                    f"{path}, line {number}: there should be a folder, a space and a URI"
                )
            if entries.setdefault(steps, uri) != uri:
                raise SiardError(f"{path}, line {number}: {folder} is mapped twice")
        return cls(path, entries)

    def find(self, steps: Sequence[str]) -> str | None:
        """Return the URI beneath which a folder lies, if it is mapped."""
        for depth in self._depths:
            if depth <= len(steps) and (uri := self.entries.get(tuple(steps[:depth]))):
                return uri
        return None

    def refuse_loop(self, steps: Sequence[str], base: str, home: Path) -> None:
        """Refuse a folder that is mapped to a place which is mapped again."""
        inside = base.removeprefix(f"{home}/")
        if inside in (base, "") or base == str(home):
            return
        again = [*inside.split("/"), *steps]
        if self.find(again):
            raise LobError(
                "/".join(steps),
                f"{self.path} loops: it maps the folder to {base}, which it maps again",
                "S_8.1.2-0",
            )


def format_mapping(entries: Iterable[tuple[str, str]]) -> bytes:
    """Return the text of a mapping.txt; folders come as paths, URIs as they are.

    >>> format_mapping([("N_lobs/s0_t2_c4/seg_0", "file:///mnt/a")])
    b'N_lobs/s0_t2_c4/seg_0/ file:///mnt/a/\\n'
    """
    lines = [
        f"{quote(folder.rstrip('/'), safe='/')}/ {uri.rstrip('/')}/\n" for folder, uri in entries
    ]
    return "".join(lines).encode()


def remapped(mapping: Mapping, moves: Names[str, str]) -> dict[str, str]:
    """Return the entries after a move: each URI that starts with an old place gets the new one."""
    used: set[str] = set()
    entries: dict[str, str] = {}
    for steps, uri in mapping.entries.items():
        for old, new in moves.items():
            if f"{uri.rstrip('/')}/".startswith(f"{old.rstrip('/')}/"):
                rest = f"{uri.rstrip('/')}/"[len(old.rstrip("/")) + 1 :]
                uri = f"{new.rstrip('/')}/{rest}"
                used.add(old)
                break
        entries["/".join(steps)] = uri
    for old in moves.keys() - used:
        raise UsageError(f"{mapping.path} maps nothing to {old}")
    return entries
