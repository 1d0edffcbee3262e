"""tableN.xsd as it stands in an archive: what it says about rows and cells, and itself compiled.

Schemas come from anywhere, so nothing is compiled that would fetch other files or unroll to an
absurd size. The number of rows is taken out before compiling, because rows are validated in runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

__all__ = [
    "Definition",
    "NotASchema",
    "TableSchema",
    "XsdCell",
    "parse_table_schema",
    "refuse_dangers",
]

XS = "http://www.w3.org/2001/XMLSchema"
_MOST_REPEATS = 1000  # of anything but rows; SIARD's cells do not repeat at all
_DEEPEST = 64


class NotASchema(Exception):
    """The file is not a schema that can be used; the text says why."""


@dataclass(frozen=True, slots=True)
class XsdCell:
    """What a schema says about <c1>, <a1> or <u1>."""

    name: str
    type: str  # "xs:integer", "clobType"; "" if it is defined in place
    optional: bool
    parts: tuple[XsdCell, ...] = ()  # of a complex value
    any: bool = False  # whether it takes elements that it does not name


@dataclass(frozen=True, slots=True)
class Definition:
    """A named simple or complex type of the schema, in a form that can be compared."""

    kind: str  # simpleType or complexType
    base: str
    facets: tuple[tuple[str, str], ...]
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TableSchema:
    """A table's schema."""

    namespace: str
    cells: tuple[XsdCell, ...]
    rows_from: int
    rows_to: int | None
    definitions: dict[str, Definition]
    document: bytes  # the schema, with any number of rows
    table_name: str = "table"
    row_name: str = "row"

    def compiled(self) -> Any:
        """Return the schema as lxml validates with it; raises NotASchema."""
        try:
            return etree.XMLSchema(etree.fromstring(self.document))
        except etree.XMLSchemaParseError as error:
            raise NotASchema(f"it is not a valid schema: {error}") from error


def parse_table_schema(data: bytes, parser: Any) -> TableSchema:
    """Read a table's schema; raises NotASchema."""
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise NotASchema(f"it is not well-formed XML: {error}") from error
    if root.getroottree().docinfo.doctype:
        raise NotASchema("it has a document type declaration, which SIARD does not allow")
    if root.tag != f"{{{XS}}}schema":
        raise NotASchema(f"it starts with <{etree.QName(root).localname}>, not with a schema")
    refuse_dangers(root)
    table = next((e for e in _xs(root, "element")), None)
    if table is None:
        raise NotASchema("it declares no element")
    names = {e.get("name"): e for kind in ("complexType", "simpleType") for e in _xs(root, kind)}
    row = next(iter(_elements(_content(table, names))), None)
    if row is None:
        raise NotASchema("its table has no rows")
    lowest, highest = _occurs(row)
    row.set("minOccurs", "0")
    row.set("maxOccurs", "unbounded")
    inner = _content(row, names)
    return TableSchema(
        root.get("targetNamespace", ""),
        tuple(_cell(element, names, 0) for element in _elements(inner)),
        lowest,
        highest,
        {name: _definition(e) for name, e in names.items() if name and e is not inner},
        etree.tostring(root),
        table.get("name", ""),
        row.get("name", ""),
    )


def refuse_dangers(root: Any) -> None:
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        name = etree.QName(element).localname
        if name in ("import", "include", "redefine"):
            raise NotASchema(f"it refers to another file with xs:{name}")
        if name in ("element", "any", "sequence", "choice", "group"):
            _, highest = _occurs(element)
            if highest is not None and highest > _MOST_REPEATS and element.get("name") != "row":
                raise NotASchema(f"it lets something repeat {highest} times")


def _xs(parent: Any, name: str) -> Iterator[Any]:
    yield from parent.iterchildren(f"{{{XS}}}{name}")


def _content(element: Any, names: dict[str, Any]) -> Any:
    """The type of an element: the one defined in place, or the one it names."""
    for inner in _xs(element, "complexType"):
        return inner
    return names.get(_local(element.get("type", "")))


def _elements(complex_type: Any) -> Iterator[Any]:
    """The elements of a sequence, in order."""
    if complex_type is None:
        return
    for sequence in _xs(complex_type, "sequence"):
        for element in sequence:
            if element.tag in (f"{{{XS}}}element", f"{{{XS}}}any"):
                yield element


def _cell(element: Any, names: dict[str, Any], depth: int) -> XsdCell:
    if depth > _DEEPEST:
        raise NotASchema("it nests its cells without end")
    lowest, highest = _occurs(element)
    if element.tag == f"{{{XS}}}any":
        return XsdCell("", "", True, any=True)
    type_ = _prefixed(element)
    inner = _content(element, names)
    parts: tuple[XsdCell, ...] = ()
    if inner is not None and next(_xs(inner, "sequence"), None) is not None:
        parts = tuple(_cell(each, names, depth + 1) for each in _elements(inner))
    repeats = highest is None or highest > 1
    loose = repeats or any(part.any for part in parts)
    return XsdCell(element.get("name", ""), type_, lowest == 0, parts, loose)


def _prefixed(element: Any) -> str:
    """The type's name, with ``xs:`` for XML Schema's own whatever its prefix is here."""
    type_ = element.get("type", "")
    prefix, colon, local = type_.rpartition(":")
    namespace = element.nsmap.get(prefix if colon else None)
    return f"xs:{local}" if namespace == XS else local


def _occurs(element: Any) -> tuple[int, int | None]:
    try:
        lowest = int(element.get("minOccurs", "1"))
        most = element.get("maxOccurs", "1")
        return lowest, None if most == "unbounded" else int(most)
    except ValueError as error:
        raise NotASchema(f"{error}") from error


def _definition(element: Any) -> Definition:
    kind = etree.QName(element).localname
    base, facets, attributes = "", [], []
    for inner in element.iter():
        if not isinstance(inner.tag, str):
            continue
        name = etree.QName(inner).localname
        if name in ("restriction", "extension"):
            base = _prefixed_name(inner, inner.get("base", ""))
        elif name == "attribute":
            attributes.append((inner.get("name", ""), _prefixed(inner)))
        elif inner.get("value") is not None:
            facets.append((name, inner.get("value")))
    return Definition(kind, base, tuple(facets), tuple(sorted(attributes)))


def _prefixed_name(element: Any, name: str) -> str:
    prefix, colon, local = name.rpartition(":")
    namespace = element.nsmap.get(prefix if colon else None)
    return f"xs:{local}" if namespace == XS else local


def _local(name: str) -> str:
    return name.rpartition(":")[2]
