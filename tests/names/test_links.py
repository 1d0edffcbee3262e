"""Addresses of indirect bindings, checked by their octets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from muniment.errors import UsageError
from muniment.names import Names
from muniment.names.content import keep
from muniment.names.links import check_links

SERIES = "docs.example.ch"


class Site(BaseHTTPRequestHandler):
    """A small site on loopback; /away leads to another path, /out to another host."""

    content = b"a document\r\n"

    def do_GET(self) -> None:
        if self.path in ("/away", "/out"):
            target = "/docs/a.txt" if self.path == "/away" else "http://other.invalid/docs/a.txt"
            self.send_response(302)
            self.send_header("Location", target)
            self.end_headers()
        elif self.path == "/docs/gone":
            self.send_error(404)
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(type(self).content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    Site.content = b"a document\r\n"
    with HTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def names(tmp_path: Path) -> Iterator[Names]:
    with Names.create(tmp_path / "names") as book:
        book.add_series(SERIES)
        yield book


def bound(names: Names, tmp_path: Path, uri: str) -> str:
    copy = tmp_path / "copy.txt"
    copy.write_bytes(b"a document\r\n")
    pdi = names.mint(SERIES, format="text")[0]
    return str(names.bind(pdi, *keep(names, copy), source=uri))


def verdicts(names: Names, *allowed: str, days: float = 0) -> list[str]:
    return [each.verdict for each in check_links(names, allowed, "robot", days, 5)]


def test_an_address_that_changed_is_not_used_any_more(
    names: Names, tmp_path: Path, site: str
) -> None:
    pdi = bound(names, tmp_path, f"{site}/docs/a.txt")
    assert verdicts(names, f"{site}/docs/") == ["same"]
    Site.content = b"A document\r\n"
    assert verdicts(names, f"{site}/docs") == ["changed"]
    assert verdicts(names, f"{site}/docs") == []  # it has ended
    said = names.assertions(pdi, "sourceChecked")
    assert [each.value["verdict"] for each in said] == ["same", "changed"]
    assert names.resolve(pdi).status == "bound"  # the copy


def test_more_octets_than_were_bound_are_not_read(names: Names, tmp_path: Path, site: str) -> None:
    bound(names, tmp_path, f"{site}/docs/a.txt")
    Site.content = b"a document\r\n" + bytes(5_000_000)
    assert verdicts(names, site) == ["changed"]


@pytest.mark.parametrize(
    ("path", "allow", "verdict"),
    [
        ("/docs/a.txt", "/other", "not allowed"),
        ("/docs/../a.txt", "/docs", "not allowed"),
        ("/docs2/a.txt", "/docs", "not allowed"),
        ("/docs/gone", "/docs", "unreachable"),
        ("/away", "/", "same"),
        ("/out", "/", "unreachable"),
    ],
)
def test_only_what_is_allowed_is_fetched(
    names: Names, tmp_path: Path, site: str, path: str, allow: str, verdict: str
) -> None:
    bound(names, tmp_path, site + path)
    assert verdicts(names, site + allow) == [verdict]
    if verdict == "unreachable":  # it may come back
        assert verdicts(names, site + allow) == ["unreachable"]


def test_files_are_read_below_the_folder_that_is_allowed(names: Names, tmp_path: Path) -> None:
    folder, other = tmp_path / "docs", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (folder / "a.txt").write_bytes(b"a document\r\n")
    (other / "a.txt").write_bytes(b"a document\r\n")
    (folder / "link.txt").symlink_to(other / "a.txt")
    bound(names, tmp_path, (folder / "a.txt").as_uri())
    bound(names, tmp_path, (folder / "link.txt").as_uri())
    bound(names, tmp_path, folder.as_uri())
    found = list(check_links(names, [folder.as_uri()], "robot"))
    assert [each.verdict for each in found] == ["same", "unreachable", "unreachable"]
    assert "outside of what is allowed" in found[1].found


def test_what_was_checked_lately_is_left_out(tmp_path: Path, site: str) -> None:
    now = [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    with Names.create(tmp_path / "names", clock=lambda: now[0]) as names:
        names.add_series(SERIES)
        bound(names, tmp_path, f"{site}/docs/a.txt")
        assert verdicts(names, site, days=7) == ["same"]
        now[0] += timedelta(days=6)
        assert verdicts(names, site, days=7) == []
        now[0] += timedelta(days=2)
        assert verdicts(names, site, days=7) == ["same"]
        with pytest.raises(UsageError):
            verdicts(names, "ftp://a/")
