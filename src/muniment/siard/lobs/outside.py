"""The state of the files outside an archive that its large objects lie in.

An archive's own bytes never change without its digest; files beside it may. Whoever keeps
something that was read from them asks here whether they are still the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["state_of"]

_MOST = 1_000_000  # files that are looked at


def state_of(folders: Iterable[Path]) -> str:
    """Return a digest over names, sizes and times of all files beneath folders, if there are any.

    A folder that is a ZIP file, or that has one in its place, counts as that file.
    """
    digest, count = hashlib.sha256(), 0
    for folder in sorted(set(folders)):
        for line in _lines(folder):
            digest.update(line)
            count += 1
            if count == _MOST:
                return digest.hexdigest()
    return digest.hexdigest() if count else ""


def _lines(folder: Path) -> Iterator[bytes]:
    waiting = [folder, folder.with_name(f"{folder.name}.zip")] if folder.name else [folder]
    while waiting:
        place = waiting.pop()
        try:
            if place.is_dir() and not place.is_symlink():
                waiting += sorted(Path(entry) for entry in os.scandir(place))
                continue
            status = place.lstat()
        except OSError:
            continue  # not there now; if it comes, the state is another
        facts = f"{place}\0{status.st_size}\0{status.st_mtime_ns}\n"
        yield facts.encode("utf-8", "surrogateescape")
