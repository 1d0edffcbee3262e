"""Large objects that cells refer to: found, as long as stated, and with the digest stated."""

from __future__ import annotations

import codecs
import re
from typing import Any

import filetype

from muniment.errors import LobError, SiardError
from muniment.siard.lobs.folders import ZipPiece
from muniment.siard.lobs.location import location_of
from muniment.siard.lobs.resolving import Found, Resolver
from muniment.siard.lobs.verifying import Measure, is_of_last
from muniment.siard.rules.general import uri_faults
from muniment.siard.rules.segments import segment_of
from muniment.sql.model import Schema, Table

__all__ = ["LobChecks"]

_MANY = 1 << 30
_START = 8192  # bytes that tell what kind of file it is
_SMALL = 1 << 16  # bytes that are read at once
_PLAIN = re.compile(r"[A-Za-z0-9_./-]*+")
_OPTIONAL = {"S_8.1.2-0"}  # rules that nobody has to keep
_RATIO = 4  # bytes per character at most


class LobChecks:
    """Checks the objects of one table."""

    def __init__(self, resolver: Resolver | SiardError, schema: Schema, table: Table) -> None:
        """``resolver`` may be the reason why there is none."""
        self._given, self._schema, self._table = resolver, schema, table

    def check(self, cell: Any, path: tuple[int, ...], column: str, row: int, report: Any) -> None:
        """Check the cell's attributes, then its object."""
        report.looked_at |= {"T_6.2-1", "T_6.4-5", "G_3.4-1", "G_3.4-2"}
        report.lobs += 1
        file = cell.get("file", "")
        if link := cell.get("dlurlpathonly"):
            report.links.add(link, path[0], row)
            if not file:
                message = f"there is no file for the link {link!r}"
                report.add("T_6.4-5", column, row, message, kind="no file", severity="warning")
                return
        for rule, message, severity in () if _PLAIN.fullmatch(file) else uri_faults(file):
            weight = str(severity) if severity else None
            report.add(rule, column, row, message, kind=f"uri {weight}", severity=weight)
        if (cell.text or "").strip():
            message = "both a file and a value inline"
            report.add("T_6.2-1", column, row, message, kind="both")
        if not cell.get("length", "").strip():
            report.add("T_6.4-5", column, row, "no length beside the file", kind="length")
        if not (cell.get("digest") or cell.get("messageDigest")):
            message = "no digest beside the file"
            report.add("T_6.4-5", column, row, message, kind="digest", severity="note")
        try:
            location = location_of(path, cell.attrib)
            found = self._resolver().find(self._schema, self._table, location)
        except LobError as error:
            message = f"{error.file!r}: {error.problem}"
            report.add(_rule(error.rule), column, row, message, kind="missing")
            if error.rule in _OPTIONAL:  # an object that cannot be had is an error all the same
                report.add("T_6.4-5", column, row, message, kind="missing")
            folder = self._table.columns[path[0] - 1].lob_folder or ""
            if ".zip/" in f"{folder}/{file}".lower():
                for rule in ("G_3.4-3", "L_7.1-1"):
                    report.add(
                        rule, column, row, f"{file!r}: no such file in a ZIP file", kind="zip"
                    )
            return
        except SiardError as error:
            report.add("T_6.2-1", column, row, str(error), kind="lob")
            return
        _note_place(found, location.file, path[0], report)
        if found.inside:
            entries = [p.entry for p in found.pieces if isinstance(p, ZipPiece)]
            report.inside.add(entries[0].number, path[0], row)
            report.used += [entry.number for entry in entries[1:]]
        else:
            report.outer.add(found.pieces[0].name, path[0], row)
        self._measure(found, location, column, row, report)

    def _compare_kind(
        self, start: bytes, location: Any, column: str, row: int, report: Any
    ) -> None:
        """The MIME type of a column is advice only, so another one is a note."""
        stated = self._table.columns[location.path[0] - 1].mime_type
        if stated and len(location.path) == 1:
            found = filetype.guess_mime(start[:_START])
            if found and found != stated.strip().lower():
                message = f"{location.file!r} is {found}, its column says {stated}"
                report.add("M_5.6-1", column, row, message, kind="mime", severity="note")

    def _resolver(self) -> Resolver:
        if isinstance(self._given, SiardError):
            raise self._given
        return self._given

    def _measure(self, found: Found, location: Any, column: str, row: int, report: Any) -> None:
        text = self._resolver().is_text(self._schema, self._table, location)
        length = location.length
        if length is not None and found.size > max(_RATIO * length, _MANY):
            message = f"{location.file!r} should be {length} long and has {found.size} bytes"
            report.add("T_6.2-1", column, row, message, kind="size")
            return
        measure = Measure(text, location.digest_type)
        decoder = codecs.getincrementaldecoder("utf-8")() if text else None
        try:
            for chunk in (found.whole(),) if found.size <= _SMALL else found.chunks():
                if chunk and not measure.bytes:
                    self._compare_kind(chunk, location, column, row, report)
                measure.update(chunk)
                decoder = _decoded(decoder, chunk, location.file, column, row, report)
        except (SiardError, OSError) as error:
            report.add("G_4.1-1", column, row, f"{location.file!r} is damaged: {error}", kind="crc")
            return
        if decoder is not None:
            _decoded(decoder, b"", location.file, column, row, report, final=True)
        if length is not None:
            _compare_length(measure, length, location.file, column, row, report)
        stated = measure.hexdigest()
        if stated and stated != location.digest:
            message = f"{location.file!r}: its {location.digest_type} digest is {stated}"
            if is_of_last(location, found.last):
                message += "; the one stated is that of its last part alone"
            report.add("T_6.4-5", column, row, message, kind="digest mismatch")


def _note_place(found: Found, file: str, column: int, report: Any) -> None:
    if len(found.pieces) > 1:
        report.looked_at.add("S_8.1.1-0")
    if found.inside:
        return
    _, segments = report.outside.setdefault(column, (file, set()))
    if (segment := segment_of(file)) is not None:
        segments.add(segment)
    if any(".zip" in piece.name.lower() for piece in found.pieces):
        report.looked_at |= {"G_3.4-3", "L_7.1-1"}


def _compare_length(
    measure: Measure, length: int, file: str, column: str, row: int, report: Any
) -> None:
    unit = measure.unit(length)
    if unit is None:
        message = f"{file!r} should be {length} long and is {measure.length}"
        report.add("T_6.2-1", column, row, message, kind="size")
    elif length != measure.length:
        message = f"{file!r}: its length counts {unit} instead of characters"
        report.add("T_6.2-1", column, row, message, kind="unit", severity="warning")


def _decoded(
    decoder: Any, chunk: bytes, file: str, column: str, row: int, report: Any, *,
    final: bool = False,
) -> Any:  # fmt: skip
    """Decode text; None once it turned out to be none."""
    if decoder is None:
        return None
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        report.add("G_3.3-1", column, row, f"{file!r} is not text in UTF-8", kind="utf-8")
        return None
    return decoder


def _rule(rule: str) -> str:
    return rule if rule else "T_6.4-5"
