"""Timing: commands as processes of their own, with the memory of all their descendants."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

__all__ = [
    "Command",
    "Failed",
    "Memory",
    "Timing",
    "best_of",
    "memory_of",
    "muniment",
    "rounds",
    "run",
    "shell",
    "watched",
]

_INTERVAL = 0.1  # seconds between two looks at the memory
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Command:
    """Something to run; what it ``makes`` is removed before each run."""

    name: str
    arguments: Sequence[str]
    makes: Path | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """What one run took; CPU seconds and memory are those of the whole process tree."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    made_bytes: int = 0


class Failed(Exception):
    """A command did not succeed; the message is the last line that it wrote."""


def muniment(name: str, *arguments: str, makes: Path | None = None) -> Command:
    """Return a call of the real command line."""
    start = "from muniment.cli.main import main; main()"
    return Command(name, [sys.executable, "-c", start, *arguments], makes)


def shell(name: str, line: str, makes: Path) -> Command:
    """Return a pipeline, any part of which may fail it."""
    return Command(name, ["bash", "-o", "pipefail", "-c", line], makes)


def rounds(commands: Sequence[Command], count: int) -> dict[str, Timing]:
    """Run the commands one after the other, ``count`` times over; return the best of each."""
    best: dict[str, Timing] = {}
    for _ in range(count):
        for command in commands:
            timing = run(command)
            if command.name not in best or timing.seconds < best[command.name].seconds:
                best[command.name] = timing
    return best


def run(command: Command) -> Timing:
    """Run a command to its end."""
    print(f"  {command.name} …", end="", file=sys.stderr, flush=True)
    if command.makes is not None:
        command.makes.unlink(missing_ok=True)
    os.sync()  # nobody's measured syncs wait for what was written before
    timing = _timed(command)
    peak = f"{timing.peak_bytes / 1e6:.0f} MB"
    print(f" {timing.seconds:.2f} s, {timing.cpu_seconds:.2f} s CPU, {peak}", file=sys.stderr)
    return timing


def best_of(count: int, work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of so many calls."""
    seconds = []
    for _ in range(count):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _timed(command: Command) -> Timing:
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        with _started(command, output) as process, watched(process.pid) as memory:
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise Failed(f"{command.name}: {_last_line(output)}")
    made = command.makes.stat().st_size if command.makes else 0
    cpu = usage.ru_utime + usage.ru_stime
    return Timing(command.name, seconds, cpu, memory.peak, made)


@contextmanager
def _started(command: Command, output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command in a session of its own, of which nothing is left at the end."""
    process = subprocess.Popen(
        command.arguments, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.returncode is None:  # interrupted: the workers must not go on alone
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _last_line(stream: IO[bytes]) -> str:
    stream.seek(0)
    lines = stream.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "failed silently")


@dataclass
class Memory:
    """The most that a process tree had so far."""

    peak: int = 0
    done: threading.Event = field(default_factory=threading.Event)


@contextmanager
def watched(root: int) -> Iterator[Memory]:
    """Look at the memory of a process tree again and again; the peak is known afterwards."""
    memory = Memory()
    watcher = threading.Thread(target=_watch, args=(root, memory), daemon=True)
    watcher.start()
    try:
        yield memory
    finally:
        memory.done.set()
        watcher.join()


def _watch(root: int, memory: Memory) -> None:
    while not memory.done.wait(_INTERVAL):
        memory.peak = max(memory.peak, sum(map(_proportional_size, _tree(root))))


def memory_of(process: int) -> int:
    """Return the memory of a process and all its descendants at this moment."""
    return sum(map(_proportional_size, _tree(process)))


def _tree(root: int) -> Iterable[int]:
    """The process and all its descendants."""
    children = defaultdict(list)
    for folder in _PROC.glob("[0-9]*"):
        try:
            # The name in parentheses may hold anything; state and parent follow it.
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue  # it has ended
        children[int(parent)].append(int(folder.name))
    found = [root]
    for process in found:
        found += children[process]
    return found


def _proportional_size(process: int) -> int:
    """Bytes of memory, where pages shared by n processes count as an nth."""
    try:
        lines = (_PROC / str(process) / "smaps_rollup").read_text().split("\n")
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
