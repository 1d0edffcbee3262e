"""``muniment demo``: the whole story on a bundled sample database, with commands to paste."""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from muniment.cli.options import examples, json_option
from muniment.cli.terminal import safe
from muniment.errors import UsageError

__all__ = ["demo"]

_INTERRUPTED = 130
_QUESTION = (
    "SELECT latin_name, count(*) AS trees, min(planted_on) AS oldest FROM tree_overview "
    "GROUP BY latin_name ORDER BY oldest LIMIT 5"
)
Run = Callable[[list[str]], int]


@dataclass(frozen=True)
class _Step:
    """A command of the story; ``expected`` is its exit code if all is well."""

    title: str
    arguments: list[str]
    expected: int = 0
    before: Callable[[], None] | None = None
    after: str | None = None

    @property
    def command(self) -> str:
        return shlex.join(["muniment", *self.arguments])


@click.command(epilog=examples("muniment demo", "muniment demo /tmp/trees"))
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@json_option
@click.pass_context
def demo(ctx: click.Context, folder: Path | None, as_json: bool) -> None:
    """Show everything on a sample database, step by step.

    DIR is a new or empty folder for the files of the demonstration; without it, muniment-demo in
    the current folder. No server is needed.
    """
    folder = _new_folder(folder)
    root = ctx.find_root().command

    def run(arguments: list[str]) -> int:
        return int(root.main(arguments, prog_name="muniment", standalone_mode=False))

    try:
        code = _tell_json(folder, run) if as_json else _tell(folder, run)
    except BaseException:
        shutil.rmtree(folder)
        raise
    if code == _INTERRUPTED:
        shutil.rmtree(folder)
    ctx.exit(code)


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        folder = Path("muniment-demo")
        if folder.exists():
            return Path(Path(tempfile.mkdtemp(prefix="muniment-demo-", dir=Path.cwd())).name)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder; name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _tell(folder: Path, run: Run) -> int:
    _build(folder)
    _say_title("A database: the tree register of Ulmenhafen, a city that does not exist")
    click.echo(safe(f"{folder / 'trees.db'}: SQLite, with the awkward things real data has"))
    for step in _steps(folder):
        _say_title(step.title)
        if step.before:
            step.before()
        click.echo(click.style(f"$ {safe(step.command)}", fg="cyan"))
        code = run(step.arguments)
        if code != step.expected:
            click.echo(f"muniment: this was not expected; the files are in {folder}", err=True)
            return code or 3
        if step.after:
            click.echo(step.after)
    if find_spec("starlette"):
        _say_title("Open it in a browser: rows, photographs, documents, a diagram, search, SQL")
        serve = shlex.join(["muniment", "serve", str(folder / "store")])
        click.echo(click.style(f"$ {safe(serve)}", fg="cyan"))
        click.echo("(then http://127.0.0.1:8180/)")
    _say_title("What to try next")
    for purpose, command in _next(folder):
        click.echo(f"{purpose}:\n  {safe(shlex.join(command))}")
    return 0


def _tell_json(folder: Path, run: Run) -> int:
    """Run the same steps with --json; print what each gave."""
    _build(folder)
    steps: list[dict[str, Any]] = []
    code = 0
    for step in _steps(folder):
        if step.before:
            step.before()
        output = StringIO()
        with redirect_stdout(output):
            exit_code = run([*step.arguments, "--json"])
        result = json.loads(output.getvalue()) if output.getvalue() else None
        steps.append(
            {"title": step.title, "command": step.command, "exit": exit_code, "result": result}
        )
        if exit_code != step.expected:
            code = exit_code or 3
            break
    click.echo(json.dumps({"folder": str(folder), "done": code == 0, "steps": steps}, indent=2))
    return code


def _build(folder: Path) -> None:
    from muniment.demo import build_council, build_sample, sample_config

    build_sample(folder / "trees.db")
    build_council(folder / "town.duckdb")
    (folder / "trees.yaml").write_text(sample_config(), encoding="utf-8")


def _steps(folder: Path) -> Iterator[_Step]:
    source, archive = _url("sqlite", folder / "trees.db"), str(folder / "trees.siard")
    copy, duckdb = _url("sqlite", folder / "again.db"), _url("duckdb", folder / "again.duckdb")
    config = str(folder / "trees.yaml")
    yield _Step("Archive it", ["archive", source, archive, "--config", config])
    yield _Step("Look into the archive", ["show", archive])
    yield _Step("NULL is not ''; no value commands your terminal", ["show", archive, "curiosity"])
    yield _Step("Prove that it obeys every rule of the standard", ["validate", archive])
    yield _Step("Prove that the archive equals the database", ["compare", source, archive])
    yield _Step("Make a database of it again", ["restore", archive, copy])
    yield _Step("Prove that nothing was lost on the way", ["compare", source, copy])
    if find_spec("duckdb"):
        yield _Step("Make a database of another product of it", ["restore", archive, duckdb])
        yield _Step("Prove that, too", ["compare", archive, duckdb])
    if find_spec("duckdb") and find_spec("numpy"):  # what queries need
        yield _Step("Ask the archive, without restoring it", ["query", archive, _QUESTION])
    other, council = _url("duckdb", folder / "town.duckdb"), str(folder / "town.siard")
    about = ["--dbname", "Council and accounts", "--owner", "City of Ulmenhafen"]
    yield _Step(
        "Archive another database of the city, in another product, with several schemas",
        ["archive", other, council, *about],
    )
    if find_spec("numpy"):
        yield _Step(
            "Ask both archives at once", ["query", archive, "--attach", f"c={council}", _BOTH]
        )
    store = str(folder / "store")
    yield _Step(
        "Make a write-once store that gives names that last",
        ["store", "init", store, "--series", "db.ulmenhafen.de"],
    )
    yield _Step("Keep the archives there", ["store", "add", store, archive, council])
    yield _Step(
        "Cite a row of it", ["pdi", "cite", f"{_stored_name()}#row=(s0,t2,r1)", "--names", store]
    )
    yield _Step(
        "Find what was cited, years later",
        ["pdi", "resolve", f"{_stored_name()}#row=(s0,t2,r1)", "--names", store],
    )
    if find_spec("duckdb") and find_spec("numpy"):
        yield _Step(
            "Cite the result of a query, so that it can be proved again",
            ["pdi", "cite", "--query", _QUERY, archive, "--names", store],
        )
    yield _Step(
        "Turn one empty text of the copy into NULL: it does not go unnoticed",
        ["compare", archive, copy],
        expected=1,
        before=lambda: _spoil(folder / "again.db"),
        after="(exit code 1: the answer is no)",
    )


_BOTH = (
    "SELECT kind, count(*) AS orders, sum(amount) AS paid FROM trees.main.work_order "
    "JOIN c.finance.posting ON posting.work_order = work_order.id GROUP BY kind ORDER BY paid DESC"
)
_QUERY = "SELECT count(*) AS felled FROM tree WHERE felled_on IS NOT NULL"


def _stored_name() -> str:
    """The name that the first object of a day gets."""
    return f"pdi://db.ulmenhafen.de/{datetime.now(UTC):%Y/%m/%d}/1.siard.1"


def _spoil(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE curiosity SET text_value = NULL WHERE text_value = ''")


def _next(folder: Path) -> Iterator[tuple[str, list[str]]]:
    source, archive = _url("sqlite", folder / "trees.db"), str(folder / "trees.siard")
    felled, view = str(folder / "felled.siard"), str(folder / "view.siard")
    condition = "tree=felled_on IS NOT NULL"
    yield (
        "Archive the felled trees only",
        ["muniment", "archive", source, felled, "--table", "tree", "--where", condition],
    )
    yield (
        "Archive the rows of a view as well",
        ["muniment", "archive", source, view, "--view", "tree_overview"],
    )
    yield (
        "Write the archive as a site that opens from disk",
        ["muniment", "export", archive, str(folder / "site"), "--format", "html"],
    )
    yield "Open one archive in a browser, without a store", ["muniment", "browse", archive]
    row = f"{_stored_name()}#row=(s0,t2,r1)"
    yield (
        "See the row that was cited",
        ["muniment", "pdi", "resolve", row, "--names", str(folder / "store"), "--content"],
    )
    yield "See what nobody has described yet", ["muniment", "describe", archive]
    yield "See rows as JSON", ["muniment", "show", archive, "main.report", "--json"]
    yield "Open the archive with other tools: it is a ZIP of XML", ["unzip", "-l", archive]
    own = ["sqlite:///yours.db", "yours.siard"]
    yield "Archive a database of your own", ["muniment", "archive", *own]


def _url(product: str, path: Path) -> str:
    return f"{product}:///{quote(path.as_posix())}"


def _say_title(title: str) -> None:
    click.echo()
    click.echo(click.style(title, bold=True))
