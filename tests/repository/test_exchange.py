"""Tapes and ARC files move between stores, and nothing comes in unchecked."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from muniment.errors import ArcError, DigestMismatch, FormatError, StoreError, TapeError, UsageError
from muniment.repository import Store
from muniment.repository.exchange import (
    MANIFEST,
    export_selection,
    export_store,
    import_files,
    import_records,
)
from muniment.repository.reindex import reindex
from muniment.repository.verify import verify
from muniment.tape import tape_head, tape_record
from muniment.tape.write import TAPE_END


@pytest.fixture
def other(tmp_path: Path) -> Store:
    """A second store."""
    return Store.create(tmp_path / "other", series="db.other.ch")


def files(store: Store) -> dict[str, bytes]:
    return {file.name: store.path(file).read_bytes() for file in store.catalogue.files()}


def test_a_whole_store_moves_byte_for_byte(filled: Store, other: Store, tmp_path: Path) -> None:
    export_store(filled, tmp_path / "out")
    subprocess.run(["sha256sum", "-c", "--quiet", MANIFEST], cwd=tmp_path / "out", check=True)
    moved = import_files(other, [tmp_path / "out"])
    assert (moved.files, moved.known, moved.datastreams) == (4, 0, 23)
    assert files(filled).items() <= files(other).items()
    assert [v.identifier for v in other.versions("urn:test:3")] == [
        v.identifier for v in filled.versions("urn:test:3")
    ]
    before = files(other)
    assert import_files(other, [tmp_path / "out"]).known == 4
    assert files(other) == before
    assert verify(other).good
    reindex(other)
    assert verify(other).good
    other.close()


def test_a_selection_moves_with_its_datastreams(
    filled: Store, other: Store, tmp_path: Path
) -> None:
    chosen = [*filled.versions("urn:test:3"), filled.find("urn:test:folder")]
    moved = export_selection(filled, tmp_path / "out", chosen)
    assert (moved.records, moved.datastreams) == (3, 4)
    import_files(other, [tmp_path / "out"])
    for found in chosen:
        assert other.read(other.find(found.identifier)) == filled.read(found)
        filled.extract(found, tmp_path / "a" / found.identifier[-4:])
        other.extract(other.find(found.identifier), tmp_path / "b" / found.identifier[-4:])
    subprocess.run(["diff", "-r", "a", "b"], cwd=tmp_path, check=True)
    export_store(filled, tmp_path / "all")
    import_files(other, [tmp_path / "all"])  # what is there as well is kept once
    assert len(other.versions("urn:test:3")) == 2
    assert verify(other).good
    other.close()


def test_a_changed_file_does_not_come_in(filled: Store, other: Store, tmp_path: Path) -> None:
    export_store(filled, tmp_path / "out")
    for path in (tmp_path / "out").glob("*.xml"):
        path.chmod(0o644)
        path.write_bytes(path.read_bytes().replace(b"title", b"tITle", 1))
    with pytest.raises(DigestMismatch):
        import_files(other, [tmp_path / "out"])
    for path in (tmp_path / "out").glob("*.xml"):
        if b"tITle" in path.read_bytes():
            with pytest.raises((DigestMismatch, TapeError)):
                import_files(other, [path])
    assert not other.catalogue.files()
    other.close()


def tape(*records: bytes, tape_id: str = "urn:t:1") -> bytes:
    return tape_head(tape_id, [], "2026-01-01T00:00:00Z") + b"".join(records) + TAPE_END


def test_a_known_identifier_with_other_bytes_does_not_come_in(other: Store, tmp_path: Path) -> None:
    one, two = tmp_path / "one.xml", tmp_path / "two.xml"
    one.write_bytes(tape(tape_record("urn:r", "2026-01-01", b"<a/>")))
    two.write_bytes(
        tape(
            tape_record("urn:s", "2026-01-01", b"<a/>"),
            tape_record("urn:r", "2026-01-01", b"<b/>"),
            tape_id="urn:t:2",
        )
    )
    import_files(other, [one])
    with pytest.raises(
        StoreError, match=r"two.xml, byte \d+: urn:r is in the store already, with other bytes"
    ):
        import_files(other, [two])
    assert other.catalogue.record("urn:s") is None
    assert other.read(other.find("urn:r")) == b"<a/>"
    other.close()


def test_two_files_that_contradict_each_other_do_not_come_in(other: Store, tmp_path: Path) -> None:
    paths = []
    for number, payload in enumerate([b"<a/>", b"<b/>", b"<a/>"]):
        path = tmp_path / f"{number}.xml"
        record = tape_record("urn:r", "2026-01-01", payload)
        path.write_bytes(tape(record, tape_id=f"urn:t:{number}"))
        paths.append(path)
    with pytest.raises(
        StoreError, match=r"1\.xml, byte \d+: urn:r is in .*0\.xml with other bytes"
    ):
        import_files(other, paths)
    assert other.places[0].names() == []
    assert import_files(other, [paths[0], paths[2]]).files == 1
    other.close()


def test_files_of_one_name_come_in_together(other: Store, tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        path = tmp_path / str(number) / "tape.xml"
        path.parent.mkdir()
        record = tape_record(f"urn:{number}", "2026-01-01", b"<a/>")
        path.write_bytes(tape(record, tape_id=f"urn:t:{number}"))
        paths.append(path)
    assert import_files(other, paths).files == 2
    reindex(other)
    assert other.find("urn:0").file != other.find("urn:1").file
    paths[1].write_bytes(tape(tape_record("urn:2", "2026-01-01", b"<a/>"), tape_id="urn:t:0"))
    with pytest.raises(StoreError, match="already a tape urn:t:0 in the store"):
        import_files(other, [paths[1]])
    other.close()


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("t.xml", tape(tape_record("urn:r", "2026-01-01", b"<a/>"))[:-20], TapeError),
        (
            "t.xml",
            tape(
                tape_record("urn:r", "2026-01-01", b"<a/>"),
                tape_record("urn:r", "2026-01-01", b"<a/>"),
            ),
            TapeError,
        ),
        ("t.xml", b"no tape at all", TapeError),
        ("t.warc", b"no file at all", ArcError),
        ("t.arc", b"filedesc://x 0.0.0.0 20050101000000 text/plain 9999999\n", ArcError),
        ("t.warc.gz", b"\x1f\x8b\x08garbage", ArcError),
        ("t.zip", b"PK", UsageError),
    ],
)
def test_bad_files_do_not_come_in(
    other: Store, tmp_path: Path, name: str, data: bytes, error: type[Exception]
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(error):
        import_files(other, [path])
    assert not other.catalogue.files()
    assert other.places[0].names() == []
    other.close()


def test_the_sample_tape_and_arc_come_in_and_their_image_out(
    samples: Path, other: Store, tmp_path: Path
) -> None:
    adore = samples / "adore"
    (arc,) = adore.glob("*.arc")
    import_files(other, [adore / "demoTape.xml", arc])
    (found,) = other.versions("info:doi/10.1016/j.dyepig.2004.06.022")
    streams = [
        s
        for s in other.object(found).streams
        if s.identifier.endswith("a9866bc2-306b-4698-abaf-a0f43c1ea611")
    ]
    with other.open_stream(streams[0].identifier) as opened:
        assert (
            hashlib.sha256(opened.read()).digest()
            == hashlib.sha256(arc.read_bytes()[263:-1]).digest()
        )
    known = other.catalogue.find_file("info:lanl-repo/arc/472de88d-5670-45df-9200-fb135189f00e")
    assert known is not None
    reindex(other)
    assert (
        other.catalogue.find_file("info:lanl-repo/arc/472de88d-5670-45df-9200-fb135189f00e")
        is not None
    )
    assert verify(other).good
    other.close()


HARVEST = b"""<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>
<record><header><identifier>oai:a:1</identifier><datestamp>2020-02-03</datestamp></header><metadata>
<dc:dc xmlns:dc="http://www.openarchives.org/OAI/2.0/oai_dc/"><x/></dc:dc></metadata></record>
<record><header status="deleted"><identifier>oai:a:2</identifier><datestamp>2020-02-03</datestamp></header></record>
</ListRecords></OAI-PMH>"""


def test_harvested_records_keep_their_identifier_and_date(other: Store, tmp_path: Path) -> None:
    (tmp_path / "h.xml").write_bytes(HARVEST)
    (tmp_path / "any.xml").write_bytes(b"<?xml version='1.0'?><any><thing/></any>")
    for records in (2, 0):
        assert import_records(other, [tmp_path / "h.xml", tmp_path / "any.xml"]).records == records
    found = other.find("oai:a:1")
    assert found.date == "2020-02-03T00:00:00Z"
    assert other.document(found).startswith(b"<dc:dc")
    assert verify(other).good
    (tmp_path / "bad.xml").write_bytes(
        b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>"
    )
    (tmp_path / "worse.xml").write_bytes(b"<a>")
    with pytest.raises(FormatError):
        import_records(other, [tmp_path / "worse.xml"])
    import_records(other, [tmp_path / "bad.xml"])
    assert not any(b"root:" in other.read(found) for found in other.catalogue.records())
    other.close()
    shutil.rmtree(other.folder)
