"""What sets the versions of SIARD apart: a table, read by every module of this package.

2.2 is written, and 2.0 if it is asked for. All are read; they differ in names and in how a digest
is spelt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from muniment.errors import SiardError

__all__ = ["CURRENT", "VERSIONS", "WRITTEN", "DigestStyle", "Version", "find_version"]


class DigestStyle(Enum):
    """How <messageDigest> holds a digest."""

    PREFIXED = "the algorithm's name and the digest in one text: MD50cc175b9…"
    SEPARATE = "<digestType>MD5</digestType><digest>0cc175b9…</digest>"


@dataclass(frozen=True, slots=True)
class Version:
    """What sets one SIARD version apart."""

    number: str
    metadata_namespace: str
    table_namespace: str  # with the places {schema} and {table} where each table has its own
    folder: str | None  # the empty folder that marks the version (P_4.2-4)
    digest_style: DigestStyle


_BAR = "http://www.bar.admin.ch/xmlns/siard"
_PER_TABLE = "http://www.admin.ch/xmlns/siard"

VERSIONS = (
    Version(
        "1.0",
        f"{_BAR}/1.0/metadata.xsd",
        f"{_PER_TABLE}/1.0/{{schema}}/{{table}}.xsd",
        None,
        DigestStyle.PREFIXED,
    ),
    Version(
        "2.0",
        f"{_BAR}/2.0/metadata.xsd",
        f"{_PER_TABLE}/2.0/{{schema}}/{{table}}.xsd",
        "header/siardversion/2.0/",
        DigestStyle.PREFIXED,
    ),
    Version(
        "2.1",
        f"{_BAR}/2/metadata.xsd",
        f"{_BAR}/2/table.xsd",
        "header/siardversion/2.1/",
        DigestStyle.SEPARATE,
    ),
    Version(
        "2.2",
        f"{_BAR}/2/metadata.xsd",
        f"{_BAR}/2/table.xsd",
        "header/siardversion/2.2/",
        DigestStyle.SEPARATE,
    ),
)
CURRENT = VERSIONS[-1]
WRITTEN = ("2.2", "2.0")


def find_version(number: str | None, namespace: str | None = None) -> Version:
    """Return the version of that number or, where an archive names none, of that namespace.

    >>> find_version("2.1.1").number  # an edition of the text, not of the format
    '2.1'
    >>> find_version(None, "http://www.bar.admin.ch/xmlns/siard/1.0/metadata.xsd").number
    '1.0'
    """
    for version in reversed(VERSIONS):
        same_namespace = number is None and namespace == version.metadata_namespace
        if same_namespace or _is_edition(number, version.number):
            return version
    known = ", ".join(version.number for version in VERSIONS)
    raise SiardError(
        f"this archive says it is SIARD {number or 'of no version'}, and Muniment reads {known}. "
        "Correct the version in its metadata.xml, or look for a newer Muniment"
    )


def _is_edition(number: str | None, of: str) -> bool:
    return number is not None and f"{number}.".startswith(f"{of}.")
