"""Progress bars: on a terminal, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

import pytest
from rich.console import Console

from muniment.cli.progress import Tally, shown


@dataclass(frozen=True)
class Step:
    """What transfer tells as Progress."""

    schema: str
    table: str
    rows: int
    total_rows: int | None
    bytes_written: int


def drawn(*steps: Step) -> str:
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=140)
    with shown("archiving", console) as tell:
        for step in steps:
            tell(step)
    return screen.getvalue()


def test_a_tally_adds_up_over_tables() -> None:
    tally = Tally()
    for step in (
        Step("s", "a", 5, 10, 100),
        Step("s", "a", 10, 10, 200),
        Step("s", "b", 3, 4, 250),
    ):
        tally.add(step)
    assert (tally.tables, tally.rows, tally.bytes) == (2, 13, 250)


def test_bars_show_the_table_its_rows_and_the_bytes() -> None:
    screen = drawn(Step("main", "tree", 500, 1200, 2_500_000))
    assert "main.tree" in screen
    assert "500 of 1200 rows" in screen
    assert "2.5 MB" in screen
    assert "1 table " in screen


def test_the_name_of_a_table_cannot_command_the_terminal_or_be_markup() -> None:
    screen = drawn(Step("main", "x\x1b]0;owned\x07[bold]y", 1, None, 0))
    assert "\x1b]0;owned" not in screen
    assert r"x\x1b]0;owned\x07[bold]y" in screen


def test_nothing_is_drawn_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with shown("archiving") as tell:
        tell(Step("main", "tree", 1, 2, 3))
    assert capsys.readouterr() == ("", "")
