"""Validation as a whole: keys, values, versions, severity, hostile input, and small reports."""

from __future__ import annotations

import io
import struct
import time
import zipfile
import zlib
from pathlib import Path

import pytest
from broken_archives import (
    ARTIST,
    META,
    META_XML,
    OUTSIDE,
    TABLE,
    VALID,
    WORK,
    Files,
    changed,
    without,
    write,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.errors import SiardError, UsageError
from muniment.findings import Finding, Limiter, Severity
from muniment.siard import Validation, open_siard, validate
from muniment.siard.lobs.folders import Root
from muniment.siard.schemas import schema_of

XSD0, XSD1 = "content/schema0/table0/table0.xsd", "content/schema0/table1/table1.xsd"


def check(folder: Path, files: Files, **options: object) -> Validation:
    path = folder / "museum.siard"
    return validate(write(path, files), jobs=1, **options).finish()  # type: ignore[arg-type]


def errors(result: Validation) -> set[str]:
    return {finding.rule for finding in result.findings if finding.severity is Severity.ERROR}


def messages(result: Validation) -> str:
    return "\n".join(f"{f.rule} {f.severity} {f.where}: {f.message}" for f in result.findings)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (
            ARTIST,
            "<c1>3</c1>",
            "<c1>2</c1>",
            "2 rows have the primary key '2', the first are 2 and 3",
        ),
        (ARTIST, "<c1>3</c1>", "", "row 3: NULL where it is not allowed"),
        (ARTIST, "<c1>3</c1>", "<c1>2147483648</c1>", "is out of the range of INTEGER"),
        (ARTIST, "Jürg", "J" * 21, "21 characters in VARCHAR(20)"),
        (ARTIST, "1988-02-29Z", "1987-02-29Z", "is no day of the calendar"),
        (ARTIST, "<c2>FR</c2>", "", "NULL where it is not allowed"),
        (WORK, "<c4>-5</c4>", "<c4>1234567.5</c4>", "has more digits than DECIMAL(8,2)"),
        (WORK, "<c4>-5</c4>", "<c4>1.999</c4>", "has more digits than DECIMAL(8,2)"),
        (WORK, "<c2>2</c2><c3>DE</c3>", "<c2>2</c2><c3>CH</c3>", "refers to '2', 'CH'"),
        (WORK, "<u1>7</u1>", "<u1>7777777777</u1>", "is out of the range of INTEGER"),
        (WORK, "<u2>N</u2>", "<u2>NORTHWEST</u2>", "9 characters in VARCHAR(5)"),
        (WORK, "<a2>large</a2>", "<a2>larger than life</a2>", "16 characters in VARCHAR(10)"),
        (WORK, "10:30:00Z", "24:30:00Z", "no such time of day"),
        (WORK, "P3DT4H5M6.7S", "P3Y", "does not fit into INTERVAL DAY TO SECOND"),
        (WORK, "<c13>1.5E2", "<c13>heavy", "is not a number"),
        (WORK, "<c13>1.5E2", "<c13>1E309", "is out of the range of DOUBLE PRECISION"),
        (WORK, "<c14>00FF", "<c14>00FF00FF00", "5 bytes in VARBINARY(4)"),
        (WORK, "09.123Z", "09.1234Z", "has more digits than TIMESTAMP(3)"),
    ],
)
def test_a_value_or_key_that_sql_forbids_is_an_error(
    name: str, old: str, new: str, words: str, tmp_path: Path
) -> None:
    result = check(tmp_path, changed(VALID, name, old, new))
    assert "T_6.0-1" in errors(result)
    assert words in messages(result)


@pytest.mark.parametrize(
    ("type_", "value", "fine"),
    [
        ("INTERVAL DAY(2) TO SECOND(3)", "P99DT23H59M59.999S", True),
        ("INTERVAL DAY(2) TO SECOND(3)", "P100D", False),
        ("INTERVAL DAY(2) TO SECOND(3)", "PT1.1234S", False),
        ("INTERVAL DAY", "P400D", True),
        ("INTERVAL DAY", "P3DT4H", False),
        ("INTERVAL YEAR", "P3Y0M", True),
        ("INTERVAL YEAR", "P3Y2M", False),
        ("INTERVAL YEAR(2) TO MONTH", "P100Y", False),
        ("INTERVAL SECOND(2,1)", "PT12.5S", True),
        ("INTERVAL SECOND(2,1)", "PT12.55S", False),
        ("INTERVAL HOUR TO MINUTE", "PT5H3M0.5S", False),
    ],
)
def test_an_interval_has_no_more_than_its_fields(
    type_: str, value: str, fine: bool, tmp_path: Path
) -> None:
    files = changed(VALID, META_XML, "INTERVAL DAY TO SECOND", type_)
    files = changed(files, WORK, "P3DT4H5M6.7S", value)
    assert errors(check(tmp_path, files)) == (set() if fine else {"T_6.0-1"})


def test_an_attribute_that_may_not_be_null_is_in_every_value(tmp_path: Path) -> None:
    stated = "<name>ROOM</name><type>INTEGER</type>"
    files = changed(VALID, META_XML, stated, f"{stated}<nullable>false</nullable>")
    assert check(tmp_path, files).valid
    (tmp_path / "museum.siard").unlink()
    result = check(tmp_path, changed(files, WORK, "<u1>7</u1>", ""))
    assert errors(result) == {"T_6.0-1"}
    assert "row 1: NULL where it is not allowed: <u1>" in messages(result)


def test_two_tables_of_one_name_are_told_and_both_read(tmp_path: Path) -> None:
    result = check(tmp_path, changed(VALID, META_XML, "<name>WORK</name>", "<name>ARTIST</name>"))
    assert errors(result) == {"M_5.2-1"}
    assert (result.tables, result.rows) == (2, 6)


def test_two_tables_of_one_folder_are_told(tmp_path: Path) -> None:
    files = changed(VALID, META_XML, "<folder>table1</folder>", "<folder>table0</folder>")
    assert "P_4.3-1" in errors(check(tmp_path, files))


def test_supertypes_that_go_round_in_a_circle_are_told(tmp_path: Path) -> None:
    files = changed(VALID, META_XML, "<underType>PLACE", "<underType>HALL")
    assert errors(check(tmp_path, files)) == {"M_5.3-1"}


def test_a_type_that_nobody_knows_is_told_as_such_alone(tmp_path: Path) -> None:
    result = check(tmp_path, changed(VALID, META_XML, "<type>BOOLEAN", "<type>YESNO"))
    assert errors(result) == {"G_3.1-1", "M_5.0-1"}
    assert "'YESNO' has not the form" in messages(result)


@pytest.mark.parametrize("place", ["before", "after"])
def test_bytes_that_belong_to_nothing_are_a_warning(place: str, tmp_path: Path) -> None:
    path = write(tmp_path / "museum.siard")
    data = path.read_bytes()
    path.write_bytes(b"\0" * 9 + data if place == "before" else data + b"\0" * 9)
    assert f"9 bytes that belong to nothing stand {place} the archive" in messages(
        validate(path, jobs=1).finish()
    )


def test_unique_keys_ignore_rows_with_null_and_compare_values_not_spellings(tmp_path: Path) -> None:
    key = "<candidateKeys><candidateKey><name>CK_NAME</name><column>NAME</column></candidateKey>"
    files = changed(VALID, META_XML, "<candidateKeys>", key)
    assert check(tmp_path, files).findings == []
    same = changed(files, ARTIST, "Jürg", "Anna   O&#39;Neill".replace("  ", " \\u0020", 1))
    (tmp_path / "museum.siard").unlink()
    assert "the candidate key" in messages(check(tmp_path, same))


def test_match_full_allows_no_half_reference(tmp_path: Path) -> None:
    files = changed(VALID, META_XML, "<matchType>SIMPLE", "<matchType>FULL")
    files = changed(files, WORK, "<c1>12</c1>", "<c1>12</c1><c2>1</c2>")
    assert "MATCH FULL does not allow" in messages(check(tmp_path, files))


@pytest.mark.parametrize(("value", "fine"), [("CH", True), ("XX", False)])
def test_match_partial_compares_the_rest(value: str, fine: bool, tmp_path: Path) -> None:
    files = changed(VALID, META_XML, "<matchType>SIMPLE", "<matchType>PARTIAL")
    files = changed(files, WORK, "<c1>12</c1>", f"<c1>12</c1><c3>{value}</c3>")
    assert check(tmp_path, files).valid is fine


@pytest.mark.parametrize(
    "files",
    [
        {"header/style.xsl": b"<x/>", **VALID},
        changed(VALID, META_XML, "<users><user><name>CURATOR</name></user></users>", "<users/>"),
        changed(VALID, WORK, "10:30:00Z", "10:30:00.25Z"),
        changed(VALID, WORK, "T07:08:09.123Z", "T07:08:09Z"),
        {
            (k.replace("schema0", "main").replace("table0", "artist")): v.replace(b"schema0", b"main").replace(b"table0", b"artist")
            for k, v in VALID.items()
        },
        {
            k.replace("lob6/record0.bin", "lob6/field0/picture.png"): v.replace(b"lob6/record0.bin", b"lob6/field0/picture.png")
            for k, v in VALID.items()
        },
    ],
    ids=["style sheet", "no users", "fraction of TIME", "no fraction", "other folders", "nested"],
)  # fmt: skip
def test_what_the_standard_allows_is_not_refused(files: Files, tmp_path: Path) -> None:
    result = check(tmp_path, files)
    assert not [f for f in result.findings if f.severity is Severity.ERROR], result.findings


@pytest.mark.parametrize("name", ["content/", "content/schema0/", "content/schema0/table0/"])
def test_entries_for_folders_may_be_left_out(name: str, tmp_path: Path) -> None:
    assert check(tmp_path, without(VALID, name)).valid


def test_a_weakened_schema_is_found_even_if_nothing_uses_it(tmp_path: Path) -> None:
    weaker = changed(
        VALID, "header/metadata.xsd",
        '<xs:element name="dataOwner" type="mandatoryString"/>',
        '<xs:element name="dataOwner" type="mandatoryString" minOccurs="0"/>',
    )  # fmt: skip
    result = check(tmp_path, weaker)
    assert errors(result) == {"M_5.0-1"}
    assert "it was weakened: it accepts metadata without siardArchive/dataOwner" in messages(result)


def test_a_schema_without_the_version_is_weakened(tmp_path: Path) -> None:
    files = changed(VALID, "header/metadata.xsd", 'use="required"', 'use="optional"')
    result = check(tmp_path, files)
    assert errors(result) == {"M_5.0-1"}
    assert "it accepts metadata without siardArchive/@version" in messages(result)


def test_a_schema_that_only_accepts_more_is_a_warning(tmp_path: Path) -> None:
    wider = changed(
        VALID, "header/metadata.xsd",
        '<xs:element name="rows" type="xs:integer"/>', '<xs:element name="rows" type="xs:string"/>',
    )  # fmt: skip
    result = check(tmp_path, wider)
    assert result.valid
    assert result.rules["M_5.0-1"] == "warn"


# the versions


def in_version(number: str) -> Files:
    """The archive without what only 2.2 has, in an older version."""
    space = {"2.1": "2", "2.0": "2.0", "1.0": "1.0"}[number]
    text = VALID[META_XML].decode().replace("siard/2/metadata", f"siard/{space}/metadata")
    text = text.replace('version="2.2"', f'version="{number}"').replace("@DIGEST@", "00")
    start, end = text.index("        <table>\n          <name>WORK"), text.index("      </tables>")
    text = text[:start] + text[end:]
    if number in ("2.0", "1.0"):
        digest = "" if number == "1.0" else "MD5" + "0" * 32
        head, _, tail = text.partition("<messageDigest>")
        text = (
            f"{head}<messageDigest>{digest}</messageDigest>{tail.partition('</messageDigest>')[2]}"
        )
        text = text.replace("<specificName>TOTAL_1</specificName>", "")
    else:
        text = text.replace(
            "<messageDigest><digestType>SHA-256</digestType><digest>00</digest></messageDigest>", ""
        )
    if number == "2.0":
        text = text.replace("<messageDigest>MD5" + "0" * 32 + "</messageDigest>", "")
    if number == "1.0":
        text = text.replace("  <lobFolder>./museum_lobs/</lobFolder>\n", "")
        text = text[: text.index("      <types>")] + text[text.index("      <tables>") :]
        text = text.replace(
            "<type>INTEGER</type></column></columns></view>",
            "<type>INTEGER</type><nullable>true</nullable></column></columns></view>",
        )
    files = {k: v for k, v in VALID.items() if "table1" not in k}
    old = TABLE.encode()
    new = (
        old
        if number == "2.1"
        else f"http://www.admin.ch/xmlns/siard/{number}/schema0/table0.xsd".encode()
    )
    for name in (ARTIST, XSD0):
        files[name] = files[name].replace(old, new)
    if number in ("1.0", "2.0"):
        files[XSD0] = files[XSD0].replace(b'type="dateType"', b'type="xs:date"')
    files = {k.replace("siardversion/2.2/", f"siardversion/{number}/"): v for k, v in files.items()}
    if number == "1.0":
        files = {k: v for k, v in files.items() if "siardversion" not in k}
    return {**files, META_XML: text.encode(), "header/metadata.xsd": schema_of(number)}


@pytest.mark.parametrize("number", ["1.0", "2.0", "2.1"])
def test_each_version_is_validated_by_its_own_rules(number: str, tmp_path: Path) -> None:
    result = check(tmp_path, in_version(number))
    assert not [f for f in result.findings if f.severity is not Severity.NOTE], messages(result)
    assert (result.version, result.rows) == (number, 3)
    assert "L_7.1-0" not in result.rules
    assert ("T_6.1-3" in result.rules) is (number == "2.1")
    assert ("P_4.2-4" in result.rules) is (number != "1.0")


@pytest.mark.parametrize("number", ["1.0", "2.0", "2.1"])
def test_older_archives_are_refused_what_only_newer_ones_may(number: str, tmp_path: Path) -> None:
    files = in_version(number)
    files = changed(files, META_XML, "<type>BOOLEAN</type>", "<type>DATALINK</type>")
    if number == "1.0":  # its types are any text
        files = changed(files, META_XML, "<actionTime>BEFORE", "<actionTime>INSTEAD OF")
    assert "M_5.0-1" in errors(check(tmp_path, files))


# reports


def test_a_million_bad_cells_make_a_small_report(tmp_path: Path) -> None:
    head, _, _ = VALID[ARTIST].partition(b"<row>")
    rows = b"".join(b"<row><c1>x%d</c1><c2>CHE</c2></row>\n" % n for n in range(20_000))
    files = {**VALID, ARTIST: head + rows + b"</table>\n"}
    files = changed(files, META_XML, "<rows>3</rows>", "<rows>20000</rows>")
    result = check(tmp_path, files)
    assert len(result.findings) < 60
    counted = sum(
        f.count for f in result.findings if f.rule == "T_6.0-1" and "CHAR(2)" in f.message
    )
    assert counted == 20_000
    assert result.counts()[Severity.ERROR] >= 60_000


def test_findings_come_while_the_archive_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "museum.zip", changed(VALID, ARTIST, "Jürg", "J" * 30))
    stream = iter(validate(path, jobs=1))
    assert next(stream).rule == "G_4.1-5"
    assert [finding.rule for finding in stream] == ["T_6.0-1"]


def test_only_the_rules_asked_for_are_reported(tmp_path: Path) -> None:
    files = changed(changed(VALID, ARTIST, "Jürg", "J" * 30), META_XML, "<rows>3", "<rows>9")
    result = check(tmp_path, files, rules=["P_4.3-10"])
    assert [f.rule for f in result.findings] == ["P_4.3-10"]
    assert result.rules == {"P_4.3-10": "fail"}
    with pytest.raises(UsageError, match="there is no rule P_9"):
        validate("museum.siard", rules=["P_9"])


def test_fast_reads_no_rows_and_says_nothing_about_them(tmp_path: Path) -> None:
    result = check(tmp_path, changed(VALID, ARTIST, "Jürg", "J" * 30), fast=True)
    assert result.valid
    assert "T_6.0-1" not in result.rules
    assert result.rules["P_4.3-3"] == "pass"


def test_the_limiter_tells_the_first_and_counts_the_rest() -> None:
    limiter = Limiter(first=2, most=3)
    told: list[Finding] = []
    for n in range(10):
        told += limiter.admit(Finding("R", Severity.ERROR, f"row {n}", "bad"), f"kind {n % 2}")
    rest = list(limiter.rest())
    assert len(told) == 3
    assert sum(f.count for f in rest) == 7
    assert list(limiter.rest()) == []


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    head, _, _ = VALID[ARTIST].partition(b"<row>")
    rows = b"".join(
        b"<row><c1>%d</c1><c2>CH</c2><c3>%b</c3></row>\n" % (n % 99_990, b"x" * 19)
        for n in range(100_000)
    )
    files = {**VALID, ARTIST: head + rows + b"</table>\n"}
    files = changed(files, META_XML, "<rows>3</rows>", "<rows>100000</rows>")
    path = write(tmp_path / "museum.siard", files)
    one, two = (validate(path, jobs=jobs).finish() for jobs in (1, 2))
    assert one.findings == two.findings
    assert one.rows == 100_003
    assert "the primary key '0', the first are 1 and 99991" in messages(one)


# hostile input


def quickly(path: Path) -> Validation:
    started = time.process_time()
    result = validate(path, jobs=1).finish()
    assert time.process_time() - started < 20
    return result


def test_a_truncated_file_is_no_archive(tmp_path: Path) -> None:
    path = write(tmp_path / "museum.siard")
    path.write_bytes(path.read_bytes()[:-100])
    assert errors(quickly(path)) == {"G_4.1-1"}
    path.write_bytes(b"")
    assert errors(quickly(path)) == {"G_4.1-1"}
    path.write_bytes(b"no archive at all")
    assert errors(quickly(path)) == {"G_4.1-1"}


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/etc/passwd", "content/../../evil", "content\\evil"]
)
def test_names_that_lead_elsewhere_are_found(name: str, tmp_path: Path) -> None:
    assert "P_4.2-6" in errors(quickly(write(tmp_path / "museum.siard", {**VALID, name: b"x"})))
    assert not (tmp_path.parent / "evil.txt").exists()


def test_two_entries_of_one_name_are_found(tmp_path: Path) -> None:
    path = write(tmp_path / "museum.siard")
    with zipfile.ZipFile(path, "a") as package, pytest.warns(UserWarning, match="Duplicate"):
        package.writestr(META_XML, b"<evil/>")
    result = quickly(path)
    assert errors(result) == {"G_4.1-1"}
    assert "2 entries have this name" in messages(result)


@pytest.mark.parametrize("name", [META_XML, ARTIST, XSD0])
def test_entities_are_never_expanded(name: str, tmp_path: Path) -> None:
    bomb = (
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
        + b"".join(b'<!ENTITY c%d "%b">' % (n, b"&b;" * 10) for n in range(9))
        + b"]>"
    )
    data = VALID[name].replace(b"?>\n", b"?>\n" + bomb, 1).replace(b"City museum", b"&c8;")
    assert bomb in data
    assert not quickly(write(tmp_path / "museum.siard", {**VALID, name: data})).valid


@pytest.mark.parametrize("name", [META_XML, ARTIST, XSD0])
def test_ten_thousand_nested_elements_are_refused(name: str, tmp_path: Path) -> None:
    deep = b"<a1>" * 10_000 + b"</a1>" * 10_000
    end = {META_XML: b"</siardArchive>", ARTIST: b"</table>", XSD0: b"</xs:schema>"}[name]
    data = VALID[name].replace(end, deep + end)
    assert not quickly(write(tmp_path / "museum.siard", {**VALID, name: data})).valid


def test_a_metadata_file_of_500_megabytes_is_refused(tmp_path: Path) -> None:
    filled = VALID[META_XML].replace(b"City museum", b"x" * 500_000_000)
    result = quickly(write(tmp_path / "museum.siard", {**VALID, META_XML: filled}))
    assert errors(result) == {"M_5.0-1"}
    assert "larger than" in messages(result)


def zeros(size: int) -> bytes:
    """Deflate so many zero bytes without holding them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(1 << 20)
    packed = b"".join(packer.compress(block) for _ in range(size >> 20))
    return packed + packer.flush()


@pytest.mark.parametrize("name", [ARTIST, META_XML, "content/schema0/table1/lob6/record0.bin"])
def test_an_entry_that_claims_a_terabyte_takes_neither_time_nor_memory(
    name: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "museum.siard")
    bombed = tmp_path / "bomb.siard"
    packed = zeros(1 << 28)
    with zipfile.ZipFile(path) as source, bombed.open("wb") as stream:
        records = []
        for info in source.infolist():
            data, size, crc = source.read(info), info.file_size, info.CRC
            method = 8
            body = zlib.compress(data, 9)[2:-4]
            if info.filename == name:
                body, size, crc = packed, 1 << 40, 0
            extra = struct.pack("<2HQQ", 1, 16, size, len(body))
            label = info.filename.encode()
            at = stream.tell()
            fixed = (45, 0x800, method, 0, 0, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(label), len(extra))
            stream.write(struct.pack("<4s5H3L2H", b"PK\x03\x04", *fixed) + label + extra + body)
            records.append(
                struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 45, *fixed, 0, 0, 0, 0, at)
                + label
                + extra
            )
        start = stream.tell()
        stream.write(b"".join(records))
        size = stream.tell() - start
        stream.write(
            struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, len(records), len(records), size, start, 0)
        )
    assert not quickly(bombed).valid


def test_a_schema_that_refers_to_other_files_is_not_compiled(tmp_path: Path) -> None:
    secret = tmp_path / "secret.xsd"
    secret.write_text('<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"/>')
    include = f'<xs:include schemaLocation="{secret.as_uri()}"/><xs:element name="table">'
    files = changed(VALID, XSD0, '<xs:element name="table">', include)
    assert errors(quickly(write(tmp_path / "museum.siard", files))) == {"T_6.1-1"}


def test_spellings_of_xml_that_mean_the_same_are_the_same(tmp_path: Path) -> None:
    """Prefixes, comments, CDATA, other encodings, white space."""
    text = VALID[ARTIST].decode()
    variants = [
        text.replace("<row><c1>1", "<!-- first --><row><c1><![CDATA[1]]>"),
        text.replace("<c3>", "\n    <c3>").replace("<row>", "\n  <row>\n"),
        text.replace("<c3>Jürg</c3>", "<c3>J&#xFC;rg</c3>"),
        text.replace("<table xmlns=", "<t:table xmlns:t=").replace("</table>", "</t:table>").replace("<row>", "<t:row>").replace("</row>", "</t:row>").replace("<c", "<t:c").replace("</c", "</t:c"),
    ]  # fmt: skip
    documents = [v.encode() for v in variants]
    documents.append(text.replace("UTF-8", "UTF-16").encode("utf-16"))
    documents.append(b"\xef\xbb\xbf" + text.encode())
    for number, document in enumerate(documents):
        folder = tmp_path / str(number)
        folder.mkdir()
        result = check(folder, {**VALID, ARTIST: document})
        assert result.findings == [], (number, messages(result))
        assert result.rows == 6


# whatever happens to an archive, it is told


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_mutation_crashes_and_each_that_changes_bytes_of_content_is_found(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("mutated")
    names = [name for name in VALID if not name.endswith("/")]
    name = data.draw(st.sampled_from(names))
    kind = data.draw(st.sampled_from(["drop", "swap", "byte", "cut", "double"]))
    files = dict(VALID)
    if kind == "drop":
        files = without(files, name)
    elif kind == "swap":
        other = data.draw(st.sampled_from([n for n in names if n != name]))
        files[name], files[other] = files[other], files[name]
    else:
        at = data.draw(st.integers(0, len(files[name]) - 1))
        content = files[name]
        new = {
            "byte": content[:at]
            + bytes([content[at] ^ data.draw(st.integers(1, 255))])
            + content[at + 1 :],
            "cut": content[:at],
            "double": content[: at + 1] + content,
        }[kind]
        files[name] = new
    path = write(folder / "museum.siard", VALID)
    digest = open_siard(path)
    with digest as source:
        stated = source.describe().message_digests[0].digest
    path.unlink()
    # The digest of the original stays: that is what an accident looks like.
    files = {k: v.replace(b"@DIGEST@", stated.encode()) for k, v in files.items()}
    result = validate(write(path, files), jobs=1).finish()
    if name.startswith("content/") or kind in ("drop", "swap"):
        assert not result.valid, (kind, name)


def test_bytes_changed_in_the_file_itself_are_found(tmp_path: Path) -> None:
    path = write(tmp_path / "museum.siard")
    original = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(original)) as package:
        end = package.getinfo("header/").header_offset
    for at in range(0, end, 37):
        path.write_bytes(original[:at] + bytes([original[at] ^ 0x55]) + original[at + 1 :])
        assert not validate(path, jobs=1).finish().valid, at


def test_bytes_changed_in_the_header_and_the_directory_are_found_if_they_mean_something(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "museum.siard")
    original = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(original)) as package:
        end = package.getinfo("header/").header_offset
        content = {name: package.read(name) for name in package.namelist()}
    unfound = 0
    for at in range(end, len(original), 89):
        changed_bytes = original[:at] + bytes([original[at] ^ 0x55]) + original[at + 1 :]
        path.write_bytes(changed_bytes)
        if not validate(path, jobs=1).finish().valid:
            continue
        unfound += 1  # such as the time of an entry
        with zipfile.ZipFile(io.BytesIO(changed_bytes)) as package:
            assert {name: package.read(name) for name in package.namelist()} == content, at
    assert unfound < 40


def test_the_outside_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "museum.siard", VALID, {k: v + b"!" for k, v in OUTSIDE.items()})
    assert errors(validate(path, jobs=1).finish()) == {"T_6.2-1", "T_6.4-5"}


def test_a_wrong_namespace_is_found(tmp_path: Path) -> None:
    files = changed(VALID, ARTIST, TABLE, META)
    assert errors(check(tmp_path, files)) == {"T_6.0-2"}


def test_asking_for_one_rule_still_reads_what_it_needs(tmp_path: Path) -> None:
    damaged = {**VALID, "content/schema0/table1/lob6/record0.bin": b"other"}
    assert errors(check(tmp_path, damaged, rules=["T_6.4-5"])) == {"T_6.4-5"}
    path = tmp_path / "museum.siard"
    data = path.read_bytes()
    at = data.rfind(b"content/schema0/table1/lob7/record0.txt") - 46
    path.write_bytes(data[: at + 16] + b"\0\0\0\0" + data[at + 20 :])
    assert errors(validate(path, rules=["G_4.1-1"], jobs=1).finish()) == {"G_4.1-1"}


def test_a_long_comment_is_refused_before_it_takes_forever(tmp_path: Path) -> None:
    comment = b"<!--" + b"x" * (48 << 20) + b"-->"
    files = {**VALID, ARTIST: VALID[ARTIST].replace(b"<row>", b"<row>" + comment, 1)}
    started = time.process_time()
    assert "a comment or a tag of more than 32 MiB" in messages(check(tmp_path, files))
    with open_siard(tmp_path / "museum.siard") as source:
        schema, table = next(source.describe().tables())
        with pytest.raises(SiardError, match="a comment or a tag of more than 32 MiB"):
            for part in source.parts(schema, table):
                list(source.batches(schema, table, part))
    assert time.process_time() - started < 15


def test_endless_white_space_takes_no_time(tmp_path: Path) -> None:
    blank = b"<row>" + b"  " * 2_000_000
    files = {**VALID, ARTIST: VALID[ARTIST].replace(b"<row>", blank)}
    result = quickly(write(tmp_path / "museum.siard", files))
    assert result.findings == []


def test_a_mime_type_that_is_not_the_files_is_a_note(tmp_path: Path) -> None:
    result = check(tmp_path, changed(VALID, META_XML, "image/png", "image/jpeg"))
    assert result.valid
    assert "is image/png, its column says image/jpeg" in messages(result)


def test_a_reference_that_differs_only_in_case_is_a_warning(tmp_path: Path) -> None:
    files = changed(VALID, WORK, "<c2>2</c2><c3>DE</c3>", "<c2>2</c2><c3>de</c3>")
    result = check(tmp_path, files)
    assert result.valid
    assert "refers to '2', 'de', which MAIN.ARTIST does not have, but for case" in messages(result)


@pytest.mark.parametrize("name", ["museum.siard", "museum.siard_part001"])
def test_a_split_archive_is_validated_in_place(name: str, tmp_path: Path) -> None:
    data = write(tmp_path / "museum.siard").read_bytes()
    (tmp_path / "museum.siard").unlink()
    for number, start in enumerate(range(0, len(data), 3000), 1):
        part = tmp_path / f"museum.siard_part{number:03}"
        part.write_bytes(data[start : start + 3000])
    result = validate(tmp_path / name, jobs=1).finish()
    assert result.findings == []
    assert result.rules["S_8.2-0"] == "pass"
    assert result.rows == 6


def test_two_cells_that_name_one_file_are_told(tmp_path: Path) -> None:
    row = VALID[WORK].decode().partition("<row>")[2].partition("</row>")[0]
    picture = row[row.index("<c7 ") : row.index("/>", row.index("<c7 ")) + 2]
    last = "<row><c1>12</c1><c6/>"
    files = changed(VALID, WORK, last, last + picture)
    result = check(tmp_path, files)
    assert [(f.rule, f.severity, f.where) for f in result.findings] == [
        ("T_6.4-5", Severity.WARNING, "MAIN.WORK.PICTURE, row 3")
    ]
    assert "another cell names 'content/schema0/table1/lob6/record0.bin'" in messages(result)
    track = row[row.index("<c9 ") : row.index("/>", row.index("<c9 ")) + 2]
    (tmp_path / "museum.siard").unlink()
    result = check(tmp_path, changed(VALID, WORK, last, last + track))
    assert [(f.rule, f.severity, f.where) for f in result.findings] == [
        ("T_6.4-5", Severity.WARNING, "MAIN.WORK.TRACK, row 1"),
        ("T_6.2-1", Severity.WARNING, "MAIN.WORK.TRACK, row 1"),
    ]
    assert "so does MAIN.WORK.TRACK, row 3: they name one file" in messages(result)
    assert "they link to one file; SQL/MED allows one link per file" in messages(result)


def test_objects_beneath_a_root_are_found(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for name, data in OUTSIDE.items():
        (store / name).parent.mkdir(parents=True)
        (store / name).write_bytes(data)
    path = write(tmp_path / "museum.siard", VALID, {})
    assert errors(validate(path, jobs=1).finish()) == {"T_6.4-5"}
    assert validate(path, jobs=1, roots=[Root(store)]).finish().findings == []
