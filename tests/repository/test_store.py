"""Objects go in, and come back bit for bit, by any of their names."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from muniment.arc import FORMATS, read_arc_file
from muniment.errors import LobError, NotFound, StoreError, UsageError
from muniment.objects import Datastream, DigitalObject, didl_document, mets_document, read_object
from muniment.query import open_archives
from muniment.repository import Session, Settings, Source, Store
from muniment.repository.ingest import submit_file
from muniment.repository.reindex import reindex
from muniment.repository.signatures import Signer, new_key
from muniment.repository.verify import verify
from muniment.siard import open_siard
from muniment.siard.lobs.layout import Limits
from muniment.siard.lobs.storing import External
from muniment.tape import Tape
from muniment.transfer import ArchiveOptions, archive


def everything(store: Store) -> list[object]:
    """All answers that a store gives."""
    answers: list[object] = []
    for found in store.catalogue.records():
        answers.append(
            (found.identifier, found.date, found.sha256, found.pdi, found.size, store.read(found))
        )
        if found.kind == "object":
            thing = store.object(found)
            answers.append(
                [each.identifier for name in thing.contents for each in store.versions(name)]
            )
            for stream in thing.streams:
                with store.open_stream(stream.identifier) as opened:
                    answers.append(
                        (stream, opened.read(), store.versions(stream.identifier)[0].identifier)
                    )
    answers += [
        (file.uri, file.kind, file.name, file.sealed) for file in sorted(store.catalogue.files())
    ]
    return sorted(answers, key=repr)


def test_every_object_comes_back_bit_for_bit(filled: Store, tmp_path: Path) -> None:
    for number in range(20):
        if number != 3:
            filled.extract(filled.find(f"urn:test:{number}"), tmp_path / str(number))
            assert (
                tmp_path / str(number) / f"file{number}.txt"
            ).read_bytes() == f"object {number}\n".encode() * number
    made = filled.extract(filled.find("urn:test:folder"), tmp_path / "folder")
    assert [path.relative_to(tmp_path / "folder").as_posix() for path in made] == [
        "a/x.bin",
        "b y.txt",
    ]
    assert made[0].read_bytes() == bytes(range(256))


def test_a_new_version_is_a_new_document(filled: Store) -> None:
    first, second = filled.versions("urn:test:3")
    assert first.pdi.endswith(".text.1")
    assert second.pdi == first.pdi[:-1] + "2"
    assert filled.find("urn:test:3", 1) == first
    assert filled.find("urn:test:3") == second
    for name in (second.pdi, second.pdi.rsplit(".", 2)[0], f"urn:{second.pdi}"):
        assert filled.find(name) == second
    assert filled.find(first.pdi) == first
    with pytest.raises(NotFound):
        filled.find("urn:test:3", 9)


def test_every_kind_of_name_leads_to_the_object(filled: Store) -> None:
    found = filled.find("urn:test:folder")
    thing = filled.object(found)
    for name in (found.identifier, found.pdi, *(stream.identifier for stream in thing.streams)):
        assert filled.versions(name) == [found]
    tape, arc = filled.catalogue.files()[:2]
    assert filled.catalogue.find_file(tape.uri) == tape
    assert filled.catalogue.find_file(arc.uri[9:]) == arc
    assert filled.names.resolve(found.pdi).binding is not None


def test_ranges_are_read_in_place(filled: Store) -> None:
    stream = filled.object(filled.find("urn:test:folder")).streams[0]
    with filled.open_stream(stream.identifier) as opened:
        opened.seek(100)
        assert opened.read(3) == bytes([100, 101, 102])


def test_the_tape_names_its_arc_files_and_both_are_read_only(filled: Store) -> None:
    for file in filled.catalogue.files():
        path = filled.path(file)
        assert stat.S_IMODE(path.stat().st_mode) == 0o444
        if file.kind == "tape":
            with Tape(path) as tape:
                for uri in tape.head.arc_ids:
                    assert filled.catalogue.find_file(uri) is not None
                assert tape.head.arc_ids


def test_deleting_every_index_changes_no_answer(filled: Store) -> None:
    before, folder = everything(filled), filled.folder
    journal = (folder / "names" / "names.jsonl").read_bytes()
    filled.close()
    for path in [*folder.glob("catalogue.db*"), *folder.glob("files/*.index")]:
        path.unlink()
    shutil.rmtree(folder / "names")
    with Store(folder) as again:
        assert everything(again) == before
        assert again.names.resolve(again.find("urn:test:7").pdi).binding is not None
        rebuilt = reindex(again)
        assert everything(again) == before
        assert rebuilt is not None
        assert rebuilt.tapes == 2
    assert (folder / "names" / "names.jsonl").read_bytes() == journal
    assert len(list(folder.glob("files/*.index"))) == 4


def test_names_are_never_given_twice_after_the_book_was_lost(filled: Store) -> None:
    folder, taken = filled.folder, {found.pdi for found in filled.catalogue.records(kind="object")}
    filled.close()
    shutil.rmtree(folder / "names")
    with Store(folder) as again, Session(again) as session:
        session.add([Source("new", b"new", "text/plain")])
        session.commit()
        assert session.acknowledged[0].pdi not in taken


@pytest.mark.parametrize("form", FORMATS)
def test_the_size_limit_begins_new_files(form: str, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(os.urandom(2_500_000))
    with Store.create(tmp_path / "s", format=form, arc_limit=1_000_000) as store:
        with Session(store) as session:
            for number in range(30):
                session.add([Source(str(number), os.urandom(90_000), "application/octet-stream")])
            session.add([Source("big", big, "application/octet-stream")], contents=["urn:big"])
            session.add([Source("last", b"x", "text/plain")], contents=["urn:last"])
        arcs = store.catalogue.files("arc")
        assert len(arcs) >= 4
        for arc in arcs:
            path = store.path(arc)
            with path.open("rb") as stream:
                records = list(read_arc_file(stream, arc.name))
            assert path.stat().st_size <= 1_001_000 or len(records) == 2
        (made,) = store.extract(store.find("urn:big"), tmp_path / "out")
        assert made.read_bytes() == big.read_bytes()
        (tape,) = store.catalogue.files("tape")
        assert store.head(tape.id).arc_ids == tuple(arc.uri for arc in arcs)


def test_a_store_spreads_over_places(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s") as store:
        store.add_place(tmp_path / "disk2")
        store.roomiest = lambda: 1  # type: ignore[method-assign]
        with Session(store) as session:
            session.add([Source("x", b"x", "text/plain")], contents=["urn:x"])
        assert {store.path(file).parent for file in store.catalogue.files()} == {tmp_path / "disk2"}
    with Store(tmp_path / "s") as again:
        again.extract(again.find("urn:x"), tmp_path / "out")
    shutil.move(tmp_path / "disk2", tmp_path / "gone")
    with pytest.raises(StoreError, match="mounted"):
        Store(tmp_path / "s")


def test_a_file_that_vanishes_leaves_nothing_half_added(store: Store, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_bytes(b"here")
    with pytest.raises(UsageError, match="there is no file"), Session(store) as session:
        session.add([Source("a", b"a", "text/plain")], contents=["urn:a"])
        session.commit()
        session.add(
            [Source("b", there, "text/plain"), Source("c", tmp_path / "gone", "text/plain")]
        )
    assert [found.kind for found in store.catalogue.records()] == ["object", "names"]
    (arc,) = store.catalogue.files("arc")
    with store.path(arc).open("rb") as stream:
        assert len(list(read_arc_file(stream, "arc"))) == 2
    assert not store.places[0].growing()


def test_an_empty_batch_leaves_nothing(store: Store) -> None:
    with Session(store):
        pass
    assert not store.catalogue.files()
    assert store.places[0].names() == store.places[0].growing() == []


def test_a_record_is_never_replaced(store: Store) -> None:
    with Session(store) as session:
        session.add_record("urn:r", "2026-01-01", b"<r/>")
        session.add_record("urn:r", "2026-01-01", b"<r/>")
        with pytest.raises(StoreError, match="other bytes"):
            session.add_record("urn:r", "2026-01-01", b"<s/>")
    assert store.read(store.find("urn:r")) == b"<r/>"


@pytest.mark.parametrize("form", ["warc", "arc", "warc.gz"])
def test_a_siard_archive_is_read_in_place(form: str, shop: Path, tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", format=form) as store:
        _read_in_place(store, shop, tmp_path)


def _read_in_place(store: Store, shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "shop.siard"
    archive(f"sqlite:///{shop}", path)
    submission = submit_file(path)
    assert ("tables", "2") in submission.facts
    with Session(store) as session:
        session.add(
            submission.sources,
            contents=["urn:shop"],
            metadata=submission.metadata,
            facts=submission.facts,
        )
    stored = store.siard("urn:shop")
    stored = pickle.loads(pickle.dumps(stored))  # as workers get it
    with open_siard(stored) as inside, open_siard(path) as outside:
        assert inside.describe() == outside.describe()
        for schema, table in outside.describe().tables():
            rows = [
                b"".join(inside.rows_xml(schema, table)),
                b"".join(outside.rows_xml(schema, table)),
            ]
            assert rows[0] == rows[1]
    assert not (store.folder / "tmp").exists()


def test_external_folders_of_samples_come_along(
    samples: Path, store: Store, tmp_path: Path
) -> None:
    folder = samples / "siard" / "ext" / "siardapi-sql2008"
    submission = submit_file(folder / "sql2008_2_1.siard")
    assert len(submission.sources) > 1
    with Session(store) as session:
        session.add(submission.sources, contents=["urn:ext"])
    for made in store.extract(store.find("urn:ext"), tmp_path / "out"):
        original = folder / made.relative_to(tmp_path / "out")
        assert made.read_bytes() == original.read_bytes()


def _objects(path: Path) -> dict[str, bytes]:
    """All large objects of an archive."""
    found = {}
    with open_siard(path) as source:
        for schema, table in source.describe().tables():
            for part in source.parts(schema, table):
                for batch in source.batches(schema, table, part):
                    for reference in re.findall(rb"\xf9([^\xfa-\xff]+)", batch.data):
                        with source.open_lob(schema, table, reference) as stream:
                            found[reference.decode()] = stream.read()
    return found


@pytest.mark.parametrize("form", ["warc", "warc.gz"])
@pytest.mark.parametrize(
    "external",
    [
        External(),
        External(zipped=True, limits=Limits(2)),
        External(layout="eark-2.0", limits=Limits(2, 3000)),
        External(limits=Limits(1), places={".*/seg_1": "ELSEWHERE"}),
    ],
)
def test_large_objects_outside_are_read_in_place(
    form: str, external: External, shop: Path, tmp_path: Path
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    places = {name: elsewhere.as_uri() for name in external.places}
    options = ArchiveOptions(
        lobs="external", lob_threshold=0, external=replace(external, places=places)
    )
    path = home / "my shop.siard"
    archive(f"sqlite:///{shop}", path, options=options)
    submission = submit_file(path, [elsewhere] if places else [])
    with Store.create(tmp_path / "s", format=form) as store:
        with Session(store) as session:
            session.add(submission.sources, contents=["urn:shop"])
        (added,) = session.acknowledged
        shutil.rmtree(home)
        shutil.rmtree(elsewhere)
        stored = pickle.loads(pickle.dumps(store.siard("urn:shop")))
        assert str(store.siard("urn:shop")) == str(stored)  # inflated once, not at each question
        objects = _objects(stored)
        assert b"\x00\xff" * 5000 in objects.values() and len(objects) > 3
        with open_archives({"shop": stored}) as session_:
            sql = "SELECT md5(content(photo)) AS md5 FROM item WHERE sku = 'SKU-3'"
            (batch,) = session_.execute(sql).batches
        assert batch["md5"].to_pylist() == [hashlib.md5(b"\x00\xff" * 5000).hexdigest()]
        assert _objects(store.siard(added.pdi)) == objects


def test_an_archive_in_a_store_does_not_reach_around_itself(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "home" / "shop.siard"
    path.parent.mkdir()
    options = ArchiveOptions(lobs="external", lob_threshold=0)
    archive(f"sqlite:///{shop}", path, options=options)
    with Store.create(tmp_path / "s") as store:
        with Session(store) as session:
            session.add(submit_file(path).sources[:1], contents=["urn:shop"])
        # The same folder beside the store's own files is none of its business.
        for folder in path.parent.glob("*_lobs"):
            shutil.copytree(folder, store.places[0].root / folder.name)
        with pytest.raises(LobError, match="neither inside the archive nor in its folder"):
            _objects(store.siard("urn:shop"))


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a//b", "."])
def test_no_path_leads_out_of_the_folder(path: str, store: Store, tmp_path: Path) -> None:
    with Session(store) as session:
        session.add([Source(path, b"x", "text/plain")], contents=["urn:x"])
    with pytest.raises(StoreError, match="leads out"):
        store.extract(store.find("urn:x"), tmp_path / "out")


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="store init"):
        Store(tmp_path)
    (tmp_path / "store.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        Store(tmp_path)
    with pytest.raises(UsageError, match="not empty"):
        Store.create(tmp_path)


@pytest.fixture
def schema(samples: Path, tmp_path: Path) -> etree.XMLSchema:
    """The public schemas of tapes, DIDL and METS as one, without the network."""
    folder = tmp_path / "xsd"
    shutil.copytree(samples.parent / "xsd", folder)
    mets = folder / "mets.xsd"
    text = mets.read_text().replace("http://www.loc.gov/standards/xlink/xlink.xsd", "xlink.xsd")
    mets.chmod(0o644)
    mets.write_text(text)
    imports = {
        "http://library.lanl.gov/2005-08/aDORe/XMLtape/": "XMLtape.xsd",
        "http://library.lanl.gov/2005-08/aDORe/XMLtapeBasics/": "XMLtapeBasics.xsd",
        "urn:mpeg:mpeg21:2002:02-DIDL-NS": "didl.xsd",
        "http://www.loc.gov/METS/": "mets.xsd",
    }
    lines = "".join(
        f'<xs:import namespace="{uri}" schemaLocation="{name}"/>' for uri, name in imports.items()
    )
    driver = folder / "all.xsd"
    driver.write_text(f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{lines}</xs:schema>')
    return etree.XMLSchema(etree.parse(str(driver)))


def test_tapes_validate_with_the_public_schemas(
    filled: Store, schema: etree.XMLSchema, tmp_path: Path
) -> None:
    new_key(tmp_path / "key.pem")
    with Session(filled, signer=Signer(tmp_path / "key.pem")) as session:
        session.add([Source("signed", b"signed", "text/plain")])
    with Session(filled, signer=Signer(tmp_path / "key.pem"), document="mets") as session:
        session.add([Source("signed", b"signed", "text/plain")])
    verify(filled)
    tapes = filled.catalogue.files("tape")
    assert len(tapes) == 5
    for file in tapes:
        schema.assertValid(etree.parse(str(filled.path(file))))


TEXT = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=20,
)


@settings(max_examples=80, deadline=None)
@given(
    TEXT,
    TEXT,
    st.lists(TEXT, max_size=3),
    st.lists(st.tuples(TEXT, st.binary(max_size=9)), max_size=3),
)
def test_documents_say_what_they_were_told(
    package: str, title: str, contents: list[str], files: list[tuple[str, bytes]]
) -> None:
    streams = tuple(
        Datastream(
            f"urn:s:{n}",
            path,
            "text/plain; charset=utf-8",
            len(data),
            hashlib.sha256(data).hexdigest(),
            "urn:uuid:1",
        )
        for n, (path, data) in enumerate(files)
    )
    names = tuple(name.strip() or "x" for name in contents)
    thing = DigitalObject(
        package, "2026-01-01T00:00:00Z", names, streams, (("title", title.strip() or "x"),)
    )
    for write in (didl_document, mets_document):
        again = read_object(write(thing, "http://localhost"))
        assert again == thing


def test_the_settings_survive(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", series="db.example.ch", format="arc.gz") as store:
        assert Settings.load(store.folder) == store.settings
        assert json.loads((store.folder / "store.json").read_text())["series"] == "db.example.ch"


def test_xmllint_reads_our_tapes(filled: Store) -> None:
    for file in filled.catalogue.files("tape"):
        subprocess.run(["xmllint", "--noout", str(filled.path(file))], check=True)
