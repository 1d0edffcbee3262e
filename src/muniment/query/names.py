"""The archive's names as an SQL engine can hold them: no two may differ by case alone.

DuckDB takes TREE and tree for the same name. Where an archive has both, the later one gets a
number, and a note says so. Names that nobody can type (a megabyte long, half a surrogate pair) are
cut or escaped.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["LONGEST", "index_catalog", "unique_names"]

LONGEST = 200  # characters


def unique_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return the names, changed only where an engine that ignores case would mix them up.

    >>> unique_names(["TREE", "tree", "", "leaf"], taken=["LEAF"])
    ['TREE', 'tree_2', 'unnamed', 'leaf_2']
    """
    used = {name.casefold() for name in taken}
    unique = []
    for name in names:
        plain = name.encode("utf-8", "backslashreplace").decode()[:LONGEST] or "unnamed"
        plain = plain.replace("\0", "\\0")
        candidate, number = plain, 2
        while candidate.casefold() in used:
            candidate, number = f"{plain}_{number}", number + 1
        used.add(candidate.casefold())
        unique.append(candidate)
    return unique


def index_catalog(name: str) -> str:
    """The catalog that an archive's index is attached as."""
    return f"{name} (index)"
