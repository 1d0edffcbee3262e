"""kill -9 at any moment, torn ends, full disks, two writers: nothing acknowledged is ever lost."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from muniment.arc import FORMATS, read_arc_file
from muniment.repository import Session, Source, Store
from muniment.repository.exchange import import_files
from muniment.repository.storage import Growing
from muniment.repository.verify import verify
from muniment.tape.exact import read_exactly
from muniment.tape.write import TAPE_END, tape_head, tape_record

WRITER = Path(__file__).with_name("writer.py")


def content(name: str) -> bytes:
    _, _, batch, number = name.split(":")
    return f"{batch}-{number}\n".encode() * (1 + int(number) % 700)


def check(store: Store, acknowledged: list[tuple[str, str, str]]) -> None:
    """Every acknowledged object is there, whole, under its name; every file is well-formed."""
    for package, pdi, name in acknowledged:
        found = store.find(name)
        assert (found.identifier, found.pdi) == (package, pdi)
        (stream,) = store.object(found).streams
        with store.open_stream(stream.identifier) as opened:
            assert opened.read() == content(name)
    pdis = [found.pdi for found in store.catalogue.records(kind="object")]
    assert len(pdis) == len(set(pdis))
    for file in store.catalogue.files():
        assert file.sealed
        with store.path(file).open("rb") as stream:
            list(
                read_exactly(stream, file.name)
                if file.kind == "tape"
                else read_arc_file(stream, file.name)
            )


def lines(text: str) -> list[tuple[str, str, str]]:
    found = [tuple(line.split(" ")) for line in text.splitlines() if line.count(" ") == 2]
    return [each for each in found if each[2].startswith("urn:kill:")]  # type: ignore[misc]


def start(store: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(store), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_killed_writers_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Forked writers, killed after a random time, a few hundred times over."""
    folder = tmp_path / "store"
    Store.create(folder).close()
    chance = random.Random(7)
    acknowledged: list[tuple[str, str, str]] = []
    rounds = 200
    for round_ in range(rounds):
        wait = chance.choice([0, 0, 1, 3, 7])
        acknowledged += _killed(folder, f"r{round_}", wait, chance.uniform(0, 0.03))
        if round_ % 60 == 59:
            with Store(folder) as store:
                check(store, acknowledged)
    assert len(acknowledged) > rounds
    with Store(folder) as store:
        check(store, acknowledged)
        assert not any(place.growing() for place in store.places)
        assert verify(store).good
        store.catalogue.close()
    for path in [*folder.glob("catalogue.db*"), *folder.glob("files/*.index")]:
        path.unlink()
    with Store(folder) as store:
        check(store, acknowledged)


def _killed(folder: Path, name: str, wait: int, seconds: float) -> list[tuple[str, str, str]]:
    """Fork a writer, which needs no start-up; kill it some time after so many lines."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        code = 1
        try:
            os.close(reading)
            _write(folder, name, writing)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = "".join(stream.readline() for _ in range(wait))
        time.sleep(seconds)
        os.kill(child, 9)
        os.waitpid(child, 0)
        text += stream.read()
    return lines(text[: text.rfind("\n") + 1])


def _write(folder: Path, name: str, output: int) -> None:
    from muniment.repository import session as module

    module._GROUP = 3
    with Store(folder) as store, Session(store) as session:
        for number in range(100_000):
            key = f"urn:kill:{name}:{number}"
            session.add([Source("x.txt", content(key), "text/plain")], contents=[key])
            for added in session.acknowledged:
                os.write(output, f"{added.package} {added.pdi} {added.contents[0]}\n".encode())
            session.acknowledged = []


def test_killed_imports_are_finished_by_the_next(tmp_path: Path) -> None:
    tape, warc = tmp_path / "t.xml", tmp_path / "w.warc"
    records = [tape_record(f"urn:r:{n}", "2026-01-01", b"<r>%d</r>" % n) for n in range(60)]
    tape.write_bytes(b"".join([tape_head("urn:t", [], "2026-01-01"), *records, TAPE_END]))
    form = FORMATS["warc"]
    with warc.open("wb") as stream:
        stream.write(form.first("urn:w", "w.warc", "2026-01-01T00:00:00Z", {}))
        for n in range(60):
            digest = hashlib.sha256(b"x" * n).hexdigest()
            uri, date = f"urn:s:{n}", "2026-01-01T00:00:00Z"
            stream.write(form.header(str(n), uri, date, "text/plain", n, digest))
            stream.write(b"x" * n + form.end)
    chance = random.Random(7)
    for round_ in range(12):
        folder = tmp_path / f"store{round_}"
        Store.create(folder).close()
        child = os.fork()
        if child == 0:  # pragma: no cover
            try:
                with Store(folder) as store:
                    import_files(store, [tape, warc])
            finally:
                os._exit(0)
        time.sleep(chance.uniform(0, 0.15))
        os.kill(child, 9)
        os.waitpid(child, 0)
        with Store(folder) as store:
            import_files(store, [tape, warc])
            assert import_files(store, [tape, warc]).files == 0
            assert len(list(store.catalogue.records(kind="record"))) == 60
            assert verify(store).good


def test_writers_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    Store.create(folder).close()
    writers = [start(folder, name, 60) for name in ("a", "b", "c")]
    acknowledged = [
        each for writer in writers for each in lines(writer.communicate(timeout=120)[0])
    ]
    assert all(writer.returncode == 0 for writer in writers)
    assert len(acknowledged) == 180
    with Store(folder) as store:
        check(store, acknowledged)
        assert len(store.catalogue.files("tape")) == 3


@pytest.mark.parametrize("cut", [1, 7, 100, 700, 2500, 4000])
@pytest.mark.parametrize("which", [".xml", ".warc"])
def test_a_torn_end_is_cut_back_to_the_last_whole_record(
    tmp_path: Path, cut: int, which: str
) -> None:
    folder = tmp_path / "store"
    store = Store.create(folder)
    session = Session(store)
    for number in range(6):
        session.add(
            [Source("x", content(f"urn:kill:t:{number}"), "text/plain")],
            contents=[f"urn:kill:t:{number}"],
        )
        session.commit()
    added = [(each.package, each.pdi, each.contents[0]) for each in session.acknowledged]
    session._journal.close()  # as if the process had died
    session._arcs.close()
    session._hold.close()
    session._closed = True
    (path,) = (folder / "files" / "growing").glob(f"*{which}")
    if which == ".warc":  # beyond what was synced
        with path.open("ab") as stream:
            stream.write(
                b"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 99999\r\n\r\n" + b"x" * cut
            )
        lost = 0
    else:  # the tape was torn, as only a broken disk does to what was synced
        os.truncate(path, path.stat().st_size - cut)
        lost = 1 if cut < 2000 else 2
    store.close()
    for each in folder.glob("catalogue.db*"):
        each.unlink()
    with Store(folder) as again:
        kept = [each for each in added if again.catalogue.record(each[0]) is not None]
        assert kept == added[: len(kept)]
        assert len(added) - lost - 1 <= len(kept) <= len(added)
        check(again, kept)
        assert verify(again).good


def test_a_full_disk_stops_the_batch_and_keeps_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    write = Growing.write
    budget = [60_000]

    def limited(self: Any, data: bytes) -> None:
        budget[0] -= len(data)
        if budget[0] < 0:
            write(self, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        write(self, data)

    acknowledged: list[tuple[str, str, str]] = []
    with Store.create(folder) as store:
        monkeypatch.setattr(Growing, "write", limited)
        with pytest.raises(OSError, match="No space"), Session(store) as session:
            for number in range(1000):
                name = f"urn:kill:full:{number}"
                session.add([Source("x", content(name), "text/plain")], contents=[name])
                session.commit()
                acknowledged += [(a.package, a.pdi, a.contents[0]) for a in session.acknowledged]
                session.acknowledged = []
        monkeypatch.undo()
    assert acknowledged
    with Store(folder) as store:
        check(store, acknowledged)
        assert verify(store).good


def test_a_reader_sees_what_another_process_is_writing(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Store.create(folder) as store, Session(store) as session:
        session.add([Source("x", b"x", "text/plain")], contents=["urn:x"])
        session.commit()
        with Store(folder) as reader:
            found = reader.find("urn:x")
            assert reader.object(found).package == session.acknowledged[0].package
            session.close()
            again = reader.find("urn:x")
            assert reader.read(again) == store.read(again)
