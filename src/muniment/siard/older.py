"""SIARD 2.0 on its way out: what differs from 2.2 in metadata.xml and in the tables' schemas.

The E-ARK recommendation on large objects (``--lob-layout eark-2.0``) was written for 2.0, and some
tools read nothing newer. What 2.0 has no place for is refused, or left out and told.
"""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

from muniment.errors import UsageError
from muniment.siard.schemas import compiled_schema
from muniment.siard.versions import find_version

__all__ = ["metadata_2_0", "prefixed_digest", "schema_2_0"]

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_OLD = find_version("2.0")
# The elements of a level in the order of 2.0; others are not known there.
_ORDER = {
    "column": (
        "name", "folder", "lobFolder", "type", "typeOriginal", "nullable", "typeSchema", "typeName",
        "fields", "defaultValue", "mimeType", "description",
    ),
    "field": ("lobFolder", "fields", "mimeType", "description"),
    "attribute": (
        "name", "type", "typeOriginal", "typeSchema", "typeName", "defaultValue", "description",
    ),
    "parameter": ("name", "mode", "type", "typeOriginal", "typeSchema", "typeName", "description"),
    "routine": (
        "name", "description", "source", "body", "characteristic", "returnType", "parameters",
    ),
}  # fmt: skip
_TYPED = {"type", "base", "returnType"}
_NO_SCALE = re.compile(r"((?:NUMERIC|DECIMAL|DEC)\(\d+), ?0\)")
_NO_FRACTION = re.compile(r"(TIME[A-Z ]*)\(0\)")


def metadata_2_0(newer: bytes) -> bytes:
    """Return a metadata.xml of SIARD 2.2 as one of 2.0; raise UsageError if that cannot be."""
    space = _OLD.metadata_namespace
    root = etree.Element(f"{{{space}}}siardArchive", nsmap={None: space, "xsi": _XSI})
    root.set("version", _OLD.number)
    root.set(f"{{{_XSI}}}schemaLocation", f"{space} metadata.xsd")
    _copy(etree.fromstring(newer), root)
    for users in root.findall(f"{{{space}}}users"):
        if not len(users):  # 2.0 wants one
            user = etree.SubElement(users, f"{{{space}}}user")
            name = etree.SubElement(user, f"{{{space}}}name")
            name.text = _text(root, "databaseUser") or "unknown"
    schema = compiled_schema("2.0")
    if not schema.validate(root):
        error = schema.error_log[0]
        message = re.sub(r"\{[^}]*\}", "", error.message).rstrip(". ")
        raise UsageError(
            f"SIARD 2.0 has no place for this database: {message} ({_named(root, error.path)}); "
            "archive it as SIARD 2.2"
        )
    etree.indent(root, "  ")
    written: bytes = etree.tostring(root, encoding="UTF-8", xml_declaration=True)
    return written + b"\n"


def schema_2_0(newer: bytes, schema: str, table: str) -> bytes:
    """Return a table's schema of SIARD 2.2 as one of 2.0."""
    text = newer.decode()
    new, old = find_version("2.2"), _OLD.table_namespace.format(schema=schema, table=table)
    text = text.replace(new.table_namespace, old).replace(' version="2.2"', "")
    text = re.sub(r'\n *<xs:attribute name="version"[^>]*/>', "", text)
    for name in ("versionType", "digestTypeType", "dateType", "timeType", "dateTimeType"):
        text = re.sub(
            rf'  <xs:simpleType name="{name}">.*?</xs:simpleType>\n', "", text, flags=re.S
        )
    for special, plain in (("dateTimeType", "xs:dateTime"), ("dateType", "xs:date"), ("timeType", "xs:time")):  # fmt: skip  # noqa: E501
        text = text.replace(f'type="{special}"', f'type="{plain}"')
    text = re.sub(r'\n *<xs:attribute name="(?:digestType|dlurlpathonly)"[^>]*/>', "", text)
    return text.replace(
        '<xs:attribute name="digest" ', '<xs:attribute name="messageDigest" '
    ).encode()


def prefixed_digest(digest_type: str, digest: str) -> str:
    """Return a digest as a cell of SIARD 2.0 has it: behind the name of its algorithm.

    >>> prefixed_digest("MD5", "74f24080fc9d234d3ac221b8e743c763")
    'md574f24080fc9d234d3ac221b8e743c763'
    """
    return f"{digest_type.replace('-', '').lower()}{digest}"


def _copy(source: Any, target: Any) -> None:
    level = etree.QName(source).localname
    children = list(source)
    if level in _ORDER:
        order = _ORDER[level]
        known = [child for child in children if _name(child) in order]
        if any(_name(child) == "cardinality" for child in children):
            raise UsageError(
                f"{_text(source, 'name')} is an array, which SIARD 2.0 has only as a named type; "
                "archive it as SIARD 2.2"
            )
        if any(_name(child) == "typeName" for child in children):
            known = [c for c in known if _name(c) not in ("nullable", "typeOriginal")]
        children = sorted(known, key=lambda child: order.index(_name(child)))
    for child in children:
        name = _name(child)
        made = etree.SubElement(target, f"{{{_OLD.metadata_namespace}}}{name}")
        if name == "messageDigest":
            kind, digest = _text(child, "digestType"), _text(child, "digest")
            made.text = f"{kind}{':' if kind == 'SHA-256' else ''}{digest}"
        else:
            made.text = _type(child.text) if name in _TYPED and child.text else child.text
            _copy(child, made)


def _type(text: str) -> str:
    """One spelling that 2.0 knows: no scale and no fraction of 0; a link is its file."""
    if text == "DATALINK":
        return "BLOB"
    return _NO_FRACTION.sub(r"\1", _NO_SCALE.sub(r"\1)", text))


def _name(element: Any) -> str:
    name: str = etree.QName(element).localname
    return name


def _text(element: Any, name: str) -> str:
    text: str = element.findtext(f"{{*}}{name}") or ""
    return text


def _named(root: Any, path: str | None) -> str:
    """The names of the levels that lead to an element."""
    names: list[str] = []
    found = root.getroottree().xpath(path) if path else []
    for element in [*found[:1], *(found[0].iterancestors() if found else ())]:
        if name := _text(element, "name"):
            names.append(name)
    return ".".join(reversed(names)) or "the database"
