"""Giving new names (draft 2.1-2.4, 3.6.1).

Serials count from 1 each day at Greenwich and are never given twice. If the clock says an earlier
day than the last name's, nothing is minted until it has caught up.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from muniment.errors import IdentifierError, NameRefused, UsageError
from muniment.identifiers import Pdi, Profile, parse_pdi
from muniment.identifiers.foreign import encapsulate
from muniment.identifiers.formats import CHARSETS, media_type, token_for
from muniment.names.heads import Head
from muniment.names.index import Index, index_id
from muniment.names.journal import State
from muniment.names.values import Block

if TYPE_CHECKING:
    from muniment.names.book import Names

__all__ = ["Wish", "mint", "mint_name", "settle_token"]

_MOST = 10_000_000  # names in one block
_WISHES = 1000  # that are remembered
_GIVEN = struct.Struct("<IQ")  # the day and the first serial

Wish = tuple[tuple[bytes, int], str, bytes]  # the rules it was allowed by, token, request


def mint(names: Names, series: str, count: int, format: str, by: str) -> Block:
    """Give a block of serials."""
    if not 1 <= count <= _MOST:
        raise UsageError(f"between 1 and {_MOST:,} names can be minted at once, not {count}")
    return _mint_with_others(names, series, count, format, by) or _mint_alone(
        names, series, count, format, by
    )


def _mint_alone(names: Names, series: str, count: int, format: str, by: str) -> Block:
    """Give a block of serials in a turn of its own, which may change the rules."""
    with names.turn() as state:
        check_series(names, state, series, by)
        state, token = _token(names, state, format)
        block, record = _block(names, state, series, count, token, by)
        after = names.append(state, [record])
    names.journal.sync(after.end)
    return block


def _block(
    names: Names, state: State, series: str, count: int, token: str, by: str
) -> tuple[Block, dict[str, Any]]:
    """Move the head of a series on; return the block and the record that says so."""
    head = _head(names, state, series, names.clock())
    first = head.next
    if head.named:
        first = _free(names.current(state), series, head, count)
    names.heads.write(series, state.generation, Head(head.day, first + count, head.named))
    record = {"series": series, "day": head.day, "first": first, "count": count}
    block = Block(series, head.day, first, count, token)
    return block, {"kind": "mint", **record, "format": token, "by": by}


def _mint_with_others(names: Names, series: str, count: int, format: str, by: str) -> Block | None:
    """Give a block in one commit with all who mint now; None if it needs a turn of its own."""
    state = names.journal.state()
    if state is None:
        return None
    wish = _wish(names, state, series, count, format, by)
    if wish is None:
        return None
    token, request = wish
    answer = names.queue.ask(request, lambda requests: _mint_for_all(names, requests))
    if answer is None:
        return None
    day, first = _GIVEN.unpack(answer)
    return Block(series, day, first, count, token)


def _wish(
    names: Names, state: State, series: str, count: int, format: str, by: str
) -> tuple[str, bytes] | None:
    """Return token and request of an allowed wish, worked out once while the rules stay."""
    rules, wanted = (state.generation, state.epoch), (series, count, format, by)
    known = names.wishes.get(wanted)
    if known is not None and known[0] == rules:
        return known[1:]
    check_series(names, state, series, by)
    token = _known_token(names, state, format)
    if token is None:
        return None
    if len(names.wishes) >= _WISHES:
        names.wishes.clear()
    request = json.dumps([f"{rules[0].hex()}.{rules[1]}", series, token, by, count]).encode()
    names.wishes[wanted] = rules, token, request
    return token, request


def _mint_for_all(names: Names, requests: Sequence[bytes]) -> list[bytes | None]:
    """Give to all who ask, those who ask for the same kind of names out of one block."""
    wishes: dict[tuple[str, str, str, str], list[tuple[int, int]]] = {}
    for place, request in enumerate(requests):
        *kind, count = json.loads(request)
        wishes.setdefault(tuple(kind), []).append((place, count))
    answers: list[bytes | None] = [None] * len(requests)
    with names.turn() as state:
        records = []
        present = f"{state.generation.hex()}.{state.epoch}"
        for (rules, series, token, by), wanted in wishes.items():
            total = sum(count for _, count in wanted)
            if rules != present or total > _MOST:
                continue  # the rules that they read are not those of today
            try:
                block, record = _block(names, state, series, total, token, by)
            except NameRefused:
                continue  # each is told so in its own turn
            records.append(record)
            first = block.first
            for place, count in wanted:
                answers[place] = _GIVEN.pack(block.day, first)
                first += count
        after = names.append(state, records) if records else state
    names.journal.sync(after.end)
    return answers


def mint_name(
    names: Names,
    series: str,
    unique_id: str,
    format: str,
    foreign: tuple[str, str] | None,
    by: str,
) -> Pdi:
    """Give a name that is not a serial."""
    value = None
    if foreign is not None:
        unique_id, value = encapsulate(*foreign)
    with names.turn() as state:
        check_series(names, state, series, by)
        state, token = _token(names, state, format)
        now = names.clock()
        head = _head(names, state, series, now)
        pdi = _mnemonic(series, head.day, unique_id, token)
        _refuse_taken(names.current(state), pdi, head)
        names.heads.write(series, state.generation, Head(head.day, head.next, True))
        record = {"series": series, "day": head.day, "id": pdi.unique_id, "format": token, "by": by}
        if foreign is not None:
            record["foreign"] = {"kind": foreign[0], "value": value}
        after = names.append(state, [{"kind": "name", **record}])
    names.journal.sync(after.end)
    return pdi


def _mnemonic(series: str, day: int, unique_id: str, token: str) -> Pdi:
    text = f"{day:08d}"
    name = f"pdi://{series}/{text[:4]}/{text[4:6]}/{text[6:]}/{unique_id}.{token}.1"
    return parse_pdi(name, Profile.MINT)


def check_series(names: Names, state: State, series: str, by: str) -> None:
    """Refuse a series in which names cannot be given by this agent (MS15, MS16)."""
    rules = names.rules(state)
    if series not in rules.series:
        names.series(series)  # says so
    found = rules.series[series]
    if found.state != "open":
        raise NameRefused(
            f"the series {series} is {found.state}: no new names are given in it", 405
        )
    if by and found.steward and by != found.steward and by not in found.mandates:
        raise NameRefused(
            f"names in {series} are given by {found.steward}; {by} has no mandate for it", 403
        )


def settle_token(names: Names, format: str) -> str:
    """Return the token for a token or a media type, written down if it is new."""
    with names.turn() as state:
        after, token = _token(names, state, format)
    names.journal.sync(after.end)
    return token


def _token(names: Names, state: State, format: str) -> tuple[State, str]:
    """Return the token for a token or a media type; a new one is written down."""
    wanted = format.lower()
    token = _known_token(names, state, wanted)
    if token is not None:
        return state, token
    token = token_for(wanted, names.rules(state).tokens)
    if token is None:
        raise IdentifierError("E_FORMAT", f"{format!r} is not a media type")
    record = {"kind": "token", "subject": token, "media": wanted.partition(";")[0].strip()}
    return names.append(state, [record]), token


def _known_token(names: Names, state: State, format: str) -> str | None:
    """Return the token for a token or a media type, or None if it would be a new one."""
    tokens = names.rules(state).tokens
    wanted = format.lower()
    if "/" not in wanted:
        if media_type(wanted, tokens) is None:
            raise IdentifierError(
                "E_FORMAT",
                f"{format!r} is not a known format; name its media type, such as text/html",
            )
        return wanted
    token = token_for(wanted, tokens)
    known = token is not None and (token in tokens or token in CHARSETS or "+" in token)
    return token if known else None


def _head(names: Names, state: State, series: str, now: datetime) -> Head:
    """Return the head of today, or refuse if the clock was set back over midnight (MS06)."""
    today = now.year * 10_000 + now.month * 100 + now.day
    head = names.heads.read(series, state.generation)
    if head is None:
        head = _head_from_index(names.current(state), series)
    if head.day == today:
        return head
    if today < head.day:
        wait = 86_400 - (now.hour * 3600 + now.minute * 60 + now.second)
        raise NameRefused(
            f"the clock says {today}, but names of {head.day} were given already in {series}; "
            "nothing is minted until the clock has caught up",
            503,
            wait,
        )
    return Head(today)


def _head_from_index(index: Index, series: str) -> Head:
    number = index.series(series)
    row = index.db.execute(
        "SELECT max(day) FROM (SELECT max(day) AS day FROM block WHERE series=?1 "
        "UNION ALL SELECT max(day) FROM name WHERE series=?1)",
        (number,),
    ).fetchone()
    day = row[0] if row and row[0] else 0
    sql = "SELECT max(last) FROM block WHERE series=? AND day=?"
    last = index.db.execute(sql, (number, day)).fetchone()[0] or 0
    sql = "SELECT count(*) FROM name WHERE series=? AND day=?"
    named = index.db.execute(sql, (number, day)).fetchone()[0] > 0
    return Head(day, last + 1, named)


def _free(index: Index, series: str, head: Head, count: int) -> int:
    """Return the first serial of a run that no mnemonic id of today lies in (MS08)."""
    first = head.next
    sql = (
        "SELECT max(id) FROM name WHERE series=? AND day=? AND typeof(id)='integer' "
        "AND id BETWEEN ? AND ?"
    )
    while True:
        values = index.series(series), head.day, first, first + count - 1
        taken = index.db.execute(sql, values).fetchone()[0]
        if taken is None:
            return first
        first = taken + 1


def _refuse_taken(index: Index, pdi: Pdi, head: Head) -> None:
    number, key = index.series(pdi.series), index_id(pdi.unique_id)
    if isinstance(key, int) and key < head.next:
        raise NameRefused(f"{pdi.generic} is taken by a serial number")
    row = index.db.execute(
        "SELECT id FROM name WHERE series=? AND day=? AND (id=? OR folded=?)",
        (number, head.day, key, pdi.unique_id.lower()),
    ).fetchone()
    if row is not None:
        same = "exists already" if row[0] == key else f"is too much like {row[0]!r} of the same day"
        raise NameRefused(f"{pdi.generic} {same}; choose another id")
