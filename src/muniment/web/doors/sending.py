"""HTTP/1.1 on one connection: uvicorn's protocol on h11, with files sent by the kernel.

h11 keeps the request target as it came. The extension ``http.response.zerocopysend`` of ASGI lets
the application name a part of a file instead of reading it; h11 counts the octets, the kernel
copies them from the page cache to the socket.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from muniment.web.doors.octets import ZERO_COPY

__all__ = ["SendingProtocol"]

_PIECE, _LARGEST_PIECE = 1 << 18, 1 << 21  # large ones are for clients that read quickly
_QUICK = 0.1  # seconds
_PARTS = 3  # headers, body, end
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
                if message["type"] == ZERO_COPY:
                    if head:
                        await send(head)
                    await self._send_file(message["file"], message["offset"], message["count"])
                    await send({"type": "http.response.body"})
                elif head:
                    whole: Any = _Together(self.transport)
                    cycle.transport, first = whole, head
                    head = {}
                    try:
                        await send(first)
                        await send(message)
                    finally:
                        cycle.transport = self.transport
                        whole.flush()
                else:
                    await send(message)

            await app(scope, receive, sending)

        self.app: Any = with_files

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


class _Together:
    """Writes the headers, the body and the end of a message in one go: one segment, one wake-up."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Keep the headers and the body; with the end, before anything else is done, send all."""
        self._parts.append(data)
        if len(self._parts) == _PARTS:
            self.flush()

    def flush(self) -> None:
        """Send what is kept."""
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def is_closing(self) -> bool:
        """Whether the connection is closed."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Send what is kept, and close the connection."""
        self.flush()
        self._transport.close()


class _Octets:
    """So many octets, for h11, which only counts them."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count
