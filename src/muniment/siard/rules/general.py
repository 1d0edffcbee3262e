"""Chapter 3: XML, Unicode, escapes, URIs and identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from muniment.findings import Severity
from muniment.siard.rules.archive import Archive
from muniment.siard.rules.metadata import place
from muniment.siard.rules.registry import Rule
from muniment.siard.text import unescape
from muniment.sql.model import Database
from muniment.sql.names import LONGEST, is_regular
from muniment.sql.types import PredefinedType

__all__ = ["RULES", "check_general", "uri_faults"]

RULES = (
    Rule(
        "G_3.1-1", "M",
        "Content is XML 1.0 under XML Schema 1.0; types and SQL are those of SQL:2008.",
        "The XML declaration of metadata.xml and of each table; that no file has a document type; "
        "that each type of the metadata is one of SQL:2008. Whether the SQL of views, routines, "
        "triggers and checks is SQL:2008 is not checked: products archive their own dialect, "
        "which 5.14 and 5.15 allow.",
        "Write the file again as XML 1.0 without a document type; give what has a type one of "
        "SQL:2008.",
    ),
    Rule(
        "G_3.2-1", "M",
        "One database is one SIARD file, which may refer to large objects outside.",
        "",
        unchecked="What else belonged to the database is not in the archive, so no program can "
        "tell. That a split archive is whole is S_8.2-0.",
    ),
    Rule(
        "G_3.3-1", "M",
        "All data are Unicode.",
        "The encoding of metadata.xml, of each table and of each text in a file of its own.",
        "Write the file again in UTF-8.",
        rows=True,
    ),
    Rule(
        "G_3.3-2", "M",
        "National character types become the plain ones.",
        "Columns, attributes and base types of type NCHAR, NCHAR VARYING and NCLOB. P_4.3-3 lists "
        "these types as allowed, so they are a warning.",
        "Declare CHAR, VARCHAR or CLOB: all text is Unicode.",
    ),
    Rule(
        "G_3.3-3", "M",
        "Characters that mean something in XML are entities; control characters are escaped.",
        "Control characters 127-159 that stand unescaped in cells and metadata (XML itself refuses "
        "the others); 9, 10 and 13 are allowed by G_3.3-4.",
        "Escape control characters as \\u00XX.",
        rows=True,
    ),
    Rule(
        "G_3.3-4", "M",
        "The backslash and repeated spaces are escaped as \\u00XX.",
        "Backslashes in cells that begin no escape; spaces in cells that follow a space. In "
        "metadata.xml they are a note, since its text is for people.",
        "Escape the backslash as \\u005c and repeated spaces as \\u0020.",
        rows=True,
    ),
    Rule(
        "G_3.4-1", "M",
        "Files outside are named by file URIs (RFC 8089).",
        "The syntax and the scheme of each lobFolder and of each file attribute.",
        "Name files by relative references or by file URIs.",
        since="2.0",
        rows=True,
    ),
    Rule(
        "G_3.4-2", "M",
        "File URIs are stored as URL-encoded ASCII.",
        "Characters that a URI may not hold in each lobFolder and each file attribute; only spaces "
        "are a warning, since Appendix E only advises against them.",
        "Write such characters as %XX.",
        since="2.0",
        rows=True,
    ),
    Rule(
        "G_3.4-3", "O",
        "Large objects outside may lie in ZIP files that the URI goes through.",
        "That the object is found there.",
        "Deliver the ZIP file.",
        since="2.0",
        rows=True,
    ),
    Rule(
        "G_3.5-1", "M",
        "Identifiers are Unicode.",
        "Names for characters that Unicode does not have, and for replacement characters.",
        "Correct the name; its text was damaged on the way into the archive.",
    ),
    Rule(
        "G_3.5-2", "M",
        "Regular identifiers are in upper case, without quotation marks, at most 128 characters.",
        "Names in quotation marks that need none. A name in lower case is a delimited one, so its "
        "case is no fault; so is one of more than 128 characters, which few products have room "
        "for: a warning.",
        "Take off the quotation marks.",
    ),
    Rule(
        "G_3.5-3", "M",
        "Delimited identifiers are stored without quotation marks.",
        "Names in quotation marks, and in the brackets or backticks of products. Marks that are "
        "part of a name are written as \\u0022 and are no fault.",
        "Take off the quotation marks.",
    ),
)  # fmt: skip

_DECLARATION = re.compile(rb"""\s*<\?xml\s+version\s*=\s*["']([^"']*)["']""")
_CONTROLS = re.compile("[\x7f-\x9f]")
_RAW_BACKSLASH = re.compile(r"\\(?!u[0-9A-Fa-f]{4})")
_QUOTES = {'"': '"', "`": "`", "[": "]"}
_URI = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?#\[\]]|%[0-9A-Fa-f]{2})*")
_DRIVE = re.compile(r"[A-Za-z]:")


def check_general(archive: Archive, metadata: bytes) -> None:
    """Check chapter 3, as far as the metadata are concerned."""
    report, database = archive.report, archive.database
    assert database is not None
    report.look(
        "G_3.1-1", "G_3.3-1", "G_3.3-2", "G_3.3-3", "G_3.3-4", "G_3.5-1", "G_3.5-2", "G_3.5-3"
    )
    check_declaration(archive, "header/metadata.xml", metadata[:200])
    _check_types(archive, database)
    _check_texts(archive)
    for where, name in _identifiers(archive.metadata):
        _check_identifier(archive, where, name)
    for where, uri in _folders(database):
        report.look("G_3.4-1", "G_3.4-2")
        for rule, message, severity in uri_faults(uri):
            report(rule, where, message, severity)


def check_declaration(archive: Archive, name: str, start: bytes) -> None:
    """G_3.1-1: XML 1.0."""
    match = _DECLARATION.match(start.removeprefix(b"\xef\xbb\xbf"))
    if match and match[1] != b"1.0":
        archive.report("G_3.1-1", name, f"it is XML {match[1].decode('ascii', 'replace')}, not 1.0")


def _check_types(archive: Archive, database: Database) -> None:
    for schema in database.schemas:
        for user_type in schema.types:
            if user_type.base is not None:
                _check_national(archive, f"{schema.name}.{user_type.name}", user_type.base)
            for attribute in user_type.attributes:
                where = f"{schema.name}.{user_type.name}.{attribute.name}"
                _check_national(archive, where, attribute.type)
        for table in schema.tables:
            for column in table.columns:
                where = f"{schema.name}.{table.name}.{column.name}"
                _check_national(archive, where, column.type)
    for element in archive.metadata.iter("{*}type", "{*}base"):
        text = (element.text or "").strip()
        parent = element.getparent().tag.rpartition("}")[2]
        if text and not len(element) and parent in ("column", "attribute", "parameter", "type"):
            _check_sql_type(archive, element, text)


def _check_national(archive: Archive, where: str, type_: object) -> None:
    if isinstance(type_, PredefinedType) and type_.name.startswith("NC"):
        archive.report(
            "G_3.3-2", where, f"its type {type_} is a national one", Severity.WARNING,
            kind="national",
        )  # fmt: skip


def _check_sql_type(archive: Archive, element: Any, text: str) -> None:
    from muniment.errors import FormatError
    from muniment.sql.types import parse_type

    old = archive.version.number in ("1.0", "2.0") and text.upper().startswith("BIT")
    try:
        if not old:
            parse_type(" ".join(unescape(text).split()))
    except (FormatError, ValueError):
        archive.unknown_types.add(place(element))
        where = f"metadata.xml, line {element.sourceline}: {place(element)}"
        archive.report("G_3.1-1", where, f"{text!r} is not a type of SQL:2008", kind="type")


def _check_texts(archive: Archive) -> None:
    for element in archive.metadata.iter():
        text = element.text
        if not isinstance(element.tag, str) or len(element) or not text:
            continue
        faults = (
            ("G_3.3-3", _CONTROLS.search(text), "a control character that is not escaped", None),
            ("G_3.3-4", _RAW_BACKSLASH.search(text), "a backslash that is not escaped", 1),
        )
        for rule, found, message, note in faults:
            if found:
                where = f"metadata.xml, line {element.sourceline}: {place(element)}"
                severity = Severity.NOTE if note else None
                archive.report(rule, where, message, severity, kind=f"metadata {message}")


def _identifiers(root: Any) -> Iterator[tuple[str, str]]:
    for element in root.iter("{*}name"):
        parent = element.getparent().tag.rpartition("}")[2]
        if parent not in ("user", "role", "field"):
            where = f"metadata.xml, line {element.sourceline}: {parent}"
            yield where, element.text or ""


def _check_identifier(archive: Archive, where: str, text: str) -> None:
    name = unescape(text)
    report, place_ = archive.report, f"{where} {name[:140]}"
    if re.search("[\ufffd\ufffe\uffff\ud800-\udfff]", name):
        report("G_3.5-1", place_, "its name has characters that are not text")
    closing = _QUOTES.get(text[:1])  # escaped, they are part of the name
    if closing and len(text) > 2 and text.endswith(closing):
        rule = "G_3.5-2" if is_regular(name[1:-1]) else "G_3.5-3"
        weight = None if closing == '"' else Severity.WARNING
        report(rule, place_, "its name stands in quotation marks", weight)
    if len(name) > LONGEST:
        message = f"its name has {len(name)} characters, more than {LONGEST}"
        report("G_3.5-2", place_, message, Severity.WARNING, kind="a long name")


def _folders(database: Database) -> Iterator[tuple[str, str]]:
    if database.lob_folder:
        yield "the database: lobFolder", database.lob_folder
    for schema, table in database.tables():
        for column in table.columns:
            if column.lob_folder:
                yield f"{schema.name}.{table.name}.{column.name}: lobFolder", column.lob_folder


def uri_faults(uri: str) -> Iterator[tuple[str, str, Severity | None]]:
    """Yield the rules of 3.4 that a URI of a file breaks: rule, message, severity if unusual."""
    if "\\" in uri or _DRIVE.match(uri):
        yield "G_3.4-1", f"{uri!r} is a path of Windows, not a URI", None
        return
    if not _URI.fullmatch(uri):
        # Appendix E: XML Schema lets spaces be, and only advises against them.
        severity = Severity.WARNING if _URI.fullmatch(uri.replace(" ", "")) else None
        yield "G_3.4-2", f"{uri!r} has characters that a URI writes as %XX", severity
        return
    try:
        parts = urlsplit(uri)
    except ValueError:
        yield "G_3.4-1", f"{uri!r} is not a URI", None
        return
    if parts.scheme not in ("", "file"):
        yield "G_3.4-1", f"{uri!r} is not a file URI", None
    elif parts.scheme and parts.netloc == "localhost":
        yield "G_3.4-1", f"{uri!r} names localhost, which SIARD leaves out", None
