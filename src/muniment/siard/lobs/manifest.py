"""The manifest of external objects (S_8.1.3-0), in the form that sha256sum and its like check."""

from __future__ import annotations

import re

__all__ = ["manifest_line", "manifest_name", "parse_manifest_line"]


def manifest_name(database: str, digest_type: str) -> str:
    """Return the name of a manifest.

    >>> manifest_name("Northwind", "SHA-256")
    'Northwind_lobs_sha256.txt'
    """
    return f"{database}_lobs_{digest_type.replace('-', '').lower()}.txt"


def manifest_line(digest: str, path: str) -> bytes:
    r"""Return the line of one file; the path is relative to the folder of the archive.

    >>> manifest_line("2de1ac4c", "Northwind_lobs/s0_t2_c4/seg_2/t2_c4_r8.bin")
    b'2de1ac4c *Northwind_lobs/s0_t2_c4/seg_2/t2_c4_r8.bin\n'
    """
    escaped = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    mark = "\\" if escaped != path else ""
    return f"{mark}{digest} *{escaped}\n".encode("utf-8", "surrogateescape")


def parse_manifest_line(line: bytes) -> tuple[str, str]:
    r"""Return the digest and the path of a line that ``manifest_line`` wrote.

    >>> parse_manifest_line(b"\\2de1 *a\\nb\n")
    ('2de1', 'a\nb')
    """
    text = line.decode("utf-8", "surrogateescape").removesuffix("\n")
    digest, _, path = text.removeprefix("\\").partition(" *")
    if text.startswith("\\"):
        path = re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), path)
    return digest, path
