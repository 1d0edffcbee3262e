"""Chapter 6: the tables' schemas and files, as far as they can be judged without their rows."""

from __future__ import annotations

from functools import lru_cache

from lxml import etree

from muniment.findings import Severity
from muniment.siard.rules.archive import Archive, TableFiles
from muniment.siard.rules.registry import Rule
from muniment.siard.rules.tablexsd import XS, Definition, NotASchema, XsdCell

__all__ = ["RULES", "check_table_schema"]

RULES = (
    Rule(
        "T_6.0-1", "M",
        "Table data obey SQL:2008: types, nullability, primary, candidate and foreign keys.",
        "Every value against its SQL type (range, length, precision, calendar); NULL where it is "
        "not allowed; uniqueness of primary and candidate keys; every foreign key, whatever its "
        "number of columns and its match type. Check constraints are SQL of the product that they "
        "come from and are not evaluated.",
        "Correct the data or the definitions where the database was archived.",
        rows=True,
    ),
    Rule(
        "T_6.0-2", "M",
        "A table's file is valid against its schema.",
        "Every element of every row, and the head of the file.",
        "Write the table's file again; its writer does not obey its own schema.",
        rows=True,
    ),
    Rule(
        "T_6.1-1", "M",
        "Each table has an XML schema.",
        "That the file is there, is a schema, refers to no other file and can be compiled.",
        "Add the schema, or write it again.",
    ),
    Rule(
        "T_6.1-2", "M",
        "The schema has table, row and c1, c2 … without a gap.",
        "The names of the elements.",
        "Number the columns from c1 without a gap.",
    ),
    Rule(
        "T_6.1-3", "M",
        "Besides XML Schema's own types only clobType, blobType, dateType, timeType and "
        "dateTimeType are used, as the standard defines them.",
        "The definitions of these types in each schema; other named types.",
        "Copy the definitions from the standard's example.",
        since="2.1",
    ),
    Rule(
        "T_6.1-4", "M",
        "Parts of complex values are a1, a2 … or u1, u2 … without a gap.",
        "The names of the elements in the schema, at every depth.",
        "Number the parts from 1 without a gap.",
        since="2.0",
    ),
    Rule(
        "T_6.2-1", "M",
        "Large objects are inline, in files inside the archive, or in files outside.",
        "That each file that a cell names is found, and is as long as the cell says (bytes, or "
        "characters of text; other ways to count text are a warning).",
        "Deliver the missing files, or archive them again.",
        rows=True,
    ),
    Rule(
        "T_6.3-1", "M",
        "Dates and timestamps are of the years 0001 to 9999, and the schema enforces it.",
        "The limits in dateType and dateTimeType; every value.",
        "Copy the definitions from the standard's example.",
        since="2.1",
    ),
    Rule(
        "T_6.3-2", "M",
        "Dates and times are in UTC, and the schema enforces it; a final Z is recommended.",
        "The patterns of dateType, timeType and dateTimeType; every value; a missing Z is a note.",
        "Write times in UTC.",
        since="2.1",
    ),
    Rule(
        "T_6.4-1", "M",
        "The data of each table are in an XML file.",
        "That the file is there.",
        "Add the file; without it the table has no data.",
    ),
    Rule(
        "T_6.4-2", "M",
        "The file consists of rows, and rows of c1, c2 …",
        "Every element of every row.",
        "Write the table's file again.",
        rows=True,
    ),
    Rule(
        "T_6.4-3", "M",
        "NULL is left out; an empty text is there and empty.",
        "Elements that are there and empty where the type has no empty value; xsi:nil.",
        "Leave NULL out of the row.",
        rows=True,
    ),
    Rule(
        "T_6.4-4", "O",
        "Complex values are sequences of a1, a2 … or u1, u2 …, which may be complex again.",
        "The parts of every complex value, at every depth, and their number.",
        "Write the parts as elements of their own.",
        since="2.0",
        rows=True,
    ),
    Rule(
        "T_6.4-5", "M",
        "A cell whose large object lies in a file has file, length and digest.",
        "The attributes of each such cell; the digest, by reading the file. A cell without digest "
        "is a note, since T_6.2-1 makes it optional.",
        "Archive the table again with a tool that writes the attributes.",
        rows=True,
    ),
)  # fmt: skip

_SPECIAL = {"dateType": "xs:date", "timeType": "xs:time", "dateTimeType": "xs:dateTime"}
_LARGE = {"clobType": "xs:string", "blobType": "xs:hexBinary"}
_OWN_TYPES = {*_SPECIAL, *_LARGE, "datalinkType", "digestTypeType", "versionType", "recordType"}
_LIMITS = {
    "dateType": ("0001-01-01", "10000-01-01", "9999-12-31"),
    "dateTimeType": ("0001-01-01T00:00:00", "10000-01-01T00:00:00", "9999-12-31T23:59:59"),
}
_ELSEWHERE = {
    "dateType": "2000-01-01+02:00",
    "timeType": "10:00:00+02:00",
    "dateTimeType": "2000-01-01T10:00:00+02:00",
}


def check_table_schema(archive: Archive, each: TableFiles, problem: str) -> None:
    """T_6.1, T_6.3 and T_6.4-1 for one table; ``problem`` says why there is no schema."""
    report, definition = archive.report, each.definition
    report.look("T_6.1-1", "T_6.1-2", "T_6.1-3", "T_6.1-4", "T_6.4-1")
    if not archive.has(each.xml):
        report("T_6.4-1", each.xml, f"it is missing; the rows of {each.name} are not there")
    if definition is None:
        report("T_6.1-1", each.xsd, problem)
        return
    try:
        definition.compiled()
    except NotASchema as error:
        report("T_6.1-1", each.xsd, str(error))
    if (definition.table_name, definition.row_name) != ("table", "row"):
        found = f"<{definition.table_name}> with <{definition.row_name}>"
        report("T_6.1-2", each.xsd, f"it declares {found} instead of <table> with <row>")
    names = sorted((cell.name for cell in definition.cells), key=_number)
    if names != [f"c{n}" for n in range(1, len(names) + 1)]:
        shown = ", ".join(names[:12])
        report("T_6.1-2", each.xsd, f"the columns are not c1, c2 … without a gap: {shown}")
    for cell in definition.cells:
        _check_parts(archive, each, cell)
    if archive.version.number not in ("1.0", "2.0"):
        _check_definitions(archive, each)


def _number(name: str) -> int:
    return int(name[1:]) if name[1:].isdecimal() and len(name) < 9 else 0


def _check_parts(archive: Archive, each: TableFiles, cell: XsdCell) -> None:
    names = [part.name for part in cell.parts if not part.any]
    letter = names[0][:1] if names else ""
    if names and (
        letter not in ("a", "u") or names != [f"{letter}{n}" for n in range(1, len(names) + 1)]
    ):
        archive.report(
            "T_6.1-4", f"{each.xsd}: {cell.name}",
            f"its parts are not a1, a2 … or u1, u2 … without a gap: {', '.join(names[:12])}",
        )  # fmt: skip
    for part in cell.parts:
        _check_parts(archive, each, part)


def _check_definitions(archive: Archive, each: TableFiles) -> None:
    definition = each.definition
    assert definition is not None
    archive.report.look("T_6.3-1", "T_6.3-2")
    used = set(_types(definition.cells))
    for name in sorted(used - _OWN_TYPES):
        if not name.startswith("xs:"):
            archive.report(
                "T_6.1-3", f"{each.xsd}: {name}",
                "it is none of the types that SIARD has for cells",
                Severity.WARNING,
            )  # fmt: skip
    for name in sorted(used & definition.definitions.keys()):
        found = definition.definitions[name]
        if name in _SPECIAL:
            _check_special(archive, each, name, found)
        elif name in _LARGE:
            _check_large(archive, each, name, found)


def _types(cells: tuple[XsdCell, ...]) -> list[str]:
    return [
        name
        for cell in cells
        for name in (_types(cell.parts) if cell.parts else [cell.type])
        if name
    ]


def _check_special(archive: Archive, each: TableFiles, name: str, found: Definition) -> None:
    where, report = f"{each.xsd}: {name}", archive.report
    if found.base != _SPECIAL[name]:
        report("T_6.1-3", where, f"it is made from {found.base} instead of {_SPECIAL[name]}")
        return
    facets = dict(found.facets)
    if name in _LIMITS:
        _check_limits(archive, where, name, facets)
    patterns = [value for facet, value in found.facets if facet == "pattern"]
    if not patterns or any(_matches(pattern, _ELSEWHERE[name]) for pattern in patterns):
        report("T_6.3-2", where, "it allows other time zones than UTC")
    elif not any(_matches(pattern, f"{_ELSEWHERE[name][:-6]}Z") for pattern in patterns):
        report(
            "T_6.1-3", where,
            "its pattern is narrower than the standard's: it refuses "
            f"{_ELSEWHERE[name][:-6]}Z",
            Severity.NOTE,
        )  # fmt: skip


def _check_limits(archive: Archive, where: str, name: str, facets: dict[str, str]) -> None:
    lowest, beyond, highest = _LIMITS[name]
    low = facets.get("minInclusive", "")
    high = facets.get("maxExclusive", facets.get("maxInclusive", ""))
    if not low.startswith(lowest):
        archive.report("T_6.3-1", where, "it allows dates before the year 0001")
    if not high.startswith((beyond, highest)):
        archive.report("T_6.3-1", where, "it allows dates after the year 9999")


@lru_cache(maxsize=256)
def _matches(pattern: str, text: str) -> bool:
    """Ask libxml2: its expressions are XML Schema's, and it never takes for ever."""
    root = etree.fromstring(_PATTERN)
    root.find(".//{*}pattern").set("value", pattern)
    probe = etree.Element("probe")
    probe.text = text
    try:
        matched: bool = etree.XMLSchema(root).validate(probe)
    except etree.XMLSchemaParseError:
        return False
    return matched


_PATTERN = f"""<xs:schema xmlns:xs="{XS}"><xs:element name="probe"><xs:simpleType>
  <xs:restriction base="xs:string"><xs:pattern/></xs:restriction>
</xs:simpleType></xs:element></xs:schema>"""


def _check_large(archive: Archive, each: TableFiles, name: str, found: Definition) -> None:
    where, report = f"{each.xsd}: {name}", archive.report
    if found.base != _LARGE[name]:
        report("T_6.1-3", where, f"it is made from {found.base} instead of {_LARGE[name]}")
        return
    attributes = {attribute for attribute, _ in found.attributes}
    if missing := sorted({"file", "length"} - attributes):
        report("T_6.1-3", where, f"it lacks the attributes {', '.join(missing)}")
    if missing := sorted({"digestType", "digest"} - attributes):
        report("T_6.1-3", where, f"it lacks the attributes {', '.join(missing)}", Severity.WARNING)
