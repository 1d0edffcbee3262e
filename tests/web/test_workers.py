"""Several processes at one door: they share the work, are replaced, and end together."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from muniment.repository import Session, Source, Store
from muniment.web.doors.board import Board


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("workers") / "store"
    with Store.create(made) as store, Session(store) as session:
        session.add([Source("a.txt", b"a", "text/plain")], contents=["urn:example:a"])
    return made


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "muniment", "serve", str(folder), "--port", "0", *options]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as server:
        try:
            assert server.stdout is not None
            match = re.search(r"http://\S+", server.stdout.readline())
            assert match
            yield match[0].rstrip("/"), server
        finally:
            if server.poll() is None:
                server.kill()


def children(process: int) -> set[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return {int(each) for each in text.split()}


def until(question: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not question():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_process_that_dies_is_replaced_and_all_end_together(folder: Path) -> None:
    with serving(folder, "--workers", "2") as (base, server):
        until(lambda: len(children(server.pid)) == 2)
        assert httpx2.get(f"{base}/healthz").text == "ok\n"
        time.sleep(2.2)  # a process that ends at once is not replaced
        first = children(server.pid)
        os.kill(min(first), signal.SIGKILL)
        until(lambda: len(children(server.pid)) == 2 and children(server.pid) != first)
        everyone = children(server.pid)
        server.terminate()
        _, errors = server.communicate(timeout=30)
        assert "stopped" in errors
        assert "Traceback" not in errors
        assert not any(Path(f"/proc/{process}").exists() for process in everyone)


def test_processes_end_when_the_one_that_started_them_is_killed(folder: Path) -> None:
    with serving(folder, "--workers", "2") as (_, server):
        until(lambda: len(children(server.pid)) == 2)
        everyone = children(server.pid)
        server.kill()
        server.wait()
        until(lambda: not any(Path(f"/proc/{process}").exists() for process in everyone))


def test_counts_are_those_of_all_processes(folder: Path) -> None:
    with serving(folder, "--workers", "3") as (base, server):
        for _ in range(30):
            assert httpx2.get(f"{base}/locate?id=urn:example:a").status_code == 200
        time.sleep(1)
        counted = 'muniment_requests_total{door="locate",method="GET",status="200"} 30\n'
        assert counted in httpx2.get(f"{base}/metrics").text
        server.terminate()
        server.wait(30)


def test_the_board_holds_what_each_has_said_last() -> None:
    board = Board(3)
    assert list(board.read()) == []
    board.take(1)
    board.write({"a": 1})
    board.take(2)
    board.write("x" * 70_000)  # too long for its place
    board.write([2])
    board.write([3])
    assert list(board.read()) == [{"a": 1}, [3]]
