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
    all_rows: int | None = None


def drawn(*steps: Step, width: int = 140) -> str:
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=width)
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


def test_the_bar_of_all_tables_knows_how_many_rows_there_are() -> None:
    screen = drawn(Step("main", "tree", 500, 1200, 1, 4000), Step("main", "bush", 9, None, 1, 4000))
    assert "509 of 4000 rows" in screen


def test_more_rows_than_were_known_of_end_no_bar() -> None:
    screen = drawn(Step("main", "tree", 500, 1200, 1, 400))
    assert "of 400 rows" not in screen and "500 rows" in screen


def test_a_total_that_was_too_small_is_not_shown_any_more() -> None:
    screen = drawn(
        Step("main", "tree", 40, 40, 1, 89),
        Step("main", "bush", 49, 50, 1, 89),
        Step("main", "bush", 56, 50, 1, 89),
    )
    assert "96 rows" in screen and "56 rows" in screen
    assert "96 of" not in screen and "56 of" not in screen


def test_a_table_is_never_shown_with_the_total_of_another_one() -> None:
    screen = drawn(Step("main", "tree", 40, 40, 1), Step("main", "settings", 7, None, 1))
    assert "7 rows" in screen and "of 40" not in screen.rpartition("main.settings")[2]


def test_bytes_that_nobody_counted_are_not_shown() -> None:
    assert "0 B" not in drawn(Step("main", "tree", 500, 1200, 0))


def test_a_line_of_eighty_columns_is_never_two() -> None:
    step = Step("main", "a_table_with_a_long_name", 2_000_000, 2_500_000, 2_500_000, 12_500_000)
    screen = drawn(step, width=80)
    for words in ("2000000 of 12500000 rows  2.5 MB", "2000000 of 2500000 rows"):
        assert words in screen


def test_the_name_of_a_table_cannot_command_the_terminal_or_be_markup() -> None:
    screen = drawn(Step("main", "x\x1b]0;owned\x07[bold]y", 1, None, 0))
    assert "\x1b]0;owned" not in screen
    assert r"x\x1b]0;owned\x07[bold]y" in screen


def test_nothing_is_drawn_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with shown("archiving") as tell:
        tell(Step("main", "tree", 1, 2, 3))
    assert capsys.readouterr() == ("", "")


def test_forty_columns_have_room_for_the_rows_and_the_time_left() -> None:
    step = Step("main", "a_table_with_a_long_name", 2_000_000, 2_500_000, 2_500_000, 12_500_000)
    screen = drawn(step, width=40)
    for words in ("2000000 of 12500000 ", "2000000 of 2500000 "):
        assert words in screen
