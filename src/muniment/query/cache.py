"""Where indexes lie: under the user's cache folder, by the SHA-256 of the archive's bytes.

Everything here can be deleted at any time. An index is found by what the archive *is*, never by
what it says about itself: a forged archive cannot lend its rows to another one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from muniment.files import Inside
from muniment.siard.lobs.folders import Root
from muniment.siard.volumes import Volumes, volume_paths

__all__ = ["FORMAT", "cache_folder", "digest_of", "index_path", "locked", "private_folder"]

FORMAT = 2  # of the index; another one is built anew
_CHUNK = 1 << 20


def cache_folder() -> Path:
    """Return the folder for indexes: MUNIMENT_CACHE, or the one that the system has for caches."""
    if named := os.environ.get("MUNIMENT_CACHE"):
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "muniment"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muniment"


def index_path(digest: str, roots: Sequence[Root] = (), outside: str = "") -> Path:
    """Return where the index of the archive with this digest lies, if it was built.

    With other folders for its large objects, or with other files in them (``outside`` says what
    they are now), it may hold something else, so it is another one.
    """
    also = "".join(f"{root.uri}\0{root.path.resolve()}\0" for root in roots) + outside
    more = f"-{hashlib.sha256(also.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
    return cache_folder() / "index" / f"{digest}{more if also else ''}-{FORMAT}.duckdb"


def digest_of(path: Path) -> str:
    """Return the SHA-256 of an archive; one that has not changed since is not read again."""
    paths = volume_paths(path)
    state = paths[0].stat()
    identity = f"{path.resolve()}\0{state.st_dev}\0{state.st_ino}"
    if isinstance(path, Inside):  # many archives may lie in one file
        identity += f"\0{path.start}\0{path.size}"
    name = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()
    memo = cache_folder() / "digests" / f"{name}.json"
    seen = _seen(paths)
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(memo.read_text(encoding="ascii"))
        if known["seen"] == seen:
            return str(known["sha256"])
    digest = _sha256(path)
    if _seen(paths) == seen:
        _remember(memo, {"seen": seen, "sha256": digest})
    return digest


def _seen(paths: Sequence[Path]) -> list[int]:
    states = [path.stat() for path in paths]
    return [n for s in states for n in (s.st_size, s.st_mtime_ns, s.st_ctime_ns)]


def _sha256(path: Path) -> str:
    digest, volumes, offset = hashlib.sha256(), Volumes(path), 0
    try:
        while chunk := volumes.read(offset, _CHUNK):
            digest.update(chunk)
            offset += len(chunk)
    finally:
        volumes.close()
    return digest.hexdigest()


def _remember(memo: Path, value: object) -> None:
    with suppress(OSError):  # a full or read-only cache costs time, nothing else
        private_folder(memo.parent)
        partial = memo.with_name(f"{memo.name}.{os.getpid()}.partial")
        partial.write_text(json.dumps(value), encoding="ascii")
        partial.rename(memo)


def private_folder(folder: Path) -> Path:
    """Make a folder that only this user can read: an index holds what its archive holds."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time build an index; the others wait for it."""
    private_folder(path.parent)
    with path.with_suffix(".lock").open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
