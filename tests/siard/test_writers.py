"""Archives as other writers make them, each deviation by itself: every command reads them all.

The facts are those of the writers' own source and of archives that they made. Each archive holds
the same museum, so what is restored from it must be the museum's rows.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest
from broken_archives import (
    ARTIST,
    META_XML,
    OUTSIDE,
    PICTURE,
    POEM,
    TABLE,
    TRACK,
    VALID,
    WORK,
    Files,
    changed,
    write,
)
from click.testing import CliRunner

from muniment.cli.main import cli
from muniment.siard import validate
from muniment.siard.schemas import schema_of

PICTURE_FILE = "content/schema0/table1/lob6/record0.bin"
POEM_FILE = "content/schema0/table1/lob7/record0.txt"
TRACK_FILE = next(iter(OUTSIDE))
XSD0, XSD1 = "content/schema0/table0/table0.xsd", "content/schema0/table1/table1.xsd"


@dataclass(frozen=True)
class Written:
    """An archive of another writer; ``errors`` are the rules that it really breaks."""

    files: Files
    outside: Files = field(default_factory=lambda: dict(OUTSIDE))
    errors: frozenset[str] = frozenset()
    tune: Callable[[zipfile.ZipInfo], None] = lambda info: None
    bytes: Callable[[bytes], bytes] = lambda data: data


def text(files: Files, *changes: tuple[str, str, str]) -> Files:
    """Change files in several places."""
    for name, old, new in changes:
        files = changed(files, name, old, new)
    return files


def everywhere(files: Files, *changes: tuple[str, str]) -> Files:
    """Change names and contents alike."""
    for old, new in changes:
        files = {
            name.replace(old, new): data.replace(old.encode(), new.encode())
            for name, data in files.items()
        }
    return files


def without_digest(files: Files) -> Files:
    element = (
        "  <messageDigest><digestType>SHA-256</digestType><digest>@DIGEST@</digest>"
        "</messageDigest>\n"
    )
    return changed(files, META_XML, element, "")


def no_folders(files: Files) -> Files:
    kept = {n: d for n, d in files.items() if not n.endswith("/") or n.endswith("/2.2/")}
    return without_digest(kept)


def dbptk() -> Files:
    """DBPTK 4: from 1, a namespace per table, no version, no folders, objects after the header."""
    files = no_folders(VALID)
    files = everywhere(files, ("schema0", "schema1"), ("table1", "table2"), ("table0", "table1"))
    meta = META_XML
    files = text(
        files,
        (meta, "./museum_lobs/", "content"),
        (meta, "<name>PICTURE</name>", "<name>PICTURE</name><lobFolder>schema1/table2/lob7</lobFolder>"),
        (meta, "<name>POEM</name>", "<name>POEM</name><lobFolder>schema1/table2/lob8</lobFolder>"),
        (meta, "<users><user><name>CURATOR</name></user></users>", "<users/>"),
        (meta, "2024-05-06Z", "2024-05-06+00:00"),
        (meta, "<roles><role><name>READERS</name><admin>CURATOR</admin></role></roles>", ""),
        (meta, "<privileges><privilege><type>SELECT</type><object>TABLE ARTIST</object><grantor>CURATOR</grantor><grantee>READERS</grantee></privilege></privileges>", ""),
    )  # fmt: skip
    for number in (1, 2):
        space = f"http://www.admin.ch/xmlns/siard/2.2/schema1/table{number}.xsd"
        for ending in ("xml", "xsd"):
            name = f"content/schema1/table{number}/table{number}.{ending}"
            data = files[name].decode().replace(TABLE, space).replace(' version="2.2"', "")
            data = re.sub(r'<xs:attribute name="version"[^>]*/>', "", data)
            files[name] = data.encode()
    moved = {n: files.pop(n) for n in list(files) if "/lob" in n}
    files.update(
        {n.replace("lob7/", "lob8/").replace("lob6/", "lob7/"): d for n, d in moved.items()}
    )
    work = files["content/schema1/table2/table2.xml"]
    work = work.replace(b"lob7/record0", b"lob8/record0").replace(b"lob6/record0", b"lob7/record0")
    files["content/schema1/table2/table2.xml"] = work
    return files


def dbptk_inside() -> Files:
    """The track lies inside as well, in a column without a folder of its own."""
    files = dbptk()
    name = "content/schema1/table2/table2.xml"
    files = text(
        files,
        (
            META_XML,
            "<lobFolder>s0_t1_c9/</lobFolder>",
            "<lobFolder>schema1/table2/lob9</lobFolder>",
        ),
        (name, 'file="seg_0/t1_c9_r1.bin"', 'file="content/schema1/table2/lob9/record1.bin"'),
    )
    return {**files, "content/schema1/table2/lob9/record1.bin": TRACK}


def full_convert() -> Files:
    """Folders inside, and files counted from them."""
    files = without_digest(VALID)
    files = text(
        files,
        (META_XML, "./museum_lobs/", "content/"),
        (META_XML, "<name>PICTURE</name>", "<name>PICTURE</name><lobFolder>schema0/table1/lob6/</lobFolder>"),
        (META_XML, "<name>POEM</name>", "<name>POEM</name><lobFolder>schema0/table1/lob7/</lobFolder>"),
        (META_XML, "<lobFolder>s0_t1_c9/</lobFolder>", "<lobFolder>schema0/table1/lob8/</lobFolder>"),
        (WORK, PICTURE_FILE, "seg0/rec1.bin"), (WORK, POEM_FILE, "seg0/rec1.txt"),
        (WORK, "seg_0/t1_c9_r1.bin", "seg0/rec1.bin"),
    )  # fmt: skip
    files["content/schema0/table1/lob6/seg0/rec1.bin"] = files.pop(PICTURE_FILE)
    files["content/schema0/table1/lob7/seg0/rec1.txt"] = files.pop(POEM_FILE)
    files["content/schema0/table1/lob8/seg0/rec1.bin"] = TRACK
    return files


def upper_md5(files: Files) -> Files:
    """SIARD Suite: MD5 in capitals for each object."""
    data = files[WORK].decode()
    for content in (PICTURE, POEM, TRACK):
        old = f'digestType="SHA-256" digest="{hashlib.sha256(content).hexdigest()}"'
        new = f'digestType="MD5" digest="{hashlib.md5(content).hexdigest().upper()}"'
        assert old in data
        data = data.replace(old, new)
    return {**files, WORK: data.encode()}


def split_track(digest_of: bytes) -> Written:
    files = changed(
        VALID, WORK, hashlib.sha256(TRACK).hexdigest(), hashlib.sha256(digest_of).hexdigest()
    )
    outside = {f"{TRACK_FILE}_part001": TRACK[:100], f"{TRACK_FILE}_part002": TRACK[100:]}
    return Written(files, outside, frozenset({"T_6.4-5"}))


def version_1_0() -> Files:
    """SIARD 1.0: other namespaces, a folder per column, an empty digest, a byte order mark."""
    space = "http://www.bar.admin.ch/xmlns/siard/1.0/metadata.xsd"
    data = (
        VALID[META_XML]
        .decode()
        .replace(META_SPACE, space)
        .replace('version="2.2"', 'version="1.0"')
    )
    data = re.sub(r"<messageDigest>.*?</messageDigest>", "<messageDigest/>", data)
    data = re.sub(r"\s*<lobFolder>.*?</lobFolder>", "", data)
    data = re.sub(r"\s*<types>.*?</types>", "", data, flags=re.S)
    data = re.sub(r"<mimeType>.*?</mimeType>", "", data)
    data = data.replace("<specificName>TOTAL_1</specificName>", "")
    data = data.replace("<name>PICTURE</name>", "<name>PICTURE</name><folder>lob6</folder>")
    data = data.replace("<name>POEM</name>", "<name>POEM</name><folder>lob7</folder>")
    data = data.replace(
        "<name>TRACK</name><type>DATALINK</type>",
        "<name>TRACK</name><folder>lob8</folder><type>BLOB</type>",
    )
    data = data.replace("<typeName>MONEY</typeName>", "<type>DECIMAL(8,2)</type>").replace(
        "<typeSchema>MAIN</typeSchema>", ""
    )
    data = re.sub(
        r"<column><name>HANGS</name>.*?</column>",
        "<column><name>HANGS</name><type>VARCHAR(20)</type><nullable>true</nullable></column>",
        data,
    )
    data = re.sub(r"<cardinality>\d+</cardinality>", "", data)
    files = {n: d for n, d in VALID.items() if "siardversion" not in n}
    rows = files[WORK].decode().replace(f'file="{PICTURE_FILE}"', 'file="lob6/record0.bin"')
    rows = re.sub(r"<c5>.*?</c5>", "<c5>7 N</c5>", rows)
    rows = re.sub(r"<c6>.*?</c6>|<c6/>", "<c6>oil</c6>", rows)
    rows = re.sub(r' digestType="[^"]*" digest="[^"]*"', "", rows)
    rows = re.sub(r' dlurlpathonly="[^"]*"', "", rows)
    rows = rows.replace('file="seg_0/t1_c9_r1.bin"', 'file="record0.bin"')
    for name, content in ((ARTIST, files[ARTIST].decode()), (WORK, rows)):
        table = name.rpartition("/")[2].removesuffix(".xml")
        own = f"http://www.admin.ch/xmlns/siard/1.0/schema0/{table}.xsd"
        content = content.replace(TABLE, own).replace(' version="2.2"', "")
        files[name] = b"\xef\xbb\xbf" + content.encode()
    files[META_XML] = b"\xef\xbb\xbf" + data.encode()
    files["header/metadata.xsd"] = schema_of("1.0")
    files["content/schema0/table1/lob8/record0.bin"] = TRACK
    return files


META_SPACE = "http://www.bar.admin.ch/xmlns/siard/2/metadata.xsd"


def descriptors(info: zipfile.ZipInfo) -> None:
    info.create_version = info.extract_version = 45


def stored(info: zipfile.ZipInfo) -> None:
    info.compress_type = zipfile.ZIP_STORED


def prefixed(data: bytes) -> bytes:
    """Something stands before the archive, as in one that unpacks itself."""
    return b"#!/bin/sh\nexit\n" + data


def commented(data: bytes) -> bytes:
    return data[:-2] + struct.pack("<H", 5) + b"hello"


WRITTEN: dict[str, Written] = {
    "the museum itself": Written(VALID),
    "Suite, version 4.5 in every header": Written(VALID, tune=descriptors),
    "Suite, MD5 in capitals": Written(upper_md5(VALID)),
    "Suite, objects outside by ../": Written(
        text(
            VALID, (META_XML, "  <lobFolder>./museum_lobs/</lobFolder>\n", ""),
            (META_XML, "s0_t1_c9/", "../tracks/"), (WORK, "seg_0/t1_c9_r1.bin", "record0.bin"),
        ),
        {"tracks/record0.bin": TRACK},
    ),
    "Suite, objects outside by seq": Written(
        text(
            VALID, (META_XML, "  <lobFolder>./museum_lobs/</lobFolder>\n", ""),
            (META_XML, "s0_t1_c9/", "../tracks/"), (WORK, "seg_0/t1_c9_r1.bin", "seq0/record0.bin"),
        ),
        {"tracks/seq0/record0.bin": TRACK},
    ),
    "Suite, a digest that was not renewed": Written(
        changed(VALID, META_XML, "@DIGEST@", "0" * 64), errors=frozenset({"M_5.1-1"})
    ),
    "Suite, dates without Z": Written(text(VALID, (ARTIST, "1988-02-29Z", "1988-02-29"))),
    "Suite, a style sheet and table.xsd in the header": Written(
        {**VALID, "header/table.xsd": VALID[XSD0], "header/metadata.xsl": b"<x/>"}
    ),
    "Suite, text counted in UTF-16 units, files in any order": Written(
        dict(sorted(VALID.items(), key=lambda item: (item[0].startswith("header/"), item[0][::-1]))),
        errors=frozenset({"M_5.1-1"}),
    ),
    "DBPTK, some objects inside": Written(
        dbptk_inside(), {}, frozenset({"T_6.0-2", "P_4.2-4", "M_5.6-1", "T_6.1-1", "G_3.4-1", "T_6.4-5"})
    ),
    "DBPTK, stored instead of deflated": Written(
        dbptk_inside(), {}, frozenset({"T_6.0-2", "T_6.1-1"}), tune=stored
    ),
    "DBPTK, objects outside": Written(
        text(
            no_folders(VALID), (META_XML, "./museum_lobs/", "../museum.siard_lobs"),
            (META_XML, "s0_t1_c9/", "s0_t1_c9"),
        ),
        {"museum.siard_lobs/s0_t1_c9/seg_0/t1_c9_r1.bin": TRACK},
    ),
    "DBPTK 2, objects outside": Written(
        text(
            no_folders(VALID), (META_XML, "  <lobFolder>./museum_lobs/</lobFolder>\n", ""),
            (META_XML, "<lobFolder>s0_t1_c9/</lobFolder>", ""),
            (WORK, "seg_0/t1_c9_r1.bin", "../museum.siard_lobseg_1/content/schema0/table1/lob9/record1.bin"),
        ),
        {"museum.siard_lobseg_1/content/schema0/table1/lob9/record1.bin": TRACK},
    ),
    "DBPTK 2 on Windows": Written(
        text(
            no_folders(VALID), (META_XML, "  <lobFolder>./museum_lobs/</lobFolder>\n", ""),
            (META_XML, "<lobFolder>s0_t1_c9/</lobFolder>", ""),
            (WORK, "seg_0/t1_c9_r1.bin", "..\\museum.siard_lobseg_1\\content\\lob9\\record1.bin"),
        ),
        {"museum.siard_lobseg_1/content/lob9/record1.bin": TRACK}, frozenset({"G_3.4-1"}),
    ),
    "DBPTK, the digest of a split object is that of its last part": split_track(TRACK[100:]),
    "DBPTK, text counted in bytes": Written(
        changed(VALID, WORK, f'length="{len(POEM.decode())}"', f'length="{len(POEM)}"')
    ),
    "DBPTK, hexadecimal in small letters": Written(changed(VALID, WORK, "00FF", "00ff")),
    "DBPTK, BINARY VARYING as clobType": Written(
        changed(VALID, XSD1, 'name="c14" type="xs:hexBinary"', 'name="c14" type="clobType"')
    ),
    "DBPTK, no complex columns in the schema": Written(
        {**VALID, XSD1: re.sub(rb'<xs:element name="c5".*?</xs:complexType></xs:element>', b"", VALID[XSD1])},
        errors=frozenset({"P_4.3-2", "T_6.0-2", "T_6.1-2"}),
    ),
    "DBPTK, another namespace in schemaLocation": Written(
        changed(
            VALID, META_XML, ' version="2.2">',
            ' version="2.2" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation='
            '"http://www.bar.admin.ch/xmlns/siard/2.2/metadata.xsd metadata.xsd">',
        )
    ),
    "Full Convert": Written(full_convert(), {}),
    "SIARD 1.0": Written(version_1_0(), {}, frozenset({"M_5.0-1", "P_4.3-3", "T_6.0-2"})),
    "a folder around everything": Written(
        {f"museum/{name}": data for name, data in without_digest(VALID).items()},
        errors=frozenset({"P_4.2-1"}),
    ),
    "backslashes in the names, as in files packed on Windows": Written(
        {
            name.replace("/", "\\"): data
            for name, data in without_digest(VALID).items() if not name.endswith("/")
        },
        errors=frozenset({"P_4.2-1", "P_4.2-4", "P_4.2-6"}),
    ),
    "bytes after the archive": Written(VALID, bytes=lambda data: data + b"\0" * 7),
    "digest types in small letters, as in Appendix E": Written(
        changed(VALID, WORK, 'digestType="SHA-256"', 'digestType="sha-256"'),
        errors=frozenset({"T_6.0-2"}),
    ),
    "no entries for folders": Written(no_folders(VALID)),
    "something before the archive": Written(without_digest(VALID), bytes=prefixed),
    "a comment at the end": Written(VALID, bytes=commented),
    "an empty description and schema": Written(
        text(VALID, (META_XML, "      <folder>schema0</folder>\n", "      <folder>schema0</folder>\n<description></description>"))
    ),
    "an absolute folder of another machine": Written(
        changed(VALID, META_XML, "./museum_lobs/", "file:///D:/Export/museum_lobs/"),
        {"s0_t1_c9/seg_0/t1_c9_r1.bin": TRACK},
    ),
    "table files in capitals": Written(
        {n.replace("table0/table0.xml", "table0/Table0.XML"): d for n, d in VALID.items()},
        errors=frozenset({"P_4.2-3", "T_6.4-1", "T_6.0-1"}),
    ),
    "an encoding of its own": Written(
        {**VALID, ARTIST: VALID[ARTIST].decode().replace("UTF-8", "ISO-8859-1").encode("latin-1")},
        errors=frozenset({"G_3.3-1"}),
    ),
    "spaces and tabs between the tags": Written(
        {**VALID, ARTIST: VALID[ARTIST].replace(b"<row>", b"\r\n\t<row>\r\n").replace(b"</c1>", b"</c1>\r\n\t\t")}
    ),
}  # fmt: skip


def museum(path: Path) -> dict[str, list[Any]]:
    """The rows of a restored museum."""
    db = apsw.Connection(str(path))
    try:
        return {
            "artists": db.execute("SELECT ID, COUNTRY, NAME, ALIVE FROM ARTIST ORDER BY 1").fetchall(),
            "works": db.execute(
                "SELECT NUMBER, ARTIST_ID, PRICE, hex(PICTURE), POEM, hex(CODE) FROM WORK ORDER BY 1"
            ).fetchall(),
            "born": db.execute("SELECT rtrim(BORN, 'Z') FROM ARTIST ORDER BY ID").fetchall(),
        }  # fmt: skip
    finally:
        db.close()


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(cli, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.parametrize("name", WRITTEN)
def test_every_command_reads_what_others_write(name: str, tmp_path: Path) -> None:
    written = WRITTEN[name]
    path = write(tmp_path / "museum.siard", written.files, written.outside, written.tune)
    path.write_bytes(written.bytes(path.read_bytes()))
    shown = run("show", str(path))
    assert shown.exit_code == 0, shown.output
    assert "WORK" in shown.output
    asked = run("query", str(path), "SELECT count(*), max(NAME) FROM ARTIST", "--json")
    assert asked.exit_code == 0, asked.output
    assert "J\\u00fcrg" in asked.output
    back = tmp_path / "back.db"
    files = tmp_path / "files"
    files.mkdir()
    restored = run("restore", str(path), f"sqlite:///{back}", "--datalink-root", str(files))
    assert restored.exit_code == 0, restored.output
    home = tmp_path / "plain"
    home.mkdir()
    plain = write(home / "museum.siard")
    assert run("restore", str(plain), f"sqlite:///{home}/back.db").exit_code == 0
    assert museum(back) == museum(home / "back.db")
    tracks = [p.read_bytes() for p in files.rglob("*") if p.is_file()]
    assert tracks in ([TRACK], []), name
    result = validate(path, jobs=1).finish()
    errors = {str(f.rule) for f in result.findings if f.severity == "error"}
    assert errors <= written.errors, result.findings
    (tmp_path / "new").mkdir()
    converted = run("convert", str(path), str(tmp_path / "new" / "museum.siard"))
    assert converted.exit_code == 0, converted.output
    again = validate(tmp_path / "new" / "museum.siard", jobs=1).finish()
    assert again.valid, again.findings
