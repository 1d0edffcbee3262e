"""Progress on a terminal's stderr: all tables together, and the one at hand. Quiet elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from muniment.cli.terminal import count, cut, safe, size

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars

    from muniment.transfer import Progress

__all__ = ["Tally", "shown"]

Tell = Callable[["Progress"], None]

_WIDE = 110  # columns of a terminal in which all facts stand side by side
_SMALL = 66  # columns in which there is no room for bars


class Tally:
    """What was done so far, over all tables."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], int] = {}
        self.bytes = 0

    def add(self, progress: Progress) -> None:
        self._rows[progress.schema, progress.table] = progress.rows
        self.bytes = max(self.bytes, progress.bytes_written)

    @property
    def tables(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> int:
        return sum(self._rows.values())


@contextmanager
def shown(title: str, console: Console | None = None) -> Iterator[Tell]:
    """Show progress bars while the block runs, if stderr is a terminal; yield what feeds them."""
    if console is None and not sys.stderr.isatty():
        yield lambda _progress: None
        return
    with _bars(console) as bars:
        overall = bars.add_task(title, total=None, facts="")
        current = bars.add_task("", total=None, facts="", visible=False)
        everything, table = bars.tasks
        tally = Tally()

        narrow, small = bars.console.width < _WIDE, bars.console.width < _SMALL

        length = 12 if small else 20 if narrow else 30

        def tell(progress: Progress) -> None:
            tally.add(progress)
            facts = [] if narrow else [count(tally.tables, "table")]
            facts += [size(tally.bytes)] if tally.bytes and not small else []
            total = _not_less(getattr(progress, "all_rows", None), tally.rows)
            everything.total = total  # to rich, None in a call means that nothing changes
            bars.update(overall, completed=tally.rows, facts="  ".join(facts))
            name = cut(safe(f"{progress.schema}.{progress.table}"), length)
            total = _not_less(progress.total_rows, progress.rows)
            if table.description != name:
                table.total = None
                bars.reset(
                    current, description=name, completed=progress.rows, total=total, visible=True
                )
            else:
                table.total = total
                bars.update(current, completed=progress.rows)

        yield tell


def _not_less(total: int | None, rows: int) -> int | None:
    """Return a total, unless there are more rows already: then nobody knows it."""
    return total if total and total >= rows else None


def _bars(console: Console | None) -> Bars:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    console = console or Console(stderr=True, highlight=False)
    wide, small = console.width >= _WIDE, console.width < _SMALL

    class Rows(ProgressColumn):
        """Rows, of how many, how fast where there is room for that, and other facts."""

        def render(self, task: Task) -> Text:
            of = f" of {task.total:.0f}" if task.total else ""
            speed = f"  {task.speed:.0f} rows/s" if task.speed and wide else ""
            facts = f"  {task.fields['facts']}" if task.fields["facts"] else ""
            rows = "" if small else " rows"
            return Text(f"{task.completed:.0f}{of}{rows}{speed}{facts}")

    columns: list[ProgressColumn] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20 if wide else 10),
        Rows(table_column=Column(no_wrap=True)),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ]
    shown = [columns[0], columns[2], columns[4]] if small else columns
    return Progress(*shown, console=console, transient=True)
