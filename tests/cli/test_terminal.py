"""Nothing from an archive or a driver reaches the terminal as more than text."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.cli.terminal import cut, hide_passwords, safe


@given(st.text())
def test_safe_text_has_nothing_a_terminal_obeys(text: str) -> None:
    shown = safe(text)
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)
    shown.encode("utf-8")


@pytest.mark.parametrize("text", ["Eiche", "Πλάτανος", "银杏", "🌳", "שלום", "e\u0301", r"C:\new"])
def test_harmless_text_is_shown_as_it_is(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("exe.\u202egnp", r"exe.\u202egnp"),
        ("\ud800", r"\ud800"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_a_cut_value_keeps_its_length() -> None:
    assert cut("oak", 3) == "oak"
    assert len(cut("sycamore", 3)) == 3


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://clerk:tiger@host/db",
        "mysql://clerk:ti%67er@host:3306/db?ssl=true",
        "postgresql://:tiger@/db",
        "postgresql://clerk:tiger@lily@host/db",
    ],
)
def test_a_password_in_a_url_is_hidden(url: str) -> None:
    message = hide_passwords(
        f"cannot reach {url}; it said {urlsplit(url).password!r} is wrong", [url]
    )
    assert "tiger" not in message
    assert "ti%67er" not in message


def test_the_password_of_the_environment_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_PASSWORD", "leopard")
    assert "leopard" not in hide_passwords("authentication with leopard failed", [])


def test_a_url_without_password_stays() -> None:
    assert hide_passwords("sqlite:///shop.db", ["sqlite:///shop.db"]) == "sqlite:///shop.db"
