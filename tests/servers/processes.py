"""What all private servers need: a folder, a port, a user of their own, and a sure end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = [
    "as_user",
    "find_program",
    "free_port",
    "named_folders",
    "run",
    "running",
    "server_folder",
]

_ROOM = 4 << 30  # bytes
_PATIENCE = 60  # seconds until a server has to answer


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def find_program(name: str, *folders: str) -> Path | None:
    """Return the newest program of that name in folders (with * in them) or on the path."""
    for folder in folders:
        parent, _, pattern = folder.partition("*")
        found = sorted(Path(parent).glob(f"*{pattern}/{name}")) if pattern else []
        if found:
            return found[-1]
        if (Path(folder) / name).exists():
            return Path(folder) / name
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


def named_folders(variable: str) -> tuple[str, ...]:
    """Return the folders that a variable names: those of another server than the installed one."""
    return tuple(filter(None, os.environ.get(variable, "").split(os.pathsep)))


def as_user(name: str) -> dict[str, Any]:
    """Return the arguments that let a child of root run as that user; servers refuse root."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(name)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _memory() -> str | None:
    """A folder in memory, where making and dropping databases is quick, if there is room."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < _ROOM:
        return None
    return str(memory)


@contextmanager
def server_folder(product: str, user: str) -> Iterator[Path]:
    """Make a folder that belongs to a server's user, and remove it afterwards.

    Its name is short: the path of a unix socket has room for about a hundred bytes.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"muniment-{product}-", dir=_memory()))
    try:
        folder.chmod(0o755)
        if os.geteuid() == 0:
            shutil.chown(folder, user, pwd.getpwnam(user).pw_gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(command: Sequence[str | Path], user: str, **options: Any) -> str:
    """Run a program as a user to its end, and return what it printed; it has to succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        **as_user(user),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr or done.stdout}")
    return done.stdout


@contextmanager
def running(
    command: Sequence[str | Path],
    user: str,
    log: Path,
    is_ready: Callable[[], bool],
    stop_signal: int = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server while the block runs; it begins once the server answers."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            **as_user(user),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the tests, which stop the server
        )
    try:
        _wait(process, log, is_ready)
        yield process
    finally:
        _stop(process, stop_signal)


def _wait(process: subprocess.Popen[bytes], log: Path, is_ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} did not start:\n{log.read_text()[-4000:]}")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes], stop_signal: int) -> None:
    if process.poll() is None:
        process.send_signal(stop_signal)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
