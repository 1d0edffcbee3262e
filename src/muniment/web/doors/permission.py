"""Permission at the doors: the token of a request, what it may do, and what it may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from muniment.repository import Store
from muniment.repository.access import Access, Decision, access_of
from muniment.repository.catalogue import Found
from muniment.repository.tokens import Token, check_token
from muniment.web.doors.answers import Refusal, refuse
from muniment.web.doors.desk import Desk

__all__ = [
    "ANYBODY", "Permission", "Reader", "caching", "need", "reader_of", "refuse_unreadable",
]  # fmt: skip

_REALM = 'Bearer realm="muniment"'


@dataclass(frozen=True, slots=True)
class Reader:
    """Who asks: somebody with a token, or anybody."""

    token: Token | None = None

    @property
    def staff(self) -> bool:
        """Whether they may read what is for staff."""
        return self.token is not None and self.token.may("staff")

    def sees(self, decision: Decision) -> bool:
        """Whether they may read what a decision is about."""
        return decision.readable(self.staff)

    def seen(self, store: Store, records: Sequence[Found]) -> list[Found]:
        """Return those of some records that they may read."""
        access: Access = access_of(store.names)
        if access.all_open:
            return list(records)
        return [found for found in records if self.sees(access.of_record(found))]


ANYBODY = Reader()


class Permission:
    """Reads the token of every request; one that is not valid is refused, whatever was asked."""

    def __init__(self, app: Any, desk: Desk) -> None:
        self._app, self._desk = app, desk

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            try:
                scope["reader"] = await self._reader(scope)
            except Refusal as refusal:
                await refuse(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _reader(self, scope: Any) -> Reader:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, text = given[0].decode("latin-1").partition(" ") if given else ("", "", "")
        if scheme.lower() != "bearer":
            return ANYBODY
        token = None
        if len(given) == 1:
            token = await self._desk.ask(lambda store: check_token(store.names, text.strip()))
        if token is None:
            raise Refusal(
                401,
                "this token is not valid: it is mistyped, has expired or was revoked",
                WWW_Authenticate=f'{_REALM}, error="invalid_token"',
            )
        return Reader(token)


def reader_of(request: Request) -> Reader:
    """Return who asks."""
    reader: Reader = request.scope.get("reader", ANYBODY)
    return reader


def need(request: Request, *scopes: str) -> Token:
    """Return the token of a request that may do one of several things, or refuse it."""
    token = reader_of(request).token
    if token is None:
        raise Refusal(401, "this needs a token; see: muniment token", WWW_Authenticate=_REALM)
    if not any(token.may(scope) for scope in scopes):
        raise Refusal(
            403,
            f"this token is not for that; it takes the scope {' or '.join(scopes)}",
            WWW_Authenticate=f'{_REALM}, error="insufficient_scope", scope="{scopes[0]}"',
        )
    return token


def refuse_unreadable(reader: Reader, decision: Decision, name: str) -> None:
    """Refuse what this reader may not read: a tombstone says what it is and why."""
    if reader.sees(decision):
        return
    because = f": {decision.reason}" if decision.reason else ""
    facts = {key: value for key, value in decision.as_json().items() if value}
    facts.pop("by", None)
    if decision.level == "staff":
        sentence = f"{name} is for staff{because}"
        status = 401 if reader.token is None else 403
        tail = "" if reader.token is None else ', error="insufficient_scope", scope="staff"'
        raise Refusal(status, sentence, facts, WWW_Authenticate=_REALM + tail)
    law = f" ({decision.law})" if decision.law else ""
    sentence = f"{name} is kept here, and closed since {decision.at[:10]}{because}{law}"
    raise Refusal(451 if decision.law else 403, sentence, facts)


def caching(decision: Decision, public: str) -> dict[str, str]:
    """Return how long an answer may be kept by others: not at all, if it is not for everybody."""
    return {"Cache-Control": public if decision.level == "open" else "private, no-store"}
