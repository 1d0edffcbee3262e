"""The commands that make tokens and decide who may read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muniment.repository import Session, Source, Store
from muniment.repository.tokens import check_token


@pytest.fixture
def archive(tmp_path: Path) -> str:
    with Store.create(tmp_path / "archive", series="db.example.ch") as store, Session(store) as new:
        new.add([Source("a.txt", b"a", "text/plain")], contents=["urn:example:a"])
    return str(tmp_path / "archive")


def test_a_token_is_made_listed_and_revoked(run, archive: str) -> None:
    made = run("token", "create", archive, "--holder", "Reading room", "--scope", "staff")
    assert made.exit_code == 0, made.output
    text = made.stdout.strip()
    assert text.startswith("muniment_")
    assert "Reading room: staff; until 20" in made.stderr
    with Store(Path(archive)) as store:
        assert check_token(store.names, text) is not None
    listed = json.loads(run("token", "list", archive, "--json").stdout)["tokens"]
    assert [(each["holder"], each["state"]) for each in listed] == [("Reading room", "valid")]
    assert text.split("_")[2] not in run("token", "list", archive).stdout
    id_ = listed[0]["id"]
    assert run("token", "revoke", archive, id_, "--reason", "lost").exit_code == 0
    assert "revoked" in run("token", "list", archive).stdout
    assert run("token", "revoke", archive, "unknown").exit_code == 1


def test_wrong_scopes_are_wrong_usage(run, archive: str) -> None:
    for scope in ("everything", "series:", "series:x"):
        made = run("token", "create", archive, "--holder", "a", "--scope", scope)
        assert made.exit_code == 2, scope
        assert "Traceback" not in made.output
    other = run("token", "create", archive, "--holder", "a", "--scope", "series:other.ch")
    assert other.exit_code == 1


def test_access_is_shown_and_decided(run, archive: str) -> None:
    assert run("store", "access", archive, "urn:example:a").stdout.startswith("open ")
    closing = ("store", "access", archive, "urn:example:a", "--level", "closed")
    assert run(*closing).exit_code == 2  # who, why?
    assert run(*closing, "--by", "me").exit_code == 2
    done = run(*closing, "--by", "me", "--reason", "personal data")
    assert done.exit_code == 0, done.output
    assert "personal data" in done.stdout
    shown = json.loads(run("store", "access", archive, "urn:example:a", "--json").stdout)
    assert shown["access"][0]["access"] == "closed"
    general = run("store", "access", archive, "--everything", "--level", "staff", "--by", "me")
    assert general.stdout.startswith("staff   *")
    assert run("store", "access", archive).exit_code == 2
    assert run("store", "access", archive, "urn:example:unknown").exit_code == 1
