"""Resumption tokens that hold all they need: nothing is kept for them, and none expires.

A token names the selection, the last record that its list may hold, and the place where the next
page starts. It is signed, so that a harvester can neither forge one nor bring one from elsewhere.
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime

from muniment.web.oai.records import Place
from muniment.web.oai.requests import Selection

__all__ = ["BadToken", "Token", "format_token", "parse_token"]

_SIGNATURE = 16  # bytes


class BadToken(ValueError):
    """A token that was not made here, or not for this list."""


@dataclass(frozen=True, slots=True)
class Token:
    """Where a list goes on."""

    verb: str
    selection: Selection
    last: int
    size: int
    cursor: int
    after: Place


def format_token(token: Token, secret: bytes) -> str:
    """Return the token as text for a URL."""
    chosen = token.selection
    fields = [
        token.verb, chosen.prefix, _seconds(chosen.since), _seconds(chosen.until), chosen.set_spec,
        token.last, token.size, token.cursor, _seconds(token.after.datestamp), token.after.number,
    ]  # fmt: skip
    text = json.dumps(fields, separators=(",", ":")).encode()
    return urlsafe_b64encode(_signature(text, secret) + text).rstrip(b"=").decode()


def parse_token(text: str, verb: str, secret: bytes) -> Token:
    """Return the token that ``format_token`` made, if it is of this repository and verb."""
    try:
        data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError as error:
        raise BadToken("it is not a resumption token of this repository") from error
    signature, content = data[:_SIGNATURE], data[_SIGNATURE:]
    if not hmac.compare_digest(signature, _signature(content, secret)):
        raise BadToken("it is not a resumption token of this repository")
    made_for, prefix, since, until, set_spec, last, size, cursor, stamp, number = json.loads(
        content
    )
    if made_for != verb:
        raise BadToken(f"the token continues a list of {made_for}, not of {verb}")
    selection = Selection(prefix, _time(since), _time(until), set_spec)
    place = Place(datetime.fromtimestamp(stamp, UTC), number)
    return Token(verb, selection, last, size, cursor, place)


def _signature(text: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, text, "sha256")[:_SIGNATURE]


def _seconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp())


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
