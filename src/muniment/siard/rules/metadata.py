"""Chapter 5.0: metadata.xml against the definition of its version and against its own schema.

Each schema alone can be fooled: the archive's own may have been weakened to let a bad metadata.xml
pass, and nobody else may ever compare it. So its own schema is put to the test with documents that
the definition refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from lxml import etree

from muniment.errors import SiardError
from muniment.findings import Severity
from muniment.siard.rules.archive import Archive, safe_parser
from muniment.siard.rules.levels import LEVELS, level_of
from muniment.siard.rules.registry import Rule
from muniment.siard.rules.tablexsd import NotASchema, refuse_dangers
from muniment.siard.schemas import compiled_schema, schema_of
from muniment.siard.text import unescape

__all__ = ["RULES", "check_metadata_xml", "place", "whole_document"]

RULES = (
    Rule(
        "M_5.0-1", "M",
        "metadata.xml is valid against metadata.xsd.",
        "Validity against the definition of the archive's version, and against the archive's own "
        "metadata.xsd; that its own schema refuses what the definition refuses.",
        "Correct metadata.xml; put the standard's metadata.xsd beside it.",
    ),
)  # fmt: skip

_XS = "http://www.w3.org/2001/XMLSchema"
_SCHEMA_LIMIT = 1 << 22
_MOST_ERRORS = 1000
_LONG_PATTERN = re.compile(r"is not accepted by the pattern '.{40,}", re.S)  # told to nobody's use


def check_metadata_xml(archive: Archive) -> None:
    """M_5.0-1, and what is not completed at its level (M_5.1-1 to M_5.19-1)."""
    report = archive.report
    report.look("M_5.0-1")
    definition = compiled_schema(archive.version.number)
    errors = list(_errors(definition, archive.metadata))
    for where, message in errors:
        report("M_5.0-1", where, message, kind=_kind(message))
    if errors:
        _check_complete(archive)
    own = _own_schema(archive)
    if own is None:
        return
    for where, message in _errors(own, archive.metadata):
        if (where, message) not in errors:
            text = f"by the archive's own metadata.xsd: {message}"
            report("M_5.0-1", where, text, kind=f"own {_kind(message)}")
    _check_weakened(archive, own)


def _errors(schema: Any, root: Any) -> Iterator[tuple[str, str]]:
    """Yield place and message of each error."""
    if schema.validate(root):
        return
    tree = root.getroottree()
    for error in list(schema.error_log)[:_MOST_ERRORS]:
        found = tree.xpath(error.path) if error.path else []
        element = found[0] if found else root
        message = re.sub(r"\{[^}]*\}", "", error.message).rstrip(". ")
        message = _LONG_PATTERN.sub("has not the form that is asked for", message)
        yield f"metadata.xml, line {error.line}: {place(element)}", message


def place(element: Any) -> str:
    """The kind and the full name of what an element belongs to: "table public.orders"."""
    chain = [node for node in (*reversed([*element.iterancestors()]), element) if _own_name(node)]
    if not chain:
        return "the database"
    return f"{etree.QName(chain[-1]).localname} {'.'.join(_own_name(node) for node in chain)}"


def _own_name(node: Any) -> str:
    return unescape(node.findtext("{*}name") or "")


def _kind(message: str) -> str:
    return re.sub(r"'[^']*'", "'…'", message)


# What older versions do not have, or do not ask for.
_NOT_YET = {("routine", "specificName"), ("field", "name"), ("primaryKey", "name")}


def _check_complete(archive: Archive) -> None:
    """Something mandatory that is missing is a fault of its level, too."""
    old = archive.version.number in ("1.0", "2.0")
    for element in archive.metadata.iter():
        if not isinstance(element.tag, str) or not len(element):
            continue
        level = LEVELS.get(etree.QName(element).localname)
        there = {etree.QName(child).localname for child in element if isinstance(child.tag, str)}
        for name in sorted(level.mandatory - there) if level else ():
            assert level is not None
            if not (old and (level.element, name) in _NOT_YET):
                where = f"metadata.xml, line {element.sourceline}: {place(element)}"
                archive.report(level.rule, where, f"{name} is missing", kind=f"{name} is missing")


def _own_schema(archive: Archive) -> Any:
    """The archive's own metadata.xsd, compiled; None if it is missing (P_4.2-5) or no schema."""
    name = "header/metadata.xsd"
    if not archive.has(name):
        return None
    try:
        data = archive.read(name, _SCHEMA_LIMIT)
    except SiardError as error:
        if archive.root + name not in archive.damaged:
            archive.report("M_5.0-1", name, str(error))
        return None
    try:
        root = etree.fromstring(data, safe_parser())
        refuse_dangers(root)
        return etree.XMLSchema(root)
    except (etree.XMLSyntaxError, etree.XMLSchemaParseError, NotASchema, ValueError) as error:
        archive.report("M_5.0-1", name, f"it cannot be used as a schema: {error}")
        return None


def _check_weakened(archive: Archive, own: Any) -> None:
    """Show the archive's own schema documents that the definition refuses."""
    missing: list[str] = []
    wider: list[str] = []
    definition = compiled_schema(archive.version.number)
    for label, mandatory, probe in _probes(archive.version.number):
        if own.validate(probe) and not definition.validate(probe):
            (missing if mandatory else wider).append(label)
    if missing:
        archive.report(
            "M_5.0-1", "header/metadata.xsd",
            f"it was weakened: it accepts metadata without {_some(missing)}",
        )  # fmt: skip
    if wider:
        archive.report(
            "M_5.0-1", "header/metadata.xsd",
            f"it accepts more than the standard does: {_some(wider)}",
            Severity.WARNING,
        )  # fmt: skip


def _some(labels: list[str]) -> str:
    more = f" and {len(labels) - 4} more" if len(labels) > 4 else ""
    return ", ".join(labels[:4]) + more


def _probes(version: str) -> Iterator[tuple[str, bool, Any]]:
    """Yield documents that are wrong in one point each: what, whether something is missing."""
    whole = whole_document(version)
    for label, value in (("@version", None), ("another version", "0.0")):
        probe = deepcopy(whole)
        del probe.attrib["version"]
        probe.attrib.update({} if value is None else {"version": value})
        yield f"siardArchive/{label}" if value is None else label, value is None, probe
    for number, element in enumerate(whole.iter()):
        name = etree.QName(element).localname
        if element.getparent() is not None and name in level_of(element.getparent()).mandatory:
            probe = deepcopy(whole)
            target = _nth(probe, number)
            target.getparent().remove(target)
            yield f"{etree.QName(element.getparent()).localname}/{name}", True, probe
        if element.text and element.text.strip() and not len(element):
            probe = deepcopy(whole)
            _nth(probe, number).text = "?"
            yield f"any text as {name}", False, probe
        probe = deepcopy(whole)
        etree.SubElement(
            _nth(probe, number), (etree.QName(whole).namespace and "{x}more") or "more"
        )
        yield f"unknown elements in {name}", False, probe


def _nth(root: Any, number: int) -> Any:
    for position, element in enumerate(root.iter()):
        if position == number:
            return element
    raise IndexError(number)


def whole_document(version: str) -> Any:
    """A document with every element that the definition of a version knows, once."""
    schema = etree.fromstring(schema_of(version))
    namespace = schema.get("targetNamespace")
    types = {e.get("name"): e for e in schema if isinstance(e.tag, str) and e.get("name")}
    root = etree.Element(f"{{{namespace}}}siardArchive", version=version)
    _fill(root, types["siardArchive"][0], types, 0)
    return root


def _fill(parent: Any, definition: Any, types: dict[str, Any], depth: int) -> None:
    for particle in definition:
        name = etree.QName(particle).localname if isinstance(particle.tag, str) else ""
        if name in ("sequence", "complexType"):
            _fill(parent, particle, types, depth)
        elif name == "choice":
            _fill(parent, [particle[0]], types, depth)
        elif name == "group":
            _fill(parent, types[particle.get("ref")][0], types, depth)
        elif name == "element" and depth < 12 and particle.get("name") != "fields":
            namespace = etree.QName(parent).namespace
            child = etree.SubElement(parent, f"{{{namespace}}}{particle.get('name')}")
            _value(child, particle.get("type"), types, depth)


_VALUES = {
    "xs:date": "2020-01-01", "xs:integer": "1", "xs:boolean": "true", "xs:anyURI": "x",
    "predefinedTypeType": "INTEGER", "fsName": "folder1", "digestTypeType": "MD5",
    "categoryType": "udt", "matchTypeType": "FULL", "referentialActionType": "CASCADE",
    "actionTimeType": "BEFORE", "privOptionType": "GRANT",
    "messageDigestType": "MD50cc175b9c0f1b6a831c399e269772661",
}  # fmt: skip


def _value(element: Any, type_: str, types: dict[str, Any], depth: int) -> None:
    definition = types.get(type_)
    if definition is not None and definition.tag == f"{{{_XS}}}complexType":
        _fill(element, definition, types, depth + 1)
    else:
        element.text = _VALUES.get(type_, "x")
