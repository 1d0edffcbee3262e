"""Archives that were packed wrongly: with a folder around everything, or with backslashes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muniment.siard.directory import Entry
from muniment.siard.zip import ZipReader

__all__ = ["RootedZip", "SlashedZip", "find_root", "seen_rightly"]


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


def seen_rightly(whole: ZipReader) -> tuple[ZipReader, str]:
    """Return an archive as it should have been packed, and the folder that it lies in."""
    if "header/metadata.xml" in whole:
        return whole, ""
    if any(name.endswith("header\\metadata.xml") for name in whole.names()):
        whole = SlashedZip(whole)
    root = find_root(whole.names())
    return (RootedZip(whole, root) if root else whole), root


class SlashedZip(ZipReader):
    """A ZIP file whose names have backslashes, as old programs for Windows write them."""

    def __init__(self, whole: ZipReader) -> None:
        self.__dict__.update(whole.__dict__)

    def names(self) -> Iterator[str]:
        """Yield the names of the entries with slashes."""
        return (name.replace("\\", "/") for name in super().names())

    def find(self, name: str) -> Entry | None:
        """Return the entry of that name, which has slashes."""
        return super().find(name) or super().find(name.replace("/", "\\"))


class RootedZip(ZipReader):
    """A ZIP file whose names start from a folder inside it."""

    def __init__(self, whole: ZipReader, root: str) -> None:
        self.__dict__.update(whole.__dict__)
        self._whole, self._root = whole, root

    def names(self) -> Iterator[str]:
        """Yield the names of the entries beneath the folder."""
        for name in self._whole.names():
            if name.startswith(self._root):
                yield name[len(self._root) :]

    def find(self, name: str) -> Entry | None:
        """Return the entry of that name beneath the folder."""
        return self._whole.find(self._root + name)
