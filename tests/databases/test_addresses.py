"""URLs of databases: what they lead to, and what people are told when they lead nowhere."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

from muniment.databases import is_url, open_source, open_target, redact
from muniment.errors import DatabaseError, MissingDriver, UsageError


def test_a_missing_driver_names_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.startswith("muniment.databases.duckdb")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDriver, match=r"pip install 'muniment\[duckdb\]'"):
        open_target(f"duckdb:///{tmp_path / 'x.duckdb'}")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host:5432/db", "postgresql://me@host:5432/db"),
        ("mysql://me:p%40ss@host/db?ssl=1", "mysql://me@host/db?ssl=1"),
        ("sqlite:///shop.db", "sqlite:///shop.db"),
        ("duckdb:////data/a.duckdb", "duckdb:////data/a.duckdb"),
        ("no url at all", "no url at all"),
        ("sqlite:///quoi?.db", "sqlite:///quoi?.db"),
        ("sqlite://me:secret@host/x", "sqlite://me@host/x"),
        ("postgresql://h/d?Password=x&options=-c%20a&flag", "postgresql://h/d?options=-c%20a&flag"),
        ("postgresql://h/d?password=x", "postgresql://h/d"),
    ],
)
def test_passwords_are_never_shown(url: str, shown: str) -> None:
    assert redact(url) == shown


@pytest.mark.parametrize(
    "url", ["informix://h/d", "sqlite:shop.db", "shop.db", "nosuch://u:pw@h/d"]
)
def test_unknown_addresses_are_refused_without_the_password(url: str) -> None:
    with pytest.raises(UsageError, match="not a database URL") as caught:
        open_source(url)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "yes"), [("sqlite:///a", True), ("C:/a.siard", False), ("a.siard", False)]
)
def test_urls_are_told_from_files(text: str, yes: bool) -> None:
    assert is_url(text) is yes


def test_names_that_are_not_utf_8_are_refused() -> None:
    for url in ("sqlite:///shop-\udcff.db", "duckdb:///shop-\udcff.duckdb"):
        with pytest.raises(UsageError, match="not a name in UTF-8"):
            open_source(url)
        with pytest.raises(UsageError, match="not a name in UTF-8"):
            open_target(url)


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("sqllite:///a.db", "did you mean sqlite:///a.db?"),
        ("postgressql://me:secret@h/d", "did you mean postgresql://me@h/d?"),
        ("sqlite:a.db", "did you mean sqlite:///a.db?"),
        ("duckdb:/data/a.duckdb", "did you mean duckdb:////data/a.duckdb?"),
        ("b9.db", "did you mean sqlite:///b9.db?"),
        ("/data/b%9.sqlite", "did you mean sqlite:////data/b%259.sqlite?"),
        ("b9.duckdb", "did you mean duckdb:///b9.duckdb?"),
    ],
)
def test_addresses_that_are_nearly_right_are_put_right(url: str, advice: str) -> None:
    for opened in (open_source, open_target):
        with pytest.raises(UsageError, match="is not a database URL") as caught:
            opened(url)
        assert str(caught.value).endswith(advice)


def test_three_slashes_instead_of_four_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "a.db").touch()
    with pytest.raises(DatabaseError) as caught:
        open_source(f"sqlite://{tmp_path / 'a.db'}")
    assert f"did you mean sqlite:///{tmp_path / 'a.db'}, with four slashes?" in str(caught.value)
    with pytest.raises(UsageError) as refused:
        open_target(f"duckdb://{tmp_path / 'new.duckdb'}")
    assert f"did you mean duckdb:///{tmp_path / 'new.duckdb'}, with" in str(refused.value)


def test_a_file_of_another_product_is_recognised(tmp_path: Path) -> None:
    file = tmp_path / "town.db"
    duckdb.connect(str(file)).close()
    with pytest.raises(DatabaseError, match="is a DuckDB database; name it by a URL"):
        open_source(f"sqlite:///{file}")
    with pytest.raises(UsageError, match=r"as in duckdb:////.*town\.db"):
        open_source(str(file))
