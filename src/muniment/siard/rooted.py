"""Archives that were packed with a folder around everything: seen from inside that folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muniment.siard.directory import Entry
from muniment.siard.zip import ZipReader

__all__ = ["RootedZip", "find_root"]


def find_root(names: Iterable[str]) -> str:
    """Return the folder that a whole archive lies in; empty if it is packed as it should be.

    >>> find_root(["shop/content/", "shop/header/metadata.xml"])
    'shop/'
    """
    roots = {
        name.removesuffix("header/metadata.xml")
        for name in names
        if name == "header/metadata.xml" or name.endswith("/header/metadata.xml")
    }
    return next(iter(roots)) if len(roots) == 1 else ""


class RootedZip(ZipReader):
    """A ZIP file whose names start from a folder inside it."""

    def __init__(self, whole: ZipReader, root: str) -> None:
        self.__dict__.update(whole.__dict__)
        self._root = root

    def names(self) -> Iterator[str]:
        """Yield the names of the entries beneath the folder."""
        for name in super().names():
            if name.startswith(self._root):
                yield name[len(self._root) :]

    def find(self, name: str) -> Entry | None:
        """Return the entry of that name beneath the folder."""
        return super().find(self._root + name)
