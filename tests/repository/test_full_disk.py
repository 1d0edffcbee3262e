"""A disk that is really full: what was acknowledged stays, and the store goes on afterwards.

As root a small file system is mounted; others get a limit to the size of files, which stops
writers in the same places with another word for it.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muniment.repository import Session, Source, Store
from muniment.repository.verify import verify

DISK = 3 << 20  # bytes of the fixture `disk`


def content(name: str) -> bytes:
    return f"{name}\n".encode() * 700


def leave(disk: Path, space: int) -> Path:
    """Fill a disk up to so many bytes."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(max(shutil.disk_usage(disk).free - space, 0)))
    return ballast


def fill(store: Store, acknowledged: list[tuple[str, str, str]]) -> None:
    with Session(store) as session:
        for number in range(1000):
            name = f"urn:full:{number}"
            session.add([Source("x", content(name), "text/plain")], contents=[name])
            if number % 7 == 0:
                session.commit()
            acknowledged += [(a.package, a.pdi, a.contents[0]) for a in session.acknowledged]
            session.acknowledged = []


def check(store: Store, acknowledged: list[tuple[str, str, str]], names: bool = True) -> None:
    for package, pdi, name in acknowledged:
        found = store.find(name)
        assert (found.identifier, found.pdi) == (package, pdi)
        assert not names or store.names.resolve(pdi).status == "bound"
        (stream,) = store.object(found).streams
        with store.open_stream(stream.identifier) as opened:
            assert opened.read() == content(name)


@pytest.mark.parametrize("space", [2_500_000, 1_500_000, 900_000, 600_000, 400_000, 300_000])
def test_a_full_disk_loses_nothing_that_was_acknowledged(disk: Path, space: int) -> None:
    folder = disk / "store"
    with Store.create(folder) as store, Session(store) as session:
        session.add([Source("x", b"first", "text/plain")], contents=["urn:first"])
    ballast = leave(disk, space)
    acknowledged: list[tuple[str, str, str]] = []
    with pytest.raises(OSError, match="No space"), Store(folder) as store:
        fill(store, acknowledged)
    with Store(folder) as store:  # it is full, and everything can be read
        check(store, acknowledged, names=False)
    ballast.unlink()
    if space > 2_000_000:
        subprocess.run(["mount", "-o", f"remount,size={2 * DISK}", str(disk)], check=True)
    with Store(folder) as store:
        check(store, acknowledged)
        with Session(store) as session:
            session.add([Source("x", b"last", "text/plain")], contents=["urn:last"])
        assert not any(place.growing() for place in store.places)
        assert verify(store).good


@pytest.mark.parametrize(("room", "kept"), [(DISK, "nothing"), (24 << 20, "1024 objects")])
def test_the_command_says_that_the_disk_is_full_and_how_much_is_safe(
    disk: Path, tmp_path: Path, room: int, kept: str
) -> None:
    subprocess.run(["mount", "-o", f"remount,size={room}", str(disk)], check=True)
    files = tmp_path / "files"
    files.mkdir()
    for number in range(1500):
        text = content(str(number)) if number < 1200 else bytes(200_000)
        (files / f"{number:04}.txt").write_bytes(text)
    command = [sys.executable, "-m", "muniment", "store"]
    subprocess.run([*command, "init", str(disk / "store")], check=True, capture_output=True)
    done = subprocess.run(
        [*command, "add", str(disk / "store"), str(files), "--each"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "the disk is full; free some space" in done.stderr
    assert f"in the store of this batch: {kept}\n" in done.stderr
    assert len(done.stdout.splitlines()) == int(kept.replace("nothing", "0").split()[0])
    with Store(disk / "store") as store:
        for line in done.stdout.splitlines():
            assert store.find(line.split()[0])


def test_files_that_may_not_grow_lose_nothing_either(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Store.create(folder) as store, Session(store) as session:
        session.add([Source("x", b"first", "text/plain")], contents=["urn:first"])
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
            acknowledged: list[tuple[str, str, str]] = []
            try:
                with Store(folder) as store:
                    fill(store, acknowledged)
            except OSError:
                code = 0
            os.write(writing, "".join(f"{' '.join(each)}\n" for each in acknowledged).encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as stream:
        lines = stream.read().splitlines()
    assert os.waitpid(child, 0)[1] == 0 and lines
    with Store(folder) as store:
        check(store, [tuple(line.split()) for line in lines])  # type: ignore[misc]
        assert verify(store).good
