"""HTTP/1.1 on one connection: uvicorn's protocol on h11, with files sent by the kernel.

h11 keeps the request target as it came. The extension ``http.response.zerocopysend`` of ASGI lets
the application name a part of a file instead of reading it; h11 counts the octets, the kernel
copies them from the page cache to the socket.
"""

from __future__ import annotations

import asyncio
import os
import re
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from muniment.web.doors.octets import ZERO_COPY

__all__ = ["SendingProtocol"]

_PIECE, _LARGEST_PIECE = 1 << 18, 1 << 21  # large ones are for clients that read quickly
_QUICK = 0.1  # seconds
_COPIED = 1 << 16  # bytes up to which one piece is cheaper than several
_FRAMING = {b"content-length", b"transfer-encoding", b"connection"}
_LINES = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e\x80-\xff]*\r\n)*")
_END = h11.EndOfMessage()
_REASONS = {each.value: each.phrase.encode() for each in HTTPStatus}
_EXTENSIONS: dict[str, dict[str, Any]] = {ZERO_COPY: {}}


class SendingProtocol(H11Protocol):
    """A connection."""

    patience = 30.0  # seconds in which a client takes a piece

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        app: Any = self.app

        async def with_files(scope: Any, receive: Any, send: Any) -> None:
            scope["extensions"] = _EXTENSIONS
            cycle, head = self.cycle, None

            async def sending(message: Any) -> None:
                nonlocal head
                if message["type"] == "http.response.start" and head is None:
                    head = message  # it goes out with what follows it
                    return
                first, head = head, {}
                if first and self._send_whole(cycle, first, message):
                    return
                if first:
                    await send(first)
                if message["type"] == ZERO_COPY:
                    await self._send_file(message["file"], message["offset"], message["count"])
                    message = {"type": "http.response.body"}
                await send(message)

            await app(scope, receive, sending)

        self.app: Any = with_files

    def _send_whole(self, cycle: Any, head: Any, message: Any) -> bool:
        """Send an answer that is complete in one go: one segment, one wake-up of the client.

        h11 writes the status line and decides on the framing; all other headers, which it would
        look at one by one, are checked together. False if this is no such answer.
        """
        if message["type"] != "http.response.body" or message.get("more_body"):
            return False
        if cycle.disconnected or cycle.response_started or self.flow.write_paused:
            return False
        headers: list[tuple[bytes, bytes]] = [*cycle.default_headers, *head["headers"]]
        framing = [pair for pair in headers if pair[0] in _FRAMING]
        others = [pair for pair in headers if pair[0] not in _FRAMING]
        lines = b"".join([b"%b: %b\r\n" % pair for pair in others])
        if not _LINES.fullmatch(lines):
            return False  # h11 says what is wrong with it
        status, conn, empty = head["status"], self.conn, cycle.scope["method"] == "HEAD"
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        reason = _REASONS.get(status, b"")
        response = h11.Response(status_code=status, headers=framing, reason=reason)
        data = h11.Data(data=b"" if empty else message.get("body", b""))
        start = (conn.send(response) or b"")[:-2] + lines + b"\r\n"
        content, end = conn.send(data) or b"", conn.send(_END) or b""
        if len(content) < _COPIED:
            self.transport.write(start + content + end)
        else:
            self.transport.write(start)
            self.transport.write(memoryview(content))
            self.transport.write(end)
        cycle.message_event.set()
        if conn.our_state is h11.MUST_CLOSE or not cycle.keep_alive:
            conn.send(h11.ConnectionClosed())
            self.transport.close()
        cycle.on_response()
        return True

    async def _send_file(self, file: int, offset: int, count: int) -> None:
        if self.cycle.disconnected:
            return
        placeholder: Any = _Octets(count)
        self.conn.send_with_data_passthrough(h11.Data(data=placeholder))
        loop, piece = asyncio.get_running_loop(), _PIECE
        try:
            with os.fdopen(file, "rb", closefd=False) as source:
                while count:
                    began = loop.time()
                    async with asyncio.timeout(self.patience):
                        size = min(count, piece)
                        sent = await loop.sendfile(self.transport, source, offset, size)
                    if not sent:
                        raise OSError("the file ends before its end")
                    offset, count = offset + sent, count - sent
                    quick = loop.time() - began < _QUICK
                    piece = min(piece * 2, _LARGEST_PIECE) if quick else _PIECE
        except (OSError, RuntimeError, TimeoutError):  # the client is gone, or the file is damaged
            self.cycle.disconnected = True
            self.transport.abort()


class _Octets:
    """So many octets, for h11, which only counts them."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count
