"""Rows straight from the socket: one text per row, cut out of whole network reads.

The driver's own way makes Python objects of every cell and takes most of the time; a query that
lets the server join each row to one text leaves a length and a slice per row.

A connection serves one query at a time. When another one is needed while rows are still coming,
the rest of them is parked in a temporary file: so one connection, and therefore one snapshot, is
enough for everything.
"""

from __future__ import annotations

import pickle
import struct
import tempfile
from collections.abc import Iterator
from typing import Any

from pymysql import err
from pymysql.constants import COMMAND, CR

__all__ = ["RowStream", "TooLong", "cells", "send_local"]

_READ = 1 << 18
_GROUP = 14 << 10  # bytes; what is made of them should stay in the processor's cache
_SPOOL = 1 << 25
_LONGEST = 0xFFFFFF  # of one packet; longer payloads go on in the next
_PACKET = 1 << 17
_HEADER = struct.Struct("<I")


class TooLong(Exception):
    """The server could not join a row: it is longer than max_allowed_packet."""


class RowStream:
    """The rows of a running query, as lists of payloads.

    ``joined`` rows have one column, and come as its value; others as they were sent.
    """

    def __init__(self, connection: Any, sql: str, *, joined: bool) -> None:
        self._socket, self._joined = connection._sock, joined
        connection._execute_command(COMMAND.COM_QUERY, sql)
        self._read_head(connection)
        # What the driver's reader took off the socket beyond the head.
        ahead = len(connection._rfile.peek())
        self._first: bytes = connection._rfile.read(ahead)
        self.over = False
        self._coming = self._network()
        self._parked: Any = None

    def __iter__(self) -> Iterator[list[bytes]]:
        return self

    def __next__(self) -> list[bytes]:
        if self._parked is None:
            return next(self._coming)
        try:
            group: list[bytes] = pickle.load(self._parked)
        except EOFError:
            self._parked.close()
            raise StopIteration from None
        return group

    def park(self) -> None:
        """Take all rows off the connection; they are still there to be read."""
        if self.over or self._parked is not None:
            return
        spool = tempfile.SpooledTemporaryFile(_SPOOL)  # noqa: SIM115 - closed by the last read
        for group in self._coming:
            pickle.dump(group, spool, pickle.HIGHEST_PROTOCOL)
        spool.seek(0)
        self._parked = spool

    def drop(self) -> None:
        """Take all rows off the connection; nobody wants them any more."""
        for _ in self._coming:
            pass
        if self._parked is not None:
            self._parked.close()

    def _read_head(self, connection: Any) -> None:
        """Read the head of the answer through the driver, which knows what errors look like."""
        columns: int = connection._read_packet().read_length_encoded_integer()
        for _ in range(columns + 1):
            connection._read_packet()

    def _network(self) -> Iterator[list[bytes]]:
        unpack = _HEADER.unpack_from
        data, size, at = self._first, len(self._first), 0
        lines: list[bytes] = []
        append, joined = lines.append, self._joined
        while True:
            while size - at < 4 or size - at - 4 < (unpack(data, at)[0] & _LONGEST):
                if lines:
                    yield from _groups(lines)
                    lines.clear()
                data = data[at:] + self._receive(
                    unpack(data, at)[0] & _LONGEST if size - at >= 4 else 0
                )
                size, at = len(data), 0
            length = unpack(data, at)[0] & _LONGEST
            start, end = at + 4, at + 4 + length
            at = end
            first = data[start] if length else 0
            if length == _LONGEST:
                payload, data = self._long(data, start)
                size, at = len(data), 0
                append(_value(payload) if joined else payload)
            elif first == 0xFE and length < 9:
                self.over = True
                break
            elif first == 0xFF:
                self.over = True
                raise _error(data[start:end])
            elif not joined:
                append(data[start:end])
            elif first < 0xFB:
                append(data[start + 1 : end])
            elif first == 0xFC:
                append(data[start + 3 : end])
            else:
                append(_value(data[start:end]))
        if lines:
            yield from _groups(lines)

    def _long(self, data: bytes, start: int) -> tuple[bytes, bytes]:
        """Read a payload of several packets; return it and what follows."""
        parts = [data[start : start + _LONGEST]]
        data = data[start + _LONGEST :]
        while True:
            while len(data) < 4:
                data += self._receive(0)
            length = _HEADER.unpack_from(data)[0] & _LONGEST
            while len(data) < 4 + length:
                data += self._receive(4 + length - len(data))
            parts.append(data[4 : 4 + length])
            data = data[4 + length :]
            if length < _LONGEST:
                return b"".join(parts), data

    def _receive(self, wanted: int) -> bytes:
        chunk: bytes = self._socket.recv(max(_READ, min(wanted, 1 << 24)))
        if not chunk:
            self.over = True
            raise err.OperationalError(CR.CR_SERVER_LOST, "the server closed the connection")
        return chunk


def _groups(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Cut many rows into groups that are small enough for the processor's cache."""
    size = sum(map(len, lines))
    count = max(1, len(lines) * _GROUP // max(size, 1))
    for start in range(0, len(lines), count):
        yield lines[start : start + count]


def _value(payload: bytes) -> bytes:
    first = payload[0]
    if first == 0xFB:
        raise TooLong
    return payload[{0xFC: 3, 0xFD: 4, 0xFE: 9}.get(first, 1) :]


def cells(payload: bytes) -> list[bytes | None]:
    """Return the cells of a row as it was sent; NULL as None."""
    found: list[bytes | None] = []
    at, size = 0, len(payload)
    while at < size:
        length = payload[at]
        at += 1
        if length == 0xFB:
            found.append(None)
            continue
        if length > 0xFB:
            width = {0xFC: 2, 0xFD: 3, 0xFE: 8}[length]
            length = int.from_bytes(payload[at : at + width], "little")
            at += width
        found.append(payload[at : at + length])
        at += length
    return found


def _error(payload: bytes) -> err.MySQLError:
    code = int.from_bytes(payload[1:3], "little")
    text = payload[3:]
    text = text[6:] if text.startswith(b"#") else text
    return err.OperationalError(code, text.decode("utf-8", "replace"))


def send_local(connection: Any, sql: str, chunks: Iterator[bytes]) -> tuple[int, int]:
    """Run a LOAD DATA LOCAL whose file is ``chunks``; return the rows stored and the warnings."""
    connection._execute_command(COMMAND.COM_QUERY, sql)
    connection._read_packet()  # the server asks for the file; a refusal raises
    try:
        for chunk in chunks:
            for start in range(0, len(chunk), _PACKET):
                connection.write_packet(chunk[start : start + _PACKET])
    except BaseException:
        # The server would store what it has; without the end of the file it rolls back.
        connection._force_close()
        raise
    connection.write_packet(b"")
    packet = connection._read_packet()
    packet.advance(1)
    stored: int = packet.read_length_encoded_integer()
    packet.read_length_encoded_integer()
    _, warnings = packet.read_struct("<HH")
    return stored, warnings
