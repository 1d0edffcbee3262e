"""tableN.xsd: the schema of one table's file (T_6.1, P_4.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from muniment.sql.model import Array, Column, Leaf, Shape
from muniment.sql.types import Kind, PredefinedType

__all__ = ["TABLE_NAMESPACE", "table_schema"]

TABLE_NAMESPACE = "http://www.bar.admin.ch/xmlns/siard/2/table.xsd"

_HEAD = f"""<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="{TABLE_NAMESPACE}"
    targetNamespace="{TABLE_NAMESPACE}"
    elementFormDefault="qualified" attributeFormDefault="unqualified" version="2.2">
  <xs:element name="table">
    <xs:complexType>
      <xs:sequence>
        <xs:element name="row" type="recordType" minOccurs="0" maxOccurs="unbounded"/>
      </xs:sequence>
      <xs:attribute name="version" type="versionType" use="required"/>
    </xs:complexType>
  </xs:element>
  <xs:simpleType name="versionType">
    <xs:restriction base="xs:string">
      <xs:whiteSpace value="collapse"/>
      <xs:enumeration value="2.2"/>
    </xs:restriction>
  </xs:simpleType>
  <!-- A column that is NULL is left out of its row; one that is the empty string is there. -->
  <xs:complexType name="recordType">
    <xs:sequence>
"""

_LARGE = """  <xs:complexType name="{name}">
    <xs:simpleContent>
      <xs:extension base="{base}">
        <xs:attribute name="file" type="xs:anyURI"/>
        <xs:attribute name="length" type="xs:integer"/>
        <xs:attribute name="digestType" type="digestTypeType"/>
        <xs:attribute name="digest" type="xs:string"/>
        <xs:attribute name="dlurlpathonly" type="xs:anyURI"/>
      </xs:extension>
    </xs:simpleContent>
  </xs:complexType>
"""

_SPECIAL = {
    "clobType": _LARGE.format(name="clobType", base="xs:string"),
    "blobType": _LARGE.format(name="blobType", base="xs:hexBinary"),
    "digestTypeType": """  <xs:simpleType name="digestTypeType">
    <xs:restriction base="xs:string">
      <xs:whiteSpace value="collapse"/>
      <xs:enumeration value="MD5"/>
      <xs:enumeration value="SHA-1"/>
      <xs:enumeration value="SHA-256"/>
    </xs:restriction>
  </xs:simpleType>
""",
    "dateType": """  <xs:simpleType name="dateType">
    <xs:restriction base="xs:date">
      <xs:minInclusive value="0001-01-01Z"/>
      <xs:maxExclusive value="10000-01-01Z"/>
      <xs:pattern value="\\d{4}-\\d{2}-\\d{2}Z?"/>
    </xs:restriction>
  </xs:simpleType>
""",
    "timeType": """  <xs:simpleType name="timeType">
    <xs:restriction base="xs:time">
      <xs:pattern value="\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?Z?"/>
    </xs:restriction>
  </xs:simpleType>
""",
    "dateTimeType": """  <xs:simpleType name="dateTimeType">
    <xs:restriction base="xs:dateTime">
      <xs:minInclusive value="0001-01-01T00:00:00.000000000Z"/>
      <xs:maxExclusive value="10000-01-01T00:00:00.000000000Z"/>
      <xs:pattern value="\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?Z?"/>
    </xs:restriction>
  </xs:simpleType>
""",
}


_MOST_ELEMENTS = 2048  # of an array; some products declare two thousand million


def table_schema(
    columns: Sequence[Column], shapes: Sequence[Shape], stored: Collection[int] = ()
) -> bytes:
    """Return the XML schema that the table's file obeys.

    ``stored`` columns may have their values in files, whatever their type.
    """
    lines = [_HEAD]
    for number, (column, shape) in enumerate(zip(columns, shapes, strict=True), 1):
        large = number - 1 in stored
        lines += _element(f"c{number}", shape, column.nullable is not False, 6, large)
    lines.append("    </xs:sequence>\n  </xs:complexType>\n")
    used = {name for k, shape in enumerate(shapes) for name in _special_types(shape, k in stored)}
    lines += [text for name, text in _SPECIAL.items() if name in used]
    lines.append("</xs:schema>\n")
    return "".join(lines).encode()


def _xml_type(type_: PredefinedType, stored: bool) -> str:
    """P_4.3-3: short types become the types of large objects where values lie in files."""
    if stored and type_.kind is Kind.TEXT:
        return "clobType"
    return "blobType" if stored and type_.kind is Kind.BINARY else type_.xml


def _element(
    name: str, shape: Shape, optional: bool, indent: int, stored: bool = False
) -> Iterator[str]:
    margin = " " * indent
    occurs = ' minOccurs="0"' if optional else ""
    if isinstance(shape, Leaf):
        type_ = _xml_type(shape.type, stored)
        yield f'{margin}<xs:element name="{name}" type="{type_}"{occurs}/>\n'
        return
    yield f'{margin}<xs:element name="{name}"{occurs}>\n{margin}  <xs:complexType>\n'
    yield f"{margin}    <xs:sequence>\n"
    if isinstance(shape, Array) and shape.cardinality > _MOST_ELEMENTS:
        yield (
            f'{margin}      <xs:any minOccurs="0" maxOccurs="unbounded" processContents="skip"/>\n'
            f"{margin}    </xs:sequence>\n{margin}  </xs:complexType>\n{margin}</xs:element>\n"
        )
        return
    parts = [shape.element] * shape.cardinality if isinstance(shape, Array) else shape.parts
    letter = "a" if isinstance(shape, Array) else "u"
    for number, part in enumerate(parts, 1):
        yield from _element(f"{letter}{number}", part, True, indent + 6, stored)
    yield f"{margin}    </xs:sequence>\n{margin}  </xs:complexType>\n{margin}</xs:element>\n"


def _special_types(shape: Shape, stored: bool) -> Iterator[str]:
    if isinstance(shape, Leaf):
        name = _xml_type(shape.type, stored)
        yield name
        if name in ("clobType", "blobType"):
            yield "digestTypeType"
        return
    for part in (shape.element,) if isinstance(shape, Array) else shape.parts:
        yield from _special_types(part, stored)
