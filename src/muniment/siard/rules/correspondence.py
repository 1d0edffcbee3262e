"""Chapter 4.3: metadata.xml, the folders and the tables' schemas say the same."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.errors import NotFound
from muniment.findings import Severity
from muniment.siard.rules.archive import Archive, TableFiles
from muniment.siard.rules.registry import Rule
from muniment.siard.rules.tablexsd import XsdCell
from muniment.sql.model import Array, Column, Leaf, Shape, Struct, shape_of
from muniment.sql.types import Kind, NamedType

__all__ = ["RULES", "check_correspondence", "check_structure"]

RULES = (
    Rule(
        "P_4.3-1", "M",
        "Schemas and tables in metadata.xml are the folders in content/, and the other way round.",
        "Each declared folder with its files; each folder in content/ that nothing declares; two "
        "tables that share a folder.",
        "Add what is missing, or take out of metadata.xml or content/ what the other lacks.",
    ),
    Rule(
        "P_4.3-2", "M",
        "A table has as many columns in metadata.xml as in its schema.",
        "Both numbers.",
        "Write the table's schema again from the metadata.",
    ),
    Rule(
        "P_4.3-3", "M",
        "SQL types become the XML types of the standard's table.",
        "The XML type of each column against its SQL type; one that is only wider is a warning.",
        "Write the table's schema again with the types of P_4.3-3.",
    ),
    Rule(
        "P_4.3-4", "M",
        "A column of a DISTINCT type has the XML type of its base type.",
        "As P_4.3-3, for columns and parts of a DISTINCT type.",
        "Write the table's schema again with the types of P_4.3-3.",
        since="2.0",
    ),
    Rule(
        "P_4.3-5", "M",
        "An array is a sequence of <a1>, <a2> … of its element's type.",
        "The parts of the column in the schema, their types and their number.",
        "Declare <a1>, <a2> … in the table's schema, up to the cardinality.",
        since="2.0",
    ),
    Rule(
        "P_4.3-6", "M",
        "A UDT is a sequence of <u1>, <u2> … of its attributes' types.",
        "The parts of the column in the schema, their types and their number, at every depth.",
        "Declare <u1>, <u2> … in the table's schema, one per attribute.",
        since="2.0",
    ),
    Rule(
        "P_4.3-7", "M",
        "A column may be NULL in the metadata if and only if it may be missing in the schema.",
        "nullable against minOccurs, where nullable is stated.",
        'Set minOccurs="0" for columns that may be NULL, and for no others.',
    ),
    Rule(
        "P_4.3-8", "M",
        "Columns come in the same order in metadata.xml and in the schema.",
        "That the schema's elements are in the order of their numbers.",
        "Write the table's schema again from the metadata.",
    ),
    Rule(
        "P_4.3-9", "M",
        "Fields in metadata.xml are those of the column's type and of the schema.",
        "The number of fields of each UDT at every depth; their names, as a note.",
        "Describe every part of the column as a field, in order.",
        since="2.0",
    ),
    Rule(
        "P_4.3-10", "M",
        "The number of rows in metadata.xml is that in the table's file, and the schema allows it.",
        "The rows counted against the metadata; both against minOccurs and maxOccurs.",
        "Correct the number in metadata.xml if no rows were lost, else archive the table again.",
        rows=True,
    ),
)  # fmt: skip

# P_4.3-3 by kind; text and bytes may be stored as large objects whatever they are called.
_TYPES = {
    Kind.INTEGER: {"xs:integer"},
    Kind.DECIMAL: {"xs:decimal"},
    Kind.BOOLEAN: {"xs:boolean"},
    Kind.TEXT: {"xs:string", "clobType"},
    Kind.BINARY: {"xs:hexBinary", "blobType", "clobType"},  # clobType: as printed for VARBINARY
    Kind.DATE: {"dateType"},
    Kind.TIME: {"timeType"},
    Kind.TIMESTAMP: {"dateTimeType"},
    Kind.INTERVAL: {"xs:duration"},
    Kind.DATALINK: {"blobType", "clobType", "datalinkType"},
}
_LARGE_TYPES = {Kind.TEXT: {"clobType"}, Kind.BINARY: {"blobType"}}
# Not what the table says, but every value of the type fits.
_WIDER = {
    Kind.INTEGER: {"xs:decimal", "xs:long", "xs:int", "xs:short"},
    Kind.DECIMAL: {"xs:integer"},
    Kind.FLOAT: {"xs:float", "xs:double", "xs:decimal"},
    Kind.TEXT: {"xs:string"},
    Kind.BINARY: {"xs:hexBinary", "clobType"},
    Kind.DATE: {"xs:date"},
    Kind.TIME: {"xs:time"},
    Kind.TIMESTAMP: {"xs:dateTime"},
    Kind.INTERVAL: {"xs:string"},
}


def check_structure(archive: Archive) -> None:
    """P_4.3-1."""
    report = archive.report
    report.look("P_4.3-1")
    database = archive.database
    assert database is not None
    known = {f"content/{s.folder}/" for s in database.schemas}
    known |= {f"content/{s.folder}/{t.folder}/" for s, t in database.tables()}
    there: set[str] = set()
    for name in archive.names():
        parts = name.split("/")
        there |= {"/".join(parts[:n]) + "/" for n in (2, 3) if len(parts) > n}
    for folder in sorted(there - known):
        if folder.startswith("content/") and not _inside_unknown(folder, known):
            report(
                "P_4.3-1", folder, "no schema or table in metadata.xml has this folder",
                kind="undeclared",
            )  # fmt: skip
    shared: dict[str, str] = {}
    for each in archive.tables:
        folder = f"content/{each.schema.folder}/{each.table.folder}/"
        if folder in shared:
            report("P_4.3-1", each.name, f"it has the same folder as {shared[folder]}: {folder}")
        elif folder not in there:
            report("P_4.3-1", each.name, f"its folder {folder} is missing", kind="missing")
        shared[folder] = each.name


def _inside_unknown(folder: str, known: set[str]) -> bool:
    """Whether the folder above is unknown as well, and is told instead."""
    parent = "/".join(folder.split("/")[:2]) + "/"
    return parent != folder and parent not in known


def check_correspondence(archive: Archive, each: TableFiles) -> None:
    """P_4.3-2 to P_4.3-9 for one table."""
    report, definition = archive.report, each.definition
    if definition is None:
        return
    report.look("P_4.3-2", "P_4.3-3", "P_4.3-7", "P_4.3-8", "P_4.3-10")
    cells, columns = definition.cells, each.table.columns
    if len(cells) != len(columns):
        report(
            "P_4.3-2", each.name,
            f"metadata.xml has {len(columns)} columns, the schema {len(cells)}",
        )  # fmt: skip
    numbers = [int(cell.name[1:]) for cell in cells if cell.name[1:].isdecimal()]
    if numbers != sorted(numbers):
        report("P_4.3-8", each.name, "the schema's columns are not in the order of the metadata")
    by_name = {cell.name: cell for cell in cells}
    for number, column in enumerate(columns, 1):
        cell = by_name.get(f"c{number}")
        if cell is not None:
            _check_column(archive, each, column, cell)
    _check_row_limits(archive, each)


def _check_row_limits(archive: Archive, each: TableFiles) -> None:
    definition, rows = each.definition, each.table.rows
    assert definition is not None
    highest = definition.rows_to
    if rows < definition.rows_from or (highest is not None and rows > highest):
        limit = "any number" if highest is None else str(highest)
        archive.report(
            "P_4.3-10", each.name,
            f"metadata.xml has {rows} rows, the schema allows {definition.rows_from} to {limit}",
        )  # fmt: skip


def _check_column(archive: Archive, each: TableFiles, column: Column, cell: XsdCell) -> None:
    where, report = f"{each.name}.{column.name}", archive.report
    if column.nullable is not None and column.nullable != cell.optional:
        allowed = "may" if column.nullable else "must not"
        missing = "may" if cell.optional else "must not"
        report(
            "P_4.3-7", where,
            f"it {allowed} be NULL in metadata.xml, and {missing} be missing in the schema",
        )  # fmt: skip
    database = archive.database
    assert database is not None
    if f"column {where}" in archive.unknown_types:
        return  # told by G_3.1-1; nobody knows what it should be stored as
    try:
        shape = shape_of(database, each.schema.name, column)
    except NotFound:
        return  # told by the chapter on metadata
    rule = "P_4.3-4" if isinstance(column.type, NamedType) else "P_4.3-3"
    for broken, place, message, severity in _compare(shape, cell, where, rule, archive):
        report(broken, place, message, severity, kind=f"{broken} {severity}")
    if column.fields:
        report.look("P_4.3-9")
        _check_fields(archive, where, column, shape)


_Difference = tuple[str, str, str, Severity | None]


def _compare(
    shape: Shape, cell: XsdCell, where: str, rule: str, archive: Archive
) -> Iterator[_Difference]:
    """Yield rule, place, message and severity where the schema says other than the metadata."""
    if isinstance(shape, Leaf):
        archive.report.look(rule)
        yield from _compare_leaf(shape, cell, where, rule, archive.version.number)
        return
    rule, letter = ("P_4.3-5", "a") if isinstance(shape, Array) else ("P_4.3-6", "u")
    archive.report.look(rule)
    if cell.any and not cell.parts:
        yield rule, where, "the schema does not say which parts it has", Severity.WARNING
        return
    names = [part.name for part in cell.parts if not part.any]
    if names != [f"{letter}{n}" for n in range(1, len(names) + 1)]:
        return  # T_6.1-4 tells
    wanted = shape.cardinality if isinstance(shape, Array) else len(shape.parts)
    # An array may have fewer elements than its cardinality, so its schema may name fewer.
    wrong = len(names) > wanted if isinstance(shape, Array) else len(names) != wanted
    if wrong and not cell.any:
        yield rule, where, f"it has {wanted} parts, the schema {len(names)}", None
    inner = [shape.element] * len(names) if isinstance(shape, Array) else shape.parts
    for part, element in zip(inner, cell.parts, strict=False):
        yield from _compare(part, element, f"{where}/{element.name}", "P_4.3-3", archive)


def _compare_leaf(
    shape: Leaf, cell: XsdCell, where: str, rule: str, version: str
) -> Iterator[_Difference]:
    type_, found = shape.type, cell.type or "a type of its own"
    if cell.parts:
        yield rule, where, f"{type_} is stored in parts", None
        return
    wanted = _TYPES.get(type_.kind) or {type_.xml}
    if type_.large:
        wanted = _LARGE_TYPES.get(type_.kind, wanted)
    if version in ("1.0", "2.0"):
        wanted = wanted | _WIDER.get(type_.kind, set())
    if cell.type in wanted:
        return
    wider = cell.type in _WIDER.get(type_.kind, ())
    best = " or ".join(sorted(_TYPES.get(type_.kind) or {type_.xml}))
    yield (
        rule, where, f"{type_} is stored as {found} instead of {best}",
        Severity.WARNING if wider else None,
    )  # fmt: skip


def _check_fields(archive: Archive, where: str, column: Column, shape: Shape) -> None:
    if isinstance(shape, Leaf):
        archive.report("P_4.3-9", where, f"it has fields, but its type {column.type} has no parts")
        return
    _compare_fields(archive, where, column.fields, shape)


def _compare_fields(archive: Archive, where: str, fields: tuple, shape: Shape) -> None:  # type: ignore[type-arg]
    if isinstance(shape, Leaf):
        return
    if isinstance(shape, Struct):
        if len(fields) != len(shape.parts):
            archive.report(
                "P_4.3-9", where,
                f"it has {len(fields)} fields, its type {len(shape.parts)} attributes",
            )  # fmt: skip
            return
        names = [field.name for field in fields]
        if shape.names and names != list(shape.names):
            archive.report(
                "P_4.3-9", where,
                "its fields are not named like the attributes of its type",
                Severity.NOTE,
            )  # fmt: skip
        inner = shape.parts
    else:
        if len(fields) > shape.cardinality:
            archive.report(
                "P_4.3-9", where,
                f"it has {len(fields)} fields, but at most {shape.cardinality} elements",
            )  # fmt: skip
        inner = (shape.element,) * len(fields)
    for field, part in zip(fields, inner, strict=False):
        if field.fields:
            _compare_fields(archive, f"{where}.{field.name}", field.fields, part)
