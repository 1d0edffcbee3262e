"""Bearer tokens: who may write over HTTP, or read what is not for everybody.

A token is ``muniment_ID_SECRET``. The book of names has its id, its holder, what it is for, until
when, and the SHA-256 of the secret; the secret itself is shown once. Nothing is taken out of the
book: a token that was revoked stays in it as such.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from muniment.errors import NotFound, UsageError
from muniment.identifiers import parse_series
from muniment.names import Names
from muniment.names.index import Index

__all__ = ["SCOPES", "Token", "check_token", "create_token", "list_tokens", "revoke_token"]

SCOPES = {
    "series:NAME": "give names in a series, and put documents into it",
    "store": "the same in all series, and read what is for staff",
    "registry": "act on the registry of namespaces, series and schemes",
    "describe": "write descriptions and assertions",
    "staff": "read what is for staff",
}
_FORM = re.compile(r"muniment_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_STAMP = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token; times are in UTC, an empty one is none."""

    id: str
    holder: str
    scopes: tuple[str, ...]
    created: str
    by: str
    expires: str
    digest: str
    revoked: str = ""
    reason: str = ""

    def may(self, scope: str) -> bool:
        """Whether the token is for something: ``series:NAME`` or another scope.

        >>> Token("1", "me", ("store",), "", "", "", "").may("series:db.example.ch")
        True
        """
        if scope in self.scopes:
            return True
        return "store" in self.scopes and (scope == "staff" or scope.startswith("series:"))

    def state(self, at: str) -> str:
        """Say whether the token is valid, expired or revoked at a time."""
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and self.expires <= at else "valid"

    def as_json(self, at: str) -> dict[str, Any]:
        """Return the form for programs, without anything secret."""
        return {
            "id": self.id,
            "holder": self.holder,
            "scopes": list(self.scopes),
            "state": self.state(at),
            "created": self.created,
            "by": self.by,
            "expires": self.expires or None,
            "revoked": self.revoked or None,
            "reason": self.reason or None,
        }


def create_token(
    names: Names, holder: str, scopes: Sequence[str], by: str, days: int | None
) -> tuple[Token, str]:
    """Make a token; the text returned is the only place where its secret stands."""
    if not holder.strip() or not scopes:
        raise UsageError("a token needs a holder and at least one scope")
    checked = tuple(dict.fromkeys(_checked(names, scope) for scope in scopes))
    id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    expires = ""
    if days is not None:
        expires = (names.clock() + timedelta(days=days)).strftime(_STAMP)
    record = {"subject": id_, "holder": holder, "scopes": list(checked), "expires": expires}
    names.write([{"kind": "key", **record, "sha256": _digest(secret), "by": by}])
    return names.derived(_read)[id_], f"muniment_{id_}_{secret}"


def _checked(names: Names, scope: str) -> str:
    kind, _, series = scope.partition(":")
    if kind == "series" and series:
        return f"series:{names.series(parse_series(series)).name}"
    if scope not in SCOPES or scope == "series:NAME":
        raise UsageError(f"{scope!r} is not a scope; there are {', '.join(SCOPES)}")
    return scope


def list_tokens(names: Names) -> list[Token]:
    """Return every token that was ever made, the oldest first."""
    return list(names.derived(_read).values())


def revoke_token(names: Names, id_: str, by: str, reason: str = "") -> Token:
    """End a token for ever."""
    known = names.derived(_read).get(id_)
    if known is None:
        raise NotFound(f"there is no token {id_}")
    if not known.revoked:
        record = {"kind": "key-revoked", "subject": id_, "reason": reason, "by": by}
        names.write([record])
    return names.derived(_read)[id_]


def check_token(names: Names, text: str) -> Token | None:
    """Return the token that a text is, if it is valid now; the time taken tells nothing."""
    match = _FORM.fullmatch(text)
    known = names.derived(_read).get(match[1]) if match else None
    digest = _digest(match[2] if match else "")
    same = hmac.compare_digest(digest, known.digest if known else _digest("nobody"))
    now = names.clock().strftime(_STAMP)
    return known if same and known is not None and known.state(now) == "valid" else None


def _digest(secret: str) -> str:
    # 256 random bits cannot be guessed: a slow hash, as for passwords, would protect nothing.
    return hashlib.sha256(secret.encode()).hexdigest()


def _read(index: Index) -> dict[str, Token]:
    tokens = {}
    for _, event in index.events("key"):
        tokens[event["subject"]] = Token(
            event["subject"], event["holder"], tuple(event["scopes"]), event["at"][:19] + "Z",
            event["by"], event["expires"], event["sha256"],
        )  # fmt: skip
    for _, event in index.events("key-revoked"):
        if event["subject"] in tokens:
            known = tokens[event["subject"]]
            at = known.revoked or event["at"][:19] + "Z"
            tokens[known.id] = replace(known, revoked=at, reason=event["reason"])
    return tokens
