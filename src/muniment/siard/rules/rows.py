"""Rows, run by run: proven by one expression where possible, else read and judged cell by cell.

The expression of a table says what every cell must look like for its SQL type, its XML type and its
nullability at once. A slice of rows that it matches from end to end is valid. Any other slice goes
through libxml2 with the archive's own schema, and each of its cells is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from muniment.siard.cells import UNEXPECTED, unescape_text
from muniment.siard.rules.keys import KeyColumns
from muniment.siard.rules.lobs import LobChecks
from muniment.siard.rules.sharing import Cells
from muniment.siard.rules.tablexsd import NotASchema, TableSchema
from muniment.siard.rules.values import fault, proof
from muniment.sql.model import Array, Leaf, Shape, Struct, Table

__all__ = ["Case", "RowChecker", "RunReport"]

_SLICE = 3 << 14
_SLOW = 1 << 18  # bytes that are read into a tree at once
_USUAL = b"\t\n\r" + bytes(range(32, 127))
_SUSPECTS = {0x7F, 0xC2, 0xEF}
_ODD = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]")
_SPACES = re.compile(rb">(?=[^<]*+</)[^<]*?  ")  # in a cell, not between the tags of two
_WIDEST = 2000  # columns; an expression for more would take too long to make
_RAW_BACKSLASH = re.compile(r"\\(?!u[0-9A-Fa-f]{4})")
_CONTROLS = re.compile("[\x7f-\x9f]")
_FIRST = 5
_XSI_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"
_UTC = {"DATE", "TIME", "TIMESTAMP", "TIME WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE"}


@dataclass(slots=True)
class Case:
    """Cases of one kind in a run: how many, and the first of them (row in the run, message)."""

    rule: str
    column: str
    severity: str | None
    count: int = 0
    first: list[tuple[int | None, str]] = field(default_factory=list)


@dataclass(slots=True)
class RunReport:
    """What one run of rows came to."""

    rows: int = 0
    cases: dict[tuple[str, str, str], Case] = field(default_factory=dict)
    keys: bytes = b""  # the key columns, as an Arrow stream
    lobs: int = 0
    broken: bool = False  # whether there were rows that could not be read
    inside: Cells = field(default_factory=Cells)  # by the entry that each cell names
    outer: Cells = field(default_factory=Cells)  # by the file outside that each cell names
    used: list[int] = field(default_factory=list)  # other entries that cells refer to
    links: Cells = field(default_factory=Cells)  # DATALINK cells, by what they link to
    looked_at: set[str] = field(default_factory=set)
    # objects outside, by column: the first one's location, and the segments that they lie in
    outside: dict[int, tuple[str, set[int]]] = field(default_factory=dict)

    def add(
        self, rule: str, column: str, row: int | None, message: str, *, kind: str,
        severity: str | None = None,
    ) -> None:  # fmt: skip
        """Note a case."""
        key = (rule, column, kind)
        case = self.cases.get(key)
        if case is None:
            case = self.cases[key] = Case(rule, column, severity)
        case.count += 1
        if len(case.first) < _FIRST:
            case.first.append((row, message))


class RowChecker:
    """Checks the rows of one table."""

    def __init__(
        self,
        table: Table,
        shapes: tuple[Shape | None, ...],
        definition: TableSchema | None,
        lobs: LobChecks,
        keys: KeyColumns,
    ) -> None:
        self._table, self._shapes, self._definition = table, shapes, definition
        self._lobs, self._keys = lobs, keys
        self._schema = _compiled(definition)
        primary = table.primary_key.columns if table.primary_key else ()
        self._required = [
            column.nullable is False or column.name in primary for column in table.columns
        ]
        self._xml = {cell.name: cell.type for cell in definition.cells} if definition else {}
        self._plain = self._expression(b"")
        self._spaced = self._expression(rb"\s*+")
        self._noted_zone: set[str] = set()

    def __call__(self, xml: bytes, tag: bytes) -> RunReport:
        """Check a run of whole rows; ``tag`` is the start tag of the file's root."""
        report = RunReport()
        gathered = self._keys.gather()
        for proven, piece in self._pieces(xml):
            if proven:
                gathered.take_plain(piece)
                report.rows += piece.count(b"</row>")
            else:
                report.rows += self._slowly(piece, tag, report, gathered)
        report.keys = gathered.finish()
        return report

    def head(self, tag: bytes) -> RunReport:
        """Check the start tag of the file: an empty table must be valid with it."""
        report = RunReport()
        root = self._tree(tag, b"")
        if isinstance(root, str):
            report.add("T_6.0-2", "", None, f"malformed XML: {root}", kind="head")
        else:
            self._validate(root, report, 0)
        return report

    # the expression

    def _expression(self, gap: bytes) -> re.Pattern[bytes] | None:
        """What a slice of valid rows looks like; None if the schema is not one we can speak for."""
        definition, columns = self._definition, self._table.columns
        if self._schema is None or definition is None or len(columns) > _WIDEST:
            return None
        if len(definition.cells) != len(columns):
            return None
        cells = []
        for number, (shape, cell) in enumerate(zip(self._shapes, definition.cells, strict=True)):
            inner = None
            if isinstance(shape, Leaf) and not cell.parts and not cell.any:
                inner = proof(shape.type, cell.type, definition.definitions.get(cell.type))
            if inner is None or cell.name != f"c{number + 1}":
                return None
            name = cell.name.encode()
            text = rb"<%b>%b</%b>%b" % (name, inner, name, gap)
            optional = cell.optional and not self._required[number]
            cells.append(rb"(?:" + text + rb")?+" if optional else text)
        row = rb"<row>" + gap + b"".join(cells) + rb"</row>" + gap
        return re.compile(gap + rb"(?:" + row + rb")*+")

    def _pieces(self, xml: bytes) -> Iterator[tuple[bool, bytes]]:
        """Yield slices of whole rows, and whether each is proven; unproven ones are joined."""
        start, slow = 0, 0
        while start < len(xml):
            end = xml.find(b"</row>", start + _SLICE) + 6
            end = end if end > 5 else len(xml)
            piece = xml[start:end]
            if self._proven(piece):
                if slow < start:
                    yield False, xml[slow:start]
                yield True, piece
                slow = end
            elif end - slow >= _SLOW:
                yield False, xml[slow:end]
                slow = end
            start = end
        if slow < len(xml) and (slow == 0 or xml[slow:].strip()):
            yield False, xml[slow:]

    def _proven(self, piece: bytes) -> bool:
        if self._plain is None or b"]]>" in piece:
            return False
        odd = piece.translate(None, _USUAL)
        if odd:
            try:
                piece.decode()
            except UnicodeDecodeError:
                return False
            if odd.translate(None, UNEXPECTED) != odd or (
                _SUSPECTS & {*odd} and _ODD.search(piece)
            ):
                return False
        if not self._plain.fullmatch(piece):
            if self._spaced is None or not self._spaced.fullmatch(piece):
                return False
            self._plain, self._spaced = self._spaced, self._plain  # as the rest will be
        return not (b"  " in piece and _SPACES.search(piece))

    # cell by cell

    def _slowly(self, xml: bytes, tag: bytes, report: RunReport, gathered: Any) -> int:
        root = self._tree(tag, xml)
        if isinstance(root, str):
            return self._narrow_down(xml, tag, report, gathered, root)
        self._validate(root, report, report.rows)
        count = 0
        for row in root:
            if not isinstance(row.tag, str):
                continue
            count += 1
            number = report.rows + count
            if _local(row) != "row":
                report.add(
                    "T_6.4-2", "", number, f"<{_local(row)}> where a row should be", kind="row"
                )
            gathered.take_cells(self._row(row, number, report))
        return count

    def _narrow_down(
        self, xml: bytes, tag: bytes, report: RunReport, gathered: Any, reason: str
    ) -> int:
        """Find the rows that are malformed; the others are judged as usual."""
        middle = xml.find(b"</row>", len(xml) // 2) + 6
        if middle <= 5 or not xml[middle:].strip():
            middle = xml.find(b"</row>") + 6
        if middle > 5 and xml[middle:].strip():
            first = self._slowly(xml[:middle], tag, report, gathered)
            report.rows += first
            rest = self._slowly(xml[middle:], tag, report, gathered)
            report.rows -= first
            return first + rest
        rows = xml.count(b"</row>")
        gathered.skip(rows)
        report.broken = True
        self._malformed(xml, report, report.rows + rows, reason)
        return rows

    def _tree(self, tag: bytes, xml: bytes) -> Any:
        """Return the rows as elements, or the reason why they are none."""
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True,
            remove_comments=True, remove_pis=True,
        )  # fmt: skip
        try:
            return etree.fromstring(tag + xml + b"</" + _name(tag) + b">", parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            return str(error)

    def _validate(self, root: Any, report: RunReport, rows: int) -> None:
        if self._schema is not None and not self._schema.validate(root):
            for found in self._schema.error_log:
                self._invalid(found, report, rows)

    def _malformed(self, xml: bytes, report: RunReport, rows: int, reason: str) -> None:
        try:
            xml.decode()
            rule = "T_6.0-2"
        except UnicodeDecodeError as error:
            rule, bad = "G_3.3-1", error.object[error.start : error.end]
            reason = f"bytes that are not UTF-8: {bad!r}"
        message = f"malformed XML: {reason}"
        report.add(rule, "", rows, message, kind="malformed")

    def _invalid(self, error: Any, report: RunReport, rows: int) -> None:
        message = re.sub(r"\{[^}]*\}", "", error.message).rstrip(". ")
        steps = (error.path or "").split("/")
        row = rows + (_index(steps[2]) if len(steps) > 2 else 0)
        match = re.match(r"Element '([cua]\d+)'", message)
        kind = re.sub(r"'[^']*'", "'…'", message)
        short = message if len(message) < 300 else message[:300] + "…"
        report.add("T_6.0-2", match[1] if match else "", row or None, short, kind=kind)

    def _row(self, row: Any, number: int, report: RunReport) -> dict[int, Any]:
        """Judge the cells of a row; return their elements by column."""
        found: dict[int, Any] = {}
        columns = self._table.columns
        for cell in row:
            local = _local(cell)
            place = int(local[1:]) if local[1:].isdecimal() and len(local) < 8 else 0
            if local[:1] != "c" or not 1 <= place <= len(columns):
                report.add("T_6.4-2", "", number, f"<{local}> is no column", kind=f"no {local}")
                continue
            if place in found:
                report.add(
                    "T_6.4-2", columns[place - 1].name, number, "it is there twice", kind="2"
                )
                continue
            found[place] = cell
            shape = self._shapes[place - 1]
            if shape is not None:
                self._cell(cell, shape, (place,), number, report)
        for place, required in enumerate(self._required, 1):
            if required and place not in found:
                name = columns[place - 1].name
                report.add("T_6.0-1", name, number, "NULL where it is not allowed", kind="null")
        return found

    def _cell(
        self, cell: Any, shape: Shape, path: tuple[int, ...], number: int, report: RunReport
    ) -> None:
        column = self._table.columns[path[0] - 1].name
        if cell.get(_XSI_NIL) is not None:
            message = "xsi:nil; NULL is left out of the row"
            report.add("T_6.4-3", column, number, message, kind="nil")
            return
        if "file" in cell.attrib or "dlurlpathonly" in cell.attrib:
            self._lobs.check(cell, path, column, number, report)
            return
        if isinstance(shape, Leaf):
            self._leaf(cell, shape, column, number, report)
            return
        report.looked_at.add("T_6.4-4")
        letter = "a" if isinstance(shape, Array) else "u"
        limit = shape.cardinality if isinstance(shape, Array) else len(shape.parts)
        if (cell.text or "").strip():
            message = "text where a complex value has parts"
            report.add("T_6.4-4", column, number, message, kind="text")
        there = set()
        for part in cell:
            local = _local(part)
            place = int(local[1:]) if local[1:].isdecimal() and len(local) < 8 else 0
            if local[:1] != letter or place < 1 or place > limit:
                rule, what = ("T_6.0-1", "more elements than the cardinality") if (
                    letter == "a" == local[:1] and place > limit
                ) else ("T_6.4-4", f"<{local}> is no part of it")  # fmt: skip
                report.add(rule, column, number, f"{what}: <{local}>", kind=what)
                continue
            there.add(place)
            inner = shape.element if isinstance(shape, Array) else shape.parts[place - 1]
            self._cell(part, inner, (*path, place), number, report)
        for place, required in enumerate(shape.required if isinstance(shape, Struct) else (), 1):
            if required and place not in there:
                message = f"NULL where it is not allowed: <u{place}>"
                report.add("T_6.0-1", column, number, message, kind=f"null {place}")

    def _leaf(self, cell: Any, shape: Leaf, column: str, number: int, report: RunReport) -> None:
        if len(cell):
            message = f"<{_local(cell[0])}> inside a plain value"
            report.add("T_6.4-2", column, number, message, kind="element")
            return
        text = cell.text or ""
        _check_escapes(text, column, number, report)
        if "\\" in text:
            text = unescape_text(text.encode("utf-8", "surrogatepass")).decode(
                "utf-8", "surrogatepass"
            )
        found = fault(shape.type, text, self._xml.get(_local(cell), ""))
        if found is not None:
            rule, message = found
            report.add(rule, column, number, message, kind=re.sub(r"'.*'|\d+", "…", message))
        elif shape.type.name in _UTC and column not in self._noted_zone:
            self._note_zone(text, column, number, report)

    def _note_zone(self, text: str, column: str, number: int, report: RunReport) -> None:
        """Recommended is a final Z; said once per column."""
        if text.strip() and not text.strip().endswith("Z"):
            self._noted_zone.add(column)
            message = "values without a final Z, which is recommended"
            report.add("T_6.3-2", column, number, message, kind="Z", severity="note")


def _check_escapes(text: str, column: str, number: int, report: RunReport) -> None:
    if "\\" in text and _RAW_BACKSLASH.search(text):
        message = "a backslash that is not escaped"
        report.add("G_3.3-4", column, number, message, kind="backslash")
    if "  " in text:
        message = "repeated spaces that are not escaped"
        report.add("G_3.3-4", column, number, message, kind="space", severity="warning")
    if _CONTROLS.search(text):
        message = "a control character that is not escaped"
        report.add("G_3.3-3", column, number, message, kind="control")


def _compiled(definition: TableSchema | None) -> Any:
    try:
        return definition.compiled() if definition is not None else None
    except NotASchema:
        return None


def _local(element: Any) -> str:
    tag: str = element.tag
    return tag.rpartition("}")[2]


def _name(tag: bytes) -> bytes:
    match = re.match(rb"<([^\s/>]+)", tag)
    return match[1] if match else b"table"


def _index(step: str) -> int:
    match = re.search(r"\[(\d+)\]", step)
    return int(match[1]) if match else 1
