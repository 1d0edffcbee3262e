"""Reading a tape with expat: slow, and right for everything that is well-formed.

The head of every tape goes through here, foreign tapes as a whole before they are let in, and any
record that the quick scanner does not understand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn
from xml.parsers import expat

from lxml import etree

from muniment.errors import TapeError
from muniment.tape.records import BASICS, TAPE, Namespaces, TapeHead, TapeRecord

__all__ = ["TapeParser", "read_exactly", "read_head"]

_CHUNK = 1 << 18
_LONGEST_ENTITY = 1 << 16
_LONGEST_HEAD = 1 << 26
_FOREIGN_ENTITY = re.compile(r"<|&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9A-Fa-f]+);)")

# element of a tape -> the tape's elements that it may hold
_HOLDS = {
    "": ("tape",),
    "tape": ("tapeAdmin", "tapeRecord"),
    "tapeRecord": ("tapeRecordAdmin", "record"),
    "tapeRecordAdmin": ("identifier", "date", "recordAdmin"),
}
_OPEN_TO_ALL = ("tapeAdmin", "recordAdmin", "record")
_NEEDS = {"record": "tapeRecordAdmin", "date": "identifier", "recordAdmin": "date"}
_ONCE = ("tapeRecordAdmin", "record", "identifier", "date")


class _Enough(Exception):
    """All that was wanted is read."""


class TapeParser:
    """Takes the bytes of a tape piece by piece, and collects its head and records."""

    def __init__(self, name: str, *, base: int = 0, limit: int | None = None) -> None:
        self.name = name
        self.done = False  # the root element is closed, or ``limit`` records are read
        self.first_record = -1  # or the end tag of a tape without records
        self._base, self._limit = base, limit
        self._records: list[TapeRecord] = []
        self._raw, self._raw_base = b"", base  # the last bytes, or all since a record began
        self._stack = [""]  # the tape's own elements that are open
        self._inside = 0  # depth within an element that is not the tape's own
        self._ended = ""  # the element that ended last: the next event says where
        self._declared: list[tuple[str, str]] = []
        self._context: list[tuple[str, str]] = []
        self._root: Namespaces = ()
        self._prefix = self._encoding = ""
        self._entities: dict[str, str] = {}
        self._root_open = -1
        self._admin: list[bytes] = []
        self._text: list[str] = []
        self._fields: dict[str, str] = {}
        self._begin: dict[str, int] = {}
        self._finish: dict[str, int] = {}
        self._parser = self._new_parser()

    def _new_parser(self) -> Any:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.namespace_prefixes = True
        parser.buffer_text = False
        parser.XmlDeclHandler = self._declaration
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._skipped
        parser.ExternalEntityRefHandler = self._external
        parser.StartNamespaceDeclHandler = self._namespace
        parser.StartElementHandler = self._open
        parser.EndElementHandler = self._close
        parser.CharacterDataHandler = self._characters
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._other
        parser.StartCdataSectionHandler = self._other
        return parser

    def feed(self, data: bytes, final: bool = False) -> list[TapeRecord]:
        """Take the next bytes; return the records that are complete now."""
        self._keep(data)
        try:
            self._parser.Parse(data, final)
        except _Enough:
            self.done = True
        except expat.ExpatError as error:
            place = self._base + max(self._parser.ErrorByteIndex, 0)
            problem = f"not well-formed XML: {expat.ErrorString(error.code)}"
            raise TapeError(self.name, place, problem) from None
        taken, self._records = self._records, []
        return taken

    def head(self) -> TapeHead:
        """Return what stands before the records, once the first of them has begun."""
        prologue = self._slice(self._base, self._root_open)
        admin = tuple(self._admin)
        basics = _basics(prologue, b"".join(admin), self._prefix)
        wide = prologue[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in prologue[:2]
        return TapeHead(
            encoding="utf-16" if wide else self._encoding or "utf-8",
            prologue=prologue,
            prefix=self._prefix,
            namespaces=self._root,
            entities=dict(self._entities),
            admin=admin,
            tape_id=next(iter(basics.get("XMLtapeId", ())), ""),
            arc_ids=tuple(basics.get("ARCfileId", ())),
            software=next(iter(basics.get("processSoftware", ())), ""),
            time=next(iter(basics.get("processTime", ())), ""),
            start=self.first_record,
        )

    def _keep(self, data: bytes) -> None:
        """Keep the bytes of the head, or of a record up to its payload; else the last piece."""
        total = self._raw_base + len(self._raw)
        in_head = self.first_record < 0 or self._limit == 0
        wanted = self._base if in_head else self._begin.get("tapeRecord", -1)
        if wanted < 0 or self._inside:
            wanted = max(self._raw_base, total - _CHUNK)
        self._raw = self._raw[wanted - self._raw_base :] + data
        self._raw_base = wanted
        if len(self._raw) > _LONGEST_HEAD:
            self._fail("there is no end to what stands before the record itself")

    def _slice(self, start: int, end: int) -> bytes:
        return self._raw[start - self._raw_base : end - self._raw_base]

    def _here(self) -> int:
        return self._base + int(self._parser.CurrentByteIndex)

    def _fail(self, problem: str) -> NoReturn:
        raise TapeError(self.name, self._here(), problem)

    # Declarations

    def _declaration(self, _version: str, encoding: str | None, _alone: int) -> None:
        self._encoding = (encoding or "").lower()

    def _entity(self, name: str, parameter: int, value: str | None, *_: str | None) -> None:
        if parameter or value is None:
            self._fail(f"the entity {name} is defined elsewhere, and that is never followed")
        if len(value) > _LONGEST_ENTITY or _FOREIGN_ENTITY.search(value):
            self._fail(f"the entity {name} holds markup, other entities or too much text")
        self._entities[name] = value

    def _skipped(self, name: str, _parameter: int) -> None:
        self._fail(f"the entity {name} is not defined")

    def _external(self, *_: Any) -> int:
        self._fail("an external entity is never followed")

    def _namespace(self, prefix: str | None, uri: str | None) -> None:
        if not self._inside:
            self._declared.append((prefix or "", uri or ""))

    # Elements

    def _open(self, name: str, _attributes: object) -> None:
        if self._inside:
            self._inside += 1
            return
        self._settle()
        declared, self._declared = self._declared, []
        parent = self._stack[-1]
        if parent in _OPEN_TO_ALL:
            self._open_foreign(parent)
            return
        uri, local, prefix = _split(name)
        if uri != TAPE or local not in _HOLDS.get(parent, ()):
            wanted = " or ".join(_HOLDS.get(parent, ("text",)))
            of = "" if uri == TAPE else f" of the namespace {uri}" if uri else " of no namespace"
            self._fail(f"{local}{of} stands where {wanted} belongs; this is not an XMLtape")
        self._check_order(local)
        self._open_own(local, prefix, declared)

    def _open_foreign(self, parent: str) -> None:
        if parent == "record":
            if "payload" in self._begin:
                self._fail("a record holds more than one element")
            self._begin["payload"] = self._here()
        self._inside = 1

    def _check_order(self, local: str) -> None:
        if local == "tapeAdmin" and self.first_record >= 0:
            self._fail("tapeAdmin comes after a record")
        if local in _ONCE and local in self._begin:
            self._fail(f"a record has a second {local}")
        if _NEEDS.get(local, local) not in (local, *self._finish, *self._fields):
            self._fail(f"{local} comes before {_NEEDS[local]}")

    def _open_own(self, local: str, prefix: str, declared: list[tuple[str, str]]) -> None:
        here = self._here()
        match local:
            case "tape":
                self._prefix, self._root, self._ended = prefix, tuple(declared), "<tape"
            case "tapeRecord":
                if self.first_record < 0:
                    self.first_record = here
                if self._limit == 0:
                    raise _Enough
                self._fields, self._begin, self._finish, self._admin = {}, {}, {}, []
                self._context = list(declared)
            case "record":
                self._context += declared
            case "identifier" | "date":
                self._text = []
        self._begin[local] = here
        self._stack.append(local)

    def _close(self, _name: str) -> None:
        if self._inside:
            self._inside -= 1
            if not self._inside and self._stack[-1] == "record":
                self._ended = "payload"
            return
        self._settle()
        local = self._stack.pop()
        match local:
            case "identifier" | "date":
                self._fields[local] = "".join(self._text).strip()
                if not self._fields[local]:
                    self._fail(f"the {local} of a record is empty")
            case "tapeRecordAdmin" if "date" not in self._fields:
                self._fail("a record has no identifier or no date")
            case "record" if "payload" not in self._finish:
                self._fail("a record is empty")
            case "tapeRecord" if "payload" not in self._finish:
                self._fail("a tapeRecord has no record")
            case "tape":
                if self.first_record < 0:
                    self.first_record = self._here()
                self.done = True
                if self._limit == 0:
                    raise _Enough
        self._ended = local

    def _settle(self) -> None:
        """An element has ended, and this is the first byte after it."""
        ended, self._ended = self._ended, ""
        if not ended:
            return
        here = self._here()
        self._finish[ended] = here
        if ended == "<tape":
            self._root_open = here
        elif ended in ("tapeAdmin", "recordAdmin"):
            self._admin.append(self._slice(self._begin[ended], here))
        elif ended == "tapeRecord":
            self._add_record(here)

    def _add_record(self, end: int) -> None:
        start, stop = self._begin["payload"], self._finish["payload"]
        self._records.append(
            TapeRecord(
                self._fields["identifier"],
                self._fields["date"],
                start,
                stop - start,
                self._begin["tapeRecord"],
                end,
                b"".join(self._admin),
                tuple(self._context),
            )
        )
        self._begin = {}
        if self._limit is not None:
            self._limit -= 1
            if self._limit <= 0:
                raise _Enough

    # Everything else

    def _characters(self, text: str) -> None:
        if self._inside:
            return
        self._settle()
        if self._stack[-1] in ("identifier", "date"):
            self._text.append(text)
        elif text.strip(" \t\r\n"):
            self._fail("there is text between the elements of the tape")

    def _other(self, *_: str) -> None:
        if not self._inside:
            self._settle()


def _split(name: str) -> tuple[str, str, str]:
    """Take expat's triplet apart: namespace, local name, prefix."""
    uri, _, rest = name.partition(" ")
    local, _, prefix = rest.partition(" ")
    return (uri, local, prefix) if rest else ("", uri, "")


def _basics(prologue: bytes, admin: bytes, prefix: str) -> dict[str, list[str]]:
    """Return the tape's identifiers, software and time from its administrative section."""
    if not admin:
        return {}
    tag = f"</{prefix}:tape>" if prefix else "</tape>"
    big = prologue[:2] in (b"\xfe\xff", b"\x00<")
    wide = big or prologue[:2] in (b"\xff\xfe", b"<\x00")
    end = tag.encode(("utf-16-be" if big else "utf-16-le") if wide else "ascii")
    parser = etree.XMLParser(resolve_entities=True, no_network=True, load_dtd=False)
    found: dict[str, list[str]] = {}
    for element in etree.fromstring(prologue + admin + end, parser).iter(f"{{{BASICS}}}*"):
        found.setdefault(etree.QName(element).localname, []).append((element.text or "").strip())
    return found


def read_head(stream: BinaryIO, name: str) -> TapeHead:
    """Read a tape up to its first record; the stream is left somewhere behind that."""
    parser = TapeParser(name, limit=0)
    while not parser.done:
        chunk = stream.read(_CHUNK)
        parser.feed(chunk, final=not chunk)
    return parser.head()


def read_exactly(stream: BinaryIO, name: str) -> Iterator[TapeRecord]:
    """Yield every record of a tape, and prove on the way that the whole tape is well-formed."""
    parser = TapeParser(name)
    while chunk := stream.read(_CHUNK):
        yield from parser.feed(chunk)
    yield from parser.feed(b"", final=True)
