"""Tables, JSON and advice."""

from __future__ import annotations

import json
import re
from io import StringIO
from types import SimpleNamespace

import pytest

from muniment.cli.report import (
    print_advice,
    print_json,
    print_notes,
    print_summary,
    print_table,
    print_tables,
    transfer_json,
)

RESULT = SimpleNamespace(
    tables=(
        SimpleNamespace(schema="main", table="tree", rows=1200),
        SimpleNamespace(schema="main", table="ev\x1b[2Jil", rows=1),
    ),
    notes=("a trigger was\nleft out",),
    seconds=1.23456,
    bytes=2_500_000,
    digests=(SimpleNamespace(digest_type="SHA-256", digest="AB12"),),
)


def test_columns_are_aligned_and_wide_characters_count_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(["name", "n"], [["elm", "1"], ["银杏", "20"]], right={1})
    assert capsys.readouterr().out == "name   n\nelm    1\n银杏  20\n"


def test_a_pipe_gets_every_cell_whole(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["value"], [["x" * 5000]])
    assert "x" * 5000 in capsys.readouterr().out


def test_markup_and_emoji_codes_in_cells_are_only_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["[bold]v[/]"], [["[red]:smile:[/]"]])
    assert capsys.readouterr().out == "[bold]v[/]\n[red]:smile:[/]\n"


def test_names_of_tables_are_made_safe(capsys: pytest.CaptureFixture[str]) -> None:
    print_tables(RESULT.tables)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.splitlines()[1].split() == ["main.tree", "1200"]


def test_the_summary_is_one_line_and_the_digests(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary("trees.siard", RESULT)
    assert capsys.readouterr().out == (
        "trees.siard: 2 tables, 1201 rows, 2.5 MB, in 1.2 s\nSHA-256 of the content: AB12\n"
    )


def test_notes_and_advice_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_notes(RESULT.notes)
    print_advice("to prove it", ["muniment", "compare", "sqlite:///my trees.db"])
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "note: a trigger was\\nleft out\nto prove it: muniment compare 'sqlite:///my trees.db'\n"
    )


def test_json_is_ascii_and_keeps_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a": "\x9b31m 银杏 \ud800 \u202e"}
    print_json(value)
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == value


def test_the_machine_form_of_a_transfer_is_stable() -> None:
    assert transfer_json(RESULT) == {
        "tables": [
            {"schema": "main", "table": "tree", "rows": 1200},
            {"schema": "main", "table": "ev\x1b[2Jil", "rows": 1},
        ],
        "rows": 1201,
        "bytes": 2_500_000,
        "seconds": 1.235,
        "digests": [{"type": "SHA-256", "digest": "AB12"}],
        "notes": ["a trigger was\nleft out"],
    }


def on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int, headings: list[str], rows: list[list[str]]
) -> list[str]:
    """Print a table as a terminal of so many columns shows it, without bold and colours."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    screen = StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", screen)
    print_table(headings, rows, right={1})
    text = re.sub(r"\x1b\[\d*m", "", screen.getvalue())
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("width", [80, 40, 24])
def test_numbers_are_never_cut(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    row = ["main.a_table_of_a_long_name", "44516", "d" * 100, "different"]
    lines = on_a_terminal(monkeypatch, width, ["table", "rows", "text", ""], [row])
    assert " 44516 " in lines[1]
    if width > 24:
        assert len(lines) == 2 and all(len(line) <= width for line in lines)
        assert lines[1].endswith("different")


def test_the_widest_column_gives_way_first(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ["main.species_name", "105", "Names of the species in the languages of the city."]
    lines = on_a_terminal(monkeypatch, 50, ["table", "rows", "description"], [row])
    assert lines[1].startswith("main.species_name   105  Names of the") and lines[1].endswith("…")


def test_a_line_that_is_longer_than_any_screen_is_whole_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(["a", "b"], [["x" * 150_000, "y" * 10]])
    assert capsys.readouterr().out.splitlines()[1] == "x" * 150_000 + "  " + "y" * 10
