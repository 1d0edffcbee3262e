"""Tapes as others write them come in whole, and every record comes back; or nothing comes in."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from muniment.errors import MunimentError
from muniment.repository import Store
from muniment.repository.exchange import import_files
from muniment.repository.reindex import reindex
from muniment.repository.verify import verify
from muniment.tape.records import TAPE

UTF8 = '<?xml version="1.0" encoding="UTF-8"?>'
TEXT = '<x:d xmlns:x="urn:x">h\u00e9llo \u5b57 &amp; \U0001f600</x:d>'


def record(
    identifier: str, payload: str = "<d/>", p: str = "ta:", date: str = "2005-09-09T21:00:04Z",
    inside: str = "", behind: str = "",
) -> str:  # fmt: skip
    return (
        f"<{p}tapeRecord{inside}><{p}tapeRecordAdmin{inside}><{p}identifier{inside}>{identifier}"
        f"</{p}identifier{behind}><{p}date>{date}</{p}date></{p}tapeRecordAdmin>"
        f"<{p}record{inside}>{payload}</{p}record{behind}></{p}tapeRecord{behind}>\n"
    )


def tape(body: str, p: str = "ta:", head: str = UTF8, doctype: str = "") -> str:
    declared = f"xmlns:{p[:-1]}" if p else "xmlns"
    return f'{head}{doctype}<{p}tape {declared}="{TAPE}">{body}</{p}tape>'


NESTED = tape(record("urn:in:1") + record("urn:in:2"), head="")
NESTED_DEFAULT = tape(record("urn:in:1", p="") + record("urn:in:2", p=""), p="", head="")
UTF16 = UTF8.replace("UTF-8", "UTF-16")
SPACE = " " * 300_000 + "\n\t"
ODD = " a='>' b=\"'/>\""
SUBSET = (
    '<!DOCTYPE ta:tape [ <!-- ]> --> <!ENTITY who "Bob &amp; Eve"> <!ELEMENT x ANY> '
    '<!ATTLIST ta:tape v CDATA "1"> <?pi ]> ?> ]>'
)
GOOD = {
    "UTF-16LE with BOM": (("\ufeff" + tape(record("urn:1", TEXT), head=UTF16)).encode("utf-16-le")),
    "UTF-16BE with BOM": (("\ufeff" + tape(record("urn:1", TEXT), head=UTF16)).encode("utf-16-be")),
    "UTF-16LE without BOM": tape(record("urn:1", TEXT), head=UTF16).encode("utf-16-le"),
    "UTF-16BE without BOM": tape(record("urn:1", TEXT), head=UTF16).encode("utf-16-be"),
    "UTF-16 without declaration": ("\ufeff" + tape(record("urn:1", TEXT), head="")).encode(
        "utf-16-le"
    ),
    "UTF-8 with BOM": ("\ufeff" + tape(record("urn:1", TEXT))).encode(),
    "Latin 9": tape(
        record("urn:1", "<d>\u20ac</d>"), head=UTF8.replace("UTF-8", "ISO-8859-15")
    ).encode("iso-8859-15"),
    "a DOCTYPE": tape(record("urn:&who;", "<d>&who;&#65;</d>"), doctype=SUBSET).encode(),
    "a DOCTYPE elsewhere": tape(
        record("urn:1"), doctype='<!DOCTYPE ta:tape SYSTEM "x.dtd">'
    ).encode(),
    "nested tapes": tape(record("urn:1", NESTED) + record("urn:2", NESTED)).encode(),
    "nested in a default namespace": tape(
        record("urn:1", NESTED_DEFAULT, p="") + record("urn:2", '<d xmlns=""><record/></d>', p=""),
        p="",
    ).encode(),
    "nested in another prefix": tape(
        record("urn:1", NESTED_DEFAULT) + record("urn:2", NESTED_DEFAULT)
    ).encode(),
    "ends in CDATA": tape(
        record("urn:1", "<d><![CDATA[</ta:record></ta:tapeRecord></ta:tape>]]></d>") * 1
        + record("urn:2", "<d><!-- </ta:record> --><?p </ta:record>?>!!!???</d>")
    ).encode(),
    "much white space": tape(record("urn:1", inside=SPACE, behind=SPACE) + record("urn:2")).encode(),
    "odd attributes": tape(record("urn:1", "<d a='>'/>", inside=ODD) + record("urn:2")).encode(),
    "instructions": tape(
        f"<?p </ta:tape>?>{record('urn:1', '<?x ?><d/><!-- y -->')}<!-- z -->"
    ).encode(),
    "identifiers with references": tape(record("urn:a&amp;b&#x43;<![CDATA[&]]>")).encode(),
    "dates": tape(
        "".join(
            record(f"urn:{number}", date=date)
            for number, date in enumerate(
                ["2005-09-09", "2005-09-09Z", "2005-09-09T23:00:04.5+02:00", " 2005-09-09\n",
                 "2005-09-09T24:00:00Z", "2005-09-09T01:02:03"]
            )
        )
    ).encode(),
    "a long record": tape(
        record("urn:1", f"<d>{'x' * 700_000}<!--{'y' * 700_000}--></d>") + record("urn:2")
    ).encode(),
    "things behind the end": (tape(record("urn:1")) + "\n<!-- x -->\n<?y?>\n").encode(),
}  # fmt: skip


def payloads(data: bytes) -> dict[str, tuple[str, bytes]]:
    """What lxml finds: each record's identifier, its date, its element in canonical form."""
    root = etree.fromstring(data, etree.XMLParser(huge_tree=True, load_dtd=False))
    found = {}
    for each in root.findall(f"{{{TAPE}}}tapeRecord"):
        admin, held = each.find(f"{{{TAPE}}}tapeRecordAdmin"), each.find(f"{{{TAPE}}}record")
        assert admin is not None
        assert held is not None
        inner = next(child for child in held if isinstance(child.tag, str))
        name = (admin.findtext(f"{{{TAPE}}}identifier") or "").strip()
        found[name] = (admin.findtext(f"{{{TAPE}}}date") or "", canonical(etree.tostring(inner)))
    return found


def canonical(document: bytes) -> bytes:
    parser = etree.XMLParser(huge_tree=True, resolve_entities=True)
    return etree.tostring(etree.fromstring(document, parser), method="c14n2", exclusive=True,
                          with_comments=True)  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_foreign_tape_comes_in_and_every_record_comes_back(
    name: str, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "tape.xml"
    path.write_bytes(GOOD[name])
    wanted = payloads(GOOD[name])
    assert import_files(store, [path]).records == len(wanted)
    assert import_files(store, [path]).files == 0
    for _ in range(2):
        records = {each.identifier: each for each in store.catalogue.records(kind="record")}
        assert set(records) == set(wanted)
        for identifier, found in records.items():
            data = store.read(found)
            assert GOOD[name].count(data) >= 1
            assert canonical(store.document(found)) == wanted[identifier][1]
        reindex(store)
    assert verify(store).problems == []


BAD = {
    "no date": (tape(record("urn:1") + record("urn:2", date="yesterday")), "is not a date"),
    "no day": (tape(record("urn:1", date="2005-02-30")), "is not a date"),
    "a year of five digits": (tape(record("urn:1", date="12005-02-03")), "is not a date"),
    "twice": (tape(record("urn:1") + record("urn:1", "<e/>")), "was used already, at byte"),
    "cut off": (tape(record("urn:1"))[:-30], "not well-formed"),
    "a bomb": (
        tape(record("urn:1", "<d>&b;</d>"),
             doctype='<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>'),
        "holds markup, other entities",
    ),
    "an entity elsewhere": (
        tape(record("urn:1"), doctype='<!DOCTYPE x [<!ENTITY c SYSTEM "file:///etc/passwd">]>'),
        "never followed",
    ),
    "no namespace": ("<tape><tapeRecord/></tape>", "of no namespace"),
    "nothing": ("", "no element found"),
    "more behind the end": (tape(record("urn:1")) + "<x/>", "junk after"),
    "two in one": (tape(record("urn:1", "<d/><d/>")), "more than one element"),
    "none in one": (tape(record("urn:1", " ")), "a record is empty"),
    "text between": (tape(f"text{record('urn:1')}"), "text between"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_tape_leaves_nothing(name: str, store: Store, tmp_path: Path) -> None:
    data, words = BAD[name]
    path = tmp_path / "tape.xml"
    path.write_text(data, encoding="utf-8")
    with pytest.raises(MunimentError, match=rf"tape\.xml, byte \d+: .*{words}"):
        import_files(store, [path])
    assert store.places[0].names() == []
    assert not store.catalogue.files()


@pytest.mark.parametrize("text", ["", "<d/>"])
def test_an_empty_tape_changes_nothing(text: str, store: Store, tmp_path: Path) -> None:
    body = f"<ta:tapeAdmin>{text}</ta:tapeAdmin>" if text else ""
    path = tmp_path / "tape.xml"
    path.write_text(tape(body), encoding="utf-8")
    assert import_files(store, [path]).files == 0
    assert store.places[0].names() == []


def test_an_import_that_died_is_finished_by_the_next(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "tape.xml"
    path.write_text(tape(record("urn:1")), encoding="utf-8")
    store.places[0].put("tape.xml", path)  # and here the process was killed
    assert import_files(store, [path]).records == 1
    assert store.read(store.find("urn:1")) == b"<d/>"
    path.write_text(tape(record("urn:2")), encoding="utf-8")  # another tape of the same name
    assert import_files(store, [path]).records == 1
    reindex(store)
    assert verify(store).problems == []
    assert store.read(store.find("urn:2")) == b"<d/>"
