"""What stands in the headers of PUT is read or refused, whatever it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers

from muniment.errors import IdentifierError, MunimentError
from muniment.identifiers import parse_pdi
from muniment.web.doors import server, writing
from muniment.web.doors.answers import Refusal, refusal_of

PDI = parse_pdi("pdi://db.example.ch/2001/01/01/1.text.1")
VALUES = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=300)


def request(**headers: str) -> Any:
    raw = [(n.replace("_", "-").encode(), v.encode("latin-1")) for n, v in headers.items()]
    return SimpleNamespace(headers=Headers(raw=raw))


@settings(max_examples=200)
@given(VALUES)
@example("text/plain; charset=utf-8")
@example("text/plain;charset=\xff")
@example("a/b/c")
def test_media_types(text: str) -> None:
    for pdi in (None, PDI):
        try:
            media = writing._media(request(content_type=text), pdi)
        except Refusal as refusal:
            assert refusal.status == 415
        else:
            assert media.isascii()
            assert len(media) <= 200


@settings(max_examples=200)
@given(VALUES)
@example('attachment; filename="' + "ü" * 300 + '"')
@example("attachment; filename=..")
@example("attachment; filename*=UTF-8''%2e%2e%2f%00%0a")
@example("attachment; filename*=nonsense''%ff")
def test_file_names(text: str) -> None:
    name = writing._file_name(request(content_disposition=text), "application/x-siard")
    assert 0 < len(name.encode()) <= 255
    assert name not in (".", "..")
    assert not set(name) & set("/\\\0\r\n")
    assert name.endswith(".siard")


@settings(max_examples=200)
@given(VALUES)
@example('<pdi://db.example.ch/2001/01/01/1.html.1>; rel="alternate"')
@example("<pdi://db.example.ch/2001/01/01/1.html.1>; rel=alternate")
@example("<x>; rel=alternate")
@example('<pdi://db.example.ch/2001/01/01/2.html.1>; rel="x alternate y"')
def test_links_and_conditions(text: str) -> None:
    given_ = request(link=text, if_match=text, digest=text)
    try:
        writing._is_alternate(given_, PDI)
    except Refusal as refusal:
        assert refusal.status == 409
    except IdentifierError as error:
        assert refusal_of(error).status == 400
    writing._tags(given_, "if-match")
    try:
        writing._check_digest(given_, "00" * 32)
    except Refusal as refusal:
        assert refusal.status == 400


def test_a_full_disk_has_a_status() -> None:
    assert refusal_of(OSError(28, "No space left on device")).status == 507
    assert refusal_of(PermissionError(13, "Permission denied")).status == 503
    assert refusal_of(OSError(5, "Input/output error")).status == 500


def test_a_parser_that_loses_the_target_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server.check_parser()
    whole = server.configured

    def losing(app: Any) -> Any:
        async def lossy(scope: Any, receive: Any, send: Any) -> None:
            path = b"/" + scope["raw_path"].partition(b"://")[2].partition(b"/")[2]
            await app({**scope, "raw_path": path}, receive, send)

        return whole(lossy)

    monkeypatch.setattr(server, "configured", losing)
    with pytest.raises(MunimentError, match="does not keep the target"):
        server.check_parser()
