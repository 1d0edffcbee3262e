"""Many processes at one book, some of them killed: no name twice, nothing lost, nothing torn."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from muniment.errors import NameRefused
from muniment.identifiers import parse_pdi
from muniment.names import Names

SERIES = "db.example.ch"

# A writer prints each name only after it is durable, and waits for nobody.
WRITER = """
import hashlib, sys
from pathlib import Path
from muniment.names import Names
names = Names.open(Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    pdi = names.mint("db.example.ch", format="text")[0]
    print(f"minted {pdi}", flush=True)
    names.bind(pdi, hashlib.sha256(str(pdi).encode()).digest(), 1, "here")
    print(f"bound {pdi}", flush=True)
"""


def start(folder: Path, times: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def make(folder: Path) -> Path:
    with Names.create(folder) as names:
        names.add_series(SERIES)
    return folder


def test_processes_that_mint_at_once_never_give_one_name_twice(tmp_path: Path) -> None:
    folder = make(tmp_path / "names")
    writers = [start(folder, 25) for _ in range(4)]
    minted = []
    for writer in writers:
        output, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
        minted += [line.split()[1] for line in output.splitlines() if line.startswith("minted")]
    serials = sorted(int(parse_pdi(name).unique_id) for name in minted)
    assert serials == list(range(1, 101))


def test_killed_writers_lose_nothing_that_they_were_told(tmp_path: Path) -> None:
    folder = make(tmp_path / "names")
    chance = random.Random(7)
    minted: list[str] = []
    bound: list[str] = []
    for _ in range(4):
        writers = [start(folder, 100_000) for _ in range(5)]
        first = [writer.stdout.readline() for writer in writers if writer.stdout]
        time.sleep(0.3 + chance.random() / 2)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        for begun, writer in zip(first, writers, strict=True):
            assert writer.stdout is not None and writer.stderr is not None
            output = writer.stdout.read()  # the rest of what readline read into its buffer, too
            writer.stdout.close()
            writer.stderr.close()
            writer.wait(timeout=60)
            for line in (begun + output).splitlines(keepends=True):
                if line.endswith("\n"):
                    kind, name = line.split()
                    (minted if kind == "minted" else bound).append(name)
    assert len(minted) >= 20  # each writer was told of one at least
    assert len(set(minted)) == len(minted)
    with Names.open(folder) as names:
        names.check()
        assert all(found is not None for found in names.look_up(map(parse_pdi, bound)))
        assert all(names.resolve(name).status in ("bound", "minted") for name in minted)
        before = max(int(parse_pdi(name).unique_id) for name in minted)
        assert names.mint(SERIES).first > before
    lines = (folder / "names.jsonl").read_text(encoding="ascii").splitlines()
    serials = [json.loads(line)["first"] for line in lines if '"kind":"mint"' in line]
    assert len(set(serials)) == len(serials)


def test_threads_and_forks_share_one_book(tmp_path: Path) -> None:
    folder = make(tmp_path / "names")
    with Names.open(folder) as names:
        given: list[int] = []

        def work() -> None:
            for _ in range(10):
                given.append(names.mint(SERIES).first)
                names.resolve(f"pdi://{SERIES}/2025/11/15/1")

        threads = [threading.Thread(target=work) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        child = os.fork()
        if child == 0:
            names.mint(SERIES)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert sorted(given) == list(range(1, 101))
        assert names.mint(SERIES).first == 102


def test_a_process_whose_clock_is_behind_gives_no_names_of_yesterday(tmp_path: Path) -> None:
    """Two machines may differ by a second at midnight: the one behind waits for the other's day."""
    folder = make(tmp_path / "names")
    before = datetime(2030, 5, 31, 23, 59, 59, tzinfo=UTC)
    with (
        Names.open(folder, lambda: before) as behind,
        Names.open(folder, lambda: before + timedelta(seconds=1)) as ahead,
    ):
        assert str(behind.mint(SERIES)[0]) == f"pdi://{SERIES}/2030/05/31/1.text.1"
        assert str(ahead.mint(SERIES)[0]) == f"pdi://{SERIES}/2030/06/01/1.text.1"
        for mint in (lambda: behind.mint(SERIES), lambda: behind.mint_name(SERIES, "x", "text")):
            with pytest.raises(NameRefused, match="until the clock has caught up") as caught:
                mint()
            assert (caught.value.status, caught.value.retry_after) == (503, 1)
        assert str(ahead.mint(SERIES)[0]) == f"pdi://{SERIES}/2030/06/01/2.text.1"
