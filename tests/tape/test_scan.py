"""The quick scanner finds what expat finds, to the byte, however a tape is spelt."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from muniment.errors import NotFound, TapeError
from muniment.tape import Tape, TapeRecord, build_index, scan, tape_head, tape_record
from muniment.tape.exact import read_exactly, read_head
from muniment.tape.records import TAPE
from muniment.tape.write import TAPE_END

SPACE = st.sampled_from(["", " ", "\n", "\t\r\n  "])
BETWEEN = st.sampled_from(
    ["", "\n", " <!-- </ta:record> <ta:tapeRecord> -->", "<?p </ta:tape>?>\n"]
)
ATTRIBUTES = st.sampled_from(["", " a='>'", ' b = "</x>"'.replace("<", "&lt;"), ' xmlns:q="urn:q"'])
INNER = [
    "plain",
    "Ünïcødé 字 \U0001f600",
    "<![CDATA[</ta:record></ta:tapeRecord>]]>",
    "<!-- </ta:record> -->",
    "<?pi </ta:record> ?>",
    "<ta:record>nested</ta:record>",
    "<ta:record a='/>'/>",
    '<ta:tapeRecord xmlns:ta="urn:other"><ta:record>x</ta:record></ta:tapeRecord>',
    "<record>r</record><record/>",
    "&lt;/ta:record&gt;",
    "<q v='a>b'/>",
]


@st.composite
def tapes(draw: st.DrawFn) -> bytes:
    """A well-formed tape with any prefix, white space, comments, attributes and encoding."""
    prefix = draw(st.sampled_from(["ta", "", "t.a-pe", "ü"]))
    encoding = draw(st.sampled_from(["UTF-8", "UTF-16", "UTF-16BE", "ISO-8859-1", "us-ascii"]))
    p = f"{prefix}:" if prefix else ""
    if encoding in ("ISO-8859-1", "us-ascii") and prefix == "ü":
        p = prefix = "u"
        p += ":"

    def tag(name: str) -> tuple[str, str]:
        space, attributes = draw(SPACE), draw(ATTRIBUTES)
        return f"<{p}{name}{attributes}{space}>", f"</{p}{name}{draw(SPACE)}>"

    def wrap(name: str, content: str) -> str:
        start, stop = tag(name)
        return start + content + stop

    records = []
    for number in range(draw(st.integers(0, 4))):
        identifier = draw(
            st.sampled_from(
                ["urn:x:{}", "urn:a&amp;b:{}", " urn:&#65;&#x42;:{} ", "<![CDATA[urn:{}]]>"]
            )
        )
        date = draw(
            st.sampled_from(["2005-09-09T21:00:04Z", "2005-09-09", "\n2005-09-09T21:00:04+02:00 "])
        )
        inner = "".join(draw(st.lists(st.sampled_from(INNER), max_size=4)))
        payload = f'<d:DIDL xmlns:d="urn:d" xmlns:ta="urn:ta">{inner}</d:DIDL>'
        parts = [
            wrap("identifier", identifier.format(number)),
            wrap("date", date),
            *(
                wrap("recordAdmin", "<m:x xmlns:m='urn:m' b='>'>1</m:x>")
                for _ in range(draw(st.integers(0, 2)))
            ),
        ]
        between = draw(BETWEEN)
        admin = wrap("tapeRecordAdmin", between + between.join(parts) + between)
        record = wrap("record", draw(BETWEEN) + payload + draw(BETWEEN))
        records.append(
            wrap("tapeRecord", draw(BETWEEN) + admin + draw(BETWEEN) + record + draw(BETWEEN))
        )
    doctype = draw(st.sampled_from(["", f'<!DOCTYPE {p}tape [<!ENTITY e "text &amp; more">]>\n']))
    xmlns = f"xmlns:{prefix}" if prefix else "xmlns"
    root = f"<{p}tape {xmlns}='{TAPE}' xmlns:d=\"urn:d\">"
    declared = "UTF-16" if encoding.startswith("UTF-16") else encoding
    body = draw(BETWEEN).join(records)
    text = f'<?xml version="1.0" encoding="{declared}"?>\n{doctype}{root}{draw(BETWEEN)}{body}{draw(BETWEEN)}</{p}tape>\n'
    if encoding == "UTF-16BE":
        return b"\xfe\xff" + text.encode("utf-16-be")
    return text.encode(encoding, "xmlcharrefreplace")


def plain(records: list[TapeRecord]) -> list[tuple[object, ...]]:
    return [record[:6] for record in records]


@settings(max_examples=150, deadline=None)
@given(tapes(), st.sampled_from([1 << 18, 64, 700]))
def test_the_scanner_finds_what_expat_finds(tape: bytes, chunk: int) -> None:
    quick: Any = sys.modules[scan.__module__]
    before, quick._CHUNK = quick._CHUNK, chunk
    try:
        found = list(scan(io.BytesIO(tape), "tape")[1])
    finally:
        quick._CHUNK = before
    exact = list(read_exactly(io.BytesIO(tape), "tape"))
    assert plain(found) == plain(exact)
    assert [record.namespaces for record in found] == [record.namespaces for record in exact]


@settings(max_examples=60, deadline=None)
@given(tapes())
def test_every_record_is_a_document_of_its_own(tape: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tape.xml"
        path.write_bytes(tape)
        root = etree.fromstring(tape)
        with Tape(path) as opened:
            for element in root.iter(f"{{{TAPE}}}tapeRecord"):
                if element.getparent() is not root:
                    continue
                identifier = "".join(
                    element.find(f"{{{TAPE}}}tapeRecordAdmin/{{{TAPE}}}identifier").itertext()
                ).strip()
                inside = next(
                    child
                    for child in element.find(f"{{{TAPE}}}record")
                    if isinstance(child.tag, str)
                )
                alone = etree.fromstring(opened.document(identifier))
                inside.tail = None
                assert alone.tag == inside.tag
                assert "".join(alone.itertext()) == "".join(inside.itertext())


@settings(max_examples=200, deadline=None)
@given(tapes(), st.integers(0, 5000), st.binary(max_size=3))
def test_a_damaged_tape_gives_an_error_and_never_anything_else(
    tape: bytes, place: int, junk: bytes
) -> None:
    damaged = tape[: place % len(tape)] + junk
    try:
        list(scan(io.BytesIO(damaged), "tape")[1])
    except TapeError as error:
        assert str(error).startswith("tape")


def own_tape(count: int = 3) -> bytes:
    records = [
        tape_record(f"urn:r:{n}", f"2026-01-0{n + 1}T00:00:00Z", f"<r n='{n}'/>".encode())
        for n in range(count)
    ]
    return (
        tape_head("urn:t:1", ["urn:arc:1"], "2026-01-01T00:00:00Z") + b"".join(records) + TAPE_END
    )


def test_our_own_tape_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_bytes(own_tape())
    with Tape(path) as tape:
        assert len(tape) == 3
        assert tape.head.tape_id == "urn:t:1"
        assert tape.head.arc_ids == ("urn:arc:1",)
        assert tape.read("urn:r:1") == b"<r n='1'/>"
        dates = [
            entry.identifier
            for entry in tape.index.between("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")
        ]
        assert dates == ["urn:r:1", "urn:r:2"]
        with pytest.raises(NotFound):
            tape.read("urn:r:9")


def test_an_index_that_is_older_than_its_tape_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_bytes(own_tape(2))
    Tape(path).close()
    path.write_bytes(own_tape(3))
    with Tape(path) as tape:
        assert len(tape) == 3


def test_an_identifier_used_twice_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_bytes(own_tape().replace(b"urn:r:2", b"urn:r:1"))
    with pytest.raises(TapeError, match=r"byte \d+: the identifier urn:r:1 was used already"):
        build_index(path, tmp_path / "index")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    "subset",
    [
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">',
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        '<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;',
        '<!ENTITY m "<ta:record/>">',
        f'<!ENTITY l "{"x" * 70000}">',
    ],
)
def test_entities_that_could_hurt_are_refused(subset: str) -> None:
    tape = own_tape().replace(b"<ta:tape ", f"<!DOCTYPE ta:tape [{subset}]><ta:tape ".encode(), 1)
    with pytest.raises(TapeError, match="entity"):
        read_head(io.BytesIO(tape), "tape")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"<ta:record><r n='1'/></ta:record>", b"<ta:record></ta:record>", "empty"),
        (b"<r n='1'/>", b"<r/><r/>", "more than one element"),
        (b"<ta:date>2026-01-02T00:00:00Z</ta:date>", b"", "no date|before"),
        (b"<r n='1'/>", b"<r n='1'>", "not well-formed"),
        (b"</ta:tape>", b"", "not well-formed"),
        (b"<ta:tape ", b"<tape ", "not an XMLtape"),
    ],
)
def test_what_is_no_tape_is_refused_with_its_place(old: bytes, new: bytes, words: str) -> None:
    with pytest.raises(TapeError, match=rf"byte \d+.*({words})"):
        list(read_exactly(io.BytesIO(own_tape().replace(old, new)), "tape"))


def test_the_sample_tapes_are_read(samples: Path) -> None:
    for path in sorted((samples.parent / "adore").glob("demoTape*.xml")):
        data = path.read_bytes()
        (record,) = scan(io.BytesIO(data), path.name)[1]
        assert record.identifier == "oai:lcoa1.loc.gov:loc.pnp/cph.3a40804"
        element = etree.fromstring(data[record.offset : record.offset + record.length])
        assert etree.QName(element).localname == "DIDL"
