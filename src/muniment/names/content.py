"""Octets kept beside the names, under their digest: what is bound here never changes or goes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from muniment.errors import DigestMismatch, NotFound
from muniment.files import chunks_of, settle
from muniment.names.book import Names
from muniment.names.values import Binding

__all__ = ["digest_file", "keep", "open_kept"]


def digest_file(path: Path) -> bytes:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    for chunk in chunks_of(path):
        digest.update(chunk)
    return digest.digest()


def keep(names: Names, path: Path) -> tuple[bytes, int, str]:
    """Copy a file into the folder of the names; return its digest, length and location."""
    folder = names.folder / "content"
    folder.mkdir(exist_ok=True)
    partial = folder / f".{os.getpid()}.{os.urandom(4).hex()}.partial"
    digest, length = hashlib.sha256(), 0
    try:
        with partial.open("xb") as stream:
            for chunk in chunks_of(path):
                digest.update(chunk)
                length += len(chunk)
                stream.write(chunk)
            stream.flush()
            os.fsync(stream.fileno())
        name = digest.hexdigest()
        home = folder / name[:2]
        home.mkdir(exist_ok=True)
        if not (home / name).exists():
            partial.chmod(0o444)
            settle(partial, home / name)
    finally:
        partial.unlink(missing_ok=True)
    return digest.digest(), length, f"content/{name[:2]}/{name}"


def open_kept(names: Names, binding: Binding) -> Path:
    """Return the file of a binding after checking that it still is what was bound."""
    path = names.folder / binding.location
    if not path.is_file() and names.fetch is not None:
        path = names.fetch(binding)
    if not path.is_file():
        raise NotFound(
            f"{binding.pdi} lies at {binding.location}, which is not kept in this folder"
        )
    found = digest_file(path)
    if found != binding.digest:
        raise DigestMismatch(str(path), "SHA-256", binding.digest.hex(), found.hex())
    return path
