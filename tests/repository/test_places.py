"""Every tape and ARC file is reached through its place: another kind of place changes nothing."""

from __future__ import annotations

import ast
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

import muniment.repository
from muniment.errors import StoreError
from muniment.query import open_archives
from muniment.repository import Session, Source, Store
from muniment.repository.exchange import export_selection, export_store, import_files
from muniment.repository.ingest import submit_file
from muniment.repository.reindex import reindex
from muniment.repository.storage import SCHEMES, SUFFIXES, Growing, Place
from muniment.repository.verify import verify
from muniment.siard import open_siard
from muniment.transfer import ArchiveOptions, archive

VAULTS: dict[str, dict[str, bytes]] = {}


class Vault(Place):
    """Object storage: sealed files are values under keys, and no path leads to them."""

    def __init__(self, name: str, home: Path) -> None:
        super().__init__(home / "staging")
        self._name = name
        self._brought = home / "brought"

    @property
    def _objects(self) -> dict[str, bytes]:
        return VAULTS.setdefault(self._name, {})

    def names(self) -> list[str]:
        return sorted(name for name in self._objects if name.endswith(SUFFIXES))

    def label(self, name: str) -> str:
        return f"{self._name}/{name}"

    def is_sealed(self, name: str) -> bool:
        return name in self._objects

    def local(self, name: str) -> Path:
        if name not in self._objects:
            return super().local(name)
        self._brought.mkdir(exist_ok=True)
        (self._brought / name).write_bytes(self._objects[name])
        return self._brought / name

    def size(self, name: str) -> int:
        return len(self._objects[name]) if name in self._objects else super().size(name)

    def open(self, name: str, sealed: bool = True) -> BinaryIO:
        if not sealed:
            return super().open(name, sealed)
        if name not in self._objects:
            raise FileNotFoundError(name)
        stream = tempfile.TemporaryFile()  # noqa: SIM115  whoever asked closes it
        stream.write(self._objects[name])
        stream.seek(0)
        return stream

    def _keep(self, name: str, data: bytes) -> None:
        if name in self._objects:
            raise StoreError(f"{self.label(name)} exists already; nothing was overwritten")
        self._objects[name] = data

    def replace(self, growing: Growing, head: bytes, start: int, tail: bytes) -> None:
        body = growing.read(start, growing.position - start)
        self._keep(growing.name, head + body + tail)
        growing.remove()

    def seal(self, growing: Growing) -> None:
        self._keep(growing.name, growing.read(0, growing.position))
        growing.remove()

    def put(self, name: str, source: Path) -> None:
        self._keep(name, source.read_bytes())

    def take_back(self, name: str) -> None:
        del self._objects[name]


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setitem(SCHEMES, "vault", Vault)
    VAULTS.clear()
    with Store.create(tmp_path / "v", places=("vault://one",)) as made:
        yield made
    VAULTS.clear()


def _fill(store: Store, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(range(256)) * 8192)
    with Session(store) as session:
        for number in range(20):
            data = f"object {number}\n".encode() * number
            session.add([Source(f"{number}.txt", data, "text/plain")], contents=[f"urn:{number}"])
        session.add([Source("large", large, "application/octet-stream")], contents=["urn:large"])
    with Session(store) as session:
        session.add([Source("3.txt", b"changed", "text/plain")], contents=["urn:3"])


def _answers(store: Store) -> list[object]:
    answers: list[object] = []
    for found in store.catalogue.records(kind="object"):
        facts = found.identifier, found.date, found.sha256, found.pdi, found.size, found.length
        answers.append((facts, store.document(found)))
        for stream in store.object(found).streams:
            with store.open_stream(stream.identifier) as opened:
                answers.append((stream, opened.read()))
    return answers


def test_a_store_works_on_another_kind_of_place(vault: Store, tmp_path: Path) -> None:
    _fill(vault, tmp_path)
    before = _answers(vault)
    assert len(before) == 44
    assert not list(vault.folder.rglob("*.xml")) + list(vault.folder.rglob("*.warc"))
    assert vault.read(vault.find("urn:3", 1)) != vault.read(vault.find("urn:3"))
    vault.extract(vault.find("urn:large"), tmp_path / "out")
    assert (tmp_path / "out" / "large").read_bytes() == (tmp_path / "large").read_bytes()
    assert verify(vault).problems == []
    vault.close()
    for path in [*vault.folder.glob("catalogue.db*"), *vault.folder.rglob("*.index")]:
        path.unlink()
    shutil.rmtree(vault.folder / "names")
    with Store(vault.folder) as again:
        assert sorted(map(repr, _answers(again))) == sorted(map(repr, before))
        assert len(list(vault.folder.rglob("*.index"))) == len(again.catalogue.files())
        rebuilt = reindex(again)
        assert rebuilt is not None
        assert verify(again).problems == []


def test_a_changed_byte_in_another_kind_of_place_is_found(vault: Store, tmp_path: Path) -> None:
    _fill(vault, tmp_path)
    objects = VAULTS["vault://one"]
    name = next(name for name in objects if b"object 7" in objects[name])
    objects[name] = objects[name].replace(b"object 7", b"object 8", 1)
    assert verify(vault).problems


def test_files_move_between_kinds_of_places(vault: Store, store: Store, tmp_path: Path) -> None:
    _fill(vault, tmp_path)
    export_store(vault, tmp_path / "all")
    assert import_files(store, [tmp_path / "all"]).records
    assert import_files(store, [tmp_path / "all"]).files == 0
    assert verify(store).problems == []
    with Store.create(tmp_path / "v2", places=("vault://two",)) as second:
        export_selection(store, tmp_path / "some", store.versions("urn:3"))
        assert import_files(second, [tmp_path / "some"]).records == 2
        assert import_files(second, [tmp_path / "some"]).files == 0
        assert len(second.versions("urn:3")) == 2


def test_what_a_dead_writer_left_is_sealed_into_another_kind_of_place(
    vault: Store, tmp_path: Path
) -> None:
    session = Session(vault)
    session.add([Source("x", b"kept", "text/plain")], contents=["urn:kept"])
    session.commit()
    session.add([Source("y", b"lost", "text/plain")], contents=["urn:lost"])
    session._arcs.flush()
    session._journal.close()  # as if the process had ended here
    session._arcs.close()
    session._hold.close()
    with Store(vault.folder) as again:
        assert again.extract(again.find("urn:kept"), tmp_path / "o")[0].read_bytes() == b"kept"
        assert not again.versions("urn:lost")
        assert not again.places[0].growing()
        assert len(again.places[0].names()) == 2
        assert verify(again).problems == []


@pytest.mark.parametrize("form", ["warc", "warc.gz"])
@pytest.mark.parametrize("place", ["files", "vault://three"])
def test_an_archive_in_parts_is_queried_in_place(
    form: str, place: str, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCHEMES, "vault", Vault)
    VAULTS.clear()
    path = tmp_path / "shop.siard"
    archive(f"sqlite:///{shop}", path, options=ArchiveOptions(split=900))
    assert (tmp_path / "shop.siard_part003").exists()
    submission = submit_file(path)
    assert [source.path for source in submission.sources][:2] == [
        "shop.siard_part001", "shop.siard_part002",
    ]  # fmt: skip
    assert ("tables", "2") in submission.facts
    # Small files begin anew often: the parts lie in several of them.
    with Store.create(tmp_path / "s", format=form, places=(place,), arc_limit=2000) as store:
        with Session(store) as session:
            session.add(submission.sources, contents=["urn:shop"])
        assert len(store.catalogue.files("arc")) > 1
        stored = pickle.loads(pickle.dumps(store.siard("urn:shop")))
        assert stored.size == sum(part.stat().st_size for part in tmp_path.glob("*_part*"))
        with open_siard(stored) as inside, open_siard(path) as outside:
            assert inside.describe() == outside.describe()
            for schema, table in outside.describe().tables():
                rows = [b"".join(each.rows_xml(schema, table)) for each in (inside, outside)]
                assert rows[0] == rows[1]
        with open_archives({"shop": stored}) as opened:
            (batch,) = opened.execute("SELECT count(*) AS items FROM item").batches
        assert batch["items"].to_pylist() == [4]
    VAULTS.clear()


def test_no_other_module_opens_files_of_a_place() -> None:
    """Places are asked for by name: nobody else joins a path to their folder."""
    folder = Path(muniment.repository.__file__).parent
    for path in folder.glob("*.py"):
        if path.name == "storage.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                assert node.attr != "root", f"{path.name}, line {node.lineno}"
                assert node.attr != "_path", f"{path.name}, line {node.lineno}"
