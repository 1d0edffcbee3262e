"""Tokens: what they are for, until when, and that their secret is nowhere."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.errors import IdentifierError, NotFound, UsageError
from muniment.names import Names
from muniment.repository import Store, keep_names
from muniment.repository.tokens import check_token, create_token, list_tokens, revoke_token

SERIES = "archive.example.ch"


def test_a_token_is_what_was_printed_and_nothing_else(store: Store) -> None:
    made, text = create_token(store.names, "Land registry", ["store"], "me", 30)
    assert check_token(store.names, text) == made
    id_, secret = text.split("_", 2)[1:]
    for other in ("", "x", text[:-1], text + "x", f"muniment_{id_}_{'A' * 43}", text.upper(),
                  f"muniment_000000000000_{secret}", f" {text}", f"{text}\n"):  # fmt: skip
        assert check_token(store.names, other) is None, other


def test_a_token_of_another_store_is_refused(store: Store, tmp_path: Path) -> None:
    with Store.create(tmp_path / "other") as other:
        _, text = create_token(other.names, "a", ["store"], "me", None)
        assert check_token(other.names, text) is not None
    assert check_token(store.names, text) is None


def test_the_secret_is_in_no_file(store: Store) -> None:
    _, text = create_token(store.names, "Land registry", ["store"], "me", None)
    keep_names(store)
    secret = text.split("_", 2)[2].encode()
    for path in store.folder.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes(), path


def test_scopes(store: Store) -> None:
    one, _ = create_token(store.names, "a", [f"series:{SERIES}"], "me", None)
    assert one.may(f"series:{SERIES}")
    assert not any(one.may(each) for each in ("series:b.ch", "store", "staff", "registry", ""))
    all_, _ = create_token(store.names, "b", ["store"], "me", None)
    assert all(all_.may(each) for each in ("store", "staff", f"series:{SERIES}", "series:b.ch"))
    assert not any(all_.may(each) for each in ("registry", "describe"))
    for wrong in ("", "all", "series:", "series:NAME", "series:other.example.ch", "Store"):
        with pytest.raises((UsageError, NotFound, IdentifierError)):
            create_token(store.names, "c", [wrong], "me", None)
    with pytest.raises(UsageError):
        create_token(store.names, " ", ["store"], "me", None)


def test_a_revoked_token_is_refused_by_everybody_at_once(store: Store) -> None:
    made, text = create_token(store.names, "Land registry", ["store"], "me", None)
    with Store(store.folder) as other:
        assert check_token(other.names, text) is not None
        revoke_token(store.names, made.id, "me", "lost")
        assert check_token(other.names, text) is None
        found = list_tokens(other.names)[0]
        assert (found.state(found.revoked), found.reason) == ("revoked", "lost")
    assert revoke_token(store.names, made.id, "me", "again").reason == "lost"
    with pytest.raises(NotFound):
        revoke_token(store.names, "nobody", "me")


def test_a_token_ends_with_its_last_day(store: Store) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    with Names.open(store.folder / "names", clock=lambda: moment) as names:
        _, text = create_token(names, "Reading room", ["staff"], "me", 10)
        moment += timedelta(days=10, seconds=-1)
        assert check_token(names, text) is not None
        moment += timedelta(seconds=1)
        assert check_token(names, text) is None


def test_tokens_and_their_end_come_back_from_the_tapes(store: Store) -> None:
    kept, good = create_token(store.names, "a", ["staff"], "me", None)
    ended, bad = create_token(store.names, "b", ["staff"], "me", None)
    revoke_token(store.names, ended.id, "me")
    keep_names(store)
    store.close()
    shutil.rmtree(store.folder / "names")
    with Store(store.folder) as again:
        assert check_token(again.names, good) == kept
        assert check_token(again.names, bad) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(text=st.text() | st.from_regex(r"muniment_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", fullmatch=True))
def test_no_text_passes_for_a_token(store: Store, text: str) -> None:
    if not list_tokens(store.names):
        create_token(store.names, "a", ["staff"], "me", None)
    assert check_token(store.names, text) is None
