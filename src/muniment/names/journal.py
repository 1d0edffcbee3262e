"""An append-only, hash-chained file of JSON lines that many processes write at once.

Each line ends with ``"hash"``: the SHA-256 over the hash of the line before and this line up to
there. So no line can be changed, taken out or put in without all later hashes changing.

Writers take turns: a lock on the journal orders them, and a small file of state beside it holds
where the journal ends and the last hash, so that nobody has to read the end again. Syncing is
shared: one writer syncs for all that appended before (group commit), under a lock of its own, while
others go on appending. A writer that is killed leaves at most a torn last line, which was never
acknowledged; the next writer removes it. The state is no record: deleted, it is made anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import struct
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from muniment.errors import FormatError
from muniment.files import settle

__all__ = ["FIRST", "Journal", "JournalError", "Mark", "State", "utc_now"]

_STATE = struct.Struct("<8s16s16sQQQ32s")  # magic, boot, generation, end, lines, epoch, hash
_SYNCED = struct.Struct("<16sQ")  # generation, end
_SYNCED_AT = 128
_MAGIC = b"names-1\n"
_TAIL = b',"hash":"'
_LINE_END = len(_TAIL) + 64 + 3  # ,"hash":"…"}\n
_CHUNK = 1 << 22


class JournalError(FormatError):
    """A journal is not what was written."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the journal: the octets and lines before it, and the hash of the last line."""

    offset: int
    lines: int
    digest: bytes


FIRST = Mark(0, 0, bytes(32))


@dataclass(frozen=True, slots=True)
class State:
    """Where the journal ends. The epoch grows when a rule changes, so that others forget theirs."""

    generation: bytes
    end: Mark
    epoch: int


def utc_now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


def _boot() -> bytes:
    """Which start of the machine this is: what was not synced before another one may be lost."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return uuid.UUID(text.strip()).bytes
    except (OSError, ValueError):
        return bytes(16)


class Journal:
    """The journal at a path. Safe for threads, processes and forks."""

    def __init__(self, path: Path, known: Callable[[], Mark] = lambda: FIRST) -> None:
        """Open a journal; ``known`` gives a place up to which it was read and found good before."""
        self.path = path
        self._state_path = path.with_suffix(".state")
        self._known = known
        self._process = 0
        self._open_files()

    @classmethod
    def create(cls, path: Path) -> None:
        """Make an empty journal that survives a power cut."""
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        partial.write_bytes(b"")
        settle(partial, path)

    def _open_files(self) -> None:
        self._process = os.getpid()
        self._appending, self._syncing = threading.RLock(), threading.Lock()
        self._held = 0
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._state = os.open(self._state_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with self.turn():
            pass  # the first turn recovers what a crash left behind

    def close(self) -> None:
        """Close the files; the locks go with them."""
        for descriptor in (self._file, self._state):
            os.close(descriptor)

    # Taking turns

    @contextmanager
    def turn(self) -> Iterator[State]:
        """Hold the journal against all other writers, and give its state."""
        if os.getpid() != self._process:
            self.close()
            self._open_files()  # after a fork: the parent's locks would be this process's, too
        with self._appending:
            if self._held == 0:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            self._held += 1
            try:
                yield self._settled()
            finally:
                self._held -= 1
                if self._held == 0:
                    fcntl.flock(self._file, fcntl.LOCK_UN)

    def state(self) -> State | None:
        """Return where the journal ends as far as others have published it, without a lock."""
        return self._read_state()

    def _read_state(self) -> State | None:
        data = os.pread(self._state, _STATE.size, 0)
        if len(data) < _STATE.size:
            return None
        magic, boot, generation, offset, lines, epoch, digest = _STATE.unpack(data)
        if magic != _MAGIC or boot != _BOOT:
            return None
        return State(generation, Mark(offset, lines, digest), epoch)

    def _write_state(self, state: State) -> None:
        end = state.end
        data = _STATE.pack(
            _MAGIC, _BOOT, state.generation, end.offset, end.lines, state.epoch, end.digest
        )
        os.pwrite(self._state, data, 0)

    def _settled(self) -> State:
        """Return the state, after removing what a killed writer or a power cut left torn."""
        state, size = self._read_state(), os.fstat(self._file).st_size
        if state is not None and size == state.end.offset:
            return state
        if state is None:
            state = State(os.urandom(16), self._trusted(size), 0)
        if size < state.end.offset:
            raise JournalError(
                f"{self.path} lacks the last {state.end.offset - size} octets that it had, and "
                "names would be given twice. Put the whole file back; to go on without them, "
                f"delete {self._state_path}"
            )
        end = state.end
        for mark, _ in self.records(end, size, torn=True):
            end = mark
        if end.offset < size:
            os.ftruncate(self._file, end.offset)
        os.fsync(self._file)
        settled = State(state.generation, end, state.epoch + 1)
        self._write_state(settled)
        return settled

    def _trusted(self, size: int) -> Mark:
        known = self._known()
        if 0 < known.offset <= size and self._hash_before(known.offset) == known.digest:
            return known
        return FIRST

    def _hash_before(self, offset: int) -> bytes | None:
        tail = os.pread(self._file, 67, offset - 67)
        try:
            return bytes.fromhex(tail[:64].decode("ascii")) if tail[64:] == b'"}\n' else None
        except ValueError:
            return None

    # Writing

    def append(self, state: State, records: Sequence[dict[str, Any]], rules: bool = False) -> State:
        """Write records during a turn; ``sync`` must follow before anybody is told of them."""
        digest, lines, parts = state.end.digest, state.end.lines, []
        for record in records:
            lines += 1
            body = _encode({"n": lines, **record})[:-1]
            digest = hashlib.sha256(digest + body).digest()
            parts.append(b'%b%b%b"}\n' % (body, _TAIL, digest.hex().encode()))
        data = b"".join(parts)
        self._write(data)
        end = Mark(state.end.offset + len(data), lines, digest)
        after = State(state.generation, end, state.epoch + rules)
        self._write_state(after)
        return after

    def _write(self, data: bytes) -> None:
        start = os.fstat(self._file).st_size
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            os.ftruncate(self._file, start)  # a full disk: nothing of it was acknowledged
            raise

    def sync(self, end: Mark) -> None:
        """Return when everything before ``end`` is on the disk; one sync serves many writers."""
        if self._synced() >= end.offset:
            return
        with self._syncing:
            if self._synced() >= end.offset:
                return
            fcntl.flock(self._state, fcntl.LOCK_EX)
            try:
                if self._synced() >= end.offset:
                    return
                state = self._read_state()
                os.fdatasync(self._file)
                if state is not None:
                    data = _SYNCED.pack(state.generation, state.end.offset)
                    os.pwrite(self._state, data, _SYNCED_AT)
            finally:
                fcntl.flock(self._state, fcntl.LOCK_UN)

    def _synced(self) -> int:
        data = os.pread(self._state, _SYNCED_AT + _SYNCED.size, 0)
        if len(data) < _SYNCED_AT + _SYNCED.size:
            return 0
        generation, offset = _SYNCED.unpack_from(data, _SYNCED_AT)
        return int(offset) if generation == data[24:40] else 0

    # Reading

    def records(self, start: Mark, until: int, torn: bool = False) -> Iterator[tuple[Mark, bytes]]:
        """Yield each line after a place with the place after it, and check the chain.

        A bad line raises JournalError; with ``torn`` it ends the reading, if it is the last.
        """
        offset, lines, digest = start.offset, start.lines, start.digest
        sha256 = hashlib.sha256
        for line in self._lines(offset, until):
            body = line[:-_LINE_END]
            digest = sha256(digest + body).digest()
            if line[-_LINE_END:] != b'%b%b"}\n' % (_TAIL, digest.hex().encode()):
                whole = line.endswith(b'"}\n') and line[-_LINE_END:].startswith(_TAIL)
                if torn and not whole and offset + len(line) >= until:
                    return
                raise JournalError(
                    f"{self.path}: line {lines + 1} is not what was written, or one before it is "
                    "missing; restore the file from a copy"
                )
            offset += len(line)
            lines += 1
            yield Mark(offset, lines, digest), body + b"}"

    def _lines(self, offset: int, until: int) -> Iterator[bytes]:
        rest = b""
        while chunk := os.pread(self._file, min(_CHUNK, until - offset), offset):
            offset += len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line + b"\n"
        if rest:
            yield rest


_BOOT = _boot()
_encode_text = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


def _encode(record: dict[str, Any]) -> bytes:
    return _encode_text(record).encode("ascii")
