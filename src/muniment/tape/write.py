"""Writing tapes: the head, records whose bytes are taken as they are, and the end."""

from __future__ import annotations

from collections.abc import Iterable

from muniment import __version__
from muniment.errors import TapeError
from muniment.markup import escape
from muniment.tape.records import BASICS, TAPE

__all__ = [
    "PROLOGUE",
    "RECORD_END",
    "SOFTWARE",
    "TAPE_END",
    "record_opening",
    "tape_head",
    "tape_record",
]

SOFTWARE = f"Muniment {__version__}"
RECORD_END, TAPE_END = b"</ta:record></ta:tapeRecord>\n", b"</ta:tape>\n"

PROLOGUE = f'<?xml version="1.0" encoding="UTF-8"?>\n<ta:tape xmlns:ta="{TAPE}">'.encode()
_HEAD = """\

<ta:tapeAdmin><tb:XMLtapeBasics xmlns:tb="{basics}">\
<tb:XMLtapeId>{tape_id}</tb:XMLtapeId>{arcs}\
<tb:processSoftware>{software}</tb:processSoftware>\
<tb:processTime>{time}</tb:processTime>\
</tb:XMLtapeBasics></ta:tapeAdmin>
"""


def tape_head(
    tape_id: str, arc_ids: Iterable[str], time: str, software: str = SOFTWARE, more: bytes = b""
) -> bytes:
    """Return everything before the first record; ``more`` are further tapeAdmin elements."""
    arcs = "".join(f"<tb:ARCfileId>{escape(arc)}</tb:ARCfileId>" for arc in arc_ids)
    head = _HEAD.format(
        basics=BASICS,
        tape_id=escape(tape_id),
        arcs=arcs,
        software=escape(software),
        time=escape(time),
    )
    return PROLOGUE + head.encode() + more


def tape_record(identifier: str, date: str, payload: bytes, *admins: bytes) -> bytes:
    """Return one record with a line of its own; ``admins`` are elements about it."""
    return record_opening(identifier, date, *admins) + payload + RECORD_END


def record_opening(identifier: str, date: str, *admins: bytes) -> bytes:
    """Return what stands before the bytes of a record; ``RECORD_END`` stands behind them."""
    if not identifier or not date:
        raise TapeError(identifier or "a record", None, "a record needs an identifier and a date")
    admin = b"".join([b"<ta:recordAdmin>%b</ta:recordAdmin>" % each for each in admins])
    return b"".join(
        (
            b"<ta:tapeRecord><ta:tapeRecordAdmin><ta:identifier>",
            escape(identifier).encode(),
            b"</ta:identifier><ta:date>",
            date.encode(),
            b"</ta:date>",
            admin,
            b"</ta:tapeRecordAdmin><ta:record>",
        )
    )
