"""What a tape holds, as values, and the names of its elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["BASICS", "STORE", "TAPE", "TapeHead", "TapeRecord"]

TAPE = "http://library.lanl.gov/2005-08/aDORe/XMLtape/"
BASICS = "http://library.lanl.gov/2005-08/aDORe/XMLtapeBasics/"
STORE = "urn:muniment:store:1"  # what Muniment itself says about a record

Namespaces = tuple[tuple[str, str], ...]


class TapeRecord(NamedTuple):
    """One record, and where it lies: offsets and lengths are bytes of the file.

    ``offset`` and ``length`` are those of the element inside ``ta:record``; ``start`` and ``end``
    enclose the whole ``ta:tapeRecord``. ``admin`` is the text of its ``ta:recordAdmin`` elements,
    ``namespaces`` what the elements around the record declare in addition to the root.
    """

    identifier: str
    date: str
    offset: int
    length: int
    start: int
    end: int
    admin: bytes = b""
    namespaces: Namespaces = ()


@dataclass(frozen=True)
class TapeHead:
    """Everything before the first record: how the tape is written, and what it says of itself."""

    encoding: str
    prologue: bytes  # up to and including the root's start tag, as it stands in the file
    prefix: str  # of the tape's namespace, "" for the default namespace
    namespaces: Namespaces
    entities: dict[str, str] = field(default_factory=dict)
    admin: tuple[bytes, ...] = ()  # each ta:tapeAdmin, as it stands in the file
    tape_id: str = ""
    arc_ids: tuple[str, ...] = ()
    software: str = ""
    time: str = ""
    start: int = 0  # the byte where the first record, or the end tag, begins
