"""A small archive that has some of everything, as files in memory, to be damaged by tests."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

from muniment.siard.metadata import metadata_schema

Files = dict[str, bytes]

TABLE = "http://www.bar.admin.ch/xmlns/siard/2/table.xsd"
META = "http://www.bar.admin.ch/xmlns/siard/2/metadata.xsd"
PICTURE, POEM, TRACK = (
    b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "Öl & Brot\n".encode() * 30,
    b"OggS" * 40,
)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


METADATA = f"""<?xml version="1.0" encoding="UTF-8"?>
<siardArchive xmlns="{META}" version="2.2">
  <dbname>museum</dbname>
  <dataOwner>City museum</dataOwner>
  <dataOriginTimespan>1990-2020</dataOriginTimespan>
  <lobFolder>./museum_lobs/</lobFolder>
  <archivalDate>2024-05-06Z</archivalDate>
  <messageDigest><digestType>SHA-256</digestType><digest>@DIGEST@</digest></messageDigest>
  <schemas>
    <schema>
      <name>MAIN</name>
      <folder>schema0</folder>
      <types>
        <type><name>MONEY</name><category>distinct</category><instantiable>false</instantiable><final>true</final><base>DECIMAL(8,2)</base></type>
        <type>
          <name>PLACE</name><category>udt</category><instantiable>true</instantiable><final>false</final>
          <attributes>
            <attribute><name>ROOM</name><type>INTEGER</type></attribute>
            <attribute><name>WALL</name><type>VARCHAR(5)</type></attribute>
          </attributes>
        </type>
        <type>
          <name>HALL</name><category>udt</category><underSchema>MAIN</underSchema><underType>PLACE</underType><instantiable>true</instantiable><final>false</final>
          <attributes><attribute><name>DOOR</name><type>INTEGER</type></attribute></attributes>
        </type>
      </types>
      <tables>
        <table>
          <name>ARTIST</name>
          <folder>table0</folder>
          <columns>
            <column><name>ID</name><type>INTEGER</type><nullable>false</nullable></column>
            <column><name>COUNTRY</name><type>CHAR(2)</type><nullable>false</nullable></column>
            <column><name>NAME</name><type>VARCHAR(20)</type><nullable>true</nullable></column>
            <column><name>BORN</name><type>DATE</type><nullable>true</nullable></column>
            <column><name>ALIVE</name><type>BOOLEAN</type><nullable>true</nullable></column>
          </columns>
          <primaryKey><name>PK_ARTIST</name><column>ID</column></primaryKey>
          <candidateKeys><candidateKey><name>CK_ARTIST</name><column>ID</column><column>COUNTRY</column></candidateKey></candidateKeys>
          <checkConstraints><checkConstraint><name>CH_ID</name><condition>ID &gt; 0</condition></checkConstraint></checkConstraints>
          <triggers><trigger><name>TR_ARTIST</name><actionTime>BEFORE</actionTime><triggerEvent>UPDATE OF NAME</triggerEvent><triggeredAction>SET NEW.NAME = UPPER(NEW.NAME)</triggeredAction></trigger></triggers>
          <rows>3</rows>
        </table>
        <table>
          <name>WORK</name>
          <folder>table1</folder>
          <columns>
            <column><name>NUMBER</name><type>BIGINT</type><nullable>false</nullable></column>
            <column><name>ARTIST_ID</name><type>INTEGER</type><nullable>true</nullable></column>
            <column><name>ARTIST_COUNTRY</name><type>CHAR(2)</type><nullable>true</nullable></column>
            <column><name>PRICE</name><typeName>MONEY</typeName><nullable>true</nullable></column>
            <column><name>HANGS</name><typeSchema>MAIN</typeSchema><typeName>PLACE</typeName><fields><field><name>ROOM</name></field><field><name>WALL</name></field></fields><nullable>true</nullable></column>
            <column><name>TAGS</name><type>VARCHAR(10)</type><nullable>true</nullable><cardinality>3</cardinality></column>
            <column><name>PICTURE</name><type>BLOB</type><mimeType>image/png</mimeType><nullable>true</nullable></column>
            <column><name>POEM</name><type>CLOB</type><nullable>true</nullable></column>
            <column><name>TRACK</name><lobFolder>s0_t1_c9/</lobFolder><type>DATALINK</type><nullable>true</nullable></column>
            <column><name>SEEN</name><type>TIMESTAMP(3)</type><nullable>true</nullable></column>
            <column><name>OPENS</name><type>TIME</type><nullable>true</nullable></column>
            <column><name>LOAN</name><type>INTERVAL DAY TO SECOND</type><nullable>true</nullable></column>
            <column><name>WEIGHT</name><type>DOUBLE PRECISION</type><nullable>true</nullable></column>
            <column><name>CODE</name><type>VARBINARY(4)</type><nullable>true</nullable></column>
          </columns>
          <primaryKey><name>PK_WORK</name><column>NUMBER</column></primaryKey>
          <foreignKeys><foreignKey><name>FK_ARTIST</name><referencedSchema>MAIN</referencedSchema><referencedTable>ARTIST</referencedTable><reference><column>ARTIST_ID</column><referenced>ID</referenced></reference><reference><column>ARTIST_COUNTRY</column><referenced>COUNTRY</referenced></reference><matchType>SIMPLE</matchType><deleteAction>CASCADE</deleteAction></foreignKey></foreignKeys>
          <rows>3</rows>
        </table>
      </tables>
      <views><view><name>LIVING</name><query>SELECT ID FROM ARTIST WHERE ALIVE</query><columns><column><name>ID</name><type>INTEGER</type></column></columns></view></views>
      <routines><routine><specificName>TOTAL_1</specificName><name>TOTAL</name><returnType>INTEGER</returnType><parameters><parameter><name>YEAR</name><mode>IN</mode><type>INTEGER</type></parameter></parameters></routine></routines>
    </schema>
  </schemas>
  <users><user><name>CURATOR</name></user></users>
  <roles><role><name>READERS</name><admin>CURATOR</admin></role></roles>
  <privileges><privilege><type>SELECT</type><object>TABLE ARTIST</object><grantor>CURATOR</grantor><grantee>READERS</grantee></privilege></privileges>
</siardArchive>
"""

_XSD = f"""<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="{TABLE}" targetNamespace="{TABLE}" elementFormDefault="qualified" attributeFormDefault="unqualified">
  <xs:element name="table"><xs:complexType><xs:sequence><xs:element name="row" type="recordType" minOccurs="0" maxOccurs="unbounded"/></xs:sequence><xs:attribute name="version" type="xs:string" use="required"/></xs:complexType></xs:element>
  <xs:complexType name="recordType"><xs:sequence>
@CELLS@
  </xs:sequence></xs:complexType>
  <xs:complexType name="clobType"><xs:simpleContent><xs:extension base="xs:string"><xs:attribute name="file" type="xs:anyURI"/><xs:attribute name="length" type="xs:integer"/><xs:attribute name="digestType" type="digestTypeType"/><xs:attribute name="digest" type="xs:string"/><xs:attribute name="dlurlpathonly" type="xs:anyURI"/></xs:extension></xs:simpleContent></xs:complexType>
  <xs:complexType name="blobType"><xs:simpleContent><xs:extension base="xs:hexBinary"><xs:attribute name="file" type="xs:anyURI"/><xs:attribute name="length" type="xs:integer"/><xs:attribute name="digestType" type="digestTypeType"/><xs:attribute name="digest" type="xs:string"/><xs:attribute name="dlurlpathonly" type="xs:anyURI"/></xs:extension></xs:simpleContent></xs:complexType>
  <xs:simpleType name="digestTypeType"><xs:restriction base="xs:string"><xs:whiteSpace value="collapse"/><xs:enumeration value="MD5"/><xs:enumeration value="SHA-1"/><xs:enumeration value="SHA-256"/></xs:restriction></xs:simpleType>
  <xs:simpleType name="dateType"><xs:restriction base="xs:date"><xs:minInclusive value="0001-01-01Z"/><xs:maxExclusive value="10000-01-01Z"/><xs:pattern value="\\d{{4}}-\\d{{2}}-\\d{{2}}Z?"/></xs:restriction></xs:simpleType>
  <xs:simpleType name="timeType"><xs:restriction base="xs:time"><xs:pattern value="\\d{{2}}:\\d{{2}}:\\d{{2}}(\\.\\d+)?Z?"/></xs:restriction></xs:simpleType>
  <xs:simpleType name="dateTimeType"><xs:restriction base="xs:dateTime"><xs:minInclusive value="0001-01-01T00:00:00.000000000Z"/><xs:maxExclusive value="10000-01-01T00:00:00.000000000Z"/><xs:pattern value="\\d{{4}}-\\d{{2}}-\\d{{2}}T\\d{{2}}:\\d{{2}}:\\d{{2}}(\\.\\d+)?Z?"/></xs:restriction></xs:simpleType>
</xs:schema>
"""


def _cell(name: str, type_: str, optional: bool = True) -> str:
    return f'<xs:element name="{name}" type="{type_}"{" minOccurs=" + chr(34) + "0" + chr(34) if optional else ""}/>'


def _parts(name: str, *parts: str) -> str:
    return f'<xs:element name="{name}" minOccurs="0"><xs:complexType><xs:sequence>{"".join(parts)}</xs:sequence></xs:complexType></xs:element>'


_ARTIST_XSD = _XSD.replace("@CELLS@", "\n".join([
    _cell("c1", "xs:integer", False), _cell("c2", "xs:string", False), _cell("c3", "xs:string"),
    _cell("c4", "dateType"), _cell("c5", "xs:boolean"),
]))  # fmt: skip
_WORK_XSD = _XSD.replace("@CELLS@", "\n".join([
    _cell("c1", "xs:integer", False), _cell("c2", "xs:integer"), _cell("c3", "xs:string"),
    _cell("c4", "xs:decimal"), _parts("c5", _cell("u1", "xs:integer"), _cell("u2", "xs:string")),
    _parts("c6", *(_cell(f"a{n}", "xs:string") for n in (1, 2, 3))), _cell("c7", "blobType"),
    _cell("c8", "clobType"), _cell("c9", "blobType"), _cell("c10", "dateTimeType"),
    _cell("c11", "timeType"), _cell("c12", "xs:duration"), _cell("c13", "xs:double"),
    _cell("c14", "xs:hexBinary"),
]))  # fmt: skip

_HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<table xmlns="{TABLE}" version="2.2">\n'
_ARTIST = (
    _HEAD
    + "<row><c1>1</c1><c2>CH</c2><c3>Anna \\u0020 O&apos;Neill</c3><c4>1931-02-28Z</c4><c5>false</c5></row>\n"
    "<row><c1>2</c1><c2>DE</c2><c3>Jürg</c3><c4>1988-02-29Z</c4><c5>true</c5></row>\n"
    "<row><c1>3</c1><c2>FR</c2></row>\n</table>\n"
)
_WORK = (
    _HEAD
    + "<row><c1>10</c1><c2>1</c2><c3>CH</c3><c4>1999.50</c4><c5><u1>7</u1><u2>N</u2></c5><c6><a1>oil</a1><a2>large</a2></c6>"
    f'<c7 file="content/schema0/table1/lob6/record0.bin" length="{len(PICTURE)}" digestType="SHA-256" digest="{_digest(PICTURE)}"/>'
    f'<c8 file="content/schema0/table1/lob7/record0.txt" length="{len(POEM.decode())}" digestType="SHA-256" digest="{_digest(POEM)}"/>'
    f'<c9 file="seg_0/t1_c9_r1.bin" length="{len(TRACK)}" digestType="SHA-256" digest="{_digest(TRACK)}" dlurlpathonly="/data/track1.ogg"/>'
    "<c10>2024-05-06T07:08:09.123Z</c10><c11>10:30:00Z</c11><c12>P3DT4H5M6.7S</c12><c13>1.5E2</c13><c14>00FF</c14></row>\n"
    "<row><c1>11</c1><c2>2</c2><c3>DE</c3><c4>-5</c4></row>\n"
    "<row><c1>12</c1><c6/></row>\n</table>\n"
)

VALID: Files = {
    "content/": b"",
    "content/schema0/": b"",
    "content/schema0/table0/": b"",
    "content/schema0/table0/table0.xsd": _ARTIST_XSD.encode(),
    "content/schema0/table0/table0.xml": _ARTIST.encode(),
    "content/schema0/table1/": b"",
    "content/schema0/table1/table1.xsd": _WORK_XSD.encode(),
    "content/schema0/table1/table1.xml": _WORK.encode(),
    "content/schema0/table1/lob6/record0.bin": PICTURE,
    "content/schema0/table1/lob7/record0.txt": POEM,
    "header/": b"",
    "header/siardversion/": b"",
    "header/siardversion/2.2/": b"",
    "header/metadata.xsd": metadata_schema(),
    "header/metadata.xml": METADATA.encode(),
}
OUTSIDE = {"museum_lobs/s0_t1_c9/seg_0/t1_c9_r1.bin": TRACK}
ARTIST, WORK = "content/schema0/table0/table0.xml", "content/schema0/table1/table1.xml"
META_XML = "header/metadata.xml"


def write(
    path: Path,
    files: Files = VALID,
    outside: Files = OUTSIDE,
    tune: Callable[[zipfile.ZipInfo], None] = lambda info: None,
) -> Path:
    """Write an archive with its objects outside; the digest of its content is filled in."""
    for name, data in outside.items():
        target = path.parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in files.items():
            if name == META_XML and "header/" in files:
                data = data.replace(b"@DIGEST@", _content_digest(package, path).encode())
            info = zipfile.ZipInfo(name, (2024, 5, 6, 0, 0, 0))
            info.compress_type = zipfile.ZIP_STORED if name.endswith("/") else zipfile.ZIP_DEFLATED
            tune(info)
            package.writestr(info, data)
    return path


def _content_digest(package: zipfile.ZipFile, path: Path) -> str:
    assert package.fp is not None
    package.fp.flush()
    offset = package.getinfo("header/").header_offset
    return hashlib.sha256(path.read_bytes()[:offset]).hexdigest()


def changed(files: Files, name: str, old: str, new: str) -> Files:
    """Return the files with one text replaced, which must have been there."""
    data = files[name].replace(old.encode(), new.encode(), 1)
    assert data != files[name], f"{old!r} is not in {name}"
    return {**files, name: data}


def renamed(files: Files, old: str, new: str) -> Files:
    """Return the files with another name for one of them, in its place."""
    assert old in files
    return {new if name == old else name: data for name, data in files.items()}


def without(files: Files, *names: str) -> Files:
    """Return the files but for some."""
    assert all(name in files for name in names)
    return {name: data for name, data in files.items() if name not in names}
