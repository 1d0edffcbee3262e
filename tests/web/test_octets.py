"""Ranges, conditions and negotiation, as functions."""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from email import message_from_bytes
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import MunimentError
from muniment.identifiers import parse_pdi
from muniment.web.doors.answers import Refusal, best, safe_text
from muniment.web.doors.octets import deliver, of_bytes, ranges_of
from muniment.web.doors.pdi import spelled

SIZES = st.integers(0, 300)


async def body(answer: object) -> bytes:
    if not hasattr(answer, "body_iterator"):
        return bytes(answer.body)  # type: ignore[attr-defined]
    return b"".join([chunk async for chunk in answer.body_iterator])


@given(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=8), st.integers(1, 256))
def test_ranges_cover_what_was_asked_for_and_nothing_else(
    pairs: list[tuple[int, int]], size: int
) -> None:
    pairs = [(min(pair), max(pair)) for pair in pairs]
    wanted = {place for a, b in pairs for place in range(a, b + 1) if place < size}
    text = "bytes=" + ", ".join(f"{a}-{b}" for a, b in pairs)
    try:
        found = ranges_of(text, size)
    except Refusal as refusal:
        assert refusal.status == 416
        assert not wanted
        return
    assert found is not None
    assert {place for a, b in found for place in range(a, b)} == wanted
    assert all(one[1] < other[0] for one, other in pairwise(found))


@given(st.text(max_size=40) | st.from_regex(r"bytes=[0-9,\- ]*", fullmatch=True))
def test_any_range_header_has_an_answer(text: str) -> None:
    data = bytes(range(100))
    try:
        answer = deliver(of_bytes(data, "text/plain"), "GET", {"range": text})
    except Refusal as refusal:
        assert refusal.status == 416
        return
    assert answer.status_code in (200, 206)
    content = asyncio.run(body(answer))
    assert int(answer.headers["content-length"]) == len(content)
    if answer.status_code == 200:
        assert content == data


@given(
    st.binary(max_size=60)
    | st.from_regex(rb"/pdi/[a-z.]{1,9}\.ch/[0-9*]{4}/[0-9*]{2}/[0-9*]{2}/.{0,30}", fullmatch=True)
)
def test_any_target_is_a_name_or_refused(target: bytes) -> None:
    try:
        parse_pdi(spelled(target))
    except Refusal as refusal:
        assert refusal.status == 400
    except MunimentError:
        pass


@given(st.text(max_size=60))
def test_headers_have_one_line(text: str) -> None:
    made = safe_text(text)
    assert made.isascii()
    assert made.isprintable()
    assert " " not in made


@given(st.text(max_size=60))
def test_any_accept_header_is_read(accept: str) -> None:
    assert best(accept, ["text/html", "application/json"]) in (
        None,
        "text/html",
        "application/json",
    )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if-none-match": "*"}, 304),
        ({"if-none-match": 'W/"' + "ab" * 32 + '"'}, 304),
        ({"if-none-match": '"other"'}, 200),
        ({"if-modified-since": "Sun, 15 Nov 2026 12:00:00 GMT"}, 304),
        ({"if-modified-since": "Sat, 14 Nov 2026 12:00:00 GMT"}, 200),
        ({"if-modified-since": "nonsense"}, 200),
        ({"if-unmodified-since": "Sat, 14 Nov 2026 12:00:00 GMT"}, 412),
        ({"if-match": '"other"'}, 412),
        ({"if-match": 'W/"' + "ab" * 32 + '"'}, 412),
        ({"if-match": '"' + "ab" * 32 + '"'}, 200),
        ({"range": "bytes=0-1", "if-range": '"other"'}, 200),
        ({"range": "bytes=0-1", "if-range": '"' + "ab" * 32 + '"'}, 206),
    ],
)
def test_conditions(headers: dict[str, str], status: int) -> None:
    octets = of_bytes(b"hello", "text/plain", "ab" * 32, "2026-11-15T12:00:00Z")
    try:
        answered = deliver(octets, "GET", headers).status_code
    except Refusal as refusal:
        answered = refusal.status
    assert answered == status


@pytest.mark.parametrize("part", [None, "bytes=2-5"])
def test_who_wants_it_gets_the_digest_of_what_is_sent(part: str | None) -> None:
    data = b"0123456789"
    asked = {"want-content-digest": "sha-256=10"} | ({"range": part} if part else {})
    document = of_bytes(data, "text/plain", hashlib.sha256(data).hexdigest())
    answer = deliver(document, "GET", asked)
    sent = asyncio.run(body(answer))
    digest = b64encode(hashlib.sha256(sent).digest()).decode()
    assert answer.headers["content-digest"] == f"sha-256=:{digest}:"
    assert (answer.headers["repr-digest"] == answer.headers["content-digest"]) == (part is None)


def test_parts_begin_with_their_boundary() -> None:
    answer = deliver(of_bytes(b"0123456789", "text/plain"), "GET", {"range": "bytes=0-1,4-5"})
    kind = answer.headers["content-type"].encode()
    message = message_from_bytes(b"Content-Type: " + kind + b"\r\n\r\n" + asyncio.run(body(answer)))
    assert message.preamble in (None, "")
    parts = message.get_payload()
    assert [(part["Content-Range"], part.get_payload()) for part in parts] == [
        ("bytes 0-1/10", "01"), ("bytes 4-5/10", "45"),
    ]  # fmt: skip
