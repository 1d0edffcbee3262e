"""Many who want one thing at the same moment: one of them does it for all.

Each asker writes what it wants into a slot of a shared file. One leads: it takes all that is there,
does it at one stroke with one sync of the disk, and writes the answers beside. Meanwhile the first
who comes becomes the next leader, and waits for this one to end; all others sleep until the round
of that one is over, and wake once, with their answers.

Locks on single octets of the file say who owns a slot, who leads, who is next, and how long a round
lasts. They belong to the open file and go with it, so a process that is killed leaves nothing
behind but perhaps a request, whose answer nobody waits for. The file is no record: deleted, it is
made anew.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from itertools import compress
from operator import ne
from pathlib import Path

__all__ = ["Queue"]

SLOTS = 256
_SLOT = 256  # octets of a request
_ANSWER = 64
_ROUND = struct.Struct("<Q")  # the number of the round, at the start of the file
_NUMBERS = 1 << 64
_REQUEST = struct.Struct("<QHI")  # number, length and checksum of what is asked
_REPLY = struct.Struct("<QB?I")  # number, length, if it was done, and checksum of the answer
_REQUESTS, _ANSWERS = 4096, 4096 + SLOTS * _SLOT
_SIZE = _ANSWERS + SLOTS * _ANSWER
_LONGEST = _SLOT - _REQUEST.size
_ASKED = struct.Struct("<" + f"Q{_SLOT - 8}x" * SLOTS)  # the numbers of all requests
_ANSWERED = struct.Struct("<" + f"Q{_ANSWER - 8}x" * SLOTS)
# Octets that are locked lie behind the content: one per slot, one to lead, one to lead next, and
# one per round, which its leader holds from the moment on at which it is the next.
_OWNERS, _LEADER, _NEXT, _ROUNDS = 1 << 29, 1 << 30, (1 << 30) + 1, 1 << 31
_TURNS = 1 << 30  # rounds until octets are used again
_MOMENT = 0.0002  # seconds
_FLOCK = struct.Struct("hhqqi4x")  # of Linux; elsewhere there is no queue

Work = Callable[[Sequence[bytes]], Sequence[bytes | None]]


class Queue:
    """The queue at a path. Threads may share one; each that asks at the same time has a slot."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[_Slot] = []
        self._process = os.getpid()

    def ask(self, request: bytes, work: Work) -> bytes | None:
        """Return the answer, or None if this request has to be dealt with in another way.

        ``work`` is called with all requests at hand if it falls to this asker to lead.
        """
        if len(request) > _LONGEST or not hasattr(fcntl, "F_OFD_SETLKW"):
            return None
        if os.getpid() != self._process:
            self.close()  # after a fork: the slots are the parent's
            self._process = os.getpid()
        slot = self._idle.pop() if self._idle else _Slot.claim(self._path)
        if slot is None:
            return None
        try:
            answer = slot.ask(request, work)
        except BaseException:
            slot.close()
            raise
        self._idle.append(slot)
        return answer

    def close(self) -> None:
        """Give the slots up."""
        while self._idle:
            self._idle.pop().close()


class _Slot:
    """A place in the queue with an open file of its own, which holds its locks."""

    def __init__(self, file: int, number: int) -> None:
        self._file, self._number = file, number
        self._request_at = _REQUESTS + number * _SLOT
        self._answer_at = _ANSWERS + number * _ANSWER
        self._asked = _number(file, self._request_at)  # those of earlier owners do not come again

    @classmethod
    def claim(cls, path: Path) -> _Slot | None:
        """Return a free slot, or None if there is none or the system has no such locks."""
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return None
        try:
            if os.fstat(file).st_size < _SIZE:
                os.posix_fallocate(file, 0, _SIZE)
            start = os.getpid() % SLOTS  # a guess at one that nobody has
            for number in (*range(start, SLOTS), *range(start)):
                if _lock(file, _OWNERS + number, fcntl.F_WRLCK, wait=False):
                    return cls(file, number)
        except OSError:
            pass
        os.close(file)
        return None

    def close(self) -> None:
        os.close(self._file)

    def ask(self, request: bytes, work: Work) -> bytes | None:
        self._asked = (self._asked + 1) % _NUMBERS
        head = _REQUEST.pack(self._asked, len(request), zlib.crc32(request))
        os.pwrite(self._file, head + request, self._request_at)
        slept_in = -1
        while True:
            if _lock(self._file, _NEXT, fcntl.F_WRLCK, wait=False):
                self._lead(work)
            else:
                slept_in = self._sleep(slept_in)
            done, answer = self._answer()
            if done:
                return answer

    def _answer(self) -> tuple[bool, bytes | None]:
        data = os.pread(self._file, _ANSWER, self._answer_at).ljust(_ANSWER, b"\0")
        asked, length, done, checksum = _REPLY.unpack_from(data)
        answer = data[_REPLY.size : _REPLY.size + length]
        if asked != self._asked or zlib.crc32(answer) != checksum:
            return False, None
        return True, answer if done else None

    def _sleep(self, before: int) -> int:
        """Return when the round of the next leader is over, with its number.

        That one takes requests only after it made room for another to be next. It has not yet, or
        did so a moment ago: it finds the request of this asker, who saw that there was a next.
        """
        number = _number(self._file, 0)
        if number == before:
            time.sleep(_MOMENT)  # there is a next leader, whose round has no number yet
            return before
        octet = _ROUNDS + number % _TURNS
        _lock(self._file, octet, fcntl.F_RDLCK)
        _lock(self._file, octet, fcntl.F_UNLCK)
        return number

    def _lead(self, work: Work) -> None:
        """Wait for the present round to end, and do the work for everybody who asks."""
        file = self._file
        number = (_number(file, 0) + 1) % _NUMBERS
        try:
            _lock(file, _ROUNDS + number % _TURNS, fcntl.F_WRLCK)
            os.pwrite(file, _ROUND.pack(number), 0)
            _lock(file, _LEADER, fcntl.F_WRLCK)
            _lock(file, _NEXT, fcntl.F_UNLCK)
            self._serve(work)
        finally:
            _lock(file, _LEADER, fcntl.F_UNLCK, length=0)  # this and all behind it

    def _serve(self, work: Work) -> None:
        data = os.pread(self._file, _SIZE, 0).ljust(_SIZE, b"\0")
        waiting = _waiting(data)
        if not waiting:
            return  # the leader before has done it
        answers = work([request for _, _, request in waiting])
        # Nobody but leaders writes answers, so those between are what they were: one write for all.
        start = _ANSWERS + waiting[0][0] * _ANSWER
        lines = bytearray(data[start : _ANSWERS + (waiting[-1][0] + 1) * _ANSWER])
        for (number, asked, _), answer in zip(waiting, answers, strict=True):
            text = answer or b""
            line = _REPLY.pack(asked, len(text), answer is not None, zlib.crc32(text)) + text
            at = _ANSWERS + number * _ANSWER - start
            lines[at : at + len(line)] = line
        os.pwrite(self._file, lines, start)


def _number(file: int, offset: int) -> int:
    data = os.pread(file, _ROUND.size, offset)
    return int.from_bytes(data, "little")


def _waiting(data: bytes) -> list[tuple[int, int, bytes]]:
    """Return slot, number and content of each request that has no answer yet."""
    asked, answered = _ASKED.unpack_from(data, _REQUESTS), _ANSWERED.unpack_from(data, _ANSWERS)
    found = []
    for slot in compress(range(SLOTS), map(ne, asked, answered)):
        at = _REQUESTS + slot * _SLOT
        number, length, checksum = _REQUEST.unpack_from(data, at)
        request = data[at + _REQUEST.size : at + _REQUEST.size + length]
        if zlib.crc32(request) == checksum:  # otherwise it is being written
            found.append((slot, number, request))
    return found


def _lock(file: int, octet: int, kind: int, wait: bool = True, length: int = 1) -> bool:
    """Lock or unlock an octet (or all from it on, with length 0); return whether it is so now."""
    command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
    try:
        fcntl.fcntl(file, command, _FLOCK.pack(kind, os.SEEK_SET, octet, length, 0))
    except OSError as error:
        if not wait and error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True
