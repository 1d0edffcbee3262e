"""HTTP/1.1 on a connection: h11, with an end to the patience for slow clients.

Who takes too long for a request line and headers, or does not read an answer on, loses the
connection; who comes when there are too many gets 503. What could be read in two ways is refused:
a proxy in front of us might read it in the other one (request smuggling).
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import h11

from muniment.web.doors.sending import SendingProtocol

__all__ = ["PatientProtocol", "patient"]

_MOST = 2000  # connections
_LINGER = 1.0  # seconds
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\r\ntoo many connections\n"
)
_SENTENCES = {
    400: b"this is not a request of HTTP/1.1",
    408: b"the request took too long",
    431: b"the headers are too long",
}
_CLIENTS = ("Invalid HTTP request", "Unsupported upgrade", "No supported WebSocket")


class _Quiet(logging.Filter):
    """What clients do wrong is answered, not logged: anybody could fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith(_CLIENTS)


_QUIET = _Quiet()


class PatientProtocol(SendingProtocol):
    """A connection to a client that may be slow, broken or hostile."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._since = 0.0  # when the waiting for a request began, 0 while there is none
        self._clock: asyncio.TimerHandle | None = None  # one for all requests of the connection
        self._stall: asyncio.TimerHandle | None = None  # runs while the client does not read
        self._over = False  # all has been said; what still comes is not read
        self.logger.addFilter(_QUIET)  # which it then has once

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _MOST:
            transport.write(_BUSY)
            transport.close()
        else:
            self._watch()
            self._look_at_the_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._stop_stalling()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._over or self.transport.is_closing():
            return
        super().data_received(data)
        self._watch()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Finish an answer for who says no more, if what they said was whole."""
        if self._over or self.cycle is None or self.cycle.response_complete:
            return None
        self.cycle.keep_alive = False
        if self.conn.their_state is h11.SEND_BODY:
            self.send_400_response("the request ended before its end")
        return not self.transport.is_closing()

    def shutdown(self) -> None:
        """Begin to end, whatever state the conversation is in."""
        with suppress(h11.LocalProtocolError):
            super().shutdown()

    def on_response_complete(self) -> None:
        """Turn to the next request, if there is one already; the clock runs until there is."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._watch()
        self.flow.resume_reading()
        if self.conn.our_state is h11.DONE and self.conn.their_state is h11.DONE:
            self.conn.start_next_cycle()
            self.handle_events()
            self._watch()

    def _watch(self) -> None:
        """Let the clock run while no request is being answered, however bytes trickle in."""
        if self._over or not (self.cycle is None or self.cycle.response_complete):
            self._since = 0.0
        elif not self._since:
            self._since = self.loop.time()

    def _look_at_the_clock(self) -> None:
        """End what has waited too long; between requests, who says nothing has less time."""
        idle = min(self.timeout_keep_alive, self.patience)
        limit = self.patience if self._begun() else idle
        left = self._since + limit - self.loop.time() if self._since else idle
        if left > 0:
            self._clock = self.loop.call_later(min(left, idle), self._look_at_the_clock)
        elif not self.transport.is_closing():
            self._too_late()

    def _begun(self) -> bool:
        """Whether this connection awaits the rest of a request, or its first one."""
        return self.cycle is None or bool(self.conn.trailing_data[0])

    def _too_late(self) -> None:
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self._refuse(408)
        else:
            self.transport.close()

    # Answers to what is no request

    def handle_events(self) -> None:
        """Answer whole requests; of others, at most the first thing that is wrong is told."""
        try:
            super().handle_events()
        except h11.LocalProtocolError:  # the answer was under way when the request went wrong
            self._drop()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read; an answer that has begun is broken off."""
        if self.cycle is not None and not self.cycle.response_complete:
            begun = self.cycle.response_started
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if begun:
                self._drop()
                return
        error = sys.exception()
        hint = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        self._refuse(hint if hint in _SENTENCES else 400)

    def _refuse(self, status: int) -> None:
        """Say what is wrong, and close; a moment later, since a reset would unsay it."""
        self._over = True
        self.loop.call_later(_LINGER, self.transport.close)
        data = _SENTENCES[status] + b"\n"
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(data)).encode()),
            (b"connection", b"close"),
        ]
        with suppress(h11.LocalProtocolError):
            reason = HTTPStatus(status).phrase.encode()
            response = h11.Response(status_code=status, headers=headers, reason=reason)
            for event in (response, h11.Data(data=data), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.transport.can_write_eof():
            with suppress(OSError):  # the client may be gone already
                self.transport.write_eof()

    def _drop(self) -> None:
        self.transport.abort()

    # Clients that do not read

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self._stall or self.loop.call_later(self.patience, self._drop)

    def resume_writing(self) -> None:
        self._stop_stalling()
        super().resume_writing()

    def _stop_stalling(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None


def patient(seconds: float) -> type[PatientProtocol]:
    """Return the protocol with another patience."""
    return type("Patient", (PatientProtocol,), {"patience": seconds})
