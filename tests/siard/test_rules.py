"""Each rule: an archive that breaks it is caught, with that rule and only what follows from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from broken_archives import (
    ARTIST,
    META_XML,
    OUTSIDE,
    VALID,
    WORK,
    Files,
    changed,
    renamed,
    without,
    write,
)

from muniment.findings import Severity
from muniment.siard import validate
from muniment.siard.rules import RULES
from muniment.siard.rules.conformance import format_conformance


@dataclass(frozen=True)
class Damage:
    """An archive that breaks one rule, and the other rules that it must break thereby."""

    files: Files = field(default_factory=lambda: VALID)
    follow: frozenset[str] = frozenset()
    severity: str = "error"
    outside: Files = field(default_factory=lambda: OUTSIDE)
    name: str = "museum.siard"
    bytes: Callable[[bytes], bytes] = lambda data: data


def metadata(old: str, new: str, *follow: str, severity: str = "error") -> Damage:
    return Damage(changed(VALID, META_XML, old, new), frozenset(follow), severity)


def rows(name: str, old: str, new: str, *follow: str, severity: str = "error") -> Damage:
    return Damage(changed(VALID, name, old, new), frozenset(follow), severity)


def xsd(table: int, old: str, new: str, *follow: str, severity: str = "error") -> Damage:
    name = f"content/schema0/table{table}/table{table}.xsd"
    return Damage(changed(VALID, name, old, new), frozenset(follow), severity)


def patched(old: bytes, new: bytes, times: int = -1) -> Callable[[bytes], bytes]:
    def patch(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, times)

    return patch


def encrypted(data: bytes) -> bytes:
    """Set the flag of encryption at table0.xml, in both headers."""
    result = bytearray(data)
    for signature, flags, name in ((b"PK\x03\x04", 6, 30), (b"PK\x01\x02", 8, 46)):
        at = -1
        while (at := data.find(signature, at + 1)) >= 0:
            if data[at + name :].startswith(ARTIST.encode()):
                result[at + flags] |= 1
    return bytes(result)


def method(number: int) -> Callable[[bytes], bytes]:
    def patch(data: bytes) -> bytes:
        result = bytearray(data)
        for signature, place, name in ((b"PK\x03\x04", 8, 30), (b"PK\x01\x02", 10, 46)):
            at = -1
            while (at := data.find(signature, at + 1)) >= 0:
                if data[at + name :].startswith(ARTIST.encode()):
                    result[at + place] = number
        return bytes(result)

    return patch


def wrong_checksum(data: bytes) -> bytes:
    """Change the checksum of the picture in the directory."""
    at = data.rfind(b"content/schema0/table1/lob6/record0.bin") - 46
    assert data[at : at + 4] == b"PK\x01\x02"
    return data[: at + 16] + bytes(b ^ 0xFF for b in data[at + 16 : at + 20]) + data[at + 20 :]


PART = "museum_lobs/s0_t1_c9/seg_0/t1_c9_r1.bin"
SPLIT = {f"{PART}_part001": OUTSIDE[PART][:50], f"{PART}_part003": OUTSIDE[PART][50:]}
SEGMENT_1 = {"museum_lobs/s0_t1_c9/seg_1/t1_c9_r1.bin": OUTSIDE[PART]}
LAST_ROW = "<row><c1>12</c1><c6/></row>"

DAMAGES: dict[str, Damage] = {
    "G_3.1-1": rows(ARTIST, '<?xml version="1.0"', '<?xml version="1.1"'),
    "G_3.3-1": Damage({**VALID, ARTIST: VALID[ARTIST].replace("Jürg".encode(), b"J\xfcrg")}),
    "G_3.3-2": metadata("VARCHAR(20)", "NCHAR VARYING(20)", severity="warning"),
    "G_3.3-3": rows(ARTIST, "Jürg", "J\x85rg"),
    "G_3.3-4": rows(ARTIST, "Jürg", "J\\rg"),
    "G_3.4-1": metadata("./museum_lobs/", "http://museum/", "T_6.4-5"),
    "G_3.4-2": Damage(
        changed(VALID, META_XML, "./museum_lobs/", "./musée/"),
        outside={"musée/s0_t1_c9/seg_0/t1_c9_r1.bin": OUTSIDE[PART]},
    ),
    "G_3.4-3": metadata(
        "s0_t1_c9/<", "tracks.zip/s0_t1_c9/<", "T_6.4-5", "L_7.1-1", severity="warning"
    ),
    "G_3.5-1": metadata("<name>PK_ARTIST", "<name>PK_\ufffdRTIST"),
    "G_3.5-2": metadata("<name>PK_ARTIST<", '<name>"PK_ARTIST"<'),
    "G_3.5-3": metadata("<name>PK_ARTIST<", '<name>"Key of artist"<'),
    "G_4.1-1": Damage(bytes=wrong_checksum),
    "G_4.1-2": Damage(bytes=method(12), follow=frozenset({"G_4.1-1", "M_5.1-1"})),
    "G_4.1-3": Damage(bytes=encrypted, follow=frozenset({"G_4.1-1", "M_5.1-1"})),
    "G_4.1-5": Damage(name="museum.zip"),
    "P_4.2-1": Damage({**VALID, "readme.txt": b"hello"}),
    "P_4.2-2": Damage({"content/readme.txt": b"hello", **VALID}),
    "P_4.2-3": Damage({"content/schema0/table0/readme.txt": b"hello", **VALID}),
    "P_4.2-4": Damage(renamed(VALID, "header/siardversion/2.2/", "header/siardversion/2.1/")),
    "P_4.2-5": Damage(without(VALID, "header/metadata.xsd")),
    "P_4.2-6": Damage({"header/1st.xsl": b"<x/>", **VALID}),
    "P_4.3-1": Damage({"content/schema0/table7/table7.xml": b"<table/>", **VALID}),
    "P_4.3-2": xsd(0, '<xs:element name="c5" type="xs:boolean" minOccurs="0"/>', "", "T_6.0-2"),
    "P_4.3-3": xsd(0, '"c5" type="xs:boolean"', '"c5" type="xs:string"'),
    "P_4.3-4": xsd(1, '"c4" type="xs:decimal"', '"c4" type="xs:string"'),
    "P_4.3-5": Damage(changed(VALID, META_XML, "<cardinality>3", "<cardinality>2")),
    "P_4.3-6": xsd(1, '<xs:element name="u2" type="xs:string" minOccurs="0"/>', "", "T_6.0-2"),
    "P_4.3-7": xsd(0, '"c1" type="xs:integer"', '"c1" type="xs:integer" minOccurs="0"'),
    "P_4.3-8": xsd(
        0,
        '<xs:element name="c1" type="xs:integer"/>\n<xs:element name="c2" type="xs:string"/>',
        '<xs:element name="c2" type="xs:string"/>\n<xs:element name="c1" type="xs:integer"/>',
        "T_6.0-2",
    ),
    "P_4.3-9": metadata("<field><name>WALL</name></field>", ""),
    "P_4.3-10": metadata("<rows>3</rows>", "<rows>4</rows>"),
    "M_5.0-1": metadata("<rows>3</rows>", "<rows>3</rows><color>red</color>"),
    "M_5.1-1": metadata("<dataOwner>City museum</dataOwner>", "", "M_5.0-1"),
    "M_5.2-1": metadata("      <folder>schema0</folder>\n", "", "M_5.0-1", "P_4.3-1", "T_6.1-1", "T_6.4-1"),
    "M_5.3-1": metadata("<underType>PLACE", "<underType>SALOON"),
    "M_5.4-1": metadata("<name>WALL</name><type>VARCHAR(5)</type></attribute>", "<name>ROOM</name><type>VARCHAR(5)</type></attribute>"),
    "M_5.5-1": metadata("<rows>3</rows>", "", "M_5.0-1", "P_4.3-10"),
    "M_5.6-1": metadata("<typeName>MONEY", "<typeName>COINS"),
    "M_5.7-1": metadata("<field><name>WALL", "<field><name>ROOM"),
    "M_5.8-1": metadata("<name>PK_ARTIST</name><column>ID", "<name>PK_ARTIST</name><column>IT"),
    "M_5.9-1": metadata("<referencedTable>ARTIST", "<referencedTable>PAINTER"),
    "M_5.10-1": metadata("<referenced>COUNTRY", "<referenced>NATION"),
    "M_5.11-1": metadata("<column>COUNTRY</column></candidateKey>", "<column>NATION</column></candidateKey>", "M_5.9-1"),
    "M_5.12-1": metadata("<condition>ID &gt; 0</condition>", "", "M_5.0-1", severity="warning"),
    "M_5.13-1": metadata("UPDATE OF NAME", "UPDATE OF SURNAME", severity="warning"),
    "M_5.14-1": metadata("<name>LIVING</name>", "", "M_5.0-1", severity="warning"),
    "M_5.15-1": metadata("<specificName>TOTAL_1</specificName>", "", "M_5.0-1", severity="warning"),
    "M_5.16-1": metadata("<mode>IN<", "<mode>INSIDE<", severity="warning"),
    "M_5.17-1": metadata("<user><name>CURATOR</name></user>", "<user><name>CURATOR</name></user><user><name>CURATOR</name></user>"),
    "M_5.18-1": metadata("<admin>CURATOR", "<admin>NOBODY", severity="warning"),
    "M_5.19-1": metadata("<grantee>READERS", "<grantee>NOBODY", severity="warning"),
    "T_6.0-1": rows(WORK, "<c3>DE</c3>", "<c3>FR</c3>"),
    "T_6.0-2": rows(WORK, LAST_ROW, "<row><c1>12</c1><c15>x</c15></row>", "T_6.4-2"),
    "T_6.1-1": Damage(without(VALID, "content/schema0/table0/table0.xsd")),
    "T_6.1-2": xsd(0, 'name="c5"', 'name="c6"', "T_6.0-2"),
    "T_6.1-3": xsd(0, '<xs:simpleType name="dateType"><xs:restriction base="xs:date"><xs:minInclusive value="0001-01-01Z"/><xs:maxExclusive value="10000-01-01Z"/>', '<xs:simpleType name="dateType"><xs:restriction base="xs:string">'),
    "T_6.1-4": xsd(1, 'name="u2"', 'name="u3"', "T_6.0-2"),
    "T_6.2-1": rows(WORK, 'length="264"', 'length="99"'),
    "T_6.3-1": xsd(0, '<xs:maxExclusive value="10000-01-01Z"/>', ""),
    "T_6.3-2": xsd(0, '<xs:pattern value="\\d{4}-\\d{2}-\\d{2}Z?"/>', ""),
    "T_6.4-1": Damage(without(VALID, ARTIST)),
    "T_6.4-2": rows(WORK, LAST_ROW, "<line><c1>12</c1></line>", "T_6.0-2"),
    "T_6.4-3": rows(ARTIST, "<c4>1988-02-29Z</c4>", "<c4></c4>", "T_6.0-2"),
    "T_6.4-4": rows(WORK, "<c5><u1>7</u1><u2>N</u2></c5>", "<c5>7, N</c5>", "T_6.0-2", severity="warning"),
    "T_6.4-5": Damage({**VALID, "content/schema0/table1/lob6/record0.bin": VALID["content/schema0/table1/lob6/record0.bin"][::-1]}),
    "L_7.1-0": Damage(
        changed(changed(VALID, META_XML, "s0_t1_c9/<", "tracks/<"), WORK, "seg_0/", ""),
        severity="warning",
        outside={"museum_lobs/tracks/t1_c9_r1.bin": OUTSIDE[PART]},
    ),
    "L_7.1-1": Damage(
        changed(VALID, WORK, "seg_0/t1", "seg_0.zip/t1"),
        frozenset({"T_6.4-5", "G_3.4-3"}), "warning", outside={},
    ),
    "S_8.1-0": Damage(
        changed(VALID, WORK, "seg_0/t1", "seg_1/t1"), severity="warning", outside=SEGMENT_1
    ),
    "S_8.1.1-0": Damage(outside=SPLIT, follow=frozenset({"T_6.4-5", "T_6.2-1"})),
    "S_8.1.2-0": Damage(
        follow=frozenset({"T_6.2-1"}), severity="warning",
        outside={**OUTSIDE, "mapping.txt": b"only-a-folder\n"},
    ),
    "S_8.1.3-0": Damage(severity="warning", outside={**OUTSIDE, "manifest.md5": b"no digest\n"}),
    "S_8.2-0": Damage(name="museum.siard_part002", follow=frozenset({"G_4.1-1"})),
}  # fmt: skip


def damaged(rule: str, folder: Path) -> Path:
    """Write the archive that breaks a rule."""
    damage = DAMAGES[rule]
    path = write(folder / "museum.siard", damage.files, damage.outside)
    data = damage.bytes(path.read_bytes())
    path.unlink()
    target = folder / damage.name
    target.write_bytes(data)
    return target


@pytest.mark.parametrize("rule", [rule.id for rule in RULES if rule.checks])
def test_a_broken_rule_is_found(rule: str, tmp_path: Path) -> None:
    damage = DAMAGES[rule]
    result = validate(damaged(rule, tmp_path), jobs=1).finish()
    found = {f.rule for f in result.findings if f.severity is not Severity.NOTE}
    assert rule in found, result.findings
    weights = {str(f.severity) for f in result.findings if f.rule == rule}
    assert damage.severity in weights
    assert found <= {rule, *damage.follow}, result.findings
    errors = {f.rule for f in result.findings if f.severity is Severity.ERROR}
    assert result.valid is not bool(errors)
    assert result.rules[rule] == ("fail" if "error" in weights else "warn")


def test_an_archive_with_some_of_everything_is_valid(tmp_path: Path) -> None:
    result = validate(write(tmp_path / "museum.siard"), jobs=1).finish()
    assert result.findings == []
    assert (result.valid, result.version, result.rows, result.lobs) == (True, "2.2", 6, 3)
    skipped = {rule for rule, state in result.rules.items() if state == "not-applicable"}
    assert skipped == {
        "G_3.2-1", "G_3.4-3", "G_4.1-4", "L_7.1-1", "S_8.1.1-0", "S_8.1.2-0", "S_8.1.3-0", "S_8.2-0",
    }  # fmt: skip


def test_every_rule_is_checked_or_says_why_not() -> None:
    for rule in RULES:
        assert bool(rule.checks) != bool(rule.unchecked), rule.id
        assert rule.remedy or not rule.checks, rule.id
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.samples
def test_no_requirement_of_the_standard_is_left_out(samples: Path) -> None:
    text = (samples.parent / "spec" / "siard-2.2.md").read_text(encoding="utf-8")
    named = re.findall(r"\b([GPMTLS])\\?_(\d+(?:\.\d+)+)\\?-(\d+)\b", text)
    wanted = {f"{chapter}_{number}-{last}" for chapter, number, last in named}
    # The list of changes names one that was deleted.
    assert wanted - {rule.id for rule in RULES} == {"G_3.2-2"}
    assert len(wanted) > 60


def test_the_page_on_conformance_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "conformance.md"
    assert page.read_text(encoding="utf-8") == format_conformance(), "run: make docs"
