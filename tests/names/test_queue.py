"""The queue in which one asker does the work of all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from muniment.names.queue import SLOTS, Queue

# Leads and never ends: those who ask meanwhile wait for it.
STUCK = """
import sys, time
from pathlib import Path
from muniment.names.queue import Queue
def work(requests):
    print("leading", flush=True)
    time.sleep(600)
Queue(Path(sys.argv[1])).ask(b"mine", work)
"""


def upper(requests: Sequence[bytes]) -> list[bytes | None]:
    return [request.upper() if request.isalpha() else None for request in requests]


def test_who_asks_alone_leads(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "queue")
    assert queue.ask(b"abc", upper) == b"ABC"
    assert queue.ask(b"", upper) is None
    assert queue.ask(b"12", upper) is None
    assert queue.ask(b"x" * 300, upper) is None  # longer than a slot
    queue.close()


def test_who_waits_is_served_with_all_others_at_once(tmp_path: Path) -> None:
    queue, rounds, answers = Queue(tmp_path / "queue"), [], {}

    def slowly(requests: Sequence[bytes]) -> list[bytes | None]:
        rounds.append(len(requests))
        time.sleep(0.3)
        return upper(requests)

    def ask(word: bytes) -> None:
        answers[word] = queue.ask(word, slowly)

    words = [bytes([97 + n]) * 3 for n in range(20)]
    threads = [threading.Thread(target=ask, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.close()
    assert answers == {word: word.upper() for word in words}
    assert sum(rounds) == 20 and len(rounds) <= 10


def test_the_work_of_a_killed_leader_is_done_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    command = [sys.executable, "-c", STUCK, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as leader:
        assert leader.stdout is not None and leader.stdout.readline() == b"leading\n"
        queue = Queue(path)
        got: list[bytes | None] = []
        seen: list[bytes] = []

        def work(requests: Sequence[bytes]) -> list[bytes | None]:
            seen.extend(requests)
            return upper(requests)

        asker = threading.Thread(target=lambda: got.append(queue.ask(b"abc", work)))
        asker.start()
        asker.join(0.3)
        assert asker.is_alive() and not seen
        os.kill(leader.pid, signal.SIGKILL)
        asker.join(30)
        queue.close()
    assert got == [b"ABC"] and sorted(seen) == [b"abc", b"mine"]


def test_a_leader_that_fails_leaves_the_others_to_lead(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "queue")

    def fail(requests: Sequence[bytes]) -> list[bytes | None]:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        queue.ask(b"abc", fail)
    assert queue.ask(b"def", upper) == b"DEF"
    queue.close()


def test_without_a_free_slot_everybody_takes_a_turn_of_their_own(tmp_path: Path) -> None:
    queues = [Queue(tmp_path / "queue") for _ in range(SLOTS + 1)]
    answers = [queue.ask(b"abc", upper) for queue in queues]
    assert answers == [b"ABC"] * SLOTS + [None]
    queues[0].close()
    assert queues[-1].ask(b"abc", upper) == b"ABC"
    for queue in queues:
        queue.close()


def test_garbage_in_the_file_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    path.write_bytes(os.urandom(200_000))
    queue = Queue(path)
    assert queue.ask(b"abc", upper) == b"ABC"
    path.write_bytes(b"")  # the open file is the same, and empty now
    assert queue.ask(b"abc", upper) == b"ABC"
    queue.close()
